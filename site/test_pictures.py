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
from llmtrain_course.page import view
from llmtrain_course.panels import HANDLES

BEYOND = """htmls => {
    const box = document.querySelector("article").appendChild(document.createElement("div"));
    box.style.width = "900px";
    box.innerHTML = htmls.map(html => `<div>${html}</div>`).join("");
    const beyond = [...box.children].flatMap(one => {
        const { left, right, top, bottom } = one.querySelector("svg").getBoundingClientRect();
        return [...one.querySelectorAll("svg text")]
            .map(text => [text.textContent, text.getBoundingClientRect()])
            .filter(([, one]) => one.left < left - 1 || one.right > right + 1
                || one.top < top - 4 || one.bottom > bottom + 4)
            .map(([words]) => words);
    });
    box.remove();
    return beyond;
}"""
"""Words that stand beyond the edge of their picture."""

FOLDER = Path(__file__).parents[1] / "build" / "site" / pictures.FOLDER


@pytest.mark.parametrize("name", HANDLES)
def test_a_drawn_picture_is_what_the_handle_shows(name: str) -> None:
    """Some of them, in an order that a hand would not choose."""
    for file, handle in ((name, HANDLES[name]), (f"{name}-narrow", HANDLES[name].on_telephone)):
        drawn = json.loads((FOLDER / f"{file}.json").read_text("utf-8"))
        settings = dict(pictures.settings(handle))
        assert [*drawn["pictures"]] == [",".join(map(str, places)) for places in settings]
        state = State(handle)
        for places in Random(name).sample([*settings], min(8, len(settings))):
            state.values.update(settings[places])
            state.refresh()
            content = view(state)
            parts = [drawn["pieces"][at] for at in drawn["pictures"][",".join(map(str, places))]]
            fields, html = parts[: len(places)], "".join(parts[len(places) :])
            assert html == content["html"]
            assert [json.loads(field) for field in fields] == [*content["fields"].values()]


def test_every_word_stands_inside_its_picture(page: Page, address: str) -> None:
    page.goto(f"{address}/notebooks/plan.html")
    page.evaluate("document.fonts.ready")
    beyond = {}
    for file in sorted(FOLDER.glob("*.json")):
        drawn = json.loads(file.read_text("utf-8"))
        controls = len(HANDLES[file.stem.removesuffix("-narrow")].controls)
        some = [*drawn["pictures"].values()][:: max(len(drawn["pictures"]) // 25, 1)]
        htmls = ["".join(drawn["pieces"][at] for at in parts[controls:]) for parts in some]
        beyond[file.stem] = page.evaluate(BEYOND, htmls)
    assert {name: words for name, words in beyond.items() if words} == {}


def test_a_page_knows_how_a_handle_begins_and_what_its_stops_are_called() -> None:
    for name, handle in HANDLES.items():
        begun = json.loads(pictures.initial_state(handle))
        for control, texts in begun["stops"].items():
            assert begun["fields"][control]["text"] in texts, name
            values = [handle.controls[control].read(text) for text in texts]
            assert values == [*pictures.stops(handle.controls[control])], name


def test_of_a_handle_with_very_many_settings_those_are_drawn_that_two_hands_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = HANDLES["machine"]
    monkeypatch.setattr(pictures, "MOST", pictures.number(machine) - 1)
    assert not json.loads(pictures.initial_state(machine))["all"]
    for _, values in pictures.settings(machine):
        assert sum(values[name] != machine.default[name] for name in values) <= 2
