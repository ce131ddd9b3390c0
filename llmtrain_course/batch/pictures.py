"""Drawings of chapter 04: an epoch, a measured step, what a batch costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, log10

from llmtrain_course.batch.formulas import BatchCost
from llmtrain_course.kit.drawing import (
    COLORS,
    GREY,
    Drawing,
    Style,
    circle,
    fits,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_helpers import units

_ACROSS, _NARROW = 680, 380
"""Pixels across on a page, and on a telephone."""

# --- the beginning of an epoch


def epoch_rows(
    micro_batch: int, passes: int, updates: int, samples: int, narrow: bool = False
) -> Drawing:
    """The first updates of an epoch: a row each, a box for a pass, a dot for a sample."""
    (left, top), ink = (16, 58) if narrow else (96, 40), COLORS["activations"]
    dot, first, radius, gap, deep = (7.8, 5.9, 3.2, 8, 60) if narrow else (12, 9, 5, 10, 44)
    key, last = "dot: a sample · box: a micro-batch, one pass", "row: a batch"
    svg = text(left, 24, key if narrow else f"{key} · {last}", 15)
    svg += text(left, 44, last, 15) if narrow else ""
    for row in range(3):
        y = top + deep * row
        if narrow:
            svg += text(left, y + 18, f"update {row + 1}", 14)
            y += 24
        else:
            svg += text(left - 12, y + 22, f"update {row + 1}", 14, "end")
        for k in range(passes):
            x = left + k * (micro_batch * dot + gap)
            wide = micro_batch * dot + 4
            svg += rect(x, y, wide, 34, stroke="currentColor", rx=5, title=f"pass {k + 1}")
            svg += "".join(
                circle(x + first + dot * i, y + 17, radius, ink if row == 0 else GREY)
                for i in range(micro_batch)
            )
    y = top + 3 * deep
    more = f"{updates - 3:,} more, until all"
    more = more if narrow else f"and {more} {samples:,}"
    svg += text(left, y + 16, f"⋮  {more} are used: one epoch", 15)
    batch = micro_batch * passes
    cells = [(f"{updates:,}", "updates"), (f"{updates * passes:,}", "passes")]
    cells += [(f"{batch}", "samples in a batch"), (f"{micro_batch}", "at once in memory")]
    for i, (number, label) in enumerate(cells):
        x, low = left + 148 * i, y + 60
        if narrow:
            x, low = left + 180 * (i % 2), y + 60 + 60 * (i // 2)
        svg += text(x, low, number, 26, font_weight=700) + text(x, low + 22, label, 14)
    words = (
        f"Of {samples:,} samples, {batch} go into each update, in "
        f"{units.plural(passes, 'pass')} of {micro_batch}: {updates:,} updates and "
        f"{updates * passes:,} passes."
    )
    return Drawing(svg, _NARROW if narrow else _ACROSS, y + 98 + 60 * narrow, words)


# --- a measured step by its micro-batch

Bar = tuple[int, float, float, float, float, float]
"""A micro-batch; seconds of work, fixed parts and waiting; measured; bytes of a GPU."""

_MOST, _ROOM, _BASE, _LONG = 160, 90e9, 262, 200
"""Seconds and bytes of the axes, where the bars stand, and the height of both axes."""


def step_by_micro_batch(
    bars: Sequence[Bar], chosen: int, card: float, narrow: bool = False
) -> Drawing:
    """A step's seconds and a GPU's memory by the micro-batch, up to the chosen one.

    A bar is the work, the fixed parts of all passes and the waiting; a ring was
    measured. The line is the memory of the `card`. The axes and the room of all bars stay.
    """
    svg = text(20, 26, "seconds of a step", 16, font_weight=700)
    down = 294 if narrow else 0  # memory stands beside the seconds, or below
    begin, last, base = (24, 354, _BASE + down) if narrow else (436, 664, _BASE)
    svg += text(20 if narrow else 440, 26 + down, "memory of a GPU", 16, font_weight=700)
    for tick in (0, 50, 100, 150):
        y = _BASE - _LONG * tick / _MOST
        svg += line(56, y, 366 if narrow else 390, y, opacity=0.25)
        svg += text(48, y + 5, f"{tick}", 14, "end")
    unit = _LONG / _MOST
    inks = {"work": COLORS["useful"], "fixed parts": COLORS["launching"], "waiting": GREY}
    for i, (micro, work, fixed, waits, measured, memory) in enumerate(bars):
        x, right = (68 + 76 * i, 77 + 76 * i) if narrow else (74 + 80 * i, 446 + 54 * i)
        for at, low in ((x + 26, _BASE), (right + 17, base)):
            weight = 700 if micro == chosen else 400
            svg += text(at, low + 20, f"{micro}", 15, "middle", font_weight=weight)
        if micro > chosen:
            continue
        faint: Style = {} if micro == chosen else {"opacity": 0.45}
        y = float(_BASE)
        for (word, ink), seconds in zip(inks.items(), (work, fixed, waits), strict=True):
            y -= unit * seconds
            svg += rect(x, y, 52, unit * seconds, ink, f"{word}: {seconds:.0f} s", **faint)
        spot = _BASE - unit * measured
        svg += circle(x + 26, spot, 6, "#FFFFFF", "measured", stroke="currentColor")
        if micro == chosen:
            top = min(y, spot - 6) - 8
            svg += text(x + 26, top, f"{measured:.0f} s", 16, "middle", font_weight=700)
        high = _LONG * memory / _ROOM
        svg += rect(right, base - high, 34, high, COLORS["main weights"], **faint)
        if micro == chosen:
            label = units.edited(memory, units.gigabytes)
            svg += text(right + 17, base - high - 8, label, 15, "middle", font_weight=700)
    limit = base - _LONG * card / _ROOM
    svg += line(begin, limit, last, limit, stroke_dasharray="5 4")
    svg += text(last, limit - 8, units.gigabytes(card), 14, "end") + line(begin, base, last, base)
    x, y = 20, 306 + down
    for word, ink in inks.items():
        svg += rect(x, y, 14, 14, ink) + text(x + 20, y + 12, word, 14)
        x += 42 + 8 * len(word)
    if narrow:
        x, y = 20, y + 24
    svg += circle(x + 6, y + 7, 6, "#FFFFFF", stroke="currentColor")
    svg += text(x + 20, y + 12, "measured", 14)
    svg += text(last, y + 12, "sequences in a micro-batch", 14, "end")
    listing = "; ".join(
        f"{bar[0]}: {bar[4]:.0f} s and {units.edited(bar[5], units.gigabytes)}"
        for bar in bars
        if bar[0] <= chosen
    )
    words = f"A step by its micro-batch, as measured, and what a GPU held. {listing}."
    return Drawing(svg, _NARROW if narrow else _ACROSS, y + 26, words)


# --- what a batch costs

_SQUARE, _X0, _Y0 = 250, 64, 300
"""The side of the picture of updates and samples, and its lower left corner."""


def batch_cost_curve(
    cost: BatchCost, batch: float, critical: float, before: BatchCost, narrow: bool = False
) -> Drawing:
    """Updates against tokens, over the fewest of each: a dot on the curve of all batches.

    Both axes are logarithmic, from 1 to 64. A mark on the curve is the critical batch. Below,
    the batch and the critical batch in tokens. The hollow dot is where it began.
    """

    def spot(updates: float, samples: float) -> tuple[float, float]:
        unit = _SQUARE / 6
        return _X0 + unit * log2(updates), _Y0 - unit * log2(samples)

    svg = text(20, 26, "tokens, in multiples of the fewest", 15)
    for power in range(7):
        x, y = spot(2**power, 2**power)
        svg += line(x, _Y0, x, _Y0 + 5) + line(_X0 - 5, y, _X0, y)
        svg += text(x, _Y0 + 20, f"{2**power}", 14, "middle")
        svg += text(_X0 - 9, y + 5, f"{2**power}", 14, "end")
    svg += line(_X0, _Y0, _X0 + _SQUARE, _Y0) + line(_X0, _Y0, _X0, _Y0 - _SQUARE)
    svg += text(_X0 + _SQUARE, _Y0 + 40, "updates, in multiples of the fewest", 15, "end")
    ratios = [2 ** (k / 4) for k in range(-24, 25)]
    curve = [spot(1 + 1 / r, 1 + r) for r in ratios if 1 + max(r, 1 / r) <= 64]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in curve)
    svg += f'<polyline points="{points}" fill="none" stroke="{GREY}" stroke-width="3"/>'
    x, y = spot(2, 2)
    svg += line(x - 9, y + 9, x + 9, y - 9, stroke_width=3)
    svg += text(x + 16, y - 10, "critical batch", 14)
    x, y = spot(float(cost.updates), float(cost.samples))
    svg += line(x, y, x, _Y0, stroke_dasharray="3 3") + line(_X0, y, x, y, stroke_dasharray="3 3")
    old = spot(float(before.updates), float(before.samples))
    svg += circle(*old, 8, "none", "at the start", stroke="currentColor", stroke_dasharray="3 2")
    svg += circle(x, y, 8, COLORS["gradients"], stroke="currentColor", data_moves="batch")

    for i, (name, times) in enumerate({"updates": cost.updates, "tokens": cost.samples}.items()):
        at, high = (20 + 180 * i, 384) if narrow else (380, 96 + 84 * i)
        svg += text(at, high, f"{units.digits(times, 2)} ×", 30, font_weight=700)
        svg += text(at, high + 24, f"the fewest {name}", 15)
    for i, label in enumerate(["few updates: a short run", "few tokens: a cheap one"]):
        svg += text(20 if narrow else 380, (436 if narrow else 262) + 20 * i, label, 14)
    svg += _in_tokens(batch, critical, narrow)
    size = (_NARROW, 562) if narrow else (_ACROSS, 430)
    return Drawing(svg, *size, _cost_in_words(cost))


def _in_tokens(batch: float, critical: float, narrow: bool) -> str:
    """The batch and the critical batch on a line of tokens, from 0.1 to 100 million."""
    left, each, y = (40, 100, 518) if narrow else (70, 190, 386)

    def at(tokens: float) -> float:
        return left + each * (log10(tokens) - 5)

    svg = line(left, y, at(1e8), y)
    for tokens in (1e5, 1e6, 1e7, 1e8):
        svg += line(at(tokens), y - 5, at(tokens), y + 5)
        label = units.short(round(tokens)) if narrow else units.edited(tokens)
        svg += text(at(tokens), y + 24, label, 14, "middle")
    svg += line(at(critical), y - 16, at(critical), y + 8, stroke_width=3)
    anchor = "end" if critical > batch else "start"
    side = "start" if anchor == "end" else "end"
    gap = 6 if anchor == "start" else -6
    svg += text(at(critical) - gap, y - 22, "critical batch", 14, side)
    svg += circle(at(batch), y, 7, COLORS["gradients"], stroke="currentColor", data_moves="batch")
    return svg + text(at(batch) + gap, y - 22, "your batch", 14, anchor)


def _cost_in_words(cost: BatchCost) -> str:
    return (
        "A curve of updates against tokens, each over the fewest; in its middle the critical "
        "batch. The dot stands at "
        f"{units.digits(cost.updates, 2)} times the fewest updates and "
        f"{units.digits(cost.samples, 2)} times the fewest tokens."
    )


# --- how much of a step a stage waits


def stage_time(stages: int, passes: int, waits: float, narrow: bool = False) -> Drawing:
    """A stage's step as a bar: its passes, and what it waits while others fill and empty."""
    across, y = (_NARROW, 60) if narrow else (_ACROSS, 36)
    wide = (across - 40) * (1 - waits)
    svg = text(20, 24, "A GPU in one step", 16, font_weight=700)
    svg += rect(20, y, wide, 36, COLORS["useful"], "at work", rx=3)
    label = units.plural(passes, "pass")
    if fits(label, wide - 8):
        svg += text(20 + wide / 2, y + 23, label, 15, "middle", "#FFFFFF")
    rest = across - 40 - wide
    if rest > 1:
        svg += rect(20 + wide, y, rest, 36, GREY, "waits", opacity=0.18)
        svg += hatched(20 + wide, y, rest, 36)
    share = units.percent(waits) if waits else "nothing"
    note = f"waits {share}: {units.plural(stages - 1, 'turn')} of {passes + stages - 1:,}"
    if stages == 1:
        note = "one stage waits for no other"
    place = (20, 48, note, 15, "start") if narrow else (across - 20, 24, note, 15, "end")
    svg += text(*place)
    words = f"A GPU's step: {label}; {note}."
    return Drawing(svg, across, y + 48, words)
