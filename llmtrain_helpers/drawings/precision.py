"""Drawings of chapter 05: a number's bits, a lost update, a loss scale, the bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import copysign, exp, isfinite, log2

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
    sign, label = "−" if x < 0 else "", f"{abs(x):.{digits}g}"
    mantissa, _, exponent = label.partition("e")
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
        texts = [number(x, digits) for x in values]
        exact = all(float(f"{x:.{digits}g}") == x for x in values)
        if exact or (len(set(texts)) == len(texts) and digits >= 8):
            break
    if any("×" in one for one in texts):
        for digits in range(4, 9):
            texts = [number(x, digits) for x in values]
            if len(set(texts)) == len(texts):
                break
    return texts


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
    if steps and isfinite(held):
        way = "above" if steps > 0 else "below"
        title = f"{number(held, 11)}: {abs(steps)} {way} what {known.name} makes of {number(value)}"
    elif held == value:
        title = f"{known.name} holds {number(value)} exactly"
    else:
        title = f"{known.name} makes {number(held, 11)} of {number(value)}"
    svg = [text(_LEFT, 34, title, 20, font_weight=700), *_cells_of_bits(known, bits)]
    if before is not None and before[0] == known:
        svg += _flipped(known, bits, before)
    if isfinite(held):
        svg += _factors(known, held)
    else:
        overflow = f"Exponent all ones: {number(held)}, for it is past {number(known.max)}."
        svg.append(text(_LEFT, _PILLS + 23, overflow, 18))
    svg += _line_of_neighbours(known, value, held)
    return Drawing("".join(svg), _WIDE, 376, _bits_in_words(known, value, held, bits))


_GROUPS = ("sign", "exponent", "fraction")


def _bits(known: NumberFormat, held: float) -> tuple[str, str, str]:
    """Sign, exponent and fraction, as 0 and 1."""
    sign, exponent, fraction = known.split(held)
    sizes = known.exponent_bits, known.mantissa_bits
    return f"{sign}", f"{exponent:0{sizes[0]}b}", f"{fraction:0{sizes[1]}b}"


def _cell(known: NumberFormat) -> float:
    """Width of a bit: as wide as all of them find room."""
    return min(38.0, (_RIGHT - _LEFT - 2 * _GAP) / known.bits)


def _starts(known: NumberFormat) -> list[float]:
    """Where sign, exponent and fraction begin."""
    wide, e = _cell(known), known.exponent_bits
    return [_LEFT, _LEFT + wide + _GAP, _LEFT + (1 + e) * wide + 2 * _GAP]


def _cells_of_bits(known: NumberFormat, bits: Sequence[str]) -> Iterator[str]:
    """The bits in their three colours, each group with its name."""
    wide = _cell(known)
    for name, start, digits in zip(_GROUPS, _starts(known), bits, strict=True):
        count = f", {len(digits)} bits" if len(digits) > 1 else ""
        yield text(start, _TOP - 10, f"{name}{count}", 15, font_weight=600)
        for i, digit in enumerate(digits):
            x = start + i * wide
            yield rect(x, _TOP, wide - 2, _HIGH, COLORS[name], rx=3)
            yield text(x + wide / 2 - 1, _TOP + 28, digit, 18, "middle", _WHITE)


def _flipped(
    known: NumberFormat, bits: Sequence[str], before: tuple[NumberFormat, float, int]
) -> list[str]:
    """Outlines around the bits that flipped since the last picture."""
    wide, outlines = _cell(known), []
    for start, now, then in zip(_starts(known), bits, _bits(known, stored(*before)), strict=True):
        changed = [i for i in range(len(now)) if now[i] != then[i]]
        outlines += [ghost(start + i * wide - 2, _TOP - 4, wide + 2, 52) for i in changed]
    if not outlines:
        return []
    label = f"dashed: {units.plural(len(outlines), 'bit')} flipped from {number(before[1])}"
    return [*outlines, text(_RIGHT, _TOP + _HIGH + 24, label, 14, "end")]


def factors(known: NumberFormat, held: float) -> list[tuple[str, str, str]]:
    """Name, factor and where it comes from, of sign, exponent and fraction.

    >>> factors(FORMATS["bf16"], 0.15625)[1:]
    [('exponent', '2⁻³', '124 − 127'), ('fraction', '1.25', '1 + 32/128')]
    """
    sign, exponent, fraction = known.split(held)
    whole = int(exponent > 0)  # 0 for a subnormal number
    k = max(exponent, 1) - known.bias
    parts = 2**known.mantissa_bits
    source = f"{exponent} − {known.bias}" if whole else f"0: as 1 − {known.bias}"
    return [
        ("sign", "−" if sign else "+", ""),
        ("exponent", power(k), source),
        ("fraction", number(whole + fraction / parts), f"{whole} + {fraction}/{parts}"),
    ]


def _factors(known: NumberFormat, held: float) -> Iterator[str]:
    """What the bits mean: a pill for each group, tied to it, and their product."""
    x, starts = float(_LEFT), _starts(known)
    ends = [*starts[1:], starts[2] + known.mantissa_bits * _cell(known)]
    for (name, factor, source), start, end in zip(factors(known, held), starts, ends, strict=True):
        if name == "fraction":
            yield text(x + 12, _PILLS + 23, "×", 20, "middle")
            x += 24
        wide = max(34, 10.5 * len(factor) + 18, 8 * len(source))
        gap = _GAP if name != "fraction" else 0
        middle, ink = (start + min(end, _RIGHT) - gap) / 2, COLORS[name]
        yield line(middle, _TOP + _HIGH, x + wide / 2, _PILLS, stroke=ink, stroke_width=2)
        yield rect(x, _PILLS, wide, 34, ink, rx=6)
        yield text(x + wide / 2, _PILLS + 23, factor, 18, "middle", _WHITE)
        yield text(x + wide / 2, _PILLS + 54, source, 14, "middle")
        x += wide + 6
    yield text(x + 4, _PILLS + 24, f"= {number(held, 11)}", 20)


def _line_of_neighbours(known: NumberFormat, value: float, held: float) -> Iterator[str]:
    """The stored number between its nearest, to scale, and what was asked for."""
    middle = held if isfinite(held) else copysign(known.max, value)
    near = sorted({known.shifted(middle, k) for k in (-2, -1, 0, 1, 2)})
    low, high = near[0], near[-1]

    def at(x: float) -> float:
        return 70 + (x - low) / (high - low) * 620

    yield line(60, _AXIS, 700, _AXIS)
    for x, words in zip(near, distinct(near), strict=True):
        bold = 700 if x == held else 400
        yield line(at(x), _AXIS - 9, at(x), _AXIS + 9, stroke_width=2)
        yield text(at(x), _AXIS + 28, words, 14, "middle", font_weight=bold)
    if isfinite(held):
        dot = f'<circle cx="{at(held):.1f}" cy="{_AXIS}" r="7"'
        yield f'{dot} fill="{COLORS["fraction"]}"/>'
    step = known.spacing(middle)
    label = f"the spacing here: {power(int(log2(step)))} = {number(step, 4)}"
    yield text(_RIGHT, _AXIS + 52, label, 14, "end")

    if value < low:
        yield text(60, _AXIS - 20, f"{number(value, 6)} lies farther left", 14, "start")
    elif value > high:
        yield text(700, _AXIS - 20, f"{number(value, 6)} lies farther right", 14, "end")
    elif value != held:
        spot = at(value)
        anchor = "start" if spot < 200 else "end" if spot > 600 else "middle"
        yield arrow(spot, _AXIS - 30, spot, _AXIS - 2)
        yield text(spot, _AXIS - 36, f"{number(value, 6)} was asked for", 14, anchor)


def _bits_in_words(known: NumberFormat, value: float, held: float, bits: Sequence[str]) -> str:
    groups = ", ".join(f"{name} {digits}" for name, digits in zip(_GROUPS, bits, strict=True))
    start = f"{known.name}, asked for {number(value)}, has the bits {groups}"
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

    title = verdict(known, w, update)
    svg = [text(_LEFT, 34, title, 20, font_weight=700)]
    svg += _ruled(known, marks, w, at, _FIRST, f"the weight in {known.name} alone")

    # the arrow from the weight to where the update would take it
    end, y, ink = at(w + update), _FIRST - 24, COLORS["gradients"]
    svg.append(line(at(w), y, max(end, at(w) + 2), y, stroke=ink, stroke_width=3))
    svg.append(line(end, y - 7, end, _FIRST, stroke=ink, stroke_width=3))
    far = " (farther right)" if w + update > high else ""
    shift, anchor = (8, "start") if end < 520 else (-8, "end")
    svg.append(text(end + shift, y - 4, f"+ {number(update, 4)}{far}", 15, anchor))
    if before is not None and before[:2] == (known, w) and before[2] != update:
        x, label = at(w + before[2]), f"dashed: + {number(before[2], 4)}"
        svg.append(line(x, _FIRST - 36, x, _FIRST + 12, stroke_dasharray="5 4"))
        svg.append(text(_RIGHT, _SECOND - 58, label, 14, "end"))
    note = f"hatched: what is rounded back to {number(w)}"
    svg.append(text(_RIGHT, _FIRST - 58, note, 14, "end"))

    svg += _ruled(known, marks, w, at, _SECOND, "beside it, a main weight in fp32")
    svg += _piled(known, w, update, count, at)
    if not count:
        cure = "Even a main weight in fp32 loses an update so small."
    elif count == 1:
        cure = f"With a main weight in fp32, the {known.name} copy moves at once too."
    else:
        cure = (
            "A main weight in fp32 keeps each of these updates; its "
            f"{known.name} copy moves after {count:,} of them."
        )
    return Drawing("".join(svg), _WIDE, 334, f"{title}. {cure}")


def verdict(known: NumberFormat, weight: float, update: float) -> str:
    """Whether an update is lost, kept, or rounded, in a few words."""
    w = known.shifted(weight, 0)
    after = known.round(w + update)
    label = f"{number(w)} + {number(update)} in {known.name}"
    if after == w:
        return f"{label} stays {number(w)}: lost"
    if not isfinite(after):
        return f"{label} overflows"
    exact = after == w + update
    return f"{label} becomes {number(after)}: {'kept' if exact else 'kept, rounded'}"


def _ruled(
    known: NumberFormat,
    marks: Sequence[float],
    w: float,
    at: Callable[[float], float],
    y: float,
    label: str,
) -> list[str]:
    """A line with the representable numbers, and what is rounded to the weight."""
    below, above = known.neighbours(w)
    left, right = at((below + w) / 2), at((w + above) / 2)
    shapes = [text(_LEFT, y - 58, label, 15, font_weight=600)]
    shapes.append(hatched(left, y - 14, right - left, 28, 6))
    shapes.append(line(_LEFT, y, _RIGHT, y))
    for x, words in zip(marks, distinct(marks), strict=True):
        bold = 700 if x == w else 400
        shapes.append(line(at(x), y - 11, at(x), y + 11, stroke_width=2))
        shapes.append(text(at(x), y + 32, words, 14, "middle", font_weight=bold))
    return shapes


def _piled(
    known: NumberFormat, w: float, update: float, count: int, at: Callable[[float], float]
) -> Iterator[str]:
    """The main weight after each update, until the copy moves."""
    ink, y = COLORS["main weights"], _SECOND - 22
    last = at(w + count * update)
    yield line(at(w), y, last, y, stroke=ink, stroke_width=4)
    first = 1 if count <= 60 else count  # more would be one thick line
    for k in range(first, count + 1):
        yield f'<circle cx="{at(w + k * update):.1f}" cy="{y}" r="5" fill="{ink}"/>'
    if not count:
        label = "lost here as well: even fp32 keeps none of it"
    elif count > 1:
        label = f"its copy moves after {count:,} of them"
    elif isfinite(known.round(w + count * update)):
        label = "its copy moves at once"
    else:
        label = "its copy overflows all the same"
    if last < 430:
        yield text(last + 12, _SECOND - 17, label, 15, "start")
    else:
        yield text(last - 12, _SECOND - 34, label, 15, "end")


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
    title, (low, high) = returned(known, gradient, scale), gradient_window(known, scale)
    svg = [text(_LEFT, 34, title, 20, font_weight=700)]

    # the frame of what is kept, with the numbers at its ends
    left, right = _at(log2(low)), _at(log2(high))
    frame = rect(
        left, 92, right - left, _BASE - 92, title="kept", stroke="currentColor", stroke_width=2
    )
    anchor, x = ("start", left) if left < 470 else ("end", _RIGHT)
    upper = number(high, 5 if 1e-3 < high < 1e7 else 3)
    svg += [frame, text(x, 64, f"kept: above {_near_power(low)} and below {upper}", 15, anchor)]
    svg.append(text(x, 84, f"the window of {known.name}", 14, anchor))

    svg += _bell(known, scale)
    svg.append(line(_LEFT, _BASE, _at(_HIGHEST), _BASE))
    for k in range(-40, 17, 10):
        svg.append(line(_at(k), _BASE, _at(k), _BASE + 7))
        svg.append(text(_at(k), _BASE + 24, power(k), 14, "middle"))
    x, ink = _at(log2(gradient)), COLORS["gradients"]
    svg.append(arrow(x, _BASE + 50, x, _BASE + 4, stroke=ink))
    svg.append(text(x, _BASE + 66, number(gradient, 4), 15, "middle"))
    if before is not None and before != (known, scale):
        left, right = (_at(log2(x)) for x in gradient_window(*before))
        svg.append(ghost(left, 92, right - left, _BASE - 92, "the window at the start"))
    shares = ", ".join(
        f"{units.digits(100 * share, 3 if share > 0.99 else 2)} % {fate}"
        for fate, share in fates(known, scale).items()
        if share > 0.0005
    )
    svg.append(text(_LEFT, _BASE + 88, f"Of these gradients (a drawn example), {shares}.", 14))
    words = f"{title}. Of the gradients drawn, {shares}."
    return Drawing("".join(svg), _WIDE, 336, words)


def returned(known: NumberFormat, gradient: float, scale: float) -> str:
    """What comes back of a gradient that is scaled, stored, and divided again."""
    back = scaled_back(known, gradient, scale)
    label = f"{number(gradient, 4)} comes back as {number(back, 4)}"
    return f"{label}, at S = {scale_told(scale)}"


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
    shares = {"become 0": 0.0, "are kept": 0.0, "overflow": 0.0}
    for k, share in bell().items():
        shares[_fate(known, scale, k)] += share
    return shares


def _fate(known: NumberFormat, scale: float, exponent: int) -> str:
    """What becomes of a gradient of so large a power of two."""
    back = scaled_back(known, 2.0**exponent, scale)
    return "become 0" if back == 0 else "are kept" if isfinite(back) else "overflow"


def _near_power(x: float) -> str:
    """A power of two where it is one, and otherwise as far as four digits go."""
    return power(int(log2(x))) if log2(x).is_integer() else number(x, 3)


def _bell(known: NumberFormat, scale: float) -> Iterator[str]:
    """A bar for each power of two, in the gradients' colour where it is kept."""
    shares = bell()
    for k, share in shares.items():
        high = 118 * share / max(shares.values())
        x, y, fate = _at(k) + 1 - _ONE / 2, _BASE - high, _fate(known, scale, k)
        if fate == "are kept":
            yield rect(x, y, _ONE - 2, high, COLORS["gradients"], fate)
        else:
            yield rect(x, y, _ONE - 2, high, "none", fate, stroke="currentColor")
            yield hatched(x, y, _ONE - 2, high, 5)


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
    svg, words = [], []
    for row, (name, parts) in enumerate(
        {"One scale for all": (whole,), "A scale for each block": _BLOCKS}.items()
    ):
        low = 64 + 228 * row + (_CEILING - _FLOOR) * _POWER
        lost = [k for part in parts for k in part if not _through_fp8(k, max(part))]
        label = f"{name}: {len(lost)} of {len(whole)} numbers become 0"
        svg.append(text(_LEFT, 34 + 228 * row, label, 17, font_weight=700))
        if not row:
            svg.append(text(_RIGHT, 34, "hatched: becomes 0", 14, "end"))
        svg += _columns(parts, low)
        words.append(f"{label}.")
    return Drawing("".join(svg), _WIDE, 446, " ".join(words))


