"""The panel of chapter 02: from the seconds of an iteration to MFU and HFU."""

from __future__ import annotations

from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.flops import (
    RECOMPUTE,
    achieved_flops_per_gpu,
    count_flops,
    utilization,
)
from llmtrain_helpers.panels import common
from llmtrain_helpers.published import FORMATS, accelerator, architecture


def _preset(**changes: Any) -> dict[str, Any]:
    return {
        "model": "Megatron 18.4B",
        "sequence_length": 1024,
        "batch_size": 512,
        "num_gpus": 16,
        "seconds": 32.09,
        "recompute": "full",
        "chip": "A100 80GB SXM",
        "format": "bf16",
    } | changes


_GPT3 = {
    "model": "GPT-3 175B",
    "sequence_length": 2048,
    "batch_size": 64,
    "num_gpus": 64,
}

_PRESETS = {
    "18.4B on 16 A100": _preset(),
    "GPT-3 on 64 A100, full recomputation": _preset(**_GPT3, seconds=18.13),
    "GPT-3 on 64 A100, selective": _preset(
        **_GPT3, seconds=13.75, recompute="selective"
    ),
    "18.4B with the wrong sequence length": _preset(sequence_length=2048),
}


def flops_panel() -> common.Panel:
    """Seconds of an iteration in; rate, MFU and HFU of each GPU out."""
    controls = {
        "model": common.models(),
        "sequence_length": common.whole("Sequence (tokens)", 1, 10_000_000, step=1024),
        "batch_size": common.whole("Batch (sequences)", 1, 10_000_000, step=8),
        "num_gpus": common.whole("GPUs", 1, 10_000_000),
        "seconds": common.number("Seconds an iteration", 0, 1e6, step=0.1),
        "recompute": common.dropdown("Recomputed", RECOMPUTE),
        "chip": common.accelerators(),
        "format": common.dropdown("Number format", FORMATS),
    }
    stills = [*_PRESETS][2:]
    return common.Panel("What share of the peak?", controls, render, _PRESETS, stills)


def render(
    model: str,
    sequence_length: int,
    batch_size: int,
    num_gpus: int,
    seconds: float,
    recompute: str,
    chip: str,
    format: str,
) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    shape = architecture(model, sequence_length)
    counted = count_flops(shape, batch_size, recompute)
    hardware, own = (
        achieved_flops_per_gpu(work, seconds, num_gpus)
        for work in (counted.total, counted.model)
    )
    peak = accelerator(chip).peak(format)
    shares = utilization(own, peak), utilization(hardware, peak)
    return "".join(
        [
            common.sentence(_sentence(hardware, *shares)),
            common.stacked_bars(_bars(own, hardware, peak), units.flops_per_second),
            common.table(
                ["part", "FLOP an iteration", "share"],
                common.shares(counted, units.flops),
            ),
            common.call(
                f"model = published.architecture({model!r}, {sequence_length})\n"
                f"F = count_flops(model, {batch_size}, recompute={recompute!r}).total\n"
                f"X = achieved_flops_per_gpu(F, {seconds}, {num_gpus})\n"
                f"utilization(X, published.accelerator({chip!r}).peak({format!r}))"
            ),
        ]
    )


def _sentence(rate: float, mfu: float, hfu: float) -> str:
    told = (
        f"<b>{units.flops_per_second(rate)}</b> on each GPU. MFU {units.percent(mfu)}"
    )
    if hfu == mfu:
        return f"{told}: nothing is recomputed, so HFU is the same."
    return f"{told}, HFU {units.percent(hfu)}: the difference is work done twice."


def _bars(own: float, hardware: float, peak: float) -> dict[str, dict[str, float]]:
    achieved = {"model's own work": own, "recomputed": hardware - own}
    return {"Achieved": achieved, "Peak": {"peak": peak}}
