"""Pictures of chapter 05: bits, an update, gradients, a sum, a parameter's bytes, ZeRO."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, copysign, isfinite, log2, log10

from llmtrain_course.kit.chart import Chart, Column, Dot, Mark, Note, Path, Rule
from llmtrain_course.kit.drawing import COLORS, Style, ghost, line, rect, switch, text
from llmtrain_course.kit.lanes import Bars, Lane, Limit, NumberLine, Point, Span
from llmtrain_course.kit.layout import BESIDE, SMALL, USUAL, Below, NextTo, Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_course.precision.formulas import (
    EXAMPLE_GRADIENTS,
    UpdatedWeight,
    between,
    fate_shares,
    gradient_fates,
    gradient_window,
    neighbours,
    number_at,
    shifted,
    split,
)
from llmtrain_helpers import units
from llmtrain_helpers.precision import NumberFormat, Recipe

_WHITE = "#FFFFFF"
_BOLD: Style = {"font_weight": "bold"}

_UP = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(exponent: int, base: int = 2) -> str:
    """A power as people write it.

    >>> power(-25), power(-8, base=10)
    ('2⁻²⁵', '10⁻⁸')
    """
    return f"{base}{str(exponent).translate(_UP)}"


def number(x: float, digits: int = 8) -> str:
    """A number in at most so many digits, with a raised exponent where it needs one.

    >>> number(0.10009765625), number(-1.5e-8), number(float("inf"))
    ('0.10009766', '−1.5 × 10⁻⁸', 'infinity')
    """
    if not isfinite(x):
        return "NaN" if x != x else ("−" if x < 0 else "") + "infinity"
    sign, label = "−" if x < 0 else "", f"{abs(x):.{digits}g}"
    mantissa, _, exponent = label.partition("e")
    if exponent:
        times = "" if mantissa == "1" else f"{mantissa} × "
        return f"{sign}{times}{power(int(exponent), 10)}"
    whole, point, rest = mantissa.partition(".")
    return f"{sign}{int(whole):,}{point}{rest}"


# --- eight bits, and the numbers that they can make

_GROUPS = ("sign", "exponent", "fraction")
_CLOSE_UP = 16
"""The end of the number line that's seen close up, if the number isn't beyond it."""


def number_of_bits(
    number_format: NumberFormat, value: float, before: float | None = None
) -> Picture:
    """The bits of a number of 8 bits, what each group means, and all its fellows.

    A click on a bit flips it, and the dot on the line of all numbers is dragged: both set the
    control `value`. The numbers up to 16, or to the next power of two, stand close up below.
    `before` is the number of the last picture: bits that differ are outlined, and a ring
    stands where it stood.
    """
    bits = _Bits(number_format, value, value if before is None else before)
    above, ink, last = shifted(number_format, value, 1), COLORS["fraction"], number_format.max
    next_one = f"to the next number: {number(above - value)}" if value < last else "the largest"
    ring = Point(bits.before, shape="ring", size=9, title="before", hidden=bits.before == value)
    everything = NumberLine(
        Scale(-last, last, write=number, ticks=(-last, -256, -128, 0, 128, 256, last)),
        [ring, Point(value, ink, title=f"among all: {number(value)}", size=8, moves="value")],
        spans=[Span(-_CLOSE_UP, _CLOSE_UP, title="closer than can be drawn", opacity=0.5)],
        minor=[x for x in _all_numbers(number_format) if abs(x) >= _CLOSE_UP],
        heading="all numbers of these bits",
    )
    end = min(last, max(_CLOSE_UP, 2 ** ceil(log2(abs(value) or 1))))
    low, high = (-end, 0.0) if value < 0 else (0.0, end)
    ticks = sorted(copysign(end * part, value) for part in (0, 0.25, 0.5, 1))
    fellows = NumberLine(
        Scale(low, high, write=number, ticks=ticks),
        [
            replace(ring, hidden=ring.hidden or not low <= bits.before <= high),
            Point(value, ink, next_one, number(value), size=8),
        ],
        spans=[Span(value, above, ink, opacity=0.5)],
        minor=[x for x in _all_numbers(number_format) if low <= x <= high],
        heading="close up",
    )
    groups = zip(_GROUPS, _digits(number_format, value), strict=True)
    listed = ", ".join(f"{name} {digits}" for name, digits in groups)
    sign, exponent, fraction = bits.means
    words = (
        f"A number of 8 bits: {listed}. It's {sign}{exponent} × {fraction} = "
        f"{number(value)}, and the next number is {number(above - value)} away."
    )
    return Below([bits, everything, fellows], words)


@cache
def _all_numbers(number_format: NumberFormat) -> list[float]:
    """The numbers of a format, so that each stop of a drag needn't list them again."""
    return between(number_format, -number_format.max, number_format.max)


