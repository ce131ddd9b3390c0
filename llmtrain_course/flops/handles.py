"""Chapter 02: the panel from a step's seconds to MFU and HFU; the handle of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

from llmtrain_course.flops.formulas import AttentionPairs, attention_pairs, product_flops
from llmtrain_course.flops.pictures import (
    MATRIX,
    RETURNED,
    SMALL,
    TELEPHONE,
    TOKENS,
    attention_square,
    filled,
    passes,
    past_peak,
    step_work,
    two_tokens,
)
from llmtrain_course.kit import controls, panel as common
from llmtrain_helpers import units
from llmtrain_helpers.flops import (
    ATTENTION,
    EveryRecompute,
    FlopCount,
    Pairs,
    achieved_flops_per_gpu,
    count_flops,
    without_windows,
)
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.published import (
    PEAKS,
    accelerator,
    architecture,
    config_model,
    names,
    rows,
    run,
)

ALL, BACK, SEEN = "all", "those that look back", "those that a token may see"
"""Which pairs of tokens are counted: as papers do, without the empty half, and in its window."""


@dataclass(frozen=True)
class Setting:
    """A step that was measured, and what is counted of it."""

    model: str = "Megatron 18.4B"
    sequence_length: int = 1024
    batch_size: int = 512
    num_gpus: int = 16
    seconds: float = 32.09
    recompute: EveryRecompute = "full"
    chip: str = "A100 80GB SXM"
    format: str = "bf16"
    attention: str = ALL

    @cached_property
    def work(self) -> FlopCount:
        """FLOPs of the step, part by part."""
        shape = model_shape(self.model, self.sequence_length)
        if self.attention == BACK:
            shape = without_windows(shape)
        pairs: Pairs = "dense" if self.attention == ALL else "causal"
        return count_flops(shape, self.batch_size, self.recompute, pairs)

    @cached_property
    def rate(self) -> float:
        """What each GPU did, in FLOP/s."""
        return float(achieved_flops_per_gpu(self.work.total, self.seconds, self.num_gpus))

    @property
    def peak(self) -> float:
        """What each GPU could do, in FLOP/s."""
        return float(accelerator(self.chip).peak(self.format))

    @cached_property
    def shares(self) -> tuple[float, float]:
        """MFU and HFU; not by `utilization`, for here a share above 1 is shown."""
        work, hfu = self.work, self.rate / self.peak
        return hfu * work.model / work.total, hfu


def model_shape(model: str, sequence_length: int | None = None) -> Transformer:
    """The shape of a published model by its name, with windows where it has them.

    The table of shapes knows no windows; a configuration file does.
    """
    return (config_model if model in names("configs") else architecture)(model, sequence_length)


PEAK = 500
"""Pixels of the peak, which stays where it is when a step claims to be past it."""

_GPT3 = Setting("GPT-3 175B", 2048, 64, 64, 18.13)
_LONG = Setting(
    "Llama-3.1-8B", 32768, batch_size=32, num_gpus=64, seconds=4, recompute="none", chip="H100 SXM"
)

_SETTINGS = {
    "18.4B on 16 A100": Setting(),
    "GPT-3 on 64 A100, full recomputation": _GPT3,
    "GPT-3 on 64 A100, selective": replace(_GPT3, seconds=13.75, recompute="selective"),
    "Llama 3.1 8B at 32,768 tokens": _LONG,
    "gpt-oss-20b at 32,768 tokens": replace(_LONG, model="gpt-oss-20b", seconds=2),
    "18.4B, as a colleague counts it": Setting(sequence_length=2048),
}

_SECONDS = controls.steps(1, 100, 1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8)
"""A quarter more at every stop of the slider."""

_CONTROLS = {
    "model": controls.MODEL,
    "seconds": common.Control(
        "Seconds a step",
        "Measured time from one update to the next.",
        unit="s",
        least=0.001,
        most=1e6,
        whole=False,
        stops=tuple(x if x % 1 else int(x) for x in _SECONDS),
    ),
    "num_gpus": replace(controls.GPUS, stops=controls.doublings(1, 16384)),
    "recompute": controls.RECOMPUTED,
    "sequence_length": controls.SEQUENCE,
    "batch_size": controls.BATCH,
    "chip": controls.CHIP,
    "format": controls.choice(
        "Number format", "The format whose peak is compared.", PEAKS, more=True
    ),
    "attention": controls.choice(
        "Pairs of tokens counted",
        "All, as most papers do; those before a token; or of these the ones in its window.",
        [ALL, BACK, SEEN],
        more=True,
    ),
}


def render(
    setting: Setting, before: Setting | None = None, unit: float = PEAK
) -> str | common.Answer:
    """The panel's answer as HTML: sentence, passes and bar, table, call in code."""
    work, rate, peak = setting.work, setting.rate, setting.peak
    layers = int(model_shape(setting.model).num_layers)
    previous, narrow = before.work if before else None, unit == TELEPHONE
    stack = passes(work, layers, height=170, before=previous, narrow=narrow).inline_svg()
    if rate > peak:  # on the scale of the others, where there is room
        unit = unit if rate < 1.36 * peak else 0
        return _answer_past_peak(
            setting, past_peak(work, rate, peak, unit, narrow).inline_svg() + stack
        )
    previous_shares = before.shares if before and before != setting else None
    parts = common.table(["part", "FLOP a step", "share"], common.shares(work, units.flops))
    return "".join(
        [
            common.sentence(_sentence(setting)),
            filled(work, rate, peak, previous_shares, unit).inline_svg(),
            stack,
            common.folded("The work, part by part", parts),
            common.folded("The same in code", common.call(_code(setting))),
        ]
    )


