"""What the panels of all chapters share.

A panel has three layers: the formula; a pure `render(**values)` that returns HTML; and
the `Panel`, which gathers the values of its controls and shows what `render` returns.
In a saved notebook the panel leaves the same HTML for its default and for two telling
alternatives, so that it can be read where no kernel runs. The pictures are coloured
`<div>`s: they follow the page's theme and width, and survive JupyterLab's sanitizer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import cycle
from typing import Any

import ipywidgets as widgets

from llmtrain_helpers import published, units
from llmtrain_helpers.architecture import Breakdown
from llmtrain_helpers.figures.common import BLUE, GREEN, PURPLE, VERMILION

PALETTE = [BLUE, VERMILION, GREEN, PURPLE, "#8A7A00", "#A0522D", "#4B4BC8"]
GREY = "#6B6B6B"

OWN = "your own"
"""The name of the preset while the controls agree with none."""

_CSS = """<style>
.llmtrain-panel .widget-label, .llmtrain-panel .widget-dropdown select,
.llmtrain-panel .widget-text input, .llmtrain-panel .widget-checkbox label,
.llmtrain-panel .jupyter-button { font-size: 15px; }
.llmtrain-panel .widget-label { height: auto; line-height: 1.4; white-space: normal; }
.llmtrain-panel .widget-html-content { line-height: 1.4; font-size: 15px; }
.llmtrain-panel .widget-html > .widget-label { display: none; }
.llmtrain-panel input:focus-visible, .llmtrain-panel select:focus-visible,
.llmtrain-panel button:focus-visible { outline: 3px solid #0072B2; }
</style>"""


class Panel(widgets.VBox):
    """Labelled controls above the HTML that `render` makes of their values.

    `presets` are named sets of values, the first of them the default; `stills` are the
    two alternatives that a saved notebook shows beside it. A ValueError from `render`
    is shown in its own words, and the panel goes on working.
    """

    def __init__(
        self,
        title: str,
        controls: Mapping[str, widgets.Widget],
        render: Callable[..., str],
        presets: Mapping[str, Mapping[str, Any]],
        stills: Sequence[str],
    ) -> None:
        self.title, self.controls, self._render = title, dict(controls), render
        self.presets, self._stills = dict(presets), list(stills)
        self.preset = dropdown("Start from", [*self.presets, OWN])
        self.reset = widgets.Button(description="Reset", layout={"width": "90px"})
        self.output = widgets.HTML()
        self._setting = False
        grid = widgets.Box([*self.controls.values()], layout=_WRAPPED)
        chooser = widgets.Box([self.preset, self.reset], layout=_WRAPPED)
        super().__init__([widgets.HTML(_CSS), chooser, grid, self.output])
        self.add_class("llmtrain-panel")
        self.output.add_class("llmtrain-answer")
        self.preset.observe(self._choose, "value")
        self.reset.on_click(
            lambda _: self.set(**self.presets[next(iter(self.presets))])
        )
        for control in self.controls.values():
            control.observe(self.refresh, "value")
        self.set(**self.presets[next(iter(self.presets))])

    def set(self, **values: Any) -> None:
        """Set several controls, and redraw once."""
        self._setting = True
        try:
            for name, value in values.items():
                self.controls[name].value = value
        finally:
            self._setting = False
        self.refresh()

    def values(self) -> dict[str, Any]:
        """What the controls say now."""
        return {name: control.value for name, control in self.controls.items()}

    def refresh(self, _change: Any = None) -> None:
        """Show what `render` makes of the controls' values."""
        if self._setting:
            return
        values = self.values()
        names = (name for name, preset in self.presets.items() if preset == values)
        self._setting = True
        self.preset.value = next(names, OWN)
        self._setting = False
        self.output.value = self._safely(values)

    def _choose(self, change: Any) -> None:
        if change["new"] != OWN and not self._setting:
            self.set(**self.presets[change["new"]])

    def _safely(self, values: Mapping[str, Any]) -> str:
        try:
            return self._render(**values)
        except ValueError as error:
            return warning(str(error))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        data |= {"text/plain": f"Panel: {self.title}", "text/html": self.still()}
        return bundle

    def still(self) -> str:
        """The panel for a page without a kernel: its default and its alternatives."""
        names = [next(iter(self.presets)), *self._stills]
        pictures = [
            f"<h4>{escape(name)}</h4>{self._safely(self.presets[name])}"
            for name in names
        ]
        note = "Three settings, as saved. Run the cell above to change them."
        return f"<p><b>{escape(self.title)}</b> {note}</p>{''.join(pictures)}"


_WRAPPED = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "2px 18px"}
_LABELLED = {"description_width": "initial"}


def dropdown(label: str, options: Sequence[Any]) -> widgets.Dropdown:
    """A list to choose from, with its label in full."""
    layout = {"width": "max-content", "min_width": "260px"}
    return widgets.Dropdown(
        description=label, options=options, style=_LABELLED, layout=layout
    )


def whole(label: str, least: int, most: int, step: int = 1) -> widgets.BoundedIntText:
    """A whole number to type or to step through with the arrow keys.

    A browser steps from the least value on, so larger steps start from 0.
    """
    return widgets.BoundedIntText(
        value=least,
        min=least if step == 1 else 0,
        max=most,
        step=step,
        description=label,
        style=_LABELLED,
        layout={"width": "270px"},
    )


