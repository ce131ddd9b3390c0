"""What to change where a plan does not fit, and the fewest GPUs on which it does."""

from dataclasses import replace
from itertools import product

import pytest

from llmtrain_helpers import (
    Accelerator,
    Tuning,
    advise,
    best_split,
    fewest_gpus,
    plan_run,
    published,
)
from llmtrain_helpers.flops import EVERY_RECOMPUTE
from llmtrain_helpers.plan.plan import Plan
from tests.bad_values import assert_refused
from tests.plan.cases import A100, H100, LARGE, plan_of

VENDORS = replace(A100, shown_memory=None)
"""A card of which nobody printed what its driver shows."""


def test_advice_is_the_cheapest_that_fits_told_free_things_first() -> None:
    """With a fused loss and a micro-batch of 1 ZeRO 1 fits: recomputing (+32%) isn't asked for.

    Without the loss's kernel it would take ZeRO 3, which sends more.
    """
    plan = plan_of(micro_batch_size=4, accelerator=H100)
    steps = advise(plan)
    assert [step.change for step in steps] == [
        {"loss_kernel": "fused"},
        {"zero_stage": 1},
        {"micro_batch_size": 1},
    ]
    assert [step.plan.fits for step in steps] == [False, False, True]
    fused, sharded, smaller = (step.extra_cost for step in steps)
    assert fused == steps[0].sent == 0
    assert -0.05 < sharded < 0  # each GPU updates its share of the weights
    assert 0 < smaller < 0.1  # more launching
    assert sum(step.saved for step in steps) == pytest.approx(
        plan.memory.total - steps[-1].plan.memory.total
    )
    assert plan.phase == "loss"
    more = advise(plan.replace(accelerator=replace(H100, shown_memory=78e9)))
    assert [step.change for step in more][1:] == [{"zero_stage": 2}, {"micro_batch_size": 1}]


def test_advice_takes_zero_1_where_it_is_free_and_enough() -> None:
    [step] = advise(plan_of(recompute="full", accelerator=H100))
    assert step.change == {"zero_stage": 1}
    assert step.sent == 0
    assert -0.03 < step.extra_cost < 0  # each GPU updates its share of the weights


def test_nothing_that_fits_is_cheaper_than_the_advice() -> None:
    plan = plan_of(micro_batch_size=8, num_gpus=32)
    last = advise(plan)[-1].plan
    for stage in range(4):
        for b in (1, 2, 4, 8):
            for recompute in EVERY_RECOMPUTE:
                other = plan.replace(zero_stage=stage, micro_batch_size=b, recompute=recompute)
                if other.fits:
                    assert other.gpu_hours.likely >= 0.999 * last.gpu_hours.likely


MIXTRAL = published.architecture("Mixtral-8x7B", sequence_length=4096)


@pytest.mark.parametrize("e", [1, 2, 8])
@pytest.mark.parametrize("n", [8, 32])
def test_with_experts_no_fewer_gpus_would_do(n, e) -> None:
    """Mixtral on 8 GPUs does not fit at all; what does is tried one number after another."""
    plan = plan_of(model=MIXTRAL, accelerator=H100, num_gpus=n, expert_parallel=e)
    everything = list(product(EVERY_RECOMPUTE, range(4)))

    def fits(num_gpus: int) -> bool:
        runs = (
            plan.run.if_even(num_gpus=num_gpus, recompute=recompute, zero_stage=stage)
            for recompute, stage in everything
        )
        return any(Plan.of(run).fits for run in runs if run is not None)

    last = advise(plan)[-1].plan
    assert last.fits
    if fits(n):
        assert last.split.num_gpus == n
        runs = (
            plan.run.if_even(recompute=recompute, zero_stage=stage)
            for recompute, stage in everything
        )
        for other in map(Plan.of, filter(None, runs)):
            assert not other.fits or other.gpu_hours.likely >= 0.999 * last.gpu_hours.likely
    else:
        assert not any(fits(fewer) for fewer in range(n, last.split.num_gpus))


