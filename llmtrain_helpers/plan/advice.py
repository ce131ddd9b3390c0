"""What to change in a plan. Beside notebooks/09_plan.ipynb.

`advise` finds the cheapest changes that make a plan fit, `fewest_gpus` the least that
it fits on. Sources: those of `plan`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from llmtrain_helpers import units
from llmtrain_helpers.activations import KERNELS
from llmtrain_helpers.checks import Result, choice, refuse
from llmtrain_helpers.communication import NODE_BANDWIDTH
from llmtrain_helpers.deprecated import OldName
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.memory import LOSS_KERNELS, Offload
from llmtrain_helpers.parallelism import expert_tensor_size, fewest_replicas
from llmtrain_helpers.plan.memory import card_bytes, memory_per_gpu, offloaded_bytes, reserve_bytes
from llmtrain_helpers.plan.options import Changes
from llmtrain_helpers.plan.run import Run

if TYPE_CHECKING:  # a plan has its report, and a report has advice
    from llmtrain_helpers.plan.plan import Plan

LEVERS = ("loss_kernel", "attention", "zero_stage", "micro_batch_size", "recompute")
"""What advice changes first, in the order in which it is given: what is free leads."""

OF_MOMENT = {
    "loss": ("loss_kernel", "attention"),
    "last layer": ("attention", "recompute"),
    "first layer": ("zero_stage", "optimizer", "offload"),
    "update": ("zero_stage", "optimizer", "offload"),
}
"""The levers of each moment of a step: what makes memory less there."""

SAME: dict[str, dict[str, str]] = {
    "loss_kernel": dict.fromkeys(LOSS_KERNELS, "fused"),
    "attention": dict.fromkeys(KERNELS, "flash"),
    "optimizer": {"adamw": "adamw_fused"},
}
"""Changes after which a model learns the same, by option and by what it was."""

STRONGER: dict[str, tuple[str, ...]] = {
    "optimizer": ("adamw_8bit", "adamw_paged", "adamw_in_backward"),
    "method": ("qlora",),
    "recipe": ("pure_bf16",),
    "offload": ("optimizer", "weights"),
}
"""Changes that round more, send more or can't clip gradients, from the mildest to the strongest.

