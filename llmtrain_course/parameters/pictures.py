"""The drawings of chapter 01: a token's way past the matrices, and their areas to scale.

All of them draw what `count_parameters` counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from llmtrain_course.kit.drawing import (
    CARD,
    COLORS,
    INK,
    Drawing,
    Style,
    arrow,
    circle,
    ghost,
    line,
    rect,
    text,
)
from llmtrain_course.kit.layout import BESIDE, SMALL, USUAL, Fact, list_facts
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


@dataclass(frozen=True)
class Matrix:
    """A matrix of a layer: what comes in is as long as its `rows`, what goes out as its columns."""

    name: str
    rows: int
    columns: int
    part: str

    @property
    def size(self) -> str:
        """Rows and columns for people."""
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
    ins = [("queries", q), ("keys", kv), ("values", kv)]
    matrices = [Matrix(name, h, n, "attention") for name, n in ins]
    return [*matrices, Matrix("output", q, h, "attention")]


def mlp(model: Transformer) -> list[Matrix]:
    """The matrices of the MLP in one layer, or of one of its experts."""
    h, f = int(model.hidden_size), int(model.intermediate_size)
    ups = ["gate", "up"] if model.gated_mlp else ["up"]
    return [*(Matrix(name, h, f, "MLP") for name in ups), Matrix("down", f, h, "MLP")]


# --- the stream: what a token meets on its way up

STEPS = 8
"""From the look-up of a token to the scores."""

SIDE = 26
"""Pixels of the hidden size: the sides of a layer's matrices are to scale."""

_TOKENS = ("The", "black", "cat", "sat")

Place = tuple[int, int, int, int]
"""A rectangle's corner and its sides."""


@dataclass(frozen=True)
class Layout:
    """Where the stream stands, and a layer beside it."""

    width: int = 680
    stream: int = 92
    back: int = 140  # down to the stream, for what is added
    layer: Place = (150, 62, 482, 344)
    mlp: int = 164  # its norm, as all that follow
    norm: int = 164
    vectors: int = 204  # queries, keys and values, and their names
    names: int = 236
    tokens: int = 310  # the first of the tokens, and from one to the next
    pitch: int = 50
    rows: tuple[int, int, int] = (287, 331, 375)  # of the query, the keys, the values
    output: tuple[int, int] = (538, 362)
    foot: int = 416  # the embedding
    makes: Place = (154, 268, 80, 126)  # frames around what acts
    compares: Place = (308, 270, 190, 113)

    @property
    def acting(self) -> tuple[Place, ...]:
        """What acts in each step: the place of a frame around it."""
        (x, y), m, end = self.output, self.mlp, self.stream - 36
        return (
            (end, self.foot - 5, 72, 28),
            self.makes,
            self.compares,
            (x - 5, y - 5, 36, 36),
            (m - 7, 166, 162, 46),
            (m + 191, 113, 36, 114),
            self.layer,
            (end, 13, 72, 28),
        )


_WIDE = Layout()
_NARROW = Layout(
    width=382,
    stream=40,
    back=67,
    layer=(70, 62, 306, 402),
    mlp=88,
    norm=82,
    vectors=112,
    names=145,
    tokens=198,
    pitch=37,
    rows=(327, 379, 431),
    output=(322, 250),
    foot=496,
    makes=(74, 292, 66, 158),
    compares=(196, 298, 151, 141),
)
"""There attention's output stands above the tokens, and words have two rows."""


def layout_for(width: int) -> Layout:
    """Where everything stands on a picture of this width."""
    return _WIDE if width >= BESIDE else _NARROW


