"""Chapter 09: the whole plan of a run. Goes with notebooks/09_plan.ipynb.

Sources: those of the chapters before; Narayanan et al. (arXiv 2104.04473), section 2.2,
for the pipeline's bubble, interleaved or not. Its seconds are those of `pace`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Unpack, cast

from llmtrain_helpers import units
from llmtrain_helpers.checks import (
    Number,
    Result,
    Size,
    anywhere,
    as_sizes,
    broadcast,
    choice,
    divides,
    instance,
    is_array,
    numpy,
    quantity,
    refuse,
    unchecked,
)
from llmtrain_helpers.communication import Traffic, step_traffic
from llmtrain_helpers.deprecated import OldName
from llmtrain_helpers.duration import energy, gpu_hours, iterations, tokens_in_time
from llmtrain_helpers.finetune import RECOMPUTED, tuned_flops
from llmtrain_helpers.flops import EveryRecompute, FlopCount, count_flops
from llmtrain_helpers.memory import Memory
from llmtrain_helpers.model.names import Chip, Model, known_accelerator, known_model
from llmtrain_helpers.parallelism import Split
from llmtrain_helpers.parameters import ParameterCount, count_parameters
from llmtrain_helpers.plan.memory import (
    card_bytes,
    ends,
    memory_per_gpu,
    reserve_bytes,
    stage_experts,
    stage_parameters,
)
from llmtrain_helpers.plan.options import Changes, Inputs, Options, check_names, with_options
from llmtrain_helpers.plan.pace import (
    Shares,
    highest_share,
    others_shares,
    seconds_per_step,
    stops,
    whole_run,
)
from llmtrain_helpers.plan.run import DEFAULTS, Run, spelt_out
from llmtrain_helpers.plan.seconds import Pace, StepSeconds
from llmtrain_helpers.plan.step import (
    bytes_across,
    excess_flops,
    step_parts,
    tuned_wait,
    unknown_figures,
)
from llmtrain_helpers.results import Interval, maximum
from llmtrain_helpers.tuning import Tuning, tuned_parameters

if TYPE_CHECKING:
    from llmtrain_helpers.laws import Law
    from llmtrain_helpers.plan.report import Report

MOST = 1e36
"""The most FLOPs or dollars of a run; with these, every result is still a finite number."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a run needs; made by `plan_run`, varied by `replace`.

    `flops` are for one iteration; `memory` is for the GPU that needs the most; `traffic` is
    the bytes that a GPU sends to other replicas per step. `seconds_per_iteration` is a step
    without stops: an interval based on what others reached (see `shares`), or exact if it was
    measured; `wait` is what a tuned step adds for traffic that no measured speed includes, None
    if that's unknown (`step.tuned_wait`); `seconds` is for the whole run, steps times stops
    (`STOPS`). A given rate describes the whole run, so nothing is added.
    """

    run: Run
    parameters: ParameterCount
    flops: FlopCount
    memory: Memory
    sent: Traffic
    step: StepSeconds | None
    wait: Result | None
    iterations: Result
    shares: Shares
    seconds_per_iteration: Interval
    seconds: Interval

    @classmethod
    def of(cls, run: Run, memory: Memory | None = None) -> Plan:
        """Return the plan of a run: what `plan_run` does once it has put the run together.

        `memory` is that of its GPUs, if it's been counted already.
        """
        instance("run", run, Run)
        model, split = run.model, run.split
        flops = run_flops(run, run.global_batch_size, run.recompute)
        steps = iterations(run.tokens, run.global_batch_size, model.sequence_length)
        sent = run_traffic(run)
        memory = memory_per_gpu(run) if memory is None else instance("memory", memory, Memory)
        step = None if run.tuning is not None else step_parts(run, sent)
        work = flops.total + excess_flops(run, run.global_batch_size)
        at_peak = work * (1 + split.bubble) / (split.num_gpus * run.peak)
        shares = others_shares(run, at_peak, step)
        wait = tuned_wait(run, sent)
        of_step = seconds_per_step(run, flops.total, at_peak, shares, step, wait or 0.0)
        seconds = whole_run(of_step, stops(run)).times(steps)
        check_size(run, flops.total * steps, seconds.greatest)
        return cls(
            run=run,
            parameters=count_parameters(model),
            flops=flops,
            memory=memory,
            sent=sent,
            step=step,
            wait=wait,
            iterations=steps,
            shares=shares,
            seconds_per_iteration=of_step,
            seconds=seconds,
        )

    @property
    def split(self) -> Split:
        """How the GPUs and the batch are split."""
        return self.run.split

    @property
    def inputs(self) -> Inputs:
        """The arguments of `plan_run`, by name."""
        names = (item.name for item in fields(Run) if item.init)
        return cast(Inputs, {name: getattr(self.run, name) for name in names})

    @property
    def traffic(self) -> Result:
        """Bytes that a GPU sends to other replicas in a step; `sent` has all parts."""
        return self.sent.data

    @property
    def unknown(self) -> tuple[str, ...]:
        """Missing chip data; without them, only the bubble of a split counts."""
        return unknown_figures(self.run)

    @property
    def counts_traffic(self) -> bool:
        """Whether the seconds of a step include what its GPUs send."""
        return self.step is not None or (self.run.tuning is not None and self.wait is not None)

    @property
    def card(self) -> Result:
        """Bytes of the card: those that its driver shows, or the vendor's if unknown."""
        return card_bytes(self.run.accelerator)

    @property
    def free_memory(self) -> Result:
        """Free bytes on the GPU that needs most memory; negative if it needs more than it has."""
        return self.card - self.memory.total

    room = OldName("free_memory")

    @property
    def reserve(self) -> Result:
        """Bytes of free memory to leave for anything that a plan doesn't count."""
        return reserve_bytes(self.run)

    @property
    def fits(self) -> bool:
        """Whether a step fits on the card and leaves the reserve."""
        return self.free_memory >= self.reserve

    @property
    def tight(self) -> bool:
        """Whether it fits, but only without the reserve."""
        return (self.free_memory >= 0) & (self.free_memory < self.reserve)

    @property
    def days(self) -> Interval:
        """Days of the run, stops included."""
        return self.seconds.times(1 / units.DAY)

    @property
    def measured(self) -> bool:
        """Whether your own rate or step replaces the data of other runs."""
        return self.run.flops_per_gpu is not None or self.run.pace is not None

    @property
    def days_of_steps(self) -> Interval:
        """Days of just the steps, without stops."""
        return self.seconds_per_iteration.times(self.iterations).times(1 / units.DAY)

    @property
    def first_run(self) -> Interval:
        """Days of a team's first run of this kind. Promise the slow end, `greatest`.

        That's our own caution, because no table lists first runs. A measured step narrows it.
        """
        return self.days

    days_with_stops = OldName("days")

    def first_run_tokens(self, days: Number) -> Result:
        """Tokens that even a first run can process in this many days (see `first_run`)."""
        t, latest = quantity("days", days), self.first_run.greatest
        broadcast(days=t, plan=latest)
        return tokens_in_time(self.run.tokens, latest, t)

    @property
    def gpu_hours(self) -> Interval:
        """Hours of all GPUs together."""
        return self.seconds.times(gpu_hours(1, self.split.num_gpus))

    @property
    def cost(self) -> Interval | None:
        """The cost of the GPU-hours, if you gave a price."""
        price = self.run.price_per_gpu_hour
        return None if price is None else self.gpu_hours.times(price)

    @property
    def energy(self) -> Interval | None:
        """Joules of the GPUs at their design power, if that's known."""
        watts = self.run.accelerator.power
        if watts is None:
            return None
        return self.seconds.times(energy(1, self.split.num_gpus, watts))

    @property
    def total_flops(self) -> Result:
        """FLOPs of the whole run, including recomputation."""
        return self.flops.total * self.iterations

    @property
    def mfu(self) -> Result:
        """The likely share of the peak, without recomputed work."""
        work = self.flops.model * self.iterations / self.seconds.likely
        return work / (self.split.num_gpus * self.run.peak)

    @property
    def step_mfu(self) -> Result:
        """The likely share of the peak while a step runs, without stops or recomputed work."""
        seconds = self.seconds_per_iteration.likely
        return self.flops.model / seconds / (self.split.num_gpus * self.run.peak)

    @property
    def hfu(self) -> Result:
        """The likely share of the peak, including recomputed work."""
        return self.total_flops / self.seconds.likely / (self.split.num_gpus * self.run.peak)

    @property
    def highest_published(self) -> float | None:
        """The highest HFU of any published step of this kind; None if there isn't one."""
        return highest_share(self.run)

    @property
    def beyond_published(self) -> bool:
        """Whether your own step or rate is faster than any published one."""
        most = self.highest_published
        if not self.measured or most is None:
            return False
        share = self.flops.total / self.seconds_per_iteration.likely
        return anywhere(share / (self.split.num_gpus * self.run.peak) > most)

    @property
    def throughput(self) -> Result:
        """The likely tokens per second, over all GPUs."""
        return self.run.tokens / self.seconds.likely

    @property
    def gpu_throughput(self) -> Interval:
        """Tokens per second on each GPU while a step runs, without stops."""
        run, t = self.run, self.seconds_per_iteration
        tokens = run.global_batch_size * run.model.sequence_length / self.split.num_gpus
        return Interval(tokens / t.greatest, tokens / t.likely, tokens / t.least)

    @property
    def phase(self) -> str:
        """The moment of a step that is the peak of its memory."""
        return self.memory.moment

    def replace(self, **changes: Unpack[Changes]) -> Plan:
        """Return the same plan with some of its inputs changed."""
        return Plan.of(self.run.replace(**changes))

    but = OldName("replace")

    def calibrated(self, seconds_per_iteration: Number) -> Plan:
        """Return the same plan with your own measured step instead of other runs.

        If the step model knows the chip, other splits of this plan (`replace`) follow from
        your step, within an interval of `OWN_PACE`. Otherwise it becomes a rate,
        X = F/(n·t), where F includes recomputation, and only holds for this exact split.
        Raises ValueError for a step that's shorter than its FLOPs need at the peak, or
        too long to be a step.
        """
        t = quantity("seconds_per_iteration", seconds_per_iteration)
        broadcast(plan=self.flops.total, seconds_per_iteration=t)
        run, X = self.run, self.flops.total / (self.split.num_gpus * t)
        if anywhere(run.peak * (1 + 1e-9) < X):  # what rounding may add
            problem = "is less than the FLOPs of an iteration need at the full peak"
            refuse("seconds_per_iteration", t, problem)
        if anywhere(X < 1e9):
            problem = "is a rate below 10⁹ FLOP/s on each GPU: seconds of one iteration?"
            refuse("seconds_per_iteration", t, problem)
        measured = run.replace(utilizations=None, flops_per_gpu=None, pace=None)
        if self.step is None:
            return Plan.of(measured.replace(flops_per_gpu=X, stops=stops(measured)))
        slowdown = t / self.step.total
        size = run.model, run.accelerator, run.number_format, run.software, run.compiled
        return Plan.of(measured.replace(pace=Pace(slowdown, self.split, self.step, *size)))

    def report(
        self, name: str = "the model", law: str | Law | None = "besiroglu", trained_on: Number = 0
    ) -> Report:
        """Write one page for the person who pays, as `markdown` and `html` (see `plan.report`)."""
        from llmtrain_helpers.plan.report import report  # not every plan needs one

        return report(self, name, law, trained_on)

    def is_many(self) -> bool:
        """Tell whether this is a plan of arrays."""
        return is_array(self.seconds.likely) or is_array(self.free_memory)

    def __repr__(self) -> str:
        if self.is_many():
            return f"<{numpy().size(self.free_memory + 0 * self.seconds.likely):,} plans>"
        fits = "fits" if self.fits else "tight" if self.tight else "does not fit"
        days = units.duration(self.seconds.likely)
        return f"<Plan: {days}, {units.gigabytes(self.memory.total)} a GPU, {fits}>"


