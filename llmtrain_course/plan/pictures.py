"""Pictures of chapter 09: days and bytes against what there is, a promise, and the decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import hypot, log, sqrt
from typing import NamedTuple

from llmtrain_course.kit.chart import Area, Band, Chart, Dot, Mark, Path
from llmtrain_course.kit.drawing import COLORS, GREY, round_step
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Point, Span
from llmtrain_course.kit.layout import (
    BESIDE,
    SMALL,
    Below,
    Diagram,
    Fact,
    Picture,
    Swatch,
    list_facts,
    patch,
)
from llmtrain_course.kit.scale import Scale
from llmtrain_course.plan.formulas import in_time
from llmtrain_helpers import units
from llmtrain_helpers.checks import Result
from llmtrain_helpers.duration import gpu_hours
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.results import Interval
from research.utilizations import OtherRun

BLUE, RED = COLORS["weights"], COLORS["gradients"]
"""What's the learner's own, or a whole run; and runs whose hours are less certain."""

REACH = 1.6
"""How far an axis goes, in multiples of what there is."""


def _axis(most: float, unit: str) -> Scale:
    """A scale from 0, with the unit at its last number."""
    step = round_step(most, 7)
    ticks = [step * i for i in range(int(most / step) + 1)]
    labels = {tick: f"{tick:,.10g}" for tick in ticks}
    return Scale(0, most, ticks=labels | {ticks[-1]: f"{labels[ticks[-1]]} {unit}"})


def format_span(span: Interval) -> str:
    """Format an estimate from its least to its greatest, in two digits, with one unit."""
    least, greatest = (format_days(days) for days in (span.least, span.greatest))
    if least == greatest:
        return least
    if least.partition(" ")[2] == greatest.partition(" ")[2]:
        least = least.split()[0]
    return f"{least} to {greatest}"


def format_days(days: float) -> str:
    """Format a time in two digits: in days from one day on, so that years compare with months."""
    if days < 1:
        return units.duration(days * units.DAY, 2)
    return f"{units.digits(days, 2)} days"


# --- two answers: days and bytes, against what there is


def answers(plan: Plan, days: float, before: Plan | None = None) -> Picture:
    """The days of a run and the bytes on a GPU, each as a bar against what there is.

    The bar of days ends with what may be promised, `Plan.first_run`. Dashed outlines
    show the plan `before`.
    """
    words = (
        f"{_time_in_words(plan, days)} Each GPU needs {units.gigabytes(plan.memory.total)} of "
        f"{units.gigabytes(plan.card)} at the {plan.phase}: "
        f"{', '.join(f'{word} {units.gigabytes(x)}' for word, x in parts_of(plan).items())}. "
        f"{_capitalized(memory_verdict(plan))}."
    )
    return Below([_time(plan, days, before), memory_bar(plan, before)], words, gap=8)


def _capitalized(verdict: str) -> str:
    """Begin a sentence with a verdict, without its sign."""
    return verdict[2].upper() + verdict[3:]


def time_verdict(plan: Plan, days: float) -> str:
    """The verdict on whether the promise keeps the days that there are, with its sign."""
    promise = format_days(plan.first_run.greatest)
    if plan.first_run.greatest > 2 * days:
        times = units.digits(plan.first_run.greatest / days, 2)
        return f"✗ {promise}: {times}× your {days:,g}"
    if in_time(plan, days):
        return f"✓ {promise}: in time"
    if plan.days.likely <= days:
        return f"○ {promise}: perhaps too late"
    return f"✗ {promise}: too late"


def _time_in_words(plan: Plan, days: float) -> str:
    middle, end = MEASURED if plan.measured else OTHERS
    expected, latest = format_days(plan.days.likely), format_days(plan.first_run.greatest)
    times = f"Expected: {expected}, {middle}. To promise: {latest}, {end}."
    return f"{times} You have {days:,g} days."


OTHERS = "the middle of other runs", "their slow end"
MEASURED = "with the usual overhead", "with the worst overhead"
"""What the days expected are, and the days to promise: before a step is measured, and after."""


def _time(plan: Plan, days: float, before: Plan | None) -> Picture:
    """The days up to the promise as a bar, against those that there are."""
    axis, promise = _axis(REACH * days, "days"), plan.first_run.greatest
    spans = [*_spent(plan, axis)]
    if before and before.first_run.greatest != promise:
        spans.append(Span(0, before.first_run.greatest, title="before", previous=True))
    return Bars(
        axis,
        [Lane("", spans, cuts=True)],
        limits=[Limit(days, f"you have {days:,g} days", width=3)],
        heading="days to promise",
        verdict=time_verdict(plan, days),
    )


def _spent(plan: Plan, axis: Scale) -> Iterator[Span]:
    """The days expected, and after them those up to the promise."""
    clauses, longest = MEASURED if plan.measured else OTHERS, MEASURED[0]
    ends, start = (plan.days.likely, plan.first_run.greatest), 0.0
    for word, end, clause, opacity in zip(TIMES, ends, clauses, (1.0, 0.4), strict=True):
        title, hidden = f"{word}: {format_days(end)}", start >= min(end, axis.high)
        span = Span(start, end, BLUE, title=title, name=f"{word}: {clause}", opacity=opacity)
        yield replace(span, longest=f"{word}: {longest}", hidden=hidden)
        start = end


TIMES = "expected", "to promise"
"""The two times that a plan answers with."""


def memory_bar(plan: Plan, before: Plan | None) -> Picture:
    """What a GPU holds, part after part, against the chip's memory and its reserve."""
    chip, end, parts = float(plan.card) / 1e9, 0.0, parts_of(plan)
    reserve = Span(chip - plan.reserve / 1e9, chip, title="the reserve", hatch=True)
    spans = [reserve]
    for word, size in parts.items():
        start, end = end, end + size / 1e9
        title = f"{word}: {units.gigabytes(size)}"
        spans.append(Span(start, end, _color(word), word, title))
    if before and before.memory.total != plan.memory.total:
        spans.append(Span(0, before.memory.total / 1e9, title="before", previous=True))
    passing = next((word for word in _PASSING.values() if word in parts), _PASSING["loss"])
    keyed = [_keyed(word, parts.get(word, 0.0)) for word in _STATES]
    keyed += [_keyed(word, parts.get(word)) for word in (passing, "main gradients")]
    keyed.insert(len(_STATES), replace(reserve, name="reserve").swatch())
    return Bars(
        _axis(REACH * chip, "GB"),
        [Lane("", spans, cuts=True)],
        limits=[Limit(chip, f"the chip has {units.gigabytes(plan.card)}", width=3)],
        heading=f"memory of a GPU, at the {plan.phase}",
        verdict=memory_verdict(plan),
        extra=keyed,
    )


