"""Drawings of chapter 10: one budget's many models, prices of other sizes, laws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise
from math import ceil, floor, log2, log10
from typing import Any, NamedTuple

from llmtrain_helpers import units
from llmtrain_helpers.budget import Frontier
from llmtrain_helpers.drawings.common import COLORS, GREY, Drawing, fits, line, rect, text
from llmtrain_helpers.laws import (
    Law,
    Optimum,
    compute_optimal,
    known_law,
    loss,
    over_training,
    sizes_known,
    smallest_share,
    tokens_for_size,
)
from llmtrain_helpers.results import Breakdown

BLUE, RED, GREEN = COLORS["weights"], COLORS["gradients"], COLORS["optimizer"]
"""Parameters are blue as weights are, tokens vermilion, what is best green."""


# --- the same work as rectangles of one area


def same_work(
    flops: float, shares: Sequence[float] = (1 / 3, 1, 3), law: str = "besiroglu"
) -> Drawing:
    """Rectangles of parameters by tokens: one area, C/6, and each one's loss."""
    best = compute_optimal(flops, law)
    body, told, x = "", [], 30.0
    for share in shares:
        N = share * best.parameters
        D = float(tokens_for_size(N, flops))
        wide, high = 112 * share**0.5, 112 / share**0.5
        name = f"{units.count(N)} parameters, {units.count(D)} tokens"
        ends = f"loss {loss(N, D, law):.3f}"
        body += _rectangle(x, 272 - high, wide, high, name, share == 1)
        body += _under(x + wide / 2, N, D, ends, share == 1)
        told.append(f"{name}: {ends}")
        x += max(wide, 150) + 82
    body += text(30, 26, f"{units.flops(flops)}, three times", 16, font_weight=700)
    body += text(30, 48, "width: parameters · height: tokens · area: the same work", 14)
    words = f"{units.flops(flops)} spent in three ways, of one area. {'; '.join(told)}."
    return Drawing(body, 744, 362, words)


def _rectangle(x: float, y: float, wide: float, high: float, name: str, best: bool) -> str:
    ink = GREEN if best else BLUE
    return rect(x, y, wide, high, ink, name, opacity=0.85)


def _under(middle: float, N: float, D: float, ends: str, best: bool) -> str:
    """Parameters, tokens and loss under a rectangle."""
    middle = max(middle, 92)
    weight = "700" if best else "400"
    return (
        text(middle, 296, f"{units.size(N)} parameters", 15, "middle")
        + text(middle, 317, f"{units.count(D, 2)} tokens", 15, "middle")
        + text(middle, 341, ends, 16, "middle", font_weight=weight)
    )


# --- loss against size


class Dot(NamedTuple):
    """A shape at the budget: its size, tokens and loss, and whether it trains here."""

    name: str
    parameters: float
    tokens: float
    loss: float
    fits: bool
    answers: bool = True


@dataclass(frozen=True)
class Axes:
    """Sizes to the right, in powers of ten; loss upwards."""

    x0: float
    x1: float
    y0: float
    y1: float
    left, right, top, bottom = 78, 722, 40, 376

    def x(self, parameters: float) -> float:
        """Where a size stands."""
        share = (log10(parameters) - self.x0) / (self.x1 - self.x0)
        return self.left + share * (self.right - self.left)

    def y(self, value: float) -> float:
        """Where a loss stands."""
        share = (value - self.y0) / (self.y1 - self.y0)
        return self.bottom - share * (self.bottom - self.top)

    def holds(self, parameters: float, value: float) -> bool:
        """Whether it lies inside the picture."""
        inside = self.x0 <= log10(parameters) <= self.x1
        return inside and self.y0 <= value <= self.y1


def frontier_picture(front: Frontier, chosen: str = "") -> Drawing:
    """The shapes of a frontier over their sizes, the law's curve, and the best.

    `chosen` is the name of a shape to point at.
    """
    dots = [
        Dot(
            p.name,
            float(p.plan.parameters.active),
            float(p.tokens.likely),
            float(p.loss.likely),
            p.fits,
            p.answers,
        )
        for p in front.points
    ]
    return loss_against_size(dots, work_of(dots), front.law, chosen)


def work_of(dots: Sequence[Dot]) -> float:
    """FLOP of the budget as 6ND: that of the dot with most, for small shapes have
    more attention beside it."""
    return max(6 * dot.parameters * dot.tokens for dot in dots)


