"""The panel that ipywidgets draws: what a reader of a notebook reads of each widget."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ipywidgets as widgets
import pytest

from llmtrain_course.kit.panel import Control
from llmtrain_course.kit.widget import _CSS, Field
from llmtrain_course.panels import HANDLES, PANELS, handle, in_notebook
from tests.faces.panels.test_common import GPUS, made

every_panel = pytest.mark.parametrize("word", PANELS)
every_handle = pytest.mark.parametrize("name", HANDLES)

LETTER = 7.5
"""Pixels of a letter at 15 px, on average."""


def pixels(length: str) -> float:
    return float(length.removesuffix("px"))


def below(widget: Any) -> Iterator[Any]:
    """A widget and all that stands in it, in the order in which they are read."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from below(child)


def kind_of(control: Control) -> type[Any]:
    if control.lines > 1:
        return widgets.Textarea
    kinds = {"choice": widgets.Dropdown, "flag": widgets.Checkbox}
    return kinds.get(control.kind, widgets.Text)


def ring() -> Any:
    return handle("ring")


# --- each field


@every_panel
def test_a_field_has_its_controls_label_help_and_choices(word: str) -> None:
    panel = in_notebook(word)
    assert [*panel.controls] == [*PANELS[word].controls]
    for name, control in PANELS[word].controls.items():
        field = panel.controls[name]
        assert type(field.input) is kind_of(control)
        assert (field.input.description, field.input.tooltip) == (control.label, control.help)
        assert getattr(field.input, "options", ()) == control.options
        if control.kind == "number":
            echo = control.echo(field.value)
            assert field.echo.value in ("", echo)
            assert field.echo.value or echo == f"= {field.input.value}"


@every_panel
def test_a_slider_stands_behind_field_and_echo_and_has_a_place_for_each_stop(word: str) -> None:
    for field in in_notebook(word).controls.values():
        slider, stops = field.slider, field.control.stops
        assert bool(slider) == bool(stops)
        numbers = [field.echo] if field.control.kind == "number" else []
        assert [*field.box.children] == [field.input, *numbers, *([slider] if slider else [])]
        if slider:
            assert (slider.min, slider.max, slider.step) == (0, len(stops) - 1, 1)
            assert slider.tooltip == field.control.help
            assert not slider.readout  # a place is no number of the reader's


@every_panel
def test_what_is_written_counts_when_it_is_done(word: str) -> None:
    for field in in_notebook(word).controls.values():
        assert getattr(field.input, "continuous_update", False) is False


@every_panel
def test_a_label_and_what_is_written_find_room(word: str) -> None:
    for field in in_notebook(word).controls.values():
        control, layout = field.control, field.input.layout
        label = field.input.style.description_width
        if control.kind == "choice":
            assert (label, layout.width) == ("initial", "max-content")
            assert pixels(layout.min_width) >= 200
            assert layout.max_width == "100%"  # of a narrow column
        elif control.kind == "flag":
            assert (label, layout.width, field.input.indent) == ("initial", "auto", False)
        elif control.lines > 1:
            assert (label, layout.width, field.box.layout.flex) == ("initial", "100%", "1 1 100%")
            assert pixels(layout.height) >= 20 * control.lines
        else:
            assert label == "initial" or LETTER * len(control.label) <= pixels(label)
            taken = LETTER * len(control.label) if label == "initial" else pixels(label)
            ends = [control.least, control.most, *control.stops] if control.kind == "number" else []
            longest = max((len(control.write(end)) for end in ends), default=10)
            assert taken + LETTER * longest <= pixels(layout.width)


@pytest.mark.parametrize("word", [*PANELS, *HANDLES])
def test_a_flag_has_its_own_row_in_a_handle_and_only_its_width_in_a_panel(word: str) -> None:
    """So does a text of several lines; what has a slider is as wide as the slider needs."""
    panel = in_notebook(word) if word in PANELS else handle(word)
    for field in panel.controls.values():
        if not field.slider:
            several = field.control.lines > 1
            row = several or (word in HANDLES and field.control.kind == "flag")
            assert field.box.layout.flex == ("1 1 100%" if row else "0 1 auto")


