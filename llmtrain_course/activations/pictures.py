"""Drawings of chapter 06: what a layer keeps, memory through a step, the allocator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Unpack

from llmtrain_course.activations.formulas import (
    SAVED_TENSORS,
    SavedTensor,
    bytes_kept,
    resident_layers,
    saved_tensors,
)
from llmtrain_course.kit.drawing import COLORS, Drawing, Style, ghost, hatched, line, rect, text
from llmtrain_helpers import units
from llmtrain_helpers.activations import MARKS, Moment, Timeline
from llmtrain_helpers.checks import Count, Result, checked

_ACROSS = 744
_WHITE = "#FFFFFF"

# --- what a layer keeps


class _Rows(NamedTuple):
    """How wide the layer is drawn, how high a row is, where tensors stand, and their bars."""

    width: int
    high: int
    tensor: int
    bar: int
    room: int
    below: int  # of a bar below its tensor's name


_NEXT_TO, _BELOW = _Rows(640, 25, 148, 318, 224, 0), _Rows(376, 44, 136, 136, 140, 19)
"""Bars beside the names of tensors; on a telephone below them."""


@checked
def kept_by_layer(
    hidden_size: Count[int],
    num_heads: Count[int],
    sequence_length: Count[int],
    flash: bool = False,
    dropout: bool = True,
    narrow: bool = False,
) -> Drawing:
    """What each operation of a GPT's layer keeps, as bars in bytes a hidden value.

    Times sbh they make sbh(34 + 5as/h). What a switch takes away stays as an outline.
    """
    h, a, s = hidden_size, num_heads, sequence_length
    ratio, there = a * s / h, saved_tensors(flash, dropout)
    rows = _BELOW if narrow else _NEXT_TO
    scale = rows.room / max(8, 2 * ratio)
    whole, all_of_it = _short(bytes_kept(ratio, flash, dropout)), _short(bytes_kept(ratio))
    svg = text(10, 26, "operation", 15, font_weight=600)
    if not narrow:
        svg += text(rows.tensor, 26, "keeps", 15, font_weight=600)
    svg += text(rows.bar, 26, "bytes for each hidden value", 15, font_weight=600)
    for row, kept in enumerate(SAVED_TENSORS):
        svg += _row(38 + row * rows.high, kept, ratio, scale, kept in there, rows)
    foot = 38 + len(SAVED_TENSORS) * rows.high
    learned = sum(kept.size for kept in SAVED_TENSORS if kept.learns)
    total = f"{whole} bytes for each hidden value"
    if whole != all_of_it:
        total += f", of {all_of_it}"
    notes = [f"Bold: operations with weights keep {learned}."]
    notes.append("Hatched: scores. Dashed: no longer kept.")
    svg += text(10, foot + 24, total, 16 if narrow else 18, font_weight=700)
    for i, note in enumerate(notes if narrow else [" ".join(notes)]):
        svg += text(10, foot + 48 + 20 * i, note, 14)
    listed = "; ".join(
        f"{kept.operation or 'the same'} keeps {kept.tensor}, {kept.size}"
        f"{' times as/h' if kept.scores else ''}"
        for kept in there
    )
    words = (
        f"What a GPT's layer keeps, in bytes for each hidden value: {listed}. "
        f"Together, with as/h = {_short(ratio)}: {whole}."
    )
    return Drawing(svg, rows.width, foot + (82 if narrow else 62), words)


def _row(y: float, kept: SavedTensor, ratio: float, scale: float, there: bool, rows: _Rows) -> str:
    """An operation in its half's colour, the tensor that it keeps, and a bar of its size."""
    size = kept.size * (ratio if kept.scores else 1)
    label = f"{kept.size} as/h = {_short(size)}" if kept.scores else f"{kept.size}"
    svg = ""
    if kept.operation:
        high = 2 * rows.high if kept.operation == "average of V" else rows.high
        weight: Style = {"font_weight": 700} if kept.learns else {}
        middle = y + (high - 3) / 2 + 5
        svg += rect(10, y, rows.tensor - 20, high - 3, COLORS[kept.half], rx=3)
        svg += text(
            18 if rows is _NEXT_TO else 14, middle, kept.operation, 14, fill=_WHITE, **weight
        )
    wide, bar = size * scale, (rows.bar, y + rows.below + 2)
    if not there:
        return svg + ghost(*bar, wide, 18, "no longer kept")
    svg += text(rows.tensor, y + 16, kept.tensor, 14)
    svg += rect(*bar, wide, 18, COLORS["activations"])
    if kept.scores:
        svg += hatched(*bar, wide, 18)
    return svg + text(bar[0] + wide + 7, bar[1] + 14, label.replace("1 as/h", "as/h"), 14)


