"""Drawings of chapter 03: days against GPUs, 8 or 6, a promise, more GPUs, slips that cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10
from typing import NamedTuple

from llmtrain_helpers import units
from llmtrain_helpers.drawings.common import (
    COLORS,
    GREY,
    Drawing,
    Style,
    circle,
    ghost,
    line,
    rect,
    text,
)
from llmtrain_helpers.duration import PASSES, UTILIZATIONS

WIDTH = 700

BLUE, GOOD, BAD = COLORS["weights"], COLORS["useful"], COLORS["lost"]
"""What is the learner's own; what is kept, and what is not."""

BOLD: Style = {"font_weight": "bold"}
FAINT: Style = {"stroke_width": 1, "opacity": 0.18}
DASHED: Style = {"stroke_dasharray": "5 4"}


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


def days_against_gpus(
    you: Mark,
    runs: Sequence[Mark],
    band: tuple[float, float] | None = None,
    before: Mark | None = None,
) -> Drawing:
    """A run's dot on its line of equal GPU-hours, among the published runs.

    `band` is the least and the greatest number of days of an interval at the dot; a
    dashed ring is where the dot stood `before`.
    """
    svg = "".join(
        line(GPUS.at(n), DAYS.end, GPUS.at(n), DAYS.begin, **FAINT)
        + text(GPUS.at(n), DAYS.begin + 22, f"{n:,}", 14, "end" if n > 10_000 else "middle")
        for n in (10, 100, 1000, 10_000, 100_000)
    )
    for days, name in SPANS.items():
        svg += line(GPUS.begin, DAYS.at(days), GPUS.end, DAYS.at(days), **FAINT)
        svg += text(GPUS.begin - 10, DAYS.at(days) + 5, name, 14, "end")
    if band:
        svg += _band(*(you.num_gpus * days for days in band))
    ends = _reach(you.num_gpus * you.days)
    svg += line(*ends, stroke=BLUE, stroke_width=3) if ends else ""

    x, y = GPUS.at(you.num_gpus), DAYS.at(you.days)
    dots: Style = {"stroke_dasharray": "2 5", "opacity": 0.7}
    svg += line(x, y, x, DAYS.begin, **dots) + line(GPUS.begin, y, x, y, **dots)
    moved = before if before and before[1:] != you[1:] else None
    if moved:
        ring: Style = {"stroke": "currentColor", "stroke_width": 1.5, "stroke_dasharray": "4 3"}
        place = GPUS.at(moved.num_gpus), DAYS.at(moved.days)
        svg += circle(*place, 10, "none", f"at the start: {_words(moved)}", **ring)
    svg += circle(x, y, 10, BLUE, _words(you), stroke="currentColor", stroke_width=2.5)
    for run in runs:
        dx, dy, anchor = PLACES[run.name]
        left, top = GPUS.at(run.num_gpus), DAYS.at(run.days)
        svg += circle(left, top, 5, GREY, _words(run), stroke="currentColor")
        svg += text(left + dx, top + dy, run.name, 14, anchor)
    svg += _flag(GPUS.begin - 96, y - 13, 92, units.duration(you.days * units.DAY))
    wide = 9 * len(units.plural(you.num_gpus, "GPU")) + 12
    svg += _flag(x - wide / 2, DAYS.begin + 4, wide, units.plural(you.num_gpus, "GPU"))
    svg += _key(bool(band), bool(moved))

    words = [f"Days against GPUs. {_words(you)}"]
    if band:
        low, high = (f"{units.digits(days, 2)} days" for days in band)
        words[0] += f", as published runs {low} to {high}"
    words += [f"at the start: {_words(moved)}"] if moved else []
    words += [_words(run) for run in runs]
    return Drawing(svg, WIDTH, 404 if band is None else 430, f"{'; '.join(words)}.")