SGD and Muon never need less than states that are paged. A recipe is changed in tuning alone."""

HOST_MEMORY = 2e12
"""Bytes of a node's own memory that advice counts on: a DGX H100's (NVIDIA's datasheet)."""

WIDER = (1, 2, 4, 8)
"""How many times as many GPUs as now advice lets share each matrix, at most a node's."""

FIXABLE = (*SAME, "method", "recipe", "offload", "tensor_parallel")
"""What advice can be told to leave as it is."""

UNTRIED = (
    *("sequence_length", "pipeline_parallel", "context_parallel"),
    *("expert_parallel", "expert_tensor_parallel", "keep_gradients", "fused_mlp", "recipe"),
)
"""What could make a plan need less and is left as it is."""


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
    fewest = _fewest(plan.run)
    if fewest.num_gpus is None:
        over = fewest.memory + plan.reserve - plan.card
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


def _fewest(run: Run) -> Fewest:
    """The fewest GPUs on which a run fits.

    More GPUs are more replicas, and more replicas never hold more: so it is searched by
    halving, among the numbers of replicas that divide the batch and share the experts. Those
    with a smaller reserve are searched by themselves: one GPU, and for tuning those of a node.
    So are those whose experts are whole, of which each GPU has more.
    """
    a_replica = run.tensor_parallel * run.pipeline_parallel * run.context_parallel
    divisors = _divisors(run.global_batch_size // run.micro_batch_size)
    replicas = [d for d in divisors if d % _fewest_replicas(run) == 0]
    node = run.accelerator.gpus_per_node

    def fits(n: int) -> bool:
        return _free(run.replace(num_gpus=n)) >= 0

    def whole(n: int) -> bool:
        c, t, e = run.context_parallel, run.tensor_parallel, run.expert_parallel
        return expert_tensor_size(t, c, n // a_replica, e) < t

    def ways(n: int) -> tuple[bool, bool, bool]:
        return n > 1, run.tuning is not None and n > node, whole(n)

    numbers = [a_replica * d for d in replicas]
    alike = [[*group] for _, group in groupby(sorted(numbers, key=ways), ways)]
    fitting = (x[bisect_left(x, True, key=fits)] for x in alike if fits(x[-1]))
    most = {whole(n): run.replace(num_gpus=n) for n in numbers}.values()
    least = min(float(memory_per_gpu(each).total) for each in most)
    return Fewest(min(fitting, default=None), least, numbers[0], numbers[-1])


def _fewest_replicas(run: Run) -> int:
    """The fewest replicas that share a run's experts, with its tensor and context parallelism."""
    sizes = run.tensor_parallel, run.context_parallel, run.expert_parallel
    return fewest_replicas(*sizes, run.expert_tensor_parallel, run.sequence_parallel)


def _free(run: Run) -> float:
    """The bytes of the card that a run leaves, less its reserve."""
    free = card_bytes(run.accelerator) - reserve_bytes(run) - memory_per_gpu(run).total
    return float(free)


def check_one(plan: Plan, reason: str = "here it must be one") -> None:
    """Refuse what isn't a plan, and a plan of arrays."""
    if not isinstance(getattr(plan, "run", None), Run):
        refuse("plan", plan, "isn't a Plan")
    if plan.is_many():
        refuse("plan", plan, f"is a sweep of plans: {reason}")


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


def advise(plan: Plan, fixed: Collection[str] = ()) -> tuple[Advice, ...]:
    """The cheapest changes that make the plan fit, reserve included; free ones first.

    Looks at the loss's kernel, attention's, every smaller micro-batch, higher stage of ZeRO and
    further recomputation, and takes the set that fits at the lowest price: GPU-hours first, then
    the lever of the fullest moment alone (`OF_MOMENT`), then bytes sent, then the larger
    micro-batch. If none fits, more GPUs share each matrix; and then the same with the mildest
    change of optimizer, in tuning of method or recipe, or offload, with which one does
    (`STRONGER`; a host has `HOST_MEMORY`). In tuning matrices are shared last, for nobody has
    measured that. Where that's not enough, more GPUs, as few as will do: more replicas, or else
    up to eight times the tensor parallelism as well. Of the loss's kernel, attention, optimizer,
    method, recipe, offload and tensor parallelism, those that are `fixed` stay as they are.

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
    [{'loss_kernel': 'fused'}, {'zero_stage': 2}, {'micro_batch_size': 1}]
    """
    check_one(plan)
    if not isinstance(fixed, (list, tuple, set, frozenset)):
        refuse("fixed", fixed, "isn't a list of options")
    fixed = [choice("fixed", name, FIXABLE) for name in fixed]
    if plan.fits:
        return ()
    leanest = plan.run, _free(plan.run)
    ways = _same_or_stronger(plan.run, fixed)
    trials = [*product(ways, WIDER if "tensor_parallel" not in fixed else (1,))]
    if plan.run.tuning is not None:
        trials.sort(key=lambda trial: trial[1] > 1)
    for (strong, same), wider in trials:
        wide = _wider(plan.run, wider)
        if wide is None:
            continue
        # What the leanest of them doesn't do, none does: no need to look at all.
        leaner = [{**way, **strong} for way in (same[0], same[-1])]
        few = [(run, _free(run)) for run in _further(wide, leaner, ends=True)]
        leanest = max([leanest, *few], key=lambda pair: pair[1])
        if any(free >= 0 for _, free in few):
            runs = _further(wide, [{**way, **strong} for way in same])
            plans = [plan.of(run) for run in runs if _free(run) >= 0]
            return _in_steps(plan, min(plans, key=lambda other: _price(other, plan)))
    on_more = (
        _on_more_gpus(plan, [{**way, **strong} for way in same], wider)
        for (strong, same), wider in trials
    )
    return _in_steps(plan, next(filter(None, on_more), None) or plan.of(leanest[0]))


def _same_or_stronger(
    run: Run, fixed: Collection[str]
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Changes of `STRONGER`, the mildest first, each with those of `SAME`, from none to all."""
    now = {**vars(run), **vars(run.tuning or run)}
    now |= {"loss_kernel": run.loss, "optimizer": run.update}
    names = STRONGER if run.tuning is not None else ("optimizer", "offload")
    stronger = {x: [y for y in STRONGER[x] if y != now[x]] for x in names if x not in fixed}
    milder = {x: new.get(now[x]) for x, new in SAME.items() if x not in fixed}
    same = {x: (y,) for x, y in milder.items() if y not in (None, now[x])}
    return [
        (strong, _ways({x: y for x, y in same.items() if x not in strong}))
        for strong in _ways(stronger)
        if not {"optimizer", "offload"} <= {*strong}  # which don't go together
    ]


def _wider(run: Run, times: int) -> Run | None:
    """The run with so many times as many of its GPUs for each matrix, where a node has them."""
    t = times * run.tensor_parallel
    if times == 1:
        return run
    return run.if_even(tensor_parallel=t) if t <= run.accelerator.gpus_per_node else None


def _ways(choices: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Every set of these changes, from none to one of each name, the first names first."""
    ways: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        ways += [{**way, name: value} for value in values for way in ways]
    return ways


def _further(run: Run, ways: Sequence[Mapping[str, Any]], ends: bool = False) -> list[Run]:
    """A run with every smaller micro-batch, higher stage and further recomputation.

    Each with these changes; with `ends` only the smallest and the largest micro-batch. (One
    pass of a large one has no gradients of earlier passes.)
    """
    b, before = run.split.micro_batch_size, run.offload
    sequences = _divisors(b * run.split.accumulation_steps)  # those of a replica
    sizes = [size for size in sequences if size <= b]
    sizes = sorted({sizes[0], sizes[-1]}) if ends else sizes
    choices = product(range(run.zero_stage, 4), sizes, _further_recompute(run), ways)
    further = (
        run.if_even(zero_stage=stage, micro_batch_size=size, recompute=recompute, **way)
        for stage, size, recompute, way in choices  # some stages do not go with a pipeline
        if stage == 3 or way.get("offload") != "weights"
    )
    return [run for run in further if run is not None and _is_hosted(run, before)]


def _is_hosted(run: Run, before: Offload) -> bool:
    """Tell whether what a run offloads is what it did before, or no more than its hosts have."""
    on_node = min(run.num_gpus, run.accelerator.gpus_per_node)
    if run.offload in ("none", before):
        return True
    return bool(on_node * offloaded_bytes(run) <= HOST_MEMORY)


def _further_recompute(run: Run) -> list[EveryRecompute]:
    """What recomputes all that the run does, or more; selective only where scores are stored."""
    if run.recompute != "none":
        return list(dict.fromkeys([run.recompute, "full"]))
    stored: list[EveryRecompute] = ["selective"] if run.attention != "flash" else []
    return ["none", *stored, "alternate", "full"]


def _on_more_gpus(plan: Plan, ways: Sequence[Mapping[str, Any]], wider: int) -> Plan | None:
    """On the fewest more GPUs that do: replicas with ZeRO, and perhaps a wider split as well."""
    run = plan.run
    fitting: list[Run] = []
    t, e, x = wider * run.tensor_parallel, run.expert_parallel, run.expert_tensor_parallel
    x = t if x == run.tensor_parallel > 1 else x
    of_experts = fewest_replicas(t, run.context_parallel, e, x, run.sequence_parallel)
    stages = range(run.zero_stage, 4)
    for recompute, stage, way in product(_further_recompute(run), stages, ways):
        wide = run.if_even(
            num_gpus=t * run.pipeline_parallel * run.context_parallel * of_experts,
            tensor_parallel=t,
            micro_batch_size=1,
            recompute=recompute,
            zero_stage=stage,
            **way,
        )
        fewest = None if wide is None else _fewest(wide).num_gpus
        if wide is not None and fewest is not None:
            on_fewest = wide.replace(num_gpus=fewest)
            fitting += [on_fewest] if _is_hosted(on_fewest, run.offload) else []
    if not fitting:
        return None
    least = min(run.num_gpus for run in fitting)
    plans = [plan.of(run) for run in fitting if run.num_gpus == least]
    return min(plans, key=lambda other: _price(other, plan))


def _price(plan: Plan, original: Plan) -> tuple[float, ...]:
    """What to compare plans by: GPU-hours, the moment's lever, bytes sent, the micro-batch."""
    changed = _changed(original, plan)
    cost = round(_gpu_seconds(plan) / _gpu_seconds(original), 3)
    others = len({*changed} - {*OF_MOMENT[original.phase]})
    return cost, others > 0, plan.traffic, -plan.split.micro_batch_size, len(changed)


def _changed(plan: Plan, other: Plan) -> dict[str, Any]:
    """What another plan changes, in the order in which advice gives it."""
    names = (*LEVERS, *STRONGER, "num_gpus", "tensor_parallel")
    old, new = (vars(x.run) | vars(x.run.tuning or x.run) for x in (plan, other))
    return {x: new[x] for x in names if x in new and new[x] != old[x]}


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
    targets = _changed(plan, best)
    if not targets:
        return (Advice({}, plan, 0, 0, 0),)
    sharded = ("zero_stage",) if "num_gpus" in targets else ()
    together = {*sharded, "num_gpus", "tensor_parallel"}
    changes: list[Any] = [{x: value} for x, value in targets.items() if x not in together]
    changes.append({x: value for x, value in targets.items() if x in together})
    steps: list[Advice] = []
    change: Any = {}
    for more in filter(None, changes):
        change = change | more
        run = plan.run.if_even(**change)
        if run is None:  # it goes with the next alone
            continue
        better = plan.of(run)
        saved = plan.memory.total - better.memory.total
        extra_cost = _gpu_seconds(better) / _gpu_seconds(plan) - 1
        steps.append(Advice(change, better, saved, extra_cost, better.traffic - plan.traffic))
        plan, change = better, {}
    return tuple(steps)
