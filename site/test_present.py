"""Before a room: one scene a screen."""

from __future__ import annotations

import json

import pytest
from driver import CHAPTERS, painted
from playwright.sync_api import Browser, Page, expect


def present(page: Page, url: str) -> None:
    """Open a page before a room; until its bar stands there, all scenes are still visible."""
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(url)
    expect(page.locator(".scene-bar span")).to_contain_text(" of ")


def turn_on(page: Page) -> None:
    """The next scene; on the way to it a first press may show the line to carry away."""
    place = page.locator(".scene-bar span").inner_text()
    page.keyboard.press("ArrowRight")
    if page.locator(".scene-bar span").inner_text() == place:
        page.keyboard.press("ArrowRight")


def test_a_projector_gets_one_scene_a_screen(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{address}/notebooks/communication.html?present")
    scenes = page.locator(".scene")
    expect(page.locator(".scene-bar span")).to_contain_text("1 of ")
    expect(page.locator(".scene-bar span")).to_have_text(f"1 of {scenes.count()}")
    assert not page.locator("article .sign").is_visible()
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
    fourth = scenes.nth(3)
    line = fourth.locator(".scene-line").first
    assert line.is_visible()  # once it was shown, it stays
    page.reload()  # it stays where it was
    expect(page.locator(".scene-bar span")).to_have_text(f"4 of {scenes.count()}")
    fourth.locator("input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")  # the slider's own
    expect(page.locator(".scene-bar span")).to_have_text(f"4 of {scenes.count()}")
    assert page.url.endswith("?present#" + fourth.get_attribute("id"))
    page.close()


EDGE = """() => Math.round(document.querySelector(".scene:not([hidden])")
    .getBoundingClientRect().bottom + scrollY)"""
"""Where the scene ends that is shown."""


@pytest.mark.parametrize("number", [0, 7, 8, 9, 13])
def test_no_screen_runs_under_the_edge_of_a_projector(
    browser: Browser, address: str, number: int
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{address}/notebooks/{CHAPTERS[number]}.html?present")
    place = page.locator(".scene-bar span")
    expect(place).to_contain_text("1 of ")
    count = page.locator(".scene").count()
    for turn in range(1, count + 1):
        expect(place).to_have_text(f"{turn} of {count}")
        assert page.evaluate(EDGE) <= 720, page.url
        assert page.locator(".scene:visible").inner_text().count("\n"), page.url  # not empty
        turn_on(page)
    page.close()


def test_a_panel_before_a_room_stands_beside_its_controls(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{address}/notebooks/plan.html?present#your-own-plan")
    page.get_by_role("button", name="Start the panel").click()
    picture = page.locator(".live-on:visible svg.wt:visible").first
    picture.wait_for(timeout=60_000)
    painted(page)  # until it is fitted
    assert page.evaluate(EDGE) <= 720
    assert picture.bounding_box()["height"] > 0.3 * 720
    assert picture.bounding_box()["x"] > 300  # the controls are on its left
    place = page.locator(".scene-bar span").inner_text()
    turn_on(page)  # the arrows are not the panel's
    expect(page.locator(".scene-bar span")).not_to_have_text(place)
    page.close()


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


def test_a_picture_that_needs_the_room_keeps_its_question(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/plan.html?present#two-answers")
    expect(page.locator(".scene:visible > .scene-ask")).to_have_text("Do more GPUs help them?")
    expect(page.get_by_text("The picture shows the plan for the 8B")).not_to_be_visible()


def test_a_picture_that_code_draws_is_shown_without_its_code(page: Page, address: str) -> None:
    present(page, f"{address}/notebooks/budget.html?present")
    picture = page.locator(".scene > .live-source svg.wt").first
    for _ in range(page.locator(".scene").count()):
        if picture.is_visible():
            break
        turn_on(page)
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
    page.keyboard.press("PageUp")
    expect(place).not_to_have_text(scene)
