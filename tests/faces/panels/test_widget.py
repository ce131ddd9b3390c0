"""The widget in a notebook: the modules that draw it, and what it answers a view."""

from __future__ import annotations

import re
from typing import Any

import pytest

from llmtrain_course.kit import protocol
from llmtrain_course.kit.state import State
from llmtrain_course.kit.widget import FACE, MODULES, NotebookPanel
from llmtrain_course.panels import HANDLES, PANELS, handle, in_notebook

DECLARED = re.compile(r"^(?:async )?(?:const|let|class|function\*?) (?:\{([^}]*)\}|(\w+))", re.M)
IMPORTED = re.compile(r'^import \{ (.*?) \} from "\./(\w+)\.js";$', re.M)

DRAGGED = {
    name: control
    for name, it in HANDLES.items()
    for control in {*re.findall(r'data-moves="([\w ]+)"', it.render())}
}
"""The handles in whose pictures somebody drags a mark, and the control that it moves, or two."""


# --- the modules


def test_the_modules_are_one_text_in_which_no_name_is_declared_twice() -> None:
    text = NotebookPanel._esm
    assert not re.search(r"^import |^export (?!default)", text, re.M)
    assert text.count("\nexport default ") == 1
    names = [name for pair in DECLARED.findall(text) for name in pair if name]
    assert {"create", "makeDraggable", "HandleFace", "PanelFace", "render"} <= {*names}
    assert len(names) == len({*names})


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_what_stands_above_it_and_exports(name: str) -> None:
    text = (FACE / f"{name}.js").read_text("utf-8")
    assert len(re.findall(r"^import ", text, re.M)) == len(IMPORTED.findall(text))
    for names, module in IMPORTED.findall(text):
        assert MODULES.index(module) < MODULES.index(name)
        other = (FACE / f"{module}.js").read_text("utf-8")
        for one in names.split(", "):
            assert re.search(rf"^export (const|class|function) {one}\b", other, re.M)


def test_a_notebook_has_a_value_for_each_variable_of_the_style() -> None:
    face, lab = ((FACE / f"{name}.css").read_text("utf-8") for name in ("face", "lab"))
    used = {*re.findall(r"var\((--[\w-]+)[,)]", face)} - {"--sentence"}
    assert used <= {*re.findall(r"(--[\w-]+):", lab)}
    assert {"--accent", "--paper"} <= used


# --- what it answers


class Front:
    """A notebook's front end, as far as a widget knows of it."""

    def __init__(self, panel: NotebookPanel, monkeypatch: pytest.MonkeyPatch) -> None:
        self.panel, self.replies = panel, list[dict[str, Any]]()
        monkeypatch.setattr(panel, "send", self.replies.append)

    def ask(self, **about: Any) -> None:
        self.panel._receive(self.panel, {"id": "view-1", **about}, [])


def test_the_answer_of_a_deed_is_a_trait_with_the_id_of_who_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So all views, and a page that's loaded again, show the same."""
    front = Front(in_notebook("duration"), monkeypatch)
    first, state = front.panel.answer, State(PANELS["duration"])
    assert first == protocol.view(state)
    front.ask(deed=["write", "num_gpus", "2k"])
    state.write("num_gpus", "2k")
    assert front.panel.answer == {**protocol.view(state), "id": "view-1"} != first
    assert {"about", "answer", "address"} <= {*front.panel.keys}
    assert not front.replies
    front.panel.set(num_gpus=512)
    assert front.panel.answer["id"] == ""  # nobody asked


