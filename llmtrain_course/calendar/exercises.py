"""Exercises of chapter 10: stops and what they cost, what to fix first, spares."""

from __future__ import annotations

from math import isclose

from llmtrain_course.kit.exercise import (
    HINT,
    NOT_YET,
    Answer,
    Design,
    Exercise,
    Grade,
    MultipleChoice,
    Numeric,
    Prediction,
    design_of,
    entry,
    unanswered,
)
from llmtrain_course.kit.kinds import FillIn
from llmtrain_course.kit.own_run import own_run
from llmtrain_helpers import units
from llmtrain_helpers.calendar import (
    EVALUATION,
    FAILURES_PER_NODE_DAY,
    OUTAGES,
    best_checkpoint_interval,
    calendar_days,
    losses,
    mean_time_between_failures,
    spare_nodes,
)
from llmtrain_helpers.checks import amount, refuse
from llmtrain_helpers.plan.pace import STOPS
from llmtrain_helpers.units import DAY, MINUTE

# --- calendar-cost: what writes and lost work take of the time


class Cost(FillIn):
    """The line as the page has it, or with the time that writes themselves take, more exactly."""

    def grade(self, answer: Answer) -> Grade:
        """Accept both lines, and say which is more exact."""
        delta, tau, M = 40, 900, 1e4
        for lost in (tau, tau + delta):
            share = delta / (tau + delta) + lost / 2 / M
            if isinstance(answer, float) and isclose(answer, share, rel_tol=1e-3):
                return True, (
                    f"Right, {self.unit(share)}, and more exact than this page's line, which "
                    f"gives {units.percent(self.key())}. A write follows tau seconds of work, so "
                    f"you write once in tau + delta seconds, while the page uses once in tau."
                )
        return super().grade(answer)


# --- calendar-a: stops of a run, and the hours that they take


def _hours_of_stops() -> float:
    """Hours that the stops of 52 days cost, of 256 nodes with 6 stops in 1,000 days each."""
    stops = 2048 / 8 * 6 / 1000 * 52
    minutes_each = 30 / 2 + 20  # half an interval is done again, and the restart
    return stops * minutes_each / 60


# --- calendar-b: what to fix first

_GPUS, _RATE, _WRITE, _RESTART = 4096, 0.005, 240.0, 15 * MINUTE
"""The run: its GPUs, stops of a node in a day, seconds of a write and of a restart."""


def _cost_of_stops(
    failures: float = _RATE, write: float = _WRITE, restart: float = _RESTART
) -> float:
    """What stops cost, in seconds for each of work, at the best interval."""
    M = mean_time_between_failures(_GPUS, failures)
    best = best_checkpoint_interval(write, M)
    return float(losses(best, write, M, restart).total)


_COSTS = {
    "faster restarts": _cost_of_stops(restart=_RESTART / 3),
    "better nodes": _cost_of_stops(failures=_RATE / 2),
    "faster writes": _cost_of_stops(write=_WRITE / 10),
    "twice the spares": _cost_of_stops(),
}
"""What stops cost after each change."""


def _saving(change: str) -> str:
    """What stops cost, and what a change saves of it."""
    points = units.digits(100 * (_cost_of_stops() - _COSTS[change]), 2)
    return f"stops add {units.percent(_cost_of_stops())} to the computing, and it saves {points}"


_OPTIONS = {
    "faster restarts": f"No: {_saving('faster restarts')}. Your restarts are already short, but "
    f"a four-minute write hurts you in two ways. Which ones?",
    "better nodes": f"No: {_saving('better nodes')}. That's a lot, but something else "
    "saves more, and you don't need new hardware for it.",
    "faster writes": f"Right: {_saving('faster writes')}. You pay twice for long "
    "writes: they block the GPUs, and because they do, you save rarely and lose more.",
    "twice the spares": "No: a spare is ready already, so nothing waits for a node, and more "
    "spares save nothing.",
}

