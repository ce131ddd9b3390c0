"""A step by the clock: times that can be trusted, and a clock that is simulated.

`timed` measures; `StepClock` says what a step of known parts takes, and what it waits
for. Needs no PyTorch. Sources: the formulas are sums, written out in notebook 12; the
advice on warm-up, repeats and medians is that of `torch.utils.benchmark`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeVar

from llmtrain_course.communication.formulas import BackwardOverlap
from llmtrain_helpers.batch import StepTime
from llmtrain_helpers.checks import amount, flag, instance, one, quantity, refuse, single, unchecked
from llmtrain_helpers.results import Breakdown

_Name = TypeVar("_Name")


@dataclass(frozen=True)
class Times:
    """Seconds of repeated runs, in order, those of the warm-up apart."""

    warm_up: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the runs' seconds: half of the runs took longer."""
        return statistics.median(self.seconds)


def times(seconds: Sequence[float], warm_up: int = 0) -> Times:
    """Collect seconds that are measured already, with the first `warm_up` of them set apart.

    ValueError where fewer than two remain.

    >>> times([9.0, 1.0, 1.1, 1.2], warm_up=1).median
    1.1
    """
    first, runs = single("warm_up", warm_up, least=0), tuple(map(float, seconds))
    if len(runs) - first < 2:
        refuse("seconds", len(runs), "leaves fewer than two runs behind the warm-up")
    return Times(runs[:first], runs[first:])


def timed(
    run: Callable[[], Any],
    warm_up: int = 2,
    repeats: int = 9,
    wait: Callable[[], Any] | None = None,
    clock: Callable[[], float] = perf_counter,
) -> Times:
    """Seconds of a call on this machine, from idle to idle, `repeats` times.

    The first `warm_up` calls make what is made once (memory, Adam's state), and are set
    apart. `wait` is called before a clock is read: where work is only handed over, as
    to a GPU, it must return when that is done. Another `clock` than that of the wall,
    such as `time.process_time`, counts what it counts. ValueError for bad counts.

    >>> timed(lambda: None, warm_up=1, repeats=3).median < 1
    True
    """
    first, n = single("warm_up", warm_up, least=0), single("repeats", repeats)
    ready = wait or (lambda: None)
    seconds = []
    for _ in range(first + n):
        ready()
        start = clock()
        run()
        ready()
        seconds.append(clock() - start)
    return Times(tuple(seconds[:first]), tuple(seconds[first:]))


def compared(
    runs: Mapping[_Name, Callable[[], Any]],
    warm_up: int = 2,
    repeats: int = 9,
    clock: Callable[[], float] = perf_counter,
) -> dict[_Name, Times]:
    """Several calls that take turns, so that what else a machine does meets all alike.

    Takes and refuses what `timed` does; the names stay.

    >>> pair = compared({"one": list, "other": dict}, warm_up=1, repeats=2)
    >>> [(name, len(times.seconds)) for name, times in pair.items()]
    [('one', 2), ('other', 2)]
    """
    first, n = single("warm_up", warm_up, least=0), single("repeats", repeats, least=2)
    rounds = [
        {name: timed(run, 0, 1, None, clock).seconds[0] for name, run in runs.items()}
        for _ in range(first + n)
    ]
    return {name: times([one[name] for one in rounds], first) for name in runs}


@dataclass(frozen=True)
class StepParts(Breakdown[float]):
    """Seconds of a step on one GPU: what it computes, and what it waits for.

    `passes` forward and backward; `others` until gradients are exchanged; the
    `update`; `data` until the next batch is there.
    """

    passes: float
    others: float
    update: float
    data: float


BACKWARD = 2 / 3
"""The share of a pass that is backward: two products for one of forward."""

BUCKETS = 4
"""The number of buckets that gradients are sent in, each once backward has filled it."""


