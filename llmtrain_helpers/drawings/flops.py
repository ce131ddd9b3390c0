"""Drawings of chapter 02: a product's work, the passes of an iteration, the peak.

Areas and lengths are to scale: of the passes, one square of the same size is the same
number of FLOPs; of the bar, its whole length is the peak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmtrain_helpers import units
from llmtrain_helpers.checks import Result
from llmtrain_helpers.drawings.common import (
    COLORS,
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
from llmtrain_helpers.flops import FlopCount, utilization

WORDS = {"projections": "projections", "scores": "scores", "mlp": "MLP", "head": "output head"}
"""The words of the parts, from the tokens up."""

_COLORS = {
    "projections": COLORS["attention"],
    "scores": COLORS["attention"],
    "mlp": COLORS["MLP"],
    "head": COLORS["output head"],
}
_PALE = 0.6
"""The scores are attention too: its colour, paler and slanted."""

_SYMBOLS = {
    "projections": "4h² weights",
    "scores": "s × s pairs",
    "mlp": "8h² weights",
    "head": "hV weights",
}


# --- a token's vector through a matrix, forward and back

_CELL, _ROWS, _COLUMNS = 36, 3, 4


def one_product() -> Drawing:
    """A token's numbers through a matrix: forward, and the two products going back."""
    panels = [
        _panel(0, "forward", "input x", "output y", "weights", (1, 0, 1, 3)),
        _panel(1, "backward, to pass on", "of x", "of y", "weights", (0, 1, 4, 1)),
        _panel(2, "backward, to learn", "input x", "of y", "gradients", (1, 1, 1, 1)),
    ]
    words = (
        "A token's 3 numbers meet a matrix of 3 × 4 weights, three times. Forward, "
        "each output is a column's sum: a multiplication and an addition in each "
        "cell. Backward, each input's gradient is a row's sum; and each weight's "
        "gradient is input times output's gradient, added up over the tokens. Each "
        "time 12 cells × 2 = 24 FLOP: 2 for each weight forward, 4 backward."
    )
    return Drawing("".join(panels), 860, 300, words)


def _panel(place: int, title: str, left: str, below: str, kind: str, marked: Sequence[int]) -> str:
    """A crossbar: values at the left and below, a cell for each weight."""
    x, y = 92 + 284 * place, 62
    across, down = _CELL * _COLUMNS, _CELL * _ROWS
    cells = [
        _cell(x + _CELL * i, y + _CELL * j, COLORS[kind], "× +")
        for i in range(_COLUMNS)
        for j in range(_ROWS)
    ]
    label = text(x + across / 2, y + down + 112, "12 cells × 2 = 24 FLOP", 16, "middle")
    return "".join(
        [
            text(x - 62, 30, title, 17, font_weight="bold"),
            *cells,
            _vector(x - 62, y, left, _ROWS, place == 1),
            _vector(x, y + down + 26, below, _COLUMNS, place == 0),
            _marked(x, y, *marked),
            label,
        ]
    )


def _marked(x: float, y: float, column: int, row: int, wide: int, high: int) -> str:
    """An outline around the cells that belong to one result."""
    place = x + _CELL * column - 2, y + _CELL * row - 2
    size = _CELL * wide + 4, _CELL * high + 4
    return rect(*place, *size, stroke="currentColor", stroke_width=3.5, rx=4)


def _cell(x: float, y: float, fill: str, inside: str = "") -> str:
    """A square of a matrix or a vector."""
    label = text(x + _CELL / 2, y + 24, inside, 15, "middle", "white") if inside else ""
    square = rect(x + 1, y + 1, _CELL - 2, _CELL - 2, fill, rx=3)
    return square + label


def _vector(x: float, y: float, name: str, size: int, comes_out: bool) -> str:
    """The token's numbers at one side, with an arrow into the matrix or out of it."""
    color = COLORS["gradients" if name.startswith("of") else "activations"]
    label = f"gradient {name}" if name.startswith("of") else name
    if size == _ROWS:
        cells = [_cell(x, y + _CELL * i, color) for i in range(size)]
        ends = (x + _CELL + 3, x + 59)
        start, end = reversed(ends) if comes_out else ends
        way = arrow(start, y + 1.5 * _CELL, end, y + 1.5 * _CELL)
        return "".join(cells) + way + text(x, y - 8, label, 15)
    cells = [_cell(x + _CELL * i, y, color) for i in range(size)]
    ends = (y - 23, y - 3)
    start, end = ends if comes_out else reversed(ends)
    way = arrow(x + 2 * _CELL, start, x + 2 * _CELL, end)
    return "".join(cells) + way + text(x, y + _CELL + 17, label, 15)


