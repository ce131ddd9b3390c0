"""Chapter 05: handles of bits, updates, gradients, sums, bytes and ZeRO; the panel of bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.cards import memory_of
from llmtrain_course.kit.formulas import published_model
from llmtrain_course.kit.handle import Shown, handle, slider
from llmtrain_course.kit.layout import PAGE
from llmtrain_course.precision.formulas import (
    between,
    fate_shares,
    fit_line,
    shifted,
    sum_of_ones,
    update_by_update,
)
from llmtrain_course.precision.pictures import (
    UPDATES,
    bytes_by_part,
    gradient_bars,
    number,
    number_of_bits,
    on_a_gpu,
    slices_of_gpus,
    sum_line,
    update_lines,
)
from llmtrain_helpers import units
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.precision import (
    FORMATS,
    RECIPES,
    ModelStateBytes,
    RecipeName,
    missing_format,
    model_state_bytes,
    smallest_data_parallel,
)
from llmtrain_helpers.published import accelerator

_A100 = "A100 80GB SXM"


@dataclass(frozen=True)
class Setting:
    """A model, its recipe, and how its states are shared out."""

    model: str = "Llama-3.1-8B"
    recipe: RecipeName = "bf16"
    zero_stage: int = 0
    data_parallel: int = 8
    chip: str = _A100

    @cached_property
    def parameters(self) -> int:
        """All parameters of the model."""
        return int(count_parameters(published_model(self.model)).total)

    @cached_property
    def states(self) -> ModelStateBytes:
        """Bytes of the model's states on each GPU."""
        sharding = self.zero_stage, self.data_parallel
        return model_state_bytes(self.parameters, self.recipe, *sharding)


_SETTINGS = {
    "8B, no sharding": Setting(),
    "8B, ZeRO 1": Setting(zero_stage=1, data_parallel=4),
    "70B, ZeRO 3": Setting("Llama-3.1-70B", zero_stage=3, data_parallel=64, chip="H100 SXM"),
    "GPT-2 XL on a small card": Setting("gpt2-xl", "amp", data_parallel=1, chip="RTX 3090"),
}

_CONTROLS = {
    "data_parallel": common.Control(
        "Replicas",
        "Copies of the model that train side by side.",
        most=1_000_000,
        stops=controls.doublings(1, 1024),
    ),
    "zero_stage": controls.ZERO_STAGE,
    "recipe": controls.RECIPE,
    "model": controls.MODEL,
    "chip": replace(controls.CHIP, more=False),
}


def render(
    setting: Setting, before: Setting | None = None, width: int = PAGE
) -> str | common.Answer:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    missing = missing_format(setting.recipe, accelerator(setting.chip).peaks)
    if missing:
        return _refusal(setting, missing)
    P, states = setting.parameters, setting.states
    memory = memory_of(setting.chip)
    picture = on_a_gpu(
        RECIPES[setting.recipe].parts(),
        states.parts(),
        memory,
        before.states.total if before else None,
    ).drawing(width)
    head = ["part", "on each GPU", "per parameter"]
    rows = [
        [common.WORDS.get(name, name), units.gigabytes(size), f"{units.digits(size / P)} B"]
        for name, size in {**states.parts(), "total": states.total}.items()
    ]
    sharding = f"zero_stage={setting.zero_stage}, data_parallel={setting.data_parallel}"
    code = f"model_state_bytes({P}, {setting.recipe!r}, {sharding})"
    return "".join(
        [
            common.sentence(_sentence(setting, memory)),
            f"<div>{picture.inline_svg()}</div>",
            common.folded("The numbers", common.table(head, rows)),
            common.folded("In code", common.call(code)),
        ]
    )


def _sentence(setting: Setting, memory: float) -> str:
    total = setting.states.total
    text = f"<b>{units.gigabytes(total)}</b> of model states on each GPU of "
    text += f"{units.gigabytes(memory)}: "
    if total <= memory:
        return text + f"it <b>fits</b>, and {units.gigabytes(memory - total)} are left."
    try:
        enough = smallest_data_parallel(
            setting.parameters, setting.recipe, setting.zero_stage, memory
        )
    except ValueError:
        return text + "it <b>doesn't fit</b>, however many replicas there are at this stage."
    return text + f"it <b>doesn't fit</b>, but {units.exact(enough)} replicas would be enough."


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
        f"Recipe {setting.recipe!r} computes in {missing}, but the datasheet of "
        f"{setting.chip} doesn't list {missing}."
    )
    return common.Answer("", problem, tuple(offers))


