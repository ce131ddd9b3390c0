"""Chapter 04: batches against the published layouts, the fit, panel, exercises."""

import re
from collections import Counter
from html import unescape
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import (
    StepTime,
    accumulation_steps,
    all_reduce_bytes,
    all_reduce_seconds,
    batch_tokens,
    data_parallel_size,
    epoch_seconds,
    fit_step_time,
    global_batch_size,
    largest_batch,
    steps_per_epoch,
    units,
)
from llmtrain_helpers.checks import show
from llmtrain_helpers.drawings.batch import (
    Layout,
    Step,
    _ink,
    _shade,
    gpu_grid,
    pass_times,
    step_in_time,
)
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import PREDICTIONS, check
from llmtrain_helpers.exercises.batch import batches_of_size, idle
from llmtrain_helpers.figures import describe
from llmtrain_helpers.figures.batch import published_batches, throughput
from llmtrain_helpers.panels import PANELS, batch_panel
from llmtrain_helpers.panels.batch import Setting, batch_of

from .bad_values import BAD_COUNTS, BAD_QUANTITIES, assert_refused

small = st.integers(1, 10**4)


# --- splits and batches

LAYOUTS = published.parallel_layouts().to_dict("records")


@pytest.mark.parametrize("row", LAYOUTS, ids=lambda row: row["name"])
def test_every_published_layout_multiplies_out(row) -> None:
    split = {f"{kind}_parallel": row[f"{kind}_parallel"] for kind in _SPLIT}
    assert data_parallel_size(row["num_gpus"], **split) == row["data_parallel"]


_SPLIT = ["tensor", "pipeline", "context"]


def test_of_35_layouts_21_print_what_the_product_is_held_against() -> None:
    printed = [row["name"] for row in LAYOUTS if row["data_parallel_printed"]]
    assert (len(printed), len(LAYOUTS)) == (21, 35)
    assert not [name for name in printed if "Table1" in name]  # Table 1 has no DP
    assert "BLOOM-176B" in printed


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


@pytest.mark.parametrize(
    ("call", "good"),
    [
        (data_parallel_size, {"num_gpus": 8, "tensor_parallel": 2}),
        (data_parallel_size, {"num_gpus": 8, "pipeline_parallel": 2}),
        (data_parallel_size, {"num_gpus": 8, "context_parallel": 2}),
        (
            global_batch_size,
            {"micro_batch_size": 1, "gradient_accumulation_steps": 2, "data_parallel": 3},
        ),
        (accumulation_steps, {"global_batch_size": 8, "micro_batch_size": 2, "data_parallel": 2}),
        (batch_tokens, {"batch_size": 2, "sequence_length": 3}),
        (steps_per_epoch, {"num_samples": 10, "global_batch_size": 3}),
    ],
)
@pytest.mark.parametrize("bad", BAD_COUNTS, ids=show)
def test_bad_counts_are_refused(call, good, bad) -> None:
    for name in good:
        assert_refused(call, name, **(good | {name: bad}))


@pytest.mark.parametrize("bad", BAD_QUANTITIES, ids=show)
def test_bad_quantities_are_refused(bad) -> None:
    epoch = {"num_samples": 10, "global_batch_size": 2, "seconds_per_step": bad}
    assert_refused(epoch_seconds, "seconds_per_step", **epoch)
    assert_refused(StepTime, "overhead", overhead=bad, rate=1.0)
    assert_refused(StepTime, "rate", overhead=1.0, rate=bad)
    assert_refused(all_reduce_bytes, "num_bytes", num_bytes=bad, data_parallel=8)
    link = {"num_bytes": 1e9, "data_parallel": 8, "bandwidth": bad}
    assert_refused(all_reduce_seconds, "bandwidth", **link)


def test_drop_last_is_a_yes_or_no() -> None:
    wrong = {"num_samples": 9, "global_batch_size": 2, "drop_last": 1}
    assert_refused(steps_per_epoch, "drop_last", **wrong)


# --- step times


SIZES = 2 ** np.arange(0, 9)


