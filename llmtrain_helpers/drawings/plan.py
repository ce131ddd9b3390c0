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
from llmtrain_helpers.duration import first_run_days, tokens_in_time
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
    body = _chain(plan) + _time(span, plan, days, was)
    body += _memory(plan, before) + _money(plan)
    return Drawing(body, _ACROSS, 468, _told(plan, span, days))


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
    boxes = [
        ("model", *units.count(plan.parameters.active).split(" "), _met(plan)),
        ("text", *units.count(plan.run.tokens).split(" "), "tokens"),
        ("work", *units.flops(plan.total_flops).split(" "), _work(plan)),
        ("GPUs", *_gpus(plan)),
    ]
    body = ""
    for i, (head, *told) in enumerate(boxes):
        x = _LEFT + 182 * i
        body += rect(x, 16, 152, 84, rx=8, stroke=GREY, stroke_width=1.5)
        body += text(x + 9, 36, head, 15, font_weight=700)
        number, rest = " ".join(told[:-1]), told[-1]
        body += text(x + 9, 62, number, 17)
        body += text(x + 9, 86, rest, 14)
        sign = "×" if i == 0 else "→"
        body += text(x + 167, 64, sign, 20, "middle") if i < 3 else ""
    return body


def _work(plan: Plan) -> str:
    again = plan.run.recompute
    return "forward, backward" if again == "none" else f"recomputed: {again}"


def _gpus(plan: Plan) -> tuple[str, str]:
    chip, n = plan.run.accelerator.name, plan.split.num_gpus
    X = plan.run.flops_per_gpu
    at_peak = plan.total_flops / (n * plan.run.peak)
    low, high = at_peak / plan.seconds.greatest, at_peak / plan.seconds.least
    of = "of peak" if plan.split.pipeline_parallel == 1 else "with idle"
    rate = f"{100 * low:.0f}–{100 * high:.0f} % {of}"
    if plan.run.pace is not None:
        rate = f"{units.duration(plan.seconds_per_iteration.likely)} a step"
    if X is not None:
        rate = f"{units.flops_per_second(X)} each"
    return f"{units.exact(n)} × {chip.split(' ')[0]}", rate


def _time(span: Interval, plan: Plan, days: float | None, before: Interval | None) -> str:
    """The interval as a bar on an axis of days, under the days that there are."""
    known, slow = plan.measured, first_run(plan)
    longest = 1.18 * max(slow, days or 0, before.greatest if before else 0)
    step, scale = round_step(longest, 6.5), (_RIGHT - _LEFT) / longest
    head = f"{span_in_words(span)}, likely {units.duration(span.likely * units.DAY, 2)}"
    if known:
        exact = units.duration(plan.seconds.likely)
        head = f"{exact} of computing; with stops {span_in_words(span)}"
    body = text(_LEFT, 138, "time", 15, font_weight=700) + text(_LEFT + 62, 138, head)
    x, wide = _LEFT + scale * span.least, scale * (span.greatest - span.least)
    body += rect(x, 154, max(wide, 2), 30, BLUE, f"{head}", opacity=0.45)
    at = _LEFT + scale * plan.days.likely
    body += rect(at - 2.5, 150, 5, 38, BLUE, "computing" if known else "likely")
    if slow > span.greatest:
        verdict, _ = _in_time(replace(span, greatest=slow), days or slow)
        told = f"{verdict[0]} a first run" if days else "a first run"
        body += _slower(x + wide, _LEFT + scale * slow, told)
    if before and before != span:
        was = _LEFT + scale * before.least
        body += ghost(was, 150, scale * (before.greatest - before.least), 38, "at the start")
    if days:
        body += _limit(_LEFT + scale * days, span, days)
    return body + _ticks(scale, longest, step)


def first_run(plan: Plan) -> float:
    """Days that a first run of this plan may take; those of the plan where it was measured."""
    planned = float(plan.days_with_stops.greatest)
    return planned if plan.measured else float(first_run_days(planned, plan.rough.greatest))


def at_first(plan: Plan, days: float) -> str:
    """A word where only a first run would end too late; else nothing."""
    slow = first_run(plan)
    if slow <= days or plan.days_with_stops.greatest > days:
        return ""
    most = units.rounded_down(tokens_in_time(plan.run.tokens, slow, days))
    late = f"A first run may take up to {units.duration(slow * units.DAY, 2)}, too late"
    return f" ({late}: take at most {units.about(most)} tokens then.)"