# --- the passes of an iteration over the stack of layers

_LEFT, _UNIT, _SPACE, _TOP, _HIGH = 186, 146, 34, 66, 280


def passes(
    counted: FlopCount,
    num_layers: int,
    height: int = _HIGH,
    symbols: bool = False,
    before: FlopCount | None = None,
) -> Drawing:
    """An iteration in time order: forward, what is done again, backward twice as wide.

    Each pass is the same stack of layers; its width times a part's height is the
    part's FLOPs. `num_layers` is the number of layers that `counted` holds; `symbols`
    writes a GPT's sizes beside the parts. With the work of the state `before` both
    stand to one scale, and its stack is dashed.
    """
    old = before or counted
    most = max(counted.model, old.model)
    forward = {name: part // 3 for name, part in counted.parts().items()}
    again = _done_again(counted)
    room, height = height, round(height * counted.model / most)
    stack = _stack(forward, num_layers, height)
    columns = [
        _column(0, "forward", 1, stack, counted.model // 3),
        _again(stack, again, counted.recomputed),
        _column(2, "backward", 2, stack, 2 * counted.model // 3),
    ]
    shares = {name: 3 * part / counted.model for name, part in forward.items()}
    svg = [*columns, _labels(stack, shares, symbols), _below(num_layers, room)]
    if old.model != counted.model:
        tall = room * old.model / most
        svg += [ghost(_x(i), _TOP, wide * _UNIT, tall) for i, wide in ((0, 1), (2, 2))]
    return Drawing("".join(svg), 860, _TOP + room + 68, _passes_in_words(counted, again))


def _done_again(counted: FlopCount) -> list[str]:
    """The parts whose forward pass is repeated."""
    if not counted.recomputed:
        return []
    only_scores = counted.recomputed == counted.scores // 3
    return ["scores"] if only_scores else ["projections", "scores", "mlp"]


Strip = tuple[str, float, float]
"""A part's name, its top and its height in the stack."""


def _stack(forward: Mapping[str, Result], num_layers: int, height: int) -> list[Strip]:
    """Strips from the head down: groups of layers, each of MLP, scores, projections."""
    groups = _groups(num_layers)
    whole = sum(forward[name] for name in WORDS)
    scale = (height - 5 * groups) / whole
    strips: list[Strip] = [("head", _TOP, forward["head"] * scale)]
    y = _TOP + forward["head"] * scale + 5
    for _ in range(groups):
        for name in ("mlp", "scores", "projections"):
            strips.append((name, y, forward[name] * scale / groups))
            y += forward[name] * scale / groups
        y += 5
    return strips


def _groups(num_layers: int) -> int:
    """In how many equal groups the layers are drawn."""
    return next((g for g in (2, 3, 5, 7) if num_layers % g == 0), 1)


def _x(place: int) -> float:
    """Where a pass begins: forward is one unit wide, and so is what is repeated."""
    return _LEFT + place * (_UNIT + _SPACE)


def _column(place: int, name: str, times: int, stack: Sequence[Strip], work: Result) -> str:
    x, wide = _x(place), times * _UNIT
    parts = "".join(_strip(x, wide, strip) for strip in stack)
    top, bottom = stack[0][1], stack[-1][1] + stack[-1][2]
    ends = (top, bottom) if place == 2 else (bottom, top)
    way = arrow(x + wide + 14, ends[0], x + wide + 14, ends[1])
    ratio = " = 2 × forward" if times == 2 else ""
    return parts + way + _heading(x + wide / 2, name, work, ratio)


def _heading(centre: float, name: str, work: Result, ratio: str = "") -> str:
    label = f"{units.flops(work)}{ratio}" if work else "nothing"
    title = text(centre, 26, name, 17, "middle", font_weight="bold")
    return title + text(centre, 48, label, 15, "middle")


def _strip(x: float, wide: float, strip: Strip) -> str:
    """A part of a pass, named where there is room."""
    name, y, high = strip
    shade: Style = {"opacity": _PALE} if name == "scores" else {}
    shapes = rect(x, y, wide, high, _COLORS[name], WORDS[name], **shade)
    if name == "scores":
        edges = [(x, y, x + wide, y), (x, y + high, x + wide, y + high)]
        shapes += "".join(line(*edge, stroke="white", stroke_width=1) for edge in edges)
        return shapes + (hatched(x, y, wide, high) if high > 3 else "")
    if high < 20 or not fits(WORDS[name], wide - 8):
        return shapes
    return shapes + text(x + wide / 2, y + high / 2 + 5, WORDS[name], 15, "middle", "white")


def _again(stack: Sequence[Strip], again: Sequence[str], work: Result) -> str:
    """The second forward pass: slanted where it is done, an outline where not."""
    x, bottom = _x(1), stack[-1][1] + stack[-1][2]
    shapes = []
    if len(again) < 3:
        top = stack[1][1]
        shapes.append(ghost(x, top, _UNIT, bottom - top, "not done again"))
    for name, y, high in stack:
        if name in again:
            label = f"{WORDS[name]}, recomputed"
            shapes.append(rect(x, y, _UNIT, high, COLORS["recomputed"], label))
            shapes.append(slanted(x, y, _UNIT, high))
    head = _heading(x + _UNIT / 2, "recomputed", work)
    way = arrow(x + _UNIT + 14, bottom, x + _UNIT + 14, _TOP) if again else ""
    return "".join(shapes) + head + way


def slanted(x: float, y: float, width: float, height: float) -> str:
    """White slanted lines: work that is done a second time."""
    return f'<g color="white">{hatched(x, y, width, height, 9)}</g>'


def _labels(stack: Sequence[Strip], shares: Mapping[str, Result], symbols: bool) -> str:
    """Labels beside the first pass: the parts, each with its share of the model's own work.

    They are the head, and the parts of the uppermost layers.
    """
    named = [(name, y + high / 2) for name, y, high in stack[:4]]
    places = _spread([max(y, _TOP + 2) for _, y in named], 36 if symbols else 22)
    shapes = []
    for (name, y), place in zip(named, places, strict=True):
        up = 2 if symbols else -5
        label = f"{WORDS[name]} {units.digits(100 * shares[name], 2)} %"
        shapes.append(text(_LEFT - 22, place - up, label, 15, "end"))
        if symbols:
            size = text(_LEFT - 22, place + 14, _SYMBOLS[name], 14, "end", opacity=0.8)
            shapes.append(size)
        shapes.append(line(_LEFT - 18, place, _LEFT - 3, y, stroke_width=1))
    return "".join(shapes)


def _spread(places: Sequence[float], gap: float) -> list[float]:
    """Heights of the labels, in order, moved down until neighbours keep their distance."""
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + gap) if found else place)
    return found


def _below(num_layers: int, height: int) -> str:
    """The arrow of time, and what the stack stands for."""
    y, groups = _TOP + height + 22, _groups(num_layers)
    shapes = f", drawn as {groups} × {num_layers // groups}" if groups > 1 else ""
    return (
        text(_LEFT - 172, y + 5, f"{num_layers} layers{shapes}", 15)
        + arrow(_LEFT + 62, y, 846, y)
        + text(846, y + 26, "time; backward begins at the top", 15, "end")
        + text(_LEFT - 172, y + 26, "embedding: a look-up, no product", 15)
    )


def _passes_in_words(counted: FlopCount, again: Sequence[str]) -> str:
    forward = {name: counted.shares()[name] for name in WORDS}
    largest = max(forward, key=lambda name: forward[name])
    repeated = (
        f"recomputed {units.flops(counted.recomputed)} ({', '.join(WORDS[name] for name in again)})"
        if again
        else "recomputed nothing"
    )
    return (
        "An iteration as passes over the stack of layers, areas to scale: forward "
        f"{units.flops(counted.model // 3)}, {repeated}, backward "
        f"{units.flops(2 * counted.model // 3)}, twice as wide as forward. The "
        f"largest part of each is the {WORDS[largest]}."
    )


# --- what was achieved, against the peak

_BAR_X, _BAR_Y, _BAR_WIDE, _BAR_HIGH = 20, 66, 820, 48


def filled(
    counted: FlopCount,
    flops_per_gpu: float,
    peak_flops: float,
    before: tuple[float, float] | None = None,
) -> Drawing:
    """A bar as long as the peak, filled as far as the GPUs got: MFU, and HFU beyond.

    `flops_per_gpu` counts all that `counted` holds. `before` are MFU and HFU of the
    state before, drawn as an outline. A rate above the peak is a ValueError.
    """
    hfu = float(utilization(flops_per_gpu, peak_flops))
    mfu = hfu * counted.model / counted.total
    twice = bool(counted.recomputed)
    own = "the model's own work" if twice else "HFU is the same, nothing is done twice"
    top = f"HFU {units.percent(hfu)}: all that the GPUs did"
    svg = [
        rect(_BAR_X, _BAR_Y, _BAR_WIDE, _BAR_HIGH, stroke="currentColor", rx=3),
        _segments(counted, hfu),
        _bracket(mfu, 1, f"MFU {units.percent(mfu)}: {own}"),
        _bracket(hfu, -1, top) if twice else "",
        _peak(peak_flops),
        _before(before) if before else "",
    ]
    return Drawing("".join(svg), 860, 168, _bar_in_words(mfu, hfu, peak_flops, before))


def past_peak(counted: FlopCount, flops_per_gpu: float, peak_flops: float) -> Drawing:
    """The utilization bar where more is claimed than the peak: it runs past it.

    What lies beyond is slanted. No chip does that, so an input must be wrong.
    """
    share = flops_per_gpu / peak_flops
    unit = _BAR_WIDE / share
    x = _BAR_X + unit
    label = f"HFU {units.percent(share)}: more than the whole peak"
    svg = [
        _segments(counted, share, unit),
        hatched(x, _BAR_Y - 7, _BAR_X + _BAR_WIDE - x, _BAR_HIGH + 14, 9),
        _bracket(share, 1, label, unit),
        _peak(peak_flops, unit),
    ]
    words = (
        f"A bar that runs past the peak, {units.flops_per_second(peak_flops)}: the "
        f"work claimed would take {units.percent(share)} of it. No chip does that."
    )
    return Drawing("".join(svg), 860, 168, words)


def _segments(counted: FlopCount, hfu: float, unit: float = _BAR_WIDE) -> str:
    """The bar's pieces: the parts of the model's own work, then what is recomputed.

    `unit` is how long the peak is.
    """
    shapes, x = [], float(_BAR_X)
    for name, share in counted.shares().items():
        wide = unit * hfu * float(share)
        if name == "recomputed":
            shapes.append(_recomputed(x, wide))
        elif wide:
            shapes.append(_segment(name, x, wide))
        x += wide
    rest = _BAR_X + _BAR_WIDE - x
    if fits("not used", rest - 12):
        place = x + rest / 2, _BAR_Y + 30
        shapes.append(text(*place, "not used", 15, "middle", opacity=0.8))
    return "".join(shapes)


def _segment(name: str, x: float, wide: float) -> str:
    shade: Style = {"opacity": _PALE} if name == "scores" else {}
    box = (x, _BAR_Y + 1, wide, _BAR_HIGH - 2)
    shapes = rect(*box, _COLORS[name], WORDS[name], **shade)
    if name == "scores":
        return shapes + (hatched(*box) if wide > 3 else "")
    if not fits(WORDS[name], wide - 4, 14):
        return shapes
    return shapes + text(x + wide / 2, _BAR_Y + 30, WORDS[name], 14, "middle", "white")


def _recomputed(x: float, wide: float) -> str:
    if not wide:
        return ""
    box = (x, _BAR_Y + 1, wide, _BAR_HIGH - 2)
    shapes = rect(*box, COLORS["recomputed"], "recomputed") + slanted(*box)
    shapes += line(x, _BAR_Y + 1, x, _BAR_Y + _BAR_HIGH - 1, stroke="white")
    if not fits("recomputed", wide - 12):
        return shapes
    label = rect(x + wide / 2 - 42, _BAR_Y + 14, 84, 22, COLORS["recomputed"], rx=4)
    return shapes + label + text(x + wide / 2, _BAR_Y + 30, "recomputed", 15, "middle", "white")


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
    return mark + text(x, _BAR_Y - 22, label, 16, anchor, font_weight="bold")


def _before(shares: tuple[float, float]) -> str:
    """The outline of the state before: as far as HFU, with a mark at MFU."""
    mfu, hfu = (_BAR_WIDE * share for share in shares)
    y, high = _BAR_Y - 5, _BAR_HIGH + 10
    mark = line(_BAR_X + mfu, y, _BAR_X + mfu, y + high, stroke_width=1, stroke_dasharray="5 4")
    label = f"dashed: MFU {units.percent(shares[0])}"
    label += f", HFU {units.percent(shares[1])}"
    place = _BAR_X + _BAR_WIDE, _BAR_Y + _BAR_HIGH + 30
    outline = ghost(_BAR_X, y, hfu, high, "at the start")
    return outline + mark + text(*place, label, 15, "end", opacity=0.8)


def _bar_in_words(mfu: float, hfu: float, peak: float, before: tuple[float, float] | None) -> str:
    label = (
        f"A bar as long as the peak, {units.flops_per_second(peak)}, filled by the "
        f"model's own work to {units.percent(mfu)} (MFU) and with the recomputed "
        f"work to {units.percent(hfu)} (HFU)."
    )
    if before is None:
        return label
    then = " and ".join(units.percent(share) for share in before)
    return f"{label} Before: {then}."
