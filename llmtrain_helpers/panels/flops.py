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


_CONTROLS = {
    "model": common.models(),
    "seconds": common.Control(
        "Seconds an iteration",
        "Measured time from one update to the next.",
        unit="s",
        least=0.001,
        most=1e6,
        whole=False,
        stops=common.steps(0.1, 1000, 1, 1.5, 2, 3, 5, 7),
    ),
    "num_gpus": common.Control(
        "GPUs",
        "All GPUs of the run.",
        most=10_000_000,
        stops=common.doublings(1, 16384),
    ),
    "recompute": common.choice(
        "Recomputed", "What is computed a second time to save memory.", RECOMPUTE
    ),
    "sequence_length": common.Control(
        "Sequence",
        "Tokens in each training sequence.",
        unit="tokens",
        most=10_000_000,
        more=True,
    ),
    "batch_size": common.Control(
        "Batch",
        "Sequences in one iteration, over all GPUs.",
        unit="sequences",
        most=10_000_000,
        more=True,
    ),
    "chip": common.accelerators(more=True),
    "format": common.choice(
        "Number format", "The format whose peak is compared.", FORMATS, more=True
    ),
}


def render(
    before: common.Values | None = None,
    *,
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


PANEL = common.Panel(
    "What share of the peak?",
    _CONTROLS,
    _PRESETS,
    ("GPT-3 on 64 A100, selective", "18.4B with the wrong sequence length"),
    render,
)
