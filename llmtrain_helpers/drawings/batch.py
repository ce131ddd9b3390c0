"""Drawings of chapter 04: GPUs in their grid, and a step from passes to update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.drawings.common import (
    COLORS,
    Drawing,
    arrow,
    ghost,
    line,
    rect,
    text,
)

NODE = 8
"""GPUs in a node, as nearly everywhere."""

_ROWS, _LEFT, _TOP = 8, 74, 58
_ACROSS = 744
_CELL, _HIGH, _WIDE, _DEEP = 40, 36, 46, 46
"""Cells of the grid: width, height, and from one to the next across and down."""


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
    found = ""
    number += 1
    while number:
        number, last = divmod(number - 1, 26)
        found = chr(65 + last) + found
    return found


def gpu_grid(
    num_gpus: int,
    tensor: int = 1,
    pipeline: int = 1,
    context: int = 1,
    before: Sequence[int] = (),
) -> Drawing:
    """The GPUs in their nodes: replica by letter, stage by number and shade.

    Shows the first 64. `before` are the four numbers of the last picture: what was
    replica A then is outlined.
    """
    layout = Layout(num_gpus, tensor, pipeline, context)
    seen = min(num_gpus, _ROWS * NODE)
    rows = -(-seen // NODE)
    old = Layout(*before) if before else layout
    body = [_product(layout), *_nodes(rows)]
    body += [_cell(layout, gpu) for gpu in range(seen)]
    body += _groups(layout, seen) if tensor > 1 else []
    body += _old_replica(layout, old, seen)
    body += _key(layout, old)
    height = _TOP + max(rows * _DEEP + 36, 244)
    body.append(text(_LEFT, _TOP + rows * _DEEP + 20, _shown(layout, seen, rows), 14))
    return Drawing("".join(body), _ACROSS, height, _words(layout, seen))


def _product(layout: Layout) -> str:
    """The line that says how the number of GPUs comes about."""
    parts = {"TP": layout.tensor, "PP": layout.pipeline}
    parts |= {"CP": layout.context} if layout.context > 1 else {}
    told = " × ".join(f"{name} {n:,}" for name, n in parts.items())
    words = f"{layout.num_gpus:,} GPUs = {told} × DP {layout.replicas:,}"
    return text(_LEFT, 36, words, 22, font_weight=700)


def _nodes(rows: int) -> list[str]:
    middle = _HIGH / 2 + 5
    return [
        text(_LEFT - 10, _TOP + row * _DEEP + middle, f"node {row + 1}", 14, "end")
        for row in range(rows)
    ]


def _corner(gpu: int) -> tuple[int, int]:
    """Left and top of a GPU's cell."""
    return _LEFT + gpu % NODE * _WIDE, _TOP + gpu // NODE * _DEEP


def _cell(layout: Layout, gpu: int) -> str:
    """A GPU: its replica's letter and its stage's number on the stage's shade."""
    replica, stage, rank = layout.place(gpu)
    x, y = _corner(gpu)
    name = f"{letters(replica)}{stage + 1}"
    title = f"GPU {gpu + 1}: replica {letters(replica)}, stage {stage + 1}"
    high = y + _HIGH / 2 + (6 if layout.context == 1 else -1)
    drawn = _shaded(x, y, stage, layout.pipeline, title, replica)
    ink = _ink(_shade(stage, layout.pipeline))
    drawn += text(x + _CELL / 2, high, name, 16, "middle", ink, font_weight=600)
    if layout.context > 1:
        drawn += text(x + _CELL / 2, y + _HIGH - 4, f"c{rank + 1}", 13, "middle", ink)
    return drawn


def _shaded(
    x: float, y: float, stage: int, stages: int, title: str = "", replica: int = 0
) -> str:
    """A cell in its stage's shade: every other replica's is round."""
    round_by = 16 if replica % 2 else 3
    return rect(x, y, _CELL, _HIGH, _shade(stage, stages), title, rx=round_by)


@cache
def _shade(stage: int, stages: int) -> str:
    """From the weights' blue to a pale one, stage after stage."""
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


