"""Measuring: what is missing without PyTorch, the clock, and traces."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_course import measure
from llmtrain_course.__main__ import measure as main
from llmtrain_course.measure.clock import (
    BACKWARD,
    BUCKETS,
    StepClock,
    Times,
    compared,
    timed,
    times,
)
from llmtrain_course.measure.recorded import WIDTHS, recorded_model, recorded_peak, recorded_step
from llmtrain_course.measure.trace import (
    difference,
    length,
    overlap,
    read_trace,
    recorded_trace,
    union,
)
from llmtrain_helpers import StepTime, Transformer, count_flops, published
from tests.bad_values import BAD_COUNTS, assert_refused

SHAPE = Transformer.llama(1, 8, 2, 1, 8, 8, 4)


CALLS: dict[str, Callable[[Any], Any]] = {
    "parameters": lambda model: measure.measure_parameters(model),
    "flops": lambda model: measure.measure_flops(model, 1, "none"),
    "saved": lambda model: measure.saved_tensors(model, 1),
    "activations": lambda model: measure.measure_activations(model, 1),
    "memory": lambda model: measure.measure_step_memory(model, 1, "fp32", "none"),
    "seconds": lambda model: measure.step_seconds(model, [1]),
    "step": lambda model: measure.training_step(model, 1),
    "profile": lambda model: measure.profile_step(model, 1),
    "trace": lambda model: measure.trace_data_parallel(model, 1),
    "link": lambda model: measure.measure_slow_link(model, 1, 0.1),
}


@pytest.fixture
def no_torch(monkeypatch: Any) -> None:
    """As if PyTorch were not installed."""
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.usefixtures("no_torch")
def test_the_sentence_that_a_learner_without_pytorch_reads() -> None:
    sentence = measure.torch_missing()
    assert sentence is not None
    assert "PyTorch is not installed" in sentence
    assert "`pip install 'torch>=2.13'`" in sentence
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0


def test_no_sentence_where_it_is_installed(monkeypatch: Any) -> None:
    monkeypatch.setattr(measure, "find_spec", lambda name: object())
    assert measure.torch_missing() is None


@pytest.mark.usefixtures("no_torch")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_function_says_it_too(call: Callable[[Any], Any]) -> None:
    with pytest.raises(ImportError, match="PyTorch is not installed"):
        call(SHAPE)


@pytest.mark.usefixtures("no_torch")
def test_so_does_the_command(tmp_path: Path, capsys: Any) -> None:
    assert main(["--record", str(tmp_path / "x.csv")]) == 2
    assert capsys.readouterr().err.strip() == measure.torch_missing()
    assert not list(tmp_path.iterdir())


BAD_SHAPES = {
    "model": "gpt2",
    "hidden_size": Transformer.gpt(2, np.array([48, 96]), 4, 50, 16),
    "head_dim": Transformer.llama(1, 6, 2, 2, 8, 8, 4),
}


@pytest.mark.parametrize("argument", BAD_SHAPES)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_shapes_that_cannot_be_built_are_refused(call: Callable[[Any], Any], argument: str) -> None:
    assert_refused(lambda: call(BAD_SHAPES[argument]), argument)


@pytest.mark.parametrize("value", [None, "ful", "amp", "fp8", 1])
def test_unknown_names_are_refused_with_the_known_ones(value: Any) -> None:
    def memory(**values: Any) -> Any:
        good = {"micro_batch_size": 1, "recipe": "fp32", "recompute": "none"}
        return measure.measure_step_memory(SHAPE, **good | values)

    for name in ("recipe", "recompute", "attention"):
        assert_refused(memory, name, **{name: value})
    with pytest.raises(ValueError, match="Known: none, selective, full"):
        memory(recompute=value)


@pytest.mark.usefixtures("no_torch")
def test_a_notebook_shows_the_sentence_and_no_traceback() -> None:
    with pytest.raises(measure.TorchMissingError) as caught:
        measure.require_torch()
    assert caught.value._render_traceback_() == [measure.torch_missing()]


def test_processes_that_do_not_share_a_batch_evenly_are_refused() -> None:
    share = measure.measure_data_parallel
    assert_refused(lambda: share(SHAPE, 8, 3), "batch_size=8 is not divisible")
    assert_refused(lambda: share(SHAPE, 64, 64), "processes=64 is more than")


def test_a_profile_adds_up() -> None:
    profile = measure.StepProfile(
        (
            measure.Operator("mm", "forward", 0.0, 3e-3, True),
            measure.Operator("add", "backward", 3e-3, 1e-3, False),
        )
    )
    assert profile.seconds == pytest.approx(4e-3)
    assert profile.matmul_share == pytest.approx(0.75)


# --- a clock, real and simulated


CLOCK = StepClock(StepTime(0.02, 200), loading=0.002, exchange=0.06, update=0.015)


def test_times_leave_out_the_warm_up() -> None:
    seconds = times([9, 8, 1, 2, 3, 4, 5], warm_up=2)
    assert (seconds.median, seconds.warm_up) == (3, (9, 8))
    assert_refused(lambda: times([1, 2], warm_up=1), "seconds=2 leaves fewer than two")
    assert_refused(lambda: times([1, 2], warm_up=-1), "warm_up")


def test_timing_waits_and_reads_the_clock_that_it_is_given() -> None:
    calls: list[str] = []
    ticks = iter(range(100))
    seconds = timed(
        lambda: calls.append("run"),
        warm_up=1,
        repeats=2,
        wait=lambda: calls.append("wait"),
        clock=lambda: float(next(ticks)),
    )
    assert calls == ["wait", "run", "wait"] * 3
    assert seconds == Times((1.0,), (1.0, 1.0))


def test_what_is_compared_takes_turns() -> None:
    order: list[str] = []
    runs = {name: lambda name=name: order.append(name) for name in "ab"}
    times_by_name = compared(runs, warm_up=1, repeats=2)
    assert order == ["a", "b"] * 3
    assert {name: len(seconds.seconds) for name, seconds in times_by_name.items()} == {
        "a": 2,
        "b": 2,
    }


@pytest.mark.parametrize("name", ["loading", "exchange", "update"])
def test_a_clock_refuses_what_is_no_time(name: str) -> None:
    for bad in (-1, float("nan"), "1", None):
        assert_refused(lambda bad=bad: replace(CLOCK, **{name: bad}), name)
    assert_refused(lambda: replace(CLOCK, slowest=0.5), "slowest=0.5 is below 1")
    assert_refused(lambda: replace(CLOCK, overlap=1), "overlap")
    assert_refused(lambda: replace(CLOCK, one_pass=0.1), "one_pass")


@given(st.integers(1, 64), st.integers(1, 64))
def test_the_formula_as_printed_holds_where_nothing_is_hidden(b: int, k: int) -> None:
    clock = replace(CLOCK, loading=0, overlap=False)
    one_pass = 0.02 + b / 200
    expected = k * b / (k * one_pass + 0.015 + 0.06)
    assert clock.throughput(b, k) == pytest.approx(expected)


@given(
    st.integers(1, 64),
    st.integers(1, 16),
    st.floats(0, 0.1),
    st.floats(0, 1),
    st.floats(1, 3),
    st.booleans(),
)
def test_parts_of_a_step_by_the_clock(b, k, loading, exchange, slowest, overlap):
    clock = StepClock(StepTime(0.02, 200), loading, exchange, 0.01, overlap, slowest)
    parts, step = clock.parts(b, k), clock.parts(b, k).total
    assert min(parts.parts().values()) >= 0
    assert step >= loading * k * b - 1e-12
    sent = clock.buckets(b, k)
    assert sum(end - start for start, end in sent) == pytest.approx(exchange)
    assert parts.passes + parts.others >= sent[-1][1] - 1e-9
    if overlap:  # no parcel travels before it is made, and the last when backward is over
        made = [k - BACKWARD * (1 - n / BUCKETS) for n in range(1, BUCKETS + 1)]
        one_pass = (0.02 + b / 200) * slowest
        for (start, _), ready in zip(sent, made, strict=True):
            assert start >= ready * one_pass - 1e-9
    if parts.data:
        assert step == pytest.approx(loading * k * b)
        assert clock.throughput(2 * b, k) <= clock.throughput(b, k) * (1 + 1e-9) or (
            clock.parts(2 * b, k).data == 0
        )


def test_waiting_by_hand() -> None:
    """A pass of 4 takes 40 ms, and two thirds of it are backward."""
    clock = StepClock(StepTime(0.02, 200), loading=0.05, exchange=0.06, update=0.01)
    parts = clock.parts(4, 2)
    assert parts.passes == pytest.approx(0.08)
    # the first of four parcels leaves after a quarter of backward, and then they queue
    assert parts.others == pytest.approx(0.06 - 3 / 4 * 2 / 3 * 0.04)
    assert parts.data == pytest.approx(0.05 * 8 - 0.08 - parts.others - 0.01)
    begin, _ = clock.buckets(4, 2)[0]
    assert begin == pytest.approx(0.08 - 3 / 4 * 2 / 3 * 0.04)
    hidden = replace(clock, exchange=0.004).parts(4, 2).others
    assert hidden == pytest.approx(0.001)  # the last parcel has nothing to hide behind
    slow = replace(clock, exchange=0, slowest=1.5).parts(4, 2)
    assert slow.others == pytest.approx(0.04)


def test_each_cause_is_told_by_its_experiment() -> None:
    def verdict(b: int, k: int = 1, **changes: Any) -> str:
        return replace(CLOCK, **changes).experiments(b, k).verdict

    assert verdict(8, loading=0.03) == "data"
    assert verdict(8, exchange=0.5) == "other GPUs"
    assert verdict(64, slowest=1.5) == "other GPUs"
    assert verdict(1, exchange=0) == "fixed costs"
    assert verdict(64, 8) == "computing"


# --- traces


def event(name: str, start: float, end: float, thread: int = 1) -> dict[str, Any]:
    times = {"ts": start * 1e6, "dur": (end - start) * 1e6}
    return {"ph": "X", "name": name, "tid": thread, **times}


EVENTS = [
    event("ProfilerStep#1", 0, 10),
    event("ProfilerStep#2", 10, 20),
    event("forward", 10, 12),
    event("backward", 12, 18),
    event("optimizer", 18, 20),
    event("aten::linear", 10, 12),
    event("aten::addmm", 10.5, 11.5),
    event("aten::copy_", 10, 10.2),
    event("aten::mm", 12, 16),
    event("aten::add_", 18, 19),
    event("gloo:all_reduce", 14, 18, thread=2),
    event("gloo:all_reduce", 5, 6, thread=2),
    {"ph": "M", "name": "process_name", "tid": 1},
]


def written(folder: Path, events: Any) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps(events), "utf-8")
    return path


def test_a_trace_is_read(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, {"traceEvents": EVENTS}))
    assert trace.seconds == pytest.approx(10)
    assert length(trace.work["products"]) == pytest.approx(5)
    assert length(trace.work["copies"]) == pytest.approx(0.2)
    assert length(trace.work["rest"]) == pytest.approx(1.8)
    assert length(trace.busy) == pytest.approx(7)
    assert trace.hidden == pytest.approx(0.5)  # of 14 to 18, the product ends at 16
    assert trace.phases["backward"] == [pytest.approx((2, 8))]
    first = read_trace(written(tmp_path, {"traceEvents": EVENTS}), step=0)
    assert length(first.exchange) == pytest.approx(1)
    assert first.hidden == 0


@pytest.mark.parametrize("events", [[], {}, {"traceEvents": 3}, "text"])
def test_what_is_no_trace_is_refused(tmp_path: Path, events: Any) -> None:
    with pytest.raises(ValueError, match="is no trace"):
        read_trace(written(tmp_path, events))
    with pytest.raises(ValueError, match="is no trace"):
        read_trace(tmp_path / "nothing.json")


def test_a_step_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the trace holds 2 steps"):
        read_trace(written(tmp_path, {"traceEvents": EVENTS}), step=2)
    assert_refused(lambda: recorded_trace("before"), "name='before' is unknown")


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9))).map(
    lambda pairs: union((a, a + d) for a, d in pairs)
)


@given(spans, spans)
def test_stretches_of_time_add_up(one: Any, other: Any) -> None:
    assert length(overlap(one, other)) + length(difference(one, other)) == length(one)
    assert overlap(one, other) == overlap(other, one)
    assert not overlap(difference(one, other), other)
    seconds = {t for a, b in one for t in range(a, b)}
    assert length(one) == len(seconds)


def test_the_recorded_traces_are_what_the_page_says() -> None:
    beside, after = recorded_trace("beside"), recorded_trace("after")
    assert beside.hidden == pytest.approx(2 / 3, abs=0.02)
    assert after.hidden == 0
    assert length(beside.exchange) > length(after.exchange)
    assert after.exchange[0][0] >= after.phases["backward"][-1][1]
    table = published.step_times().groupby("series")["seconds"]
    medians = {n: times(s.tolist(), 3).median for n, s in table}
    assert [round(1e3 * medians[n]) for n in (1, 2, 3)] == [50, 70, 46]
    assert medians[3] / medians[2] == pytest.approx(2 / 3, abs=0.02)  # a third less
    firsts = [s.iloc[0] / medians[n] for n, s in table]
    assert 1.9 < max(firsts) < 2.0


def test_the_recorded_steps_hold_together() -> None:
    best = recorded_peak()
    assert 5e10 < best < 5e11  # of one thread
    for width in WIDTHS:
        step = recorded_step(width)
        assert step.ideal * best == pytest.approx(
            count_flops(recorded_model(width), 4, "none").total
        )
        assert min(step.parts().values()) > 0
        assert step.products > step.ideal  # no product beats the best one
        assert step.total == pytest.approx(step.ratio * step.ideal)
    assert_refused(lambda: recorded_step(100), "hidden_size=100 was not recorded")


# --- bad values


@pytest.mark.parametrize("value", BAD_COUNTS)
def test_bad_counts_are_refused(value: Any) -> None:
    def memory(**values: Any) -> Any:
        good = {"micro_batch_size": 1, "recipe": "fp32", "recompute": "none"}
        return measure.measure_step_memory(SHAPE, **good | values)

    for name in ("micro_batch_size", "steps", "accumulation_steps"):
        assert_refused(memory, name, **{name: value})
    assert_refused(lambda: measure.measure_flops(SHAPE, value, "none"), "batch_size")
    assert_refused(lambda: measure.step_seconds(SHAPE, [1], repeats=value), "repeats")


@pytest.mark.parametrize("value", BAD_COUNTS)
def test_bad_counts_of_runs_are_refused(value: Any) -> None:
    assert_refused(lambda: timed(list, repeats=value), "repeats")
    assert_refused(lambda: CLOCK.parts(value), "micro_batch_size")
    assert_refused(lambda: CLOCK.parts(1, value), "accumulation")