@given(st.floats(1e-4, 10), st.floats(0.1, 1e5))
def test_the_fit_recovers_overhead_and_rate(overhead, half) -> None:
    sizes = np.unique(np.geomspace(max(half / 50, 1), max(50 * half, 20), 9).round())
    true = StepTime(overhead, half / overhead)
    noise = 1 + 0.002 * np.cos(np.arange(len(sizes)))
    fitted = fit_step_time(sizes, true.seconds(sizes) * noise)
    if half > 2:
        assert fitted.overhead == pytest.approx(true.overhead, rel=0.01)
        assert fitted.rate == pytest.approx(true.rate, rel=0.01)


@pytest.mark.parametrize("column", ["seconds_min", "seconds_median"])
@pytest.mark.parametrize("hidden", [32, 64, 128])
def test_the_measured_curves_are_taken(hidden: int, column: str) -> None:
    rows = published.measured_passes().query(f"hidden_size == {hidden}")
    step = fit_step_time(rows["micro_batch_size"], rows[column])
    assert step.overhead > 0
    assert 0.2 < step.half_rate_batch < 40
    ratio = step.seconds(rows["micro_batch_size"]) / rows[column]
    assert ratio.between(0.85, 1.1).all()


@pytest.mark.parametrize(
    ("sizes", "seconds", "said"),
    [
        ([1, 2], [1, 2], "fewer than three"),
        ([4, 4, 4, 8], [1, 1, 1, 2], "fewer than three"),
        ([1, 2, 4], [1, 2], "is not of the shape"),
        ([1, 2, 4, 8], [1, 2, 4.4, 9], "overhead=.*not positive"),
        ([1, 2, 4, 8], [4, 3, 2, 1], "seconds for each sample=.*not positive"),
        ([1, 2, 4, 8], [1.0, 1.001, 1.003, 1.007], "no saturation is seen"),
        ([1, 2, 4, 0], [1, 2, 3, 4], "batch_sizes=0.0 is not positive"),
        ([1, 2, 4, 8], [1, 2, 3, np.nan], "seconds=nan"),
        (8, 0.5, r"batch_sizes=\[8.0\] are fewer than three"),
        ([1, 2, 4], 0.5, r"seconds=\(1,\) is not of the shape of batch_sizes, \(3,\)"),
        ([[1, 2], [4, 8]], [[1, 2], [3, 4]], r"batch_sizes=\(2, 2\) is not the shape"),
        ([], [], "batch_sizes=\\[\\] are fewer than three"),
        ([1, 2, 2.5], [1, 2, 3], "batch_sizes=2.5 is not a whole number"),
        (["1", "2", "4"], [1, 2, 3], "batch_sizes is an array of <U1, not"),
        ([1, 2, 4], [1, 2, None], "seconds is an array of object, not"),
        ([[1], [1, 2]], [1, 2], "batch_sizes=.* is no array of numbers"),
        (None, [1, 2], "batch_sizes=None is not a number"),
    ],
)
def test_data_that_support_no_fit_are_refused(sizes, seconds, said: str) -> None:
    with pytest.raises(ValueError, match=said):
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
    with pytest.raises(ValueError, match="half-rate batch, 9: no saturation"):
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
    with pytest.raises(ValueError, match="fits=3 is no function"):
        largest_batch(3)
    assert_refused(largest_batch, "limit", fits=lambda batch: True, limit=0)


def test_a_ring_sends_nearly_twice_the_buffer() -> None:
    assert all_reduce_bytes(16e9, 1) == 0
    assert all_reduce_bytes(16e9, 2) == 16e9
    assert all_reduce_bytes(16e9, np.array([1024]))[0] == pytest.approx(32e9, rel=0.001)
    assert all_reduce_seconds(16e9, 8, 28e9) == 1


def test_over_whole_nodes_the_ring_runs_at_the_nodes_egress() -> None:
    h100 = published.links().set_index("name").loc["H100 SXM"]
    card, cards = h100["network_bandwidth"], h100["gpus_per_node"]
    nodes = all_reduce_seconds(16e9, 128, cards * card)
    assert nodes == pytest.approx(0.079375)
    assert all_reduce_seconds(16e9, 128, card) == pytest.approx(8 * nodes)
    shared = all_reduce_seconds(16e9 / cards, 128, card)  # tensor parallelism 8
    assert shared == pytest.approx(nodes)


