"""The best split of given GPUs, by branch and bound. Beside notebooks/10_budget.ipynb.

Every layout has a bound: the least that its step can take, known without a plan of it. In
the order of these bounds most layouts are never planned, because a plan that was already
found is shorter than their bound. Sources: those of `plan`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple, Unpack

from llmtrain_helpers.checks import is_array, refuse, single
from llmtrain_helpers.communication import NODE_BANDWIDTH
from llmtrain_helpers.finetune import RECOMPUTED
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.model.names import Chip, Model, known_accelerator, known_model
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.memory import memory_per_gpu, reserve_bytes
from llmtrain_helpers.plan.options import SearchOptions
from llmtrain_helpers.plan.pace import UTILIZATIONS
from llmtrain_helpers.plan.plan import Plan, plan_run, run_flops, run_traffic
from llmtrain_helpers.plan.run import SIZES, spelt_out
from llmtrain_helpers.plan.step import kernels_of, launch_seconds, layer_seconds, step_parts


class Layout(NamedTuple):
    """How GPUs and batch are split, as changes of a run."""

    recompute: EveryRecompute
    pipeline_parallel: int
    zero_stage: int
    tensor_parallel: int
    micro_batch_size: int
    expert_parallel: int


TRIED: dict[str, tuple[Any, ...]] = {
    "recompute": ("none", "alternate", "full"),
    "pipeline_parallel": (1, 2, 4, 8, 16),
    "zero_stage": (1, 3),
    "tensor_parallel": (1, 2, 4, 8),
    "micro_batch_size": (1, 2, 4, 8),
    "expert_parallel": (1, 2, 4, 8, 16, 32, 64),
}
"""What a search tries of each part of a layout where nothing is given, the plainest first."""


def layouts(num_gpus: int, fixed: Mapping[str, int | str], experts: int = 0) -> list[Layout]:
    """The layouts that are tried on so many GPUs, the plainest first.

    Those with all that is given. A pipeline is tried with ZeRO 1 alone, unless a stage
    is given; experts are spread as far as there are so many.

    >>> tuple(layouts(1, {"recompute": "full", "micro_batch_size": 2})[0])
    ('full', 1, 1, 1, 2, 1)
    """
    whole = tuple(e for e in TRIED["expert_parallel"] if e == 1 or (experts and experts % e == 0))
    trials = {**TRIED, "expert_parallel": whole}
    choices: list[tuple[Any, ...]] = [
        (fixed[name],) if name in fixed else tried for name, tried in trials.items()
    ]
    every = [Layout(*chosen) for chosen in product(*choices)]
    likely = [
        layout
        for layout in every
        if num_gpus % (layout.pipeline_parallel * layout.tensor_parallel) == 0
        and num_gpus % (layout.pipeline_parallel * layout.expert_parallel) == 0
        and (layout.pipeline_parallel == 1 or layout.zero_stage == 1 or "zero_stage" in fixed)
    ]
    return likely or every  # of which none comes out even: whoever plans one is told why


def best_split(
    model: Model,
    accelerator: Chip,
    num_gpus: int,
    global_batch_size: int,
    tokens: float = 1e12,
    **options: Unpack[SearchOptions],
) -> Plan:
    """The plan on these GPUs whose step is the shortest of those that fit.

    By the plan's own seconds, over 1 to 8 GPUs of tensor parallelism, micro-batches of
    1 to 8, ZeRO 1 and 3, pipelines of up to 16 stages with ZeRO 1, experts spread over up
    to 64 (whole, if replicas alone don't divide), and nothing recomputed, every other
    product, or all. `options` are other arguments of `plan_run`; one that says how to split
    (`recompute`, `zero_stage` or `shard`, `micro_batch_size`, `tensor_parallel`,
    `pipeline_parallel`, `expert_parallel`) is obeyed, and the others are searched.

    A tuned model's matrices are shared by as few GPUs as will do.
    Where seconds do not tell splits apart, the model of a step does, or, if it does not
    know the chip, what is sent between replicas; then the plainest goes first. Where
    none fits, the one that holds least. ValueError where no split comes out even.

    >>> model = Transformer.llama(80, 8192, 64, 8, 28672, 128256, 4096)
    >>> h100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})
    >>> plan = best_split(model, h100, 64, 1024)
    >>> plan.split.tensor_parallel, plan.run.zero_stage, plan
    (8, 1, <Plan: 201 days, 62.9 GB a GPU, fits>)
    """
    n = single("num_gpus", num_gpus)
    B = single("global_batch_size", global_batch_size)
    fixed: dict[str, Any] = {**options}
    model = known_model(model, fixed.pop("sequence_length", None))
    accelerator, fixed = known_accelerator(accelerator), spelt_out(fixed)
    run = {"num_gpus": n, "global_batch_size": B, "tokens": tokens, **fixed}
    _check_single(model, accelerator, run)
    tried = layouts(n, _of_layout(fixed), model.num_experts)
    first = _first_even(model, accelerator, tried, run)

    @cache
    def needed(layout: Layout) -> float:
        """Bytes on a GPU with the reserve; infinite where the layout does not come out even."""
        changes = layout._asdict()
        sizes = {name: changes[name] for name in SIZES if name in changes}
        if not all(rule.holds for rule in first.run.rules(**sizes)):
            return math.inf
        run = first.run.if_even(**changes)
        if run is None:
            return math.inf
        return float(memory_per_gpu(run).total + reserve_bytes(run))

    groups = [tried]
    if first.run.tuning is not None:  # whose seconds don't say what sharing a matrix costs
        widths = sorted({layout.tensor_parallel for layout in tried})
        groups = [[layout for layout in tried if layout.tensor_parallel == t] for t in widths]
    for group in groups:
        best: Plan | None = None
        price: tuple[float, ...] = (math.inf,)
        bounds = zip(least_prices(first, group), group, strict=True)
        for bound, layout in sorted(bounds, key=lambda pair: pair[0]):
            if bound > price[: len(bound)]:
                break
            if needed(layout) <= first.card:
                plan = first.replace(**layout._asdict())
                if step_price(plan, first) < price:
                    best, price = plan, step_price(plan, first)
        if best is not None:
            return best
    return first.replace(**min(tried, key=needed)._asdict())


def _of_layout(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options say of a layout, each of its numbers checked."""
    layout = {name: options[name] for name in TRIED if name in options}
    for name in {*layout} - {"recompute"}:
        layout[name] = single(name, layout[name], least=int(name != "zero_stage"))
    return layout