def loss_against_size(
    dots: Sequence[Dot],
    flops: float,
    law: str | Law = "besiroglu",
    chosen: str = "",
    before: Dot | None = None,
) -> Drawing:
    """Loss against size at one budget: the curve, the shapes, the best, the chosen.

    The green strip is where the loss is within 0.01 of the best. A cross is a shape
    that does not fit, a ring one that would not answer where it must.
    """
    best = compute_optimal(flops, law)
    lowest = float(loss(best.parameters, best.tokens, law))
    axes = _axes_around(dots, lowest)
    own = next((dot for dot in dots if dot.name == chosen), None)
    body = _grid(axes, flops) + _strip(axes, flops, best, lowest, law)
    body += _curve(axes, flops, law) + _optimum(axes, best, lowest)
    body += "".join(_mark(axes, dot) for dot in dots)
    body += _before(axes, before) if before and before != own else ""
    body += (_own(axes, own) if own else "") + _key(axes, dots)
    return Drawing(body, 744, 500, _told(dots, best, lowest, own))


def _axes_around(dots: Sequence[Dot], lowest: float) -> Axes:
    sizes = [log10(dot.parameters) for dot in dots]
    bottom = floor(5 * (lowest - 0.05)) / 5  # in steps, so that a curve seems to sink
    return Axes(min(sizes) - 0.2, max(sizes) + 0.2, bottom, bottom + 0.5)


def _grid(axes: Axes, flops: float) -> str:
    """Faint lines, sizes, the tokens that each gets, and losses."""
    faint = {"stroke_width": 1, "opacity": 0.18}
    body = text(axes.left, 24, "loss, nats a token", 14, font_weight=600)
    for power in range(ceil(axes.x0), floor(axes.x1) + 1):
        x, N = axes.x(10**power), 10.0**power
        body += line(x, axes.top, x, axes.bottom, **faint)
        body += text(x, axes.bottom + 20, units.size(N), 15, "middle")
        each = units.digits(flops / (6 * N * N), 1)
        body += text(x, axes.bottom + 41, each, 14, "middle", opacity=0.8)
    told = "size, and under it the tokens that each parameter gets"
    body += text(axes.left, axes.bottom + 64, told, 14, opacity=0.8)
    step = 0.1
    value = ceil(axes.y0 / step) * step
    while value < axes.y1:
        y = axes.y(value)
        body += line(axes.left, y, axes.right, y, **faint)
        body += text(axes.left - 10, y + 5, f"{value:.1f}", 14, "end")
        value += step
    return body


def _sizes(axes: Axes, steps: int = 160) -> list[float]:
    width = axes.x1 - axes.x0
    return [10 ** (axes.x0 + width * i / steps) for i in range(steps + 1)]


def _curve(axes: Axes, flops: float, law: str | Law) -> str:
    """The loss that the law expects of each size; dotted beyond the law's runs."""
    found = known_law(law)
    low, high = sizes_known(flops, found)
    body, shown = "", [x for x in _sizes(axes) if axes.holds(x, _at(x, flops, found))]
    for known, sizes in groupby(pairwise(shown), lambda pair: low <= pair[1] <= high):
        pairs = [*sizes]
        points = " ".join(
            f"{axes.x(N):.1f},{axes.y(_at(N, flops, found)):.1f}"
            for N in [pairs[0][0], *(right for _, right in pairs)]
        )
        dots = "" if known else ' stroke-dasharray="2 5"'
        style = f'fill="none" stroke="{BLUE}" stroke-width="3"{dots}'
        body += f'<polyline points="{points}" {style}/>'
    return body


def _at(N: float, flops: float, law: Law) -> float:
    return float(loss(N, tokens_for_size(N, flops), law))


def _strip(axes: Axes, flops: float, best: Optimum, lowest: float, law: str | Law) -> str:
    """Sizes whose loss is within 0.01 of the best: the bottom is flat."""
    near = [N for N in _sizes(axes, 400) if _at(N, flops, known_law(law)) <= lowest + 0.01]
    if not near:
        return ""
    x1, x2 = axes.x(near[0]), axes.x(near[-1])
    band = rect(x1, axes.top, x2 - x1, axes.bottom - axes.top, GREEN, opacity=0.13)
    at = min(max((x1 + x2) / 2, axes.left + 60), axes.right - 60)
    words = f"{units.size(near[0])} to {units.size(near[-1])}", "within 0.01"
    for i, told in enumerate(words):
        band += text(at, axes.top + 20 + 19 * i, told, 14, "middle")
    return band