def test_the_worked_trade_of_the_critical_batch() -> None:
    """(S/S_min − 1)(E/E_min − 1) = 1 (arXiv 1812.06162 equation 2.11), B = E/S."""
    for times, steps, samples in ((1, 2, 2), (4, 1.25, 5)):
        assert (steps - 1) * (samples - 1) == 1
        assert samples / steps == times


@pytest.mark.parametrize("hidden", [32, 64, 128])
def test_the_fit_is_within_six_per_cent(hidden: int) -> None:
    rows = published.measured_passes().query(f"hidden_size == {hidden}")
    step = fit_step_time(rows["micro_batch_size"], rows["seconds_min"])
    longer = (rows["seconds_min"] / step.seconds(rows["micro_batch_size"])).tolist()
    assert all(0.94 < ratio < 1.06 for ratio in longer)
    assert round(longer[-1], 2) == {32: 1.04, 64: 1.06, 128: 1.05}[hidden]


# --- figures, panel, exercises


def test_the_figures_show_the_data() -> None:
    table = published.batch_sizes().dropna(
        subset=["batch_tokens_start", "batch_tokens_end", "parameters"]
    )
    rows = table.to_dict("records")
    told = describe(published_batches(rows, "parameters"))
    assert f"greatest 67,000,000; {len(rows)} points" in told
    rows = published.measured_passes().query("hidden_size == 32")
    step = fit_step_time(rows["micro_batch_size"], rows["seconds_min"])
    assert "measured: " in describe(throughput(rows["micro_batch_size"], rows["seconds_min"], step))


@pytest.mark.parametrize(
    ("control", "value", "said"),
    [
        ("num_gpus", 32, "131 thousand tokens"),
        ("num_gpus", 100, "100 GPUs do not make a whole number of replicas: each"),
        ("num_gpus", 0, "GPUs: 0 lies outside"),
        ("tensor_parallel", 8, "from one replica"),
        ("tensor_parallel", 2, "from 4 replicas"),
        ("pipeline_parallel", 1, "from 4 replicas"),
        ("context_parallel", 2, "from one replica"),
        ("accumulation", "8", "(dashed: 65.5 thousand): 32 sequences"),
        ("micro_batch_size", "1", "32.8 thousand tokens"),
        ("sequence_length", "8k", "128 thousand tokens"),
        ("tokens", 0, "Tokens: 0 lies outside"),
        ("tokens", "1M", ">16<"),
    ],
)
def test_the_panel_follows_each_control(control: str, value, said: str) -> None:
    panel = batch_panel()
    assert "<b>65.5 thousand tokens</b> a step: 16 sequences" in panel.output.value
    panel.controls[control].value = value
    assert said in panel.status.value + panel.output.value


@pytest.mark.parametrize("name", PANELS["batch"].presets)
def test_the_panels_numbers_agree_with_each_other(name: str) -> None:
    values = PANELS["batch"].presets[name]
    if name == "A split that does not divide":
        answer = PANELS["batch"].answer(values)
        assert [label for label, _ in answer.offers] == ["GPUs: 96", "GPUs: 104"]
        return
    batch = batch_of(Setting(**values))
    assert batch.passes == batch.updates * values["accumulation"]
    assert (batch.updates - 1) * batch.tokens < values["tokens"]
    assert values["tokens"] <= batch.updates * batch.tokens
    shown = PANELS["batch"].render(**values)
    for number in (batch.tokens, batch.updates, batch.passes, batch.replicas):
        assert f">{number:,}<" in shown


def test_the_panel_offers_gpu_counts_that_do() -> None:
    panel = batch_panel()
    panel.set(**panel.presets["A split that does not divide"])
    panel.offers.children[1].click()
    assert "from 13 replicas" in panel.output.value
    assert panel.status.value == ""


