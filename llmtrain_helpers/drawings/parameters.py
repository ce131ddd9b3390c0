"""The drawings of chapter 01: a token's way past the matrices, and their areas to scale.

All of them draw what `count_parameters` counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from llmtrain_helpers import units
from llmtrain_helpers.drawings.common import (
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

_STREAM, _TOKENS = 92, ("The", "black", "cat", "sat")


def stream(model: Transformer, step: int) -> Drawing:
    """A token's way up the residual stream, as far as `step`, from 0 to 7.

    Attention and MLP of one layer read the stream, and each adds to it. What the token
    has not met yet is an outline.
    """
    l, h, V = int(model.num_layers), int(model.hidden_size), int(model.vocab_size)
    svg = rect(150, 62, 482, 344, stroke="currentColor", rx=10, opacity=0.45)
    svg += text(620, 84, f"one of {l} layers, h = {h:,}", 15, "end", **BOLD)
    svg += "".join(_trunk(step))
    svg += "".join([*_attention_branch(step), *_mlp_branch(step)])
    svg += rect(*_ACTING[step], stroke="currentColor", stroke_width=2.5, rx=6)
    svg += rect(456, 455, 12, 12, COLORS["activations"])
    svg += text(632, 466, "numbers of the tokens", 14, "end")

    # the way in, and the way out
    svg += text(_STREAM, 466, "“sat”", 15, "middle", **BOLD) + arrow(_STREAM, 450, _STREAM, 436)
    svg += rect(_STREAM - 32, 416, 64, 18, COLORS["embedding"], "embedding")
    svg += text(_STREAM + 46, 431, f"embedding: {V:,} rows of {h:,} numbers, of which one is “sat”")
    seen = step > 6
    svg += _shape(_STREAM - 32, 18, 64, 18, "embedding", seen)
    svg += arrow(_STREAM, 16, _STREAM, 3, opacity=1 if seen else 0.4)
    top = f"the embedding again: a score for each of {V:,} tokens"
    svg += text(_STREAM + 46, 32, top if seen else "the top: which token comes next?")
    if step > 5:
        svg += text(_STREAM - 12, 84, f"{l - 1} more", 15, "end", **BOLD)
        svg += text(_STREAM - 12, 102, "layers", 15, "end", **BOLD)
    svg += text(_STREAM - 12, 384, "the", 15, "end") + text(_STREAM - 12, 402, "stream", 15, "end")
    words = (
        f"The stream of a token, {h:,} numbers, goes up past one of {l} layers. Attention reads "
        "it, compares queries with keys, weighs values, and adds what comes out to it; then the "
        f"MLP reads it and adds to it. Step {step} of {STEPS - 1}."
    )
    return Drawing(svg, 640, 474, words)


_ACTING = (
    (56, 411, 72, 28),
    (154, 268, 80, 126),
    (308, 270, 190, 113),
    (533, 357, 36, 36),
    (157, 166, 162, 46),
    (355, 113, 36, 114),
    (150, 62, 482, 344),
    (56, 13, 72, 28),
)
"""What acts in each step: the place of a frame around it."""


def _shape(x: float, y: float, wide: float, high: float, part: str, met: bool) -> str:
    """A matrix: filled once the token has met it, before that an outline."""
    if met:
        return rect(x, y, wide, high, COLORS[part], part)
    return rect(x, y, wide, high, "none", part, stroke=COLORS[part], stroke_width=1.5)


def _trunk(step: int) -> Iterator[str]:
    """The stream itself, as high as the token has come, and the two places of adding."""
    top = (416, 330, 330, 262, 190, 122, 54, 36)[step]
    yield line(_STREAM, 416, _STREAM, 36, stroke_width=11, opacity=0.15)
    yield line(_STREAM, 416, _STREAM, top, stroke=COLORS["activations"], stroke_width=11)
    for y, at in ((262, 3), (122, 5)):
        done = step >= at
        yield circle(_STREAM, y, 12, CARD if not done else COLORS["activations"], "added")
        ink = "white" if done else INK
        yield line(_STREAM - 6, y, _STREAM + 6, y, stroke=ink, stroke_width=2)
        yield line(_STREAM, y - 6, _STREAM, y + 6, stroke=ink, stroke_width=2)


def _faint(seen: bool) -> Style:
    return {} if seen else {"opacity": 0.35}


def _attention_branch(step: int) -> Iterator[str]:
    """Reading, three vectors, the comparison with earlier tokens, and adding."""
    read, compared, added = step > 0, step > 1, step > 2
    yield label("attention", 168, 256) + text(272, 256, "four matrices of h × h", 15)
    yield arrow(_STREAM + 6, 330, 160, 330, **_faint(read))
    yield _shape(164, 310, 7, 40, "norms", read)
    yield text(156, 290, "norm", 14)
    names = ("query", "key", "value")
    for row, name in enumerate(names):
        y = 274 + 44 * row
        yield line(171, 330, 204, y + SIDE / 2, **_faint(read))
        yield _shape(204, y, SIDE, SIDE, "attention", read)
        yield text(236, y + 18, name, 14)
    if compared:
        yield from _comparison()
    yield arrow(498, 375, 534, 375, **_faint(added))
    yield _shape(538, 362, SIDE, SIDE, "attention", added)
    yield text(570, 380, "output", 14)
    for x1, y1, x2, y2 in ((551, 362, 551, 336), (551, 336, 622, 336), (622, 336, 622, 236)):
        yield line(x1, y1, x2, y2, **_faint(added))
    yield line(622, 236, 140, 236, **_faint(added)) + line(140, 236, 140, 262, **_faint(added))
    yield arrow(140, 262, _STREAM + 14, 262, **_faint(added))


def _comparison() -> Iterator[str]:
    """The last token's query meets the keys so far; bars say how much of each value it takes."""
    fill, own = COLORS["activations"], 310 + 50 * (len(_TOKENS) - 1) + 19
    yield arrow(282, 287, own - 20, 287)
    yield rect(own - 15, 280, 30, 14, fill, "the query of the last token")
    for y in (331, 375):
        yield arrow(282, y, 304, y)
    for place, (word, share) in enumerate(zip(_TOKENS, (0.1, 0.2, 0.5, 0.2), strict=True)):
        x = 310 + 50 * place
        yield line(own, 294, x + 19, 324, opacity=0.6)
        yield rect(x + 4, 324, 30, 14, fill, "a key")
        yield rect(x + 8, 366 - 44 * share, 22, 44 * share, fill, "how well its key fits")
        yield rect(x + 4, 368, 30, 14, fill, "a value", opacity=share + 0.5)
        yield text(x + 19, 400, word, 14, "middle", **(BOLD if word == _TOKENS[-1] else {}))
    yield text(304, 358, "how well it fits", 14, "end")
    yield text(505, 292, "the query", 14) + text(505, 310, "meets each key", 14)