def _reach(gpu_days: float) -> tuple[float, float, float, float] | None:
    """Both ends of a line of so many GPU-days, if it comes into the picture."""
    first = max(GPUS.least, gpu_days / DAYS.most)
    last = min(GPUS.most, gpu_days / DAYS.least)
    if first >= last:
        return None
    return (
        *(GPUS.at(first), DAYS.at(gpu_days / first)),
        *(GPUS.at(last), DAYS.at(gpu_days / last)),
    )


def _band(least: float, greatest: float) -> str:
    """All between two lines of GPU-days."""
    edges = {GPUS.least, GPUS.most}
    edges |= {x / days for x in (least, greatest) for days in (DAYS.least, DAYS.most)}
    gpus = sorted(n for n in edges if GPUS.least <= n <= GPUS.most)
    corners = [(n, greatest) for n in gpus] + [(n, least) for n in reversed(gpus)]
    points = " ".join(f"{GPUS.at(n):.1f},{DAYS.at(work / n):.1f}" for n, work in corners)
    return f'<polygon points="{points}" fill="{BLUE}" opacity="0.28"/>'


def _flag(x: float, y: float, width: float, words: str) -> str:
    """A value on an axis."""
    svg = rect(x, y, width, 26, BLUE, rx=5)
    return svg + text(x + width / 2, y + 18, words, 14.5, "middle", "white", **BOLD)


def _words(run: Mark) -> str:
    span = units.duration(run.days * units.DAY)
    return f"{run.name}: {span} on {units.plural(run.num_gpus, 'GPU')}"


def _key(band: bool, moved: bool) -> str:
    """What the marks mean, in a row or two under the picture."""
    y = 394
    svg = line(96, y - 5, 124, y - 5, stroke=BLUE, stroke_width=3)
    svg += text(132, y, "the same GPU-hours on other GPUs", 14)
    svg += circle(404, y - 5, 5, GREY, stroke="currentColor") + text(416, y, "published runs", 14)
    if moved:
        svg += circle(556, y - 5, 8, "none", stroke="currentColor", stroke_dasharray="4 3")
        svg += text(572, y, "at the start", 14)
    if band:
        svg += rect(96, y + 8, 28, 18, BLUE, opacity=0.28) + text(132, y + 22, _BAND, 14)
    return svg


_BAND = "at an MFU of {:.0f} to {:.0f} %, as 13 of 14 published runs".format(
    *(100 * u for u in UTILIZATIONS[::2])
)


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
    again: bool


def eight_or_six(work: Count, rate: Count, days: float, right: float, calendar: float) -> Drawing:
    """Work over rate, and the days that come out, beside those that the run took.

    `right` are the days where both count the same; the mark is at those of the `calendar`.
    """
    svg = _passes(14, "the work", work) + text(370, 92, "÷", 26, "middle", **BOLD)
    svg += _passes(106, "a second of all GPUs", rate)
    svg += text(370, 184, "=", 26, "middle", **BOLD)
    fits = abs(days / right - 1) < 1e-6
    ink = GOOD if fits else WRONG
    svg += text(168, 222, f"{units.digits(days)} days", 17, "end", **BOLD)
    svg += rect(180, 202, 480 * days / LONGEST, 30, ink, "days by this count", rx=3)
    x = 180 + 480 * calendar / LONGEST
    svg += line(x, 194, x, 240, stroke_width=2.5)
    told = f"it took {units.digits(calendar)} days, stops included"
    svg += text(x, 258, told, 15, "middle")
    verdict = "the counts agree" if fits else off(days / right)
    svg += text(168, 244, f"{'✓' if fits else '✗'} {verdict}", 15, "end", fill=ink, **BOLD)
    words = (
        f"The work, {work.size}, {_with(work)}, over {rate.size} of all GPUs, {_with(rate)}: "
        f"{units.digits(days)} days, {verdict}. On the calendar {told}."
    )
    return Drawing(svg, 690, 268, words)


