"""What paper shows of a picture that moves: two of its settings, side by side.

A play goes as far as its middle and its end; any other picture stands beside itself with
one thing changed. A handle's own `book` says so where another pair tells more. A chapter's
page has them before each handle, hidden from a screen: 4 to 13 kB, compressed.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from book import chapter_pages
from markup import parse, read
from pdf import CROP, served

from llmtrain_course.kit.drawing import CARD
from llmtrain_course.kit.panel import Control, Handle, Value, Values
from llmtrain_course.panels import HANDLES
from llmtrain_helpers.units import find_unit

TALL = 1.7
"""From this height over its width on, two drawings for a telephone fill too much of a page."""


def add_frames(site: Path) -> None:
    """Put both settings before each handle of a chapter, cropped to what they draw."""
    with served(site) as (browser, address):
        printed = browser.new_page(service_workers="block")
        printed.emulate_media(media="print")
        for path in chapter_pages(site):
            page = read(path)
            for handle in page.select(".live-handle"):
                handle.insert_before(parse(frames(handle["data-word"].removeprefix("handle:"))))
            path.write_text(str(page), "utf-8")
            printed.goto(f"{address}/notebooks/{path.name}")
            printed.evaluate("document.fonts.ready")
            printed.evaluate(CROP)
            cropped = printed.locator(".frames").evaluate_all("all => all.map(x => x.outerHTML)")
            for pictures, html in zip(page.select(".frames"), cropped, strict=True):
                pictures.replace_with(parse(html))
            path.write_text(str(page), "utf-8")


def pair(name: str) -> tuple[Values, Values]:
    """The values of a handle's two frames."""
    handle = HANDLES[name]
    first, second = handle.book or by_rule(handle)
    return {**handle.default, **first}, {**handle.default, **second}


def by_rule(handle: Handle) -> tuple[Values, Values]:
    """The middle and the end of what plays; else the start, and the last control's other end."""
    for name, control in handle.controls.items():
        if control.play:
            last = control.field_state(handle.default[name], handle.setting(handle.default)).last
            return {name: control.stops[last // 2]}, {name: control.stops[last]}
    *_, (name, control) = handle.controls.items()
    return {}, {name: other_end(control, handle.default[name])}


def other_end(control: Control, value: Value) -> Value:
    """The end of a control where it does not stand."""
    if control.kind == "flag":
        return not value
    ends = (control.options or control.stops)[:: -1 if control.options else 1]
    return ends[0] if ends[0] != value else ends[-1]


def frames(name: str) -> str:
    """A handle's two settings, each with its picture and the sentence below it."""
    narrow = HANDLES[name].on_telephone
    drawn = [frame(narrow, values) for values in pair(name)]
    box = parse(drawn[0]).svg["viewbox"].split()
    if float(box[3]) < TALL * float(box[2]):
        return f'<div class="frames">{"".join(drawn)}</div>'
    drawn = [frame(HANDLES[name], values) for values in pair(name)]
    return f'<div class="frames stacked">{"".join(drawn)}</div>'


def setting_of(control: Control, value: Value) -> str:
    """Say what a control is set to, and nothing of a switch that is off."""
    if control.kind == "flag":
        return control.label if value else ""
    unit = find_unit(control.unit) if control.unit else ""
    if unit and not isinstance(value, str) and unit == find_unit(control.label.partition(" ")[0]):
        return f"{control.label} {control.write(value)}"  # the label says the unit
    return (
        f"{control.label}: {control.zero}" if not value and control.zero else control.caption(value)
    )


def frame(handle: Handle, values: Values) -> str:
    """One setting: the picture, what is set, the sentence."""
    page = parse(handle.answer(values).html)
    for knob in page.select(f'circle[data-moves][fill="{CARD}"]'):
        knob.decompose()
    captions = (
        setting_of(handle.controls[each], values[each]) for each in handle.visible_controls(values)
    )
    setting = " · ".join(filter(None, captions))
    sentences = "".join(f"<p>{words.decode_contents()}</p>" for words in page.select("p"))
    return (
        f'<div class="frame">{"".join(map(str, page.select("svg")))}'
        f'<p class="setting">{escape(setting)}</p>{sentences}</div>'
    )
