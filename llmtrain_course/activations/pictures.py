"""Pictures of chapter 06: what a layer keeps, memory through a step, the allocator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from llmtrain_course.activations.formulas import (
    SAVED_TENSORS,
    bytes_kept,
    resident_layers,
    saved_tensors,
)
from llmtrain_course.kit.chart import Area, Chart, Dot, Mark, Note, Path, Rule, stacked
from llmtrain_course.kit.drawing import COLORS, Drawing, Style, ghost, hatched, line, rect, text
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Span, bar
from llmtrain_course.kit.layout import INK, PAGE, Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units
from llmtrain_helpers.activations import MARKS, Moment, Timeline
from llmtrain_helpers.checks import Count, Result, checked

_WHITE = "#FFFFFF"

# --- what a layer keeps


@checked
def kept_by_layer(
    hidden_size: Count[int],
    num_heads: Count[int],
    sequence_length: Count[int],
    flash: bool = False,
    dropout: bool = True,
) -> Picture:
    """What each operation of a GPT's layer keeps, as bars in bytes a hidden value.

    Times sbh they make sbh(34 + 5as/h). What a switch takes away stays as an outline.
    """
    h, a, s = hidden_size, num_heads, sequence_length
    ratio, there = a * s / h, saved_tensors(flash, dropout)
    lanes, operation = [], ""
    for kept in SAVED_TENSORS:
        operation = kept.operation or operation
        size = kept.size * (ratio if kept.scores else 1)
        label = f"{kept.size} as/h = {_short(size)}" if kept.scores else f"{kept.size}"
        span = Span(0, size, COLORS[kept.half], name=kept.half, hatch=kept.scores)
        if kept not in there:
            span, label = Span(0, size, title="no longer stored", previous=True), ""
        name = f"{operation}: {kept.tensor}"
        lanes.append(Lane(name, [span], label.replace("1 as/h", "as/h"), bold=kept.learns))
    whole, all_of_it = _short(bytes_kept(ratio, flash, dropout)), _short(bytes_kept(ratio))
    total = f"{whole} bytes per hidden value"
    if whole != all_of_it:
        total += f", of {all_of_it}"
    learned = sum(kept.size for kept in SAVED_TENSORS if kept.learns)
    listed = "; ".join(
        f"{kept.operation or 'the same'} stores {kept.tensor}, {kept.size}"
        f"{' · as/h' if kept.scores else ''}"
        for kept in there
    )
    words = (
        f"A GPT layer's activations, in bytes per hidden value: {listed}. "
        f"Together, with as/h = {_short(ratio)}: {whole}."
    )
    note = (
        f"Bold: operations with weights store {learned}. Hatched: scores. Dashed: no longer stored."
    )
    return Bars(
        Scale(0, max(8, 2 * ratio)),
        lanes,
        words,
        heading=f"What each operation stores: {total}",
        lane=18,
        gap=7,
        axis=False,
        names=0.45,
        note=note,
    )


def _short(number: float) -> str:
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


# --- memory through the steps

_PARTS = ["weights", "main weights", "optimizer", "gradients", "activations", "logits"]
_ONE = {"forward": 0.27, "loss": 0.41, "first layer": 0.78}
_TWO = [
    {"forward": 0.20, "loss": 0.275, "first layer": 0.42},
    {"forward": 0.64, "loss": 0.715, "first layer": 0.86},
]
_HEAD, _AGAIN, _DONE = 0.03, 0.46, 0.98
"""Where within a step the marks stand, with one pass and with two; how long the head's
part of forward is drawn, where the second pass begins, and where the gradients are
released."""

StepPoint = tuple[float, dict[str, float]]
"""A place along the steps, and what is resident there, part by part."""


def memory_of_steps(
    timeline: Timeline,
    memory: Result,
    chip: str = "the chip",
    passes: int = 0,
    before: tuple[Timeline, Result] | None = None,
) -> Picture:
    """What is resident through the steps, stacked, under the line of a chip's memory.

    One scale for everything; what is over the line is paler. `passes` says how many
    micro-batches a step has where the timeline holds the first two of them. `before` is
    the timeline and memory that the panel began with, drawn as a dashed outline.
    """
    points = _points(timeline)
    old = _earlier_points(before[0], timeline) if before and before != (timeline, memory) else []
    most = max([memory, *(sum(parts.values()) for _, parts in points + old)])
    most = max(most, before[1]) if before else most
    passes = passes or timeline.moments[-1].micro_batch
    parts, peak = parts_at_peak(timeline), timeline.peak
    labels = {name: _part(name, parts.get(name, 0)) for name in _PARTS}
    marks: list[Mark] = [*_stack(points, labels), *_over(points, memory)]
    marks.append(replace(_NEXT_STEP, to=sum(points[len(points) // 2][1].values())))
    marks.append(_line_of(memory, chip))
    if before:
        outline = [(x, sum(sizes.values())) for x, sizes in old]
        start = Path(outline, width=2, dash="6 4", name="dashed: the start", hidden=not old)
        marks.append(start)
        if old and before[1] != memory:
            marks.append(Rule(before[1], "y", dash="6 4"))
    when = f"(step {peak.step}, {MOMENTS[peak.mark]}): {units.gigabytes(peak.total)}"
    top = 1.24 * most
    marks.append(_callout(timeline, points, memory, top))
    words = _steps_in_words(timeline, memory, chip, passes)
    y = Scale(0, top, f"At the peak {when}", _size)
    return Chart(_steps(timeline, passes), y, marks, words, height=330)


def memory_so_far(
    timeline: Timeline,
    now: Moment,
    memory: float,
    chip: str,
    most: float,
    smaller: float,
    measured: Sequence[tuple[float, float]] = (),
) -> Picture:
    """What has been resident up to a moment of two steps of one pass.

    The scale ends at `most` bytes, whatever is shown. A second, dashed line is the memory
    of a `smaller` chip, and dots are what was `measured`.
    """
    points = _points(timeline)
    past = points[: len(points) // 2 * (now.step - 1) + _POINTS_UNTIL[now.mark]]
    parts = _split(now, timeline)
    labels = {name: _part(name, parts[name]) for name in _PARTS}
    marks: list[Mark] = [*_stack(past, labels), *_over(past, memory), _NEXT_STEP]
    marks += [Rule(memory, "y", width=3, name=chip)]
    marks += [Rule(smaller, "y", width=3, dash="10 5", name="a smaller one")]
    end = past[-1][0]
    dots = [Dot(x, y, INK, 2.5, title=units.gigabytes(y)) for x, y in measured if x <= end]
    first = dots[0] if dots else Dot(0, 0, INK, 2.5, hidden=True)
    marks += [*dots[1:], replace(first, name="measured")]
    at = f"{MOMENTS[now.mark]}: {units.gigabytes(now.total)}"
    marks.append(Rule(end, label=at, width=2, bold=True, moves="moment"))
    fits = "under" if now.total <= memory else "over"
    words = (
        f"Memory over two steps, up to step {now.step}, {MOMENTS[now.mark]}: {_in_words(now)}. "
        f"Together {units.gigabytes(now.total)}, {fits} the line of {chip}, "
        f"{units.gigabytes(memory)}."
    )
    y = Scale(0, most, ticks=[0, 20e9, smaller, 60e9, memory], write=_size)
    return Chart(_steps(timeline, 1), y, marks, words, height=310)


def places_of_trace(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[float, float]]:
    """Where the parts of a measured step lie on the axis of the steps, and their bytes.

    Of the layers every fourth is taken: so many dots have room on a phone.
    """
    rows = [*rows]
    layers = max(row["layer"] for row in rows)
    forward, loss, backward = _ONE.values()
    ends = {"head": forward, "loss": (forward + loss) / 2, "update": (backward + _DONE) / 2}
    for row in rows:
        part, layer = row["part"], row["layer"]
        if layer % 4 and layer != 1:
            continue
        if part == "forward":
            x = (forward - _HEAD) * layer / layers
        elif part == "backward":
            x = loss + (backward - loss) * (layers + 1 - layer) / layers
        else:
            x = ends[part]
        yield row["step"] - 1 + x, row["bytes"]


_POINTS_UNTIL = dict(zip(MARKS, (2, 4, 6, 7, 8, 10), strict=True))
"""How many points of a step with one pass are drawn when a moment has come."""


_NEXT_STEP = Rule(1, width=1, opacity=0.4)
"""Where the second step begins."""


def _size(size: float) -> str:
    """Bytes of an axis, without zeros behind the point."""
    return units.gigabytes(size).replace(".00 ", " ").replace(".0 ", " ") if size else "0"


def _part(name: str, size: float) -> str:
    """A part's word and its size, as the key says them."""
    return f"{LEGEND.get(name, name)} {units.gigabytes(size) if size else 0}"


