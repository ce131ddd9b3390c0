"""The panel of chapter 06: memory through two steps, under the line of a chip's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from llmtrain_course.activations.formulas import bytes_kept, largest_micro_batch, resident_layers
from llmtrain_course.activations.pictures import (
    LEGEND,
    MOMENTS,
    kept_by_layer,
    layers_over_time,
    memory_at_loss,
    memory_of_steps,
    memory_so_far,
    parts_at_peak,
    places_of_trace,
)
from llmtrain_course.activations.products import three_products
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.cards import capacity_of, memory_of
from llmtrain_course.kit.formulas import published_model
from llmtrain_course.kit.handle import ByHand, Shown, handle, slider
from llmtrain_course.kit.layout import PAGE
from llmtrain_helpers import published, units
from llmtrain_helpers.activations import (
    Kernel,
    Moment,
    Timeline,
    gpt_activation_bytes,
    step_timeline,
)
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.precision import RecipeName


@dataclass(frozen=True)
class Setting:
    """A model, its sequences and passes, what is stored of them, and the chip."""

    model: str = "Llama-3.2-1B"
    sequence_length: int = 8192
    micro_batch_size: int = 1
    accumulation_steps: int = 1
    recompute: EveryRecompute = "none"
    attention: Kernel = "flash"
    recipe: RecipeName = "bf16"
    chip: str = "A100 80GB SXM"

    @cached_property
    def length(self) -> int:
        """The tokens of a sequence: what was asked for, or all that the model has room for.

        Models with a table of learned positions take no longer sequence than that.
        """
        rows = int(published_model(self.model).num_positions)
        return min(self.sequence_length, rows) if rows else self.sequence_length

    @property
    def capacity(self) -> float:
        """Bytes of the chip that a step may fill."""
        return capacity_of(self.chip)

    @cached_property
    def timeline(self) -> Timeline:
        """The first two steps, of two passes at most: the others are like the second."""
        return step_timeline(
            published_model(self.model, self.length),
            self.micro_batch_size,
            self.recipe,
            self.recompute,
            accumulation_steps=min(self.accumulation_steps, 2),
            attention=self.attention,
        )


_SETTINGS = {
    "1B on an A100": Setting(),
    "1B, scores stored": Setting(attention="unfused"),
    "1B, 4 sequences, all recomputed": Setting(recompute="full", micro_batch_size=4),
    "1B, 16 passes per step": Setting(accumulation_steps=16),
    "8B": Setting("Llama-3.1-8B"),
    "GPT-2 on a small card": Setting("gpt2", 1024, 12, 4, recipe="amp", chip="RTX 3090"),
}

_CONTROLS = {
    "model": controls.COUNTED_MODEL,
    "sequence_length": replace(
        controls.SEQUENCE, stops=controls.doublings(128, 131072), more=False
    ),
    "micro_batch_size": replace(controls.MICRO_BATCH, stops=controls.doublings(1, 256)),
    "accumulation_steps": common.Control(
        "Passes per step",
        "Micro-batches, one after another, before an update.",
        unit="in a row",
        most=1_000,
        stops=controls.doublings(1, 256),
    ),
    "recompute": controls.RECOMPUTED,
    "chip": replace(controls.CHIP, more=False),
    "attention": controls.choice(
        "Attention",
        "Whether the scores are stored (unfused) or not (flash).",
        ["unfused", "flash"],
        more=True,
    ),
    "recipe": replace(controls.RECIPE, more=True),
}


def render(setting: Setting, before: Setting | None = None, width: int = PAGE) -> str:
    """The panel's answer as HTML: sentence, notes, picture, table, and the call."""
    line, capacity, passes = setting.timeline, setting.capacity, setting.accumulation_steps
    old = (before.timeline, before.capacity) if before else None
    code = (
        f"model = published.architecture({setting.model!r}, {setting.length})\n"
        f"step_timeline(model, {setting.micro_batch_size}, {setting.recipe!r}, "
        f"{setting.recompute!r},"
        f"\n    accumulation_steps={passes}, attention={setting.attention!r}).peak"
    )
    picture = memory_of_steps(line, capacity, setting.chip, passes, old).drawing(width)
    return "".join(
        [
            common.sentence(_sentence(setting, line.peak, old[0].peak if old else None)),
            *(f'<p style="margin:6px 0px">{note}</p>' for note in _notes(setting)),
            f"<div>{picture.inline_svg()}</div>",
            common.folded("The numbers", _tables(line)),
            common.folded("In code", common.call(code)),
        ]
    )


