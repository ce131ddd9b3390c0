"""A plan: its days, its cost, published runs, and what it refuses."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from llmtrain_helpers import (
    Accelerator,
    Transformer,
    advise,
    count_flops,
    fewest_gpus,
    plan_run,
    published,
    sweep,
    units,
)
from llmtrain_helpers.plan.pace import STOPS
from llmtrain_helpers.plan.run import Run
from tests.bad_values import assert_refused
from tests.plan.cases import A100, LLAMA, UNLINKED, plan_of


def test_the_days_are_flops_over_rate() -> None:
    plan = plan_of(flops_per_gpu=150e12)
    F = count_flops(LLAMA, 512, "none").total
    steps = 10**12 / (512 * 8192)
    assert plan.iterations == steps
    assert plan.days.likely == pytest.approx(steps * F / (64 * 150e12) / 86400)
    assert plan.days.least == plan.days.likely == plan.days.greatest
    assert plan.gpu_hours.likely == pytest.approx(plan.days.likely * 24 * 64)
    assert plan.throughput == pytest.approx(10**12 / (plan.days.likely * 86400))


def test_a_run_takes_for_granted_what_a_plan_does() -> None:
    shape = (LLAMA, A100, 64, 10**12, 512)
    alone, planned = Run(*shape, recompute="none"), plan_run(*shape, recompute="none").run
    for field in fields(Run):
        assert getattr(alone, field.name) == getattr(planned, field.name), field.name


def test_cost_and_energy() -> None:
    plan = plan_of(price_per_gpu_hour=2.5)
    assert plan.cost.greatest == pytest.approx(2.5 * plan.gpu_hours.greatest)
    assert plan.energy.likely == pytest.approx(plan.gpu_hours.likely * 3600 * A100.power)
    bare = plan_of(accelerator=Accelerator("chip", 80e9, peaks={"bf16": 312e12}))
    assert bare.cost is None
    assert bare.energy is None


# --- published runs


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
    assert plan.seconds_per_iteration.likely == pytest.approx(rate, rel=0.15)
    assert plan.gpu_hours.least < 30.84e6 < plan.gpu_hours.greatest
    assert plan.fits
    assert not llama_405b(reserve=0, fused_mlp=False).fits


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


# --- refusals and arrays


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


def test_plans_of_arrays_say_how_many_they_are() -> None:
    plan = plan_of(num_gpus=np.array([8, 16, 32]))
    assert repr(plan) == "<3 plans>"
    assert plan.days.likely.shape == (3,)
    with pytest.raises(ValueError, match="here it must be one"):
        fewest_gpus(plan)
    with pytest.raises(ValueError, match="here it must be one"):
        advise(plan)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"num_gpus": 63, "tensor_parallel": 8}, "num_gpus=63 is not divisible"),
        ({"tensor_parallel": 64}, "divisible by tensor_parallel=64"),
        ({"pipeline_parallel": 64}, "pipeline_parallel=64 is more than num_layers=32"),
        ({"num_gpus": 5, "pipeline_parallel": 5}, "num_layers=32 is not divisible"),
        ({"num_gpus": 3, "context_parallel": 3}, "sequence_length=8192 is not divisi"),
        ({"num_gpus": 1, "micro_batch_size": 513}, "micro_batch_size=513 is more than"),
        ({"micro_batch_size": 3}, "global_batch_size=512 is not divisible by"),
        ({"tokens": 10**6}, "is more than tokens=1000000"),
        ({"recipe": "fp17"}, "recipe='fp17' is unknown"),
        ({"zero_stage": 4}, "zero_stage=4 is unknown"),
        ({"format": "fp8"}, "format='fp8' has no peak on A100"),
        ({"uneven_stages": 1}, "uneven_stages=1 is neither"),
        ({"overlap": 1}, "overlap=1 is neither"),
        ({"compiled": 1}, "compiled=1 is neither"),
        ({"fused_mlp": 1}, "fused_mlp=1 is neither"),
        ({"keep_gradients": "yes"}, "keep_gradients='yes' is neither"),
        ({"keep_gradients": True}, "keep_gradients=True changes nothing with zero_stage=0: grad"),
        ({"keep_gradients": True, "zero_stage": 1}, "changes nothing with zero_stage=1"),
        ({"reserve": -1}, "reserve=-1 is negative"),
        ({"interleave": 2}, "interleave=2 is more than 1, what a pipeline of one stage"),
        (
            {"pipeline_parallel": 5, "interleave": 2},
            "num_layers=32 is not divisible by pipeline_parallel·interleave=10",
        ),
        (
            {"pipeline_parallel": 8, "interleave": 3},
            "num_layers=32 is not divisible by pipeline_parallel·interleave=24",
        ),
        (
            {"pipeline_parallel": 8, "interleave": 5, "uneven_stages": True},
            "pipeline_parallel·interleave=40 is more than 34, the layers, embedding and head",
        ),
        ({"sequence_parallel": "no"}, "sequence_parallel='no' is neither"),
        ({"utilizations": (0.5, 0.4, 0.3)}, "is not ascending"),
        ({"utilizations": 45}, "isn't a triple"),
        ({"flops_per_gpu": 140}, "Write 140e12"),
    ],
)
def test_a_plan_refuses(changes, problem) -> None:
    assert_refused(plan_of, problem, **changes)


def test_a_plan_shows_itself_in_a_line() -> None:
    line = repr(plan_of())
    assert line.startswith("<Plan: ")
    assert units.gigabytes(plan_of().memory.total) in line
    assert line.endswith("does not fit>")


@pytest.mark.parametrize("zero_stage", [np.float64(0), np.int64(0), 0.0])
def test_inputs_are_kept_as_plain_numbers(zero_stage) -> None:
    plan = plan_of(zero_stage=zero_stage, tokens=np.int64(10**12), micro_batch_size=4.0)
    assert type(plan.run.zero_stage) is int
    assert type(plan.run.tokens) is int
    assert advise(plan)


def test_plans_whose_memory_differs_are_many_too() -> None:
    plan = plan_of(tensor_parallel=np.array([1, 2]), flops_per_gpu=1e14)
    assert repr(plan) == "<2 plans>"
    assert_refused(advise, "here it must be one", plan=plan)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"flops_per_gpu": 400e12}, "more than the whole peak"),
        (
            {"sequence_length": 8, "tensor_parallel": 8, "context_parallel": 8},
            "sequence_length=8 is not divisible by tensor_parallel·context_parallel",
        ),
        ({"utilizations": (np.array([0.3]), 0.4, 0.5)}, "is an array"),
        ({"recipe": np.array(["bf16"])}, "recipe=.* is unknown"),
        ({"recompute": 10**5000}, "recompute=10\\^5000 is unknown"),
        ({"num_gpus": np.ma.array([8, 16])}, "isn't a plain array"),
    ],
)
def test_a_plan_refuses_further_slips(changes, problem) -> None:
    changes = dict(changes)
    if "sequence_length" in changes:
        s = changes.pop("sequence_length")
        changes["model"] = replace(LLAMA, sequence_length=s)
    assert_refused(plan_of, problem, **changes)


def test_all_to_all_has_no_more_gpus_than_heads() -> None:
    """Each GPU of a group has whole heads: 32 of Llama's, over 4 · 8 at the most."""
    shared = {"tensor_parallel": 4, "context_parallel": 8, "global_batch_size": 512}
    assert plan_of(num_gpus=64, context="all-to-all", **shared).sent.context > 0
    wider = shared | {"context_parallel": 16}
    assert plan_of(num_gpus=64, context="ring", **wider).sent.context > 0
    problem = "num_heads=32 is not divisible by tensor_parallel·context_parallel=64"
    with pytest.raises(ValueError, match=problem):
        plan_of(num_gpus=64, context="all-to-all", **wider)


