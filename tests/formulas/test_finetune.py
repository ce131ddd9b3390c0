"""LoRA, optimizers other than Adam, and states in the memory of the host."""

from typing import Any

import pytest

from llmtrain_helpers import (
    OPTIMIZERS,
    Transformer,
    lora_memory,
    lora_parameters,
    muon_overhead,
    offload_seconds,
    plan_run,
)
from llmtrain_helpers.evidence import published

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


def lora_rows(setup: str) -> list[dict[str, Any]]:
    found = published.rows("measured_memory")
    return [r for r in found if r.get("setup") == f"LoRA bf16-true, quant={setup}"]


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


def test_optimizers_are_recipes_for_a_plan() -> None:
    held = {
        name: plan_run(
            *(LLAMA, H100, 64, 1e12, 512), recompute="none", recipe=recipe, zero_stage=1
        ).memory.optimizer
        for name, recipe in OPTIMIZERS.items()
    }
    assert held["adam"] > held["muon"] > held["adam_8bit"] > held["adafactor"] == 0
    assert held["muon"] * 2 == held["adam"]


def test_muon_and_the_host_at_their_published_numbers() -> None:
    assert muon_overhead(768, 524_288) == pytest.approx(0.007, abs=0.0005)
    assert muon_overhead(16384, 16e6) == pytest.approx(0.005, abs=0.0005)
    assert offload_seconds(8e9, 25e9, num_gpus=8) == pytest.approx(0.16)


@pytest.mark.parametrize("targets", ["qv", [], ["gate"], 3, None])
def test_unknown_matrices_are_refused(targets: Any) -> None:
    with pytest.raises(ValueError, match="targets="):
        lora_parameters(LLAMA, targets=targets)


def test_lora_is_for_plain_layers() -> None:
    with pytest.raises(ValueError, match="has layers other than attention"):
        lora_parameters(published.architecture("Mixtral-8x7B", 4096))


def test_lora_and_full_training_count_logits_alike() -> None:
    model = published.architecture("Llama-3.1-8B", sequence_length=4096)
    one = {"num_gpus": 1, "tokens": 1e9, "global_batch_size": 1}
    full = plan_run(model, H100, **one, recompute="none", recipe="bf16").memory
    lora = lora_memory(model, micro_batch_size=1)
    assert lora.logits == full.transient == 8 * 4096 * model.vocab_size
    dropped = 2 * 4096 * 32 * (4096 + 14336)
    assert full.activations - lora.activations == dropped
