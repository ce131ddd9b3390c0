"""HTML that modules of the site read, change and write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup


def parse(html: str) -> BeautifulSoup:
    """Parse a page or a piece of one."""
    return BeautifulSoup(html, "html.parser")


def read(path: Path) -> BeautifulSoup:
    """Read a page."""
    return parse(path.read_text("utf-8"))


def as_json(value: Any) -> str:
    """Write data as JSON that cannot end the script element in which it stands."""
    return json.dumps(value).replace("</", "<\\/")


def sign(chapter: Path) -> str:
    """A chapter's small picture, on its card and at its head; its words are the title's."""
    word = chapter.stem.partition("_")[2]
    path = Path(__file__).parent / "front_page" / "pictures" / f"{word}.svg"
    return path.read_text("utf-8").replace("<svg", '<svg class="sign"', 1)
