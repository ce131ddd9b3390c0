"""The picture of a pipeline, turn by turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from llmtrain_course.kit.drawing import COLORS, GREY, Drawing, fits, ghost, hatched, rect, text
from llmtrain_course.parallelism.formulas import Schedule, Turn, pipeline_schedule
from llmtrain_helpers import units

FORWARD, BACKWARD = COLORS["weights"], COLORS["gradients"]


STAGES, MICRO_BATCHES, ROOM = 8, 12, 16
"""The most stages and micro-batches, and both together, for which there is room."""


class Layout(NamedTuple):
    """How wide a drawing is, and whether a verdict stands below its title."""

    width: int
    stacked: bool


WIDE, NARROW = Layout(640, False), Layout(360, True)
"""As on a page, and as on a telephone."""

Key = list[tuple[str, float, str]]


def color_key(parts: Iterable[tuple[str, float, str]], y: float, layout: Layout) -> str:
    """Colour, opacity and label of each part, in as many rows as it takes."""
    svg, x = "", 16.0
    for color, opacity, label in parts:
        wide = 20 + 7.84 * len(label)
        if x > 16 and x + wide > layout.width - 8:
            x, y = 16.0, y + 22
        svg += rect(x, y - 12, 14, 14, color, opacity=opacity)
        svg += text(x + 20, y, label, 14)
        x += wide + 14
    return svg


class Clock(NamedTuple):
    """Where the rows of a pipeline begin, and the pixels of a forward turn."""

    left: float
    turn: float

    @property
    def end(self) -> float:
        """Where the longest of these steps ends."""
        return self.left + 3 * (ROOM - 1) * self.turn


_CLOCKS = {WIDE: Clock(122, 11.6), NARROW: Clock(112, 5.5)}
"""One scale for all pictures, as on a page, and as on a telephone."""


_ROW, _HIGH, _ROWS_HIGH = 48, 32, 216
"""Pixels of a row, of the mean, and of all rows of stages."""


def pipeline(
    stages: int,
    micro_batches: int,
    interleave: int = 1,
    before: Schedule | None = None,
    layout: Layout = WIDE,
) -> Drawing:
    """A step of a pipeline: the turns of each stage on one clock, idle time hatched.

    One scale for all: a forward turn of a whole stage is as wide in each. Below the
    stages stands their mean, what works before what waits; dashed, that of `before`.
    """
    schedule = pipeline_schedule(stages, micro_batches, interleave=interleave)
    clock = _CLOCKS[layout]
    clock, scale, end = clock._replace(turn=clock.turn / interleave), clock.turn, clock.end
    names = [units.plural(stages, "stage"), units.plural(micro_batches, "micro-batch")]
    sizes = ", ".join(names + ([f"{interleave} pieces each"] if interleave > 1 else []))
    idle = f"idle {units.share(schedule.idle)} of the step"
    if layout.stacked:
        svg = text(16, 22, sizes, 14, font_weight=700) + text(16, 46, idle, 14, font_weight=700)
        top, gap = 90, 8
    else:
        svg = text(16, 22, sizes, 16, font_weight=700)
        svg += text(end, 22, idle, 16, "end", font_weight=700)
        top, gap = 66, 14
    svg += text(clock.left - gap, top - 12, "keeps", 14, "end")
    svg += text(clock.left, top - 12, "time →", 14)
    pitch = min(_ROW, _ROWS_HIGH / stages)
    for stage in range(stages):
        y, high = top + stage * pitch, pitch - 6
        svg += text(16, y + high / 2 + 5, f"stage {stage + 1}", 14)
        kept = f"{schedule.in_flight(stage):.3g}"
        svg += text(clock.left - gap, y + high / 2 + 5, kept, 14, "end")
        svg += _stage(schedule.of_stage(stage), schedule, y, high, clock)
    floor = top + _ROWS_HIGH + 14
    svg += _mean(schedule, floor, clock, before, scale)
    kinds: Key = [(FORWARD, 1, "forward"), (BACKWARD, 1, "backward"), (GREY, 0.18, "idle")]
    svg += color_key(kinds, floor + 58, layout)
    svg += hatched(202, floor + 46, 14, 14, 6)
    note = "fainter: later pieces" if interleave > 1 else "numbers: the micro-batch"
    if layout.stacked:
        floor += 24
        svg += text(16, floor + 58, note, 14)
    else:
        svg += text(end, floor + 58, note, 14, "end")
    first, last = schedule.in_flight(0), schedule.in_flight(stages - 1)
    words = (
        f"A step of a pipeline: {sizes}, one forward and one backward by turns. Idle "
        f"{units.share(schedule.idle)} of the step. The first stage keeps {first:.3g} "
        f"micro-batches at once, the last {last:.3g}."
    )
    return Drawing(svg, int(end) + 16, floor + 70, words)


_SHADES = (1.0, 0.8, 0.6, 0.45)
"""How strong the colour of each piece is; of whole stages, that of every second
micro-batch is a little weaker."""


def _stage(turns: Sequence[Turn], schedule: Schedule, y: float, high: float, clock: Clock) -> str:
    """The turns of a stage, and what is idle before, between and after them."""
    gaps = "".join(
        _idle(clock.left + clock.turn * start, y, clock.turn * (end - start), high)
        for start, end in _gaps(turns, schedule.end)
    )
    return _boxes(turns, schedule, y, high, clock) + gaps


def _boxes(turns: Sequence[Turn], schedule: Schedule, y: float, high: float, clock: Clock) -> str:
    """A box for each turn, with the number of its micro-batch where there is room."""
    boxes: dict[tuple[str, float], str] = {}
    numbers = ""
    for turn in turns:
        x = clock.left + clock.turn * turn.start
        wide = clock.turn * (turn.end - turn.start)
        whole = schedule.interleave == 1
        shade = (1.0, 0.86)[turn.micro_batch % 2] if whole else _SHADES[turn.piece]
        kind = BACKWARD if turn.backward else FORWARD, shade
        boxes[kind] = boxes.get(kind, "") + f"M{x:.2f} {y:g}h{wide - 0.8:.2f}v{high:g}H{x:.2f}z"
        number = f"{turn.micro_batch + 1}"
        if fits(number, wide - 3, 14):
            at = x + wide / 2 - 0.4, y + high / 2 + 5
            numbers += text(*at, number, 14, "middle", "#FFFFFF")
    svg = "".join(
        f'<path d="{path}" fill="{color}" opacity="{shade:g}"/>'
        for (color, shade), path in boxes.items()
    )
    return svg + numbers


def _gaps(turns: Sequence[Turn], end: int) -> Iterator[tuple[int, int]]:
    """When a stage waits: before, between and after its turns."""
    clock = 0
    for turn in turns:
        if turn.start > clock:
            yield clock, turn.start
        clock = turn.end
    if end > clock:
        yield clock, end


def _idle(x: float, y: float, wide: float, high: float) -> str:
    """A hatched box; its hatching is one path, for an idle pipeline has a lot of it."""
    svg = rect(x, y, wide, high, GREY, "idle", opacity=0.18)
    lines = []
    for offset in range(8, int(wide + high), 10):
        x1, y1 = x + min(offset, wide), y + max(0, offset - wide)
        x2, y2 = x + max(0, offset - high), y + min(offset, high)
        lines.append(f"M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}")
    return svg + f'<path d="{"".join(lines)}" stroke="currentColor" opacity="0.6"/>'


def _mean(schedule: Schedule, y: float, clock: Clock, before: Schedule | None, scale: float) -> str:
    """The mean of all stages as one bar: what works, then what waits; dashed: before."""
    svg = text(16, y + 21, "on average", 14)
    x, end = clock.left, clock.turn * schedule.end
    for word, color in (("forward", FORWARD), ("backward", BACKWARD)):
        wide = end * schedule.shares()[word]
        svg += rect(x, y, wide, _HIGH, color, f"{word}, of all stages")
        x += wide
    if schedule.idle:
        svg += _idle(x, y, end * schedule.idle, _HIGH)
    if before and before != schedule:
        was = scale / before.interleave * before.end
        left = clock.left + was * (1 - before.idle)
        svg += ghost(left, y - 4, was * before.idle, _HIGH + 8, "before")
    return svg
