"""What the page of chapter 13 states, computed anew."""

import re
from dataclasses import replace
from statistics import median

import pytest

from llmtrain_course.finetune.formulas import flops_ratio, packed_rows
from llmtrain_course.finetune.handles import LENGTHS, ROW, spike_phases
from llmtrain_helpers import (
    OPTIMIZERS,
    Tuning,
    lora_memory,
    plan_run,
    published,
    tuned_parameters,
    tuned_phases,
    tuning_tokens,
    units,
)
from llmtrain_helpers.finetune import weight_bytes
from llmtrain_helpers.memory import LOSS_KERNELS
from llmtrain_helpers.plan.memory import RESERVES
from research import memory
from research.finetunes import speed_ratios
from tests.pages import cell, cells, words

LLAMA = published.architecture("Llama-3.1-8B", 4096)
PAGE = "13_finetune"


def test_bytes_of_a_weight() -> None:
    assert [*weight_bytes(Tuning.full()).values()] == [4, 4, 8]
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
    assert loss.moment == "loss"
    assert loss.total > 24e9
    assert loss.total - loss.transient < 18e9


def test_measured_speeds_are_those_of_the_page() -> None:
    ratios = speed_ratios("lora", "full")
    assert len(ratios) == 23
    assert "We found 23 pairs" in cell(PAGE, "speed")
    assert median(ratio.times for ratio in ratios) == pytest.approx(1.14, abs=0.005)
    usual = [ratio for ratio in ratios if ratio.times < 2]
    assert (len(usual), min(r.times for r in usual)) == (20, pytest.approx(1.05, abs=0.005))
    assert max(ratio.times for ratio in usual) == pytest.approx(1.63, abs=0.005)
    assert {ratio.tokens for ratio in ratios if ratio.times > 2} == {3072}
    assert "1.05 to 1.6 times" in cell(PAGE, "recap")
    assert min(ratio.times for ratio in ratios) > 1
    assert sum(ratio.times < 1.2 for ratio in ratios) == 15
    reading = cell(PAGE, "speed-seen")
    assert "faster in all 23 pairs, but in 15 of them by less than a fifth" in reading


def test_how_much_less_work_adapters_do() -> None:
    """A third less, or a fifth if layers are recomputed, as in nearly all measured pairs."""
    assert flops_ratio("none") == pytest.approx(3 / 2, abs=0.01)
    assert round(flops_ratio("full"), 2) == 1.25
    assert 1 - 1 / flops_ratio("full") == pytest.approx(1 / 5, abs=0.005)
    reading = cell(PAGE, "speed")
    assert "## A third less work, or a fifth: how much faster?" in reading
    assert "adapters only save a fifth, and their speedup shrinks to 1.25" in reading


def test_why_a_step_below_the_bytes_of_the_card_still_fails() -> None:
    peak, card = max(x.total for x in spike_phases()), published.accelerator("RTX 4090")
    assert card.shown_memory is not None
    assert card.memory == 24e9 < peak < card.shown_memory < 24 * 2**30
    reading = cell(PAGE, "panel-answers")
    assert f"which is {24 * 2**30 / 1e9:.1f} GB" in reading
    reserve = RESERVES["one GPU"]
    assert peak + reserve > 24 * 2**30
    assert f"The reserve is {units.gigabytes(reserve)[:3]} GB, because three out of four" in reading
    assert "the step reaches into the hatched reserve" in words(PAGE)
    for chip in ("A10", "L4"):
        driver_bytes = published.accelerator(chip).shown_memory
        assert driver_bytes is not None
        assert int(driver_bytes / 1e8) == 241
    assert "but only 24.1 GB on an A10 or an L4" in reading


def test_what_share_of_a_step_is_writing() -> None:
    rows = published.rows("generation_shares")
    least, *others = sorted(row["share"] for row in rows)
    assert (least, round(others[0], 1), others[-1]) == (0.1, 0.3, 0.8)
    [long] = [row for row in rows if row["share"] == least]
    assert (long["longest_answer"], "up to 8,192 tokens" in long["note"]) == (1024, True)
    reading = cell(PAGE, "own-seen")
    assert "Most published runs spent 30 to 80% of each step on writing" in reading
    sentence = "up to 8,192 tokens and answers of at most 1,024 spent no more than a tenth"
    assert sentence in reading


def test_how_long_a_sequence_fits_and_how_much_longer_a_fused_loss_makes_it() -> None:
    """By the table above the sentences."""
    [table] = [x for x in cells(f"evidence/{PAGE}") if x["id"] == "longest-table"]
    text = "".join(table["outputs"][0]["data"]["text/plain"]).replace(",", "")
    row = r"^Llama \S+ (\d+B) (\d+) GB +(\d+) +\d+ +(\S+) +(\d+)$"
    lengths = re.findall(row, text, re.MULTILINE)
    off = {int(card): float(ratio) for size, card, _, ratio, _ in lengths if size == "8B"}
    assert all(abs(ratio - 1) < 0.11 for card, ratio in off.items() if card >= 24)
    assert off[12] < 1 / 3 < off[16] < 1
    times = [(size, int(fused) / int(plain)) for size, _, plain, _, fused in lengths]
    small = sorted(x for size, x in times if size == "8B")
    [large] = [x for size, x in times if size == "70B"]
    reading = cell(f"evidence/{PAGE}", "longest-reading")
    assert f"texts of the 8B could be {small[0]:.1f} to {small[-1]:.1f}× as long" in reading
    assert (len(small), large) == (6, pytest.approx(1.37, abs=0.01))
    assert "For the 70B, that only adds a little more than a third" in reading


def test_how_many_that_ran_out_are_said_to_fit() -> None:
    cases = [x for x in memory.tuned_cases() if x.card is not None]
    ran, out = ([x for x in cases if x.ran == ran] for ran in (True, False))
    assert (len(ran), len(out)) == (169, 48)
    by_a_tenth = {"one GPU": 1.9e9, "several": 4.4e9}
    smaller = [replace(x, reserve=by_a_tenth[x.ways]) for x in out]
    assert [sum(x.verdict == "fits" for x in those) for those in (out, smaller)] == [6, 7]
    assert not any(x.verdict == "edge" for x in ran)
    reading = cell(f"evidence/{PAGE}", "reserves-reading")
    assert "let six of 48 runs start that ran out of memory" in reading


def test_which_ways_fit_one_card_with_nothing_recomputed() -> None:
    plans = {
        name: plan_run(LLAMA, "H100", 1, 1e9, 1, recompute="none", recipe=recipe)
        for name, recipe in OPTIMIZERS.items()
    }
    assert [name for name, plan in plans.items() if plan.fits] == ["adafactor"]
    assert 0 < 80e9 - plans["adafactor"].memory.total < 4e9
    assert 24e9 < lora_memory(LLAMA, micro_batch_size=1).total < 40e9


def test_four_bits_cost_time_with_few_tokens() -> None:
    ratios = speed_ratios("qlora", "lora")
    below = [ratio.times for ratio in ratios if ratio.tokens < 4096]
    assert (len(below), max(below) < 1) == (16, True)
    assert "In all 16 pairs with fewer than 4,096 tokens" in cell(PAGE, "speed-seen")
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
    assert "3.4× as many tokens per second" in cell(PAGE, "packing-seen")
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
    """As finetune-a says: 6r(m + n) beside 4mn."""
    n = tuned_parameters(LLAMA, Tuning.lora(16))
    assert 6 * n.learning / (4 * 8.03e9) < 0.01
