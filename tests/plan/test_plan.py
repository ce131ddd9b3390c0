"""Chapter 08: the whole plan of a run."""

import re
from dataclasses import replace
from html import unescape
from time import perf_counter

import numpy as np
import pandas as pd
import pytest

from llmtrain_helpers import (
    Accelerator,
    Transformer,
    advise,
    count_activations,
    count_flops,
    count_parameters,
    fewest_gpus,
    model_state_bytes,
    plan_run,
    sweep,
    training_interval,
    units,
)
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import PREDICTIONS, check
from llmtrain_helpers.exercises.plan import PROPOSALS, long_sequences
from llmtrain_helpers.figures import describe
from llmtrain_helpers.figures.plan import shares_of_peak, sweep_maps
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.panels import PANELS, plan_panel
from llmtrain_helpers.plan.plan import OWN_PACE, PACES, RESERVE, STOPS, UTILIZATIONS
from llmtrain_helpers.plan.schedule import pipeline_schedule
from tests.bad_values import BAD_COUNTS, BAD_QUANTITIES, assert_refused
from tests.pages import words
from tests.panel_code import value_of

A100 = published.accelerator("A100")
H100 = published.accelerator("H100")
GPT3 = Transformer.gpt(96, 12288, 96, 51200, 2048)
LLAMA = published.architecture("Llama-3.1-8B", sequence_length=8192)
UNLINKED = replace(A100, link_bandwidth=None)  # no split counts
MIXTRAL = published.architecture("Mixtral-8x7B", sequence_length=4096)
LARGE = published.architecture("Llama-3.1-70B", sequence_length=8192)

RUN = {
    "model": LLAMA,
    "accelerator": A100,
    "num_gpus": 64,
    "tokens": 10**12,
    "global_batch_size": 512,
    "recompute": "none",
    "micro_batch_size": 1,
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "context_parallel": 1,
}


def plan_of(**changes: object):
    return plan_run(**{**RUN, **changes})


# --- time


def test_the_days_are_flops_over_rate() -> None:
    plan = plan_of(flops_per_gpu=150e12)
    F = count_flops(LLAMA, 512, "none").total
    steps = 10**12 / (512 * 8192)
    assert plan.iterations == steps
    assert plan.days.likely == pytest.approx(steps * F / (64 * 150e12) / 86400)
    assert plan.days.least == plan.days.likely == plan.days.greatest
    assert plan.gpu_hours.likely == pytest.approx(plan.days.likely * 24 * 64)
    assert plan.throughput == pytest.approx(10**12 / (plan.days.likely * 86400))


def test_the_interval_spans_the_utilisations() -> None:
    plan = plan_of(utilizations=(0.2, 0.4, 0.5))
    at_peak = plan_of(flops_per_gpu=312e12).days.likely
    assert plan.days.likely == pytest.approx(at_peak / 0.4)
    assert plan.days.least == pytest.approx(at_peak / 0.5)
    assert plan.days.greatest == pytest.approx(at_peak / 0.2)
    assert plan.mfu == pytest.approx(0.4)


def test_where_links_are_unknown_recomputation_and_the_bubble_cost_time() -> None:
    plan = plan_of(accelerator=UNLINKED)
    assert plan.step is None
    plain, F = plan.seconds.likely, count_flops(LLAMA, 512, "full")
    full = plan.but(recompute="full").seconds.likely
    assert full / plain == pytest.approx(F.total / F.model)
    piped = plan.but(pipeline_parallel=8)
    assert piped.split.bubble == 7 / 64
    assert piped.seconds.likely / plain == pytest.approx(1 + 7 / 64)
    assert piped.mfu == pytest.approx(plan.mfu / (1 + 7 / 64))
    assert plan.but(tensor_parallel=8).seconds == plan.seconds
    woven = plan.but(pipeline_parallel=8, interleave=2)
    assert woven.split.bubble == 7 / 128
    assert woven.seconds.likely / plain == pytest.approx(1 + 7 / 128)


def test_a_rate_that_was_measured_has_the_bubble_in_it() -> None:
    plain, piped = (plan_of(flops_per_gpu=1e14, pipeline_parallel=p) for p in (1, 8))
    assert plain.seconds == piped.seconds


def test_the_split_shifts_what_others_reached() -> None:
    """Steps at others' pace of the model; whole runs in the ratio of their shares."""
    paces, evidence = PACES["16-bit dense"]
    runs = UTILIZATIONS["16-bit dense"].runs
    for split in ({}, {"tensor_parallel": 8}, {"pipeline_parallel": 8}):
        plan = plan_of(**split)
        step, run, T = plan.seconds_per_iteration, plan.seconds, plan.step.total
        found = [T / s for s in (step.greatest, step.likely, step.least)]
        assert found == pytest.approx(paces)
        assert plan.shares.evidence == evidence
        spans = (run.likely / run.least, run.greatest / run.likely)
        assert spans == pytest.approx((runs[2] / runs[1], runs[1] / runs[0]))
        assert run.likely > plan.iterations * step.likely


def test_a_node_wide_split_of_a_small_model_costs_time_and_a_large_one_needs_it() -> None:
    small = [plan_of(tensor_parallel=t, zero_stage=1) for t in (1, 2, 4, 8)]
    times = [plan.seconds.likely for plan in small]
    assert times == sorted(times)
    assert times[-1] > 1.5 * times[0]
    wide = plan_of(model=GPT3, tensor_parallel=16, sequence_parallel=False)
    node = wide.but(tensor_parallel=8)
    assert wide.step.tensor > 2 * node.step.tensor  # it leaves the node


def test_a_step_has_no_stops_and_a_run_has() -> None:
    plan = plan_of(accelerator=UNLINKED)
    shares, work = UTILIZATIONS["16-bit dense"], plan.flops.total / (64 * 312e12)
    assert plan.shares is shares
    step, run = plan.seconds_per_iteration, plan.seconds
    for span, known, times in ((step, shares.steps, 1), (run, shares.runs, plan.iterations)):
        low, likely, high = known
        assert span.least == pytest.approx(times * work / high)
        assert span.likely == pytest.approx(times * work / likely)
        assert span.greatest == pytest.approx(times * work / low)
    assert run.likely > plan.iterations * step.likely


KINDS = {
    "bf16": ("A100 80GB SXM", "16-bit"),
    "fp16": ("V100 32GB SXM2", "16-bit"),
    "tf32": ("A100 80GB SXM", "32-bit"),
    "fp8": ("H100 SXM", "fp8"),
    "fp4": ("GB200", "fp4"),
}


@pytest.mark.parametrize("format", KINDS)
def test_each_format_has_its_own_shares_dense_or_experts(format: str) -> None:
    name, bits = KINDS[format]
    chip = replace(published.accelerator(name), link_bandwidth=None)
    for model, kind in ((LLAMA, "dense"), (MIXTRAL, "experts")):
        plan = plan_of(model=model, accelerator=chip, format=format)
        assert plan.shares is UTILIZATIONS[f"{bits} {kind}"]


def test_fp8_does_not_halve_the_days_and_experts_are_slower() -> None:
    days = {f: plan_of(accelerator=H100, format=f).days for f in ("bf16", "fp8")}
    assert 1.1 < days["bf16"].likely / days["fp8"].likely < 1.5
    given = plan_of(accelerator=H100, format="fp8", utilizations=(0.1, 0.2, 0.3))
    assert given.shares.runs == given.shares.steps == (0.1, 0.2, 0.3)
    assert plan_of(model=MIXTRAL).mfu < 0.85 * plan_of().mfu
    unlinked = plan_of(model=MIXTRAL, accelerator=UNLINKED)
    assert unlinked.mfu < 0.5 * plan_of(accelerator=UNLINKED).mfu


def test_a_kind_that_is_untested_says_so_and_is_wider() -> None:
    widths = {k: s.steps[2] / s.steps[0] for k, s in UTILIZATIONS.items()}
    untested = [k for k, s in UTILIZATIONS.items() if s.evidence.startswith("untested")]
    assert untested == ["fp4 dense", "32-bit dense", "fp4 experts", "32-bit experts"]
    for kind in untested:
        assert widths[kind] > max(w for k, w in widths.items() if k not in untested)


def test_cost_and_energy() -> None:
    plan = plan_of(price_per_gpu_hour=2.5)
    assert plan.cost.greatest == pytest.approx(2.5 * plan.gpu_hours.greatest)
    assert plan.energy.likely == pytest.approx(plan.gpu_hours.likely * 3600 * A100.power)
    bare = plan_of(accelerator=Accelerator("chip", 80e9, peaks={"bf16": 312e12}))
    assert bare.cost is None
    assert bare.energy is None


