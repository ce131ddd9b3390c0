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
from llmtrain_course.kit.own_panel import TEXT_TOKENS
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
    "rank 8": f"No. It still needs {_peak(rank=8)}, and a step can fill {_ROOM}. The adapters are "
    f"less than 1 GB of that.",
    "no dropout": f"No. It still needs {_peak(dropout=0)}. Because of recomputation, only one "
    f"layer at a time stores its copies and masks.",
    "4 bits": f"No. It fits, with {_peak(bits=4)}, but with 4,096 tokens at once 4 bits may "
    "be slower. Another change costs no speed.",
    "loss piece by piece": f"Right, {_peak(loss_kernel='fused')}, and a step can fill {_ROOM}. "
    "The peak was at the loss, and now the logits are never whole.",
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

HOURS, SHORTEST, OWN_EACH, OWN_EPOCHS, OWN_ROWS = 8, 2048, TEXT_TOKENS, 3, 16
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
            return False, f"Give a dictionary with {', '.join(_ENTRIES)}."
        if any(answer[name] is None for name in _ENTRIES):
            return NOT_YET
        way = choice("way", answer["way"], WAYS)
        gpus, length, texts = (
            int(entry(answer, name, count)) for name in ("gpus", "length", "texts")
        )
        run = own_run()
        if gpus > run.gpus:
            return False, f"You have {units.plural(run.gpus, 'GPU')}, not {gpus}."
        node = known_accelerator(run.chip).gpus_per_node
        if gpus > node:
            return False, (
                f"{gpus} GPUs are more than the {node} of one machine, and this page only uses "
                f"one, so use at most {node} of yours."
            )
        if length < SHORTEST:
            return False, f"Rows of {length:,} tokens are too short. Use at least {SHORTEST:,}."
        positions = known_model(run.model).num_positions
        if positions and length > positions:
            return (
                False,
                f"{run.model} only has positions for {positions:,} tokens, so use shorter rows.",
            )
        rows = int(tuning_tokens(texts, OWN_EACH, OWN_EPOCHS)) // length
        if rows < OWN_ROWS * gpus:
            return False, (
                f"{texts:,} texts fill {units.plural(rows, 'row')} of {length:,} tokens, but one "
                f"step needs {OWN_ROWS * gpus}. Use more texts, or shorter rows."
            )
        plan = adaptation_plan(way, gpus, length, texts)
        peak, capacity = plan.memory.total, plan.card - plan.reserve
        holds = f"{units.gigabytes(float(peak))} at the peak"
        if not plan.fits:
            free = units.gigabytes(float(capacity))
            return False, (
                f"It doesn't fit: {holds}, and the reserve leaves {free}. Shorter rows, "
                "more GPUs or fewer bits need less."
            )
        slower = times_as_long_in_4_bits(length) if way == "qlora" else 1
        seconds = slower * float(plan.seconds.greatest)
        summary = f"They may need {units.duration(seconds, 2)}, but your limit is {HOURS} hours."
        if seconds > 1.015 * HOURS * units.HOUR:
            return False, f"That's too many texts. {summary}"
        if seconds < HOURS * units.HOUR / 2:
            return False, f"You can fit more texts. {summary}"
        assert plan.cost is not None
        return True, (
            f"Right, {holds}, and {texts:,} texts in {units.duration(seconds, 2)} at the slow "
            f"end, for {units.dollars(float(plan.cost.greatest), 2)}."
        )


