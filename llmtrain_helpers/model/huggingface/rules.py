"""What a family does that no plain trait says, as functions of what its file says.

Shared by all chapters, through `families`, whose table names them. A rule for layers
gives one answer for all of them, or a list with one for each.

Source: the configuration and modelling classes of Hugging Face transformers 5.23.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from llmtrain_helpers.checks import refuse

Values: TypeAlias = Mapping[str, Any]
"""The values of a file, by the names of `families.ROLES`, else by the file's own."""

MOST_LAYERS = 100_000
"""Of a stack of several kinds: no model has more."""

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"


def pattern(full: Callable[[int, Values], bool], other: str = SLIDING) -> Any:
    """The kind of each layer: full attention where the rule says so."""

    def kinds(x: Values) -> list[str]:
        return [FULL if full(i, x) else other for i in range(few(x))]

    return kinds


def few(x: Values) -> int:
    """How many layers are looked at one by one: one number, of a model's size."""
    l = x["num_layers"]
    if not isinstance(l, int) or l > MOST_LAYERS:
        problem = f"is not one number of at most {MOST_LAYERS:,} layers"
        refuse("num_hidden_layers", l, problem)
    return l


def every(n: int, other: str = SLIDING) -> Any:
    """Full attention in every nth layer."""
    return pattern(lambda i, x: (i + 1) % n == 0, other)


def every_by(key: str, other: str = SLIDING) -> Any:
    """Full attention in every nth layer, n as this key says."""
    return pattern(lambda i, x: (i + 1) % x[key] == 0, other)


def windowed(x: Values) -> str:
    """All layers look back over a window, where there is one."""
    return SLIDING if x.get("window") else FULL


def switched(x: Values) -> str:
    """All layers look back over a window, where a second key says that it is in use."""
    return windowed(x) if x["use_sliding_window"] else FULL


def upper(x: Values) -> Any:
    """A window in the layers from `max_window_layers` on."""
    if switched(x) == FULL:
        return FULL
    return pattern(lambda i, x: i < x["max_window_layers"])(x)


def after_dense(x: Values) -> Any:
    """Experts from a layer on that the file says."""
    k = x["first_dense"]
    return [i >= k for i in range(few(x))] if k else True


def stepped(x: Values) -> Any:
    """Experts in every nth layer, but for those that the file lists."""
    named, step = x.get("mlp_only_layers") or [], x.get("decoder_sparse_step") or 1
    if not named and step == 1:
        return True
    return [i not in named and (i + 1) % step == 0 for i in range(few(x))]


def four_h(x: Values) -> Any:
    """An MLP of four times the hidden size, unless the file says another."""
    f = x.get("intermediate_size")
    return 4 * x["hidden_size"] if f is None else f


def one_more(x: Values, sparse: bool) -> int:
    """A third norm in the layers with experts."""
    return 2 + sparse


def post_norms(x: Values, sparse: bool) -> int:
    """Norms after mixer and MLP too, where the file says so."""
    return 4 if x["use_post_norm"] else 2


def stable_norms(x: Values, sparse: bool) -> int:
    """Norms of a StableLM: one for mixer and MLP where they are parallel, else two."""
    return 1 if x["use_parallel_residual"] else 2


def falcon_norms(x: Values, sparse: bool) -> int:
    """Norms of a Falcon: one for mixer and MLP where they are parallel, or one for each."""
    norms, new = x["num_ln_in_parallel_attn"], x["new_decoder_architecture"]
    if not x["parallel_attn"]:
        return 2
    return 2 if norms == 2 or (norms is None and new) else 1


def opt_final(x: Values) -> int:
    """The norm after the layers, of models whose other norms come before the parts."""
    return 2 * (x["do_layer_norm_before"] and not x["_remove_final_layer_norm"])


def after_dense_stepped(x: Values) -> Any:
    """Experts in every nth layer from a first one on, n as the file says."""
    k, step = x["first_dense"], x["moe_layer_freq"]
    return [i >= k and i % step == 0 for i in range(few(x))]


def after(k: int) -> Any:
    """Experts from the kth layer on, where the file does not say."""
    return lambda x: [i >= k for i in range(few(x))]


def between(x: Values) -> list[bool]:
    """Experts in every nth layer from a first to a last one, as the file says."""
    first, last = x["moe_layer_start_index"], x["moe_layer_end_index"]
    last = x["num_layers"] - 1 if last == -1 else last
    step = x["moe_layer_interval"]
    return [(i + 1) % step == 0 and first <= i <= last for i in range(few(x))]


def llama4_sparse(x: Values) -> list[bool]:
    """Experts in every nth layer, or in those that the file lists."""
    step, named = x["interleave_moe_layer_step"], x["moe_layers"]
    if named is None:
        return [(i + 1) % step == 0 for i in range(few(x))]
    return [i in named for i in range(few(x))]


def jamba_sparse(x: Values) -> list[bool]:
    """Experts once in a period."""
    period, offset = x["expert_layer_period"], x["expert_layer_offset"]
    return [i % period == offset for i in range(few(x))]


def jamba_kinds(x: Values) -> Any:
    """Attention once in a period."""
    period, offset = x["attn_layer_period"], x["attn_layer_offset"]
    return pattern(lambda i, x: i % period == offset, LINEAR)(x)


def indexed(x: Values) -> Any:
    """Attention in the layers that the file lists."""
    named = x["attn_layer_indices"] or []
    return pattern(lambda i, x: i in named, LINEAR)(x)


def every_sixth_and_last(x: Values) -> Any:
    """Full attention in every sixth layer, and in the last."""
    return pattern(lambda i, x: (i + 1) % 6 == 0 or i + 1 == x["num_layers"])(x)


