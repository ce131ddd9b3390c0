"""The panel of chapter 12: whether a model fits on a card when it is adapted, and how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from llmtrain_course.finetune.formulas import packed_rows, saved_inputs, tuned_states
from llmtrain_course.finetune.pictures import (
    NARROW,
    PARTS,
    WIDE,
    bytes_of_ways,
    layer_kept,
    parts_of,
    step_phases,
    texts_in_rows,
    ways_on_a_card,
)
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.cards import RESERVE, capacity_of, memory_of
from llmtrain_course.kit.formulas import published_model
from llmtrain_helpers import units
from llmtrain_helpers.finetune import (
    TunedRecompute,
    tuned_activations,
    tuned_flops,
    tuned_phases,
    tuning_tokens,
    weight_bytes,
)
from llmtrain_helpers.memory import Memory
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.tuning import Tuning, sites
from research.finetunes import times_as_long_in_4_bits
from research.memory import litgpt_held

FULL, ADAPTERS, IN_4_BITS = "all weights", "adapters", "adapters, 4 bits"
"""The three ways, as the page calls them."""

WAYS = (FULL, ADAPTERS, IN_4_BITS)

_RANKS = controls.doublings(1, 256)


def tuning_of(way: str, rank: int = 16, loss_kernel: str = "transformers") -> Tuning:
    """A way as a `Tuning`: everything that learns in 32 bits, updated by one fused kernel."""
    options: dict[str, Any] = {"optimizer": "adamw_fused", "loss_kernel": loss_kernel}
    if way == FULL:
        return Tuning.full(**options)
    make = Tuning.qlora if way == IN_4_BITS else Tuning.lora
    return make(rank, **options)


# --- the panel

_CHIPS = (
    *("T4", "RTX 3090", "RTX 4090", "RTX 5090", "A10", "L4", "L40S"),
    *("A100 40GB SXM", "A100 80GB SXM", "H100 SXM", "H200 SXM", "B200 SXM (DGX/HGX)"),
)
"""Cards of which one to eight are at hand."""

PACKED, PADDED = "packed", "padded"
PASSES = 16
"""Rows that a GPU takes one after another, or some at once, before an update."""

_LOSSES = {"whole": "transformers", "piece by piece": "fused"}
"""How the loss is computed, and the kernel that it stands for."""


@dataclass(frozen=True)
class Setting:
    """A model and how it is adapted, the cards, and the texts."""

    model: str = "Llama-3.1-8B"
    way: str = ADAPTERS
    chip: str = "RTX 4090"
    num_gpus: int = 1
    sequence_length: int = 2048
    examples: int = 30_000
    tokens_each: int = 400
    epochs: int = 3
    rows: str = PACKED
    rank: int = 16
    recompute: TunedRecompute = "full"
    loss: str = "whole"
    micro_batch_size: int = 1
    price: float = 0.5

    @cached_property
    def length(self) -> int:
        """The tokens of a row: what was asked for, or all that the model has positions for."""
        most = int(published_model(self.model).num_positions)
        return min(self.sequence_length, most) if most else self.sequence_length

    @property
    def batch(self) -> int:
        """Rows in a step, over all GPUs; of few texts no more than they fill."""
        passes = min(-(-PASSES // self.micro_batch_size), self.tokens // self.tokens_at_once)
        return self.num_gpus * self.micro_batch_size * passes

    @property
    def tokens_at_once(self) -> int:
        """The tokens that all GPUs train on at once."""
        return self.num_gpus * self.micro_batch_size * self.length

    @property
    def tokens(self) -> int:
        """The tokens that go through the model, padding included; at least one pass of all GPUs."""
        return max(self.text_tokens, self.tokens_at_once)

    @property
    def text_tokens(self) -> int:
        """The tokens of the rows that the texts fill."""
        padded = self.length if self.rows == PADDED else None
        n, each = self.examples, min(self.tokens_each, self.length)
        return int(tuning_tokens(n, each, self.epochs, padded))

    def tuning(self, way: str) -> Tuning:
        """This way, with the rank and the loss that are set."""
        return tuning_of(way, self.rank, _LOSSES[self.loss])

    def plan_for(self, way: str) -> Plan:
        """The plan of this way."""
        return plan_run(
            published_model(self.model, self.length),
            self.chip,
            self.num_gpus,
            self.tokens,
            self.batch,
            recompute=self.recompute,
            micro_batch_size=self.micro_batch_size,
            zero_stage=3,
            tuning=self.tuning(way),
            price_per_gpu_hour=self.price,
        )

    @cached_property
    def plan(self) -> Plan:
        """The plan of the way that is set."""
        return self.plan_for(self.way)

    @property
    def attention_excess(self) -> float:
        """The FLOPs counted with attention over rows, relative to attention within texts."""
        each = min(self.tokens_each, self.length)
        model, tuning = published_model(self.model, self.length), self.tuning(self.way)
        rows, texts = (
            float(tuned_flops(model, tuning, 1, self.recompute, sequence_length=length).total)
            / length
            for length in (self.length, each)
        )
        return rows / texts

    @property
    def litgpt_ratio(self) -> float:
        """The factor by which litgpt needed more than the count, if that no longer fits; else 0."""
        times = 0.0
        if self.way == IN_4_BITS:
            times = litgpt_held("qlora", several=False)
        elif self.way == ADAPTERS and self.num_gpus > 1:
            times = litgpt_held("lora", several=True)
        peak, capacity = float(self.plan.memory.total), float(self.plan.card)
        return times if peak <= capacity < times * peak + float(self.plan.reserve) else 0

    @property
    def ways(self) -> dict[str, Memory]:
        """The peak of each way."""
        plans = {way: self.plan if way == self.way else self.plan_for(way) for way in WAYS}
        return {way: plan.memory for way, plan in plans.items()}


_SETTINGS = {
    "8B on a card of 24 GB": Setting(),
    "the same in 4 bits, longer": Setting(way=IN_4_BITS, sequence_length=8192),
    "8B, all weights, 8 × 80 GB": Setting(
        way=FULL, chip="H100 SXM", num_gpus=8, sequence_length=4096, price=2.5
    ),
    "70B in 4 bits on 80 GB": Setting(
        "Llama-3.1-70B", IN_4_BITS, "A100 80GB SXM", sequence_length=4096, price=1.5
    ),
    "padded": Setting(rows=PADDED),
}

_CONTROLS = {
    "model": controls.COUNTED_MODEL,
    "way": controls.choice("What learns", "All weights, or adapters beside them.", WAYS),
    "chip": controls.choice("Card", "The chip: its memory and its peak.", _CHIPS),
    "sequence_length": common.Control(
        "Length",
        "Tokens in a row that goes through the model.",
        unit="tokens",
        most=131_072,
        stops=controls.doublings(256, 32_768),
    ),
    "num_gpus": common.Control(
        "GPUs", "Cards of one machine; several share what they hold.", most=8, stops=(1, 2, 4, 8)
    ),
    "examples": common.Control(
        "Texts",
        "Examples that the model learns from.",
        unit="texts",
        most=10**9,
        stops=controls.steps(1000, 10**6, 1, 3),
    ),
    "rows": controls.choice(
        "Rows", "Filled with several texts, or with one and pads.", (PACKED, PADDED)
    ),
    "tokens_each": common.Control(
        "Tokens of a text", "The mean of an example.", unit="tokens", most=131_072, more=True
    ),
    "epochs": common.Control("Epochs", "How often each text is read.", most=1000, more=True),
    "rank": common.Control("Rank", "Of the adapters, on all matrices.", most=4096, more=True),
    "recompute": controls.choice(
        "Recomputed", "Whether layers forget, and compute again.", ("full", "none"), more=True
    ),
    "loss": controls.choice(
        "Loss", "Computed from whole logits, or piece by piece.", _LOSSES, more=True
    ),
    "micro_batch_size": replace(controls.MICRO_BATCH, most=1024, more=True),
    "price": controls.PRICE,
}


def render(setting: Setting, before: Setting | None = None, width: int = WIDE) -> str:
    """The panel's answer as HTML: sentence, notes, picture, table, and the call."""
    plan, ways = setting.plan, setting.ways
    initial = float(before.plan.memory.total) if before else 0
    memory = float(plan.card)
    picture = ways_on_a_card(
        ways, setting.way, memory, float(plan.reserve), setting.chip, initial, width
    )
    return "".join(
        [
            common.sentence(_sentence(setting)),
            *(f'<p style="margin:6px 0px">{note}</p>' for note in _notes(setting)),
            f"<div>{picture.inline_svg()}</div>",
            common.folded("The numbers", _table(setting)),
            common.folded("In code", common.call(_code(setting))),
        ]
    )


