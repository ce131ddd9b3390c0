"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from dataclasses import dataclass

from llmtrain_helpers.calendar import Losses, losses
from llmtrain_helpers.checks import Number, Result, broadcast, quantity
from llmtrain_helpers.units import DAY


@dataclass(frozen=True)
class ExpectedDays:
    """Days on the calendar that a run takes on average, part by part, and its stops.

    `computing` are the machines' days, without a stop; `losses` come on top of each of
    them; M, the seconds between failures, tells how many stops that makes.
    """

    computing: Result
    losses: Losses
    mean_time_between_failures: Result

    def parts(self) -> dict[str, Result]:
        """The parts that make the total, by name, in days."""
        return {
            "computing": self.computing,
            "saving": self.computing * self.losses.saving,
            "lost": self.computing * self.losses.lost,
            "restarting": self.computing * self.losses.restarting,
        }

    @property
    def total(self) -> Result:
        """Days from the first step to the last, on the calendar."""
        return self.computing * (1 + self.losses.total)

    @property
    def stops(self) -> Result:
        """How many stops those days hold."""
        return self.total * DAY / self.mean_time_between_failures

    @property
    def days_lost_at_a_stop(self) -> Result:
        """What one stop costs, all in all, writes before it included."""
        return (self.total - self.computing) / self.stops


def expected_days(
    compute_days: Number,
    checkpoint_interval: Number,
    checkpoint_seconds: Number,
    mean_time_between_failures: Number,
    restart_seconds: Number,
) -> ExpectedDays:
    """The mean of all runs of so many days of work that failures stop by chance.

    W(1 + saving + lost + restarting), with W days and the parts of `losses`, whose
    arguments the others are. `simulate_run` draws one of these runs.

    >>> days = expected_days(30, 3600, 40, 100 * 3600, 1800)
    >>> round(days.total, 2), round(days.stops, 1)
    (30.64, 7.4)
    """
    W = quantity("compute_days", compute_days)
    given = checkpoint_interval, checkpoint_seconds, mean_time_between_failures, restart_seconds
    cost = losses(*given)
    M = quantity("mean_time_between_failures", mean_time_between_failures)
    broadcast(compute_days=W, losses=cost.total, mean_time_between_failures=M)
    return ExpectedDays(W, cost, M)
