"""Pictures of who sends what to whom, whom a GPU talks to, a step, and shared matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import NamedTuple

from llmtrain_course.kit.drawing import (
    COLORS,
    GREY,
    STEP_PARTS,
    Drawing,
    Style,
    fits,
    ghost,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_course.parallelism.formulas import (
    Exchange,
    SharedMlp,
    exchanges,
    neighbours,
    replicas_first,
    ring_at,
)
from llmtrain_course.parallelism.grid import letters
from llmtrain_helpers import units
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.seconds import StepSeconds

_ACROSS, _LEFT, _RIGHT = 744, 24, 720

# --- who sends what to whom

SEEN, CELLS = 4, 8
"""Nodes that are drawn, and GPUs of a node."""


class _Grid(NamedTuple):
    """Where nodes and their GPUs stand, and what they send."""

    width: int
    left: int
    top: int
    deep: int  # from one node to the next
    wide: int  # from one GPU to the next
    key: int

    @property
    def narrow(self) -> bool:
        """Whether this is the telephone's."""
        return self.width < 500


_GRIDS = _Grid(_ACROSS, 86, 84, 58, 44, 474), _Grid(376, 14, 118, 66, 40, 12)
"""As on a page, and as on a telephone: there a node's name stands above it."""


_HIGH = 34


SENT = ("tensor", "context", "expert", "pipeline", "data")
"""The parts of the traffic, in the order in which GPUs are numbered; the last two far
apart. With sequence parallelism `tensor` is sent as gathers and scatters."""


def sending(plan: Plan) -> dict[str, Exchange]:
    """What one GPU of a plan sends in a step, part by part."""
    split, chip = plan.split, plan.run.accelerator
    if plan.step is None:
        raise ValueError(f"the links of {chip.name} are not known")
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


_SQUARES = (124, (48, 180, 298)), (92, (48, 150, 252))
"""How wide the square of the most bytes is, and where each square stands; on a telephone."""


