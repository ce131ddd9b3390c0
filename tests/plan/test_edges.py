"""Chapter 09, the edges of a plan: what holds at a limit, and which part decides.

No reserve is kept here: the edges are those of the memory itself.
"""

from dataclasses import replace

import pytest

from llmtrain_helpers import Accelerator, Transformer, advise, count_activations, plan_run, sweep

LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192)
PEAKS = {"bf16": 312e12}
A100 = Accelerator("A100", 80e9, peaks=PEAKS)
RUN = {
    "model": LLAMA,
    "accelerator": A100,
    "num_gpus": 64,
    "tokens": 10**12,
    "global_batch_size": 512,
    "recompute": "none",
}


def plan_of(**changes: object):
    return plan_run(**{**RUN, "reserve": 0, **changes})


def with_memory(memory: float) -> Accelerator:
    return Accelerator("a chip", memory, peaks=PEAKS)


def test_a_plan_that_fills_the_memory_to_the_last_byte_fits() -> None:
    needed = plan_of(recompute="full", zero_stage=3).memory.total
    exact, short = (
        plan_of(recompute="full", zero_stage=3, accelerator=with_memory(memory))
        for memory in (needed, needed - 1)
    )
    assert exact.free_memory == 0
    assert exact.fits
    assert short.free_memory == -1
    assert not short.fits
    assert advise(exact) == ()


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, {(1, 1), (1, 2), (2, 1)}),
        ({"sequence_parallel": True}, {(1, 1), (1, 2), (2, 1)}),
        ({"sequence_parallel": False}, {(1, 1), (1, 2), (2, 1), (2, 2)}),
    ],
    ids=["not said", "split", "whole"],
)
def test_tensor_and_context_together_divide_a_split_sequence(
    options: dict[str, bool], kept: set[tuple[int, int]]
) -> None:
    """A sequence of 2·3 tokens is divided by 2, but not by t·c = 4; it is split unless said."""
    table = sweep(
        **{**RUN, "model": replace(LLAMA, sequence_length=6)},
        tensor_parallel=[1, 2],
        context_parallel=[1, 2],
        pipeline_parallel=1,
        micro_batch_size=1,
        **options,
    ).columns()
    pairs = zip(table["tensor_parallel"], table["context_parallel"], strict=True)
    assert set(pairs) == kept


# --- what is in flight, and what is there for a moment


@pytest.mark.parametrize(("accumulation", "in_flight"), [(2, 2), (3, 3), (4, 4), (5, 4), (64, 4)])
def test_the_first_stage_holds_min_of_stages_and_micro_batches(
    accumulation: int, in_flight: int
) -> None:
    """Of four stages of a layer each, with so small a head that it is the fullest."""
    model = Transformer.llama(4, 4096, 32, 8, 14336, 32, 8192)
    batch = 16 * accumulation
    plan = plan_of(model=model, pipeline_parallel=4, global_batch_size=batch)
    assert plan.split.accumulation_steps == accumulation
    assert plan.memory.activations == in_flight * count_activations(model, 1).layers / 4
    assert plan.memory.moment == "last layer"
    assert plan.memory.transient == 2 * 2 * 8192 * 14336  # gradients of its MLP


def test_with_a_single_micro_batch_the_last_stage_holds_one_too_and_the_head() -> None:
    model = Transformer.llama(4, 4096, 32, 8, 14336, 128256, 8192)
    plan = plan_of(model=model, pipeline_parallel=4, global_batch_size=16)
    kept = count_activations(model, 1)
    assert plan.memory.activations == kept.layers / 4 + kept.head
    assert plan.memory.transient == 2 * 4 * 8192 * 128256


def test_where_a_layer_outweighs_the_logits_it_is_the_layer_that_counts() -> None:
    """With unfused attention over a long sequence and a small vocabulary."""
    model = Transformer.llama(8, 1024, 16, 16, 4096, 512, 8192)
    plan = plan_of(model=model, recompute="full", attention="unfused")
    none, full = (
        count_activations(model, 1, recompute, attention="unfused")
        for recompute in ("none", "full")
    )
    a_layer, logits = (none.layers - full.layers) / 8, 2 * 4 * 8192 * 512
    gradients = 2 * 2 * 8192 * 4096
    assert a_layer + gradients > full.head + logits
    assert plan.memory.moment == "last layer"
    assert plan.memory.transient == a_layer + gradients
    assert plan.memory.activations == full.total - full.head  # the head's share is gone then


def test_where_the_logits_outweigh_a_layer_they_count() -> None:
    plan = plan_of(recompute="full")
    assert plan.memory.transient == 2 * 4 * 8192 * 128256
    assert plan_of(recompute="none").memory.transient == plan.memory.transient


# --- advice, and the whole run


def test_selective_recomputation_is_advised_where_that_suffices() -> None:
    """Unfused scores are most of what is kept: dropping them alone is enough."""
    none, selective, full = (
        plan_of(recompute=r, attention="unfused", zero_stage=3).memory.total
        for r in ("none", "selective", "full")
    )
    assert full < selective < none
    chip = with_memory(selective)
    stuck = plan_of(attention="unfused", zero_stage=3, accelerator=chip)
    [step] = advise(stuck, fixed=["attention"])
    assert step.change == {"recompute": "selective"}
    assert advise(stuck)[0].change == {"attention": "flash"}
    assert step.plan.fits
    less = with_memory(selective - 1)
    stuck = plan_of(attention="unfused", zero_stage=3, accelerator=less)
    assert advise(stuck, fixed=["attention"])[0].change != {"recompute": "selective"}


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_the_flops_of_a_run_are_those_of_its_iterations(recompute: str) -> None:
    """With recomputation, over T/(Bs) iterations, whatever the number of GPUs."""
    plan = plan_of(recompute=recompute)
    iteration = plan.flops.model + plan.flops.recomputed
    assert plan.total_flops == pytest.approx(iteration * 10**12 / (512 * 8192))
    assert plan.total_flops == plan_of(recompute=recompute, num_gpus=8).total_flops
    assert (plan.flops.recomputed > 0) == (recompute == "full")
