"""All plans from a set of choices, in one call. Goes with notebooks/09_plan.ipynb.

Sources: those of `plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from operator import and_
from typing import TYPE_CHECKING, Any, Unpack

from llmtrain_helpers import units
from llmtrain_helpers.checks import (
    Number,
    T,
    at_most,
    choice,
    count,
    flag,
    is_array,
    numpy,
    refuse,
    single,
    unchecked,
)
from llmtrain_helpers.duration import iterations
from llmtrain_helpers.flops import EVERY_RECOMPUTE, EveryRecompute
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.model.names import Chip, Model, known_accelerator, known_model
from llmtrain_helpers.parallelism import CONTEXT, Split, split_rules
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.options import Assumptions
from llmtrain_helpers.plan.pace import Shares
from llmtrain_helpers.plan.plan import Plan, check_size, plan_run
from llmtrain_helpers.plan.run import NUMBERS, Run, spelt_out
from llmtrain_helpers.results import Breakdown, Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

Choices = Number | Sequence[Number]
"""One number for all plans, or several."""

CHOICES = (*NUMBERS, "recompute", "zero_stage")
"""The options that the plans of a sweep differ in."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Many plans: one `Plan` of arrays per recomputation and ZeRO stage."""

    plans: tuple[Plan, ...]

    def __len__(self) -> int:
        return sum(numpy().size(plan.seconds.likely) for plan in self.plans)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The plans as columns of a table, one entry per plan.

        The split, `recompute` and `zero_stage`; `memory` and `room` in bytes, `fits`;
        `bubble`; `mfu`; `seconds` (likely); `throughput` in tokens/s.
        """
        np = numpy()
        tables = [_columns(plan) for plan in self.plans]
        return {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}

    def fastest(self) -> Plan:
        """The fastest plan that fits, as far as plans can tell; of equals, the least split.

        On 48 groups of measured splits, its choice is 5% slower than the best, and the
        best of its `first` three is 1.3% slower, so it's better to measure three than
        to trust one. If the chip's bandwidths are unknown, only the bubble of a split
        counts, and the order isn't better than chance.

        Raises ValueError if none fits, which says how much is missing.
        """
        return self.first(1)[0]

    def first(self, how_many: Number = 3) -> tuple[Plan, ...]:
        """The fastest few that fit, best first, for you to measure. See `fastest`."""
        np = numpy()
        table = self.columns()
        if not table["fits"].any():
            short = units.gigabytes(-table["room"].max())
            raise ValueError(f"none of {len(self):,} plans fits: at best {short} short")
        ways = [table[f"{kind}_parallel"] for kind in ("context", "pipeline", "tensor")]
        a_copy = np.prod(ways, axis=0)
        order = np.lexsort((*ways, a_copy, table["seconds"].round(6), ~table["fits"]))
        few = min(single("how_many", how_many), table["fits"].sum())
        best = [{x: table[x][i].item() for x in CHOICES} for i in order[:few]]
        return tuple(self.plans[0].replace(**chosen) for chosen in best)


def _columns(plan: Plan) -> dict[str, NDArray[Any]]:
    np = numpy()
    columns = {name: getattr(plan.run, name) for name in CHOICES} | {
        "data_parallel": plan.split.data_parallel,
        "accumulation_steps": plan.split.accumulation_steps,
        "memory": plan.memory.total,
        "room": plan.free_memory,
        "fits": plan.fits,
        "bubble": plan.split.bubble,
        "mfu": plan.mfu,
        "seconds": plan.seconds.likely,
        "throughput": plan.throughput,
    }
    size = np.size(plan.seconds.likely)
    return {name: np.broadcast_to(column, size) for name, column in columns.items()}


def sweep(
    model: Model,
    accelerator: Chip,
    num_gpus: Choices,
    tokens: Choices,
    global_batch_size: Choices,
    *,
    recompute: EveryRecompute | Sequence[EveryRecompute],
    sequence_length: Number | None = None,
    micro_batch_size: Choices = (1, 2, 4, 8),
    tensor_parallel: Choices = (1, 2, 4, 8),
    pipeline_parallel: Choices = (1, 2, 4, 8, 16),
    context_parallel: Choices = 1,
    interleave: Choices = 1,
    expert_parallel: Choices = 1,
    zero_stage: int | Sequence[int] | None = None,
    **options: Unpack[Assumptions],
) -> Sweep:
    """Make all plans from these choices in one call.

    Each argument takes one value or several (a list, a tuple, an array), except for `model`,
    `accelerator` and `sequence_length`; `options` are the other arguments of
    `plan_run`. Leaves out splits that don't divide evenly, and also
    pipelines with ZeRO 2 or 3, unless `keep_gradients` is among the options. The cost of
    a split comes from its plan (`step_seconds`); if the chip's bandwidths are unknown, it
    only includes bubble, memory and recomputation, and of equals, the one that splits the
    least is first. Raises ValueError, with the reason, if no split divides evenly.

    >>> from llmtrain_helpers import Accelerator, Transformer
    >>> gpt3 = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plans = sweep(gpt3, a100, 1024, 300e9, 1536, recompute=["none", "full"],
    ...     pipeline_parallel=[1, 2, 4, 8, 16], zero_stage=1)
    >>> len(plans), plans.fastest()
    (120, <Plan: 29.9 days, 55.6 GB a GPU, fits>)
    """
    np = numpy()
    model, accelerator = known_model(model, sequence_length), known_accelerator(accelerator)
    fixed: dict[str, Any] = spelt_out({"zero_stage": zero_stage, **options})
    several = _several("zero_stage", fixed.pop("zero_stage", 0))
    axes = {
        "num_gpus": _axis("num_gpus", num_gpus),
        "tokens": _axis("tokens", tokens),
        "global_batch_size": _axis("global_batch_size", global_batch_size),
        "micro_batch_size": _axis("micro_batch_size", micro_batch_size),
        "tensor_parallel": _axis("tensor_parallel", tensor_parallel),
        "pipeline_parallel": _axis("pipeline_parallel", pipeline_parallel),
        "context_parallel": _axis("context_parallel", context_parallel),
        "interleave": _axis("interleave", interleave),
        "expert_parallel": _axis("expert_parallel", expert_parallel),
    }
    recomputes = [choice("recompute", r, EVERY_RECOMPUTE) for r in _several("recompute", recompute)]
    stages = [single("zero_stage", z, 0) for z in several]
    pairs = dict.fromkeys(product(recomputes, stages))  # each once
    size = prod(map(len, axes.values())) * len(pairs)
    at_most("plans in the sweep", size, "what one call takes", 10_000_000)
    lengths = axes.pop("tokens")
    mesh = np.meshgrid(*axes.values(), indexing="ij")
    layouts = dict(zip(axes, map(np.ravel, mesh), strict=True))
    rules = [*_rules(model, layouts, lengths, fixed)]
    even = reduce(and_, rules)  # of so many tokens (rows) and such a layout (columns)
    if not even.any():
        kept = np.sum(np.broadcast_arrays(*rules), axis=0)
        row, nearest = np.unravel_index(kept.argmax(), kept.shape)  # breaks fewest
        split = {name: column[nearest].item() for name, column in layouts.items()}
        split["tokens"] = lengths[row].item()
        try:
            plan_run(model, accelerator, **split, recompute=recomputes[0], **fixed)
        except ValueError as error:
            if all(rule.any() for rule in rules):  # each split breaks a different rule
                none = f"none of {size:,} splits comes out even: of the nearest, {error}"
                raise ValueError(none) from error
            raise
    plans = []
    for r, z in pairs:
        # For a pipeline with sharded gradients you have to say what happens to them.
        decided = z < 2 or fixed.get("keep_gradients") is not None
        possible = even & ((layouts["pipeline_parallel"] == 1) | decided)
        if possible.any():
            run = {**fixed, "recompute": r, "zero_stage": z}
            if z < 2 <= max(stages):  # what's said of sharded gradients is for the others
                run["keep_gradients"] = None
            plans.append(_plans(model, accelerator, layouts, lengths, possible, run))
    if not plans:
        refuse("zero_stage", stages, "with pipelines alone: see keep_gradients in plan_run")
    return Sweep(tuple(plans))


def _plans(
    model: Transformer,
    accelerator: Accelerator,
    layouts: Mapping[str, NDArray[Any]],
    lengths: NDArray[Any],
    possible: NDArray[Any],
    options: Mapping[str, Any],
) -> Plan:
    """The plans of the possible pairs of tokens and layout.

    Each layout is planned once, for a run of one step, and then for all its tokens.
    """
    np = numpy()
    used = possible.any(axis=0)
    grid: dict[str, Any] = {name: column[used] for name, column in layouts.items()}
    rows, places = np.nonzero(possible[:, used])
    others = (*options.values(), *vars(accelerator).values())
    if len(lengths) == 1 or any(map(is_array, others)):  # an array may have a number for each plan
        grid = {name: column[places] for name, column in grid.items()}
        return plan_run(model, accelerator, tokens=lengths[rows], **grid, **options)
    batch = grid["global_batch_size"] * model.sequence_length
    step = plan_run(model, accelerator, tokens=batch, **grid, **options)
    return _longer(step, lengths[rows], places)


def _longer(step: Plan, tokens: NDArray[Any], places: NDArray[Any]) -> Plan:
    """Plans with these tokens, each with the layout at an index of the one-step plans."""
    np, arrays = numpy(), dict[int, Any]()  # by identity: a run and its split have the same ones

    def spread(value: Any) -> Any:
        if id(value) in arrays:
            return arrays[id(value)]
        if is_array(value):
            one = value[:1]
            alike = (value == one).all()  # then it needs no room for each plan
            column = np.broadcast_to(one, places.shape) if alike else value.take(places)
            return arrays.setdefault(id(value), column)
        if isinstance(value, tuple):
            return tuple(map(spread, value))
        if isinstance(value, (Plan, Run, Split, Shares, Interval, Breakdown)):
            return _with(value, {name: spread(part) for name, part in vars(value).items()})
        return value

    plan: Plan = spread(step)
    run = _with(plan.run, {"tokens": tokens})
    steps = unchecked(iterations)(run.tokens, run.global_batch_size, run.model.sequence_length)
    check_size(run, plan.flops.total * steps, plan.seconds.greatest * steps)
    longer = {"run": run, "iterations": steps, "seconds": plan.seconds.times(steps)}
    return _with(plan, longer)


def _with(value: T, changes: Mapping[str, Any]) -> T:
    """A copy of a frozen value with changes that don't need a check."""
    changed = copy(value)
    vars(changed).update(changes)
    return changed


