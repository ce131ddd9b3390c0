"""The front page in a browser: its numbers are the package's, and it needs no Python.

make site-test
"""

from __future__ import annotations

import gzip
import json
import re
from math import log10
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import fonts
import front_page
import lite
import nbformat
import pytest
from driver import AXE, SITE, middle, painted
from nbclient import NotebookClient
from playwright.sync_api import Browser, Page, expect

from llmtrain_course.exercises import PREDICTIONS
from llmtrain_course.kit.ids import CHAPTERS
from llmtrain_course.start_here.handles import Setting
from llmtrain_helpers import published, units
from teaching import class_report
from tools.notebooks import NOTEBOOKS, all_notebooks, chapters

MOST_INLINE, MOST_FACES = 80_000, 40_000
"""Bytes of the page itself, gzipped, and of its typefaces."""

SLIDES = front_page.slides(Setting())
MOVES = [(0, 0, 0), (3, 8, 9), (3, 8, 20), (10, 4, 13), (16, 14, 0), (14, 10, 17), (16, 14, 20)]
"""Places of the three sliders: the ends, the start, and some between."""

USUAL = [(3, 8, 2), (3, 8, 5), (3, 8, 8)]
"""Small, middling and large models at the start's GPUs and days."""


@pytest.fixture
def page(browser: Browser, address: str) -> Any:
    """The front page, its picture at rest; what it asks for is kept in `page.asked`."""
    page = browser.new_page(viewport={"width": 1366, "height": 768}, reduced_motion="reduce")
    page.asked = []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(f"{address}/index.html")
    page.evaluate("document.fonts.ready")
    yield page
    page.close()


def put(page: Page, places: tuple[int, int, int]) -> Setting:
    """Move the sliders, and say what stands there."""
    for name, place in zip(SLIDES, places, strict=True):
        page.locator(f"#{name}").fill(str(place))
    gpus, days, size = (s.stops[p] for s, p in zip(SLIDES.values(), places, strict=True))
    return Setting(int(gpus), days, int(size))


def test_its_script_writes_what_the_package_counts(page: Page) -> None:
    runs = published.rows("tokens_per_parameter")
    for places in MOVES:
        setting = put(page, places)
        assert page.inner_text("#tokens") == f"{units.count(setting.tokens, 2)} tokens"
        work = 6 * setting.parameters * setting.tokens
        inside = sum(6 * run["active_parameters"] * run["tokens"] <= work for run in runs)
        assert page.inner_text("#inside") == str(inside)
        assert page.locator(".run.in").count() == inside
        for name, place in zip(SLIDES, places, strict=True):
            assert page.inner_text(f"#{name}-value") == SLIDES[name].labels[place]


def test_the_line_lies_where_its_tokens_are(page: Page) -> None:
    """At the model's size the dot lies on the line, and each ten times fewer tokens as deep."""
    setting = put(page, (8, 5, 4))
    line = page.locator("#line")
    y1, y2 = (float(line.get_attribute(name)) for name in ("y1", "y2"))
    left, right = front_page.ACROSS
    part = log10(setting.parameters / left) / log10(right / left)
    height = 100 - (y1 + part * (y2 - y1))
    assert height == pytest.approx(20 * log10(setting.tokens / 1e9), abs=0.01)
    style = page.locator("#you").get_attribute("style")
    assert float(re.search(r"bottom: ([\d.]+)%", style)[1]) == pytest.approx(height, abs=0.01)


def test_it_stands_before_its_script_as_it_does_after(browser: Browser, address: str) -> None:
    still = browser.new_context(java_script_enabled=False).new_page()
    live = browser.new_page(reduced_motion="reduce")
    for page in (still, live):
        page.goto(f"{address}/index.html")
    for place in ("#tokens", "#inside", "#gpus-value", "#days-value", "#size-value"):
        assert still.locator(place).inner_text() == live.locator(place).inner_text()
    assert still.locator(".run.in").count() == live.locator(".run.in").count()
    still.context.close()
    live.close()


