"""The pictures of the handles that the build draws, held against the handles themselves.

make site-test
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pictures
import pytest
from playwright.sync_api import Page

from llmtrain_course.kit.state import State
from llmtrain_course.page import shown
from llmtrain_course.panels import HANDLES

BEYOND = """htmls => {
    const box = document.querySelector("article").appendChild(document.createElement("div"));
    box.style.width = "900px";
    return htmls.flatMap(html => {
        box.innerHTML = html;
        const { left, right, top, bottom } = box.querySelector("svg").getBoundingClientRect();
        return [...box.querySelectorAll("svg text")]
            .map(text => [text.textContent, text.getBoundingClientRect()])
            .filter(([, one]) => one.left < left - 1 || one.right > right + 1
                || one.top < top - 4 || one.bottom > bottom + 4)
            .map(([words]) => words);
    });
}"""
"""Words that stand beyond the edge of their picture."""

FOLDER = Path(__file__).parents[1] / "build" / "site" / pictures.FOLDER


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", HANDLES)
def test_a_drawn_picture_is_what_the_handle_shows(name: str, narrow: bool) -> None:
    """Some of them, in an order that a hand would not choose."""
    file = FOLDER / f"{name}{'-narrow' * narrow}.json"
    drawn = json.loads(file.read_text("utf-8"))
    handle = HANDLES[name].on_telephone if narrow else HANDLES[name]
    all_settings = dict(pictures.settings(handle))
    assert [*drawn["pictures"]] == [",".join(map(str, places)) for places in all_settings]
    state = State(handle)
    for places in Random(name).sample([*all_settings], min(8, len(all_settings))):
        state.values.update(all_settings[places])
        state.refresh()
        told = shown(state)
        found = [drawn["pieces"][at] for at in drawn["pictures"][",".join(map(str, places))]]
        fields, html = found[: len(places)], "".join(found[len(places) :])
        assert html == told["html"]
        assert [json.loads(field) for field in fields] == [*told["fields"].values()]


def test_every_word_stands_inside_its_picture(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/plan.html")
    page.evaluate("document.fonts.ready")
    beyond = {}
    for file in sorted(FOLDER.glob("*.json")):
        drawn = json.loads(file.read_text("utf-8"))
        controls = len(HANDLES[file.stem.removesuffix("-narrow")].controls)
        some = [*drawn["pictures"].values()][:: max(len(drawn["pictures"]) // 25, 1)]
        htmls = ["".join(drawn["pieces"][at] for at in found[controls:]) for found in some]
        beyond[file.stem] = page.evaluate(BEYOND, htmls)
    assert {name: words for name, words in beyond.items() if words} == {}


@pytest.mark.parametrize("name", HANDLES)
def test_a_page_knows_how_a_handle_begins_and_what_its_stops_are_called(name: str) -> None:
    handle = HANDLES[name]
    begun = json.loads(pictures.begun(handle))
    for control, texts in begun["stops"].items():
        assert begun["fields"][control]["text"] in texts
        read = [handle.controls[control].read(text) for text in texts]
        assert read == [*pictures.stops(handle.controls[control])]


def test_of_a_handle_with_very_many_settings_those_are_drawn_that_two_hands_reach() -> None:
    machine = HANDLES["machine"]
    assert pictures.number(machine) > pictures.MOST
    assert not json.loads(pictures.begun(machine))["all"]
    for _, values in pictures.settings(machine):
        assert sum(values[name] != machine.default[name] for name in values) <= 2
