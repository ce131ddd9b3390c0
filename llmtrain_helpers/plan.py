"""Chapter 07: the whole plan of a run. Beside notebooks/07_plan.ipynb.

Sources: those of the chapters before; Narayanan et al. (arXiv 2104.04473), section 2.2,
for the pipeline's bubble and the micro-batches in flight; Rajbhandari et al. (arXiv
1910.02054), section 7, for what ZeRO communicates. The utilisations are those of the
published runs in data/training_runs.csv.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.activations import ActivationCount, count_activations, value_bytes
from llmtrain_helpers.architecture import (
    Accelerator,
    Breakdown,
    Transformer,
    shared_out,
)
from llmtrain_helpers.batch import accumulation_steps, data_parallel_size
from llmtrain_helpers.checks import (
    Number,
    Result,
    at_most,
    choice,
    count,
    divides,
    flag,
    instance,
    is_array,
    quantity,
    rate,
    refuse,
    single,
)
from llmtrain_helpers.duration import (
    Interval,
    energy,
    gpu_hours,
    iterations,
    over_utilizations,
)
from llmtrain_helpers.flops import RECOMPUTE, FlopCount, count_flops, utilization
from llmtrain_helpers.parameters import (
    ParameterCount,
    count_parameters,
    norm_parameters,
)
from llmtrain_helpers.precision import Recipe, model_state_bytes

HARDWARE_UTILIZATIONS = (0.30, 0.43, 0.53)
"""HFU over whole runs, of exact FLOPs with what was recomputed: the 5th, 50th and 95th
percentile of the published runs (`published.hardware_utilizations`)."""


@dataclass(frozen=True)
class Split:
    """How GPUs and batch are split; each replica does `accumulation_steps` passes."""

    num_gpus: Result
    micro_batch_size: Result
    tensor_parallel: Result
    pipeline_parallel: Result
    context_parallel: Result
    data_parallel: Result
    accumulation_steps: Result

    @property
    def bubble(self) -> Result:
        """The time a pipeline of p stages and m micro-batches adds: (p − 1)/m."""
        return (self.pipeline_parallel - 1) / self.accumulation_steps


@dataclass(frozen=True)
class Memory(Breakdown):
    """Bytes on the GPU that holds most, part by part.

    The model's states as in chapter 05, sharded; `activations` of all micro-batches in
    flight; `transient`, what is there only for a moment: two tensors of logits at the
    loss, or what a layer computes again.
    """

    weights: Result
    gradients: Result
    main_gradients: Result
    main_weights: Result
    optimizer: Result
    activations: Result
    transient: Result


@dataclass(frozen=True, eq=False)
class Plan:
    """What a run takes; made by `plan_run`, varied by `but`.

    `flops` are those of an iteration; `memory` is that of the GPU that holds most;
    `seconds` an interval over the published runs' utilisations, or exact at a given
    rate.
    """

    inputs: Mapping[str, Any]
    parameters: ParameterCount
    flops: FlopCount
    memory: Memory
    split: Split
    iterations: Result
    seconds: Interval

    @property
    def room(self) -> Result:
        """Bytes left on the GPU that holds most; negative if it takes more."""
        return self.inputs["accelerator"].memory - self.memory.total

    @property
    def fits(self) -> Any:
        """Whether a step fits into the accelerator's memory."""
        return self.room >= 0

    @property
    def days(self) -> Interval:
        """Days of the run."""
        return self.seconds.times(1 / units.DAY)

    @property
    def gpu_hours(self) -> Interval:
        """Hours of all GPUs together."""
        return self.seconds.times(gpu_hours(1, self.split.num_gpus))

    @property
    def cost(self) -> Interval | None:
        """What the GPU-hours cost, if a price was given."""
        price = self.inputs["price_per_gpu_hour"]
        return None if price is None else self.gpu_hours.times(price)

    @property
    def energy(self) -> Interval | None:
        """Joules of the GPUs at their design power, if that is known."""
        watts = self.inputs["accelerator"].power
        if watts is None:
            return None
        return self.seconds.times(energy(1, self.split.num_gpus, watts))

    @property
    def total_flops(self) -> Result:
        """FLOPs of the whole run, with what is recomputed."""
        return self.flops.total * self.iterations

    @property
    def mfu(self) -> Result:
        """The likely share of the peak, without recomputed work."""
        work = self.flops.model * self.iterations / self.seconds.likely
        peak = _peak(self.inputs)
        return work / (self.split.num_gpus * peak)

    @property
    def throughput(self) -> Result:
        """The likely tokens a second, over all GPUs."""
        return self.inputs["tokens"] / self.seconds.likely

    def but(self, **changes: Any) -> Plan:
        """The same plan with some of its inputs changed."""
        return plan_run(**{**self.inputs, **changes})

    def __repr__(self) -> str:
        if _is_many(self):
            return f"<{(self.room + 0 * self.seconds.likely).size:,} plans>"
        told = "fits" if self.fits else "does not fit"
        days = units.duration(self.seconds.likely)
        return f"<Plan: {days}, {units.gigabytes(self.memory.total)} a GPU, {told}>"


