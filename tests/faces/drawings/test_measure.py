"""Chapter 11's drawings: to scale, inside their canvas, the same in words."""

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from llmtrain_helpers import StepTime
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.drawings.measure import (
    one_product,
    one_step,
    predicted_step,
    step_by_the_clock,
    step_bytes,
    timed_steps,
)
from llmtrain_helpers.evidence import published
from llmtrain_helpers.measure.clock import StepClock, times
from llmtrain_helpers.measure.recorded import WIDTHS, product_rates, recorded_memory, recorded_step
from llmtrain_helpers.measure.trace import recorded_trace

SECONDS = [row["seconds"] for row in published.rows("step_times") if row["series"] == 1]
CLOCK = StepClock(StepTime(0.02, 200), loading=0.002, exchange=0.06, update=0.015)


def widths(body: str, color: str) -> list[float]:
    found = re.findall(rf'width="([\d.]+)" height="[\d.]+" fill="{color}"', body)
    return [float(wide) for wide in found]


def test_a_prediction_is_one_unit_long_whatever_the_width() -> None:
    for width in WIDTHS:
        step = recorded_step(width)
        drawn = predicted_step(step, 3)
        assert widths(drawn.body, COLORS["memory"]) == [86]
        products, again = widths(drawn.body, COLORS["matrix products"])
        assert products == again == pytest.approx(86 * step.products / step.ideal, abs=0.1)
        assert predicted_step(step, 0).body.count(">?<") == 4


def test_memory_is_drawn_to_one_scale() -> None:
    for width in WIDTHS:
        predicted, taken = recorded_memory(width)
        drawn = step_bytes(predicted, taken)
        [process] = widths(drawn.body, COLORS["memory"])
        activations = widths(drawn.body, COLORS["activations"])[0]
        ratio = taken / predicted.activations
        assert process / activations == pytest.approx(ratio, rel=0.01)
        assert ">?<" in step_bytes(predicted, None).body


PICTURES = [
    *(one_product(product_rates(), size) for size in (16, 1024)),
    *(predicted_step(recorded_step(width), n) for width in WIDTHS for n in (0, 2, 3)),
    *(timed_steps(SECONDS, times(SECONDS[:n], k)) for n, k in ((2, 0), (30, 10))),
    *(step_bytes(recorded_memory(width)[0], taken) for width in WIDTHS for taken in (None, 4.8e8)),
    *(one_step(recorded_trace("beside"), t, 0.21) for t in (0.0, 0.07, 0.198)),
    one_step(recorded_trace("after"), 0.21, 0.21),
    *(
        step_by_the_clock(*step, before=(CLOCK, 4, 1))
        for clock in (CLOCK, replace(CLOCK, loading=2.0), replace(CLOCK, exchange=9))
        for step in ((clock, 1, 1), (clock, 4, 64), (clock, 128, 1), (clock, 1, 1000))
    ),
]


@pytest.mark.parametrize("drawing", PICTURES)
def test_nothing_leaves_the_canvas(drawing: Any) -> None:
    place = r'<rect x="([\d.-]+)" y="([\d.-]+)" width="([\d.-]+)" height="([\d.-]+)"'
    for x, y, wide, high in re.findall(place, drawing.body):
        assert 0 <= float(x) <= float(x) + float(wide) <= drawing.width + 0.1
        assert 0 <= float(y) <= float(y) + float(high) <= drawing.height
    sizes = re.findall(r'font-size="([\d.]+)"', drawing.body)
    assert min(map(float, sizes)) >= 14
    for x, words in re.findall(r'<text x="([\d.]+)"[^>]*start"[^>]*>([^<]*)<', drawing.body):
        assert float(x) + 7.5 * len(words) <= drawing.width + 20, words
    assert drawing.words in unescape(drawing.saved())


def test_a_step_is_drawn_to_scale_twice() -> None:
    clock = StepClock(StepTime(0.02, 200), 0.002, 0.06, 0.02)
    drawn = step_by_the_clock(clock, 4)
    step = clock.parts(4).total
    passes = widths(drawn.body, COLORS["activations"])
    assert passes == [pytest.approx(640 * 0.04 / (2 * step), abs=0.1)] * 4
    gradients = widths(drawn.body, COLORS["gradients"])
    assert gradients == [pytest.approx(640 * 0.015 / (2 * step), abs=0.1)] * 8
    assert "this GPU alone × " in drawn.words
