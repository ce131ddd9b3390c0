"""Pictures of chapter 10: a failure, stops of many nodes, the days of a run, the valley."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from math import ceil

from llmtrain_course.calendar.formulas import SimulatedRun, Stretch
from llmtrain_course.kit.chart import Chart, Dot, Mark, Path, Rule, stacked
from llmtrain_course.kit.drawing import COLORS, Drawing, Style, rect, text
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Point, Span, Timeline
from llmtrain_course.kit.layout import BESIDE, PAD, PAGE, Picture, Swatch, key
from llmtrain_course.kit.scale import Scale
from llmtrain_course.plan.pictures import format_span
from llmtrain_helpers import units
from llmtrain_helpers.calendar import (
    EVALUATION,
    OUTAGES,
    CalendarDays,
    best_checkpoint_interval,
    losses,
)
from llmtrain_helpers.units import DAY, HOUR, MINUTE

WORDS = {
    "computing": "useful",
    "saving": "saving",
    "lost": "lost",
    "restarting": "restarting",
    "outages": "outages",
    "evaluation": "evaluation",
}
"""The word of each part of the calendar, which has its colour."""

_RISES = {"lost": 0.6, "restarting": 0.3}
"""How high a part stands where a run does not get on: so it differs without its colour."""


def _span(start: float, end: float, kind: str, label: str = "", name: str = "") -> Span:
    """Some time of one kind, in its colour and as high as its kind."""
    hatch, rise = kind == "outages", _RISES.get(kind, 1)
    return Span(start, end, COLORS[kind], label, kind, name, hatch=hatch, rise=rise)


def _end_to_end(parts: Mapping[str, float], names: Mapping[str, str]) -> Iterator[Span]:
    """Parts of the calendar one after the other; `names` are their entries in the key."""
    at = 0.0
    for part, days in parts.items():
        word = WORDS[part]
        yield _span(at, at + days, word, word, names.get(part, ""))
        at += days


# --- one stop


def one_stop(lost: float, interval: float, restart: float) -> Picture:
    """Work between writes, a failure, the work since the last write, and the restart.

    All in minutes, on one scale; the dashed strip reaches to the next write.
    """
    write = f"a write, every {interval:g} minutes of work"
    run: list[Span | Point] = [
        _span(-1.5 * interval, -interval, "useful", "kept"),
        _span(-interval, 0, "useful", "kept"),
        _span(0, lost, "lost", "lost"),
        _span(lost, lost + restart, "restarting", "restart"),
        *(Point(x, COLORS["saving"], shape="tick", name=write) for x in (-interval, 0)),
    ]
    ahead = Span(0, interval, previous=True, name=f"{interval:g} minutes to the next write")
    words = (
        f"Work in {interval:g}-minute pieces, with a write after each. A GPU fails {lost:g} "
        f"minutes after the last write, so {lost:g} minutes of work are lost, and the "
        f"restart needs another {restart:g}."
    )
    x = Scale(-1.5 * interval, 2 * interval, "minutes after the last write", "{:g}".format)
    x = x.with_ticks([interval * i / 2 for i in range(5)])
    lanes = [Lane("", run, height=46), Lane("", [ahead], height=8)]
    failure = Limit(lost, "✕ a GPU fails", width=3, bold=True, moves="lost")
    return Timeline(x, lanes, words, [failure], gap=6)


# --- the calendar at a glance


def calendar_at_a_glance(
    days: CalendarDays, deadline: float | None = None, name: str = "", promised: float | None = None
) -> Picture:
    """Days on the calendar in the best, the likely and the worst case, part by part.

    `deadline` are the days that there are, `promised` those of chapter 09.
    """
    limits = []
    if promised:
        limits.append(Limit(promised, f"chapter 09: {promised:.0f}", "6 4"))
    if deadline:
        limits.append(Limit(deadline, _verdict(days, deadline), width=3, bold=True))
    names = {part: f"{WORDS[part]}: {_short(x.likely)}" for part, x in days.parts().items()}
    lanes = []
    for word, case in {"best": "least", "likely": "likely", "worst": "greatest"}.items():
        parts = {part: getattr(x, case) for part, x in days.parts().items()}
        spans = [*_end_to_end(parts, names if word == "likely" else {})]
        total = units.duration(getattr(days.total, case) * DAY, 2)
        lanes.append(Lane(word, spans, total))
    parts_in_words = "; ".join(
        f"{WORDS[part]} {_short(x.least)} to {_short(x.greatest)}, likely {_short(x.likely)}"
        for part, x in days.parts().items()
    )
    least, likely, greatest = (units.digits(x, 2) for x in vars(days.stops).values())
    words = (
        f"{_headline(days, name)}. {parts_in_words}. Stops: {least} to {greatest}, likely {likely}."
    )
    if deadline:
        words += f" {_verdict(days, deadline)[2:].capitalize()}."
    if promised:
        words += f" Chapter 09 promised {promised:.0f}."
    x = Scale(0, 1.04 * max(days.total.greatest, deadline or 0, promised or 0), "days")
    note = "The parts show the days of the likely case."
    return Bars(x, lanes, words, limits, _headline(days, name), note=note)


def _verdict(days: CalendarDays, deadline: float) -> str:
    """Say whether the days are enough, with a mark and in words."""
    there = f"you have {deadline:g} days"
    if days.total.greatest <= deadline:
        return f"✓ in time: {there}"
    if days.total.likely <= deadline:
        return f"○ likely in time: {there}"
    if days.total.least <= deadline:
        return f"○ in time with luck: {there}"
    return f"✗ too late: {there}"


def _headline(days: CalendarDays, name: str) -> str:
    head = f"{name}: " if name else ""
    label = f"{head}{format_span(days.total)} on the calendar, "
    return f"{label}likely {units.duration(days.total.likely * DAY, 2)}"


def _short(days: float, significant: int = 2) -> str:
    """A time in two digits, or three; none where it is less than a second."""
    return "none" if days * DAY < 1 else units.duration(days * DAY, significant)


# --- a run, day by day

_ROWS, _ROW, _GAP = 10, 12, 4
"""Rows of a strip at most; how high each of ten is, and the gap below it."""

_AXES = {1: (24, "hours", 6), 7: (7, "days", 1)}
"""The axis of a row of so many days: how far it goes, in what, and the step of its numbers."""


def strip_of_days(run: SimulatedRun, all_days: float | None = None, saving: float = 0.0) -> Picture:
    """The days of a simulated run in rows: useful, lost, restarting.

    A row is a day where stops are many, else a week or more; at most ten rows are
    shown, of `all_days`. The writes, a share `saving` of the running time, are far too
    short to be seen each by itself: those up to a stop are drawn together, before it.
    """
    total = run.total / DAY
    days = all_days or total
    span = row_of_days(total / max(run.stops, 1), days)
    rows = min(ceil(total / span - 1e-9), _ROWS)
    reach, unit, step = _AXES.get(span, (span // 7, "weeks", span // 28))
    stretches = [*_gathered(run.stretches, saving)]
    height = _ROWS * (_ROW + _GAP) / rows - _GAP  # so that few rows are as high as many
    lanes = []
    for row in range(rows):
        spans = []
        for kind, start, end in stretches:
            first, last = (min(max(x / DAY / span - row, 0), 1) for x in (start, end))
            if last > first:
                spans.append(_span(first * reach, last * reach, kind))
        lanes.append(Lane(f"day {row * span + 1}", spans, height=height))
    visible_days = min(rows * span, total)
    note = f"Each row is {'a day' if span == 1 else f'{span} days'}, marked in {unit}. "
    if visible_days < days * 0.999:
        note += f"Only the first {visible_days:.0f} of {units.digits(days)} days are shown."
    else:
        note += f"This run lasts {units.digits(days)} days."
    words = (
        f"A random run, row by row: useful {units.percent(run.useful_share)} of the time, "
        f"{run.stops} stops, each of which loses some work and restarts. {note}"
    )
    x = Scale(0, reach, ticks=range(0, reach + 1, step))
    return Timeline(x, lanes, words, gap=_GAP, note=note)


def _gathered(stretches: Iterable[Stretch], saving: float) -> Iterator[Stretch]:
    """Running time as work first and all of its writes after it; the rest as it is."""
    for kind, start, end in stretches:
        if kind == "running":
            saves = end - saving * (end - start)
            yield Stretch("useful", start, saves)
            yield Stretch("saving", saves, end)
        else:
            yield Stretch(kind, start, end)


def row_of_days(days_between: float, days: float) -> int:
    """How many days make a row: one, a week, four weeks or more.

    >>> row_of_days(0.1, 50), row_of_days(2, 50), row_of_days(25, 200)
    (1, 7, 28)
    """
    wanted = 1 if days_between < 0.7 or days <= 2 else 7
    spans = [span for span in (1, 7, 28, 112, 448) if span >= wanted]
    return next((s for s in spans if days / s <= _ROWS or s == 1), 448)


_MOST = OUTAGES.greatest + EVALUATION.greatest
LEFT_OUT = (
    f"Outages and evaluation add to that, up to {units.digits(100 * _MOST, 2)}% of all "
    f"days in published runs."
)


def parts_of_days(parts: Mapping[str, float], before: Mapping[str, float] | None = None) -> Picture:
    """A bar for the whole run: its days, part by part; dashed what it was before.

    With three digits, as the sentence above it has them.
    """
    total = sum(parts.values())
    was = sum(before.values()) if before else total
    differs = abs(was - total) > 1e-9
    names = {part: f"{WORDS[part]} {_short(days, 3)}" for part, days in parts.items()}
    longest = "restarting 10.0 minutes"
    spans = [replace(span, longest=longest) for span in _end_to_end(parts, names)]
    spans.append(Span(0, was, title="at the start", previous=True, hidden=not differs))
    label = f"the whole run: {units.digits(total)} days on the calendar, without outages"
    listed = ", ".join(f"{WORDS[part]} {_short(days, 3)}" for part, days in parts.items())
    was_in_words = f" Dashed: {units.digits(was)} days." if before and was != total else ""
    words = f"{label.capitalize()}, of which {listed}.{was_in_words} {LEFT_OUT}"
    return Bars(Scale(0, max(total, was)), [Lane("", spans)], words, heading=label, axis=False)


# --- a run on the days of a calendar

_WEEKS, _GRID = 6, 40
"""The rows of the calendar, and where it begins."""

_DASHED: Style = {"stroke": "currentColor", "stroke_width": 2.5, "stroke_dasharray": "4 3"}
_FRAME: Style = {"stroke": "currentColor", "stroke_width": 3}


def dated_run(
    whole: Sequence[Stretch], start: date, days: int, promised: int, width: int = PAGE
) -> Drawing:
    """A run on a calendar of weeks, from its first day; a cross is a failure.

    The stretches are those of `SimulatedRun.on_calendar`. The frame is around the last of
    the `days` that there are, a dashed one around the day that was `promised`.
    """
    svg, done = "", ceil(whole[-1].end / DAY - 1e-9)
    narrow = width < BESIDE  # what happens on a day then stands below its bar
    wide, high = (width - 2 * PAD) / 7, 62 if narrow else 46
    for i in range(7):
        name = f"{start + timedelta(days=i):%A}"[:3]
        svg += text(PAD + i * wide + 4, 28, name, 14, font_weight=600)
    crosses = [end / DAY for kind, _, end in whole if kind == "lost"]
    for i in range(_WEEKS * 7):
        x, y, when = PAD + i % 7 * wide, _GRID + i // 7 * high, start + timedelta(days=i)
        label = f"{when.day} {when:%b}" if when.day == 1 or not i else f"{when.day}"
        failed, below = "✕" * sum(i <= x < i + 1 for x in crosses), y + 57 if narrow else y + 17
        if narrow:
            svg += text(x + 4, below, failed, 14, font_weight=700)
        else:
            label = f"{label} {failed}".rstrip()
        weight = 700 if i + 1 in (done, days) else 400
        svg += text(x + 4, y + 17, label, 14, font_weight=weight, opacity=1 if i < done else 0.6)
        if i + 1 == done:
            svg += text(x + wide - 5, below, "done", 14, "end", font_weight=700)
        for kind, begin, end in whole:
            a, b = max(begin / DAY - i, 0), min(end / DAY - i, 1)
            if b > a:
                span = _span(a, b, "useful" if kind == "running" else kind)
                left, right = (x + 2 + part * (wide - 5) for part in (a, b))
                svg += span.draw(left, right, y + 22, 18)
        if i + 1 == days:
            svg += rect(x - 1, y, wide, high - 1, "none", "your last day", **_FRAME)
        if i + 1 == promised:
            svg += rect(x - 1, y, wide, high - 1, "none", "promised", **_DASHED)
    names = {"useful": "work", "restarting": "restart", "outages": "outage"}
    parts = ("useful", "lost", "restarting", "outages", "evaluation")
    swatches = [
        *(_span(0, 0, part, name=names.get(part, part)).swatch() for part in parts),
        Swatch(lambda x, y: text(x + 9, y + 12, "✕", 14, "middle", font_weight=700), "a failure"),
        Swatch(lambda x, y: rect(x + 2, y, 14, 14, **_FRAME), "your last day"),
        Swatch(
            lambda x, y: rect(x + 2, y, 14, 14, **_DASHED),
            f"day {promised}, to promise (chapter 09)",
        ),
    ]
    drawn, bottom = key(swatches, PAD, _GRID + _WEEKS * high + 10, width - 2 * PAD)
    last = start + timedelta(days=done - 1)
    words = (
        f"A calendar from {start:%A}, {start.day} {start:%B}: after "
        f"{units.plural(len(crosses), 'failure')}, the run finishes on day {done}, {last:%A}, "
        f"{last.day} {last:%B}. Your last day is day {days}, and chapter 09 promised "
        f"day {promised}."
    )
    return Drawing(svg + drawn, width, ceil(bottom + PAD), words)


# --- how often to save

_TOP = 0.8
"""The most that the valley shows of what is lost."""

_TICKS = {60.0: "1 min", 240.0: "4 min", 900.0: "15 min", 3600.0: "1 h", 14400.0: "4 h"}


def valley(interval: float, write: float, mean: float, restart: float) -> Picture:
    """What is lost over the work between two writes, and a dot at one interval.

    Three layers on fixed axes: restarting, lost work, and saving; times in seconds.
    """
    x = Scale(MINUTE, 8 * HOUR, "work between two writes", ticks=_TICKS, log=True)
    label = f"extra time, in % of the useful time, up to {100 * _TOP:.0f}%"
    y = Scale(0, _TOP, label, lambda share: f"{100 * share:.0f}%", (0, 0.2, 0.4, 0.6, 0.8))
    best = float(best_checkpoint_interval(write, mean))
    times = [x.low * (x.high / x.low) ** (i / 80) for i in range(81)]
    costs = [losses(t, write, mean, restart) for t in times]
    layers = {
        name: [float(getattr(cost, name)) for cost in costs]
        for name in ("restarting", "lost", "saving")
    }
    total = float(losses(interval, write, mean, restart).total)
    areas = stacked(times, layers, COLORS)
    edges = [[*zip(times, area.upper, strict=True)] for area in areas[:-1]]
    marks: list[Mark] = [
        *areas,
        *(Path(edge, "white", 1.5) for edge in edges),
        Rule(best, label=f"best: {units.duration(best)}", dash="5 4"),
        Dot(interval, min(total, _TOP), "white", 9, title="you", moves="minutes"),
    ]
    words = (
        f"Time lost over the work between two writes. The minimum is at "
        f"{units.duration(best)}, and at {units.duration(interval)} the loss is "
        f"{units.percent(total)} of the useful time."
    )
    return Chart(x, y, marks, words)