def _steps(timeline: Timeline, passes: int) -> Scale:
    """Two steps, and what happens when in each of them."""
    if timeline.moments[-1].micro_batch == 1:
        forward, loss, backward = _ONE.values()
        names = {forward / 2: "forward", (forward + loss) / 2: "loss"}
        names |= {(loss + backward) / 2: "backward", (backward + 1) / 2: "update\nstep {}"}
    else:  # the first pass and the last one
        first, last = _TWO[0]["first layer"], _TWO[1]["first layer"]
        names = {first / 2: "pass 1"}
        names |= {(first + _AGAIN) / 2: "…"} if passes > 2 else {}
        names |= {(_AGAIN + last) / 2: f"pass {passes:,}\nstep {{}}", 0.92: "update"}
    ticks = {step + x: name.format(step + 1) for step in (0, 1) for x, name in names.items()}
    return Scale(0, 2, ticks=ticks)


def _split(moment: Moment, timeline: Timeline, gradients: bool = True) -> dict[str, float]:
    """A moment's parts as they are stacked, the main weights apart.

    What the layer in backward works on counts as activations.
    """
    parts: dict[str, float] = {"weights": moment.weights - timeline.main_weights}
    parts["main weights"] = timeline.main_weights
    parts["optimizer"] = moment.optimizer
    parts["gradients"] = moment.gradients if gradients else 0
    parts["activations"] = moment.activations + moment.working
    parts["logits"] = moment.logits
    return parts


