"""Chapter 09's pictures: as long as their days, with each failure on its date."""

import math
from datetime import date, timedelta

import pytest

from llmtrain_course.calendar import pictures as drawings
from llmtrain_course.calendar.formulas import simulate_run
from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.layout import PAGE, PHONE
from llmtrain_helpers import Accelerator, Transformer, calendar_days, plan_run
from llmtrain_helpers.calendar import best_checkpoint_interval, losses
from llmtrain_helpers.units import DAY, HOUR
from tests.faces.svg import Box, Picture, drawn

H100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})


LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192)


PLAN = plan_run(LLAMA, H100, 64, 1e12, 512, recompute="none", zero_stage=3)


@pytest.mark.parametrize("chance", [1, 2, 8])
def test_a_job_stops_where_any_of_its_nodes_fails(chance: int) -> None:
    picture = drawn(drawings.stops_of_nodes(chance))
    unit, zero = picture.unit("0", "200", "across"), picture.text("0").across
    half, whole = picture.filled(COLORS["useful"])
    stops = [x for x in picture.of_kind("line") if x.stroke == COLORS["lost"]]
    stopped = [
        sorted(x.across for x in stops if bar.top <= x.down <= bar.bottom) for bar in (half, whole)
    ]
    crosses = [x for x in picture.of_kind("line") if x.thick == 2]  # two strokes each
    half_way = (picture.text("node 4").down + picture.text("node 5").down) / 2
    fails = [sorted(x.across for x in crosses if x.down < low)[::2] for low in (half_way, half.top)]
    assert stopped == [pytest.approx(x, abs=0.2) for x in fails]
    assert stopped[0] != stopped[1]
    for gpus, when in zip((32, 64), stopped, strict=True):
        assert f"a job on {gpus} GPUs stops {len(when)} times" in picture.words
        assert f"a job on {gpus} GPUs: {len(when)} stops" in picture.texts
        assert all(0 <= (x - zero) / unit <= 300.5 for x in when)
    assert whole.width == pytest.approx(300 * unit, rel=0.005)


@pytest.mark.parametrize("width", [PAGE, PHONE])
def test_the_bars_and_dates_of_a_glance_are_to_one_scale(width: int) -> None:
    days = calendar_days(PLAN)
    picture = drawn(drawings.calendar_at_a_glance(days, 30, "64 H100", 35), width)
    start = min(bar.left for bar in picture.titled("useful"))
    lines = [x for x in picture.of_kind("line") if x.width == 0 and x.thick >= 2]
    promised, deadline = sorted(lines, key=lambda x: x.thick)
    unit = (deadline.left - start) / 30
    assert promised.dashed
    assert promised.left == pytest.approx(start + 35 * unit, abs=0.2)
    assert picture.between("0", "20", "across") == pytest.approx(20 * unit, abs=0.2)
    for bar, case in zip(picture.titled("useful"), ("least", "likely", "greatest"), strict=True):
        useful, total = (getattr(x, case) for x in (days.computing, days.total))
        assert bar.width == pytest.approx(unit * useful, abs=0.2)
        row = [x for x in picture.of_kind("rect") if x.words and bar.top <= x.down < bar.bottom]
        assert max(x.right for x in row) == pytest.approx(start + unit * total, abs=0.2)
    verdicts = {10: "Too late", 20: "In time with luck", 30: "Likely in time", 40: "In time"}
    for deadline, verdict in verdicts.items():
        words = drawings.calendar_at_a_glance(days, deadline).words
        assert f" {verdict}: you have {deadline} days." in words


@pytest.mark.parametrize(("mean", "days"), [(0.01, 5), (0.1, 60), (2, 60), (30, 500)])
def test_a_strip_has_at_most_ten_rows_and_every_second_of_them(mean: float, days: float) -> None:
    run = simulate_run(days * DAY, HOUR / 4, 20, mean * DAY, 300, seed=2)
    span = drawings.row_of_days(run.total / DAY / run.stops, run.total / DAY)
    picture = drawn(drawings.strip_of_days(run, None, 0.02))
    names = [x for x in picture.texts if x.startswith("day ")]
    assert names == [f"day {1 + span * row}" for row in range(len(names))]
    assert len(names) == min(10, math.ceil(run.total / DAY / span))
    spans = picture.of_kind("rect")
    row = max(x.right for x in spans) - min(x.left for x in spans)
    visible = min(len(names) * span, run.total / DAY)
    # an edge is written to a tenth of a pixel
    assert sum(x.width for x in spans) / row == pytest.approx(visible / span, rel=0.01)
    if len(names) * span > run.total / DAY:
        for part in ("lost", "restarting"):
            width = sum(x.width for x in picture.filled(COLORS[part]))
            share = getattr(run, part) / run.total
            assert width / row == pytest.approx(share * visible / span, rel=0.1, abs=0.01)


