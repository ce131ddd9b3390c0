"""The look that all pages share: two typefaces, colours, the header and the footer.

`front_page/shared.css` stands in the head of every page, the front page's and the chapters', so
that nothing waits for it. The typefaces are cut to the characters of the pages.
"""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from functools import partial
from html import unescape
from pathlib import Path

from fontTools.subset import Options, Subsetter, load_font, save_font

HERE = Path(__file__).parent
PACKED = HERE / "node_modules"
WORDS = HERE.parent / "llmtrain_helpers"

FACES = {
    "source-sans-3": "source-sans/WOFF2/TTF/SourceSans3-Regular.ttf",
    "source-sans-3-bold": "source-sans/WOFF2/TTF/SourceSans3-Semibold.ttf",
    "source-sans-3-italic": "source-sans/WOFF2/TTF/SourceSans3-It.ttf",
    "source-serif-4": "@fontsource/source-serif-4/files/source-serif-4-latin-600-normal",
}
"""The typefaces as the site serves them, and as their packages have them.

The sans is the whole of it: the packages that are cut to Latin have no exponent but ¹²³.
"""

SHEET = "typefaces.css"
"""A style sheet that has the typefaces in it: no page is painted before they are there."""

LATER = "source-sans-3-italic"
"""What isn't in the sheet: it comes beside it."""

CHARSET = re.compile(r"<meta charset[^>]*>")
FILE = re.compile(r"url\((source-[\w-]+\.woff2)\)")
MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.DOTALL)
TYPED = "".join(map(chr, range(32, 127))) + "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₃₄₅₆₇₈₉"
"""What a page may come to show, whatever it shows at first."""


logging.getLogger("fontTools").setLevel(logging.WARNING)


def add_fonts(site: Path) -> None:
    """Cut the typefaces, and put the look into the head of every page."""
    pages = {path: path.read_text("utf-8") for path in site.rglob("*.html")}
    letters = {letter for page in pages.values() for letter in unescape(MARKUP.sub("", page))}
    for path in [*site.glob("handles/*.json"), *WORDS.rglob("*.py")]:  # what moves and answers
        letters.update(path.read_text("utf-8"))
    for name, packed in FACES.items():
        subset(PACKED / f"{packed}.woff2", site / "_static" / f"{name}.woff2", {*letters, *TYPED})
    sheet = (HERE / "front_page" / SHEET).read_text("utf-8")
    (site / "_static" / SHEET).write_text(FILE.sub(partial(embed, site), sheet), "utf-8")
    for path, page in pages.items():
        up = "../" * (len(path.relative_to(site).parts) - 1)
        asked = CHARSET.sub(rf"\g<0>{links(up, '<em' in page)}", page, count=1)
        path.write_text(asked.replace("</head>", f"{style(up)}</head>", 1), "utf-8")


def subset(packed: Path, served: Path, letters: set[str]) -> None:
    """Write a typeface that has these characters alone."""
    options = Options(flavor="woff2")
    face = load_font(packed, options)
    subsetter = Subsetter(options)
    subsetter.populate(text="".join(letters))
    subsetter.subset(face)
    save_font(face, served, options)


def head(up: str = "") -> str:
    """The typefaces and the style of a page that has no head yet."""
    return links(up) + style(up)


def style(up: str) -> str:
    """The style of every page."""
    shared = (HERE / "front_page" / "shared.css").read_text("utf-8")
    return f"<style>{shared.replace('{{ up }}', up)}</style>"


def embed(site: Path, file: re.Match[str]) -> str:
    """Put a typeface into the style sheet itself, unless it comes later."""
    path = site / "_static" / file[1]
    if path.stem == LATER:
        return file[0]
    return f"url(data:font/woff2;base64,{b64encode(path.read_bytes()).decode()})"


def links(up: str, italic: bool = False) -> str:
    """Ask for the typefaces before anything else, with the italic where there is a word in it."""
    sheet = f'<link rel="stylesheet" href="{up}_static/{SHEET}">'
    file = f'href="{up}_static/{LATER}.woff2" type="font/woff2"'
    return sheet + f'<link rel="preload" as="font" crossorigin {file}>' * italic