@with_options(DEFAULTS)
def plan_run(
    model: Model,
    accelerator: Chip,
    num_gpus: Number,
    tokens: Number,
    global_batch_size: Number,
    *,
    recompute: EveryRecompute,
    **options: Unpack[Options],
) -> Plan:
    """Plan a run: parameters, FLOPs, memory, whether it fits, days, GPU-hours.

    t = T/(Bs) · F · (1 + (p − 1)/(vm)) / (n·u·peak) · stops

    F is the exact FLOPs of an iteration, including recomputation; the bracket is the bubble
    of a pipeline; u is the share of the peak (HFU), three of them for an interval; the stops
    are a factor, also three, and the two intervals are combined by `Interval.product`.

    (see `Options`)

    Takes single numbers, or arrays that broadcast. Memory is for the pipeline's first stage,
    with min(p, m) micro-batches in flight (p + (p − 1)/v if interleaved), or for its last
    stage with the head, whichever needs more. If the chip's bandwidths are known, the step
    model (`step_seconds`) computes the cost of the split, and u is its share of the peak
    times the `PACES` of others; if not, u is `UTILIZATIONS`, and only the bubble counts.

    Leaves out allocator fragmentation, and what ZeRO 3 gathers, except with FSDP. Raises
    ValueError for a split that doesn't divide heads, sequence, layers, batch or GPUs, for
    more pieces than layers, and for bad input of any kind.
    Source: those of the chapters before; the bubble, arXiv 2104.04473 section 2.2.

    >>> from llmtrain_helpers import Accelerator, Transformer
    >>> gpt3 = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plan = plan_run(gpt3, a100, 1024, 300e9, 1536, recompute="full",
    ...     tensor_parallel=8, pipeline_parallel=8, zero_stage=1, flops_per_gpu=140e12)
    >>> plan
    <Plan: 34.7 days, 14.0 GB a GPU, fits>
    """
    check_names("plan_run", options, Options.__annotations__)
    named: dict[str, Any] = {**options}
    shape = known_model(model, named.pop("sequence_length", None))
    chip = known_accelerator(accelerator)
    n, T, B = as_sizes(num_gpus, tokens, global_batch_size)
    return Plan.of(Run(shape, chip, n, T, B, recompute, **spelt_out(named)))


