"""Pictures of chapter 12: products, steps predicted and measured, memory, a clock, a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llmtrain_course.kit.chart import Chart, Column, Dot, Mark, Note, Path
from llmtrain_course.kit.drawing import COLORS, GREY, LiveDrawing
from llmtrain_course.kit.lanes import Bars, Lane, Limit, Point, Span, Timeline, bar
from llmtrain_course.kit.layout import Below, Picture
from llmtrain_course.kit.scale import Scale
from llmtrain_course.measure.clock import StepClock, Times
from llmtrain_course.measure.recorded import WIDTHS, StepSpent, recorded_memory, recorded_step
from llmtrain_course.measure.trace import Trace
from llmtrain_helpers import units

INK = "currentColor"


def _ms(seconds: float) -> str:
    return f"{units.digits(seconds * 1e3)} ms"


def _bare_ms(seconds: float) -> str:
    """Milliseconds, as an axis has them."""
    return units.exact(round(seconds * 1e3, 9))


def format_ratio(ratio: float) -> str:
    """Format how many times as much something is, in two digits."""
    return f"{units.digits(ratio, 2)}×"


# --- the rate of one product


def one_product(rates: Mapping[int, float], size: int) -> Picture:
    """The rate of a product of two square matrices, for each size up to the chosen one."""
    marks: list[Mark] = []
    for place, (n, rate) in enumerate(rates.items()):
        color = COLORS["matrix products" if n == size else "memory"]
        columns = place + 0.14, place + 0.86
        value = units.digits(rate / 1e9)
        marks += [
            Column(*columns, rate, color, value=value, bold=n == size, hidden=n > size),
            Note(place + 0.5, 5e9, "?", 18, color=GREY, hidden=n <= size),
        ]
    x = Scale(0, len(rates), "rows and columns of each matrix")
    x = x.with_ticks({place + 0.5: f"{n}" for place, n in enumerate(rates)})
    y = Scale(0, 120e9, "GFLOP/s", lambda rate: units.exact(rate / 1e9), grid=True)
    now = units.flops_per_second(rates[size])
    words = f"Two matrices of {size} by {size} numbers are multiplied at {now}."
    return Chart(x, y, marks, words, height=250)


# --- a step, predicted and measured

_SPENT = {
    "products": ("its products", COLORS["matrix products"]),
    "others": ("all between them", COLORS["norms"]),
    "update": ("the update", COLORS["optimizer"]),
}


def predicted_step(step: StepSpent, measured: bool) -> Picture:
    """The predicted time of a step, and below it the parts of the measured one, if shown.

    The unit of the axis is the prediction, so that all hidden sizes have one scale.
    """
    spans, lanes, end = list[Span](), list[Lane](), 0.0
    for name, seconds in step.parts().items():
        label, color = _SPENT[name]
        begin, end = end, end + seconds / step.ideal
        title = f"{label}: {_ms(seconds)}"
        spans.append(Span(begin, end, color, title=title, hidden=not measured))
        share = f"{units.digits(seconds / step.ideal, 2)} ×"
        lanes.append(Lane(label, spans[-1:], share if measured else "?"))
    predicted = Span(0, 1, COLORS["memory"])
    lanes.insert(0, Lane("predicted", [predicted], _ms(step.ideal), bold=True))
    lanes.append(Lane("measured", spans, _ms(step.total) if measured else "?", bold=True))
    words = f"Predicted {_ms(step.ideal)}; the measured step isn't shown yet."
    if measured:
        listed = ", ".join(f"{_SPENT[x][0]} {_ms(sec)}" for x, sec in step.parts().items())
        words = f"Predicted {_ms(step.ideal)}, measured {_ms(step.total)}: {listed}."
    x = Scale(0, 4, "times the prediction", grid=True)
    return Bars(x, lanes, words, lane=34, longest_total="1,000 ms")


# --- a step, predicted and measured where the cell runs


def step_here(predicted: float, measured: Times) -> LiveDrawing:
    """Draw a step's predicted seconds and its shortest run, below those that were recorded.

    The shortest, because whatever else the machine does lengthens the others. Lengths are in
    units of each prediction. The words don't have the times of this machine.
    """
    recorded = recorded_step(256)
    shortest = min(measured.seconds)
    lanes = [
        *_predicted_and_measured("recorded, on one thread", recorded.ideal, recorded.total),
        *_predicted_and_measured("where this cell ran", predicted, shortest),
    ]
    words = (
        f"A step and its prediction. Recorded: predicted {_ms(recorded.ideal)}, measured "
        f"{_ms(recorded.total)}, {format_ratio(recorded.ratio)} as long. Where this cell ran: "
        "predicted and measured."
    )
    most = max(2, 1.1 * shortest / predicted)
    x = Scale(0, most, "times the prediction", "{:g}".format, grid=True)
    return LiveDrawing.of(Bars(x, lanes, words, lane=26, gap=8).drawing())


def _predicted_and_measured(group: str, predicted: float, measured: float) -> list[Lane]:
    """Two lanes in units of the prediction, with what goes beyond it hatched."""
    ratio, grey = measured / predicted, COLORS["memory"]
    beyond = Span(1, max(ratio, 1), COLORS["norms"], name="beyond the prediction", slants="white")
    total = f"{_ms(measured)}, {format_ratio(ratio)}"
    return [
        Lane("predicted", [Span(0, 1, grey)], _ms(predicted), group=group),
        Lane("measured", [Span(0, min(ratio, 1), grey), beyond], total, group=group),
    ]


# --- the same step, thirty times


def timed_steps(series: Sequence[float], timing: Times) -> Picture:
    """Steps one after another: those left out, those timed with their median, and the rest."""
    first, last = len(timing.warm_up), len(timing.warm_up) + len(timing.seconds)
    beyond = len(series) + 2  # a dot beyond the axis is only in the key, which never changes
    marks: list[Mark] = [
        Dot(beyond, 0, COLORS["weights"], 5, name="timed"),
        Path(
            [(first + 0.5, timing.median), (last + 0.5, timing.median)],
            COLORS["gradients"],
            4,
            name="their median",
        ),
        Dot(beyond, 0, shape="hollow", size=4, name="left out"),
        Dot(beyond, 0, GREY, 2, name="not timed"),
    ]
    for number, seconds in enumerate(series, 1):
        if number <= first:
            dot = Dot(number, seconds, shape="hollow", size=4, title="left out")
        elif number <= last:
            dot = Dot(number, seconds, COLORS["weights"], 5, title=f"{1e3 * seconds:.1f} ms")
        else:
            dot = Dot(number, seconds, GREY, 2, title="not timed")
        marks.append(dot)
    median = f"median {_ms(timing.median)}"
    words = f"{len(timing.seconds)} steps timed after leaving out {first}: {median}."
    x = Scale(0, len(series) + 1, "step", ticks=(1, *range(5, len(series) + 1, 5)))
    y = Scale(0, 0.1, "ms", _bare_ms, grid=True)
    return Chart(x, y, marks, words, headline=[median], height=240)


# --- the memory of a step

_PART_LABELS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "Adam",
    "activations": "activations",
    "logits": "logits",
}


def step_bytes() -> Picture:
    """The predicted peaks of the recorded steps, part by part, above what their process took."""
    colors = {label: COLORS[name] for name, label in _PART_LABELS.items()}
    lanes, sizes = [], []
    for width in WIDTHS:
        moment, process_bytes = recorded_memory(width)
        predicted, measured = units.gigabytes(moment.total), units.gigabytes(process_bytes)
        parts = {name: size for name, size in moment.parts().items() if size}
        group = f"hidden size {width}: {format_ratio(process_bytes / moment.total)} the prediction"
        lanes += [
            bar(
                "predicted",
                parts,
                colors,
                units.gigabytes,
                words=_PART_LABELS,
                group=group,
                labels=False,
            ),
            Lane(
                "measured",
                [Span(0, process_bytes, COLORS["memory"], title=f"measured {measured}")],
                measured,
                group=group,
            ),
        ]
        listed = ", ".join(
            f"{_PART_LABELS[name]} {units.gigabytes(size)}" for name, size in parts.items()
        )
        sizes.append(
            f"At hidden size {width}, {predicted} are predicted ({listed}), {measured} measured."
        )
    x = Scale(0, 500e6, "MB", lambda size: units.exact(size / 1e6))
    return Bars(x, lanes, " ".join(sizes), lane=20, gap=6)


# --- a step on the simulated clock

_CHANGES = {
    "as_it_is": "as it is",
    "same_data": "the same data again",
    "one_gpu": "only this GPU",
    "doubled": "micro-batch doubled",
    "four_passes": "four times the passes",
}


def step_by_the_clock(
    clock: StepClock, micro_batch_size: int, accumulation: int = 1, before: Sequence[Any] = ()
) -> Picture:
    """Two steps: the loader, this GPU and the slowest, the link; and four changes.

    `before` are the three arguments of the last picture, drawn as outlines.
    """
    b, k = micro_batch_size, accumulation
    old_clock, *old_size = before or (clock, b, k)
    parts, was = clock.parts(b, k), old_clock.parts(*old_size).total
    experiments = clock.experiments(b, k)
    spent = {
        "passes": parts.passes,
        "waiting for other GPUs": parts.others,
        "update": parts.update,
        "waiting for data": parts.data,
    }
    times = ", ".join(f"{name} {_ms(seconds)}" for name, seconds in spent.items())
    gains = ", ".join(
        f"{label} × {getattr(experiments, name) / experiments.as_it_is:.2f}"
        for name, label in _CHANGES.items()
        if name != "as_it_is"
    )
    words = (
        f"A step of {_ms(parts.total)} with {k} × {b} sequences: {times}. "
        f"{units.digits(experiments.as_it_is)} sequences per second; {gains}."
    )
    steps = _two_steps(clock, b, k, was)
    changes = _changes(vars(experiments), vars(old_clock.experiments(*old_size)))
    return Below([steps, changes], words)


def _two_steps(clock: StepClock, b: int, k: int, was: float) -> Picture:
    """What each does in two steps, and how long a step was before a change."""
    parts = clock.parts(b, k)
    x = Scale(0, 2 * max(parts.total, was))
    thin = 0.01 * x.high
    lanes: dict[str, list[Span]] = {"loader": [], "this GPU": [], "slowest": [], "link": []}
    for number in (0, 1):
        start = number * parts.total
        data = f"data of step {number + 2}", "data"
        lanes["loader"].append(Span(start, start + clock.loading * b * k, COLORS["memory"], data))
        lanes["this GPU"] += _passes(start, parts.passes, k, x)
        at = start + parts.passes
        lanes["this GPU"] += _waiting(at, parts.others, "others", x)
        at += parts.others
        lanes["this GPU"].append(Span(at, at + parts.update, COLORS["optimizer"], "update"))
        lanes["this GPU"] += _waiting(at + parts.update, parts.data, "data", x)
        lanes["slowest"] += _passes(start, parts.passes * clock.slowest, k, x)
        lanes["link"] += [
            Span(start + begin, start + end, COLORS["gradients"], outline=end - begin > thin)
            for begin, end in clock.buckets(b, k)
        ]
    changed = was != parts.total
    outline = Span(0, was, title="a step at the start", previous=True, hidden=not changed)
    ends = [Limit(parts.total, dash="2 3", width=1.5), Limit(2 * parts.total, width=1.5)]
    return Timeline(
        x,
        [*(Lane(name, spans) for name, spans in lanes.items()), Lane("", [outline], height=12)],
        limits=ends,
        heading=f"a step: {_ms(parts.total)}",
        verdict=f"dashed: {_ms(was)}" if changed else "",
        gap=8,
        axis=False,
        extra=_CLOCK_KEY,
    )


_CLOCK_KEY = [
    span.swatch()
    for span in (
        Span(0, 0, COLORS["memory"], name="data"),
        Span(0, 0, COLORS["activations"], name="passes"),
        Span(0, 0, COLORS["optimizer"], name="update"),
        Span(0, 0, COLORS["gradients"], name="gradients"),
        Span(0, 0, name="waiting", hatch=True),
    )
]


def _passes(start: float, seconds: float, k: int, x: Scale) -> Iterator[Span]:
    """A span for each pass, or one for all where they'd be too thin."""
    thin = seconds / k < 0.02 * x.high
    labels = f"{units.plural(k, 'pass')}" if thin or k == 1 else "pass"
    for i in range(1 if thin else k):
        ends = (
            (start, start + seconds)
            if thin
            else (start + seconds * i / k, start + seconds * (i + 1) / k)
        )
        yield Span(*ends, COLORS["activations"], labels, outline=True)


