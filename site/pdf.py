"""The course on paper: the formula sheet on two pages of A4, and all chapters as a PDF.

Both are made of the site's own pages and printed by Chromium, without a network.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import book
import sheet
from markup import read
from playwright.sync_api import Browser, Page, sync_playwright
from serve import make_server

from tools.browser import CHROMIUM

HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="_static/pygments.css">
<link rel="stylesheet" href="_static/paper.css"><style>{faces}</style>
<body class="{kind}">{body}"""

FACES = Path(__file__).parent / "node_modules"
SERIF = "@fontsource/source-serif-4/files/source-serif-4-latin-{weight}-{style}.woff2"
SANS = "source-sans/WOFF2/TTF/SourceSans3-{look}.ttf.woff2"
TYPEFACES = {"Source Serif 4": SERIF, "Source Sans 3": SANS}
LOOKS = {
    (400, "normal"): "Regular",
    (400, "italic"): "It",
    (600, "normal"): "Semibold",
    (600, "italic"): "SemiboldIt",
}
"""What the sans calls its weights and styles."""

A4 = {"format": "A4", "print_background": True, "prefer_css_page_size": True}
BOOK = {"tagged": True, "outline": True}
"""How Chromium prints; margins and heads stand in the style."""

SIZES = [size / 10 for size in range(120, 89, -1)]
"""Points that the sheet's letters may have, the largest first."""

CROP = """() => {
  const crop = (drawings) => {
    const boxes = drawings.map((drawing) => drawing.getBBox());
    const top = Math.min(...boxes.map((box) => box.y)) - 4;
    const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + 4;
    for (const drawing of drawings) {
      const { x, width } = drawing.viewBox.baseVal;
      drawing.setAttribute("viewBox", `${x} ${top} ${width} ${bottom - top}`);
      drawing.removeAttribute("height");
    }
  };
  for (const frames of document.querySelectorAll(".frames")) {
    crop([...frames.querySelectorAll("svg.wt")]);
  }
  document.querySelectorAll("figure svg.wt:not(.frames svg)").forEach((one) => crop([one]));
}"""
"""Leave out what a drawing keeps free for its other settings; two frames keep one scale."""

FLOAT = """() => {
  const words = "p:not(.answer, .asked, :has(+ :is(.cell, .math, .asked, ul, ol))), ul, ol, .math";
  for (const part of document.querySelectorAll("body > article[id^=p]:not(.glossary)")) {
    part.style = "columns: 166mm; column-fill: auto; width: 166mm; height: 260mm";
    const { bottom, height } = part.getBoundingClientRect();
    const gap = (figure) => {
      const above = [...figure.previousElementSibling.getClientRects()].at(-1);
      return figure.getBoundingClientRect().left > above.left ? bottom - above.bottom : 0;
    };
    for (const figure of part.querySelectorAll("section > .cell:has(figure)")) {
      while (gap(figure) > height / 5 && figure.nextElementSibling?.matches(words)) {
        figure.nextElementSibling.after(figure);
      }
    }
    part.style = "";
  }
}"""
"""Let the text go on where a figure moves to the next page: columns break as pages do."""


@contextmanager
def served(site: Path) -> Iterator[tuple[Browser, str]]:
    """Serve the site while it's built; yields a browser and the server's address."""
    server = make_server("127.0.0.1", 0, site)
    Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser, f"http://127.0.0.1:{server.server_port}"
        browser.close()
    server.shutdown()


def print_all(site: Path) -> None:
    """`sheet.pdf` and `course.pdf` into the site's folder."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        open_html(page, site, document(site, "sheet", sheet.TITLE, sheet.body(site)))
        enlarge(page)
        page.pdf(path=site / "sheet.pdf", **A4)
        chapters = book.chapters(site)
        open_html(page, site, document(site, "course", book.TITLE, book.bind(chapters)))
        page.evaluate(CROP)
        page.emulate_media(media="print")
        page.evaluate(FLOAT)
        book.number(page, lambda: count_sheets(page))
        page.pdf(path=site / "course.pdf", **A4, **BOOK)
        browser.close()


def open_html(page: Page, site: Path, html: str) -> None:
    """Show a page that no file of the site is."""
    path = site / "print.html"
    path.write_text(html, "utf-8")
    page.goto(path.as_uri())
    path.unlink()


def count_sheets(page: Page) -> int:
    """Count the sheets of paper that a page takes as it is."""
    return page.pdf(**A4).count(b"/Type /Page\n")


def enlarge(page: Page) -> None:
    """Give the sheet the largest letters with which it stays two pages."""

    def fits(size: float) -> bool:
        page.evaluate("size => { document.body.style.fontSize = `${size}pt`; }", size)
        return count_sheets(page) <= 2

    largest = bisect_left(SIZES, True, key=fits)
    if largest == len(SIZES):
        raise ValueError(f"The sheet has more than two pages in letters of {SIZES[-1]} pt.")
    fits(SIZES[largest])


def document(site: Path, kind: str, title: str, body: str) -> str:
    """A page for printing."""
    return HEAD.format(kind=kind, title=title, faces=faces(), body=glyphs(site) + body)


def faces() -> str:
    """The site's typefaces, from their packages."""
    return "".join(
        f'@font-face {{ font-family: "{name}"; font-weight: {weight}; font-style: {style}; '
        f"src: url({(FACES / file.format(weight=weight, style=style, look=look)).as_uri()}); }}"
        for name, file in TYPEFACES.items()
        for (weight, style), look in LOOKS.items()
    )


def glyphs(site: Path) -> str:
    """The glyphs that formulas of any page have, each once."""
    paths = {}
    for path in sorted((site / "notebooks").rglob("*.html")):
        page = read(path)
        paths |= {str(glyph["id"]): str(glyph) for glyph in page.select(f"{book.GLYPHS} path")}
    return f'<svg class="glyphs"><defs>{"".join(paths.values())}</defs></svg>'
