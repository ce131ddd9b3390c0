"""What the exercises of all chapters share: answer, mistake, hint, verdict.

An `Exercise` grades a learner's answer. If it's wrong, we look it up among the mistakes
that people often make there, so that the verdict can name the mistake instead of only
saying no. A mistake is one line: a wrong answer, and the reply to it.

    common_mistakes={**TENFOLD, 24: "Those are hours, so divide by 24."}

If no mistake explains a wrong answer, the reply says which way it's off and gives a hint:
the first one, then a plainer one, and in the end where the worked answer is. A mistake
that's named doesn't use up a hint.

A choice that was wrong comes back as another question: see `Question`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from inspect import Parameter, signature
from typing import Any, TypeAlias

from termcolor import colored

from llmtrain_course.kit import ids
from llmtrain_course.kit.drawing import keep_dollars
from llmtrain_course.kit.formula import Mistakes, wrong_answers
from llmtrain_helpers import units
from llmtrain_helpers.checks import Number, Result, is_array, quantity, refuse, show

Answer: TypeAlias = Any
"""What a learner gives: a number (also as text, "7B"), a word, a function, a model, a
tuple or a dictionary. It is not checked yet, and may be anything at all."""

Design: TypeAlias = Mapping[str, Any]
"""An answer of several entries, by their names: a run that the learner has designed.
The entries are as the learner wrote them; `entry` reads a number."""

Grade: TypeAlias = tuple[bool | None, str]
"""Whether an answer is right (None: not answered yet), and the sentence that says why."""

HINT = "<hint>"
"""A placeholder in a grade's sentence for the exercise's next hint."""

UNANSWERED = "No answer yet. Put in yours and run the cell again."
UNGUESSED = "No guess yet. Put in yours, run the cell, and see how close you are."

NOT_YET: Grade = (None, UNANSWERED)
"""The grade of an answer that still has a None in it."""

# --- mistakes that many exercises share

TENFOLD: Mistakes = {
    "10 * key": "That's 10× too high. 10e9 is ten billion, and one billion is 1e9.",
    "key / 10": "That's 10× too low. 10e12 is ten trillion, and one trillion is 1e12.",
}
"""Mistakes with what is computed from billions and trillions."""

PREFIXES: Mistakes = {
    **TENFOLD,
    "1e3 * key": "That's 1,000× too high. Check the unit prefixes, because we use SI base units.",
    "key / 1e3": "That's 1,000× too low. Check the unit prefixes, because we use SI base units.",
    "1e6 * key": "That's too high by a factor of a million. Did you count a unit prefix twice?",
    "key / 1e6": "That's too low by a factor of a million. Give the number itself, not millions.",
    "1e9 * key": "That's too high by a factor of a billion. Did you count a unit prefix twice?",
    "key / 1e9": "That's too low by a factor of a billion. Give the number itself, not billions.",
    "key / 1e12": "That's too low by a factor of 10¹². Give the number itself, not trillions or "
    "tera.",
}
"""Mistakes with large counts and rates."""

TWICE: Mistakes = {
    "2 * key": "That's double the answer. Did you count something twice?",
    "key / 2": "That's half the answer. A multiply-add is 2 FLOPs.",
}
"""Mistakes with FLOPs."""

GIBI: Mistakes = {
    "key * 1e9 / 2**30": "That's 7% too low. Did you use GB (10⁹ bytes) instead of GiB (2³⁰ "
    "bytes)?",
    "key * 2**30 / 1e9": "That's 7% too high. Did you use GiB (2³⁰ bytes) instead of GB (10⁹ "
    "bytes)?",
}
"""Mistakes with bytes."""

PERCENT: Mistakes = {"100 * key": "That's a percentage. Give the share, between 0 and 1."}
"""Mistakes with shares."""

NEAR = 0.001
"""How far from a mistake's number an answer may be, as a share, and still stand for it."""


# --- verdicts


