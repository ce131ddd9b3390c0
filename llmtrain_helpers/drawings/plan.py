"""Drawings of chapter 08: a whole plan at one glance, and a pipeline turn by turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from llmtrain_helpers import units
from llmtrain_helpers.drawings.common import (
    COLORS,
    GREY,
    Drawing,
    fits,
    ghost,
    hatched,
    line,
    rect,
    round_step,
    text,
)
from llmtrain_helpers.drawings.duration import INKS
from llmtrain_helpers.plan.memory import at_the_loss
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.schedule import Schedule, Turn, idle_share, pipeline_schedule
from llmtrain_helpers.results import Interval

BLUE = COLORS["weights"]
"""What is the learner's own."""

_LEFT, _RIGHT, _ACROSS = 24, 720, 744


# --- the plan at one glance


def plan_at_a_glance(plan: Plan, days: float | None = None, before: Plan | None = None) -> Drawing:
    """Model and text make work, GPUs make it days; beside it memory and money.

    `days` are those that there are; dashed outlines show the plan `before`.
    """
    span = plan.days_with_stops
    was = before.days_with_stops if before else None
    svg = _chain(plan) + _time(span, plan, days, was)
    svg += _memory(plan, before) + _money(plan)
    return Drawing(svg, _ACROSS, 468, _plan_in_words(plan, span, days))


def span_in_words(span: Interval) -> str:
    """An estimate from its least to its greatest, in two digits, with one unit."""
    return _from_to([units.duration(days * units.DAY, 2) for days in (span.least, span.greatest)])


def _from_to(ends: Sequence[str]) -> str:
    """Two quantities as a span: `21 to 29 days`; one where they are the same."""
    least, greatest = ends
    if least == greatest:
        return least
    if least.partition(" ")[2] == greatest.partition(" ")[2]:
        least = least.split()[0]
    return f"{least} to {greatest}"


def _chain(plan: Plan) -> str:
    """Four boxes: parameters, tokens, work, and the GPUs that do it."""
    recompute, n = plan.run.recompute, plan.split.num_gpus
    chip, X = plan.run.accelerator.name, plan.run.flops_per_gpu
    mixture = plan.parameters.active < plan.parameters.total
    passes = "forward, backward" if recompute == "none" else f"recomputed: {recompute}"
    if X is not None:
        rate = f"{units.flops_per_second(X)} each"
    elif plan.run.pace is not None:
        rate = f"{units.duration(plan.seconds_per_iteration.likely)} a step"
    else:
        at_peak = plan.total_flops / (n * plan.run.peak)
        low, high = at_peak / plan.seconds.greatest, at_peak / plan.seconds.least
        of = "of peak" if plan.split.pipeline_parallel == 1 else "with idle"
        rate = f"{100 * low:.0f}–{100 * high:.0f} % {of}"
    boxes = [
        (
            "model",
            units.count(plan.parameters.active),
            "active parameters" if mixture else "parameters",
        ),
        ("text", units.count(plan.run.tokens), "tokens"),
        ("work", units.flops(plan.total_flops), passes),
        ("GPUs", f"{units.exact(n)} × {chip.split(' ')[0]}", rate),
    ]
    svg = ""
    for i, (head, number, note) in enumerate(boxes):
        x = _LEFT + 182 * i
        svg += rect(x, 16, 152, 84, rx=8, stroke=GREY, stroke_width=1.5)
        svg += text(x + 9, 36, head, 15, font_weight=700)
        svg += text(x + 9, 62, number, 17)
        svg += text(x + 9, 86, note, 14)
        sign = "×" if i == 0 else "→"
        svg += text(x + 167, 64, sign, 20, "middle") if i < 3 else ""
    return svg


