"""Functions of a file's values, for traits of a family that aren't plain values.

Shared by all chapters, through `families`, whose table names them. A rule for layers
gives one answer for all of them, or a list with one for each; layers count from 0.

Source: the configuration and modelling classes of Hugging Face transformers 5.23.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from llmtrain_helpers.checks import Size, refuse


class Values(dict[str, Any]):
    """The values of a file, by the names in `families.ROLES`, or else by the file's own.

    They're JSON values, such as a number or a list of words; `configs` checks that each has
    the type of the family's default.
    """


Kinds: TypeAlias = str | list[str]
"""The kind of mixer of all layers, or of each."""

KindsRule: TypeAlias = Callable[[Values], list[str]]
"""A rule that returns the kind of mixer of each layer."""

Sparse: TypeAlias = bool | list[bool]
"""Whether all layers have experts, or which of them."""

MOST_LAYERS = 100_000
"""The most layers of a stack of several kinds: no model has more."""

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"


def layer_count(x: Values) -> int:
    """The number of layers if each is handled separately, at most MOST_LAYERS."""
    l = x["num_layers"]
    if not isinstance(l, int) or l > MOST_LAYERS:
        problem = f"is not one number of at most {MOST_LAYERS:,} layers"
        refuse("num_hidden_layers", l, problem)
    return l


def _full_where(is_full: Callable[[int, Values], bool], other: str = SLIDING) -> KindsRule:
    """Make a rule that gives full attention to the layers for which `is_full` is true."""

    def kinds(x: Values) -> list[str]:
        return [FULL if is_full(i, x) else other for i in range(layer_count(x))]

    return kinds


# --- kinds: which layers have full attention, a window, or a recurrence


def full_every(n: int | str, other: str = SLIDING) -> KindsRule:
    """A rule that gives full attention to every nth layer; a word is the key that says n."""
    return _full_where(lambda i, x: (i + 1) % (x[n] if isinstance(n, str) else n) == 0, other)


def full_first_of_every(n: int) -> KindsRule:
    """A rule that gives full attention to the first of every n layers."""
    return _full_where(lambda i, x: i % n == 0)


def full_every_sixth_and_last(x: Values) -> list[str]:
    """Every sixth layer has full attention, and so has the last."""
    last = x["num_layers"] - 1
    return _full_where(lambda i, x: (i + 1) % 6 == 0 or i == last)(x)


def full_every_sliding_window_pattern_if_window(x: Values) -> Kinds:
    """Every nth layer has full attention; all have it where the file gives no window."""
    return full_every("sliding_window_pattern")(x) if x["window"] else FULL


def sliding_if_window(x: Values) -> str:
    """All layers look back over a window, where the file gives one and doesn't turn it off."""
    return SLIDING if x.get("window") and x.get("use_sliding_window", True) else FULL


def sliding_from_max_window_layers(x: Values) -> Kinds:
    """The layers from `max_window_layers` on have a window, where it is in use."""
    if sliding_if_window(x) == FULL:
        return FULL
    return _full_where(lambda i, x: i < x["max_window_layers"])(x)


def sliding_every_second_below_max_window_layers(x: Values) -> Kinds:
    """Every second layer below `max_window_layers` has a window, where it is in use."""
    if not x["use_sliding_window"]:
        return FULL
    return _full_where(lambda i, x: i % 2 == 1 or i >= x["max_window_layers"])(x)


def full_and_linear_in_turn(x: Values) -> list[str]:
    """Full attention and a recurrence follow one another in turn."""
    return _full_where(lambda i, x: i % 2 == 0, LINEAR)(x)


def full_in_attn_layer_indices(x: Values) -> list[str]:
    """The layers that `attn_layer_indices` lists have attention, the others a recurrence."""
    listed = x["attn_layer_indices"] or []
    return _full_where(lambda i, x: i in listed, LINEAR)(x)


def cohere2_moe_kinds(x: Values) -> list[str]:
    """Layers before the experts have one pattern of windows, layers with experts another."""
    dense, l = min(x["first_dense"], x["num_layers"]), layer_count(x)
    before, after = x["prefix_dense_sliding_window_pattern"], x["sliding_window_pattern"]
    steps = [(i, before) for i in range(dense)] + [(i, after) for i in range(l - dense)]
    return [SLIDING if (i + 1) % step else FULL for i, step in steps]


