"""Drawings of chapter 03: work through GPUs into days, 8 or 6, days against GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

from llmtrain_helpers import units
from llmtrain_helpers.drawings.common import (
    COLORS,
    GREY,
    Drawing,
    arrow,
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
    work = each * tokens * parameters
    run = (tokens, parameters, num_gpus, flops_per_gpu)
    days = float(training_seconds(*run, recompute)) / units.DAY
    told = [
        f"{each} × {units.count(tokens)} × {units.count(parameters)}",
        f"= {units.flops(work)}",
        f"{units.exact(num_gpus)} × {units.flops_per_second(flops_per_gpu)}",
        f"= {units.flops_per_second(rate)}",
    ]
    body = _work(passes, told[:2]) + _gpus(num_gpus, told[2:]) + _calendar(days)
    body += arrow(270, 102, 300, 102) + arrow(498, 102, 538, 102)
    words = f"The work, {' '.join(told[:2])}, flows into {_gpus_of(num_gpus)}, "
    words += f"{' '.join(told[2:])}, and comes out as {units.digits(days)} days."
    return Drawing(body, 740, 250, words)


def _work(passes: Mapping[str, int], told: Sequence[str]) -> str:
    """A bar of a pass's colours, as long as its FLOPs, over the work in symbols."""
    body, x = text(24, 36, "work", 18, font_weight=700), 24.0
    for name, flops in passes.items():
        body += rect(x, 78, 30 * flops - 2, 48, INKS[name], f"{name}: {flops}TP")
        body += text(x + 15 * flops - 1, 107, name, 14, "middle", "white")
        body += text(x + 15 * flops - 1, 70, f"{flops}", 15, "middle")
        x += 30 * flops
    body += text(24, 152, f"{sum(passes.values())} · T · P", 17, font_weight=700)
    return body + _lines(24, told)


