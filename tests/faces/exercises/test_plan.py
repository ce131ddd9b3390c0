"""Chapter 08's exercises: what they say beside right and wrong, and its predictions."""

import re

import pytest

from llmtrain_helpers import plan_run, training_interval
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import PREDICTIONS, check
from llmtrain_helpers.exercises.plan import PROPOSALS, long_sequences
from llmtrain_helpers.plan.schedule import pipeline_schedule
from tests.plan.cases import H100


def test_08_a_takes_every_right_way() -> None:
    steps = 4e12 / (1024 * 4096)
    mistral = published.architecture("Mistral-7B-v0.1", 4096)
    plan = plan_run(mistral, H100, 128, 4e12, 1024, recompute="none")
    measured = plan.calibrated(3.4)
    for answer in (
        steps * 3.4 / 86400 * 1.5,
        953_674 * 3.4 / 86400 * 1.5,
        37.5 * 1.5,
        "56.3",
        measured.days.likely * 1.5,
        measured.days_with_stops.greatest,
    ):
        assert check("08-a", answer).ok, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (37.5, "the stops come on top"),
        (40.5, "the best of the four runs"),
        (18.76, "the stops alone"),
        (75.06, "not half of the calendar"),
        (56.293 * 86400, "these are seconds"),
        (56.293 * 24, "these are hours"),
        (56.293 / 128, "do not divide by them"),
        (56.293 * 1024, "it has 1,024"),
        (56.293 * 4096, "each has 4,096"),
        (562.93, "ten times too much"),
        (50, "too low"),
    ],
)
def test_08_a_names_the_slips(answer: float, said: str) -> None:
    assert said in check("08-a", answer).text
    assert check("08-a", answer).ok is False


def test_08_b_takes_every_right_way() -> None:
    m = 9 * (8 - 1)
    assert pipeline_schedule(8, m).idle == pytest.approx(0.1)
    assert pipeline_schedule(8, m - 1).idle > 0.1
    for answer in (756, "756", 756.0, m * 96 // 8, (8 - 1) * (1 / 0.1 - 1) * 12):
        assert check("08-b", answer).ok, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (63, "of one replica: there are twelve"),
        (840, "a tenth of the useful time"),
        (70, "by the useful time"),
        (6048, "every GPU as a replica"),
        (864, "p for p − 1"),
        (744, "one micro-batch less"),
        (768, "too high"),
    ],
)
def test_08_b_names_the_slips(answer: int, said: str) -> None:
    assert said in check("08-b", answer).text
    assert check("08-b", answer).ok is False


def test_08_c_tells_why_of_each_proposal() -> None:
    told = {name: check("08-c", name) for name in PROPOSALS}
    assert [name for name, verdict in told.items() if verdict.ok] == ["CP 4"]
    assert "at +32 % GPU-hours. The activations go" in told["recompute"].text
    assert "228 GB on each GPU, which does not fit" in told["128 GPUs"].text
    assert "up to four micro-batches" in told["4 stages"].text
    assert "at +51 % GPU-hours" in told["4 stages"].text
    assert check("08-c", "cp4").ok
    assert not long_sequences().fits


def test_08_d_names_both_parts_of_the_memory() -> None:
    sized = {"sequence": 8192, "batch": 512}
    told = check("08-d", MINE | sized | {"zero": 1}).text
    assert "largest part is activations, 48.4 GB; the model's states take 44.2" in told
    assert "Raise zero, shorten the sequence, or recompute." in told
    told = check("08-d", MINE | sized | {"micro": 2}).text
    assert "Lower micro or sequence, or recompute." in told
    told = check("08-d", MINE | sized | {"zero": 0}).text
    assert "largest part is the model's states, 128 GB" in told


