"""Pictures of chapter 04: an epoch, a measured step, what a batch costs, a stage's time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from llmtrain_course.batch.formulas import TRIED, BatchCost, mean_gradients, miss
from llmtrain_course.kit.chart import Chart, Column, Dot, Mark, Note, Path, Rule
from llmtrain_course.kit.drawing import (
    COLORS,
    GREY,
    Drawing,
    Style,
    arrow,
    circle,
    line,
    rect,
    text,
)
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Point, Span
from llmtrain_course.kit.layout import (
    BESIDE,
    INK,
    PAD,
    PAGE,
    ROW,
    SMALL,
    USUAL,
    Below,
    Diagram,
    Fact,
    Facts,
    NextTo,
    Picture,
    grip,
    paragraph,
    text_width,
)
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units

# --- the beginning of an epoch

MOST_SAMPLES, MOST_PASSES = 10, 4
"""The longest row of an epoch: samples in each of its passes, and passes."""

_SEEN = 3
"""Updates that are drawn."""


def epoch_rows(
    micro_batch: int, passes: int, updates: int, samples: int, width: int = PAGE
) -> Drawing:
    """The first updates of an epoch: a row each, a box for a pass, a dot for a sample."""
    wide, gap, x = width >= BESIDE, USUAL / 2, float(PAD)
    key = "dot: a sample · box: a micro-batch, one pass · row: a batch"
    svg, y = paragraph(x, PAD, key, width - 2 * PAD)
    y += gap
    x += text_width(f"update {_SEEN}", SMALL) + gap if wide else 0
    dot = (width - PAD - x - MOST_PASSES * gap) / (MOST_PASSES * MOST_SAMPLES)
    height = min(2 * dot + gap, 2 * USUAL)
    for row in range(_SEEN):
        ink = GREY if row else COLORS["activations"]
        if not wide:
            svg += text(PAD, y + USUAL, f"update {row + 1}", SMALL)
            y += USUAL + gap
        else:
            svg += text(x - gap, y + height / 2 + 5, f"update {row + 1}", SMALL, "end")
        for k in range(passes):
            left = x + k * (micro_batch * dot + gap)
            box = left, y, micro_batch * dot, height
            svg += rect(*box, stroke=INK, rx=5, title=f"pass {k + 1}")
            svg += "".join(
                circle(left + dot * (i + 0.5), y + height / 2, 0.4 * dot, ink)
                for i in range(micro_batch)
            )
        y += height + gap
    rest = f"{updates - _SEEN:,} more, until all"
    rest = f"and {rest} {samples:,}" if wide else rest
    svg += text(x, y + USUAL, f"⋮  {rest} are used: one epoch", USUAL if wide else SMALL)
    y += USUAL
    batch = micro_batch * passes
    numbers = [(updates, "updates"), (updates * passes, "passes")]
    numbers += [(batch, "samples in a batch"), (micro_batch, "in memory at once")]
    columns = len(numbers) if wide else len(numbers) // 2
    for i, (number, label) in enumerate(numbers):
        left = x + (width - PAD - x) / columns * (i % columns)
        low = y + 2 * ROW * (i // columns + 1)
        svg += text(left, low, f"{number:,}", ROW, font_weight=700)
        svg += text(left, low + USUAL + 4, label, SMALL)
    words = (
        f"Each update uses {batch} of {samples:,} samples, in "
        f"{units.plural(passes, 'pass')} of {micro_batch}: {updates:,} updates and "
        f"{updates * passes:,} passes."
    )
    return Drawing(svg, width, round(low + USUAL + 4 + PAD), words)


# --- a measured step by its micro-batch

_INKS = {"work": COLORS["useful"], "fixed parts": COLORS["launching"], "waiting": GREY}
"""The parts of a step in a pipeline, from the bottom up, and their colours."""


class Step(NamedTuple):
    """A step with one micro-batch: seconds of its parts, seconds measured, bytes of a GPU."""

    micro_batch: int
    parts: Sequence[float]
    measured: float
    memory: float


def step_by_micro_batch(steps: Sequence[Step], chosen: int, card: float) -> Picture:
    """A step's seconds and a GPU's memory by the micro-batch, up to the chosen one.

    A column is the work, the fixed parts of all passes and the waiting; a dot was
    measured. The line is the memory of the `card`. The axes and the room of all columns stay.
    """
    times, memory = list[Mark](), list[Mark]()
    for i, step in enumerate(steps):
        times += _times(step, i, chosen)
        memory.append(_memory(step, i, chosen))
    memory.append(Rule(card, "y", units.gigabytes(card), dash="5 4"))
    names: dict[float, str] = {i: f"{step.micro_batch}" for i, step in enumerate(steps)}
    x = Scale(-0.5, len(steps) - 0.5, "sequences in a micro-batch", ticks=names)
    seconds = Scale(0, 160, "seconds per step", ticks=(0, 50, 100, 150), grid=True)
    room = Scale(0, 100e9, "memory per GPU", ticks={})
    listed = "; ".join(
        f"{step.micro_batch}: {step.measured:.0f} s and {_gigabytes(step.memory)}"
        for step in steps
        if step.micro_batch <= chosen
    )
    words = f"Measured step times and memory per GPU, by micro-batch. {listed}."
    return NextTo(Chart(x, seconds, times), Chart(x, room, memory), words, share=0.64)


_HALF, _PALE = 0.32, 0.45
"""Half a column's width, from one to the next; the opacity of those that aren't chosen."""


def _times(step: Step, place: int, chosen: int) -> Iterator[Mark]:
    """The parts of a step on top of each other, and what was measured."""
    own, hidden, top = step.micro_batch == chosen, step.micro_batch > chosen, 0.0
    look = 1 if own else _PALE
    for (part, ink), seconds in zip(_INKS.items(), step.parts, strict=True):
        sides = place - _HALF, place + _HALF, top + seconds
        title = f"{part}: {seconds:.0f} s"
        yield Column(*sides, ink, top, title, opacity=look, name=part, hidden=hidden)
        top += seconds
    yield Dot(place, step.measured, "#FFFFFF", title="measured", name="measured", hidden=hidden)
    above = max(step.measured, top) + 8  # clear of the dot
    yield Note(place, above, f"{step.measured:.0f} s", 16, bold=True, hidden=not own)


def _memory(step: Step, place: int, chosen: int) -> Column:
    """The memory that a GPU needs for a step."""
    own, hidden = step.micro_batch == chosen, step.micro_batch > chosen
    sides = place - _HALF, place + _HALF, step.memory
    value = _gigabytes(step.memory) if own else ""
    look, ink = 1 if own else _PALE, COLORS["main weights"]
    return Column(*sides, ink, value=value, bold=True, opacity=look, hidden=hidden)


def _gigabytes(memory: float) -> str:
    return units.edited(memory, units.gigabytes)


# --- a noisy gradient

_DASHED: Style = {"stroke": INK, "stroke_width": 2, "stroke_dasharray": "5 4"}
_FORWARD, _BACK = COLORS["weights"], COLORS["gradients"]


def noisy_gradients(batch: int, previous: int = 0) -> Picture:
    """Gradients of batches as arrows from one point, around the gradient of all sequences.

    A dashed circle is as large as their usual miss; a pale one is what it was before.
    """
    tips = mean_gradients(batch)
    back, usual = sum(x < 0 for x, _ in tips), units.digits(miss(batch), 2)
    facts = [
        Fact("sequences in a batch", f"{batch:,}", bold=True),
        Fact("gradient of all sequences", draw=lambda x, y: _true_gradient(x, y + 7, 18)),
        Fact("gradient of one batch", draw=lambda x, y: _gradient(x, y + 7, 14, 0)),
        Fact(
            "points the other way",
            f"{back} of {TRIED}",
            draw=lambda x, y: _gradient(x + 18, y + 7, -14, 0),
        ),
        Fact(
            "usual miss",
            f"{usual} × as long",
            bold=True,
            rule=True,
            draw=lambda x, y: circle(x + 9, y + 7, 8, "none", **_DASHED),
        ),
    ]
    words = (
        f"The gradients of {TRIED} batches of {units.plural(batch, 'sequence')}, as arrows "
        f"from one point. They usually miss the gradient of all sequences by {usual}× its "
        f"length, and {back} of them point the other way."
    )
    return NextTo(Diagram(partial(_arrows, tips, batch, previous)), Facts(facts), words)


def _arrows(
    tips: Sequence[tuple[float, float]],
    batch: int,
    previous: int,
    left: float,
    top: float,
    width: float,
) -> tuple[str, float]:
    """Draw the arrows on a plane with room for single sequences, and tell where it ends.

    The closer they are to each other, the thinner they are.
    """
    xs, ys = zip(*mean_gradients(1), strict=True)
    low, high, deep = min(xs), max(xs), max(map(abs, ys))
    unit = min(width / (high - low), 330 / (2 * deep)) * 0.97
    x, y = left + width / 2 - unit * (low + high) / 2, top + unit * deep + 8
    thin = min(1, 0.05 * unit * miss(batch))
    svg = "".join(_gradient(x, y, unit * across, unit * down, thin) for across, down in tips)
    if previous not in (0, batch):
        pale: Style = {**_DASHED, "opacity": 0.35}
        svg += circle(x + unit, y, unit * miss(previous), "none", **pale)
    svg += circle(x + unit, y, unit * miss(batch), "none", **_DASHED)
    svg += _true_gradient(x, y, unit) + grip(x + unit * (1 + miss(batch)), y, "batch")
    return svg, y + unit * deep + 8


def _true_gradient(x: float, y: float, length: float) -> str:
    return arrow(x, y, x + length, y, stroke_width=5)


def _gradient(x: float, y: float, across: float, down: float, thin: float = 1) -> str:
    """A line with a dot at its end, hollow if it points the other way, and so much thinner."""
    ink, end = _FORWARD if across > 0 else _BACK, (x + across, y + down)
    edge = Style(stroke=ink, stroke_width=2 * thin)
    dot = circle(*end, 4 * thin, ink if across > 0 else "none", **edge)
    return line(x, y, *end, stroke=ink, opacity=0.45 * thin) + dot


# --- what a batch costs


def batch_cost_curve(
    cost: BatchCost, batch: float, critical: float, previous: BatchCost | None = None
) -> Picture:
    """Updates against tokens, over the fewest of each: a dot on the curve of all batches.

    A mark on the curve is the critical batch, a ring is where it began. Below, the batch and
    the critical batch in tokens.
    """
    updates, samples = float(cost.updates), float(cost.samples)
    ink, began = COLORS["gradients"], previous or cost
    start = float(began.updates), float(began.samples)
    ring = Dot(*start, size=8, shape="ring", title="at the start", hidden=began == cost)
    marks: list[Mark] = [
        Path([(1 + 1 / r, 1 + r) for r in (2 ** (k / 4) for k in range(-24, 25))], GREY),
        Dot(2, 2, size=5, shape="diamond"),
        Note(2.3, 2.3, "critical batch", anchor="start"),
        Rule(updates, to=samples, dash="3 3"),
        Rule(samples, "y", to=updates, dash="3 3"),
        ring,
        Dot(updates, samples, ink, 8, title="your batch", moves="batch"),
    ]
    facts = [
        Fact("updates", f"{units.digits(updates, 2)}×", bold=True),
        Fact("what a huge batch needs", size=SMALL),
        Fact("tokens", f"{units.digits(samples, 2)}×", bold=True, rule=True),
        Fact("what a tiny batch needs", size=SMALL),
        Fact("at the start", draw=ring.swatch().draw, hidden=ring.hidden),
    ]
    twos = [2**k for k in range(7)]
    x = Scale(1, 64, "updates, a huge batch = 1", ticks=twos, log=True)
    y = Scale(1, 64, "tokens, a tiny batch = 1", ticks=twos, log=True)
    tens = [10**k for k in range(5, 9)]
    tokens = Scale(tens[0], tens[-1], "tokens in a batch", units.short, tens, log=True)
    own = Point(batch, ink, title=f"{units.short(batch)} tokens", size=7, moves="batch")
    lane = Lane("your batch", [own], axis=True, height=18)
    line = Bars(tokens, [lane], limits=[Limit(critical, "critical batch", width=3)])
    words = (
        f"A curve of updates against tokens, each relative to the minimum, with the critical "
        f"batch in the middle. The dot is at {units.digits(updates, 2)}× the updates of a huge "
        f"batch and "
        f"{units.digits(samples, 2)}× the tokens of a tiny one."
    )
    return Below([Chart(x, y, marks, facts=facts, height=240), line], words)


# --- how much of a step a stage waits


def stage_time(stages: int, passes: int, waits: float) -> Picture:
    """A stage's step as a bar: its passes, and what it waits while others fill and empty."""
    label = units.plural(passes, "pass")
    note = f"waits {units.percent(waits) if waits else 'nothing'}: "
    note += f"{units.plural(stages - 1, 'turn')} of {passes + stages - 1:,}"
    if stages == 1:
        note = "a single stage doesn't wait"
    spans = [
        Span(0, 1 - waits, COLORS["useful"], label, "at work"),
        Span(1 - waits, 1, title="waits", hatch=True, hidden=not waits),
    ]
    words = f"A GPU's step: {label}; {note}."
    lanes = [Lane("", spans, height=36)]
    return Bars(Scale(0, 1), lanes, words, heading="A GPU in one step", verdict=note, axis=False)
