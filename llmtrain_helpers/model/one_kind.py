"""A stack of layers of one kind, described by keywords. Shared by all chapters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from llmtrain_helpers.checks import (
    Number,
    Size,
    at_most,
    count,
    counts,
    divides,
    flag,
    instance,
    is_array,
    refuse,
    single,
)
from llmtrain_helpers.model.layers import Attention, Experts, Layer, Mlp, Stack, numbers

MISSING = cast(Size, None)
"""A missing size; the part that needs it refuses it by name."""


def share_of_heads(hidden_size: Number, num_heads: Number) -> Size:
    """The size of a head if heads divide the hidden size.

    >>> share_of_heads(12288, 96)
    128
    """
    h, a = counts(hidden_size=hidden_size, num_heads=num_heads)
    divides("hidden_size", h, "num_heads", a)
    return h // a


def one_kind(
    *,
    num_layers: Size = MISSING,
    num_heads: Size = MISSING,
    num_kv_heads: Size = MISSING,
    head_dim: Size = MISSING,
    intermediate_size: Size = MISSING,
    layer_norm: bool = False,
    gated_mlp: bool = True,
    bias: bool = False,
    qkv_bias: bool = False,
    qk_norm: bool = False,
    num_experts: int = 0,
    experts_per_token: int = 0,
) -> Stack:
    """Make the stack that keywords describe; refuse missing sizes by name."""
    shifts, qkv = flag("layer_norm", layer_norm), "qkv" * flag("qkv_bias", qkv_bias)
    has_bias, normed = flag("bias", bias), "head" * flag("qk_norm", qk_norm)
    biases = qkv + "o" * has_bias
    mixer = Attention(num_heads, num_kv_heads, head_dim, biases=biases, qk_norm=normed)
    mlp = Mlp(intermediate_size, flag("gated_mlp", gated_mlp), has_bias)
    experts = single("num_experts", num_experts, least=0)
    chosen = single("experts_per_token", experts_per_token, least=0)
    at_most("experts_per_token", chosen, "num_experts", experts)
    if experts and not chosen:
        refuse("experts_per_token", chosen, f"leaves num_experts={experts} unused")
    either = Experts(mlp, experts, chosen) if experts else mlp
    return ((num_layers, Layer(mixer, either, norm_size=1 + shifts)),)  # `checked` counts them


def changed(layers: Stack, kind: Mapping[str, object]) -> Stack:
    """Change a stack by keywords; windows and per-head norms don't change."""
    stack = of_keywords({**keywords(layers), **kind})
    (_, _, old, _), (l, layer, new, _) = _plain(layers), _plain(stack)
    norms = new.qk_norm and (old.qk_norm or new.qk_norm)
    mixer = replace(new, qk_norm=norms, window=old.window, chunked=old.chunked)
    return ((l, replace(layer, mixer=mixer)),)


def of_keywords(words: Mapping[str, object]) -> Stack:
    """Make the stack of `one_kind`, which checks the keywords."""
    return one_kind(**cast(dict[str, Any], words))


def keywords(layers: Stack) -> dict[str, object]:
    """Return the keywords that describe a stack; refuse a stack that needs more."""
    l, layer, mixer, expert = _plain(layers)
    mlp = layer.mlp
    words: dict[str, object] = {
        "num_layers": l,
        "num_heads": mixer.num_heads,
        "num_kv_heads": mixer.num_kv_heads,
        "head_dim": mixer.head_dim,
        "intermediate_size": expert.intermediate_size,
        "layer_norm": layer.norm_size == 2,
        "gated_mlp": expert.gated,
        "bias": expert.bias,
        "qkv_bias": "q" in mixer.biases,
        "qk_norm": bool(mixer.qk_norm),
    }
    if isinstance(mlp, Experts):
        words["num_experts"] = mlp.num_experts
        words["experts_per_token"] = mlp.experts_per_token
    # If we make it again from the keywords, it has to have all its current traits.
    [(_, copy)] = of_keywords(words)
    if _traits(layer) != _traits(copy):
        refuse("layers", layers, "can't be described by keywords: change `layers`")
    return words


def _plain(layers: Stack) -> tuple[Size, Layer, Attention, Mlp]:
    """Return the number of layers, their kind, its attention, and its MLP or expert."""
    (l, layer), *others = layers
    mixer, mlp = layer.mixer, layer.mlp
    expert = mlp.expert if isinstance(mlp, Experts) else mlp
    if others or not isinstance(mixer, Attention) or not isinstance(expert, Mlp):
        refuse("layers", layers, "aren't all of one plain kind: change `layers`")
    return l, layer, mixer, expert


def _traits(layer: Layer) -> list[tuple[str, object]]:
    """Everything that describes a layer, part by part, except what keywords state directly.

    Sizes among that may be arrays, which cannot be compared; no keyword says another.
    """
    as_it_is = {
        "num_heads",
        "num_kv_heads",
        "head_dim",
        "intermediate_size",
        "bias",
        "qk_norm",
        "num_experts",
        "experts_per_token",
        "window",
        "chunked",
    }
    traits = [(name, value) for name, value in numbers(layer) if name not in as_it_is]
    return [(name, None if is_array(value) else value) for name, value in traits]


def checked(name: str, value: object) -> Stack:
    """Check layers as pairs of number and kind; several kinds can't have arrays."""
    if not isinstance(value, tuple | list) or not value:
        refuse(name, value, "aren't pairs of (how many, Layer)")
    for pair in value:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            refuse(name, pair, "isn't a pair of (how many, Layer)")
        instance(name, pair[1], Layer)
    if len(value) == 1:
        return ((count("num_layers", value[0][0]), value[0][1]),)
    for how_many, layer in value:
        for which, number in [(name, how_many), *numbers(layer)]:
            if is_array(number):
                refuse(which, number, "is an array, which only works if all layers are of one kind")
    return tuple((single("num_layers", n), layer) for n, layer in value)
