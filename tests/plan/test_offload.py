"""Offload to the CPU: what leaves the GPU, what it costs, and what others measured of it."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from llmtrain_helpers import (
    Plan,
    Recipe,
    Transformer,
    Tuning,
    advise,
    best_split,
    longest_sequence,
    plan_run,
    published,
    sweep,
    tuned_memory,
    tuned_parameters,
    tuned_phases,
)
from llmtrain_helpers.memory import CPU_ADAM, OFFLOAD, OFFLOAD_BANDWIDTH
from llmtrain_helpers.plan.advice import HOST_MEMORY
from llmtrain_helpers.plan.memory import moments, offload_seconds, offloaded_bytes
from llmtrain_helpers.precision import OPTIMIZERS
from tests.bad_values import assert_refused
from tests.plan.cases import A100, H100, LARGE, LLAMA, plan_of

P = 8_030_261_248


def parts_at(moment: str, **options: Any) -> dict[str, float]:
    [memory] = [x for x in moments(plan_of(**options).run) if x.moment == moment]
    return memory.parts()


# --- memory


@pytest.mark.parametrize(
    ("stage", "n", "offload", "each"),
    [
        (0, 1, "optimizer", 2 + 2),
        (1, 64, "optimizer", 2 + 2),
        (2, 1, "optimizer", 2),
        (2, 64, "optimizer", 2),
        (3, 64, "optimizer", 2 / 64),
        (3, 64, "weights", 0),
        (3, 1, "weights", 0),
    ],
)
def test_at_the_update_a_gpu_has_what_deepspeed_counts(stage, n, offload, each) -> None:
    """DeepSpeed's docs, memory.rst: 2P with ZeRO 2, 2P/n with ZeRO 3, nothing without weights.

    ZeRO 1 isn't in there: 16-bit gradients wait for the CPU's update.
    """
    run = {"num_gpus": n, "zero_stage": stage, "offload": offload, "recipe": "bf16"}
    assert sum(parts_at("update", **run).values()) == pytest.approx(each * P)


def test_gradients_leave_as_they_are_averaged_unless_they_are_kept() -> None:
    """One layer's and those of embedding and head remain, or what ZeRO gathers of them."""
    run = {"zero_stage": 2, "offload": "optimizer"}
    layer, ends = 218_112_000, 2 * 128_256 * 4096
    for moment in ("last layer", "first layer"):
        alone, all_of_them = (parts_at(moment, num_gpus=n, **run) for n in (1, 64))
        bare = parts_at(moment, num_gpus=1, **run | {"offload": "none"})
        assert alone["gradients"] == all_of_them["gradients"] == 0
        assert alone["transient"] - bare["transient"] == 2 * (layer + ends)
        assert all_of_them["transient"] - bare["transient"] == pytest.approx(2 * P / 64)
        kept = parts_at(moment, num_gpus=64, keep_gradients=True, **run)
        assert kept["gradients"] == pytest.approx(2 * P)
        gathered = {parts_at(moment, zero_stage=3, offload=x)["transient"] for x in OFFLOAD}
        assert len(gathered) == 1  # with ZeRO 3 they are there anyway


def test_offloaded_weights_are_gathered_on_one_gpu_too() -> None:
    layer, ends = 218_112_000, 2 * 128_256 * 4096
    run: dict[str, Any] = {"num_gpus": 1, "zero_stage": 3, "recipe": "bf16"}
    bare, alone = (parts_at("last layer", offload=x, **run) for x in ("none", "weights"))
    assert alone["weights"] == 0
    assert alone["transient"] - bare["transient"] == (2 + 2) * ends + (2 * 2 + 2) * layer
    many = parts_at("last layer", **run | {"num_gpus": 64, "offload": "weights"})
    assert many["transient"] == alone["transient"]
    mixture = published.architecture("Mixtral-8x7B", 4096)
    on_gpu, on_host = (
        parts_at(
            "last layer", model=mixture, num_gpus=8, expert_parallel=8, zero_stage=3, offload=x
        )
        for x in ("none", "weights")
    )
    experts = 3 * 4096 * 14336
    assert on_host["transient"] - on_gpu["transient"] == pytest.approx((2 * 2 + 2) * experts)


class Measured(NamedTuple):
    """Peaks in GiB and throughput of a LLaMA-7B on eight A800, without offload and with it."""

    stage: int
    micro_batch_size: int
    gibibytes: dict[str, float]
    sequences: dict[str, float]


