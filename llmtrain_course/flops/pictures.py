"""Pictures of chapter 02: a product's work, the passes of a step, the peak, pairs of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf

from llmtrain_course.flops.formulas import AttentionPairs, AttentionRow, token_products
from llmtrain_course.kit.chart import Chart, Column, Mark, Path
from llmtrain_course.kit.drawing import (
    CARD,
    COLORS,
    GREY,
    Drawing,
    Style,
    arrow,
    circle,
    ghost,
    line,
    rect,
    text,
)
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Point, Span
from llmtrain_course.kit.layout import BESIDE, Fact, Picture, patch
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units
from llmtrain_helpers.flops import FlopCount

WORDS = {"projections": "projections", "scores": "scores", "mlp": "MLP", "head": "output head"}
"""The words of the parts, from the tokens up."""

_COLORS = {word: COLORS[word if word != "scores" else "attention"] for word in WORDS.values()}
"""Their colours, alike in every picture: scores are attention's blue, with white slants."""

# --- one row of attention

SENTENCE = ("The", "black", "cat", "sat")
QUERIES = {"cat": (0, 2, 1, 0), "sat": (1, 0, 2, 1)}
KEYS = ((0, 1, 0, 0), (1, 1, 0, 1), (1, 0, 2, 1), (0, 1, 1, 0))
VALUES = ((1, 0), (2, 1), (4, 9), (3, 2))
"""A small case, made up: the tokens, two of their queries, all keys and values."""


def row_of_attention(row: AttentionRow, looks: str, step: int) -> Picture:
    """A token's scores, then its shares as bars, then the values that they mix."""
    seen = len(row.scores)
    lanes = []
    for at, token in enumerate(SENTENCE):
        total, share = "not seen", 0.0
        if at < seen:
            share = row.shares[at]
            mixed = f"{share:.2f} × {_listed(VALUES[at])}"
            total = ("", f"score {row.scores[at]}", f"{share:.2f}", mixed)[step]
        bar = Span(0, share, COLORS["attention"], title=token, hidden=step < 2 or at >= seen)
        lanes.append(Lane(token, [bar], total, note=f"key {_listed(KEYS[at])}"))
    mix = _listed(f"{x:.1f}" for x in row.mix)
    shares = _listed(f"{x:.2f}" for x in row.shares)
    words = f"“{looks}” looks at {seen} tokens: scores {_listed(row.scores)}, shares {shares}, "
    return Bars(
        Scale(0, 1, "share of the mix", lambda share: f"{share:.1f}"),
        lanes,
        f"{words}mixed to {mix}.",
        heading=f"the query of “{looks}”: {_listed(QUERIES[looks])}",
        verdict=f"the mix: {mix if step == 3 else '?'}",
        lane=24,
        gap=20,
        keyed=False,
        longest_total="0.76 × (4, 9)",
        names=0.45,
        phone_names=0.2,
    )


def _listed(numbers: Iterable[object]) -> str:
    return f"({', '.join(map(str, numbers))})"


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


def three_products(step: int, flops_each: float, width: int) -> Drawing:
    """Two tokens meet a matrix of 3 × 4 weights: forward, and the two products going back.

    `step` counts: in each of the `PRODUCTS` the first token, then the second, up to six.
    Each step takes `flops_each`. Filled is what acts in this step; hollow, with its
    number, what is known.
    """
    svg, narrow = "", width < BESIDE
    for place, title in enumerate(PRODUCTS):
        x, y = (84, 58 + 244 * place) if narrow else (84 + 226 * place, 58)
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
        "Two tokens of 3 numbers pass a matrix of 3 × 4 weights three times: forward, backward "
        "to pass on, and backward to learn. Each weight multiplies once and adds once per token, "
        f"{flops_each:g} FLOP each time. Done so far: "
        f"{step * flops_each:g} FLOP of {6 * flops_each:g}."
    )
    return Drawing(svg, width, y + 42, words)


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


# --- the parts of a step, in bars and columns


