"""Chapter 03's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_helpers.evidence import published, utilizations
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.common import judge
from llmtrain_helpers.exercises.duration import BUDGET, MOST_DAYS, OFFERS, of_offer
from tests.faces.exercises.answers import ANSWERS
from tests.faces.exercises.answers.duration import X_B
from tests.pages import words


@pytest.mark.parametrize("id", ["03-a", "03-b"])
def test_hints_come_in_steps_and_the_solution_last(id: str) -> None:
    odd = 77 if id == "03-a" else (300e9, X_B, 77)
    told = [judge(id, odd, EXERCISES[id], tries).text for tries in range(4)]
    assert len(set(told)) == 3
    assert told[2] == told[3]
    assert told[2].endswith("The worked answer is in solutions/03_duration.ipynb.")
    assert "solutions" not in told[0] + told[1]


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


@pytest.mark.parametrize("run", ANSWERS["03-d"].right, ids=str)
def test_a_run_of_ones_own_by_the_formula(run) -> None:
    P, peaks = 8030261248, published.accelerator(run["chip"]).peaks
    X = 0.25 * (peaks.get("bf16") or peaks["fp16"])
    nodes = -(-6 * 20 * P * P // (X * 30 * 86400 * 8))
    assert float(run["gpus"]) == 8 * nodes
    verdict = check("03-d", run)
    assert verdict.ok is True
    told = f"Write down: {8 * nodes:.0f} {run['chip']}, 161 billion tokens"
    assert told in verdict.text


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
