"""The panel of chapter 05: a number's bits, an update, a loss scale, the bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.drawings import precision as drawings
from llmtrain_helpers.drawings.precision import number
from llmtrain_helpers.evidence.published import accelerator, architecture
from llmtrain_helpers.panels import common
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.precision import (
    FORMATS,
    RECIPES,
    ModelStateBytes,
    gradient_window,
    half_spacing,
    model_state_bytes,
    products_in,
    smallest_data_parallel,
    stored,
    updates_to_move,
)

NUMBER, UPDATE, SCALE = "a number", "an update", "a loss scale"
BYTES = "bytes of a model"
_LOOKS = (NUMBER, UPDATE, SCALE, BYTES)

_A100 = "A100 80GB SXM"

_DEFAULT: dict[str, Any] = {
    "look": NUMBER,
    "format": "bf16",
    "number": 0.1,
    "steps": 0,
    "weight": 1,
    "update": 0.002,
    "gradient": 1e-8,
    "loss_scale": 1,
    "model": "Llama-3.1-8B",
    "recipe": "bf16",
    "zero_stage": 0,
    "data_parallel": 8,
    "chip": _A100,
}


def _states(*values: Any) -> dict[str, Any]:
    names = ["model", "recipe", "zero_stage", "data_parallel", "chip"]
    return _DEFAULT | {"look": BYTES} | dict(zip(names, values, strict=True))


_PRESETS = {
    "A number in bf16": _DEFAULT,
    "An update that is lost": _DEFAULT | {"look": UPDATE},
    "A gradient that vanishes": _DEFAULT | {"look": SCALE, "format": "fp16"},
    "8B, no sharding": _states("Llama-3.1-8B", "bf16", 0, 8, _A100),
    "8B, ZeRO 1": _states("Llama-3.1-8B", "bf16", 1, 4, _A100),
    "70B, ZeRO 3": _states("Llama-3.1-70B", "bf16", 3, 64, "H100 SXM"),
    "GPT-2 XL on a small card": _states("gpt2-xl", "amp", 0, 1, "RTX 3090"),
}


def _looking_at(*looks: str) -> Callable[[common.Values], bool]:
    return lambda values: values["look"] in looks


_AT_NUMBER, _AT_UPDATE = _looking_at(NUMBER), _looking_at(UPDATE)
_AT_SCALE, _AT_BYTES = _looking_at(SCALE), _looking_at(BYTES)


class _PowerOfTwo(common.Control):
    """A number that may also be written as 2**13 or 2^13."""

    def read(self, written: Any) -> Any:
        """The value that somebody wrote; a ValueError in the panel's words if none."""
        power = re.fullmatch(r"\s*2\s*(?:\*\*|\^)\s*(\d{1,3})\s*", str(written))
        return super().read(2 ** int(power[1]) if power else written)

    def write(self, value: Any) -> str:
        """From a million on a power of two is written as one, as the picture does."""
        value = int(value)
        if value >= 1e6 and value.bit_count() == 1:
            return f"2^{value.bit_length() - 1}"
        return super().write(value)