def _forward(counted: FlopCount, order: Iterable[str] = WORDS) -> list[tuple[str, float]]:
    """The words of the model's own parts, and the FLOPs of each in one pass."""
    return [(WORDS[part], counted.parts()[part] / 3) for part in order]


def _repeated(counted: FlopCount) -> list[str]:
    """The words of the parts whose forward pass is repeated."""
    if not counted.recomputed:
        return []
    only_scores = counted.recomputed == counted.scores // 3
    return ["scores"] if only_scores else ["projections", "scores", "MLP"]


def _spans(
    parts: Iterable[tuple[str, float]],
    key: Callable[[str], str],
    unit: Callable[[float], str] | None = None,
    last: float = inf,
) -> Iterator[Span]:
    """The parts of a bar from 0; `key` says what the key calls each, "" for nothing.

    Those up to `last` have their names in them.
    """
    at = 0.0
    for word, size in parts:
        title = f"{word}: {unit(size)}" if unit else word
        color = _COLORS.get(word, COLORS["recomputed"])
        label, slants = ("", "white") if word == "scores" else (word, "")
        label = label if at + size <= last else ""
        yield Span(at, at + size, color, label, title, key(word), slants=slants)
        at += size


def work_by_pass(counted: FlopCount, most: float, previous: FlopCount | None = None) -> Picture:
    """The passes of a step as bars of their parts, on a scale that ends at `most` FLOP.

    An outline is as long as the bar was in the `previous` state.
    """
    now, before, lanes = _passes(counted), _passes(previous or counted), list[Lane]()
    head = f"output head, {units.digits(100 * counted.head / counted.model, 1)}%"
    names = {word: word for word in WORDS.values()} | {"output head": head}  # too thin to be seen
    for name, parts in now.items():
        work, was = (sum(flops for _, flops in one[name]) for one in (now, before))
        outline = Span(
            0, was, title="at the start", name="at the start", previous=True, hidden=was == work
        )
        spans = [*_spans(parts, lambda word: names.get(word, ""), units.flops), outline]
        lanes.append(Lane(name, spans, units.flops(work) if work else "nothing", bold=True))
    works = ", ".join(f"{lane.name} {lane.total}" for lane in lanes)
    total = units.flops(counted.total)
    words = f"The work of a step: {works}. That's {total} in all."
    lanes.append(Lane("together", total=total, bold=True, height=18))
    return Bars(Scale(0, most), lanes, words, lane=42, axis=False)


def _passes(counted: FlopCount) -> dict[str, list[tuple[str, float]]]:
    """The bar of each pass: its parts' words and their FLOPs. Backward is two forwards."""
    forward = _forward(counted, ("projections", "mlp", "head", "scores"))  # what grows is last
    what = "scores" if _repeated(counted) == ["scores"] else "layers"
    again = [(f"the {what} again", float(counted.recomputed))] if counted.recomputed else []
    backward = [(word, 2 * flops) for word, flops in forward]
    return {"forward": forward, "recomputed": again, "backward": backward}


# --- the passes of a step over the stack of layers

_HEIGHT, _SPACE = 170, 1
"""Pixels of the highest stack, and what lies between passes, over the width of forward."""


