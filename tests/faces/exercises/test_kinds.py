"""A kind of exercise that pages choose from: a blank."""

import re

import numpy as np
import pytest

from llmtrain_course.exercises import EXERCISES, check
from llmtrain_course.kit.exercise import grade
from llmtrain_course.kit.kinds import FillIn
from tests.faces.exercises.test_common import verdict_for

LAYER = FillIn(
    key=lambda: 12 * 4096**2,
    unit=lambda number: f"{number:,} weights",
    hint="Which matrices are there?",
    common_mistakes={"the MLP is missing: 8h² more.": lambda: 4 * 4096**2},
    tolerance=0,
)
BLANKS = {id: one for id, one in EXERCISES.items() if isinstance(one, FillIn)}


@pytest.mark.parametrize("id", BLANKS)
def test_a_rounded_line_is_right_unless_an_exact_count_is_asked(id: str) -> None:
    blank = BLANKS[id]
    key = blank.key()
    exact = isinstance(key, int) and blank.unit(key).startswith(f"{key:,} ")
    assert blank.tolerance == (0 if exact else 0.01)
    for digits in (3, 4, 5):
        rounded = float(f"{key:.{digits - 1}e}")
        verdict = check(id, rounded)
        if rounded == key:
            assert verdict.text.startswith("Right, ")
        elif blank.tolerance:
            assert verdict.text.startswith(f"Right, {blank.unit(key)}. You can let Python")
        else:
            assert verdict.ok is False
            assert "exact count, so let Python compute it" in verdict.text
    assert bool(check(id, key * 1.009)) == bool(check(id, key * 0.993)) == bool(blank.tolerance)
    assert not check(id, key * 1.011)


@pytest.mark.parametrize("id", BLANKS)
def test_a_slip_of_a_line_is_named_when_it_is_rounded_too(id: str) -> None:
    for cause, wrong in BLANKS[id].common_mistakes.items():
        for number in (wrong(), float(f"{wrong():.3e}")):
            assert check(id, number).text == cause
        assert abs(wrong() / BLANKS[id].key() - 1) > BLANKS[id].tolerance


def test_a_line_that_people_round_by_hand() -> None:
    for id, number in (
        ("calendar-cost", 0.0894),
        ("budget-tokens", 5.6e11),
        ("measure-seconds", 0.236),
    ):
        assert check(id, number).ok, id
    reply = check("calendar-cost", 0.0444).text
    assert reply == "You've only counted the writes, but a stop also loses work."


def test_a_blank_agrees_with_the_helper_or_names_the_slip() -> None:
    h = 4096
    assert verdict_for(4 * h * h + 2 * h * 4 * h, LAYER).text == "Right, 201,326,592 weights."
    assert verdict_for(12.0 * h**2 * (1 + 1e-10), LAYER).ok
    assert verdict_for(np.int64(12 * h**2), LAYER).ok
    for wrong in (12 * h**2 + 1, 12 * h**2 * (1 + 1e-8), 201e6):
        assert verdict_for(wrong, LAYER).ok is False
    assert verdict_for(4 * h**2, LAYER).text == "the MLP is missing: 8h² more."
    assert not verdict_for(4 * h**2, LAYER).hinted
    verdict = verdict_for(6 * h**2, LAYER)
    assert verdict.text == ("Your line gives 2× too little. Which matrices are there?")


def test_a_blank_is_empty_without_complaint() -> None:
    verdict = verdict_for(None, LAYER)
    assert verdict.ok is None
    assert verdict.text == "Nothing is here yet. Write the line and run the cell again."
    for odd in ("201,326,592", np.ones(2), [], -1, float("nan"), lambda: 3):
        assert verdict_for(odd, LAYER).ok is False
        assert verdict_for(odd, LAYER).text.endswith(".")


def test_the_solution_of_a_blank_is_the_cell_of_its_name() -> None:
    verdict = grade("flops-blank", 7, LAYER, 1)
    assert "The worked answer is in solutions/02_flops.ipynb." in verdict.text
    link = re.findall('href="(.*?)"', verdict._repr_mimebundle_()["text/html"])
    assert link == ["solutions/02_flops.ipynb#cell-id=blank"]
