"""Chapter 08: the whole plan of a run. Beside notebooks/08_plan.ipynb.

Sources: those of the chapters before; Narayanan et al. (arXiv 2104.04473), section 2.2,
for the pipeline's bubble, interleaved or not. Its seconds are those of `pace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.batch import accumulation_steps, data_parallel_size
from llmtrain_helpers.checks import (
    Number,
    Result,
    amount,
    at_most,
    broadcast,
    choice,
    count,
    divides,
    flag,
    instance,
    is_array,
    one,
    quantity,
    rate,
    refuse,
    single,
)
from llmtrain_helpers.communication import WAYS, Traffic, divides_experts, step_traffic
from llmtrain_helpers.duration import energy, gpu_hours, iterations, training_interval
from llmtrain_helpers.flops import FlopCount, count_flops
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.parameters import ParameterCount, count_parameters
from llmtrain_helpers.plan.memory import (
    SHARDING,
    Memory,
    Split,
    memory_per_gpu,
    stage_experts,
    stage_parameters,
)
from llmtrain_helpers.plan.pace import (
    OWN_PACE as OWN_PACE,
    PACES as PACES,
    STOPS,
    UTILIZATIONS as UTILIZATIONS,
    Pace,
    Shares,
    peak_of,
    timed,
)
from llmtrain_helpers.plan.step import StepSeconds
from llmtrain_helpers.precision import Recipe, known_recipe
from llmtrain_helpers.results import Interval, greater, lesser

RESERVE, CARD = 21e9, 96e9
"""Bytes that a plan keeps free on a card of so many bytes, and the same share of a
smaller one: what five of six measured peaks (`published.measured_memory`, everything
recomputed) had beyond the plan. It is for what a plan leaves out: gathered layers,
buffers, the allocator."""


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
    sent: Traffic
    step: StepSeconds | None
    iterations: Result
    shares: Shares
    seconds_per_iteration: Interval
    seconds: Interval

    @property
    def traffic(self) -> Result:
        """Bytes that a GPU sends to other replicas in a step; `sent` has all parts."""
        return self.sent.data

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
    def measured(self) -> bool:
        """Whether a rate or a step of one's own takes the place of others' runs."""
        return not (self.inputs["flops_per_gpu"] is self.inputs["pace"] is None)

    @property
    def days_with_stops(self) -> Interval:
        """Days on the calendar: at a given rate longer than the computing, by `STOPS`.

        Where the rate is not known, whole runs made the interval: it has the stops.
        """
        if not self.measured:
            return self.days
        low, likely, high = STOPS
        days = self.days
        return Interval(days.least * low, days.likely * likely, days.greatest * high)

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
        peak = peak_of(self.inputs)
        return work / (self.split.num_gpus * peak)

    @property
    def rough(self) -> Interval:
        """Seconds by 6TP/(nX) and the shares of all published runs, small ones too.

        Wider than `seconds`, which rests on runs that publish enough for an exact
        count (chapter 03).
        """
        size = self.inputs["tokens"], self.parameters.active
        return training_interval(*size, self.split.num_gpus, peak_of(self.inputs))

    @property
    def throughput(self) -> Result:
        """The likely tokens a second, over all GPUs."""
        return self.inputs["tokens"] / self.seconds.likely

    def but(self, **changes: Any) -> Plan:
        """The same plan with some of its inputs changed."""
        return plan_run(**{**self.inputs, **changes})

    def calibrated(self, seconds_per_iteration: Number) -> Plan:
        """The same plan at a measured step of your own, in place of others' runs.

        Where the model of a step knows the chip, other splits of this plan (`but`)
        follow from it, with an interval of `OWN_PACE` around. Else it is a rate,
        X = F/(n·t), of FLOPs with recomputed ones, and belongs to this very split.
        """
        t = quantity("seconds_per_iteration", seconds_per_iteration)
        if self.step is not None:
            pace = Pace(t / self.step.total, self.split, self.step)
            return self.but(pace=pace, flops_per_gpu=None)
        return self.but(flops_per_gpu=self.flops.total / (self.split.num_gpus * t))

    def report(self, name: str = "the model", law: Any = "besiroglu") -> Any:
        """One page to take to whoever pays: `markdown` and `html` (see `report`)."""
        from llmtrain_helpers.plan.report import report  # it stands on laws and plans

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
    expert_parallel: Number = 1,
    imbalance: Number = 1,
    context: str = "ring",
    sequence_parallel: bool = True,
    zero_stage: int = 0,
    keep_gradients: bool | None = None,
    sharding: str = "zero",
    recipe: str | Recipe = "bf16",
    attention: str = "flash",
    fused_mlp: bool = False,
    dropout: bool = False,
    uneven_stages: bool = False,
    format: str | None = None,
    utilizations: tuple[float, float, float] | None = None,
    flops_per_gpu: Number | None = None,
    pace: Pace | None = None,
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
    some frameworks do the one, some the other, some refuse. `sharding="fsdp"` is ZeRO 3
    as PyTorch's FSDP does it: what is gathered is counted too (see `Memory`), with a
    pipeline a whole stage (what is sent is counted as if it were let go). `reserve` is
    what must stay free in bytes, by default `RESERVE`.

    Takes whole numbers; arrays broadcast. ValueError for a split that does not divide
    heads, sequence, layers (`uneven_stages` rounds up instead: the last stage then has
    one less, beside the head), batch or GPUs, for more pieces than layers, a
    micro-batch above the batch, and bad input of any kind.

    Where the chip's bandwidths are known, a model of the step (`step_seconds`) tells
    what the split costs, and u are what it gives of the peak, times others' `PACES`;
    where they are not, the split does not count beyond its bubble. Experts stand on
    `expert_parallel` GPUs each, `imbalance` is the fullest one's tokens over the
    average. `pace` is what `Plan.calibrated` makes of a measured step.

    Left out: the gaps of an allocator, and what ZeRO 3 gathers unless by FSDP.
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
    sent = _sent(model, split, inputs)
    return Plan(
        inputs=inputs,
        parameters=P,
        flops=counted,
        memory=memory_per_gpu(model, split, inputs),
        split=split,
        sent=sent,
        iterations=steps,
        **timed(model, counted.total, steps, split, sent, inputs),
    )


SIZES = [
    "micro_batch_size",
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "interleave",
    "expert_parallel",
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
    checked["imbalance"] = one("imbalance", inputs["imbalance"], quantity)
    if checked["imbalance"] < 1:
        refuse("imbalance", inputs["imbalance"], "is less than 1")
    checked["zero_stage"] = single("zero_stage", inputs["zero_stage"], least=0)
    if choice("sharding", inputs["sharding"], SHARDING) == "fsdp":
        stage = checked["zero_stage"]
        if stage != 3:
            refuse("zero_stage", stage, "is not what FSDP does: with it write 3")
    if inputs["pace"] is not None:
        instance("pace", inputs["pace"], Pace)
    for name, check in _OPTIONAL.items():
        if inputs[name] is not None:
            checked[name] = check(name, inputs[name])
    return checked


def _split(model: Transformer, inputs: Mapping[str, Any]) -> Split:
    """The split, refused where it does not come out even."""
    n, B = inputs["num_gpus"], inputs["global_batch_size"]
    b, t, p, c, v, e = (inputs[name] for name in SIZES)
    at_most("global_batch_size", B, "what a plan takes", 10**12)
    _check_pipeline(model, inputs)
    divides("sequence_length", model.sequence_length, "context_parallel", c)
    if flag("sequence_parallel", inputs["sequence_parallel"]):
        ways = "tensor_parallel·context_parallel"
        divides("sequence_length", model.sequence_length, ways, t * c)
    at_most("micro_batch_size", b, "global_batch_size", B)
    d = data_parallel_size(n, t, p, c)
    divides_experts(model, e, d)
    return Split(n, b, t, p, c, d, accumulation_steps(B, b, d), v, e)


def _check_pipeline(model: Transformer, inputs: Mapping[str, Any]) -> None:
    """Pieces that come out even; and with ZeRO, what becomes of the gradients."""
    p, v, l = inputs["pipeline_parallel"], inputs["interleave"], model.num_layers
    at_most("pipeline_parallel", p, "num_layers", l)
    at_most("interleave", v, "what a pipeline of one stage takes", 1 + (p > 1) * l)
    pieces = "pipeline_parallel·interleave"
    if not flag("uneven_stages", inputs["uneven_stages"]):
        interleaved = is_array(v) or v > 1
        divides("num_layers", l, pieces if interleaved else "pipeline_parallel", p * v)
    at_most(pieces, p * v, "layers, embedding and head, num_layers + 2", l + 2)
    piped = (p > 1).any() if is_array(p) else p > 1
    if inputs["zero_stage"] > 1 and piped and inputs["keep_gradients"] is None:
        problem = (
            "with a pipeline: say keep_gradients=True (whole between the passes of a "
            "step, as FSDP can) or False (sharded in each); DeepSpeed refuses both"
        )
        refuse("zero_stage", inputs["zero_stage"], problem)


def _sent(model: Transformer, split: Split, inputs: Mapping[str, Any]) -> Traffic:
    """Bytes that a GPU of the stage with most parameters sends in a step."""
    alone = split.pipeline_parallel == 1
    P, E = (
        greater(*(held(model, split, *ends) for ends in ((True, alone), (alone, True))))
        for held in (stage_parameters, _experts)
    )
    ways = {name: getattr(split, name) for name in WAYS}
    same = ("recompute", "sequence_parallel", "context", "imbalance")
    told = {name: inputs[name] for name in same} | _sharding(inputs)
    width = known_recipe(inputs["recipe"]).weights
    return step_traffic(model, P, **ways, expert_parameters=E, value_bytes=width, **told)


def _experts(model: Transformer, split: Split, embedding: Any, head: Any) -> Result:
    return stage_experts(model, split, last=embedding is not True)


def _sharding(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What `data_parallel_bytes` wants to know."""
    recipe = known_recipe(inputs["recipe"])
    return {
        "zero_stage": inputs["zero_stage"],
        "weight_bytes": recipe.weights,
        "gradient_bytes": recipe.gradients,
        "keep_gradients": bool(inputs["keep_gradients"]),
    }


