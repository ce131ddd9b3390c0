"""What the page of chapter 06 states, computed anew."""

import pytest

from llmtrain_helpers import (
    Transformer,
    count_activations,
    count_parameters,
    gpt_activation_bytes,
    published,
    step_timeline,
    units,
)
from llmtrain_helpers.model.layers import Attention
from tests.pages import cell


def test_what_the_page_says_of_experts_and_latent_attention_is_so() -> None:
    page = cell("evidence/06_activations", "kinds-others")
    model = published.config_model("DeepSeek-V3")
    [(_, dense), (_, sparse)] = model.layers
    h = model.hidden_size
    assert dense.mlp.activations(h, False)[1] == sparse.mlp.activations(h, False)[1]
    wide = sparse.mlp.experts_per_token * sparse.mlp.expert.intermediate_size
    assert wide + sparse.mlp.shared.intermediate_size == dense.mlp.intermediate_size
    met, experts = sparse.mlp.experts_per_token + 1, sparse.mlp.num_experts + 1
    assert f"goes through {met} of a layer's {experts} experts" in page
    mixer = sparse.mixer
    assert f"to {mixer.kv_rank + mixer.rotary_dim} numbers" in page
    plain = Attention(128, 128, 128).activations(h, False)
    assert f"{sum(mixer.activations(h, False)) / sum(plain):.1f} times as much" in page


LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)


def small(micro: int = 1, passes: int = 1, recompute: str = "none"):
    model = published.architecture("Llama-3.2-1B", 8192)
    return step_timeline(model, micro, "bf16", recompute, 2, passes)


def test_the_numbers_of_the_page() -> None:
    """Each stands in a sentence of the page, or of its folded answers."""
    states = 16 * count_parameters(LLAMA).total
    gpt = [gpt_activation_bytes(32, 4096, 32, s, 1) / states for s in (1024, 2048, 4096)]
    assert [f"{100 * share:.0f}" for share in gpt] == ["8", "24", "81"]
    own = [count_activations(LLAMA, 1, sequence_length=s).layers / states for s in (2048, 4096)]
    assert [f"{100 * share:.0f}" for share in own] == ["9", "17"]
    full = gpt_activation_bytes(96, 12288, 96, 2048, 1, "full")
    layer = gpt_activation_bytes(1, 12288, 96, 2048, 1) - 2 * 2048 * 12288
    assert [units.gigabytes(x) for x in (full, layer)] == ["4.83 GB", "2.82 GB"]
    one = published.architecture("Llama-3.2-1B", 8192)
    all_layers, kept = (count_activations(one, 1, r).layers for r in ("none", "full"))
    assert all_layers / kept == 22.5
    for micro, passes, size in [(2, 1, "66.8 GB"), (4, 1, "116 GB"), (1, 2, "44.5 GB")]:
        assert units.gigabytes(small(micro, passes).peak.total) == size
    first, second = (max(x.total for x in small().moments if x.step == step) for step in (1, 2))
    assert first < published.accelerator("A100 40GB SXM").memory < second
    assert small(2).peak.total < 80e9 < small(4).peak.total
    assert small(1, 256).peak.total == small(1, 2).peak.total
    halves = step_timeline(one, 4, "bf16", "full", accumulation_steps=2).peak
    assert 3 * 4 * 4 * 8192 * one.vocab_size > 2 / 3 * halves.total  # three tensors, 4 bytes
    assert "then make up more than two thirds of the peak" in cell("06_activations", "panel")
    assert units.gigabytes(states) == "128 GB"
    small_8b = step_timeline(LLAMA, 1, "pure_bf16", "full").peak
    assert (units.gigabytes(small_8b.total), small_8b.mark) == ("66.1 GB", "first layer")
    assert published.accelerator("B200").memory == 180e9
    assert published.accelerators()["memory_bytes"].max() < small(16).peak.total
    without = step_timeline(LLAMA, 1, "pure_bf16", "none").peak
    assert (units.gigabytes(without.total), without.mark) == ("105 GB", "loss")
    gpt2 = [gpt_activation_bytes(12, 768, 12, 512, 8), 12 * 32 * 512 * 8 * 768]
    assert [units.gigabytes(x) for x in gpt2] == ["2.79 GB", "1.21 GB"]


def test_why_full_recomputation_takes_more_time_than_a_third() -> None:
    """One forward more, in a layer whose backward takes 1.5 times as long, not 2."""
    table = published.recomputation_overheads().set_index("name")
    plain, full = (table.loc["22B layer, nothing recomputed"], table.loc["22B layer, full"])
    assert plain["backward_seconds"] / plain["forward_seconds"] == pytest.approx(1.55, 0.01)
    again = full["seconds"] - plain["seconds"]
    assert again == pytest.approx(plain["forward_seconds"], rel=0.02)
    assert round(plain["forward_seconds"] / plain["seconds"], 2) == full["overhead"]
