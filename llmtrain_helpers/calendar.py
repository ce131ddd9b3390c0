"""Chapter 10: from the machines' days to calendar days. Goes with 10_calendar.ipynb.

Sources: Young, CACM 17(9), 1974, page 530, and Daly, Future Generation Computer Systems
22(3), 2006, page 303, for how often to save; Kokolis et al. (arXiv 2410.21680) for
failures that grow with the machine. The defaults are those of published runs, row by
row in data/interruptions.csv and data/checkpoints.csv, and a test holds them to it.

This is `llmtrain_helpers.calendar`; it doesn't hide Python's own `calendar`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, cast

from llmtrain_helpers.checks import (
    Amount,
    Array,
    Count,
    Number,
    Quantity,
    Result,
    Share,
    amount,
    as_results,
    at_most,
    broadcast,
    checked,
    is_array,
    numpy,
    quantity,
    unchecked,
)
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.precision import Recipe, RecipeName, known_recipe
from llmtrain_helpers.results import Interval, maximum, where
from llmtrain_helpers.units import DAY, HOUR, MINUTE

FAILURES_PER_NODE_DAY = Interval(0.002, 0.005, 0.016)
"""Stops that a node of 8 GPUs causes in a day, of single long runs: GLM-130B 2.1 and
OPT-175B 15 to 16 of a thousand at the ends, Llama 3.1 405B 4.2 and BLOOM-176B 4.5
between. The jobs of many users on one cluster had 21 to 24, and are left out."""

RESTART_SECONDS = Interval(10 * MINUTE, 30 * MINUTE, 2 * HOUR)
"""From a stop until training resumes: found in ten minutes by a machine (MegaScale), at
most 50 minutes (ByteRobust), hours by hand (OPT-175B)."""

CHECKPOINT_SECONDS = Interval(0.6, 40.0, 150.0)
"""How long a write blocks training: in the background (ByteCheckpoint), 2.5 TB of
BLOOM-176B at once, one of 7B written the plain way (PyTorch)."""

OUTAGES = Interval(0.0, 0.05, 0.2)
"""Share of the calendar that failure rates don't explain: none visible in Llama 3.1
405B, 5% of BLOOM's days, 20% of OPT-175B's."""

EVALUATION = Interval(0.0, 0.006, 0.006)
"""Share of it that the GPUs spend on evaluation: none if others do it, or BLOOM's."""

HOPELESS = 50
"""The most mean times between failures that an interval and its restart can last."""

Spread: TypeAlias = Number | Interval
"""One number for all cases, or three: best, likely and worst."""


@checked
def checkpoint_bytes(
    parameters: Count[float | Array], recipe: RecipeName | Recipe = "bf16"
) -> float | Array:
    """Bytes of a checkpoint that training can resume from: all states except gradients.

    Weights, main weights and optimizer: 2 + 4 + 8 = 14 bytes a parameter for bf16 with
    Adam, however the states are sharded. Takes P parameters (with experts, all of them)
    and a `Recipe` or its name.

    >>> checkpoint_bytes(176_247_271_424) / 1e12  # BLOOM: 2.3 TiB, which is 2.53 TB, by du
    2.467461799936
    """
    saved = known_recipe(recipe)
    return parameters * (saved.weights + saved.main_weights + saved.optimizer)


@checked
def mean_time_between_failures(
    num_gpus: Count[float | Array],
    failures_per_node_day: Quantity[float | Array],
    gpus_per_node: Count[float | Array] = 8,
) -> float | Array:
    """Seconds from one stop to the next, on average: 86,400 / (n/g · r).

    For n GPUs with g per node, where a node causes r stops per day: any node can stop
    the job, so doubling the GPUs doubles the stops. A fraction of a node counts as that
    fraction. Source: arXiv 2410.21680 (1/n within 13% from 8 to 1,024 GPUs).

    >>> M = mean_time_between_failures(16384, 466 / 54 / 2048)  # Llama 3.1 405B
    >>> round(M / 3600, 2)
    2.78
    """
    return DAY * gpus_per_node / (num_gpus * failures_per_node_day)


