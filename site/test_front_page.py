"""The front page in a browser: its handle moves, its guess is answered, and it needs no Python.

make site-test
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import fonts
import front_page
import lite
import nbformat
import pictures
import pytest
from driver import AXE, SITE, middle, painted
from nbclient import NotebookClient
from playwright.sync_api import Browser, Page, expect

from llmtrain_course.exercises import PREDICTIONS
from llmtrain_course.kit.ids import CHAPTERS
from llmtrain_course.panels import HANDLES
from teaching import class_report
from tools.notebooks import NOTEBOOKS, all_notebooks, chapters

MOST, MOST_FACES = 100_000, 40_000
"""Bytes of all that the page asks for at first, gzipped, and of its typefaces."""


@pytest.fixture
def page(browser: Browser, address: str) -> Any:
    """The front page; what it asks for is kept in `page.asked`."""
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    page.asked = []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(f"{address}/index.html")
    page.evaluate("document.fonts.ready")
    yield page
    page.close()


def test_its_picture_moves_and_says_what_the_handle_says(page: Page) -> None:
    values = dict(HANDLES["reach"].default)
    for name, control in HANDLES["reach"].controls.items():
        for place in (0, len(control.stops) - 1, 3):
            page.locator(f"#handle-0-{name} ~ input[type=range]").fill(str(place))
            values[name] = control.stops[place]
            sentence = pictures.sentence(HANDLES["reach"].render(**values))
            expect(page.locator(".live-answer > p")).to_have_text(sentence)
    assert not [url for url in page.asked if "pyodide" in url or "worker" in url]


@pytest.mark.parametrize("width", [390, 1366])
def test_nothing_below_it_moves_while_its_sliders_do(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.reload(wait_until="networkidle")
    guess, heights = page.locator(".guess"), set[float]()
    sliders = page.locator(".hero input[type=range]")
    for at, slider in enumerate(sliders.all()):
        for place in (0, 3, 7 if at != 1 else 4):
            slider.fill(str(place))
            expect(page.locator(".live-handle")).not_to_have_class(re.compile("live-busy"))
            heights.add(guess.evaluate("one => one.getBoundingClientRect().top + scrollY"))
    assert max(heights) - min(heights) < 1


def test_it_stands_before_its_script_as_it_does_after(browser: Browser, address: str) -> None:
    still = browser.new_context(java_script_enabled=False).new_page()
    live = browser.new_page()
    for page in (still, live):
        page.goto(f"{address}/index.html")
    for place in (".live-controls", ".live-answer > svg:visible", ".live-answer > p", ".guess"):
        before, after = (page.locator(f".hero ~ {place}, .hero {place}") for page in (still, live))
        assert before.bounding_box() == pytest.approx(after.bounding_box(), abs=1), place
    still.context.close()
    live.close()


def test_it_asks_for_its_typefaces_mark_scripts_and_pictures_and_is_light(
    page: Page, address: str
) -> None:
    page.wait_for_load_state("networkidle")
    names = {url.removeprefix(address).lstrip("/") for url in page.asked}
    faces = {f"_static/{fonts.SCRIPT}"}
    parts = {f"_static/{name}.js" for name in front_page.PARTS}
    others = {"index.html", "_static/mark.svg", "handles/reach.json"}
    assert names - {"offline.js"} == others | faces | parts
    sizes = {name: (SITE / name).read_bytes() for name in names}
    assert sum(len(gzip.compress(content)) for content in sizes.values()) < MOST
    assert sum(len(gzip.compress(sizes[name])) for name in faces) < MOST_FACES


def test_a_guess_is_answered_and_the_first_page_knows_it(page: Page, address: str) -> None:
    verdict = page.locator("#verdict")
    page.keyboard.press("Tab")
    page.locator("#years").fill("soon")
    page.keyboard.press("Enter")
    expect(verdict).to_contain_text("Your guess has to be a number")
    page.locator("#years").fill("3 years")
    page.keyboard.press("Enter")
    truth = PREDICTIONS["start_here-guess"].truth()
    expect(verdict).to_contain_text(f"You said 3 years. It's {truth:.2g} years, so you're 8.8×")
    expect(verdict).to_contain_text("In 30 days they give it 47 billion tokens")
    page.locator("#years").fill("40")  # the first guess is the guess
    page.keyboard.press("Enter")
    twice = "First you said 3 years, now you said 40. It's 26 years, so you're 52% too high."
    expect(verdict).to_contain_text(twice)
    page.goto(f"{address}/notebooks/start_here.html")
    form = page.locator('form[data-id="start_here-guess"]')
    expect(form.locator("input")).to_have_value("40")
    expect(form.locator(".live-verdict")).to_contain_text(twice)
    expect(form.locator(".live-verdict")).not_to_contain_text("above")
    kept = json.loads(page.evaluate("localStorage.llmtrain"))
    assert (kept["guesses"], kept["done"]) == (
        {"start_here-guess": "3 years"},
        {"start_here-guess": True},
    )
    assert "How many years" in kept["cells"]["start_here-guess"]["question"]
    assert len(kept["cells"]["start_here-guess"]["date"]) == len("2026-01-31")


def test_a_guess_is_there_after_a_reload(page: Page) -> None:
    page.locator("#years").fill("3")
    page.keyboard.press("Enter")
    expect(page.locator("#verdict")).to_contain_text("You said 3.")
    page.reload()
    expect(page.locator("#years")).to_have_value("3")
    expect(page.locator("#verdict")).to_contain_text("You said 3.")


def test_a_guess_is_answered_by_bars_to_one_scale(page: Page) -> None:
    bars = page.locator("#bars")
    assert "26" not in bars.text_content()  # nothing gives it away
    page.locator("#years").fill("3")
    page.keyboard.press("Enter")
    expect(bars.locator("i:visible")).to_have_count(3)
    widths = "all => all.map(one => one.getBoundingClientRect().width)"
    for width in (390, 1366):
        page.set_viewport_size({"width": width, "height": 844})
        painted(page)
        days, guess, truth = bars.locator("i").evaluate_all(widths)
        assert guess / truth == pytest.approx(3 / 26, rel=0.02)
        assert days < 3
        form = page.locator(".guess form").bounding_box()
        assert (bars.bounding_box()["x"] > form["x"] + 300) == (width > 860)
    lines = ["What you have: 30 days", "Your guess: 3 years", "What it takes: 26 years"]
    assert bars.locator("p").all_inner_texts() == lines


def test_the_bar_of_a_guess_that_is_much_too_long_is_cut(page: Page) -> None:
    page.locator("#years").fill("4000")
    page.keyboard.press("Enter")
    expect(page.locator("#bars small")).to_contain_text("cut")
    assert page.locator("#bars .cut").count() == 1


def test_the_dot_is_dragged_along_the_line_and_off_it(page: Page) -> None:
    """The size follows to the side, and the GPUs up and down from where that has put it."""
    sliders = page.locator(".hero input[type=range]")
    dot = page.locator(".hero [data-moves]:visible")
    begun = [int(slider.input_value()) for slider in sliders.all()]
    sliders.nth(2).fill(str(begun[2] + 2))
    sliders.nth(0).fill(str(begun[0] + 3))
    expect(page.locator(".live-handle")).not_to_have_class(re.compile("live-busy"))
    there = middle(dot)
    for at, place in enumerate(begun):
        sliders.nth(at).fill(str(place))
    expect(page.locator(".live-handle")).not_to_have_class(re.compile("live-busy"))
    x, y = middle(dot)
    page.mouse.move(x + 3, y - 3)
    page.mouse.down()
    painted(page)
    page.mouse.move(there[0] + 3, there[1] - 3, steps=6)
    page.mouse.up()
    page.mouse.move(x, y)  # let go: it stays
    expect(sliders.nth(2)).to_have_value(str(begun[2] + 2))
    expect(sliders.nth(0)).to_have_value(str(begun[0] + 3))
    expect(sliders.nth(1)).to_have_value(str(begun[1]))
    assert middle(dot) == pytest.approx(there, abs=1)


def test_every_ring_has_a_name(page: Page) -> None:
    titles = page.locator(".hero svg.wide circle > title").all_text_contents()
    runs = [one for one in titles if "tokens" in one]
    assert len(runs) == len({*runs}) == 58
    assert any(re.fullmatch("Chinchilla 70B: 70.0 billion parameters, .* tokens", x) for x in runs)


def test_the_buttons_go_on_where_one_is(page: Page) -> None:
    page.evaluate(
        """localStorage.llmtrain = JSON.stringify({
            done: {"start_here-a": true, "communication-a": true}})"""
    )
    page.reload()
    for place in ("#start", "#door"):
        expect(page.locator(place)).to_have_text("Go on with 07")
        assert page.locator(place).get_attribute("href").endswith("/communication.html")


def test_the_theme_can_be_chosen_here_and_in_a_chapter_and_else_follows_the_system(
    page: Page, address: str
) -> None:
    html, button = page.locator("html"), page.get_by_role("button", name="Light or dark")
    page.emulate_media(color_scheme="dark")
    expect(html).to_have_attribute("data-theme", "dark")
    drawn = button.inner_html()
    page.goto(f"{address}/notebooks/duration.html", wait_until="networkidle")
    expect(html).to_have_attribute("data-theme", "dark")
    assert button.inner_html() == drawn
    for theme in ("light", "dark", "light"):
        button.click()
        expect(html).to_have_attribute("data-theme", theme)
    page.reload()
    expect(html).to_have_attribute("data-theme", "light")
    page.goto(f"{address}/index.html")
    expect(html).to_have_attribute("data-theme", "light")
    button.click()
    page.goto(f"{address}/notebooks/start_here.html")
    expect(html).to_have_attribute("data-theme", "dark")


def test_the_notebooks_can_be_taken_along() -> None:
    with ZipFile(SITE / "notebooks.zip") as archive:
        names = set(archive.namelist())
    for path in chapters():
        assert f"{front_page.FOLDER}/notebooks/{path.name}" in names
    assert {f"{front_page.FOLDER}/{name}" for name in ("Makefile", "pyproject.toml")} < names
    assert not any("__pycache__" in name for name in names)


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that somebody has who takes the notebooks along."""
    folder = tmp_path_factory.mktemp("taken")
    front_page.pack(folder / "notebooks.zip")
    with ZipFile(folder / "notebooks.zip") as archive:
        archive.extractall(folder)
    return folder / front_page.FOLDER


LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
"""A link to a file, in Markdown."""


def test_what_was_taken_along_has_all_that_it_links_to(taken: Path) -> None:
    pages = {taken / "README.md": (taken / "README.md").read_text("utf-8")}
    for path in (taken / one.relative_to(NOTEBOOKS.parent) for one in all_notebooks()):
        cells = nbformat.read(path, 4).cells
        pages[path] = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    links = [(path, link) for path, text in pages.items() for link in LINK.findall(text)]
    assert len(links) > 100
    assert [(path, link) for path, link in links if not (path.parent / link).exists()] == []


def test_what_was_taken_along_runs(taken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(taken))  # this package, and not the one beside it
    place = {"metadata": {"path": taken / "notebooks"}}
    notebook = nbformat.read(taken / "notebooks" / f"{chapters()[0].stem}.ipynb", 4)
    asks = "import llmtrain_helpers; llmtrain_helpers.__file__"
    notebook.cells.append(nbformat.v4.new_code_cell(asks))
    NotebookClient(notebook, timeout=60, resources=place).execute()
    assert str(taken) in notebook.cells[-1].outputs[0]["data"]["text/plain"]


def test_there_is_a_place_for_the_lab() -> None:
    assert (SITE / "index.html").read_text("utf-8").count(lite.PLACE) == 1


