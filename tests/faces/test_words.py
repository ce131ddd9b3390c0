"""What a reader reads in two settings of every panel, and in the drawings of no setting.

The files in `words` have a line for each sentence, title, row and picture; nothing of
places and colours. Nothing writes them: pages are written anew after a slip, and these
are edited by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest

from llmtrain_helpers.drawings import (
    activations,
    budget,
    calendar,
    communication,
    flops,
    precision,
    start_here,
)
from llmtrain_helpers.drawings.common import Drawing
from llmtrain_helpers.panels import PANELS

WORDS = Path(__file__).parent / "words"

DRAWINGS: list[Callable[[], Drawing]] = [
    start_here.ladder,
    flops.one_product,
    precision.block_scales,
    precision.recipe_bytes,
    activations.recomputation,
    communication.ring_turns,
    communication.shared_layer,
    calendar.one_stop,
    calendar.stops_of_nodes,
    budget.price_of_size,
]


@pytest.mark.parametrize("word", PANELS)
def test_a_panel_reads_as_it_is_held(word: str) -> None:
    panel = PANELS[word]
    told: list[str] = []
    for name in (next(iter(panel.presets)), panel.stills[0]):
        answer = panel.answer(panel.presets[name])
        told += [f"# {name}", *read(answer.html)]
        told += [f"button: {label}" for label, _ in answer.offers]
    assert told == held(word)


def test_drawings_of_no_setting_read_as_they_are_held() -> None:
    told: list[str] = []
    for draw in DRAWINGS:
        drawing = draw()
        told += [f"# {draw.__name__}", *read_picture(drawing.words, drawing.body)]
    assert told == held("drawings")


def held(name: str) -> list[str]:
    return (WORDS / f"{name}.txt").read_text("utf-8").splitlines()


def read(html: str) -> Iterator[str]:
    """An answer from top to bottom: sentences, titles of what is folded, rows, pictures."""
    kinds = r"<svg .*?</svg>|<p\b.*?</p>|<summary>.*?</summary>|<tr>.*?</tr>"
    for found in re.findall(kinds, html, re.DOTALL):
        if found.startswith("<svg"):
            words = re.findall(r'aria-label="(.*?)"', found)[0]
            yield from read_picture(unescape(words), found)
        elif found.startswith("<tr"):
            yield " | ".join(map(plain, re.findall(r"<t[dh].*?</t[dh]>", found)))
        else:
            title = found.startswith("<summary")
            yield f"[{plain(found)}]" if title else plain(found)


def read_picture(words: str, body: str) -> Iterator[str]:
    """Its words; what is written on it and told by a pointer; how many shapes it has."""
    yield words
    written = map(unescape, re.findall(r"<text.*?>(.*?)</text>", body))
    pointed = Counter(map(unescape, re.findall(r"<title>(.*?)</title>", body)))
    shapes = Counter(re.findall(r"<(rect|line|circle|poly\w+|path)\b", body))
    yield f"written: {' · '.join(written)}"
    yield f"pointed at: {' · '.join(f'{title} ({n})' for title, n in pointed.items())}".rstrip()
    yield f"shapes: {' · '.join(f'{n} {shape}' for shape, n in sorted(shapes.items()))}"


def plain(html: str) -> str:
    return unescape(re.sub(r"<.*?>", "", html, flags=re.DOTALL))
