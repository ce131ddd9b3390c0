"""The panel of chapter 00: what GPUs and days make of a model, in tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from llmtrain_helpers import units
from llmtrain_helpers.drawings.start_here import NARROW, WIDE, Layout, budget
from llmtrain_helpers.duration import gpu_hours, rate_at, trainable_tokens
from llmtrain_helpers.evidence.published import accelerator, run
from llmtrain_helpers.panels import common, controls


@dataclass(frozen=True)
class Setting:
    """GPUs, days and a model; and how much of its peak each GPU reaches."""

    num_gpus: int = 8
    days: float = 30
    parameters: int = 8 * 10**9
    chip: str = "A100 80GB SXM"
    percent: float = 35

    @property
    def rate(self) -> float:
        """What each GPU does, in FLOP/s: a share of its peak in 16 bits."""
        chip = accelerator(self.chip)
        return float(rate_at(self.percent / 100, chip.peak(chip.training_format)))

    @property
    def tokens(self) -> float:
        """The tokens that the GPUs and days pay for."""
        seconds = self.days * units.DAY
        return float(trainable_tokens(seconds, self.parameters, self.num_gpus, self.rate, "none"))


_SETTINGS = {
    "Eight A100 for a month": Setting(),
    "One gaming card for a weekend": Setting(1, 2, 124 * 10**6, "RTX 4090"),
    "64 H100 for two weeks": Setting(64, 14, 3 * 10**9, "H100 SXM"),
    "1,024 A100 for 34 days": Setting(1024, 34, 175 * 10**9),
}

_CONTROLS = {
    "num_gpus": replace(controls.GPUS, most=10**6),
    "days": common.Control(
        "Days",
        "How long you may use them.",
        least=0.01,
        most=3650,
        whole=False,
        stops=controls.DAYS_OF_USE,
    ),
    "parameters": common.Control(
        "Model size",
        "Parameters of the model; write 8B for 8 billion.",
        unit="parameters",
        least=10**6,
        most=10**13,
        stops=controls.steps(10**7, 10**12, 1, 1.5, 2, 3, 5, 8),
    ),
    "chip": controls.CHIP,
    "percent": replace(controls.SHARE_OF_PEAK, stops=tuple(range(5, 81)), more=True),
}


def draw(setting: Setting, before: Setting | None = None, layout: Layout = WIDE) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    n, days, P, rate = setting.num_gpus, setting.days, setting.parameters, setting.rate
    seconds, tokens = days * units.DAY, setting.tokens
    work = seconds * n * rate
    chinchilla = run("Chinchilla 70B")
    each = chinchilla["tokens"] / chinchilla["active_parameters"]
    marks = [
        (f"{units.digits(each, 2)} for each parameter", each * P),
        ("GPT-3", run("GPT-3 175B")["tokens"]),
        ("Llama 3.1 405B", run("Llama 3.1 405B")["tokens"]),
    ]
    chip = [setting.chip, f"{setting.percent:g} % of its peak: {units.flops_per_second(rate)}"]
    old = before.tokens if before else None
    picture = budget(n, days, rate, tokens, marks, old, chip, layout)
    rows = [
        ["each GPU does", units.flops_per_second(rate)],
        ["all together, over the days", units.flops(work)],
        ["for each token", units.flops(work / tokens)],
        ["tokens for each parameter", units.digits(tokens / P)],
        ["GPU-hours", units.count(gpu_hours(seconds, n))],
    ]
    code = (
        f"{days:.10g} * 86400 / training_seconds(\n    tokens=1, "
        f"parameters={common.in_code(P)}, num_gpus={n},\n"
        f'    flops_per_gpu={rate:.6g}, recompute="none")'
    )
    return "".join(
        [
            common.sentence(
                f"<b>{units.count(tokens, 2)} tokens</b> for a model of {units.short(P)} "
                f"parameters: {units.digits(tokens / P, 2)} for each parameter."
            ),
            picture.live(),
            common.folded("The numbers behind it", common.table(["", ""], rows)),
            common.folded("The same in code", common.call(code)),
        ]
    )


PANEL = common.Panel(
    "What does that make?",
    _CONTROLS,
    _SETTINGS,
    ("One gaming card for a weekend", "1,024 A100 for 34 days"),
    draw,
    narrow=partial(draw, layout=NARROW),
)
