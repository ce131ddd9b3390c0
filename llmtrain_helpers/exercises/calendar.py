"""Exercises of chapter 09: stops and what they cost, what to mend first, spares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.calendar import (
    EVALUATION,
    FAILURES_PER_NODE_DAY,
    OUTAGES,
    best_checkpoint_interval,
    losses,
    mean_time_between_failures,
    spare_nodes,
)
from llmtrain_helpers.checks import amount, one, quantity, refuse
from llmtrain_helpers.exercises.common import (
    HINT,
    UNANSWERED,
    Exercise,
    Numeric,
    Prediction,
    Word,
    read_as,
)
from llmtrain_helpers.units import DAY, MINUTE

# --- 09-a: stops of a run, and the hours that they take


def _hours_lost(minutes_each: float = 30 / 2 + 20, nodes: float = 2048 / 8) -> float:
    """Hours that the stops of 52 days cost, with so many minutes for each."""
    return nodes * 6 / 1000 * 52 * minutes_each / 60


# --- 09-b: what to mend first

_GPUS, _RATE, _WRITE, _RESTART = 4096, 0.005, 240.0, 15 * MINUTE
"""The run: its GPUs, stops of a node in a day, seconds of a write and of a restart."""


def _lost(failures: float = _RATE, write: float = _WRITE, restart: float = _RESTART) -> float:
    """What stops cost, in seconds for each of work, at the best interval."""
    M = mean_time_between_failures(_GPUS, failures)
    best = best_checkpoint_interval(write, M)
    return float(losses(best, write, M, restart).total)


def _told(share: float) -> str:
    points = units.digits(100 * (_lost() - share), 2)
    return f"stops add {units.percent(_lost())} to the computing; it saves {points}"


_WAYS = {
    "faster restarts": _lost(restart=_RESTART / 3),
    "better nodes": _lost(failures=_RATE / 2),
    "faster writes": _lost(write=_WRITE / 10),
    "twice the spares": _lost(),
}

_OPTIONS = {
    "faster restarts": f"no: {_told(_WAYS['faster restarts'])}. Restarts are short "
    "already; look at what a write of four minutes does, twice.",
    "better nodes": f"no: {_told(_WAYS['better nodes'])}. Much, but something else "
    "saves more, and can be had without new hardware.",
    "faster writes": f"right: {_told(_WAYS['faster writes'])}. Long writes cost "
    "twice: they block, and because they block one saves rarely and loses more.",
    "twice the spares": "no: a spare stands ready as it is, so nothing "
    "waits for a node, and more of them save nothing.",
}

# --- 09-d: a run of one's own

_ASKED: tuple[str, ...] = ("gpus", "computing_days", "calendar_days", "write_seconds")
_ASKED += ("restart_minutes", "save_minutes", "spare_nodes")

_WORST = FAILURES_PER_NODE_DAY.greatest
"""The one rate at which all of a design is judged, as its question says."""

_MAY_COST, _REPAIR_DAYS, _MOST_SPARES = 0.02, 7, 2
"""By how much an interval may make the run longer than the best one would; days of a
repair; times the spares that those take."""


@dataclass(frozen=True)
class OwnCalendar(Exercise):
    """A design: saves well enough, has its spares, ends in time, all at one rate."""

    hint: tuple[str, ...]

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """The date that the design makes, or the first thing that does not hold."""
        if isinstance(answer, Mapping) and None in answer.values():
            return None, UNANSWERED
        n, work, there, write, restart, save, spares = _design(answer)
        wrong = _misdesigned(n, write, restart, save, spares)
        if wrong:
            return False, wrong
        M = mean_time_between_failures(n, _WORST)
        cost = losses(save * MINUTE, write, M, restart * MINUTE).total
        few, bad = (
            work * (1 + cost) / (1 - outages - EVALUATION.likely)
            for outages in (OUTAGES.likely, OUTAGES.greatest)
        )
        told = f"{units.digits(few)} days on the calendar, and there are {there:g}"
        if few > there:
            return False, f"even with few outages it takes {told}. {HINT}"
        broken = _promised(answer, there, few, bad)
        if broken:
            return False, broken
        also = f"With outages as bad as the worst, {units.digits(bad)} days."
        more = spares * _NODE / n
        rent = f"The spares add {units.percent(more)} to the rent"
        rent += "." if more < 0.25 else ": would you rather wait for a repair?"
        return True, f"right: at the worst rate of failures {told}. {also} {rent}"

    def hints(self) -> tuple[str, ...]:
        """What to say at the first wrong answer, the second, and from then on."""
        return self.hint


_KEPT, _NODE = 1.2, 8
"""Times the days with the worst outages that still say something; GPUs of a node."""


def _promised(answer: Mapping[str, Any], there: float, few: float, bad: float) -> str:
    """Why a date is none to promise: too early, too late, or it says nothing."""
    if "promised_days" not in answer:
        return ""
    promised = read_as("promised_days", answer["promised_days"])
    one("promised_days", promised, quantity)
    span = f"{units.digits(few)} days with few outages, {units.digits(bad)} with many"
    if promised < few:
        return f"{promised:g} days cannot be promised: it takes {span}."
    if promised > there:
        return f"{promised:g} days are after your last one, which is {there:g}."
    if promised > _KEPT * bad:
        return f"{promised:g} days promise nothing: it takes {span}."
    return ""


def _misdesigned(n: float, write: float, restart: float, save: float, spares: float) -> str:
    """What is wrong with a design whatever the date; nothing if all holds."""
    M = mean_time_between_failures(n, _WORST)
    if restart < 3:
        return "no published run goes on within three minutes of a stop."
    if max(restart, save) > 24 * 60:
        return (
            "more than a day to restart, or between two writes, loses days: "
            "published runs need minutes to hours."
        )
    if max(write, save * MINUTE, restart * MINUTE) > 3 * M:
        return (
            f"at the worst rate a stop comes every {units.duration(M)}; a write, a "
            "restart or the work between two writes that takes three times as long "
            "leaves hardly any time."
        )
    return _misjudged_interval(M, write, restart, save) or _misordered(n, spares)


def _misjudged_interval(M: float, write: float, restart: float, save: float) -> str:
    """What an interval costs beyond the best one, where that is too much."""
    best = best_checkpoint_interval(write, M)
    given = (write, M, restart * MINUTE)
    chosen, least = (losses(t, *given).total for t in (save * MINUTE, best))
    longer = (1 + chosen) / (1 + least) - 1
    if longer <= _MAY_COST:
        return ""
    return (
        f"at the worst rate, saving every {save:g} minutes makes the run "
        f"{units.percent(longer)} longer than every {units.duration(best)} would; at "
        f"most {100 * _MAY_COST:g} % is asked."
    )


def _misordered(n: float, spares: float) -> str:
    """What is wrong with a number of spares."""
    if spares % 1:
        return f"{spares:g} spare_nodes: only whole nodes can be rented."
    enough = spare_nodes(n, _WORST, _REPAIR_DAYS)
    if spares < enough:
        return (
            f"at the worst rate, with repairs of a week, it takes at least {enough} of spare_nodes."
        )
    most = _MOST_SPARES * enough
    if spares > most:
        return f"{spares:g} spare_nodes are too many: keep at most {most}."
    return ""


def _design(answer: Any) -> list[float]:
    """The numbers of a design; a ValueError for what is missing."""
    if not isinstance(answer, Mapping):
        refuse("answer", answer, "is no dict(gpus=…, computing_days=…, …)")
    missing = [name for name in _ASKED if name not in answer]
    if missing:
        refuse("answer", answer, f"leaves out {', '.join(missing)}")
    checks = {"spare_nodes": amount}
    return [one(name, read_as(name, answer[name]), checks.get(name, quantity)) for name in _ASKED]


EXERCISES: dict[str, Exercise] = {
    "09-a": Numeric(
        key=_hours_lost,
        unit=lambda hours: f"{units.digits(hours)} hours, nearly two days",
        hint=(
            "First: how many stops in 52 days?",
            "256 nodes, 6 stops in 1,000 days of one; each costs half an interval of "
            "30 minutes, and the restart.",
            "256 · 0.006 · 52 stops, times (15 + 20) minutes.",
        ),
        slips={
            8: "eight times too much: the rate is that of a node, and a node has 8.",
            50 / 35: "a whole interval for each stop: on average it is half of one.",
            15 / 35: "this leaves the restart out.",
            20 / 35: "this leaves the work out that is lost.",
            60: "these are minutes; asked are hours.",
            1 / 24: "these are days; asked are hours.",
            1000: "a thousand times too much: 6 in 1,000 days is 0.006 a day.",
            60 / 35: "these are the stops; each costs 35 minutes.",
        },
    ),
    "09-b": Word(key=lambda: min(_WAYS, key=lambda way: _WAYS[way]), options=_OPTIONS),
    "09-c": Numeric(
        key=lambda: spare_nodes(512, 0.008, repair_days=5),
        unit=lambda spares: f"{spares:.0f} spare nodes",
        tolerance=0,
        hint=(
            "How many nodes are in repair at once, on average?",
            "64 · 0.008 · 5 on average; in 99 of 100 moments there must be enough.",
            "Let spare_nodes count it: GPUs, failures of a node in a day, days.",
        ),
        slips={
            3 / 7: "that is the average, rounded up: in every fourth moment it is too few.",
            2.56 / 7: "that is the average; asked are whole nodes, enough in 99 of 100 moments.",
            spare_nodes(512, 0.008, 5, gpus_per_node=1) / 7: "every GPU counts as a "
            "node here: 8 of them make one.",
            8 / 7: "one more than it takes for 99 of 100.",
        },
    ),
    "09-d": OwnCalendar(
        hint=(
            "Which part is largest?",
            "Shorter restarts and writes that block less; or fewer days of computing.",
            "computing_days · (1 + what stops cost) / 0.944 must be below calendar_days.",
        )
    ),
}


# --- predictions


def _half_as_often() -> list[float]:
    """Per cent by which a run gets longer that saves half as often as is best.

    In all, through its writes, and through the work that is lost.
    """
    best = best_checkpoint_interval(40, 4 * DAY)
    once, twice = (losses(k * best, 40, 4 * DAY, 30 * MINUTE) for k in (1, 2))
    return [
        100 * (getattr(twice, part) - getattr(once, part)) / (1 + once.total)
        for part in ("total", "saving", "lost")
    ]


def _longer() -> float:
    return _half_as_often()[0]


def _why_flat() -> str:
    longer, saving, lost = (units.digits(abs(x), 2) for x in _half_as_often())
    best = units.duration(best_checkpoint_interval(40, 4 * DAY))
    return (
        f"Writes cost {saving} points less, lost work {lost} more: together {longer}. "
        f"Around the best interval, {best}, the valley is flat."
    )


PREDICTIONS: dict[str, Prediction] = {
    "09-guess": Prediction(
        truth=_longer,
        why=_why_flat(),
        unit=lambda share: f"{units.digits(share, 2)} %",
        percent=True,
    )
}
