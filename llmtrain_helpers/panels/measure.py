"""The panel of chapter 11: a step on a simulated clock, and what it waits for."""

from __future__ import annotations

from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.batch import StepTime
from llmtrain_helpers.drawings.measure import step_by_the_clock
from llmtrain_helpers.measure.clock import ENOUGH, Experiments, StepClock
from llmtrain_helpers.panels import common

_NAMES = ["micro_batch_size", "accumulation", "loading", "exchange", "overhead"]
_NAMES += ["computing", "update", "overlap", "slowest"]


def _preset(*values: Any) -> dict[str, Any]:
    return dict(zip(_NAMES, values, strict=True))


_PRESETS = {
    "A small micro-batch": _preset(2, 1, 1, 20, 20, 5, 10, True, 100),
    "A slow loader": _preset(8, 1, 20, 20, 20, 5, 10, True, 100),
    "A slow link": _preset(8, 1, 1, 200, 20, 5, 10, True, 100),
    "A slow neighbour": _preset(32, 1, 1, 20, 20, 5, 10, True, 150),
    "Busy": _preset(64, 4, 1, 20, 20, 5, 10, True, 100),
}

_CONTROLS = {
    "micro_batch_size": common.Control(
        "Micro-batch",
        "Sequences in each pass.",
        unit="sequences",
        most=100_000,
        stops=common.doublings(1, 128),
    ),
    "accumulation": common.Control(
        "Accumulation",
        "Passes before the weights are updated.",
        unit="in a row",
        most=10_000,
        stops=common.doublings(1, 64),
    ),
    "loading": common.Control(
        "Loading",
        "Time in which the loader makes one sequence ready.",
        unit="ms a sequence",
        least=0.1,
        most=10_000,
        whole=False,
        stops=common.steps(0.1, 50, 1, 2, 5),
    ),
    "exchange": common.Control(
        "Exchange",
        "Time that the gradients are on their way, once a step.",
        unit="ms",
        least=0.1,
        most=100_000,
        whole=False,
        stops=common.steps(1, 1000, 1, 2, 5),
        more=True,
    ),
    "overhead": common.Control(
        "Fixed part of a pass",
        "Time of a pass that does not grow with the micro-batch.",
        unit="ms",
        least=0.01,
        most=10_000,
        whole=False,
        more=True,
    ),
    "computing": common.Control(
        "Computing",
        "Time that each sequence adds to a pass.",
        unit="ms a sequence",
        least=0.01,
        most=10_000,
        whole=False,
        more=True,
    ),
    "update": common.Control(
        "Update",
        "Time of the optimizer, once a step.",
        unit="ms",
        least=0.01,
        most=10_000,
        whole=False,
        more=True,
    ),
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


def clock_of(values: common.Values) -> StepClock:
    """The clock that the controls make; milliseconds and per cent on the panel."""
    one_pass = StepTime(values["overhead"] / 1e3, 1e3 / values["computing"])
    times = {name: values[name] / 1e3 for name in ("loading", "exchange", "update")}
    slowest = values["slowest"] / 100
    return StepClock(one_pass, **times, overlap=values["overlap"], slowest=slowest)


def _step(values: common.Values) -> tuple[StepClock, int, int]:
    return clock_of(values), values["micro_batch_size"], values["accumulation"]


def render(before: common.Values | None = None, **values: Any) -> str:
    """The panel's answer as HTML: sentence, pictures, table, and the call in code."""
    clock, b, k = _step(values)
    old = _step(before) if before else ()
    picture = step_by_the_clock(clock, b, k, before=old)
    return "".join(
        [
            common.sentence(_sentence((clock, b, k), old)),
            f"<div>{picture.live()}</div>",
            common.folded("The numbers", _table(clock, b, k)),
            common.folded("In code", common.call(_code(values), _CLOCK)),
        ]
    )


_WAITS = {
    "data": "it waits for <b>data</b>: with the same data again it makes",
    "other GPUs": "it waits for <b>other GPUs</b>: alone it makes",
    "fixed costs": "it pays <b>fixed costs</b>: with twice the micro-batch it makes",
}


def _sentence(now: tuple[StepClock, int, int], old: tuple[Any, ...]) -> str:
    clock, b, k = now
    found = clock.experiments(b, k)
    told = f"<b>{units.digits(found.as_it_is)} sequences a second</b>"
    if old:
        before = old[0].throughput(*old[1:])
        told += f" (dashed: {units.digits(before)})" if before != found.as_it_is else ""
    if found.verdict == "computing":
        return f"{told}: it is <b>computing</b>; no single change gains a tenth."
    gain = found.gains()[found.verdict]
    told += f": {_WAITS[found.verdict]} {gain:.2f} times as many."
    if found.verdict == "other GPUs":
        return told + _cause(clock.waits_for_others(b, k))
    return told + _next(found)


def _next(found: Experiments) -> str:
    """The change that gains most after the first, where it gains a tenth."""
    gains = {x: gain for x, gain in found.gains().items() if x != found.verdict}
    cause = max(gains, key=lambda name: gains[name])
    return f" Next: {cause}, × {gains[cause]:.2f}." if gains[cause] >= ENOUGH else ""


def _cause(waits: dict[str, float]) -> str:
    """The link or a neighbour: which of the two takes more of a step."""
    link, passes = (f"{units.digits(1e3 * seconds)} ms" for seconds in waits.values())
    cause = max(waits, key=lambda name: waits[name])
    told = f" In a step it waits {link} for the link, and {passes} because another"
    return f"{told} GPU's passes take longer: mostly for <b>{cause}</b>."


def _table(clock: StepClock, b: int, k: int) -> str:
    parts = clock.parts(b, k)
    names = {"passes": "passes, forward and backward", "update": "update"}
    names |= {"others": "waiting for other GPUs", "data": "waiting for data"}
    rows = [
        [told, f"{units.digits(seconds * 1e3)} ms", units.percent(seconds / parts.total)]
        for name, told in names.items()
        for seconds in [parts.parts()[name]]
    ]
    whole = ["a step", f"{units.digits(parts.total * 1e3)} ms", units.percent(1)]
    note = "<p>A simulated clock: these are nobody's measured times.</p>"
    return common.table(["", "time", "share"], [*rows, whole]) + note


_CLOCK = "from llmtrain_helpers.measure.clock import StepClock"


def _code(values: common.Values) -> str:
    one_pass = f"StepTime({values['overhead']:g}e-3, 1e3 / {values['computing']:g})"
    times = [f"{x}={values[x]:g}e-3" for x in ("loading", "exchange", "update")]
    return (
        f"clock = StepClock({one_pass},\n"
        f"    {', '.join(times)},\n"
        f"    overlap={values['overlap']}, slowest={values['slowest'] / 100:g})\n"
        f"clock.throughput({values['micro_batch_size']}, {values['accumulation']})"
    )


PANEL = common.Panel(
    "What does a step wait for?",
    _CONTROLS,
    _PRESETS,
    ("A slow loader", "A slow link"),
    render,
    told=True,
)
