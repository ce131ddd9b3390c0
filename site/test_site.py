"""The site in a browser: pages, panels, exercises, links; nothing asks another host.

make site-test
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlencode

import light
import marks
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Error, Locator, Page, expect

from llmtrain_helpers.drawings.common import at_night
from llmtrain_helpers.panels import HANDLES, PANELS
from llmtrain_helpers.panels.parameters import PASTED
from llmtrain_helpers.panels.state import State

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
AXE = ROOT / "site" / "node_modules" / "axe-core" / "axe.min.js"
CHAPTERS = sorted(path.stem for path in (SITE / "notebooks").glob("[0-9]*.html"))
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))

MOST_FETCHED = 350_000
"""Bytes that a chapter's first load may fetch."""

expect.set_options(timeout=20_000)

every_chapter = pytest.mark.parametrize("name", CHAPTERS)


class Live(NamedTuple):
    """A chapter's page, and the state that its panel should be in."""

    name: str
    page: Page
    state: State

    @property
    def word(self) -> str:
        """The chapter's word."""
        return self.name.partition("_")[2]

    @property
    def slider(self) -> str:
        """The first slider that the panel shows."""
        shown = self.state.panel.shown(self.state.values)
        controls = self.state.panel.controls
        return next(n for n in shown if controls[n].stops and not controls[n].more)


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page that may ask the loopback only; what fails is an error at the end."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield watched(context.new_page(), address)
    context.close()


@pytest.fixture(scope="module", params=CHAPTERS)
def live(request: Any, browser: Browser, address: str) -> Iterator[Live]:
    """A chapter with its panel started, once for all tests of it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = watched(context.new_page(), address)
    start(page, address, request.param)
    yield Live(request.param, page, State(PANELS[request.param.partition("_")[2]]))
    context.close()


def watched(page: Page, address: str) -> Page:
    """Refuse every other host, and note what goes wrong, or against a page's policy."""
    wrong: list[str] = []

    def only_here(route: Any) -> None:
        here = route.request.url.startswith((address, "data:", "blob:"))
        if not here:
            wrong.append(f"asked {route.request.url}")
        (route.continue_ if here else route.abort)()

    page.route("**/*", only_here)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("response", lambda r: r.status >= 400 and wrong.append(r.url))
    page.on("console", lambda told: told.type == "error" and wrong.append(told.text))
    page.wrong = wrong  # type: ignore[attr-defined]
    return page


def start(page: Page, address: str, name: str, search: str = "") -> None:
    """Open a chapter, and start its panel."""
    page.goto(f"{address}/notebooks/{name}.html{search}")
    if not search:
        page.click("#panel .live-start")
    page.wait_for_selector("#panel.live-on .live-answer > *", timeout=60_000)


def same(page: Page, html: str) -> bool:
    """Whether the panel's answer is this HTML, as a browser reads it."""
    compare = """html => {
        const answer = document.createElement("div");
        answer.innerHTML = html;
        const here = document.querySelector("#panel .live-answer").cloneNode(true);
        for (const one of here.querySelectorAll("[tabindex]"))
            one.removeAttribute("tabindex");  // the theme's, where something scrolls
        return answer.innerHTML === here.innerHTML;
    }"""
    return bool(page.evaluate(compare, html))


# --- pages