def _sentence(setting: Setting, peak: Moment, old: Moment | None) -> str:
    memory, capacity = memory_of(setting.chip), setting.capacity
    result = f"<b>{units.gigabytes(peak.total)}</b> at the peak"
    if old and old.total != peak.total:
        result += f" (dashed: {units.gigabytes(old.total)})"
    if peak.total <= capacity:
        verdict = "<b>fits</b>"
    else:
        verdict = "is <b>tight</b>" if peak.total <= memory else "<b>doesn't fit</b>"
    result += (
        f", step {peak.step}, {MOMENTS[peak.mark]}: it {verdict}. "
        f"A step may fill {units.gigabytes(capacity)} of the {units.gigabytes(memory)} of "
        f"{setting.chip}. "
    )
    try:
        most = largest_micro_batch(
            published_model(setting.model, setting.length),
            capacity,
            setting.recipe,
            setting.recompute,
            setting.accumulation_steps,
            setting.attention,
        )
    except ValueError:
        return f"{result}Not even a micro-batch of 1 fits."
    return f"{result}The largest micro-batch that fits is <b>{units.exact(most)}</b>."


def _notes(setting: Setting) -> list[str]:
    """What was changed or has no effect, so that nothing happens in silence."""
    notes, s = [], setting.length
    if s < setting.sequence_length:
        notes.append(
            f"<b>Shortened:</b> {setting.model} has {s:,} learned positions, so its "
            f"sequences have {s:,} tokens here instead of {setting.sequence_length:,}."
        )
    if (setting.recompute, setting.attention) == ("selective", "flash"):
        notes.append(
            "<b>Nothing to drop:</b> selective recomputation would recompute the scores, but "
            "flash attention doesn't store them."
        )
    return notes


def _tables(line: Timeline) -> str:
    """The peak part by part, and the total of each moment of the second step."""
    parts = [
        [LEGEND.get(name, name), units.gigabytes(size), units.percent(size / line.peak.total)]
        for name, size in parts_at_peak(line).items()
    ]
    last = line.moments[-1].micro_batch
    moments = []
    for moment in line.moments:
        if moment.step == 2 and moment.micro_batch in (1, last):
            of_a_pass = last > 1 and moment.mark not in ("start", "update")
            name = f"pass {moment.micro_batch}: " if of_a_pass else ""
            moments.append([f"{name}{MOMENTS[moment.mark]}", units.gigabytes(moment.total)])
    return common.table(["part", "at the peak", "share"], parts) + common.table(
        ["moment of step 2", "in all"], moments
    )


PANEL = common.Panel(
    "What does a step store in memory?",
    _CONTROLS,
    _SETTINGS,
    ("1B, scores stored", "1B, 4 sequences, all recomputed"),
    render,
    captioned=True,
)


# --- memory, moment by moment

_MARKS = ("start", "forward", "loss", "first layer", "update")
_MOST = 95e9
"""Bytes at which the handle's scale ends: three sequences, nothing recomputed."""
_SMALLER = "A100 40GB SXM"
"""The smaller A100, on which the first step fits and the second one does not."""
_CAPTIONS = {
    "start": "The weights are always in memory.",
    "forward": "Layer by layer, forward has stored what backward will need.",
    "loss": "The loss is differentiated, which adds two tensors of logits on top.",
    "first layer": "Backward has used up the activations and left gradients.",
    "update": "Adam changes the weights, and its averages stay in memory.",
}


@handle(
    "What's in one GPU's memory at each moment of two training steps.",
    moment=slider(
        "Moment",
        "Five moments of the first step, and five of the second.",
        tuple(range(1, 11)),
        play=True,
    ),
    micro_batch=slider("Micro-batch", "Sequences processed at once.", (1, 2, 3)),
)
def step_memory(moment: int = 2, micro_batch: int = 1) -> Shown:
    """Show what's resident up to a moment of the first two steps of Llama 3.2 1B."""
    timeline = replace(Setting(), micro_batch_size=micro_batch).timeline
    past = [x for x in timeline.moments if x.mark in _MARKS][:moment]
    now, smaller, larger = past[-1], capacity_of(_SMALLER), Setting().capacity
    rows = published.rows("memory_trace")
    measured = [*places_of_trace(x for x in rows if x["micro_batch_size"] == micro_batch)]
    picture = memory_so_far(timeline, now, larger, "an A100", _MOST, smaller, measured)
    caption = _CAPTIONS[now.mark]
    if now.mark == "start" and now.step == 2:
        caption = "This time Adam's averages are in memory from the start."
    full = []
    for name, card in (("smaller", smaller), ("larger", larger)):
        over = [x.step for x in past if x.total > card]
        if over:
            full.append(f"The {name} card is full in step {over[0]}.")
        elif moment == len(_MARKS) * 2:
            full.append(f"The {name} card keeps going.")
    return picture, f"{caption} <b>{' '.join(full)}</b>" if full else caption


# --- why x has to stay

_STEPS = (
    "Two tokens arrive at a layer, each with three numbers.",
    "Forward computes y, which goes on to the next layer.",
    "The layers above have sent back the gradient of y.",
)