def stream(model: Transformer, step: int, width: int) -> Drawing:
    """A token's way up the residual stream, as far as `step`, from 0 to 7.

    Attention and MLP of one layer read the stream, and each adds to it. What the token
    has not met yet is an outline.
    """
    l, h, V = int(model.num_layers), int(model.hidden_size), int(model.vocab_size)
    layout = layout_for(width)
    x, foot, narrow = layout.stream, layout.foot, layout is _NARROW
    end = layout.layer[0] + layout.layer[2]
    svg = rect(*layout.layer, stroke="currentColor", rx=10, opacity=0.45)
    svg += text(end - 12, 84, f"one of {l} layers, h = {h:,}", 15, "end", **BOLD)
    svg += "".join(_trunk(step, layout))
    svg += "".join([*_attention_branch(step, layout), *_mlp_branch(step, layout)])
    svg += rect(*layout.acting[step], stroke="currentColor", stroke_width=2.5, rx=6)
    svg += rect(end - 176, foot + 39, 12, 12, COLORS["activations"])
    svg += text(end, foot + 50, "numbers of the tokens", 14, "end")

    # the way in, and the way out
    svg += text(x, foot + 50, "“sat”", 15, "middle", **BOLD) + arrow(x, foot + 34, x, foot + 20)
    svg += rect(x - 32, foot, 64, 18, COLORS["embedding"], "embedding")
    lookup = [f"embedding: {V:,} rows of {h:,}", "numbers, of which one is “sat”"]
    svg += _centered_text(x + 46, foot + 15, lookup, narrow)
    seen = step > 6
    svg += _shape(x - 32, 18, 64, 18, "embedding", seen)
    svg += arrow(x, 16, x, 3, opacity=1 if seen else 0.4)
    top = ["the embedding again:", f"a score for each of {V:,} tokens"]
    top = top if seen else ["the top: which token comes next?"]
    svg += _centered_text(x + 46, 28 if narrow and seen else 32, top, narrow)
    if narrow:
        svg += text(x + 46, 57, f"{l - 1} more layers", 15, **BOLD) if step > 5 else ""
        svg += text(x + 12, foot - 14, "the stream", 15)
    else:
        if step > 5:
            svg += text(x - 12, 84, f"{l - 1} more", 15, "end", **BOLD)
            svg += text(x - 12, 102, "layers", 15, "end", **BOLD)
        svg += text(x - 12, 384, "the", 15, "end") + text(x - 12, 402, "stream", 15, "end")
    words = (
        f"The stream of a token, {h:,} numbers, goes up past one of {l} layers. Attention reads "
        "it, compares queries with keys, weighs values, and adds what comes out to it; then the "
        f"MLP reads it and adds to it. Step {step} of {STEPS - 1}."
    )
    return Drawing(svg, layout.width, foot + 58, words)


def _centered_text(x: float, y: float, parts: Sequence[str], narrow: bool) -> str:
    """Words in a row, or where it is narrow in a row for each part, around the same middle."""
    rows = parts if narrow else [" ".join(parts)]
    first = y - 9 * (len(rows) - 1)
    return "".join(text(x, first + 18 * row, words) for row, words in enumerate(rows))


def _shape(x: float, y: float, wide: float, high: float, part: str, met: bool) -> str:
    """A matrix: filled once the token has met it, before that an outline."""
    if met:
        return rect(x, y, wide, high, COLORS[part], part)
    return rect(x, y, wide, high, "none", part, stroke=COLORS[part], stroke_width=1.5)


def _trunk(step: int, layout: Layout) -> Iterator[str]:
    """The stream itself, as high as the token has come, and the two places of adding."""
    x, foot, read = layout.stream, layout.foot, layout.rows[1]
    top = (foot, read, read, 262, 190, 122, 54, 36)[step]
    yield line(x, foot, x, 36, stroke_width=11, opacity=0.15)
    yield line(x, foot, x, top, stroke=COLORS["activations"], stroke_width=11)
    for y, at in ((262, 3), (122, 5)):
        done = step >= at
        yield circle(x, y, 12, CARD if not done else COLORS["activations"], "added")
        ink = "white" if done else INK
        yield line(x - 6, y, x + 6, y, stroke=ink, stroke_width=2)
        yield line(x, y - 6, x, y + 6, stroke=ink, stroke_width=2)


def _faint(seen: bool) -> Style:
    return {} if seen else {"opacity": 0.35}


def _attention_branch(step: int, layout: Layout) -> Iterator[str]:
    """Reading, three vectors, the comparison with earlier tokens, and adding."""
    read, compared, added, narrow = step > 0, step > 1, step > 2, layout is _NARROW
    (query, keys, _), norm, left = layout.rows, layout.norm, layout.mlp + 4
    four = (left, 276) if narrow else (272, 256)
    yield label("attention", left, 256) + text(*four, "four matrices of h × h", 15)
    yield arrow(layout.stream + 6, keys - 1, norm - 4, keys - 1, **_faint(read))
    yield _shape(norm, keys - 21, 7, 40, "norms", read)
    yield text(norm - (6 if narrow else 8), query - 19 if narrow else 290, "norm", 14)
    for row, name in zip(layout.rows, ("query", "key", "value"), strict=True):
        y = row - SIDE / 2
        yield line(norm + 7, keys - 1, layout.vectors, row, **_faint(read))
        yield _shape(layout.vectors, y, SIDE, SIDE, "attention", read)
        yield text(layout.names, y + 18, name, 14)
    if compared:
        yield from _comparison(layout)
    x, y = layout.output
    yield from _into_output(layout, added)
    yield _shape(x, y, SIDE, SIDE, "attention", added)
    if narrow:
        yield text(x + 13, y + 44, "output", 14, "middle")
        path = [(x + 13, y), (x + 13, 236)]
    else:
        yield text(x + 37, y + 18, "output", 14)
        path = [(x + 13, y), (x + 13, 336), (622, 336), (622, 236)]
    yield from _path([*path, (layout.back, 236), (layout.back, 262)], added)
    yield arrow(layout.back, 262, layout.stream + 14, 262, **_faint(added))


