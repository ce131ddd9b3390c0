"""Chapter 11 without PyTorch: what is missing, the clock, traces, panel, exercises."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import (
    StepTime,
    Transformer,
    count_activations,
    count_flops,
    count_parameters,
    measure,
    step_timeline,
)
from llmtrain_helpers.__main__ import measure as main
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.drawings.measure import instruments, lanes, step_by_the_clock
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import PREDICTIONS, check
from llmtrain_helpers.figures import describe
from llmtrain_helpers.figures.measure import loader_shares, operators, throughputs
from llmtrain_helpers.measure.clock import StepClock, Times, compared, timed, times
from llmtrain_helpers.measure.trace import both, but, joined, length, read_trace, recorded_trace
from llmtrain_helpers.panels import PANELS
from llmtrain_helpers.panels.measure import Setting

from .bad_values import BAD_COUNTS, assert_refused
from .panel_code import value_of

SHAPE = Transformer.llama(1, 8, 2, 1, 8, 8, 4)

CALLS: dict[str, Callable[[Any], Any]] = {
    "parameters": lambda model: measure.measure_parameters(model),
    "flops": lambda model: measure.measure_flops(model, 1, "none"),
    "saved": lambda model: measure.saved_tensors(model, 1),
    "activations": lambda model: measure.measure_activations(model, 1),
    "memory": lambda model: measure.measure_step_memory(model, 1, "fp32", "none"),
    "seconds": lambda model: measure.step_seconds(model, [1]),
    "time": lambda model: measure.measure_step_time(model, [1, 2, 4]),
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


@pytest.mark.parametrize("value", BAD_COUNTS, ids=repr)
def test_bad_counts_are_refused(value: Any) -> None:
    def memory(**values: Any) -> Any:
        good = {"micro_batch_size": 1, "recipe": "fp32", "recompute": "none"}
        return measure.measure_step_memory(SHAPE, **good | values)

    for name in ("micro_batch_size", "steps", "accumulation_steps"):
        assert_refused(memory, name, **{name: value})
    assert_refused(lambda: measure.measure_flops(SHAPE, value, "none"), "batch_size")
    assert_refused(lambda: measure.step_seconds(SHAPE, [1], repeats=value), "repeats")


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


# --- figures, which need no PyTorch


def test_figures_of_times_have_words_without_numbers() -> None:
    steps = [measure.Operator("mm", p, 0.0, 1e-3, True) for p in measure.PHASES]
    told = describe(operators(measure.StepProfile(tuple(steps))))
    assert told.startswith("Figure: A training step on this machine")
    told += describe(throughputs([1, 2], {"here": [0.1, 0.1], "record": [0.2, 0.3]}))
    assert not re.search(r"\d", told)


@pytest.mark.parametrize(("quick", "slow"), [(0.02, 0.9), (0.4, 0.99), (-0.1, 0.6)])
def test_the_words_of_a_loader_are_the_same_on_every_machine(quick, slow) -> None:
    told = describe(loader_shares({"quick": quick, "slow": slow}, times([1.0] * 5)))
    assert "quick loader: most of the time the step computes" in told
    assert "slow loader: most of the time the step waits for data" in told
    assert not re.search(r"\d", told)


def test_a_profile_adds_up() -> None:
    profile = measure.StepProfile(
        (
            measure.Operator("mm", "forward", 0.0, 3e-3, True),
            measure.Operator("add", "backward", 3e-3, 1e-3, False),
        )
    )
    assert profile.seconds == pytest.approx(4e-3)
    assert profile.matmul_share == pytest.approx(0.75)
    assert profile.phase_seconds()["optimizer"] == 0


# --- a clock, real and simulated

CLOCK = StepClock(StepTime(0.02, 200), loading=0.002, exchange=0.06, update=0.015)


def test_times_leave_out_the_warm_up_and_know_their_spread() -> None:
    known = times([9, 8, 1, 2, 3, 4, 5], warm_up=2)
    assert (known.median, known.warm_up) == (3, (9, 8))
    assert known.spread == pytest.approx(2 / 3)
    assert_refused(lambda: times([1, 2], warm_up=1), "seconds=2 leaves fewer than two")
    assert_refused(lambda: times([1, 2], warm_up=-1), "warm_up")


def test_timing_waits_and_reads_the_clock_that_it_is_given() -> None:
    told: list[str] = []
    ticks = iter(range(100))
    found = timed(
        lambda: told.append("run"),
        warm_up=1,
        repeats=2,
        wait=lambda: told.append("wait"),
        clock=lambda: float(next(ticks)),
    )
    assert told == ["wait", "run", "wait"] * 3
    assert found == Times((1.0,), (1.0, 1.0))


def test_what_is_compared_takes_turns() -> None:
    order: list[str] = []
    runs = {name: lambda name=name: order.append(name) for name in "ab"}
    found = compared(runs, warm_up=1, repeats=2)
    assert order == ["a", "b"] * 3
    assert {name: len(known.seconds) for name, known in found.items()} == {"a": 2, "b": 2}


@pytest.mark.parametrize("value", BAD_COUNTS, ids=repr)
def test_bad_counts_of_runs_are_refused(value: Any) -> None:
    assert_refused(lambda: timed(list, repeats=value), "repeats")
    assert_refused(lambda: CLOCK.parts(value), "micro_batch_size")
    assert_refused(lambda: CLOCK.parts(1, value), "accumulation")


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
    told = k * b / (k * one_pass + 0.015 + 0.06)
    assert clock.throughput(b, k) == pytest.approx(told)


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
    ends = clock.exchange_begins(b, k) + exchange
    assert parts.passes + parts.others >= ends - 1e-9
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
    assert parts.others == pytest.approx(0.06 - 2 / 3 * 0.04)
    assert parts.data == pytest.approx(0.05 * 8 - 0.08 - parts.others - 0.01)
    assert clock.exchange_begins(4, 2) == pytest.approx(0.08 - 2 / 3 * 0.04)
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
    assert length(trace.gaps) == pytest.approx(3)
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
    lambda found: joined((a, a + d) for a, d in found)
)


@given(spans, spans)
def test_stretches_of_time_add_up(one: Any, other: Any) -> None:
    assert length(both(one, other)) + length(but(one, other)) == length(one)
    assert both(one, other) == both(other, one)
    assert not both(but(one, other), other)
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


# --- drawings and panel


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


def shown(**values: Any) -> str:
    panel = PANELS["measure"]
    return unescape(re.sub("<[^>]*>", "", panel.render(**{**panel.default, **values})))


def test_the_panel_says_what_the_page_says_of_its_tasks() -> None:
    presets = PANELS["measure"].presets

    def rate(preset: str, **changes: Any) -> float:
        values = {**presets[preset], **changes}
        step = values["micro_batch_size"], values["accumulation"]
        return Setting(**values).clock.throughput(*step)

    def verdict(preset: str, **changes: Any) -> str:
        values = {**presets[preset], **changes}
        step = values["micro_batch_size"], values["accumulation"]
        return Setting(**values).clock.experiments(*step).verdict

    for micro in (8, 16):
        assert f"{rate('A slow loader', micro_batch_size=micro):.1f}" == "50.0"
    assert verdict("A slow loader") == verdict("A slow loader", loading=10) == "data"
    assert verdict("A slow loader", loading=5) == "fixed costs"
    assert f"{rate('A slow link'):.1f}" == "34.8"
    assert f"{rate('A slow link', accumulation=8):.1f}" == "98.5"
    assert f"{rate('A slow link', micro_batch_size=64):.0f}" == "183"
    slow = rate("A slow neighbour")
    assert f"{rate('A slow neighbour', micro_batch_size=64) / slow:.2f}" == "1.08"
    assert f"{rate('A slow neighbour', accumulation=8) / slow:.2f}" == "1.03"
    said = [verdict(name) for name in presets]
    assert said == ["fixed costs", "data", "other GPUs", "other GPUs", "computing"]


def test_the_panel_speaks_first_and_gives_its_call() -> None:
    html = shown()
    assert html.startswith("50.0 sequences a second: it pays fixed costs")
    assert "no single change gains a tenth" in shown(**PANELS["measure"].presets["Busy"])
    assert f"{value_of(PANELS['measure'].render()):.1f} sequences a second" in html
    before = PANELS["measure"].presets["A slow link"]
    assert "(dashed: 34.8)" in PANELS["measure"].render(before=before)


def named(values: dict[str, Any]) -> str:
    """The cause behind "mostly for", or nothing where other GPUs are not it."""
    html = PANELS["measure"].render(**values)
    found = re.search(r"mostly for <b>(.*?)</b>", html)
    return found[1] if found else ""


def test_the_panel_never_takes_a_neighbour_for_the_link_or_the_link_for_one() -> None:
    panel, seen = PANELS["measure"], set()
    known = {
        "the link": panel.presets["A slow link"],
        "a slow neighbour": panel.presets["A slow neighbour"],
    }
    sizes = [panel.controls[n].stops for n in ("micro_batch_size", "accumulation")]
    for cause, preset in known.items():
        for b, k in product(*sizes):
            step = {**preset, "micro_batch_size": b, "accumulation": k}
            told = named(step)
            assert told in ("", cause), (b, k)
            seen.add((told, b, k))
    assert ("a slow neighbour", 8, 8) in seen
    assert ("a slow neighbour", 16, 1) in seen
    assert ("the link", 8, 1) in seen


@given(*map(st.sampled_from, ([1, 8, 64], [1, 8, 64], [1, 20, 200], [100, 120, 200])))
def test_without_what_the_panel_names_a_step_is_faster(b, k, exchange, slowest):
    step = {**PANELS["measure"].presets["A slow neighbour"], "slowest": slowest}
    step |= {"micro_batch_size": b, "accumulation": k, "exchange": exchange}
    told, clock = named(step), Setting(**step).clock
    gone = {"the link": {"exchange": 0.0}, "a slow neighbour": {"slowest": 1.0}}
    if told:
        rates = {cause: replace(clock, **change).throughput(b, k) for cause, change in gone.items()}
        assert rates[told] > clock.throughput(b, k)
        if slowest == 100:
            assert told == "the link"


def test_accumulation_tells_a_link_from_a_neighbour() -> None:
    def gains(preset: str, micro: int) -> tuple[str, str]:
        values = {**PANELS["measure"].presets[preset], "micro_batch_size": micro}
        clock = Setting(**values).clock
        now, twice = clock.throughput(micro), clock.throughput(micro, 2)
        return f"{clock.throughput(2 * micro) / now:.2f}", f"{twice / now:.2f}"

    assert gains("A slow neighbour", 8) == ("1.25", "1.05")
    assert gains("A slow neighbour", 32) == ("1.08", "1.02")
    assert float(gains("A slow link", 8)[1]) > 1.5


def test_what_is_hidden_to_the_last_digit_is_not_waited_for() -> None:
    values = PANELS["measure"].presets["A small micro-batch"]
    step = values["micro_batch_size"], values["accumulation"]
    assert Setting(**values).clock.parts(*step).others == 0
    for preset in PANELS["measure"].presets.values():
        assert "0.0000" not in PANELS["measure"].render(**preset)


def test_the_panel_redraws_at_once() -> None:
    panel, taken = PANELS["measure"], []
    for values in [*panel.presets.values()] * 4:
        start = perf_counter()
        panel.render(before=panel.default, **values)
        taken.append(perf_counter() - start)
    assert sorted(taken)[len(taken) // 2] < 0.005


# --- exercises


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


ONE = 2 * 1024 * 512 * 2048


def test_11_a_takes_every_right_way() -> None:
    for answer in (5 * ONE, "10,737,418,240", 10.737e9, 2 * ONE + 3 * ONE, "10.74B"):
        assert check("11-a", answer).ok, answer


@pytest.mark.parametrize(
    ("products", "said"),
    [
        (1, "one product"),
        (2, "forward pass only"),
        (3, "forward and backward together, are too few"),
        (4, "second matrix has two"),
        (6, "which of the four gradients does nobody want"),
        (2.5, "a multiply-add is 2 FLOPs"),
        (10, "counted twice?"),
        (5e-9, "not billions"),
        (7, "stand in the sum already"),
        (9, "too high"),
    ],
)
def test_11_a_names_the_slips(products: float, said: str) -> None:
    assert said in text_of("11-a", products * ONE)


def test_11_b_tells_why_of_each_choice() -> None:
    assert check("11-b", "the link").ok
    assert check("11-b", "The Link").ok
    assert "alone it makes 1.73 times" in check("11-b", "the link").text
    assert "make 1.46 times" in check("11-b", "the link").text
    assert "1.02 times" in text_of("11-b", "the loader")
    assert "with every pass" in text_of("11-b", "a neighbour")
    assert "wait longer" in text_of("11-b", "our GPU")
    assert pytest.approx(2.46) == 4 * 0.52 + (0.90 - 0.52)


def test_11_c_takes_every_right_way() -> None:
    for answer in (48 / 1.65 / 10, 2.91, "2.909", 8 * 0.6 / (8 * 0.15 + 0.45)):
        assert check("11-c", answer).ok, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (29.1, "over those of a single pass"),
        (8, "takes longer too"),
        (1.65 / 0.6, "how much longer a step takes"),
        (4, "still there, once a step"),
        (10 / 29.0909, "turn it"),
        (1.909, "asked is how many times"),
        (0.3636, "all its passes"),
        (48 / 1.55 / 12, "update is missing"),
        (48 / 1.3 / 24, "exchange is missing"),
        (48 / 1.55 / 10, "update is missing"),
        (48 / 2.35 / 10, "the update comes once"),
        (48 / 4.1 / 10, "after each pass"),
        (2.6, "too low"),
        (3.2, "too high"),
    ],
)
def test_11_c_names_the_slips(answer: float, said: str) -> None:
    assert said in text_of("11-c", answer)


MINE = {"model": "Llama-3.1-8B", "layers": 4, "micro": 1, "warm_up": 3, "repeats": 10}


def own(change: dict[str, Any]) -> dict[str, Any]:
    """A test of one's own, with the peak that the timeline predicts for it."""
    asked = MINE | change
    if "peak" not in asked and asked["model"] in published.names("architectures"):
        shape = published.architecture(asked["model"])
        shape = replace(shape, sequence_length=min(8192, shape.sequence_length))
        shape = replace(shape, num_layers=int(asked["layers"]))
        micro = asked["micro"] if isinstance(asked["micro"], int) else 1
        line = step_timeline(shape, micro, "bf16_fp32_grads", "none")
        asked["peak"] = line.peak.total / 1e9
    return {"peak": 1} | asked


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"layers": "8"},
        {"layers": 2, "micro": 2, "warm_up": 2, "repeats": 5},
        {"model": "gpt2", "layers": 12, "micro": 16},
        {"repeats": 1000},
        {"peak": "45.2"},
        {"peak": 43.5},  # a twentieth off
        {"peak": 18 * 1.923 + 9.84 + 8.41},  # with gradients, as in a plan
    ],
)
def test_11_d_takes_any_design_that_holds(change: dict[str, Any]) -> None:
    verdict = check("11-d", own(change))
    assert verdict.ok, verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layers": 1}, "take 2 at the least"),
        ({"layers": 33}, "at most the model's 32"),
        ({"layers": 16}, "a fifth should stay free"),
        ({"micro": 4}, "a fifth should stay free"),
        ({"warm_up": 1}, "makes Adam's state"),
        ({"warm_up": 0}, "makes Adam's state"),
        ({"repeats": 3}, "too few for a spread"),
        ({"repeats": 100_000}, "steps take"),
        ({"micro": "two"}, "is no number"),
        ({"model": "Llama-9"}, "Llama-9"),
        ({"model": "Llama-3.1-405B", "layers": 2}, "two layers of Llama-3.1-405B already"),
        ({"layers": 2, "model": "gpt2"}, "more fits, of layers or of sequences"),
        ({"peak": 18 * 1.923}, "the states alone"),
        ({"peak": 14 * 1.923}, "the states alone"),
        ({"peak": 14 * 1.923 + 9.84}, "two tensors of logits are missing"),
        ({"peak": 41}, "one of the two tensors of logits"),
        ({"peak": 45.2 / 1.024**3}, "looks like GiB"),
        ({"model": "DeepSeek-V3", "layers": 2}, "layers of several kinds"),
        ({"peak": 9.84}, "what a pass keeps"),
        ({"peak": 45.2e9}, "looks like bytes"),
        ({"peak": 70}, "70 GB is too much for these layers"),
        ({"peak": 20}, "20 GB is too little for these layers"),
    ],
)
def test_11_d_says_what_does_not_hold(change: dict[str, Any], said: str) -> None:
    assert said in text_of("11-d", own(change))


