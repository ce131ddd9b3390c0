"""Before a room: one scene a screen."""

from __future__ import annotations

import json
import re

import pytest
from driver import CHAPTERS, painted
from playwright.sync_api import Page, expect


def present(page: Page, url: str) -> None:
    """Open a page before a room; until its bar stands there, all scenes are still visible."""
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(url)
    expect(page.locator(".scene-bar span")).to_contain_text(" of ")


def turn_on(page: Page) -> None:
    """The next scene; presses before it may show a picture's sentence and the line."""
    place = page.locator(".scene-bar span").inner_text()
    while page.locator(".scene-bar span").inner_text() == place:
        page.keyboard.press("ArrowRight")


def test_a_projector_gets_one_scene_a_screen(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/communication.html?present")
    scenes = page.locator(".scene")
    expect(page.locator(".scene-bar span")).to_have_text(f"1 of {scenes.count()}")
    assert not page.locator("article .sign").is_visible()
    for turn in (1, 2):
        question = page.locator(".scene:visible .live-question")
        assert all(one.is_visible() for one in question.all())
        turn_on(page)
        expect(scenes.nth(turn)).to_be_visible()
        assert [one.is_visible() for one in scenes.all()].count(True) == 1
    turn_on(page)
    page.keyboard.press("ArrowLeft")
    third = scenes.nth(2)
    line = third.locator(".scene-line").first
    assert line.is_visible()  # once it was shown, it stays
    page.reload()  # it stays where it was
    expect(page.locator(".scene-bar span")).to_have_text(f"3 of {scenes.count()}")
    third.locator("input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")  # the slider's own
    expect(page.locator(".scene-bar span")).to_have_text(f"3 of {scenes.count()}")
    assert page.url.endswith("?present#" + third.get_attribute("id"))


SCREENS = """() => {
    const [, next] = document.querySelectorAll(".scene-bar button");
    const screens = [];
    for (let end = false; !end; end || next.click()) {
        const [place, last] = document.querySelector(".scene-bar span").textContent.split(" of ");
        const scene = document.querySelector(".scene:not([hidden])");
        end = place === last && !scene.querySelector(".scene-line:not(.scene-told)");
        const shown = (css) => [...scene.querySelectorAll(css)].filter(
            (one) => one.offsetHeight && one.checkVisibility({ visibilityProperty: true }));
        const letters = shown("p, .live-field").map(
            (one) => parseFloat(getComputedStyle(one).fontSize) * one.currentCSSZoom);
        const { scrollHeight, scrollWidth } = document.documentElement;
        const parts = shown(":scope > :not(h1, h2, .scene-ask)").length;
        const size = ({ width, height }) => (width * height) / innerWidth / innerHeight;
        const pictures = [...scene.querySelectorAll(".live-handle svg.wide")].map(
            (one) => size(one.getBoundingClientRect()));
        const least = [letters, pictures].map((all) => Math.min(99, ...all));
        screens.push([scene.id, scrollHeight, scrollWidth, parts, ...least]);
    }
    return screens;
}"""
"""Of each screen where it ends, how many parts it shows, its smallest letters and picture."""


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_screen_fits_a_projector_and_is_read_from_behind(
    page: Page, address: str, chapter: str
) -> None:
    present(page, f"{address}/notebooks/{chapter}.html?present")
    for width, height in ((1280, 720), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("location.hash = ''")
        painted(page)
        screens = page.evaluate(SCREENS)
        assert len(screens) >= page.locator(".scene").count()
        for name, bottom, right, parts, letters, picture in screens:
            assert max(bottom - height, right - width) <= 0, name
            assert parts > 0, name
            assert letters >= width / 80, name
            assert picture > 0.24, name


def test_a_panel_before_a_room_stands_beside_its_controls(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/plan.html?present#panel")  # what stands in a scene
    page.get_by_role("button", name="Start the panel").click()
    picture = page.locator(".live-on:visible svg.wt:visible").first
    picture.wait_for(timeout=60_000)
    painted(page)  # until it is fitted
    assert page.evaluate("document.documentElement.scrollHeight") <= 720
    assert picture.bounding_box()["height"] > 0.3 * 720
    assert picture.bounding_box()["x"] > 300  # the controls are on its left
    place = page.locator(".scene-bar span").inner_text()
    turn_on(page)  # the arrows are not the panel's
    expect(page.locator(".scene-bar span")).not_to_have_text(place)


def test_a_room_sees_the_question_and_no_earlier_answer(page: Page, address: str) -> None:
    url = f"{address}/notebooks/start_here.html"
    form = page.locator('form[data-id="start_here-guess"]')
    page.goto(url)
    form.locator("input").fill("3")
    page.keyboard.press("Enter")
    page.goto(f"{url}?present")
    expect(page.get_by_text("Meta trained Llama 3.1 8B")).to_be_visible()
    expect(form.locator("input")).to_have_value("")
    expect(form.locator(".live-verdict")).to_be_empty()
    form.locator("input").fill("40")
    page.keyboard.press("Enter")
    expect(form.locator(".live-verdict")).to_contain_text("You said 40. It's 26 years")
    assert json.loads(page.evaluate("localStorage.llmtrain"))["guesses"] == {
        "start_here-guess": "3"
    }


def test_what_leads_to_a_picture_stands_above_its_controls(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/plan.html?present#two-answers")
    lead = page.locator(".scene:visible .scene-ask")
    expect(lead).to_have_text(re.compile(r"^[A-Z].*other two models\. Do more GPUs help them\?$"))
    controls = page.locator(".scene:visible .live-controls").bounding_box()
    box = lead.bounding_box()
    assert box["y"] + box["height"] <= controls["y"]
    assert abs(box["x"] - controls["x"]) < 10
    page.goto(f"{address}/notebooks/duration.html?present#what-can-you-promise")
    expect(page.locator(".scene:visible > .scene-ask + .live-question")).to_be_visible()


def test_what_answers_a_question_waits_for_a_press(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/plan.html?present#two-answers")
    sentence = page.locator(".scene:visible .live-answer > p")
    line = page.locator(".scene:visible > .scene-line")
    for waits in (sentence, line):
        expect(waits).to_be_hidden()
        page.keyboard.press("ArrowDown")
        expect(waits).to_be_visible()
    last = page.locator("[data-section=why-do-more-gpus-save-so-little]:has(> .scene-line)").last
    page.evaluate("id => location.hash = id", last.get_attribute("id"))  # without a picture
    expect(line).to_be_hidden()
    page.keyboard.press("Space")
    expect(line).to_be_visible()


def test_words_that_a_picture_needs_have_a_screen_before_it(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/duration.html?present#six-or-eight")
    expect(page.locator(".scene:visible > p")).to_contain_text("the team behind BLOOM")
    turn_on(page)
    expect(page.locator(".scene:visible .scene-ask")).to_contain_text("how many days should")
    expect(page.locator(".scene:visible svg.wt:visible")).to_have_count(1)


def test_after_the_last_scene_comes_the_next_chapter(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/duration.html?present")
    page.keyboard.press("End")
    for _ in range(3):
        page.keyboard.press("PageDown")
    page.wait_for_url("**/batch.html?present*")


def test_a_hand_on_a_picture_gets_its_sentence(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/communication.html?present#fig-sharded_layers")
    sentence = page.locator(".scene:visible .live-answer > p")
    moment = page.get_by_label("Moment", exact=True).and_(page.locator(":visible"))
    expect(moment).to_have_value("0")  # a picture that plays is at its beginning
    expect(sentence).to_be_hidden()
    page.keyboard.press("p")  # plays
    expect(sentence).to_be_visible()
    expect(moment).not_to_have_value("0")


def test_a_picture_that_code_draws_is_shown_without_its_code(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/budget.html?present#twenty-tokens-per-parameter")
    turn_on(page)
    picture = page.locator(".scene:visible > .live-source svg.wt").first
    assert picture.bounding_box()["height"] > 0.3 * 720
    expect(page.locator(".scene:visible > .live-source > .cell_input")).not_to_be_visible()


def test_a_clicker_goes_on_after_a_hand_has_moved_a_slider(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/communication.html?present")
    place = page.locator(".scene-bar span")
    slider = page.locator(".scene:visible input[type=range]").first
    while not slider.is_visible():
        turn_on(page)
    for key in ("ArrowRight", "PageDown"):
        box, scene = slider.bounding_box(), place.inner_text()
        page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2)
        value = slider.input_value()
        expect(page.locator(":focus")).to_have_count(0)  # the keys are free
        page.keyboard.press(key)
        page.keyboard.press(key)  # past the line to carry away
        expect(place).not_to_have_text(scene)
        while place.inner_text() != scene:
            page.keyboard.press("PageUp")
        assert slider.input_value() == value
    slider.focus()  # by keyboard it is the slider's, until Escape or a clicker's own key
    page.keyboard.press("ArrowLeft")
    expect(slider).not_to_have_value(value)
    expect(place).to_have_text(scene)
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    slider.focus()
    for _ in range(2):
        page.keyboard.press("Space")
    expect(place).not_to_have_text(scene)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("End")
    expect(place).to_have_text(re.compile(r"^(\d+) of \1$"))
    page.keyboard.press("Escape")  # of no control: out of the room
    page.wait_for_url(re.compile(r"communication\.html#twenty-of-132$"))


CONTROLS = {
    "on-how-many-gpus-was-that-2": ["[type=range]", "[type=text]", "select"],
    "six-or-eight-3": ["textarea", "[type=reset]"],
    "twice-the-gpus-half-the-days-2": ["[type=radio]", "#inner"],
}


def test_no_control_keeps_a_clicker(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/duration.html?present")
    page.evaluate(
        """() => document.getElementById("twice-the-gpus-half-the-days-2")
            .appendChild(document.createElement("div"))
            .attachShadow({ mode: "open" }).innerHTML = "<input id=inner>" """
    )

    def state() -> tuple[str, int]:
        return page.locator(".scene-bar span").inner_text(), page.locator(".scene-told").count()

    for scene, css in [(name, css) for name in CONTROLS for css in CONTROLS[name]]:
        for key in ("Escape", "PageUp", "PageDown"):
            page.evaluate("scene => location.hash = scene", scene)
            page.locator(f"#{scene}:visible {css}").first.focus()
            before = state()
            if css != "[type=range]":
                page.keyboard.press("Space")  # its own: it opens, writes, chooses or presses
            assert state() == before, css
            page.keyboard.press(key)
            expect(page.locator(":focus")).to_have_count(0)
            assert (state() == before) == (key == "Escape"), (css, key)