@pytest.mark.parametrize("e", [1, 2, 8])
@pytest.mark.parametrize("stage", [1, 3])
def test_the_fewest_gpus_are_those_that_are_found_by_trying_all(stage, e) -> None:
    shape = {"model": MIXTRAL, "accelerator": H100, "recompute": "full", "expert_parallel": e}
    plan = plan_of(zero_stage=stage, **shape)
    runs = (plan.run.if_even(num_gpus=n) for n in range(1, 513))
    fitting = [run.num_gpus for run in runs if run is not None and Plan.of(run).fits]
    if fitting:
        assert fewest_gpus(plan).split.num_gpus == fitting[0]
    else:
        with pytest.raises(ValueError, match="fit on any number of GPUs"):
            fewest_gpus(plan)


def test_recomputation_is_advised_where_nothing_else_helps_and_says_its_price() -> None:
    plan = plan_of(num_gpus=4, zero_stage=3, loss_kernel="fused", accelerator=VENDORS)
    [step] = advise(plan)
    assert step.change == {"recompute": "alternate"}
    assert step.extra_cost == pytest.approx(0.08, abs=0.01)
    assert plan.replace(recompute="full").step.total / plan.step.total == pytest.approx(
        1.32, abs=0.02
    )
    mixture = plan_of(model=MIXTRAL, accelerator=H100, num_gpus=16, zero_stage=3)
    recompute = [
        step.change.get("recompute") for step in advise(mixture.replace(micro_batch_size=4))
    ]
    assert "alternate" in recompute  # though all products of experts are done again


def test_a_pipeline_is_offered_zero_2_only_if_the_plan_says_how() -> None:
    deep = {"pipeline_parallel": 4, "num_gpus": 64, "micro_batch_size": 2}
    assert all(step.plan.run.zero_stage < 2 for step in advise(plan_of(**deep)))


def test_advice_and_search_take_what_just_fits() -> None:
    """A card that has the bytes to the last one is enough, and one that lacks one is not."""
    plan = plan_of(zero_stage=3, recompute="full", reserve=0)
    memory = plan.replace(num_gpus=32).memory.total
    for card, n in ((memory, 32), (memory - 1, 64)):
        chip = replace(VENDORS, memory=card)
        assert fewest_gpus(plan.replace(accelerator=chip)).split.num_gpus == n
    most = fewest_gpus(plan).replace(num_gpus=512)
    just = replace(VENDORS, memory=most.memory.total)
    assert fewest_gpus(plan.replace(accelerator=just)).split.num_gpus == 512
    kept = most.replace(recompute="none")  # faster, and holds more: taken while it just fits
    for card, recompute in ((kept.memory.total, "none"), (kept.memory.total - 1, "alternate")):
        chip = replace(VENDORS, memory=card)
        given = {"zero_stage": 3, "micro_batch_size": 1, "tensor_parallel": 1, "reserve": 0}
        best = best_split(plan.run.model, chip, 512, 512, pipeline_parallel=1, **given)
        assert best.run.recompute == recompute


def test_a_plan_that_fits_needs_no_advice() -> None:
    assert advise(plan_of(zero_stage=3, recompute="full")) == ()


def test_more_gpus_are_the_last_advice() -> None:
    plan = plan_of(model=LARGE, num_gpus=8, recompute="full", zero_stage=3, sequence_parallel=False)
    [step] = advise(plan, fixed=("offload",))
    assert step.change == {"num_gpus": 32}
    assert step.plan.fits


def test_where_replicas_do_not_help_the_model_is_split() -> None:
    plan = plan_of(model=LARGE, num_gpus=512, recompute="full", zero_stage=1)
    last = advise(plan)[-1]
    assert last.plan.fits
    assert last.change == {"zero_stage": 3} or "tensor_parallel" in last.change


@pytest.mark.parametrize("call", [advise, fewest_gpus])
@pytest.mark.parametrize("bad", [None, "plan", 3, {}], ids=repr)
def test_advice_is_for_plans(call, bad) -> None:
    assert_refused(call, "plan=", plan=bad)


def test_advice_brings_zero_and_replicas_together() -> None:
    """On eight H100 paged states would do; on smaller cards nothing does without more of them."""
    run = {"model": LARGE, "num_gpus": 8, "tensor_parallel": 8, "recompute": "full"}
    [step] = advise(plan_of(**run, accelerator=H100))
    assert step.change == {"optimizer": "adamw_paged"}
    plan = plan_of(**run, accelerator=replace(H100, shown_memory=60e9))
    [step] = advise(plan, fixed=("offload",))
    assert step.plan.fits
    assert step.change == {"zero_stage": 2, "num_gpus": 32}
    assert step.sent > 0


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


