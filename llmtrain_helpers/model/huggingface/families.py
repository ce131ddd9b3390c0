"""Families of models: one row of traits for each `model_type` of a `config.json`.

Shared by all chapters. A row describes the family's class in transformers: which
keys its files have and their defaults, its norms, biases and gates, the layers with
experts, how far each layer looks. `configs` uses them to read files.

Source: the configuration and modelling classes of Hugging Face transformers 5.23.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from inspect import isfunction
from typing import Any

from llmtrain_helpers.checks import Size, choice, refuse
from llmtrain_helpers.model.huggingface import makers, rules
from llmtrain_helpers.model.huggingface.family_rows import ROWS
from llmtrain_helpers.model.huggingface.rules import Kinds, Sparse, Values
from llmtrain_helpers.model.layers import Mixer, Stack

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
"""The meaning of a key, if it's not its name."""


@dataclass(frozen=True)
class Family:
    """How to read the files of one `model_type`: a row of `family_rows`, as a value.

    What the files say:

    model             the class in transformers whose parameters are counted
    defaults          the keys of the files, with their values where a file leaves them out
    aliases           second spellings, each with its key
    only              keys of which one value alone is known
    read_over         keys that change no matrix
    roles             keys that stand for something else than `ROLES` says
    null_is_default   a null says no more than a key left out
    any_kinds         a `layer_types` of another length than the stack says nothing
    any_act           the activation does not tell whether the MLP has a gate

    Biases by their letters: q, k, v, o of attention (a: of latent attention), m of the
    MLP, e of the experts, s of the shared one, r of the router, h of the head:

    bias              the letters of biases that there always are
    switches          keys, each with the letters of the biases that it brings

    Norms:

    norm_size         parameters of a norm for each value: 1 (it scales), 2 (and shifts) or 0
    norms             how many a layer has
    final_norm        `norm_size` of the last norm, where it is another
    embedding_norm    `norm_size` of a norm behind the embedding; 0: there is none
    qk_norm           norms on queries and keys, "head", "each" or "" as in `Attention`
    qk_norm_if        the key that says whether there are such norms
    qk_norm_size      their `norm_size`
    inner_norms       a norm on what comes out of attention, and one inside the MLP

    Mixers:

    kinds             the kind of all layers, or a rule that says them, if the file does not
    attention_kinds   the kinds of attention that a file's `layer_types` may name
    mixers            a function for each kind whose mixer is not the attention of these traits
    gate              a gate on what comes out of attention, as in `Attention`
    sinks             a score for each head that belongs to no token
    differential      scores are computed twice, and their difference counts
    rounds_head_dim   a head's size is rounded down where heads do not divide the hidden size
    mixer_more        further parameters of attention

    MLPs and experts:

    mlp               whether layers have an MLP at all
    gated             whether MLPs and experts have a gate
    dense_size        the size of an MLP without experts, where it is not `intermediate_size`
    mlp_more          further parameters of an MLP without experts
    sparse            which layers have experts, where not all have
    shared_gate       a number a token that says how much of the shared expert counts
    always_shared     there is one shared expert, as large as the others, without a key
    score_correction  a parameter for each expert, which corrects its score

    The whole model:

    parallel          mixer and MLP read the same; a word is the key that says whether they do
    positions         the rows of a learned position table beyond the longest sequence
    embedding_size    the width of an embedding narrower than the model; 0: it is not
    more              further parameters beside the layers
    stack             a function that makes all layers, where they are built otherwise
    """

    model: str
    defaults: Mapping[str, object]
    aliases: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, object] = field(default_factory=dict)
    read_over: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    null_is_default: bool = False
    any_kinds: bool = False
    any_act: bool = False

    bias: str = ""
    switches: Mapping[str, str] = field(default_factory=dict)

    norm_size: int = 1
    norms: int | Callable[[Values, bool], int] = 2
    final_norm: int | Callable[[Values], int] | None = None
    embedding_norm: int = 0
    qk_norm: str = ""
    qk_norm_if: str = ""
    qk_norm_size: int = 1
    inner_norms: bool = False

    kinds: str | Callable[[Values], Kinds] = "full_attention"
    attention_kinds: tuple[str, ...] = ("full_attention", "sliding_attention")
    mixers: Mapping[str, Callable[[Values], Mixer]] = field(default_factory=dict)
    gate: str = ""
    sinks: bool = False
    differential: bool = False
    rounds_head_dim: bool = False
    mixer_more: Callable[[Values], Size] | None = None

    mlp: bool = True
    gated: bool = True
    dense_size: Callable[[Values], Size] | None = None
    mlp_more: int = 0
    sparse: Callable[[Values], Sparse] | None = None
    shared_gate: bool = False
    always_shared: bool = False
    score_correction: bool = False

    parallel: bool | str = False
    positions: int | None = None
    embedding_size: Callable[[Values], Size] | None = None
    more: Callable[[Values], Size] | None = None
    stack: Callable[[Values, str], Stack] | None = None

    def has(self, key: str) -> bool:
        """Tell whether this is one of the family's keys, or an alias of one."""
        return key in self.defaults or key in self.aliases

    def role(self, key: str) -> str:
        """Return the meaning of a key of the family's files."""
        return self.roles.get(key, ROLES.get(key, key))


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
"""The keys of a Llama, which a family has by default."""


