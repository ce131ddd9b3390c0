"""A telephone, a keyboard, a stick: each gets a page that fits it.

make site-test
"""

from __future__ import annotations

import re

import pytest
from driver import CHAPTERS, SITE, TELEPHONE
from playwright.sync_api import Browser, Page


@pytest.fixture
def page(browser: Browser) -> Page:
    """A window of a telephone's size."""
    page = browser.new_page(viewport=TELEPHONE)
    yield page
    page.close()


def test_opened_as_a_file_a_page_says_what_to_do(page: Page) -> None:
    page.goto((SITE / "notebooks" / f"{CHAPTERS[3]}.html").as_uri())
    assert "python -m http.server" in page.locator(".live-file").inner_text()
    assert not page.locator(".live-start").first.is_visible()
    assert page.locator(".live-saved svg.narrow").first.is_visible()


def test_served_it_says_nothing_of_files(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/{CHAPTERS[3]}.html")
    assert not page.locator(".live-file").is_visible()


def test_whatever_has_the_focus_has_the_same_ring(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{address}/notebooks/{CHAPTERS[7]}.html")
    rings = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        rings.add(
            page.evaluate(
                "(() => { const look = getComputedStyle(document.activeElement);"
                " return look.outlineStyle + look.outlineWidth + look.boxShadow; })()"
            )
        )
    assert rings == {"solid3pxnone"}


def test_no_formula_is_a_stop_of_the_tab_key() -> None:
    for name in CHAPTERS:
        text = (SITE / "notebooks" / f"{name}.html").read_text("utf-8")
        assert ' tabindex="0"' not in re.sub(
            r"<g [^>]*data-sets=[^>]*>", "", text
        )  # a bit is a button
