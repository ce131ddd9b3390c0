"""Drawings of chapter 07: who sends what to whom, a ring, a shared layer, a step."""

from __future__ import annotations

from math import atan2, cos, sin, tau

from llmtrain_helpers import units
from llmtrain_helpers.communication import Exchange, RingTurn, exchanges, ring, ring_turn
from llmtrain_helpers.drawings.batch import letters
from llmtrain_helpers.drawings.common import (
    COLORS,
    GREY,
    STEP_PARTS,
    Drawing,
    Style,
    arrow,
    circle,
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


# --- the same ring as a circle, one turn at a time

_CIRCLE = (600, 430)
"""The canvas, whatever the ring: nothing jumps while a hand moves it."""

_ALL_PIECES = 8
"""GPUs up to which every piece of each is drawn; of more, what they hold of the first."""


def ring_circle(state: RingTurn, num_bytes: float) -> Drawing:
    """GPUs in a circle after a turn: what each holds, which piece moved, what GPU 1 has sent.

    A piece is as full as there are GPUs' numbers in it, and green when it is finished.
    `num_bytes` are those of the gradients of one GPU.
    """
    n = state.gpus
    svg = _counter(state, num_bytes)
    if n <= _ALL_PIECES:
        svg += "".join(_hand_over(state, i) for i in range(n) if state.moved)
        svg += "".join(_ring_gpu(state, i) for i in range(n))
    else:
        svg += "".join(_ring_bar(state, i) for i in range(n))
    return Drawing(svg, *_CIRCLE, _ring_words(state, num_bytes))


def _on_circle(gpus: int, place: float, reach: float = 1) -> tuple[float, float]:
    """A place on the ring: GPU 1 stands at the top, the others follow clockwise."""
    angle = tau * place / gpus - tau / 4
    return 300 + 236 * reach * cos(angle), 215 + 172 * reach * sin(angle)


def _box(gpus: int) -> tuple[float, float]:
    """How wide and high a GPU is drawn, half of each: room for its pieces and its name."""
    return max(6 * gpus + 5, 34), 33


def _ring_gpu(state: RingTurn, gpu: int) -> str:
    """A GPU: its name over its pieces; framed is the one that just came."""
    n = state.gpus
    (x, y), (wide, high) = _on_circle(n, gpu), _box(n)
    came = state.moved[gpu - 1] if state.moved else -1
    label = f"GPU {gpu + 1}"
    svg = rect(x - wide, y - high, 2 * wide, 2 * high, stroke=GREY, rx=6)
    svg += text(x, y - high + 19, label, 15, "middle", font_weight=600)
    for piece, parts in enumerate(state.summed[gpu]):
        spot = x - 6 * n + 12 * piece + 1, y - high + 26
        told = f"{label}, piece {piece + 1}: {parts} of {n} summed"
        svg += _level(*spot, parts / n, told, piece == came)
    return svg


def _level(x: float, y: float, full: float, told: str, came: bool) -> str:
    """A piece, filled from below."""
    style: Style = {"stroke": "currentColor", "stroke_width": 2.5} if came else {"stroke": GREY}
    fill = COLORS["useful"] if full == 1 else COLORS["data"]
    return rect(x, y + 34 * (1 - full), 10, 34 * full, fill) + rect(
        x, y, 10, 34, title=told, **style
    )


def _hand_over(state: RingTurn, gpu: int) -> str:
    """The arrow to the next GPU, and on it the number of the piece that moved."""
    n = state.gpus
    bend = 2 - cos(tau / 2 / n)  # so that its middle lies on the circle
    over = _on_circle(n, gpu + 0.5, bend)
    ends = [_edge(_on_circle(n, gpu + k), over, *_box(n)) for k in (0, 1)]
    (x1, y1), (x2, y2) = ends
    svg = f'<path d="M{x1:.1f} {y1:.1f}Q{over[0]:.1f} {over[1]:.1f} {x2:.1f} {y2:.1f}" '
    svg += 'fill="none" stroke="currentColor" stroke-width="2"/>'
    away = atan2(y2 - over[1], x2 - over[0])
    wings = [(x2 - 9 * cos(away + k), y2 - 9 * sin(away + k)) for k in (0.45, -0.45)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [wings[0], (x2, y2), wings[1]])
    svg += f'<polygon points="{points}" fill="currentColor"/>'
    x, y = ((a + b) / 4 + c / 2 for a, b, c in zip(*ends, over, strict=True))
    fill = COLORS["data"] if state.adds else COLORS["useful"]
    piece = state.moved[gpu] + 1
    svg += circle(x, y, 12, fill, f"piece {piece}, from GPU {gpu + 1}")
    return svg + text(x, y + 5, f"{piece}", 15, "middle", "#FFFFFF", font_weight=600)


def _edge(
    middle: tuple[float, float], toward: tuple[float, float], wide: float, high: float
) -> tuple[float, float]:
    """Where the way from a box's middle leaves the box, and three pixels on."""
    dx, dy = toward[0] - middle[0], toward[1] - middle[1]
    part = min((wide + 3) / max(abs(dx), 1e-9), (high + 3) / max(abs(dy), 1e-9))
    return middle[0] + part * dx, middle[1] + part * dy


def _ring_bar(state: RingTurn, gpu: int) -> str:
    """One of many GPUs: a spoke, as full as its first piece; a dot where that just came."""
    n = state.gpus
    parts = state.summed[gpu][0]
    wide = 13 if n <= 24 else 7
    fill = COLORS["useful"] if parts == n else COLORS["data"]

    def spoke(full: float, color: str, opacity: float = 1) -> str:
        ends = *_on_circle(n, gpu, 0.84), *_on_circle(n, gpu, 0.84 + 0.32 * full)
        return line(*ends, stroke=color, stroke_width=wide, opacity=opacity)

    svg = spoke(1, GREY, 0.3) + spoke(parts / n, fill)
    if state.moved and state.moved[gpu - 1] == 0:  # it has just come here
        svg += circle(*_on_circle(n, gpu, 1.22), 4, "currentColor", "piece 1 just came")
    if gpu % (n // 8) == 0:
        x, y = _on_circle(n, gpu, 0.75)
        svg += text(x, y + 5, f"{gpu + 1}", 14, "middle")
    return svg


def _counter(state: RingTurn, num_bytes: float) -> str:
    """In the middle: the turn, and what GPU 1 has sent beside what it holds."""
    sent, in_all = state.sent_bytes(num_bytes), ring_turn(state.gpus, state.turns)
    half = 92
    scale = half / num_bytes  # to the same end in every ring: twice its gradients
    svg = text(300, 158, f"turn {state.turn} of {state.turns}", 20, "middle", font_weight=700)
    svg += text(300, 181, _phase(state), 15, "middle")
    svg += text(300, 215, f"GPU 1 has sent {_size(sent)}", 16, "middle", font_weight=600)
    svg += rect(300 - half, 226, 2 * half, 16, stroke=GREY)
    svg += rect(300 - half, 226, scale * sent, 16, COLORS["data"], f"sent: {_size(sent)}")
    at_end = 300 - half + scale * in_all.sent_bytes(num_bytes)
    svg += line(at_end, 222, at_end, 246, stroke_dasharray="3 2")
    for times, word in ((0, "0"), (1, _size(num_bytes)), (2, _size(2 * num_bytes))):
        x = 300 + half * (times - 1)
        svg += line(x, 242, x, 248) + text(x, 263, word, 14, "middle")
    svg += text(300, 284, f"its gradients: {_size(num_bytes)}", 14, "middle")
    if state.gpus > _ALL_PIECES:
        svg += text(300, 306, f"drawn: the first of {state.gpus} pieces", 14, "middle")
    return svg


def _phase(state: RingTurn) -> str:
    if not state.turn:
        return "nothing has moved yet"
    if state.turn == state.turns:
        return "all have every piece"
    return "adding up" if state.adds else "handing round"


def _size(num_bytes: float) -> str:
    return "nothing" if not num_bytes else units.edited(num_bytes, units.gigabytes)


def _ring_words(state: RingTurn, num_bytes: float) -> str:
    n = state.gpus
    piece = _size(num_bytes / n)
    held = sorted({parts for row in state.summed for parts in row})
    words = f"{n} GPUs in a circle, each with {n} pieces of {piece}. Turn {state.turn} of "
    words += f"{state.turns}: {_phase(state)}. A piece holds the numbers of "
    words += f"{held[0]} to {held[-1]} GPUs" if len(held) > 1 else units.plural(held[0], "GPU")
    return f"{words}; GPU 1 has sent {_size(state.sent_bytes(num_bytes))}."


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
