"""Pictures of chapter 13: a weight's bytes, what a layer keeps, the loss, speed, packing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from statistics import median
from typing import Any

from llmtrain_course.finetune.formulas import COPY, MASKED, Placement, SavedInput, flops_ratio
from llmtrain_course.kit.chart import Band, Chart, Column, Dot, Mark, Path, Rule
from llmtrain_course.kit.drawing import COLORS, GREY, Style, rect
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Span, bar
from llmtrain_course.kit.layout import Below, Picture, Swatch, patch
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units
from llmtrain_helpers.finetune import TunedRecompute
from llmtrain_helpers.memory import Memory
from research.finetunes import speed_ratios

WORDS = {"optimizer": "Adam's averages", "mlp": "MLP", "transient": "for this moment"}
"""The words of parts whose names are identifiers."""

MOVED = COLORS["saving"]
"""The colour of what moved last: a text, or the reader's own line."""

_COLORS = {
    **COLORS,
    "Adam's averages": COLORS["optimizer"],
    "adapters": COLORS["context"],
    "for this moment": COLORS["logits"],
}


def _bar(name: str, parts: Mapping[str, float], **options: Any) -> Lane:
    """Describe a bar of bytes, part by part, with a cut where it's longer than its scale."""
    lane = bar(name, parts, _COLORS, units.gigabytes, words=WORDS, labels=False, **options)
    return replace(lane, cuts=True)


def _key(*names: str) -> list[Swatch]:
    """Entries of the parts that a picture may have, in all its settings."""
    words = (WORDS.get(name, name) for name in names)
    return [patch(_COLORS[word], word) for word in words]


# --- one weight, and all of them

_MOST_STATES = 165e9
"""Bytes at which the scale of states ends."""


def bytes_of_ways(
    each: Mapping[str, Mapping[str, float]],
    whole: Mapping[str, Mapping[str, float]],
    cards: Mapping[str, float],
    model: str,
) -> Picture:
    """A weight's bytes as squares, and a model's as a bar, for ways to adapt it.

    The scale of the bars is the same for all models, so a longer bar has a cut.
    """
    squares = [Span(k, k + 1, "none", title="a byte", outline=True, opacity=0.5) for k in range(16)]
    weights = [
        bar(way, parts, _COLORS, _bytes, words=WORDS, labels=False) for way, parts in each.items()
    ]
    weight = Bars(
        Scale(0, 16),
        [replace(lane, items=[*lane.items, *squares]) for lane in weights],
        heading="one weight",
        lane=24,
        axis=False,
        keyed=False,
    )
    model_bars = Bars(
        Scale(0, _MOST_STATES),
        [_bar(way, parts) for way, parts in whole.items()],
        limits=[Limit(memory, card, "5 4") for card, memory in cards.items()],
        heading=f"all of {model}",
        axis=False,
        extra=_key("weights", "gradients", "optimizer", "adapters"),
        longest_total="88.8 GB",
    )
    summary = "; ".join(
        f"{way}, {_bytes(sum(each[way].values()))} and {units.gigabytes(sum(parts.values()))}"
        for way, parts in whole.items()
    )
    words = (
        f"One weight of {model} and the whole model, depending on which weights learn: {summary}."
    )
    return Below([weight, model_bars], words)


def _bytes(size: float) -> str:
    return f"{units.digits(size)} bytes"


# --- what a layer keeps

_MOST_KEPT, _MOST_OF_MATRIX = 19e9, 44_000
"""Bytes at which the scales end: of all layers, and of a matrix for a token."""