def _points(timeline: Timeline) -> list[StepPoint]:
    """Where the stack changes its height: straight lines lead from one to the next."""
    points: list[StepPoint] = []
    for step in (1, 2):
        moments = [moment for moment in timeline.moments if moment.step == step]
        points += _of_step(step - 1, moments, timeline)
    return points


def _earlier_points(old: Timeline, timeline: Timeline) -> list[StepPoint]:
    """The points of the last picture; its peak alone where a step had other passes."""
    points = _points(old)
    if old.moments[-1].micro_batch == timeline.moments[-1].micro_batch:
        return points
    _, most = max(points, key=lambda point: sum(point[1].values()))
    return [(0, most), (2, most)]


def _of_step(start: float, moments: Sequence[Moment], timeline: Timeline) -> Iterator[StepPoint]:
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


def _stack(points: Sequence[StepPoint], labels: Mapping[str, str]) -> Iterator[Area]:
    """A filled band for each part on top of those below it; white between the two logits."""
    xs = [x for x, _ in points]
    layers = {name: [parts[name] for _, parts in points] for name in _PARTS}
    for area in stacked(xs, layers, COLORS):
        title = LEGEND.get(area.name, area.name)
        parts = [area]
        if area.name == "logits":  # two tensors, one on the other
            middle = [(low + up) / 2 for low, up in zip(area.lower, area.upper, strict=True)]
            parts = [replace(area, upper=middle), replace(area, lower=middle)]
        empty = area.name == "main weights" and not any(layers[area.name])
        name, longest = "" if empty else labels[area.name], f"{title} 88.8 GB"
        for part in parts:
            yield replace(part, title=title, name=name, longest=longest, edge=True)


def _over(points: Sequence[StepPoint], memory: float) -> Iterator[Area]:
    """What's above the chip's memory, paler."""
    totals = [(x, sum(parts.values())) for x, parts in points]
    if max(total for _, total in totals) <= memory:
        return
    edge = [totals[0]]
    for (x0, low), (x1, high) in pairwise(totals):
        if (low - memory) * (high - memory) < 0 and x1 > x0:
            edge.append((x0 + (x1 - x0) * (memory - low) / (high - low), memory))
        edge.append((x1, high))
    upper = [max(total, memory) for _, total in edge]
    xs = [x for x, _ in edge]
    yield Area(xs, [memory] * len(xs), upper, _WHITE, 0.45, "over the line")


