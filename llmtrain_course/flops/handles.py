"""Chapter 02: the panel from a step's seconds to MFU and HFU; the handles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

from llmtrain_course.flops import formulas
from llmtrain_course.flops.formulas import attention_pairs, product_flops
from llmtrain_course.flops.pictures import (
    KEYS,
    MATRIX,
    QUERIES,
    RETURNED,
    SENTENCE,
    SMALL,
    TOKENS,
    VALUES,
    passes,
    row_of_attention,
    share_of_peak,
    square_of_pairs,
    three_products,
    work_by_pass,
)
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.handle import ByHand, Shown, flag, handle, slider
from llmtrain_course.kit.layout import PAGE
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


_GPT3 = Setting("GPT-3 175B", 2048, 64, 64, 18.13)
_LONG = Setting(
    "Llama-3.1-8B", 32768, batch_size=32, num_gpus=64, seconds=4, recompute="none", chip="H100 SXM"
)

_SETTINGS = {
    "18.4B on 16 A100s": Setting(),
    "GPT-3 on 64 A100s, full recomputation": _GPT3,
    "GPT-3 on 64 A100s, selective": replace(_GPT3, seconds=13.75, recompute="selective"),
    "Llama 3.1 8B at 32,768 tokens": _LONG,
    "gpt-oss-20b at 32,768 tokens": replace(_LONG, model="gpt-oss-20b", seconds=2),
    "18.4B, as a colleague counts it": Setting(sequence_length=2048),
}

_SECONDS = controls.steps(1, 100, 1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8)
"""A quarter more at every stop of the slider."""

_CONTROLS = {
    "model": controls.MODEL,
    "seconds": common.Control(
        "Seconds per step",
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
        "Number format", "The format whose peak we compare with.", PEAKS, more=True
    ),
    "attention": controls.choice(
        "Pairs of tokens counted",
        "All pairs, as in most papers, only those before a token, or only those in its window.",
        [ALL, BACK, SEEN],
        more=True,
    ),
}


def render(
    setting: Setting, before: Setting | None = None, width: int = PAGE
) -> str | common.Answer:
    """The panel's answer as HTML: sentence, passes and bar, table, call in code."""
    work, rate, peak = setting.work, setting.rate, setting.peak
    layers = int(model_shape(setting.model).num_layers)
    old = before or setting
    described = share_of_peak(work, rate, peak, old.shares), passes(work, layers, old.work)
    pictures = "".join(picture.drawing(width).inline_svg() for picture in described)
    if rate > peak:
        return _answer_past_peak(setting, pictures)
    parts = common.table(["part", "FLOP per step", "share"], common.shares(work, units.flops))
    return "".join(
        [
            common.sentence(_sentence(setting)),
            pictures,
            common.folded("The work, part by part", parts),
            common.folded("The same in code", common.call(_code(setting))),
        ]
    )