def _sentence(setting: Setting) -> str:
    plan = setting.plan
    peak = units.gigabytes(float(plan.memory.total))
    if plan.fits:
        fits = "it <b>fits</b>"
    elif plan.tight:
        fits = "it <b>just fits</b>, with less to spare than most runs needed"
    else:
        fits = "it <b>does not fit</b>"
    each = "" if setting.num_gpus == 1 else " on each GPU"
    result = f"<b>{peak}</b>{each} at the peak: {fits}. "
    if not plan.fits and not plan.tight:
        return result
    cost = plan.cost
    assert cost is not None
    time = units.duration(float(plan.seconds.likely), 2)
    money = units.dollars(float(cost.likely), 2)
    takes = f"It takes some <b>{time}</b> ({_time_range(plan)}) and {money}"
    return f"{result}{takes}, at ${setting.price:,.2f} an hour."


def _time_range(plan: Plan) -> str:
    """The time from the fast end to the slow one."""
    low, high = (units.duration(float(x), 2) for x in (plan.seconds.least, plan.seconds.greatest))
    number, unit = low.split()
    return f"{number} to {high}" if high.split()[1] == unit else f"{low} to {high}"


def _notes(setting: Setting) -> list[str]:
    """The notes on what was changed or isn't known, so that nothing happens in silence."""
    notes, length = [], setting.length
    if length < setting.sequence_length:
        notes.append(
            f"<b>Shortened:</b> {setting.model} has {length:,} learned positions, so its rows "
            f"have {length:,} tokens here and not {setting.sequence_length:,}."
        )
    if setting.tokens_each > length:
        notes.append(
            f"<b>Cut:</b> a text of {setting.tokens_each:,} tokens is longer than a row, "
            f"so {length:,} of them are read."
        )
    timed = setting.plan.fits or setting.plan.tight
    if timed and setting.rows == PACKED and (over := setting.attention_excess) > 1.15:
        notes.append(
            f"<b>Too slow:</b> attention is counted over whole rows. Within texts of "
            f"{setting.tokens_each:,} tokens it is less, and the time is {over:.1f} times shorter."
        )
    if ratio := setting.litgpt_ratio:
        notes.append(
            f"<b>It may not fit:</b> in one program, litgpt, such runs held {ratio:.1f} times what "
            "is counted. Elsewhere the count was near. Try a step before you trust it."
        )
    if setting.text_tokens < setting.tokens_at_once:
        notes.append("<b>Few texts:</b> they do not fill one row on each GPU, so pads do.")
    tokens = setting.micro_batch_size * length
    if setting.way == IN_4_BITS and tokens < 4096:
        longer = times_as_long_in_4_bits(tokens)
        notes.append(
            f"<b>Slower:</b> with {tokens:,} tokens at once, 4 bits took up to {longer:.1f} times "
            "as long where it was measured. The hours are those of 16 bits."
        )
    return notes


