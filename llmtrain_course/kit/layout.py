"""What every described picture shares: words that are measured and wrapped, keys, lists of facts.

A description says what a picture shows; `Picture.drawing` lays it out for a width. Nothing
here knows which chapter asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from math import ceil
from typing import Any, NamedTuple

from llmtrain_course.kit.drawing import CARD, Drawing, Style, circle, hatched, line, rect, text

INK = "currentColor"
"""The page's own ink, of words and lines."""

HALO: Style = {
    "stroke": CARD,
    "stroke_width": 4,
    "stroke_linejoin": "round",
    "paint_order": "stroke",
}
"""A rim of the card's colour around words that stand on something coloured."""

PAGE, PHONE = 680, 360
"""Pixels across a picture on a page, and on a phone."""

PAD, GAP = 14, 28
"""Pixels between a picture and the edge of its card, and between a plane and its facts."""

SMALL, USUAL = 14, 15
"""Sizes of letters: of ticks and keys, and of everything else."""

ROW = 24
"""Pixels from one line of a key to the next."""

BESIDE = 520
"""From this width on, what's secondary stands next to the plane; else below it."""

_LETTERS = {
    " ijlI.,:;'|!": 0.36,
    "frtJ()-/[]": 0.42,
    "acegknopsuvxyzbdhqLFE": 0.62,
    "mwMW%@×=+−≈→": 0.98,
    "ABCDGHKNOPQRSTUVXYZ": 0.75,
}
_WIDTHS = {letter: width for letters, width in _LETTERS.items() for letter in letters}
"""Widths of letters in a wide font (DejaVu Sans), over their size."""


@lru_cache(8192)
def text_width(words: str, size: float = USUAL, bold: bool = False) -> float:
    """Pixels that words need at most; the average of 0.56 a letter is the least.

    >>> round(text_width("GPUs")), round(text_width("1,024 GPUs", 14))
    (43, 86)
    """
    width = sum(_WIDTHS.get(letter, 0.64) for letter in words)
    return size * max(width, 0.56 * len(words)) * (1.1 if bold else 1)


def wrapped(words: str, width: float, size: float = USUAL, bold: bool = False) -> list[str]:
    """Words in lines that each fit a width; a single word that doesn't has its own line.

    >>> wrapped("times the least work", 100)
    ['times the', 'least work']
    """
    lines: list[str] = []
    for word in words.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, bold) <= width + 1e-6:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def paragraph(
    x: float,
    y: float,
    words: str,
    width: float,
    size: float = USUAL,
    bold: bool = False,
    anchor: str = "start",
) -> tuple[str, float]:
    """Wrapped words whose first line begins at y, and where the next line would begin."""
    style: Style = {"font_weight": 600} if bold else {}
    lines = wrapped(words, width, size, bold)
    svg = "".join(
        text(x, y + size + (size + 5) * i, words, size, anchor, **style)
        for i, words in enumerate(lines)
    )
    return svg, y + (size + 5) * len(lines)


