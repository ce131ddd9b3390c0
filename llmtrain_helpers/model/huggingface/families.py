"""Families of models: one row of traits for each `model_type` of a `config.json`.

Shared by all chapters. A row says what the family's class in transformers does: which
keys its files have and what they are when left out, which norms, biases and gates there
are, where experts begin, how far each layer looks. `configs` reads files by them.

Source: the configuration and modelling classes of Hugging Face transformers 5.23.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from llmtrain_helpers.model.huggingface import makers, rules
from llmtrain_helpers.model.huggingface.family_rows import ROWS
from llmtrain_helpers.model.huggingface.rules import Values
from llmtrain_helpers.model.layers import Layer, Mixer

ROLES = {
    **dict.fromkeys(["n_layer", "num_hidden_layers", "n_layers"], "num_layers"),
    **dict.fromkeys(["n_embd", "d_model"], "hidden_size"),
    **dict.fromkeys(["n_head", "num_attention_heads", "n_heads"], "num_heads"),
    **dict.fromkeys(["attention_heads"], "num_heads"),
    "num_key_value_heads": "num_kv_heads",
    **dict.fromkeys(["n_inner", "ffn_dim", "dff"], "intermediate_size"),
    "ffn_hidden_size": "intermediate_size",
    "n_positions": "num_positions",
    **dict.fromkeys(["max_position_embeddings", "max_seq_len"], "sequence_length"),
    "tie_word_embeddings": "tied_embeddings",
    **dict.fromkeys(["num_local_experts", "num_experts"], "num_experts"),
    **dict.fromkeys(["n_routed_experts", "moe_num_experts"], "num_experts"),
    **dict.fromkeys(["num_experts_per_tok", "moe_topk", "moe_k"], "experts_per_token"),
    "num_experts_per_token": "experts_per_token",
    "moe_intermediate_size": "expert_size",
    **dict.fromkeys(["n_shared_experts", "num_shared_experts"], "shared_experts"),
    "moe_num_shared_experts": "shared_experts",
    "shared_expert_intermediate_size": "shared_size",
    "shared_intermediate_size": "shared_size",
    "moe_shared_expert_intermediate_size": "shared_size",
    **dict.fromkeys(["first_k_dense_replace", "num_dense_layers"], "first_dense"),
    "q_lora_rank": "q_rank",
    "kv_lora_rank": "kv_rank",
    "qk_nope_head_dim": "plain_dim",
    "qk_rope_head_dim": "rotary_dim",
    "v_head_dim": "value_dim",
    **dict.fromkeys(["sliding_window", "attention_window_size"], "window"),
    "window_size": "window",
    "attention_chunk_size": "chunk",
    "layers_block_type": "layer_types",
    "num_nextn_predict_layers": "prediction_layers",
}
"""What a key stands for, where its name does not say so."""


@dataclass(frozen=True)
class Family:
    """How the files of one `model_type` are read.

    `model` is the class in transformers whose parameters are counted; `defaults` what a
    key is when a file leaves it out; `aliases` second spellings, each with its key;
    `only` the one value that is known of a key, `read_over` keys that change no matrix.
    `bias` names the biases that there always are, `switches` those that a key brings:
    q, k, v, o of attention (a: of latent attention), m of the MLP, e of the experts, s
    of the shared one, r of the router, h of the head. With `null_is_default` a null says
    no more than a key left out; with `any_kinds` a `layer_types` of another length than
    the stack says nothing; with `any_act` the activation does not tell of a gate. The
    other traits are those of `layers`, or functions of what a file says.
    """

    model: str
    defaults: Mapping[str, Any]
    aliases: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, Any] = field(default_factory=dict)
    read_over: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    bias: str = ""
    switches: Mapping[str, str] = field(default_factory=dict)
    norm_size: int = 1
    norms: int | Callable[[Values, bool], int] = 2
    final_norm: int | Callable[[Values], int] | None = None
    embedding_norm: int = 0
    parallel: bool | str = False
    gated: bool = True
    qk_norm: str = ""
    qk_norm_if: str = ""
    qk_norm_size: int = 1
    gate: str = ""
    sinks: bool = False
    inner_norms: bool = False
    positions: int | None = None
    head_dim_rounded_down: bool = False
    differential: bool = False
    mlp: bool = True
    any_act: bool = False
    any_kinds: bool = False
    null_is_default: bool = False
    kinds: str | Callable[[Values], Any] = "full_attention"
    attention_kinds: tuple[str, ...] = ("full_attention", "sliding_attention")
    mixers: Mapping[str, Callable[[Values], Mixer]] = field(default_factory=dict)
    sparse: Callable[[Values], Any] | None = None
    shared_gate: bool = False
    always_shared: bool = False
    score_correction: bool = False
    mixer_more: Callable[[Values], Any] | None = None
    mlp_more: int = 0
    dense_size: Callable[[Values], Any] | None = None
    embedding_size: Callable[[Values], Any] | None = None
    more: Callable[[Values], Any] | None = None
    stack: Callable[[Values, str], tuple[tuple[Any, Layer], ...]] | None = None

    def has(self, key: str) -> bool:
        """Whether it is one of the family's keys, or a second spelling of one."""
        return key in self.defaults or key in self.aliases

    def role(self, key: str) -> str:
        """What a key of the family's files stands for."""
        return self.roles.get(key, ROLES.get(key, key))


