"""Turn a Hugging Face `config.json` into a shape, using its family's row of traits.

Shared by all chapters, through `Transformer.from_config`. We read a file
as transformers does, or refuse it: a number is never silently wrong.

Source: the configuration and modelling classes of Hugging Face transformers 5.23.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llmtrain_helpers.checks import (
    at_most,
    count,
    divides,
    flag,
    is_array,
    quantity,
    refuse,
    show,
    single,
)
from llmtrain_helpers.model.huggingface import rules
from llmtrain_helpers.model.huggingface.families import COMMON, FAMILIES, OTHER_NAMES, Family
from llmtrain_helpers.model.huggingface.stacking import ATTENTION, arguments

_ONLY: dict[str, Any] = {
    "attention_bias": False,  # would put a bias on the output projection as well
    "mlp_bias": False,
    "add_cross_attention": False,
    "mlp_only_layers": [],  # layers without experts among layers with
    "decoder_sparse_step": 1,
    "use_bidirectional_attention": False,  # would halve the windows
    "per_layer_config": {},
}
"""Keys with their only accepted value, unless a family accepts more."""


_STRUCTURE = re.compile(
    r"""lora | rank$ | expert | moe | shared | mtp | latent | mamba | ssm | ffn | ^d_
    | (^|_)(conv|vision|audio)(_|$) | (text|attn)_config | block_(type|config)
    | (?<!qkv_)(?<!no_)bias$ | layers$ | heads$ | dims?$ | per_layer | head_type
    | multi_query | query_groups | attn_type | output_gate | alibi | new_decoder
    | parallel_(att|residual) | dense_replace | is_encoder | (mlp|expansion)_ratio
    | (hidden|intermediate|embedding|state|inner)_size | _vocab_size
    | (layer|attn|attention|override)_(period|interval|freq|step|pattern)
    | ^(en|de)coder_ | cross_attn | ^patch | position_bias | segment | ^prompt_
    | _cycles$ | ^hc_ | kv_channels | keep_window | ^dim_ | ngram""",
    re.VERBOSE,
)
"""Names that other decoders' files use for the number and size of matrices."""

_HARMLESS = {
    "decoder_start_token_id",
    "encoder_no_repeat_ngram_size",
    "no_repeat_ngram_size",
    "max_window_layers",
    "sliding_window",
    "use_sliding_window",
    "layer_types",
    "sliding_window_pattern",
    "no_rope_layers",
    "no_rope_layer_interval",
    "num_logits_to_keep",
    "expert_selection_fn",
    "moe_norm_min",
    "moe_renormalize",
}
"""Names that look like these but don't change a matrix."""

_NORMS = {"rms_norm_eps": 1, "layer_norm_eps": 2, "layer_norm_epsilon": 2}
"""Names that reveal the norm, with its parameters per value."""

_ACTS = {
    **dict.fromkeys(["silu", "swish"], True),
    **dict.fromkeys(["relu2", "xielu", "gelu_new"], False),
}
_ACT_KEYS = ("hidden_act", "hidden_activation", "activation_function")
"""Activations that reveal whether the MLP has a gate."""

_LISTS = {
    "layer_types",
    "mlp_layer_types",
    "mlp_only_layers",
    "layers_block_type",
    "attn_layer_indices",
    "full_attn_idxs",
    "moe_layers",
    "attention_layers",
}
"""Keys whose value is a list with an entry per layer, although a row has None."""

_MAY_BE_ZERO = {
    "first_k_dense_replace",
    "num_dense_layers",
    "max_window_layers",
    "n_shared_experts",
    "num_shared_experts",
    "moe_num_shared_experts",
    "shared_expert_intermediate_size",
    "shared_intermediate_size",
    "moe_layer_start_index",
    "attn_layer_offset",
    "expert_layer_offset",
    "sliding_window",
}
"""Numbers that can be zero, although a row has another: no such layer or size."""

_MAY_BE_NULL = {
    "sliding_window",
    "q_lora_rank",
    "attention_chunk_size",
    "mamba_d_ssm",
    "num_nextn_predict_layers",
}
"""Keys for which null means that the model doesn't have it."""


