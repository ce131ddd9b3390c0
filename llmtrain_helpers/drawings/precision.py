"""Drawings of chapter 05: a number's bits, a lost update, a loss scale, the bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import copysign, exp, isfinite, log2
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.drawings.common import (
    COLORS,
    Drawing,
    arrow,
    ghost,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_helpers.precision import (
    FORMATS,
    RECIPES,
    NumberFormat,
    gradient_window,
    scaled_back,
    stored,
    updates_to_move,
)

_WIDE, _LEFT, _RIGHT = 760, 40, 720
_WHITE = "#FFFFFF"

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
    sign, told = "−" if x < 0 else "", f"{abs(x):.{digits}g}"
    mantissa, _, exponent = told.partition("e")
    if exponent:
        times = "" if mantissa == "1" else f"{mantissa} × "
        return f"{sign}{times}{power(int(exponent), 10)}"
    whole, point, rest = mantissa.partition(".")
    return f"{sign}{int(whole):,}{point}{rest}"


def distinct(values: Sequence[float]) -> list[str]:
    """Numbers in as many digits as it takes to tell them apart, or to be exact.

    >>> distinct([1.0, 1.0078125, 1.015625])
    ['1', '1.0078125', '1.015625']
    """
    for digits in range(5, 12):
        told = [number(x, digits) for x in values]
        exact = all(float(f"{x:.{digits}g}") == x for x in values)
        if exact or (len(set(told)) == len(told) and digits >= 8):
            break
    if any("×" in one for one in told):
        for digits in range(4, 9):
            told = [number(x, digits) for x in values]
            if len(set(told)) == len(told):
                break
    return told


# --- a number's bits

_GAP, _TOP, _HIGH = 26, 80, 44
"""Between groups of bits; where cells begin, and how high they are."""

_PILLS, _AXIS = 164, 306
"""Where the factors stand, and the line of neighbours."""


def number_bits(
    known: NumberFormat,
    value: float,
    steps: int = 0,
    before: tuple[NumberFormat, float, int] | None = None,
) -> Drawing:
    """What a format makes of a value: bits, the factors they mean, the neighbours.

    `steps` goes so many representable numbers up or down from it. `before` is format,
    value and steps of the last picture: bits that differ are outlined.
    """
    held = stored(known, value, steps)
    bits = _bits(known, held)
    body = [text(_LEFT, 34, _headline(known, value, steps, held), 20, font_weight=700)]
    body += _groups(known, bits)
    body += _changed(known, bits, before)
    body += _factors(known, held) if isfinite(held) else [_too_large(known, held)]
    body += _line_of_neighbours(known, value, held)
    return Drawing("".join(body), _WIDE, 376, _in_words(known, value, held, bits))


def _too_large(known: NumberFormat, held: float) -> str:
    told = f"Exponent all ones: {number(held)}, for it is past {number(known.max)}."
    return text(_LEFT, _PILLS + 23, told, 18)


def _bits(known: NumberFormat, held: float) -> tuple[str, str, str]:
    """Sign, exponent and fraction, as 0 and 1."""
    sign, exponent, fraction = known.split(held)
    sizes = known.exponent_bits, known.mantissa_bits
    return f"{sign}", f"{exponent:0{sizes[0]}b}", f"{fraction:0{sizes[1]}b}"


def _headline(known: NumberFormat, value: float, steps: int, held: float) -> str:
    asked = number(value)
    if steps and isfinite(held):
        way = "above" if steps > 0 else "below"
        return f"{number(held, 11)}: {abs(steps)} {way} what {known.name} makes of " + (asked)
    if held == value:
        return f"{known.name} holds {asked} exactly"
    return f"{known.name} makes {number(held, 11)} of {asked}"


def _cell(known: NumberFormat) -> float:
    return min(38.0, (_RIGHT - _LEFT - 2 * _GAP) / known.bits)


def _starts(known: NumberFormat) -> list[float]:
    """Where sign, exponent and fraction begin."""
    wide, e = _cell(known), known.exponent_bits
    return [_LEFT, _LEFT + wide + _GAP, _LEFT + (1 + e) * wide + 2 * _GAP]


def _groups(known: NumberFormat, bits: Sequence[str]) -> list[str]:
    """The bits in their three colours, each group with its name."""
    drawn, wide = [], _cell(known)
    names = ("sign", "exponent", "fraction")
    for name, start, digits in zip(names, _starts(known), bits, strict=True):
        many = f", {len(digits)} bits" if len(digits) > 1 else ""
        drawn.append(text(start, _TOP - 10, f"{name}{many}", 15, font_weight=600))
        for i, digit in enumerate(digits):
            x = start + i * wide
            drawn.append(rect(x, _TOP, wide - 2, _HIGH, COLORS[name], rx=3))
            place = x + wide / 2 - 1
            drawn.append(text(place, _TOP + 28, digit, 18, "middle", _WHITE))
    return drawn


def _changed(
    known: NumberFormat, bits: Sequence[str], before: tuple[NumberFormat, float, int] | None
) -> list[str]:
    """Outlines around the bits that flipped since the last picture."""
    if before is None or before[0] != known:
        return []
    old, wide, drawn = _bits(known, stored(*before)), _cell(known), []
    for start, now, then in zip(_starts(known), bits, old, strict=True):
        flipped = [i for i in range(len(now)) if now[i] != then[i]]
        drawn += [ghost(start + i * wide - 2, _TOP - 4, wide + 2, 52) for i in flipped]
    many = f"{len(drawn)} bit{'s' if len(drawn) > 1 else ''} flipped"
    many += f" from {number(before[1])}"
    if drawn:
        drawn.append(text(_RIGHT, _TOP + _HIGH + 24, f"dashed: {many}", 14, "end"))
    return drawn


def factors(known: NumberFormat, held: float) -> list[tuple[str, str, str]]:
    """Name, factor and where it comes from, of sign, exponent and fraction.

    >>> factors(FORMATS["bf16"], 0.15625)[1:]
    [('exponent', '2⁻³', '124 − 127'), ('fraction', '1.25', '1 + 32/128')]
    """
    sign, exponent, fraction = known.split(held)
    whole = int(exponent > 0)
    k = max(exponent, 1) - known.bias
    parts = 2**known.mantissa_bits
    came = f"{exponent} − {known.bias}" if whole else f"0: as 1 − {known.bias}"
    return [
        ("sign", "−" if sign else "+", ""),
        ("exponent", power(k), came),
        ("fraction", number(whole + fraction / parts), f"{whole} + {fraction}/{parts}"),
    ]


def _factors(known: NumberFormat, held: float) -> list[str]:
    """What the bits mean: a pill for each group, tied to it, and their product."""
    x, drawn = float(_LEFT), []
    signs = ["", "", "×"]
    ends = [*_starts(known)[1:], _starts(known)[2] + known.mantissa_bits * _cell(known)]
    parts = zip(factors(known, held), signs, _starts(known), ends, strict=True)
    for (name, told, came), sign, start, end in parts:
        if sign:
            drawn.append(text(x + 12, _PILLS + 23, sign, 20, "middle"))
            x += 24
        wide = max(34, 10.5 * len(told) + 18, 8 * len(came))
        gap = _GAP if name != "fraction" else 0
        middle = (start + min(end, _RIGHT) - gap) / 2
        style = {"stroke": COLORS[name], "stroke_width": 2}
        drawn.append(line(middle, _TOP + _HIGH, x + wide / 2, _PILLS, **style))
        drawn.append(rect(x, _PILLS, wide, 34, COLORS[name], rx=6))
        drawn.append(text(x + wide / 2, _PILLS + 23, told, 18, "middle", _WHITE))
        drawn.append(text(x + wide / 2, _PILLS + 54, came, 14, "middle"))
        x += wide + 6
    return [*drawn, text(x + 4, _PILLS + 24, f"= {number(held, 11)}", 20)]


def _line_of_neighbours(known: NumberFormat, value: float, held: float) -> list[str]:
    """The stored number between its nearest, to scale, and what was asked for."""
    middle = held if isfinite(held) else copysign(known.max, value)
    near = sorted({known.shifted(middle, k) for k in (-2, -1, 0, 1, 2)})
    low, high = near[0], near[-1]

    def at(x: float) -> float:
        return 70 + (x - low) / (high - low) * 620

    drawn = [line(60, _AXIS, 700, _AXIS)]
    for x, words in zip(near, distinct(near), strict=True):
        bold = 700 if x == held else 400
        drawn.append(line(at(x), _AXIS - 9, at(x), _AXIS + 9, stroke_width=2))
        drawn.append(text(at(x), _AXIS + 28, words, 14, "middle", font_weight=bold))
    if isfinite(held):
        dot = f'<circle cx="{at(held):.1f}" cy="{_AXIS}" r="7"'
        drawn.append(f'{dot} fill="{COLORS["fraction"]}"/>')
    step = known.spacing(middle)
    told = f"the spacing here: {power(int(log2(step)))} = {number(step, 4)}"
    drawn.append(text(_RIGHT, _AXIS + 52, told, 14, "end"))
    return drawn + _asked(value, held, low, high, at(min(max(value, low), high)))


def _asked(value: float, held: float, low: float, high: float, x: float) -> list[str]:
    """An arrow down to the value that was asked for, or to the end it lies beyond."""
    if value == held:
        return []
    if not low <= value <= high:
        side = "left" if value < low else "right"
        told = f"{number(value, 6)} lies farther {side}"
        anchor = "start" if side == "left" else "end"
        return [text(60 if side == "left" else 700, _AXIS - 20, told, 14, anchor)]
    place = "start" if x < 200 else "end" if x > 600 else "middle"
    told = f"{number(value, 6)} was asked for"
    return [arrow(x, _AXIS - 30, x, _AXIS - 2), text(x, _AXIS - 36, told, 14, place)]


def _in_words(known: NumberFormat, value: float, held: float, bits: Sequence[str]) -> str:
    """The bits in words."""
    names = ("sign", "exponent", "fraction")
    told = ", ".join(f"{n} {b}" for n, b in zip(names, bits, strict=True))
    start = f"{known.name}, asked for {number(value)}, has the bits {told}"
    if not isfinite(held):
        return f"{start}: {number(held)}, for its largest is {number(known.max)}."
    sign, scale, digits = (factor for _, factor, _ in factors(known, held))
    below, above = known.neighbours(held)
    return (
        f"{start}: {sign}{scale} × {digits} = {number(held, 11)}. Its neighbours are "
        f"{number(below)} and {number(above)}."
    )


# --- an update, kept or lost

_FIRST, _SECOND = 130, 262
"""The lines of the weight in its own format, and of the main weight beside it."""


def update_line(
    known: NumberFormat,
    weight: float,
    update: float,
    before: tuple[NumberFormat, float, float] | None = None,
) -> Drawing:
    """A weight and an update between representable numbers; below, its main weight.

    Hatched is what is rounded back to the weight. `before` is format, weight and
    update of the last picture. ValueError for a weight that the format cannot hold.
    """
    w, count = known.shifted(weight, 0), updates_to_move(known, weight, update)
    marks = sorted({known.shifted(w, k) for k in (-1, 0, 1, 2, 3)})
    low, high = marks[0], marks[-1]

    def at(x: float) -> float:
        return 90 + (min(max(x, low), high) - low) / (high - low) * 580

    told, note = (verdict(known, w, update), f"hatched: what is rounded back to {number(w)}")
    body = [text(_LEFT, 34, told, 20, font_weight=700)]
    body += _ruled(known, marks, w, at, _FIRST, f"the weight in {known.name} alone")
    body += _jump(w, update, high, at)
    body += _old_jump(known, w, update, before, high, at)
    body.append(text(_RIGHT, _FIRST - 58, note, 14, "end"))
    body += _ruled(known, marks, w, at, _SECOND, "beside it, a main weight in fp32")
    body += _piled(known, w, update, count, high, at)
    return Drawing("".join(body), _WIDE, 334, f"{told}. {_cured(known, count)}")


def verdict(known: NumberFormat, weight: float, update: float) -> str:
    """Whether an update is lost, kept, or rounded, in a few words."""
    w = known.shifted(weight, 0)
    after = known.round(w + update)
    told = f"{number(w)} + {number(update)} in {known.name}"
    if after == w:
        return f"{told} stays {number(w)}: lost"
    if not isfinite(after):
        return f"{told} overflows"
    exact = after == w + update
    return f"{told} becomes {number(after)}: {'kept' if exact else 'kept, rounded'}"


def _ruled(
    known: NumberFormat, marks: Sequence[float], w: float, at: Any, y: float, told: str
) -> list[str]:
    """A line with the representable numbers, and what is rounded to the weight."""
    below, above = known.neighbours(w)
    left, right = at((below + w) / 2), at((w + above) / 2)
    drawn = [text(_LEFT, y - 58, told, 15, font_weight=600)]
    drawn.append(hatched(left, y - 14, right - left, 28, 6))
    drawn.append(line(_LEFT, y, _RIGHT, y))
    for x, words in zip(marks, distinct(marks), strict=True):
        bold = 700 if x == w else 400
        drawn.append(line(at(x), y - 11, at(x), y + 11, stroke_width=2))
        drawn.append(text(at(x), y + 32, words, 14, "middle", font_weight=bold))
    return drawn


def _jump(w: float, update: float, high: float, at: Any) -> list[str]:
    """The arrow from the weight to where the update would take it."""
    start, end, y = at(w), at(w + update), _FIRST - 24
    style = {"stroke": COLORS["gradients"], "stroke_width": 3}
    drawn = [line(start, y, max(end, start + 2), y, **style)]
    drawn.append(line(end, y - 7, end, _FIRST, **style))
    far = " (farther right)" if w + update > high else ""
    place = "start" if end < 520 else "end"
    shift = 8 if place == "start" else -8
    told = f"+ {number(update, 4)}{far}"
    return [*drawn, text(end + shift, y - 4, told, 15, place)]


def _old_jump(
    known: NumberFormat,
    w: float,
    update: float,
    before: tuple[NumberFormat, float, float] | None,
    high: float,
    at: Any,
) -> list[str]:
    """Where the update of the last picture led, if weight and format are the same."""
    if before is None or (before[0], before[1]) != (known, w) or before[2] == update:
        return []
    x = at(w + before[2])
    dashes = {"stroke_dasharray": "5 4"}
    told = f"dashed: + {number(before[2], 4)}"
    return [
        line(x, _FIRST - 36, x, _FIRST + 12, **dashes),
        text(_RIGHT, _SECOND - 58, told, 14, "end"),
    ]


def _piled(
    known: NumberFormat, w: float, update: float, count: int, high: float, at: Any
) -> list[str]:
    """The main weight after each update, until the copy moves."""
    color = COLORS["main weights"]
    last = at(w + count * update)
    first = 1 if count <= 60 else count  # more would be one thick line
    dots = [at(w + k * update) for k in range(first, count + 1)]
    style = {"stroke": color, "stroke_width": 4}
    drawn = [line(at(w), _SECOND - 22, last, _SECOND - 22, **style)]
    drawn += [f'<circle cx="{x:.1f}" cy="{_SECOND - 22}" r="5" fill="{color}"/>' for x in dots]
    over = not isfinite(known.round(w + count * update))
    told = "its copy overflows all the same" if over else "its copy moves at once"
    told = f"its copy moves after {count:,} of them" if count > 1 else told
    told = told if count else "lost here as well: even fp32 keeps none of it"
    shift = 12 if last < 430 else -12
    anchor = "start" if last < 430 else "end"
    high_up = _SECOND - 17 if anchor == "start" else _SECOND - 34
    return [*drawn, text(last + shift, high_up, told, 15, anchor)]


def _cured(known: NumberFormat, count: int) -> str:
    if not count:
        return "Even a main weight in fp32 loses an update so small."
    if count == 1:
        return f"With a main weight in fp32, the {known.name} copy moves at once too."
    return (
        "A main weight in fp32 keeps each of these updates; its "
        f"{known.name} copy moves after {count:,} of them."
    )


# --- a loss scale

_ONE, _BASE, _LOWEST, _HIGHEST = 11, 232, -45, 17
"""Width of a power of two, the axis, and its ends."""

_CENTRE, _SPREAD = -24, 6
"""The schematic gradients: powers of two around this one, and how far."""


def _at(exponent: float) -> float:
    return _LEFT + (min(max(exponent, _LOWEST), _HIGHEST) - _LOWEST) * _ONE


def loss_scale(
    known: NumberFormat,
    gradient: float,
    scale: float,
    before: tuple[NumberFormat, float] | None = None,
) -> Drawing:
    """Gradients over powers of two, and the window of those that a format keeps.

    The bars are a schematic set of gradients. `before` is format and scale of the last
    picture: its window is outlined.
    """
    shares = fates(known, scale)
    told = returned(known, gradient, scale)
    body = [text(_LEFT, 34, told, 20, font_weight=700)]
    body += _window(known, scale)
    body += _bell(known, scale)
    body += _axis()
    body += _mark(gradient)
    if before is not None and before != (known, scale):
        low, high = (_at(log2(x)) for x in gradient_window(*before))
        body.append(ghost(low, 92, high - low, _BASE - 92, "the window at the start"))
    body += _fates(known, scale, shares)
    words = f"{told}. Of the gradients drawn, {_shared(shares)}."
    return Drawing("".join(body), _WIDE, 336, words)


def returned(known: NumberFormat, gradient: float, scale: float) -> str:
    """What comes back of a gradient that is scaled, stored, and divided again."""
    back = scaled_back(known, gradient, scale)
    told = f"{number(gradient, 4)} comes back as {number(back, 4)}"
    return f"{told}, at S = {scale_told(scale)}"


def scale_told(scale: float) -> str:
    """A loss scale as people write it: with its digits, or as a power of two.

    >>> scale_told(8192), scale_told(2**22)
    ('8,192', '2²²')
    """
    return number(scale) if scale < 1e6 else _near_power(scale)


def bell() -> dict[int, float]:
    """The schematic gradients: the share at each power of two."""
    heights = {
        k: exp(-(((k - _CENTRE) / _SPREAD) ** 2) / 2) for k in range(_CENTRE - 18, _CENTRE + 19)
    }
    return {k: height / sum(heights.values()) for k, height in heights.items()}


def fates(known: NumberFormat, scale: float) -> dict[str, float]:
    """The shares of the schematic gradients that are lost, kept, or too large."""
    found = {"become 0": 0.0, "are kept": 0.0, "overflow": 0.0}
    for k, share in bell().items():
        found[_fate(known, scale, k)] += share
    return found


def _fate(known: NumberFormat, scale: float, exponent: int) -> str:
    held = scaled_back(known, 2.0**exponent, scale)
    return "become 0" if held == 0 else "are kept" if isfinite(held) else "overflow"


def _window(known: NumberFormat, scale: float) -> list[str]:
    """The frame of what is kept, with the numbers at its ends."""
    low, high = gradient_window(known, scale)
    left, right = _at(log2(low)), _at(log2(high))
    style: Any = {"stroke": "currentColor", "stroke_width": 2}
    drawn = [rect(left, 92, right - left, _BASE - 92, title="kept", **style)]
    told = f"kept: above {_near_power(low)}"
    anchor, x = ("start", left) if left < 470 else ("end", _RIGHT)
    drawn.append(text(x, 64, f"{told} and below {_short(high)}", 15, anchor))
    name = f"the window of {known.name}"
    return [*drawn, text(x, 84, name, 14, anchor)]


def _near_power(x: float) -> str:
    """A power of two where it is one, and otherwise as far as four digits go."""
    return power(int(log2(x))) if log2(x).is_integer() else number(x, 3)


def _short(x: float) -> str:
    return number(x, 5) if 1e-3 < x < 1e7 else number(x, 3)


def _bell(known: NumberFormat, scale: float) -> list[str]:
    """A bar for each power of two, in the gradients' colour where it is kept."""
    drawn, tallest = [], max(bell().values())
    for k, share in bell().items():
        high = 118 * share / tallest
        x, y, fate = _at(k) + 1, _BASE - high, _fate(known, scale, k)
        fill = COLORS["gradients"] if fate == "are kept" else "none"
        edge = {} if fate == "are kept" else {"stroke": "currentColor"}
        drawn.append(rect(x - _ONE / 2, y, _ONE - 2, high, fill, fate, **edge))
        if fate != "are kept":
            drawn.append(hatched(x - _ONE / 2, y, _ONE - 2, high, 5))
    return drawn


