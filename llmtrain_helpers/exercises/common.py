"""What the exercises of all chapters share: how an answer is judged.

A wrong number is looked up among those that well-known slips produce, so that the
verdict can name the slip instead of only saying no. Slips that many exercises share
stand here, and each exercise takes those that make sense for its unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from termcolor import colored

from llmtrain_helpers import units
from llmtrain_helpers.checks import is_array, quantity, show

Slips = dict[float, str]
"""Wrong ratios (answer over key) that have a usual cause, and the cause."""

TENFOLD: Slips = {
    10: "ten times too much: 10e9 is ten billion, one billion is 1e9.",
    0.1: "ten times too little: 10e12 is ten trillion, one trillion is 1e12.",
}
"""For what is computed from billions and trillions."""

PREFIXES: Slips = {
    **TENFOLD,
    1e3: "1,000 times too much: look at the unit prefixes (SI base units, please).",
    1e-3: "1,000 times too little: look at the unit prefixes (SI base units, please).",
    1e6: "a million times too much: is a unit prefix counted twice?",
    1e-6: "a million times too little: this wants the number itself, not millions.",
    1e9: "a billion times too much: is a unit prefix counted twice?",
    1e-9: "a billion times too little: this wants the number itself, not billions.",
    1e-12: "10¹² times too little: give the number itself, not trillions or tera.",
}
"""For large counts and rates."""

TWICE: Slips = {
    2: "twice too much: is something counted twice?",
    0.5: "half of it: a multiply-add is 2 FLOPs.",
}
"""For FLOPs."""

GIBI: Slips = {
    1 / 1.073741824: "7 % too little: GB (10⁹ bytes) where GiB (2³⁰ bytes) is meant.",
    1.073741824: "7 % too much: GiB (2³⁰ bytes) where GB (10⁹ bytes) is meant.",
}
"""For bytes."""

PERCENT: Slips = {100: "this is in per cent: give the share, between 0 and 1."}
"""For shares."""

HINT = "<hint>"
"""Where the next hint of an exercise stands in its verdict."""

NEAR = 0.001
"""How far from a slip's number an answer may be, as a share, and still stand for it."""


UNANSWERED = "no answer yet. Put in yours and run the cell again."
UNGUESSED = "no guess yet. Put in yours, run the cell, and see how near it comes."


@dataclass(frozen=True)
class Verdict:
    """Right, wrong, or not answered (`ok` is None); its repr is the sentence."""

    id: str
    ok: bool | None
    text: str
    mark: str = ""

    def __bool__(self) -> bool:
        return bool(self.ok)

    def __repr__(self) -> str:
        if self.ok is None:
            return f"○ {self.id}: {self.text}"
        sign, color = ("✓", "green") if self.ok else ("✗", "red")
        if self.mark:
            sign, color = self.mark, "blue"
        return f"{colored(f'{sign} {self.id}', color, force_color=True)}: {self.text}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        ink = {None: "inherit", True: "#007050", False: "#B34700"}[self.ok]
        sign = self.mark or {None: "○", True: "✓", False: "✗"}[self.ok]
        badge = f'<b style="color:{"#0067A5" if self.mark else ink}">{sign}</b>'
        style = "margin:0;font-size:15px;overflow-wrap:break-word"
        told = f'<p style="{style}">{badge} {self.id}: {escape(self.text)}</p>'
        return {"text/html": told, "text/plain": repr(self)}


class Exercise:
    """An exercise: `judge` tells whether an answer is right, and in words why (not)."""

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """(right, wrong or not answered; the sentence that says why)."""
        raise NotImplementedError

    def hints(self) -> tuple[str, ...]:
        """What to say at the first wrong answer, the second, and from then on."""
        return ("",)

    def hints_for(self, answer: Any) -> tuple[str, ...]:
        """The hints for an answer that was judged; an exercise may name its choices."""
        return self.hints()


