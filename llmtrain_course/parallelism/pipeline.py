"""The picture of a pipeline, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.lanes import Lane, Point, Span, Timeline
from llmtrain_course.kit.layout import INK, SMALL, Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_course.parallelism.formulas import Schedule, Turn
from llmtrain_helpers import units

FORWARD, BACKWARD = COLORS["weights"], COLORS["gradients"]

STAGES, MICRO_BATCHES, ROOM = 8, 12, 16
"""The most stages and micro-batches, and both together, for which there is room."""

_ROWS, _ROW, _EDGE = 216, 48, 6
"""Pixels of all stages, of a stage at the most, and between two."""

_IDLE = Span(0, 0, opacity=0.18, slants=INK, title="idle")

_SHADES = (1.0, 0.8, 0.6, 0.45)
"""How strong the colour of each piece is; of whole stages, that of every second
micro-batch is a little weaker."""


def pipeline_step(schedule: Schedule, before: Schedule | None = None) -> Picture:
    """A step of a pipeline: the turns of each stage on one clock, idle time hatched.

    One scale for all: a forward turn of a whole stage is as wide in each. Below the
    stages stands their mean, what works before what waits; dashed, that of `before`.
    """
    stages, pieces = schedule.stages, schedule.interleave
    sizes = (
        f"{units.plural(stages, 'stage')}, {units.plural(schedule.micro_batches, 'micro-batch')}"
    )
    idle = f"idle {units.share(schedule.idle)} of the step"
    pitch = min(_ROW, _ROWS / stages)
    time = Point(0, label="time →", shape="none", size=0)
    lanes = [Lane("stage", [time], height=SMALL, count="keeps")]
    for stage in range(stages):
        spans = [replace(_IDLE, start=a / pieces, end=b / pieces) for a, b in schedule.waits(stage)]
        spans += [_turn(turn, schedule) for turn in schedule.of_stage(stage)]
        kept = f"{schedule.in_flight(stage):.3g}"
        lanes.append(Lane(f"{stage + 1}", spans, height=pitch - _EDGE, count=kept))
    if pitch == _ROW:
        lanes.append(Lane("", height=_ROWS - _EDGE - stages * _ROW))
    lanes.append(Lane("", [*_mean(schedule, before)], group="on average", height=32))
    first, last = schedule.in_flight(0), schedule.in_flight(stages - 1)
    cut = f", {pieces} pieces each" if pieces > 1 else ""
    passes = "micro-batch" if first == 1 else "micro-batches"
    words = (
        f"A step of a pipeline: {sizes}{cut}, one forward and one backward by turns. "
        f"{idle.capitalize()}. "
        f"The first stage stores {first:.3g} {passes} at once, and the last one {last:.3g}."
    )
    return Timeline(
        Scale(0, 3 * (ROOM - 1)),
        lanes,
        words,
        heading=sizes,
        verdict=idle,
        gap=_EDGE,
        axis=False,
        note=f"{pieces} pieces each; fainter: later pieces"
        if pieces > 1
        else "numbers: the micro-batch",
    )


def _turn(turn: Turn, schedule: Schedule) -> Span:
    """A turn, with the number of its micro-batch where there's room for all of them."""
    pieces, last = schedule.interleave, f"{schedule.micro_batches}"
    shade = _SHADES[turn.piece] if pieces > 1 else (1, 0.86)[turn.micro_batch % 2]
    color, number = BACKWARD if turn.backward else FORWARD, f"{turn.micro_batch + 1}"
    end = (turn.end - 0.07) / pieces
    start = turn.start / pieces
    return Span(start, end, color, number, opacity=shade, tight=True, longest=last)


def _mean(schedule: Schedule, before: Schedule | None) -> Iterator[Span]:
    """The mean of all stages: what works, then what waits; dashed: what waited before."""
    at, end = 0.0, schedule.end / schedule.interleave
    for word, share in schedule.shares().items():
        if word == "idle":
            yield replace(_IDLE, start=at, end=end, name=word)
        else:
            color = FORWARD if word == "forward" else BACKWARD
            yield Span(at, at + share * end, color, title=f"{word}, of all stages", name=word)
        at += share * end
    if before and before != schedule:
        was = before.end / before.interleave
        yield Span(was * (1 - before.idle), was, title="before", previous=True)