def flint_kinds(x: Values) -> list[str]:
    """Full attention is in the first two layers, in every fourth from layer 1, in the last."""
    last = x["num_layers"] - 1
    return _full_where(lambda i, x: i < 2 or i % 4 == 1 or i == last)(x)


def gpt_neo_kinds(x: Values) -> list[str]:
    """Every second layer has a window, or those that `attention_layers` calls local."""
    named = x["attention_layers"] or ["global", "local"] * (layer_count(x) // 2)
    if len(named) != x["num_layers"] or not {*named} <= {"global", "local"}:
        refuse("attention_layers", named, "don't say 'global' or 'local' for each layer")
    return [SLIDING if kind == "local" else FULL for kind in named]


def jamba_kinds(x: Values) -> list[str]:
    """One layer of each period has attention, the others a recurrence."""
    period, offset = x["attn_layer_period"], x["attn_layer_offset"]
    return _full_where(lambda i, x: i % period == offset, LINEAR)(x)


def kimi_linear_kinds(x: Values) -> list[str]:
    """Layers 4, 8, 12 and so on have full attention, the others a recurrence."""
    return _full_where(lambda i, x: i > 0 and i % 4 == 0, LINEAR)(x)


def lfm2_kinds(x: Values) -> Kinds:
    """The layers that `full_attn_idxs` lists have attention, the others a convolution."""
    listed = x["full_attn_idxs"]
    return FULL if listed is None else _full_where(lambda i, x: i in listed, "conv")(x)


def lfm3_kinds(x: Values) -> list[str]:
    """Odd layers and the first are convolutions; 2, 6, 10 are full, 4, 8, 12 have a window."""
    even = {2: FULL, 0: SLIDING}
    return [even.get(i % 4, "conv") if i else "conv" for i in range(layer_count(x))]


def llama4_kinds(x: Values) -> list[str]:
    """Attention sees its own chunk, but for every nth layer, which sees all."""
    return full_every("no_rope_layer_interval", "chunked_attention")(x)


def olmo_hybrid_kinds(x: Values) -> list[str]:
    """Every fourth layer has full attention, and at least the last."""
    kinds = full_every(4, LINEAR)(x)
    return kinds if FULL in kinds else [*kinds[:-1], FULL]


def recurrent_gemma_kinds(x: Values) -> list[str]:
    """The blocks that `block_types` names follow in turn; attention has a window."""
    named = x["block_types"]
    if not named or not {*named} <= {"attention", "recurrent"}:
        refuse("block_types", named, "contain blocks other than attention and recurrent")
    blocks = [named[i % len(named)] for i in range(layer_count(x))]
    return [SLIDING if block == "attention" else LINEAR for block in blocks]


def smollm3_kinds(x: Values) -> Kinds:
    """Every nth layer, which has no rotary positions, has a window, where it is in use."""
    if sliding_if_window(x) == FULL:
        return FULL
    return _full_where(lambda i, x: (i + 1) % x["no_rope_layer_interval"] != 0)(x)


# --- experts: which layers have them


def experts_after_first_dense(x: Values) -> Sparse:
    """All layers have experts but the first ones, whose number the file says."""
    dense = x["first_dense"]
    return [i >= dense for i in range(layer_count(x))] if dense else True


def experts_after_first_dense_by_moe_layer_freq(x: Values) -> list[bool]:
    """Experts follow the first dense layers, in each layer that `moe_layer_freq` divides."""
    dense, step = x["first_dense"], x["moe_layer_freq"]
    return [i >= dense and i % step == 0 for i in range(layer_count(x))]


def experts_from_layer(first: int) -> Callable[[Values], list[bool]]:
    """A rule that gives experts to all layers from this one on, which no key says."""
    return lambda x: [i >= first for i in range(layer_count(x))]


def experts_by_decoder_sparse_step(x: Values) -> Sparse:
    """Every nth layer has experts, but for those that `mlp_only_layers` lists."""
    dense, step = x.get("mlp_only_layers") or [], x.get("decoder_sparse_step") or 1
    if not dense and step == 1:
        return True
    return [i not in dense and (i + 1) % step == 0 for i in range(layer_count(x))]


def experts_between_moe_layer_indices(x: Values) -> list[bool]:
    """Every nth layer has experts, from a first one to a last one (-1: the model's last)."""
    first, last = x["moe_layer_start_index"], x["moe_layer_end_index"]
    last = x["num_layers"] - 1 if last == -1 else last
    step = x["moe_layer_interval"]
    return [(i + 1) % step == 0 and first <= i <= last for i in range(layer_count(x))]


def llama4_experts(x: Values) -> list[bool]:
    """Every nth layer has experts, or those that `moe_layers` lists."""
    step, listed = x["interleave_moe_layer_step"], x["moe_layers"]
    if listed is None:
        return [(i + 1) % step == 0 for i in range(layer_count(x))]
    return [i in listed for i in range(layer_count(x))]


def jamba_experts(x: Values) -> list[bool]:
    """One layer of each period has experts."""
    period, offset = x["expert_layer_period"], x["expert_layer_offset"]
    return [i % period == offset for i in range(layer_count(x))]


# --- sizes of the MLP in layers without experts, and of the embedding


def _size(x: Values, key: str) -> Size:
    """The size under this key."""
    size: Size = x[key]
    return size


def four_times_hidden_size(x: Values) -> Size:
    """The MLP is four times as wide as the hidden size, unless the file says its size."""
    f: Size | None = x.get("intermediate_size")
    return 4 * x["hidden_size"] if f is None else f


def multiple_of_hidden_size(x: Values) -> Size:
    """The MLP is as many times as wide as the hidden size as the file says."""
    return _size(x, "intermediate_multiple_size") * _size(x, "hidden_size")


def half_of_intermediate_size(x: Values) -> Size:
    """The MLP has half the size that the file says, which is gate and up together."""
    return _size(x, "intermediate_size") // 2


def value_of(key: str) -> Callable[[Values], Size]:
    """A rule that takes the size that this key says."""
    return lambda x: _size(x, key)


def prefix_dense_or_intermediate_size(x: Values) -> Size:
    """The MLPs before the experts have a size of their own, where the file says one."""
    return _size(x, "prefix_dense_intermediate_size") or _size(x, "intermediate_size")


def lfm2_intermediate_size(x: Values) -> int:
    """The MLP has two thirds of the size that the file says, rounded up to whole blocks."""
    f, block = x["intermediate_size"], x["block_multiple_of"]
    if not x["block_auto_adjust_ff_dim"]:
        return int(f)
    f = int(x["block_ffn_dim_multiplier"] * int(2 * f / 3))
    return int(block * -(-f // block))


def word_embed_proj_dim_if_narrower(x: Values) -> Size:
    """The embedding has the size `word_embed_proj_dim`; 0 where that is the hidden size."""
    e = x["word_embed_proj_dim"]
    return 0 if e is None or e == x["hidden_size"] else e


# --- norms of a layer, and the one after all layers


def three_with_experts(x: Values, sparse: bool) -> int:
    """A layer with experts has a third norm."""
    return 2 + sparse


def four_if_use_post_norm(x: Values, sparse: bool) -> int:
    """A layer also has norms after mixer and MLP, if the file says so."""
    return 4 if x["use_post_norm"] else 2


def one_if_use_parallel_residual(x: Values, sparse: bool) -> int:
    """A layer has one norm for mixer and MLP where they are parallel, else two."""
    return 1 if x["use_parallel_residual"] else 2


def falcon_norms(x: Values, sparse: bool) -> int:
    """A parallel layer of a Falcon has one norm or two, by version; any other has two."""
    norms, new = x["num_ln_in_parallel_attn"], x["new_decoder_architecture"]
    if not x["parallel_attn"]:
        return 2
    return 2 if norms == 2 or (norms is None and new) else 1


def opt_final_norm(x: Values) -> int:
    """The last norm scales and shifts; there is none where norms come after the parts."""
    return 2 * (x["do_layer_norm_before"] and not x["_remove_final_layer_norm"])


# --- further parameters


def output_bias_of_last_layer(x: Values) -> Size:
    """Only the last layer has a bias on attention's output, as long as the hidden size."""
    return _size(x, "hidden_size")


def one_per_head(x: Values) -> Size:
    """Each head of a mixer has one extra parameter."""
    return _size(x, "num_heads")


def four_vectors_of_head_dim(x: Values) -> Size:
    """A mixer has four extra vectors, each as long as a head."""
    d: Size | None = x["head_dim"]
    return 4 * (_size(x, "hidden_size") // x["num_heads"] if d is None else d)
