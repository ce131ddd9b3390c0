"""Chapter 08: the whole plan of a run. Beside notebooks/08_plan.ipynb.

Sources: those of the chapters before; Narayanan et al. (arXiv 2104.04473), section 2.2,
for the pipeline's bubble, interleaved or not. The utilisations are what others reached:
`utilizations` computes them from data/, and a test holds these to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.architecture import Accelerator, Transformer
from llmtrain_helpers.batch import (
    accumulation_steps,
    data_parallel_bytes,
    data_parallel_size,
)
from llmtrain_helpers.checks import (
    Number,
    Result,
    amount,
    at_most,
    broadcast,
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
    checked_utilizations,
    energy,
    gpu_hours,
    iterations,
    over_utilizations,
)
from llmtrain_helpers.flops import FlopCount, count_flops, utilization
from llmtrain_helpers.memory import (
    Memory,
    Split,
    greater,
    lesser,
    memory_per_gpu,
    stage_parameters,
)
from llmtrain_helpers.parameters import ParameterCount, count_parameters
from llmtrain_helpers.precision import Recipe, known_recipe


@dataclass(frozen=True)
class Shares:
    """Shares of the dense peak that others reached, recomputed work counted (HFU).

    Of single `steps`, and of whole `runs` with their stops, each low, likely and high,
    without the pipeline's bubble; `evidence` says in words what they rest on.
    """

    steps: tuple[float, float, float]
    runs: tuple[float, float, float]
    evidence: str


UTILIZATIONS = {
    "16-bit dense": Shares(
        (0.36, 0.48, 0.65),
        (0.37, 0.43, 0.5),
        ("314 of 384 steps of 4 teams, each judged by the others; 9 of 10 whole runs"),
    ),
    "fp8 dense": Shares(
        (0.2, 0.3, 0.47),
        (0.18, 0.27, 0.47),
        "0 of 27 steps of 2 teams, each judged by the other",
    ),
    "fp4 dense": Shares(
        (0.13, 0.22, 0.36),
        (0.12, 0.19, 0.36),
        "untested: 8 steps, all of one team",
    ),
    "32-bit dense": Shares(
        (0.23, 0.48, 1.0),
        (0.21, 0.43, 1.0),
        "untested: nobody has published such steps",
    ),
    "16-bit experts": Shares(
        (0.11, 0.17, 0.26),
        (0.1, 0.15, 0.26),
        "80 of 99 steps of 4 models, each judged by the others",
    ),
    "fp8 experts": Shares(
        (0.11, 0.17, 0.26),
        (0.1, 0.15, 0.26),
        "80 of 99 steps of 4 models, each judged by the others",
    ),
    "fp4 experts": Shares(
        (0.05, 0.12, 0.29),
        (0.05, 0.11, 0.29),
        "untested: nobody has published such steps",
    ),
    "32-bit experts": Shares(
        (0.07, 0.17, 0.4),
        (0.06, 0.15, 0.4),
        "untested: nobody has published such steps",
    ),
}
"""What others reached, by kind: the number format, dense or experts. A share of the
16-bit peak is no share of the fp8 peak, and experts reach a far smaller one."""

STOPS = (1.08, 1.2, 1.5)
"""A run's time over that of its computing alone, of four published runs whose rate is
known: least, middle and most. It holds restarts, evaluation, batches that grew."""

RESERVE, CARD = 21e9, 96e9
"""Bytes that a plan keeps free on a card of so many bytes, and the same share of a
smaller one: what four of five measured peaks (`published.measured_memory`) had beyond
the plan. It is for what a plan leaves out: gathered layers, buffers, the allocator."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What a run takes; made by `plan_run`, varied by `but`.

    `flops` are those of an iteration; `memory` is that of the GPU that holds most;
    `traffic` the bytes that a GPU sends to other replicas in a step; `seconds` those of
    the whole run, stops included, and `seconds_per_iteration` those of a step without:
    intervals over what others reached (see `shares`), or exact at a given rate.
    """

    inputs: Mapping[str, Any]
    parameters: ParameterCount
    flops: FlopCount
    memory: Memory
    split: Split
    traffic: Result
    iterations: Result
    shares: Shares
    seconds_per_iteration: Interval
    seconds: Interval

    @property
    def room(self) -> Result:
        """Bytes left on the GPU that holds most; negative if it takes more."""
        return self.inputs["accelerator"].memory - self.memory.total

    @property
    def reserve(self) -> Result:
        """Bytes of that room to keep free for what a plan leaves out."""
        asked, memory = self.inputs["reserve"], self.inputs["accelerator"].memory
        return RESERVE * lesser(memory / CARD, 1) if asked is None else asked

    @property
    def fits(self) -> Any:
        """Whether a step fits into the accelerator's memory and leaves the reserve."""
        return self.room >= self.reserve

    @property
    def tight(self) -> Any:
        """Whether it fits on paper only, without the reserve."""
        return (self.room >= 0) & (self.room < self.reserve)

    @property
    def days(self) -> Interval:
        """Days of the run."""
        return self.seconds.times(1 / units.DAY)

    @property
    def days_with_stops(self) -> Interval:
        """Days on the calendar: at a given rate longer than the computing, by `STOPS`.

        Where the rate is not known, whole runs made the interval: it has the stops.
        """
        if self.inputs["flops_per_gpu"] is None:
            return self.days
        exact = self.days.likely
        return Interval(*(exact * more for more in STOPS))

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

    def calibrated(self, seconds_per_iteration: Number) -> Plan:
        """The same plan at a measured step of your own, in place of others' runs.

        Its rate is X = F/(n·t): FLOPs of an iteration, recomputed ones counted. The
        step belongs to this very split, so measure again where that changes.
        """
        t = quantity("seconds_per_iteration", seconds_per_iteration)
        return self.but(flops_per_gpu=self.flops.total / (self.split.num_gpus * t))

    def report(self, name: str = "the model", law: Any = "besiroglu") -> Any:
        """One page to take to whoever pays: `markdown` and `html` (see `report`)."""
        from llmtrain_helpers.report import report  # it stands on laws and plans

        return report(self, name, law)

    def __repr__(self) -> str:
        if is_many(self):
            return f"<{(self.room + 0 * self.seconds.likely).size:,} plans>"
        told = "fits" if self.fits else "tight" if self.tight else "does not fit"
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
    interleave: Number = 1,
    sequence_parallel: bool = True,
    zero_stage: int = 0,
    keep_gradients: bool | None = None,
    recipe: str | Recipe = "bf16",
    attention: str = "flash",
    fused_mlp: bool = False,
    dropout: bool = False,
    uneven_stages: bool = False,
    format: str | None = None,
    utilizations: tuple[float, float, float] | None = None,
    flops_per_gpu: Number | None = None,
    reserve: Number | None = None,
    price_per_gpu_hour: Number | None = None,
) -> Plan:
    """The plan of a run: parameters, FLOPs, memory, whether it fits, days, GPU-hours.

    t = T/(Bs) · F · (1 + (p − 1)/(vm)) / (n·u·peak), with F the exact FLOPs of an
    iteration and its recomputation, p stages of a pipeline in v pieces each
    (`interleave`), m micro-batches of each replica, and three utilisations u (HFU). The
    peak is that of `format`, or else of the chip's 16-bit format; u are those that
    others reached with it, bubble taken out (`UTILIZATIONS`), or the ones given. With
    `flops_per_gpu`, a rate X that was measured, it is T/(Bs) · F / (nX): that rate has
    the bubble in it.

    Memory is that of the pipeline's first stage, which holds min(p, m) micro-batches
    (p + (p − 1)/v if interleaved), or of its last, which holds the head, whichever is
    more. Context-parallel GPUs share the sequence, and ZeRO shards over them as well.
    From stage 2 on, gradients are sharded in every pass; `keep_gradients` keeps them
    whole until the last (see `data_parallel_bytes`). With a pipeline that must be said:
    some frameworks do the one, some the other, some refuse. `reserve` is what must stay
    free in bytes, by default `RESERVE`.

    Takes whole numbers; arrays broadcast. ValueError for a split that does not divide
    heads, sequence, layers (`uneven_stages` rounds up instead), batch or GPUs, for more
    pieces than layers, a micro-batch above the batch, and bad input of any kind.

    Left out: the time of communication, how efficient kernels are at a size, the gaps
    of an allocator, the layer that ZeRO 3 gathers, the balance of experts.
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
    P = count_parameters(model)
    broadcast(**vars(accelerator), model=P.total, **{x: inputs[x] for x in _NUMBERS})
    split = _split(model, inputs)
    counted = count_flops(model, inputs["global_batch_size"], recompute)
    steps = iterations(tokens, inputs["global_batch_size"], model.sequence_length)
    shares = _shares(model, inputs)
    return Plan(
        inputs=inputs,
        parameters=P,
        flops=counted,
        memory=memory_per_gpu(model, split, inputs),
        split=split,
        traffic=_traffic(model, split, inputs),
        iterations=steps,
        shares=shares,
        seconds_per_iteration=_seconds(counted.total, split, inputs, shares.steps),
        seconds=_seconds(steps * counted.total, split, inputs, shares.runs),
    )


SIZES = [
    "micro_batch_size",
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "interleave",
]
"""The inputs that split the work."""

_OPTIONAL = {
    "price_per_gpu_hour": quantity,
    "flops_per_gpu": rate,
    "reserve": amount,
    "keep_gradients": flag,
}
"""Inputs that may be left out (None), and what checks them."""


_NUMBERS = ["num_gpus", "tokens", "global_batch_size", *SIZES, *_OPTIONAL]
"""The inputs that may be arrays."""


def _checked(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs that are numbers, as such; others only where they are given."""
    whole = ["num_gpus", "tokens", "global_batch_size", *SIZES]
    checked = {name: count(name, inputs[name]) for name in whole}
    checked["zero_stage"] = single("zero_stage", inputs["zero_stage"], least=0)
    for name, check in _OPTIONAL.items():
        if inputs[name] is not None:
            checked[name] = check(name, inputs[name])
    return checked


