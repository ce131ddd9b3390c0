"""Chapter 12's pictures: their scales, and what they leave out."""

from math import log2

import pytest

from llmtrain_course.finetune import pictures as drawings
from llmtrain_course.finetune.formulas import packed_rows
from llmtrain_helpers import Tuning, tuned_phases
from llmtrain_helpers.published import architecture
from research.finetunes import speed_ratios
from tests.faces.svg import drawn

CARDS = {"24 GB": 24e9, "80 GB": 80e9}


@pytest.mark.parametrize("width", [drawings.WIDE, drawings.NARROW])
def test_a_bar_is_as_long_as_its_bytes_and_ends_in_an_arrow_beyond_the_scale(width: int) -> None:
    sizes = {"one": 40e9, "two": 80e9, "three": 1e12}
    whole = {name: {"weights": size} for name, size in sizes.items()}
    each = {name: {"weights": 2.0} for name in whole}
    picture = drawn(drawings.bytes_of_ways(each, whole, CARDS, "it", width))
    one, two, three = (x.width for x in picture.titled("weights"))
    assert two == pytest.approx(2 * one, rel=0.01)
    assert two < three < 25 * one
    assert sum("→" in x for x in picture.texts) == 1
    card = {x.left for x in picture.of_kind("line") if x.width == 0}
    start = picture.titled("weights")[0].left
    assert any(x - start == pytest.approx(two, abs=2) for x in card)  # the line of 80 GB


def test_the_peak_is_the_highest_moment_and_each_is_as_high_as_its_bytes() -> None:
    phases = tuned_phases(architecture("Llama-3.2-1B", 2048), Tuning.full(), 1, "full")
    picture = drawn(drawings.step_phases(phases, 20e9, 24e9, 3e9))
    unit = -picture.unit("10", "50") / 1e9
    bars = [x for x in picture.of_kind("rect") if ": " in x.words]
    columns = sorted({x.left for x in bars})
    for left, phase in zip(columns, phases, strict=True):
        high = sum(x.height for x in bars if x.left == left)
        assert high == pytest.approx(unit * float(phase.total), abs=0.3)
    assert max(x.height for x in picture.dashed) == pytest.approx(unit * 20e9, abs=0.2)
    phases = tuned_phases(architecture("Llama-3.1-8B", 2048), Tuning.full(), 1, "full")
    drawing = drawings.step_phases(phases, float(phases[0].total), 24e9, 3e9)
    assert drawing.words.endswith("The peak is the update.")
    assert "at the start" not in drawn(drawing).texts
    moved = drawn(drawings.step_phases(phases, 20e9, 24e9, 3e9))
    assert any("at the start" in x.words for x in moved.boxes)


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
    for picture in (none, two):
        for i, tokens in enumerate(lengths, 1):
            [text] = picture.titled(f"text {i}")
            assert text.width == pytest.approx(none.titled("text 1")[0].width * tokens / 5, abs=2)
