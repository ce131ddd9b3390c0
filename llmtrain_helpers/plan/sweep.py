"""Every plan that some choices make, in one call. Beside notebooks/08_plan.ipynb.

Sources: those of `plan`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from operator import and_
from typing import TYPE_CHECKING, Any, Unpack

from llmtrain_helpers import units
from llmtrain_helpers.checks import (
    Number,
    at_most,
    choice,
    count,
    flag,
    is_array,
    numpy,
    refuse,
    single,
)
from llmtrain_helpers.flops import EVERY_RECOMPUTE, EveryRecompute
from llmtrain_helpers.model import Transformer
from llmtrain_helpers.model.names import Chip, Model, known_accelerator, known_model
from llmtrain_helpers.parallelism import CONTEXT, split_rules
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.options import Assumptions
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.plan.run import NUMBERS, spelt_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

Choices = Number | Sequence[Number]
"""One number for all plans, or several."""

CHOICES = (*NUMBERS, "recompute", "zero_stage")
"""What the plans of a sweep differ in."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Many plans: one `Plan` of arrays for each recomputation and ZeRO stage."""

    plans: tuple[Plan, ...]

    def __len__(self) -> int:
        return sum(numpy().size(plan.seconds.likely) for plan in self.plans)

    def columns(self) -> dict[str, NDArray[Any]]:
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
        trusting one. Where the chip's bandwidths are unknown, a split counts by its
        bubble alone, and the order is no better than chance.

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
    """Every plan that these choices make, in one call.

    Each argument takes one value or several (a list, a tuple, an array), but `model`,
    `accelerator` and `sequence_length` are one; `options` are the other arguments of
    `plan_run`. Splits that do not come out even are left out,
    and pipelines with ZeRO 2 or 3 unless `keep_gradients` is among the options. What a
    split costs is what a plan says (`step_seconds`); where the chip's bandwidths are
    unknown, only bubble, memory and recomputed work, and of equals the one that splits
    least stands first. ValueError if no split comes out even, with the reason.

    >>> from llmtrain_helpers import Accelerator, Transformer
    >>> gpt3 = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plans = sweep(gpt3, a100, 1024, 300e9, 1536, recompute=["none", "full"],
    ...     pipeline_parallel=[1, 2, 4, 8, 16], zero_stage=1)
    >>> len(plans), plans.fastest()
    (120, <Plan: 28.3 days, 55.6 GB a GPU, fits>)
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
    mesh = dict(zip(axes, map(np.ravel, np.meshgrid(*axes.values())), strict=True))
    even = reduce(and_, _rules(model, mesh, fixed))
    if not even.any():
        rules = [*_rules(model, mesh, fixed)]
        nearest = np.sum(rules, axis=0).argmax()  # breaks fewest
        split = {name: column[nearest].item() for name, column in mesh.items()}
        try:
            plan_run(model, accelerator, **split, recompute=recomputes[0], **fixed)
        except ValueError as error:
            if all(rule.any() for rule in rules):  # each split has a fault of its own
                none = f"none of {size:,} splits comes out even: of the nearest, {error}"
                raise ValueError(none) from error
            raise
    plans = []
    for r, z in pairs:
        # A pipeline with sharded gradients must be told what becomes of them.
        decided = z < 2 or fixed.get("keep_gradients") is not None
        possible = even & ((mesh["pipeline_parallel"] == 1) | decided)
        if possible.any():
            grid = {name: column[possible] for name, column in mesh.items()}
            run = {**fixed, **grid, "recompute": r, "zero_stage": z}
            if z < 2 <= max(stages):  # what's said of sharded gradients is for the others
                run["keep_gradients"] = None
            plans.append(plan_run(model, accelerator, **run))
    if not plans:
        refuse("zero_stage", stages, "with pipelines alone: see keep_gradients in plan_run")
    return Sweep(tuple(plans))


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
    model: Transformer, mesh: Mapping[str, NDArray[Any]], options: Mapping[str, Any]
) -> Iterator[NDArray[Any]]:
    """For each thing that `plan_run` would refuse, which of the splits it would let pass."""
    np = numpy()
    if is_array(count_parameters(model).total):
        refuse("model", model, "is many shapes: here it must be one")
    if is_array(model.sequence_length):
        refuse("sequence_length", model.sequence_length, "is an array: here it must be one number")
    sequence_parallel = flag("sequence_parallel", options.get("sequence_parallel", True))
    context = choice("context", options.get("context", "ring"), CONTEXT)
    uneven_stages = flag("uneven_stages", options.get("uneven_stages", False))
    sizes: dict[str, Any] = {name: column for name, column in mesh.items() if name != "tokens"}
    yield mesh["tokens"] >= mesh["global_batch_size"] * model.sequence_length
    for rule in split_rules(
        model,
        **sizes,
        context=context,
        sequence_parallel=sequence_parallel,
        uneven_stages=uneven_stages,
    ):
        yield np.broadcast_to(rule.holds, mesh["tokens"].shape)
