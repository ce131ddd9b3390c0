"""Days, GPU-hours, cost and energy, against published runs."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_course.duration.formulas import seconds_of_hours
from llmtrain_helpers import (
    Interval,
    achieved_flops_per_gpu,
    cost,
    energy,
    gpt_flops,
    gpt_parameters,
    gpu_hours,
    iterations,
    over_utilizations,
    published,
    seconds_from_iterations,
    training_interval,
    training_seconds,
    units,
)
from llmtrain_helpers.duration import PASSES, flops_per_parameter, whole_run_share
from tests.formulas.cases import shape_of

RUN = {"tokens": 300e9, "parameters": 175e9, "num_gpus": 1024, "flops_per_gpu": 140e12}

rates = st.floats(1e9, 1e18)
sizes = st.integers(1, 10**15)


@given(sizes, sizes, st.integers(1, 10**6), rates)
def test_eight_with_recomputation_six_without(T, P, n, X) -> None:
    full, none, selective = (training_seconds(T, P, n, X, r) for r in ("full", "none", "selective"))
    assert full == pytest.approx(8 * T * P / (n * X))
    assert none == selective == pytest.approx(6 * T * P / (n * X))


@pytest.mark.parametrize("name", RUN)
def test_broadcasting_equals_a_loop(name: str) -> None:
    values = RUN[name] * np.array([1, 2, 8])
    swept = training_seconds(**(RUN | {name: values}), recompute="full")
    looped = [
        training_seconds(**(RUN | {name: float(value)}), recompute="full") for value in values
    ]
    assert swept.tolist() == pytest.approx(looped, rel=1e-14)


@given(st.integers(1, 10**15), st.integers(1, 10**5), st.integers(1, 10**5))
def test_iterations_are_not_rounded(T, B, s) -> None:
    if B * s > T:
        with pytest.raises(ValueError, match="one batch"):
            iterations(T, B, s)
    else:
        assert iterations(T, B, s) * B * s == pytest.approx(T)
        t = seconds_from_iterations(T, B, s, 2.5)
        assert t == pytest.approx(2.5 * iterations(T, B, s))


@given(rates, st.integers(1, 10**6), st.floats(1e-3, 1e3))
def test_hours_cost_and_energy(t, n, price) -> None:
    assert gpu_hours(t, n) == pytest.approx(t * n / 3600)
    assert cost(t, n, price) == pytest.approx(t * n / 3600 * price)
    assert energy(t, n, price) == pytest.approx(t * n * price)


def test_the_interval_is_the_formula_at_three_utilisations() -> None:
    span = training_interval(300e9, 175e9, 1024, 312e12, utilizations=(0.2, 0.3, 0.6))
    for t, u in zip((span.least, span.likely, span.greatest), (0.6, 0.3, 0.2), strict=True):
        exact = training_seconds(300e9, 175e9, 1024, u * 312e12, "none")
        assert t == pytest.approx(exact, rel=1e-12)


def test_a_rate_in_tera_is_recognised() -> None:
    with pytest.raises(ValueError, match=r"TFLOP/s\? Write 140e12"):
        training_seconds(300e9, 175e9, 1024, 140, "full")


def test_the_convention_must_be_said() -> None:
    with pytest.raises(TypeError, match="recompute"):
        training_seconds(**RUN)


def test_tokens_below_one_batch_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one batch, .*=524288 is more than tokens=500000"):
        iterations(500_000, 512, 1024)
    with pytest.raises(ValueError, match="one batch"):
        iterations(np.array([1e9, 1e3]), 512, 1024)


@pytest.mark.parametrize("bad", [(0.5, 0.3, 0.6), (0, 0.3, 0.5), (0.2, 0.3, 35), (1, 2), 0.5])
def test_bad_utilisations_are_refused(bad) -> None:
    with pytest.raises(ValueError, match="utilizations"):
        training_interval(300e9, 175e9, 1024, 312e12, utilizations=bad)


# --- intervals


def test_three_equal_utilisations_are_an_exact_time() -> None:
    assert over_utilizations(120.0, (0.4, 0.4, 0.4)) == Interval(300, 300, 300)
    for wrong in ((0.5, 0.4, 0.6), (0.3, 0.5, 0.4)):
        with pytest.raises(ValueError, match="is not ascending"):
            over_utilizations(120.0, wrong)


def test_a_product_past_all_measure_is_named() -> None:
    with pytest.raises(ValueError, match=r"tokens·parameters/\(num_gpus·peak_flops\)="):
        training_interval(1e40, 1e40, 1, 312e12)
    assert over_utilizations(1e40, (0.1, 0.2, 0.5)).greatest == pytest.approx(1e41)
    with pytest.raises(ValueError, match="greatest=inf is not a finite number below 1"):
        Interval(1, 2, 1e300).times(1e40)


# --- published days


DAYS = published.megatron_training_days().to_dict("records")


every_day = pytest.mark.parametrize("row", DAYS, ids=lambda row: row["name"])


def by_8tp(row, parameters) -> float:
    run = (row["num_gpus"], row["flops_per_gpu"])
    return training_seconds(row["tokens"], parameters, *run, "full") / units.DAY


def by_the_full_count(row) -> float:
    F = gpt_flops(*shape_of(row), recompute="full")
    steps = iterations(row["tokens"], row["global_batch_size"], row["sequence_length"])
    return steps * F / (row["num_gpus"] * row["flops_per_gpu"]) / units.DAY


@every_day
def test_each_row_by_8tp(row) -> None:
    assert by_8tp(row, row["parameters"]) == pytest.approx(row["days"], rel=0.031)


@every_day
def test_each_row_by_the_full_count_of_flops(row) -> None:
    if row["name"] == "GPT-3 175B example":  # the paper's 34 is 8TP
        assert round(by_the_full_count(row), 1) == 34.7
    else:
        assert by_the_full_count(row) == pytest.approx(row["days"], rel=0.013)


@every_day
def test_what_the_full_count_is_off_is_rounding(row) -> None:
    """Whole days and whole TFLOP/s: half of each, to either side."""
    if not row["name"].endswith("example"):
        off = abs(by_the_full_count(row) / row["days"] - 1)
        assert off <= 1.1 * (0.5 / row["days"] + 0.5e12 / row["flops_per_gpu"])


def test_34_and_84_days() -> None:
    gpt3, trillion = DAYS[-2:]
    assert round(by_8tp(gpt3, 175e9), 1) == 33.9
    exact = gpt_parameters(*shape_of(trillion)[:4])
    assert round(by_8tp(trillion, exact), 1) == 83.9


def test_the_worked_case_both_ways() -> None:
    shape = (40, 6144, 50257, 1024)
    X = achieved_flops_per_gpu(gpt_flops(*shape, 512, "full"), 32.09, 16)
    days = training_seconds(300e9, gpt_parameters(*shape), 16, X, "full") / units.DAY
    assert round(days, 1) == 207.8
    exactly = seconds_from_iterations(300e9, 512, 1024, 32.09) / units.DAY
    assert round(exactly, 1) == 212.5


def test_the_copied_version_is_reproduced_slips_and_all() -> None:
    shape = (40, 6144, 50257, 1048)
    P, X = gpt_parameters(*shape), gpt_flops(*shape, 512, "full") / 32.09 / 16 / 1e12
    assert P == 18_437_806_080
    assert round(8 * 300 * 10e09 * P / (16 * X * 10e12) / units.DAY) == 203


@pytest.mark.parametrize("row", published.small_runs().to_dict("records"), ids=str)
def test_small_runs_by_iterations(row) -> None:
    s = row["sequence_length"]
    B = row["batch_tokens"] // s
    t = seconds_from_iterations(row["tokens"], B, s, row["seconds_per_iteration"])
    assert t == pytest.approx(row["seconds"], rel=0.01)


# --- bad values


def test_the_passes_add_up_to_six_and_eight() -> None:
    assert flops_per_parameter("full") == sum(PASSES.values()) == 8
    assert flops_per_parameter("none") == flops_per_parameter("selective") == 6
    assert training_seconds(1e9, 1e6, 1, 1e12, "full") == 8 * 1e9 * 1e6 / 1e12
    with pytest.raises(ValueError, match="recompute"):
        flops_per_parameter("some")


@pytest.mark.parametrize("num_gpus", [1, 8, 2048])
def test_gpu_hours_and_their_seconds_undo_each_other(num_gpus: int) -> None:
    assert gpu_hours(seconds_of_hours(1_720_320, num_gpus), num_gpus) == pytest.approx(1_720_320)


def test_the_share_over_a_whole_run_is_that_of_its_rate() -> None:
    hours = gpu_hours(training_seconds(2e12, 69e9, 64, 0.43 * 312e12, "none"), 64)
    assert whole_run_share(2e12, 69e9, hours, 312e12) == pytest.approx(0.43)