def _several(name: str, values: Any) -> list[Any]:
    """The choices of an axis: one value, or several of them."""
    array = is_array(values) and hasattr(values, "tolist")
    choices = list(values) if array or isinstance(values, (list, tuple, range)) else [values]
    return choices or refuse(name, values, "is empty")


def _axis(name: str, values: Choices) -> NDArray[Any]:
    np = numpy()
    if is_array(values):
        column: NDArray[Any] = np.ravel(count(name, values))
        return column if column.size else refuse(name, values, "is empty")
    checked = [single(name, value) for value in _several(name, values)]
    return np.array(checked, dtype=float)  # type: ignore[no-any-return]


def _rules(
    model: Transformer,
    layouts: Mapping[str, NDArray[Any]],
    tokens: NDArray[Any],
    options: Mapping[str, Any],
) -> Iterator[NDArray[Any]]:
    """For each rule of `plan_run`, tell which layouts pass it.

    The last one covers tokens (rows) and layouts (columns), the others just layouts.
    """
    np = numpy()
    if is_array(count_parameters(model).total):
        refuse("model", model, "is a sweep of shapes: here it must be one shape")
    if is_array(model.sequence_length):
        refuse("sequence_length", model.sequence_length, "is an array: here it must be one number")
    sequence_parallel = flag("sequence_parallel", options.get("sequence_parallel", True))
    context = choice("context", options.get("context", "ring"), CONTEXT)
    uneven_stages = flag("uneven_stages", options.get("uneven_stages", False))
    sizes: dict[str, Any] = {**layouts}
    batch = layouts["global_batch_size"]
    x = options.get("expert_tensor_parallel")
    for rule in split_rules(
        model,
        **sizes,
        expert_tensor_parallel=None if x is None else count("expert_tensor_parallel", x),
        context=context,
        sequence_parallel=sequence_parallel,
        uneven_stages=uneven_stages,
    ):
        yield np.broadcast_to(rule.holds, batch.shape)
    yield tokens[:, None] >= batch * model.sequence_length