def test_the_panel_is_quick() -> None:
    panel = PANELS["batch"]
    largest = panel.presets["Llama 3.1 405B, late"]
    start = perf_counter()
    for _ in range(20):
        panel.render(before=panel.default, **largest)
    assert (perf_counter() - start) / 20 < 0.05


# --- drawings


def test_each_gpu_has_its_replica_and_its_stage() -> None:
    told = re.findall(r">([A-Z]+\d+)</text>", gpu_grid(16, 4, 2).body)
    assert told[:16] == ["A1"] * 4 + ["A2"] * 4 + ["B1"] * 4 + ["B2"] * 4
    titles = re.findall(r"<title>GPU", gpu_grid(16, 4, 2).body)
    assert len(titles) == 16


@given(st.integers(1, 16), st.integers(1, 8), st.integers(1, 4), st.integers(1, 5))
def test_every_layout_gives_each_place_its_tensor_group(t, p, c, d) -> None:
    layout = Layout(t * p * c * d, t, p, c)
    places = [layout.place(gpu) for gpu in range(layout.num_gpus)]
    assert layout.replicas == data_parallel_size(layout.num_gpus, t, p, c) == d
    assert set(Counter(places).values()) == {t}
    assert len(set(places)) == p * c * d
    assert {replica for replica, *_ in places[: layout.a_replica]} == {0}


def test_a_large_grid_says_how_much_of_it_is_shown() -> None:
    grid = gpu_grid(16384, 8, 16)
    assert "6 of 2,048 nodes are shown, 48 of 16,384 GPUs." in grid.body
    assert "16,384 GPUs = TP 8 × PP 16 × DP 128" in grid.body
    assert grid.body.count("<title>GPU") == 48
    assert "data parallel 128" in grid.words
    assert "All 16 GPUs are shown" in gpu_grid(16, 4, 2).body


def test_a_tensor_group_that_leaves_its_node_is_told() -> None:
    assert "leave the node" in gpu_grid(32, 16).body
    assert "leave their nodes" in gpu_grid(32, 16).words
    assert "leave" not in gpu_grid(32, 8).body
    assert "CP 2" in gpu_grid(64, 8, 4, 2).body
    assert ">c2</text>" in gpu_grid(64, 8, 4, 2).body


def test_of_large_replicas_the_ends_of_several_are_drawn() -> None:
    drawn = gpu_grid(16384, 8, 16).body
    for name in ("A1", "A16", "B1", "B16", "C16"):
        assert f">{name}</text>" in drawn
    assert ">node 17</text>" in drawn
    assert ">node 2</text>" not in drawn
    for left_out in ("nodes 2 to 15", "nodes 18 to 31", "nodes 34 to 47"):
        assert f"⋮  {left_out}, not drawn</text>" in drawn
    assert "not drawn" not in gpu_grid(64, 8).body
    alone = gpu_grid(2048, 8, 16, 16).body
    assert ">node 6</text>" in alone
    assert "B is round" in drawn
    assert "B is round" not in alone


