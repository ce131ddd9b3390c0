"""A panel in a web page: what the page's script has to know, as JSON.

The script draws plain fields from `layout`, sends what people do to `act`, and shows
what comes back. All that a panel means stays here, and nothing foreign is imported, so
that it runs in the browser too.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

from llmtrain_course.kit import protocol
from llmtrain_course.kit.panel import Control, Panel
from llmtrain_course.kit.protocol import JSON, layout
from llmtrain_course.kit.state import State
from llmtrain_course.panels import HANDLES, PANELS
from llmtrain_helpers.checks import choice, show

LONGEST_ADDRESS = 8000
"""Characters of a link: with more, some servers and mail programs cut it."""

PANELS_AND_HANDLES: dict[str, Panel] = {
    **PANELS,
    **{f"handle:{name}": it for name, it in HANDLES.items()},
}
"""What a page can open: panels by their chapter's word, handles as `handle:ring`."""

_STATES: dict[str, State] = {}
"""What this page has opened, by the page's own names."""


def opened(word: str, address: str = "", narrow: bool = False, name: str = "") -> str:
    """The panel of this chapter, as its address says, or a handle, beside what it shows.

    It is called by `name` from then on, where a page has one twice; else by its word.
    """
    panel = PANELS_AND_HANDLES[choice("word", word, PANELS_AND_HANDLES)]
    if word in PANELS:
        from llmtrain_course.kit.own_panel import with_own_run  # it needs more than a drawing does

        panel = with_own_run(word, panel)
    panel = panel.on_telephone if narrow else panel
    _STATES[name or word] = state = State(panel)
    problem = follow(state, address)
    return json.dumps({"layout": layout(panel), **view(state, problem)})


def act(name: str, deed: str, *details: Any) -> str:
    """Apply a learner's action, and return what the panel shows now."""
    state = _STATES[choice("name", name, _STATES)]
    protocol.act(state, deed, *details)
    return json.dumps(view(state))


def view(state: State, problem: str = "") -> JSON:
    """Return what a page shows of a panel now, with the part of its link."""
    return {**protocol.view(state, problem), "address": address(state)}


def address(state: State) -> str:
    """The panel's values as a part of a link: those that are not the default's.

    >>> from llmtrain_course.panels import PANELS
    >>> state = State(PANELS["duration"])
    >>> state.set(tokens="3T", num_gpus=512)
    >>> address(state)
    'tokens=3000000000000&num_gpus=512'
    """
    changed = {
        name: int(value) if isinstance(value, float) and not value % 1 else value
        for name, value in state.values.items()
        if value != state.panel.default[name]
    }
    link = urlencode(changed, errors="replace")  # half a character is none
    return link if len(link) <= LONGEST_ADDRESS else ""


def _linked(control: Control, text: str) -> str:
    """What a link says: a bare number of a percentage is one, and no share."""
    bare = control.unit == "%" and text.replace(".", "", 1).isdecimal()
    return f"{text}%" if bare else text


def follow(state: State, address: str) -> str:
    """Set what a link says; the first thing that cannot be, in words.

    >>> from llmtrain_course.panels import PANELS
    >>> follow(State(PANELS["duration"]), "gpus=512")
    "The link sets 'gpus', which this panel doesn't have."
    """
    wanted = dict(parse_qsl(address[:LONGEST_ADDRESS], keep_blank_values=True))
    values = {
        name: _linked(state.panel.controls[name], text)
        for name, text in wanted.items()
        if name in state.values
    }
    if values:
        state.set(**values)
    problem = next(iter(state.problems.values()), "")
    if problem:  # the default's value stays in such a field
        state.problems.clear()
        state.refresh()
    strange = next((name for name in wanted if name not in values), None)
    if strange is not None and not problem:
        problem = f"The link sets {show(strange)}, which this panel doesn't have."
    return problem