def _table(setting: Setting) -> str:
    plan, peak = setting.plan, setting.plan.memory
    assert plan.cost is not None
    parts = [
        [PARTS[name][0], units.gigabytes(size), units.percent(size / peak.total)]
        for name, size in parts_of(peak).items()
    ]
    rows = [
        ["tokens through the model", units.count(setting.tokens)],
        ["of a GPU's peak", units.percent(plan.shares.steps[1])],
        ["time", _time_range(plan)],
        [
            "cost",
            f"{units.dollars(float(plan.cost.least), 2)} to "
            f"{units.dollars(float(plan.cost.greatest), 2)}",
        ],
        ["kept free on each GPU", units.gigabytes(float(plan.reserve))],
    ]
    head = ["part", f"at the peak, the {peak.moment}", "share"]
    return common.table(head, parts) + common.table(["", setting.way], rows)


def _code(setting: Setting) -> str:
    call = {FULL: "full(recipe='amp', ", ADAPTERS: "lora(", IN_4_BITS: "qlora("}[setting.way]
    rank = "" if setting.way == FULL else f"{setting.rank}, "
    return (
        f"tuning = Tuning.{call}{rank}optimizer='adamw_fused', "
        f"loss_kernel={_LOSSES[setting.loss]!r})\n"
        f"model = published.architecture({setting.model!r}, {setting.length})\n"
        f"plan_run(model, {setting.chip!r}, {setting.num_gpus}, {setting.tokens}, "
        f"{setting.batch},\n    recompute={setting.recompute!r}, "
        f"micro_batch_size={setting.micro_batch_size}, "
        f"zero_stage=3,\n"
        f"    tuning=tuning, price_per_gpu_hour={setting.price:g})"
    )


PANEL = common.Panel(
    "Does it fit, and how long does it take?",
    _CONTROLS,
    _SETTINGS,
    ("the same in 4 bits, longer", "8B, all weights, 8 × 80 GB"),
    render,
    partial(render, width=NARROW),
)


# --- the handle: a weight's bytes in three ways

_CARDS = {"24 GB": memory_of("RTX 4090"), "80 GB": memory_of("H100")}
"""What cards are sold with, and the bytes that their drivers show."""