def _time(span: Interval, plan: Plan, days: float | None, before: Interval | None) -> str:
    """The interval as a bar on an axis of days, under the days that there are."""
    slow = plan.first_run.greatest
    longest = 1.18 * max(slow, days or 0, before.greatest if before else 0)
    step, scale = round_step(longest, 6.5), (_RIGHT - _LEFT) / longest
    head = f"{span_in_words(span)}, likely {units.duration(span.likely * units.DAY, 2)}"
    if plan.measured:
        exact = units.duration(plan.seconds.likely)
        head = f"{exact} of computing; with stops {span_in_words(span)}"
    svg = text(_LEFT, 138, "time", 15, font_weight=700) + text(_LEFT + 62, 138, head)
    x, wide = _LEFT + scale * span.least, scale * (span.greatest - span.least)
    svg += rect(x, 154, max(wide, 2), 30, BLUE, head, opacity=0.45)
    likely = _LEFT + scale * plan.days.likely
    svg += rect(likely - 2.5, 150, 5, 38, BLUE, "computing" if plan.measured else "likely")
    if slow > span.greatest:  # a thin line from the bar to where a first run may end
        verdict, _ = _in_time(replace(span, greatest=slow), days or slow)
        end, ink = _LEFT + scale * slow, BLUE
        svg += line(x + wide, 169, end, 169, stroke=ink, stroke_width=2.5)
        svg += line(end, 162, end, 176, stroke=ink, stroke_width=2.5)
        svg += text(end + 6, 174, f"{verdict[0]} a first run" if days else "a first run", 14)
    if before and before != span:
        start = _LEFT + scale * before.least
        svg += ghost(start, 150, scale * (before.greatest - before.least), 38, "at the start")
    if days:  # the line of the days that there are, and whether the interval keeps it
        verdict, ink = _in_time(span, days)
        limit, label = _LEFT + scale * days, f"{verdict}: you have {days:g} days"
        svg += line(limit, 148, limit, 196, stroke=ink, stroke_width=3)
        svg += text(_RIGHT, 138, label, 15, "end", font_weight=700)

    svg += line(_LEFT, 196, _RIGHT, 196)
    for i in range(int(longest / step) + 1):
        x, label = _LEFT + scale * i * step, f"{i * step:,.0f}"
        if step < 1:
            label = units.digits(i * step)
        svg += line(x, 196, x, 202)
        svg += text(x, 217, label if i else f"{label} days", 14, "middle" if i else "start")
    return svg


def _in_time(span: Interval, days: float) -> tuple[str, str]:
    """Whether an interval keeps the days that there are, and the colour of the answer."""
    if span.greatest <= days:
        return "✓ in time", COLORS["optimizer"]
    if span.least <= days:
        return "○ perhaps", COLORS["logits"]
    return "✗ too late", COLORS["gradients"]


def at_first(plan: Plan, days: float) -> str:
    """A word where only a first run would end too late; else nothing."""
    slow = plan.first_run.greatest
    if slow <= days or plan.days_with_stops.greatest > days:
        return ""
    most = units.rounded_down(plan.first_run_tokens(days))
    late = f"A first run may take up to {units.duration(slow * units.DAY, 2)}, too late"
    return f" ({late}: take at most {units.about(most)} tokens then.)"


def _memory(plan: Plan, before: Plan | None) -> str:
    """What a GPU holds, part after part, under the line of its chip and the reserve."""
    chip, total = plan.run.accelerator.memory, plan.memory.total
    seen = [chip * 1.12, total * 1.02, before.memory.total * 1.02 if before else 0]
    scale = (_RIGHT - _LEFT) / max(seen)
    y, high, edge = 274, 38, _LEFT + scale * chip
    head = f"{units.gigabytes(total)} of {units.gigabytes(chip)}"
    svg = text(_LEFT, 258, "memory of a GPU", 15, font_weight=700)
    svg += text(_LEFT + 160, 258, head)
    svg += text(_RIGHT, 258, _fitting(plan), 15, "end", font_weight=700)
    x, names = float(_LEFT), ""
    for word, size in parts_of(plan).items():
        wide, label = scale * size, f"{word}: {units.gigabytes(size)}"
        svg += rect(x, y, max(wide - 1, 0.5), high, COLORS[word], label)
        names += _named(x, y + high / 2 + 5, wide, word, edge)
        x += wide
    free = scale * plan.reserve
    svg += hatched(edge - free, y + high + 3, free, 12, 6)
    svg += rect(edge - free, y + high + 3, free, 12, stroke=GREY)
    svg += hatched(edge, y, x - edge, high, 12) if x > edge else ""
    if before and before.memory.total != total:
        svg += ghost(_LEFT, y - 5, scale * before.memory.total, high + 5, "at the start")
    svg += line(edge, y - 8, edge, y + high + 18, stroke_width=3)
    y += high + 33  # the reserve and the chip's line have their names below, on their side
    svg += names + text(edge - free - 8, y - 19, "reserve", 14, "end")
    return svg + text(min(edge, _RIGHT), y, "the chip's memory", 14, "end") + _key(plan)