def _axis() -> list[str]:
    """The axis of powers of two."""
    drawn = [line(_LEFT, _BASE, _at(_HIGHEST), _BASE)]
    for k in range(-40, 17, 10):
        drawn.append(line(_at(k), _BASE, _at(k), _BASE + 7))
        drawn.append(text(_at(k), _BASE + 24, power(k), 14, "middle"))
    return drawn


def _mark(gradient: float) -> list[str]:
    """Where the chosen gradient lies."""
    x = _at(log2(gradient))
    y = _BASE + 30
    drawn = [arrow(x, y + 20, x, y - 26, stroke=COLORS["gradients"])]
    return [*drawn, text(x, y + 36, number(gradient, 4), 15, "middle")]


def _fates(known: NumberFormat, scale: float, shares: Mapping[str, float]) -> list[str]:
    told = f"Of these gradients (a drawn example), {_shared(shares)}."
    return [text(_LEFT, _BASE + 88, told, 14)]


def _shared(shares: Mapping[str, float]) -> str:
    """The shares in words, those that are none left out."""
    found = [
        f"{units.digits(100 * share, 3 if share > 0.99 else 2)} % {fate}"
        for fate, share in shares.items()
        if share > 0.0005
    ]
    return ", ".join(found)


# --- 8 bits: one scale for all, or one for each block