@checked
def best_checkpoint_interval(
    checkpoint_seconds: Quantity[float | Array],
    mean_time_between_failures: Quantity[float | Array],
    form: Literal["young", "daly"] = "daly",
) -> float | Array:
    """Find the seconds of work between two checkpoints that waste the least time.

    young: √(2δM)
    daly:  √(2δM) (1 + √(δ/2M)/3 + (δ/2M)/9) − δ, and M where δ is 2M or more

    Takes δ, the seconds that a write blocks training, and M, the seconds between
    failures; numbers or arrays. The length of a restart doesn't matter here.
    Source: Young 1974; Daly 2006, equation 37.

    >>> M = [24 * 60, 6 * 60, 15]  # minutes, with writes of 5: Daly prints 117, 57, 9.1
    >>> [round(best_checkpoint_interval(5, m), 1) for m in M]
    [116.7, 56.7, 9.1]
    """
    d, M = checkpoint_seconds, mean_time_between_failures
    interval: float | Array = (2 * d * M) ** 0.5
    if form == "young":
        return interval
    x = d / (2 * M)
    interval = interval * (1 + x**0.5 / 3 + x / 9) - d
    return where(x < 1, interval, M)


@checked
def goodput(
    checkpoint_interval: Quantity[float | Array],
    checkpoint_seconds: Amount[float | Array],
    mean_time_between_failures: Quantity[float | Array],
    restart_seconds: Amount[float | Array],
    form: Literal["exact", "first order"] = "exact",
) -> float | Array:
    """The useful share of the time, after saving, lost work and restarts.

    exact:       τ / (M · exp(R/M) · (exp((τ + δ)/M) − 1))
    first order: 1 − δ/τ − (τ/2 + R)/M, or 0 where that is negative

    Takes τ, seconds of work between two checkpoints, δ that a write blocks, M between
    failures, and R from a failure until work resumes; numbers or arrays. A failure can
    happen at any time, even during a write or a restart. The first order is always too
    low, but by at most 0.6 points as long as the losses are below 10%.
    Source: Daly 2006, section 3 (exact); Young 1974, with the restart (first order).

    >>> setting = (3600, 40, 100 * 3600, 1800)  # save each hour, stop each 100 hours
    >>> [round(goodput(*setting, form), 4) for form in ("exact", "first order")]
    [0.9791, 0.9789]
    """
    t, d, R = checkpoint_interval, checkpoint_seconds, restart_seconds
    M = mean_time_between_failures
    if form == "exact":
        y = (t + d) / M
        return t / M * _exp(-(R / M + y)) / -_expm1(-y)
    return maximum(1 - d / t - (t / 2 + R) / M, 0.0)


def _exp(x: float | Array) -> float | Array:
    return cast(float | Array, numpy().exp(x) if is_array(x) else math.exp(x))


def _expm1(x: float | Array) -> float | Array:
    return cast(float | Array, numpy().expm1(x) if is_array(x) else math.expm1(x))


@dataclass(frozen=True)
class Losses:
    """The cost of stops, in seconds per second of useful work."""

    saving: Result
    lost: Result
    restarting: Result

    @property
    def total(self) -> Result:
        """All losses together, as a share of the work: the run takes (1 + total) times its work."""
        return self.saving + self.lost + self.restarting


@checked
def losses(
    checkpoint_interval: Quantity[Number],
    checkpoint_seconds: Amount[Number],
    mean_time_between_failures: Quantity[Number],
    restart_seconds: Amount[Number],
) -> Losses:
    """The time that isn't useful, part by part, from `goodput`'s exact form.

    saving δ/τ, lost M/τ · (e^y − 1 − y), restarting M/τ · (e^y − 1)(e^r − 1)

    with y = (τ + δ)/M and r = R/M; arguments as in `goodput`. Raises ValueError for
    a run that almost always fails before it has saved, because it would never end.

    >>> cost = losses(3600, 40, 100 * 3600, 1800)
    >>> [round(x, 4) for x in (cost.saving, cost.lost, cost.restarting)]
    [0.0111, 0.0051, 0.0051]
    """
    t, d, M, R = as_results(
        checkpoint_interval, checkpoint_seconds, mean_time_between_failures, restart_seconds
    )
    name = "checkpoint_interval + checkpoint_seconds + restart_seconds"
    limit = f"{HOPELESS} times mean_time_between_failures, where no run ends"
    at_most(name, t + d + R, limit, HOPELESS * M)
    y = (t + d) / M
    # e^y − 1 − y, as a series for small y, because the difference would lose digits
    small = (y < 0.01) * y
    series = small**2 / 2 * (1 + small / 3 + small**2 / 12)
    beyond = series + (y >= 0.01) * (_expm1(y) - y)
    return Losses(d / t, M / t * beyond, M / t * _expm1(y) * _expm1(R / M))