def _into_output(layout: Layout, added: bool) -> Iterator[str]:
    """From the last token's mixture of values to attention's last matrix."""
    end, values = layout.tokens + 3 * layout.pitch + 38, layout.rows[2]
    x, y = layout.output
    if layout is _NARROW:
        margin, middle = layout.layer[0] + layout.layer[2] - 12, y + SIDE // 2
        yield from _path([(end, values), (margin, values), (margin, middle)], added)
        yield arrow(margin, middle, x + SIDE + 4, middle, **_faint(added))
    else:
        yield arrow(end, values, x - 4, values, **_faint(added))


def _path(corners: Sequence[tuple[int, int]], met: bool) -> Iterator[str]:
    for start, end in pairwise(corners):
        yield line(*start, *end, **_faint(met))


def _comparison(layout: Layout) -> Iterator[str]:
    """The last token's query meets the keys so far; bars say how much of each value it takes."""
    (query, keys, values), narrow = layout.rows, layout is _NARROW
    left, fill = layout.tokens, COLORS["activations"]
    own = left + layout.pitch * (len(_TOKENS) - 1) + 19
    yield arrow(layout.names + 46, query, own - 20, query)
    yield rect(own - 15, query - 7, 30, 14, fill, "the query of the last token")
    for y in (keys, values):
        yield arrow(layout.names + (40 if narrow else 46), y, left - 6, y)
    for place, (word, share) in enumerate(zip(_TOKENS, (0.1, 0.2, 0.5, 0.2), strict=True)):
        x = left + layout.pitch * place
        yield line(own, query + 7, x + 19, keys - 7, opacity=0.6)
        yield rect(x + 4, keys - 7, 30, 14, fill, "a key")
        yield rect(x + 8, values - 9 - 44 * share, 22, 44 * share, fill, "how well its key fits")
        yield rect(x + 4, values - 7, 30, 14, fill, "a value", opacity=share + 0.5)
        yield text(x + 19, values + 25, word, 14, "middle", **(BOLD if word == _TOKENS[-1] else {}))
    if narrow:
        yield text(left - 8, keys + 24, "how well", 14, "end")
        yield text(left - 8, keys + 39, "it fits", 14, "end")
        yield text(own + 15, query - 12, "meets each key", 14, "end")
    else:
        yield text(left - 6, keys + 27, "how well it fits", 14, "end")
        yield text(own + 26, query + 5, "the query", 14)
        yield text(own + 26, query + 23, "meets each key", 14)


def _mlp_branch(step: int, layout: Layout) -> Iterator[str]:
    """Reading, up, down, and adding."""
    read, added, x, back = step > 3, step > 4, layout.mlp, layout.back
    yield label("MLP", x + 4, 116)
    yield arrow(layout.stream + 6, 190, x - 4, 190, **_faint(read))
    yield _shape(x, 170, 7, 40, "norms", read) + text(x + 7, 228, "norm", 14, "middle")
    yield arrow(x + 11, 190, x + 42, 190, **_faint(read))
    yield _shape(x + 46, 177, 4 * SIDE, SIDE, "MLP", read)
    yield text(x + 46 + 2 * SIDE, 160, "up", 14, "middle")
    yield text(x + 46 + 2 * SIDE, 228, "h × 4h", 15, "middle")
    yield arrow(x + 158, 190, x + 188, 190, **_faint(added))
    yield _shape(x + 196, 118, SIDE, 4 * SIDE, "MLP", added) + text(x + 230, 165, "down", 14)
    yield text(x + 230, 187, "4h × h", 15)
    yield from _path([(x + 209, 118), (x + 209, 96), (back, 96), (back, 122)], added)
    yield arrow(back, 122, layout.stream + 14, 122, **_faint(added))


