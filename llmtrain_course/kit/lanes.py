"""Bars, time lines and number lines: rows over one horizontal axis, laid out for any width.

Bars(Scale(0, 160, "GB"), [bar("weights", {"weights": 16, "gradients": 8}, COLORS)], words)
Timeline(Scale(0, 300, "days"), [Lane("node 1", [Point(12, shape="cross")])], words)
NumberLine(Scale(1, 1e4, log=True), [Point(20, label="here")], words)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from llmtrain_course.kit.chart import Mark, Plane
from llmtrain_course.kit.drawing import GREY, Style, circle, ghost, hatched, line, rect, text
from llmtrain_course.kit.layout import (
    BESIDE,
    GAP,
    HALO,
    INK,
    SMALL,
    USUAL,
    Fact,
    Label,
    Picture,
    Swatch,
    facts_width,
    grip,
    in_rows,
    key,
    list_facts,
    paragraph,
    patch,
    ring,
    rows_high,
    text_width,
    wrapped,
)
from llmtrain_course.kit.scale import FAINT, Scale, x_axis, y_axis

_EDGED = 4
"""Pixels from which on a span has room for its edge."""


@dataclass(frozen=True)
class Span:
    """A stretch of a lane from `start` to `end`, with a `label` in it, or the first that fits.

    With a `name` it has an entry in the key, with room for its `longest` in all settings.
    `previous` is a dashed outline of what was. An `edge` keeps it apart from the next: a light
    line, or around a pale one its own colour. A
    `rise` below 1 is the share of the lane's height that it has, from below, so that it differs
    in more than its colour; a label that finds no room in it stands above it. A label in the
    page's own `ink`, as one on a hatched stretch needs, has a rim. `slants` are lines of that
    colour over its own. A `tight` label is small, may reach to the edges, and is only there if
    the `longest` of its kind would fit, too. It's as high as so many `lanes` with what's between
    them.
    """

    start: float
    end: float
    color: str = GREY
    label: str | Sequence[str] = ""
    title: str = ""
    name: str = ""
    opacity: float = 1
    hatch: bool = False
    outline: bool = False
    edge: bool = False
    previous: bool = False
    hidden: bool = False
    ink: str = "white"
    bold: bool = False
    rise: float = 1
    slants: str = ""
    tight: bool = False
    lanes: int = 1
    longest: str = ""

    def draw(
        self, left: float, right: float, top: float, height: float, uprights: Sequence[float] = ()
    ) -> str:
        """Draw it between two places, with its label clear of upright lines."""
        top, height = top + height * (1 - self.rise), height * self.rise
        width = max(round(right - left, 6), 0)  # the same digits in every build of Python
        size = left, top, width, height
        if self.previous:
            return ghost(*size, self.title)
        style: Style = {"opacity": self.opacity} if self.opacity != 1 else {}
        if self.edge and right - left > _EDGED:
            style = self._edged()
        if self.outline:
            style |= {"stroke": INK, "stroke_width": 1}
        color = "none" if self.hatch and self.color == GREY else self.color
        svg = rect(*size, color, self.title, **style) if color != "none" or self.title else ""
        svg += hatched(*size) if self.hatch else ""
        svg += hatched(*size, 9, self.slants) if self.slants and right - left > 3 else ""
        edges = [left, *sorted(x for x in uprights if left < x < right), right]
        begin, end = max(pairwise(edges), key=lambda pair: pair[1] - pair[0])
        labels = [self.label] if isinstance(self.label, str) else self.label
        letters, margin = (SMALL, 0) if self.tight else (USUAL, 6)
        room = end - begin - margin
        room = 0 if self.tight and text_width(self.longest, letters) > room else room
        label = next((x for x in labels if text_width(x, letters) <= room), "")
        if label:
            look: Style = {"font_weight": 700} if self.bold else {}
            look |= HALO if self.ink == INK else {}
            low = self.rise < 1 and height < USUAL + 3
            y, ink = (top - 5, INK) if low else (top + height / 2 + 5, self.ink)
            svg += text((begin + end) / 2, y, label, letters, "middle", ink, **look)
        return svg

    def swatch(self) -> Swatch:
        """A patch of it."""
        drawn = patch(self.color, self.name, self.opacity, self.hidden, self.slants)
        if self.previous:
            drawn = drawn._replace(draw=lambda x, y: ghost(x + 2, y, 14, 14))
        elif self.hatch or self.edge or self.rise < 1:
            drawn = drawn._replace(draw=self._patch)
        return drawn._replace(longest=self.longest)

    def _edged(self) -> Style:
        """How it looks with its edge."""
        if self.opacity != 1:
            return {"stroke": self.color, "stroke_width": 1.5, "fill_opacity": self.opacity}
        return {"stroke": "#FFFFFF", "stroke_width": 1}

    def _patch(self, x: float, y: float) -> str:
        """A small piece of it: as low as it is, hatched, with its edge."""
        color = "none" if self.hatch and self.color == GREY else self.color
        size = x + 2, y + 14 * (1 - self.rise), 14, 14 * self.rise
        style: Style = self._edged() if self.edge else {"opacity": self.opacity}
        svg = rect(*size, color, **style) if color != "none" else ""
        return svg + (hatched(*size, 5) if self.hatch else "")


@dataclass(frozen=True)
class Point:
    """A dot on a lane, or a `cross`, a dashed `ring`, a `hollow` dot or an upright `tick`.

    Its `label` stands after it, or `above` it on a number line; of a `none` there's only that.
    On a number line it may be `raised` by some pixels, on a stem.
    """

    at: float
    color: str = INK
    label: str = ""
    title: str = ""
    name: str = ""
    shape: str = "dot"
    size: float = 6
    bold: bool = False
    moves: str = ""
    hidden: bool = False
    below: bool = False
    opacity: float = 1
    raised: float = 0

    def draw(self, x: float, y: float, half: float) -> str:
        """Draw its shape at a place in a lane that reaches so far up and down."""
        style: Style = {"stroke": INK, "stroke_width": 1.5}
        if self.shape == "none":
            return ""
        if self.opacity != 1:
            style["opacity"] = self.opacity
        if self.shape == "ring":
            return ring(x, y, self.size, self.title)
        if self.shape == "tick":
            style = {"stroke": self.color, "stroke_width": 4}
        if self.moves:
            style["data_moves"] = self.moves
        if self.shape == "tick":
            return line(x, y - half, x, y + half, **style)
        if self.shape == "cross":
            d, ink = 0.8 * self.size, Style(stroke=self.color, stroke_width=2)
            return line(x - d, y - d, x + d, y + d, **ink) + line(x - d, y + d, x + d, y - d, **ink)
        fill = "none" if self.shape == "hollow" else self.color
        return circle(x, y, self.size, fill, self.title, **style)

    def swatch(self) -> Swatch:
        """The shape."""
        return Swatch(lambda x, y: self.draw(x + 9, y + 7, 7), self.name, self.hidden)


@dataclass(frozen=True)
class Lane:
    """A row: its name, what's on it, a `total` after its last span, and a `note` below its name.

    Lanes of one `group` have a heading above them. An `axis` is a line through its middle.
    A `sign` stands between its name and the lane, as a `count` does in a column of its own.
    `piled` points stand at its bottom, or on those that they would cover, with their labels
    above. With `cuts` a span that's longer than the scale has a cut and an arrow at its end.
    A lane with a `y` is a plane for marks of a chart, with its numbers at the left.
    """

    name: str
    items: Sequence[Span | Point | Mark] = ()
    total: str = ""
    note: str = ""
    group: str = ""
    bold: bool = False
    axis: bool = False
    height: float = 0
    color: str = INK
    sign: Swatch | None = None
    count: str = ""
    piled: bool = False
    cuts: bool = False
    y: Scale | None = None

    @property
    def numbers(self) -> float:
        """Pixels that the numbers of its own axis need."""
        return self.y.width + 10 if self.y else 0

    @property
    def spans(self) -> Iterator[Span]:
        """Its visible stretches."""
        return (item for item in self.items if isinstance(item, Span) and not item.hidden)


def bar(
    name: str,
    parts: Mapping[str, float],
    colors: Mapping[str, str],
    unit: Callable[[float], str] | None = None,
    total: str = "",
    words: Mapping[str, str] | None = None,
    previous: float | None = None,
    note: str = "",
    group: str = "",
    bold: bool = False,
    labels: bool = True,
    opacity: float = 1,
) -> Lane:
    """A lane of parts end to end from 0; each with its name in it, in the key and as a title.

    `unit` writes a part's size for its title and the total; `words` are other names of parts,
    by which `colors` has them;
    `previous` is where the bar ended before a change.
    """
    at, spans = 0.0, list[Span]()
    for part, size in parts.items():
        called = (words or {}).get(part, part)
        title = f"{called} {unit(size)}" if unit else called
        label = called if labels else ""
        spans.append(Span(at, at + size, colors.get(called, GREY), label, title, called, opacity))
        at += size
    if previous is not None and abs(previous - at) > 1e-9 * max(previous, at):
        spans.append(Span(0, previous, title="at the start", previous=True))
    written = total or (unit(at) if unit else "")
    return Lane(name, spans, written, note, group, bold)


@dataclass(frozen=True)
class Limit:
    """An upright line over all lanes: a limit, a deadline, the moment; its label is above it.

    With `moves` it has a knob at its top, by which somebody drags that control.
    """

    value: float
    label: str = ""
    dash: str = ""
    color: str = INK
    width: float = 2
    bold: bool = False
    moves: str = ""
    hidden: bool = False


@dataclass(frozen=True)
class Lanes(Picture):
    """Lanes over one axis, limits across them, a key, and facts next to them or below.

    `heading` stands above at the left, `verdict` at the right. `lane` is a lane's height,
    and `gap` the pixels between two; names that take more than a share of the width, `names`
    (on a phone `phone_names`), stand above their lanes. A `note` stands below the key, and the
    facts next to the lanes are at least `wide_facts` wide. Without an `axis` only the grid
    shows the scale. There's room for the `longest_total` of all settings, so that the scale
    stays the same.
    """

    x: Scale
    lanes: Sequence[Lane]
    words: str = ""
    limits: Sequence[Limit] = ()
    heading: str = ""
    verdict: str = ""
    facts: Sequence[Fact] = ()
    lane: float = 30
    gap: float = 12
    axis: bool = True
    keyed: bool = True
    extra: Sequence[Swatch] = ()
    totals_last: bool = field(default=False)
    names: float = 0.36
    phone_names: float = 0.3
    note: str = ""
    wide_facts: float = 0
    longest_total: str = ""

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Lay out names, lanes, limits, the axis, then the key and the facts."""
        beside = bool(self.facts) and width >= BESIDE
        listed = max(facts_width(self.facts, width), self.wide_facts) if beside else 0
        inner = width - listed - GAP if beside else width
        svg, y = self._head(left, top, inner)
        names = [text_width(lane.name, USUAL, lane.bold) + lane.numbers for lane in self.lanes]
        names += [text_width(lane.note, SMALL) for lane in self.lanes if lane.note]
        most = self.names if inner >= BESIDE else self.phone_names
        own_row = max(names, default=0) > most * inner
        signs = 0 if own_row else self._sign_width
        numbers = max((lane.numbers for lane in self.lanes), default=0)
        begin = (
            left + signs + self.counts + (numbers if own_row or not any(names) else max(names) + 12)
        )
        written = filter(None, (*(lane.total for lane in self.lanes), self.longest_total))
        totals = [text_width(total, USUAL, True) for total in written]
        end = left + inner - (max(totals) + 10 if totals and not own_row else 6)

        def at(value: float) -> float:
            return begin + self.x.share(value) * (end - begin)

        labels = sorted(filter(lambda limit: limit.label, self.limits), key=lambda it: it.value)
        placed = in_rows([(at(x.value), x.label, x.bold) for x in labels], left, left + inner)
        knob = 14 * any(limit.moves for limit in self.limits)
        rows, first, stretches = "", 0.0, list[tuple[float, float]]()
        crossed = list[str]()
        for group, lanes in groupby(self.lanes, lambda lane: lane.group):
            if group:
                drawn, y = paragraph(left, y + (6 if rows else 0), group, inner, USUAL, True)
                rows, y = rows + drawn, y + 6
            if not stretches:  # the limits' labels stand where their lines begin
                y += rows_high(placed) + (6 if placed else 0) + knob
            begun, first = y, first or y
            for lane in lanes:
                drawn, y = self._lane(lane, left, left + inner, y, at, own_row, begin, crossed)
                rows += drawn
                if own_row:  # a line would cross the names
                    bottom = y - self.gap
                    stretches.append((bottom - (lane.height or self.lane) - 4, bottom + 4))
            if not own_row:
                stretches.append((begun - 4, y - self.gap + 8))
        bottom = y - self.gap + 8
        svg += "".join(
            line(at(tick), up, at(tick), low, **FAINT)
            for tick in self.x.labels
            for up, low in stretches
            if self.x.grid
        )
        svg += rows
        for limit in self.limits:
            if not limit.hidden:
                style: Style = {"stroke": limit.color, "stroke_width": limit.width}
                style |= {"stroke_dasharray": limit.dash} if limit.dash else {}
                x = at(limit.value)
                svg += "".join(line(x, up, x, low, **style) for up, low in stretches)
                svg += grip(x, first - 9, limit.moves) if limit.moves else ""
        svg += "".join(crossed)
        svg += "".join(
            label.draw(first - 9 - knob)
            for limit, label in zip(labels, placed, strict=True)
            if not limit.hidden
        )
        y = bottom
        if self.axis:
            drawn, y = x_axis(self.x, begin, end, bottom, (left, left + inner), None)
            svg += drawn
        swatches = [i.swatch() for lane in self.lanes for i in lane.items if i.name]
        drawn, y = key([*swatches, *self.extra] if self.keyed else [], left, y + 10, inner)
        svg += drawn
        if self.note:
            drawn, y = paragraph(left, y, self.note, inner, SMALL)
            svg += drawn
        if self.facts:
            x, down = (left + inner + GAP, first) if beside else (left, y + 8)
            drawn, low = list_facts(self.facts, x, down, listed if beside else width)
            svg, y = svg + drawn, max(y, low)
        return svg, y

    @property
    def counts(self) -> float:
        """Pixels of the column of the lanes' counts."""
        counts = [text_width(lane.count, SMALL) for lane in self.lanes if lane.count]
        return max(counts) + 10 if counts else 0

    @property
    def _sign_width(self) -> float:
        """Pixels that the widest sign needs."""
        return max((lane.sign.width + 10 for lane in self.lanes if lane.sign), default=0)

    def _head(self, left: float, top: float, width: float) -> tuple[str, float]:
        """The heading, and the verdict at its right, or below it where both don't fit."""
        if not self.heading and not self.verdict:
            return "", top
        needed = text_width(self.heading, USUAL, True) + text_width(self.verdict, USUAL, True)
        svg, y = (
            paragraph(left, top, self.heading, width, USUAL, True) if self.heading else ("", top)
        )
        if self.verdict and needed + GAP <= width:
            look: Style = {"font_weight": 600}
            svg += text(left + width, top + USUAL, self.verdict, USUAL, "end", **look)
            y = max(y, top + USUAL + 5)
        elif self.verdict:
            drawn, y = paragraph(left, y, self.verdict, width, USUAL, True)
            svg += drawn
        return svg, y + 6

    def _lane(
        self,
        lane: Lane,
        left: float,
        right: float,
        y: float,
        at: Callable[[float], float],
        own_row: bool,
        begin: float,
        crossed: list[str],
    ) -> tuple[str, float]:
        """One row: its name before it or above it, what's on it, its total.

        Labels that a limit would cross are added to `crossed`, to be drawn over it.
        """
        svg, look = "", Style(font_weight=700) if lane.bold else Style()
        height = lane.height or self.lane
        total: Style = {"font_weight": 700}
        if own_row and (lane.name or lane.total):
            x = left + (self._sign_width if lane.sign else 0)
            svg += lane.sign.draw(left, y + USUAL - 12) if lane.sign else ""
            room = right - x - text_width(lane.total, USUAL, True) - 8
            for i, words in enumerate(wrapped(lane.name, room, USUAL, lane.bold)):
                y += (USUAL + 4) if i else 0
                svg += text(x, y + USUAL, words, USUAL, **look)
            svg += text(right, y + USUAL, lane.total, USUAL, "end", **total) if lane.total else ""
            y += USUAL + 7
            for words in wrapped(lane.note, right - left, SMALL) if lane.note else ():
                svg += text(left, y + SMALL - 2, words, SMALL, opacity=0.8)
                y += SMALL + 5
        elif lane.name:
            shift, x = 9 if lane.note else 0, begin - 12 - lane.numbers - self.counts
            if lane.sign:
                x -= self._sign_width
                svg += lane.sign.draw(begin - self._sign_width, y + height / 2 - 7)
            svg += text(x, y + height / 2 + 5 - shift, lane.name, USUAL, "end", **look)
            if lane.note:
                svg += text(x, y + height / 2 + 14, lane.note, SMALL, "end", opacity=0.8)
        middle = y + height / 2
        svg += text(begin - 10, middle + 5, lane.count, SMALL, "end") if lane.count else ""
        plane = Plane(self.x, lane.y or Scale(0, 1), begin, at(self.x.high), y, y + height)
        if lane.y:
            svg += y_axis(lane.y, plane.left, plane.right, plane.top, plane.bottom, False)
        if lane.axis:
            svg += line(at(self.x.low), middle, at(self.x.high), middle, stroke_width=1)
        cut = lane.cuts and any(it.end > self.x.high for it in lane.spans if not it.previous)
        uprights = [at(limit.value) for limit in self.limits if not limit.hidden]
        uprights += [at(self.x.high) - _CUT] if cut else []
        last = at(self.x.low)
        for item in lane.items:
            if item.hidden or (lane.piled and isinstance(item, Point)):
                continue
            if isinstance(item, Span):
                ends = at(item.start), at(item.end)
                reach = item.lanes * (height + self.gap) - self.gap
                svg += item.draw(*ends, y, reach, uprights)
                last = max(last, ends[1])
                continue
            if isinstance(item, Mark):
                svg += item.svg(plane)
                continue
            x = at(item.at)
            svg += item.draw(x, middle, height / 2)
            if item.label:
                label, over = _beside_point(item, x, middle, left, right, uprights)
                svg += "" if over else label
                crossed += [label] if over else []
                last = max(last, x + item.size + 6 + text_width(item.label, SMALL, item.bold))
        pale = any(span.opacity < 1 for span in lane.spans)
        svg += _cut(at(self.x.high), middle, height, INK if pale else "white") if cut else ""
        if lane.piled:
            points = [it for it in lane.items if isinstance(it, Point) and not it.hidden]
            svg += _pile(points, [at(point.at) for point in points], y + height, left, right)
        if lane.total and not own_row:
            x, width = last + 8, text_width(lane.total, USUAL, True)
            for limit in sorted(at(limit.value) for limit in self.limits):
                x = limit + 8 if x - 4 < limit < x + width + 4 else x
            beyond = self.totals_last or x + width > right
            place, anchor = (right, "end") if beyond else (x, "start")
            svg += text(place, middle + 5, lane.total, USUAL, anchor, lane.color, **total)
        return svg, y + height + self.gap


