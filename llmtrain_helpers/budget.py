"""Chapter 11: which model to train. Goes with notebooks/11_budget.ipynb.

Turns GPUs, days and money into a model and its tokens: every shape of a shelf gets its
best split, the tokens that fit into the days, and the loss that a law predicts. The laws
are in `laws`. Sources: Hoffmann et al. (arXiv 2203.15556), Besiroglu et al.
(arXiv 2404.10102), and what `plan` rests on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias, Unpack

from llmtrain_helpers import units
from llmtrain_helpers.checks import (
    Count,
    Number,
    Quantity,
    Result,
    as_results,
    broadcast,
    checked,
    instance,
    is_array,
    refuse,
    single,
)
from llmtrain_helpers.duration import gpu_hours
from llmtrain_helpers.laws import Law, loss, loss_law, outside
from llmtrain_helpers.model import Transformer
from llmtrain_helpers.model.names import Chip
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.options import SearchOptions
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.search import best_split
from llmtrain_helpers.results import Interval


@checked
def most_tokens(plan: Plan, days: Quantity[Number]) -> Interval:
    """The tokens that this plan's model, GPUs and split can process in so many days.

    An `Interval`: at the slow end of the plan's days, likely, at the fast end.

    >>> from llmtrain_helpers import Accelerator, plan_run
    >>> model = Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192)
    >>> h100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})
    >>> plan = plan_run(model, h100, 64, 1e12, 512, recompute="none", zero_stage=3)
    >>> f"{most_tokens(plan, 30).likely:.3g}"
    '1.16e+12'
    """
    (t,), T, span = as_results(days), plan.run.tokens, plan.days
    broadcast(days=days, plan=span.likely, tokens=T)
    return Interval(*(T * t / x for x in (span.greatest, span.likely, span.least)))


# --- the frontier: every shape of a shelf at the same GPUs and days


class Outcome(NamedTuple):
    """A shape at the budget: its size, tokens and loss, and whether it trains here.

    `answers` tells whether it fits on the card that you want to serve it on.
    """

    name: str
    parameters: float
    tokens: float
    loss: float
    fits: bool
    answers: bool = True

    @property
    def flops(self) -> float:
        """The work as 6ND, in FLOP."""
        return 6 * self.parameters * self.tokens


AGAIN: dict[str, list[str]] = {
    "none": [],
    "selective": ["scores recomputed"],
    "alternate": ["half recomputed"],
    "full": ["recomputed"],
}
"""What's recomputed, as a table words it."""


@dataclass(frozen=True, eq=False)
class Point:
    """A shape at the budget: its plan with the best split, and its tokens.

    `plan` trains on the likely `tokens`, and finishes in time at the median speed of
    other runs. `loss` is an `Interval` over the tokens. `answers` tells whether it fits
    on the card that you want to serve it on.
    """

    name: str
    plan: Plan
    tokens: Interval
    loss: Interval
    outside: str
    answers: bool = True

    @property
    def parameters(self) -> Result:
        """The model's parameters, experts included."""
        return self.plan.parameters.total

    @property
    def fits(self) -> bool:
        """Whether it trains on these GPUs, with the plan's reserve."""
        return bool(self.plan.fits)

    @property
    def tokens_per_parameter(self) -> Result:
        """Likely tokens per active parameter."""
        return self.tokens.likely / self.plan.parameters.active

    @property
    def outcome(self) -> Outcome:
        """The same as single numbers, using the likely values."""
        N, T = float(self.plan.parameters.active), float(self.tokens.likely)
        return Outcome(self.name, N, T, float(self.loss.likely), self.fits, self.answers)

    @property
    def split(self) -> str:
        """How the GPUs split it, as a table words it."""
        split, run = self.plan.split, self.plan.run
        words = []
        if split.tensor_parallel > 1:
            words.append(f"TP {split.tensor_parallel}")
        if split.pipeline_parallel > 1:
            words.append(f"PP {split.pipeline_parallel}")
        if run.zero_stage:
            words.append(f"ZeRO {run.zero_stage}")
        words += AGAIN[run.recompute]
        return ", ".join([*words, f"{split.micro_batch_size} at once"])


