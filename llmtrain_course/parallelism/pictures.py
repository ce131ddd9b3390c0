"""Pictures of who sends what to whom, whom a GPU talks to, and of a step, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

from llmtrain_course.kit.chart import Chart, Column, Mark, Note
from llmtrain_course.kit.drawing import COLORS, GREY, STEP_PARTS, Style, ghost, line, rect, text
from llmtrain_course.kit.lanes import Bars, Lane, Point, Span
from llmtrain_course.kit.layout import (
    INK,
    SMALL,
    USUAL,
    NextTo,
    Picture,
    paragraph,
    text_width,
    wrapped,
)
from llmtrain_course.kit.scale import Scale
from llmtrain_course.parallelism.formulas import (
    Exchange,
    exchanges,
    neighbours,
    replicas_first,
    ring_at,
)
from llmtrain_course.parallelism.places import letters
from llmtrain_helpers import units
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.seconds import StepSeconds

# --- what a GPU sends

SENT = ("tensor", "context", "expert", "pipeline", "data")
"""The parts of the traffic, in the order in which GPUs are numbered; the last two far
apart. With sequence parallelism `tensor` is sent as gathers and scatters."""


def sending(plan: Plan) -> dict[str, Exchange]:
    """What one GPU of a plan sends in a step, part by part."""
    split, chip = plan.split, plan.run.accelerator
    if plan.step is None:
        raise ValueError(f"we don't know the links of {chip.name}")
    ways = {f"{name}_parallel": getattr(split, f"{name}_parallel") for name in SENT}
    x = split.expert_tensor
    return exchanges(plan.sent, chip, plan.step.parts(), expert_tensor_parallel=x, **ways)


def spread_over_nodes(plan: Plan) -> dict[str, Exchange]:
    """`sending` of a plan whose nodes hold replicas: those that share matrices stand apart."""
    t, d, chip = plan.split.tensor_parallel, plan.split.data_parallel, plan.run.accelerator
    strides = {"tensor": (1, d), "data": (t, 1)}
    return {
        name: ring_at(part, chip, *strides[name]) if name in strides else part
        for name, part in sending(plan).items()
    }


def of_first_stage(plan: Plan, parts: dict[str, Exchange]) -> dict[str, Exchange]:
    """What GPU 1 sends: its stage has one border less than a middle one, which `parts` have."""
    split = plan.split
    if split.pipeline_parallel < 3:
        return parts
    less, part = 1 - 1 / (2 * split.interleave), parts["pipeline"]
    scaled = {name: less * getattr(part, name) for name in ("sent", "seconds", "visible")}
    return parts | {"pipeline": replace(part, **scaled)}


# --- GPUs in their nodes, and what the first of them sends

SEEN, CELLS = 4, 8
"""Nodes that are drawn, and GPUs of a node."""


class _Gpu(NamedTuple):
    """What's written on a GPU, and what the first one sends it; `first` is that one itself."""

    label: str
    part: str = ""
    first: bool = False


@dataclass(frozen=True)
class _Nodes(Picture):
    """GPUs in their nodes, each in the colour of what the first one sends it.

    A node's name stands before its GPUs, or above them where they'd be narrower than `least`.
    With a `network` there's a wire from node to node.
    """

    heading: str
    nodes: Mapping[str, Sequence[_Gpu]]
    notes: Sequence[str] = ()
    foot: str = ""
    least: float = 0
    network: bool = False

    NAME, EDGE, HIGH, WIRE = 62, 4, 28, 18
    """Pixels of a node's name, around GPUs, of a GPU's height, and beside the nodes."""

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Draw the heading and its notes, the nodes below each other, and the foot."""
        svg, y = paragraph(left, top, self.heading, width, USUAL, True)
        for note in self.notes:
            drawn, y = paragraph(left, y, note, width, SMALL)
            svg += drawn
        right = left + width - self.WIRE * self.network
        above = (right - left - self.NAME - self.EDGE) / CELLS - self.EDGE < self.least
        begin = left if above else left + self.NAME
        pitch, y = (right - begin - self.EDGE) / CELLS, y + 6
        middles, frame = [], self.HIGH + 2 * self.EDGE
        for name, gpus in self.nodes.items():
            if above:
                svg, y = svg + text(left, y + SMALL, name, SMALL), y + SMALL + 5
            lines = [] if above else wrapped(name, self.NAME - 10, SMALL)
            for i, words in enumerate(lines):
                down = y + frame / 2 + 5 + 15 * (i - (len(lines) - 1) / 2)
                svg += text(begin - 8, down, words, SMALL, "end")
            svg += rect(begin, y, right - begin, frame, rx=7, stroke=GREY, stroke_width=1.5)
            for i, gpu in enumerate(gpus):
                x = begin + self.EDGE + pitch * i
                svg += self._gpu(gpu, x, y + self.EDGE, pitch - self.EDGE)
            middles.append(y + frame / 2)
            y += frame + self.EDGE
        if self.network and len(middles) > 1:
            dashed: Style = {"stroke_width": 2, "stroke_dasharray": "6 4"}
            end = left + width - self.EDGE
            svg += line(end, middles[0], end, middles[-1], **dashed)
            svg += "".join(line(right, middle, end, middle, **dashed) for middle in middles)
        drawn, y = paragraph(left, y + 4, self.foot, width, SMALL)
        return svg + drawn, y

    def _gpu(self, gpu: _Gpu, x: float, y: float, wide: float) -> str:
        """A GPU with what's written on it, without the number of its stage if there's no room."""
        title = f"shares {gpu.part} with the first" if gpu.part else ""
        ink, edge = "white" if title else INK, Style(rx=5, stroke=GREY)
        if gpu.first:
            title, edge = "the one that sends", Style(rx=5, stroke=INK, stroke_width=4)
        svg = rect(x, y, wide, self.HIGH, COLORS.get(gpu.part, "none"), title, **edge)
        fits = text_width(gpu.label, SMALL, True) <= wide
        label = gpu.label if fits else gpu.label.rstrip("0123456789")
        place, weight = (x + wide / 2, y + self.HIGH / 2 + 5), 600 if title else 400
        return svg + text(*place, label, SMALL, "middle", ink, font_weight=weight)


class _Part(NamedTuple):
    """A part of what's sent: its name, what's said of it, and its square's side, now and before."""

    part: str
    name: str
    lines: Sequence[str]
    side: float = 16
    previous: float = 0


