"""The picture of a step on four GPUs, in time."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from llmtrain_course.duration.pictures import INKS
from llmtrain_course.kit.drawing import (
    COLORS,
    GREY,
    Drawing,
    Style,
    fits,
    hatched,
    line,
    rect,
    text,
)
from llmtrain_course.parallelism.formulas import Schedule
from llmtrain_course.parallelism.grid import letters
from llmtrain_helpers import units

_ROW, _PASS = 40, 32


_KEEPS = 22
"""Pixels of a sequence whose activations are kept."""


class Clock(NamedTuple):
    """Where time begins, pixels of a tick; where GPUs begin, and activations stand."""

    width: int
    begin: int
    scale: float
    first: int
    floor: int

    def at(self, tick: float) -> float:
        """The place of a tick."""
        return self.begin + tick * self.scale


PAGE, TELEPHONE = Clock(680, 124, 4.3, 44, 336), Clock(380, 84, 2.3, 64, 400)


AVERAGE, UPDATE = 6, 3
"""Ticks that the average and the update are drawn as long as."""


def four_gpus(
    schedule: Schedule,
    copies: int,
    micro_batch: int,
    now: int,
    before: int = 0,
    clock: Clock = PAGE,
) -> Drawing:
    """A step on four GPUs, up to a moment: passes, waiting, average, update.

    Each copy of the model has the same `schedule`. What is still to come is an outline.
    Below, the activations that the first GPU keeps. Time has one scale for all
    settings; with `before`, the length of an earlier step is dashed.
    """
    stages, end = schedule.stages, schedule.end
    svg = text(20, 26, _setting_of(stages, copies), 17, font_weight=700)
    for gpu in range(stages * copies):
        stage, copy = divmod(gpu, copies)
        y = clock.first + gpu * _ROW
        label = f"{letters(copy)}, stage {stage + 1}" if stages > 1 else f"replica {letters(copy)}"
        svg += text(clock.begin - 8, y + 21, label, 14, "end")
        over = 0
        for turn in schedule.of_stage(stage):
            svg += _waits(clock, y, over, turn.start)
            svg += _box(clock, y, turn.start, turn.end, now, turn.micro_batch, turn.backward)
            over = turn.end
        svg += _waits(clock, y, over, end)
    svg += _ending(clock, stages, copies, end, now)
    top, bottom = clock.first, clock.first + 4 * _ROW
    x = clock.at(now)
    for high, low in ((top - 8, bottom), (clock.floor - 104, clock.floor)):
        svg += line(x, high, x, low, stroke_width=2)
    if before and before != end:
        at = clock.at(before)
        svg += line(clock.begin, top - 6, at, top - 6, stroke_dasharray="5 4")
        svg += line(at, top - 11, at, top - 1)
        spot, anchor = (at + 7, "start") if at < clock.width - 110 else (at - 7, "end")
        svg += text(spot, top - 10, "at the start", 14, anchor)
    svg += _legend(clock, bottom + 8, copies)
    svg += _kept(clock, schedule, micro_batch, now)
    words = (
        f"A step on four GPUs: {_setting_of(stages, copies)}. {schedule.micro_batches} passes of "
        f"{units.plural(micro_batch, 'sequence')} for each replica take {end} ticks; "
        f"{now} are over. A GPU waits {units.percent(schedule.idle)} of them."
    )
    return Drawing(svg, clock.width, clock.floor + 34, words)


def _setting_of(stages: int, copies: int) -> str:
    if stages == 1:
        return f"{copies} replicas, each on one GPU"
    each = f"cut into {stages} stages"
    return f"{copies} replicas, each {each}" if copies > 1 else f"one replica, {each}"


def _waits(clock: Clock, y: float, start: int, end: int) -> str:
    """A GPU with nothing to do."""
    if end == start:
        return ""
    x, wide = clock.at(start), (end - start) * clock.scale - 1
    svg = rect(x, y, wide, _PASS, GREY, "waits", opacity=0.15)
    return svg + (hatched(x, y, wide, _PASS) if wide > 8 else "")


def _box(clock: Clock, y: float, start: int, end: int, now: int, micro: int, backward: bool) -> str:
    """A turn: filled as far as it is done, with its number where there is room."""
    x, wide = clock.at(start), (end - start) * clock.scale - 1
    ink, word = (INKS["backward"], "backward") if backward else (INKS["forward"], "forward")
    done = min(max((now - start) / (end - start), 0), 1)
    svg = rect(x, y, wide, _PASS, ink, f"{word} {micro + 1}", rx=2, opacity=0.25)
    if done:
        svg += rect(x, y, wide * done, _PASS, ink, rx=2)
    if fits(f"{micro + 1}", wide - 4, 14):
        fill = "#FFFFFF" if done > 0.6 else "currentColor"
        svg += text(x + wide / 2, y + 21, f"{micro + 1}", 14, "middle", fill)
    return svg


def _ending(clock: Clock, stages: int, copies: int, end: int, now: int) -> str:
    """The average over the copies of each stage, and the update of every GPU."""
    svg, after = "", end + (AVERAGE if copies > 1 else 0)
    for stage in range(stages if copies > 1 else 0):
        y = clock.first + stage * copies * _ROW
        high = copies * _ROW - (_ROW - _PASS)
        ink = COLORS["main gradients"]
        svg += _late(clock, end, AVERAGE, y, high, ink, "average of gradients", now)
    for gpu in range(stages * copies):
        y = clock.first + gpu * _ROW
        svg += _late(clock, after, UPDATE, y, _PASS, COLORS["optimizer"], "update", now)
    return svg


def _late(
    clock: Clock, start: int, ticks: int, y: float, high: float, ink: str, word: str, now: int
) -> str:
    faint: Style = {} if now >= start + ticks else {"opacity": 0.25}
    return rect(clock.at(start) + 1, y, ticks * clock.scale - 2, high, ink, word, **faint)


def _legend(clock: Clock, y: float, copies: int) -> str:
    left = clock.begin if clock is PAGE else 20
    svg, x = "", float(left)
    inks = {"forward": INKS["forward"], "backward": INKS["backward"], "waits": GREY}
    inks |= {"average": COLORS["main gradients"]} if copies > 1 else {}
    for word, ink in {**inks, "update": COLORS["optimizer"]}.items():
        faint: Style = {"opacity": 0.15} if word == "waits" else {}
        if x + 20 + 8 * len(word) > clock.width:
            x, y = left, y + 22
        svg += rect(x, y, 14, 14, ink, **faint) + text(x + 20, y + 12, word, 14)
        svg += hatched(x, y, 14, 14, 6) if word == "waits" else ""
        x += 46 + 8 * len(word)
    return svg


def _kept(clock: Clock, schedule: Schedule, micro_batch: int, now: int) -> str:
    """The activations of the first GPU over time: all that is to come is dashed."""
    share = micro_batch / schedule.stages
    corners = [(t, activations * share) for t, activations in schedule.kept(0)]
    points = [(clock.at(t), clock.floor - _KEEPS * activations) for t, activations in corners]
    whole = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line_style = 'fill="none" stroke="currentColor" stroke-dasharray="4 3"'
    svg = f'<polyline points="{whole}" {line_style}/>'
    done = [(t, activations) for t, activations in corners if t <= now]
    if done and done[-1][0] < now < corners[-1][0]:  # within a turn
        (t0, h0), (t1, h1) = next(
            pair for pair in pairwise(corners) if pair[0][0] <= now <= pair[1][0] != pair[0][0]
        )
        done.append((now, h0 + (h1 - h0) * (now - t0) / (t1 - t0)))
    spots = [
        (clock.at(t), clock.floor - _KEEPS * activations)
        for t, activations in [*done, (done[-1][0], 0)]
    ]
    area = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    svg += f'<polygon points="{area}" fill="{COLORS["activations"]}"/>'
    begin, floor = clock.begin, clock.floor
    svg += line(begin, floor, clock.at(126), floor)
    for activations in (1, 2, 4):
        y = floor - _KEEPS * activations
        svg += line(begin - 5, y, begin, y) + text(begin - 9, y + 5, f"{activations}", 14, "end")
    if clock is TELEPHONE:
        svg += text(20, floor - 112, "activations on GPU 1", 14)
    for i, word in enumerate(["activations", "on GPU 1"] if clock is PAGE else []):
        svg += text(20, floor - 62 + 18 * i, word, 14)
    for tick in range(0, 121, 30):
        x = clock.at(tick)
        label = f"{tick}" if tick < 120 else "120 ticks"
        svg += line(x, floor, x, floor + 5)
        svg += text(min(x, clock.width - 38), floor + 20, label, 14, "middle")
    return svg