@checked
def spare_nodes(
    num_gpus: Count[float],
    failures_per_node_day: Quantity[float],
    repair_days: Quantity[float],
    gpus_per_node: Count[float] = 8,
    certainty: Share[float] = 0.99,
) -> int:
    """Count the spare nodes that are enough for this share of the time.

    The number of nodes in repair at once is Poisson distributed with mean n/g · r · T,
    which is how many fail in the T days of a repair. Takes single numbers.

    >>> spare_nodes(384, 0.005, repair_days=7)  # BLOOM kept 4
    5
    """
    at_most("certainty", certainty, "what a number of spares can promise", 1 - 1e-9)
    mean = num_gpus / gpus_per_node * failures_per_node_day * repair_days
    product = "num_gpus/gpus_per_node·failures_per_node_day·repair_days"
    at_most(product, mean, "nodes in repair that this counts", 700)
    spares, term = 0, math.exp(-mean)
    covered = term
    while covered < certainty:
        spares += 1
        term *= mean / spares
        covered += term
    return spares


# --- the calendar of a plan


@dataclass(frozen=True)
class CalendarDays:
    """Calendar days, part by part; each part is an interval from best to worst case.

    `computing` is the time of all steps without a stop; `saving` is the time that
    checkpoint writes block; `lost` is work that failures undo, so it has to be redone;
    `restarting` is the time until work resumes; `outages` are those that failure rates
    don't explain; `evaluation` is the model's. `stops` counts the stops, and
    `checkpoint_interval` is in seconds; both are for the best, likely and worst case.
    """

    computing: Interval
    saving: Interval
    lost: Interval
    restarting: Interval
    outages: Interval
    evaluation: Interval
    stops: Interval
    checkpoint_interval: tuple[Result, Result, Result]

    def parts(self) -> dict[str, Interval]:
        """The parts that add up to the total, by name."""
        names = [item.name for item in fields(self)][:6]
        return {name: getattr(self, name) for name in names}

    @property
    def total(self) -> Interval:
        """Calendar days from the first step to the last."""
        cases = ("least", "likely", "greatest")
        sums = [sum(getattr(x, case) for x in self.parts().values()) for case in cases]
        return Interval(*sums)

    @property
    def useful_share(self) -> Result:
        """The likely share of those days in which the run makes progress."""
        return self.computing.likely / self.total.likely


