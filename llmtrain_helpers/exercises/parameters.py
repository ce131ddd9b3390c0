"""Exercises of chapter 01: counting parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.checks import Result, quantity
from llmtrain_helpers.evidence.published import architecture
from llmtrain_helpers.exercises.common import (
    HINT,
    PREFIXES,
    TENFOLD,
    UNANSWERED,
    Exercise,
    Function,
    Numeric,
    Prediction,
)
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import ParameterCount, count_parameters, gpt_parameters

# --- 01-a: a GPT that trains on a laptop

LAPTOP = {"num_layers": 8, "hidden_size": 512, "vocab_size": 32000, "sequence_length": 512}


def _laptop() -> Result:
    """Without the 9h biases of a layer, and with a head of its own."""
    l, h, V, _ = LAPTOP.values()
    return gpt_parameters(**LAPTOP) - 9 * l * h + V * h


def _parameters(number: float) -> str:
    return f"{units.exact(number)} parameters"


_HEADLESS = (
    "the output head is missing: here it has a matrix of its own. (And no matrix has a "
    "bias, which is 9h of the formula's 13h.)"
)


def _slips_of_laptop() -> dict[float, str]:
    l, h, V, s = LAPTOP.values()
    key = _laptop()
    return PREFIXES | {
        gpt_parameters(**LAPTOP) / key: _HEADLESS,
        (key - V * h) / key: _HEADLESS,
        12 * l * h**2 / key: "this is 12lh² alone: add the norms and the tables.",
        (key - s * h) / key: "the table of positions is missing: s · h.",
        (key + 9 * l * h) / key: "the biases are still in: 9h of a layer's 13h.",
        (key - (l - 1) * (12 * h**2 + 4 * h)) / key: "this has one layer only.",
        (key - 4 * l * h**2) / key: "the MLP has two matrices of h × 4h: 8h² in a "
        "layer, beside attention's 4h².",
        (key - 6 * l * h**2) / key: "the MLP's matrices are four times as wide as h: "
        "h × 4h up, 4h × h down.",
    }


# --- 01-b: attention whose heads have a size of their own


def attention_weights(hidden_size: int, num_heads: int, num_kv_heads: int, head_dim: int) -> Result:
    """Attention weights of one Llama layer."""
    heads = num_heads, num_kv_heads
    model = Transformer.llama(1, hidden_size, *heads, 1, 1, 1, head_dim=head_dim)
    return count_parameters(model).attention


# --- 01-c: what a token meets in a mixture of experts

TOTAL, IN_EXPERTS, EXPERTS, MET = 40e9, 36e9, 16, 2


def _met() -> float:
    return TOTAL - IN_EXPERTS + IN_EXPERTS * MET / EXPERTS


# --- 01-d: a design within a budget

BUDGET, ROOM, VOCABULARY, MOST_IN_TABLES = 1.5e9, 0.03, 128_256, 0.2


@dataclass(frozen=True)
class Design(Exercise):
    """A model of the learner's own: right when it keeps to the budget."""

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """The first condition that does not hold, or that all do."""
        if not isinstance(answer, Transformer):
            return False, "this is no model: give what Transformer.llama(…) returns."
        counted = count_parameters(answer)
        if answer.vocab_size != VOCABULARY:
            return False, f"its vocabulary should be {VOCABULARY:,}."
        off = float(counted.total / BUDGET - 1)
        told = f"{units.count(counted.total)} parameters"
        if abs(off) > ROOM:
            side = "more" if off > 0 else "less"
            far = f"{units.percent(abs(off))} {side} than the budget"
            return False, f"{told}, {far}. {HINT}"
        share = _in_tables(counted)
        told += f", {units.percent(share)} of them in the tables of tokens"
        if share > MOST_IN_TABLES:
            return False, f"{told}: more than a fifth. {HINT}"
        return True, f"right: {told}."

    def hints(self) -> tuple[str, ...]:
        """Which way to turn: depth, then the tables, then the arithmetic."""
        return (
            "Layers change the total in even steps; the tables grow with h alone.",
            "Tables too large: tie the head, or take a smaller h. Total too small: add layers.",
            "A layer has 2h·ad + 2h·kd + 3hf, each table V·h: choose h for the "
            "tables first, then as many layers as the budget allows.",
        )


