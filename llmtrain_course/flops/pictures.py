"""Drawings of chapter 02: a product's work, the passes of a step, the peak.

Areas and lengths are to scale: of the passes, one square of the same size is the same
number of FLOPs; of the bar, its whole length is the peak.
"""

from __future__ import annotations

from collections.abc import Sequence

from llmtrain_course.flops.formulas import AttentionPairs, token_products
from llmtrain_course.kit.drawing import (
    COLORS,
    GREY,
    Drawing,
    Style,
    arrow,
    fits,
    ghost,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_helpers import units
from llmtrain_helpers.flops import FlopCount, utilization

WORDS = {"projections": "projections", "scores": "scores", "mlp": "MLP", "head": "output head"}
"""The words of the parts, from the tokens up."""

_COLORS = {
    "projections": COLORS["attention"],
    "scores": COLORS["attention"],
    "mlp": COLORS["MLP"],
    "head": COLORS["output head"],
}
_SYMBOLS = {
    "projections": "4h² weights",
    "scores": "s × s pairs",
    "mlp": "8h² weights",
    "head": "hV weights",
}


# --- two tokens through a matrix, forward and back

_CELL, _ROWS, _COLUMNS = 34, 3, 4

PRODUCTS = ("forward", "backward, to pass on", "backward, to learn")
"""The three products of a matrix in training, in their order."""

MATRIX = ((3, 1, 0, 2), (1, 2, 1, 0), (2, 0, 1, 1))
TOKENS = ((2, 1, 3), (1, 0, 2))
RETURNED = ((1, 2, 0, 1), (2, 0, 1, 1))
"""The small case: the weights, two tokens, and the gradients that come back to each."""

SMALL = [token_products(MATRIX, *each) for each in zip(TOKENS, RETURNED, strict=True)]
"""What the three products give for each of the two tokens."""


def two_tokens(step: int, flops_each: float, narrow: bool = False) -> Drawing:
    """Two tokens meet a matrix of 3 × 4 weights: forward, and the two products going back.

    `step` counts: in each of the `PRODUCTS` the first token, then the second, up to six.
    Each step takes `flops_each`. Filled is what acts in this step; hollow, with its
    number, what is known.
    """
    svg = ""
    for place, title in enumerate(PRODUCTS):
        x, y = (84, 58 + 244 * place) if narrow else (84 + 232 * place, 58)
        came = min(max(step - 2 * place, 0), 2)  # tokens that came through here
        now = came if step <= 2 * place + 2 else 0  # the one that passes in this step
        svg += text(x - 76, y - 32, title, 16, **_BOLD)
        left = "gradient of x" if place == 1 else "input x"
        below = "output y" if place == 0 else "gradient of y"
        svg += text(x - 76, y - 8, left, 15)
        svg += text(x + 136, y - 8, "weights" if place < 2 else "their gradient", 15, "end")
        for token in range(2):
            acts = token + 1 == now
            ins = SMALL[token].passed_on if place == 1 else TOKENS[token]
            outs = SMALL[token].output if place == 0 else RETURNED[token]
            ins_known = token < came if place == 1 else True
            outs_known = token < came if place == 0 else step > 2
            across, down = x - 76 + _CELL * token, y + _CELL * (_ROWS + 0.5 + token)
            for j, number in enumerate(ins):
                label = f"{number}" if ins_known else ""
                svg += _cell(across, y + _CELL * j, _ink(left), label, acts)
            for i, number in enumerate(outs):
                label = f"{number}" if outs_known else ""
                svg += _cell(x + _CELL * i, down, _ink(below), label, acts)
        fill = COLORS["gradients" if place == 2 else "weights"]
        for i in range(_COLUMNS):
            for j in range(_ROWS):
                label = _at_weight(place, now, j, i)
                svg += _cell(x + _CELL * i, y + _CELL * j, fill, label, bool(now))
        at, down = (x + 192, y + _CELL * 4 + 4) if narrow else (x + 2 * _CELL, y + _CELL * 5.5 + 20)
        svg += text(at, down, below, 15, "middle")
        sums = " + ".join([f"{flops_each:g}"] * came) or "nothing yet"
        svg += text(at, down + 24, sums, 16, "middle", **_BOLD)
    x, y, unit = (9, 800, 57) if narrow else (84, 310, 80)
    svg += text(x, y - 12, "in all", 15) if narrow else text(74, 329, "in all", 15, "end")
    svg += rect(x, y, unit * step, 28, COLORS["useful"]) if step else ""
    svg += rect(x, y, 6 * unit, 28, stroke="currentColor", rx=3)
    svg += "".join(line(x + 2 * unit * i, y, x + 2 * unit * i, y + 28) for i in (1, 2))
    at, down, anchor = (x + 6 * unit, y - 10, "end") if narrow else (576, 330, "start")
    svg += text(at, down, f"{step * flops_each:g} FLOP", 18, anchor, **_BOLD)
    words = (
        "Two tokens of 3 numbers meet a matrix of 3 × 4 weights, three times: forward, "
        "backward to pass on, and backward to learn. Each weight multiplies once "
        f"and adds once for each token, {flops_each:g} FLOP each time. Done so far: "
        f"{step * flops_each:g} FLOP of {6 * flops_each:g}."
    )
    return Drawing(svg, 360 if narrow else 694, y + 42, words)


def _at_weight(place: int, now: int, j: int, i: int) -> str:
    """What is written at a weight: its number, or its product with what passes."""
    weight = MATRIX[j][i]
    if not now:
        return f"{weight}" if place < 2 else ""
    token = now - 1
    if place == 2:
        parts = [each.gradient[j][i] for each in SMALL[:now]]
        return f"{parts[0]}+{parts[1]}" if token else f"{TOKENS[0][j]}·{RETURNED[0][i]}"
    return f"{weight}·{TOKENS[token][j] if place == 0 else RETURNED[token][i]}"


_BOLD: Style = {"font_weight": "bold"}


def _cell(x: float, y: float, fill: str, label: str, acts: bool) -> str:
    """A square of a matrix or a vector with its number; filled where it acts."""
    svg = (
        rect(x + 1, y + 1, _CELL - 2, _CELL - 2, fill, rx=3)
        if acts
        else rect(x + 2, y + 2, _CELL - 4, _CELL - 4, "none", rx=3, stroke=fill, stroke_width=1.5)
    )
    ink = "white" if acts else "currentColor"
    return svg + (text(x + _CELL / 2, y + 22, label, 14, "middle", ink) if label else "")


def _ink(name: str) -> str:
    return COLORS["gradients" if name.startswith("gradient") else "activations"]


# --- the work of a step, pass by pass


def step_work(
    counted: FlopCount, most: float, before: FlopCount | None = None, narrow: bool = False
) -> Drawing:
    """The passes of a step as bars of their parts, on a scale that ends at `most` FLOP.

    A grey strip under a bar is as long as the bar was `before`. Where it is `narrow`,
    names and work stand above the bars.
    """
    left, long, pitch, above = (14, 332, 86, 24) if narrow else (128, 450, 62, 0)
    svg, unit, listed, moved = "", long / most, [], False
    for row, (name, parts) in enumerate(_bars(counted).items()):
        y, x = 18 + pitch * row + above, float(left)
        at, anchor = (left, "start") if narrow else (118, "end")
        down = y - 8 if narrow else y + 27
        svg += text(at, down, name, 16, anchor, **_BOLD)
        for word, flops in parts:
            wide = unit * flops
            svg += _part(x, y, wide, 42, word, f"{word}: {units.flops(flops)}")
            if word != "scores" and fits(word, wide - 8):
                svg += text(x + wide / 2, y + 27, word, 15, "middle", "white")
            x += wide
        work = units.flops(sum(flops for _, flops in parts)) if parts else "nothing"
        svg += text(left + long, down, work, 15, "end") if narrow else text(x + 8, down, work, 15)
        listed.append(f"{name} {work}")
        was = unit * sum(flops for _, flops in _bars(before)[name]) if before else 0
        if before and abs(was + left - x) > 2:
            svg += rect(left, y + 46, max(was, 3), 5, GREY, "at the start")
            moved = True
    x, head = float(left), f"{units.digits(100 * counted.head / counted.model, 1)} %"
    y = 284 if narrow else 208
    for word in ("projections", "MLP", "scores", "output head"):
        label = f"{word}, {head}" if word == "output head" else word  # too thin to be seen
        svg += _part(x, y, 20, 18, word) + text(x + 27, y + 14, label, 15)
        x += 50 + 8 * len(word)
        if narrow and word == "MLP":
            x, y = float(left), y + 26
    y = 352 if narrow else 254
    if moved:
        svg += rect(left, y - 7, 24, 5, GREY) + text(left + 31, y, "at the start", 15)
    total = f"together {units.flops(counted.total)}"
    width = 360 if narrow else 700
    svg += text(width - (14 if narrow else 16), y, total, 17, "end", **_BOLD)
    return Drawing(svg, width, y + 14, f"The work of a step: {', '.join(listed)}; {total}.")


_FILLS = {WORDS[part]: color for part, color in _COLORS.items()} | dict.fromkeys(
    ("recomputed", "the layers again", "the scores again"), COLORS["recomputed"]
)


def _part(x: float, y: float, wide: float, high: float, word: str, title: str = "") -> str:
    """A part's area, alike in every picture: scores are attention's blue, with white slants."""
    svg = rect(x, y, wide, high, _FILLS[word], title or word)
    if word == "scores" and min(wide, high) > 3:
        svg += f'<g color="white">{hatched(x, y, wide, high, 9)}</g>'
    return svg


def _bars(counted: FlopCount) -> dict[str, list[tuple[str, float]]]:
    """The bar of each pass: its parts' words and their FLOPs. Backward is two forwards."""
    order = ("projections", "mlp", "head", "scores")  # what grows stands at the end
    forward = [(WORDS[part], counted.parts()[part] / 3) for part in order]
    what = "scores" if counted.recomputed == counted.scores // 3 else "layers"
    repeated_parts = (
        [(f"the {what} again", float(counted.recomputed))] if counted.recomputed else []
    )
    return {
        "forward": forward,
        "recomputed": repeated_parts,
        "backward": [(word, 2 * flops) for word, flops in forward],
    }


# --- the passes of a step over the stack of layers

_LEFT, _UNIT, _SPACE, _TOP, _HIGH = 186, 146, 34, 66, 280
"""Where forward begins, how wide it is, what lies between passes; their top, the height."""


def passes(
    counted: FlopCount,
    num_layers: int,
    height: int = _HIGH,
    symbols: bool = False,
    before: FlopCount | None = None,
    narrow: bool = False,
) -> Drawing:
    """A step in time order: forward, what is done again, backward twice as wide.

    Each pass is the same stack of layers; its width times a part's height is the
    part's FLOPs. `num_layers` is the number of layers that `counted` holds; `symbols`
    writes a GPT's sizes beside the parts. With the work of the state `before` both
    stand to one scale, and its stack is dashed. On a `narrow` one the parts are told
    below.
    """
    left, unit, space = (14, 70, 24) if narrow else (_LEFT, _UNIT, _SPACE)
    old = before or counted
    most = max(counted.model, old.model)
    repeated_parts: list[str] = []  # the parts whose forward pass is repeated
    if counted.recomputed:
        only_scores = counted.recomputed == counted.scores // 3
        repeated_parts = ["scores"] if only_scores else ["projections", "scores", "mlp"]
    groups = next((g for g in (2, 3, 5, 7) if num_layers % g == 0), 1)
    stack = _stack(counted, groups, round(height * counted.model / most))
    first, second, third = (left + place * (unit + space) for place in range(3))
    bottom = stack[-1][1] + stack[-1][2]
    forward, backward = (units.flops(wide * counted.model // 3) for wide in (1, 2))

    svg, end = _own_pass(first, unit, stack), first + unit + 14
    svg += arrow(end, bottom, end, _TOP)
    svg += _heading(first + unit / 2, "forward", forward, narrow=narrow)

    # the second forward pass: filled where it is done, an outline where not
    if len(repeated_parts) < 3:
        svg += ghost(second, stack[1][1], unit, bottom - stack[1][1], "not done again")
    for name, y, high in stack:
        if name in repeated_parts:
            label = f"{WORDS[name]}, recomputed"
            svg += _part(second, y, unit, high, "recomputed", label)
    repeated = units.flops(counted.recomputed) if repeated_parts else "nothing"
    svg += _heading(second + unit / 2, "recomputed", repeated, narrow=narrow)
    end = second + unit + 14
    svg += arrow(end, bottom, end, _TOP) if repeated_parts else ""

    end = third + 2 * unit + 14
    svg += _own_pass(third, 2 * unit, stack) + arrow(end, _TOP, end, bottom)
    lines = (backward, "= 2 × forward") if narrow else (f"{backward} = 2 × forward",)
    svg += _heading(third + unit, "backward", *lines, narrow=narrow)
    svg += "" if narrow else _labels(counted, stack, symbols)

    # the arrow of time, and what the stack stands for
    y = _TOP + height + 22
    shapes = f", drawn as {groups} × {num_layers // groups}" if groups > 1 else ""
    layers, lookup = f"{num_layers} layers{shapes}", "embedding: a look-up, no product"
    time = "time; backward begins at the top"
    if narrow:
        svg += arrow(left, y - 4, 358, y - 4) + text(358, y + 18, time, 15, "end")
        svg += _shares(counted, y + 36)
        svg += text(left, y + 106, layers, 15) + text(left, y + 128, lookup, 15)
    else:
        svg += text(left - 172, y + 5, layers, 15) + arrow(left + 62, y, 846, y)
        svg += text(846, y + 26, time, 15, "end") + text(left - 172, y + 26, lookup, 15)
    if old.model != counted.model:
        tall = height * old.model / most
        svg += ghost(first, _TOP, unit, tall) + ghost(third, _TOP, 2 * unit, tall)

    repeated += f" ({', '.join(WORDS[name] for name in repeated_parts)})" if repeated_parts else ""
    largest = max(WORDS, key=lambda name: counted.shares()[name])
    words = (
        "A step as passes over the stack of layers, areas to scale: forward "
        f"{forward}, recomputed {repeated}, backward {backward}, twice as wide as forward. "
        f"The largest part of each is the {WORDS[largest]}."
    )
    size = (372, y + 142) if narrow else (860, y + 46)
    return Drawing(svg, *size, words)


Strip = tuple[str, float, float]
"""A part's name, its top and its height in the stack."""


def _stack(counted: FlopCount, groups: int, height: int) -> list[Strip]:
    """Strips from the head down: groups of layers, each of MLP, scores, projections."""
    forward = {name: counted.parts()[name] // 3 for name in WORDS}
    gap = min(5, height / (2 * groups))  # a stack beside a far larger one is all but flat
    scale = (height - gap * groups) / sum(forward.values())
    strips: list[Strip] = [("head", _TOP, forward["head"] * scale)]
    y = _TOP + forward["head"] * scale + gap
    for _ in range(groups):
        for name in ("mlp", "scores", "projections"):
            strips.append((name, y, forward[name] * scale / groups))
            y += forward[name] * scale / groups
        y += gap
    return strips


def _own_pass(x: float, wide: float, stack: Sequence[Strip]) -> str:
    """A pass of the model's own work; its parts are named where there is room."""
    svg = ""
    for name, y, high in stack:
        svg += _part(x, y, wide, high, WORDS[name])
        if name == "scores":
            for edge in (y, y + high):
                svg += line(x, edge, x + wide, edge, stroke="white", stroke_width=1)
        elif high >= 20 and fits(WORDS[name], wide - 8):
            svg += text(x + wide / 2, y + high / 2 + 5, WORDS[name], 15, "middle", "white")
    return svg


def _heading(centre: float, name: str, *lines: str, narrow: bool = False) -> str:
    top, size, row = (16, 14, 18) if narrow else (26, 17, 22)
    svg = text(centre, top, name, size, "middle", font_weight="bold")
    for place, words in enumerate(lines, 1):
        svg += text(centre, top + place * row, words, 15, "middle")
    return svg


def _share(counted: FlopCount, name: str) -> str:
    """A part's word, and its share of the model's work."""
    share = 3 * (counted.parts()[name] // 3) / counted.model
    return f"{WORDS[name]} {units.digits(100 * share, 2)} %"


def _shares(counted: FlopCount, top: float) -> str:
    """The parts by their colours in two columns, with their shares."""
    svg = ""
    for place, name in enumerate(WORDS):
        x, y = 14 + 168 * (place % 2), top + 26 * (place // 2)
        svg += _part(x, y, 20, 18, WORDS[name]) + text(x + 27, y + 14, _share(counted, name), 15)
    return svg


def _labels(counted: FlopCount, stack: Sequence[Strip], symbols: bool) -> str:
    """The head and the parts of the uppermost layers, with their shares of the model's work.

    Names move down until neighbours keep their distance.
    """
    svg, place = "", 0.0
    for name, top, high in stack[:4]:
        y = top + high / 2
        place = max(y, _TOP + 2, place + (36 if symbols else 22))
        label = _share(counted, name)
        svg += text(_LEFT - 22, place - (2 if symbols else -5), label, 15, "end")
        if symbols:
            svg += text(_LEFT - 22, place + 14, _SYMBOLS[name], 14, "end", opacity=0.8)
        svg += line(_LEFT - 18, place, _LEFT - 3, y, stroke_width=1)
    return svg


# --- what was achieved, against the peak

_BAR_X, _BAR_Y, _BAR_WIDE, _BAR_HIGH = 20, 66, 820, 48

TELEPHONE = 250
"""How long the peak is on a telephone."""


def filled(
    counted: FlopCount,
    flops_per_gpu: float,
    peak_flops: float,
    before: tuple[float, float] | None = None,
    unit: float = _BAR_WIDE,
) -> Drawing:
    """A bar as long as the peak, filled as far as the GPUs got: MFU, and HFU beyond.

    `flops_per_gpu` counts all that `counted` holds. `before` are MFU and HFU of the
    state before, drawn as an outline. `unit` is how long the peak is. A rate above the
    peak is a ValueError.
    """
    hfu = float(utilization(flops_per_gpu, peak_flops))
    mfu = hfu * counted.model / counted.total
    svg = rect(_BAR_X, _BAR_Y, unit, _BAR_HIGH, stroke="currentColor", rx=3)
    svg += _segments(counted, hfu, unit)
    if counted.recomputed:
        svg += _bracket(mfu, 1, f"MFU {units.percent(mfu)}: the model's own work", unit)
        svg += _bracket(hfu, -1, f"HFU {units.percent(hfu)}: all that the GPUs did", unit)
    else:
        same = "HFU is the same" + (", nothing is done twice" if unit != TELEPHONE else "")
        svg += _bracket(mfu, 1, f"MFU {units.percent(mfu)}: {same}", unit)
    svg += _peak(peak_flops, unit)
    words = (
        f"A bar as long as the peak, {units.flops_per_second(peak_flops)}, filled by the "
        f"model's own work to {units.percent(mfu)} (MFU) and with the recomputed "
        f"work to {units.percent(hfu)} (HFU)."
    )
    down = 24 if before and unit == TELEPHONE else 0  # a row for what was
    if before:  # an outline as far as HFU, with a mark at MFU
        own, all_done = (unit * share for share in before)
        y, high, x = _BAR_Y - 5, _BAR_HIGH + 10, _BAR_X + own
        svg += ghost(_BAR_X, y, all_done, high, "at the start")
        svg += line(x, y, x, y + high, stroke_width=1, stroke_dasharray="5 4")
        old_mfu, old_hfu = map(units.percent, before)
        label = f"dashed: MFU {old_mfu}, HFU {old_hfu}"
        svg += text(_wide(unit) - 20, y + high + 25 + down, label, 15, "end", opacity=0.8)
        words += f" Before: {old_mfu} and {old_hfu}."
    return Drawing(svg + _key(counted, unit, down), _wide(unit), _high(unit) + down, words)


def past_peak(
    counted: FlopCount,
    flops_per_gpu: float,
    peak_flops: float,
    unit: float = 0,
    narrow: bool = False,
) -> Drawing:
    """The utilization bar where more is claimed than the peak: it runs past it.

    What lies beyond is slanted. No chip does that, so an input must be wrong. `unit` is
    how long the peak is; 0 lets the whole bar fill the drawing, which may be `narrow`.
    """
    share, fixed = flops_per_gpu / peak_flops, unit or (TELEPHONE if narrow else _BAR_WIDE)
    unit = unit or (_wide(fixed) - 2 * _BAR_X) / share
    x, end = _BAR_X + unit, _BAR_X + unit * share
    label = f"HFU {units.percent(share)}: more than the whole peak"
    svg = [_segments(counted, share, unit), hatched(x, _BAR_Y - 7, end - x, _BAR_HIGH + 14, 9)]
    if unit == fixed:
        mfu = share * counted.model / counted.total
        own = f"MFU {units.percent(mfu)}: the model's own work"
        svg += [_bracket(mfu, 1, own, unit), _bracket(share, -1, label, unit)]
    else:
        svg += [_bracket(share, 1, label, unit)]
    svg += [_peak(peak_flops, unit)]
    words = (
        f"A bar that runs past the peak, {units.flops_per_second(peak_flops)}: the "
        f"work claimed would take {units.percent(share)} of it. No chip does that."
    )
    return Drawing("".join(svg) + _key(counted, fixed), _wide(fixed), _high(fixed), words)


def _high(unit: float) -> int:
    """Room for a key where the peak is short, for there parts have no room for names."""
    return 168 if unit == _BAR_WIDE else 196 if unit != TELEPHONE else 220


def _wide(unit: float) -> int:
    """A short peak leaves room for a third beyond it."""
    return 860 if unit == _BAR_WIDE else round(40 + 1.36 * unit)


def _key(counted: FlopCount, unit: float, down: float = 0) -> str:
    """The parts by their colours, where the peak is short; `down` from their place."""
    if unit == _BAR_WIDE:
        return ""
    svg, x, y = "", float(_BAR_X), 166 + down
    for name, flops in counted.parts().items():
        if flops:
            word = WORDS.get(name, name)
            if unit == TELEPHONE and x + 44 + 8.6 * len(word) > _wide(unit):
                x, y = float(_BAR_X), y + 24
            svg += _part(x, y, 20, 18, word) + text(x + 26, y + 14, word, 15)
            x += 44 + 8.6 * len(word)
    return svg


def _segments(counted: FlopCount, hfu: float, unit: float = _BAR_WIDE) -> str:
    """The bar's pieces: the parts of the model's own work, then what is recomputed.

    `unit` is how long the peak is.
    """
    svg, x = "", float(_BAR_X)
    for name, share in counted.shares().items():
        wide = unit * hfu * float(share)
        if not wide:
            continue
        word = WORDS.get(name, name)
        svg += _part(x, _BAR_Y + 1, wide, _BAR_HIGH - 2, word)
        svg += line(x, _BAR_Y + 1, x, _BAR_Y + _BAR_HIGH - 1, stroke="white") if wide > 3 else ""
        crossed = x < _BAR_X + unit < x + wide - 1  # by the mark of the peak
        if word != "scores" and not crossed and fits(word, wide - 4, 14):
            svg += text(x + wide / 2, _BAR_Y + 30, word, 14, "middle", "white")
        x += wide
    rest = _BAR_X + unit - x
    if fits("not used", rest - 12):
        svg += text(x + rest / 2, _BAR_Y + 30, "not used", 15, "middle", opacity=0.8)
    return svg


def _bracket(share: float, side: int, label: str, unit: float = _BAR_WIDE) -> str:
    """A line from the bar's beginning to a share of it, with its name."""
    end = _BAR_X + unit * share
    y = _BAR_Y + _BAR_HIGH + 8 if side > 0 else _BAR_Y - 8
    return "".join(
        [
            line(_BAR_X, y, end, y, stroke_width=2),
            line(_BAR_X, y - 5 * side, _BAR_X, y, stroke_width=2),
            line(end, y - 5 * side, end, y, stroke_width=2),
            text(_BAR_X, y + (22 if side > 0 else -12), label, 16),
        ]
    )


def _peak(peak: float, unit: float = _BAR_WIDE) -> str:
    x = _BAR_X + unit
    mark = line(x, _BAR_Y - 14, x, _BAR_Y + _BAR_HIGH + 14, stroke_width=3)
    label, anchor = f"peak {units.flops_per_second(peak)}", "end"
    if not fits(label, unit, 16):
        x, anchor = float(_BAR_X), "start"
    y = _BAR_Y - (22 if unit != TELEPHONE else 42)  # there the label of HFU is as long as the bar
    return mark + text(x, y, label, 16, anchor, font_weight="bold")


# --- the square of queries and keys

_PAIR, _MOST = 12, 32
"""A pair of tokens, in pixels, and the longest sequence that has room: the scale is fixed."""


def attention_square(pairs: AttentionPairs, narrow: bool = False) -> Drawing:
    """The square of queries and keys, to one scale: filled pairs count, hollow ones do not.

    Twice the tokens are four times the area; the dashed square is the longest sequence.
    """
    s, pair = len(pairs.keys), 9 if narrow else _PAIR
    (left, top), side = (60 if narrow else 88, 44), pair * _MOST
    edge = 20 if narrow else 38
    svg = text(left + side / 2, 20, "keys: the tokens that are looked at", 15, "middle")
    svg += text(14, top - 8, "queries", 15) + arrow(edge, top, edge, top + 60)
    svg += ghost(left, top, side, side, f"{_MOST} tokens")
    for tick in (8, 16, 24, 32):
        at = pair * tick
        svg += line(left + at, top - 5, left + at, top) + line(left - 5, top + at, left, top + at)
        svg += text(left + at, top - 8, f"{tick}", 14, "middle") if tick < 32 else ""
        svg += text(left - 9, top + at + 5, f"{tick}", 14, "end")
    cells = {True: "", False: ""}
    for query, keys in enumerate(pairs.keys):
        for key in range(s):
            x, y = left + pair * key + 1, top + pair * query + 1
            cells[key in keys] += f"M{x} {y}h{pair - 2}v{pair - 2}h{2 - pair}z"
    svg += f'<path d="{cells[True]}" fill="{COLORS["attention"]}"/>'
    if cells[False]:
        svg += f'<path d="{cells[False]}" fill="none" stroke="{GREY}"/>'
    counted, dense = units.exact(pairs.counted), units.exact(pairs.dense)
    share = units.share(pairs.share)
    if narrow:  # below the square
        y = top + side + 34
        svg += text(left, y, counted, 26, font_weight=700)
        svg += text(left + 86, y, f"of {dense} pairs", 15)
        svg += text(left + side, y, share, 26, "end", font_weight=700)
    else:
        x = left + side + 18
        svg += text(x, top + 40, f"{counted}", 26, font_weight=700)
        svg += text(x, top + 62, f"of {dense} pairs", 15)
        svg += text(x, top + 96, share, 26, font_weight=700)
    words = f"A square of {s} queries by {s} keys: {counted} of {dense} pairs are filled, {share}."
    size = (360, top + side + 48) if narrow else (600, top + side + 12)
    return Drawing(svg, *size, words)
