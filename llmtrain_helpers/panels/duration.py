"""The panel of chapter 03: days, GPU-hours and cost of a run."""

from __future__ import annotations

from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.checks import share
from llmtrain_helpers.duration import (
    Interval,
    cost,
    energy,
    gpu_hours,
    training_interval,
    training_seconds,
)
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.panels import common
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.published import FORMATS, accelerator, architecture, nearest_run


def _preset(**changes: Any) -> dict[str, Any]:
    return {
        "model": "GPT-3 175B",
        "tokens": 300.0,
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
        model="Llama-2-70b",
        tokens=2000.0,
        num_gpus=2048,
        percent=43.0,
        recompute="none",
    ),
    "Llama 3.1 405B": _preset(
        **{"model": "Llama-3.1-405B", "tokens": 15600.0, "num_gpus": 16384},
        **{"percent": 38.0, "recompute": "none", "chip": "H100 SXM"},
    ),
    "Mixtral on 256 H100": _preset(
        **{"model": "Mixtral-8x7B", "tokens": 1000.0, "num_gpus": 256},
        **{"percent": 35.0, "recompute": "none", "chip": "H100 SXM"},
    ),
}


def duration_panel() -> common.Panel:
    """Model, tokens and GPUs in; days with their interval, GPU-hours and cost out."""
    controls = {
        "model": common.models(),
        "tokens": common.number("Tokens (billions)", 0, 1e9, step=100),
        "num_gpus": common.whole("GPUs", 1, 10_000_000, step=64),
        "percent": common.number("Share of the peak (%)", 0, 1000, step=1),
        "recompute": common.dropdown("Recomputed", RECOMPUTE),
        "chip": common.accelerators(),
        "format": common.dropdown("Number format", FORMATS),
        "price": common.number("Dollars a GPU-hour", 0, 1e6, step=0.1),
    }
    stills = ["Llama 2 70B", "Llama 3.1 405B"]
    return common.Panel("How many days?", controls, render, _PRESETS, stills)


def render(
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
    T, P = round(tokens * 1e9), count_parameters(architecture(model)).active
    device = accelerator(chip)
    peak = device.peak(format)
    X = share("share of the peak", percent / 100) * peak
    seconds = training_seconds(T, P, num_gpus, X, recompute)
    span = training_interval(T, P, num_gpus, peak)
    return "".join(
        [
            common.sentence(_sentence(seconds, span)),
            common.stacked_bars(_bars(seconds, span), units.duration),
            common.table(
                ["", "this run", "nearest published"],
                _rows(seconds, num_gpus, price, device.power, T, P),
            ),
            common.call(
                f"training_seconds(tokens={T}, parameters={P}, num_gpus={num_gpus}, "
                f"flops_per_gpu={X:.6g}, recompute={recompute!r}) / 86400"
            ),
        ]
    )


def _sentence(seconds: float, span: Interval) -> str:
    least, greatest = units.duration(span.least), units.duration(span.greatest)
    return (
        f"<b>{units.duration(seconds)}</b>. At the shares that published runs reached, "
        f"stops included, it would be {least} to {greatest}."
    )


def _bars(seconds: float, span: Interval) -> dict[str, dict[str, float]]:
    return {
        "This run": {"this run": seconds},
        "At the high end of published runs": {"high end": span.least},
        "As a likely run": {"likely": span.likely},
        "At their low end": {"low end": span.greatest},
    }


def _rows(
    seconds: float, n: int, price: float, watts: Any, T: float, P: float
) -> list[list[str]]:
    run = nearest_run(T, P)
    hours, theirs = gpu_hours(seconds, n), run["gpu_hours"]
    costs = [units.dollars(cost(h * units.HOUR, 1, price)) for h in (hours, theirs)]
    power = units.si(energy(seconds, n, watts) / 3600, "Wh") if watts else "unknown"
    return [
        ["name", "", run["name"]],
        ["tokens", units.count(T), units.count(run["tokens"])],
        ["active parameters", units.count(P), units.count(run["active_parameters"])],
        ["accelerator", "", run["accelerator"]],
        ["GPU-hours", units.count(hours), units.count(theirs)],
        ["cost", *costs],
        ["energy of the GPUs, at most", power, ""],
    ]
