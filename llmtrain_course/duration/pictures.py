"""Drawings of chapter 03: days against GPUs, 8 or 6, a promise, more GPUs, slips that cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10
from typing import NamedTuple

from llmtrain_course.kit.drawing import (
    CARD,
    COLORS,
    GREY,
    Drawing,
    Style,
    circle,
    fits,
    ghost,
    line,
    rect,
    text,
)
from llmtrain_helpers import units
from llmtrain_helpers.duration import PASSES, UTILIZATIONS

WIDTH, NARROW = 700, 360
"""As on a page, and as on a telephone."""

BLUE, GOOD, BAD = COLORS["weights"], COLORS["useful"], COLORS["lost"]
"""What is the learner's own; what is kept, and what is not."""

BOLD: Style = {"font_weight": "bold"}
FAINT: Style = {"stroke_width": 1, "opacity": 0.18}
DASHED: Style = {"stroke_dasharray": "5 4"}
HALO: Style = {
    "stroke": CARD,
    "stroke_width": 5,
    "stroke_linejoin": "round",
    "paint_order": "stroke",
}
"""A rim of the page's colour around a name, so that no line strikes through it."""


class Scale(NamedTuple):
    """A logarithmic axis: two values, and the pixels where they lie."""

    least: float
    most: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Where a value lies; what is off the axis lies at its end."""
        part = log10(value / self.least) / log10(self.most / self.least)
        return self.begin + (self.end - self.begin) * min(max(part, 0.0), 1.0)


# --- days against GPUs


class Mark(NamedTuple):
    """A run in the picture: its name, GPUs and days."""

    name: str
    num_gpus: float
    days: float


GPUS = Scale(3, 100_000, 96, 684)
DAYS = Scale(0.1, 4000, 344, 16)
"""The axes of days against GPUs, the same for every run."""

SPANS = {1: "1 day", 7: "1 week", 30.44: "1 month", 365.25: "1 year", 3652.5: "10 years"}
"""The lines across the picture."""

PLACES = {
    "TinyLlama 1.1B": (10, 5, "start"),
    "Pythia 70M": (10, 5, "start"),
    "Pythia 410M": (-10, 5, "end"),
    "Pythia 1.4B": (10, 10, "start"),
    "Pythia 12B": (-10, 2, "end"),
    "MPT-7B": (0, -12, "middle"),
    "BLOOM-176B": (-10, -11, "end"),
    "LLaMA-1 65B": (-34, 26, "start"),
    "DeepSeek-V3": (2, -10, "start"),
    "PaLM 540B": (8, 12, "start"),
    "Llama 3.1 405B": (-20, -12, "start"),
}
"""Where a published run's name stands beside its dot: across, down, and its anchor."""


class Plane(NamedTuple):
    """Where days against GPUs are drawn: width, axes, names of runs, and lines of the key."""

    width: int
    gpus: Scale
    days: Scale
    names: Mapping[str, tuple[int, int, str]]
    key: Sequence[tuple[int, int]]


PAGE = Plane(WIDTH, GPUS, DAYS, PLACES, ((96, 394), (404, 394), (556, 394), (96, 416)))
TELEPHONE = Plane(
    370,
    Scale(3, 100_000, 95, 356),
    Scale(0.1, 4000, 404, 16),
    PLACES
    | {
        "TinyLlama 1.1B": (-34, -14, "start"),
        "Pythia 410M": (-8, 22, "start"),
        "MPT-7B": (10, 8, "start"),
        "BLOOM-176B": (2, -14, "start"),
        "LLaMA-1 65B": (10, 6, "start"),
        "DeepSeek-V3": (-4, 20, "end"),
        "PaLM 540B": (4, 17, "start"),
        "Llama 3.1 405B": (58, -14, "end"),
    },
    ((16, 454), (22, 476), (160, 476), (16, 498)),
)