def _mlp_branch(step: int) -> Iterator[str]:
    """Reading, up, down, and adding."""
    read, added = step > 3, step > 4
    yield label("MLP", 168, 116)
    yield arrow(_STREAM + 6, 190, 160, 190, **_faint(read))
    yield _shape(164, 170, 7, 40, "norms", read) + text(171, 228, "norm", 14, "middle")
    yield arrow(175, 190, 206, 190, **_faint(read))
    yield _shape(210, 177, 4 * SIDE, SIDE, "MLP", read)
    yield text(210 + 2 * SIDE, 160, "up", 14, "middle")
    yield text(210 + 2 * SIDE, 228, "h × 4h", 15, "middle")
    yield arrow(322, 190, 352, 190, **_faint(added))
    yield _shape(360, 118, SIDE, 4 * SIDE, "MLP", added) + text(394, 165, "down", 14)
    yield text(394, 187, "4h × h", 15)
    yield line(373, 118, 373, 96, **_faint(added)) + line(373, 96, 140, 96, **_faint(added))
    yield line(140, 96, 140, 122, **_faint(added))
    yield arrow(140, 122, _STREAM + 14, 122, **_faint(added))


def label(part: str, x: float, y: float) -> str:
    """A part's colour and its word."""
    swatch = rect(x, y - 11, 12, 12, COLORS[part])
    return swatch + text(x + 18, y, part, 15, **BOLD)


