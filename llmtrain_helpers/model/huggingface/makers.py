"""The mixers and stacks that only some families have, made from a file's values.

Shared by all chapters, through `families`, whose table names them.

Source: the configuration and modelling classes of Hugging Face transformers 5.23.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from llmtrain_helpers.checks import divides, refuse
from llmtrain_helpers.model.huggingface.rules import FULL, LINEAR, Values
from llmtrain_helpers.model.layers import (
    Attention,
    Experts,
    LatentAttention,
    Layer,
    Mixer,
    Mlp,
    Stack,
)
from llmtrain_helpers.model.recurrences import (
    DeltaNet,
    GatedRecurrence,
    KimiDelta,
    LightningAttention,
    Mamba,
    Mamba2,
    ShortConvolution,
)


def falcon_attention(x: Values) -> Mixer:
    """Attention of a Falcon has one key-value head for all heads, a few, or one for each."""
    a, k = x["num_heads"], x["num_kv_heads"]
    one = x["multi_query"] and not x["new_decoder_architecture"]
    k = 1 if one else k if x["new_decoder_architecture"] else a
    return Attention(a, k, x["hidden_size"] // a, biases="qkvo" * x["bias"])


def bigcode_attention(x: Values) -> Mixer:
    """Attention of BigCode has one key-value head for all heads, or one for each."""
    a = x["num_heads"]
    k = 1 if x["multi_query"] else a
    return Attention(a, k, x["hidden_size"] // a, biases="qkvo")


def helium_attention(x: Values) -> Mixer:
    """Attention of a Helium has heads that make up the hidden size; others are refused."""
    a, d = x["num_heads"], x["head_dim"]
    if a * d != x["hidden_size"]:
        refuse("head_dim", d, f"times {a} heads is not hidden_size={x['hidden_size']}")
    bias = "qkv" * x["attention_bias"]
    return Attention(a, x["num_kv_heads"], d, biases=bias)


def latent_attention_with_head_gates(x: Values) -> Mixer:
    """Latent attention has a gate for each head, and queries straight from the hidden size."""
    sizes = (x["kv_rank"], x["plain_dim"], x["rotary_dim"], x["value_dim"])
    return LatentAttention(x["num_heads"], 0, *sizes, gate="heads")


def _step_rank(x: Values, key: str) -> Any:
    """The rank of a Mamba's step is what the key says; `auto` is a sixteenth of the hidden size."""
    return ceil(x["hidden_size"] / 16) if x[key] == "auto" else x[key]


def mamba(x: Values) -> Mixer:
    """A Mamba, by the keys of Mamba's own files."""
    return Mamba(
        x["conv_kernel"],
        x["intermediate_size"] or int(x["expand"] * x["hidden_size"]),
        x["state_size"],
        _step_rank(x, "time_step_rank"),
        x["use_bias"],
        x["use_conv_bias"],
    )


def mamba_with_norms(x: Values) -> Mixer:
    """A Mamba with norms inside, by the keys of Jamba's files."""
    return Mamba(
        x["mamba_d_conv"],
        x["mamba_expand"] * x["hidden_size"],
        x["mamba_d_state"],
        _step_rank(x, "mamba_dt_rank"),
        x["mamba_proj_bias"],
        x["mamba_conv_bias"],
        normed=True,
    )


def mamba2(x: Values) -> Mixer:
    """A Mamba 2, by the keys of models that mix it with attention."""
    e = x.get("mamba_d_ssm") or int(x["mamba_expand"] * x["hidden_size"])
    return Mamba2(
        x["mamba_d_conv"],
        e,
        x["mamba_n_heads"],
        x["mamba_d_state"],
        x["mamba_n_groups"],
        x["mamba_proj_bias"],
        x.get("projectors_bias", x["mamba_proj_bias"]),
        x["mamba_conv_bias"],
        x.get("mamba_rms_norm", True),
    )


def plain_mamba2(x: Values) -> Mixer:
    """A Mamba 2, by the keys of Mamba 2's own files."""
    e = int(x["expand"] * x["hidden_size"])
    sizes = (x["state_heads"], x["state_size"], x["n_groups"])
    bias, conv = x["use_bias"], x["use_conv_bias"]
    return Mamba2(x["conv_kernel"], e, *sizes, bias, bias, conv)


def gated_delta_net(x: Values) -> Mixer:
    """A gated delta net, by the keys of Qwen's files."""
    heads = (x["linear_num_key_heads"], x["linear_num_value_heads"])
    sizes = (x["linear_key_head_dim"], x["linear_value_head_dim"])
    return DeltaNet(x["linear_conv_kernel_dim"], *heads, *sizes)


