"""Chapter 09's pictures: as long as their days, with each failure on its date."""

import math
from datetime import date, timedelta
from itertools import pairwise

import pytest

from llmtrain_course.calendar import pictures as drawings
from llmtrain_course.calendar.formulas import simulate_run
from llmtrain_course.kit.drawing import COLORS
from llmtrain_helpers import Accelerator, Transformer, calendar_days, plan_run
from llmtrain_helpers.units import DAY, HOUR
from tests.faces.svg import drawn

H100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})


LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192)


PLAN = plan_run(LLAMA, H100, 64, 1e12, 512, recompute="none", zero_stage=3)


@pytest.mark.parametrize("chance", [1, 2, 8])
def test_each_stop_is_on_its_day_and_a_node_has_it_too(chance: int) -> None:
    drawing = drawings.stops_of_nodes(chance)
    picture = drawn(drawing)
    unit, zero = picture.unit("0", "300 days", "across"), picture.text("0").across
    stops = picture.titled("day ")
    whole = [x for x in stops if x.down > max(y.down for y in picture.filled(COLORS["useful"])) - 1]
    assert picture.texts.count("✕") == len(whole)
    assert f"stops {len(whole)} times" in drawing.words
    assert f"stops {len(stops) - len(whole)} times" in drawing.words
    scale = max(x.width for x in picture.filled(COLORS["useful"])) / 300
    assert unit < scale  # the last number ends where the line does
    for stop in stops:
        day = int(stop.words.split()[1])
        assert stop.across - zero == pytest.approx(scale * day, abs=1.2 * scale)


@pytest.mark.parametrize("width", [744, drawings.NARROW])
def test_the_bars_and_dates_of_a_glance_are_to_one_scale(width: int) -> None:
    days = calendar_days(PLAN)
    picture = drawn(drawings.calendar_at_a_glance(days, 30, "64 H100", 35, width))
    start = min(bar.left for bar in picture.titled("useful"))
    promised, deadline = (x for x in picture.of_kind("line") if x.width == 0 and x.thick >= 2.5)
    unit = (deadline.left - start) / 30
    assert promised.left == pytest.approx(start + 35 * unit, abs=0.2)
    for bar, case in zip(picture.titled("useful"), ("least", "likely", "greatest"), strict=True):
        useful = getattr(days.computing, case)
        assert bar.width + 1 == pytest.approx(unit * useful, abs=0.2)
        row = [x for x in picture.of_kind("rect") if x.words and bar.top <= x.down < bar.bottom]
        end = max(x.right for x in row)
        assert end == pytest.approx(start + unit * getattr(days.total, case), abs=1.2)
    assert "Too late" in drawings.calendar_at_a_glance(days, 10).words


@pytest.mark.parametrize(("mean", "days"), [(0.01, 5), (0.1, 60), (2, 60), (30, 500)])
def test_a_strip_has_at_most_ten_rows_and_every_second_of_them(mean: float, days: float) -> None:
    run = simulate_run(days * DAY, HOUR / 4, 20, mean * DAY, 300, seed=2)
    span = drawings.row_of_days(run.total / DAY / run.stops, run.total / DAY)
    picture = drawn(drawings.strip_of_days(run, None, 0.02))
    names = [x for x in picture.texts if x.startswith(("day ", "from day "))]
    assert len(names) == min(10, math.ceil(run.total / DAY / span))
    paths = picture.of_kind("path")
    row = max(x.right for x in paths) - min(x.left for x in paths)
    wide = sum(piece.width for path in paths for piece in path.pieces)
    assert wide == pytest.approx(min(len(names) * span, run.total / DAY) / span * row, rel=0.01)


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


@pytest.mark.parametrize("minutes", [5, 15, 60, 120])
def test_a_dot_is_on_the_valley_whose_axes_stay(minutes: float) -> None:
    picture = drawn(drawings.valley(minutes * 60, 40, 10_045.7, 600))
    [dot] = picture.titled("you", "circle")
    top = picture.of_kind("polygon")[-1].outlines[0]
    assert min(abs(x - dot.across) + abs(y - dot.down) for x, y in top) < 7


@pytest.mark.parametrize("width", [628, drawings.NARROW])
@pytest.mark.parametrize(("lost", "interval", "restart"), [(30, 60, 40), (50, 75, 25)])
def test_each_bar_of_a_failure_is_as_long_as_its_minutes(lost, interval, restart, width) -> None:
    """And what stands still is told apart without its colour: it's less high."""
    picture = drawn(drawings.failure(lost, interval, restart, width))
    bars = sorted((x for x in picture.of_kind("rect") if x.words), key=lambda bar: bar.left)
    unit = (picture.width_of("lost") + 1) / lost
    minutes = {"useful": interval, "lost": lost, "restarting": restart}
    for bar in bars:
        if bar.words != "saving":
            assert bar.width + 1 == pytest.approx(unit * minutes[bar.words], abs=0.11)
    assert all(b.left - a.right == pytest.approx(1, abs=0.11) for a, b in pairwise(bars))
    high = {bar.words: bar.height for bar in bars}
    assert high["useful"] > 1.5 * high["lost"] > 2 * high["restarting"]
