"""The panel of chapter 03: days, GPU-hours and cost of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.checks import share
from llmtrain_helpers.drawings.duration import Mark, days_against_gpus
from llmtrain_helpers.duration import (
    UTILIZATIONS,
    cost,
    energy,
    gpu_hours,
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
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.panels import common
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.results import Interval


def _preset(**changes: Any) -> dict[str, Any]:
    return {
        "model": "GPT-3 175B",
        "tokens": 300 * 10**9,
        "num_gpus": 1024,
        "percent": 44.9,
        "recompute": "full",
        "chip": "A100 80GB SXM",
        "format": "bf16",
        "price": 2.0,
    } | changes


_PRESETS = {
    "GPT-3 on 1,024 A100": _preset(),
    "Llama 2 70B": _preset(
        model="Llama-2-70b", tokens=2 * 10**12, num_gpus=2048, percent=43.0, recompute="none"
    ),
    "Llama 3.1 405B": _preset(
        **{"model": "Llama-3.1-405B", "tokens": 15_600 * 10**9, "num_gpus": 16384},
        **{"percent": 38.0, "recompute": "none", "chip": "H100 SXM"},
    ),
    "Mixtral on 256 H100": _preset(
        **{"model": "Mixtral-8x7B", "tokens": 10**12, "num_gpus": 256},
        **{"percent": 35.0, "recompute": "none", "chip": "H100 SXM"},
    ),
}


_SLOWEST = 0.22
"""The least MFU of the fourteen published runs, Pythia 70M's."""


_CONTROLS = {
    "model": common.models(),
    "tokens": common.TOKENS,
    "num_gpus": common.GPUS,
    "percent": common.Control(
        "Share of the peak",
        "Per cent of the chip's peak that each GPU reaches: "
        "HFU where all is recomputed, MFU elsewhere.",
        unit="%",
        least=0.1,
        most=100,
        whole=False,
        stops=common.steps(5, 80, *(x / 2 for x in range(2, 20))),
    ),
    "recompute": common.choice(
        "Recomputed",
        "Full: the second forward pass counts in work and rate (8TP). Selective: "
        "attention's scores alone, which 6TP leaves out.",
        RECOMPUTE,
        more=True,
    ),
    "chip": common.accelerators(more=True),
    "format": common.choice(
        "Number format",
        "The format whose peak is meant; bf16 and fp16 have 16 bits.",
        FORMATS,
        more=True,
    ),
    "price": common.Control(
        "Price",
        "Dollars for one GPU for one hour; enter your own.",
        unit="dollars a GPU-hour",
        least=0.01,
        most=1e6,
        whole=False,
        more=True,
    ),
}


def render(
    before: common.Values | None = None,
    *,
    model: str,
    tokens: float,
    num_gpus: int,
    percent: float,
    recompute: str,
    chip: str,
    format: str,
    price: float,
) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    T, P = round(tokens), count_parameters(architecture(model)).active
    device = accelerator(chip)
    X = _rate(device, format, percent)
    seconds = training_seconds(T, P, num_gpus, X, recompute)
    span = training_interval(T, P, num_gpus, device.peak(format))
    picture = days_against_gpus(
        Mark("your run", num_gpus, seconds / units.DAY),
        (span.least / units.DAY, span.greatest / units.DAY),
        published_marks(),
        _mark(before),
    )
    table = common.table(
        ["", "your run", "published, nearest in work"],
        _rows(seconds, num_gpus, price, device, model, T, P),
    )
    told = _sentence(seconds, span, num_gpus, price) + _reached(percent, recompute)
    return "".join(
        [
            common.sentence(told),
            picture.live(),
            common.folded("Beside the published run whose work is nearest", table),
            common.folded("In code", _code(T, P, num_gpus, X, recompute)),
        ]
    )


def _code(T: int, P: float, n: int, X: float, recompute: str) -> str:
    return common.call(
        f"training_seconds(tokens={common.in_code(T)}, parameters={P}, "
        f"num_gpus={n}, flops_per_gpu={X:.6g}, recompute={recompute!r}) / 86400"
    )


def _rate(device: Accelerator, format: str, percent: float) -> float:
    """What each GPU reaches, in FLOP/s."""
    return float(share("share of the peak", percent / 100) * device.peak(format))


