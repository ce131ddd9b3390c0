"""LoRA, optimizers other than Adam, and states in the memory of the host."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from llmtrain_course.budget.formulas import muon_overhead, offload_seconds
from llmtrain_helpers import (
    OPTIMIZERS,
    Attention,
    Layer,
    Mlp,
    Transformer,
    Tuning,
    lora_memory,
    lora_parameters,
    plan_run,
    published,
    tuned_parameters,
)
from llmtrain_helpers.finetune import MATRICES

H100 = published.accelerator("H100 SXM")


LLAMA = published.architecture("Llama-3.1-8B", sequence_length=8192)


LORA = {
    "phi-1.5 1.3B": Transformer.gpt(24, 2048, 32, 51200, 1044, False),
    "StableLM 3B": Transformer.gpt(16, 4096, 32, 50688, 1034, False),
    "Llama 2 7B": Transformer.llama(32, 4096, 32, 32, 11008, 32000, 1304),
    "Llama 2 13B": Transformer.llama(40, 5120, 40, 40, 13824, 32000, 1304),
}
"""Shapes and longest sequences of litgpt's table (tutorials/resource-tables.md)."""


TRAINED = {"phi-1.5 1.3B": 1_572_864, "StableLM 3B": 2_097_152}
TRAINED |= {"Llama 2 7B": 4_194_304, "Llama 2 13B": 6_553_600}


@pytest.mark.parametrize("name", LORA)
def test_adapters_are_counted_as_published(name: str) -> None:
    assert lora_parameters(LORA[name]) == TRAINED[name]


@pytest.mark.parametrize(
    ("name", "trained"), [("Llama-2-7b", 19_988_480), ("Llama-3.1-8B", 20_971_520)]
)
def test_adapters_of_all_linear_layers_are_counted_as_peft_prints_them(name, trained) -> None:
    """Rank 8 on every matrix but the head: `print_trainable_parameters`."""
    model = published.config_model(name)
    assert lora_parameters(model, 8, MATRICES) == trained


@pytest.mark.parametrize("target", MATRICES)
@pytest.mark.parametrize("family", ["qwen3", "gpt2", "gemma", "starcoder2", "llama"])
def test_an_adapter_has_the_rows_and_the_columns_of_its_matrix(family: str, target: str) -> None:
    """Against the full matrices: r columns more, and r rows more, of each."""
    model = Transformer.from_config({"model_type": family, **SIZES[family]})
    h, [(l, layer)] = model.hidden_size, model.layers
    attention = [m for m in layer.mixer.matrices(h) if m.name == target]
    matrices = attention or layer.mlp.matrices(h)
    wider = sum((m.rows + 3) * (m.columns + 3) - m.rows * m.columns - 9 for m in matrices)
    assert lora_parameters(model, 3, [target]) == l * wider


SIZES: dict[str, dict[str, Any]] = {
    "qwen3": {},  # 4,096 numbers wide, with 32 heads of 128
    "gpt2": {},
    "gemma": {"num_attention_heads": 8, "num_key_value_heads": 2},  # 8 heads of 256 for 3,072
    "starcoder2": {},
    "llama": {"num_key_value_heads": 8, "head_dim": 96},
}


def test_values_may_be_wider_than_keys_and_a_gate_is_not_adapted() -> None:
    mixer = Attention(8, 2, 16, value_dim=24, gate="values")
    model = Transformer(
        layers=[(3, Layer(mixer, Mlp(96)))], hidden_size=64, vocab_size=100, sequence_length=32
    )
    sizes = {name: lora_parameters(model, 1, [name]) / 3 for name in MATRICES}
    assert sizes["query"] == 64 + 8 * 16
    assert sizes["key"] == 64 + 2 * 16
    assert sizes["value"] == 64 + 2 * 24
    assert sizes["output"] == 8 * 24 + 64
    assert lora_parameters(model, 1, MATRICES) == 3 * sum(sizes.values())


def lora_rows(setup: str) -> list[dict[str, Any]]:
    rows = published.rows("measured_memory")
    return [r for r in rows if r.get("setup") == f"LoRA bf16-true, quant={setup}"]


def test_the_measured_peaks_of_lora_lie_within_15_per_cent() -> None:
    rows = lora_rows("none")
    assert len(rows) == 9
    for r in rows:
        peak = lora_memory(LORA[r["model"]], r["local_batch_size"]).total
        assert 0.85 <= peak / r["peak_bytes"] <= 1


