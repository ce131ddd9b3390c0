"""Figures that people link to, embed and paste."""

from __future__ import annotations

import re

import markup
import pytest
from driver import CHAPTERS, SITE, same
from playwright.sync_api import Browser, Page, expect

from llmtrain_course.kit.state import State
from llmtrain_course.panels import HANDLES

RING = "communication.html#fig-ring"


def state(**values: str) -> State:
    """The ring as a link sets it."""
    state = State(HANDLES["ring"])
    for name, value in values.items():
        state.write(name, value)
    return state


def no_python(page: Page) -> None:
    """Fail where the page fetches Python."""
    page.route("**/pyodide/**", lambda route: pytest.fail(route.request.url))


@pytest.mark.parametrize("number", range(len(CHAPTERS)))
def test_each_figure_has_its_number_and_each_handle_its_page(number: int) -> None:
    page = markup.read(SITE / "notebooks" / f"{CHAPTERS[number]}.html")
    captions = page.select(".live-caption")
    numbers = [caption.b.get_text() for caption in captions]
    assert numbers == [f"Figure {number}.{at}" for at in range(1, len(captions) + 1)]
    assert len(captions) >= len(page.select(".live-handle")) >= 3
    for handle in page.select(".live-handle"):
        name = str(handle["data-word"]).removeprefix("handle:")
        caption = handle.find_next_sibling("p", "live-caption").get_text(" ")
        own = markup.read(SITE / "figures" / f"{name}.html")
        assert handle["id"] == f"fig-{name}"
        assert HANDLES[name].title in caption
        assert own.title.get_text() == HANDLES[name].title
        assert own.select_one(".live-caption b").get_text() in numbers
        assert HANDLES[name].title in own.select_one(".live-caption").get_text()
        assert own.select_one(f'.source a[href="../notebooks/{CHAPTERS[number]}.html#fig-{name}"]')
        assert (SITE / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_link_sets_a_figure_and_the_figure_gives_the_link(browser: Browser, address: str) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    no_python(page)
    page.goto(f"{address}/notebooks/{RING}?gpus=64&turn=63&no=1")
    ring = page.locator("#fig-ring")
    expect(ring.locator("input[type=text]").last).to_have_value("63")
    expect(ring).to_be_in_viewport()
    assert same(page, state(gpus="64", turn="63").html, "#fig-ring")
    page.evaluate("location.hash = 'fig-ring?gpus=4'")  # as a link in the page would
    expect(ring.locator("input[type=text]").first).to_have_value("4")
    caption = page.locator("#fig-ring + .live-caption")
    caption.get_by_text("Copy link").click()
    expect(caption.get_by_text("Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(rf"{address}/notebooks/{RING}\?gpus=4(&turn=\d+)?", copied)
    caption.get_by_text("Copy picture").click()
    page.wait_for_function(
        "navigator.clipboard.read().then(([one]) => one.types[0] == 'image/png')"
    )
    context.close()


def test_a_figure_moves_inside_another_page(page: Page, address: str) -> None:
    no_python(page)
    source = f"{address}/figures/ring.html?gpus=64"
    page.set_content(f'<iframe src="{source}" width="700" height="640"></iframe>')
    frame = page.frame_locator("iframe")
    first = frame.locator("input[type=text]").first
    expect(first).to_have_value("64")
    frame.locator("input[type=range]").first.press("ArrowLeft")
    expect(first).to_have_value("16")
    assert frame.locator("body").evaluate("one => one.scrollWidth <= innerWidth")