def _optimum(axes: Axes, best: Optimum, lowest: float) -> str:
    """A diamond at the bottom of the curve, and what it is."""
    if not axes.holds(best.parameters, lowest):
        return ""
    x, y = axes.x(best.parameters), axes.y(lowest)
    points = f"{x:.1f},{y - 9:.1f} {x + 9:.1f},{y:.1f} {x:.1f},{y + 9:.1f} "
    points += f"{x - 9:.1f},{y:.1f}"
    shape = f'<polygon points="{points}" fill="{GREEN}" stroke="currentColor"/>'
    told = f"the law's best: {units.size(best.parameters)}, {units.count(best.tokens)} tokens"
    at = min(max(x, axes.left + 172), axes.right - 172)
    return shape + text(at, y + 28, told, 15, "middle", font_weight=600)


def _mark(axes: Axes, dot: Dot) -> str:
    """A shape: a dot where it fits, a cross where it does not, a ring elsewhere."""
    if not axes.holds(dot.parameters, dot.loss):
        return ""
    x, y = axes.x(dot.parameters), axes.y(dot.loss)
    title = f"{dot.name}, {units.count(dot.tokens, 2)} tokens, loss {dot.loss:.3f}"
    if not dot.fits:
        ink = {"stroke": RED, "stroke_width": 2.5}
        cross = line(x - 5, y - 5, x + 5, y + 5, **ink)
        return cross + line(x - 5, y + 5, x + 5, y - 5, **ink)
    fill = BLUE if dot.answers else "none"
    return _circle(x, y, 6, fill, title, 'stroke="currentColor" stroke-width="1.5"')


def _circle(x: float, y: float, r: float, fill: str, title: str, style: str) -> str:
    told = f"<title>{escape(title)}</title>" if title else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:g}" fill="{fill}" {style}>{told}</circle>'


def _own(axes: Axes, dot: Dot) -> str:
    """The chosen shape: a large dot, and above the picture its tokens and loss."""
    style = 'stroke="currentColor" stroke-width="3"'
    fill, inside = RED if not dot.fits else BLUE, axes.holds(dot.parameters, dot.loss)
    body = ""
    if inside:
        x, y = axes.x(dot.parameters), axes.y(dot.loss)
        body = _circle(x, y, 11, fill, dot.name, style)
    told = f"yours: {dot.name}, {units.count(dot.tokens, 2)} tokens, loss {dot.loss:.3f}"
    told += "" if inside else ", off the top"
    told = told if dot.fits else f"yours: {dot.name}, does not fit on these GPUs"
    body += text(axes.right - 24, 25, told, 15, "end", font_weight=700)
    return body + _circle(axes.right - 10, 20, 8, fill, "", style)


def _before(axes: Axes, dot: Dot) -> str:
    if not axes.holds(dot.parameters, dot.loss):
        return ""
    style = 'stroke="currentColor" stroke-width="1.5" stroke-dasharray="4 3"'
    x, y = axes.x(dot.parameters), axes.y(dot.loss)
    return _circle(x, y, 11, "none", f"at the start: {dot.name}", style)


def _key(axes: Axes, dots: Sequence[Dot]) -> str:
    """What the marks mean, in a row under the picture: those that stand in it."""
    y, ink = 478, 'stroke="currentColor" stroke-width="1.5"'
    body = line(78, y - 5, 106, y - 5, stroke=BLUE, stroke_width=3)
    body += text(114, y, "the law (dotted: beyond its runs)", 14)
    body += _circle(360, y - 5, 6, BLUE, "", ink) + text(374, y, "fits", 14)
    if any(not dot.fits and axes.holds(dot.parameters, dot.loss) for dot in dots):
        cross = {"stroke": RED, "stroke_width": 2.5}
        body += line(417, y - 10, 427, y, **cross) + line(417, y, 427, y - 10, **cross)
        body += text(436, y, "does not", 14)
    if not all(dot.answers for dot in dots):
        body += _circle(516, y - 5, 6, "none", "", ink)
        body += text(530, y, "too large to answer there", 14)
    return body


def _told(dots: Sequence[Dot], best: Optimum, lowest: float, own: Dot | None) -> str:
    """The picture in words."""
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
        words += f". Yours: {own.name}, {units.count(own.tokens, 2)} tokens, {own.loss:.3f}"
    return words + "."


