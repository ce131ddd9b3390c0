"""Chapter 08's exercises: what they say beside right and wrong, and its predictions."""

import re

import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_course.panels import PANELS
from llmtrain_course.parallelism.exercises import NEAR, best_of
from llmtrain_course.parallelism.handles import Setting, planned
from tests.faces.exercises.answers.parallelism import MINE


def test_08_a_says_why_a_small_model_wants_no_tensor_parallelism() -> None:
    times = [
        float(re.search(r"a step lasts ([\d.]+) s", EXERCISES["parallelism-a"].options[x])[1])
        for x in EXERCISES["parallelism-a"].options
    ]
    assert min(times) == times[0]
    assert 512 // 64 * 8192 == 65_536


def test_08_b_hides_if_each_gpu_has_a_sequence_and_stages_alone_would_wait() -> None:
    """What its replies and the solution say of ZeRO 3, and of TP 8 with 16 stages."""
    panel = PANELS["parallelism"]
    preset = panel.presets["405B on 16,384 H100s, from parallelism-b"]
    plan = planned(Setting(**{**preset, "pipeline_parallel": 16}))
    assert plan.fits
    waits = plan.step.bubble / plan.step.total
    assert 0.4 < waits < 0.5  # nearly half
    assert plan.split.accumulation_steps == 16
    assert not planned(Setting(**preset)).fits  # an eighth of the model
    fitting = planned(Setting(**{**preset, "zero_stage": 3}))
    assert fitting.fits
    assert fitting.step.total < plan.step.total
    alone = {**preset, "tensor_parallel": 1, "zero_stage": 3}
    enough = planned(Setting(**{**alone, "global_batch_size": preset["num_gpus"]}))
    assert enough.step.data < 0.001 * enough.step.total
    piped = planned(Setting(**{**alone, "pipeline_parallel": 8})).step
    assert piped.bubble / piped.total == pytest.approx(7 / 8, abs=0.01)


def test_08_c_says_by_how_much_another_split_is_faster() -> None:
    """ "Too near to tell" isn't enough of a step that takes a tenth more."""
    run = MINE | {"gpus": 64, "batch": 512, "recompute": "none"}
    replies = {tensor: check("parallelism-c", run | {"tensor": tensor}).text for tensor in (1, 2)}
    assert "No usual split that fits is faster" in replies[1]
    assert (
        "The fastest split that fits needs 6.1 s, and yours is 11% slower. Up to 30%, a mo"
        in replies[2]
    )


def test_08_c_is_held_against_the_best_split() -> None:
    best = best_of(MINE)
    assert best.fits
    assert best.split.tensor_parallel == 1
    assert NEAR == 1.3
    for written in ("3", "ZeRO 3", "stage 3", "zero-3", 3.0):
        assert check("parallelism-c", MINE | {"zero": written}).ok


def test_the_predictions_tell_why() -> None:
    assert PREDICTIONS["parallelism-guess"].truth() == "twice"
    assert "from 64 to 128 sequences" in PREDICTIONS["parallelism-guess"].why
    assert PREDICTIONS["parallelism-share"].truth() == pytest.approx(5.618 / 3.6383)
