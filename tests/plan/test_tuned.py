"""A plan of a model that is tuned: what it shows, what it refuses, what it keeps."""

import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from llmtrain_helpers import (
    Plan,
    Transformer,
    Tuning,
    advise,
    best_split,
    count_parameters,
    fewest_gpus,
    plan_run,
    published,
    tuned_flops,
    tuned_memory,
    tuned_parameters,
    units,
)
from llmtrain_helpers.model.names import known_model
from llmtrain_helpers.plan.memory import RESERVES, WIDE_RESERVES, moments, unmeasured
from llmtrain_helpers.tuning import FULL_RECIPES
from research import finetunes

MODEL = published.architecture("Llama-3.1-8B", sequence_length=2048)
LORA, QLORA = Tuning.lora(16, loss_kernel="fused"), Tuning.qlora(16, loss_kernel="fused")
FULL = Tuning.full()


def plan(tuning: Tuning | None = LORA, num_gpus: int = 1, **options: Any) -> Any:
    given = {"recompute": "full", "tuning": tuning, **options}
    chip = given.pop("accelerator", "H100")
    return plan_run(MODEL, chip, num_gpus, 24e6, 64, **given)


@pytest.mark.parametrize("tuning", [Tuning.full(), LORA, QLORA])
def test_a_plan_has_the_formulas_numbers(tuning: Tuning) -> None:
    tuned_plan = plan(tuning, micro_batch_size=4)
    assert tuned_plan.flops == tuned_flops(MODEL, tuning, 64, "full")
    peak = tuned_memory(MODEL, tuning, 4, "full", accumulation_steps=16)
    assert tuned_plan.memory.total == pytest.approx(peak.total)
    assert tuned_plan.phase == peak.moment
    at_peak = tuned_plan.flops.total * tuned_plan.iterations / 989.4e12
    assert tuned_plan.seconds.likely == pytest.approx(at_peak / 0.57, rel=0.001)
    assert tuned_plan.seconds.greatest > tuned_plan.seconds.likely > tuned_plan.seconds.least


def test_without_tuning_nothing_changes() -> None:
    assert plan(None).run.tuning is None
    assert plan(None).phase == "loss"
    assert plan(None).memory == plan_run(MODEL, "H100", 1, 24e6, 64, recompute="full").memory


@pytest.mark.parametrize(
    "options",
    [
        {"pipeline_parallel": 2, "num_gpus": 2},
        {"context_parallel": 2, "num_gpus": 2},
        {"recipe": "pure_bf16"},
        {"dropout": True},
        {"fused_mlp": True},
        {"overlap": True},
        {"compiled": True},
        {"software": "megatron-core"},
        {"keep_gradients": True, "zero_stage": 2},
        {"recompute": "selective"},
        {"recompute": "alternate"},
        {"format": "fp8"},
        {"micro_batch_size": np.array([1, 2])},
    ],
)
def test_what_is_not_known_of_tuning_is_refused_by_name(options: dict[str, Any]) -> None:
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"^{name}="):
        plan(**options)


@pytest.mark.parametrize("recipe", FULL_RECIPES)
@pytest.mark.parametrize("name", ["Llama-3.1-8B", "gpt2", "Mixtral-8x7B", "phi-2"])
def test_in_full_the_states_are_those_of_training_from_nothing(name: str, recipe: Any) -> None:
    """Two doors, one number: with the same bytes, split and optimizer."""
    model = finetunes.shape(name, 1024) if name == "phi-2" else known_model(name, 1024)
    for t, stage, update in product((1, 2, 4), range(4), ("adamw", "adamw_8bit", "sgd")):
        run = {"tensor_parallel": t, "zero_stage": stage, "recompute": "full", "num_gpus": 4 * t}
        same = model, "H100", run.pop("num_gpus"), 1e9, 4
        trained = plan_run(*same, recipe=recipe, optimizer=update, **run)  # type: ignore[arg-type]
        tuned = plan_run(*same, tuning=Tuning.full(recipe, optimizer=update), **run)  # type: ignore
        ours, theirs = (moments(x.run)[-1].parts() for x in (tuned, trained))
        assert ours == pytest.approx(theirs, rel=1e-12)


