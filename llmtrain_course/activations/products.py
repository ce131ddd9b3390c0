"""The picture of a matrix's three products: which needs what forward has left behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llmtrain_course.kit.drawing import COLORS, Style, rect, text
from llmtrain_course.kit.layout import BESIDE, INK, SMALL, USUAL, Picture, Swatch, key, patch

Matrix = Sequence[Sequence[int]]

X: Matrix = ((1, 2, 0), (3, 1, 1))
W: Matrix = ((1, 0), (2, 1), (0, 3))
GRADIENT: Matrix = ((1, 0), (-1, 2))
"""Two tokens' numbers, a layer's weights, and the gradient of what it hands on."""


def product(a: Matrix, b: Matrix) -> Matrix:
    """The product of two matrices.

    >>> product(X, W)
    ((5, 2), (5, 4))
    """
    columns = transposed(b)
    return tuple(
        tuple(sum(x * y for x, y in zip(row, column, strict=True)) for column in columns)
        for row in a
    )


def transposed(a: Matrix) -> Matrix:
    """The same matrix with its rows as columns.

    >>> transposed(X)
    ((1, 3), (2, 1), (0, 1))
    """
    return tuple(zip(*a, strict=True))


@dataclass(frozen=True)
class _Part:
    """A matrix: its name, its colour's word, the step that brings it, and what's below it."""

    name: str
    numbers: Matrix
    kind: str
    brought: int
    note: str = ""
    lost: bool = False
    result: bool = True


_LAST = 4
"""1 forward, 2 the gradient arrives, 3 the gradient of W, 4 the gradient of x."""


def three_products(step: int, kept: bool) -> Picture:
    """A layer's product forward and its two products backward, after so many of four steps.

    If x isn't `kept`, it's gone once forward has used it, and so is the gradient of W.
    """
    gone = not kept and step > 0
    fate = "" if not step else "dropped" if gone else "stays" if step < _LAST else "can go now"
    x = _Part("x", X, "activations", 0, fate, gone)
    weights = _Part("W", W, "weights", 0)
    y = _Part("y", product(X, W), "activations", 1)
    arrived = _Part("gradient of y", GRADIENT, "gradients", 2)
    turned = _Part("xᵀ", transposed(X), "activations", 3, "", gone, result=False)
    learned = product(transposed(X), GRADIENT)
    of_w = _Part("gradient of W", learned, "gradients", 3, "", gone)
    of_x = _Part("gradient of x", product(GRADIENT, transposed(W)), "gradients", 4)
    back = _Part("Wᵀ", transposed(W), "weights", 4, result=False)
    equations = {
        "forward": (x, weights, y),
        "backward, for this layer": (turned, arrived, of_w),
        "backward, for the layer below": (arrived, back, of_x),
    }
    return _Products(step, equations, _in_words(step, gone, fate, y, of_w, of_x))


def _in_words(step: int, gone: bool, fate: str, y: _Part, of_w: _Part, of_x: _Part) -> str:
    words = ["A layer with its x and W."]
    words += [f"Forward computes y: {_listed(y.numbers)}; x {fate}."] if step >= 1 else []
    words += ["The gradient of y has arrived."] if step >= 2 else []
    if step >= of_w.brought:
        result = "can't be computed without x" if gone else f"is {_listed(of_w.numbers)}"
        words.append(f"The gradient of W {result}.")
    words += [f"The gradient of x is {_listed(of_x.numbers)}."] if step >= of_x.brought else []
    return " ".join(words)


def _listed(numbers: Matrix) -> str:
    return "; ".join(" ".join(map(str, row)) for row in numbers)


@dataclass(frozen=True)
class _Products(Picture):
    """Equations of matrices: the backward ones next to each other, or below on a phone."""

    step: int
    equations: dict[str, tuple[_Part, _Part, _Part]]
    words: str

    CELL, SIGN, HIGH = 31, 24, 154
    """Pixels of a cell, of what's between two matrices, and of an equation."""

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Draw forward, then backward."""
        svg, x, y = "", left, top
        for place, (name, parts) in enumerate(self.equations.items()):
            if place == 2 and width >= BESIDE:
                x = left + width / 2
            elif place:
                y += self.HIGH
            svg += text(x, y + USUAL, name, USUAL, font_weight=700)
            svg += "".join(self._equation(parts, x, y + USUAL + 29))
        y += self.HIGH
        swatches = [
            *(patch(COLORS[kind], kind) for kind in ("activations", "weights", "gradients")),
            Swatch(lambda x, y: rect(x + 1, y, 16, 14, **_CAME), "just in"),
        ]
        drawn, y = key(swatches, left, y, width)
        return svg + drawn, y

    def _equation(self, parts: Sequence[_Part], x: float, y: float) -> Iterator[str]:
        """Three matrices with × and = between them, each on the middle line."""
        for part, sign in zip(parts, ("×", "=", ""), strict=True):
            rows, columns = len(part.numbers), len(part.numbers[0])
            width = max(columns * self.CELL, len(part.name) * 7.2)
            begin, up = x + (width - columns * self.CELL) / 2, y + self.CELL * (3 - rows) / 2
            yield text(x + width / 2, y - 8, part.name, SMALL, "middle")
            yield from self._cells(part, begin, up)
            low = up + rows * self.CELL + 14
            yield text(x + width / 2, low, part.note, SMALL, "middle") if part.note else ""
            middle = x + width + self.SIGN / 2, y + 1.5 * self.CELL + 6
            yield text(*middle, sign, 18, "middle") if sign else ""
            x += width + self.SIGN

    def _cells(self, part: _Part, x: float, y: float) -> Iterator[str]:
        """Its numbers: hollow before the step that brings them, and dashed where they're lost."""
        color, cell, there = COLORS[part.kind], self.CELL, self.step >= part.brought
        for i, row in enumerate(part.numbers):
            for j, number in enumerate(row):
                spot = x + j * cell + 1, y + i * cell + 1, cell - 3, cell - 3
                if there and not part.lost:
                    yield rect(*spot, color, rx=3)
                    middle = spot[0] + (cell - 3) / 2, spot[1] + cell / 2 + 4
                    yield text(*middle, f"{number}".replace("-", "−"), USUAL, "middle", "white")
                    continue
                look = Style(rx=3, stroke=color, stroke_width=1.5, opacity=0.7)
                yield rect(*spot, **look | ({"stroke_dasharray": "4 3"} if part.lost else {}))
        if part.result and self.step == part.brought > 0 and not part.lost:
            rows, columns = len(part.numbers), len(part.numbers[0])
            yield rect(x - 3, y - 3, columns * cell + 5, rows * cell + 5, **_CAME)


_CAME: Style = {"rx": 5, "stroke": INK, "stroke_width": 2.5}
"""The frame of what the step has brought."""