_CONTROLS = {
    "look": common.choice("Look at", "What the panel shows.", _LOOKS, lead=True),
    "steps": common.Control(
        "Next representable",
        "So many of the format's numbers up or down: watch the bits flip.",
        least=-8,
        most=8,
        stops=tuple(range(-8, 9)),
        about=("number", "format"),
        applies=_AT_NUMBER,
    ),
    "update": common.Control(
        "Update",
        "What is added to the weight.",
        least=1e-9,
        most=100,
        whole=False,
        stops=common.steps(1e-4, 1, 1, 2, 5),
        applies=_AT_UPDATE,
    ),
    "loss_scale": _PowerOfTwo(
        "Loss scale S",
        "The loss, and so every gradient, is multiplied by it; 2**13 is read too.",
        most=2**40,
        stops=common.doublings(1, 2**30),
        applies=_AT_SCALE,
    ),
    "format": common.choice(
        "Format",
        "How many bits a number has, and what for.",
        [*FORMATS],
        applies=_looking_at(NUMBER, UPDATE, SCALE),
    ),
    "number": common.Control(
        "Number",
        "Any number; the format stores the nearest that it has.",
        least=-1e40,
        most=1e40,
        whole=False,
        applies=_AT_NUMBER,
    ),
    "weight": common.Control(
        "Weight",
        "The weight before the update.",
        least=-400,
        most=400,
        whole=False,
        applies=_AT_UPDATE,
    ),
    "gradient": common.Control(
        "Gradient",
        "One gradient, before it is scaled and stored.",
        least=1e-12,
        most=10_000,
        whole=False,
        applies=_AT_SCALE,
    ),
    "model": common.models(applies=_AT_BYTES),
    "recipe": common.choice(
        "Recipe", "Which number formats the copies have.", [*RECIPES], applies=_AT_BYTES
    ),
    "zero_stage": common.choice(
        "ZeRO stage",
        "What replicas share out instead of each keeping it.",
        [0, 1, 2, 3],
        applies=_AT_BYTES,
    ),
    "data_parallel": common.Control(
        "Replicas",
        "Copies of the model that train side by side.",
        most=1_000_000,
        applies=_AT_BYTES,
    ),
    "chip": common.accelerators(applies=_AT_BYTES),
}


def render(before: common.Values | None = None, **values: Any) -> str | common.Answer:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    look = values["look"]
    needed = _missing(values) if look == BYTES else ""
    if needed:
        return _refused(values, needed)
    old = before if before and before["look"] == look else None
    told, picture, rows, code = _VIEWS[look](values, old)
    return "".join(
        [
            common.sentence(told),
            f"<div>{picture.live()}</div>",
            common.folded("The numbers", common.table(rows[0], rows[1:])),
            common.folded("In code", common.call(code)),
        ]
    )


View = tuple[str, Any, list[list[str]], str]
"""Sentence, drawing, table with its head first, and code."""

# --- a number


def _number(values: common.Values, old: common.Values | None) -> View:
    known, steps = FORMATS[values["format"]], values["steps"]
    x = float(values["number"]) if abs(values["number"]) > 1e15 else values["number"]
    held = stored(known, x, steps)
    then = (FORMATS[old["format"]], old["number"], old["steps"]) if old else None
    then = (known, x, 0) if steps else then  # which bits flip on the way
    code = f'FORMATS["{known.name}"].round({x!r})'
    if steps and isfinite(held):
        code = f'FORMATS["{known.name}"].shifted({x!r}, {steps})'
    return (
        _of_number(known, x, steps, held),
        drawings.number_bits(known, x, steps, then),
        _limits(known, held),
        code,
    )


def _of_number(known: Any, x: float, steps: int, held: float) -> str:
    if not isfinite(held):
        return f"<b>{number(held)}</b>: {number(x)} is more than {known.name} holds."
    if steps:
        from_x = abs(held - stored(known, x))
        places = f"{abs(steps)} place{'s' if abs(steps) > 1 else ''}"
        way = "above" if steps > 0 else "below"
        told = f"<b>{places} {way}</b> the number stored for {number(x)}"
        return f"{told}, and {number(from_x, 4)} away."
    if held == x:
        return f"<b>Exact</b>: {number(x)} is one of {known.name}'s numbers."
    if held == 0:
        return f"<b>0</b>: less than half of {known.name}'s smallest number."
    told = f"<b>{units.percent(abs(held / x - 1))} off</b>: {known.name} has no "
    told += f"{number(x)}, and stores the nearest that it has"
    below = abs(held) < known.min_normal
    return f"{told}, a <b>subnormal</b> one." if below else f"{told}."


