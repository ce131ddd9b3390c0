"""Exercises of chapter 13: hours, what makes it fit, a plan in 4 bits, the own run adapted."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from llmtrain_course.finetune.formulas import tuned_states
from llmtrain_course.kit.cards import capacity_of
from llmtrain_course.kit.exercise import (
    NOT_YET,
    Answer,
    Exercise,
    Grade,
    MultipleChoice,
    Numeric,
    Prediction,
    Question,
    entry,
)
from llmtrain_course.kit.kinds import FillIn
from llmtrain_course.kit.own_run import own_run
from llmtrain_helpers import units
from llmtrain_helpers.checks import choice, count
from llmtrain_helpers.finetune import tuned_activations, tuned_memory, tuning_tokens
from llmtrain_helpers.memory import LOSS_KERNELS
from llmtrain_helpers.model.names import known_accelerator, known_model
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.published import architecture
from llmtrain_helpers.tuning import Tuning, tuned_parameters
from research.finetunes import speed_ratios, times_as_long_in_4_bits

# --- finetune-adapter: one adapter

ROWS, COLUMNS, RANK = 4096, 14336, 16
"""A matrix of the MLP of Llama 3.1 8B, and the rank of its adapter."""


def _adapter_parameters() -> int:
    """The parameters that an adapter on `gate` adds in each of 32 layers."""
    model = architecture("Llama-3.1-8B")
    return int(tuned_parameters(model, Tuning.lora(RANK, ["gate_proj"])).learning) // 32


# --- finetune-a: hours of an own data set

TEXTS, EACH, EPOCHS, RATE = 24_000, 650, 3, 120e12
"""Chats, tokens in each, epochs, and the FLOP/s of a GPU."""


def _hours() -> float:
    return float(4 * 8e9 * tuning_tokens(TEXTS, EACH, EPOCHS) / RATE / units.HOUR)


# --- finetune-b: what makes it fit


def _peak(**options: Any) -> str:
    """The peak of adapters of rank 16 on Llama 3.1 8B, layers recomputed, with other options."""
    make = Tuning.qlora if options.pop("bits", 16) == 4 else Tuning.lora
    tuning = make(**{"rank": 16, "dropout": 0.05, "optimizer": "adamw_fused", **options})
    model = architecture("Llama-3.1-8B", 4096)
    return units.gigabytes(
        float(tuned_memory(model, tuning, 1, "full", accumulation_steps=16).total)
    )


_ROOM = units.gigabytes(capacity_of("RTX 4090"))
"""What the reserve leaves of the card."""

_CHANGES = {
    "rank 8": f"no: it is still {_peak(rank=8)}, of {_ROOM} that a step may fill. Adapters are "
    "less than a gigabyte of it.",
    "no dropout": f"no: it is still {_peak(dropout=0)}. With recomputation only one layer "
    "at a time keeps its copies and masks.",
    "4 bits": f"no: it fits, with {_peak(bits=4)}, but with 4,096 tokens at once 4 bits may "
    "cost speed. There is a change that costs none.",
    "loss piece by piece": f"right: {_peak(loss_kernel='fused')}, of {_ROOM} that a step may fill. "
    "The peak was at the loss, and the logits are never whole now.",
}


# --- finetune-c: 70 billion parameters at half a byte

_BIG = "Llama-3.1-70B"


def _weights_in_4_bits() -> float:
    """GB of all frozen weights."""
    return float(tuned_states(architecture(_BIG), Tuning.qlora(16))["weights"]) / 1e9


_P = tuned_parameters(architecture(_BIG), Tuning.qlora(16))
_MATRICES, _ENDS = float(_P.frozen) / 1e9, float(_P.wide) / 1e9
"""Billions of parameters in matrices, and in embedding, head and norms."""

_HALF = Tuning.qlora(16).matrix_bytes
"""Bytes of a weight in 4 bits, with its share of the scales."""

# --- finetune-d: the own run, adapted

WAYS = {
    "full": Tuning.full(optimizer="adamw_fused"),
    "lora": Tuning.lora(16, optimizer="adamw_fused"),
    "qlora": Tuning.qlora(16, optimizer="adamw_fused"),
}
"""The three ways, as PEFT's users call them."""