# --- memory


@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize("stage", range(4))
def test_on_one_stage_memory_is_states_and_activations(recompute, stage) -> None:
    plan = plan_of(recompute=recompute, zero_stage=stage, attention="unfused")
    states = model_state_bytes(count_parameters(LLAMA).total, "bf16", stage, 64)
    none, held = (count_activations(LLAMA, 1, r, "unfused") for r in ("none", recompute))
    again = (none.layers - held.layers) // 32
    logits = 8 * 8192 * 128256
    assert plan.memory.activations == held.total
    assert plan.memory.transient == max(logits, again - held.head)
    expected = states.total + held.total + plan.memory.transient
    assert plan.memory.total == pytest.approx(expected)
    assert plan.room == A100.memory - plan.memory.total


def test_memory_does_not_depend_on_the_global_batch() -> None:
    assert plan_of().memory == plan_of(global_batch_size=4096).memory


def test_tensor_parallelism_splits_the_matrices_and_not_the_norms() -> None:
    one, eight = plan_of(zero_stage=0), plan_of(tensor_parallel=8)
    norms = count_parameters(LLAMA).norm
    matrices = count_parameters(LLAMA).total - norms
    assert one.memory.weights == 2 * (matrices + norms)
    assert eight.memory.weights == 2 * (matrices // 8 + norms)
    assert eight.memory.activations == one.memory.activations / 8


def test_without_sequence_parallelism_part_stays_whole() -> None:
    plan = plan_of(tensor_parallel=8, sequence_parallel=False)
    held = count_activations(LLAMA, 1, tensor_parallel=8).total
    assert plan.memory.activations == held > plan_of(tensor_parallel=8).memory.activations


def test_the_first_stage_holds_the_micro_batches_in_flight() -> None:
    """min(p, m) of them: all layers' worth when there are as many as stages."""
    deep = plan_of(pipeline_parallel=8)
    assert deep.split.accumulation_steps == 64
    layers = count_activations(LLAMA, 1).layers
    assert deep.memory.activations == layers
    assert deep.memory.transient == 0
    short = plan_of(pipeline_parallel=8, global_batch_size=16)
    assert short.split.accumulation_steps == 2
    assert short.memory.activations < layers / 2


def test_the_last_stage_holds_the_head() -> None:
    plan = plan_of(pipeline_parallel=8, recompute="full", global_batch_size=8)
    held = count_activations(LLAMA, 1, "full")
    assert plan.memory.activations == held.layers / 8 + held.head
    assert plan.memory.transient == 8 * 8192 * 128256


def test_a_tied_head_has_its_own_copy_on_the_last_stage() -> None:
    tied = replace(LLAMA, tied_embeddings=True)
    shape = {"pipeline_parallel": 2, "recompute": "full", "global_batch_size": 64}
    one, two = (plan_of(model=model, **shape).memory.weights for model in (LLAMA, tied))
    assert one == two
    assert plan_of(model=tied).memory.weights == 2 * count_parameters(tied).total


def test_context_parallelism_shares_sequence_and_states() -> None:
    plan = plan_of(context_parallel=4, zero_stage=1)
    assert plan.split.data_parallel == 16
    assert plan.memory.activations == count_activations(LLAMA, 1).total / 4
    assert plan.memory.optimizer == plan_of(zero_stage=1).memory.optimizer


def test_uneven_stages_round_up() -> None:
    model = published.architecture("Llama-3.1-405B", sequence_length=8192)
    shape = {"model": model, "accelerator": H100, "num_gpus": 16384}
    shape |= {"tensor_parallel": 8, "pipeline_parallel": 16, "zero_stage": 1}
    shape |= {"global_batch_size": 2048}
    assert_refused(plan_of, "num_layers=126 is not divisible", **shape)
    plan = plan_of(**shape, uneven_stages=True)
    counted = count_parameters(model)
    layers = 8 * (counted.total - counted.embedding - counted.head) // 126
    assert plan.memory.weights == pytest.approx(2 * (layers + counted.head) / 8, rel=1e-3)


INTERLEAVED = {"pipeline_parallel": 8, "interleave": 2}


def test_interleaved_stages_hold_more_micro_batches_at_most_all() -> None:
    """p + (p − 1)/v on the first stage, p − (p − 1)/v on the last, at most m."""
    layers = count_activations(LLAMA, 1).layers
    first = plan_of(**INTERLEAVED)
    assert first.split.in_flight == (11.5, 4.5)
    assert first.memory.activations == layers * 11.5 / 8
    assert plan_of(pipeline_parallel=8).split.in_flight == (8, 1)
    few = plan_of(**INTERLEAVED, global_batch_size=80)
    assert few.split.accumulation_steps == 10
    assert few.split.in_flight == (10, 4.5)
    assert plan_of(pipeline_parallel=8, global_batch_size=64).split.in_flight == (8, 1)
    assert plan_of(pipeline_parallel=8, global_batch_size=56).split.in_flight == (7, 1)


@pytest.mark.parametrize("recompute", ["none", "selective"])
@pytest.mark.parametrize(
    "row", published.recomputation_runs().to_dict("records"), ids=lambda r: r["name"]
)
def test_activations_are_those_of_the_papers_first_stage(row, recompute) -> None:
    """arXiv 2205.05198 section 4.2.3: L·(1 + (p − 1)/(pv)) times a layer's bytes."""
    l, h, a, s = (row[x] for x in ("num_layers", "hidden_size", "num_heads", "sequence_length"))
    b, t, p, v = (
        row[x] for x in ("micro_batch_size", "tensor_parallel", "pipeline_parallel", "interleave")
    )
    plan = plan_run(
        Transformer.gpt(l, h, a, row["vocab_size"], s),
        A100,
        row["num_gpus"],
        300e9,
        row["global_batch_size"],
        recompute=recompute,
        micro_batch_size=b,
        tensor_parallel=t,
        pipeline_parallel=p,
        interleave=v,
        attention="unfused",
        dropout=True,
    )
    scores = 5 * a * s / h if recompute == "none" else 0
    more = 1 + (p - 1) / (p * v) if v > 1 else 1
    printed = s * b * h * l * (34 + scores) / t * more
    if p == 1:  # the paper leaves the head out
        head = (4 * h + 4 * row["vocab_size"]) * s * b / t
        assert plan.memory.activations - head == pytest.approx(printed, rel=0.03)
    else:
        assert plan.memory.activations == pytest.approx(printed, rel=0.03)


def llama_405b(**changes: object):
    """The run with the layout of arXiv 2407.21783, Table 4 and section 3.3.2."""
    layout = {"num_gpus": 16384, "global_batch_size": 2048, "tensor_parallel": 8}
    layout |= {"pipeline_parallel": 16, "interleave": 8, "uneven_stages": True}
    layout |= {"zero_stage": 2, "keep_gradients": False, "fused_mlp": True}
    options = {"recompute": "none", **layout, **changes}
    return published.run_plan("Llama 3.1 405B", **options)


def test_llama_405b_lies_in_its_intervals_and_in_its_memory() -> None:
    plan = llama_405b()
    rate = plan.flops.total / 16384 / 400e12  # the paper's TFLOP/s on 16,384 GPUs
    assert plan.seconds_per_iteration.least < rate < plan.seconds_per_iteration.greatest
    assert plan.seconds_per_iteration.likely == pytest.approx(rate, rel=0.1)
    assert plan.gpu_hours.least < 30.84e6 < plan.gpu_hours.greatest
    assert plan.tight
    assert llama_405b(reserve=0).fits
    assert not llama_405b(reserve=0, fused_mlp=False).fits


# --- the reserve


def test_a_plan_that_fits_on_paper_only_is_tight() -> None:
    plan = plan_of(zero_stage=3, accelerator=H100)
    assert plan.reserve == RESERVE * 80 / 96
    assert plan.fits
    exact = plan.but(reserve=plan.room)
    assert exact.fits
    assert not exact.tight
    tight = plan.but(reserve=plan.room + 1)
    assert tight.tight
    assert not tight.fits
    assert repr(tight).endswith("tight>")
    assert advise(tight)
    full = Accelerator("full", plan.memory.total, peaks={"bf16": 1e15})
    assert plan.but(accelerator=full, reserve=0).fits
    assert not plan.but(accelerator=full).fits
    larger = Accelerator("large", 192e9, peaks={"bf16": 1e15})
    assert plan.but(accelerator=larger).reserve == RESERVE


def test_the_reserve_covers_four_of_five_measured_peaks() -> None:
    """Of the rows that a plan expresses: FSDP, all recomputed, no pipeline."""
    table = published.measured_memory().dropna(subset="tensor_parallel")
    table = table.query("recompute == 'full' and pipeline_parallel == 1")
    missing = [row["peak_bytes"] - as_planned(row) for row in table.to_dict("records")]
    assert len(missing) == 6
    assert sum(bytes <= RESERVE for bytes in missing) >= 0.8 * len(missing)
    assert sum(bytes <= 0.95 * RESERVE for bytes in missing) < 0.8 * len(missing)


def as_planned(row) -> float:
    name = "Llama-3.1-" + row["model"].split()[-1]
    ways = {x: row[x] for x in ("tensor_parallel", "context_parallel", "num_gpus")}
    d = row["num_gpus"] // (row["tensor_parallel"] * row["context_parallel"])
    plan = plan_of(
        model=published.architecture(name, row["sequence_length"]),
        global_batch_size=d * row["local_batch_size"],
        micro_batch_size=row["local_batch_size"],
        **{**ways, "recipe": "amp", "zero_stage": 3, "recompute": "full"},
    )
    return plan.memory.total


def test_megatrons_peaks_on_b200_come_out_within_seven_percent() -> None:
    table = published.b200_steps_and_memory().query("model == 'Llama-3.1-70B'")
    b200, seen = published.accelerator("B200"), 0
    for row in table.to_dict("records"):
        ways = ("tensor_parallel", "pipeline_parallel", "context_parallel")
        split = {name: row[name] for name in ways}
        shape = published.architecture("Llama-3.1-70B", row["sequence_length"])
        d = 8 // (row[ways[0]] * row[ways[1]] * row[ways[2]])
        plan = plan_of(
            model=replace(shape, num_layers=row["num_layers"]),
            accelerator=b200,
            num_gpus=8,
            global_batch_size=d * row["micro_batches"],
            **{**split, "zero_stage": 1, "recipe": "bf16_fp32_grads"},
        )
        near = 0.03 if row["sequence_length"] == 4096 else 0.07
        assert plan.memory.total == pytest.approx(row["peak_bytes"], rel=near)
        seen += 1
    assert seen == 14


def fsdp_of(row: dict) -> float:
    """The plan's peak of a torchtitan row: its `selective` is every other product."""
    name = row["model"].replace("Llama 3.1 ", "Llama-3.1-")
    ways = [f"{x}_parallel" for x in ("tensor", "pipeline", "context")]
    split = {name: int(row[name]) for name in ways}
    d = row["num_gpus"] // np.prod([*split.values()])
    again = {"selective": "alternate"}.get(row["recompute"], row["recompute"])
    pieces = 2 if "Interleaved" in row["setup"] else 1
    passes = pieces * split["pipeline_parallel"]  # torchtitan's default
    piped = {"keep_gradients": passes > 1, "uneven_stages": True}
    piped |= {"interleave": pieces}
    return plan_of(
        model=published.architecture(name, row["sequence_length"]),
        num_gpus=row["num_gpus"],
        global_batch_size=int(d * row["local_batch_size"]),
        micro_batch_size=row["local_batch_size"] // passes,
        recompute=again,
        **{**split, **piped, "recipe": "amp", "zero_stage": 3, "sharding": "fsdp"},
    ).memory.total


def test_fsdps_peaks_come_out_within_seven_percent_and_shared_ones_low() -> None:
    """Ten rows without tensor parallelism; with it torchtitan holds a little more."""
    table = published.measured_memory().dropna(subset="tensor_parallel")
    alone = table.query("tensor_parallel == 1").to_dict("records")
    assert len(alone) == 10
    for row in alone:
        assert fsdp_of(row) == pytest.approx(row["peak_bytes"], rel=0.07)
    shared = table.query("tensor_parallel > 1").to_dict("records")
    short = [fsdp_of(row) / row["peak_bytes"] for row in shared]
    assert short == pytest.approx([0.87, 0.93, 0.79, 0.82], abs=0.005)


def test_fsdp_is_zero_3_and_what_is_gathered() -> None:
    zero, fsdp = (plan_of(zero_stage=3, sharding=x) for x in ("zero", "fsdp"))
    more = fsdp.memory.transient - zero.memory.transient
    h, V, s = LLAMA.hidden_size, LLAMA.vocab_size, LLAMA.sequence_length
    matrices = LLAMA.layers[0][1].parameters(h)
    assert more == 6 * matrices + 4 * h * V + 2 * s * V
    assert fsdp.memory.weights == zero.memory.weights
    assert_refused(plan_of, "zero_stage=1", zero_stage=1, sharding="fsdp")


def test_fsdp_beside_tensor_parallelism_has_a_third_tensor_and_a_whole_input() -> None:
    t, h, V, s = 4, LLAMA.hidden_size, LLAMA.vocab_size, LLAMA.sequence_length
    one, four = (
        plan_of(zero_stage=3, tensor_parallel=t, sharding=x).memory for x in ("zero", "fsdp")
    )
    matrices = LLAMA.layers[0][1].parameters(h)
    more = 6 * matrices + 4 * h * V + 2 * s * V  # as without, each GPU a t-th
    more += 4 * s * V + 2 * s * h * (t - 1)
    assert four.transient - one.transient == more / t


def test_fsdp_beside_a_pipeline_keeps_the_weights_of_its_stage() -> None:
    run = {"zero_stage": 3, "pipeline_parallel": 4, "keep_gradients": True}
    zero, fsdp = (plan_of(sharding=x, **run) for x in ("zero", "fsdp"))
    h = LLAMA.hidden_size
    layer = LLAMA.layers[0][1]
    first = LLAMA.vocab_size * h + 8 * layer.parameters(h)
    more = fsdp.memory.transient - zero.memory.transient
    gradients = 2 * layer.parameters(h)
    assert more == pytest.approx(2 * first + gradients, rel=1e-5)  # norms
    assert_refused(plan_of, "sharding=", sharding="FSDP2")


# --- traffic


def test_what_replicas_send_grows_with_the_passes() -> None:
    """2, 2, k + 1 and 3k times the weights, (d − 1)/d of it."""
    plan = plan_of()
    k, W = plan.split.accumulation_steps, 2 * count_parameters(LLAMA).total
    assert k == 8
    sent = [plan.but(zero_stage=stage).traffic for stage in range(4)]
    assert sent == [times * W * 63 / 64 for times in (2, 2, k + 1, 3 * k)]
    kept = [plan.but(zero_stage=z, keep_gradients=True).traffic for z in (2, 3)]
    assert kept == [times * W * 63 / 64 for times in (2, 2 * k + 1)]


def test_whole_gradients_take_the_memory_that_sharding_saved() -> None:
    sharded, whole = (plan_of(zero_stage=2, keep_gradients=x) for x in (False, True))
    assert sharded.memory.gradients == whole.memory.gradients / 64
    assert whole.memory.gradients == plan_of().memory.gradients
    assert plan_of(zero_stage=2).memory == sharded.memory


def test_zero_2_with_a_pipeline_asks_what_becomes_of_the_gradients() -> None:
    for stage in (2, 3):
        deep = {"zero_stage": stage, "pipeline_parallel": 4}
        assert_refused(plan_of, f"zero_stage={stage} with a pipeline", **deep)
        for keep in (False, True):
            assert plan_of(**deep, keep_gradients=keep).memory.total
    swept = sweep(LLAMA, A100, 64, 1e12, 512, recompute="none", zero_stage=[1, 3])
    table = swept.columns()
    assert set(table["pipeline_parallel"][table["zero_stage"] == 3]) == {1}
    assert len(set(table["pipeline_parallel"][table["zero_stage"] == 1])) == 5
    alone = {"recompute": "none", "zero_stage": 3, "pipeline_parallel": 4}
    assert_refused(lambda **o: sweep(LLAMA, A100, 64, 1e12, 512, **o), "keep_grad", **alone)


# --- published runs


@pytest.mark.parametrize(
    "row", published.megatron_training_days().to_dict("records"), ids=lambda r: r["name"]
)
def test_plans_at_published_rates_come_within_3_percent(row) -> None:
    model = Transformer.gpt(row["num_layers"], row["hidden_size"], 1, row["vocab_size"], 2048)
    n, B = row["num_gpus"], row["global_batch_size"]
    given = {"recompute": "full", "flops_per_gpu": row["flops_per_gpu"]}
    batch = B - B % n or n  # days do not depend on it
    plan = plan_run(model, A100, n, row["tokens"], batch, **given)
    assert plan.days.likely == pytest.approx(row["days"], rel=0.03)


@pytest.mark.parametrize("name", published.training_runs().dropna(subset="kind")["name"].tolist())
def test_a_runs_shape_has_its_published_number_of_parameters(name: str) -> None:
    row = published.training_runs().set_index("name").loc[name]
    total = count_parameters(published.run_model(name)).total
    assert total == pytest.approx(row["parameters"], rel=1e-3)


def test_a_run_without_a_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="has no shape here"):
        published.run_model("DeepSeek-V3")
    with pytest.raises(ValueError, match="did you mean 'BLOOM-176B'"):
        published.run_plan("BLOM")