def _short(number: float) -> str:
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


# --- memory through the steps

_TOP, _BASE = 92, 372
_PARTS = ["weights", "main weights", "optimizer", "gradients", "activations"]
_PARTS += ["logits", "second logits"]
_ONE = {"forward": 0.27, "loss": 0.41, "first layer": 0.78}
_TWO = [
    {"forward": 0.20, "loss": 0.275, "first layer": 0.42},
    {"forward": 0.64, "loss": 0.715, "first layer": 0.86},
]
_HEAD, _AGAIN, _DONE = 0.03, 0.46, 0.98
"""Where within a step the marks stand, with one pass and with two; how long the head's
part of forward is drawn, where the second pass begins, and where the gradients are
released."""

Point = tuple[float, dict[str, float]]
"""A place along the steps, and what is resident there, part by part."""


def step_memory(
    timeline: Timeline,
    memory: Result = 0,
    chip: str = "the chip",
    passes: int = 0,
    before: tuple[Timeline, Result] | None = None,
    narrow: bool = False,
) -> Drawing:
    """What is resident through the steps, stacked, under the line of a chip's memory.

    One scale for everything; what is over the line is hatched. `passes` says how many
    micro-batches a step has where the timeline holds the first two of them. `before` is
    the timeline and memory that the panel began with, drawn as a dashed outline.
    """
    points = _points(timeline)
    old = _earlier_points(before[0], timeline) if before and before != (timeline, memory) else []
    most = max([memory, *(sum(parts.values()) for _, parts in points + old)])
    if before:
        most = max(most, before[1])
    low = memory and timeline.peak.total < 0.75 * most  # the call-out has its room below the line
    up = _Scale(1.03 * most, 30 if low and not narrow else _TOP, narrow)
    svg = [*_axis(up), *_bands(points, up)]
    if memory:
        svg += [_over(points, memory, up), *_line_of(memory, chip, up)]
    if old and before:
        svg += _outline(old, before[1] if before[1] != memory else 0, up)
    svg += _callout(timeline, points, up, memory)
    passes = passes or timeline.moments[-1].micro_batch
    peak = timeline.peak
    when = f"{MOMENTS[peak.mark]}): {units.gigabytes(peak.total)}"
    when = f"{'Peak' if narrow else 'At the peak'} (step {peak.step}, {when}"
    left, size = (6, 14.5) if narrow else (up.left, 16)
    svg += [*_marks(timeline, passes, up), text(left, up.foot + 30, when, size, font_weight=700)]
    svg.append(_key(parts_at_peak(timeline), up.foot + 56, up, 226))
    words = _steps_in_words(timeline, memory, chip, passes)
    return Drawing(
        "".join(svg), 368 if narrow else _ACROSS, up.foot + (122 if narrow else 100), words
    )


_POINTS_UNTIL = dict(zip(MARKS, (2, 4, 6, 7, 8, 10), strict=True))
"""How many points of a step with one pass are drawn when a moment has come."""


