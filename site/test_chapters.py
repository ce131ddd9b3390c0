"""Each chapter opened once: how it loads and fits each window, then what its panel,
guesses, exercises and saved cells answer."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import nbformat
import pytest
from driver import AXE, CHAPTERS, DESKTOP, MOVED, judge_here, painted, same, start, watched
from playwright.sync_api import Browser, Locator, Page, expect

from llmtrain_course import cells as in_page
from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit import saved
from llmtrain_course.kit.drawing import at_night
from llmtrain_course.kit.ids import chapter_of, page_of
from llmtrain_course.kit.state import State
from llmtrain_course.panels import PANELS
from teaching import class_report
from tools.notebooks import NOTEBOOKS

MOST_FETCHED = 275_000
"""Bytes that a chapter's first load may fetch."""

FETCHED = """window.parts = [];
document.addEventListener("python", ({ detail }) => parts.push(detail.part));"""
"""Note how much of Python is there."""


class Chapter(NamedTuple):
    """A chapter's page, and what its first load fetched."""

    name: str
    page: Page
    fetched: list[Any]


class Live(NamedTuple):
    """A chapter's page, and the state that its panel should be in."""

    name: str
    page: Page
    state: State

    @property
    def slider(self) -> str:
        """The first slider that the panel shows."""
        visible = self.state.panel.visible_controls(self.state.values)
        controls = self.state.panel.controls
        return next(n for n in visible if controls[n].stops and not controls[n].more)


@pytest.fixture(scope="module", params=CHAPTERS)
def chapter(request: Any, browser: Browser, address: str) -> Iterator[Chapter]:
    """A chapter, opened once for all tests of it."""
    context = browser.new_context(viewport=DESKTOP)
    page = watched(context.new_page(), address)
    page.add_init_script(MOVED)
    page.add_init_script(FETCHED)
    fetched: list[Any] = []
    page.on("response", lambda response: fetched.append(response))
    page.goto(f"{address}/notebooks/{request.param}.html", wait_until="networkidle")
    yield Chapter(request.param, page, [*fetched])
    context.close()


@pytest.fixture(scope="module")
def live(chapter: Chapter) -> Live:
    """The chapter with its panel started."""
    start(chapter.page)
    return Live(chapter.name, chapter.page, State(PANELS[chapter.name]))


# --- before anything is pressed


def test_a_first_load_is_light_moves_nothing_and_has_no_python(chapter: Chapter) -> None:
    page = chapter.page
    assert sum(map(zipped, chapter.fetched)) < MOST_FETCHED
    urls = [response.url for response in chapter.fetched]
    assert not [url for url in urls if "pyodide" in url or "course.zip" in url]
    assert page.locator("#panel .live-start").count() == 1
    page.evaluate("document.fonts.ready")
    painted(page)
    assert page.evaluate("moved") < 0.01


def zipped(response: Any) -> int:
    """Count the bytes of an answer as a host sends it: text is compressed."""
    body = response.body()
    return len(body if response.url.endswith((".woff2", ".png")) else gzip.compress(body))


LAYOUT = """() => {
    const all = place => [...document.querySelectorAll(place)];
    const right = one => one.getBoundingClientRect().right;
    const [sign, title] = [".sign", "h1"].map(one => document.querySelector(`article ${one}`));
    const words = document.createRange();
    words.selectNodeContents(title);
    const { left, top, bottom } = sign.getBoundingClientRect();
    const level = box => box.top < bottom && box.bottom > top;
    const problems = {
        "the page is wider than the window":
            all("html").filter(one => one.scrollWidth > innerWidth),
        "a printed line is cut":
            all(".cell_output pre").filter(one => one.scrollWidth > one.clientWidth + 1),
        "a sentence announces a list that is hidden": all("article p")
            .filter(one => one.offsetHeight && one.textContent.trim().endsWith(":"))
            .filter(one => one.nextElementSibling?.matches("ul, ol"))
            .filter(one => !one.nextElementSibling.offsetHeight),
        "the sign lies on the title":
            [...words.getClientRects()].some(box => level(box) && box.right > left) ? [title] : [],
        "the sign stands beside a cell": all("article :is(.cell, .live-panel, .live-form)")
            .filter(one => one.offsetHeight && level(one.getBoundingClientRect())),
        "a picture has the form for another window":
            all(":is(.live-saved, .live-answer) svg.wt").filter(one => one.checkVisibility())
                .filter(one => one.matches(innerWidth > 600 ? ".narrow" : ".wide")),
    };
    if (innerWidth < 600) Object.assign(problems, {
        "a saved picture leaves the window":
            all(":is(.live-saved, .live-answer) svg.wt").filter(one => one.checkVisibility())
                .filter(one => one.getBoundingClientRect().left < 0),
        "a formula is wider than the telephone":
            all("article div.math > svg").filter(one => right(one) > innerWidth),
        "a picture is wider than the telephone": all("article svg.wt")
            // times of this machine are drawn once, and scroll
            .filter(one => !one.ariaLabel?.startsWith("A step and its prediction. Recorded"))
            .filter(one => [one, ...one.querySelectorAll("text")]
                .some(part => right(part) > innerWidth)),
        "something scrolls and has no shadow that says so": all("article *")
            .filter(one => one.clientWidth > 40 && one.scrollWidth > one.clientWidth + 4)
            .filter(one => getComputedStyle(one).overflowX !== "visible")
            .filter(one => !getComputedStyle(one).backgroundImage.includes("gradient")),
    });
    return Object.entries(problems).flatMap(([problem, places]) =>
        places.map(one => [problem, one.outerHTML.slice(0, 120)]));
}"""