def test_more_than_a_node_keeps_more_free() -> None:
    inside, across = plan(num_gpus=8), plan(num_gpus=16)
    assert across.memory == inside.memory
    assert inside.reserve == RESERVES["several"]
    assert across.reserve == WIDE_RESERVES["several"]
    assert plan(num_gpus=16, reserve=1e9).reserve == 1e9
    nobody = "the reserve is the wider one, because nobody has measured what tuning across nodes "
    assert nobody in unescaped(across.report().markdown)
    for other in (inside, plan(num_gpus=16, reserve=1e9)):
        assert nobody not in unescaped(other.report().markdown)
    assert (unmeasured(inside.run), unmeasured(across.run)) == ((), ("tuning across nodes",))


SLOW = replace(published.accelerator("H100 SXM"), network_bandwidth=1.25e9)


def test_a_step_waits_for_what_its_nodes_send_each_other() -> None:
    """Longer than over the links, at 0.92 of eight cards where it would be 0.7 of a link."""
    inside, fast, across = (
        plan(num_gpus=n, shard="fsdp", accelerator=chip)
        for n, chip in ((8, SLOW), (16, "H100"), (16, SLOW))
    )
    assert inside.wait == fast.wait == 0
    assert fast.seconds_per_iteration.likely == inside.seconds_per_iteration.likely / 2
    wait = across.sent.data * (1 / (0.92 * 8 * 1.25e9) - 1 / (0.7 * 450e9))
    assert across.wait == pytest.approx(wait)
    step, computing = across.seconds_per_iteration, fast.seconds_per_iteration
    assert step.likely == pytest.approx(computing.likely + wait)
    assert step.greatest == pytest.approx(computing.greatest + wait)
    assert step.least == max(computing.least, across.wait) == across.wait
    share = units.percent(across.wait / step.likely)
    hybrid = plan(num_gpus=16, shard="hsdp", accelerator=SLOW)
    less = units.percent(hybrid.wait / hybrid.seconds_per_iteration.likely)
    sentence = f"For {share} of a step its GPUs wait for what nodes send each other, or {less} if "
    assert f"{sentence}each node has all states (hsdp)." in across.report().summary
    assert "of a step its GPUs" not in hybrid.report().summary
    tight = across.replace(reserve=across.free_memory)
    assert tight.fits > tight.replace(sharding="hsdp").fits
    assert "what nodes send each other." in tight.report().summary
    waits = f"{units.duration(across.wait, significant=2)} of it for what nodes send each other"
    assert waits in across.report().markdown
    for silent in (fast, across.calibrated(30), across.replace(utilizations=(0.1, 0.2, 0.3))):
        assert "send each other" not in silent.report().markdown


def test_states_in_each_node_spare_the_network() -> None:
    """Only the gradients of what learns cross it, each GPU with its own share of them."""
    across, apart = (plan(num_gpus=16, shard=shard, accelerator=SLOW) for shard in ("fsdp", "hsdp"))
    learning = tuned_parameters(MODEL, LORA).learning
    sent = 2 * LORA.bytes_of.gradients * learning / 16
    assert apart.wait == pytest.approx(sent * (1 / (0.92 * 1.25e9) - 1 / (0.7 * 450e9)))
    assert apart.wait < across.wait / 100


def test_an_unknown_network_counts_only_between_nodes() -> None:
    card = published.accelerator("RTX 4090")
    assert card.network_bandwidth is None
    wide = plan(num_gpus=16, accelerator=card, shard="fsdp")
    assert wide.wait is None
    assert not wide.counts_traffic
    beware = "we don't know the chip's network, so the days don't include what this split sends"
    assert beware in unescaped(wide.report().summary)
    alone, shared = (
        plan(num_gpus=8, accelerator=card, shard="fsdp", tensor_parallel=t) for t in (1, 2)
    )
    assert alone.wait == 0 < shared.wait  # type: ignore[operator]
    for node in (alone, shared):
        assert "Beware" not in node.report().summary