def _through_fp8(exponent: int, largest: int) -> float:
    """What E4M3 makes of a power of two, scaled so that the largest becomes 448."""
    fp8 = FORMATS["fp8_e4m3"]
    return scaled_back(fp8, 2.0**exponent, fp8.max / 2.0**largest)


def _columns(blocks: Sequence[Sequence[int]], low: float) -> Iterator[str]:
    """A bar for each number up to its power of two, and a frame for each scale."""
    x, fp8 = _LEFT + 44.0, FORMATS["fp8_e4m3"]
    high: float
    for k in (-10, 0, 10):
        y = low - (k - _FLOOR) * _POWER
        yield text(x - 14, y + 5, power(k), 14, "end")
        yield line(x - 9, y, x - 4, y)
    for block in blocks:
        start, top = x, max(block)
        for i, k in enumerate(block):
            x += 14 * (i > 0 and i % 8 == 0)
            high, wide = (k - _FLOOR) * _POWER, _COLUMN - 6
            if _through_fp8(k, top):
                yield rect(x, low - high, wide, high, COLORS["activations"], "kept")
            else:
                edge = "currentColor"
                yield rect(x, low - high, wide, high, title="becomes 0", stroke=edge)
                yield hatched(x, low - high, wide, high, 5)
            x += _COLUMN
        least = max(top + log2(fp8.min_subnormal / 2 / fp8.max), _FLOOR)
        high, y = (top - least) * _POWER + 4, low - (top - _FLOOR) * _POWER - 4
        edge = "currentColor"
        yield rect(start - 3, y, x - start, high, title="kept", stroke=edge, stroke_width=2)
        x += 14
    yield line(_LEFT + 36, low, _RIGHT, low)