@dataclass(frozen=True)
class Numeric(Exercise):
    """A number: right within `tolerance` (a share; 0 for an exact count) of the key.

    `unit` writes the key for people; `slips` are wrong ratios with a usual cause, and
    `hint` is for a wrong answer that none of them explains.
    """

    key: Callable[[], float]
    unit: Callable[[float], str]
    hint: str | Sequence[str]
    tolerance: float = 0.005
    slips: Slips = field(default_factory=dict)

    def judge(self, answer: Any) -> tuple[bool, str]:
        """Right, rounded, a known slip, or too high or too low with a hint."""
        if is_array(answer):
            return False, "this is an array: give one number."
        number, key = quantity("answer", _number(answer)), self.key()
        if self._is(number, key, self.tolerance):
            return True, f"right, {self.unit(key)}."
        if _rounded(number, key):
            return self._of_rounded(number, key)
        return False, self._slip(number, key) or self._astray(number, key)

    def hints(self) -> tuple[str, ...]:
        """What to say at the first wrong answer, the second, and from then on."""
        return (self.hint,) if isinstance(self.hint, str) else tuple(self.hint)

    def _is(self, number: float, value: float, share: float) -> bool:
        """Whether it is this value; of an exact count, whether it rounds to it."""
        margin = share * value if self.tolerance else min(0.5, NEAR * value)
        return abs(number - value) <= margin

    def _of_rounded(self, number: float, key: float) -> tuple[bool, str]:
        """On the key in three digits or more: right up to a tenth of a per cent."""
        if abs(number - key) <= NEAR * key:
            return True, f"right, and rounded: exactly it is {self.unit(key)}."
        return False, "nearly: this is rounded; please give at least one digit more."

    def _slip(self, number: float, key: float) -> str:
        """The one slip that it stands for; nothing where none or several fit."""
        near = min(NEAR, self.tolerance or NEAR)
        meant = {
            text
            for ratio, text in self.slips.items()
            if self._is(number, ratio * key, near) or _rounded(number, ratio * key)
        }
        return meant.pop() if len(meant) == 1 else ""

    def _astray(self, number: float, key: float) -> str:
        """Which way it is off, or that it nearly is not."""
        if self.tolerance and _rounded(number, key, digits=2):
            return "nearly: this is rounded; please give one digit more."
        if abs(number - key) < 0.005 * key:
            return f"nearly: is it rounded, or is a small part missing? {HINT}"
        return f"too {'high' if number > key else 'low'}. {HINT}"


def _rounded(number: float, value: float, digits: int = 3) -> bool:
    """Whether it is the value in three digits (or so many), or in more."""
    return any(number == float(f"{value:.{k}e}") for k in range(digits - 1, 15))


def read_as(name: str, written: Any) -> Any:
    """A number as people write it; the error names the entry that holds it."""
    try:
        return units.read(written)
    except ValueError as error:
        raise ValueError(str(error).replace("text=", f"{name}=", 1)) from None


def _number(answer: Any) -> Any:
    """A number as people write it, told in their words if it is none."""
    try:
        return units.read(answer)
    except ValueError as error:
        if not isinstance(answer, str):
            raise
        told = str(error).partition("is no number: ")[2]
        plain = "give the number alone, without its unit"
        raise ValueError(f"{show(answer)} is no number; {plain}; {told}") from None


@dataclass(frozen=True)
class Word(Exercise):
    """A choice: each option has its sentence, and `key` names the right one."""

    key: Callable[[], str]
    options: Mapping[str, str]

    def judge(self, answer: Any) -> tuple[bool, str]:
        """The sentence of the option that was chosen."""
        chosen = _option(answer, self.options)
        return chosen == self.key(), self.options[chosen]


@dataclass(frozen=True)
class Function(Exercise):
    """A function of the learner's: it must agree with `key` on every case.

    One that returns None, as the stub does, counts as not answered. `slips` are wrong
    functions, by the words that name their cause; they take a case's values in order.
    """

    key: Callable[..., Any]
    cases: Sequence[Mapping[str, Any]]
    hint: str | Sequence[str]
    slips: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """The first case that goes wrong, or that all are right."""
        if not callable(answer):
            return False, f"{show(answer)} is no function: leave out the parentheses."
        returned = []
        for case in self.cases:
            told = ", ".join(f"{name}={value}" for name, value in case.items())
            try:
                result = answer(**case)
            except (Exception, SystemExit) as error:
                return False, f"with {told} it raised {show(error)}"
            if result is None:
                return None, UNANSWERED
            returned.append((told, result))
        keys = [self.key(**case) for case in self.cases]
        for (told, result), key in zip(returned, keys, strict=True):
            if not _agree(result, key):
                known = self._slip([result for _, result in returned])
                shown = f"{result:,}" if type(result) is int else show(result)
                side = f"with {told} it returned {shown}, {_side(result, key)}"
                return False, known or f"{side}. {HINT}"
        return True, f"right, in all {len(self.cases)} cases."

    def _slip(self, results: Sequence[Any]) -> str:
        """The slip that gives the same results, in every case."""
        for told, wrong in self.slips.items():
            made = [wrong(*case.values()) for case in self.cases]
            if all(_agree(x, y) for x, y in zip(results, made, strict=True)):
                return told
        return ""

    def hints(self) -> tuple[str, ...]:
        """What to say at the first wrong answer, the second, and from then on."""
        return (self.hint,) if isinstance(self.hint, str) else tuple(self.hint)