@dataclass(frozen=True)
class Verdict:
    """Right, wrong, or not answered (`ok` is None); its repr is the sentence.

    `hinted` says whether a hint was given, and `turn` which question stands now: 0 the
    exercise's own, then those of its `followups`.
    """

    id: str
    ok: bool | None
    text: str
    mark: str = ""
    hinted: bool = False
    turn: int = 0

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
        return {"text/html": keep_dollars(self.html(_from_here())), "text/plain": repr(self)}

    def html(self, solution: Callable[[str], str]) -> str:
        """The paragraph of a page; `solution` makes a link's address of an exercise."""
        ink = {None: "inherit", True: "#007050", False: "#B34700"}[self.ok]
        sign = self.mark or {None: "○", True: "✓", False: "✗"}[self.ok]
        badge = f'<b style="color:{"#0067A5" if self.mark else ink}">{sign}</b>'
        style = "margin:0;font-size:15px;overflow-wrap:break-word"
        text = escape(self.text)
        if path := solution_of(self.id):
            link = f'<a href="{escape(solution(self.id))}">the solutions</a>'
            text = text.replace(path, link)
        for lead in map(escape, (_NEXT, _NOW)):
            before, asks, question = text.partition(lead)
            if asks:
                text = f'{before}<span class="asked"><br><b>{lead}</b>{question}</span>'
        return f'<p style="{style}">{badge} {self.id}: {text}</p>'


def solution_of(id: str) -> str:
    """Return the notebook with the worked answer to an exercise; "" where there is none.

    >>> solution_of("duration-a")
    'solutions/03_duration.ipynb'
    """
    chapter = ids.chapter_of(id)
    return f"solutions/{ids.page_of(chapter)}.ipynb" if chapter else ""


def _from_here() -> Callable[[str], str]:
    """How JupyterLab finds a solution's cell, from the folder of this notebook."""
    try:
        inner = os.path.basename(os.getcwd()) in ("solutions", "evidence")
    except OSError:  # the folder is gone
        inner = False
    above = "../" if inner else ""

    def address(id: str) -> str:
        return f"{above}{solution_of(id)}#cell-id={_cell_of(id)}"

    return address


def _cell_of(id: str) -> str:
    """The cell of a solution that answers an exercise, or the one to fill in."""
    part = ids.part_of(id)
    return f"exercise-{part}-text" if len(part) == 1 else part


def grade(
    id: str, answer: Answer, exercise: Exercise, tries: int, turn: int = 0, solved: bool = False
) -> Verdict:
    """The verdict on an answer to an exercise, after so many hints.

    `turn` is the question that stands: 0 the exercise's own, then those of its `followups`.
    If it's `solved`, people may look at what's wrong with other choices, and nothing more is
    asked.
    """
    asked = exercise.followups[turn - 1].text if turn else ""
    one = exercise.followups[turn - 1].exercise if turn else exercise
    if answer is None:
        return Verdict(id, None, f"{one.stub}{asked and f' {_NOW} {asked}'}", turn=turn)
    try:
        ok, text = one.grade(answer)
        hints = [hint for hint in one.hints_for(answer) if hint]
        echo = _understood(answer)
    except KeyboardInterrupt:  # the learner stops it
        raise
    except BaseException as error:  # an answer may call exit(): SystemExit isn't an Exception
        if not turn and (reply := _right_later(answer, exercise)):
            return Verdict(id, True, reply)
        problem = f"{problem_of(error)}."
        if not turn:
            return Verdict(id, False, problem)
        if (verdict := _verdict_on_first(id, answer, exercise, turn)) is not None:
            return verdict
        return Verdict(id, False, f"{problem} {_NOW} {asked}", turn=turn)
    if turn and not ok and (verdict := _verdict_on_first(id, answer, exercise, turn)) is not None:
        return verdict
    asks_more = ok is False and turn < len(exercise.followups) and HINT not in text
    if asks_more and solved and not turn:
        return Verdict(id, False, f"{text} Your right answer still counts.")
    if asks_more and exercise.moves_on(answer):
        return Verdict(id, False, f"{text} {_NEXT} {exercise.followups[turn].text}", turn=turn + 1)
    if ok is False and not hints:  # what was said is a first hint
        text, hints = text if HINT in text else f"{text} {HINT}", [""]
    if path := solution_of(id):
        hints.append(f"The worked answer is in {path}.")
    hinted = HINT in text
    text = _with_hint(f"{echo}{text}", hints[min(tries, len(hints) - 1)] if hints else "").strip()
    return Verdict(id, ok, text, exercise.mark if ok else "", hinted, turn)


_NEXT, _NOW = "Here's a different question instead:", "The new question still stands:"


def _grade_of(answer: Answer, exercise: Exercise) -> Grade | None:
    """Return an exercise's grade of an answer, or None if it doesn't understand the answer."""
    try:
        return exercise.grade(answer)
    except KeyboardInterrupt:  # the learner stops it
        raise
    except BaseException:  # see `grade`
        return None