@pytest.mark.parametrize("width", [390, 800, 1366])
def test_nothing_is_cut_off_or_lies_on_something_else(chapter: Chapter, width: int) -> None:
    page = chapter.page
    page.set_viewport_size({"width": width, "height": 844})
    painted(page)
    assert page.evaluate(LAYOUT) == []
    sign = page.locator("article .sign")
    assert 40 < sign.bounding_box()["height"] <= (80 if width == 390 else 150)
    assert sign.get_attribute("aria-hidden") == "true"  # the machine's voice passes it by
    pictures = page.locator(":is(.live-saved, .live-answer) svg.wt:visible")
    assert pictures.count()
    page.set_viewport_size(DESKTOP)


# --- with the panel started


def test_a_bar_says_how_much_of_python_is_there(live: Live) -> None:
    """It moves while Python comes, and the whole is what comes."""
    parts = live.page.evaluate("parts")
    assert parts == sorted(parts)
    assert parts[0] < 0.1
    assert 0.97 < parts[-1] <= 1
    assert len({*parts}) > 20


def test_a_drawing_is_as_dark_as_the_page(live: Live) -> None:
    """Every colour of every drawing is the day's by day and the night's by night."""
    colors = """theme => {
        document.documentElement.dataset.theme = theme;
        const parts = [...document.querySelectorAll("article svg.wt [fill^='#']")];
        return parts.map(one => [one.getAttribute("fill"), getComputedStyle(one).fill]);
    }"""
    assert live.page.locator("#panel .live-answer svg [fill^='#']").count()
    for theme, of in {"dark": at_night, "light": str}.items():
        pairs = {(drawn, seen) for drawn, seen in live.page.evaluate(colors, theme)}
        assert pairs == {(drawn, rgb(of(drawn))) for drawn, _ in pairs}


def rgb(color: str) -> str:
    """A colour as a browser says it."""
    return "rgb({}, {}, {})".format(*(int(color[i : i + 2], 16) for i in (1, 3, 5)))


def test_a_panel_answers_as_in_the_notebook(live: Live) -> None:
    _, page, state = live
    assert same(page, state.html)
    name, field = live.slider, page.locator(f"#{live.name}-{live.slider}")
    for _ in range(2):
        move(page, f"#{live.name}-{name} + input")
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
        page.locator(f"#{live.name}-preset").select_option(preset)
        state.set(**state.panel.presets[preset])
        page.wait_for_selector(".live-busy", state="detached")
        assert same(page, state.html), preset
    assert page.wrong == []


def test_axe_finds_nothing_of_our_own(live: Live) -> None:
    live.page.evaluate(AXE.read_text("utf-8"))
    run = """async ([theme, options]) => {
        document.documentElement.dataset.theme = theme;
        const { violations } = await axe.run({include: [["article"]]}, options);
        return violations.flatMap(rule => rule.nodes.map(
            node => [rule.id, node.target.join(" "), node.html.slice(0, 120)]));
    }"""
    assert live.page.evaluate(run, ["dark", {"runOnly": ["color-contrast"]}]) == []
    assert live.page.evaluate(run, ["light", {}]) == []