def families_of(rows: str) -> dict[str, Family]:
    """Return the families that rows describe, by `model_type`; `family_rows` explains rows.

    Raises ValueError for a row that can't be read, naming it and the bad word.

    >>> families_of("mine Llama hidden_size=64 .gated=no")["mine"].gated
    False
    """
    families: dict[str, Family] = {}
    words_of: dict[str, list[str]] = {}
    lines = rows.replace("\n    ", " ").splitlines()
    for name, *words in filter(None, map(str.split, lines)):
        try:
            if name in families:
                refuse("model_type", name, "already has a row")
            words_of[name] = [x for word in words for x in _spelt_out(word, words_of)]
            families[name] = _family(words_of[name])
        except ValueError as error:
            raise ValueError(f"row={name!r} can't be read: {error}") from None
    return families


def _spelt_out(word: str, words_of: Mapping[str, list[str]]) -> list[str]:
    """Return a word of a row, or the words of the row that ^ names."""
    if word[0] != "^":
        return [word]
    if word[1:] not in words_of:
        refuse("word", word, "doesn't name a row above")
    return words_of[word[1:]][1:]


def _family(words: list[str]) -> Family:
    """Make a family from the words of its row after the name: its class, then its traits."""
    if not words:
        refuse("words", words, "don't name a class of transformers")
    model = words[0] if "Model" in words[0] else f"{words[0]}ForCausalLM"
    traits: dict[str, Any] = {"defaults": dict(_LLAMA)}
    for word in words[1:]:
        _take(word, traits)
    family = Family(model, **traits)
    parallel = [family.parallel] if isinstance(family.parallel, str) else []
    used = {*family.aliases.values(), *family.switches, *family.roles, *parallel}
    for key in sorted(used | {family.qk_norm_if} - {""}):
        if key not in family.defaults:
            refuse("key", key, "is used, but it has no default: add key=default")
    return family


def _take(word: str, traits: dict[str, Any]) -> None:
    """Add a word of a row to the traits; `family_rows` explains the signs."""
    sign_of_word, rest = word[0], word[1:]
    if sign_of_word == ".":
        name, _, value = rest.partition("=")
        traits[name] = _trait(word, name, value or "True")
    elif sign_of_word == "~":
        traits["read_over"] = (*traits.get("read_over", ()), rest)
    elif sign_of_word == "-":
        if traits["defaults"].pop(rest, word) == word:
            refuse("word", word, "removes what isn't a key of a Llama")
    else:
        sign = next((letter for letter in word if letter in _SIGNS), " ")
        key, _, value = word.partition(sign)
        if not key or not value:
            refuse("word", word, f"isn't a key and a value with one of {' '.join(_SIGNS)} between")
        trait = _rule(word, value) if sign == "@" else _literal(value)
        if sign == "+":
            _check_letters(word, value)
        traits.setdefault(_SIGNS[sign], {})[key] = trait


_SIGNS = {
    "=": "defaults",
    ">": "aliases",
    "+": "switches",
    "!": "only",
    ":": "roles",
    "@": "mixers",
}
"""The traits that each sign inside a word adds its key and value to."""


def _trait(word: str, name: str, text: str) -> Any:
    """Parse the value that a word gives a trait; it has to have the trait's type."""
    choice("trait", name, _TRAITS)
    value = _rule(word, text[1:]) if text[0] == "@" else _literal(text)
    if name == "attention_kinds":
        value = tuple(text.split(","))
    if name == "bias":
        _check_letters(word, str(value))
    kind_of_value = "Callable" if callable(value) else type(value).__name__
    if kind_of_value not in _TRAITS[name]:
        kinds = " or ".join("@rule" if kind == "Callable" else kind for kind in _TRAITS[name])
        refuse("word", word, f"gives {name} something other than {kinds}")
    return value


_TRAITS = {
    trait.name: re.sub(r"\[.*\]", "", str(trait.type)).split(" | ")
    for trait in fields(Family)
    if trait.name not in {*_SIGNS.values(), "model", "read_over"}
}
"""The traits that a word with a dot sets, with their types."""


def _check_letters(word: str, letters: str) -> None:
    """Refuse letters that don't stand for a bias."""
    if not {*letters} <= {*"qkvoamesrh"}:
        refuse("word", word, "names biases other than q, k, v, o, a, m, e, s, r and h")


def _rule(word: str, text: str) -> Callable[..., Any]:
    """Make the function of `rules` or `makers` that a word names, using the values after it."""
    name, *values = text.split(":")
    if name not in _RULES:
        refuse("word", word, f"names {name!r}, which isn't a function of rules or makers")
    rule = _RULES[name]
    makes_one = "x" not in rule.__annotations__  # out of the values, and reads no file
    if not makes_one and not values:
        return rule
    if makes_one and all(values):
        with suppress(TypeError):
            function: Callable[..., Any] = rule(*map(_literal, values))
            return function
    refuse("word", word, f"gives {name} values after a colon that it doesn't take")


_RULES = {
    name: rule
    for module in (rules, makers)
    for name, rule in vars(module).items()
    if isfunction(rule) and rule.__module__ == module.__name__ and name[0] != "_"
}
"""The functions that a row can name."""


def _literal(text: str) -> Any:
    """Parse a value of a row: a number, a word, a list of them, or nothing."""
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

FAMILIES = families_of(ROWS)
"""The known families, by `model_type`."""

OTHER_NAMES = {
    "kimi_k2": "deepseek_v3",
    **dict.fromkeys(["qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text"], "qwen2"),
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "glm4v_moe_text": "glm4_moe",
    "granite_docling_text": "granite",
}
"""Names whose files have the keys and layers of a family, but different defaults: we read
them if they include all their sizes."""

COMMON = ["gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe"]
"""The known families that an error lists."""
