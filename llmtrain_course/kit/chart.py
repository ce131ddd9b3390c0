"""Charts on two axes: a description of scales and marks, laid out for any width.

    x = Scale(1 / 16, 8, "times the best size", ticks=…, log=True, grid=True)
    y = Scale(1, 8, "times the least work", ticks=(1, 2, 4, 8), log=True, grid=True)
    Chart(x, y, [Path(curve, BLUE), Dot(share, times, RED, label="2.3 ×")], words)

No mark has pixels: the chart makes room for numbers, names and keys, keeps labels apart,
and puts what's secondary next to the plane or below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import hypot
from typing import Self

from llmtrain_course.kit.drawing import Style, circle, hatched, line, rect, text
from llmtrain_course.kit.layout import (
    BESIDE,
    GAP,
    HALO,
    INK,
    PAD,
    SMALL,
    USUAL,
    Box,
    Fact,
    Picture,
    Swatch,
    facts_width,
    grip,
    in_rows,
    key,
    list_facts,
    paragraph,
    patch,
    place_label,
    ring,
    rows_high,
    spread,
    text_width,
    wrapped,
)
from llmtrain_course.kit.scale import Scale, x_axis, y_axis

Point = tuple[float, float]


@dataclass(frozen=True)
class Plane:
    """Two scales, and the rectangle on which they lie."""

    x: Scale
    y: Scale
    left: float
    right: float
    top: float
    bottom: float

    def across(self, value: float) -> float:
        """The place of a value on the horizontal axis, at its end where it's off it."""
        return self.left + self.x.share(value) * (self.right - self.left)

    def down(self, value: float) -> float:
        """The place of a value on the vertical axis, at its end where it's off it."""
        return self.bottom - self.y.share(value) * (self.bottom - self.top)

    def at(self, x: float, y: float) -> Point:
        """The place of a point."""
        return self.across(x), self.down(y)

    def holds(self, x: float, y: float) -> bool:
        """Whether a point lies on the plane."""
        return self.x.holds(x) and self.y.holds(y)


@dataclass(frozen=True)
class Mark:
    """Something on a plane. A `hidden` one isn't drawn, but the key keeps its place.

    With a `name` it has an entry in the key, with room for its `longest` in all settings.
    """

    name: str = field(default="", kw_only=True)
    hidden: bool = field(default=False, kw_only=True)
    longest: str = field(default="", kw_only=True)

    def svg(self, plane: Plane) -> str:
        """Draw it."""
        raise NotImplementedError

    def unnamed(self) -> Self:
        """The same without an entry in the key: a list of facts says what it is."""
        return replace(self, name="")

    def swatch(self) -> Swatch:
        """Return its entry in the key."""
        raise NotImplementedError

    def covers(self, plane: Plane) -> Iterator[Box]:
        """The places where a label would touch it."""
        yield from ()


@dataclass(frozen=True)
class Path(Mark):
    """A line through points, cut where it leaves the plane; `end` names it at its right end.

    The first line of `end` is in the line's colour, the others say what's true of it.
    """

    points: Sequence[Point]
    color: str = INK
    width: float = 3
    dash: str = ""
    opacity: float = 1
    end: Sequence[str] = ()

    def svg(self, plane: Plane) -> str:
        """Draw each piece that lies on the plane."""
        style = f'fill="none" stroke="{self.color}" stroke-width="{self.width:g}"'
        style += f' stroke-dasharray="{self.dash}"' if self.dash else ""
        style += f' opacity="{self.opacity:g}"' if self.opacity != 1 else ""
        svg = ""
        for piece in self.pieces(plane):
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in piece)
            svg += f'<polyline points="{points}" {style}/>'
        return svg

    def pieces(self, plane: Plane) -> Iterator[list[Point]]:
        """The parts on the plane, in pixels: each part's ends lie on its edges."""
        shares = [(plane.x.free_share(x), plane.y.free_share(y)) for x, y in self.points]
        piece: list[Point] = []
        for one, other in pairwise(shares):
            cut = _cut(one, other)
            if cut is None:
                continue
            first, last = (_pixels(plane, *end) for end in cut)
            if not piece or piece[-1] != first:
                if piece:
                    yield piece
                piece = [first]
            piece.append(last)
        if piece:
            yield piece

    def swatch(self) -> Swatch:
        """A short piece of it."""
        style: Style = {"stroke": self.color, "stroke_width": self.width, "opacity": self.opacity}
        if self.dash:
            style["stroke_dasharray"] = self.dash
        return Swatch(lambda x, y: line(x, y + 7, x + 18, y + 7, **style), self.name, self.hidden)

    def covers(self, plane: Plane) -> Iterator[Box]:
        """Small boxes along it."""
        for piece in self.pieces(plane):
            for (x, y), (x2, y2) in pairwise(piece):
                steps = max(1, int(max(abs(x2 - x), abs(y2 - y)) / 6))
                for i in range(steps + 1):
                    a, b = x + (x2 - x) * i / steps, y + (y2 - y) * i / steps
                    yield Box(a - 2, b - 2, a + 2, b + 2)


