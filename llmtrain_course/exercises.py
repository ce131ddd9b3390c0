"""The exercises: `check` grades an answer, `predict` a guess; `progress` is the score.

Answer keys are computed by the package, never typed; one module a chapter.
"""

from collections.abc import Collection
from pathlib import Path

from termcolor import colored

from llmtrain_course.activations import exercises as activations
from llmtrain_course.batch import exercises as batch
from llmtrain_course.budget import exercises as budget
from llmtrain_course.calendar import exercises as calendar
from llmtrain_course.communication import exercises as communication
from llmtrain_course.duration import exercises as duration
from llmtrain_course.finetune import exercises as finetune
from llmtrain_course.flops import exercises as flops
from llmtrain_course.kit import ids
from llmtrain_course.kit.exercise import (
    UNGUESSED,
    Answer,
    Exercise,
    Prediction,
    Verdict,
    grade,
    problem_of,
)
from llmtrain_course.kit.layout import Picture
from llmtrain_course.kit.own_run import OwnRun, own_run
from llmtrain_course.kit.saved import saved_answers
from llmtrain_course.measure import exercises as measure
from llmtrain_course.parallelism import exercises as parallelism
from llmtrain_course.parameters import exercises as parameters
from llmtrain_course.plan import exercises as plan
from llmtrain_course.precision import exercises as precision
from llmtrain_course.start_here import exercises as start_here
from llmtrain_course.start_here.pictures import course_map as drawn_map
from llmtrain_helpers.checks import choice

_CHAPTERS = [
    start_here,
    parameters,
    flops,
    duration,
    batch,
    precision,
    activations,
    communication,
    parallelism,
    plan,
    calendar,
    budget,
    measure,
    finetune,
]

EXERCISES: dict[str, Exercise] = {
    id: exercise for chapter in _CHAPTERS for id, exercise in chapter.EXERCISES.items()
}
PREDICTIONS: dict[str, Prediction] = {
    id: prediction for chapter in _CHAPTERS for id, prediction in chapter.PREDICTIONS.items()
}

_TRIES: dict[str, list[bool]] = {}
"""Whether each answer since the kernel started was right, by the exercise."""

_HINTS: dict[str, int] = {}
"""How many hints each exercise has given: an answer whose mistake is named gets none."""

_TURNS: dict[str, int] = {}
"""Which question an exercise asks now, where a choice was wrong and came back."""

_GUESSES: dict[str, Answer] = {}
"""The first guess since the kernel started, by the prediction."""


def check(id: str, answer: Answer) -> Verdict:
    """Grade an answer: the verdict is shown as one sentence, and true if the answer is right.

    `answer` is a number in the unit that is asked for (also as text, "7B" or "22.4
    days"), a word, or a function, as the exercise asks; None says that nothing is
    answered yet. A wrong answer is told its mistake, or gets a hint, the next one a further
    one. After a wrong choice the exercise asks something else. An unknown id is a
    ValueError.

    >>> check("parameters-b", None)
    ○ parameters-b: No answer yet. Put in yours and run the cell again.
    """
    id = _of(EXERCISES, id)
    exercise = EXERCISES[id]
    turn = min(_TURNS.get(id, 0), len(exercise.followups))
    solved = True in _TRIES.get(id, [])
    verdict = grade(id, answer, exercise, _HINTS.get(id, 0), turn, solved)
    if verdict.ok is not None:
        _TRIES.setdefault(id, []).append(verdict.ok)
    _HINTS[id] = _HINTS.get(id, 0) + verdict.hinted
    _TURNS[id] = verdict.turn
    return verdict


def predict(id: str, guess: Answer) -> Verdict:
    """Compare a guess with the truth: nothing while it's None, then the truth and the gap.

    The first guess counts: a later one is answered too, and told what the first one was.

    >>> predict("start_here-guess", None)
    ○ start_here-guess: No guess yet. Put in yours, run the cell, and see how close you are.
    """
    id = _of(PREDICTIONS, id)
    prediction = PREDICTIONS[id]
    if guess is None:
        return Verdict(id, None, UNGUESSED)
    first = _GUESSES.get(id, guess)
    try:
        sentence = prediction.reveal(guess)
        if first != guess:
            sentence = f"First {prediction.echo(first)}, now {sentence[0].lower()}{sentence[1:]}"
    except KeyboardInterrupt:  # the learner stops it
        raise
    except BaseException as error:  # as in `grade`: a guess may be anything at all
        return Verdict(id, None, f"{problem_of(error)}.")
    _GUESSES.setdefault(id, guess)
    return Verdict(id, True, sentence, mark="→")


class Progress:
    """The answers since the kernel started, shown as one line per chapter."""

    def __repr__(self) -> str:
        touched = {ids.chapter_of(id) for id in [*_TRIES, *_GUESSES]}
        lines = [_line(chapter) for chapter in ids.CHAPTERS if chapter in touched]
        return "\n".join(lines) or "○ Nothing answered yet in this notebook"


def progress() -> Progress:
    """Return the exercises and predictions done so far, for learner and teacher.

    >>> progress()
    ○ Nothing answered yet in this notebook
    """
    return Progress()


def course_map() -> Picture:
    """Draw the chapters of the course, each with what's done of it, now and as saved.

    A page's answers count once it is saved beside this one, or given in this kernel.
    """
    here = {id for id, tries in _TRIES.items() if True in tries} | {*_GUESSES}
    done = here | saved_answers(Path())
    counts = dict.fromkeys(ids.CHAPTERS, (0, 0))
    for id in [*EXERCISES, *PREDICTIONS]:
        passed, whole = counts[ids.chapter_of(id)]
        counts[ids.chapter_of(id)] = passed + (id in done), whole + 1
    return drawn_map({ids.page_of(chapter)[:2]: count for chapter, count in counts.items()})


def _of(asked: Collection[str], id: str) -> str:
    """Return an id as it is today; a ValueError names it as it was given."""
    today = ids.current(id) if isinstance(id, str) else ""
    return today if today in asked else choice("id", id, asked)


def _line(chapter: str) -> str:
    """The marks of a chapter's exercises, and how many are passed and guessed."""
    asked = [id for id in EXERCISES if ids.chapter_of(id) == chapter]
    passed = sum(True in _TRIES.get(id, []) for id in asked)
    predictions = [id for id in PREDICTIONS if ids.chapter_of(id) == chapter]
    guessed = sum(id in _GUESSES for id in predictions)
    marks = "  ".join(f"{_mark(_TRIES.get(id))} {id}" for id in asked)
    exercises = f"{passed} of {len(asked)} exercises"
    return f"{marks}   {exercises}, {guessed} of {len(predictions)} guesses"


def _mark(tries: list[bool] | None) -> str:
    if not tries:
        return "○"
    return colored("✓", "green", force_color=True) if True in tries else "✗"


__all__ = [
    "EXERCISES",
    "PREDICTIONS",
    "Exercise",
    "OwnRun",
    "Prediction",
    "Verdict",
    "check",
    "course_map",
    "own_run",
    "predict",
    "progress",
]
