"""How a Hugging Face `config.json` becomes a shape, by its family's row of traits.

Shared by all chapters, through `Transformer.from_config`. A file is taken as
transformers takes it, or refused: a number is never silently wrong.

Source: the configuration and modelling classes of Hugging Face transformers 5.23.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
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
from llmtrain_helpers.families import FAMILIES, OLD, Family
from llmtrain_helpers.layers import (
    Attention,
    Experts,
    LatentAttention,
    Layer,
    Mixer,
    Mlp,
)
from llmtrain_helpers.rules import Values

_ONLY: dict[str, Any] = {
    "attention_bias": False,  # would put a bias on the output projection as well
    "mlp_bias": False,
    "add_cross_attention": False,
    "mlp_only_layers": [],  # layers without experts among layers with
    "decoder_sparse_step": 1,
    "use_bidirectional_attention": False,  # would halve the windows
    "per_layer_config": {},
}
"""Keys with the only value that is known, where a family does not know more of them."""

_ATTENTION = ("full_attention", "sliding_attention", "chunked_attention")
"""Kinds of layers that differ in where they look, and not in their matrices."""

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
"""Names by which the files of other decoders say how many matrices, and how large."""

_HARMLESS = {
    *("decoder_start_token_id", "encoder_no_repeat_ngram_size", "no_repeat_ngram_size"),
    *("max_window_layers", "sliding_window", "use_sliding_window", "layer_types"),
    *("sliding_window_pattern", "no_rope_layers", "no_rope_layer_interval"),
    *("num_logits_to_keep", "expert_selection_fn", "moe_norm_min", "moe_renormalize"),
}
"""Names that look like these, and change no matrix."""

_NORMS = {"rms_norm_eps": 1, "layer_norm_eps": 2, "layer_norm_epsilon": 2}
"""Names that say which norm there is, by the parameters that one has for each value."""

_ACTS = {
    **dict.fromkeys(["silu", "swish"], True),
    **dict.fromkeys(["relu2", "xielu", "gelu_new"], False),
}
_ACT_KEYS = ("hidden_act", "hidden_activation", "activation_function")
"""Activations that say whether the MLP has a gate."""

_LISTS = {
    *("layer_types", "mlp_layer_types", "mlp_only_layers", "layers_block_type"),
    *("attn_layer_indices", "full_attn_idxs", "moe_layers", "block_types"),
    "attention_layers",
}
"""Keys whose value is a list with something to say of each layer."""

_MAY_BE_ZERO = {
    *("first_k_dense_replace", "num_dense_layers", "max_window_layers"),
    *("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"),
    *("shared_expert_intermediate_size", "shared_intermediate_size"),
    *("moe_layer_start_index", "attn_layer_offset", "expert_layer_offset"),
    *("sliding_window", "num_nextn_predict_layers"),
}
"""Numbers that may be none."""

_MAY_BE_NULL = {
    *("sliding_window", "q_lora_rank", "attention_chunk_size", "mamba_d_ssm"),
    "num_nextn_predict_layers",
}
"""Keys of which null says that there is no such thing."""

MOST_LAYERS = 100_000
"""Of a stack of several kinds: no model has more."""


def shape(config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `Transformer` that a config gives.

    Its `sequence_length` is the longest that the file knows.

    >>> shape({"model_type": "gpt2"})["num_positions"]
    1024
    """
    family = _family(config)
    _check_model(config, family)
    for key, value in config.items():
        _check_structure(str(key)[:60], value, family)
    _check_telling(config, family)
    said = {family.role(key): _said(key, config, family) for key in family.defaults}
    _check_fit(said, family)
    return _model({role: value for role, (_, value) in said.items()}, family)