CHENYAOFO = (
    Measured(2, 1, {"none": 23.5, "optimizer": 16.9}, {"none": 4.19, "optimizer": 1.81}),
    Measured(3, 2, {"none": 20.4, "optimizer": 9.4}, {"none": 4.45, "optimizer": 2.05}),
)
"""gist.github.com/chenyaofo/d4cd6a20ab4b95cb3a49491747e2139a: 4,096 tokens, 64 sequences a step,
recomputed, DeepSpeed 0.14.2, whose buckets (about 1 GiB) aren't counted; its throughput is taken
for sequences/s. Left out: its row of offloaded weights, whose 7.9 GiB aren't those of the four
sequences that it names."""


def of_chenyaofo(row: Measured, offload: str) -> Plan:
    model = Transformer.llama(32, 4096, 32, 32, 11008, 32000, 4096)
    how = {"micro_batch_size": row.micro_batch_size, "zero_stage": row.stage, "offload": offload}
    run: Any = {**how, "loss_kernel": "transformers", "recompute": "full"}
    return plan_run(model, "A100", 8, 1e9, 64, **run)


@pytest.mark.parametrize("row", CHENYAOFO)
def test_a_measured_7b_has_what_is_counted_and_deepspeeds_buckets(row: Measured) -> None:
    offloaded = of_chenyaofo(row, "optimizer").memory.total / 2**30
    assert 1.2 < row.gibibytes["optimizer"] - offloaded < 1.7
    bare = of_chenyaofo(row, "none").memory.total / 2**30
    assert bare - offloaded == pytest.approx(14 / 8 * 6_738_415_616 / 2**30, abs=0.01)
    saved = row.gibibytes["none"] - row.gibibytes["optimizer"]
    assert saved == pytest.approx(bare - offloaded, rel=0.005 if row.stage == 3 else 0.4)


@pytest.mark.parametrize(
    ("layers", "h", "b"),
    [(20, 2048, 32), (50, 4096, 10), (55, 4096, 8), (60, 4096, 4), (65, 4096, 4)],
)
def test_zero_offloads_models_fit_on_one_v100_of_32_gb_as_they_did(layers, h, b) -> None:
    """Ren et al. (arXiv 2101.06840), Table 3: up to 13 billion, each with its largest micro-batch.

    Without offload none does, and twice the sequences leave less than the reserve.
    """
    model = Transformer.gpt(layers, h, 32, 50257, 1024)
    in_fp16 = Recipe("fp16", 2, 2, 0, 4, 8)
    run: dict[str, Any] = {"recompute": "full", "zero_stage": 2, "recipe": in_fp16}
    plan = plan_run(
        model, "V100 32GB SXM2", 1, 1e9, 8 * b, micro_batch_size=b, offload="optimizer", **run
    )
    assert plan.memory.weights == 2 * plan.parameters.total
    assert plan.fits or plan.tight
    assert plan.replace(offload="none").free_memory < 0
    assert not plan.replace(micro_batch_size=2 * b).fits


# --- what is refused


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        ("offload='cpu' is unknown", {"offload": "cpu"}),
        (
            "offload='weights' is for weights that are sharded, not for zero_stage=2",
            {"zero_stage": 2},
        ),
        ("offload='weights' isn't planned with a pipeline", {"pipeline_parallel": 2}),
        ("offload='weights' isn't planned with optimizer='muon'", {"optimizer": "muon"}),
        ("offload='weights' isn't planned with optimizer='sgd'", {"optimizer": "sgd"}),
        (
            "offload='weights' isn't planned with optimizer='adamw_8bit'",
            {"optimizer": "adamw_8bit"},
        ),
        ("offload='weights' isn't planned with recipe='adafactor'", {"recipe": "adafactor"}),
    ],
)
def test_what_cannot_be_offloaded_is_refused(problem: str, options: dict[str, Any]) -> None:
    run: dict[str, Any] = {
        "zero_stage": 3,
        "offload": "weights",
        "keep_gradients": False,
        **options,
    }
    if "recipe" in run:
        run["recipe"] = OPTIMIZERS[run["recipe"]]
    assert_refused(plan_of, problem, **run)


def test_tuning_refuses_the_same() -> None:
    for tuning, problem in (
        (Tuning.lora(8, optimizer="adamw_paged"), "optimizer='adamw_paged'"),
        (Tuning.full(optimizer="adamw_in_backward"), "optimizer='adamw_in_backward'"),
        (Tuning.full(), "for zero_stage=0"),
    ):
        for call in (tuned_memory, longest_sequence):
            given = (80e9, "full") if call is longest_sequence else (1, "full")
            with pytest.raises(ValueError, match=f"^offload='weights' .*{problem}"):
                call(LLAMA, tuning, *given, offload="weights")


# --- tuning


