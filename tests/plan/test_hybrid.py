"""Hybrid sharding: states inside a node, gradients averaged across nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from llmtrain_helpers import Plan, data_parallel_bytes, model_state_bytes, plan_run, published
from llmtrain_helpers.checks import Number
from llmtrain_helpers.plan.step import share_across

LLAMA = published.architecture("Llama-3.1-8B", sequence_length=2048)


def plan_of(num_gpus: Number, shard: str, **options: Any) -> Plan:
    """An 8B on H100, a sequence of 2,048 tokens on each of 512 GPUs."""
    return plan_run(LLAMA, "H100", num_gpus, 1e12, 512, recompute="full", shard=shard, **options)


def test_in_one_node_it_is_fsdp() -> None:
    fsdp, hsdp = plan_of(8, "fsdp"), plan_of(8, "hsdp")
    assert hsdp.memory == fsdp.memory
    assert hsdp.step.total == pytest.approx(fsdp.step.total)


def test_on_many_nodes_each_holds_all_states() -> None:
    small, large = plan_of(8, "hsdp"), plan_of(256, "hsdp")  # both with passes before the last
    assert large.memory == small.memory
    states = model_state_bytes(8_030_261_248, "bf16", 3, 8)
    assert large.memory.weights == states.weights
    assert large.memory.optimizer == states.optimizer


@pytest.mark.parametrize("t", [1, 2, 4, 8])
def test_a_node_shares_its_states_among_the_gpus_that_hold_the_same(t: int) -> None:
    plan = plan_of(64, "hsdp", tensor_parallel=t)
    assert plan.run.shard_size == 8 // t
    assert plan.run.sharing == 8 // t


def test_what_leaves_the_node_are_gradients_once() -> None:
    plan = plan_of(64, "hsdp")
    passes = plan.split.accumulation_steps
    whole = data_parallel_bytes(8_030_261_248, 64, 3, passes, shard_size=8)
    assert plan.sent.data == pytest.approx(whole)
    across = float(plan.sent.data) * float(share_across(plan.run, 8))
    assert across == pytest.approx(2 * 7 / 8 * 2 * 8_030_261_248 / 8)


def test_behind_a_slow_network_it_is_faster_than_sharding_over_all_nodes() -> None:
    quick = published.accelerator("H100")
    slow = replace(quick, network_bandwidth=quick.network_bandwidth / 8)
    fsdp, hsdp = (plan_of(512, x).replace(accelerator=slow) for x in ("fsdp", "hsdp"))
    assert hsdp.step.data < 0.8 * fsdp.step.data
    assert hsdp.memory.total > fsdp.memory.total


def test_what_it_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^zero_stage=2 isn't what FSDP does"):
        plan_run("gpt2", "H100", 8, 1e10, 64, recompute="none", sharding="hsdp", zero_stage=2)
    with pytest.raises(ValueError, match=r"^data_parallel=12 is not divisible by shard_size=8"):
        plan_run("gpt2", "H100", 12, 1e10, 24, recompute="none", shard="hsdp")
    with pytest.raises(ValueError, match=r"^expert_parallel=8 is not planned with sharding"):
        plan_run(
            "Mixtral-8x7B", "H100", 64, 1e10, 64, recompute="full", shard="hsdp", expert_parallel=8
        )


def test_arrays_of_gpus_are_planned_as_one_by_one() -> None:
    many = plan_of(np.array([8, 64, 512]), "hsdp")
    for i, n in enumerate((8, 64, 512)):
        assert many.step.total[i] == pytest.approx(plan_of(n, "hsdp").step.total)