_STATES = "weights", "gradients", "main weights", "optimizer", "activations", "logits"
"""The parts that most plans have. The key has a place for each, so that nothing jumps."""


def _keyed(word: str, size: float | None) -> Swatch:
    """A part in the key, if it's there, with room for a size that's as long as any other."""
    label = f"{word} {units.gigabytes(size or 0)}"
    return patch(_color(word), label, hidden=size is None)._replace(longest=f"{word} 0.00 MB")


def parts_of(plan: Plan) -> dict[str, float]:
    """What a GPU holds at its fullest moment, by the words of the course; what passes last.

    At the loss that is logits, and the embedding and head that ZeRO 3 gathers; in a layer
    what is computed again, its gradients and what is gathered; at the update a copy.
    """
    memory = plan.memory
    parts = {name.replace("_", " "): x for name, x in memory.parts().items() if name != "transient"}
    parts |= {"logits": memory.logits, _PASSING[plan.phase]: memory.transient - memory.logits}
    return {word: x for word, x in parts.items() if x}


_PASSING = {"loss": "gathered", "last layer": "at work", "first layer": "at work", "update": "copy"}
"""What is there for a moment beside the logits."""


def _color(part: str) -> str:
    """The colour of a part of memory; what passes has that of what is computed again."""
    return COLORS["recomputed" if part in _PASSING.values() else part]


