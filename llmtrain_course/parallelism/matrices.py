"""The picture of two matrices that GPUs share, and what has been computed with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from llmtrain_course.kit.drawing import COLORS, Style, rect, text
from llmtrain_course.kit.layout import BESIDE, INK, SMALL, USUAL, Picture, Swatch, key, patch
from llmtrain_course.parallelism.formulas import SharedMlp
from llmtrain_helpers import units

Row = tuple[Sequence[int], str, int]
"""Numbers, the word of their colour, and the step that brings them."""


class _Column(NamedTuple):
    """A head, the most cells of a row, and the rows of a GPU; or the step that sums over all."""

    head: str
    cells: int
    rows: Callable[[int], Sequence[Row]] = lambda gpu: ()
    summed: int = 0


def _columns(mlp: SharedMlp) -> list[_Column]:
    """What each GPU has: its share of both matrices, and its numbers. One GPU has no parts."""
    several, size, inner = mlp.gpus > 1, len(mlp.token), len(mlp.second)
    weights, up, back = _KEY

    def first(gpu: int) -> list[Row]:
        return [([row[k] for k in mlp.columns(gpu)], weights, 0) for row in mlp.first]

    def second(gpu: int) -> list[Row]:
        return [(mlp.second[k], weights, 0) for k in mlp.columns(gpu)]

    def hidden(gpu: int) -> list[Row]:
        return [(mlp.hidden(gpu), up, 1), (mlp.hidden_error(gpu), back, 4)]

    token: list[Row] = [(mlp.token, up, 0), (mlp.token_error, back, 6 if several else 5)]
    result: list[Row] = [(mlp.output, up, 3 if several else 2), (mlp.error, back, 4)]
    return [
        _Column("token", size, lambda gpu: token),
        _Column("", 1, summed=6),
        _Column(
            "parts", size, lambda i: [((), back, 0), (mlp.partial_error(i), back, 5)] * several
        ),
        _Column("columns", inner, first),
        _Column("hidden", inner, hidden),
        _Column("rows", size, second),
        _Column("parts", size, lambda i: [(mlp.partial(i), up, 2)] * several),
        _Column("", 1, summed=3),
        _Column("result", size, lambda gpu: result),
    ]


_FIRST = 5
"""Columns up to the hidden numbers: on a phone the others stand below them."""

_KEY = {"weights": "weights", "context": "forward", "gradients": "errors, backward"}
"""What the colours of numbers say."""


def shared_mlp(mlp: SharedMlp, step: int) -> Picture:
    """Two matrices cut over GPUs, and what has been computed after so many of six steps.

    1 hidden numbers, 2 what comes out in parts, 3 the sum; 4 to 6 the errors going back.
    Each GPU's cells stand in a row of their own.
    """
    return _Matrices(mlp.gpus, step, _columns(mlp), _in_words(mlp, step))


@dataclass(frozen=True)
class _Matrices(Picture):
    """The columns of numbers that GPUs have, after a step."""

    gpus: int
    step: int
    columns: Sequence[_Column]
    words: str

    CELL, LINE, BLOCK, GAP = 27, 31, 96, 8
    """Pixels of a cell, of a row, of one of two GPUs, and between two columns at least."""

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Draw all columns next to each other, or on a phone the later ones below."""
        first, last = self.columns[:_FIRST], self.columns[_FIRST:]
        halves = [self.columns] if width >= BESIDE else [first, last]
        cells = [sum(column.cells for column in half) for half in halves]
        cell = min(self.CELL, (width - self.GAP * (len(halves[0]) - 1)) / max(cells))
        tall, svg, y = self.BLOCK * max(self.gpus, 2), "", top
        for half, count in zip(halves, cells, strict=True):
            x, gap, begin = left, (width - cell * count) / (len(half) - 1), y + USUAL + 9
            middles = [begin + tall * (gpu + 0.5) / self.gpus for gpu in range(self.gpus)]
            downs = [middle - self.BLOCK / 2 + 20 for middle in middles]
            for gpu, down in enumerate(downs, 1):
                svg += text(left, down - 6, f"GPU {gpu}", SMALL, font_weight=600)
            for column in half:
                wide = cell * column.cells
                if column.head:
                    svg += text(x + wide / 2, y + USUAL, column.head, USUAL, "middle")
                elif self.gpus > 1:
                    svg += _plus(x, begin, cell, tall, self.step >= column.summed)
                for gpu, down in enumerate(downs):
                    for i, row in enumerate(column.rows(gpu)):
                        start = x + (wide - cell * len(row[0])) / 2
                        svg += self._numbers(*row, start, down + self.LINE * i, cell)
                x += wide + gap
            y = begin + tall + 16
        swatches = [
            *(patch(COLORS[part], label) for part, label in _KEY.items()),
            Swatch(lambda x, y: _plus(x + 2, y, 14, 14), "all-reduce", self.gpus < 2),
            Swatch(lambda x, y: rect(x + 1, y, 16, 14, **_CAME), "just in"),
        ]
        drawn, y = key(swatches, left, y, width)
        return svg + drawn, y

    def _numbers(
        self, numbers: Sequence[int], part: str, brought: int, x: float, y: float, cell: float
    ) -> str:
        """Cells with a number in each: hollow before the step that brings them, framed at it."""
        svg, color, begin = "", COLORS[part], x
        for number in numbers:
            if self.step < brought:
                hollow = Style(rx=3, stroke=color, stroke_width=1.5, opacity=0.7)
                svg += rect(x + 1, y + 1, cell - 4, 25, **hollow)
            else:
                svg += rect(x, y, cell - 2, 27, color, rx=3)
                svg += text(x + cell / 2 - 1, y + 19, f"{number}", USUAL, "middle", "white")
            x += cell
        if numbers and self.step == brought > 0:
            svg += rect(begin - 3, y - 3, x - begin + 4, 33, **_CAME)
        return svg


_CAME: Style = {"rx": 5, "stroke": INK, "stroke_width": 2.5}
"""The frame of what the step has brought."""


def _plus(x: float, y: float, wide: float, tall: float, done: bool = True) -> str:
    """An all-reduce over all GPUs, filled when it's done."""
    ink = COLORS["tensor"]
    edge, size = Style(rx=wide / 4, stroke=ink, stroke_width=2), min(wide, 24)
    svg = rect(x, y, wide, tall, ink if done else "none", "the sum of all GPUs", **edge)
    place, ink = (x + wide / 2, y + tall / 2 + size / 3), "white" if done else ink
    return svg + text(*place, "+", size, "middle", ink, font_weight=700)


def _in_words(mlp: SharedMlp, step: int) -> str:
    def parts(numbers: Callable[[int], Sequence[int]]) -> str:
        return "; ".join(" ".join(map(str, numbers(gpu))) for gpu in range(mlp.gpus))

    n = units.plural(mlp.gpus, "GPU")
    brought = [
        (0, f"Two matrices on {n}: columns of the first, rows of the second."),
        (1, f"Hidden numbers by GPU: {parts(mlp.hidden)}."),
        (2, f"The output, in parts: {parts(mlp.partial)}."),
        (3, f"Added up: {' '.join(map(str, mlp.output))}."),
        (5, f"The token's error, in parts: {parts(mlp.partial_error)}."),
        (6, f"Added up: {' '.join(map(str, mlp.token_error))}."),
    ]
    words = [words for first, words in brought if step >= first]
    return " ".join(words if step else [*words, "Nothing is computed yet."])