@dataclass(frozen=True)
class StepClock:
    """A training step on a simulated clock; all in seconds, but for the last two.

    A pass with b sequences takes t₀ + b/r (`one_pass`). The loader makes the next
    step's data meanwhile, `loading` for each sequence. After k passes gradients are
    averaged, which takes `exchange`, and the `update` follows. With `overlap` they travel
    beside the last backward in `BUCKETS`, none before it is made: the last one cannot hide.
    The slowest GPU takes `slowest` times as long for
    its passes, and all others wait for it.

    seconds = max(k·(t₀ + b/r)·slowest + visible exchange + update, loading·k·b)

    Left out: that a loader competes with the computing for a CPU.

    >>> clock = StepClock(StepTime(0.02, 200), exchange=0.06, update=0.02)
    >>> [round(clock.throughput(4, k)) for k in (1, 8)]
    [40, 84]
    """

    one_pass: StepTime
    loading: float = 0.0
    exchange: float = 0.0
    update: float = 0.0
    overlap: bool = True
    slowest: float = 1.0

    def __post_init__(self) -> None:
        instance("one_pass", self.one_pass, StepTime)
        for name in ("loading", "exchange", "update"):
            one(name, getattr(self, name), amount)
        flag("overlap", self.overlap)
        if one("slowest", self.slowest, quantity) < 1:
            refuse("slowest", self.slowest, "is below 1: it is the slowest of all")

    def pass_seconds(self, micro_batch_size: int) -> float:
        """The seconds of one pass without waiting: t₀ + b/r."""
        b = single("micro_batch_size", micro_batch_size)
        return float(unchecked(StepTime.seconds)(self.one_pass, b))  # a redraw asks 300 times

    def parts(self, micro_batch_size: int, accumulation: int = 1) -> StepParts:
        """The seconds of a step: passes, and what is waited for."""
        b = single("micro_batch_size", micro_batch_size)
        k = single("accumulation", accumulation)
        one_pass = self.pass_seconds(b)
        others = sum(self.waits_for_others(b, k).values())
        busy = k * one_pass + others + self.update
        data = _exposed_seconds(self.loading * k * b, busy)
        return StepParts(k * one_pass, others, self.update, data)

    def waits_for_others(self, micro_batch_size: int, accumulation: int = 1) -> dict[str, float]:
        """The seconds per step spent waiting for other GPUs, by cause.

        For the link once a step, for what backward does not hide; for a slow neighbour
        in every pass.

        >>> clock = StepClock(StepTime(0.02, 200), exchange=0.1, slowest=1.5)
        >>> [round(s, 3) for s in clock.waits_for_others(4, 8).values()]
        [0.07, 0.16]
        """
        one_pass = self.pass_seconds(micro_batch_size)
        *_, (_, arrived) = self.buckets(micro_batch_size, accumulation)
        link = _exposed_seconds(arrived, accumulation * one_pass * self.slowest)
        neighbour = accumulation * one_pass * (self.slowest - 1)
        return {"the link": link, "a slow neighbour": neighbour}

    def buckets(self, micro_batch_size: int, accumulation: int = 1) -> list[tuple[float, float]]:
        """Return when each bucket of gradients travels, in seconds since the step's start."""
        one_pass = self.pass_seconds(micro_batch_size) * self.slowest
        backward = BACKWARD * one_pass
        if not self.overlap:
            end = accumulation * one_pass
            return [(end, end + self.exchange)]
        begin = accumulation * one_pass - backward
        spans = BackwardOverlap(backward, self.exchange, BUCKETS).spans
        return [(begin + start, begin + end) for start, end in spans]

    def throughput(self, micro_batch_size: int, accumulation: int = 1) -> float:
        """Sequences a second on one GPU: k·b over the seconds of a step."""
        seconds = self.parts(micro_batch_size, accumulation).total
        return float(micro_batch_size * accumulation / seconds)

    def experiments(self, micro_batch_size: int, accumulation: int = 1) -> Experiments:
        """The throughput as it is, and after one change at a time."""
        b, k = micro_batch_size, accumulation
        one_gpu = replace(self, exchange=0.0, slowest=1.0)
        return Experiments(
            as_it_is=self.throughput(b, k),
            same_data=replace(self, loading=0.0).throughput(b, k),
            one_gpu=one_gpu.throughput(b, k),
            doubled=self.throughput(2 * b, k),
            four_passes=self.throughput(b, 4 * k),
        )


def _exposed_seconds(seconds: float, cover: float) -> float:
    """The part of a time that another doesn't cover; 0 where only rounding is left."""
    alike = math.isclose(seconds, cover, rel_tol=1e-9)
    return 0.0 if alike else max(0.0, seconds - cover)


ENOUGH = 1.1
"""How many times the throughput an experiment must make to tell something."""


@dataclass(frozen=True)
class Experiments:
    """Sequences a second as a step is, and after one change at a time.

    With the same data again and again, so that nothing is loaded; alone, without other
    GPUs; with twice the micro-batch; and, where it was tried, with four times the
    passes, which tells the link from a slow neighbour.
    """

    as_it_is: float
    same_data: float
    one_gpu: float
    doubled: float
    four_passes: float = 0.0

    def gains(self) -> dict[str, float]:
        """The factor by which each change raises the throughput."""
        now = self.as_it_is
        return {
            "data": self.same_data / now,
            "other GPUs": self.one_gpu / now,
            "fixed costs": self.doubled / now,
        }

    def ranked(self) -> list[tuple[str, float]]:
        """The causes with their gains, the largest first."""
        return sorted(self.gains().items(), key=lambda pair: -pair[1])

    @property
    def verdict(self) -> str:
        """What the step mostly waits for, or "computing" where no change helps.

        >>> Experiments(10.0, 10.1, 19.0, 15.0).verdict
        'other GPUs'
        """
        cause, gain = self.ranked()[0]
        return cause if gain >= ENOUGH else "computing"