def test_a_text_of_two_lines_has_its_own_row_and_one_of_one_does_not() -> None:
    panel = in_notebook("parameters")
    text = PANELS["parameters"].controls["config"]
    for lines, flex in ((1, "0 1 auto"), (2, "1 1 100%")):
        field = Field("config", replace(text, lines=lines), panel)
        assert field.box.layout.flex == flex


@every_panel
def test_sliders_that_stand_below_one_another_begin_alike(word: str) -> None:
    """Their labels make a column, and their fields another."""
    fields = [f for f in in_notebook(word).controls.values() if f.slider and not f.control.more]
    looks = {(f.input.layout.width, f.input.style.description_width) for f in fields}
    assert len(looks) == 1
    assert "initial" not in looks.pop()
    assert all(wide(field.slider) >= 200 for field in fields)
    assert all(wide(field.box) == 400 for field in fields)  # or the whole column


def wide(widget: Any) -> float:
    """Pixels that a widget takes at least before it moves to a row of its own."""
    grows, shrinks, basis = widget.layout.flex.split()
    assert grows in ("1", "3")  # of a handle's width the picture takes the more
    assert shrinks == "1"
    return pixels(basis)


# --- the whole panel


@every_panel
def test_rows_stand_in_the_order_in_which_they_are_read(word: str) -> None:
    """Where to start from, sliders, lists, what is folded; beside them refusals and the answer."""
    panel = in_notebook(word)
    controls, answer = panel.children
    assert [*answer.children] == [
        panel.status,
        panel.offers,
        panel.output,
        panel.advice,
        panel.folds,
    ]
    style, chooser, *rows = controls.children
    assert (style.value, style.layout.display) == (_CSS, "none")
    assert [*chooser.children[:2]] == [panel.preset, panel.reset]
    assert (rows[-1:] == [panel.folded]) == bool(panel.folded)

    fields = panel.controls.values()
    first = [f.box for f in fields if f.slider and not f.control.more]
    assert rows[: len(first)] == first
    seen = [*below(panel)]
    assert all(seen.count(field.box) == 1 for field in fields)
    assert [f for f in fields if f.control.lead and f.box not in chooser.children] == []
    inside = [*below(panel.folded)] if panel.folded else []
    assert all((field.box in inside) == field.control.more for field in fields)


@pytest.mark.parametrize(("make", "room"), [(lambda: in_notebook("plan"), 1000), (ring, 830)])
def test_controls_stand_beside_the_picture_where_both_have_room(make: Any, room: float) -> None:
    """Both grow, and neither is pushed out of the page by what stands in it."""
    panel = make()
    controls, answer = panel.children
    assert (panel.layout.flex_flow, panel.layout.align_items) == ("row wrap", "flex-start")
    gap = pixels(panel.layout.grid_gap.split()[1])
    assert wide(controls) + gap + wide(answer) == room
    assert controls.layout.min_width == answer.layout.min_width == "0px"


@every_panel
def test_what_is_folded_says_more_and_begins_closed(word: str) -> None:
    folded = in_notebook(word).folded
    assert folded is None or (folded.titles, folded.selected_index) == (("More",), None)


def test_more_is_gone_where_nothing_in_it_applies() -> None:
    other = Control("Other", "For many.", more=True, applies=lambda x: x.num_gpus > 8, stops=(1, 2))
    panel = made(num_gpus=GPUS, other=other)
    assert panel.folded.layout.display == "none"
    panel.controls["num_gpus"].value = 16
    assert panel.folded.layout.display is None


@every_panel
def test_rows_wrap_where_a_page_is_narrow(word: str) -> None:
    rows = [box for box in below(in_notebook(word)) if type(box) is widgets.Box]
    assert len(rows) > 2
    for row in rows:
        assert row.layout.flex_flow == "row wrap"
        assert row.layout.align_items in ("center", "flex-start")
        assert re.fullmatch(r"\dpx [13]\dpx", row.layout.grid_gap)