# --- bytes

_BYTE, _ROW, _NAMES = 25, 40, 176
"""A byte's cell, from one recipe to the next, and the room for their names."""


def part_color(part: str) -> str:
    """The colour of a part of a recipe."""
    return COLORS[part.replace("_", " ")]


def recipe_bytes(names: Sequence[str] = tuple(RECIPES)) -> Drawing:
    """A row for each recipe: every byte of a parameter, in its part's colour."""
    svg, words = [_key(30)], []
    for row, name in enumerate(names):
        recipe, y = RECIPES[name], 56 + row * _ROW
        svg.append(text(_NAMES - 12, y + 21, name, 15, "end"))
        svg.append(_cells(recipe.parts(), _NAMES, y))
        end = _NAMES + recipe.total * (_BYTE + 1) + 12
        svg.append(text(end, y + 22, f"{recipe.total}", 18, font_weight=700))
        parts = [f"{p.replace('_', ' ')} {n}" for p, n in recipe.parts().items() if n]
        words.append(f"Recipe {name}: {', '.join(parts)}: {recipe.total} bytes.")
    height = 66 + len(names) * _ROW
    return Drawing("".join(svg), _WIDE, height, " ".join(words))


def _cells(parts: Mapping[str, float], x: float, y: float) -> str:
    """Cells in a row, one for each byte, coloured by part."""
    shapes = []
    for part, size in parts.items():
        for _ in range(int(size)):
            label = part.replace("_", " ")
            shapes.append(rect(x, y, _BYTE, 30, part_color(part), label, rx=3))
            x += _BYTE + 1
    return "".join(shapes)


