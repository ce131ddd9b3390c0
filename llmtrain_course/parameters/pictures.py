"""The drawings of chapter 01: a token's way past the matrices, and their areas to scale.

All of them draw what `count_parameters` counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import ceil

from llmtrain_course.kit.drawing import (
    CARD,
    COLORS,
    Style,
    arrow,
    circle,
    ghost,
    line,
    rect,
    switch,
    text,
)
from llmtrain_course.kit.lanes import Bars, Lane, Span
from llmtrain_course.kit.layout import (
    INK,
    SMALL,
    USUAL,
    Below,
    Box,
    Diagram,
    Fact,
    Facts,
    NextTo,
    Picture,
    Swatch,
    key,
    paragraph,
    patch,
    text_width,
    wrapped,
)
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import ParameterCount, count_parameters

PARTS = {
    "embedding": "embedding",
    "attention": "attention",
    "mlp": "MLP",
    "norm": "norms",
    "head": "output head",
}
"""The parts of a count, and the word for each."""

BOLD: Style = {"font_weight": 600}

Shape = tuple[int, int]
"""Hidden size and layers."""


# --- the stream: what a token meets on its way up

ACTS = (
    "the embedding",
    "query, key and value",
    "the query meets the keys",
    "attention's output",
    "the MLP's way up",
    "the MLP's way down",
    "all other layers",
    "the scores",
)
"""What acts in each step, from the look-up of a token to the scores; a click goes there."""

STEPS = len(ACTS)

SIDE, NORM, TABLE = 26, 7, 18
"""Pixels of the hidden size, to which a layer's matrices are to scale; of a norm; of a table."""

_VECTORS, _TOKENS = ("query", "key", "value"), ("The", "black", "cat", "sat")

_FITS = (0.1, 0.2, 0.5, 0.2)
"""How well each token's key fits the query of the last one: an example."""


def _at(left: float, middle: float, width: float, height: float = SIDE) -> Box:
    """A rectangle from its left side and its middle's height."""
    return Box(left, middle - height / 2, left + width, middle + height / 2)


class Places:
    """Where the stream and a layer next to it stand, from a corner on and within a width."""

    def __init__(self, left: float, top: float, width: float) -> None:
        self.right, self.stream = left + width, left + SIDE
        self.back = self.stream + SIDE  # down to the stream, for what is added
        frame = self.back + 8
        self.norm, gap = frame + 6, 0.06 * (self.right - frame)
        self.matrices = self.norm + NORM + gap  # queries, keys and values; up
        self.names = self.matrices + SIDE + 9
        self.middle = self.right - 6 - SIDE / 2  # of attention's output
        self.pitch = min((self.middle - 58 - self.names) / len(_TOKENS), 64)
        self.tokens = self.middle - 6 - len(_TOKENS) * self.pitch

        self.mlp = top + 162  # the rows of the MLP and of attention, and of their sums
        self.mlp_sum, self.attention_sum = self.mlp - 60, self.mlp + 80
        query = self.attention_sum + (38 if self.middle - frame > 400 else 60)
        self.rows = query, query + 42, query + 84  # of the query, the keys, the values
        bottom = self.rows[-1] + 34

        self.scores = _at(left, top + 13, 2 * SIDE, TABLE)
        self.embedding = _at(left, bottom + 37, 2 * SIDE, TABLE)
        self.layer = Box(frame, top + 52, self.right, bottom)
        self.up = _at(self.matrices, self.mlp, 4 * SIDE)
        self.down = _at(self.up.right + 2.5 * gap, self.mlp, SIDE, 4 * SIDE)
        self.output = _at(self.middle - SIDE / 2, self.attention_sum, SIDE)
        makes = _at(self.norm, self.rows[1], self.matrices + SIDE - self.norm, 84 + SIDE)
        compares = _at(self.tokens, self.rows[1], self.middle - 12 - self.tokens, 92)
        reads = _at(self.norm, self.mlp, self.up.right - self.norm, 40)
        self.acting = (  # what acts in each step
            *(self.embedding, makes, compares, self.output),
            *(reads, self.down, self.layer, self.scores),
        )


def stream(model: Transformer, step: int) -> Picture:
    """A token's way up the residual stream, as far as `step`, from 0 to 7.

    Attention and MLP of one layer read the stream, and each adds to it. What the token
    has not met yet is an outline.
    """
    l, h = int(model.num_layers), int(model.hidden_size)
    words = (
        f"A token's stream, {h:,} numbers wide, passes one of {l} layers. Attention reads "
        f"it, compares queries with keys, weighs values, and adds the result to it. Then the MLP "
        f"reads it and adds to it. Step {step} of {STEPS - 1}."
    )
    return Diagram(partial(_stream, model, step), words)


