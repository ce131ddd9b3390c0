"""What the page of chapter 08 states, computed anew."""

import pytest

from llmtrain_course.parallelism.pictures import sending, spread_over_nodes
from llmtrain_helpers import count_parameters, plan_run, published
from llmtrain_helpers.communication import LATENCY, LINK_SHARE
from tests.pages import words

H100 = published.accelerator("H100")


LLAMA = published.architecture("Llama-3.1-70B", 8192)


SPLIT = {"tensor_parallel": 8, "zero_stage": 1, "recompute": "full"}


PLAN = plan_run(LLAMA, H100, 64, 1e12, 256, **SPLIT)


def test_the_win_is_what_the_traffic_says() -> None:
    P = count_parameters(LLAMA).total
    assert PLAN.sent.sequence == 32 * 80 * 7 * 2 * 7 / 8 * 2 * 8192 * 8192
    assert PLAN.sent.data == pytest.approx(2 * 7 / 8 * 2 * P / 8, rel=0.001)
    assert PLAN.sent.sequence / PLAN.sent.total > 0.99
    assert PLAN.step.total == pytest.approx(46, abs=0.5)
    assert H100.link_bandwidth / H100.network_bandwidth == 9  # nine times slower
    text = words("evidence/08_parallelism")
    travels = PLAN.sent.sequence / 450e9
    assert f"= {travels:.1f}$ s at the links' full rate" in text
    assert f"so they need {travels / LINK_SHARE:.1f} s, and then it adds 15,360 waits" in text
    waits = 32 * 80 * 6 * LATENCY
    assert f"first bytes, another {waits:.1f} s" in text
    assert f"the {PLAN.step.tensor:.0f} seconds that chapter 08 shows for a step's sums" in text
    assert PLAN.step.tensor == pytest.approx(travels / LINK_SHARE + waits)


def test_a_border_is_cheap_and_shared_layers_are_dear() -> None:
    state = 2 * 8192 * 8192
    layers = 80 * 5 * 2 * 7 / 8 * state
    stage = 2 * state / 8
    sentence = f"{layers / 80 / stage:.0f}× as many bytes as a middle stage"
    evidence, page = words("evidence/08_parallelism"), words("08_parallelism")
    assert f"{sentence}, and all 80 together send {layers / stage:,.0f}× as many" in evidence
    assert 1000 < layers / stage < 10_000  # thousands of times
    near, far = sending(PLAN)["tensor"], spread_over_nodes(PLAN)["tensor"]
    step = f"take up {near.visible:.0f} seconds of a {PLAN.step.total:.0f}-second step"
    assert f"{step}, but if you fill the nodes with replicas, they take {far.seconds:.0f}" in page


def test_small_matrices_leave_a_chip_idle() -> None:
    products = published.matmul_measured().set_index("name")
    shares = products["flops_per_s"] / products["peak_flops"]
    a100 = shares[shares.index.str.startswith("NVIDIA A100 SXM, fp16")]
    assert round(a100[a100.index.str.contains("1024 × 1024 × 1024")].iloc[0], 2) == 0.38
    assert round(a100[a100.index.str.contains("16384")].iloc[0], 2) == 0.82
    nvidia = shares[shares.index.str.startswith("NVIDIA")]
    assert nvidia.max() == pytest.approx(0.87, abs=0.005)


def test_sharing_costs_less_on_a_chip_with_faster_links_for_its_rate() -> None:
    a100 = published.accelerator("A100")
    rate, links = H100.peak("bf16") / a100.peak("bf16"), H100.link_bandwidth / a100.link_bandwidth
    sentence = (
        f"computes {rate:.1f}× slower than an H100, but its links are only {links:.1f}× slower"
    )
    assert sentence in words("08_parallelism")


def test_a_gpus_memory_was_that_of_the_micro_batch() -> None:
    sweeps = published.bloom_sweeps().set_index("name").loc["line 775":"line 777"]
    assert sweeps["micro_batch_size"].tolist() == [4, 4, 6]
    assert sweeps["global_batch_size"].tolist() == [1568, 2048, 2016]
    assert (sweeps["memory_bytes"] / 1e9).tolist() == [56, 55, 66]