def test_words_on_shades_can_be_read() -> None:
    for stages in range(1, 65):
        for stage in range(stages):
            fill = _shade(stage, stages)
            assert contrast(fill, _ink(fill)) >= 4.5
    assert _shade(0, 2) == COLORS["weights"]


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (((x + 0.055) / 1.055) ** 2.4 if x > 0.04 else x / 12.92 for x in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_what_was_there_before_is_outlined() -> None:
    assert "stroke-dasharray" not in gpu_grid(16, 4, 2).body
    assert "stroke-dasharray" not in gpu_grid(16, 4, 2, before=(16, 4, 2, 1)).body
    changed = gpu_grid(16, 8, 2, before=(16, 4, 2, 1)).body
    assert "dashed: replica A had 8 GPUs" in changed
    assert gpu_grid(8, 4, 2, before=(16, 4, 2, 1)).body.count("5 4") == 0
    assert gpu_grid(4, 4, before=(8, 4, 1, 1)).body.count("5 4") == 4


def test_the_step_is_passes_then_gradients_then_one_update() -> None:
    step = step_in_time(Step(2, 4, 2))
    assert step.body.count(">pass ") == 8
    assert step.body.count(COLORS["gradients"]) == 1
    assert step.body.count(COLORS["optimizer"]) == 2
    assert "micro-batch 2 × accumulation 4 × replicas 2 = 16 sequences" in step.body
    assert "gradients, not the weights, meet in one average" in step.words
    assert step.body.count("<polygon") == 1
    many = step_in_time(Step(1, 16, 128))
    assert "… and 126 more replicas" in many.body
    assert ">16 passes</text>" in many.body
    assert "one replica makes one pass" in step_in_time(Step(1, 1, 1)).words


def test_a_pipeline_waits_and_keeps_several_passes() -> None:
    step = Step(2, 4, 2, stages=2)
    assert step.waits == pytest.approx(1 / 5) == idle(2, 4)
    assert (step.in_flight, step.kept) == (2, 2)
    drawn = step_in_time(step).body
    assert drawn.count(">waits</text>") == 2
    assert ">all stages 1</text>" in drawn  # no stage averages with another
    assert drawn.count(COLORS["gradients"]) == 2
    assert "a stage waits 20.0 %" in drawn
    assert "activations: of 2 × 2 sequences" in drawn
    large = step_in_time(Step(1, 16, 128, stages=16))
    assert "3 of 16 stages drawn" in large.body
    assert ">of 128 replicas</text>" in large.body
    assert "wait 48.4 %" in large.words


def test_lengths_are_times() -> None:
    now, old = Step(4, 2, 2, fixed=1), Step(2, 4, 2, fixed=1)
    assert (now.time, old.time) == (10, 12)
    body = step_in_time(now, old).body
    wide = [float(x) for x in re.findall(r'width="([\d.]+)" height="34"', body)]
    assert 2 * max(wide[:2]) == pytest.approx(328 * 10 / 12, rel=0.04)
    assert "dashed: of 2 sequences" in body
    assert ">2 passes × (1 + 4) = 10 sequences' time, dashed 12<".replace("'", "&#x27;") in body
    halves = step_in_time(Step(2, 4, 2, stages=2, fixed=0.5)).body
    assert ">5 turns × (0.5 + 2) = 12.5 sequences" in halves


def test_the_length_before_is_told_beside_the_new_one() -> None:
    body = step_in_time(Step(4, 2, 2, stages=2), Step(2, 4, 2, stages=2)).body
    assert "time on a stage, dashed 15<" in body
    same = step_in_time(Step(4, 2, 2, stages=2), Step(4, 2, 3, stages=2)).body
    assert "on a stage, dashed" not in same
    assert "on a stage" not in step_in_time(Step(4, 2, 2)).body


def test_task_2_of_the_panel_gains_nothing() -> None:
    for micro, passes in ((2, 4), (4, 2)):
        body = step_in_time(Step(micro, passes, 2, stages=2)).body
        assert f" turns × (1 + {micro}) = 15 sequences" in body


@pytest.mark.parametrize("stages", [2, 3, 16])
@pytest.mark.parametrize("passes", [1, 2, 4, 128])
def test_the_hill_of_a_pipeline_ends_with_the_step(stages: int, passes: int) -> None:
    step = Step(2, passes, 2, stages=stages)
    body = step_in_time(step).body
    [points] = re.findall(r'<polygon points="([\d., ]+)" fill="#', body)
    (x, _), (up, _), (down, _), (end, _) = (
        map(float, point.split(",")) for point in points.split()
    )
    turn = (end - x) / step.turns
    assert end == pytest.approx(420, abs=0.1)
    assert up - x == pytest.approx(step.in_flight * turn / 3, abs=0.1)
    assert end - down == pytest.approx((step.in_flight - 1 / 3) * turn, abs=0.2)
    assert up <= down + 0.1


def test_in_the_units_without_a_pipeline_two_stages_take_half() -> None:
    assert (Step(2, 4, 2).time, Step(2, 4, 2, stages=2).time) == (12, 7.5)


def test_teeth_grow_with_the_micro_batch_and_not_with_the_passes() -> None:
    def highest(*numbers: int) -> float:
        body = step_in_time(Step(*numbers)).body
        found = re.findall(r'<polygon points="([\d., ]+)" fill="#', body)
        heights = [float(p.split(",")[1]) for p in found[0].split()]
        return max(heights) - min(heights)

    assert highest(2, 4, 2) == pytest.approx(2 * highest(1, 4, 2))
    assert highest(2, 4, 2) == highest(2, 128, 2) == highest(2, 4, 64)


@pytest.mark.parametrize("micro", [1, 7, 64])
@pytest.mark.parametrize("passes", [1, 6, 7, 1000])
@pytest.mark.parametrize("replicas", [1, 2, 3, 4096])
def test_nothing_leaves_the_canvas(micro: int, passes: int, replicas: int) -> None:
    piped = Step(micro, passes, replicas, stages=12)
    drawings = [step_in_time(Step(micro, passes, replicas)), step_in_time(piped)]
    for drawing in (*drawings, gpu_grid(8 * replicas, 4)):
        for place in re.findall(
            r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', (drawing.body)
        ):
            x, y, wide = map(float, place)
            assert 0 <= x <= x + wide <= drawing.width
            assert 0 <= y <= drawing.height
        sizes = re.findall(r'font-size="([\d.]+)"', drawing.body)
        assert min(map(float, sizes)) >= 13
        assert drawing.words in unescape(drawing.saved())


def test_the_bars_of_a_pass_are_the_fit_and_the_dots_were_measured() -> None:
    rows = published.measured_passes().query("hidden_size == 32")
    fitted = fit_step_time(rows["micro_batch_size"], rows["seconds_min"])
    drawn = pass_times(rows["micro_batch_size"], rows["seconds_min"], fitted)
    assert drawn.body.count("<circle") == 1 + len(rows)
    assert "half-rate batch 26:" in drawn.body
    assert "r = 35,900 sequences a second" in drawn.body
    assert "1: 0.75 ms, 1,334 sequences a second" in drawn.words
    heights = re.findall(r'width="40" height="([\d.]+)" fill="#5B6672"', drawn.body)
    assert len(set(heights)) == 1
    assert float(heights[0]) == pytest.approx(
        196 * fitted.overhead / rows["seconds_min"].max(), abs=0.06
    )
    sizes = re.findall(r'font-size="([\d.]+)"', drawn.body)
    assert min(map(float, sizes)) >= 14
    assert "half-rate" not in pass_times([1, 2], [1, 2], StepTime(9, 1)).body


# --- exercises


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


def test_04_a_takes_every_right_way() -> None:
    d = data_parallel_size(96, 2, 4)
    for answer in (
        3_145_728,
        "3,145,728",
        "3.145728M",
        3145728.0,
        batch_tokens(global_batch_size(4, 32, d), 2048),
    ):
        assert check("04-a", answer).ok, answer
    assert "exactly" in check("04-a", 3.146e6).text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (3_145_728 * 8, "every GPU as a replica"),
        (3_145_728 * 4, "pipeline's stages"),
        (3_145_728 * 2, "tensor-parallel group"),
        (3_145_728 // 12, "one replica's part"),
        (3_145_728 // 32, "one pass of each"),
        (1536, "these are sequences"),
        (3_145_728 * 12, "the replicas are counted already"),
    ],
)
def test_04_a_names_the_slips(answer: int, said: str) -> None:
    assert said in text_of("04-a", answer)


def test_04_b_tells_why_of_each_split() -> None:
    assert check("04-b", "TP 8, PP 2").ok
    assert check("04-b", "tp 8, pp 2").ok
    assert "64 passes, 1.5 % of the step idle" in check("04-b", "TP 8, PP 2").text
    assert "two nodes" in text_of("04-b", "TP 16, PP 1")
    assert "no multiple of 12" in text_of("04-b", "TP 4, PP 3")
    assert "64 passes, 19 % of the step idle" in text_of("04-b", "TP 1, PP 16")
    assert idle(4, 8) == pytest.approx(3 / 11)
    with pytest.raises(ValueError, match="not divisible"):
        data_parallel_size(128, 4, 3)


def test_04_c_takes_the_measured_way_and_the_formula() -> None:
    for answer in (3.96, "3.96", 11 * 0.36, (32 / 4 + 3) * (0.12 + 4 * 0.06), 3.9600001):
        assert check("04-c", answer).ok, answer
    steps = {b: (32 // b + 3) * (0.12 + 0.06 * b) for b in (1, 2, 4, 8)}
    assert min(steps, key=lambda b: steps[b]) == 4


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (4.2, "wait for 3 of 7"),
        (4.56, "wait less"),
        (6.3, "four times as often"),
        (5.4, "do not fit"),
        (2.88, "it waits"),
        (2.4, "the largest micro-batch, and no waiting"),
        (3.84, "of 2 without the waiting"),
        (0.36, "one pass"),
        (4, "this is a micro-batch"),
        ("8", "this is a micro-batch"),
        (11, "these are the turns"),
        (5.0, "too high"),
    ],
)
def test_04_c_names_the_slips(answer: object, said: str) -> None:
    assert said in text_of("04-c", answer)


MINE = {"model": "Llama-3.1-8B", "gpus": 8, "tensor": 1, "pipeline": 1, "micro": 1}
MINE |= {"accumulation": 64, "sequence": 8192}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"accumulation": 32},
        {"micro": 2, "accumulation": "32"},
        {"gpus": 1024, "tensor": 8, "pipeline": 2, "accumulation": 8, "micro": 1},
        {"sequence": "8k", "accumulation": 64},
        {"model": "Llama-3.1-70B", "gpus": 64, "tensor": 8},
    ],
)
def test_04_d_takes_any_design_that_holds(change: dict) -> None:
    verdict = check("04-d", MINE | change)
    assert verdict.ok, verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"accumulation": 1}, "65.5 thousand tokens a step; models of this size had"),
        ({"accumulation": 4096}, "268 million tokens"),
        ({"gpus": 12, "tensor": 8}, "8 GPUs a replica do not divide 12"),
        ({"gpus": 32, "tensor": 16}, "does not stay inside a node"),
        ({"gpus": 24, "tensor": 3}, "TP 3 does not stay inside a node"),
        ({"gpus": 64, "pipeline": 64}, "32 layers make no 64 stages"),
        ({"micro": 64, "accumulation": 1}, "64 at once keep 3.10 TB of activations"),
        ({"gpus": 10, "pipeline": 5}, "32 layers do not come out even over 5"),
        ({"micro": 0}, "micro=0 is not positive"),
        ({"micro": "two"}, "is no number"),
        ({"model": "Llama-9"}, "Llama-9"),
    ],
)
def test_04_d_says_what_does_not_hold(change: dict, said: str) -> None:
    assert said in text_of("04-d", MINE | change)