def test_it_is_small_and_asks_for_its_typefaces_and_mark_alone(page: Page, address: str) -> None:
    page.wait_for_load_state("networkidle")
    names = {url.removeprefix(address).lstrip("/") for url in page.asked}
    faces = {f"_static/{name}.woff2" for name in fonts.FIRST}
    assert names == {"index.html", "_static/mark.svg"} | faces
    assert len(gzip.compress((SITE / "index.html").read_bytes())) < MOST_INLINE
    assert sum((SITE / name).stat().st_size for name in faces) < MOST_FACES


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


def test_a_guess_names_the_model_it_asks_about_and_moves_no_slider(page: Page) -> None:
    here = put(page, (6, 0, 0))
    page.locator("#years").fill("3")
    page.keyboard.press("Enter")
    expect(page.locator("#name")).to_contain_text("Llama 3.1 8B: 8.03 billion parameters")
    expect(page.locator("#tokens")).to_have_text(f"{units.count(here.tokens, 2)} tokens")


def test_the_line_rises_once_and_a_hand_stops_it(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # however slow the machine, it stands until the first look
    page.goto(f"{address}/index.html")
    tokens, line = page.locator("#tokens"), page.locator("#line")
    first = float(line.get_attribute("y1"))
    page.clock.run_for(3000)
    expect(tokens).to_have_text(f"{units.count(Setting().tokens, 2)} tokens")
    assert float(line.get_attribute("y1")) < first - 10  # it came from below
    page.reload()
    page.clock.run_for(100)
    here = put(page, (16, 14, 0))
    page.clock.run_for(3000)
    expect(tokens).to_have_text(f"{units.count(here.tokens, 2)} tokens")
    page.close()


def test_a_guess_is_answered_by_bars_to_one_scale(page: Page) -> None:
    bars = page.locator("#bars")
    assert "26" not in bars.text_content()  # nothing gives it away
    page.locator("#years").fill("3")
    page.keyboard.press("Enter")
    expect(bars.locator("rect")).to_have_count(3)
    widths = "all => all.map(one => one.getBoundingClientRect().width)"  # they may be drawn anew
    for width in (390, 1366):
        page.set_viewport_size({"width": width, "height": 844})
        painted(page)
        days, guess, truth = bars.locator("rect").evaluate_all(widths)
        assert guess / truth == pytest.approx(3 / 26, rel=0.01)
        assert days < 3
        form = page.locator(".guess form").bounding_box()
        assert (bars.bounding_box()["x"] > form["x"] + 300) == (width > 860)
    description = "What you have: 30 days. Your guess: 3 years. What it takes: 26 years."
    assert bars.get_attribute("aria-label").startswith(description)


def test_the_bar_of_a_guess_that_is_much_too_long_is_cut(page: Page) -> None:
    page.locator("#years").fill("4000")
    page.keyboard.press("Enter")
    expect(page.locator("#scale")).to_contain_text("cut")
    assert page.locator("#bars .cut").count() == 1


def test_the_dot_can_be_dragged_and_the_sliders_keep_step(page: Page) -> None:
    x, y = middle(page.locator("#you"))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 100, y - 40, steps=4)
    page.mouse.up()
    page.mouse.move(x, y)  # let go: it stays
    places = [int(page.locator(f"#{name}").input_value()) for name in SLIDES]
    was = [slide.place for slide in SLIDES.values()]
    assert places[0] > was[0]  # more GPUs
    assert places[1] == was[1]  # as many days
    assert places[2] > was[2]  # a larger model
    setting = put(page, tuple(places))
    assert page.inner_text("#tokens") == f"{units.count(setting.tokens, 2)} tokens"
    now = middle(page.locator("#you"))
    assert now[0] == pytest.approx(x + 100, abs=25)
    assert now[1] == pytest.approx(y - 40, abs=25)


def test_every_ring_says_its_name_to_pointer_and_keys(page: Page) -> None:
    rings, name = page.locator(".run"), page.locator("#name")
    labels = [one.get_attribute("aria-label") for one in rings.all()]
    assert len(set(labels)) == len(labels) == len(front_page.runs())
    for place in (0, 19, 34, 57):
        page.mouse.move(*middle(rings.nth(place)))
        assert name.inner_text().split("\n")[0] == labels[place]
    page.mouse.move(5, 5)
    assert not name.is_visible()
    page.locator('.run[tabindex="0"]').focus()
    seen = [name.inner_text()]
    for _ in labels:
        page.keyboard.press("ArrowRight")
        seen.append(name.inner_text())
    assert seen[-1].startswith("PaLM 540B")  # the largest
    for _ in labels:
        page.keyboard.press("ArrowLeft")
        seen.append(name.inner_text())
    assert set(seen) == set(labels)


