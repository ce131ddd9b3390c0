"""What to change in a plan. Beside notebooks/08_plan.ipynb.

`advise` finds the cheapest changes that make a plan fit, `fewest_gpus` the least that
it fits on. Sources: those of `plan`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from llmtrain_helpers import units
from llmtrain_helpers.checks import Result, refuse
from llmtrain_helpers.communication import NODE_BANDWIDTH
from llmtrain_helpers.deprecated import OldName
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.memory import LOSS_KERNELS
from llmtrain_helpers.plan.memory import RESERVES, memory_per_gpu
from llmtrain_helpers.plan.options import Changes
from llmtrain_helpers.plan.run import TUNED, Run
from llmtrain_helpers.tuning import Tuning

if TYPE_CHECKING:  # a plan has its report, and a report has advice
    from llmtrain_helpers.plan.plan import Plan

LEVERS = ("zero_stage", "micro_batch_size", "recompute")
"""What advice changes first, in the order in which it is given: what is free leads."""

SAME: dict[str, dict[str, str]] = {
    "loss_kernel": dict.fromkeys(LOSS_KERNELS, "fused"),
    "optimizer": {"adamw": "adamw_fused"},
}
"""Changes of a tuning after which it learns the same, by field and by what it was."""

STRONGER: dict[str, tuple[str, ...]] = {
    "optimizer": ("adamw_8bit", "adamw_paged"),
    "method": ("qlora",),
    "recipe": ("pure_bf16",),
}
"""Changes that round more, or send more, from the mildest to the strongest."""

UNTRIED = (
    *("sequence_length", "tensor_parallel", "pipeline_parallel", "context_parallel"),
    *("expert_parallel", "keep_gradients", "fused_mlp", "recipe"),
)
"""What could make a plan need less and is left as it is; more `tensor_parallel` is tried with
more GPUs alone."""


def fewest_gpus(plan: Plan) -> Plan:
    """The plan on the fewest GPUs on which it fits, split as it is.

    More GPUs are more replicas: they never hold more, and less only where ZeRO shards
    over them, and where a pipeline has fewer micro-batches in flight. Takes any plan of
    one split; ValueError if it fits on no number of GPUs that divides the batch, saying
    by how much.

    >>> from llmtrain_helpers import Accelerator, Transformer, plan_run
    >>> model = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plan = plan_run(model, a100, 8, 1e12, 512, recompute="full", zero_stage=3)
    >>> fewest_gpus(plan).split.num_gpus
    4
    """
    check_one(plan)
    most = plan.run.accelerator.memory - plan.reserve
    fewest = _fewest(plan.run, most)
    if fewest.num_gpus is None:
        over = fewest.memory + plan.reserve - plan.run.accelerator.memory
        raise ValueError(
            f"the model fits on no number of GPUs at this split: on {fewest.smallest} to "
            f"{fewest.largest:,} it takes at least {units.gigabytes(fewest.memory)} on each and a "
            f"reserve of {units.gigabytes(plan.reserve)}, {units.gigabytes(over)} more "
            "than there is"
        )
    return plan.replace(num_gpus=fewest.num_gpus)


class Fewest(NamedTuple):
    """The fewest GPUs that hold a run, if any do; what each holds on the largest number."""

    num_gpus: int | None
    memory: float
    smallest: int
    largest: int


def _fewest(run: Run, most: float) -> Fewest:
    """The fewest GPUs on which a run takes at most so many bytes on each.

    More GPUs are more replicas, and more replicas never hold more: so it is searched by
    halving, among the numbers of replicas that divide the batch and share the experts.
    """
    a_replica = run.tensor_parallel * run.pipeline_parallel * run.context_parallel
    divisors = _divisors(run.global_batch_size // run.micro_batch_size)
    replicas = [d for d in divisors if d % run.expert_parallel == 0]
    if run.tuning is not None:  # which is planned on one node
        replicas = [d for d in replicas if d <= run.accelerator.gpus_per_node]

    def memory(d: int) -> float:
        return float(memory_per_gpu(run.replace(num_gpus=a_replica * d)).total)

    smallest, largest = a_replica * replicas[0], a_replica * replicas[-1]
    least = memory(replicas[-1])
    if least > most:
        return Fewest(None, least, smallest, largest)
    first = bisect_left(replicas, True, key=lambda d: memory(d) <= most)
    return Fewest(a_replica * replicas[first], least, smallest, largest)


def check_one(plan: Plan, reason: str = "here it must be one") -> None:
    """Refuse what isn't a plan, and a plan of arrays."""
    if not isinstance(getattr(plan, "run", None), Run):
        refuse("plan", plan, "is no Plan")
    if plan.is_many():
        refuse("plan", plan, f"is many: {reason}")


