"""A plan's step: what sending, waiting and computing add up to."""

from dataclasses import replace

import numpy as np
import pytest

from llmtrain_helpers import (
    Transformer,
    communication_seconds,
    count_flops,
    count_parameters,
    published,
)
from llmtrain_helpers.communication import LATENCY, bandwidth_of
from llmtrain_helpers.flops import expert_flops
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.plan.step import COMPILED, KERNEL_LAUNCH
from tests.plan.cases import A100, H100, LLAMA, UNLINKED, plan_of

GPT3 = Transformer.gpt(96, 12288, 96, 51200, 2048)


def test_where_links_are_unknown_recomputation_and_the_bubble_cost_time() -> None:
    plan = plan_of(accelerator=UNLINKED)
    assert plan.step is None
    plain, F = plan.seconds.likely, count_flops(LLAMA, 512, "full")
    full = plan.replace(recompute="full").seconds.likely
    assert full / plain == pytest.approx(F.total / F.model)
    piped = plan.replace(pipeline_parallel=8)
    assert piped.split.bubble == 7 / 64
    assert piped.seconds.likely / plain == pytest.approx(1 + 7 / 64)
    assert piped.mfu == pytest.approx(plan.mfu / (1 + 7 / 64))
    assert plan.replace(tensor_parallel=8).seconds == plan.seconds
    woven = plan.replace(pipeline_parallel=8, interleave=2)
    assert woven.split.bubble == 7 / 128
    assert woven.seconds.likely / plain == pytest.approx(1 + 7 / 128)


def test_a_node_wide_split_of_a_small_model_costs_time_and_a_large_one_needs_it() -> None:
    small = [plan_of(tensor_parallel=t, zero_stage=1) for t in (1, 2, 4, 8)]
    times = [plan.seconds.likely for plan in small]
    assert times == sorted(times)
    assert times[-1] > 1.4 * times[0]
    wide = plan_of(model=GPT3, tensor_parallel=16, sequence_parallel=False)
    node = wide.replace(tensor_parallel=8)
    assert wide.step.tensor > 2 * node.step.tensor  # it leaves the node


def test_what_replicas_send_grows_with_the_passes() -> None:
    """2, 2, k + 1 and 3k times the weights, (d − 1)/d of it."""
    plan = plan_of()
    k, W = plan.split.accumulation_steps, 2 * count_parameters(LLAMA).total
    assert k == 8
    sent = [plan.replace(zero_stage=stage).traffic for stage in range(4)]
    assert sent == [times * W * 63 / 64 for times in (2, 2, k + 1, 3 * k)]
    kept = [plan.replace(zero_stage=z, keep_gradients=True).traffic for z in (2, 3)]
    assert kept == [times * W * 63 / 64 for times in (2, 2 * k + 1)]


def test_arrays_of_uneven_stages_are_the_plans_one_by_one() -> None:
    model = published.architecture("Llama-3.1-405B", sequence_length=8192)
    shape = {"model": model, "accelerator": H100, "num_gpus": 1024, "reserve": 0}
    shape |= {"tensor_parallel": 8, "zero_stage": 1, "uneven_stages": True}
    shape |= {"global_batch_size": 2048}
    stages, pieces = np.array([2, 4, 8, 16]), np.array([1, 2])[:, None]
    swept = plan_of(pipeline_parallel=stages, interleave=pieces, **shape).step
    for (i, j), seconds in np.ndenumerate(swept.total):
        split = {"pipeline_parallel": int(stages[j]), "interleave": i + 1}
        one = plan_of(**split, **shape).step
        assert seconds == pytest.approx(one.total, rel=1e-12)
        assert swept.head[i, j] == pytest.approx(one.head, rel=1e-12)
    assert (swept.head == 0).any()
    assert (swept.head > 0).any()


BLOOM = Transformer.gpt(70, 14336, 112, 250_880, 2048)


def _bloom(stages: int) -> Plan:
    return plan_run(
        BLOOM,
        published.accelerator("A100-80"),
        384,
        1536 * 2048,
        1536,
        recompute="full",
        micro_batch_size=2,
        tensor_parallel=4,
        pipeline_parallel=stages,
        uneven_stages=True,
        reserve=0,
    )


def test_an_uneven_last_stage_has_a_layer_less_beside_the_head() -> None:
    even, uneven = _bloom(2), _bloom(12)  # 70 layers
    m = [plan.split.accumulation_steps for plan in (even, uneven)]
    parts = uneven.step.parts()
    names = ("matmuls", "memory", "kernel_launch", "tensor", "context", "expert")
    a_layer = sum(parts[name] for name in names) / 6
    head = even.step.head / m[0] * m[1]
    assert uneven.step.head == pytest.approx(head - a_layer)
    assert 0 < uneven.step.head < head / 10