def _cut(one: Point, other: Point) -> tuple[Point, Point] | None:
    """The part of a straight line between 0 and 1 in both directions (Liang and Barsky)."""
    if all(0 <= share <= 1 for share in (*one, *other)):
        return one, other
    begin, end = 0.0, 1.0
    for a, b in zip(one, other, strict=True):
        step = b - a
        if abs(step) < 1e-12:
            if not -1e-9 <= a <= 1 + 1e-9:
                return None
            continue
        enters, leaves = sorted((-a / step, (1 - a) / step))
        begin, end = max(begin, enters), min(end, leaves)
    if begin > end:
        return None
    first, last = (
        tuple(a + t * (b - a) for a, b in zip(one, other, strict=True)) for t in (begin, end)
    )
    return (first[0], first[1]), (last[0], last[1])


def _pixels(plane: Plane, x: float, y: float) -> Point:
    across = plane.left + x * (plane.right - plane.left)
    return across, plane.bottom - y * (plane.bottom - plane.top)


@dataclass(frozen=True)
class Area(Mark):
    """All between a lower and an upper line over the same values of x, with a light `edge`."""

    xs: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]
    color: str
    opacity: float = 1
    title: str = ""
    edge: bool = False

    def svg(self, plane: Plane) -> str:
        """Draw a polygon, cut at the plane's edges."""
        up = [plane.at(x, y) for x, y in zip(self.xs, self.upper, strict=True)]
        low = [plane.at(x, y) for x, y in zip(self.xs, self.lower, strict=True)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*up, *reversed(low)])
        look = f' opacity="{self.opacity:g}"' if self.opacity != 1 else ""
        thick = max(low[1] - high[1] for low, high in zip(low, up, strict=True)) > 5
        look += ' stroke="#FFFFFF" stroke-width="1"' if self.edge and thick else ""
        title = f"<title>{self.title or self.name}</title>"
        return f'<polygon points="{points}" fill="{self.color}"{look}>{title}</polygon>'

    def swatch(self) -> Swatch:
        """A patch of it."""
        return patch(self.color, self.name, self.opacity, self.hidden)


def stacked(
    xs: Sequence[float],
    layers: Mapping[str, Sequence[float]],
    colors: Mapping[str, str],
    floor: float = 0,
    opacity: float = 1,
) -> list[Area]:
    """Areas on top of each other, the first at the bottom, each by its name in the key."""
    lower, areas = [float(floor)] * len(xs), list[Area]()
    for name, sizes in layers.items():
        upper = [low + float(size) for low, size in zip(lower, sizes, strict=True)]
        areas.append(Area(xs, lower, upper, colors[name], opacity, name, name=name))
        lower = upper
    return areas


@dataclass(frozen=True)
class Band(Mark):
    """A strip over the whole plane between two values of one axis, with words in it."""

    low: float
    high: float
    color: str
    axis: str = "x"
    opacity: float = 0.25
    label: str = ""
    hatch: bool = False

    def _box(self, plane: Plane) -> Box:
        if self.axis == "x":
            return Box(plane.across(self.low), plane.top, plane.across(self.high), plane.bottom)
        return Box(plane.left, plane.down(self.high), plane.right, plane.down(self.low))

    def svg(self, plane: Plane) -> str:
        """Draw the strip, and its words where they fit."""
        left, top, right, bottom = self._box(plane)
        size = left, top, max(right - left, 0), max(bottom - top, 0)
        svg = hatched(*size) if self.hatch else rect(*size, self.color, opacity=self.opacity)
        if self.label and text_width(self.label, 16, True) <= right - left:
            middle = (left + right) / 2, (top + bottom) / 2 + 5
            svg += text(*middle, self.label, 16, "middle", font_weight=700)
        return svg

    def swatch(self) -> Swatch:
        """A patch of it."""
        if self.hatch:
            return Swatch(lambda x, y: hatched(x + 2, y, 14, 14, 5), self.name, self.hidden)
        return patch(self.color, self.name, self.opacity, self.hidden)

    def covers(self, plane: Plane) -> Iterator[Box]:
        """Its words, not the strip."""
        if self.label:
            left, top, right, bottom = self._box(plane)
            half = text_width(self.label, 16, True) / 2
            x, y = (left + right) / 2, (top + bottom) / 2
            yield Box(x - half, y - 12, x + half, y + 8)