def _family(config: Mapping[str, Any]) -> Family:
    if not isinstance(config, Mapping):
        refuse("config", config, "is no mapping of names to values")
    name = config.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        # The nearest is not offered: a name that looks alike is another shape.
        known = [*OLD, f"and {len(FAMILIES) - len(OLD)} more in families.FAMILIES"]
        refuse("model_type", name, f"is unknown. Known: {', '.join(known)}")
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
    only = {**({} if family.has(key) else _ONLY), **family.only}
    if key in only and is_array(value):
        refuse(key, value, "is an array: here it must be one value")
    if key in only and not (value == only[key] or (not value and not only[key])):
        refuse(key, value, f"has no place in this shape: only {only[key]!r} has")
    if key == "layer_types" and not (family.has(key) or _all_attention(value)):
        refuse(key, value, f"has no place in this shape: only {_ATTENTION} have")
    is_there = is_array(value) or value  # zero, false and empty say that it is not
    if is_there and key not in only and _is_foreign(key, family):
        refuse(key, value, f"does not belong to {family.model}: its part is unknown")


def _all_attention(kinds: Any) -> bool:
    return isinstance(kinds, list) and all(kind in _ATTENTION for kind in kinds)


def _is_foreign(key: str, family: Family) -> bool:
    if family.has(key) or key in _HARMLESS or key in family.read_over:
        return False
    if key in _NORMS:
        return family.norm_size not in (0, _NORMS[key])
    known = FAMILIES.values()
    elsewhere = any(other.has(key) or key in other.read_over for other in known)
    return elsewhere or _STRUCTURE.search(key) is not None


def _check_telling(config: Mapping[str, Any], family: Family) -> None:
    """Refuse a file that another family has written: it says so without saying it."""
    for key in () if family.any_act or not family.mlp else _ACT_KEYS:
        gated = _ACTS.get(str(config.get(key)), family.gated)
        if gated != family.gated and not (old(family) and gated):
            problem = f"is not what {family.model} has between its matrices"
            refuse(key, config[key], problem)
    given = (str(key) for key, value in config.items() if is_array(value) or value)
    roles = {family.role(family.aliases.get(key, key)) for key in given}
    if "vocab_size" not in roles or len(roles & _SIZES) < 4:
        return
    for key in family.defaults:
        role, default = family.role(key), family.defaults[key]
        if {role, key} & _KINDS and role not in roles and default:
            problem = f"is left out, which a file of {family.model} says with its sizes"
            refuse(key, None, problem)


_SIZES = {"hidden_size", "num_layers", "num_heads", "vocab_size", "intermediate_size"}
"""What a whole file says; one that says none of it has the class's defaults."""

_KINDS = {
    *("expert_size", "shared_size", "shared_experts", "head_dim"),
    *("dense_intermediate_size", "intermediate_size_mlp", "intermediate_size"),
    *("num_positions", "n_positions", "mamba_d_ssm", "layer_group_size", "block_size"),
    *("num_experts", "kv_rank", "mamba_d_state", "state_size", "ssm_state_size"),
    *("linear_conv_kernel_dim", "conv_L_cache", "conv1d_width"),
}
"""What only files with such layers say."""


def old(family: Family) -> bool:
    """Whether it is one of those that were known first."""
    return any(family is FAMILIES[name] for name in OLD)


def _said(key: str, config: Mapping[str, Any], family: Family) -> tuple[str, Any]:
    """What a file says of a key, after the spelling that it uses; or the default."""
    spellings = [key, *(name for name, own in family.aliases.items() if own == key)]
    given = [name for name in spellings if config.get(name) is not None]
    if not given:
        return key, _default(key, config, family)
    name, value = given[0], _checked(given[0], key, config[given[0]], family)
    for other in given[1:]:
        if _checked(other, key, config[other], family) != value:
            refuse(other, config[other], f"contradicts {name}={show(value)}")
    return name, value


