"""Figures that people can cite: their numbers, captions and links, on pages and on paper."""

from __future__ import annotations

import re
from html import escape

from bs4 import BeautifulSoup, Tag
from markup import parse

from llmtrain_course.panels import HANDLES, PANELS

FOLDER = "figures"
PICTURES = ".live-saved, .cell_output:has(img, svg.wt):not(.live-saved)"
"""What's a figure of a chapter: a saved panel, a handle, or a picture that a cell draws."""

LINKS = (
    ' <span class="live-tools"><button type="button">Copy link</button> '
    '<button type="button">Copy picture</button> '
    f'<a href="{{up}}{FOLDER}/{{name}}.html">Own page</a></span>'
)


def word_of(output: Tag) -> str:
    """Return what a picture is called: a panel's word, `handle:` and its name, or ""."""
    live = output.find_parent("section", "live-handle")
    live = live or output.parent.select_one(".live-panel")
    return str(live["data-word"]) if live else ""


def caption_of(output: Tag) -> str:
    """Return one sentence on what a picture shows."""
    word = word_of(output)
    if word.startswith("handle:"):
        return HANDLES[word.removeprefix("handle:")].title
    if word:
        return PANELS[word].title
    picture = output.select_one("img, svg.wt")
    return re.split(r"(?<=\.) |: ", str(picture.get("aria-label") or picture.get("alt")))[0]


def number_figures(page: BeautifulSoup, chapter: int) -> None:
    """Put a number and a caption below each picture of a chapter; handles get links as well."""
    for at, output in enumerate(page.select(PICTURES), start=1):
        handle = output.find_parent("section", "live-handle")
        text = escape(caption_of(output), quote=False)
        add_caption(handle or output, f"{chapter}.{at}", text, "../")


def add_caption(picture: Tag, number: str, text: str, up: str) -> None:
    """Put a number and a caption below a picture; a handle gets an address and links as well."""
    links, word = "", str(picture.get("data-word", ""))
    if word.startswith("handle:"):
        name = word.removeprefix("handle:")
        picture["id"], links = f"fig-{name}", LINKS.format(name=name, up=up)
    html = f'<p class="live-caption"><b>Figure {number}</b> {text}{links}</p>'
    picture.insert_after(parse(html))