def test_a_redraw_takes_less_than_50_ms(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    """The quickest is held to ten times as much, for machines are noisy; printed with -n 0."""
    live.page.get_by_role("button", name="Reset").click()
    live.state.set(**live.state.panel.default)
    slider = f"#{live.name}-{live.slider} + input"
    times = [move(live.page, slider) for _ in range(10)]
    with capsys.disabled():
        summary = f"{median(times):.0f} ms, slowest {max(times):.0f}"
        print(f"\n    {live.name}: a redraw takes {summary}", end="")
    assert min(times) < 500


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


def test_a_panels_answer_never_scrolls_and_its_fields_keep_their_places(live: Live) -> None:
    page = live.page
    tall = page.add_style_tag(
        content="#panel svg { height: 600px !important }"
    )  # as high as a narrow one
    boxed = """() => [...document.querySelectorAll("#panel, #panel *")]
        .filter(one => one.clientHeight && one.scrollHeight > one.clientHeight + 4)
        .filter(one => /auto|scroll|hidden/.test(getComputedStyle(one).overflowY))
        .filter(one => !one.matches("textarea, .live-announcement"))
        .map(one => one.outerHTML.slice(0, 120))"""
    beyond = """() => [...document.querySelectorAll("#panel .live-field")]
        .filter(field => field.offsetHeight).flatMap(field => [...field.children]
            .map(one => [one, one.getBoundingClientRect(), field.getBoundingClientRect()])
            .filter(([one, own, all]) => own.right > all.right + 1 || own.height > 120)
            .filter(([one]) => !one.matches("textarea"))
            .map(([one]) => one.outerHTML.slice(0, 120)))"""
    for width in (390, 800, 1366, 1920):
        page.set_viewport_size({"width": width, "height": 844})
        painted(page)
        assert page.evaluate(boxed) == [], width
        assert page.evaluate(beyond) == [], width
    tall.evaluate("one => one.remove()")
    page.set_viewport_size(DESKTOP)


def test_a_slider_that_was_moved_stays_in_sight_of_the_picture_on_a_telephone(live: Live) -> None:
    page = live.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(f"#{live.name}-preset").select_option(index=0)  # not every preset has sliders
    page.wait_for_selector(".live-busy", state="detached")
    sliders = page.locator("#panel .live-controls > .live-field input[type=range]:visible")
    sliders.last.press("Home" if sliders.last.input_value() != "0" else "End")
    page.wait_for_selector(".live-busy", state="detached")
    page.locator("#panel").evaluate("one => one.scrollIntoView({ behavior: 'instant' })")
    painted(page)
    box, answer = sliders.last.bounding_box(), page.locator("#panel .live-answer").bounding_box()
    assert answer["y"] > 0
    assert box["y"] + box["height"] <= 844
    page.get_by_role("button", name="Reset").click()
    page.wait_for_selector(".live-busy", state="detached")
    page.set_viewport_size(DESKTOP)


def test_exercises_and_guesses_are_judged(live: Live) -> None:
    page = live.page
    for form in page.locator('.live-form[data-kind="guess"]').all():
        field = form.locator("input").first
        form.locator("button").first.click()
        verdict = form.locator(".live-verdict").inner_text()
        assert re.fullmatch(r"You haven't (chosen|written) anything yet\.", verdict)
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
            assert form.locator(".live-verdict").inner_text() == "You haven't chosen anything yet."
            form.locator("input[type=radio]").last.check()
            form.locator("button").first.click()
            expected = form.get_attribute("data-id") or ""
        form.locator(".live-verdict p").last.wait_for(timeout=60_000)
        assert expected in form.locator(".live-verdict").inner_text()
    assert page.wrong == []


def test_cells_print_here_what_they_printed_when_saved(live: Live) -> None:
    page = live.page
    for form in page.locator(".live-form[data-closed]").all():
        if form.locator("textarea").input_value() in ("progress()", "course_map()"):
            continue  # they say what was answered
        cell = form.locator("xpath=preceding-sibling::*[1]")
        # a drawing's words are those of its picture
        saved = cell.locator(".cell_output > :not(:has(svg.wt))").all_inner_texts()
        cell.locator(".live-open").click()
        verdict = form.locator(".live-verdict > :not(button):visible")
        verdict.first.wait_for(timeout=60_000)
        expect(form.locator(".live-verdict progress")).to_have_count(0)
        verdict.first.wait_for()
        assert form.locator(".live-verdict").evaluate(WITHOUT_DRAWINGS) == " ".join(saved).split()
        assert pictures(form.locator(".live-verdict")) == pictures(cell)
    assert page.wrong == []


WITHOUT_DRAWINGS = """answer => {
    const hidden = [...answer.querySelectorAll("svg.wt")].map(one => [one, one.style.display]);
    for (const [one] of hidden) one.style.display = "none";
    const words = answer.innerText.split(/\\s+/).filter(word => word);
    for (const [one, display] of hidden) one.style.display = display;
    return words;
}"""
"""The words of an answer, without those of its drawings: they are their pictures'."""


def pictures(place: Locator) -> list[str | None]:
    """The words of the pictures there, of a drawing's two images once."""
    words = [
        one.get_attribute("alt") or one.get_attribute("aria-label")
        for one in place.locator("img, svg.wt").all()
    ]
    return [*dict.fromkeys(words)]


ANSWERED = """() => {
    const forms = [...document.querySelectorAll(".live-form:not([data-closed])")];
    const reply = (form) => {
        const verdict = form.querySelector(".live-verdict");
        const next = verdict.querySelector(".asked"); // the form itself asks it
        return verdict.innerText.replace(next?.innerText ?? "", "").trim();
    };
    const turns = (form) => [...form.querySelectorAll("[data-turn]")].filter((one) => !one.hidden);
    return [forms.map(reply), forms.map((form) => turns(form).length)];
}"""
"""What each form replies, and how many questions it asks."""


def test_what_was_answered_is_there_after_a_reload(live: Live) -> None:
    before, questions = live.page.evaluate(ANSWERED)
    assert all(before)
    live.page.goto(live.page.url.partition("?")[0])
    assert live.page.evaluate(ANSWERED) == [before, questions]


def test_all_that_is_entered_on_a_page_gets_into_the_saved_notebook(
    chapter: Chapter, address: str, tmp_path: Path
) -> None:
    page, name = chapter.page, chapter.name
    page.evaluate("localStorage.clear()")
    page.goto(f"{address}/notebooks/{chapter.name}.html")
    judge_here(page)
    lines, right = {}, answers(chapter.name)
    ids = [id for id in [*PREDICTIONS, *EXERCISES] if chapter_of(id) == name]
    for id in ids:
        form = page.locator(f'.live-form[data-id="{id}"]')
        options = form.locator("input[type=radio]:visible")
        if options.count():
            options.last.check()
        elif id in PREDICTIONS:
            form.locator("input").fill("7")
        else:
            form.locator("textarea").fill(right[id])
        form.locator("button").first.click()
        verdict = form.locator(".live-verdict")
        expect(verdict).to_have_text(re.compile("[✓✗→] "))
        [line] = re.findall("^[✓✗→] .*", verdict.inner_text(), re.MULTILINE)
        lines[id] = line.replace(f" {id}:", "")
    page.goto(f"{address}/index.html")
    with page.expect_download() as notebook:
        page.get_by_role("button", name="Save it as a notebook").click()
    notebook.value.save_as(tmp_path / "anna.ipynb")
    marks = class_report.read_folder(tmp_path).learners["anna"]
    signs = {"passed": "✓", "wrong": "✗", "guessed": "→"}
    signs_of = {id: "→" if lines[id][0] == "→" else signs[marks[id].state] for id in marks}
    assert {id: f"{signs_of[id]} {mark.text}" for id, mark in marks.items()} == {
        id: class_report.plain(text)[: class_report.LONGEST] for id, text in lines.items()
    }
    done = saved.answered_in((tmp_path / "anna.ipynb").read_text("utf-8"), name)
    assert done == {id for id, text in lines.items() if text[0] != "✗"}
    assert {*PREDICTIONS} & {*ids} <= done


def answers(name: str) -> dict[str, str]:
    """The cells of a chapter's solution by their exercises, each with what it needs."""
    cells = nbformat.read(NOTEBOOKS / "solutions" / f"{page_of(name)}.ipynb", 4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    return {
        match[1]: f"{in_page.needed(sources[:at], source)}\n{source}"
        for at, source in enumerate(sources)
        if (match := re.search(r'^check\("([\w-]+)"', source, re.MULTILINE))
    }
