"""What the page of chapter 10 states, computed anew."""

from typing import Any

import pytest

from llmtrain_course.calendar.handles import Setting
from llmtrain_course.panels import PANELS
from llmtrain_helpers import (
    calendar,
    calendar_days,
    mean_time_between_failures,
    plan_run,
    published,
    units,
)
from llmtrain_helpers.units import HOUR
from research.utilizations import stops
from tests.pages import cell, cells, words

PAGE = "10_calendar"


def rows() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in published.rows("interruptions")}


def test_the_promise_is_later_than_all_that_the_calendar_adds() -> None:
    llama = published.architecture("Llama-3.1-8B", sequence_length=8192)
    chip, run = published.accelerator("H100"), (64, 1e12, 512)
    plan = plan_run(llama, chip, *run, recompute="none", zero_stage=3)
    made, promise = calendar_days(plan), plan.first_run.greatest
    assert vars(made.computing) == pytest.approx(vars(plan.days_of_steps))
    days = made.total
    assert days.likely < plan.days.likely < days.greatest < promise
    likely, usual = round(days.likely), round(plan.days.likely)
    text, latest = words(PAGE), round(promise)
    assert f"{likely} days here, when chapter 09 expects {usual} and promises {latest}" in text
    computing = f"Both start from {made.computing.likely:.0f} days of steps."
    assert f"{computing} Chapter 09 multiplies them by 1.3" in text
    assert "1.3, the overhead seen in seven whole runs" in text
    assert f"promise chapter 09's {latest} days" in text
    assert len(stops()) == 7


def test_what_runs_lost_at_a_stop_differs_more_than_their_rates() -> None:
    runs = rows()
    four = ("Llama 3.1 405B", "OPT-175B", "BLOOM-176B", "GLM-130B")
    rates = [runs[name]["failures_per_node_day"] for name in four]
    sizes = [runs[name]["num_gpus"] for name in four]
    M = [mean_time_between_failures(n, r) for n, r in zip(sizes, rates, strict=True)]
    lost = [(1 - runs[x]["useful_share"]) * m for x, m in zip(four, M, strict=True)]
    assert round(max(rates) / min(rates)) == 7
    text = cell(PAGE, "confront-reading")
    assert f"the time lost per stop by a factor of {max(lost) / min(lost):.0f}." in text
    assert f"Llama only lost {lost[0] / HOUR:.2f} hours per stop" in text
    [table] = [x for x in cells(PAGE) if x["id"] == "confront-runs"]
    printed = "".join(table["outputs"][0]["data"]["text/plain"])
    hours = [float(line.split()[-1]) for line in printed.splitlines()[1:]]
    assert round(max(hours) / min(hours)) == round(max(lost) / min(lost))
    assert max(lost) / HOUR == pytest.approx(11.7, abs=0.1)
    assert round(lost[1] / lost[0]) == 18
    assert lost[1] / HOUR == pytest.approx(5, abs=0.05)
    assert [runs[x]["useful_kind"] for x in four[:2]] == ["more than", "derived"]
    assert [round(1000 * r, 1) for r in rates] == [4.2, 15.1, 4.5, 2.1]


def test_half_or_double_the_best_interval_costs_less_than_three_points() -> None:
    M = mean_time_between_failures(16384, 0.0042)
    best = calendar.best_checkpoint_interval(40, M)
    half, least, double = (calendar.losses(k * best, 40, M, 1800).total for k in (0.5, 1, 2))
    assert [round(100 * (x - least), 1) for x in (half, double)] == [2.8, 2.9]
    assert "add less than three more percentage points" in words("10_calendar")


def test_what_the_first_panel_assumes() -> None:
    """Restarts of half an hour, which the run that it follows did not need."""
    panel = PANELS["calendar"]
    setting = Setting(**panel.default)
    llama = rows()["Llama 3.1 405B"]
    assert (setting.restart, llama["useful_kind"], llama["useful_share"]) == (30, "more than", 0.9)
    useful = units.percent(1 / (1 + setting.days.losses.total))
    text = cell(PAGE, "panel-text")
    assert "we assume that every restart takes half an hour" in text
    text = cell(PAGE, "panel-answers")
    assert f"more than 90% of its time was useful, while the panel starts at {useful}" in text


def test_how_often_what_fails() -> None:
    """Something stops the run every three hours, a GPU or its memory every five."""
    llama = rows()["Llama 3.1 405B"]
    causes = [row for row in published.rows("llama3_causes") if row["kind"] == "GPU"]
    gpus = sum(row["stops"] for row in causes)
    assert round(24 * llama["days"] / llama["stops"]) == 3
    assert "every three hours something stops it, usually a GPU" in cell(PAGE, "title")
    assert round(24 * llama["days"] / gpus) == 5
    text = cell(PAGE, "twice-reading")
    assert f"For {gpus} of these, or one every five hours, the cause was a GPU" in text
    whole = published.hours_of(published.run("Llama 3.1 405B")) / llama["num_gpus"] / 24
    assert f"(The {whole:.0f} days in chapter 03 are the GPU-hours of the whole run" in text
    assert f"Its team kept count for {llama['days']} days" in text
    assert f"the run stopped {llama['stops']} times" in text
    names = ("Llama 3.1 405B", "OPT-175B", "BLOOM-176B", "GLM-130B")
    each = [round(1000 * rows()[name]["failures_per_node_day"]) for name in names]
    logbook = rows()["OPT-175B, logbook"]
    most = 1000 * logbook["stops_high"] / (logbook["num_gpus"] / 8 * logbook["days"])
    span = f"{min(each)} to {max(each)} stops per 1,000 days, or {most:.0f} if you count everything"
    assert span in text
    assert 1000 * calendar.FAILURES_PER_NODE_DAY.greatest == round(most)
    cluster = rows()["Meta RSC-1, 1,024 GPUs"]["failures_per_node_day"]
    assert f"In jobs of 1,024 GPUs on a shared cluster, the figure was {1000 * cluster:.0f}" in text