HOURS, SHORTEST, OWN_EACH, OWN_EPOCHS, OWN_ROWS = 8, 2048, 800, 3, 16
"""The hours that there are, the shortest row, what a text of one's own is like, and the rows
of a step on each GPU."""

_ENTRIES = ("gpus", "way", "length", "texts")


def adaptation_plan(way: str, gpus: int, length: int, texts: int) -> Plan:
    """The plan of the own model, adapted on so many of the own GPUs, with packed texts."""
    run = own_run()
    return plan_run(
        known_model(run.model, length),
        run.chip,
        gpus,
        int(tuning_tokens(texts, OWN_EACH, OWN_EPOCHS)),
        OWN_ROWS * gpus,
        recompute="full",
        zero_stage=3,
        tuning=WAYS[way],
        price_per_gpu_hour=run.price,
    )


class OwnTuning(Exercise):
    """A way, GPUs, rows and texts: it fits, ends in time, and uses half of the time."""

    def grade(self, answer: Answer) -> Grade:
        """The first thing that is wrong, or what it takes."""
        if not isinstance(answer, Mapping) or set(answer) != set(_ENTRIES):
            return False, f"give a dictionary with {', '.join(_ENTRIES)}."
        if any(answer[name] is None for name in _ENTRIES):
            return NOT_YET
        way = choice("way", answer["way"], WAYS)
        gpus, length, texts = (
            int(entry(answer, name, count)) for name in ("gpus", "length", "texts")
        )
        run = own_run()
        if gpus > run.gpus:
            return False, f"you have {units.plural(run.gpus, 'GPU')}, and not {gpus}."
        node = known_accelerator(run.chip).gpus_per_node
        if gpus > node:
            return False, (
                f"{gpus} GPUs are more than the {node} of one machine, and this page adapts on "
                f"one: take at most {node} of yours."
            )
        if length < SHORTEST:
            return False, f"rows of {length:,} tokens are too short: {SHORTEST:,} are asked."
        positions = known_model(run.model).num_positions
        if positions and length > positions:
            return False, f"{run.model} has positions for {positions:,} tokens: shorter rows."
        rows = int(tuning_tokens(texts, OWN_EACH, OWN_EPOCHS)) // length
        if rows < OWN_ROWS * gpus:
            return False, (
                f"{texts:,} texts fill {units.plural(rows, 'row')} of {length:,} tokens, and one "
                f"step has {OWN_ROWS * gpus}: more texts, or shorter rows."
            )
        plan = adaptation_plan(way, gpus, length, texts)
        peak, capacity = plan.memory.total, plan.card - plan.reserve
        holds = f"{units.gigabytes(float(peak))} at the peak"
        if not plan.fits:
            free = units.gigabytes(float(capacity))
            return False, (
                f"it does not fit: {holds}, of {free} that the reserve leaves. Shorter rows, "
                "more GPUs or fewer bits need less."
            )
        slower = times_as_long_in_4_bits(length) if way == "qlora" else 1
        seconds = slower * float(plan.seconds.greatest)
        summary = f"they may take {units.duration(seconds, 2)} of your {HOURS} hours."
        if seconds > 1.015 * HOURS * units.HOUR:
            return False, f"too many texts: {summary}"
        if seconds < HOURS * units.HOUR / 2:
            return False, f"you leave time: {summary}"
        assert plan.cost is not None
        return True, (
            f"right: {holds}, and {texts:,} texts in {units.duration(seconds, 2)} at the slow "
            f"end, for {units.dollars(float(plan.cost.greatest), 2)}."
        )