def step_seconds(plan: Plan) -> StepSeconds | None:
    """The seconds of a plan's step under its split, part by part.

    A stage's layers take, in a pass of forward, backward or forward again, each
    FLOPs/(t·c·peak·best share) + 2·activations/bandwidth + 0.64 ms a layer
    and their all-reduces; m passes through the slowest stage, (p − 1)/v more of them
    while the pipeline fills, the gradients that the last backward pass does not hide,
    and the update: 60 bytes through memory for each parameter.

    It is what good software could reach; others' software takes 1 to 1.6 times as long,
    so it compares splits, and `Plan.seconds_per_iteration` says seconds. Takes a
    `Plan`; None where bandwidths or the best share of the chip are unknown.

    Source: data/vtrain_a100_single_node.csv and vtrain_a100_multi_node.csv, whose 767
    layouts it orders; see notebooks/evidence/07_communication.ipynb.
    """
    instance("plan", plan, Plan)
    return plan.step


def memory_with(plan: Plan, **changes: Any) -> Memory:
    """The memory of the same plan with some of its inputs changed, and nothing else."""
    inputs = {**plan.inputs, **changes}
    inputs |= _checked(inputs)
    return memory_per_gpu(inputs["model"], _split(inputs["model"], inputs), inputs)


def is_many(plan: Plan) -> bool:
    """Whether a plan is one of arrays."""
    return is_array(plan.seconds.likely) or is_array(plan.room)