def _line_of(memory: float, chip: str) -> Rule:
    """A chip's memory, and its name."""
    named = chip.partition(" (")[0].removesuffix(" SXM")
    return Rule(memory, "y", f"{units.gigabytes(memory)}, {named}", width=3, bold=True)


_AT_THE_PEAK = {
    "start": ("before the step begins", "only the weights and Adam's state"),
    "forward": ("at the end of forward", "all the layers' activations are stored"),
    "last layer": ("as backward enters the last layer", "plus this layer's working memory"),
    "first layer": ("as backward leaves the first layer", "all gradients are complete"),
    "update": ("at the update", "all gradients are next to Adam's state"),
}
"""What makes the peak where the loss does not."""


def _callout(timeline: Timeline, points: Sequence[StepPoint], memory: float, top: float) -> Note:
    """What stands at the peak, right above it, or above the line of the chip's memory."""
    peak = timeline.peak
    if peak.mark == "loss":
        first = f"at the loss: two more tensors, {units.gigabytes(peak.logits / 2)} each"
        second = "gradients of the log-probabilities and of the logits"
    else:
        when, second = _AT_THE_PEAK[peak.mark]
        first = f"the peak: {when}"
    totals = [(x, sum(parts.values())) for x, parts in points]
    most = max(total for _, total in totals)
    start = last = next(i for i, (_, total) in enumerate(totals) if total == most)
    while last + 1 < len(totals) and totals[last + 1][1] == most:
        last += 1  # the first of several peaks, the middle of a plateau
    x, y = (totals[start][0] + totals[last][0]) / 2, most + 0.03 * top
    if most - 0.01 * top < memory < most + 0.2 * top:  # the line's own words are above it
        y = memory + 0.03 * top
    return Note(x, y, [first, second], bold=True)


def parts_at_peak(timeline: Timeline) -> dict[str, float]:
    """What is resident at the peak, with the main weights apart, as it is drawn."""
    parts = _split(timeline.peak, timeline)
    return {name: x for name, x in parts.items() if x or name != "main weights"}


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
    over = peak.total - memory
    where = f"{units.gigabytes(over)} above" if over > 0 else "under"
    return (
        f"Memory over two steps of {each} each, to one scale. Step 2, last pass: "
        f"{totals}. The peak, step {peak.step}, {MOMENTS[peak.mark]}, includes {parts}. The loss "
        f"gradients are two tensors in fp32, the gradient of the log-"
        "probabilities and the gradient of the logits. "
        f"That's {where} the line of {chip}, {units.gigabytes(memory)}."
    )


# --- what's there at the loss

_AT_LOSS = {
    "weights": "weights",
    "optimizer": "Adam's averages",
    "gradients": "gradients",
    "activations": "stored by the layers",
    "log-probabilities": "log-probabilities",
    "their gradient": "their gradient",
    "gradient of logits": "gradient of logits",
}
"""The bars, and their names; the first four are states and layers."""
_STATES_AND_LAYERS = [*_AT_LOSS][:4]


def parts_at_loss(timeline: Timeline) -> dict[str, float]:
    """Bytes at the last loss, with the three tensors of tokens × vocabulary each on its own.

    Forward has kept the log-probabilities, which are as large as each of the two gradients.
    """
    loss = next(m for m in reversed(timeline.moments) if m.mark == "loss")
    tensor = loss.logits / 2
    parts = {"weights": loss.weights, "optimizer": loss.optimizer, "gradients": loss.gradients}
    parts |= {"activations": loss.activations - timeline.head, "head": timeline.head - tensor}
    return {**parts, **dict.fromkeys([*_AT_LOSS][4:], tensor)}


