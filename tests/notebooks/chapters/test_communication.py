"""What the page of chapter 07 states, computed anew."""

from dataclasses import replace

import pytest

from llmtrain_course.communication.formulas import all_reduce_rates
from llmtrain_course.communication.handles import MACHINES, Setting, enough_tokens, last_backward
from llmtrain_course.communication.machine import exchange
from llmtrain_course.panels import HANDLES
from llmtrain_helpers import all_reduce_seconds, published, units
from tests.pages import words

H100 = published.accelerator("H100")


def test_tokens_that_hide_a_ring_do_not_depend_on_the_model() -> None:
    """4PT/X seconds of backward against 4P/W of sending."""
    X, W = H100.peak("bf16"), 8 * H100.network_bandwidth
    for P in (1e9, 70e9):
        backward = 4 * P * (X / W) / X
        assert backward == pytest.approx(all_reduce_seconds(2 * P, 10**6, W), rel=1e-5)
    tokens = X / W
    assert tokens == pytest.approx(2500, rel=0.02)
    assert 4 * tokens == pytest.approx(10_000, rel=0.02)  # a card of 12.5 GB/s


def test_the_best_number_of_messages_is_among_those_of_the_handle() -> None:
    stops = HANDLES["time_line"].controls["messages"].stops
    waits = {n: last_backward(2560, n).visible for n in stops}
    assert min(waits, key=lambda n: waits[n]) == 64
    assert waits[64] == pytest.approx(0.001, abs=5e-4)
    assert "Here, 64 messages work best, and the step only waits for one" in words(
        "07_communication"
    )


def test_what_the_page_says_of_measurements() -> None:
    text, evidence = words("07_communication"), words("evidence/07_communication")
    runs = published.collectives_measured()
    runs = runs[runs["collective"] == "all-reduce"].dropna(subset=["message_bytes"])

    def rate(word: str, n: int, size: float) -> float:
        rows = runs[runs["source"].str.contains(word) & (runs["num_gpus"] == n)]
        near = (rows["message_bytes"] / size - 1).abs().argsort().iloc[0]
        return float(rows.iloc[near]["bus_bytes_per_s"]) / 1e9

    assert round(rate("nebius", 16, 8.6e9)) == 468
    assert round(rate("Azure.*H100", 8, 8.6e9)) == 479
    assert rate("nccl-tests issue 283", 1984, 0.5e9) == 350
    assert any("sometimes below 300" in x for x in runs["source"])
    pairs = runs[(runs["num_gpus"] == 16) & (runs["accelerator"] == "H100 SXM")]
    pairs = pairs[~pairs["source"].str.contains("nebius")]
    tops = pairs.groupby("source")["bus_bytes_per_s"].max() / 1e9
    slow, *fast = sorted(tops)
    pairs = f"reach {fast[0]:.0f} to {fast[-1]:.0f} GB/s"
    assert f"{pairs}, or {slow:.0f} if the cards are half as fast" in evidence
    b200 = runs[runs["accelerator"].str.startswith("B200 SXM")]
    best = b200.groupby("num_gpus")["bus_bytes_per_s"].max()
    two_nodes = b200[b200["num_gpus"] == 16].groupby("source")["bus_bytes_per_s"].max()
    lost = 1 - two_nodes / best[8]
    assert lost.between(0.17, 0.2).all()
    assert 1 - best[32] / best[8] == pytest.approx(0.55, abs=0.01)
    assert (
        "On B200s, two nodes lose a fifth of what one node reaches, and four nodes lose half"
        in evidence
    )
    series = {name: all_reduce_rates(word) for name, (word, _) in MACHINES.items()}

    def took(machine: str, size: int) -> float:
        return float(all_reduce_seconds(size, MACHINES[machine][1], series[machine][size]))

    one, two = took("8 H100s", 2**27), took("16 H100s", 2**27)
    seconds = f"{1000 * two:.2f} ms instead of {1000 * one:.2f}, about {100 * two / one - 100:.0f}%"
    assert f"a 128 MiB message takes {seconds} longer" in text
    larger = [took("16 H100s", 2**k) / took("8 H100s", 2**k) for k in range(30, 34)]
    assert larger == pytest.approx([1.1] * 4, abs=0.025)
    assert "while messages of 1 GiB or more take about 10% longer" in text
    assert rate("nebius", 16, 2**30) / rate("Azure.*H100", 8, 2**30) > 0.95
    assert rate("nebius", 16, 8.6e9) / rate("Azure.*H100", 8, 8.6e9) > 0.95
    assert all(took("32 B200s", 2**k) > 2 * took("8 B200s", 2**k) for k in range(27, 35))
    assert "four nodes are more than 2× slower than one" in text
    ratio = rate("P6-B200, NCCL", 8, 17e9) / rate("EFA v4", 32, 17e9)
    assert ratio == pytest.approx(2, abs=0.3)
    for word, n in (("nebius", 16), ("Azure.*H100", 8), ("P6-B200, NCCL", 8)):
        assert rate(word, n, 16.8e6) < rate(word, n, 8.6e9) / 2
    assert "Below 16 MiB, no machine reaches half its best rate" in text


def test_what_the_panel_shows_on_the_page() -> None:
    """The four numbers of what one should have seen, and the log of the slow second node."""
    text, solutions = words("07_communication"), words("solutions/07_communication")
    first, more = Setting(), Setting(tokens=2048)
    steps = [units.seconds(setting.plan.step.total) for setting in (first, more)]
    assert steps == ["0.18 s", "0.18 s"]
    assert f"The step is still {steps[0]} long" in text
    assert f"From {enough_tokens(first.plan):,} tokens on, everything that's sent is hidden" in text
    sharded = replace(first, passes=8).plan
    kept = Setting(passes=8, sharded="the optimizer (ZeRO 1)").plan
    sent = [units.gigabytes(plan.traffic) for plan in (sharded, kept)]
    assert f"FSDP sends {sent[0]} per step and ZeRO 1 only sends {sent[1]}" in text
    stored = [plan.memory.weights + plan.memory.gradients for plan in (kept, sharded)]
    large, small = stored[0] / 1e9, stored[1] / 1e9
    assert f"stores {large:.1f} GB of weights and gradients instead of {small:.1f} GB" in text
    for gpus in (8, 16):
        step = Setting(num_gpus=gpus, tokens=16384 // gpus).plan.step.total
        tokens = 5000 * round(16384 / step / 5000)
        assert f"| {gpus} | {units.seconds(step)} | {tokens:,} |" in solutions
    assert exchange(Setting(num_gpus=16, tokens=2560).plan).visible < 1e-6
    assert "2,560 tokens per GPU would hide everything on two nodes" in solutions