def test_04_d_takes_the_run_that_the_page_begins_with() -> None:
    run = {"model": "Llama-3.1-405B", "gpus": 16384, "sequence": 8192}
    run |= {"tensor": 8, "pipeline": 16, "micro": 1, "accumulation": 16}
    verdict = check("04-d", run)
    assert verdict.ok
    assert "126 layers do not come out even over 16 stages" in verdict.text


def test_04_d_waits_for_every_entry() -> None:
    assert check("04-d", MINE | {"accumulation": None}).ok is None
    assert "leaves out gpus, tensor" in text_of("04-d", {"model": "gpt2"})
    assert "is no dict" in text_of("04-d", 64)
    assert "1 replica makes" in check("04-d", MINE | {"gpus": 1}).text


@pytest.mark.parametrize(
    ("model", "gpus", "accumulation", "fine"),
    [("gpt2", 8, 64, True), ("gpt2", 8, 8, False), ("Qwen2.5-0.5B", 8, 16, True)],
)
def test_04_d_knows_the_batches_of_small_models(
    model: str, gpus: int, accumulation: int, fine: bool
) -> None:
    mine = MINE | {"model": model, "gpus": gpus, "accumulation": accumulation}
    short = mine | {"sequence": 1024 if model == "gpt2" else 8192}
    assert check("04-d", short).ok is fine