def test_in_four_bits_a_quarter_to_a_third_is_missing() -> None:
    rows = lora_rows("nf4")
    assert len(rows) == 2
    for r in rows:
        peak = lora_memory(LORA[r["model"]], 1, weight_bytes=0.5625).total
        assert 0.69 <= peak / r["peak_bytes"] <= 0.72


def test_what_is_adapted_needs_its_input() -> None:
    model = LORA["Llama 2 7B"]
    few, all_of_it = (
        lora_memory(model, 1, targets=t)
        for t in (["query", "value"], ["query", "key", "value", "output", "mlp"])
    )
    more = 2 * 1304 * 32 * (4096 + 11008)
    assert all_of_it.activations - few.activations == more
    assert all_of_it.adapters > few.adapters


@pytest.mark.parametrize("target", ["query", "key", "value"])
def test_one_adapted_projection_needs_the_input_of_all_three(target: str) -> None:
    model = LORA["Llama 2 7B"]
    at_output, here = (lora_memory(model, 1, targets=[name]) for name in ("output", target))
    assert here.activations - at_output.activations == 2 * 1304 * 32 * 4096


def test_optimizers_are_recipes_for_a_plan() -> None:
    optimizers = {
        name: plan_run(
            *(LLAMA, H100, 64, 1e12, 512), recompute="none", recipe=recipe, zero_stage=1
        ).memory.optimizer
        for name, recipe in OPTIMIZERS.items()
    }
    assert (
        optimizers["adam"]
        > optimizers["muon"]
        > optimizers["adam_8bit"]
        > optimizers["adafactor"]
        == 0
    )
    assert optimizers["muon"] * 2 == optimizers["adam"]


def test_muon_and_the_host_at_their_published_numbers() -> None:
    assert muon_overhead(768, 524_288) == pytest.approx(0.007, abs=0.0005)
    assert muon_overhead(16384, 16e6) == pytest.approx(0.005, abs=0.0005)
    assert offload_seconds(8e9, 25e9, num_gpus=8) == pytest.approx(0.16)


def test_a_rank_above_that_of_every_matrix_is_refused() -> None:
    """An adapter of rank 4,096 could already be the whole matrix, which has no higher rank."""
    for targets in (["query"], MATRICES):
        assert lora_parameters(LLAMA, 4096, targets) > 0
        for rank in (4097, 10**9, np.array([8, 10**9])):
            with pytest.raises(ValueError, match=r"rank.* is more than .*the rank of the largest"):
                lora_parameters(LLAMA, rank, targets)
    with pytest.raises(ValueError, match="rank=2000 is more than 1,024, the rank of the largest"):
        lora_parameters(LLAMA, 2000, ["key", "value"])
    for make, targets in product((Tuning.lora, Tuning.qlora), ("all-linear", ["lm_head"])):
        assert tuned_parameters(LLAMA, make(4096, targets)).learning > 0
        with pytest.raises(ValueError, match="rank=4097 is more than 4,096, the rank of the larg"):
            tuned_parameters(LLAMA, make(4097, targets))


@pytest.mark.parametrize("targets", ["qv", [], ["gate"], 3, None])
def test_unknown_matrices_are_refused(targets: Any) -> None:
    with pytest.raises(ValueError, match="targets="):
        lora_parameters(LLAMA, targets=targets)


@pytest.mark.parametrize("family", ["mixtral", "mamba", "youtu", "qwen3_5_text", "falcon_h1"])
def test_lora_is_for_plain_layers(family: str) -> None:
    """Not for experts, and for no mixer but attention, alone, with a matrix to each part."""
    with pytest.raises(ValueError, match="has layers other than attention"):
        lora_parameters(Transformer.from_config({"model_type": family}))


def test_lora_and_full_training_count_logits_alike() -> None:
    model = published.architecture("Llama-3.1-8B", sequence_length=4096)
    one = {"num_gpus": 1, "tokens": 1e9, "global_batch_size": 1}
    full = plan_run(model, H100, **one, recompute="none", recipe="bf16").memory
    lora = lora_memory(model, micro_batch_size=1)
    assert lora.logits == full.transient == 8 * 4096 * model.vocab_size
    dropped = 2 * 4096 * 32 * (4096 + 14336)
    assert full.activations - lora.activations == dropped
