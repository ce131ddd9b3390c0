"""Drawings of chapter 10: one budget's many models, prices of other sizes, laws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil, floor, log2, log10
from typing import Any

from llmtrain_course.budget.formulas import (
    fitted_sizes,
    loss_terms,
    losses_of_sizes,
    most_flops,
    smallest_share,
    tokens_for_size,
)
from llmtrain_course.kit.drawing import COLORS, GREY, Drawing, Style, circle, fits, line, rect, text
from llmtrain_helpers import units
from llmtrain_helpers.budget import Frontier, Outcome
from llmtrain_helpers.laws import Law, Optimum, coefficients, compute_optimal, loss, over_training
from llmtrain_helpers.results import Breakdown

BLUE, RED, GREEN = COLORS["weights"], COLORS["gradients"], COLORS["optimizer"]
"""Parameters are blue as weights are, tokens vermilion, what is best green."""


WIDE, HANDLE, NARROW = 744, 628, 372
"""Pixels across: of the panel's drawing, of a handle's, and of each on a telephone."""


# --- the loss of one budget, in three terms


_T_LEFT, _T_TOP, _T_BOTTOM = 62, 50, 330
_FLOOR, _CEILING = 1.7, 2.6
"""Where the axis of the loss begins and ends, at every setting."""


def _ty(value: float) -> float:
    share = (min(value, _CEILING) - _FLOOR) / (_CEILING - _FLOOR)
    return _T_BOTTOM - share * (_T_BOTTOM - _T_TOP)


def stacked_terms(parameters: float, flops: float, began: float, width: int = HANDLE) -> Drawing:
    """The floor, the size's term and the text's, stacked over all sizes of one budget.

    A line cuts at one size, with its terms beside it; a hollow dot is where it began.
    """
    at_the_right = width == HANDLE  # the terms: beside the valley, or below it
    right = 392 if at_the_right else width - 30

    def at(parameters: float) -> float:
        """Where a size stands: from 0.1 billion to a trillion parameters."""
        return _T_LEFT + (log10(parameters) - 8) / 4 * (right - _T_LEFT)

    floor, *_ = coefficients("besiroglu")
    sizes = [10 ** (8 + k / 40) for k in range(161)]
    terms = [loss_terms(N, tokens_for_size(N, flops)) for N in sizes]
    heights = [
        [_FLOOR for _ in sizes],
        [floor for _ in sizes],
        [floor + float(small) for small, _ in terms],
        [floor + float(small + little) for small, little in terms],
    ]
    named = zip(("the floor", "too small", "read too little"), (GREY, BLUE, RED), strict=True)
    svg = text(_T_LEFT - 42, 28, "loss", 15, font_weight=600)
    for (name, color), (low, high) in zip(named, pairwise(heights), strict=True):
        up = [f"{at(N):.1f},{_ty(y):.1f}" for N, y in zip(sizes, high, strict=True)]
        down = [f"{at(N):.1f},{_ty(y):.1f}" for N, y in zip(sizes, low, strict=True)]
        points = " ".join([*up, *reversed(down)])
        svg += f'<polygon points="{points}" fill="{color}" opacity="0.75">'
        svg += f"<title>{name}</title></polygon>"
    for value in (1.8, 2.0, 2.2, 2.4, 2.6):
        svg += line(_T_LEFT - 5, _ty(value), _T_LEFT, _ty(value))
        svg += text(_T_LEFT - 10, _ty(value) + 5, f"{value:.1f}", 14, "end")
    for power in range(8, 13):
        svg += line(at(10**power), _T_BOTTOM, at(10**power), _T_BOTTOM + 5)
        svg += text(at(10**power), _T_BOTTOM + 22, units.size(10.0**power), 14, "middle")
    svg += text(right, _T_BOTTOM + 44, "parameters", 15, "end")
    svg += text(_T_LEFT - 42, _T_BOTTOM + 44, f"begins at {_FLOOR}, not at 0", 14)
    for y in (_T_BOTTOM - 12, _T_BOTTOM - 6):  # the axis is cut
        svg += line(_T_LEFT - 7, y + 4, _T_LEFT + 7, y - 4, stroke_width=2)

    tokens = float(tokens_for_size(parameters, flops))
    small, little = map(float, loss_terms(parameters, tokens))
    whole, x = floor + small + little, at(parameters)
    # the terms: where they begin, the baselines of their first line and of the sum, their end
    left, first, last, end, pitch = (
        (412, 62, 244, 616, 34) if at_the_right else (16, 402, 536, 346, 26)
    )
    if began != parameters:
        was = float(loss(began, tokens_for_size(began, flops)))
        hollow: Style = {"stroke": "currentColor", "stroke_width": 2, "stroke_dasharray": "3 2"}
        svg += circle(at(began), _ty(was), 9, "none", "where it began", **hollow)
        svg += circle(left + 9, last + 46, 9, "none", **hollow)
        svg += text(left + 26, last + 51, "where it began", 16)
    svg += line(x, _T_TOP - 8, x, _T_BOTTOM, stroke_width=2.5)
    here: Style = {"stroke": "currentColor", "data_moves": "size"}
    svg += circle(x, _ty(whole), 8, GREEN, f"loss {whole:.2f}", **here)

    if whole > _CEILING:
        near, side = (x + 14, "start") if x < 210 else (x - 14, "end")
        svg += text(near, _T_TOP - 12, "above the picture", 14, side)
    bold: Style = {"font_weight": 700}
    svg += text(left, first, f"{units.size(parameters)} parameters", 16, **bold)
    svg += text(left, first + 24, f"{units.count(tokens, 2)} tokens", 16, **bold)
    rows = (("read too little", RED, little), ("too small", BLUE, small), ("floor", GREY, floor))
    for i, (name, color, value) in enumerate(rows):
        y = last - (3 - i) * pitch - 8
        svg += rect(left, y - 14, 17, 17, color, opacity=0.75)
        svg += text(left + 26, y, name, 16) + text(end, y, f"{value:.3f}", 16, "end")
    svg += line(left, last - 26, end, last - 26)
    svg += text(left + 26, last, "loss", 16, **bold)
    svg += text(end, last, f"{whole:.3f}", 18, "end", **bold)
    description = (
        f"{units.flops(flops)} of work, spent on {units.size(parameters)} parameters and "
        f"{units.count(tokens, 2)} tokens: floor {floor:.3f}, too small {small:.3f}, read too "
        f"little {little:.3f}, loss {whole:.3f}. Over all sizes the sum is a valley."
    )
    return Drawing(svg, width, 388 if at_the_right else last + 66, description)


# --- loss against size


@dataclass
class Axes:
    """Sizes to the right, in powers of ten; loss upwards; on a page or on a telephone."""

    x0: float
    x1: float
    y0: float
    y1: float
    wide: bool
    high = 304

    def __post_init__(self) -> None:
        self.left, self.right, self.top = (78, 722, 48) if self.wide else (46, 358, 78)
        self.bottom = self.top + self.high

    def x(self, parameters: float) -> float:
        """The place of a model size on the horizontal axis."""
        share = (log10(parameters) - self.x0) / (self.x1 - self.x0)
        return self.left + share * (self.right - self.left)

    def y(self, value: float) -> float:
        """The place of a loss on the vertical axis."""
        share = (value - self.y0) / (self.y1 - self.y0)
        return self.bottom - share * (self.bottom - self.top)

    def holds(self, parameters: float, value: float) -> bool:
        """Whether it lies inside the picture."""
        inside = self.x0 <= log10(parameters) <= self.x1
        return inside and self.y0 <= value <= self.y1


def frontier_picture(front: Frontier, chosen: str = "", width: int = WIDE) -> Drawing:
    """The shapes of a frontier over their sizes, the law's curve, and the best.

    `chosen` is the name of a shape to point at.
    """
    dots = [point.outcome for point in front.points]
    return loss_against_size(dots, most_flops(dots), front.law, chosen, width=width)


def loss_against_size(
    dots: Sequence[Outcome],
    flops: float,
    law: str | Law = "besiroglu",
    chosen: str = "",
    before: Outcome | None = None,
    width: int = WIDE,
) -> Drawing:
    """Loss against size at one budget: the curve, the shapes, the best, the chosen.

    The green strip is where the loss is within 0.01 of the best, a diamond. A cross is a shape
    that does not fit, a ring one that would not answer where it must.
    """
    best = compute_optimal(flops, law)
    lowest = float(loss(best.parameters, best.tokens, law))
    sizes = [log10(dot.parameters) for dot in dots]
    bottom = floor(5 * (lowest - 0.05)) / 5  # in steps, so that a curve seems to sink
    axes = Axes(min(sizes) - 0.2, max(sizes) + 0.2, bottom, bottom + 0.5, width == WIDE)
    own = next((dot for dot in dots if dot.name == chosen), None)

    near = _near(axes, flops, lowest, law)
    svg = _grid(axes, flops) + _strip(axes, near)
    curve = _curve(axes, flops, law)
    svg += curve
    marks = _marks(axes, dots, curve)
    svg += "".join(_mark(axes, dot) for dot in dots) + _optimum(axes, best, lowest)
    if before and before != own and axes.holds(before.parameters, before.loss):
        place = axes.x(before.parameters), axes.y(before.loss)
        svg += circle(*place, 11, "none", f"at the start: {before.name}", **_DASHED)
        marks.append((circle(9, -5, 9, "none", **_DASHED), 18, "at the start"))
    svg += _own(axes, own) if own else ""
    label = f"the law's best: {units.size(best.parameters)}, {units.count(best.tokens)} tokens"
    law_marks = [(_diamond(9, -5), 18, label)]
    if near:
        label = f"within 0.01 of it: {units.size(near[0])} to {units.size(near[-1])}"
        law_marks.append((rect(0, -13, 18, 16, GREEN, opacity=0.25), 18, label))
    key, y = _key(marks, axes, axes.bottom + 98)
    rest, y = _key(law_marks, axes, y + 26)
    svg += key + rest

    able = [dot for dot in dots if dot.fits and dot.answers]
    words = (
        f"Loss against size at one budget. The law's best: {units.size(best.parameters)} "
        f"parameters on {units.count(best.tokens)} tokens, loss {lowest:.3f}. "
        f"{len(able)} of {len(dots)} shapes will do"
    )
    if able:
        words += f", {able[0].name} to {able[-1].name}"
        low = min(able, key=lambda dot: dot.loss)
        words += f"; of them {low.name} ends lowest, at {low.loss:.3f}"
    if own:
        words += f". Yours: {own.name}, {units.count(own.tokens)} tokens, {own.loss:.3f}"
    return Drawing(svg, width, int(y) + 22, f"{words}.")


def _grid(axes: Axes, flops: float) -> str:
    """Two axes, sizes, the tokens that each gets, and losses."""
    above = axes.top - (24 if axes.wide else 12)
    svg = text(axes.left, above, "loss, nats a token", 14, font_weight=600)
    svg += line(axes.left, axes.top, axes.left, axes.bottom)
    svg += line(axes.left, axes.bottom, axes.right, axes.bottom)
    for power in range(ceil(axes.x0), floor(axes.x1) + 1):
        x, N = axes.x(10**power), 10.0**power
        svg += line(x, axes.bottom, x, axes.bottom + 5)
        svg += text(x, axes.bottom + 20, units.size(N), 15, "middle")
        each = float(tokens_for_size(N, flops)) / N
        label = units.size(each) if each >= 1e6 else units.digits(each, 1)
        svg += text(x, axes.bottom + 41, label, 14, "middle", opacity=0.8)
    label = "parameters, and tokens for each of them"
    svg += text(axes.left, axes.bottom + 64, label, 14, opacity=0.8)
    value = ceil(axes.y0 / 0.1) * 0.1
    while value < axes.y1:
        y = axes.y(value)
        svg += line(axes.left - 6, y, axes.left, y)
        svg += text(axes.left - 10, y + 5, f"{value:.1f}", 14, "end")
        value += 0.1
    return svg


def _sizes(axes: Axes, steps: int = 160) -> list[float]:
    width = axes.x1 - axes.x0
    return [10 ** (axes.x0 + width * i / steps) for i in range(steps + 1)]


def _curve(axes: Axes, flops: float, law: str | Law) -> str:
    """The loss that the law expects of each size; dotted beyond the law's runs."""
    low, high = fitted_sizes(flops, law)
    sizes = _sizes(axes)
    losses = zip(sizes, losses_of_sizes(sizes, flops, law), strict=True)
    visible = [(N, value) for N, value in losses if axes.holds(N, value)]
    svg = ""
    for within_runs, group in groupby(pairwise(visible), lambda pair: low <= pair[1][0] <= high):
        pairs = [*group]
        points = " ".join(
            f"{axes.x(N):.1f},{axes.y(value):.1f}"
            for N, value in [pairs[0][0], *(right for _, right in pairs)]
        )
        svg += (
            f'<polyline points="{points}" fill="none" {_WITHIN_RUNS if within_runs else _BEYOND}/>'
        )
    return svg


