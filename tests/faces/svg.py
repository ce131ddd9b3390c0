"""What a picture's SVG contains, as boxes: read by a parser, so no test needs a regex."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from llmtrain_course.kit.drawing import Drawing
from llmtrain_course.kit.layout import PAGE, Picture as Description

Point = tuple[float, float]
TRANSFORM = re.compile(r"(\w+)\(([^)]*)\)")
SHAPES = {"rect", "circle", "line", "polyline", "polygon", "path", "text"}
LETTER = 0.56
"""The average width of a letter, in units of its size."""


@dataclass(frozen=True)
class Box:
    """A shape or a text: its kind, what it says (text or title), its edges, its paint."""

    kind: str
    words: str
    left: float
    top: float
    right: float
    bottom: float
    fill: str = ""
    size: float = 0
    stroke: str = ""
    thick: float = 0
    dashed: bool = False
    opacity: float = 1
    outlines: tuple[tuple[Point, ...], ...] = ()
    """The corners of a polygon, a polyline or each piece of a path."""

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def across(self) -> float:
        """The middle from left to right, where a dot, a tick or its number is."""
        return (self.left + self.right) / 2

    @property
    def down(self) -> float:
        """The middle from top to bottom."""
        return (self.top + self.bottom) / 2

    @property
    def area(self) -> float:
        """The area of a rectangle, or inside the outlines."""
        if self.kind == "rect":
            return self.width * self.height
        return sum(
            abs(sum(x * b - a * y for (x, y), (a, b) in zip(o, o[1:] + o[:1], strict=True))) / 2
            for o in self.outlines
        )

    @property
    def pieces(self) -> list[Box]:
        """The boxes that a path fills, each by itself."""
        return [replace(self, **edges(o), outlines=(o,)) for o in self.outlines]

    def inside(self, other: Box) -> bool:
        """Whether it's within the other one's edges, up to a pixel."""
        across = other.left - 1 <= self.left and self.right <= other.right + 1
        return across and other.top - 1 <= self.top and self.bottom <= other.bottom + 1

    def overlaps(self, other: Box, margin: float = 0) -> bool:
        """Whether the two share an area that is more than `margin` in both directions."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > margin and down > margin


@dataclass(frozen=True)
class Picture:
    """An `<svg>` element: its canvas, its alternative text, its boxes, its colours."""

    width: float
    height: float
    words: str
    boxes: tuple[Box, ...]
    colors: frozenset[str]

    def of_kind(self, kind: str) -> list[Box]:
        return [box for box in self.boxes if box.kind == kind]

    def titled(self, title: str, kind: str = "rect") -> list[Box]:
        """The shapes whose title begins with these words."""
        return [box for box in self.of_kind(kind) if box.words.startswith(title)]

    def filled(self, color: str, kind: str = "rect") -> list[Box]:
        return [box for box in self.of_kind(kind) if box.fill == color]

    def width_of(self, title: str) -> float:
        """The widths of all bars with exactly this title, in a row."""
        return sum(box.width for box in self.titled(title) if box.words == title)

    def area_of(self, title: str) -> float:
        return sum(box.area for box in self.titled(title) if box.words == title)

    @property
    def dashed(self) -> list[Box]:
        return [box for box in self.boxes if box.dashed]

    @property
    def texts(self) -> list[str]:
        return [box.words for box in self.of_kind("text")]

    def text(self, words: str) -> Box:
        """The first text that is these words, or begins with them."""
        texts = self.of_kind("text")
        exact = [box for box in texts if box.words == words]
        return (exact or [box for box in texts if box.words.startswith(words)])[0]

    def unit(self, low: str, high: str, way: str = "down") -> float:
        """Pixels for each 1 of an axis, from two of its numbers; negative if it goes up."""
        return self.between(low, high, way) / (amount(high) - amount(low))

    def between(self, low: str, high: str, way: str = "down") -> float:
        """Pixels from one text to another."""
        return float(getattr(self.text(high), way) - getattr(self.text(low), way))


def amount(words: str) -> float:
    """The number that a tick begins with."""
    return float(words.split()[0].replace(",", ""))


def drawn(picture: Drawing | Description, width: int = PAGE) -> Picture:
    """Parse a picture as a page shows it."""
    return parse(picture.drawing(width).inline_svg())


def pictures(html: str) -> list[Picture]:
    """Parse each live picture of an answer; an ill-formed one is a ParseError."""
    return [parse(svg) for svg in re.findall(r"<svg .*?</svg>", html, re.DOTALL)]


