"""The panel of chapter 10: what stops make of the machines' days."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache, cached_property, partial
from math import ceil
from random import Random

from llmtrain_course.calendar.formulas import (
    ExpectedDays,
    SimulatedRun,
    expected_days,
    simulate_run,
)
from llmtrain_course.calendar.pictures import (
    LEFT_OUT,
    dated_run,
    one_stop,
    parts_of_days,
    row_of_days,
    strip_of_days,
    valley,
)
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.handle import ByHand, Shown, handle, slider
from llmtrain_course.kit.layout import PAGE, Below
from llmtrain_helpers import units
from llmtrain_helpers.calendar import (
    CHECKPOINT_SECONDS,
    HOPELESS,
    OUTAGES,
    RESTART_SECONDS,
    best_checkpoint_interval,
    losses,
    mean_time_between_failures,
)
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.published import accelerator, architecture
from llmtrain_helpers.units import DAY, HOUR, MINUTE

BEST = "at its best interval"

_INTERVALS = {
    BEST: 0.0,
    "10 minutes": 10 * MINUTE,
    "1 hour": HOUR,
    "3 hours": 3 * HOUR,
    "12 hours": 12 * HOUR,
    "1 day": DAY,
}
"""Seconds of work between two writes; of the best it is the run that says how many."""


@dataclass(frozen=True)
class Setting:
    """GPUs and how often they fail; minutes of a restart, days of work, writes."""

    num_gpus: int
    failures: float
    restart: float
    work_days: float
    write_seconds: float
    save_every: str = BEST
    chance: int = 1

    @property
    def mean(self) -> float:
        """Seconds from one stop to the next, on average."""
        return float(mean_time_between_failures(self.num_gpus, self.failures / 1000))

    @property
    def interval(self) -> float:
        """Seconds of work between two writes."""
        best = best_checkpoint_interval(self.write_seconds, self.mean)
        return _INTERVALS[self.save_every] or float(best)

    @property
    def times(self) -> tuple[float, float, float, float]:
        """Seconds between writes, of a write, between failures and of a restart."""
        return self.interval, self.write_seconds, self.mean, self.restart * MINUTE

    @cached_property
    def days(self) -> ExpectedDays:
        """The days on the calendar; a ValueError in words if the run would not end."""
        t, d, M, R = self.times
        days = expected_days(self.work_days, t, d, M, R) if t + d + R < HOPELESS * M else None
        if days is None or days.losses.total > 20:
            raise ValueError(
                f"num_gpus={self.num_gpus} with so many failures stop every "
                f"{units.duration(M)}, so with a restart of {units.duration(R)} and "
                f"{units.duration(t)} between two writes, barely any work gets done"
            )
        return days


_SETTINGS = {
    "16,384 H100s for eight weeks": Setting(16384, 4.2, 30, 46, 40),
    "1,024 A100s for two months": Setting(1024, 5, 30, 36, 40),
    "64 H100s for a month": Setting(64, 5, 30, 20, 40),
    "Restarted by hand": Setting(992, 15, 300, 34, 40, "3 hours"),
    "A hundred thousand GPUs": Setting(100_000, 4.2, 10, 50, 5),
}

_CONTROLS = {
    "num_gpus": replace(
        controls.GPUS,
        help="All GPUs of the run. 8 are a node, and if one fails, all stop.",
        stops=controls.doublings(8, 131072),
    ),
    "restart": common.Control(
        "Restart",
        "From a stop until the run continues: find the fault, replace it, load.",
        unit="minutes",
        least=0.1,
        most=10_000,
        whole=False,
        stops=controls.steps(1, 600, 1, 2, 3, 5),
    ),
    "failures": common.Control(
        "Failures",
        "Stops that a node causes in 1,000 days, 2 to 16 in long runs.",
        unit="in 1,000 node-days",
        least=0.001,
        most=10_000,
        whole=False,
        stops=controls.steps(0.5, 50, 1, 2, 3, 5),
    ),
    "save_every": controls.choice("Save", "Work between two writes.", _INTERVALS),
    "work_days": common.Control(
        "Computing",
        "Days that the machines would need without stops.",
        unit="days",
        least=0.1,
        most=100_000,
        whole=False,
        more=True,
    ),
    "write_seconds": common.Control(
        "Write",
        "Seconds that writing a checkpoint blocks the GPUs.",
        unit="s",
        least=0.01,
        most=100_000,
        whole=False,
        more=True,
    ),
    "chance": common.Control(
        "Chance", "A different number draws different failures.", most=1000, view=True, more=True
    ),
}


def render(setting: Setting, before: Setting | None = None, width: int = PAGE) -> common.Answer:
    """The panel's answer as HTML, and what would save days, with its price in days."""
    try:
        old = before.days if before else None
    except ValueError:  # there is nothing to hold the picture against
        old = None
    html = "".join(
        [
            common.sentence(_sentence(setting, old)),
            _pictures(setting, old, width),
            common.folded("The numbers", _table(setting)),
            common.folded("In code", common.call(_code(setting))),
        ]
    )
    return common.Answer(html, offers=_offers(setting))


