"""The drawing of any model: its stack of layers, kind by kind, in order and to scale.

Shared by all chapters; `parameters` draws the two shapes that are taught by hand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import ceil
from typing import Any

from llmtrain_course.kit.drawing import COLORS, Style, ghost, hatched, rect
from llmtrain_course.kit.lanes import Bars, Span, bar
from llmtrain_course.kit.layout import (
    BESIDE,
    GAP,
    ROW,
    USUAL,
    Below,
    Diagram,
    Fact,
    Picture,
    key,
    list_facts,
    paragraph,
    patch,
)
from llmtrain_course.kit.scale import Scale
from llmtrain_course.parameters.pictures import PARTS
from llmtrain_helpers import units
from llmtrain_helpers.model import recurrences
from llmtrain_helpers.model.layers import Attention, Experts, LatentAttention, Layer, Mixer, Mlp
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters

STRIP, CELL, MOST = 104, 40, 4
"""Heights of the strip of areas and of a layer's cell; how many kinds are described."""

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


def stack(model: Transformer, name: str = "", before: Transformer | None = None) -> Picture:
    """A model's parts as bars and as areas, its layers in order, and what each kind is.

    Of a mixture the experts that a token does not meet are pale. `before` is the model
    of the last picture.
    """
    counted, layer_kinds, runs = count_parameters(model), kinds(model), layer_runs(model)
    parts = {word: counted.parts()[part] for part, word in PARTS.items()}
    sizes = ", ".join(f"{word} {units.count(size)}" for word, size in parts.items() if size)
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
    legend = partial(_legend, layer_kinds[:MOST], model.hidden_size)
    diagrams = partial(_areas, model), partial(_row, model, layer_kinds), legend
    return Below([_parts(model, before or model), *map(Diagram, diagrams)], words, gap=8)


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
    return f"Dashed, and not in any sum: {many} to predict further tokens, {size}."


# --- parts and areas


def _parts(model: Transformer, before: Transformer) -> Picture:
    """A bar for each part: its count and its share, or what it was before a change."""
    counted, previous = count_parameters(model), count_parameters(before)
    lanes, most = [], 0.0
    for part, word in PARTS.items():
        now, was, share = (x[part] for x in (counted.parts(), previous.parts(), counted.shares()))
        note = f", {units.percent(share)}" if share > 0.001 else ""
        total = _count(now) + (note if now == was else f", was {_count(was)}")
        lanes.append(bar(word, {word: now}, COLORS, total=total, previous=was, labels=False))
        most = max(most, now, was)
    return Bars(
        Scale(0, most),
        lanes,
        heading="Where they are",
        verdict=f"was {units.count(previous.total)}" if before != model else "",
        lane=14,
        gap=6,
        axis=False,
        keyed=False,
        phone_names=0,
        longest_total="999 thousand, was 999 thousand",
    )


def _count(parameters: Any) -> str:
    return units.count(parameters) if parameters else "none"


def _areas(model: Transformer, left: float, top: float, width: float) -> tuple[str, float]:
    """Embedding, layers and head: widths are shares, heights those inside a layer."""
    counted, h = count_parameters(model), model.hidden_size
    unit = width / float(counted.total)
    head = unit * float(counted.parts()["head"])
    x = left + unit * float(counted.parts()["embedding"])
    svg = rect(left, top, x - left, STRIP, COLORS["embedding"], "embedding")
    for how_many, layer in model.layers:
        n, each, y = int(how_many), float(layer.parameters(h)), top
        pitch, mlp = unit * each, layer.mlp
        mixers = sum(mixer.parameters(h) for mixer in layer.mixers)
        idle, whole = (mlp.idle(h), mlp.parameters(h)) if mlp else (0, 0)
        sizes = ("attention", mixers), ("MLP", whole - idle), ("MLP", idle)
        for i, (word, size) in enumerate((*sizes, ("norms", layer.norm_parameters(h)))):
            high = STRIP / each * float(size)
            pale: Style = {"opacity": _IDLE} if i == 2 else {}
            svg += rect(x, y, n * pitch, high, COLORS[word], word, **pale) if size else ""
            y += high
        if pitch > 3:
            seams = "".join(f"M{x + i * pitch:.1f} {top:g}v{STRIP}" for i in range(n))
            svg += f'<path d="{seams}" stroke="white" stroke-width="0.7" fill="none"/>'
        x += n * pitch
    svg += rect(x, top, head, STRIP, COLORS["output head"], "output head") if head else ""
    return svg, top + STRIP


# --- the layers in order

_IDLE, _LOW = 0.3, 0.35
"""How pale experts are that a token does not meet; how low what sees a window only is."""