def days_against_gpus(
    you: Mark,
    runs: Sequence[Mark],
    band: tuple[float, float] | None = None,
    before: Mark | None = None,
    plane: Plane = PAGE,
) -> Drawing:
    """A run's dot on its line of equal GPU-hours, among the published runs.

    `band` is the least and the greatest number of days of an interval at the dot; a
    dashed ring is where the dot stood `before`.
    """
    gpus, days = plane.gpus, plane.days
    x, y = gpus.at(you.num_gpus), days.at(you.days)
    wide = 9 * len(units.plural(you.num_gpus, "GPU")) + 12
    own_middle = min(x, plane.width - wide / 2)  # of your own number
    svg = ""
    for n in (10, 100, 1000, 10_000, 100_000):
        at = gpus.at(n)
        svg += line(at, days.end, at, days.begin, **FAINT)
        if n > 10_000 and plane is TELEPHONE:
            continue
        middle = at - 26 if n > 10_000 else at
        if abs(middle - own_middle) > wide / 2 + 4.5 * len(
            f"{n:,}"
        ):  # else your own number is there
            svg += text(middle, days.begin + 22, f"{n:,}", 14, "middle")
    for span, name in SPANS.items():
        svg += line(gpus.begin, days.at(span), gpus.end, days.at(span), **FAINT)
        if abs(days.at(span) - y) > 20:
            svg += text(gpus.begin - 10, days.at(span) + 5, name, 14, "end")
    if band:
        svg += _band(plane, *(you.num_gpus * end for end in band))
    ends = _reach(plane, you.num_gpus * you.days)
    svg += line(*ends, stroke=BLUE, stroke_width=3) if ends else ""

    dots: Style = {"stroke_dasharray": "2 5", "opacity": 0.7}
    svg += line(x, y, x, days.begin, **dots) + line(gpus.begin, y, x, y, **dots)
    for run in runs:
        dx, dy, anchor = plane.names[run.name]
        place = gpus.at(run.num_gpus) + dx, days.at(run.days) + dy
        svg += text(*place, run.name, 14, anchor, **HALO)
    moved = before if before and before[1:] != you[1:] else None
    if moved:
        ring: Style = {"stroke": "currentColor", "stroke_width": 1.5, "stroke_dasharray": "4 3"}
        place = gpus.at(moved.num_gpus), days.at(moved.days)
        svg += circle(*place, 10, "none", f"at the start: {_words(moved)}", **ring)
    yours: Style = {"stroke": "currentColor", "stroke_width": 2.5, "data_moves": "num_gpus"}
    svg += circle(x, y, 10, BLUE, _words(you), **yours)
    for run in runs:
        place = gpus.at(run.num_gpus), days.at(run.days)
        svg += circle(*place, 5, GREY, _words(run), stroke="currentColor")
    left = max(gpus.begin - 96, 0)
    svg += _flag(left, y - 13, gpus.begin - 4 - left, units.duration(you.days * units.DAY))
    svg += _flag(own_middle - wide / 2, days.begin + 4, wide, units.plural(you.num_gpus, "GPU"))
    svg += _key(plane, bool(band), bool(moved))

    words = [f"Days against GPUs. {_words(you)}"]
    if band:
        low, high = (f"{units.digits(end, 2)} days" for end in band)
        words[0] += f", as published runs {low} to {high}"
    words += [f"at the start: {_words(moved)}"] if moved else []
    words += [_words(run) for run in runs]
    height = plane.key[-1][1] + (-12 if band is None else 14 * len(_band_caption(plane)))
    return Drawing(svg, plane.width, height, f"{'; '.join(words)}.")


def _reach(plane: Plane, gpu_days: float) -> tuple[float, float, float, float] | None:
    """Both ends of a line of so many GPU-days, if it comes into the picture."""
    gpus, days = plane.gpus, plane.days
    first = max(gpus.least, gpu_days / days.most)
    last = min(gpus.most, gpu_days / days.least)
    if first >= last:
        return None
    return (
        *(gpus.at(first), days.at(gpu_days / first)),
        *(gpus.at(last), days.at(gpu_days / last)),
    )


def _band(plane: Plane, least: float, greatest: float) -> str:
    """All between two lines of GPU-days."""
    gpus, days = plane.gpus, plane.days
    edges = {gpus.least, gpus.most}
    edges |= {x / end for x in (least, greatest) for end in (days.least, days.most)}
    within = sorted(n for n in edges if gpus.least <= n <= gpus.most)
    corners = [(n, greatest) for n in within] + [(n, least) for n in reversed(within)]
    points = " ".join(f"{gpus.at(n):.1f},{days.at(work / n):.1f}" for n, work in corners)
    return f'<polygon points="{points}" fill="{BLUE}" opacity="0.28"/>'


def _flag(x: float, y: float, width: float, words: str) -> str:
    """A value on an axis."""
    svg = rect(x, y, width, 26, BLUE, rx=5)
    return svg + text(x + width / 2, y + 18, words, 14.5, "middle", "white", **BOLD)


def _words(run: Mark) -> str:
    span = units.duration(run.days * units.DAY)
    return f"{run.name}: {span} on {units.plural(run.num_gpus, 'GPU')}"