def _divisors(whole: int) -> list[int]:
    small = [d for d in range(1, isqrt(whole) + 1) if whole % d == 0]
    return sorted({*small, *(whole // d for d in small)})


@dataclass(frozen=True)
class Advice:
    """One thing to change in a plan that does not fit, what it saves and what it costs.

    `change` names inputs and their new values; `plan` has this change and those before;
    `saved` is in bytes on each GPU; `extra_cost` the share by which GPU-hours grow,
    communication included; `sent` the bytes more that each GPU sends in a step.
    """

    change: Changes
    plan: Plan
    saved: Result
    extra_cost: Result
    sent: Result

    dearer = OldName("extra_cost")


def advise(plan: Plan) -> tuple[Advice, ...]:
    """The cheapest changes that make the plan fit, reserve included; free ones first.

    Looks at every smaller micro-batch, higher stage of ZeRO and further recomputation,
    and takes the set that fits at the lowest price: GPU-hours first, then bytes sent,
    then the larger micro-batch. If none fits and the model is tuned, the mildest change of
    its tuning with which one does (`SAME`, `STRONGER`). Where that's not enough, more
    GPUs, as few as will do: more replicas, or else up to eight times the tensor parallelism
    as well.

    Empty if the plan fits. If nothing makes it fit, the last plan doesn't either, and its
    `free_memory` says by how much; if nothing is left to change, the one advice has no `change`.

    The price is that of the plan's own seconds, sending and launching in it. Where the
    chip's bandwidths are unknown, a step takes its computing or its sending between
    replicas, whichever is longer, at `NODE_BANDWIDTH`. A pipeline is offered no ZeRO
    beyond stage 1 unless the plan says what becomes of its gradients.

    >>> from llmtrain_helpers import Accelerator, Transformer, plan_run
    >>> model = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plan = plan_run(model, a100, 8, 1e12, 512, recompute="none", micro_batch_size=4)
    >>> [advice.change for advice in advise(plan)]
    [{'zero_stage': 2}, {'micro_batch_size': 1}, {'recompute': 'alternate'}]
    """
    check_one(plan)
    if plan.fits:
        return ()
    runs, most = _milder(plan.run), plan.run.accelerator.memory - plan.reserve
    leanest = plan.run, float(plan.memory.total)
    for layouts in map(_further, runs):
        sizes = [(run, float(memory_per_gpu(run).total)) for run in layouts]
        fitting = [plan.of(run) for run, size in sizes if size <= most]
        if fitting:
            return _in_steps(plan, min(fitting, key=lambda other: _price(other, plan)))
        leanest = min(leanest, *sizes, key=lambda pair: pair[1])
    on_more = (_on_more_gpus(run, plan) for run in runs)
    return _in_steps(plan, next(filter(None, on_more), None) or plan.of(leanest[0]))


def _milder(run: Run) -> list[Run]:
    """The run as it is, and with other tunings if it has one, each once, the mildest first."""
    tuning = run.tuning
    if tuning is None:
        return [run]
    same = {
        name: (new[current],)
        for name, new in SAME.items()
        if (current := getattr(tuning, name)) in new
    }
    ways = ({**mild, **strong} for strong in _ways(STRONGER) for mild in _ways(same))
    runs = [run, *filter(None, (run.if_even(**way) for way in ways))]
    different: dict[Tuning | None, Run] = {}
    for each in runs:
        different.setdefault(each.tuning, each)
    return [*different.values()]


def _ways(choices: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Every set of these changes, from none to one of each name, the first names first."""
    ways: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        ways += [{**way, name: value} for value in values for way in ways]
    return ways


def _further(run: Run) -> list[Run]:
    """A run with every smaller micro-batch, higher stage and further recomputation."""
    b = run.split.micro_batch_size
    sequences = _divisors(b * run.split.accumulation_steps)  # those of a replica
    sizes = [size for size in sequences if size <= b]
    choices = product(range(run.zero_stage, 4), sizes, _further_recompute(run))
    further = (
        run.if_even(zero_stage=stage, micro_batch_size=size, recompute=recompute)
        for stage, size, recompute in choices  # some stages do not go with a pipeline
    )
    return [run for run in further if run is not None]


def _further_recompute(run: Run) -> list[EveryRecompute]:
    """What recomputes all that the run does, or more; selective only where scores are stored."""
    if run.recompute != "none":
        return list(dict.fromkeys([run.recompute, "full"]))
    stored: list[EveryRecompute] = ["selective"] if run.attention == "unfused" else []
    return ["none", *stored, "alternate", "full"]


def _on_more_gpus(run: Run, plan: Plan) -> Plan | None:
    """On the fewest more GPUs that do: replicas with ZeRO, or a wider split as well."""
    reserve = plan.reserve
    if run.tuning is not None and run.reserve is None:
        reserve = RESERVES["several"]
    most = run.accelerator.memory - reserve
    for wider in (1, 2, 4, 8):
        t = wider * run.tensor_parallel
        fitting = []
        for recompute, stage in product(_further_recompute(run), range(run.zero_stage, 4)):
            wide = run.if_even(
                num_gpus=t * run.pipeline_parallel * run.context_parallel * run.expert_parallel,
                tensor_parallel=t,
                micro_batch_size=1,
                recompute=recompute,
                zero_stage=stage,
            )
            fewest = None if wide is None else _fewest(wide, most).num_gpus
            if wide is not None and fewest is not None:
                fitting.append(wide.replace(num_gpus=fewest))
        if fitting:
            least = min(run.num_gpus for run in fitting)
            plans = [plan.of(run) for run in fitting if run.num_gpus == least]
            return min(plans, key=lambda other: _price(other, plan))
    return None


def _price(plan: Plan, original: Plan) -> tuple[float, ...]:
    """What to compare plans by: GPU-hours, bytes sent, the micro-batch."""
    changed = sum(getattr(plan.run, x) != getattr(original.run, x) for x in LEVERS)
    cost = round(_gpu_seconds(plan) / _gpu_seconds(original), 3)
    return cost, plan.traffic, -plan.split.micro_batch_size, changed


def _gpu_seconds(plan: Plan) -> float:
    """GPU-seconds of a step: computing, or sending if that takes longer.

    The model of a step has both in it; without one a node's bandwidth is assumed.
    """
    if plan.step is not None:
        return float(plan.seconds_per_iteration.likely * plan.split.num_gpus)
    bandwidth = NODE_BANDWIDTH / min(plan.split.tensor_parallel, 8)
    seconds = max(plan.seconds_per_iteration.likely, plan.traffic / bandwidth)
    return float(seconds * plan.split.num_gpus)


def _in_steps(plan: Plan, best: Plan) -> tuple[Advice, ...]:
    """From one plan to the other, one thing at a time, what is free first.

    Where GPUs are added, they and what goes with them are the last step.
    """
    tuned = () if plan.run.tuning is None else TUNED
    names = (*LEVERS, *tuned, "num_gpus", "tensor_parallel")
    old, new = (vars(x.run) | vars(x.run.tuning or x.run) for x in (plan, best))
    targets = {x: new[x] for x in names if new[x] != old[x]}
    if not targets:
        return (Advice({}, plan, 0, 0, 0),)
    one_by_one = (*LEVERS, *tuned)[("num_gpus" in targets) :]
    changes: list[Any] = [{x: targets[x]} for x in one_by_one if x in targets]
    changes.append({x: targets[x] for x in targets if x not in one_by_one})
    steps = []
    for change in filter(None, changes):
        better = plan.replace(**change)
        saved = plan.memory.total - better.memory.total
        extra_cost = _gpu_seconds(better) / _gpu_seconds(plan) - 1
        steps.append(Advice(change, better, saved, extra_cost, better.traffic - plan.traffic))
        plan = better
    return tuple(steps)