def _slower(x: float, end: float, told: str) -> str:
    """A thin line from the bar to where a first run may end."""
    body = line(x, 169, end, 169, stroke=BLUE, stroke_width=2.5)
    body += line(end, 162, end, 176, stroke=BLUE, stroke_width=2.5)
    return body + text(end + 6, 174, told, 14)


def _limit(x: float, span: Interval, days: float) -> str:
    """The line of the days that there are, and whether the interval keeps it."""
    sign, ink = _in_time(span, days)
    body = line(x, 148, x, 196, stroke=ink, stroke_width=3)
    told = f"{sign}: you have {days:g} days"
    return body + text(_RIGHT, 138, told, 15, "end", font_weight=700)


def _in_time(span: Interval, days: float) -> tuple[str, str]:
    if span.greatest <= days:
        return "✓ in time", COLORS["optimizer"]
    if span.least <= days:
        return "○ perhaps", COLORS["logits"]
    return "✗ too late", COLORS["gradients"]


def _ticks(scale: float, end: float, step: float) -> str:
    y, body = 196, line(_LEFT, 196, _RIGHT, 196)
    for i in range(int(end / step) + 1):
        x = _LEFT + scale * i * step
        body += line(x, y, x, y + 6)
        told = units.digits(i * step) if step < 1 else f"{i * step:,.0f}"
        body += text(x, y + 21, f"{told} days" if i == 0 else told, 14, _anchor(i))
    return body


def _anchor(place: int) -> str:
    return "middle" if place else "start"


def _memory(plan: Plan, before: Plan | None) -> str:
    """What a GPU holds, part after part, under the line of its chip and the reserve."""
    chip, total = plan.run.accelerator.memory, plan.memory.total
    seen = [chip * 1.12, total * 1.02, before.memory.total * 1.02 if before else 0]
    scale = (_RIGHT - _LEFT) / max(seen)
    y, high, edge = 274, 38, _LEFT + scale * chip
    head = f"{units.gigabytes(total)} of {units.gigabytes(chip)}"
    body = text(_LEFT, 258, "memory of a GPU", 15, font_weight=700)
    body += text(_LEFT + 160, 258, head)
    body += text(_RIGHT, 258, _fitting(plan), 15, "end", font_weight=700)
    x, names = float(_LEFT), ""
    for word, size in parts_of(plan).items():
        wide, told = scale * size, f"{word}: {units.gigabytes(size)}"
        body += rect(x, y, max(wide - 1, 0.5), high, COLORS[word], told)
        names += _named(x, y + high / 2 + 5, wide, word, edge)
        x += wide
    free = scale * plan.reserve
    body += hatched(edge - free, y + high + 3, free, 12, 6)
    body += rect(edge - free, y + high + 3, free, 12, stroke=GREY)
    body += hatched(edge, y, x - edge, high, 12) if x > edge else ""
    if before and before.memory.total != total:
        body += ghost(_LEFT, y - 5, scale * before.memory.total, high + 5, "at the start")
    body += line(edge, y - 8, edge, y + high + 18, stroke_width=3)
    return body + names + _under(edge, free, y + high + 33) + _key(plan)


def _under(edge: float, free: float, y: float) -> str:
    """Names of the reserve and of the chip's line, on their side of it."""
    body = text(edge - free - 8, y - 19, "reserve", 14, "end")
    return body + text(min(edge, _RIGHT), y, "the chip's memory", 14, "end")


def parts_of(plan: Plan) -> dict[str, float]:
    """What a GPU holds, by the words of the course; what is there for a moment last.

    That is the logits at the loss, or elsewhere a layer that is computed again.
    """
    b, t = plan.split.micro_batch_size, plan.split.tensor_parallel
    model, c = plan.run.model, plan.split.context_parallel
    logits = 8 * b * model.sequence_length * model.vocab_size / (t * c)
    parts = {name.replace("_", " "): x for name, x in plan.memory.parts().items() if x}
    moment = parts.pop("transient", 0)
    word = "logits" if abs(moment / logits - 1) < 1e-6 else "recomputed"
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
        return f"○ tight: {units.gigabytes(plan.room)} free"
    return f"✗ {units.gigabytes(-plan.room)} too much"


def _key(plan: Plan) -> str:
    """Every part with its colour and its bytes."""
    body, x, y = "", float(_LEFT), 372.0
    for word, size in parts_of(plan).items():
        told = f"{word} {units.gigabytes(size)}"
        wide = 22 + 7.8 * len(told) + 14
        if x + wide > _RIGHT + 14:
            x, y = float(_LEFT), y + 24
        body += rect(x, y - 12, 14, 14, COLORS[word])
        body += text(x + 20, y, told, 14)
        x += wide
    return body


