"""The best split of given GPUs, by branch and bound. Beside notebooks/10_budget.ipynb.

Every layout has a bound: the least that its step can take, without a plan of its own. In
the order of these bounds most layouts are never planned, because a plan that was already
found is shorter than their bound. Sources: those of `plan`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from llmtrain_helpers.checks import instance, is_array, refuse, single
from llmtrain_helpers.communication import NODE_BANDWIDTH
from llmtrain_helpers.flops import count_flops
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.memory import memory_per_gpu
from llmtrain_helpers.plan.pace import UTILIZATIONS
from llmtrain_helpers.plan.plan import Plan, plan_run


class Layout(NamedTuple):
    """How GPUs and batch are split, as changes of a run."""

    recompute: str
    pipeline_parallel: int
    zero_stage: int
    tensor_parallel: int
    micro_batch_size: int

    @property
    def leanest(self) -> Layout:
        """The layout of its kind that holds least: all recomputed, one sequence at once."""
        return self._replace(recompute="full", micro_batch_size=1)


@cache
def layouts(num_gpus: int) -> tuple[Layout, ...]:
    """Every layout that is tried on so many GPUs, the plainest first."""
    few = (1, 2, 4, 8)
    every = product(("none", "full"), (*few, 16), (1, 3), few, few)
    return tuple(
        layout
        for layout in (Layout(*choices) for choices in every)
        if num_gpus % (layout.pipeline_parallel * layout.tensor_parallel) == 0
        and (layout.pipeline_parallel == 1 or layout.zero_stage == 1)
    )


def best_split(
    model: Transformer,
    accelerator: Accelerator,
    num_gpus: int,
    global_batch_size: int,
    tokens: float = 1e12,
    **options: Any,
) -> Plan:
    """The plan on these GPUs whose step is the shortest of those that fit.

    By the plan's own seconds, over 1 to 8 GPUs of tensor parallelism, micro-batches of
    1 to 8, ZeRO 1 and 3, pipelines of up to 16 stages with ZeRO 1, and all recomputed
    or nothing. Where seconds do not tell splits apart, the model of a step does, or, if
    it does not know the chip, what is sent between replicas; then the plainest goes
    first. Where none fits, the one that holds least. `options` are other arguments of
    `plan_run`. ValueError where no split comes out even.

    >>> model = Transformer.llama(80, 8192, 64, 8, 28672, 128256, 4096)
    >>> h100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})
    >>> plan = best_split(model, h100, 64, 1024)
    >>> plan.split.tensor_parallel, plan.run.zero_stage, plan
    (8, 3, <Plan: 191 days, 46.4 GB a GPU, fits>)
    """
    n = single("num_gpus", num_gpus)
    B = single("global_batch_size", global_batch_size)
    run = {"num_gpus": n, "global_batch_size": B, "tokens": tokens, **options}
    _check_single(model, accelerator, run)
    first = _first_even(model, accelerator, layouts(n), run)
    most = first.room + first.memory.total - first.reserve

    @cache
    def held(layout: Layout) -> float:
        """Bytes on a GPU; infinite where the layout does not come out even."""
        try:
            return float(memory_per_gpu(first.run.but(**layout._asdict())).total)
        except ValueError:
            return math.inf

    best: Plan | None = None
    price: tuple[float, ...] = (math.inf,)
    pairs = zip(least_steps(first), layouts(n), strict=True)
    for bound, layout in sorted(pairs, key=lambda pair: pair[0]):
        if bound > price[: len(bound)]:
            break
        if held(layout.leanest) <= most and held(layout) <= most:
            plan = first.but(**layout._asdict())
            if step_price(plan, first) < price:
                best, price = plan, step_price(plan, first)
    if best is None:
        leanest = min((layout.leanest for layout in layouts(n)), key=held)
        return first.but(**leanest._asdict())
    return best


def _check_single(model: Transformer, accelerator: Accelerator, run: Mapping[str, object]) -> None:
    """Refuse arrays: a best split is that of one plan."""
    instance("model", model, Transformer)
    instance("accelerator", accelerator, Accelerator)
    if is_array(count_parameters(model).total):
        refuse("model", model, "is many shapes: here it must be one")
    if any(map(is_array, vars(accelerator).values())):
        refuse("accelerator", accelerator, "is many: here it must be one")
    for name, value in run.items():
        if is_array(value):
            refuse(name, value, "is an array: here it must be one number")


def _first_even(
    model: Transformer,
    accelerator: Accelerator,
    layouts: tuple[Layout, ...],
    run: Mapping[str, Any],
) -> Plan:
    """The plan of the first layout that comes out even, whether it fits or not."""
    problem = None
    for layout in layouts:
        try:
            return plan_run(model, accelerator, **{**run, **layout._asdict()})
        except ValueError as error:
            problem = problem or error
    raise problem or ValueError(f"num_gpus={run['num_gpus']} has no split")


def least_steps(first: Plan) -> list[tuple[float, float]]:
    """The least that each layout can take: in seconds, and by the model of a step.

    As shares of the first plan's, which recomputes nothing. What is sent comes on top.
    Products and trips to memory take all GPUs as long under any layout; launching goes
    with t/b, the head with p. Where the seconds are those of the model of a step, times a
    number, both bounds are the same.
    """
    run, split, step = first.run, first.split, first.step
    others = run.utilizations is not None or first.shares in UTILIZATIONS.values()
    by_model = step is not None and run.flops_per_gpu is None
    by_model = by_model and (run.pace is not None or not others)
    work = {r: count_flops(run.model, 1, r).total for r in ("none", "full")}
    a_gpu = run.global_batch_size * split.context_parallel / split.num_gpus
    if step is not None:
        whole, products = step.total, step.matmuls + step.memory
        launching_of_one = step.launching / split.tensor_parallel * split.micro_batch_size
        head_of_one = step.head / split.pipeline_parallel
    bounds = []
    for recompute, p, _, t, b in layouts(split.num_gpus):
        m = a_gpu * t * p / b  # passes of accumulation, no less than one
        bubble = 0.0 if p == 1 else float((p - 1) / (split.interleave * max(m, 1)))
        seconds = work[recompute] / work["none"] * (1 + (run.flops_per_gpu is None) * bubble)
        model = 0.0
        if step is not None:
            launching = launching_of_one * t / b
            passes = {"none": 3, "full": 4}[recompute]
            layers = passes / 3 * (products + launching) * (1 + bubble)
            model = float((layers + head_of_one * p) / whole)
        least = model if by_model else seconds
        bounds.append((round(least, 6), round(model, 6)))
    return bounds


def step_price(plan: Plan, first: Plan) -> tuple[float, ...]:
    """A plan's step as a share of the first plan's, then what decides between equal steps."""
    t, p = plan.split.tensor_parallel, plan.split.pipeline_parallel
    unit = float(first.seconds_per_iteration.likely)
    seconds = float(plan.seconds_per_iteration.likely) / unit
    if plan.step is None or first.step is None:
        sending = float(plan.traffic) * min(t, 8) / NODE_BANDWIDTH
        by_model = max(seconds, sending / unit)
    else:
        by_model = float(plan.step.total / first.step.total)
    plainness = (p, t, plan.run.zero_stage, -float(plan.memory.total))
    return (round(seconds, 6), round(by_model, 6), *plainness)