def test_a_batch_of_tokens_is_not_taken_for_sequences() -> None:
    assert plan_of(global_batch_size=64 * 1907).iterations > 0
    for batch in (64 * 1908, 2**22, 10**12, 10**30):
        with pytest.raises(ValueError, match=", the sequences in a billion tokens: give seq"):
            plan_of(global_batch_size=batch)


def test_a_card_that_is_just_full_is_tight_and_one_byte_less_does_not_do() -> None:
    plan = plan_of(zero_stage=3, recompute="full")
    size = plan.memory.total
    card = replace(A100, memory=size, shown_memory=None)
    full = plan.replace(accelerator=card, reserve=1)
    assert (full.fits, full.tight) == (False, True)
    assert plan.replace(accelerator=card, reserve=0).fits
    card = replace(card, memory=size - 1)
    less = plan.replace(accelerator=card, reserve=0)
    assert (less.fits, less.tight) == (False, False)
    for capacity, fits, tight in ((size - 1, 0, 0), (size, 0, 1), (size + 1, 1, 0)):
        shows = plan.replace(accelerator=replace(card, shown_memory=capacity), reserve=1)
        assert (shows.fits, shows.tight) == (fits, tight)  # by what the driver shows alone


def test_megatron_core_fuses_the_mlp_unless_it_is_said() -> None:
    plan = plan_of(zero_stage=3)
    fused, unfused = plan.replace(fused_mlp=True), plan.replace(fused_mlp=False)
    assert fused.memory.activations < unfused.memory.activations == plan.memory.activations
    nvidias = plan.replace(software="megatron-core")
    assert nvidias.memory == fused.replace(loss_kernel="in-place").memory
    assert nvidias.replace(loss_kernel="plain").memory == fused.memory
    assert nvidias.replace(fused_mlp=False, loss_kernel="plain").memory == unfused.memory
    others = plan.replace(software="other", fused_mlp=None)
    assert others.memory == unfused.memory