def _in_tables(counted: ParameterCount) -> float:
    return float((counted.embedding + counted.head) / counted.total)


# --- 01-e: the learner's own run


@dataclass(frozen=True)
class OwnModel(Exercise):
    """A model's name (or a `Transformer`), and its parameters with twice the layers."""

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """Right within a half per cent of the count of the deeper model."""
        if not isinstance(answer, tuple) or len(answer) != 2:
            return False, "give two things: the model's name, and your number."
        model, number = answer
        if number is None:
            return None, UNANSWERED
        shape = model if isinstance(model, Transformer) else architecture(model)
        counted, deeper = count_parameters(shape), _deeper(shape)
        number = float(quantity("the number", units.read(number)))
        slips = _slips_of_depth(shape)
        nearest = min([deeper, *slips], key=lambda value: abs(number - value))
        if nearest == deeper and abs(number / deeper - 1) <= 0.005:
            times = units.digits(deeper / float(counted.total))
            told = f"right: {units.count(deeper)}, {times} times as many"
            return True, f"{told}. The tables stay as they are."
        return False, _slip(number, slips) or _astray(number, deeper)

    def hints(self) -> tuple[str, ...]:
        """What doubles, then where to find it."""
        return (
            "What is in the layers doubles; what stands outside them does not.",
            "count_parameters(…) has the parts: attention, mlp and norm are in the "
            "layers, embedding and head are outside.",
            "counted = count_parameters(…); add counted.attention + counted.mlp + "
            "counted.norm once more to counted.total.",
        )


def _deeper(shape: Transformer) -> float:
    twice = tuple((2 * how_many, layer) for how_many, layer in shape.layers)
    deeper = replace(shape, layers=twice)
    return float(count_parameters(deeper).total)


def _slips_of_depth(shape: Transformer) -> dict[float, str]:
    """Wrong numbers that have a usual cause, and the cause."""
    total, deeper = float(count_parameters(shape).total), _deeper(shape)
    return {
        2 * total: "this is twice the whole model: embedding and head do not double.",
        total: "this is the model as it is: double its layers.",
        2 * (deeper - total): "these are the layers alone: add what is outside them.",
        deeper - total: "this is what is added: and what was there before?",
    }


def _slip(number: float, slips: dict[float, str]) -> str:
    near = (text for wrong, text in slips.items() if abs(number / wrong - 1) < 0.003)
    return next(near, "")


def _astray(number: float, key: float) -> str:
    return f"too {'high' if number > key else 'low'}. {HINT}"


