"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    """The average days of a run on the calendar, part by part, and its stops.

    `computing` are the machines' days, without a stop; `losses` come on top of each of
    them; M, the seconds between failures, tells how many stops that makes.
    """

    computing: Result
    losses: Losses
    mean_time_between_failures: Result

    def parts(self) -> dict[str, Result]:
        """The parts of the total, by name, in days."""
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
        """Number of stops in those days."""
        return self.total * DAY / self.mean_time_between_failures

    @property
    def days_lost_at_a_stop(self) -> Result:
        """Days that one stop costs in all, including the writes before it."""
        return (self.total - self.computing) / self.stops


def expected_days(
    compute_days: Number,
    checkpoint_interval: Number,
    checkpoint_seconds: Number,
    mean_time_between_failures: Number,
    restart_seconds: Number,
) -> ExpectedDays:
    """Compute the mean over all runs of some days of work that random failures stop.

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
    """A stretch of one kind in a run, from `start` to `end` in seconds."""

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

    @classmethod
    def with_failures(
        cls, failures: Sequence[float], W: float, t: float, d: float, R: float
    ) -> SimulatedRun:
        """Return the run whose GPUs fail at these seconds, else as `simulate_run` does."""

        def wait(now: float) -> float:
            return min((x - now for x in failures if x > now + 1), default=math.inf)

        return _run(_events(W, t, d, R, wait))

    def calendar_days(self, outages: float, evaluation: float = EVALUATION.likely) -> float:
        """Days on the calendar, of which outages and evaluation take their shares."""
        return self.total / DAY / (1 - outages - evaluation)

    def on_calendar(
        self, outages: float, evaluation: float = EVALUATION.likely, seed: int = 0
    ) -> tuple[Stretch, ...]:
        """Place the stretches on the calendar, with random outages and evaluation at the end.

        There's an outage in every seven days that the machine runs, between two stretches or
        during work. Its moment depends on the seed alone, so a longer run has the same ones.
        """
        days, dice = self.calendar_days(outages, evaluation), Random(seed)
        added = days * outages * DAY / self.total  # seconds of outages per second of the run
        moments = {}
        for week in range(math.ceil(self.total / _WEEK) if outages else 0):
            length = min(_WEEK, self.total - week * _WEEK)
            moments[week * _WEEK + dice.random() * length] = length * added
        now, placed = 0.0, []
        for kind, start, end in self.stretches:
            for moment in [x for x in moments if start <= x < end]:
                worked = moment - start if kind == "running" else 0.0
                if worked:
                    placed.append(Stretch(kind, now, now + worked))
                over = now + worked + moments[moment]
                placed.append(Stretch("outages", now + worked, over))
                now, start = over, start + worked
            placed.append(Stretch(kind, now, now + end - start))
            now += end - start
        return (*placed, Stretch("evaluation", now, days * DAY))


_WEEK = 7 * DAY


@checked
def simulate_run(
    compute_seconds: Quantity[float],
    checkpoint_interval: Quantity[float],
    checkpoint_seconds: Amount[float],
    mean_time_between_failures: Quantity[float],
    restart_seconds: Amount[float],
    seed: Whole[int] = 0,
) -> SimulatedRun:
    """Simulate a run of some seconds of work, with random failures.

    From one failure to the next passes an exponentially distributed time, whatever the
    run is at. A failure undoes what was not saved; a restart that fails starts over.
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
    return _run(_events(W, t, d, R, lambda _: -M * math.log(1 - dice.random())))


def _run(events: Iterable[_Event]) -> SimulatedRun:
    """Add up what happens in a run."""
    seconds = {"useful": 0.0, "saving": 0.0, "lost": 0.0, "restarting": 0.0}
    now, stops, stretches = 0.0, 0, []
    for kind, useful, spent, stopped in events:
        seconds["useful" if kind == "running" else kind] += useful
        seconds["saving"] += spent
        stretches.append(Stretch(kind, now, now + useful + spent))
        now, stops = now + useful + spent, stops + stopped
    return SimulatedRun(**seconds, stops=stops, stretches=tuple(stretches))


_Event = tuple[str, float, float, bool]
"""A stretch of a run: its kind, its seconds, those of writes, and whether a stop ends it."""


def _events(
    left: float, t: float, d: float, R: float, wait: Callable[[float], float]
) -> Iterator[_Event]:
    """Go through a run; `wait` gives the seconds from a moment to the next failure."""
    now = 0.0
    while True:
        until, cycles = wait(now), math.ceil(left / t)
        if until >= left + cycles * d:
            yield "running", left, cycles * d, False
            return
        saved = min(int(until // (t + d)), cycles - 1)
        left -= saved * t
        yield "running", saved * t, saved * d, False
        yield "lost", until - saved * (t + d), 0.0, True
        now += until
        while (until := wait(now)) < R:
            yield "restarting", until, 0.0, True
            now += until
        yield "restarting", R, 0.0, False
        now += R