_WITHIN_RUNS = f'stroke="{BLUE}" stroke-width="6"'
_BEYOND = f'stroke="{BLUE}" stroke-width="3" stroke-dasharray="2 5"'
"""The law's curve: as far as its runs reached, and beyond."""


def _near(axes: Axes, flops: float, lowest: float, law: str | Law) -> list[float]:
    """Sizes whose loss is within 0.01 of the best: the bottom is flat."""
    sizes = _sizes(axes, 400)
    losses = zip(sizes, losses_of_sizes(sizes, flops, law), strict=True)
    return [N for N, value in losses if value <= lowest + 0.01]


def _strip(axes: Axes, near: Sequence[float]) -> str:
    if not near:
        return ""
    x1, x2 = axes.x(near[0]), axes.x(near[-1])
    return rect(x1, axes.top, x2 - x1, axes.high, GREEN, opacity=0.25)


def _optimum(axes: Axes, best: Optimum, lowest: float) -> str:
    """A diamond at the bottom of the curve."""
    if not axes.holds(best.parameters, lowest):
        return ""
    return _diamond(axes.x(best.parameters), axes.y(lowest))


def _diamond(x: float, y: float) -> str:
    points = f"{x:.1f},{y - 9:.1f} {x + 9:.1f},{y:.1f} {x:.1f},{y + 9:.1f} {x - 9:.1f},{y:.1f}"
    return f'<polygon points="{points}" fill="{GREEN}" stroke="currentColor"/>'


