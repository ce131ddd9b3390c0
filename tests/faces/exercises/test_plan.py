"""Chapter 09's exercises: what they say beside right and wrong, and its predictions."""

import re

import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_course.parallelism.formulas import pipeline_schedule
from llmtrain_course.plan.exercises import PROPOSALS, _page_plan, long_sequences
from llmtrain_course.plan.formulas import map_plans
from llmtrain_helpers import plan_run, published, units
from tests.faces.exercises.answers.plan import GATHERED, KEPT, LOGITS, MINE, STATES
from tests.pages import cell


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
    assert "largest part is activations, 48.4 GB; the model's states need 44.2" in reply
    assert "Raise zero, shorten the sequence, or recompute." in reply
    reply = check("plan-d", MINE | sized | {"micro": 2}).text
    assert "Lower micro or sequence, or recompute." in reply
    reply = check("plan-d", MINE | sized | {"zero": 0}).text
    assert "largest part is the model's states, 128 GB" in reply


def test_08_d_has_no_word_of_too_little_text_where_there_is_enough() -> None:
    small = {"model": "Llama-3.2-1B", "tokens": 200e9}
    assert "tokens per parameter" not in check("plan-d", MINE | small).text


def test_08_d_holds_a_plan_to_the_slow_end_of_its_days() -> None:
    llama = published.architecture("Llama-3.1-8B", 4096)
    slow = plan_run(llama, "A100", 8, 45e9, 1024, recompute="none", zero_stage=3).days.greatest
    late = check("plan-d", MINE | {"tokens": 45e9})
    assert not late.ok
    assert f"{slow:.1f} to promise, and your limit is 30" in late.text
    most = 45e9 * 30 / slow
    assert check("plan-d", MINE | {"tokens": int(most)}).ok
    near = check("plan-d", MINE | {"tokens": int(1.01 * most)})
    assert near.ok
    assert "close enough" in near.text
    assert not check("plan-d", MINE | {"tokens": int(1.03 * most)}).ok


def test_08_d_speaks_of_the_entries_of_the_dictionary() -> None:
    bad = [{"zero": 7}, {"micro": 3}, {"gpus": 12, "tensor": 8}, {"gpus": 0}]
    bad += [{"pipeline": 5, "gpus": 40}, {"sequence": 0}, {"batch": 1}, {"tensor": 0}]
    for change in bad:
        reply = check("plan-d", MINE | change).text
        assert not re.search(r"num_gpus|_size|_parallel|_length|zero_stage", reply), reply


def test_the_prediction_says_what_is_not_shared_out() -> None:
    prediction = PREDICTIONS["plan-guess"]
    assert round(prediction.truth()) == 256
    reply = prediction.reveal("514")
    assert "It's 256 GB, so you're 2.0× too high. ZeRO 3 leaves 17.6 GB" in reply
    assert "need 222 GB, 4.6× as much as for the 8B" in reply
    memory = _page_plan("Llama-3.1-70B").memory
    assert memory.logits == pytest.approx(memory.transient / 2)
    assert "The loss needs 16.8 GB more, half of it for the logits" in reply


def test_a_larger_model_reads_less_and_shares_it_among_more() -> None:
    reply = PREDICTIONS["plan-tokens"].reveal(11)
    assert "It's 1.2 tokens per parameter, so you're 9.2× too high. The 70B is 8.8×" in reply
    large, small = map_plans(64)["Llama 3.1 70B"], map_plans(64)["Llama 3.1 8B"]
    slower = large.days.greatest / small.days.greatest
    assert slower == pytest.approx(large.parameters.total / small.parameters.total, rel=0.05)


def test_the_line_of_08_is_the_plans_own_total() -> None:
    """The numbers in the page's cell, with the states that 16 GPUs share."""
    page = cell("09_plan", "memory")
    for number in (STATES // 16, KEPT, LOGITS, GATHERED):
        assert f"{number:_}" in page
    plan = _page_plan().replace(num_gpus=16)
    assert plan.memory.total == STATES / 16 + KEPT + LOGITS + GATHERED
    eight = plan.replace(num_gpus=8)
    assert eight.fits  # which the page asks below it


def test_08_c_gives_the_bytes_that_its_second_question_needs() -> None:
    plan = long_sequences()
    [question] = EXERCISES["plan-c"].followups
    gathered = plan.memory.transient - plan.memory.logits
    states = plan.memory.total - plan.memory.activations - plan.memory.transient
    for size in (plan.memory.total, states, gathered, plan.card - plan.reserve):
        assert units.gigabytes(size) in question.text
    shorter = [
        plan.replace(model=published.architecture("Llama-3.1-8B", n)).fits for n in (10_709, 10_710)
    ]
    assert shorter == [True, False]


def test_only_one_choice_of_08_d_recomputes_nothing() -> None:
    """With the example, as the page says, and with the tokens that it promises."""
    example = {**MINE, "sequence": 8192, "batch": 512, "tokens": 38e9}
    choices = [(micro, zero) for micro in (1, 2, 4) for zero in (0, 1, 2, 3)]
    right = [x for x in choices if check("plan-d", example | {"micro": x[0], "zero": x[1]}).ok]
    assert right == [(1, 3)]
