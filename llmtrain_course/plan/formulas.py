"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from llmtrain_helpers.checks import Number, Result, amount, broadcast, instance, one, quantity
from llmtrain_helpers.duration import flops_per_parameter
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.units import DAY


def rounded_down(number: float) -> int:
    """The first two digits of a number: what surely fits, where it is a limit.

    >>> rounded_down(851_713_000_000)
    850000000000
    """
    integer = int(amount("number", one("number", number)))
    size: int = 10 ** max(len(f"{integer}") - 2, 0)
    return integer // size * size


def in_time(plan: Plan, days: Number) -> Result:
    """Whether even the slow end of a plan's days is in so many days; 30.04 are as many as 30."""
    instance("plan", plan, Plan)
    t, latest = quantity("days", days), plan.first_run.greatest
    broadcast(days=t, plan=latest)
    return latest <= t * (1 + 0.05 / 30)


def share_of_peak(plan: Plan, days: Number) -> Result:
    """The share of its peak that each GPU reaches if the run of a plan takes so many days.

    Counted as on page 03, 6TP/(n·t) over the peak, without the scores of attention.
    """
    instance("plan", plan, Plan)
    t, n = quantity("days", days), plan.split.num_gpus
    broadcast(days=t, plan=plan.days.likely)
    work = flops_per_parameter("none") * plan.run.tokens * plan.parameters.active
    return work / (n * plan.run.peak * t * DAY)