@pytest.fixture
def telephone(browser: Browser, address: str) -> Any:
    """The front page on a telephone."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"{address}/index.html")
    page.evaluate("document.fonts.ready")
    yield page
    context.close()


def test_a_finger_gets_the_nearest_ring_and_those_about_it(telephone: Page) -> None:
    labels = [one.get_attribute("aria-label") for one in telephone.locator(".run").all()]
    place = next(i for i, one in enumerate(labels) if one.startswith("Chinchilla"))
    x, y = middle(telephone.locator(".run").nth(place))
    name = telephone.locator("#name")
    for _ in range(2):  # the second tap does not take the names away
        telephone.touchscreen.tap(x, y)
        expect(name.locator("b")).to_have_text(labels[place])
        expect(name).to_contain_text("LLM360 K2")
        painted(telephone)
    lines = name.inner_text().split("\n")
    seen = telephone.evaluate(BOXES)["rings"]
    near = [one for one in seen if (one[0] + 6 - x) ** 2 + (one[1] + 6 - y) ** 2 < 22**2]
    assert len(lines) == len(near)
    telephone.touchscreen.tap(x, y + 130)
    expect(name).to_be_hidden()


def test_a_telephone_has_room_for_five_names(telephone: Page) -> None:
    assert telephone.locator(".run span.seen").count() == 5


BOXES = """() => {
    const box = one => { const { left, right, top, bottom } = one.getBoundingClientRect();
        return [left, top, right, bottom]; };
    const line = document.getElementById("line"), plane = box(document.querySelector(".plane svg"));
    return { rings: [...document.querySelectorAll(".run")].map(box), plane,
        names: [...document.querySelectorAll(".run span.seen")].map(box),
        you: box(document.querySelector("#you span")), dot: box(document.getElementById("you"))[0],
        line: ["y1", "y2"].map(end => Number(line.getAttribute(end))) };
}"""


@pytest.mark.parametrize("width", [390, 800, 1366, 1920])
def test_no_name_lies_on_a_ring_the_line_or_another(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    for places in [*MOVES, *USUAL]:
        put(page, places)
        painted(page)
        seen = page.evaluate(BOXES)
        left, top, right, bottom = seen["plane"]
        for i, name in enumerate(seen["names"]):
            for other in [*seen["rings"], *seen["names"][:i], seen["you"]]:
                assert apart(name, other), places
            sides = []
            for x in (name[0], name[2]):
                part = (x - left) / (right - left)
                below = seen["line"][0] * (1 - part) + seen["line"][1] * part
                sides.append(top + (bottom - top) / 100 * below)
            assert max(sides) <= name[1] + 4 or min(sides) >= name[3] - 4, places
        assert seen["dot"] > left, places  # inside the frame
        if places in USUAL:  # elsewhere there may be no room
            assert all(apart(seen["you"], ring) for ring in seen["rings"]), places


def apart(one: list[float], other: list[float]) -> bool:
    """Tell whether two boxes have no pixel in common, but for their edges."""
    left, top, right, bottom = one
    aside = right <= other[0] + 1 or other[2] <= left + 1
    return aside or bottom <= other[1] + 1 or other[3] <= top + 1


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
    for width in (390, 768, 1280, 1920):
        height = 844 if width < 600 else 800
        page.set_viewport_size({"width": width, "height": height})
        painted(page)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for moved in ("#tokens", "#you", "#gpus", "#size"):  # all in one window
            box = page.locator(moved).bounding_box()
            assert box["y"] >= 0, moved
            assert box["y"] + box["height"] <= height, moved
        violations = page.evaluate("axe.run().then(result => result.violations)")
        assert [(one["id"], one["nodes"][0]["html"][:90]) for one in violations] == []
