"""Chapter 11's drawings: to scale, inside their canvas, the same in words."""

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from llmtrain_helpers import StepTime, Transformer, count_activations, count_flops, count_parameters
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.drawings.measure import instruments, lanes, step_by_the_clock
from llmtrain_helpers.measure.clock import StepClock
from llmtrain_helpers.measure.trace import recorded_trace

CLOCK = StepClock(StepTime(0.02, 200), loading=0.002, exchange=0.06, update=0.015)


def three(hidden: int) -> list[Any]:
    shape = Transformer.gpt(4, hidden, 8, 1024, 256)
    counted = [count_parameters(shape), count_flops(shape, 2, "none")]
    return [*counted, count_activations(shape, 2)]


def widths(body: str, color: str) -> list[float]:
    found = re.findall(rf'width="([\d.]+)" height="[\d.]+" fill="{color}"', body)
    return [float(wide) for wide in found]


def test_three_counts_are_drawn_to_scale() -> None:
    drawn = instruments(three(256), three(256))
    assert drawn.words.count("the formula says the same") == 3
    assert "stroke-dasharray" not in drawn.body
    counted = three(256)[0]
    measured, formula = widths(drawn.body, COLORS["MLP"])[:2]
    assert measured == formula == pytest.approx(630 * counted.mlp / counted.total, abs=0.1)
    wider = instruments(three(512), three(512), before=three(256))
    assert wider.body.count("5 4") == 3
    wrong = instruments(three(512), three(256))
    assert wrong.words.count("the formula differs") == 3
    assert three(512)[1].total > three(256)[1].total


PICTURES = [
    instruments(three(64), three(64), three(1024)),
    lanes({name: recorded_trace(name) for name in ("beside", "after")}),
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
    assert gradients == [pytest.approx(640 * 0.06 / (2 * step), abs=0.1)] * 2
    assert "this GPU alone × " in drawn.words
