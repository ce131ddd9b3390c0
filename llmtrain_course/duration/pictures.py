"""Pictures of chapter 03: days against GPUs, 8 or 6, a promise, a step on more GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from llmtrain_course.duration.formulas import measured_days
from llmtrain_course.kit.chart import Area, Chart, Dot, Mark, Path
from llmtrain_course.kit.drawing import COLORS, GREY
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Point, Span
from llmtrain_course.kit.layout import Below, Fact, Facts, Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_helpers import units
from llmtrain_helpers.duration import PASSES, UTILIZATIONS
from llmtrain_helpers.flops import utilization
from llmtrain_helpers.published import accelerator

BLUE, GOOD, BAD = COLORS["weights"], COLORS["useful"], COLORS["lost"]
"""What is the learner's own; what is kept, and what is not."""


# --- days against GPUs


class RunDays(NamedTuple):
    """A run in the picture: its name, GPUs and days."""

    name: str
    num_gpus: float
    days: float


SPANS = {1: "1 day", 7: "1 week", 30.44: "1 month", 365.25: "1 year", 3652.5: "10 years"}
"""The lines across the picture."""

_BAND = "at an MFU of {:.0f} to {:.0f}%, like 13 of 14 published runs".format(
    *(100 * u for u in UTILIZATIONS[::2])
)


def days_against_gpus(
    you: RunDays,
    runs: Sequence[RunDays],
    band: tuple[float, float] | None = None,
    previous: RunDays | None = None,
) -> Picture:
    """A run's dot on its line of equal GPU-hours, among the published runs.

    `band` is the least and the greatest number of days of an interval at the dot; a
    dashed ring is where the dot stood before.
    """
    x = Scale(4, 100_000, "GPUs", ticks=[10.0**k for k in range(1, 6)], log=True, grid=True)
    y = Scale(0.2, 4000, ticks=SPANS, log=True, grid=True)
    moved = previous if previous and previous[1:] != you[1:] else None
    n, days = (moved or you)[1:]
    work, span = you.num_gpus * you.days, units.duration(you.days * units.DAY)
    marks: list[Mark] = [
        Path(
            [(n, work / n) for n in (x.low, x.high)], BLUE, name="the same GPU-hours on other GPUs"
        ),
        Dot(
            you.num_gpus,
            you.days,
            BLUE,
            10,
            label=span,
            title=_words(you),
            bold=True,
            letters=16,
            moves="num_gpus",
            clip=False,
        ),
        *(
            Dot(*run[1:], GREY, 5, label=run.name, title=_words(run), name="published runs")
            for run in runs
        ),
        Dot(
            n,
            days,
            size=10,
            shape="ring",
            title=f"at the start: {_words(moved or you)}",
            name="at the start",
            hidden=not moved,
            clip=False,
        ),
    ]
    words = [f"Days against GPUs. {_words(you)}"]
    if band:
        marks.insert(0, _band(x, y, *(you.num_gpus * end for end in band)))
        low, high = (f"{units.digits(end, 2)} days" for end in band)
        words[0] += f", at the pace of published runs {low} to {high}"
    words += [f"at the start: {_words(moved)}"] if moved else []
    words += [_words(run) for run in runs]
    return Chart(x, y, marks, f"{'; '.join(words)}.", height=340)


def _band(gpus: Scale, days: Scale, least: float, greatest: float) -> Area:
    """All between two lines of GPU-days, with a corner where either leaves the plane."""
    corners = {x / end for x in (least, greatest) for end in (days.low, days.high)}
    within = sorted({gpus.low, gpus.high, *filter(gpus.holds, corners)})
    low, high = ([work / n for n in within] for work in (least, greatest))
    return Area(within, low, high, BLUE, 0.28, name=_BAND)


def _words(run: RunDays) -> str:
    span = units.duration(run.days * units.DAY)
    return f"{run.name}: {span} on {units.plural(run.num_gpus, 'GPU')}"


# --- 8 or 6

INKS = {
    "forward": COLORS["weights"],
    "backward": COLORS["gradients"],
    "again": COLORS["recomputed"],
}
"""The colours of the passes: forward meets the weights, backward makes gradients."""