Cell: TypeAlias = float | str | None
"""An entry of a frontier's table; the cost is None if you don't give a price."""


@dataclass(frozen=True, eq=False)
class Frontier:
    """The outcome of each shape on the same GPUs and days, in the order given."""

    points: tuple[Point, ...]
    law: Law
    days: Result

    @property
    def best(self) -> Point:
        """The point with the lowest likely loss, of those that fit and can be served."""
        return min(self._able(), key=lambda point: point.loss.likely)

    def promised(self) -> Frontier:
        """The same shapes with the tokens that you can promise, at the slow end."""
        return replace(self, points=tuple(map(self._promised, self.points)))

    @property
    def first_run(self) -> Point:
        """The best point to promise: the lowest loss with the tokens of the slow end."""
        return self.promised().best

    def _promised(self, point: Point) -> Point:
        N, T = point.plan.parameters.active, int(point.plan.first_run_tokens(self.days))
        reached = loss(N, T, self.law)
        return replace(
            point,
            plan=point.plan.replace(tokens=T),
            tokens=Interval(T, T, T),
            loss=Interval(reached, reached, reached),
            outside=_beyond(point.plan, T, self.law),
        )

    def _able(self) -> list[Point]:
        """Return the points that fit, and can be served if a card is named."""
        able = [x for x in self.points if x.fits and x.answers]
        if not able:
            raise ValueError(f"none of {len(self.points)} shapes fits on these GPUs")
        return able

    def columns(self) -> dict[str, list[Cell]]:
        """The points as columns of a table, one entry per shape."""
        rows: list[dict[str, Cell]] = []
        for point in self.points:
            plan = point.plan
            hours = gpu_hours(units.DAY * self.days, plan.split.num_gpus)
            price = plan.run.price_per_gpu_hour
            rows.append(
                {
                    "name": point.name,
                    "parameters": point.parameters,
                    "tokens": point.tokens.likely,
                    "tokens_least": point.tokens.least,
                    "tokens_greatest": point.tokens.greatest,
                    "tokens_per_parameter": point.tokens_per_parameter,
                    "loss": point.loss.likely,
                    "fits": point.fits,
                    "answers": point.answers,
                    "split": point.split,
                    "memory": plan.memory.total,
                    "gpu_hours": hours,
                    "cost": None if price is None else hours * price,
                    "outside": point.outside,
                }
            )
        return {name: [row[name] for row in rows] for name in rows[0]}


SERVED = 0.8
"""The share of a card that weights can use when a model is served. This is an assumption;
the rest is for the keys and values of what it reads and writes."""

BATCH = 4e6
"""Tokens per step if you don't give a batch: typical for runs of this size (chapter 04)."""


@checked
def frontier(
    accelerator: Chip,
    num_gpus: Count[int],
    days: Quantity[float],
    shapes: Mapping[str, Transformer] | Sequence[Transformer],
    *,
    law: str | Law = "besiroglu",
    global_batch_size: int | None = None,
    serving_memory: Quantity[float] | None = None,
    **options: Unpack[SearchOptions],
) -> Frontier:
    """Evaluate every shape of a shelf: whether it fits, its tokens in these days, its loss.

    `shapes` maps names to shapes, or is a list, named by size. Each shape gets its best
    split (`best_split`) and all the days; `options` go to `plan_run`. The default batch
    is about four million tokens; shapes whose step takes longer than the days are left
    out. `serving_memory` is in bytes, of the card that will serve the model in 16 bits.
    A mixture of experts counts with its active parameters, but the laws describe dense
    models, so its loss is an upper bound. Raises ValueError for an empty shelf, for days
    that are shorter than a step of any shape, and for bad input of any kind.

    >>> from llmtrain_helpers import Accelerator
    >>> h100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})
    >>> front = frontier(h100, 64, 21, shelf())
    >>> front.best.name, round(front.best.tokens_per_parameter)
    ('24B', 13)
    """
    fit = loss_law(law)
    for name in {"model", "tokens"} & {*options}:
        refuse(name, {**options}[name], "is what a frontier finds: give shapes and days")
    points, steps = [], []
    for name, model in named_shapes(shapes).items():
        B = usual_batch(model, num_gpus) if global_batch_size is None else global_batch_size
        plan = best_split(model, accelerator, num_gpus, B, **options)
        tokens = most_tokens(plan, days)
        steps.append(days * plan.run.global_batch_size * model.sequence_length / tokens.likely)
        if steps[-1] > days:
            continue
        plan = plan.replace(tokens=int(tokens.likely))
        N = plan.parameters.active
        ends = (tokens.greatest, tokens.likely, tokens.least)
        losses = Interval(*(loss(N, T, fit) for T in ends))
        weights = 2 * plan.parameters.total
        answers = serving_memory is None or weights <= SERVED * serving_memory
        words = _beyond(plan, tokens.likely, fit)
        points.append(Point(name, plan, tokens, losses, words, answers))
    if not steps:
        refuse("shapes", shapes, "doesn't contain any shape")
    if not points:
        shortest = units.duration(units.DAY * min(steps), 2)
        refuse("days", days, f"is less than one step: the shortest takes {shortest}")
    return Frontier(tuple(points), fit, days)