@every_panel
def test_one_starts_from_a_preset_and_comes_back_to_it(word: str) -> None:
    panel = in_notebook(word)
    assert panel.preset.description == "Start from"
    assert panel.preset.options == (*PANELS[word].presets,)
    assert panel.preset.tooltip == "A setting to begin with."
    assert panel.preset.style.description_width == "initial"
    assert panel.preset.layout.width == "max-content"
    assert pixels(panel.preset.layout.min_width) >= 200
    assert (panel.reset.description, panel.reset.tooltip) == ("Reset", "Back to the first setting.")
    assert LETTER * len("Reset") + 20 <= pixels(panel.reset.layout.width)


def test_arriving_at_a_preset_by_hand_keeps_the_comparison() -> None:
    panel = made(num_gpus=GPUS)
    panel.controls["num_gpus"].slider.value = 2
    assert panel.preset.value == "a"
    assert panel.html == "<b>{'num_gpus': 32}</b> before {'num_gpus': 8}"


def test_an_offer_is_as_wide_as_its_words_and_says_what_it_sets() -> None:
    panel = in_notebook("plan")
    panel.controls["num_gpus"].value = 100
    assert panel.offers.children
    for button in panel.offers.children:
        assert button.tooltip == f"Set {button.description}."
        assert button.layout.width == "auto"


def test_every_class_that_the_style_names_is_a_widgets() -> None:
    """A reader sees a refused panel's picture dimmed, its echo in grey, its text at 15 px."""
    panel = in_notebook("plan")
    panel.controls["num_gpus"].input.value = "100"
    widgets = {name: widget for widget in below(panel) for name in widget._dom_classes}
    assert {*re.findall(r"\.(llmtrain-\w+)", _CSS)} <= {*widgets}
    assert widgets["llmtrain-status"] is panel.status
    assert widgets["llmtrain-panel"] is panel
    assert widgets["llmtrain-answer"] is widgets["llmtrain-old"] is panel.output
    assert widgets["llmtrain-advice"] is panel.advice
    assert {field.echo for field in panel.controls.values()} >= {widgets["llmtrain-echo"]}
    assert float(re.findall(r"llmtrain-old { opacity: ([\d.]+)", _CSS)[0]) <= 0.5
    assert {*re.findall(r"font-size: (\d+)px", _CSS)} == {"15"}


# --- a handle


@every_handle
def test_a_handle_has_its_controls_its_picture_and_nothing_else(name: str) -> None:
    small = handle(name)
    controls, answer = small.children
    _, *rows, status, offers = controls.children
    assert rows == [field.box for field in small.controls.values()]
    assert (status, offers) == (small.status, small.offers)
    assert [*answer.children] == [small.output, small.advice, small.folds]  # nothing pushes it down
    read = [*below(small)]
    assert small.preset not in read
    assert small.reset not in read
    for field in small.controls.values():
        assert field.input.description == field.control.label
        assert not field.slider or field.slider.layout.flex == "1 1 100%"


@every_handle
def test_a_handle_shows_its_first_state_and_saves_it(name: str) -> None:
    small, definition = handle(name), HANDLES[name]
    assert small.html == definition.render()
    bundle = small._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["text/html"] == definition.static_html()
    assert "<svg" not in data["text/html"]
    assert data["text/html"].index("<img") < data["text/html"].index("<p ")
    assert data["text/plain"] == definition.words
    small.set(**{next(iter(small.values())): small.values()[next(iter(small.values()))]})
    assert definition.static_html() == data["text/html"]


def test_two_handles_share_no_state() -> None:
    one, other = handle("ring"), handle("ring")
    one.controls["gpus"].slider.value = 0
    assert one.values() == {"gpus": 2, "turn": 3}
    assert other.values() == {"gpus": 8, "turn": 3}
    assert handle("ring").html == other.html == HANDLES["ring"].render()