def test_a_first_run_is_promised_at_the_slow_end_of_the_days() -> None:
    plan = plan_of()
    assert plan.first_run == plan.days
    assert plan.calibrated(60.0).first_run == plan.calibrated(60.0).days
    many = plan.replace(num_gpus=np.array([32, 64])).first_run
    assert many.greatest[1] == pytest.approx(plan.first_run.greatest)


def test_what_is_given_of_a_whole_run_has_its_stops_in_it() -> None:
    for speed in ({"flops_per_gpu": 1e14}, {"utilizations": (0.3, 0.4, 0.5)}):
        plan = plan_of(**speed)
        assert plan.days == plan.days_of_steps
        assert plan.replace(stops=STOPS).days.likely == pytest.approx(1.3 * plan.days.likely)


@pytest.mark.parametrize("speed", [{}, {"software": "other"}, {"accelerator": UNLINKED}])
def test_a_run_takes_its_steps_times_its_stops(speed: dict[str, Any]) -> None:
    plan = plan_of(**speed)
    step, days = plan.seconds_per_iteration, plan.days
    assert days.likely == pytest.approx(step.likely * plan.iterations / 86400 * STOPS[1])
    assert days.least < step.likely * plan.iterations / 86400 * STOPS[1] < days.greatest
    above = np.hypot(np.log(step.greatest / step.likely), np.log(STOPS[2] / STOPS[1]))
    assert days.greatest == pytest.approx(days.likely * np.exp(above))
    alone = plan.replace(stops=(1, 1, 1))
    assert alone.days == alone.days_of_steps == plan.days_of_steps
    own = plan.replace(stops=(1.1, 1.1, 1.1)).days
    assert own.greatest / own.least == pytest.approx(step.greatest / step.least)


def test_a_measured_step_narrows_the_days() -> None:
    plan = plan_of()
    measured = plan.calibrated(plan.seconds_per_iteration.likely)
    assert measured.days.likely == pytest.approx(plan.days.likely)
    assert plan.days.least < measured.days.least < measured.days.greatest < plan.days.greatest