# --- calendar-c: two jobs and their spares

_ALONE = spare_nodes(256, 0.008, repair_days=5)
"""Spare nodes that each of two jobs on 256 GPUs needs for itself."""

# --- calendar-d: a run of one's own

_ENTRIES = (
    "gpus",
    "computing_days",
    "calendar_days",
    "write_seconds",
    "restart_minutes",
    "save_minutes",
    "spare_nodes",
)

_WORST = FAILURES_PER_NODE_DAY.greatest
"""The one rate at which all of a design is judged, as its question says."""

_MOST_EXTRA_COST, _MOST_LONGER, _REPAIR_DAYS, _MOST_SPARES = 1 / 2, 0.03, 7, 2
"""By how much more an interval may take in writes and lost work than the best one would: a
factor of 2.5 takes nearly half more; the part of a run that nobody minds in any case; days
of a repair; times the spares that those take."""

_MOST_PROMISED, _NODE, _NEAR = 1.2, 8, 0.02
"""Times the days with the worst outages that still say something; GPUs of a node; by how much
the slow end may be late, as in plan-d."""


class OwnCalendar(Exercise):
    """A design: ends in time, saves well, has its spares, and a promise by the page's rule."""

    hint = (
        "Which part is the largest?",
        "You can shorten the restarts, write without blocking, or compute for fewer days.",
        "computing_days · (1 + what stops cost) / 0.944 has to be below calendar_days.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Grade the design by its date, or by the first condition that doesn't hold."""
        if unanswered(answer):
            return NOT_YET
        design = design_of(answer, _ENTRIES, "gpus=…, computing_days=…")
        n, work, limit, write, restart, save = (entry(design, name) for name in _ENTRIES[:-1])
        spares = entry(design, "spare_nodes", amount)
        if work > limit:
            days = (
                f"{units.digits(work)} days of computing are already more than the {limit:g} days"
            )
            return False, f"{days} you have. Use fewer tokens, or more GPUs."
        if problem := _problem_with_stops(n, write, restart, save):
            return False, problem
        M = mean_time_between_failures(n, _WORST)
        with_stops = work * (1 + losses(save * MINUTE, write, M, restart * MINUTE).total)
        best, worst = (
            with_stops / (1 - outages - EVALUATION.likely)
            for outages in (OUTAGES.likely, OUTAGES.greatest)
        )
        summary = f"{units.digits(best)} days on the calendar, but your limit is {limit:g}"
        if best > limit:
            return False, f"Even with few outages, you'd need {summary}. {HINT}"
        if problem := _problem_with_spares(n, spares):
            return False, problem
        span = f"{units.digits(best)} days with few outages, {units.digits(worst)} with many"
        measured = _is_measured(design)
        slow_end = _slow_end(work, measured)
        latest = units.digits(slow_end)
        span += f", and up to {latest} at the slow end"
        if slow_end > limit * (1 + _NEAR):
            why = f"Others took up to {units.share(STOPS[2] - 1)} longer than their steps"
            why = why if measured else "Nobody has timed a step yet"
            cure = "Use fewer tokens, or more GPUs"
            cure = cure if measured else "Use fewer tokens or more GPUs, or time a step"
            return (
                False,
                f"{why}, so you have to promise {latest} days, but your limit is {limit:g}. "
                f"{cure}.",
            )
        if "promised_days" in design:
            promised = entry(design, "promised_days")
            if problem := _problem_with_promise(promised, limit, slow_end, max(slow_end, worst)):
                return False, f"{promised:g} days {problem}. The run needs {span}."
        return True, (
            f"Right: at the worst failure rate, the run needs {span}, and your limit is {limit:g}. "
            f"{_price_of_spares(n, spares)}"
        )


def _is_measured(design: Design) -> bool:
    """Whether the days of computing are those of a step that somebody timed."""
    measured = design.get("measured", False)
    if not isinstance(measured, bool):
        refuse("measured", measured, "is neither True nor False")
    return measured


def _slow_end(work: float, measured: bool) -> float:
    """The days to promise: those of timed steps with the worst overhead, or the own plan's."""
    if measured:
        return work * STOPS[2]
    plan = own_run().plan
    return work * float(plan.first_run.greatest / calendar_days(plan).computing.likely)


def _problem_with_promise(promised: float, limit: float, slow_end: float, latest: float) -> str:
    """What's wrong with a promise, if anything is."""
    if promised < min(slow_end, limit) * (1 - _NEAR):
        return "are too few to promise, because others needed more"
    if promised > limit:
        return f"end after your last one, which is day {limit:g}"
    return "promise nothing" if promised > _MOST_PROMISED * latest else ""


def _problem_with_stops(n: float, write: float, restart: float, save: float) -> str:
    """What is wrong with a design's writes and restarts, whatever the date."""
    M = mean_time_between_failures(n, _WORST)
    if restart < 3:
        return "No published run continues within three minutes of a stop."
    if max(restart, save) > 24 * 60:
        return (
            "If a restart or the work between two writes lasts more than a day, you lose "
            "days, while published runs need minutes to hours."
        )
    if max(write, save * MINUTE, restart * MINUTE) > 3 * M:
        return (
            f"At the worst rate, a stop comes every {units.duration(M)}. If a write, a "
            f"restart or the work between two writes lasts 3× as long, barely any time is left."
        )
    best = best_checkpoint_interval(write, M)
    cost, least = (losses(t, write, M, restart * MINUTE) for t in (save * MINUTE, best))
    cost_ratio = (cost.saving + cost.lost) / (least.saving + least.lost)
    longer = (1 + cost.total) / (1 + least.total) - 1
    if cost_ratio > 1 + _MOST_EXTRA_COST and longer > _MOST_LONGER:
        often = "often" if save * MINUTE < best else "rarely"
        return (
            f"Every {save:g} minutes is too {often}: at the worst rate, your run takes "
            f"{units.percent(longer)} longer than with the best interval."
        )
    return ""


def _problem_with_spares(n: float, spares: float) -> str:
    """What is wrong with a number of spares, if anything is."""
    if spares % 1:
        return f"spare_nodes={spares:g} can't be: you can only rent whole nodes."
    enough = spare_nodes(n, _WORST, _REPAIR_DAYS)
    if n <= _NODE and spares == 0:
        return ""  # with a single node one waits for its repair
    if spares < enough:
        return f"At the worst rate, with week-long repairs, you need at least {enough} spare nodes."
    most = _MOST_SPARES * enough
    if spares > most:
        return f"{spares:g} spare_nodes are too many. Keep at most {most}."
    return ""


def _price_of_spares(n: float, spares: float) -> str:
    """What spares add to the rent; with none, how often the run may wait for a repair."""
    if not spares:
        stops = units.duration(mean_time_between_failures(n, _WORST), 2)
        return (
            "Without a spare, your run waits for each repair. At that rate the node stops "
            f"every {stops}, though few stops need a repair."
        )
    rent = spares * _NODE / n
    doubt = "." if rent < 0.25 else ". Would you rather wait for a repair?"
    return f"Your spares add {units.percent(rent)} to the rent{doubt}"


EXERCISES: dict[str, Exercise] = {
    "calendar-cost": Cost(
        key=lambda: 40 / 900 + 900 / 2 / 1e4,
        unit=lambda share: f"{units.percent(share)} of the time",
        hint="You write once in tau seconds, and stop once in M. How much time does each one cost?",
        common_mistakes={
            "You've lost a whole interval at each stop, but on average it's half.": lambda: (
                40 / 900 + 900 / 1e4
            ),
            "You've only counted the writes, but a stop also loses work.": lambda: 40 / 900,
            "You've only counted the lost work, but writes also block the GPUs.": lambda: 450 / 1e4,
            "You've written once in M seconds, but you write once in tau.": lambda: (
                40 / 1e4 + 450 / 1e4
            ),
        },
    ),
    "calendar-a": Numeric(
        key=_hours_of_stops,
        asked="hours",
        unit=lambda hours: f"{units.digits(hours)} hours, almost two days",
        hint=(
            "How many stops are there in 52 days?",
            "Each of the 256 nodes stops 6 times in 1,000 days, and each stop costs half a "
            "30-minute interval plus the restart.",
        ),
        common_mistakes={
            "8 * N * f * D * 35 / 60": "That's 8× too high, because the rate is per node, and a "
            "node is 8 GPUs.",
            "N * f * D * (30 + 20) / 60": "You've lost a whole interval per stop, but on average "
            "it's half an interval.",
            "N * f * D * 30 / 2 / 60": "You've left out the restart.",
            "N * f * D * 20 / 60": "You've left out the lost work.",
            "N * f * D * 35": "Those are minutes. Give hours.",
            "N * f * D * 35 / 60 / 24": "Those are days. Give hours.",
            "N * 6 * D * 35 / 60": "That's 1,000× too high. 6 in 1,000 days is 0.006 per day.",
            "N * f * D": "Those are the stops, and each costs 35 minutes.",
        },
        values={"N": 256, "f": 6 / 1000, "D": 52},
    ),
    "calendar-b": MultipleChoice(
        key=lambda: min(_COSTS, key=lambda change: _COSTS[change]), options=_OPTIONS
    ),
    "calendar-c": Numeric(
        key=lambda: spare_nodes(512, 0.008, repair_days=5),
        asked="nodes",
        unit=lambda spares: f"{spares:.0f} spare nodes",
        tolerance=0,
        hint=(
            "Does it matter to the pool which job a node belongs to, or only how many nodes fail?",
            "For the pool, the two jobs are one machine. How large is it?",
            "Call spare_nodes for it, with its GPUs, a node's failures per day, and the days.",
        ),
        common_mistakes={
            3: "That's the average, rounded up, but it's too few 25% of the time.",
            2 * _ALONE: "That's how many the two jobs need separately. They rarely both have bad "
            "luck in the same week, so a common pool needs fewer.",
            _ALONE: "That's enough for one of the two jobs.",
            2.56: "That's the average. Give a whole number of nodes that's enough 99% of the time.",
            spare_nodes(
                512, 0.008, 5, gpus_per_node=1
            ): "You've counted every GPU as a node, but a node is 8 GPUs.",
            8: "That's one more than you need for 99%.",
        },
    ),
    "calendar-d": OwnCalendar(),
}


# --- predictions


_WRITES, _STOPS, _RESTARTS = 40, 4 * DAY, 30 * MINUTE
"""Seconds of a write, between two stops, and of a restart."""


def _points_longer(part: str = "total") -> float:
    """Per cent by which a run gets longer that saves half as often as is best.

    In all, or through one part of the losses.
    """
    best = best_checkpoint_interval(_WRITES, _STOPS)
    often, seldom = (losses(interval, _WRITES, _STOPS, _RESTARTS) for interval in (best, 2 * best))
    return float(100 * (getattr(seldom, part) - getattr(often, part)) / (1 + often.total))


def _why_flat() -> str:
    longer, saving, lost = (
        units.digits(abs(_points_longer(part)), 2) for part in ("total", "saving", "lost")
    )
    best = units.duration(best_checkpoint_interval(_WRITES, _STOPS))
    return (
        f"Writes cost {saving} points less and lost work {lost} more, so the sum is {longer}. "
        f"Around the best interval, {best}, the valley is flat."
    )


PREDICTIONS: dict[str, Prediction] = {
    "calendar-guess": Prediction(
        truth=_points_longer,
        why=_why_flat(),
        unit=lambda share: f"{units.digits(share, 2)}%",
        asked="%",
    )
}