def _split(model: Transformer, inputs: Mapping[str, Any]) -> Split:
    """The split, refused where it does not come out even."""
    n, B = inputs["num_gpus"], inputs["global_batch_size"]
    b, t, p, c, v = (inputs[name] for name in SIZES)
    at_most(**{"global_batch_size": B, "what a plan takes": 10**12})
    _check_pipeline(model, inputs)
    divides(sequence_length=model.sequence_length, context_parallel=c)
    if flag("sequence_parallel", inputs["sequence_parallel"]):
        ways = {"tensor_parallel·context_parallel": t * c}
        divides(**{"sequence_length": model.sequence_length, **ways})
    at_most(micro_batch_size=b, global_batch_size=B)
    d = data_parallel_size(n, t, p, c)
    return Split(n, b, t, p, c, d, accumulation_steps(B, b, d), v)


def _check_pipeline(model: Transformer, inputs: Mapping[str, Any]) -> None:
    """Pieces that come out even; and with ZeRO, what becomes of the gradients."""
    p, v, l = inputs["pipeline_parallel"], inputs["interleave"], model.num_layers
    at_most(pipeline_parallel=p, num_layers=l)
    at_most(interleave=v, **{"what a pipeline of one stage takes": 1 + (p > 1) * l})
    pieces = {"pipeline_parallel·interleave": p * v}
    if not flag("uneven_stages", inputs["uneven_stages"]):
        divides(
            num_layers=l,
            **(pieces if is_array(v) or v > 1 else {"pipeline_parallel": p}),
        )
    at_most(**pieces, **{"layers, embedding and head, num_layers + 2": l + 2})
    piped = (p > 1).any() if is_array(p) else p > 1
    if inputs["zero_stage"] > 1 and piped and inputs["keep_gradients"] is None:
        problem = (
            "with a pipeline: say keep_gradients=True (whole between the passes of a "
            "step, as FSDP can) or False (sharded in each); DeepSpeed refuses both"
        )
        refuse("zero_stage", inputs["zero_stage"], problem)