_DASHED: Style = {"stroke": "currentColor", "stroke_width": 1.5, "stroke_dasharray": "4 3"}


def _mark(axes: Axes, dot: Outcome) -> str:
    """A shape: a dot where it fits, a cross where it does not, a ring elsewhere."""
    if not axes.holds(dot.parameters, dot.loss):
        return ""
    x, y = axes.x(dot.parameters), axes.y(dot.loss)
    title = f"{dot.name}, {units.count(dot.tokens)} tokens, loss {dot.loss:.3f}"
    if not dot.fits:
        return _cross(x, y)
    fill = BLUE if dot.answers else "none"
    return circle(x, y, 6, fill, title, stroke="currentColor", stroke_width=1.5)


def _cross(x: float, y: float) -> str:
    ink: Style = {"stroke": RED, "stroke_width": 2.5}
    return line(x - 5, y - 5, x + 5, y + 5, **ink) + line(x - 5, y + 5, x + 5, y - 5, **ink)


def _own(axes: Axes, dot: Outcome) -> str:
    """The chosen shape: a large dot, and above the picture its tokens and loss."""
    style: Style = {"stroke": "currentColor", "stroke_width": 3}
    fill, inside = RED if not dot.fits else BLUE, axes.holds(dot.parameters, dot.loss)
    svg = ""
    if inside:
        x, y = axes.x(dot.parameters), axes.y(dot.loss)
        svg = circle(x, y, 11, fill, dot.name, **style)
    lines = [f"yours: {dot.name}", "does not fit on these GPUs"]
    if dot.fits:
        lines[0] += "" if inside else ", off the top"
        lines[1] = f"{units.count(dot.tokens)} tokens, loss {dot.loss:.3f}"
    if axes.wide:
        lines = [", ".join(lines)]
    for i, words in enumerate(lines):
        svg += text(axes.right - 24, 25 + 20 * i, words, 15, "end", font_weight=700)
    return svg + circle(axes.right - 10, 20, 8, fill, **style)


