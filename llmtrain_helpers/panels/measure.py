"""The panel of chapter 11: a step on a simulated clock, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llmtrain_helpers import units
from llmtrain_helpers.batch import StepTime
from llmtrain_helpers.drawings.measure import step_by_the_clock
from llmtrain_helpers.measure.clock import ENOUGH, StepClock
from llmtrain_helpers.panels import common, controls


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


def render(setting: Setting, before: Setting | None = None) -> str:
    """The panel's answer as HTML: sentence, pictures, table, and the call in code."""
    picture = step_by_the_clock(*setting.step, before=before.step if before else ())
    code = (
        f"clock = StepClock(StepTime({setting.overhead:g}e-3, 1e3 / {setting.computing:g}),\n"
        f"    loading={setting.loading:g}e-3, exchange={setting.exchange:g}e-3, "
        f"update={setting.update:g}e-3,\n"
        f"    overlap={setting.overlap}, slowest={setting.slowest / 100:g})\n"
        f"clock.throughput({setting.micro_batch_size}, {setting.accumulation})"
    )
    clock_import = "from llmtrain_helpers.measure.clock import StepClock"
    return "".join(
        [
            common.sentence(_sentence(setting, before)),
            f"<div>{picture.live()}</div>",
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
        old = before.clock.throughput(before.micro_batch_size, before.accumulation)
        if old != experiments.as_it_is:
            result += f" (dashed: {units.digits(old)})"
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
    captioned=True,
)
