"""Configs, family by family: read as transformers reads them, or refused in words."""

import json
import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from llmtrain_helpers import Transformer, count_parameters, published
from llmtrain_helpers.model.huggingface import family_rows
from llmtrain_helpers.model.huggingface.configs import left_out
from llmtrain_helpers.model.huggingface.families import (
    COMMON,
    FAMILIES,
    OTHER_NAMES,
    Family,
    families_of,
)
from llmtrain_helpers.model.recurrences import LightningAttention
from tests.config_files import BUILT, FILES, PARAMETERS

every_family = pytest.mark.parametrize("family", COMMON)
every_file = pytest.mark.parametrize("name", FILES)

LLAMA = {
    "num_layers": 32,
    "hidden_size": 4096,
    "num_heads": 32,
    "num_kv_heads": 32,
    "head_dim": 128,
    "intermediate_size": 11008,
    "vocab_size": 32000,
    "sequence_length": 2048,
}
MISTRAL = {"num_kv_heads": 8, "intermediate_size": 14336, "sequence_length": 131072}
QWEN = {"intermediate_size": 22016, "vocab_size": 151936, "sequence_length": 32768}
DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": MISTRAL,
    "mixtral": MISTRAL | {"num_experts": 8, "experts_per_token": 2},
    "qwen2": QWEN | {"qkv_bias": True},
    "qwen3": QWEN | {"qk_norm": True},
    "qwen3_moe": QWEN
    | {"num_layers": 24, "hidden_size": 2048, "num_kv_heads": 4, "head_dim": 64}
    | {"intermediate_size": 768, "num_experts": 128, "experts_per_token": 8}
    | {"qk_norm": True},
}
"""The class defaults of transformers 5.23, where they differ from those of llama."""

GPT2 = Transformer.gpt(12, 768, 12, 50257, 1024, tied_embeddings=True)


def read(family: str, **keys: Any) -> Transformer:
    return Transformer.from_config({"model_type": family, **keys})


def refusal(family: str, **keys: Any) -> str:
    """The words in which a config is refused."""
    with pytest.raises(ValueError, match="=") as caught:
        read(family, **keys)
    assert type(caught.value) is ValueError
    assert len(str(caught.value)) < 400
    return str(caught.value)


@every_file
def test_a_published_file_gives_the_parameters_of_its_weights(name, tmp_path) -> None:
    path = tmp_path / "config.json"
    path.write_text(FILES[name], "utf-8")
    model = published.read_config(path)
    assert count_parameters(model).total == PARAMETERS[name]
    assert model.sequence_length == json.loads(FILES[name]).get("max_position_embeddings", 1024)


@pytest.mark.parametrize("name", BUILT)
def test_a_file_gives_the_parameters_that_transformers_builds(name: str) -> None:
    """tests/ground_truth builds them again."""
    file, built = BUILT[name]
    assert count_parameters(Transformer.from_config(file)).total == built


@every_family
def test_an_empty_file_has_every_default_of_the_class(family: str) -> None:
    shape = GPT2 if family == "gpt2" else Transformer(**(LLAMA | DEFAULTS[family]))
    assert read(family) == shape


