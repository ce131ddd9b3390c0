"""Drawings of chapter 07: a ring, message sizes, hiding."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import atan2, cos, log2, sin, tau
from typing import NamedTuple

from llmtrain_course.communication.formulas import BackwardOverlap, RingTurn, ring_turn
from llmtrain_course.kit.drawing import COLORS, GREY, Drawing, Style, circle, line, rect, text
from llmtrain_helpers import units

# --- a ring, one turn at a time


class _Circle(NamedTuple):
    """The canvas, whatever the ring: nothing jumps while a hand moves it."""

    width: int
    height: int
    reach: tuple[int, int]  # from the middle to the ring, across and up
    piece: int  # from one piece of a GPU to the next

    @property
    def middle(self) -> tuple[float, float]:
        """Of the canvas, and of the ring."""
        return self.width / 2, self.height / 2

    def on(self, gpus: int, place: float, reach: float = 1) -> tuple[float, float]:
        """A place on the ring: GPU 1 stands at the top, the others follow clockwise."""
        angle, (x, y), (wide, high) = tau * place / gpus - tau / 4, self.middle, self.reach
        return x + wide * reach * cos(angle), y + high * reach * sin(angle)

    def box(self, gpus: int) -> tuple[float, float]:
        """How wide and high a GPU is drawn, half of each: room for its pieces and its name."""
        return max(self.piece / 2 * gpus + 5, 34 if self.width > 500 else 29), 33


_CIRCLES = _Circle(600, 430, (236, 172), 12), _Circle(360, 480, (143, 192), 7)
"""As on a page, and as on a telephone."""

_ALL_PIECES = 8
"""GPUs up to which every piece of each is drawn; of more, what they hold of the first."""


def ring_circle(state: RingTurn, num_bytes: float, narrow: bool = False) -> Drawing:
    """GPUs in a circle after a turn: what each holds, which piece moved, what GPU 1 has sent.

    A piece is as full as there are GPUs' numbers in it, and green when it is finished.
    `num_bytes` are those of the gradients of one GPU.
    """
    n, ring = state.gpus, _CIRCLES[narrow]
    svg = _counter(state, num_bytes, *ring.middle)
    if n <= _ALL_PIECES:
        svg += "".join(_hand_over(state, i, ring) for i in range(n) if state.moved)
        svg += "".join(_ring_gpu(state, i, ring) for i in range(n))
    else:
        svg += "".join(_ring_bar(state, i, ring) for i in range(n))
    return Drawing(svg, ring.width, ring.height, _ring_words(state, num_bytes))


def _ring_gpu(state: RingTurn, gpu: int, ring: _Circle) -> str:
    """A GPU: its name over its pieces; framed is the one that just came."""
    n = state.gpus
    (x, y), (wide, high) = ring.on(n, gpu), ring.box(n)
    came = state.moved[gpu - 1] if state.moved else -1
    label = f"GPU {gpu + 1}"
    svg = rect(x - wide, y - high, 2 * wide, 2 * high, stroke=GREY, rx=6)
    svg += text(x, y - high + 19, label, 15, "middle", font_weight=600)
    for piece, parts in enumerate(state.summed[gpu]):
        spot = x + ring.piece * (piece - n / 2) + 1, y - high + 26
        title = f"{label}, piece {piece + 1}: {parts} of {n} summed"
        svg += _level(*spot, ring.piece - 2, parts / n, title, piece == came)
    return svg


def _level(x: float, y: float, wide: float, full: float, title: str, came: bool) -> str:
    """A piece, filled from below."""
    style: Style = {"stroke": "currentColor", "stroke_width": 2.5} if came else {"stroke": GREY}
    fill = COLORS["useful"] if full == 1 else COLORS["data"]
    return rect(x, y + 34 * (1 - full), wide, 34 * full, fill) + rect(
        x, y, wide, 34, title=title, **style
    )


def _hand_over(state: RingTurn, gpu: int, ring: _Circle) -> str:
    """The arrow to the next GPU, and on it the number of the piece that moved."""
    n = state.gpus
    bend = 2 - cos(tau / 2 / n)  # so that its middle lies on the circle
    over = ring.on(n, gpu + 0.5, bend)
    ends = [_edge(ring.on(n, gpu + k), over, *ring.box(n)) for k in (0, 1)]
    (x1, y1), (x2, y2) = ends
    svg = f'<path d="M{x1:.1f} {y1:.1f}Q{over[0]:.1f} {over[1]:.1f} {x2:.1f} {y2:.1f}" '
    svg += 'fill="none" stroke="currentColor" stroke-width="2"/>'
    away = atan2(y2 - over[1], x2 - over[0])
    wings = [(x2 - 9 * cos(away + k), y2 - 9 * sin(away + k)) for k in (0.45, -0.45)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [wings[0], (x2, y2), wings[1]])
    svg += f'<polygon points="{points}" fill="currentColor"/>'
    x, y = ((a + b) / 4 + c / 2 for a, b, c in zip(*ends, over, strict=True))
    fill = COLORS["data"] if state.adds else COLORS["useful"]
    piece = state.moved[gpu] + 1
    svg += circle(x, y, 12, fill, f"piece {piece}, from GPU {gpu + 1}")
    return svg + text(x, y + 5, f"{piece}", 15, "middle", "#FFFFFF", font_weight=600)


def _edge(
    middle: tuple[float, float], toward: tuple[float, float], wide: float, high: float
) -> tuple[float, float]:
    """Where the way from a box's middle leaves the box, and three pixels on."""
    dx, dy = toward[0] - middle[0], toward[1] - middle[1]
    part = min((wide + 3) / max(abs(dx), 1e-9), (high + 3) / max(abs(dy), 1e-9))
    return middle[0] + part * dx, middle[1] + part * dy