def olmo_gated_delta_net(x: Values) -> Mixer:
    """A gated delta net of OLMo, whose sizes follow from the hidden size unless they are said."""
    keys = x["linear_num_key_heads"] or x["num_heads"]
    values = x["linear_num_value_heads"] or x["num_heads"]
    size = x["linear_key_head_dim"] or int(0.75 * x["hidden_size"] / keys)
    each = x["linear_value_head_dim"] or 2 * size
    return DeltaNet(x["linear_conv_kernel_dim"], keys, values, size, each)


def kimi_delta_attention(x: Values) -> Mixer:
    """Kimi's delta attention takes its decay and its gate over a low rank."""
    d = x["linear_head_dim"]
    return KimiDelta(x["linear_conv_kernel_dim"], x["linear_num_heads"], d, d)


def kimi_delta_attention_full_rank(x: Values) -> Mixer:
    """Kimi's delta attention takes its decay and its gate straight from the hidden size."""
    kernel = x["linear_conv_kernel_dim"] or x["short_conv_kernel_size"]
    heads, size = x["linear_num_heads"], x["linear_head_dim"]
    return KimiDelta(kernel, heads or x["num_heads"], size or x["head_dim"], 0)


def lightning_attention(x: Values) -> Mixer:
    """Lightning attention has as many heads, as large, as the attention of the other layers."""
    a, d = x["num_heads"], x["head_dim"]
    return LightningAttention(0, a, x["hidden_size"] // a if d is None else d)


def short_convolution(x: Values) -> Mixer:
    """A short convolution, by the keys of LFM's files."""
    return ShortConvolution(x["conv_L_cache"], x["hidden_size"], x["conv_bias"])


def gated_recurrence(x: Values) -> Mixer:
    """A gated linear recurrence, by the keys of RecurrentGemma's files."""
    width = x["lru_width"] or x["hidden_size"]
    divides("lru_width", width, "num_attention_heads", x["num_heads"])
    return GatedRecurrence(x["conv1d_width"], width, x["num_heads"])


def attention_beside_mamba2(x: Values, letters: str) -> Stack:
    """A stack whose layers have attention and a Mamba 2 side by side."""
    d = x["head_dim"]
    d = x["hidden_size"] // x["num_heads"] if d is None else d
    biases = "qkvo" if "q" in letters else ""
    mixer = Attention(x["num_heads"], x["num_kv_heads"], d, biases=biases)
    mlp = Mlp(x["intermediate_size"], bias="m" in letters)
    return ((x["num_layers"], Layer(mixer, mlp, beside=mamba2(x))),)


def one_part_a_layer(x: Values, letters: str) -> Stack:
    """A stack whose layers have one part each: a Mamba 2, attention, an MLP or experts."""
    e, bias = x["mamba_num_heads"] * x["mamba_head_dim"], x["mlp_bias"]
    own = (x["mamba_num_heads"], x["ssm_state_size"], x["n_groups"])
    ends = (x["use_bias"], x["use_bias"], x["use_conv_bias"])
    sizes = (x["num_heads"], x["num_kv_heads"], x["head_dim"])
    parts: dict[str, tuple[Any, Any]] = {
        LINEAR: (Mamba2(x["conv_kernel"], e, *own, *ends), None),
        FULL: (Attention(*sizes), None),
        "mlp": (None, Mlp(x["intermediate_size"], gated=False, bias=bias)),
        "moe": (None, _ungated_experts(x)),
    }
    parts["mamba"], parts["attention"] = parts[LINEAR], parts[FULL]
    named = x["layer_types"] or [LINEAR, "moe", FULL, "mlp"]
    if not {*named} <= {*parts}:
        refuse("layers_block_type", named, f"contain something other than {', '.join(parts)}")
    return tuple((1, Layer(*parts[kind], norms=1)) for kind in named)


def _ungated_experts(x: Values) -> Experts:
    """Experts whose MLPs have no gate."""
    shared = Mlp(x["shared_size"], gated=False, bias=x["mlp_bias"])
    each = Mlp(x["expert_size"], gated=False)
    return Experts(each, x["num_experts"], x["experts_per_token"], shared)


def minicpm3_attention(x: Values) -> Mixer:
    """Latent attention of a MiniCPM3 has values that share out the hidden size, unless it says."""
    a, e = x["num_heads"], x["value_dim"]
    each = x["hidden_size"] // a if e is None else e
    sizes = (x["kv_rank"], x["plain_dim"], x["rotary_dim"], each)
    return LatentAttention(a, x["q_rank"] or 0, *sizes, bias=x["attention_bias"])
