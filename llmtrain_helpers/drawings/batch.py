"""Drawings of chapter 04: GPUs in their grid, a step, and the time of a pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import log2

from llmtrain_helpers import units
from llmtrain_helpers.batch import Step, StepTime
from llmtrain_helpers.drawings.common import (
    COLORS,
    GREY,
    Drawing,
    Style,
    arrow,
    fits,
    ghost,
    hatched,
    line,
    rect,
    text,
)

NODE = 8
"""GPUs in a node, as nearly everywhere."""

_ROWS, _LEFT, _TOP = 6, 74, 52
_ACROSS = 744
_CELL, _HIGH, _WIDE, _DEEP = 40, 36, 46, 44
"""Cells of the grid: width, height, and from one to the next across and down."""

_GAP = 0.5
"""How much of a row is left between nodes that do not follow each other."""


@dataclass(frozen=True)
class Layout:
    """How GPUs are shared out: tensor ranks count first, replicas last."""

    num_gpus: int
    tensor: int = 1
    pipeline: int = 1
    context: int = 1

    @property
    def a_replica(self) -> int:
        """GPUs that hold one copy of the model."""
        return self.tensor * self.pipeline * self.context

    @property
    def replicas(self) -> int:
        """Copies of the model, side by side."""
        return self.num_gpus // self.a_replica

    @property
    def crosses(self) -> bool:
        """Whether some tensor-parallel group does not stay inside its node."""
        return self.num_gpus > NODE and NODE % self.tensor != 0

    def seen(self) -> list[int]:
        """The nodes that are drawn: the first, or the ends of several replicas."""
        nodes, each = -(-self.num_gpus // NODE), self.a_replica // NODE
        if each <= _ROWS / 2 or self.replicas == 1:
            return list(range(min(nodes, _ROWS)))
        some = range(min(self.replicas, _ROWS // 2))
        return sorted({node for r in some for node in (r * each, r * each + each - 1)})

    def in_node(self, node: int) -> range:
        """The GPUs of a node."""
        return range(node * NODE, min((node + 1) * NODE, self.num_gpus))

    def place(self, gpu: int) -> tuple[int, int, int]:
        """Replica, stage and context rank of a GPU, counted from 0."""
        group = gpu // self.tensor
        rest, rank = divmod(group, self.context)
        replica, stage = divmod(rest, self.pipeline)
        return replica, stage, rank


def letters(number: int) -> str:
    """A name for a replica: A to Z, then AA and so on.

    >>> letters(0), letters(25), letters(26), letters(127)
    ('A', 'Z', 'AA', 'DX')
    """
    name = ""
    number += 1
    while number:
        number, last = divmod(number - 1, 26)
        name = chr(65 + last) + name
    return name


def gpu_grid(
    num_gpus: int, tensor: int = 1, pipeline: int = 1, context: int = 1, before: Sequence[int] = ()
) -> Drawing:
    """The GPUs in their nodes: replica by letter, stage by number and shade.

    Shows six nodes: the first ones, or where a replica fills more than three of them
    the first and the last of several replicas, with the gaps told. `before` are the
    four numbers of the last picture: what was replica A then is outlined.
    """
    layout = Layout(num_gpus, tensor, pipeline, context)
    old = Layout(*before) if before else layout
    degrees = {"TP": layout.tensor, "PP": layout.pipeline}
    if layout.context > 1:
        degrees["CP"] = layout.context
    product = " × ".join(f"{name} {n:,}" for name, n in degrees.items())
    title = f"{layout.num_gpus:,} GPUs = {product} × DP {layout.replicas:,}"
    svg = [text(_LEFT, 30, title, 22, font_weight=700)]

    rows = _rows_of_nodes(layout.seen())
    for (row, node), (_, following) in pairwise(rows):
        if following > node + 1:
            first, last = node + 2, following
            label = f"nodes {first:,} to {last:,}" if last > first else f"node {first:,}"
            svg.append(text(_LEFT, _TOP + (row + 1) * _DEEP + 11, f"⋮  {label}, not drawn", 14))
    for row, node in rows:
        svg += _node(layout, row, node) + _old(layout, old, row, node)
    svg += _key(layout)

    # below the grid: how much of it is seen, and what the dashed outline is
    floor, nodes = _TOP + (rows[-1][0] + 1) * _DEEP, -(-layout.num_gpus // NODE)
    seen = sum(len(layout.in_node(node)) for _, node in rows)
    shown = f"{len(rows)} of {nodes:,} nodes are shown, {seen} of {layout.num_gpus:,} GPUs."
    if seen == layout.num_gpus:
        shown = f"All {units.plural(seen, 'GPU')} are shown; a row is a node."
    svg.append(text(_LEFT, floor + 16, shown, 14))
    if old.a_replica != layout.a_replica:
        label = f"dashed: replica A had {units.plural(old.a_replica, 'GPU')}"
        svg += [ghost(_LEFT, floor + 24, _CELL, 14), text(_LEFT + 50, floor + 36, label, 14)]
    height = max(round(floor) + 46, _TOP + 182)
    return Drawing("".join(svg), _ACROSS, height, _grid_in_words(layout, seen))


def _rows_of_nodes(nodes: Sequence[int]) -> list[tuple[float, int]]:
    """Each node with its row; where nodes are left out, half a row is left free."""
    rows: list[tuple[float, int]] = [(0, nodes[0])]
    for last, node in pairwise(nodes):
        rows.append((rows[-1][0] + 1 + _GAP * (node > last + 1), node))
    return rows


def _node(layout: Layout, row: float, node: int) -> list[str]:
    """A node's name, its GPUs, and the frames of its tensor-parallel groups."""
    here, y = layout.in_node(node), _TOP + row * _DEEP
    shapes = [text(_LEFT - 10, y + _HIGH / 2 + 5, f"node {node + 1:,}", 14, "end")]
    shapes += [_cell(layout, gpu, _LEFT + gpu % NODE * _WIDE, y) for gpu in here]
    if layout.tensor == 1:
        return shapes
    style: Style = {"stroke": "currentColor", "stroke_width": 2, "rx": 6}
    style |= {"stroke_dasharray": "2 3"} if layout.crosses else {}
    groups = Counter(gpu // layout.tensor for gpu in here)
    first = 0
    for size in groups.values():
        shapes.append(rect(*_frame(row, first, size), **style))
        first += size
    return shapes


def _frame(row: float, first: int, size: int) -> tuple[float, float, float, float]:
    """The frame of so many neighbours in a row."""
    x, y = _LEFT + first * _WIDE, _TOP + row * _DEEP
    return x - 3, y - 3, (size - 1) * _WIDE + _CELL + 6, _HIGH + 6


def _cell(layout: Layout, gpu: int, x: float, y: float) -> str:
    """A GPU: its replica's letter and its stage's number on the stage's shade."""
    replica, stage, rank = layout.place(gpu)
    name = f"{letters(replica)}{stage + 1}"
    title = f"GPU {gpu + 1}: replica {letters(replica)}, stage {stage + 1}"
    high = y + _HIGH / 2 + (6 if layout.context == 1 else -1)
    shapes = _shaded(x, y, stage, layout.pipeline, title, replica)
    ink = _ink(_shade(stage, layout.pipeline))
    shapes += text(x + _CELL / 2, high, name, 16, "middle", ink, font_weight=600)
    if layout.context > 1:
        shapes += text(x + _CELL / 2, y + _HIGH - 4, f"c{rank + 1}", 14, "middle", ink)
    return shapes


def _shaded(x: float, y: float, stage: int, stages: int, title: str = "", replica: int = 0) -> str:
    """A cell in its stage's shade: every other replica's is round."""
    round_by = 16 if replica % 2 else 3
    return rect(x, y, _CELL, _HIGH, _shade(stage, stages), title, rx=round_by)


@cache
def _shade(stage: int, stages: int) -> str:
    """A stage's colour: from the weights' blue for the first to a pale one for the last."""
    dark, pale = (0x00, 0x67, 0xA5), (0xBF, 0xE0, 0xF4)
    share = stage / (stages - 1) if stages > 1 else 0
    mixed = [round(a + share * (b - a)) for a, b in zip(dark, pale, strict=True)]
    return "#" + "".join(f"{one:02X}" for one in mixed)


@cache
def _ink(fill: str) -> str:
    """White on dark shades, black on pale ones: 4.5 : 1 at the least."""
    parts = [int(fill[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [((x + 0.055) / 1.055) ** 2.4 if x > 0.04 else x / 12.92 for x in parts]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#FFFFFF" if light <= 0.18 else "#000000"


def _old(layout: Layout, old: Layout, row: float, node: int) -> list[str]:
    """What was replica A, or was there, before the change."""
    first = node * NODE
    gone = range(max(first, layout.num_gpus), min(first + NODE, old.num_gpus))
    shapes = [ghost(_LEFT + gpu % NODE * _WIDE, _TOP + row * _DEEP, _CELL, _HIGH) for gpu in gone]
    size = min(old.a_replica - first, len(layout.in_node(node)))
    if size > 0 and old.a_replica != layout.a_replica:
        x, y, wide, high = _frame(row, 0, size)
        shapes.append(ghost(x - 3, y - 3, wide + 6, high + 6, "replica A at the start"))
    return shapes


def _key(layout: Layout) -> list[str]:
    """What letter, number, shade and frame say, to the right of the grid."""
    x, y, half = 462, _TOP, _CELL / 2
    svg = [_shaded(x, y, 0, layout.pipeline)]
    svg.append(text(x + 20, y + 24, "A1", 16, "middle", "#FFFFFF", font_weight=600))
    rank = f", c1 of {layout.context}" if layout.context > 1 else ""
    svg.append(_beside(x, y, "one GPU", f"replica A, stage 1{rank}"))

    y += 46
    if layout.pipeline == 1:
        share = "each GPU has all layers" if layout.tensor == 1 else "a piece of every layer"
        svg += [_shaded(x, y, 0, 1), _beside(x, y, "one stage", share)]
    else:
        for stage, left in ((0, x), (layout.pipeline - 1, x + half)):
            shade = _shade(stage, layout.pipeline)
            svg.append(rect(left, y, half, _HIGH, shade))
            svg.append(text(left + 10, y + 24, f"{stage + 1}", 15, "middle", _ink(shade)))
        label = f"PP: {layout.pipeline} pipeline stages"
        svg.append(_beside(x, y, label, "numbers: groups of layers"))

    y += 46
    edge: Style = {"stroke": "currentColor", "stroke_width": 2, "rx": 6}
    if layout.crosses:
        edge["stroke_dasharray"] = "2 3"
    svg.append(rect(x, y, _CELL, _HIGH, **edge))
    if layout.tensor == 1:
        svg.append(_beside(x, y, "TP 1: no frames", "no matrix is shared"))
    else:
        note = "leave the node: slow" if layout.crosses else "share each matrix"
        svg.append(_beside(x, y, f"TP: frames of {layout.tensor} GPUs", note))

    y += 46
    several, each = layout.replicas > 1, units.plural(layout.a_replica, "GPU")
    svg.append(_shaded(x, y, 0, layout.pipeline, replica=int(several)))
    name = "B1" if several else "A"
    svg.append(text(x + 20, y + 24, name, 16, "middle", "#FFFFFF", font_weight=600))
    note = f"of {each}; B is round" if several else f"all {each}"
    return [*svg, _beside(x, y, f"DP: {units.plural(layout.replicas, 'replica')}", note)]


def _beside(x: float, y: float, first: str, second: str) -> str:
    """Two lines of words beside a mark of the key."""
    return text(x + 52, y + 15, first, 15, font_weight=600) + text(x + 52, y + 33, second, 15)


def _grid_in_words(layout: Layout, seen: int) -> str:
    words = (
        f"{layout.num_gpus:,} GPUs in rows of 8: tensor parallel {layout.tensor}, "
        f"pipeline {layout.pipeline}, context {layout.context}, "
        f"data parallel {layout.replicas:,}. "
        f"Replica A is the first {units.plural(layout.a_replica, 'GPU')}."
    )
    if layout.crosses:
        words += " Tensor-parallel groups leave their nodes."
    return words + f" {seen} of {layout.num_gpus:,} GPUs are shown."


# --- a step in time

_START, _END = 92, 420
"""Where the passes begin, and where the longer of two steps ends."""

_ROW, _PASS = 44, 34


def step_in_time(now: Step, before: Step | None = None) -> Drawing:
    """A step: passes, stage by stage, the average of the gradients, the update.

    Lengths are times. Without a pipeline the rows are replicas; with one they are the
    stages of replica A, which wait while it fills and empties. Below, the activations
    that a GPU of the first stage keeps. What changed since `before` is dashed.
    """
    old = before or now
    rows = list(range(min(now.replicas, 2)))
    if now.stages > 1:
        rows = sorted({0, 1, now.stages - 1})
    top, floor = 74, 74 + len(rows) * _ROW + 26
    unit = (_END - _START) / max(now.time, old.time)

    passes = "1 pass" if now.passes == 1 else f"{now.passes:,} passes, one after another"
    waits = ""
    if now.stages > 1:
        passes = f"{units.plural(now.passes, 'pass')}, stage by stage"
        waits = f"; a stage waits {units.percent(now.waits)}"
    average = "one average" if now.replicas > 1 else "no average"
    size = units.plural(now.micro, "sequence")
    svg = [text(_START, 44, f"{size} in each{waits}", 15)]
    for x, heading in ((_START, passes), (452, average), (606, "the update")):
        svg.append(text(x, 22, heading, 15, font_weight=600))
    svg += [_row(top + i * _ROW, row, now, unit) for i, row in enumerate(rows)]
    svg += [_length(floor, now, old, unit), _averages(top, rows, now)]

    hidden, note = now.replicas - len(rows), ""
    if now.stages > len(rows):
        note = f"{len(rows)} of {now.stages} stages drawn"
    elif now.stages == 1 and hidden:
        note = f"… and {hidden:,} more replica{'s' if hidden > 1 else ''}"
    high = 44 if now.stages > 1 else floor - 8  # beside the heading, or the rows
    svg.append(text(702, high, note, 14, "end"))
    if (old.passes, old.micro, old.stages) != (now.passes, now.micro, now.stages):
        svg.append(ghost(_START, top - 16, unit * old.time, 9))  # as long as the step was
    svg.append(_memory(floor + 6, now, old, unit))
    total = units.exact(now.micro * now.passes * now.replicas)
    product = f"micro-batch {now.micro:,} × accumulation {now.passes:,} × "
    product += f"replicas {now.replicas:,} = {total} sequences"
    svg.append(text(24, floor + _TALLEST + 42, product, 17, font_weight=700))
    return Drawing("".join(svg), _ACROSS, floor + _TALLEST + 60, _step_in_words(now))


def _length(floor: float, step: Step, old: Step, unit: float) -> str:
    """How long the passes take: a line as long as they, and the product behind it."""
    end, y = _START + step.turns * _turn(step, unit) - 3, floor - 29
    ends = "".join(line(x, y - 4, x, y + 4) for x in (_START, end))
    turns = units.plural(step.turns, "turn" if step.stages > 1 else "pass")
    words = f"{turns} × ({step.fixed:g} + {step.micro:,}) = {_long(step)} sequences' time"
    words += " on a stage" if step.stages > 1 else ""
    if (old.turns, old.micro, old.fixed) != (step.turns, step.micro, step.fixed):
        words += f", dashed {_long(old)}"
    return line(_START, y, end, y) + ends + text(_START, floor - 8, words, 14)


def _long(step: Step) -> str:
    """A step's length on a stage, in times of a sequence."""
    length = step.turns * (step.fixed + step.micro)
    return f"{length:,.0f}" if length % 1 == 0 else f"{length:,.1f}"


def _row(y: float, row: int, step: Step, unit: float) -> str:
    """The passes of a replica, or of a stage, in their time; and what comes after."""
    wide, late = _turn(step, unit), row if step.stages > 1 else 0
    name = f"replica {letters(row)}" if step.stages == 1 else f"stage {row + 1}"
    shapes = text(_START - 12, y + 22, name, 14, "end")
    shapes += _waiting(_START, y, late * wide)
    shapes += _passes(_START + late * wide, y, step.passes, wide)
    after = step.stages - 1 - late
    shapes += _waiting(_START + (late + step.passes) * wide, y, after * wide)
    shapes += arrow(_START + step.turns * wide + 4, y + 17, 448, y + 17)
    shapes += arrow(584, y + 17, 602, y + 17)
    shapes += rect(606, y, 96, _PASS, COLORS["optimizer"], rx=4)
    label = "same step" if step.stages == 1 else "update"
    return shapes + text(654, y + 22, label, 15, "middle", "#FFFFFF")


def _turn(step: Step, unit: float) -> float:
    """How wide a turn is drawn."""
    return unit * step.time / step.turns


def _passes(x: float, y: float, passes: int, wide: float) -> str:
    """Boxes with their numbers; one long box where they would be too narrow."""
    if wide < 22:
        label = units.plural(passes, "pass")
        shapes = rect(x, y, passes * wide - 2, _PASS, COLORS["activations"], rx=4)
        if fits(label, passes * wide - 6, 14):
            middle = x + passes * wide / 2
            shapes += text(middle, y + 22, label, 14, "middle", "#FFFFFF")
        return shapes
    shapes = ""
    for i in range(passes):
        left = x + i * wide
        name = f"pass {i + 1}" if wide > 60 else f"{i + 1}"
        shapes += rect(left, y, wide - 3, _PASS, COLORS["activations"], rx=4)
        shapes += text(left + wide / 2 - 1, y + 22, name, 14, "middle", "#FFFFFF")
    return shapes


def _waiting(x: float, y: float, wide: float) -> str:
    """A stage with nothing to do."""
    if wide < 3:
        return ""
    box = (x, y, wide - 2, _PASS)
    label = text(x + wide / 2, y + 22, "waits", 14, "middle") if wide > 60 else ""
    lines = "" if label else hatched(*box)
    edge: Style = {"stroke": "currentColor", "opacity": 0.6, "rx": 4}
    return rect(*box, title="waits", **edge) + lines + label


def _averages(top: float, rows: Sequence[int], step: Step) -> str:
    """Where gradients meet: one box for all replicas, with a pipeline one for each stage."""
    svg, ink = "", COLORS["gradients"]
    if step.stages == 1:
        high = len(rows) * _ROW - (_ROW - _PASS)
        svg += rect(452, top, 130, high, ink, rx=4)
        words = ["gradients,", "not weights"] if len(rows) > 1 else ["gradients"]
        first = top + high / 2 + (5 if len(rows) == 1 else -4)
        for i, label in enumerate(words):
            svg += text(517, first + 19 * i, label, 15, "middle", "#FFFFFF")
    else:
        for i, stage in enumerate(rows):
            y = top + i * _ROW
            label = f"all stages {stage + 1}" if step.replicas > 1 else "gradients"
            svg += rect(452, y, 130, _PASS, ink, rx=4)
            svg += text(517, y + 22, label, 15, "middle", "#FFFFFF")
    if step.replicas > 1:
        svg += text(517, top - 10, f"of {step.replicas:,} replicas", 14, "middle")
    return svg


_TALLEST = 56
"""The height of the most that is kept now or before, eight sequences at least."""


def _memory(top: float, now: Step, old: Step, unit: float) -> str:
    """Activations on a GPU of the first stage: up in forward, down in backward."""
    base = top + _TALLEST + 4
    scale = _TALLEST / max(now.kept, old.kept, 8)
    shapes = _saw(base, scale, now, unit)
    if (now.kept, now.time) != (old.kept, old.time):
        shapes += _saw(base, scale, old, unit, before=True)
        shapes += text(452, top + 58, f"dashed: {_kept(old)}", 14)
    shapes += line(_START, base, _END, base)
    for i, words in enumerate(["kept on", "a GPU"]):
        shapes += text(_START - 12, base - 20 + 18 * i, words, 14, "end")
    shapes += text(452, top + 18, f"activations: {_kept(now)}", 15, font_weight=600)
    return shapes + text(452, top + 38, _why_kept(now), 15)


def _kept(step: Step) -> str:
    if step.stages == 1:
        return f"of {units.plural(step.micro, 'sequence')}"
    return f"of {step.in_flight} × {units.plural(step.micro, 'sequence')}"


def _why_kept(step: Step) -> str:
    if step.stages == 1:
        return "at a time, in every pass"
    return f"on stage 1, 1/{step.stages} of the layers each"


def _saw(base: float, scale: float, step: Step, unit: float, before: bool = False) -> str:
    """Activations over a step: a tooth for each pass, or with a pipeline one hill.

    A tooth goes up in a third of its pass. The hill ends with the step: the first
    stage's last backward passes come a turn apart, as fast as the last stage makes theirs.
    """
    style = f'fill="{COLORS["activations"]}"'
    if before:
        style = 'fill="none" stroke="currentColor" stroke-dasharray="5 4"'
    high, wide = base - scale * step.kept, _turn(step, unit)
    end = _START + step.passes * wide
    teeth = [(_START + i * wide, wide) for i in range(step.passes)]
    if step.stages > 1:
        end, full = _START + step.turns * wide, step.in_flight
        corners = [(_START, base), (_START + full * wide / 3, high)]
        corners += [(end - (full - 1 / 3) * wide, high), (end, base)]
    elif wide < 3:  # too many to tell apart
        corners = [(_START, base), (_START, high), (end, high), (end, base)]
    else:
        corners = [
            corner for x, w in teeth for corner in ((x, base), (x + w / 3, high), (x + w - 2, base))
        ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'<polygon points="{points}" {style}/>'


def _step_in_words(step: Step) -> str:
    n = step.passes
    each = "one pass" if n == 1 else f"{n:,} passes one after another"
    makes = f"each of {step.replicas:,} replicas makes"
    who = "one replica makes" if step.replicas == 1 else makes
    piped = (
        f" Its {step.stages} stages wait {units.percent(step.waits)} of the time."
        if step.stages > 1
        else ""
    )
    total = units.exact(step.micro * n * step.replicas)
    return (
        f"A step: {who} {each}, of {units.plural(step.micro, 'sequence')}; "
        "then the gradients, not the weights, meet in one average; then the update, "
        f"the same on every replica.{piped} {total} sequences in all; a GPU keeps "
        f"activations {_kept(step)} {_why_kept(step)}."
    )


# --- the time of a pass

_BARS, _BETWEEN, _FLOOR, _HIGHEST = 196, 60, 266, 196
"""Bars: the first one's middle, from one to the next, where they stand, the highest."""


def pass_times(micro_batches: Sequence[int], seconds: Sequence[float], fitted: StepTime) -> Drawing:
    """A bar for each pass, of a fixed part and one that grows, and what was measured.

    Micro-batches double from bar to bar. Below stand milliseconds and sequences a
    second; a dashed line is the half-rate batch, at which both parts are equal.
    """
    sizes, times = [int(b) for b in micro_batches], [float(t) for t in seconds]
    unit = _HIGHEST / max(*times, *(float(fitted.seconds(b)) for b in sizes))
    rates = [f"{b / t:,.0f}" for b, t in zip(sizes, times, strict=True)]
    svg = _key_of_passes(fitted) + _half_rate(sizes, fitted)
    for i, (b, t) in enumerate(zip(sizes, times, strict=True)):
        svg += _bar_of_pass(_BARS + i * _BETWEEN, b, t, fitted, unit)
    rows = {"micro-batch": [f"{b}" for b in sizes]}
    rows["ms of a pass"] = [f"{1e3 * t:.2f}" for t in times]
    rows["sequences / s"] = rates
    for i, (name, cells) in enumerate(rows.items()):
        y = _FLOOR + 24 + 24 * i
        svg += text(156, y, name, 14, "end")
        for k, cell in enumerate(cells):
            svg += text(_BARS + k * _BETWEEN, y, cell, 14, "middle")
    svg += line(166, _FLOOR, 708, _FLOOR)
    label = zip(sizes, rows["ms of a pass"], rates, strict=True)
    words = "; ".join(f"{b}: {ms} ms, {rate} sequences a second" for b, ms, rate in label)
    half = f"Half-rate batch {fitted.half_rate_batch:.0f}."
    return Drawing(svg, _ACROSS, 356, f"A pass by its micro-batch. {words}. {half}")


def _bar_of_pass(x: float, micro: int, measured: float, fitted: StepTime, unit: float) -> str:
    """The fixed part, the growing part on it, and a dot for the measured time."""
    fixed = unit * float(fitted.overhead)
    grows = unit * float(fitted.seconds(micro)) - fixed
    shapes = rect(x - 20, _FLOOR - fixed, 40, fixed, GREY, "the fixed part")
    top, ink = _FLOOR - fixed - grows, COLORS["activations"]
    shapes += rect(x - 20, top, 40, grows, ink, "what grows with the micro-batch")
    place = f'cx="{x:g}" cy="{_FLOOR - unit * measured:.1f}" r="5"'
    return shapes + f'<circle {place} fill="#FFFFFF" stroke="currentColor" stroke-width="2"/>'


def _key_of_passes(fitted: StepTime) -> str:
    """What the parts of a bar are, in numbers."""
    label = [
        (GREY, f"fixed: t₀ = {1e3 * float(fitted.overhead):.1f} ms"),
        (
            COLORS["activations"],
            f"grows: b / r, r = {units.digits(fitted.rate)} sequences a second",
        ),
    ]
    shapes, x = "", 24.0
    for ink, words in label:
        shapes += rect(x, 15, 18, 18, ink) + text(x + 26, 29, words, 15)
        x += 40 + 8.6 * len(words)
    dot = '<circle cx="{:g}" cy="24" r="5" fill="#FFFFFF" stroke="currentColor"'
    shapes += dot.format(x + 8) + ' stroke-width="2"/>'
    return shapes + text(x + 22, 29, "measured", 15)


def _half_rate(sizes: Sequence[int], fitted: StepTime) -> str:
    """The half-rate batch between the bars, where it lies among them."""
    half = float(fitted.half_rate_batch)
    if not sizes[0] <= half <= sizes[-1]:
        return ""
    x = _BARS + _BETWEEN * log2(half / sizes[0])
    shapes = line(x, 64, x, _FLOOR, stroke_dasharray="5 4")
    shapes += text(x - 10, 76, f"half-rate batch {half:.0f}:", 15, "end", font_weight=600)
    return shapes + text(x - 10, 96, "both parts are equal", 15, "end")