class Box(NamedTuple):
    """A rectangle that something covers."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """Return the area that both cover."""
        left, top, right, bottom = self
        a, b, c, d = other
        if a >= right or c <= left or b >= bottom or d <= top:
            return 0
        return (min(right, c) - max(left, a)) * (min(bottom, d) - max(top, b))


class Swatch(NamedTuple):
    """An entry of a key: a mark drawn from a corner, 14 high, and what it means.

    A `hidden` one keeps its place, and there's room for the `longest` of its labels in all
    settings, so that the picture's height stays the same.
    """

    draw: Callable[[float, float], str]
    label: str
    hidden: bool = False
    longest: str = ""
    width: float = 18


def patch(
    color: str, label: str, opacity: float = 1, hidden: bool = False, slants: str = ""
) -> Swatch:
    """A coloured square, with `slants` over it in another colour, and what it means."""
    look: Style = {"rx": 2} if opacity == 1 else {"rx": 2, "opacity": opacity}

    def draw(x: float, y: float) -> str:
        over = hatched(x + 2, y, 14, 14, 7, slants) if slants else ""
        return rect(x + 2, y, 14, 14, color, **look) + over

    return Swatch(draw, label, hidden)


def key(swatches: Sequence[Swatch], left: float, top: float, width: float) -> tuple[str, float]:
    """Swatches in rows, and where they end; the same label once.

    A label is hidden where all its swatches are.
    """
    once = dict[str, Swatch]()
    for swatch in swatches:
        if not swatch.hidden or swatch.label not in once:
            once[swatch.label] = swatch
    entries = [*once.values()]
    labels = [wrapped(entry.label, width - entry.width - 7, SMALL) for entry in entries]
    needed = [
        entry.width + 7 + max(text_width(words, SMALL) for words in (*lines, entry.longest))
        for entry, lines in zip(entries, labels, strict=True)
    ]
    svg, y, begun = "", top, 0
    for row in _rows(needed, width):
        for i, x in enumerate(row, begun):
            if not entries[i].hidden:
                svg += entries[i].draw(left + x, y)
                for down, words in enumerate(labels[i]):
                    place = left + x + entries[i].width + 7, y + 12 + 18 * down
                    svg += text(*place, words, SMALL)
        y += ROW + 18 * (max(map(len, labels[begun : begun + len(row)])) - 1)
        begun += len(row)
    return svg, y


def _rows(needed: Sequence[float], width: float) -> list[list[float]]:
    """Where entries begin in each row: on a phone in columns, if that's at most a row more.

    >>> _rows([80, 120, 60, 90], 260)
    [[0.0, 96.0], [0.0, 96.0]]
    """
    rows, end = list[list[float]](), width
    for need in needed:
        if end + need > width:
            rows.append([])
            end = 0.0
        rows[-1].append(end)
        end += need + 16
    most = max(map(len, rows), default=0)
    least = max(most - 2, 1) if width < BESIDE else most
    for columns in range(most, least, -1):
        each = [max(needed[i::columns]) + 16 for i in range(columns)]
        count = ceil(len(needed) / columns)
        if sum(each) - 16 <= width and count <= len(rows) + 1:
            places = [*accumulate(each[:-1], initial=0.0)]
            return [places[: len(needed) - i * columns] for i in range(count)]
    return rows


@dataclass(frozen=True)
class Fact:
    """A line of a picture's list: a name and its value, which stands at the right.

    With a `color` it has a square, or whatever `draw` makes; a `rule` is a line above it.
    A `hidden` one keeps its place.
    """

    name: str
    value: str = ""
    color: str = ""
    size: float = 16
    bold: bool = False
    rule: bool = False
    hidden: bool = False
    opacity: float = 1
    draw: Callable[[float, float], str] | None = field(default=None, compare=False)

    @property
    def indent(self) -> float:
        """Pixels that its square takes."""
        return 26 if self.color or self.draw else 0

    @property
    def width(self) -> float:
        """Pixels that it needs on one line."""
        name = text_width(self.name, self.size, self.bold)
        value = 18 + text_width(self.value, self.size, self.bold) if self.value else 0
        return self.indent + name + value


def facts_width(facts: Sequence[Fact], width: float) -> float:
    """Pixels that a list needs next to a plane: at most two fifths of both."""
    return min(max((fact.width for fact in facts), default=0), 0.4 * width)


def list_facts(
    facts: Sequence[Fact], left: float, top: float, width: float, least: float = 0
) -> tuple[str, float]:
    """Draw facts below each other, at least so wide, and return where they end."""
    room = min(width, max([least, *(fact.width + 30 for fact in facts)]))
    svg, y, right = "", top, left + room
    for fact in facts:
        style: Style = {"font_weight": 700} if fact.bold else {}
        height = fact.size + 10
        if fact.rule:
            svg += "" if fact.hidden else line(left, y + 3, right, y + 3)
            y += 8
        broken = fact.width > room and bool(fact.value)
        lines = wrapped(fact.name, room - fact.indent, fact.size, fact.bold)
        values = wrapped(fact.value, room, fact.size, fact.bold) if fact.value else []
        if not fact.hidden:
            base = y + fact.size + 1
            if fact.draw:
                svg += fact.draw(left, base - 14)
            elif fact.color:
                look: Style = {"rx": 2} if fact.opacity == 1 else {"rx": 2, "opacity": fact.opacity}
                svg += rect(left, base - 13, 16, 16, fact.color, **look)
            for i, words in enumerate(lines):
                svg += text(left + fact.indent, base + i * height, words, fact.size, **style)
            row = base + height * (len(lines) - (0 if broken else 1))
            for i, words in enumerate(values):
                svg += text(right, row + height * i, words, fact.size, "end", **style)
        y += height * (len(lines) + (len(values) if broken else 0))
    return svg, y


class Picture(ABC):
    """A description that can be laid out for any width from 320 pixels on."""

    words: str

    @abstractmethod
    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Return SVG from a corner on, within this width, and where it ends below."""

    def drawing(self, width: int = PAGE) -> Drawing:
        """Lay it out on a card of this width."""
        svg, bottom = self.draw(PAD, PAD, width - 2 * PAD)
        return Drawing(svg, width, ceil(bottom + PAD), self.words)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return self.drawing()._repr_mimebundle_(**options)


