"""What formulas return: sums of named parts and intervals, with arithmetic for both.

Shared by all chapters, for single numbers and NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache, cached_property, reduce
from math import exp, hypot, log
from sys import float_info
from typing import Any, ClassVar, Generic, cast

from llmtrain_helpers.checks import (
    Array,
    Exact,
    Number,
    Result,
    T,
    amount,
    at_most,
    broadcast,
    instance,
    is_array,
    numpy,
    quantity,
)


def where(condition: object, x: T, y: T) -> T:
    """Return x where a condition holds, and y elsewhere; both can be numbers or arrays.

    Arrays of ints become float64, because an int64 can't be added to a large Python int.

    >>> where(3 > 2, "yes", "no")
    'yes'
    """
    if not is_array(condition):
        return x if condition else y
    chosen = numpy().where(condition, x, y)
    return cast(T, chosen.astype(float) if chosen.dtype.kind in "iu" else chosen)


def minimum(x: Exact | Array, y: Exact | Array) -> Exact | Array:
    """Return the lesser of two numbers, or of each pair of two arrays."""
    return where(x <= y, x, y)


def maximum(x: Exact | Array, y: Exact | Array) -> Exact | Array:
    """Return the greater of two numbers, or of each pair of two arrays."""
    return where(x >= y, x, y)


def greatest(numbers: Iterable[Exact]) -> Exact:
    """Return the greatest of several numbers; with arrays, the greatest at each place.

    >>> greatest([64, 128, 96])
    128
    """
    return reduce(lambda x, y: maximum(x, y), numbers)


def largest(value: Number) -> float:
    """Return the largest number of an array, or the number itself.

    >>> largest(0.5)
    0.5
    """
    return float(value.max() if is_array(value) else value)


def divide(size: Exact | Array, ways: Exact | Array) -> float | Array:
    """Divide a size by a number of ways: an exact int if it comes out even.

    >>> divide(96, 8), divide(97, 8)
    (12, 12.125)
    """
    exact = isinstance(size, int) and isinstance(ways, int) and size % ways == 0
    return size // ways if exact else size / ways


class Breakdown(Generic[Exact]):
    """A total with its named parts: the base class of what the counts return.

    A subclass is a frozen dataclass; all of its fields are parts, except those in
    `_not_parts`. `Breakdown[Size]` has counts as parts, `Breakdown[Result]` any numbers.
    """

    _not_parts: ClassVar[tuple[str, ...]] = ()

    def parts(self) -> dict[str, Exact]:
        """Return each part by its name, in order."""
        values = vars(self)
        return {name: values[name] for name in _parts_of(cast(Any, type(self)))}

    @cached_property
    def total(self) -> Exact:
        """The sum of the parts."""
        return sum(self.parts().values())

    def shares(self) -> dict[str, Result]:
        """Return each part as a share of the total."""
        return {name: part / self.total for name, part in self.parts().items()}


@cache
def _parts_of(kind: Any) -> tuple[str, ...]:
    names = (item.name for item in fields(kind))
    return tuple(name for name in names if name not in kind._not_parts)


@dataclass(frozen=True)
class Interval:
    """An estimate with its bounds: `least`, `likely` and `greatest`, in one unit."""

    least: Result
    likely: Result
    greatest: Result

    def __post_init__(self) -> None:
        for name in ("least", "likely", "greatest"):
            bound = amount(name, getattr(self, name), most=float_info.max)
            object.__setattr__(self, name, bound)
        broadcast(**vars(self))
        at_most("least", self.least, "likely", self.likely)
        at_most("likely", self.likely, "greatest", self.greatest)

    def times(self, factor: Number) -> Interval:
        """Return the interval in another unit, or for something proportional to it."""
        by = amount("factor", factor)
        broadcast(factor=by, **vars(self))
        return Interval(self.least * by, self.likely * by, self.greatest * by)

    def product(self, span: Interval) -> Interval:
        """Return the product with an interval of another cause.

        Likely is the product of both; the half-widths, as logarithms, are the sides of a right
        angle: two causes are rarely at their worst at once. ValueError for ends of 0.

        >>> span = Interval(1, 2, 4).product(Interval(1.0, 1.5, 3.0))
        >>> [round(x, 2) for x in (span.least, span.likely, span.greatest)]
        [1.34, 3.0, 8.0]
        """
        instance("span", span, Interval)
        quantity("span.least", span.least)
        quantity("least", self.least)
        broadcast(span=span.likely, **vars(self))
        likely = self.likely * span.likely
        below = _right_angle(self.likely / self.least, span.likely / span.least)
        above = _right_angle(self.greatest / self.likely, span.greatest / span.likely)
        return Interval(likely / below, likely, likely * above)


def _right_angle(x: Result, y: Result) -> Result:
    """Return the factor whose logarithm is the hypotenuse over those of two factors."""
    if is_array(x) or is_array(y):
        np = numpy()
        return cast(Result, np.exp(np.hypot(np.log(x), np.log(y))))
    return exp(hypot(log(x), log(y)))
