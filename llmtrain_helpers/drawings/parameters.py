"""The drawings of chapter 01: a transformer's matrices, and their shares as areas.

`transformer` follows a token through the model, each matrix with its size; `areas`
shows where the parameters sit. Both draw what `count_parameters` counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from llmtrain_helpers import units
from llmtrain_helpers.checks import choice
from llmtrain_helpers.drawings.common import (
    COLORS,
    Drawing,
    Style,
    arrow,
    fits,
    ghost,
    line,
    rect,
    text,
)
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters, norm_parameters

WHOLE = "whole model"
PARTS = {
    "embedding": "embedding",
    "attention": "attention",
    "mlp": "MLP",
    "norm": "norms",
    "head": "output head",
}
"""The parts of a count, and the word for each."""

CHOICES = (WHOLE, "attention", "MLP", "embedding", "output head", "norms")
"""What `areas` can open."""

BOLD: Style = {"font_weight": 600}


@dataclass(frozen=True)
class Matrix:
    """A matrix of a model, with its sizes in numbers and in letters.

    What comes in is as long as its `rows`, what goes out as its `columns`; `symbols`
    says the same in letters. A vector has one column.
    """

    name: str
    rows: int
    columns: int
    symbols: str
    part: str

    @property
    def size(self) -> str:
        """Rows and columns for people."""
        if self.columns == 1:
            return f"{self.rows:,}"
        return f"{self.rows:,} × {self.columns:,}"

    @property
    def count(self) -> int:
        """The parameters in it."""
        return self.rows * self.columns

    @property
    def color(self) -> str:
        """The colour of its part."""
        return COLORS[self.part]


def attention(model: Transformer) -> list[Matrix]:
    """The four matrices of attention in one layer."""
    h, d = int(model.hidden_size), int(model.head_dim)
    q, kv = int(model.num_heads) * d, int(model.num_kv_heads) * d
    wide, narrow = "h" if q == h else "ad", "h" if kv == h else "kd"
    ins = [("queries", q, wide), ("keys", kv, narrow), ("values", kv, narrow)]
    matrices = [Matrix(name, h, n, f"h × {word}", "attention") for name, n, word in ins]
    return [*matrices, Matrix("output", q, h, f"{wide} × h", "attention")]


def mlp(model: Transformer) -> list[Matrix]:
    """The matrices of the MLP in one layer, or of one of its experts."""
    h, f = int(model.hidden_size), int(model.intermediate_size)
    wide = "4h" if f == 4 * h else "f"
    ups = ["gate", "up"] if model.gated_mlp else ["up"]
    matrices = [Matrix(name, h, f, f"h × {wide}", "MLP") for name in ups]
    return [*matrices, Matrix("down", f, h, f"{wide} × h", "MLP")]


def tables(model: Transformer) -> list[Matrix]:
    """The tables at the way in: tokens, and positions where they are learned."""
    h, V, s = int(model.hidden_size), int(model.vocab_size), int(model.num_positions)
    tokens = Matrix("embedding", V, h, "V × h", "embedding")
    places = [Matrix("positions", s, h, "s × h", "embedding")] if s else []
    return [tokens, *places]


def heads(model: Transformer) -> list[Matrix]:
    """The output head, where the model has one of its own."""
    h, V = int(model.hidden_size), int(model.vocab_size)
    own = Matrix("output head", h, V, "h × V", "output head")
    return [] if model.tied_embeddings else [own]


def norms(model: Transformer) -> list[Matrix]:
    """The norms of one layer, and the last one."""
    size = int(norm_parameters(model))
    symbol = "2h" if model.layer_norm else "h"
    names = ["before attention", "before MLP", "after the last layer"]
    vectors = [Matrix(name, size, 1, symbol, "norms") for name in names]
    if model.qk_norm:
        heads = [Matrix(x, int(model.head_dim), 1, "d", "norms") for x in ("of queries", "of keys")]
        vectors[2:2] = heads
    return vectors


# --- the flow: from tokens to logits

LEFT, RIGHT, EDGES = 68, 794, (150, 714)
"""Where the way in and the way out stand, and the layer between them."""

OUT = 404
"""At which height the way leads out of a layer."""

LONGEST = 172
"""How tall a table is drawn at most."""


def transformer(model: Transformer, name: str = "A transformer") -> Drawing:
    """The way of a token through a model: each matrix in it with its size.

    One layer is open, the others are a count. The sides of the layer's matrices are to
    scale; a table that would be too long is cut, and says so.
    """
    # pixels for each row or column of the layer's matrices
    widest = max(max(m.rows, m.columns) for m in mlp(model))
    across = max(max(m.rows, m.columns) for m in attention(model))
    unit = min(160 / widest, 60 / across, 44 / int(model.hidden_size))

    # the layer: one open sheet before others
    x, wide, layers = EDGES[0], EDGES[1] - EDGES[0], f"{model.num_layers:,}"
    behind = "".join(f"M{x + d + 4} {40 - d}h{wide - 4}v414" for d in (4, 8, 12, 16))
    svg = f'<path d="{behind}" fill="none" stroke="currentColor" opacity="0.4"/>'
    svg += rect(x, 40, wide, 418, stroke_width=2, stroke="currentColor", rx=10)
    svg += text(x + 14, 66, f"one of {layers} layers, open", 16, **BOLD)
    svg += text(EDGES[1] - 14, 67, f"× {layers}", 21, "end", **BOLD)
    for draw in (_way_in, _attention_row, _mlp_row, _way_out):
        svg += "".join(draw(model, unit))

    inside = ", ".join(f"{m.name} {m.size}" for m in [*attention(model), *mlp(model)])
    ways = ", ".join(f"{m.name} {m.size}" for m in tables(model))
    own = heads(model)
    head = f"output head {own[0].size}" if own else "the embedding again as output head"
    experts = f", one of {model.num_experts} experts" if model.num_experts else ""
    words = (
        f"Drawing: {name}. Tokens; {ways}; one of {layers} layers, open: "
        f"norm, attention, norm, MLP{experts}, with {inside}; then norm, {head}, "
        f"logits: {model.vocab_size:,} scores."
    )
    return Drawing(svg, 860, 470, words)


def _head(x: float, y: float, words: str, size: float = 14) -> str:
    return text(x, y, words, size, "middle", **BOLD)


def _way_in(model: Transformer, unit: float) -> Iterator[str]:
    """The way in: from tokens through their tables into the layer."""
    tokens, *positions = tables(model)
    high, table = _table(tokens, LEFT, 96, unit)
    yield _head(LEFT, 34, "tokens", 16) + arrow(LEFT, 42, LEFT, 64)
    yield _head(LEFT, 83, "embedding") + table
    yield _sized(tokens, LEFT, 96 + high + 18)
    yield _longer(tokens, LEFT, 96 + high + 52, unit)
    for matrix in positions:
        y = 96 + high + (82 if _times(tokens, unit) else 64)
        low, table = _table(matrix, LEFT, y + 9, unit)
        yield _head(LEFT, y, "+ positions") + table
        yield _sized(matrix, LEFT, y + low + 27)
    edge = LEFT + max(tokens.columns * unit, 4) / 2
    yield arrow(edge + 4, 140, EDGES[0] - 3, 140)


def _table(matrix: Matrix, x: float, y: float, unit: float) -> tuple[float, str]:
    """How tall a table of vectors is drawn, and the drawing: cut where it is longer."""
    turned = matrix.part == "output head"
    long, across = (matrix.rows, matrix.columns)[:: -1 if turned else 1]
    wide, high = max(across * unit, 4), max(min(long * unit, LONGEST), 3)
    svg = rect(x - wide / 2, y, wide, high, matrix.color, f"{matrix.count:,}")
    if _times(matrix, unit):  # a slanted band across it
        at = y + 0.6 * high
        ends = (x - wide / 2 - 7, at + 5, x + wide / 2 + 7, at - 5)
        svg += line(*ends, stroke_width=8) + line(*ends, stroke=matrix.color, stroke_width=5)
    return high, svg


def _times(matrix: Matrix, unit: float) -> str:
    """How many times as long a table is as it is drawn; empty where it is not cut."""
    full = max(matrix.rows, matrix.columns) * unit / LONGEST
    return units.digits(full, 2) if full > 1.2 else ""


def _longer(matrix: Matrix, x: float, y: float, unit: float) -> str:
    times = _times(matrix, unit)
    return text(x, y, f"({times} times as long)", 13, "middle") if times else ""


def _sized(matrix: Matrix, x: float, y: float, anchor: str = "middle") -> str:
    """A matrix's size: in letters, and under them in numbers."""
    letters = text(x, y, matrix.symbols, 14, anchor, font_style="italic")
    return letters + text(x, y + 16, matrix.size, 13, anchor)


