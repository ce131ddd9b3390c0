"""A stack of layers of one kind, as keywords describe it. Shared by all chapters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from llmtrain_helpers.checks import (
    Number,
    Result,
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
from llmtrain_helpers.model.layers import Attention, Experts, Layer, Mlp, numbers


def share_of_heads(hidden_size: Number, num_heads: Number) -> Result:
    """The size of a head where heads share out the hidden size.

    >>> share_of_heads(12288, 96)
    128
    """
    h, a = counts(hidden_size=hidden_size, num_heads=num_heads)
    divides("hidden_size", h, "num_heads", a)
    return h // a


KIND = [
    "num_layers",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "intermediate_size",
    "layer_norm",
    "gated_mlp",
    "bias",
    "qkv_bias",
    "qk_norm",
    "num_experts",
    "experts_per_token",
]
"""The keywords that describe layers of one kind."""


def one_kind(given: Mapping[str, Any]) -> tuple[tuple[Number, Layer], ...]:
    """The stack that keywords describe."""
    shifted, bias, qkv, normed = (
        flag(name, given.get(name, False)) for name in ("layer_norm", "bias", "qkv_bias", "qk_norm")
    )
    sizes = {name: cast(Any, given.get(name)) for name in KIND[1:4]}
    biases = "qkv" * qkv + "o" * bias
    mixer = Attention(**sizes, biases=biases, qk_norm="head" * normed)
    f, gated = given.get("intermediate_size"), given.get("gated_mlp", True)
    mlp = Mlp(cast(Any, f), flag("gated_mlp", gated), bias)
    experts, chosen = (
        single(name, given.get(name, 0), least=0) for name in ("num_experts", "experts_per_token")
    )
    at_most("experts_per_token", chosen, "num_experts", experts)
    if experts and not chosen:
        refuse("experts_per_token", chosen, f"leaves num_experts={experts} unused")
    either = Experts(mlp, experts, chosen) if experts else mlp
    layer = Layer(mixer, either, norm_size=1 + shifted)
    return ((cast(Any, given.get("num_layers")), layer),)  # `checked` counts them


def keywords(layers: tuple[tuple[Number, Layer], ...]) -> dict[str, Any]:
    """The keywords that describe a stack, if there are such."""
    (l, layer), *others = layers
    mixer, mlp = layer.mixer, layer.mlp
    expert = mlp.expert if isinstance(mlp, Experts) else mlp
    if others or not isinstance(mixer, Attention) or not isinstance(expert, Mlp):
        refuse("layers", layers, "are not of one plain kind: change them as `layers`")
    said: dict[str, Any] = {"num_layers": l, "layer_norm": layer.norm_size == 2}
    said |= {name: getattr(mixer, name) for name in KIND[1:4]}
    said |= {"intermediate_size": expert.intermediate_size, "gated_mlp": expert.gated}
    said |= {"bias": expert.bias, "qk_norm": bool(mixer.qk_norm)}
    said["qkv_bias"] = "q" in mixer.biases
    if isinstance(mlp, Experts):
        said["num_experts"] = mlp.num_experts
        said["experts_per_token"] = mlp.experts_per_token
    [(_, again)] = one_kind(said)
    ours, theirs = dict(_traits(layer)), dict(_traits(again))
    if ours != theirs:
        refuse("layers", layers, "are of no plain kind: change them as `layers`")
    return said


def _traits(layer: Layer) -> list[tuple[str, Any]]:
    """What a layer is, but for the sizes, which may be arrays."""
    sizes = {*KIND, "window", "chunked"}
    return [(name, value) for name, value in numbers(layer) if name not in sizes]


def checked(name: str, value: Any) -> tuple[tuple[Number, Layer], ...]:
    """Pairs of how many, and of what kind; several kinds without arrays."""
    if not isinstance(value, tuple | list) or not value:
        refuse(name, value, "are no pairs of (how many, Layer)")
    for pair in value:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            refuse(name, pair, "is no pair of (how many, Layer)")
        instance(name, pair[1], Layer)
    if len(value) == 1:
        return ((count("num_layers", value[0][0]), value[0][1]),)
    for how_many, layer in value:
        for which, number in [(name, how_many), *numbers(layer)]:
            if is_array(number):
                refuse(which, number, "is an array: layers of several kinds take none")
    return tuple((single("num_layers", n), layer) for n, layer in value)
