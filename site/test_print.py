"""The course on paper: the book says how to read it and has room to write, and on the formula
sheet's two full pages each letter is explained.

make site-test
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

import book
import frames
import pdf
import pytest
import sheet
from bs4 import BeautifulSoup, Tag
from driver import SITE
from markup import parse
from playwright.sync_api import Browser, Page, expect

from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit.ids import page_of
from llmtrain_course.panels import HANDLES


@pytest.fixture(scope="module")
def articles() -> dict[str, Tag]:
    """The chapters as they are on paper."""
    return {path.stem: book.article(path) for path in book.chapter_pages(SITE)}


@pytest.fixture(scope="module")
def whole() -> str:
    """The book's text."""
    return book.bind(book.chapters(SITE))


@pytest.fixture(scope="module")
def printed(whole: str) -> BeautifulSoup:
    """The book as it is printed."""
    return BeautifulSoup(whole, "html.parser")


def test_paper_shows_two_settings_that_differ_and_no_empty_start() -> None:
    for name, handle in HANDLES.items():
        first, second = frames.pair(name)
        assert first != second, name
        assert not any(handle.answer(values).problem for values in (first, second)), name
        for each, control in handle.controls.items():
            if control.play and control.stops[0] == handle.default[each] == 0:
                assert first[each] != 0 != second[each], name


def test_the_rule_takes_the_middle_and_the_end_or_another_setting() -> None:
    assert frames.by_rule(HANDLES["stream"]) == ({"step": 3}, {"step": 7})
    assert frames.by_rule(HANDLES["kept_layer"]) == ({}, {"dropout": "off"})


def test_a_setting_says_its_unit_once() -> None:
    controls = {**HANDLES["time_line"].controls, **HANDLES["achieved"].controls}
    assert frames.setting_of(controls["tokens"], 2560) == "Tokens 2,560"
    assert frames.setting_of(controls["seconds"], 20) == "Seconds per step 20"
    assert frames.setting_of(HANDLES["batch_cost"].controls["batch"], 4e6) == "Batch 4M tokens"


def test_a_frame_has_no_knob_to_drag_but_keeps_its_dots() -> None:
    assert "data-moves" in HANDLES["time_line"].render()
    assert "data-moves" not in frames.frames("time_line")
    assert "data-moves" in frames.frames("gpus_and_days")


def test_the_book_has_the_settings_of_the_pages_cropped(printed: BeautifulSoup) -> None:
    for handle in ("ring", "time_line"):
        uncropped = parse(frames.frames(handle)).svg
        cropped = printed.find("svg", attrs={"aria-label": uncropped["aria-label"]})
        assert cropped.find_parent("div", "frames").find_parent("figure")
        heights = [float(one["viewbox"].split()[3]) for one in (cropped, uncropped)]
        assert heights[0] < heights[1]


def test_each_picture_is_a_figure_with_a_number_of_its_chapter(printed: BeautifulSoup) -> None:
    for chapter, page in enumerate(printed.select("article[id^=p]:not(.glossary)")):
        numbers = [figure.figcaption.b.get_text() for figure in page.select("figure")]
        assert numbers == [f"Figure {chapter}.{at + 1}" for at in range(len(numbers))]
        assert len(numbers) >= 4
        assert all(picture.find_parent("figure") for picture in page.select("img, svg.wt"))


def test_what_was_to_be_seen_stands_with_the_answers(printed: BeautifulSoup) -> None:
    seen = printed.find_all(string=re.compile("^The answers"))
    questions = [one for one in seen if not one.find_parent(id="answers")]
    assert len(questions) == len(seen) / 2 >= 8
    for question in questions:
        place = question.parent.a["href"].removeprefix("#")
        assert printed.find(id=place).find_parent(id="answers")
        assert question.parent.name == "p"  # and nothing below it


def test_the_sources_of_all_chapters_stand_together(printed: BeautifulSoup) -> None:
    names = [words.strong.get_text()[:2] for words in printed.select("#sources .sources")]
    assert names == [page_of(path.stem)[:2] for path in book.chapter_pages(SITE)]
    assert len(printed.select(".sources")) == len(names)


def test_the_front_says_how_to_read_what_only_a_hand_can_do(printed: BeautifulSoup) -> None:
    assert "press play" in printed.select_one(".contents").get_text()
    assert "Press play" in printed.select_one("#p0").get_text()  # no sentence is left out


def test_a_title_page_has_a_picture_a_date_and_the_licence(printed: BeautifulSoup) -> None:
    title = printed.select_one(".title")
    assert title.svg
    assert re.search(r"Version \S+, \d+ \w+ 20\d\d.*CC BY 4.0", title.get_text())


def test_each_question_has_room_for_its_answer(whole: str) -> None:
    assert whole.count('class="answer"') == len(EXERCISES) + len(PREDICTIONS)
    for name in EXERCISES:
        assert f'">{name}</a>' in whole


def test_the_line_for_a_verdict_is_left_out_and_code_keeps_its_shape() -> None:
    code = "<div><pre>def f(x):\n<span>    </span>return None\n\n\ncheck(<i>f</i>)\n</pre></div>"
    page = BeautifulSoup(code, "html.parser")
    book.leave_out_check(page.pre)
    assert page.pre.get_text() == "def f(x):\n    return None"


def test_the_contents_say_where_each_part_begins(browser: Browser) -> None:
    page = browser.new_page()
    parts = "".join(f"<article>{n}</article>" for n in range(3))
    page.set_content(
        f"<section class=title></section><article class=contents>{'<span></span>' * 3}</article>"
        + parts
    )
    # one page of title, two of contents, then three, four, five, and as many set tighter
    lengths = (length for length in count(1) for _ in range(2))
    book.number(page, lambda: next(lengths))
    assert page.locator("span").all_text_contents() == ["4", "7", "11"]
    assert page.locator("[hidden]").count() == 0
    page.close()