def _limits(known: Any, held: float) -> list[list[str]]:
    """What the format can hold, and the spacing at this number."""
    step = known.spacing(held) if isfinite(held) else known.spacing(known.max)
    return [
        [known.name, "number"],
        ["bits", f"{known.bits}"],
        ["largest", number(known.max)],
        ["smallest normal", number(known.min_normal)],
        ["smallest above 0 (subnormal)", number(known.min_subnormal)],
        ["spacing at 1", number(known.eps)],
        ["spacing here", number(step)],
    ]


# --- an update


def _update(values: common.Values, old: common.Values | None) -> View:
    known, w, d = FORMATS[values["format"]], values["weight"], values["update"]
    then = (FORMATS[old["format"]], old["weight"], old["update"]) if old else None
    half = half_spacing(known, w)
    rows = [["in " + known.name, "number"], ["weight", number(known.round(w), 11)]]
    rows += [["spacing, to the next above", number(2 * half)]]
    rows += [["lost below half of it, upwards", number(half)]]
    tie = "lost" if known.round(known.round(w) + half) == known.round(w) else "kept"
    rows += [["at exactly half the tie decides: here", tie]]
    count = updates_to_move(known, w, d)
    moves = f"{count:,}" if count else "never"
    rows += [["updates until a main weight's copy moves", moves]]
    return (
        _of_update(known, w, d, half),
        drawings.update_line(known, w, d, then),
        rows,
        f'FORMATS["{known.name}"].round({w!r} + {d!r})',
    )


def _of_update(known: Any, w: float, d: float, half: float) -> str:
    told, _, fate = drawings.verdict(known, w, d).rpartition(": ")
    if not told:
        most = f"the largest number of {known.name} is {number(known.max)}"
        return f"<b>Overflow</b>: {fate}, for {most}."
    if fate == "lost":
        told, size = f"<b>Lost</b>: in {known.name} what is", number(half, 4)
        if d < half:
            return f"{told} below half the spacing, {size}, is rounded away."
        back = number(known.round(w))
        return f"{told} exactly half the spacing is a tie; this one goes to {back}."
    told = f"<b>{fate.capitalize()}</b>: {known.name} "
    after = number(known.round(known.round(w) + d))
    if fate == "kept":
        return f"{told}has the sum, {after}."
    return f"{told}has not quite this sum, and stores the nearest that it has, {after}."


# --- a loss scale


def _scale(values: common.Values, old: common.Values | None) -> View:
    known, g, s = FORMATS[values["format"]], values["gradient"], values["loss_scale"]
    then = (FORMATS[old["format"]], old["loss_scale"]) if old else None
    low, high = gradient_window(known, s)
    rows = [
        [f"{known.name}, scaled by {drawings.scale_told(s)}", "gradient"],
        ["becomes 0 up to", number(low)],
        ["all its digits from", number(known.min_normal / s)],
        ["overflows beyond", number(high)],
    ]
    return (
        _of_the_drawn(known, g, s) + _of_gradient(known, g, s),
        drawings.loss_scale(known, g, s, then),
        rows,
        f'FORMATS["{known.name}"].round({g!r} * {s}) / {s}',
    )


def _of_gradient(known: Any, gradient: float, scale: float) -> str:
    low, high = gradient_window(known, scale)
    back = known.round(gradient * scale) / scale
    scaled = f"at S = {drawings.scale_told(scale)}"
    at = f"in {known.name} {scaled}"
    if back == 0:
        return f"<b>Lost</b>: {at} whatever is at most {number(low, 3)} becomes 0."
    if not isfinite(back):
        told = f"{at} whatever is past {number(high, 5)} overflows"
        return f"<b>Step skipped</b>: {told}, and this gradient is."
    off = units.percent(abs(back / gradient - 1))
    if abs(gradient * scale) < known.min_normal:
        few = "it is a <b>subnormal</b> number there"
        return f"<b>Kept, with few digits</b>: {at} {few}, {off} off."
    return f"<b>Kept, with all of {known.name}'s digits</b>, {scaled}: {off} off."


