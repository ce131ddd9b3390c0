"""Drawings of chapter 09: a failure, stops of many nodes, the days of a run, the valley."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from math import ceil, inf, log
from textwrap import wrap

from llmtrain_course.calendar.formulas import SimulatedRun, Stretch, simulate_run
from llmtrain_course.kit.drawing import (
    COLORS,
    Drawing,
    Style,
    circle,
    fits,
    ghost,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_course.plan.pictures import format_span
from llmtrain_helpers import units
from llmtrain_helpers.calendar import (
    EVALUATION,
    FAILURES_PER_NODE_DAY,
    OUTAGES,
    CalendarDays,
    best_checkpoint_interval,
    losses,
    mean_time_between_failures,
)
from llmtrain_helpers.units import DAY, HOUR

_LEFT, _RIGHT, _ACROSS = 24, 720, 744

NARROW = 380
"""Pixels across on a telephone."""

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


# --- one stop


def failure(lost: float, interval: float, restart: float, width: int = 628) -> Drawing:
    """Work between writes, a failure, the work since the last write, and the restart.

    All in minutes, on one scale; beside the writes stand the work and the restart.
    """
    left, scale, pieces = (12, 1.97, 1) if width == NARROW else (_LEFT, 2.4, 2)
    y, x = 82, float(left)
    svg = rect(left, 19, 9, 18, COLORS["saving"])
    svg += text(left + 18, 34, f"a write, every {interval:g} minutes of work", 15)
    for _ in range(pieces):
        svg += _piece(x, y, interval * scale, 46, "useful", "kept")
        svg += _piece(x + interval * scale, y, 9, 46, "saving", "")
        x += interval * scale + 9
    svg += _piece(x, y, lost * scale, 46, "lost", "lost")
    at = x + lost * scale
    svg += line(at, 66, at, y + 50, stroke_width=3)
    svg += text(at, 60, "✕ a GPU fails", 15, "middle", font_weight=700)
    svg += _piece(at, y, restart * scale, 46, "restarting", "restart")
    svg += line(x, y + 58, x + interval * scale, y + 58, stroke_dasharray="5 4")
    svg += text(x, y + 78, f"{interval:g} minutes to the next write", 14)
    words = (
        f"Work in pieces of {interval:g} minutes, a write after each. A GPU fails {lost:g} minutes "
        f"after the last write: {lost:g} minutes of work are lost, {restart:g} go to the restart."
    )
    return Drawing(svg, width, 172, words)


def _piece(x: float, y: float, wide: float, high: float, kind: str, label: str) -> str:
    """Some time of one kind, as high as its kind, with its word where there is room."""
    rise = high * _RISES.get(kind, 1)
    svg = rect(x, y + high - rise, max(wide - 1, 0.5), rise, COLORS[kind], kind)
    if label and fits(label, wide - 4, 14):
        inside = rise >= 18
        at = y + high - (rise / 2 - 5 if inside else rise + 5)
        svg += text(x + wide / 2, at, label, 14, "middle", "#FFFFFF" if inside else "currentColor")
    return svg


# --- many nodes


def stops_of_nodes(chance: int = 1, width: int = _ACROSS) -> Drawing:
    """The stops of each of eight nodes by lot, of the first half together, and of all.

    Any one of them stops a job that runs on all. Another `chance` draws other days.
    """
    nodes, days, M = 8, 300, mean_time_between_failures(8, FAILURES_PER_NODE_DAY.likely)
    left, x, right = (12, 90, 364) if width == NARROW else (_LEFT, _LEFT + 96, _RIGHT)
    fails = []  # the days on which each node fails
    for node in range(nodes):
        run = simulate_run(days * DAY, DAY, 0, M, 0, seed=chance + 100 * node)
        ends = [end / DAY for kind, _, end in run.stretches if kind == "lost"]
        fails.append([day for day in ends if day <= days])
    svg = text(left, 34, "each node alone", 15, font_weight=700)
    y = 46.0
    for node, when in enumerate(fails):
        svg += _timeline(x, right, y, f"node {node + 1}", when, days, 20)
        y += 24
    counts = {}
    for half, label in ((nodes // 2, "first half"), (nodes, "all nodes")):
        when = sorted(x for one in fails[:half] for x in one)
        gpus = half * 8
        counts[gpus] = len(when)
        svg += text(left, y + 36, f"a job on {gpus} GPUs: {len(when)} stops", 15)
        svg += _timeline(x, right, y + 44, label, when, days, 30, through=True)
        y += 78
    svg += text(x, y + 24, "0", 14, "middle")
    svg += text(right, y + 24, f"{days} days", 14, "end")
    label = ", ".join(f"a job on {n} GPUs stops {k} times" for n, k in counts.items())
    words = f"{nodes} nodes of 8 GPUs over {days} days, failures drawn by lot: {label}."
    return Drawing(svg, width, int(y + 36), words)


def _timeline(
    x: float,
    right: float,
    y: float,
    name: str,
    when: Iterable[float],
    days: float,
    high: float,
    through: bool = False,
) -> str:
    """A bar of time with a cross at each failure, or a bar that is cut there."""
    wide = right - x
    fill = COLORS["useful"] if through else "none"
    svg = text(x - 10, y + high / 2 + 5, name, 14, "end")
    if through:
        svg += rect(x, y, wide, high, fill)
    else:
        svg += line(x, y + high / 2, x + wide, y + high / 2, opacity=0.5)
    for day in when:
        at = x + wide * day / days
        if through:
            svg += rect(at - 2, y - 3, 4, high + 6, COLORS["lost"], f"day {day:.0f}")
        else:
            svg += text(at, y + high / 2 + 6, "✕", 16, "middle", font_weight=700)
    return svg


# --- the calendar at a glance


def calendar_at_a_glance(
    days: CalendarDays,
    deadline: float | None = None,
    name: str = "",
    promised: float | None = None,
    width: int = _ACROSS,
) -> Drawing:
    """Days on the calendar in the best, the likely and the worst case, part by part.

    `deadline` are the days that there are, `promised` those of page 08.
    """
    narrow = width == NARROW  # the words of a bar or a line then stand above or below it
    left, start, right = (12, 12, 368) if narrow else (_LEFT, _LEFT + 150, _RIGHT)
    top, pitch, foot = (80, 62, 242) if narrow else (60, 46, 198)
    scale = (right - start) / (1.04 * max(days.total.greatest, deadline or 0, promised or 0))
    svg = ""
    for row, caption in enumerate(wrap(_headline(days, name), 42 if narrow else 99)):
        svg += text(left, 34 - 14 * narrow + 20 * row, caption, 17 - 2 * narrow, font_weight=700)
    y = foot + 48
    if promised:  # behind the bars
        x = start + scale * promised
        svg += line(x, 50 + 10 * narrow, x, foot, stroke_width=2.5, stroke_dasharray="6 4")
        if narrow:
            svg += text(x, foot + 18, f"{promised:.0f}", 15, "middle")
            svg += text(left, y, f"dashed: page 08, {promised:.0f} days", 15)
            y += 24
        else:
            svg += text(x, 214, f"page 08: {promised:.0f}", 15, "middle")
    cases = {"best": "least", "likely": "likely", "worst": "greatest"}
    for row, (word, case) in enumerate(cases.items()):
        at = top + pitch * row
        label = f"{word}: {units.duration(getattr(days.total, case) * DAY, 2)}"
        svg += text(left, at - 6, label, 15) if narrow else text(left, at + 22, label, 15)
        parts = {key: getattr(part, case) for key, part in days.parts().items()}
        svg += _stacked(start, at, scale, parts, deadline or inf)
    if deadline:
        x = start + scale * deadline
        label = _verdict(days, deadline)
        svg += line(x, 50 + 10 * narrow, x, foot, stroke_width=3)
        if narrow:
            svg += text(x, foot + 18, f"{deadline:g}", 15, "middle", font_weight=700)
            svg += text(left, y, label, 15, font_weight=700)
            y += 24
        else:
            side, beside = ("end", x - 8) if x > 420 else ("start", x + 8)
            svg += text(beside, 214, label, 15, side, font_weight=700)
    svg += text(left, y + 10 * narrow, "likely, part by part", 14)
    usual = {key: part.likely for key, part in days.parts().items()}
    columns, pitch = (2, 172) if narrow else (3, 236)
    svg += _legend(usual, y + 28 + 10 * narrow, left=left, pitch=pitch, columns=columns)

    parts_in_words = "; ".join(
        f"{WORDS[key]} {_short(part.least)} to {_short(part.greatest)}, "
        f"likely {_short(part.likely)}"
        for key, part in days.parts().items()
    )
    least, likely, greatest = (units.digits(x, 2) for x in vars(days.stops).values())
    limit = f" {_verdict(days, deadline)[2:].capitalize()}." if deadline else ""
    words = (
        f"{_headline(days, name)}. {parts_in_words}. "
        f"Stops: {least} to {greatest}, likely {likely}.{limit}"
    )
    if promised:
        words += f" Page 08 promised {promised:.0f}."
    return Drawing(svg, width, y + 108 if narrow else 318, words)


def _verdict(days: CalendarDays, deadline: float) -> str:
    """Whether the days that there are will do, with a mark and in words."""
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


def _stacked(
    x: float, y: float, scale: float, parts: Mapping[str, float], deadline: float = inf
) -> str:
    """A bar's parts, with their words where they have room beside the deadline."""
    svg, at = "", x + scale * deadline
    for part, size in parts.items():
        word = WORDS[part]
        free = abs(x + size * scale / 2 - at) > 5 * len(word)
        label = word if size * scale > 60 and free else ""
        svg += _piece(x, y, size * scale, 34, word, label)
        if word == "outages":
            svg += hatched(x, y, max(size * scale - 1, 0), 34)
        x += size * scale
    return svg


