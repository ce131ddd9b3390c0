"""What a panel is: controls, presets and a pure drawing of their values, as data.

The standard library alone, so that a panel runs wherever Python does. `notebook` shows
a panel with ipywidgets. A face keeps the values, asks `Panel.answer` what to show, and
computes nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import cycle
from typing import Any

import llmtrain_helpers
from llmtrain_helpers import units
from llmtrain_helpers.checks import show
from llmtrain_helpers.drawings.common import COLORS, GREY, as_images
from llmtrain_helpers.evidence import published
from llmtrain_helpers.model.layers import Attention, LatentAttention
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.results import Breakdown

Values = Mapping[str, Any]
"""What the controls of a panel say, by their names."""


_HUGE = 10**17
"""Numbers from here on are told by their power of ten."""


@dataclass(frozen=True)
class Control:
    """One thing to set: its label, a sentence of help, and what it takes.

    `kind` is "number", "choice", "flag" or "text". A number lies between `least` and
    `most`, and is whole unless `whole` is false; with `stops` it has a slider beside
    its field. `more` folds it away, `applies` says for which values it is shown, and a
    `view` only turns the picture: the preset stays the same. What is to `lead` stands
    above the sliders: it decides which there are. What is `about` others begins again
    when one of them changes. A text may have several `lines`; `zero` says what 0 means.
    """

    label: str
    help: str
    kind: str = "number"
    unit: str = ""
    least: float = 1
    most: float = 1e12
    whole: bool = True
    stops: tuple[float, ...] = ()
    options: tuple[Any, ...] = ()
    more: bool = False
    view: bool = False
    lead: bool = False
    about: tuple[str, ...] = ()
    lines: int = 1
    zero: str = ""
    applies: Callable[[Values], bool] = field(default=lambda values: True, repr=False)

    def read(self, written: Any) -> Any:
        """The value that somebody wrote; a ValueError in the panel's words if none."""
        if self.kind != "number":
            return self._meant(written)
        number = self._without_unit(written)
        bare = self.unit == "%" and isinstance(written, str) and number == written
        try:
            value = units.read(number)
        except ValueError as error:
            hint = str(error).partition(" is no number: ")[2]
            if re.fullmatch(r"\s*[+-]?[\d.]+e[+-]?\d{2,}\s*", str(written)):
                raise ValueError(self._outside(written)) from None
            if "commas" not in hint:
                hint = f"write one from {self.write(self.least)} to "
                hint += f"{self.write(self.most)} {self.unit}".rstrip()
            raise ValueError(f"{self.label}: {show(written)} is no number; {hint}.") from None
        if bare and 0 < value < 1:  # a share: 0.337 is 33.7 %, and is said back
            value = round(100 * value, 10)
        if self.whole and value % 1:
            raise ValueError(f"{self.label}: {show(written)} is not a whole number.")
        if not self.least <= value <= self.most:
            raise ValueError(self._outside(written))
        return int(value) if self.whole else value

    def _without_unit(self, written: Any) -> Any:
        """What stands before the unit or the label: `20 s`, `5 ms`, `8 GPUs`."""
        if not isinstance(written, str):
            return written
        words = (self.unit, self.unit.partition(" ")[0], self.label, self.label.lower())
        told = written.strip()
        end = next((x for x in words if x and told.endswith(x) and told != x), "")
        return told.removesuffix(end).strip() if end else written

    def _meant(self, written: Any) -> Any:
        """An option, a yes or no, or a text; as a link has it too."""
        if self.kind == "text":
            return str(written)
        known = {str(option): option for option in self.options or (False, True)}
        if str(written) not in known:
            raise ValueError(f"{self.label}: {show(written)} is none of its choices.")
        return known[str(written)]

    def _outside(self, written: Any) -> str:
        unit = " %" if self.unit == "%" else ""
        span = f"{self.write(self.least)}{unit} to {self.write(self.most)}{unit}"
        if unit and self.least < 1:
            span += "; below 1 and without a % it is a share: 0.5 is 50 %"
        if self.least >= 10**6 and str(written).isdecimal() and int(written) < 10**4:
            span += f"; for billions write {written}B"
        return f"{self.label}: {show(written)} lies outside {span}."

    def write(self, value: Any) -> str:
        """A number as its field shows it: `300B`, and past all names `1e39`."""
        if abs(value) < _HUGE:
            return units.short(value)
        return f"{value:.10g}".replace("e+", "e")

    def said(self, value: Any) -> str:
        """The label and a value: `Loading 20 ms a sequence`."""
        if self.kind == "flag":
            return f"{self.label}: {'yes' if value else 'no'}"
        told = f"{self.write(value)} {self.unit}" if self.kind == "number" else value
        return f"{self.label} {told}".rstrip()

    def echo(self, value: Any) -> str:
        """What was understood: `= 300 billion tokens`."""
        if not value and self.zero:
            return f"= {self.zero}"
        if abs(value) >= _HUGE:
            return f"= {self.write(value)} {self.unit}".rstrip()
        exact = units.exact(value) if self.whole else f"{value:,.10g}"
        told = exact if abs(value) < 1e6 else units.count(value)
        return f"= {told} {self.unit}".rstrip()

    def nearest_stop(self, value: float) -> int:
        """The place of the slider's nearest stop: in ratio, where all are above 0."""
        if self.stops[0] <= 0:
            far = [abs(stop - value) for stop in self.stops]
        else:
            far = [max(stop / value, value / stop) for stop in self.stops]
        return far.index(min(far))