def test_each_chapter_has_a_card_that_knows_how_far_one_is(page: Page, address: str) -> None:
    cards = page.locator(".cards a:has(small)")
    assert [card.get_attribute("href") for card in cards.all()] == [
        f"notebooks/{word}.html" for word in CHAPTERS
    ]
    assert " of " not in page.locator(".cards small").all_inner_texts()[3]
    page.evaluate("localStorage.llmtrain = JSON.stringify({done: {'duration-a': true}})")
    page.reload()
    expect(cards.nth(3).locator("small")).to_have_text(
        re.compile(r"03 · \d+ minutes · 1 of \d+ done")
    )
    texts = page.locator(".cards small").all_inner_texts()
    assert sum(" done" in one for one in texts) == 1
    cards.nth(3).click()
    expect(page.locator("article h1")).to_contain_text("03")
    page.locator(".brand").click()
    expect(page).to_have_url(f"{address}/index.html")
    page.locator("#start").click()
    expect(page.locator("article h1")).to_contain_text("03")


def test_what_is_looked_up_is_a_line_and_no_card(page: Page) -> None:
    assert page.locator(".cards li").count() == len(chapters())
    line = page.locator(".lookup")
    assert line.inner_text() == "Look up: Glossary · The helpers · The data"
    for place in line.locator("a").all():
        assert (SITE / place.get_attribute("href")).is_file()