@dataclass(frozen=True)
class _Bits(Picture):
    """The bits of a number in their groups; outlined are those that it doesn't share."""

    number_format: NumberFormat
    value: float
    before: float
    words: str = ""

    @property
    def means(self) -> tuple[str, str, str]:
        """What each group stands for."""
        sign, exponent, fraction = split(self.number_format, self.value)
        power_of_two = power(max(exponent, 1) - self.number_format.bias)
        factor = (exponent > 0) + fraction / 2**self.number_format.mantissa_bits
        return "−" if sign else "+", power_of_two, number(factor)

    @property
    def _sources(self) -> tuple[str, str, str]:
        """How the bits make that."""
        _, exponent, fraction = split(self.number_format, self.value)
        bias, parts = self.number_format.bias, 2**self.number_format.mantissa_bits
        E = max(exponent, 1)
        power_of_two = f"{E} − {bias} = {E - bias}".replace("-", "−")
        return "", power_of_two, f"{int(exponent > 0)} + {fraction}/{parts}"

    def _flipped(self, group: int, bit: int) -> float | None:
        """The number that one other bit makes, if it makes one that's not there yet."""
        fields = list(split(self.number_format, self.value))
        fields[group] ^= 1 << bit
        sign, exponent, fraction = fields
        place = exponent * 2**self.number_format.mantissa_bits + fraction
        value = number_at(self.number_format, -place if sign else place)
        return value if abs(value) <= self.number_format.max and value != self.value else None

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Draw the groups in a row, and the number after them, or below on a phone."""
        narrow = width < BESIDE
        bit, gap = (34, 20) if narrow else (44, 26)
        svg, x, mean = "", left, top + 104
        groups = (_digits(self.number_format, value) for value in (self.value, self.before))
        rows = zip(_GROUPS, *groups, self.means, self._sources, strict=True)
        for name, digits, were, means, source in rows:
            svg += text(x, top + USUAL, name, USUAL, **_BOLD)
            for i, digit in enumerate(digits):
                spot = x + bit * i
                drawn = rect(spot, top + 22, bit - 3, 46, COLORS[name], rx=4)
                drawn += text(spot + (bit - 3) / 2, top + 52, digit, 20, "middle", _WHITE)
                flipped = self._flipped(_GROUPS.index(name), len(digits) - 1 - i)
                label = f"{name} bit {i + 1}, now {digit}: flip it"
                svg += (
                    drawn if flipped is None else switch(drawn, "value", f"{flipped:.10g}", label)
                )
                if digit != were[i]:
                    svg += ghost(spot - 3, top + 19, bit + 3, 52, "flipped")
            middle = x + (bit * len(digits) - 3) / 2
            svg += line(middle, top + 72, middle, mean - 19, stroke=COLORS[name], stroke_width=2)
            svg += text(middle, mean, means, 19, "middle", COLORS[name], **_BOLD)
            svg += text(middle, mean + 22, source, SMALL, "middle") if source else ""
            x += bit * len(digits) + gap
            svg += text(x - gap / 2, mean, "×", 18, "middle") if name == "exponent" else ""
        equal, row = (left, mean + 66) if narrow else (x, top + 54)
        svg += text(equal, row, f"= {number(self.value)}", 28, **_BOLD)
        return svg, max(row, mean + 26)


def _digits(number_format: NumberFormat, value: float) -> tuple[str, str, str]:
    """Sign, exponent and fraction, as 0 and 1."""
    sign, exponent, fraction = split(number_format, value)
    sizes = number_format.exponent_bits, number_format.mantissa_bits
    return f"{sign}", f"{exponent:0{sizes[0]}b}", f"{fraction:0{sizes[1]}b}"


# --- updates, kept or lost

UPDATES = 1000
"""How many updates the axes have room for."""

_EVERY, _BEFORE, _AFTER = 10, 0.006, 0.02
"""Updates from one point of a line to the next; how much of the number line is seen close up."""


def update_lines(
    number_format: NumberFormat,
    update: float,
    weights: Sequence[UpdatedWeight],
    losses: Mapping[str, Sequence[float]],
) -> Picture:
    """Equal updates of a weight, the loss of a fit by as many, and the next update close up.

    `weights` are the weight before and after each update so far; `losses` are those of the
    same fit `alone`, in the format, and `kept`, with main weights.
    """
    updates, now, name = len(weights) - 1, weights[-1], number_format.name
    alone, main = COLORS["weights"], COLORS["main weights"]
    x = Scale(0, UPDATES, "updates", ticks=range(0, UPDATES + 1, UPDATES // 4))
    curves = {
        f"in {name} alone": (alone, [after.direct for after in weights], losses["alone"]),
        "with a main weight in fp32": (main, [after.main for after in weights], losses["kept"]),
    }
    truth = Path(
        [(0, weights[0].main), (UPDATES, weights[0].main + UPDATES * update)],
        width=1.5,
        dash="2 4",
        name="on paper",
    )
    one_weight, fit = list[Mark]([truth]), list[Mark]()
    for label, (ink, sizes, loss) in curves.items():
        one_weight.append(Path(_sampled(sizes), ink, 4, name=label))
        fit.append(Path(_sampled(loss[: updates + 1]), ink, 4))
        apart = ink == alone or loss[updates] != losses["alone"][updates]
        label = number(loss[updates], 2) if apart else ""
        fit.append(Dot(updates, loss[updates], ink, 5, label=label))
    one_weight += [
        Dot(updates, now.copy, main, 7, title=f"its copy in {name}: {number(now.copy)}"),
        Dot(updates, now.direct, alone, 8, title=number(now.direct), moves="updates"),
    ]
    y = Scale(1, 6, "a weight")
    ticks = [1e-5, 1e-3, 0.1, 10]
    loss_axis = Scale(1e-5, 10, "the loss of a small fit", _power_of_ten, log=True, ticks=ticks)
    above = NextTo(Chart(x, y, one_weight, height=110), Chart(x, loss_axis, fit, height=110))
    words = (
        f"A weight of 1 after {units.plural(updates, 'update')} of {number(update)}: in {name} "
        f"alone, it's {number(now.direct)}. A main weight in fp32 is {number(now.main, 5)}, and "
        f"its {name} copy is {number(now.copy)}. The loss of a small fit is "
        f"{losses['alone'][updates]:.2g} "
        f"alone, and {losses['kept'][updates]:.2g} with main weights."
    )
    return Below([above, _next_update(number_format, now.direct, update, updates > 0)], words)


def _sampled(values: Sequence[float]) -> list[tuple[float, float]]:
    """A curve's points, by their place: every tenth and the last."""
    places = [*range(0, len(values) - 1, _EVERY), len(values) - 1]
    return [(place, values[place]) for place in places]