EXERCISES: dict[str, Exercise] = {
    "finetune-adapter": FillIn(
        key=_adapter_parameters,
        unit=lambda number: f"{number:,} parameters",
        tolerance=0,
        hint="One matrix has r columns as tall as the rows, the other r rows.",
        common_mistakes={
            "this is the matrix itself, which stays frozen.": lambda: ROWS * COLUMNS,
            "m times n is as large as the matrix: the two thin ones have r(m + n).": lambda: (
                RANK * ROWS * COLUMNS
            ),
            "this is one of the two matrices: both learn.": lambda: RANK * ROWS,
            "this is one of the two matrices; the other one learns too.": lambda: RANK * COLUMNS,
            "this has each of the two thin matrices twice.": lambda: 2 * RANK * (ROWS + COLUMNS),
            "the rank is missing: each thin matrix has r of them.": lambda: ROWS + COLUMNS,
        },
    ),
    "finetune-a": Numeric(
        key=_hours,
        asked="hours",
        unit=lambda hours: f"{units.digits(hours)} hours",
        hint=(
            "First the tokens, then the work for each of them.",
            "A frozen weight takes 4 FLOPs a token: forward, and to pass the gradient on.",
        ),
        common_mistakes={
            "6 * P * texts * each * epochs / X / 3600": "this has 6 FLOPs a weight: frozen ones "
            "take no gradient of their own.",
            "2 * P * texts * each * epochs / X / 3600": "this is forward alone: the gradient has "
            "to pass through every layer.",
            "4 * P * texts * each / X / 3600": "this reads the texts once: there are three epochs.",
            "4 * P * texts * 2048 * epochs / X / 3600": "these rows are padded: packed ones are "
            "full of text.",
            "4 * P * texts * each * epochs / X / 60": "these are minutes: give hours.",
            "4 * P * texts * each * epochs / X": "these are seconds: give hours.",
        },
        values={"P": 8e9, "texts": TEXTS, "each": EACH, "epochs": EPOCHS, "X": RATE},
    ),
    "finetune-b": MultipleChoice(
        key=lambda: "loss piece by piece",
        options=_CHANGES,
        followups=[
            Question(
                "how many GB do the logits take with 6,144 tokens at once, with 14 bytes each?",
                Numeric(
                    key=lambda: LOSS_KERNELS["transformers"] * 6144 * 128_256 / 1e9,
                    asked="GB",
                    unit=lambda size: f"{units.digits(size)} GB",
                    hint="A token has as many logits as the vocabulary has words: 128,256.",
                    common_mistakes={
                        14 * 4096 * 128_256 / 1e9: "these are those of 4,096 tokens.",
                        4 * 6144 * 128_256 / 1e9: "this is one tensor in 32 bits: 14 bytes each.",
                    },
                ),
            )
        ],
    ),
    "finetune-c": Numeric(
        key=_weights_in_4_bits,
        asked="GB",
        unit=lambda size: f"{units.digits(size)} GB",
        hint=(
            "Which weights are not in 4 bits?",
            "Embedding and head have V rows of h numbers each, and stay in 16 bits.",
        ),
        common_mistakes={
            _HALF * (_MATRICES + _ENDS): "this is the colleague's own number: embedding and head "
            "stay wide.",
            _HALF * _MATRICES: "embedding and head are missing: they take memory too.",
            0.5 * _MATRICES + 2 * _ENDS: "the scales are missing: a weight has 0.516 bytes.",
            _HALF * (_MATRICES + _ENDS / 2) + _ENDS: "embedding and head are two tables: both "
            "stay wide.",
            _HALF * _MATRICES + 4 * _ENDS: "this has embedding and head in 32 bits: they are in "
            "16 here.",
            2 * (_MATRICES + _ENDS): "this has all weights in 16 bits.",
        },
    ),
    "finetune-d": OwnTuning(),
}


def dropout_ratio() -> float:
    """The activations of adapters on all matrices with dropout, relative to full training."""
    model = architecture("Llama-3.1-8B", 2048)
    tunings = Tuning.lora(16, dropout=0.05), Tuning.full()
    ours, full = (float(tuned_activations(model, tuning, 1).layers) for tuning in tunings)
    return ours / full


PREDICTIONS: dict[str, Prediction] = {
    "finetune-kept": Prediction(
        truth=lambda: "more" if dropout_ratio() > 1.02 else "the same",
        options={
            "a tenth": "What learns is less than a hundredth, but the gradient still has to "
            "pass through every layer.",
            "half": "A frozen matrix needs no input, but what lies between the matrices stays.",
            "the same": "Frozen matrices keep less, and their adapters keep more than that.",
            "more": "Each adapter keeps a copy of what it reads, and which values it dropped.",
        },
        why=f"With an adapter on every matrix it is {dropout_ratio():.2f} times as much. "
        "The picture shows where.",
    ),
    "finetune-speed": Prediction(
        truth=lambda: median(ratio.times for ratio in speed_ratios("lora", "full")),
        unit=lambda times: f"{units.digits(times)} times as fast",
        asked="times",
        why="That is the middle of 22 pairs of runs that differ in nothing else.",
    ),
}
