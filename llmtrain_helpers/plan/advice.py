"""What to change in a plan. Goes with notebooks/09_plan.ipynb.

`advise` finds the cheapest changes that make a plan fit, and `fewest_gpus` the fewest GPUs
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
"""The order in which advice gives its changes: free ones first."""

OF_MOMENT = {
    "loss": ("loss_kernel", "attention"),
    "last layer": ("attention", "recompute"),
    "first layer": ("zero_stage", "optimizer", "offload"),
    "update": ("zero_stage", "optimizer", "offload"),
}
"""The levers of each moment of a step: the changes that reduce its memory."""

SAME: dict[str, dict[str, str]] = {
    "loss_kernel": dict.fromkeys(LOSS_KERNELS, "fused"),
    "attention": dict.fromkeys(KERNELS, "flash"),
    "optimizer": {"adamw": "adamw_fused"},
}
"""Changes that don't affect what a model learns, by option and old value."""

STRONGER: dict[str, tuple[str, ...]] = {
    "optimizer": ("adamw_8bit", "adamw_paged", "adamw_in_backward"),
    "method": ("qlora",),
    "recipe": ("pure_bf16",),
    "offload": ("optimizer", "weights"),
}
"""Changes that round more, send more or can't clip gradients, from the mildest to the strongest.

SGD and Muon never need less than paged states. A recipe only changes in tuning."""

HOST_MEMORY = 2e12
"""Bytes of host memory per node that advice assumes: a DGX H100's (NVIDIA's datasheet)."""

WIDER = (1, 2, 4, 8)
"""Factors by which advice can raise the tensor parallelism, up to a node."""

FIXABLE = (*SAME, "method", "recipe", "offload", "tensor_parallel")
"""Options that you can tell advice to leave alone."""

UNTRIED = (
    *("sequence_length", "pipeline_parallel", "context_parallel"),
    *("expert_parallel", "expert_tensor_parallel", "keep_gradients", "fused_mlp", "recipe"),
)
"""Options that could reduce a plan's memory, but that advice doesn't change."""


