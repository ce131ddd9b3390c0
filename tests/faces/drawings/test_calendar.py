"""Chapter 10's pictures: as long as their days, with each failure on its date."""

import math
from datetime import date, timedelta

import pytest

from llmtrain_course.calendar import pictures as drawings
from llmtrain_course.calendar.formulas import simulate_run
from llmtrain_course.kit.chart import Area, Dot, Rule
from llmtrain_course.kit.lanes import Limit, Point, Span
from llmtrain_helpers import calendar_days, plan_run
from llmtrain_helpers.calendar import best_checkpoint_interval, losses
from llmtrain_helpers.units import DAY, HOUR
from tests.faces.marks import length, marks
from tests.faces.svg import drawn

PLAN = plan_run("Llama-3.1-8B", "H100", 64, 1e12, 512, recompute="none", zero_stage=3)


def test_the_bars_and_dates_of_a_glance_are_to_one_scale() -> None:
    days = calendar_days(PLAN)
    picture = drawings.calendar_at_a_glance(days, 30, "64 H100", 35)
    promised, deadline = marks(picture, Limit)
    assert (promised.value, bool(promised.dash), deadline.value) == (35, True, 30)
    for lane, case in zip(picture.lanes, ("least", "likely", "greatest"), strict=True):
        useful, total = (getattr(x, case) for x in (days.computing, days.total))
        assert length(lane, "useful") == pytest.approx(useful)
        assert max(x.end for x in marks(lane, Span)) == pytest.approx(total)
    verdicts = {10: "Too late", 20: "In time with luck", 30: "Likely in time", 40: "In time"}
    for there, verdict in verdicts.items():
        words = drawings.calendar_at_a_glance(days, there).words
        assert f" {verdict}: you have {there} days." in words


@pytest.mark.parametrize(("mean", "days"), [(0.01, 5), (0.1, 60), (2, 60), (30, 500)])
def test_a_strip_has_at_most_ten_rows_and_every_second_of_them(mean: float, days: float) -> None:
    run = simulate_run(days * DAY, HOUR / 4, 20, mean * DAY, 300, seed=2)
    span = drawings.row_of_days(run.total / DAY / run.stops, run.total / DAY)
    picture = drawings.strip_of_days(run, None, 0.02)
    names = [x for x in drawn(picture).texts if x.startswith("day ")]
    assert names == [f"day {1 + span * row}" for row in range(len(names))]
    assert len(names) == min(10, math.ceil(run.total / DAY / span))
    visible, row = min(len(names) * span, run.total / DAY), picture.x.high
    seen = sum(x.end - x.start for x in marks(picture, Span))
    assert seen / row == pytest.approx(visible / span)
    if visible == run.total / DAY:
        for part in ("lost", "restarting"):
            assert length(picture, part) / row == pytest.approx(getattr(run, part) / DAY / span)


def test_a_run_ends_on_its_date_and_each_failure_has_its_cross() -> None:
    run = simulate_run(20 * DAY, 4 * HOUR, 40, 5 * DAY, HOUR, seed=4)
    days = run.calendar_days(outages=0.05, evaluation=0.006)
    assert days == pytest.approx(run.total / DAY / 0.944)
    drawing = drawings.dated_run(run.on_calendar(0.05, 0.006), date(2027, 3, 1), 30, 35)
    picture = drawn(drawing)
    assert run.stops > 1
    assert sum(x.count("✕") for x in picture.texts if x[0].isdigit()) == run.stops
    end = date(2027, 3, 1) + timedelta(days=math.ceil(days) - 1)
    assert (
        f"after {run.stops} failures, the run finishes on day {math.ceil(days)}, {end:%A}"
        in drawing.words
    )
    for kind in ("lost", "restarting"):
        assert len(picture.titled(kind)) >= run.stops
    day = picture.between("Mon", "Tue", "left") - 5  # between a day and the next are 5 pixels
    parts = ("useful", "lost", "restarting", "outages", "evaluation")
    assert sum(map(picture.width_of, parts)) / day == pytest.approx(days, rel=0.01)
    for title, which in (("your last day", 30), ("promised", 35)):
        [frame] = picture.titled(title)
        first = picture.text("1 Mar").left
        assert frame.left - first == pytest.approx((which - 1) % 7 * (day + 5) - 5, abs=0.5)


@pytest.mark.parametrize("minutes", [5, 15, 60, 120])
def test_a_dot_is_on_the_valley_whose_axes_stay(minutes: float) -> None:
    best = float(best_checkpoint_interval(40, 10_045.7))
    picture, same = (drawings.valley(t, 40, 10_045.7, 600) for t in (60 * minutes, best))
    ends = [(x.low, x.high) for valley in (picture, same) for x in (valley.x, valley.y)]
    assert (ends[:2], marks(picture, Area)) == (ends[2:], marks(same, Area))
    for valley, seconds in ((picture, 60 * minutes), (same, best)):
        [dot], [rule] = marks(valley, Dot), marks(valley, Rule)
        assert (dot.x, dot.y) == (seconds, float(losses(seconds, 40, 10_045.7, 600).total))
        assert (rule.value, bool(rule.dash)) == (best, True)
    restarting, lost, saving = marks(picture, Area)
    assert [x.title for x in (restarting, lost, saving)] == ["restarting", "lost", "saving"]
    assert (lost.lower, saving.lower) == (restarting.upper, lost.upper)
    for i in range(0, len(saving.xs), 20):
        parts = losses(saving.xs[i], 40, 10_045.7, 600)
        for layer in (restarting, lost, saving):
            high = layer.upper[i] - layer.lower[i]
            assert high == pytest.approx(float(getattr(parts, layer.title)))


@pytest.mark.parametrize(("lost", "interval", "restart"), [(30, 60, 40), (50, 75, 25), (0, 60, 60)])
def test_each_bar_of_a_failure_is_as_long_as_its_minutes(lost, interval, restart) -> None:
    picture = drawings.one_stop(lost, interval, restart)
    for title, minutes in (("lost", lost), ("restarting", restart), ("useful", 1.5 * interval)):
        assert length(picture, title) == minutes
    [failure], [restarts] = marks(picture, Limit), marks(picture, Span, "restarting")
    assert failure.value == restarts.start == lost
    assert [write.at for write in marks(picture, Point)] == [-interval, 0]
    [ahead] = [x for x in marks(picture, Span) if x.previous]
    assert (ahead.start, ahead.end) == (0, interval)


def test_what_stands_still_is_told_apart_without_its_colour() -> None:
    picture = drawings.one_stop(30, 60, 30)
    high = {x: marks(picture, Span, x)[0].rise for x in ("useful", "lost", "restarting")}
    assert high["useful"] > 1.5 * high["lost"] > 2 * high["restarting"]


def test_the_parts_of_a_run_are_as_long_as_their_days() -> None:
    parts = {"computing": 30.0, "saving": 2.0, "lost": 3.0, "restarting": 5.0}
    picture = drawings.parts_of_days(parts, {**parts, "restarting": 15.0})
    texts = drawn(picture).texts
    for part, days in parts.items():
        assert length(picture, drawings.WORDS[part]) == days
        word = drawings.WORDS[part]
        assert {f"{word} {days:.1f} days", f"{word} {days:.2f} days"} & {*texts}
    assert marks(picture, Span, "at the start")[0].end == 50
    assert not drawn(drawings.parts_of_days(parts, parts)).dashed
