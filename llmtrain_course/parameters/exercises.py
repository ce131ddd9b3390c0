"""Exercises of chapter 01: counting parameters."""

from __future__ import annotations

from dataclasses import replace

from llmtrain_course.kit.exercise import (
    HINT,
    NOT_YET,
    TENFOLD,
    Answer,
    Exercise,
    Function,
    Grade,
    Numeric,
    Prediction,
    read_as,
)
from llmtrain_course.kit.kinds import FillIn
from llmtrain_helpers import units
from llmtrain_helpers.checks import Result, quantity
from llmtrain_helpers.model.names import known_model
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters, gpt_parameters
from llmtrain_helpers.published import architecture

# --- parameters-layer: the matrices of one layer

GPT2_XL = {"num_layers": 48, "hidden_size": 1600}


def _weights(squares: int = 12) -> int:
    """The weights of so many matrices of h × h, with GPT-2 XL's hidden size."""
    return squares * GPT2_XL["hidden_size"] ** 2


# --- parameters-b: attention whose heads have a size of their own


def attention_weights(hidden_size: int, num_heads: int, num_kv_heads: int, head_dim: int) -> Result:
    """Attention weights of one Llama layer."""
    model = Transformer.llama(1, hidden_size, num_heads, num_kv_heads, 1, 1, 1, head_dim=head_dim)
    return count_parameters(model).attention


# --- parameters-c: the parameters that a token meets in a mixture of experts

TOTAL, IN_EXPERTS, EXPERTS, EXPERTS_PER_TOKEN = 40e9, 36e9, 16, 2


def _active_parameters() -> float:
    """What is outside the experts, and those that a token meets."""
    return TOTAL - IN_EXPERTS + IN_EXPERTS * EXPERTS_PER_TOKEN / EXPERTS


# --- parameters-d: a design within a budget

BUDGET, ROOM, VOCABULARY, MOST_IN_TABLES = 1.5e9, 0.03, 128_256, 0.2
"""Parameters, the share by which a design may miss them, tokens of the vocabulary, and
the largest share of the parameters that its tables may take."""


class OwnDesign(Exercise):
    """A model of the learner's own: right when it keeps to the budget."""

    hint = (
        "Each layer adds the same number, while the tables only grow with h.",
        "If the tables are too large, tie the head or use a smaller h. If the total is too "
        "small, add layers.",
        "A layer has 2h·ad + 2h·kd + 3hf parameters and each table V·h, so choose h for the "
        "tables first, and then as many layers as the budget allows.",
    )

    def grade(self, answer: Answer) -> Grade:
        """The first condition that does not hold, or that all do."""
        if not isinstance(answer, Transformer):
            return False, "That isn't a model. Give what Transformer.llama(…) returns."
        parameters = count_parameters(answer)
        if answer.vocab_size != VOCABULARY:
            return False, f"Its vocabulary should be {VOCABULARY:,}."
        total = f"{units.count(parameters.total)} parameters"
        if unheard := _unusual_size(answer):
            return False, f"{total}, but {unheard}"
        excess = float(parameters.total / BUDGET - 1)
        if abs(excess) > ROOM:
            side = "more" if excess > 0 else "less"
            gap = f"{units.percent(abs(excess))} {side} than the budget"
            return False, f"{total}, {gap}. {HINT}"
        in_tables = float((parameters.embedding + parameters.head) / parameters.total)
        summary = f"{total}, {units.percent(in_tables)} of them in the tables of tokens"
        if in_tables > MOST_IN_TABLES:
            return False, f"{summary}, which is more than 20%. {HINT}"
        return True, f"Right: {summary}."


def _unusual_size(model: Transformer) -> str:
    """A size that models of this kind don't have, with one that they do; else empty."""
    l, h, f = int(model.num_layers), int(model.hidden_size), int(model.intermediate_size)
    across = int(model.num_heads) * int(model.head_dim)
    if not 6 <= l <= 128:
        return f"nobody trains one with {units.plural(l, 'layer')}. Use 6 to 128."
    if not h <= f <= 8 * h:
        return f"an MLP of {f:,} doesn't match h = {h:,}. Use one to eight times h."
    if not h / 2 <= across <= 4 * h:
        return (
            f"its heads are {across:,} numbers wide and h is {h:,}. Use half of h to four times h."
        )
    return ""