@dataclass(frozen=True)
class AdapterRank:
    """A model, and the rank of its adapters."""

    model: str = "Llama-3.1-8B"
    rank: int = 16


def _draw_ways(setting: AdapterRank, before: AdapterRank | None, width: int = WIDE) -> str:
    model = published_model(setting.model)
    tunings = {way: tuning_of(way, setting.rank) for way in WAYS}
    states = {
        way: {name: float(size) for name, size in tuned_states(model, tuning).items()}
        for way, tuning in tunings.items()
    }
    each = {way: weight_bytes(tuning) for way, tuning in tunings.items()}
    picture = bytes_of_ways(each, states, _CARDS, setting.model, width)
    text = f"The adapters weigh <b>{units.gigabytes(states[ADAPTERS]['adapters'])}</b>, with all "
    text += "that Adam keeps for them. "
    smallest = next((way for way in WAYS if sum(states[way].values()) < _CARDS["24 GB"]), "")
    if smallest == FULL:
        text += "Even all weights would leave room on a card of 24 GB."
    elif smallest:
        text += f"On a card of 24 GB, <b>{smallest.replace(', ', ' in ')}</b> leave room for more."
    else:
        text += "A card of 24 GB is too small for any of the three."
    return common.pictured(picture, text)


THREE_WAYS = common.Handle(
    book=({}, {"model": "Llama-3.1-70B"}),
    title="One weight, and all of them, in three ways",
    controls={
        "model": controls.choice(
            "Model", "Three sizes.", ("Llama-3.2-1B", "Llama-3.1-8B", "Llama-3.1-70B")
        ),
        "rank": common.Control(
            "Rank", "Columns of an adapter's thin matrices.", most=256, stops=_RANKS
        ),
    },
    settings={"": AdapterRank()},
    draw=_draw_ways,
    narrow=partial(_draw_ways, width=NARROW),
)


# --- the handle: what a layer keeps

_TEXT = 2048
"""Tokens of the text that goes through."""

_LEARNING: dict[str, str | tuple[str, ...]] = {
    "all weights": (),
    "queries and values": ("q_proj", "v_proj"),
    "attention": "attention",
    "MLP": "mlp",
    "all matrices": "all-linear",
}
_ADAPTERS: dict[str, dict[str, Any]] = {
    "16 bits": {"adapter_bytes": 2},
    "32 bits": {},
    "32 bits, dropout": {"dropout": 0.05},
}
"""What the handle says of adapters, and the options that it stands for."""


@dataclass(frozen=True)
class Learning:
    """What learns in each layer of Llama 3.1 8B, and how the adapters are made."""

    learns: str = "queries and values"
    adapters: str = "16 bits"

    @property
    def tuning(self) -> Tuning:
        """As a `Tuning`."""
        if self.learns == "all weights":
            return Tuning.full()
        return Tuning.lora(16, _LEARNING[self.learns], **_ADAPTERS[self.adapters])


def layer_activations(tuning: Tuning) -> dict[str, float]:
    """The bytes that the layers of Llama 3.1 8B keep of a text of 2,048 tokens, by part."""
    activations = tuned_activations(published_model("Llama-3.1-8B", _TEXT), tuning, 1)
    parts = activations.parts()
    return {name: float(parts[name]) for name in ("norms", "attention", "mlp", "adapters")}


def _draw_layer(setting: Learning, before: Learning | None, width: int = WIDE) -> str:
    tuning = setting.tuning
    matrices = saved_inputs(published_model("Llama-3.1-8B", _TEXT), tuning)
    h = published_model("Llama-3.1-8B").hidden_size
    _, layer = published_model("Llama-3.1-8B").layers[0]
    all_sites = (site for part in layer.parts for site in sites(part, h, tuning))
    learning = {site.matrix.name for site in all_sites if site.adapted or tuning.is_full}
    current, full = layer_activations(tuning), layer_activations(Tuning.full())
    picture = layer_kept(matrices, learning, current, full, not tuning.is_full, width)
    saving = sum(full.values()) - sum(current.values())
    text = f"The layers keep <b>{units.gigabytes(sum(current.values()))}</b> of a text of "
    text += f"{_TEXT:,} tokens. "
    if tuning.is_full:
        text += "Every matrix needs what it reads, for its own gradient."
    elif saving > 0:
        text += f"That is {units.percent(saving / sum(full.values()))} less than in full training."
    else:
        increase = units.percent(-saving / sum(full.values()))
        text += f"That is <b>{increase} more</b> than in full training."
    return common.pictured(picture, text)