def parts_of(plan: Plan) -> dict[str, float]:
    """What a GPU holds, by the words of the course; what is there for a moment last.

    That is the logits at the loss, or elsewhere a layer that is computed again.
    """
    parts = {name.replace("_", " "): x for name, x in plan.memory.parts().items() if x}
    moment = parts.pop("transient", 0)
    word = "logits" if at_the_loss(plan.run, plan.memory) else "recomputed"
    return parts | ({word: moment} if moment else {})


def _named(x: float, y: float, wide: float, word: str, edge: float) -> str:
    """A part's word on it, on the near side of the chip's line where there is room."""
    near = min(wide, edge - x)
    wide = near if fits(word, near - 8, 14) else wide
    if not fits(word, wide - 8, 14):
        return ""
    return text(x + wide / 2, y, word, 14, "middle", "#FFFFFF")


def _fitting(plan: Plan) -> str:
    if plan.fits:
        return f"✓ fits, {units.gigabytes(plan.room)} free"
    if plan.tight:
        return f"○ tight: {units.gigabytes(max(plan.room, 0))} free"
    return f"✗ {units.gigabytes(-plan.room)} too much"


def _key(plan: Plan) -> str:
    """Every part with its colour and its bytes."""
    svg, x, y = "", float(_LEFT), 372.0
    for word, size in parts_of(plan).items():
        label = f"{word} {units.gigabytes(size)}"
        wide = 22 + 7.8 * len(label) + 14
        if x + wide > _RIGHT + 14:
            x, y = float(_LEFT), y + 24
        svg += rect(x, y - 12, 14, 14, COLORS[word])
        svg += text(x + 20, y, label, 14)
        x += wide
    return svg


def _money(plan: Plan) -> str:
    """GPU-hours and dollars, stops included: a GPU that waits costs as much."""
    hours = plan.days_with_stops.times(24 * plan.split.num_gpus)
    ends = [units.about(x, units.count) for x in (hours.least, hours.greatest)]
    label = f"{_from_to(ends)} GPU-hours"
    price = plan.run.price_per_gpu_hour
    if price is not None:
        paid, price = hours.times(price), units.dollars(price)
        ends = [units.about(x, units.dollars) for x in (paid.least, paid.greatest)]
        label += f" at {price}: {_from_to(ends)}"
    svg = text(_LEFT, 440, "cost", 15, font_weight=700)
    return svg + text(_LEFT + 62, 440, label, 15)


def _plan_in_words(plan: Plan, span: Interval, days: float | None) -> str:
    n, chip = plan.split.num_gpus, plan.run.accelerator
    parts = (f"{word} {units.gigabytes(x)}" for word, x in parts_of(plan).items())
    limit, slow = "", plan.first_run.greatest
    if days:
        limit = f" {_sentence(_in_time(span, days)[0])}: there are {days:g} days."
    if slow > span.greatest:
        limit += f" A first run: up to {units.duration(slow * units.DAY, 2)}."
    return (
        f"The plan. {units.count(plan.parameters.total)} parameters and "
        f"{units.count(plan.run.tokens)} tokens make "
        f"{units.flops(plan.total_flops)}; {units.exact(n)} {chip.name} take "
        f"{span_in_words(span)}, likely {units.duration(span.likely * units.DAY, 2)}.{limit} "
        "Each GPU holds "
        f"{units.gigabytes(plan.memory.total)} of {units.gigabytes(chip.memory)}: "
        f"{', '.join(parts)}. {_sentence(_fitting(plan))}. "
        f"{units.about(plan.gpu_hours.likely, units.count)} GPU-hours."
    )


def _sentence(label: str) -> str:
    """A verdict without its sign, to begin a sentence with."""
    return label[2:3].upper() + label[3:]