def _runs(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The GPUs from first up to last, cut at the ends of nodes."""
    while first < last:
        end = min(last, (first // NODE + 1) * NODE)
        yield first, end
        first = end


def _around(first: int, end: int) -> tuple[float, float, float, float]:
    """The frame of neighbours in one node."""
    x, y = _corner(first)
    return x - 3, y - 3, (end - first - 1) * _WIDE + _CELL + 6, _HIGH + 6


def _groups(layout: Layout, seen: int) -> list[str]:
    """The frame of each tensor-parallel group; dashed where it leaves its node."""
    style: dict[str, Any] = {"stroke": "currentColor", "stroke_width": 2, "rx": 6}
    style |= {"stroke_dasharray": "2 3"} if layout.crosses else {}
    return [
        rect(*_around(*run), **style)
        for first in range(0, seen, layout.tensor)
        for run in _runs(first, min(first + layout.tensor, seen))
    ]


def _old_replica(layout: Layout, old: Layout, seen: int) -> list[str]:
    """What was replica A, or was there, before the change."""
    if old == layout:
        return []
    size = min(old.a_replica, _ROWS * NODE)
    gone = range(seen, min(old.num_gpus, len(range(0, seen, NODE)) * NODE))
    drawn = [ghost(*_corner(gpu), _CELL, _HIGH) for gpu in gone]
    if old.a_replica == layout.a_replica:
        return drawn
    frames = [_around(*run) for run in _runs(0, min(size, seen))]
    told = "replica A before"
    return drawn + [ghost(x - 3, y - 3, w + 6, h + 6, told) for x, y, w, h in frames]


def _key(layout: Layout, old: Layout) -> list[str]:
    """What letter, number, shade and frame say, to the right of the grid."""
    x, y = 462, _TOP
    lines = [_of_cell(x, y, layout), _of_stage(x, y + 56, layout)]
    lines.append(_of_tensor(x, y + 112, layout))
    lines.append(_of_replicas(x, y + 168, layout))
    if old.a_replica != layout.a_replica:
        told = f"before: replica A had {_gpus(old.a_replica)}"
        lines += [ghost(x, y + 218, _CELL, 16), text(x + 52, y + 231, told, 14)]
    return lines


def _beside(x: float, y: float, first: str, second: str) -> str:
    return text(x + 52, y + 15, first, 15, font_weight=600) + text(
        x + 52, y + 33, second, 15
    )


def _of_cell(x: float, y: float, layout: Layout) -> str:
    drawn = _shaded(x, y, 0, layout.pipeline)
    drawn += text(x + 20, y + 24, "A1", 16, "middle", "#FFFFFF", font_weight=600)
    also = f", c1 of {layout.context}" if layout.context > 1 else ""
    return drawn + _beside(x, y, "one GPU", f"replica A, stage 1{also}")


def _of_stage(x: float, y: float, layout: Layout) -> str:
    if layout.pipeline == 1:
        return _shaded(x, y, 0, 1) + _beside(
            x, y, "one stage", "each GPU has all layers"
        )
    last = layout.pipeline - 1
    half = _CELL / 2
    ends = [(0, "1", 0.0), (last, f"{layout.pipeline}", half)]
    drawn = "".join(
        rect(x + dx, y, half, _HIGH, _shade(stage, last + 1))
        + text(x + dx + 10, y + 24, n, 15, "middle", _ink(_shade(stage, last + 1)))
        for stage, n, dx in ends
    )
    told = f"PP: {layout.pipeline} pipeline stages"
    return drawn + _beside(x, y, told, "numbers: groups of layers")


def _of_tensor(x: float, y: float, layout: Layout) -> str:
    dashes = {"stroke_dasharray": "2 3"} if layout.crosses else {}
    frame = rect(
        x, y, _CELL, _HIGH, stroke="currentColor", stroke_width=2, rx=6, **dashes
    )
    if layout.tensor == 1:
        return frame + _beside(x, y, "TP 1: no frames", "no matrix is shared")
    told = "leave the node: slow" if layout.crosses else "share each matrix"
    return frame + _beside(x, y, f"TP: frames of {layout.tensor} GPUs", told)


def _of_replicas(x: float, y: float, layout: Layout) -> str:
    name = "A" if layout.replicas == 1 else "B1"
    mark = _shaded(x, y, 0, layout.pipeline, replica=int(layout.replicas > 1))
    mark += text(x + 20, y + 24, name, 16, "middle", "#FFFFFF", font_weight=600)
    count = "1 replica" if layout.replicas == 1 else f"{layout.replicas:,} replicas"
    each = "all" if layout.replicas == 1 else "letters;"
    told = f"{each} {_gpus(layout.a_replica)}"
    told += " in each" if layout.replicas > 1 else ""
    return mark + _beside(x, y, f"DP: {count}", told)


def _gpus(number: int) -> str:
    return f"{number:,} GPU{'s' if number > 1 else ''}"


def _shown(layout: Layout, seen: int, rows: int) -> str:
    if seen == layout.num_gpus:
        return f"All {_gpus(seen)} are shown; a row is a node."
    nodes = -(-layout.num_gpus // NODE)
    return f"{rows} of {nodes:,} nodes are shown, {seen} of {layout.num_gpus:,} GPUs."


def _words(layout: Layout, seen: int) -> str:
    """The grid in words."""
    told = (
        f"{layout.num_gpus:,} GPUs in rows of 8: tensor parallel {layout.tensor}, "
        f"pipeline {layout.pipeline}, context {layout.context}, "
        f"data parallel {layout.replicas:,}. "
        f"Replica A is the first {_gpus(layout.a_replica)}."
    )
    if layout.crosses:
        told += " Tensor-parallel groups leave their nodes."
    return told + f" {seen} of {layout.num_gpus:,} GPUs are shown."


# --- a step in time

_PASSES, _END = 92, 420
"""Where the passes of a replica begin and end."""

_ROW, _PASS = 44, 34


def step_in_time(
    micro_batch_size: int,
    accumulation: int,
    replicas: int,
    before: Sequence[int] = (),
) -> Drawing:
    """A step: passes of each replica, the average of the gradients, the update.

    Below, the activations that a GPU keeps. `before` are the three numbers of the last
    picture, drawn as outlines.
    """
    old = tuple(before) or (micro_batch_size, accumulation, replicas)
    rows = min(replicas, 2)
    top, floor = 98, 98 + rows * _ROW + (26 if replicas > rows else 0)
    body = [_headings(micro_batch_size, accumulation)]
    body += [_replica(top + i * _ROW, i, accumulation) for i in range(rows)]
    if replicas > rows:
        more = f"… and {replicas - rows:,} more, each with sequences of its own"
        body.append(text(_PASSES, floor - 8, more, 14))
    body += [_average(top, rows, replicas), *_old_passes(top, accumulation, old[1])]
    body.append(_memory(floor + 18, micro_batch_size, accumulation, old))
    total = micro_batch_size * accumulation * replicas
    body.append(_sum(floor + 146, micro_batch_size, accumulation, replicas))
    words = _step_words(micro_batch_size, accumulation, replicas, total)
    return Drawing("".join(body), _ACROSS, floor + 188, words)


def _headings(micro: int, passes: int) -> str:
    one = "1 pass" if passes == 1 else f"{passes:,} passes, one after another"
    told = [
        (_PASSES, one),
        (452, "one average"),
        (606, "the update"),
    ]
    each = f"{_sequences(micro)} in each"
    return text(_PASSES, 54, each, 15) + "".join(
        text(x, 34, words, 15, font_weight=600) for x, words in told
    )


def _sequences(number: int) -> str:
    return f"{number:,} sequence{'s' if number > 1 else ''}"


def boxes(passes: int) -> list[tuple[float, float, str]]:
    """Left, width and label of the passes that are drawn: all of them up to six."""
    if passes <= 6:
        wide = min(82.0, (_END - _PASSES) / passes)
        return [(_PASSES + i * wide, wide - 4, str(i + 1)) for i in range(passes)]
    wide = 76.0
    first = [(_PASSES + i * wide, wide - 4, str(i + 1)) for i in range(3)]
    return [*first, (_END - wide, wide - 4, f"{passes:,}")]


def _replica(y: float, number: int, passes: int) -> str:
    """The passes of one replica, and arrows on to the average and the update."""
    drawn = text(_PASSES - 12, y + 22, f"replica {letters(number)}", 14, "end")
    for x, wide, label in boxes(passes):
        name = f"pass {label}" if wide > 60 else label
        drawn += rect(x, y, wide, _PASS, COLORS["activations"], rx=4)
        drawn += text(x + wide / 2, y + 22, name, 14, "middle", "#FFFFFF")
    if passes > 6:
        gap = (boxes(passes)[2][0] + boxes(passes)[2][1] + boxes(passes)[3][0]) / 2
        drawn += text(gap, y + 22, "…", 20, "middle")
    last = boxes(passes)[-1]
    drawn += arrow(last[0] + last[1] + 4, y + 17, 448, y + 17)
    drawn += arrow(584, y + 17, 602, y + 17)
    drawn += rect(606, y, 96, _PASS, COLORS["optimizer"], rx=4)
    return drawn + text(654, y + 22, "same step", 15, "middle", "#FFFFFF")


def _average(top: float, rows: int, replicas: int) -> str:
    """Where the gradients of all replicas meet."""
    high = rows * _ROW - (_ROW - _PASS)
    drawn = rect(452, top, 130, high, COLORS["gradients"], rx=4)
    words = ["gradients,", "not weights"] if rows > 1 else ["gradients"]
    first = top + high / 2 + (5 if rows == 1 else -4)
    for i, told in enumerate(words):
        drawn += text(517, first + 19 * i, told, 15, "middle", "#FFFFFF")
    if replicas > 1:
        told = f"of {replicas:,} replicas"
        drawn += text(517, top - 10, told, 14, "middle")
    return drawn


def _old_passes(top: float, passes: int, old: int) -> list[str]:
    """A strip above the passes with those of the last picture."""
    if passes == old:
        return []
    told = f"before: {old:,} pass{'es' if old > 1 else ''}"
    drawn = [ghost(x, top - 17, wide, 10) for x, wide, _ in boxes(old)]
    return [*drawn, text(_PASSES + 160, 54, told, 14)]


_TALLEST = 72
"""The height of eight sequences' activations, or of more where there are more."""


def _height(micro: int, old: int) -> float:
    return _TALLEST * micro / max(micro, old, 8)


def _memory(top: float, micro: int, passes: int, old: Sequence[int]) -> str:
    """Activations that a GPU keeps, rising forward and falling back in each pass."""
    base = top + _TALLEST + 4
    told = f"activations of {_sequences(micro)}"
    drawn = _saw(base, _height(micro, old[0]), passes)
    if micro != old[0]:
        drawn += _saw(base, _height(old[0], micro), passes, before=True)
        drawn += text(452, top + 76, f"dashed: of {_sequences(old[0])}, before", 14)
    drawn += line(_PASSES, base, _END, base)
    for i, words in enumerate(["kept on", "a GPU"]):
        drawn += text(_PASSES - 12, base - 20 + 18 * i, words, 14, "end")
    drawn += text(452, top + 34, told, 15, font_weight=600)
    return drawn + text(452, top + 55, "at a time, in every pass", 15)


def _saw(base: float, high: float, passes: int, before: bool = False) -> str:
    """One tooth a pass: up in a third of it, down in the rest."""
    style = f'fill="{COLORS["activations"]}"'
    if before:
        style = 'fill="none" stroke="currentColor" stroke-dasharray="5 4"'
    return "".join(
        f'<polygon points="{x:.1f},{base:.1f} {x + wide / 3:.1f},{base - high:.1f} '
        f'{x + wide:.1f},{base:.1f}" {style}/>'
        for x, wide, _ in boxes(passes)
    )


def _sum(y: float, micro: int, passes: int, replicas: int) -> str:
    total = units.exact(micro * passes * replicas)
    words = f"{micro:,} × {passes:,} × {replicas:,} = {total} sequences a step"
    told = "micro-batch × accumulation × replicas"
    return text(_PASSES, y, words, 20, font_weight=700) + text(
        _PASSES, y + 22, told, 14
    )


def _step_words(micro: int, passes: int, replicas: int, total: int) -> str:
    """The step in words."""
    each = "one pass" if passes == 1 else f"{passes:,} passes one after another"
    makes = f"each of {replicas:,} replicas makes"
    who = "one replica makes" if replicas == 1 else makes
    return (
        f"A step: {who} {each}, of {_sequences(micro)}; "
        "then the gradients, not the weights, meet in one average; then the update, "
        f"the same on every replica. {units.exact(total)} sequences in all; "
        f"activations are kept for {_sequences(micro)} at a time."
    )