def _stream(
    model: Transformer, step: int, left: float, top: float, width: float
) -> tuple[str, float]:
    l, h, V = int(model.num_layers), int(model.hidden_size), int(model.vocab_size)
    at, seen = Places(left, top, width), step > 6
    x, foot, beside = at.stream, at.embedding.bottom, at.layer.left + 4
    svg = rect(*_sides(at.layer), stroke=INK, rx=6, opacity=0.45)
    svg += rect(*_sides(at.acting[step], 5 * (step != 6)), stroke=INK, rx=6, stroke_width=2.5)
    layer = f"one of {l} layers, h = {h:,}"
    name = text(at.right - 12, at.layer.top + 22, layer, USUAL, "end", **BOLD)
    svg += switch(name, "step", 6, f"{layer}: {ACTS[6]}")
    svg += "".join([*_trunk(step, at), *_attention_branch(step, at), *_mlp_branch(step, at)])

    # the way in, and the way out
    svg += _shape(at.embedding, "embedding", True) + _shape(at.scores, "embedding", seen)
    svg += arrow(x, foot + 16, x, foot + 2) + text(x, foot + 32, "“sat”", 15, "middle", **BOLD)
    svg += arrow(x, at.scores.top - 2, x, top - 11, opacity=1 if seen else 0.4)
    svg += text(x + 12, at.layer.bottom + 18, "the stream")
    lookup = f"embedding: {V:,} rows of {h:,} numbers, of which one is “sat”"
    drawn, y = paragraph(beside, at.embedding.top - 2, lookup, at.right - beside)
    end = f"the embedding again: a score for each of {V:,} tokens"
    end = end if seen else "the top: which token comes next?"
    lines = len(wrapped(end, at.right - beside))
    svg += drawn + paragraph(beside, top + 13 - 10 * lines, end, at.right - beside)[0]
    for place, (box, acts) in enumerate(zip(at.acting, ACTS, strict=True)):
        if place != 6:  # the layer is all around the others: its name is clicked
            over = rect(*_sides(box, 5), CARD, acts, opacity=0)
            svg += switch(over, "step", place, acts)
    svg += text(beside, at.layer.top - 6, f"{l - 1} more layers", **BOLD) if step > 5 else ""
    fill, fits = COLORS["activations"], "how well a key fits"
    bars = Span(0, 1, fill, name=fits, rise=0.5, hidden=step < 2).swatch()
    swatches = patch(fill, "numbers of the tokens"), bars
    drawn, y = key(swatches, beside, max(y + 4, foot + 20), at.right - beside)
    return svg + drawn, max(y, foot + 36)


def _sides(box: Box, away: float = 0) -> tuple[float, float, float, float]:
    """The corner and the sides of a rectangle, or of a frame so many pixels away."""
    left, top, right, bottom = box
    return left - away, top - away, right - left + 2 * away, bottom - top + 2 * away


def _shape(box: Box, part: str, met: bool) -> str:
    """A matrix: filled once the token has met it, before that an outline."""
    outline: Style = {} if met else {"stroke": COLORS[part], "stroke_width": 1.5}
    return rect(*_sides(box), COLORS[part] if met else "none", part, **outline)


def _trunk(step: int, at: Places) -> Iterator[str]:
    """The stream itself, as high as the token has come, and the two places of adding."""
    x, foot, read, end = at.stream, at.embedding.top, at.rows[1], at.scores.bottom
    sums = at.attention_sum, at.mlp_sum
    top = (foot, read, read, sums[0], at.mlp, sums[1], at.layer.top - 8, end)[step]
    yield line(x, foot, x, end, stroke_width=11, opacity=0.15)
    yield line(x, foot, x, top, stroke=COLORS["activations"], stroke_width=11)
    for y, done in zip(sums, (step >= 3, step >= 5), strict=True):
        yield circle(x, y, 12, COLORS["activations"] if done else CARD, "added")
        ink = "white" if done else INK
        yield text(x, y + 7, "+", 22, "middle", ink, **BOLD)


def _faint(seen: bool) -> Style:
    return {} if seen else {"opacity": 0.35}


def _path(corners: Sequence[tuple[float, float]], met: bool = True) -> str:
    return "".join(line(*start, *end, **_faint(met)) for start, end in pairwise(corners))


def _read(at: Places, y: float, met: bool) -> str:
    """The stream is read, and what's read is normed."""
    norm = _shape(_at(at.norm, y, NORM, 40), "norms", met)
    return arrow(at.stream + 6, y, at.norm - 3, y, **_faint(met)) + norm