_BLOCKS = (
    (0, -2, 1, -4, -1, -3, 0, -5),
    (1, -3, 16, -1, 0, -5, -2, -4),
    (-6, -8, -5, -9, -7, -4, -8, -6),
)
"""Three blocks of numbers, by their powers of two; the second has an outlier."""

_COLUMN, _POWER, _FLOOR, _CEILING = 24, 5, -12, 17
"""From number to number, from power to power, and the ends of the upright axis."""


def block_scales() -> Drawing:
    """Numbers of three blocks in fp8, with one scale for all and with one for each.

    A scale brings the largest of its numbers to E4M3's largest; the frame shows what
    is then kept. The numbers are schematic.
    """
    whole = sum(_BLOCKS, ())
    body, words = [], []
    for row, (name, parts) in enumerate(
        {"One scale for all": (whole,), "A scale for each block": _BLOCKS}.items()
    ):
        low = 64 + 228 * row + (_CEILING - _FLOOR) * _POWER
        lost = [k for part in parts for k in part if not _through_fp8(k, max(part))]
        told = f"{name}: {len(lost)} of {len(whole)} numbers become 0"
        body.append(text(_LEFT, 34 + 228 * row, told, 17, font_weight=700))
        if not row:
            body.append(text(_RIGHT, 34, "hatched: becomes 0", 14, "end"))
        body += _columns(parts, low)
        words.append(f"{told}.")
    return Drawing("".join(body), _WIDE, 446, " ".join(words))