@pytest.mark.parametrize("width", [1280, 800, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_and_nothing_is_wider_than_the_window(
    browser: Browser, address: str, scheme: Any, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = watched(context.new_page(), address)
    for name in [name for name in PAGES if name != "index.html"]:
        page.goto(f"{address}/{name}")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, name
        if name.startswith("notebooks"):
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.wrong == []  # type: ignore[attr-defined]
    context.close()


def test_the_front_page_leads_to_chapter_00(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="Start reading").click()
    page.wait_for_url("**/notebooks/00_start_here.html")
    assert "what will it take?" in page.inner_text("article h1")


@every_chapter
def test_links_to_the_glossary_lead_to_its_entries_and_say_them(name: str) -> None:
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))["cells"]
    shown = [cell for cell in cells if "notebook-only" not in cell["metadata"].get("tags", [])]
    text = "\n".join("".join(it["source"]) for it in shown if it["cell_type"] == "markdown")
    wanted = re.findall(r'glossary\.ipynb#\S+ "([^"]+)"', text)
    links = read(name).select('article a[href*="glossary.html#"]')
    assert sorted(link["title"] for link in links) == sorted(wanted)  # the goals go to the top
    assert wanted
    headings = {section["id"] for section in read("glossary").select("section[id]")}
    assert {str(link["href"]).partition("#")[2] for link in links} <= headings


def read(name: str) -> BeautifulSoup:
    """A page as it was built."""
    return BeautifulSoup((SITE / "notebooks" / f"{name}.html").read_text("utf-8"), "html.parser")


@pytest.mark.parametrize("name", PAGES)
def test_a_pages_policy_stands_before_all_that_it_governs(name: str) -> None:
    before, policy, after = (SITE / name).read_text("utf-8").partition("Content-Security-Policy")
    assert policy
    assert not re.search("<(script|style|link|img)", before)
    [rules] = re.findall(r'script-src ([^;"]+)', after)
    assert "unsafe" not in rules


@every_chapter
def test_nothing_is_fetched_for_python_before_a_click(page: Page, address: str, name: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/notebooks/{name}.html", wait_until="networkidle")
    assert not [url for url in asked if "pyodide" in url or "course.zip" in url]
    assert page.locator("#panel .live-start").count() == 1


def zipped(response: Any) -> int:
    """Bytes of an answer, as a host sends it: text is compressed."""
    body = response.body()
    return len(body if response.url.endswith((".woff2", ".png")) else gzip.compress(body))


def test_what_is_true_of_notebooks_only_is_left_out() -> None:
    """And stands in a notebook: a sentence that changed there would come back here."""
    told = [path.read_text("utf-8") for path in marks.CHAPTERS.values()]
    pages = [(SITE / "notebooks" / f"{name}.html").read_text("utf-8") for name in CHAPTERS]
    for sentence in marks.OF_NOTEBOOKS:
        assert sum(sentence in one for one in told) == 1
    assert not any("Shift+Enter</strong>" in page for page in pages)
    assert not any("in place of <code" in page for page in pages)


@every_chapter
def test_a_first_load_is_light_and_nothing_moves(page: Page, address: str, name: str) -> None:
    """All that a chapter asks for, and how far the page has shifted meanwhile."""
    fetched: list[Any] = []
    page.on("response", lambda response: fetched.append(response))
    page.goto(f"{address}/notebooks/{name}.html", wait_until="networkidle")
    page.wait_for_timeout(1500)
    assert sum(map(zipped, fetched)) < MOST_FETCHED
    shift = """() => new Promise(done => {
        let sum = 0;
        new PerformanceObserver(list => {
            for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
        }).observe({ type: "layout-shift", buffered: true });
        setTimeout(() => done(sum), 100);
    })"""
    assert page.evaluate(shift) < 0.01


@pytest.mark.parametrize("name", PAGES)
def test_formulas_and_icons_are_set_when_the_site_is_built(name: str) -> None:
    soup = BeautifulSoup((SITE / name).read_text("utf-8"), "html.parser")
    assert not soup.select("script[src*=mathjax], script[src*=fontawesome], .fa-solid")
    glyphs = {path["id"] for path in soup.select("svg.glyphs path")}
    for formula in soup.select(".math"):
        assert [tag.name for tag in formula.find_all(recursive=False)] == ["svg", "math"]
        used = {str(one["xlink:href"])[1:] for one in formula.select("use")}
        assert used
        assert used <= glyphs


@every_chapter
def test_a_drawing_is_as_dark_as_the_page(page: Page, address: str, name: str) -> None:
    """Every colour of every drawing is the day's by day and the night's by night."""
    painted = """theme => {
        document.documentElement.dataset.theme = theme;
        const parts = [...document.querySelectorAll("article svg.wt [fill^='#']")];
        return parts.map(one => [one.getAttribute("fill"), getComputedStyle(one).fill]);
    }"""
    page.goto(f"{address}/notebooks/{name}.html")
    for theme, of in {"dark": at_night, "light": str}.items():
        found = {(color, seen) for color, seen in page.evaluate(painted, theme)}
        assert found
        assert {(color, rgb(of(color))) for color, _ in found} == found


def rgb(color: str) -> str:
    """A colour as a browser says it."""
    return "rgb({}, {}, {})".format(*(int(color[i : i + 2], 16) for i in (1, 3, 5)))


# --- panels


def test_a_panel_is_as_dark_as_the_page(live: Live) -> None:
    """The first coloured shape of its live drawing has the theme's colour."""
    color = """theme => {
        document.documentElement.dataset.theme = theme;
        const shape = document.querySelector("#panel .live-answer svg [fill^='#']");
        return [shape.getAttribute("fill"), getComputedStyle(shape).fill];
    }"""
    for theme, of in {"dark": at_night, "light": str}.items():
        drawn, seen = live.page.evaluate(color, theme)
        wanted = [int(of(drawn)[i : i + 2], 16) for i in (1, 3, 5)]
        assert [*map(int, re.findall(r"\d+", seen))] == wanted


def test_a_panel_answers_as_in_the_notebook(live: Live) -> None:
    _, page, state = live
    assert same(page, state.html)
    name, field = live.slider, page.locator(f"#{live.word}-{live.slider}")
    for _ in range(2):
        move(page, f"#{live.word}-{name} + input")
        control = state.panel.controls[name]
        at = control.nearest_stop(state.values[name])
        state.write(name, control.stops[(at + 1) % len(control.stops)])
        assert same(page, state.html)
    field.fill("a lot")
    field.press("Enter")
    page.wait_for_selector("#panel .live-status p")
    state.write(name, "a lot")
    assert page.inner_text("#panel .live-status").endswith(state.problem)
    assert field.input_value() == "a lot"
    page.get_by_role("button", name="Reset").click()
    page.wait_for_selector("#panel .live-status p", state="detached")
    state.set(**state.panel.default)
    assert same(page, state.html)
    for preset in state.panel.presets:
        page.locator(f"#{live.word}-preset").select_option(preset)
        state.set(**state.panel.presets[preset])
        page.wait_for_selector(".live-busy", state="detached")
        assert same(page, state.html), preset
    assert page.wrong == []  # type: ignore[attr-defined]


def test_axe_finds_nothing_of_our_own(live: Live) -> None:
    live.page.evaluate(AXE.read_text("utf-8"))
    run = """async theme => {
        document.documentElement.dataset.theme = theme;
        const found = await axe.run({include: [["article"]]});
        return found.violations.flatMap(rule => rule.nodes.map(
            node => [rule.id, node.target.join(" "), node.html.slice(0, 120)]));
    }"""
    assert live.page.evaluate(run, "dark") == []
    assert live.page.evaluate(run, "light") == []


def test_a_redraw_takes_less_than_50_ms(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    """Printed; held only to ten times as much, for machines are noisy."""
    live.page.get_by_role("button", name="Reset").click()
    live.state.set(**live.state.panel.default)
    slider = f"#{live.word}-{live.slider} + input"
    times = [move(live.page, slider) for _ in range(10)]
    with capsys.disabled():
        told = f"{median(times):.0f} ms, slowest {max(times):.0f}"
        print(f"\n    {live.word}: a redraw takes {told}", end="")
    assert median(times) < 500


def move(page: Page, slider: str) -> float:
    """Move a slider by a stop; how many ms until the picture is there."""
    script = """async slider => {
        const range = document.querySelector(slider);
        const answer = document.querySelector(slider).closest(".live-panel")
            .querySelector(".live-answer");
        const seen = new Promise(done =>
            new MutationObserver(done).observe(answer, {childList: true}));
        range.value = (Number(range.value) + 1) % (Number(range.max) + 1);
        const begun = performance.now();
        range.dispatchEvent(new Event("input"));
        await seen;
        return performance.now() - begun;
    }"""
    return float(page.evaluate(script, slider))


def test_a_link_carries_the_panel_and_a_wrong_one_is_told(page: Page, address: str) -> None:
    start(page, address, "03_duration", "?tokens=3e12&num_gpus=512")
    state = State(PANELS["duration"])
    state.set(tokens="3e12", num_gpus="512")
    assert same(page, state.html)
    assert page.input_value("#duration-num_gpus") == "512"
    page.fill("#duration-num_gpus", "1024")
    page.press("#duration-num_gpus", "Enter")
    page.wait_for_url("**/*tokens=3000000000000")
    start(page, address, "03_duration", "?num_gpus=<img src=x onerror=alert(1)>&x=1")
    assert "is no number" in page.inner_text("#panel .live-status")
    assert page.locator(".live-panel img[src=x]").count() == 0
    assert same(page, State(PANELS["duration"]).html)


def test_a_link_with_a_file_that_nests_deeply_is_told(page: Page, address: str) -> None:
    link = urlencode({"model": PASTED, "config": "[" * 7000})
    start(page, address, "01_parameters", f"?{link}")
    assert "nest deeper than 100" in page.inner_text("#panel .live-status")
    assert page.wrong == []  # type: ignore[attr-defined]


def test_panels_are_handled_by_keyboard(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/03_duration.html")
    page.focus("#panel .live-start")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel.live-on .live-answer svg", timeout=60_000)
    answer = page.locator("#panel .live-answer p").first
    before = answer.inner_text()
    for _ in range(5):  # Reset, the link, tokens, their slider
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "range":
            break
    page.keyboard.press("ArrowRight")
    expect(answer).not_to_have_text(before, use_inner_text=True)
    expect(page.locator("#panel .live-said")).not_to_be_empty()


# --- handles


def with_handles(page: Page, address: str, *names: str) -> Locator:
    """Open a page that has these handles before its panel, marked as a build marks them."""
    text = (SITE / "notebooks" / "03_duration.html").read_text("utf-8")
    soup = marks.parsed(text)
    for own in soup.select(".live-handle"):
        own.find_parent(class_="cell").decompose()
    for at, name in enumerate(names):
        saved = f'<div class="output text_html">{HANDLES[name].still()}</div>'
        built = marks.parsed(f'<div class="cell"><div class="cell_output">{saved}</div></div>')
        cell = built.div
        marks.mark_cell(cell, at, f'handle("{name}")', True)
        light.draw(built)
        soup.select_one("#panel").find_parent(class_="cell").insert_before(cell)
    page.route("**/handles.html*", lambda route: route.fulfill(body=str(soup), status=200))
    page.goto(f"{address}/notebooks/handles.html")
    return page.locator(".live-handle")


def test_a_handle_moves_at_once_and_without_python(page: Page, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    handles = with_handles(page, address, "ring", "attention_square")
    expect(handles.nth(0).locator("svg:visible")).to_have_count(1)
    handles.nth(0).get_by_label("Turn, slider").press("ArrowRight")
    expect(handles.nth(0).get_by_text("turn 4 of 14")).to_be_visible(timeout=1000)
    handles.nth(1).get_by_label("Causal: no token looks ahead").check()
    expect(handles.nth(1).get_by_text("136 of 256 pairs")).to_be_visible(timeout=1000)
    assert not [url for url in asked if "pyodide" in url]
    assert page.wrong == []  # type: ignore[attr-defined]


def test_each_handle_has_a_state_of_its_own_and_leaves_the_address_alone(
    page: Page, address: str
) -> None:
    one, other = with_handles(page, address, "ring", "ring").all()
    before = one.locator(".live-answer").inner_html()
    other.get_by_label("GPUs, slider").press("ArrowRight")
    expect(other.get_by_text("turn 3 of 30")).to_be_visible()
    assert one.locator(".live-answer").inner_html() == before
    assert other.get_by_label("Turn", exact=True).input_value() == "3"
    expect(other.get_by_label("Turn, slider")).to_have_attribute("max", "30")
    assert page.url == f"{address}/notebooks/handles.html"
    assert page.wrong == []  # type: ignore[attr-defined]


def test_what_no_picture_shows_python_draws_and_goes_on_from_there(
    page: Page, address: str
) -> None:
    [machine] = with_handles(page, address, "machine").all()
    expected = State(HANDLES["machine"])
    for name, written in {"num_gpus": "64", "days": "90", "parameters": "70B"}.items():
        field = machine.locator(f"#handle-0-{name}")
        field.fill(written)
        field.press("Enter")
        expected.write(name, written)
        words = re.sub("<[^>]*>", " ", expected.html).split()
        expect(machine.locator(".live-answer")).to_contain_text(words[-1], timeout=60_000)
        expect(machine).not_to_have_class(re.compile("live-busy"))
        assert machine.locator(".live-answer").inner_html() == as_a_browser(page, expected.html)
    field.fill("a lot")
    field.press("Enter")
    expect(machine.locator(".live-status")).to_contain_text("is no number")
    assert field.input_value() == "a lot"
    machine.get_by_label("GPUs, slider").press("ArrowRight")
    expect(machine.locator("#handle-0-num_gpus")).to_have_value("128")
    assert page.wrong == []  # type: ignore[attr-defined]


def as_a_browser(page: Page, html: str) -> str:
    """HTML as a browser writes it down again."""
    again = """html => {
        const answer = document.createElement("div");
        answer.innerHTML = html;
        return answer.innerHTML;
    }"""
    return str(page.evaluate(again, html))


def test_a_handle_plays_to_its_end_when_told_and_can_be_paused(page: Page, address: str) -> None:
    [ring] = with_handles(page, address, "ring").all()
    page.emulate_media(reduced_motion="reduce")
    turn = ring.get_by_label("Turn", exact=True)
    page.wait_for_timeout(1200)
    assert turn.input_value() == "3"  # it does not move by itself
    play = ring.locator(".live-play")
    play.focus()
    page.keyboard.press("Enter")
    expect(turn).to_have_value("0")  # from the beginning, whatever the picture showed
    page.keyboard.press("Enter")
    expect(play).to_have_text("Play")
    page.wait_for_timeout(500)  # what was on its way
    stopped = turn.input_value()
    page.wait_for_timeout(1200)
    assert int(turn.input_value()) == int(stopped) < 3
    turn.fill("12")
    page.keyboard.press("Enter")
    expect(ring.get_by_text("turn 12 of 14")).to_be_visible()
    play.focus()
    page.keyboard.press("Enter")
    expect(ring.get_by_text("Every GPU has every finished piece.")).to_be_visible()
    expect(play).to_have_text("Play")
    page.keyboard.press("Enter")  # once more, from the start
    expect(turn).to_have_value(re.compile("^[0-5]$"))
    assert page.wrong == []  # type: ignore[attr-defined]


def test_a_hand_on_the_slider_takes_over_from_play(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/10_budget.html")
    live = page.locator('.live-handle[data-word="handle:repeated"]')
    live.get_by_role("button", name="Play").click()
    slider = live.locator("input[type=range]").first
    slider.press("End")
    page.wait_for_timeout(2500)
    expect(live.get_by_role("button", name="Play")).to_be_visible()
    expect(slider).to_have_value(slider.get_attribute("max"))
    assert "Error" not in live.inner_text()


@pytest.mark.parametrize(("width", "where"), [(1920, "beside"), (1366, "above"), (390, "below")])
def test_a_handles_controls_stand_beside_its_picture_where_it_keeps_its_size(
    page: Page, address: str, width: int, where: str
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    [square] = with_handles(page, address, "attention_square").all()
    controls, picture = (
        square.locator(f".live-{part}").bounding_box() for part in ("controls", "picture")
    )
    found = {
        "beside": controls["x"] + controls["width"] <= picture["x"],
        "above": controls["y"] + controls["height"] <= picture["y"],
        "below": picture["y"] < controls["y"] - 100,
    }
    assert [name for name, it_is in found.items() if it_is] == [where]
    before = square.bounding_box()["height"]
    expect(square.get_by_label("Window", exact=True)).not_to_be_visible()
    square.get_by_label("Causal: no token looks ahead").check()
    expect(square.get_by_text("136 of 256 pairs")).to_be_visible()
    expect(square.get_by_label("Window", exact=True)).to_be_visible()
    if width == 1366:  # nothing jumps; on a telephone a sentence may take a line more
        assert square.bounding_box()["height"] == before
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(AXE.read_text("utf-8"))
    run = """async () => (await axe.run({include: [[".live-handle"]]})).violations.flatMap(
        rule => rule.nodes.map(node => [rule.id, node.html.slice(0, 120)]))"""
    assert page.evaluate(run) == []
    assert page.wrong == []  # type: ignore[attr-defined]


# --- guesses and exercises


def test_exercises_and_guesses_are_judged_and_kept(live: Live) -> None:
    page = live.page
    for form in page.locator('.live-form[data-kind="guess"]').all():
        field = form.locator("input").first
        form.locator("button").first.click()
        assert re.fullmatch(
            r"Nothing is (chosen|written) yet\.", form.locator(".live-verdict").inner_text()
        )
        field.check() if field.get_attribute("type") == "radio" else field.fill("2")
        form.locator("button").first.click()
        form.locator(".live-verdict p").wait_for(timeout=60_000)
        assert "→" in form.locator(".live-verdict").inner_text()
    asked = '.live-form:not([data-kind="guess"]):not([data-closed])'
    for form in page.locator(asked).all():
        form.scroll_into_view_if_needed()
        if form.locator("[data-turn]").count() == 0:
            form.locator("button").first.click()
            expected = "yet"  # no answer, or nothing in a line to write
        else:
            form.locator("button").first.click()
            assert form.locator(".live-verdict").inner_text() == "Nothing is chosen yet."
            form.locator("input[type=radio]").last.check()
            form.locator("button").first.click()
            expected = form.get_attribute("data-id") or ""
        form.locator(".live-verdict p").last.wait_for(timeout=60_000)
        assert expected in form.locator(".live-verdict").inner_text()
    told = page.locator(".live-verdict").all_inner_texts()
    page.goto(page.url.partition("?")[0])
    assert page.locator(".live-verdict").all_inner_texts() == told
    assert page.wrong == []  # type: ignore[attr-defined]


def test_a_choice_is_made_by_buttons_asks_again_and_the_last_hint_leads_to_the_answer(
    page: Page, address: str
) -> None:
    page.goto(f"{address}/notebooks/00_start_here.html")

    form = page.locator('.live-form[data-id="00-b"]')
    told = form.locator(".live-verdict")
    assert "“In a day they do 1.94 ZFLOP/s.”" in form.locator("label").nth(1).inner_text()
    form.locator("input[value=A]").check()
    form.get_by_role("button", name="Check").click()
    expect(told).to_contain_text("A second question, in place of the first:", timeout=60_000)
    expect(form.locator("fieldset")).not_to_be_visible()
    page.reload()  # the question that stands is there again
    form.locator("input[type=text]").fill("40.3 EFLOP")
    page.keyboard.press("Enter")
    expect(told).to_contain_text("✓ 00-b", timeout=60_000)
    form.locator("summary").click()
    expect(form.locator("textarea")).to_have_value(re.compile('^answer = "40.3 EFLOP"  # '))
    form.locator("textarea").fill("answer = TP 2")
    form.get_by_role("button", name="Run", exact=True).click()
    expect(told).to_have_text('Line 1: words stand in quotes, answer = "TP 2"')

    form = page.locator('.live-form[data-id="00-a"]')
    hints = set()
    for _ in range(3):
        form.locator("textarea").fill("check('00-a', '25 days')")
        form.locator("button").first.click()
        expect(form.locator(".live-verdict progress")).to_have_count(0)
        hints.add(form.locator(".live-verdict p").inner_text())
    assert len(hints) == 3
    page.locator('[data-id="00-a"] .live-verdict a').click()
    expect(page).to_have_url(f"{address}/notebooks/solutions/00_start_here.html#00-a")
    expect(page.locator('[id="00-a"]')).to_be_in_viewport()
    assert page.wrong == []  # type: ignore[attr-defined]


def test_a_size_of_a_list_is_chosen_by_a_button(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/{CHAPTERS[0]}.html")
    form = page.locator('.live-form[data-id="00-d"]')
    assert form.locator("label:has([type=radio]):visible").count() == 5
    form.get_by_label("8B", exact=True).check()
    form.get_by_role("button", name="Check").click()
    expect(form.locator(".live-verdict")).to_contain_text("00-d: 8B gets", timeout=60_000)


def test_long_options_stand_each_on_its_own_line(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/{CHAPTERS[0]}.html")
    for id, column in (("00-b", True), ("00-d", False)):
        options = page.locator(f'.live-form[data-id="{id}"] label:has([type=radio])').all()
        lefts = {round(one.bounding_box()["x"]) for one in options}
        assert (len(lefts) == 1) == column, id


def test_what_is_stored_comes_back_as_text_and_nonsense_is_left_out(
    page: Page, address: str
) -> None:
    store = """evil => {
        const cells = {};
        for (const form of document.querySelectorAll(".live-form")) {
            const source = form.querySelector("textarea")?.defaultValue;
            cells[form.dataset.id] = {source, written: 7, html: evil, told: evil};
        }
        const tries = "[".repeat(1e5) + "]".repeat(1e5);
        const text = JSON.stringify({cells, done: 3, guesses: {"03-guess": {}}});
        localStorage.setItem("llmtrain", `${text.slice(0, -1)}, "tries": ${tries}}`);
    }"""
    evil = '<img class="evil" src="x" onerror="document.title = 1">'
    page.goto(f"{address}/notebooks/03_duration.html")
    page.evaluate(store, evil)
    start(page, address, "03_duration")
    assert page.locator(".evil").count() == 0
    assert evil in page.locator(".live-verdict").all_inner_texts()
    assert page.wrong == []  # type: ignore[attr-defined]


def test_no_script_of_anybody_elses_runs_in_a_page(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/03_duration.html")
    for put in ("innerHTML = '<img src=x onerror=\"document.title = 1\">'", "append(script)"):
        page.evaluate(
            f"""() => {{
                const script = document.createElement("script");
                script.textContent = "document.title = 1";
                document.querySelector(".live-note").{put};
            }}"""
        )
    page.wait_for_timeout(300)
    assert page.title() != "1"
    told = [one for one in page.wrong if "Content Security Policy" in one]  # type: ignore[attr-defined]
    assert len(told) == 2


def test_cells_print_here_what_they_printed_when_saved(live: Live) -> None:
    page = live.page
    for form in page.locator(".live-form[data-closed]").all():
        if form.locator("textarea").input_value() in ("progress()", "course_map()"):
            continue  # they say what was answered, in the tests before too
        cell = form.locator("xpath=preceding-sibling::*[1]")
        # a drawing's words are those of its picture
        saved = cell.locator(".cell_output:not(:has(svg.wt))").all_inner_texts()
        cell.locator(".live-open").click()
        verdict = form.locator(".live-verdict > :not(button)")
        verdict.first.wait_for(timeout=60_000)
        expect(form.locator(".live-verdict progress")).to_have_count(0, timeout=60_000)
        verdict.first.wait_for()
        shown = form.locator(".live-verdict").inner_text()
        assert shown.split() == " ".join(saved).split()
        assert pictures(form.locator(".live-verdict")) == pictures(cell)
    assert page.wrong == []  # type: ignore[attr-defined]


def pictures(place: Locator) -> list[str | None]:
    """The words of the pictures there, of a drawing's two images once."""
    words = [
        one.get_attribute("alt") or one.get_attribute("aria-label")
        for one in place.locator("img, svg.wt").all()
    ]
    return [*dict.fromkeys(words)]


def test_a_changed_cell_is_what_later_ones_rest_on(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/00_start_here.html")
    for _ in range(2):
        page.locator(".live-open:visible").first.click()  # the next one is the first, then
    first, later = page.locator(".live-form[data-closed]:visible").all()

    def run(form: Locator, source: str) -> None:
        form.locator("textarea").fill(source)
        form.locator("textarea").press("Shift+Enter")

    run(first, "weeks = 6")
    expect(first.locator(".live-verdict")).to_have_text("It ran, and showed nothing.")
    run(later, "weeks * 7")
    expect(later.locator(".live-verdict")).to_have_text("42")
    run(first, "weeks = 7")
    expect(later.locator(".live-verdict")).to_have_text("49")  # it follows by itself


def test_a_cell_that_never_ends_can_be_stopped(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/{CHAPTERS[0]}.html")
    form = page.locator(".live-form:has(textarea):not([data-closed])").first
    form.locator("textarea").fill("while True: pass")
    form.locator("button").first.click()
    form.get_by_role("button", name="Stop it").click(timeout=60_000)
    form.locator("textarea").fill("6 * 7")
    form.locator("button").first.click()
    form.locator(".live-verdict pre").wait_for(timeout=60_000)
    assert form.locator(".live-verdict").inner_text().strip() == "42"


# --- paper


def test_the_sheet_is_two_pages_and_the_course_has_all_chapters() -> None:
    def pages(name: str) -> int:
        return len(re.findall(rb"/Type\s*/Page\b(?!s)", (SITE / name).read_bytes()))

    assert pages("sheet.pdf") == 2
    assert pages("course.pdf") > 100


@every_chapter
def test_paper_has_the_light_drawings_alone(name: str) -> None:
    import book

    article = book.article(SITE / "notebooks" / f"{name}.html")
    assert not article.select(".sign")  # the picture of its card
    drawings = article.select(".wt")
    assert drawings
    for drawing in drawings:
        assert drawing.name == "svg"
        assert not drawing.select("style")


def test_a_visited_page_is_there_without_a_network(browser: Browser, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    url = f"{address}/notebooks/00_start_here.html"
    page.goto(url, wait_until="networkidle")
    page.evaluate("navigator.serviceWorker.ready.then(() => 0)")
    page.locator("#panel .live-start").click()
    page.locator("#panel.live-on").wait_for(timeout=60_000)
    page.wait_for_timeout(1500)  # what came is being kept
    context.set_offline(True)
    page.goto(url)
    last = page.locator(".live-handle").last  # which nobody had looked at
    value = last.locator("input[type=text]").first
    before = value.input_value()
    last.locator("input[type=range]").first.press("ArrowRight")
    expect(value).not_to_have_value(before)
    page.locator("#panel .live-start").click()
    page.locator("#panel.live-on").wait_for(timeout=60_000)
    with pytest.raises(Error, match="ERR_FAILED"):
        page.goto(f"{address}/notebooks/03_duration.html")
    context.close()


def test_a_bar_moves_while_python_comes(page: Page, address: str) -> None:
    """It says how much of the whole is there, and the whole is what comes."""
    page.goto(f"{address}/notebooks/00_start_here.html")
    page.evaluate("""() => {
        window.parts = [];
        document.addEventListener("python", event => window.parts.push(event.detail.part));
    }""")
    page.locator("#panel .live-start").click()
    page.locator("#panel.live-on").wait_for(timeout=60_000)
    parts = page.evaluate("window.parts")
    assert parts == sorted(parts)
    assert parts[0] < 0.1
    assert 0.97 < parts[-1] <= 1
    assert len({*parts}) > 20


def turn_on(page: Page) -> None:
    """The next scene; on the way to it a first press may show the line to carry away."""
    place = page.locator(".scene-bar span").inner_text()
    page.keyboard.press("ArrowRight")
    if page.locator(".scene-bar span").inner_text() == place:
        page.keyboard.press("ArrowRight")


def test_a_projector_gets_one_scene_a_screen(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{address}/notebooks/07_communication.html?present")
    scenes = page.locator(".scene")
    expect(page.locator(".scene-bar span")).to_have_text(f"1 of {scenes.count()}")
    for turn in (1, 2):
        question = page.locator(".scene:visible .live-question")
        assert all(one.is_visible() for one in question.all())
        turn_on(page)
        expect(scenes.nth(turn)).to_be_visible()
        assert [one.is_visible() for one in scenes.all()].count(True) == 1
    for _ in range(scenes.count()):
        page.keyboard.press("ArrowLeft")
    seen = 0
    for scene in scenes.all():
        pictures = [one for one in scene.locator("svg.wt").all() if one.is_visible()]
        if len(pictures) == 1:  # nothing under the edge, and the picture as large as can be
            box = scene.bounding_box()
            assert box["y"] + box["height"] <= 721
            assert pictures[0].bounding_box()["height"] > 0.4 * 720
            seen += 1
        turn_on(page)
    assert seen >= 5
    for _ in range(scenes.count() - 4):
        page.keyboard.press("ArrowLeft")
    shown = scenes.nth(3)
    line = shown.locator(".scene-line").first
    assert line.is_visible()  # once it was shown, it stays
    page.reload()  # it stays where it was
    expect(page.locator(".scene-bar span")).to_have_text(f"4 of {scenes.count()}")
    shown.locator("input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")  # the slider's own
    expect(page.locator(".scene-bar span")).to_have_text(f"4 of {scenes.count()}")
    assert page.url.endswith("?present#" + shown.get_attribute("id"))
    page.close()


EDGE = """() => Math.round(document.querySelector(".scene:not([hidden])")
    .getBoundingClientRect().bottom + scrollY)"""
"""Where the scene ends that is shown."""


@pytest.mark.parametrize("number", [0, 7, 8, 12])
def test_no_screen_runs_under_the_edge_of_a_projector(
    browser: Browser, address: str, number: int
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{address}/notebooks/{CHAPTERS[number]}.html?present")
    place = page.locator(".scene-bar span")
    count = page.locator(".scene").count()
    for turn in range(1, count + 1):
        expect(place).to_have_text(f"{turn} of {count}")
        assert page.evaluate(EDGE) <= 720, page.url
        assert page.locator(".scene:visible").inner_text().count("\n"), page.url  # not empty
        turn_on(page)
    page.close()


def test_a_panel_before_a_room_stands_beside_its_controls(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{address}/notebooks/{CHAPTERS[8]}.html?present#your-own-plan")
    page.get_by_role("button", name="Start the panel").click()
    picture = page.locator(".live-on:visible svg.wt:visible").first
    picture.wait_for(timeout=60_000)
    page.wait_for_timeout(300)  # until it is fitted
    assert page.evaluate(EDGE) <= 720
    assert picture.bounding_box()["height"] > 0.3 * 720
    assert picture.bounding_box()["x"] > 300  # the controls are on its left
    page.close()


def test_a_room_sees_the_question_and_no_earlier_answer(page: Page, address: str) -> None:
    url = f"{address}/notebooks/00_start_here.html"
    form = page.locator('form[data-id="00-guess"]')
    page.goto(url)
    form.locator("input").fill("3")
    page.keyboard.press("Enter")
    page.goto(f"{url}?present")
    expect(page.get_by_text("Meta trained Llama 3.1 8B")).to_be_visible()
    expect(form.locator("input")).to_have_value("")
    expect(form.locator(".live-verdict")).to_be_empty()
    form.locator("input").fill("40")
    page.keyboard.press("Enter")
    expect(form.locator(".live-verdict")).to_contain_text(" you said 40; it is 26 years")
    assert json.loads(page.evaluate("localStorage.llmtrain"))["guesses"] == {"00-guess": "3"}


def test_a_search_finds_first_what_is_called_so(page: Page, address: str) -> None:
    page.goto(f"{address}/search.html?q=all-reduce")
    first = page.locator("ul.search > li").first
    expect(first.locator("a")).to_have_text(re.compile("› all-reduce$"))
    expect(first.locator(".live-found mark")).to_have_count(0)  # its name says it
    second = page.locator("ul.search > li").nth(1)
    expect(second.locator("a")).to_have_attribute("href", re.compile("07_communication"))
    expect(second.locator("mark")).to_have_text(re.compile("^all-reduce$", re.I))
    assert page.locator(".live-found", has_text="import ").count() == 0


@pytest.mark.parametrize("word", ["ring", "machine", "time_line"])
def test_on_a_telephone_picture_and_slider_are_seen_together(
    browser: Browser, address: str, word: str
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    name = next(
        n for n in CHAPTERS if f"handle:{word}" in (SITE / f"notebooks/{n}.html").read_text("utf-8")
    )
    page.goto(f"{address}/notebooks/{name}.html")
    live = page.locator(f'.live-handle[data-word="handle:{word}"]')
    live.locator("input[type=range]").first.press("ArrowRight")
    top = live.locator(".live-answer")
    top.evaluate("one => scrollTo(0, scrollY + one.getBoundingClientRect().top - 70)")
    page.wait_for_timeout(300)
    picture = live.locator(".live-answer svg").first.bounding_box()
    assert picture["x"] >= 0
    assert picture["x"] + picture["width"] <= 390
    assert 0 <= picture["y"] < 250  # below what it says
    for slider in live.locator("input[type=range]").all():
        assert picture["y"] + 150 < slider.bounding_box()["y"] < 844
    live.evaluate("one => scrollTo(0, scrollY + one.getBoundingClientRect().bottom - innerHeight)")
    page.wait_for_timeout(300)
    picture = live.locator(".live-answer svg").first.bounding_box()
    assert picture["y"] + picture["height"] <= live.locator(".live-controls").bounding_box()["y"]
    context.close()


@pytest.mark.parametrize("name", [name for name in PAGES if "/" in name])
def test_a_page_asks_at_once_for_all_that_its_script_is_made_of(name: str) -> None:
    soup = BeautifulSoup((SITE / name).read_text("utf-8"), "html.parser")
    asked = {Path(link["href"]).stem for link in soup.select("link[rel=modulepreload]")}
    imported, found = {"live"}, set[str]()
    while imported - found:
        part = (imported - found).pop()
        found.add(part)
        text = (SITE / "_static" / f"{part}.js").read_text("utf-8")
        imported |= {*re.findall(r'^import .* from "\./(\w+)\.js";$', text, re.M)}
    assert asked == found - {"live"}