def _sentence(setting: Setting, old: ExpectedDays | None) -> str:
    days = setting.days
    dashed = f" (dashed: {units.digits(old.total)})" if old and old != days else ""
    return (
        f"{units.digits(days.computing)} days of computing need <b>{units.digits(days.total)} "
        f"days on the calendar</b>{dashed}. "
        f"The run stops every <b>{units.duration(setting.mean)}</b> and saves every "
        f"{units.duration(setting.interval)}, so <b>"
        f"{units.percent(1 / (1 + days.losses.total))}</b> of its time is useful."
    )


def _pictures(setting: Setting, old: ExpectedDays | None, width: int) -> str:
    """The first rows of a random run, and the whole of it as parts."""
    days, (t, d, M, _) = setting.days, setting.times
    in_rows = 10 * row_of_days(M / DAY, days.total)
    work = min(1.5 * in_rows / (1 + days.losses.total), days.computing) * DAY
    simulated = simulate_run(work, *setting.times, seed=setting.chance)
    whole = work == days.computing * DAY
    strip_days = simulated.total / DAY if whole else days.total
    strip = strip_of_days(simulated, strip_days, d / (t + d))
    bar = parts_of_days(days.parts(), old.parts() if old else None)
    both = Below([strip, bar], f"{strip.words} {bar.words}", gap=10)
    return f"<div>{both.drawing(width).inline_svg()}</div>"


def _table(setting: Setting) -> str:
    days = setting.days
    rows = [
        ["from one stop to the next, on average", units.duration(setting.mean)],
        ["stops in all, on average", units.digits(days.stops, 2)],
        ["work between two writes", units.duration(setting.interval)],
        *([f"days: {part}", units.digits(size)] for part, size in days.parts().items()),
        ["hours lost per stop", units.digits(24 * days.days_lost_at_a_stop, 2)],
    ]
    note = (
        "<p>The strip shows one random run, with the writes up to a stop drawn together, right "
        "before the stop. The sentence, the bar and the table show the mean of all runs. "
        f"{LEFT_OUT}</p>"
    )
    return common.table(["", "number"], rows) + note


def _offers(setting: Setting) -> tuple[common.Offer, ...]:
    """What could be better, and what it would save: the most days first."""
    ways: dict[str, common.Values] = {
        "Restart 3× faster": {"restart": float(f"{setting.restart / 3:.2g}")},
        "33% fewer failures": {"failures": float(f"{setting.failures / 1.5:.2g}")},
        "Writes that block 10× shorter": {"write_seconds": setting.write_seconds / 10},
    }
    if setting.save_every != BEST:
        ways["Save at the best interval"] = {"save_every": BEST}
    offers = []
    for way, change in ways.items():
        [(name, value)] = change.items()
        if not isinstance(value, str) and value < _CONTROLS[name].least:
            continue
        days = setting.days.total - common.changed(setting, change).days.total
        if days > 0:
            offers.append((days, f"{way}: saves {units.duration(days * DAY)}", change))
    offers.sort(key=lambda offer: -offer[0])
    return tuple((label, change) for _, label, change in offers)


def _code(setting: Setting) -> str:
    d, interval = setting.write_seconds, _INTERVALS[setting.save_every]
    t = f"{interval:g}" if interval else f"best_checkpoint_interval({d:g}, M)"
    return (
        f"M = mean_time_between_failures({setting.num_gpus}, {setting.failures / 1000:g})\n"
        f"t = {t}\n"
        f"{setting.work_days:g} / goodput(t, {d:g}, M, {setting.restart * MINUTE:g})  # days"
    )


PANEL = common.Panel(
    "When will it really be done?",
    _CONTROLS,
    _SETTINGS,
    ("1,024 A100s for two months", "Restarted by hand"),
    render,
)