def plan_run(
    model: Transformer,
    accelerator: Accelerator,
    num_gpus: Number,
    tokens: Number,
    global_batch_size: Number,
    *,
    recompute: str,
    micro_batch_size: Number = 1,
    tensor_parallel: Number = 1,
    pipeline_parallel: Number = 1,
    context_parallel: Number = 1,
    sequence_parallel: bool = True,
    zero_stage: int = 0,
    recipe: str | Recipe = "bf16",
    attention: str = "flash",
    dropout: bool = False,
    uneven_stages: bool = False,
    format: str | None = None,
    utilizations: tuple[float, float, float] = HARDWARE_UTILIZATIONS,
    flops_per_gpu: Number | None = None,
    price_per_gpu_hour: Number | None = None,
) -> Plan:
    """The plan of a run: parameters, FLOPs, memory, whether it fits, days, GPU-hours.

    t = T/(Bs) · F · (1 + (p − 1)/m) / (n·u·peak), with F the exact FLOPs of an
    iteration and its recomputation, p stages of a pipeline, m micro-batches of each
    replica, and three utilisations u (HFU). The peak is that of `format`, or else of
    the chip's 16-bit format. With `flops_per_gpu`, a rate X that was measured, it is
    T/(Bs) · F / (nX): that rate has the bubble in it.

    Memory is that of the pipeline's first stage, which holds min(p, m) micro-batches,
    or of its last, which holds the head, whichever is more, with all gradients there.
    Context-parallel GPUs share the sequence, and ZeRO shards over them as well. Takes
    whole numbers; arrays broadcast. ValueError for a split that does not divide heads,
    sequence, layers (`uneven_stages` rounds up instead), batch or GPUs, for more stages
    than layers, a micro-batch above the batch, and bad input of any kind.

    Left out: communication, how efficient kernels are at a size, the gaps of an
    allocator, the layer that ZeRO 3 gathers, the balance of experts.
    Source: those of the chapters before; the bubble, arXiv 2104.04473 section 2.2.

    >>> gpt3 = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plan = plan_run(gpt3, a100, 1024, 300e9, 1536, recompute="full",
    ...     tensor_parallel=8, pipeline_parallel=8, zero_stage=1, flops_per_gpu=140e12)
    >>> plan
    <Plan: 34.7 days, 14.0 GB a GPU, fits>
    """
    inputs = dict(locals())
    instance("model", model, Transformer)
    instance("accelerator", accelerator, Accelerator)
    inputs |= _checked(inputs)
    split = _split(model, inputs)
    counted = count_flops(model, inputs["global_batch_size"], recompute)
    steps = iterations(tokens, inputs["global_batch_size"], model.sequence_length)
    return Plan(
        inputs=inputs,
        parameters=count_parameters(model),
        flops=counted,
        memory=_memory(model, split, inputs),
        split=split,
        iterations=steps,
        seconds=_seconds(steps * counted.total, split, inputs),
    )