def _block(matrix: Matrix, x: float, y: float, unit: float) -> str:
    """A matrix to scale, with its name over it and its size under it."""
    wide, high = max(matrix.columns * unit, 3), max(matrix.rows * unit, 3)
    shapes = rect(x - wide / 2, y, wide, high, matrix.color, f"{matrix.count:,}")
    return _head(x, y - 7, matrix.name) + shapes + _sized(matrix, x, y + high + 17)


def _norm(model: Transformer, x: float, y: float) -> str:
    vector = norms(model)[0]
    bar = rect(x - 3, y, 6, 40, vector.color, f"{vector.count:,}")
    return _head(x, y - 7, "norm") + bar + _sized(vector, x, y + 57)


def label(part: str, x: float, y: float) -> str:
    """A part's colour and its word."""
    swatch = rect(x, y - 11, 12, 12, COLORS[part])
    return swatch + text(x + 18, y, part, 15, **BOLD)


def _attention_row(model: Transformer, unit: float) -> Iterator[str]:
    """Queries, keys and values side by side, what weighs them, and the matrix out."""
    *ins, out = attention(model)
    y, middle, x = 122.0, 140.0, EDGES[0]
    yield label("attention", x + 14, 91) + _norm(model, x + 40, y)
    places = [(x + at, matrix) for at, matrix in zip((142, 258, 374), ins, strict=True)]
    for place, matrix in places:
        yield _block(matrix, place, y, unit)

    # the same numbers go into each: straight into the first, by a line above to the others
    first, *others = (place - max(matrix.columns * unit / 2, 22) for place, matrix in places)
    start, bus = x + 50, middle - 40
    yield arrow(start, middle, first - 4, middle) + line(start + 22, middle, start + 22, bus)
    yield line(start + 22, bus, others[-1] - 18, bus)
    for edge in others:
        yield line(edge - 18, bus, edge - 18, middle) + arrow(edge - 18, middle, edge - 3, middle)

    yield arrow(x + 402, middle, x + 458, middle) + _block(out, x + 492, y, unit)
    yield text(x + 432, middle - 9, "weighed", 13, "middle")
    yield text(x + 432, middle + 19, "by q · k", 13, "middle")
    right, low, far = x + 492 + out.columns * unit / 2, 216, EDGES[1] - 10
    yield line(right, middle, far, middle) + line(far, middle, far, low)
    yield line(far, low, x + 40, low) + arrow(x + 40, low, x + 40, 242)