# --- advice


def test_advice_is_the_cheapest_that_fits_told_free_things_first() -> None:
    """ZeRO 3 fits with a micro-batch of 1: recomputing (+32 %) is not asked for."""
    plan = plan_of(micro_batch_size=4, accelerator=H100)
    steps = advise(plan)
    assert [step.change for step in steps] == [{"zero_stage": 3}, {"micro_batch_size": 1}]
    assert [step.plan.fits for step in steps] == [False, True]
    sharded, smaller = (step.dearer for step in steps)
    assert -0.05 < sharded < 0  # each GPU updates its share of the weights
    assert 0 < smaller < 0.1  # more launching
    assert sum(step.saved for step in steps) == pytest.approx(
        plan.memory.total - steps[-1].plan.memory.total
    )
    assert steps[0].sent == steps[0].plan.traffic - plan.traffic > 0


def test_advice_takes_zero_1_where_it_is_free_and_enough() -> None:
    [step] = advise(plan_of(recompute="full", accelerator=H100))
    assert step.change == {"zero_stage": 1}
    assert step.sent == 0
    assert -0.03 < step.dearer < 0  # each GPU updates its share of the weights


def test_nothing_that_fits_is_cheaper_than_the_advice() -> None:
    plan = plan_of(micro_batch_size=8, num_gpus=32)
    last = advise(plan)[-1].plan
    for stage in range(4):
        for b in (1, 2, 4, 8):
            for again in RECOMPUTE:
                other = plan.but(zero_stage=stage, micro_batch_size=b, recompute=again)
                if other.fits:
                    assert other.gpu_hours.likely >= 0.999 * last.gpu_hours.likely