WRONG = COLORS["expert"]
"""Days that do not follow, in no colour of a pass."""

_LONGEST = 140
"""Days at which the bars' scale ends; all passes are as long."""


class Count(NamedTuple):
    """What is counted: its name, its size in words, and whether the repeated pass is in it."""

    name: str
    size: str
    repeats: bool


def eight_or_six(work: Count, rate: Count, days: float, right: float, calendar: float) -> Picture:
    """Work over rate, and the days that come out, above those that the run took.

    `right` are the days where both count the same.
    """
    agree = abs(days / right - 1) < 1e-6
    verdict = "✓ the counts agree" if agree else f"✗ {off(days / right)}"
    ink = GOOD if agree else WRONG
    result = Span(0, days, ink, title="days by this count")
    took = Span(0, calendar, GREY, title="days it really ran")
    lanes = [
        Lane(work.name, [*_passes(work)], work.size, "the work", bold=True),
        Lane(f"÷ {rate.name}", [*_passes(rate)], rate.size, "all GPUs per second", bold=True),
        Lane("= days", [result], f"{units.digits(days)} days", verdict, bold=True, color=ink),
        Lane("it ran", [took], f"{units.digits(calendar)} days", "including overhead"),
    ]
    words = (
        f"The work, {work.size}, {_with(work)}, over {rate.size} of all GPUs, {_with(rate)}: "
        f"{units.digits(days)} days, {verdict[2:]}. On the calendar, the run lasted "
        f"{units.digits(calendar)} days, including overhead."
    )
    return Bars(Scale(0, _LONGEST), lanes, words, lane=40, gap=16, axis=False, keyed=False)


def _with(count: Count) -> str:
    return f"{'with' if count.repeats else 'without'} the recomputed pass"


def _passes(count: Count) -> Iterator[Span]:
    """The passes that are counted, end to end; dashed the one that is left out."""
    end, each = 0.0, _LONGEST / sum(PASSES.values())
    for name, flops in PASSES.items():
        start, end = end, end + each * flops
        if name != "again" or count.repeats:
            yield Span(start, end, INKS[name], name, name)
        else:
            yield Span(start, end, title="not counted", previous=True)
            yield Span(start, end, "none", "left out", ink="currentColor")


def off(ratio: float) -> str:
    """How far days are off, in words.

    >>> off(4 / 3), off(0.75)
    ('33% too long', '25% too short')
    """
    percent = f"{abs(ratio - 1):.0%}"
    return f"{percent} too {'long' if ratio > 1 else 'short'}"


# --- a promise, and the runs that would have broken it


def promise(
    shares: Mapping[str, float],
    promised: float,
    doubtful: Mapping[str, float],
    previous: float | None = None,
) -> Picture:
    """A line at the share of the peak that a plan promises, and the runs that kept it.

    Those that were slower are late and show no dot: lower the promise and they come.
    `doubtful` are runs whose hours are of all stages of training, always shown, hollow and
    below the others; a dashed line is what was promised before.
    """
    order = [*sorted(shares, key=lambda name: -shares[name]), *doubtful]
    lanes, listed = list[Lane](), list[str]()
    for name in order:
        counted = name in shares
        share = shares[name] if counted else doubtful[name]
        late = counted and share < promised
        value = "late" if late else units.percent(share)
        shape, color = ("dot", GOOD) if counted else ("hollow", "currentColor")
        lanes.append(
            Lane(
                name if counted else f"{name}*",
                [Point(share, color, title=name, shape=shape, hidden=late)],
                value,
                group="" if counted else "* not counted: hours of all stages",
                color=BAD if late else "currentColor",
            )
        )
        listed.append(f"{name} {value}{'' if counted else ', not counted'}")
    was = promised if previous is None else previous
    limits = [
        Limit(was, dash="5 4", hidden=was == promised),
        Limit(
            promised,
            f"promised: {units.share(promised)}",
            color=BLUE,
            width=3,
            bold=True,
            moves="percent",
        ),
    ]
    words = f"Shares of the peak over whole runs, with {units.share(promised)} promised: "
    return Bars(
        Scale(0, 0.6, "of the peak, over the whole run", units.share, grid=True),
        lanes,
        f"{words}{', '.join(listed)}.",
        limits,
        lane=13,
        gap=6,
        totals_last=True,
        phone_names=0.4,
    )


