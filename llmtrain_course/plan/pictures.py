"""Pictures of chapter 09: days and bytes against what there is, and what may be promised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from llmtrain_course.kit.drawing import COLORS, round_step
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Point, Span
from llmtrain_course.kit.layout import Below, Picture, Swatch, Table, patch
from llmtrain_course.kit.scale import Scale
from llmtrain_course.plan.formulas import in_time
from llmtrain_helpers import units
from llmtrain_helpers.plan.pace import stops
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.results import Interval
from research.utilizations import OtherRun

BLUE, RED = COLORS["weights"], COLORS["gradients"]
"""What's the learner's own, or a whole run; and runs whose hours are less certain."""

REACH = 1.6
"""How far an axis goes, in multiples of what there is."""


def _axis(most: float, unit: str) -> Scale:
    """A scale from 0, with the unit at its last number."""
    step = round_step(most, 7)
    ticks = [step * i for i in range(int(most / step) + 1)]
    labels = {tick: f"{tick:,.10g}" for tick in ticks}
    return Scale(0, most, ticks=labels | {ticks[-1]: f"{labels[ticks[-1]]} {unit}"})


def format_span(span: Interval) -> str:
    """Format an estimate from its least to its greatest, in two digits, with one unit."""
    least, greatest = (format_days(days) for days in (span.least, span.greatest))
    if least == greatest:
        return least
    if least.partition(" ")[2] == greatest.partition(" ")[2]:
        least = least.split()[0]
    return f"{least} to {greatest}"


def format_days(days: float) -> str:
    """Format a time in two digits: in days from one day on, so that years compare with months."""
    if days < 1:
        return units.duration(days * units.DAY, 2)
    return f"{units.digits(days, 2)} days"


# --- two answers: days and bytes, against what there is


def answers(plan: Plan, days: float, before: Plan | None = None) -> Picture:
    """The days of a run and the bytes on a GPU, each as a bar against what there is.

    The bar of days ends with what may be promised, `Plan.first_run`. Dashed outlines
    show the plan `before`.
    """
    words = (
        f"{_time_in_words(plan, days)} Each GPU holds {units.gigabytes(plan.memory.total)} of "
        f"{units.gigabytes(plan.card)} at the {plan.phase}: "
        f"{', '.join(f'{word} {units.gigabytes(x)}' for word, x in parts_of(plan).items())}. "
        f"{_capitalized(memory_verdict(plan))}."
    )
    return Below([_time(plan, days, before), memory_bar(plan, before)], words, gap=8)


def _capitalized(verdict: str) -> str:
    """Begin a sentence with a verdict, without its sign."""
    return verdict[2].upper() + verdict[3:]


def time_verdict(plan: Plan, days: float) -> str:
    """The verdict on whether the promise keeps the days that there are, with its sign."""
    promise = format_days(plan.first_run.greatest)
    if plan.first_run.greatest > 2 * days:
        times = units.digits(plan.first_run.greatest / days, 2)
        return f"✗ {promise}: {times} times your {days:,g}"
    if in_time(plan, days):
        return f"✓ {promise}: in time"
    if plan.days.likely <= days:
        return f"○ {promise}: perhaps too late"
    return f"✗ {promise}: too late"


def _time_in_words(plan: Plan, days: float) -> str:
    span = format_span(plan.days)
    if plan.measured:
        estimate = f"{format_days(plan.days_of_steps.likely)} of steps, with overhead {span}"
    else:
        estimate = f"With the steps and overhead of other runs it takes {span}"
    return f"{estimate}; promise {format_days(plan.first_run.greatest)}. You have {days:,g} days."


def _time(plan: Plan, days: float, before: Plan | None) -> Picture:
    """The days up to the promise as a bar, against those that there are."""
    axis, promise = _axis(REACH * days, "days"), plan.first_run.greatest
    spans = [*_spent(plan, axis)]
    if before and before.first_run.greatest != promise:
        spans.append(Span(0, before.first_run.greatest, title="before", previous=True))
    return Bars(
        axis,
        [Lane("", spans, cuts=True)],
        limits=[Limit(days, f"you have {days:,g} days", width=3)],
        heading="days to promise",
        verdict=time_verdict(plan, days),
    )


def _spent(plan: Plan, axis: Scale) -> Iterator[Span]:
    """The days up to the promise: of steps and overhead, or what is least and likely."""
    start, latest = 0.0, plan.first_run.greatest
    if plan.measured:
        parts = [("steps", plan.days_of_steps.likely, 1.0), ("overhead", latest, 0.4)]
    else:
        parts = [("at least", plan.days.least, 1.0), ("likely", plan.days.likely, 0.62)]
    for word, end, opacity in [*parts, ("at most", latest, 0.32)]:
        title, hidden = f"{word}: to {format_days(end)}", start >= min(end, axis.high)
        span = Span(start, end, BLUE, title=title, name=word, opacity=opacity, hidden=hidden)
        yield replace(span, longest="overhead")
        start = end


def memory_bar(plan: Plan, before: Plan | None) -> Picture:
    """What a GPU holds, part after part, against the chip's memory and its reserve."""
    chip, end, parts = float(plan.card) / 1e9, 0.0, parts_of(plan)
    reserve = Span(chip - plan.reserve / 1e9, chip, title="the reserve", hatch=True)
    spans = [reserve]
    for word, size in parts.items():
        start, end = end, end + size / 1e9
        title = f"{word}: {units.gigabytes(size)}"
        spans.append(Span(start, end, _color(word), word, title))
    if before and before.memory.total != plan.memory.total:
        spans.append(Span(0, before.memory.total / 1e9, title="before", previous=True))
    passing = next((word for word in _PASSING.values() if word in parts), _PASSING["loss"])
    keyed = [_keyed(word, parts.get(word)) for word in (*_STATES, passing, "main gradients")]
    keyed.insert(len(_STATES), replace(reserve, name="reserve").swatch())
    return Bars(
        _axis(REACH * chip, "GB"),
        [Lane("", spans, cuts=True)],
        limits=[Limit(chip, f"the chip has {units.gigabytes(plan.card)}", width=3)],
        heading=f"memory of a GPU, at the {plan.phase}",
        verdict=memory_verdict(plan),
        extra=keyed,
    )