def _through_fp8(exponent: int, largest: int) -> float:
    """What E4M3 makes of a power of two, scaled so that the largest becomes 448."""
    fp8 = FORMATS["fp8_e4m3"]
    return scaled_back(fp8, 2.0**exponent, fp8.max / 2.0**largest)


def _columns(parts: Sequence[Sequence[int]], low: float) -> list[str]:
    """A bar for each number up to its power of two, and a frame for each scale."""
    drawn, x = [], _LEFT + 44.0
    fp8 = FORMATS["fp8_e4m3"]
    for k in (-10, 0, 10):
        y = low - (k - _FLOOR) * _POWER
        drawn += [text(x - 14, y + 5, power(k), 14, "end")]
        drawn += [line(x - 9, y, x - 4, y)]
    for part in parts:
        start, top = x, max(part)
        for i, k in enumerate(part):
            x += 14 * (i > 0 and i % 8 == 0)
            drawn += _column(x, low, k, bool(_through_fp8(k, top)))
            x += _COLUMN
        least = max(top + log2(fp8.min_subnormal / 2 / fp8.max), _FLOOR)
        high, wide = (top - least) * _POWER + 4, x - start
        y = low - (top - _FLOOR) * _POWER - 4
        style: Any = {"stroke": "currentColor", "stroke_width": 2}
        drawn.append(rect(start - 3, y, wide, high, title="kept", **style))
        x += 14
    return [*drawn, line(_LEFT + 36, low, _RIGHT, low)]


