"""Chapter 05's exercises: what they say beside right and wrong, and its predictions."""

import re

import ml_dtypes
import pytest

from llmtrain_helpers import FORMATS, RECIPES, NumberFormat, model_state_bytes
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.precision import walked
from llmtrain_helpers.precision import gradient_window
from tests.pages import words

bf16, fp16 = FORMATS["bf16"], FORMATS["fp16"]


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


def test_05_a_takes_every_right_way() -> None:
    for answer in (15.5, "15.5", (2 - 2**-4) * 2**3, NumberFormat("x", 3, 4).max):
        assert check("05-a", answer).ok, answer
    assert ml_dtypes.finfo(ml_dtypes.float8_e3m4).max == 15.5


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (31, "one too high"),
        (16, "one place past"),
        (30, "without infinity"),
        (240, "swapped"),
        (57344, "E5M2"),
        (7.75, "one too low"),
        (8, "all ones"),
        (1.9375, "factor alone"),
        (248, "bias is missing"),
        (15.0, "the exponent is right. The last place is 2 ** -m, and m is 4."),
        (15.75, "m is 4, not 5"),
        (12, "too low"),
    ],
)
def test_05_a_names_the_slips(answer: float, said: str) -> None:
    assert said in text_of("05-a", answer)


def test_05_b_takes_every_right_way() -> None:
    for answer in (2**-6, "0.015625", 0.0156, 4 * 2**-7 / 2, bf16.spacing(6) / 2):
        assert check("05-b", answer).ok, answer
    assert bf16.round(6 + 2**-6) == 6 < bf16.round(6 + 2**-6 * 1.001)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (2**-5, "whole spacing"),
        (2**-8, "at a weight of 1"),
        (2**-7, "the spacing at 1"),
        (2**-9, "for fp16"),
        (6 * 2**-8, "doubles at each power"),
        (0.3, "too high"),
    ],
)
def test_05_b_names_the_slips(answer: float, said: str) -> None:
    assert said in text_of("05-b", answer)


def test_05_c_tells_why_of_each_change() -> None:
    assert check("05-c", "S = 2**16").ok
    assert check("05-c", "s = 2**16").ok
    assert "becomes 0" in text_of("05-c", "S = 2**10")
    assert "overflows" in text_of("05-c", "S = 2**24")
    assert "they save updates" in text_of("05-c", "main weights")
    for name, scale in (("S = 2**10", 2**10), ("S = 2**16", 2**16), ("S = 2**24", 2**24)):
        low, high = gradient_window(fp16, scale)
        assert check("05-c", name).ok == (low < 2**-38 and high > 2**-3)


MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "A100 80GB SXM"}
MINE |= {"recipe": "bf16", "zero_stage": 1, "gigabytes": 44.17}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"gigabytes": 44},
        {"gigabytes": "44.2", "gpus": "8"},
        {"gigabytes": (4 + 12 / 8) * 8.03},
        {"recipe": "bf16_fp32_grads", "zero_stage": 2, "gigabytes": 32.1},
        {"recipe": "fp8", "chip": "H100 SXM", "zero_stage": 1, "gigabytes": 48.2},
        {"model": "Llama-3.1-70B", "gpus": 64, "zero_stage": 3, "gigabytes": 17.6},
        {"model": "gpt2", "zero_stage": 0, "gigabytes": 1.99},
        {"model": "gpt2", "recipe": "fp32", "chip": "V100 32GB SXM2"}
        | {"zero_stage": 0, "gigabytes": 1.99},
    ],
)
def test_05_d_takes_any_design_that_holds(change: dict) -> None:
    verdict = check("05-d", MINE | change)
    assert verdict.ok, verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gigabytes": 128.5}, "that is stage 0, not stage 1"),
        ({"gigabytes": 16.06}, "that is stage 3, not stage 1"),
        ({"gigabytes": 41.1}, "this is in GiB"),
        ({"gigabytes": 44.2e9}, "looks like bytes"),
        ({"gigabytes": 70}, "70 GB is too much"),
        ({"gigabytes": 5}, "5 GB is too little"),
        ({"gpus": 64, "zero_stage": 3, "gigabytes": 16.06}, "the weights alone"),
        ({"zero_stage": 0, "gigabytes": 128.5}, "less than a third free"),
        ({"zero_stage": 2, "gigabytes": 30.1}, "stage 1 already does"),
        ({"recipe": "pure_bf16"}, "small updates are lost"),
        ({"chip": "V100 32GB SXM2"}, "knows no bf16"),
        ({"recipe": "fp8"}, "knows no fp8"),
        ({"recipe": "bf17"}, "did you mean 'bf16'"),
        (
            {"recipe": "bf16_fp32_grads"},
            "this is for recipe bf16: put in the bytes of bf16_fp32_grads.",
        ),
        ({"zero_stage": 4}, "Known: 0, 1, 2, 3"),
        ({"model": "Llama-3.1-70B", "zero_stage": 3, "gigabytes": 141}, "No stage does"),
        ({"model": "Llama-9"}, "Llama-9"),
        ({"gigabytes": "heavy"}, "is no number"),
    ],
)
def test_05_d_says_what_does_not_hold(change: dict, said: str) -> None:
    assert said in text_of("05-d", MINE | change)


@pytest.mark.parametrize("recipe", RECIPES)
def test_05_d_hints_at_the_sums_of_the_recipe_that_was_chosen(recipe: str) -> None:
    exercise = EXERCISES["05-d"]
    *first, last = exercise.hints_for(MINE | {"recipe": recipe})
    assert first == list(exercise.hints()[:-1])
    [sums] = re.findall(f"With recipe {recipe}: (.*) bytes a parameter", last)
    for stage, told in enumerate(sums.split(", ")):
        for d in (2, 8, 64):
            weighs = model_state_bytes(64, recipe, stage, d).total / 64
            assert eval(told, {"d": d}) == weighs, (told, d)
    assert exercise.hints_for(None) == exercise.hints()
    if recipe == "amp":
        assert sums == "16, 8 + 8/d, 4 + 12/d, 16/d"
        assert "$8 + 8/d$" in words("05_precision")


def test_05_d_waits_for_every_entry() -> None:
    assert check("05-d", MINE | {"gigabytes": None}).ok is None
    assert "leaves out gpus, chip" in text_of("05-d", {"model": "gpt2"})
    assert "is no dict" in text_of("05-d", 44)


def test_the_prediction_names_the_belief() -> None:
    prediction = PREDICTIONS["05-guess"]
    assert prediction.truth() == "one"
    assert walked("bf16") == 1
    assert walked("fp32") == pytest.approx(4, rel=1e-4)
    assert "on paper" in prediction.reveal("four")
    assert "all are alike" in prediction.reveal("In between")
    assert "and so it is" in prediction.reveal("one")