def _waiting(start: float, seconds: float, cause: str, x: Scale) -> Iterator[Span]:
    """Time in which a GPU does nothing: hatched, with its cause if that fits."""
    if seconds > 0.002 * x.high:
        labels = f"waits for {cause}", "waits"
        yield Span(
            start, start + seconds, GREY, labels, labels[0], hatch=True, outline=True, ink=INK
        )


def _changes(rates: Mapping[str, float], old: Mapping[str, float]) -> Picture:
    """Sequences a second, as it is and after each change, and how much that gains."""
    lanes = []
    for name, label in _CHANGES.items():
        rate, gain = rates[name], f", × {rates[name] / rates['as_it_is']:.2f}"
        spans = [Span(0, rate, COLORS["weights" if name == "as_it_is" else "memory"])]
        if rates != old:
            spans.append(Span(0, old[name], title="at the start", previous=True))
        total = units.digits(rate) + (gain if name != "as_it_is" else "")
        lanes.append(Lane(label, spans, total))
    x = Scale(0, max(*rates.values(), *old.values()))
    heading = "sequences per second, after one change"
    return Bars(x, lanes, heading=heading, lane=24, gap=8, axis=False)


# --- a trace that was recorded

_PHASES = {
    "forward": Span(0, 0, COLORS["activations"], name="forward"),
    "backward": Span(0, 0, COLORS["pipeline"], name="backward"),
    "optimizer": Span(0, 0, COLORS["optimizer"], name="update"),
}
_KINDS = {
    "products": Span(0, 0, COLORS["weights"], name="products"),
    "rest": Span(0, 0, COLORS["norms"], name="other operators"),
    "copies": Span(0, 0, COLORS["memory"], name="copies"),
}
_SENT = Span(0, 0, COLORS["gradients"], name="gradients on their way")