def memory_at_loss(
    timeline: Timeline, before: Timeline, memory: float, most: float, tensor: str
) -> Picture:
    """What's resident at the loss, in all and part by part, with a line at a chip's memory.

    The scale ends at `most` bytes; `tensor` says how large the logits are. Dashed outlines are
    the timeline `before`.
    """
    parts, old = parts_at_loss(timeline), parts_at_loss(before)
    colors = {**COLORS, **dict.fromkeys([*_AT_LOSS][5:], COLORS["logits"])}
    colors |= dict.fromkeys(["head", "log-probabilities"], COLORS["activations"])
    whole = bar("in all", parts, colors, units.gigabytes, bold=True, labels=False)
    spans = [replace(x, edge=True, name="") for x in whole.spans]
    total = sum(parts.values())
    lanes = [replace(whole, items=[*spans, _outline(sum(old.values()), total)])]
    for part, name in _AT_LOSS.items():
        size = parts[part]
        items = [Span(0, size, colors[part], title=name), _outline(old[part], size)]
        group = "States and layers" if part in _STATES_AND_LAYERS else tensor
        lanes.append(Lane(name, items, units.gigabytes(size) if size else "0", group=group))
    line = Limit(memory, f"{units.gigabytes(memory)}, which a step may fill")
    sizes = ", ".join(f"{_AT_LOSS.get(x, x)} {units.gigabytes(y)}" for x, y in parts.items())
    words = (
        f"Memory when the loss is differentiated, as bars to one scale: {sizes}. That's "
        f"{units.gigabytes(total)} in all, and a step may fill {units.gigabytes(memory)}."
    )
    scale = Scale(0, most)
    return Bars(scale, lanes, words, [line], lane=18, gap=6, axis=False)


def _outline(old: float, now: float) -> Span:
    """Where a bar ended at the start, if it ends somewhere else now."""
    return Span(0, old, title="at the start", previous=True, hidden=abs(old - now) < 1)


# --- what recomputation leaves

_STEP, _RISE, _FLOOR = 21, 26, 226
"""A moment's width, a layer's height, and where the first layer stands."""


@checked
def layers_over_time(num_layers: Count[int], time: Count[int], width: int = PAGE) -> Drawing:
    """Which layers' activations have been there up to a moment, without and with.

    Time goes to the right: forward through the layers, then backward. Moments that are
    still to come are outlines.
    """
    l, now, narrow = num_layers, time, width < PAGE
    lower = _FLOOR + 34 if narrow else 0  # of the second picture
    second = "".join(
        _moments_of(l, now, 66 if narrow else 350, "Only inputs are stored", recomputes=True)
    )
    layers = "".join(
        text(58, _FLOOR - (layer - 1) * _RISE - 8, f"layer {layer}", 14, "end") for layer in (1, l)
    )
    if narrow:
        second = f'<g transform="translate(0 {lower})">{second}{layers}</g>'
    svg = (
        "".join(_moments_of(l, now, 66, "Everything is stored", recomputes=False)) + second + layers
    )
    key = {"kept": "all of a layer", "input": "its input", "again": "recomputed"}
    for place, (kind, label) in enumerate(key.items()):
        x, y = 66 + place * 170, _FLOOR
        if narrow:
            x, y = 66 + place % 2 * 140, lower + _FLOOR + place // 2 * 28
        svg += _tensor(x, y + 40, kind) + text(x + 28, y + 58, label, 15)
    whole = len(resident_layers(l, now, recomputes=False))
    left = resident_layers(l, now, recomputes=True)
    stored, inputs = units.plural(whole, "whole layer"), units.plural(left.count("input"), "input")
    words = (
        f"{l} layers, moment {now} of {2 * l}. If everything is stored, {stored} in memory. If "
        f"only inputs are stored, {inputs} and "
        f"{units.plural(left.count('again'), 'recomputed layer')}."
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

_MIB, _SEGMENT, _FROM, _SEGMENTS = 27, 36, 122, 744
"""Pixels of a mebibyte, a segment's height, where segments begin, and of the whole."""


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
    fits = "It fits" if request <= widest else "It doesn't fit"
    verdict = f"{fits}: the widest gap is {widest} MiB."
    svg += [
        text(20, y + 23, "a request", 15),
        ghost(_FROM, y, request * _MIB, _SEGMENT, "the request"),
        text(_FROM + request * _MIB / 2, y + 23, f"{request} MiB", 15, "middle"),
        text(_FROM + request * _MIB + 14, y + 15, verdict, 15, font_weight=600),
        text(_FROM + request * _MIB + 14, y + 34, "A block has to be in one piece.", 14),
    ]
    words = f"{len(blocks)} segments. {label}. A request of {request} MiB: {verdict}"
    return Drawing("".join(svg), _SEGMENTS, y + 54, words)


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
