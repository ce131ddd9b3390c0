"""The course as a book: what pages say on paper, where nothing moves and nothing is pressed.

A picture that moves becomes a figure of two settings side by side (`frames`), and the front
says how to read what the text asks of a hand. What readers should have seen, and the answers
to small questions, are with the worked answers, and the sources of all chapters are together.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from bs4 import NavigableString, Tag
from cells import IMPORTS
from figures import PICTURES, caption_of, word_of
from front_page import citation
from markup import parse, read
from playwright.sync_api import Page

from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit import ids
from llmtrain_course.panels import HANDLES

TITLE = "What will it take?"
ANSWERS = "Worked answers"
SOURCES = "Sources"

ON_PAPER = (
    "These chapters are also pages of a site, where the pictures move. On paper you see two states "
    "of each, with its settings below the drawing, so when the text asks you to press play, drag "
    "a dot or change a setting, compare the two. When it asks you to run a cell, the output is "
    "printed below. Write your guesses and answers on the lines, and then turn to the worked "
    "answers near the end."
)
"""What the front says about sentences that ask readers to do something."""

COVER = "machine"
"""The handle whose picture stands on the title page."""

DARK = ".wt style, .wt .night"
"""What a drawing has for dark pages: paper is none."""

GLYPHS = "svg.glyphs"
"""Where a page keeps the glyphs of its formulas."""

NOT_ON_PAPER = (
    f".headerlink, .live-form, .live-panel, .live-note, .live-caption, .live-margin, .live-file, "
    f"script, svg.narrow, .sign, {DARK}, {GLYPHS}, .cell_output details, .live-call > .cell_input"
)
"""Links, forms and what starts them; a panel's tables and code; pictures for a telephone and
of a chapter's head."""


def chapter_pages(site: Path) -> list[Path]:
    """The chapters' pages, in order."""
    return [site / "notebooks" / f"{word}.html" for word in ids.CHAPTERS]


def article(path: Path) -> Tag:
    """Return what a page says on paper, without its frame."""
    page = read(path)
    text = page.select_one("article.bd-article")
    for form in text.select(".live-form"):
        leave_room(form)
    if path.parent.name == "notebooks" and path.stem in ids.CHAPTERS:
        frame_figures(text)
    for tag in text.select(NOT_ON_PAPER):
        tag.decompose()
    for folded in text.select("details:has(> summary)"):
        if folded.summary.get_text() == IMPORTS:
            folded.decompose()
    for formula in text.select("span.math"):
        keep_mark(formula)
    for tag in text.select(":is(.cell_output, figure) [style]:not(svg, svg *)"):  # a screen's
        tag["style"] = "text-align: right" if "text-align:right" in tag["style"] else ""
    for tag in text.select("[title]"):  # a tooltip
        del tag["title"]
    for words in text.select("p:has(> strong:first-child)"):
        if words.strong.get_text() == "Sources.":
            words["class"] = "sources"
        elif words.get_text().startswith("Next:"):
            words.decompose()
    return text


def keep_mark(formula: Tag) -> None:
    """Let no line begin with the mark that follows a formula."""
    follows = formula.next_sibling
    if isinstance(follows, NavigableString) and (mark := re.match(r"[^\s\w(]+", follows)):
        kept = parse('<span class="kept"></span>').span
        formula.wrap(kept)
        kept.append(mark[0])
        follows.replace_with(follows[mark.end() :])


def _plain(html: str) -> str:
    return parse(html).get_text().strip()


# --- figures


def frame_figures(text: Tag) -> None:
    """Put a figure, with its number, in place of each picture of a chapter."""
    for output, caption in zip(text.select(PICTURES), text.select(".live-caption"), strict=True):
        handle = output.find_parent("section", "live-handle")
        number, title = str(caption.b), escape(caption_of(output), quote=False)
        call = output.parent.select_one(".cell_input pre")
        if handle:
            html = str(handle.find_previous_sibling("div", "frames").extract())
        else:
            if word_of(output):
                title = f"{title} · {settle(output)}"
            elif call and "\n" not in call.get_text().strip():
                call.find_parent(class_="cell_input").decompose()  # nothing but the picture's name
            html = output.decode_contents()
        figure = parse(f"<figure>{html}<figcaption>{number} {title}</figcaption></figure>")
        (handle or output).replace_with(figure)


