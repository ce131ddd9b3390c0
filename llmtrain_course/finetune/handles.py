"""The panel of chapter 13: whether a model fits on a card when it is adapted, and how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from llmtrain_course.finetune.formulas import packed_rows, saved_inputs, tuned_states
from llmtrain_course.finetune.pictures import (
    PAIRS,
    WORDS,
    bytes_of_ways,
    layer_kept,
    parts_of,
    speeds_of_pairs,
    step_phases,
    texts_in_rows,
    ways_on_a_card,
)
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.cards import RESERVE, capacity_of, memory_of
from llmtrain_course.kit.formulas import published_model
from llmtrain_course.kit.handle import Shown, handle, slider
from llmtrain_course.kit.layout import PAGE
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
from research.finetunes import speed_ratios, times_as_long_in_4_bits
from research.memory import litgpt_held

FULL, ADAPTERS, IN_4_BITS = "all weights", "adapters", "adapters, 4 bits"
"""The three ways, as the page calls them."""

WAYS = (FULL, ADAPTERS, IN_4_BITS)


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
    "8B on a 24 GB card": Setting(),
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
    "way": controls.choice("What learns", "All weights, or adapters next to them.", WAYS),
    "chip": controls.choice("Card", "The chip: its memory and its peak.", _CHIPS),
    "sequence_length": common.Control(
        "Length",
        "Tokens per row that the model processes.",
        unit="tokens",
        most=131_072,
        stops=controls.doublings(256, 32_768),
    ),
    "num_gpus": common.Control(
        "GPUs", "Cards of one machine. Several shard what they store.", most=8, stops=(1, 2, 4, 8)
    ),
    "examples": common.Control(
        "Texts",
        "Examples that the model learns from.",
        unit="texts",
        most=10**9,
        stops=controls.steps(1000, 10**6, 1, 3),
    ),
    "rows": controls.choice(
        "Rows", "Filled with several texts, or with one and padding.", (PACKED, PADDED)
    ),
    "tokens_each": common.Control(
        "Tokens of a text",
        "The average length of an example.",
        unit="tokens",
        most=131_072,
        more=True,
    ),
    "epochs": common.Control(
        "Epochs", "How often the model reads each text.", most=1000, more=True
    ),
    "rank": common.Control(
        "Rank", "Dropout of the adapters, which are on all matrices.", most=4096, more=True
    ),
    "recompute": controls.choice(
        "Recomputed",
        "Whether layers drop activations and recompute them.",
        ("full", "none"),
        more=True,
    ),
    "loss": controls.choice(
        "Loss", "Computed from all logits at once, or piece by piece.", _LOSSES, more=True
    ),
    "micro_batch_size": replace(controls.MICRO_BATCH, most=1024, more=True),
    "price": controls.PRICE,
}


def render(setting: Setting, before: Setting | None = None, width: int = PAGE) -> str:
    """The panel's answer as HTML: sentence, notes, picture, table, and the call."""
    plan, ways = setting.plan, setting.ways
    initial = float(before.plan.memory.total) if before else 0
    memory = float(plan.card)
    picture = ways_on_a_card(
        ways, setting.way, memory, float(plan.reserve), setting.chip, initial
    ).drawing(width)
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
        fits = "it <b>just fits</b>, with less headroom than most runs needed"
    else:
        fits = "it <b>doesn't fit</b>"
    each = "" if setting.num_gpus == 1 else " on each GPU"
    result = f"<b>{peak}</b>{each} at the peak: {fits}. "
    if not plan.fits and not plan.tight:
        return result
    cost = plan.cost
    assert cost is not None
    time = units.duration(float(plan.seconds.likely), 2)
    money = units.dollars(float(cost.likely), 2)
    takes = f"It will run about <b>{time}</b> ({_time_range(plan)}) and cost {money}"
    return f"{result}{takes}, at ${setting.price:,.2f} per GPU-hour."


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
            f"are {length:,} tokens long here instead of {setting.sequence_length:,}."
        )
    if setting.tokens_each > length:
        notes.append(
            f"<b>Cut:</b> a text of {setting.tokens_each:,} tokens is longer than a row, so the "
            f"model only sees {length:,} of them."
        )
    timed = setting.plan.fits or setting.plan.tight
    if timed and setting.rows == PACKED and (over := setting.attention_excess) > 1.15:
        notes.append(
            f"<b>Too slow:</b> we count attention over whole rows. If it stays within texts of "
            f"{setting.tokens_each:,} tokens, the run is {over:.1f}× faster."
        )
    if ratio := setting.litgpt_ratio:
        notes.append(
            f"<b>It may not fit:</b> in one program, litgpt, such runs used {ratio:.1f}× what we "
            f"count, although elsewhere the count was close. Try a step before you trust it."
        )
    if setting.text_tokens < setting.tokens_at_once:
        notes.append("<b>Few texts:</b> they don't fill one row on each GPU, so padding does.")
    tokens = setting.micro_batch_size * length
    if setting.way == IN_4_BITS and tokens < 4096:
        longer = times_as_long_in_4_bits(tokens)
        notes.append(
            f"<b>Slower:</b> with {tokens:,} tokens at once, 4 bits was up to {longer:.1f}× "
            f"slower when it was measured. The hours above are for 16 bits."
        )
    return notes