def _legend(
    parts: Mapping[str, float],
    y: float,
    significant: int = 2,
    left: int = _LEFT,
    pitch: int = 236,
    columns: int = 0,
) -> str:
    """A mark, a word and the days of each part, in two rows or in so many columns."""
    svg = ""
    across = columns or -(-len(parts) // 2)
    for i, (part, size) in enumerate(parts.items()):
        x, row = left + pitch * (i % across), y + 26 * (i // across)
        high = 16 * _RISES.get(part, 1)
        svg += rect(x, row + 3 - high, 16, high, COLORS[WORDS[part]])
        svg += text(x + 24, row, f"{WORDS[part]}: {_short(size, significant)}", 15)
    return svg


def _short(days: float, significant: int = 2) -> str:
    """A time in two digits, or three; none where it is less than a second."""
    return "none" if days * DAY < 1 else units.duration(days * DAY, significant)


# --- a run, day by day

_ROWS, _HIGH = 10, 24


def strip_of_days(
    run: SimulatedRun, all_days: float | None = None, saving: float = 0.0, width: int = _ACROSS
) -> Drawing:
    """The days of a simulated run in rows: useful, lost, restarting.

    A row is a day where stops are many, else a week or more; at most ten rows are
    shown, of `all_days`. The writes, a share `saving` of the running time, are far too
    short to be seen each by itself: those up to a stop are drawn together, before it.
    """
    left, right = (96, 368) if width == NARROW else (_LEFT + 100, _RIGHT)
    total = run.total / DAY
    days = all_days or total
    span = row_of_days(total / max(run.stops, 1), days)
    rows = min(ceil(total / span - 1e-9), _ROWS)
    stretches = [*_gathered(run.stretches, saving)]
    svg = ""
    for row in range(rows):
        y, first = 16 + row * (_HIGH + 8), row * span + 1
        name = f"day {first}" if span == 1 else f"from day {first}"
        svg += text(left - 10, y + 17, name, 14, "end")
        svg += _days_of(stretches, row * span, span, y, left, right)
    y = 16 + rows * (_HIGH + 8)
    visible_days = min(rows * span, total)
    note = f"A row is {'a day' if span == 1 else f'{span} days'}. "
    if visible_days < days * 0.999:
        note += f"The first {visible_days:.0f} of {units.digits(days)} days are shown."
    else:
        note += f"All is shown: by lot it takes {units.digits(days)} days."
    lines = _lines(note, width)
    if saving:
        lines += _lines("Saving: the writes up to a stop are drawn together, before it.", width)
    for i, caption in enumerate(lines):
        svg += text(12 if width == NARROW else left, y + 14 + 20 * i, caption, 14)
    y += 20 * (len(lines) - 1)
    words = (
        f"A run drawn by lot, row by row: useful {units.percent(run.useful_share)} of the time, "
        f"{run.stops} stops, each of which loses some work and restarts. {note}"
    )
    return Drawing(svg, width, y + 30, words)


def _lines(words: str, width: int) -> list[str]:
    """Words in the lines that they take."""
    return wrap(words, int(width / 7.4))


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


def _days_of(
    stretches: Iterable[Stretch], start: float, span: float, y: float, left: float, right: float
) -> str:
    """A row: what lies in it, as a path of each colour, and lines between its days."""
    scale = (right - left) / (span * DAY)
    paths = {"useful": "", "saving": "", "lost": "", "restarting": ""}
    for kind, begin, end in stretches:
        a = max(begin - start * DAY, 0)
        b = min(end - start * DAY, span * DAY)
        if b > a:
            x, wide, rise = left + a * scale, (b - a) * scale, _HIGH * _RISES.get(kind, 1)
            paths[kind] += f"M{x:.1f} {y + _HIGH}h{wide:.2f}v{-rise:.1f}h{-wide:.2f}z"
    svg = "".join(
        f'<path d="{path}" fill="{COLORS[kind]}"/>' for kind, path in paths.items() if path
    )
    pieces = 7 if span == 7 else 4  # days of a week, or weeks of four
    for i in range(1, pieces):
        x = left + (right - left) / pieces * i
        svg += line(x, y, x, y + _HIGH, stroke="#FFFFFF", stroke_width=1, opacity=0.5)
    return svg


def parts_of_days(
    parts: Mapping[str, float], before: Mapping[str, float] | None = None, width: int = _ACROSS
) -> Drawing:
    """A bar for the whole run: its days, part by part; dashed what it was before.

    With three digits, as the sentence above it has them, and with what it leaves out.
    """
    total = sum(parts.values())
    was = sum(before.values()) if before else total
    left, pitch = (12, 172) if width == NARROW else (_LEFT, 236)
    scale = (width - 2 * left) / max(total, was)
    label = f"the whole run: {units.digits(total)} days on the calendar"
    svg = text(left, 26, label, 15)
    svg += _stacked(left, 36, scale, parts)
    if before and abs(was - total) > 1e-9:
        svg += ghost(left, 32, was * scale, 42, "at the start")
    svg += _legend(parts, 104, 3, left, pitch)
    y = 104 + 26 * (len(parts) > 3) + 26
    for caption in _lines(_LEFT_OUT, width):
        svg += text(left, y, caption, 14)
        y += 20
    listed = ", ".join(f"{WORDS[k]} {_short(v, 3)}" for k, v in parts.items())
    was_in_words = f" Dashed: {units.digits(was)} days." if before and was != total else ""
    words = f"{label.capitalize()}, of which {listed}.{was_in_words} {_LEFT_OUT}"
    return Drawing(svg, width, y - 4, words)


_MOST = OUTAGES.greatest + EVALUATION.greatest
_LEFT_OUT = (
    "Stops only: outages and evaluation come on top, up to "
    f"{units.digits(100 * _MOST, 2)} % of all days in published runs."
)


# --- a run on the days of a calendar

_WEEKS, _GRID = 6, 40
"""The rows of the calendar, and where it begins."""

_DASHED: Style = {"stroke": "currentColor", "stroke_width": 2.5, "stroke_dasharray": "4 3"}


def dated_run(
    whole: Sequence[Stretch], start: date, days: int, promised: int, width: int = 628
) -> Drawing:
    """A run on a calendar of weeks, from its first day; a cross is a failure.

    The stretches are those of `SimulatedRun.on_calendar`. The frame is around the last of
    the `days` that there are, a dashed one around the day that was `promised`.
    """
    svg, done = "", ceil(whole[-1].end / DAY - 1e-9)
    narrow = width == NARROW  # what happens on a day then stands below its bar
    left, wide, high = (11, 51, 62) if narrow else (20, 84, 46)
    for i in range(7):
        name = f"{start + timedelta(days=i):%A}"[:3]
        svg += text(left + i * wide + 4, 28, name, 14, font_weight=600)
    crosses = [end / DAY for kind, _, end in whole if kind == "lost"]
    for i in range(_WEEKS * 7):
        x, y, when = left + i % 7 * wide, _GRID + i // 7 * high, start + timedelta(days=i)
        label = f"{when.day} {when:%b}" if when.day == 1 or not i else f"{when.day}"
        failed, below = "✕" * sum(i <= x < i + 1 for x in crosses), y + 57 if narrow else y + 17
        if narrow:
            svg += text(x + 4, below, failed, 14, font_weight=700)
        else:
            label = f"{label} {failed}".rstrip()
        weight = 700 if i + 1 in (done, days) else 400
        svg += text(x + 4, y + 17, label, 14, font_weight=weight, opacity=1 if i < done else 0.6)
        if i + 1 == done:
            svg += text(x + wide - 8, below, "done", 14, "end", font_weight=700)
        for kind, begin, end in whole:
            a, b = max(begin / DAY - i, 0), min(end / DAY - i, 1)
            if b > a:
                kind = "useful" if kind == "running" else kind
                svg += _piece(
                    x + 2 + a * (wide - 5), y + 22, (b - a) * (wide - 5) + 1, 18, kind, ""
                )
                if kind == "outages":
                    svg += hatched(x + 2 + a * (wide - 5), y + 22, (b - a) * (wide - 5), 18)
        if i + 1 == days:
            frame: Style = {"stroke": "currentColor", "stroke_width": 3}
            svg += rect(x - 1, y, wide, high - 1, "none", "your last day", **frame)
        if i + 1 == promised:
            svg += rect(x - 1, y, wide, high - 1, "none", "promised", **_DASHED)
    y = _GRID + _WEEKS * high + 24
    key = {"useful": "work", "lost": "lost", "restarting": "restart", "outages": "outage"}
    for i, (kind, word) in enumerate({**key, "evaluation": "evaluation"}.items()):
        x = left + (122 * (i % 3) if narrow else 100 * i)
        y += 26 * (narrow and i == 3)
        rise = 16 * _RISES.get(kind, 1)
        svg += rect(x, y + 3 - rise, 16, rise, COLORS[kind])
        svg += hatched(x, y - 13, 16, 16) if kind == "outages" else ""
        svg += text(x + 22, y, word, 14)
    y += 26
    svg += text(left, y, "✕ a failure", 14)
    x = left + (122 if narrow else 100)
    svg += rect(x, y - 13, 18, 16, "none", stroke="currentColor", stroke_width=3)
    svg += text(x + 26, y, "your last day", 14)
    x, y = (left, y + 26) if narrow else (260, y)
    svg += rect(x, y - 13, 18, 16, "none", **_DASHED)
    svg += text(x + 26, y, f"the {promised} days of page 08", 14)
    last = start + timedelta(days=done - 1)
    words = (
        f"A calendar from {start:%A}, {start.day} {start:%B}: the run has "
        f"{units.plural(len(crosses), 'failure')} and is done on day {done}, {last:%A}, "
        f"{last.day} {last:%B}. Your last day is day {days}, and page 08 promised day {promised}."
    )
    return Drawing(svg, width, y + 16, words)


# --- how often to save


_FIRST, _LAST, _TOP = 60.0, 8 * HOUR, 0.8
"""The axes of the valley: seconds between writes, and the most that is lost."""


def valley(interval: float, write: float, mean: float, restart: float, width: int = 628) -> Drawing:
    """What is lost over the work between two writes, and a dot at one interval.

    Three layers on fixed axes: restarting, lost work, and saving; times in seconds.
    """
    narrow = width == NARROW
    left, right, margin = (54, 362, 12) if narrow else (74, 600, _LEFT)

    def across(seconds: float) -> float:
        return left + (right - left) * log(seconds / _FIRST) / log(_LAST / _FIRST)

    best = float(best_checkpoint_interval(write, mean))
    times = [_FIRST * (_LAST / _FIRST) ** (i / 80) for i in range(81)]
    costs = [losses(t, write, mean, restart) for t in times]
    low, svg = [0.0] * 81, ""
    for name in ("restarting", "lost", "saving"):
        up = [y + float(getattr(cost, name)) for y, cost in zip(low, costs, strict=True)]
        svg += _layer([across(t) for t in times], low, up, COLORS[name])
        low = up
    svg += line(across(_FIRST), _BASE, across(_LAST), _BASE)
    for share in (0, 0.2, 0.4, 0.6, 0.8):
        svg += text(left - 8, _down(share) + 5, f"{100 * share:.0f} %", 14, "end")
    for word, seconds in _TICKS.items():
        svg += line(across(seconds), _BASE, across(seconds), _BASE + 6)
        svg += text(across(seconds), _BASE + 22, word, 14, "middle")
    svg += line(across(best), _BASE, across(best), 64, stroke_dasharray="5 4")
    svg += text(across(best), 58, f"best: {units.duration(best)}", 15, "middle")
    total = float(losses(interval, write, mean, restart).total)
    you: Style = {"stroke": "currentColor", "stroke_width": 3, "data_moves": "minutes"}
    svg += circle(across(interval), _down(total), 9, "white", "you", **you)
    svg += text(margin, 30, f"lost, in % of the useful time, as far as {100 * _TOP:.0f} %", 14)
    svg += text(across(_FIRST), _BASE + 46, "work between two writes", 14)
    for i, name in enumerate(("restarting", "lost", "saving")):
        x = margin + (122 if narrow else 140) * i
        svg += rect(x, _BASE + 62, 16, 16, COLORS[name])
        svg += text(x + 24, _BASE + 75, name, 14)
    words = (
        f"Time lost over the work between two writes. The least is at {units.duration(best)}; "
        f"at {units.duration(interval)} it is {units.percent(total)} of the useful time."
    )
    return Drawing(svg, width, 356, words)


_BASE = 268
_TICKS = {"1 min": 60, "5 min": 300, "15 min": 900, "1 h": 3600, "2 h": 7200, "8 h": 28800}


def _down(share: float) -> float:
    """Where a share lies; what is off the axis lies at its end."""
    return _BASE - 190 * min(share, _TOP) / _TOP


def _layer(xs: list[float], low: list[float], up: list[float], fill: str) -> str:
    """The area between two curves."""
    there = [f"{x:.1f},{_down(y):.1f}" for x, y in zip(xs, up, strict=True)]
    back = [f"{x:.1f},{_down(y):.1f}" for x, y in zip(xs, low, strict=True)]
    edge = 'stroke="#FFFFFF" stroke-width="1.5"'
    return f'<polygon points="{" ".join(there + back[::-1])}" fill="{fill}" {edge}/>'
