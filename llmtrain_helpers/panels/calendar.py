"""The panel of chapter 09: what stops make of the machines' days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
from llmtrain_helpers.panels import common
from llmtrain_helpers.units import DAY, HOUR, MINUTE

_NAMES = ["num_gpus", "failures", "restart", "work_days", "write_seconds"]
_NAMES += ["save_every", "chance"]

_EVERY = {
    "at its best interval": 0.0,
    "10 minutes": 10 * MINUTE,
    "1 hour": HOUR,
    "3 hours": 3 * HOUR,
    "12 hours": 12 * HOUR,
    "1 day": DAY,
}
_BEST = next(iter(_EVERY))


def _preset(*values: Any) -> dict[str, Any]:
    return dict(zip(_NAMES, [*values, 1], strict=True))


_PRESETS = {
    "1,024 A100 for two months": _preset(1024, 5, 30, 40, 40, _BEST),
    "64 H100 for a month": _preset(64, 5, 30, 21, 40, _BEST),
    "16,384 H100 for eight weeks": _preset(16384, 4.2, 30, 46, 40, _BEST),
    "Restarted by hand": _preset(992, 15, 300, 34, 40, "3 hours"),
    "A hundred thousand GPUs": _preset(100_000, 4.2, 10, 50, 5, _BEST),
}

_CONTROLS = {
    "num_gpus": common.Control(
        "GPUs",
        "All GPUs of the run; 8 make a node, and any one that fails stops all.",
        most=10_000_000,
        stops=common.doublings(8, 131072),
    ),
    "restart": common.Control(
        "Restart",
        "From a stop until the run goes on: find it, replace it, load.",
        unit="minutes",
        least=0.1,
        most=10_000,
        whole=False,
        stops=common.steps(1, 600, 1, 2, 3, 5),
    ),
    "failures": common.Control(
        "Failures",
        "Stops that a node causes in 1,000 days; single long runs had 2 to 16.",
        unit="in 1,000 node-days",
        least=0.001,
        most=10_000,
        whole=False,
        stops=common.steps(0.5, 50, 1, 2, 3, 5),
    ),
    "save_every": common.choice("Save", "How much work lies between two writes.", tuple(_EVERY)),
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
        cost = self.cost
        told = {"saving": cost.saving, "lost": cost.lost, "restarting": cost.restarting}
        return {"computing": self.days} | {k: self.days * x for k, x in told.items()}


def run_of(values: common.Values) -> Run:
    """The run that these values make; a ValueError in words if it would not end."""
    n, days, d = (values[x] for x in ("num_gpus", "work_days", "write_seconds"))
    M = mean_time_between_failures(n, values["failures"] / 1000)
    R, t = values["restart"] * MINUTE, _EVERY[values["save_every"]]
    t = t or best_checkpoint_interval(d, M)
    ends = t + d + R < HOPELESS * M
    cost = losses(t, d, M, R) if ends else None
    if cost is None or cost.total > 20:
        raise ValueError(
            f"num_gpus={n} with so many failures stop every {units.duration(M)}: with "
            f"a restart of {units.duration(R)} and {units.duration(t)} between two "
            "writes hardly anything gets done"
        )
    return Run(days, M, t, d, R, cost)


def render(before: common.Values | None = None, **values: Any) -> common.Answer:
    """The panel's answer as HTML, and what would save days, with its price in days."""
    run = run_of(values)
    old = _old(before)
    html = "".join(
        [
            common.sentence(_sentence(run, old)),
            _pictures(run, old, values["chance"]),
            common.folded("The numbers", _table(run)),
            common.folded("In code", common.call(_code(values))),
        ]
    )
    return common.Answer(html, offers=_offers(values, run))


def _old(before: common.Values | None) -> Run | None:
    try:
        return run_of(before) if before else None
    except ValueError:
        return None


def _sentence(run: Run, old: Run | None) -> str:
    days, share = units.digits(run.total), units.percent(1 / (1 + run.cost.total))
    was = f" (dashed: {units.digits(old.total)})" if old and old != run else ""
    plain = units.digits(run.days)
    return (
        f"{plain} days of computing take <b>{days} days on the calendar</b>{was}. "
        f"A stop every <b>{units.duration(run.mean)}</b>, a write every "
        f"{units.duration(run.interval)}; useful: <b>{share}</b>."
    )


def _pictures(run: Run, old: Run | None, chance: int) -> str:
    """The first rows of the run, drawn by lot, and the whole of it as parts."""
    seen = 10 * row_of_days(run.mean / DAY, run.total)
    work = min(1.5 * seen / (1 + run.cost.total), run.days) * DAY
    given = (run.interval, run.write, run.mean, run.restart)
    drawn = simulate_run(work, *given, seed=chance)
    share = run.write / (run.interval + run.write)
    drawn_days, whole = drawn.total / DAY, work == run.days * DAY
    strip = strip_of_days(drawn, drawn_days if whole else run.total, share)
    bar = parts_of_days(run.parts(), old.parts() if old else None)
    return f"<div>{strip.live()}</div><div>{bar.live()}</div>"


def _table(run: Run) -> str:
    rows = {
        "from one stop to the next, on average": units.duration(run.mean),
        "stops in all, on average": units.digits(run.stops, 2),
        "work between two writes": units.duration(run.interval),
    }
    rows |= {f"days: {k}": units.digits(v) for k, v in run.parts().items()}
    rows["hours lost at a stop, all in all"] = units.digits(
        24 * (run.total - run.days) / run.stops, 2
    )
    note = (
        "<p>The strip is one run, drawn by lot; sentence, bar and table are the mean "
        "of all. Outages that no rate knows, and evaluation, come on top: in published "
        "runs up to a fifth of all days on the calendar.</p>"
    )
    return common.table(["", "number"], [list(row) for row in rows.items()]) + note


def _offers(values: common.Values, run: Run) -> tuple[common.Offer, ...]:
    """What could be better by half, or by ten: the most days first."""
    ways = {
        "Restart in a third of the time": {"restart": _third(values["restart"])},
        "Half the failures": {"failures": values["failures"] / 2},
        "Writes that block a tenth": {"write_seconds": values["write_seconds"] / 10},
    }
    if values["save_every"] != _BEST:
        ways["Save at the best interval"] = {"save_every": _BEST}
    legal = {
        told: change
        for told, change in ways.items()
        if all(_CONTROLS[k].kind == "choice" or v >= _CONTROLS[k].least
               for k, v in change.items())
    }  # fmt: skip
    saved = {told: run.total - run_of({**values, **change}).total for told, change in legal.items()}
    best = sorted((x for x in saved if saved[x] > 0), key=lambda x: -saved[x])
    return tuple((f"{told}: {_saves(saved[told])}", legal[told]) for told in best)


def _third(minutes: float) -> float:
    return float(f"{minutes / 3:.2g}")


def _saves(days: float) -> str:
    return f"saves {units.duration(days * DAY)}"


def _code(values: common.Values) -> str:
    n, d, R = (values[x] for x in ("num_gpus", "write_seconds", "restart"))
    every = _EVERY[values["save_every"]]
    told = f"{every:g}" if every else f"best_checkpoint_interval({d:g}, M)"
    return (
        f"M = mean_time_between_failures({n}, {values['failures'] / 1000:g})\n"
        f"t = {told}\n"
        f"{values['work_days']:g} / goodput(t, {d:g}, M, {R * MINUTE:g})  # days"
    )


PANEL = common.Panel(
    "When will it really be done?",
    _CONTROLS,
    _PRESETS,
    ("16,384 H100 for eight weeks", "Restarted by hand"),
    render,
)
