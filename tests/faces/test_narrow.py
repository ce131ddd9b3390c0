"""On a telephone a picture has a form of its own: as wide as the screen, with words to read."""

import re
from dataclasses import replace

import pytest

from llmtrain_helpers.panels.page import KNOWN

WIDE = frozenset(
    [
        "activations",
        "budget",
        "calendar",
        "communication",
        "handle:dates",
        "handle:failure",
        "handle:kept_layer",
        "handle:loss_terms",
        "handle:many_nodes",
        "handle:measured_step",
        "handle:message",
        "handle:neighbours",
        "handle:one_product",
        "handle:one_step",
        "handle:pipeline",
        "handle:predicted_step",
        "handle:recomputation",
        "handle:repeated",
        "handle:ring",
        "handle:save_interval",
        "handle:shared_matrices",
        "handle:size_price",
        "handle:step_bytes",
        "handle:step_memory",
        "handle:time_line",
        "handle:timed_steps",
        "measure",
    ]
)
"""Those that have none yet, and are swiped."""

WIDEST, SMALLEST = 400, 13
"""Pixels of a canvas, and of a word on it: at 346 px of screen these are 11."""


def drawn(word: str) -> list[str]:
    """What a panel draws on a telephone, for each of its settings."""
    panel = KNOWN[word]
    panel = replace(panel, draw=panel.narrow or panel.draw)
    return [panel.answer(values).html for values in panel.presets.values()]


@pytest.mark.parametrize("word", sorted(set(KNOWN) - WIDE))
def test_a_telephone_gets_a_picture_of_its_width(word: str) -> None:
    for html in drawn(word):
        widths = re.findall(r'<svg [^>]*viewBox="0 0 (\d+) ', html)
        sizes = re.findall(r'<text [^>]*font-size="([\d.]+)"', html)
        assert all(int(width) <= WIDEST for width in widths)
        assert all(float(size) >= SMALLEST for size in sizes)


@pytest.mark.parametrize("word", sorted(set(KNOWN) - WIDE))
def test_there_is_a_picture_at_all(word: str) -> None:
    assert "<svg" in drawn(word)[0]


@pytest.mark.parametrize("word", sorted(WIDE))
def test_whoever_got_a_narrow_form_leaves_the_list(word: str) -> None:
    assert KNOWN[word].narrow is None