def test_shared_matrices_say_so_too_and_send_what_training_from_nothing_sends() -> None:
    apart, shared = (plan(FULL, num_gpus=8, tensor_parallel=t, micro_batch_size=4) for t in (1, 4))
    assert unmeasured(shared.run) == ("tensor parallelism in tuning",)
    assert shared.reserve == WIDE_RESERVES["several"]
    passes = 2 * 3 * 32 * shared.split.accumulation_steps  # all-reduces of layers
    sending = shared.sent.sequence / (0.7 * 450e9) + 45e-6 * passes
    assert shared.wait == pytest.approx(sending)
    assert "of it for what GPUs that share a matrix send each other" in shared.report().markdown
    assert shared.memory.total < apart.memory.total / 3
    trained = plan(None, num_gpus=8, tensor_parallel=4, micro_batch_size=4)
    assert shared.sent.sequence == trained.sent.sequence > 0
    assert apart.sent.sequence == apart.sent.tensor == 0
    n = tuned_parameters(MODEL, FULL, 4).learning
    assert shared.traffic == 2 * 4 * n / 2
    both = plan(num_gpus=16, tensor_parallel=2)
    assert "what nodes and GPUs that share a matrix send each other" in both.report().markdown
    nobody = "measured what tensor parallelism in tuning or tuning across nodes needs"
    assert nobody in both.report().markdown


def test_hybrid_sharding_keeps_the_states_in_each_node() -> None:
    fsdp, hybrid, node = (
        plan(FULL, num_gpus=n, shard=shard)
        for n, shard in ((32, "fsdp"), (32, "hsdp"), (8, "fsdp"))
    )
    assert hybrid.memory == node.memory
    assert fsdp.memory.total < hybrid.memory.total
    n, m = tuned_parameters(MODEL, FULL).learning, hybrid.split.accumulation_steps
    assert hybrid.traffic == pytest.approx(4 * n * (3 * m * 7 / 8 + 2 * 3 / 32))


@pytest.mark.parametrize("tuning", [FULL, LORA, QLORA])
def test_attention_that_stores_its_scores_is_planned(tuning: Tuning) -> None:
    for kernel in ("eager", "unfused"):
        stored, flash = (
            plan(tuning, attention=x, recompute="none", micro_batch_size=8)
            for x in (kernel, "flash")
        )
        peak = tuned_memory(MODEL, tuning, 8, "none", accumulation_steps=8, attention=kernel)  # type: ignore[arg-type]
        assert stored.memory == peak
        assert stored.memory.total > flash.memory.total + 0.9 * 32 * 32 * 8 * 2048**2 * 2
        assert f"{kernel} attention" in stored.report().markdown
        assert "attention" not in flash.report().markdown.replace("attention counted", "")


def test_scores_that_are_too_large_are_not_stored() -> None:
    """`flash` changes nothing of what's learned, so it's offered where the scores are large."""
    for tuning in (None, LORA, FULL.replace(loss_kernel="fused")):
        chip = {"num_gpus": 8, "shard": "fsdp", "loss_kernel": None if tuning else "fused"}
        stored = plan(tuning, attention="eager", recompute="none", micro_batch_size=4, **chip)
        assert not stored.fits
        changes = {name: x for step in advise(stored) for name, x in step.change.items()}
        assert changes == {"attention": "flash"}
        assert "It would fit with" in stored.report().summary
        assert "flash attention" in stored.report().summary
        fixed = advise(stored, fixed=["attention"])
        assert all("attention" not in step.change for step in fixed)


def test_nobody_measured_what_is_said_not_to_be_measured() -> None:
    rows = [row for row in published.rows("finetune_measured") if row.get("judged")]
    assert len(rows) > 200
    assert max(row["num_gpus"] for row in rows) <= 8
    assert not [row for row in rows if re.search(r"TP[2-9]|tensor", row.get("parallelism", ""))]


@pytest.mark.parametrize("tuning", [Tuning.full("pure_bf16"), FULL, LORA])
@pytest.mark.parametrize("shard", ["zero1", "fsdp"])
@pytest.mark.parametrize("card", [20e9, 40e9, 70e9, 85e9])
def test_the_fewest_gpus_are_found_inside_a_node_and_beyond(
    tuning: Tuning, shard: str, card: float
) -> None:
    """More GPUs than a node's need a wider reserve: what fits on a node may not fit on two."""
    model = published.architecture("Llama-3.1-8B", 2048)
    chip = replace(published.accelerator("H100"), shown_memory=card)
    run = {"recompute": "full", "shard": shard, "tuning": tuning, "micro_batch_size": 1}
    plan = plan_run(model, chip, 1, 1e9, 96, **run)  # type: ignore[arg-type]
    every = (plan.replace(num_gpus=n) for n in range(1, 97) if 96 % n == 0)
    fitting = [x.split.num_gpus for x in every if x.fits]
    if fitting:
        assert fewest_gpus(plan).split.num_gpus == fitting[0]
    else:
        with pytest.raises(ValueError, match="fit on any number of GPUs"):
            fewest_gpus(plan)


