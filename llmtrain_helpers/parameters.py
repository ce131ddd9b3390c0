"""Chapter 01: how many parameters a model has. Goes with notebooks/01_parameters.ipynb.

Source of the formula: Narayanan et al., "Efficient Large-Scale Language Model Training
on GPU Clusters Using Megatron-LM" (arXiv 2104.04473), section 5.1, equation 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llmtrain_helpers.checks import Array, Count, Exact, Size, cache_per_model, checked, given
from llmtrain_helpers.model.layers import Layer
from llmtrain_helpers.model.transformer import Transformer, over_layers
from llmtrain_helpers.results import Breakdown


@checked
def gpt_parameters(
    num_layers: Count[Exact | Array],
    hidden_size: Count[Exact | Array],
    vocab_size: Count[Exact | Array],
    sequence_length: Count[Exact | Array],
) -> Exact | Array:
    """Parameters of a GPT by the published formula.

    P = 12lh²(1 + 13/(12h) + (V + s)/(12lh)) = 12lh² + 13lh + (V + s)h

    Takes l layers, hidden size h, a vocabulary of V and s positions: whole numbers, or
    arrays that broadcast. Returns a count: exact with ints, float64 with arrays. Leaves
    out the final LayerNorm (2h). Raises ValueError unless all are positive and whole.

    Source: arXiv 2104.04473, equation 2.

    >>> gpt_parameters(96, 12288, 51200, 2048)  # GPT-3, with Megatron's vocabulary
    174615822336
    """
    l, h, V, s = num_layers, hidden_size, vocab_size, sequence_length
    return 12 * l * h**2 + 13 * l * h + (V + s) * h


@dataclass(frozen=True)
class ParameterCount(Breakdown[Size]):
    """Parameters part by part; `active` counts those that one token uses.

    `prediction` counts layers that predict further tokens, which aren't in any sum.
    `norm` includes the norms on queries and keys, and `mlp` the routers of a mixture of
    experts; a tied `head` is 0, because its matrix is the embedding.
    """

    _not_parts = ("active", "prediction")

    embedding: Size
    attention: Size
    mlp: Size
    norm: Size
    head: Size
    active: Size
    prediction: Size = 0


@cache_per_model
@checked
def count_parameters(model: Transformer) -> ParameterCount:
    """Count every parameter of a model, part by part.

    A layer has, with head size d, a query heads and k key-value heads:
    attention 2·h·a·d + 2·h·k·d, MLP 2·h·f (3·h·f when gated; times the number of
    experts, plus h for each as router), norms 2·h (4·h with biases), and its biases.

    Takes a `Transformer`; returns a `ParameterCount` of exact ints (arrays of float64
    for a shape of arrays). Source: compared with the exact totals of real models
    in data/architectures.csv.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> count_parameters(llama).total  # Llama-3 8B, as published
    8030261248
    """
    h = model.hidden_size
    attention = over_layers(model, lambda layer: sum(x.parameters(h) for x in layer.mixers))
    mlp = over_layers(model, lambda layer: layer.mlp.parameters(h) if layer.mlp else 0)
    norm = over_layers(model, lambda layer: layer.norm_parameters(h))
    norm = norm + norm_parameters(model) + model.embedding_norm * h
    embedding = embedding_parameters(model)
    # A tied head is the embedding's matrix; its bias, if it has one, is its own.
    head = (not model.tied_embeddings) * head_parameters(model)
    head = head + model.head_bias * model.vocab_size
    # A token only uses the chosen experts.
    idle = over_layers(model, lambda layer: layer.mlp.idle(h) if layer.mlp else 0)
    return ParameterCount(
        embedding=embedding,
        attention=attention,
        mlp=mlp,
        norm=norm,
        head=head,
        active=embedding + attention + mlp + norm + head - idle,
        prediction=prediction_parameters(model),
    )


@checked
def expert_parameters(model: Transformer) -> Size:
    """Count the parameters of all routed experts, which expert parallelism splits.

    >>> expert_parameters(Transformer.llama(2, 64, 4, 4, 32, 99, 8, num_experts=4,
    ...     experts_per_token=1))
    49152
    """
    h = model.hidden_size
    return over_layers(model, lambda layer: layer.expert_parameters(h))


@checked
def prediction_parameters(model: Transformer) -> Size:
    """Count the layers that predict tokens beyond the next (MTP), which no total includes.

    Each is a layer like the last one, with a 2h × h matrix that joins its two inputs and a
    norm for each input and for the output. Embedding and head are the model's own.

    Source: DeepSeek-V3 (arXiv 2412.19437), section 2.2.

    >>> prediction_parameters(Transformer.llama(2, 64, 4, 4, 32, 99, 8))
    0
    """
    h, (_, layer) = model.hidden_size, model.layers[-1]
    joined = 2 * h * h + 3 * layer.norm_size * h
    return model.prediction_layers * (layer.parameters(h) + joined)


@checked
def norm_parameters(model: Transformer) -> Size:
    """Count the norm after the layers: it scales and shifts (2h), or just scales (h)."""
    return model.final_norm * model.hidden_size


@checked
def embedding_parameters(model: Transformer) -> Size:
    """Count the token and position tables.

    An embedding narrower than the hidden size also has matrices to h and back.
    """
    h, V, e = model.hidden_size, model.vocab_size, model.embedding_size
    tables = (V + model.num_positions) * h
    if given(e):
        tables = V * e + model.num_positions * h + 2 * e * h
    return tables + model.more


@checked
def head_parameters(model: Transformer) -> Size:
    """Count the output matrix, tied or not; it's as wide as the embedding."""
    h, e = model.hidden_size, model.embedding_size
    return model.vocab_size * (e if given(e) else h)


def parameters_per_gpu(
    model: Transformer,
    tensor_parallel: Size,
    expert_parallel: Size = 1,
    layers: Iterable[tuple[Size, Layer]] | None = None,
    embedding: Size = True,
    head: Size = True,
    expert_tensor_parallel: Size | None = None,
) -> Size:
    """Count the parameters on each of t GPUs: a t-th of the matrices, and norms whole.

    Each GPU has an e-th of the experts, and a t-th of each (or as `expert_tensor_parallel`
    says). `layers` are those of a pipeline stage, by default all; `embedding` and `head` say
    which ends it has. A stage with only the head has its own copy of a matrix that's tied to
    the embedding.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> parameters_per_gpu(llama, 1), parameters_per_gpu(llama, 8)
    (8030261248, 1004015616)
    """
    h, V, t = model.hidden_size, model.vocab_size, tensor_parallel
    norms = head * norm_parameters(model) + embedding * model.embedding_norm * h
    matrices, experts = embedding * embedding_parameters(model), 0
    matrices = matrices + head * (1 - model.tied_embeddings * embedding) * head_parameters(model)
    matrices = matrices + head * model.head_bias * V
    for how_many, layer in model.layers if layers is None else layers:
        of_norms, of_experts = layer.norm_parameters(h), layer.expert_parameters(h)
        norms = norms + how_many * of_norms
        experts = experts + how_many * of_experts
        matrices = matrices + how_many * (layer.parameters(h) - of_norms - of_experts)
    whole, x = -(-matrices // t) + norms, expert_tensor_parallel
    ways = expert_parallel * (t if x is None else x)
    return whole - (-experts // ways) if model.num_experts else whole