def _beyond(plan: Plan, tokens: Number, law: Law) -> str:
    """Describe what a law wasn't fitted to; empty if it was."""
    experts = "experts, by a law of dense models" if plan.run.model.num_experts else ""
    return "; ".join(filter(None, [experts, outside(plan.parameters.active, tokens, law)]))


def named_shapes(
    shapes: Mapping[str, Transformer] | Sequence[Transformer],
) -> dict[str, Transformer]:
    """Return the shapes by name; those of a list are named by size."""
    if not isinstance(shapes, Mapping):
        if not isinstance(shapes, (list, tuple)):
            refuse("shapes", shapes, "is neither a mapping of names nor a list")
        for model in shapes:
            instance("shapes", model, Transformer)
        sizes = [units.size(count_parameters(model).total) for model in shapes]
        names = [f"{x} ({i})" if x in sizes[:i] else x for i, x in enumerate(sizes)]
        shapes = dict(zip(names, shapes, strict=True))
    for model in shapes.values():
        instance("shapes", model, Transformer)
        if is_array(count_parameters(model).total):
            refuse("shapes", model, "is a sweep of shapes: list them one by one")
    return {str(name): model for name, model in shapes.items()}


@checked
def usual_batch(model: Transformer, num_gpus: Count[int]) -> int:
    """Sequences in a step of about four million tokens, with a whole number per GPU.

    >>> usual_batch(Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192), 64)
    512
    """
    n = num_gpus
    each = BATCH / (single("sequence_length", model.sequence_length) * n)
    power = round(math.log2(each)) if each > 1 else 0
    return int(n * 2**power)


SHELF = (
    (8, 512),
    (8, 1024),
    (16, 1024),
    (16, 1536),
    (16, 2048),
    (24, 2048),
    (32, 2048),
    (24, 3072),
    (32, 3072),
    (32, 4096),
    (40, 4096),
    (40, 5120),
    (48, 5120),
    (48, 6144),
    (64, 6144),
    (64, 7168),
    (64, 8192),
    (80, 8192),
    (96, 9216),
    (96, 10240),
    (112, 12288),
    (128, 14336),
    (128, 16384),
)
"""Layers and hidden sizes of the shapes of `shelf`."""


@checked
def shelf(sequence_length: Count[int] = 4096) -> dict[str, Transformer]:
    """Llama-like shapes from 63 million to 430 billion parameters, by size.

    Heads of 128 (64 in the smallest), 8 of keys and values, an MLP of 3.5h, 32,000
    tokens in the vocabulary: round shapes that split evenly. Kaplan et al. (arXiv
    2001.08361, section 3.1) found that the loss barely depends on the shape.

    >>> [*shelf()][:4], len(shelf())
    (['63M', '190M', '310M', '600M'], 23)
    """
    s, models = sequence_length, {}
    for l, h in SHELF:
        a = h // 128 if h >= 1024 else 8
        model = Transformer.llama(l, h, a, 8 if a % 8 == 0 else 4, 7 * h // 2, 32000, s)
        models[units.size(count_parameters(model).total)] = model
    return models