def _answer_past_peak(setting: Setting, pictures: str) -> common.Answer:
    """Answer a rate above the peak: the bar past it, and what each usual slip would explain."""
    mistakes = [*_mistakes(setting)]
    advice = "None of the usual slips is enough to explain this: look at the seconds first."
    if mistakes:
        advice = "The usual slips, and what HFU would be without each, stand below; "
        advice += "look up which it was."
    reason = (
        f"In {setting.seconds:g} s each GPU would have to work at "
        f"{units.percent(setting.shares[1])} of its peak of "
        f"{units.flops_per_second(setting.peak)}: "
        f"an input is not as it was in the run. {advice}"
    )
    offers = (*_seconds_of_presets(setting), *mistakes)
    return common.Answer(common.warning(reason) + pictures, offers=offers)


def _seconds_of_presets(setting: Setting) -> Iterator[common.Offer]:
    """The seconds of the preset that this setting is, but for the seconds."""
    for preset in _SETTINGS.values():
        time = preset.seconds
        if time != setting.seconds and replace(setting, seconds=time) == preset:
            hfu = preset.shares[1]
            if hfu <= 1:
                change = f"Seconds {time:g}, not {setting.seconds:g}"
                yield f"{change}: HFU {units.percent(hfu)}", {"seconds": time}