def _key(plane: Plane, band: bool, moved: bool) -> str:
    """What the marks mean, in a few rows under the picture."""
    (x, y), dot, ring, area = plane.key
    svg = line(x, y - 5, x + 28, y - 5, stroke=BLUE, stroke_width=3)
    svg += text(x + 36, y, "the same GPU-hours on other GPUs", 14)
    x, y = dot
    svg += circle(x, y - 5, 5, GREY, stroke="currentColor") + text(x + 12, y, "published runs", 14)
    if moved:
        x, y = ring
        svg += circle(x, y - 5, 8, "none", stroke="currentColor", stroke_dasharray="4 3")
        svg += text(x + 16, y, "at the start", 14)
    if band:
        x, y = area
        svg += rect(x, y - 14, 28, 18, BLUE, opacity=0.28)
        for i, caption in enumerate(_band_caption(plane)):
            svg += text(x + 36, y + 18 * i, caption, 14)
    return svg


_BAND = "at an MFU of {:.0f} to {:.0f} %, as 13 of 14 published runs".format(
    *(100 * u for u in UTILIZATIONS[::2])
)


def _band_caption(plane: Plane) -> list[str]:
    return [_BAND] if fits(_BAND, plane.width - 132, 14) else _BAND.split(", ")


# --- 8 or 6

INKS = {
    "forward": COLORS["weights"],
    "backward": COLORS["gradients"],
    "again": COLORS["recomputed"],
}
"""The colours of the passes: forward meets the weights, backward makes gradients."""

WRONG = COLORS["expert"]
"""Days that do not follow, in no colour of a pass."""

LONGEST = 160
"""Days at which the axis below two counts ends."""


class Count(NamedTuple):
    """What is counted: its name, its size in words, and whether the repeated pass is in it."""

    name: str
    size: str
    repeats: bool


def eight_or_six(
    work: Count, rate: Count, days: float, right: float, calendar: float, narrow: bool = False
) -> Drawing:
    """Work over rate, and the days that come out, beside those that the run took.

    `right` are the days where both count the same; the mark is at those of the `calendar`.
    """
    width, left, y, longest = (NARROW, 16, 250, 328) if narrow else (690, 180, 202, 480)
    middle, over, equal = (180, 108, 218) if narrow else (370, 92, 184)
    svg = _passes(30 if narrow else 14, "the work", work, narrow)
    svg += text(middle, over, "÷", 26, "middle", **BOLD)
    svg += _passes(140 if narrow else 106, "a second of all GPUs", rate, narrow)
    svg += text(middle, equal, "=", 26, "middle", **BOLD)
    agree = abs(days / right - 1) < 1e-6
    ink = GOOD if agree else WRONG
    verdict = "✓ the counts agree" if agree else f"✗ {off(days / right)}"
    days_at, verdict_at = (
        ((16, y - 10), (344, y - 10)) if narrow else ((168, y + 20), (168, y + 42))
    )
    side = "start" if narrow else "end"
    svg += text(*days_at, f"{units.digits(days)} days", 17, side, **BOLD)
    svg += rect(left, y, longest * days / LONGEST, 30, ink, "days by this count", rx=3)
    x = left + longest * calendar / LONGEST
    svg += line(x, y - 8, x, y + 38, stroke_width=2.5)
    note = f"it took {units.digits(calendar)} days, overhead included"
    svg += text(min(x, width - 130), y + 56, note, 15, "middle")
    svg += text(*verdict_at, verdict, 15, "end", fill=ink, **BOLD)
    words = (
        f"The work, {work.size}, {_with(work)}, over {rate.size} of all GPUs, {_with(rate)}: "
        f"{units.digits(days)} days, {verdict[2:]}. On the calendar {note}."
    )
    return Drawing(svg, width, y + 66, words)


def _with(count: Count) -> str:
    return f"{'with' if count.repeats else 'without'} what is computed again"


def _passes(y: float, what: str, count: Count, narrow: bool) -> str:
    """The passes that are counted, side by side; dashed the one that is left out."""
    x, each = (16.0, 41) if narrow else (180.0, 48)
    if narrow:
        svg = text(x, y - 10, what, 15)
        svg += text(344, y - 10, f"{count.name}: {count.size}", 15, "end", **BOLD)
    else:
        svg = text(168, y + 20, what, 15, "end") + text(168, y + 44, count.name, 17, "end", **BOLD)
    for name, flops in PASSES.items():
        wide = each * flops
        if name == "again" and not count.repeats:
            svg += ghost(x, y, wide - 2, 52, "not counted")
            svg += text(x + wide / 2, y + 32, "not counted", 13 if narrow else 14, "middle")
        else:
            svg += rect(x, y, wide - 2, 52, INKS[name], name)
            svg += text(x + wide / 2, y + 32, name, 15, "middle", "white")
        x += wide
    return svg if narrow else svg + text(x + 10, y + 32, count.size, 15)