def test_a_word_is_no_tuning() -> None:
    with pytest.raises(ValueError, match="tuning='lora' isn't a Tuning"):
        plan("lora")  # type: ignore[arg-type]


def test_replicas_send_gradients_of_what_learns_and_gathered_weights() -> None:
    n = tuned_parameters(MODEL, LORA).learning
    assert plan().traffic == 0
    assert plan(num_gpus=2).traffic == 2 * 4 * n / 2
    full = plan(Tuning.full("pure_bf16"), num_gpus=4, shard="fsdp")
    P = full.parameters.total
    assert full.traffic == pytest.approx(full.split.accumulation_steps * 3 * 2 * P * 3 / 4)


def test_eight_billion_with_adapters_fit_on_24_gb_and_in_full_just_on_80_gib() -> None:
    assert plan(LORA, accelerator="RTX 4090").fits
    assert plan(QLORA, accelerator="RTX 4090").memory.total < 10e9
    full = plan(Tuning.full("pure_bf16"))
    assert full.reserve < full.free_memory < 6e9  # of the 85.5 that an H100 shows
    assert not full.replace(accelerator="H100 PCIe").fits  # of which nobody printed what it shows
    assert not plan(Tuning.full()).fits
    assert plan(Tuning.full("pure_bf16", optimizer="adamw_8bit")).fits


def test_advice_and_search_keep_the_tuning() -> None:
    large = plan(Tuning.full(), num_gpus=8, micro_batch_size=8)
    advice = advise(large)
    assert advice
    assert advice[-1].plan.fits
    for step in advice:
        assert step.plan.run.tuning == large.run.tuning
    best = best_split(MODEL, "H100", 8, 64, 24e6, tuning=LORA)
    assert best.run.tuning == LORA
    assert best.fits
    assert best.run.tensor_parallel == best.run.pipeline_parallel == 1
    for recipe, fewest in (("pure_bf16", 1), ("amp", 2)):
        shared = plan(Tuning.full(recipe), num_gpus=8, shard="fsdp")
        assert fewest_gpus(shared).split.num_gpus == fewest


def test_a_measured_step_takes_the_place_of_others() -> None:
    measured_plan = plan().calibrated(30)
    assert measured_plan.seconds.likely == pytest.approx(30 * measured_plan.iterations)
    assert measured_plan.replace(tuning=QLORA).run.tuning == QLORA


def test_the_report_says_what_learns() -> None:
    report = plan(price_per_gpu_hour=2).report("Llama 3.1 8B").markdown
    assert "H100 SXM tunes Llama 3.1 8B on 24.0 million tokens" in report
    assert "what learns | 41,943,040" in report
    assert "LoRA of rank 16" in report
    assert "loss expected" not in report
    assert "131 of 145 speeds" in report
    assert "recipe" not in report


def test_a_report_of_full_tuning_in_4_bits_names_them() -> None:
    assert "in 4 bits" in plan(QLORA).report().markdown
    assert "all weights learn" in plan(Tuning.full()).report().markdown


def test_a_report_warns_where_4_bits_are_slow() -> None:
    short = published.architecture("Llama-3.1-8B", sequence_length=512)
    few, many = (
        plan_run(short, "H100", 1, 24e6, 64, recompute="full", micro_batch_size=b, tuning=QLORA)
        for b in (1, 4)
    )
    assert "4 bits took others up to twice as long" in few.report().markdown
    assert "4 bits took others" not in many.report().markdown


QWEN = {
    "model_type": "qwen2",
    "hidden_size": 5120,
    "intermediate_size": 27648,
    "num_hidden_layers": 64,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}
"""Qwen2.5 32B, as its config.json has it."""


