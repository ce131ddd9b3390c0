"""A plan's memory, by stages and against measured peaks."""

from dataclasses import replace

import numpy as np
import pytest

from llmtrain_helpers import (
    OPTIMIZERS,
    Accelerator,
    Transformer,
    Tuning,
    advise,
    count_activations,
    count_parameters,
    model_state_bytes,
    plan_run,
    published,
    step_timeline,
    units,
)
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.memory import LOSS_KERNELS, Memory
from llmtrain_helpers.plan.memory import RESERVES, moments
from llmtrain_helpers.plan.options import EVERY_OPTIMIZER
from tests.bad_values import assert_refused
from tests.plan.cases import A100, H100, LLAMA, plan_of


def test_the_8b_step_of_06_and_the_plan_of_07_differ_by_the_gradients() -> None:
    """With one pass the loss comes before any gradient; the plan has them all there."""
    model = published.architecture("Llama-3.1-8B", 8192)
    one, two = (
        step_timeline(model, 1, "bf16_fp32_grads", "none", accumulation_steps=k).peak
        for k in (1, 2)
    )
    gradients = 4 * count_parameters(model).total
    assert two.total == one.total + gradients
    b200 = published.accelerator("B200")
    plan = plan_run(*(model, b200, 1, 1e12, 2), recompute="none", recipe="bf16_fp32_grads")
    assert plan.memory.total == two.total
    assert [units.gigabytes(peak.total) for peak in (one, two)] == ["169 GB", "201 GB"]
    assert one.total < b200.memory < two.total


@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize("stage", range(4))
def test_on_one_stage_memory_is_states_and_activations(recompute, stage) -> None:
    plan = plan_of(recompute=recompute, zero_stage=stage, attention="unfused")
    states = model_state_bytes(count_parameters(LLAMA).total, "bf16", stage, 64)
    none, activations = (count_activations(LLAMA, 1, r, "unfused") for r in ("none", recompute))
    logits = 8 * 8192 * 128256
    layer, h = LLAMA.layers[0][1], LLAMA.hidden_size
    ends = (stage == 3) * 4 * 2 * h * 128256  # gathered, with their gradients
    # The layer at work, its MLP's gradients, and two gathered layers with one's gradients.
    working = max if recompute == "selective" else lambda *sizes: sum(sizes)
    at_work = working((none.layers - activations.layers) / 32, 2 * 2 * 8192 * 14336)
    at_work += (stage == 3) * 6 * layer.parameters(h)
    if activations.head + logits >= at_work:
        assert plan.memory.moment == "loss"
        assert plan.memory.activations == activations.total
        assert plan.memory.transient == logits + ends
    else:
        assert plan.memory.moment == "last layer"
        assert plan.memory.activations == activations.layers
        assert plan.memory.transient == at_work + ends
    expected = states.total + plan.memory.activations + plan.memory.transient
    assert plan.memory.total == pytest.approx(expected)
    assert plan.free_memory == plan.card - plan.memory.total
    assert plan.card == A100.shown_memory


def test_at_the_loss_are_the_logits_and_where_they_are_few_the_last_layer_is_fuller() -> None:
    for split in ({}, {"tensor_parallel": 4}, {"context_parallel": 4, "zero_stage": 1}):
        plan = plan_of(recompute="none", **split)
        ways = plan.split.tensor_parallel * plan.split.context_parallel
        assert plan.memory.moment == "loss"
        assert plan.memory.transient == plan.memory.logits == 8 * 8192 * 128256 / ways
    small = replace(LLAMA, vocab_size=32000)
    full = plan_of(model=small, recompute="full", attention="unfused")
    assert full.memory.moment == "last layer"
    assert full.memory.logits == 0


def test_gradients_of_earlier_passes_are_there_at_the_loss_and_with_one_pass_none() -> None:
    one, two = (plan_of(global_batch_size=64 * passes).memory for passes in (1, 2))
    gradients = 2 * count_parameters(LLAMA).total
    assert one.moment == two.moment == "loss"
    assert (one.gradients, two.gradients) == (0, gradients)
    assert two.total == one.total + gradients


def test_memory_does_not_depend_on_the_global_batch_from_two_passes_on() -> None:
    assert plan_of().memory == plan_of(global_batch_size=4096).memory


