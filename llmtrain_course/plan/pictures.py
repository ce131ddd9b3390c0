"""Drawings of chapter 08: days and bytes against what there is, a promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from llmtrain_course.kit.drawing import (
    COLORS,
    GREY,
    Drawing,
    circle,
    fits,
    ghost,
    hatched,
    line,
    rect,
    round_step,
    text,
)
from llmtrain_course.plan.formulas import in_time
from llmtrain_helpers import units
from llmtrain_helpers.plan.pace import stops
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.results import Interval
from research.utilizations import OtherRun

BLUE = COLORS["weights"]
"""What is the learner's own."""


# --- what all of them share: axes, keys, spans


class Layout(NamedTuple):
    """How wide a drawing is, and whether a verdict stands below its title."""

    width: int
    stacked: bool


WIDE, NARROW = Layout(640, False), Layout(360, True)
"""As on a page, and as on a telephone."""

REACH = 1.6
"""How far an axis goes, in multiples of what there is."""


class Axis(NamedTuple):
    """A scale from 0 to `most`, between two places of the drawing."""

    left: float
    right: float
    most: float

    def at(self, value: float) -> float:
        """The place of a value; of one beyond the scale, its end."""
        return self.left + (self.right - self.left) * min(float(value) / self.most, 1)

    def ticks(self, y: float, unit: str) -> str:
        """The line below the bars with its numbers, the unit at the last."""
        step = round_step(self.most, 8 if self.right > 400 else 5)
        svg, last = line(self.left, y, self.right, y), int(self.most / step)
        for i in range(last + 1):
            x, label = self.at(i * step), f"{i * step:,.0f}" if step >= 1 else f"{i * step:g}"
            svg += line(x, y, x, y + 6)
            label += f" {unit}" if i == last else ""
            half = 4 * len(label)
            svg += text(max(min(x, self.right + 14 - half), half), y + 21, label, 14, "middle")
        return svg


def _beyond(axis: Axis, value: float, y: float) -> str:
    """A break and an arrow at the end of a bar that is longer than the scale."""
    if value <= axis.most:
        return ""
    x = axis.right - 48
    svg = "".join(line(x + 8 * i, y + 14, x + 8 * i + 10, y - 26, stroke_width=3) for i in range(2))
    return svg + text(axis.right - 6, y, "→", 18, "end", "#FFFFFF", font_weight=700)


def color_key(parts: Iterable[tuple[str, float, str]], y: float, layout: Layout) -> str:
    """Colour, opacity and label of each part, in as many rows as it takes."""
    svg, x = "", 16.0
    for color, opacity, label in parts:
        wide = 20 + 7.84 * len(label)
        if x > 16 and x + wide > layout.width - 8:
            x, y = 16.0, y + 22
        svg += rect(x, y - 12, 14, 14, color, opacity=opacity)
        svg += text(x + 20, y, label, 14)
        x += wide + 14
    return svg


def _heading(title: str, verdict: str, y: float, layout: Layout) -> str:
    """A title, and what there is to say of it: beside it, or below."""
    svg = text(16, y, title, 16, font_weight=700)
    if layout.stacked:
        return svg + text(16, y + 22, verdict, 15)
    return svg + text(layout.width - 16, y, verdict, 16, "end", font_weight=700)


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


def answers(plan: Plan, days: float, before: Plan | None = None, layout: Layout = WIDE) -> Drawing:
    """The days of a run and the bytes on a GPU, each as a bar against what there is.

    The bar of days ends with what may be promised, `Plan.first_run`. Dashed outlines
    show the plan `before`.
    """
    far = 22 if layout.stacked else 0
    time = _time(plan, days, before, layout)
    lower = 132 + 2 * far
    body = time + _memory(plan, before, lower, layout)
    words = (
        f"{_time_in_words(plan, days)} Each GPU holds {units.gigabytes(plan.memory.total)} of "
        f"{units.gigabytes(plan.card)} at the {plan.phase}: "
        f"{', '.join(f'{word} {units.gigabytes(x)}' for word, x in parts_of(plan).items())}. "
        f"{_capitalized(memory_verdict(plan))}."
    )
    return Drawing(body, layout.width, _foot(lower, layout), words)


def _capitalized(verdict: str) -> str:
    """Begin a sentence with a verdict, without its sign."""
    return verdict[2].upper() + verdict[3:]


def _foot(lower: float, layout: Layout) -> int:
    """Where a drawing ends whose memory begins here: below the key, which takes three rows at most.

    It's the same for every plan, so that nothing jumps.
    """
    return int(lower + (264 if layout.stacked else 182))


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


