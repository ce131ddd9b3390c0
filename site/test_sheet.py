"""The formula sheet: two full pages, and each letter explained where it is used.

make site-test
"""

from __future__ import annotations

import re
from pathlib import Path

import book
import pdf
import pytest
import sheet
from driver import SITE
from playwright.sync_api import Browser

from llmtrain_course.kit.ids import page_of

SAYS_ITSELF = {"05": {"x"}, "09": {"G"}, "10": {"e"}}
"""Letters that their own row explains, and the base of logarithms."""


@pytest.mark.parametrize("path", book.chapter_pages(SITE), ids=lambda path: path.stem)
def test_each_letter_of_a_chapter_is_explained(path: Path) -> None:
    chapter = page_of(path.stem)[:2]
    names = book.article(path).select("#to-take-away table math mi")
    used = {name.get_text() for name in names if len(name.get_text()) == 1}
    here = {name for names in sheet.HERE.get(chapter, {}) for name in re.findall(r"\w", names)}
    own = here - set("₀")
    assert own <= used  # what is explained is there
    assert used <= set(sheet.LETTERS) | own | SAYS_ITSELF.get(chapter, set())


def test_no_line_begins_with_the_mark_after_a_formula() -> None:
    for path in book.chapter_pages(SITE):
        for formula in book.article(path).select("#to-take-away table .math"):
            follows = str(formula.next_sibling or "")
            assert formula.parent.get("class") == ["kept"] or not re.match(r"[;,.:]", follows)


def test_the_sheet_has_the_largest_letters_that_fit(browser: Browser) -> None:
    page = browser.new_page()
    pdf.opened(page, SITE, pdf.filled(SITE, "sheet", sheet.TITLE, sheet.body(SITE)))
    pdf.enlarge(page)
    size = float(page.evaluate("document.body.style.fontSize").removesuffix("pt"))
    assert size >= 9
    assert pdf.sheets(page) == 2
    page.evaluate("size => { document.body.style.fontSize = `${size}pt`; }", size + 0.1)
    assert pdf.sheets(page) > 2


def test_formulas_are_as_large_as_their_neighbours(browser: Browser) -> None:
    page = browser.new_page()
    page.set_viewport_size({"width": 725, "height": 1000})  # A4 without its margins
    pdf.opened(page, SITE, pdf.filled(SITE, "sheet", sheet.TITLE, sheet.body(SITE)))
    pdf.enlarge(page)
    page.emulate_media(media="print")
    scales = page.locator(".taken td:not(:first-child) .math > svg").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().width"
        " / parseFloat(one.getAttribute('width')))"
    )
    assert min(scales) > 0.98 * max(scales)