def _mistakes(setting: Setting) -> Iterator[common.Offer]:
    """Offer to undo each common mistake, if that brings the share below the peak."""
    changes: list[tuple[str, common.Value, common.Value]] = [
        ("sequence_length", setting.sequence_length, setting.sequence_length // 2),
        ("batch_size", setting.batch_size, setting.batch_size // 2),
        ("num_gpus", setting.num_gpus, 2 * setting.num_gpus),
        ("recompute", setting.recompute, "none"),
        ("chip", setting.chip, "H100 SXM"),
    ]
    for name, current, value in changes:
        if not value or value == current:
            continue
        hfu = common.changed(setting, {name: value}).shares[1]
        if hfu <= 1:
            right, wrong = (x if isinstance(x, str) else units.exact(x) for x in (value, current))
            change = f"{_CONTROLS[name].label} {right}, not {wrong}"
            yield f"{change}: HFU {units.percent(hfu)}", {name: value}


def _sentence(setting: Setting) -> str:
    mfu, hfu = setting.shares
    result = f"<b>{units.flops_per_second(setting.rate)}</b> on each GPU, "
    result += f"MFU {units.percent(mfu)}"
    if setting.work.recomputed:
        result += f", and another {units.percent(hfu - mfu)} of the peak for work done twice."
    else:
        result += ": nothing is recomputed, so HFU is the same."
    if hfu > highest_hfu():
        result += (
            " <b>Look again</b>: of the published steps on more than one node, none "
            f"came above an HFU of {units.percent(highest_hfu())} (llm-foundry's 70B on 64 "
            "A100)."
        )
    if setting.attention == ALL and _has_windows(setting.model):
        result += (
            " All pairs of tokens are counted here, though in some layers a token sees only "
            "a window."
        )
    return result


@cache
def _has_windows(model: str) -> bool:
    """Check whether a token of some layer looks back less far than the longest sequence."""
    shape = model_shape(model)
    dense, windowed = (count_flops(shape, 1, "none", pairs).scores for pairs in ATTENTION)
    return bool(windowed < 0.49 * dense)  # without windows it is a little more than half


@cache
def highest_hfu() -> float:
    """The highest HFU in 16 bits that is published of a run on more than one node."""
    runs = [*rows("recomputation_runs"), *rows("llmfoundry_benchmarks")]
    in_16_bits = [row for row in runs if row.get("precision", "bf16").endswith("bf16")]
    return max(float(row["hfu"]) for row in in_16_bits if row["num_gpus"] > 8)


def _code(setting: Setting) -> str:
    source = "config_model" if setting.model in names("configs") else "architecture"
    pairs = "" if setting.attention == ALL else ', attention="causal"'
    windows_off = "model = without_windows(model)\n" if setting.attention == BACK else ""
    return (
        f"model = published.{source}({setting.model!r}, "
        f"{common.in_code(setting.sequence_length)})\n"
        f"{windows_off}F = count_flops(model, {common.in_code(setting.batch_size)}, "
        f"recompute={setting.recompute!r}{pairs}).total\n"
        f"X = achieved_flops_per_gpu(F, {setting.seconds:g}, {setting.num_gpus})\n"
        f"chip = published.accelerator({setting.chip!r})\n"
        f"utilization(X, chip.peak({setting.format!r}))"
    )


PANEL = common.Panel(
    "What share of the peak?",
    _CONTROLS,
    _SETTINGS,
    ("GPT-3 on 64 A100, selective", "Llama 3.1 8B at 32,768 tokens"),
    render,
    narrow=partial(render, unit=TELEPHONE),
    captioned=True,
)


# --- the handle: which pairs of tokens are counted


@dataclass(frozen=True)
class Square:
    """A sequence of tokens, and which of their pairs attention counts."""

    causal: bool = False
    tokens: int = 16
    window: int = 0

    @property
    def pairs(self) -> AttentionPairs:
        """The pairs; a window as long as the sequence or longer leaves none out."""
        attention = "causal" if self.causal else "dense"
        return attention_pairs(self.tokens, attention, self.window if self.causal else 0)


_TOKENS = (4, 6, 8, 12, 16, 20, 24, 28, 32)

_SQUARE = {
    "causal": common.Control(
        "Causal: no token looks ahead",
        "Whether a token sees only itself and those before it.",
        "flag",
    ),
    "tokens": common.Control(
        "Tokens", "How many tokens the sequence has.", least=4, most=32, stops=_TOKENS
    ),
    "window": common.Control(
        "Window",
        "How many tokens back a token looks, itself included; 0 is all of them.",
        least=0,
        most=32,
        stops=(0, 1, 2, 3, 5, *_TOKENS),
        zero="none",
        applies=lambda setting: setting.causal,
        reach=lambda setting: setting.tokens,
    ),
}


def draw_square(setting: Square, before: Square | None = None, narrow: bool = False) -> str:
    """The square of queries and keys, and how many of its pairs count."""
    pairs = setting.pairs
    many = f"<b>{units.exact(pairs.counted)} of {units.exact(pairs.dense)} pairs</b>"
    text = f"{many} are multiplied: {units.share(pairs.share)}."
    if not setting.causal:
        text = f"{many}: every token with every token, as most papers count."
    elif 0 < setting.window < setting.tokens:
        text += f" A token sees {units.plural(setting.window, 'token')} at the most."
    else:
        text += " A token sees itself and those before it."
    return common.pictured(attention_square(pairs, narrow), text)


ATTENTION_SQUARE = common.Handle(
    "Which pairs attention counts",
    _SQUARE,
    draw_square,
    settings={"start": Square()},
    narrow=partial(draw_square, narrow=True),
    book=({"causal": True}, {"causal": True, "window": 4}),
)


@dataclass(frozen=True)
class Product:
    """How many tokens have gone through the three products of a matrix."""

    step: int = 0


_TEXTS = (
    "Two tokens wait in front of 12 weights.",
    "Forward, first column: <b>{column} = {y}</b>. Each weight multiplies once and adds once.",
    "The second token meets the same weights. First column: {column} = {y}.",
    "Backward, first row: <b>{row} = {dx}</b>. The first token's gradient is passed on.",
    "And that of the second, {row} = {dx}. Now the layer before knows its gradients.",
    "To learn, first weight: a number of the token times a gradient, <b>{learnt}</b>. It is "
    "added to 0, which counts as well.",
    "The second token's part is <b>added</b>: {learnt}. Six products of 24: 2 FLOP forward "
    "and 4 backward, for each weight and token.",
)


def _text(step: int) -> str:
    """Describe a step with the numbers of its first column, row or weight."""
    token = (step - 1) % 2
    small, x, dy = SMALL[token], TOKENS[token], RETURNED[token]
    column = [f"{row[0]}·{number}" for row, number in zip(MATRIX, x, strict=True)]
    row = [f"{weight}·{number}" for weight, number in zip(MATRIX[0], dy, strict=True)]
    first, second = (each.gradient[0][0] for each in SMALL)
    learnt = f"{first} + {second} = {first + second}" if token else f"{x[0]}·{dy[0]} = {first}"
    return _TEXTS[step].format(
        column=" + ".join(column),
        y=small.output[0],
        row=" + ".join(row),
        dx=small.passed_on[0],
        learnt=learnt,
    )


def _draw_product(product: Product, before: Product | None, narrow: bool = False) -> str:
    each = product_flops(1, 3, 4)
    return common.pictured(two_tokens(product.step, each, narrow), _text(product.step))


TWO_TOKENS = common.Handle(
    title="Two tokens meet a matrix",
    controls={
        "step": common.Control(
            "Products",
            "How many products are done: two tokens, three times.",
            least=0,
            most=6,
            stops=tuple(range(7)),
            play=True,
        )
    },
    settings={"": Product()},
    draw=_draw_product,
    narrow=partial(_draw_product, narrow=True),
)


@dataclass(frozen=True)
class Step:
    """A step of 131,072 tokens of GPT-3, as it was timed, cut into sequences of one length."""

    sequence_length: int = 2048
    recompute: EveryRecompute = "full"

    @cached_property
    def work(self) -> FlopCount:
        """FLOPs of the step, part by part."""
        # its table of positions is taken to be longer than it was
        gpt3 = replace(architecture("GPT-3 175B"), num_positions=STEP_TOKENS)
        batch = STEP_TOKENS // self.sequence_length
        return count_flops(gpt3, batch, self.recompute, sequence_length=self.sequence_length)


STEP_TOKENS = 2**17
"""Tokens of the step that the handle shows: 64 sequences of 2,048."""

LONGEST = 2**16
"""Tokens of the longest sequence: there backward is as long as the picture is wide."""


def _draw_step(step: Step, before: Step | None, narrow: bool = False) -> str:
    longest = Step(LONGEST, "none").work
    previous = before.work if before else None
    picture = step_work(step.work, 2 * longest.model / 3, previous, narrow)
    parameters = run("GPT-3 175B")["active_parameters"]
    each = step.work.total / (STEP_TOKENS * parameters)
    text = (
        f"{units.plural(STEP_TOKENS // step.sequence_length, 'sequence')} of "
        f"{units.exact(step.sequence_length)} tokens. The scores are "
        f"{units.percent(step.work.scores / step.work.model)} of the model's own work. "
        f"<b>{units.digits(each)} FLOP for each parameter and token.</b>"
    )
    return common.pictured(picture, text)


STEP_WORK = common.Handle(
    book=({}, {"sequence_length": 32768}),
    title="The work of a step of GPT-3",
    controls={
        "sequence_length": replace(
            controls.SEQUENCE,
            help="Tokens in each sequence; the step's tokens stay as many.",
            least=2048,
            most=LONGEST,
            stops=controls.doublings(2048, LONGEST),
            more=False,
        ),
        "recompute": controls.RECOMPUTED,
    },
    settings={"": Step()},
    draw=_draw_step,
    narrow=partial(_draw_step, narrow=True),
)


@dataclass(frozen=True)
class TimedStep:
    """The 18.4B run on 16 A100, and the seconds that its step might take."""

    seconds: float = 32.09


def _draw_timed(timed: TimedStep, before: TimedStep | None, unit: float = PEAK) -> str:
    setting = Setting(seconds=timed.seconds)
    mfu, hfu = setting.shares
    rate = units.flops_per_second(setting.rate)
    if hfu > 1:
        text = f"{rate} on each GPU: <b>past the peak</b>. No chip does that."
        return common.pictured(past_peak(setting.work, setting.rate, setting.peak, unit), text)
    text = f"{rate} on each GPU. <b>MFU {units.percent(mfu)}, HFU {units.percent(hfu)}.</b>"
    return common.pictured(filled(setting.work, setting.rate, setting.peak, unit=unit), text)


ACHIEVED = common.Handle(
    book=({}, {"seconds": 20}),
    title="A share of the peak",
    controls={
        "seconds": common.Control(
            "Seconds a step",
            "Measured time from one update to the next.",
            unit="s",
            least=12,
            most=200,
            whole=False,
            stops=(12, 14, 16, 18, 20, 25, 32.09, 40, 50, 64, 80, 100),
        )
    },
    settings={"": TimedStep()},
    draw=_draw_timed,
    narrow=partial(_draw_timed, unit=TELEPHONE),
)
