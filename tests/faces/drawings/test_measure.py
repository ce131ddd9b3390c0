"""Chapter 12's pictures: a prediction and what was measured are on one scale."""

import re
from configparser import ConfigParser
from pathlib import Path

import pytest

from llmtrain_course.kit.chart import Column, Path as Line
from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.lanes import Span
from llmtrain_course.measure.clock import StepClock, times
from llmtrain_course.measure.handles import recorded_series
from llmtrain_course.measure.pictures import (
    one_product,
    one_step,
    predicted_step,
    step_by_the_clock,
    step_bytes,
    step_here,
    timed_steps,
)
from llmtrain_course.measure.recorded import WIDTHS, product_rates, recorded_memory, recorded_step
from llmtrain_course.measure.trace import recorded_trace
from llmtrain_helpers import StepTime, units
from tests.faces.marks import colored, marks
from tests.faces.svg import drawn

CLOCK = StepClock(StepTime(0.02, 200), 0.002, 0.06, 0.02)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_prediction_is_one_unit_long_whatever_the_width(width: int) -> None:
    step = recorded_step(width)
    picture, covered = (predicted_step(step, measured) for measured in (True, False))
    [predicted] = marks(covered, Span)
    assert (predicted.start, predicted.end) == (0, 1)
    assert predicted in marks(picture, Span)
    names = {"its products": step.products, "all between them": step.others}
    for name, seconds in {**names, "the update": step.update}.items():
        alone, in_step = marks(picture, Span, name)
        assert alone == in_step
        assert alone.end - alone.start == pytest.approx(seconds / step.ideal)
        assert f"{units.digits(seconds / step.ideal, 2)} ×" in drawn(picture).texts
    assert drawn(covered).texts.count("?") == 4  # products, others, update, all


@pytest.mark.parametrize("seconds", [0.2, 0.9, 9.0])
def test_a_step_where_the_cell_ran_stands_below_the_recorded_one(seconds: float) -> None:
    recorded, here = recorded_step(256), step_here(0.4, times([seconds, seconds * 1.1]))
    assert here.words == step_here(0.5, times([1.0, 2.0])).words
    assert f"{units.digits(recorded.ratio, 2)}× as long" in here.words
    for ratio, milliseconds in (
        (recorded.ratio, recorded.total * 1e3),
        (seconds / 0.4, seconds * 1e3),
    ):
        written = f"{units.digits(milliseconds)} ms, {units.digits(ratio, 2)}×"
        assert written in drawn(here).texts
    unit, *_, whole, beyond = [x.width for x in drawn(here).of_kind("rect") if x.height == 26]
    assert whole + beyond == pytest.approx(unit * seconds / 0.4, rel=0.005)


def test_a_live_drawing_is_told_apart_where_tests_compare_pictures() -> None:
    here = step_here(0.4, times([0.5, 0.6]))
    config = ConfigParser(interpolation=None)
    config.read(Path(__file__).parents[2] / "nbval_sanitize.cfg")
    saved = [x.saved() for x in (here, step_here(0.4, times([0.7, 0.8])))]
    one, two = (re.sub(config["live"]["regex"], "", html) for html in saved)
    assert one == two != saved[0]
    assert (
        re.sub(config["live"]["regex"], "", step_bytes().drawing().saved())
        == step_bytes().drawing().saved()
    )


def test_memory_is_drawn_to_one_scale() -> None:
    picture = step_bytes()
    texts = drawn(picture).texts
    parts = [marks(picture, Span, x) for x in ("weights", "Adam", "activations", "logits")]
    for i, (width, measured) in enumerate(zip(WIDTHS, marks(picture, Span, "meas"), strict=True)):
        moment, process_bytes = recorded_memory(width)
        assert (measured.start, measured.end) == (0, process_bytes)
        assert sum(spans[i].end - spans[i].start for spans in parts) == moment.total
        ratio = units.digits(process_bytes / moment.total, 2)
        assert f"hidden size {width}: {ratio}× the prediction" in texts


def test_a_product_is_as_high_as_its_rate() -> None:
    rates = product_rates()
    assert [x.high for x in marks(one_product(rates, 1024), Column)] == [*rates.values()]


def test_a_median_is_a_line_at_its_value_over_the_steps_that_are_timed() -> None:
    series = recorded_series("first")
    timing = times(series[:20], 5)
    [median] = marks(timed_steps(series, timing), Line)
    assert [*median.points] == [(5.5, timing.median), (20.5, timing.median)]


def test_a_step_is_drawn_to_scale_twice() -> None:
    picture, parts = step_by_the_clock(CLOCK, 4), CLOCK.parts(4)
    passes, gradients, loads, updates = (
        colored(picture, Span, COLORS[part])
        for part in ("activations", "gradients", "memory", "optimizer")
    )
    assert loads[1].start - loads[0].start == parts.total  # from its loader to the next
    for spans, taken in ((passes, 0.04), (gradients, 0.015), (updates, parts.update)):
        assert [x.end - x.start for x in spans] == pytest.approx([taken] * len(spans))
    assert len(passes) == 2 * 2  # this GPU's and the slowest's, in each step


def test_each_change_of_a_step_has_a_bar_as_long_as_its_speed() -> None:
    rates = [rate for rate in vars(CLOCK.experiments(4, 1)).values() if rate]
    bars = marks(step_by_the_clock(CLOCK, 4), Span)[-len(rates) :]
    assert [(x.start, x.end) for x in bars] == [(0, rate) for rate in rates]


def test_gradients_are_on_their_way_as_long_as_they_were_recorded() -> None:
    trace = recorded_trace("after")
    picture = one_step(trace, 0.21, 0.21)
    sent = sum(x.end - x.start for x in colored(picture, Span, COLORS["gradients"]))
    assert sent == pytest.approx(sum(end - begin for begin, end in trace.exchange if begin < 0.21))