_STATES = "weights", "gradients", "main weights", "optimizer", "activations", "logits"
"""The parts that most plans have. The key has a place for each, so that nothing jumps."""


def _keyed(word: str, size: float | None) -> Swatch:
    """A part in the key, if it's there, with room for a size that's as long as any other."""
    label = f"{word} {units.gigabytes(size or 0)}"
    return patch(_color(word), label, hidden=size is None)._replace(longest=f"{word} 0.00 MB")


def parts_of(plan: Plan) -> dict[str, float]:
    """What a GPU holds at its fullest moment, by the words of the course; what passes last.

    At the loss that is logits, and the embedding and head that ZeRO 3 gathers; in a layer
    what is computed again, its gradients and what is gathered; at the update a copy.
    """
    memory = plan.memory
    parts = {name.replace("_", " "): x for name, x in memory.parts().items() if name != "transient"}
    parts |= {"logits": memory.logits, _PASSING[plan.phase]: memory.transient - memory.logits}
    return {word: x for word, x in parts.items() if x}


_PASSING = {"loss": "gathered", "last layer": "at work", "first layer": "at work", "update": "copy"}
"""What is there for a moment beside the logits."""


def _color(part: str) -> str:
    """The colour of a part of memory; what passes has that of what is computed again."""
    return COLORS["recomputed" if part in _PASSING.values() else part]


def memory_verdict(plan: Plan) -> str:
    """The verdict on whether a plan fits with its reserve, with its sign and its bytes."""
    if plan.fits:
        return f"✓ fits, {units.gigabytes(plan.free_memory)} free"
    if plan.tight:
        return f"○ tight, {units.gigabytes(max(plan.free_memory, 0))} free"
    return f"✗ {units.gigabytes(-plan.free_memory)} too much"


# --- a promise, before and after a step is measured


def promise(plan: Plan, unmeasured: Plan, others: Sequence[OtherRun], days: float) -> Picture:
    """What others took, what steps take, and what follows: all in days of one plan.

    `unmeasured` is the plan without its measured step, whose interval fades behind it.
    """
    axis, faint = _axis(75, "days"), 0.25 if plan.measured else 1.0
    seconds, steps = unmeasured.seconds_per_iteration, float(plan.iterations) / units.DAY
    step, ends = plan.seconds_per_iteration.likely, (seconds.least, seconds.greatest)
    whose = f"others: {' to '.join(units.digits(end, 2) for end in ends)} s"
    if plan.measured:
        whose = f"yours: {units.duration(step)}"
    of_others = Span(
        seconds.least * steps,
        seconds.greatest * steps,
        title="steps of others",
        opacity=0.6 * faint,
    )
    own = Point(step * steps, BLUE, title="your step", size=9, hidden=not plan.measured)
    lanes = [
        Lane(
            "",
            [*_dots(others, faint)],
            group="published runs, in days of yours",
            piled=True,
            height=76,
        ),
        Lane("", [of_others, own], group=f"steps alone, {whose}", height=24),
        Lane(
            "", [*_spent(plan, axis)], group=f"your promise: {format_days(plan.first_run.greatest)}"
        ),
    ]
    table = _from_steps_to_days(plan)
    in_words = "; ".join(f"{name} {', '.join(values)}" for name, values in table.items())
    last = others[-1]
    words = (
        f"{len(others)} published runs would have taken {format_days(others[0].days)} "
        f"({others[0].name}) to {format_days(last.days)} ({last.name}) for this plan. "
        f"{_time_in_words(plan, days)} Fast, likely and slow: {in_words}."
    )
    limit = Limit(days, f"you have {days:g} days", width=3)
    return Below(
        [Bars(axis, lanes, limits=[limit]), Table(("fast", "likely", "slow"), table)], words
    )


def _dots(others: Sequence[OtherRun], opacity: float) -> Iterator[Point]:
    """A dot for each run at its days; the two slowest have their names."""
    *_, slow, last = others
    names = {slow.name: slow.name, last.name: f"{last.name} →"}
    for run in others:
        kind = (BLUE, "a whole run") if run.whole else (RED, "less certain")
        title, label = f"{run.name}: {format_days(run.days)}", names.get(run.name, "")
        color, name = kind
        yield Point(run.days, color, label, title, name, size=4.5, opacity=opacity)


def _from_steps_to_days(plan: Plan) -> dict[str, list[str]]:
    """Where the days come from: steps that are fast, likely and slow, and the overhead."""
    spans: dict[str, tuple[Interval, Callable[[float], str]]] = {
        "one step": (plan.seconds_per_iteration, partial(units.duration, significant=2)),
        "all steps": (plan.days_of_steps, format_days),
        "× overhead": (Interval(*stops(plan.run)), "{:g}".format),
        "the run": (plan.days, format_days),
    }
    return {
        name: [unit(x) for x in (span.least, span.likely, span.greatest)]
        for name, (span, unit) in spans.items()
    }
