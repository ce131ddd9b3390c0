"""What holds for every picture: nothing is cut off, covered, too small or unknown in the dark,
bars are to one scale, and a change leaves an outline of what was there.

A handle is drawn at each stop of its controls, a panel at its presets and at both ends of
each control, as the page and as the phone show them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import combinations, pairwise, product
from typing import Any

import pytest

from llmtrain_course.kit.drawing import NIGHT, as_images
from llmtrain_course.kit.panel import Handle, Panel
from llmtrain_course.page import PANELS_AND_HANDLES
from llmtrain_course.panels import PANELS
from llmtrain_course.parallelism.grid import _shade
from tests.faces.svg import Box, Picture, pictures
from tests.snapshots import DRAWINGS

SMALLEST = {"page": 14, "phone": 13}
"""The smallest letters, in pixels of the canvas."""

WIDEST = {"page": 900, "phone": 400}

SHADES = {_shade(stage, stages) for stages in range(1, 17) for stage in range(stages)}
PAINT = {*NIGHT, *SHADES, "white", "none", "currentColor"}

every_panel = pytest.mark.parametrize("word", PANELS_AND_HANDLES)


def settings(panel: Panel) -> Iterator[dict[str, Any]]:
    """The settings that are drawn."""
    yield from map(dict, panel.presets.values())
    for name, control in panel.controls.items():
        values = (
            control.stops or control.options or ((False, True) if control.kind == "flag" else ())
        )
        ends = values if isinstance(panel, Handle) else [*values[:1], *values[-1:]]
        yield from ({**panel.default, name: value} for value in ends)


@pytest.fixture(scope="module", params=[*product(PANELS_AND_HANDLES, WIDEST)], ids="-".join)
def drawings(request: pytest.FixtureRequest) -> tuple[str, str, list[tuple[str, Picture]]]:
    """A panel's name, a form, and its pictures and its page's in that form, with their HTML."""
    word, form = request.param
    panel = PANELS_AND_HANDLES[word].on_telephone if form == "phone" else PANELS_AND_HANDLES[word]
    own = DRAWINGS.get(word, {}) if form == "page" else {}
    pages = [draw().drawing().inline_svg() for draw in own.values()]
    pages += [panel.answer(values).html for values in settings(panel)]
    return word, form, [(html, picture) for html in pages for picture in pictures(html)]


def test_a_picture_is_whole_and_can_be_read(drawings) -> None:
    _, form, seen = drawings
    assert seen
    for html, picture in seen:
        assert picture.width <= WIDEST[form]
        assert picture.colors <= PAINT
        assert picture.words in unescape(as_images(html))
        texts = picture.of_kind("text")
        assert min(text.size for text in texts) >= SMALLEST[form] * 0.98
        for box in picture.boxes:
            assert box.width >= 0, box
            assert box.height >= 0, box
            margin = 8 if box.kind == "text" else 0.6
            assert -margin <= box.left <= box.right <= picture.width + margin, box
            assert -margin <= box.top <= box.bottom <= picture.height + margin, box
        for one, two in combinations(texts, 2):
            assert not one.overlaps(two, 2), (one.words, two.words)


NUMBER = re.compile(r"[^:]+: (\d[\d.,]*) ?(?:([kMGTPEZ]?)(?:B|FLOP|GB)?|s|tokens|bytes)$")
PREFIXES = {p: 1000.0**i for i, p in enumerate(" kMGTPEZ")} | {"": 1.0}


def sizes(boxes: list[Box]) -> dict[str, list[tuple[float, Box]]]:
    """The bars that print a size in their title, by the direction and unit they share."""
    groups: dict[str, list[tuple[float, Box]]] = {}
    for box in boxes:
        if match := NUMBER.fullmatch(box.words):
            number = float(match[1].replace(",", "")) * PREFIXES[match[2] or ""]
            groups.setdefault(box.words.lstrip(": ").split()[-1][-1], []).append((number, box))
    return groups


def test_bars_that_print_a_size_are_to_one_scale(drawings) -> None:
    for _, picture in drawings[2]:
        groups = sizes(picture.of_kind("rect"))
        for bars in groups.values():
            heights = {round(box.height) for _, box in bars}
            along = [box.width if len(heights) == 1 else box.height for _, box in bars]
            end = max(box.right for _, box in bars)  # a bar too long for its picture is cut there
            whole = [(n, x) for (n, box), x in zip(bars, along, strict=True) if box.right < end - 1]
            unit = max((x / n for n, x in whole if x > 30), default=0)
            for number, pixels in whole if unit else ():
                assert pixels == pytest.approx(unit * number, abs=2, rel=0.08), (number, bars)


OUTLINED = {*PANELS} - {"batch"} | {
    f"handle:{name}"
    for name in (
        *("machine", "wider_or_deeper", "gpus_and_days", "promise", "four_gpus", "batch_cost"),
        *("eight_bits", "passes", "neighbours", "month", "pipeline", "loss_terms", "loss_spike"),
    )
}
"""Where a change leaves a dashed outline of what was there."""


@every_panel
def test_a_change_leaves_an_outline_of_what_was_there_and_nothing_else_does(word: str) -> None:
    def outlines(values: dict[str, Any], before: dict[str, Any] | None) -> int:
        drawings = pictures(PANELS_AND_HANDLES[word].answer(values, before).html)
        return sum(len(picture.dashed) for picture in drawings)

    start = dict(PANELS_AND_HANDLES[word].default)
    assert outlines(start, start) == outlines(start, None)
    moved = (
        outlines(values, start) > outlines(values, None)
        for values in settings(PANELS_AND_HANDLES[word])
    )
    assert word not in OUTLINED or any(moved)


@every_panel
def test_a_comparison_has_no_negative_size(word: str) -> None:
    """Each preset after the one before it, and both ends of each control after the default."""
    for panel in (PANELS_AND_HANDLES[word], PANELS_AND_HANDLES[word].on_telephone):
        presets = [*map(dict, panel.presets.values())]
        pairs = [*pairwise([*presets, presets[0]])]
        for name, control in panel.controls.items():
            stops = control.stops or control.options
            pairs += [(presets[0], {**presets[0], name: end}) for end in {*stops[:1], *stops[-1:]}]
        for before, values in pairs:
            for picture in pictures(panel.answer(values, before).html):
                assert all(x.width >= 0 <= x.height for x in picture.boxes), (values, before)


def test_what_leaves_outlines_is_a_picture_that_exists() -> None:
    assert not OUTLINED - {*PANELS_AND_HANDLES}
