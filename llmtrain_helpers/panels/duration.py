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
        model="Llama-2-70b",
        tokens=2 * 10**12,
        num_gpus=2048,
        percent=43.0,
        recompute="none",
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


_CONTROLS = {
    "model": common.models(),
    "tokens": common.Control(
        "Tokens",
        "Tokens that the run sees in all.",
        unit="tokens",
        most=10**16,
        stops=common.steps(10**9, 10**14, 1, 1.5, 2, 3, 5, 7),
    ),
    "num_gpus": common.Control(
        "GPUs",
        "All GPUs of the run.",
        most=10_000_000,
        stops=common.doublings(1, 65536),
    ),
    "percent": common.Control(
        "Share of the peak",
        "Per cent of the dense peak that each GPU reaches.",
        unit="%",
        least=0.1,
        most=100,
        whole=False,
        stops=common.steps(5, 80, *(x / 2 for x in range(2, 20))),
    ),
    "recompute": common.choice(
        "Recomputed", "What is computed a second time to save memory.", RECOMPUTE
    ),
    "chip": common.accelerators(more=True),
    "format": common.choice(
        "Number format", "The format whose peak is meant.", FORMATS, more=True
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
                f"training_seconds(tokens={common.in_code(T)}, parameters={P}, "
                f"num_gpus={num_gpus}, "
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


PANEL = common.Panel(
    "How many days?", _CONTROLS, _PRESETS, ("Llama 2 70B", "Llama 3.1 405B"), render
)
