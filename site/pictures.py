"""The pictures of each handle, drawn when the site is built, so that it moves without Python.

A handle has one to three controls with some stops each. All its pictures together say
much the same, so that a file keeps each piece of them once: ten kilobytes, compressed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from html import unescape
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from llmtrain_course.kit.panel import Control, Panel, warning
from llmtrain_course.kit.state import State
from llmtrain_course.page import layout, view
from llmtrain_course.panels import HANDLES

FOLDER = "handles"

MOST = 2500
"""Settings of one handle that are all drawn; of one with more, those that differ from its
start in two controls at most. For the others the page asks Python."""


def write(site: Path) -> None:
    """Put the pictures of all handles into the site, and beside each its narrow ones."""
    (site / FOLDER).mkdir()
    files = {name: (name, False) for name in HANDLES}
    files |= {f"{name}-narrow": (name, True) for name in HANDLES}
    with ProcessPoolExecutor() as pool:
        for file, text in zip(files, pool.map(_text, files.values()), strict=True):
            (site / FOLDER / f"{file}.json").write_text(text, "utf-8")


def _text(about: tuple[str, bool]) -> str:
    name, narrow = about
    handle = HANDLES[name]
    return _json(all_pictures(handle.on_telephone if narrow else handle))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def initial_state(panel: Panel) -> str:
    """Collect what a page has to know of a handle at first: its controls, and how they begin."""
    controls = panel.controls.items()
    about = {
        "layout": layout(panel),
        "fields": view(State(panel))["fields"],
        "stops": {
            name: [_text_of(control, x) for x in stops(control)] for name, control in controls
        },
        "refusals": {
            name: _refusals(control) for name, control in controls if control.kind == "number"
        },
        "refused": warning("{}"),
        "all": number(panel) <= MOST,
    }
    return _json(about)


def _refusals(control: Control) -> dict[str, Any]:
    """Collect what a field replies to words, and to numbers that it can't be set to."""
    replies: dict[str, Any] = {"least": control.least, "most": control.most}
    for kind, written in [("words", "abc"), ("outside", "1e30"), ("part", control.least + 0.5)]:
        try:
            control.read(str(written))
        except ValueError as error:
            replies[kind] = str(error).replace(f"'{written}'", "{}")
    return replies


def _text_of(control: Control, value: Any) -> str | bool:
    """Write a value as it stands in a field."""
    if control.kind == "number":
        return control.typed(value)
    return value if control.kind == "flag" else str(value)


def all_pictures(panel: Panel) -> dict[str, Any]:
    """Draw all that a handle can show: pieces of text, and which of them each picture has.

    A setting is called by the places of its controls: `3,0` is the fourth stop of the
    first control, and the first of the second. Of its pieces the first ones are what
    stands in its fields, as JSON, and the others, joined, are its picture. `longest` is the
    longest sentence of all.
    """
    state, pieces, longest = State(panel), dict[str, int](), ""
    pictures = {}
    for places, values in settings(panel):
        state.values.update(values)
        state.refresh()
        content = view(state)
        if content["status"] or content["take"]:
            raise ValueError(f"{panel.title}: {values} has more to say than a picture")
        longest = max(longest, sentence(content["html"]), key=len)
        parts = [_json(content["fields"][name]) for name in values]
        parts += re.split("(?=<(?!/|title))", content["html"])
        pictures[",".join(map(str, places))] = [pieces.setdefault(x, len(pieces)) for x in parts]
    return {"pieces": [*pieces], "pictures": pictures, "longest": longest}


def sentence(html: str) -> str:
    """Return the words below a handle's picture."""
    return unescape(re.sub("<.*?>", "", html.rpartition("</svg>")[2]))


def settings(panel: Panel) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """The settings that are drawn: the places of the controls, and their values."""
    ways = {name: stops(control) for name, control in panel.controls.items()}
    most = len(ways) if number(panel) <= MOST else 2
    for chosen in product(*map(enumerate, ways.values())):
        places, values = zip(*chosen, strict=True)
        setting = dict(zip(ways, values, strict=True))
        if sum(setting[name] != panel.default[name] for name in setting) <= most:
            yield places, setting


def number(panel: Panel) -> int:
    """Count the settings of a handle."""
    return prod(len(stops(control)) for control in panel.controls.values())


def stops(control: Control) -> tuple[Any, ...]:
    """List all that a control can be set to without writing."""
    return control.stops or control.options or (False, True)
