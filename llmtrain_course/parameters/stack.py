"""The drawing of any model: its stack of layers, kind by kind, in order and to scale.

Shared by all chapters; `parameters` draws the two shapes that are taught by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from llmtrain_course.kit.drawing import COLORS, Drawing, Style, fits, ghost, hatched, rect, text
from llmtrain_course.parameters.pictures import BOLD, PARTS, label
from llmtrain_helpers import units
from llmtrain_helpers.model import recurrences
from llmtrain_helpers.model.layers import Attention, Experts, LatentAttention, Layer, Mixer, Mlp
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters

LEFT, ACROSS, TOP, TALL = 14, 662, 130, 104
"""Where the strip of areas stands."""

NARROW = 346
"""How long that strip is on a telephone."""

CELL, MOST = 40, 4
"""The height of a cell in the row of layers, how many kinds have a card."""

_MIXERS: dict[type, str] = {
    recurrences.Mamba: "Mamba",
    recurrences.Mamba2: "Mamba 2",
    recurrences.DeltaNet: "gated delta net",
    recurrences.KimiDelta: "Kimi delta attention",
    recurrences.LightningAttention: "lightning attention",
    recurrences.ShortConvolution: "short convolution",
    recurrences.GatedRecurrence: "gated recurrence",
}


@dataclass(frozen=True)
class Kind:
    """Layers of one kind: a letter, how many there are, and what each is."""

    letter: str
    how_many: int
    layer: Layer
    parameters: int

    def description(self, hidden_size: Any) -> list[tuple[str, str]]:
        """The layer's parts: the word of each one's colour, its parameters and what it is."""
        h, mlp = hidden_size, self.layer.mlp
        parts = [
            ("attention", f"{units.count(mixer.parameters(h))}: {describe_mixer(mixer)}")
            for mixer in self.layer.mixers
        ]
        if mlp is not None:
            parts.append(("MLP", f"{units.count(mlp.parameters(h))}: {describe_mlp(mlp)}"))
        return parts


def stack(
    model: Transformer, name: str = "", before: Transformer | None = None, across: float = ACROSS
) -> Drawing:
    """A model's parameters as areas, its layers in order, and a card for each kind.

    Of a mixture the experts that a token does not meet are pale. `before` is the model
    of the last picture. The areas are `across` pixels long: where that is `NARROW`, the
    key has a row for each part, and the cards stand below one another.
    """
    changed, layer_kinds = (before if before != model else None), kinds(model)
    key, top = _rows(model, changed) if across == NARROW else (_key(model, changed), TOP)
    row, below = _row(model, layer_kinds, top + TALL + 38, across)
    cards, floor = _cards(layer_kinds[:MOST], model.hidden_size, below, across)
    svg = _totals(model, changed, across) + key
    svg += _areas(model, top, across) + row + cards

    counted, runs = count_parameters(model), layer_runs(model)
    sizes = ", ".join(
        f"{word} {units.count(counted.parts()[part])}"
        for part, word in PARTS.items()
        if counted.parts()[part]
    )
    each = "; ".join(
        f"{kind.letter}, {kind.how_many} layers of {units.count(kind.parameters)}: "
        + ", ".join(label for _, label in kind.description(model.hidden_size))
        for kind in layer_kinds
    )
    order = ", ".join(f"{n} {letter}" for letter, n in runs[:12])
    order += ", and so on" if len(runs) > 12 else ""
    words = (
        f"Drawing: {name + ', ' if name else ''}{units.count(counted.total)} parameters as "
        f"areas: {sizes}. Kinds of layers: {each}. {order}."
    )
    words += f" {_prediction_note(model)}" if model.prediction_layers else ""
    return Drawing(svg, round(across) + 2 * LEFT, round(floor + 14), words)


def kinds(model: Transformer) -> list[Kind]:
    """The kinds of layers, in the order in which they first stand in the stack.

    >>> [kind.how_many for kind in kinds(Transformer.gpt(2, 64, 4, 99, 8))]
    [2]
    """
    groups: dict[Any, list[Any]] = {}
    for how_many, layer in model.layers:
        groups.setdefault(_kind_key(layer), [0, layer])[0] += how_many
    h = model.hidden_size
    return [
        Kind(chr(ord("A") + i), how_many, layer, int(layer.parameters(h)))
        for i, (how_many, layer) in enumerate(groups.values())
    ]


def _kind_key(layer: Layer) -> Any:
    """A key that layers of one kind share: windows too, which leave shapes equal."""
    return layer, *((mixer.window, mixer.chunked) for mixer in layer.mixers)


def layer_runs(model: Transformer) -> list[tuple[str, int]]:
    """The letters of the kinds from first to last, with how many follow one another."""
    letters = {_kind_key(kind.layer): kind.letter for kind in kinds(model)}
    runs = [(letters[_kind_key(layer)], int(n)) for n, layer in model.layers]
    grouped = groupby(runs, key=lambda run: run[0])
    return [(letter, sum(n for _, n in run)) for letter, run in grouped]


# --- words


def describe_mixer(mixer: Mixer) -> str:
    """Describe a mixer: its kind, its heads, and how far it looks."""
    if isinstance(mixer, LatentAttention):
        label = f"latent attention (MLA), {mixer.num_heads} heads; a token's keys and "
        numbers = f"{mixer.kv_rank:,} + {mixer.rotary_dim:,} numbers"
        return f"{label}values out of {numbers}{_window(mixer)}"
    if isinstance(mixer, Attention):
        heads = f"attention, {mixer.num_heads} heads"
        if mixer.num_kv_heads != mixer.num_heads:
            heads += f", {mixer.num_kv_heads} of keys and values"
        return heads + _window(mixer)
    return _MIXERS.get(type(mixer), "a mixer of another kind")


def _window(mixer: Mixer) -> str:
    if not mixer.window:
        return ""
    kind = "chunks" if mixer.chunked else "a window"
    return f"; {kind} of {mixer.window:,} tokens"


def describe_mlp(part: Mlp | Experts) -> str:
    """Describe an MLP, or experts: how many, and how many a token meets."""
    if isinstance(part, Mlp):
        return f"MLP, {part.intermediate_size:,} wide"
    label = f"{part.num_experts:,} experts, {part.expert.intermediate_size:,} wide: "
    label += f"a token meets {part.experts_per_token}"
    if part.shared:
        label += f", and a shared one of {part.shared.intermediate_size:,}"
    return label


def _prediction_note(model: Transformer) -> str:
    size = units.count(count_parameters(model).prediction)
    many = "a layer" if model.prediction_layers == 1 else "layers"
    return f"Dashed, and in no sum: {many} to predict further tokens, {size}."


# --- areas


def _totals(model: Transformer, before: Transformer | None, across: float) -> str:
    """The heading; next to it or below, all parameters before a change and now, as bars."""
    count = int(count_parameters(model).total)
    heading = text(LEFT, 30, "Where they sit: areas to scale", 16, **BOLD)
    if before is None:
        return heading
    previous_count = int(count_parameters(before).total)
    x, y, long, low = (LEFT, 46, 196, 58) if across == NARROW else (406, 26, 270, 20)
    unit = long / max(count, previous_count)
    label = text(LEFT + across, low, f"dashed: {units.count(previous_count)}", 14, "end")
    bars = rect(x, y, count * unit, 15, COLORS["idle"]) + ghost(x, y, previous_count * unit, 15)
    return heading + label + bars


def _key(model: Transformer, before: Transformer | None) -> str:
    """A column for each part: its colour and word, its count, its share."""
    now, shares = count_parameters(model).parts(), count_parameters(model).shares()
    previous = count_parameters(before).parts() if before else now
    svg = ""
    for place, (name, word) in enumerate(PARTS.items()):
        x = LEFT + place * 134
        svg += label(word, x, 60) + text(x + 18, 83, _count(now[name], "none (tied)"), 15)
        svg += text(x + 18, 101, _share(float(shares[name])), 14)
        if previous[name] != now[name]:
            svg += text(x + 18, 119, f"was {_count(previous[name])}", 14)
    return svg


def _rows(model: Transformer, before: Transformer | None) -> tuple[str, float]:
    """The same as `_key` in a row for each part, and where the rows end."""
    now, shares = count_parameters(model).parts(), count_parameters(model).shares()
    previous = count_parameters(before).parts() if before else now
    svg, y = "", 86 if before else 60
    for name, word in PARTS.items():
        svg += label(word, LEFT, y) + text(148, y, _count(now[name], "none (tied)"), 15)
        svg += text(LEFT + NARROW, y, _share(float(shares[name])), 14, "end")
        if previous[name] != now[name]:
            y += 18
            svg += text(148, y, f"was {_count(previous[name])}", 14)
        y += 24
    return svg, y - 6


def _count(parameters: Any, none: str = "none") -> str:
    return units.count(parameters) if parameters else none


def _share(part: float) -> str:
    """A part's share, where it is worth a number.

    >>> _share(0.131), _share(7e-6), _share(0)
    ('13.1 %', 'under 0.1 %', '')
    """
    if not part:
        return ""
    return "under 0.1 %" if part < 0.001 else units.percent(part)


def _areas(model: Transformer, top: float, across: float) -> str:
    """Embedding, layers and head: widths are shares, heights those inside a layer."""
    counted, h, x = count_parameters(model), model.hidden_size, float(LEFT)
    shares, unit = counted.shares(), across / float(counted.total)
    wide = across * float(shares["embedding"])
    svg = rect(x, top, wide, TALL, COLORS["embedding"], "embedding")
    x += wide
    for how_many, layer in model.layers:  # mixers, MLP, what is idle of it, norms
        n, each = int(how_many), float(layer.parameters(h))
        mixers = sum(mixer.parameters(h) for mixer in layer.mixers)
        whole, idle = (layer.mlp.parameters(h), layer.mlp.idle(h)) if layer.mlp else (0, 0)
        y, wide = top, unit * n * each
        for word, size, style in (
            ("attention", mixers, Style()),
            ("MLP", whole - idle, Style()),
            ("MLP", idle, Style(opacity=0.3)),
            ("norms", layer.norm_parameters(h), Style()),
        ):
            if size:
                high = TALL / each * float(size)
                svg += rect(x, y, wide, high, COLORS[word], word, **style)
                y += high
        if wide / n > 3:
            seams = "".join(f"M{x + i * (wide / n):.1f} {top:g}v{TALL}" for i in range(n))
            svg += f'<path d="{seams}" stroke="white" stroke-width="0.7" fill="none"/>'
        x += wide
    wide = across * float(shares["head"])
    return svg + (rect(x, top, wide, TALL, COLORS["output head"], "output head") if wide else "")


# --- the layers in order


def _row(
    model: Transformer, layer_kinds: Sequence[Kind], top: float, across: float
) -> tuple[str, float]:
    """A cell for each layer, the first at the left; what its looks say; and where that ends.

    A long stack is thinned out. What there is stands from `top` on.
    """
    by_letter = {kind.letter: kind.layer for kind in layer_kinds}
    cells = [letter for letter, n in layer_runs(model) for _ in range(min(n, 400))]
    step = -(-len(cells) // round(across / 4.04))
    letters, extra = cells[::step], min(int(model.prediction_layers), 9)
    wide = min(across / (len(letters) + extra * 1.5), 30)
    every = "" if step == 1 else f", one in {step} drawn"
    label = f"{int(model.num_layers):,} layers, from first to last{every}; not to scale"
    svg, y = "", top - 32
    for words in wrap(label, 0.8 * across):  # bold is wider
        y += 20
        svg += text(LEFT, y, words, 15, **BOLD)
    y += 12
    boxes: list[Box] = []
    slants = ""
    for place, letter in enumerate(letters):
        cell = by_letter[letter], LEFT + place * wide, y, wide - 1.5
        boxes += _cell(*cell)
        slants += _slants(*cell)
    svg += _paint(boxes) + slants
    for i in range(extra):
        x = LEFT + (len(letters) + 0.5 + i) * wide
        svg += ghost(x, y, wide - 1.5, CELL, "predicts a further token")

    # what a cell's looks say, of those that there are
    mixers = [mixer for kind in layer_kinds for mixer in kind.layer.mixers]
    legend = ["orange: MLP"]
    if model.num_experts:
        legend = ["faint orange: experts that a token does not meet"]
    legend.append("blue: attention")
    if any(mixer.window for mixer in mixers):
        legend.append("low blue: over a window only")
    if any(type(mixer) in _MIXERS for mixer in mixers):
        legend.append("slanted: a recurrence")
    if len(layer_kinds) > MOST:
        legend.append(f"of {len(layer_kinds)} kinds {MOST} have a card")
    lines = wrap("; ".join(legend), across) + (
        wrap(_prediction_note(model), across) if extra else []
    )
    for i, words in enumerate(lines):
        svg += text(LEFT, y + CELL + 22 + 20 * i, words, 15)
    return svg, y + CELL + 38.0 + 20 * (len(lines) - 1)


Box = tuple[str, float, float, float, float, float]
"""A rectangle of many: its colour and opacity, its place and its sides."""


def _cell(layer: Layer, x: float, y: float, wide: float) -> list[Box]:
    """A layer's picture: its MLP above its mixer; experts are pale but for a piece, windows low."""
    half, boxes = CELL / 2, []
    orange, blue = COLORS["MLP"], COLORS["attention"]
    if layer.mlp is not None:
        experts = isinstance(layer.mlp, Experts)
        boxes.append((orange, 0.3 if experts else 1.0, x, y, wide, half - 1))
        if experts:
            boxes.append((orange, 1.0, x, y + half - 7, wide, 6.0))
    if layer.mixers:
        low = y + half
        window = isinstance(layer.mixer, Mixer) and bool(layer.mixer.window)
        high = 0.35 * half if window else half
        if window:
            boxes.append((blue, 0.3, x, low, wide, half))
        boxes.append((blue, 1.0, x, low + half - high, wide, high))
    return boxes