@pytest.mark.parametrize(
    ("about", "problem"),
    [
        ({"deed": ["sell"]}, "deed='sell' is unknown"),
        ({"deed": ["choose", "nothing"]}, "preset='nothing' is unknown"),
        ({"marks": "GPUs"}, "control='GPUs' is unknown"),
    ],
)
def test_what_cannot_be_done_is_replied_and_nothing_changes(
    about: dict[str, Any], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = Front(handle("size_price"), monkeypatch)
    before = front.panel.answer
    front.ask(**about)
    [reply] = front.replies
    assert reply["id"] == "view-1"
    assert problem in reply["error"]
    assert front.panel.answer == before


def test_readers_drag_a_dozen_handles_and_each_mark_names_a_control_of_its_own() -> None:
    assert len(DRAGGED) >= 12
    for name, it in HANDLES.items():
        for moves in re.findall(r'data-moves="(.*?)"', it.render()):
            assert {*moves.split()} <= {*it.controls}, name


def test_what_a_click_sets_is_a_value_of_a_control_of_its_own() -> None:
    clicked = dict[str, int]()
    for name, it in HANDLES.items():
        for control, value in re.findall(r'data-sets="(\w+)=([^"]+)"', it.render()):
            clicked[name] = clicked.get(name, 0) + 1
            stops = {it.controls[control].write(stop) for stop in it.controls[control].stops}
            assert value in stops  # as it's written there, a page has its picture
        assert ('role="group"' in it.render()) == (name in clicked)  # an image has no parts
    assert clicked == {"eight_bits": 8, "stream": 8, "experts": 7}


@pytest.mark.parametrize(
    ("name", "control"), [(name, each) for name, moves in DRAGGED.items() for each in moves.split()]
)
@pytest.mark.parametrize("narrow", [False, True])
def test_a_mark_is_at_each_stop_where_the_picture_of_that_stop_has_it(
    name: str, control: str, narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    front = Front(handle(name), monkeypatch)
    front.ask(deed=["narrow", narrow])
    front.ask(marks=control)
    [reply] = front.replies
    stops = HANDLES[name].controls[control].stops
    assert len(reply["marks"]) == len(stops)
    for place in {0, len(stops) // 2, len(stops) - 1}:
        front.ask(deed=["slide", control, place])
        mark = rf'<circle [^>]*data-moves="(?:\w+ )?{control}\b[^>]*>'
        circles = re.findall(mark, front.panel.html)
        spots = [[float(x) for x in re.findall(r'\bc[xy]="([\d.-]+)"', one)] for one in circles]
        assert reply["marks"][place] == spots
    assert len({tuple(spots[0]) for spots in reply["marks"] if spots}) > 1


@pytest.mark.parametrize(
    ("name", "sideways", "upwards"),
    [(name, *moves.split()) for name, moves in DRAGGED.items() if " " in moves],
)
def test_a_mark_that_goes_in_two_directions_moves_a_control_with_each(
    name: str, sideways: str, upwards: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the side with the first, which may be along a slope, and up and down with the second."""
    front = Front(handle(name), monkeypatch)
    for control in (sideways, upwards):
        front.ask(marks=control)
    across, up = ([spot for [spot] in reply["marks"]] for reply in front.replies)
    assert len({x for x, _ in up}) == 1
    assert [y for _, y in across] == sorted(y for _, y in across)  # level, or down a slope
    assert [x for x, _ in across] == sorted({x for x, _ in across})
    assert [y for _, y in up] == sorted({y for _, y in up}, reverse=True)
    front.ask(deed=["slide", sideways, 0, upwards, 3])
    stops = (HANDLES[name].controls[control].stops for control in (sideways, upwards))
    assert [front.panel.values()[each] for each in (sideways, upwards)] == [
        places[at] for places, at in zip(stops, (0, 3), strict=True)
    ]
    begun = HANDLES[name].controls[sideways].stops.index(HANDLES[name].default[sideways])
    down = up[3][1] + across[0][1] - across[begun][1]  # from where the first has put it
    [mark] = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"[^>]*data-moves', front.panel.html)
    assert [float(x) for x in mark] == pytest.approx([across[0][0], down], abs=0.11)


def test_a_narrow_view_has_the_phones_picture_and_a_wide_one_the_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = Front(handle("size_price"), monkeypatch)
    wide = front.panel.html
    front.ask(deed=["narrow", True])
    assert front.panel.html == HANDLES["size_price"].on_telephone.render()
    front.ask(deed=["slide", "share", 0])
    front.ask(deed=["narrow", False])
    front.ask(deed=["slide", "share", HANDLES["size_price"].controls["share"].stops.index(1)])
    assert front.panel.answer["fields"]["share"]["text"] == "1"
    assert re.findall("viewBox.*?>", front.panel.html) == re.findall("viewBox.*?>", wide)


def test_two_handles_share_no_state() -> None:
    one, other = handle("ring"), handle("ring")
    one.act("slide", "gpus", 0)
    assert one.values() == {"gpus": 2, "turn": 3}
    assert other.values() == {"gpus": 8, "turn": 3}
    assert handle("ring").html == other.html == HANDLES["ring"].render()


@pytest.mark.parametrize("name", HANDLES)
def test_a_handle_leaves_its_first_state_for_a_page_without_a_kernel(name: str) -> None:
    small, definition = handle(name), HANDLES[name]
    data = small._repr_mimebundle_()
    data = data[0] if isinstance(data, tuple) else data
    assert data["text/html"] == definition.static_html()
    assert "<svg" not in data["text/html"]
    assert data["text/html"].index("<img") < data["text/html"].index("<p ")
    assert data["text/plain"] == definition.words


def test_what_a_setting_does_not_reach_counts_as_its_last_stop() -> None:
    """The slider ends with the ring's turns; what was set comes back with a larger ring."""
    small = handle("ring")

    def turn(key: str) -> Any:
        return small.answer["fields"]["turn"][key]

    assert (turn("last"), turn("stop"), turn("echo")) == (14, "3", "of 14")
    small.act("write", "gpus", "2")
    assert (turn("last"), turn("stop"), turn("text"), turn("echo")) == (2, "2", "2", "of 2")
    assert "turn 2 of 2" in small.html
    small.act("write", "gpus", "16")
    assert (turn("last"), turn("stop"), turn("text")) == (30, "3", "3")


def test_a_handles_control_that_does_not_apply_is_not_shown() -> None:
    small = handle("attention_square")
    small.act("write", "causal", False)
    assert not small.answer["fields"]["window"]["shown"]
    small.act("write", "causal", True)
    assert small.answer["fields"]["window"]["shown"]
