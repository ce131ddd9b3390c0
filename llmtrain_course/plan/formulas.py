"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from functools import cache, lru_cache

from llmtrain_course.kit.formulas import published_model
from llmtrain_helpers.budget import shelf, usual_batch
from llmtrain_helpers.checks import (
    Number,
    Result,
    amount,
    broadcast,
    instance,
    one,
    quantity,
    refuse,
    single,
)
from llmtrain_helpers.duration import flops_per_parameter
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.search import best_split
from llmtrain_helpers.published import accelerator
from llmtrain_helpers.units import DAY


def rounded_down(number: float) -> int:
    """Round a number down to two digits, so that a limit surely fits.

    >>> rounded_down(851_713_000_000)
    850000000000
    """
    integer = int(amount("number", one("number", number)))
    size: int = 10 ** max(len(f"{integer}") - 2, 0)
    return integer // size * size


def in_time(plan: Plan, days: Number) -> Result:
    """Whether even the slow end of a plan finishes within some days; 30.04 count as 30."""
    instance("plan", plan, Plan)
    t, latest = quantity("days", days), plan.first_run.greatest
    broadcast(days=t, plan=latest)
    return latest <= t * (1 + 0.05 / 30)


def share_of_peak(plan: Plan, days: Number) -> Result:
    """Compute the share of its peak that each GPU reaches if a plan's run lasts some days.

    Counted as in chapter 03, 6TP/(n·t) over the peak, without the scores of attention.
    """
    instance("plan", plan, Plan)
    t, n = quantity("days", days), plan.split.num_gpus
    broadcast(days=t, plan=plan.days.likely)
    work = flops_per_parameter("none") * plan.run.tokens * plan.parameters.active
    return work / (n * plan.run.peak * t * DAY)


MOST_GPUS = 16_384
LLAMAS = "Llama-3.2-1B", "Llama-3.2-3B", "Llama-3.1-8B", "Llama-3.1-70B", "Llama-3.1-405B"
BETWEEN = "600M", "1.9B", "14B", "24B", "43B", "130B", "220B"
"""The most GPUs of the map; its models, and the shapes of chapter 11's shelf in between."""


@cache
def map_models() -> dict[str, Transformer]:
    """The models of the map by their names, the smallest first, with sequences of 8,192 tokens.

    >>> [*map_models()][3:6]
    ['Llama 3.2 3B', 'Llama 3.1 8B', '14B']
    """
    shapes = shelf(8192)
    models = {name: shapes[name] for name in BETWEEN}
    models |= {name.replace("-", " "): published_model(name, 8192) for name in LLAMAS}
    return dict(sorted(models.items(), key=lambda model: count_parameters(model[1]).total))


def map_plans(num_gpus: int) -> dict[str, Plan]:
    """Each model's fastest split that fits on so many H100s, as `frontier` finds it.

    Of a trillion tokens. Memory is the same for any number of them, and the days are
    proportional to it, so somebody who drags a dot over the map needs no other plan.

    >>> map_plans(64)["Llama 3.1 8B"]
    <Plan: 26.4 days, 63.0 GB a GPU, fits>
    """
    n = single("num_gpus", num_gpus)
    if n > MOST_GPUS:
        refuse("num_gpus", n, f"is more than {MOST_GPUS:,}, the most on the map")
    return _map_plans(n)


@lru_cache(32)
def _map_plans(num_gpus: int) -> dict[str, Plan]:
    chip = accelerator("H100")
    return {
        name: best_split(model, chip, num_gpus, usual_batch(model, num_gpus))
        for name, model in map_models().items()
    }