def _checked(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs that are numbers, as such; prices and rates only where they are given."""
    names = ["num_gpus", "tokens", "global_batch_size", *_SIZES]
    checked = {name: count(name, inputs[name]) for name in names}
    checked["zero_stage"] = single("zero_stage", inputs["zero_stage"], least=0)
    if inputs["price_per_gpu_hour"] is not None:
        name = "price_per_gpu_hour"
        checked[name] = quantity(name, inputs[name])
    if inputs["flops_per_gpu"] is not None:
        checked["flops_per_gpu"] = rate("flops_per_gpu", inputs["flops_per_gpu"])
    return checked


_SIZES = [
    "micro_batch_size",
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
]
"""The inputs that split the work; each pair below is one that must divide."""


def _split(model: Transformer, inputs: Mapping[str, Any]) -> Split:
    """The split, refused where it does not come out even."""
    n, B = inputs["num_gpus"], inputs["global_batch_size"]
    b, t, p, c = (inputs[name] for name in _SIZES)
    at_most(**{"global_batch_size": B, "what a plan takes": 10**12})
    at_most(pipeline_parallel=p, num_layers=model.num_layers)
    if not flag("uneven_stages", inputs["uneven_stages"]):
        divides(num_layers=model.num_layers, pipeline_parallel=p)
    divides(sequence_length=model.sequence_length, context_parallel=c)
    if flag("sequence_parallel", inputs["sequence_parallel"]):
        ways = {"tensor_parallel·context_parallel": t * c}
        divides(**{"sequence_length": model.sequence_length, **ways})
    at_most(micro_batch_size=b, global_batch_size=B)
    d = data_parallel_size(n, t, p, c)
    return Split(n, b, t, p, c, d, accumulation_steps(B, b, d))


def _peak(inputs: Mapping[str, Any]) -> Result:
    """The dense peak of the format that was asked for, or of the chip's own 16 bits."""
    chip, format = inputs["accelerator"], inputs["format"]
    return chip.peak(chip.training_format if format is None else format)


def _seconds(work: Result, split: Split, inputs: Mapping[str, Any]) -> Interval:
    """Seconds for so many FLOPs, at a given rate or over the utilisations."""
    X, peak = inputs["flops_per_gpu"], _peak(inputs)
    if X is not None:
        utilization(X, peak)  # refuses a rate above the peak
        exact = work / (split.num_gpus * X)
        return Interval(exact, exact, exact)
    at_peak = work * (1 + split.bubble) / (split.num_gpus * peak)
    return over_utilizations(at_peak, inputs["utilizations"])


def _memory(model: Transformer, split: Split, inputs: Mapping[str, Any]) -> Memory:
    """Bytes on a GPU of the first stage or of the last, whichever holds more."""
    alone = split.pipeline_parallel == 1
    in_flight = _lesser(split.pipeline_parallel, split.accumulation_steps)
    kept = _kept(model, split, inputs, inputs["recompute"])
    again = _kept(model, split, inputs, "none").layers - kept.layers
    again = shared_out(again, model.num_layers)
    first, last = (
        _states(model, split, inputs, embedding, head)
        | _held(model, split, kept, again, embedding, head, flight)
        for embedding, head, flight in ((True, alone, in_flight), (alone, True, 1))
    )
    more = sum(first.values()) >= sum(last.values())
    return Memory(**{x: first[x] * more + last[x] * (1 - more) for x in first})


def _states(
    model: Transformer,
    split: Split,
    inputs: Mapping[str, Any],
    embedding: Any,
    head: Any,
) -> dict[str, Result]:
    """The model's states on a GPU of a stage with the embedding, with the head."""
    layers = -(-model.num_layers // split.pipeline_parallel)
    P = _parameters(model, layers, split.tensor_parallel, embedding, head)
    ways = split.data_parallel * split.context_parallel
    return model_state_bytes(P, inputs["recipe"], inputs["zero_stage"], ways).parts()


def _held(
    model: Transformer,
    split: Split,
    kept: ActivationCount,
    again: Result,
    embedding: Any,
    head: Any,
    in_flight: Result,
) -> dict[str, Result]:
    """The activations of such a stage, and what comes on top for a moment."""
    t, c = split.tensor_parallel, split.context_parallel
    layers = -(-model.num_layers // split.pipeline_parallel)
    in_layers = shared_out(kept.layers, model.num_layers) * layers
    activations = in_flight * (in_layers + embedding * kept.embedding)
    tokens = split.micro_batch_size * model.sequence_length
    logits = head * shared_out(8 * tokens * model.vocab_size, t)
    transient = _greater(again - head * kept.head, logits)
    return {
        "activations": shared_out(activations + head * kept.head, c),
        "transient": shared_out(transient, c),
    }


def _kept(
    model: Transformer, split: Split, inputs: Mapping[str, Any], recompute: str
) -> ActivationCount:
    """What the model keeps for a micro-batch on each GPU that shares its layers."""
    return count_activations(
        model,
        split.micro_batch_size,
        recompute,
        inputs["attention"],
        inputs["dropout"],
        tensor_parallel=split.tensor_parallel,
        sequence_parallel=inputs["sequence_parallel"],
        value_bytes=value_bytes(inputs["recipe"]),
    )


def _parameters(
    model: Transformer, layers: Result, t: Result, embedding: Any, head: Any
) -> Result:
    """Parameters on a GPU: a t-th of the matrices, and norms whole.

    The stage with the head has the output matrix, its own copy where it is tied to an
    embedding on another stage.
    """
    counted, l = count_parameters(model), model.num_layers
    h, V = model.hidden_size, model.vocab_size
    last_norm = norm_parameters(model)
    there_already = model.tied_embeddings * embedding
    matrices = layers * ((counted.attention + counted.mlp) // l)
    matrices = matrices + embedding * counted.embedding
    matrices = matrices + head * (1 - there_already) * V * h
    norms = layers * ((counted.norm - last_norm) // l) + head * last_norm
    return -(-matrices // t) + norms


def _lesser(x: Result, y: Result) -> Result:
    return (x <= y) * x + (x > y) * y


def _greater(x: Result, y: Result) -> Result:
    return (x >= y) * x + (x < y) * y


def fewest_gpus(plan: Plan) -> Plan:
    """The plan on the fewest GPUs on which it fits, split as it is.

    More GPUs are more replicas: they hold less only where ZeRO shards over them, and
    where a pipeline has fewer micro-batches in flight. Takes any plan of one split;
    ValueError if it fits on no number of GPUs that divides the batch, saying by how
    much.

    >>> model = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plan = plan_run(model, a100, 8, 1e12, 512, recompute="full", zero_stage=3)
    >>> fewest_gpus(plan).split.num_gpus
    2
    """
    _check_one(plan)
    replicas = _divisors(plan.split.data_parallel * plan.split.accumulation_steps)
    shares = plan.split.num_gpus // plan.split.data_parallel
    largest = plan.but(num_gpus=shares * replicas[-1])
    if not largest.fits:
        raise ValueError(
            f"the model fits on no number of GPUs at this split: on {shares} to "
            f"{shares * replicas[-1]:,} it takes at least "
            f"{units.gigabytes(largest.memory.total)} on each, "
            f"{units.gigabytes(-largest.room)} more than there is"
        )
    plans = (plan.but(num_gpus=shares * d) for d in replicas)
    return next(candidate for candidate in plans if candidate.fits)


def _check_one(plan: Plan) -> None:
    instance("plan", plan, Plan)
    if _is_many(plan):
        refuse("plan", plan, "is many: here it must be one")


def _is_many(plan: Plan) -> bool:
    return is_array(plan.seconds.likely) or is_array(plan.room)


def _divisors(whole: int) -> list[int]:
    small = [d for d in range(1, isqrt(whole) + 1) if whole % d == 0]
    return sorted({*small, *(whole // d for d in small)})


@dataclass(frozen=True)
class Advice:
    """One thing to change in a plan that does not fit, and its price.

    `change` names inputs and their new values; `plan` has this change and those before;
    `saved` is in bytes on each GPU; `dearer` the share by which GPU-hours grow.
    """

    change: Mapping[str, Any]
    plan: Plan
    saved: Result
    dearer: Result


def advise(plan: Plan) -> tuple[Advice, ...]:
    """What to change, in order, until the plan fits or nothing more helps.

    First a smaller micro-batch (as large as fits, else 1), then recomputation, then
    ZeRO, then more GPUs, as few as will do: more replicas, with a higher stage of ZeRO
    if need be, or else with up to eight times the tensor parallelism as well. What
    saves nothing is left out. If nothing makes it fit, the last plan's `room` says by
    how much, and `fewest_gpus` in words.

    ZeRO's stages 1 and 2 communicate as much as plain data parallelism, stage 3 half as
    much again (arXiv 1910.02054, section 7); that is not in the GPU-hours.

    >>> model = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plan = plan_run(model, a100, 8, 1e12, 512, recompute="none", micro_batch_size=4)
    >>> [advice.change for advice in advise(plan)]
    [{'micro_batch_size': 1}, {'recompute': 'full'}, {'zero_stage': 1}]
    """
    _check_one(plan)
    steps = []
    for lever in (_smaller_batch, _recomputed, _sharded, _on_more_gpus):
        candidates = [] if plan.fits else lever(plan)
        if candidates:
            changes = next(
                (c for c in candidates if plan.but(**c).fits), candidates[-1]
            )
            better = plan.but(**changes)
            if better.memory.total < plan.memory.total:
                steps.append(_advice(changes, plan, better))
                plan = better
    return tuple(steps)


def _advice(change: Mapping[str, Any], before: Plan, after: Plan) -> Advice:
    saved = before.memory.total - after.memory.total
    dearer = after.gpu_hours.likely / before.gpu_hours.likely - 1
    return Advice(change, after, saved, dearer)


def _smaller_batch(plan: Plan) -> list[dict[str, Any]]:
    b = plan.split.micro_batch_size
    sizes = _divisors(b * plan.split.accumulation_steps)  # of a replica's share
    return [{"micro_batch_size": size} for size in reversed(sizes) if size < b]


def _recomputed(plan: Plan) -> list[dict[str, Any]]:
    more = RECOMPUTE[RECOMPUTE.index(plan.inputs["recompute"]) + 1 :]
    stored = plan.inputs["attention"] == "unfused"
    return [{"recompute": r} for r in more if r == "full" or stored]


def _sharded(plan: Plan) -> list[dict[str, Any]]:
    return [{"zero_stage": stage} for stage in range(plan.inputs["zero_stage"] + 1, 4)]


def _on_more_gpus(plan: Plan) -> list[dict[str, Any]]:
    """More replicas, with more ZeRO if need be, or else a wider split as well."""
    before = {name: plan.inputs[name] for name in _WIDENED}
    n, t, stage = before.values()
    for k, higher in product((1, 2, 4, 8), range(stage, 4)):
        wider = dict(zip(_WIDENED, (k * n, k * t, higher), strict=True))
        try:
            found = fewest_gpus(plan.but(**wider)).inputs
        except ValueError:  # does not fit, or does not come out even
            continue
        return [{x: found[x] for x in _WIDENED if found[x] != before[x]}]
    return []


_WIDENED = ["num_gpus", "tensor_parallel", "zero_stage"]


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
        import numpy as np

        tables = [_columns(plan) for plan in self.plans]
        return {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}

    def fastest(self) -> Plan:
        """The fastest plan that fits; of equals the one that splits the model least.

        ValueError if none fits, saying by how much the nearest does not.
        """
        import numpy as np

        table = self.columns()
        if not table["fits"].any():
            short = units.gigabytes(-table["room"].max())
            raise ValueError(f"none of {len(self):,} plans fits: at best {short} short")
        ways = [table[f"{kind}_parallel"] for kind in ("context", "pipeline", "tensor")]
        a_copy = np.prod(ways, axis=0)
        order = np.lexsort((*ways, a_copy, table["seconds"].round(6), ~table["fits"]))
        chosen = {name: table[name][order[0]].item() for name in _CHOSEN}
        return self.plans[0].but(**chosen)


_CHOSEN = [
    "num_gpus",
    "tokens",
    "global_batch_size",
    *_SIZES,
    "recompute",
    "zero_stage",
]


def _columns(plan: Plan) -> dict[str, Any]:
    import numpy as np

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
    zero_stage: Any = 0,
    **options: Any,
) -> Sweep:
    """Every plan that these choices make, in one call.

    Each argument takes one value or several (a list, a tuple, an array); `options` are
    the other arguments of `plan_run`. Splits that do not come out even are left out.
    What a split costs: the pipeline's bubble, (p − 1)/m; its micro-batches in flight,
    held by the first stage; and recomputed work. Not modelled: communication, and how
    efficient kernels are at a size, so that among plans of equal cost the one that
    splits least stands first. ValueError if no split comes out even.

    >>> gpt3 = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plans = sweep(gpt3, a100, 1024, 300e9, 1536, recompute=["none", "full"],
    ...     pipeline_parallel=[1, 2, 4, 8, 16], zero_stage=1)
    >>> len(plans), plans.fastest()
    (120, <Plan: 28.3 days, 55.5 GB a GPU, fits>)
    """
    import numpy as np

    sizes = {name: value for name, value in locals().items() if name in _GRID}
    axes = [_axis(name, sizes[name]) for name in _GRID]
    again = [
        choice("recompute", r, RECOMPUTE) for r in _several("recompute", recompute)
    ]
    stages = [single("zero_stage", z, 0) for z in _several("zero_stage", zero_stage)]
    pairs = dict.fromkeys(product(again, stages))  # each once
    size = prod(map(len, axes)) * len(pairs)
    at_most(**{"plans in the sweep": size, "what one call takes": 10_000_000})
    mesh = dict(zip(_GRID, map(np.ravel, np.meshgrid(*axes)), strict=True))
    even = _even(model, mesh, options)
    if not even.any():
        raise ValueError(f"none of {size:,} splits comes out even: see plan_run")
    grid = {name: column[even] for name, column in mesh.items()}
    plans = (
        plan_run(model, accelerator, **grid, recompute=r, zero_stage=z, **options)
        for r, z in pairs
    )
    return Sweep(tuple(plans))


def _several(name: str, values: Any) -> list[Any]:
    """The choices of an axis: one value, or several of them."""
    many = isinstance(values, (list, tuple, range)) or is_array(values)
    found = list(values) if many else [values]
    return found or refuse(name, values, "is empty")


def _axis(name: str, values: Any) -> Any:
    import numpy as np

    if is_array(values):
        return np.ravel(count(name, values))
    checked = [single(name, value) for value in _several(name, values)]
    return np.array(checked, dtype=float)


_GRID = ["num_gpus", "tokens", "global_batch_size", *_SIZES]


def _even(
    model: Transformer, mesh: Mapping[str, Any], options: Mapping[str, Any]
) -> Any:
    """Which of the splits come out even: what `plan_run` would refuse is false."""
    import numpy as np

    instance("model", model, Transformer)
    n, T, B, b, t, p, c = (mesh[name] for name in _GRID)
    l, s, a, k = (
        model.num_layers,
        model.sequence_length,
        model.num_heads,
        model.num_kv_heads,
    )
    d = np.maximum(n // (t * p * c), 1)
    pairs = [(n, t * p * c), (a, t), (k, t), (s, c), (B, b * d)]
    if flag("sequence_parallel", options.get("sequence_parallel", True)):
        pairs.append((s, t * c))
    if not flag("uneven_stages", options.get("uneven_stages", False)):
        pairs.append((l, p))
    holds = [whole % part == 0 for whole, part in pairs]
    return np.logical_and.reduce([*holds, p <= l, b <= B, B * s <= T])
