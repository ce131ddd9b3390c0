"""Drawings of chapter 12: a weight's bytes, what a layer keeps, the loss, speed, packing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from statistics import median

from llmtrain_course.finetune.formulas import COPY, MASKED, Placement, SavedInput, flops_ratio
from llmtrain_course.kit.chart import Chart, Dot, Mark, Rule
from llmtrain_course.kit.drawing import (
    COLORS,
    GREY,
    Drawing,
    Style,
    ghost,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_course.kit.layout import Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units
from llmtrain_helpers.memory import Memory
from research.finetunes import speed_ratios

WIDE, NARROW = 628, 372
"""Pixels across, and on a telephone."""

PARTS = {
    "weights": ("weights", COLORS["weights"]),
    "gradients": ("gradients", COLORS["gradients"]),
    "optimizer": ("Adam's averages", COLORS["optimizer"]),
    "adapters": ("adapters", COLORS["context"]),
    "norms": ("norms", COLORS["norms"]),
    "attention": ("attention", COLORS["attention"]),
    "mlp": ("MLP", COLORS["MLP"]),
    "activations": ("activations", COLORS["activations"]),
    "transient": ("for this moment", COLORS["logits"]),
}
"""The word and the colour of each part."""

_WHITE, _SUM = "#FFFFFF", 80
"""The ink on colours; the room for a sum at the right of a bar."""

_BOLD: Style = {"font_weight": 700}
_DASHED: Style = {"stroke_width": 2, "stroke_dasharray": "5 4"}
_FRAME: Style = {"stroke": "currentColor", "stroke_width": 1.5, "rx": 3}


def _bar(
    parts: Mapping[str, float],
    left: float,
    y: float,
    high: float,
    scale: float,
    right: float,
    opacity: float = 1,
) -> str:
    """A bar of stacked parts, and their sum at the right edge; a longer bar ends in an arrow."""
    svg, x, edge = "", left, right - _SUM
    for name, size in parts.items():
        wide = min(size * scale, edge - x)
        if wide > 0:
            title = f"{PARTS[name][0]}: {units.gigabytes(size)}"
            svg += rect(x, y, wide, high, PARTS[name][1], title, opacity=opacity)
            x += wide
    whole, middle = sum(parts.values()), y + high / 2
    if left + whole * scale > edge:
        svg += text(edge - 8, middle + 6, "→", 18, "end", _WHITE, **_BOLD)
    return svg + text(right, middle + 6, units.gigabytes(whole), 16, "end", **_BOLD)


def _key(names: Sequence[str], y: float, width: float) -> tuple[str, float]:
    """Swatches and words of parts, in as many lines as they need; and where they end."""
    svg, x = "", 10.0
    for name in names:
        word, color = PARTS[name]
        wide = 36 + 7.6 * len(word)
        if x + wide > width:
            x, y = 10.0, y + 24
        svg += rect(x, y - 12, 15, 15, color) + text(x + 21, y + 1, word, 14)
        x += wide + 8
    return svg, y


# --- one weight, and all of them

_MOST_STATES = 165e9
"""Bytes at which the scale of states ends."""


def bytes_of_ways(
    each: Mapping[str, Mapping[str, float]],
    whole: Mapping[str, Mapping[str, float]],
    cards: Mapping[str, float],
    model: str,
    width: int = WIDE,
) -> Drawing:
    """A weight's bytes as squares, and a model's as a bar, for ways to adapt it.

    The scale of the bars is the same for all models; what is longer is cut.
    """
    at_the_left = width == WIDE
    left, pitch, top = (186, 82, 60) if at_the_left else (10, 116, 76)
    right = width - 10
    scale = (right - _SUM - left) / _MOST_STATES
    foot = top + pitch * len(whole)
    svg = text(10, 24, "one weight", 15, font_weight=600)
    above = 24 if at_the_left else 46
    svg += text(left, above, f"all of {model}", 15, font_weight=600)
    for i, (way, parts) in enumerate(whole.items()):
        y = top + pitch * i
        svg += text(10, y + 14, way, 15, **_BOLD)
        svg += _squares(each[way], 10 if at_the_left else 214, y + (24 if at_the_left else 0))
        bar = y + (22 if at_the_left else 46)
        svg += _bar(parts, left, bar, 38, scale, right)
        for memory in cards.values():
            x = left + memory * scale
            svg += line(x, bar - 7, x, bar + 45, **_DASHED)
    for card, memory in cards.items():
        svg += text(left + memory * scale, top + (6 if at_the_left else -8), card, 14, "middle")
    key, last = _key(["weights", "gradients", "optimizer", "adapters"], foot + 22, width)
    summary = "; ".join(
        f"{way}, {units.digits(sum(each[way].values()))} bytes and "
        f"{units.gigabytes(sum(parts.values()))}"
        for way, parts in whole.items()
    )
    words = f"One weight of {model} and the whole of it, where these learn: {summary}."
    return Drawing(svg + key, width, int(last) + 22, words)


def _squares(parts: Mapping[str, float], x: float, y: float) -> str:
    """Sixteen bytes in two rows, those that a weight has filled, a part of one in part."""
    filled, ends = 0.0, []
    for name, size in parts.items():
        ends.append((filled, filled + size, PARTS[name][1]))
        filled += size
    svg = ""
    for k in range(16):
        left, top = x + 18 * (k % 8), y + 18 * (k // 8)
        for begin, end, color in ends:
            share = min(end, k + 1) - max(begin, k)
            if share > 0:
                svg += rect(left, top, 15 * share, 15, color)
        svg += rect(left, top, 15, 15, stroke="currentColor", stroke_width=1, opacity=0.5)
    return svg


# --- what a layer keeps

_MOST_KEPT, _MOST_OF_MATRIX = 19e9, 44_000
"""Bytes at which the scales end: of all layers, and of a matrix for a token."""


def layer_kept(
    matrices: Mapping[str, SavedInput],
    learning: Collection[str],
    kept: Mapping[str, float],
    full: Mapping[str, float],
    adapters: bool,
    width: int = WIDE,
) -> Drawing:
    """The matrices of a layer, what each keeps for backward, and all layers together.

    `learning` are those that learn, or (with `adapters`) that have one beside them; the bar
    above is that of full training.
    """
    svg, y = text(156, 20, "keeps of a token", 15, font_weight=600), 30.0
    for name, state in matrices.items():
        learns = name in learning
        filled = learns and not adapters
        svg += rect(10, y, 84, 27, COLORS["weights"] if filled else "none", **_FRAME)
        svg += text(52, y + 19, name, 15, "middle", _WHITE if filled else "currentColor")
        if adapters and learns:
            svg += rect(102, y, 9, 27, COLORS["context"], "adapter", rx=2)
            svg += rect(115, y, 27, 9, COLORS["context"], "adapter", rx=2)
        svg += _of_matrix(state, y, width)
        y += 33
    scale, y = (width - 20 - _SUM) / _MOST_KEPT, y + 6
    for word, parts in {"all weights learn": full, "now": kept}.items():
        svg += text(10, y + 18, f"{word}, all 32 layers", 15, font_weight=600)
        svg += _bar(parts, 10, y + 26, 30, scale, width - 10)
        y += 62
    key, last = _key(["norms", "attention", "mlp", "adapters"], y + 22, width)
    listed = ", ".join(f"{name} {state.what}" for name, state in matrices.items())
    totals = " and ".join(units.gigabytes(sum(x.values())) for x in (full, kept))
    words = f"What a layer's matrices keep: {listed}. All layers, all learning and now: {totals}."
    return Drawing(svg + key, width, int(last) + 22, words)


def _of_matrix(state: SavedInput, y: float, width: int) -> str:
    """A bar of what a matrix keeps of a token, and what that is."""
    wide = float(state.size) * (width - 166) / _MOST_OF_MATRIX
    copied = state.what in (COPY, MASKED)
    title = f"{state.what}: {float(state.size):,.0f} bytes"
    svg = rect(156, y + 3, wide, 21, COLORS["context" if copied else "activations"], title)
    if wide > 110:
        return svg + text(164, y + 19, state.what, 15, fill=_WHITE)
    quiet: Style = {} if wide else {"opacity": 0.8}
    return svg * bool(wide) + text(156 + wide + 8 * bool(wide), y + 19, state.what, 15, **quiet)


# --- the loss

_MOST_AT_LOSS, _P_TOP, _P_FOOT = 52e9, 34, 300


def parts_of(memory: Memory) -> dict[str, float]:
    """The parts of a tuned step's memory by their names; copies in fp32 only if it has any."""
    parts = {name: float(size) for name, size in memory.parts().items()}
    return {name: size for name, size in parts.items() if size or not name.startswith("main")}


