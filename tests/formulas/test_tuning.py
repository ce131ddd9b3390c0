"""What learns, what it computes, keeps and holds: `Tuning`."""

import re
from dataclasses import fields, replace
from itertools import pairwise, product
from typing import Any

import pytest

from llmtrain_course.finetune.formulas import packed_rows, saved_inputs, tuned_states
from llmtrain_helpers import (
    Transformer,
    Tuning,
    count_activations,
    count_flops,
    count_parameters,
    longest_sequence,
    lora_parameters,
    model_state_bytes,
    published,
    tuned_activations,
    tuned_flops,
    tuned_memory,
    tuned_parameters,
    tuned_phases,
    tuning_tokens,
)
from llmtrain_helpers.finetune import weight_bytes
from llmtrain_helpers.tuning import FULL_RECIPES, TARGETS, targeted
from tests.bad_values import assert_refused

LLAMA = published.architecture("Llama-3.1-8B", sequence_length=4096)
LLAMA_3B = Transformer.llama(28, 3072, 24, 8, 8192, 128256, 768, tied_embeddings=True)
MISTRAL = published.architecture("Mistral-7B-v0.1", sequence_length=4096)
MIXTRAL = published.architecture("Mixtral-8x7B", sequence_length=4096)
DEEPSEEK = published.config_model("DeepSeek-V2-Lite")


@pytest.mark.parametrize(
    ("rank", "targets", "trained"),
    [
        (10, "mlp", 9_461_760),
        (32, ["q_proj", "v_proj"], 9_175_040),
        (64, ["v_proj", "q_proj"], 18_350_080),
    ],
)
def test_adapters_are_counted_as_peft_counted_them(rank: int, targets: Any, trained: int) -> None:
    """PEFT's benchmark prints `trainable` for each (rows PE-012, PE-015, PE-016)."""
    assert tuned_parameters(LLAMA_3B, Tuning.lora(rank, targets)).learning == trained
    notes = [row.get("note", "") for row in published.rows("finetune_measured")]
    assert any(f"trainable {trained}" in note for note in notes)


@pytest.mark.parametrize("model", [LLAMA, LLAMA_3B, MISTRAL, MIXTRAL, DEEPSEEK])
@pytest.mark.parametrize("tuning", [Tuning.full(), Tuning.lora(8), Tuning.qlora(4, "attention")])
def test_what_is_frozen_and_what_learns_is_all_there_is(model: Any, tuning: Tuning) -> None:
    count = tuned_parameters(model, tuning)
    P = count_parameters(model).total
    if tuning.is_full:
        assert count.learning == P
    else:
        assert count.frozen + count.wide == P
        assert 0 < count.learning < P / 10


def test_the_groups_are_those_that_lora_parameters_knows() -> None:
    old = {"attention": ["query", "key", "value", "output"], "mlp": ["mlp"]}
    old["all-linear"] = [*old["attention"], "mlp"]
    for group in TARGETS:
        learning = tuned_parameters(LLAMA, Tuning.lora(8, group)).learning
        assert learning == lora_parameters(LLAMA, 8, old[group])


def test_each_expert_has_its_own_adapters_and_the_router_none() -> None:
    l, h, f, experts, r = 32, 4096, 14336, 8, 16
    assert tuned_parameters(MIXTRAL, Tuning.lora(r, "mlp")).learning == l * experts * 3 * r * (
        h + f
    )


def test_latent_attention_has_adapters_on_each_of_its_matrices() -> None:
    learning = tuned_parameters(DEEPSEEK, Tuning.lora(1, "attention")).learning
    h, a, c, plain, rotary, v = 2048, 16, 512, 128, 64, 128
    sides = (h + a * (plain + rotary)) + (h + c + rotary) + (c + a * (plain + v)) + (a * v + h)
    assert learning == 27 * sides


def test_the_head_may_have_an_adapter() -> None:
    with_head, without = (
        tuned_parameters(LLAMA, Tuning.lora(8, t)).learning
        for t in (["all-linear", "lm_head"], "all-linear")
    )
    assert with_head - without == 8 * (4096 + 128256)