def _verdict_on_first(id: str, answer: Answer, exercise: Exercise, turn: int) -> Verdict | None:
    """The verdict on an answer to the first question, given once more while another stands."""
    own_grade = _grade_of(answer, exercise)
    if own_grade is None:
        return None
    right, text = own_grade[0], _with_hint(own_grade[1], "").strip()
    reply = f"Right this time: {re.sub('^[Rr]ight[:,.]? ', '', text)}" if right else text
    asked = exercise.followups[turn - 1].text
    return Verdict(id, False if right is False else None, f"{reply} {_NOW} {asked}", turn=turn)


def _right_later(answer: Answer, exercise: Exercise) -> str:
    """What is said to an answer that is right for a further question; "" to any other."""
    for question in exercise.followups:
        reply = _grade_of(answer, question.exercise)
        if reply and reply[0]:
            return reply[1]
    return ""


def _understood(answer: Answer) -> str:
    """Repeat entries of a design that are in other units than asked, as understood."""
    if not isinstance(answer, Mapping):
        return ""
    echoes = [
        f"{name}: {units.read_as(value, UNITS[name]).message}"
        for name, value in answer.items()
        if name in UNITS and isinstance(value, str)
    ]
    return "".join(f"{text}. " for text in echoes if not text.endswith(": "))


def _with_hint(text: str, hint: str) -> str:
    """A sentence with its hint; words after a full stop begin with a capital, code not."""
    before, placeholder, after = text.partition(HINT)
    if not placeholder:
        return text
    if before.endswith((". ", "? ")) and re.match(r"[a-z]+ \w", hint):
        hint = hint[0].upper() + hint[1:]
    return f"{before}{hint}{after}"


def problem_of(error: BaseException) -> str:
    """What an error says in a line or two; its name where it says nothing, or cannot."""
    try:
        problem = str(error)
    except Exception:
        problem = ""
    if not problem:
        return f"Your answer raised {type(error).__name__}"
    if len(problem) <= 150:
        return problem.rstrip(".?")
    return problem[:150].rpartition(" ")[0].rstrip(",;:. ") + " …"


# --- exercises


class Exercise:
    """A question whose answers can be graded; each kind of exercise says how."""

    hint: str | Sequence[str] = ""
    """What to say at the first wrong answer that no mistake explains, and at the next ones;
    after the last of them comes the link to the worked answer."""

    stub: str = UNANSWERED
    """What to say while the answer is None."""

    mark: str = ""
    """The sign of an answer that is accepted but not graded; "" for the ✓ of a right one."""

    followups: Sequence[Question] = ()
    """What is asked, one after the other, when the answer before it was wrong."""

    def grade(self, answer: Answer) -> Grade:
        """Whether an answer is right, and why it is (not)."""
        raise NotImplementedError

    def moves_on(self, answer: Answer) -> bool:
        """Whether the next question follows this answer, if it is wrong and no hint does."""
        return True

    def hints(self) -> tuple[str, ...]:
        """The hints in their order, also where there is only one."""
        return (self.hint,) if isinstance(self.hint, str) else tuple(self.hint)

    def hints_for(self, answer: Answer) -> tuple[str, ...]:
        """The hints for an answer that was graded; an exercise may name its choices."""
        return self.hints()


@dataclass(frozen=True)
class Question:
    """What an exercise asks after a wrong choice: its words, and how it's graded.

    A choice of four falls to four tries. So after a wrong one the same cell is asked
    something else, the number behind the choice at last, which no trying finds. Who
    answers that at once, as a notebook that is run anew does, is right as well.
    """

    text: str
    exercise: Exercise