def _met(plan: Plan) -> str:
    """Of experts, the parameters that work on a token."""
    few = plan.parameters.active < plan.parameters.total
    return "active parameters" if few else "parameters"


def _money(plan: Plan) -> str:
    """GPU-hours and dollars, stops included: a GPU that waits costs as much."""
    hours = plan.days_with_stops.times(24 * plan.split.num_gpus)
    ends = [units.about(x, units.count) for x in (hours.least, hours.greatest)]
    told = f"{_from_to(ends)} GPU-hours"
    price = plan.run.price_per_gpu_hour
    if price is not None:
        paid, price = hours.times(price), units.dollars(price)
        ends = [units.about(x, units.dollars) for x in (paid.least, paid.greatest)]
        told += f" at {price}: {_from_to(ends)}"
    body = text(_LEFT, 440, "cost", 15, font_weight=700)
    return body + text(_LEFT + 62, 440, told, 15)


def _told(plan: Plan, span: Interval, days: float | None) -> str:
    """The plan in words."""
    n, chip = plan.split.num_gpus, plan.run.accelerator
    parts = (f"{word} {units.gigabytes(x)}" for word, x in parts_of(plan).items())
    limit, slow = "", first_run(plan)
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


def _sentence(told: str) -> str:
    """A verdict without its sign, to begin a sentence with."""
    return told[2:3].upper() + told[3:]


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
    rows, scale = _rows(stages), (_RIGHT - _FROM) / schedule.end
    many = 2 * m * len(rows) > RECTS or scale < NARROW
    body = _headline(stages, micro_batches, schedule)
    for place, stage in enumerate(rows):
        y = _TOP + place * _ROW
        body += text(_FROM - 12, y + 21, f"stage {stage + 1}", 14, "end")
        body += _of_stage(schedule.of_stage(stage), schedule.end, y, scale, many)
    floor = _TOP + len(rows) * _ROW
    body += _legend(floor + 8, _note(m, scale, many))
    body += _summed(floor + 44, schedule, before)
    words = _in_words(stages, micro_batches, schedule, rows)
    for i, told in enumerate(_seen(stages, micro_batches, m, rows)):
        body += text(_LEFT, floor + 112 + 20 * i, told, 14)
    return Drawing(body, _ACROSS, floor + 128 + 20 * i, words)


def _rows(stages: int) -> list[int]:
    """Which stages are drawn: all, or the first and the last."""
    if stages <= STAGES:
        return [*range(stages)]
    half = STAGES // 2
    return [*range(half), *range(stages - half, stages)]


def idle_fraction(stages: int, micro_batches: int) -> str:
    """The idle share as a fraction and in per cent: `3/11 = 27.3 %`."""
    share = units.percent(idle_share(stages, micro_batches))
    return f"{stages - 1:,}/{micro_batches + stages - 1:,} = {share}"


def _headline(stages: int, micro_batches: int, schedule: Schedule) -> str:
    told = f"{_many(stages, 'stage')}, {_many(micro_batches, 'micro-batch')}"
    if stages == 1:
        says = "one stage: nothing is idle"
    else:
        says = f"idle {idle_fraction(stages, micro_batches)} of the step"
    body = text(_LEFT, 34, told, 18, font_weight=700)
    body += text(_RIGHT, 34, says, 18, "end", font_weight=700)
    return body + text(_FROM, 58, "time →", 14)


def _many(number: int, word: str) -> str:
    plural = "es" if word.endswith("h") else "s"
    return f"{number:,} {word}{plural if number > 1 else ''}"


def _of_stage(turns: Sequence[Turn], end: int, y: float, scale: float, many: bool) -> str:
    """The turns of a stage, and what is idle before, between and after them."""
    body, clock = "", 0
    for run in _runs(turns) if many else ([turn] for turn in turns):
        body += _idle(clock, run[0].start, y, scale)
        body += _busy(run, y, scale)
        clock = run[-1].end
    return body + _idle(clock, end, y, scale)


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
    body = rect(x, y, wide, _HIGH, GREY, "idle", opacity=0.18)
    return body + (_slanted(x, y, wide, _HIGH) if wide > 4 else "")


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
    """One turn with its number; or neighbours as one, forward above backward."""
    x, wide = _FROM + scale * run[0].start, scale * (run[-1].end - run[0].start)
    kinds = {turn.backward for turn in run}
    if len(kinds) == 1:
        word = "backward" if run[0].backward else "forward"
        return _turn(x, y, wide, word, run)
    share = sum(t.end - t.start for t in run if not t.backward)
    high = _HIGH * share / (run[-1].end - run[0].start)
    told = f"forward and backward by turns, {len(run)} in all"
    body = rect(x, y, wide, high, INKS["forward"], told)
    return body + rect(x, y + high, wide, _HIGH - high, INKS["backward"], told)