def every_by_if(x: Values) -> Any:
    """Full attention in every nth layer, if there is a window for the others."""
    return every_by("sliding_window_pattern")(x) if x["window"] else FULL


def prefixed(x: Values) -> list[str]:
    """Windows in a pattern, and in another one in the layers without experts."""
    k, l = min(x["first_dense"], x["num_layers"]), few(x)
    first, rest = (x["prefix_dense_sliding_window_pattern"], x["sliding_window_pattern"])
    steps = [(i, first) for i in range(k)] + [(i, rest) for i in range(l - k)]
    return [SLIDING if (i + 1) % step else FULL for i, step in steps]


def prefix_size(x: Values) -> Any:
    """The MLPs before the experts may have a size of their own."""
    return x["prefix_dense_intermediate_size"] or x["intermediate_size"]


def flint_kinds(x: Values) -> Any:
    """Full attention in the first two layers, in every fourth and in the last."""
    last = x["num_layers"] - 1
    return pattern(lambda i, x: i < 2 or i % 4 == 1 or i == last)(x)


def lower_half(x: Values) -> Any:
    """A window in every second of the layers below `max_window_layers`."""
    if not x["use_sliding_window"]:
        return FULL
    return pattern(lambda i, x: i % 2 == 1 or i >= x["max_window_layers"])(x)


def neo_kinds(x: Values) -> list[str]:
    """Windows in every second layer, or where the file says."""
    named = x["attention_layers"] or ["global", "local"] * (few(x) // 2)
    if len(named) != x["num_layers"] or not {*named} <= {"global", "local"}:
        refuse("attention_layers", named, "do not say 'global' or 'local' of each layer")
    return [SLIDING if kind == "local" else FULL for kind in named]


def lfm2_kinds(x: Values) -> Any:
    """Attention in the layers that the file lists, convolutions in the others."""
    named = x["full_attn_idxs"]
    return FULL if named is None else pattern(lambda i, x: i in named, "conv")(x)


def lfm2_size(x: Values) -> int:
    """The MLP's size: two thirds of what the file says, rounded up."""
    f, unit = x["intermediate_size"], x["block_multiple_of"]
    if not x["block_auto_adjust_ff_dim"]:
        return int(f)
    f = int(x["block_ffn_dim_multiplier"] * int(2 * f / 3))
    return int(unit * -(-f // unit))


def lfm3_kinds(x: Values) -> list[str]:
    """Convolutions, and between them attention with a window and without."""
    kinds = {2: FULL, 0: SLIDING}
    return [kinds.get(i % 4, "conv") if i else "conv" for i in range(few(x))]


def llama4_kinds(x: Values) -> Any:
    """Attention in chunks, but in every fourth layer."""
    n = x["no_rope_layer_interval"]
    return pattern(lambda i, x: (i + 1) % n == 0, "chunked_attention")(x)


def smollm_kinds(x: Values) -> Any:
    """Windows, where in use, in the layers without rotary positions."""
    if switched(x) == FULL:
        return FULL
    return pattern(lambda i, x: (i + 1) % x["no_rope_layer_interval"] != 0)(x)


def olmo_kinds(x: Values) -> list[str]:
    """Full attention in every fourth layer, and at least in the last."""
    kinds: list[str] = every(4, LINEAR)(x)
    return kinds if FULL in kinds else [*kinds[:-1], FULL]


def griffin_kinds(x: Values) -> list[str]:
    """Blocks in turn, as the file names them; attention has a window."""
    named = x["block_types"]
    if not named or not {*named} <= {"attention", "recurrent"}:
        refuse("block_types", named, "know other blocks than attention and recurrent")
    at = [named[i % len(named)] for i in range(few(x))]
    return [SLIDING if kind == "attention" else LINEAR for kind in at]


def multiple(x: Values) -> Any:
    """The MLP's size as a multiple of the hidden size."""
    return x["intermediate_multiple_size"] * x["hidden_size"]


def one_bias(x: Values) -> Any:
    """A bias on the way back, which only the last layer has."""
    return x["hidden_size"]


def narrow(x: Values) -> Any:
    """The embedding's size where it is not the hidden size."""
    e = x["word_embed_proj_dim"]
    return 0 if e is None or e == x["hidden_size"] else e


def a_number_a_head(x: Values) -> Any:
    """A further parameter for each head."""
    return x["num_heads"]


def four_head_dims(x: Values) -> Any:
    """Four vectors of a head's size."""
    d = x["head_dim"]
    return 4 * (x["hidden_size"] // x["num_heads"] if d is None else d)


def first_of(n: int) -> Any:
    """Full attention in the first of every n layers."""
    return pattern(lambda i, x: i % n == 0)


def upper_if(x: Values) -> Any:
    """A window in the layers from `max_window_layers` on, if there is one."""
    if not x["window"]:
        return FULL
    return pattern(lambda i, x: i < x["max_window_layers"])(x)


def every_other(x: Values) -> Any:
    """Full attention in the first of every two layers, a recurrence in the second."""
    return pattern(lambda i, x: i % 2 == 0, LINEAR)(x)


def after_four(x: Values) -> Any:
    """Full attention after every four layers."""
    return pattern(lambda i, x: i > 0 and i % 4 == 0, LINEAR)(x)


def size_by(key: str) -> Any:
    """The size of the MLP in layers without experts, as this key says."""
    return lambda x: x[key]


def half(x: Values) -> Any:
    """The MLP's size: half of what the file says, which is gate and up together."""
    return x["intermediate_size"] // 2
