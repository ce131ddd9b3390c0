"""Chapter 12: the panel of a step on a simulated clock; handles of what was recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.handle import Shown, flag, handle, slider
from llmtrain_course.kit.layout import PAGE
from llmtrain_course.measure import pictures
from llmtrain_course.measure.clock import ENOUGH, StepClock, times
from llmtrain_course.measure.recorded import WIDTHS, product_rates, recorded_step
from llmtrain_course.measure.trace import Trace, recorded_trace
from llmtrain_helpers import published, units
from llmtrain_helpers.batch import StepTime


@dataclass(frozen=True)
class Setting:
    """A step by its parts; all times in milliseconds, the slowest GPU in percent."""

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
    "Time the loader needs to prepare one sequence.",
    unit="ms per sequence",
    least=0.1,
    most=10_000,
    whole=False,
    stops=controls.steps(0.1, 50, 1, 2, 5),
)

_UPDATE = common.Control(
    "Update",
    "Time of the optimizer, once per step.",
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
        "Time the gradients are on their way, once per step.",
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
        help="Time of a pass that doesn't grow with the micro-batch.",
    ),
    "computing": replace(
        _UPDATE,
        label="Computing",
        help="Time that each sequence adds to a pass.",
        unit=_LOADING.unit,
    ),
    "update": _UPDATE,
    "overlap": common.Control(
        "Gradients travel during backward",
        "If off, they wait until the last backward has ended.",
        "flag",
        more=True,
    ),
    "slowest": common.Control(
        "Slowest GPU's pass",
        "Its length in percent of this GPU's. All GPUs wait for it.",
        unit="%",
        least=100,
        most=1000,
        more=True,
    ),
}


def render(setting: Setting, before: Setting | None = None, width: int = PAGE) -> str:
    """The panel's answer as HTML: sentence, pictures, table, and the call in code."""
    picture = pictures.step_by_the_clock(*setting.step, before.step if before else ())
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
            f"<div>{picture.drawing(width).inline_svg()}</div>",
            common.folded("The numbers", _table(setting)),
            common.folded("In code", common.call(code, clock_import)),
        ]
    )


_WAITS = {
    "data": "It waits for <b>data</b>: if you reuse the same data, it processes",
    "other GPUs": "It waits for <b>other GPUs</b>: on its own, it processes",
    "fixed costs": "It pays <b>fixed costs</b>: if you double the micro-batch, it processes",
}


def _sentence(setting: Setting, before: Setting | None) -> str:
    clock, b, k = setting.step
    experiments = clock.experiments(b, k)
    result = f"<b>{units.digits(experiments.as_it_is)} sequences per second</b>"
    if before:
        previous = before.clock.throughput(before.micro_batch_size, before.accumulation)
        if previous != experiments.as_it_is:
            result += f" (dashed: {units.digits(previous)})"
    cause = experiments.verdict
    if cause == "computing":
        return f"{result}. It's busy <b>computing</b>, so no single change gains 10%."
    result += f". {_WAITS[cause]} {experiments.gains()[cause]:.2f}× as many."
    if cause == "other GPUs":
        return result + _link_or_neighbour(clock.waits_for_others(b, k))
    second, gain = experiments.ranked()[1]
    return result + (f" Next: {second}, × {gain:.2f}." if gain >= ENOUGH else "")