def test_a_run_ends_on_its_date_and_each_failure_has_its_cross() -> None:
    run = simulate_run(20 * DAY, 4 * HOUR, 40, 5 * DAY, HOUR, seed=4)
    days = run.calendar_days(outages=0.05, evaluation=0.006)
    assert days == pytest.approx(run.total / DAY / 0.944)
    drawing = drawings.dated_run(run.on_calendar(0.05, 0.006), date(2027, 3, 1), 30, 35)
    picture = drawn(drawing)
    assert run.stops > 1
    assert sum(x.count("✕") for x in picture.texts if x[0].isdigit()) == run.stops
    end = date(2027, 3, 1) + timedelta(days=math.ceil(days) - 1)
    assert f"{run.stops} failures and is done on day {math.ceil(days)}, {end:%A}" in drawing.words
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
    def valley(interval: float) -> tuple[Box, Picture]:
        picture = drawn(drawings.valley(interval, 40, 10_045.7, 600))
        [dot] = picture.titled("you", "circle")
        return dot, picture

    best = float(best_checkpoint_interval(40, 10_045.7))
    (dot, picture), (lowest, same) = valley(minutes * 60), valley(best)
    assert picture.of_kind("polygon") == same.of_kind("polygon")
    cost, least = (float(losses(t, 40, 10_045.7, 600).total) for t in (minutes * 60, best))
    unit = picture.unit("0 %", "80 %")
    assert dot.down - lowest.down == pytest.approx(unit * 100 * (cost - least), abs=0.2)
    [rule] = [line for line in picture.dashed if not line.width]
    assert lowest.across == pytest.approx(rule.left, abs=0.1)
    top = picture.of_kind("polygon")[-1].outlines[0]
    assert min(abs(x - dot.across) + abs(y - dot.down) for x, y in top) < 7
    parts = losses(best, 40, 10_045.7, 600)
    for layer in picture.of_kind("polygon"):
        corners = sorted(layer.outlines[0], key=lambda corner: abs(corner[0] - lowest.across))
        high = unit * 100 * float(getattr(parts, layer.words))
        assert -abs(corners[0][1] - corners[1][1]) == pytest.approx(high, abs=0.5)


@pytest.mark.parametrize("width", [PAGE, PHONE])
@pytest.mark.parametrize(("lost", "interval", "restart"), [(30, 60, 40), (50, 75, 25), (0, 60, 60)])
def test_each_bar_of_a_failure_is_as_long_as_its_minutes(lost, interval, restart, width) -> None:
    picture = drawn(drawings.one_stop(lost, interval, restart), width)
    unit = picture.unit("0", f"{interval:g}", "across")
    write = picture.text("0").across
    for title, minutes in (("lost", lost), ("restarting", restart), ("useful", 1.5 * interval)):
        assert picture.width_of(title) == pytest.approx(unit * minutes, abs=0.2)
    [failure] = [x for x in picture.of_kind("line") if x.thick == 3 and x.stroke == "currentColor"]
    assert failure.across == pytest.approx(write + unit * lost, abs=1)
    [restarts] = picture.titled("restarting")
    assert restarts.left == pytest.approx(failure.across, abs=0.2)
    before, last, *_ = (x for x in picture.of_kind("line") if x.stroke == COLORS["saving"])
    assert last.across - before.across == pytest.approx(unit * interval, abs=0.2)
    ahead = max(picture.dashed, key=lambda x: x.width)
    assert (ahead.left, ahead.width) == pytest.approx((last.across, unit * interval), abs=0.2)


def test_what_stands_still_is_told_apart_without_its_colour() -> None:
    picture = drawn(drawings.one_stop(30, 60, 30))
    high = {x: picture.titled(x)[0].height for x in ("useful", "lost", "restarting")}
    assert high["useful"] > 1.5 * high["lost"] > 2 * high["restarting"]


def test_the_parts_of_a_run_are_as_long_as_their_days() -> None:
    parts = {"computing": 30.0, "saving": 2.0, "lost": 3.0, "restarting": 5.0}
    picture = drawn(drawings.parts_of_days(parts, {**parts, "restarting": 15.0}))
    unit = picture.width_of("useful") / 30
    for part, days in parts.items():
        assert picture.width_of(drawings.WORDS[part]) == pytest.approx(unit * days, abs=0.2)
        assert f"{days:.1f} days" in picture.texts or f"{days:.2f} days" in picture.texts
    [before] = picture.titled("at the start")
    assert before.width == pytest.approx(50 * unit, abs=0.2)
    assert not drawn(drawings.parts_of_days(parts, parts)).dashed
