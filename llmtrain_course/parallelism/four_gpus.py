"""The picture of a step on four GPUs, in time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product

from llmtrain_course.duration.pictures import INKS
from llmtrain_course.kit.chart import Area, Path
from llmtrain_course.kit.drawing import COLORS, INK
from llmtrain_course.kit.lanes import Lane, Limit, Span, Timeline
from llmtrain_course.kit.layout import Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_course.parallelism.formulas import Schedule, Turn
from llmtrain_course.parallelism.places import letters
from llmtrain_helpers import units

AVERAGE, UPDATE, LONGEST = 6, 3, 120
"""Ticks of the average and of the update as they're drawn, and of the longest step."""

_TO_COME = 0.25
"""How pale is what's still to come."""

_FORWARD, _BACKWARD, _WAITS, _UPDATE, _AVERAGE = (
    Span(0, 0, INKS["forward"], name="forward"),
    Span(0, 0, INKS["backward"], name="backward"),
    Span(0, 0, hatch=True, name="waits", title="waits"),
    Span(0, 0, COLORS["optimizer"], name="update", title="update"),
    Span(0, 0, COLORS["main gradients"], name="average", title="average of gradients"),
)


def step_end(schedule: Schedule, copies: int) -> int:
    """When a step is over: after the average, if there's one, and the update."""
    return schedule.end + (AVERAGE if copies > 1 else 0) + UPDATE


def step_on_four_gpus(
    schedule: Schedule, copies: int, micro_batch: int, now: int, before: int = 0
) -> Picture:
    """A step on four GPUs, up to a moment: passes, waiting, average, update.

    Each copy of the model has the same `schedule`. What's still to come is pale. Below, the
    activations that the first GPU keeps. Time has one scale for all settings; a dashed line
    is where the passes ended `before` a change.
    """
    stages, end, lanes = schedule.stages, schedule.end, list[Lane]()
    last = f"{schedule.micro_batches}"
    update = step_end(schedule, copies) - UPDATE
    for stage, copy in product(range(stages), range(copies)):
        spans = [replace(_WAITS, start=a, end=b, name="") for a, b in schedule.waits(stage)]
        spans += [span for turn in schedule.of_stage(stage) for span in _turn(turn, now, last)]
        if update > end and not copy:  # one average for all copies of a stage
            spans.append(replace(_late(_AVERAGE, end, update, now), lanes=copies))
        spans.append(_late(_UPDATE, update, update + UPDATE, now))
        name = f"{letters(copy)}, stage {stage + 1}" if stages > 1 else f"replica {letters(copy)}"
        lanes.append(Lane(name, spans))
    cut = f"cut into {stages} stages" if stages > 1 else "on one GPU"
    setting = f"{copies} replicas, each {cut}" if copies > 1 else f"one replica, {cut}"
    words = (
        f"A step on four GPUs: {setting}. {schedule.micro_batches} passes of "
        f"{units.plural(micro_batch, 'sequence')} per replica need {end} ticks, of which "
        f"{now} are over. A GPU waits {units.percent(schedule.idle)} of the time."
    )
    past = Limit(before, f"before: {before:,g}", "5 4", width=1.5, hidden=before in (0, end))
    average = replace(_AVERAGE, hidden=copies == 1)
    return Timeline(
        Scale(0, LONGEST, "ticks", ticks=range(0, LONGEST + 1, 30)),
        [*lanes, _kept(schedule, micro_batch, now)],
        words,
        [Limit(now, moves="now"), past],
        heading=setting,
        gap=6,
        extra=[span.swatch() for span in (_FORWARD, _BACKWARD, _WAITS, _UPDATE, average)],
    )


def _turn(turn: Turn, now: int, last: str) -> Iterator[Span]:
    """A turn: filled as far as it's done, with its number if the `last` one fits, too."""
    like, number = _BACKWARD if turn.backward else _FORWARD, f"{turn.micro_batch + 1}"
    start, end = turn.start, turn.end
    done = min(max(now, start), end)
    yield Span(start, end, like.color, title=f"{like.name} {number}", opacity=_TO_COME, edge=True)
    if done > start:
        yield Span(start, done, like.color, edge=True)
    ink = "white" if 2 * done > start + end else INK
    yield Span(start, end, "none", number, ink=ink, tight=True, longest=last)


def _late(like: Span, start: int, end: int, now: int) -> Span:
    """What comes after the passes: pale until it's done."""
    opacity = 1 if now >= end else _TO_COME
    return replace(like, start=start, end=end, name="", opacity=opacity, edge=True)


def _kept(schedule: Schedule, micro_batch: int, now: int) -> Lane:
    """The activations of the first GPU over time: all that's to come is dashed."""
    hill = [(float(t), kept * micro_batch / schedule.stages) for t, kept in schedule.kept(0)]
    ticks, sizes = zip(*_until(hill, now), strict=True)
    done = Area(ticks, [0] * len(ticks), sizes, COLORS["activations"])
    marks, y = (Path(hill, width=1.5, dash="4 3"), done), Scale(0, 4, ticks=(1, 2, 4))
    return Lane("", marks, group="activations on GPU 1", height=72, y=y)


def _until(line: Sequence[tuple[float, float]], now: float) -> Iterator[tuple[float, float]]:
    """The corners of a line up to a moment, and where it is then."""
    yield line[0]
    for (start, low), (end, high) in pairwise(line):
        if start < min(end, now):
            share = (min(end, now) - start) / (end - start)
            yield min(end, now), low + share * (high - low)