def _column(x: float, low: float, exponent: int, kept: bool) -> list[str]:
    high, wide = (exponent - _FLOOR) * _POWER, _COLUMN - 6
    if kept:
        return [rect(x, low - high, wide, high, COLORS["activations"], "kept")]
    edge: Any = {"stroke": "currentColor", "title": "becomes 0"}
    return [rect(x, low - high, wide, high, **edge), hatched(x, low - high, wide, high, 5)]


# --- bytes

_BYTE, _ROW, _NAMES = 25, 40, 176
"""A byte's cell, from one recipe to the next, and the room for their names."""


def part_color(part: str) -> str:
    """The colour of a part of a recipe."""
    return COLORS[part.replace("_", " ")]


def recipe_bytes(names: Sequence[str] = tuple(RECIPES)) -> Drawing:
    """A row for each recipe: every byte of a parameter, in its part's colour."""
    body, words = [_key(30)], []
    for row, name in enumerate(names):
        recipe, y = RECIPES[name], 56 + row * _ROW
        body.append(text(_NAMES - 12, y + 21, name, 15, "end"))
        body.append(_cells(recipe.parts(), _NAMES, y))
        end = _NAMES + recipe.total * (_BYTE + 1) + 12
        body.append(text(end, y + 22, f"{recipe.total}", 18, font_weight=700))
        parts = [f"{p.replace('_', ' ')} {n}" for p, n in recipe.parts().items() if n]
        words.append(f"Recipe {name}: {', '.join(parts)}: {recipe.total} bytes.")
    height = 66 + len(names) * _ROW
    return Drawing("".join(body), _WIDE, height, " ".join(words))