def layer_kept(
    matrices: Mapping[str, SavedInput],
    learning: Collection[str],
    kept: Mapping[str, float],
    full: Mapping[str, float],
    adapters: bool,
) -> Picture:
    """The matrices of a layer, what each keeps for backward, and all layers together.

    `learning` are those that learn, or (with `adapters`) that have one beside them; the bar
    above is that of full training.
    """
    lanes = []
    for name, state in matrices.items():
        size, sign = float(state.size), FROZEN
        look: dict[str, Any] = {"bold": name in learning, "color": "currentColor" if size else GREY}
        color = COLORS["context" if state.what in (COPY, MASKED) else "activations"]
        if name in learning:
            sign = ADAPTED if adapters else LEARNS
        part = Span(0, size, color, title=f"{state.what}: {size:,.0f} bytes", hidden=not size)
        lanes.append(Lane(name, [part], state.what, **look, sign=sign))
    each = Bars(
        Scale(0, _MOST_OF_MATRIX),
        lanes,
        heading="what a matrix stores per token",
        lane=22,
        gap=7,
        axis=False,
        extra=[LEARNS, FROZEN, ADAPTED],
        longest_total="its input",
    )
    bars = {"all weights learn": full, "now": kept}
    layers = Bars(
        Scale(0, _MOST_KEPT),
        [_kept_bar(word, parts) for word, parts in bars.items()],
        heading="all 32 layers",
        axis=False,
        extra=[patch(color, WORDS.get(x, x), shade) for x, (color, shade) in _KEPT.items()],
        longest_total="88.8 GB",
    )
    listed = ", ".join(f"{name} {state.what}" for name, state in matrices.items())
    totals = " and ".join(units.gigabytes(sum(x.values())) for x in (full, kept))
    words = (
        f"What a layer's matrices store: {listed}. All layers, if everything learns and now: "
        f"{totals}."
    )
    return Below([each, layers], words)


_KEPT = {
    "norms": (COLORS["activations"], 1.0),
    "attention": (COLORS["activations"], 0.7),
    "mlp": (COLORS["activations"], 0.45),
    "adapters": (COLORS["context"], 1.0),
}
"""The colour of what each part keeps, and how dark it is: activations have one colour."""


def _kept_bar(name: str, parts: Mapping[str, float]) -> Lane:
    """Describe a bar of what the layers keep, part by part."""
    lane, looks = _bar(name, parts), [_KEPT[part] for part in parts]
    spans = [
        replace(span, color=color, opacity=shade, name="", edge=True)
        for (color, shade), span in zip(looks, lane.spans, strict=True)
    ]
    return replace(lane, items=spans)


def _matrix(x: float, y: float, color: str = "none") -> str:
    frame: Style = {"stroke": "currentColor", "stroke_width": 1.5, "rx": 2}
    return rect(x + 1, y - 2, 22, 18, color, **frame)


def _with_adapter(x: float, y: float) -> str:
    """A matrix, and the two thin ones whose product is added to it."""
    ink = COLORS["context"]
    return (
        _matrix(x, y)
        + rect(x + 28, y - 3, 5, 20, ink, rx=1)
        + rect(x + 36, y - 3, 20, 5, ink, rx=1)
    )


LEARNS = Swatch(lambda x, y: _matrix(x, y, COLORS["weights"]), "learns", width=24)
FROZEN = Swatch(_matrix, "frozen", width=24)
ADAPTED = Swatch(_with_adapter, "frozen, with an adapter", width=56)
"""Signs of a matrix, by whether it learns."""


# --- the loss

_MOST_AT_LOSS = 52e9
"""Bytes at which the scale of a step ends."""

_MOMENTS = {"last layer": "last layer again", "first layer": "first layer again"}
"""Moments in which a layer's activations are there again, by what computes them."""


def parts_of(memory: Memory) -> dict[str, float]:
    """The parts of a tuned step's memory by their names; copies in fp32 only if it has any."""
    parts = {name: float(size) for name, size in memory.parts().items()}
    return {name: size for name, size in parts.items() if size or not name.startswith("main")}