def _peak(inputs: Mapping[str, Any]) -> Result:
    """The dense peak of the format that was asked for, or of the chip's own 16 bits."""
    return inputs["accelerator"].peak(_format(inputs))


def _format(inputs: Mapping[str, Any]) -> Any:
    format = inputs["format"]
    return inputs["accelerator"].training_format if format is None else format


def _shares(model: Transformer, inputs: Mapping[str, Any]) -> Shares:
    """What others reached with such a format, dense or with experts; or the given."""
    given, format, _ = inputs["utilizations"], _format(inputs), _peak(inputs)
    if given is not None:
        u = checked_utilizations(given)
        return Shares(u, u, "the utilisations that were given")
    bits = {"bf16": "16-bit", "fp16": "16-bit", "fp8": "fp8", "fp4": "fp4"}
    kind = "experts" if model.num_experts else "dense"
    return UTILIZATIONS[f"{bits.get(format, '32-bit')} {kind}"]


def _seconds(
    work: Result,
    split: Split,
    inputs: Mapping[str, Any],
    shares: tuple[float, float, float],
) -> Interval:
    """Seconds for so many FLOPs, at a given rate or over the utilisations."""
    X, peak = inputs["flops_per_gpu"], _peak(inputs)
    if X is not None:
        utilization(X, peak)  # refuses a rate above the peak
        exact = work / (split.num_gpus * X)
        return Interval(exact, exact, exact)
    at_peak = work * (1 + split.bubble) / (split.num_gpus * peak)
    quantity("tokens·FLOPs/(num_gpus·peak)", at_peak)
    return over_utilizations(at_peak, shares)


def _traffic(model: Transformer, split: Split, inputs: Mapping[str, Any]) -> Result:
    """Bytes to other replicas from a GPU of the stage with most parameters."""
    alone, recipe = split.pipeline_parallel == 1, known_recipe(inputs["recipe"])
    first, last = (
        stage_parameters(model, split, *ends) for ends in ((True, alone), (alone, True))
    )
    return data_parallel_bytes(
        greater(first, last),
        split.data_parallel * split.context_parallel,
        inputs["zero_stage"],
        split.accumulation_steps,
        weight_bytes=recipe.weights,
        gradient_bytes=recipe.gradients,
        keep_gradients=bool(inputs["keep_gradients"]),
    )


def is_many(plan: Plan) -> bool:
    """Whether a plan is one of arrays."""
    return is_array(plan.seconds.likely) or is_array(plan.room)