def _cells(parts: Mapping[str, Any], x: float, y: float) -> str:
    """Each byte a cell."""
    drawn = []
    for part, size in parts.items():
        for _ in range(int(size)):
            told = part.replace("_", " ")
            drawn.append(rect(x, y, _BYTE, 30, part_color(part), told, rx=3))
            x += _BYTE + 1
    return "".join(drawn)


def _key(y: float) -> str:
    """A square and a word for each part."""
    drawn, x = [], float(_LEFT)
    for part in RECIPES["bf16"].parts():
        told = part.replace("_", " ")
        told = "optimizer (Adam)" if part == "optimizer" else told
        drawn.append(rect(x, y - 13, 16, 16, part_color(part), rx=3))
        drawn.append(text(x + 22, y, told, 15))
        x += 44 + 7.9 * len(told)
    return "".join(drawn)


_BAR, _MIDDLE = 136, (_LEFT + _RIGHT) / 2
"""Where the bar of a GPU begins, and where its memory's line stands."""


def on_a_gpu(
    recipe: Mapping[str, Any],
    parts: Mapping[str, float],
    memory: float,
    before: float | None = None,
) -> Drawing:
    """The bytes of a parameter, and of all on one GPU, under its memory's line.

    The axis is twice the memory, whatever the model: the line stands in the middle.
    `before` is the total of the last picture.
    """
    total = sum(parts.values())
    told = f"on each GPU: {units.gigabytes(total)}"
    told += ", far beyond this scale" if total > 2 * memory else ""
    body = [_key(30), _cells(recipe, 240, 56)]
    body.append(text(_LEFT, 76, f"A parameter: {sum(recipe.values())} bytes", 16))
    body.append(text(_LEFT, _BAR - 10, told, 16, font_weight=600))
    body += _stacked(parts, memory) + _line_of_memory(memory)
    if before is not None and before != total:
        wide = _on_bar(before, memory) - _LEFT
        body.append(ghost(_LEFT, _BAR - 3, wide, 60, "at the start"))
        note = f"dashed: {units.gigabytes(before)}"
        body.append(text(_RIGHT, _BAR + 84, note, 14, "end"))
    return Drawing("".join(body), _WIDE, 236, _memory_words(parts, total, memory))


