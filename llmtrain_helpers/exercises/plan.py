"""Exercises of chapter 07: three runs to plan, and what a split costs."""

from __future__ import annotations

from llmtrain_helpers import units
from llmtrain_helpers.advice import fewest_gpus
from llmtrain_helpers.batch import accumulation_steps
from llmtrain_helpers.checks import Result
from llmtrain_helpers.duration import training_seconds
from llmtrain_helpers.exercises.common import PREFIXES, Exercise, Function, Numeric
from llmtrain_helpers.memory import Split
from llmtrain_helpers.plan import Plan, plan_run
from llmtrain_helpers.published import (
    accelerator,
    architecture,
    reported_gpu_hours,
    run_plan,
)


def _bloom(recompute: str = "full") -> Result:
    plan = run_plan("BLOOM-176B", flops_per_gpu=150e12, recompute=recompute)
    return plan.days.likely


def _by_rule() -> Result:
    """The same run by 8TP/(nX), in days."""
    plan = run_plan("BLOOM-176B", flops_per_gpu=150e12, recompute="full")
    T, n = plan.inputs["tokens"], plan.inputs["num_gpus"]
    seconds = training_seconds(T, plan.parameters.total, n, 150e12, "full")
    return seconds / units.DAY


def _hours(recompute: str = "none") -> Result:
    return run_plan("Llama 2 70B", recompute=recompute).gpu_hours.likely


def _large() -> Plan:
    return plan_run(
        architecture("Llama-3.1-70B", 8192),
        accelerator("H100"),
        num_gpus=8,
        tokens=1e12,
        global_batch_size=1024,
        recompute="full",
        tensor_parallel=8,
        zero_stage=1,
    )


def _bubble(stages: int, batch: int, micro_batch: int, replicas: int) -> Result:
    steps = accumulation_steps(batch, micro_batch, replicas)
    return Split(stages * replicas, micro_batch, 1, stages, 1, replicas, steps).bubble


EXERCISES: dict[str, Exercise] = {
    "07-a": Numeric(
        key=_bloom,
        unit=lambda days: f"{units.digits(days)} days",
        hint="published.run_plan with flops_per_gpu; the days are plan.days.likely.",
        slips={
            _bloom("none")
            / _bloom(): "the rate counts recomputation, so must the plan: "
            "recompute='full'.",
            118.24 / _bloom(): "this is what was reported, with restarts and the ramp.",
            _by_rule() / _bloom(): "this is 8TP/(nX), which leaves attention and the "
            "logits out: the plan counts them.",
            86400: "these are seconds: use plan.days.",
        },
    ),
    "07-b": Numeric(
        key=_hours,
        unit=lambda hours: f"{units.count(hours)} GPU-hours",
        hint="published.run_plan, and plan.gpu_hours.likely.",
        slips=PREFIXES
        | {
            reported_gpu_hours()["Llama 2 70B"]
            / _hours(): "this is what was reported.",
            _hours("full") / _hours(): "here nothing is recomputed.",
        },
    ),
    "07-c": Numeric(
        key=lambda: fewest_gpus(_large()).split.num_gpus,
        unit=lambda gpus: f"{gpus} GPUs",
        tolerance=0,
        hint="fewest_gpus(plan).split.num_gpus; tensor_parallel=8, zero_stage=1.",
    ),
    "07-d": Function(
        key=_bubble,
        cases=[
            {"stages": 35, "batch": 1920, "micro_batch": 1, "replicas": 8},
            {"stages": 12, "batch": 2048, "micro_batch": 2, "replicas": 8},
        ],
        hint="(p − 1)/m, with m the micro-batches that each replica works through.",
    ),
}
