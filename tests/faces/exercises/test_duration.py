"""Chapter 03's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_course.duration.exercises import AT_HAND, BUDGET, MOST_DAYS, PRICES, of_offer
from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_course.kit.exercise import grade
from llmtrain_helpers import published
from tests.faces.exercises.answers import ANSWERS
from tests.pages import words


def test_the_offers_are_the_pages_and_one_chip_alone_will_do() -> None:
    page = words("03_duration")
    for chip, price in PRICES.items():
        each = published.accelerator(chip)
        peak = each.peak(each.training_format) / 1e12
        assert f"| {chip.split()[0]} | {peak:g} TFLOP/s | {price:.2f} dollars |" in page
    bills = {chip: of_offer(chip, 64)[1] for chip in PRICES}
    assert [chip for chip, bill in bills.items() if bill <= BUDGET] == ["H100 SXM"]
    assert of_offer("H100 SXM", 8)[1] == pytest.approx(bills["H100 SXM"])
    assert of_offer("H100 SXM", 40)[0] > MOST_DAYS >= of_offer("H100 SXM", 48)[0]
    assert of_offer("A100 80GB SXM", 64, 0.35)[1] <= BUDGET
    assert min(PRICES, key=lambda chip: PRICES[chip]) == max(bills, key=lambda chip: bills[chip])
    assert f"up to {AT_HAND} GPUs of one kind" in page
    assert f"in {MOST_DAYS} days on a budget of {BUDGET:,} dollars" in page


@pytest.mark.parametrize("chip", PRICES)
def test_an_offer_is_hoped_for_only_if_it_is_likely_to_keep_both_limits(chip: str) -> None:
    """Eight A100s keep within the money at the likely share, and need 556 days of 45."""
    for n in range(8, AT_HAND + 1, 8):
        (days, dollars), likely = (of_offer(chip, n, share) for share in (0.25, 0.35))
        reply = grade("duration-c", {"chip": chip, "gpus": n}, EXERCISES["duration-c"], 0).text
        assert ("expensive" in reply, "too late" in reply.lower()) == (
            dollars > BUDGET,
            days > MOST_DAYS,
        )
        hoped = likely[0] <= MOST_DAYS and likely[1] <= BUDGET and not reply.startswith("Right")
        assert ("likely share" in reply) == hoped, reply


def test_the_gpus_that_somebody_has_already_are_not_too_many(set_run) -> None:
    run = dict(set_run(gpus=64, days=14, chip="H100 SXM"))
    design = {name: run[name] for name in ("model", "days", "chip", "gpus")}
    verdict = check("duration-d", design)
    assert verdict.ok
    assert "you'd need 5.7 days, and your limit is 14. You already have these 64." in verdict.text
    assert (
        "32 are enough for 20 tokens per parameter, and with all of yours you reach 49"
        in verdict.text
    )
    assert check("duration-d", design | {"gpus": 32}).ok
    for more in ({"gpus": 72}, {"gpus": 40}, {"chip": "B200"}):
        assert "more than you need" in check("duration-d", design | more).text


@pytest.mark.parametrize("run", ANSWERS["duration-d"].right, ids=str)
def test_a_run_of_ones_own_by_the_formula(run) -> None:
    P, peaks = 8030261248, published.accelerator(run["chip"]).peaks
    X = 0.25 * (peaks.get("bf16") or peaks["fp16"])
    nodes = -(-6 * 20 * P * P // (X * 30 * 86400 * 8))
    assert float(run["gpus"]) == 8 * nodes
    verdict = check("duration-d", run)
    assert verdict.ok is True
    sentence = f"Write down: {8 * nodes:.0f} {run['chip']}, 161 billion tokens"
    assert sentence in verdict.text


def test_the_slowest_run_is_met_as_a_number_and_as_a_percentage() -> None:
    for guess in (22, "22 %", "22%"):
        assert "It's 22%, and that's as good as exact" in PREDICTIONS["duration-guess"].reveal(
            guess
        )
    assert "It's 22%" in PREDICTIONS["duration-guess"].reveal(35)