def test_recomputation_is_advised_where_nothing_else_helps_and_says_its_price() -> None:
    plan = plan_of(num_gpus=8, zero_stage=3, tokens=10**12)
    [step] = advise(plan)
    assert step.change == {"recompute": "full"}
    assert step.dearer == pytest.approx(0.32, abs=0.02)


def test_a_pipeline_is_offered_zero_2_only_if_the_plan_says_how() -> None:
    deep = {"pipeline_parallel": 4, "num_gpus": 64, "micro_batch_size": 2}
    assert all(step.plan.inputs["zero_stage"] < 2 for step in advise(plan_of(**deep)))


def test_a_plan_that_fits_needs_no_advice() -> None:
    assert advise(plan_of(zero_stage=3, recompute="full")) == ()


def test_more_gpus_are_the_last_advice() -> None:
    plan = plan_of(model=LARGE, num_gpus=8, recompute="full", zero_stage=3, sequence_parallel=False)
    [step] = advise(plan)
    assert step.change == {"num_gpus": 32}
    assert step.plan.fits


def test_where_replicas_do_not_help_the_model_is_split() -> None:
    plan = plan_of(model=LARGE, num_gpus=512, recompute="full", zero_stage=1)
    last = advise(plan)[-1]
    assert last.plan.fits
    assert last.change == {"zero_stage": 3} or "tensor_parallel" in last.change


def test_a_model_that_fits_on_no_number_of_gpus_says_so_and_by_how_much() -> None:
    plan = plan_of(model=LARGE)
    with pytest.raises(ValueError, match=r"fits on no number of GPUs.* more than"):
        fewest_gpus(plan)
    short = Accelerator("small", 1e9, peaks={"bf16": 1e14})
    hopeless = plan_of(model=LARGE, accelerator=short)
    assert not advise(hopeless)[-1].plan.fits


