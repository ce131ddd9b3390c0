"""What helps to read a chapter: words explained in place, the scene that is read.

make site-test
"""

from __future__ import annotations

import pytest
from driver import CHAPTERS
from playwright.sync_api import Browser, Page, expect

CHAPTER = f"notebooks/{CHAPTERS[7]}.html"


@pytest.fixture
def page(browser: Browser, address: str) -> Page:
    """A chapter in a window of a laptop's size."""
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    page.goto(f"{address}/{CHAPTER}")
    yield page
    page.close()


@pytest.fixture
def telephone(browser: Browser, address: str) -> Page:
    """A chapter on a telephone."""
    size = {"width": 390, "height": 844}
    page = browser.new_page(viewport=size, has_touch=True, is_mobile=True)
    page.goto(f"{address}/notebooks/budget.html")
    yield page
    page.close()


def test_a_word_of_the_glossary_is_explained_to_pointer_and_keyboard(page: Page) -> None:
    word, card = page.locator("article a[data-tip]:visible").first, page.locator(".live-tip")
    assert not page.locator("article a[title][href*='glossary.html#']").count()
    word.hover()
    expect(card).to_contain_text(word.get_attribute("data-tip"))
    page.mouse.move(1, 400)
    expect(card).to_be_hidden()
    word.focus()
    expect(card).to_be_visible()
    assert word.get_attribute("aria-describedby") == "live-tip"
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()


def test_a_finger_stays_on_the_page(telephone: Page) -> None:
    before, card = telephone.url, telephone.locator(".live-tip")
    telephone.locator("article a[data-tip]:visible").first.tap()
    expect(card).to_be_visible()
    assert telephone.url == before
    card.get_by_role("link", name="To the glossary").tap()
    telephone.wait_for_url("**/glossary.html#*")


def test_the_list_of_scenes_shows_the_one_that_is_read(page: Page) -> None:
    for head in page.locator("article h2").all():
        head.evaluate("head => scrollTo(0, head.getBoundingClientRect().top + scrollY - 90)")
        named = head.inner_text().removesuffix("#").strip()
        expect(page.locator(".bd-sidebar-secondary .live-here")).to_have_text(named)


def test_pictures_of_cells_have_a_form_for_a_telephone(telephone: Page) -> None:
    pictures = telephone.locator(".live-source svg.narrow")
    assert pictures.count() == 2
    for picture in pictures.all():
        box = picture.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def test_the_progress_in_the_list_of_pages_is_read_whole(page: Page) -> None:
    page.evaluate("localStorage.llmtrain = JSON.stringify({done: {'start_here-a': true}})")
    page.reload()
    mark = page.locator(".live-mark").first.bounding_box()
    edge = page.locator(".bd-sidebar-primary").bounding_box()
    assert mark["x"] + mark["width"] <= edge["x"] + edge["width"]