def test_what_was_done_can_be_saved_for_the_class_report_and_forgotten(
    page: Page, address: str, tmp_path: Path
) -> None:
    page.goto(f"{address}/notebooks/start_here.html")
    form = page.locator(".live-form[data-id='start_here-a']")
    form.locator("textarea").fill('answer = 1\ncheck("start_here-a", answer)')
    form.locator("button").first.click()
    form.locator(".live-verdict", has_text="start_here-a").wait_for(timeout=60_000)
    page.goto(f"{address}/index.html")
    page.locator("#years").fill("40")
    page.locator("#years").press("Enter")
    expect(page.locator("#verdict")).to_contain_text("26 years")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save it as a notebook").click()
    saved.value.save_as(tmp_path / "anna.ipynb")
    asked = nbformat.read(tmp_path / "anna.ipynb", 4).cells[0].source
    assert re.fullmatch(r"start_here-a\. .+\n\nstart_here-a, \d{4}-\d\d-\d\d", asked, re.S)
    marks = class_report.read_folder(tmp_path).learners["anna"]
    assert {id: mark.state for id, mark in marks.items()} == {
        "start_here-a": "wrong",
        "start_here-guess": "guessed",
    }
    page.once("dialog", lambda asked: asked.accept())
    page.get_by_role("button", name="Begin again").click()
    page.locator("#mine[hidden]").wait_for(state="attached")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_cut_and_axe_finds_nothing(page: Page, theme: str) -> None:
    page.evaluate("theme => localStorage.mode = theme", theme)
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    page.evaluate(AXE.read_text("utf-8"))
    for width in (320, 390, 768, 1280, 1920):
        height = 844 if width < 600 else 1024 if width < 1000 else 800
        page.set_viewport_size({"width": width, "height": height})
        painted(page)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        moves = (".live-answer > p b", "svg:visible [data-moves]", ".live-number >> nth=0")
        for moved in (*moves, ".live-number >> nth=2") if width > 320 else ():  # in one window
            box = page.locator(f".hero {moved}").first.bounding_box()
            assert box["y"] >= 0, moved
            assert box["y"] + box["height"] <= height, moved
        violations = page.evaluate("axe.run().then(result => result.violations)")
        assert [(one["id"], one["nodes"][0]["html"][:90]) for one in violations] == []