def _check_single(model: Transformer, accelerator: Accelerator, run: Mapping[str, object]) -> None:
    """Refuse arrays: a best split is that of one plan."""
    if is_array(count_parameters(model).total):
        refuse("model", model, "is many shapes: here it must be one")
    if any(map(is_array, vars(accelerator).values())):
        refuse("accelerator", accelerator, "is many: here it must be one")
    for name, value in {**run, "sequence_length": model.sequence_length}.items():
        if is_array(value):
            refuse(name, value, "is an array: here it must be one number")


def _first_even(
    model: Transformer, accelerator: Accelerator, tried: Sequence[Layout], run: Mapping[str, Any]
) -> Plan:
    """The plan of the first layout that comes out even, whether it fits or not."""
    problem = None
    for layout in tried:
        try:
            return plan_run(model, accelerator, **{**run, **layout._asdict()})
        except ValueError as error:
            problem = problem or error
    raise problem or ValueError(f"num_gpus={run['num_gpus']} has no split")


def least_prices(first: Plan, tried: Sequence[Layout]) -> Iterator[tuple[float, float]]:
    """The two numbers that the `step_price` of each layout begins with, at the least.

    Those of computing alone, as if layers came out even over the stages, nothing was
    sent and no update made; a head hides where an uneven last stage has room for it.
    """
    run, split = first.run, first.split
    n, c, v, B = split.num_gpus, split.context_parallel, split.interleave, run.global_batch_size
    by_step = run.pace is not None or (
        run.utilizations is None and first.shares not in UTILIZATIONS.values()
    )
    unit = float(first.seconds_per_iteration.likely)

    @cache
    def computing(recompute: EveryRecompute, t: int) -> tuple[float, float, float]:
        """Seconds of a sequence, of launching its kernels, and its head, on GPUs that share it."""
        one_stage = run.if_even(
            num_gpus=t * c,
            global_batch_size=1,
            micro_batch_size=1,
            tensor_parallel=t,
            pipeline_parallel=1,
            interleave=1,
            expert_parallel=1,
            imbalance=1,
            recompute=recompute,
        )
        step = None if one_stage is None else step_parts(one_stage, run_traffic(one_stage))
        if one_stage is None or step is None:
            return 0.0, 0.0, 0.0
        head = 0.0 if run.uneven_stages else float(step.head)
        launches = float(launch_seconds(one_stage, kernels_of(run)[1]))
        return float(step.matmuls + step.memory), launches, head

    for recompute, p, _, t, b, _ in tried:
        sequences = B * t * p * c / n  # of each replica in a step
        m = max(sequences / b, 1)
        bubble = 0.0 if p == 1 else float((p - 1) / (v * m))
        if run.tuning is not None and recompute not in RECOMPUTED:
            yield math.inf, math.inf  # refused
            continue
        at_peak = run_flops(run, 1, recompute).total * B / (n * run.peak)
        step = 0.0
        if first.step is not None:
            a_sequence, launches, head = computing(recompute, t)
            layers = sequences * layer_seconds(run, a_sequence, launches / b) / p
            step = float((layers * (1 + bubble) + sequences * head) / first.step.total)
        if run.flops_per_gpu is not None:
            seconds = float(at_peak * run.peak / run.flops_per_gpu) / unit
        elif by_step:
            seconds = step
        else:
            seconds = float(at_peak * (1 + bubble) / first.shares.steps[1]) / unit
        yield round(seconds, 6), round(max(step, 0.0 if first.step else seconds), 6)


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
