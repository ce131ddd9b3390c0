"""One site, one face: the chapters have the front page's colours, header, footer, typefaces.

make site-test
"""

from __future__ import annotations

import re
from time import sleep

import markup
import pytest
from driver import CHAPTERS, MOVED, SITE, painted
from fontTools.ttLib import TTFont
from playwright.sync_api import Browser, Page, Route

from tools.notebooks import chapters

PAGES = ["index.html", f"notebooks/{CHAPTERS[7]}.html"]

SEEN = """() => {
    const look = (place, ...names) => {
        const style = getComputedStyle(document.querySelector(place));
        return names.map(name => style[name]);
    };
    return {
        ground: look("body", "backgroundColor"),
        text: look("main p", "color", "fontFamily"),
        title: look(".says h1, article h1", "color", "fontFamily", "fontWeight"),
        blue: [...look(".go, .live-button", "backgroundColor"),
            document.querySelector("article") ? look("article p a", "color")[0]
                : getComputedStyle(document.querySelector(".live-answer b")).color],
        brand: look(".brand", "fontFamily", "fontSize", "color"),
        doors: [...document.querySelectorAll(".masthead nav a:not(.go)")]
            .map(one => one.textContent),
        footer: document.querySelector(".foot p").textContent,
    };
}"""


LINES = """() => {
    const range = document.createRange();
    return [...document.querySelectorAll("article section > p")].flatMap(prose => {
        const lines = {};
        const words = document.createTreeWalker(prose, NodeFilter.SHOW_TEXT);
        while (words.nextNode()) {
            const text = words.currentNode;
            if (text.parentElement.closest("math")) continue;
            for (let i = 0; i < text.length; i++) {
                range.setStart(text, i);
                range.setEnd(text, i + 1);
                const line = Math.round(range.getBoundingClientRect().bottom / 8);
                lines[line] = (lines[line] ?? 0) + 1;
            }
        }
        return Object.values(lines).slice(0, -1);  // the last is as long as it happens to be
    }).filter(letters => letters > 40);
}"""
"""The letters of each full line of prose."""


@pytest.fixture
def page(browser: Browser) -> Page:
    """A window of a laptop's size."""
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    yield page
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_chapter_looks_like_the_front_page(page: Page, address: str, theme: str) -> None:
    page.add_init_script(f"localStorage.mode = localStorage.theme = '{theme}'")
    seen = []
    for name in PAGES:
        page.goto(f"{address}/{name}")
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        seen.append(page.evaluate(SEEN))
    assert seen[0] == seen[1]


def test_a_page_that_is_not_there_looks_like_the_others(page: Page, address: str) -> None:
    page.goto(f"{address}/404.html")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 250, 246)"
    page.click("main a")
    assert "Eight GPUs" in page.inner_text("h1")


@pytest.mark.parametrize("name", [*PAGES, "notebooks/start_here.html"])
@pytest.mark.parametrize("width", [390, 1280, 1366])
def test_nothing_moves_when_the_typefaces_come(
    page: Page, address: str, name: str, width: int
) -> None:
    """They come half a second late, and no line breaks anew."""
    page.set_viewport_size({"width": width, "height": 768})

    def late(route: Route) -> None:
        sleep(0.5)
        route.continue_()

    page.route(re.compile(r"\.woff2$|typefaces\.js$"), late)
    page.add_init_script(MOVED)
    page.goto(f"{address}/{name}")
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready")
    painted(page)
    assert page.evaluate("moved") < 0.01


def test_a_chapters_head_has_the_picture_of_its_card() -> None:
    index = (SITE / "index.html").read_text("utf-8")
    for path in chapters():
        sign = str(markup.parse(markup.sign(path)))
        assert sign in index
        assert sign in (SITE / "notebooks" / f"{path.stem[3:]}.html").read_text("utf-8")


def test_a_line_of_prose_has_66_to_72_letters(page: Page, address: str) -> None:
    page.goto(f"{address}/{PAGES[1]}")
    page.evaluate("document.fonts.ready")
    for width in (1366, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        lines = page.evaluate(LINES)
        assert 66 <= sum(lines) / len(lines) <= 72


def test_an_exponent_is_of_one_typeface() -> None:
    """10³⁸ and 2⁻⁷ have all their signs in it, and what moves in a page has them too."""
    drawn = set().union(*(path.read_text("utf-8") for path in SITE.glob("handles/*.json")))
    for name in ("source-sans-3", "source-sans-3-bold", "source-sans-3-italic"):
        letters = TTFont(SITE / "_static" / f"{name}.woff2").getBestCmap()
        assert {*map(ord, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₉")} <= {*letters}
        assert {x for x in drawn if x.isalnum() and ord(x) not in letters} == set()