def _literal(text: str) -> Any:
    """A value as a row has it: a number, a word, a list of them, or nothing."""
    if text[0] == "[":
        return [_literal(item) for item in text[1:-1].split(",") if item]
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


_WORDS = {"None": None, "True": True, "False": False, "no": False, "''": ""}


def _rule(name: str) -> Any:
    """A function of `rules` or `makers`, made with what follows its name, if any."""
    name, *values = name.split(":")
    rule = getattr(rules if hasattr(rules, name) else makers, name)
    return rule(*map(_literal, values)) if values else rule


def _row(words: list[str]) -> Family:
    """A family from the words of its row: the signs in them are those of `family_rows`."""
    model = words[0] if "Model" in words[0] else f"{words[0]}ForCausalLM"
    traits: dict[str, Any] = {"defaults": dict(_LLAMA)}
    for word in words[1:]:
        if word[0] == ".":
            trait, _, value = word[1:].partition("=")
            if trait == "attention_kinds":
                traits[trait] = tuple(value.split(","))
            elif value[:1] == "@":
                traits[trait] = _rule(value[1:])
            else:
                traits[trait] = _literal(value or "True")
        elif word[0] == "~":
            traits["read_over"] = (*traits.get("read_over", ()), word[1:])
        elif word[0] == "-":
            del traits["defaults"][word[1:]]
        else:
            sign = next(letter for letter in word if letter in _SIGNS)
            key, _, value = word.partition(sign)
            trait = _rule(value) if sign == "@" else _literal(value)
            traits.setdefault(_SIGNS[sign], {})[key] = trait
    return Family(model, **traits)


_SIGNS = {
    "=": "defaults",
    ">": "aliases",
    "+": "switches",
    "!": "only",
    ":": "roles",
    "@": "mixers",
}
"""What the sign inside a word says: key=default, spelling>key, key+biases, key!only value,
key:what it stands for, kind of layer@its mixer. Before a word: -no key of it, ~key read
over, .trait (=value, or =@rule)."""

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
"""The keys of a Llama, which a family has where its row says nothing else."""

FAMILIES: dict[str, Family] = {
    words[0]: _row(words[1:])
    for words in map(str.split, ROWS.replace("\n    ", " ").strip().split("\n"))
}
"""The families that are known, by `model_type`."""

COMMON = ["gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe"]
"""The families that an error names, of all that are known."""
