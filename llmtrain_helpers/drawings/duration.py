"""Drawings of chapter 03: work through GPUs into days, 8 or 6, days against GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import NamedTuple

from llmtrain_helpers import units
from llmtrain_helpers.drawings.common import (
    COLORS,
    GREY,
    Drawing,
    Style,
    arrow,
    circle,
    ghost,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_helpers.duration import PASSES, UTILIZATIONS, flops_per_parameter, training_seconds

INKS = {
    "forward": COLORS["weights"],
    "backward": COLORS["gradients"],
    "again": COLORS["recomputed"],
}
"""The colours of the passes: forward meets the weights, backward makes gradients."""

BLUE = COLORS["weights"]
"""What is the learner's own."""


# --- the formula as a machine


def work_to_days(
    tokens: float, parameters: float, num_gpus: int, flops_per_gpu: float, recompute: str
) -> Drawing:
    """8TP or 6TP of work flows into n GPUs of X FLOP/s each, and comes out as days."""
    passes = {k: x for k, x in PASSES.items() if k != "again" or recompute == "full"}
    each, rate = flops_per_parameter(recompute), num_gpus * flops_per_gpu
    run = (tokens, parameters, num_gpus, flops_per_gpu)
    days = float(training_seconds(*run, recompute)) / units.DAY
    work = [
        f"{each} × {units.count(tokens)} × {units.count(parameters)}",
        f"= {units.flops(each * tokens * parameters)}",
    ]
    rates = [
        f"{units.exact(num_gpus)} × {units.flops_per_second(flops_per_gpu)}",
        f"= {units.flops_per_second(rate)}",
    ]

    # the work: a bar of a pass's colours, as long as its FLOPs, and the sum below
    svg, x = text(24, 36, "work", 18, font_weight=700), 24.0
    for name, flops in passes.items():
        svg += rect(x, 78, 30 * flops - 2, 48, INKS[name], f"{name}: {flops}TP")
        svg += text(x + 15 * flops - 1, 107, name, 14, "middle", "white")
        svg += text(x + 15 * flops - 1, 70, f"{flops}", 15, "middle")
        x += 30 * flops
    svg += text(24, 152, f"{each} · T · P", 17, font_weight=700)
    svg += text(24, 182, work[0], 15) + text(24, 208, work[1], 15)

    # a block of GPUs, some thirty at most, over their rate
    svg += text(310, 36, "GPUs", 18, font_weight=700)
    a_square = ceil(num_gpus / 32)
    for i in range(ceil(num_gpus / a_square)):
        svg += rect(310 + 22 * (i % 8), 52 + 20 * (i // 8), 18, 16, GREY, rx=3)
    svg += text(484, 36, f"■ = {units.plural(a_square, 'GPU')}", 14, "end")
    svg += text(310, 152, "n · X", 17, font_weight=700)
    svg += text(310, 182, rates[0], 15) + text(310, 208, rates[1], 15)

    svg += _calendar(days)
    svg += arrow(270, 102, 300, 102) + arrow(498, 102, 538, 102)
    words = f"The work, {' '.join(work)}, flows into {units.plural(num_gpus, 'GPU')}, "
    words += f"{' '.join(rates)}, and comes out as {units.digits(days)} days."
    return Drawing(svg, 740, 250, words)


def _calendar(days: float) -> str:
    """A square for each day (or hour, week, year), seven in a row."""
    size, name = _square(days)
    full, svg = days / size, text(550, 36, "time", 18, font_weight=700)
    high = 12 if full > 49 else 15
    for i in range(min(ceil(full), 63)):
        x, y = 550 + 24 * (i % 7), 52 + high * (i // 7)
        svg += rect(x, y, 20 * min(1, full - i), high - 3, COLORS["optimizer"])
    svg += text(718, 36, f"■ = {name}", 14, "end")
    if full > 63:
        svg += hatched(550, 52, 164, 105)
    svg += text(550, 182, "t = work / (n · X)", 17, font_weight=700)
    return svg + text(550, 218, f"= {units.duration(days * units.DAY)}", 20)


def _square(days: float) -> tuple[float, str]:
    """The unit of which a calendar of nine rows has room for all, and its name."""
    sizes = {"an hour": 1 / 24, "a day": 1, "a week": 7, "a year": 365.25}
    fit = [(size, name) for name, size in sizes.items() if days / size <= 63]
    return fit[0] if fit else (365.25, "a year")


# --- 8 or 6


def eight_or_six(days: Mapping[tuple[str, str], float]) -> Drawing:
    """Days by what the work counts and what the rate counts: two fit, two do not.

    Keys are two settings of recomputation, that of the work first: ("full", "none").
    """
    svg = text(24, 44, "the rate X counts", 15) + text(262, 30, "the work counts", 15)
    words = []
    for column, work in enumerate(("full", "none")):
        x, formula = 262 + 240 * column, f"{flops_per_parameter(work)}TP"
        svg += _bar(x, 44, work, formula)
        for row, rate in enumerate(("full", "none")):
            shown, right = days[work, rate], days[rate, rate]
            label, note = f"{units.digits(shown)} days", ""
            if abs(shown / right - 1) >= 1e-6:
                off = f"{abs(shown / right - 1):.0%}".replace("%", " %")
                note = f"{off} too {'long' if shown > right else 'short'}"
            svg += _cell(x, 102 + 90 * row, label, note, work == rate)
            words.append(f"{formula} over {_CALLED[rate]}: {label}{note and ', ' + note}")
    for row, rate in enumerate(("full", "none")):
        svg += _bar(24, 112 + 90 * row, rate, _CALLED[rate])
    return Drawing(svg, 740, 286, f"Days by two counts. {'; '.join(words)}.")


_CALLED = {"full": "HFU", "none": "MFU"}
"""What a share of the peak is called that counts recomputation, and that does not."""


def _bar(x: float, y: float, counted: str, name: str) -> str:
    """The passes that are counted, as a bar, and what this is called."""
    svg = text(x + 182, y + 26, name, 17, font_weight=700)
    for part, flops in PASSES.items():
        if part == "again" and counted != "full":
            svg += ghost(x, y, 22 * flops - 2, 40, "not counted")
        else:
            word = "fwd" if part == "forward" else part
            svg += rect(x, y, 22 * flops - 2, 40, INKS[part], part)
            svg += text(x + 11 * flops - 1, y + 26, word, 14, "middle", "white")
        x += 22 * flops
    return svg


def _cell(x: float, y: float, days: str, note: str, right: bool) -> str:
    """Days with a mark: a solid frame where the counts fit, a dashed one elsewhere."""
    if right:
        svg = rect(x, y, 222, 66, rx=8, stroke=COLORS["optimizer"], stroke_width=3)
    else:
        svg = ghost(x, y, 222, 66)
    svg += text(x + 16, y + 29, f"{'✓' if right else '✗'} {days}", 19, font_weight=700)
    return svg + text(x + 16, y + 53, note or "the counts agree", 15)


# --- the formula beside the exact count, over what a paper prints


def before_and_after(before: Sequence[float], after: Sequence[float]) -> Drawing:
    """Estimated days over the paper's days: by 8TP/(nX), and with attention counted."""
    svg = text(_near(1), 30, "the paper's days", 15, "middle", font_weight=700)
    svg += line(_near(1), 42, _near(1), 214, stroke=GREY, stroke_width=2)
    for x, y in zip(before, after, strict=True):
        svg += line(_near(x), 82, _near(y), 168, opacity=0.3)
    rows = [("by 8TP / (nX)", before, 82, "recomputed")]
    rows += [("attention counted too", after, 168, "weights")]
    label = []
    for name, ratios, height, ink in rows:
        off = _off(ratios)
        label.append(f"{name}, {off}")
        svg += text(24, height - 3, name, 15, font_weight=700)
        svg += text(24, height + 18, off, 15)
        for x in ratios:
            svg += circle(_near(x), height, 6, COLORS[ink], f"{x:.3f}", stroke="currentColor")
    svg += line(250, 214, 716, 214)
    for x in (0.97, 0.98, 0.99, 1, 1.01):
        off = f"{100 * abs(x - 1):.0f} % " + ("short" if x < 1 else "over")
        svg += text(_near(x), 236, "the same" if x == 1 else off, 14, "middle")
    words = f"{len(before)} estimates over the paper's days. {'; '.join(label)}."
    return Drawing(svg, 744, 254, words)


def _near(ratio: float) -> float:
    """Where a ratio stands: the axis goes from 0.966 to 1.018."""
    return 250 + 466 * (ratio - 0.966) / (1.018 - 0.966)


def _off(ratios: Sequence[float]) -> str:
    """How far the least and the greatest are off."""
    ends = (min(ratios), max(ratios))
    least, greatest = (units.digits(100 * abs(x - 1), 2) for x in ends)
    if max(ratios) < 1:
        return f"{greatest} to {least} % short"
    return f"{least} % short to {greatest} % over"


# --- the shares of the peak that whole runs reached


def shares_of_runs(shares: Mapping[str, float], span: tuple[float, float, float]) -> Drawing:
    """A dot for each run at its share of the peak; the interval as a band behind.

    `shares` are the runs' shares by name, `span` the interval's low, likely and high.
    """
    order = sorted(shares, key=lambda name: shares[name])
    bottom = 66 + 22 * len(order)
    low, likely, high = (_at(share) for share in span)
    svg = ""
    for name, share in zip(("slowest", "likely", "fastest"), span, strict=True):
        svg += text(_at(share), 30, name, 15, "middle", font_weight=600)
        svg += text(_at(share), 49, _of_peak(share), 14, "middle")
    svg += rect(low, 56, high - low, bottom - 56, BLUE, opacity=0.16)
    svg += line(likely, 56, likely, bottom, stroke=BLUE, stroke_width=3)
    svg += line(206, bottom, 706, bottom)
    for part in range(0, 7):
        x = _at(part / 10)
        svg += line(x, bottom, x, bottom + 5)
        svg += text(x, bottom + 22, f"{10 * part} %", 14, "middle")
    svg += text(706, bottom + 42, "of the peak (MFU)", 14, "end")
    for i, name in enumerate(order):
        x, y = _at(shares[name]), 72 + 22 * i
        svg += text(146, y + 5, name, 14, "end") + line(206, y, x, y, opacity=0.25)
        svg += text(196, y + 5, _of_peak(shares[name]), 14, "end", font_weight=600)
        svg += circle(x, y, 6, BLUE, name, stroke="currentColor")
    ends = f"from {_of_peak(span[0])} to {_of_peak(span[2])}, likely {_of_peak(span[1])}"
    runs = ", ".join(f"{name} {_of_peak(shares[name])}" for name in order)
    words = f"Shares of the peak, the interval {ends}: {runs}."
    return Drawing(svg, 744, bottom + 50, words)


def _of_peak(share: float) -> str:
    return f"{units.digits(100 * share, 2)} %"


def _at(share: float) -> float:
    """Where a share of the peak stands: the axis goes to 60 per cent."""
    return 206 + 500 * share / 0.6


# --- days against GPUs


class Mark(NamedTuple):
    """A run in the picture: its name, GPUs and days."""

    name: str
    num_gpus: float
    days: float


@dataclass(frozen=True)
class Plane:
    """Logarithmic axes: GPUs to the right, days upwards, in powers of ten."""

    x0: float
    x1: float
    y0: float
    y1: float
    left, right, top, bottom = 100, 702, 18, 374

    def x(self, num_gpus: float) -> float:
        """The place of a number of GPUs on the horizontal axis."""
        share = (log10(num_gpus) - self.x0) / (self.x1 - self.x0)
        return self.left + share * (self.right - self.left)

    def y(self, days: float) -> float:
        """The place of a number of days on the vertical axis."""
        share = (log10(days) - self.y0) / (self.y1 - self.y0)
        return self.bottom - share * (self.bottom - self.top)

    def place(self, run: Mark) -> tuple[float, float]:
        """The place of a run in the picture, across and down."""
        return self.x(run.num_gpus), self.y(run.days)

    def holds(self, days: float) -> bool:
        """Whether so many days lie between the least and the most."""
        return self.y0 - 1e-9 <= log10(days) <= self.y1 + 1e-9

    def along(self, gpu_days: float) -> list[float]:
        """Where a line of so many GPU-days enters and leaves the picture, in GPUs."""
        edges = [10**self.x0, 10**self.x1]
        edges += [gpu_days / 10**self.y0, gpu_days / 10**self.y1]
        return sorted(min(max(n, edges[0]), edges[1]) for n in edges)

    def clamped(self, num_gpus: float, gpu_days: float) -> tuple[float, float]:
        """A line's place at so many GPUs, kept inside the picture."""
        days = min(max(gpu_days / num_gpus, 10**self.y0), 10**self.y1)
        return self.x(num_gpus), self.y(days)


def around(marks: Iterable[Mark]) -> Plane:
    """Axes with room for the runs; the same ones for all that lies in the usual."""
    n = [m.num_gpus for m in marks]
    t = [m.days for m in marks]
    x = (min(log10(3), floor(log10(min(n)))), max(5, ceil(log10(max(n)))))
    y = (min(log10(0.3), floor(log10(min(t)))), max(log10(3000), ceil(log10(max(t)))))
    return Plane(*map(float, (*x, *y)))


def days_against_gpus(
    you: Mark, band: tuple[float, float], runs: Sequence[Mark], before: Mark | None = None
) -> Drawing:
    """The learner's dot on its curve, the published interval, and the published runs.

    `band` is the least and the greatest number of days of the interval at the dot; a
    dashed ring is where the dot stood `before`.
    """
    moved = before if before and before[1:] != you[1:] else None
    plane = around([you, *runs, *([moved] if moved else [])])
    n, (x, y) = you.num_gpus, plane.place(you)
    svg = _axes(plane)

    # all between the interval's two lines of GPU-days, and the line of this run
    least, greatest = n * band[0], n * band[1]
    gpus = sorted({*plane.along(least), *plane.along(greatest)})
    edge = [plane.clamped(n, greatest) for n in gpus]
    edge += [plane.clamped(n, least) for n in reversed(gpus)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
    svg += f'<polygon points="{points}" fill="{BLUE}" opacity="0.28"/>'
    ends = _across(plane, n * you.days)
    svg += line(*ends, stroke=BLUE, stroke_width=3) if ends else ""

    dots: Style = {"stroke_dasharray": "2 5", "opacity": 0.7}
    svg += line(x, y, x, plane.bottom, **dots) + line(plane.left, y, x, y, **dots)
    if moved:
        start, dashes = plane.place(moved), "4 3"
        ring: Style = {"stroke": "currentColor", "stroke_width": 1.5, "stroke_dasharray": dashes}
        svg += line(*start, x, y, stroke_dasharray=dashes, opacity=0.7)
        svg += circle(*start, 9, "none", f"at the start: {_words(moved)}", **ring)
    svg += circle(x, y, 9, BLUE, _words(you), stroke="currentColor", stroke_width=2.5)
    for run in runs:  # smaller: seen on the own dot
        svg += circle(*plane.place(run), 5, GREY, _words(run), stroke="currentColor")
    svg += _labels(plane, you, runs, band, moved) + _key(bool(moved))

    low, high = (f"{units.digits(days, 2)} days" for days in band)
    words = [f"Days against GPUs. {_words(you)}, as published runs {low} to {high}"]
    words += [f"at the start: {_words(moved)}"] if moved else []
    words += [_words(run) for run in runs]
    return Drawing(svg, 744, 482, f"{'; '.join(words)}.")


DAYS = {
    1 / 24: "1 hour",
    1: "1 day",
    7: "1 week",
    30.44: "1 month",
    365.25: "1 year",
    3652.5: "10 years",
    36525: "100 years",
    365250: "1,000 years",
}
"""The lines across the picture."""


def _axes(plane: Plane) -> str:
    """Faint lines at powers of ten of GPUs and at spans of time, with their names."""
    faint: Style = {"stroke_width": 1, "opacity": 0.18}
    svg = text(plane.right, plane.bottom + 42, "GPUs", 15, "end", font_weight=700)
    for power in range(ceil(plane.x0), floor(plane.x1) + 1):
        x = plane.x(10**power)
        svg += line(x, plane.top, x, plane.bottom, **faint)
        svg += text(x, plane.bottom + 20, f"{10**power:,}", 14, "middle")
    for days, name in DAYS.items():
        if plane.y0 <= log10(days) <= plane.y1:
            y = plane.y(days)
            svg += line(plane.left, y, plane.right, y, **faint)
            svg += text(plane.left - 10, y + 5, name, 14, "end")
    return svg


def _across(plane: Plane, gpu_days: float) -> Box | None:
    """Both ends of a line of so many GPU-days, if it comes into the picture."""
    ends = [n for n in plane.along(gpu_days) if plane.holds(gpu_days / n)]
    if len(ends) < 2:
        return None
    (x1, y1), (x2, y2) = (plane.clamped(n, gpu_days) for n in (ends[0], ends[-1]))
    return x1, y1, x2, y2


def _words(run: Mark) -> str:
    span = units.duration(run.days * units.DAY)
    return f"{run.name}: {span} on {units.plural(run.num_gpus, 'GPU')}"


# --- names beside the dots, where least is in the way

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

Stroke = tuple[Box, float]
"""A line from end to end, and how much a name over it costs."""

_SIDES = [(1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1)]
"""Where a name may stand, seen from its dot: right, left, above, below, slanting."""


def _labels(
    plane: Plane, you: Mark, runs: Sequence[Mark], band: tuple[float, float], before: Mark | None
) -> str:
    """The own run's time and every other's name; far ones with a line to their dot.

    None over another and none over a dot, where that can be; each is placed up to
    three times, so that the first make room for the last.
    """
    dots = [_box(*plane.place(r), 7, 7) for r in [*runs, you]]
    if before:
        dots.append(_box(*plane.place(before), 11, 11))
    strokes = _strokes(plane, you, band, before)
    named = [(you, units.duration(you.days * units.DAY), 18)]
    named += [(run, run.name, 14) for run in sorted(runs, key=lambda run: run.days)]
    boxes: dict[int, Box] = {}
    for _ in range(3):
        last = dict(boxes)
        for i, (run, words, size) in enumerate(named):
            taken = [*dots, *(box for k, box in boxes.items() if k != i)]
            above = _above_its_way(plane, you, words, taken, strokes) if not i else None
            boxes[i] = above or _place(plane, run, words, size, taken, strokes)
        if boxes == last:
            break
    return "".join(_name(plane, *named[i], box) for i, box in boxes.items())


def _strokes(
    plane: Plane, you: Mark, band: tuple[float, float], before: Mark | None
) -> list[Stroke]:
    """What a name should not cross: the run's line, its way to the axes, the grid."""
    x, y = plane.place(you)
    strokes: list[Stroke] = [((x, y, x, plane.bottom), 20), ((plane.left, y, x, y), 20)]
    if before:
        strokes.append(((x, y, *plane.place(before)), 20))
    for days, price in ((you.days, 40.0), (band[0], 10.0), (band[1], 10.0)):
        ends = _across(plane, you.num_gpus * days)
        strokes += [(ends, price)] if ends else []
    for power in range(ceil(plane.x0), floor(plane.x1) + 1):
        at = plane.x(10**power)
        strokes.append(((at, plane.top, at, plane.bottom), 3))
    for days in DAYS:
        if plane.y0 <= log10(days) <= plane.y1:
            at = plane.y(days)
            strokes.append(((plane.left, at, plane.right, at), 3))
    return strokes


def _place(
    plane: Plane,
    run: Mark,
    words: str,
    size: float,
    taken: Sequence[Box],
    strokes: Sequence[Stroke],
) -> Box:
    """The box beside a dot in which the words cost least."""
    x, y = plane.place(run)
    wide = (0.64 if size > 15 else 0.62) * size * len(words)
    others = [box for box in taken if not _crosses(box, (x, y, x, y))]
    best, cheapest = float("inf"), (x, y, x, y)
    for away in (0, 11, 25, 43, 63, 87):
        if away / 4 >= best:
            break
        for order, (dx, dy) in enumerate(_SIDES):
            box = _beside(x, y, _gap(size) + away, dx, dy, wide, size)
            price = _price(box, plane, taken, strokes) + away / 4 + order / 8
            if price < best:
                way = (x, y, *_nearest(x, y, box))
                price += 30 * sum(_crosses(other, way) for other in others)
            if price < best:
                best, cheapest = price, box
    return cheapest


def _above_its_way(
    plane: Plane, you: Mark, words: str, taken: Sequence[Box], strokes: Sequence[Stroke]
) -> Box | None:
    """The own time on the dotted line to the days, if there is room free of lines."""
    (x, y), half = plane.place(you), 0.32 * 18 * len(words)
    crossed = [(box, price) for box, price in strokes if price > 3]
    least = max(plane.left + half, x - 176 - half)  # no farther: else beside the dot
    for middle in range(round(x - 16 - half), round(least), -4):
        box = _box(middle, y - 13, half, 9)
        if _price(box, plane, taken, crossed) == 0:
            return box
    return None


def _nearest(x: float, y: float, box: Box) -> tuple[float, float]:
    """Where a line from a dot meets the words' box."""
    left, top, right, bottom = box
    return min(max(x, left), right), min(max(y, top + 2), bottom - 2)


def _gap(size: float) -> float:
    """From a dot's middle to its words: the own one is larger."""
    return 15 if size > 15 else 9


def _name(plane: Plane, run: Mark, words: str, size: float, box: Box) -> str:
    """Words in their box, with a thin line to their dot where they stand apart."""
    x, y = plane.place(run)
    left, _, right, bottom = box
    end = _nearest(x, y, box)
    far = max(abs(end[0] - x), abs(end[1] - y)) > _gap(size) + 4
    far &= not (size > 15 and bottom < y)  # the dotted line leads there
    svg = line(x, y, *end, stroke_width=1, opacity=0.7) if far else ""
    weight = "700" if size > 15 else "400"
    middle = ((left + right) / 2, bottom - 0.2 * size)
    return svg + text(*middle, words, size, "middle", font_weight=weight)


def _beside(x: float, y: float, away: float, dx: int, dy: int, wide: float, high: float) -> Box:
    """The box of words on one side of a dot, so far away."""
    reach = away if not (dx and dy) else 0.7 * away
    middle = x + dx * (reach + wide / 2)
    base = y + dy * (reach + high / 2)
    return _box(middle, base, wide / 2, high / 2)


def _price(box: Box, plane: Plane, taken: Sequence[Box], strokes: Sequence[Stroke]) -> float:
    """What stands in the way: the edge and other words most, the grid least."""
    left, top, right, bottom = box
    out = left < plane.left or right > plane.right + 36
    out |= top < plane.top - 8 or bottom > plane.bottom
    over = sum(left < r and l < right and top < b and t < bottom for l, t, r, b in taken)
    if out or over:  # no place, unless there is no other
        return 1000.0 * out + 100 * over
    return sum(price for stroke, price in strokes if _crosses(box, stroke))


def _crosses(box: Box, stroke: Box) -> bool:
    """Whether a line goes through a box."""
    left, top, right, bottom = box
    x1, y1, x2, y2 = stroke
    if max(x1, x2) < left or min(x1, x2) > right:
        return False
    if max(y1, y2) < top or min(y1, y2) > bottom:
        return False
    if (x1, y1) == (x2, y2):
        return True
    corners = [(x, y) for x in (left, right) for y in (top, bottom)]
    sides = {(x2 - x1) * (y - y1) > (y2 - y1) * (x - x1) for x, y in corners}
    return len(sides) == 2


def _box(x: float, y: float, wide: float, high: float) -> Box:
    return (x - wide, y - high, x + wide, y + high)


_BAND = "at an MFU of {:.0f} to {:.0f} %".format(*(100 * u for u in UTILIZATIONS[::2]))


def _key(moved: bool) -> str:
    """What the marks mean, in a row under the picture."""
    y, low = 444, 469
    svg = circle(110, y - 5, 7, BLUE, stroke="currentColor", stroke_width=2) + text(
        126, y, "your run", 14
    )
    svg += line(240, y - 5, 268, y - 5, stroke=BLUE, stroke_width=3)
    svg += text(276, y, "your run on other numbers of GPUs", 14)
    svg += circle(110, low - 5, 5, GREY, stroke="currentColor")
    svg += text(126, low, "published", 14)
    svg += rect(240, low - 14, 28, 18, BLUE, opacity=0.28)
    svg += text(276, low, f"{_BAND}, as 13 of 14 published runs", 14)
    if moved:
        svg += circle(618, y - 5, 8, "none", stroke="currentColor", stroke_dasharray="4 3") + text(
            634, y, "at the start", 14
        )
    return svg