Mark = tuple[str, float, str]
"""A mark of the key, drawn from 0 to its width, and what it means."""


def _marks(axes: Axes, dots: Sequence[Outcome], curve: str) -> list[Mark]:
    """What stands in the picture: the law, and what becomes of the shapes."""
    ink: Style = {"stroke": "currentColor", "stroke_width": 1.5}
    marks: list[Mark] = [
        (f'<line y1="-5" x2="28" y2="-5" {line_style}/>', 28, label)
        for line_style, label in ((_WITHIN_RUNS, "the law"), (_BEYOND, "the law, beyond its runs"))
        if line_style in curve
    ]
    marks.append((circle(6, -5, 6, BLUE, **ink), 12, "fits"))
    if any(not dot.fits and axes.holds(dot.parameters, dot.loss) for dot in dots):
        marks.append((_cross(6, -5), 12, "does not"))
    if not all(dot.answers for dot in dots):
        marks.append((circle(6, -5, 6, "none", **ink), 12, "too large to answer there"))
    return marks


def _key(marks: Sequence[Mark], axes: Axes, y: float) -> tuple[str, float]:
    """The marks and what they mean, in as many rows as it takes, and where these end."""
    first = x = axes.left if axes.wide else 16.0
    svg = ""
    for drawn, wide, label in marks:
        end = x + wide + 8 + 7.84 * len(label)
        if end > axes.right + 14 and x > first:
            end, x, y = end - x + first, first, y + 24
        svg += f'<g transform="translate({x:g} {y:g})">{drawn}</g>'
        svg += text(x + wide + 8, y, label, 14)
        x = end + 18
    return svg, y


