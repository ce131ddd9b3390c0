"""The panel of chapter 05: a number's bits, an update, a loss scale, the bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite

from llmtrain_helpers import units
from llmtrain_helpers.drawings import precision as drawings
from llmtrain_helpers.drawings.common import Drawing
from llmtrain_helpers.drawings.precision import number
from llmtrain_helpers.evidence.published import accelerator, architecture
from llmtrain_helpers.panels import common, controls
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.precision import (
    FORMATS,
    RECIPES,
    ModelStateBytes,
    NumberFormat,
    gradient_window,
    half_spacing,
    missing_format,
    model_state_bytes,
    smallest_data_parallel,
    stored,
    updates_to_move,
)

NUMBER, UPDATE, SCALE, BYTES = "a number", "an update", "a loss scale", "bytes of a model"

_A100 = "A100 80GB SXM"


@dataclass(frozen=True)
class Setting:
    """Which of the four views, and what each of them shows."""

    look: str = NUMBER
    format: str = "bf16"
    number: float = 0.1
    steps: int = 0
    weight: float = 1
    update: float = 0.002
    gradient: float = 1e-8
    loss_scale: float = 1
    model: str = "Llama-3.1-8B"
    recipe: str = "bf16"
    zero_stage: int = 0
    data_parallel: int = 8
    chip: str = _A100

    @property
    def number_format(self) -> NumberFormat:
        """The format by its name."""
        return FORMATS[self.format]

    @cached_property
    def parameters(self) -> int:
        """All parameters of the model."""
        return int(count_parameters(architecture(self.model)).total)

    @cached_property
    def states(self) -> ModelStateBytes:
        """Bytes of the model's states on each GPU."""
        sharding = self.zero_stage, self.data_parallel
        return model_state_bytes(self.parameters, self.recipe, *sharding)


_BYTES = Setting(BYTES)

_SETTINGS = {
    "A number in bf16": Setting(),
    "An update that is lost": Setting(UPDATE),
    "A gradient that vanishes": Setting(SCALE, "fp16"),
    "8B, no sharding": _BYTES,
    "8B, ZeRO 1": replace(_BYTES, zero_stage=1, data_parallel=4),
    "70B, ZeRO 3": replace(
        _BYTES, model="Llama-3.1-70B", zero_stage=3, data_parallel=64, chip="H100 SXM"
    ),
    "GPT-2 XL on a small card": replace(
        _BYTES, model="gpt2-xl", recipe="amp", data_parallel=1, chip="RTX 3090"
    ),
}


def _looking_at(*looks: str) -> Callable[[Setting], bool]:
    return lambda setting: setting.look in looks


_AT_BYTES = _looking_at(BYTES)


class _PowerOfTwo(common.Control):
    """A number that may also be written as 2**13 or 2^13."""

    def read(self, written: common.Value) -> common.Value:
        """The value that somebody wrote; a ValueError in the panel's words if none."""
        power = re.fullmatch(r"\s*2\s*(?:\*\*|\^)\s*(\d{1,3})\s*", str(written))
        return super().read(2 ** int(power[1]) if power else written)

    def write(self, value: float) -> str:
        """The value as text; from a million on, a power of two as 2^n, as the picture has it."""
        value = int(value)
        if value >= 1e6 and value.bit_count() == 1:
            return f"2^{value.bit_length() - 1}"
        return super().write(value)


_CONTROLS = {
    "look": controls.choice(
        "Look at", "What the panel shows.", (NUMBER, UPDATE, SCALE, BYTES), lead=True
    ),
    "steps": common.Control(
        "Next representable",
        "So many of the format's numbers up or down: watch the bits flip.",
        least=-8,
        most=8,
        stops=tuple(range(-8, 9)),
        about=("number", "format"),
        applies=_looking_at(NUMBER),
    ),
    "update": common.Control(
        "Update",
        "What is added to the weight.",
        least=1e-9,
        most=100,
        whole=False,
        stops=controls.steps(1e-4, 1, 1, 2, 5),
        applies=_looking_at(UPDATE),
    ),
    "loss_scale": _PowerOfTwo(
        "Loss scale S",
        "The loss, and so every gradient, is multiplied by it; 2**13 is read too.",
        most=2**40,
        stops=controls.doublings(1, 2**30),
        applies=_looking_at(SCALE),
    ),
    "format": controls.choice(
        "Format",
        "How many bits a number has, and what for.",
        FORMATS,
        applies=_looking_at(NUMBER, UPDATE, SCALE),
    ),
    "number": common.Control(
        "Number",
        "Any number; the format stores the nearest that it has.",
        least=-1e40,
        most=1e40,
        whole=False,
        applies=_looking_at(NUMBER),
    ),
    "weight": common.Control(
        "Weight",
        "The weight before the update.",
        least=-400,
        most=400,
        whole=False,
        applies=_looking_at(UPDATE),
    ),
    "gradient": common.Control(
        "Gradient",
        "One gradient, before it is scaled and stored.",
        least=1e-12,
        most=10_000,
        whole=False,
        applies=_looking_at(SCALE),
    ),
    "model": replace(controls.MODEL, applies=_AT_BYTES),
    "recipe": replace(controls.RECIPE, applies=_AT_BYTES),
    "zero_stage": replace(controls.ZERO_STAGE, applies=_AT_BYTES),
    "data_parallel": common.Control(
        "Replicas",
        "Copies of the model that train side by side.",
        most=1_000_000,
        applies=_AT_BYTES,
    ),
    "chip": replace(controls.CHIP, more=False, applies=_AT_BYTES),
}


