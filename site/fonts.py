"""The look that all pages share: two typefaces, colours, the header and the footer.

`front_page/shared.css` stands in the head of every page, the front page's and the chapters', so
that nothing waits for it. The typefaces are cut to the characters of the pages.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from base64 import b64encode
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

METRICS = {"ascentOverride": "102.4%", "descentOverride": "40%"}
BLOCKING = {
    "source-sans-3": ("Source Sans 3", {"weight": "400", **METRICS}),
    "source-sans-3-bold": ("Source Sans 3", {"weight": "600 900", **METRICS}),
    "source-serif-4": ("Source Serif 4", {"weight": "600"}),
}
"""What a script brings before anything is painted: from a style sheet they come later, and
lines that break anew move all below them. The italic comes by itself."""

SCRIPT, SHEET, ITALIC = "typefaces.js", "typefaces.css", "source-sans-3-italic"
"""The script, and for a browser without scripts a style sheet."""

ADD = """for (const [name, about, data] of {faces}) {{
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  document.fonts.add(new FontFace(name, bytes.buffer, about));
}}
"""

CHARSET = re.compile(r"<meta charset[^>]*>")
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
    faces = [[*about, embed(site, name)] for name, about in BLOCKING.items()]
    (site / "_static" / SCRIPT).write_text(ADD.format(faces=json.dumps(faces)), "utf-8")
    shutil.copy(HERE / "front_page" / SHEET, site / "_static")
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


def embed(site: Path, name: str) -> str:
    """Return a typeface's file as text."""
    return b64encode((site / "_static" / f"{name}.woff2").read_bytes()).decode()


def links(up: str, italic: bool = False) -> str:
    """Ask for the typefaces before anything else, with the italic where there is a word in it."""
    static = f"{up}_static"
    sheet = f'<noscript><link rel="stylesheet" href="{static}/{SHEET}"></noscript>'
    file = f'href="{static}/{ITALIC}.woff2" type="font/woff2"'
    later = f'<link rel="preload" as="font" crossorigin {file}>' * italic
    return f'<script src="{static}/{SCRIPT}"></script>{sheet}{later}'