def step_phases(
    phases: Sequence[Memory], began: float, card: float, reserve: float, width: int = WIDE
) -> Drawing:
    """The four moments of a step of which one is the peak, stacked on one scale.

    `began` is the peak at the start, an outline; `card` is a line, with what a plan keeps
    free hatched below it.
    """
    left, wide = (58, 118) if width == WIDE else (44, 66)
    pitch = (width - left - 6) / len(phases)
    peak = max(phases, key=lambda phase: phase.total)
    scale = (_P_FOOT - _P_TOP) / _MOST_AT_LOSS
    svg = ""
    for level in range(0, 51, 10):
        y = _P_FOOT - level * 1e9 * scale
        svg += line(left - 5, y, width - 6, y, stroke_width=0.5, opacity=0.5)
        svg += text(left - 9, y + 5, f"{level}" if level else "0", 14, "end")
    svg += text(6, 22, "GB", 14, font_weight=600)
    y = _P_FOOT - card * scale
    svg += hatched(left, y, width - 6 - left, reserve * scale)
    for i, phase in enumerate(phases):
        x, y = left + pitch * i + (pitch - wide) / 2, float(_P_FOOT)
        for name, size in parts_of(phase).items():
            if not size:
                continue
            y -= size * scale
            title = f"{PARTS[name][0]}: {units.gigabytes(size)}"
            svg += rect(x, y, wide, size * scale, PARTS[name][1], title)
        bold: Style = _BOLD if phase is peak else {}
        total = f"{phase.total / 1e9:.1f} GB"
        svg += text(x + wide / 2, _P_FOOT + 66, total, 16, "middle", **bold)
        for k, word in enumerate(_MOMENTS[phase.moment]):
            svg += text(x + wide / 2, _P_FOOT + 22 + 19 * k, word, 14, "middle", **bold)
        if phase.moment == "loss" and began != phase.total:
            svg += ghost(x - 5, _P_FOOT - began * scale, wide + 10, began * scale, "at the start")
    y = _P_FOOT - card * scale
    svg += line(left, y, width - 6, y, **_DASHED)
    svg += text(width - 8, y - 7, units.gigabytes(card).replace(".0", ""), 15, "end", **_BOLD)
    names = ["weights", "gradients", "optimizer", "activations", "transient"]
    key, last = _key(names, _P_FOOT + 100, width)
    summary = ", ".join(f"{x.moment} {units.gigabytes(x.total)}" for x in phases)
    words = f"A step at four moments: {summary}. The peak is the {peak.moment}."
    return Drawing(svg + key, width, int(last) + 22, words)