FROZEN_LAYER = common.Handle(
    book=({}, {"learns": "all matrices", "adapters": "32 bits, dropout"}),
    title="What a layer keeps when it is frozen",
    controls={
        "learns": controls.choice("What learns", "The matrices that have an adapter.", _LEARNING),
        "adapters": controls.choice(
            "Adapters", "Their format, and whether they drop values.", _ADAPTERS
        ),
    },
    settings={"": Learning()},
    draw=_draw_layer,
    narrow=partial(_draw_layer, width=NARROW),
)


# --- the handle: the loss's spike

_CARD = "RTX 4090"


@dataclass(frozen=True)
class Spike:
    """Tokens at once, the bits of the frozen weights, and how the loss is computed."""

    tokens: int = 4096
    bits: str = "16 bits"
    loss: str = "whole"

    @property
    def phases(self) -> tuple[Memory, ...]:
        """The four moments of a step of Llama 3.1 8B, its layers recomputed."""
        way = IN_4_BITS if self.bits == "4 bits" else ADAPTERS
        tuning = tuning_of(way, loss_kernel=_LOSSES[self.loss])
        model = published_model("Llama-3.1-8B", self.tokens)
        return tuned_phases(model, tuning, 1, "full", accumulation_steps=PASSES)


def _draw_spike(setting: Spike, before: Spike | None, width: int = WIDE) -> str:
    phases = setting.phases
    initial = float((before or setting).phases[0].total)
    picture = step_phases(phases, initial, memory_of(_CARD), RESERVE, width)
    loss, peak = phases[0], max(phases, key=lambda phase: phase.total)
    if setting.loss != "whole":
        text = "Logits are never whole, and nothing stands on top at the loss."
    else:
        share = units.percent(float(loss.transient / loss.weights))
        text = f"The logits take <b>{units.gigabytes(float(loss.transient))}</b>, {share} of what "
        text += "the weights do."
    memory, size = float(peak.total), units.gigabytes(memory_of(_CARD))
    if memory <= capacity_of(_CARD):
        text += f" The step fits into the card's {size}."
    elif memory <= memory_of(_CARD):
        free = units.gigabytes(memory_of(_CARD) - memory)
        text += f" The step leaves {free} of the card's {size} free, where "
        text += f"{units.gigabytes(RESERVE)} should stay so."
    else:
        text += f" The step goes beyond the card's {size}."
    return common.pictured(picture, text)


LOSS_SPIKE = common.Handle(
    title="Four moments of a step, and the spike at the loss",
    controls={
        "tokens": common.Control(
            "Tokens",
            "Tokens that go through at once.",
            unit="tokens",
            most=16_384,
            stops=(512, 1024, 2048, 4096, 6144, 8192, 10_240, 12_288, 16_384),
        ),
        "bits": controls.choice("Frozen weights", "In 16 bits, or in 4.", ("16 bits", "4 bits")),
        "loss": controls.choice("Loss", "From whole logits, or piece by piece.", _LOSSES),
    },
    settings={"": Spike()},
    draw=_draw_spike,
    narrow=partial(_draw_spike, width=NARROW),
)


# --- the handle: texts in rows

LENGTHS = (1720, 300, 620, 410, 1130, 240, 880, 350, 1500, 190, 560, 700)
"""Tokens of twelve texts."""

ROW = 2048
"""Tokens of a row."""


@dataclass(frozen=True)
class Packing:
    """How many of the texts are packed."""

    packed: int = 0


def _draw_packing(setting: Packing, before: Packing | None, width: int = WIDE) -> str:
    k = setting.packed
    places = packed_rows(LENGTHS, ROW)[:k]
    picture = texts_in_rows(LENGTHS, places, ROW, width)
    rows = len({place.row for place in places}) + len(LENGTHS) - k
    if k == 0:
        text = "Each text has a row of its own, filled up with <b>pads</b> that teach nothing."
    elif k < len(LENGTHS):
        shares_row = places[-1].start > 0
        text = (
            f"Text {k} stays where it is."
            if not shares_row
            else (f"Text {k} moves behind others, and <b>its row is saved</b>.")
        )
    else:
        times = units.digits(len(LENGTHS) / rows, 2)
        text = f"The same texts in <b>{times} times</b> fewer rows."
    return common.pictured(picture, text)


PACKING = common.Handle(
    title="Short texts, padded or packed",
    controls={
        "packed": common.Control(
            "Packed",
            "Texts that were moved into the first row with room.",
            unit="texts",
            least=0,
            most=len(LENGTHS),
            stops=tuple(range(len(LENGTHS) + 1)),
            play=True,
        )
    },
    settings={"": Packing(4)},
    draw=_draw_packing,
    narrow=partial(_draw_packing, width=NARROW),
)
