"""Chapter 08's exercises: what they say beside right and wrong, and its predictions."""

import re

import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_course.parallelism.formulas import pipeline_schedule
from llmtrain_course.plan.exercises import PROPOSALS, long_sequences
from llmtrain_helpers import training_interval
from tests.faces.exercises.answers.plan import MINE


def test_the_batch_of_08_b_is_the_least_that_idles_a_tenth() -> None:
    m = 9 * (8 - 1)
    assert pipeline_schedule(8, m).idle == pytest.approx(0.1)
    assert pipeline_schedule(8, m - 1).idle > 0.1


def test_08_c_has_one_proposal_that_helps() -> None:
    assert [name for name in PROPOSALS if EXERCISES["plan-c"].grade(name)[0]] == ["CP 4"]
    assert not long_sequences().fits


def test_08_d_names_both_parts_of_the_memory() -> None:
    sized = {"sequence": 8192, "batch": 512}
    reply = check("plan-d", MINE | sized | {"zero": 1}).text
    assert "largest part is activations, 48.4 GB; the model's states take 44.2" in reply
    assert "Raise zero, shorten the sequence, or recompute." in reply
    reply = check("plan-d", MINE | sized | {"micro": 2}).text
    assert "Lower micro or sequence, or recompute." in reply
    reply = check("plan-d", MINE | sized | {"zero": 0}).text
    assert "largest part is the model's states, 128 GB" in reply


def test_08_d_has_no_word_of_too_little_text_where_there_is_enough() -> None:
    small = {"model": "Llama-3.2-1B", "tokens": 200e9}
    assert "for each parameter" not in check("plan-d", MINE | small).text


def test_08_d_holds_a_plan_to_03s_slow_end() -> None:
    slow = training_interval(45e9, 8_030_261_248, 8, 312e12).greatest / 86400
    late = check("plan-d", MINE | {"tokens": 45e9})
    assert not late.ok
    assert f"as a first run up to {slow:.1f} days" in late.text
    most = 45e9 * 30 / slow
    assert check("plan-d", MINE | {"tokens": int(most)}).ok
    near = check("plan-d", MINE | {"tokens": int(1.01 * most)})
    assert near.ok
    assert "near enough" in near.text
    assert not check("plan-d", MINE | {"tokens": int(1.03 * most)}).ok


def test_08_d_speaks_of_the_entries_of_the_dictionary() -> None:
    bad = [{"zero": 7}, {"micro": 3}, {"gpus": 12, "tensor": 8}, {"gpus": 0}]
    bad += [{"pipeline": 5, "gpus": 40}, {"sequence": 0}, {"batch": 1}, {"tensor": 0}]
    for change in bad:
        reply = check("plan-d", MINE | change).text
        assert not re.search(r"num_gpus|_size|_parallel|_length|zero_stage", reply), reply


def test_the_prediction_says_what_is_not_shared_out() -> None:
    prediction = PREDICTIONS["plan-guess"]
    assert round(prediction.truth()) == 248
    reply = prediction.reveal("514")
    assert "it is 248 GB: 2.1 times too much. ZeRO 3 leaves 17.6 GB" in reply
    assert "222 GB of activations, 4.6 times those of the 8B" in reply