def _slants(layer: Layer, x: float, y: float, wide: float) -> str:
    """White slanted lines over the mixer of a layer that is a recurrence."""
    if not layer.mixers or type(layer.mixer) not in _MIXERS or wide <= 6:
        return ""
    return f'<g color="white">{hatched(x, y + CELL / 2, wide, CELL / 2, 5)}</g>'


def _paint(boxes: Sequence[Box]) -> str:
    """Paint rectangles as a path per colour: hundreds of elements would be slow to redraw."""
    paths: dict[tuple[str, float], str] = {}
    for color, opacity, x, y, wide, high in boxes:
        block = f"M{x:.1f} {y:.1f}h{wide:.1f}v{high:.1f}h{-wide:.1f}z"
        paths[color, opacity] = paths.get((color, opacity), "") + block
    return "".join(
        f'<path d="{path}" fill="{color}" opacity="{opacity:g}"/>'
        for (color, opacity), path in paths.items()
    )


# --- a card for each kind


def _cards(
    layer_kinds: Sequence[Kind], hidden_size: Any, top: float, across: float
) -> tuple[str, float]:
    """Cards as tall as the one that says most, or below one another; and where they end.

    Each says what a layer of the kind looks like, how many there are, how large, its parts.
    """
    narrow = across == NARROW
    pitch = across + 8 if narrow else across / max(len(layer_kinds), 2)
    texts = [
        [(part, wrap(words, pitch - 48)) for part, words in kind.description(hidden_size)]
        for kind in layer_kinds
    ]
    svg, floor = "", top
    for place, (kind, parts) in enumerate(zip(layer_kinds, texts, strict=True)):
        x, y = (LEFT, floor + 8 * (place > 0)) if narrow else (LEFT + place * pitch, top)
        peers = [parts] if narrow else texts
        rows = max(sum(len(lines) for _, lines in parts) for parts in peers)
        high = 72.0 + 18 * rows + 3 * max(len(parts) for parts in peers)
        floor = y + high
        svg += rect(x, y, pitch - 8, high, stroke="currentColor", opacity=0.5, rx=8)
        svg += _paint(_cell(kind.layer, x + 12, y + 12, 26))
        svg += _slants(kind.layer, x + 12, y + 12, 26)
        svg += text(x + 50, y + 27, units.plural(kind.how_many, "layer"), 17, **BOLD)
        svg += text(x + 50, y + 47, f"{units.count(kind.parameters)} each", 15)
        y += 75
        for word, lines in parts:
            svg += rect(x + 12, y - 11, 12, 12, COLORS[word])
            for row in lines:
                svg += text(x + 30, y, row, 15)
                y += 18
            y += 3
    return svg, floor


def wrap(words: str, wide: float) -> list[str]:
    """Wrap words to rows that fit.

    >>> wrap("a token meets 8", 80)
    ['a token', 'meets 8']
    """
    rows = [""]
    for word in words.split():
        candidate = f"{rows[-1]} {word}".strip()
        if rows[-1] and not fits(candidate, wide):
            rows.append(word)
        else:
            rows[-1] = candidate
    return rows