def _answer_past_peak(setting: Setting, pictures: str) -> common.Answer:
    """Answer a rate above the peak: the bar past it, and what each usual mistake would explain."""
    mistakes = [*_mistakes(setting)]
    advice = "None of the usual mistakes explains this, so look at the seconds first."
    if mistakes:
        advice = "The usual mistakes are below, each with the HFU you'd get without it. "
        advice += "Which one was it?"
    reason = (
        f"In {setting.seconds:g} s each GPU would have to work at "
        f"{units.percent(setting.shares[1])} of its peak of "
        f"{units.flops_per_second(setting.peak)}: "
        f"so one of the inputs isn't what the run used. {advice}"
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
        result += f", and another {units.percent(hfu - mfu)} of the peak for recomputed work."
    else:
        result += ". Nothing is recomputed, so the HFU is the same."
    if hfu > highest_hfu():
        result += (
            " <b>Look again</b>: no published step on more than one node "
            f"was above an HFU of {units.percent(highest_hfu())} (llm-foundry's 70B on 64 "
            "A100s)."
        )
    if setting.attention == ALL and _has_windows(setting.model):
        result += (
            " We've counted all pairs of tokens, although a token only sees a window in "
            "some layers."
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
    ("GPT-3 on 64 A100s, selective", "Llama 3.1 8B at 32,768 tokens"),
    render,
    captioned=True,
)


# --- handles

_TEXTS = (
    "Two tokens are waiting in front of 12 weights.",
    "Forward, first column: <b>{column} = {y}</b>. Each weight multiplies once and adds once.",
    "The second token uses the same weights, and its first column is {column} = {y}.",
    "Backward, first row: <b>{row} = {dx}</b>. The first token's gradient is passed on.",
    "So is the second token's, {row} = {dx}. Now the layer below has its gradients.",
    "To learn, the first weight multiplies a number of the token by a gradient, <b>{learnt}</b>. "
    "That's added to 0, which also counts.",
    "The second token's part is <b>added</b>: {learnt}. With six products of 24 FLOP each, "
    "that's 2 FLOP forward and 4 backward per weight and token.",
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


@handle(
    "Two tokens pass through one matrix, number by number.",
    step=slider(
        "Products",
        "How many of the products are done: two tokens, three times.",
        tuple(range(len(_TEXTS))),
        play=True,
    ),
)
def two_tokens(step: int = 0) -> Shown:
    """How often each weight of a matrix works, forward and back."""
    each = product_flops(1, 3, 4)
    return ByHand(partial(three_products, step, each)), _text(step)


_ROW = (
    "Each token has a key, and the token that looks back has a query. Both are four numbers long.",
    "A score is query times key, number by number, added up. With 4 products and 4 sums, that's "
    "8 FLOP.",
    "Divided by √4 and passed through a softmax, the scores become shares that add up to 1.",
    "The shares mix the values. Here a value has 2 numbers, so that's 4 FLOP per token.",
)


@handle(
    "One row of attention: one token's query meets the keys of the tokens it may look at.",
    step=slider("Step", "Scores, then shares, then the mix.", (0, 1, 2, 3), play=True),
    looks=controls.choice("Looks back", "The token that this row belongs to.", tuple(QUERIES)),
    book=({"step": 1}, {"step": 3}),
)
def attention_row(step: int = 3, looks: str = "sat") -> Shown:
    """What a token computes with each token that it sees, with digits."""
    seen = SENTENCE.index(looks) + 1
    row = formulas.attention_row(QUERIES[looks], KEYS[:seen], VALUES[:seen])
    text = f"<b>“{looks}” sees {seen} tokens.</b> {_ROW[step]}"
    return row_of_attention(row, looks, step), text


_TOKENS = (4, 6, 8, 12, 16, 20, 24, 28, 32)


@handle(
    "The pairs of tokens that attention counts, with a causal mask or a window.",
    causal=flag(
        "Causal: no token looks ahead", "Whether a token only sees itself and earlier tokens."
    ),
    tokens=slider("Tokens", "How many tokens long the sequence is.", _TOKENS),
    window=slider(
        "Window",
        "How many tokens back a token looks, including itself. 0 means all of them.",
        (0, 1, 2, 3, 5, *_TOKENS),
        zero="none",
        applies=lambda setting: setting.causal,
        reach=lambda setting: setting.tokens,
    ),
    book=({"causal": True}, {"causal": True, "window": 4}),
)
def attention_square(causal: bool = False, tokens: int = 16, window: int = 0) -> Shown:
    """The square of queries and keys, and how many of its pairs count."""
    attention = "causal" if causal else "dense"
    pairs = attention_pairs(tokens, attention, window if causal else 0)
    picture = ByHand(partial(square_of_pairs, pairs))
    many = f"<b>{units.exact(pairs.counted)} of {units.exact(pairs.dense)} pairs</b>"
    if not causal:
        return picture, f"{many}: every token with every token, as most papers count."
    text = f"{many} are multiplied: {units.share(pairs.share)}."
    if 0 < window < tokens:
        return picture, f"{text} A token sees up to {units.plural(window, 'token')}."
    return picture, f"{text} A token sees itself and all earlier tokens."


STEP_TOKENS = 2**17
"""Tokens of the step that the handle shows: 64 sequences of 2,048."""

LONGEST = 2**16
"""Tokens of the longest sequence: there backward is as long as the picture is wide."""


def gpt3_step(sequence_length: int, recompute: EveryRecompute) -> FlopCount:
    """FLOPs of a step of GPT-3, as it was timed, cut into sequences of one length."""
    # its table of positions is taken to be longer than it was
    gpt3 = replace(architecture("GPT-3 175B"), num_positions=STEP_TOKENS)
    batch = STEP_TOKENS // sequence_length
    return count_flops(gpt3, batch, recompute, sequence_length=sequence_length)


@handle(
    "The FLOPs of one GPT-3 step, by sequence length and recomputation.",
    sequence_length=slider(
        "Sequence",
        "Tokens per sequence. The step always has the same number in all.",
        controls.doublings(2048, LONGEST),
        unit="tokens",
    ),
    recompute=controls.RECOMPUTED,
    book=({}, {"sequence_length": 32768}),
)
def step_work(
    sequence_length: int = 2048, recompute: EveryRecompute = "full", previous: Any = None
) -> Shown:
    """What a step of 131,072 tokens takes, pass by pass."""
    work = gpt3_step(sequence_length, recompute)
    old = gpt3_step(previous.sequence_length, previous.recompute) if previous else None
    picture = work_by_pass(work, 2 * gpt3_step(LONGEST, "none").model / 3, old)
    parameters = run("GPT-3 175B")["active_parameters"]
    again = "" if recompute == "none" else ", including what's recomputed"
    text = (
        f"{units.plural(STEP_TOKENS // sequence_length, 'sequence')} of "
        f"{units.exact(sequence_length)} tokens. The scores are "
        f"{units.percent(work.scores / work.model)} of the model's own work. "
        f"<b>{units.digits(work.total / (STEP_TOKENS * parameters))} FLOP per parameter "
        f"and token{again}.</b>"
    )
    return picture, text


@handle(
    "The rate that each GPU reached, from the seconds of one step.",
    seconds=slider(
        "Seconds per step",
        "Measured time from one update to the next.",
        (12, 14, 16, 18, 20, 25, 32.09, 40, 50, 64, 80, 100),
        unit="s",
        most=200,
    ),
    book=({}, {"seconds": 20}),
)
def achieved(seconds: float = 32.09) -> Shown:
    """Show how busy 16 A100s were with the 18.4B model, given the time per step."""
    setting = Setting(seconds=seconds)
    mfu, hfu = setting.shares
    picture = share_of_peak(setting.work, setting.rate, setting.peak, moves="seconds")
    rate = f"{units.flops_per_second(setting.rate)} on each GPU"
    if hfu > 1:
        return picture, f"{rate}, which is <b>past the peak</b>, and no chip can do that."
    return picture, f"{rate}. <b>MFU {units.percent(mfu)}, HFU {units.percent(hfu)}.</b>"
