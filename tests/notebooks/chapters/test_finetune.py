"""What the page of chapter 12 states, computed anew."""

from statistics import median

import pytest

from llmtrain_helpers import Tuning, published, tuned_parameters, tuned_phases, tuning_tokens, units
from llmtrain_helpers.evidence.finetunes import speed_ratios
from llmtrain_helpers.finetune import LOSS_KERNELS, packed_rows, weight_bytes
from llmtrain_helpers.panels.finetune import LENGTHS, ROW
from tests.pages import cell, words

LLAMA = published.architecture("Llama-3.1-8B", 4096)
PAGE = "12_finetune"


def test_bytes_of_a_weight() -> None:
    assert [*weight_bytes(Tuning.full(weight_bytes=4)).values()] == [4, 4, 8]
    assert weight_bytes(Tuning.lora(16)) == {"weights": 2}
    assert weight_bytes(Tuning.qlora(16))["weights"] == pytest.approx(0.52, abs=0.005)
    assert "16, 2, 0.52 bytes" in words(PAGE)


def test_adapters_are_half_a_per_cent() -> None:
    n = tuned_parameters(LLAMA, Tuning.lora(16))
    assert n.learning / (n.frozen + n.wide) == pytest.approx(0.005, abs=0.0003)
    large = tuned_parameters(LLAMA, Tuning.lora(256))
    assert 16 * large.learning / (2 * (n.frozen + n.wide)) == pytest.approx(2 / 3, abs=0.01)


def test_with_nine_thousand_tokens_the_logits_are_the_model() -> None:
    each = LOSS_KERNELS["transformers"]
    assert each == 2 + 4 + 4 + 4
    assert 2 * 8.03e9 / (each * LLAMA.vocab_size) == pytest.approx(9000, rel=0.01)
    loss, *_ = tuned_phases(LLAMA, Tuning.lora(16), 1, "full")
    assert loss.phase == "loss"
    assert loss.total > 24e9
    assert loss.total - loss.transient < 18e9


def test_measured_speeds_are_those_of_the_page() -> None:
    ratios = speed_ratios("lora", "full")
    assert len(ratios) == 22
    assert "There are 22 pairs" in cell(PAGE, "speed")
    assert median(ratio.times for ratio in ratios) == pytest.approx(1.13, abs=0.005)
    usual = [ratio for ratio in ratios if ratio.times < 2]
    assert (len(usual), min(r.times for r in usual)) == (19, pytest.approx(1.05, abs=0.005))
    assert max(ratio.times for ratio in usual) == pytest.approx(1.63, abs=0.005)
    assert {ratio.tokens for ratio in ratios if ratio.times > 2} == {3072}
    assert "1.05 to 1.6 times" in cell(PAGE, "recap")


def test_four_bits_cost_time_with_few_tokens() -> None:
    ratios = speed_ratios("qlora", "lora")
    few = [ratio.times for ratio in ratios if ratio.tokens < 1500]
    many = [ratio.times for ratio in ratios if ratio.tokens > 8000]
    assert min(few) > 0.48
    assert max(few) < 0.93
    assert min(many) > 0.86
    assert median(many) > 1


def test_rows_differ_in_the_method_alone() -> None:
    """And no suspect one is among them."""
    rows = {row["name"]: row for row in published.rows("finetune_measured")}
    assert "SUSPECT" in rows["TT-003"]["note"]
    assert not any("4090" in ratio.model for ratio in speed_ratios("lora", "full"))
    seconds = rows["LG-001"]["seconds"] / rows["LG-002"]["seconds"]
    [falcon] = [x for x in speed_ratios("qlora", "lora") if x.model == "falcon-7b"]
    assert falcon.times == pytest.approx(seconds)


def test_packing() -> None:
    rows = {place.row for place in packed_rows(LENGTHS, ROW)}
    assert (len(LENGTHS), len(rows), 12 / 5) == (12, 5, 2.4)
    assert 1 - sum(LENGTHS) / (12 * ROW) == pytest.approx(0.65, abs=0.005)
    measured = {row["name"]: row for row in published.rows("finetune_measured")}
    padded, packed = measured["TT-009"], measured["TT-010"]
    times = packed["tokens_per_s_per_gpu"] / padded["tokens_per_s_per_gpu"]
    assert times == pytest.approx(3.4, abs=0.05)
    assert "3.4 times as many tokens a second" in cell(PAGE, "packing-seen")
    assert times > max(ratio.times for ratio in speed_ratios("lora", "full"))
    assert 2 < packed["peak_bytes"] / padded["peak_bytes"] < 2.5
    assert padded["model"] == "Llama 3.2 3B"


def test_a_token_is_written_in_five_milliseconds() -> None:
    h100 = published.accelerator("H100 SXM")
    assert h100.bandwidth == 3.35e12
    seconds = 2 * 8.03e9 / float(h100.bandwidth)
    assert seconds == pytest.approx(0.005, rel=0.05)


def test_the_own_run_reads_hundreds_of_times_less() -> None:
    tokens = tuning_tokens(30_000, 800, epochs=3)
    assert units.count(tokens) == "72.0 million"
    assert 34e9 / tokens == pytest.approx(470, rel=0.01)


def test_the_work_of_adapters_is_below_a_hundredth() -> None:
    """As 12-a says: 6r(m + n) beside 4mn."""
    n = tuned_parameters(LLAMA, Tuning.lora(16))
    assert 6 * n.learning / (4 * 8.03e9) < 0.01