def test_11_d_says_that_a_plan_fits_where_only_its_peak_is_off() -> None:
    fits = "Your layers and micro fit; only the peak is off."
    assert fits in text_of("11-d", own({"peak": 20}))
    assert fits in text_of("11-d", own({"layers": 2, "peak": 9}))
    assert fits not in text_of("11-d", own({"layers": 16, "peak": 20}))


def test_11_d_waits_for_every_entry_and_says_what_it_predicts() -> None:
    assert check("11-d", MINE | {"layers": None, "peak": 40}).ok is None
    assert check("11-d", MINE | {"peak": None}).ok is None
    assert "leaves out layers" in text_of("11-d", {"model": "gpt2"})
    assert "is no dict" in text_of("11-d", 4)
    shape = replace(published.architecture("Llama-3.1-8B", 8192), num_layers=4)
    peak = step_timeline(shape, 1, "bf16_fp32_grads", "none").peak.total
    assert f"its peak is {peak / 1e9:.1f} GB of 80.0 GB" in check("11-d", own({})).text


def test_the_peak_of_the_solution_adds_up_as_it_is_told() -> None:
    shape = replace(published.architecture("Llama-3.1-8B", 8192), num_layers=4)
    P, kept = count_parameters(shape).total, count_activations(shape, 1).total
    told = [P, 14 * P, kept, 2 * 4 * 8192 * 128256]
    assert [f"{x / 1e9:.3g}" for x in told] == ["1.92", "26.9", "9.84", "8.41"]
    peak = step_timeline(shape, 1, "bf16_fp32_grads", "none").peak.total
    assert peak == sum(told[1:])
    eight, sixteen = (own({"layers": n}) for n in (8, 16))
    assert check("11-d", eight).ok
    assert not check("11-d", sixteen).ok


def test_the_prediction_names_the_belief() -> None:
    prediction = PREDICTIONS["11-guess"]
    assert prediction.truth() == "not quite twice"
    ratio = three(512)[2].total / three(256)[2].total
    assert f"It is {ratio:.2f} times" in prediction.reveal("twice")
    assert "share does double" in prediction.reveal("twice")
    assert "Weights do that" in prediction.reveal("four times")
    assert "and so it is" in prediction.reveal("not quite twice")
