"""The picture of GPUs in their nodes: replicas, stages, and groups that share matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from llmtrain_course.kit.drawing import GREY, Drawing, Style, hatched, rect, text
from llmtrain_helpers import units

_ACROSS = 680
"""Pixels across on a page."""

NODE = 8
"""GPUs in a node, as nearly everywhere."""


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
    title = f"{units.plural(layout.num_gpus, 'GPU')} = {product} × DP {layout.replicas:,}"
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
        return [_idle_cell(x, y), _key_text(x, y, "DP: no whole replica", note)]
    edge: Style = {"stroke": "currentColor", "rx": 6}
    bold: Style = {**edge, "stroke_width": 4}
    svg = [_shaded(x, y, 0, layout.pipeline), rect(x - 3, y - 3, 42, 42, **bold)]
    svg.append(text(x + half, y + 24, "A1", 16, "middle", "#FFFFFF", font_weight=600))
    copies = units.plural(layout.replicas, "replica")
    note = f"of {units.plural(layout.a_replica, 'GPU')}; bold: A"
    svg.append(_key_text(x, y, f"DP: {copies}", note))

    y += 46
    style: Style = {**edge, "stroke_width": 1.5}
    if layout.crosses:
        style["stroke_dasharray"] = "2 3"
    svg.append(rect(x, y, _CELL, _HIGH, **style))
    if layout.tensor == 1:
        svg.append(_key_text(x, y, "TP 1: no frames", "no matrix is shared"))
    else:
        note = "leave the node: slow" if layout.crosses else "share each matrix"
        svg.append(_key_text(x, y, f"TP: frames of {layout.tensor} GPUs", note))

    y += 46
    if layout.pipeline == 1:
        svg += [_shaded(x, y, 0, 1), _key_text(x, y, "PP: one stage", "with all the layers")]
    else:
        for stage, left in ((0, x), (layout.pipeline - 1, x + half)):
            shade = _shade(stage, layout.pipeline)
            svg.append(rect(left, y, half, _HIGH, shade))
            svg.append(text(left + 9, y + 24, f"{stage + 1}", 14, "middle", _ink(shade)))
        label = f"PP: {layout.pipeline} stages, by shade"
        svg.append(_key_text(x, y, label, "some of the layers each"))

    y += 46
    if layout.left_over:
        svg.append(_idle_cell(x, y))
        label = f"{units.plural(layout.left_over, 'GPU')} left over"
        svg.append(_key_text(x, y, label, f"a replica takes {layout.a_replica:,}"))
    elif layout.context > 1:
        svg.append(_key_text(x, y, f"CP: c1 to c{layout.context}", "share each sequence"))
    return svg


def _key_text(x: float, y: float, first: str, second: str) -> str:
    """Two lines of words beside a mark of the key."""
    return text(x + 50, y + 15, first, 15, font_weight=600) + text(x + 50, y + 33, second, 15)


def _grid_in_words(layout: Layout, seen: int) -> str:
    words = (
        f"{units.plural(layout.num_gpus, 'GPU')} in rows of 8: tensor parallel {layout.tensor}, "
        f"pipeline {layout.pipeline}, context {layout.context}, "
        f"data parallel {layout.replicas:,}."
    )
    if layout.left_over:
        words += f" {units.plural(layout.left_over, 'GPU')} left over."
    if layout.crosses:
        words += " Tensor-parallel groups leave their nodes."
    return words + f" {seen} of {layout.num_gpus:,} GPUs are shown."


def too_few(layout: Layout) -> str:
    """Say that there are fewer GPUs than a replica takes."""
    each = units.exact(layout.a_replica)
    verb = "is" if layout.num_gpus == 1 else "are"
    return f"A replica takes {each} GPUs, and there {verb} {units.exact(layout.num_gpus)}."


def idle_gpus(layout: Layout) -> str:
    """Say how many GPUs no replica uses, not which numbers of GPUs would leave none."""
    over, all_gpus = units.plural(layout.left_over, "GPU"), units.exact(layout.num_gpus)
    return f"{over} of {all_gpus} {'has' if layout.left_over == 1 else 'have'} nothing to do"