@dataclass(frozen=True)
class Column(Mark):
    """A bar that stands on the horizontal axis, from `left` to `right` on it.

    `value` stands above it, and `label` in it where that fits; `slants` is a colour of
    slanted lines over its own.
    """

    left: float
    right: float
    high: float
    color: str = "none"
    low: float = 0
    title: str = ""
    value: str = ""
    hatch: bool = False
    outline: bool = False
    opacity: float = 1
    bold: bool = False
    label: str = ""
    slants: str = ""

    def svg(self, plane: Plane) -> str:
        """Draw it, its value, and its label where that fits."""
        left, right = plane.across(self.left), plane.across(self.right)
        top, bottom = plane.down(self.high), plane.down(self.low)
        style: Style = {"opacity": self.opacity} if self.opacity != 1 else {}
        if self.outline or self.color == "none":
            style |= {"stroke": INK, "stroke_width": 1}
        size = left, top, right - left, bottom - top
        svg = rect(*size, self.color, self.title, **style)
        svg += hatched(*size, step=6) if self.hatch else ""
        if self.slants and min(right - left, bottom - top) > 3:
            svg += hatched(*size, 9, self.slants)
        room = right - left - 6, bottom - top - 4
        if self.label and room[1] >= SMALL and text_width(self.label, SMALL) <= room[0]:
            middle = (left + right) / 2, (top + bottom) / 2 + 5
            svg += text(*middle, self.label, SMALL, "middle", "white")
        if self.value:
            weight: Style = {"font_weight": 700} if self.bold else {}
            svg += text((left + right) / 2, top - 7, self.value, SMALL, "middle", **weight)
        return svg

    def swatch(self) -> Swatch:
        """A patch of it."""
        if self.hatch:
            return Swatch(lambda x, y: hatched(x + 2, y, 14, 14, 5), self.name, self.hidden)
        return patch(self.color, self.name, self.opacity, self.hidden, self.slants)

    def covers(self, plane: Plane) -> Iterator[Box]:
        """All of it."""
        yield Box(
            plane.across(self.left),
            plane.down(self.high),
            plane.across(self.right),
            plane.down(self.low),
        )


@dataclass(frozen=True)
class Dot(Mark):
    """A point: a dot, or a dashed `ring` (what was before), a `cross`, a `diamond`, a `hollow` dot.

    `label` stands around it where there's room, or `below` (`above`) it; `moves` names the
    control that a page moves where somebody drags it, or two: one for the way to the side and
    one for up and down ("size tokens"). What's off the plane isn't drawn. `edge` is its rim's ink.
    """

    x: float
    y: float
    color: str = INK
    size: float = 6
    shape: str = "dot"
    label: str = ""
    title: str = ""
    bold: bool = False
    letters: float = SMALL
    moves: str = ""
    clip: bool = True
    edge: str = INK

    def svg(self, plane: Plane) -> str:
        """Draw its shape; the chart places its label."""
        if self.clip and not plane.holds(self.x, self.y):
            return ""
        return self.shape_at(*plane.at(self.x, self.y), self.size)

    def shape_at(self, x: float, y: float, size: float) -> str:
        """Draw its shape somewhere, in a size."""
        style: Style = {"stroke": self.edge, "stroke_width": 2 if size > 8 else 1.5}
        if self.moves:
            style["data_moves"] = self.moves
        if self.shape == "ring":
            return ring(x, y, size, self.title)
        if self.shape == "cross":
            ink: Style = {"stroke": self.color, "stroke_width": 2.5}
            d = 0.85 * size
            svg = line(x - d, y - d, x + d, y + d, **ink) + line(x - d, y + d, x + d, y - d, **ink)
            return svg + (circle(x, y, size + 3, "none", self.title, **style) if self.moves else "")
        if self.shape == "diamond":
            d = 1.5 * size
            corners = ((x, y - d), (x + d, y), (x, y + d), (x - d, y))
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
            title = f"<title>{self.title}</title>" if self.title else ""
            look = f'fill="{self.color}" stroke="{INK}"'
            return f'<polygon points="{points}" {look}>{title}</polygon>'
        fill = "none" if self.shape == "hollow" else self.color
        return circle(x, y, size, fill, self.title, **style)

    def swatch(self) -> Swatch:
        """The shape, as large as a key has room for."""
        size = min(self.size, 7 if self.shape != "diamond" else 5)
        return Swatch(lambda x, y: self.shape_at(x + 9, y + 7, size), self.name, self.hidden)

    def covers(self, plane: Plane) -> Iterator[Box]:
        """All of it."""
        if not self.clip or plane.holds(self.x, self.y):
            x, y = plane.at(self.x, self.y)
            yield Box(x - self.size, y - self.size, x + self.size, y + self.size)


