"""Turn the values of a `config.json` into a stack of layers, using its family's traits.

Shared by all chapters, through `configs`, which reads and checks a file.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from llmtrain_helpers.checks import given, refuse
from llmtrain_helpers.model.huggingface.families import Family
from llmtrain_helpers.model.huggingface.rules import Values, layer_count
from llmtrain_helpers.model.layers import (
    Attention,
    Experts,
    LatentAttention,
    Layer,
    Mixer,
    Mlp,
    Stack,
)

ATTENTION = ("full_attention", "sliding_attention", "chunked_attention")
"""Kinds of layers that only differ in where they look, not in their matrices."""


def arguments(x: Values, family: Family) -> dict[str, object]:
    """Return the arguments of `Transformer` from the file's own terms."""
    rows, longest = x.get("num_positions", 0), x.get("sequence_length", 2048)
    if family.positions is not None:
        rows = longest + family.positions
    final_norm = family.final_norm
    if callable(final_norm):
        final_norm = final_norm(x)
    return {
        "layers": _layers(x, family),
        "hidden_size": x["hidden_size"],
        "vocab_size": x["vocab_size"],
        "sequence_length": x.get("num_positions", longest),
        "num_positions": rows,
        "tied_embeddings": x["tied_embeddings"],
        "final_norm": family.norm_size if final_norm is None else final_norm,
        "embedding_norm": family.embedding_norm,
        "embedding_size": family.embedding_size(x) if family.embedding_size else 0,
        "head_bias": "h" in _biases(x, family),
        "more": family.more(x) if family.more else 0,
        "prediction_layers": x.get("prediction_layers") or 0,
    }


def _biases(x: Values, family: Family) -> str:
    """Return the biases, by the letters of `Family`."""
    switched = (letters for key, letters in family.switches.items() if x[key])
    return family.bias + "".join(switched)


def _layers(x: Values, family: Family) -> Stack:
    """Make the stack: one kind, or runs of several kinds."""
    if family.stack:
        return family.stack(x, _biases(x, family))
    kinds, sparse = _kinds(x, family), _sparse(x, family)
    if isinstance(kinds, str) and isinstance(sparse, bool):
        return ((x["num_layers"], _layer(kinds, sparse, x, family)),)
    l = layer_count(x)
    kinds = [kinds] * l if isinstance(kinds, str) else kinds
    sparse = [sparse] * l if isinstance(sparse, bool) else sparse
    pairs = [*zip(kinds, sparse, strict=True)]
    layers = {pair: _layer(*pair, x, family) for pair in {*pairs}}
    return tuple((len([*run]), layers[pair]) for pair, run in groupby(pairs))


def _kinds(x: Values, family: Family) -> Any:
    """The kind of mixer of all layers, or of each."""
    if not x.get("layer_types"):
        return family.kinds(x) if callable(family.kinds) else family.kinds
    older = {"attention": "full_attention", "mamba": "linear_attention"}
    kinds = [older.get(kind, kind) for kind in x["layer_types"]]
    l = layer_count(x)
    choices = {*family.mixers, *family.attention_kinds}
    if not all(kind in choices for kind in kinds):
        refuse("layer_types", kinds, f"doesn't fit this shape: only {ATTENTION} do")
    if len(kinds) != l and family.any_kinds:
        return "full_attention"
    if len(kinds) != l:
        refuse("layer_types", kinds, f"are {len(kinds)} kinds for {l} layers")
    return kinds


def _sparse(x: Values, family: Family) -> Any:
    """Whether all layers have experts, or which of them."""
    if not x.get("num_experts"):
        return False
    if x.get("mlp_layer_types"):
        kinds, l = x["mlp_layer_types"], layer_count(x)
        if len(kinds) != l or not {*kinds} <= {"dense", "sparse"}:
            refuse("mlp_layer_types", kinds, f"aren't {l} words, each 'dense' or 'sparse'")
        return [kind == "sparse" for kind in kinds]
    sparse = family.sparse(x) if family.sparse else True
    return sparse if isinstance(sparse, bool) else [bool(layer) for layer in sparse]


def _layer(kind: str, sparse: bool, x: Values, family: Family) -> Layer:
    """A layer of the stack: a mixer of this kind, and experts or an MLP."""
    biases = _biases(x, family)
    make = family.mixers.get(kind)
    mixer = make(x) if make else _attention(kind, x, family, biases)
    mlp = _experts(x, family, biases) if sparse else _mlp(x, family, biases)
    norms = family.norms(x, sparse) if callable(family.norms) else family.norms
    parallel = x[family.parallel] if isinstance(family.parallel, str) else family.parallel
    return Layer(mixer, mlp, norms, family.norm_size, parallel)


def _attention(kind: str, x: Values, family: Family, biases: str) -> Mixer:
    """Make attention, plain or latent, with the window of this kind of layer."""
    if "kv_rank" in x:
        return LatentAttention(
            x["num_heads"],
            x.get("q_rank") or 0,
            x["kv_rank"],
            x["plain_dim"],
            x["rotary_dim"],
            x["value_dim"],
            bias="a" in biases,
            gate=family.gate,
            window=_window(kind, x),
        )
    d, normed = x.get("head_dim"), not family.qk_norm_if or x[family.qk_norm_if]
    return Attention(
        x["num_heads"],
        x.get("num_kv_heads", x["num_heads"]),
        x["hidden_size"] // x["num_heads"] if d is None else d,
        x.get("value_dim") or 0,
        biases="".join(letter for letter in "qkvo" if letter in biases),
        qk_norm=family.qk_norm if normed else "",
        qk_norm_size=family.qk_norm_size,
        gate=family.gate,
        sinks=family.sinks,
        out_norm=family.inner_norms,
        twice=family.differential,
        more=family.mixer_more(x) if family.mixer_more else 0,
        window=_window(kind, x),
        chunked=kind == "chunked_attention",
    )


def _window(kind: str, x: Values) -> Any:
    """The window of this kind of layer; 0: to the start."""
    key = {"sliding_attention": "window", "chunked_attention": "chunk"}.get(kind, "")
    return x.get(key) or 0


def _mlp(x: Values, family: Family, biases: str) -> Mlp | None:
    if not family.mlp:
        return None
    f = family.dense_size(x) if family.dense_size else x["intermediate_size"]
    return Mlp(f, family.gated, "m" in biases, family.inner_norms, family.mlp_more)


def _experts(x: Values, family: Family, biases: str) -> Experts:
    f = x.get("expert_size") or x["intermediate_size"]
    # Some files have the number of shared experts, others their total size.
    times = 1 if family.always_shared else x.get("shared_experts") or 0
    shared = x.get("shared_size", times * f if times else 0)
    return Experts(
        Mlp(f, family.gated, "e" in biases),
        x["num_experts"],
        x["experts_per_token"],
        Mlp(shared, family.gated, "s" in biases) if given(shared) else None,
        family.shared_gate,
        "r" in biases,
        family.score_correction * x["num_experts"],
    )