def label(part: str, x: float, y: float) -> str:
    """A part's colour and its word."""
    swatch = rect(x, y - 11, 12, 12, COLORS[part])
    return swatch + text(x + 18, y, part, 15, **BOLD)


# --- wider or deeper: a GPT's matrices on one scale

_COLUMNS, _WIDEST, _ROWS = 6, 1536, 4
"""The columns in which layers stand; the largest size and the rows that still fit."""


def bricks(now: ParameterCount, shape: Shape, start: Shape | None, width: int) -> Drawing:
    """A GPT's layers as bricks of twelve squares on its tables, always on one scale.

    A layer is 4h wide and 3h high: four squares of attention, eight of the MLP. The
    tables lie as flat as the layers are wide. `start` leaves its outline. What the
    bricks are stands beside them, or where it's narrow, below.
    """
    h, l = shape
    beside, left, top = width >= BESIDE, 14, 14
    pixel = (width - (250 if beside else 2 * left)) / (4 * _COLUMNS * _WIDEST)
    side, flat = h * pixel, (now.embedding / h) * pixel / (4 * _COLUMNS)
    floor = top + 3 * _ROWS * _WIDEST * pixel + flat
    base, rows, wide = floor - flat, -(-l // _COLUMNS), 4 * _COLUMNS * side
    svg = rect(left, base, wide, flat, COLORS["embedding"], "embedding")
    blue = orange = seams = ""
    for row in range(rows):
        across = min(_COLUMNS, l - row * _COLUMNS) * 4 * side
        y = base - 3 * side * (row + 1)
        orange += f"M{left} {y:.1f}h{across:.1f}v{2 * side:.1f}h-{across:.1f}z"
        blue += f"M{left} {y + 2 * side:.1f}h{across:.1f}v{side:.1f}h-{across:.1f}z"
        seams += "".join(f"M{left} {y + i * side:.1f}h{across:.1f}" for i in (1, 2))
        seams += "".join(f"M{left + i * side:.1f} {y:.1f}v{3 * side:.1f}" for i in range(1, 24))
    svg += f'<path d="{orange}" fill="{COLORS["MLP"]}"/>'
    svg += f'<path d="{blue}" fill="{COLORS["attention"]}"/>'
    svg += f'<path d="{seams}" stroke="white" stroke-width="0.5" opacity="0.6" fill="none"/>'
    edges = "".join(f"M{left} {base - 3 * side * i:.1f}h{wide:.1f}" for i in range(rows + 1))
    edges += "".join(
        f"M{left + 4 * side * i:.1f} {base:.1f}v-{3 * side * rows:.1f}" for i in range(_COLUMNS + 1)
    )
    svg += f'<path d="{edges}" stroke="{CARD}" stroke-width="1.5" fill="none"/>'
    if start:
        old = start[0] * pixel
        high = 3 * old * -(-start[1] // _COLUMNS) + flat
        svg += ghost(left, floor - high, 4 * _COLUMNS * old, high, "at the start")
    parts = {"MLP": now.mlp, "attention": now.attention, "tables": now.embedding}
    inks = {**COLORS, "tables": COLORS["embedding"]}
    facts = [
        Fact(units.count(now.total), size=26, bold=True),
        Fact("parameters", size=USUAL),
        *(
            Fact(name, f"{units.count(size)}, {units.share(size / now.total)}", inks[name], USUAL)
            for name, size in parts.items()
        ),
        Fact("a layer, 12 times h × h", size=SMALL, rule=True),
    ]
    x, y = (width - 222, top) if beside else (left, floor + 14)
    listed, y = list_facts(facts, x, y, width - left - x)
    svg += listed
    for row, word in enumerate(("down", "up", "query, key,")):
        fill = COLORS["attention" if row > 1 else "MLP"]
        svg += "".join(rect(x + 22 * i, y + 22 * row, 21, 21, fill) for i in range(4))
        svg += text(x + 98, y + 16 + 22 * row, word, SMALL)
    svg += text(x + 98, y + 78, "value, output", SMALL)
    svg += text(x, y + 100, "dashed: the start", SMALL) if start else ""
    words = (
        f"{l} layers of a GPT as bricks of twelve squares, each h × h with h = {h:,}, on its "
        f"tables; areas to scale. MLP {units.count(now.mlp)}, attention "
        f"{units.count(now.attention)}, tables {units.count(now.embedding)}."
    )
    return Drawing(svg, width, ceil(max(floor, y + 104)) + top, words)


# --- experts: which of them a token meets

_SENTENCE = ("Two", "of", "eight", "experts", "do", "the", "work")


def experts(model: Transformer, token: int, width: int, most: float = 92e9) -> Drawing:
    """A layer's experts as blocks, those that a token meets full; both counts as bars.

    Blocks are to one scale, and so are the bars, which end at `most` parameters. Which
    experts a token meets is an example. Where it's narrow, the sentence has two rows,
    and blocks as large are thinner.
    """
    narrow = width < BESIDE
    left, width, first = (14, 380, 4) if narrow else (24, 640, 7)  # so many tokens in a row
    each, tall, pitch = (20, 160, 22) if narrow else (32, 100, 37)
    right, entry = width - left, left + 60
    count, met = int(model.num_experts), int(model.experts_per_token)
    counted = count_parameters(model)
    chosen = sorted(range(count), key=lambda i: (37 * i + 53 * token + 11 * i * i * token) % 97)
    chosen, svg = chosen[:met], ""
    for place, word in enumerate(_SENTENCE):
        row, column = divmod(place, first)
        # the second row leaves room for the way down from the first
        x, y, now = left + 86 * (column + row), 12 + 40 * row, place == token
        svg += rect(x, y, 78, 28, COLORS["activations"] if now else "none", word, **_EDGE)
        svg += text(x + 39, y + 19, word, 15, "middle", "white" if now else "currentColor")
    row, column = divmod(token, first)
    x, y = left + 86 * (column + row) + 39, 40 + 40 * row
    turn = y + (6 if narrow else 18)
    svg += line(x, y, x, turn) + line(x, turn, entry, turn)
    y = 114 if narrow else 74
    scale = each * tall / sum(m.count for m in mlp(model))  # square pixels of a parameter
    high = sum(m.count for m in attention(model)) * scale / 120
    svg += arrow(entry, turn, entry, y - 2)
    svg += rect(left, y, 120, high, COLORS["attention"], "attention")
    svg += text(left + 130, y + high - 1, "attention, for every token", 15)
    svg += arrow(entry, y + high, entry, y + 32) + circle(entry, y + 42, 8, COLORS["MLP"], "router")
    svg += text(entry + 16, y + 47, "router", 15)
    down = y + (47 if narrow else 5 + high)
    svg += text(right, down, f"one of {int(model.num_layers)} layers", 15, "end", **BOLD)
    for expert in range(count):
        x, full = left + pitch * expert, expert in chosen
        shade: Style = {} if full else {"opacity": 0.25}
        svg += rect(x, y + 94, each, tall, COLORS["MLP"], f"expert {expert + 1}", **shade)
        if full:
            middle, size = x + each / 2, 13 if narrow else 15
            svg += line(entry, y + 50, middle, y + 92, stroke_width=2)
            at = y + 100 + tall / 2
            svg += text(middle, at, f"{expert + 1}", size, "middle", "white", **BOLD)
    top, unit = y + tall + 138, (width - 2 * left) / most
    bars = (("must lie in memory", counted.total), ("a token meets", counted.active))
    for row, (name, size) in enumerate(bars):
        y = top + 62 * row
        svg += text(left, y, f"{name}: {units.count(size)}", 16, **BOLD)
        rest = counted.total - counted.mlp
        svg += rect(left, y + 8, unit * rest, 26, COLORS["attention"], "attention and tables")
        seen = unit * (counted.active - rest)
        svg += rect(left + unit * rest, y + 8, seen, 26, COLORS["MLP"], "experts that it meets")
        if size > counted.active:
            idle = unit * (size - counted.active)
            more = left + unit * rest + seen
            svg += rect(
                more, y + 8, idle, 26, COLORS["MLP"], "experts that it does not meet", opacity=0.25
            )
    y = top + 118
    for word, x, part, shade in (
        ("attention, tables", left, "attention", Style()),
        ("experts that it meets", left if narrow else 190, "MLP", Style()),
        ("others", 208 if narrow else 384, "MLP", Style(opacity=0.25)),
    ):
        y += 24 if narrow and word.startswith("experts") else 0
        svg += rect(x, y, 12, 12, COLORS[part], **shade) + text(x + 18, y + 11, word, 15)
    words = (
        f"A layer with {units.plural(count, 'expert')}: the token “{_SENTENCE[token]}” meets "
        f"attention, the router and {units.plural(met, 'expert')}. In memory "
        f"{units.count(counted.total)}, met by a token {units.count(counted.active)}."
    )
    return Drawing(svg, width, y + 22, words)


_EDGE: Style = {"stroke": COLORS["activations"], "stroke_width": 1.5, "rx": 6}
