"""On a telephone a picture has a form of its own: as wide as the screen, with words to read."""

import re

import pytest

from llmtrain_helpers.panels.page import KNOWN

WIDEST, SMALLEST = 400, 13
"""Pixels of a canvas, and of a word on it: at 346 px of screen these are 11."""


@pytest.mark.parametrize("word", sorted(KNOWN))
def test_a_telephone_gets_a_picture_of_its_width(word: str) -> None:
    panel = KNOWN[word].on_telephone
    assert panel.narrow
    first, *others = [panel.answer(values).html for values in panel.presets.values()]
    assert "<svg" in first
    for html in (first, *others):
        widths = re.findall(r'<svg [^>]*viewBox="0 0 (\d+) ', html)
        sizes = re.findall(r'<text [^>]*font-size="([\d.]+)"', html)
        assert all(int(width) <= WIDEST for width in widths)
        assert all(float(size) >= SMALLEST for size in sizes)
