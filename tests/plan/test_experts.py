"""Experts that are whole on their GPU, and spread over those that share the other matrices."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from llmtrain_helpers import Accelerator, Transformer, best_split, plan_run, published, sweep
from llmtrain_helpers.communication import communication_seconds, data_parallel_bytes
from llmtrain_helpers.model import Layer
from llmtrain_helpers.model.layers import Experts, Mlp
from llmtrain_helpers.parallelism import Split
from llmtrain_helpers.plan.advice import fewest_gpus
from llmtrain_helpers.plan.memory import (
    ends,
    gathered_bytes,
    largest_matrix,
    newton_schulz_bytes,
    stage_experts,
    stage_parameters,
)
from llmtrain_helpers.plan.plan import Plan

H100 = published.accelerator("H100")
L, H, F, V, S, E, K = 4, 64, 48, 1000, 128, 8, 2
TINY = Transformer.llama(L, H, 8, 4, F, V, S, num_experts=E, experts_per_token=K)
EXPERTS = L * E * 3 * H * F
NORMS = L * 2 * H + H
OTHERS = 2 * V * H + L * (2 * H * H + 2 * H * H // 2 + H * E)
SPLIT = {"tensor_parallel": 2, "expert_parallel": 8}


def tiny(num_gpus: int = 8, batch: int = 64, **options: Any) -> Plan:
    """A step of the tiny mixture."""
    options = {"recompute": "none", "zero_stage": 1, **options}
    return plan_run(TINY, H100, num_gpus, batch * S, batch, **options)


# --- who has which experts


@pytest.mark.parametrize(("t", "c", "d", "e", "given", "x"), [
    (2, 1, 4, 4, None, 2), (2, 1, 4, 8, None, 1), (4, 1, 1, 4, None, 1), (2, 2, 2, 4, None, 2),
    (2, 2, 2, 8, None, 1), (2, 1, 4, 4, 1, 1), (2, 1, 4, 2, 1, 1), (4, 1, 2, 1, 1, 1),
    (1, 4, 1, 4, None, 1), (2, 1, 8, 4, 2, 2),
])  # fmt: skip
@pytest.mark.parametrize("p", [1, 2])
def test_all_gpus_together_have_each_expert_as_often_as_there_are_copies(
    t, c, d, e, given, x, p
) -> None:
    ways = {"tensor_parallel": t, "context_parallel": c, "pipeline_parallel": p}
    plan = tiny(t * c * d * p, **ways, expert_parallel=e, expert_tensor_parallel=given)
    assert plan.split.expert_tensor == x
    copies = Counter[tuple[int, int, int]]()  # of a layer's expert's part
    counted, stages = 0, ends(plan.split)
    for stage in range(p):
        for gpu in range(t * c * d):
            part, place = gpu % x, gpu // x % e
            of_gpu = [
                (layer, expert, part)
                for layer in range(stage * L // p, (stage + 1) * L // p)
                for expert in range(place * E // e, (place + 1) * E // e)
            ]
            copies.update(of_gpu)
            assert stage_experts(TINY, stages[stage]) == len(of_gpu) * 3 * H * F // x
            counted += stage_parameters(TINY, stages[stage])
    assert len(copies) == L * E * x
    assert {*copies.values()} == {t * c * d // (e * x)}
    once = plan.split.data_parallel * c
    assert counted == t * c * d // (e * x) * EXPERTS + once * (OTHERS + t * NORMS)


def test_a_gpu_holds_what_a_hand_count_says() -> None:
    """8 experts on 8 GPUs, TP 2: one copy of each, whole; of the rest four, halved."""
    of_experts, others = EXPERTS // 8, OTHERS // 2 + NORMS
    assert others == (2 * 64_000 + 4 * 12_800) // 2 + 576
    memory = tiny(**SPLIT).memory
    assert memory.weights == memory.gradients == 2 * (of_experts + others)
    assert memory.optimizer == 8 * of_experts + 8 * others / 4
    assert memory.main_weights == 4 * of_experts + 4 * others / 4
    # Four experts to a group: two copies of each, which ZeRO shares out between them.
    memory = tiny(**SPLIT | {"expert_parallel": 4, "expert_tensor_parallel": 1}).memory
    assert memory.weights == 2 * (EXPERTS // 4 + others)
    assert memory.optimizer == 8 * EXPERTS / 4 / 2 + 8 * others / 4


def test_only_experts_that_others_share_are_gathered() -> None:
    """ZeRO 3 over 4 replicas: of 8 GPUs each has an expert of its own, or two that two share."""
    halved = (3 * H * H + H * E + 2 * H) / 2  # of attention, router and norms
    for e, gathered in ((8, 0), (4, 2 * 3 * H * F)):
        plan = tiny(**SPLIT | {"expert_parallel": e}, expert_tensor_parallel=1, zero_stage=3)
        [only, _] = ends(plan.split)
        assert gathered_bytes(plan.run, only) == (4 * V * H, (2 * 2 + 2) * (halved + gathered))


def test_the_largest_matrix_of_an_expert_is_whole() -> None:
    wide = Transformer.llama(L, H, 8, 4, 2000, 100, S, num_experts=E, experts_per_token=K)
    plan = plan_run(wide, H100, 8, 64 * S, 64, recompute="none", zero_stage=1, **SPLIT)
    halved = plan.replace(expert_parallel=4)
    assert [largest_matrix(x.run) for x in (plan, halved)] == [2000 * H, 1000 * H]
    side = 2 * 4 * H * H  # two squares, of 4 bytes a number
    iterations = [newton_schulz_bytes(x.run) for x in (plan, halved)]
    assert iterations == [6 * 2000 * H + side / 2, 6 * 1000 * H + side / 2]


# --- what they send


def test_tokens_travel_between_the_experts_and_gradients_between_the_copies() -> None:
    split = {"tensor_parallel": 2, "expert_parallel": 4}
    halved, whole = tiny(**split).sent, tiny(**split, expert_tensor_parallel=1).sent
    passes, tokens = 64 // 4, S // 2  # of a GPU: it has half of the tokens of each of its passes
    assert whole.expert == passes * L * 4 * 3 / 4 * 2 * tokens * K * H == halved.expert
    others = data_parallel_bytes(OTHERS // 2 + NORMS, 4, 1)
    assert halved.data == others  # one copy of each half of an expert
    assert whole.data == others + data_parallel_bytes(EXPERTS // 4, 2, 1)
    assert tiny(**SPLIT).sent.data == others


def test_whole_experts_reduce_nothing_but_an_mlp_that_all_tokens_share_does() -> None:
    whole = {"tensor_parallel": 2, "expert_tensor_parallel": 1, "expert_parallel": 4}
    assert tiny(**whole).sent.sequence == tiny(tensor_parallel=2).sent.sequence / 2
    attention, plain = TINY.layers[0][1].mixer, Mlp(F)
    for mlp, share in ((Experts(plain, E, K, plain), 1), (Experts(plain, E, K), 5 / 8)):
        layers = ((1, Layer(attention, plain)), (3, Layer(attention, mlp)))
        model = Transformer(layers=layers, hidden_size=H, vocab_size=V, sequence_length=S)
        plan = plan_run(model, H100, 8, 64 * S, 64, recompute="none", **whole)
        usual = plan.replace(expert_tensor_parallel=2)
        assert plan.sent.sequence == pytest.approx(share * usual.sent.sequence)
        assert plan.step.tensor <= usual.step.tensor


def test_whole_experts_stand_closer_together() -> None:
    """With TP 2, 8 experts reach over one node if they are whole, and over two if halved."""
    assert [Split(16, 1, 2, 1, 1, 8, 1, 1, 8, x).expert_stride for x in (1, 2)] == [1, 2]
    assert Split(16, 1, 2, 1, 2, 4, 1, 1, 4, 2).expert_stride == 4
    assert Split(16, 1, 2, 1, 2, 4, 1, 1, 8, 2).expert_stride == 2  # over c·d, as Megatron folds it
    near, far = (
        tiny(16, tensor_parallel=2, expert_parallel=8, expert_tensor_parallel=x, overlap=False)
        for x in (1, 2)
    )
    assert near.sent.expert == far.sent.expert
    assert near.step.expert < far.step.expert
    links = 450e9 * 0.7
    assert near.step.expert == pytest.approx(near.sent.expert / links)
    ways = {"tensor_parallel": 2, "expert_parallel": 8, "data_parallel": 8}
    chip = Accelerator("X", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    one, two = (
        communication_seconds(near.sent, chip, expert_tensor_parallel=x, **ways) for x in (1, 2)
    )
    assert one is not None
    assert two is not None
    assert one.expert == pytest.approx(near.sent.expert / links)
    assert two.expert == pytest.approx(near.sent.expert / (50e9 * 0.92))


# --- what is refused


@pytest.mark.parametrize(("options", "problem"), [
    ({"num_gpus": 4, **SPLIT}, "tensor_parallel·data_parallel=4 is not divisible by expert_par"),
    ({"num_gpus": 4, "expert_parallel": 8}, "data_parallel=4 is not divisible by expert_parallel"),
    (SPLIT | {"sequence_parallel": False}, "data_parallel=4 is not divisible by expert_parallel=8"),
    (SPLIT | {"expert_tensor_parallel": 2}, r"expert_parallel·expert_tensor_parallel=16$"),
    (SPLIT | {"expert_tensor_parallel": 3}, "neither 1 nor tensor_parallel=2"),
    (
        {"tensor_parallel": 2, "expert_tensor_parallel": 1, "sequence_parallel": False},
        "whole experts need sequence_parallel=True",
    ),
])  # fmt: skip
def test_what_does_not_come_out_even_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        tiny(**options)


def test_a_dense_model_has_no_experts_to_keep_whole() -> None:
    with pytest.raises(ValueError, match=r"^expert_tensor_parallel=1 has no experts"):
        plan_run("gpt2", H100, 8, 1e10, 512, recompute="none", expert_tensor_parallel=1)


def test_hybrid_sharding_is_not_planned_with_whole_experts() -> None:
    with pytest.raises(ValueError, match=r"^expert_tensor_parallel=1 is not planned with sharding"):
        tiny(tensor_parallel=2, expert_tensor_parallel=1, zero_stage=3, sharding="hsdp")


@pytest.mark.parametrize(("x", "number"), [(None, 9), (1, 9), (2, 2)])
def test_a_sweep_has_the_plans_that_are_made_one_by_one(x: int | None, number: int) -> None:
    """All that come out even: no model on 16 GPUs, and two GPUs an expert only beside TP 2."""
    choices = {"tensor_parallel": [1, 2, 4], "expert_parallel": [1, 4, 8, 16]}
    one_at_once = {"micro_batch_size": 1, "pipeline_parallel": 1, "zero_stage": 1}
    plans = sweep(
        TINY,
        H100,
        8,
        64 * S,
        64,
        recompute="none",
        expert_tensor_parallel=x,
        **choices,
        **one_at_once,
    )
    assert len(plans) == number
    names = ("tensor_parallel", "expert_parallel", "memory", "seconds")
    for t, e, memory, seconds in zip(*(plans.columns()[name] for name in names), strict=True):
        split = {"tensor_parallel": int(t), "expert_parallel": int(e)}
        one = tiny(**split, expert_tensor_parallel=x)
        assert (memory, seconds) == pytest.approx((one.memory.total, one.seconds.likely))


# --- what is found and said


def test_the_search_finds_whole_experts_where_they_are_best() -> None:
    best = best_split("gpt-oss-120b", H100, 64, 512)
    split = best.split
    assert (split.tensor_parallel, split.expert_parallel, split.expert_tensor) == (2, 64, 1)
    assert str(split).startswith("TP 2, EP 64, ETP 1, DP 32")
    for e in (1, 2, 4, 8, 16, 32):
        other = best.replace(expert_parallel=e)
        assert not other.fits or other.step.total > best.step.total


def test_an_option_is_obeyed_by_the_search_and_by_advice() -> None:
    best = best_split(TINY, H100, 16, 64, expert_tensor_parallel=1, tensor_parallel=2)
    assert best.split.expert_tensor == 1
    for e, x in ((8, None), (8, 1), (4, 1), (4, 4)):
        plan = plan_run(
            "Mixtral-8x7B", H100, 64, 1e10, 64, recompute="full", tensor_parallel=4,
            zero_stage=1, expert_parallel=e, expert_tensor_parallel=x,
        )  # fmt: skip
        fitting = [
            n for n in range(4, 257) if (r := plan.run.if_even(num_gpus=n)) and Plan.of(r).fits
        ]
        assert fewest_gpus(plan).split.num_gpus == fitting[0]


def test_the_fewest_gpus_are_found_though_more_of_them_may_hold_whole_experts() -> None:
    """TP 4, 8 experts: on 8 replicas four GPUs share each expert, on 12 a GPU has one whole."""
    plan = plan_run(
        "Mixtral-8x7B", H100, 32, 1e10, 96, recompute="full", zero_stage=1, reserve=0,
        tensor_parallel=4, expert_parallel=8,
    )  # fmt: skip
    halfway = (plan.memory.total + plan.replace(num_gpus=48).memory.total) / 2
    assert plan.memory.total < halfway
    small = plan.replace(accelerator=replace(H100, memory=halfway, shown_memory=None))
    fits = [
        n for n in range(8, 97, 4) if (run := small.run.if_even(num_gpus=n)) and Plan.of(run).fits
    ]
    assert fits[:2] == [32, 64]
    assert fewest_gpus(small).split.num_gpus == 32


def test_the_report_says_that_experts_are_whole() -> None:
    lines = {line.what: line.assumption for line in tiny(**SPLIT).report().lines}
    assert "tensor 2, pipeline 1, experts (each whole) on 8, replicas 4" in lines["GPUs"]
    halved = {line.what: line.assumption for line in tiny(tensor_parallel=2).report().lines}
    assert "whole" not in halved["GPUs"]
