"""Chapter 09's drawings: to scale, inside their canvas, the same in words."""

import math
import re
from datetime import date, timedelta
from functools import partial

import pytest

from llmtrain_helpers import Accelerator, Transformer, calendar_days, plan_run, simulate_run
from llmtrain_helpers.drawings import calendar as drawings
from llmtrain_helpers.units import DAY, HOUR

H100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})


LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192)


PLAN = plan_run(LLAMA, H100, 64, 1e12, 512, recompute="none", zero_stage=3)


def test_drawings_say_what_they_show() -> None:
    drawn = drawings.stops_of_nodes()
    found = [int(x) for x in re.findall(r"stops (\d+) times", drawn.words)]
    assert found == [8, 14]
    assert drawn.body.count("✕") == 14
    again = [
        int(re.findall(r"stops (\d+) times", drawings.stops_of_nodes(k).words)[1]) for k in (2, 8)
    ]
    assert again == [8, 15]
    words = drawings.calendar_at_a_glance(calendar_days(PLAN), 30).words
    assert "15 to 35 days on the calendar, likely 22 days" in words
    assert "Likely in time: you have 30 days." in words
    late = drawings.calendar_at_a_glance(calendar_days(PLAN), 10).words
    assert "Too late" in late
    assert (
        "Page 08 promised 35."
        in drawings.calendar_at_a_glance(calendar_days(PLAN), 30, "", 35).words
    )


def test_the_calendar_at_a_glance_keeps_its_two_dates_on_a_telephone() -> None:
    glance = partial(drawings.calendar_at_a_glance, calendar_days(PLAN), 30, "64 H100", 35)
    wide, narrow = glance(), glance(width=drawings.NARROW)
    assert (narrow.width, narrow.words) == (drawings.NARROW, wide.words)
    dates = [float(x) for x in re.findall(r'<line x1="([\d.]+)"', narrow.body)[:2]]
    assert 12 < dates[1] < dates[0] < 368
    written = re.findall(r"<text [^>]*>(.*?)</text>", narrow.body)
    assert {"30", "35", "○ likely in time: you have 30 days"} < {*written}
    for x, size, words in re.findall(
        r'<text x="([\d.]+)" .*?font-size="(\d+)".*?>(.*?)<', narrow.body
    ):
        assert float(x) + 0.52 * int(size) * len(words) <= drawings.NARROW, words


@pytest.mark.parametrize(("mean", "days"), [(0.01, 5), (0.1, 60), (2, 60), (30, 500)])
def test_a_strip_has_at_most_ten_rows_and_every_second_of_them(mean: float, days: float) -> None:
    run = simulate_run(days * DAY, HOUR / 4, 20, mean * DAY, 300, seed=2)
    span = drawings.row_of_days(run.total / DAY / run.stops, run.total / DAY)
    drawn = drawings.strip_of_days(run, None, 0.02)
    rows = len(re.findall(r">(?:from )?day \d+<", drawn.body))
    assert rows == min(10, math.ceil(run.total / DAY / span))
    wide = sum(map(float, re.findall(r"h(\d[\d.]*)v-", drawn.body)))
    assert wide == pytest.approx(min(rows * span, run.total / DAY) / span * 596, rel=0.01)


def test_a_run_ends_on_its_date_and_each_failure_has_its_cross() -> None:
    run = simulate_run(20 * DAY, 4 * HOUR, 40, 5 * DAY, HOUR, seed=4)
    days = run.calendar_days(outages=0.05, evaluation=0.006)
    assert days == pytest.approx(run.total / DAY / 0.944)
    drawn = drawings.dated_run(run.on_calendar(0.05, 0.006), date(2027, 3, 1), 30, 35)
    assert run.stops > 1
    cells = re.findall(r">(\d+(?: \w+)? ✕+)<", drawn.body)
    assert "".join(cells).count("✕") == run.stops
    end = date(2027, 3, 1) + timedelta(days=math.ceil(days) - 1)
    assert f"{run.stops} failures and is done on day {math.ceil(days)}, {end:%A}" in drawn.words
    for kind in ("lost", "restarting"):
        assert drawn.body.count(f"<title>{kind}</title>") >= run.stops


def test_what_stands_still_is_told_apart_without_its_colour() -> None:
    body = drawings.failure(30, 60, 40).body
    found = re.findall(r'height="([\d.]+)"[^>]*><title>(useful|lost|restarting)', body)
    high = {kind: float(pixels) for pixels, kind in found}
    assert high["useful"] > 1.5 * high["lost"] > 2 * high["restarting"]


def test_a_dot_lies_on_the_valley_whose_axes_stay() -> None:
    for minutes, share in ((60, "29.4 %"), (15, "16.2 %")):
        drawn = drawings.valley(minutes * 60, 40, 10_045.7, 600)
        assert share in drawn.words
        assert re.findall(r">(\d+ %)<", drawn.body) == ["0 %", "20 %", "40 %", "60 %", "80 %"]


def test_a_failure_is_drawn_to_scale() -> None:
    body = drawings.failure(30, 60, 40).body
    wide = re.findall(r'width="([\d.]+)"[^>]*><title>(lost|restarting)', body)
    assert wide == [("71", "lost"), ("95", "restarting")]


@pytest.mark.parametrize("width", [628, drawings.NARROW])
@pytest.mark.parametrize(("lost", "interval", "restart"), [(30, 60, 40), (50, 75, 25)])
def test_each_bar_of_a_failure_is_as_long_as_its_minutes(lost, interval, restart, width) -> None:
    body = drawings.failure(lost, interval, restart, width).body
    place = r'<rect x="([\d.]+)"[^>]* width="([\d.]+)"[^>]*><title>(\w+)</title>'
    bars = [(float(x), float(wide) + 1, kind) for x, wide, kind in re.findall(place, body)]
    scale = next(wide for _, wide, kind in bars if kind == "lost") / lost
    minutes = {"useful": interval, "lost": lost, "restarting": restart}
    assert {kind for *_, kind in bars} == {*minutes, "saving"}
    for x, wide, kind in bars:
        assert wide == pytest.approx(minutes.get(kind, 9 / scale) * scale, abs=0.11)
        after = min((other for other, *_ in bars if other > x), default=x + wide)
        assert after == pytest.approx(x + wide, abs=0.11)  # without a gap
