"""Every right answer is right, and every slip is named: the tables of `answers`."""

from __future__ import annotations

from typing import Any

import pytest

from llmtrain_course.exercises import EXERCISES, check
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