@dataclass(frozen=True)
class _Sent(Picture):
    """The parts of what's sent below each other, each next to a square of its colour.

    A square is as wide as `room` at the most; each part has room for so many `lines`.
    """

    heading: str
    parts: Sequence[_Part]
    lines: int
    room: float = 16

    def draw(self, left: float, top: float, width: float) -> tuple[str, float]:
        """Draw the heading, then the squares and the words."""
        svg, y = paragraph(left, top, self.heading, width, USUAL, True)
        x, y = left + self.room + 12, y + 6
        for part in self.parts:
            color, side = COLORS[part.part], part.side
            svg += rect(left, y, side, side, color, part.part) if side else ""
            if part.previous and abs(part.previous - side) > 1:
                svg += ghost(left, y, part.previous, part.previous, "at the start")
            svg += text(x, y + USUAL - 1, part.name, USUAL, fill=color, font_weight=700)
            lines = [row for it in part.lines for row in wrapped(it, left + width - x, SMALL)]
            for i, words in enumerate(lines, 1):
                svg += text(x, y + USUAL - 1 + 19 * i, words, SMALL)
            y += 19 * (max(self.lines, len(lines)) + 1) + 12
        return svg, y - 12


def neighbour_grid(
    plan: Plan, most: float, before: Plan | None = None, *, replicas: bool = False
) -> Picture:
    """All GPUs of a plan in their nodes: whom the first one talks to, and how much it says.

    Beside them a square for each part, as large as its bytes in a step; `most` are those
    of the largest square in any setting. Dashed: the squares before. A node holds GPUs
    that share matrices, or with `replicas` those that do not.
    """
    split, size = plan.split, plan.run.accelerator.gpus_per_node
    groups = replicas_first(split) if replicas else neighbours(split)
    kinds = {gpu: part for part, gpus in groups.items() for gpu in gpus}
    names = {gpu: f"{gpu + 1}" for gpu in (0, *kinds)}  # only of those that it talks to
    gpus = [_Gpu(names.get(i, ""), kinds.get(i, ""), not i) for i in range(split.num_gpus)]
    nodes = {f"node {i // size + 1}": gpus[i : i + size] for i in range(0, len(gpus), size)}
    parts = of_first_stage(plan, spread_over_nodes(plan) if replicas else sending(plan))
    old = of_first_stage(before, sending(before)) if before else {}
    listed = []
    cards = {name: 1 + sum(gpu < size for gpu in gpus) for name, gpus in groups.items()}
    for name in ("tensor", "data", "pipeline"):
        sides = [_SQUARE * sqrt(x[name].sent / most) if name in x else 0 for x in (parts, old)]
        lines = _lines(name, parts.get(name), cards.get(name, 1))
        sent = units.about(parts[name].sent, units.gigabytes) if name in parts else "nothing"
        listed.append(_Part(name, f"{name}: {sent}", lines, *sides))
    listing = "; ".join(", ".join([part.name, *part.lines]) for part in listed)
    return NextTo(
        _Nodes("GPU 1 and the GPUs it talks to", nodes, foot=_product(plan)),
        _Sent("bytes it sends per step", listed, 3, _SQUARE),
        f"{_product(plan)}. Per step, GPU 1 sends {listing}.",
        share=0.46,
    )