def test_the_size_of_a_head_is_the_classes_or_a_share_of_the_hidden_size() -> None:
    narrow = {"hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 8}
    assert read("qwen3", **narrow).head_dim == 128
    for family in ("llama", "mistral", "mixtral", "qwen2", "qwen3_moe"):
        assert read(family, **narrow).head_dim == 64
        assert read(family, **narrow, head_dim=None).head_dim == 64
        assert read(family, **narrow, head_dim=96).head_dim == 96


def test_without_experts_the_plain_mlps_default_holds() -> None:
    model = read("qwen3_moe", num_experts=0, num_experts_per_tok=0)
    assert (model.intermediate_size, model.num_experts) == (6144, 0)
    assert "num_local_experts=0" in refusal("mixtral", num_local_experts=0, num_experts_per_tok=0)


# --- files of more than text, and names that stand for a family

KIMI_K2 = (
    {"model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"], "vocab_size": 163840}
    | {"num_hidden_layers": 61, "hidden_size": 7168, "intermediate_size": 18432}
    | {"num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536}
    | {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
    | {"n_routed_experts": 384, "num_experts_per_tok": 8, "moe_intermediate_size": 2048}
    | {"n_shared_experts": 1, "first_k_dense_replace": 1, "max_position_embeddings": 131072}
    | {"moe_layer_freq": 1, "num_nextn_predict_layers": 0, "tie_word_embeddings": False}
    | {"auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"}}
)
QWEN3_VL_TEXT = (
    {"model_type": "qwen3_vl_moe_text", "vocab_size": 151936, "hidden_size": 2048}
    | {"num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4}
    | {"head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768}
    | {"num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1}
    | {"mlp_only_layers": [], "max_position_embeddings": 262144}
)
SEES = {"architectures": ["SeesForConditionalGeneration"], "vision_config": {"hidden_size": 64}}


def total(config: dict[str, Any]) -> int:
    return int(count_parameters(Transformer.from_config(config)).total)


def test_kimi_k2_is_read_as_the_class_that_its_file_names() -> None:
    assert total(KIMI_K2) == total({**KIMI_K2, "model_type": "deepseek_v3"}) == 1_026_408_209_408
    with pytest.raises(ValueError, match=r"architectures=.* only .'DeepseekV3ForCausalLM'. is"):
        total({**KIMI_K2, "architectures": ["KimiForCausalLM"]})


def test_a_model_that_sees_is_read_by_its_text() -> None:
    untied = {"model_type": "qwen3_vl_moe", "tie_word_embeddings": False}
    whole = {**SEES, **untied, "text_config": QWEN3_VL_TEXT}
    assert total(whole) == total(QWEN3_VL_TEXT) == 30_532_122_624
    assert published.parse_config(whole) == published.parse_config(json.dumps(whole))
    assert left_out(whole) == {}
    assert published.parse_config(whole).sequence_length == 262_144


@pytest.mark.parametrize("family", sorted({*FAMILIES} - {"deepseek_v2", "dots1"}))
def test_a_wrapper_of_each_family_is_its_text(family: str) -> None:
    for key in ("text_config", "llm_config", "language_config"):
        whole = {**SEES, "model_type": "sees", key: {"model_type": family}}
        assert Transformer.from_config(whole) == read(family)


def test_the_whole_file_says_whether_its_head_is_tied() -> None:
    for family, tied in (("llama", True), ("gemma3_text", False)):
        for value in (None, not tied, tied):
            text = {"model_type": family, "tie_word_embeddings": value}
            whole = {"model_type": "sees", "text_config": text, "tie_word_embeddings": tied}
            assert Transformer.from_config(whole) == read(family, tie_word_embeddings=tied)


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_name_that_stands_for_a_family_says_all_of_its_sizes(name: str) -> None:
    """As transformers builds it; its own defaults are others, so none is taken for granted."""
    family = FAMILIES[OTHER_NAMES[name]]
    sizes = {key: value for key, value in family.defaults.items() if value is not None}
    if "num_key_value_heads" in family.defaults:
        sizes.setdefault("num_key_value_heads", sizes["num_attention_heads"])
    assert read(name, **sizes) == read(OTHER_NAMES[name], **sizes)
    counted = [key for key in sizes if family.role(key) in COUNTED]
    assert len(counted) >= 6
    for key in counted:
        left = {other: value for other, value in sizes.items() if other != key}
        assert refusal(name, **left).startswith(f"{key}=None is missing: a file of")


COUNTED = {"num_layers", "hidden_size", "num_heads", "vocab_size", "intermediate_size"}
COUNTED |= {"num_kv_heads", "num_experts", "experts_per_token", "expert_size", "first_dense"}
COUNTED |= {"q_rank", "kv_rank", "plain_dim", "rotary_dim", "value_dim", "shared_experts"}


@pytest.mark.parametrize("text", [{}, {"model_type": "gemma3n_text"}, {"model_type": ["llama"]}])
def test_a_text_that_is_not_known_is_refused_without_a_promise(text: dict[str, Any]) -> None:
    message = refusal("gemma3n", text_config=text)
    name = text.get("model_type")
    assert message.startswith(f"model_type={name!r} in text_config is unknown. Known: gpt2, ")
    assert "give" not in message
    nested = {"model_type": "sees", "text_config": {"model_type": "llama"}}
    assert "model_type='sees' in text_config is" in refusal("sees", text_config=nested)


def test_a_size_that_is_zero_is_said() -> None:
    sparse = {**KIMI_K2, "first_k_dense_replace": 0}
    assert total(sparse) == total({**sparse, "model_type": "deepseek_v3"}) > total(KIMI_K2)


def test_deepseek_v3_2_is_not_read_as_v3() -> None:
    message = refusal("deepseek_v32", **{key: KIMI_K2[key] for key in KIMI_K2 if key[0] != "m"})
    assert message.startswith("model_type='deepseek_v32' is unknown. Known: gpt2, ")
    assert "text_config" not in message


@pytest.mark.parametrize("config", [None, 3, ["a"], b"{}"])
def test_what_is_neither_text_nor_a_dict_is_refused(config: Any) -> None:
    with pytest.raises(ValueError, match=r"^config=.* is neither the text of a config.json nor a"):
        published.parse_config(config)


# --- heads of keys and values


@pytest.mark.parametrize(
    ("family", "heads"),
    [("llama", 64), ("mistral", 8), ("mixtral", 8), ("qwen2", 32), ("qwen3", 32), ("qwen3_moe", 4)],
)
def test_heads_of_keys_left_out_are_the_classes_and_null_as_many(family, heads) -> None:
    assert read(family, num_attention_heads=64).num_kv_heads == heads
    null = {"num_attention_heads": 64, "num_key_value_heads": None}
    assert read(family, **null).num_kv_heads == 64


def test_heads_that_do_not_make_up_the_hidden_size_are_refused_where_they_must() -> None:
    """Helium's matrix back is hidden by hidden: with other heads it cannot be run."""
    sizes = {"hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 8}
    assert read("helium", **sizes, head_dim=8).head_dim == 8
    for d in (4, 16):
        message = refusal("helium", **sizes, head_dim=d)
        assert message == f"head_dim={d} times 8 heads is not hidden_size=64"


# --- how far a layer looks

WINDOWS = [
    ("qwen2", 2, [0, 0, 64, 64]),
    ("qwen3", 3, [0, 0, 0, 64]),
    ("qwen3_moe", 2, [64, 64, 64, 64]),
    ("qwen2_moe", 3, [64, 0, 64, 0]),
    ("qwen2_moe", 1, [64, 0, 0, 0]),
    ("smollm3", 2, [0, 0, 0, 64]),
]
"""Of four layers, by `max_window_layers`: those that transformers gives the window of 64."""


@pytest.mark.parametrize(("family", "first", "windows"), WINDOWS)
def test_a_window_holds_where_it_is_in_use_and_only_there(family, first, windows) -> None:
    keys = {"num_hidden_layers": 4, "max_window_layers": first, "sliding_window": 64}
    used, unused = (read(family, **keys, use_sliding_window=used) for used in (True, False))
    per_layer = [layer.mixer.window for n, layer in used.layers for _ in range(n)]
    assert per_layer == windows
    assert [layer.mixer.window for _, layer in unused.layers] == [0]
    assert read(family, **keys).layers == unused.layers


def test_a_gpt_neo_looks_far_and_near_in_turn_or_as_the_file_says() -> None:
    plain = read("gpt_neo", num_layers=4)
    assert [layer.mixer.window for _, layer in plain.layers] == [0, 256, 0, 256]
    named = read("gpt_neo", num_layers=3, attention_layers=["local", "global", "global"])
    assert [(n, layer.mixer.window) for n, layer in named.layers] == [(1, 256), (2, 0)]
    for wrong in (["local"], ["local", "global", "far"]):
        message = refusal("gpt_neo", num_layers=3, attention_layers=wrong)
        assert message.startswith("attention_layers=")


def test_a_stack_of_several_kinds_has_at_most_100_000_layers() -> None:
    kinds = {"use_sliding_window": True, "max_window_layers": 7}
    assert read("qwen2", num_hidden_layers=100_000, **kinds).num_layers == 100_000
    for keys in (kinds, {**kinds, "layer_types": ["full_attention"]}):
        message = refusal("qwen2", num_hidden_layers=100_001, **keys)
        assert message.startswith("num_hidden_layers=100001 ")
    assert refusal("mellum", num_hidden_layers=10**6, mlp_layer_types=["dense"]).startswith("num_h")
    assert read("qwen2", num_hidden_layers=10**6).num_layers == 10**6  # one kind


@pytest.mark.parametrize(
    "kinds",
    [["sparse"], ["sparse"] * 5, ["sparse", "dense", "full", "dense"], [1, 0, 1, 0]],
    ids=str,
)
def test_kinds_of_mlps_that_are_not_one_for_each_layer_are_refused(kinds) -> None:
    message = refusal("mellum", num_hidden_layers=4, mlp_layer_types=kinds)
    assert message.startswith("mlp_layer_types=")
    assert message.endswith("aren't 4 words, each 'dense' or 'sparse'")


# --- which model, and whose code


@every_family
def test_the_familys_own_language_model_is_read_with_code_or_without(family) -> None:
    own = [FAMILIES[family].model]
    code = {"AutoModel": "modeling.Model"}
    assert read(family, architectures=own, auto_map=code) == read(family)
    for nothing in (None, []):
        assert read(family, architectures=nothing, auto_map=None) == read(family)


@pytest.mark.parametrize(
    "given",
    [
        ["Qwen3ForSequenceClassification"],
        ["Qwen3Model"],
        ["Qwen3ForRewardModel"],
        ["LlamaForCausalLM"],
        ["Qwen3ForCausalLM", "Qwen3Model"],
        "Qwen3ForCausalLM",
        [["Qwen3ForCausalLM"]],
        [3],
        3,
        {"a": 1},
        True,
        ["x" * 10**5],
    ],
    ids=lambda given: str(given)[:40],
)
def test_another_model_than_the_familys_is_refused(given) -> None:
    message = refusal("qwen3", architectures=given)
    assert message.startswith("architectures=")
    assert "only ['Qwen3ForCausalLM'] is" in message


@every_family
def test_code_of_its_own_is_refused_where_no_class_is_named(family: str) -> None:
    message = refusal(family, auto_map={"AutoModelForCausalLM": "modeling.Mine"})
    assert message.startswith("auto_map=")
    assert FAMILIES[family].model in message
    assert refusal(family, auto_map={"a": "b"}, architectures=[]).startswith("auto_map")


@pytest.mark.parametrize("name", ["llama4", "qwen", "mistral3", "zamba", "rwkv"])
def test_no_family_is_offered_for_one_that_is_not_known(name: str) -> None:
    message = refusal(name)
    assert "did you mean" not in message
    more = f"and {len(FAMILIES) - len(COMMON)} more in families.FAMILIES"
    assert message.endswith(f"is unknown. Known: {', '.join(COMMON)}, {more}")


# --- keys


@every_family
@pytest.mark.parametrize("value", [True, False, "yes", 3, [1]], ids=str)
def test_the_packages_own_switches_are_not_the_files(family: str, value) -> None:
    keys = {"qkv_bias": value, "qk_norm": value, "use_qk_norm": value}
    assert read(family, **keys) == read(family)


@pytest.mark.parametrize(
    ("family", "keys"),
    [
        ("gpt2", {"num_hidden_layers": 24, "hidden_size": 1024}),
        ("gpt2", {"num_attention_heads": 16, "max_position_embeddings": 512}),
        ("gpt2", {"n_layer": 24, "n_embd": 768, "n_head": 6, "n_positions": 512}),
        ("gpt2", {"n_inner": 1000}),
        ("mixtral", {"num_experts": 4}),
        ("qwen3_moe", {"num_experts": 64}),
        ("qwen3_moe", {"num_local_experts": 64}),
    ],
    ids=str,
)
def test_a_family_has_its_own_second_spellings(family: str, keys) -> None:
    if keys.get("hidden_size") == 1024:
        keys = keys | {"num_attention_heads": 16}
    assert read(family, **keys) != read(family)


def test_a_gpt2s_mlp_is_as_wide_as_the_file_says() -> None:
    assert read("gpt2", n_inner=1000).intermediate_size == 1000
    assert read("gpt2", n_inner=None, n_embd=96).intermediate_size == 384


GPT2_ONLY = ["n_layer", "n_embd", "n_head", "n_positions", "n_inner"]
EXPERTS_ONLY = ["num_experts", "num_local_experts", "num_experts_per_tok"]
FOREIGN = [
    *[(family, key) for family in DEFAULTS for key in GPT2_ONLY],
    *[(f, key) for f in ("gpt2", "llama", "mistral", "qwen2") for key in EXPERTS_ONLY],
    *[("gpt2", key) for key in ("intermediate_size", "head_dim")],
    *[("gpt2", "num_key_value_heads"), ("mixtral", "moe_intermediate_size")],
    ("bailing_hybrid", "n_routed_experts"),
]


@pytest.mark.parametrize(("family", "key"), FOREIGN)
def test_a_key_of_another_family_is_refused(family: str, key: str) -> None:
    assert refusal(family, **{key: 4}).startswith(f"{key}=4 ")
    for nothing in (None, 0):
        assert read(family, **{key: nothing}) == read(family)


STRUCTURE = {
    **dict.fromkeys(["kv_lora_rank", "q_lora_rank", "laurel_rank", "lora_r"], 512),
    **dict.fromkeys(["n_routed_experts", "n_shared_experts", "num_shared_experts"], 2),
    **dict.fromkeys(["moe_num_experts", "moe_layer_freq", "moe_layers"], 1),
    **dict.fromkeys(["shared_expert_intermediate_size", "shared_intermediate_size"], 8),
    **dict.fromkeys(["first_k_dense_replace", "num_nextn_predict_layers"], 1),
    **dict.fromkeys(["attn_layer_period", "expert_layer_period"], 4),
    **dict.fromkeys(["full_attention_interval", "interleave_moe_layer_step"], 4),
    **dict.fromkeys(["multi_query", "alibi", "new_decoder_architecture"], True),
    **dict.fromkeys(["parallel_attn", "use_parallel_residual"], True),
    **dict.fromkeys(["bias", "use_bias", "mlp_bias", "attention_bias"], True),
    **dict.fromkeys(["add_cross_attention", "is_encoder_decoder"], True),
    **dict.fromkeys(["d_model", "dim", "n_layers", "n_heads", "n_kv_heads"], 64),
    **dict.fromkeys(["num_layers", "num_heads", "v_head_dim", "qk_rope_head_dim"], 64),
    **dict.fromkeys(["ffn_dim", "ffn_hidden_size", "embedding_size", "d_ff"], 64),
    **dict.fromkeys(["mamba_d_state", "ssm_state_size", "linear_conv_kernel_dim"], 4),
    **dict.fromkeys(["hidden_size_per_layer_input", "num_kv_shared_layers"], 4),
    **dict.fromkeys(["moe_top_k", "shared_attention", "num_mtp_modules"], 2),
    **dict.fromkeys(["latent_size", "state_size", "inner_size", "ssm_cfg"], 64),
    **dict.fromkeys(["target_hidden_size", "ffn_multiplier", "mlp_ratio"], 4),
    **dict.fromkeys(["hidden_size_per_layer", "padded_vocab_size"], 64),
    **dict.fromkeys(["num_key_value_heads_per_layer", "num_query_groups"], 4),
    **dict.fromkeys(["attn_output_gate", "attn_type_list"], True),
    "attention_head_type": "multiquery",
    "hybrid_override_pattern": "M-M*",
    "layers_block_type": ["attention", "mamba"],
    "layer_types": ["full_attention", "linear_attention"],
    "mlp_only_layers": [0],
    "decoder_sparse_step": 2,
    "pruned_heads": {"0": [1]},
    "text_config": {"hidden_size": 64},
    "vision_config": {"hidden_size": 64},
}


@every_family
@pytest.mark.parametrize("key", STRUCTURE)
def test_structure_that_is_not_known_is_refused(family: str, key: str) -> None:
    assert refusal(family, **{key: STRUCTURE[key]}).startswith(f"{key}=")


@pytest.mark.parametrize(
    ("key", "value", "only"),
    [
        ("attention_bias", True, "only False does"),
        ("mlp_bias", True, "only False does"),
        ("add_cross_attention", True, "only False does"),
        ("mlp_only_layers", [0], r"only \[\] does"),
        ("decoder_sparse_step", 2, "only 1 does"),
        ("decoder_sparse_step", 0, "only 1 does"),
        *(("layer_types", types, "only .'full_attention'") for types in (3, True)),
        ("layer_types", "full_attention", "only .'full_attention'"),
        ("layer_types", [["full_attention"]], "only .'full_attention'"),
    ],
)
def test_what_a_shape_cannot_hold_is_said_with_what_it_can(key, value, only) -> None:
    assert re.search(f"doesn't fit this shape: {only}", refusal("llama", **{key: value}))


WANTED = {
    "qwen3_moe": ("decoder_sparse_step", 0, 1),
    "deepseek_v3": ("moe_layer_freq", 0, 1),
    "opt": ("layer_norm_elementwise_affine", False, True),
    "lfm3": ("use_attention_gate", False, True),
    "laguna": ("gating", False, True),
    "apertus": ("hidden_act", "", "xielu"),
    "hy_v3": ("num_shared_experts", 0, 1),  # transformers makes one as wide as the dense MLPs
}


@pytest.mark.parametrize("family", WANTED)
def test_a_value_that_says_no_is_refused_where_one_is_wanted(family: str) -> None:
    key, nothing, wanted = WANTED[family]
    message = refusal(family, **{key: nothing})
    assert message == f"{key}={nothing!r} doesn't fit this shape: only {wanted!r} does"
    assert read(family, **{key: wanted}) == read(family)


@pytest.mark.parametrize(
    ("family", "key", "value"),
    [
        ("gemma", "hidden_size", 3072),
        ("gemma", "head_dim", 256),
        ("deepseek_v3", "kv_lora_rank", 512),
        ("mamba", "state_size", 16),
        ("opt", "do_layer_norm_before", True),
        ("bamba", "mamba_conv_bias", True),
    ],
)
def test_a_null_where_a_class_has_a_value_is_refused_with_it(family, key, value) -> None:
    message = refusal(family, **{key: None})
    assert message == f"{key}=None is null, but in {FAMILIES[family].model} it is {value!r}"


def test_a_null_says_that_there_is_no_such_thing_where_there_may_be_none() -> None:
    """Queries straight from the hidden size, and attention that looks back to the start."""
    straight = read("deepseek_v3", q_lora_rank=None)
    h, a, d, r = 7168, 128, 192, 1536
    fewer = count_parameters(read("deepseek_v3")).attention - count_parameters(straight).attention
    assert fewer == 61 * (h * r + r * a * d - h * a * d)
    assert read("mistral", sliding_window=None).layers[0][1].mixer.window == 0
    chunks = read("llama4_text", attention_chunk_size=None)
    assert {layer.mixer.window for _, layer in chunks.layers} == {0}
    inner = read("falcon_h1", mamba_d_ssm=None).layers[0][1].beside
    assert inner.inner_size == 2 * 4096


ABSENT = STRUCTURE.keys() - {"layer_types", "decoder_sparse_step", "mlp_only_layers"}


@every_family
def test_structure_that_a_file_says_is_not_there_is_not_refused(family: str) -> None:
    for nothing in (None, 0, False):
        assert read(family, **dict.fromkeys(ABSENT, nothing)) == read(family)
    empty = {"layer_types": [], "mlp_only_layers": [], "pruned_heads": {}}
    assert read(family, **empty) == read(family)


HARMLESS = {
    "_name_or_path": "somewhere/else",
    "attention_probs_dropout_prob": 0.1,
    "bad_words_ids": None,
    "chunk_size_feed_forward": 0,
    "dtype": "bfloat16",
    "gradient_checkpointing": True,
    "hidden_act": "silu",
    "hidden_dropout": 0.1,
    "id2label": {"0": "LABEL_0"},
    "initializer_range": 0.02,
    "is_decoder": True,
    "layer_norm_eps": 1e-5,
    "layer_types": ["full_attention", "sliding_attention"],
    "length_penalty": 1.0,
    "max_sequence_length": 2048,
    "max_window_layers": 28,
    "model_revision": "main",
    "n_ctx": 1024,
    "no_bias": True,
    "norm_topk_prob": True,
    "num_beam_groups": 1,
    "original_max_position_embeddings": 8192,
    "output_hidden_states": True,
    "output_router_logits": True,
    "pretraining_tp": 2,
    "quantization_config": {"bits": 4, "group_size": 128, "num_heads": 3},
    "rope_interleaved": True,
    "rope_parameters": {"rope_theta": 1e4, "rope_type": "default"},
    "rope_theta": 500000.0,
    "router_aux_loss_coef": 0.001,
    "router_jitter_noise": 0.1,
    "scale_attn_by_inverse_layer_idx": True,
    "sliding_window": 4096,
    "sliding_window_pattern": 6,
    "task_specific_params": {"text-generation": {"max_length": 50}},
    "torch_dtype": "bfloat16",
    "unsloth_version": "2025.1",
    "use_cache": True,
    "use_sliding_window": True,
}


@every_family
def test_what_changes_no_matrix_is_read_over(family: str) -> None:
    assert read(family, **HARMLESS) == read(family)


# --- the file's own names


@pytest.mark.parametrize(
    ("family", "keys", "message"),
    [
        ("llama", {"num_hidden_layers": 2.5}, "num_hidden_layers=2.5 is not a whole"),
        ("llama", {"num_attention_heads": 0}, "num_attention_heads=0 is not positive"),
        ("llama", {"num_key_value_heads": "8"}, "num_key_value_heads='8' is not a num"),
        ("llama", {"tie_word_embeddings": 1}, "tie_word_embeddings=1 is neither"),
        ("llama", {"max_position_embeddings": []}, r"max_position_embeddings=\[\] is"),
        ("llama", {"hidden_size": 770}, "size=770 is .* by num_attention_heads=32"),
        ("llama", {"num_key_value_heads": 5}, "ads=32 is .* by num_key_value_heads=5"),
        ("gpt2", {"n_layer": True}, "n_layer=True is not a number"),
        ("gpt2", {"n_inner": -1}, "n_inner=-1 is not positive"),
        ("gpt2", {"n_embd": 770}, "n_embd=770 is not divisible by n_head=12"),
        ("gpt2", {"n_embd": 96, "hidden_size": 64}, "hidden_size=64 contradicts n_embd"),
        ("mixtral", {"num_experts": np.array([4, 8])}, "num_experts=.* is an array"),
        ("mixtral", {"num_experts_per_tok": 9}, "num_experts_per_tok=9 is more than"),
        ("mixtral", {"num_experts_per_tok": 0}, "num_experts_per_tok=0 is not posit"),
        ("qwen3_moe", {"num_experts_per_tok": 0}, "per_tok=0 leaves num_local_experts"),
        ("qwen3_moe", {"num_experts": 4}, "tok=8 is more than num_experts=4"),
    ],
)
def test_an_error_names_the_key_of_the_file(family, keys, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(family, **keys)


@pytest.mark.parametrize("key", [None, 3, ("a",), "expert" * 10**5, "expert\n" * 40])
def test_odd_keys_are_read_over_or_refused_in_words(key) -> None:
    if isinstance(key, str):
        with pytest.raises(ValueError, match="isn't a key of Llama") as caught:
            Transformer.from_config({"model_type": "llama", key: 1})
        assert len(str(caught.value)) < 200
    else:
        config = {"model_type": "llama", key: 1}
        assert Transformer.from_config(config) == read("llama")


def test_a_sweep_over_a_config_is_one_call() -> None:
    model = read("qwen3", hidden_size=np.array([1024, 2048]))
    assert count_parameters(model).total.shape == (2,)


# --- all families, and a shelf of real files


@pytest.mark.parametrize("row", published.rows("families"), ids=lambda row: row["name"])
def test_each_family_is_read_as_the_table_says(row) -> None:
    """What transformers builds; tests/ground_truth builds it again."""
    if row["read"] == "refused":
        assert "=" in refusal(row["name"])
        return
    counted = count_parameters(read(row["name"]))
    assert counted.total == row["parameters"]
    assert counted.active == row.get("active_parameters", row["parameters"])


def test_the_table_has_all_families_and_most_are_exact() -> None:
    table = {row["name"]: row["read"] for row in published.rows("families")}
    assert len(table) == 137
    assert {*FAMILIES} <= {*table}
    assert [*table.values()].count("exact") >= 93


@pytest.mark.parametrize("row", published.rows("configs"), ids=lambda row: row["name"])
def test_a_real_file_gives_the_parameters_of_its_weights(row) -> None:
    counted = count_parameters(published.config_model(row["name"]))
    assert counted.total == row["parameters"]
    assert counted.active == row.get("active_parameters", row["parameters"])


NESTED: list[Any] = []
for _ in range(5000):  # deeper than Python prints
    NESTED = [NESTED]

HOSTILE: list[Any] = [
    None,
    True,
    -1,
    0,
    0.5,
    "x",
    "auto",
    [],
    [[1]],
    {},
    {"a": 1},
    10**50,
    1e300,
    float("nan"),
    ["x"],
    [True],
    [-1],
    [10**9],
    [1, 2],
    ["full_attention"] * 3,
    10**6,
    np.array([2, 4]),
    np.array([]),
    np.int64(3),
    NESTED,
]


@pytest.mark.parametrize("family", FAMILIES)
def test_hostile_values_make_a_shape_or_words(family: str) -> None:
    row = FAMILIES[family]
    others = ["layer_types", "mlp_only_layers", "architectures", "auto_map", "hidden_act"]
    for key in [*row.defaults, *row.aliases, *row.only, *others]:
        for value in HOSTILE:
            message = ""
            try:
                count_parameters(read(family, **{key: value}))
            except ValueError as error:
                message = str(error)
            assert not message or ("=" in message and len(message) < 400), (key, value, message)


NUMBER = r"(\d[\d,.]*\d|\d+)([BM])"


@pytest.mark.parametrize(
    "row", [row for row in published.rows("configs") if "note" in row], ids=lambda row: row["name"]
)
def test_a_total_rounds_to_what_was_published_or_to_its_name(row) -> None:
    """Kimi's name says 2.4% less than its files hold: the note says so."""
    counted = count_parameters(published.config_model(row["name"]))
    candidates = [counted.total, counted.active, counted.embedding]
    candidates += [counted.total - counted.embedding, counted.active - counted.embedding]
    candidates += [counted.active - counted.embedding - counted.head]
    candidates += [counted.prediction + 2 * counted.embedding]
    sizes = re.findall(NUMBER, row["note"].replace("1,416M", ""))
    assert sizes or "class defaults" in row["name"]
    for digits, unit in sizes:
        number = digits.replace(",", "")
        step = 10 ** -len(number.partition(".")[2]) * (1e9 if unit == "B" else 1e6)
        near = min(abs(size - float(number) * (1e9 if unit == "B" else 1e6)) for size in candidates)
        assert near <= step or "not checked" in row["note"], (digits, unit)


def test_layers_that_predict_further_tokens_stand_beside_the_total() -> None:
    extra = {"num_nextn_predict_layers": 1}
    model = read("deepseek_v3", moe_layer_freq=1, **extra)
    counted, without = count_parameters(model), count_parameters(read("deepseek_v3"))
    assert counted.total == without.total == 671_026_404_352
    assert counted.active == without.active
    assert counted.prediction == 11_610_067_968
    assert without.prediction == 0
    in_files = counted.total + counted.prediction + counted.embedding + counted.head
    assert round(in_files / 1e9) == 684  # with a second embedding and head
    assert count_parameters(read("glm4_moe", **extra)).prediction > 0
    assert "moe_layer_freq" in refusal("deepseek_v3", moe_layer_freq=2)


# --- rows

WORKED = re.findall(r"^(\S+)(?:   +.*)?$", family_rows.__doc__.split("once:\n\n")[1], re.M)


def test_the_row_that_explains_the_signs_is_read_as_it_says() -> None:
    mini = families_of(" ".join(WORKED))["mini"]
    assert mini.model == "MiniMoeForCausalLM"
    assert "head_dim" not in mini.defaults
    assert (mini.defaults["hidden_size"], mini.defaults["vocab_size"]) == (2048, 32000)
    assert mini.defaults["tie_word_embeddings"] is True
    assert mini.aliases == {"num_local_experts": "num_experts"}
    assert mini.switches == {"attention_bias": "qkvo"}
    assert mini.only == {"hidden_act": "relu2"}
    assert mini.role("n_positions") == "sequence_length"
    assert mini.read_over == ("norm_topk_prob",)
    assert (mini.gated, mini.sinks) == (False, True)
    assert mini.norms({}, True) == 3
    kinds = mini.kinds({"num_layers": 5, "layers_in_period": 4})
    assert [kind[:4] for kind in kinds] == ["line", "line", "line", "full", "line"]
    mixer = mini.mixers["linear_attention"]({"num_heads": 4, "head_dim": None, "hidden_size": 64})
    assert mixer == LightningAttention(0, 4, 16)


def test_a_row_may_begin_with_the_words_of_another() -> None:
    rows = "big Big n_embd=64 .norms=4 .bias=qkv\n    ~scale"
    rows += "\nsmall Small ^big n_embd=32 .bias=''\nother Other -hidden_size ^small -n_embd"
    families = families_of(rows)
    small, other = families["small"], families["other"]
    assert (small.model, other.model) == ("SmallForCausalLM", "OtherForCausalLM")
    assert (small.defaults["n_embd"], small.norms, small.bias) == (32, 4, "")
    assert families["big"].defaults["n_embd"] == 64
    assert small.read_over == other.read_over == ("scale",)
    assert not {"hidden_size", "n_embd"} & {*other.defaults}
    with pytest.raises(ValueError, match=r"row='mine' .* word='\^gpt2' doesn't name a row above"):
        families_of("mine Llama ^gpt2")


def test_a_default_says_which_values_its_key_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = families_of("mine Llama window_layers=[] first_layers=0 last_layer=-1")["mine"]
    monkeypatch.setitem(FAMILIES, "mine", mine)
    plain = read("mine")
    assert read("mine", window_layers=[1, 2], first_layers=0, last_layer=-1) == plain
    assert "first_layers=-1" in refusal("mine", first_layers=-1)
    assert "last_layer=-2" in refusal("mine", last_layer=-2)
    assert "window_layers=3" in refusal("mine", window_layers=3)


def test_each_sign_of_a_row_is_explained_once() -> None:
    signs = [re.search(r"^[-~.]|[=>+!:@]", word)[0] for word in WORKED[2:]]
    assert {*signs} == {*"-~.=>+!:@"}
    assert len(WORKED) == 20


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("hiden_size", "word='hiden_size' isn't a key and a value with one of = > + ! : @ between"),
        ("hidden_size=", "word='hidden_size=' isn't a key and a value with"),
        ("=64", "word='=64' isn't a key and a value with"),
        (".norm=2", "trait='norm' is unknown, did you mean 'norms'?"),
        (".model=Llama", "trait='model' is unknown"),
        (".norms=two", "word='.norms=two' gives norms something other than int or @rule"),
        (".gated=maybe", "word='.gated=maybe' gives gated something other than bool"),
        (".kinds=", "word='.kinds=' gives kinds something other than str or @rule"),
        (".sparse=3", "gives sparse something other than @rule or None"),
        (".kinds=@refuse", "word='.kinds=@refuse' names 'refuse', which isn't a function of rules"),
        (".kinds=@_full_where", "names '_full_where', which isn't a function of rules"),
        (".kinds=@full_every", "gives full_every values after a colon that it doesn't take"),
        (".kinds=@full_every:", "gives full_every values after"),
        (".kinds=@full_every:1:conv:2", "gives full_every values after"),
        (".kinds=@sliding_if_window:4", "gives sliding_if_window values after"),
        ("conv@Mamba", "word='conv@Mamba' names 'Mamba', which isn't a function of rules"),
        ("-hiden_size", "word='-hiden_size' removes what isn't a key of a Llama"),
        ("attention_bias+qkvo", "key='attention_bias' is used, but it has no default"),
        ("n_embd>hiden_size", "key='hiden_size' is used, but it has no default"),
        ("n_ctx:sequence_length", "key='n_ctx' is used, but it has no default"),
        (".qk_norm_if=use_qk_norm", "key='use_qk_norm' is used, but it has no default"),
        (".parallel=use_parallel", "key='use_parallel' is used, but it has no default"),
        ("hidden_size+qx", "word='hidden_size+qx' names biases other than q, k, v"),
        (".bias=z", "word='.bias=z' names biases other than q, k, v"),
    ],
)
def test_a_bad_row_is_refused_by_its_name_and_the_word_at_fault(word: str, problem: str) -> None:
    with pytest.raises(ValueError, match="row='mine' can't be read: ") as caught:
        families_of(f"fine Llama .gated=no\nmine Llama {word} vocab_size=64")
    assert problem in str(caught.value)


def test_a_row_without_a_class_and_a_second_row_of_a_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"row='mine' .* don't name a class of transformers"):
        families_of("mine")
    with pytest.raises(ValueError, match=r"row='mine' .* already has a row"):
        families_of("mine Llama\n\nmine Llama\n")


def test_a_familys_words_say_each_of_its_traits() -> None:
    names = re.findall(r"^    (\w+) {2,}\S", Family.__doc__ or "", re.M)
    assert names == [trait.name for trait in fields(Family)]