def _add(at: Places, box: Box, y: float, met: bool) -> str:
    """From the top of a matrix over its branch back to where it's added to the stream."""
    x, over = (box.left + box.right) / 2, y - 20
    way = _path([(x, box.top), (x, over), (at.back, over), (at.back, y)], met)
    return way + arrow(at.back, y, at.stream + 14, y, **_faint(met))


def _attention_branch(step: int, at: Places) -> Iterator[str]:
    """Reading, three vectors, the comparison with earlier tokens, and adding."""
    read, compared, added = step > 0, step > 1, step > 2
    y, x, (query, keys, values) = at.attention_sum - 6, at.norm + 4, at.rows
    below = query - y > 50
    yield label("attention", x, y)
    yield text(x + 108 * (not below), y + 20 * below, "four matrices of h × h")
    yield _read(at, keys, read) + text(at.norm - 2, query - 22, "norm", SMALL)
    for row, name in zip(at.rows, _VECTORS, strict=True):
        yield line(at.norm + NORM, keys, at.matrices, row, **_faint(read))
        yield _shape(_at(at.matrices, row, SIDE), "attention", read)
        yield text(at.names, row + 5, name, SMALL)
    if compared:
        yield from _comparison(at)
    yield _path([(at.middle - 10, values), (at.middle, values)], added)
    yield arrow(at.middle, values, at.middle, at.output.bottom + 3, **_faint(added))
    yield _shape(at.output, "attention", added)
    yield text(at.output.left - 6, y, "output", SMALL, "end")
    yield _add(at, at.output, at.attention_sum, added)


def _comparison(at: Places) -> Iterator[str]:
    """The last token's query meets the keys so far; bars say how much of each value it takes."""
    (query, keys, values), fill = at.rows, COLORS["activations"]
    middles = [at.tokens + at.pitch * (place + 0.5) for place in range(len(_TOKENS))]
    own, wide = middles[-1], min(at.pitch - 6, 30)
    for name, y, end in zip(_VECTORS, at.rows, (own - wide / 2, at.tokens, at.tokens), strict=True):
        yield arrow(at.names + text_width(name, SMALL), y, end - 6, y)

    def vector(x: float, y: float, title: str, opacity: float = 1) -> str:
        return rect(x - wide / 2, y - 7, wide, 14, fill, title, opacity=opacity)

    yield vector(own, query, "the query of the last token")
    yield text(own + wide / 2, query - 15, "the query meets each key", SMALL, "end")
    for x, word, share in zip(middles, _TOKENS, _FITS, strict=True):
        yield line(own, query + 7, x, keys - 7, opacity=0.6)
        yield vector(x, keys, "a key") + vector(x, values, "a value", share + 0.5)
        bar = x - 0.35 * wide, values - 9 - 44 * share, 0.7 * wide, 44 * share
        yield rect(*bar, fill, "how well its key fits")
        yield text(x, values + 25, word, SMALL, "middle", **(BOLD if x == own else {}))


def _mlp_branch(step: int, at: Places) -> Iterator[str]:
    """Reading, up, down, and adding."""
    read, added, y, up, down = step > 3, step > 4, at.mlp, at.up, at.down
    yield label("MLP", at.norm + 4, at.mlp_sum - 3)
    yield _read(at, y, read) + text(at.norm - 2, y + 40, "norm", SMALL)
    yield arrow(at.norm + NORM + 3, y, up.left - 3, y, **_faint(read)) + _shape(up, "MLP", read)
    middle = (up.left + up.right) / 2
    yield text(middle, y - 30, "up", SMALL, "middle")
    yield text(middle, y + 40, "h × 4h", USUAL, "middle")
    yield arrow(up.right + 3, y, down.left - 3, y, **_faint(added)) + _shape(down, "MLP", added)
    yield text(down.right + 7, y - 8, "down", SMALL)
    yield text(down.right + 7, y + 14, "4h × h")
    yield _add(at, down, at.mlp_sum, added)


def label(part: str, x: float, y: float) -> str:
    """A part's colour and its word."""
    swatch = rect(x, y - 11, 12, 12, COLORS[part])
    return swatch + text(x + 18, y, part, **BOLD)


# --- wider or deeper: a GPT's matrices on one scale

_COLUMNS, _WIDEST, _ROWS = 6, 1536, 4
"""The columns in which layers stand; the largest size and the rows that still fit."""

_HIGH, _ACROSS = 3, 4 * _COLUMNS
"""Squares of a layer from top to bottom, and of all columns from left to right."""