@dataclass(frozen=True)
class Diagram(Picture):
    """What no description gives: a function from a corner and a width to SVG and its end below."""

    function: Callable[[float, float, float], tuple[str, float]]
    words: str = ""

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Return what the function draws."""
        return self.function(left, top, width)


@dataclass(frozen=True)
class Facts(Picture):
    """A list of facts by itself, or a heading: a fact without a value."""

    facts: Sequence[Fact]
    words: str = ""

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Return them below each other."""
        return list_facts(self.facts, left, top, width)


@dataclass(frozen=True)
class Below(Picture):
    """Pictures below each other, with one alternative text."""

    pictures: Sequence[Picture]
    words: str = ""
    gap: float = 18

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Return all of them, each as wide as there's room."""
        svg, y = "", top
        for picture in self.pictures:
            drawn, bottom = picture.draw(left, y, width)
            svg, y = svg + drawn, bottom + self.gap
        return svg, y - self.gap


@dataclass(frozen=True)
class NextTo(Picture):
    """Two pictures next to each other, or below where there's no room; `share` is the first's.

    With `middle` the second stands at the middle of the first's height.
    """

    first: Picture
    second: Picture
    words: str = ""
    share: float = 0.5
    middle: bool = False

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Return both, in the order in which they're read."""
        if width < BESIDE:
            return Below([self.first, self.second]).draw(left, top, width)
        split = (width - GAP) * self.share
        one, low = self.first.draw(left, top, split)
        place = left + split + GAP, top, width - split - GAP
        two, lower = self.second.draw(*place)
        if self.middle and lower < low:
            x, y, room = place
            two, lower = self.second.draw(x, y + (low - lower) / 2, room)
        return one + two, max(low, lower)


def spread(
    places: Sequence[float], height: Sequence[float], low: float, high: float
) -> list[float]:
    """Move labels apart that would touch, each as little as it takes, between two ends.

    `places` are their middles, in order; `height` is what each needs.

    >>> spread([10, 12, 50], [20, 20, 20], 0, 100)
    [10.0, 30.0, 50.0]
    """
    moved: list[float] = []
    for place, need in zip(places, height, strict=True):
        least = moved[-1] + (height[len(moved) - 1] + need) / 2 if moved else low + need / 2
        moved.append(max(float(place), least))
    limit = high
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], limit - height[i] / 2)
        limit = moved[i] - height[i] / 2
    return moved