def test_nf4_weighs_half_a_byte_and_its_scales() -> None:
    """As bitsandbytes has it for 4096 × 4096: 4.1275 and 4.5 bits, the code tables aside."""
    assert Tuning.qlora().matrix_bytes * 8 == pytest.approx(4.127, abs=0.0005)
    assert Tuning.qlora(double_quantisation=False).matrix_bytes == 0.5625


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"rank": 0}, "rank"),
        ({"targets": []}, "targets"),
        ({"targets": "query"}, "targets"),
        ({"dropout": 5}, "dropout"),
        ({"adapter_bytes": 3}, "adapter_bytes"),
        ({"optimizer": "adam"}, "optimizer"),
        ({"loss_kernel": "liger"}, "loss_kernel"),
    ],
)
def test_what_does_not_go_is_refused_by_name(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}="):
        Tuning.lora(**options)


@pytest.mark.parametrize("recipe", ["fp32", "fp8", "amp16", 16, None])
def test_a_recipe_whose_products_are_not_in_16_bits_is_refused(recipe: Any) -> None:
    if recipe is None:
        assert Tuning.full(recipe).recipe == Tuning.full().recipe == "amp"
        return
    with pytest.raises(ValueError, match=f"recipe={recipe!r} is"):
        Tuning.full(recipe)


def test_main_weights_and_main_gradients_are_shared_from_the_first_stage_on() -> None:
    """As `model_state_bytes` has it, which knows no copies and no gathered layers."""
    for recipe, stage in product(FULL_RECIPES, range(4)):
        tuning = Tuning.full(recipe, optimizer="adamw_fused")
        memory = at("update", LLAMA, tuning, zero_stage=stage, data_parallel=4)
        parts = model_state_bytes(P8, recipe, stage, 4)
        assert memory.weights == parts.weights
        assert memory.gradients == parts.gradients
        assert memory.main_gradients == parts.main_gradients
        assert memory.main_weights == parts.main_weights
        assert memory.optimizer == parts.optimizer


OPTIONS = {
    "rank": 8,
    "targets": "mlp",
    "dropout": 0.1,
    "double_quantisation": False,
    "weight_bytes": 4,
    "adapter_bytes": 2,
    "autocast": False,
    "wide_bytes": 4,
    "stream_bytes": 4,
    "optimizer": "adamw_8bit",
    "loss_kernel": "fused",
    "reentrant": True,
    "fused": True,
    "keeps_inputs": True,
    "recipe": "pure_bf16",
}
"""Each option of `Tuning`, at a value that's not its default."""


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_an_option_changes_something_or_is_refused(method: str, name: str) -> None:
    """What is computed, kept or counted; with nothing recomputed, and with everything."""
    assert {*OPTIONS} == {x.name for x in fields(Tuning)} - {"method"}

    def numbers(tuning: Tuning) -> Any:
        ways = ("none", "full")
        phases = [tuned_phases(LLAMA, tuning, 1, way) for way in ways]
        works = [tuned_flops(LLAMA, tuning, 1, way) for way in ways]
        return phases, works, [tuned_activations(LLAMA, tuning, 1, way) for way in ways]

    plain = getattr(Tuning, method)()
    try:
        changed = plain.replace(**{name: OPTIONS[name]})
    except ValueError as problem:
        reason = f"(with method='{method}': (it's for|choose a recipe)|goes with)"
        assert re.search(f"^{name}=.* {reason}", str(problem))  # noqa: PT017
        return
    assert numbers(changed) != numbers(plain)


def test_full_training_has_no_adapters() -> None:
    with pytest.raises(ValueError, match="rank=8 goes with adapters"):
        Tuning.full(rank=8)


def test_targets_that_the_model_has_not_are_refused() -> None:
    with pytest.raises(ValueError, match="targets="):
        tuned_parameters(Transformer.gpt(2, 64, 4, 99, 16), Tuning.lora(8, ["gate_proj"]))


@pytest.mark.parametrize("family", ["mamba", "jamba"])
def test_a_recurrence_is_refused_and_not_ignored(family: str) -> None:
    with pytest.raises(ValueError, match="isn't attention"):
        tuned_parameters(Transformer.from_config({"model_type": family}), Tuning.lora(8))


def test_full_tuning_computes_what_training_does() -> None:
    for model, recompute in product([LLAMA, MIXTRAL, DEEPSEEK], ["none", "full"]):
        tuned = tuned_flops(model, Tuning.full(reentrant=True), 4, recompute)
        plain = count_flops(model, 4, recompute)
        assert {**tuned.parts(), "adapters": 0} == {**plain.parts(), "adapters": 0}