EXERCISES: dict[str, Exercise] = {
    "finetune-adapter": FillIn(
        key=_adapter_parameters,
        unit=lambda number: f"{number:,} parameters",
        tolerance=0,
        hint="One of the thin matrices has r columns, and the other has r rows.",
        common_mistakes={
            "That's the matrix itself, which stays frozen.": lambda: ROWS * COLUMNS,
            "You've multiplied rows and columns, as you would for the whole matrix. Together, the "
            "two thin matrices contain r(m + n) numbers.": lambda: RANK * ROWS * COLUMNS,
            "That's one of the two matrices, but both learn.": lambda: RANK * ROWS,
            "That's one of the two matrices, but the other one learns, too.": lambda: (
                RANK * COLUMNS
            ),
            "You've counted each of the two thin matrices twice.": lambda: (
                2 * RANK * (ROWS + COLUMNS)
            ),
            "You've left out the rank, which is how many rows or columns a thin matrix "
            "has.": lambda: ROWS + COLUMNS,
        },
    ),
    "finetune-a": Numeric(
        key=_hours,
        asked="hours",
        unit=lambda hours: f"{units.digits(hours)} hours",
        hint=(
            "Compute the tokens first, then the work per token.",
            "A frozen weight needs 4 FLOPs per token: 2 in forward, and 2 to pass the gradient on.",
        ),
        common_mistakes={
            "6 * P * texts * each * epochs / X / 3600": "You've used 6 FLOPs per weight, but "
            "frozen "
            "weights don't need their own gradients.",
            "2 * P * texts * each * epochs / X / 3600": "You've only counted the forward pass, "
            "but the "
            "gradient still has to pass through every layer.",
            "4 * P * texts * each / X / 3600": "You've read the texts once, but there are three "
            "epochs.",
            "4 * P * texts * 2048 * epochs / X / 3600": "You've padded the rows, but packed ones "
            "are "
            "full of text.",
            "4 * P * texts * each * epochs / X / 60": "Those are minutes. Give hours.",
            "4 * P * texts * each * epochs / X": "Those are seconds. Give hours.",
        },
        values={"P": 8e9, "texts": TEXTS, "each": EACH, "epochs": EPOCHS, "X": RATE},
    ),
    "finetune-b": MultipleChoice(
        key=lambda: "loss piece by piece",
        options=_CHANGES,
        followups=[
            Question(
                "How many GB do the logits need with 6,144 tokens at once, at 14 bytes each?",
                Numeric(
                    key=lambda: LOSS_KERNELS["transformers"] * 6144 * 128_256 / 1e9,
                    asked="GB",
                    unit=lambda size: f"{units.digits(size)} GB",
                    hint="Each token needs one logit per word of the vocabulary, so 128,256.",
                    common_mistakes={
                        14 * 4096 * 128_256 / 1e9: "You've used 4,096 tokens.",
                        4
                        * 6144
                        * 128_256
                        / 1e9: "That's one tensor in 32 bits, but together they need 14 bytes per "
                        "logit.",
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
            "Which weights aren't in 4 bits?",
            "Embedding and head each contain V rows of h numbers, in 16 bits.",
        ),
        common_mistakes={
            _HALF * (_MATRICES + _ENDS): "That's your colleague's own number, but embedding and "
            "head stay in 16 bits.",
            _HALF * _MATRICES: "You've left out embedding and head, which also need memory.",
            0.5 * _MATRICES + 2 * _ENDS: "You've left out the scales. A weight needs 0.516 bytes.",
            _HALF * (_MATRICES + _ENDS / 2) + _ENDS: "Embedding and head are two separate tables, "
            "both in 16 bits.",
            _HALF * _MATRICES + 4 * _ENDS: "You've counted embedding and head in 32 bits, but "
            "here they're in 16.",
            2 * (_MATRICES + _ENDS): "You've counted all the weights in 16 bits.",
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
            "a tenth": "Less than 1% of the weights learn, but the gradient still has to pass "
            "through every layer.",
            "half": "A frozen matrix doesn't need its input, but everything between the matrices "
            "is still stored.",
            "the same": "Frozen matrices store less, but their adapters store more than that "
            "saves.",
            "more": "Each adapter stores a copy of its input, and a mask of the values it dropped.",
        },
        why=f"With an adapter on every matrix, the layers store {dropout_ratio():.2f}× as much. "
        f"The picture shows where.",
    ),
    "finetune-speed": Prediction(
        truth=lambda: median(ratio.times for ratio in speed_ratios("lora", "full")),
        unit=lambda times: f"{units.digits(times)}× as fast",
        asked="times",
        why="That's the median of 23 pairs of runs that are otherwise identical.",
    ),
}