EXERCISES: dict[str, Exercise] = {
    "01-a": Numeric(
        key=_laptop,
        unit=_parameters,
        tolerance=0.00003,  # with the last norm, 2h, it is as right
        hint=(
            "Count the layers and the tables apart: are both norms there, and no bias?",
            "A layer: 4h² and 8h² in matrices; of the 13h, 9h were biases.",
            "12lh² + 4lh for the layers, and h for each row of three tables: V tokens, "
            "s positions, V again in the head.",
        ),
        slips=_slips_of_laptop(),
    ),
    "01-b": Function(
        key=attention_weights,
        cases=[
            {"hidden_size": 4096, "num_heads": 32, "num_kv_heads": 8, "head_dim": 128},
            {"hidden_size": 2048, "num_heads": 32, "num_kv_heads": 4, "head_dim": 128},
            {"hidden_size": 2048, "num_heads": 8, "num_kv_heads": 1, "head_dim": 256},
            {"hidden_size": 576, "num_heads": 9, "num_kv_heads": 9, "head_dim": 64},
        ],
        hint=(
            "How many columns has the queries' matrix, and how many have the others?",
            "Heads times head size need not be h: take the four matrices one by one.",
            "Queries: h × (heads · head size), and output back; keys and values: "
            "h × (key-value heads · head size) each.",
        ),
        slips={
            "this is 4h², a GPT's: here keys and values are shared, and heads have a "
            "size of their own.": lambda h, a, k, d: 4 * h**2,
            "queries and output are taken as h × h: their width is heads times head "
            "size, which need not be h.": lambda h, a, k, d: 2 * h**2 + 2 * h * k * d,
            "the output is missing, the matrix that brings the result back.": (
                lambda h, a, k, d: h * d * (a + 2 * k)
            ),
            "here every head has keys and values of its own: some are shared.": (
                lambda h, a, k, d: 4 * h * a * d
            ),
            "keys and values are two matrices.": (lambda h, a, k, d: h * d * (2 * a + k)),
            "the head size is missing: a head has so many columns.": (
                lambda h, a, k, d: 2 * h * (a + k)
            ),
        },
    ),
    "01-c": Numeric(
        key=_met,
        unit=units.count,
        hint=(
            "What does a token meet that is no expert?",
            "All 4 billion outside the experts, and a part of the 36 billion.",
            "(40 − 36) + 36 · 2/16, in billions.",
        ),
        slips=TENFOLD
        | {
            TOTAL * MET / EXPERTS / _met(): "this is 2/16 of everything, as in the "
            "text: but every token meets what is outside the experts.",
            IN_EXPERTS * MET / EXPERTS / _met(): "these are the experts that it meets: "
            "add what every token meets.",
            (TOTAL - IN_EXPERTS) / _met(): "this is what is outside the experts: add "
            "the two that a token meets.",
            (TOTAL - IN_EXPERTS + IN_EXPERTS / EXPERTS) / _met(): "this is with one "
            "expert a layer: a token meets two.",
            TOTAL / _met(): "this is the total: 14 of 16 experts stay idle.",
            1e-9: "give the number itself, such as 3.2e9 or “3.2B”.",
        },
    ),
    "01-d": Design(),
    "01-e": OwnModel(),
}


# --- the guesses

GPT3 = {"num_layers": 96, "hidden_size": 12288, "vocab_size": 50257, "sequence_length": 2048}


def _gpt3_tokens() -> int:
    return GPT3["vocab_size"] * GPT3["hidden_size"]


def _why_so_few() -> str:
    share = units.percent(_gpt3_tokens() / gpt_parameters(**GPT3))
    layer = units.count(12 * GPT3["hidden_size"] ** 2)
    return (
        f"That is {share} of the model: the table grows with h, a layer's matrices "
        f"with h², and each of the 96 layers has {layer}. In GPT-2, h = 768, the same "
        f"table is {units.percent(_gpt2_share())} of the model."
    )


def _gpt2_share() -> float:
    return float(50257 * 768 / gpt_parameters(12, 768, 50257, 1024))


def _verdict_on_llama() -> str:
    """What the formula for a GPT finds for Llama 3.1 8B."""
    model = architecture("Llama-3.1-8B")
    shape = model.num_layers, model.hidden_size, model.vocab_size
    formula, exact = gpt_parameters(*shape, 2048), count_parameters(model).total
    if abs(formula / exact - 1) < 0.005:
        return "right"
    return "too many" if formula > exact else "too few"


PREDICTIONS = {
    "01-guess": Prediction(
        truth=_gpt3_tokens, unit=lambda number: units.count(number), why=_why_so_few()
    ),
    "01-llama": Prediction(
        truth=_verdict_on_llama,
        options={
            "right": "Behind that stands the belief that a transformer is a "
            "transformer; but the matrices of a layer have other sizes.",
            "too many": "Shared keys and values do save something, and the formula "
            "does not know it; but more is added elsewhere.",
            "too few": "The third matrix of the MLP and the output head of its own "
            "outweigh what shared keys and values save.",
        },
        why="The next cells show each matrix.",
    ),
}