def test_flops_a_token_and_parameter_are_those_that_nvidia_prints() -> None:
    """Model TFLOP/s over tokens/s and parameters, for full tuning of 70B: 6.13 to 6.17."""
    shape = published.architecture("Llama-3.1-70B", sequence_length=4096)
    each = tuned_flops(shape, Tuning.full(), 1, "none", "causal").total / 4096
    rows = [r for r in published.rows("finetune_measured") if r["name"] in ("NB-001", "NB-005")]
    assert [r["method"] for r in rows] == ["full", "full"]
    assert 6.13 <= each / count_parameters(shape).total <= 6.17


def test_without_recomputing_nothing_is_recomputed() -> None:
    for tuning in (Tuning.full(), Tuning.lora(8)):
        assert tuned_flops(LLAMA, tuning, 1, "none").recomputed == 0
    with pytest.raises(ValueError, match="recompute='selective'"):
        tuned_flops(LLAMA, Tuning.lora(8), 1, "selective")


def test_scores_have_no_discount_but_in_the_first_layer() -> None:
    full, lora, mlp = (
        tuned_flops(LLAMA, tuning, 1, "none").scores
        for tuning in (Tuning.full(), Tuning.lora(8), Tuning.lora(8, "mlp"))
    )
    assert full == lora
    assert full - mlp == full * 2 // 3 // 32  # the first layer's, backward


L, H, KV, F, A = 32, 4096, 1024, 14336, 32

TABLE = [
    (Tuning.full(), 20, 8, 0),
    (Tuning.lora(8, ["q_proj", "v_proj"], adapter_bytes=2), 14, 6, 4),
    (Tuning.lora(8, "attention", adapter_bytes=2), 14, 6, 8),
    (Tuning.lora(8, "mlp", adapter_bytes=2), 14, 8, 6),
    (Tuning.lora(8, adapter_bytes=2), 16, 8, 14),
    (Tuning.lora(8, ["q_proj", "v_proj"], autocast=False), 20, 6, 8),
    (Tuning.lora(8, autocast=False), 36, 10, 28),
    (Tuning.lora(8, ["q_proj", "v_proj"]), 16, 6, 4),
    (Tuning.lora(8, "attention"), 20, 6, 8),
    (Tuning.lora(8), 24, 8, 14),
    (Tuning.lora(8, adapter_bytes=2, dropout=0.05), 30, 9, 14),
]
"""What a layer keeps: times h, times f, times the rank; 4kd, 4a and 8 for all."""


@pytest.mark.parametrize(("tuning", "of_h", "of_f", "of_r"), TABLE)
def test_a_llamas_layer_keeps(tuning: Tuning, of_h: int, of_f: int, of_r: int) -> None:
    two, three = (
        tuned_activations(replace(LLAMA, layers=((n, LLAMA.layers[0][1]),)), tuning, 1).layers
        for n in (2, 3)
    )
    each = of_h * H + 4 * KV + of_f * F + 4 * A + of_r * 8 + 8
    assert three - two == 4096 * each


def test_with_dropout_on_all_matrices_lora_keeps_more_than_full_training() -> None:
    full, lora, dropped = (
        tuned_activations(LLAMA, tuning, 1).layers
        for tuning in (Tuning.full(), Tuning.lora(8, "attention"), Tuning.lora(8, dropout=0.05))
    )
    assert lora < full < dropped


@pytest.mark.parametrize("model", [LLAMA, MIXTRAL, DEEPSEEK, Transformer.gpt(3, 64, 4, 99, 16)])
def test_full_training_with_fused_kernels_keeps_what_chapter_06_counts(model: Any) -> None:
    """But for the norms' statistics and 4 bytes a head, which are left out there."""
    size = tuned_activations(model, Tuning.full(fused=True), 2).layers
    expected = count_activations(model, 2, fused_mlp=True).layers
    layer = model.layers[-1][1]
    statistics = 4 * layer.norms * layer.norm_size + 4 * layer.mixer.num_heads
    assert size - expected == 2 * model.sequence_length * model.num_layers * statistics


def test_recomputed_layers_keep_their_inputs_alone() -> None:
    tuning = Tuning.qlora(8, wide_bytes=4)
    assert tuned_activations(LLAMA, tuning, 1, "full").layers == 4 * 4096 * L * H
    assert tuned_activations(LLAMA, Tuning.lora(8), 1, "full").layers == 2 * 4096 * L * H


