"""Drawings of chapter 05: bits, an update, gradients, a sum, a parameter's bytes, ZeRO."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, log2

from llmtrain_course.kit.drawing import (
    COLORS,
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
from llmtrain_course.precision.formulas import (
    EXAMPLE_GRADIENTS,
    UpdatedWeight,
    between,
    fate_shares,
    gradient_fates,
    gradient_window,
    neighbours,
    split,
)
from llmtrain_helpers import units
from llmtrain_helpers.precision import NumberFormat, Recipe

WIDTH, NARROW = 700, 360
"""As on a page, and as on a telephone."""

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
_LONGEST = 16


def eight_bits(
    number_format: NumberFormat, value: float, before: float | None = None, width: int = WIDTH
) -> Drawing:
    """The bits of a number of 8 bits, what each group means, and all its fellows up to 16.

    `before` is the number of the last picture: bits that differ are outlined, and a ring
    stands where it stood.
    """
    sign, exponent, fraction = split(number_format, value)
    groups = _bits(number_format, value)
    old = _bits(number_format, value if before is None else before)
    k, parts = exponent - number_format.bias, 2**number_format.mantissa_bits
    means = {
        "sign": "−" if sign else "+",
        "exponent": power(k),
        "fraction": number(1 + fraction / parts),
    }
    sources = {
        "sign": "",
        "exponent": f"{exponent} − {number_format.bias} = {k}".replace("-", "−"),
        "fraction": f"1 + {fraction}/{parts}",
    }
    narrow = width < WIDTH
    left, bit, gap = (16, 34, 20) if narrow else (30, 44, 26)
    svg, x = "", float(left)
    for name, digits, were in zip(_GROUPS, groups, old, strict=True):
        wide = bit * len(digits)
        svg += text(x, 24, name, 15, **_BOLD)
        for i, digit in enumerate(digits):
            spot = x + bit * i
            svg += rect(spot, 34, bit - 3, 46, COLORS[name], rx=4)
            svg += text(spot + (bit - 3) / 2, 64, digit, 20, "middle", _WHITE)
            svg += ghost(spot - 3, 31, bit + 3, 52, "flipped") if digit != were[i] else ""
        middle = x + (wide - 3) / 2
        svg += line(middle, 84, middle, 98, stroke=COLORS[name], stroke_width=2)
        svg += text(middle, 118, means[name], 19, "middle", COLORS[name], **_BOLD)
        svg += text(middle, 140, sources[name], 15, "middle") if sources[name] else ""
        x += wide + gap
    svg += text(x - gap / 2 - 3 * bit - gap, 118, "×", 18, "middle")
    equal, row = (float(left), 184) if narrow else (x - 4, 66)
    svg += text(equal, row, f"= {number(value)}", 28, **_BOLD)

    # every number that these bits can make, up to 16
    def at(y: float) -> float:
        return left + (width - 2 * left) * y / _LONGEST

    axis = 274 if narrow else 236
    svg += line(at(0), axis, at(_LONGEST), axis)
    for y in between(number_format, 0, _LONGEST):
        mark = y == 0 or (y >= 1 and log2(y).is_integer())
        svg += line(at(y), axis - (12 if mark else 7), at(y), axis + (12 if mark else 7))
        svg += text(at(y), axis + 32, f"{y:g}", 15, "middle") if mark else ""
    if before is not None and before != value:
        svg += circle(at(before), axis, 7, "none", "before", stroke="currentColor", stroke_width=2)
    svg += circle(at(value), axis, 8, COLORS["fraction"], number(value))
    step = number_format.spacing(value)
    y = axis - 26
    svg += line(at(value), y, at(value + step), y, stroke=COLORS["fraction"], stroke_width=4)
    for end in (value, value + step):
        svg += line(at(end), y - 6, at(end), y + 6, stroke=COLORS["fraction"], stroke_width=2)
    words = f"to the next number: {number(step)}"
    near = narrow or at(value) < 420
    label = at(value + step) + 10 if near else at(value) - 10
    if narrow:
        label, y = min(at(value), width - 8.4 * len(words)), y - 18
    svg += text(label, y + 5, words, 15, "start" if near else "end")
    bits = ", ".join(f"{name} {x}" for name, x in zip(_GROUPS, groups, strict=True))
    return Drawing(
        svg,
        width,
        axis + 44,
        f"A number of 8 bits: {bits}. It is {means['sign']}{means['exponent']} × "
        f"{means['fraction']} = {number(value)}, and the next one is {number(step)} away.",
    )


def _bits(number_format: NumberFormat, value: float) -> tuple[str, str, str]:
    """Sign, exponent and fraction, as 0 and 1."""
    sign, exponent, fraction = split(number_format, value)
    sizes = number_format.exponent_bits, number_format.mantissa_bits
    return f"{sign}", f"{exponent:0{sizes[0]}b}", f"{fraction:0{sizes[1]}b}"


# --- updates, kept or lost

_LOW, _HIGH = 0.995, 1.0825


def update_lines(
    number_format: NumberFormat,
    start: float,
    update: float,
    updates: int,
    after: UpdatedWeight,
    width: int = WIDTH,
) -> Drawing:
    """A weight and its updates on two lines: kept in a format alone, and beside a main weight.

    A mark is a number of the format. `start` is the weight before the `updates`, and
    `after` where they left it; hatched is what is rounded back to where it is.
    """
    narrow = width < WIDTH
    left_end, right_end = (16, width - 16) if narrow else (30, 670)

    def at(x: float) -> float:
        return left_end + (right_end - left_end) * (x - _LOW) / (_HIGH - _LOW)

    marks, weight = between(number_format, _LOW, _HIGH), COLORS["weights"]
    top, low = (104, 262) if narrow else (92, 228)
    raised = 24 if narrow else 0  # labels stand above the marks that they have no room beside
    name = number_format.name
    svg = text(left_end, 24, f"kept in {name} alone", 16, **_BOLD)
    copy = f"the {name} copy of a main weight{'' if narrow else ' in fp32'}"
    svg += text(left_end, low - 70 - raised / 2, copy, 16, **_BOLD)
    for y in (top, low):
        svg += line(left_end, y, right_end, y)
        svg += "".join(line(at(x), y - 7, at(x), y + 7) for x in marks)
        for x in (1, 1.03125, 1.0625):
            svg += line(at(x), y - 12, at(x), y + 12, stroke_width=2)
            svg += text(at(x), y + 32, f"{x:g}", 15, "middle")

    # alone: what is rounded back, the next update, and where it leads
    below, above = neighbours(number_format, after.direct)
    left, right = ((after.direct + x) / 2 for x in (below, above))
    if updates:  # before the first one it would answer what the page asks
        svg += hatched(at(left), top - 14, at(right) - at(left), 28, 5)
    end, ink = at(min(after.direct + update, _HIGH)), COLORS["gradients"]
    svg += line(at(after.direct), top - 26, end, top - 26, stroke=ink, stroke_width=4)
    svg += line(end, top - 33, end, top - 10, stroke=ink, stroke_width=3)
    anchor, spot = ("end", at(after.direct) - 12) if end > 480 else ("start", end + 12)
    label = f"the next update: + {number(update)}"
    if narrow:
        anchor, spot = "start", min(at(after.direct), width - 8 * len(label))
    svg += text(spot, top - 24 - raised, label, 15, anchor)
    svg += circle(at(after.direct), top, 8, weight, f"{number(after.direct)}")

    # with a main weight: every update is a dot, and the copy stands on a mark
    for k in range(updates + 1):
        fill = COLORS["main weights"]
        svg += circle(at(start + k * update), low - 24, 5, fill, f"after {k}")
    svg += line(at(after.main), low - 19, at(after.copy), low - 8, stroke_width=1.5)
    svg += circle(at(after.copy), low, 8, weight, f"{number(after.copy)}")
    words = f"main weight: {number(after.main, 5)}"
    spot = at(after.main) + 14
    if narrow:
        spot = min(spot, width - 8.5 * len(words))
    svg += text(spot, low - 20 - raised, words, 15)
    return Drawing(
        svg,
        width,
        low + 48,
        f"A weight of {number(start)} after {units.plural(updates, 'update')} of "
        f"{number(update)}: in {name} alone it is {number(after.direct)}. A main weight "
        f"in fp32 is {number(after.main, 5)}, and its {name} copy {number(after.copy)}.",
    )


# --- gradients, and what a format keeps of them

_FIRST, _LAST = -44, 24


def gradient_bars(number_format: NumberFormat, scale: float, width: int = WIDTH) -> Drawing:
    """Gradients by their size, times a loss scale, before the window that a format keeps.

    The window stands still, and the bars move; their first place is dotted. Hatched ones
    become 0, and those past the window overflow.
    """
    narrow = width < WIDTH
    left, each, top = (16, 4.8, 50) if narrow else (30, 9.4, 40)

    def at(exponent: float) -> float:
        return left + each * (min(max(exponent, _FIRST), _LAST) - _FIRST)

    base = 208
    low, high = (log2(x) for x in gradient_window(number_format))
    kept = COLORS["saving"]
    svg = rect(at(low), top, at(high) - at(low), base - top, kept, fill_opacity=0.13)
    for edge in (low, high):
        if _FIRST < edge < _LAST:
            svg += line(at(edge), top, at(edge), base, stroke=kept, stroke_width=3)
    middle = (at(low) + at(high)) / 2
    name = number_format.name
    svg += text(middle, 20 if narrow else 26, f"what {name} keeps", 16, "middle", **_BOLD)
    label_y = 42 if narrow else 56
    if low > _FIRST:
        svg += text(at(low) - 10, label_y, "become 0", 15, "end")
    if high < _LAST:
        spot = min(at(high) + 8, width - 72)
        svg += text(spot, label_y, "overflow", 15)
    tallest, moved = max(EXAMPLE_GRADIENTS.values()), log2(scale)
    outline = []
    for k, fate in gradient_fates(number_format, scale).items():
        tall = (base - 66) * EXAMPLE_GRADIENTS[k] / tallest
        x, y, wide = at(k + moved) - each / 2 + 1, base - tall, each - 2
        outline.append(f"{at(k):.1f},{y:.1f}")
        if fate == "kept":
            svg += rect(x, y, wide, tall, COLORS["gradients"], fate)
        elif fate == "lost":
            svg += rect(x, y, wide, tall, "none", fate, stroke="currentColor", stroke_width=1)
            svg += hatched(x, y, wide, tall, 5)
        else:
            svg += rect(x, y, wide, tall, COLORS["expert"], fate)
    if scale > 1:
        dotted = 'fill="none" stroke="currentColor" stroke-width="1.5" stroke-dasharray="2 4"'
        svg += f'<polyline points="{" ".join(outline)}" {dotted}/>'
    svg += line(left, base, width - left, base)
    for k in range(-40, 21, 10):
        svg += line(at(k), base, at(k), base + 7) + text(at(k), base + 25, power(k), 15, "middle")
    svg += text(width / 2, base + 52, "size of a gradient, as it is stored", 15, "middle")
    shares = fate_shares(number_format, scale).items()
    words = ", ".join(f"{units.share(part)} {fate}" for fate, part in shares if part)
    return Drawing(
        svg,
        width,
        268,
        f"Gradients times {number(scale, 9)} before the window of {name}, from "
        f"{power_near(low)} to {power_near(high)}. Of them: {words}.",
    )


def power_near(exponent: float) -> str:
    """A power of two, rounded to a whole one."""
    return power(round(exponent))


# --- ones, added one by one

_ONES = 4096


def sum_line(number_format: NumberFormat, ones: int, total: float, width: int = WIDTH) -> Drawing:
    """The sum of ones beside how many there were, and the numbers above it, enlarged.

    `total` is what the format makes of so many `ones` added one after the other.
    """
    narrow = width < WIDTH
    end = 334 if narrow else 404

    def at(x: float) -> float:
        return 74 + (end - 74) * x / _ONES

    def up(y: float) -> float:
        return 232 - 200 * y / _ONES

    svg = line(74, 232, end, 232) + line(74, 232, 74, 28)
    for x in (1024, 2048, 3072, 4096):
        svg += line(at(x), 232, at(x), 238) + line(68, up(x), 74, up(x))
        svg += text(at(x), 256, f"{x:,}", 15, "middle") + text(62, up(x) + 5, f"{x:,}", 15, "end")
    svg += text(239, 280, "ones added", 15, "middle")
    svg += text(
        20 if narrow else 84, 15 if narrow else 24, "the sum, and dotted what it should be", 15
    )
    right: Style = {"stroke_dasharray": "2 4"}
    svg += line(at(0), up(0), at(_ONES), up(_ONES), **right)
    stall, ink = min(total, ones), COLORS["fraction"]
    svg += line(at(0), up(0), at(stall), up(stall), stroke=ink, stroke_width=4)
    svg += line(at(stall), up(stall), at(ones), up(total), stroke=ink, stroke_width=4)
    svg += circle(at(ones), up(total), 8, ink, f"{total:,.0f}", data_moves="ones")
    svg += circle(at(ones), up(ones), 5, "none", f"{ones:,}", stroke="currentColor", stroke_width=2)

    # the numbers from the sum upwards, four of them wide
    left, y = (16, 312) if narrow else (446, 84)

    def close_up(x: float) -> float:
        return left + 16 + 48 * (x - total)

    step = number_format.spacing(total)
    svg += text(left, y, "close up: add one more", 15, **_BOLD)
    svg += line(left, y + 80, left + 230, y + 80)
    if 48 * step >= 3:
        for k in range(int(4 / step) + 1):
            mark = close_up(total + k * step)
            svg += line(mark, y + 68, mark, y + 92, stroke_width=2)
    else:
        svg += rect(left + 16, y + 70, 192, 20, ink, "closer than can be drawn", fill_opacity=0.35)
    svg += text(close_up(total), y + 116, f"{total:,.0f}", 15, "middle", **_BOLD)
    next_one = max(step, 2)
    svg += text(close_up(total + next_one), y + 116, f"{total + next_one:,.0f}", 15, "middle")
    after = number_format.round(total + 1)
    svg += arrow(close_up(total), y + 40, close_up(total + 1), y + 40, stroke=COLORS["gradients"])
    svg += text(close_up(total + 1) + 10, y + 45, "+ 1", 15)
    svg += line(close_up(total + 1), y + 40, close_up(after), y + 74, stroke=COLORS["gradients"])
    svg += circle(close_up(after), y + 80, 8, ink, "after one more")
    svg += text(left, y + 148, f"to the next number: {number(step, 4)}", 15)
    return Drawing(
        svg,
        width,
        y + 164 if narrow else 292,
        f"{ones:,} ones added one by one in {number_format.name} make {total:,.0f}. "
        f"The next number is {number(step, 4)} away, and one more makes {after:,.0f}.",
    )


# --- what a parameter weighs

_BYTE, _MOST = 25, 20

NEEDS = {
    "weights": "for every product",
    "gradients": "what backward leaves",
    "main_gradients": "so that no sum stalls",
    "main_weights": "so that no update is lost",
    "optimizer": "Adam's two averages",
}
"""What each part of a recipe is for."""


def part_color(part: str) -> str:
    """The colour of a part of a recipe."""
    return COLORS[part.replace("_", " ")]


def parameter_bytes(recipe: Recipe, before: Recipe, width: int = WIDTH) -> Drawing:
    """A parameter's bytes, part by part and in one row; `before` leaves its outlines."""
    narrow = width < WIDTH
    left, byte, deep = (16, 16, 62) if narrow else (162, _BYTE, 38)
    name = (left, 0, "start") if narrow else (150, 21, "end")  # where a word stands by its cells
    svg = ""
    for row, (part, size) in enumerate(recipe.parts().items()):
        y = (30 if narrow else 14) + deep * row
        svg += text(name[0], y + name[1] - 8 * narrow, part.replace("_", " "), 15, name[2], **_BOLD)
        svg += _cells(left, y, size, part, byte=byte)
        was = before.parts()[part]
        if was != size:
            svg += ghost(left - 2, y - 2, was * byte + 2, 34, "before") if was else ""
        need = _need(recipe, part)
        svg += text(left + byte * max(size, was) + 12, y + 21, need, 15)
    y = 340 if narrow else 226
    x = float(left)
    svg += text(
        name[0],
        y - 10 if narrow else y + 25,
        "together, in bytes" if narrow else "together",
        15,
        name[2],
        **_BOLD,
    )
    for part, size in recipe.parts().items():
        svg += _cells(x, y, size, part, 38, byte)
        x += byte * size
    if before.total != recipe.total:
        svg += ghost(left - 2, y - 3, before.total * byte + 2, 44, "before")
    if narrow:
        svg += text(width - 16, y - 10, f"{recipe.total:g}", 20, "end", **_BOLD)
    else:
        svg += text(x + 10, y + 27, f"{recipe.total:g}", 20, **_BOLD)
    svg += line(left - 2, y + 46, left + byte * _MOST, y + 46)
    for k in range(0, _MOST + 1, 4):
        spot = left - 1 + byte * k
        svg += line(spot, y + 46, spot, y + 52) + text(spot, y + 70, f"{k}", 15, "middle")
    svg += text(150, y + 70, "bytes", 15, "end") if not narrow else ""
    listed = ", ".join(
        f"{part.replace('_', ' ')} {size:g}" for part, size in recipe.parts().items() if size
    )
    return Drawing(
        svg,
        width,
        y + 80,
        f"What a parameter weighs, in bytes: {listed}; together {recipe.total:g}.",
    )


