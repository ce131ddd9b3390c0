"""Drawings of chapter 07: who sends what to whom, a ring, a shared layer, a step."""

from __future__ import annotations

from llmtrain_helpers import units
from llmtrain_helpers.communication import Exchange, exchanges, ring
from llmtrain_helpers.drawings.batch import letters
from llmtrain_helpers.drawings.common import (
    COLORS,
    GREY,
    STEP_PARTS,
    Drawing,
    Style,
    arrow,
    fits,
    ghost,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.seconds import StepSeconds

_ACROSS, _LEFT, _RIGHT = 744, 24, 720

# --- who sends what to whom

SEEN, CELLS = 4, 8
"""Nodes that are drawn, and GPUs of a node."""

_FROM, _TOP, _DEEP, _WIDE, _CELL, _HIGH = 86, 84, 58, 44, 38, 34
_KEY = 474

SENT = ("tensor", "context", "expert", "pipeline", "data")
"""The parts of the traffic, in the order in which GPUs are numbered; the last two far
apart. With sequence parallelism `tensor` is sent as gathers and scatters."""


def sending(plan: Plan) -> dict[str, Exchange]:
    """What one GPU of a plan sends in a step, part by part."""
    split, chip = plan.split, plan.run.accelerator
    if plan.step is None:
        raise ValueError(f"the links of {chip.name} are not known")
    ways = {f"{name}_parallel": getattr(split, f"{name}_parallel") for name in SENT}
    return exchanges(plan.sent, chip, plan.step.parts(), **ways)


def who_sends(plan: Plan) -> Drawing:
    """GPUs in their nodes, seen from the first: with whom it talks, and how much.

    GPUs are numbered tensor first, then context, data, and the pipeline's stages last.
    A cell's letter is its replica, its number the stage. Four nodes are drawn at the
    most: that of the first GPU, and those of the nearest that it sends to.
    """
    parts, nodes = sending(plan), _nodes(plan)
    split, size = plan.split, plan.run.accelerator.gpus_per_node
    degrees = {"TP": split.tensor_parallel, "CP": split.context_parallel}
    degrees |= {"DP": split.data_parallel, "PP": split.pipeline_parallel}
    product = " × ".join(f"{x} {n:,}" for x, n in degrees.items() if n > 1 or x != "CP")
    title = f"{units.exact(split.num_gpus)} GPUs = {product}"
    svg = text(_LEFT, 34, title, 19, font_weight=700)
    svg += text(_FROM - 6, 64, "seen from the GPU with the thick frame", 14)
    for row, node in enumerate(nodes):
        svg += _node(plan, row, node)
    svg += _network(len(nodes))
    svg += "".join(_of_part(i, *part) for i, part in enumerate(parts.items()))
    if not parts:
        svg += text(_KEY, _TOP + 22, "nothing is sent: one GPU", 15)

    total = -(-split.num_gpus // size)
    shown = f"{len(nodes)} of {total:,} nodes" if len(nodes) < total else "all nodes"
    shown += f", {CELLS} of {size} GPUs of each" if size > CELLS else ""
    shown += "; dashed: the network" if len(nodes) > 1 else ""
    svg += text(_FROM - 6, _TOP + len(nodes) * _DEEP + 14, shown, 14)
    sent = "; ".join(
        f"{name} {units.gigabytes(part.sent)} {_with_whom(name, part)}, {_how_long(part)}"
        for name, part in parts.items()
    )
    words = f"{title}. In a step one GPU sends: {sent or 'nothing'}."
    high = max(len(nodes) * _DEEP, len(parts) * 64 + 10)
    return Drawing(svg, _ACROSS, _TOP + high + 30, words)


def _nodes(plan: Plan) -> list[int]:
    """Nodes of the first GPU, of its group's last one, of the next replica, stage.

    Where experts are spread, also the first that only gradients are averaged with.
    """
    split, node = plan.split, plan.run.accelerator.gpus_per_node
    n, a_replica = split.num_gpus, split.tensor_parallel * split.context_parallel
    stage = a_replica * split.data_parallel
    near = [0, a_replica - 1, a_replica, 2 * a_replica, stage, stage + a_replica]
    near += [k * a_replica * split.expert_parallel for k in (1, 2)]
    nodes = sorted({gpu // node for gpu in near if gpu < n})
    if nodes == [0] and n > node:  # many replicas a node: the network all the same
        nodes.append(1)
    if split.pipeline_parallel > 1 and stage // node not in nodes[:SEEN]:
        return sorted({*nodes[: SEEN - 1], stage // node})
    return nodes[:SEEN]


def _place(plan: Plan, gpu: int) -> tuple[int, int, int, int]:
    """Rank in the tensor group, in the context group, replica and stage of a GPU."""
    split = plan.split
    rest, t = divmod(gpu, split.tensor_parallel)
    rest, c = divmod(rest, split.context_parallel)
    stage, replica = divmod(rest, split.data_parallel)
    return t, c, replica, stage


def _kind(plan: Plan, gpu: int) -> str:
    """What the first GPU exchanges with this one; nothing for most."""
    t, c, replica, stage = _place(plan, gpu)
    if stage == 0 and replica == 0 and c == 0:
        return "tensor"
    if stage == 0 and replica == 0 and t == 0:
        return "context"
    if stage == 0 and t == 0:
        experts = plan.split.expert_parallel
        return "expert" if c == 0 and replica < experts else "data"
    ends = {1, plan.split.pipeline_parallel - 1 if plan.split.interleave > 1 else 1}
    return "pipeline" if stage in ends and (t, c, replica) == (0, 0, 0) else ""


def _node(plan: Plan, row: int, node: int) -> str:
    """A node: its name, its frame, its GPUs."""
    size, n = plan.run.accelerator.gpus_per_node, plan.split.num_gpus
    y = _TOP + row * _DEEP
    gpus = range(node * size, min((node + 1) * size, n))[:CELLS]
    svg = text(_FROM - 16, y + 22, f"node {node + 1:,}", 14, "end")
    style: Style = {"rx": 8, "stroke": GREY, "stroke_width": 1.5}
    svg += rect(_FROM - 6, y - 6, CELLS * _WIDE + 6, _HIGH + 12, **style)
    return svg + "".join(_gpu(plan, gpu, _FROM + i * _WIDE, y) for i, gpu in enumerate(gpus))


def _gpu(plan: Plan, gpu: int, x: float, y: float) -> str:
    """A GPU in the colour of what the first one sends it."""
    _, _, replica, stage = _place(plan, gpu)
    name, kind = f"{letters(replica)}{stage + 1}", _kind(plan, gpu)
    style: Style = {"rx": 5, "stroke": GREY}
    fill, ink = COLORS.get(kind, "none"), "#FFFFFF" if kind else "currentColor"
    label = f"shares {kind} with the first" if kind else ""
    if gpu == 0:
        style |= {"stroke": "currentColor", "stroke_width": 4}
        fill, ink, label = "none", "currentColor", "the one that sends"
    size = 15 if len(name) <= 3 else 14
    svg = rect(x, y, _CELL, _HIGH, fill, label, **style)
    if not fits(name, _CELL, size):
        name = name[: len(letters(replica))]
    svg += text(x + _CELL / 2, y + 22, name, size, "middle", ink, font_weight=600)
    return svg


def _network(rows: int) -> str:
    """The wire from node to node."""
    if rows < 2:
        return ""
    x, y = _FROM + CELLS * _WIDE + 14, _TOP + _HIGH / 2
    svg = line(x, y, x, y + (rows - 1) * _DEEP, stroke_width=2, stroke_dasharray="6 4")
    for row in range(rows):
        at = y + row * _DEEP
        svg += line(x - 14, at, x, at, stroke_width=2, stroke_dasharray="6 4")
    return svg


def _of_part(row: int, name: str, part: Exchange) -> str:
    """A part beside the grid: its bytes, with whom, how long, and what is seen."""
    y = _TOP + 64 * row - 6
    svg = rect(_KEY, y, 16, 16, COLORS[name])
    label = f"{name}: {units.gigabytes(part.sent)}"
    svg += text(_KEY + 24, y + 14, label, 16, font_weight=700)
    svg += text(_KEY + 24, y + 33, _with_whom(name, part), 14)
    return svg + text(_KEY + 24, y + 51, _how_long(part), 14)


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
        return f"{seconds}, all of it seen"
    return f"{seconds}, {units.seconds(part.visible)} seen"


# --- a step, part by part


def step_bar(plan: Plan, before: Plan | None = None) -> Drawing:
    """A step from end to end, and below it what travels unseen; dashed: before.

    The bar's pieces add up to the step; sending that computing hides stands below it,
    as long as it takes.
    """
    step, parts = plan.step, sending(plan)
    assert step is not None  # or `sending` had refused
    was = before.step.total if before and before.step else 0
    unseen = {name: part.seconds - part.visible for name, part in parts.items()}
    unseen = {name: s for name, s in unseen.items() if s > 0.002 * step.total}
    scale = (_RIGHT - _LEFT) / max(step.total, was, *unseen.values(), 0)
    seen = sum(step.parts()[name] for name in SENT)
    shares = f"sending: {units.share(seen / step.total)} of the step"
    if step.bubble:
        shares += f"; waiting: {units.share(step.bubble / step.total)}"
    total = units.seconds(step.total)
    svg = text(_LEFT, 32, f"a step: {total}", 19, font_weight=700)
    svg += text(_RIGHT, 32, shares, 15, "end")
    svg += _pieces(step, scale)
    if was and abs(was / step.total - 1) > 1e-9:
        svg += ghost(_LEFT, 46, scale * was, 54, "at the start")
    y = 112.0
    for name, seconds in unseen.items():
        svg += _hidden(name, seconds, scale, y)
        y += 30
    key, y = _key(step, y + 14)

    pieces = {x: s for x, s in step.parts().items() if s > 5e-4 * step.total}
    words = ", ".join(f"{STEP_PARTS[x].name} {units.seconds(s)}" for x, s in pieces.items())
    hidden = ", ".join(f"{x} {units.seconds(s)}" for x, s in unseen.items())
    words = f"A step of {total}: {words}.{hidden and f' Beside it, hidden: {hidden}.'}"
    return Drawing(svg + key, _ACROSS, int(y) + 16, words)


def _pieces(step: StepSeconds, scale: float) -> str:
    """The pieces of the step, one behind the other."""
    svg, x = "", float(_LEFT)
    for name, seconds in step.parts().items():
        wide, (word, *_, color) = scale * seconds, STEP_PARTS[name]
        label = f"{word}: {units.seconds(seconds)}" if seconds else word
        if name == "bubble":
            svg += rect(x, 52, wide, 42, color, label, opacity=0.18)
            svg += hatched(x, 52, wide, 42, 14) if wide > 3 else ""
            ink = "currentColor"
        else:
            svg += rect(x, 52, max(wide - 1, wide / 2), 42, color, label)
            ink = "#FFFFFF"
        if fits(word, wide - 8, 14) and name != "bubble":
            svg += text(x + wide / 2, 78, word, 14, "middle", ink)
        x += wide
    return svg


def _hidden(name: str, seconds: float, scale: float, y: float) -> str:
    """Exchange beside the computing: pale, with an edge, and its name."""
    wide, label = scale * seconds, f"{name}, {units.seconds(seconds)} hidden"
    style: Style = {"stroke": COLORS[name], "stroke_width": 2, "fill_opacity": 0.18}
    svg = rect(_LEFT, y, max(wide, 2), 22, COLORS[name], label, **style)
    if fits(label, wide - 12, 14):
        return svg + text(_LEFT + 8, y + 16, label, 14)
    return svg + text(_LEFT + wide + 8, y + 16, label, 14)


def _key(step: StepSeconds, y: float) -> tuple[str, float]:
    """Every piece with its colour and its seconds, and where the key ends."""
    svg, x = "", float(_LEFT)
    for name, seconds in step.parts().items():
        if seconds < 5e-4 * step.total:
            continue
        word, *_, color = STEP_PARTS[name]
        label = f"{word} {units.seconds(seconds)}"
        wide = 22 + 7.6 * len(label) + 12
        if x + wide > _RIGHT + 12:
            x, y = float(_LEFT), y + 24
        if name == "bubble":
            svg += rect(x, y - 2, 14, 14, color, opacity=0.18)
            svg += hatched(x, y - 2, 14, 14, 6)
        else:
            svg += rect(x, y - 2, 14, 14, color)
        svg += text(x + 20, y + 10, label, 14)
        x += wide
    return svg, y + 14


# --- a ring, turn by turn


def ring_turns(gpus: int = 4) -> Drawing:
    """An all-reduce in a ring: how many GPUs' numbers are in each piece, each turn.

    Rows are GPUs, columns the pieces of the buffer. In each turn every GPU sends one
    piece to the next: first they add up, then the sums go round.
    """
    states, side = ring(gpus), 19
    each, turns = gpus * side + 20, 2 * (gpus - 1)
    svg = ""
    for turn, state in enumerate(states):
        x = 76 + turn * each
        svg += text(x + gpus * side / 2, 62, f"turn {turn}" if turn else "start", 14, "middle")
        for gpu, pieces in enumerate(state):
            for piece, parts in enumerate(pieces):
                spot = (x + piece * side, 74 + gpu * (side + 6))
                came = turn > 0 and parts != states[turn - 1][gpu][piece]
                svg += _piece(*spot, side, parts, gpus, came)
    for gpu in range(gpus):
        svg += text(64, 89 + gpu * (side + 6), f"GPU {gpu + 1}", 14, "end")
    for i, word in enumerate(["adding up: a reduce-scatter", "sending round: an all-gather"]):
        x, wide = 76 + each + i * (gpus - 1) * each, (gpus - 1) * each - 20
        svg += line(x, 42, x + wide, 42, stroke_width=2)
        svg += text(x + wide / 2, 34, word, 15, "middle", font_weight=600)
    floor = 74 + gpus * (side + 6) + 12
    note = "Columns: pieces of the buffer. Numbers: how many GPUs' parts are in. "
    note += "Framed: just came."
    total = f"{turns} turns of 1/{gpus}: each GPU sends {turns}/{gpus} of its buffer."
    svg += text(_LEFT, floor + 16, note, 15) + text(_LEFT, floor + 38, total, 15, font_weight=700)
    return Drawing(svg, _ACROSS, floor + 56, f"{note} {total}")


def _piece(x: float, y: float, side: float, parts: int, gpus: int, came: bool) -> str:
    """A piece: whole sums are full, parts of one are not; framed if it just came."""
    whole = parts == gpus
    fill = COLORS["data"] if whole else "none"
    style: Style = {"stroke": GREY}
    if came:
        style = {"stroke": "currentColor", "stroke_width": 2.5}
    ink = "#FFFFFF" if whole else "currentColor"
    svg = rect(x, y, side - 2, side, fill, **style)
    return svg + text(x + side / 2 - 1, y + 15, f"{parts}", 14, "middle", ink)


# --- a layer that GPUs share


def shared_layer(tensor_parallel: int = 2) -> Drawing:
    """A layer on several GPUs: each has a part of every matrix; two sums meet.

    Two of the GPUs are drawn. Attention is shared by heads, the MLP by its columns.
    """
    t = tensor_parallel
    svg = text(_LEFT, 34, f"one layer, shared by {t} GPUs", 19, font_weight=700)
    for row in range(2):
        svg += _half(row, 62 + 84 * row, t)
    for x, head in ((300, "sum"), (612, "sum")):
        svg += rect(x, 56, 62, 164, COLORS["tensor"], "an all-reduce", rx=8)
        for i, word in enumerate([head, "over", "all"]):
            svg += text(x + 31, 122 + 20 * i, word, 15, "middle", "#FFFFFF")
    shares = f"One layer, shared by {t} GPUs: each computes 1/{t} of the heads, and of the "
    shares += "MLP's matrices."
    waits = "Each GPU has only its share of a sum; all of them wait until it is added up."
    sums = "Forward 2 sums, backward 2 more: 4 all-reduces of b·s·h values in each layer."
    svg += text(_LEFT, 250, waits, 15) + text(_LEFT, 272, sums, 15, font_weight=700)
    return Drawing(svg, _ACROSS, 290, f"{shares} {waits} {sums}")


def _half(row: int, y: float, t: int) -> str:
    """What one GPU does of a layer."""
    gpu = 1 if row == 0 else t
    svg = text(_LEFT, y + 37, f"GPU {gpu}", 15)
    svg += arrow(78, y + 32, 98, y + 32)
    for x, color, head, label in (
        (102, "attention", "attention", f"1/{t} of the heads"),
        (414, "MLP", "MLP", f"1/{t} of each matrix"),
    ):
        svg += rect(x, y, 160, 64, COLORS[color], rx=6)
        svg += text(x + 80, y + 28, head, 16, "middle", "#FFFFFF", font_weight=600)
        svg += text(x + 80, y + 50, label, 14, "middle", "#FFFFFF")
        svg += arrow(x + 164, y + 32, x + 194, y + 32)
    svg += arrow(366, y + 32, 410, y + 32) + arrow(678, y + 32, 712, y + 32)
    return svg
