"""Estimates beside what was reported, as the evidence shows them. Needs pandas when it's used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from llmtrain_helpers.checks import quantity
from llmtrain_helpers.units import ratio

if TYPE_CHECKING:
    from pandas import DataFrame


class _Text(Protocol):
    def __call__(self, number: float, /) -> str: ...


def confront(
    names: Iterable[str], estimates: Iterable[float], reported: Iterable[float], unit: _Text
) -> DataFrame:
    """Estimates beside what was reported, with their ratio, as text for people.

    `unit` is the function of `units` that writes the numbers.

    >>> from llmtrain_helpers import units
    >>> confront(["GPT-3"], [33.9084 * 86400], [34 * 86400], units.duration)
    name    estimate   reported  ratio
    GPT-3  33.9 days  34.0 days  0.997
    """
    from pandas import DataFrame

    pairs = zip(estimates, reported, strict=True)
    rows = [(unit(e), unit(r), ratio(e / quantity("reported", r))) for e, r in pairs]
    table = DataFrame(rows, list(names), ["estimate", "reported", "ratio"])
    table.columns.name = "name"  # a table's corner has a heading too
    return table