def _side(result: Any, key: Any) -> str:
    number = quantity("what it returned", result)
    if is_array(number):
        return "one number is wanted"
    return f"too {'much' if number > key else 'little'}"


def _agree(result: Any, key: Any) -> bool:
    """Equal; for floats, but for the rounding of another order of operations."""
    if isinstance(result, int) and isinstance(key, int):
        return result == key
    number = quantity("what it returned", result)
    return not is_array(number) and math.isclose(number, key, rel_tol=1e-9)


def judge(id: str, answer: object, exercise: Any, tries: int) -> Verdict:
    """The verdict on an answer to an exercise, after so many wrong ones."""
    if answer is None:
        return Verdict(id, None, UNANSWERED)
    try:
        ok, text = exercise.judge(answer)
        hints = exercise.hints_for(answer)
    except Exception as error:  # an answer may be anything at all
        return Verdict(id, False, f"{_first_words(str(error))}.")
    return Verdict(id, ok, _hinted(text, hints[min(tries, len(hints) - 1)]))


def _hinted(text: str, hint: str) -> str:
    """A hint in its place; words after a full stop begin with a capital, code not."""
    before, found, after = text.partition(HINT)
    if not found:
        return text
    if before.endswith((". ", "? ")) and re.match(r"[a-z]+ \w", hint):
        hint = hint[0].upper() + hint[1:]
    return f"{before}{hint}{after}"


def _first_words(problem: str) -> str:
    """As much of a problem as fits into a line or two, cut between words."""
    if len(problem) <= 150:
        return problem.rstrip(".?")
    return problem[:150].rpartition(" ")[0].rstrip(",;:. ") + " …"


@dataclass(frozen=True)
class Prediction:
    """A guess before the answer: a number, or one of some `options`.

    `truth` computes the answer, `unit` writes it for people, and `why` explains it. For
    a choice, `options` has a sentence for each: the belief behind it. Where it is asked
    in per cent, `2` and `"2 %"` are the same.
    """

    truth: Callable[[], Any]
    why: str
    unit: Callable[[float], str] = units.digits
    options: Mapping[str, str] = field(default_factory=dict)
    percent: bool = False

    def reveal(self, guess: Any) -> str:
        """How far the guess was off, what is true, and why."""
        truth = self.truth()
        if self.options:
            chosen = _option(guess, self.options)
            found = "and so it is" if chosen == truth else f"it is {truth!r}"
            return f"you said {chosen!r}, {found}. {self.options[chosen]} {self.why}"
        number = quantity("guess", _number(guess))
        if self.percent and isinstance(guess, str) and "%" in guess:
            number *= 100
        said = guess.strip() if isinstance(guess, str) else f"{number:,}"
        told = f"you said {said}; it is {self.unit(truth)}"
        return f"{told}{_gap(number, truth)}. {self.why}"


def _gap(guess: float, truth: float) -> str:
    """How far off a guess was, as people say it."""
    if guess <= 0:
        return ""
    ratio = max(guess / truth, truth / guess)
    if ratio < 1.05:
        return ": as good as exact"
    side = "too much" if guess > truth else "too little"
    if ratio < 2:
        return f": {units.percent(abs(guess / truth - 1))} {side}"
    return f": {units.digits(ratio, 2)} times {side}"


def _option(answer: Any, options: Mapping[str, Any]) -> str:
    """The option that is meant: in any case, its spaces and commas left aside."""
    known = {_plain(option): option for option in options}
    said = str(answer) if isinstance(answer, int | float) else answer
    if isinstance(said, str):
        word = _plain(said)
        said = known.get(word) or known.get(_plain(SAME.get(word, "")), answer)
    if said in options:
        return str(said)
    told = ", ".join(f'"{option}"' for option in options)
    raise ValueError(f"{show(answer)} is none of the choices: {told}")


SAME = {
    "2": "twice",
    "20": "twice",
    "double": "twice",
    "doubled": "twice",
    "doubles": "twice",
    "4": "four times",
    "05": "half",
    "12": "half",
    "halved": "half",
    "same": "the same",
    "unchanged": "the same",
    "thesame": "same",
}
"""Other ways to say what many predictions ask for."""


def _plain(words: str) -> str:
    return "".join(x for x in words.casefold() if x.isalnum())