def _link_or_neighbour(waits: dict[str, float]) -> str:
    """Which of the two takes more of a step."""
    link, passes = (f"{units.digits(1e3 * seconds)} ms" for seconds in waits.values())
    cause = max(waits, key=lambda name: waits[name])
    return (
        f" In a step, it waits {link} for the link and {passes} for another GPU's longer passes, "
        f"so it mostly waits for <b>{cause}</b>."
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
    note = "<p>This is a simulated clock, so nobody measured these times.</p>"
    return common.table(["", "time", "share"], rows) + note


PANEL = common.Panel(
    "What does a step wait for?",
    _CONTROLS,
    _SETTINGS,
    ("A slow loader", "A slow link"),
    render,
    captioned=True,
)


# --- handles of what one machine did


@handle(
    "The measured rate of one matrix product, by its size.",
    size=slider(
        "Rows and columns",
        "The size of both matrices that are multiplied.",
        controls.doublings(16, 1024),
        play=True,
        between=False,
    ),
)
def one_product(size: int = 16) -> Shown:
    """The rates of square products up to a size, of which the best is called the peak."""
    rates = product_rates()
    best = max(rate for recorded, rate in rates.items() if recorded <= size)
    caption = f"<b>{units.flops_per_second(rates[size])}</b> at {size} × {size}"
    if size < max(rates):
        caption += ". What rate do larger matrices reach?"
    else:
        caption += f". The best rate is {units.flops_per_second(best)}, so we call it the peak."
    return pictures.one_product(rates, size), caption


@handle(
    "One step's seconds: predicted from its FLOPs, and measured.",
    measured=flag("Show the measured step", "Its duration, and what the time was spent on."),
    hidden_size=slider(
        "Hidden size",
        "The width of the small GPT. Everything else stays the same.",
        WIDTHS,
        between=False,
    ),
    book=({"measured": True}, {"measured": True, "hidden_size": 64}),
)
def predicted_step(measured: bool = False, hidden_size: int = 256) -> Shown:
    """A step at the peak rate of a product, and the recorded one in three parts."""
    step = recorded_step(hidden_size)
    caption = (
        f"At the peak rate, this step's FLOPs need {units.digits(1e3 * step.ideal)} ms. How long "
        f"is the real step?"
    )
    if measured:
        caption = (
            f"<b>The step takes {pictures.format_ratio(step.ratio)} the prediction</b>, which is "
            f"{units.share(1 / step.ratio)} of the peak. Its products run at "
            f"{units.share(step.ideal / step.products)} of the peak, and no FLOP count includes "
            "what's between them."
        )
    return pictures.predicted_step(step, measured), caption


SERIES = ("first", "second", "third")
"""The three series of the same step."""


def recorded_series(name: str) -> list[float]:
    """The seconds of all thirty steps of a series."""
    number = 1 + SERIES.index(name)
    return [row["seconds"] for row in published.rows("step_times") if row["series"] == number]


@handle(
    "The same step timed thirty times, and the median you'd report.",
    left_out=slider(
        "Left out", "Steps at the start that aren't timed.", tuple(range(11)), unit="steps"
    ),
    repeats=slider(
        "Timed",
        "Steps after those, whose median is reported.",
        (2, 3, 5, 7, 10, 15, 20),
        unit="steps",
    ),
    series=controls.choice("Series", "Which run of the same program.", SERIES),
    book=({}, {"left_out": 10, "repeats": 20}),
)
def timed_steps(left_out: int = 0, repeats: int = 2, series: str = "first") -> Shown:
    """The steps of a series, and the median of those that are timed."""
    seconds = recorded_series(series)
    timing = times(seconds[: left_out + repeats], left_out)
    return pictures.timed_steps(seconds, timing), (
        f"You report <b>{units.digits(1e3 * timing.median)} ms</b>, the median of "
        f"{units.plural(len(timing.seconds), 'step')}, with {left_out or 'none'} left out."
    )


WAYS = {"during backward": "beside", "after backward": "after"}
"""How gradients travel, and the name of the trace in which they do."""


@handle(
    "One measured step, operator by operator.",
    moment=slider(
        "Time",
        "How much of the step is over.",
        tuple(range(0, 221, 10)),
        unit="ms",
        play=True,
        reach=lambda watched: 10 * ceil(100 * recorded_trace(WAYS[watched.way]).seconds),
    ),
    way=controls.choice(
        "Gradients travel", "While backward is still computing, or once it's over.", WAYS
    ),
    book=({"moment": 220}, {"moment": 220, "way": "after backward"}),
)
def one_step(moment: int = 70, way: str = "during backward") -> Shown:
    """What one of two processes has done, and which gradients have left, at a moment."""
    traces = {name: recorded_trace(trace) for name, trace in WAYS.items()}
    trace, longest = traces[way], max(trace.seconds for trace in traces.values())
    until = min(moment / 1e3, trace.seconds)
    return pictures.one_step(trace, until, longest), _moment_caption(trace, until)


def _moment_caption(trace: Trace, until: float) -> str:
    [(_, forward)], [(_, backward)] = trace.phases["forward"], trace.phases["backward"]
    buckets = Trace.until(trace.exchange, until)
    if until == trace.seconds:
        return (
            f"<b>{units.share(trace.hidden)} of the sending was hidden behind computing.</b> The "
            f"step took {units.digits(1e3 * trace.seconds)} ms."
        )
    if until <= forward:
        return "Forward is running. It doesn't compute gradients, so there's nothing to send."
    if not buckets and until > backward:
        return "Backward is over, and all gradients are copied into one bucket."
    if not buckets:
        return "Backward is running, from the last layer to the first."
    if until > backward:
        return "Backward is over. All gradients have to arrive before the update."
    number = len(buckets)
    fate = "has arrived" if until >= trace.exchange[number - 1][1] else "is on its way"
    return f"Bucket {number} {fate}, before backward has ended."