def _time(plan: Plan, days: float, before: Plan | None, layout: Layout) -> str:
    """The days up to the promise as a bar, against those that there are."""
    axis = Axis(16, layout.width - 16, REACH * days)
    y = 72 if layout.stacked else 50
    promise = plan.first_run.greatest
    svg = _heading("days to promise", time_verdict(plan, days), 20, layout)
    bar, key = _spent(plan, axis, y, 30)
    svg += bar + _beyond(axis, promise, y + 21)
    if before and before.first_run.greatest != promise:
        was = axis.at(before.first_run.greatest)
        svg += ghost(axis.left, y - 4, was - axis.left, 38, "before")
    svg += _limit(axis, days, y, f"you have {days:,g} days")
    return svg + axis.ticks(y + 34, "days") + color_key(key, y + 74, layout)


Key = list[tuple[str, float, str]]


def _spent(plan: Plan, axis: Axis, y: float, high: float) -> tuple[str, Key]:
    """The bar up to the promise: of steps and overhead, or of what is least and likely."""
    latest = plan.first_run.greatest
    if plan.measured:
        parts = [(plan.days_of_steps.likely, 1.0, "steps"), (latest, 0.4, "overhead")]
    else:
        span = plan.days
        parts = [(span.least, 1.0, "at least"), (span.likely, 0.62, "likely")]
        parts.append((latest, 0.32, "at most"))
    parts = [part for i, part in enumerate(parts) if not i or parts[i - 1][0] < axis.most]
    svg, start = "", 0.0
    for end, opacity, word in parts:
        x = axis.at(start)
        svg += rect(
            x, y, axis.at(end) - x, high, BLUE, f"{word}: to {format_days(end)}", opacity=opacity
        )
        start = end
    return svg, [(BLUE, opacity, word) for _, opacity, word in parts]


def _limit(axis: Axis, value: float, y: float, label: str) -> str:
    """The line of what there is, with its label above."""
    x = axis.at(value)
    return line(x, y - 6, x, y + 34, stroke_width=3) + text(x, y - 10, label, 14, "middle")


def _memory(plan: Plan, before: Plan | None, top: float, layout: Layout) -> str:
    """What a GPU holds, part after part, against the chip's memory and its reserve."""
    chip, total = float(plan.card), float(plan.memory.total)
    axis = Axis(16, layout.width - 16, REACH * chip / 1e9)
    y = top + (72 if layout.stacked else 50)
    title = f"memory of a GPU, at the {plan.phase}"
    svg = _heading(title, memory_verdict(plan), top + 20, layout)
    edge, free = axis.at(chip / 1e9), axis.at((chip - plan.reserve) / 1e9)
    svg += rect(free, y, edge - free, 30, GREY, "the reserve", opacity=0.15)
    svg += hatched(free, y, edge - free, 30, 10)
    filled = 0.0
    for word, size in parts_of(plan).items():
        x, filled = axis.at(filled / 1e9), filled + size
        wide = axis.at(filled / 1e9) - x
        svg += rect(x, y, wide, 30, _color(word), f"{word}: {units.gigabytes(size)}")
        near = edge - x if x < edge < x + wide else wide  # of a part across the chip's line
        if fits(word, near - 10, 14):
            svg += text(x + near / 2, y + 20, word, 14, "middle", "#FFFFFF")
    svg += _beyond(axis, total / 1e9, y + 21)
    if before and before.memory.total != total:
        was = axis.at(before.memory.total / 1e9)
        svg += ghost(axis.left, y - 4, was - axis.left, 38, "before")
    svg += _limit(axis, chip / 1e9, y, f"the chip has {units.gigabytes(chip)}")
    svg += axis.ticks(y + 34, "GB")
    key: Key = [
        (_color(word), 1, f"{word} {units.gigabytes(x)}") for word, x in parts_of(plan).items()
    ]
    return svg + color_key(key, y + 74, layout)


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

_ROWS, _STACKED = ((58, 26), (126, 22), (182, 30)), ((110, 26), (192, 22), (262, 30))
"""Where the rows of the promise stand, and how high their bars are; with words above them."""

_OTHERWISE = COLORS["gradients"]
"""Runs whose hours hold more than the run, or were counted up from steps."""


