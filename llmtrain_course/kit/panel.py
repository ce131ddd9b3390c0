"""What a panel is: controls, presets and a pure drawing of their values, as data.

The standard library alone, so that a panel runs wherever Python does. `notebook` shows
a panel with ipywidgets. A face keeps the values, asks `Panel.answer` what to show, and
computes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from html import escape, unescape
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

import llmtrain_helpers
from llmtrain_course.kit.drawing import Drawing, as_images, keep_dollars
from llmtrain_course.kit.layout import PAGE, PHONE
from llmtrain_helpers import units
from llmtrain_helpers.checks import show
from llmtrain_helpers.results import Breakdown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = str | float | bool
"""What one control can say."""

Values = Mapping[str, Value]
"""What the controls of a panel say, by their names."""

_S = TypeVar("_S", bound="DataclassInstance")


def changed(setting: _S, change: Values) -> _S:
    """A setting with some of its values changed, by the names of their controls."""
    return replace(setting, **change)


_HUGE = 10**17
"""From here on a number is written with its power of ten."""


@dataclass(frozen=True)
class Control:
    """An input to set: its label, a sentence of help, and what it takes.

    `kind` is "number", "choice", "flag" or "text". A number lies between `least` and
    `most`, and is whole unless `whole` is false; with `stops` it has a slider beside
    its field. `more` folds it away, `applies` says for which setting it is shown, and a
    `view` only turns the picture: the preset stays the same. What is to `lead` stands
    above the sliders: it decides which there are. What is `about` others begins again
    when one of them changes. A text may have several `lines`; `zero` says what 0 means.
    `reach` is the last stop that a setting has, where not every setting has them all:
    what lies beyond counts as that one. With `play` a button moves it stop by stop. If
    there's nothing `between` its stops, a handle shows the nearest one, and the field says so.
    """

    label: str
    help: str
    kind: str = "number"
    unit: str = ""
    least: float = 1
    most: float = 1e12
    whole: bool = True
    stops: tuple[float, ...] = ()
    options: tuple[Value, ...] = ()
    more: bool = False
    view: bool = False
    lead: bool = False
    about: tuple[str, ...] = ()
    lines: int = 1
    zero: str = ""
    play: bool = False
    between: bool = True
    reach: Callable[..., float] | None = field(default=None, repr=False)
    applies: Callable[..., bool] = field(default=lambda setting: True, repr=False)

    def read(self, written: Value) -> Value:
        """Read the value that a learner wrote; ValueError in the panel's words if it isn't one."""
        if self.kind == "text":
            return str(written)
        if self.kind != "number":  # as a link has it too, where all is text
            choices = {str(option): option for option in self.options or (False, True)}
            if str(written) not in choices:
                raise ValueError(f"{self.label}: {show(written)} isn't one of its choices.")
            return choices[str(written)]
        try:
            read = units.read_as(self._without_label(written), self._asked)
        except ValueError as error:
            raise ValueError(self._no_number(written, error)) from None
        value = read.number
        bare = self.unit == "%" and isinstance(written, str) and not read.unit
        if bare and 0 < value < 1:  # a share: 0.337 is 33.7%, and is said back
            value = round(100 * value, 10)
        elif read.message and not self.whole:  # of another unit; its field is short
            value = float(f"{value:.6g}")
        if self.whole and value % 1:
            raise ValueError(f"{self.label}: {show(written)} isn't a whole number.")
        if not self.least <= value <= self.most:
            raise ValueError(self._outside(written))
        return int(value) if self.whole else value

    @property
    def _asked(self) -> str:
        """The unit of the number, or of the label, as `units` reads it; "" for none there."""
        words = (self.unit, self.unit.partition(" ")[0], self.label)
        return next(filter(None, map(units.find_unit, words)), "")

    def _without_label(self, written: Value) -> Value:
        """What stands before words that are no unit: `5 at a time`, `20 ms per sequence`."""
        if not isinstance(written, str):
            return written
        text = written.strip()
        first, _, rest = self.unit.partition(" ")
        also = rest.replace("per ", "a ", 1)  # people write both
        for word in (self.unit, first, rest, also, self.label, self.label.lower()):
            if word and not units.find_unit(word) and text.endswith(word) and text != word:
                return text.removesuffix(word).strip()
        return written

    def _no_number(self, written: Value, error: ValueError) -> str:
        """Why a text isn't a number, with the numbers that would do."""
        if re.fullmatch(r"\s*[+-]?[\d.]+e[+-]?\d{2,}\s*", str(written)):
            return self._outside(written)  # it is one, but more than a float holds
        if other := re.search("these are .*", str(error)):
            return f"{self.label}: {other[0]}."
        hint = str(error).partition(" isn't a number: ")[2]
        if "commas" not in hint:
            span = f"{self.write(self.least)} to {self.write(self.most)} {self.unit}"
            hint = f"write one from {span.rstrip()}"
        return f"{self.label}: {show(written)} isn't a number; {hint}."

    def _outside(self, written: Value) -> str:
        unit = "%" if self.unit == "%" else ""
        span = f"{self.write(self.least)}{unit} to {self.write(self.most)}{unit}"
        if units.UNITS.get(units.find_unit(self.unit)) in ("time", "memory"):
            span += f" {self.unit}"  # of several that may be written
        if unit and self.least < 1:
            span += "; a number below 1 without a % is a share, so 0.5 is 50%"
        if self.least >= 10**6 and str(written).isdecimal() and int(written) < 10**4:
            span += f"; for billions write {written}B"
        return f"{self.label}: {show(written)} is outside {span}."

    def write(self, value: float) -> str:
        """A number as its field shows it: `8`, `300B`, and past all names `1e39`."""
        if abs(value) < _HUGE:
            return units.short(int(value) if value == int(value) else value)
        return f"{value:.10g}".replace("e+", "e")

    def typed(self, value: float) -> str:
        """A number as `read` takes it back: with its % where it would be read as a share."""
        small = self.unit == "%" and 0 < value < 1
        return f"{self.write(value)}%" if small else self.write(value)

    def caption(self, value: Value) -> str:
        """The label and a value: `Loading 20 ms per sequence`."""
        if self.kind == "flag":
            return f"{self.label}: {'yes' if value else 'no'}"
        if self.kind == "number" and not isinstance(value, str):
            return f"{self.label} {self._with_unit(self.write(value))}"
        return f"{self.label} {value}".rstrip()

    def echo(self, value: float) -> str:
        """What was understood: `= 300 billion tokens`."""
        if not value and self.zero:
            return f"= {self.zero}"
        if abs(value) >= _HUGE:
            number = self.write(value)
        elif abs(value) >= 1e6:
            number = units.edited(value)
        else:
            number = units.exact(value) if self.whole else f"{value:,.10g}"
        return f"= {self._with_unit(number)}"

    def _with_unit(self, number: str) -> str:
        """Put the unit behind a number; a percent sign follows without a space."""
        return f"{number}{'' if self.unit == '%' else ' '}{self.unit}".rstrip()

    def field_state(self, value: Value, setting: DataclassInstance) -> FieldState:
        """Return what a value's field shows in a setting."""
        if self.kind != "number" or isinstance(value, str):
            return FieldState(value)
        end = self.reach(setting) if self.reach else self.most
        last = self.nearest_stop(end) if self.stops else -1
        value = min(value, end)
        text, echo = self.typed(value), self.echo(value)
        if value != self.drawn(value):
            echo = f"{self.typed(self.drawn(value))} is the nearest"
        elif self.reach and not (self.zero and not value):
            echo = f"of {self.write(end)}"
        on_slider = self.stops and (value or self.stops[0] <= 0)
        place = self.nearest_stop(value) if on_slider else None
        unit_in_label = self.unit in self.label.lower().split()
        repeats = echo == f"= {text}" or (unit_in_label and echo == f"= {self._with_unit(text)}")
        return FieldState(text, "" if repeats else echo, place, last)

    def drawn(self, value: Value) -> Any:
        """Return what a handle shows for a value: the nearest stop if nothing is `between` them."""
        return value if self.between else self.stops[self.nearest_stop(cast(float, value))]

    @property
    def longest(self) -> int:
        """Letters of the longest number that a slider writes into the field."""
        return max((len(self.typed(stop)) for stop in self.stops), default=0)

    def nearest_stop(self, value: float) -> int:
        """The place of the slider's nearest stop: in ratio, where all are above 0."""
        if self.stops[0] <= 0:
            distances = [abs(stop - value) for stop in self.stops]
        else:
            distances = [max(stop / value, value / stop) for stop in self.stops]
        return distances.index(min(distances))