# --- a pipeline, turn by turn

STAGES, TURNS, RECTS, NARROW = 8, 1024, 320, 4
"""Stages that are drawn; stages times micro-batches of a step that is drawn whole; and
the rectangles, and the width of a forward turn, beyond which neighbours are drawn as
one."""

_ROW, _HIGH, _TOP, _FROM = 38, 32, 70, 92


def pipeline_steps(
    stages: int, micro_batches: int, backward: int = 2, before: Sequence[int] = ()
) -> Drawing:
    """A step of a pipeline: the turns of each stage on one clock, idle time hatched.

    `before` are stages and micro-batches of the last picture. A step too long to draw
    is cut to fewer micro-batches, which the picture says, for it waits more than the
    whole.
    """
    m = min(micro_batches, max(1, TURNS // stages))
    schedule = pipeline_schedule(stages, m, backward=backward)
    rows = [*range(stages)]
    if stages > STAGES:  # the first and the last
        rows = [*range(STAGES // 2), *range(stages - STAGES // 2, stages)]
    scale = (_RIGHT - _FROM) / schedule.end
    banded = 2 * m * len(rows) > RECTS or scale < NARROW

    sizes = f"{units.plural(stages, 'stage')}, {units.plural(micro_batches, 'micro-batch')}"
    idle = f"idle {idle_fraction(stages, micro_batches)} of the step"
    idle = "one stage: nothing is idle" if stages == 1 else idle
    svg = text(_LEFT, 34, sizes, 18, font_weight=700)
    svg += text(_RIGHT, 34, idle, 18, "end", font_weight=700)
    svg += text(_FROM, 58, "time →", 14)
    for place, stage in enumerate(rows):
        y = _TOP + place * _ROW
        svg += text(_FROM - 12, y + 21, f"stage {stage + 1}", 14, "end")
        svg += _of_stage(schedule.of_stage(stage), schedule.end, y, scale, banded)
    floor = _TOP + len(rows) * _ROW
    if banded:
        note = "bands: one forward, one backward by turns"
    else:  # a forward turn may be too narrow for its number
        room = "" if fits(f"{m}", scale - 4, 14) else ", where there is room"
        note = f"numbers: the micro-batch{room}"
    svg += _legend(floor + 8, note) + _summed(floor + 44, schedule, before)

    # how much of the step is drawn, and what that changes
    notes = []
    if len(rows) < stages:
        notes.append(f"{len(rows)} of {stages:,} stages are shown; all wait alike.")
    if m < micro_batches:
        waits = units.percent(idle_share(stages, m))
        notes.append(
            f"{m:,} of {micro_batches:,} micro-batches are shown: so short a step "
            f"waits {waits}, more than the whole."
        )
    notes = notes or ["All stages and all micro-batches are shown."]
    for i, note in enumerate(notes):
        svg += text(_LEFT, floor + 112 + 20 * i, note, 14)

    first, last = schedule.in_flight(0), schedule.in_flight(stages - 1)
    words = (
        f"A step of a pipeline: {units.plural(stages, 'stage')} and "
        f"{units.plural(micro_batches, 'micro-batch')}, one forward and one backward by "
        f"turns. Idle {units.percent(idle_share(stages, micro_batches))} of the step. The "
        f"first stage keeps {first} at once, the last {last}. {' '.join(notes)}"
    )
    return Drawing(svg, _ACROSS, floor + 108 + 20 * len(notes), words)


def idle_fraction(stages: int, micro_batches: int) -> str:
    """The idle share as a fraction and in per cent: `3/11 = 27.3 %`."""
    share = units.percent(idle_share(stages, micro_batches))
    return f"{stages - 1:,}/{micro_batches + stages - 1:,} = {share}"


def _of_stage(turns: Sequence[Turn], end: int, y: float, scale: float, banded: bool) -> str:
    """The turns of a stage, and what is idle before, between and after them."""
    svg, clock = "", 0
    for run in _runs(turns) if banded else ([turn] for turn in turns):
        svg += _idle(clock, run[0].start, y, scale)
        svg += _busy(run, y, scale)
        clock = run[-1].end
    return svg + _idle(clock, end, y, scale)


def _runs(turns: Sequence[Turn]) -> Iterator[list[Turn]]:
    """Turns that follow each other without a gap."""
    run = [turns[0]]
    for turn in turns[1:]:
        if turn.start > run[-1].end:
            yield run
            run = []
        run.append(turn)
    yield run


def _idle(start: int, end: int, y: float, scale: float) -> str:
    if end == start:
        return ""
    x, wide = _FROM + scale * start, scale * (end - start)
    svg = rect(x, y, wide, _HIGH, GREY, "idle", opacity=0.18)
    return svg + (_slanted(x, y, wide, _HIGH) if wide > 4 else "")


def _slanted(x: float, y: float, wide: float, high: float) -> str:
    """Hatching as one path: an idle pipeline has a lot of it."""
    lines = []
    for offset in range(10, int(wide + high), 12):
        x1, y1 = x + min(offset, wide), y + max(0, offset - wide)
        x2, y2 = x + max(0, offset - high), y + min(offset, high)
        lines.append(f"M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}")
    path = "".join(lines)
    return f'<path d="{path}" stroke="currentColor" opacity="0.6"/>'


def _busy(run: Sequence[Turn], y: float, scale: float) -> str:
    """A turn with its number, or neighbouring turns as one box, forward above backward."""
    x, wide = _FROM + scale * run[0].start, scale * (run[-1].end - run[0].start)
    kinds = {turn.backward for turn in run}
    if len(kinds) == 1:
        word = "backward" if run[0].backward else "forward"
        return _turn(x, y, wide, word, run)
    share = sum(t.end - t.start for t in run if not t.backward)
    high = _HIGH * share / (run[-1].end - run[0].start)
    label = f"forward and backward by turns, {len(run)} in all"
    svg = rect(x, y, wide, high, INKS["forward"], label)
    return svg + rect(x, y + high, wide, _HIGH - high, INKS["backward"], label)


def _turn(x: float, y: float, wide: float, word: str, run: Sequence[Turn]) -> str:
    number = f"{run[0].micro_batch + 1}"
    label = f"{word} {number}" if len(run) == 1 else f"{word}, {len(run)} in a row"
    svg = rect(x, y, max(wide - 1, wide / 2), _HIGH, INKS[word], label)
    if len(run) == 1 and fits(number, wide - 4, 14):
        svg += text(x + wide / 2 - 0.5, y + 21, number, 14, "middle", "#FFFFFF")
    return svg


def _legend(y: float, note: str) -> str:
    svg, x = "", float(_FROM)
    for word in ("forward", "backward"):
        svg += rect(x, y, 14, 14, INKS[word]) + text(x + 20, y + 12, word, 14)
        x += 110
    svg += rect(x, y, 14, 14, GREY, opacity=0.18) + hatched(x, y, 14, 14, 6)
    svg += text(x + 20, y + 12, "idle", 14)
    return svg + text(_RIGHT, y + 12, note, 14, "end")


def _summed(y: float, schedule: Schedule, before: Sequence[int]) -> str:
    """All stages' time as one bar, what is idle at its end; dashed: before."""
    wide, x = _RIGHT - _FROM, float(_FROM)
    svg = text(_FROM - 12, y + 17, "in sum", 14, "end")
    for word, share in schedule.shares().items():
        label = f"{word} {units.percent(share)}"
        if word == "idle":
            svg += rect(x, y, wide * share, 24, GREY, label, opacity=0.18)
            svg += _slanted(x, y, wide * share, 24) if share else ""
        else:
            svg += rect(x, y, wide * share, 24, INKS[word], label)
            if fits(label, wide * share - 12, 14):
                svg += text(x + 8, y + 17, label, 14, fill="#FFFFFF")
        x += wide * share
    was = idle_share(*before) if before else 0
    if before and abs(was - schedule.idle) > 1e-9:
        left = _FROM + wide * (1 - was)
        svg += ghost(left, y - 4, max(wide * was, 1), 32, "idle at the start")
        label = f"dashed: idle {units.percent(was)}"
        svg += text(_RIGHT, y + 46, label, 14, "end")
    return svg