@dataclass(frozen=True)
class Numeric(Exercise):
    """A number: right within `tolerance` (a share; 0 for an exact count) of the key.

    `unit` writes the key for people; `asked` is the unit in which it is asked for, one
    of `units.UNITS`, "" for a number without one. An answer in another unit of its kind
    is converted, unless that is the exercise (`converts`). `common_mistakes` has wrong
    answers, each as a formula over `values` and the `key`, or as a number, with the reply.
    `hint` is for a wrong answer that none explains.
    """

    key: Callable[[], float]
    unit: Callable[[float], str]
    hint: str | Sequence[str]
    tolerance: float = 0.005
    common_mistakes: Mistakes = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    asked: str = ""
    converts: bool = True

    def grade(self, answer: Answer) -> Grade:
        """Grade a number: right, rounded, a common mistake, or too high or low, with a hint."""
        if is_array(answer):
            return False, "That's an array, but the answer is one number."
        written = read_written(answer, self.asked)
        number = quantity("answer", written.number)
        if written.unit not in ("", self.asked) and not self.converts:
            problem = f"You've given {written.unit}. Give {self.asked}, without a unit."
            return False, problem
        ok, text = self.grade_number(number)
        return ok, f"{capital(written.message)}. {text}" if written.message else text

    def grade_number(self, number: float) -> Grade:
        """Grade a number in the unit that was asked for, by the first rule that it meets."""
        return next(self._grades(number, self.key()))

    def _grades(self, number: float, key: float) -> Iterator[Grade]:
        """The rules in their order: right, rounded, a mistake, nearly, or off."""
        off = abs(number - key) / key
        if self._is(number, key, self.tolerance):
            yield True, f"Right, {self.unit(key)}."
        if is_rounded(number, key) and off <= NEAR:
            yield True, f"Right, and rounded: the exact value is {self.unit(key)}."
        if is_rounded(number, key):  # in three digits or more, too few for this tolerance
            yield False, "Almost. You've rounded it, so give at least one more digit."
        yield from self._mistake(number, key, self._near)
        if self.tolerance and is_rounded(number, key, digits=2):
            yield False, "Almost. You've rounded it, so give one more digit."
        yield from self._mistake(number, key, is_rounded)
        if off < 0.005:
            yield False, f"Almost. Did you round it, or leave out a small part? {HINT}"
        yield False, f"Too {'high' if number > key else 'low'}. {HINT}"

    def wrong_answers(self) -> list[tuple[float, str]]:
        """Return each common mistake as the number that it gives, with its reply."""
        return wrong_answers(self.common_mistakes, self.values, self.key())

    def _mistake(
        self, number: float, key: float, fits: Callable[[float, float], bool]
    ) -> Iterator[Grade]:
        """The reply to the one mistake that fits a number; none if several do."""
        mistakes = wrong_answers(self.common_mistakes, self.values, key)
        causes = {cause for wrong, cause in mistakes if fits(number, wrong)}
        if len(causes) == 1:
            yield False, causes.pop()

    def _near(self, number: float, value: float) -> bool:
        return self._is(number, value, min(NEAR, self.tolerance or NEAR))

    def _is(self, number: float, value: float, share: float) -> bool:
        """Whether a number is this value; of an exact count, whether it rounds to it."""
        margin = share * value if self.tolerance else min(0.5, NEAR * value)
        return abs(number - value) <= margin


def is_rounded(number: float, value: float, digits: int = 3) -> bool:
    """Whether a number is the value in three digits (or so many), or in more."""
    return any(number == float(f"{value:.{k}e}") for k in range(digits - 1, 15))


def read_written(answer: Answer, asked: str) -> units.Written:
    """Read a number as people write it, or say in a learner's words that it isn't one."""
    try:
        return units.read_as(answer, asked)
    except ValueError as error:
        if kind := other_kind(answer):
            raise ValueError(f"That's {kind}. Give one number, such as 3 or 2.5") from None
        name = "" if isinstance(answer, str) else "answer="
        raise ValueError(str(error).replace("text=", name, 1)) from None


def other_kind(answer: Answer) -> str:
    """What an answer is that is neither a number nor words: "a function", "a list"; else ""."""
    if isinstance(answer, str | int | float) or hasattr(type(answer), "dtype"):
        return ""
    kind = "function" if callable(answer) else type(answer).__name__
    return f"{'an' if kind[0].casefold() in 'aeiou' else 'a'} {kind}"


@dataclass(frozen=True)
class MultipleChoice(Exercise):
    """A choice: each option has its sentence, and `key` names the right one."""

    key: Callable[[], str]
    options: Mapping[str, str]
    followups: Sequence[Question] = ()

    def grade(self, answer: Answer) -> Grade:
        """The sentence of the option that was chosen."""
        chosen = _option(answer, self.options)
        return chosen == self.key(), self.options[chosen]