def number(label: str, least: float, most: float, step: float) -> Any:
    """A number to type or to step through with the arrow keys."""
    return widgets.BoundedFloatText(
        value=least,
        min=least,
        max=most,
        step=step,
        description=label,
        style=_LABELLED,
        layout={"width": "270px"},
    )


def models() -> widgets.Dropdown:
    """The published models."""
    return dropdown("Model", published.architectures()["name"].tolist())


def accelerators() -> widgets.Dropdown:
    """The published accelerators."""
    return dropdown("Accelerator", published.accelerators()["name"].tolist())


def checkbox(label: str) -> widgets.Checkbox:
    """A yes or no."""
    return widgets.Checkbox(
        description=label, indent=False, style=_LABELLED, layout={"width": "270px"}
    )


def sentence(text: str) -> str:
    """The result, which comes first. May hold <b>."""
    return f'<p style="font-size:20px;margin:10px 0px">{text}</p>'


def warning(text: str) -> str:
    """A refusal, in the formula's own words."""
    style = (
        "border-left:5px solid #D55E00;padding:6px 12px;margin:10px 0px;font-size:17px"
    )
    return f'<p style="{style}"><b>⚠ Not possible:</b> {escape(text)}</p>'


_BAR = "display:flex;height:28px;line-height:24px"
_SEGMENT = "border-right:1px solid white;color:white;overflow:hidden"
_SEGMENT += ";white-space:nowrap;padding:2px 0px;text-align:center"


def stacked_bars(
    rows: Mapping[str, Mapping[str, float]], unit: Callable[..., str]
) -> str:
    """Bars to one scale, each stacked from named parts that keep their colours.

    A bar of a single part needs no key: the first is blue, others are grey.
    """
    longest = max(sum(parts.values()) for parts in rows.values())
    stacked = [parts for parts in rows.values() if len(parts) > 1]
    names = dict.fromkeys(name for parts in stacked for name in parts)
    keys = dict(zip(names, cycle(PALETTE), strict=False))
    colors = dict.fromkeys(next(iter(rows.values())), BLUE) | keys
    bars = "".join(
        f'<div style="margin:4px 0px">{escape(row)}: {unit(sum(parts.values()))}'
        f'<div style="{_BAR}">{_segments(parts, longest, colors)}</div></div>'
        for row, parts in rows.items()
    )
    told = " ".join(
        '<span style="white-space:nowrap;margin-right:16px">'
        f'<span style="color:{color};font-size:20px">■</span> {escape(name)}</span>'
        for name, color in keys.items()
    )
    return f"<div>{bars}<div>{told}</div></div>"


def _segments(
    parts: Mapping[str, float],
    longest: float,
    colors: Mapping[str, str],
    named: bool = True,
) -> str:
    return "".join(
        f'<div title="{escape(name)}" style="width:{100 * size / longest:.2f}%;'
        f'background-color:{colors.get(name, GREY)};{_SEGMENT}">'
        f"{escape(name) if named and size > 0.09 * longest else ''}</div>"
        for name, size in parts.items()
        if size
    )


def thin_bars(rows: Mapping[str, Mapping[str, float]], unit: Callable[..., str]) -> str:
    """Stacked bars of a line each, in the colours of `stacked_bars`, without a key."""
    longest = max(sum(parts.values()) for parts in rows.values())
    colors = dict(zip(next(iter(rows.values())), cycle(PALETTE), strict=False))
    return "".join(
        '<div style="display:flex;height:20px;line-height:20px;font-size:13px">'
        f'<span style="width:150px">{escape(row)}</span>'
        f'<span style="width:70px">{unit(sum(parts.values()))}</span>'
        '<div style="flex:1;display:flex;margin:2px 0px">'
        f"{_segments(parts, longest, colors, named=False)}</div></div>"
        for row, parts in rows.items()
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table: the first column to the left, figures to the right."""
    style = "border-collapse:collapse;margin:10px 0px;font-size:15px"
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return f'<table style="{style}">{"".join(lines)}</table>'


def shares(whole: Breakdown, unit: Callable[..., str]) -> list[list[str]]:
    """The rows of a table: each part, its size and its share, and the total."""
    rows = [
        [name, unit(size), units.percent(whole.shares()[name])]
        for name, size in whole.parts().items()
    ]
    return [*rows, ["total", unit(whole.total), units.percent(1)]]


def _row(tag: str, cells: Sequence[str]) -> str:
    place = "padding:3px 14px 3px 0px;text-align:"
    aligned = [
        f"{place}{'right' if column else 'left'}" for column in range(len(cells))
    ]
    told = zip(aligned, cells, strict=True)
    inside = "".join(f'<{tag} style="{s}">{escape(c)}</{tag}>' for s, c in told)
    return f"<tr>{inside}</tr>"


def call(code: str) -> str:
    """The call that gives the same answer in code, ready to copy."""
    style = "white-space:pre-wrap;word-break:normal;font-size:14px;margin:6px 0px"
    told = '<p style="margin:10px 0px 0px 0px">The same in code:</p>'
    return f'{told}<pre style="{style}">{escape(code)}</pre>'