def step_phases(phases: Sequence[Memory], began: float, card: float, reserve: float) -> Picture:
    """The four moments of a step of which one is the peak, stacked on one scale.

    `began` is the peak at the start, an outline; `card` is a line, with what a plan keeps
    free hatched below it.
    """
    marks: list[Mark] = [Band(card - reserve, card, GREY, "y", hatch=True, name="to stay free")]
    ticks = {}
    for i, phase in enumerate(phases):
        low, moment = 0.0, _MOMENTS.get(phase.moment, f"the {phase.moment}")
        ticks[float(i)] = f"{phase.total / 1e9:.1f} GB\n{moment}"
        for name, size in parts_of(phase).items():
            word = WORDS.get(name, name)
            title = f"{word}: {units.gigabytes(size)}" if size else ""
            marks.append(
                Column(i - 0.38, i + 0.38, low + size, _COLORS[word], low, title, name=word)
            )
            low += size
    outline = [(-0.45, 0), (-0.45, began), (0.45, began), (0.45, 0)]
    same = began == phases[0].total
    marks += [
        Path(outline, width=1.5, dash="5 4", name="at the start", hidden=same),
        Rule(card, "y", units.gigabytes(card).replace(".0", ""), dash="5 4", width=2, bold=True),
    ]
    peak = max(phases, key=lambda phase: phase.total)
    summary = ", ".join(f"{x.moment} {units.gigabytes(x.total)}" for x in phases)
    words = f"A step at four moments: {summary}. The peak is the {peak.moment}."
    x = Scale(-0.5, len(phases) - 0.5, ticks=ticks, wrap=True)
    y = Scale(0, _MOST_AT_LOSS, "GB", lambda size: f"{size / 1e9:g}", grid=True)
    return Chart(x, y, marks, words, height=260)


# --- speed

PAIRS = {
    "adapters or all weights": ("lora", "full", COLORS["context"], "dot"),
    "4 bits or 16": ("qlora", "lora", COLORS["weights"], "diamond"),
}
"""Pairs of methods, the first compared with the second; a pair's colour and shape."""

_EXPECTED: dict[TunedRecompute, str] = {"none": "by FLOPs alone", "full": "with recomputation"}
"""What FLOPs let you expect of adapters, by what is recomputed."""

_FEW = "peft MetaMathQA benchmark"
"""A publication whose steps have few short texts, so that the update takes most of them."""


def speeds_of_pairs(chosen: str, line: float) -> Picture:
    """Draw how many times as fast runs are as others, against the tokens a GPU has at once.

    Each dot is a pair that differs in one thing: adapters or all weights, 4 bits or 16. Dots
    with the same tokens stand side by side, and only the `chosen` pairs are drawn. Dashed lines
    are what FLOPs let you expect of adapters, and the reader moves the solid `line`.
    """
    marks: list[Mark] = [
        Rule(line, "y", color=MOVED, width=3, name="your line", moves="line"),
        Rule(1, "y", color=GREY),
        *(
            Rule(flops_ratio(recompute), "y", label, dash="5 4", hidden=chosen == "4 bits or 16")
            for recompute, label in _EXPECTED.items()
        ),
    ]
    words = f"Your line is at {line:g}×. No pairs are shown yet."
    for name, (method, other, color, shape) in PAIRS.items():
        ratios = sorted(speed_ratios(method, other), key=attrgetter("tokens", "times"))
        for i, ratio in enumerate(ratios):
            title = f"{ratio.model}, {ratio.tokens:,} tokens: {ratio.times:.2f}×"
            few = ratio.publication == _FEW and ratios[i - 1].publication != _FEW
            label = "few short texts in a step" if few else ""
            at = ratio.tokens * 2 ** ((i % 3 - 1) / 8), ratio.times
            size = 5 if shape == "dot" else 4
            dot = Dot(*at, color, size, shape, label, title, name=name, hidden=name != chosen)
            marks.append(dot)
        if name == chosen:
            times = [ratio.times for ratio in ratios]
            words = (
                f"{len(times)} pairs of {name}: {min(times):.2f} to {max(times):.2f}× as fast, "
                f"the middle one {median(times):.2f}×. Your line is at {line:g}×."
            )
    x = Scale(400, 43_000, "tokens that a GPU has at once", ticks=_LENGTHS, log=True)
    y = Scale(0.44, 3.4, "× as fast", "{:g}".format, (0.5, 0.7, 1, 1.5, 2, 3), True, True)
    return Chart(x, y, marks, words, height=280)


