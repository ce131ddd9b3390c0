"""What the exercises of all chapters share."""

import numpy as np
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


class Hostile:
    """An answer that fails at whatever is done with it."""

    def __repr__(self) -> str:
        raise RuntimeError("x" * 5000)

    __getattr__ = __eq__ = __float__ = __bool__ = __call__ = __repr__


def raising(**_: object) -> None:
    raise ValueError("x" * 5000)


@pytest.mark.parametrize("id", EXERCISES)
@pytest.mark.parametrize(
    "answer",
    [Hostile(), [], {}, np.zeros(3), lambda **_: Hostile(), raising, exit],
    ids=type,
)
def test_an_answer_may_be_anything_at_all(id: str, answer) -> None:
    verdict = check(id, answer)
    assert verdict.ok is False
    assert len(repr(verdict)) < 400


def test_another_order_of_operations_is_as_right() -> None:
    assert check(
        "03-c", lambda num_gpus, days, price: days * num_gpus * (price * 24)
    ).ok
    seconds = lambda num_gpus, days, price: days * 86400 * num_gpus * (price / 3600)  # noqa: E731
    assert check("03-c", seconds).ok


def test_a_slip_is_named_only_where_it_fits() -> None:
    key = EXERCISES["01-a"].key()
    assert "last LayerNorm" in check("01-a", key + 2 * 6144).text
    assert check("01-a", key + 1).text.startswith("too high")
    assert "GB (10⁹ bytes) where GiB" in check("00-c", 80e9).text


def test_a_choice_is_judged_by_its_option() -> None:
    assert check("00-b", "rate").ok is True
    assert "a count has no" in check("00-b", "count").text
    assert "Known: rate, count" in check("00-b", "speed").text
    assert check("00-b", 3).ok is False