class Label(NamedTuple):
    """Words at a middle, in lines; `row` counts the lines between it and what it names."""

    x: float
    row: int
    lines: Sequence[str]
    bold: bool = False

    def draw(self, y: float, way: int = -1) -> str:
        """Write it above a height, or below with a `way` of 1; 19 pixels are a line."""
        style: Style = {"font_weight": 700} if self.bold else {}
        lines = self.lines if way > 0 else [*reversed(self.lines)]
        return "".join(
            text(self.x, y + way * 19 * (self.row + i), words, SMALL, "middle", **style)
            for i, words in enumerate(lines)
        )


def in_rows(labels: Sequence[tuple[float, str, bool]], left: float, right: float) -> list[Label]:
    """Where labels stand, each a middle, its words and whether they're bold.

    They're moved in from the edges, wrapped where they're longer than all the room, and
    those that would touch stand in rows apart.

    >>> [(label.x, label.row) for label in in_rows([(5, "one", False), (40, "two", False)], 0, 90)]
    [(13.02, 0), (40, 1)]
    """
    placed: list[Label] = []
    taken: list[tuple[float, float, int]] = []
    for middle, words, bold in labels:
        lines = wrapped(words, right - left, SMALL, bold)
        half = max(text_width(line, SMALL, bold) for line in lines) / 2
        x, row = min(max(middle, left + half), right - half), 0
        rows = range(len(lines))
        while any(
            x - half - 8 < end and begin < x + half + 8 and other in (row + i for i in rows)
            for begin, end, other in taken
        ):
            row += 1
        taken += [(x - half, x + half, row + i) for i in rows]
        placed.append(Label(x, row, lines, bold))
    return placed


def rows_high(labels: Sequence[Label]) -> float:
    """Pixels that labels in rows need."""
    return 19.0 * max((label.row + len(label.lines) for label in labels), default=0)


def place_label(
    x: float,
    y: float,
    words: str,
    taken: Sequence[Box],
    room: Box,
    size: float = SMALL,
    away: float = 10,
    bold: bool = False,
) -> tuple[float, float, str, Box]:
    """Find a place for a dot's name around it that covers the least of what's there."""
    width, height, far = text_width(words, size, bold), size, away + 3 * size
    reach = Box(x - width - far, y - far, x + width + far, y + far)
    near = [box for box in taken if box.overlap(reach)]
    best: tuple[float, tuple[float, float, str, Box]] | None = None
    for rank, (dx, dy, anchor) in enumerate(_around(away, size, width)):
        left = x + dx - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        box = Box(left, y + dy - height * 0.85, left + width, y + dy + height * 0.25)
        cost = 20 * (box.overlap(box) - box.overlap(room)) + rank
        if best is None or cost < best[0]:
            cost += sum(4 * box.overlap(other) for other in near)
        if best is None or cost < best[0]:
            best = cost, (x + dx, y + dy, anchor, box)
    assert best
    return best[1]


def _around(away: float, size: float, width: float) -> Iterator[tuple[float, float, str]]:
    """Places around a dot: right, left, above, below, the corners, in between; then further out."""
    for far in (away, away + size):
        yield far, 0.36 * size, "start"
        yield -far, 0.36 * size, "end"
        yield 0, -far, "middle"
        yield 0, far + 0.8 * size, "middle"
        for side, anchor in ((0.6 * far, "start"), (-0.6 * far, "end")):
            yield side, -0.6 * far, anchor
            yield side, 0.6 * far + 0.8 * size, anchor
        for side in (width / 4, -width / 4):
            yield side, -far, "middle"
            yield side, far + 0.8 * size, "middle"


def ring(x: float, y: float, radius: float = 9, title: str = "") -> str:
    """A dashed circle: where a dot was before a change."""
    return circle(
        x, y, radius, "none", title, stroke="currentColor", stroke_width=1.5, stroke_dasharray="4 3"
    )


def grip(x: float, y: float, control: str) -> str:
    """A knob by which somebody drags a control."""
    return circle(x, y, 7, CARD, stroke=INK, stroke_width=2, data_moves=control)