def _with(count: Count) -> str:
    return f"{'with' if count.again else 'without'} what is computed again"


def _passes(y: float, what: str, count: Count) -> str:
    """The passes that are counted, side by side; dashed the one that is left out."""
    svg = text(168, y + 20, what, 15, "end") + text(168, y + 44, count.name, 17, "end", **BOLD)
    x = 180.0
    for name, flops in PASSES.items():
        wide = 48 * flops
        if name == "again" and not count.again:
            svg += ghost(x, y, wide - 2, 52, "not counted")
            svg += text(x + wide / 2, y + 32, "not counted", 14, "middle")
        else:
            svg += rect(x, y, wide - 2, 52, INKS[name], name)
            svg += text(x + wide / 2, y + 32, name, 15, "middle", "white")
        x += wide
    return svg + text(x + 10, y + 32, count.size, 15)


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
) -> Drawing:
    """A line at the share of the peak that a plan promises, and the runs that kept it.

    Those that were slower are late and show no dot: lower the promise and they come.
    `doubtful` are runs whose hours are of all stages of training, hollow and below the
    others; a dashed line is what was promised `before`.
    """
    order = [*sorted(shares, key=lambda name: -shares[name]), *doubtful]
    known = {**shares, **doubtful}
    bottom = 52 + 19 * len(order)
    svg = ""
    for tenth in range(7):
        x = _at(tenth / 10)
        svg += line(x, 44, x, bottom, **FAINT)
        svg += text(x, bottom + 20, f"{10 * tenth} %", 14, "middle")
    svg += text(684, bottom + 40, "of the peak, over the whole run", 14, "end")
    if before and before != promised:  # above and below the names alone
        svg += line(_at(before), 30, _at(before), 48, **DASHED)
        svg += line(_at(before), bottom - 4, _at(before), bottom + 6, **DASHED)
    listed = []
    for i, name in enumerate(order):
        x, y, share = _at(known[name]), 58 + 19 * i, known[name]
        svg += text(150, y + 5, f"{name}{'*' if name in doubtful else ''}", 14, "end")
        if share < promised:
            word = "not counted" if name in doubtful else "late"
            ink = "currentColor" if name in doubtful else BAD
            svg += text(_at(promised) - 10, y + 5, word, 14, "end", ink)
            listed.append(f"{name} {word}")
            continue
        fill = "none" if name in doubtful else GOOD
        svg += circle(x, y, 6, fill, name, stroke="currentColor", stroke_width=1.5)
        svg += text(x + 12, y + 5, units.percent(share), 14)
        listed.append(f"{name} {units.percent(share)}")
    x = _at(promised)
    svg += line(x, 34, x, bottom, stroke=BLUE, stroke_width=3)
    anchor = "end" if promised > 0.5 else "middle"
    svg += text(x, 24, f"promised: {units.share(promised)}", 16, anchor, **BOLD)
    svg += text(20, bottom + 40, "* hours of all stages, tokens of one", 14)
    words = f"Shares of the peak of whole runs, {units.share(promised)} promised: "
    return Drawing(svg, WIDTH, bottom + 50, f"{words}{', '.join(listed)}.")


def _at(share: float) -> float:
    """Where a share of the peak lies: the axis goes to 60 per cent."""
    return 168 + 510 * share / 0.6


# --- more GPUs on the same batch