PANEL = common.Panel(
    "What do the states of a model weigh?",
    _CONTROLS,
    _SETTINGS,
    ("8B, no sharding", "70B, ZeRO 3"),
    render,
)


# --- eight bits

_E4M3 = FORMATS["fp8_e4m3"]


@handle(
    "A number in the eight bits of E4M3: sign, exponent and fraction.",
    value=slider(
        "Number",
        "Any number. It becomes the nearest one that eight bits can represent.",
        tuple(between(_E4M3, -_E4M3.max, _E4M3.max)),
    ),
    book=({}, {"value": 0.375}),
)
def eight_bits(value: float = 6.0, previous: Any = None) -> Shown:
    """What the bits of a number in fp8 E4M3 stand for, and where its fellows are."""
    stored = float(_E4M3.round(value))
    before = float(_E4M3.round(previous.value)) if previous else None
    above = shifted(_E4M3, stored, 1)
    becomes = f"{number(value)} becomes {number(stored)}" if value != stored else number(stored)
    caption = f"<b>{becomes}.</b> The next number up is {number(above)}. "
    caption += "There's none in between." if above > stored else ""
    if above == stored:
        caption = f"<b>{becomes}.</b> It's the largest number of eight bits."
    return number_of_bits(_E4M3, stored, before), caption


# --- a thousand updates


@cache
def _fits(format: str) -> dict[str, list[float]]:
    """The losses of the same small fit in a format alone and with main weights."""
    number_format = FORMATS[format]
    return {
        name: fit_line(number_format, main, UPDATES)
        for name, main in (("alone", False), ("kept", True))
    }


@handle(
    "One weight and a thousand small updates, with an fp32 main weight and without one.",
    updates=slider(
        "Updates so far",
        "Updates applied so far.",
        (0, 1, 10, 50, *range(100, UPDATES + 1, 100)),
        play=True,
    ),
    update=slider(
        "Size of each update",
        "What's added to the weight each time.",
        (0.0004, 0.0005, 0.001, 0.002, 0.003, 0.004, 0.005),
    ),
    format=controls.choice("Format", "In which format the weight is stored.", ("bf16", "fp16")),
    book=({"updates": UPDATES}, {"updates": UPDATES, "format": "fp16"}),
)
def lost_update(updates: int = 0, update: float = 0.003, format: str = "bf16") -> Shown:
    """Show a weight of 1 after equal updates, in a format alone and with a main weight."""
    number_format, losses = FORMATS[format], _fits(format)
    weights = update_by_update(number_format, 1, update, updates)
    picture = update_lines(number_format, update, weights, losses)
    if not updates:
        return picture, "There hasn't been an update yet. <b>Both weights are 1.</b>"
    after = weights[-1]
    change = float(number_format.round(after.direct + update)) - after.direct
    fate = f"its next update counts as {number(change, 3)}" if change else "its next update is lost"
    return picture, (
        f"On paper, the weight is {number(1 + updates * update, 5)}, and with a main weight it's "
        f"{number(after.copy)}. In {format} alone, it's <b>{number(after.direct)}, and {fate}.</b>"
    )


# --- gradients that vanish


class _PowerOfTwo(common.Control):
    """A number that is shown as a power of two from a million on."""

    def write(self, value: float) -> str:
        """The value as text, short enough for its field."""
        value = int(value)
        if value >= 1e6 and value.bit_count() == 1:
            return f"2**{value.bit_length() - 1}"
        return super().write(value)


@handle(
    "Gradients by size, and the range that a number format can represent.",
    scale=_PowerOfTwo(
        "Loss scale S",
        "The loss, and so every gradient, is multiplied by it.",
        most=2**28,
        stops=tuple(4**k for k in range(15)),
    ),
    format=controls.choice(
        "Format", "In which format gradients are stored.", ("fp16", "bf16", "fp8_e4m3")
    ),
    book=({}, {"scale": 1024}),
)
def gradients(scale: int = 1, format: str = "fp16") -> Shown:
    """Gradients that are stored in a format, times a loss scale."""
    number_format = FORMATS[format]
    shares = fate_shares(number_format, scale)
    caption = f"<b>{units.share(shares['lost'])} of these gradients become 0.</b>"
    if not shares["lost"]:
        caption = "<b>None of these gradients becomes 0.</b>"
    elif shares["lost"] < 0.01:
        caption = "<b>Fewer than 1% of these gradients become 0.</b>"
    if shares["too large"]:
        caption += " The largest overflow, so this step is thrown away."
    return gradient_bars(number_format, scale), caption