def at(phase: str, model: Any, tuning: Tuning, b: int = 1, **options: Any) -> Any:
    phases = tuned_phases(model, tuning, b, "full", **options)
    return {memory.moment: memory for memory in phases}[phase]


P8 = 8_030_261_248


@pytest.mark.parametrize(
    ("options", "each"),
    [
        ({"recipe": "pure_bf16"}, 10),  # Mistral, 72.435 GB: as measured
        ({}, 20),  # Llama 3 8B under FSDP, 80.32 GB on each of two GPUs
        ({"recipe": "pure_bf16", "optimizer": "adamw_fused"}, 8),
        ({"recipe": "pure_bf16", "optimizer": "adamw_8bit"}, 4 + 2 * (1 + 4 / 256)),
        ({"recipe": "pure_bf16", "optimizer": "sgd"}, 4),
        ({"recipe": "bf16", "optimizer": "adamw_fused"}, 16),
        ({"recipe": "bf16_fp32_grads", "optimizer": "adamw_fused"}, 18),
        ({"recipe": "bf16_both_grads", "optimizer": "adamw_fused"}, 20),
        ({"recipe": "bf16", "optimizer": "sgd"}, 2 + 2 + 4),
        ({"optimizer": "adamw_8bit"}, 8 + 2 * (1 + 4 / 256)),
    ],
)
def test_full_training_holds_so_many_bytes_a_parameter_at_the_update(
    options: dict[str, Any], each: float
) -> None:
    assert at("update", LLAMA, Tuning.full(**options)).total == pytest.approx(each * P8)


def test_adapters_weigh_twelve_bytes_in_32_bits_before_a_step_and_16_in_it() -> None:
    tuning = Tuning.lora(16, "attention")
    n = tuned_parameters(MISTRAL, tuning).learning
    update = at("update", MISTRAL, tuning)
    assert update.weights + update.optimizer == 2 * count_parameters(MISTRAL).total + 12 * n
    assert update.total - update.transient == 2 * count_parameters(MISTRAL).total + 16 * n


def test_four_bits_leave_what_was_measured_after_training() -> None:
    """FM-057 holds 4,307,028,992 bytes then: 0.516 a weight, and what stays wide."""
    update = at("update", MISTRAL, Tuning.qlora(16, "attention"))
    assert update.weights + update.optimizer == pytest.approx(4_307_028_992, rel=0.01)


def test_the_helper_that_prepares_4_bits_doubles_embedding_and_head() -> None:
    plain, prepared = (at("update", LLAMA, Tuning.qlora(8, wide_bytes=w)) for w in (2, 4))
    wide = tuned_parameters(LLAMA, Tuning.qlora(8)).wide
    assert prepared.weights - plain.weights == 2 * wide
    assert 2 * wide == pytest.approx(2.1e9, rel=0.01)


@pytest.mark.parametrize("kernel", ["transformers", "plain", "in-place", "chunked", "fused"])
def test_logits_take_what_their_kernel_says(kernel: str) -> None:
    tuning = Tuning.lora(8, loss_kernel=kernel)
    each = {"transformers": 14, "plain": 12, "in-place": 10, "chunked": 4, "fused": 0}[kernel]
    assert at("loss", LLAMA, tuning).transient == each * 128256 * 4096


def test_a_token_more_takes_what_was_measured() -> None:
    """Mistral with LoRA, micro-batches of 4 and 8: FM-033 and FM-035, 734,762 bytes."""
    few, many = (
        tuned_memory(MISTRAL, Tuning.lora(16, "attention"), b, "full").total for b in (4, 8)
    )
    measured = (38_742_912_512 - 26_704_571_904) / (4 * 4096)
    assert (many - few) / (4 * 4096) == pytest.approx(measured, rel=0.005)