def bricks(now: ParameterCount, shape: Shape, start: Shape | None = None) -> Picture:
    """A GPT's layers as bricks of twelve squares on its tables, always on one scale.

    A layer is 4h wide and 3h high: four squares of attention, eight of the MLP. The
    tables lie as flat as the layers are wide. `start` leaves its outline.
    """
    h, l = shape
    parts = {"MLP": now.mlp, "attention": now.attention, "tables": now.embedding}
    inks = {**COLORS, "tables": COLORS["embedding"]}
    facts = [
        Fact(units.count(now.total), size=26, bold=True),
        Fact("parameters", size=USUAL),
        *(
            Fact(name, f"{units.count(size)}, {units.share(size / now.total)}", inks[name], SMALL)
            for name, size in parts.items()
        ),
        Fact("a layer, 12 times h × h", size=SMALL, rule=True),
    ]
    words = (
        f"{l} layers of a GPT as bricks of twelve squares, each h × h with h = {h:,}, on its "
        f"tables; areas to scale. MLP {units.count(now.mlp)}, attention "
        f"{units.count(now.attention)}, tables {units.count(now.embedding)}."
    )
    listed = Below([Facts(facts), Diagram(_twelve_squares)], gap=4)
    wall = partial(_wall, shape, start, now.embedding / h)
    return NextTo(Diagram(wall), listed, words, share=0.57)


def _wall(
    shape: Shape, start: Shape | None, rows_of_tables: float, left: float, top: float, width: float
) -> tuple[str, float]:
    """The bricks, in a field that has room for the largest ones."""
    (h, l), pixel = shape, width / (_ACROSS * _WIDEST)
    side, flat, rows = h * pixel, rows_of_tables * pixel / _ACROSS, ceil(l / _COLUMNS)
    most, base = _WIDEST * pixel, top + _HIGH * _ROWS * _WIDEST * pixel
    svg = rect(left, top, width, base - top, COLORS["idle"], "room", opacity=0.18)
    svg += _edges(left, base, most, _ROWS)
    svg += rect(left, base, _ACROSS * side, flat, COLORS["embedding"], "tables")
    for row in range(rows):
        bricks, y = min(_COLUMNS, l - row * _COLUMNS), base - _HIGH * side * (row + 1)
        wide = bricks * side * _ACROSS / _COLUMNS
        svg += rect(left, y, wide, 2 * side, COLORS["MLP"], "MLP")
        svg += rect(left, y + 2 * side, wide, side, COLORS["attention"], "attention")
    svg += _grid(left, base, (side, side), (_ACROSS, _HIGH * rows), "white", 0.5)
    svg += _edges(left, base, side, rows)
    right, high = left + _ACROSS * side, _HIGH * side * rows
    for x, y, control in (
        (right, base - high / 2, "hidden_size"),
        ((left + right) / 2, base - high, "num_layers"),
    ):
        knob: Style = {"stroke": INK, "stroke_width": 1.5, "data_moves": control}
        svg += circle(x, y, 7, COLORS["idle"], **knob)
    if start:
        old = start[0] * pixel
        high = _HIGH * old * ceil(start[1] / _COLUMNS) + flat
        svg += ghost(left, base + flat - high, _ACROSS * old, high, "at the start")
    dashed = Swatch(lambda x, y: ghost(x + 2, y, 14, 14), "the start", start is None)
    room = patch(COLORS["idle"], f"{_COLUMNS * _ROWS} layers of {_WIDEST:,}", 0.18)
    drawn, y = key([room, dashed], left, base + flat + 10, width)
    return svg + drawn, y


def _edges(left: float, base: float, side: float, rows: int) -> str:
    """The gaps between bricks, by the side of a square."""
    brick = side * _ACROSS / _COLUMNS, side * _HIGH
    return _grid(left, base, brick, (_COLUMNS, rows), CARD, 1.5)


def _grid(
    left: float,
    base: float,
    cell: tuple[float, float],
    number: tuple[int, int],
    ink: str,
    thick: float,
) -> str:
    """The lines of a grid that stands on a base, by the sides and the number of its cells."""
    (wide, high), (columns, rows) = cell, number
    right, top = wide * columns, high * rows
    across = "".join(f"M{left} {base - high * i:.1f}h{right:.1f}" for i in range(rows + 1))
    up = "".join(f"M{left + wide * i:.1f} {base:.1f}v-{top:.1f}" for i in range(columns + 1))
    return f'<path d="{across}{up}" stroke="{ink}" stroke-width="{thick}" fill="none"/>'