def _key(y: float) -> str:
    """A square and a word for each part."""
    shapes, x = [], float(_LEFT)
    for part in RECIPES["bf16"].parts():
        label = part.replace("_", " ")
        label = "optimizer (Adam)" if part == "optimizer" else label
        shapes.append(rect(x, y - 13, 16, 16, part_color(part), rx=3))
        shapes.append(text(x + 22, y, label, 15))
        x += 44 + 7.9 * len(label)
    return "".join(shapes)


_BAR, _MIDDLE = 136, (_LEFT + _RIGHT) / 2
"""Where the bar of a GPU begins, and where its memory's line stands."""


def on_a_gpu(
    recipe: Mapping[str, float],
    parts: Mapping[str, float],
    memory: float,
    before: float | None = None,
) -> Drawing:
    """The bytes of a parameter, and of all on one GPU, under its memory's line.

    The axis is twice the memory, whatever the model: the line stands in the middle.
    `before` is the total of the last picture.
    """
    total = sum(parts.values())
    words = f"on each GPU: {units.gigabytes(total)}"
    words += ", far beyond this scale" if total > 2 * memory else ""

    def at(size: float) -> float:
        return _LEFT + min(size / memory, 2) * (_MIDDLE - _LEFT)

    svg = [_key(30), _cells(recipe, 240, 56)]
    svg.append(text(_LEFT, 76, f"A parameter: {sum(recipe.values())} bytes", 16))
    svg.append(text(_LEFT, _BAR - 10, words, 16, font_weight=600))

    # the parts, one behind the other, hatched beyond the memory
    end = 0.0
    for part, size in parts.items():
        svg.append(rect(at(end), _BAR, at(end + size) - at(end), 54, part_color(part), part))
        end += size
    if total > memory:
        over = hatched(_MIDDLE, _BAR, at(total) - _MIDDLE, 54, 9)
        svg.append(f'<g color="white">{over}</g>')

    # the chip's memory, which the states must not cross
    y, limit = _BAR, f"memory: {units.gigabytes(memory)}"
    svg.append(line(_LEFT, y + 60, _RIGHT, y + 60))
    svg.append(line(_MIDDLE, y - 16, _MIDDLE, y + 66, stroke_width=3))
    svg.append(text(_MIDDLE, y + 84, limit, 15, "middle", font_weight=600))
    svg.append(text(_LEFT, y + 84, "0", 15, "middle"))
    if before is not None and before != total:
        svg.append(ghost(_LEFT, y - 3, at(before) - _LEFT, 60, "at the start"))
        svg.append(text(_RIGHT, y + 84, f"dashed: {units.gigabytes(before)}", 14, "end"))
    listed = ", ".join(
        f"{part.replace('_', ' ')} {units.gigabytes(size)}" for part, size in parts.items() if size
    )
    fits = "fits into" if total <= memory else "is more than"
    words = f"On each GPU {listed}: {units.gigabytes(total)} {fits} its {units.gigabytes(memory)}."
    return Drawing("".join(svg), _WIDE, 236, words)
