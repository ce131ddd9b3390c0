"""What the page of chapter 02 states, computed anew."""

import pytest

from llmtrain_helpers import (
    achieved_flops_per_gpu,
    count_flops,
    gpt_flops,
    published,
    units,
    utilization,
)

SHAPE = {
    "num_layers": 40,
    "hidden_size": 6144,
    "vocab_size": 50257,
    "sequence_length": 1024,
    "batch_size": 512,
}


LLAMA = published.architecture("Llama-3.1-8B", 8192)


def test_what_the_page_tells_of_the_worked_example_is_so() -> None:
    F = gpt_flops(12, 768, 50257, 1024, 8, "none")
    assert (units.flops(F), units.flops_per_second(F / 0.06)) == ("7.00 TFLOP", "117 TFLOP/s")
    assert round(F / 0.06 / 312e12, 2) == 0.37
    assert count_flops(LLAMA, 1, "none").shares()["scores"] == pytest.approx(0.22, abs=0.005)


def test_three_of_the_ten_published_runs_do_better_than_the_worked_case() -> None:
    table = published.megatron_table1()
    share = table["flops_per_gpu"] / table["peak_flops"]
    X = achieved_flops_per_gpu(gpt_flops(**SHAPE, recompute="full"), 32.09, 16)
    assert sum(share > utilization(X, 312e12)) == 3


def test_without_recomputed_work_the_ten_stand_at_33_to_39_per_cent() -> None:
    table = published.megatron_table1()
    shape = table[["num_layers", "hidden_size", "vocab_size", "sequence_length"]]
    B = table["global_batch_size"]
    none, full = (gpt_flops(**shape, batch_size=B, recompute=again) for again in ("none", "full"))
    mfu = table["flops_per_gpu"] / table["peak_flops"] * none / full
    assert (round(mfu.min(), 2), round(mfu.max(), 2)) == (0.33, 0.39)
