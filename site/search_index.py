"""The heads of all pages in one small file, so that the search shows places while one types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from markup import read
from reference import PAGE as REFERENCE

from llmtrain_course.kit.ids import CHAPTERS

ORDER = [f"notebooks/{word}.html" for word in CHAPTERS]
ORDER += ["notebooks/glossary.html", f"{REFERENCE}.html", "reference/*.html", "*.html"]
"""Which pages come first: chapters, the glossary, the helpers, then what else is read."""


def write(site: Path) -> None:
    """`heads.json`: of each head its words, its page's name and its address."""
    pages = [path for pattern in ORDER for path in sorted(site.glob(pattern))]
    headings = [heading for path in dict.fromkeys(pages) for heading in headings_of(path, site)]
    text = json.dumps(headings, ensure_ascii=False, separators=(",", ":"))
    (site / "heads.json").write_text(text, "utf-8")


def headings_of(path: Path, site: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the headings of one page, in its order."""
    page = read(path)
    title = page.select_one("article h1")
    if title is None:
        return
    name, address = _words(title), path.relative_to(site).as_posix()
    yield name, "", address
    for section in page.select("article section section[id]"):
        head = section.find(["h2", "h3"], recursive=False)
        if head and len(words := _words(head)) > 1:  # the glossary's letters are no words
            yield words, name, f"{address}#{section['id']}"


def _words(head: object) -> str:
    return " ".join(str(getattr(head, "text", "")).split()).removesuffix("#").strip()
