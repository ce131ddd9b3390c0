"""Notes in the margin: what a term of the glossary means, next to where it's first used.

The text is narrower than the pictures, so a wide window has room on its right. A note is
only written if it ends before the next full-width element begins, by an estimate of both
heights; otherwise the link's tooltip is enough.
"""

from __future__ import annotations

from html import escape

from bs4 import BeautifulSoup, Tag
from markup import parse

TERM = 'a[title][href*="glossary.html#"]'
LINE, LETTERS, GAP = 30, 66, 20
"""Pixels of a line of text, its letters, and pixels between two paragraphs."""
NOTE_LINE, NOTE_LETTERS = 21, 30
SIGN = 90
"""Pixels by which the chapter's sign reaches below its title."""


def add_notes(page: BeautifulSoup) -> None:
    """Write a note next to the first use of each term, where there's room for it."""
    explained = set[str]()
    for section in page.select("section"):
        room = 0
        for block in reversed(section.find_all(recursive=False)):
            text = height(block, LINE, LETTERS) + GAP if block.get("class") != ["live-file"] else 0
            room = room + text if block.name in ("p", "ul") else 0
            block["data-room"] = str(room)
        taken = 0  # pixels in the margin that are taken below the block before
        for block in section.find_all(recursive=False):
            room = int(block.attrs.pop("data-room"))
            if block.name == "h1":
                taken = SIGN
            if block.name == "h1" or not block.get_text():
                continue
            for term in block.select(TERM) if block.name == "p" else []:
                note = note_of(term)
                needs = height(note, NOTE_LINE, NOTE_LETTERS) + GAP
                if term["href"] in explained or taken + needs > room:
                    continue
                explained.add(str(term["href"]))
                block.insert_before(note)
                taken += needs
            taken = max(0, taken - height(block, LINE, LETTERS) - GAP)


def height(block: Tag, line: int, letters: int) -> int:
    """Estimate the pixels that a text needs."""
    return line * (len(block.get_text()) // letters + 1)


def note_of(term: Tag) -> Tag:
    """Return a term and its sentence; the link's own title is what's read aloud."""
    words = f"<b>{escape(term.get_text())}</b> {escape(str(term['title']), quote=False)}"
    return parse(f'<small class="live-margin" aria-hidden="true">{words}</small>').small.extract()
