"""Pictures of chapter 07: a ring, message sizes, sending during computing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import atan2, ceil, cos, sin, tau
from typing import NamedTuple

from llmtrain_course.communication.formulas import BackwardOverlap, RingTurn, ring_turn
from llmtrain_course.kit.chart import Chart, Dot, Mark, Path, Rule
from llmtrain_course.kit.drawing import COLORS, GREY, Drawing, Style, circle, line, rect, text
from llmtrain_course.kit.lanes import Lane, Limit, Point, Span, Timeline
from llmtrain_course.kit.layout import INK, SMALL, USUAL, Picture, text_width, wrapped
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units

# --- a ring, one turn at a time

_ALL_PIECES = 8
"""GPUs up to which every piece of each is drawn; of more, what they hold of the first."""

_HEIGHT, _LEVEL = 470, 34
"""Of the canvas, whatever the ring, so that nothing jumps; and of a full piece."""


class _Circle(NamedTuple):
    """A ring on a canvas of this width: where its GPUs stand, and how large they are."""

    width: float

    @property
    def piece(self) -> float:
        """From one piece of a GPU to the next."""
        return self.width / 50

    def box(self, gpus: int) -> tuple[float, float]:
        """How wide and high a GPU is drawn, half of each: room for its pieces and its name."""
        name = text_width(f"GPU {gpus}", USUAL, True)
        return max(self.piece * gpus, name) / 2 + 5, _LEVEL

    def on(self, gpus: int, place: float, reach: float = 1) -> tuple[float, float]:
        """A place on the ring: GPU 1 stands at the top, the others follow clockwise."""
        (wide, high), angle = self.box(_ALL_PIECES), tau * place / gpus - tau / 4
        x, y = self.width / 2, _HEIGHT / 2
        return x + (x - wide - 8) * reach * cos(angle), y + (y - high - 8) * reach * sin(angle)


def ring_circle(state: RingTurn, num_bytes: float, width: int) -> Drawing:
    """GPUs in a circle after a turn: what each holds, which piece moved, what GPU 1 has sent.

    A piece is as full as there are GPUs' numbers in it, and green when it is finished.
    `num_bytes` are those of the gradients of one GPU.
    """
    n, ring = state.gpus, _Circle(width)
    svg = _counter(state, num_bytes, width)
    if n <= _ALL_PIECES:
        svg += "".join(_hand_over(state, i, ring) for i in range(n) if state.moved)
        svg += "".join(_ring_gpu(state, i, ring) for i in range(n))
    else:
        svg += "".join(_ring_bar(state, i, ring) for i in range(n))
    return Drawing(svg, width, _HEIGHT, _ring_words(state, num_bytes))


def _ring_gpu(state: RingTurn, gpu: int, ring: _Circle) -> str:
    """A GPU: its name over its pieces, filled from below; framed is the one that just came."""
    n = state.gpus
    (x, y), (wide, high) = ring.on(n, gpu), ring.box(n)
    came = state.moved[gpu - 1] if state.moved else -1
    label, top = f"GPU {gpu + 1}", y - high + 26
    svg = rect(x - wide, y - high, 2 * wide, 2 * high, stroke=GREY, rx=6)
    svg += text(x, top - 7, label, USUAL, "middle", font_weight=600)
    for piece, parts in enumerate(state.summed[gpu]):
        left, filled = x + ring.piece * (piece - n / 2) + 1, _LEVEL * parts / n
        title = f"{label}, piece {piece + 1}: {parts} of {n} summed"
        style: Style = {"stroke": INK, "stroke_width": 2.5} if piece == came else {"stroke": GREY}
        svg += rect(left, top + _LEVEL - filled, ring.piece - 2, filled, _color(parts == n))
        svg += rect(left, top, ring.piece - 2, _LEVEL, title=title, **style)
    return svg


def _color(finished: bool) -> str:
    return COLORS["useful" if finished else "data"]


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
    piece = state.moved[gpu] + 1
    svg += circle(x, y, 12, _color(not state.adds), f"piece {piece}, from GPU {gpu + 1}")
    return svg + text(x, y + 5, f"{piece}", USUAL, "middle", "#FFFFFF", font_weight=600)


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

    def spoke(full: float, color: str, opacity: float = 1) -> str:
        ends = *ring.on(n, gpu, 0.84), *ring.on(n, gpu, 0.84 + 0.32 * full)
        return line(*ends, stroke=color, stroke_width=wide, opacity=opacity)

    svg = spoke(1, GREY, 0.3) + spoke(parts / n, _color(parts == n))
    if state.moved and state.moved[gpu - 1] == 0:  # it has just come here
        svg += circle(*ring.on(n, gpu, 1.21), 4, INK, "piece 1, just in")
    if gpu % (n // 8) == 0:
        x, y = ring.on(n, gpu, 0.75)
        svg += text(x, y + 5, f"{gpu + 1}", SMALL, "middle")
    return svg


def _counter(state: RingTurn, num_bytes: float, width: float) -> str:
    """In the middle: the turn, and what GPU 1 has sent beside what it holds."""
    sent, in_all = state.sent_bytes(num_bytes), ring_turn(state.gpus, state.turns)
    half, x, y = 0.22 * width, width / 2, _HEIGHT / 2 - 10
    scale = half / num_bytes  # to the same end in every ring: twice its gradients
    left = x - half
    svg = text(x, y - 57, f"turn {state.turn} of {state.turns}", 20, "middle", font_weight=700)
    svg += text(x, y - 34, _phase(state), USUAL, "middle")
    svg += text(x, y, f"GPU 1 has sent {_size(sent)}", USUAL, "middle", font_weight=600)
    svg += rect(left, y + 11, 2 * half, 16, stroke=GREY)
    svg += rect(left, y + 11, scale * sent, 16, COLORS["data"], f"sent: {_size(sent)}")
    at_end = left + scale * in_all.sent_bytes(num_bytes)
    svg += line(at_end, y + 7, at_end, y + 31, stroke_dasharray="3 2")
    for times, word in ((0, "0"), (1, _size(num_bytes)), (2, _size(2 * num_bytes))):
        at = left + half * times
        svg += line(at, y + 27, at, y + 33) + text(at, y + 48, word, SMALL, "middle")
    notes = [f"its gradients: {_size(num_bytes)}"]
    if state.gpus > _ALL_PIECES:
        words = f"drawn: the first of {state.gpus} pieces"
        notes += wrapped(words, 2 * half, SMALL)
    rows = enumerate(notes)
    return svg + "".join(text(x, y + 69 + 22 * i, words, SMALL, "middle") for i, words in rows)


def _phase(state: RingTurn) -> str:
    if not state.turn:
        return "nothing has been sent yet"
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
    return f"{words}. GPU 1 has sent {_size(state.sent_bytes(num_bytes))}."


# --- small messages and large ones

_INKS = [COLORS[part] for part in ("weights", "gradients", "optimizer", "activations")]


def message_rates(
    series: Mapping[str, Mapping[int, float]], seconds: Mapping[str, float], size: int
) -> Picture:
    """Measured bytes/s of all-reduces over the bytes of the message, a line per machine.

    Dots stand at the message of `size`, and what it takes at the end of each line.
    """
    inks = dict(zip(series, _INKS, strict=True))
    marks: list[Mark] = [Rule(size, dash="4 3")]
    for name in sorted(series, key=lambda name: max(series[name].values()), reverse=True):
        rates, rate = series[name], series[name][size]
        takes = f"{units.seconds(seconds[name])}, {units.share(rate / max(rates.values()))} of best"
        title = f"{name}: {units.gigabytes(rate)}/s"
        marks.append(Path([*rates.items()], inks[name], 2.5, end=(name, takes)))
        marks.append(Dot(size, rate, inks[name], title=title, moves="size"))
    times = ", ".join(f"{name} {units.seconds(time)}" for name, time in seconds.items())
    words = "Measured all-reduce rates over message size: low for small messages, "
    words += f"flat for large messages. Time for {units.gibibytes(size)}: {times}."
    sizes: dict[float, str] = {2**20: "1 MiB", 2**25: "32 MiB", 2**30: "1 GiB"}
    ticks: dict[float, str] = {1e9 * k: f"{k}" for k in range(0, 801, 200)}
    x = Scale(2**17, 2**33, "bytes of the message", ticks=sizes, log=True)
    y = Scale(0, 900e9, "GB/s that each GPU of a ring sends", ticks=ticks, grid=True)
    return Chart(x, y, marks, words, height=300, longest_end="0.56 ms, under 1% of best")


# --- sending beside computing

LONGEST = 220
"""Milliseconds of the axis: no setting of the handle takes longer."""

_NUMBERED, _DRAWN = 32, 64
"""Messages up to which each has its number; and up to which each is drawn by itself."""

_COMPUTED = Span(0, 0, COLORS["matrix products"], name="backward")
_HIDDEN = Span(
    0, 0, COLORS["data"], name="hidden behind computing", opacity=0.25, edge=True, ink=INK
)
_EXPOSED = Span(0, 0, COLORS["data"], name="exposed")
"""What is computed; what travels beside it, and what the step waits for."""


def milliseconds(seconds: float) -> str:
    """A time of a time line in ms, in two digits, whatever its size."""
    return f"{units.digits(1e3 * seconds, 2)} ms"


def time_line(last: BackwardOverlap, moment: float) -> Picture:
    """Backward and the messages of its gradients on one time line, up to a moment in seconds.

    What travels while the GPU computes is pale; what the step waits for is full.
    """
    now, n, visible = moment, last.messages, milliseconds(last.visible)
    numbered = n <= _NUMBERED
    steps = [last.backward * k / n for k in range(n + 1)] if numbered else [0, last.backward]
    computes = [
        _piece(_COMPUTED, now, *ends, k if numbered else 0)
        for k, ends in enumerate(pairwise(steps), 1)
    ]
    sends = list[Span]()
    for k, (start, end) in enumerate(_travels(last), 1):
        border, number = min(max(start, last.backward), end), k if numbered else 0
        sends.append(_piece(_HIDDEN, now, start, border, number))
        sends.append(_piece(_EXPOSED, now, border, end, number))
    if not numbered:
        start = last.spans[0][0]
        sends.append(Span(start, max(start, now), "none", f"{n} messages", ink=INK))
    waits: list[Span | Point] = [
        Span(last.backward, last.end, COLORS["data"], rise=0.16),
        Point(last.end, label=visible, shape="none", size=2, bold=True),
    ]
    lanes = [
        Lane("computes", computes, note="at the peak"),
        Lane("sends", sends),
        Lane("exposed", waits if now >= last.end else [], height=24),
    ]
    words = (
        f"A timeline on which backward needs {milliseconds(last.backward)}. Its gradients are sent "
    )
    words += f"in {units.plural(last.messages, 'message')}, {milliseconds(last.sending)} in all. "
    words += f"{visible} of that run after backward has ended, so they're exposed."
    return Timeline(
        Scale(0, LONGEST / 1e3, "ms", lambda s: f"{1e3 * s:.0f}", (0, 0.05, 0.1, 0.15, 0.2)),
        lanes,
        words,
        [Limit(last.backward, "backward ends", "5 4"), Limit(now, moves="moment")],
        lane=36,
        phone_names=0,
        extra=[_HIDDEN.swatch(), _EXPOSED.swatch()],
    )


def _piece(kind: Span, now: float, start: float, end: float, number: int) -> Span:
    """A piece of a time line as far as it has come, with the number of its message, if any."""
    label, end = f"{number or ''}", min(end, now)
    title = f"{kind.name} {label}".strip()
    piece = replace(kind, start=start, end=end, label=label, title=title, name="")
    return replace(piece, edge=bool(number), hidden=start >= end)


def _travels(last: BackwardOverlap) -> list[tuple[float, float]]:
    """When messages travel: of very many, several at a time, or all where they queue."""
    first, many = last.spans[0][0], ceil(last.messages / _DRAWN)
    if many > 1 and last.sending > last.backward:
        many = last.messages
    length = many * last.sending / last.messages
    return [(max(end - length, first), end) for _, end in last.spans[::-many]][::-1]