def _pile(
    points: Sequence[Point], places: Sequence[float], floor: float, left: float, right: float
) -> str:
    """Points on a floor, or on those that they would cover, and their labels above them."""
    svg, tops, pile = "", list[float](), list[tuple[float, float]]()
    for point, x in zip(points, places, strict=True):
        y, size = floor - point.size, 2 * point.size
        while any(abs(x - a) < size and abs(y - b) < size - 1 for a, b in pile):
            y -= size
        pile.append((x, y))
        tops += [y - point.size - 4] if point.label else []
        svg += point.draw(x, y, point.size)
    labels = [(x, it.label, it.bold) for it, x in zip(points, places, strict=True) if it.label]
    rows = zip(in_rows(labels, left, right), tops, strict=True)
    return svg + "".join(label.draw(top) for label, top in rows)


_CUT = 48
"""Pixels from a cut to the end of a bar that goes on."""


def _cut(right: float, middle: float, height: float, ink: str) -> str:
    """A cut through a bar that goes on beyond its scale, and an arrow at its end."""
    up, low = middle - height / 2 - 4, middle + height / 2 + 4
    svg = "".join(
        line(x, low, x + 10, up, stroke_width=3) for x in (right - _CUT, right - _CUT + 8)
    )
    return svg + text(right - 6, middle + 6, "→", 18, "end", ink, font_weight=700)