def test_both_doors_to_tuning_offload_the_same() -> None:
    for tuning in (Tuning.full("bf16"), Tuning.lora(16), Tuning.qlora(16)):
        for n, offload in ((1, "optimizer"), (2, "optimizer"), (1, "weights"), (2, "weights")):
            run: Any = {"recompute": "full", "zero_stage": 3, "offload": offload}
            plan = plan_run(LLAMA, "H100", n, 1e8, 2 * n, tuning=tuning, **run)
            how: Any = {"accumulation_steps": 2, "zero_stage": 3, "data_parallel": n}
            assert plan.memory == tuned_memory(LLAMA, tuning, 1, "full", offload=offload, **how)
            assert plan.memory.optimizer == plan.memory.main_weights == plan.memory.gradients == 0
            assert (plan.memory.weights == 0) == (offload == "weights")


def test_tuning_has_the_same_gradients_at_work_and_gathers_the_same() -> None:
    """A layer's and the ends' where all weights learn; of adapters a layer's share."""
    layer, ends = 218_103_808, 2 * 128_256 * 4096
    adapters = tuned_parameters(LLAMA, Tuning.lora(16)).learning / 32
    for tuning, gradients, gathered in (
        (Tuning.full("bf16"), 2 * (layer + ends), (2 * 2 + 2) * layer + (2 + 2) * ends),
        (Tuning.lora(16), 4 * adapters, 2 * 2 * layer + 2 * ends),
    ):

        def at_work(stage: int, offload: Any, tuning: Tuning = tuning) -> float:
            _, moment, *_ = tuned_phases(
                LLAMA, tuning, 1, "full", zero_stage=stage, offload=offload
            )
            return float(moment.transient)

        bare = at_work(2, "none")
        assert at_work(2, "optimizer") - bare == pytest.approx(gradients)
        assert at_work(1, "optimizer") == bare
        assert at_work(3, "weights") - bare == pytest.approx(gathered)


def test_frozen_weights_are_offloaded_and_make_room_for_a_longer_text() -> None:
    """All of an 8B's 16-bit weights but what is gathered, as if they weren't there."""
    tuning, card = Tuning.lora(16, loss_kernel="fused"), 24e9
    here, there = (
        longest_sequence(LLAMA, tuning, card, "full", zero_stage=3, offload=x)
        for x in ("none", "weights")
    )
    assert there > 2 * here
    run: Any = {"recompute": "full", "zero_stage": 3, "tuning": tuning}
    plan = plan_run(LLAMA, "H100", 1, 1e8, 1, **run)
    n = tuned_parameters(LLAMA, tuning).learning
    assert offloaded_bytes(plan.run.replace(offload="weights")) == 2 * P + 16 * n


# --- seconds


def test_seconds_are_those_of_the_bus_and_of_the_cpus_update() -> None:
    """On 64 GPUs in nodes of 8, with 8 passes."""
    each = P / 64
    run: dict[str, Any] = {"zero_stage": 2, "offload": "optimizer", "recipe": "bf16"}
    update = CPU_ADAM * 8 * each
    for options, sent in (
        ({}, 8 * 2 + 2),
        ({"keep_gradients": True}, 2 + 2),
        ({"zero_stage": 1}, 2 + 2),
        ({"zero_stage": 3}, 8 * 2 + 2),
        ({"zero_stage": 3, "offload": "weights"}, 8 * 2 + 8 * 2 * 2),
    ):
        plan = plan_of(**run | options)
        seconds = sent * each / OFFLOAD_BANDWIDTH + update
        assert offload_seconds(plan.run) == pytest.approx(seconds)
        assert plan.step.optimizer == pytest.approx(seconds)
        bare = plan.replace(offload="none").seconds_per_iteration
        assert plan.seconds_per_iteration.likely > bare.likely


def test_the_constants_are_the_published_ones() -> None:
    """Table 4 of arXiv 2101.06840, seconds of CPU-Adam by billions; and the bus of a DGX A100."""
    table = {1: 0.22, 2: 0.51, 4: 1.03, 8: 2.41, 10: 2.57}
    rates = [seconds / (n * 1e9) for n, seconds in table.items()]
    assert pytest.approx(float(np.median(rates)), rel=0.005) == CPU_ADAM
    [links] = [
        row for row in published.links().to_dict("records") if row["name"] == "A100 80GB PCIe"
    ]
    assert 0.75 < OFFLOAD_BANDWIDTH / links["link_bandwidth"] < 0.85
    assert OFFLOAD_BANDWIDTH == 25e9


