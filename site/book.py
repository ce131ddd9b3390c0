"""The course as a book: what pages say on paper, where there is nothing to press."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, Tag
from front import citation
from marks import CHAPTERS, IMPORTS
from playwright.sync_api import Page

from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS

TITLE = "What will it take?"

DARK = ".wt style, .wt .night"
"""What a drawing has for dark pages: paper is none."""

GLYPHS = "svg.glyphs"
"""Where a page keeps the glyphs of its formulas."""

NOT_ON_PAPER = (
    f".headerlink, .live-form, .live-panel, .live-note, .live-file, script, svg.narrow, {DARK}, "
    f"{GLYPHS}, .cell_output details, .live-call > .cell_input"
)
"""Links, forms and what starts them; a panel's tables and code; pictures for a telephone."""


def chapter_pages(site: Path) -> list[Path]:
    """The chapters' pages, in order."""
    return sorted((site / "notebooks").glob("[0-9]*.html"))


def article(path: Path) -> Tag:
    """What a page says on paper, without its frame."""
    page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    text = page.select_one("article.bd-article")
    for form in text.select(".live-form"):
        leave_room(form)
    for tag in text.select(NOT_ON_PAPER):
        tag.decompose()
    for folded in text.select("details:has(> summary)"):
        if folded.summary.get_text() == IMPORTS:
            folded.decompose()
    for words in text.find_all(string=re.compile("As saved. Press Start to change it.")):
        words.replace_with("")
    return text


def leave_room(form: Tag) -> None:
    """In place of a guess's cell or an exercise's verdict: a line to write on, or boxes."""
    name, cell = str(form["data-id"]), form.find_previous_sibling("div")
    if name not in EXERCISES and name not in PREDICTIONS:
        return
    label = form.select_one("legend, label").get_text()
    options = [str(one["value"]) for one in form.select("fieldset input")]
    asks = label if form["data-kind"] == "guess" or options else "Your answer"
    boxes = " ".join(f'<span class="box">{option.strip()}</span>' for option in options)
    answered = "" if name in PREDICTIONS else f' <a href="solutions/{page_of(name)}">{name}</a>'
    room = boxes or '<span class="line"></span>'
    html = f'<p class="answer"><b>{asks}</b> {room}{answered}</p>'
    shown = cell.select_one(".cell_output")
    if form["data-kind"] != "run":  # the cell has nothing but the guess
        shown = cell
    shown.replace_with(BeautifulSoup(html, "html.parser"))


def page_of(name: str) -> str:
    """The page of the worked answer, and the place there."""
    chapter = next(path.stem for path in CHAPTERS.values() if path.stem[:2] == name[:2])
    return f"{chapter}.html#{name}"


def chapters(site: Path) -> list[Tag]:
    """The chapters, the worked answers and the glossary, one after the other."""
    answers = sorted((site / "notebooks" / "solutions").glob("*.html"))
    paths = [*chapter_pages(site), *answers, site / "notebooks" / "glossary.html"]
    known = {path.relative_to(site).as_posix(): f"p{i}" for i, path in enumerate(paths)}
    return [_bound(path, site, known) for path in paths]


def bound(pages: list[Tag]) -> str:
    """A title page, the contents, and all pages."""
    told = citation()
    listed = "".join(
        f'<li><a href="#{page["id"]}">{page.h1.get_text()}</a><span></span></li>' for page in pages
    )
    title = (
        f'<section class="title"><h1>{TITLE}</h1><p>The cost of training language models: '
        f"parameters, FLOPs, days, memory, money</p><p>{told['authors']}</p>"
        f"<p>Version {told['version']}, {date.fromisoformat(told['date']):%d %B %Y}<br>"
        "Text CC BY 4.0, code MIT</p></section>"
    )
    contents = f'<article class="contents"><h1>Contents</h1><ol>{listed}</ol></article>'
    return title + contents + "".join(map(str, pages))


SHOW = """([shown]) => document.querySelectorAll("body > :is(article, .title)").forEach(
  (part, at) => { part.hidden = shown !== null && at !== shown; })"""
"""Show one part of the book, or all of them."""

WRITE = """(numbers) => document.querySelectorAll(".contents span").forEach(
  (place, at) => { place.textContent = numbers[at]; })"""


def number(page: Page, sheets: Callable[[], int]) -> None:
    """Write into the contents where each chapter begins; `sheets` counts what is shown."""
    first, begins = 1, []
    for part in range(page.locator("body > :is(article, .title)").count()):
        page.evaluate(SHOW, [part])
        begins.append(first)
        first += sheets()
    page.evaluate(SHOW, [None])
    page.evaluate(WRITE, begins[2:])


def _bound(path: Path, site: Path, known: dict[str, str]) -> Tag:
    """A page whose anchors and links hold inside the whole."""
    page, place = article(path), known[path.relative_to(site).as_posix()]
    for tag in page.select("[id]"):
        tag["id"] = f"{place}-{tag['id']}"
    for link in page.select("a[href]"):
        link["href"] = _link(str(link["href"]), path, site, known) or ""
        if not link["href"]:
            del link["href"]
    for folded in page.select("details"):
        folded["open"] = ""
    page["id"] = place
    return page


def _link(href: str, path: Path, site: Path, known: dict[str, str]) -> str:
    """Where a link leads inside the whole; nothing where it leads out of it."""
    parts = urlsplit(href)
    if parts.scheme:
        return href
    target = (path.parent / parts.path).resolve() if parts.path else path
    inside = target.is_relative_to(site) and target.relative_to(site).as_posix()
    if inside not in known:
        return ""
    return f"#{known[inside]}" + (f"-{parts.fragment}" if parts.fragment else "")
