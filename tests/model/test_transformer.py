"""Shapes of models and accelerators."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import Accelerator, Transformer, count_parameters
from llmtrain_helpers.checks import show


def test_a_slip_in_giga_or_tera_is_refused() -> None:
    with pytest.raises(ValueError, match="Write 80e9"):
        Accelerator("x", 80, peaks={"bf16": 312e12})
    with pytest.raises(ValueError, match="Write 312e12"):
        Accelerator("x", 80e9, peaks={"bf16": 312})


GPT = {"num_layers": 2, "hidden_size": 64, "num_heads": 4, "vocab_size": 100, "sequence_length": 32}


LLAMA = GPT | {"num_kv_heads": 2, "intermediate_size": 96}


CONFIGS = {
    "gpt2": {"model_type": "gpt2"},
    "llama": {"model_type": "llama", "vocab_size": 32000},
    "mistral": {"model_type": "mistral", "max_position_embeddings": 32768},
    "mixtral": {"model_type": "mixtral", "max_position_embeddings": 32768},
    "qwen2": {
        "model_type": "qwen2",
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "qwen3": {
        "model_type": "qwen3",
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_key_value_heads": 8,
    },
    "qwen3_moe": {
        "model_type": "qwen3_moe",
        "num_hidden_layers": 48,
        "head_dim": 128,
        "num_experts": 128,
    },
}


PUBLISHED = {
    "gpt2": 124439808,
    "llama": 6738415616,
    "mistral": 7241732096,
    "mixtral": 46702792704,
    "qwen2": 494032768,
    "qwen3": 8190735360,
    "qwen3_moe": 30532122624,
}


@pytest.mark.parametrize("family", CONFIGS)
def test_a_config_of_each_family_gives_its_published_total(family: str) -> None:
    model = Transformer.from_config(CONFIGS[family])
    assert count_parameters(model).total == PUBLISHED[family]


def test_a_config_with_nulls_takes_the_defaults() -> None:
    nulls = {"num_key_value_heads": None, "head_dim": None, "hidden_size": None}
    model = Transformer.from_config({"model_type": "llama"} | nulls)
    assert model == Transformer.from_config({"model_type": "llama"})


def test_second_spellings_of_a_key() -> None:
    names = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
    model = Transformer.from_config({"model_type": "gpt2"} | names)
    assert count_parameters(model).total == 354823168
    both = {"model_type": "qwen3_moe", "num_experts": None, "num_local_experts": 64}
    assert Transformer.from_config(both).num_experts == 64
    with pytest.raises(ValueError, match="num_experts=8 contradicts num_local_exp"):
        Transformer.from_config(both | {"num_experts": 8})


def test_training_length_is_not_the_length_of_the_position_table() -> None:
    model = Transformer.from_config({"model_type": "gpt2"}, sequence_length=512)
    assert (model.sequence_length, model.num_positions) == (512, 1024)
    assert count_parameters(model).total == PUBLISHED["gpt2"]
    long = Transformer.from_config({"model_type": "llama"}, sequence_length=8192)
    assert long.sequence_length == 8192
    with pytest.raises(ValueError, match="sequence_length=2048 is more than 1,024, the positions"):
        Transformer.from_config({"model_type": "gpt2"}, sequence_length=2048)


@pytest.mark.parametrize(
    "wrong",
    [
        {"hidden_size": "4096"},
        {"hidden_size": 770},
        {"hidden_size": -4096},
        {"hidden_size": 10**400},
        {"hidden_size": float("nan")},
        {"num_attention_heads": 0},
        {"num_attention_heads": True},
        {"num_key_value_heads": 5},
        {"num_hidden_layers": [32]},
        {"num_hidden_layers": {}},
        {"vocab_size": 1.5},
        {"tie_word_embeddings": "false"},
        {"tie_word_embeddings": 1},
        {"attention_bias": True},
        {"mlp_bias": True},
        {"head_dim": 0},
        {"max_position_embeddings": "4k"},
        {"num_experts": 4, "num_experts_per_tok": 8},
        {"num_local_experts": 4, "num_experts_per_tok": 0},
    ],
    ids=str,
)
def test_a_wrong_config_is_refused_in_words(wrong) -> None:
    config = {"model_type": "llama"} | wrong
    with pytest.raises(ValueError, match="=") as caught:
        Transformer.from_config(config)
    assert type(caught.value) is ValueError


@pytest.mark.parametrize(
    "wrong",
    [
        {"mlp_only_layers": [0]},
        {"decoder_sparse_step": 2},
        {"attention_bias": True},
        {"moe_intermediate_size": -1},
        {"moe_intermediate_size": 0},
        {"moe_intermediate_size": ""},
        {"num_experts": 0},
    ],
    ids=str,
)
def test_what_the_shape_cannot_express_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match="=") as caught:
        Transformer.from_config(CONFIGS["qwen3_moe"] | wrong)
    assert type(caught.value) is ValueError


@pytest.mark.parametrize(
    "config", [{}, [], None, "llama", 3, {"model_type": 3}, {"model_type": ["llama"]}]
)
def test_what_is_no_config_is_refused(config) -> None:
    with pytest.raises(ValueError, match=r"(model_type|config)="):
        Transformer.from_config(config)


def test_an_unknown_family_gets_the_list_of_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'rwkv' is unknown.*gpt2.*qwen3_moe"):
        Transformer.from_config({"model_type": "rwkv"})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hidden_size": 66}, "hidden_size=66 is not divisible by num_heads=4"),
        ({"num_kv_heads": 3}, "num_heads=4 is not divisible by num_kv_heads=3"),
        ({"num_experts": 4}, "experts_per_token=0 leaves num_experts=4 unused"),
        ({"experts_per_token": 2}, "experts_per_token=2 is more than num_experts=0"),
        (
            {"num_experts": 4, "experts_per_token": 5},
            "experts_per_token=5 is more than num_experts=4",
        ),
        ({"head_dim": 0}, "head_dim=0 is not positive"),
        ({"tied_embeddings": 1}, "tied_embeddings=1 is neither True nor False"),
    ],
)
def test_numbers_that_do_not_fit_together_are_refused(wrong, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Transformer.llama(**(LLAMA | wrong))


def test_experts_cannot_be_an_array() -> None:
    wrong = {"num_experts": np.array([4, 8]), "experts_per_token": 2}
    with pytest.raises(ValueError, match=r"num_experts=.*is an array"):
        Transformer.llama(**(LLAMA | wrong))


def test_a_transformer_is_frozen_and_comparable() -> None:
    model = Transformer.gpt(**GPT)
    assert model == Transformer.gpt(**GPT)
    assert len({model, Transformer.gpt(**GPT)}) == 1
    for item in fields(Transformer):
        with pytest.raises(FrozenInstanceError):
            setattr(model, item.name, getattr(model, item.name))
    assert replace(model, num_layers=3).num_layers == 3


@given(st.integers(1, 64), st.integers(1, 16), st.integers(1, 8))
def test_head_dim_times_heads_is_the_hidden_size(d: int, kv: int, group: int) -> None:
    heads = kv * group
    model = Transformer.llama(1, d * heads, heads, kv, 4, 5, 6)
    assert model.head_dim * model.num_heads == model.hidden_size


def test_an_accelerator_is_frozen() -> None:
    chip = Accelerator("H100", 80e9, 3.35e12, 700, {"bf16": 989.5e12})
    for item in fields(Accelerator):
        with pytest.raises(FrozenInstanceError):
            setattr(chip, item.name, getattr(chip, item.name))


def test_an_accelerator_knows_its_peaks() -> None:
    chip = Accelerator("H100", 80e9, 3.35e12, 700, {"bf16": 989.5e12, "fp8": 1979e12})
    assert chip.peak("fp8") == 1979e12
    assert hash(chip) == hash(replace(chip))
    with pytest.raises(ValueError, match="format='fp4' has no peak on H100"):
        chip.peak("fp4")
    assert copy.deepcopy(chip) == pickle.loads(pickle.dumps(chip)) == chip
    with pytest.raises(ValueError, match=r"format=\['bf16'\] has no peak"):
        chip.peak(["bf16"])


@pytest.mark.parametrize("bad", [None, ["bf16"], "bf16", {"bf16": 0}, {"bf16": "2"}], ids=show)
def test_accelerator_refuses_peaks(bad) -> None:
    with pytest.raises(ValueError, match="peak"):
        Accelerator("H100", 80e9, peaks=bad)


def test_a_mixture_without_experts_has_the_plain_mlps_size() -> None:
    config = {"model_type": "qwen3_moe", "num_experts": 0, "num_experts_per_tok": 0}
    model = Transformer.from_config({**config, "intermediate_size": 6144})
    assert model.intermediate_size == 6144
