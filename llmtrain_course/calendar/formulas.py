"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from llmtrain_helpers.calendar import EVALUATION, Losses, losses
from llmtrain_helpers.checks import (
    Amount,
    Number,
    Quantity,
    Result,
    Whole,
    at_most,
    broadcast,
    checked,
    quantity,
    unchecked,
)
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


# --- a run drawn by lot


class Stretch(NamedTuple):
    """Some time of a run of one kind, from `start` to `end` in seconds."""

    kind: str
    start: float
    end: float


@dataclass(frozen=True)
class SimulatedRun:
    """The outcome of a run, in seconds: its parts, its stops, and stretch by stretch.

    Stretches are "running" (useful work and the writes between), "lost" (undone by a
    stop), and "restarting".
    """

    useful: float
    saving: float
    lost: float
    restarting: float
    stops: int
    stretches: tuple[Stretch, ...]

    @property
    def total(self) -> float:
        """Seconds of the whole run, from the first step to the last."""
        return self.useful + self.saving + self.lost + self.restarting

    @property
    def useful_share(self) -> float:
        """The share of the run's seconds in which it got on with useful work."""
        return self.useful / self.total

    def calendar_days(self, outages: float, evaluation: float = EVALUATION.likely) -> float:
        """Days on the calendar, of which outages and evaluation take their shares."""
        return self.total / DAY / (1 - outages - evaluation)

    def on_calendar(
        self, outages: float, evaluation: float = EVALUATION.likely, seed: int = 0
    ) -> tuple[Stretch, ...]:
        """The stretches on the calendar: outages by lot among them, evaluation after them.

        An outage lasts a day at the most, and comes between two stretches or into work.
        """
        days = self.calendar_days(outages, evaluation)
        pieces, dice = math.ceil(days * outages - 1e-9), Random(seed)
        each = days * outages * DAY / max(pieces, 1)
        moments = sorted(dice.uniform(0, self.total) for _ in range(pieces))
        now, placed = 0.0, []
        for kind, start, end in self.stretches:
            for moment in [x for x in moments if start <= x < end]:
                worked = moment - start if kind == "running" else 0.0
                if worked:
                    placed.append(Stretch(kind, now, now + worked))
                placed.append(Stretch("outages", now + worked, now + worked + each))
                now, start = now + worked + each, start + worked
            placed.append(Stretch(kind, now, now + end - start))
            now += end - start
        return (*placed, Stretch("evaluation", now, days * DAY))


@checked
def simulate_run(
    compute_seconds: Quantity[float],
    checkpoint_interval: Quantity[float],
    checkpoint_seconds: Amount[float],
    mean_time_between_failures: Quantity[float],
    restart_seconds: Amount[float],
    seed: Whole[int] = 0,
) -> SimulatedRun:
    """Simulate a run of so many seconds of work, with failures that come by chance.

    From one failure to the next passes an exponentially distributed time, whatever the
    run is at. A failure undoes what was not saved; a restart that fails begins anew.
    The same seed gives the same run. Takes single numbers, else as `goodput` does;
    ValueError for a run of more than 10⁵ stops.

    >>> run = simulate_run(30 * 86400, 3600, 40, 100 * 3600, 1800, seed=1)
    >>> run.stops, round(run.useful_share, 3)
    (8, 0.979)
    """
    W, M, dice = compute_seconds, mean_time_between_failures, Random(seed)
    t, d, R = checkpoint_interval, checkpoint_seconds, restart_seconds
    expected = W * (1 + unchecked(losses)(t, d, M, R).total) / M
    at_most("stops of compute_seconds", expected, "what one simulation takes", 10**5)
    seconds = {"useful": 0.0, "saving": 0.0, "lost": 0.0, "restarting": 0.0}
    now, stops, stretches = 0.0, 0, []
    for kind, useful, spent, stopped in _events(W, t, d, M, R, dice):
        seconds["useful" if kind == "running" else kind] += useful
        seconds["saving"] += spent
        stretches.append(Stretch(kind, now, now + useful + spent))
        now, stops = now + useful + spent, stops + stopped
    return SimulatedRun(**seconds, stops=stops, stretches=tuple(stretches))


def _events(
    left: float, t: float, d: float, M: float, R: float, dice: Random
) -> Iterator[tuple[str, float, float, bool]]:
    """The run's stretches: kind, seconds, seconds of writes, whether a stop ends it."""
    while True:
        until, cycles = _wait(dice, M), math.ceil(left / t)
        if until >= left + cycles * d:
            yield "running", left, cycles * d, False
            return
        saved = min(int(until // (t + d)), cycles - 1)
        left -= saved * t
        yield "running", saved * t, saved * d, False
        yield "lost", until - saved * (t + d), 0.0, True
        while (until := _wait(dice, M)) < R:
            yield "restarting", until, 0.0, True
        yield "restarting", R, 0.0, False


def _wait(dice: Random, mean: float) -> float:
    return -mean * math.log(1 - dice.random())
