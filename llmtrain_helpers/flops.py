"""Chapter 02: how many FLOPs an iteration needs. Goes with notebooks/02_flops.ipynb.

Sources: Narayanan et al. (arXiv 2104.04473), section 5.1, equation 3, for full
recomputation; Korthikanti et al. (arXiv 2205.05198), equations 7 and 8, without it and
with selective recomputation; Chowdhery et al. (arXiv 2204.02311), appendix B, for MFU.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from llmtrain_helpers.checks import (
    Array,
    Count,
    Exact,
    Number,
    Quantity,
    Rate,
    Size,
    anywhere,
    as_sizes,
    broadcast,
    cache_per_model,
    checked,
    given,
    refuse,
)
from llmtrain_helpers.model.layers import Attention, Layer, Matrix, pairs
from llmtrain_helpers.model.transformer import Transformer, of_length, over_layers
from llmtrain_helpers.results import Breakdown, largest

Recompute: TypeAlias = Literal["none", "selective", "full"]
"""What backward recomputes: nothing, the attention core, or every layer."""

EveryRecompute: TypeAlias = Literal["none", "selective", "full", "alternate"]
"""The same and `alternate`, torchtitan's selective option, which computes every other
product of a layer again (`Layer.every_other`)."""

Pairs: TypeAlias = Literal["dense", "causal"]
"""Which pairs of tokens are counted: all s², or the s(s + 1)/2 that a token may see."""

RECOMPUTE: list[Recompute] = [*get_args(Recompute)]
EVERY_RECOMPUTE: list[EveryRecompute] = [*get_args(EveryRecompute)]
ATTENTION: list[Pairs] = [*get_args(Pairs)]


@checked
def gpt_flops(
    num_layers: Count[Exact | Array],
    hidden_size: Count[Exact | Array],
    vocab_size: Count[Exact | Array],
    sequence_length: Count[Exact | Array],
    batch_size: Count[Exact | Array],
    recompute: Recompute,
) -> Exact | Array:
    """FLOPs of one iteration of a GPT, forward and backward, by the published formulas.

    full:      F = 96Bslh²(1 + s/(6h) + V/(16lh)) = 96Bslh² + 16Bs²lh + 6BshV
    none:      F = 72Bslh²(1 + s/(6h) + V/(12lh)) = 72Bslh² + 12Bs²lh + 6BshV
    selective: none + 4Bs²lh

    Takes l layers, hidden size h, a vocabulary of V, s tokens a sequence, B sequences a
    batch: whole numbers, or arrays that broadcast. `recompute` is "none", "selective"
    or "full". Returns FLOP: exact with ints. A multiply-add is 2; only matrix products
    are counted, attention over all s² pairs. Raises ValueError for anything else.

    Source: arXiv 2104.04473 equation 3; arXiv 2205.05198 equation 7.

    >>> gpt_flops(40, 6144, 50257, 1024, batch_size=512, recompute="full")
    79080640808484864
    """
    l, h, V, s, B = num_layers, hidden_size, vocab_size, sequence_length, batch_size
    weights, scores = {"none": (72, 12), "selective": (72, 16), "full": (96, 16)}[recompute]
    return weights * B * s * l * h**2 + scores * B * s**2 * l * h + 6 * B * s * h * V


@dataclass(frozen=True)
class FlopCount(Breakdown[Size]):
    """FLOPs of an iteration part by part, in FLOP.

    `projections` to queries, keys, values and back; `scores`, attention's two products
    of tokens with tokens; `mlp`, with the routers of a mixture of experts; `head`, the
    logits; each forward and backward. `recomputed` counts what backward does again.
    """

    projections: Size
    scores: Size
    mlp: Size
    head: Size
    recomputed: Size

    @property
    def model(self) -> Size:
        """FLOPs that the model itself needs, without recomputation: the F of MFU."""
        return self.total - self.recomputed


@cache_per_model
@checked
def count_flops(
    model: Transformer,
    batch_size: Count[Number],
    recompute: EveryRecompute,
    attention: Pairs = "dense",
    sequence_length: Count[Number] | None = None,
) -> FlopCount:
    """FLOPs of one iteration of any `Transformer`, forward and backward, part by part.

    A matrix product with a weight costs 2 FLOPs for each weight and token; the scores
    2·2·a·d for each pair of tokens and layer; backward twice what forward costs.
    Only the chosen experts are counted, and the router. "alternate" computes every other
    matrix product of a layer again, but no scores.

    `attention` counts "dense" (all s² pairs) or "causal" (s(s + 1)/2, the pairs that a
    token may see). `sequence_length` replaces the model's.
    Returns a `FlopCount` in FLOP, of exact ints (float64 for arrays). Raises ValueError
    for a sequence longer than the position table, and whatever `gpt_flops` refuses.

    Source: as `gpt_flops`, whose count it equals on GPT shapes.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> count_flops(llama, batch_size=1, recompute="none").total
    474422087516160
    """
    model = of_length(model, sequence_length)
    broadcast(batch_size=batch_size, **model.numbers())
    h, s = model.hidden_size, model.sequence_length
    [B] = as_sizes(batch_size)
    tokens = B * s

    def scores(layer: Layer) -> Size:
        return sum(x.products() * pairs(s, attention, x) for x in layer.mixers)

    def alternate(layer: Layer) -> Size:
        _, repeated = layer.every_other(h)
        return sum(matrix.active * matrix.weights for matrix in repeated)

    forward = {
        "projections": 2
        * tokens
        * over_layers(model, lambda x: sum(m.active_weights(h) for m in x.mixers)),
        "scores": 2 * B * over_layers(model, scores),
        "mlp": 2 * tokens * over_layers(model, lambda x: x.mlp.active_weights(h) if x.mlp else 0),
    }
    recomputed = {
        "none": 0,
        "selective": forward["scores"],
        "full": sum(forward.values()),
        "alternate": 2 * tokens * over_layers(model, alternate),
    }[recompute]
    # A narrower embedding has two more matrices, to the hidden size and back.
    V, e = model.vocab_size, model.embedding_size
    outer = V * e + 2 * e * h if given(e) else h * V
    layers = {name: 3 * flops for name, flops in forward.items()}  # backward is two forwards
    return FlopCount(**layers, head=6 * tokens * outer, recomputed=recomputed)


@checked
def without_windows(model: Transformer) -> Transformer:
    """Return the same model without windows: each token looks back to the start.

    Use it to count what the windows save. Raises ValueError if it isn't a model.

    >>> from llmtrain_helpers.model import Attention, Layer, Mlp
    >>> near = Layer(Attention(32, 8, 128, window=128), Mlp(14336))
    >>> model = Transformer(hidden_size=4096, vocab_size=32000, sequence_length=4096,
    ...     layers=[(16, near), (16, Layer(Attention(32, 8, 128), Mlp(14336)))])
    >>> {layer.mixer.window for _, layer in without_windows(model).layers}
    {0}
    """
    layers = []
    for number, layer in model.layers:
        mixer = layer.mixer
        if isinstance(mixer, Attention) and mixer.window:
            layer = replace(layer, mixer=replace(mixer, window=0))
        layers.append((number, layer))
    return replace(model, layers=tuple(layers))


@cache_per_model
@checked
def expert_flops(model: Transformer, batch_size: Count[Number], recompute: EveryRecompute) -> Size:
    """FLOPs of the experts in an iteration: forward, backward and recomputation.

    Counts only the chosen experts, without routers and shared ones. On a GPU whose experts
    get more tokens than average, this grows. Takes the arguments of `count_flops`.

    >>> from llmtrain_helpers.model import Experts, Layer, Mlp
    >>> layer = Layer(None, Experts(Mlp(14336), num_experts=8, experts_per_token=2))
    >>> mixture = Transformer(hidden_size=4096, vocab_size=32000, sequence_length=4096,
    ...     layers=[(32, layer)])
    >>> expert_flops(mixture, 1, "none") == 6 * 4096 * 32 * 2 * 3 * 4096 * 14336
    True
    """
    broadcast(batch_size=batch_size, **model.numbers())
    [B] = as_sizes(batch_size)
    tokens = B * model.sequence_length

    def weights(matrices: Iterable[Matrix]) -> Size:
        """Count the weights of the experts' matrices that a token is multiplied by."""
        return sum(m.active * m.weights for m in matrices if m.is_chosen())

    def of(layer: Layer) -> Size:
        matrices = layer.matrices(model.hidden_size)
        _, every_other = layer.every_other(model.hidden_size)
        repeated = {"full": matrices, "alternate": every_other}.get(recompute, ())
        return 3 * weights(matrices) + weights(repeated)  # backward is two forwards

    return 2 * tokens * over_layers(model, of)