@handle(
    "Forward and backward of one product, and the input that backward needs again.",
    step=slider("Step", "Forward, then backward's products.", (0, 1, 2, 3, 4), play=True),
    x=controls.choice("x after forward", "Whether x stays in memory.", ("kept", "dropped")),
    book=({"step": 3}, {"step": 3, "x": "dropped"}),
)
def kept_input(step: int = 0, x: str = "kept") -> Shown:
    """The three products of a matrix, with digits: what each of them needs."""
    kept, caption = x == "kept", (_STEPS[step] if step < len(_STEPS) else "")
    if step == 0:
        caption += (
            " After forward, the layer stores x." if kept else " After forward, the layer drops x."
        )
    elif step == 1:
        caption += " <b>x stays in memory.</b>" if kept else " <b>x is dropped.</b>"
    elif step == 3:
        caption = "The gradient of W is xᵀ times the gradient of y. "
        caption += (
            "<b>That's why x has to be stored.</b>"
            if kept
            else "<b>Without x, you can't compute it.</b>"
        )
    elif step == 4:
        caption = "The gradient of x goes to the layer below. It only needs W. "
        caption += (
            "<b>Now x can be dropped.</b>" if kept else "<b>But this layer hasn't learned.</b>"
        )
    return three_products(step, kept), caption


# --- what a layer keeps

_GPT3 = (12288, 96, 2048)
"""Hidden size, heads and tokens."""


@handle(
    "What one layer stores for backward, tensor by tensor.",
    attention=controls.choice(
        "Attention", "Whether the scores are stored.", ("scores stored", "flash")
    ),
    dropout=controls.choice("Dropout", "Whether random values are set to 0.", ("on", "off")),
    book=({}, {"attention": "flash"}),
)
def kept_layer(attention: str = "scores stored", dropout: str = "on") -> Shown:
    """Show what each operation of a layer of GPT-3 keeps."""
    h, a, s = _GPT3
    ways = attention == "flash", dropout == "on"
    share = bytes_kept(a * s / h, *ways) / bytes_kept(a * s / h)
    memory = gpt_activation_bytes(1, *_GPT3, micro_batch_size=1) * share
    return kept_by_layer(*_GPT3, *ways), (
        f"This layer stores <b>{units.gigabytes(memory)}</b> per sequence, and GPT-3's 96 layers "
        f"store {units.gigabytes(96 * memory)}."
    )


# --- a batch at once, or in passes

_BATCH = 8
"""Sequences of a step of the handle."""


def _timeline_of(passes: int, recompute: EveryRecompute = "none") -> Timeline:
    """Two steps of eight sequences of Llama 3.2 1B, in so many passes."""
    each = _BATCH // passes
    run = replace(Setting(), micro_batch_size=each, accumulation_steps=passes)
    return replace(run, recompute=recompute).timeline


@handle(
    "Memory at the peak when eight sequences go through in one pass or in several.",
    passes=slider(
        "Passes", "How many passes the step's eight sequences are split into.", (1, 2, 4, _BATCH)
    ),
    recompute=replace(controls.RECOMPUTED, options=("none", "full")),
    book=({}, {"passes": 8}),
)
def passes(passes: int = 1, recompute: EveryRecompute = "none", previous: Any = None) -> Shown:
    """What's in memory at the loss if eight sequences go through at once or in several passes."""
    timeline = _timeline_of(passes, recompute)
    before = _timeline_of(previous.passes, previous.recompute) if previous else timeline
    model, capacity = published_model(Setting().model, Setting().length), Setting().capacity
    most, peak = _timeline_of(1).peak.total, timeline.peak
    each = _BATCH // passes
    logits = f"{units.plural(each, 'sequence')} × {Setting().length:,} tokens × "
    logits += f"{model.vocab_size:,} words, in 32 bits"
    picture = memory_at_loss(timeline, before, capacity, most, logits)
    fits = "it fits" if peak.total <= capacity else "it doesn't fit"
    return picture, (
        f"{units.plural(passes, 'pass')} of {units.plural(each, 'sequence')}: "
        f"<b>{units.gigabytes(peak.total)}</b> at the peak, so {fits}. The logits' three tensors "
        f"are {units.share(1.5 * peak.logits / peak.total)} of it."
    )


# --- forget, and compute again


@handle(
    "Memory through forward and backward, with activations stored or recomputed.",
    moment=slider("Time", "Six layers forward, then six backward.", tuple(range(1, 13)), play=True),
)
def recomputation(moment: int = 1) -> Shown:
    """Show which layers' activations are in memory, forward and back through six layers."""
    whole = len(resident_layers(6, moment, recomputes=False))
    left = resident_layers(6, moment, recomputes=True)
    inputs, layers = left.count("input"), left.count("again")
    caption = f"Everything stored: {units.plural(whole, 'whole layer')}. Only inputs stored: "
    caption += units.plural(inputs, "input")
    caption += ", and one recomputed layer." if layers else "."
    return ByHand(partial(layers_over_time, 6, moment)), f"<b>{caption}</b>"
