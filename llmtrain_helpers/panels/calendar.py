"""The panel of chapter 09: what stops make of the machines' days."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llmtrain_helpers import units
from llmtrain_helpers.calendar import (
    HOPELESS,
    Losses,
    best_checkpoint_interval,
    losses,
    mean_time_between_failures,
    simulate_run,
)
from llmtrain_helpers.drawings.calendar import parts_of_days, row_of_days, strip_of_days
from llmtrain_helpers.panels import common, controls
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


_SETTINGS = {
    "1,024 A100 for two months": Setting(1024, 5, 30, 40, 40),
    "64 H100 for a month": Setting(64, 5, 30, 21, 40),
    "16,384 H100 for eight weeks": Setting(16384, 4.2, 30, 46, 40),
    "Restarted by hand": Setting(992, 15, 300, 34, 40, "3 hours"),
    "A hundred thousand GPUs": Setting(100_000, 4.2, 10, 50, 5),
}

_CONTROLS = {
    "num_gpus": replace(
        controls.GPUS,
        help="All GPUs of the run; 8 make a node, and any one that fails stops all.",
        stops=controls.doublings(8, 131072),
    ),
    "restart": common.Control(
        "Restart",
        "From a stop until the run goes on: find it, replace it, load.",
        unit="minutes",
        least=0.1,
        most=10_000,
        whole=False,
        stops=controls.steps(1, 600, 1, 2, 3, 5),
    ),
    "failures": common.Control(
        "Failures",
        "Stops that a node causes in 1,000 days; single long runs had 2 to 16.",
        unit="in 1,000 node-days",
        least=0.001,
        most=10_000,
        whole=False,
        stops=controls.steps(0.5, 50, 1, 2, 3, 5),
    ),
    "save_every": controls.choice("Save", "How much work lies between two writes.", _INTERVALS),
    "work_days": common.Control(
        "Computing",
        "Days that the machines would need without any stop.",
        unit="days",
        least=0.1,
        most=100_000,
        whole=False,
        more=True,
    ),
    "write_seconds": common.Control(
        "Write",
        "Seconds for which writing a checkpoint blocks the work.",
        unit="s",
        least=0.01,
        most=100_000,
        whole=False,
        more=True,
    ),
    "chance": common.Control(
        "Chance",
        "Another number draws other days for the failures.",
        most=1000,
        view=True,
        more=True,
    ),
}


@dataclass(frozen=True)
class Run:
    """What the controls make: seconds between failures and writes, and the losses."""

    days: float
    mean: float
    interval: float
    write: float
    restart: float
    cost: Losses

    @property
    def total(self) -> float:
        """Days on the calendar."""
        return float(self.days * (1 + self.cost.total))

    @property
    def stops(self) -> float:
        """How many there will be, on average."""
        return self.total * DAY / self.mean

    def parts(self) -> dict[str, float]:
        """Days of each part."""
        return {
            "computing": self.days,
            "saving": self.days * self.cost.saving,
            "lost": self.days * self.cost.lost,
            "restarting": self.days * self.cost.restarting,
        }


def run_of(setting: Setting) -> Run:
    """The run that a setting makes; a ValueError in words if it would not end."""
    n, d, R = setting.num_gpus, setting.write_seconds, setting.restart * MINUTE
    M = mean_time_between_failures(n, setting.failures / 1000)
    t = _INTERVALS[setting.save_every] or best_checkpoint_interval(d, M)
    cost = losses(t, d, M, R) if t + d + R < HOPELESS * M else None
    if cost is None or cost.total > 20:
        raise ValueError(
            f"num_gpus={n} with so many failures stop every {units.duration(M)}: with "
            f"a restart of {units.duration(R)} and {units.duration(t)} between two "
            "writes hardly anything gets done"
        )
    return Run(setting.work_days, M, t, d, R, cost)


def render(setting: Setting, before: Setting | None = None) -> common.Answer:
    """The panel's answer as HTML, and what would save days, with its price in days."""
    run = run_of(setting)
    try:
        old = run_of(before) if before else None
    except ValueError:  # there is nothing to hold the picture against
        old = None
    html = "".join(
        [
            common.sentence(_sentence(run, old)),
            _pictures(run, old, setting.chance),
            common.folded("The numbers", _table(run)),
            common.folded("In code", common.call(_code(setting))),
        ]
    )
    return common.Answer(html, offers=_offers(setting, run))


def _sentence(run: Run, old: Run | None) -> str:
    dashed = f" (dashed: {units.digits(old.total)})" if old and old != run else ""
    return (
        f"{units.digits(run.days)} days of computing take "
        f"<b>{units.digits(run.total)} days on the calendar</b>{dashed}. "
        f"A stop every <b>{units.duration(run.mean)}</b>, a write every "
        f"{units.duration(run.interval)}; "
        f"useful: <b>{units.percent(1 / (1 + run.cost.total))}</b>."
    )


def _pictures(run: Run, old: Run | None, chance: int) -> str:
    """The first rows of the run, drawn by lot, and the whole of it as parts."""
    days_in_rows = 10 * row_of_days(run.mean / DAY, run.total)
    work = min(1.5 * days_in_rows / (1 + run.cost.total), run.days) * DAY
    simulated = simulate_run(work, run.interval, run.write, run.mean, run.restart, seed=chance)
    whole = work == run.days * DAY
    days = simulated.total / DAY if whole else run.total
    strip = strip_of_days(simulated, days, run.write / (run.interval + run.write))
    bar = parts_of_days(run.parts(), old.parts() if old else None)
    return f"<div>{strip.live()}</div><div>{bar.live()}</div>"


def _table(run: Run) -> str:
    hours_lost = 24 * (run.total - run.days) / run.stops
    rows = [
        ["from one stop to the next, on average", units.duration(run.mean)],
        ["stops in all, on average", units.digits(run.stops, 2)],
        ["work between two writes", units.duration(run.interval)],
        *([f"days: {part}", units.digits(days)] for part, days in run.parts().items()),
        ["hours lost at a stop, all in all", units.digits(hours_lost, 2)],
    ]
    note = (
        "<p>The strip is one run, drawn by lot; sentence, bar and table are the mean "
        "of all. Outages that no rate knows, and evaluation, come on top: in published "
        "runs up to a fifth of all days on the calendar.</p>"
    )
    return common.table(["", "number"], rows) + note


def _offers(setting: Setting, run: Run) -> tuple[common.Offer, ...]:
    """What could be better by half, or by ten: the most days first."""
    ways: dict[str, common.Values] = {
        "Restart in a third of the time": {"restart": float(f"{setting.restart / 3:.2g}")},
        "Half the failures": {"failures": setting.failures / 2},
        "Writes that block a tenth": {"write_seconds": setting.write_seconds / 10},
    }
    if setting.save_every != BEST:
        ways["Save at the best interval"] = {"save_every": BEST}
    offers = []
    for way, change in ways.items():
        [(name, value)] = change.items()
        if not isinstance(value, str) and value < _CONTROLS[name].least:
            continue
        days = run.total - run_of(common.changed(setting, change)).total
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
    ("16,384 H100 for eight weeks", "Restarted by hand"),
    render,
)