@dataclass(frozen=True)
class View:
    """What a look at a setting shows: sentence, drawing, table and code."""

    sentence: str
    picture: Drawing
    head: list[str]
    rows: list[list[str]]
    code: str


def render(setting: Setting, before: Setting | None = None) -> str | common.Answer:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    missing = missing_format(setting.recipe, accelerator(setting.chip).peaks)
    if setting.look == BYTES and missing:
        return _refusal(setting, missing)
    view = _VIEWS[setting.look](setting, before if before and before.look == setting.look else None)
    return "".join(
        [
            common.sentence(view.sentence),
            f"<div>{view.picture.live()}</div>",
            common.folded("The numbers", common.table(view.head, view.rows)),
            common.folded("In code", common.call(view.code)),
        ]
    )


# --- a number


def _number(setting: Setting, before: Setting | None) -> View:
    format, steps, x = setting.number_format, setting.steps, setting.number
    x = float(x) if abs(x) > 1e15 else x  # an int would be shown with all its digits
    result = stored(format, x, steps)
    old = None
    if steps:  # which bits flip on the way
        old = (format, x, 0)
    elif before:
        old = (before.number_format, before.number, before.steps)
    shifted = steps and isfinite(result)
    spacing = format.spacing(result if isfinite(result) else format.max)
    limits = {
        "largest": format.max,
        "smallest normal": format.min_normal,
        "smallest above 0 (subnormal)": format.min_subnormal,
        "spacing at 1": format.eps,
        "spacing here": spacing,
    }
    return View(
        _number_sentence(format, x, steps, result),
        drawings.number_bits(format, x, steps, old),
        [format.name, "number"],
        [["bits", f"{format.bits}"], *([name, number(size)] for name, size in limits.items())],
        f'FORMATS["{format.name}"].' + (f"shifted({x!r}, {steps})" if shifted else f"round({x!r})"),
    )


def _number_sentence(format: NumberFormat, x: float, steps: int, result: float) -> str:
    if not isfinite(result):
        return f"<b>{number(result)}</b>: {number(x)} is more than {format.name} holds."
    if steps:
        away = abs(result - stored(format, x))
        way = "above" if steps > 0 else "below"
        places = f"<b>{units.plural(abs(steps), 'place')} {way}</b> the number"
        return f"{places} stored for {number(x)}, and {number(away, 4)} away."
    if result == x:
        return f"<b>Exact</b>: {number(x)} is one of {format.name}'s numbers."
    if result == 0:
        return f"<b>0</b>: less than half of {format.name}'s smallest number."
    off = f"<b>{units.percent(abs(result / x - 1))} off</b>: {format.name} has no "
    off += f"{number(x)}, and stores the nearest that it has"
    return f"{off}, a <b>subnormal</b> one." if abs(result) < format.min_normal else f"{off}."


# --- an update


def _update(setting: Setting, before: Setting | None) -> View:
    format, w, d = setting.number_format, setting.weight, setting.update
    old = (before.number_format, before.weight, before.update) if before else None
    weight, half = format.round(w), half_spacing(format, w)
    updates = updates_to_move(format, w, d)
    return View(
        _update_sentence(format, w, d),
        drawings.update_line(format, w, d, old),
        ["in " + format.name, "number"],
        [
            ["weight", number(weight, 11)],
            ["spacing, to the next above", number(2 * half)],
            ["lost below half of it, upwards", number(half)],
            [
                "at exactly half the tie decides: here",
                "lost" if format.round(weight + half) == weight else "kept",
            ],
            [
                "updates until a main weight's copy moves",
                units.exact(updates) if updates else "never",
            ],
        ],
        f'FORMATS["{format.name}"].round({w!r} + {d!r})',
    )


def _update_sentence(format: NumberFormat, w: float, d: float) -> str:
    sum_, _, fate = drawings.verdict(format, w, d).rpartition(": ")
    if not sum_:
        most = f"the largest number of {format.name} is {number(format.max)}"
        return f"<b>Overflow</b>: {fate}, for {most}."
    weight, half = format.round(w), half_spacing(format, w)
    if fate == "lost":
        lost = f"<b>Lost</b>: in {format.name} what is"
        if d < half:
            return f"{lost} below half the spacing, {number(half, 4)}, is rounded away."
        return f"{lost} exactly half the spacing is a tie; this one goes to {number(weight)}."
    kept, after = f"<b>{fate.capitalize()}</b>: {format.name}", number(format.round(weight + d))
    if fate == "kept":
        return f"{kept} has the sum, {after}."
    return f"{kept} has not quite this sum, and stores the nearest that it has, {after}."