def settle(output: Tag) -> str:
    """Take a saved panel's title and tables away, and return its setting for the caption."""
    for tag in output.select("details, p:has(> b):first-child"):
        tag.decompose()
    return str(output.h3.extract().get_text())


# --- questions and answers


def leave_room(form: Tag) -> None:
    """Put a line to write on, or boxes, in place of a guess's cell or an exercise's verdict."""
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
    for code in cell.select(".cell_input pre"):
        leave_out_check(code)
    # of a guess, the cell has nothing else
    place = cell.select_one(".cell_output") if form["data-kind"] == "run" else cell
    place.replace_with(parse(html))


def leave_out_check(code: Tag) -> None:
    """Leave out the line that asks for the verdict: paper gives none."""
    lines = code.decode_contents().rstrip().split("\n")
    left = "\n".join(line for line in lines if not _plain(line).startswith("check("))
    code.replace_with(parse(f"<pre>{left.rstrip()}</pre>"))


def page_of(name: str) -> str:
    """The page of the worked answer, and the place there."""
    return f"{ids.chapter_of(name)}.html#{name}"


def answers_of(page: Tag) -> list[Tag]:
    """Take out of a chapter what its questions hide; a link stays with each question."""
    hidden = [
        folded
        for folded in page.select("details:has(> summary)")
        if folded.summary.get_text().startswith("The answers")
        or folded.find_parent(id=re.compile("to-take-away$"))
    ]
    for at, folded in enumerate(hidden):
        asked, place = folded.summary.decode_contents(), f"{page['id']}-seen-{at}"
        link = f'<p class="asked">{asked} <a href="#{place}">→ answers</a></p>'
        folded.replace_with(parse(link))
        folded.name, folded["id"], folded.summary.name = "div", place, "p"
        folded.p["class"] = "asked"
    return hidden


def chapters(site: Path) -> list[Tag]:
    """The chapters, the worked answers, the sources and the glossary, one after the other."""
    notebooks = site / "notebooks"
    first = chapter_pages(site)
    worked = [notebooks / "solutions" / path.name for path in first]
    paths = [*first, *worked, notebooks / "glossary.html"]
    places = {path.relative_to(site).as_posix(): f"p{i}" for i, path in enumerate(paths)}
    pages = {path: _bound(path, site, places) for path in paths}
    answers, sources = part("answers", ANSWERS), part("sources", SOURCES)
    for path in worked:
        section = pages.pop(path)
        section.name = "section"
        for heading in section.select("h1, h2"):
            heading.name = f"h{int(heading.name[1]) + 1}"
        section.extend(answers_of(pages[notebooks / path.name]))
        answers.append(section)
    for path in first:
        sources.append(sources_of(name_of(pages[path]), path, site, places))
    *chapter, glossary = pages.values()
    glossary["class"] = "glossary"
    glossary.select_one(".sources").decompose()
    return [*chapter, answers, sources, glossary]


def sources_of(name: str, path: Path, site: Path, places: dict[str, str]) -> Tag:
    """The sources of a chapter, which its evidence lists first of all, below its name."""
    evidence = path.parent / "evidence" / path.name
    page = _bound(evidence, site, places | {evidence.relative_to(site).as_posix(): "evidence"})
    section = parse(f'<div class="sources"><p><strong>{name}</strong></p></div>').div.extract()
    section.append(page.select_one("section[id$=sources] ul").extract())
    return section


def part(name: str, title: str) -> Tag:
    """An empty part of the book, below its title."""
    html = f'<article id="{name}"><h1>{title}</h1></article>'
    return parse(html).article.extract()


