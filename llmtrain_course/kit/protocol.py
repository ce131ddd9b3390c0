"""What a face gets of a panel, and what people do in it, as plain data: the same in a page and
in a notebook. The modules in `face/` draw it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from llmtrain_course.kit.panel import FieldState, Handle, Panel, pace, warning
from llmtrain_course.kit.state import OWN, State
from llmtrain_helpers.checks import choice

JSON = dict[str, Any]
"""An object as the face's script gets it."""


def layout(panel: Panel) -> JSON:
    """Return the controls and presets, as plain data."""
    controls = {
        name: {
            "label": control.label,
            "help": control.help,
            "kind": control.kind,
            "unit": control.unit,
            "more": control.more,
            "lead": control.lead,
            "lines": control.lines,
            "stops": len(control.stops),
            "longest": control.longest,
            "play": control.play,
            "options": [str(option) for option in control.options],
        }
        for name, control in panel.controls.items()
    }
    presets = [*panel.presets, OWN] if len(panel.presets) > 1 else []
    small = isinstance(panel, Handle)
    return {"title": panel.title, "controls": controls, "presets": presets, "small": small}


def view(state: State, problem: str = "") -> JSON:
    """Return what a face shows of a panel now; a problem of the page comes first."""
    problem = problem or state.problem
    applies, setting = state.panel.visible_controls(state.values), state.panel.setting(state.values)
    fields = {
        name: {**_field(control.field_state(state.values[name], setting)), "shown": name in applies}
        for name, control in state.panel.controls.items()
        if name not in state.problems
    }
    return {
        "fields": fields,
        "unread": [*state.problems],
        "preset": state.preset,
        "html": state.html,
        "old": state.old,
        "status": warning(problem) if problem else "",
        "set_all": [label for label, _ in state.offers],
        "take": [label for label, _ in state.advice],
    }


def _field(field: FieldState) -> dict[str, str | bool | int]:
    """Return a field: its text, what was understood, the place of its slider."""
    text = field.text if isinstance(field.text, bool) else str(field.text)
    entry: dict[str, str | bool | int] = {"text": text, "echo": escape(field.echo)}
    if field.place is not None:
        entry |= {"stop": str(field.place), "last": field.last, "pace": pace(field.last)}
    return entry


def act(state: State, deed: str, *details: Any) -> None:
    """Apply a learner's action in a face; ValueError if it isn't possible."""
    _DEEDS[choice("deed", deed, _DEEDS)](state, *details)


def _slide(state: State, *moves: Any) -> None:
    """Move sliders to places: `name, place`, and so on for what's dragged in two directions."""
    places = dict(zip(moves[::2], moves[1::2], strict=True))
    values = {name: state.panel.controls[name].stops[place] for name, place in places.items()}
    if len(values) == 1:
        state.write(*values.popitem())
    else:
        state.set_all(**values)


def _choose(state: State, preset: str) -> None:
    state.set(**state.panel.presets[choice("preset", preset, state.panel.presets)])


_DEEDS: Mapping[str, Callable[..., None]] = {
    "write": lambda state, name, written: state.write(name, written),
    "slide": _slide,
    "choose": _choose,
    "reset": lambda state: state.reset(),
    "set_all": lambda state, at: state.set_all(**state.offers[at][1]),
    "take": lambda state, at: state.take(**state.advice[at][1]),
    "narrow": lambda state, narrow: state.draw_for(narrow),
}
"""What people do in a face, by its name."""


_MARK = re.compile(r'<circle cx="([\d.-]+)" cy="([\d.-]+)"[^>]* data-moves="([\w ]+)"')


def marks(state: State, name: str) -> list[list[list[float]]]:
    """Return where the marks of a control are at each of its stops, the others as they are."""
    stops = state.panel.controls[choice("control", name, state.panel.controls)].stops
    spots = []
    for stop in stops:
        circles = _MARK.findall(state.panel.answer({**state.values, name: stop}).html)
        spots.append([[float(x), float(y)] for x, y, moves in circles if name in moves.split()])
    return spots