def test_the_batches_that_04_d_names_are_those_of_the_table() -> None:
    known = {row["name"]: row for row in published.rows("batch_sizes")}
    told = {"GPT-3 125M": 0.5, "Pythia 1.4B": 2.1, "Llama 2 7B": 4}
    told |= {"DeepSeek LLM 7B": 9.4, "Llama 2 70B": 4, "DeepSeek LLM 67B": 19}
    told |= {"Llama 3.1 405B": 16}
    for name, millions in told.items():
        size = float(known[name]["batch_tokens_end"])
        assert float(units.digits(size / 1e6, 2)) == millions
    assert batches_of_size(8_030_261_248)[0] == (2e6, "GPT-3 6.7B")


def test_a_batch_is_held_against_models_of_like_size() -> None:
    known = batches_of_size(69e9)
    assert known[0] == (3e6, "Chinchilla 70B")
    assert known[-1] == (18_874_368, "DeepSeek LLM 67B")
    told = check("04-d", MINE | {"model": "Llama-3.1-70B", "gpus": 64, "tensor": 8})
    said = "3.00 million (Chinchilla 70B) to 18.9 million (DeepSeek LLM 67B), the middle"
    assert f"{said} one 4.00 million" in told.text
    assert [name for _, name in batches_of_size(355e6)] == ["GPT-3 350M", "Pythia 410M"]
    assert len(batches_of_size(1.01e12)) == 4  # half to twice as large
    assert len(batches_of_size(1e15)) > 40  # any


