"""A further kind of exercise: a line to write."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llmtrain_course.kit.exercise import HINT, Answer, Exercise, Grade, is_rounded, other_kind
from llmtrain_helpers import units
from llmtrain_helpers.checks import is_array, quantity, show

NOTHING_YET = "Nothing is here yet. Write the line and run the cell again."
"""The stub of a line to fill in."""


@dataclass(frozen=True)
class FillIn(Exercise):
    """A line of a build that the learner writes: it gives what the helper gives.

    `unit` writes that value for people. A mistake is in `common_mistakes`, by its reply, as what
    a wrong line gives, or what that is in three digits or more. A value within `tolerance`
    of the key (a share; 0 for an exact count) is right, though Python can do better. `hint`
    comes before the solution, whose cell has the exercise's name.
    """

    key: Callable[[], Any]
    unit: Callable[[Any], str] = units.digits
    hint: str | Sequence[str] = ""
    common_mistakes: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    stub: str = NOTHING_YET
    tolerance: float = 0.01

    def grade(self, answer: Answer) -> Grade:
        """Whether a line agrees with the helper, or which mistake it has."""
        if is_array(answer) or isinstance(answer, str) or other_kind(answer):
            kind = other_kind(answer) or show(answer)
            return False, f"That's {kind}, but the line should give one number."
        number, key = quantity("this", answer), self.key()
        if _same(number, key):
            return True, f"Right, {self.unit(key)}."
        rounded = is_rounded(number, key)
        if rounded and not self.tolerance:
            return (
                False,
                "Right to three digits. You need the exact count, so let Python compute it.",
            )
        for cause, wrong in () if rounded else self.common_mistakes.items():
            if _same(number, wrong()) or is_rounded(number, wrong()):
                return False, cause
        if rounded or abs(number - key) <= self.tolerance * key:
            return True, f"Right, {self.unit(key)}. You can let Python compute the other digits."
        return False, f"Your line gives {_off(number, key)}. {HINT}"


def _off(number: float, key: float) -> str:
    """Say how far a line's number is off."""
    if number <= 0 < key:
        return units.digits(number)
    side = "too much" if number > key else "too little"
    ratio = max(number / key, key / number)
    if ratio < 2:
        return f"{units.digits(100 * abs(number / key - 1), 2)}% {side}"
    return f"{units.count(ratio, 2)}× {side}"


def _same(number: float, other: float) -> bool:
    """Equal; floats may come from another order of operations."""
    if isinstance(number, int) and isinstance(other, int):
        return number == other
    return math.isclose(number, other, rel_tol=1e-9)