def _mark(values: common.Values | None) -> Mark | None:
    """Where the dot of these values stands."""
    if values is None:
        return None
    P = count_parameters(architecture(values["model"])).active
    X = _rate(accelerator(values["chip"]), values["format"], values["percent"])
    run = (round(values["tokens"]), P, values["num_gpus"], X, values["recompute"])
    return Mark("your run", values["num_gpus"], training_seconds(*run) / units.DAY)


@cache
def published_marks() -> tuple[Mark, ...]:
    """The published runs whose GPUs and days are known, by name.

    Those in tier A: what was reported of them is of the run, and no estimate.
    """
    known = [row for row in rows("training_runs") if row["tier"] == "A"]
    found = [(row, _days_of(row)) for row in known if "num_gpus" in row]
    return tuple(Mark(r["name"], r["num_gpus"], days) for r, days in found if days)


def _days_of(row: Mapping[str, Any]) -> float:
    """The days that a run took, by its GPU-hours where they are known; 0 if neither."""
    hours: float = row.get("gpu_hours", 0) / row["num_gpus"]
    return hours / 24 or float(row.get("days", 0))


def _sentence(seconds: float, span: Interval, n: int, price: float) -> str:
    """Days, GPU-hours and price, and the interval in two digits."""
    least, greatest = (_about(x) for x in (span.least, span.greatest))
    if least.split()[1] == greatest.split()[1]:
        least = least.split()[0]
    low, high = UTILIZATIONS[0], UTILIZATIONS[2]
    hours = units.count(gpu_hours(seconds, n))
    paid = units.dollars(cost(seconds, n, price))
    return (
        f"<b>{units.duration(seconds)}</b>, {hours} GPU-hours, {paid}. "
        f"At an MFU of {low:.0%} to {high:.0%}, as 13 of 14 published runs had, "
        f"it would be {least} to {greatest}."
    ).replace("%", " %")


def _reached(percent: float, recompute: str) -> str:
    """Which share the slider's is, and whether it is outside all that runs reached."""
    mfu = percent * 6 / 8 if recompute == "full" else percent
    kind = "an HFU, recomputed work counted" if recompute == "full" else "an MFU"
    told = f" Your {percent:g} % is {kind}"
    told += f"; the MFU is {mfu:.3g} %." if recompute == "full" else "."
    over, below = mfu > 100 * UTILIZATIONS[2], mfu < 100 * _SLOWEST
    if over or below:
        said = f"over {UTILIZATIONS[2]:.0%}" if over else f"out below {_SLOWEST:.0%}"
        told += " <b>Look again</b>: none of the fourteen published whole runs came "
        told += said.replace("%", " %") + "."
    return told


def _about(seconds: float) -> str:
    """An estimate that rests on an assumption: two digits."""
    name = units.duration(seconds).partition(" ")[2]
    size = {"s": 1, "minutes": units.MINUTE, "hours": units.HOUR, "days": units.DAY}
    return f"{units.digits(seconds / size.get(name, units.YEAR), 2)} {name}"


def _rows(
    seconds: float, n: int, price: float, device: Accelerator, model: str, T: float, P: float
) -> list[list[str]]:
    """Your run beside the published one with the nearest tokens times parameters."""
    run = nearest_run(T, P)
    hours, theirs = gpu_hours(seconds, n), run["gpu_hours"]
    costs = [units.dollars(cost(h * units.HOUR, 1, price)) for h in (hours, theirs)]
    spans = ((device, seconds * n), (accelerator(run["accelerator"]), theirs * 3600))
    used = [_energy(chip, time) for chip, time in spans]
    return [
        ["model", model, run["name"]],
        ["tokens", units.count(T), units.count(run["tokens"])],
        ["active parameters", units.count(P), units.count(run["active_parameters"])],
        ["accelerator", device.name, run["accelerator"]],
        ["GPU-hours", units.count(hours), units.count(theirs)],
        ["cost", *costs],
        ["energy of the GPUs, at most", *used],
    ]


def _energy(chip: Accelerator, gpu_seconds: float) -> str:
    """At its design power all the time; unknown where the datasheet has none."""
    if not chip.power:
        return "unknown"
    return units.si(energy(gpu_seconds, 1, chip.power) / 3600, "Wh")


PANEL = common.Panel(
    "How many days?", _CONTROLS, _PRESETS, ("Llama 2 70B", "Llama 3.1 405B"), render
)