def shape(config: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of `Transformer` from a config.

    Its `sequence_length` is the longest in the file.

    >>> shape({"model_type": "gpt2"})["num_positions"]
    1024
    """
    config, family = language_model(config)
    _check_model(config, family)
    for key, value in config.items():
        _check_structure(str(key)[:60], value, family)
    _check_other_families(config, family)
    entries = {family.role(key): _entry(key, config, family) for key in family.defaults}
    _check_fit(entries, family)
    return arguments(rules.Values({role: value for role, (_, value) in entries.items()}), family)


def left_out(config: Mapping[str, object]) -> dict[str, object]:
    """Return the sizes missing from a file, with the defaults used for them.

    >>> left_out({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 24})
    {'vocab_size': 50257}
    """
    config, family = language_model(config)
    present = {family.aliases.get(key, key) for key, x in config.items() if x is not None}
    return {
        key: default
        for key, default in family.defaults.items()
        if family.role(key) in _COUNTED and default and key not in present
    }


def language_model(config: Mapping[str, object]) -> tuple[Mapping[str, object], Family]:
    """Return the language model's config and family, even from a file of more than text.

    >>> language_model({"model_type": "llava", "text_config": {"model_type": "llama"}})[0]
    {'model_type': 'llama'}
    """
    if not isinstance(config, Mapping):
        refuse("config", config, "isn't a mapping of names to values")
    values: Mapping[str, Any] = config
    family, where = _family(config), ""
    key = next((key for key in _TEXTS if isinstance(config.get(key), Mapping)), None)
    if family is None and key:
        tied, config = values.get("tie_word_embeddings"), values[key]
        family, where = _family(config), f"in {key} "
        if tied is not None:  # the whole has the head, and decides
            config = {**config, "tie_word_embeddings": tied}
    if family is None:
        # We don't suggest the nearest: a similar name can be a different shape.
        choices = [*COMMON, f"and {len(FAMILIES) - len(COMMON)} more in families.FAMILIES"]
        name = config.get("model_type")
        refuse("model_type", name, f"{where}is unknown. Known: {', '.join(choices)}")
    return config, family


_TEXTS = ("text_config", "llm_config", "language_config")
"""Keys of the language model in a file of more than text."""


def _family(config: Mapping[str, object]) -> Family | None:
    name = config.get("model_type")
    return FAMILIES.get(OTHER_NAMES.get(name, name)) if isinstance(name, str) else None


def _check_model(config: Mapping[str, object], family: Family) -> None:
    """Refuse a different head or class, and custom code next to the file."""
    classes, own = config.get("architectures"), [family.model]
    if is_array(classes) or (classes and classes != own):
        refuse("architectures", classes, f"isn't counted here: only {own} is")
    code = config.get("auto_map")
    if (is_array(code) or code) and not classes:
        refuse("auto_map", code, f"is custom code, only accepted with architectures={own}")


def _check_structure(key: str, value: Any, family: Family) -> None:
    """Refuse keys that could change the matrices and that the family doesn't have."""
    if value is None:
        return
    only = family.only if family.has(key) else {**_ONLY, **family.only}
    if key in only and is_array(value):
        refuse(key, value, "is an array: here it must be one value")
    # NumPy's numbers can't be compared with an empty list.
    if key in only and not (value == only[key] if only[key] else not value):
        refuse(key, value, f"doesn't fit this shape: only {only[key]!r} does")
    if key == "layer_types" and not (family.has(key) or _all_attention(value)):
        refuse(key, value, f"doesn't fit this shape: only {ATTENTION} do")
    is_there = is_array(value) or value  # zero, false and empty mean that it isn't
    if is_there and key not in only and _is_foreign(key, family):
        refuse(key, value, f"isn't a key of {family.model}, so we don't know what it changes")


def _all_attention(kinds: Any) -> bool:
    return isinstance(kinds, list) and all(kind in ATTENTION for kind in kinds)


def _is_foreign(key: str, family: Family) -> bool:
    """Tell whether a key describes structure that the family doesn't have."""
    if family.has(key) or key in _HARMLESS or key in family.read_over:
        return False
    if key in _NORMS:
        return family.norm_size not in (0, _NORMS[key])
    families = FAMILIES.values()
    elsewhere = any(other.has(key) or key in other.read_over for other in families)
    return elsewhere or _STRUCTURE.search(key) is not None


def _check_other_families(config: Mapping[str, object], family: Family) -> None:
    """Refuse a file that looks like another family's, regardless of its `model_type`.

    It does if its activation implies a gated MLP and the family's isn't (or the reverse),
    or if it leaves out a size that the family's own files include.
    """
    if family.mlp and not family.any_act:
        for key in _ACT_KEYS:
            act = config.get(key)
            gated = _ACTS.get(act) if isinstance(act, str) else None
            if gated not in (None, family.gated):
                refuse(key, act, f"isn't the kind of activation that {family.model} uses")
    same = config["model_type"] in OTHER_NAMES  # its own defaults differ, and we don't know them
    present = (key for key, x in config.items() if is_array(x) or x or (same and x is not None))
    roles = {family.role(family.aliases.get(str(key), str(key))) for key in present}
    if not same and ("vocab_size" not in roles or len(roles & _SIZES) < 4):
        return  # a short file, which means the class's defaults
    for key, default in family.defaults.items():
        role = family.role(key)
        needed = default and {role, key} & _KINDS
        if same and role not in _NO_SIZES:
            needed = needed or (default and type(default) is int) or role == "num_kv_heads"
        if needed and role not in roles:
            problem = f"is missing: a file of {family.model} gives it with its sizes"
            refuse(key, None, problem)


_SIZES = {"hidden_size", "num_layers", "num_heads", "vocab_size", "intermediate_size"}
"""Sizes in a complete file; a file without them has the class's defaults."""

_NO_SIZES = {"sequence_length", "window", "max_window_layers"}
"""Whole numbers in a file that don't change a matrix."""

_COUNTED = {*_SIZES, "num_experts", "experts_per_token"}
"""Sizes that matter enough to mention if a file leaves them out."""

_KINDS = {
    "expert_size",
    "shared_size",
    "shared_experts",
    "head_dim",
    "dense_intermediate_size",
    "intermediate_size_mlp",
    "intermediate_size",
    "num_positions",
    "n_positions",
    "mamba_d_ssm",
    "layer_group_size",
    "block_size",
    "num_experts",
    "kv_rank",
    "mamba_d_state",
    "state_size",
    "ssm_state_size",
    "linear_conv_kernel_dim",
    "conv_L_cache",
    "conv1d_width",
}
"""Keys that only families with such layers have, and that all their files include."""


def _entry(key: str, config: Mapping[str, object], family: Family) -> tuple[str, Any]:
    """Return a key as the file spells it, with its value or the default."""
    spellings = [key, *(name for name, own in family.aliases.items() if own == key)]
    used = [name for name in spellings if config.get(name) is not None]
    if not used:
        return key, _default(key, config, family)
    first, *others = used
    value = _checked(first, key, config[first], family)
    for other in others:
        if _checked(other, key, config[other], family) != value:
            refuse(other, config[other], f"contradicts {first}={show(value)}")
    return first, value


def _default(key: str, config: Mapping[str, object], family: Family) -> Any:
    """Return the value of a key that a file leaves out or sets to null."""
    if key in _MAY_BE_NULL and key in config:
        return None
    if family.role(key) != "num_kv_heads":
        default = family.defaults[key]
        null = key in config and default is not None
        if null and not family.null_is_default:
            refuse(key, None, f"is null, but in {family.model} it is {show(default)}")
        return default
    value = None if key in config else family.defaults[key]
    if value is None:  # in all classes this means: as many as there are heads
        heads = next(k for k in family.defaults if family.role(k) == "num_heads")
        _, value = _entry(heads, config, family)
    return value


def _checked(name: str, key: str, value: Any, family: Family) -> Any:
    """Check the value of a key; an error uses the `name` in the file."""
    default, role = family.defaults[key], family.role(key)
    if is_array(value) and not _sweeps(role, family):
        refuse(name, value, "is an array: here it must be one number")
    if isinstance(default, bool):
        return flag(name, value)
    if key in _LISTS or isinstance(default, list):
        return _list(name, value)
    if default == "auto" and value == "auto":
        return value
    if isinstance(default, float):
        return quantity(name, value)
    if role not in ("num_experts", "experts_per_token"):
        least = int(key not in _MAY_BE_ZERO)
        least = min(least, default) if isinstance(default, int) else least
        return count(name, value, least)
    # Without experts, a layer of qwen3_moe has a plain MLP, and one of mixtral none.
    least = int("moe_intermediate_size" not in family.defaults)
    return single(name, value, least)


def _sweeps(role: str, family: Family) -> bool:
    """Tell whether a size can be an array: if no rule of the family needs one number."""
    ruled = (
        family.mixers
        or family.stack
        or family.dense_size not in (None, rules.four_times_hidden_size)
    )
    plain = _SIZES | {"num_kv_heads", "head_dim", "sequence_length", "num_positions"}
    plain |= {"num_experts", "experts_per_token"}  # these are refused further on, by name
    return role in plain and not ruled


def _list(name: str, value: Any) -> list[Any]:
    """Check a list of words or whole numbers, and refuse anything else."""
    plain = isinstance(value, list | tuple)
    if not plain or not all(type(item) in (str, int) for item in value):
        problem = "doesn't fit this shape: only a list of names or numbers does"
        if name == "layer_types":
            problem = f"doesn't fit this shape: only {ATTENTION} do"
        refuse(name, value, problem)
    return list(value)


def _check_fit(entries: Mapping[str, tuple[str, Any]], family: Family) -> None:
    """Refuse numbers that don't go together, by their names in the file."""
    if "num_heads" in entries and "kv_rank" not in entries:
        heads, kv_heads = entries["num_heads"], entries.get("num_kv_heads")
        if entries.get("head_dim", ("", None))[1] is None and not family.rounds_head_dim:
            divides(*entries["hidden_size"], *heads)
        if kv_heads and kv_heads[1] is not None:
            divides(*heads, *kv_heads)
    if "num_experts" in entries:
        experts, chosen = entries["num_experts"], entries["experts_per_token"]
        for name, value in (experts, chosen):
            if value is None:
                refuse(name, value, "doesn't say how many experts a layer has, or a token uses")
        at_most(*chosen, *experts)
        if experts[1] and not chosen[1]:
            refuse(*chosen, f"leaves {experts[0]}={experts[1]} unused")