@dataclass(frozen=True)
class Rule(Mark):
    """A straight line at a value of one axis, over the plane or up to `to` on the other.

    A label of an upright one stands above the plane, of a level one on its right end. With
    `moves` it has a knob at its top, by which somebody drags that control.
    """

    value: float
    axis: str = "x"
    label: str = ""
    to: float | None = None
    color: str = INK
    width: float = 1.5
    dash: str = ""
    bold: bool = False
    opacity: float = 1
    moves: str = ""

    def _ends(self, plane: Plane) -> Box:
        if self.axis == "x":
            x = plane.across(self.value)
            top = plane.top - (4 if self.label else 0) if self.to is None else plane.down(self.to)
            return Box(x, top, x, plane.bottom)
        y = plane.down(self.value)
        return Box(plane.left, y, plane.right if self.to is None else plane.across(self.to), y)

    def svg(self, plane: Plane) -> str:
        """Draw the line; the chart places its label."""
        style: Style = {"stroke": self.color, "stroke_width": self.width}
        if self.dash:
            style["stroke_dasharray"] = self.dash
        if self.opacity != 1:
            style["opacity"] = self.opacity
        ends = self._ends(plane)
        return line(*ends, **style) + (grip(ends.right, ends.top, self.moves) if self.moves else "")

    def swatch(self) -> Swatch:
        """A short piece of it."""
        return Path(
            (), self.color, self.width, self.dash, name=self.name, hidden=self.hidden
        ).swatch()

    def covers(self, plane: Plane) -> Iterator[Box]:
        """A thin box around it."""
        left, top, right, bottom = self._ends(plane)
        yield Box(left - 2, top - 2, right + 2, bottom + 2)


@dataclass(frozen=True)
class Note(Mark):
    """Words above a place on the plane, moved in and wrapped where they'd leave it.

    Of several lines the first is bold where `bold` is set.
    """

    x: float
    y: float
    label: str | Sequence[str]
    size: float = SMALL
    bold: bool = False
    anchor: str = "middle"
    color: str = INK

    def lines(self, plane: Plane) -> list[tuple[str, bool]]:
        """The words of each line, and whether it's bold."""
        labels = [self.label] if isinstance(self.label, str) else self.label
        return [
            (words, self.bold and not i)
            for i, label in enumerate(labels)
            for words in wrapped(label, plane.right - plane.left - 8, self.size, self.bold)
        ]

    def box(self, plane: Plane) -> Box:
        """The words' place."""
        lines = self.lines(plane)
        width = max(text_width(words, self.size, bold) for words, bold in lines)
        x, y = plane.at(self.x, self.y)
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        left = max(min(left, plane.right - width), plane.left + 4)
        high = (self.size + 4) * (len(lines) - 1)
        return Box(left, y - high - 0.85 * self.size, left + width, y + 0.25 * self.size)

    def svg(self, plane: Plane) -> str:
        """Write them."""
        left, top, right, _ = self.box(plane)
        x = {"start": left, "middle": (left + right) / 2, "end": right}[self.anchor]
        svg, y = "", top + 0.85 * self.size
        for words, bold in self.lines(plane):
            svg += text(x, y, words, self.size, self.anchor, self.color, **_weight(bold))
            y += self.size + 4
        return svg

    def covers(self, plane: Plane) -> Iterator[Box]:
        """All of it."""
        yield self.box(plane)