def _table(setting: Setting) -> str:
    plan, peak = setting.plan, setting.plan.memory
    assert plan.cost is not None
    parts = [
        [WORDS.get(name, name), units.gigabytes(size), units.percent(size / peak.total)]
        for name, size in parts_of(peak).items()
    ]
    rows = [
        ["tokens processed", units.count(setting.tokens)],
        ["share of the peak", units.percent(plan.shares.steps[1])],
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
)


# --- a weight's bytes in three ways

_CARDS = {"24 GB": memory_of("RTX 4090"), "80 GB": memory_of("H100")}
"""What cards are sold with, and the bytes that their drivers show."""


@handle(
    "The bytes of one weight and of the model with all weights, adapters, or adapters in 4 bits.",
    model=controls.choice(
        "Model", "Three sizes.", ("Llama-3.2-1B", "Llama-3.1-8B", "Llama-3.1-70B")
    ),
    rank=slider("Rank", "Columns of an adapter's thin matrices.", controls.doublings(1, 256)),
    book=({}, {"model": "Llama-3.1-70B"}),
)
def three_ways(model: str = "Llama-3.1-8B", rank: int = 16) -> Shown:
    """A weight's bytes and a model's, by the rank of its adapters."""
    tunings = {way: tuning_of(way, rank) for way in WAYS}
    states = {
        way: {name: float(size) for name, size in tuned_states(published_model(model), it).items()}
        for way, it in tunings.items()
    }
    each = {way: weight_bytes(tuning) for way, tuning in tunings.items()}
    picture = bytes_of_ways(each, states, _CARDS, model)
    text = f"The adapters need <b>{units.gigabytes(states[ADAPTERS]['adapters'])}</b>, including "
    text += "Adam's averages for them. "
    smallest = next((way for way in WAYS if sum(states[way].values()) < _CARDS["24 GB"]), "")
    if smallest == FULL:
        return (
            picture,
            f"{text}On a 24 GB card, training all weights would still leave room for more.",
        )
    if smallest:
        way = smallest.replace(", ", " in ")
        return picture, f"{text}On a 24 GB card, <b>{way}</b> leave room for more."
    return picture, f"{text}A 24 GB card is too small for all three."


# --- what a layer keeps

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


def layer_activations(tuning: Tuning) -> dict[str, float]:
    """The bytes that the layers of Llama 3.1 8B keep of a text of 2,048 tokens, by part."""
    activations = tuned_activations(published_model("Llama-3.1-8B", _TEXT), tuning, 1)
    parts = activations.parts()
    return {name: float(parts[name]) for name in ("norms", "attention", "mlp", "adapters")}


@handle(
    "What a layer stores for backward when only some of its weights learn.",
    learns=controls.choice("What learns", "The matrices with an adapter.", _LEARNING),
    adapters=controls.choice("Adapters", "Their format, and whether they drop values.", _ADAPTERS),
    book=({}, {"learns": "all matrices", "adapters": "32 bits, dropout"}),
)
def frozen_layer(learns: str = "queries and values", adapters: str = "16 bits") -> Shown:
    """What each matrix of a layer of Llama 3.1 8B keeps, and all layers together."""
    tuning, model = Tuning.full(), published_model("Llama-3.1-8B", _TEXT)
    if learns != "all weights":
        tuning = Tuning.lora(16, _LEARNING[learns], **_ADAPTERS[adapters])
    matrices, (_, layer) = saved_inputs(model, tuning), model.layers[0]
    all_sites = (site for part in layer.parts for site in sites(part, model.hidden_size, tuning))
    learning = {site.matrix.name for site in all_sites if site.adapted or tuning.is_full}
    kept, full = layer_activations(tuning), layer_activations(Tuning.full())
    picture = layer_kept(matrices, learning, kept, full, not tuning.is_full)
    saving = 1 - sum(kept.values()) / sum(full.values())
    text = f"The layers store <b>{units.gigabytes(sum(kept.values()))}</b> for a text of "
    text += f"{_TEXT:,} tokens. "
    if tuning.is_full:
        return picture, f"{text}Every matrix needs its input for its own gradient."
    if saving > 0:
        return picture, f"{text}That's {units.percent(saving)} less than in full training."
    return picture, f"{text}That's <b>{units.percent(-saving)} more</b> than in full training."


# --- the loss's spike

_CARD = "RTX 4090"


