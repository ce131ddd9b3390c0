"""Axes: which values one has, where they lie, and which of its numbers there's room for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, log10
from typing import Self

from llmtrain_course.kit.drawing import Style, line, round_step, text
from llmtrain_course.kit.layout import SMALL, paragraph, text_width, wrapped
from llmtrain_helpers import units

FAINT: Style = {"stroke_width": 1, "opacity": 0.18}
"""The lines of a grid."""

PALE: Style = {"opacity": 0.8}
"""The second line of a number, which says what else it means."""

OFF = 1e-9
"""How far beyond its end a value still counts as on an axis."""


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`: what it's called, its numbers, and how they're written.

    `ticks` are values, or values with their labels, whose first line is the number; without
    any there are about six round ones, or the powers of ten of a `log` axis. With `grid` each
    has a line across. With `wrap` labels that would touch are broken into more lines.
    """

    low: float
    high: float
    label: str = ""
    write: Callable[[float], str] = units.exact
    ticks: Sequence[float] | Mapping[float, str] = ()
    log: bool = False
    grid: bool = False
    wrap: bool = False

    def share(self, value: float) -> float:
        """Return where a value lies, from 0 to 1; what's off the axis lies at its end."""
        return min(max(self.free_share(value), 0.0), 1.0)

    def free_share(self, value: float) -> float:
        """Return where a value lies or would lie, beyond the ends too."""
        if self.log:
            return log10(max(value, 1e-300) / self.low) / log10(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def holds(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return -OFF <= self.free_share(value) <= 1 + OFF

    @cached_property
    def labels(self) -> dict[float, str]:
        """The numbers of the axis, by value."""
        if isinstance(self.ticks, Mapping):
            return dict(self.ticks)
        return {tick: self.write(tick) for tick in self.ticks or self._round_ticks()}

    def _round_ticks(self) -> list[float]:
        if self.log:
            powers = range(ceil(log10(self.low) - OFF), floor(log10(self.high) + OFF) + 1)
            return [10.0**power for power in powers]
        step = round_step(self.high - self.low, 6)
        first, last = ceil(self.low / step - OFF), floor(self.high / step + OFF)
        return [round(step * i, 12) for i in range(first, last + 1)]

    def with_ticks(self, ticks: Sequence[float] | Mapping[float, str]) -> Self:
        """The same axis with other numbers."""
        return replace(self, ticks=ticks)

    @property
    def width(self) -> float:
        """Pixels of its widest number."""
        return max((text_width(label, SMALL) for label in self.labels.values()), default=0)


def x_axis(
    scale: Scale, left: float, right: float, y: float, room: tuple[float, float], top: float | None
) -> tuple[str, float]:
    """Draw an axis at y, its numbers and its name below, and tell where these end.

    `room` is how far numbers may reach to the left and right; a grid begins at `top`.
    """
    svg = line(left, y, right, y)
    places = {
        left + scale.share(tick) * (right - left): name for tick, name in scale.labels.items()
    }
    if scale.wrap:
        places = _wrapped(places)
    for x in places:
        svg += line(x, top, x, y, **FAINT) if scale.grid and top is not None else ""
        svg += line(x, y, x, y + 5)
    lines = 1
    named = isinstance(scale.ticks, Mapping)
    for x, name in _with_room(places, room, named).items():
        for i, words in enumerate(name.split("\n")):
            svg += text(x, y + 20 + 19 * i, words, SMALL, "middle", **({} if not i else PALE))
            lines = max(lines, i + 1)
    y += 7 + 19 * lines if scale.labels else 8
    if scale.label:
        end = min(max(right, room[0] + text_width(scale.label)), room[1])
        drawn, y = paragraph(end, y, scale.label, end - room[0], anchor="end")
        svg += drawn
    return svg, y


def _wrapped(places: Mapping[float, str]) -> dict[float, str]:
    """The labels in lines that are no longer than it is from one tick to the next."""
    ordered = sorted(places)
    pitch = min(b - a for a, b in pairwise(ordered)) - 8
    return {
        x: "\n".join(line for part in places[x].split("\n") for line in wrapped(part, pitch, SMALL))
        for x in ordered
    }


def _with_room(
    places: Mapping[float, str], room: tuple[float, float], named: bool
) -> dict[float, str]:
    """Numbers at every tick, or every second, …, so that none touch; of names as many as fit.

    They're moved in from the edges.
    """
    ordered = sorted(places.items())
    if named:
        placed, end = dict[float, str](), room[0]
        for x, name in ordered:
            middle, half = _middle(x, name, room)
            if not placed or middle - half >= end + 6:
                placed[middle], end = name, middle + half
        return placed
    for step in range(1, len(ordered) + 1):
        placed, end = {}, room[0]
        for x, name in ordered[::step]:
            middle, half = _middle(x, name, room)
            if placed and middle - half < end + 6:
                break
            placed[middle], end = name, middle + half
        else:
            return placed
    return {}


def _middle(x: float, name: str, room: tuple[float, float]) -> tuple[float, float]:
    """Where a label's middle is, at its tick or as near as the edge allows, and half its width."""
    half = max(text_width(words, SMALL) for words in name.split("\n")) / 2
    return min(max(x, room[0] + half), room[1] - half), half


def y_axis(
    scale: Scale, left: float, right: float, top: float, bottom: float, line_at: bool = True
) -> str:
    """Draw an axis at the left of a plane with its numbers before it."""
    svg = line(left, top, left, bottom) if line_at else ""
    places = {
        bottom - scale.share(tick) * (bottom - top): name for tick, name in scale.labels.items()
    }
    ordered = sorted(places.items(), reverse=True)
    step = next(k for k in range(1, len(ordered) + 2) if _apart(ordered[::k]))
    for i, (y, name) in enumerate(ordered):
        svg += line(left, y, right, y, **FAINT) if scale.grid else line(left - 5, y, left, y)
        svg += "" if i % step else text(left - 10, y + 5, name, SMALL, "end")
    return svg


def _apart(places: Sequence[tuple[float, str]]) -> bool:
    return all(low[0] - high[0] >= SMALL + 4 for low, high in pairwise(places))