# --- what another size costs


def price_of_size(chosen: float = 1, width: int = HANDLE) -> Drawing:
    """Times the least work for the same loss, over the share of the best size.

    A dot is at the chosen share, with its price, or with a cross where there is none. The
    curve is drawn as far from the best size, on both sides, as the chosen one is.
    """
    left, right = (60, 600) if width == HANDLE else (36, width - 22)
    least, curve = smallest_share(), []
    for share in (2 ** (i / 80) for i in range(-280, 241)):
        if share > least and (times := float(over_training(share))) <= 8:
            curve.append((share, times))
    first, seen = curve[0][0], abs(log2(chosen)) + 1e-9
    curve = [(share, times) for share, times in curve if abs(log2(share)) <= seen]

    def at(share: float) -> float:
        """Where a share of the best size stands: from 1/16 to 8, in doublings."""
        return left + (log2(share) + 4) / 7 * (right - left)

    faint: Style = {"stroke_width": 1, "opacity": 0.18}
    svg = text(left, 26, "times the least work for the same loss", 15, font_weight=600)
    for times in (1, 2, 4, 8):
        svg += line(left, _py(times), right, _py(times), **faint)
        svg += text(left - 12, _py(times) + 5, f"{times}", 14, "end")
    for power in range(-4, 4):
        share, name = 2.0**power, f"{2**power}" if power >= 0 else f"1/{2**-power}"
        svg += line(at(share), 60, at(share), 290, **faint)
        svg += text(at(share), 312, name, 14, "middle")
    svg += text(right, 338, "times the best size for that loss", 15, "end", font_weight=600)

    # sizes that reach the loss on no amount of text, and at a price above the picture's top
    if chosen < first:
        svg += text((at(least) + at(first)) / 2, 140, "over 8", 14, "middle")
    if chosen < least:
        wide = at(least) - left
        svg += rect(left, 60, wide, 230, GREY, opacity=0.18)
        svg += text(left + wide / 2, 180, "never", 16, "middle", font_weight=700)
    points = " ".join(f"{at(share):.1f},{_py(times):.1f}" for share, times in curve)
    svg += f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="3"/>'
    svg += circle(at(1), _py(1), 7, GREEN, "the best", stroke="currentColor")
    if chosen > least:
        times = float(over_training(chosen))
        x, y = at(chosen), _py(min(times, 8))
        if times <= 8:
            svg += line(x, y, x, 290, stroke_dasharray="4 4")
        here: Style = {"stroke": "currentColor", "data_moves": "share"}
        svg += circle(x, y, 9, RED, f"{times:.2f} times", **here)
        side = "start" if chosen < 1 else "middle" if chosen == 1 else "end"
        across = x + {"start": 16, "middle": 0, "end": -16}[side]
        label = f"{units.digits(times, 3)} ×"
        svg += text(across, y - (20 if chosen == 1 else 10), label, 20, side, font_weight=700)
        ends = f"{units.digits(times, 3)} times the least work"
    else:
        x, ink = at(chosen), Style(stroke=RED, stroke_width=3)
        svg += line(x - 8, 212, x + 8, 228, **ink) + line(x - 8, 228, x + 8, 212, **ink)
        svg += circle(x, 220, 9, "none", data_moves="share")
        ends = "never"
    words = (
        "Times the least work to the same loss, by the share of the best size. Chosen: "
        f"{units.digits(chosen, 2)} of it, {ends}."
    )
    return Drawing(svg, width, 356, words)