def test_tensor_parallelism_splits_the_matrices_and_not_the_norms() -> None:
    one, eight = plan_of(zero_stage=0), plan_of(tensor_parallel=8)
    norms = count_parameters(LLAMA).norm
    matrices = count_parameters(LLAMA).total - norms
    assert one.memory.weights == 2 * (matrices + norms)
    assert eight.memory.weights == 2 * (matrices // 8 + norms)
    assert eight.memory.activations == one.memory.activations / 8


def test_without_sequence_parallelism_part_stays_whole() -> None:
    plan = plan_of(tensor_parallel=8, sequence_parallel=False)
    size = count_activations(LLAMA, 1, tensor_parallel=8).total
    assert plan.memory.activations == size > plan_of(tensor_parallel=8).memory.activations


def test_the_first_stage_holds_the_micro_batches_in_flight() -> None:
    """min(p, m) of them: all layers' worth when there are as many as stages."""
    deep = plan_of(pipeline_parallel=8)
    assert deep.split.accumulation_steps == 64
    layers = count_activations(LLAMA, 1).layers
    assert deep.memory.activations == layers
    assert deep.memory.transient == 2 * 2 * 8192 * 14336  # the gradients of an MLP
    short = plan_of(pipeline_parallel=8, global_batch_size=16)
    assert short.split.accumulation_steps == 2
    assert short.memory.activations < layers / 2


def test_the_last_stage_holds_the_head() -> None:
    plan = plan_of(pipeline_parallel=8, recompute="full", global_batch_size=8)
    activations = count_activations(LLAMA, 1, "full")
    assert plan.memory.activations == activations.layers / 8 + activations.head
    assert plan.memory.transient == 8 * 8192 * 128256


def test_a_tied_head_has_its_own_copy_on_the_last_stage() -> None:
    tied = replace(LLAMA, tied_embeddings=True)
    shape = {"pipeline_parallel": 2, "recompute": "full", "global_batch_size": 64}
    one, two = (plan_of(model=model, **shape).memory.weights for model in (LLAMA, tied))
    assert one == two
    assert plan_of(model=tied).memory.weights == 2 * count_parameters(tied).total


def test_context_parallelism_shares_sequence_and_states() -> None:
    plan = plan_of(context_parallel=4, zero_stage=1)
    assert plan.split.data_parallel == 16
    assert plan.memory.activations == count_activations(LLAMA, 1).total / 4
    assert plan.memory.optimizer == plan_of(zero_stage=1).memory.optimizer


def test_uneven_stages_round_up() -> None:
    model = published.architecture("Llama-3.1-405B", sequence_length=8192)
    shape = {"model": model, "accelerator": H100, "num_gpus": 16384}
    shape |= {"tensor_parallel": 8, "pipeline_parallel": 16, "zero_stage": 1}
    shape |= {"global_batch_size": 2048}
    assert_refused(plan_of, "num_layers=126 is not divisible", **shape)
    plan = plan_of(**shape, uneven_stages=True)
    counted = count_parameters(model)
    layers = 8 * (counted.total - counted.embedding - counted.head) // 126
    assert plan.memory.weights == pytest.approx(2 * (layers + counted.head) / 8, rel=1e-3)


INTERLEAVED = {"pipeline_parallel": 8, "interleave": 2}


def test_interleaved_stages_hold_more_micro_batches_at_most_all() -> None:
    """p + (p − 1)/v on the first stage, p − (p − 1)/v on the last, at most m."""
    layers = count_activations(LLAMA, 1).layers
    first = plan_of(**INTERLEAVED)
    assert first.split.in_flight == (11.5, 4.5)
    assert first.memory.activations == layers * 11.5 / 8
    assert plan_of(pipeline_parallel=8).split.in_flight == (8, 1)
    few = plan_of(**INTERLEAVED, global_batch_size=80)
    assert few.split.accumulation_steps == 10
    assert few.split.in_flight == (10, 4.5)
    assert plan_of(pipeline_parallel=8, global_batch_size=64).split.in_flight == (8, 1)
    assert plan_of(pipeline_parallel=8, global_batch_size=56).split.in_flight == (7, 1)


@pytest.mark.parametrize("recompute", ["none", "selective"])
@pytest.mark.parametrize(
    "row", published.recomputation_runs().to_dict("records"), ids=lambda r: r["name"]
)
def test_activations_are_those_of_the_papers_first_stage(row, recompute) -> None:
    """arXiv 2205.05198 section 4.2.3: L·(1 + (p − 1)/(pv)) times a layer's bytes."""
    l, h, a, s = (row[x] for x in ("num_layers", "hidden_size", "num_heads", "sequence_length"))
    b, t, p, v = (
        row[x] for x in ("micro_batch_size", "tensor_parallel", "pipeline_parallel", "interleave")
    )
    plan = plan_run(
        Transformer.gpt(l, h, a, row["vocab_size"], s),
        A100,
        row["num_gpus"],
        300e9,
        row["global_batch_size"],
        recompute=recompute,
        micro_batch_size=b,
        tensor_parallel=t,
        pipeline_parallel=p,
        interleave=v,
        attention="unfused",
        dropout=True,
    )
    scores = 5 * a * s / h if recompute == "none" else 0
    more = 1 + (p - 1) / (p * v) if v > 1 else 1
    printed = s * b * h * l * (34 + scores) / t * more
    if p == 1:  # the paper leaves the head out
        head = (4 * h + 4 * row["vocab_size"]) * s * b / t
        assert plan.memory.activations - head == pytest.approx(printed, rel=0.03)
    else:
        assert plan.memory.activations == pytest.approx(printed, rel=0.03)


def test_a_plan_that_fits_on_paper_only_is_tight() -> None:
    plan = plan_of(zero_stage=3, accelerator=H100)
    assert plan.reserve == RESERVES["several"]
    assert plan.fits
    exact = plan.replace(reserve=plan.free_memory)
    assert exact.fits
    assert not exact.tight
    tight = plan.replace(reserve=plan.free_memory + 1)
    assert tight.tight
    assert not tight.fits
    assert repr(tight).endswith("tight>")
    assert advise(tight)
    full = Accelerator("full", plan.memory.total, peaks={"bf16": 1e15})
    assert plan.replace(accelerator=full, reserve=0).fits
    assert not plan.replace(accelerator=full).fits
    assert plan.replace(num_gpus=1).reserve == RESERVES["one GPU"]


def moments_of(**changes: object) -> dict[str, Memory]:
    return {moment.moment: moment for moment in moments(plan_of(**changes).run)}


def test_zero_3_gathers_the_ends_at_the_loss_and_layers_while_it_goes_through_them() -> None:
    two, three = (moments_of(zero_stage=stage) for stage in (2, 3))
    ends = 2 * LLAMA.hidden_size * 128256
    layer = LLAMA.layers[0][1].parameters(LLAMA.hidden_size)
    for name, matrices in {
        "loss": 2 * ends,  # embedding and head, with their gradients
        "last layer": 2 * ends + 3 * layer,  # two layers, the gradients of one
        "first layer": 2 * ends + 3 * layer,
        "update": 0,
    }.items():
        assert three[name].transient - two[name].transient == 2 * matrices
    assert moments_of(zero_stage=3, num_gpus=1)["last layer"].transient == (
        moments_of(num_gpus=1)["last layer"].transient  # nobody to gather from
    )


def test_fsdp_is_zero_3_with_the_logits_held() -> None:
    zero, fsdp = (moments_of(zero_stage=3, sharding=x) for x in ("zero", "fsdp"))
    h, V, s = LLAMA.hidden_size, 128256, LLAMA.sequence_length
    assert fsdp["loss"].logits - zero["loss"].logits == 2 * s * V
    assert fsdp["last layer"] == zero["last layer"]
    assert fsdp["update"] == zero["update"]
    assert_refused(plan_of, "zero_stage=1", zero_stage=1, sharding="fsdp")
    t = 4  # beside tensor parallelism a third tensor, and the head's input whole
    one, four = (
        moments_of(zero_stage=3, tensor_parallel=t, sharding=x)["loss"] for x in ("zero", "fsdp")
    )
    assert four.logits - one.logits == (2 * s * V + 4 * s * V) / t
    assert four.total - one.total == (2 * s * V + 4 * s * V + 2 * s * h * (t - 1)) / t


def test_fsdp_beside_a_pipeline_keeps_the_weights_of_its_stage() -> None:
    run = {"pipeline_parallel": 4, "keep_gradients": True}
    sharded, fsdp = (plan_of(**run, zero_stage=2), plan_of(**run, shard="fsdp"))
    h, layer = LLAMA.hidden_size, LLAMA.layers[0][1]
    more = fsdp.memory.transient - sharded.memory.transient
    weights = 2 * LLAMA.vocab_size * h + 8 * layer.parameters(h)
    gradients = layer.parameters(h)
    assert more == pytest.approx(2 * (weights + gradients), rel=1e-5)  # norms
    assert_refused(plan_of, "sharding=", sharding="FSDP2")


def test_whole_gradients_take_the_memory_that_sharding_saved() -> None:
    sharded, whole = (plan_of(zero_stage=2, keep_gradients=x) for x in (False, True))
    assert sharded.memory.gradients == whole.memory.gradients / 64
    assert whole.memory.gradients == plan_of().memory.gradients
    assert plan_of(zero_stage=2).memory == sharded.memory


def test_a_loss_kernel_decides_about_logits_alone() -> None:
    logits = 8192 * LLAMA.vocab_size
    at_loss = {kernel: moments_of(loss_kernel=kernel)["loss"] for kernel in LOSS_KERNELS}
    for kernel, size in LOSS_KERNELS.items():
        assert at_loss[kernel].total - at_loss["fused"].total == size * logits
        others = moments_of(loss_kernel=kernel), moments_of(loss_kernel="fused")
        for moment in ("last layer", "first layer", "update"):
            assert others[0][moment] == others[1][moment]
    assert plan_of().run.loss == "plain"
    assert plan_of(software="megatron-core").run.loss == "in-place"
    assert plan_of(shard="fsdp").run.loss == "transformers"
    assert plan_of(shard="fsdp", loss_kernel="chunked").run.loss == "chunked"


@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize(("recipe", "weights", "states"), [("bf16", 4, 8), ("amp", 4, 8)])
def test_an_optimizer_has_its_states_and_adamw_a_copy(stage, recipe, weights, states) -> None:
    P, ways = count_parameters(LLAMA).total, 64 if stage else 1
    run = {"recipe": recipe, "zero_stage": stage, "global_batch_size": 64}
    at = {x: moments_of(optimizer=x, **run)["update"] for x in EVERY_OPTIMIZER}
    assert at["adamw_fused"] == moments_of(**run)["update"]
    assert at["adamw_fused"].transient == 0
    assert at["adamw"].transient == weights * P / ways  # of main weights, if there are any
    assert at["adamw"].optimizer == at["adamw_fused"].optimizer == states * P / ways
    assert at["adamw_8bit"].optimizer == 2 * (1 + 4 / 256) * P / ways
    assert at["adamw_paged"].optimizer == at["sgd"].optimizer == 0
    h = LLAMA.hidden_size
    matrices = 32 * sum(m.weights for m in LLAMA.layers[0][1].matrices(h))
    assert at["muon"].optimizer == (states * (P - matrices) + states / 2 * matrices) / ways
    g, f = {"bf16": 2, "amp": 4}[recipe], 14336  # the iteration on an h × f matrix
    assert at["muon"].transient == (g + 4) * h * f + 4 * h**2
    largest = h * LLAMA.vocab_size  # the gradient of one matrix at a time
    for name in ("gradients", "main_gradients"):
        one, all_of_them = (getattr(at[x], name) for x in ("adamw_in_backward", "adamw_fused"))
        assert one == pytest.approx(all_of_them * largest / P)


def test_muon_has_one_state_for_the_matrices_of_a_stage_and_of_experts() -> None:
    mixtral = published.architecture("Mixtral-8x7B", 4096)
    split = {"tensor_parallel": 2, "expert_parallel": 4, "zero_stage": 1}
    for more in ({}, {"pipeline_parallel": 4}):
        adam, muon = (
            plan_of(model=mixtral, optimizer=x, **split, **more).memory.optimizer
            for x in ("adamw_fused", "muon")
        )
        assert 0.5 < muon / adam < 0.53


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        (
            "optimizer='adamw_in_backward' has no step of several passes: here are 8 micro-batches",
            {},
        ),
        ("optimizer='adamw_in_backward' has no step of several", {"global_batch_size": [64, 512]}),
        ("optimizer='sgd' changes nothing with recipe='adafactor'", {"optimizer": "sgd"}),
        ("optimizer='muon' changes nothing with recipe='adafactor'", {"optimizer": "muon"}),
        ("optimizer='sgd' is part of the tuning", {"optimizer": "sgd", "tuning": Tuning.full()}),
        (
            "loss_kernel='fused' is part of the tuning: write Tuning.full",
            {"optimizer": None, "loss_kernel": "fused", "tuning": Tuning.full()},
        ),
    ],
)
def test_what_changes_nothing_or_is_said_elsewhere_is_refused(problem, options) -> None:
    given = {"optimizer": "adamw_in_backward", **options}
    if "adafactor" in problem:
        given["recipe"] = OPTIMIZERS["adafactor"]
    if "global_batch_size" in given:
        given["global_batch_size"] = np.array(given["global_batch_size"])
    assert_refused(plan_of, problem, **given)


def test_a_tuned_run_has_its_loss_and_optimizer_in_its_tuning() -> None:
    tuned = plan_run(LLAMA, H100, 1, 1e9, 8, recompute="full", tuning=Tuning.lora(16))
    changed = tuned.replace(loss_kernel="fused", optimizer="sgd")
    assert changed.run.tuning == Tuning.lora(16, loss_kernel="fused", optimizer="sgd")
    assert (changed.run.loss, changed.run.update) == ("fused", "sgd")
    assert (changed.run.loss_kernel, changed.run.optimizer) == (None, None)