def test_a_stage_shares_out_what_it_says_and_the_third_gathers() -> None:
    tuning = Tuning.full()
    unsharded = at("update", LLAMA, tuning)
    for stage, parts in enumerate([(), ("optimizer",), ("optimizer", "gradients")]):
        shared = at("update", LLAMA, tuning, zero_stage=stage, data_parallel=4)
        for name in ("weights", "gradients", "optimizer"):
            assert getattr(shared, name) * (4 if name in parts else 1) == getattr(unsharded, name)
    lora = Tuning.lora(8)
    wide = lora.replace(stream_bytes=4)  # what flows between layers is in 32 bits under FSDP
    whole = at("last layer", LLAMA, wide, zero_stage=3, data_parallel=1)
    shared = at("last layer", LLAMA, lora, zero_stage=3, data_parallel=4)
    assert shared.weights == whole.weights / 4
    assert shared.activations == whole.activations
    each = tuned_parameters(LLAMA, lora).frozen // 32
    gathered = 2 * 2 * each + 2 * 2 * 128256 * 4096
    assert shared.transient - whole.transient == gathered


MIXED = Tuning.full(), Tuning.lora(16), Tuning.qlora(8, "attention"), Tuning.lora(8, ["o_proj"])


@pytest.mark.parametrize(
    "model", [LLAMA, MIXTRAL, DEEPSEEK, Transformer.gpt(4, 768, 12, 50304, 64)]
)
@pytest.mark.parametrize("tuning", MIXED, ids=lambda t: f"{t.method} {len(t.targets)}")
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_more_gpus_for_each_matrix_and_more_replicas_never_need_more(
    model: Any, tuning: Tuning, recompute: Any
) -> None:
    def peaks(**options: Any) -> list[float]:
        return [memory.total for memory in tuned_phases(model, tuning, 2, recompute, **options)]

    for stage, shares in product(range(4), (False, True)):
        ways = {"zero_stage": stage, "sequence_parallel": shares}
        by_width = [peaks(tensor_parallel=t, data_parallel=4, **ways) for t in (1, 2, 4)]
        by_replicas = [peaks(tensor_parallel=2, data_parallel=d, **ways) for d in (2, 4, 64)]
        for fewer, more in (*pairwise(by_width), *pairwise(by_replicas)):
            assert all(x <= y for x, y in zip(more, fewer, strict=True))
    split = peaks(tensor_parallel=4, sequence_parallel=True)
    assert all(x < y / 2.5 for x, y in zip(split, peaks(), strict=True))


