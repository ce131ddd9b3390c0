"""The course on paper: nothing to press, room to write, contents that lead to the page.

make site-test
"""

from __future__ import annotations

import re
from itertools import count

import book
import pytest
from playwright.sync_api import Browser
from test_site import SITE

from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS


@pytest.fixture(scope="module")
def whole() -> str:
    """The book's text."""
    return book.bound(book.chapters(SITE))


def test_nothing_is_to_be_pressed_or_run(whole: str) -> None:
    assert not re.search(r"Press Start|run the cell|Shift\+Enter|>Move it<|handle\(", whole)


def test_each_question_has_room_for_its_answer(whole: str) -> None:
    assert whole.count('class="answer"') == len(EXERCISES) + len(PREDICTIONS)
    for name in EXERCISES:
        assert f'">{name}</a>' in whole


def test_the_contents_say_where_each_part_begins(browser: Browser) -> None:
    page = browser.new_page()
    parts = "".join(f"<article>{n}</article>" for n in range(3))
    page.set_content(
        f"<section class=title></section><article class=contents>{'<span></span>' * 3}</article>"
        + parts
    )
    lengths = count(1)  # one page of title, two of contents, then three, four, five
    book.number(page, lambda: next(lengths))
    assert page.locator("span").all_text_contents() == ["4", "7", "11"]
    assert page.locator("[hidden]").count() == 0
    page.close()


def test_a_search_leads_to_the_section(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/search.html?q=ring+latency")
    found = page.locator("#search-results a", has_text="07 · Communication").first
    found.filter(has_text="›").wait_for()
    assert "07_communication.html#" in found.get_attribute("href")
    page.close()