@checked
def calendar_days(
    plan: Plan,
    *,
    failures_per_node_day: Spread = FAILURES_PER_NODE_DAY,
    gpus_per_node: Count[Number] | None = None,
    checkpoint_seconds: Spread = CHECKPOINT_SECONDS,
    restart_seconds: Spread = RESTART_SECONDS,
    outages: Spread = OUTAGES,
    evaluation: Spread = EVALUATION,
    checkpoint_interval: Quantity[Number] | None = None,
) -> CalendarDays:
    """Calendar days until a plan is really finished, part by part.

    Starts from `plan.iterations` steps of `plan.seconds_per_iteration`, which don't
    include stops (`plan.seconds` does), so no stop is counted twice. The cost of
    failures has Daly's exact form: with W seconds of steps, y = (τ + δ)/M, r = R/M

    saving Wδ/τ, lost W/τ · M(e^y − 1 − y), restarting W/τ · M(e^y − 1)(e^r − 1)

    and outages and evaluation are shares of the calendar. Each argument is one number,
    or an `Interval` for the best case, the likely one and the worst; the defaults are
    from published runs of many sizes, so if you use thousands of GPUs, pass what you
    know about your restarts. `gpus_per_node` defaults to the chip's. The run saves at
    Daly's best interval unless you give one, in seconds.
    Raises ValueError for bad input, and for a run that would never end.

    >>> from llmtrain_helpers import Accelerator, Transformer, plan_run
    >>> gpt3 = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> a100 = Accelerator("A100", 80e9, peaks={"bf16": 312e12})
    >>> plan = plan_run(gpt3, a100, 1024, 300e9, 1536, recompute="full",
    ...     tensor_parallel=8, pipeline_parallel=8, zero_stage=1, flops_per_gpu=140e12)
    >>> days = calendar_days(plan)
    >>> [round(x, 1) for x in vars(days.total).values()]
    [34.9, 38.2, 56.5]
    """
    usual_node = plan.run.accelerator.gpus_per_node
    (g,) = as_results(usual_node if gpus_per_node is None else gpus_per_node)
    step = plan.seconds_per_iteration
    cases = [
        _case(plan.iterations * seconds, plan.split.num_gpus, g, checkpoint_interval, *case)
        for seconds, *case in zip(
            (step.least, step.likely, step.greatest),
            _three_cases("failures_per_node_day", failures_per_node_day, quantity),
            _three_cases("checkpoint_seconds", checkpoint_seconds, quantity),
            _three_cases("restart_seconds", restart_seconds, amount),
            _three_cases("outages", outages, amount),
            _three_cases("evaluation", evaluation, amount),
            strict=True,
        )
    ]
    parts, stops, intervals = zip(*cases, strict=True)
    seconds = {name: _rising(*(case[name] for case in parts)) for name in parts[0]}
    days = {name: interval.times(1 / DAY) for name, interval in seconds.items()}
    return CalendarDays(**days, stops=_rising(*stops), checkpoint_interval=intervals)


def _case(
    computing: Result,
    num_gpus: Result,
    gpus_per_node: Result,
    checkpoint_interval: Number | None,
    failures_per_node_day: Result,
    checkpoint_seconds: Result,
    restart_seconds: Result,
    outages: Result,
    evaluation: Result,
) -> tuple[dict[str, Result], Result, Result]:
    """Compute one case of a run (best, likely or worst): its parts, stops and interval."""
    broadcast(
        plan=computing,
        failures_per_node_day=failures_per_node_day,
        checkpoint_seconds=checkpoint_seconds,
        restart_seconds=restart_seconds,
        checkpoint_interval=checkpoint_interval,
        gpus_per_node=gpus_per_node,
        outages=outages,
        evaluation=evaluation,
    )
    limit = "the share of the days that they may take"
    at_most("outages + evaluation", outages + evaluation, limit, 0.95)
    M = DAY * gpus_per_node / (num_gpus * failures_per_node_day)
    given, best = checkpoint_interval, unchecked(best_checkpoint_interval)
    (t,) = as_results(best(checkpoint_seconds, M) if given is None else given)
    W, loss = computing, unchecked(losses)(t, checkpoint_seconds, M, restart_seconds)
    running = W * (1 + loss.total)
    whole = running / (1 - outages - evaluation)
    parts = {
        "computing": W,
        "saving": W * loss.saving,
        "lost": W * loss.lost,
        "restarting": W * loss.restarting,
        "outages": whole * outages,
        "evaluation": whole * evaluation,
    }
    wide = 0 * whole  # each as broadcast as the whole
    return {name: part + wide for name, part in parts.items()}, running / M + wide, t + wide


def _three_cases(name: str, value: Spread, check: Callable[[str, object], Result]) -> list[Result]:
    """Return a value for each case: those of an interval, or the same one for all."""
    if isinstance(value, Interval):
        return [check(name, x) for x in vars(value).values()]
    return [check(name, value)] * 3


def _rising(least: Result, likely: Result, greatest: Result) -> Interval:
    """Make an interval of three cases, even if a better case takes slightly longer."""
    middle = maximum(likely, least)
    return Interval(least, middle, maximum(greatest, middle))