def adapted(model: Transformer | str, chip: str, num_gpus: int, s: int, **options: Any) -> Plan:
    shape = replace(known_model(model), sequence_length=s)
    how = {"recompute": "full", "zero_stage": 3, **options}
    return plan_run(shape, chip, num_gpus, 10_000_000, 16 * num_gpus, **how)


def test_a_7b_in_full_on_eight_v100_runs_out_of_memory_as_it_did() -> None:
    """meta-llama/llama-cookbook#234: FSDP, mixed precision in fp16, out of memory at AdamW.

    Of its 15.77 GiB the process had 1.47 outside of PyTorch. The driver shows 16 GiB, so the
    plan is on the edge of the card.
    """
    for s in (512, 2048):
        run = adapted("Llama-2-7b", "V100-16", 8, s, shard="fsdp", zero_stage=None, tuning=FULL)
        assert not run.fits
        assert run.phase == "update"
        assert run.memory.total > 1.05 * (15.77 - 1.47) * 2**30
    report = run.report().markdown
    assert "recipe amp, 16 bytes a parameter, products in fp16" in report
    assert "bf16" not in report


def test_a_32b_in_full_on_eight_h100_runs_out_of_memory_as_it_did() -> None:
    """axolotl-ai-cloud/axolotl#2531: ZeRO 3, sequences of 4,096, 79.6 GB allocated, no more."""
    model = Transformer.from_config(QWEN)
    assert count_parameters(model).total == 32_763_876_352
    for recipe in ("amp", "bf16"):  # bf16 is DeepSpeed's
        run = adapted(model, "H100", 8, 4096, tuning=Tuning.full(recipe))
        assert not run.fits
        assert run.memory.total > 79.6e9


def test_an_8b_in_full_on_two_gpus_needs_what_was_measured() -> None:
    """80.32 GB on each of two GPUs (IBM's Llama 3 8B), where 8 bytes would have fitted."""
    run = adapted("Llama-3.1-8B", "H100", 2, 2048, tuning=FULL)
    assert units.gigabytes(run.memory.total) == "80.3 GB"
    assert run.fits  # as it did, with 5.2 GB of the card's 85.5 left
    assert not run.replace(accelerator="H100 PCIe").fits
    other = adapted("Llama-3.1-8B", "H100", 2, 2048, tuning=Tuning.full("pure_bf16"))
    assert other.fits
    less, more = units.gigabytes(other.memory.total), units.gigabytes(run.memory.total)
    sentence = f"recipe amp, 16 bytes a parameter ({less} with 8, pure_bf16)"
    assert sentence in unescaped(run.report().markdown)
    sentence = f"recipe pure_bf16, 8 bytes a parameter ({more} with 16, amp)"
    assert sentence in unescaped(other.report().markdown)


def unescaped(markdown: str) -> str:
    return markdown.replace("\\", "")


def test_a_chip_without_bf16_gets_none() -> None:
    """Where a recipe isn't named, V100 has 32-bit weights and products in fp16."""
    for recipe in ("pure_bf16", "bf16", "bf16_fp32_grads"):
        with pytest.raises(ValueError, match=f"recipe='{recipe}' needs products in bf16, which V1"):
            adapted("Llama-2-7b", "V100", 8, 2048, tuning=Tuning.full(recipe))
        with pytest.raises(ValueError, match=f"recipe='{recipe}' needs products in bf16, which V1"):
            adapted("Llama-2-7b", "V100", 8, 2048, recipe=recipe)
    untuned = adapted("Llama-2-7b", "V100", 8, 2048)
    assert untuned.run.bytes_of.name == "amp"
    assert untuned.replace(accelerator="A100").run.bytes_of.name == "bf16"


def test_a_tuned_plan_takes_its_recipe_from_the_tuning() -> None:
    assert plan(FULL).run.bytes_of.name == "amp"
    with pytest.raises(ValueError, match="recipe='bf16' is part of the tuning"):
        plan(FULL, recipe="bf16")


@pytest.mark.parametrize("tuning", ["lora", 7, [8, 16]])
def test_a_changed_plan_refuses_what_is_no_tuning(tuning: object) -> None:
    plan = plan_run("gpt2", "A100", 8, 1e9, 64, recompute="none")
    with pytest.raises(ValueError, match=r"^tuning="):
        plan.replace(tuning=tuning)
