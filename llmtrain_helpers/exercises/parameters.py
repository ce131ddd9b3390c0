"""Exercises of chapter 01: counting parameters."""

from __future__ import annotations

from dataclasses import replace

from llmtrain_helpers import units
from llmtrain_helpers.checks import Result, quantity
from llmtrain_helpers.evidence.published import architecture
from llmtrain_helpers.exercises.common import (
    HINT,
    NOT_YET,
    PREFIXES,
    TENFOLD,
    Answer,
    Exercise,
    Function,
    Judgement,
    Numeric,
    Prediction,
    read_as,
)
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters, gpt_parameters

# --- 01-a: a GPT that trains on a laptop

LAPTOP = {"num_layers": 8, "hidden_size": 512, "vocab_size": 32000, "sequence_length": 512}


def _laptop_parameters() -> Result:
    """Parameters of 01-a: without the 9h biases of a layer, with a head of its own."""
    l, h, V, _ = LAPTOP.values()
    return gpt_parameters(**LAPTOP) - 9 * l * h + V * h


_HEADLESS = (
    "the output head is missing: here it has a matrix of its own. (And no matrix has a "
    "bias, which is 9h of the formula's 13h.)"
)


def _laptop_mistakes() -> dict[float, str]:
    """What one counts in 01-a who forgets a part, or has one too many."""
    l, h, V, s = LAPTOP.values()
    key = _laptop_parameters()
    return {
        gpt_parameters(**LAPTOP): _HEADLESS,
        key - V * h: _HEADLESS,
        12 * l * h**2: "this is 12lh² alone: add the norms and the tables.",
        key - s * h: "the table of positions is missing: s · h.",
        key + 9 * l * h: "the biases are still in: 9h of a layer's 13h.",
        key - (l - 1) * (12 * h**2 + 4 * h): "this has one layer only.",
        key - 4 * l * h**2: "the MLP has two matrices of h × 4h: 8h² in a layer, "
        "beside attention's 4h².",
        key - 6 * l * h**2: "the MLP's matrices are four times as wide as h: h × 4h up, "
        "4h × h down.",
    }


# --- 01-b: attention whose heads have a size of their own


def attention_weights(hidden_size: int, num_heads: int, num_kv_heads: int, head_dim: int) -> Result:
    """Attention weights of one Llama layer."""
    model = Transformer.llama(1, hidden_size, num_heads, num_kv_heads, 1, 1, 1, head_dim=head_dim)
    return count_parameters(model).attention


# --- 01-c: the parameters that a token meets in a mixture of experts

TOTAL, IN_EXPERTS, EXPERTS, EXPERTS_PER_TOKEN = 40e9, 36e9, 16, 2


def _active_parameters(experts: int = EXPERTS_PER_TOKEN) -> float:
    """What is outside the experts, and so many of them."""
    return TOTAL - IN_EXPERTS + IN_EXPERTS * experts / EXPERTS


# --- 01-d: a design within a budget

BUDGET, ROOM, VOCABULARY, MOST_IN_TABLES = 1.5e9, 0.03, 128_256, 0.2
"""Parameters, the share by which a design may miss them, tokens of the vocabulary, and
the largest share of the parameters that its tables may take."""


class OwnDesign(Exercise):
    """A model of the learner's own: right when it keeps to the budget."""

    hint = (
        "Layers change the total in even steps; the tables grow with h alone.",
        "Tables too large: tie the head, or take a smaller h. Total too small: add layers.",
        "A layer has 2h·ad + 2h·kd + 3hf, each table V·h: choose h for the "
        "tables first, then as many layers as the budget allows.",
    )

    def judge(self, answer: Answer) -> Judgement:
        """The first condition that does not hold, or that all do."""
        if not isinstance(answer, Transformer):
            return False, "this is no model: give what Transformer.llama(…) returns."
        parameters = count_parameters(answer)
        if answer.vocab_size != VOCABULARY:
            return False, f"its vocabulary should be {VOCABULARY:,}."
        total = f"{units.count(parameters.total)} parameters"
        excess = float(parameters.total / BUDGET - 1)
        if abs(excess) > ROOM:
            side = "more" if excess > 0 else "less"
            gap = f"{units.percent(abs(excess))} {side} than the budget"
            return False, f"{total}, {gap}. {HINT}"
        in_tables = float((parameters.embedding + parameters.head) / parameters.total)
        summary = f"{total}, {units.percent(in_tables)} of them in the tables of tokens"
        if in_tables > MOST_IN_TABLES:
            return False, f"{summary}: more than a fifth. {HINT}"
        return True, f"right: {summary}."


# --- 01-e: the learner's own run