def pace(last: int) -> int:
    """Milliseconds from one stop to the next while a control plays, with an end in sight.

    >>> pace(8), pace(126)
    (700, 158)
    """
    return min(700, 20_000 // max(last, 1))


class FieldState(NamedTuple):
    """A field: its text, what was understood, its slider's place and last place."""

    text: Value
    echo: str = ""
    place: int | None = None
    last: int = -1


class WordedError(ValueError):
    """A refusal in words that stay as they are; nothing is offered in its place."""


Offer = tuple[str, Values]
"""A change that can be taken: what it does, and the values that it sets."""


@dataclass(frozen=True)
class Answer:
    """What a face shows: HTML, or why there is none; and changes that can be taken.

    Offers fix a `problem`, and stand before the last picture; without one they are
    advice, behind the picture.
    """

    html: str
    problem: str = ""
    offers: tuple[Offer, ...] = ()


@dataclass(frozen=True)
class Panel:
    """Labelled controls, named settings (the first is the default), and a drawing.

    A setting is a frozen dataclass with a field for each control. `static_presets` are the two
    that a saved page shows beside the default. `draw` takes a setting and the one
    before it, if any, and a `width`, and is pure: the same settings, the same HTML, or an
    `Answer` that has offers too. With `captioned` each saved picture says its setting.
    """

    title: str
    controls: Mapping[str, Control]
    settings: Mapping[str, DataclassInstance]
    static_presets: tuple[str, ...]
    draw: Callable[..., str | Answer]
    width: int = PAGE
    captioned: bool = False

    @cached_property
    def presets(self) -> dict[str, dict[str, Value]]:
        """The settings to begin with, by their names, as values of the controls."""
        return {name: asdict(setting) for name, setting in self.settings.items()}

    @property
    def default(self) -> Values:
        """The values that a panel begins with."""
        return next(iter(self.presets.values()))

    @property
    def on_telephone(self) -> Self:
        """The same, drawn for a phone."""
        return replace(self, width=PHONE)

    def setting(self, values: Values) -> DataclassInstance:
        """The default's setting with these values in it."""
        return changed(next(iter(self.settings.values())), values)

    def visible_controls(self, values: Values) -> list[str]:
        """Return the names of the controls that apply to these values."""
        setting = self.setting(values)
        return [name for name, control in self.controls.items() if control.applies(setting)]

    def is_preset(self, name: str, values: Values) -> bool:
        """Whether these values are the preset's, however they are looked at."""
        preset = self.presets[name]
        return all(self.controls[x].view or preset[x] == value for x, value in values.items())

    def render(self, before: Values | None = None, **values: Value) -> str:
        """The panel's answer as HTML; a ValueError of the formula as it is."""
        return self._drawn(values, before).html

    def _drawn(self, values: Values, before: Values | None) -> Answer:
        old = None if before is None else self.setting(before)
        picture = self.draw(self.setting(values), old, width=self.width)
        return picture if isinstance(picture, Answer) else Answer(picture)

    def answer(self, values: Values, before: Values | None = None) -> Answer:
        """The picture, or the refusal in the panel's words, with what would do."""
        try:
            return self._drawn(values, before)
        except WordedError as error:
            return Answer("", str(error))
        except ValueError as error:
            offers = tuple(self._offers(values, str(error)))
            return Answer("", self.in_words(str(error)), offers)

    def in_words(self, problem: str) -> str:
        """A formula's refusal with the labels of controls for arguments' names."""
        for name in sorted(self.controls, key=len, reverse=True):
            label = self.controls[name].label
            problem = re.sub(rf"\b{name}=", f"{label} ", problem)
            if "_" in name:  # others are ordinary words too
                problem = re.sub(rf"\b{name}\b", label, problem)
        for name in ("num_layers", "num_heads", "num_kv_heads", "num_experts"):
            plural = rf"the model's \1 {NAMES[name]} aren't"
            problem = re.sub(rf"\b{name}=(\d+) is not\b", plural, problem)
        for name, word in NAMES.items():
            problem = re.sub(rf"\b{name}(=|\b)", f"{word} ", problem).replace(" ·", "·")
        return problem[:1].upper() + problem[1:].rstrip(".") + "."

    def _offers(self, values: Values, problem: str) -> Iterator[Offer]:
        """The nearest values that would do, of each control that the refusal names.

        Of a number the nearest below and the nearest above; of a short list all, where
        nothing else is named.
        """
        named = [
            name for name in self.visible_controls(values) if re.search(rf"\b{name}\b", problem)
        ]
        for name in named:
            control, value = self.controls[name], values[name]
            if control.kind == "number" and not isinstance(value, str):
                numbers = _near(control, value)
                below = [x for x in numbers if x < value]
                above = [x for x in numbers if x > value]
                for side in (below, above):
                    # each try draws the whole panel, so that few are tried
                    near = next((x for x in side[:20] if self._draws(values, name, x)), None)
                    if near is not None:
                        yield f"{control.label}: {units.short(near)}", {name: near}
            elif named == [name] and len(control.options) <= 8:
                for option in control.options:
                    if option != value and self._draws(values, name, option):
                        yield f"{control.label}: {option}", {name: option}

    def _draws(self, values: Values, name: str, value: Value) -> bool:
        """Whether there is a picture with this value of a control."""
        try:
            self._drawn({**values, name: value}, None)
        except ValueError:
            return False
        return True

    @property
    def words(self) -> str:
        """The panel where nothing but text can be shown."""
        return f"Panel: {self.title}"

    def static_html(self) -> str:
        """Return the panel for a page without a kernel: its default, two others folded."""
        names = [next(iter(self.presets)), *self.static_presets]
        first, *others = (f"<h3>{escape(name)}</h3>{self._saved(name)}" for name in names)
        note = "As saved. Run the cell above to change it."
        more = f"<summary>Two more settings</summary>{''.join(others)}"
        page = f"<p><b>{escape(self.title)}</b> {note}</p>{first}<details>{more}</details>"
        return keep_dollars(page)

    def _saved(self, preset: str) -> str:
        """A preset's picture as images, which a page's sanitizer keeps, and its caption."""
        values, caption = self.presets[preset], ""
        if self.captioned:
            controls = {name: self.controls[name] for name in self.visible_controls(values)}
            words = [x.caption(values[name]) for name, x in controls.items() if not x.view]
            caption = f"<p>{escape(' · '.join(words))}</p>"
        answer = self.answer(values)
        if not answer.html:
            return caption + warning(answer.problem)
        offers = "".join(f"<li>{escape(label)}</li>" for label, _ in answer.offers)
        return caption + as_images(answer.html) + (f"<ol>{offers}</ol>" if offers else "")


@dataclass(frozen=True, kw_only=True)
class Handle(Panel):
    """The smallest panel: one picture that one to three controls move, and a sentence.

    It begins with its one setting, and has no title to read: `title` names it where it
    cannot be seen. `draw` gives what `pictured` makes. `book` has what changes in each of
    the two frames that paper shows, where the rule of `site/frames.py` shows less.
    """

    settings: Mapping[str, DataclassInstance]
    static_presets: tuple[str, ...] = ()
    book: tuple[Values, Values] | None = None

    @property
    def words(self) -> str:
        """The words of its picture as it begins, and the sentence."""
        html = self.render()
        words = [unescape(label) for label in re.findall(r'<svg [^>]*?aria-label="(.*?)"', html)]
        caption = re.sub(r"<svg .*?</svg>", "", html, flags=re.DOTALL)
        return " ".join([*words, unescape(re.sub(r"<.*?>", "", caption))])

    def static_html(self) -> str:
        """Return the first picture, as images, and the sentence below it."""
        return keep_dollars(as_images(self.render()))


NAMES = {
    "data_parallel": "replicas",
    "num_layers": "layers",
    "num_heads": "attention heads",
    "num_kv_heads": "key-value heads",
    "sequence_length": "sequence",
    "global_batch_size": "batch",
    "num_experts": "experts",
}
"""Names in refusals that aren't controls of a panel, in words."""


def _near(control: Control, value: float) -> list[float]:
    """Numbers worth offering, the nearest first: stops, powers of two, neighbours."""
    powers = [2**k for k in range(24)]
    eights = [8 * (value // 8 + k) for k in range(-4, 6)]
    neighbours = [value + k for k in range(-8, 9)]
    numbers = {x for x in [*control.stops, *powers, *eights, *neighbours] if x != value}
    allowed = [x for x in numbers if max(control.least, 1e-9) <= x <= control.most]
    if control.whole:
        allowed = [int(x) for x in allowed if not x % 1]
    return sorted(allowed, key=lambda x: max(x / max(value, 1), max(value, 1) / x))


def sentence(text: str) -> str:
    """The result, which comes first. May hold <b>."""
    return f'<p style="font-size:20px;margin:10px 0px">{text}</p>'


def pictured(drawing: Drawing, caption: str) -> str:
    """Return what a handle shows: its picture, and a caption below it, which may have <b>.

    The caption has room for a second line, so that nothing below it jumps.
    """
    style = "font-size:17px;line-height:1.4;min-height:2.8em;margin:6px 0px 0px;max-width:640px"
    return f'{drawing.inline_svg()}<p style="{style}">{caption}</p>'


def warning(text: str) -> str:
    """A refusal, in words."""
    style = "border-left:5px solid #B34700;padding:6px 12px;margin:10px 0px;font-size:17px"
    return f'<p style="{style}"><b>⚠ Not possible.</b> {escape(text)}</p>'


def folded(title: str, html: str) -> str:
    """Details under a title, folded away until the reader opens them."""
    style = "margin:8px 0px;font-size:15px"
    return f'<details style="{style}"><summary>{escape(title)}</summary>{html}</details>'


WORDS = {
    "mlp": "MLP",
    "head": "output head",
    "norm": "norms",
    "main_weights": "main weights",
    "main_gradients": "main gradients",
    "transient": "logits",
}
"""The words of parts whose names are identifiers."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table: the first column to the left, figures to the right."""
    style = "border-collapse:collapse;margin:10px 0px;font-size:15px"
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return f'<table style="{style}">{"".join(lines)}</table>'


def _row(tag: str, cells: Sequence[str]) -> str:
    row = ""
    for column, cell in enumerate(cells):
        kind = tag if cell else "td"  # an empty head names nothing
        style = f"padding:3px 14px 3px 0px;text-align:{'right' if column else 'left'}"
        row += f'<{kind} style="{style}">{escape(cell)}</{kind}>'
    return f"<tr>{row}</tr>"


def shares(
    whole: Breakdown[int] | Breakdown[float], unit: Callable[[float], str]
) -> list[list[str]]:
    """The rows of a table: each part, its size and its share, and the total."""
    rows = [
        [WORDS.get(name, name), unit(size), units.percent(whole.shares()[name])]
        for name, size in whole.parts().items()
    ]
    return [*rows, ["total", unit(whole.total), units.percent(1)]]


def call(code: str, *imports: str) -> str:
    """The call that gives the same answer in code, ready to copy.

    What the package offers by name is imported above it; `imports` are further lines.
    """
    assigned = re.findall(r"^(\w+) =", code, re.MULTILINE)
    offered = {"published", *llmtrain_helpers.__all__}.difference(assigned)
    used = sorted(offered.intersection(_CALLED.findall(code)))
    ours = [f"from llmtrain_helpers import {', '.join(used)}"] if used else []
    lines = "\n".join([*ours, *imports, code])
    style = "white-space:pre-wrap;word-break:normal;font-size:14px;margin:6px 0px"
    return f'<pre style="{style}">{escape(lines)}</pre>'


_CALLED = re.compile(r"(?<![.\w])([A-Za-z_]\w*)(?=[.(\[])")
"""A name in code that is called, indexed or asked for an attribute."""


def in_code(number: float) -> str:
    """A number as code has it: `300e9` rather than twelve digits.

    >>> in_code(300_000_000_000), in_code(10**12), in_code(8192), in_code(2.5)
    ('300e9', '1e12', '8192', '2.5')
    """
    for size in (12, 9, 6):
        if isinstance(number, int) and number and number % 10**size == 0:
            return f"{number // 10**size}e{size}"
    return f"{number:.10g}" if isinstance(number, float) else f"{number}"
