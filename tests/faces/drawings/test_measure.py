"""Chapter 11's pictures: a prediction and what was measured are on one scale."""

import pytest

from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.measure.clock import StepClock, times
from llmtrain_course.measure.handles import recorded_series
from llmtrain_course.measure.pictures import (
    one_product,
    one_step,
    predicted_step,
    step_by_the_clock,
    step_bytes,
    timed_steps,
)
from llmtrain_course.measure.recorded import WIDTHS, product_rates, recorded_memory, recorded_step
from llmtrain_course.measure.trace import recorded_trace
from llmtrain_helpers import StepTime, units
from tests.faces.svg import drawn

every_width = pytest.mark.parametrize("width", WIDTHS)


@every_width
def test_a_prediction_is_one_unit_long_whatever_the_width(width: int) -> None:
    step = recorded_step(width)
    picture, covered = (drawn(predicted_step(step, measured)) for measured in (True, False))
    unit = picture.unit("1", "3", "across")
    [predicted] = picture.filled(COLORS["memory"])
    assert predicted.width == pytest.approx(unit, abs=0.1)
    names = {"its products": step.products, "all between them": step.others}
    for name, seconds in {**names, "the update": step.update}.items():
        for part in picture.titled(name):  # by itself, and in the measured step
            assert part.width == pytest.approx(unit * seconds / step.ideal, abs=0.11)
        assert f"{units.digits(seconds / step.ideal, 2)} ×" in picture.texts
        assert not covered.titled(name)
    assert covered.texts.count("?") == 4  # products, others, update, all
    assert covered.filled(COLORS["memory"]) == [predicted]


def test_memory_is_drawn_to_one_scale() -> None:
    picture = drawn(step_bytes())
    unit = picture.unit("100", "500", "across") / 1e6
    measured = picture.titled("measured")
    predicted = {
        part: [bar for bar in picture.titled(part) if bar.height == measured[0].height]
        for part in ("weights", "Adam", "activations", "logits")
    }
    for i, width in enumerate(WIDTHS):
        moment, process_bytes = recorded_memory(width)
        assert measured[i].width == pytest.approx(unit * process_bytes, abs=0.5)
        whole = sum(bars[i].width for bars in predicted.values())
        assert whole == pytest.approx(unit * moment.total, abs=0.5)
        ratio = units.digits(process_bytes / moment.total, 2)
        assert f"hidden size {width}: {ratio} times as much" in picture.texts


def test_a_product_is_as_high_as_its_rate() -> None:
    rates = product_rates()
    picture = drawn(one_product(rates, 1024))
    bars = sorted((x for x in picture.of_kind("rect") if x.width > 20), key=lambda x: x.left)
    for bar, rate in zip(bars, rates.values(), strict=True):
        assert bar.height == pytest.approx(-picture.unit("20", "100") * rate / 1e9, abs=0.3)


def test_a_median_is_a_line_at_its_value_over_the_steps_that_are_timed() -> None:
    series = recorded_series("first")
    timing = times(series[:20], 5)
    picture = drawn(timed_steps(series, timing))
    [median] = [x for x in picture.of_kind("polyline") if x.stroke == COLORS["gradients"]]
    high = picture.text("0").down - median.down
    assert high == pytest.approx(-picture.unit("20", "80") * 1e3 * timing.median, abs=1.5)
    assert median.width == pytest.approx(15 * picture.unit("5", "25", "across"), rel=0.01)


def test_a_step_is_drawn_to_scale_twice() -> None:
    clock = StepClock(StepTime(0.02, 200), 0.002, 0.06, 0.02)
    picture, parts = drawn(step_by_the_clock(clock, 4)), clock.parts(4)
    high = picture.filled(COLORS["activations"])[0].height
    passes, gradients, loads, updates = (
        [x for x in picture.filled(COLORS[part]) if x.height == high]
        for part in ("activations", "gradients", "memory", "optimizer")
    )
    unit = (loads[1].left - loads[0].left) / parts.total  # a step, from its loader to the next
    for boxes, taken in ((passes, 0.04), (gradients, 0.015), (updates, parts.update)):
        assert {round(x.width, 1) for x in boxes} == {round(boxes[0].width, 1)}
        assert boxes[0].width == pytest.approx(unit * taken, abs=0.2)
    assert len(passes) == 2 * 2  # this GPU's and the slowest's, in each step


def test_each_change_of_a_step_has_a_bar_as_long_as_its_speed() -> None:
    clock = StepClock(StepTime(0.02, 200), 0.002, 0.06, 0.02)
    picture = drawn(step_by_the_clock(clock, 4))
    below = picture.text("sequences a second").bottom
    bars = [x.width for x in picture.of_kind("rect") if x.top > below and not x.dashed]
    rates = [rate for rate in vars(clock.experiments(4, 1)).values() if rate]
    assert [x / bars[0] for x in bars] == pytest.approx([x / rates[0] for x in rates], rel=0.01)


def test_gradients_are_on_their_way_as_long_as_they_were_recorded() -> None:
    trace = recorded_trace("after")
    picture = drawn(one_step(trace, 0.21, 0.21))
    unit = picture.unit("50", "200", "across") * 1e3
    sent = [x.width for x in picture.filled(COLORS["gradients"]) if x.height > 20]
    times = [end - begin for begin, end in trace.exchange if begin < 0.21]
    assert sum(sent) == pytest.approx(unit * sum(times), rel=0.02)
