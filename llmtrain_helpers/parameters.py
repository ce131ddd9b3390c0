"""Chapter 01: how many parameters a model has. Beside notebooks/01_parameters.ipynb.

Source of the formula: Narayanan et al., "Efficient Large-Scale Language Model Training
on GPU Clusters Using Megatron-LM" (arXiv 2104.04473), section 5.1, equation 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from llmtrain_helpers.architecture import Breakdown, Transformer
from llmtrain_helpers.checks import Number, Result, counts, instance


def gpt_parameters(
    num_layers: Number,
    hidden_size: Number,
    vocab_size: Number,
    sequence_length: Number,
) -> Result:
    """Parameters of a GPT by the published formula.

    P = 12lh²(1 + 13/(12h) + (V + s)/(12lh)) = 12lh² + 13lh + (V + s)h

    Takes l layers, hidden size h, a vocabulary of V and s positions: whole numbers, or
    arrays that broadcast. Returns a count: exact with ints, float64 with arrays. Leaves
    out the final LayerNorm (2h). Raises ValueError unless all are positive and whole.

    Source: arXiv 2104.04473, equation 2.

    >>> gpt_parameters(96, 12288, 51200, 2048)  # GPT-3, with Megatron's vocabulary
    174615822336
    """
    l, h, V, s = counts(
        num_layers=num_layers,
        hidden_size=hidden_size,
        vocab_size=vocab_size,
        sequence_length=sequence_length,
    )
    return 12 * l * h**2 + 13 * l * h + (V + s) * h


@dataclass(frozen=True)
class ParameterCount(Breakdown):
    """Parameters part by part; `active` is what one token passes through.

    `norm` holds all layer norms, those on queries and keys too; `mlp` holds the routers
    of a mixture of experts; a tied `head` is 0, for its matrix is the embedding.
    """

    _beside = ("active",)

    embedding: Result
    attention: Result
    mlp: Result
    norm: Result
    head: Result
    active: Result


def count_parameters(model: Transformer) -> ParameterCount:
    """Every parameter of a model, part by part.

    A layer has, with head size d, a query heads and k key-value heads:
    attention 2·h·a·d + 2·h·k·d, MLP 2·h·f (3·h·f when gated; times the number of
    experts, and h for each as router), norms 2·h (4·h with biases), and its biases.

    Takes a `Transformer`; returns a `ParameterCount` of exact ints (arrays of float64
    for a shape of arrays). Source: held against the exact totals of real models in
    data/architectures.csv.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> count_parameters(llama).total  # Llama-3 8B, as published
    8030261248
    """
    instance("model", model, Transformer)
    l, h, V = model.num_layers, model.hidden_size, model.vocab_size
    experts = model.num_experts
    mlp = _mlp(model)
    routers = h * experts
    attention, mlps, norm = (
        _attention(model),
        mlp * max(experts, 1) + routers,
        _norms(model),
    )
    embedding = (V + model.num_positions) * h
    head = 0 if model.tied_embeddings else V * h
    final_norm = norm_parameters(model)
    total = embedding + l * (attention + mlps + norm) + final_norm + head
    idle = l * mlp * (experts - model.experts_per_token)
    return ParameterCount(
        embedding=embedding,
        attention=l * attention,
        mlp=l * mlps,
        norm=l * norm + final_norm,
        head=head,
        active=total - idle,
    )


def _attention(model: Transformer) -> Result:
    """One layer's projections to queries, keys and values, and back."""
    h, d = model.hidden_size, model.head_dim
    queries, keys = model.num_heads * d, model.num_kv_heads * d
    weights = 2 * h * queries + 2 * h * keys
    return weights + model.qkv_bias * (queries + 2 * keys) + model.bias * h


def _mlp(model: Transformer) -> Result:
    """One layer's MLP, or one of its experts."""
    h, f = model.hidden_size, model.intermediate_size
    return (3 if model.gated_mlp else 2) * h * f + model.bias * (f + h)


def _norms(model: Transformer) -> Result:
    """One layer's norms: before attention, before the MLP, and on queries and keys."""
    return 2 * norm_parameters(model) + model.qk_norm * 2 * model.head_dim


def norm_parameters(model: Transformer) -> Result:
    """A LayerNorm scales and shifts (2h); an RMSNorm only scales (h)."""
    return (2 if model.layer_norm else 1) * model.hidden_size