# --- wider or deeper: a GPT's matrices on one scale

_COLUMNS, _PIXEL, _WIDEST = 6, 400 / (24 * 1536), 1536
"""Layers stand in so many columns; pixels of a number; the widest model that has room."""


def bricks(
    now: ParameterCount, shape: Shape, start: Shape | None = None, narrow: bool = False
) -> Drawing:
    """A GPT's layers as bricks of twelve squares on its tables, always on one scale.

    A layer is 4h wide and 3h high: four squares of attention, eight of the MLP. The
    tables lie as flat as the layers are wide. `start` leaves its outline. Where it is
    `narrow`, what they are stands below.
    """
    h, l = shape
    pixel, floor = (0.85 * _PIXEL, 374) if narrow else (_PIXEL, 438)
    side, left = h * pixel, 12
    x, low, aside = (left, floor - 20, 184) if narrow else (430, 0, 430)
    wide = 4 * _COLUMNS * side
    flat = (now.embedding / h) * pixel / (4 * _COLUMNS)
    svg = rect(left, floor - flat, wide, flat, COLORS["embedding"], "embedding")
    rows = -(-l // _COLUMNS)
    blue = orange = seams = ""
    for row in range(rows):
        across = min(_COLUMNS, l - row * _COLUMNS) * 4 * side
        y = floor - flat - 3 * side * (row + 1)
        orange += f"M{left} {y:.1f}h{across:.1f}v{2 * side:.1f}h-{across:.1f}z"
        blue += f"M{left} {y + 2 * side:.1f}h{across:.1f}v{side:.1f}h-{across:.1f}z"
        seams += "".join(f"M{left} {y + i * side:.1f}h{across:.1f}" for i in (1, 2))
        seams += "".join(f"M{left + i * side:.1f} {y:.1f}v{3 * side:.1f}" for i in range(1, 24))
    svg += f'<path d="{orange}" fill="{COLORS["MLP"]}"/>'
    svg += f'<path d="{blue}" fill="{COLORS["attention"]}"/>'
    svg += f'<path d="{seams}" stroke="white" stroke-width="0.5" opacity="0.6" fill="none"/>'
    edges = "".join(
        f"M{left} {floor - flat - 3 * side * i:.1f}h{wide:.1f}" for i in range(rows + 1)
    )
    edges += "".join(
        f"M{left + 4 * side * i:.1f} {floor - flat:.1f}v-{3 * side * rows:.1f}"
        for i in range(_COLUMNS + 1)
    )
    svg += f'<path d="{edges}" stroke="{CARD}" stroke-width="1.5" fill="none"/>'
    if start:
        old = start[0] * pixel
        high = 3 * old * -(-start[1] // _COLUMNS) + flat
        svg += ghost(left, floor - high, 4 * _COLUMNS * old, high, "at the start")
        svg += text(aside, floor + 206 if narrow else 430, "dashed: the start", 14)

    svg += text(x, low + 60, units.count(now.total), 26, **BOLD)
    svg += text(x, low + 82, "parameters", 15)
    for place, (part, name, size) in enumerate(
        (
            ("MLP", "MLP", now.mlp),
            ("attention", "attention", now.attention),
            ("embedding", "tables", now.embedding),
        )
    ):
        y = low + 130 + 52 * place
        svg += rect(x, y - 11, 12, 12, COLORS[part]) + text(x + 18, y, name, 15, **BOLD)
        svg += text(x + 18, y + 20, f"{units.count(size)}, {units.share(size / now.total)}", 15)
    top = floor + 62 if narrow else 304
    for row, word in enumerate(("down", "up", "query, key,")):
        fill, y = COLORS["attention" if row > 1 else "MLP"], top + 12 + 22 * row
        svg += "".join(rect(aside + 22 * i, y, 21, 21, fill) for i in range(4))
        svg += text(aside + 98, y + 16, word, 14)
    svg += text(aside, top, "a layer, 12 times h × h", 14)
    svg += text(aside + 98, top + 90, "value, output", 14)
    words = (
        f"{l} layers of a GPT as bricks of twelve squares, each h × h with h = {h:,}, on its "
        f"tables; areas to scale. MLP {units.count(now.mlp)}, attention "
        f"{units.count(now.attention)}, tables {units.count(now.embedding)}."
    )
    size = (380, floor + 260) if narrow else (640, 450)
    return Drawing(svg, *size, words)


# --- what makes a Llama of a GPT

_LLAMA = 4096
"""The hidden size of Llama 3.1 8B."""


def mended(
    model: Transformer,
    whole: Transformer,
    most: float = 9e9,
    marked: bool = True,
    narrow: bool = False,
) -> Drawing:
    """A layer's matrices as they are, and outlines of those of the `whole` model.

    Below them all parameters as a bar, `marked` where the whole model's end. Where it is
    `narrow`, the matrices stand below the word of their part.
    """
    side, gap = (34, 16) if narrow else (46, 24)  # pixels of the hidden size, and between
    left, top, pitch, above = (14, 84, 98, 32) if narrow else (130, 66, 92, -16)
    pixel = side / _LLAMA
    svg, inside = text(14, 24, f"one of {int(model.num_layers)} layers, sides to scale", 15), []
    own = {m.name: m for m in [*attention(model), *mlp(model)]}
    for row, matrices in enumerate((attention(whole), mlp(whole))):
        x, y = float(left), top + pitch * row
        svg += label(("attention", "MLP")[row], 14, y - above)
        for target in matrices:
            here = own.get(target.name)
            cells = [m for m in (here, target) if m]
            wide = max(m.columns for m in cells) * pixel
            svg += text(x, y - 8, target.name, 14)
            if here:
                sides = (here.columns * pixel, here.rows * pixel)
                svg += rect(x, y, *sides, here.color, here.size)
                inside.append(f"{here.name} {here.size}")
            if here != target:
                svg += ghost(x, y, target.columns * pixel, target.rows * pixel, "Llama 3.1 8B")
            x += max(wide, 52) + gap
    counted, there = count_parameters(model), count_parameters(whole)
    x, unit = 14.0, (332 if narrow else 600) / most
    svg += text(x, 348 if narrow else 376, "in all:", 15)
    for name, word in PARTS.items():
        wide = unit * counted.parts()[name]
        named = f"{word}: {units.count(counted.parts()[name])}"
        svg += rect(x, 386, wide, 36, COLORS[word], named) if wide else ""
        x += wide
    places = [(76, 376), (198, 376), (310, 376), (382, 376)]
    if narrow:
        places = [(76, 348), (204, 348), (76, 372), (204, 372)]
    for word, place in zip(("embedding", "attention", "MLP", "output head"), places, strict=True):
        svg += label(word, *place)
    end = 14 + unit * there.total
    if marked:
        svg += line(end, 380, end, 428, stroke_width=3)
        svg += text(end, 446, f"{units.count(there.total)}: the real one", 15, "end", **BOLD)
    words = (
        f"A layer's matrices to scale: {', '.join(inside)}; dashed, those of Llama 3.1 8B. "
        "All parameters as a bar"
        + (
            f": {units.count(counted.total)}. A mark: {units.count(there.total)}."
            if marked
            else "."
        )
    )
    return Drawing(svg, 360 if narrow else 640, 456, words)


# --- experts: which of them a token meets

_SENTENCE = ("Two", "of", "eight", "experts", "do", "the", "work")


def experts(model: Transformer, token: int, most: float = 92e9, narrow: bool = False) -> Drawing:
    """A layer's experts as blocks, those that a token meets full; both counts as bars.

    Blocks are to one scale, and so are the bars, which end at `most` parameters. Which
    experts a token meets is an example. Where it is `narrow`, the sentence has two rows,
    and blocks as large are thinner.
    """
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
        full = unit * (counted.active - rest)
        svg += rect(left + unit * rest, y + 8, full, 26, COLORS["MLP"], "experts that it meets")
        if size > counted.active:
            idle = unit * (size - counted.active)
            x = left + unit * rest + full
            svg += rect(
                x, y + 8, idle, 26, COLORS["MLP"], "experts that it does not meet", opacity=0.25
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