def test_the_fewest_gpus_fit_and_one_divisor_less_does_not() -> None:
    plan = fewest_gpus(plan_of(recompute="full", zero_stage=3))
    n = plan.split.num_gpus
    assert plan.fits
    assert not plan.but(num_gpus=n // 2).fits


# --- the sweep


def test_a_sweep_is_the_plans_one_by_one() -> None:
    swept = sweep(
        LLAMA,
        A100,
        64,
        10**12,
        512,
        recompute=RECOMPUTE,
        zero_stage=[0, 1],
        context_parallel=[1, 2],
    )
    table = swept.columns()
    assert len(swept) == len(table["memory"]) > 300
    for i in range(0, len(swept), 37):
        names = ["micro_batch_size", "tensor_parallel", "pipeline_parallel"]
        names += ["context_parallel", "recompute", "zero_stage"]
        plan = plan_of(**{name: table[name][i].item() for name in names})
        assert table["memory"][i] == pytest.approx(plan.memory.total, rel=1e-12)
        assert table["seconds"][i] == pytest.approx(plan.seconds.likely, rel=1e-12)
        assert table["fits"][i] == plan.fits
        assert table["mfu"][i] == pytest.approx(plan.mfu, rel=1e-12)


def test_arrays_of_uneven_stages_are_the_plans_one_by_one() -> None:
    model = published.architecture("Llama-3.1-405B", sequence_length=8192)
    shape = {"model": model, "accelerator": H100, "num_gpus": 1024, "reserve": 0}
    shape |= {"tensor_parallel": 8, "zero_stage": 1, "uneven_stages": True}
    shape |= {"global_batch_size": 2048}
    stages, pieces = np.array([2, 4, 8, 16]), np.array([1, 2])[:, None]
    swept = plan_of(pipeline_parallel=stages, interleave=pieces, **shape).step
    for (i, j), seconds in np.ndenumerate(swept.total):
        split = {"pipeline_parallel": int(stages[j]), "interleave": i + 1}
        one = plan_of(**split, **shape).step
        assert seconds == pytest.approx(one.total, rel=1e-12)
        assert swept.head[i, j] == pytest.approx(one.head, rel=1e-12)
    assert (swept.head == 0).any()
    assert (swept.head > 0).any()


def test_a_sweep_leaves_out_exactly_what_a_plan_refuses() -> None:
    axes = {
        "micro_batch_size": [1, 3, 1024],
        "tensor_parallel": [1, 3, 8, 16],
        "pipeline_parallel": [1, 5, 32, 64],
    }
    table = sweep(LLAMA, A100, 64, 10**12, 512, recompute="none", **axes).columns()
    kept = set(zip(*(table[name].tolist() for name in axes), strict=True))
    for b in axes["micro_batch_size"]:
        for t in axes["tensor_parallel"]:
            for p in axes["pipeline_parallel"]:
                try:
                    plan_of(micro_batch_size=b, tensor_parallel=t, pipeline_parallel=p)
                    refused = False
                except ValueError:
                    refused = True
                assert refused == ((b, t, p) not in kept)


def test_the_fastest_plan_fits_and_none_that_fits_is_faster() -> None:
    swept = sweep(LARGE, H100, 128, 10**12, 1024, recompute=RECOMPUTE, zero_stage=1)
    best, table = swept.fastest(), swept.columns()
    assert best.fits
    assert best.seconds.likely == pytest.approx(table["seconds"][table["fits"]].min())
    equal = table["fits"] & np.isclose(table["seconds"], best.seconds.likely)
    assert table["tensor_parallel"][equal].min() == best.split.tensor_parallel


def test_a_sweep_in_which_nothing_fits_or_nothing_comes_out_even_says_so() -> None:
    with pytest.raises(ValueError, match=r"none of \d+ plans fits: at best .* short"):
        sweep(LARGE, A100, 8, 1e12, 512, recompute="none", pipeline_parallel=1).fastest()
    with pytest.raises(ValueError, match="comes out even"):
        sweep(LLAMA, A100, 64, 1e12, 512, recompute="none", tensor_parallel=7)
    with pytest.raises(ValueError, match="what one call takes"):
        sweep(LLAMA, A100, 64, np.arange(1, 10**6), 512, recompute="none")


@pytest.mark.parametrize("bad", [0, -1, "8", None, [1, "x"], 1e300, [2.5]], ids=repr)
@pytest.mark.parametrize("name", ["num_gpus", "tokens", "tensor_parallel"])
def test_a_sweep_refuses_bad_axes(name: str, bad: object) -> None:
    axes = {"num_gpus": 64, "tokens": 10**12, "global_batch_size": 512, name: bad}
    assert_refused(sweep, name, model=LLAMA, accelerator=A100, recompute="none", **axes)


def test_plans_of_arrays_say_how_many_they_are() -> None:
    plan = plan_of(num_gpus=np.array([8, 16, 32]))
    assert repr(plan) == "<3 plans>"
    assert plan.days.likely.shape == (3,)
    with pytest.raises(ValueError, match="here it must be one"):
        fewest_gpus(plan)
    with pytest.raises(ValueError, match="here it must be one"):
        advise(plan)


# --- bad input

COUNTS = [
    "num_gpus",
    "tokens",
    "global_batch_size",
    "micro_batch_size",
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
]


@pytest.mark.parametrize("bad", BAD_COUNTS, ids=repr)
@pytest.mark.parametrize("name", COUNTS)
def test_a_plan_refuses_bad_counts(name: str, bad: object) -> None:
    assert_refused(plan_of, name, **{name: bad})


@pytest.mark.parametrize("bad", BAD_QUANTITIES, ids=repr)
@pytest.mark.parametrize("name", ["flops_per_gpu", "price_per_gpu_hour"])
def test_a_plan_refuses_bad_quantities(name: str, bad: object) -> None:
    if bad is None:
        pytest.skip("None is no rate, no price")
    assert_refused(plan_of, name, **{name: bad})


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": "Llama-3.1-8B"}, "model='Llama-3.1-8B' is no Transformer"),
        ({"accelerator": "A100"}, "accelerator='A100' is no Accelerator"),
        ({"num_gpus": 63, "tensor_parallel": 8}, "num_gpus=63 is not divisible"),
        ({"tensor_parallel": 64}, "divisible by tensor_parallel=64"),
        ({"pipeline_parallel": 64}, "pipeline_parallel=64 is more than num_layers=32"),
        ({"num_gpus": 5, "pipeline_parallel": 5}, "num_layers=32 is not divisible"),
        ({"num_gpus": 3, "context_parallel": 3}, "sequence_length=8192 is not divisi"),
        ({"num_gpus": 1, "micro_batch_size": 513}, "micro_batch_size=513 is more than"),
        ({"micro_batch_size": 3}, "global_batch_size=512 is not divisible by"),
        ({"tokens": 10**6}, "is more than tokens=1000000"),
        ({"recompute": "yes"}, "recompute='yes' is unknown"),
        ({"recipe": "fp17"}, "recipe='fp17' is unknown"),
        ({"zero_stage": 4}, "zero_stage=4 is unknown"),
        ({"format": "fp8"}, "format='fp8' has no peak on A100"),
        ({"attention": "fast"}, "attention='fast' is unknown"),
        ({"uneven_stages": 1}, "uneven_stages=1 is neither"),
        ({"fused_mlp": 1}, "fused_mlp=1 is neither"),
        ({"keep_gradients": "yes"}, "keep_gradients='yes' is neither"),
        ({"reserve": -1}, "reserve=-1 is negative"),
        ({"interleave": 2}, "interleave=2 is more than what a pipeline of one stage"),
        (
            {"pipeline_parallel": 8, "interleave": 3},
            "num_layers=32 is not divisible by pipeline_parallel·interleave=24",
        ),
        (
            {"pipeline_parallel": 8, "interleave": 5, "uneven_stages": True},
            "pipeline_parallel·interleave=40 is more than layers, embedding and head",
        ),
        ({"sequence_parallel": "no"}, "sequence_parallel='no' is neither"),
        ({"utilizations": (0.5, 0.4, 0.3)}, "is not ascending"),
        ({"utilizations": 45}, "is no triple"),
        ({"flops_per_gpu": 140}, "Write 140e12"),
    ],
)
def test_a_plan_refuses(changes, problem) -> None:
    assert_refused(plan_of, problem, **changes)


@pytest.mark.parametrize("call", [advise, fewest_gpus])
@pytest.mark.parametrize("bad", [None, "plan", 3, {}], ids=repr)
def test_advice_is_for_plans(call, bad) -> None:
    assert_refused(call, "plan=", plan=bad)


def test_a_plan_shows_itself_in_a_line() -> None:
    told = repr(plan_of())
    assert told.startswith("<Plan: ")
    assert units.gigabytes(plan_of().memory.total) in told
    assert told.endswith("does not fit>")


# --- figures, panel, exercises


def test_the_figures_tell_plans_and_runs() -> None:
    rows = {"low": [0.3, 0.2], "likely": [0.4, 0.3], "high": [0.5, 0.6]}
    table = pd.DataFrame(rows | {"utilization": [0.45, 0.25]}, index=["mine", "yours"])
    told = describe(shares_of_peak(table))
    assert "reached: 45 at x = 0 to 25 at x = 1" in told
    point = {"micro_batch_size": 2, "gpus_a_copy": 8, "throughput": 5.0, "mfu": 0.4}
    points = [point, {**point, "throughput": 9.0, "mfu": 0.5}]
    told = describe(sweep_maps({"one": points, "two": points}))
    assert told.count("colour 40 to 50") == 2
    assert told.count("Figure: ") == 1


def text_of(panel) -> str:
    return unescape(panel.status.value + panel.output.value)


def offers_of(panel) -> list[str]:
    return [button.description for button in panel.advice.children]


@pytest.mark.parametrize(
    ("control", "value", "said"),
    [
        ("model", "Llama-3.1-70B", "does not fit"),
        ("sequence_length", 4096, "23.4 days"),
        ("chip", "A100 80GB SXM", "61.5 days"),
        ("num_gpus", 128, "11.8 days"),
        ("num_gpus", 100, "Batch 512 is not divisible by 100 replicas, which GPUs 100"),
        ("tensor_parallel", 8, "9.10 GB"),
        ("pipeline_parallel", 4, "3/35 = 8.57 %"),
        ("pipeline_parallel", 5, "each takes Pipeline stages 5"),
        ("context_parallel", 2, "30.4 GB"),
        ("zero_stage", 2, "tight</b>: it fits on paper only, with 5.42 GB free, where 17.5"),
        ("gradients", "whole", "74.6 GB"),
        ("tokens", "2T", "47.2 days"),
        ("global_batch_size", 500, "not divisible"),
        ("micro_batch_size", 2, "does not fit"),
        ("recipe", "bf16_fp32_grads", "59.0 GB"),
        ("recompute", "full", "16.9 GB"),
        ("price", 5.0, "$181 thousand"),
        ("days", "20", "too late: you have 20 days"),
        ("days", 25, "perhaps: you have 25 days"),
        ("flops_per_gpu", "420T", "24.9 days of computing; with stops 27 to 37 days"),
        ("flops_per_gpu", "400e12", "400 TFLOP/s each"),
        ("flops_per_gpu", 420, "below 10⁹ FLOP/s"),
        ("flops_per_gpu", "2000T", "more than the whole peak"),
        ("seconds_per_iteration", "8.0", "22.1 days of computing"),
        ("config", "/no/such/file.json", "is no file: give the path of a config.json"),
    ],
)
def test_the_panel_follows_each_control(control: str, value, said: str) -> None:
    panel = plan_panel()
    before = text_of(panel)
    assert "23.6 days" in before
    panel.controls[control].value = value
    assert text_of(panel) != before
    assert said in text_of(panel)


def test_the_panel_plans_a_model_of_ones_own(tmp_path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "num_hidden_layers": 16}')
    panel = plan_panel()
    panel.controls["config"].value = str(path)
    assert "3.50 billion" in text_of(panel)
    assert f"read_config({str(path)!r}" in text_of(panel)


def test_the_panel_escapes_what_is_typed() -> None:
    panel = plan_panel()
    panel.controls["config"].value = "<img src=x>"
    assert "<img" not in panel.status.value + panel.output.value


