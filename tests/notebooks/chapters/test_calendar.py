"""What the page of chapter 09 states, computed anew."""

import pytest

from llmtrain_helpers import calendar, calendar_days, mean_time_between_failures, plan_run
from llmtrain_helpers.evidence import published
from llmtrain_helpers.units import HOUR, MINUTE
from tests.pages import words


def test_the_win_goes_from_whole_runs_to_steps_of_unknown_and_of_known_software() -> None:
    llama = published.architecture("Llama-3.1-8B", sequence_length=8192)
    chip, run = published.accelerator("H100"), (64, 1e12, 512)
    plan = plan_run(llama, chip, *run, recompute="none", zero_stage=3)
    known = plan.but(software="megatron-core")
    text = words("09_calendar")
    whole, steps = plan.days, calendar_days(plan).computing
    assert [round(x) for x in (whole.least, whole.greatest, whole.likely)] == [22, 29, 25]
    assert "22 to 29 days for the same run, likely 25" in text
    assert round(whole.likely - calendar_days(plan).total.likely) == 3
    assert "three days shorter" in text
    narrow = calendar_days(known).computing
    ends = [round(x) for x in (steps.least, steps.greatest, narrow.least, narrow.greatest)]
    assert ends == [14, 31, 17, 24]
    assert "from 14 to 31 days" in text
    assert "from 17 to 24" in text


def test_the_page_of_sixteen_thousand_with_the_defaults() -> None:
    """More than three years in the worst case, with a stop every 44 minutes."""
    plan = published.run_plan("Llama 3.1 405B", tokens=10e12, flops_per_gpu=400e12)
    assert 3 * 365 < calendar_days(plan).total.greatest < 4 * 365
    M = mean_time_between_failures(16384, calendar.FAILURES_PER_NODE_DAY.greatest)
    assert round(M / MINUTE) == 44


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
