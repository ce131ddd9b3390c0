"""Each chapter started once: its panel, its guesses and exercises, its saved cells."""

from __future__ import annotations

import re
from statistics import median

import pytest
from driver import AXE, Live, same
from playwright.sync_api import Locator, Page, expect

from llmtrain_course.kit.drawing import at_night


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
    """Held only to ten times as much, for machines are noisy; printed with -n 0."""
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


@pytest.mark.parametrize("width", [390, 800, 1366, 1920])
def test_nothing_of_a_panel_is_cut_off_or_lies_on_something_else(live: Live, width: int) -> None:
    """Its answer has no scroll box of its own, and each field stays in its own place."""
    page = live.page
    page.set_viewport_size({"width": width, "height": 844})
    tall = page.add_style_tag(
        content="#panel svg { height: 600px !important }"
    )  # as high as a narrow one
    boxed = """() => [...document.querySelectorAll("#panel, #panel *")]
        .filter(one => one.clientHeight && one.scrollHeight > one.clientHeight + 4)
        .filter(one => /auto|scroll|hidden/.test(getComputedStyle(one).overflowY))
        .filter(one => !one.matches("textarea, .live-said"))
        .map(one => one.outerHTML.slice(0, 120))"""
    assert page.evaluate(boxed) == []
    beyond = """() => [...document.querySelectorAll("#panel .live-field")]
        .filter(field => field.offsetHeight).flatMap(field => [...field.children]
            .map(one => [one, one.getBoundingClientRect(), field.getBoundingClientRect()])
            .filter(([one, own, all]) => own.right > all.right + 1 || own.height > 120)
            .filter(([one]) => !one.matches("textarea"))
            .map(([one]) => one.outerHTML.slice(0, 120)))"""
    assert page.evaluate(beyond) == []
    tall.evaluate("one => one.remove()")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_slider_that_was_moved_stays_in_sight_of_the_picture_on_a_telephone(live: Live) -> None:
    page = live.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(f"#{live.word}-preset").select_option(index=0)  # not every preset has sliders
    page.wait_for_selector(".live-busy", state="detached")
    sliders = page.locator("#panel .live-controls > .live-field input[type=range]:visible")
    sliders.last.press("Home" if sliders.last.input_value() != "0" else "End")
    page.wait_for_selector(".live-busy", state="detached")
    page.locator("#panel").evaluate("one => one.scrollIntoView()")
    page.wait_for_timeout(200)
    box, answer = sliders.last.bounding_box(), page.locator("#panel .live-answer").bounding_box()
    assert answer["y"] > 0
    assert box["y"] + box["height"] <= 844
    page.get_by_role("button", name="Reset").click()
    page.wait_for_selector(".live-busy", state="detached")
    page.set_viewport_size({"width": 1280, "height": 900})


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


def test_cells_print_here_what_they_printed_when_saved(live: Live) -> None:
    page = live.page
    for form in page.locator(".live-form[data-closed]").all():
        if form.locator("textarea").input_value() in ("progress()", "course_map()"):
            continue  # they say what was answered, in the tests before too
        cell = form.locator("xpath=preceding-sibling::*[1]")
        # a drawing's words are those of its picture
        saved = cell.locator(".cell_output > :not(:has(svg.wt))").all_inner_texts()
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
