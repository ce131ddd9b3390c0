"""Configs: transformers builds as many parameters from one as are read from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from llmtrain_helpers import Transformer, count_parameters
from llmtrain_helpers.model.huggingface.families import COMMON, FAMILIES
from tests.config_files import BUILT, FILES

transformers = pytest.importorskip("transformers", minversion="5.0")

SMALL = {"num_hidden_layers": 2, "vocab_size": 96}
CASES: dict[str, dict[str, Any]] = {
    **{name: json.loads(text) for name, text in FILES.items()},
    **{name: file for name, (file, _) in BUILT.items()},
    **{family: {"model_type": family} | SMALL for family in COMMON},
    "tied": {"model_type": "llama", "tie_word_embeddings": True} | SMALL,
    "wide heads": {"model_type": "mistral", "head_dim": 256} | SMALL,
    "null heads": {"model_type": "qwen3", "num_key_value_heads": None} | SMALL,
    "switches": {"model_type": "qwen2", "qkv_bias": False, "qk_norm": True} | SMALL,
    "narrow": {"model_type": "gpt2", "n_inner": 100} | SMALL,
    "other name": {"model_type": "mixtral", "num_experts": 4} | SMALL,
    "dense": {"model_type": "qwen3_moe", "num_experts": 0, "num_experts_per_tok": 0} | SMALL,
}


def config_of(case: dict[str, Any]) -> Any:
    config = transformers.AutoConfig.for_model(case["model_type"])
    return type(config).from_dict(dict(case))


@pytest.mark.parametrize("name", CASES)
def test_transformers_builds_as_many_parameters(name: str) -> None:
    case = CASES[name]
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config_of(case))
    assert type(model).__name__ == FAMILIES[case["model_type"]].model
    built = sum(p.numel() for p in model.parameters())
    assert built == count_parameters(Transformer.from_config(case)).total


@pytest.mark.parametrize("family", COMMON)
def test_a_file_with_every_default_says_what_an_empty_one_says(family: str) -> None:
    empty = {"model_type": family}
    full = config_of(empty).to_dict()
    assert Transformer.from_config(full) == Transformer.from_config(empty)