# --- what another size costs


def price_of_size(law: str = "besiroglu") -> Drawing:
    """Times the least work for the same loss, over the share of the best size."""
    shares = [2 ** (i / 80) for i in range(-280, 241)]
    able = [(x, times) for x in shares if (times := _times(x, law)) and times <= 8]
    points = " ".join(f"{_px(x):.1f},{_py(t):.1f}" for x, t in able)
    least = smallest_share(law)
    body = _price_grid() + _never(least) + _over_eight(least, able[0][0])
    body += f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="3"/>'
    told = []
    for x, name in ((0.25, "a quarter"), (0.5, "half"), (1, "the best"), (2, "twice")):
        times = over_training(x, law)
        body += _circle(_px(x), _py(times), 7, BLUE, name, 'stroke="currentColor"')
        body += text(
            _px(x) + (12 if x < 1 else 0),
            _py(times) - (2 if x < 1 else 14),
            f"{times:.2f}" if x != 1 else "1",
            17,
            "start" if x < 1 else "middle",
            font_weight=700,
        )
        told.append(f"{name} size {times:.2f}")
    words = "Times the least work to the same loss, by the share of the best size: "
    ends = f"over 8 below {able[0][0]:.2f}, and below {least:.3f} never"
    return Drawing(body, 744, 356, f"{words}{', '.join(told)}; {ends}.")


def _times(share: float, law: str) -> float:
    try:
        return float(over_training(share, law))
    except ValueError:
        return 0.0


def _px(share: float) -> float:
    return 60 + (log2(share) + 4) / 7 * 650


def _py(times: float) -> float:
    return 290 - log2(times) / 3 * 230


def _price_grid() -> str:
    faint = {"stroke_width": 1, "opacity": 0.18}
    body = text(60, 26, "times the least work for the same loss", 15, font_weight=600)
    for times in (1, 2, 4, 8):
        body += line(60, _py(times), 710, _py(times), **faint)
        body += text(48, _py(times) + 5, f"{times}", 14, "end")
    names = {1 / 16: "1/16", 1 / 8: "1/8", 1 / 4: "1/4", 1 / 2: "1/2", 1: "1"}
    for share, name in (names | {2: "2", 4: "4", 8: "8"}).items():
        body += line(_px(share), 60, _px(share), 290, **faint)
        body += text(_px(share), 312, name, 14, "middle")
    return body + text(710, 338, "times the best size for that loss", 15, "end", font_weight=600)


def _never(least: float) -> str:
    """Sizes that reach the loss on no amount of text."""
    wide = _px(least) - 60
    words = text(60 + wide / 2, 180, "never", 16, "middle", font_weight=700)
    return rect(60, 60, wide, 230, GREY, opacity=0.18) + words


def _over_eight(least: float, first: float) -> str:
    """Sizes that reach it, at a price above the picture's top."""
    return text((_px(least) + _px(first)) / 2, 180, "over 8", 14, "middle")


# --- tokens for each parameter: laws, and what was done


def tokens_each(laws: Mapping[str, float], models: Sequence[Mapping[str, Any]]) -> Drawing:
    """Laws' best tokens a parameter above released models, over the years.

    A model is a row of `published.rows("tokens_per_parameter")`.
    """
    body = _ratio_grid(66 + 24 * len(laws))
    for i, (name, ratio) in enumerate(laws.items()):
        y = 66 + 24 * i
        x = _rx(ratio)
        body += _circle(x, y - 5, 6, GREEN, name, 'stroke="currentColor"')
        told = f"{name}: {units.digits(ratio, 2)}"
        left = 1 < ratio < 20 or not fits(told, 722 - x - 14, 14)
        body += text(x + (-12 if left else 12), y, told, 14, "end" if left else "start")
    top = 96 + 24 * len(laws)
    years = sorted({row["year"] for row in models})
    for i, year in enumerate(years):
        y = top + 26 + 30 * i
        body += text(24, y + 5, f"{year}", 15, font_weight=600)
        for row in models:
            if row["year"] == year:
                x = _rx(row["tokens_per_parameter"])
                style = 'stroke="currentColor" stroke-width="1" opacity="0.85"'
                ink = BLUE if row["kind"] == "dense" else COLORS["activations"]
                body += _circle(x, y, 6, ink, row["name"], style)
    return _ratios_done(body, laws, models, top + 26 + 30 * len(years))