MINE = {"model": "Llama-3.1-8B", "gpus": 8, "days": 30, "chip": "A100 80GB SXM"}
MINE |= {"tokens": 45e9, "sequence": 4096, "batch": 1024, "tensor": 1, "pipeline": 1}
MINE |= {"micro": 1, "zero": 3, "recompute": "none"}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"tokens": "45B", "sequence": "4,096", "batch": "1,024"},
        {"sequence": 8192, "batch": 512, "tokens": 30e9, "recompute": "full"},
        {"gpus": 64, "tokens": 300e9},
        {"chip": "H100", "gpus": 64, "tensor": 8, "tokens": 3.8e11, "zero": 1},
        {"chip": "H100", "gpus": 64, "pipeline": 4, "tokens": 6e11, "zero": 1},
        {"model": "Llama-3.2-1B", "tokens": 200e9},
    ],
)
def test_08_d_takes_any_plan_that_holds(change: dict) -> None:
    verdict = check("08-d", MINE | change)
    assert verdict.ok, verdict.text
    assert "GPU-hours aside." in verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tokens": 57e9}, "it takes 22 to 30 days (at the slow end 30.4 days)"),
        ({"tokens": 94e9}, "and you have 30"),
        ({"sequence": 8192, "batch": 512}, "where 17.5 GB should stay free"),
        (
            {"sequence": 8192, "batch": 512, "tokens": 47e9, "recompute": "full"},
            "at the slow end 35.3 days",
        ),
        ({"zero": 0}, "does not fit"),
        ({"zero": 7}, "zero=7 is unknown"),
        ({"micro": 3}, "batch=1024 is not divisible by micro·replicas=24"),
        ({"gpus": 12, "tensor": 8}, "gpus=12 is not divisible by tensor"),
        ({"sequence": 8192, "batch": 512}, "Shorten the sequence, or recompute"),
        ({"sequence": 8192, "batch": 512, "micro": 2}, "Lower micro or sequence"),
        ({"zero": 0}, "Raise zero, gpus or tensor, or take a smaller model"),
        ({"recompute": "all"}, "Known: none, selective, full"),
        ({"tokens": "lots"}, "is no number"),
        ({"model": "Llama-9"}, "Llama-9"),
        ({"chip": "A1000"}, "A1000"),
        ({"pipeline": 5, "gpus": 40}, "not divisible"),
    ],
)
def test_08_d_says_what_does_not_hold(change: dict, said: str) -> None:
    verdict = check("08-d", MINE | change)
    assert verdict.ok is False
    assert said in verdict.text


def test_08_d_has_a_word_for_too_little_text() -> None:
    few = check("08-d", MINE)
    assert few.ok
    assert "But these are 5.6 tokens for each parameter, where 20 is" in few.text
    small = {"model": "Llama-3.2-1B", "tokens": 200e9}
    assert "for each parameter" not in check("08-d", MINE | small).text


def test_08_d_warns_of_03s_wider_interval() -> None:
    late = check("08-d", MINE)
    slow = training_interval(45e9, 8_030_261_248, 8, 312e12).greatest / 86400
    assert late.ok
    assert f"may take up to {slow:.0f} days, too late: take at most 33 billion" in late.text
    assert "too late" not in check("08-d", MINE | {"tokens": 20e9}).text


def test_08_d_speaks_of_the_entries_of_the_dictionary() -> None:
    bad = [{"zero": 7}, {"micro": 3}, {"gpus": 12, "tensor": 8}, {"gpus": 0}]
    bad += [{"pipeline": 5, "gpus": 40}, {"sequence": 0}, {"batch": 1}, {"tensor": 0}]
    for change in bad:
        told = check("08-d", MINE | change).text
        assert not re.search(r"num_gpus|_size|_parallel|_length|zero_stage", told), told


def test_08_d_waits_for_every_entry() -> None:
    assert check("08-d", MINE | {"micro": None}).ok is None
    assert "leaves out chip" in check("08-d", {"model": "gpt2"}).text
    assert "is no dict" in check("08-d", 64).text


def test_the_prediction_says_what_is_not_shared_out() -> None:
    prediction = PREDICTIONS["08-guess"]
    assert round(prediction.truth()) == 248
    told = prediction.reveal("514")
    assert "it is 248 GB: 2.1 times too much. ZeRO 3 leaves 17.6 GB" in told
    assert "222 GB of activations, 4.6 times those of the 8B" in told