def test_tensor_parallelism_leaves_norms_inputs_and_half_of_each_adapter_whole() -> None:
    """Of attention's output and of the down projection A is split, of the others B."""
    r, t, norms = 8, 4, (2 * L + 1) * H
    tuning = Tuning.lora(r, adapter_bytes=2)
    n = tuned_parameters(LLAMA, tuning, t)
    whole, split = 4 * H + 2 * H + H, H + 2 * KV + H + 2 * F + F  # q, k, v, o; gate, up; down
    assert n.learning == L * r * (whole + split // t)
    alone, shared = (at("update", LLAMA, tuning, tensor_parallel=x) for x in (1, t))
    of_adapters = 2 * n.learning
    assert shared.weights - of_adapters == 2 * ((P8 - norms) // t + norms)
    assert shared.gradients == of_adapters
    assert shared.optimizer == 2 * of_adapters
    kept, inputs = (
        at("last layer", LLAMA, tuning, tensor_parallel=t, sequence_parallel=x).activations
        for x in (True, False)
    )
    assert 4 * kept == inputs == at("last layer", LLAMA, tuning).activations
    logits = [at("loss", LLAMA, tuning, tensor_parallel=x).logits for x in (1, t)]
    assert logits == [14 * 128256 * 4096, 14 * 128256 * 1024]
    assert alone.weights > 3.9 * shared.weights
    quantised = Tuning.qlora(r, loss_kernel="fused")
    two = [at("last layer", LLAMA, quantised, tensor_parallel=x).transient for x in (1, 2)]
    assert two[0] > two[1] > two[0] / 2  # a layer's inputs stay whole


def test_four_bit_kernels_of_2023_kept_what_they_read() -> None:
    now, then = (
        tuned_activations(LLAMA, Tuning.qlora(8, "attention", keeps_inputs=keeps), 1).layers
        for keeps in (False, True)
    )
    # In 32 layers what queries, gate and down read; the first layer's alike.
    assert then - now == 4096 * L * 2 * (2 * H + F)


def test_paged_states_lie_outside_of_the_allocators_memory() -> None:
    plain, paged = (at("loss", LLAMA, Tuning.full(optimizer=x)) for x in ("adamw", "adamw_paged"))
    assert plain.optimizer == 8 * P8
    assert paged.optimizer == 0


def test_accumulated_gradients_are_there_at_the_loss() -> None:
    for m in (1, 4):
        memory = at("loss", LLAMA, Tuning.full(), accumulation_steps=m)
        assert memory.gradients == (4 * P8 if m > 1 else 0)


def test_experts_are_held_all_and_met_by_two() -> None:
    tuning = Tuning.qlora(16, "attention")
    memory = at("update", MIXTRAL, tuning)
    assert memory.weights + memory.optimizer == pytest.approx(24_665_033_728, rel=0.01)  # FM-061


def test_an_array_has_no_one_peak() -> None:
    import numpy as np

    with pytest.raises(ValueError, match="is an array: here"):
        tuned_memory(LLAMA, Tuning.full(), np.array([1, 2]), "full")


# --- what is asked in practice


def test_packed_examples_are_as_long_as_they_are_and_padded_ones_as_the_longest() -> None:
    assert tuning_tokens(30_000, 800, 3) == 72_000_000
    assert tuning_tokens(30_000, 800, 3, padded_to=4096) == 30_000 * 4096 * 3
    assert tuning_tokens(1000, 10, 0.5) == 5000
    with pytest.raises(ValueError, match="tokens_each=800 is more than padded_to=512"):
        tuning_tokens(30_000, 800, padded_to=512)


CAPACITY = [
    row
    for row in published.rows("finetune_measured")
    if row.get("memory_kind") == "capacity" and "HF" in row["kernels"] and "sequence_length" in row
]


@pytest.mark.parametrize("row", CAPACITY, ids=lambda row: row["name"])
def test_the_longest_text_is_what_was_found_on_cards_of_each_size(row: dict[str, Any]) -> None:
    """Unsloth's search with Hugging Face's code: nothing is fitted to these rows.

    They say neither whether layers were recomputed (here: yes) nor what was prepared (here:
    embedding and head in 32 bits), and a reserve of 2 GB is taken.
    """
    model = LLAMA if "8B" in row["model"] else published.config_model("Llama-3.1-70B")
    card = int(row["accelerator"].split()[0]) * 2**30
    length = longest_sequence(model, Tuning.qlora(32, wide_bytes=4), card, "full", reserve=2e9)
    assert 0.94 <= length / row["sequence_length"] <= 1.15


def test_shared_texts_come_out_even() -> None:
    """Three GPUs would share 3n tokens: the longest text is the last of these that fits."""
    heads = Transformer.llama(8, 768, 12, 3, 2048, 32000, 4096)
    run = Tuning.lora(8), 8e9, "full"
    shared = longest_sequence(heads, *run, tensor_parallel=3, sequence_parallel=True)
    apart = longest_sequence(heads, *run, tensor_parallel=3)
    assert shared % 3 == 0
    assert shared >= apart > longest_sequence(heads, *run)
    ways = {"tensor_parallel": 3, "sequence_parallel": True}
    assert tuned_memory(heads, run[0], 1, "full", shared, **ways).total <= 8e9  # type: ignore[arg-type]
    assert tuned_memory(heads, run[0], 1, "full", shared + 3, **ways).total > 8e9  # type: ignore[arg-type]


def test_a_fused_loss_lets_texts_be_more_than_twice_as_long() -> None:
    card = 24 * 2**30
    whole, fused = (
        longest_sequence(LLAMA, Tuning.qlora(32, wide_bytes=4, loss_kernel=k), card, "full", 2e9)
        for k in ("transformers", "fused")
    )
    assert 2.5 < fused / whole < 3


def test_a_card_too_small_is_refused_by_its_bytes() -> None:
    with pytest.raises(ValueError, match="is too small for the model"):
        longest_sequence(LLAMA, Tuning.lora(8), 16e9, "full")
    gpt2 = published.architecture("gpt2")
    assert longest_sequence(gpt2, Tuning.lora(8, ["up_proj"]), 8e9, "full") > 1024


def test_a_card_without_an_end_takes_a_billion_tokens_at_the_most() -> None:
    for memory in (1e20, 1e30):
        assert longest_sequence(LLAMA, Tuning.lora(8), memory, "full") == 2**30
    assert longest_sequence(LLAMA, Tuning.lora(8), 1e13, "full") < 2**29


# --- what the page of chapter 13 draws


def test_a_text_goes_into_the_first_row_with_room() -> None:
    assert packed_rows([5, 4, 3, 2, 6], 8) == ((0, 0), (1, 0), (0, 5), (1, 4), (2, 0))
    assert packed_rows([8, 8], 8) == ((0, 0), (1, 0))


@pytest.mark.parametrize(("lengths", "row"), [([9], 8), ([], 8), ([0], 8), ([3], 0)])
def test_a_text_longer_than_a_row_is_refused(lengths: list[int], row: int) -> None:
    with pytest.raises(ValueError, match=r"lengths|row_length"):
        packed_rows(lengths, row)


def test_a_weights_bytes_are_those_of_all_of_them() -> None:
    """A matrix weight's bytes times the parameters are the states, where all are alike."""
    full = Tuning.full()
    assert sum(weight_bytes(full).values()) == 16
    P = count_parameters(LLAMA).total
    assert sum(tuned_states(LLAMA, full).values()) == 16 * P
    for tuning in (Tuning.lora(16), Tuning.qlora(16)):
        n = tuned_parameters(LLAMA, tuning)
        states = tuned_states(LLAMA, tuning)
        assert states["adapters"] == 16 * n.learning
        assert states["weights"] == weight_bytes(tuning)["weights"] * n.frozen + 2 * n.wide
    assert weight_bytes(Tuning.full(optimizer="adamw_8bit"))["optimizer"] == 2 * (1 + 4 / 256)
    assert sum(weight_bytes(Tuning.full("pure_bf16")).values()) == 8


@pytest.mark.parametrize("options", [{"adapter_bytes": 2}, {}, {"dropout": 0.1}])
@pytest.mark.parametrize(
    "targets", [["q_proj", "v_proj"], "attention", "mlp", ["down_proj"], "all-linear"]
)
def test_what_matrices_keep_is_what_targets_add_to_a_layer(targets: Any, options: Any) -> None:
    """Between the matrices lies the same, wherever adapters sit."""
    between = layer_without_matrices(targets, options)
    assert between == layer_without_matrices("o_proj", options)


def layer_without_matrices(targets: Any, options: dict[str, Any]) -> float:
    """Bytes a token that a layer keeps beside what its matrices read and adapters make."""
    tuning, kind = Tuning.lora(8, targets, **options), LLAMA.layers[0][1]
    two, three = (replace(LLAMA, layers=((n, kind),)) for n in (2, 3))
    layer = tuned_activations(three, tuning, 1).layers - tuned_activations(two, tuning, 1).layers
    kept = sum(each.size for each in saved_inputs(LLAMA, tuning).values())
    halves = 2 * 8 * len(targeted(LLAMA, tuning))
    return float(layer / LLAMA.sequence_length - kept - halves)


def test_a_matrix_says_what_it_keeps() -> None:
    full = saved_inputs(LLAMA, Tuning.full())
    assert full["query"] == ("its input", 2 * 4096)
    assert full["key"] == full["output"] == ("already stored", 0)
    assert full["down"] == ("its input", 2 * 14336)
    assert saved_inputs(LLAMA, Tuning.lora(8, "mlp"))["down"] == ("a copy", 2 * 14336)
    dropped = Tuning.lora(8, "mlp", dropout=0.1)
    assert saved_inputs(LLAMA, dropped)["up"] == ("copy, mask", 3 * 4096)
    assert saved_inputs(LLAMA, dropped)["key"] == ("nothing", 0)


@pytest.mark.parametrize("tuning", [Tuning.full(), Tuning.lora(8), Tuning.qlora(8, "mlp")])
def test_gpus_that_share_layers_have_a_share_between_their_matrices(tuning: Tuning) -> None:
    """Norms, inputs and what an adapter's first half gives are split with the sequence alone."""
    one, several, split = (
        tuned_activations(LLAMA, tuning, 1, tensor_parallel=t, sequence_parallel=along)
        for t, along in ((1, False), (8, False), (8, True))
    )
    assert split.total == one.total / 8
    assert (several.norms, several.head) == (one.norms, one.head)
    h, s, reads = LLAMA.hidden_size, LLAMA.sequence_length, tuning.is_full
    assert one.mlp - several.mlp == (one.mlp - LLAMA.num_layers * 2 * h * s * reads) * 7 / 8
    assert one.adapters >= several.adapters >= one.adapters / 8
    uneven = {"tuning": tuning, "micro_batch_size": 1, "tensor_parallel": 3}
    assert_refused(tuned_activations, "tensor_parallel=3", model=LLAMA, **uneven)