@dataclass(frozen=True)
class Function(Exercise):
    """A function of the learner's: it must agree with `key` on every case.

    One that returns None, as the stub does, counts as not answered. `common_mistakes` are wrong
    functions, by the words that name their cause; they take a case's values in order.
    """

    key: Callable[..., Number]
    cases: Sequence[Mapping[str, int]]
    hint: str | Sequence[str]
    common_mistakes: Mapping[str, Callable[..., Number]] = field(default_factory=dict)

    def grade(self, answer: Answer) -> Grade:
        """The first case that goes wrong, or that all are right."""
        if not callable(answer):
            return False, f"{show(answer)} isn't a function. Give its name without parentheses."
        results = []
        for case in self.cases:
            try:
                result = _called(answer, case)
            except _ArgumentsError as error:
                return False, str(error)
            except KeyboardInterrupt:  # the learner stops it
                raise
            except BaseException as error:  # see `grade`
                return False, f"With {_arguments(case)} it raised {_raised(error)}"
            if result is None:
                return NOT_YET
            results.append(result)
        keys = [self.key(**case) for case in self.cases]
        for case, result, key in zip(self.cases, results, keys, strict=True):
            if not _agree(result, key):
                cause = self._mistake(results)
                result_text = f"{result:,}" if type(result) is int else show(result)
                problem = f"With {_arguments(case)} it returned {result_text}, {_side(result, key)}"
                return False, cause or f"{problem}. {HINT}"
        return True, f"Right, in all {len(self.cases)} cases."

    def _mistake(self, results: Sequence[Number]) -> str:
        """Return the reply to the mistake that gives the same results in every case."""
        for cause, wrong in self.common_mistakes.items():
            wrong_results = [wrong(*case.values()) for case in self.cases]
            if all(_agree(x, y) for x, y in zip(results, wrong_results, strict=True)):
                return cause
        return ""


class _ArgumentsError(Exception):
    """A function takes more or fewer arguments than it should."""


def _called(function: Callable[..., Any], case: Mapping[str, int]) -> Any:
    """What a function returns; arguments that it names otherwise come in their order."""
    try:
        params = signature(function).parameters
    except (TypeError, ValueError):  # some of C have none
        return function(**case)
    kinds = {each.kind for each in params.values()}
    if Parameter.VAR_POSITIONAL in kinds:
        return function(*case.values())
    plain = {x: each for x, each in params.items() if each.kind is not Parameter.VAR_KEYWORD}
    own = [name for name in plain if name not in case]
    needed = [name for name in own if plain[name].default is Parameter.empty]
    if len(plain) < len(params) and not needed:  # it takes any name
        return function(**case)
    others = [name for name in case if name not in plain]
    own = needed if len(needed) == len(others) else own[: len(others)]
    if not len(needed) <= len(own) == len(others):
        takes = ", ".join(params) or "nothing"
        raise _ArgumentsError(f"It takes {takes}, but it should take {', '.join(case)}.")
    values = {name: case[name] for name in case if name in plain}
    values |= {x: case[y] for x, y in zip(own, others, strict=True)}
    first = [x for x in plain if plain[x].kind is Parameter.POSITIONAL_ONLY and x in values]
    return function(*[values.pop(name) for name in first], **values)


def _raised(error: BaseException) -> str:
    """An error as Python shows it; a long one by its name and as many words as fit."""
    message = show(error)
    cut = message.endswith("...") and len(message) == 60
    return f"{type(error).__name__}: {problem_of(error)}" if cut else message


def _arguments(case: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in case.items())


def _side(result: Number, key: Number) -> str:
    """Which way a result is off its key."""
    number = quantity("what it returned", result)
    if is_array(number):
        return "and it should be one number"
    return f"which is too {'high' if number > key else 'low'}"


def _agree(result: Number, key: Number) -> bool:
    """Whether two results are equal; floats may come from another order of operations."""
    if isinstance(result, int) and isinstance(key, int):
        return result == key
    number = quantity("what it returned", result)
    return not is_array(number) and math.isclose(number, key, rel_tol=1e-9)


# --- designs


def unanswered(answer: Answer) -> bool:
    """Whether a design has an entry that is still None."""
    return isinstance(answer, Mapping) and None in answer.values()


def design_of(answer: Answer, names: Sequence[str], example: str) -> Design:
    """An answer that has all these entries; a ValueError for any other.

    `example` shows the first entries, as in "model=…, gpus=…".
    """
    if not isinstance(answer, Mapping):
        refuse("answer", answer, f"isn't a dict({example}, …)")
    missing = [name for name in names if name not in answer]
    if missing:
        refuse("answer", answer, f"leaves out {', '.join(missing)}")
    return answer


UNITS = dict.fromkeys(["days", "computing_days", "calendar_days", "promised_days"], "days")
UNITS |= dict.fromkeys(["gpus", "tensor", "my_gpus"], "GPUs")
UNITS |= dict.fromkeys(["tokens", "sequence"], "tokens")
UNITS |= dict.fromkeys(["batch", "micro", "my_batch"], "sequences")
UNITS |= dict.fromkeys(["gigabytes", "peak"], "GB")
UNITS |= dict.fromkeys(["restart_minutes", "save_minutes"], "minutes") | {"write_seconds": "s"}
UNITS |= dict.fromkeys(["warm_up", "repeats"], "steps") | {"accumulation": "passes"}
UNITS |= {"pipeline": "stages", "spare_nodes": "nodes", "layers": "layers", "price": "dollars"}
"""The units in which a design's entries are asked for, by their names."""


