"""What to change in a plan, and what else there is. Beside notebooks/08_plan.ipynb.

`advise` finds the cheapest changes that make a plan fit, `fewest_gpus` the least that
it fits on, `sweep` every plan that some choices make. Sources: those of `plan`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.checks import (
    Number,
    Result,
    at_most,
    choice,
    count,
    flag,
    instance,
    is_array,
    numpy,
    refuse,
    single,
)
from llmtrain_helpers.communication import NODE_BANDWIDTH
from llmtrain_helpers.flops import EVERY_RECOMPUTE, RECOMPUTE
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.plan import SIZES, Plan, is_many, memory_with, plan_run


def fewest_gpus(plan: Plan) -> Plan:
    """The plan on the fewest GPUs on which it fits, split as it is.

    More GPUs are more replicas: they never hold more, and less only where ZeRO shards
    over them, and where a pipeline has fewer micro-batches in flight. Takes any plan of
    one split; ValueError if it fits on no number of GPUs that divides the batch, saying
    by how much.

    >>> model = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plan = plan_run(model, a100, 8, 1e12, 512, recompute="full", zero_stage=3)
    >>> fewest_gpus(plan).split.num_gpus
    4
    """
    _check_one(plan)
    found, least, largest = _from_how_many(plan)
    if found is None:
        over = least + plan.reserve - plan.inputs["accelerator"].memory
        raise ValueError(
            f"the model fits on no number of GPUs at this split: on {_shares(plan)} to "
            f"{largest:,} it takes at least {units.gigabytes(least)} on each and a "
            f"reserve of {units.gigabytes(plan.reserve)}, {units.gigabytes(over)} more "
            "than there is"
        )
    return plan.but(num_gpus=found)


def _from_how_many(plan: Plan, **changes: Any) -> tuple[int | None, float, int]:
    """The fewest GPUs on which a changed plan fits; what is held on most, how many."""
    inputs = {**plan.inputs, **changes}
    shares = _shares(plan, **changes)
    passes = inputs["global_batch_size"] // inputs["micro_batch_size"]
    replicas = _divisors(passes)
    most = inputs["accelerator"].memory - plan.reserve

    def held(d: int) -> float:
        return float(memory_with(plan, **{**changes, "num_gpus": shares * d}).total)

    least = held(replicas[-1])
    if least > most:
        return None, least, shares * replicas[-1]
    first = bisect_left(replicas, True, key=lambda d: held(d) <= most)
    return shares * replicas[first], least, shares * replicas[-1]


def _shares(plan: Plan, **changes: Any) -> int:
    """GPUs of one replica."""
    inputs = {**plan.inputs, **changes}
    ways = (inputs[f"{x}_parallel"] for x in ("tensor", "pipeline", "context"))
    return prod(ways)


def _check_one(plan: Plan) -> None:
    instance("plan", plan, Plan)
    if is_many(plan):
        refuse("plan", plan, "is many: here it must be one")


def _divisors(whole: int) -> list[int]:
    small = [d for d in range(1, isqrt(whole) + 1) if whole % d == 0]
    return sorted({*small, *(whole // d for d in small)})


@dataclass(frozen=True)
class Advice:
    """One thing to change in a plan that does not fit, what it saves and what it costs.

    `change` names inputs and their new values; `plan` has this change and those before;
    `saved` is in bytes on each GPU; `dearer` the share by which GPU-hours grow,
    communication included; `sent` the bytes more that each GPU sends in a step.
    """

    change: Mapping[str, Any]
    plan: Plan
    saved: Result
    dearer: Result
    sent: Result


def advise(plan: Plan) -> tuple[Advice, ...]:
    """The cheapest changes that make the plan fit, reserve included; free ones first.

    Looks at every smaller micro-batch, higher stage of ZeRO and further recomputation,
    and takes the set that fits at the lowest price: GPU-hours first, then bytes sent,
    then the larger micro-batch. Where none fits, more GPUs, as few as will do: more
    replicas, or else up to eight times the tensor parallelism as well. If nothing makes
    it fit, the last plan's `room` says by how much, and `fewest_gpus` in words.

    The price is that of the plan's own seconds, sending and launching in it. Where the
    chip's bandwidths are unknown, a step takes its computing or its sending between
    replicas, whichever is longer, at `NODE_BANDWIDTH`. A pipeline is offered no ZeRO
    beyond stage 1 unless the plan says what becomes of its gradients.

    >>> model = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plan = plan_run(model, a100, 8, 1e12, 512, recompute="none", micro_batch_size=4)
    >>> [advice.change for advice in advise(plan)]
    [{'zero_stage': 1}, {'micro_batch_size': 1}, {'recompute': 'full'}]
    """
    _check_one(plan)
    if plan.fits:
        return ()
    candidates = [*_cheaper_memory(plan)]
    most = plan.inputs["accelerator"].memory - plan.reserve
    fitting = [plan.but(**change) for change, held in candidates if held <= most]
    best = min(fitting, key=lambda other: _price(other, plan), default=None)
    best = best or _on_more_gpus(plan)
    smallest, _ = min(candidates, key=lambda candidate: candidate[1])
    return tuple(_in_steps(plan, best or plan.but(**smallest)))


def _cheaper_memory(plan: Plan) -> Iterator[tuple[dict[str, Any], float]]:
    """Every smaller micro-batch, higher stage and more recomputation: bytes held."""
    sizes = _divisors(plan.split.micro_batch_size * plan.split.accumulation_steps)
    choices = (
        [z for z in range(4) if z >= plan.inputs["zero_stage"]],
        [b for b in sizes if b <= plan.split.micro_batch_size],
        _further(plan),
    )
    for values in product(*choices):
        change = dict(zip(_LEVERS, values, strict=True))
        try:
            yield change, float(memory_with(plan, **change).total)
        except ValueError:  # this stage of ZeRO does not go with the pipeline
            continue


_LEVERS = ["zero_stage", "micro_batch_size", "recompute"]
_WIDENED = [*_LEVERS, "num_gpus", "tensor_parallel"]
"""What advice changes, in the order in which it is told: what is free comes first."""


def _price(plan: Plan, before: Plan) -> tuple[float, ...]:
    """What to compare plans by: dearer GPU-hours, bytes sent, the micro-batch."""
    changed = sum(plan.inputs[x] != before.inputs[x] for x in _LEVERS)
    dearer = round(_gpu_seconds(plan) / _gpu_seconds(before), 3)
    return dearer, plan.traffic, -plan.split.micro_batch_size, changed


def _gpu_seconds(plan: Plan) -> float:
    """GPU-seconds of a step: computing, or sending if that takes longer.

    The model of a step has both in it; without one a node's bandwidth is assumed.
    """
    if plan.step is not None:
        return float(plan.seconds_per_iteration.likely * plan.split.num_gpus)
    bandwidth = NODE_BANDWIDTH / min(plan.split.tensor_parallel, 8)
    seconds = max(plan.seconds_per_iteration.likely, plan.traffic / bandwidth)
    return float(seconds * plan.split.num_gpus)


def _on_more_gpus(plan: Plan) -> Plan | None:
    """On the fewest more GPUs that do: replicas with ZeRO, or a wider split as well."""
    t, stage = plan.inputs["tensor_parallel"], plan.inputs["zero_stage"]
    for k in (1, 2, 4, 8):
        found = []
        for again, higher in product(_further(plan), range(stage, 4)):
            change = {"tensor_parallel": k * t, "zero_stage": higher}
            change |= {"recompute": again, "micro_batch_size": 1}
            try:
                n, _, _ = _from_how_many(plan, **change)
            except ValueError:  # does not come out even
                continue
            found += [] if n is None else [change | {"num_gpus": n}]
        if found:
            fewest = min(change["num_gpus"] for change in found)
            few = [plan.but(**x) for x in found if x["num_gpus"] == fewest]
            return min(few, key=lambda p: _price(p, plan))
    return None


def _further(plan: Plan) -> list[str]:
    """What recomputes as much or more; selective only where scores are stored."""
    now, stored = plan.inputs["recompute"], plan.inputs["attention"] == "unfused"
    if now == "alternate":
        return ["alternate", "full"]
    further = RECOMPUTE[RECOMPUTE.index(now) :]
    return [r for r in further if r != "selective" or stored or r == now]


def _in_steps(plan: Plan, best: Plan) -> Iterator[Advice]:
    """From one plan to the other, one thing at a time, what is free first."""
    wanted = {x: best.inputs[x] for x in _WIDENED if best.inputs[x] != plan.inputs[x]}
    alone = _LEVERS if "num_gpus" not in wanted else _LEVERS[1:]
    changes = [{x: wanted[x]} for x in alone if x in wanted]
    wider = {x: wanted[x] for x in wanted if x not in alone}
    for change in filter(None, [*changes, wider]):
        better = plan.but(**change)
        saved = plan.memory.total - better.memory.total
        dearer = _gpu_seconds(better) / _gpu_seconds(plan) - 1
        yield Advice(change, better, saved, dearer, better.traffic - plan.traffic)
        plan = better


@dataclass(frozen=True, eq=False)
class Sweep:
    """Many plans: one `Plan` of arrays for each recomputation and ZeRO stage."""

    plans: tuple[Plan, ...]

    def __len__(self) -> int:
        return sum(len(plan.seconds.likely) for plan in self.plans)

    def columns(self) -> dict[str, Any]:
        """The plans as columns of a table, one entry a plan.

        The split, `recompute` and `zero_stage`; `memory` and `room` in bytes, `fits`;
        `bubble`; `mfu`; `seconds` (likely); `throughput` in tokens/s.
        """
        np = numpy()

        tables = [_columns(plan) for plan in self.plans]
        return {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}

    def fastest(self) -> Plan:
        """The fastest that fits, as far as a plan knows; of equals the least split.

        Held against 48 groups of measured splits, the one it names is 5 % slower than
        the best, and the best of its `first` three 1.3 %: measuring three beats
        trusting one. Where the chip's bandwidths are unknown, neither communication nor
        small matrices count, and the order is no better than chance.

        ValueError if none fits, saying by how much the nearest does not.
        """
        return self.first(1)[0]

    def first(self, how_many: Number = 3) -> tuple[Plan, ...]:
        """The fastest few that fit, best first: those to measure. See `fastest`."""
        np = numpy()

        table = self.columns()
        if not table["fits"].any():
            short = units.gigabytes(-table["room"].max())
            raise ValueError(f"none of {len(self):,} plans fits: at best {short} short")
        ways = [table[f"{kind}_parallel"] for kind in ("context", "pipeline", "tensor")]
        a_copy = np.prod(ways, axis=0)
        order = np.lexsort((*ways, a_copy, table["seconds"].round(6), ~table["fits"]))
        few = min(single("how_many", how_many), table["fits"].sum())
        best = [{x: table[x][i].item() for x in _CHOSEN} for i in order[:few]]
        return tuple(self.plans[0].but(**chosen) for chosen in best)


_CHOSEN = ["num_gpus", "tokens", "global_batch_size", *SIZES, "recompute", "zero_stage"]


def _columns(plan: Plan) -> dict[str, Any]:
    np = numpy()

    known = {name: plan.inputs[name] for name in _CHOSEN} | {
        "data_parallel": plan.split.data_parallel,
        "accumulation_steps": plan.split.accumulation_steps,
        "memory": plan.memory.total,
        "room": plan.room,
        "fits": plan.fits,
        "bubble": plan.split.bubble,
        "mfu": plan.mfu,
        "seconds": plan.seconds.likely,
        "throughput": plan.throughput,
    }
    size = len(plan.seconds.likely)
    return {name: np.broadcast_to(column, size) for name, column in known.items()}


def sweep(
    model: Transformer,
    accelerator: Accelerator,
    num_gpus: Any,
    tokens: Any,
    global_batch_size: Any,
    *,
    recompute: Any,
    micro_batch_size: Any = (1, 2, 4, 8),
    tensor_parallel: Any = (1, 2, 4, 8),
    pipeline_parallel: Any = (1, 2, 4, 8, 16),
    context_parallel: Any = 1,
    interleave: Any = 1,
    expert_parallel: Any = 1,
    zero_stage: Any = 0,
    **options: Any,
) -> Sweep:
    """Every plan that these choices make, in one call.

    Each argument takes one value or several (a list, a tuple, an array); `options` are
    the other arguments of `plan_run`. Splits that do not come out even are left out,
    and pipelines with ZeRO 2 or 3 unless `keep_gradients` is among the options. What a
    split costs is what a plan says (`step_seconds`); where the chip's bandwidths are
    unknown, only bubble, memory and recomputed work, and of equals the one that splits
    least stands first. ValueError if no split comes out even.

    >>> gpt3 = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plans = sweep(gpt3, a100, 1024, 300e9, 1536, recompute=["none", "full"],
    ...     pipeline_parallel=[1, 2, 4, 8, 16], zero_stage=1)
    >>> len(plans), plans.fastest()
    (120, <Plan: 28.3 days, 55.5 GB a GPU, fits>)
    """
    np = numpy()

    sizes = {name: value for name, value in locals().items() if name in _GRID}
    axes = [_axis(name, sizes[name]) for name in _GRID]
    again = [choice("recompute", r, EVERY_RECOMPUTE) for r in _several("recompute", recompute)]
    stages = [single("zero_stage", z, 0) for z in _several("zero_stage", zero_stage)]
    pairs = dict.fromkeys(product(again, stages))  # each once
    size = prod(map(len, axes)) * len(pairs)
    at_most("plans in the sweep", size, "what one call takes", 10_000_000)
    mesh = dict(zip(_GRID, map(np.ravel, np.meshgrid(*axes)), strict=True))
    even = _even(model, mesh, options)
    if not even.any():
        raise ValueError(f"none of {size:,} splits comes out even: see plan_run")
    plans = []
    for r, z in pairs:
        can = even & _gradients_told(z, mesh, options)
        grid = {name: column[can] for name, column in mesh.items()}
        if can.any():
            chosen = {**grid, "recompute": r, "zero_stage": z, **options}
            plans.append(plan_run(model, accelerator, **chosen))
    return Sweep(tuple(plans) or refuse("zero_stage", stages, _UNTOLD))


_UNTOLD = "with pipelines alone: see keep_gradients in plan_run"


def _gradients_told(stage: int, mesh: Mapping[str, Any], options: Any) -> Any:
    """Which plans do not need to be told what becomes of their gradients, or are."""
    told = options.get("keep_gradients") is not None
    return (mesh["pipeline_parallel"] == 1) | (told or stage < 2)


def _several(name: str, values: Any) -> list[Any]:
    """The choices of an axis: one value, or several of them."""
    many = isinstance(values, (list, tuple, range)) or is_array(values)
    found = list(values) if many else [values]
    return found or refuse(name, values, "is empty")


def _axis(name: str, values: Any) -> Any:
    np = numpy()

    if is_array(values):
        return np.ravel(count(name, values))
    checked = [single(name, value) for value in _several(name, values)]
    return np.array(checked, dtype=float)


_GRID = ["num_gpus", "tokens", "global_batch_size", *SIZES]


def _even(model: Transformer, mesh: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """Which of the splits come out even: what `plan_run` would refuse is false."""
    np = numpy()

    instance("model", model, Transformer)
    if is_array(count_parameters(model).total):
        refuse("model", model, "is many shapes: here it must be one")
    n, T, B, b, t, p, c, v, e = (mesh[name] for name in _GRID)
    l, s = model.num_layers, model.sequence_length
    heads = [x for _, y in model.layers for m in y.mixers for x in m.heads().values()]
    d = np.maximum(n // (t * p * c), 1)
    pairs = [(n, t * p * c), (s, c), (B, b * d), *((x, t) for x in heads)]
    if flag("sequence_parallel", options.get("sequence_parallel", True)):
        pairs.append((s, t * c))
    if not flag("uneven_stages", options.get("uneven_stages", False)):
        pairs.append((l, p * v))
    holds = [whole % part == 0 for whole, part in pairs]
    pieces = (v == 1) | ((p > 1) & (v <= l) & (p * v <= l + 2))
    spread = (e == 1) | ((model.num_experts % e == 0) & (d % e == 0) & (e <= model.num_experts))
    return np.logical_and.reduce([*holds, pieces, spread, p <= l, b <= B, B * s <= T])