_MOMENTS = {
    "loss": ("the loss",),
    "last layer": ("last layer", "again"),
    "first layer": ("first layer", "again"),
    "update": ("the update",),
}


# --- speed

_COMPARED = {
    "adapters, compared with all weights": ("lora", "full", COLORS["optimizer"], "dot"),
    "4 bits, compared with 16": ("qlora", "lora", COLORS["gradients"], "diamond"),
}
"""Pairs of methods, the first compared with the second; a pair's colour and shape."""

_FEW = "peft MetaMathQA benchmark"
"""A publication whose steps have few short texts, so that the update takes most of them."""


def measured_speeds() -> Picture:
    """How many times as fast runs are as others, against the tokens that a GPU has at once.

    Each dot is a pair that differs in one thing: adapters or all weights, 4 bits or 16. Dots
    with the same tokens stand side by side. Dashed lines are what FLOPs let one expect of
    adapters.
    """
    marks: list[Mark] = [
        Rule(1, "y", width=2),
        Rule(flops_ratio("none"), "y", "by FLOPs alone", dash="5 4"),
        Rule(flops_ratio("full"), "y", "with recomputation", dash="5 4"),
    ]
    spans = []
    for side, (name, (method, other, color, shape)) in enumerate(_COMPARED.items()):
        ratios = sorted(speed_ratios(method, other), key=attrgetter("tokens", "times"))
        for i, ratio in enumerate(ratios):
            octaves = (side - 0.5) / 3 + (i % 3 - 1) / 16
            title = f"{ratio.model}, {ratio.tokens:,} tokens: {ratio.times:.2f} times"
            few = ratio.publication == _FEW and ratios[i - 1].publication != _FEW
            label = "few short texts in a step" if few else ""
            at = ratio.tokens * 2**octaves, ratio.times
            size = 5 if shape == "dot" else 4
            marks.append(Dot(*at, color, size, shape, label, title, name=name))
        times = [ratio.times for ratio in ratios]
        spans.append(
            f"{len(times)} pairs of {name}: {min(times):.2f} to {max(times):.2f} times as fast, "
            f"the middle one {median(times):.2f}."
        )
    x = Scale(400, 43_000, "tokens that a GPU has at once", ticks=_LENGTHS, log=True)
    y = Scale(0.44, 3.4, "times as fast", "{:g}".format, (0.5, 0.7, 1, 1.5, 2, 3), True, True)
    return Chart(x, y, marks, f"Measured speeds. {' '.join(spans)}", height=300)