def _power_of_ten(x: float) -> str:
    return power(round(log10(x)), 10)


def _next_update(
    number_format: NumberFormat, weight: float, update: float, answered: bool
) -> Picture:
    """The numbers around a weight, the next update, and, hatched, what's rounded back to it."""
    left, right = ((weight + x) / 2 for x in neighbours(number_format, weight))
    end, ink = weight + update, COLORS["gradients"]
    rounded = number(float(number_format.round(end)))
    sum_up = f"{number(weight)} + {number(update)} → {rounded}"
    return NumberLine(
        Scale(
            weight - _BEFORE, weight + _AFTER, ticks=(weight, weight + 2**-6), write="{:g}".format
        ),
        [
            Point(end, ink, f"+ {number(update)}", shape="tick"),
            Point(weight, COLORS["weights"], title=number(weight)),
        ],
        # before the first update what's rounded back would answer what the page asks
        spans=[
            Span(weight, end, ink, opacity=0.4),
            Span(left, right, "currentColor", opacity=0.2, hatch=True, hidden=not answered),
        ],
        heading=f"the next update in {number_format.name}, close up",
        note=sum_up if answered else "not yet",
        minor=between(number_format, weight - _BEFORE, weight + _AFTER),
    )


# --- gradients, and what a format keeps of them

