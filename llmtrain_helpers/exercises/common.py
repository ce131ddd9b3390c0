"""What the exercises of all chapters share: how an answer is judged.

A wrong number is looked up among the ratios that well-known slips produce, so that the
verdict can name the slip instead of only saying no.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from termcolor import colored

from llmtrain_helpers.checks import choice, is_array, quantity, show

SLIPS: dict[float, str] = {
    1e3: "1,000 times too much: look at the unit prefixes (SI base units, please).",
    1e-3: "1,000 times too little: look at the unit prefixes (SI base units, please).",
    1e6: "a million times too much: is a unit prefix counted twice?",
    1e-6: "a million times too little: this wants the number itself, not millions.",
    1e9: "a billion times too much: is a unit prefix counted twice?",
    1e-9: "a billion times too little: this wants the number itself, not billions.",
    1e-12: "10¹² times too little: give the number itself, not trillions or tera.",
    10: "ten times too much: 10e9 is ten billion, one billion is 1e9.",
    0.1: "ten times too little: 10e12 is ten trillion, one trillion is 1e12.",
    2: "twice too much: is something counted twice?",
    0.5: "half of it: a multiply-add is 2 FLOPs; or is half of a whole left out?",
    1 / 1.073741824: "7 % too little: GB (10⁹ bytes) where GiB (2³⁰ bytes) is meant.",
    1.073741824: "7 % too much: GiB (2³⁰ bytes) where GB (10⁹ bytes) is meant.",
}
"""Wrong ratios (answer over key) that have a usual cause, and the cause."""


UNANSWERED = "no answer yet. Put in yours and run the cell again."


@dataclass(frozen=True)
class Verdict:
    """Right, wrong, or not answered (`ok` is None); its repr is the sentence."""

    id: str
    ok: bool | None
    text: str

    def __bool__(self) -> bool:
        return bool(self.ok)

    def __repr__(self) -> str:
        if self.ok is None:
            return f"○ {self.id}: {self.text}"
        sign, color = ("✓", "green") if self.ok else ("✗", "red")
        return f"{colored(f'{sign} {self.id}', color, force_color=True)}: {self.text}"


class Exercise:
    """An exercise: `judge` tells whether an answer is right, and in words why (not)."""

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """(right, wrong or not answered; the sentence that says why)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Numeric(Exercise):
    """A number: right within `tolerance` (a share; 0 is exactly) of the computed key.

    `unit` writes the key for people; `slips` are this exercise's own wrong ratios, and
    come before those of `SLIPS`; `hint` is for a wrong answer that no slip explains.
    """

    key: Callable[[], float]
    unit: Callable[[float], str]
    hint: str
    tolerance: float = 0.005
    slips: Mapping[float, str] = field(default_factory=dict)

    def judge(self, answer: Any) -> tuple[bool, str]:
        """Right, a known slip, or too high or too low with a hint."""
        if is_array(answer):
            return False, "this is an array: give one number."
        number, key = quantity("answer", answer), self.key()
        if abs(number - key) <= self.tolerance * key:
            return True, f"right, {self.unit(key)}."
        slips = {**SLIPS, **self.slips}
        ratio = min(slips, key=lambda ratio: abs(number / key / ratio - 1))
        near = min(max(self.tolerance, 0.002), abs(ratio - 1) / 10)
        if abs(number / key / ratio - 1) <= near:
            return False, slips[ratio]
        return False, f"too {'high' if number > key else 'low'}. {self.hint}"


@dataclass(frozen=True)
class Word(Exercise):
    """A choice: each option has its sentence, and `key` names the right one."""

    key: Callable[[], str]
    options: Mapping[str, str]

    def judge(self, answer: Any) -> tuple[bool, str]:
        """The sentence of the option that was chosen."""
        chosen = choice("answer", answer, self.options)
        return chosen == self.key(), self.options[chosen]


@dataclass(frozen=True)
class Function(Exercise):
    """A function of the learner's: it must agree with `key` on every case.

    One that returns None, as the stub does, counts as not answered.
    """

    key: Callable[..., Any]
    cases: Sequence[Mapping[str, Any]]
    hint: str

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """The first case that goes wrong, or that all are right."""
        if not callable(answer):
            return False, f"{show(answer)} is no function: leave out the parentheses."
        for case in self.cases:
            told = ", ".join(f"{name}={value}" for name, value in case.items())
            try:
                result = answer(**case)
            except (Exception, SystemExit) as error:
                return False, f"with {told} it raised {show(error)}"
            if result is None:
                return None, UNANSWERED
            if not _agree(result, self.key(**case)):
                return False, f"with {told} it returned {show(result)}. {self.hint}"
        return True, f"right, in all {len(self.cases)} cases."


def _agree(result: Any, key: Any) -> bool:
    """Equal; for floats, but for the rounding of another order of operations."""
    if isinstance(result, int) and isinstance(key, int):
        return result == key
    number = quantity("what it returned", result)
    return not is_array(number) and math.isclose(number, key, rel_tol=1e-9)


def judge(id: str, answer: object, exercises: Mapping[str, Exercise]) -> Verdict:
    """The verdict on an answer to one of these exercises."""
    exercise = exercises[choice("id", id, exercises)]
    if answer is None:
        return Verdict(id, None, UNANSWERED)
    try:
        return Verdict(id, *exercise.judge(answer))
    except Exception as error:  # an answer may be anything at all
        return Verdict(id, False, f"{str(error)[:150]}.")
