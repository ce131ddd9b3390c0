"""Other ways to spend memory: LoRA, smaller optimizers, states kept on the host.

Beside notebooks/10_budget.ipynb. Sources: Hu et al. (arXiv 2106.09685) for LoRA,
Dettmers et al. (arXiv 2110.02861) for 8-bit Adam, Shazeer and Stern (arXiv 1804.04235)
for Adafactor, Jordan et al. (kellerjordan.github.io/posts/muon) for Muon, Ren et al.
(arXiv 2101.06840) for what is kept on the host.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from llmtrain_helpers.activations import count_activations
from llmtrain_helpers.checks import (
    Number,
    Result,
    broadcast,
    choice,
    count,
    counts,
    instance,
    quantity,
    refuse,
)
from llmtrain_helpers.model.layers import Attention, Layer, Mlp
from llmtrain_helpers.model.transformer import Transformer, of_length, over_layers
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.precision import Recipe, known_recipe
from llmtrain_helpers.results import Breakdown

OPTIMIZERS = {
    recipe.name: recipe
    for recipe in (
        Recipe("adam", 2, 2, 0, 4, 8),
        Recipe("adam_8bit", 2, 2, 0, 4, 2 + 2 * 4 / 2048),
        Recipe("adafactor", 2, 2, 0, 4, 0),  # a sum a row and a column: some h of h²
        Recipe("muon", 2, 2, 0, 4, 4),
    )
}
"""Optimizers as recipes for `plan_run`: bytes of weights, gradients, main gradients,
main weights and states. Adam has two states a parameter; in 8 bits a byte each, and 4
bytes for every 2,048; Adafactor without momentum only sums over rows and columns; Muon
one momentum (embedding and head, which stay with Adam, have two)."""

MATRICES = ("query", "key", "value", "output", "mlp")
"""The matrices that LoRA can adapt."""


def lora_parameters(
    model: Transformer, rank: Number = 8, targets: Collection[str] = ("query", "value")
) -> Result:
    """Parameters that LoRA trains: r(m + n) for each adapted matrix of m by n.

    `targets` are out of `MATRICES`. ValueError for an unknown one, for none, and for
    layers that are no plain attention and MLP.

    Source: arXiv 2106.09685, section 4; litgpt prints the doctest's number.

    >>> llama = Transformer.llama(32, 4096, 32, 32, 11008, 32000, sequence_length=1304)
    >>> lora_parameters(llama)
    4194304
    """
    instance("model", model, Transformer)
    r, h = count("rank", rank), model.hidden_size
    adapted = _targets(targets)
    broadcast(rank=r, **model.numbers())

    def rows_and_columns(layer: Layer) -> Result:
        """The sum of both sides of each adapted matrix of a layer."""
        mixer, mlp = _attention_and_mlp(layer)
        sides: Result = 0
        for name in adapted:
            matrices = mlp.matrices(h) if name == "mlp" else (mixer.matrix(name, h),)
            sides = sides + sum(m.rows + m.columns for m in matrices)
        return sides

    return r * over_layers(model, rows_and_columns)


def _targets(targets: object) -> list[str]:
    if not isinstance(targets, (list, tuple, set, frozenset)):
        refuse("targets", targets, f"is no list of matrices out of {', '.join(MATRICES)}")
    names = [choice("targets", name, MATRICES) for name in targets]
    return names or refuse("targets", targets, "is empty")


def _attention_and_mlp(layer: Layer) -> tuple[Attention, Mlp]:
    """Both parts of a plain layer; a layer of other parts is refused."""
    mixer, mlp = layer.mixer, layer.mlp
    if not isinstance(mixer, Attention) or not isinstance(mlp, Mlp) or layer.beside:
        refuse("model", layer, "has layers other than attention with a plain MLP")
    return mixer, mlp


@dataclass(frozen=True)
class LoraMemory(Breakdown):
    """Bytes at the peak of a step of fine-tuning with LoRA, part by part.

    Frozen weights; adapters with all their states; `activations`, what backward needs;
    `logits`, the two tensors of them at the loss.
    """

    weights: Result
    adapters: Result
    activations: Result
    logits: Result


def lora_memory(
    model: Transformer,
    micro_batch_size: Number,
    rank: Number = 8,
    targets: Collection[str] = ("query", "value"),
    *,
    weight_bytes: Number = 2,
    recipe: str | Recipe = "pure_bf16",
    sequence_length: Number | None = None,
) -> LoraMemory:
    """The bytes of fine-tuning with LoRA on one GPU, part by part.

    Frozen weights have neither gradients nor states, and a frozen matrix does not need
    its input for backward: of what full training keeps, a layer drops 2sbh + 2sbf where
    the MLP is frozen, and 2sbh where queries, keys and values are. The rest stays,
    since the gradient passes through every layer. Embedding and head stay in 16 bits
    where `weight_bytes` is less (0.5625 for 4-bit NF4 with a 32-bit factor for every
    64). Measured peaks in 16 bits were 3 to 17 % more (litgpt).

    >>> llama = Transformer.llama(32, 4096, 32, 32, 11008, 32000, sequence_length=1304)
    >>> peak = lora_memory(llama, micro_batch_size=1)
    >>> f"{peak.total / 1e9:.1f} GB, measured 21.3"
    '19.2 GB, measured 21.3'
    """
    model = of_length(model, sequence_length)
    adapted, bytes_each = _targets(targets), known_recipe(recipe).total
    b, w = count("micro_batch_size", micro_batch_size), quantity("weight_bytes", weight_bytes)
    broadcast(micro_batch_size=b, weight_bytes=w, rank=count("rank", rank), **model.numbers())
    h, tokens = model.hidden_size, b * model.sequence_length
    reads_frozen = not {"query", "key", "value"} & {*adapted}

    def dropped(layer: Layer) -> Result:
        """Values a token that only frozen matrices would have needed for backward."""
        _, mlp = _attention_and_mlp(layer)
        return reads_frozen * h + ("mlp" not in adapted) * (h + mlp.intermediate_size)

    P = count_parameters(model)
    outer = P.embedding + P.head
    full = count_activations(model, b)
    return LoraMemory(
        weights=w * (P.total - outer) + 2 * outer,
        adapters=bytes_each * lora_parameters(model, rank, adapted),
        activations=full.layers + full.head - 2 * tokens * over_layers(model, dropped),
        logits=8 * tokens * model.vocab_size,
    )


def muon_overhead(hidden_size: Number, batch_tokens: Number, iterations: Number = 5) -> Result:
    """The FLOPs that Muon adds, as a share of a step's: at most T·m/B.

    Each of T steps of Newton and Schulz multiplies the momentum of a matrix with
    itself; m is the smaller side, B the tokens in a step.

    Source: Jordan et al., Muon, kellerjordan.github.io/posts/muon, runtime analysis.

    >>> round(muon_overhead(16384, 16e6), 4)
    0.0051
    """
    m, B, T = counts(hidden_size=hidden_size, batch_tokens=batch_tokens, iterations=iterations)
    return T * m / B


def offload_seconds(parameters: Number, host_bandwidth: Number, num_gpus: Number = 1) -> Result:
    """Seconds a step to send gradients to the host and weights back: 4P/(n·b).

    The host keeps main weights and Adam's states and does the update; each of n GPUs
    sends its n-th of the 16-bit gradients, and gets as much of the weights. The
    update's own time comes on top, and part of both hides behind the backward pass.

    Source: Ren et al., ZeRO-Offload, arXiv 2101.06840, sections 3 and 4.

    >>> round(offload_seconds(8e9, host_bandwidth=25e9), 2)
    1.28
    """
    P, n = counts(parameters=parameters, num_gpus=num_gpus)
    b = quantity("host_bandwidth", host_bandwidth)
    broadcast(parameters=P, host_bandwidth=b, num_gpus=n)
    return 4 * P / (n * b)