def more_gpus(runs: Sequence[Mark], now: int, ideal: Sequence[float], share: float) -> Drawing:
    """Days of one model on more and more GPUs, beside what they would be at the first rate.

    `runs` are measured, in the order of their GPUs; those up to `now` are drawn. `ideal`
    are the days if every GPU kept the rate of the first run; `share` is the part of its
    peak that each reaches now.
    """
    svg = "".join(
        line(64, _down(days), 450, _down(days), **FAINT)
        + text(56, _down(days) + 5, f"{days}", 14, "end")
        for days in range(0, 101, 20)
    )
    svg += text(64, 24, "days", 15, **BOLD) + text(450, 318, "GPUs", 15, "end", **BOLD)
    svg += line(64, _down(0), 450, _down(0))
    svg += "".join(text(_across(n), 298, f"{n:,.0f}", 14, "middle") for _, n, _ in runs)
    first = runs[0]
    gpus = [first.num_gpus * (1 + k / 20) for k in range(66)]
    path = [(_across(n), _down(first.days * first.num_gpus / n)) for n in gpus]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
    svg += f'<polyline points="{points}" fill="none" stroke="{GREY}" stroke-width="2" '
    svg += 'stroke-dasharray="5 4"/>'
    for i, run in enumerate(runs[: now + 1]):
        x, y = _across(run.num_gpus), _down(run.days)
        if run.days > 1.1 * ideal[i]:
            svg += line(x, y, x, _down(ideal[i]), stroke=BAD, stroke_width=4)
        svg += circle(x, y, 9 if i == now else 6, BLUE, _words(run), stroke="currentColor")
        svg += text(x, y - 16, f"{run.days:.0f} days", 15, "middle", **BOLD)
    svg += text(490, 80, "each GPU computes", 15)
    svg += rect(490, 94, 190, 40, GOOD, "its peak", rx=2, opacity=0.15)
    svg += rect(490, 94, 190 * share, 40, GOOD, "computing", rx=2)
    svg += text(490, 160, f"at {units.share(share)} of its peak", 17, **BOLD)
    svg += line(490, 214, 526, 214, stroke=GREY, stroke_width=2, stroke_dasharray="5 4")
    svg += text(534, 219, "at the first rate", 14)
    run = runs[now]
    words = (
        f"{_words(run)}, each at {units.share(share)} of its peak; at the rate of the first "
        f"it would be {ideal[now]:.0f} days."
    )
    return Drawing(svg, WIDTH, 328, words)


def _across(num_gpus: float) -> float:
    return 64 + 386 * num_gpus / 1650


def _down(days: float) -> float:
    return 276 - 236 * days / 100


# --- a calculation in which slips cancel


class Line(NamedTuple):
    """A line of a calculation: what it says, in code and in words, and its value.

    Its ruler begins at `least` and has four decades; `known` is a value to hold it
    against, with its name.
    """

    what: str
    code: str
    said: str
    value: float
    least: float
    right: bool
    known: tuple[float, str] | None = None


def copied(lines: Sequence[Line]) -> Drawing:
    """A calculation line by line, each value on a ruler beside what is known of it."""
    svg, words = "", []
    for i, one in enumerate(lines):
        y = 14 + 94 * i
        ruler = Scale(one.least, 1e4 * one.least, 290, 670)
        svg += text(16, y + 20, one.what, 15) + text(16, y + 46, one.code, 16, **BOLD)
        svg += line(ruler.begin, y + 42, ruler.end, y + 42)
        for power in range(5):
            x = ruler.at(one.least * 10**power)
            svg += line(x, y + 37, x, y + 47)
        if one.known:
            x = ruler.at(one.known[0])
            svg += line(x, y + 30, x, y + 54, stroke_width=4)
        note = one.known[1] if one.known else "nothing says what it should be"
        place = ruler.at(one.known[0] if one.known else 1e2 * one.least)
        svg += text(place, y + 70, note, 14, "middle")
        x, ink = ruler.at(one.value), GOOD if one.right else BLUE
        svg += circle(x, y + 42, 9, ink, one.what, stroke="currentColor", stroke_width=2)
        svg += text(x, y + 22, f"{one.said}{' ✓' if one.right else ''}", 16, "middle", **BOLD)
        known = f" (known: {one.known[1]})" if one.known else ""
        words.append(f"{one.what}: {one.code}, {one.said}{known}")
    return Drawing(svg, WIDTH, 8 + 94 * len(lines), f"A calculation. {'; '.join(words)}.")
