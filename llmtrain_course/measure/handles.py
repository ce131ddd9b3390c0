"""Chapter 11: the panel of a step on a simulated clock; handles of what was recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from llmtrain_course.kit import controls, panel as common
from llmtrain_course.measure.clock import ENOUGH, StepClock, Times, times
from llmtrain_course.measure.pictures import (
    ACROSS,
    NARROW,
    WIDE,
    format_ratio,
    one_product,
    one_step,
    predicted_step,
    step_by_the_clock,
    timed_steps,
)
from llmtrain_course.measure.recorded import WIDTHS, product_rates, recorded_step
from llmtrain_course.measure.trace import Trace, recorded_trace
from llmtrain_helpers import published, units
from llmtrain_helpers.batch import StepTime


@dataclass(frozen=True)
class Setting:
    """A step by its parts; all times in milliseconds, the slowest GPU in per cent."""

    micro_batch_size: int
    accumulation: int
    loading: float
    exchange: float
    overhead: float
    computing: float
    update: float
    overlap: bool
    slowest: int

    @property
    def clock(self) -> StepClock:
        """The clock of such steps, in seconds."""
        return StepClock(
            StepTime(self.overhead / 1e3, 1e3 / self.computing),
            loading=self.loading / 1e3,
            exchange=self.exchange / 1e3,
            update=self.update / 1e3,
            overlap=self.overlap,
            slowest=self.slowest / 100,
        )

    @property
    def step(self) -> tuple[StepClock, int, int]:
        """What a drawing of a step takes."""
        return self.clock, self.micro_batch_size, self.accumulation


_SETTINGS = {
    "A small micro-batch": Setting(2, 1, 1, 20, 20, 5, 10, True, 100),
    "A slow loader": Setting(8, 1, 20, 20, 20, 5, 10, True, 100),
    "A slow link": Setting(8, 1, 1, 200, 20, 5, 10, True, 100),
    "A slow neighbour": Setting(32, 1, 1, 20, 20, 5, 10, True, 150),
    "Busy": Setting(64, 4, 1, 20, 20, 5, 10, True, 100),
}

_LOADING = common.Control(
    "Loading",
    "Time in which the loader makes one sequence ready.",
    unit="ms a sequence",
    least=0.1,
    most=10_000,
    whole=False,
    stops=controls.steps(0.1, 50, 1, 2, 5),
)

_UPDATE = common.Control(
    "Update",
    "Time of the optimizer, once a step.",
    unit="ms",
    least=0.01,
    most=10_000,
    whole=False,
    more=True,
)

_CONTROLS = {
    "micro_batch_size": replace(
        controls.MICRO_BATCH,
        help="Sequences in each pass.",
        unit="sequences",
        most=100_000,
        stops=controls.doublings(1, 128),
    ),
    "accumulation": common.Control(
        "Accumulation",
        "Passes before the weights are updated.",
        unit="in a row",
        most=10_000,
        stops=controls.doublings(1, 64),
    ),
    "loading": _LOADING,
    "exchange": common.Control(
        "Exchange",
        "Time that the gradients are on their way, once a step.",
        unit="ms",
        least=0.1,
        most=100_000,
        whole=False,
        stops=controls.steps(1, 1000, 1, 2, 5),
        more=True,
    ),
    "overhead": replace(
        _UPDATE,
        label="Fixed part of a pass",
        help="Time of a pass that does not grow with the micro-batch.",
    ),
    "computing": replace(
        _UPDATE,
        label="Computing",
        help="Time that each sequence adds to a pass.",
        unit=_LOADING.unit,
    ),
    "update": _UPDATE,
    "overlap": common.Control(
        "Gradients travel beside backward",
        "Off: they wait until the last backward has ended.",
        "flag",
        more=True,
    ),
    "slowest": common.Control(
        "Slowest GPU's pass",
        "How long it takes, in per cent of this GPU's; all wait for it.",
        unit="%",
        least=100,
        most=1000,
        more=True,
    ),
}


def render(setting: Setting, before: Setting | None = None, width: int = WIDE) -> str:
    """The panel's answer as HTML: sentence, pictures, table, and the call in code."""
    picture = step_by_the_clock(*setting.step, before.step if before else (), width)
    code = (
        f"clock = StepClock(StepTime({setting.overhead:g}e-3, 1e3 / {setting.computing:g}),\n"
        f"    loading={setting.loading:g}e-3, exchange={setting.exchange:g}e-3, "
        f"update={setting.update:g}e-3,\n"
        f"    overlap={setting.overlap}, slowest={setting.slowest / 100:g})\n"
        f"clock.throughput({setting.micro_batch_size}, {setting.accumulation})"
    )
    clock_import = "from llmtrain_course.measure.clock import StepClock"
    return "".join(
        [
            common.sentence(_sentence(setting, before)),
            f"<div>{picture.inline_svg()}</div>",
            common.folded("The numbers", _table(setting)),
            common.folded("In code", common.call(code, clock_import)),
        ]
    )


