"""Plans drawn by lot: what holds of every plan, whatever it is of."""

from __future__ import annotations

import os
from itertools import product
from random import Random
from typing import Any

import pytest

from llmtrain_helpers import Transformer, advise, count_flops, count_parameters, plan_run, published
from llmtrain_helpers.flops import EVERY_RECOMPUTE
from llmtrain_helpers.plan.advice import LEVERS
from llmtrain_helpers.plan.plan import Plan

PLANS = max(100, int(os.environ.get("FUZZ", 0)) // 100)
"""How many: a hundred, and a thousand where 100,000 calls are made."""

CHIPS = [published.accelerator(name) for name in published.accelerators()["name"]]
MODELS = [
    Transformer.llama(16, 2048, 32, 8, 8192, 128256, 8192),
    published.architecture("Llama-3.1-70B", sequence_length=8192),
    published.architecture("Mixtral-8x7B", sequence_length=4096),
    published.architecture("gpt2-large", sequence_length=1024),
]


def drawn(dice: Random) -> tuple[dict[str, Any], Plan | None]:
    """The arguments of a plan, most of which come out even, and the plan if they do."""
    model = dice.choice(MODELS)
    t, p, c, e = (dice.choice(ways) for ways in ([1, 2, 4], [1, 1, 2, 4], [1, 1, 2], [1, 1, 2, 8]))
    e = e if model.num_experts else 1
    of_experts = dice.choice([e, -(-e // (t * c))])  # of which the latter makes them whole
    d, b, m = of_experts * dice.choice([1, 2, 8]), dice.choice([1, 2, 4]), dice.choice([1, 4, 16])
    arguments = {
        "model": model,
        "accelerator": dice.choice(CHIPS),
        "num_gpus": t * p * c * d,
        "tokens": dice.choice([10**10, 10**12]),
        "global_batch_size": b * d * m,
        "recompute": dice.choice(EVERY_RECOMPUTE),
        "micro_batch_size": b,
        "tensor_parallel": t,
        "pipeline_parallel": p,
        "context_parallel": c,
        "context": dice.choice(["ring", "all-to-all"]),
        "interleave": dice.choice([1, 2]) if p > 1 else 1,
        "expert_parallel": e,
        "imbalance": dice.choice([1, (1 + e) / 2]),
        "zero_stage": dice.choice([0, 1, 2, 3]),
        "keep_gradients": dice.choice([None, True, False]),
        "sequence_parallel": dice.random() < 0.8,
        "attention": dice.choice(["flash", "unfused"]),
        "dropout": dice.random() < 0.2,
        "software": dice.choice(["any", "megatron-core", "other"]),
        "overlap": dice.choice([None, True, False]),
        "compiled": dice.choice([None, True, False]),
        "price_per_gpu_hour": dice.choice([None, 2.5]),
    }
    speed = {"utilizations": (0.3, 0.4, 0.5), "flops_per_gpu": 1e12}
    name = dice.choice([None, None, *speed])
    if name is not None:
        arguments[name] = speed[name]
    try:
        return arguments, plan_run(**arguments)
    except ValueError:
        return arguments, None


def plans(seed: str) -> list[tuple[dict[str, Any], Plan]]:
    """So many plans that come out even."""
    dice, pairs = Random(seed), []
    while len(pairs) < PLANS:
        arguments, plan = drawn(dice)
        if plan is not None:
            pairs.append((arguments, plan))
    return pairs


DRAWN = plans("plans")


def test_every_option_is_obeyed() -> None:
    for arguments, plan in DRAWN:
        for name, value in arguments.items():
            assert plan.inputs[name] == value, name
        shared = plan.split
        ways = shared.tensor_parallel * shared.pipeline_parallel * shared.context_parallel
        assert ways * shared.data_parallel == shared.num_gpus
        passes = shared.micro_batch_size * shared.accumulation_steps
        assert passes * shared.data_parallel == arguments["global_batch_size"]


def test_parts_add_up_and_totals_are_those_of_the_chapters() -> None:
    for arguments, plan in DRAWN:
        model, B = arguments["model"], arguments["global_batch_size"]
        for whole in (plan.memory, plan.sent, plan.flops, plan.step):
            if whole is not None:
                assert all(part >= 0 for part in whole.parts().values())
                assert whole.total == pytest.approx(sum(whole.parts().values()))
        assert plan.flops == count_flops(model, B, arguments["recompute"])
        assert plan.parameters == count_parameters(model)
        assert plan.free_memory == plan.card - plan.memory.total
        assert (plan.fits, plan.tight).count(True) <= 1
        assert plan.fits == (plan.free_memory >= plan.reserve)


def test_intervals_rise_and_money_follows_from_their_own_days() -> None:
    for arguments, plan in DRAWN:
        n, price = arguments["num_gpus"], arguments["price_per_gpu_hour"]
        for ends in (plan.seconds, plan.seconds_per_iteration, plan.days_of_steps):
            assert 0 < ends.least <= ends.likely <= ends.greatest
        days = list(vars(plan.days).values())
        assert list(vars(plan.gpu_hours).values()) == pytest.approx([24 * n * x for x in days])
        if price is not None:
            money = [24 * n * price * x for x in days]
            assert list(vars(plan.cost).values()) == pytest.approx(money)
        assert 0 < plan.mfu <= 1


def test_what_is_advised_fits_and_is_no_dearer_than_anything_tried() -> None:
    """Against every stage, micro-batch and recomputation on the same GPUs."""
    looked_at = 0
    for _, plan in DRAWN[:: max(1, len(DRAWN) // 100)]:
        if plan.fits:
            continue
        steps, now = advise(plan), plan.run.recompute
        recompute = EVERY_RECOMPUTE if now == "none" else {now, "full"}
        sizes = [b for b in (1, 2, 4) if b <= plan.split.micro_batch_size]
        runs = (
            plan.run.if_even(zero_stage=z, micro_batch_size=b, recompute=r)
            for z, b, r in product(range(plan.run.zero_stage, 4), sizes, recompute)
        )
        fitting = [other for other in map(Plan.of, filter(None, runs)) if other.fits]
        last = steps[-1].plan if steps else plan
        changed = {name for name, x in plan.inputs.items() if last.inputs[name] != x}
        assert changed <= {*LEVERS, "optimizer", "offload", "num_gpus", "tensor_parallel"}
        assert last.run.recompute in {now, *recompute}
        assert last.run.zero_stage >= plan.run.zero_stage
        assert last.split.micro_batch_size <= plan.split.micro_batch_size
        if fitting:
            looked_at += 1
            assert last.fits
            assert last.split.num_gpus == plan.split.num_gpus
            cheapest = min(other.gpu_hours.likely for other in fitting)
            assert last.gpu_hours.likely <= cheapest * 1.002
    assert looked_at > 3