def _py(times: float) -> float:
    """Where so many times the least work stand: from 1 to 8, in doublings."""
    return 290 - log2(times) / 3 * 230


# --- text that is read again


def epochs_worth(worths: Sequence[float], epochs: int, width: int = HANDLE) -> Drawing:
    """A column for each epoch: what that reading adds, over the first one's worth.

    `worths` holds what 1, 2, … epochs are worth together; those so far are filled.
    """
    added = [after - before for before, after in pairwise([0.0, *worths])]
    # on a telephone the words stand lower, below the heading
    left, right, gap, down = (64, 606, 3, 0) if width == HANDLE else (44, width - 14, 1.5, 24)
    wide = (right - left - 6) / len(added)
    svg = text(20, 28, "what each reading adds", 15, font_weight=600)
    for share in (0, 0.5, 1):
        y = 270 - 210 * share
        svg += line(left, y, right, y, stroke_width=1, opacity=0.3)
        svg += text(left - 10, y + 5, f"{share:g}", 14, "end")
    for i, share in enumerate(added):
        x, high, done = left + 4 + wide * i, 210 * share, i < epochs
        fill = GREEN if done else "none"
        edge: Style = {"stroke": "currentColor", "stroke_width": 1, "opacity": 1 if done else 0.45}
        svg += rect(x, 270 - high, wide - gap, high, fill, f"reading {i + 1}: {share:.2f}", **edge)
        if (i + 1) % 10 == 0 or not i:
            svg += text(x + wide / 2, 292, f"{i + 1}", 14, "middle")
    svg += text(right, 316, "reading", 15, "end")
    worth = units.digits(worths[epochs - 1], 2 if epochs < 7 else 3)
    svg += text(right, 44 + down, f"{worth} fresh texts", 26, "end", font_weight=700)
    svg += text(right, 79 + down, f"{units.plural(epochs, 'reading')}, together worth", 15, "end")
    description = f"{units.plural(epochs, 'reading')} of one text are worth {worth} fresh ones."
    return Drawing(svg, width, 332, f"{description} Each adds less than the one before.")


# --- tokens for each parameter: laws, and what was done


def tokens_each(
    laws: Mapping[str, float], models: Sequence[Mapping[str, Any]], width: int = WIDE
) -> Drawing:
    """Laws' best tokens a parameter above released models, over the years.

    A model is a row of `published.rows("tokens_per_parameter")`.
    """
    narrow = width < WIDE  # there a law's name stands above its dot, and the key at the foot
    left, pitch = (8, 42) if narrow else (24, 24)
    first, span = (50, width - 92) if narrow else (80, 612)

    def across(ratio: float) -> float:
        """Where so many tokens a parameter stand: from 0.1 to 100,000."""
        return first + (log10(ratio) + 1) / 6 * span

    grey = 66 + pitch * len(laws)
    svg = text(left, 30, "what laws call best, at Chinchilla's work", 15, font_weight=600)
    svg += line(left, grey, width - 24, grey, opacity=0.3)
    for i, (name, ratio) in enumerate(laws.items()):
        x, y, label = across(ratio), 66 + pitch * i, f"{name}: {units.digits(ratio, 2)}"
        svg += circle(x, y + (14 if narrow else -5), 6, GREEN, name, stroke="currentColor")
        if narrow:
            svg += text(left, y, label, 14)
        else:
            before = 1 < ratio < 20 or not fits(label, 722 - x - 14, 14)
            svg += text(x + (-12 if before else 12), y, label, 14, "end" if before else "start")
    top, dots = 96 + pitch * len(laws), COLORS["activations"]
    years = sorted({int(row["year"]) for row in models})
    for i, year in enumerate(years):
        y = top + 26 + 30 * i
        svg += text(left, y + 5, f"{year}", 15, font_weight=600)
        for row in models:
            if row["year"] == year:
                style: Style = {"stroke": "currentColor", "stroke_width": 1, "opacity": 0.85}
                ink = BLUE if row["kind"] == "dense" else dots
                x = across(float(row["tokens_per_parameter"]))
                svg += circle(x, y, 6, ink, str(row["name"]), **style)

    # the axis, the twenty and the key
    bottom = top + 26 + 30 * len(years)
    svg += text(left, top - 4, "what was trained", 15, font_weight=600)
    key, foot = (left + 6, bottom + 76) if narrow else (450, top - 4)
    svg += circle(key, foot - 5, 6, BLUE) + text(key + 12, foot, "dense", 14)
    svg += circle(key + 86, foot - 5, 6, dots)
    svg += text(key + 98, foot, "experts, by active ones", 14)
    for power in range(-1, 6):
        x = across(10.0**power)
        svg += line(x, 44, x, bottom, stroke_width=1, opacity=0.15)
        if not narrow or power in (-1, 3, 5):
            svg += text(x, bottom + 22, f"{10.0**power:,.10g}", 14, "middle")
    svg += line(across(20), 44, across(20), bottom, stroke_dasharray="4 4", opacity=0.7)
    svg += text(across(20), bottom + 22, "20", 14, "middle", font_weight=700)
    svg += text(width - 24, bottom + 46, "tokens for each parameter", 15, "end")

    best = ", ".join(f"{name} {units.digits(x, 2)}" for name, x in laws.items())
    ratios = sorted(float(row["tokens_per_parameter"]) for row in models)
    low, high = units.digits(ratios[0], 2), units.digits(ratios[-1], 2)
    words = f"Tokens for each parameter. Laws: {best}. {len(models)} released models: "
    return Drawing(svg, width, round(bottom + (90 if narrow else 62)), f"{words}{low} to {high}.")