def _on_bar(size: float, memory: float) -> float:
    """Where so many bytes end."""
    return _LEFT + min(size / memory, 2) * (_MIDDLE - _LEFT)


def _stacked(parts: Mapping[str, float], memory: float) -> list[str]:
    """The parts, one behind the other, hatched beyond the memory."""
    drawn, total = [], 0.0
    for part, size in parts.items():
        x, end = _on_bar(total, memory), _on_bar(total + size, memory)
        drawn.append(rect(x, _BAR, end - x, 54, part_color(part), part))
        total += size
    if total > memory:
        over = hatched(_MIDDLE, _BAR, _on_bar(total, memory) - _MIDDLE, 54, 9)
        drawn.append(f'<g color="white">{over}</g>')
    return drawn


def _line_of_memory(memory: float) -> list[str]:
    """The chip's memory, which the states must not cross."""
    told, x, y = f"memory: {units.gigabytes(memory)}", _MIDDLE, _BAR
    return [
        line(_LEFT, y + 60, _RIGHT, y + 60),
        line(x, y - 16, x, y + 66, stroke_width=3),
        text(x, y + 84, told, 15, "middle", font_weight=600),
        text(_LEFT, y + 84, "0", 15, "middle"),
    ]


def _memory_words(parts: Mapping[str, float], total: float, memory: float) -> str:
    listed = ", ".join(
        f"{part.replace('_', ' ')} {units.gigabytes(size)}" for part, size in parts.items() if size
    )
    fits = "fits into" if total <= memory else "is more than"
    return f"On each GPU {listed}: {units.gigabytes(total)} {fits} its " + (
        f"{units.gigabytes(memory)}."
    )
