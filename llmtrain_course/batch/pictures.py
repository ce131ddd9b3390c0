"""Drawings of chapter 04: GPUs in their grid, a step on four of them, what a batch costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import log2, log10
from typing import NamedTuple

from llmtrain_course.duration.pictures import INKS
from llmtrain_course.kit.drawing import (
    COLORS,
    GREY,
    Drawing,
    Style,
    circle,
    fits,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_helpers import units
from llmtrain_helpers.batch import BatchCost
from llmtrain_helpers.plan.schedule import Schedule

NODE = 8
"""GPUs in a node, as nearly everywhere."""

_ACROSS, _NARROW = 680, 380
"""Pixels across on a page, and on a telephone."""

_ROWS, _LEFT, _TOP = 6, 68, 52
_CELL, _HIGH, _WIDE, _DEEP = 36, 36, 42, 46
"""Cells of the grid: width, height, and from one to the next across and down."""

_GAP = 0.5
"""How much of a row is left between nodes that do not follow each other."""


@dataclass(frozen=True)
class Layout:
    """How GPUs are shared out: tensor ranks count first, then context, replicas, stages."""

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
    def left_over(self) -> int:
        """GPUs that are too few for one more copy."""
        return self.num_gpus % self.a_replica

    @property
    def of_a_stage(self) -> int:
        """GPUs that hold the same stage, of all copies."""
        return self.replicas * self.tensor * self.context

    @property
    def crosses(self) -> bool:
        """Whether some tensor-parallel group does not stay inside its node."""
        return self.num_gpus > NODE and NODE % self.tensor != 0

    def seen(self) -> list[int]:
        """The nodes that are drawn: the first six, the first of some stages, or the last one."""
        nodes = -(-self.num_gpus // NODE)
        if nodes > _ROWS and self.left_over:
            return [*range(_ROWS - 1), nodes - 1]
        if nodes <= _ROWS or self.pipeline == 1 or self.of_a_stage <= NODE:
            return list(range(min(nodes, _ROWS)))
        stages = sorted({0, 1, self.pipeline - 1})
        starts = [stage * self.of_a_stage // NODE for stage in stages]
        each = _ROWS // len(stages)
        return sorted({start + k for start in starts for k in range(each) if start + k < nodes})

    def in_node(self, node: int) -> range:
        """The GPUs of a node."""
        return range(node * NODE, min((node + 1) * NODE, self.num_gpus))

    def place(self, gpu: int) -> tuple[int, int, int] | None:
        """Replica, stage and context rank of a GPU, counted from 0; None if left over."""
        if gpu >= self.num_gpus - self.left_over:
            return None
        rest, rank = divmod(gpu // self.tensor, self.context)
        stage, replica = divmod(rest, self.replicas)
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
    num_gpus: int,
    tensor: int = 1,
    pipeline: int = 1,
    context: int = 1,
    rows: int = 0,
    narrow: bool = False,
) -> Drawing:
    """The GPUs in their nodes: replica by letter, stage by number and shade.

    Neighbours share matrices; then come the other replicas, and the next stage last.
    Shows six nodes at the most, where there are more the first ones of some stages.
    GPUs that are too few for a copy are hatched. The canvas has room for `rows` nodes.
    On a `narrow` one the title has two lines, and the key stands below.
    """
    layout = Layout(num_gpus, tensor, pipeline, context)
    degrees = {"TP": layout.tensor, "PP": layout.pipeline}
    if layout.context > 1:
        degrees["CP"] = layout.context
    product = " × ".join(f"{name} {n:,}" for name, n in degrees.items())
    title = f"{layout.num_gpus:,} GPUs = {product} × DP {layout.replicas:,}"
    title += f" + {layout.left_over:,} left over" if layout.left_over else ""
    heading = text(20, 30, title, 20, font_weight=700)
    svg = []

    drawn = _rows_of_nodes(layout.seen())
    for (row, node), (_, following) in pairwise(drawn):
        if following > node + 1:
            first, last = node + 2, following
            label = f"nodes {first:,} to {last:,}" if last > first else f"node {first:,}"
            svg.append(text(_LEFT, _TOP + (row + 1) * _DEEP + 11, f"⋮  {label}, not drawn", 14))
    for row, node in drawn:
        svg += _node(layout, row, node)
    svg += [] if narrow else _key(layout, 426, _TOP)

    floor, nodes = _TOP + (drawn[-1][0] + 1) * _DEEP, -(-layout.num_gpus // NODE)
    seen = sum(len(layout.in_node(node)) for _, node in drawn)
    note = f"{len(drawn)} of {nodes:,} nodes are drawn, {seen} of {layout.num_gpus:,} GPUs."
    if seen == layout.num_gpus:
        note = "A row is a node."
    svg.append(text(16 if narrow else _LEFT, floor + 16, note, 14))
    height, words = max(round(floor), _TOP + rows * _DEEP) + 30, _grid_in_words(layout, seen)
    if not narrow:
        height = max(height, _TOP + 4 * 46 + 8)
        return Drawing(heading + "".join(svg), _ACROSS, height, words)
    gpus, _, product = title.partition(" = ")
    heading = text(20, 26, gpus, 18, font_weight=700) + text(20, 50, f"= {product}", 15)
    grid, key = "".join(svg), "".join(_key(layout, 20, height + 26))
    body = f'{heading}<g transform="translate(4 22) scale(0.98)">{grid}</g>{key}'
    return Drawing(body, 400, height + 26 + 4 * 46, words)


def _rows_of_nodes(nodes: Sequence[int]) -> list[tuple[float, int]]:
    """Each node with its row; where nodes are left out, half a row is left free."""
    rows: list[tuple[float, int]] = [(0, nodes[0])]
    for last, node in pairwise(nodes):
        rows.append((rows[-1][0] + 1 + _GAP * (node > last + 1), node))
    return rows


def _node(layout: Layout, row: float, node: int) -> list[str]:
    """A node's name, its GPUs, and the frames of its tensor-parallel groups."""
    here, y = layout.in_node(node), _TOP + row * _DEEP
    name = f"node {node + 1}" if node < 99 else f"{node + 1:,}"
    shapes = [text(_LEFT - 10, y + _HIGH / 2 + 5, name, 14, "end")]
    shapes += [_cell(layout, gpu, _LEFT + gpu % NODE * _WIDE, y) for gpu in here]
    first = 0
    for group, size in Counter(gpu // layout.tensor for gpu in here).items():
        place = layout.place(group * layout.tensor)
        x, wide = _LEFT + first * _WIDE, (size - 1) * _WIDE + _CELL
        first += size
        copy_a = place is not None and place[0] == 0
        if place is None or (layout.tensor == 1 and not copy_a):
            continue
        style: Style = {"stroke": "currentColor", "rx": 6, "stroke_width": 4 if copy_a else 1.5}
        style |= {"stroke_dasharray": "2 3"} if layout.crosses else {}
        shapes.append(rect(x - 3, y - 3, wide + 6, _HIGH + 6, **style))
    return shapes


def _cell(layout: Layout, gpu: int, x: float, y: float) -> str:
    """A GPU: its replica's letter and its stage's number on the stage's shade."""
    place = layout.place(gpu)
    if place is None:
        return _idle_cell(x, y, f"GPU {gpu + 1}: left over")
    replica, stage, rank = place
    name = f"{letters(replica)}{stage + 1}"
    title = f"GPU {gpu + 1}: replica {letters(replica)}, stage {stage + 1}"
    high = y + _HIGH / 2 + (6 if layout.context == 1 else -1)
    shapes = _shaded(x, y, stage, layout.pipeline, title, replica)
    ink, size = _ink(_shade(stage, layout.pipeline)), 16 if len(name) < 3 else 14
    shapes += text(x + _CELL / 2, high, name, size, "middle", ink, font_weight=600)
    if layout.context > 1:
        shapes += text(x + _CELL / 2, y + _HIGH - 4, f"c{rank + 1}", 14, "middle", ink)
    return shapes


def _idle_cell(x: float, y: float, title: str = "") -> str:
    return rect(x, y, _CELL, _HIGH, title=title, stroke=GREY, rx=3) + hatched(x, y, _CELL, _HIGH)


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


def _key(layout: Layout, x: float, y: float) -> list[str]:
    """What letter, number, shade and frame say, to the right of the grid or below it."""
    half = _CELL / 2
    if not layout.replicas:
        note = f"one takes {units.plural(layout.a_replica, 'GPU')}"
        return [_idle_cell(x, y), _beside(x, y, "DP: no whole replica", note)]
    edge: Style = {"stroke": "currentColor", "rx": 6}
    bold: Style = {**edge, "stroke_width": 4}
    svg = [_shaded(x, y, 0, layout.pipeline), rect(x - 3, y - 3, 42, 42, **bold)]
    svg.append(text(x + half, y + 24, "A1", 16, "middle", "#FFFFFF", font_weight=600))
    copies = units.plural(layout.replicas, "replica")
    note = f"of {units.plural(layout.a_replica, 'GPU')}; bold: A"
    svg.append(_beside(x, y, f"DP: {copies}", note))

    y += 46
    style: Style = {**edge, "stroke_width": 1.5}
    if layout.crosses:
        style["stroke_dasharray"] = "2 3"
    svg.append(rect(x, y, _CELL, _HIGH, **style))
    if layout.tensor == 1:
        svg.append(_beside(x, y, "TP 1: no frames", "no matrix is shared"))
    else:
        note = "leave the node: slow" if layout.crosses else "share each matrix"
        svg.append(_beside(x, y, f"TP: frames of {layout.tensor} GPUs", note))

    y += 46
    if layout.pipeline == 1:
        svg += [_shaded(x, y, 0, 1), _beside(x, y, "PP: one stage", "with all the layers")]
    else:
        for stage, left in ((0, x), (layout.pipeline - 1, x + half)):
            shade = _shade(stage, layout.pipeline)
            svg.append(rect(left, y, half, _HIGH, shade))
            svg.append(text(left + 9, y + 24, f"{stage + 1}", 14, "middle", _ink(shade)))
        label = f"PP: {layout.pipeline} stages, by shade"
        svg.append(_beside(x, y, label, "some of the layers each"))

    y += 46
    if layout.left_over:
        svg.append(_idle_cell(x, y))
        label = f"{units.plural(layout.left_over, 'GPU')} left over"
        svg.append(_beside(x, y, label, f"a replica takes {layout.a_replica:,}"))
    elif layout.context > 1:
        svg.append(_beside(x, y, f"CP: c1 to c{layout.context}", "share each sequence"))
    return svg


def _beside(x: float, y: float, first: str, second: str) -> str:
    """Two lines of words beside a mark of the key."""
    return text(x + 50, y + 15, first, 15, font_weight=600) + text(x + 50, y + 33, second, 15)


def _grid_in_words(layout: Layout, seen: int) -> str:
    words = (
        f"{layout.num_gpus:,} GPUs in rows of 8: tensor parallel {layout.tensor}, "
        f"pipeline {layout.pipeline}, context {layout.context}, "
        f"data parallel {layout.replicas:,}."
    )
    if layout.left_over:
        words += f" {units.plural(layout.left_over, 'GPU')} left over."
    if layout.crosses:
        words += " Tensor-parallel groups leave their nodes."
    return words + f" {seen} of {layout.num_gpus:,} GPUs are shown."


# --- a step on four GPUs, in time

_ROW, _PASS = 40, 32
_KEEPS = 22
"""Pixels of a sequence whose activations are kept."""


class Clock(NamedTuple):
    """Where time begins, pixels of a tick; where GPUs begin, and activations stand."""

    width: int
    begin: int
    scale: float
    first: int
    floor: int

    def at(self, tick: float) -> float:
        """The place of a tick."""
        return self.begin + tick * self.scale


PAGE, TELEPHONE = Clock(_ACROSS, 124, 4.3, 44, 336), Clock(_NARROW, 84, 2.3, 64, 400)


AVERAGE, UPDATE = 6, 3
"""Ticks that the average and the update are drawn as long as."""


def four_gpus(
    schedule: Schedule,
    copies: int,
    micro_batch: int,
    now: int,
    before: int = 0,
    clock: Clock = PAGE,
) -> Drawing:
    """A step on four GPUs, up to a moment: passes, waiting, average, update.

    Each copy of the model has the same `schedule`. What is still to come is an outline.
    Below, the activations that the first GPU keeps. Time has one scale for all
    settings; with `before`, the length of an earlier step is dashed.
    """
    stages, end = schedule.stages, schedule.end
    svg = text(20, 26, _setting_of(stages, copies), 17, font_weight=700)
    for gpu in range(stages * copies):
        stage, copy = divmod(gpu, copies)
        y = clock.first + gpu * _ROW
        label = f"{letters(copy)}, stage {stage + 1}" if stages > 1 else f"replica {letters(copy)}"
        svg += text(clock.begin - 8, y + 21, label, 14, "end")
        over = 0
        for turn in schedule.of_stage(stage):
            svg += _waits(clock, y, over, turn.start)
            svg += _box(clock, y, turn.start, turn.end, now, turn.micro_batch, turn.backward)
            over = turn.end
        svg += _waits(clock, y, over, end)
    svg += _ending(clock, stages, copies, end, now)
    top, bottom = clock.first, clock.first + 4 * _ROW
    x = clock.at(now)
    for high, low in ((top - 8, bottom), (clock.floor - 104, clock.floor)):
        svg += line(x, high, x, low, stroke_width=2)
    if before and before != end:
        at = clock.at(before)
        svg += line(clock.begin, top - 6, at, top - 6, stroke_dasharray="5 4")
        svg += line(at, top - 11, at, top - 1)
        spot, anchor = (at + 7, "start") if at < clock.width - 110 else (at - 7, "end")
        svg += text(spot, top - 10, "at the start", 14, anchor)
    svg += _legend(clock, bottom + 8, copies)
    svg += _kept(clock, schedule, micro_batch, now)
    words = (
        f"A step on four GPUs: {_setting_of(stages, copies)}. {schedule.micro_batches} passes of "
        f"{units.plural(micro_batch, 'sequence')} for each replica take {end} ticks; "
        f"{now} are over. A GPU waits {units.percent(schedule.idle)} of them."
    )
    return Drawing(svg, clock.width, clock.floor + 34, words)


def _setting_of(stages: int, copies: int) -> str:
    if stages == 1:
        return f"{copies} replicas, each on one GPU"
    each = f"cut into {stages} stages"
    return f"{copies} replicas, each {each}" if copies > 1 else f"one replica, {each}"


def _waits(clock: Clock, y: float, start: int, end: int) -> str:
    """A GPU with nothing to do."""
    if end == start:
        return ""
    x, wide = clock.at(start), (end - start) * clock.scale - 1
    svg = rect(x, y, wide, _PASS, GREY, "waits", opacity=0.15)
    return svg + (hatched(x, y, wide, _PASS) if wide > 8 else "")


def _box(clock: Clock, y: float, start: int, end: int, now: int, micro: int, backward: bool) -> str:
    """A turn: filled as far as it is done, with its number where there is room."""
    x, wide = clock.at(start), (end - start) * clock.scale - 1
    ink, word = (INKS["backward"], "backward") if backward else (INKS["forward"], "forward")
    done = min(max((now - start) / (end - start), 0), 1)
    svg = rect(x, y, wide, _PASS, ink, f"{word} {micro + 1}", rx=2, opacity=0.25)
    if done:
        svg += rect(x, y, wide * done, _PASS, ink, rx=2)
    if fits(f"{micro + 1}", wide - 4, 14):
        fill = "#FFFFFF" if done > 0.6 else "currentColor"
        svg += text(x + wide / 2, y + 21, f"{micro + 1}", 14, "middle", fill)
    return svg


def _ending(clock: Clock, stages: int, copies: int, end: int, now: int) -> str:
    """The average over the copies of each stage, and the update of every GPU."""
    svg, after = "", end + (AVERAGE if copies > 1 else 0)
    for stage in range(stages if copies > 1 else 0):
        y = clock.first + stage * copies * _ROW
        high = copies * _ROW - (_ROW - _PASS)
        ink = COLORS["main gradients"]
        svg += _late(clock, end, AVERAGE, y, high, ink, "average of gradients", now)
    for gpu in range(stages * copies):
        y = clock.first + gpu * _ROW
        svg += _late(clock, after, UPDATE, y, _PASS, COLORS["optimizer"], "update", now)
    return svg


def _late(
    clock: Clock, start: int, ticks: int, y: float, high: float, ink: str, word: str, now: int
) -> str:
    faint: Style = {} if now >= start + ticks else {"opacity": 0.25}
    return rect(clock.at(start) + 1, y, ticks * clock.scale - 2, high, ink, word, **faint)


def _legend(clock: Clock, y: float, copies: int) -> str:
    left = clock.begin if clock is PAGE else 20
    svg, x = "", float(left)
    inks = {"forward": INKS["forward"], "backward": INKS["backward"], "waits": GREY}
    inks |= {"average": COLORS["main gradients"]} if copies > 1 else {}
    for word, ink in {**inks, "update": COLORS["optimizer"]}.items():
        faint: Style = {"opacity": 0.15} if word == "waits" else {}
        if x + 20 + 8 * len(word) > clock.width:
            x, y = left, y + 22
        svg += rect(x, y, 14, 14, ink, **faint) + text(x + 20, y + 12, word, 14)
        svg += hatched(x, y, 14, 14, 6) if word == "waits" else ""
        x += 46 + 8 * len(word)
    return svg


def _kept(clock: Clock, schedule: Schedule, micro_batch: int, now: int) -> str:
    """The activations of the first GPU over time: all that is to come is dashed."""
    share = micro_batch / schedule.stages
    corners = [(t, activations * share) for t, activations in schedule.kept(0)]
    points = [(clock.at(t), clock.floor - _KEEPS * activations) for t, activations in corners]
    whole = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line_style = 'fill="none" stroke="currentColor" stroke-dasharray="4 3"'
    svg = f'<polyline points="{whole}" {line_style}/>'
    done = [(t, activations) for t, activations in corners if t <= now]
    if done and done[-1][0] < now < corners[-1][0]:  # within a turn
        (t0, h0), (t1, h1) = next(
            pair for pair in pairwise(corners) if pair[0][0] <= now <= pair[1][0] != pair[0][0]
        )
        done.append((now, h0 + (h1 - h0) * (now - t0) / (t1 - t0)))
    spots = [
        (clock.at(t), clock.floor - _KEEPS * activations)
        for t, activations in [*done, (done[-1][0], 0)]
    ]
    area = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    svg += f'<polygon points="{area}" fill="{COLORS["activations"]}"/>'
    begin, floor = clock.begin, clock.floor
    svg += line(begin, floor, clock.at(126), floor)
    for activations in (1, 2, 4):
        y = floor - _KEEPS * activations
        svg += line(begin - 5, y, begin, y) + text(begin - 9, y + 5, f"{activations}", 14, "end")
    if clock is TELEPHONE:
        svg += text(20, floor - 112, "activations on GPU 1", 14)
    for i, word in enumerate(["activations", "on GPU 1"] if clock is PAGE else []):
        svg += text(20, floor - 62 + 18 * i, word, 14)
    for tick in range(0, 121, 30):
        x = clock.at(tick)
        label = f"{tick}" if tick < 120 else "120 ticks"
        svg += line(x, floor, x, floor + 5)
        svg += text(min(x, clock.width - 38), floor + 20, label, 14, "middle")
    return svg


# --- the beginning of an epoch


def epoch_rows(
    micro_batch: int, passes: int, updates: int, samples: int, narrow: bool = False
) -> Drawing:
    """The first updates of an epoch: a row each, a box for a pass, a dot for a sample."""
    (left, top), ink = (16, 58) if narrow else (96, 40), COLORS["activations"]
    dot, first, radius, gap, deep = (7.8, 5.9, 3.2, 8, 60) if narrow else (12, 9, 5, 10, 44)
    key, last = "dot: a sample · box: a micro-batch, one pass", "row: a batch"
    svg = text(left, 24, key if narrow else f"{key} · {last}", 15)
    svg += text(left, 44, last, 15) if narrow else ""
    for row in range(3):
        y = top + deep * row
        if narrow:
            svg += text(left, y + 18, f"update {row + 1}", 14)
            y += 24
        else:
            svg += text(left - 12, y + 22, f"update {row + 1}", 14, "end")
        for k in range(passes):
            x = left + k * (micro_batch * dot + gap)
            wide = micro_batch * dot + 4
            svg += rect(x, y, wide, 34, stroke="currentColor", rx=5, title=f"pass {k + 1}")
            svg += "".join(
                circle(x + first + dot * i, y + 17, radius, ink if row == 0 else GREY)
                for i in range(micro_batch)
            )
    y = top + 3 * deep
    more = f"{updates - 3:,} more, until all"
    more = more if narrow else f"and {more} {samples:,}"
    svg += text(left, y + 16, f"⋮  {more} are used: one epoch", 15)
    batch = micro_batch * passes
    cells = [(f"{updates:,}", "updates"), (f"{updates * passes:,}", "passes")]
    cells += [(f"{batch}", "samples in a batch"), (f"{micro_batch}", "at once in memory")]
    for i, (number, label) in enumerate(cells):
        x, low = left + 148 * i, y + 60
        if narrow:
            x, low = left + 180 * (i % 2), y + 60 + 60 * (i // 2)
        svg += text(x, low, number, 26, font_weight=700) + text(x, low + 22, label, 14)
    words = (
        f"Of {samples:,} samples, {batch} go into each update, in "
        f"{units.plural(passes, 'pass')} of {micro_batch}: {updates:,} updates and "
        f"{updates * passes:,} passes."
    )
    return Drawing(svg, _NARROW if narrow else _ACROSS, y + 98 + 60 * narrow, words)


# --- a measured step by its micro-batch

Bar = tuple[int, float, float, float, float, float]
"""A micro-batch; seconds of work, fixed parts and waiting; measured; bytes of a GPU."""

_MOST, _ROOM, _BASE, _LONG = 160, 90e9, 262, 200
"""Seconds and bytes of the axes, where the bars stand, and the height of both axes."""


def step_by_micro_batch(bars: Sequence[Bar], chosen: int, narrow: bool = False) -> Drawing:
    """A step's seconds and a GPU's memory by the micro-batch, up to the chosen one.

    A bar is the work, the fixed parts of all passes and the waiting; a ring was
    measured. The axes and the room of all bars stay.
    """
    svg = text(20, 26, "seconds of a step", 16, font_weight=700)
    down = 294 if narrow else 0  # memory stands beside the seconds, or below
    begin, last, base = (24, 354, _BASE + down) if narrow else (436, 664, _BASE)
    svg += text(20 if narrow else 440, 26 + down, "memory of a GPU", 16, font_weight=700)
    for tick in (0, 50, 100, 150):
        y = _BASE - _LONG * tick / _MOST
        svg += line(56, y, 366 if narrow else 390, y, opacity=0.25)
        svg += text(48, y + 5, f"{tick}", 14, "end")
    unit = _LONG / _MOST
    inks = {"work": COLORS["useful"], "fixed parts": COLORS["launching"], "waiting": GREY}
    for i, (micro, work, fixed, waits, measured, memory) in enumerate(bars):
        x, right = (68 + 76 * i, 77 + 76 * i) if narrow else (74 + 80 * i, 446 + 54 * i)
        for at, low in ((x + 26, _BASE), (right + 17, base)):
            weight = 700 if micro == chosen else 400
            svg += text(at, low + 20, f"{micro}", 15, "middle", font_weight=weight)
        if micro > chosen:
            continue
        faint: Style = {} if micro == chosen else {"opacity": 0.45}
        y = float(_BASE)
        for (word, ink), seconds in zip(inks.items(), (work, fixed, waits), strict=True):
            y -= unit * seconds
            svg += rect(x, y, 52, unit * seconds, ink, f"{word}: {seconds:.0f} s", **faint)
        spot = _BASE - unit * measured
        svg += circle(x + 26, spot, 6, "#FFFFFF", "measured", stroke="currentColor")
        if micro == chosen:
            top = min(y, spot - 6) - 8
            svg += text(x + 26, top, f"{measured:.0f} s", 16, "middle", font_weight=700)
        high = _LONG * memory / _ROOM
        svg += rect(right, base - high, 34, high, COLORS["main weights"], **faint)
        if micro == chosen:
            label = units.edited(memory, units.gigabytes)
            svg += text(right + 17, base - high - 8, label, 15, "middle", font_weight=700)
    limit = base - _LONG * 80e9 / _ROOM
    svg += line(begin, limit, last, limit, stroke_dasharray="5 4")
    svg += text(last, limit - 8, "80 GB", 14, "end") + line(begin, base, last, base)
    x, y = 20, 306 + down
    for word, ink in inks.items():
        svg += rect(x, y, 14, 14, ink) + text(x + 20, y + 12, word, 14)
        x += 42 + 8 * len(word)
    if narrow:
        x, y = 20, y + 24
    svg += circle(x + 6, y + 7, 6, "#FFFFFF", stroke="currentColor")
    svg += text(x + 20, y + 12, "measured", 14)
    svg += text(last, y + 12, "sequences in a micro-batch", 14, "end")
    listing = "; ".join(
        f"{bar[0]}: {bar[4]:.0f} s and {units.edited(bar[5], units.gigabytes)}"
        for bar in bars
        if bar[0] <= chosen
    )
    words = f"A step by its micro-batch, as measured, and what a GPU held. {listing}."
    return Drawing(svg, _NARROW if narrow else _ACROSS, y + 26, words)


# --- what a batch costs

_SQUARE, _X0, _Y0 = 250, 64, 300
"""The side of the picture of updates and samples, and its lower left corner."""


def batch_cost_curve(
    cost: BatchCost, batch: float, critical: float, before: BatchCost, narrow: bool = False
) -> Drawing:
    """Updates against tokens, over the fewest of each: a dot on the curve of all batches.

    Both axes are logarithmic, from 1 to 64. A mark on the curve is the critical batch. Below,
    the batch and the critical batch in tokens. The hollow dot is where it began.
    """

    def spot(updates: float, samples: float) -> tuple[float, float]:
        unit = _SQUARE / 6
        return _X0 + unit * log2(updates), _Y0 - unit * log2(samples)

    svg = text(20, 26, "tokens, in multiples of the fewest", 15)
    for power in range(7):
        x, y = spot(2**power, 2**power)
        svg += line(x, _Y0, x, _Y0 + 5) + line(_X0 - 5, y, _X0, y)
        svg += text(x, _Y0 + 20, f"{2**power}", 14, "middle")
        svg += text(_X0 - 9, y + 5, f"{2**power}", 14, "end")
    svg += line(_X0, _Y0, _X0 + _SQUARE, _Y0) + line(_X0, _Y0, _X0, _Y0 - _SQUARE)
    svg += text(_X0 + _SQUARE, _Y0 + 40, "updates, in multiples of the fewest", 15, "end")
    ratios = [2 ** (k / 4) for k in range(-24, 25)]
    curve = [spot(1 + 1 / r, 1 + r) for r in ratios if 1 + max(r, 1 / r) <= 64]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in curve)
    svg += f'<polyline points="{points}" fill="none" stroke="{GREY}" stroke-width="3"/>'
    x, y = spot(2, 2)
    svg += line(x - 9, y + 9, x + 9, y - 9, stroke_width=3)
    svg += text(x + 16, y - 10, "critical batch", 14)
    x, y = spot(float(cost.updates), float(cost.samples))
    svg += line(x, y, x, _Y0, stroke_dasharray="3 3") + line(_X0, y, x, y, stroke_dasharray="3 3")
    old = spot(float(before.updates), float(before.samples))
    svg += circle(*old, 8, "none", "at the start", stroke="currentColor", stroke_dasharray="3 2")
    svg += circle(x, y, 8, COLORS["gradients"], stroke="currentColor", data_moves="batch")

    for i, (name, times) in enumerate({"updates": cost.updates, "tokens": cost.samples}.items()):
        at, high = (20 + 180 * i, 384) if narrow else (380, 96 + 84 * i)
        svg += text(at, high, f"{units.digits(times, 2)} ×", 30, font_weight=700)
        svg += text(at, high + 24, f"the fewest {name}", 15)
    for i, label in enumerate(["few updates: a short run", "few tokens: a cheap one"]):
        svg += text(20 if narrow else 380, (436 if narrow else 262) + 20 * i, label, 14)
    svg += _in_tokens(batch, critical, narrow)
    size = (_NARROW, 562) if narrow else (_ACROSS, 430)
    return Drawing(svg, *size, _cost_in_words(cost))


def _in_tokens(batch: float, critical: float, narrow: bool) -> str:
    """The batch and the critical batch on a line of tokens, from 0.1 to 100 million."""
    left, each, y = (40, 100, 518) if narrow else (70, 190, 386)

    def at(tokens: float) -> float:
        return left + each * (log10(tokens) - 5)

    svg = line(left, y, at(1e8), y)
    for tokens in (1e5, 1e6, 1e7, 1e8):
        svg += line(at(tokens), y - 5, at(tokens), y + 5)
        label = units.short(round(tokens)) if narrow else units.edited(tokens)
        svg += text(at(tokens), y + 24, label, 14, "middle")
    svg += line(at(critical), y - 16, at(critical), y + 8, stroke_width=3)
    anchor = "end" if critical > batch else "start"
    side = "start" if anchor == "end" else "end"
    gap = 6 if anchor == "start" else -6
    svg += text(at(critical) - gap, y - 22, "critical batch", 14, side)
    svg += circle(at(batch), y, 7, COLORS["gradients"], stroke="currentColor", data_moves="batch")
    return svg + text(at(batch) + gap, y - 22, "your batch", 14, anchor)


def _cost_in_words(cost: BatchCost) -> str:
    return (
        "A curve of updates against tokens, each over the fewest; in its middle the critical "
        "batch. The dot stands at "
        f"{units.digits(cost.updates, 2)} times the fewest updates and "
        f"{units.digits(cost.samples, 2)} times the fewest tokens."
    )


# --- how much of a step a stage waits


def stage_time(stages: int, passes: int, waits: float, narrow: bool = False) -> Drawing:
    """A stage's step as a bar: its passes, and what it waits while others fill and empty."""
    across, y = (_NARROW, 60) if narrow else (_ACROSS, 36)
    wide = (across - 40) * (1 - waits)
    svg = text(20, 24, "A GPU in one step", 16, font_weight=700)
    svg += rect(20, y, wide, 36, COLORS["useful"], "at work", rx=3)
    label = units.plural(passes, "pass")
    if fits(label, wide - 8):
        svg += text(20 + wide / 2, y + 23, label, 15, "middle", "#FFFFFF")
    rest = across - 40 - wide
    if rest > 1:
        svg += rect(20 + wide, y, rest, 36, GREY, "waits", opacity=0.18)
        svg += hatched(20 + wide, y, rest, 36)
    share = units.percent(waits) if waits else "nothing"
    note = f"waits {share}: {units.plural(stages - 1, 'turn')} of {passes + stages - 1:,}"
    if stages == 1:
        note = "one stage waits for no other"
    place = (20, 48, note, 15, "start") if narrow else (across - 20, 24, note, 15, "end")
    svg += text(*place)
    words = f"A GPU's step: {label}; {note}."
    return Drawing(svg, across, y + 48, words)