_WAITS = {
    "data": "it waits for <b>data</b>: with the same data again it makes",
    "other GPUs": "it waits for <b>other GPUs</b>: alone it makes",
    "fixed costs": "it pays <b>fixed costs</b>: with twice the micro-batch it makes",
}


def _sentence(setting: Setting, before: Setting | None) -> str:
    clock, b, k = setting.step
    experiments = clock.experiments(b, k)
    result = f"<b>{units.digits(experiments.as_it_is)} sequences a second</b>"
    if before:
        previous = before.clock.throughput(before.micro_batch_size, before.accumulation)
        if previous != experiments.as_it_is:
            result += f" (dashed: {units.digits(previous)})"
    cause = experiments.verdict
    if cause == "computing":
        return f"{result}: it is <b>computing</b>; no single change gains a tenth."
    result += f": {_WAITS[cause]} {experiments.gains()[cause]:.2f} times as many."
    if cause == "other GPUs":
        return result + _link_or_neighbour(clock.waits_for_others(b, k))
    second, gain = experiments.ranked()[1]
    return result + (f" Next: {second}, × {gain:.2f}." if gain >= ENOUGH else "")


def _link_or_neighbour(waits: dict[str, float]) -> str:
    """Which of the two takes more of a step."""
    link, passes = (f"{units.digits(1e3 * seconds)} ms" for seconds in waits.values())
    cause = max(waits, key=lambda name: waits[name])
    return (
        f" In a step it waits {link} for the link, and {passes} because another"
        f" GPU's passes take longer: mostly for <b>{cause}</b>."
    )


def _table(setting: Setting) -> str:
    clock, b, k = setting.step
    step = clock.parts(b, k)
    parts = {
        "passes, forward and backward": step.passes,
        "update": step.update,
        "waiting for other GPUs": step.others,
        "waiting for data": step.data,
        "a step": step.total,
    }
    rows = [
        [name, f"{units.digits(seconds * 1e3)} ms", units.percent(seconds / step.total)]
        for name, seconds in parts.items()
    ]
    note = "<p>A simulated clock: these are nobody's measured times.</p>"
    return common.table(["", "time", "share"], rows) + note


PANEL = common.Panel(
    "What does a step wait for?",
    _CONTROLS,
    _SETTINGS,
    ("A slow loader", "A slow link"),
    render,
    partial(render, width=NARROW),
    captioned=True,
)


# --- handles of what one machine did


@dataclass(frozen=True)
class Product:
    """Two square matrices, by their rows."""

    size: int = 16


def _draw_product(now: Product, before: Product | None, width: int = ACROSS) -> str:
    rates = product_rates()
    sizes = [size for size in rates if size <= now.size]
    size, best = sizes[-1], max(rates[size] for size in sizes)
    text = f"<b>{units.flops_per_second(rates[size])}</b> at {size} × {size}"
    if size < max(rates):
        text += ". What do larger ones reach?"
    else:
        text += f". The best of all is {units.flops_per_second(best)}: call that the peak."
    return common.pictured(one_product(rates, size, width), text)


ONE_PRODUCT = common.Handle(
    title="The rate of one product",
    controls={
        "size": common.Control(
            "Rows and columns",
            "The size of both matrices that are multiplied.",
            least=16,
            most=1024,
            stops=controls.doublings(16, 1024),
            play=True,
        )
    },
    settings={"": Product()},
    draw=_draw_product,
    narrow=partial(_draw_product, width=NARROW),
)

_WIDTH = common.Control(
    "Hidden size",
    "How wide the small GPT is; everything else stays.",
    least=min(WIDTHS),
    most=max(WIDTHS),
    stops=WIDTHS,
)


def _recorded_width(hidden_size: int) -> int:
    """The nearest width that was recorded."""
    return min(WIDTHS, key=lambda width: abs(width - hidden_size))


@dataclass(frozen=True)
class OpenParts:
    """A width of the small GPT, and how many parts of its measured step are open."""

    opened: int = 0
    hidden_size: int = 256


def _draw_parts(now: OpenParts, before: OpenParts | None, width: int = ACROSS) -> str:
    step = recorded_step(_recorded_width(now.hidden_size))
    texts = (
        f"The FLOPs of this step take {units.digits(1e3 * step.ideal)} ms at the peak. How long "
        "does the step itself take?",
        f"The products of the step take {format_ratio(step.products / step.ideal)} the "
        f"prediction, so they run at {units.share(step.ideal / step.products)} of the peak.",
        f"What is between them is in no FLOP count. It takes "
        f"{format_ratio(step.others / step.ideal)} the prediction.",
        f"<b>The step takes {format_ratio(step.ratio)} the prediction</b>, which is "
        f"{units.share(1 / step.ratio)} of the peak.",
    )
    return common.pictured(predicted_step(step, now.opened, width), texts[now.opened])


