"""The panel and the handles of chapter 00: what GPUs and days make of a model, in tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import ceil, hypot, log
from typing import Any

from llmtrain_course.duration.handles import PRICE
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.formulas import rate_at, trainable_tokens
from llmtrain_course.kit.handle import ByHand, Shown, handle, slider
from llmtrain_course.kit.layout import PAGE, Picture
from llmtrain_course.start_here import pictures as drawings
from llmtrain_course.start_here.formulas import flops_on_the_way
from llmtrain_helpers import units
from llmtrain_helpers.duration import cost, flops_per_parameter, gpu_hours, training_seconds
from llmtrain_helpers.published import accelerator, rows, run, share_of_run


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

    def gpus_for(self, tokens: float) -> int:
        """How many GPUs read so many tokens in these days."""
        of_one = training_seconds(tokens, self.parameters, 1, self.rate, "none")
        return ceil(float(of_one) / (self.days * units.DAY))


_SETTINGS = {
    "Eight A100s for a month": Setting(),
    "One gaming card for a weekend": Setting(1, 2, 124 * 10**6, "RTX 4090"),
    "64 H100s for two weeks": Setting(64, 14, 3 * 10**9, "H100 SXM"),
    "1,024 A100s for 34 days": Setting(1024, 34, 175 * 10**9),
}

_CONTROLS = {
    "num_gpus": replace(controls.GPUS, most=10**6),
    "days": common.Control(
        "Days",
        "How long you can use them.",
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


def _machine(setting: Setting, before: Setting | None, enough: bool) -> Picture:
    """The picture that the handle and the panel share; there with the mark of enough tokens."""
    P, tokens = setting.parameters, setting.tokens
    gpt3, llama, chinchilla = map(run, ("GPT-3 175B", "Llama 3.1 405B", "Chinchilla 70B"))
    each = chinchilla["tokens"] / chinchilla["active_parameters"]
    targets = {"GPT-3:": gpt3["tokens"]}
    if enough:
        targets[f"{units.digits(each, 2)} per parameter:"] = each * P
    return drawings.machine(
        setting.num_gpus,
        setting.days,
        P,
        setting.rate,
        flops_per_parameter("none") * P,
        tokens,
        {"GPT-3": gpt3["tokens"], "Llama 3.1 405B": llama["tokens"]},
        before.tokens if before else None,
        targets,
    )


def _result(setting: Setting) -> str:
    tokens, P = setting.tokens, setting.parameters
    return (
        f"<b>{units.count(tokens, 2)} tokens</b> for a model with {units.short(P)} "
        f"parameters, which is {units.digits(tokens / P, 2)} per parameter."
    )


def draw(setting: Setting, before: Setting | None = None, width: int = PAGE) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    n, days, P, rate = setting.num_gpus, setting.days, setting.parameters, setting.rate
    seconds, tokens = days * units.DAY, setting.tokens
    work = seconds * n * rate
    rows = [
        ["each GPU computes", units.flops_per_second(rate)],
        ["all of them, over the days", units.flops(work)],
        ["per token", units.flops(work / tokens)],
        ["tokens per parameter", units.digits(tokens / P)],
        ["GPU-hours", units.count(gpu_hours(seconds, n))],
    ]
    code = (
        f"{days:.10g} * 86400 / training_seconds(\n    tokens=1, "
        f"parameters={common.in_code(P)}, num_gpus={n},\n"
        f'    flops_per_gpu={rate:.6g}, recompute="none")'
    )
    return "".join(
        [
            common.sentence(_result(setting)),
            _machine(setting, before, True).drawing(width).inline_svg(),
            common.folded("The numbers behind it", common.table(["", ""], rows)),
            common.folded("The same in code", common.call(code)),
        ]
    )


PANEL = common.Panel(
    "How many tokens is that?",
    _CONTROLS,
    _SETTINGS,
    ("One gaming card for a weekend", "1,024 A100s for 34 days"),
    draw,
)


# --- handles


_STOPS: dict[str, tuple[float, ...]] = {
    "num_gpus": (*(2**k for k in range(11)), 4096, 16384),
    "days": (1, 7, 14, 30, 60, 90, 180, 365),
    "parameters": tuple(x * 10**9 for x in (0.1, 0.3, 1, 2, 4, 8, 16, 32, 70, 180, 400, 1000)),
}
"""Few enough that a page can draw every setting in advance."""


@handle(
    "GPUs times days is work, and divided by the FLOPs per token it's a number of tokens.",
    **{name: replace(_CONTROLS[name], stops=stops) for name, stops in _STOPS.items()},
    book=({}, {"num_gpus": 512}),
)
def machine(
    num_gpus: int = 8, days: float = 30, parameters: int = 8 * 10**9, previous: Any = None
) -> Shown:
    """The tokens that GPUs and days pay for, each GPU an A100 at its usual share of the peak."""
    setting = Setting(num_gpus, days, parameters)
    before = Setting(**vars(previous)) if previous else None
    gpt3 = run("GPT-3 175B")["tokens"]
    text = _result(setting)
    if setting.tokens >= gpt3:
        text += f" GPT-3 was trained on {units.count(gpt3, 2)}, and "
        text += f"{units.plural(setting.gpus_for(gpt3), 'GPU')} would be enough for that."
    return _machine(setting, before, False), text


@handle(
    "One token's way up through the layers, its error's way down, and the FLOPs per weight.",
    step=slider(
        "Layers passed",
        "How many layers the token, and then its error, have passed.",
        tuple(range(2 * drawings.LAYERS + 1)),
        play=True,
    ),
    book=({"step": 4}, {"step": 8}),
)
def one_token(step: int = 0) -> Shown:
    """The operations of a token on its way up through the layers, and of its error down again."""
    P, layers = 8 * 10**9, drawings.LAYERS
    done = flops_on_the_way(P, step, layers)
    whole = flops_on_the_way(P, 2 * layers, layers)
    if not step:
        text = "A token is waiting below the layers of a model with 8 billion parameters."
    elif step < layers:
        text = "Forward: each parameter multiplies once and adds once, so that's 2 operations."
    elif step == layers:
        text = "At the top, the model guesses the next token, so we know its error."
    elif step < 2 * layers:
        text = (
            "Backward: the error goes back down. Each parameter passes it on (2 operations) "
            "and learns how it should change (2 more)."
        )
    else:
        text = f"<b>6 operations per parameter: {units.count(whole, 2)} operations per token.</b>"
    return ByHand(partial(drawings.one_token, step, P, done, whole)), text


@handle(
    "The utilization of five published runs, next to the one that you promised.",
    percent=slider(
        "You promise",
        "The share of its peak that you promise for each GPU, over the whole run.",
        (20, 25, 30, 35, 40, 45, 50),
        unit="%",
        least=10,
        most=60,
    ),
    book=({}, {"percent": 25}),
)
def five_runs(percent: int = 35) -> Shown:
    """The share of the peak that five runs on A100 reached, and a promise that some would break."""
    shares = {name: share_of_run(name) for name in drawings.REAL_RUNS}
    promised, slowest = percent / 100, min(shares.values())
    late = sum(share < promised for share in shares.values())
    caption = f"<b>{late} of {len(shares)} runs would have been late.</b> "
    if late:
        days = units.digits(30 * promised / slowest, 2)
        caption += f"You promised a month, and the slowest run would have needed {days} days."
    else:
        days = units.digits(30 * promised / max(shares.values()), 2)
        caption = (
            "<b>All five would have kept your promise.</b> The fastest would have finished after "
        )
        caption += f"{days} days."
    return drawings.real_runs(shares, promised), caption


@handle(
    "Published runs by parameters and tokens, and the line that your GPUs can reach.",
    num_gpus=replace(
        _CONTROLS["num_gpus"], unit="A100", stops=(*controls.doublings(1, 256), 1024, 4096, 16384)
    ),
    days=replace(_CONTROLS["days"], stops=(1, 7, 30, 90, 365)),
    parameters=replace(_CONTROLS["parameters"], stops=_STOPS["parameters"]),
)
def reach(num_gpus: int = 8, days: float = 30, parameters: int = 8 * 10**9) -> Shown:
    """The front page's map: your model among published runs, each GPU an A100 at its usual rate."""
    P, T, seconds = parameters, Setting(num_gpus, days, parameters).tokens, days * units.DAY
    runs = rows("tokens_per_parameter")
    places = [(run["active_parameters"], run["tokens"]) for run in runs]
    inside = sum(size * tokens <= P * T for size, tokens in places)
    away = [hypot(log(size / P), log(tokens / T)) for size, tokens in places]
    nearest = runs[away.index(min(away))]
    text = (
        f"Your model trains on <b>{units.count(T, 2)} tokens</b> for "
        f"<b>{units.count(gpu_hours(seconds, num_gpus))} GPU-hours</b>, or "
        f"{units.dollars(cost(seconds, num_gpus, PRICE))} at {units.dollars(PRICE)} each. That's "
        f"enough for <b>{inside} of {len(runs)}</b> published runs, and <b>{nearest['name']}</b> "
        f"is the nearest to yours: {drawings.size_of(nearest)}."
    )
    return ByHand(partial(drawings.within_reach, runs, nearest, P, T)), text
