"""What a Hugging Face `config.json` says of a shape, family by family.

Shared by all chapters, through `Transformer.from_config`. A file is taken as
transformers takes it, or refused: a number is never silently wrong.

Source: the configuration and modelling classes of Hugging Face transformers 5.23.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llmtrain_helpers.checks import (
    at_most,
    count,
    divides,
    flag,
    is_array,
    refuse,
    show,
    single,
)


@dataclass(frozen=True)
class Family:
    """How the files of one `model_type` are read.

    `model` is the class in transformers whose parameters are counted; `defaults` what a
    key is when a file leaves it out; `aliases` second spellings, each with its key;
    `traits` what the class does without asking the file.
    """

    model: str
    defaults: Mapping[str, Any]
    aliases: Mapping[str, str] = field(default_factory=dict)
    traits: Mapping[str, bool] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        """Whether it is one of the family's keys, or a second spelling of one."""
        return key in self.defaults or key in self.aliases


_LLAMA: dict[str, Any] = {
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": None,
    "head_dim": None,
    "intermediate_size": 11008,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}
_MISTRAL = _LLAMA | {
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
}
_QWEN2 = _LLAMA | {
    "num_key_value_heads": 32,
    "intermediate_size": 22016,
    "vocab_size": 151936,
    "max_position_embeddings": 32768,
}
_QWEN3_MOE = _QWEN2 | {
    "num_hidden_layers": 24,
    "hidden_size": 2048,
    "num_key_value_heads": 4,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_local_experts": 128,
    "num_experts_per_tok": 8,
}
_GPT2 = {
    "n_layer": 12,
    "n_embd": 768,
    "n_head": 12,
    "n_inner": None,
    "vocab_size": 50257,
    "n_positions": 1024,
    "tie_word_embeddings": True,
}
_GPT2_ALIASES = {
    "num_hidden_layers": "n_layer",
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}
_EXPERTS = {"num_experts": "num_local_experts"}

FAMILIES = {
    "gpt2": Family("GPT2LMHeadModel", _GPT2, _GPT2_ALIASES),
    "llama": Family("LlamaForCausalLM", _LLAMA),
    "mistral": Family("MistralForCausalLM", _MISTRAL),
    "mixtral": Family(
        "MixtralForCausalLM",
        _MISTRAL | {"num_local_experts": 8, "num_experts_per_tok": 2},
        _EXPERTS,
    ),
    "qwen2": Family("Qwen2ForCausalLM", _QWEN2, traits={"qkv_bias": True}),
    "qwen3": Family(
        "Qwen3ForCausalLM", _QWEN2 | {"head_dim": 128}, traits={"qk_norm": True}
    ),
    "qwen3_moe": Family(
        "Qwen3MoeForCausalLM", _QWEN3_MOE, _EXPERTS, traits={"qk_norm": True}
    ),
}
"""The families that are known, by `model_type`."""

_ARGUMENTS = {
    "n_layer": "num_layers",
    "num_hidden_layers": "num_layers",
    "n_embd": "hidden_size",
    "n_head": "num_heads",
    "num_attention_heads": "num_heads",
    "num_key_value_heads": "num_kv_heads",
    "n_inner": "intermediate_size",
    "n_positions": "num_positions",
    "max_position_embeddings": "sequence_length",
    "tie_word_embeddings": "tied_embeddings",
    "num_local_experts": "num_experts",
    "num_experts_per_tok": "experts_per_token",
}
"""The argument of `Transformer` that a key stands for, where it is called otherwise."""

_ONLY: dict[str, Any] = {
    "attention_bias": False,  # would put a bias on the output projection as well
    "mlp_bias": False,
    "add_cross_attention": False,
    "mlp_only_layers": [],  # layers without experts among layers with
    "decoder_sparse_step": 1,
}
"""Keys with the only value that a `Transformer` can express."""

_ATTENTION = ("full_attention", "sliding_attention", "chunked_attention")
"""Kinds of layers that differ in where they look, and not in their matrices."""

_STRUCTURE = re.compile(
    r"""lora | rank$ | expert | moe | shared | mtp | latent | mamba | ssm | ffn | ^d_
    | (^|_)(conv|vision|audio)(_|$) | (text|attn)_config | block_(type|config)
    | (?<!qkv_)(?<!no_)bias$ | layers$ | heads$ | dims?$ | per_layer | head_type
    | multi_query | query_groups | attn_type | output_gate | alibi | new_decoder
    | parallel_(att|residual) | dense_replace | is_encoder | (mlp|expansion)_ratio
    | (hidden|intermediate|embedding|state|inner)_size | _vocab_size
    | (layer|attn|attention|override)_(period|interval|freq|step|pattern)""",
    re.VERBOSE,
)
"""Names by which the files of other decoders say how many matrices, and how large."""