def fewest_gpus(plan: Plan) -> Plan:
    """Find the fewest GPUs on which a plan fits with the same split.

    More GPUs mean more replicas. Each never needs more memory, and only needs less if ZeRO
    shards over them, or if a pipeline has fewer micro-batches in flight. Takes a plan of
    one split. Raises ValueError, which says what's missing, if it doesn't fit on any
    number of GPUs that divides the batch.

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
        over = fewest.memory + fewest.reserve - plan.card
        raise ValueError(
            f"the model doesn't fit on any number of GPUs with this split: on {fewest.smallest} to "
            f"{fewest.largest:,} each needs at least {units.gigabytes(fewest.memory)} and a "
            f"reserve of {units.gigabytes(fewest.reserve)}, {units.gigabytes(over)} more "
            "than it has"
        )
    return plan.replace(num_gpus=fewest.num_gpus)


class Fewest(NamedTuple):
    """The fewest GPUs that a run fits on, if any; what each needs on the largest number."""

    num_gpus: int | None
    memory: float
    reserve: float
    smallest: int
    largest: int


def _fewest(run: Run) -> Fewest:
    """Find the fewest GPUs on which a run fits.

    More GPUs mean more replicas, which never need more memory each, so we can bisect over the
    numbers of replicas that divide the batch and share the experts. We search those with a
    smaller reserve separately (one GPU, and for tuning a node's), and also those with whole
    experts, because there each GPU has more of them.
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
    least = min((float(memory_per_gpu(each).total), reserve_bytes(each)) for each in most)
    return Fewest(min(fitting, default=None), *least, numbers[0], numbers[-1])


def _fewest_replicas(run: Run) -> int:
    """Find the fewest replicas that can share a run's experts, with its other parallelism."""
    sizes = run.tensor_parallel, run.context_parallel, run.expert_parallel
    return fewest_replicas(*sizes, run.expert_tensor_parallel, run.sequence_parallel)


def _free(run: Run) -> float:
    """Return the bytes of the card that a run leaves free, minus its reserve."""
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
    """One thing to change in a plan that doesn't fit, what it saves, and what it costs.

    `change` names inputs and their new values; `plan` includes this change and those before;
    `saved` is in bytes per GPU; `extra_cost` is the share by which GPU-hours grow,
    including communication; `sent` is how many more bytes each GPU sends per step.
    """

    change: Changes
    plan: Plan
    saved: Result
    extra_cost: Result
    sent: Result

    dearer = OldName("extra_cost")


def advise(plan: Plan, fixed: Collection[str] = ()) -> tuple[Advice, ...]:
    """Find the cheapest changes that make a plan fit with its reserve; free ones come first.

    Tries the loss and attention kernels, every smaller micro-batch, higher ZeRO stage and more
    recomputation, and picks the set that fits at the lowest price. Price means GPU-hours, then
    the lever of the fullest moment (`OF_MOMENT`), then bytes sent, then the larger micro-batch.
    If none fits, more GPUs share each matrix. Next it tries the same with the mildest change
    that works of optimizer, of method or recipe (in tuning), or of offload (`STRONGER`; a host
    has `HOST_MEMORY`). In tuning, sharing matrices comes last, because nobody has measured it.
    If that's not enough, it adds as few GPUs as possible: more replicas, or else also up to
    eight times the tensor parallelism. Of the loss kernel, attention, optimizer, method,
    recipe, offload and tensor parallelism, those that are `fixed` don't change.

    Empty if the plan fits. If nothing makes it fit, the last plan doesn't either, and its
    `free_memory` shows how much; with nothing left to change, the only advice has no `change`.

    The price uses the plan's own seconds, including communication and kernel launches. If the
    chip's bandwidths are unknown, a step lasts as long as its computing or its traffic
    between replicas, whichever is longer, at `NODE_BANDWIDTH`. For a pipeline, ZeRO 2 and 3
    are only offered if the plan sets `keep_gradients`.

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
        # If the leanest of them doesn't fit, none does, so there's no need to try them all.
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
    """Yield the changes of `STRONGER`, mildest first, each with those of `SAME`, none to all."""
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
    """Multiply the GPUs that share each matrix by a factor, if a node has enough."""
    t = times * run.tensor_parallel
    if times == 1:
        return run
    return run.if_even(tensor_parallel=t) if t <= run.accelerator.gpus_per_node else None


def _ways(choices: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Yield every set of these changes, from none to one per name, first names first."""
    ways: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        ways += [{**way, name: value} for value in values for way in ways]
    return ways


def _further(run: Run, ways: Sequence[Mapping[str, Any]], ends: bool = False) -> list[Run]:
    """Yield a run with every smaller micro-batch, higher stage and more recomputation.

    Each has these changes; with `ends`, only the smallest and the largest micro-batch. (A
    single pass of a large one doesn't have gradients of earlier passes.)
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
    """Tell whether a run offloads the same as before, or no more than its hosts can store."""
    on_node = min(run.num_gpus, run.accelerator.gpus_per_node)
    if run.offload in ("none", before):
        return True
    return bool(on_node * offloaded_bytes(run) <= HOST_MEMORY)


def _further_recompute(run: Run) -> list[EveryRecompute]:
    """Recomputation that covers at least the run's; selective only if scores are stored."""
    if run.recompute != "none":
        return list(dict.fromkeys([run.recompute, "full"]))
    stored: list[EveryRecompute] = ["selective"] if run.attention != "flash" else []
    return ["none", *stored, "alternate", "full"]


def _on_more_gpus(plan: Plan, ways: Sequence[Mapping[str, Any]], wider: int) -> Plan | None:
    """Add the fewest GPUs that make it fit: replicas with ZeRO, perhaps a wider split too."""
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
    """The key for comparing plans: GPU-hours, the moment's lever, bytes sent, micro-batch."""
    changed = _changed(original, plan)
    cost = round(_gpu_seconds(plan) / _gpu_seconds(original), 3)
    others = len({*changed} - {*OF_MOMENT[original.phase]})
    return cost, others > 0, plan.traffic, -plan.split.micro_batch_size, len(changed)


def _changed(plan: Plan, other: Plan) -> dict[str, Any]:
    """List what another plan changes, in the order of advice."""
    names = (*LEVERS, *STRONGER, "num_gpus", "tensor_parallel")
    old, new = (vars(x.run) | vars(x.run.tuning or x.run) for x in (plan, other))
    return {x: new[x] for x in names if x in new and new[x] != old[x]}


def _gpu_seconds(plan: Plan) -> float:
    """GPU-seconds of a step: computing, or sending if that takes longer.

    A step of known links includes both; without them, we assume a node's bandwidth.
    """
    if plan.counts_traffic:
        return float(plan.seconds_per_iteration.likely * plan.split.num_gpus)
    bandwidth = NODE_BANDWIDTH / min(plan.split.tensor_parallel, 8)
    seconds = max(plan.seconds_per_iteration.likely, plan.traffic / bandwidth)
    return float(seconds * plan.split.num_gpus)


def _in_steps(plan: Plan, best: Plan) -> tuple[Advice, ...]:
    """Go from one plan to the other, one change at a time, free ones first.

    If GPUs are added, they and what goes with them are the last step.
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
