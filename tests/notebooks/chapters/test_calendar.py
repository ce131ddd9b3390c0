"""What the page of chapter 09 states, computed anew."""

import pytest

from llmtrain_helpers import calendar, calendar_days, mean_time_between_failures, plan_run
from llmtrain_helpers.evidence import published
from llmtrain_helpers.units import HOUR
from tests.pages import words


def test_the_promise_lies_between_the_likely_and_the_worst_case() -> None:
    llama = published.architecture("Llama-3.1-8B", sequence_length=8192)
    chip, run = published.accelerator("H100"), (64, 1e12, 512)
    plan = plan_run(llama, chip, *run, recompute="none", zero_stage=3)
    days, promise = calendar_days(plan).total, plan.first_run.greatest
    assert round(promise) == 35
    assert days.likely < promise < days.greatest
    assert "promise the 35 days of page 08" in words("09_calendar")


def test_what_runs_lost_at_a_stop_differs_more_than_their_rates() -> None:
    rows = {row["name"]: row for row in published.rows("interruptions")}
    four = ("Llama 3.1 405B", "OPT-175B", "BLOOM-176B", "GLM-130B")
    rates = [rows[name]["failures_per_node_day"] for name in four]
    M = [
        mean_time_between_failures(rows[x]["num_gpus"], r) for x, r in zip(four, rates, strict=True)
    ]
    lost = [(1 - rows[x]["useful_share"]) * m for x, m in zip(four, M, strict=True)]
    assert round(max(rates) / min(rates)) == 7
    assert 40 < max(lost) / min(lost) < 45
    assert max(lost) / HOUR == pytest.approx(11.7, abs=0.1)
    assert round(lost[1] / lost[0]) == 18
    assert lost[1] / HOUR == pytest.approx(5, abs=0.05)
    assert [rows[x]["useful_kind"] for x in four[:2]] == ["more than", "derived"]
    assert [round(1000 * r, 1) for r in rates] == [4.2, 15.1, 4.5, 2.1]


def test_half_or_double_the_best_interval_costs_less_than_three_points() -> None:
    M = mean_time_between_failures(16384, 0.0042)
    best = calendar.best_checkpoint_interval(40, M)
    half, least, double = (calendar.losses(k * best, 40, M, 1800).total for k in (0.5, 1, 2))
    assert [round(100 * (x - least), 1) for x in (half, double)] == [2.8, 2.9]
    assert "costs less than three points" in words("09_calendar")