def _gpus(num_gpus: int, told: Sequence[str]) -> str:
    """A block of GPUs, some thirty at most, over their rate in symbols."""
    body, each = text(310, 36, "GPUs", 18, font_weight=700), ceil(num_gpus / 32)
    for i in range(ceil(num_gpus / each)):
        x, y = 310 + 22 * (i % 8), 52 + 20 * (i // 8)
        body += rect(x, y, 18, 16, GREY, rx=3)
    body += text(484, 36, f"■ = {_gpus_of(each)}", 14, "end")
    return body + text(310, 152, "n · X", 17, font_weight=700) + _lines(310, told)


def _calendar(days: float) -> str:
    """A square for each day (or hour, week, year), seven in a row."""
    size, name = _square(days)
    full, body = days / size, text(550, 36, "time", 18, font_weight=700)
    high = 12 if full > 49 else 15
    for i in range(min(ceil(full), 63)):
        x, y = 550 + 24 * (i % 7), 52 + high * (i // 7)
        body += rect(x, y, 20 * min(1, full - i), high - 3, COLORS["optimizer"])
    body += text(718, 36, f"■ = {name}", 14, "end")
    if full > 63:
        body += hatched(550, 52, 164, 105)
    body += text(550, 182, "t = work / (n · X)", 17, font_weight=700)
    return body + text(550, 218, f"= {units.duration(days * units.DAY)}", 20)


def _square(days: float) -> tuple[float, str]:
    """The unit of which a calendar of nine rows has room for all, and its name."""
    sizes = {"an hour": 1 / 24, "a day": 1, "a week": 7, "a year": 365.25}
    fit = [(size, name) for name, size in sizes.items() if days / size <= 63]
    return fit[0] if fit else (365.25, "a year")


def _lines(x: float, told: Sequence[str]) -> str:
    return "".join(text(x, 182 + 26 * i, words, 15) for i, words in enumerate(told))


# --- 8 or 6


def eight_or_six(days: Mapping[tuple[str, str], float]) -> Drawing:
    """Days by what the work counts and what the rate counts: two fit, two do not.

    Keys are two settings of recomputation, that of the work first: ("full", "none").
    """
    body = text(24, 44, "the rate X counts", 15) + text(262, 30, "the work counts", 15)
    found = []
    for column, work in enumerate(("full", "none")):
        x = 262 + 240 * column
        body += _bar(x, 44, work, f"{8 - 2 * column}TP")
        for row, rate in enumerate(("full", "none")):
            right = days[rate, rate]
            told = _verdict(days[work, rate], right)
            body += _cell(x, 102 + 90 * row, days[work, rate], told, work == rate)
            found.append(f"{8 - 2 * column}TP over {_CALLED[rate]}: {told}")
    for row, rate in enumerate(("full", "none")):
        body += _bar(24, 112 + 90 * row, rate, _CALLED[rate])
    return Drawing(body, 740, 286, f"Days by two counts. {'; '.join(found)}.")


_CALLED = {"full": "HFU", "none": "MFU"}
"""What a share of the peak is called that counts recomputation, and that does not."""


def _verdict(days: float, right: float) -> str:
    told = f"{units.digits(days)} days"
    if abs(days / right - 1) < 1e-6:
        return told
    off = f"{abs(days / right - 1):.0%}".replace("%", " %")
    return f"{told}, {off} too {'long' if days > right else 'short'}"


def _bar(x: float, y: float, counted: str, name: str) -> str:
    """The passes that are counted, as a bar, and what this is called."""
    body = text(x + 182, y + 26, name, 17, font_weight=700)
    at = x
    for part, flops in PASSES.items():
        if part == "again" and counted != "full":
            body += ghost(at, y, 22 * flops - 2, 40, "not counted")
        else:
            body += rect(at, y, 22 * flops - 2, 40, INKS[part], part)
            body += text(at + 11 * flops - 1, y + 26, _short(part), 14, "middle", "white")
        at += 22 * flops
    return body


def _short(part: str) -> str:
    return {"forward": "fwd", "backward": "backward", "again": "again"}[part]


def _cell(x: float, y: float, days: float, told: str, right: bool) -> str:
    """Days with a mark: a solid frame where the counts fit, a dashed one elsewhere."""
    frame = (
        rect(x, y, 222, 66, rx=8, stroke=COLORS["optimizer"], stroke_width=3)
        if right
        else ghost(x, y, 222, 66)
    )
    mark, number = "✓" if right else "✗", f"{units.digits(days)} days"
    note = told.partition(", ")[2] or "the counts agree"
    body = text(x + 16, y + 29, f"{mark} {number}", 19, font_weight=700)
    return frame + body + text(x + 16, y + 53, note, 15)


# --- the formula beside the exact count, over what a paper prints


def before_and_after(before: Sequence[float], after: Sequence[float]) -> Drawing:
    """Each estimate over the paper's days: by 8TP/(nX), and with attention counted."""
    body = text(_near(1), 30, "the paper's days", 15, "middle", font_weight=700)
    body += line(_near(1), 42, _near(1), 214, stroke=GREY, stroke_width=2)
    for x, y in zip(before, after, strict=True):
        body += line(_near(x), 82, _near(y), 168, opacity=0.3)
    rows = [("by 8TP / (nX)", before, 82, "recomputed")]
    rows += [("attention counted too", after, 168, "weights")]
    told = []
    for name, ratios, height, ink in rows:
        off = _off(ratios)
        told.append(f"{name}, {off}")
        body += text(24, height - 3, name, 15, font_weight=700)
        body += text(24, height + 18, off, 15)
        for x in ratios:
            dot = 'stroke="currentColor"'
            body += _circle(_near(x), height, 6, COLORS[ink], f"{x:.3f}", dot)
    body += line(250, 214, 716, 214)
    for x in (0.97, 0.98, 0.99, 1, 1.01):
        off = f"{100 * abs(x - 1):.0f} % " + ("short" if x < 1 else "over")
        body += text(_near(x), 236, "the same" if x == 1 else off, 14, "middle")
    words = f"{len(before)} estimates over the paper's days. {'; '.join(told)}."
    return Drawing(body, 744, 254, words)


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
    body = _span(span, bottom) + _percents(bottom)
    for i, name in enumerate(order):
        x, y = _at(shares[name]), 72 + 22 * i
        body += text(146, y + 5, name, 14, "end") + line(206, y, x, y, opacity=0.25)
        body += text(196, y + 5, _of_peak(shares[name]), 14, "end", font_weight=600)
        body += _circle(x, y, 6, BLUE, name, 'stroke="currentColor"')
    told = ", ".join(f"{name} {_of_peak(shares[name])}" for name in order)
    low, likely, high = (_of_peak(share) for share in span)
    words = f"Shares of the peak, the interval from {low} to {high}, likely {likely}: "
    return Drawing(body, 744, bottom + 50, f"{words}{told}.")


def _of_peak(share: float) -> str:
    return f"{units.digits(100 * share, 2)} %"


def _at(share: float) -> float:
    """Where a share of the peak stands: the axis goes to 60 per cent."""
    return 206 + 500 * share / 0.6


def _span(span: tuple[float, float, float], bottom: float) -> str:
    low, likely, high = (_at(share) for share in span)
    names = zip((low, likely, high), ("slowest", "likely", "fastest"), span, strict=True)
    told = "".join(
        text(x, 30, name, 15, "middle", font_weight=600)
        + text(x, 49, _of_peak(share), 14, "middle")
        for x, name, share in names
    )
    band = rect(low, 56, high - low, bottom - 56, BLUE, opacity=0.16)
    return told + band + line(likely, 56, likely, bottom, stroke=BLUE, stroke_width=3)


def _percents(bottom: float) -> str:
    body = line(206, bottom, 706, bottom)
    for part in range(0, 7):
        x = _at(part / 10)
        body += line(x, bottom, x, bottom + 5)
        body += text(x, bottom + 22, f"{10 * part} %", 14, "middle")
    return body + text(706, bottom + 42, "of the peak (MFU)", 14, "end")


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
        """Where so many GPUs stand."""
        share = (log10(num_gpus) - self.x0) / (self.x1 - self.x0)
        return self.left + share * (self.right - self.left)

    def y(self, days: float) -> float:
        """Where so many days stand."""
        share = (log10(days) - self.y0) / (self.y1 - self.y0)
        return self.bottom - share * (self.bottom - self.top)

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
    n = you.num_gpus
    body = _axes(plane) + _band(plane, n * band[0], n * band[1])
    body += _curve(plane, n * you.days) + _to_axes(plane, you)
    body += (_ring(plane, moved, you) if moved else "") + _own(plane, you)
    body += "".join(_dot(plane, run) for run in runs)  # smaller: seen on the own dot
    body += _labels(plane, you, runs, band, moved) + _key(bool(moved))
    return Drawing(body, 744, 482, _told(you, band, runs, moved))


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
    faint = {"stroke_width": 1, "opacity": 0.18}
    body = text(plane.right, plane.bottom + 42, "GPUs", 15, "end", font_weight=700)
    for power in range(ceil(plane.x0), floor(plane.x1) + 1):
        x = plane.x(10**power)
        body += line(x, plane.top, x, plane.bottom, **faint)
        body += text(x, plane.bottom + 20, f"{10**power:,}", 14, "middle")
    for days, name in DAYS.items():
        if plane.y0 <= log10(days) <= plane.y1:
            y = plane.y(days)
            body += line(plane.left, y, plane.right, y, **faint)
            body += text(plane.left - 10, y + 5, name, 14, "end")
    return body


def _band(plane: Plane, least: float, greatest: float) -> str:
    """All between two lines of GPU-days."""
    ns = sorted({*plane.along(least), *plane.along(greatest)})
    upper = [plane.clamped(n, greatest) for n in ns]
    lower = [plane.clamped(n, least) for n in reversed(ns)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*upper, *lower])
    return f'<polygon points="{points}" fill="{BLUE}" opacity="0.28"/>'


def _curve(plane: Plane, gpu_days: float) -> str:
    """The days of this run on any number of GPUs."""
    ends = _across(plane, gpu_days)
    return line(*ends, stroke=BLUE, stroke_width=3) if ends else ""


def _across(plane: Plane, gpu_days: float) -> Box | None:
    """Both ends of a line of so many GPU-days, if it comes into the picture."""
    ends = [n for n in plane.along(gpu_days) if _inside(plane, gpu_days / n)]
    if len(ends) < 2:
        return None
    (x1, y1), (x2, y2) = (plane.clamped(n, gpu_days) for n in (ends[0], ends[-1]))
    return x1, y1, x2, y2


def _inside(plane: Plane, days: float) -> bool:
    return plane.y0 - 1e-9 <= log10(days) <= plane.y1 + 1e-9


def _to_axes(plane: Plane, you: Mark) -> str:
    """Dotted lines from the dot to both axes."""
    x, y = plane.x(you.num_gpus), plane.y(you.days)
    dots = {"stroke_dasharray": "2 5", "opacity": 0.7}
    return line(x, y, x, plane.bottom, **dots) + line(plane.left, y, x, y, **dots)


def _circle(x: float, y: float, r: float, fill: str, title: str, style: str) -> str:
    told = f"<title>{escape(title)}</title>" if title else ""
    place = f'cx="{x:.1f}" cy="{y:.1f}" r="{r:g}"'
    return f'<circle {place} fill="{fill}" {style}>{told}</circle>'


def _dot(plane: Plane, run: Mark) -> str:
    x, y = plane.x(run.num_gpus), plane.y(run.days)
    return _circle(x, y, 5, GREY, _words(run), 'stroke="currentColor"')


def _own(plane: Plane, you: Mark) -> str:
    x, y = plane.x(you.num_gpus), plane.y(you.days)
    style = 'stroke="currentColor" stroke-width="2.5"'
    return _circle(x, y, 9, BLUE, _words(you), style)


def _ring(plane: Plane, before: Mark, you: Mark) -> str:
    """Where the dot stood, and a dashed line from there."""
    x, y = plane.x(before.num_gpus), plane.y(before.days)
    style = 'stroke="currentColor" stroke-width="1.5" stroke-dasharray="4 3"'
    ends = (x, y, plane.x(you.num_gpus), plane.y(you.days))
    way = line(*ends, stroke_dasharray="4 3", opacity=0.7)
    return way + _circle(x, y, 9, "none", f"at the start: {_words(before)}", style)


def _words(run: Mark) -> str:
    span = units.duration(run.days * units.DAY)
    return f"{run.name}: {span} on {_gpus_of(run.num_gpus)}"


def _gpus_of(number: float) -> str:
    return units.plural(number, "GPU")


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
    dots = [_box(plane.x(r.num_gpus), plane.y(r.days), 7, 7) for r in [*runs, you]]
    if before:
        dots.append(_box(plane.x(before.num_gpus), plane.y(before.days), 11, 11))
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
    x, y = plane.x(you.num_gpus), plane.y(you.days)
    found: list[Stroke] = [((x, y, x, plane.bottom), 20), ((plane.left, y, x, y), 20)]
    if before:
        found.append(((x, y, plane.x(before.num_gpus), plane.y(before.days)), 20))
    for days, price in ((you.days, 40.0), (band[0], 10.0), (band[1], 10.0)):
        ends = _across(plane, you.num_gpus * days)
        found += [(ends, price)] if ends else []
    for power in range(ceil(plane.x0), floor(plane.x1) + 1):
        at = plane.x(10**power)
        found.append(((at, plane.top, at, plane.bottom), 3))
    for days in DAYS:
        if plane.y0 <= log10(days) <= plane.y1:
            at = plane.y(days)
            found.append(((plane.left, at, plane.right, at), 3))
    return found


def _place(
    plane: Plane,
    run: Mark,
    words: str,
    size: float,
    taken: Sequence[Box],
    strokes: Sequence[Stroke],
) -> Box:
    """The box beside a dot in which the words cost least."""
    x, y = plane.x(run.num_gpus), plane.y(run.days)
    wide = (0.64 if size > 15 else 0.62) * size * len(words)
    others = [box for box in taken if not _crosses(box, (x, y, x, y))]
    best, found = float("inf"), (x, y, x, y)
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
                best, found = price, box
    return found


def _above_its_way(
    plane: Plane, you: Mark, words: str, taken: Sequence[Box], strokes: Sequence[Stroke]
) -> Box | None:
    """The own time on the dotted line to the days, if there is room free of lines."""
    x, y, half = plane.x(you.num_gpus), plane.y(you.days), 0.32 * 18 * len(words)
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
    x, y = plane.x(run.num_gpus), plane.y(run.days)
    left, _, right, bottom = box
    end = _nearest(x, y, box)
    far = max(abs(end[0] - x), abs(end[1] - y)) > _gap(size) + 4
    far &= not (size > 15 and bottom < y)  # the dotted line leads there
    body = line(x, y, *end, stroke_width=1, opacity=0.7) if far else ""
    weight = "700" if size > 15 else "400"
    middle = ((left + right) / 2, bottom - 0.2 * size)
    return body + text(*middle, words, size, "middle", font_weight=weight)


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
    y, low, ink = 444, 469, 'stroke="currentColor" stroke-width="2"'
    body = _circle(110, y - 5, 7, BLUE, "", ink) + text(126, y, "your run", 14)
    body += line(240, y - 5, 268, y - 5, stroke=BLUE, stroke_width=3)
    body += text(276, y, "your run on other numbers of GPUs", 14)
    body += _circle(110, low - 5, 5, GREY, "", 'stroke="currentColor"')
    body += text(126, low, "published", 14)
    body += rect(240, low - 14, 28, 18, BLUE, opacity=0.28)
    body += text(276, low, f"{_BAND}, as 13 of 14 published runs", 14)
    if moved:
        ring = 'stroke="currentColor" stroke-dasharray="4 3"'
        body += _circle(618, y - 5, 8, "none", "", ring) + text(634, y, "at the start", 14)
    return body


def _told(you: Mark, band: tuple[float, float], runs: Sequence[Mark], moved: Mark | None) -> str:
    low, high = (f"{units.digits(days, 2)} days" for days in band)
    parts = [f"Days against GPUs. {_words(you)}, as published runs {low} to {high}"]
    parts += [f"at the start: {_words(moved)}"] if moved else []
    return f"{'; '.join([*parts, *map(_words, runs)])}."