def test_a_head_that_a_layer_outweighs_is_not_seen() -> None:
    model = replace(BLOOM, vocab_size=1024)
    step_of = _bloom(12).replace(model=model).step
    assert step_of.head == 0
    assert step_of.total == pytest.approx(sum(step_of.parts().values()))


@pytest.mark.parametrize(("recompute", "calls"), [("none", 4), ("full", 6)])
@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_all_reduces_of_every_layer_and_pass_wait_for_their_latency(
    recompute: str, calls: int, sequence_parallel: bool
) -> None:
    """Two forward, two backward, and two more where a layer is computed again."""
    shape = {"tensor_parallel": 8, "pipeline_parallel": 2, "sequence_parallel": sequence_parallel}
    plan = plan_of(recompute=recompute, **shape)
    layers, sent = LLAMA.num_layers / 2, plan.sent.tensor + plan.sent.sequence
    waiting = plan.split.accumulation_steps * layers * calls * LATENCY
    assert plan.step.tensor == pytest.approx(sent / bandwidth_of(A100, 8) + waiting)


SLOW = replace(H100, link_bandwidth=2e9, network_bandwidth=2e9)
"""A chip whose sending no computing hides whole."""


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_what_replicas_send_hides_beside_the_computing_of_its_passes(stage, recompute) -> None:
    """Stage 2 sends in every backward pass, two thirds of the computing, stage 3 always.

    Below it the last pass alone can hide it; with everything recomputed backward is half.
    New weights, half of stage 1's and a ninth of stage 2's, travel beside one forward pass.
    """
    plan = plan_of(accelerator=SLOW, zero_stage=stage, recompute=recompute)
    m = plan.split.accumulation_steps
    assert m == 8
    computing = plan.step.matmuls + plan.step.memory
    backward = computing * (2 / 4 if recompute == "full" else 2 / 3)
    forward = computing - backward
    forward = forward / (2 if recompute == "full" else 1) / m
    beside = {1: backward / m + forward, 2: backward + forward, 3: computing}
    beside = beside.get(stage, backward / m)
    calls = {"data": 1}
    alone = communication_seconds(plan.sent, SLOW, data_parallel=64, calls=calls).data
    assert plan.step.data == pytest.approx(alone - beside)
    assert plan.step.data > beside


def test_keys_and_values_travel_beside_the_products_of_all_passes() -> None:
    plan = plan_of(accelerator=SLOW, context_parallel=4)
    ways = {"context_parallel": 4, "data_parallel": 16}
    alone = communication_seconds(plan.sent, plan.run.accelerator, **ways).context
    assert plan.split.accumulation_steps == 32
    assert 0 < plan.step.context == pytest.approx(alone - plan.step.matmuls)


H200 = published.accelerator("H200")


@pytest.mark.parametrize("format", ["bf16", "fp8"])
def test_h200_is_no_slower_than_h100(format) -> None:
    """The same silicon with more memory: 16 bits at H100's share, fp8 at its own."""
    assert H200.matmul_rate("bf16") == H100.matmul_rate("bf16")
    assert H200.matmul_rate("fp8") > H100.matmul_rate("fp8")
    steps = [plan_of(accelerator=chip, format=format).step.total for chip in (H100, H200)]
    assert steps[1] <= steps[0]


def test_fp8_gains_where_tokens_meet_weights_alone() -> None:
    """The longer the text, the more of the work is scores, which stay in 16 bits."""
    gains, shares = [], []
    for s in (4096, 32768, 131072):
        model = replace(LLAMA, sequence_length=s)
        steps = [plan_of(model=model, accelerator=H100, format=f).step for f in ("bf16", "fp8")]
        flops = count_flops(model, 1, "none")
        gains.append(steps[0].matmuls / steps[1].matmuls)
        shares.append(flops.scores / flops.total)
        weights = flops.total - flops.head - flops.scores
        ratio = H100.matmul_rate("fp8") / H100.matmul_rate("bf16")
        assert gains[-1] == pytest.approx(
            (weights + flops.scores) / (weights / ratio + flops.scores)
        )
        assert steps[0].head == pytest.approx(steps[1].head)
    assert gains == sorted(gains, reverse=True)
    assert shares[-1] == pytest.approx(0.82, abs=0.01)
    assert gains[-1] < 1.1


