"""A step of replicas on one time line: what a GPU computes, and what it sends meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llmtrain_course.kit.drawing import COLORS, GREY
from llmtrain_course.kit.lanes import Lane, Span, Timeline
from llmtrain_course.kit.layout import Below, Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_course.parallelism.formulas import Exchange
from llmtrain_course.parallelism.pictures import sending
from llmtrain_course.plan.pictures import memory_bar
from llmtrain_helpers import units
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.step import share_after_update

GROUPS = 8
"""Groups of layers that are drawn in a pass, or passes of a step, if there are as many."""


def exchange(plan: Plan) -> Exchange:
    """What one GPU of a plan of replicas sends in a step: gradients, and with ZeRO weights."""
    return sending(plan).get("data", Exchange(0, 0, True, 0, 0))


@dataclass(frozen=True)
class Piece:
    """A part of a step: seconds of computing, and of sending, of which so many are exposed.

    The exposed ones come before it computes, or `after`, if gradients have to exist first.
    """

    kind: str
    computing: float
    sending: float = 0
    exposed: float = 0
    after: bool = False


def pieces(plan: Plan) -> list[Piece]:
    """The parts of a step of replicas, in order; together they take as long as the plan's step.

    With ZeRO 3 each group of layers is fetched in forward and in backward, and its gradients
    leave in backward: a third of the bytes in forward, as of the computing. Otherwise the
    gradients travel next to the last backward pass, and with ZeRO 1 the new weights next to
    the first forward pass.
    """
    step, passes, sent = plan.step, int(plan.split.accumulation_steps), exchange(plan)
    assert step is not None  # only chips whose step is known can be chosen
    of_passes = float(step.total - step.data - step.optimizer)
    if plan.run.zero_stage == 3:
        groups = max(GROUPS // passes, 1)
        third = 1 / (3 * groups * passes)
        forward = Piece("forward", third * of_passes, third * sent.seconds, third * sent.visible)
        backward = Piece(
            "backward", 2 * forward.computing, 2 * forward.sending, 2 * forward.exposed
        )
        one_pass = [forward] * groups + [backward] * groups
        parts = one_pass * passes
    else:
        each = of_passes / (3 * passes)
        weights = sent.seconds * float(share_after_update(plan.run))
        behind = float(step.matmuls + step.memory) / (3 * passes)
        late = max(weights - behind, 0.0)
        parts = [Piece("forward", each), Piece("backward", 2 * each)] * passes
        parts[0] = replace(parts[0], sending=weights, exposed=late)
        exposed = max(sent.visible - late, 0.0)
        parts[-1] = Piece("backward", 2 * each, sent.seconds - weights, exposed, after=True)
    return [*parts, Piece("update", float(step.optimizer))]


_KINDS = {
    "forward": Span(0, 0, COLORS["useful"], name="forward", edge=True),
    "backward": Span(0, 0, COLORS["activations"], name="backward", edge=True),
    "update": Span(0, 0, GREY, name="update", edge=True),
    "waits": Span(0, 0, hatch=True, name="waits"),
    "hidden": Span(0, 0, COLORS["data"], name="hidden", opacity=0.25, edge=True),
    "exposed": Span(0, 0, COLORS["data"], name="exposed"),
}


def _lanes(plan: Plan) -> tuple[list[Span], list[Span]]:
    """What the GPU does, and what it sends, as spans of a time line."""
    now, computes, sends = 0.0, list[Span](), list[Span]()

    def add(lane: list[Span], kind: str, start: float, seconds: float) -> None:
        if seconds > 0:
            span = replace(_KINDS[kind], start=start, end=start + seconds, title=kind, name="")
            lane.append(span)

    for piece in pieces(plan):
        hidden, begin = piece.sending - piece.exposed, now
        if not piece.after:
            add(computes, "waits", now, piece.exposed)
            add(sends, "exposed", now, piece.exposed)
            begin += piece.exposed
            add(sends, "hidden", begin, hidden)
        end = begin + piece.computing
        add(computes, piece.kind, begin, piece.computing)
        now = end
        if piece.after:
            add(sends, "hidden", end - hidden, hidden)
            add(sends, "exposed", end, piece.exposed)
            add(computes, "waits", end, piece.exposed)
            now += piece.exposed
    return computes, sends


def step_lanes(plan: Plan, before: Plan | None = None) -> Picture:
    """A step of a GPU on a time line, and below it what's in its memory; dashed: before."""
    step, sent = plan.step, exchange(plan)
    assert step is not None
    total = float(step.total)
    was = float(before.step.total) if before and before.step else total
    computes, sends = _lanes(plan)
    changed, end = abs(was / total - 1) > 1e-9, max(total, was)
    old = Span(0, was, title="at the start", previous=True, hidden=not changed)
    unit, size = ("ms", 1e3) if end < 1 else ("s", 1)
    passes = units.plural(int(plan.split.accumulation_steps), "pass")
    exposed = units.seconds(sent.visible) if sent.visible else "0 s"
    words = (
        f"A step of {passes} and {units.seconds(total)} on a time line. The GPU sends for "
        f"{units.seconds(sent.seconds)}, of which {exposed} are exposed."
    )
    lanes = [Lane("computes", [*computes, old], height=38), Lane("sends", sends, height=30)]
    line = Timeline(
        Scale(0, end, unit, lambda seconds: units.edited(size * seconds)),
        lanes,
        heading=f"a step: {units.seconds(total)}"
        + (f" (dashed: {units.seconds(was)})" if changed else ""),
        phone_names=0,
        extra=[kind.swatch() for kind in _KINDS.values()],
    )
    return Below([line, memory_bar(plan, before)], words, gap=8)