def memory_so_far(
    timeline: Timeline,
    now: Moment,
    memory: float,
    chip: str,
    most: float,
    smaller: float = 0,
    narrow: bool = False,
) -> Drawing:
    """What has been resident up to a moment of two steps of one pass.

    The scale ends at `most` bytes, whatever is shown. A second, dashed line is the memory
    of a `smaller` chip.
    """
    points, up = _points(timeline), _Scale(most, _TOP if narrow else 62, narrow)
    past = points[: len(points) // 2 * (now.step - 1) + _POINTS_UNTIL[now.mark]]
    x, above = up.across(past[-1][0]), 60 if narrow else 38
    svg = [*_axis(up), *_bands(past, up), _over(past, memory, up), *_line_of(memory, chip, up)]
    if smaller:
        svg += _line_of(smaller, "a smaller one", up, 1, stroke_dasharray="10 5")
    at = f"{MOMENTS[now.mark]}: {units.gigabytes(now.total)}"
    late = x > up.across(1)
    side, label_x = ("end", x - 8) if late else ("start", x + 8)
    svg.append(line(x, above + 6, x, _BASE, stroke_width=2))
    if narrow and not late:  # so far to the left that its words end within the picture
        label_x = min(label_x, 140)
    svg.append(text(label_x, above, at, 17, side, font_weight=700))
    svg += _marks(timeline, 1, up)
    parts = {**_split(now, timeline), "logits": now.logits}
    parts.pop("second logits")
    svg.append(_key(parts, up.foot + 28, up, 280))
    part_sizes = _in_words(now)
    fits = "under" if now.total <= memory else "over"
    words = (
        f"Memory through two steps, up to step {now.step}, {MOMENTS[now.mark]}: {part_sizes}. "
        f"Together {units.gigabytes(now.total)}, {fits} the line of {chip}, "
        f"{units.gigabytes(memory)}."
    )
    return Drawing("".join(svg), 368 if narrow else _ACROSS, up.foot + 88, words)


class _Scale(NamedTuple):
    """From bytes to a height on the canvas: 0 stands at the base, `most` at the top."""

    most: float
    top: float = _TOP
    narrow: bool = False

    def __call__(self, size: float) -> float:
        return _BASE - (_BASE - self.top) * size / self.most

    def across(self, step: float) -> float:
        """From steps to a place on the canvas: two steps fill it."""
        return self.left + (self.right - self.left) * step / 2

    @property
    def left(self) -> int:
        """Where the first step begins."""
        return 58 if self.narrow else 66

    @property
    def right(self) -> int:
        """Where the second step ends."""
        return 362 if self.narrow else 610

    @property
    def foot(self) -> int:
        """Where the names of the steps stand: lower, where marks need two rows."""
        return _BASE + (62 if self.narrow else 46)


def _split(moment: Moment, timeline: Timeline, gradients: bool = True) -> dict[str, float]:
    """A moment's parts as they are stacked: main weights and the two logits apart.

    What the layer in backward works on counts as activations.
    """
    parts: dict[str, float] = {"weights": moment.weights - timeline.main_weights}
    parts["main weights"] = timeline.main_weights
    parts["optimizer"] = moment.optimizer
    parts["gradients"] = moment.gradients if gradients else 0
    parts["activations"] = moment.activations + moment.working
    parts["logits"] = parts["second logits"] = moment.logits / 2
    return parts


def _points(timeline: Timeline) -> list[Point]:
    """Where the stack changes its height: straight lines lead from one to the next."""
    points: list[Point] = []
    for step in (1, 2):
        moments = [moment for moment in timeline.moments if moment.step == step]
        points += _of_step(step - 1, moments, timeline)
    return points


def _earlier_points(old: Timeline, timeline: Timeline) -> list[Point]:
    """The points of the last picture; its peak alone where a step had other passes."""
    points = _points(old)
    if old.moments[-1].micro_batch == timeline.moments[-1].micro_batch:
        return points
    _, most = max(points, key=lambda point: sum(point[1].values()))
    return [(0, most), (2, most)]


def _of_step(start: float, moments: Sequence[Moment], timeline: Timeline) -> Iterator[Point]:
    """Points of the curve in a step: from its start to the release of the gradients."""
    last = moments[-1].micro_batch
    yield start, _split(moments[0], timeline)
    done = _split(moments[0], timeline)
    for number in (1, 2)[:last]:
        places = _ONE if last == 1 else _TWO[number - 1]
        named = {m.mark: _split(m, timeline) for m in moments if m.micro_batch == number}
        x = {mark: start + place for mark, place in places.items()}
        yield start + (_AGAIN if number == 2 else 0), done
        layers = named["forward"]["activations"] - timeline.head
        yield x["forward"] - _HEAD, {**named["forward"], "activations": layers}
        yield x["forward"], named["forward"]
        yield x["forward"], named["loss"]
        yield x["loss"], named["loss"]
        yield x["loss"], named["last layer"]
        yield x["first layer"], named["first layer"]
        done = {**named["first layer"], "activations": 0}
    end = start + places["first layer"]
    yield end, _split(moments[-1], timeline)
    yield start + _DONE, _split(moments[-1], timeline)
    yield start + _DONE, _split(moments[-1], timeline, gradients=False)
    yield start + 1, _split(moments[-1], timeline, gradients=False)


def _axis(up: _Scale) -> list[str]:
    """The scale in GB at the left, with its thin lines."""
    gap = _round_step(up.most / 5)
    svg = []
    for k in range(int(up.most / gap) + 1):
        y = up(k * gap)
        svg.append(line(up.left, y, up.right, y, stroke_width=0.5, opacity=0.5))
        label = units.gigabytes(k * gap).replace(".00 ", " ").replace(".0 ", " ")
        svg.append(text(up.left - 7, y + 5, label if k else "0", 14, "end"))
    return svg


def _round_step(size: float) -> float:
    """1, 2 or 5 times a power of ten, not less than the size."""
    power = 10.0 ** len(f"{size:.0f}")
    return min(
        x * power / 10**k for k in (0, 1, 2) for x in (1, 2, 5)
        if x * power / 10**k >= size
    )  # fmt: skip


def _bands(points: Sequence[Point], up: _Scale) -> list[str]:
    """Filled bands, one for each part, each on top of those below it."""
    floor = [0.0] * len(points)
    bands = []
    for name in _PARTS:
        top = [low + parts[name] for low, (_, parts) in zip(floor, points, strict=True)]
        if max(parts[name] for _, parts in points):
            bands.append(_band(name, points, floor, top, up))
        floor = top
    return bands


def _band(
    name: str, points: Sequence[Point], floor: Sequence[float], top: Sequence[float], up: _Scale
) -> str:
    """The polygon of one part; the second tensor of logits has a light edge below."""
    xs = [up.across(x) for x, _ in points]
    upper, lower = [*zip(xs, top, strict=True)], [*zip(xs, floor, strict=True)]
    corners = " ".join(f"{x:.1f},{up(y):.1f}" for x, y in [*upper, *reversed(lower)])
    word = name.removeprefix("second ")
    title = LEGEND.get(word, word)
    thick = max(up(low) - up(high) for low, high in zip(floor, top, strict=True))
    light = f' stroke="{_WHITE}" stroke-width="1"' if thick > 5 else ""
    shape = f'<polygon points="{corners}" fill="{COLORS[word]}"{light}>'
    return f"{shape}<title>{title}</title></polygon>"


def _totals(points: Sequence[Point], up: _Scale) -> list[tuple[float, float]]:
    return [(up.across(x), sum(parts.values())) for x, parts in points]


def _over(points: Sequence[Point], memory: float, up: _Scale) -> str:
    """Slanted lines over what is above the chip's memory, as one path."""
    floor = up(memory)
    ends = [
        f"M{x0:.1f},{y0:.1f}L{x1:.1f},{y1:.1f}"
        for (left, low), (right, high) in pairwise(_totals(points, up))
        if right > left and max(low, high) > memory
        for x0, y0, x1, y1 in _slanted(left, up(low), right, up(high), floor)
    ]
    shapes = f'<path d="{"".join(ends)}" stroke="{_WHITE}" stroke-width="2"/>'
    return shapes if ends else ""


def _slanted(
    x0: float, y0: float, x1: float, y1: float, floor: float
) -> Iterator[tuple[float, float, float, float]]:
    """Lines y = c − x, cut off at the piece's sides, its roof and its floor."""
    slope = (y1 - y0) / (x1 - x0)
    c = 9.0 * int((x0 + min(y0, y1)) / 9)
    while c < x1 + floor:
        c += 9
        low, high = max(x0, c - floor), x1
        roof = (c - y0 + slope * x0) / (1 + slope) if slope != -1 else x1
        if slope > -1:
            high = min(high, roof)
        else:  # a roof that rises faster than the lines: they begin at it
            low = max(low, roof)
        if high - low > 0.5:
            yield low, c - low, high, c - high


def _line_of(
    memory: float, chip: str, up: _Scale, row: int = 0, **style: Unpack[Style]
) -> list[str]:
    """A chip's memory, and its name to the right of the picture, or in a row above it."""
    y, line_style = up(memory), Style(stroke_width=3, **style)
    named, size = chip.partition(" (")[0].removesuffix(" SXM"), units.gigabytes(memory)
    if up.narrow:
        whole = line(up.left, y, up.right, y, **line_style)
        return [whole, *_named_line(row, f"{size}, {named}", **line_style)]
    return [
        line(up.left, y, up.right + 8, y, **line_style),
        text(up.right + 14, y + 1, size, 16, font_weight=700),
        text(up.right + 14, y + 19, named, 14),
    ]


def _named_line(row: int, name: str, **style: Unpack[Style]) -> list[str]:
    """A line and its name above the picture, where there is no room within."""
    y = 13 + 20 * row
    return [line(10, y, 40, y, **style), text(48, y + 5, name, 15, font_weight=700)]


def _outline(points: Sequence[Point], memory: float, up: _Scale) -> list[str]:
    """What was resident at the start, and the line that there was."""
    corners = " ".join(f"{x:.1f},{up(y):.1f}" for x, y in _totals(points, up))
    style = 'fill="none" stroke="currentColor" stroke-width="2" '
    svg = [f'<polyline points="{corners}" {style}stroke-dasharray="6 4"/>']
    note = (48, 38) if up.narrow else (up.right + 14, _BASE + 42)
    svg.append(text(*note, "dashed: the start", 14))
    if memory:
        y = up(memory)
        svg.append(line(up.left, y, up.right + 8 * (not up.narrow), y, stroke_dasharray="6 4"))
    return svg


_AT_THE_PEAK = {
    "start": ("before the step begins", "weights and Adam's state, and nothing else"),
    "forward": ("at the end of forward", "all that the layers keep is there"),
    "last layer": ("as backward enters the last layer", "what this layer works on comes on top"),
    "first layer": ("as backward leaves the first layer", "all gradients are there"),
    "update": ("at the update", "all gradients stand beside Adam's state"),
}
"""What makes the peak where the loss does not."""


def _callout(timeline: Timeline, points: Sequence[Point], up: _Scale, memory: Result) -> list[str]:
    """What stands at the peak, right above it, or above the line of the chip's memory."""
    peak = timeline.peak
    if peak.mark == "loss":
        first = f"at the loss: two more tensors, {units.gigabytes(peak.logits / 2)} each"
        second = "gradients of the log-probabilities and of the logits"
    else:
        when, second = _AT_THE_PEAK[peak.mark]
        first = f"the peak: {when}"
    totals = _totals(points, up)
    most = max(total for _, total in totals)
    start = last = next(i for i, (_, total) in enumerate(totals) if total == most)
    while last + 1 < len(totals) and totals[last + 1][1] == most:
        last += 1  # the first of several peaks, the middle of a plateau
    x, y = (totals[start][0] + totals[last][0]) / 2, up(most) - 12
    if memory and y - 40 < up(memory) < y + 8:
        y = up(memory) - 12
    if up.narrow:
        svg = [text(up.right, y, first, 14, "end", font_weight=600)]
    else:
        middle = min(max(x, up.left + 200), up.right - 170)
        svg = [text(middle, y - 19, first, 15, "middle", font_weight=600)]
        svg.append(text(middle, y, second, 15, "middle"))
    if up(most) - y > 20:
        svg.append(line(x, y + 6, x, up(most) - 3, stroke_dasharray="2 4"))
    return svg


def _marks(timeline: Timeline, passes: int, up: _Scale) -> Iterator[str]:
    """What happens when, below the picture; by turns in two rows where it is narrow."""
    if timeline.moments[-1].micro_batch == 1:
        forward, loss, backward = _ONE.values()
        marks = [(forward / 2, "forward"), ((forward + loss) / 2, "loss")]
        marks += [((loss + backward) / 2, "backward"), ((backward + 1) / 2, "update")]
    else:  # the first pass and the last one
        first, last = _TWO[0]["first layer"], _TWO[1]["first layer"]
        marks = [(first / 2, "pass 1")]
        marks += [((first + _AGAIN) / 2, "…")] if passes > 2 else []
        marks += [((_AGAIN + last) / 2 - 0.03, f"pass {passes:,}"), (0.905, "update")]
    for step in (0, 1):
        yield line(up.across(step), _BASE, up.across(step), up.foot, stroke_width=1)
        at = up.across(step + 0.5), up.foot - 4
        yield text(*at, f"step {step + 1}", 15, "middle", font_weight=600)
        for i, (x, word) in enumerate(marks):
            row, middle = 18 * (i % 2) * up.narrow, up.across(step + x)
            if up.narrow:  # within the lines of its step
                middle = min(max(middle, up.across(step) + 28), up.across(step + 1) - 26)
            yield text(middle, _BASE + 20 + row, word, 13 if up.narrow else 14, "middle")
    yield line(up.left, _BASE, up.right, _BASE)
    yield line(up.across(2), _BASE, up.across(2), up.foot, stroke_width=1)


def parts_at_peak(timeline: Timeline) -> dict[str, float]:
    """What is resident at the peak, with the main weights apart, as it is drawn."""
    parts = _split(timeline.peak, timeline)
    parts["logits"] += parts.pop("second logits")
    return {name: x for name, x in parts.items() if x or name != "main weights"}


def _key(parts: dict[str, float], y: float, up: _Scale, wide: int) -> str:
    """The parts by colour, with their sizes."""
    svg, left = "", up.left
    columns = 2 if up.narrow or wide > 250 else 3
    if up.narrow:
        left, wide = 6, 180
    for i, (name, size) in enumerate(parts.items()):
        x, row = left + i % columns * wide, y + i // columns * 24
        svg += rect(x, row - 12, 15, 15, COLORS[name], rx=2)
        label = f"{LEGEND.get(name, name)} {units.gigabytes(size) if size else 0}"
        svg += text(x + (19 if up.narrow else 22), row, label, 14 if up.narrow else 15)
    return svg


LEGEND = {"logits": "loss gradients"}
"""The word of a part where it is not its name: two gradients, each of all logits."""


MOMENTS = {
    "start": "its start",
    "forward": "after forward",
    "loss": "the loss",
    "last layer": "the last layer",
    "first layer": "the first layer",
    "update": "the update",
}
"""The marks of a step in words."""


def _in_words(moment: Moment) -> str:
    """A moment's parts with their sizes; what a layer works on counts as activations."""
    parts = moment.parts()
    parts["activations"] += parts.pop("working")
    return ", ".join(f"{LEGEND.get(n, n)} {units.gigabytes(x)}" for n, x in parts.items())


def _steps_in_words(timeline: Timeline, memory: float, chip: str, passes: int) -> str:
    """Every total of the second step, the parts at the peak, and whether it fits."""
    peak, last = timeline.peak, timeline.moments[-1].micro_batch
    totals = ", ".join(
        f"{MOMENTS[moment.mark]} {units.gigabytes(moment.total)}"
        for moment in timeline.moments
        if moment.step == 2 and moment.micro_batch == last
    )
    parts = _in_words(peak)
    each = "one pass" if passes == 1 else f"{passes:,} passes"
    words = (
        f"Memory through two steps of {each} each, to one scale. Step 2, last pass: "
        f"{totals}. The peak, step {peak.step}, {MOMENTS[peak.mark]}, holds {parts}; "
        "the loss gradients are two tensors in fp32, the gradient of the log-"
        "probabilities and the gradient of the logits."
    )
    if not memory:
        return words
    over = peak.total - memory
    where = f"{units.gigabytes(over)} over" if over > 0 else "under"
    return f"{words} That is {where} the line of {chip}, {units.gigabytes(memory)}."


# --- what recomputation leaves

_STEP, _RISE, _FLOOR = 21, 26, 226
"""A moment's width, a layer's height, and where the first layer stands."""


@checked
def recomputation(num_layers: Count[int], time: Count[int], narrow: bool = False) -> Drawing:
    """Which layers' activations have been there up to a moment, without and with.

    Time goes to the right: forward through the layers, then backward. Moments that are
    still to come are outlines.
    """
    l, now = num_layers, time
    lower = _FLOOR + 34 if narrow else 0  # of the second picture
    second = "".join(
        _moments_of(l, now, 66 if narrow else 350, "Only inputs are kept", recomputes=True)
    )
    layers = "".join(
        text(58, _FLOOR - (layer - 1) * _RISE - 8, f"layer {layer}", 14, "end") for layer in (1, l)
    )
    if narrow:
        second = f'<g transform="translate(0 {lower})">{second}{layers}</g>'
    svg = "".join(_moments_of(l, now, 66, "All is kept", recomputes=False)) + second + layers
    key = {"kept": "all of a layer", "input": "its input", "again": "computed again"}
    for place, (kind, label) in enumerate(key.items()):
        x, y = 66 + place * 170, _FLOOR
        if narrow:
            x, y = 66 + place % 2 * 140, lower + _FLOOR + place // 2 * 28
        svg += _tensor(x, y + 40, kind) + text(x + 28, y + 58, label, 15)
    whole = len(resident_layers(l, now, recomputes=False))
    left = resident_layers(l, now, recomputes=True)
    words = (
        f"{l} layers, moment {now} of {2 * l}. If all is kept, {whole} whole layers are "
        f"there. If inputs are kept, {left.count('input')} inputs are there, and "
        f"{left.count('again') or 'no'} layer computed again."
    )
    return Drawing(svg, 352 if narrow else 620, lower + _FLOOR + (104 if narrow else 76), words)


def _moments_of(l: int, now: int, x: float, title: str, recomputes: bool) -> Iterator[str]:
    """A column for each moment, and the turn from forward to backward."""
    wide = 2 * l * _STEP
    yield text(x, 24, title, 16, font_weight=700)
    for time in range(1, 2 * l + 1):
        for layer, kind in enumerate(resident_layers(l, time, recomputes)):
            at = (x + (time - 1) * _STEP, _FLOOR - (layer + 1) * _RISE)
            yield _tensor(*at, kind, time > now)
    middle = x + wide / 2
    yield line(middle, 40, middle, _FLOOR, stroke_dasharray="5 4")
    yield line(x, _FLOOR, x + wide, _FLOOR)
    here = x + (now - 0.5) * _STEP
    yield text(here, _FLOOR - l * _RISE - 6, "▼", 15, "middle")
    for place, word in ((x + wide / 4, "forward"), (x + 3 * wide / 4, "backward")):
        yield text(place, _FLOOR + 20, word, 15, "middle")


def _tensor(x: float, y: float, kind: str, coming: bool = False) -> str:
    """What is there of a layer: all of it, its input, or all of it once more."""
    wide, high = _STEP - 4, _RISE - 4
    if coming:
        low = 6 if kind == "input" else high
        top = y + high - 4 if kind == "input" else y + 2
        return rect(x + 2, top, wide, low, stroke="currentColor", opacity=0.35)
    if kind == "input":
        return rect(x + 2, y + high - 4, wide, 6, COLORS["activations"], kind)
    if kind == "kept":
        return rect(x + 2, y + 2, wide, high, COLORS["activations"], kind)
    slants = f'<g color="{_WHITE}">{hatched(x + 2, y + 2, wide, high, 6)}</g>'
    return rect(x + 2, y + 2, wide, high, COLORS["recomputed"], kind) + slants


# --- the allocator

_MIB, _SEGMENT, _FROM = 27, 36, 122
"""Pixels of a mebibyte, a segment's height, and where segments begin."""


def segments(blocks: Sequence[Sequence[int]], request: int) -> Drawing:
    """An allocator's segments, in MiB: blocks in use, gaps, and a request beside them.

    Each segment is a list of sizes; a negative size is a gap. The request is drawn to
    the same scale, below.
    """
    used = sum(x for one in blocks for x in one if x > 0)
    free = -sum(x for one in blocks for x in one if x < 0)
    label = f"{used + free} MiB reserved: {used} MiB in use, {free} MiB free in gaps"
    svg = [text(20, 36, label, 18, font_weight=700)]
    for row, one in enumerate(blocks):
        svg.append(_segment(56 + row * 46, row + 1, one))
    y = 56 + len(blocks) * 46 + 12
    widest = -min(x for one in blocks for x in one)
    verdict = f"{'Yes' if request <= widest else 'No'}: the widest gap has {widest} MiB."
    svg += [
        text(20, y + 23, "a request", 15),
        ghost(_FROM, y, request * _MIB, _SEGMENT, "what is asked for"),
        text(_FROM + request * _MIB / 2, y + 23, f"{request} MiB", 15, "middle"),
        text(_FROM + request * _MIB + 14, y + 15, verdict, 15, font_weight=600),
        text(_FROM + request * _MIB + 14, y + 34, "A block lies in one piece.", 14),
    ]
    words = f"{len(blocks)} segments. {label}. A request of {request} MiB: {verdict}"
    return Drawing("".join(svg), _ACROSS, y + 54, words)


def _segment(y: float, number: int, sizes: Sequence[int]) -> str:
    """A segment: its blocks in a row, gaps as empty frames."""
    shapes, x = text(20, y + 23, f"segment {number}", 15), float(_FROM)
    for size in sizes:
        wide = abs(size) * _MIB
        fill, ink = (COLORS["memory"], _WHITE) if size > 0 else ("none", "currentColor")
        edge: Style = {"rx": 3} if size > 0 else {"rx": 3, "stroke": "currentColor"}
        shapes += rect(x + 1, y, wide - 3, _SEGMENT, fill, **edge)
        label = f"{abs(size)} {'in use' if size > 0 else 'free'}"
        label = label if wide > 70 else f"{abs(size)}"
        shapes += text(x + wide / 2, y + 23, label, 14, "middle", ink)
        x += wide
    return shapes
