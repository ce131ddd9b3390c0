"""Every right answer is right, and every slip is named: the tables of `answers`."""

from __future__ import annotations

from typing import Any

import pytest

from llmtrain_course.exercises import EXERCISES, check
from llmtrain_course.kit.exercise import (
    GIBI,
    PERCENT,
    PREFIXES,
    TWICE,
    Exercise,
    Function,
    MultipleChoice,
    Numeric,
    grade,
)
from llmtrain_course.kit.ids import chapter_of
from llmtrain_course.kit.kinds import FillIn
from tests.faces.exercises.answers import ANSWERS

RIGHT = [(id, answer, "") for id, answers in ANSWERS.items() for answer in answers.right]
RIGHT += [
    (id, answer, words) for id, answers in ANSWERS.items() for answer, words in answers.replies
]
MISTAKES = [
    (id, answer, words)
    for id, answers in ANSWERS.items()
    for answer, words in answers.common_mistakes
]
UNANSWERED = [(id, answer) for id, answers in ANSWERS.items() for answer in answers.unanswered]


def test_each_exercise_has_its_answers() -> None:
    assert [*ANSWERS] == [*EXERCISES]
    assert all(answers.right and answers.common_mistakes for answers in ANSWERS.values())


SHARED = {*PREFIXES.values(), *TWICE.values(), *GIBI.values(), *PERCENT.values()}
"""Replies to slips of units, which need no row in every exercise."""


def replies(exercise: Exercise) -> set[str]:
    """An exercise's own replies to wrong answers that it names."""
    match exercise:
        case MultipleChoice():
            return {text for name, text in exercise.options.items() if name != exercise.key()}
        case Numeric():
            return {*exercise.common_mistakes.values()} - SHARED
        case FillIn() | Function():
            return {*exercise.common_mistakes}
    return set()


@pytest.mark.parametrize("id", EXERCISES)
def test_each_reply_has_an_answer_that_gets_it(id: str) -> None:
    exercise = EXERCISES[id]
    texts = [grade(id, answer, exercise, 0).text for answer, _ in ANSWERS[id].common_mistakes]
    without = [reply for reply in replies(exercise) if not any(reply in x for x in texts)]
    assert not without, f"write a row in answers/{chapter_of(id)}.py"


@pytest.mark.parametrize(("id", "answer", "words"), RIGHT)
def test_a_right_answer_is_right(id: str, answer: Any, words: str) -> None:
    verdict = check(id, answer)
    assert verdict.ok is True, verdict.text
    assert words in verdict.text


@pytest.mark.parametrize(("id", "answer", "words"), MISTAKES)
def test_a_slip_is_named(id: str, answer: Any, words: str) -> None:
    verdict = check(id, answer)
    assert verdict.ok is False, verdict.text
    assert words in verdict.text


@pytest.mark.parametrize(("id", "answer"), UNANSWERED)
def test_what_is_left_open_is_no_answer(id: str, answer: Any) -> None:
    assert check(id, answer).ok is None