def check_size(run: Run, flops: Result, seconds: Result) -> None:
    """Refuse a run with more FLOPs or cost than we can print or calculate with."""
    if anywhere(flops > MOST):
        refuse("tokens", run.tokens, f"is too many: a run has at most {MOST:.0e} FLOPs")
    price = run.price_per_gpu_hour
    if price is not None and anywhere(price * gpu_hours(seconds, run.num_gpus) > MOST):
        refuse("price_per_gpu_hour", price, f"is too much: a run costs at most {MOST:.0e}")


def run_flops(run: Run, batch_size: Size, recompute: EveryRecompute) -> FlopCount:
    """FLOPs of this many sequences of a run, in training or in tuning."""
    if run.tuning is not None:
        tuned_recompute = choice("recompute", recompute, RECOMPUTED)
        return tuned_flops(run.model, run.tuning, batch_size, tuned_recompute)
    return count_flops(run.model, batch_size, recompute)


def run_traffic(run: Run) -> Traffic:
    """Bytes that a GPU of the stage with the most parameters sends per step."""
    model, split = run.model, run.split
    if run.tuning is not None:
        return _tuned_traffic(run, run.tuning)
    first, last = ends(split)
    P = maximum(stage_parameters(model, first), stage_parameters(model, last))
    E = maximum(stage_experts(model, first), stage_experts(model, last))
    recipe = run.bytes_of
    return unchecked(step_traffic)(
        model,
        P,
        split.micro_batch_size,
        split.accumulation_steps,
        recompute=run.recompute,
        tensor_parallel=split.tensor_parallel,
        sequence_parallel=run.sequence_parallel,
        pipeline_parallel=split.pipeline_parallel,
        interleave=split.interleave,
        context_parallel=split.context_parallel,
        context=run.context,
        expert_parallel=split.expert_parallel,
        expert_tensor_parallel=split.expert_tensor if model.num_experts else None,
        expert_parameters=E,
        imbalance=1 + run.excess,
        data_parallel=split.data_parallel,
        value_bytes=recipe.weights,
        zero_stage=run.zero_stage,
        weight_bytes=recipe.weights,
        gradient_bytes=recipe.gradients,
        keep_gradients=bool(run.keep_gradients),
        shard_size=run.shard_size,
    )