def entry(design: Design, name: str, check: Callable[[str, object], Result] = quantity) -> Result:
    """A design's entry as a number that passes a check; a ValueError names the entry."""
    return check(name, read_as(name, design[name]))


def read_as(name: str, written: Answer, unit: str = "") -> Result:
    """A number as people write it, in its unit; the error names the entry that holds it."""
    try:
        return units.read_as(written, unit or UNITS.get(name, "")).number
    except ValueError as error:
        if kind := other_kind(written):
            refuse(name, written, f"is {kind}, but give one number, such as 3 or 2.5")
        raise ValueError(str(error).replace("text=", f"{name}=", 1)) from None


# --- predictions


@dataclass(frozen=True)
class Prediction:
    """A guess before the answer: a number, or one of some `options`.

    `truth` computes the answer, `unit` writes it for people, and `why` explains it. For
    a choice, `options` has a sentence for each: the belief behind it. `asked` is the
    unit of a guess, one of `units.UNITS`; of "%", `2` and `"2%"` are the same.
    """

    truth: Callable[[], float | str]
    why: str
    unit: Callable[[float], str] = units.digits
    options: Mapping[str, str] = field(default_factory=dict)
    asked: str = ""

    def reveal(self, guess: Answer) -> str:
        """Tell how far off a guess was, the truth, and why."""
        truth, echo = self.truth(), self.echo(guess)
        if isinstance(truth, str):
            chosen = _option(guess, self.options)
            outcome = "and that's right" if chosen == truth else f"but it's {truth!r}"
            return f"{capital(echo)}, {outcome}. {self.options[chosen]} {self.why}"
        number = self._read(guess).number
        return f"{capital(echo)}. It's {self.unit(truth)}{_gap(number, truth)}. {self.why}"

    def echo(self, guess: Answer) -> str:
        """Repeat a guess as it was understood: "you said 3"."""
        if self.options:
            return f"you said {_option(guess, self.options)!r}"
        written = self._read(guess)
        text = guess.strip() if isinstance(guess, str) else f"{written.number:,}"
        return written.message or f"you said {text}"

    def _read(self, guess: Answer) -> units.Written:
        """Read a guess as a number, or say in plain words that it isn't one."""
        if isinstance(guess, str) and not re.search("[0-9]", guess):
            raise ValueError("Your guess has to be a number, such as 3 or 2.5")
        written = read_written(guess, self.asked)
        if written.number <= 0:
            text = guess.strip() if isinstance(guess, str) else guess
            raise ValueError(f"Your guess has to be more than 0, and this is {text}")
        return replace(written, number=quantity("guess", written.number))


def _gap(guess: float, truth: float) -> str:
    """How far off a guess was, as people say it."""
    if guess <= 0:
        return ""
    ratio = max(guess / truth, truth / guess)
    if ratio < 1.02:
        return ", and that's as good as exact"
    side = "too high" if guess > truth else "too low"
    if ratio < 2:
        return f", so you're {units.digits(100 * abs(guess / truth - 1), 2)}% {side}"
    return f", so you're {units.digits(ratio, 2)}× {side}"


# --- options of a choice


def _option(answer: Answer, options: Collection[str]) -> str:
    """The option that is meant: in any case, its spaces and commas left aside."""
    by_letters = {_letters(option): option for option in options}
    chosen = str(answer) if isinstance(answer, int | float) else answer
    if isinstance(chosen, str):
        word = _letters(chosen)
        chosen = by_letters.get(word) or by_letters.get(_letters(SYNONYMS.get(word, "")), answer)
    if isinstance(chosen, str) and chosen in options:
        return chosen
    choices = ", ".join(f'"{option}"' for option in options)
    raise ValueError(f"{show(answer)} isn't one of the choices: {choices}")


SYNONYMS = {
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
"""Other ways to say what many predictions ask for, without spaces and signs."""


def capital(sentence: str) -> str:
    """Begin a sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


def _letters(words: str) -> str:
    """Only the letters and digits of some words, in lower case."""
    return "".join(x for x in words.casefold() if x.isalnum())