@checked
def achieved_flops_per_gpu(
    flops: Quantity[float | Array], seconds: Quantity[float | Array], num_gpus: Count[float | Array]
) -> float | Array:
    """The rate that each GPU achieves, in FLOP/s.

    X = F / (t·n), with F the FLOPs of an iteration, t its seconds, n the GPUs. If F
    counts recomputation, so does X. Numbers or arrays; ValueError unless positive.

    Source: arXiv 2104.04473 section 5.1.

    >>> F = gpt_flops(40, 6144, 50257, 1024, batch_size=512, recompute="full")
    >>> round(achieved_flops_per_gpu(F, seconds=32.09, num_gpus=16) / 1e12, 2)
    154.02
    """
    return flops / (seconds * num_gpus)


@checked
def utilization(
    flops_per_gpu: Rate[float | Array], peak_flops: Rate[float | Array]
) -> float | Array:
    """The share of the peak that is achieved: MFU or HFU, between 0 and 1.

    X / peak. Model FLOPs utilization (MFU) if X leaves recomputation out, hardware
    FLOPs utilization (HFU) if X counts it. Both in FLOP/s, the peak dense. A rate below 10⁹
    FLOP/s (probably in tera) or a share above 1 raises ValueError.

    Source: arXiv 2204.02311 appendix B (MFU); arXiv 2205.05198 section 6.3 (both).

    >>> round(utilization(154.02e12, peak_flops=312e12), 4)
    0.4937
    """
    share = flops_per_gpu / peak_flops
    if anywhere(share > 1 + 1e-9):  # what rounding may add
        problem = (
            "is more than the whole peak. Usual causes: the peak of another chip or format, "
            "a sequence length too long, recomputation counted that was not done, wrong "
            "seconds or GPU count"
        )
        refuse("utilization", float(f"{largest(share):.7g}"), problem)
    return share
