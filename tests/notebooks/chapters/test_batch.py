"""What the page of chapter 04 states, computed anew."""

from math import log

from llmtrain_helpers import accumulation_steps, fit_step_time, published
from llmtrain_helpers.laws import loss
from tests.pages import cell


def test_some_runs_raise_their_batch_and_most_do_not() -> None:
    columns = ["batch_tokens_start", "batch_tokens_end", "parameters"]
    runs = published.batch_sizes().dropna(subset=columns).set_index("name")
    grown = runs["batch_tokens_end"] > runs["batch_tokens_start"]
    kept = runs["batch_tokens_end"] == runs["batch_tokens_start"]
    assert (grown.sum(), kept.sum(), len(runs)) == (12, 30, 42)
    assert runs.loc["Llama 3.1 405B", columns[:2]].tolist() == [4e6, 16e6]


def test_in_a_small_model_two_sequences_take_hardly_longer_than_one() -> None:
    small = published.vtrain_a100_single_node().query(
        "num_layers == 12 and hidden_size == 1024 and num_gpus == 2"
        " and data_parallel == 2 and global_batch_size == 32"
    )
    took = small.set_index("micro_batch_size")["seconds_per_iteration"]
    one, two = took[1] / 16, took[2] / 8
    assert round(two / one, 2) == 1.14
    step = fit_step_time(small["micro_batch_size"], took.to_numpy() * small["micro_batch_size"])
    assert round(step.half_rate_batch) == 2


def test_the_losses_that_give_the_slider_a_scale() -> None:
    text = cell("04_batch", "global")
    assert f"= {log(50_000):.1f}$" in text
    small, large = loss(1e9, 20e9), loss(70e9, 1.4e12)
    assert f"a 1B model ends at {small:.1f} after 20 billion tokens" in text
    assert f"a 70B model at {large:.1f} after 1.4 trillion" in text


def test_blooms_batch_by_gpus_is_48_times_too_large() -> None:
    bloom = published.parallel_layouts().set_index("name").loc["BLOOM-176B"]
    passes = accumulation_steps(2048, 2, int(bloom["data_parallel"]))
    assert (bloom["num_gpus"], passes) == (384, 128)
    assert 384 * passes * 2 == 98_304 == 48 * 2048
    assert "384 × 128 × 2 = 98,304 sequences" in cell("04_batch", "share")
