"""Drawings of chapter 12: their scales, and what they leave out."""

import re

import pytest

from llmtrain_helpers import Tuning, tuned_phases
from llmtrain_helpers.drawings import finetune as drawings
from llmtrain_helpers.evidence.published import architecture
from llmtrain_helpers.finetune import packed_rows

CARDS = {"24 GB": 24e9, "80 GB": 80e9}


def bars(body: str, title: str) -> list[float]:
    """How wide the rectangles with this title are."""
    found = re.findall(r'<rect [^>]*width="([\d.]+)"[^>]*><title>(.*?)</title>', body)
    return [float(width) for width, told in found if told.startswith(title)]


@pytest.mark.parametrize("width", [drawings.WIDE, drawings.NARROW])
def test_a_bar_is_as_long_as_its_bytes(width: int) -> None:
    each = {"one": {"weights": 2.0}, "two": {"weights": 2.0}}
    whole = {"one": {"weights": 40e9}, "two": {"weights": 80e9}}
    one, two = bars(drawings.bytes_of_ways(each, whole, CARDS, "it", width).body, "weights")
    assert two == pytest.approx(2 * one, rel=0.01)


def test_what_is_longer_than_the_scale_ends_in_an_arrow() -> None:
    each = {"one": {"weights": 2.0}}
    long = drawings.bytes_of_ways(each, {"one": {"weights": 1e12}}, CARDS, "it")
    assert "→" in long.body
    assert "1.00 TB" in long.body
    assert "→" not in drawings.bytes_of_ways(each, {"one": {"weights": 1e11}}, CARDS, "it").body


def test_the_peak_is_the_highest_moment() -> None:
    phases = tuned_phases(architecture("Llama-3.1-8B", 2048), Tuning.full(), 1, "full")
    drawing = drawings.step_phases(phases, float(phases[0].total), 24e9)
    assert drawing.words.endswith("The peak is the update.")
    assert "at the start" not in drawing.body
    assert "at the start" in drawings.step_phases(phases, 20e9, 24e9).body


def test_a_row_that_is_saved_is_empty() -> None:
    lengths = (5, 4, 3)
    none = drawings.texts_in_rows(lengths, [], 8)
    two = drawings.texts_in_rows(lengths, packed_rows(lengths, 8), 8)
    assert "a row that is saved" not in none.body
    assert two.body.count("a row that is saved") == 1
    assert "2 rows, 16 tokens" in two.words
    assert bars(none.body, "text 1") == bars(two.body, "text 1")