# --- a loss scale


def _scale(setting: Setting, before: Setting | None) -> View:
    format, g, s = setting.number_format, setting.gradient, setting.loss_scale
    old = (before.number_format, before.loss_scale) if before else None
    low, high = gradient_window(format, s)
    sentence = _gradient_sentence(format, g, s)
    overflow = drawings.fates(format, s)["overflow"]
    if overflow and isfinite(format.round(g * s)):
        # others overflow where the chosen gradient does not, and the step is skipped
        most = f"{units.digits(100 * overflow, 2)} % of them"
        skipped = "<b>Step skipped</b>: the largest gradients of the picture overflow"
        sentence = f"{skipped}, {most}. The one you chose: {sentence}"
    return View(
        sentence,
        drawings.loss_scale(format, g, s, old),
        [f"{format.name}, scaled by {drawings.scale_told(s)}", "gradient"],
        [
            ["becomes 0 up to", number(low)],
            ["all its digits from", number(format.min_normal / s)],
            ["overflows beyond", number(high)],
        ],
        f'FORMATS["{format.name}"].round({g!r} * {s}) / {s}',
    )


def _gradient_sentence(format: NumberFormat, gradient: float, scale: float) -> str:
    low, high = gradient_window(format, scale)
    back = format.round(gradient * scale) / scale
    scaled = f"at S = {drawings.scale_told(scale)}"
    there = f"in {format.name} {scaled}"
    if back == 0:
        return f"<b>Lost</b>: {there} whatever is at most {number(low, 3)} becomes 0."
    if not isfinite(back):
        past = f"{there} whatever is past {number(high, 5)} overflows"
        return f"<b>Step skipped</b>: {past}, and this gradient is."
    off = f"{units.percent(abs(back / gradient - 1))} off"
    if abs(gradient * scale) < format.min_normal:
        return (
            f"<b>Kept, with few digits</b>: {there} it is a <b>subnormal</b> number there, {off}."
        )
    return f"<b>Kept, with all of {format.name}'s digits</b>, {scaled}: {off}."


# --- the bytes of a model


def _bytes(setting: Setting, before: Setting | None) -> View:
    P, states = setting.parameters, setting.states
    memory = float(accelerator(setting.chip).memory)
    sizes = {**states.parts(), "total": states.total}
    rows = [
        [common.WORDS.get(name, name), units.gigabytes(size), f"{units.digits(size / P)} B"]
        for name, size in sizes.items()
    ]
    sharding = f"zero_stage={setting.zero_stage}, data_parallel={setting.data_parallel}"
    sentence = f"<b>{units.gigabytes(states.total)}</b> of model states on each GPU of "
    sentence += f"{units.gigabytes(memory)}: "
    if states.total <= memory:
        sentence += f"<b>fits</b>, {units.gigabytes(memory - states.total)} left."
    else:
        try:
            enough = smallest_data_parallel(P, setting.recipe, setting.zero_stage, memory)
            sentence += f"<b>does not fit</b>; {units.exact(enough)} replicas would do."
        except ValueError:
            sentence += "<b>does not fit</b>, with any number of replicas at this stage."
    return View(
        sentence,
        drawings.on_a_gpu(
            RECIPES[setting.recipe].parts(),
            states.parts(),
            memory,
            before.states.total if before else None,
        ),
        ["part", "on each GPU", "a parameter"],
        rows,
        f"model_state_bytes({P}, {setting.recipe!r}, {sharding})",
    )


def _refusal(setting: Setting, missing: str) -> common.Answer:
    """Why a chip cannot compute a recipe; offered are chips, then recipes that do."""
    changes = [("chip", chip) for chip in ("H100 SXM", _A100)]
    changes += [("recipe", recipe) for recipe in RECIPES]
    offers = []
    for name, value in changes:
        other = common.changed(setting, {name: value})
        if not missing_format(other.recipe, accelerator(other.chip).peaks):
            offers.append((f"{_CONTROLS[name].label}: {value}", {name: value}))
    problem = (
        f"Recipe {setting.recipe!r} computes in {missing}, and the datasheet of "
        f"{setting.chip} knows no {missing}."
    )
    return common.Answer("", problem, tuple(offers))


_VIEWS: dict[str, Callable[[Setting, Setting | None], View]] = {
    NUMBER: _number,
    UPDATE: _update,
    SCALE: _scale,
    BYTES: _bytes,
}

PANEL = common.Panel(
    "What does a number keep, and what does it weigh?",
    _CONTROLS,
    _SETTINGS,
    ("An update that is lost", "8B, no sharding"),
    render,
)