def test_some_runs_raise_their_batch_and_most_do_not() -> None:
    columns = ["batch_tokens_start", "batch_tokens_end", "parameters"]
    runs = published.batch_sizes().dropna(subset=columns).set_index("name")
    grown = runs["batch_tokens_end"] > runs["batch_tokens_start"]
    kept = runs["batch_tokens_end"] == runs["batch_tokens_start"]
    assert (grown.sum(), kept.sum(), len(runs)) == (12, 30, 42)
    assert runs.loc["Llama 3.1 405B", columns[:2]].tolist() == [4e6, 16e6]


def test_what_twice_the_micro_batch_gains_at_the_right_end() -> None:
    rows = published.measured_passes().query("hidden_size == 32")
    took = rows.set_index("micro_batch_size")["seconds_min"]
    assert round(took[256] / took[128], 1) == 1.9
    assert round(2 * took[128] / took[256], 2) == 1.05


def test_the_prediction_names_the_belief() -> None:
    prediction = PREDICTIONS["04-guess"]
    assert prediction.truth() == "twice"
    assert "from 64 to 128 sequences" in prediction.reveal("half")
    assert "smaller copies make more of them" in prediction.reveal("half")
    assert "sequences of its own" in prediction.reveal("the same")
    assert "the accumulation stays" in prediction.reveal("The same")
    assert "and so it is" in prediction.reveal("twice")


@pytest.mark.parametrize("guess", ["eight times", "four times", "A quarter longer"])
def test_a_pass_of_eight_takes_a_quarter_longer_than_one_of_one(guess: str) -> None:
    rows = published.measured_passes().query("hidden_size == 32")
    took = rows.set_index("micro_batch_size")["seconds_min"]
    assert 1.2 < took[8] / took[1] < 1.3
    told = PREDICTIONS["04-time"].reveal(guess)
    assert ("and so it is" in told) == (guess == "A quarter longer")
    assert "0.75 ms, eight took 0.93 ms" in told


def test_blooms_batch_by_nodes_and_gpus_is_48_times_too_large() -> None:
    bloom = published.parallel_layouts().set_index("name").loc["BLOOM-176B"]
    d, nodes = bloom["data_parallel"], bloom["num_nodes"]
    passes = accumulation_steps(2048, 2, int(d))
    assert (passes, nodes, bloom["gpus_per_node"]) == (128, 48, 8)
    assert nodes * 8 * passes * 2 == 98_304 == 48 * 2048