def off(ratio: float) -> str:
    """How far days are off, in words.

    >>> off(4 / 3), off(0.75)
    ('33 % too long', '25 % too short')
    """
    percent = f"{abs(ratio - 1):.0%}".replace("%", " %")
    return f"{percent} too {'long' if ratio > 1 else 'short'}"


# --- a promise, and the runs that would have broken it


def promise(
    shares: Mapping[str, float],
    promised: float,
    doubtful: Mapping[str, float],
    before: float | None = None,
    narrow: bool = False,
) -> Drawing:
    """A line at the share of the peak that a plan promises, and the runs that kept it.

    Those that were slower are late and show no dot: lower the promise and they come.
    `doubtful` are runs whose hours are of all stages of training, always shown, hollow and
    below the others; a dashed line is what was promised `before`.
    """
    order = [*sorted(shares, key=lambda name: -shares[name]), *doubtful]
    runs = {**shares, **doubtful}
    width, left, right = (NARROW, 124, 334) if narrow else (WIDTH, 168, 678)
    bottom = 52 + 19 * len(order)
    svg = ""

    def at(share: float) -> float:  # the axis goes to 60 per cent
        return left + (right - left) * share / 0.6

    for tenth in range(0, 7, 2 if narrow else 1):
        x = at(tenth / 10)
        svg += line(x, 44, x, bottom, **FAINT)
        svg += text(x, bottom + 20, f"{10 * tenth} %", 14, "middle")
    svg += text(width - 16, bottom + 40, "of the peak, over the whole run", 14, "end")
    if before and before != promised:  # above and below the names alone
        svg += line(at(before), 30, at(before), 48, **DASHED)
        svg += line(at(before), bottom - 4, at(before), bottom + 6, **DASHED)
    listed = []
    for i, name in enumerate(order):
        x, y, share = at(runs[name]), 58 + 19 * i, runs[name]
        svg += text(
            left - 18 + 8 * narrow, y + 5, f"{name}{'*' if name in doubtful else ''}", 14, "end"
        )
        if share < promised and name not in doubtful:
            svg += text(at(promised) - 10, y + 5, "late", 14, "end", BAD)
            listed.append(f"{name} late")
            continue
        fill = "none" if name in doubtful else GOOD
        svg += circle(x, y, 6, fill, name, stroke="currentColor", stroke_width=1.5)
        svg += text(x + 12, y + 5, units.percent(share), 14, **HALO)
        mark = ", not counted" if name in doubtful else ""
        listed.append(f"{name} {units.percent(share)}{mark}")
    x = at(promised)
    svg = line(x, 34, x, bottom, stroke=BLUE, stroke_width=3) + svg
    anchor = "end" if promised > (0.4 if narrow else 0.5) else "middle"
    svg += text(x, 24, f"promised: {units.share(promised)}", 16, anchor, **BOLD)
    foot = bottom + 60 if narrow else bottom + 40
    svg += text(
        width - 16 if narrow else 20,
        foot,
        "* not counted: hours of all stages",
        14,
        "end" if narrow else "start",
    )
    words = f"Shares of the peak of whole runs, {units.share(promised)} promised: "
    return Drawing(svg, width, foot + 10, f"{words}{', '.join(listed)}.")


# --- more GPUs on the same batch