# --- a sum that stalls


@handle(
    "Ones added one by one in a format with few bits.",
    ones=slider(
        "Ones added",
        "How many ones have been added so far.",
        (8, 16, 64, 128, 256, 512, 1024, 2048, 3072, 4096),
        least=1,
        play=True,
    ),
    format=controls.choice(
        "Format", "In which format the sum is stored.", ("bf16", "fp16", "fp8_e4m3", "fp32")
    ),
    book=({"ones": 4096}, {"ones": 4096, "format": "fp32"}),
)
def stalled_sum(ones: int = 8, format: str = "bf16") -> Shown:
    """The sum of ones that are added up in a format, one after the other."""
    number_format = FORMATS[format]
    total = sum_of_ones(number_format, ones)
    caption = f"{units.exact(ones)} ones add up to <b>{units.exact(int(total))}</b>."
    stalls = number_format.round(total + 1) == total
    caption += (
        " From here on, adding 1 changes nothing." if stalls else " Adding another 1 still counts."
    )
    return sum_line(number_format, ones, total), caption


# --- what a parameter weighs

_RECIPES: dict[str, tuple[RecipeName, str]] = {
    "all in fp32": ("fp32", "Nothing is lost here, but products are slow."),
    "fp32, products in 16 bits": (
        "amp",
        "This is PyTorch's autocast. The 16-bit copies only exist during a product.",
    ),
    "bf16, main weights": (
        "bf16",
        "Main weights use up what 16 bits save, and sums of many gradients can stall.",
    ),
    "bf16, gradients in fp32": (
        "bf16_fp32_grads",
        "No update is lost, and no sum stalls. Megatron trains like this.",
    ),
    "bf16, both gradients": (
        "bf16_both_grads",
        "Backward's gradients are in 16 bits, next to their sum in 32 bits.",
    ),
    "all in bf16": (
        "pure_bf16",
        "Adam's averages are also in 16 bits, and small updates are lost.",
    ),
    "fp8 products": (
        "fp8",
        "DeepSeek-V3 was trained like this. Everything that has to be exact still uses 32 bits.",
    ),
}
"""How a parameter may be stored, the recipe's name, and a sentence about it."""


@handle(
    "The bytes of one parameter in each recipe, part by part.",
    recipe=controls.choice("Recipe", "Which copies are stored in how many bits.", tuple(_RECIPES)),
    book=({}, {"recipe": "all in bf16"}),
)
def parameter_bytes(recipe: str = "all in fp32") -> Shown:
    """The bytes in which a recipe stores a parameter in training."""
    name, caption = _RECIPES[recipe]
    size = RECIPES[name].total
    return bytes_by_part(RECIPES[name], RECIPES["fp32"]), (
        f"{caption} <b>{size} bytes per parameter, {units.gigabytes(8e9 * size)} for 8 billion.</b>"
        f" In code, the recipe is <code>{name!r}</code>."
    )


# --- ZeRO

_LEFT = (
    "Every GPU stores everything, so they all store the same data.",
    "Each GPU only stores its slice of Adam's averages and main weights.",
    "Each GPU also stores only its slice of the gradients.",
    "Each GPU stores a slice of everything. To use a layer, it has to fetch it from the others.",
)


@handle(
    "The model states of each GPU, and which of them each ZeRO stage shards.",
    stage=slider(
        "ZeRO stage",
        "What's sharded: nothing, then the optimizer, gradients, weights.",
        (0, 1, 2, 3),
        play=True,
    ),
    gpus=slider("GPUs", "Replicas that shard the states.", (2, 4, 8, 16)),
    book=({"stage": 1}, {"stage": 3}),
)
def slices(stage: int = 0, gpus: int = 4) -> Shown:
    """Show what each of a few GPUs stores of Llama 3.1 8B's states at a stage of ZeRO."""
    whole, memory = Setting().states, memory_of(_A100)
    states = replace(Setting(), zero_stage=stage, data_parallel=gpus).states
    free = memory - states.total
    fits = f"fits, with {units.gigabytes(free)} left" if free >= 0 else "doesn't fit"
    return slices_of_gpus(whole.parts(), states.parts(), gpus, memory), (
        f"{_LEFT[stage]} <b>{units.gigabytes(states.total)} of "
        f"{units.gigabytes(memory)}: it {fits}.</b>"
    )