def _turn(x: float, y: float, wide: float, word: str, run: Sequence[Turn]) -> str:
    number = f"{run[0].micro_batch + 1}"
    told = f"{word} {number}" if len(run) == 1 else f"{word}, {len(run)} in a row"
    body = rect(x, y, max(wide - 1, wide / 2), _HIGH, INKS[word], told)
    if len(run) == 1 and fits(number, wide - 4, 14):
        body += text(x + wide / 2 - 0.5, y + 21, number, 14, "middle", "#FFFFFF")
    return body


def _note(m: int, scale: float, many: bool) -> str:
    """What the turns bear; a forward turn may be too narrow for its number."""
    if many:
        return "bands: one forward, one backward by turns"
    room = "" if fits(f"{m}", scale - 4, 14) else ", where there is room"
    return f"numbers: the micro-batch{room}"


def _legend(y: float, note: str) -> str:
    body, x = "", float(_FROM)
    for word in ("forward", "backward"):
        body += rect(x, y, 14, 14, INKS[word]) + text(x + 20, y + 12, word, 14)
        x += 110
    body += rect(x, y, 14, 14, GREY, opacity=0.18) + hatched(x, y, 14, 14, 6)
    body += text(x + 20, y + 12, "idle", 14)
    return body + text(_RIGHT, y + 12, note, 14, "end")


def _summed(y: float, schedule: Schedule, before: Sequence[int]) -> str:
    """All stages' time as one bar, what is idle at its end; dashed: before."""
    wide, x = _RIGHT - _FROM, float(_FROM)
    body = text(_FROM - 12, y + 17, "in sum", 14, "end")
    for word, share in schedule.shares().items():
        told = f"{word} {units.percent(share)}"
        if word == "idle":
            body += rect(x, y, wide * share, 24, GREY, told, opacity=0.18)
            body += _slanted(x, y, wide * share, 24) if share else ""
        else:
            body += rect(x, y, wide * share, 24, INKS[word], told)
            body += _inside(x, y, wide * share, told)
        x += wide * share
    was = idle_share(*before) if before else 0
    if before and abs(was - schedule.idle) > 1e-9:
        left = _FROM + wide * (1 - was)
        body += ghost(left, y - 4, max(wide * was, 1), 32, "idle at the start")
        told = f"dashed: idle {units.percent(was)}"
        body += text(_RIGHT, y + 46, told, 14, "end")
    return body


def _inside(x: float, y: float, wide: float, told: str) -> str:
    if not fits(told, wide - 12, 14):
        return ""
    return text(x + 8, y + 17, told, 14, fill="#FFFFFF")


def _seen(stages: int, micro_batches: int, m: int, rows: Sequence[int]) -> list[str]:
    """How much of the step is drawn, and what that changes."""
    told = []
    if len(rows) < stages:
        told.append(f"{len(rows)} of {stages:,} stages are shown; all wait alike.")
    if m < micro_batches:
        drawn = units.percent(idle_share(stages, m))
        told.append(
            f"{m:,} of {micro_batches:,} micro-batches are shown: so short a step "
            f"waits {drawn}, more than the whole."
        )
    return told or ["All stages and all micro-batches are shown."]


def _in_words(stages: int, micro_batches: int, schedule: Schedule, rows: Sequence[int]) -> str:
    """The step in words."""
    first, last = schedule.in_flight(0), schedule.in_flight(stages - 1)
    idle = units.percent(idle_share(stages, micro_batches))
    seen = _seen(stages, micro_batches, schedule.micro_batches, rows)
    return (
        f"A step of a pipeline: {_many(stages, 'stage')} and "
        f"{_many(micro_batches, 'micro-batch')}, one forward and one backward by "
        f"turns. Idle {idle} of the step. The first stage keeps {first} at once, the "
        f"last {last}. {' '.join(seen)}"
    )