@handle(
    "One failure on the run's time axis, and the time it costs.",
    lost=slider(
        "It fails after",
        "Minutes since the last write.",
        tuple(range(0, 61, 5)),
        unit="minutes",
        whole=False,
    ),
    restart=replace(_CONTROLS["restart"], most=60, stops=(5, 10, 20, 30, 45, 60)),
    book=({}, {"restart": 5}),
)
def failure(lost: float = 30, restart: float = 30) -> Shown:
    """The line of time, and what the stop costs."""
    caption = f"You lose {lost:g} minutes of work, and the restart needs {restart:g}, so the "
    caption += f"stop costs <b>{lost + restart:g} minutes</b>."
    return one_stop(lost, 60, restart), caption


@handle(
    "Time lost by the interval between two checkpoints.",
    minutes=slider(
        "Save every",
        "Minutes of work between two writes.",
        (1, 2, 4, 7, 15, 30, 60, 120, 240, 480),
        unit="minutes",
        whole=False,
    ),
    write=replace(_CONTROLS["write_seconds"], most=300, more=False, stops=(5, 10, 40, 150)),
    book=({"minutes": 15}, {"minutes": 15, "write": 5}),
)
def save_interval(minutes: float = 60, write: float = 40) -> Shown:
    """The dot on its valley, and what it costs compared with the best interval."""
    M, R = float(mean_time_between_failures(16384, 0.0042)), 30 * MINUTE
    best = best_checkpoint_interval(write, M)
    chosen, least = (losses(t, write, M, R).total for t in (minutes * MINUTE, best))
    caption = f"Stops and writes add <b>{units.percent(chosen)}</b> to the useful time. At the "
    caption += f"best interval, {units.duration(best)}, they'd add {units.percent(least)}."
    return valley(minutes * MINUTE, write, M, R), caption


# --- a run on the days of a calendar

_START, _THERE = date(2027, 3, 1), 30
"""The first day of the run, and the days that there are."""

_STEPS = {"fast": "least", "as likely": "likely", "slow": "greatest"}
"""How long a step takes that nobody has timed."""

_SEED = 1176
"""Draws a run whose failures fall as often as they do on average."""

_MOST_FAILURES = 50


@cache
def _failures() -> tuple[tuple[float, float], ...]:
    """When 64 GPUs fail at the greatest rate, in seconds, and from which rate on each counts.

    They're the same for all settings, so you only see what a control changes.
    """
    dice, now, drawn = Random(_SEED), 0.0, []
    mean = float(mean_time_between_failures(64, _MOST_FAILURES / 1000))
    for _ in range(100):
        now += dice.expovariate(1 / mean)
        drawn.append((now, _MOST_FAILURES * dice.random()))
    return tuple(drawn)


@cache
def _planned() -> Plan:
    """The 8B of chapter 09, on a trillion tokens and 64 H100s."""
    llama, h100 = architecture("Llama-3.1-8B", 8192), accelerator("H100")
    return plan_run(llama, h100, 64, 1e12, 512, recompute="none", zero_stage=3)


@handle(
    "The run on the days of a calendar, with stops and outages.",
    step=controls.choice("Step", "How fast your step is, which nobody has timed yet.", _STEPS),
    failures=replace(_CONTROLS["failures"], most=_MOST_FAILURES, stops=(2, 5, 10, 16, 24, 50)),
    outages=slider(
        "Outages",
        "Share of all days when the machine isn't available.",
        (0, 2, 5, 10, 15, 20),
        unit="%",
        whole=False,
    ),
    book=({}, {"step": "slow"}),
)
def dates(
    step: str = "as likely", failures: float = 5, outages: float = 100 * OUTAGES.likely
) -> Shown:
    """The run on its calendar, and the date of its end compared with the last day."""
    plan = _planned()
    M = float(mean_time_between_failures(64, failures / 1000))
    work = plan.iterations * getattr(plan.seconds_per_iteration, _STEPS[step])
    write = CHECKPOINT_SECONDS.likely
    interval = best_checkpoint_interval(write, M)
    fails = [moment for moment, rate in _failures() if rate < failures]
    run = SimulatedRun.with_failures(fails, work, interval, write, RESTART_SECONDS.likely)
    whole = run.on_calendar(outages / 100, seed=_SEED)
    days = ceil(whole[-1].end / DAY)
    end, early = _START + timedelta(days=days - 1), _THERE - days
    when = "on your last day"
    if early:
        when = f"{units.plural(abs(early), 'day')} {'before' if early > 0 else 'after'} "
        when += "your last one"
    cost = units.duration(run.lost + run.restarting) if run.stops else "nothing"
    caption = f"You're done on <b>{end:%A}, {end.day} {end:%B}</b>, {when}. "
    caption += f"{units.plural(run.stops, 'failure')} cost {cost}."
    promised = round(float(plan.first_run.greatest))  # by chapter 09
    return ByHand(partial(dated_run, whole, _START, _THERE, promised)), caption