def _of_the_drawn(known: Any, gradient: float, scale: float) -> str:
    """First that others overflow, where the chosen gradient does not."""
    over = drawings.fates(known, scale)["overflow"]
    if not over or not isfinite(known.round(gradient * scale)):
        return ""
    told = "<b>Step skipped</b>: the largest gradients of the picture overflow, "
    return f"{told}{units.digits(100 * over, 2)} % of them. The one you chose: "


# --- the bytes of a model


def _bytes(values: common.Values, old: common.Values | None) -> View:
    P, states, memory = _weighed(values)
    recipe, stage = values["recipe"], values["zero_stage"]
    then = _weighed(old)[1].total if old else None
    parts = RECIPES[recipe].parts()
    sharing = f"zero_stage={stage}, data_parallel={values['data_parallel']}"
    return (
        _of_bytes(states, memory, P, recipe, stage),
        drawings.on_a_gpu(parts, states.parts(), memory, then),
        [["part", "on each GPU", "a parameter"], *_rows(states, P)],
        f"model_state_bytes({P}, {recipe!r}, {sharing})",
    )


def _missing(values: common.Values) -> str:
    """The format that the recipe's products need and the chip has not; "" if none."""
    needed = products_in(values["recipe"])
    return "" if needed in {"", *accelerator(values["chip"]).peaks} else needed


def _refused(values: common.Values, needed: str) -> common.Answer:
    """Why a chip cannot compute a recipe; offered are chips, then recipes that do."""
    chip, recipe = values["chip"], values["recipe"]
    told = f"Recipe {recipe!r} computes in {needed}, and the datasheet of {chip} knows "
    changes = [{"chip": other} for other in ("H100 SXM", _A100)]
    changes += [{"recipe": other} for other in RECIPES]
    able = [change for change in changes if not _missing({**values, **change})]
    offers = [(_told(change), change) for change in able]
    return common.Answer("", f"{told}no {needed}.", tuple(offers))


def _told(change: dict[str, str]) -> str:
    [(name, value)] = change.items()
    return f"{_CONTROLS[name].label}: {value}"


def _weighed(values: common.Values) -> tuple[int, ModelStateBytes, Any]:
    """Parameters, their states on each GPU, and its memory."""
    P, chip = count_parameters(architecture(values["model"])).total, values["chip"]
    sharing = values["zero_stage"], values["data_parallel"]
    states = model_state_bytes(P, values["recipe"], *sharing)
    return P, states, accelerator(chip).memory


def _of_bytes(states: ModelStateBytes, memory: Any, P: Any, recipe: str, stage: int) -> str:
    told = f"<b>{units.gigabytes(states.total)}</b> of model states on each GPU of "
    told += f"{units.gigabytes(memory)}: "
    if states.total <= memory:
        return f"{told}<b>fits</b>, {units.gigabytes(memory - states.total)} left."
    try:
        enough = smallest_data_parallel(P, recipe, stage, memory)
    except ValueError:
        return f"{told}<b>does not fit</b>, with any number of replicas at this stage."
    return f"{told}<b>does not fit</b>; {units.exact(enough)} replicas would do."


def _rows(states: ModelStateBytes, P: int) -> list[list[str]]:
    sizes = [*states.parts().items(), ("total", states.total)]
    return [
        [common.WORDS.get(name, name), units.gigabytes(x), f"{units.digits(x / P)} B"]
        for name, x in sizes
    ]


_VIEWS: dict[str, Callable[[common.Values, common.Values | None], View]] = {
    NUMBER: _number,
    UPDATE: _update,
    SCALE: _scale,
    BYTES: _bytes,
}

PANEL = common.Panel(
    "What does a number keep, and what does it weigh?",
    _CONTROLS,
    _PRESETS,
    ("An update that is lost", "8B, no sharding"),
    render,
)
