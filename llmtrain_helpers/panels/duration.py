"""The panel of chapter 03: days, GPU-hours and cost of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

from llmtrain_helpers import units
from llmtrain_helpers.drawings.duration import Mark, days_against_gpus
from llmtrain_helpers.duration import (
    UTILIZATIONS,
    cost,
    energy,
    gpu_hours,
    mfu_of_hfu,
    rate_at,
    training_interval,
    training_seconds,
)
from llmtrain_helpers.evidence.published import (
    FORMATS,
    accelerator,
    architecture,
    nearest_run,
    rows,
)
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.panels import common, controls
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.results import Interval


@dataclass(frozen=True)
class Setting:
    """A model, its tokens and GPUs, and what the rate of a GPU counts."""

    model: str = "GPT-3 175B"
    tokens: int = 300 * 10**9
    num_gpus: int = 1024
    percent: float = 44.9
    recompute: str = "full"
    chip: str = "A100 80GB SXM"
    format: str = "bf16"
    price: float = 2.0

    @cached_property
    def parameters(self) -> int:
        """Parameters of the model that a token meets."""
        return int(count_parameters(architecture(self.model)).active)

    @cached_property
    def rate(self) -> float:
        """FLOP/s that each GPU reaches."""
        return float(rate_at(self.percent / 100, accelerator(self.chip).peak(self.format)))

    @property
    def seconds(self) -> float:
        """Seconds that the whole run takes."""
        run = (self.tokens, self.parameters, self.num_gpus, self.rate, self.recompute)
        return float(training_seconds(*run))

    @property
    def mark(self) -> Mark:
        """The dot of the run in the picture: its GPUs and its days."""
        return Mark("your run", self.num_gpus, self.seconds / units.DAY)


_SETTINGS = {
    "GPT-3 on 1,024 A100": Setting(),
    "Llama 2 70B": Setting("Llama-2-70b", 2 * 10**12, 2048, 43.0, "none"),
    "Llama 3.1 405B": Setting(
        "Llama-3.1-405B", 15_600 * 10**9, 16384, 38.0, "none", chip="H100 SXM"
    ),
    "Mixtral on 256 H100": Setting("Mixtral-8x7B", 10**12, 256, 35.0, "none", chip="H100 SXM"),
}

_CONTROLS = {
    "model": controls.MODEL,
    "tokens": controls.TOKENS,
    "num_gpus": controls.GPUS,
    "percent": replace(
        controls.SHARE_OF_PEAK,
        help="Per cent of the chip's peak that each GPU reaches: "
        "HFU where all is recomputed, MFU elsewhere.",
        stops=controls.steps(5, 80, *(x / 2 for x in range(2, 20))),
    ),
    "recompute": replace(
        controls.RECOMPUTED,
        help="Full: the second forward pass counts in work and rate (8TP). Selective: "
        "attention's scores alone, which 6TP leaves out.",
        more=True,
    ),
    "chip": controls.CHIP,
    "format": controls.choice(
        "Number format",
        "The format whose peak is meant; bf16 and fp16 have 16 bits.",
        FORMATS,
        more=True,
    ),
    "price": controls.PRICE,
}

_SLOWEST = 0.22
"""The least MFU of the fourteen published runs, Pythia 70M's."""


def render(setting: Setting, before: Setting | None = None) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    T, P, n = round(setting.tokens), setting.parameters, setting.num_gpus
    span = training_interval(T, P, n, accelerator(setting.chip).peak(setting.format))
    picture = days_against_gpus(
        setting.mark,
        (span.least / units.DAY, span.greatest / units.DAY),
        published_marks(),
        before.mark if before else None,
    )
    code = (
        f"training_seconds(tokens={common.in_code(T)}, parameters={P}, "
        f"num_gpus={n}, flops_per_gpu={setting.rate:.6g}, recompute={setting.recompute!r}) / 86400"
    )
    title = "Beside the published run whose work is nearest"
    return "".join(
        [
            common.sentence(_sentence(setting, span) + _utilization(setting)),
            picture.live(),
            common.folded(title, _table(setting)),
            common.folded("In code", common.call(code)),
        ]
    )


@cache
def published_marks() -> tuple[Mark, ...]:
    """The published runs whose GPUs and days are known, by name.

    Those in tier A: what was reported of them is of the run, and no estimate.
    """
    marks = []
    for row in rows("training_runs"):
        if row["tier"] == "A" and "num_gpus" in row:
            days = row.get("gpu_hours", 0) / row["num_gpus"] / 24 or row.get("days", 0)
            if days:
                marks.append(Mark(row["name"], row["num_gpus"], float(days)))
    return tuple(marks)


def _sentence(setting: Setting, span: Interval) -> str:
    """Days, GPU-hours and price, and the interval in two digits."""
    least, greatest = (units.duration(x, 2) for x in (span.least, span.greatest))
    if least.split()[1] == greatest.split()[1]:  # the unit is said once
        least = least.split()[0]
    seconds, n = setting.seconds, setting.num_gpus
    hours = units.count(gpu_hours(seconds, n))
    return (
        f"<b>{units.duration(seconds)}</b>, {hours} GPU-hours, "
        f"{units.dollars(cost(seconds, n, setting.price))}. "
        f"At an MFU of {units.share(UTILIZATIONS[0])} to {units.share(UTILIZATIONS[2])}, as 13 "
        f"of 14 published runs had, it would be {least} to {greatest}."
    )


def _utilization(setting: Setting) -> str:
    """Which share the slider's is, and whether it is outside all that runs reached."""
    mfu = 100 * mfu_of_hfu(setting.percent / 100, setting.recompute)
    text = f" Your {setting.percent:g} % is an MFU."
    if setting.recompute == "full":
        text = f" Your {setting.percent:g} % is an HFU, recomputed work counted"
        text += f"; the MFU is {mfu:.3g} %."
    if mfu > 100 * UTILIZATIONS[2]:
        place = f"over {units.share(UTILIZATIONS[2])}"
    elif mfu < 100 * _SLOWEST:
        place = f"out below {units.share(_SLOWEST)}"
    else:
        return text
    whole = "none of the fourteen published whole runs"
    return f"{text} <b>Look again</b>: {whole} came {place}."


def _table(setting: Setting) -> str:
    """Your run beside the published one with the nearest tokens times parameters."""
    T, P = setting.tokens, setting.parameters
    run = nearest_run(T, P)
    hours = (gpu_hours(setting.seconds, setting.num_gpus), run["gpu_hours"])
    chips = (accelerator(setting.chip), accelerator(run["accelerator"]))
    dollars = [units.dollars(cost(h * units.HOUR, 1, setting.price)) for h in hours]
    rows = [
        ["model", setting.model, run["name"]],
        ["tokens", units.count(T), units.count(run["tokens"])],
        ["active parameters", units.count(P), units.count(run["active_parameters"])],
        ["accelerator", chips[0].name, run["accelerator"]],
        ["GPU-hours", *map(units.count, hours)],
        ["cost", *dollars],
        ["energy of the GPUs, at most", *map(_energy, chips, hours)],
    ]
    return common.table(["", "your run", "published, nearest in work"], rows)


def _energy(chip: Accelerator, hours: float) -> str:
    """Energy of a chip at its design power; unknown where the datasheet names none."""
    if not chip.power:
        return "unknown"
    return units.si(energy(hours * units.HOUR, 1, chip.power) / units.HOUR, "Wh")


PANEL = common.Panel(
    "How many days?", _CONTROLS, _SETTINGS, ("Llama 2 70B", "Llama 3.1 405B"), render
)