def _mlp_row(model: Transformer, unit: float) -> Iterator[str]:
    """The MLP's matrices, and that it is one of several experts where it is."""
    *ups, down = mlp(model)
    x, wide, high = EDGES[0], down.columns * unit, down.rows * unit
    yield label("MLP", x + 72, 235) + _norm(model, x + 40, 268)
    if model.num_experts:
        words = f"one of {model.num_experts} experts; a token meets {model.experts_per_token}"
        yield text(x + 130, 235, words, 14)
    yield arrow(x + 50, 288, x + 86, 288)
    for matrix, y in zip(ups, (260, 363) if len(ups) > 1 else (300,), strict=True):
        yield _block(matrix, x + 180, y, unit)
    yield arrow(x + 278, 346, x + 318, 346)
    left, beside = x + 330, x + 342 + wide
    yield rect(left, 346 - high / 2, wide, high, down.color, f"{down.count:,}")
    yield text(beside, 326, "down", 14, **BOLD)
    yield _sized(down, beside, 344, "start")
    leave = min(OUT, 346 + high / 2 - 4)
    yield line(left + wide, leave, EDGES[1], leave)


def _way_out(model: Transformer, unit: float) -> Iterator[str]:
    """The way out: from the layer through the last norm and the head to the scores."""
    h, V = int(model.hidden_size), int(model.vocab_size)
    head = Matrix("output head", h, V, "h × V", "output head")
    high, table = _table(head, RIGHT, 188, unit)
    if model.tied_embeddings:
        table = ghost(RIGHT - 22, 188, 44, high, "the embedding again")
    yield arrow(EDGES[1] + 16, OUT, RIGHT - 30, OUT) + table
    yield rect(RIGHT - 22, OUT - 3, 44, 6, COLORS["norms"])
    yield _head(RIGHT, OUT + 22, "norm") + arrow(RIGHT, OUT - 8, RIGHT, 194 + high)
    yield _head(RIGHT, 124, "output head")
    if model.tied_embeddings:
        yield text(RIGHT, 144, "the embedding", 13, "middle")
        yield text(RIGHT, 160, "again (tied)", 13, "middle")
    else:
        yield _sized(head, RIGHT, 144) + _longer(head, RIGHT, 178, unit)
    yield arrow(RIGHT, 106, RIGHT, 74) + _head(RIGHT, 46, "logits", 16)
    yield text(RIGHT, 65, f"{V:,} scores", 13, "middle")