_LENGTHS = (512, 2048, 8192, 32_768)


# --- packing


def texts_in_rows(lengths: Sequence[int], places: Sequence[Placement], row_length: int) -> Picture:
    """Texts in rows of one length: each where it stands, what is left of a row hatched.

    `places` are those of the texts that are packed; the others have a row each.
    """
    firsts = [i for i, place in enumerate(places) if place.start == 0]
    at = [firsts[place.row] for place in places] + [*range(len(places), len(lengths))]
    starts = [place.start for place in places] + [0] * (len(lengths) - len(places))
    empty = Span(0, row_length, title="a row that is saved", previous=True)
    rows: list[list[Span]] = [[] for _ in lengths]
    last = len(places) - 1
    for i, (row, start, tokens) in enumerate(zip(at, starts, lengths, strict=True)):
        title, color = f"text {i + 1}: {tokens:,} tokens", MOVED if i == last else COLORS["memory"]
        rows[row].append(Span(start, start + tokens, color, f"{tokens:,}", title, outline=True))
    pads = [Span(row[-1].end, row_length, title="pads", hatch=True) for row in rows if row]
    lanes = [Lane("", [*row, pads.pop(0)] if row else [empty]) for row in rows]
    used, texts = sum(map(bool, rows)), sum(lengths)
    through = row_length * used
    size = f"{units.plural(used, 'row')}, {through:,} tokens"
    share = f"{units.percent(texts / through)} are text"
    words = (
        f"{len(lengths)} texts in rows of {row_length:,} tokens, {len(places)} of them packed: "
        f"the model processes {size}, of which {share}."
    )
    key = [patch(COLORS["memory"], "a text"), patch(MOVED, "the text that moved last")]
    key += [
        replace(it, name=it.title).swatch() for it in (empty, Span(0, 0, title="pads", hatch=True))
    ]
    x = Scale(0, row_length)
    return Bars(x, lanes, words, (), size, share, lane=22, gap=4, axis=False, extra=key)


# --- three ways beside a card


def ways_on_a_card(
    ways: Mapping[str, Memory],
    chosen: str,
    memory: float,
    reserve: float,
    chip: str,
    began: float = 0,
) -> Picture:
    """The peak of each way to adapt a model, part by part, under the memory of a card.

    What a plan keeps free is hatched; `began` is the chosen way's peak at the start. The
    scale ends at one and a half cards, and a longer bar has a cut.
    """
    most, lanes = 1.5 * memory, []
    free = Span(memory - reserve, memory, hatch=True)
    for way, peak in ways.items():
        own = way == chosen
        moved = own and began and abs(began / peak.total - 1) > 0.002
        lane = _bar(
            way,
            parts_of(peak),
            note=f"peak at the {peak.moment}",
            previous=began if moved else None,
            bold=own,
            opacity=1 if own else 0.5,
        )
        lanes.append(replace(lane, items=[*lane.items, free]))
    card = f"{chip}, {units.gigabytes(memory).replace('.0', '')}"
    peaks = "; ".join(f"{way} {units.gigabytes(peak.total)}" for way, peak in ways.items())
    words = (
        f"At the peak on each GPU: {peaks}. {card}, of which {units.gigabytes(reserve)} stay free."
    )
    key = _key("weights", "gradients", "optimizer", "activations", "transient")
    key.append(replace(free, name="to stay free").swatch())
    limit = Limit(memory, card, "5 4", bold=True)
    return Bars(
        Scale(0, most), lanes, words, [limit], axis=False, extra=key, longest_total="88.8 GB"
    )
