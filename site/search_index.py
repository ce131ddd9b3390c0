"""The search's index, by Pagefind. Each section is a page to it, so that results lead there."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from html import escape
from pathlib import Path

from bs4 import Tag
from markup import read
from reference import PAGE as REFERENCE

HERE = Path(__file__).parent
FOLDER = "pagefind"

WEIGHTS = {
    ("notebooks/*.html", "reference/*.html"): 1,
    ("notebooks/*/*.html", "data/*.html", f"{REFERENCE}.html", "TEACHING.html"): 0.2,
}
"""How much a word counts in the chapters and where people look up, and in what comes after."""

HEADING = 7
"""How much more a heading counts, all its words together: an exact name comes first."""

UNREAD = ".cell, .doctest, form, .live-note, svg, script, .headerlink"
"""What isn't text to read."""

LONG = 5
"""Letters of a word that a search may have misspelled."""

OTHERS = re.compile("pagefind-(ui|modular|highlight)|unknown")
"""What Pagefind writes and we don't use."""


def write(site: Path) -> None:
    """Index the sections of all pages, and list the files that a search may need."""
    sections = [
        section
        for patterns, weight in WEIGHTS.items()
        for pattern in patterns
        for path in sorted(site.glob(pattern))
        for section in sections_of(path, site, weight)
    ]
    command = ["node", HERE / "search_index.mjs", site / FOLDER]
    subprocess.run(command, input=json.dumps(sections), encoding="utf-8", check=True)
    headings = " ".join(re.findall("<h1.*?>(.*?)</h1>", str(sections))).lower()
    words = sorted({*re.findall(rf"[a-z-]{{{LONG},}}", headings)})
    (site / FOLDER / "words.json").write_text(json.dumps(words), "utf-8")
    files = (path for path in sorted(site.glob(f"{FOLDER}/**/*.*")) if not OTHERS.search(path.name))
    names = [path.relative_to(site).as_posix() for path in files]
    (site / FOLDER / "files.json").write_text(json.dumps(names), "utf-8")


def sections_of(path: Path, site: Path, weight: float) -> Iterator[dict[str, str]]:
    """Yield each section of a page with its address, and without those inside it."""
    page, address = read(path), path.relative_to(site).as_posix()
    for part in page.select(UNREAD):
        part.decompose()
    title = _words(page.select_one("article h1"))
    name = title.partition(": ")[0] if " · " in title else title
    for section in reversed(page.select("article section[id]")):  # the inner ones first
        section.extract()
        head = section.find(["h1", "h2", "h3", "h4"], recursive=False)
        if head and len(words := _words(head.extract())) > 1:  # the glossary's letters are no words
            is_page, boost = words == title, HEADING / len(words.split())
            label = escape(words if is_page else f"{name} › {words}")
            content = (
                f'<html lang="en"><body data-pagefind-meta="title[title]" title="{label}">'
                f'<h1 data-pagefind-weight="{weight * boost}">{escape(words)}</h1>'
                f'<p data-pagefind-weight="{weight}">{escape(_words(section))}</p></body></html>'
            )
            yield {"url": address if is_page else f"{address}#{section['id']}", "content": content}


def _words(tag: Tag) -> str:
    return " ".join(tag.get_text().split())
