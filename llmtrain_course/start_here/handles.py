"""The panel of chapter 00: what GPUs and days make of a model, in tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.drawing import Drawing
from llmtrain_course.kit.formulas import rate_at, trainable_tokens
from llmtrain_course.start_here import pictures as drawings
from llmtrain_course.start_here.formulas import flops_on_the_way
from llmtrain_course.start_here.pictures import (
    NARROW,
    NARROW_WAY,
    TELEPHONE,
    WAY,
    WIDE,
    WIDTH,
    Layout,
)
from llmtrain_helpers import units
from llmtrain_helpers.duration import flops_per_parameter, gpu_hours, training_seconds
from llmtrain_helpers.published import accelerator, run


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


def _machine(
    setting: Setting, before: Setting | None, enough: bool, layout: Layout = WIDE
) -> Drawing:
    """The picture that the handle and the panel share; there with the mark of enough tokens."""
    P, tokens = setting.parameters, setting.tokens
    gpt3, chinchilla = run("GPT-3 175B"), run("Chinchilla 70B")
    each = chinchilla["tokens"] / chinchilla["active_parameters"]
    marks = [(name, run(name)["tokens"]) for name in ("GPT-3 175B", "Llama 3.1 405B")]
    targets = [("GPT-3 read", gpt3["tokens"])]
    if enough:
        targets.append((f"{units.digits(each, 2)} for each parameter:", each * P))
    chip = [f"each {units.powers(setting.rate)}", "operations a second"]
    return drawings.machine(
        setting.num_gpus,
        setting.days,
        P,
        setting.rate,
        flops_per_parameter("none") * P,
        tokens,
        [(name.removesuffix(" 175B"), number) for name, number in marks],
        before.tokens if before else None,
        chip,
        layout,
        targets,
    )


def _result(setting: Setting) -> str:
    tokens, P = setting.tokens, setting.parameters
    return (
        f"<b>{units.count(tokens, 2)} tokens</b> for a model of {units.short(P)} "
        f"parameters: {units.digits(tokens / P, 2)} for each parameter."
    )


def draw(setting: Setting, before: Setting | None = None, layout: Layout = WIDE) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    n, days, P, rate = setting.num_gpus, setting.days, setting.parameters, setting.rate
    seconds, tokens = days * units.DAY, setting.tokens
    work = seconds * n * rate
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
            common.sentence(_result(setting)),
            _machine(setting, before, True, layout).inline_svg(),
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


# --- handles


@dataclass(frozen=True)
class Machine:
    """GPUs, days and a model, each GPU an A100 at its usual share of the peak."""

    num_gpus: int = 8
    days: float = 30
    parameters: int = 8 * 10**9

    @property
    def setting(self) -> Setting:
        """The same in the panel."""
        return Setting(self.num_gpus, self.days, self.parameters)


def _draw_machine(now: Machine, before: Machine | None, layout: Layout = WIDE) -> str:
    setting = now.setting
    picture = _machine(setting, before.setting if before else None, False, layout)
    gpt3 = run("GPT-3 175B")["tokens"]
    text = _result(setting)
    if setting.tokens >= gpt3:
        text += f" GPT-3 read {units.count(gpt3, 2)}. "
        text += f"{units.plural(setting.gpus_for(gpt3), 'GPU')} would do for that."
    return common.pictured(picture, text)


MACHINE = common.Handle(
    book=({}, {"num_gpus": 512}),
    title="GPUs, days and a model: how many tokens?",
    controls={name: _CONTROLS[name] for name in ("num_gpus", "days", "parameters")},
    settings={"": Machine()},
    draw=_draw_machine,
    narrow=partial(_draw_machine, layout=NARROW),
)


@dataclass(frozen=True)
class Way:
    """How many layers a token has gone through, up and down again."""

    step: int = 0


def _draw_way(way: Way, before: Way | None, layout: drawings.Way = WAY) -> str:
    P, layers = 8 * 10**9, drawings.LAYERS
    done = flops_on_the_way(P, way.step, layers)
    whole = flops_on_the_way(P, 2 * layers, layers)
    if not way.step:
        text = "A token waits below the layers of a model with 8 billion parameters."
    elif way.step < layers:
        text = "Forward: each parameter multiplies once and adds once. That is 2 operations."
    elif way.step == layers:
        text = "At the top the model guesses the next token. Now its error is known."
    elif way.step < 2 * layers:
        text = (
            "Backward: the error goes back down. Each parameter passes it on, 2 operations, "
            "and learns how it should change, 2 more."
        )
    else:
        text = (
            f"<b>6 operations for each parameter: {units.count(whole, 2)} operations for "
            "one token.</b>"
        )
    return common.pictured(drawings.one_token(way.step, P, done, whole, layout), text)


ONE_TOKEN = common.Handle(
    book=({"step": 4}, {"step": 8}),
    title="A token goes up through the layers, and its error comes down",
    controls={
        "step": common.Control(
            "Layers passed",
            "How many layers the token, and then its error, have gone through.",
            least=0,
            most=2 * drawings.LAYERS,
            stops=tuple(range(2 * drawings.LAYERS + 1)),
            play=True,
        )
    },
    settings={"": Way()},
    draw=_draw_way,
    narrow=partial(_draw_way, layout=NARROW_WAY),
)


@dataclass(frozen=True)
class Share:
    """The share of its peak that each GPU is taken to reach, in per cent."""

    percent: int = 35


REAL_RUNS = ("Pythia 12B", "LLaMA-1 65B", "Llama 2 7B", "Llama 2 70B", "BLOOM-176B")
"""Runs on A100 whose GPU-hours are published."""


def _draw_runs(share: Share, before: Share | None, width: int = WIDTH) -> str:
    rate = float(rate_at(share.percent / 100, accelerator("A100").peak("bf16")))
    ratios = []
    for name in REAL_RUNS:
        row = run(name)
        seconds = training_seconds(row["tokens"], row["active_parameters"], 1, rate, "none")
        ratios.append((name, float(gpu_hours(seconds, 1)) / row["gpu_hours"]))
    least, most = min(x for _, x in ratios), max(x for _, x in ratios)
    text = (
        f"Each A100 at {share.percent} % of its peak, {units.count(rate)} operations a second: "
        f"the estimates are {units.digits(least, 2)} to {units.digits(most, 2)} times what was "
        "reported."
    )
    return common.pictured(drawings.real_runs(ratios, rate, width), text)


FIVE_RUNS = common.Handle(
    book=({}, {"percent": 50}),
    title="Estimates beside five real runs",
    controls={
        "percent": common.Control(
            "Share of the peak",
            "What each GPU is taken to reach, in per cent of its peak.",
            unit="%",
            least=5,
            most=80,
            stops=tuple(range(10, 71, 5)),
        )
    },
    settings={"": Share()},
    draw=_draw_runs,
    narrow=partial(_draw_runs, width=TELEPHONE),
)


@dataclass(frozen=True)
class Tank:
    """GPUs that fill a tank with work, and for how many days."""

    num_gpus: int = 64
    days: int = 30


def _draw_tank(tank: Tank, before: Tank | None, width: int = WIDTH) -> str:
    gpt3 = run("GPT-3 175B")
    work = flops_per_parameter("none") * gpt3["tokens"] * gpt3["active_parameters"]
    rate = tank.num_gpus * Setting().rate
    done = min(rate * tank.days * units.DAY, work)
    text = (
        "More GPUs fill it faster. The tank, <b>what GPT-3 took</b>, stays as large as it is."
        if done < work
        else "Full: that is <b>all the work of GPT-3</b>. Fewer GPUs do it too, only later."
    )
    picture = drawings.count_and_rate(
        tank.num_gpus, tank.days, rate, done, work, work / rate, width
    )
    return common.pictured(picture, text)


COUNT_AND_RATE = common.Handle(
    book=({}, {"num_gpus": 1024}),
    title="A rate fills a tank: how fast, and how much",
    controls={
        "num_gpus": replace(controls.GPUS, most=10**6, stops=controls.doublings(8, 4096)),
        "days": common.Control(
            "Days",
            "How long they have been at it.",
            least=0,
            most=3650,
            stops=(0, 5, 10, 20, 30, 60, 90, 180, 365, 730),
            play=True,
        ),
    },
    settings={"": Tank()},
    draw=_draw_tank,
    narrow=partial(_draw_tank, width=TELEPHONE),
)