def test_the_panels_advice_is_taken_by_a_click_and_held_against_before() -> None:
    panel = plan_panel()
    panel.preset.value = "70B on 8 H100"
    [offer] = panel.advice.children
    assert offer.description.startswith("ZeRO stage 2 and GPUs 32: saves 92.6 GB")
    assert "sends 1.71 TB more a step, takes 740 days" in offer.description
    assert "at the lowest price. Then it fits:" in text_of(panel)
    offer.click()
    assert (panel.values()["num_gpus"], panel.values()["zero_stage"]) == (32, 2)
    assert "<b>fits</b>," in text_of(panel)
    assert "(dashed: 2,500 to 3,400 days)" in text_of(panel)
    assert "stroke-dasharray" in panel.output.value


def test_the_panel_prices_what_it_advises() -> None:
    panel = plan_panel()
    panel.set(micro_batch_size=4, zero_stage=0)
    first, second = offers_of(panel)
    assert re.match(r"ZeRO stage 3: saves \d+ GB on each GPU, -2.43 % GPU-h", first)
    assert "% GPU-hours, sends" in first
    assert re.match(r"Micro-batch 1: saves \d+ GB .* \+6.49 % GPU-hours, sends", second)
    assert "each takes those before it, too. Then it fits" in text_of(panel)
    panel.advice.children[1].click()  # both changes
    values = panel.values()
    assert (values["zero_stage"], values["micro_batch_size"]) == (3, 1)
    panel.set(num_gpus=8)
    assert "+31.1 % GPU-hours" in offers_of(panel)[0]
    panel.set(num_gpus=64, zero_stage=0, recompute="full", recipe="bf16")
    assert offers_of(panel)[0].endswith("on each GPU, -1.75 % GPU-hours")
    panel.set(chip="MI300X", micro_batch_size=16)  # its links are not known
    assert all("GPU-hours" not in offer for offer in offers_of(panel))


def test_advice_is_there_too_where_it_is_tight_or_late() -> None:
    panel = plan_panel()
    assert offers_of(panel) == ["Tokens 850B: in time even as a first run"]
    assert "there is time, but perhaps not for a first run:" in text_of(panel)
    panel.set(tokens=85 * 10**10)
    assert offers_of(panel) == []
    assert "It fits, and there is time: no advice." in text_of(panel)
    panel.set(zero_stage=2, tokens=10**12)
    assert offers_of(panel)[0].startswith("ZeRO stage 3: saves 15.8 GB")
    panel.set(zero_stage=3, tokens=3 * 10**12)
    tokens, gpus = offers_of(panel)
    assert tokens == "Tokens 1T: in time, 120 for each parameter"
    assert gpus.startswith("GPUs 256: 15 to 21 days, the same GPU-hours")
    panel.advice.children[1].click()
    assert "in time: you have 30 days" in text_of(panel)


@pytest.mark.parametrize("name", PANELS["plan"].presets)
def test_what_is_offered_does_what_it_says(name: str) -> None:
    """Every offer that is taken gives a picture; the last one a plan that fits."""
    panel, values = PANELS["plan"], PANELS["plan"].presets[name]
    answer = panel.answer(values)
    for _, change in answer.offers:
        assert panel.answer({**values, **change}).html
    if answer.html and answer.offers:
        last = {**values, **answer.offers[-1][1]}
        assert "✓ fits" in panel.answer(last).html


def test_a_still_lists_the_advice_that_buttons_give() -> None:
    still = PANELS["plan"].still()
    assert "<ol><li>ZeRO stage 2 and GPUs 32: saves" in still


def test_counted_and_estimated_stand_apart() -> None:
    tables = re.findall(r"<table.*?</table>", PANELS["plan"].render())
    counted, estimated, step = tables
    assert "matrix products" in step
    assert "not hidden" not in step
    assert ">parameters<" in counted
    assert "likely" not in counted
    assert "memory" not in estimated
    assert ">least<" in estimated
    known = PANELS["plan"].render(flops_per_gpu=420e12)
    assert ">least<" not in known
    assert ">24.9 days<" in known


def test_only_one_measurement_is_taken() -> None:
    panel = PANELS["plan"]
    both = {**panel.default, "flops_per_gpu": 4e14, "seconds_per_iteration": 8.0}
    assert panel.answer(both).problem == ("Give Measured rate or Measured step, not both.")
    assert "flops_per_gpu" in panel.shown(panel.default)
    assert "flops_per_gpu" not in panel.shown(both)
    assert "gradients" not in panel.shown({**panel.default, "zero_stage": 1})


def test_the_notebooks_answers_to_the_panels_tasks() -> None:
    panel = PANELS["plan"]
    pipe = dict(panel.presets["A pipeline of 4 stages"])
    assert "27.3 %" in panel.render(**pipe)
    assert "<b>32 to 43 days</b>" in panel.render(**pipe)
    larger = panel.render(**{**pipe, "global_batch_size": 512})
    assert "8.57 %" in larger
    assert "<b>27 to 36 days</b>" in larger
    eight = {**pipe, "global_batch_size": 512, "pipeline_parallel": 8}
    assert "9.86 %" in panel.render(**eight)
    assert "<b>27 to 37 days</b>" in panel.render(flops_per_gpu=420e12)
    assert "perhaps" in panel.render(flops_per_gpu=420e12)


def test_the_panel_is_quick() -> None:
    panel = PANELS["plan"]
    for values in panel.presets.values():
        times = []
        for _ in range(5):
            start = perf_counter()
            panel.answer(values, before=panel.default)
            times.append(perf_counter() - start)
        assert min(times) < 0.05


def test_the_panels_code_gives_what_it_shows() -> None:
    panel = plan_panel()
    for name in panel.presets:
        if name != "your own":
            panel.preset.value = name
            if panel.status.value:  # refused
                continue
            plan = value_of(panel.output.value)
            assert f"<b>{units.gigabytes(plan.memory.total)}</b>" in text_of(panel)
            assert f">{units.duration(plan.seconds.likely)}<" in text_of(panel)


# --- exercises


def test_08_a_takes_every_right_way() -> None:
    steps = 4e12 / (1024 * 4096)
    mistral = published.architecture("Mistral-7B-v0.1", 4096)
    plan = plan_run(mistral, H100, 128, 4e12, 1024, recompute="none")
    measured = plan.calibrated(3.4)
    for answer in (
        steps * 3.4 / 86400 * 1.5,
        953_674 * 3.4 / 86400 * 1.5,
        37.5 * 1.5,
        "56.3",
        measured.days.likely * 1.5,
        measured.days_with_stops.greatest,
    ):
        assert check("08-a", answer).ok, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (37.5, "the stops come on top"),
        (40.5, "the best of the four runs"),
        (18.76, "the stops alone"),
        (75.06, "not half of the calendar"),
        (56.293 * 86400, "these are seconds"),
        (56.293 * 24, "these are hours"),
        (56.293 / 128, "do not divide by them"),
        (56.293 * 1024, "it has 1,024"),
        (56.293 * 4096, "each has 4,096"),
        (562.93, "ten times too much"),
        (50, "too low"),
    ],
)
def test_08_a_names_the_slips(answer: float, said: str) -> None:
    assert said in check("08-a", answer).text
    assert check("08-a", answer).ok is False


def test_08_b_takes_every_right_way() -> None:
    m = 9 * (8 - 1)
    assert pipeline_schedule(8, m).idle == pytest.approx(0.1)
    assert pipeline_schedule(8, m - 1).idle > 0.1
    for answer in (756, "756", 756.0, m * 96 // 8, (8 - 1) * (1 / 0.1 - 1) * 12):
        assert check("08-b", answer).ok, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (63, "of one replica: there are twelve"),
        (840, "a tenth of the useful time"),
        (70, "by the useful time"),
        (6048, "every GPU as a replica"),
        (864, "p for p − 1"),
        (744, "one micro-batch less"),
        (768, "too high"),
    ],
)
def test_08_b_names_the_slips(answer: int, said: str) -> None:
    assert said in check("08-b", answer).text
    assert check("08-b", answer).ok is False


def test_08_c_tells_why_of_each_proposal() -> None:
    told = {name: check("08-c", name) for name in PROPOSALS}
    assert [name for name, verdict in told.items() if verdict.ok] == ["CP 4"]
    assert "at +32 % GPU-hours. The activations go" in told["recompute"].text
    assert "228 GB on each GPU, which does not fit" in told["128 GPUs"].text
    assert "up to four micro-batches" in told["4 stages"].text
    assert "at +51 % GPU-hours" in told["4 stages"].text
    assert check("08-c", "cp4").ok
    assert not long_sequences().fits