def name_of(page: Tag) -> str:
    """A part's title up to its colon: `03 · Duration`."""
    return page.h1.get_text().partition(":")[0]


# --- the whole


def bind(pages: list[Tag]) -> str:
    """A title page, the contents, and all pages."""
    cited = citation()
    listed = "".join(
        f'<li><a href="#{page["id"]}">{page.h1.get_text()}</a><span></span></li>' for page in pages
    )
    title = (
        f'<section class="title"><h1>{TITLE}</h1><p>The cost of training language models: '
        f"parameters, FLOPs, days, memory, money</p>{HANDLES[COVER].render()}"
        f"<p>{cited['authors']}<br>"
        f"Version {cited['version']}, {date.fromisoformat(cited['date']):%d %B %Y}<br>"
        "Text CC BY 4.0, code MIT</p></section>"
    )
    contents = (
        f'<article class="contents"><h1>Contents</h1><ol>{listed}</ol>'
        f"<h2>How to read this on paper</h2><p>{ON_PAPER}</p></article>"
    )
    return heads(pages) + title + contents + "".join(map(str, pages))


def heads(pages: list[Tag]) -> str:
    """The style that writes each part's name above its pages."""
    named = ((page["id"], name_of(page)) for page in pages)
    rules = (
        f'#{place} {{ page: {place} }} @page {place} {{ @top-left {{ content: "{name}" }} }}'
        for place, name in named
    )
    return f"<style>{' '.join(rules)}</style>"


SHOW = """([shown]) => document.querySelectorAll("body > :is(article, .title)").forEach(
  (part, at) => { part.hidden = shown !== null && at !== shown; })"""
"""Show one part of the book, or all of them."""

TIGHTEN = """([shown, tight]) => document.querySelectorAll("body > :is(article, .title)")[shown]
  .classList.toggle("tight", tight)"""
"""Set a part of the book a little tighter, or as it was."""

WRITE = """(numbers) => document.querySelectorAll(".contents span").forEach(
  (place, at) => { place.textContent = numbers[at]; })"""


def number(page: Page, sheets: Callable[[], int]) -> None:
    """Write into the contents where each chapter begins; `sheets` counts what is shown."""
    first, begins = 1, []
    for part in range(page.locator("body > :is(article, .title)").count()):
        page.evaluate(SHOW, [part])
        begins.append(first)
        first += fewest(page, part, sheets)
    page.evaluate(SHOW, [None])
    page.evaluate(WRITE, begins[2:])


def fewest(page: Page, part: int, sheets: Callable[[], int]) -> int:
    """Count a part's sheets, and leave it tighter where that saves a nearly empty last one."""
    loose = sheets()
    page.evaluate(TIGHTEN, [part, True])
    if (tight := sheets()) < loose:
        return tight
    page.evaluate(TIGHTEN, [part, False])
    return loose


def _bound(path: Path, site: Path, places: dict[str, str]) -> Tag:
    """A page whose anchors and links hold inside the whole."""
    page, place = article(path), places[path.relative_to(site).as_posix()]
    for tag in page.select("[id]"):
        tag["id"] = f"{place}-{tag['id']}"
    for link in page.select("a[href]"):
        link["href"] = _link(str(link["href"]), path, site, places) or ""
        if not link["href"]:
            del link["href"]
    for folded in page.select("details"):
        folded["open"] = ""
    page["id"] = place
    return page


def _link(href: str, path: Path, site: Path, places: dict[str, str]) -> str:
    """Return where a link leads inside the whole, and nothing where it leads out of it."""
    parts = urlsplit(href)
    if parts.scheme:
        return href
    target = (path.parent / parts.path).resolve() if parts.path else path
    inside = target.is_relative_to(site) and target.relative_to(site).as_posix()
    if inside not in places:
        return ""
    return f"#{places[inside]}" + (f"-{parts.fragment}" if parts.fragment else "")