def _beside_point(
    point: Point, x: float, middle: float, left: float, right: float, uprights: Sequence[float]
) -> tuple[str, bool]:
    """A point's label after it, or before it where there's more room and it needs that.

    And whether an upright line crosses it: then it has a rim.
    """
    away, width = point.size + 6, text_width(point.label, SMALL, point.bold)
    after, before = right - x - away, x - away - left
    fits = width <= after or before < min(width, after)
    begin = x + away if fits else x - away - width
    crossed = any(begin - 3 < upright < begin + width + 3 for upright in uprights)
    look: Style = {"font_weight": 700} if point.bold else {}
    look |= HALO if crossed else {}
    place, anchor = (begin, "start") if fits else (x - away, "end")
    return text(place, middle + 5, point.label, SMALL, anchor, **look), crossed


class Bars(Lanes):
    """Lanes that are bars: parts of a whole, limits, and what a bar was before."""


class Timeline(Lanes):
    """Lanes of spans on an axis of time."""


@dataclass(frozen=True)
class NumberLine(Picture):
    """Points and spans on one line with ticks; labels above it, or below its numbers.

    `heading` stands above at the left, `note` below it there.
    """

    x: Scale
    points: Sequence[Point]
    words: str = ""
    spans: Sequence[Span] = ()
    heading: str = ""
    note: str = ""
    minor: Sequence[float] = ()

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Lay out headings, the points' labels in rows, the line and its numbers."""
        svg, y = "", top
        for words, bold in ((self.heading, True), (self.note, False)):
            if words:
                drawn, y = paragraph(left, y, words, width, USUAL, bold)
                svg += drawn
        begin, end = left + 12, left + width - 12

        def at(value: float) -> float:
            return begin + self.x.share(value) * (end - begin)

        def labelled(below: bool) -> tuple[list[Point], list[Label]]:
            points = [p for p in self.points if p.label and p.below == below]
            labels = [(at(p.at), p.label, p.bold) for p in points]
            return points, in_rows(labels, left, left + width)

        (over, places), (under, lower) = labelled(False), labelled(True)
        raised = max((point.raised for point in self.points), default=0)
        middle = y + rows_high(places) + 22 + raised
        for span in self.spans:
            if not span.hidden:
                svg += span.draw(at(span.start), at(span.end), middle - 9, 18)
        for tick in self.minor:
            svg += line(at(tick), middle - 6, at(tick), middle + 6, stroke_width=1)
        drawn, bottom = x_axis(self.x, begin, end, middle, (left, left + width), None)
        svg += drawn
        for point in self.points:
            x, up = at(point.at), middle - point.raised
            svg += line(x, up, x, middle) if point.raised and not point.hidden else ""
            svg += "" if point.hidden else point.draw(x, up, 12)
        for points, labels, place in (
            (over, places, middle - 15 - raised),
            (under, lower, bottom + 12),
        ):
            for point, label in zip(points, labels, strict=True):
                svg += "" if point.hidden else label.draw(place, 1 if point.below else -1)
        return svg, bottom + rows_high(lower)
