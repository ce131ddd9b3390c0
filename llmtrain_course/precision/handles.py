"""Chapter 05: handles of bits, updates, gradients, sums, bytes and ZeRO; the panel of bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.cards import memory_of
from llmtrain_course.kit.formulas import published_model
from llmtrain_course.precision.formulas import (
    UpdatedWeight,
    fate_shares,
    normal,
    shifted,
    sum_of_ones,
    update_weight,
)
from llmtrain_course.precision.pictures import (
    NARROW,
    WIDER,
    WIDTH,
    eight_bits,
    gradient_bars,
    number,
    on_a_gpu,
    parameter_bytes,
    slices,
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
    setting: Setting, before: Setting | None = None, width: int = WIDER
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
        width,
    )
    head = ["part", "on each GPU", "a parameter"]
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
        return text + f"<b>fits</b>, {units.gigabytes(memory - total)} left for all else."
    try:
        enough = smallest_data_parallel(
            setting.parameters, setting.recipe, setting.zero_stage, memory
        )
    except ValueError:
        return text + "<b>does not fit</b>, with any number of replicas at this stage."
    return text + f"<b>does not fit</b>; {units.exact(enough)} replicas would do."


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


PANEL = common.Panel(
    "What do the states of a model weigh?",
    _CONTROLS,
    _SETTINGS,
    ("8B, no sharding", "70B, ZeRO 3"),
    render,
    narrow=partial(render, width=NARROW),
)


# --- eight bits


@dataclass(frozen=True)
class Bits:
    """What the exponent and the fraction of a number in fp8 E4M3 hold."""

    exponent: int = 9
    fraction: int = 4

    @property
    def value(self) -> float:
        """The number that they mean."""
        return normal(FORMATS["fp8_e4m3"], self.exponent, self.fraction)


def _draw_bits(bits: Bits, before: Bits | None, width: int = WIDTH) -> str:
    e4m3, x = FORMATS["fp8_e4m3"], bits.value
    picture = eight_bits(e4m3, x, before.value if before else None, width)
    return common.pictured(
        picture,
        f"<b>{number(x)}.</b> The next number up is {number(shifted(e4m3, x, 1))}. "
        "There is none in between.",
    )


EIGHT_BITS = common.Handle(
    book=({}, {"exponent": 5}),
    title="A number in eight bits",
    controls={
        "exponent": common.Control(
            "Exponent E",
            "The exponent bits, read as a whole number: 1001 is 9.",
            least=4,
            most=10,
            stops=tuple(range(4, 11)),
        ),
        "fraction": common.Control(
            "Fraction F",
            "The fraction bits, read as a whole number: 100 is 4.",
            least=0,
            most=7,
            stops=tuple(range(8)),
        ),
    },
    settings={"": Bits()},
    draw=_draw_bits,
    narrow=partial(_draw_bits, width=NARROW),
)


# --- a thousand updates


@dataclass(frozen=True)
class Updates:
    """A weight of 1, and equal updates that come one after the other."""

    updates: int = 0
    update: float = 0.003
    format: str = "bf16"

    @property
    def after(self) -> UpdatedWeight:
        """The weight after them."""
        return update_weight(FORMATS[self.format], 1, self.update, self.updates)


def _draw_updates(updates: Updates, before: Updates | None, width: int = WIDTH) -> str:
    after, name = updates.after, updates.format
    number_format, exact = FORMATS[name], 1 + updates.updates * updates.update
    picture = update_lines(number_format, 1, updates.update, updates.updates, after, width)
    if not updates.updates:
        return common.pictured(picture, "No update has come yet. <b>Both weights are 1.</b>")
    change = float(number_format.round(after.direct + updates.update)) - after.direct
    fate = f"its next update counts as {number(change, 3)}" if change else "its next update is lost"
    return common.pictured(
        picture,
        f"On paper the weight is {number(exact, 5)}. Beside a main weight it is "
        f"{number(after.copy)}. In {name} alone it is <b>{number(after.direct)}, and {fate}.</b>",
    )


LOST_UPDATE = common.Handle(
    book=({"updates": 10}, {"updates": 10, "format": "fp16"}),
    title="Updates, one after the other",
    controls={
        "updates": common.Control(
            "Updates so far",
            "How many updates have come.",
            least=0,
            most=10,
            stops=tuple(range(11)),
            play=True,
        ),
        "update": common.Control(
            "Size of each update",
            "What is added to the weight each time.",
            least=0.0002,
            most=0.005,
            whole=False,
            stops=(0.0002, 0.0004, 0.0005, 0.001, 0.002, 0.003, 0.004, 0.005),
        ),
        "format": controls.choice(
            "Format", "In which format the weight is kept.", ("bf16", "fp16")
        ),
    },
    settings={"": Updates()},
    draw=_draw_updates,
    narrow=partial(_draw_updates, width=NARROW),
)


# --- gradients that vanish


@dataclass(frozen=True)
class LossScale:
    """Gradients that are stored in a format, times a loss scale."""

    scale: int = 1
    format: str = "fp16"


class _PowerOfTwo(common.Control):
    """A number that is shown as a power of two from a million on."""

    def write(self, value: float) -> str:
        """The value as text, short enough for its field."""
        value = int(value)
        if value >= 1e6 and value.bit_count() == 1:
            return f"2**{value.bit_length() - 1}"
        return super().write(value)


def _draw_gradients(scaled: LossScale, before: LossScale | None, width: int = WIDTH) -> str:
    number_format = FORMATS[scaled.format]
    shares = fate_shares(number_format, scaled.scale)
    text = f"<b>{units.share(shares['lost'])} of these gradients become 0.</b>"
    if not shares["lost"]:
        text = "<b>None of these gradients becomes 0.</b>"
    elif shares["lost"] < 0.01:
        text = "<b>Fewer than 1 % of these gradients become 0.</b>"
    if shares["too large"]:
        text += " The largest overflow, so this step is thrown away."
    return common.pictured(gradient_bars(number_format, scaled.scale, width), text)


GRADIENTS = common.Handle(
    book=({}, {"scale": 1024}),
    title="Which gradients a format keeps",
    controls={
        "scale": _PowerOfTwo(
            "Loss scale S",
            "The loss, and so every gradient, is multiplied by it.",
            most=2**28,
            stops=tuple(4**k for k in range(15)),
        ),
        "format": controls.choice(
            "Format", "In which format gradients are stored.", ("fp16", "bf16", "fp8_e4m3")
        ),
    },
    settings={"": LossScale()},
    draw=_draw_gradients,
    narrow=partial(_draw_gradients, width=NARROW),
)


# --- a sum that stalls


@dataclass(frozen=True)
class Sum:
    """Ones that are added up one after the other."""

    ones: int = 8
    format: str = "bf16"


def _draw_sum(ones: Sum, before: Sum | None, width: int = WIDTH) -> str:
    number_format = FORMATS[ones.format]
    total = sum_of_ones(number_format, ones.ones)
    text = f"{units.exact(ones.ones)} ones make <b>{units.exact(int(total))}</b>."
    if number_format.round(total + 1) == total:
        text += " From here on, adding 1 changes nothing."
    else:
        text += " One more still counts."
    return common.pictured(sum_line(number_format, ones.ones, total, width), text)


STALLED_SUM = common.Handle(
    book=({"ones": 4096}, {"ones": 4096, "format": "fp32"}),
    title="Ones, added one by one",
    controls={
        "ones": common.Control(
            "Ones added",
            "How many ones have been added so far.",
            least=1,
            most=4096,
            stops=(8, 16, 64, 128, 256, 512, 1024, 2048, 3072, 4096),
            play=True,
        ),
        "format": controls.choice(
            "Format", "In which format the sum is kept.", ("bf16", "fp16", "fp8_e4m3", "fp32")
        ),
    },
    settings={"": Sum()},
    draw=_draw_sum,
    narrow=partial(_draw_sum, width=NARROW),
)


# --- what a parameter weighs

_RECIPES: dict[str, tuple[RecipeName, str]] = {
    "all in fp32": ("fp32", "Nothing is lost here, and products are slow."),
    "fp32, products in 16 bits": (
        "amp",
        "PyTorch's autocast. The 16-bit copies for a product come and go.",
    ),
    "bf16, main weights": (
        "bf16",
        "Main weights take what 16 bits save. Sums of many gradients can stall.",
    ),
    "bf16, gradients in fp32": (
        "bf16_fp32_grads",
        "No update is lost, and no sum stalls. Megatron trains like this.",
    ),
    "bf16, both gradients": (
        "bf16_both_grads",
        "Backward's gradients in 16 bits, and their sum in 32 beside them.",
    ),
    "all in bf16": ("pure_bf16", "Adam's averages are in 16 bits too. Small updates are lost."),
    "fp8 products": ("fp8", "As DeepSeek-V3 was trained. What must be exact still has 32 bits."),
}
"""How a parameter may be kept, the recipe's name, and what is to be said of it."""