_LENGTHS = (512, 2048, 8192, 32_768)


# --- packing

_R_TOP, _R_HIGH, _R_PITCH = 14, 22, 26


def texts_in_rows(
    lengths: Sequence[int], places: Sequence[Placement], row_length: int, width: int = WIDE
) -> Drawing:
    """Texts in rows of one length: each where it stands, what is left of a row hatched.

    `places` are those of the texts that are packed; the others have a row each.
    """
    left, right = 10, width - 10
    scale = (right - left) / row_length
    firsts = [i for i, place in enumerate(places) if place.start == 0]
    at = [firsts[place.row] for place in places] + [*range(len(places), len(lengths))]
    starts = [place.start for place in places] + [0] * (len(lengths) - len(places))
    svg, used = "", sorted({*at})
    for row in range(len(lengths)):
        y = _R_TOP + _R_PITCH * row
        if row not in used:
            svg += ghost(left, y, right - left, _R_HIGH, "a row that is saved")
            continue
        members = [i for i, where in enumerate(at) if where == row]
        end = left + scale * max(starts[i] + lengths[i] for i in members)
        svg += rect(end, y, right - end, _R_HIGH, GREY, "pads", opacity=0.25)
        svg += hatched(end, y, right - end, _R_HIGH)
        for i in members:
            color = _TEXTS[i % len(_TEXTS)]
            wide = lengths[i] * scale
            title = f"text {i + 1}: {lengths[i]:,} tokens"
            svg += rect(left + starts[i] * scale, y, wide - 1, _R_HIGH, color, title)
            if wide > 34:
                middle = left + starts[i] * scale + wide / 2
                svg += text(middle, y + 16, f"{lengths[i]:,}", 14, "middle", _WHITE)
    foot = _R_TOP + _R_PITCH * len(lengths) + 22
    through, texts = row_length * len(used), sum(lengths)
    size = f"{units.plural(len(used), 'row')}, {through:,} tokens"
    share = f"{units.percent(texts / through)} are text"
    svg += text(left, foot, size, 16, **_BOLD)
    if width == WIDE:
        svg += text(right, foot, share, 16, "end", **_BOLD)
    else:
        foot += 23
        svg += text(left, foot, share, 16, **_BOLD)
    words = (
        f"{len(lengths)} texts in rows of {row_length:,} tokens, {len(places)} of them packed: "
        f"{size} go through the model, of which {share}."
    )
    return Drawing(svg, width, foot + 18, words)


_TEXTS = [COLORS[name] for name in ("weights", "activations", "optimizer", "output head")]


# --- three ways beside a card


def ways_on_a_card(
    ways: Mapping[str, Memory],
    chosen: str,
    memory: float,
    reserve: float,
    chip: str,
    began: float = 0,
    width: int = WIDE,
) -> Drawing:
    """The peak of each way to adapt a model, part by part, under the memory of a card.

    What a plan keeps free is hatched; `began` is the chosen way's peak at the start. The
    scale ends at one and a half cards.
    """
    left, right, top, pitch = 10, width - 10, 40, 74
    scale = (right - _SUM - left) / (1.5 * memory)
    foot = top + pitch * len(ways)
    edge, kept = left + memory * scale, reserve * scale
    svg = ""
    for i, (way, peak) in enumerate(ways.items()):
        y = top + pitch * i
        style: Style = _BOLD if way == chosen else {"opacity": 0.8}
        svg += _bar(parts_of(peak), left, y + 14, 34, scale, right, 1 if way == chosen else 0.5)
        svg += text(left, y + 6, f"{way}: the peak is at the {peak.moment}", 15, **style)
        if way == chosen and began and abs(began / peak.total - 1) > 0.002:
            svg += ghost(left, y + 11, min(began * scale, right - _SUM - left), 40, "at the start")
        svg += hatched(edge - kept, y + 14, kept, 34) + line(edge, y + 9, edge, y + 53, **_DASHED)
    card = f"{chip}, {units.gigabytes(memory).replace('.0', '')}"
    if width == WIDE:
        svg += text(edge, 20, card, 15, "middle", **_BOLD)
    else:
        svg += text(left, 20, f"dashed: {card}", 15, **_BOLD)
    names = ["weights", "gradients", "optimizer", "activations", "transient"]
    key, last = _key(names, foot + 18, width)
    peaks = "; ".join(f"{way} {units.gigabytes(peak.total)}" for way, peak in ways.items())
    words = (
        f"At the peak on each GPU: {peaks}. {card}, of which {units.gigabytes(reserve)} stay free."
    )
    return Drawing(svg + key, width, int(last) + 22, words)