def _row(
    model: Transformer, layer_kinds: Sequence[Kind], left: float, top: float, width: float
) -> tuple[str, float]:
    """A cell for each layer, the first at the left, and what its looks say.

    A long stack is thinned out.
    """
    by_letter = {kind.letter: kind.layer for kind in layer_kinds}
    cells = [letter for letter, n in layer_runs(model) for _ in range(min(n, 400))]
    step = ceil(len(cells) / (width // 4))  # pixels of the thinnest cell
    letters, extra = cells[::step], min(int(model.prediction_layers), 9)
    pitch = min(width / (len(letters) + extra * 1.5), 30)
    every = "" if step == 1 else f", one in {step} drawn"
    heading = f"{int(model.num_layers):,} layers, from first to last{every}; not to scale"
    svg, y = paragraph(left, top, heading, width, USUAL, True)
    svg += _cells(
        [(by_letter[letter], left + i * pitch, y + 4, pitch) for i, letter in enumerate(letters)]
    )
    x = left + pitch / 2
    for i in range(len(letters), len(letters) + extra):
        svg += ghost(x + i * pitch, y + 4, pitch - 1.5, CELL, "predicts a further token")

    mixers = [mixer for kind in layer_kinds for mixer in kind.layer.mixers]
    blue, orange = COLORS["attention"], COLORS["MLP"]
    swatches = [patch(orange, "MLP"), patch(blue, "attention")]
    if any(mixer.window for mixer in mixers):
        swatches.append(Span(0, 1, blue, name="over a window only", rise=_LOW).swatch())
    if any(type(mixer) in _MIXERS for mixer in mixers):
        swatches.append(patch(blue, "a recurrence", slants="white"))
    if model.num_experts:
        swatches.append(patch(orange, "experts that a token doesn't meet", _IDLE))
    drawn, y = key(swatches, left, y + CELL + 12, width)
    notes = [_prediction_note(model)] if extra else []
    if len(layer_kinds) > MOST:
        notes.append(f"We describe {MOST} of {len(layer_kinds)} kinds.")
    for note in notes:
        svg, (drawn, y) = svg + drawn, paragraph(left, y, note, width)
    return svg + drawn, y


def _cells(cells: Sequence[tuple[Layer, float, float, float]]) -> str:
    """Layers as cells, each from a corner and as wide as it says: its MLP above its mixer.

    There's a path per colour: hundreds of elements would be slow to redraw.
    """
    paths, slants = defaultdict[tuple[str, float], str](str), ""
    for layer, x, y, width in cells:
        parts = []
        if layer.mlp is not None:
            full = 0.32 if isinstance(layer.mlp, Experts) else 0
            parts += [("MLP", 1, full, 0.48), ("MLP", _IDLE, 0, full)]
        if layer.mixers:
            low = 1 - _LOW / 2 if layer.mixer and layer.mixer.window else 0.5
            parts += [("attention", 1, low, 1), ("attention", _IDLE, 0.5, low)]
        for part, opacity, begin, end in parts:
            across, high = width - 1.5, CELL * (end - begin)
            block = f"M{x:.1f} {y + CELL * begin:.1f}h{across:.1f}v{high:.1f}h{-across:.1f}z"
            paths[COLORS[part], opacity] += block if high else ""
        if type(layer.mixer) in _MIXERS and width > 8:
            slants += hatched(x, y + CELL / 2, width - 1.5, CELL / 2, 5, "white")
    blocks = (
        f'<path d="{path}" fill="{color}" opacity="{opacity:g}"/>'
        for (color, opacity), path in paths.items()
    )
    return "".join(blocks) + slants


def _legend(
    layer_kinds: Sequence[Kind], hidden_size: Any, left: float, top: float, width: float
) -> tuple[str, float]:
    """Kinds of layers next to each other or below: looks, how many, how large, its parts."""
    beside = width >= BESIDE
    pitch = (width + GAP) / max(len(layer_kinds), 2) if beside else width + GAP
    svg, x, y, low = "", left, top, top
    for kind in layer_kinds:
        facts = [
            Fact(units.plural(kind.how_many, "layer"), bold=True),
            Fact(f"{units.count(kind.parameters)} each", size=USUAL),
        ]
        svg += _cells([(kind.layer, x, y + 6, ROW)]) + list_facts(facts, x + 34, y, pitch)[0]
        y += CELL + 16
        for part, words in kind.description(hidden_size):
            svg += rect(x, y + 4, 12, 12, COLORS[part])
            drawn, y = paragraph(x + 18, y, words, pitch - GAP - 18)
            svg += drawn
        low = max(low, y)
        x, y = (x + pitch, top) if beside else (left, y + 14)
    return svg, low