NARROW = 400
"""Pixels of a plane below which a name that's nearer to another dot is left out."""


@dataclass(frozen=True)
class Chart(Picture):
    """Marks on two scales, in words; a list of facts next to the plane, or below it.

    `headline` stands large at the right above the plane, with a line below it. `height` is
    the plane's. With `broken` the vertical axis says that it doesn't begin at 0. There's room
    for the `longest_end` of all settings at the lines' ends, so that the plane stays the same.
    """

    x: Scale
    y: Scale
    marks: Sequence[Mark]
    words: str = ""
    facts: Sequence[Fact] = ()
    headline: Sequence[str] = ()
    height: float = 230
    broken: bool = False
    wide_facts: float = 0
    longest_end: str = ""

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Lay out the plane, then what's around it."""
        svg, y = "", top
        beside = bool(self.facts) and width >= BESIDE
        listed = max(facts_width(self.facts, width), self.wide_facts) if beside else 0
        inner = width - listed - GAP if beside else width
        if self.y.label:
            drawn, y = paragraph(left, y, self.y.label, inner, USUAL, True)
            svg += drawn
        drawn, y = self._headline(left + inner, top, y, inner)
        svg += drawn
        ends = [mark for mark in self.marks if isinstance(mark, Path) and mark.end]
        at_ends = max([text_width(self.longest_end, SMALL), *map(_end_width, ends)])
        if at_ends > 0.36 * inner:
            at_ends = 0
        upright = [m for m in self.marks if isinstance(m, Rule) and m.label and m.axis == "x"]
        upright.sort(key=lambda rule: rule.value)
        level = [m for m in self.marks if isinstance(m, Rule) and m.label and m.axis == "y"]
        margin = self.y.width + 12 if self.y.labels else 2
        right = left + inner - (at_ends + 26 if at_ends else 10)
        room = left, left + inner
        across = right - left - margin
        labels = [
            (left + margin + self.x.share(rule.value) * across, rule.label, rule.bold)
            for rule in upright
        ]
        rows = in_rows(labels, *room)
        knob = 14 * any(rule.moves for rule in upright)
        above = y + rows_high(rows) + 12 + knob
        plane = Plane(self.x, self.y, left + margin, right, above, above + self.height)
        svg += y_axis(self.y, plane.left, plane.right, plane.top, plane.bottom)
        axis, bottom = x_axis(self.x, plane.left, plane.right, plane.bottom, room, plane.top)
        svg += axis
        if self.broken:
            for cut in (plane.bottom - 12, plane.bottom - 6):
                svg += line(plane.left - 7, cut + 4, plane.left + 7, cut - 4, stroke_width=2)
        svg += "".join(mark.svg(plane) for mark in self.marks if not mark.hidden)
        svg += "".join(
            label.draw(above - 8 - knob)
            for rule, label in zip(upright, rows, strict=True)
            if not rule.hidden
        )
        end = plane.right + 12 if at_ends else left + inner + PAD / 2
        svg += self._labels(plane, Box(plane.left, plane.top - 14, end, plane.bottom), level)
        if at_ends:
            svg += _line_ends(ends, plane)
        swatches = [m.swatch()._replace(longest=m.longest) for m in self.marks if m.name]
        if ends and not at_ends:
            swatches += [mark.swatch()._replace(label=", ".join(mark.end)) for mark in ends]
        drawn, bottom = key(swatches, left, bottom + 8, inner)
        svg += drawn
        if self.facts:
            x, y = (left + inner + GAP, plane.top) if beside else (left, bottom + 8)
            drawn, low = list_facts(self.facts, x, y, listed if beside else width)
            svg, bottom = svg + drawn, max(bottom, low)
        return svg, bottom

    def _headline(self, right: float, top: float, y: float, width: float) -> tuple[str, float]:
        """Large words at the right: next to the axis's name if there's room, else below it."""
        if not self.headline:
            return "", y
        first, *others = self.headline
        widest = max(text_width(first, 22, True), *(text_width(words) for words in others), 0)
        if widest + text_width(self.y.label, USUAL, True) + GAP > width:
            top = y
        svg = ""
        for words, size in ((first, 22), *((words, USUAL) for words in others)):
            drawn, top = paragraph(right, top, words, width, size, size > USUAL, "end")
            svg += drawn
        return svg, max(y, top)

    def _labels(self, plane: Plane, room: Box, level: Sequence[Rule]) -> str:
        """The names of dots and level lines, where they cover the least."""
        svg = ""
        seen = [mark for mark in self.marks if not mark.hidden]
        taken = [box for mark in seen for box in mark.covers(plane)]
        for rule in level:
            if rule.hidden:
                continue
            y = plane.down(rule.value)
            width = text_width(rule.label, SMALL, rule.bold)
            levels = [-6, 18] if y + 21 < plane.bottom else [-6]
            spots = [(x, y + dy) for dy in levels for x in (plane.right, plane.left + width + 6)]
            boxes = [Box(x - width, b - 0.85 * SMALL, x, b + 3) for x, b in spots]
            others = [
                box for box in taken if box.bottom - box.top > 4.1 or box.right - box.left < 5
            ]
            costs = [sum(box.overlap(other) for other in others) for box in boxes]
            at = costs.index(min(costs))
            look: Style = {**HALO, **_weight(rule.bold)}
            svg += text(*spots[at], rule.label, SMALL, "end", **look)
            taken.append(boxes[at])
        dots = [mark for mark in seen if isinstance(mark, Dot) and mark.label]
        dots = [dot for dot in dots if not dot.clip or plane.holds(dot.x, dot.y)]
        places = dict[int, tuple[float, float, str, Box]]()
        for moving in (False, True):  # what somebody drags makes way for the others' names
            group = {i: dot for i, dot in enumerate(dots) if bool(dot.moves) == moving}
            for _ in range(4):  # a name placed early moves again, for those placed after it
                previous = dict(places)
                for i, dot in group.items():
                    names = [place[-1] for j, place in places.items() if j != i]
                    places[i] = _place(dot, plane, [*taken, *names], room)
                if places == previous:
                    break
        still = {i: plane.at(dot.x, dot.y) for i, dot in enumerate(dots) if not dot.moves}
        for i, (x, y, anchor, box) in sorted(places.items()):
            nearest = min(still, key=lambda j: (_gap(box, *still[j]), j != i), default=i)
            if i in still and nearest != i and plane.right - plane.left < NARROW:
                continue  # on a phone there's no room for it, and it would name its neighbour
            look = {**HALO, **_weight(dots[i].bold)}
            svg += text(x, y, dots[i].label, dots[i].letters, anchor, **look)
        return svg


