"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from llmtrain_helpers.checks import amount, one


def rounded_down(number: float) -> int:
    """The first two digits of a number: what surely fits, where it is a limit.

    >>> rounded_down(851_713_000_000)
    850000000000
    """
    integer = int(amount("number", one("number", number)))
    size: int = 10 ** max(len(f"{integer}") - 2, 0)
    return integer // size * size
