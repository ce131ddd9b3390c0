"""The best split of given GPUs, by branch and bound. Goes with notebooks/11_budget.ipynb.

Every layout has a bound: the least time that its step can take, which we know without
planning it. If we go through the layouts in the order of their bounds, most are never planned,
because an earlier plan is faster than their bound. Sources: those of `plan`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, lru_cache, partial
from itertools import product
from typing import Any, NamedTuple, Unpack

from llmtrain_helpers.checks import cache_per_model, choice, is_array, refuse, single
from llmtrain_helpers.communication import NODE_BANDWIDTH, traffic_seconds
from llmtrain_helpers.finetune import RECOMPUTED
from llmtrain_helpers.flops import EVERY_RECOMPUTE, EveryRecompute
from llmtrain_helpers.memory import Memory
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.model.names import Chip, Model, known_accelerator, known_model
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.memory import memory_per_gpu, reserve_bytes
from llmtrain_helpers.plan.options import SearchOptions
from llmtrain_helpers.plan.pace import UTILIZATIONS
from llmtrain_helpers.plan.plan import Plan, plan_run, run_flops, run_traffic
from llmtrain_helpers.plan.run import NUMBERS, SIZES, Run, spelt_out
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
"""The values that a search tries for each part of a layout, simplest first."""


def layouts(num_gpus: int, fixed: Mapping[str, int | str], experts: int = 0) -> list[Layout]:
    """Yield the layouts to try on this many GPUs, simplest first.

    They all respect the given options. A pipeline is only tried with ZeRO 1, unless a stage
    is given; experts are spread over at most as many GPUs as there are experts.

    >>> tuple(layouts(1, {"recompute": "full", "micro_batch_size": 2})[0])
    ('full', 1, 1, 1, 2, 1)
    """
    return [*_layouts(num_gpus, tuple(fixed.items()), experts)]


@lru_cache(64)
def _layouts(num_gpus: int, given: tuple[tuple[str, int | str], ...], experts: int) -> list[Layout]:
    """The same with options as pairs, to be cached: many models ask about the same GPUs."""
    fixed = dict(given)
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
    return likely or every  # none divides evenly; planning one explains why


def best_split(
    model: Model,
    accelerator: Chip,
    num_gpus: int,
    global_batch_size: int,
    tokens: float = 1e12,
    **options: Unpack[SearchOptions],
) -> Plan:
    """Find the fastest split that fits on these GPUs, and return its plan.

    Searches tensor parallelism 1 to 8, micro-batches of 1 to 8, ZeRO 1 and 3, pipelines of
    up to 16 stages with ZeRO 1, experts spread over up to 64 GPUs (whole, if replicas alone
    don't divide), and recomputing nothing, every other product or everything, using the
    plan's own step times. `options` are other arguments of `plan_run`. Any that fixes part of
    the split (`recompute`, `zero_stage` or `shard`, `micro_batch_size`, `tensor_parallel`,
    `pipeline_parallel`, `expert_parallel`) is respected; the rest are searched.

    In tuning, as few GPUs as possible share each matrix.
    Ties are broken by the step model or, for a chip it doesn't know, by the traffic between
    replicas, and then in favour of the simplest split. If nothing fits, returns the split
    that needs the least memory. Raises ValueError if no split divides evenly.

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
    needs = Needs(first.run)
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
            if needs.within(first.card, layout):
                plan = needs.plan(layout)
                if step_price(plan, first) < price:
                    best, price = plan, step_price(plan, first)
        if best is not None:
            return best
    nearest = tried[0]
    for layout in tried:
        least = needs.exactly(nearest)
        if needs.within(least, layout) and needs.exactly(layout) < least:
            nearest = layout
    return needs.plan(nearest)


class Counted(NamedTuple):
    """The run of a layout, the memory of its GPU, its states, and the total with the reserve."""

    run: Run
    memory: Memory
    states: float
    needed: float


class Needs:
    """Bytes that a GPU needs under other layouts of a run, with the reserve.

    Only counts them if those of similar layouts don't show that it's too much.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.even = run, cache(partial(_comes_out_even, run))
        self.counted: dict[Layout, Counted | None] = {}
        self.similar = defaultdict[Layout, list[Counted]](list)
        self.states = defaultdict[Layout, float](float)

    def within(self, limit: float, layout: Layout) -> bool:
        """Tell whether a layout needs at most this many bytes."""
        return self.at_least(layout) <= limit and self.exactly(layout) <= limit

    def at_least(self, layout: Layout) -> float:
        """A bound from below.

        Micro-batch and recomputation don't change the states. If you halve the micro-batch,
        everything else is at least half of what it was, and more sequences never need less, as
        long as a step has several passes.
        """
        b = layout.micro_batch_size
        ways = layout.tensor_parallel * layout.pipeline_parallel * self.run.context_parallel
        several = self.run.global_batch_size * ways > self.run.num_gpus * b
        bounds = [self.states[_of_states(layout)]]
        for other in self.similar[layout._replace(micro_batch_size=1)]:
            if b < other.run.micro_batch_size:
                share = b / other.run.micro_batch_size
                bounds.append(other.states + share * (other.needed - other.states))
            elif several:
                bounds.append(other.needed)
        return max(bounds)

    def exactly(self, layout: Layout) -> float:
        """The exact bytes; infinite if the layout doesn't divide evenly."""
        if layout not in self.counted:
            self.counted[layout] = counted = self._count(layout)
            if counted is not None:
                self.similar[layout._replace(micro_batch_size=1)].append(counted)
                self.states[_of_states(layout)] = counted.states
        counted = self.counted[layout]
        return math.inf if counted is None else counted.needed

    def plan(self, layout: Layout) -> Plan:
        """The plan of a layout; raises ValueError if it doesn't divide evenly."""
        counted = self.counted.get(layout)
        if counted is None:
            return Plan.of(self.run.replace(**layout._asdict()))
        return Plan.of(counted.run, counted.memory)

    def _count(self, layout: Layout) -> Counted | None:
        sizes = layout._replace(recompute="none", zero_stage=0)  # which have to divide evenly
        run = self.run.if_even(**layout._asdict()) if self.even(sizes) else None
        if run is None:
            return None
        memory, reserve = memory_per_gpu(run), reserve_bytes(run)
        states = memory.weights + memory.main_weights + memory.optimizer
        return Counted(run, memory, float(states + reserve), float(memory.total + reserve))


def _of_states(layout: Layout) -> Layout:
    """The layout that stands for all layouts with the same states."""
    return layout._replace(micro_batch_size=1, recompute="none")


def _comes_out_even(run: Run, layout: Layout) -> bool:
    """Tell whether a run's sizes divide under a layout, without building an error message."""
    changes = layout._asdict()
    return all(rule.holds for rule in run.rules(**{x: changes[x] for x in SIZES if x in changes}))


def _of_layout(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked options that describe a layout."""
    layout = {name: options[name] for name in TRIED if name in options}
    for name in {*layout} - {"recompute"}:
        layout[name] = single(name, layout[name], least=int(name != "zero_stage"))
    if "recompute" in layout:
        choice("recompute", layout["recompute"], EVERY_RECOMPUTE)
    return layout


def _check_single(model: Transformer, accelerator: Accelerator, run: Mapping[str, object]) -> None:
    """Refuse arrays, because a best split belongs to one plan."""
    if is_array(count_parameters(model).total):
        refuse("model", model, "is a sweep of shapes: here it must be one shape")
    if any(map(is_array, vars(accelerator).values())):
        refuse("accelerator", accelerator, "is a sweep: here it must be a single one")
    for name, value in {**run, "sequence_length": model.sequence_length}.items():
        if is_array(value):
            refuse(name, value, "is an array: here it must be one number")


def _first_even(
    model: Transformer, accelerator: Accelerator, tried: Sequence[Layout], run: Mapping[str, Any]
) -> Plan:
    """Return the plan of the first layout that divides evenly, whether it fits or not."""
    problem = None
    for layout in tried:
        try:
            return plan_run(model, accelerator, **{**run, **layout._asdict()})
        except ValueError as error:
            problem = problem or error
    raise problem or ValueError(f"num_gpus={run['num_gpus']} has no split")


def least_prices(first: Plan, tried: Sequence[Layout]) -> Iterator[tuple[float, float]]:
    """Return lower bounds of the first two numbers of each layout's `step_price`.

    They assume that layers divide evenly over the stages, that nothing is sent except inside
    layers, and that there's no update; a head is hidden if an uneven last stage has room.
    """
    run, split = first.run, first.split
    n, c, v, B = split.num_gpus, split.context_parallel, split.interleave, run.global_batch_size
    by_step = run.pace is not None or (
        run.utilizations is None and first.shares not in UTILIZATIONS.values()
    )
    unit = float(first.seconds_per_iteration.likely)
    assumed = {name: getattr(run, name) for name in ASSUMED}

    @cache
    def unsplit(recompute: EveryRecompute, t: int) -> Unsplit:
        """Seconds of a sequence on GPUs that share it."""
        return _unsplit_seconds(run.model, run.accelerator, recompute, t, c, **assumed)

    @cache
    def at_peak(recompute: EveryRecompute) -> float:
        """Seconds of a step at the chip's peak; infinite if tuning refuses it."""
        if run.tuning is not None and recompute not in RECOMPUTED:
            return math.inf
        return float(run_flops(run, 1, recompute).total * B / (n * run.peak))

    for recompute, p, _, t, b, e in tried:
        if math.isinf(at_peak(recompute)):
            yield math.inf, math.inf
            continue
        sequences = B * t * p * c / n  # of each replica in a step
        m = max(sequences / b, 1)
        bubble = 0.0 if p == 1 else float((p - 1) / (v * m))
        step = 0.0
        if first.step is not None:
            a_sequence = unsplit(recompute, t)
            of_layers = layer_seconds(run, a_sequence.computing, a_sequence.launches / b)
            whole = n // (t * p) % e != 0  # whole experts need fewer sums inside a layer
            layers = sequences * (of_layers + (0 if whole else a_sequence.travel)) / p
            step = float((layers * (1 + bubble) + sequences * a_sequence.head) / first.step.total)
        if run.flops_per_gpu is not None:
            seconds = float(at_peak(recompute) * run.peak / run.flops_per_gpu) / unit
        elif by_step:
            seconds = step
        else:
            seconds = float(at_peak(recompute) * (1 + bubble) / first.shares.steps[1]) / unit
        yield round(seconds, 6), round(max(step, 0.0 if first.step else seconds), 6)


ASSUMED = tuple(
    item.name
    for item in fields(Run)
    if item.init and item.name not in {*NUMBERS, "model", "accelerator", "recompute", "imbalance"}
)
"""The assumptions of a run that don't depend on the model or the split."""


class Unsplit(NamedTuple):
    """Seconds of a sequence on GPUs that only share matrices and sequences.

    For its layers: computing, launching, and sending without latency; and for its head.
    """

    computing: float = 0.0
    launches: float = 0.0
    travel: float = 0.0
    head: float = 0.0


@cache_per_model
def _unsplit_seconds(
    model: Transformer,
    accelerator: Accelerator,
    recompute: EveryRecompute,
    tensor_parallel: int,
    context_parallel: int,
    **assumed: Any,
) -> Unsplit:
    """Seconds of a sequence if nothing else is split; 0 if that doesn't divide evenly."""
    t, c, s = tensor_parallel, context_parallel, model.sequence_length
    ways = assumed | {"tensor_parallel": t, "context_parallel": c}
    try:
        run = Run(model, accelerator, t * c, s, 1, recompute, **ways)
    except ValueError:
        return Unsplit()
    sent = run_traffic(run)
    step = step_parts(run, sent)
    if step is None:
        return Unsplit()
    hidden = dict.fromkeys(run.overlapped_traffic, step.matmuls)
    seconds = traffic_seconds(sent, accelerator, run.split, calls={}, behind=hidden)
    assert seconds is not None  # a step has links
    visible = seconds.visible
    return Unsplit(
        computing=float(step.matmuls + step.memory),
        launches=float(launch_seconds(run, kernels_of(run)[1])),
        travel=float(visible["tensor"] + visible["sequence"] + visible["context"]),
        head=0.0 if run.uneven_stages else float(step.head),
    )


def step_price(plan: Plan, first: Plan) -> tuple[float, ...]:
    """Return a plan's step as a share of the first plan's, then the tie-breakers."""
    t, p = plan.split.tensor_parallel, plan.split.pipeline_parallel
    unit = float(first.seconds_per_iteration.likely)
    seconds = float(plan.seconds_per_iteration.likely) / unit
    by_model = seconds
    if plan.step is not None and first.step is not None:
        by_model = float(plan.step.total / first.step.total)
    elif not plan.counts_traffic:
        by_model = max(seconds, float(plan.traffic) * min(t, 8) / NODE_BANDWIDTH / unit)
    plainness = (p, t, plan.run.zero_stage, -float(plan.memory.total))
    return (round(seconds, 6), round(by_model, 6), *plainness)