# --- more GPUs on the same batch


WAYS = {"fetched": "ZeRO-3", "shared": "PTD-P"}
"""What happens to weights, and what the paper calls it."""


def more_gpus(num_gpus: float, ways: Sequence[str]) -> Chart:
    """Days of one model on up to `num_gpus`, its weights divided in one of the `ways` or in both.

    A dashed line is where the days would be if every GPU kept the rate of the first run.
    """
    peak = accelerator("A100").peak("bf16")
    marks, listed = list[Mark](), list[str]()
    for (way, scheme), color in zip(WAYS.items(), (BAD, BLUE), strict=True):
        measured, hidden = measured_days(scheme), way not in ways
        runs = [run for run in measured if run["num_gpus"] <= num_gpus]
        days = [(run["num_gpus"], run["days"]) for run in runs]
        (n, begun), most = days[0], measured[-1]["num_gpus"]
        ideal, even = [(n, begun), (most, begun * n / most)], "if every GPU kept its first rate"
        marks.append(Path(ideal, GREY, 2, "5 4", name=even, hidden=hidden))
        marks.append(Path(days, color, name=f"{way} ({scheme})", hidden=hidden))
        timed = []
        for run in runs:
            where = f"{run['days']} days on {units.plural(run['num_gpus'], 'GPU')}"
            drags = run is runs[-1] and way == ways[0]
            marks.append(
                Dot(
                    run["num_gpus"],
                    run["days"],
                    color,
                    10 if drags else 6,
                    label=f"{run['days']} days",
                    title=f"{way}: {where}",
                    moves="num_gpus" if drags else "",
                    hidden=hidden,
                )
            )
            share = units.share(float(utilization(run["flops_per_gpu"], peak)))
            timed.append(f"{where} at {share} of the peak")
        listed += [] if hidden else [f"weights {way} ({scheme}): {', '.join(timed)}"]
    words = f"175 billion parameters on more GPUs, with {'; with '.join(listed)}."
    x = Scale(320, 1800, "GPUs", ticks=[run["num_gpus"] for run in measured], log=True, grid=True)
    y = Scale(16, 110, "days", ticks=(20, 40, 80), log=True, grid=True)
    return Chart(x, y, marks, words)


# --- one second of a GPU

SECOND = {
    "work": ("work that 6TP counts", Span(0, 0, GOOD)),
    "scores": ("attention's scores", Span(0, 0, COLORS["activations"])),
    "products": ("products below the peak", Span(0, 0, COLORS["matrix products"])),
    "memory": ("trips to memory", Span(0, 0, COLORS["memory"])),
    "sent": ("waiting for other GPUs", Span(0, 0, COLORS["data"])),
    "others": ("not explained", Span(0, 0, COLORS["restarting"])),
    "overhead": ("no step runs", Span(0, 0, hatch=True)),
}
"""The parts of a second, as the list names them, and how they look."""


def second_of_gpu(parts: Mapping[str, float], model: str) -> Picture:
    """A bar of 1,000 ms whose parts are what a GPU does in a second of a run, and their list."""
    spans, facts, start = list[Span](), list[Fact](), 0.0
    for part, share in parts.items():
        name, look = SECOND[part]
        time, end = f"{1000 * share:.0f} ms", start + 1000 * share
        label = time if share >= 0.05 and not look.hatch else ""
        spans.append(replace(look, start=start, end=end, label=label, title=name, edge=True))
        square = replace(look, name=name).swatch().draw
        facts.append(Fact(name, time, draw=square, bold=part == "work"))
        start = end
    bar = Bars(Scale(0, 1000, "ms"), [Lane("", spans, height=44)], heading=model, keyed=False)
    listed = ", ".join(f"{fact.name} {fact.value}" for fact in facts)
    return Below([bar, Facts(facts)], f"One second of a GPU that trains {model}: {listed}.")