def more_gpus(
    runs: Sequence[Mark], now: int, ideal: Sequence[float], share: float, narrow: bool = False
) -> Drawing:
    """Days of one model on more and more GPUs, beside what they would be at the first rate.

    `runs` are measured, in the order of their GPUs; those up to `now` are drawn. `ideal`
    are the days if every GPU kept the rate of the first run; `share` is the part of its
    peak that each reaches now.
    """
    left, right = (44, 344) if narrow else (64, 450)

    def across(num_gpus: float) -> float:
        return left + (right - left) * num_gpus / 1650

    svg = "".join(
        line(left, _down(days), right, _down(days), **FAINT)
        + text(left - 8, _down(days) + 5, f"{days}", 14, "end")
        for days in range(0, 101, 20)
    )
    svg += text(left, 24, "days", 15, **BOLD) + text(right, 318, "GPUs", 15, "end", **BOLD)
    svg += line(left, _down(0), right, _down(0))
    svg += "".join(text(across(n), 298, f"{n:,.0f}", 14, "middle") for _, n, _ in runs)
    first = runs[0]
    gpus = [first.num_gpus * (1 + k / 20) for k in range(66)]
    path = [(across(n), _down(first.days * first.num_gpus / n)) for n in gpus]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
    svg += f'<polyline points="{points}" fill="none" stroke="{GREY}" stroke-width="2" '
    svg += 'stroke-dasharray="5 4"/>'
    for i, run in enumerate(runs[: now + 1]):
        x, y = across(run.num_gpus), _down(run.days)
        if run.days > 1.1 * ideal[i]:
            svg += line(x, y, x, _down(ideal[i]), stroke=BAD, stroke_width=4)
        style: Style = {"stroke": "currentColor"}
        if i == now:
            style["data_moves"] = "num_gpus"
        svg += circle(x, y, 9 if i == now else 6, BLUE, _words(run), **style)
        svg += text(x, y - 16, f"{run.days:.0f} days", 15, "middle", **BOLD)
    x, y = (16, 352) if narrow else (490, 80)
    svg += text(x, y, "each GPU computes", 15)
    svg += rect(x, y + 14, 190, 40, GOOD, "its peak", rx=2, opacity=0.15)
    svg += rect(x, y + 14, 190 * share, 40, GOOD, "computing", rx=2)
    svg += text(x, y + 80, f"at {units.share(share)} of its peak", 17, **BOLD)
    x, y = (170, 24) if narrow else (490, 219)
    svg += line(x, y - 5, x + 36, y - 5, stroke=GREY, stroke_width=2, stroke_dasharray="5 4")
    svg += text(x + 44, y, "at the first rate", 14)
    run = runs[now]
    words = (
        f"{_words(run)}, each at {units.share(share)} of its peak; at the rate of the first "
        f"it would be {ideal[now]:.0f} days."
    )
    return Drawing(svg, *((NARROW, 446) if narrow else (WIDTH, 328)), words)


def _down(days: float) -> float:
    return 276 - 236 * days / 100


# --- a calculation in which slips cancel


class Line(NamedTuple):
    """A line of a calculation: what it says, in code and in words, and its value.

    Its ruler begins at `least` and has four decades, `ticks` names its begin, its
    middle and its end; `reference` is a value to compare it with, and its name.
    """

    what: str
    code: str
    result: str
    value: float
    least: float
    right: bool
    reference: tuple[float, str] | None = None
    ticks: Sequence[str] = ("1", "100", "10,000")


def copied(lines: Sequence[Line], narrow: bool = False) -> Drawing:
    """Draw a calculation line by line, each value on a ruler next to its reference."""
    width, begin, high = (NARROW, 24, 158) if narrow else (WIDTH, 290, 106)
    svg, words = "", []
    for i, one in enumerate(lines):
        y = 14.0 + high * i
        ruler = Scale(one.least, 1e4 * one.least, begin, width - 30)
        svg += text(16, y + 20, one.what, 15) + text(16, y + 46, one.code, 16, **BOLD)
        y += high - 106
        svg += line(ruler.begin, y + 42, ruler.end, y + 42)
        for power in range(5):
            x = ruler.at(one.least * 10**power)
            svg += line(x, y + 37, x, y + 47)
            if power % 2 == 0:
                anchor = "end" if power == 4 else "start" if narrow and not power else "middle"
                x += 24 if power == 4 else -8 if anchor == "start" else 0
                svg += text(x, y + 64, one.ticks[power // 2], 14, anchor, opacity=0.8)
        if one.reference:
            x = ruler.at(one.reference[0])
            svg += line(x, y + 30, x, y + 52, stroke_width=4)
        note = "attention's scores left out, as 8TP does"
        if not one.right:
            note = "nothing says what it should be"
        note = one.reference[1] if one.reference else note
        place = ruler.at(one.reference[0] if one.reference else 1e2 * one.least)
        svg += text(place, y + 84, note, 14, "middle")
        x, ink = ruler.at(one.value), GOOD if one.right else BLUE
        svg += circle(x, y + 42, 9, ink, one.what, stroke="currentColor", stroke_width=2)
        result = f"{one.result}{' ✓' if one.right else ''}"
        half = 5 * len(result)
        svg += text(min(max(x, half), width - half), y + 22, result, 16, "middle", **BOLD)
        reference = f" (known: {one.reference[1]})" if one.reference else ""
        words.append(f"{one.what}: {one.code}, {one.result}{reference}")
    return Drawing(svg, width, 8 + high * len(lines), f"A calculation. {'; '.join(words)}.")