# --- a sum and what changes it


def waterfall(start: tuple[str, int], changes: dict[str, int], end: str) -> Drawing:
    """A waterfall from one count to another: each change a bar from the last one's end.

    `start` is a name and its count, `changes` what is added or taken by name, and `end`
    the name of what comes out. A name that begins with a part, as in `MLP: gated`, has
    that part's colour.
    """
    level, rows = start[1], [(start[0], 0, start[1])]
    for name, change in changes.items():
        rows.append((name, level, change))
        level += change
    rows.append((end, 0, level))
    unit = 440 / max(low + max(change, 0) for _, low, change in rows)
    svg = ""
    for i, (name, low, change) in enumerate(rows):
        whole, y = i in (0, len(rows) - 1), 16 + 40 * i
        x, wide = 260 + unit * min(low, low + change), max(unit * abs(change), 2)
        fill = COLORS.get(name.partition(":")[0], COLORS["memory"])
        weight: Style = BOLD if whole else {}
        svg += text(248, y + 19, name, 15, "end", **weight)
        svg += rect(x, y, wide, 28, fill, name)
        svg += text(x + wide + 10, y + 19, units.count(change) if whole else _signed(change), 15)
        svg += line(260, y - 4, 260, y + 36, opacity=0.4)
    steps = ", ".join(f"{name} {_signed(change)}" for name, change in changes.items())
    words = f"{start[0]} {units.count(start[1])}; {steps}; {end} {units.count(level)}."
    return Drawing(svg, 860, 24 + 40 * len(rows), words)


def _signed(change: int) -> str:
    """A change with its sign.

    >>> _signed(-805_306_368)
    '− 805 million'
    """
    return f"{'+' if change > 0 else '−'} {units.count(abs(change))}"


# --- the shares: areas to scale

LINE, TOP, TALL = (20, 840), 130, 150
"""Where the strip of areas begins and ends, and how tall it is."""

Box = tuple[float, float, float, float]
"""The place of a rectangle: x, y, width, height."""


