"""The course on paper: the formula sheet on two pages of A4, and all chapters as a PDF.

Both are made of the site's own pages and printed by Chromium, without a network.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import legend
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import sync_playwright

CHROMIUM = os.environ.get("CHROMIUM") or next(
    (path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None
)
"""The browser that prints: the system's own, or the one that the variable names."""

NOT_ON_PAPER = ".headerlink, .live-form, .live-panel, .live-note, script, .cell_output details"
"""Links, forms and panels; a panel's tables and code (its details)."""

DARK = ".wt style, .wt .night"
"""What a drawing has for dark pages: paper is none."""

GLYPHS = "svg.glyphs"
"""Where a page keeps the glyphs of its formulas."""

HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="_static/pygments.css">
<link rel="stylesheet" href="_static/paper.css">
<body class="{kind}">{body}"""

FOOT = (
    '<div style="width:100%;font:8px sans-serif;text-align:center">'
    "What will it take? · <span class=pageNumber></span></div>"
)


def print_all(site: Path) -> None:
    """`sheet.pdf` and `course.pdf` into the site's folder."""
    narrow = {"top": "8mm", "bottom": "7mm", "left": "9mm", "right": "9mm"}
    wide = {"top": "15mm", "bottom": "17mm", "left": "18mm", "right": "18mm"}
    pages = {
        "sheet": (sheet(site), {"margin": narrow}),
        "course": (
            course(site),
            {
                "margin": wide,
                "display_header_footer": True,
                "header_template": "<span></span>",
                "footer_template": FOOT,
                "tagged": True,
                "outline": True,
            },
        ),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (html, options) in pages.items():
            path = site / f"{name}.print.html"
            path.write_text(html, "utf-8")
            page = browser.new_page()
            page.goto(path.as_uri())
            page.pdf(path=site / f"{name}.pdf", format="A4", print_background=True, **options)
            page.close()
            path.unlink()
        browser.close()


def chapters(site: Path) -> list[Path]:
    """The chapters' pages, in order."""
    return sorted((site / "notebooks").glob("[0-9]*.html"))


def article(path: Path) -> Tag:
    """What a page says, without its frame."""
    page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    text = page.select_one("article.bd-article")
    for tag in text.select(f"{NOT_ON_PAPER}, {DARK}, {GLYPHS}"):
        tag.decompose()
    return text


def filled(site: Path, kind: str, title: str, body: str) -> str:
    """A page for printing."""
    return HEAD.format(kind=kind, title=title, body=glyphs(site) + body)


def glyphs(site: Path) -> str:
    """The glyphs that formulas of any page have, each once."""
    known = {}
    for path in sorted((site / "notebooks").rglob("*.html")):
        page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
        known |= {str(glyph["id"]): str(glyph) for glyph in page.select(f"{GLYPHS} path")}
    return f'<svg class="glyphs"><defs>{"".join(known.values())}</defs></svg>'


# --- the sheet


def sheet(site: Path) -> str:
    """What each chapter takes away, side by side."""
    parts = "".join(_taken(article(path)) for path in chapters(site))
    title = "What will it take? The formulas of the course"
    body = f"<h1>{title}</h1><main>{parts}{legend.tables()}</main><p>{legend.edition()}</p>"
    return filled(site, "sheet", title, body)


def _taken(page: Tag) -> str:
    """The table at a chapter's end, below the chapter's name."""
    title = page.h1.get_text().partition(":")[0]
    rows = page.select_one("#to-take-away table tbody").decode_contents()
    rows += legend.here(title[:2])
    return f"<section><h2>{title}</h2><table>{rows}</table></section>"


# --- the course


def course(site: Path) -> str:
    """The chapters, the worked answers and the glossary, one after the other."""
    answers = sorted((site / "notebooks" / "solutions").glob("*.html"))
    paths = [*chapters(site), *answers, site / "notebooks" / "glossary.html"]
    known = {path.relative_to(site).as_posix(): f"p{i}" for i, path in enumerate(paths)}
    pages = [_bound(path, site, known) for path in paths]
    contents = "".join(
        f'<li><a href="#{page["id"]}">{page.h1.get_text()}</a></li>' for page in pages
    )
    title = "What will it take?"
    front = (
        f'<h1 class="front">{title}</h1><p>A course on the cost of training language '
        f"models.</p><ul>{contents}</ul>"
    )
    return filled(site, "course", title, front + "".join(map(str, pages)))


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