def test_a_page_that_is_printed_is_light_and_has_nothing_to_press(
    browser: Browser, address: str
) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(f"{address}/notebooks/communication.html")
    expect(page.locator(".live-handle .live-play").first).to_be_visible()
    assert page.locator(".frames:visible, .setting:visible").all() == []
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.locator(":is(button, input[type=range], .headerlink, nav):visible").all() == []
    assert page.locator("h1:visible").count() == 1
    assert page.locator(".live-handle:visible").all() == []
    assert page.locator(".frames svg.wt:visible").count() == 8  # two settings of each
    assert page.locator(".live-caption:visible").count() == 5
    assert "Press Start" not in page.locator("article").inner_text()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.close()


def test_a_bookmark_says_a_title_once_and_with_all_its_spaces(browser: Browser) -> None:
    page = browser.new_page()
    style = (SITE / "_static/paper.css").read_text("utf-8")
    title = "Parameters: how many are there, and where in a model do they sit?"
    page.set_content(
        f"<style>{style}</style><body class=course><article><h1>Before</h1></article>"
        f"<article><h1>{title}</h1><p>Text.</p></article>"
    )
    printed = page.pdf(**pdf.A4, **pdf.BOOK)
    assert re.findall(rb"/Title \((Param.*?)\)", printed) == [title.encode()]
    page.close()


@pytest.mark.parametrize(("above", "order"), [(200, "text figure"), (100, "figure text")])
def test_text_goes_on_where_a_figure_moves_to_the_next_page(
    browser: Browser, above: int, order: str
) -> None:
    page = browser.new_page()
    tall = "margin: 0; break-inside: avoid; height:"
    page.set_content(
        f"<article id=p0><section><div style='{tall} {above}mm'></div><div class=cell style='{tall}"
        " 100mm'><figure>figure</figure></div><p>text</p><h2>Next</h2><p>more</p></section>"
    )
    page.evaluate(pdf.FLOAT)
    assert page.locator("section").inner_text().split() == [*order.split(), "Next", "more"]
    assert not page.locator("article").get_attribute("style")
    page.close()


@pytest.mark.parametrize(("loose", "tight"), [(3, 2), (3, 3)])
def test_a_part_is_set_tighter_only_where_that_saves_a_sheet(
    browser: Browser, loose: int, tight: int
) -> None:
    page = browser.new_page()
    page.set_content("<article></article>")
    counts = iter((loose, tight))
    assert book.fewest(page, 0, lambda: next(counts)) == tight
    assert page.locator(".tight").count() == loose - tight
    page.close()


def test_paper_has_the_light_drawings_alone(articles: dict[str, Tag]) -> None:
    for name, article in articles.items():
        assert not article.select(".sign")  # the picture of its card
        drawings = article.select(".wt")
        assert drawings, name
        for drawing in drawings:
            assert drawing.name == "svg", name
            assert not drawing.select("style"), name


def test_the_book_calls_a_page_of_the_site_a_chapter(articles: dict[str, Tag]) -> None:
    text = [*articles.values()][9].get_text()
    assert not re.search(r"\b[Pp]ages?\s\d\d\b", text)
    assert re.search(r"\b[Cc]hapter 10\b", text)


# --- the formula sheet

SAYS_ITSELF = {"05": {"x"}, "10": {"G"}, "11": {"e"}}
"""Letters that their own row explains, and the base of logarithms."""


def test_each_letter_of_a_chapter_is_explained(articles: dict[str, Tag]) -> None:
    for name, article in articles.items():
        chapter = page_of(name)[:2]
        letters = [one.get_text() for one in article.select("#to-take-away table math mi")]
        used = {letter for letter in letters if len(letter) == 1}
        here = {x for names in sheet.HERE.get(chapter, {}) for x in re.findall(r"\w", names)}
        own = here - set("₀")
        assert own <= used, name  # what is explained is there
        assert used <= set(sheet.LETTERS) | own | SAYS_ITSELF.get(chapter, set()), name


def test_no_line_begins_with_the_mark_after_a_formula(articles: dict[str, Tag]) -> None:
    for article in articles.values():
        for formula in article.select("#to-take-away table .math"):
            follows = str(formula.next_sibling or "")
            assert formula.parent.get("class") == ["kept"] or not re.match(r"[;,.:]", follows)


@pytest.fixture(scope="module")
def printed_sheet(browser: Browser) -> Iterator[Page]:
    """The sheet, in letters of the size in which it is printed_sheet."""
    page = browser.new_page()
    pdf.open_html(page, SITE, pdf.document(SITE, "sheet", sheet.TITLE, sheet.body(SITE)))
    pdf.enlarge(page)
    yield page
    page.close()


def test_formulas_are_as_large_as_their_neighbours(printed_sheet: Page) -> None:
    printed_sheet.set_viewport_size({"width": 725, "height": 1000})  # A4 without its margins
    printed_sheet.emulate_media(media="print")
    scales = printed_sheet.locator(".taken td:not(:first-child) .math > svg").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().width"
        " / parseFloat(one.getAttribute('width')))"
    )
    assert min(scales) > 0.98 * max(scales)


def test_the_sheet_has_the_largest_letters_that_fit(printed_sheet: Page) -> None:
    size = float(printed_sheet.evaluate("document.body.style.fontSize").removesuffix("pt"))
    assert size >= 9
    assert pdf.count_sheets(printed_sheet) == 2
    printed_sheet.evaluate("size => { document.body.style.fontSize = `${size}pt`; }", size + 0.1)
    assert pdf.count_sheets(printed_sheet) > 2
