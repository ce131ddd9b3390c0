"""A panel in a notebook, with ipywidgets: fields, sliders, the answer, refusals.

Fields read what people write and say back what they understood; sliders redraw as
they move. What cannot be read is refused in words, and all else goes on with the last
value. What cannot be is refused too: the old picture stays, dimmed, and values that
would do stand ready as buttons.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape, unescape
from typing import Any

import ipywidgets as widgets

from llmtrain_course.kit.panel import Control, Handle, Panel, Value, Values, pace, warning
from llmtrain_course.kit.state import OWN, State

_CSS = """<style>
.llmtrain-panel { overflow: visible; }
.llmtrain-panel .widget-label, .llmtrain-panel select, .llmtrain-panel input,
.llmtrain-panel .widget-checkbox label, .llmtrain-panel .jupyter-button {
  font-size: 15px; }
.llmtrain-panel .widget-html-content { line-height: 1.4; font-size: 15px; }
.llmtrain-panel .widget-html > .widget-label { display: none; }
.llmtrain-panel select { min-width: 0; }
.llmtrain-panel .llmtrain-echo { color: var(--jp-ui-font-color2, #555); }
.llmtrain-panel .llmtrain-old { opacity: 0.4; }
.llmtrain-panel .llmtrain-answer { overflow-x: auto; }
.llmtrain-panel .llmtrain-answer > .widget-html-content { min-width: 0; }
.llmtrain-panel .llmtrain-answer svg { display: block; }
.llmtrain-panel .widget-text > .widget-label { text-align: left; }
.llmtrain-panel .llmtrain-advice button { white-space: normal; text-align: left;
  height: auto; line-height: 1.35; padding: 6px 12px; max-width: 744px; }
.llmtrain-panel input:focus-visible, .llmtrain-panel select:focus-visible,
.llmtrain-panel button:focus-visible, .llmtrain-panel summary:focus-visible,
.llmtrain-panel .noUi-handle:focus-visible { outline: 3px solid #0067A5; }
</style>"""

_FOLDED = re.compile(r"<details[^>]*><summary>(.*?)</summary>(.*?)</details>", re.DOTALL)
"""What `common.folded` makes: its title, and what is folded away."""

_ROW: Any = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "2px 14px"}
_LABELLED = {"description_width": "initial"}

PLAY, PAUSE = ("Play", "play"), ("Pause", "pause")
"""What the button of a step slider says, and its sign."""

_LETTER = 8
"""Pixels of a letter of a label, at the most on average."""

_FLEX = {False: ("1 1 270px", "1 1 700px"), True: ("1 1 225px", "3 1 575px")}
"""How wide controls and picture are at least beside each other, for panels and handles:
with their gap 1,000 pixels, or 830. Where there is less, the picture stands below."""


class Field:
    """A control of a panel as widgets: what is done to them is written to the state."""

    def __init__(self, name: str, control: Control, panel: NotebookPanel) -> None:
        self.name, self.control, self._panel = name, control, panel
        self._quiet = self._played = False
        self.input, self.slider = _input(control, panel), _slider(control)
        self.play = _play(control)
        self.input.observe(self._type, "value")
        self.echo = widgets.HTML()
        self.echo.add_class("llmtrain-echo")
        parts = [self.input, self.echo] if control.kind == "number" else [self.input]
        if self.play:
            self.button = widgets.Button(layout={"width": "90px"})
            self.button.description, self.button.icon = PLAY
            self.button.tooltip = f"{control.label}, stop by stop"
            self.button.on_click(self._toggle)
            self.play.observe(self._tell, "playing")
            self.play.observe(self._slide, "value")
            parts += [self.button, self.play]
        if self.slider:
            self.slider.observe(self._slide, "value")
            parts.append(self.slider)
        wide = control.lines > 1 or (panel.small and control.kind == "flag")
        flex = "1 1 100%" if wide else "0 1 auto"
        if self.slider:  # a handle's few fields stand side by side where there is room
            flex = "1 1 220px" if panel.small else "1 1 400px"
            self.slider.layout.flex = "1 1 100%" if panel.small else "1 1 200px"
        room = {"flex": flex, "min_width": "0px", "max_width": "100%"}
        self.box = widgets.Box(parts, layout=_ROW | room)

    @property
    def value(self) -> Value:
        """What the control says: its last value that could be read."""
        return self._panel.state.values[self.name]

    @value.setter
    def value(self, value: Value) -> None:
        """Take a value as if somebody had typed it."""
        self._panel.state.write(self.name, value)
        self._panel.refresh()

    def show(self) -> None:
        """What the state says; a field that could not be read stays as it is."""
        if self.name in self._panel.state.problems:
            return
        state = self._panel.state
        field = self.control.field_state(self.value, self._panel.panel.setting(state.values))
        self._quiet = True  # the widgets report what code sets, too
        self.input.value = field.text
        self.echo.value = escape(field.echo)
        for widget in (self.play, self.slider):
            if widget:
                widget.max = field.last
                if field.place is not None:
                    widget.value = field.place
        if self.play:
            self.play.interval = pace(field.last)
        self._quiet = False

    def _type(self, change: Any) -> None:
        if not self._quiet:
            self.value = change["new"]

    def _toggle(self, button: Any) -> None:
        """Play or pause; the first time, and after the last stop, from the beginning."""
        starts = not self.play.playing
        if starts and (not self._played or self.play.value == self.play.max):
            self.play.value = self.play.min
        self._played = True
        self.play.playing = starts

    def _tell(self, change: Any) -> None:
        self.button.description, self.button.icon = PAUSE if change["new"] else PLAY

    def _slide(self, change: Any) -> None:
        if not self._quiet:
            self.value = self.control.stops[change["new"]]


def _input(control: Control, panel: NotebookPanel) -> Any:
    """The widget in which a value is typed or chosen."""
    common = {"description": control.label, "tooltip": control.help, "style": _LABELLED}
    if control.kind == "choice":
        layout = {"width": "max-content", "min_width": "200px", "max_width": "100%"}
        return widgets.Dropdown(options=control.options, layout=layout, **common)
    if control.kind == "flag":
        return widgets.Checkbox(indent=False, layout={"width": "auto"}, **common)
    if control.lines > 1:
        layout = {"width": "100%", "height": f"{24 * control.lines}px"}
        return widgets.Textarea(continuous_update=False, layout=layout, **common)
    width = "360px" if control.kind == "text" else "250px"
    if control.stops and not control.more:  # sliders that stand below one another
        width = f"{panel.label_width + 8 + panel.number_width}px"
        common["style"] = {"description_width": f"{panel.label_width}px"}
    layout = {"width": width, "max_width": "100%"}
    return widgets.Text(continuous_update=False, layout=layout, **common)


def _slider(control: Control) -> Any:
    """A slider over the places of a control's stops; None where it has none."""
    if not control.stops:
        return None
    return widgets.IntSlider(
        min=0,
        max=len(control.stops) - 1,
        readout=False,
        tooltip=control.help,
        layout={"width": "auto"},
    )


def _play(control: Control) -> Any:
    """What moves a step slider stop by stop; unseen, for its own buttons have no name."""
    if not control.play:
        return None
    last = len(control.stops) - 1
    return widgets.Play(min=0, max=last, show_repeat=False, layout={"display": "none"})


class NotebookPanel(widgets.Box):
    """A panel's or a handle's controls, and beside them its answer; below, where it is narrow.

    `set` and `values` are for code.
    """

    def __init__(self, panel: Panel) -> None:
        self.panel, self.state, self._quiet = panel, State(panel), False
        self.small = isinstance(panel, Handle)
        sliders = [x for x in panel.controls.values() if x.stops and not x.more]
        self.label_width = _LETTER * max((len(x.label) for x in sliders), default=0) + 12
        longest = max((x.longest for x in sliders), default=0)
        self.number_width = max(_LETTER * longest + 26, 58 if self.small else 92)
        self.controls = {
            name: Field(name, control, self) for name, control in panel.controls.items()
        }
        self.preset = widgets.Dropdown(
            description="Start from",
            options=[*panel.presets],
            style=_LABELLED,
            layout={"width": "max-content", "min_width": "200px", "max_width": "100%"},
            tooltip="A setting to begin with.",
        )
        self.reset = widgets.Button(
            description="Reset", tooltip="Back to the first setting.", layout={"width": "90px"}
        )
        self.status, self.output = widgets.HTML(), widgets.HTML()
        self.status.add_class("llmtrain-status")
        self.output.add_class("llmtrain-answer")
        self.offers, self.advice = widgets.Box([], layout=_ROW), widgets.VBox([])
        self.folds = widgets.VBox([])
        self._folds: dict[str, Any] = {}
        self.advice.add_class("llmtrain-advice")
        self.folded: Any = None
        flex = _FLEX[self.small]
        for part in (self.status, self.offers):
            part.layout.flex = "1 1 100%" if self.small else "0 0 auto"
        refused = [self.status, self.offers]
        # a handle's picture stays where it is; a panel's controls may reach far down
        by_controls, by_picture = (refused, []) if self.small else ([], refused)
        top = {"align_items": "flex-start", "min_width": "0px"}
        controls = [*self._rows(), *by_controls]
        rows = widgets.Box(controls, layout=_ROW | top | {"flex": flex[0]})
        answer = widgets.VBox(
            [*by_picture, self.output, self.advice, self.folds], layout={"flex": flex[1]}
        )
        answer.layout.min_width = "0px"
        layout = {"flex_flow": "row wrap", "align_items": "flex-start", "grid_gap": "6px 30px"}
        super().__init__([rows, answer], layout=layout | {"max_width": "1400px"})
        self.add_class("llmtrain-panel")
        if self.small:
            self.add_class("llmtrain-handle")
        self.preset.observe(self._choose, "value")
        self.reset.on_click(lambda _: self.begin_again())
        self.refresh()

    @property
    def presets(self) -> dict[str, Values]:
        """The panel's presets, by name."""
        return {**self.panel.presets}

    def _rows(self) -> list[Any]:
        """All that is set, in the order in which it is read."""
        first = [f for f in self.controls.values() if not f.control.more]
        more = [f.box for f in self.controls.values() if f.control.more]
        rows = [widgets.HTML(_CSS, layout={"display": "none"})]
        if self.small:
            rows += [f.box for f in first]
        else:
            lead = [f.box for f in first if f.control.lead]
            sliders = [f.box for f in first if f.slider]
            others = [f.box for f in first if not f.slider and not f.control.lead]
            rows += [_row(self.preset, self.reset, *lead), *sliders, _row(*others)]
        if more:
            self.folded = widgets.Accordion([_row(*more)], titles=["More"])
            self.folded.selected_index = None
            self.folded.layout = {"flex": "1 1 100%", "min_width": "0px", "max_width": "100%"}
            rows.append(self.folded)
        return rows

    def set(self, **values: Value) -> None:
        """Set several controls, and redraw once."""
        self.state.set(**values)
        self.refresh()

    def begin_again(self) -> None:
        """Back to the preset that was there last."""
        self.state.reset()
        self.refresh()

    def set_all(self, **values: Value) -> None:
        """Set several controls in place of what was refused; the comparison stays."""
        self.state.set_all(**values)
        self.refresh()

    def take(self, **values: Value) -> None:
        """Set several controls, and hold the picture against what was there before."""
        self.state.take(**values)
        self.refresh()

    def values(self) -> dict[str, Value]:
        """What the controls say now."""
        return dict(self.state.values)

    @property
    def html(self) -> str:
        """What it answers, the folded parts in their places."""
        return self.state.html

    def static_html(self) -> str:
        """Return the panel for a page without a kernel."""
        return self.panel.static_html()

    def refresh(self) -> None:
        """Show the state: its fields, its picture, and why it is an old one."""
        state = self.state
        visible = self.panel.visible_controls(state.values)
        for name, field in self.controls.items():
            field.show()
            if self.small:  # its place is kept, so that nothing jumps
                field.box.layout.visibility = None if name in visible else "hidden"
            else:
                field.box.layout.display = None if name in visible else "none"
        if self.folded:
            inside = any(self.controls[name].control.more for name in visible)
            self.folded.layout.display = None if inside else "none"
        self._quiet = True
        own = [OWN] if state.preset == OWN else []  # there while it's true, so never to choose
        if (options := (*self.panel.presets, *own)) != self.preset.options:
            self.preset.options = options
        self.preset.value = state.preset
        self._quiet = False
        status = f'<div role="status">{warning(state.problem)}</div>'
        self.status.value = status if state.problem else ""
        mark = self.output.add_class if state.old else self.output.remove_class
        mark("llmtrain-old")
        self.output.value = _FOLDED.sub("", state.html)
        self._fold(_FOLDED.findall(state.html))
        self.offers.children = [_button(self.set_all, *offer) for offer in state.offers]
        self.advice.children = [_button(self.take, *offer) for offer in state.advice]

    def _fold(self, parts: list[tuple[str, str]]) -> None:
        """What is folded away below the picture; what a reader has opened stays open."""
        for title, html in parts:
            if title not in self._folds:
                fold = widgets.Accordion([widgets.HTML()], titles=[unescape(title)])
                self._folds[title] = fold
            self._folds[title].children[0].value = html
        self.folds.children = [self._folds[title] for title, _ in parts]

    def _choose(self, change: Any) -> None:
        if not self._quiet:
            self.set(**self.presets[change["new"]])

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        data["text/plain"] = self.panel.words
        data["text/html"] = self.static_html()
        return bundle


def _row(*boxes: Any) -> Any:
    """What stands side by side as far as there is room."""
    return widgets.Box(boxes, layout=_ROW | {"flex": "1 1 100%"})


def _button(act: Callable[..., None], label: str, change: Values) -> Any:
    """An offer: a click sets its values."""
    button = widgets.Button(description=label, layout={"width": "auto"})
    button.tooltip = f"Set {label}."
    button.on_click(lambda _: act(**change))
    return button