def test_what_a_setting_does_not_reach_counts_as_its_last_stop() -> None:
    """The slider ends with the ring's turns; what was set comes back with a larger ring."""
    small = ring()
    turn = small.controls["turn"]
    assert (turn.slider.max, turn.slider.value, turn.echo.value) == (14, 3, "of 14")
    small.controls["gpus"].input.value = "2"
    assert (turn.slider.max, turn.slider.value, turn.input.value) == (2, 2, "2")
    assert turn.echo.value == "of 2"
    assert "turn 2 of 2" in small.html
    small.controls["gpus"].input.value = "16"
    assert (turn.slider.max, turn.slider.value, turn.input.value) == (30, 3, "3")


def test_play_moves_a_step_slider_stop_by_stop_and_only_when_told() -> None:
    small = ring()
    turn = small.controls["turn"]
    assert isinstance(turn.play, widgets.Play)
    assert (turn.play.playing, turn.play.repeat, turn.play.max) == (False, False, 14)
    assert 1000 <= turn.play.interval <= 2500
    assert (turn.button.description, turn.play.layout.display) == ("Play", "none")
    turn.button.click()
    assert (turn.button.description, turn.play.playing) == ("Pause", True)
    assert (turn.play.value, turn.input.value) == (0, "0")  # whatever the still shows
    turn.button.click()
    assert (turn.button.description, turn.play.playing) == ("Play", False)
    turn.play.value = 4  # as the browser does while it plays
    assert (turn.slider.value, turn.input.value) == (4, "4")
    assert "turn 4 of 14" in small.html
    turn.slider.value = 9
    turn.button.click()
    assert turn.play.value == 9  # it goes on from there
    turn.button.click()
    turn.slider.value = 14
    turn.button.click()
    assert turn.play.value == 0  # past the last stop it begins again
    turn.button.click()
    small.controls["gpus"].input.value = "64"
    assert turn.play.max == 126
    assert turn.play.interval * 126 <= 20_000
    assert [f.play for f in handle("attention_square").controls.values()] == [None] * 3


def test_playing_from_the_end_begins_again() -> None:
    small = handle("four_gpus")
    now = small.controls["now"]
    now.value = 105
    assert now.play.value == now.play.max == 35
    now.button.click()
    assert now.play.playing
    assert (now.value, now.play.value) == (0, 0)
    assert "GPU 1 is through with 0 of 4 passes" in small.output.value


def test_a_handles_control_that_does_not_apply_keeps_its_place() -> None:
    small = handle("attention_square")
    window = small.controls["window"].box.layout
    small.controls["causal"].input.value = False
    assert (window.visibility, window.display) == ("hidden", None)
    small.controls["causal"].input.value = True
    assert window.visibility is None


def test_an_unknown_handle_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="name='rings' is unknown, did you mean 'ring'"):
        handle("rings")
    for bad in (None, 3, ["ring"], ""):
        with pytest.raises(ValueError, match="name="):
            handle(bad)


# --- parts that are folded away


def test_what_a_reader_has_opened_stays_open_when_a_slider_moves() -> None:
    panel = in_notebook("start_here")
    numbers, code = panel.folds.children
    assert [*numbers.titles, *code.titles] == ["The numbers behind it", "The same in code"]
    assert "<details" not in panel.output.value
    assert numbers.selected_index is None
    numbers.selected_index = 0
    before = numbers.children[0].value
    panel.controls["num_gpus"].input.value = "64"
    assert panel.folds.children == (numbers, code)
    assert numbers.selected_index == 0
    assert numbers.children[0].value != before
    assert handle("ring").folds.children == ()


@every_panel
def test_fields_shrink_with_the_window_and_hold_the_longest_number(word: str) -> None:
    for field in in_notebook(word).controls.values():
        assert (field.box.layout.min_width, field.box.layout.max_width) == ("0px", "100%")
        if field.slider and not field.control.more:
            room = pixels(field.input.layout.width) - pixels(field.input.style.description_width)
            assert room >= LETTER * max(len(field.control.typed(x)) for x in field.control.stops)
