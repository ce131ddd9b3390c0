"""From what a `config.json` says to a stack of layers, by its family's row of traits.

Shared by all chapters, through `configs`, which reads a file and checks what it says.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from llmtrain_helpers.checks import at_most, is_array, refuse, single
from llmtrain_helpers.model.huggingface.families import Family
from llmtrain_helpers.model.huggingface.rules import Values
from llmtrain_helpers.model.layers import Attention, Experts, LatentAttention, Layer, Mixer, Mlp

ATTENTION = ("full_attention", "sliding_attention", "chunked_attention")
"""Kinds of layers that differ in where they look, and not in their matrices."""


MOST_LAYERS = 100_000
"""Of a stack of several kinds: no model has more."""


def arguments(x: Values, family: Family) -> dict[str, Any]:
    """The arguments of `Transformer`, from what the file says in its own terms."""
    rows, longest = x.get("num_positions", 0), x.get("sequence_length", 2048)
    if family.positions is not None:
        rows = longest + family.positions
    letters = _letters(x, family)
    return {
        "layers": _layers(x, family),
        "hidden_size": x["hidden_size"],
        "vocab_size": x["vocab_size"],
        "sequence_length": x.get("num_positions", longest),
        "num_positions": rows,
        "tied_embeddings": x["tied_embeddings"],
        "final_norm": _final_norm(x, family),
        "embedding_norm": family.embedding_norm,
        "embedding_size": family.narrow(x) if family.narrow else 0,
        "head_bias": "h" in letters,
        "more": family.more(x) if family.more else 0,
        "prediction_layers": x.get("prediction_layers") or 0,
    }


def _final_norm(x: Values, family: Family) -> int:
    said = family.final_norm
    if callable(said):
        return said(x)
    return family.norm_size if said is None else said


def _letters(x: Values, family: Family) -> str:
    """Which biases there are: q, k, v, o; m of the MLP, e of experts, s of the shared
    one, r of the router, h of the head."""
    switched = (letters for key, letters in family.switches.items() if x[key])
    return family.bias + "".join(switched)


def _layers(x: Values, family: Family) -> tuple[tuple[Any, Layer], ...]:
    """The stack: one kind, or a run of each kind after the other."""
    if family.stack:
        return family.stack(x, _letters(x, family))
    kinds, sparse = _kinds(x, family), _sparse(x, family)
    if isinstance(kinds, str) and isinstance(sparse, bool):
        return ((x["num_layers"], _layer(kinds, sparse, x, family)),)
    l = _listed(x)
    kinds = [kinds] * l if isinstance(kinds, str) else kinds
    sparse = [sparse] * l if isinstance(sparse, bool) else sparse
    made = {pair: _layer(*pair, x, family) for pair in {*zip(kinds, sparse, strict=True)}}
    runs = groupby(zip(kinds, sparse, strict=True))
    return tuple((len([*run]), made[pair]) for pair, run in runs)


def _listed(x: Values) -> int:
    """How many layers there are, where each is looked at."""
    l = single("num_hidden_layers", x["num_layers"])
    at_most("num_hidden_layers", l, "what a stack of several kinds has", MOST_LAYERS)
    return l


def _kinds(x: Values, family: Family) -> Any:
    """The kind of mixer of all layers, or of each."""
    given = x.get("layer_types")
    if not given:
        found = family.kinds(x) if callable(family.kinds) else family.kinds
        return found
    given = [_MEANT.get(kind, kind) for kind in given]
    l = _listed(x)
    known = {*family.mixers, *family.looks}
    if not all(kind in known for kind in given):
        refuse("layer_types", given, f"has no place in this shape: only {ATTENTION} have")
    if len(given) != l and family.any_kinds:
        return "full_attention"
    if len(given) != l:
        refuse("layer_types", given, f"are {len(given)}, and layers {l}")
    return given


_MEANT = {"attention": "full_attention", "mamba": "linear_attention"}
"""Kinds of layers by the names that older files have."""


def _sparse(x: Values, family: Family) -> Any:
    """Whether all layers have experts, or which of them."""
    if not x.get("num_experts"):
        return False
    if x.get("mlp_layer_types"):
        given, l = x["mlp_layer_types"], _listed(x)
        if len(given) != l or not {*given} <= {"dense", "sparse"}:
            refuse("mlp_layer_types", given, f"are no {l} of 'dense' or 'sparse'")
        return [kind == "sparse" for kind in given]
    if family.sparse:
        found = family.sparse(x)
        return found if isinstance(found, bool) else [bool(is_) for is_ in found]
    return True


def _layer(kind: str, sparse: bool, x: Values, family: Family) -> Layer:
    """One layer of a kind."""
    letters = _letters(x, family)
    make = family.mixers.get(kind)
    mixer = make(x) if make else _attention(kind, x, family, letters)
    mlp = _experts(x, family, letters) if sparse else _mlp(x, family, letters)
    norms = family.norms(x, sparse) if callable(family.norms) else family.norms
    parallel = family.parallel
    if isinstance(parallel, str):
        parallel = x[parallel]
    return Layer(mixer, mlp, norms, family.norm_size, parallel)


def _attention(kind: str, x: Values, family: Family, letters: str) -> Mixer:
    """Attention, plain or latent, that looks as far as this kind does."""
    if "kv_rank" in x:
        return _latent(kind, x, family, letters)
    d, normed = x.get("head_dim"), not family.qk_norm_if or x[family.qk_norm_if]
    return Attention(
        x["num_heads"],
        x.get("num_kv_heads", x["num_heads"]),
        x["hidden_size"] // x["num_heads"] if d is None else d,
        x.get("value_dim") or 0,
        biases="".join(letter for letter in "qkvo" if letter in letters),
        qk_norm=family.qk_norm if normed else "",
        qk_norm_size=family.qk_norm_size,
        gate=family.gate,
        sinks=family.sinks,
        out_norm=family.inner_norms,
        twice=family.twice,
        more=family.mixer_more(x) if family.mixer_more else 0,
        window=_window(kind, x),
        chunked=kind == "chunked_attention",
    )


def _latent(kind: str, x: Values, family: Family, letters: str) -> Mixer:
    sizes = (x["plain_dim"], x["rotary_dim"], x["value_dim"])
    return LatentAttention(
        x["num_heads"],
        x.get("q_rank") or 0,
        x["kv_rank"],
        *sizes,
        bias="a" in letters,
        gate=family.gate,
        window=_window(kind, x),
    )


def _window(kind: str, x: Values) -> Any:
    """How far layers of this kind look; 0: to the start."""
    key = {"sliding_attention": "window", "chunked_attention": "chunk"}.get(kind, "")
    return x.get(key) or 0


def _mlp(x: Values, family: Family, letters: str) -> Mlp | None:
    if not family.mlp:
        return None
    f = family.dense_size(x) if family.dense_size else x["intermediate_size"]
    return Mlp(f, family.gated, "m" in letters, family.inner_norms, family.mlp_more)


def _experts(x: Values, family: Family, letters: str) -> Experts:
    f = x.get("expert_size") or x["intermediate_size"]
    times = 1 if family.always_shared else x.get("shared_experts") or 0
    shared = x.get("shared_size", times * f if times else 0)
    shares = is_array(shared) or bool(shared)
    return Experts(
        Mlp(f, family.gated, "e" in letters),
        x["num_experts"],
        x["experts_per_token"],
        Mlp(shared, family.gated, "s" in letters) if shares else None,
        family.shared_gate and shares,
        "r" in letters,
        family.corrected * x["num_experts"],
    )