class OwnModel(Exercise):
    """A model's name (or a `Transformer`), and its parameters with twice the layers."""

    hint = (
        "What is in the layers doubles; what stands outside them does not.",
        "count_parameters(…) has the parts: attention, mlp and norm are in the "
        "layers, embedding and head are outside.",
    )

    def judge(self, answer: Answer) -> Judgement:
        """Right within a half per cent of the count of the deeper model."""
        if not isinstance(answer, tuple) or len(answer) != 2:
            return False, "give two things: the model's name, and your number."
        name, number = answer
        if number is None:
            return NOT_YET
        model = name if isinstance(name, Transformer) else architecture(name)
        total, key = float(count_parameters(model).total), _with_twice_the_layers(model)
        number = float(quantity("number", read_as("number", number, "parameters")))
        mistakes = {
            2 * total: "this is twice the whole model: embedding and head do not double.",
            total: "this is the model as it is: double its layers.",
            2 * (key - total): "these are the layers alone: add what is outside them.",
            key - total: "this is what is added: and what was there before?",
        }
        # Where the tables are small, twice the model is nearly the key: the nearest counts.
        nearest = min([key, *mistakes], key=lambda value: abs(number - value))
        if nearest == key and abs(number / key - 1) <= 0.005:
            factor = units.digits(key / total)
            return True, (
                f"right: {units.count(key)}, {factor} times as many. The tables stay as they are."
            )
        for mistake, cause in mistakes.items():
            if abs(number / mistake - 1) < 0.003:
                return False, cause
        return False, f"too {'high' if number > key else 'low'}. {HINT}"


def _with_twice_the_layers(model: Transformer) -> float:
    layers = tuple((2 * number, layer) for number, layer in model.layers)
    return float(count_parameters(replace(model, layers=layers)).total)


EXERCISES: dict[str, Exercise] = {
    "01-a": Numeric(
        key=_laptop_parameters,
        asked="parameters",
        unit=lambda number: f"{units.exact(number)} parameters",
        tolerance=0.00003,  # with the last norm, 2h, it is as right
        hint=(
            "Count the layers and the tables apart: are both norms there, and no bias?",
            "A layer: 4h² and 8h² in matrices; of the 13h, 9h were biases.",
        ),
        slips=PREFIXES,
        mistaken=_laptop_mistakes(),
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
        key=_active_parameters,
        asked="parameters",
        unit=units.count,
        hint=(
            "What does a token meet that is no expert?",
            "All 4 billion outside the experts, and a part of the 36 billion.",
        ),
        slips={**TENFOLD, 1e-9: "give the number itself, such as 3.2e9 or “3.2B”."},
        mistaken={
            TOTAL * EXPERTS_PER_TOKEN / EXPERTS: "this is 2/16 of everything, as in the "
            "text: but every token meets what is outside the experts.",
            IN_EXPERTS * EXPERTS_PER_TOKEN / EXPERTS: "these are the experts that it meets: "
            "add what every token meets.",
            TOTAL - IN_EXPERTS: "this is what is outside the experts: add "
            "the two that a token meets.",
            _active_parameters(experts=1): "this is with one expert a layer: a token meets two.",
            TOTAL: "this is the total: 14 of 16 experts stay idle.",
        },
    ),
    "01-d": OwnDesign(),
    "01-e": OwnModel(),
}


# --- the guesses

GPT3 = {"num_layers": 96, "hidden_size": 12288, "vocab_size": 50257, "sequence_length": 2048}
GPT2 = {"num_layers": 12, "hidden_size": 768, "vocab_size": 50257, "sequence_length": 1024}


def _table(model: dict[str, int]) -> int:
    """The parameters of a table of tokens."""
    return model["vocab_size"] * model["hidden_size"]


def _why_so_few() -> str:
    gpt3, gpt2 = (units.percent(_table(model) / gpt_parameters(**model)) for model in (GPT3, GPT2))
    layer = units.count(12 * GPT3["hidden_size"] ** 2)
    return (
        f"That is {gpt3} of the model: the table grows with h, a layer's matrices "
        f"with h², and each of the 96 layers has {layer}. In GPT-2, h = 768, the same "
        f"table is {gpt2} of the model."
    )


def _verdict_on_llama() -> str:
    """Whether the formula for a GPT is right for Llama 3.1 8B, or which way it is off."""
    model = architecture("Llama-3.1-8B")
    formula = gpt_parameters(model.num_layers, model.hidden_size, model.vocab_size, 2048)
    exact = count_parameters(model).total
    if abs(formula / exact - 1) < 0.005:
        return "right"
    return "too many" if formula > exact else "too few"


PREDICTIONS: dict[str, Prediction] = {
    "01-guess": Prediction(
        truth=lambda: _table(GPT3), unit=units.count, why=_why_so_few(), asked="parameters"
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
