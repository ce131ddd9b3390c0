"""Chapter 09's drawings: to scale, inside their canvas, the same in words."""

import math
import re

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
    assert found == [8, 16]
    assert drawn.body.count("✕") == 16
    words = drawings.calendar_at_a_glance(calendar_days(PLAN), 30).words
    assert "15 to 35 days on the calendar, likely 22 days" in words
    assert "Likely in time: you have 30 days." in words
    late = drawings.calendar_at_a_glance(calendar_days(PLAN), 10).words
    assert "Too late" in late
    valley = drawings.losses_by_interval(40, 112 * HOUR, 1800).words
    assert "least at 1.57 hours" in valley


@pytest.mark.parametrize(("mean", "days"), [(0.01, 5), (0.1, 60), (2, 60), (30, 500)])
def test_a_strip_has_at_most_ten_rows_and_every_second_of_them(mean: float, days: float) -> None:
    run = simulate_run(days * DAY, HOUR / 4, 20, mean * DAY, 300, seed=2)
    span = drawings.row_of_days(run.total / DAY / run.stops, run.total / DAY)
    drawn = drawings.strip_of_days(run, None, 0.02)
    rows = len(re.findall(r">(?:from )?day \d+<", drawn.body))
    assert rows == min(10, math.ceil(run.total / DAY / span))
    wide = sum(map(float, re.findall(r"h(\d[\d.]*)v24", drawn.body)))
    assert wide == pytest.approx(min(rows * span, run.total / DAY) / span * 596, rel=0.01)


def test_the_axis_of_intervals_is_round_and_holds_its_words() -> None:
    for write, M in ((0.1, 60), (40, 9990), (40, 4 * DAY), (150, 900 * DAY)):
        body = drawings.losses_by_interval(write, M, M / 20).body
        words = re.findall(r">(\d+ (?:s|min|h|days))</text>", body)
        assert len(words) >= 3, (write, M, words)


def test_the_axis_of_losses_reaches_stops_that_come_faster_than_restarts() -> None:
    body = drawings.losses_by_interval(40, 100, 1800).body
    shares = re.findall(r">([\d.e+]+) %</text>", body)
    assert 4 <= len(shares) <= 7
    assert float(shares[-1]) > 1e9