@dataclass(frozen=True)
class ParameterRecipe:
    """The recipe by which a parameter is stored in training."""

    recipe: str = "all in fp32"


def _draw_bytes(
    setting: ParameterRecipe, before: ParameterRecipe | None, width: int = WIDTH
) -> str:
    name, text = _RECIPES[setting.recipe]
    recipe = RECIPES[name]
    weighs = units.gigabytes(8e9 * recipe.total)
    picture = parameter_bytes(recipe, RECIPES["fp32"], width)
    return common.pictured(
        picture,
        f"{text} <b>{recipe.total} bytes a parameter, {weighs} for 8 billion.</b> "
        f"In code the recipe is <code>{name!r}</code>.",
    )


PARAMETER_BYTES = common.Handle(
    book=({}, {"recipe": "all in bf16"}),
    title="What a parameter weighs",
    controls={
        "recipe": controls.choice("Recipe", "What is kept in how many bits.", tuple(_RECIPES))
    },
    settings={"": ParameterRecipe()},
    draw=_draw_bytes,
    narrow=partial(_draw_bytes, width=NARROW),
)


# --- ZeRO


@dataclass(frozen=True)
class Sharding:
    """Llama 3.1 8B on a few GPUs, and ZeRO's stage."""

    stage: int = 0
    gpus: int = 4

    @property
    def states(self) -> ModelStateBytes:
        """The states that each GPU stores."""
        return replace(Setting(), zero_stage=self.stage, data_parallel=self.gpus).states