def _need(recipe: Recipe, part: str) -> str:
    """What a part is for, or that this recipe does without it."""
    size = recipe.parts()[part]
    if not size:
        return "none"
    if part == "gradients" and size == 4 and recipe.weights < 4:
        return "in 32 bits, so that no sum stalls"
    return NEEDS[part]


def _cells(
    x: float, y: float, size: float, part: str, tall: float = 30, byte: float = _BYTE
) -> str:
    """A cell for each byte."""
    word = part.replace("_", " ")
    return "".join(
        rect(x + byte * k, y, byte - 2, tall, part_color(part), word, rx=3)
        for k in range(int(size))
    )


# --- ZeRO: who keeps which slice


def slices(
    whole: Mapping[str, float],
    kept: Mapping[str, float],
    replicas: int,
    memory: float,
    width: int = WIDTH,
) -> Drawing:
    """GPUs side by side, each with the slices of the states that it keeps; below, their bytes.

    `whole` are the bytes of each part, and `kept` what one GPU keeps of it. A slice that
    has left is an outline. The axis of bytes ends at all states, and has the GPU's memory.
    """
    total, svg = sum(whole.values()), ""
    narrow = width < WIDTH
    left, down = (16, 24) if narrow else (30, 0)  # the key takes a second row
    long = width - 2 * left
    room = long / replicas
    across = min(room - (5 if narrow else 10), 76)
    for gpu in range(replicas):
        x, y = left + room * gpu + (room - across) / 2, 40.0
        name = f"{gpu + 1}" if room < 70 else f"GPU {gpu + 1}"
        svg += text(x + across / 2, 24, name, 13 if room < 22 else 15, "middle")
        for part, size in whole.items():
            tall = 190 * size / total
            if kept[part] < size:
                svg += rect(
                    x + 1,
                    y,
                    across - 2,
                    tall - 2,
                    "none",
                    f"{part}: left to the others",
                    stroke=part_color(part),
                    stroke_dasharray="2 3",
                )
                own = tall * kept[part] / size
                svg += rect(x, y + own * gpu, across, max(own - 1, 1), part_color(part), part)
            elif size:
                svg += rect(x, y, across, tall - 2, part_color(part), part)
            y += tall
    svg += _key(whole, 250, left, width)
    y = 302 + down
    svg += text(left, y - 10, "on each GPU", 15, **_BOLD)
    x = float(left)
    for part, size in kept.items():
        wide = long * size / total
        svg += rect(x, y, wide, 34, part_color(part), part) if size else ""
        x += wide
    svg += rect(left, y, long, 34, stroke="currentColor", stroke_width=1)
    spot = left + long * memory / total
    svg += line(spot, y - 8, spot, y + 42, stroke_width=3)
    limit = f"its memory: {units.gigabytes(memory)}"
    svg += text(spot, y + 60, limit, 15, "end" if narrow else "middle")
    svg += text(width - left, y + 60, units.gigabytes(total), 15, "end")
    svg += text(left, y + 60, "0", 15, "middle")
    mine = sum(kept.values())
    svg += text(width - left, y - 10, units.gigabytes(mine), 18, "end", **_BOLD)
    listed = ", ".join(
        f"{part.replace('_', ' ')} {units.gigabytes(kept[part])} of {units.gigabytes(size)}"
        for part, size in whole.items()
        if size
    )
    return Drawing(
        svg,
        width,
        374 + down,
        f"{units.plural(replicas, 'GPU')}, each of which keeps: {listed}; together "
        f"{units.gigabytes(mine)}.",
    )