PREDICTED_STEP = common.Handle(
    book=({"opened": 3}, {"opened": 3, "hidden_size": 64}),
    title="A step, predicted and measured",
    controls={
        "opened": common.Control(
            "Open",
            "How many parts of the measured step are shown.",
            unit="of 3 parts",
            least=0,
            most=3,
            stops=(0, 1, 2, 3),
            play=True,
        ),
        "hidden_size": _WIDTH,
    },
    settings={"": OpenParts()},
    draw=_draw_parts,
    narrow=partial(_draw_parts, width=NARROW),
)


@dataclass(frozen=True)
class TimedSteps:
    """The steps of a series that are left out, and how many after them are timed."""

    left_out: int = 0
    repeats: int = 2
    series: str = "first"

    @property
    def seconds(self) -> list[float]:
        """All thirty steps of the series."""
        number = 1 + SERIES.index(self.series)
        return [row["seconds"] for row in published.rows("step_times") if row["series"] == number]

    @property
    def timing(self) -> Times:
        """The steps that are timed, behind those left out."""
        return times(self.seconds[: self.left_out + self.repeats], self.left_out)


SERIES = ("first", "second", "third")
"""The three series of the same step."""


def _draw_timed(now: TimedSteps, before: TimedSteps | None, width: int = ACROSS) -> str:
    timing = now.timing
    text = (
        f"You report <b>{units.digits(1e3 * timing.median)} ms</b>, the median of "
        f"{units.plural(len(timing.seconds), 'step')}, with {now.left_out or 'none'} left out."
    )
    return common.pictured(timed_steps(now.seconds, timing, width), text)


TIMED_STEPS = common.Handle(
    book=({}, {"left_out": 10, "repeats": 20}),
    title="The same step, thirty times",
    controls={
        "left_out": common.Control(
            "Left out",
            "Steps at the beginning that are not timed.",
            unit="steps",
            least=0,
            most=10,
            stops=tuple(range(11)),
        ),
        "repeats": common.Control(
            "Timed",
            "Steps behind those left out whose median is reported.",
            unit="steps",
            least=2,
            most=20,
            stops=(2, 3, 5, 7, 10, 15, 20),
        ),
        "series": controls.choice("Series", "Which run of the same program.", SERIES),
    },
    settings={"": TimedSteps()},
    draw=_draw_timed,
    narrow=partial(_draw_timed, width=NARROW),
)


@dataclass(frozen=True)
class StepMoment:
    """A moment of a recorded step, and how its gradients travel."""

    moment: int = 70
    way: str = "beside backward"

    @property
    def trace(self) -> Trace:
        """The step as it was recorded."""
        return recorded_trace(self.way.split()[0])


WAYS = ("beside backward", "after backward")


def _draw_moment(now: StepMoment, before: StepMoment | None, width: int = ACROSS) -> str:
    trace, until = now.trace, now.moment / 1e3
    longest = max(recorded_trace(way.split()[0]).seconds for way in WAYS)
    until = min(until, trace.seconds)
    [(_, forward)], [(_, backward)] = trace.phases["forward"], trace.phases["backward"]
    buckets = Trace.until(trace.exchange, until)
    if until == trace.seconds:
        text = (
            f"<b>{units.share(trace.hidden)} of the sending lay beside computing.</b> The step "
            f"took {units.digits(1e3 * trace.seconds)} ms."
        )
    elif until <= forward:
        text = "Forward computes. It makes no gradients, so there is nothing to send."
    elif not buckets:
        text = "Backward computes, from the last layer to the first."
        if until > backward:
            text = "Backward is over, and all gradients are copied into one parcel."
    elif until <= backward:
        number = len(buckets)
        fate = "has arrived" if until >= trace.exchange[number - 1][1] else "is on its way"
        text = f"Parcel {number} {fate}, before backward has ended."
    else:
        text = "Backward is over. All gradients must have arrived before the update."
    return common.pictured(one_step(trace, until, longest, width), text)


ONE_STEP = common.Handle(
    book=({"moment": 220}, {"moment": 220, "way": "after backward"}),
    title="One step, operator by operator",
    controls={
        "moment": common.Control(
            "Time",
            "How much of the step is over.",
            unit="ms",
            least=0,
            most=220,
            stops=tuple(range(0, 221, 10)),
            play=True,
            reach=lambda watched: 10 * ceil(100 * watched.trace.seconds),
        ),
        "way": controls.choice(
            "Gradients travel", "While backward still computes, or when it is over.", WAYS
        ),
    },
    settings={"": StepMoment()},
    draw=_draw_moment,
    narrow=partial(_draw_moment, width=NARROW),
)