def promise(
    plan: Plan, unmeasured: Plan, others: Sequence[OtherRun], days: float, layout: Layout = WIDE
) -> Drawing:
    """What others took, what steps take, and what follows: all in days of one plan.

    `unmeasured` is the plan without its measured step, whose interval fades behind it.
    """
    axis = Axis(16 if layout.stacked else 176, layout.width - 16, 75)
    rows, floor = (_STACKED, 294) if layout.stacked else (_ROWS, 214)
    faint = 0.25 if plan.measured else 1.0
    seconds = unmeasured.seconds_per_iteration
    ends = units.digits(seconds.least, 2), units.digits(seconds.greatest, 2)
    labels = [
        ("published runs", "in days of yours"),
        ("steps alone", f"others: {ends[0]} to {ends[1]} s"),
        ("your promise", format_days(plan.first_run.greatest)),
    ]
    if plan.measured:
        step = units.duration(plan.seconds_per_iteration.likely)
        labels[1] = ("steps alone", f"yours: {step}")
    svg = ""
    for i, ((y, _), (head, note)) in enumerate(zip(rows, labels, strict=True)):
        if layout.stacked:
            y -= 24 if i else 66  # above the dots, seven at most
        svg += text(16, y, head, 15, font_weight=700)
        note_at = (layout.width - 16, y) if layout.stacked else (16, y + 20)
        svg += text(*note_at, note, 14, "end" if layout.stacked else "start")
    svg += _dots(others, axis, rows[0][0] + 14, faint)

    steps = float(plan.iterations) / units.DAY
    y, high = rows[1][0] - 8, rows[1][1]
    x = axis.at(seconds.least * steps)
    wide = axis.at(seconds.greatest * steps) - x
    svg += rect(x, y, wide, high, GREY, "steps of others", opacity=0.6 * faint)
    if plan.measured:
        mark = axis.at(plan.seconds_per_iteration.likely * steps)
        svg += rect(mark - 3, y - 4, 6, high + 8, BLUE, "your step")
    bar, key = _spent(plan, axis, rows[2][0] - 10, rows[2][1])
    svg += bar
    for i, (color, label) in enumerate([(BLUE, "a whole run"), (_OTHERWISE, "less certain")]):
        x, y = (22 if layout.stacked else 400) + 118 * i, floor + (92 if layout.stacked else 48)
        svg += circle(x, y - 5, 5, color, opacity=faint) + text(x + 12, y, label, 14)
    late = axis.at(days)
    svg += line(late, 20, late, floor, stroke_width=3)
    svg += text(late, 14, f"you have {days:g} days", 14, "middle")
    svg += axis.ticks(floor, "days") + color_key(key, floor + 48, layout)

    top = floor + (128 if layout.stacked else 84)
    table = _from_steps_to_days(plan)
    svg += _table(table, top, layout)
    in_words = "; ".join(f"{name} {', '.join(values)}" for name, values in table.items())

    last = others[-1]
    words = (
        f"{len(others)} published runs would have taken {format_days(others[0].days)} "
        f"({others[0].name}) to {format_days(last.days)} ({last.name}) for this plan. "
        f"{_time_in_words(plan, days)} Fast, likely and slow: {in_words}."
    )
    return Drawing(svg, layout.width, top + _ROW * len(table) + 10, words)


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


_ROW = 25
"""The height of a table's row."""


def _table(rows: Mapping[str, Sequence[str]], top: float, layout: Layout) -> str:
    """A table of three columns, its head at the `top`, with a line above the result."""
    columns = (180, 262, 344) if layout.stacked else (290, 420, 550)
    svg = "".join(
        text(x, top, head, 14, "end")
        for x, head in zip(columns, ("fast", "likely", "slow"), strict=True)
    )
    for i, (name, values) in enumerate(rows.items(), 1):
        y = top + _ROW * i
        weight = 700 if i == len(rows) else 400
        svg += text(16, y, name, 15, font_weight=weight)
        for x, value in zip(columns, values, strict=True):
            svg += text(x, y, value, 15, "end", font_weight=weight)
    y = top + _ROW * len(rows) - 18
    return svg + line(16, y, columns[-1], y)


def _dots(others: Sequence[OtherRun], axis: Axis, y: float, opacity: float) -> str:
    """A dot for each run at its days, above one that is too near."""
    svg, places = "", list[tuple[float, int]]()
    for run in others:
        x = axis.at(run.days)
        floor = next(k for k in range(9) if all(abs(x - u) > 10 or k != j for u, j in places))
        places.append((x, floor))
        label = f"{run.name}: {format_days(run.days)}"
        fill = BLUE if run.whole else _OTHERWISE
        svg += circle(x, y - 10 * floor, 5, fill, label, opacity=opacity)
    last = others[-1]
    if last.days > axis.most:
        svg += text(axis.right + 8, y + 20, f"{last.name} →", 14, "end", opacity=max(opacity, 0.6))
    slow = others[-2]
    return svg + text(
        axis.at(slow.days), y - 12, slow.name, 14, "middle", opacity=max(opacity, 0.6)
    )