class WordedError(ValueError):
    """A refusal in words that stay as they are; nothing is offered in its place."""


Offer = tuple[str, Values]
"""A change that can be taken: what it does, and the values that it sets."""


@dataclass(frozen=True)
class Answer:
    """What a face shows: HTML, or why there is none; and changes that can be taken.

    Offers mend a `problem`, and stand before the last picture; without one they are
    advice, behind the picture.
    """

    html: str
    problem: str = ""
    offers: tuple[Offer, ...] = ()


@dataclass(frozen=True)
class Panel:
    """Labelled controls, named presets (the first is the default), and a drawing.

    `stills` are the two presets that a saved page shows beside the default. `draw` is
    pure: the same values, the same HTML, or an `Answer` that has offers beside it;
    `narrow` draws the same for a telephone, where there is such a drawing. With `told`
    each saved picture says its settings.
    """

    title: str
    controls: Mapping[str, Control]
    presets: Mapping[str, Values]
    stills: tuple[str, str]
    draw: Callable[..., str | Answer]
    narrow: Callable[..., str | Answer] | None = None
    told: bool = False

    @property
    def default(self) -> Values:
        """The values that a panel begins with."""
        return next(iter(self.presets.values()))

    def shown(self, values: Values) -> list[str]:
        """The controls that apply to these values."""
        return [name for name, one in self.controls.items() if one.applies(values)]

    def is_preset(self, name: str, values: Values) -> bool:
        """Whether these values are the preset's, however they are looked at."""
        kept = {x: y for x, y in values.items() if not self.controls[x].view}
        return kept.items() <= dict(self.presets[name]).items()

    def render(self, before: Values | None = None, **values: Any) -> str:
        """The panel's answer as HTML; a ValueError of the formula as it is."""
        return self._drawn(before, values).html

    def _drawn(self, before: Values | None, values: Values) -> Answer:
        drawn = self.draw(before=before, **{**self.default, **values})
        return drawn if isinstance(drawn, Answer) else Answer(drawn)

    def answer(self, values: Values, before: Values | None = None) -> Answer:
        """The picture, or the refusal in the panel's words, with what would do."""
        try:
            return self._drawn(before, values)
        except WordedError as error:
            return Answer("", str(error))
        except ValueError as error:
            problem = self.in_words(str(error))
            return Answer("", problem, tuple(self._offers(values, str(error))))

    def in_words(self, problem: str) -> str:
        """A formula's refusal with the labels of controls for arguments' names."""
        for name in sorted(self.controls, key=len, reverse=True):
            label = self.controls[name].label
            problem = re.sub(rf"\b{name}=", f"{label} ", problem)
            if "_" in name:  # others are ordinary words too
                problem = re.sub(rf"\b{name}\b", label, problem)
        for name, word in NAMES.items():
            problem = re.sub(rf"\b{name}(=|\b)", f"{word} ", problem).replace(" ·", "·")
        return problem[:1].upper() + problem[1:].rstrip(".") + "."

    def _offers(self, values: Values, problem: str) -> Iterator[Offer]:
        """Of each number in the refusal, the nearest that would do, below and above."""
        named = [n for n in self.shown(values) if re.search(rf"\b{n}\b", problem)]
        for name in named:
            control = self.controls[name]
            if control.kind != "number":
                if named == [name] and len(control.options) <= 8:
                    yield from self._choices(values, name)
                continue
            now, known = values[name], _near(control, values[name])
            for side in ([x for x in known if x < now], [x for x in known if x > now]):
                near = (x for x in side[:20] if self._does(values, name, x))
                value = next(near, None)
                if value is not None:
                    yield f"{control.label}: {units.short(value)}", {name: value}

    def _choices(self, values: Values, name: str) -> Iterator[tuple[str, Values]]:
        """The other options of a short list that would do."""
        for option in self.controls[name].options:
            if option != values[name] and self._does(values, name, option):
                yield f"{self.controls[name].label}: {option}", {name: option}

    def _does(self, values: Values, name: str, value: Any) -> bool:
        try:
            self.render(**{**values, name: value})
        except ValueError:
            return False
        return True

    def still(self) -> str:
        """The panel for a page without a kernel: its default, two others folded."""
        names = [next(iter(self.presets)), *self.stills]
        first, *others = (
            f"<h3>{escape(name)}</h3>{self._settings(self.presets[name])}"
            f"{self.in_a_page(self.presets[name])}"
            for name in names
        )
        note = "As saved. Run the cell above to change it."
        more = f"<summary>Two more settings</summary>{''.join(others)}"
        return f"<p><b>{escape(self.title)}</b> {note}</p>{first}<details>{more}</details>"

    def _settings(self, values: Values) -> str:
        """The values that a saved picture was drawn for, in a line."""
        shown = {x: self.controls[x] for x in self.shown(values)}
        said = [x.said(values[name]) for name, x in shown.items() if not x.view]
        return f"<p>{escape(' · '.join(said))}</p>" if self.told else ""

    def in_a_page(self, values: Values) -> str:
        """The answer with its drawings as images, which a page's sanitizer keeps."""
        answer = self.answer(values)
        if not answer.html:
            return warning(answer.problem)
        told = "".join(f"<li>{escape(label)}</li>" for label, _ in answer.offers)
        return as_images(answer.html) + (f"<ol>{told}</ol>" if told else "")


