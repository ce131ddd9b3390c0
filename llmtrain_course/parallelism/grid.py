"""The picture of GPUs in their nodes: replicas, stages, and groups that share matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from llmtrain_course.kit.drawing import GREY, Style, hatched, rect, text
from llmtrain_course.kit.layout import BESIDE, GAP, INK, SMALL, Picture, paragraph, text_width
from llmtrain_course.parallelism.places import NODE, Layout, letters
from llmtrain_helpers import units

_ROW, _EDGE, _MARK = 46, 6, 36
"""Pixels from a node to the next, from a GPU to the next, and across a mark of the key."""


def gpus_in_nodes(layout: Layout, rows: int = 0) -> Picture:
    """The GPUs in their nodes: replica by letter, stage by number and shade.

    Neighbours share matrices; then come the other replicas, and the next stage last.
    Shows six nodes at the most, where there are more the first ones of some stages.
    GPUs that are too few for a copy are hatched. There's room for `rows` nodes.
    """
    seen = sum(len(layout.in_node(node)) for node in layout.seen())
    words = (
        f"{units.plural(layout.num_gpus, 'GPU')} in rows of 8: tensor parallel {layout.tensor}, "
        f"pipeline {layout.pipeline}, context {layout.context}, "
        f"data parallel {layout.replicas:,}."
    )
    if layout.left_over:
        words += f" {units.plural(layout.left_over, 'GPU')} left over."
    if layout.crosses:
        words += " Tensor-parallel groups leave their nodes."
    return _Grid(layout, rows, seen, f"{words} {seen} of {layout.num_gpus:,} GPUs are shown.")


@dataclass(frozen=True)
class _Grid(Picture):
    """Nodes below each other with their split above them, and a key next to them or below.

    With room for `rows` nodes the key is below.
    """

    layout: Layout
    rows: int
    seen: int
    words: str

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Draw the title, the nodes and the key, which has room for four entries."""
        layout, beside = self.layout, width >= BESIDE
        ways = {"TP": layout.tensor, "PP": layout.pipeline, "CP": layout.context}
        product = " × ".join(f"{way} {n:,}" for way, n in ways.items() if n > 1 or way != "CP")
        product = f"= {product} × DP {layout.replicas:,}"
        product += f" + {layout.left_over:,} left over" if layout.left_over else ""
        gpus = units.plural(layout.num_gpus, "GPU")
        svg, y = paragraph(left, top, f"{gpus} {product}" if beside else gpus, width, 18, True)
        drawn, y = ("", y) if beside else paragraph(left, y, product, width, SMALL)
        columns = 2 if beside and self.rows else 1  # then the nodes are as wide as the card
        next_to = beside and columns == 1
        room = 0.57 * width if next_to else width
        nodes, low = self._nodes(left, y + 8, room, "node " * beside)
        x, y = (left + room + GAP, y + 8) if next_to else (left, low + 8)
        svg += drawn + nodes
        for i, (mark, *lines) in enumerate(_key(layout)):
            across, down = x + i % columns * width / 2, y + i // columns * _ROW
            svg += f'<g transform="translate({across:g} {down:g})">{mark}</g>'
            for k, line in enumerate(lines):
                place = across + _ROW, down + 15 + 18 * k
                svg += text(*place, line, SMALL, font_weight=600 - 200 * k)
        return svg, max(low, y + 4 // columns * _ROW)

    def _nodes(self, left: float, top: float, width: float, word: str) -> tuple[str, float]:
        """The nodes, each with its name, and how many they are of how many."""
        layout, nodes = self.layout, self.layout.seen()
        names = [f"{word if n < 99 else ''}{n + 1:,}" for n in nodes]
        begin = left + max(text_width(name, SMALL) for name in names) + 10
        pitch = (left + width - begin) / NODE
        row = min(max(self.rows * _ROW / len(nodes), _ROW), 1.8 * _ROW)
        svg, y = "", top + 3
        for name, node, following in zip(names, nodes, [*nodes[1:], nodes[-1] + 1], strict=True):
            svg += text(begin - 10, y + row / 2, name, SMALL, "end")
            svg += _node(layout, layout.in_node(node), (begin, y, pitch, row - 10))
            y += row
            if following > node + 1:
                first, last = node + 2, following
                label = f"nodes {first:,} to {last:,}" if last > first else f"node {first:,}"
                svg += text(begin, y + 11, f"⋮  {label}, not drawn", SMALL)
                y += _ROW / 2
        note = "A row is a node."
        if self.seen < layout.num_gpus:
            note = f"{len(nodes)} of {-(-layout.num_gpus // NODE):,} nodes are drawn, "
            note += f"{self.seen} of {layout.num_gpus:,} GPUs."
        drawn, y = paragraph(left, y, note, width, SMALL)
        return svg + drawn, max(y, top + 3 + self.rows * _ROW + SMALL + 5)


_Place = tuple[float, float, float, float]
"""Left, top, width and height."""


def _node(layout: Layout, here: range, first: _Place) -> str:
    """The GPUs of a node, and the frames of its tensor-parallel groups.

    `first` is the place of the first one with the free edge after it.
    """
    (left, y, pitch, high), svg = first, ""
    for gpu in here:
        place = left + pitch * (gpu - here.start), y, pitch - _EDGE, high
        svg += _gpu(layout, gpu, place, f"GPU {gpu + 1}: ")
    for group, gpus in groupby(here, lambda gpu: gpu // layout.tensor):
        (begin, *others), at = [*gpus], layout.place(group * layout.tensor)
        if at and (layout.tensor > 1 or at[0] == 0):
            across = pitch * (1 + len(others)) - _EDGE
            place = left + pitch * (begin - here.start), y, across, high
            svg += _frame(place, 4 if at[0] == 0 else 1.5, layout.crosses)
    return svg


def _gpu(layout: Layout, gpu: int, place: _Place, title: str = "") -> str:
    """A GPU: its replica's letter and its stage's number on its stage's shade.

    Every other replica's is round, and one of no replica is hatched.
    """
    at = layout.place(gpu)
    if at is None:
        name = title and f"{title}left over"
        return rect(*place, "none", name, stroke=GREY, rx=3) + hatched(*place)
    replica, stage, rank = letters(at[0]), at[1] + 1, at[2] + 1
    name = title and f"{title}replica {replica}, stage {stage}"
    shade = _shade(at[1], layout.pipeline)
    svg = rect(*place, shade, name, rx=16 if at[0] % 2 else 3)
    if layout.context == 1:
        return svg + _label(place, f"{replica}{stage}", shade)
    return svg + _label(place, f"{replica}{stage}", shade, -7) + _label(place, f"c{rank}", shade, 9)


def _label(place: _Place, words: str, shade: str, lower: float = 0) -> str:
    """Words in the middle of a place, or so much lower."""
    x, y = place[0] + place[2] / 2, place[1] + place[3] / 2 + 5 + lower
    return text(x, y, words, SMALL, "middle", _ink(shade), font_weight=400 if lower > 0 else 600)


def _frame(place: _Place, thick: float, dashed: bool) -> str:
    """A frame around GPUs that share matrices."""
    style: Style = {"stroke": INK, "rx": 6, "stroke_width": thick}
    style |= {"stroke_dasharray": "2 3"} if dashed else {}
    x, y, wide, high = place
    return rect(x - 3, y - 3, wide + 6, high + 6, **style)


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


def _key(layout: Layout) -> Iterator[tuple[str, str, str]]:
    """What letter, number, shade and frame say: a mark and two lines for each."""
    place, each = (0, 0, _MARK, _MARK), units.plural(layout.a_replica, "GPU")
    left_over = _gpu(layout, layout.num_gpus - 1, place)
    if not layout.replicas:
        yield left_over, "DP: no whole replica", f"one needs {each}"
        return
    mark = _gpu(layout, 0, place) + _frame(place, 4, layout.crosses)
    yield mark, f"DP: {units.plural(layout.replicas, 'replica')}", f"of {each}; bold: A"
    mark, note = _frame(place, 1.5, layout.crosses), "share each matrix"
    if layout.tensor == 1:
        yield mark, "TP 1: no frames", "no matrix is shared"
    else:
        note = "leave the node: slow" if layout.crosses else note
        yield mark, f"TP: frames of {layout.tensor} GPUs", note
    ends, mark = sorted({0, layout.pipeline - 1}), ""
    for i, stage in enumerate(ends):
        half, shade = _MARK / len(ends), _shade(stage, layout.pipeline)
        side = half * i, 0, half, _MARK
        mark += rect(*side, shade) + _label(side, f"{stage + 1}", shade)
    if layout.pipeline == 1:
        yield mark, "PP: one stage", "with all the layers"
    else:
        yield mark, f"PP: {layout.pipeline} stages, by shade", "some of the layers each"
    if layout.left_over:
        label = f"{units.plural(layout.left_over, 'GPU')} left over"
        yield left_over, label, f"a replica needs {layout.a_replica:,}"
    elif layout.context > 1:
        yield "", f"CP: c1 to c{layout.context}", "share each sequence"
