"""Chapter 13's panel and handles: what each control changes, and what the page says of them."""

from statistics import median
from typing import Any

import pytest

from llmtrain_course.finetune.pictures import PAIRS
from llmtrain_course.panels import HANDLES, PANELS
from llmtrain_helpers import Tuning, tuned_memory
from llmtrain_helpers.published import architecture
from research.finetunes import speed_ratios
from tests.faces.svg import pictures
from tests.panel_code import sentence_of

PANEL = PANELS["finetune"]


def panel_with(**changes: Any) -> Any:
    return PANEL.answer({**PANEL.default, **changes})


def test_what_the_page_says_of_its_panel_is_so() -> None:
    assert "<b>21.0 GB</b> at the peak: it <b>fits</b>" in panel_with().html
    assert "<b>5.2 hours</b>" in panel_with().html
    assert "<b>25.3 GB</b> at the peak: it <b>just fits</b>, with less" in longer(4096)
    assert "<b>33.8 GB</b> at the peak: it <b>doesn't fit</b>" in longer(8192)
    assert "<b>21.3 GB</b> at the peak: it <b>fits</b>" in longer(8192, loss="piece by piece")
    padded = panel_with(rows="padded").html
    assert "<b>21.0 GB</b>" in padded
    assert "<b>1.1 days</b>" in padded


def longer(length: int, **changes: Any) -> str:
    html: str = panel_with(sequence_length=length, **changes).html
    return html


def test_both_ends_of_the_time_say_their_unit_or_share_it() -> None:
    assert "(4.0 to 6.8 hours)" in panel_with().html
    assert "(35 s to 1.0 minutes)" in panel_with(examples=74).html
    assert "(20 hours to 1.5 days)" in panel_with(rows="padded").html


@pytest.mark.parametrize(("gpus", "size"), [(2, "94.7 GB"), (3, "70.6 GB"), (4, "58.6 GB")])
def test_seventy_billion_need_three_cards(gpus: int, size: str) -> None:
    big = {**PANEL.presets["70B in 4 bits on 80 GB"], "way": "adapters", "num_gpus": gpus}
    html = PANEL.answer(big).html
    assert f"<b>{size}</b> on each GPU" in html
    assert ("doesn't fit" in html) == (gpus < 3)


def test_the_panel_counts_as_the_formula_does() -> None:
    tuning = Tuning.lora(16, optimizer="adamw_fused")
    model = architecture("Llama-3.1-8B", 4096)
    peak = tuned_memory(model, tuning, 1, "full", accumulation_steps=16)
    assert f"{peak.total / 1e9:.1f} GB" in longer(4096)
    assert f"{peak.total / 1e9:.1f} GB" in HANDLES["loss_spike"].render()


def test_nothing_happens_in_silence() -> None:
    assert "<b>Shortened:</b> gpt2 has 1,024" in panel_with(model="gpt2").html
    assert "<b>Cut:</b> a text of 4,000" in panel_with(tokens_each=4000).html
    assert "up to 1.2× slower" in panel_with(way="adapters, 4 bits").html
    assert "up to 2.1× slower" in longer(512, way="adapters, 4 bits")
    assert "<b>Slower:</b>" not in longer(4096, way="adapters, 4 bits")
    assert "<b>Few texts:</b>" in panel_with(examples=1).html
    assert "<b>Few texts:</b>" not in panel_with(examples=100).html
    assert "the run is 1.4× faster" in longer(8192, loss="piece by piece")
    assert "<b>Too slow:</b>" not in longer(8192, rows="padded") + longer(8192, tokens_each=8192)
    assert "<b>It may not fit:</b>" in longer(8192, way="adapters, 4 bits")
    assert "<b>It may not fit:</b>" not in panel_with(way="adapters, 4 bits").html
    assert panel_with(num_gpus=16).problem or "GPUs" in PANEL.controls["num_gpus"].label


def test_the_handles_say_what_the_page_says() -> None:
    ways, layer = HANDLES["three_ways"], HANDLES["frozen_layer"]
    for size in ("128 GB", "16.7 GB", "6.37 GB"):
        assert size in ways.render()
    assert "The adapters need <b>10.7 GB</b>" in ways.render(rank=256)
    assert "too small for all" in ways.render(model="Llama-3.1-70B")
    assert "training all weights would still leave room" in ways.render(model="Llama-3.2-1B")
    assert sentence_of(layer.render()).endswith("That's 26.7% less than in full training.")
    worst = layer.render(learns="all matrices", adapters="32 bits, dropout")
    assert "27.2% more" in worst
    assert pictures(worst)[0].texts.count("copy, mask") == 7  # a row for each matrix
    copies = layer.render(learns="all matrices", adapters="32 bits")
    assert "more</b> than in full training" in copies
    assert "Every matrix needs its input" in layer.render(learns="all weights")


def test_the_spike_grows_with_tokens_and_not_with_bits() -> None:
    spike = HANDLES["loss_spike"]
    assert "leaves 496 MB of the card's 25.8 GB free, but 3.40" in sentence_of(spike.render())
    assert "goes beyond the card's 25.8 GB" in sentence_of(spike.render(tokens=6144))
    assert "fits into the card's 25.8 GB" in sentence_of(spike.render(tokens=2048))
    whole, fused = spike.render(tokens=10_240), spike.render(loss="piece by piece")
    assert "<b>18.4 GB</b>, which is 113% of what" in whole
    assert "the loss doesn't add to the peak" in fused
    assert "fits into" in sentence_of(fused)
    assert "<b>7.35 GB</b>, which is 125% of what" in spike.render(bits="4 bits")


def test_packing_leaves_every_text_and_saves_rows() -> None:
    packing = HANDLES["packing"]
    assert "12 rows, 24,576 tokens" in packing.render(packed=0)
    assert "5 rows, 10,240 tokens" in packing.render(packed=12)
    assert "<b>2.4×</b>" in packing.render(packed=12)
    assert "Text 5 stays where it is." in packing.render(packed=5)
    for k in packing.controls["packed"].stops:
        [picture] = pictures(packing.render(packed=int(k)))
        assert len(picture.titled("text ")) == 12


@pytest.mark.parametrize(
    ("pairs", "above", "middle", "below"),
    [("adapters or all weights", 1.1, 1.14, 1.2), ("4 bits or 16", 0.86, 0.92, 0.95)],
)
def test_a_line_finds_the_middle_of_the_speeds(
    pairs: str, above: float, middle: float, below: float
) -> None:
    handle = HANDLES["measured_speeds"]
    answers = [handle.answer({"pairs": pairs, "line": line}).html for line in (above, below)]
    assert "the middle is higher" in answers[0]
    assert "the middle is lower" in answers[1]
    reply = handle.answer({"pairs": pairs, "line": middle}).html
    assert f"it's in the middle, at {middle:g}×" in reply.replace("&#x27;", "'")
    times = [ratio.times for ratio in speed_ratios(*PAIRS[pairs][:2])]
    assert middle == pytest.approx(median(times), abs=0.01)


def test_nothing_of_the_speeds_is_given_away_before_a_guess() -> None:
    html = HANDLES["measured_speeds"].render()
    assert "then show the pairs" in html
    assert "1.14" not in html
    assert "few short texts" not in html