def areas(
    model: Transformer, chosen: str | None = None, before: Transformer | None = None
) -> Drawing:
    """Where the parameters sit: blocks whose area is their share, one part opened.

    `chosen` is one of `CHOICES`: its matrices stand below, to scale among themselves.
    `before` is the model of the last picture: what changed leaves a dashed outline.
    """
    part = choice("chosen", chosen or WHOLE, CHOICES)
    changed, places = (before if before != model else None), boxes(model)
    svg = totals(model, changed) + key(model, changed, part) + _strip(model, part)
    if changed:  # where the parts stood that moved
        for word, old in boxes(changed).items():
            far = max(abs(a - b) for a, b in zip(old, places[word], strict=True))
            if word != "norms" and old[2] > 1 and far > 2:
                svg += ghost(*old, f"{word} at the start")

    # lines from the opened place in the strip to what is opened
    in_layers = part in (WHOLE, "attention", "MLP", "norms")
    x, _, wide, _ = places["attention" if in_layers else part]
    if wide:
        wide /= model.num_layers if in_layers else 1
        left, y, across, _ = FRAME
        svg += rect(x, TOP, wide, TALL, stroke="currentColor", stroke_width=1.5)
        for start, end in ((x, left), (x + wide, left + across)):
            svg += line(start, TOP + TALL, end, y, opacity=0.5, stroke_width=1)
    svg += _opened(model, part, changed)

    counted = count_parameters(model)
    sizes = ", ".join(
        f"{word} {units.count(size)} ({units.percent(size / counted.total)})"
        for word, size in zip(PARTS.values(), counted.parts().values(), strict=True)
        if size
    )
    words = f"Drawing: {units.count(counted.total)} parameters as areas: {sizes}."
    if model.num_experts:
        idle = model.num_experts - model.experts_per_token
        words += f" Pale: experts that a token does not meet, {idle} of {model.num_experts} "
        words += "in a layer."
    inside = ", ".join(f"{m.name} {m.size}" for m in opened(model, part))
    return Drawing(svg, 860, 502, f"{words} Opened, {_title(model, part)}: {inside}.")


def boxes(model: Transformer) -> dict[str, Box]:
    """The place of each part in the strip: its area is its share of the whole."""
    shares = count_parameters(model).shares()
    wide, x = LINE[1] - LINE[0], float(LINE[0])
    places = {"embedding": (x, float(TOP), wide * shares["embedding"], float(TALL))}
    x += places["embedding"][2]
    inside = {name: shares[name] for name in ("attention", "mlp", "norm")}
    layers, y = wide * sum(inside.values()), float(TOP)
    for name, share in inside.items():
        high = TALL * share / sum(inside.values())
        places[PARTS[name]] = (x, y, layers, high)
        y += high
    places["output head"] = (x + layers, float(TOP), wide * shares["head"], float(TALL))
    return places


def totals(model: Transformer, before: Transformer | None) -> str:
    """What areas mean; beside it, as bars, all parameters before a change and now."""
    now = int(count_parameters(model).total)
    shown = text(20, 30, "Where they sit: areas to scale", 16, **BOLD)
    if before is None:
        return shown
    then = int(count_parameters(before).total)
    unit = 330 / max(now, then)
    was = text(840, 20, f"dashed: {units.count(then)}", 13, "end")
    bars = rect(510, 26, now * unit, 15, COLORS["idle"])
    bars += ghost(510, 26, then * unit, 15)
    return shown + was + bars


def key(model: Transformer, before: Transformer | None, chosen: str) -> str:
    """A column for each part: its colour and word, its count, its share."""
    now, shares = count_parameters(model).parts(), count_parameters(model).shares()
    then = count_parameters(before).parts() if before else now
    parts = []
    for place, (name, word) in enumerate(PARTS.items()):
        x = LINE[0] + place * 166
        parts.append(label(word, x, 60))
        if word == chosen:
            parts.append(line(x, 66, x + 148, 66, stroke=COLORS[word], stroke_width=3))
        count = units.count(now[name]) if now[name] else "none of its own"
        share = units.percent(shares[name])
        parts.append(text(x + 18, 83, count, 15))
        parts.append(text(x + 18, 100, share if now[name] else "", 13))
        if then[name] != now[name]:
            was = f"was {units.count(then[name]) if then[name] else 'none'}"
            parts.append(text(x + 18, 117, was, 13))
    return "".join(parts)