def passes(counted: FlopCount, num_layers: int, previous: FlopCount | None = None) -> Chart:
    """A step in time order: forward, what is done again, backward twice as wide.

    Each pass is the same stack of layers; its width times a part's height is the part's
    FLOPs. `num_layers` is the number of layers that `counted` holds. With the work of the
    `previous` state both stand to one scale, and its stack is dashed.
    """
    old, again = previous or counted, _repeated(counted)
    most, own = max(counted.model, old.model) / 3, counted.model / 3
    groups = next((g for g in (2, 3, 5, 7) if num_layers % g == 0), 1)
    stack = [*_stack(counted, groups)]
    lefts = 0.0, 1 + _SPACE, 2 + 2 * _SPACE
    marks: list[Mark] = []
    for left, right in ((lefts[0], 1), (lefts[2], lefts[2] + 2)):
        for word, low, high in stack:
            label, slants = ("", "white") if word == "scores" else (word, "")
            color = _COLORS[word]
            marks.append(Column(left, right, high, color, low, word, label=label, slants=slants))
        marks.append(_outline(left, right, old.model / 3, hidden=old.model == counted.model))
    left, right = lefts[1], lefts[1] + 1
    marks += [
        Column(left, right, high, COLORS["recomputed"], low, f"{word}, recomputed")
        for word, low, high in stack
        if word in again
    ]
    marks.append(_outline(left, right, own - counted.head / 3, hidden=len(again) == 3))
    forward, backward = (units.flops(wide * counted.model // 3) for wide in (1, 2))
    repeated = units.flops(counted.recomputed) if again else "nothing"
    ticks = {
        0.5: f"forward ↑\n{forward}",
        left + 0.5: f"recomputed\n{repeated}",
        lefts[2] + 1: f"backward ↓\n{backward}",
    }
    shares = [
        Fact(
            word,
            f"{units.digits(100 * flops / own, 2)}%",
            draw=patch(_COLORS[word], "", slants="white" if word == "scores" else "").draw,
        )
        for word, flops in reversed(_forward(counted))
    ]
    shapes = f", drawn as {groups} × {num_layers // groups}" if groups > 1 else ""
    repeated += f" ({', '.join(again)})" if again else ""
    largest = max(WORDS, key=lambda name: counted.shares()[name])
    words = (
        "A step as passes over the stack of layers, drawn to scale: forward "
        f"{forward}, recomputed {repeated}, backward {backward}, which is double forward. The "
        f"largest part of each pass is the {WORDS[largest]}."
    )
    facts = [*shares, Fact("embedding", "no product"), Fact("backward", "2 × forward")]
    x = Scale(-0.3, lefts[2] + 2, "time; backward begins at the top", ticks=ticks)
    y = Scale(0, most, f"{num_layers} layers{shapes}", ticks={})
    return Chart(x, y, marks, words, facts, height=_HEIGHT)


def _outline(left: float, right: float, high: float, hidden: bool) -> Path:
    """A dashed column: where work would be that is not done, or was."""
    corners = [(left, 0), (left, high), (right, high), (right, 0), (left, 0)]
    return Path(corners, width=1.5, dash="5 4", hidden=hidden)


def _stack(counted: FlopCount, groups: int) -> Iterator[tuple[str, float, float]]:
    """Each part's word and its ends, from the tokens up: groups of layers, then the head."""
    *layer, (head, scores) = _forward(counted)
    at = 0.0
    for word, flops in [*((word, flops / groups) for word, flops in layer)] * groups:
        yield word, at, at + flops
        at += flops
    yield head, at, at + scores


# --- what was achieved, against the peak

_BEYOND = 1.36
"""How far the scale reaches, over the peak, so that a step that claims more seems to."""


def share_of_peak(
    counted: FlopCount,
    flops_per_gpu: float,
    peak_flops: float,
    previous: tuple[float, float] | None = None,
    moves: str = "",
) -> Picture:
    """Bars as long as the peak, filled as far as the GPUs got: MFU, and HFU with what is repeated.

    `flops_per_gpu` counts all that `counted` holds. `previous` are MFU and HFU of the state
    before, as outlines. What lies past the peak is slanted: no chip does that, so an input
    must be wrong. `moves` names the control that drags the end of the HFU.
    """
    hfu = float(flops_per_gpu / peak_flops)
    shares = {WORDS.get(x, x): hfu * float(share) for x, share in counted.shares().items() if share}
    mfu = hfu * counted.model / counted.total
    peak = units.flops_per_second(peak_flops)
    was = [*map(units.percent, previous or ())]
    changed = previous not in (None, (mfu, hfu))
    if hfu > 1:
        done = "more than the peak"
        words = (
            f"A bar that runs past the peak, {peak}, because the claimed work would need "
            f"{units.percent(hfu)} of it, which no chip can do."
        )
    else:
        done = "everything the GPUs did" if counted.recomputed else "no work is repeated"
        words = (
            f"A bar as long as the peak, {peak}. The model's own work fills "
            f"{units.percent(mfu)} of it (MFU), and together with the recomputed work it's "
            f"{units.percent(hfu)} (HFU)."
        )
        words += f" Before: {was[0]} and {was[1]}." if changed else ""
    before = f"at the start: MFU {was[0]}, HFU {was[1]}" if previous else ""
    outlines = [
        Span(0, end, title="at the start", name=label, previous=True, hidden=not changed)
        for end, label in zip(previous or (), ("", before), strict=False)
    ]
    own = {word: share for word, share in shares.items() if word in WORDS.values()}
    knobs = [Point(hfu, CARD, title="the end of the HFU", size=8, moves=moves)] if moves else []
    lanes = [
        _filled("MFU", mfu, own, "the model's own work", outlines[:1]),
        _filled("HFU", hfu, shares, done, [*outlines[1:], *knobs], "not used"),
    ]
    limits = [Limit(1, f"peak {peak}", width=3, bold=True)]
    scale = Scale(0, max(_BEYOND, hfu))
    return Bars(scale, lanes, words, limits, lane=42, axis=False)


def _filled(
    name: str,
    end: float,
    shares: dict[str, float],
    note: str,
    marks: Sequence[Span | Point],
    rest: str = "",
) -> Lane:
    """A bar as long as the peak, filled by shares of it as far as they go; `rest` is the rest."""
    items = [
        Span(0, 1, "none", title="the peak", outline=True),
        *_spans(shares.items(), lambda word: word, last=1),
        Span(min(end, 1), 1, "none", rest, ink="currentColor"),
        Span(1, max(end, 1), hatch=True),
        *marks,
    ]
    return Lane(f"{name} {units.percent(end)}", items, note=note, bold=True)


# --- the square of queries and keys

_MOST = 32
"""The longest sequence that has room: the scale is fixed."""


def knob(moves: str) -> Style:
    """How a dot looks that somebody drags, and the control that it moves."""
    return {"stroke": "currentColor", "stroke_width": 1.5, "data_moves": moves}


def square_of_pairs(pairs: AttentionPairs, width: int) -> Drawing:
    """The square of queries and keys, to one scale: filled pairs count, hollow ones do not.

    Twice the tokens are four times the area; the dashed square is the longest sequence.
    """
    s, narrow = len(pairs.keys), width < BESIDE
    pair, left, top = 8.5 if narrow else 12, 80, 58
    side = pair * _MOST
    svg = text(left + side / 2, 22, "keys: the tokens it looks at", 15, "middle")
    svg += text(10, top + 14, "queries", 15) + arrow(38, top + 24, 38, top + pair * 8 - 16)
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
    corner = left + pair * s, top + pair * s
    svg += circle(*corner, 7, CARD, "the last pair", **knob("tokens"))
    if pairs.counted < pairs.dense:
        first = left + pair * pairs.keys[-1][0], top + pair * (s - 0.5)
        svg += circle(*first, 7, CARD, "the window's end", **knob("window"))
    counted, dense = units.exact(pairs.counted), units.exact(pairs.dense)
    share = units.share(pairs.share)
    if narrow:  # below the square
        y = top + side + 34
        svg += text(14, y, counted, 26, font_weight=700)
        svg += text(left + 36, y, f"of {dense} pairs", 15)
        svg += text(left + side, y, share, 26, "end", font_weight=700)
    else:
        x = left + side + 18
        svg += text(x, top + 40, f"{counted}", 26, font_weight=700)
        svg += text(x, top + 62, f"of {dense} pairs", 15)
        svg += text(x, top + 96, share, 26, font_weight=700)
    words = (
        f"A square of {s} queries by {s} keys, in which {counted} of {dense} pairs are "
        f"filled, {share}."
    )
    height = round(top + side + (48 if narrow else 12))
    return Drawing(svg, min(width, 600), height, words)