def test_launches_run_alongside_computing_and_add_to_it_with_experts() -> None:
    small = Transformer.gpt(4, 128, 4, 512, 64)
    for model in (small, LLAMA, published.architecture("Mixtral-8x7B", 4096)):
        plan = plan_of(model=model, accelerator=H100)
        step, m = plan.step, plan.split.accumulation_steps
        computing = step.matmuls + step.memory
        launches = m * 3 * model.num_layers * KERNEL_LAUNCH  # forward, and backward is two
        if model.num_experts:
            assert step.kernel_launch == pytest.approx(launches)
        else:
            assert computing + step.kernel_launch == pytest.approx(np.hypot(computing, launches))
    assert plan_of(model=small).step.kernel_launch > 0.9 * m * 3 * 4 * KERNEL_LAUNCH
    assert plan_of(model=LLAMA, accelerator=H100).step.kernel_launch < 0.1 * computing


def test_compiled_kernels_launch_sooner_and_pass_over_the_logits_once() -> None:
    """Megatron-Core's loss is fused, and its layers launch kernel by kernel."""
    small = {"model": Transformer.gpt(4, 128, 4, 512, 64), "accelerator": H100}
    names = ({"compiled": False}, {"compiled": True}, {"software": "megatron-core"})
    eager, compiled, core = (plan_of(**small, **name).step for name in names)
    ratio = COMPILED.launch / KERNEL_LAUNCH
    assert compiled.kernel_launch / eager.kernel_launch == pytest.approx(ratio, abs=0.03)
    assert core.kernel_launch == eager.kernel_launch
    assert core.head == compiled.head
    logits = 46 * 64 * 512 * 8 / H100.bandwidth
    assert eager.head - compiled.head == pytest.approx(logits)
    named = plan_of(**small, software="megatron-core", compiled=True).step
    assert named.kernel_launch == compiled.kernel_launch


def test_newer_chips_sustain_less_of_their_best_product() -> None:
    for chip, share in ((A100, 1), (H100, 0.9), (published.accelerator("B200"), 0.8)):
        step = plan_of(accelerator=chip).step
        best = count_flops(LLAMA, 8, "none")
        assert step.matmuls == pytest.approx(
            (best.total - best.head) / chip.matmul_rate("bf16") / share
        )


def test_experts_products_run_at_half_rate() -> None:
    mixture = published.architecture("Mixtral-8x7B", sequence_length=4096)
    plan = plan_of(model=mixture, accelerator=H100)
    counted, sequences = count_flops(mixture, 1, "none"), 512 / 64
    slow = counted.total - counted.head + expert_flops(mixture, 1, "none")
    rate = 0.9 * H100.matmul_rate("bf16")
    assert plan.step.matmuls == pytest.approx(sequences * slow / rate)


def test_a_token_travels_to_each_other_node_only_once() -> None:
    """8 of 256 experts over four nodes: 2.7 copies cross, of 7.75 that are sent."""
    model = published.config_model("DeepSeek-V3", 4096)
    plan = plan_of(model=model, accelerator=H100, expert_parallel=32, overlap=False)
    across = 3 * (1 - (3 / 4) ** 8)
    assert across == pytest.approx(2.7, abs=0.005)
    sent, copies = plan.sent.expert, 8 * 31 / 32
    links, card = bandwidth_of(H100, 8), bandwidth_of(H100, 64, ring=False)
    assert plan.step.expert == pytest.approx(sent / links + sent * across / copies / card)
    node = plan.replace(expert_parallel=8)
    assert node.step.expert == pytest.approx(node.sent.expert / links)


def test_what_tensor_parallel_gpus_send_travels_beside_products_where_software_does_so() -> None:
    split = {"accelerator": H100, "tensor_parallel": 8}
    alone = plan_of(software="other", **split).step.tensor
    assert alone > 0
    assert plan_of(software="megatron-core", **split).step.tensor == 0
    assert plan_of(overlap=True, **split).step.tensor == 0
    assert plan_of(software="megatron-core", overlap=False, **split).step.tensor == alone
    slow = replace(H100, link_bandwidth=5e9)
    steps = [plan_of(accelerator=slow, tensor_parallel=8, overlap=x).step for x in (False, True)]
    assert steps[1].tensor == pytest.approx(steps[0].tensor - steps[0].matmuls)


def test_what_experts_send_travels_beside_products_unless_it_is_said_not_to() -> None:
    mixture = published.architecture("Mixtral-8x7B", sequence_length=4096)
    shared = {"model": mixture, "accelerator": SLOW, "expert_parallel": 8}
    steps = [plan_of(overlap=overlap, **shared).step for overlap in (False, None, True)]
    assert steps[1].expert == steps[2].expert
    assert steps[1].expert == pytest.approx(steps[0].expert - steps[0].matmuls)