_LEFT = (
    "Every GPU keeps everything, and all of them the same.",
    "Each GPU keeps its slice of Adam's averages and main weights.",
    "Each GPU also keeps only its slice of the gradients.",
    "Each GPU keeps a slice of everything. To use a layer it must ask the others for it.",
)


def _draw_slices(sharding: Sharding, before: Sharding | None, width: int = WIDTH) -> str:
    whole = Setting().states
    states, memory = sharding.states, memory_of(_A100)
    picture = slices(whole.parts(), states.parts(), sharding.gpus, memory, width)
    free = memory - states.total
    fits = f"fits, with {units.gigabytes(free)} left" if free >= 0 else "does not fit"
    return common.pictured(
        picture,
        f"{_LEFT[sharding.stage]} <b>{units.gigabytes(states.total)} of "
        f"{units.gigabytes(memory)}: it {fits}.</b>",
    )


SLICES = common.Handle(
    book=({"stage": 1}, {"stage": 3}),
    title="ZeRO, stage by stage",
    controls={
        "stage": common.Control(
            "ZeRO stage",
            "How much is shared out: nothing, then optimizer, gradients, weights.",
            least=0,
            most=3,
            stops=(0, 1, 2, 3),
            play=True,
        ),
        "gpus": common.Control(
            "GPUs", "Replicas that share the states out.", least=2, most=16, stops=(2, 4, 8, 16)
        ),
    },
    settings={"": Sharding()},
    draw=_draw_slices,
    narrow=partial(_draw_slices, width=NARROW),
)