def _tuned_traffic(run: Run, tuning: Tuning) -> Traffic:
    """Traffic of tuning: gradients of everything that learns, gathered weights, activations."""
    model, split, q, t = run.model, run.split, run.sharing, run.tensor_parallel
    d, m, each = split.data_parallel, split.accumulation_steps, tuning.bytes_of
    divides("data_parallel", d, "GPUs of a node that share states", q)
    P, stage = tuned_parameters(model, tuning, t), run.zero_stage
    gradients, learning = each.gradients * P.learning, each.weights * P.learning
    weights = tuning.matrix_bytes * P.frozen + tuning.other_bytes * P.wide + learning
    sent = {2: (m + 1) * gradients, 3: m * (2 * weights + gradients)}.get(stage, 2 * gradients)
    in_layers = unchecked(step_traffic)(
        model,
        P.total,
        split.micro_batch_size,
        m,
        recompute=run.recompute,
        tensor_parallel=t,
        sequence_parallel=run.sequence_parallel,
    )
    return replace(in_layers, data=sent * (q - 1) / q + bytes_across(run))


def step_seconds(plan: Plan) -> StepSeconds | None:
    """Model the seconds of a plan's step under its split, part by part.

    A stage's layers compute for FLOPs/(t·c·peak·best share) + 2·activations/bandwidth, and
    launching their kernels takes 0.64 ms a layer and forward pass (0.2 if compiled) alongside:
    √(computing² + launching²), or the sum with experts. Then come their all-reduces, which
    Megatron-Core hides behind the products; m passes through the slowest stage, (p − 1)/v more
    of them while the pipeline fills; the gradients that the last backward pass doesn't hide; and
    the update, which moves 60 bytes per parameter through memory. Newer chips sustain less of their
    best product (`step.SUSTAINED`), and experts' products run at half rate.

    Use it to compare splits; `Plan.seconds_per_iteration` shows what other software needs (the
    paces of `PACES`). Takes a `Plan`; None if the chip's bandwidths or best share are unknown.

    Source: data/vtrain_a100_single_node.csv and vtrain_a100_multi_node.csv, whose 767
    layouts it ranks; see notebooks/evidence/08_parallelism.ipynb.
    """
    instance("plan", plan, Plan)
    return plan.step