def one_step(trace: Trace, until: float, longest: float) -> Picture:
    """A recorded step up to a moment: its phases, its operators by kind, and what travels."""
    phases = [
        replace(like, start=start, end=end, label=like.name, title=like.name, name="")
        for phase, like in _PHASES.items()
        for start, end in trace.until(trace.phases[phase], until)
    ]
    operators = [
        replace(like, start=start, end=end, title=like.name, name="")
        for kind, like in _KINDS.items()
        for start, end in trace.until(trace.work[kind], until)
    ]
    buckets = trace.until(trace.exchange, until)
    travel: list[Span | Point] = [
        Span(*span, _SENT.color, f"{number}") for number, span in enumerate(buckets, 1)
    ]
    if not buckets:
        travel = [Point(until, label="nothing yet", size=0)]
    done = ", ".join(
        f"{kind} {_ms(sum(b - a for a, b in trace.until(spans, until)))}"
        for kind, spans in trace.work.items()
    )
    many = units.plural(len(buckets), "bucket")
    return Timeline(
        Scale(0, longest, "ms", _bare_ms),
        [Lane("phase", phases), Lane("operators", operators), Lane("gradients", travel)],
        f"After {_ms(until)} of the step: {done}; {many} sent.",
        [Limit(until, f"{1e3 * until:.0f} ms", bold=True, moves="moment")],
        lane=38,
        gap=20,
        extra=[span.swatch() for span in (*_PHASES.values(), *_KINDS.values(), _SENT)],
    )
