"""Chapter 13's pictures: their scales, and what they leave out."""

import re

import pytest

from llmtrain_course.finetune import pictures as drawings
from llmtrain_course.finetune.formulas import packed_rows, saved_inputs
from llmtrain_course.kit.chart import Column, Dot, Path, Rule
from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.lanes import Limit, Span
from llmtrain_helpers import Tuning, tuned_memory, tuned_phases
from llmtrain_helpers.published import architecture
from research.finetunes import speed_ratios
from tests.faces.marks import length, marks
from tests.faces.svg import drawn

CARDS = {"24 GB": 24e9, "80 GB": 80e9}


def test_a_bar_is_as_long_as_its_bytes_and_ends_in_an_arrow_beyond_the_scale() -> None:
    sizes = {"one": 40e9, "two": 80e9, "three": 1e12}
    whole = {name: {"weights": size} for name, size in sizes.items()}
    each = {name: {"weights": 2.0} for name in whole}
    picture = drawings.bytes_of_ways(each, whole, CARDS, "it")
    bars = marks(picture, Span, "weights")
    assert [(x.start, x.end) for x in bars] == [*[(0, 2)] * 3, *((0, x) for x in sizes.values())]
    assert drawn(picture).texts.count("→") == 1
    assert [x.value for x in marks(picture, Limit)] == [*CARDS.values()]
    assert {x.end - x.start for x in marks(picture, Span, "a byte")} == {1}


def test_a_matrix_is_signed_for_what_learns_and_its_bar_is_what_it_keeps() -> None:
    model = architecture("Llama-3.1-8B", 2048)
    saved = saved_inputs(model, Tuning.lora(16, "mlp", dropout=0.05))
    parts, learning = {"norms": 4e9, "mlp": 8e9}, {"gate", "up", "down"}
    described = drawings.layer_kept(saved, learning, parts, {"mlp": 6e9}, adapters=True)
    picture = drawn(described)
    thin = [x for x in picture.filled(COLORS["context"]) if (x.width, x.height) == (5, 20)]
    assert len(thin) == len(learning) + 1  # and in the key
    bars = {x.title: x.end - x.start for x in marks(described, Span, "copy, mask: ")}
    assert bars == {f"copy, mask: {3 * x:,} bytes": 3 * x for x in (4096, 14336)}
    assert picture.texts.count("copy, mask") == 3
    assert picture.texts.count("nothing") == 4
    full, norms, mlp = (marks(described, Span, x)[0] for x in ("MLP 6", "norms", "MLP 8"))
    sizes = [(x.start, x.end) for x in (full, norms, mlp)]
    assert sizes == [(0, 6e9), (0, 4e9), (4e9, 12e9)]


def test_the_peak_is_the_highest_moment_and_each_is_as_high_as_its_bytes() -> None:
    phases = tuned_phases(architecture("Llama-3.2-1B", 2048), Tuning.full(), 1, "full")
    picture = drawings.step_phases(phases, 20e9, 24e9, 3e9)
    columns = marks(picture, Column)
    for left, phase in zip(sorted({x.left for x in columns}), phases, strict=True):
        high = sum(x.high - x.low for x in columns if x.left == left)
        assert high == pytest.approx(float(phase.total))
        assert f"{phase.total / 1e9:.1f} GB" in drawn(picture).texts
    [before], [card] = marks(picture, Path), marks(picture, Rule)
    assert {y for _, y in before.points} == {0, 20e9}
    ends = {x for x, _ in before.points}
    first, second, *_ = sorted({x.left for x in columns})
    assert min(ends) < first < max(ends) < second
    assert (card.value, bool(card.dash and before.dash)) == (24e9, True)
    phases = tuned_phases(architecture("Llama-3.1-8B", 2048), Tuning.full(), 1, "full")
    picture = drawings.step_phases(phases, float(phases[0].total), 24e9, 3e9)
    assert picture.words.endswith("The peak is the update.")
    assert "at the start" not in drawn(picture).texts
    assert "at the start" in drawn(drawings.step_phases(phases, 20e9, 24e9, 3e9)).texts


@pytest.mark.parametrize("name", drawings.PAIRS)
def test_every_measured_pair_is_a_mark_and_the_lines_are_what_flops_let_one_expect(
    name: str,
) -> None:
    picture, covered = (drawings.speeds_of_pairs(x, 1.3) for x in (name, "none yet"))
    method, other, *_ = drawings.PAIRS[name]
    dots = [(dot.y, dot.title) for dot in marks(picture, Dot) if not dot.hidden]
    assert sorted(dots) == sorted(
        (x.times, f"{x.model}, {x.tokens:,} tokens: {x.times:.2f}×")
        for x in speed_ratios(method, other)
    )
    assert all(dot.hidden for dot in marks(covered, Dot))
    assert not re.search(r"1\.13|0\.92|pairs of", covered.words + str(drawn(covered).texts))
    expected = (1.3, 1, 1.49, 1.246) if name.startswith("adapters") else (1.3, 1)
    lines = [rule.value for rule in marks(picture, Rule)]
    assert lines == pytest.approx(expected, abs=0.004)


def test_a_row_that_is_saved_is_empty_and_a_text_is_as_long_as_its_tokens() -> None:
    lengths = (5, 4, 3)
    none = drawings.texts_in_rows(lengths, [], 8)
    two = drawings.texts_in_rows(lengths, packed_rows(lengths, 8), 8)
    assert [len(drawn(x).titled("a row that is saved")) for x in (none, two)] == [0, 1]
    assert [len(drawn(x).titled("pads")) for x in (none, two)] == [3, 2]
    assert "2 rows, 16 tokens" in drawn(two).texts
    for picture in (none, two):
        for i, tokens in enumerate(lengths, 1):
            assert length(picture, f"text {i}: {tokens} tokens") == tokens


def test_a_card_cuts_all_ways_at_its_bytes_and_the_chosen_one_is_bold() -> None:
    model = architecture("Llama-3.1-8B", 2048)
    tunings = {"all weights": Tuning.full(), "adapters": Tuning.lora(16)}
    ways = {name: tuned_memory(model, it, 1, "full") for name, it in tunings.items()}
    picture = drawings.ways_on_a_card(ways, "adapters", 30e9, 3e9, "it", 24e9)
    for lane, memory in zip(picture.lanes, ways.values(), strict=True):
        assert marks(lane, Span, "weights")[0].end == float(memory.weights)
        assert marks(lane, Span, "for this moment")[0].end == pytest.approx(float(memory.total))
    assert [x.value for x in marks(picture, Limit)] == [30e9]
    [before] = [x for x in marks(picture, Span) if x.previous]
    assert (before.start, before.end) == (0, 24e9)
    assert [x.opacity for x in marks(picture, Span, "weights")] == [0.5, 1]
