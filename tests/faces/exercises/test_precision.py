"""Chapter 05's exercises: what they say beside right and wrong, and its predictions."""

import re

import ml_dtypes
import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit.exercise import grade
from llmtrain_course.precision.formulas import gradient_window, update_weight
from llmtrain_helpers import FORMATS, RECIPES, model_state_bytes
from tests.faces.exercises.answers.precision import MINE

bf16, fp16 = FORMATS["bf16"], FORMATS["fp16"]


def test_the_format_of_05_a_is_one_of_ml_dtypes() -> None:
    assert ml_dtypes.finfo(ml_dtypes.float8_e3m4).max == 15.5


def test_the_update_of_05_b_is_the_largest_that_is_lost() -> None:
    weight = bf16.round(0.02)
    assert bf16.round(weight + 2**-14) == weight < bf16.round(weight + 2**-14 * 1.001)
    assert (
        bf16.round(weight + 3e-5) == weight
    )  # the end of many learning rates, as the verdict says


def test_the_scale_of_05_c_keeps_both_ends() -> None:
    for name, scale in (("S = 2**10", 2**10), ("S = 2**16", 2**16), ("S = 2**24", 2**24)):
        low, high = gradient_window(fp16, scale)
        verdict = grade("precision-c", name, EXERCISES["precision-c"], 0)
        assert verdict.ok == (low < 2**-38 and high > 2**-3)


@pytest.mark.parametrize("recipe", RECIPES)
def test_05_d_hints_at_the_sums_of_the_recipe_that_was_chosen(recipe: str) -> None:
    exercise = EXERCISES["precision-d"]
    *first, last = exercise.hints_for(MINE | {"recipe": recipe})
    assert first == list(exercise.hints()[:-1])
    [sums] = re.findall(f"With recipe {recipe}: (.*) bytes per parameter", last)
    for stage, formula in enumerate(sums.split(", ")):
        for d in (2, 8, 64):
            weighs = model_state_bytes(64, recipe, stage, d).total / 64
            assert eval(formula, {"d": d}) == weighs, (formula, d)
    assert exercise.hints_for(None) == exercise.hints()
    if recipe == "amp":
        assert sums == "16, 8 + 8/d, 4 + 12/d, 16/d"


def test_the_prediction_names_the_belief() -> None:
    prediction = PREDICTIONS["precision-guess"]
    assert prediction.truth() == "one"
    after = update_weight(bf16, 1, 0.003, 1000)
    assert (after.direct, after.main) == (1, pytest.approx(4, rel=1e-4))
    assert "On paper" in prediction.reveal("four")
    for option in prediction.options:  # the picture below explains it
        reply = prediction.reveal(option)
        assert reply.endswith("To see what happens to the updates, play the first ten below.")
        assert not re.search("alike|like the first|spacing|lost", reply)
    assert "and that's right" in prediction.reveal("one")


def test_mixed_precision_is_as_heavy_as_fp32() -> None:
    prediction = PREDICTIONS["precision-half"]
    assert prediction.truth() == "the same"
    assert RECIPES["bf16"].total == RECIPES["fp32"].total == 16
    assert "half as large" in prediction.reveal("half")
    assert "main weights" not in prediction.reveal("the same")  # the picture below shows it