def _ring_bar(state: RingTurn, gpu: int, ring: _Circle) -> str:
    """One of many GPUs: a spoke, as full as its first piece; a dot where that just came."""
    n = state.gpus
    parts = state.summed[gpu][0]
    wide = 13 if n <= 24 else 7
    fill = COLORS["useful"] if parts == n else COLORS["data"]

    def spoke(full: float, color: str, opacity: float = 1) -> str:
        ends = *ring.on(n, gpu, 0.84), *ring.on(n, gpu, 0.84 + 0.32 * full)
        return line(*ends, stroke=color, stroke_width=wide, opacity=opacity)

    svg = spoke(1, GREY, 0.3) + spoke(parts / n, fill)
    if state.moved and state.moved[gpu - 1] == 0:  # it has just come here
        svg += circle(*ring.on(n, gpu, 1.22), 4, "currentColor", "piece 1 just came")
    if gpu % (n // 8) == 0:
        x, y = ring.on(n, gpu, 0.75)
        svg += text(x, y + 5, f"{gpu + 1}", 14, "middle")
    return svg


def _counter(state: RingTurn, num_bytes: float, x: float, y: float) -> str:
    """In the middle: the turn, and what GPU 1 has sent beside what it holds."""
    sent, in_all = state.sent_bytes(num_bytes), ring_turn(state.gpus, state.turns)
    half = 92
    scale = half / num_bytes  # to the same end in every ring: twice its gradients
    left = x - half
    svg = text(x, y - 57, f"turn {state.turn} of {state.turns}", 20, "middle", font_weight=700)
    svg += text(x, y - 34, _phase(state), 15, "middle")
    size = 16 if x > 200 else 14.5
    svg += text(x, y, f"GPU 1 has sent {_size(sent)}", size, "middle", font_weight=600)
    svg += rect(left, y + 11, 2 * half, 16, stroke=GREY)
    svg += rect(left, y + 11, scale * sent, 16, COLORS["data"], f"sent: {_size(sent)}")
    at_end = left + scale * in_all.sent_bytes(num_bytes)
    svg += line(at_end, y + 7, at_end, y + 31, stroke_dasharray="3 2")
    for times, word in ((0, "0"), (1, _size(num_bytes)), (2, _size(2 * num_bytes))):
        at = left + half * times
        svg += line(at, y + 27, at, y + 33) + text(at, y + 48, word, 14, "middle")
    svg += text(x, y + 69, f"its gradients: {_size(num_bytes)}", 14, "middle")
    if state.gpus > _ALL_PIECES:
        svg += text(x, y + 91, f"drawn: the first of {state.gpus} pieces", 14, "middle")
    return svg


def _phase(state: RingTurn) -> str:
    if not state.turn:
        return "nothing has moved yet"
    if state.turn == state.turns:
        return "all have every piece"
    return "adding up" if state.adds else "handing round"


def _size(num_bytes: float) -> str:
    return "nothing" if not num_bytes else units.edited(num_bytes, units.gigabytes)


def _ring_words(state: RingTurn, num_bytes: float) -> str:
    n = state.gpus
    piece = _size(num_bytes / n)
    counts = sorted({parts for row in state.summed for parts in row})
    words = f"{n} GPUs in a circle, each with {n} pieces of {piece}. Turn {state.turn} of "
    words += f"{state.turns}: {_phase(state)}. A piece holds the numbers of "
    words += (
        f"{counts[0]} to {counts[-1]} GPUs" if len(counts) > 1 else units.plural(counts[0], "GPU")
    )
    return f"{words}; GPU 1 has sent {_size(state.sent_bytes(num_bytes))}."


# --- small messages and large ones

MIB = 2**20
_SIZES = (2**17, 2**33)
"""The smallest message that is drawn, and the largest."""


def message_rates(
    series: Mapping[str, Mapping[int, float]],
    seconds: Mapping[str, float],
    size: int,
    narrow: bool = False,
) -> Drawing:
    """Measured bytes/s of all-reduces over the bytes of the message, a line a machine.

    Dots stand at the message of `size`, and what it takes beside each line, or below all.
    """
    inks = [COLORS[x] for x in ("weights", "gradients", "optimizer", "activations")]
    left, right, floor, most = 44 if narrow else 62, 352 if narrow else 424, 330, 900e9

    def place(bytes_: int, rate: float) -> tuple[float, float]:
        across = log2(bytes_ / _SIZES[0]) / log2(_SIZES[1] / _SIZES[0])
        return left + (right - left) * across, floor - 280 * rate / most

    svg = text(8, 24, "GB/s that each GPU of a ring sends", 15) + text(
        right, 384, "bytes of the message", 15, "end"
    )
    for rate in (0, 200, 400, 600, 800):
        y = place(_SIZES[0], rate * 1e9)[1]
        svg += line(left, y, right, y, stroke=GREY, stroke_width=0.6)
        svg += text(left - 8, y + 5, f"{rate}", 14, "end")
    for power, word in ((20, "1 MiB"), (25, "32 MiB"), (30, "1 GiB")):
        x = place(2**power, 0)[0]
        svg += line(x, floor, x, floor + 6) + text(x, floor + 24, word, 14, "middle")
    x = place(size, 0)[0]
    svg += line(x, 40, x, floor, stroke_dasharray="4 3")

    ends = {}
    for ink, (name, rates) in zip(inks, series.items(), strict=True):
        spots = [place(*one) for one in rates.items() if one[0] <= _SIZES[1]]
        for (x1, y1), (x2, y2) in pairwise(spots):
            svg += line(x1, y1, x2, y2, stroke=ink, stroke_width=2.5)
        x, y = place(size, rates[size])
        reached = f"{name}: {units.gigabytes(rates[size])}/s"
        svg += circle(x, y, 6, ink, reached, data_moves="size")
        ends[name] = spots[-1][1], ink
    below = -100.0
    for name, (y, ink) in sorted(ends.items(), key=lambda end: end[1][0]):
        share = units.share(series[name][size] / max(series[name].values()))
        takes = f"{units.seconds(seconds[name])}, {share} of best"
        if narrow:
            below = max(below + 24, 416)
            svg += rect(left, below - 12, 14, 14, ink)
            svg += text(left + 22, below, name, 15, font_weight=600, fill=ink)
            svg += text(left + 104, below, takes, 15)
            continue
        below = max(y + 4, below + 46)
        svg += line(right + 3, y, right + 16, below - 5, stroke=ink)
        svg += text(right + 20, below, name, 15, font_weight=600, fill=ink)
        svg += text(right + 20, below + 19, takes, 14)
    times = ", ".join(f"{name} {units.seconds(time)}" for name, time in seconds.items())
    words = "Measured rates of all-reduces, over the bytes of the message: low for small ones, "
    words += f"flat for large ones. {units.gibibytes(size)} take {times}."
    return Drawing(svg, *((368, 508) if narrow else (640, 396)), words)


# --- sending beside computing

LONGEST = 220
"""Milliseconds of the axis: no setting of the handle takes longer."""

_MS = 2.42, 1.54
"""Pixels of a millisecond; on a telephone."""


def milliseconds(seconds: float) -> str:
    """A time of a time line in ms, in two digits, whatever its size."""
    return f"{units.digits(1e3 * seconds, 2)} ms"


def time_line(last: BackwardOverlap, moment: float, narrow: bool = False) -> Drawing:
    """Backward and the messages of its gradients on one time line, up to a moment in ms.

    What travels beside computing is pale; what the step waits for is full.
    """
    left, width = (10, 360) if narrow else (90, 640)
    clock = _Clock(left, _MS[narrow], moment / 1e3)
    if narrow:
        svg = text(left, 46, "computes", 15) + text(left, 214, "sends", 15)
    else:
        svg = text(left - 10, 78, "computes", 15, "end") + text(left - 10, 158, "sends", 15, "end")
        svg += text(left - 10, 98, "at the peak", 14, "end")
    n, now = last.messages, clock.now
    if n > _APART:
        svg += _many_messages(last, clock)
    for k, (start, end) in enumerate(last.spans if n <= _APART else (), 1):
        begin, done = last.backward * (k - 1) / n, last.backward * k / n
        svg += clock.until(52, begin, done, COLORS["matrix products"], f"part {k} of backward")
        x = clock.at(done)
        if n <= 8 and now >= done:
            svg += line(x, 92, clock.at(start), 132, stroke=GREY, stroke_dasharray="3 2")
        hidden = min(end, max(last.backward, start))
        svg += clock.until(132, start, hidden, COLORS["data"], f"message {k}, hidden", 0.25)
        svg += clock.until(132, hidden, end, COLORS["data"], f"message {k}, seen")
        if now >= end and clock.at(end) - clock.at(start) > 20:
            ink = "#FFFFFF" if hidden <= start else "currentColor"
            svg += text(clock.at((start + end) / 2), 158, f"{k}", 14, "middle", ink)
    end, last_place = clock.at(last.backward), width - (64 if narrow else 120)
    svg += line(end, 34, end, 196, stroke_dasharray="5 4")
    svg += text(max(min(end, last_place), 58), 26, "backward ends", 15, "middle")
    if now >= last.end:
        wide = clock.at(last.visible) - left
        svg += line(end, 188, end + wide, 188, stroke=COLORS["data"], stroke_width=4)
        fits_right = end + wide < width - 120
        at, anchor, y = (end + wide + 8, "start", 193) if fits_right else (end + wide, "end", 212)
        svg += text(at, y, f"seen: {milliseconds(last.visible)}", 15, anchor, font_weight=600)
    svg += line(left, 232, clock.at(LONGEST / 1e3), 232)
    for ms in range(0, LONGEST + 1, 50):
        x = clock.at(ms / 1e3)
        label = f"{ms} ms" if narrow and ms == 200 else f"{ms}"
        svg += line(x, 232, x, 238) + text(max(x, 14), 255, label, 14, "middle")
    if not narrow:
        svg += text(left - 10, 255, "ms", 14, "end")
    svg += rect(left, 274, 18, 16, COLORS["data"], fill_opacity=0.25, stroke=COLORS["data"])
    svg += text(left + 25, 287, "hidden beside computing", 15)
    svg += rect(left + 240, 274, 18, 16, COLORS["data"]) + text(left + 265, 287, "seen", 15)
    words = f"One time line: backward takes {milliseconds(last.backward)}. Its gradients leave "
    words += f"in {units.plural(n, 'message')}, {milliseconds(last.sending)} in all. "
    words += f"{milliseconds(last.visible)} stand behind the end of backward, and are seen."
    return Drawing(svg, width, 302, words)


class _Clock(NamedTuple):
    """From seconds to places of a time line, and how far it has come."""

    left: float
    per_ms: float
    now: float

    def at(self, seconds: float) -> float:
        """Where a time lies."""
        return self.left + 1e3 * self.per_ms * seconds

    def until(
        self, y: float, start: float, end: float, fill: str, title: str, full: float = 1
    ) -> str:
        """A piece of the time line, as far as it has come."""
        if end - start < 1e-7 or self.now < start:
            return ""
        x, wide = self.at(start), self.at(min(self.now, end)) - self.at(start)
        style: Style = {"fill_opacity": full, "stroke": fill} if full < 1 else {}
        return rect(x + 0.5, y, max(wide - 1, 0.5), 40, fill, title, **style)


_APART = 32
"""Messages up to which each has a box of its own."""


def _many_messages(last: BackwardOverlap, clock: _Clock) -> str:
    """Backward as one bar, all that hides as one path, and what shows in one piece."""
    svg = clock.until(52, 0, last.backward, COLORS["matrix products"], "backward")
    way = ""
    for start, end in last.spans:
        x, wide = clock.at(start), clock.at(min(end, last.backward, clock.now)) - clock.at(start)
        way += f"M{x:.2f} 132h{wide:.2f}v40h{-wide:.2f}z" if wide > 0 else ""
    svg += f'<path d="{way}" fill="{COLORS["data"]}" opacity="0.4"/>' if way else ""
    return svg + clock.until(132, last.backward, last.end, COLORS["data"], "messages, seen")
