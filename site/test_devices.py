"""A telephone, a keyboard, a stick: each gets a page that fits it.

make site-test
"""

from __future__ import annotations

import pytest
from driver import CHAPTERS, SITE
from playwright.sync_api import Browser, Page

TELEPHONE = {"width": 390, "height": 844}


@pytest.fixture
def page(browser: Browser) -> Page:
    """A window of a telephone's size."""
    page = browser.new_page(viewport=TELEPHONE)
    yield page
    page.close()


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_telephone_shows_the_narrow_form_of_each_saved_picture(
    page: Page, address: str, name: str
) -> None:
    page.goto(f"{address}/notebooks/{name}.html")
    pictures = page.locator(":is(.live-saved, .live-answer) svg.wt")
    seen = [one for one in pictures.all() if one.is_visible()]
    assert seen
    for picture in seen:
        assert "wide" not in picture.get_attribute("class")
    for narrow in page.locator(":is(.live-saved, .live-answer) svg.narrow").all():
        if narrow.is_visible():  # a still may be folded away
            box = narrow.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= TELEPHONE["width"]


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
        assert ' tabindex="0"' not in (SITE / "notebooks" / f"{name}.html").read_text("utf-8")