def _strip(model: Transformer, chosen: str) -> str:
    """The parts as blocks, seams between layers, and words where there is room."""
    svg, count, places = "", int(model.num_layers), boxes(model)
    for word, (x, y, wide, high) in places.items():
        pale = 1 if chosen in (WHOLE, word) or model.num_experts else 0.3
        if word == "norms" and high < 3:  # thinner than a line: drawn as one
            y, high = y + high - 3, 3
        mixed = word == "MLP" and model.num_experts
        if wide:
            shade = 0.3 * pale if mixed else pale
            svg += rect(x, y, wide, high, COLORS[word], word, opacity=shade)
        if mixed:
            svg += _met(model, pale)

    x, _, wide, _ = places["attention"]
    a_layer = wide / count
    step = ceil(2.5 / a_layer)  # a seam for each layer, or for as many as have room
    seams = "".join(f"M{x + i * a_layer:.1f} {TOP}v{TALL}" for i in range(step, count, step))
    whole = f'd="{seams}" stroke="white" stroke-width="0.7" opacity="0.75"'
    svg += f'<path {whole} fill="none"/>'

    for word, (x, y, wide, high) in places.items():
        left = x + (a_layer + 8 if word in ("attention", "MLP") else 8)
        seen = chosen in (WHOLE, word) and not (word == "MLP" and model.num_experts)
        if seen and high > 24 and fits(word, x + wide - left, 17):
            svg += text(left, y + 21, word, 15, fill="white", **BOLD)
    return svg


def _met(model: Transformer, pale: float) -> str:
    """The experts that a token meets, layer by layer, over the pale ones."""
    x, y, wide, high = boxes(model)["MLP"]
    layers, experts = int(model.num_layers), int(model.num_experts)
    one, each = wide / layers, high / experts
    block = f"h{one:.1f}v{each:.1f}h-{one:.1f}z"
    path = "".join(
        f"M{x + layer * one:.1f} {y + expert * each:.1f}{block}"
        for layer in range(layers)
        for expert in _chosen(model, layer)
    )
    svg = f'<path d="{path}" fill="{COLORS["MLP"]}" opacity="{pale}"/>'
    if each > 4:  # room for a line between experts
        seams = "".join(f"M{x:.1f} {y + i * each:.1f}h{wide:.1f}" for i in range(1, experts))
        svg += f'<path d="{seams}" stroke="{COLORS["MLP"]}" opacity="0.4" fill="none"/>'
    return svg


def _chosen(model: Transformer, layer: int) -> list[int]:
    """Experts that a token meets in a layer: here in a fixed pattern.

    In a model the router chooses, for each token and each layer anew.
    """
    count, met = model.num_experts, model.experts_per_token
    spread = [(layer * 0.381966 * count + i * count / met) % count for i in range(met)]
    return sorted(int(place) for place in spread)


# --- one part opened: its matrices, to scale among themselves

FRAME = (20, 312, 820, 174)
"""The place of what is opened."""


def opened(model: Transformer, chosen: str) -> list[Matrix]:
    """The matrices that are drawn when a part is chosen."""
    matrices = {
        WHOLE: [*attention(model), *mlp(model)],
        "attention": attention(model),
        "MLP": mlp(model),
        "embedding": tables(model),
        "output head": heads(model),
        "norms": norms(model),
    }
    return matrices[chosen]


def _opened(model: Transformer, chosen: str, before: Transformer | None) -> str:
    """The frame of what is opened, with its title and its matrices."""
    matrices = opened(model, chosen)
    old = {m.name: m for m in opened(before, chosen)} if before else {}
    x, y, wide, high = FRAME
    svg = rect(x, y, wide, high, stroke="currentColor", opacity=0.5, rx=8)
    svg += text(x + 14, y + 24, _title(model, chosen), 15, **BOLD)

    # the longest side before a change, where outlines would be a dot, or too large
    now = max((max(m.rows, m.columns) for m in matrices), default=0)
    then = max((max(m.rows, m.columns) for m in old.values()), default=0)
    if now and then and not 0.1 < then / now < 1.16:
        svg += text(x + wide - 14, y + 24, f"dashed: longest side {then:,}", 13, "end")
    grid = chosen in (WHOLE, "MLP") and model.num_experts
    svg += _row_of(matrices, old, wide - (176 if grid else 16))
    return svg + (_expert_grid(model) if grid else "")


