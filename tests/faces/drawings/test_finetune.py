"""Chapter 12's pictures: their scales, and what they leave out."""

from math import log2

import pytest

from llmtrain_course.finetune import pictures as drawings
from llmtrain_course.finetune.formulas import packed_rows, saved_inputs
from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.layout import PAGE, PHONE
from llmtrain_helpers import Tuning, tuned_memory, tuned_phases
from llmtrain_helpers.published import architecture
from research.finetunes import speed_ratios
from tests.faces.svg import drawn

CARDS = {"24 GB": 24e9, "80 GB": 80e9}


@pytest.mark.parametrize("width", [PAGE, PHONE])
def test_a_bar_is_as_long_as_its_bytes_and_ends_in_an_arrow_beyond_the_scale(width: int) -> None:
    sizes = {"one": 40e9, "two": 80e9, "three": 1e12}
    whole = {name: {"weights": size} for name, size in sizes.items()}
    each = {name: {"weights": 2.0} for name in whole}
    picture = drawn(drawings.bytes_of_ways(each, whole, CARDS, "it"), width)
    one, two, three = (x for x in picture.titled("weights") if x.words.endswith("B"))
    assert two.width == pytest.approx(2 * one.width, abs=0.2)
    assert two.width < three.width < 25 * one.width
    assert picture.texts.count("→") == 1
    assert picture.text("→").inside(three)
    assert {round(x.left - two.right) for x in picture.dashed if x.left > one.right} == {0}
    for weight in picture.titled("weights 2.00 bytes"):
        assert weight.width == pytest.approx(2 * picture.titled("a byte")[0].width, abs=0.2)


def test_a_matrix_is_signed_for_what_learns_and_its_bar_is_what_it_keeps() -> None:
    model = architecture("Llama-3.1-8B", 2048)
    saved = saved_inputs(model, Tuning.lora(16, "mlp", dropout=0.05))
    parts = {"norms": 4e9, "mlp": 8e9}
    learning = {"gate", "up", "down"}
    picture = drawn(drawings.layer_kept(saved, learning, parts, {"mlp": 6e9}, adapters=True))
    teal = [x for x in picture.filled(COLORS["context"]) if x.width < 5]
    assert len(teal) == len(learning) + 1  # and in the key
    bars = picture.titled("copy, mask: ")
    assert [x.words for x in bars] == [f"copy, mask: {3 * x:,} bytes" for x in (4096, 4096, 14336)]
    assert bars[2].width == pytest.approx(3.5 * bars[0].width, abs=0.2)
    assert picture.texts.count("nothing") == 4
    full, norms, mlp = (
        picture.titled("MLP 6.")[0],
        *picture.titled("norms"),
        *picture.titled("MLP 8"),
    )
    assert (norms.width + mlp.width) == pytest.approx(2 * full.width, abs=0.2)
    assert (mlp.left, norms.left) == pytest.approx((norms.right, full.left), abs=0.2)


def test_the_peak_is_the_highest_moment_and_each_is_as_high_as_its_bytes() -> None:
    phases = tuned_phases(architecture("Llama-3.2-1B", 2048), Tuning.full(), 1, "full")
    picture = drawn(drawings.step_phases(phases, 20e9, 24e9, 3e9))
    unit = -picture.unit("10", "50") / 1e9
    bars = [x for x in picture.of_kind("rect") if ": " in x.words]
    columns = sorted({x.left for x in bars})
    for left, phase in zip(columns, phases, strict=True):
        high = sum(x.height for x in bars if x.left == left)
        assert high == pytest.approx(unit * float(phase.total), abs=0.3)
        assert f"{phase.total / 1e9:.1f} GB" in picture.texts
    [before] = [x for x in picture.dashed if x.kind == "polyline"]
    assert before.height == pytest.approx(unit * 20e9, abs=0.2)
    assert before.left < columns[0] < before.right < columns[1]
    [card] = [x for x in picture.dashed if x.thick == 2]
    assert before.bottom - card.down == pytest.approx(unit * 24e9, abs=0.2)
    phases = tuned_phases(architecture("Llama-3.1-8B", 2048), Tuning.full(), 1, "full")
    drawing = drawings.step_phases(phases, float(phases[0].total), 24e9, 3e9)
    assert drawing.words.endswith("The peak is the update.")
    assert "at the start" not in drawn(drawing).texts
    assert "at the start" in drawn(drawings.step_phases(phases, 20e9, 24e9, 3e9)).texts


def test_every_measured_pair_is_a_mark_and_the_lines_are_what_flops_let_one_expect() -> None:
    picture = drawn(drawings.measured_speeds())
    shapes = [*picture.of_kind("circle"), *picture.of_kind("polygon")]
    key = picture.text("tokens that a GPU has at once").top
    titles = sorted(x.words for x in shapes if x.down < key)
    pairs = [*speed_ratios("lora", "full"), *speed_ratios("qlora", "lora")]
    assert titles == sorted(f"{x.model}, {x.tokens:,} tokens: {x.times:.2f} times" for x in pairs)
    octave = picture.between("3", "0.5") / log2(3 / 0.5)
    [same] = [line.down for line in picture.of_kind("line") if line.thick == 2]
    lines = sorted((line.down for line in picture.dashed), reverse=True)
    for y, times in zip(lines, (1.246, 1.49), strict=True):
        assert (same - y) / octave == pytest.approx(log2(times), abs=0.004)


def test_a_row_that_is_saved_is_empty_and_a_text_is_as_long_as_its_tokens() -> None:
    lengths = (5, 4, 3)
    none = drawn(drawings.texts_in_rows(lengths, [], 8))
    two = drawn(drawings.texts_in_rows(lengths, packed_rows(lengths, 8), 8))
    assert [len(x.titled("a row that is saved")) for x in (none, two)] == [0, 1]
    assert [len(x.titled("pads")) for x in (none, two)] == [3, 2]
    assert "2 rows, 16 tokens" in two.texts
    for picture in (none, two):
        for i, tokens in enumerate(lengths, 1):
            [text] = picture.titled(f"text {i}")
            assert text.width == pytest.approx(none.titled("text 1")[0].width * tokens / 5, abs=2)


def test_a_card_cuts_all_ways_at_its_bytes_and_the_chosen_one_is_bold() -> None:
    model = architecture("Llama-3.1-8B", 2048)
    tunings = {"all weights": Tuning.full(), "adapters": Tuning.lora(16)}
    ways = {name: tuned_memory(model, it, 1, "full") for name, it in tunings.items()}
    began = 24e9
    picture = drawn(drawings.ways_on_a_card(ways, "adapters", 30e9, 3e9, "it", began))
    weights = picture.titled("weights 16.2 GB")[0]
    unit = weights.width / float(ways["adapters"].weights)
    total = picture.titled("for this moment")[-1].right - weights.left
    assert total == pytest.approx(unit * float(ways["adapters"].total), abs=0.3)
    [before] = [x for x in picture.dashed if x.kind == "rect"]
    assert before.width == pytest.approx(unit * began, abs=0.3)
    cards = {round(x.left - weights.left) for x in picture.dashed if x.kind == "line"}
    assert cards == {round(unit * 30e9)}
    assert [x.opacity for x in picture.titled("weights")] == [0.5, 1]