def test_a_model_that_fits_on_no_number_of_gpus_says_so_and_by_how_much() -> None:
    plan = plan_of(model=LARGE)
    with pytest.raises(ValueError, match=r"fit on any number of GPUs.* more than"):
        fewest_gpus(plan)
    short = Accelerator("small", 1e9, peaks={"bf16": 1e14})
    hopeless = plan_of(model=LARGE, accelerator=short)
    assert not advise(hopeless)[-1].plan.fits


def test_the_missing_bytes_are_those_beyond_the_reserve_of_as_many_gpus() -> None:
    """One GPU's reserve is smaller than that of several, so it isn't the one that's missing."""
    plan = plan_of(num_gpus=1, zero_stage=3, recompute="full")
    least = plan.replace(num_gpus=512)
    chip = replace(VENDORS, memory=least.memory.total + 4e9)
    assert plan.reserve < 4e9 < least.reserve
    with pytest.raises(ValueError, match=r"reserve of 5\.1\d* GB, 1\.1\d* GB more than"):
        fewest_gpus(plan.replace(accelerator=chip))


def test_where_nothing_is_left_to_change_the_advice_says_so() -> None:
    """No advice at all means that a plan fits."""
    small = Accelerator("small", 8e9, peaks={"bf16": 312e12})
    split = {"num_gpus": 8, "tensor_parallel": 8, "global_batch_size": 1}
    split |= {"loss_kernel": "fused", "optimizer": "adamw_paged"}
    leanest = plan_of(recompute="full", zero_stage=3, accelerator=small, **split)
    assert not leanest.fits
    [step] = advise(leanest)
    assert step.change == {}
    assert step.plan is leanest
    assert (step.saved, step.extra_cost, step.sent) == (0, 0, 0)


QLORA = Tuning.qlora(16)


@pytest.mark.parametrize(
    ("model", "length", "chip", "gpus", "tuning", "changes"),
    [
        # hiyouga/LLaMA-Factory#5545, out of memory: the logits alone are 77 GB
        ("Llama-3.1-8B", 51_974, "H100", 1, QLORA, {"loss_kernel": "fused"}),
        *[
            ("Llama-3.1-8B", 2048, "H100 PCIe", 1, tuning, {"optimizer": optimizer})
            for tuning, optimizer in (
                (Tuning.full("pure_bf16"), "adamw_fused"),
                (Tuning.full(), "adamw_paged"),
            )
        ],
        (
            *("Llama-3.1-70B", 4096, "H100", 8, Tuning.full()),
            {"optimizer": "adamw_8bit", "recipe": "pure_bf16"},
        ),
        ("Llama-3.1-70B", 4096, "H100", 1, Tuning.lora(16), {"method": "qlora"}),
    ],
)
def test_advice_tries_every_way_to_tune(
    model: str, length: int, chip: str, gpus: int, tuning: Tuning, changes: dict[str, str]
) -> None:
    """On the GPUs that there are, the mildest first; and `replace` takes each change."""
    shape = published.architecture(model, length)
    plan = plan_run(shape, chip, gpus, 1e8, gpus, recompute="full", zero_stage=3, tuning=tuning)
    steps = advise(plan)
    advised = {name: value for step in steps for name, value in step.change.items()}
    assert advised == changes
    assert [step.plan.fits for step in steps] == [*(False for _ in steps[1:]), True]
    changed = plan.replace(**changes)
    assert changed.run.tuning == steps[-1].plan.run.tuning == tuning.replace(**changes)
    assert changed.memory == steps[-1].plan.memory
    summary = plan.report().summary
    assert ("would make it safe" if plan.tight else " It would fit with") in summary


def test_more_gpus_are_advised_where_no_tuning_fits_and_keep_their_own_reserve() -> None:
    shape = published.architecture("Llama-3.1-70B", 4096)
    run = {"recompute": "full", "zero_stage": 3, "tuning": Tuning.full("pure_bf16")}
    steps = advise(plan_run(shape, "H100", 1, 1e8, 8, **run), fixed=("offload",))
    assert steps[-1].change["num_gpus"] > 1
    assert steps[-1].plan.fits