def test_the_reserve_that_the_page_tells() -> None:
    plan = plan_of(accelerator=H100)
    assert round(float(plan.reserve / H100.memory), 2) == 0.22


def test_the_page_tells_where_03_was_wider() -> None:
    span = training_interval(1e12, 8_030_261_248, 64, 989.5e12)
    assert round(span.greatest / units.DAY) == 35
    assert round((57.9e21 / (6 * 20)) ** 0.5 / 1e9) == 22


def test_the_rate_that_the_decision_asks_for() -> None:
    made = plan_of(accelerator=H100, tokens=850e9, flops_per_gpu=450e12)
    assert 29.5 < made.days_with_stops.greatest < 30
    assert "at 450 TFLOP/s on each GPU" in words("08_plan")


def test_08_d_names_both_parts_of_the_memory() -> None:
    sized = {"sequence": 8192, "batch": 512}
    told = check("08-d", MINE | sized | {"zero": 1}).text
    assert "largest part is activations, 48.4 GB; the model's states take 44.2" in told
    assert "Raise zero, shorten the sequence, or recompute." in told
    told = check("08-d", MINE | sized | {"micro": 2}).text
    assert "Lower micro or sequence, or recompute." in told
    told = check("08-d", MINE | sized | {"zero": 0}).text
    assert "largest part is the model's states, 128 GB" in told


MINE = {"model": "Llama-3.1-8B", "gpus": 8, "days": 30, "chip": "A100 80GB SXM"}
MINE |= {"tokens": 45e9, "sequence": 4096, "batch": 1024, "tensor": 1, "pipeline": 1}
MINE |= {"micro": 1, "zero": 3, "recompute": "none"}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"tokens": "45B", "sequence": "4,096", "batch": "1,024"},
        {"sequence": 8192, "batch": 512, "tokens": 30e9, "recompute": "full"},
        {"gpus": 64, "tokens": 300e9},
        {"chip": "H100", "gpus": 64, "tensor": 8, "tokens": 3.8e11, "zero": 1},
        {"chip": "H100", "gpus": 64, "pipeline": 4, "tokens": 6e11, "zero": 1},
        {"model": "Llama-3.2-1B", "tokens": 200e9},
    ],
)
def test_08_d_takes_any_plan_that_holds(change: dict) -> None:
    verdict = check("08-d", MINE | change)
    assert verdict.ok, verdict.text
    assert "GPU-hours aside." in verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tokens": 57e9}, "it takes 22 to 30 days (at the slow end 30.4 days)"),
        ({"tokens": 94e9}, "and you have 30"),
        ({"sequence": 8192, "batch": 512}, "where 17.5 GB should stay free"),
        (
            {"sequence": 8192, "batch": 512, "tokens": 47e9, "recompute": "full"},
            "at the slow end 35.3 days",
        ),
        ({"zero": 0}, "does not fit"),
        ({"zero": 7}, "zero=7 is unknown"),
        ({"micro": 3}, "batch=1024 is not divisible by micro·replicas=24"),
        ({"gpus": 12, "tensor": 8}, "gpus=12 is not divisible by tensor"),
        ({"sequence": 8192, "batch": 512}, "Shorten the sequence, or recompute"),
        ({"sequence": 8192, "batch": 512, "micro": 2}, "Lower micro or sequence"),
        ({"zero": 0}, "Raise zero, gpus or tensor, or take a smaller model"),
        ({"recompute": "all"}, "Known: none, selective, full"),
        ({"tokens": "lots"}, "is no number"),
        ({"model": "Llama-9"}, "Llama-9"),
        ({"chip": "A1000"}, "A1000"),
        ({"pipeline": 5, "gpus": 40}, "not divisible"),
    ],
)
def test_08_d_says_what_does_not_hold(change: dict, said: str) -> None:
    verdict = check("08-d", MINE | change)
    assert verdict.ok is False
    assert said in verdict.text


def test_08_d_has_a_word_for_too_little_text() -> None:
    few = check("08-d", MINE)
    assert few.ok
    assert "But these are 5.6 tokens for each parameter, where 20 is" in few.text
    small = {"model": "Llama-3.2-1B", "tokens": 200e9}
    assert "for each parameter" not in check("08-d", MINE | small).text


def test_08_d_warns_of_03s_wider_interval() -> None:
    late = check("08-d", MINE)
    slow = training_interval(45e9, 8_030_261_248, 8, 312e12).greatest / 86400
    assert late.ok
    assert f"may take up to {slow:.0f} days, too late: take at most 33 billion" in late.text
    assert "too late" not in check("08-d", MINE | {"tokens": 20e9}).text


def test_the_page_tells_what_a_plan_does_not_foresee() -> None:
    """Three times the days of the measured rate, on the most GPUs."""
    made = plan_run(
        published.architecture("GPT-3 175B", 2048),
        published.accelerator("A100 80GB SXM"),
        1536,
        300e9,
        1536,
        recompute="full",
        zero_stage=3,
    )
    span = f"{made.days.least:.0f} to {made.days.greatest:.0f}"
    assert f"to {span} on 1,536 GPUs" in words("08_plan")


def test_the_share_in_the_picture_is_that_of_the_whole_step() -> None:
    """A pipeline that waits less shows a larger share and fewer days."""
    p = PANELS["plan"]
    few = p.presets["A pipeline of 4 stages"]
    shares = []
    for batch in (128, 512):
        html = p.render(**{**few, "global_batch_size": batch})
        shares.append(int(re.search(r"(\d+)–\d+ % with idle", html)[1]))
    assert shares[1] > shares[0]


def test_the_panel_tells_a_first_run_of_03s_interval() -> None:
    panel, plan = PANELS["plan"], plan_of(accelerator=H100)
    span = training_interval(1e12, 8_030_261_248, 64, 989.5e12)
    assert plan.rough.greatest == pytest.approx(span.greatest)
    assert "A first run may take up to 35 days" in panel.render()
    assert ">○ a first run<" in panel.render()
    assert "A first run may" not in panel.render(days=40)
    assert "A first run may" not in panel.render(days=10)
    assert "A first run may" not in panel.render(flops_per_gpu=420e12)


def test_no_measurement_says_so() -> None:
    control = PANELS["plan"].controls["flops_per_gpu"]
    assert control.echo(0) == "= not measured"
    assert control.echo(4e14) == "= 400 trillion FLOP/s"


def test_08_d_speaks_of_the_entries_of_the_dictionary() -> None:
    bad = [{"zero": 7}, {"micro": 3}, {"gpus": 12, "tensor": 8}, {"gpus": 0}]
    bad += [{"pipeline": 5, "gpus": 40}, {"sequence": 0}, {"batch": 1}, {"tensor": 0}]
    for change in bad:
        told = check("08-d", MINE | change).text
        assert not re.search(r"num_gpus|_size|_parallel|_length|zero_stage", told), told


def test_08_d_waits_for_every_entry() -> None:
    assert check("08-d", MINE | {"micro": None}).ok is None
    assert "leaves out chip" in check("08-d", {"model": "gpt2"}).text
    assert "is no dict" in check("08-d", 64).text


def test_the_prediction_says_what_is_not_shared_out() -> None:
    prediction = PREDICTIONS["08-guess"]
    assert round(prediction.truth()) == 248
    told = prediction.reveal("514")
    assert "it is 248 GB: 2.1 times too much. ZeRO 3 leaves 17.6 GB" in told
    assert "222 GB of activations, 4.6 times those of the 8B" in told


def test_the_stops_are_those_of_four_published_runs() -> None:
    rates = {"BLOOM-176B": 150e12, "TinyLlama 1.1B": 0.56 * 312e12}
    rates |= {"Llama 3.1 405B": 400e12, "PaLM 540B": 0.462 * 275e12}
    hours, more = published.reported_gpu_hours(), []
    for name, X in rates.items():
        again = "full" if name == "BLOOM-176B" else "none"
        made = published.run_plan(name, flops_per_gpu=X, recompute=again)
        more.append(float(hours[name] / made.gpu_hours.likely))
    found = (min(more), float(np.median(more)), max(more))
    assert found == pytest.approx(STOPS, rel=0.006)