_HARMLESS = {"max_window_layers"}
"""Names that look like these, and change no matrix."""


def shape(config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments for `Transformer.gpt` or `Transformer.llama` that a config gives.

    With `num_positions` for the former, and `sequence_length` for the latter.

    >>> shape({"model_type": "gpt2"})["num_positions"]
    1024
    """
    family = _family(config)
    _check_model(config, family)
    for key, value in config.items():
        _check_structure(str(key)[:60], value, family)
    keys = family.defaults
    said = {_ARGUMENTS.get(key, key): _said(key, config, family) for key in keys}
    _check_fit(said)
    values = {argument: value for argument, (_, value) in said.items()}
    expert_size = values.pop("moe_intermediate_size", None)
    if expert_size is not None and values["num_experts"]:
        values["intermediate_size"] = expert_size
    return {**values, **family.traits}


def _family(config: Mapping[str, Any]) -> Family:
    if not isinstance(config, Mapping):
        refuse("config", config, "is no mapping of names to values")
    name = config.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        # The nearest is not offered: a name that looks alike is another shape.
        refuse("model_type", name, f"is unknown. Known: {', '.join(FAMILIES)}")
    return FAMILIES[name]


def _check_model(config: Mapping[str, Any], family: Family) -> None:
    """Refuse another head, another class, and code that comes beside the file."""
    given, own = config.get("architectures"), [family.model]
    if given and given != own:
        refuse("architectures", given, f"is not what is counted here: only {own} is")
    if config.get("auto_map") and not given:
        problem = f"is code of its own: read only beside architectures={own}"
        refuse("auto_map", config["auto_map"], problem)


def _check_structure(key: str, value: Any, family: Family) -> None:
    """Refuse what would change the matrices, and is not known of the family."""
    if value is None:
        return
    if key in _ONLY and value != _ONLY[key]:
        refuse(key, value, f"has no place in this shape: only {_ONLY[key]!r} has")
    if key == "layer_types" and not _all_attention(value):
        refuse(key, value, f"has no place in this shape: only {_ATTENTION} have")
    is_there = is_array(value) or value  # zero, false and empty say that it is not
    if is_there and _is_foreign(key, family):
        refuse(key, value, f"does not belong to {family.model}: its part is unknown")


def _all_attention(kinds: Any) -> bool:
    return isinstance(kinds, list) and all(kind in _ATTENTION for kind in kinds)


def _is_foreign(key: str, family: Family) -> bool:
    if family.has(key) or key in _ONLY or key in _HARMLESS:
        return False
    elsewhere = any(other.has(key) for other in FAMILIES.values())
    return elsewhere or _STRUCTURE.search(key) is not None


def _said(key: str, config: Mapping[str, Any], family: Family) -> tuple[str, Any]:
    """What a file says of a key, after the spelling that it uses; or the default."""
    spellings = [key, *(name for name, own in family.aliases.items() if own == key)]
    given = [name for name in spellings if config.get(name) is not None]
    if not given:
        return key, _default(key, config, family)
    name, value = given[0], _checked(given[0], config[given[0]], family)
    for other in given[1:]:
        if _checked(other, config[other], family) != value:
            refuse(other, config[other], f"contradicts {name}={show(value)}")
    return name, value


def _default(key: str, config: Mapping[str, Any], family: Family) -> Any:
    """What holds for a key that is left out, or null."""
    if key != "num_key_value_heads":
        return family.defaults[key]
    value = None if key in config else family.defaults[key]
    if value is None:  # in all classes this means: as many as there are heads
        value = _said("num_attention_heads", config, family)[1]
    return value


def _checked(name: str, value: Any, family: Family) -> Any:
    if name == "tie_word_embeddings":
        return flag(name, value)
    if "experts" not in name:
        return count(name, value)
    # Without experts, a layer of qwen3_moe has a plain MLP, and one of mixtral none.
    least = int("moe_intermediate_size" not in family.defaults)
    return single(name, value, least)


def _check_fit(said: Mapping[str, tuple[str, Any]]) -> None:
    """Refuse numbers that do not go together, by the names that the file gives them."""
    heads = said["num_heads"]
    if said.get("head_dim", ("", None))[1] is None:
        divides(**dict([said["hidden_size"], heads]))
    if "num_kv_heads" in said:
        divides(**dict([heads, said["num_kv_heads"]]))
    if "num_experts" in said:
        chosen, experts = said["experts_per_token"], said["num_experts"]
        at_most(**dict([chosen, experts]))
        if experts[1] and not chosen[1]:
            refuse(*chosen, f"leaves {experts[0]}={experts[1]} unused")