NAMES = {
    "data_parallel": "replicas",
    "num_layers": "layers",
    "num_heads": "attention heads",
    "num_kv_heads": "key-value heads",
    "sequence_length": "sequence",
    "global_batch_size": "batch",
    "num_experts": "experts",
}
"""What a refusal may name that is no control of a panel, in words."""


def check_replicas(model: Transformer, chosen: Values) -> None:
    """Refuse a split that makes no whole replicas, or ones that cannot share a batch.

    In an order and in words that name what can be changed.
    """
    n, b, B = (chosen[x] for x in ("num_gpus", "micro_batch_size", "global_batch_size"))
    sizes = {x: chosen[x] for x in _REPLICA}
    t, each = sizes["tensor_parallel"], math.prod(sizes.values())
    if model.num_heads % t:
        heads = f"the model's {model.num_heads} attention heads"
        raise ValueError(f"tensor_parallel={t} does not divide {heads}")
    if n % each:
        ways = " × ".join(f"{x}={size}" for x, size in sizes.items() if size > 1)
        whole = f" = {each}" if "×" in ways else ""
        raise ValueError(f"num_gpus={n} make no whole number of replicas: each takes {ways}{whole}")
    if B % (b * (n // each)):
        raise ValueError(
            f"global_batch_size={B} is not divisible by {n // each:,} replicas, which "
            f"num_gpus={n} make, times micro_batch_size={b}"
        )


_REPLICA = ("tensor_parallel", "pipeline_parallel", "context_parallel")
"""What multiplies to the GPUs of a replica."""


def _near(control: Control, value: float) -> list[Any]:
    """Numbers worth offering, the nearest first: stops, powers of two, neighbours."""
    powers = [2**k for k in range(24)]
    eights = [8 * (value // 8 + k) for k in range(-4, 6)]
    close = [value + k for k in range(-8, 9)]
    known = {x for x in [*control.stops, *powers, *eights, *close] if x != value}
    fit = [x for x in known if max(control.least, 1e-9) <= x <= control.most]
    whole = [int(x) for x in fit if not x % 1] if control.whole else fit
    return sorted(whole, key=lambda x: max(x / max(value, 1), max(value, 1) / x))


def models(counted: bool = False, **changes: Any) -> Control:
    """The published models, to choose from; on demand those whose activations count."""
    told = "A published model; its shape is known."
    known = _counted() if counted else tuple(published.model_names())
    return Control("Model", told, "choice", options=known, **changes)


@cache
def _counted() -> tuple[str, ...]:
    known = published.model_names()
    return tuple(name for name in known if _plain(published.architecture(name)))


def _plain(model: Transformer) -> bool:
    """Whether all its mixers are attention: of others no activations are counted."""
    kinds = (Attention, LatentAttention)
    mixers = [mixer for _, layer in model.layers for mixer in layer.mixers]
    return all(isinstance(mixer, kinds) for mixer in mixers)


def accelerators(**changes: Any) -> Control:
    """The published accelerators, to choose from."""
    told = "The chip: its memory and its dense peaks."
    options = tuple(published.names("accelerators"))
    return Control("Accelerator", told, "choice", options=options, **changes)


def choice(label: str, help: str, options: Sequence[Any], **changes: Any) -> Control:
    """A list to choose from."""
    return Control(label, help, "choice", options=tuple(options), **changes)


def steps(first: float, last: float, *mantissas: float) -> tuple[float, ...]:
    """A slider's stops: so many round numbers in every power of ten.

    >>> steps(10, 300, 1, 2, 5)
    (10, 20, 50, 100, 200)
    """
    powers = range(-9, 20)
    found = sorted(m * 10**k if k >= 0 else m / 10**-k for k in powers for m in mantissas)
    return tuple(x for x in found if first <= x <= last)


def doublings(first: int, last: int) -> tuple[int, ...]:
    """A slider's stops: powers of two.

    >>> doublings(1, 16)
    (1, 2, 4, 8, 16)
    """
    return tuple(2**k for k in range(40) if first <= 2**k <= last)


def sentence(text: str) -> str:
    """The result, which comes first. May hold <b>."""
    return f'<p style="font-size:20px;margin:10px 0px">{text}</p>'


def warning(text: str) -> str:
    """A refusal, in words."""
    style = "border-left:5px solid #B34700;padding:6px 12px;margin:10px 0px;font-size:17px"
    return f'<p style="{style}"><b>⚠ Not possible.</b> {escape(text)}</p>'


def folded(title: str, html: str) -> str:
    """Something for those who want it."""
    style = "margin:8px 0px;font-size:15px"
    told = f"<summary>{escape(title)}</summary>"
    return f'<details style="{style}">{told}{html}</details>'


_BAR = "display:flex;height:28px;line-height:24px"
_SEGMENT = "border-right:1px solid white;color:white;overflow:hidden"
_SEGMENT += ";white-space:nowrap;padding:2px 0px;text-align:center"

PALETTE = ["#0067A5", "#B34700", "#007050", "#96407A", "#7A6300", "#8A5030", "#4B4BC8"]
"""For bars of parts that have no colour of their own."""


def color_of(part: str, otherwise: str = GREY) -> str:
    """The colour of a part by its word or its name (`main_weights`, `mlp`)."""
    return COLORS.get(part, COLORS.get(WORDS.get(part, ""), otherwise))


WORDS = {
    "mlp": "MLP",
    "head": "output head",
    "norm": "norms",
    "main_weights": "main weights",
    "main_gradients": "main gradients",
    "transient": "logits",
}
"""The words of parts whose names are identifiers."""


def stacked_bars(rows: Mapping[str, Mapping[str, float]], unit: Callable[..., str]) -> str:
    """Bars to one scale, each stacked from named parts that keep their colours.

    A bar of a single part needs no key: the first is blue, others are grey.
    """
    longest = max(sum(parts.values()) for parts in rows.values())
    stacked = [parts for parts in rows.values() if len(parts) > 1]
    names = dict.fromkeys(name for parts in stacked for name in parts)
    spare = cycle(PALETTE)
    keys = {name: color_of(name, next(spare)) for name in names}
    colors = dict.fromkeys(next(iter(rows.values())), PALETTE[0]) | keys
    bars = "".join(
        f'<div style="margin:4px 0px">{escape(row)}: {unit(sum(parts.values()))}'
        f'<div style="{_BAR}">{_segments(parts, longest, colors)}</div></div>'
        for row, parts in rows.items()
    )
    told = " ".join(
        '<span style="white-space:nowrap;margin-right:16px">'
        f'<span style="color:{color};font-size:20px">■</span> '
        f"{escape(WORDS.get(name, name))}</span>"
        for name, color in keys.items()
    )
    return f"<div>{bars}<div>{told}</div></div>"


def _segments(parts: Mapping[str, float], longest: float, colors: Mapping[str, str]) -> str:
    return "".join(
        f'<div title="{escape(WORDS.get(name, name))}" '
        f'style="width:{100 * size / longest:.2f}%;'
        f'background-color:{colors.get(name, GREY)};{_SEGMENT}">'
        f"{_name(name) if size > 0.09 * longest else ''}</div>"
        for name, size in parts.items()
        if size
    )


def _name(part: str) -> str:
    return escape(WORDS.get(part, part))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table: the first column to the left, figures to the right."""
    style = "border-collapse:collapse;margin:10px 0px;font-size:15px"
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return f'<table style="{style}">{"".join(lines)}</table>'


def shares(whole: Breakdown, unit: Callable[..., str]) -> list[list[str]]:
    """The rows of a table: each part, its size and its share, and the total."""
    rows = [
        [WORDS.get(name, name), unit(size), units.percent(whole.shares()[name])]
        for name, size in whole.parts().items()
    ]
    return [*rows, ["total", unit(whole.total), units.percent(1)]]


def _row(tag: str, cells: Sequence[str]) -> str:
    place = "padding:3px 14px 3px 0px;text-align:"
    aligned = [f"{place}{'right' if column else 'left'}" for column in range(len(cells))]
    told = zip(aligned, cells, strict=True)
    tags = [(tag if cell else "td", style, cell) for style, cell in told]
    inside = "".join(f'<{t} style="{s}">{escape(c)}</{t}>' for t, s, c in tags)
    return f"<tr>{inside}</tr>"


def call(code: str, *imports: str) -> str:
    """The call that gives the same answer in code, ready to copy.

    What the package offers by name is imported above it; `imports` are further lines.
    """
    style = "white-space:pre-wrap;word-break:normal;font-size:14px;margin:6px 0px"
    whole = "\n".join([*_imported(code), *imports, code])
    return f'<pre style="{style}">{escape(whole)}</pre>'


_CALLED = re.compile(r"(?<![.\w])([A-Za-z_]\w*)(?=[.(\[])")


def _imported(code: str) -> tuple[str, ...]:
    """The line that brings in those of the package's names that the code uses."""
    made = re.findall(r"^(\w+) =", code, re.MULTILINE)
    offered = {"published", *llmtrain_helpers.__all__}.difference(made)
    used = sorted(offered.intersection(_CALLED.findall(code)))
    return (f"from llmtrain_helpers import {', '.join(used)}",) if used else ()


def in_code(number: float) -> str:
    """A number as code has it: `300e9` rather than twelve digits.

    >>> in_code(300_000_000_000), in_code(10**12), in_code(8192), in_code(2.5)
    ('300e9', '1e12', '8192', '2.5')
    """
    for size in (12, 9, 6):
        if isinstance(number, int) and number and number % 10**size == 0:
            return f"{number // 10**size}e{size}"
    return f"{number:.10g}" if isinstance(number, float) else f"{number}"


GPUS = Control("GPUs", "All GPUs of the run.", most=10_000_000, stops=doublings(1, 65536))

TOKENS = Control(
    "Tokens",
    "Tokens that the run sees in all.",
    unit="tokens",
    most=10**16,
    stops=steps(10**9, 10**14, 1, 1.5, 2, 3, 5, 7),
)

SEQUENCE = Control(
    "Sequence", "Tokens in each training sequence.", unit="tokens", most=10_000_000, more=True
)

BATCH = Control(
    "Batch",
    "Sequences in one iteration, over all GPUs.",
    unit="sequences",
    most=10_000_000,
    more=True,
)
