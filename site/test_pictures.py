"""The pictures of the handles that the build draws, held against the handles themselves.

make site-test
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pictures
import pytest

from llmtrain_helpers.panels import HANDLES
from llmtrain_helpers.panels.page import shown
from llmtrain_helpers.panels.state import State

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