_FIRST, _LAST, _WINDOW, _TOP = -46, 34, 1.18, 1.36
"""Powers of two at which the axis begins and ends; how high a format's window is and the plane,
over the highest column."""


def gradient_bars(number_format: NumberFormat, scale: float) -> Picture:
    """Gradients by their size, times a loss scale, before the window that a format keeps.

    The window stands still, and the columns move; their first place is dotted. Hatched ones
    become 0, and those past the window overflow.
    """
    low, high = (log2(x) for x in gradient_window(number_format))
    name, moved = number_format.name, log2(scale)
    ticks = range(-40, _LAST, 10)
    x = Scale(
        _FIRST, _LAST, "size of a gradient, as it's stored", lambda k: power(int(k)), ticks=ticks
    )
    window, keeps = COLORS["saving"], f"what {name} keeps"
    marks: list[Mark] = [
        Column(low, high, _WINDOW, window, value=keeps, title=keeps, opacity=0.13, bold=True),
        *(Rule(at, "x", "", _WINDOW, window, 3, hidden=not x.holds(at)) for at in (low, high)),
        Note(low - 1, 1.06, "become 0", anchor="end", hidden=not x.holds(low)),
        Note(high + 1, 1.06, "overflow", anchor="start", hidden=not x.holds(high)),
        *_columns(number_format, scale, moved),
        Path([*EXAMPLE_GRADIENTS.items()], width=1.5, dash="2 4", hidden=scale == 1),
    ]
    shares = fate_shares(number_format, scale).items()
    listed = ", ".join(f"{units.share(part)} {fate}" for fate, part in shares if part)
    words = (
        f"Gradients times {number(scale, 9)} in front of the window of {name}, from "
        f"{power(round(low))} to {power(round(high))}. Of them: {listed}."
    )
    return Chart(x, Scale(0, _TOP, "how many gradients", ticks={}), marks, words, height=190)


def _columns(number_format: NumberFormat, scale: float, moved: float) -> Iterator[Column]:
    """How many gradients there are of each power of two, and what becomes of them."""
    colors = {"kept": COLORS["gradients"], "lost": "none", "too large": COLORS["expert"]}
    for k, fate in gradient_fates(number_format, scale).items():
        left, right, hatch = k + moved - 0.4, k + moved + 0.4, fate == "lost"
        yield Column(left, right, EXAMPLE_GRADIENTS[k], colors[fate], title=fate, hatch=hatch)


# --- ones, added one by one

_ONES, _CLOSE = 4096, 4
"""Where the axes of the sum end, and how much of the number line is seen close up."""


