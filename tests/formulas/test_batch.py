"""Batches, accumulation, steps of an epoch, and the time of a step."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from llmtrain_course.batch.formulas import batch_cost, batch_of_run, pipeline_seconds
from llmtrain_course.parallelism.formulas import idle_share, pipeline_schedule
from llmtrain_helpers import (
    StepTime,
    accumulation_steps,
    batch_tokens,
    data_parallel_size,
    epoch_seconds,
    fit_step_time,
    global_batch_size,
    largest_batch,
    published,
    steps_per_epoch,
)
from llmtrain_helpers.batch import critical_batch
from tests.bad_values import assert_refused

small = st.integers(1, 10**4)


# --- splits and batches


LAYOUTS = published.parallel_layouts().to_dict("records")


@pytest.mark.parametrize("row", LAYOUTS, ids=lambda row: row["name"])
def test_every_published_layout_multiplies_out(row) -> None:
    split = {f"{kind}_parallel": row[f"{kind}_parallel"] for kind in _SPLIT}
    assert data_parallel_size(row["num_gpus"], **split) == row["data_parallel"]


_SPLIT = ["tensor", "pipeline", "context"]


@given(small, small, small)
def test_accumulation_is_the_inverse_of_the_global_batch(b, k, d) -> None:
    B = global_batch_size(b, k, d)
    assert type(B) is int
    assert b * k * d == B
    assert accumulation_steps(B, b, d) == k


@given(small, small, small, small)
def test_gpus_are_the_product_of_the_split(t, p, c, d) -> None:
    assert data_parallel_size(t * p * c * d, t, p, c) == d


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match=r"num_gpus=100 is not divisible by .*=8"):
        data_parallel_size(100, tensor_parallel=8)
    with pytest.raises(ValueError, match="global_batch_size=10 is not divisible"):
        accumulation_steps(10, micro_batch_size=4, data_parallel=1)


def test_the_batches_of_published_runs_in_tokens() -> None:
    assert batch_tokens(15360, 4096) == 62_914_560
    rows = published.batch_sizes().dropna(subset=["global_batch_size", "sequence_length"])
    for row in rows.to_dict("records"):
        tokens = batch_tokens(row["global_batch_size"], row["sequence_length"])
        assert tokens == pytest.approx(row["batch_tokens_end"], rel=0.001)
    final = published.batch_sizes()["batch_tokens_end"]
    assert (final.min(), final.max()) == (256_000, 67_000_000)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_steps_are_rounded_up_or_down(N, B) -> None:
    up = steps_per_epoch(N, B)
    assert (up - 1) * B < N <= up * B
    if B <= N:
        assert up - steps_per_epoch(N, B, drop_last=True) == (N % B > 0)
    else:
        with pytest.raises(ValueError, match="leaves no full batch"):
            steps_per_epoch(N, B, drop_last=True)


def test_the_example_of_a_thousand_samples() -> None:
    assert steps_per_epoch(1000, 10) == 100
    assert steps_per_epoch(1000, global_batch_size(5, 2, 1)) * 2 == 200
    assert steps_per_epoch(1000, global_batch_size(10, 2, 1)) == 50
    assert epoch_seconds(1003, 10, 0.5, epochs=3, drop_last=True) == 150
    assert epoch_seconds(1003, 10, 0.5, epochs=3) == 151.5
    assert epoch_seconds(1003, 10, 0.5) == 50.5


@given(small, small, small, small, st.integers(1, 10**13))
def test_the_updates_of_a_run_take_in_all_its_tokens(b, k, d, s, T) -> None:
    batch = batch_of_run(T, 8 * d, b, k, s, tensor_parallel=4, pipeline_parallel=2)
    assert batch.replicas == d
    assert batch.tokens == batch.sequences * s == b * k * d * s
    assert (batch.updates - 1) * batch.tokens < T <= batch.updates * batch.tokens
    assert batch.passes == batch.updates * k


def test_batches_of_runs_on_several_gpus_at_once() -> None:
    batch = batch_of_run(10**9, np.array([8, 16]), 2, 4, 1024)
    assert batch.sequences.tolist() == [64, 128]
    assert batch.passes.tolist() == [4 * 15259, 4 * 7630]


def test_steps_of_arrays_are_those_of_each() -> None:
    samples, batches = np.array([1000, 1003, 1010]), np.array([10])
    assert steps_per_epoch(samples, batches).tolist() == [100, 101, 101]
    assert steps_per_epoch(samples, 10, drop_last=True).tolist() == [100, 100, 101]
    assert steps_per_epoch(10, np.array([3, 10, 11])).tolist() == [4, 1, 1]
    with pytest.raises(ValueError, match="num_samples=10 leaves no full batch"):
        steps_per_epoch(10, np.array([3, 10, 11]), drop_last=True)
    assert steps_per_epoch(10, np.array([3, 10]), drop_last=True).tolist() == [3, 1]
    times = epoch_seconds(samples, 10, np.array([[0.5], [1]]), epochs=2)
    assert times.tolist() == [[100, 101, 101], [200, 202, 202]]


def test_drop_last_is_a_yes_or_no() -> None:
    wrong = {"num_samples": 9, "global_batch_size": 2, "drop_last": 1}
    assert_refused(steps_per_epoch, "drop_last", **wrong)


# --- step times


@given(st.floats(1e-4, 10), st.floats(0.1, 1e5))
def test_the_fit_recovers_overhead_and_rate(overhead, half) -> None:
    sizes = np.unique(np.geomspace(max(half / 50, 1), max(50 * half, 20), 9).round())
    true = StepTime(overhead, half / overhead)
    noise = 1 + 0.002 * np.cos(np.arange(len(sizes)))
    fitted = fit_step_time(sizes, true.seconds(sizes) * noise)
    if half > 2:
        assert fitted.overhead == pytest.approx(true.overhead, rel=0.01)
        assert fitted.rate == pytest.approx(true.rate, rel=0.01)


@pytest.mark.parametrize(
    ("column", "least", "most"), [("seconds_min", 0.94, 1.06), ("seconds_median", 0.91, 1.17)]
)
@pytest.mark.parametrize(("hidden", "last"), [(32, 1.04), (64, 1.06), (128, 1.05)])
def test_the_measured_curves_are_taken(
    hidden: int, last: float, column: str, least: float, most: float
) -> None:
    rows = published.measured_passes().query(f"hidden_size == {hidden}")
    step = fit_step_time(rows["micro_batch_size"], rows[column])
    assert step.overhead > 0
    assert 0.2 < step.half_rate_batch < 40
    longer = (rows[column] / step.seconds(rows["micro_batch_size"])).tolist()
    assert all(least < ratio < most for ratio in longer)
    assert column != "seconds_min" or round(longer[-1], 2) == last


@pytest.mark.parametrize(
    ("sizes", "seconds", "message"),
    [
        ([1, 2], [1, 2], "fewer than three"),
        ([4, 4, 4, 8], [1, 1, 1, 2], "fewer than three"),
        ([1, 2, 4], [1, 2], "is not of the shape"),
        ([1, 2, 4, 8], [1, 2, 4.4, 9], "overhead=.*didn't come out positive"),
        ([1, 2, 4, 8], [4, 3, 2, 1], "seconds per sample=.*didn't come out positive"),
        ([1, 2, 4, 8], [1.0, 1.001, 1.003, 1.007], "no saturation is visible"),
        ([1, 2, 4, 0], [1, 2, 3, 4], "batch_sizes=0.0 is not positive"),
        ([1, 2, 4, 8], [1, 2, 3, np.nan], "seconds=nan"),
        (8, 0.5, r"batch_sizes=\[8.0\] are fewer than three"),
        ([1, 2, 4], 0.5, r"seconds=\(1,\) is not of the shape of batch_sizes, \(3,\)"),
        ([[1, 2], [4, 8]], [[1, 2], [3, 4]], r"batch_sizes=\(2, 2\) is not the shape"),
        ([], [], "batch_sizes=\\[\\] are fewer than three"),
        ([1, 2, 2.5], [1, 2, 3], "batch_sizes=2.5 is not a whole number"),
        (["1", "2", "4"], [1, 2, 3], "batch_sizes is an array of <U1, not"),
        ([1, 2, 4], [1, 2, None], "seconds is an array of object, not"),
        ([[1], [1, 2]], [1, 2], "batch_sizes=.* isn't an array of numbers"),
        (None, [1, 2], "batch_sizes=None is not a number"),
    ],
)
def test_data_that_support_no_fit_are_refused(sizes, seconds, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_step_time(sizes, seconds)


def test_the_fit_takes_lists_arrays_and_columns_alike() -> None:
    sizes, seconds = [1, 2, 4, 8, 16], [0.11, 0.12, 0.14, 0.18, 0.26]
    fits = [
        fit_step_time(kind(sizes), kind(seconds)) for kind in (list, tuple, np.array, pd.Series)
    ]
    assert len(set(fits)) == 1
    assert fits[0].overhead == pytest.approx(0.1)
    assert fits[0].rate == pytest.approx(100)


def test_a_fit_may_end_exactly_at_the_half_rate_batch() -> None:
    sizes = np.array([2, 4, 8])
    assert fit_step_time(sizes, 0.5 + sizes / 14).half_rate_batch < 8
    with pytest.raises(ValueError, match="half-rate batch, 9, so no saturation"):
        fit_step_time(sizes, 0.5 + sizes / 17)


def test_doubling_at_the_half_rate_batch_gains_a_third() -> None:
    step = StepTime(0.1, 160)
    assert step.half_rate_batch == 16
    assert step.throughput(16) == 80
    assert step.throughput(32) / step.throughput(16) == pytest.approx(4 / 3)
    assert step.seconds(np.array([16, 32])).tolist() == pytest.approx([0.2, 0.3])


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_the_largest_batch_by_doubling(most, limit) -> None:
    tried = []

    def fits(batch: int) -> bool:
        tried.append(batch)
        return batch <= most

    assert largest_batch(fits, limit) == min(most, limit)
    assert max(tried) <= limit
    assert len(tried) <= 2 * most.bit_length() + 2


def test_without_a_limit_the_largest_batch_is_sought_up_to_2_to_the_20() -> None:
    tried = []
    assert largest_batch(lambda batch: not tried.append(batch)) == 2**20
    assert tried == [2**k for k in range(21)]
    assert largest_batch(lambda batch: batch < 2**20) == 2**20 - 1


def test_the_largest_batch_says_when_nothing_fits() -> None:
    with pytest.raises(ValueError, match="not even a batch of 1 fits"):
        largest_batch(lambda batch: False)
    with pytest.raises(ValueError, match="fits=3 isn't a function"):
        largest_batch(3)
    assert_refused(largest_batch, "limit", fits=lambda batch: True, limit=0)


# --- bad values


def test_a_step_is_its_passes_and_the_waiting() -> None:
    whole = pipeline_seconds(0.36, micro_batches=8, pipeline_parallel=4)
    useful = pipeline_seconds(0.36, micro_batches=8, pipeline_parallel=1)
    assert useful == pytest.approx(8 * 0.36)
    assert whole == pytest.approx(useful / (1 - idle_share(4, 8)))


def test_the_formulas_of_a_pipeline_take_arrays_and_refuse_slips() -> None:
    assert idle_share(np.array([1, 2]), 4) == pytest.approx([0, 1 / 5])
    assert pipeline_seconds(1.0, np.array([1, 7]), 2) == pytest.approx([2, 8])
    for bad in (0, -1, 1.5):
        with pytest.raises(ValueError, match="stages="):
            idle_share(bad, 4)
        with pytest.raises(ValueError, match="micro_batches="):
            pipeline_seconds(1, bad, 4)
    with pytest.raises(ValueError, match="seconds_per_pass="):
        pipeline_seconds(0, 4, 4)


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
@pytest.mark.parametrize("passes", [1, 3, 4, 8, 63])
def test_a_step_a_schedule_and_the_formula_wait_alike(stages: int, passes: int) -> None:
    schedule = pipeline_schedule(stages, passes)
    shares = schedule.shares()
    assert idle_share(stages, passes) == pytest.approx(schedule.idle, abs=1e-9)
    assert shares.get("idle", 0) == pytest.approx(schedule.idle, abs=1e-9)
    assert sum(shares.values()) == pytest.approx(1)
    assert schedule.in_flight(0) == min(passes, stages)


@pytest.mark.parametrize("times", [1 / 16, 0.5, 1, 4, 64])
def test_updates_and_samples_trade_off(times: float) -> None:
    """arXiv 1812.06162 equation 2.11; a batch is samples over updates."""
    cost = batch_cost(times * 3e6, critical=3e6)
    assert (cost.updates - 1) * (cost.samples - 1) == pytest.approx(1)
    assert cost.samples / cost.updates == pytest.approx(times)


def test_the_critical_batch_is_that_of_the_table() -> None:
    [kaplan] = [row for row in published.rows("critical_batch") if row["name"] == "Kaplan 2020"]
    pairs = re.findall(r"L=([\d.]+) -> ([\d.]+)M", kaplan["example"])
    assert len(pairs) == 4
    for loss, millions in pairs:
        assert critical_batch(float(loss)) == pytest.approx(1e6 * float(millions), rel=0.005)