def test_a_measured_step_takes_the_place_of_other_peoples_runs() -> None:
    plan = plan_of(pipeline_parallel=4)
    measured = plan.calibrated(30.0)
    assert measured.seconds_per_iteration.likely == pytest.approx(30)
    assert measured.seconds.likely == pytest.approx(plan.iterations * 30)
    span = measured.days_with_stops
    assert span.least == pytest.approx(1.08 * measured.days.likely)
    assert span.greatest == pytest.approx(1.5 * measured.days.likely)
    assert plan.days_with_stops == plan.days
    unlinked = plan_of(accelerator=UNLINKED, pipeline_parallel=4).calibrated(30.0)
    assert unlinked.inputs["pace"] is None
    assert unlinked.seconds.likely == pytest.approx(plan.iterations * 30)
    for bad in BAD_QUANTITIES:
        assert_refused(plan.calibrated, "seconds_per_iteration", seconds_per_iteration=bad)


def test_a_measured_step_foretells_other_splits_with_its_own_interval() -> None:
    plan = plan_of(zero_stage=1)
    t = 1.3 * plan.step.total
    other = plan.calibrated(t).but(tensor_parallel=8)
    step = other.seconds_per_iteration
    assert step.likely == pytest.approx(1.3 * other.step.total)
    assert step.greatest / step.likely == pytest.approx(OWN_PACE)
    assert step.likely / step.least == pytest.approx(OWN_PACE)
    again = plan.calibrated(t).but(recompute="full").seconds_per_iteration
    assert again.greatest / again.likely == pytest.approx(OWN_PACE)
    others = other.but(pace=None).seconds_per_iteration
    assert step.greatest / step.least < others.greatest / others.least
    span = other.days_with_stops
    assert span.greatest == pytest.approx(1.5 * other.days.greatest)
    many = plan.calibrated(t).but(tensor_parallel=np.array([1, 8]))
    assert many.seconds_per_iteration.likely[1] == pytest.approx(step.likely)
    for bad in (0.5, "fast", np.array([1.0])):
        assert_refused(plan.but, "pace=", pace=bad)


# --- corners


def test_advice_brings_zero_and_replicas_together() -> None:
    plan = plan_of(model=LARGE, accelerator=H100, num_gpus=8, tensor_parallel=8, recompute="full")
    [step] = advise(plan)
    assert step.plan.fits
    assert step.change == {"zero_stage": 2, "num_gpus": 32}


def test_advice_keeps_to_splits_that_come_out_even() -> None:
    odd = replace(LARGE, sequence_length=8191)
    steps = advise(plan_of(model=odd, num_gpus=1))
    assert all("tensor_parallel" not in step.change for step in steps)


def test_advice_finds_the_largest_micro_batch_that_the_batch_allows() -> None:
    roomy = Accelerator("roomy", 180e9, peaks={"bf16": 312e12})
    shape = {"accelerator": roomy, "recipe": "pure_bf16", "global_batch_size": 448}
    shape |= {"zero_stage": 3, "reserve": 0}
    [step] = advise(plan_of(num_gpus=8, micro_batch_size=7, **shape))
    assert step.change == {"micro_batch_size": 2}


@pytest.mark.parametrize("zero_stage", [np.float64(0), np.int64(0), 0.0])
def test_inputs_are_kept_as_plain_numbers(zero_stage) -> None:
    plan = plan_of(zero_stage=zero_stage, tokens=np.int64(10**12), micro_batch_size=4.0)
    assert type(plan.inputs["zero_stage"]) is int
    assert type(plan.inputs["tokens"]) is int
    assert advise(plan)


def test_plans_whose_memory_differs_are_many_too() -> None:
    plan = plan_of(tensor_parallel=np.array([1, 2]), flops_per_gpu=1e14)
    assert repr(plan) == "<2 plans>"
    assert_refused(advise, "here it must be one", plan=plan)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"flops_per_gpu": 400e12}, "more than the whole peak"),
        ({"global_batch_size": 10**13}, "what a plan takes"),
        (
            {"sequence_length": 8, "tensor_parallel": 8, "context_parallel": 8},
            "sequence_length=8 is not divisible by tensor_parallel·context_parallel",
        ),
        ({"utilizations": (np.array([0.3]), 0.4, 0.5)}, "is an array"),
        ({"recipe": np.array(["bf16"])}, "recipe=.* is unknown"),
        ({"recompute": 10**5000}, "recompute=10\\^5000 is unknown"),
        ({"num_gpus": np.ma.array([8, 16])}, "is no plain array"),
    ],
)
def test_a_plan_refuses_further_slips(changes, problem) -> None:
    changes = dict(changes)
    if "sequence_length" in changes:
        s = changes.pop("sequence_length")
        changes["model"] = replace(LLAMA, sequence_length=s)
    assert_refused(plan_of, problem, **changes)


@pytest.mark.parametrize(
    ("axes", "problem"),
    [
        ({"recompute": []}, "recompute=.* is empty"),
        ({"zero_stage": []}, "zero_stage=.* is empty"),
        ({"zero_stage": [0, "full"]}, "zero_stage='full' is not a number"),
        ({"tensor_parallel": [[1, 2], [4]]}, "tensor_parallel="),
        ({"num_gpus": [True, 8]}, "num_gpus=True is not a number"),
        ({"sequence_parallel": np.array([True, False])}, "sequence_parallel="),
    ],
)
def test_a_sweep_names_what_is_wrong_with_an_axis(axes, problem) -> None:
    given = {"num_gpus": 64, "tokens": 10**12, "global_batch_size": 512}
    given |= {"model": LLAMA, "accelerator": A100, "recompute": "none"}
    assert_refused(sweep, problem, **{**given, **axes})


def test_a_sweep_makes_each_plan_once() -> None:
    many = [0, 0, 1] * 1000
    swept = sweep(LLAMA, A100, 64, 1e12, 512, recompute=["none"] * 9, zero_stage=many)
    assert len(swept.plans) == 2


def test_of_equal_plans_the_one_that_splits_least_is_first() -> None:
    small = Accelerator("small", 24e9, peaks={"bf16": 312e12})
    shape = {"recompute": "full", "flops_per_gpu": 1e14, "zero_stage": 1}
    best = sweep(LLAMA, small, 64, 1e12, 512, pipeline_parallel=[1, 2, 4, 8], **shape).fastest()
    assert best.split.tensor_parallel * best.split.pipeline_parallel == 4


def test_a_slip_in_giga_or_tera_is_refused() -> None:
    with pytest.raises(ValueError, match="Write 80e9"):
        Accelerator("x", 80, peaks={"bf16": 312e12})
    with pytest.raises(ValueError, match="Write 312e12"):
        Accelerator("x", 80e9, peaks={"bf16": 312})


def test_published_runs_take_all_options_and_know_what_is_missing() -> None:
    with pytest.raises(ValueError, match="tokens were not published"):
        published.run_plan("MT-NLG 530B")
    plan = published.run_plan(
        "Llama 2 70B", num_gpus=1024, global_batch_size=1024, tensor_parallel=8
    )
    assert plan.split.data_parallel == 128
    assert plan.gpu_hours == published.run_plan("Llama 2 70B").gpu_hours
    assert published.run("llama-2-70b") == published.run("Llama 2 70B")
    for bad in ("Lama 2 70B", "", 1, 10**5000, None):
        with pytest.raises(ValueError, match="run="):
            published.run(bad)


@pytest.mark.parametrize("chip", ["V100 16GB SXM2", "T4"])
def test_the_panels_code_runs_for_chips_without_bf16(chip: str) -> None:
    panel = plan_panel()
    panel.set(chip=chip, model="gpt2", sequence_length=1024)
    cost = value_of(panel.output.value).cost.likely
    assert units.dollars(cost) in text_of(panel)


def test_the_panel_spreads_experts_where_there_are_any() -> None:
    panel = PANELS["plan"]
    mixture = panel.presets["A mixture of experts"]
    assert "expert_parallel" in panel.shown(mixture)
    assert "expert_parallel" not in panel.shown(panel.default)
    assert "expert_parallel=8" in panel.answer(mixture).html
    assert "<b>fits</b>" in panel.answer(mixture).html
    whole = panel.answer({**mixture, "expert_parallel": 1}).html
    assert "<b>does not fit</b>" in whole
    odd = panel.answer({**mixture, "expert_parallel": 3})
    assert odd.problem == "Experts 8 is not divisible by Expert parallel 3."
    assert "expert_parallel" not in panel.answer(panel.default).html
    missing = {**panel.default, "config": "no such file.json"}
    assert "expert_parallel" not in panel.shown(missing)
