"""Pages that fetch neither MathJax nor an icon font: both are set when the site is built.

A drawing that a notebook keeps as two images becomes one SVG that follows the theme. A
formula becomes an SVG, whose glyphs the page has once, beside its MathML for those who
listen. An icon becomes the SVG that the theme's own script would have put in its place.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from contextlib import redirect_stdout
from inspect import signature
from io import StringIO
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag
from markup import parse, read
from reference import addresses

from llmtrain_course.cells import needed
from llmtrain_course.kit.drawing import of_saved
from llmtrain_course.kit.layout import PHONE, Picture
from llmtrain_course.page import PANELS_AND_HANDLES

HERE = Path(__file__).parent
MATHJAX = HERE / "node_modules" / "mathjax"
ICONS = "_static/scripts/fontawesome.js"
"""The theme's script of 2,000 icons, of which the pages have a dozen."""

FORMULA = re.compile(r"\s*\\[(\[](.*)\\[)\]]\s*", re.DOTALL)
"""A formula as Sphinx leaves it in a page, between `\\(` and `\\)` or `\\[` and `\\]`."""

UNIT = re.compile(
    r"(\d) (%|[kMGTPZ]?(?:B|FLOP(?:/s)?|W)\b|GiB\b|ms\b|s\b|million\b|billion\b|trillion\b)"
)
"""A number, and its unit."""

ICON = re.compile(r'<(i|span) class="([^"]*)\bfa-solid fa-([\w-]+)([^"]*)"([^>]*)></\1>')
ICON_SCRIPT = re.compile(r'\s*<script[^>]*src="[^"]*fontawesome\.js[^"]*"[^>]*></script>')


def prerender(site: Path) -> None:
    """Set the drawings, formulas and icons of all pages, and leave their scripts out."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    for page in pages.values():
        draw(page)
        keep_units(page)
    set_formulas(pages)
    link_names(site, pages)
    script = (site / ICONS).read_text("utf-8")
    for path, page in pages.items():
        path.write_text(set_icons(str(page), script), "utf-8")
    for file in (site / ICONS).parent.glob("fontawesome.js*"):
        file.unlink()


# --- drawings


def draw(page: BeautifulSoup) -> None:
    """Put one SVG in the place of each drawing's two images, and a narrow one beside it."""
    for saved in page.select("div.wt"):
        day = saved.select_one("img.day")
        saved.replace_with(parse(of_saved(day["src"], day["alt"]).inline_svg()))
    for live in page.select("section.live-panel[data-word]"):
        add_narrow(live.parent.select_one(".live-saved"), str(live["data-word"]))
    cells = [cell.get_text() for cell in page.select(".cell_input pre")]
    for drawn in page.select(".live-source svg.wt"):
        source = drawn.find_parent(class_="cell").pre.get_text()
        imports = [cell for cell in cells if cell.startswith(("from ", "import "))]
        add_narrow_of_cell(drawn, [*imports, *cells[: cells.index(source)]], source)


def add_narrow(saved: Tag, word: str) -> None:
    """Put beside each saved picture of a panel what a telephone shows in its place."""
    panel = PANELS_AND_HANDLES[word].on_telephone
    settings = [panel.default, *(panel.presets[name] for name in panel.static_presets)]
    pictures = parse("".join(panel.answer(setting).html for setting in settings))
    for wide, narrow in zip(saved.select("svg.wt"), pictures.select("svg.wt"), strict=True):
        set_beside(wide, narrow)


def add_narrow_of_cell(wide: Tag, before: Sequence[str], source: str) -> None:
    """Put beside a cell's picture the narrow one that its last line draws, if it knows one."""
    lines, _, last = source.strip().rpartition("\n")
    scope: dict[str, Any] = {}
    exec(before[0] if before else "", scope)
    draws = scope.get(last.partition("(")[0])
    if not callable(draws) or signature(draws).return_annotation not in (
        Picture,
        Picture.__name__,  # as a string, where a module asks for it
    ):
        return
    with redirect_stdout(StringIO()):  # what the cell prints is on the page already
        exec(f"{needed(before, source)}\n{lines}", scope)
        drawing = eval(last, scope).drawing(PHONE)
    set_beside(wide, parse(drawing.inline_svg()).select_one("svg.wt"))


def set_beside(wide: Tag, narrow: Tag) -> None:
    """Put two forms of one picture side by side, of which a window shows one."""
    wide["class"], narrow["class"] = ["wt", "wide"], ["wt", "narrow"]
    wide.insert_after(narrow)


# --- numbers and their units


def keep_units(page: BeautifulSoup) -> None:
    """Let no line break part a number from its unit, in what is read."""
    for words in page.select("article :is(p, li, td, summary)"):
        for text in words.find_all(string=UNIT, recursive=False):
            text.replace_with(UNIT.sub("\\1\u00a0\\2", text))


# --- formulas


def set_formulas(pages: dict[Path, BeautifulSoup]) -> None:
    """Put an SVG in the place of each formula, and its glyphs at the end of the page."""
    formulas = {path: page.select(".math") for path, page in pages.items()}
    sources = {str(path): [_read(one) for one in tags] for path, tags in formulas.items() if tags}
    process = subprocess.run(
        ["node", HERE / "formulas.mjs", MATHJAX],
        input=json.dumps(sources),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    for name, made in json.loads(process.stdout).items():
        path = Path(name)
        for place, (svg, mathml) in zip(formulas[path], made["set"], strict=True):
            place.clear()
            place.append(_drawn(svg, mathml))
        glyphs = f'<svg class="glyphs" aria-hidden="true"><defs>{made["glyphs"]}</defs></svg>'
        pages[path].select_one("article").append(parse(glyphs))


def _read(formula: Tag) -> tuple[str, bool]:
    """A formula's TeX, and whether it stands on a line of its own."""
    return FORMULA.fullmatch(formula.get_text())[1], formula.name == "div"


def _drawn(svg: str, mathml: str) -> BeautifulSoup:
    """A formula to look at, and the same to listen to."""
    hidden = svg.replace('role="img" focusable="false"', 'aria-hidden="true"')
    return parse(hidden + re.sub(r">\s+<", "><", mathml))


# --- icons


def set_icons(page: str, script: str) -> str:
    """Put an SVG from the theme's script in the place of each icon, with its attributes."""

    def drawing(icon: re.Match[str]) -> str:
        _, before, name, after, more = icon.groups()
        match = re.search(rf'\W"?{name}"?:\[(\d+),(\d+),\[[^\]]*\],"\w+","([^"]+)"\]', script)
        if not match:
            raise ValueError(f"no icon {name} in {ICONS}")
        width, height, path = match.groups()
        classes = f"{before}svg-inline--fa{after}"  # without the class that asks for the font
        return (
            f'<svg class="{classes}"{more} aria-hidden="true" viewBox="0 0 {width} {height}">'
            f'<path fill="currentColor" d="{path}"/></svg>'
        )

    return ICON.sub(drawing, ICON_SCRIPT.sub("", page))


# --- the helpers' names


def link_names(site: Path, pages: dict[Path, BeautifulSoup]) -> None:
    """Let each public name in the pages' code lead to its entry in the reference."""
    entries = addresses()
    for path in sorted((site / "notebooks").rglob("*.html")):
        up = "../" * len(path.relative_to(site).parent.parts)
        for name in pages[path].select(".highlight span.n"):
            if entry := entries.get(name.get_text()):
                # not a stop of the Tab key: a cell may have ten of them
                link = {"href": f"{up}{entry}", "tabindex": "-1", "class": "name"}
                name.wrap(pages[path].new_tag("a", attrs=link))
