"""Eight A100 for thirty days and Llama 3.1 8B: the pages agree on what they make."""

from __future__ import annotations

import pytest

from llmtrain_course.exercises import own_run
from llmtrain_helpers import count_parameters, plan_run, published, training_interval, units
from tests import pages

GPUS, DAYS, A100 = 8, 30, published.accelerator("A100 80GB SXM")
MODEL = published.architecture("Llama-3.1-8B", 8192)
SIZE = count_parameters(MODEL).active
USUAL = int(GPUS * 110e12 * DAYS * units.DAY / (6 * SIZE))


def billions(tokens: float) -> str:
    return f"{tokens / 1e9:.0f} billion"


def test_what_03_promises_and_what_the_plan_does() -> None:
    """25% of the peak for a month, and the slow end of the plan's days: a few tokens more."""
    plan = plan_run(MODEL, A100, GPUS, USUAL, 512, recompute="none", zero_stage=3)
    slow = training_interval(USUAL, SIZE, GPUS, A100.peak("bf16")).greatest / units.DAY
    rough, promised = USUAL * DAYS / slow, float(plan.first_run_tokens(DAYS))
    assert promised == pytest.approx(own_run().tokens)
    assert promised == pytest.approx(USUAL * DAYS / plan.days.greatest)
    numbers = tuple(map(billions, (USUAL, rough, promised)))
    assert numbers == ("47 billion", "34 billion", "38 billion")
    share = 6 * SIZE * promised / (GPUS * A100.peak("bf16") * DAYS * units.DAY)
    assert f"the slow end for that plan is {100 * share:.0f}%" in pages.cell("03_duration", "own")
    sentence = f"which in the example means {billions(promised)}, at {100 * share:.0f}% of the peak"
    assert sentence in pages.words("00_start_here")


@pytest.mark.parametrize(
    ("page", "cell", "sentences"),
    [
        ("03_duration", "own", ["47 billion", "34 billion"]),
        ("03_duration", "exercise-d-text", ["38 billion"]),
        ("09_plan", "exercise-d-text", ["38 billion"]),
        ("11_budget", "own", ["38 billion"]),
    ],
)
def test_a_page_leads_on_from_the_one_before(page: str, cell: str, sentences: list[str]) -> None:
    text = pages.cell(page, cell)
    assert [words for words in sentences if words not in text] == []


def test_09_takes_the_days_of_computing_from_the_own_plan() -> None:
    """Not from the page's own `plan`, which reads a trillion tokens on 64 H100s."""
    cell = pages.cell("10_calendar", "exercise-d")
    assert "steps = calendar_days(mine.plan).computing.likely" in cell
    assert '"computing_days": steps' in cell