# --- memory of ways to train


def memory_of_ways(ways: Mapping[str, Breakdown[float]], limits: Mapping[str, float]) -> Drawing:
    """Bars of bytes, stacked from named parts, against the memory of some cards."""
    ways = {WAYS.get(name, name.replace("muon", "Muon")): x for name, x in ways.items()}
    rows = {name: _worded(way) for name, way in ways.items()}
    longest = max(way.total for way in ways.values())
    bottom, svg = 62 + 46 * len(rows), ""
    for card, memory in limits.items():
        if memory <= longest:
            x = 196 + memory * 462 / longest
            svg += line(x, 34, x, bottom - 6, stroke_dasharray="5 4")
            svg += text(x, 24, card, 14, "middle")
    for i, (name, parts) in enumerate(rows.items()):
        svg += text(186, 65 + 46 * i, name, 15, "end")
        svg += _bar(parts, 44 + 46 * i, 462 / longest)
    svg += _parts_key(rows, bottom + 16)
    label = ", ".join(f"{n} {units.gigabytes(way.total)}" for n, way in ways.items())
    return Drawing(svg, 744, bottom + 60, f"Bytes at the peak: {label}.")


WAYS = {"adam": "Adam", "adam_8bit": "Adam, 8 bits", "adafactor": "Adafactor"}
"""Names of optimizers as people write them."""

_WORDS = {"main_weights": "main weights", "transient": "logits"}


def _worded(way: Breakdown[float]) -> dict[str, float]:
    """The parts that weigh anything, by their words."""
    parts = {_WORDS.get(name, name): float(size) for name, size in way.parts().items()}
    return {name: size for name, size in parts.items() if size}


def _bar(parts: Mapping[str, float], y: float, scale: float) -> str:
    """A bar of stacked parts, and its whole."""
    svg, x = "", 196.0
    for part, size in parts.items():
        title = f"{part} {units.gigabytes(size)}"
        svg += rect(x, y, size * scale, 30, COLORS.get(part, GREY), title)
        x += size * scale
    whole = units.gigabytes(sum(parts.values()))
    return svg + text(x + 8, y + 21, whole, 15, font_weight=700)


def _parts_key(rows: Mapping[str, Mapping[str, float]], y: float) -> str:
    names = dict.fromkeys(name for parts in rows.values() for name in parts)
    svg, x = "", 24.0
    for name in names:
        if x + 30 + 8 * len(name) > 730:
            x, y = 24.0, y + 22
        svg += rect(x, y - 11, 14, 14, COLORS.get(name, GREY))
        svg += text(x + 20, y + 1, name, 14)
        x += 40 + 8 * len(name)
    return svg
