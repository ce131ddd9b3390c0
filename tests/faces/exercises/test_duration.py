"""Chapter 03's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_helpers import gpt_flops, gpt_parameters, training_seconds, units
from llmtrain_helpers.evidence import published, utilizations
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.common import judge
from llmtrain_helpers.exercises.duration import BUDGET, MOST_DAYS, OFFERS, of_offer
from tests.pages import words


def test_mended_the_copied_days_are_held_against_those_by_iterations() -> None:
    told = check("03-b", (300e9, X_B, copied(MENDED, 300e9, 1))).text
    assert "By iterations it is 213 days: the formula leaves attention out." in told


X_B = gpt_flops(40, 6144, 50257, 1024, 512, "full") / 32.09 / 16


X_A = 0.41 * 989.5e12


DAYS_A = 6 * 1.8e12 * 13e9 / (384 * X_A) / 86400


MENDED = (40, 6144, 50257, 1024)


def copied(shape, tokens: float, rate: float, flops: int = 8) -> float:
    """The copied calculation with its slips as arguments."""
    X = gpt_flops(*shape, 512, "full") / 32.09 / 16
    return flops * tokens * gpt_parameters(*shape) / (16 * X * rate) / 86400


def copied_rate(sequence_length: int) -> float:
    return gpt_flops(40, 6144, 50257, sequence_length, 512, "full") / 32.09 / 16


def by_helper(share: float) -> float:
    return training_seconds(1.8e12, 13e9, 384, share * 989.5e12, "none") / units.DAY


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("03-a", DAYS_A),
        ("03-a", by_helper(0.41)),
        ("03-a", 10.4),
        ("03-a", "10.44"),
        ("03-b", (300e9, X_B, copied(MENDED, 300e9, 1))),
        ("03-b", ("300B", "154e12", 207.8)),
        ("03-b", [3e11, 154.02e12, "208"]),
        ("03-c", "C"),
        ("03-c", " c "),
    ],
)
def test_right_answers_by_every_way(id: str, answer) -> None:
    assert check(id, answer).ok is True


@pytest.mark.parametrize(
    ("id", "answer", "said"),
    [
        ("03-a", 13.9, "8TP"),
        ("03-a", DAYS_A * 4 / 3, "8TP"),
        ("03-a", DAYS_A / 3, "forward pass alone"),
        ("03-a", DAYS_A * 0.41, "whole peak"),
        ("03-a", DAYS_A * 384, "one GPU"),
        ("03-a", DAYS_A * 86400, "seconds"),
        ("03-a", DAYS_A * 24, "hours"),
        ("03-a", DAYS_A * 10, "ten times too much"),
        ("03-a", 12, "Compare what the work counts"),
        ("03-a", DAYS_A / 100, "as a share that is 0.41"),
        ("03-a", DAYS_A * 1e12, "X is in TFLOP/s"),
        ("03-a", DAYS_A * 1e10, "is 0.41, and is in TFLOP/s"),
        ("03-b", (300e9, X_B, 202.9), "still 1048"),
        ("03-b", (300e9, X_B, copied((40, 6144, 50257, 1048), 3e12, 10)), "still 1048"),
        ("03-b", (3e12, 1.58e15, 203), "the tokens are 3.00 trillion: say 10e09"),
        ("03-b", (300e9, 1.58e15, 203), "the rate is 1.58 PFLOP/s: it is ten times"),
        ("03-b", (300e9, 1.58e14, 203), "158 TFLOP/s: the sequence length is still"),
        ("03-b", (300e9, X_B, copied(MENDED, 3e12, 1)), "only one of the two"),
        ("03-b", (300e9, X_B, copied(MENDED, 300e9, 10)), "only one of the two"),
        ("03-b", (300e9, X_B, copied(MENDED, 300e9, 1, flops=6)), "6TP"),
        ("03-b", (300e9, X_B, 212.52), "by iterations"),
        ("03-b", 207.8, "give three things"),
        ("03-b", (3e12, X_B, 207.8), "the days are right, but the tokens are 3.00 tri"),
        ("03-b", (30e9, X_B, 207.8), "too few"),
        ("03-b", (300e9, 10 * X_B, 207.8), "1.54 PFLOP/s: it is ten times too much"),
        ("03-b", (300e9, X_B / 10, 207.8), "ten times too little"),
        ("03-b", (300e9, 154.02, 207.8), "is 154, so in TFLOP/s; give FLOP/s, times 1e12"),
        ("03-b", (300e9, 0.154, 207.8), "is 0.154, so in PFLOP/s; give FLOP/s, times 1e15"),
        ("03-b", (300e9, 16 * X_B, 207.8), "that of all 16 GPUs"),
        ("03-b", (300e9, X_B / 16, 207.8), "divided by 16 twice"),
        ("03-b", (300e9, 32.09 * X_B, 207.8), "by its 32.09 seconds"),
        ("03-b", (300e9, 16 * 32.09 * X_B, 207.8), "divide by seconds and by GPUs"),
        ("03-b", (300e9, 0.75 * X_B, 207.8), "count with “full”"),
        ("03-b", (300e9, copied_rate(1048), 207.8), "sequence length is still 1048"),
        ("03-b", (300e9, 1.3 * X_B, 207.8), "give it in FLOP/s, of one GPU"),
        ("03-b", (300e9, 16 * X_B, 77), "the rate is 2.46 PFLOP/s: it is that of all"),
        ("03-b", (3e12, X_B, 77), "say 10e09 in words"),
        ("03-b", (300e9, 154.02, 207.8e12), "the rate is 154, so in TFLOP/s"),
        ("03-b", (300e9, X_B, 207.8e12), "in the days the rate is still in TFLOP/s"),
        ("03-b", (300e9, X_B, 207.8 * 16), "n is missing"),
        ("03-b", (300e9, X_B, 207.8 / 16), "n counts twice"),
        ("03-c", "A", "within the money at the likely share only"),
        ("03-c", "B", "too late"),
        ("03-c", "D", "dearest run"),
        ("03-c", "E", "none of the choices"),
    ],
)
def test_wrong_answers_each_get_their_own_words(id: str, answer, said: str) -> None:
    verdict = judge(id, answer, EXERCISES[id], 0)
    assert verdict.ok is False
    assert said in verdict.text


@pytest.mark.parametrize("id", ["03-a", "03-b"])
def test_hints_come_in_steps_and_the_formula_last(id: str) -> None:
    odd = 77 if id == "03-a" else (300e9, X_B, 77)
    told = [judge(id, odd, EXERCISES[id], tries).text for tries in range(4)]
    assert len(set(told)) == 3
    assert told[2] == told[3]
    assert "FLOP/s" in told[2]
    assert "FLOP/s" not in told[0]


def test_the_offers_are_the_pages_and_one_alone_will_do() -> None:
    page = words("03_duration")
    for name, offer in OFFERS.items():
        chip = offer.chip.split()[0]
        peak = published.accelerator(offer.chip).peak(offer.format) / 1e12
        row = f"| {name} | {offer.num_gpus} {chip} | {peak:g} TFLOP/s | "
        assert f"{row}{offer.price:.2f} dollars |" in page
    low = {name: of_offer(name) for name in OFFERS}
    will = [n for n, (d, p) in low.items() if d <= MOST_DAYS and p <= BUDGET]
    assert will == ["C"]
    days, paid = of_offer("B", 0.35)
    assert days <= MOST_DAYS
    assert paid <= BUDGET
    assert of_offer("A", 0.35)[1] <= BUDGET < low["A"][1]
    assert max(low, key=lambda name: low[name][1]) == "D"
    assert min(OFFERS, key=lambda name: OFFERS[name].price) == "D"


def own(gpus: object, chip: str = "A100 80GB SXM", **changes: object) -> object:
    run = {"model": "Llama-3.1-8B", "days": 30, "chip": chip, "gpus": gpus}
    return run | changes


@pytest.mark.parametrize(
    "run", [own(40), own(40.0), own("40"), own(16, "H100 SXM"), own(96, "V100 32GB SXM2")], ids=str
)
def test_a_run_of_ones_own_by_the_formula(run) -> None:
    P, peaks = 8030261248, published.accelerator(run["chip"]).peaks
    X = 0.25 * (peaks.get("bf16") or peaks["fp16"])
    nodes = -(-6 * 20 * P * P // (X * 30 * 86400 * 8))
    assert float(run["gpus"]) == 8 * nodes
    verdict = check("03-d", run)
    assert verdict.ok is True
    told = f"Write down: {8 * nodes:.0f} {run['chip']}, 161 billion tokens"
    assert told in verdict.text


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (own(32), "likely share it would do"),  # at 35 %
        (own(8), "too few: at 25 % of the peak it takes 144 days"),
        (own(56), "A node less would do"),  # 8TP
        (own(39), "39 GPUs do not make whole nodes of 8"),
        (own(40, days=20), "too few"),
        (own(40, model="Llama-3.1-70B"), "too few"),
        (own(40, chip="A1000"), "is unknown"),
        (own(-8), "gpus=-8"),
        (own("many"), "no number"),
        (40, "give a dictionary with model, days, chip, gpus"),
        ({"gpus": 40}, "give a dictionary"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_run_of_ones_own(run, said: str) -> None:
    verdict = check("03-d", run)
    assert verdict.ok is False
    assert said in verdict.text


def test_a_run_without_gpus_is_not_answered() -> None:
    assert check("03-d", own(None)).ok is None


@pytest.mark.parametrize("guess", ["90 %", "70%", 50, "35 %"])
def test_the_prediction_names_the_belief_behind_each_option(guess: object) -> None:
    told = PREDICTIONS["03-guess"].reveal(guess)
    option = f"{str(guess)[:2]} %"
    assert ("and so it is" in told) == (option == "35 %")
    assert PREDICTIONS["03-guess"].options[option] in told
    assert "it is '35 %'" in told or option == "35 %"


def test_the_prediction_is_the_middle_of_the_published_runs() -> None:
    shares = utilizations.model_utilizations()["utilization"]
    assert f"{shares.median():.0%}".replace("%", " %") == "35 %"
    assert PREDICTIONS["03-guess"].truth() == "35 %"
