"""One site, one face: the chapters have the front page's colours, header, footer, typefaces.

make site-test
"""

from __future__ import annotations

from time import sleep

import pytest
from driver import CHAPTERS, SITE
from fontTools.ttLib import TTFont
from playwright.sync_api import Browser, Page, Route

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
                : getComputedStyle(document.querySelector(".answer b")).color],
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
    seen = []
    for name in PAGES:
        page.goto(f"{address}/{name}")
        page.evaluate("theme => localStorage.mode = localStorage.theme = theme", theme)
        page.reload()
        seen.append(page.evaluate(SEEN))
    assert seen[0] == seen[1]


def test_a_page_that_is_not_there_looks_like_the_others(page: Page, address: str) -> None:
    page.goto(f"{address}/404.html")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 250, 246)"
    page.click("main a")
    assert "Eight GPUs" in page.inner_text("h1")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 1366])
def test_nothing_moves_when_the_typefaces_come(
    page: Page, address: str, name: str, width: int
) -> None:
    """They come half a second late, and hardly a line breaks anew."""
    page.set_viewport_size({"width": width, "height": 768})

    def late(route: Route) -> None:
        sleep(0.5)
        route.continue_()

    page.route("**/*.woff2", late)
    page.add_init_script(
        "window.moved = 0; new PerformanceObserver(seen => { for (const one of seen.getEntries())"
        " moved += one.value; }).observe({ type: 'layout-shift', buffered: true });"
    )
    page.goto(f"{address}/{name}")
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(300)
    assert page.evaluate("moved") < 0.03


SIGN = """() => {
    const [sign, title] = [".sign", "h1"].map(one => document.querySelector(`article ${one}`));
    const words = document.createRange();
    words.selectNodeContents(title);
    const { left, top, bottom, height } = sign.getBoundingClientRect();
    const level = box => box.top < bottom && box.bottom > top;
    const lies = [...words.getClientRects()].some(box => level(box) && box.right > left);
    const cells = document.querySelectorAll("article :is(.cell, .live-panel, .live-form)");
    const met = [...cells].some(one => one.offsetHeight && level(one.getBoundingClientRect()));
    return { lies, met, height, hidden: sign.getAttribute("aria-hidden") };
}"""
"""A chapter's small picture: whether it lies on the title or stands beside another."""


@pytest.mark.parametrize("name", CHAPTERS)
@pytest.mark.parametrize("width", [390, 800, 1366])
def test_a_chapters_head_has_the_picture_of_its_card(
    page: Page, address: str, name: str, width: int
) -> None:
    """Beside the title, over nothing; the machine's voice passes it by."""
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{address}/notebooks/{name}.html")
    seen = page.evaluate(SIGN)
    assert 40 < seen.pop("height") <= (80 if width == 390 else 150)
    assert seen == {"lies": False, "met": False, "hidden": "true"}
    page.goto(f"{address}/index.html")
    card = page.locator(f'.cards a[href="notebooks/{name}.html"] .sign')
    drawn = card.inner_html()
    page.goto(f"{address}/notebooks/{name}.html?present")
    assert page.locator("article .sign").inner_html() == drawn
    page.locator(".scene-bar").wait_for()
    assert not page.locator("article .sign").is_visible()


@pytest.mark.parametrize("width", [1366, 1920])
def test_a_line_of_prose_has_66_to_72_letters(page: Page, address: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{address}/{PAGES[1]}")
    page.evaluate("document.fonts.ready")
    lines = page.evaluate(LINES)
    assert 66 <= sum(lines) / len(lines) <= 72


@pytest.mark.parametrize("name", CHAPTERS)
def test_what_scrolls_on_a_telephone_says_so(page: Page, address: str, name: str) -> None:
    """Whatever is wider than its place has a shadow at its edge, and hides nothing."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/notebooks/{name}.html")
    silent = page.evaluate(
        """() => [...document.querySelectorAll("article *")]
            .filter(one => one.clientWidth > 40 && one.scrollWidth > one.clientWidth + 4)
            .filter(one => getComputedStyle(one).overflowX !== "visible")
            .filter(one => !getComputedStyle(one).backgroundImage.includes("gradient"))
            .map(one => one.outerHTML.slice(0, 120))"""
    )
    assert silent == []


@pytest.mark.parametrize("width", [390, 1366])
@pytest.mark.parametrize("name", CHAPTERS)
def test_a_printed_line_is_read_to_its_end(page: Page, address: str, name: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{address}/notebooks/{name}.html")
    cut = """() => [...document.querySelectorAll(".cell_output pre")]
        .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent)"""
    assert page.evaluate(cut) == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_picture_is_wider_than_a_telephone(page: Page, address: str, name: str) -> None:
    """The map of 00 alone, a path of all chapters, is scrolled."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/notebooks/{name}.html")
    wide = """() => [...document.querySelectorAll("article svg.wt")]
        .filter(one => !one.closest(".live-source")?.textContent.includes("course_map()"))
        .filter(one => [one, ...one.querySelectorAll("text")]
            .some(part => part.getBoundingClientRect().right > 390))
        .map(one => one.getAttribute("aria-label").slice(0, 60))"""
    assert page.evaluate(wide) == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_sentence_leads_to_the_list_that_it_announces(
    page: Page, address: str, name: str
) -> None:
    page.goto(f"{address}/notebooks/{name}.html")
    ends = """() => [...document.querySelectorAll("article p")]
        .filter(one => one.offsetHeight && one.textContent.trim().endsWith(":"))
        .filter(one => one.nextElementSibling?.matches("ul, ol"))
        .filter(one => !one.nextElementSibling.offsetHeight)
        .map(one => one.textContent)"""
    assert page.evaluate(ends) == []


@pytest.mark.parametrize("name", ["source-sans-3", "source-sans-3-bold", "source-sans-3-italic"])
def test_an_exponent_is_of_one_typeface(name: str) -> None:
    """10³⁸ and 2⁻⁷ have all their signs in it, and what moves in a page has them too."""
    letters = TTFont(SITE / "_static" / f"{name}.woff2").getBestCmap()
    drawn = "".join(path.read_text("utf-8") for path in SITE.glob("handles/*.json"))
    assert {*map(ord, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₉")} <= {*letters}
    assert {x for x in drawn if x.isalnum() and ord(x) not in letters} == set()