def memory_verdict(plan: Plan) -> str:
    """The verdict on whether a plan fits with its reserve, with its sign and its bytes."""
    if plan.fits:
        return f"✓ fits, {units.gigabytes(plan.free_memory)} free"
    if plan.tight:
        return f"○ tight, {units.gigabytes(max(plan.free_memory, 0))} free"
    return f"✗ {units.gigabytes(-plan.free_memory)} too much"


# --- a promise, before and after a step is measured


def promise(plan: Plan, others: Sequence[OtherRun], days: float) -> Picture:
    """What others took, in days of this plan, above what may be promised of it.

    A measured step makes the others fade: they say nothing any more.
    """
    axis, faint = _axis(75, "days"), 0.25 if plan.measured else 1.0
    lanes = [
        Lane(
            "",
            [*_dots(others, faint)],
            group="published runs, in days of yours",
            piled=True,
            height=76,
        ),
        Lane(
            "", [*_spent(plan, axis)], group=f"to promise: {format_days(plan.first_run.greatest)}"
        ),
    ]
    last = others[-1]
    words = (
        f"{len(others)} published runs would have taken {format_days(others[0].days)} "
        f"({others[0].name}) to {format_days(last.days)} ({last.name}) for this plan. "
        f"{_time_in_words(plan, days)}"
    )
    return Bars(axis, lanes, words, [Limit(days, f"you have {days:g} days", width=3)])


def _dots(others: Sequence[OtherRun], opacity: float) -> Iterator[Point]:
    """A dot for each run at its days; the two slowest have their names."""
    *_, slow, last = others
    names = {slow.name: slow.name, last.name: f"{last.name} →"}
    for run in others:
        kind = (BLUE, "a whole run") if run.whole else (RED, "less certain")
        title, label = f"{run.name}: {format_days(run.days)}", names.get(run.name, "")
        color, name = kind
        yield Point(run.days, color, label, title, name, size=4.5, opacity=opacity)


# --- the decision: a model and its tokens


class Release(NamedTuple):
    """A model that somebody trained: its parameters and its tokens."""

    name: str
    parameters: float
    tokens: float


LANDMARKS = "GPT-3 175B", "Llama 3.1 8B", "Chinchilla 70B", "Pythia 12B"
"""The published models whose names stand on the map."""

SIZES, TOKENS = (4e8, 7e11), (1e10, 5e13)
"""The ends of the map's axes."""