def spike_phases(
    tokens: int = 4096, bits: str = "16 bits", loss: str = "whole"
) -> tuple[Memory, ...]:
    """The four moments of a step of Llama 3.1 8B, its layers recomputed."""
    way = IN_4_BITS if bits == "4 bits" else ADAPTERS
    tuning = tuning_of(way, loss_kernel=_LOSSES[loss])
    model = published_model("Llama-3.1-8B", tokens)
    return tuned_phases(model, tuning, 1, "full", accumulation_steps=PASSES)


@handle(
    "Memory at four moments of a fine-tuning step.",
    tokens=slider(
        "Tokens",
        "Tokens processed at once.",
        (512, 1024, 2048, 4096, 6144, 8192, 10_240, 12_288, 16_384),
        unit="tokens",
        least=1,
    ),
    bits=controls.choice("Frozen weights", "In 16 bits, or in 4.", ("16 bits", "4 bits")),
    loss=controls.choice("Loss", "From all logits at once, or piece by piece.", _LOSSES),
)
def loss_spike(
    tokens: int = 4096, bits: str = "16 bits", loss: str = "whole", previous: Any = None
) -> Shown:
    """A step's memory at its four moments, and whether it fits."""
    phases = spike_phases(tokens, bits, loss)
    began = spike_phases(**vars(previous))[0] if previous else phases[0]
    card = memory_of(_CARD)
    picture = step_phases(phases, float(began.total), card, RESERVE)
    logits, peak = phases[0].transient, float(max(phase.total for phase in phases))
    if loss != "whole":
        text = "The logits are never whole, so the loss doesn't add to the peak."
    else:
        share = units.percent(float(logits / phases[0].weights))
        text = f"The logits need <b>{units.gigabytes(float(logits))}</b>, which is {share} of what "
        text += "the weights need."
    size = units.gigabytes(card)
    if peak <= capacity_of(_CARD):
        return picture, f"{text} The step fits into the card's {size}."
    if peak > card:
        return picture, f"{text} The step goes beyond the card's {size}."
    text += f" The step leaves {units.gigabytes(card - peak)} of the card's {size} free, but "
    return picture, f"{text}{units.gigabytes(RESERVE)} should stay free."


# --- how much faster

NO_PAIRS = "none yet"
"""What the handle shows first, so that the guess comes before the answer."""

_LINES = (
    *(0.5, 0.6, 0.7, 0.8, 0.86),
    *(round(0.92 + 0.03 * k, 2) for k in range(12)),
    *(1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0),
)
"""Where the line stops: close together where most pairs are."""


@handle(
    "Published pairs of runs: how much faster adapters were than full fine-tuning.",
    line=slider("Your line", "Where you expect the middle.", _LINES, unit="times as fast"),
    pairs=controls.choice(
        "Pairs", "Published runs that are otherwise identical.", (NO_PAIRS, *PAIRS)
    ),
    book=({"pairs": "adapters or all weights", "line": 1.14}, {"pairs": "4 bits or 16"}),
)
def measured_speeds(line: float = 2.0, pairs: str = NO_PAIRS) -> Shown:
    """Show the pairs of published runs around a line that the reader moves to their middle."""
    picture = speeds_of_pairs(pairs, line)
    if pairs == NO_PAIRS:
        return picture, "Drag the line to where you expect the middle, then show the pairs."
    method, other, *_ = PAIRS[pairs]
    times = [ratio.times for ratio in speed_ratios(method, other)]
    above = sum(ratio > line for ratio in times)
    below = len(times) - above
    if abs(above - below) <= len(times) % 2:  # or the line is at the middle pair
        return picture, (
            f"{above} pairs are above your line and {below} below, so <b>it's in the middle, at "
            f"{line:g}×</b>."
        )
    side = "higher" if above > below else "lower"
    return picture, (
        f"{above} of the {len(times)} pairs are above your line, so <b>the middle is {side}</b>."
    )


# --- texts in rows

LENGTHS = (1720, 300, 620, 410, 1130, 240, 880, 350, 1500, 190, 560, 700)
"""Tokens of twelve texts."""

ROW = 2048
"""Tokens of a row."""


@handle(
    "Twelve texts in rows of one length, padded or packed.",
    packed=slider(
        "Packed",
        "Texts that have been moved into the first row with room.",
        tuple(range(len(LENGTHS) + 1)),
        unit="texts",
        play=True,
    ),
)
def packing(packed: int = 4) -> Shown:
    """Texts that move, one after another, into the first row with room."""
    places = packed_rows(LENGTHS, ROW)[:packed]
    picture = texts_in_rows(LENGTHS, places, ROW)
    if packed == 0:
        text = (
            "Each text has its own row, filled up with <b>padding</b>, which teaches the "
            "model nothing."
        )
    elif packed < len(LENGTHS):
        text = f"Text {packed} stays where it is."
        if places[-1].start > 0:
            text = f"Text {packed} moves in behind others, which <b>saves its row</b>."
    else:
        rows = len({place.row for place in places})
        text = f"The same texts fit in <b>{units.digits(len(LENGTHS) / rows, 2)}×</b> fewer rows."
    return picture, text