def _key(parts: Mapping[str, float], y: float, left: float, width: float) -> str:
    """A square and a word for each part that is there, in as many rows as it takes."""
    svg, x = "", float(left)
    for part, size in parts.items():
        if size:
            word = "optimizer (Adam)" if part == "optimizer" else part.replace("_", " ")
            if x > left and x + 22 + 8.2 * len(word) > width:
                x, y = float(left), y + 24
            svg += rect(x, y - 3, 16, 16, part_color(part), rx=3) + text(x + 22, y + 10, word, 15)
            x += 52 + 7.9 * len(word)
    return svg


# --- the panel: all states, under a GPU's memory

WIDER = 760
"""How wide the panel's picture is on a page."""


def on_a_gpu(
    recipe: Mapping[str, float],
    parts: Mapping[str, float],
    memory: float,
    before: float | None = None,
    width: int = WIDER,
) -> Drawing:
    """The bytes of a parameter, and of all on one GPU, under its memory's line.

    The axis is twice the memory, whatever the model: the line stands in the middle.
    `before` is the total of the last picture.
    """
    total, narrow = sum(parts.values()), width < WIDER
    left, bar, middle = (16, 232, width / 2) if narrow else (40, 136, 380)
    right = width - left
    words = f"on each GPU: {units.gigabytes(total)}"
    beyond = total > 2 * memory
    words += ", far beyond this scale" if beyond and not narrow else ""

    def at(size: float) -> float:
        return left + min(size / memory, 2) * (middle - left)

    row, byte = (136, 16) if narrow else (56, _BYTE)
    svg, x = [_key(recipe, 30, left if narrow else 30, width)], left if narrow else 240.0
    for part, size in recipe.items():
        svg.append(_cells(x, row, size, part, byte=byte))
        x += byte * size
    svg.append(
        text(
            left, row - 10 if narrow else row + 20, f"A parameter: {sum(recipe.values())} bytes", 16
        )
    )
    svg.append(text(left, bar - (26 if narrow else 10), words, 16, font_weight=600))
    if beyond and narrow:
        svg.append(text(right, bar - 8, "far beyond this scale", 15, "end"))

    # the parts, one behind the other, hatched beyond the memory
    end = 0.0
    for part, size in parts.items():
        svg.append(rect(at(end), bar, at(end + size) - at(end), 54, part_color(part), part))
        end += size
    if total > memory:
        over = hatched(middle, bar, at(total) - middle, 54, 9)
        svg.append(f'<g color="white">{over}</g>')

    # the chip's memory, which the states must not cross
    y, limit = bar, f"memory: {units.gigabytes(memory)}"
    svg.append(line(left, y + 60, right, y + 60))
    svg.append(line(middle, y - 16, middle, y + 66, stroke_width=3))
    svg.append(text(middle, y + 84, limit, 15, "middle", font_weight=600))
    svg.append(text(left, y + 84, "0", 15, "middle"))
    if before is not None and before != total:
        svg.append(ghost(left, y - 3, at(before) - left, 60, "at the start"))
        svg.append(
            text(
                right, y + (104 if narrow else 84), f"dashed: {units.gigabytes(before)}", 14, "end"
            )
        )
    listed = ", ".join(
        f"{part.replace('_', ' ')} {units.gigabytes(size)}" for part, size in parts.items() if size
    )
    fits = "fits into" if total <= memory else "is more than"
    words = f"On each GPU {listed}: {units.gigabytes(total)} {fits} its {units.gigabytes(memory)}."
    return Drawing("".join(svg), width, bar + (114 if narrow else 100), words)