def _default(key: str, config: Mapping[str, Any], family: Family) -> Any:
    """What holds for a key that is left out, or null."""
    if key in _MAY_BE_NULL and key in config:
        return None
    if family.role(key) != "num_kv_heads":
        default = family.defaults[key]
        null = key in config and default is not None
        if null and not old(family):
            refuse(key, None, f"is null, where {family.model} has {show(default)}")
        return default
    value = None if key in config else family.defaults[key]
    if value is None:  # in all classes this means: as many as there are heads
        heads = next(k for k in family.defaults if family.role(k) == "num_heads")
        value = _said(heads, config, family)[1]
    return value


def _checked(name: str, key: str, value: Any, family: Family) -> Any:
    default, role = family.defaults[key], family.role(key)
    if is_array(value) and not _sweeps(role, family):
        refuse(name, value, "is an array: here it must be one number")
    if isinstance(default, bool):
        return flag(name, value)
    if key in _LISTS:
        return _list(name, value)
    if default == "auto" and value == "auto":
        return value
    if isinstance(default, float):
        return quantity(name, value)
    if role not in ("num_experts", "experts_per_token"):
        least = -1 if key == "moe_layer_end_index" else int(key not in _MAY_BE_ZERO)
        return count(name, value, least)
    # Without experts, a layer of qwen3_moe has a plain MLP, and one of mixtral none.
    least = int("moe_intermediate_size" not in family.defaults)
    return single(name, value, least)


def _sweeps(role: str, family: Family) -> bool:
    """Whether many values of this can be read at once: where no rule takes one."""
    ruled = family.mixers or family.stack or family.dense_size
    plain = _SIZES | {"num_kv_heads", "head_dim", "sequence_length", "num_positions"}
    plain |= {"num_experts", "experts_per_token"}  # refused in their own words
    return role in plain and (old(family) or not ruled)


def _list(name: str, value: Any) -> list[Any]:
    """A list of words or of whole numbers, and nothing else."""
    plain = isinstance(value, list | tuple)
    if not plain or not all(type(item) in (str, int) for item in value):
        problem = "has no place in this shape: only a list of names or numbers has"
        if name == "layer_types":
            problem = f"has no place in this shape: only {_ATTENTION} have"
        refuse(name, value, problem)
    return list(value)


def _check_fit(said: Mapping[str, tuple[str, Any]], family: Family) -> None:
    """Refuse numbers that do not go together, by the names that the file gives them."""
    if "num_heads" in said and "kv_rank" not in said:
        heads, of_keys = said["num_heads"], said.get("num_kv_heads")
        if said.get("head_dim", ("", None))[1] is None and not family.floor:
            divides(**dict([said["hidden_size"], heads]))
        if of_keys and of_keys[1] is not None:
            divides(**dict([heads, of_keys]))
    if "num_experts" in said:
        _check_experts(said["experts_per_token"], said["num_experts"])


def _check_experts(chosen: tuple[str, Any], experts: tuple[str, Any]) -> None:
    for name, value in (experts, chosen):
        if value is None:
            refuse(name, value, "leaves open how many experts there are, or are met")
    at_most(**dict([chosen, experts]))
    if experts[1] and not chosen[1]:
        refuse(*chosen, f"leaves {experts[0]}={experts[1]} unused")


# --- from values to layers


def _model(x: Values, family: Family) -> dict[str, Any]:
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
    made = {
        pair: _layer(*pair, x, family) for pair in {*zip(kinds, sparse, strict=True)}
    }
    runs = groupby(zip(kinds, sparse, strict=True))
    return tuple((len([*run]), made[pair]) for pair, run in runs)


def _listed(x: Values) -> int:
    """How many layers there are, where each is looked at."""
    l = single("num_hidden_layers", x["num_layers"])
    at_most(num_hidden_layers=l, **{"what a stack of several kinds has": MOST_LAYERS})
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
        refuse(
            "layer_types", given, f"has no place in this shape: only {_ATTENTION} have"
        )
    if len(given) != l:
        if old(family):
            return "full_attention"
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
        *(x["num_heads"], x.get("q_rank") or 0, x["kv_rank"], *sizes),
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