# --- parameters-e: the learner's own run


class OwnModel(Exercise):
    """A model's name (or a `Transformer`), and its parameters with twice the layers."""

    hint = (
        "Everything in the layers doubles, but nothing outside them does.",
        "count_parameters(…) has the parts: attention, mlp and norm are in the "
        "layers, while embedding and head are outside.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Right within a half percent of the count of the deeper model."""
        if not isinstance(answer, tuple) or len(answer) != 2:
            return False, "Give two values: the model's name and your number."
        name, number = answer
        if number is None:
            return NOT_YET
        if isinstance(name, int | float) and isinstance(number, str | Transformer):
            return False, "Give the model first, then your number: (model, number)."
        model = name if isinstance(name, Transformer) else known_model(name)
        total, key = float(count_parameters(model).total), _parameters_with_twice_the_layers(model)
        number = float(quantity("number", read_as("number", number, "parameters")))
        mistakes = {
            2 * total: "You've doubled the whole model, but embedding and head don't double.",
            total: "That's the model as it is. Double its layers.",
            2 * (key - total): "You've only counted the layers. Add the parameters outside them.",
            key - total: "That's only what the new layers add to the old ones.",
        }
        # Where the tables are small, twice the model is nearly the key: the nearest counts.
        nearest = min([key, *mistakes], key=lambda value: abs(number - value))
        if nearest == key and abs(number / key - 1) <= 0.005:
            factor = units.digits(key / total)
            return True, (
                f"Right: {units.count(key)}, {factor}× as many, because the tables don't grow."
            )
        for mistake, cause in mistakes.items():
            if abs(number / mistake - 1) < 0.003:
                return False, cause
        return False, f"too {'high' if number > key else 'low'}. {HINT}"


def _parameters_with_twice_the_layers(model: Transformer) -> float:
    layers = tuple((2 * number, layer) for number, layer in model.layers)
    return float(count_parameters(replace(model, layers=layers)).total)


EXERCISES: dict[str, Exercise] = {
    "parameters-layer": FillIn(
        key=_weights,
        unit=lambda number: f"{units.exact(number)} parameters",
        tolerance=0,
        hint=(
            "An h × 4h matrix contains 4× as many numbers as an h × h matrix.",
            "How many h × h squares are that together, and how many numbers are in a square?",
        ),
        common_mistakes={
            "You've counted attention's four matrices, but the MLP has two more.": lambda: _weights(
                4
            ),
            "You've only counted the MLP's matrices, but attention has four more.": lambda: (
                _weights(8)
            ),
            "The MLP's matrices are 4× wider, h × 4h and 4h × h.": lambda: _weights(6),
            "You've counted all 48 layers, but the question is about one.": lambda: (
                GPT2_XL["num_layers"] * _weights()
            ),
            "You've computed 12 · h. Twelve squares are right, but each contains h · h numbers.": (
                lambda: _weights() // GPT2_XL["hidden_size"]
            ),
            "You've included biases and norms, but the question is about the matrices.": lambda: (
                _weights() + 13 * GPT2_XL["hidden_size"]
            ),
        },
    ),
    "parameters-b": Function(
        key=attention_weights,
        cases=[
            {"hidden_size": 4096, "num_heads": 32, "num_kv_heads": 8, "head_dim": 128},
            {"hidden_size": 2048, "num_heads": 32, "num_kv_heads": 4, "head_dim": 128},
            {"hidden_size": 2048, "num_heads": 8, "num_kv_heads": 1, "head_dim": 256},
            {"hidden_size": 576, "num_heads": 9, "num_kv_heads": 9, "head_dim": 64},
        ],
        hint=(
            "How many columns does the queries' matrix have, and how many do the others have?",
            "Heads times head size can differ from h, so count the four matrices one by one.",
            "Queries are h × (heads · head size), and the output is the reverse. Keys and values "
            "are h × (key-value heads · head size) each.",
        ),
        common_mistakes={
            "That's 4h², as in a GPT, but here keys and values are shared, and heads have their "
            "own size.": lambda h, a, k, d: 4 * h**2,
            "You've used h × h for queries and output, but their width is heads times "
            "head size, which can differ from h.": lambda h, a, k, d: 2 * h**2 + 2 * h * k * d,
            "You've left out the output matrix, which brings the result back.": (
                lambda h, a, k, d: h * d * (a + 2 * k)
            ),
            "You've given every head its own keys and values, but some are shared.": (
                lambda h, a, k, d: 4 * h * a * d
            ),
            "Keys and values are two matrices, and you've counted one.": (
                lambda h, a, k, d: h * d * (2 * a + k)
            ),
            "You've left out the head size, which is how many columns a head has.": (
                lambda h, a, k, d: 2 * h * (a + k)
            ),
        },
    ),
    "parameters-c": Numeric(
        key=_active_parameters,
        asked="parameters",
        unit=units.count,
        hint=(
            "Which parameters does every token use, apart from the experts?",
            "A token uses all 4 billion outside the experts, and part of the 36 billion.",
        ),
        common_mistakes={
            **TENFOLD,
            "key / 1e9": 'Give the number itself, such as 3.2e9 or "3.2B".',
            "P * k / n": "You've used 2/16 of everything, as in the text, but every token also "
            "uses all the parameters outside the experts.",
            "E * k / n": "You've only counted the experts that a token meets. Add the parameters "
            "that every token uses.",
            "P - E": "You've only counted the parameters outside the experts. Add the two "
            "experts that a token meets.",
            "P - E + E / n": "You've used one expert per layer, but a token meets two.",
            "P": "That's the total, but 14 of 16 experts are idle.",
        },
        values={"P": TOTAL, "E": IN_EXPERTS, "n": EXPERTS, "k": EXPERTS_PER_TOKEN},
    ),
    "parameters-d": OwnDesign(),
    "parameters-e": OwnModel(),
}


# --- the guesses

GPT3 = {"num_layers": 96, "hidden_size": 12288, "vocab_size": 50257, "sequence_length": 2048}
GPT2 = {"num_layers": 12, "hidden_size": 768, "vocab_size": 50257, "sequence_length": 1024}


def _table_share(model: dict[str, int]) -> float:
    """The share of a model's parameters, in percent, that its table of tokens has."""
    return float(100 * model["vocab_size"] * model["hidden_size"] / gpt_parameters(**model))


def _why_so_few() -> str:
    wider, deeper = GPT3["hidden_size"] // GPT2["hidden_size"], GPT3["num_layers"] // 12
    return (
        f"In GPT-2 it's {units.digits(_table_share(GPT2), 2)}%. GPT-3 is {wider}× wider, so "
        f"its table grows {wider}×, but each layer grows {wider}², and there are {deeper}× as "
        f"many layers."
    )


def _counts_of_llama() -> tuple[float, float]:
    """What the formula for a GPT finds for Llama 3.1 8B, and what there is."""
    model = architecture("Llama-3.1-8B")
    formula = gpt_parameters(model.num_layers, model.hidden_size, model.vocab_size, 2048)
    return float(formula), float(count_parameters(model).total)


def _verdict_on_llama() -> str:
    """Whether the formula for a GPT is right for Llama 3.1 8B, or which way it is off."""
    formula, exact = _counts_of_llama()
    if abs(formula / exact - 1) < 0.005:
        return "right"
    return "too many" if formula > exact else "too few"


def _how_far_off() -> str:
    formula, exact = _counts_of_llama()
    return f"The formula counts {units.count(formula)} of {units.count(exact)} parameters."


PREDICTIONS: dict[str, Prediction] = {
    "parameters-guess": Prediction(
        truth=lambda: _table_share(GPT3),
        unit=lambda share: f"{units.digits(share, 2)}%",
        why=_why_so_few(),
        asked="%",
    ),
    "parameters-llama": Prediction(
        truth=_verdict_on_llama,
        options={
            "right": "Llama is also a transformer, but the matrices in its layers have other "
            "sizes.",
            "too many": "Shared keys and values do save something, but other parts add more.",
            "too few": "The MLP's third matrix and the separate output head outweigh "
            "what shared keys and values save.",
        },
        why=_how_far_off() + " The text below names each matrix.",
    ),
}