def decision_map(
    plans: Mapping[str, Plan],
    name: str,
    tokens: float,
    days: float,
    price: float,
    releases: Sequence[Release],
) -> Picture:
    """Model size against tokens: what the days allow and what fits, published models, and yours.

    `plans` has a plan for each model by its name, the smallest first. Their tokens don't matter:
    memory is the same for any, and days are proportional to them. `name` and `tokens` are yours,
    `price` is that of a GPU-hour.
    """
    longest = f"nearest: {max((x.name for x in releases), key=len)}, 15.0T tokens"
    own, size = plans[name], float(plans[name].parameters.total)
    nearest = min(releases, key=lambda x: hypot(log(x.parameters / size), log(x.tokens / tokens)))
    span, time = own.first_run.times(tokens / own.run.tokens), f"{days:g} days"
    good = bool(own.fits) and bool(in_time(own, days * own.run.tokens / tokens))
    limits = _border(plans, lambda plan: plan.first_run_tokens(days))
    expected = _border(plans, lambda plan: plan.run.tokens * days / plan.days.likely)
    xs, most = zip(*limits, strict=True)
    end = xs[-1]
    ring = Dot(nearest.parameters, nearest.tokens, GREY, 9, "hollow", title="the nearest to yours")
    ring = replace(ring, name=f"nearest: {nearest.name}, {units.size(nearest.tokens)} tokens")
    marks: list[Mark] = [
        Area(xs, [TOKENS[0]] * len(xs), most, BLUE, 0.16, title="in time, and it fits"),
        Band(end, SIZES[1], GREY, hatch=True, name="doesn't fit", hidden=end == SIZES[1]),
        Path(
            expected, BLUE, 2, opacity=0.5, name=f"{time}, {TIMES[0]}", longest="365 days, expected"
        ),
        Path(limits, BLUE, 4, name=f"{time}, {TIMES[1]}", longest="365 days, to promise"),
        *map(_released, releases),
        Path([(N, 20 * N) for N in SIZES], GREY, 2, "7 5", name="20 tokens per parameter"),
        replace(ring, longest=longest),
        Dot(size, tokens, BLUE if good else RED, 10, title="yours", moves="size tokens"),
    ]
    memory = units.gigabytes(own.memory.total).removesuffix(" GB")
    dollars = price * gpu_hours(span.greatest * units.DAY, own.split.num_gpus)
    columns = [
        [
            Fact(f"{name} on {units.short(tokens)}", size=SMALL, bold=True),
            Fact(f"{units.digits(tokens / size, 2)} tokens per parameter", size=SMALL),
        ],
        [
            Fact(TIMES[0], format_days(span.likely), size=SMALL),
            Fact(TIMES[1], format_days(span.greatest), size=SMALL, bold=True),
        ],
        [
            Fact("memory", f"{memory} of {units.gigabytes(own.card)}", size=SMALL),
            Fact("set aside", units.about(dollars, units.dollars), size=SMALL),
        ],
    ]
    words = (
        f"Model size against tokens, on {units.plural(own.split.num_gpus, 'GPU')}. In {time} you "
        f"can promise {name} {units.count(own.first_run_tokens(days), 2)} tokens. "
        f"Yours: {units.count(tokens)}, {format_days(span.greatest)}, {memory_verdict(own)}."
    )
    across = Scale(*SIZES, "parameters", units.size, log=True)
    upwards = Scale(*TOKENS, "tokens", units.size, log=True)
    chart = Chart(across, upwards, marks, height=230)
    return Below([chart, Diagram(partial(_in_columns, columns))], words, gap=8)


def _in_columns(
    columns: Sequence[Sequence[Fact]], left: float, top: float, width: float
) -> tuple[str, float]:
    """The facts of the map next to each other, or on a phone below each other."""
    if width < BESIDE:
        return list_facts([fact for facts in columns for fact in facts], left, top, width, 290)
    svg, low = "", top
    for facts, (begin, end) in zip(columns, ((0, 213), (228, 433), (450, 656)), strict=True):
        drawn, low = list_facts(facts, left + begin, top, end - begin, end - begin)
        svg += drawn
    return svg, low


def _border(
    plans: Mapping[str, Plan], tokens_of: Callable[[Plan], Result]
) -> list[tuple[float, float]]:
    """Each model that fits with the most tokens, from the axis to where no model fits any more.

    Beyond the smallest and the largest one, a model is taken to be as fast in FLOPs.
    """
    sizes = [float(plan.parameters.total) for plan in plans.values()]
    line = [(N, float(tokens_of(x))) for N, x in zip(sizes, plans.values(), strict=True) if x.fits]
    (small, many), (large, few) = line[0], line[-1]
    beyond = [N for N in sizes if large < N]
    end = sqrt(large * beyond[0]) if beyond else SIZES[1]
    return [(SIZES[0], many * small / SIZES[0]), *line, (end, few * large / end)]


def _released(model: Release) -> Dot:
    """A published model as a dot; those that people know have their names."""
    label = model.name if model.name in LANDMARKS else ""
    title = f"{model.name}: {units.count(model.tokens)} tokens"
    dot = Dot(model.parameters, model.tokens, GREY, 3, label=label, title=title)
    return replace(dot, name="published")