def _place(
    dot: Dot, plane: Plane, taken: Sequence[Box], room: Box
) -> tuple[float, float, str, Box]:
    """Where a dot's name covers the least of what's there."""
    x, y = plane.at(dot.x, dot.y)
    own = Box(x - dot.size, y - dot.size, x + dot.size, y + dot.size)
    others = [box for box in taken if box != own]
    return place_label(x, y, dot.label, others, room, dot.letters, dot.size + 6, dot.bold)


def _gap(box: Box, x: float, y: float) -> float:
    """Measure how far a point is from a box."""
    return hypot(max(box.left - x, 0, x - box.right), max(box.top - y, 0, y - box.bottom))


def _weight(bold: bool) -> Style:
    return {"font_weight": 700} if bold else {}


def _end_width(mark: Path) -> float:
    return max(text_width(words, SMALL, not i) for i, words in enumerate(mark.end))


def _line_ends(ends: Sequence[Path], plane: Plane) -> str:
    """Names at the right ends of lines, spread apart, with a hook where one has moved."""
    visible = [(mark, [*mark.pieces(plane)][-1][-1]) for mark in ends if not mark.hidden]
    visible.sort(key=lambda pair: pair[1][1])
    places = [y for _, (_, y) in visible]
    needs = [18.0 * len(mark.end) + 4 for mark, _ in visible]
    svg = ""
    for (mark, (x, y)), middle, need in zip(
        visible, spread(places, needs, plane.top - 10, plane.bottom + 10), needs, strict=True
    ):
        svg += line(x + 2, y, plane.right + 16, middle, stroke=mark.color, stroke_width=1)
        for i, words in enumerate(mark.end):
            style: Style = {"font_weight": 700} if not i else {}
            fill = mark.color if not i else INK
            down = middle - need / 2 + 16 + 18 * i
            svg += text(plane.right + 20, down, words, SMALL, fill=fill, **style)
    return svg