def sum_line(number_format: NumberFormat, ones: int, total: float) -> Picture:
    """The sum of ones beside how many there were, and the numbers above it, enlarged.

    `total` is what the format makes of so many `ones` added one after the other.
    """
    ink, stall = COLORS["fraction"], min(total, ones)
    ticks = range(_ONES // 4, _ONES + 1, _ONES // 4)
    summed = Chart(
        Scale(0, _ONES, "ones added", ticks=ticks),
        Scale(0, _ONES, "the sum (dotted: what it should be)", ticks=ticks),
        [
            Path([(0, 0), (_ONES, _ONES)], width=1.5, dash="2 4"),
            Path([(0, 0), (stall, stall), (ones, total)], ink, 4),
            Dot(ones, total, ink, 8, title=f"{total:,.0f}", moves="ones"),
            Dot(ones, ones, shape="hollow", title=f"{ones:,}"),
        ],
        height=200,
    )
    step, after = number_format.spacing(total), number_format.round(total + 1)
    one_more = f"{total:,.0f} + 1 → {after:,.0f}"
    drawn, solid = step >= 1 / 16, "closer than can be drawn"
    close_up = NumberLine(
        Scale(total - 0.3, total + _CLOSE, ticks=(total, total + max(step, 2))),
        [Point(after, ink, one_more, title="after one more", size=8, bold=True)],
        spans=[
            Span(total, total + _CLOSE, ink, title=solid, opacity=0.35, hidden=drawn),
            Span(total, total + 1, COLORS["gradients"], title="+ 1", opacity=0.6),
        ],
        heading="close up: add one more",
        note=f"to the next number: {number(step, 4)}",
        minor=[total + k * step for k in range(int(_CLOSE / step) + 1)] if drawn else (),
    )
    words = (
        f"{ones:,} ones, added one by one in {number_format.name}, give {total:,.0f}. "
        f"The next number is {number(step, 4)} away, and adding another 1 gives {after:,.0f}."
    )
    return NextTo(summed, close_up, words, share=0.6, middle=True)


# --- what a parameter weighs

_MOST = 20
"""Bytes of the heaviest recipe."""

NEEDS = {
    "weights": "for every product",
    "gradients": "what backward computes",
    "main_gradients": "so that no sum stalls",
    "main_weights": "so that no update is lost",
    "optimizer": "Adam's two averages",
}
"""What each part of a recipe is for."""


def part_color(part: str) -> str:
    """The colour of a part of a recipe."""
    return COLORS[part.replace("_", " ")]


def bytes_by_part(recipe: Recipe, before: Recipe) -> Picture:
    """A parameter's bytes, part by part and in one row; `before` leaves its outlines."""
    parts, lanes = recipe.parts(), list[Lane]()
    for part, size in parts.items():
        was = before.parts()[part]
        outline = Span(0, was, title="before", previous=True, hidden=was in (0, size))
        need = Point(max(size, was), label=_need(recipe, part), shape="none")
        lanes.append(
            Lane(part.replace("_", " "), [*_cells({part: size}), outline, need], bold=True)
        )
    total, was = recipe.total, before.total
    outline = Span(0, was, title="before", previous=True, hidden=was == total)
    together = Point(max(total, was), label=f"{total:g}", shape="none", bold=True)
    lanes.append(Lane("together", [*_cells(parts), outline, together], bold=True, height=38))
    listed = ", ".join(f"{part.replace('_', ' ')} {size:g}" for part, size in parts.items() if size)
    words = f"What a parameter needs, in bytes: {listed}, together {total:g}."
    x = Scale(0, _MOST + 2.5, "bytes", ticks=range(0, _MOST + 1, 4))
    return Bars(x, lanes, words, lane=28, keyed=False)


def _need(recipe: Recipe, part: str) -> str:
    """What a part is for, or that this recipe does without it."""
    size = recipe.parts()[part]
    if not size:
        return "none"
    if part == "gradients" and size == 4 and recipe.weights < 4:
        return "in 32 bits, so no sum stalls"
    return NEEDS[part]


def _cells(parts: Mapping[str, float]) -> Iterator[Span]:
    """A cell for each byte, part after part."""
    start = 0
    for part, size in parts.items():
        for k in range(start, start + int(size)):
            yield Span(k, k + 0.92, part_color(part), title=part.replace("_", " "))
        start += int(size)


def _stretches(parts: Mapping[str, float]) -> Iterator[Span]:
    """A stretch for each part that is there, one after the other."""
    end = 0.0
    for part, size in parts.items():
        if size:
            name = "optimizer (Adam)" if part == "optimizer" else part.replace("_", " ")
            yield Span(end, end + size, part_color(part), title=part, name=name)
        end += size


# --- ZeRO: who keeps which slice


def slices_of_gpus(
    whole: Mapping[str, float], kept: Mapping[str, float], replicas: int, memory: float
) -> Picture:
    """GPUs side by side, each with the slices of the states that it keeps; below, their bytes.

    `whole` are the bytes of each part, and `kept` what one GPU keeps of it. A slice that
    has left is pale. The axis of bytes ends at all states, and has the GPU's memory.
    """
    total, together = sum(whole.values()), sum(kept.values())
    gpus = Scale(0.5, replicas + 0.5, "GPU", ticks=range(1, replicas + 1))
    size = Scale(0, total, "all states: what each GPU stores", ticks={})
    columns = [
        column
        for gpu in range(replicas)
        for column in _slices(whole, kept, gpu, 0.42 - 0.3 / replicas)
    ]
    each = [*_stretches(kept), Span(0, total, "none", title="all states", outline=True)]
    bar = Bars(
        Scale(0, total, ticks={0: "0", total: units.gigabytes(total)}),
        [Lane("", each)],
        limits=[Limit(memory, f"its memory: {units.gigabytes(memory)}", width=3)],
        heading="on each GPU",
        verdict=units.gigabytes(together),
    )
    listed = ", ".join(
        f"{part.replace('_', ' ')} {units.gigabytes(kept[part])} of {units.gigabytes(size)}"
        for part, size in whole.items()
        if size
    )
    words = (
        f"{units.plural(replicas, 'GPU')}, each of which stores: {listed}; together "
        f"{units.gigabytes(together)}."
    )
    return Below([Chart(gpus, size, columns, height=150), bar], words)


def _slices(
    whole: Mapping[str, float], kept: Mapping[str, float], gpu: int, half: float
) -> Iterator[Column]:
    """A GPU's column, from the top down: its own slice of each part, and pale the others'."""
    left, right, top = gpu + 1 - half, gpu + 1 + half, sum(whole.values())
    for part, size in whole.items():
        color, own = part_color(part), kept[part]
        if own < size:
            title = f"{part}: on the others"
            yield Column(left, right, top, color, top - size, title, opacity=0.2)
        first = top - own * gpu if own < size else top
        if size:
            yield Column(left, right, first, color, first - own, part)
        top -= size


# --- the panel: all states, under a GPU's memory


def on_a_gpu(
    recipe: Mapping[str, float],
    parts: Mapping[str, float],
    memory: float,
    before: float | None = None,
) -> Picture:
    """The bytes of a parameter, and of all on one GPU, under its memory's line.

    The axis is twice the memory, whatever the model: the line stands in the middle.
    `before` is the total of the last picture.
    """
    total, end = sum(parts.values()), 2 * memory
    was = total if before is None else before
    cells = Bars(
        Scale(0, _MOST),
        [Lane("", [*_cells(recipe)])],
        heading=f"A parameter: {sum(recipe.values())} bytes",
        axis=False,
        keyed=False,
    )
    start = f"dashed: {units.gigabytes(was)} at the start"
    over = Span(memory, total, title="over its memory", hatch=True, hidden=total <= memory)
    outline = Span(0, was, title="at the start", name=start, previous=True, hidden=was == total)
    all_of_it = Bars(
        Scale(0, end, ticks={0: "0", end: units.gigabytes(end)}),
        [Lane("", [*_stretches(parts), over, outline])],
        limits=[Limit(memory, f"memory: {units.gigabytes(memory)}", width=3, bold=True)],
        heading=f"on each GPU: {units.gigabytes(total)}",
        verdict="far beyond this scale" if total > end else "",
        lane=50,
    )
    listed = ", ".join(
        f"{part.replace('_', ' ')} {units.gigabytes(size)}" for part, size in parts.items() if size
    )
    fits = "fits into" if total <= memory else "is more than"
    words = f"On each GPU, {listed}: {units.gigabytes(total)} {fits} its {units.gigabytes(memory)}."
    return Below([cells, all_of_it], words)