def neighbour_grid(
    plan: Plan,
    most: float,
    before: Plan | None = None,
    *,
    replicas: bool = False,
    narrow: bool = False,
) -> Drawing:
    """All GPUs of a plan in their nodes: whom the first one talks to, and how much it says.

    Beside them a square for each part, as large as its bytes in a step; `most` are those
    of the largest square in any setting. Dashed: the squares before. A node holds GPUs
    that share matrices, or with `replicas` those that do not.
    """
    split, size = plan.split, plan.run.accelerator.gpus_per_node
    groups = replicas_first(split) if replicas else neighbours(split)
    kinds = {gpu: part for part, gpus in groups.items() for gpu in gpus}
    svg = text(70, 26, "GPU 1 and those it talks to", 16, font_weight=600)
    for row in range(split.num_gpus // size):
        y = 44 + 38 * row
        svg += text(58, y + 20, f"node {row + 1}", 14, "end")
        svg += rect(66, y - 3, 8 * 36 + 8, 36, rx=7, stroke=GREY)
        for i in range(size):
            gpu = row * size + i
            svg += _numbered(gpu, kinds.get(gpu, ""), 72 + 36 * i, y)
    parts = of_first_stage(plan, spread_over_nodes(plan) if replicas else sending(plan))
    old = of_first_stage(before, sending(before)) if before else {}
    listed, legend = [], text(376, 26, "bytes it sends in a step", 16, font_weight=600)
    square, places = _SQUARES[narrow]
    for name, y in zip(("tensor", "data", "pipeline"), places, strict=True):
        sides = [square * sqrt(x[name].sent / most) if name in x else 0 for x in (parts, old)]
        legend += rect(376, y, sides[0], sides[0], COLORS[name], name) if sides[0] else ""
        if old and abs(sides[1] - sides[0]) > 1:
            legend += ghost(376, y, sides[1], sides[1], "at the start")
        legend += text(510, y + 14, name, 16, font_weight=600, fill=COLORS[name])
        part = parts.get(name)
        lines = [units.about(part.sent, units.gigabytes), _partners(name, part)] if part else []
        lines += _way(part) if part else ["nothing"]
        legend += "".join(text(510, y + 34 + 20 * k, x, 15) for k, x in enumerate(lines))
        listed.append(f"{name}: {', '.join(lines)}")
    svg += f'<g transform="translate(-366 382)">{legend}</g>' if narrow else legend
    svg += text(70, 374, _product(plan), 15)
    words = f"{_product(plan)}. In a step GPU 1 sends, {'; '.join(listed)}."
    return Drawing(svg, *((376, 742) if narrow else (664, 396)), words)


def _way(part: Exchange) -> list[str]:
    """By what a part travels, how long, and so at which rate."""
    rate = units.digits(part.sent / part.seconds / 1e9, 2)
    by = "links" if part.inside else "network"
    return [f"by {by}, {units.seconds(part.seconds)}", f"at {rate} GB/s"]


def _product(plan: Plan) -> str:
    split = plan.split
    ways = f"TP {split.tensor_parallel} × DP {split.data_parallel} × PP {split.pipeline_parallel}"
    return f"{units.plural(split.num_gpus, 'GPU')} = {ways}"


def _partners(name: str, part: Exchange) -> str:
    if name == "pipeline":
        return "to the next stage"
    return f"with {units.plural(part.others, 'GPU')}"


def _numbered(gpu: int, kind: str, x: float, y: float) -> str:
    """A GPU with its number, in the colour of what the first one sends it."""
    style: Style = {"rx": 5, "stroke": GREY}
    ink = "#FFFFFF" if kind else "currentColor"
    label = f"shares {kind} with GPU 1" if kind else ""
    if not gpu:
        style, label = {"rx": 5, "stroke": "currentColor", "stroke_width": 4}, "GPU 1"
    svg = rect(x, y, 30, 30, COLORS.get(kind, "none"), label, **style)
    return svg + text(x + 15, y + 20, f"{gpu + 1}", 14, "middle", ink)


def who_sends(plan: Plan, narrow: bool = False) -> Drawing:
    """GPUs in their nodes, seen from the first: with whom it talks, and how much.

    GPUs are numbered tensor first, then context, data, and the pipeline's stages last.
    A cell's letter is its replica, its number the stage. Four nodes are drawn at the
    most: that of the first GPU, and those of the nearest that it sends to.
    """
    parts, nodes = sending(plan), _nodes(plan)
    # Whole experts are on GPUs that share matrices, too: the first part is shown.
    groups = reversed(neighbours(plan.split).items())
    kinds = {gpu: part for part, gpus in groups for gpu in gpus}
    split, size = plan.split, plan.run.accelerator.gpus_per_node
    degrees = {"TP": split.tensor_parallel, "CP": split.context_parallel}
    degrees |= {"DP": split.data_parallel, "PP": split.pipeline_parallel}
    product = " × ".join(f"{x} {n:,}" for x, n in degrees.items() if n > 1 or x != "CP")
    title = f"{units.plural(split.num_gpus, 'GPU')} = {product}"
    grid = _GRIDS[narrow]
    left = grid.left - 6
    svg = text(left if narrow else _LEFT, 34, title, 15 if narrow else 19, font_weight=700)
    seen = ["seen from the GPU with the thick frame", "letters: replicas, numbers: stages"]
    for i, line_ in enumerate(seen if narrow else ["; ".join(seen)]):
        svg += text(left, (58 if narrow else 64) + 20 * i, line_, 14)
    for row, node in enumerate(nodes):
        svg += _node(plan, row, node, kinds, grid)
    svg += _network(len(nodes), grid)
    foot = grid.top + len(nodes) * grid.deep
    down = foot + 44 if narrow else grid.top - 6  # where the parts begin
    svg += "".join(_of_part(*part, grid.key, down + 64 * i) for i, part in enumerate(parts.items()))
    if not parts:
        svg += text(grid.key, down + 28, "nothing is sent: one GPU", 15)

    total = -(-split.num_gpus // size)
    note = f"{len(nodes)} of {total:,} nodes" if len(nodes) < total else "all nodes"
    note += f", {CELLS} of {size} GPUs of each" if size > CELLS else ""
    note += "; dashed: the network" if len(nodes) > 1 else ""
    svg += text(left, foot + (2 if narrow else 14), note, 14)
    sent = "; ".join(
        f"{name} {units.gigabytes(part.sent)} {_with_whom(name, part)}, {_how_long(part)}"
        for name, part in parts.items()
    )
    words = f"{title}. In a step one GPU sends: {sent or 'nothing'}."
    lowest = down + 64 * max(len(parts), 1) + 10
    height = lowest if narrow else max(foot, lowest + 6) + 30
    return Drawing(svg, grid.width, height, words)


def _nodes(plan: Plan) -> list[int]:
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
    place, replica = divmod(
        gpu // (split.tensor_parallel * split.context_parallel), split.data_parallel
    )
    return f"{letters(replica)}{place + 1}"


def _node(plan: Plan, row: int, node: int, kinds: Mapping[int, str], grid: _Grid) -> str:
    """A node: its name, its frame, its GPUs."""
    size, n = plan.run.accelerator.gpus_per_node, plan.split.num_gpus
    x, y = grid.left, grid.top + row * grid.deep
    gpus = range(node * size, min((node + 1) * size, n))[:CELLS]
    name = f"node {node + 1:,}"
    svg = text(x - 6, y - 11, name, 14) if grid.narrow else text(x - 16, y + 22, name, 14, "end")
    style: Style = {"rx": 8, "stroke": GREY, "stroke_width": 1.5}
    svg += rect(x - 6, y - 6, CELLS * grid.wide + 6, _HIGH + 12, **style)
    cell = grid.wide - 6
    return svg + "".join(
        _gpu(_cell_name(plan, gpu), gpu, kinds.get(gpu, ""), x + i * grid.wide, y, cell)
        for i, gpu in enumerate(gpus)
    )


def _gpu(name: str, gpu: int, kind: str, x: float, y: float, wide: float) -> str:
    """A GPU in the colour of what the first one sends it."""
    style: Style = {"rx": 5, "stroke": GREY}
    fill, ink = COLORS.get(kind, "none"), "#FFFFFF" if kind else "currentColor"
    label = f"shares {kind} with the first" if kind else ""
    if gpu == 0:
        style |= {"stroke": "currentColor", "stroke_width": 4}
        fill, ink, label = "none", "currentColor", "the one that sends"
    size = 15 if len(name) <= 3 else 14
    svg = rect(x, y, wide, _HIGH, fill, label, **style)
    if not fits(name, wide, size):
        name = name.rstrip("0123456789")
    svg += text(x + wide / 2, y + 22, name, size, "middle", ink, font_weight=600)
    return svg


def _network(rows: int, grid: _Grid) -> str:
    """The wire from node to node."""
    if rows < 2:
        return ""
    x, y = grid.left + CELLS * grid.wide + 14, grid.top + _HIGH / 2
    style: Style = {"stroke_width": 2, "stroke_dasharray": "6 4"}
    svg = line(x, y, x, y + (rows - 1) * grid.deep, **style)
    for row in range(rows):
        at = y + row * grid.deep
        svg += line(x - 14, at, x, at, **style)
    return svg


def _of_part(name: str, part: Exchange, x: float, y: float) -> str:
    """A part beside the grid: its bytes, with whom, how long, and what is seen."""
    svg = rect(x, y, 16, 16, COLORS[name])
    label = f"{name}: {units.gigabytes(part.sent)}"
    svg += text(x + 24, y + 14, label, 16, font_weight=700)
    svg += text(x + 24, y + 33, _with_whom(name, part), 14)
    return svg + text(x + 24, y + 51, _how_long(part), 14)


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


def step_bar(plan: Plan, before: Plan | None = None, narrow: bool = False) -> Drawing:
    """A step from end to end, and below it what travels unseen; dashed: before.

    The bar's pieces add up to the step; sending that computing hides stands below it,
    as long as it takes.
    """
    step, parts = plan.step, sending(plan)
    assert step is not None  # or `sending` had refused
    was = before.step.total if before and before.step else 0
    unseen = {name: part.seconds - part.visible for name, part in parts.items()}
    unseen = {name: s for name, s in unseen.items() if s > 0.002 * step.total}
    left, right = (8, 352) if narrow else (_LEFT, _RIGHT)
    scale = (right - left) / max(step.total, was, *unseen.values(), 0)
    seen = sum(step.parts()[name] for name in SENT)
    shares = f"sending: {units.share(seen / step.total)} of the step"
    if step.bubble:
        shares += f"; waiting: {units.share(step.bubble / step.total)}"
    total = units.seconds(step.total)
    svg = text(left, 32, f"a step: {total}", 19, font_weight=700)
    down = 24 if narrow else 0  # what its title needs more
    svg += text(left if narrow else right, 32 + down, shares, 15, "start" if narrow else "end")
    svg += _pieces(step, scale, left, 52 + down)
    if was and abs(was / step.total - 1) > 1e-9:
        svg += ghost(left, 46 + down, scale * was, 54, "at the start")
    y = 112.0 + down
    for name, seconds in unseen.items():
        svg += _hidden(name, seconds, scale, left, y, below=narrow)
        y += 48 if narrow else 30
    key, y = _key(step, left, right, y + 14)

    pieces = {x: s for x, s in step.parts().items() if s > 5e-4 * step.total}
    words = ", ".join(f"{STEP_PARTS[x].name} {units.seconds(s)}" for x, s in pieces.items())
    hidden = ", ".join(f"{x} {units.seconds(s)}" for x, s in unseen.items())
    words = f"A step of {total}: {words}.{hidden and f' Beside it, hidden: {hidden}.'}"
    return Drawing(svg + key, 360 if narrow else _ACROSS, int(y) + 16, words)


def _pieces(step: StepSeconds, scale: float, x: float, y: float) -> str:
    """The pieces of the step, one behind the other."""
    svg = ""
    for name, seconds in step.parts().items():
        wide, (word, *_, color) = scale * seconds, STEP_PARTS[name]
        label = f"{word}: {units.seconds(seconds)}" if seconds else word
        if name == "bubble":
            svg += rect(x, y, wide, 42, color, label, opacity=0.18)
            svg += hatched(x, y, wide, 42, 14) if wide > 3 else ""
            ink = "currentColor"
        else:
            svg += rect(x, y, max(wide - 1, wide / 2), 42, color, label)
            ink = "#FFFFFF"
        if fits(word, wide - 8, 14) and name != "bubble":
            svg += text(x + wide / 2, y + 26, word, 14, "middle", ink)
        x += wide
    return svg


def _hidden(name: str, seconds: float, scale: float, x: float, y: float, below: bool) -> str:
    """Exchange beside the computing: pale, with an edge, and its name in it, beside or below."""
    wide, label = scale * seconds, f"{name}, {units.seconds(seconds)} hidden"
    style: Style = {"stroke": COLORS[name], "stroke_width": 2, "fill_opacity": 0.18}
    svg = rect(x, y, max(wide, 2), 22, COLORS[name], label, **style)
    if fits(label, wide - 12, 14):
        return svg + text(x + 8, y + 16, label, 14)
    return svg + (text(x, y + 39, label, 14) if below else text(x + wide + 8, y + 16, label, 14))


def _key(step: StepSeconds, left: float, right: float, y: float) -> tuple[str, float]:
    """Every piece with its colour and its seconds, and where the key ends."""
    svg, x = "", float(left)
    for name, seconds in step.parts().items():
        if seconds < 5e-4 * step.total:
            continue
        word, *_, color = STEP_PARTS[name]
        label = f"{word} {units.seconds(seconds)}"
        wide = 22 + 7.6 * len(label) + 12
        if x + wide > right + 12:
            x, y = float(left), y + 24
        if name == "bubble":
            svg += rect(x, y - 2, 14, 14, color, opacity=0.18)
            svg += hatched(x, y - 2, 14, 14, 6)
        else:
            svg += rect(x, y - 2, 14, 14, color)
        svg += text(x + 20, y + 10, label, 14)
        x += wide
    return svg, y + 14


# --- a matrix that GPUs share

_CELL_WIDE = 27


class _Places(NamedTuple):
    """Where the columns of numbers stand, and the bars of their sums."""

    token: int
    back_sum: int
    back_parts: int
    first: int  # its middle, for it has several columns
    hidden: int  # its middle
    second: int
    parts: int
    sum: int
    result: int
    width: int
    narrow: bool


_PLACES = (
    _Places(8, 74, 116, 236, 356, 424, 492, 558, 602, 668, narrow=False),
    _Places(6, 68, 102, 222, 338, 124, 206, 282, 334, 396, narrow=True),
)
"""As on a page, and as on a telephone: there the second matrix stands below the first."""


def shared_matrices(mlp: SharedMlp, step: int, narrow: bool = False) -> Drawing:
    """Two matrices cut over GPUs, and what has been computed after so many of six steps.

    1 hidden numbers, 2 what comes out in parts, 3 the sum; 4 to 6 the errors going back.
    Each GPU's cells stand in a row of their own.
    """
    at, tall = _PLACES[narrow], max(224, 56 * mlp.gpus + 112)
    pitch = tall / mlp.gpus
    heads = {"token": at.token + 27, "parts": at.back_parts + 27, "columns": at.first}
    heads["hidden"] = at.hidden
    later = {"rows": at.second + 27, "parts": at.parts + 27, "result": at.result + 27}
    down = tall + 38 if narrow else 0  # how far the second half stands below the first
    svg = "".join(text(x, 24, word, 15, "middle") for word, x in heads.items())
    svg += "".join(text(x, 24 + down, word, 15, "middle") for word, x in later.items())
    for gpu in range(mlp.gpus):
        svg += _share(mlp, gpu, 62 + pitch * gpu + (pitch - 84) / 2, down, step, at)
    foot = down + tall + 62
    svg += "".join(
        rect(8 + x, foot, 18, 18, COLORS[name], rx=3) + text(33 + x, foot + 14, word, 15)
        for x, name, word in (
            (0, "weights", "weights"),
            (100, "context", "forward"),
            (200, "gradients", "errors, backward"),
        )
    )
    if mlp.gpus > 1:
        for x, top, way, begins in (
            (at.sum, 40 + down, "forward", 3),
            (at.back_sum, 40, "backward", 6),
        ):
            done = step >= begins
            fill, ink = (COLORS["tensor"], "#FFFFFF") if done else ("none", COLORS["tensor"])
            style: Style = {"rx": 8, "stroke": COLORS["tensor"], "stroke_width": 2}
            svg += rect(x, top, 30, tall + 6, fill, f"the sum of {way}", **style)
            svg += text(x + 15, top + tall / 2 + 11, "+", 24, "middle", ink, font_weight=700)
        note = "+ is an all-reduce; framed: just came"
        svg += text(8, foot + 40, note, 15) if narrow else text(660, foot + 14, note, 15, "end")
    return Drawing(svg, at.width, foot + (54 if narrow else 30), _shared_words(mlp, step))


def _share(mlp: SharedMlp, gpu: int, y: float, down: float, step: int, at: _Places) -> str:
    """What one GPU has: its share of both matrices, and its numbers as far as they are."""
    several, places = mlp.gpus > 1, mlp.columns(gpu)
    half, lower = _CELL_WIDE * len(places) / 2, y + down
    up, back, weights = (COLORS[x] for x in ("context", "gradients", "weights"))
    rows: list[tuple[float, float, Sequence[int], str, int]] = [  # and the step that brings them
        (at.token, y, mlp.token, up, 0),
        (at.token, y + 31, mlp.token_error, back, 6 if several else 5),
        (at.hidden - half, y, mlp.hidden(gpu), up, 1),
        (at.hidden - half, y + 31, mlp.hidden_error(gpu), back, 4),
        (at.result, lower, mlp.output, up, 3 if several else 2),
        (at.result, lower + 31, mlp.error, back, 4),
    ]
    if several:
        rows.append((at.parts, lower, mlp.partial(gpu), up, 2))
        rows.append((at.back_parts, y + 31, mlp.partial_error(gpu), back, 5))
    for j, row in enumerate(mlp.first):
        rows.append((at.first - half, y + 31 * j, [row[i] for i in places], weights, 0))
    for j, i in enumerate(places):
        rows.append((at.second, lower + 31 * j, mlp.second[i], weights, 0))
    svg = text(8, y - 6, f"GPU {gpu + 1}", 14, font_weight=600)
    if down:
        svg += text(8, lower + 19, f"GPU {gpu + 1}", 14, font_weight=600)
    return svg + "".join(_numbers(*row, step) for row in rows)


def _numbers(x: float, y: float, numbers: Sequence[int], fill: str, brought: int, step: int) -> str:
    """Cells with a number in each: hollow before the step that brings them, framed at it."""
    svg = ""
    for i, number in enumerate(numbers):
        at = x + _CELL_WIDE * i
        if step < brought:
            svg += rect(at + 1, y + 1, 23, 25, rx=3, stroke=fill, stroke_width=1.5, opacity=0.7)
            continue
        svg += rect(at, y, 25, 27, fill, rx=3)
        svg += text(at + 12.5, y + 19, f"{number}", 15, "middle", "#FFFFFF")
    if step == brought and step:
        wide = _CELL_WIDE * len(numbers)
        svg += rect(x - 3, y - 3, wide + 4, 33, rx=5, stroke="currentColor", stroke_width=2.5)
    return svg


def _shared_words(mlp: SharedMlp, step: int) -> str:
    n = units.plural(mlp.gpus, "GPU")
    words = f"Two matrices on {n}: columns of the first, rows of the second. "
    if not step:
        return f"{words}Nothing is computed yet."
    hidden = "; ".join(" ".join(map(str, mlp.hidden(i))) for i in range(mlp.gpus))
    words += f"Hidden numbers by GPU: {hidden}. "
    if step >= 2:
        parts = "; ".join(" ".join(map(str, mlp.partial(i))) for i in range(mlp.gpus))
        words += f"What comes out, in parts: {parts}. "
    if step >= 3:
        words += f"Added up: {' '.join(map(str, mlp.output))}. "
    if step >= 5:
        parts = "; ".join(" ".join(map(str, mlp.partial_error(i))) for i in range(mlp.gpus))
        words += f"The token's error, in parts: {parts}. "
    if step >= 6:
        words += f"Added up: {' '.join(map(str, mlp.token_error))}. "
    return words.strip()