def _rx(ratio: float) -> float:
    """Tokens a parameter from 0.1 to 100,000."""
    return 80 + (log10(ratio) + 1) / 6 * 612


def _ratio_grid(top: float) -> str:
    body = text(24, 30, "what laws call best, at Chinchilla's work", 15, font_weight=600)
    return body + line(24, top, 720, top, opacity=0.3)


def _ratios_done(
    body: str, laws: Mapping[str, float], models: Sequence[Mapping[str, Any]], bottom: float
) -> Drawing:
    """The axis, the twenty, the key, and the words."""
    top = 96 + 24 * len(laws) - 4
    body += text(24, top, "what was trained", 15, font_weight=600)
    body += _circle(450, top - 5, 6, BLUE, "", "") + text(462, top, "dense", 14)
    body += _circle(536, top - 5, 6, COLORS["activations"], "", "")
    body += text(548, top, "experts, by active ones", 14)
    for power in range(-1, 6):
        x = _rx(10.0**power)
        body += line(x, 44, x, bottom, stroke_width=1, opacity=0.15)
        body += text(x, bottom + 22, f"{10.0**power:,.10g}", 14, "middle")
    body += line(_rx(20), 44, _rx(20), bottom, stroke_dasharray="4 4", opacity=0.7)
    body += text(_rx(20), bottom + 22, "20", 14, "middle", font_weight=700)
    body += text(720, bottom + 46, "tokens for each parameter", 15, "end")
    told = ", ".join(f"{name} {units.digits(x, 2)}" for name, x in laws.items())
    ratios = sorted(row["tokens_per_parameter"] for row in models)
    low, high = (units.digits(x, 2) for x in (ratios[0], ratios[-1]))
    words = f"Tokens for each parameter. Laws: {told}. {len(models)} released models: "
    words += f"{low} to {high}."
    return Drawing(body, 744, round(bottom + 62), words)


# --- memory of ways to train


def memory_of_ways(ways: Mapping[str, Breakdown], limits: Mapping[str, float]) -> Drawing:
    """Bars of bytes, stacked from named parts, against the memory of some cards."""
    ways = {WAYS.get(name, name.replace("muon", "Muon")): x for name, x in ways.items()}
    rows = {name: _worded(way) for name, way in ways.items()}
    longest = max(way.total for way in ways.values())
    bottom, body = 62 + 46 * len(rows), ""
    for card, memory in limits.items():
        if memory <= longest:
            x = 196 + memory * 462 / longest
            body += line(x, 34, x, bottom - 6, stroke_dasharray="5 4")
            body += text(x, 24, card, 14, "middle")
    for i, (name, parts) in enumerate(rows.items()):
        body += text(186, 65 + 46 * i, name, 15, "end")
        body += _bar(parts, 44 + 46 * i, 462 / longest)
    body += _parts_key(rows, bottom + 16)
    told = ", ".join(f"{n} {units.gigabytes(way.total)}" for n, way in ways.items())
    return Drawing(body, 744, bottom + 60, f"Bytes at the peak: {told}.")


WAYS = {"adam": "Adam", "adam_8bit": "Adam, 8 bits", "adafactor": "Adafactor"}
"""Names of optimizers as people write them."""

_WORDS = {"main_weights": "main weights", "transient": "logits"}


def _worded(way: Breakdown) -> dict[str, float]:
    """The parts that weigh anything, by their words."""
    parts = {_WORDS.get(name, name): float(size) for name, size in way.parts().items()}
    return {name: size for name, size in parts.items() if size}


def _bar(parts: Mapping[str, float], y: float, scale: float) -> str:
    """A bar of stacked parts, and its whole."""
    body, x = "", 196.0
    for part, size in parts.items():
        title = f"{part} {units.gigabytes(size)}"
        body += rect(x, y, size * scale, 30, COLORS.get(part, GREY), title)
        x += size * scale
    whole = units.gigabytes(sum(parts.values()))
    return body + text(x + 8, y + 21, whole, 15, font_weight=700)


def _parts_key(rows: Mapping[str, Mapping[str, float]], y: float) -> str:
    names = dict.fromkeys(name for parts in rows.values() for name in parts)
    body, x = "", 24.0
    for name in names:
        if x + 30 + 8 * len(name) > 730:
            x, y = 24.0, y + 22
        body += rect(x, y - 11, 14, 14, COLORS.get(name, GREY))
        body += text(x + 20, y + 1, name, 14)
        x += 40 + 8 * len(name)
    return body
