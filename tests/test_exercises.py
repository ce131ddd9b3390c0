"""What the exercises of all chapters share."""

import pytest

from llmtrain_helpers.checks import show
from llmtrain_helpers.exercises import EXERCISES, check
from llmtrain_helpers.exercises.common import SLIPS, Numeric


def test_an_unknown_exercise_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="id='1a' is unknown"):
        check("1a", 3)


@pytest.mark.parametrize("id", EXERCISES)
def test_nothing_answered_yet(id: str) -> None:
    verdict = check(id, None)
    assert verdict.ok is None
    assert not verdict
    assert repr(verdict).startswith(f"○ {id}: no answer yet")


NUMERIC = [
    name for name, exercise in EXERCISES.items() if isinstance(exercise, Numeric)
]


@pytest.mark.parametrize("id", NUMERIC)
def test_a_numeric_key_is_right_and_a_little_more_is_not(id: str) -> None:
    exercise = EXERCISES[id]
    key = exercise.key()
    assert check(id, key).ok is True
    assert "✓" in repr(check(id, key))
    assert check(id, key * (1.002 + 2 * exercise.tolerance)).ok is False
    for ratio, slip in {**SLIPS, **exercise.slips}.items():
        assert check(id, key * ratio).text == slip


@pytest.mark.parametrize("id", NUMERIC)
@pytest.mark.parametrize(
    "bad", [0, -1, float("nan"), "34", [34], True, 10**400], ids=show
)
def test_what_is_no_number_gets_a_sentence_and_no_traceback(id: str, bad) -> None:
    verdict = check(id, bad)
    assert verdict.ok is False
    assert len(repr(verdict)) < 200


def test_a_choice_is_judged_by_its_option() -> None:
    assert check("00-b", "rate").ok is True
    assert "a count has no" in check("00-b", "count").text
    assert "Known: rate, count" in check("00-b", "speed").text
    assert check("00-b", 3).ok is False
