"""The panel of chapter 00: what GPUs and days make of a model, in tokens."""

from __future__ import annotations

from functools import partial
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.checks import share
from llmtrain_helpers.drawings.start_here import NARROW, WIDE, Layout, budget
from llmtrain_helpers.duration import gpu_hours, training_seconds
from llmtrain_helpers.evidence.published import accelerator, run
from llmtrain_helpers.panels import common


def _preset(**changes: Any) -> dict[str, Any]:
    return {
        "num_gpus": 8,
        "days": 30,
        "parameters": 8 * 10**9,
        "chip": "A100 80GB SXM",
        "percent": 35,
    } | changes


_PRESETS = {
    "Eight A100 for a month": _preset(),
    "One gaming card for a weekend": _preset(
        num_gpus=1, days=2, parameters=124 * 10**6, chip="RTX 4090"
    ),
    "64 H100 for two weeks": _preset(num_gpus=64, days=14, parameters=3 * 10**9, chip="H100 SXM"),
    "1,024 A100 for 34 days": _preset(num_gpus=1024, days=34, parameters=175 * 10**9),
}

_CONTROLS = {
    "num_gpus": common.Control(
        "GPUs", "All GPUs of the run.", most=10**6, stops=common.doublings(1, 65536)
    ),
    "days": common.Control(
        "Days",
        "How long you may use them.",
        least=0.01,
        most=3650,
        whole=False,
        stops=(1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 120, 180, 365),
    ),
    "parameters": common.Control(
        "Model size",
        "Parameters of the model; write 8B for 8 billion.",
        unit="parameters",
        least=10**6,
        most=10**13,
        stops=common.steps(10**7, 10**12, 1, 1.5, 2, 3, 5, 8),
    ),
    "chip": common.accelerators(more=True),
    "percent": common.Control(
        "Share of the peak",
        "Per cent of its dense peak that each GPU reaches; 35 is usual.",
        unit="%",
        least=0.1,
        most=100,
        whole=False,
        stops=tuple(range(5, 81)),
        more=True,
    ),
}


def draw(
    before: common.Values | None = None,
    *,
    num_gpus: int,
    days: float,
    parameters: int,
    chip: str,
    percent: float,
    layout: Layout = WIDE,
) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    rate = _rate(chip, percent)
    seconds = days * units.DAY
    each = training_seconds(1, parameters, num_gpus, rate, "none")
    tokens, work = seconds / each, seconds * num_gpus * rate
    marks = _marks(parameters)
    does = [chip, f"{percent:g} % of its peak: {units.flops_per_second(rate)}"]
    picture = budget(num_gpus, days, rate, tokens, marks, _ago(before), does, layout)
    told = (
        f"<b>{units.count(tokens, 2)} tokens</b> for a model of {units.short(parameters)} "
        f"parameters: {units.digits(tokens / parameters, 2)} for each parameter."
    )
    hours = gpu_hours(seconds, num_gpus)
    code = _code(days, parameters, num_gpus, rate)
    rows = common.table(["", ""], _rows(rate, work, tokens, parameters, hours))
    return "".join(
        [
            common.sentence(told),
            picture.live(),
            common.folded("The numbers behind it", rows),
            common.folded("The same in code", common.call(code)),
        ]
    )


def _code(days: float, parameters: int, num_gpus: int, rate: float) -> str:
    return (
        f"{days:.10g} * 86400 / training_seconds(\n    tokens=1, "
        f"parameters={common.in_code(parameters)}, num_gpus={num_gpus},\n"
        f'    flops_per_gpu={rate:.6g}, recompute="none")'
    )


def _rate(chip: str, percent: float) -> float:
    """What each GPU does a second: a share of its peak in 16 bits."""
    device = accelerator(chip)
    peak = device.peak("bf16" if "bf16" in device.peaks else "fp16")
    return float(share("share of the peak", percent / 100) * peak)


def _ago(before: common.Values | None) -> float | None:
    """The tokens of the picture before this one."""
    if before is None:
        return None
    rate = _rate(before["chip"], before["percent"])
    each = training_seconds(1, before["parameters"], before["num_gpus"], rate, "none")
    return float(before["days"] * units.DAY / each)


def _marks(parameters: int) -> list[tuple[str, float]]:
    """Published runs, and as many tokens a parameter as Chinchilla had."""
    chinchilla = run("Chinchilla 70B")
    each = chinchilla["tokens"] / chinchilla["active_parameters"]
    return [
        (f"{units.digits(each, 2)} for each parameter", each * parameters),
        ("GPT-3", run("GPT-3 175B")["tokens"]),
        ("Llama 3.1 405B", run("Llama 3.1 405B")["tokens"]),
    ]


def _rows(
    rate: float, work: float, tokens: float, parameters: int, hours: float
) -> list[list[str]]:
    return [
        ["each GPU does", units.flops_per_second(rate)],
        ["all together, over the days", units.flops(work)],
        ["for each token", units.flops(work / tokens)],
        ["tokens for each parameter", units.digits(tokens / parameters)],
        ["GPU-hours", units.count(hours)],
    ]


PANEL = common.Panel(
    "What does that make?",
    _CONTROLS,
    _PRESETS,
    ("One gaming card for a weekend", "1,024 A100 for 34 days"),
    draw,
    narrow=partial(draw, layout=NARROW),
)
