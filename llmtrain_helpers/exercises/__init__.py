"""The exercises: `check` judges an answer, `predict` a guess; `progress` is the score.

Answer keys are computed by the package, never typed; one module a chapter.
"""

from termcolor import colored

from llmtrain_helpers.checks import choice
from llmtrain_helpers.exercises import (
    activations,
    batch,
    budget,
    calendar,
    communication,
    duration,
    flops,
    measure,
    parameters,
    plan,
    precision,
    start_here,
)
from llmtrain_helpers.exercises.common import UNGUESSED, Exercise, Prediction, Verdict, judge

_CHAPTERS = [start_here, parameters, flops, duration, batch]
_CHAPTERS += [precision, activations, communication]
_CHAPTERS += [plan, calendar, budget, measure]

EXERCISES: dict[str, Exercise] = {
    id: exercise for chapter in _CHAPTERS for id, exercise in chapter.EXERCISES.items()
}
PREDICTIONS: dict[str, Prediction] = {
    id: prediction
    for chapter in _CHAPTERS
    for id, prediction in getattr(chapter, "PREDICTIONS", {}).items()
}

_TRIES: dict[str, list[bool]] = {}
_GUESSES: dict[str, object] = {}
"""What was answered and guessed since the kernel started."""


def check(id: str, answer: object) -> Verdict:
    """The verdict on an answer; shown as one sentence, true when the answer is right.

    `answer` is a number in SI base units (also as text, "7B"), a word, or a function,
    as the exercise asks; None says that nothing is answered yet. A wrong answer gets a
    hint, the next one a further one. An unknown id is a ValueError.

    >>> check("01-a", None)
    ○ 01-a: no answer yet. Put in yours and run the cell again.
    """
    exercise = EXERCISES[choice("id", id, EXERCISES)]
    wrong = _TRIES.get(id, []).count(False)
    verdict = judge(id, answer, exercise, wrong)
    if verdict.ok is not None:
        _TRIES.setdefault(id, []).append(verdict.ok)
    return verdict


def predict(id: str, guess: object) -> Verdict:
    """What a guess is worth: nothing while it is None, then the truth and the gap.

    The first guess counts: a later one is told what the first one was.

    >>> predict("00-guess", None)
    ○ 00-guess: no guess yet. Put in yours, run the cell, and see how near it comes.
    """
    prediction = PREDICTIONS[choice("id", id, PREDICTIONS)]
    if guess is None:
        return Verdict(id, None, UNGUESSED)
    try:
        again = "" if _GUESSES.get(id, guess) == guess else "Your first guess counts: "
        told = prediction.reveal(_GUESSES.get(id, guess))
    except Exception as error:  # a guess may be anything at all
        return Verdict(id, None, f"{_told(error)}.")
    _GUESSES.setdefault(id, guess)
    return Verdict(id, True, f"{again}{told}", mark="→")


def _told(error: Exception) -> str:
    try:
        return str(error)[:150]
    except Exception:
        return type(error).__name__


class Progress:
    """What has been answered since the kernel started; shown as a line a chapter."""

    def __repr__(self) -> str:
        return "\n".join(_line(chapter) for chapter in sorted(_touched())) or (
            "○ nothing answered yet in this notebook"
        )


def progress() -> Progress:
    """The exercises and predictions done so far, for learner and teacher.

    >>> progress()
    ○ nothing answered yet in this notebook
    """
    return Progress()


def _touched() -> set[str]:
    return {id[:2] for id in [*_TRIES, *_GUESSES]}


def _line(chapter: str) -> str:
    marks = {id: _mark(_TRIES.get(id)) for id in EXERCISES if id[:2] == chapter}
    passed = sum(True in _TRIES.get(id, []) for id in marks)
    guesses = [id for id in PREDICTIONS if id[:2] == chapter]
    made = sum(id in _GUESSES for id in guesses)
    told = "  ".join(f"{mark} {id}" for id, mark in marks.items())
    counted = f"{passed} of {len(marks)} exercises, {made} of {len(guesses)} guesses"
    return f"{told}   {counted}"


def _mark(tries: list[bool] | None) -> str:
    if not tries:
        return "○"
    return colored("✓", "green", force_color=True) if True in tries else "✗"


__all__ = [
    "EXERCISES",
    "PREDICTIONS",
    "Exercise",
    "Prediction",
    "Verdict",
    "check",
    "predict",
    "progress",
]
