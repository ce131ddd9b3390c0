"""What a picture's SVG contains, as boxes: read by a parser, so no test needs a regex."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

PLACES = ("x", "y", "width", "height", "cx", "cy", "r", "x1", "x2", "y1", "y2", "font-size")
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

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

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
    for name, arguments in re.findall(r"(\w+)\(([^)]*)\)", element.get("transform", "")):
        numbers = [*map(float, re.split("[ ,]+", arguments.strip()))]
        if name == "translate":
            across, down = across + scale * numbers[0], down + scale * numbers[1]
        elif name == "scale":
            scale *= numbers[0]
        else:
            raise ValueError(f"transform={name!r} isn't one that the boxes follow")
    for box in box_of(element):
        left, right = (across + scale * x for x in (box.left, box.right))
        top, bottom = (down + scale * y for y in (box.top, box.bottom))
        edges = {"left": left, "top": top, "right": right, "bottom": bottom}
        yield replace(box, **edges, size=scale * box.size)
    for child in element:
        yield from moved(child, across, down, scale)


def box_of(element: Element) -> Iterator[Box]:
    """The box of a shape or text; none for groups, titles and styles."""
    kind = element.tag.rpartition("}")[2]
    number = {k: float(element.get(k, 0)) for k in PLACES}
    title = next((child.text or "" for child in element if child.tag.endswith("title")), "")
    fill = element.get("fill", "")
    if kind == "rect":
        x, y = number["x"], number["y"]
        edges = x, y, x + number["width"], y + number["height"]
    elif kind == "circle":
        x, y, r = number["cx"], number["cy"], number["r"]
        edges = x - r, y - r, x + r, y + r
    elif kind == "line":
        (x1, x2), (y1, y2) = (sorted((number[f"{a}1"], number[f"{a}2"])) for a in "xy")
        edges = x1, y1, x2, y2
    elif kind in ("polyline", "polygon"):
        points = [tuple(map(float, p.split(","))) for p in element.attrib["points"].split()]
        if not points:
            return
        xs, ys = zip(*points, strict=True)
        edges = min(xs), min(ys), max(xs), max(ys)
    elif kind == "path":
        points = [*steps(element.attrib["d"])]
        if not points:
            return
        xs, ys = zip(*points, strict=True)
        edges = min(xs), min(ys), max(xs), max(ys)
    elif kind == "text":
        words, size = "".join(element.itertext()), number["font-size"]
        wide = LETTER * size * len(words)
        anchor = element.get("text-anchor", "start")
        left = number["x"] - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        y = number["y"]
        yield Box(kind, words, left, y - 0.75 * size, left + wide, y + 0.2 * size, fill, size)
        return
    else:
        return
    yield Box(kind, title, *edges, fill)


def steps(d: str) -> Iterator[tuple[float, float]]:
    """The corners that a path of M, L, H, V, h, v and z goes through."""
    x = y = 0.0
    start = x, y
    for letter, rest in re.findall(r"([MLHVZmlhvz])([^A-Za-z]*)", d):
        numbers = [float(n) for n in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", rest)]
        if letter in "Zz":
            x, y = start
            continue
        if letter in "ML":
            for x, y in zip(numbers[::2], numbers[1::2], strict=True):
                yield x, y
        elif letter in "ml":
            for dx, dy in zip(numbers[::2], numbers[1::2], strict=True):
                x, y = x + dx, y + dy
                yield x, y
        else:
            for n in numbers:
                x = n if letter == "H" else x + n if letter == "h" else x
                y = n if letter == "V" else y + n if letter == "v" else y
                yield x, y
        if letter in "Mm":
            start = x, y
