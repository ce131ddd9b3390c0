"""Exercises of chapter 01: counting parameters."""

from __future__ import annotations

from llmtrain_helpers import units
from llmtrain_helpers.architecture import Transformer
from llmtrain_helpers.checks import Result
from llmtrain_helpers.exercises.common import (
    PERCENT,
    PREFIXES,
    Exercise,
    Function,
    Numeric,
)
from llmtrain_helpers.parameters import ParameterCount, count_parameters, gpt_parameters
from llmtrain_helpers.published import architecture


def _parameters(number: float) -> str:
    return f"{units.exact(number)} parameters"


def _worked_case() -> Result:
    return gpt_parameters(40, 6144, vocab_size=50257, sequence_length=1024)


def _one_layer_of(name: str) -> Result:
    """Parameters that a model has in one layer."""
    model = architecture(name)
    counted = count_parameters(model)
    tables = counted.embedding + counted.head
    final_norm = (2 if model.layer_norm else 1) * model.hidden_size
    return (counted.total - tables - final_norm) // model.num_layers


def _grouped_attention(hidden_size: int, num_heads: int, num_kv_heads: int) -> Result:
    """Attention weights of one Llama layer."""
    model = Transformer.llama(1, hidden_size, num_heads, num_kv_heads, 1, 1, 1)
    return count_parameters(model).attention


def _mixtral() -> ParameterCount:
    return count_parameters(architecture("Mixtral-8x7B"))


EXERCISES: dict[str, Exercise] = {
    "01-a": Numeric(
        key=_worked_case,
        unit=_parameters,
        tolerance=0,
        hint="Check s: it is 1024 here, and it only enters in (V + s)h.",
        slips=PREFIXES
        | {
            gpt_parameters(40, 6144, 50257, 1048)
            / _worked_case(): "this has s = 1048, a "
            "misprint that is copied from page to page. The sequence length is 1024.",
            (_worked_case() + 2 * 6144) / _worked_case(): "this includes the last "
            "LayerNorm, 2h, which the formula leaves out.",
            12 * 40 * 6144**2 / _worked_case(): "this is 12lh² alone: add 13lh for "
            "biases and norms, and (V + s)h for the embeddings.",
        },
    ),
    "01-b": Numeric(
        key=lambda: _one_layer_of("gpt2-xl"),
        unit=_parameters,
        tolerance=0,
        hint="Weights: 4h² in attention, 8h² in the MLP. Biases: 4h and 5h. Norms: 4h.",
        slips=PREFIXES
        | {
            12 * 1600**2 / _one_layer_of("gpt2-xl"): "the weights are right: now add "
            "the biases and the two norms, 13h together.",
        },
    ),
    "01-c": Function(
        key=_grouped_attention,
        cases=[
            {"hidden_size": 4096, "num_heads": 32, "num_kv_heads": 8},
            {"hidden_size": 8192, "num_heads": 64, "num_kv_heads": 8},
            {"hidden_size": 4096, "num_heads": 32, "num_kv_heads": 32},
        ],
        hint="Queries and output are h×h; keys and values are h×(heads·d), with "
        "d = h / num_heads and as many heads as num_kv_heads.",
    ),
    "01-d": Numeric(
        key=lambda: _mixtral().active / _mixtral().total,
        unit=units.percent,
        hint="A token passes through everything but the experts that are not chosen.",
        slips=PERCENT
        | {
            2 / 8 * _mixtral().total / _mixtral().active: "this is 2 of 8 experts, but "
            "attention and embeddings are passed through by every token.",
        },
    ),
}