def _twelve_squares(left: float, top: float, width: float) -> tuple[str, float]:
    """A layer's squares, and what each row of them is."""
    svg = ""
    for row, word in enumerate(("down", "up", "query, key,")):
        y, fill = top + 22 * row, COLORS["attention" if row > 1 else "MLP"]
        svg += "".join(rect(left + 22 * i, y, 21, 21, fill) for i in range(4))
        svg += text(left + 98, y + 16, word, SMALL)
    return svg + text(left + 98, y + 34, "value, output", SMALL), y + 40


# --- experts: which of them a token meets

_SENTENCE = ("Two", "of", "eight", "experts", "do", "the", "work")

_MOST_EXPERTS, _BLOCK = 16, 3200
"""Experts of a layer that there's room for; square pixels of each."""


def experts(model: Transformer, token: int, most: float = 92e9) -> Picture:
    """A layer's experts as blocks, those that a token meets full; both counts as bars.

    Blocks are to one scale, and so are the bars, which end at `most` parameters. Which
    experts a token meets is an example.
    """
    count, met = int(model.num_experts), int(model.experts_per_token)
    counted = count_parameters(model)
    rest, active = float(counted.total - counted.mlp), float(counted.active)

    def lane(name: str, size: float) -> Lane:
        blue, orange, seen = COLORS["attention"], COLORS["MLP"], "experts that it meets"
        unseen = "experts that it doesn't meet"
        spans = [
            Span(0, rest, blue, title="attention and tables", name="attention, tables"),
            Span(rest, active, orange, title=seen, name=seen),
            Span(active, size, orange, "", unseen, "others", 0.25, hidden=size == active),
        ]
        return Lane(name, spans, units.count(size))

    lanes = lane("must be in memory", float(counted.total)), lane("a token meets", active)
    bars = Bars(Scale(0, most), lanes, axis=False, longest_total="91.8 billion")
    words = (
        f"A layer with {units.plural(count, 'expert')}: the token “{_SENTENCE[token]}” meets "
        f"attention, the router and {units.plural(met, 'expert')}. Parameters in memory: "
        f"{units.count(counted.total)}, met by a token: {units.count(counted.active)}."
    )
    return Below([Diagram(partial(_routed, model, token)), bars], words)


def _routed(
    model: Transformer, token: int, left: float, top: float, width: float
) -> tuple[str, float]:
    """A sentence, one of whose tokens passes attention and the router to its experts."""
    count, met = int(model.num_experts), int(model.experts_per_token)
    order = sorted(range(count), key=lambda i: (37 * i + 53 * token + 11 * i * i * token) % 97)
    needs = [text_width(word, SMALL) for word in _SENTENCE]
    gap, entry, turn, x, svg = 5, left + 50, top + 40, left, ""
    room = (width + gap - sum(needs)) / len(needs)
    for place, (word, need) in enumerate(zip(_SENTENCE, needs, strict=True)):
        wide, now = need + room - gap, place == token
        middle = x + wide / 2
        box = rect(x, top, wide, 28, COLORS["activations"] if now else CARD, word, **_EDGE)
        box += text(middle, top + 19, word, SMALL, "middle", "white" if now else INK)
        svg += switch(box, "token", place + 1, f"the token “{word}”")
        svg += _path([(middle, top + 28), (middle, turn), (entry, turn)]) if now else ""
        x += wide + gap
    counted, y = count_parameters(model), turn + 22
    high = _BLOCK / 100 * float(count * counted.attention / counted.mlp)
    router, blocks = y + 42, y + 94
    svg += arrow(entry, turn, entry, y - 2) + arrow(entry, y + high, entry, router - 10)
    svg += rect(left, y, 100, high, COLORS["attention"], "attention")
    svg += text(left + 108, y + high - 1, "attention, for every token", SMALL)
    svg += circle(entry, router, 8, COLORS["MLP"], "router")
    svg += text(entry + 16, router + 5, "router")
    layers = f"one of {int(model.num_layers)} layers"
    svg += text(left + width, router + 5, layers, anchor="end", **BOLD)
    pitch = width / _MOST_EXPERTS
    each = 0.88 * pitch
    tall, letters = _BLOCK / each, min(0.72 * each, USUAL)
    for expert in range(count):
        x, full = left + pitch * expert, expert in order[:met]
        shade: Style = {} if full else {"opacity": 0.25}
        svg += rect(x, blocks, each, tall, COLORS["MLP"], f"expert {expert + 1}", **shade)
        if full:
            middle, y = x + each / 2, blocks + tall / 2 + 5
            svg += line(entry, router + 8, middle, blocks - 2, stroke_width=2)
            svg += text(middle, y, f"{expert + 1}", letters, "middle", "white", **BOLD)
    return svg, blocks + tall


_EDGE: Style = {"stroke": COLORS["activations"], "stroke_width": 1.5, "rx": 6}