@pytest.mark.parametrize("row", CHENYAOFO)
def test_a_measured_7b_took_8_to_9_times_as_long_for_its_offload(row: Measured) -> None:
    """Which is what `OFFLOAD_BANDWIDTH` says, and the report: copies weren't pinned."""
    bare, offloaded = (64 / row.sequences[x] for x in ("none", "optimizer"))
    times = (offloaded - bare) / float(offload_seconds(of_chenyaofo(row, "optimizer").run))
    assert 8 < times < 9


def test_where_no_model_of_a_step_is_they_come_on_top_of_both_ends() -> None:
    unknown = replace(A100, link_bandwidth=None)
    tuned: Any = {"tuning": Tuning.full("bf16"), "num_gpus": 8, "recompute": "full"}
    for options in ({"accelerator": unknown}, {"recipe": "fp32", "format": "tf32"}, tuned):
        plan = plan_of(**{"zero_stage": 2, "stops": (1, 1, 1), **options})
        other = plan.replace(offload="optimizer")
        more = offload_seconds(other.run)
        for name in ("least", "likely", "greatest"):
            before, after = (getattr(x.seconds_per_iteration, name) for x in (plan, other))
            assert after - before == pytest.approx(more)
            before, after = (getattr(x.seconds, name) for x in (plan, other))
            assert after - before == pytest.approx(more * plan.iterations)


def test_a_rate_of_ones_own_has_them_and_a_step_of_ones_own_scales_them() -> None:
    plan = plan_of(zero_stage=2, flops_per_gpu=1e14)
    assert plan.replace(offload="optimizer").seconds == plan.seconds
    step = plan_of(zero_stage=2).calibrated(20)
    assert step.replace(offload="optimizer").seconds.likely > step.seconds.likely


def test_arrays_pass_through() -> None:
    n = np.array([1, 8, 64])
    for offload in OFFLOAD:
        run: Any = {"zero_stage": 3, "offload": offload}
        many = plan_of(num_gpus=n, **run)
        ones = [plan_of(num_gpus=int(x), **run) for x in n]
        assert many.memory.total == pytest.approx([x.memory.total for x in ones])
        assert many.seconds.likely == pytest.approx([x.seconds.likely for x in ones])
    best = best_split(LARGE, H100, 8, 64, offload="weights")
    assert best.run.zero_stage == 3
    assert best.fits
    swept = sweep(
        LARGE,
        H100,
        8,
        1e9,
        64,
        recompute="full",
        zero_stage=2,
        pipeline_parallel=1,
        offload="optimizer",
    )
    assert swept.fastest().run.offload == "optimizer"


# --- advice, report


def test_offload_is_advised_where_nothing_milder_does() -> None:
    """The 70B on 8 A100: states go to the CPU; on 4 H100 with the weights too."""
    run: dict[str, Any] = {"model": LARGE, "recompute": "full", "zero_stage": 3}
    [step] = advise(plan_of(num_gpus=8, sequence_parallel=False, **run))
    assert step.change == {"offload": "optimizer"}
    assert step.extra_cost > 0
    assert step.plan.fits
    alone = plan_of(num_gpus=1, global_batch_size=8, loss_kernel="fused", **run)
    [step] = advise(alone, fixed=("tensor_parallel",))
    assert step.change == {"offload": "weights"}
    assert step.plan.memory.weights == 0
    assert step.plan.fits
    assert all("offload" not in step.change for step in advise(alone, fixed=("offload",)))
    paged = advise(plan_of(num_gpus=8, recompute="full", accelerator=H100))
    assert all("offload" not in step.change for step in paged)


def test_no_more_is_advised_than_a_host_has() -> None:
    large = published.architecture("DeepSeek-V3", 4096)
    plan = plan_run(large, "H200", 8, 1e12, 64, recompute="full", zero_stage=3)
    offloaded = plan.replace(offload="weights")
    assert offloaded.fits
    assert 8 * offloaded_bytes(offloaded.run) > HOST_MEMORY
    changed = {name for step in advise(plan) for name in step.change}
    assert "num_gpus" in changed


def test_the_report_says_what_is_on_the_cpu_and_what_it_costs() -> None:
    plan = plan_run("Llama-3.1-8B", "H100", 1, 1e9, 64, recompute="full", zero_stage=2)
    page = plan.replace(offload="optimizer").report().markdown
    assert "112 GB on the CPU for each GPU" in page
    assert "for offload, none of it hidden: 25 GB/s to and from the CPU, and its AdamW" in page
    assert "CPU" not in plan.report().markdown
    rate = plan.replace(offload="optimizer", flops_per_gpu=2e14).report().markdown
    assert "on the CPU" in rate
    assert "GB/s" not in rate
