"""What must be ordered in any plan: what needs less memory on paper never needs more here."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from typing import Any

import pytest

from llmtrain_helpers import RECIPES, Tuning, advise, plan_run, published, step_timeline
from llmtrain_helpers.flops import EVERY_RECOMPUTE
from llmtrain_helpers.memory import LOSS_KERNELS, OFFLOAD
from llmtrain_helpers.parallelism import SHARDS
from llmtrain_helpers.plan.memory import memory_per_gpu, newton_schulz_bytes, stored
from llmtrain_helpers.plan.options import EVERY_OPTIMIZER
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.run import Run
from tests.plan.cases import A100, LLAMA

MODELS = ("gpt2", "Llama-3.1-8B", "Llama-3.1-70B", "Mixtral-8x7B", "DeepSeek-V3")

CHOICES: dict[str, Sequence[Any]] = {
    "num_gpus": (1, 2, 8, 64),
    "global_batch_size": (8, 16, 64, 128),
    "micro_batch_size": (1, 2, 4),
    "zero_stage": range(4),
    "tensor_parallel": (1, 1, 2, 8),
    "pipeline_parallel": (1, 1, 2, 4),
    "attention": ("flash", "unfused"),
    "recompute": ("none", "none", "full"),
    "recipe": [*RECIPES],
    "software": ("any", "megatron-core"),
    "loss_kernel": (None, *LOSS_KERNELS),
}


def drawn(how_many: int, seed: int, **fixed: Any) -> Iterator[Plan]:
    """Plans that come out even, at random."""
    rng = random.Random(seed)
    while how_many:
        options = {name: rng.choice(choices) for name, choices in CHOICES.items()} | fixed
        model = published.architecture(rng.choice(MODELS), rng.choice((512, 1024)))
        try:
            plan = plan_run(model, "A100", tokens=1e12, keep_gradients=None, **options)
        except ValueError:
            continue
        how_many -= 1
        yield plan


@cache
def plans() -> list[Plan]:
    """The same 150 for each question."""
    return [*drawn(150, seed=41)]


def sizes(run: Run, name: str, choices: Sequence[Any]) -> list[float]:
    """Bytes on a GPU with each of these choices that comes out even."""
    runs = (run.if_even(**{name: choice}) for choice in choices)  # type: ignore[misc]
    return [float(memory_per_gpu(run).total) for run in runs if run is not None]


def falls(numbers: Sequence[float], tolerance: float = 1e-9) -> bool:
    return all(less <= more * (1 + tolerance) for more, less in pairwise(numbers))


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("loss_kernel", [*LOSS_KERNELS]),
        ("zero_stage", [0, 1, 2]),
        ("recompute", ["none", "selective"]),
        ("recompute", ["none", "alternate", "full"]),
        ("optimizer", ["adamw", "adamw_fused", "sgd"]),
        ("optimizer", ["muon", "sgd"]),
        ("optimizer", ["adamw_fused", "adamw_8bit", "adamw_paged"]),
        ("optimizer", ["adamw_fused", "adamw_in_backward"]),
        ("fused_mlp", [False, True]),
        ("offload", OFFLOAD),
    ],
    ids=lambda x: x if isinstance(x, str) else "-".join(map(str, x)),
)
def test_what_saves_memory_never_needs_more(name: str, choices: list[Any]) -> None:
    tolerance = 0.001 if name == "recompute" else 1e-9
    changed = 0
    for plan in plans():
        memory = sizes(plan.run, name, choices)
        assert falls(memory, tolerance)
        changed += len(memory) > 1 and memory[-1] < memory[0]
    assert changed > 3


def test_full_recomputation_needs_more_than_selective_only_by_a_layer_at_work() -> None:
    """While an MLP's gradients are there, its layer's scores are too if all of it came back."""
    for plan in plans():
        run = plan.run.replace(attention="unfused")
        selective, full = sizes(run, "recompute", ["selective", "full"])
        again = max(float(stage.working) for stage in stored(run.replace(recompute="full")))
        assert full <= selective + again
        if plan.run.attention == "flash":
            assert falls(sizes(plan.run, "recompute", ["selective", "full"]), 0.001)


def test_muon_needs_more_than_adam_only_by_what_its_iteration_has_at_once() -> None:
    """Replicas share the states, of which it has fewer, but not that."""
    more = 0
    for plan in plans():
        both = sizes(plan.run, "optimizer", ["adamw_fused", "muon"])
        if len(both) == 2:
            assert both[1] <= both[0] + newton_schulz_bytes(plan.run)
            more += both[1] > both[0]
    assert more


def test_zero_3_needs_more_than_zero_2_only_by_what_it_gathers() -> None:
    for plan in plans():
        two, three = (plan.run.if_even(zero_stage=stage) for stage in (2, 3))
        if two is None or three is None:
            continue
        gathered = max(float(x.ends + x.gathered) for x in stored(three))
        assert memory_per_gpu(three).total <= memory_per_gpu(two).total + gathered
    large = plan_run("Llama-3.1-70B", "A100", 64, 1e12, 64, recompute="none", zero_stage=2)
    assert large.replace(zero_stage=3).memory.total < large.memory.total


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("stage", [0, 3])
def test_a_tunings_ranks_bits_and_recipes_are_ordered(recompute: str, stage: int) -> None:
    def memory(tuning: Tuning) -> float:
        run = {"recompute": recompute, "zero_stage": stage, "tuning": tuning}
        return float(plan_run(LLAMA, "H100", 2, 1e9, 2, **run).memory.total)

    assert falls([memory(Tuning.lora(r)) for r in (256, 64, 16, 8, 1)])
    assert falls([memory(Tuning.lora(8, t)) for t in ("all-linear", "mlp")])
    bits = [Tuning.lora(8), Tuning.qlora(8, double_quantisation=False), Tuning.qlora(8)]
    assert falls([*map(memory, bits)])
    assert falls([memory(Tuning.full(x)) for x in ("bf16_both_grads", "amp", "pure_bf16")])
    for tuning in (Tuning.full(), Tuning.lora(8)):
        run = {"recompute": recompute, "zero_stage": stage, "tuning": tuning}
        for n in (1, 2, 8):
            plan = plan_run(LLAMA, "H100", n, 1e9, 64, **run)
            assert falls(sizes(plan.run, "offload", OFFLOAD))
        assert falls([memory(tuning.replace(loss_kernel=x)) for x in LOSS_KERNELS])
        ways = ("adamw", "adamw_fused", "adamw_8bit", "adamw_paged")
        assert falls([memory(tuning.replace(optimizer=x)) for x in ways])


@pytest.mark.parametrize("name", ["gpt2", "Llama-3.1-8B", "Mixtral-8x7B", "DeepSeek-V3"])
@pytest.mark.parametrize("recompute", EVERY_RECOMPUTE)
def test_a_plans_peak_is_the_timelines_on_one_gpu(name: str, recompute: Any) -> None:
    model = published.architecture(name, 1024)
    for recipe, kernel, passes, b in product(RECIPES, ("flash", "unfused"), (1, 2), (1, 3)):
        way = {"recompute": recompute, "recipe": recipe, "attention": kernel}
        plan = plan_run(model, "H100", 1, 1e12, b * passes, micro_batch_size=b, **way)
        peak = step_timeline(model, b, accumulation_steps=passes, **way).peak
        assert plan.memory.total == pytest.approx(peak.total, rel=1e-12)
        assert plan.phase == peak.mark


EVERY_WAY: dict[str, Sequence[Any]] = {
    "recompute": ("selective", "alternate", "full"),
    "shard": [*SHARDS],
    "micro_batch_size": (1, 2),
    "tensor_parallel": (2, 4, 8),
    "loss_kernel": [*LOSS_KERNELS],
    "optimizer": EVERY_OPTIMIZER,
    "offload": OFFLOAD,
    "num_gpus": (2, 4, 8, 16, 64),
    "attention": ("flash",),
    "method": ("qlora",),
    "recipe": ("pure_bf16",),
}
"""One change of each option that makes memory less."""


@pytest.mark.parametrize("tuning", [None, Tuning.full(), Tuning.lora(16)], ids=repr)
def test_advice_never_says_that_nothing_helps_while_one_option_does(tuning: Any) -> None:
    """On cards that are too small for the plan by a little, or by a lot."""
    fixed: dict[str, Any] = {"reserve": 0, "tuning": tuning}
    if tuning is not None:
        fixed |= dict.fromkeys(("recipe", "loss_kernel"))
        fixed |= {"pipeline_parallel": 1, "software": "any"}
    helped = 0
    for i, plan in enumerate(drawn(40, 12, **fixed)):
        card = {"shown_memory": plan.memory.total * (0.98, 0.8, 0.5)[i % 3]}
        small = plan.replace(accelerator=replace(A100, **card))
        assert not small.fits
        ways = [(name, value) for name, values in EVERY_WAY.items() for value in values]
        if tuning is None:
            ways = [way for way in ways if way[0] not in ("method", "recipe")]
        runs = (small.run.if_even(**{name: value}) for name, value in ways)  # type: ignore[misc]
        if any(Plan.of(run).fits for run in runs if run is not None):
            helped += 1
            assert advise(small)[-1].plan.fits
    assert helped > 10