def parse(svg: str) -> Picture:
    """Parse one `<svg>` element."""
    root = ElementTree.fromstring(svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    elements = [*root.iter()]
    colors = {x.attrib[k] for x in elements for k in ("fill", "stroke", "color") if k in x.attrib}
    boxes = tuple(moved(root, 0, 0, 1))
    return Picture(width, height, root.get("aria-label", ""), boxes, frozenset(colors))


def moved(element: Element, across: float, down: float, scale: float) -> Iterator[Box]:
    """The boxes of an element and of all in it, moved and scaled as its groups are."""
    for name, arguments in TRANSFORM.findall(element.get("transform", "")):
        numbers = [*map(float, re.split("[ ,]+", arguments.strip()))]
        if name == "translate":
            across, down = across + scale * numbers[0], down + scale * numbers[1]
        elif name == "scale":
            scale *= numbers[0]
        else:
            raise ValueError(f"transform={name!r} isn't one that the boxes follow")
    for box in box_of(element):
        if (across, down, scale) == (0, 0, 1):
            yield box
            continue
        left, right = (across + scale * x for x in (box.left, box.right))
        top, bottom = (down + scale * y for y in (box.top, box.bottom))
        places = {"left": left, "top": top, "right": right, "bottom": bottom}
        outlines = tuple(
            tuple((across + scale * x, down + scale * y) for x, y in outline)
            for outline in box.outlines
        )
        yield replace(box, **places, size=scale * box.size, outlines=outlines)
    for child in element:
        yield from moved(child, across, down, scale)


def box_of(element: Element) -> Iterator[Box]:
    """The box of a shape or text; none for groups, titles and styles."""
    kind = element.tag.rpartition("}")[2]
    if kind not in SHAPES:
        return

    def number(name: str) -> float:
        return float(element.get(name, 0))

    title = next((child.text or "" for child in element if child.tag.endswith("title")), "")
    paint = {
        "fill": element.get("fill", ""),
        "stroke": element.get("stroke", ""),
        "thick": float(element.get("stroke-width", 1)) if "stroke" in element.attrib else 0,
        "dashed": "stroke-dasharray" in element.attrib,
        "opacity": float(element.get("opacity", 1)),
    }
    if kind == "rect":
        x, y = number("x"), number("y")
        sides = x, y, x + number("width"), y + number("height")
    elif kind == "circle":
        x, y, r = number("cx"), number("cy"), number("r")
        sides = x - r, y - r, x + r, y + r
    elif kind == "line":
        (x1, x2), (y1, y2) = (sorted((number(f"{a}1"), number(f"{a}2"))) for a in "xy")
        sides = x1, y1, x2, y2
    elif kind in ("polyline", "polygon", "path"):
        if kind == "path":
            outlines = tuple(map(tuple, steps(element.attrib["d"])))
        else:
            pairs = (p.split(",") for p in element.attrib["points"].split())
            outlines = (tuple((float(x), float(y)) for x, y in pairs),)
        if corners := [corner for outline in outlines for corner in outline]:
            yield Box(kind, title, **edges(corners), **paint, outlines=outlines)
        return
    else:
        words, size = "".join(element.itertext()), number("font-size")
        wide = LETTER * size * len(words)
        anchor = element.get("text-anchor", "start")
        left = number("x") - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        y = number("y")
        sides = left, y - 0.75 * size, left + wide, y + 0.2 * size
        yield Box(kind, words, *sides, **paint, size=size)
        return
    yield Box(kind, title, *sides, **paint)


def edges(corners: Sequence[Point]) -> dict[str, float]:
    """The box around some corners."""
    xs, ys = zip(*corners, strict=True)
    return {"left": min(xs), "top": min(ys), "right": max(xs), "bottom": max(ys)}


def steps(d: str) -> list[list[Point]]:
    """The corners of each piece of a path of M, L, H, V, m, l, h, v and z."""
    x = y = 0.0
    start, pieces = (x, y), list[list[Point]]()
    for letter, rest in re.findall(r"([MLHVZmlhvz])([^A-Za-z]*)", d):
        numbers = [float(n) for n in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", rest)]
        if letter in "Zz":
            x, y = start
            continue
        if letter in "Mm":
            pieces.append([])
        if letter in "MLml":
            for a, b in zip(numbers[::2], numbers[1::2], strict=True):
                x, y = (a, b) if letter in "ML" else (x + a, y + b)
                pieces[-1].append((x, y))
        else:
            for n in numbers:
                x = n if letter == "H" else x + n if letter == "h" else x
                y = n if letter == "V" else y + n if letter == "v" else y
                pieces[-1].append((x, y))
        if letter in "Mm":
            start = x, y
    return pieces