_SQUARE = 84
"""Pixels across the square of the most bytes."""


def _lines(name: str, part: Exchange | None, cards: int) -> list[str]:
    """With whom a part is exchanged, and how long that takes on links or `cards` of each node."""
    if not part:
        return []
    whom = "to the next stage" if name == "pipeline" else f"with {units.plural(part.others, 'GPU')}"
    by = "links" if part.inside else "network"
    way = "" if part.inside else f" on {units.plural(cards, 'card')}"
    rate = units.digits(part.sent / part.seconds / 1e9, 2)
    return [f"{whom}, by {by}", f"{units.seconds(part.seconds)}, {rate} GB/s{way}"]


def _product(plan: Plan) -> str:
    """The GPUs of a plan as what they're split by."""
    split = plan.split
    ways = {"TP": split.tensor_parallel, "CP": split.context_parallel}
    ways |= {"DP": split.data_parallel, "PP": split.pipeline_parallel}
    product = " × ".join(f"{way} {n:,}" for way, n in ways.items() if n > 1 or way != "CP")
    return f"{units.plural(split.num_gpus, 'GPU')} = {product}"


def who_sends(plan: Plan) -> Picture:
    """GPUs in their nodes, seen from the first: with whom it talks, and how much.

    GPUs are numbered tensor first, then context, data, and the pipeline's stages last.
    A cell's letter is its replica, its number the stage. Four nodes are drawn at the
    most: that of the first GPU, and those of the nearest that it sends to.
    """
    parts, nodes = sending(plan), _seen(plan)
    # Whole experts are on GPUs that share matrices, too: the first part is shown.
    groups = reversed(neighbours(plan.split).items())
    kinds = {gpu: part for part, gpus in groups for gpu in gpus}
    split, size = plan.split, plan.run.accelerator.gpus_per_node
    total = -(-split.num_gpus // size)
    note = f"{len(nodes)} of {total:,} nodes" if len(nodes) < total else "all nodes"
    note += f", {CELLS} of {size} GPUs of each" if size > CELLS else ""
    note += "; dashed: the network" if len(nodes) > 1 else ""
    rows = {
        f"node {node + 1:,}": [
            _Gpu(_cell_name(plan, gpu), kinds.get(gpu, ""), not gpu)
            for gpu in range(node * size, min((node + 1) * size, split.num_gpus))[:CELLS]
        ]
        for node in nodes
    }
    seen = "seen from the GPU with the thick frame", "letters: replicas, numbers: stages"
    listed = [
        _Part(name, f"{name}: {units.gigabytes(x.sent)}", (_with_whom(name, x), _how_long(x)))
        for name, x in parts.items()
    ]
    sent = "; ".join(f"{part.name.replace(':', '')} {', '.join(part.lines)}" for part in listed)
    heading = "it sends per step" if parts else "one GPU sends nothing"
    return NextTo(
        _Nodes(
            _product(plan).replace("PP ", "PP\N{NO-BREAK SPACE}"),
            rows,
            seen,
            note,
            29,
            network=True,
        ),
        _Sent(heading, listed, 2),
        f"{_product(plan)}. Per step, one GPU sends: {sent or 'nothing'}.",
        share=0.6,
    )


def _seen(plan: Plan) -> list[int]:
    """Nodes of the first GPU, of its group's last one, of the next replica, stage.

    Where experts are spread, also the first that only gradients are averaged with.
    """
    split, node = plan.split, plan.run.accelerator.gpus_per_node
    n, a_replica = split.num_gpus, split.tensor_parallel * split.context_parallel
    stage = a_replica * split.data_parallel
    near = [0, a_replica - 1, a_replica, 2 * a_replica, stage, stage + a_replica]
    near += [k * split.expert_stride * split.expert_parallel for k in (1, 2)]
    nodes = sorted({gpu // node for gpu in near if gpu < n})
    if nodes == [0] and n > node:  # many replicas a node: the network all the same
        nodes.append(1)
    if split.pipeline_parallel > 1 and stage // node not in nodes[:SEEN]:
        return sorted({*nodes[: SEEN - 1], stage // node})
    return nodes[:SEEN]


def _cell_name(plan: Plan, gpu: int) -> str:
    """The letter of a GPU's replica and the number of its stage."""
    split = plan.split
    a_replica = split.tensor_parallel * split.context_parallel
    place, replica = divmod(gpu // a_replica, split.data_parallel)
    return f"{letters(replica)}{place + 1}"


def _with_whom(name: str, part: Exchange) -> str:
    where = "links" if part.inside else "network"
    if name == "pipeline":
        whose = "to the next stage" if part.others == 1 else "of a middle stage"
        return f"{whose}; {where}"
    others = "other" if part.others == 1 else "others"
    return f"with {part.others:,} {others}; {where}"


def _how_long(part: Exchange) -> str:
    seconds = units.seconds(part.seconds)
    if part.visible < 0.02 * part.seconds:
        return f"{seconds}, hidden"
    if part.visible > 0.98 * part.seconds:
        return f"{seconds}, all exposed"
    return f"{seconds}, {units.seconds(part.visible)} exposed"


# --- a step by how many GPUs share each matrix


def step_by_sharers(sharers: Sequence[int], steps: Sequence[StepSeconds]) -> Picture:
    """Each step as a column of its parts, in multiples of the first one."""
    marks, alone = list[Mark](), steps[0].total
    for i, step in enumerate(steps):
        parts = step.parts()
        sums, launching = parts["tensor"], parts["kernel_launch"]
        top, rest = 0.0, step.total - sums - launching
        for (name, ink), seconds in zip(_SHARED.items(), (rest, launching, sums), strict=True):
            low, top = top, top + seconds / alone
            title = f"{name}: {units.seconds(seconds)}"
            marks.append(Column(i - 0.3, i + 0.3, top, ink, low, title, name=name))
        marks.append(Note(i, top + 0.1, f"{units.digits(top, 2)}×", bold=True))
    x = Scale(-0.5, len(steps) - 0.5, "GPUs that share each matrix (TP)")
    x = replace(x, ticks={i: f"{size}" for i, size in enumerate(sharers)})
    y = Scale(0, 3.3, "step time, TP 1 = 1", ticks=(0, 1, 2, 3), grid=True)
    words = "; ".join(
        f"TP {size}: {units.seconds(step.total)}" for size, step in zip(sharers, steps, strict=True)
    )
    return Chart(x, y, marks, f"The fastest step that fits. {words}.", height=220)


_SHARED = {
    "computing": COLORS["matrix products"],
    "launching": COLORS["launching"],
    "all-reduces": COLORS["tensor"],
}
"""The parts of a step that sharing changes or doesn't, from the bottom up."""


# --- a step, part by part


def step_bar(plan: Plan, before: Plan | None = None) -> Picture:
    """A step from end to end, and below it what travels unseen; dashed: before.

    The bar's pieces add up to the step; sending that computing hides stands below it,
    as long as it takes.
    """
    step, parts = plan.step, sending(plan)
    assert step is not None  # or `sending` had refused
    total, was = step.total, before.step.total if before and before.step else step.total
    pieces, changed = [*_pieces(step)], abs(was / total - 1) > 1e-9
    old = Span(0, was, title="at the start", previous=True, hidden=not changed)
    unseen = {name: part.seconds - part.visible for name, part in parts.items()}
    unseen = {name: s for name, s in unseen.items() if s > 0.002 * total}
    shares = f"{units.share(sum(step.parts()[name] for name in SENT) / total)} sending"
    shares += f", {units.share(step.bubble / total)} waiting" if step.bubble else ""
    words = f"A step of {units.seconds(total)}: {', '.join(piece.title for piece in pieces)}."
    hidden = ", ".join(f"{x} {units.seconds(s)}" for x, s in unseen.items())
    return Bars(
        Scale(0, max(total, was, *unseen.values())),
        [Lane("", [*pieces, old], height=40), *(_unseen(name, s) for name, s in unseen.items())],
        words + (f" Hidden behind that: {hidden}." if hidden else ""),
        heading=f"a step: {units.seconds(total)}",
        verdict=shares,
        lane=22,
        axis=False,
    )


def _pieces(step: StepSeconds) -> Iterator[Span]:
    """The pieces of the step, one behind the other, without those too short to be seen."""
    end = 0.0
    for name, seconds in step.parts().items():
        if seconds > 5e-4 * step.total:
            word, *_, color = STEP_PARTS[name]
            start, end, label = end, end + seconds, f"{word} {units.seconds(seconds)}"
            piece = Span(start, end, color, (label, word), label, label, edge=True)
            waits = name == "bubble"
            yield replace(piece, hatch=True, outline=True, ink=INK) if waits else piece


def _unseen(name: str, seconds: float) -> Lane:
    """Exchange beside the computing: pale, with an edge, and its name after it."""
    color, label = COLORS[name], f"{name}, {units.seconds(seconds)} hidden"
    pale = Span(0, seconds, color, title=label, opacity=0.25, edge=True)
    start, end = Point(0, color, shape="tick"), Point(seconds, label=label, shape="none")
    return Lane("", [pale, start, end])