def _row_of(matrices: Sequence[Matrix], old: dict[str, Matrix], wide: float) -> str:
    """Matrices beside each other, each with its name, its size and its count."""
    if not matrices:
        return ""
    flat = matrices[0].part in ("embedding", "output head")  # drawn on its side
    sides = [_sides(m, flat) for m in matrices]
    shares = [max(long, 0.25 * max(x for x, _ in sides)) for long, _ in sides]
    rooms = [wide * share / sum(shares) if flat else wide / len(sides) for share in shares]
    unit = min(
        72 / max(y for _, y in sides),
        *((room - 24) / x for room, (x, _) in zip(rooms, sides, strict=True)),
    )
    parts, x = [], FRAME[0] + 8.0
    for matrix, room in zip(matrices, rooms, strict=True):
        parts.append(_shown(matrix, old.get(matrix.name), x + room / 2, unit, flat))
        letters = max(9, min(13, room / (0.6 * len(matrix.size))))
        place = (x + room / 2, FRAME[1] + 146)
        parts.append(text(*place, matrix.size, letters, "middle"))
        x += room
    return "".join(parts)


def _sides(matrix: Matrix, flat: bool) -> tuple[int, int]:
    """How wide and how tall a matrix is drawn: a table lies on its side."""
    if not flat:
        return matrix.columns, matrix.rows
    return max(matrix.rows, matrix.columns), min(matrix.rows, matrix.columns)


def _shown(matrix: Matrix, old: Matrix | None, x: float, unit: float, flat: bool) -> str:
    """A matrix of the opened part, and the outline of what it was before."""
    y, (wide, high) = FRAME[1] + 94, _sides(matrix, flat)
    size = max(wide * unit, 4), max(high * unit, 2)
    shapes = rect(x - size[0] / 2, y - size[1] / 2, *size, matrix.color)
    across, tall = (side * unit for side in _sides(old, flat)) if old else (0, 0)
    if old and old != matrix and across < 150 and tall < 84:
        shapes += ghost(x - across / 2, y - tall / 2, across, tall, "at the start")
    words = units.count(matrix.count) if matrix.columns > 1 else ""
    count = text(x, FRAME[1] + 161, words, 13, "middle")
    return _head(x, FRAME[1] + 49, matrix.name, 13) + shapes + count


def _title(model: Transformer, chosen: str) -> str:
    counted, l = count_parameters(model), model.num_layers
    parts = {word: counted.parts()[name] for name, word in PARTS.items()}
    if chosen == WHOLE:
        of_norms = sum(matrix.count for matrix in norms(model)[:-1])
        layer = (parts["attention"] + parts["MLP"]) // l + of_norms
        return f"one of {l:,} layers: {units.count(layer)} parameters{_mixed(model)}"
    if chosen in ("attention", "MLP"):
        one, all_of = units.count(parts[chosen] // l), units.count(parts[chosen])
        times = f"{chosen} in one layer: {one}, times {l:,} layers: {all_of}"
        return times + (_mixed(model) if chosen == "MLP" else "")
    if chosen == "output head" and model.tied_embeddings:
        return "output head: none of its own, the embedding is used again (tied)"
    if chosen == "norms":
        return f"the norms of a layer, and the last one; all {l:,} layers: " + (
            units.count(parts[chosen])
        )
    return f"{chosen}: {units.count(parts[chosen])}, drawn on its side"


def _mixed(model: Transformer) -> str:
    return f"; one of its {model.num_experts} experts drawn" if model.num_experts else ""


def _expert_grid(model: Transformer) -> str:
    """All experts of a layer as squares: those that a token meets are full."""
    count, met = model.num_experts, model.experts_per_token
    left, top, wide, high = FRAME[0] + FRAME[2] - 160, FRAME[1] + 54, 148, 76
    columns = max(ceil(sqrt(count * wide / high)), 1)
    cell = min(wide / columns, high / ceil(count / columns), 38)
    met_here = _chosen(model, 0)
    parts = [text(left + wide / 2, FRAME[1] + 49, "experts", 13, "middle", **BOLD)]
    start = left + (wide - columns * cell) / 2
    for expert in range(count):
        x, y = start + expert % columns * cell, top + expert // columns * cell
        full = 1 if expert in met_here else 0.25
        parts.append(rect(x, y, cell - 1.5, cell - 1.5, COLORS["MLP"], opacity=full))
    words = f"{met} of {count} for each token"
    return "".join([*parts, text(left + wide / 2, FRAME[1] + 155, words, 13, "middle")])
