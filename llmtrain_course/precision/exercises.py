"""Exercises of chapter 05: formats, updates, a loss scale, bytes of a run's states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llmtrain_course.kit.cards import memory_of
from llmtrain_course.kit.exercise import (
    HINT,
    NEAR,
    NOT_YET,
    Answer,
    Exercise,
    Grade,
    MultipleChoice,
    Numeric,
    Prediction,
    Question,
    design_of,
    entry,
    unanswered,
)
from llmtrain_course.kit.kinds import FillIn
from llmtrain_course.precision.formulas import half_spacing, update_weight
from llmtrain_helpers import units
from llmtrain_helpers.checks import choice, refuse, single
from llmtrain_helpers.model.names import known_model
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.precision import (
    FORMATS,
    RECIPES,
    NumberFormat,
    RecipeName,
    model_state_bytes,
    products_in,
)
from llmtrain_helpers.published import accelerator

# --- precision-a: a format that the course does not list

_E3M4 = NumberFormat("e3m4", exponent_bits=3, mantissa_bits=4)

# --- precision-share: what a GPU keeps at ZeRO's stage 2

_SHARERS = 64


def _bytes_at(stage: int) -> float:
    """The bytes per parameter on each of 64 GPUs at a ZeRO stage, recipe bf16."""
    return float(model_state_bytes(_SHARERS, "bf16", stage, _SHARERS).total) / _SHARERS


# --- precision-b: an update that is lost

_WEIGHT = 0.02


def _lost_update(name: str, weight: float = _WEIGHT) -> float:
    """The largest update upwards that is rounded away: half the spacing."""
    return half_spacing(FORMATS[name], weight)


# --- precision-c: a loss scale for gradients from 2⁻³⁸ to 2⁻³

_SMALLEST, _LARGEST = 2.0**-38, 2.0**-3
_SCALES = {"S = 2**10": 2.0**10, "S = 2**16": 2.0**16, "S = 2**24": 2.0**24}


def _right_scale() -> str:
    """The scale at which fp16 keeps both the smallest and the largest gradient."""
    fp16 = FORMATS["fp16"]
    return next(
        name
        for name, scale in _SCALES.items()
        if fp16.round(_SMALLEST * scale) > 0 and fp16.round(_LARGEST * scale) <= fp16.max
    )


def _least_scale(bits: int = 0) -> float:
    """The smallest power of two that keeps the smallest gradient; or so many above it."""
    fp16 = FORMATS["fp16"]
    return next(2.0**n for n in range(40) if fp16.round(_SMALLEST * 2.0**n) > 0) * 2.0**bits


_LEAST_SCALE = Numeric(
    key=_least_scale,
    unit=lambda number: f"{number:,.0f}, which is 2¹⁴",
    tolerance=0,
    hint=(
        "Which is the smallest number of fp16 that is not 0?",
        "What lies halfway between two numbers goes to the even one, and 0 is even.",
    ),
    common_mistakes={
        14: "this is the power: give the number, two to that power.",
        _least_scale(-1): "at this scale it lies exactly halfway to the smallest number, and "
        "goes to 0.",
        _least_scale(1): "this keeps it, and half of it would do.",
        _least_scale(10): "at this scale it has all its digits; asked is the first that keeps it.",
    },
)

# --- precision-d: the states of a run of one's own

_ENTRIES = ("model", "gpus", "chip", "recipe", "zero_stage", "gigabytes")
_ROOM = 2 / 3
"""How much of a GPU's memory the states may take: activations come on top."""


class OwnStates(Exercise):
    """A design: the least sharding that leaves room, and what it weighs."""

    hint = (
        "Which parts does each stage share out, and among how many?",
        "Bytes a parameter: what stays, plus what is shared over gpus; times P.",
        "Shared over d: optimizer and main weights from stage 1 on, gradients "
        "from 2, weights at 3. Two thirds of the memory is the limit.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Grade the design by the first condition that doesn't hold."""
        if unanswered(answer):
            return NOT_YET
        design = design_of(answer, _ENTRIES, "model=…, gpus=…")
        P = int(count_parameters(known_model(design["model"])).total)
        n = int(entry(design, "gpus", single))
        stage = int(entry(design, "zero_stage", lambda name, number: single(name, number, least=0)))
        if stage > 3:
            refuse("zero_stage", stage, "is unknown. Known: 0, 1, 2, 3")
        recipe = choice("recipe", design["recipe"], RECIPES)
        claim = float(entry(design, "gigabytes"))
        chip = accelerator(design["chip"])
        if recipe == "pure_bf16":
            return False, (
                "pure_bf16 is light because it keeps no main weights: small updates "
                "are lost. Choose another recipe."
            )
        products = products_in(recipe)
        if products and products not in chip.peaks:
            return False, (
                f"the datasheet of {chip.name} knows no {products}: choose a recipe that it "
                "can compute."
            )
        by_stage = [_gigabytes(P, recipe, z, n) for z in range(4)]
        weighs = by_stage[stage]
        if abs(claim - weighs) > 0.01 * weighs:
            mistakes = {
                **{f"that is stage {z}, not stage {stage}.": x for z, x in enumerate(by_stage)},
                "these are the weights alone.": float(RECIPES[recipe].weights) * P / 1e9,
                f"this is for recipe bf16: put in the bytes of {recipe}.": (
                    _gigabytes(P, "bf16", stage, n)
                ),
                "this is in GiB: give GB, 10⁹ bytes.": weighs * units.GB / units.GiB,
            }
            return False, f"{_cause(claim, weighs, mistakes)} {HINT}"
        return _verdict_on_stage(by_stage, stage, memory_of(chip.name) / 1e9)

    def hints_for(self, answer: Answer) -> tuple[str, ...]:
        """The hints; the last one with the sums of the recipe that was chosen."""
        if not isinstance(answer, Mapping) or None in answer.values():
            return self.hint
        recipe = choice("recipe", answer["recipe"], RECIPES)
        return (*self.hint[:-1], f"{self.hint[-1]} {_sums(recipe)}")


def _gigabytes(parameters: int, recipe: RecipeName, zero_stage: int, replicas: int) -> float:
    """What the states weigh on each GPU, in GB."""
    return float(model_state_bytes(parameters, recipe, zero_stage, replicas).total) / 1e9


def _cause(claim: float, weighs: float, mistakes: Mapping[str, float]) -> str:
    """The slip behind a wrong number of GB, or which way it is off."""
    if claim > 1e6:
        return "this looks like bytes: give GB, 10⁹ bytes."
    for cause, mistake in mistakes.items():
        if abs(claim - mistake) <= 10 * NEAR * mistake:
            return cause
    return f"{claim:g} GB is too {'much' if claim > weighs else 'little'}."


def _verdict_on_stage(by_stage: Sequence[float], stage: int, memory: float) -> tuple[bool, str]:
    """Decide whether a stage is the first that leaves a third of the memory free, all in GB."""
    weighs, limit = by_stage[stage], _ROOM * memory
    summary = f"{units.digits(weighs)} GB of {units.digits(memory)}"
    if weighs > limit:
        no_stage = "" if by_stage[3] <= limit else " No stage does on so few GPUs."
        return False, f"{summary} leave less than a third free.{no_stage} {HINT}"
    lowest = next(z for z, size in enumerate(by_stage) if size <= limit)
    if lowest < stage:
        return False, f"{summary}: it fits, but stage {lowest} already does. {HINT}"
    remaining = units.digits(memory - weighs)
    return True, f"right: {summary}, and {remaining} GB are left for activations."


def _sums(recipe: RecipeName) -> str:
    """The bytes per parameter at each stage over d replicas, as people write the sum."""
    whole = RECIPES[recipe].total
    # Over two replicas a parameter weighs x + (whole - x)/2, x the bytes that are not shared.
    over_two = [model_state_bytes(1, recipe, stage, data_parallel=2).total for stage in (1, 2, 3)]
    unshared = [int(2 * total - whole) for total in over_two]
    sums = [f"{x} + {whole - x}/d" if x else f"{whole}/d" for x in unshared]
    return f"With recipe {recipe}: {whole}, {', '.join(sums)} bytes a parameter."


EXERCISES: dict[str, Exercise] = {
    "precision-share": FillIn(
        key=lambda: _bytes_at(2),
        unit=lambda number: f"{number:g} bytes",
        hint=(
            "Which parts are whole on every GPU at this stage, and which are shared out?",
            "The weights stay whole. Gradients, main weights and Adam are divided by d.",
        ),
        common_mistakes={
            "this is stage 0: nothing is shared out.": lambda: _bytes_at(0),
            "this is stage 1: at stage 2 the gradients are shared out as well.": lambda: _bytes_at(
                1
            ),
            "this is stage 3: at stage 2 every GPU still has all the weights.": lambda: _bytes_at(
                3
            ),
            "this is what is shared out, without the weights that stay.": lambda: (
                _bytes_at(2) - RECIPES["bf16"].weights
            ),
            "the gradients are missing: each GPU keeps its slice of them.": lambda: (
                _bytes_at(2) - RECIPES["bf16"].gradients / _SHARERS
            ),
        },
    ),
    "precision-a": Numeric(
        key=lambda: _E3M4.max,
        unit=lambda number: f"{number:g}",
        tolerance=0,
        hint=(
            "what does the fraction's factor become when all its bits are 1?",
            "with e exponent bits the bias is 2 ** (e - 1) - 1, and the largest exponent is as "
            "large.",
        ),
        common_mistakes={
            "2 * key": "the exponent is one too high: the highest stands for infinity.",
            "key / 2": "the exponent is one too low.",
            "2 - 2**-m": "this is the fraction's factor alone: times 2 to the exponent.",
            "(2 - 2**-m) * 2**6": "the bias is missing: 6 is what the exponent bits say, and the "
            "bias comes off.",
            "(2 - 2**-m) * 2**7": "the bias is missing, and 7 is set aside for infinity.",
            3: "this is the exponent alone: take 2 to that power, times the largest factor.",
            6: "the exponent bits say this: take off the bias, and raise 2 to the result.",
            15: "the exponent is right. The last place is 2 ** -m, and m is 4.",
            15.75: "the exponent is right. The last place is 2 ** -m, and m is 4, not 5.",
            16: "this is 2⁴, one place past the largest number.",
            30: "that would be so without infinity, as in fp8 E4M3; this format has it.",
            FORMATS["fp8_e5m2"].max: "this is fp8 E5M2.",
            240: "exponent and fraction are swapped: this is for 4 and 3 bits.",
            8: "this is 2³: the fraction can be all ones.",
        },
        values={"m": 4},
    ),
    "precision-b": Numeric(
        key=lambda: _lost_update("bf16"),
        unit=lambda number: (
            f"2⁻¹⁴ = {number:.2g}. At the end of many runs Adam's updates are "
            "some 0.00003, so this weight would never move again"
        ),
        tolerance=0.005,
        hint=(
            "how far is it from 0.02 to the next number of bf16?",
            "0.02 lies between two powers of two. What is the spacing there, and what share of "
            "it is lost?",
        ),
        common_mistakes={
            "2 * key": "this is the whole spacing, and arrives; half of it is lost.",
            **dict.fromkeys(
                [_lost_update("bf16", 1), 0.0039],  # as people round it
                "this is lost at a weight of 1; at 0.02 the numbers stand much closer.",
            ),
            FORMATS["bf16"].eps: "this is the spacing at 1.",
            _lost_update("fp16"): "this is the figure for fp16.",
            _WEIGHT * _lost_update("bf16", 1): "the spacing does not shrink in "
            "proportion to the weight: it halves at each power of two.",
        },
    ),
    "precision-c": MultipleChoice(
        key=_right_scale,
        options={
            "main weights": "no: they save updates. Here the gradients are 0 before "
            "any update is made, and main weights are kept already.",
            "S = 2**10": "no: the smallest, 2⁻³⁸ · 2¹⁰ = 2⁻²⁸, is still under 2⁻²⁵, and becomes 0.",
            "S = 2**16": "right: 2⁻³⁸ · 2¹⁶ = 2⁻²² is kept, and 2⁻³ · 2¹⁶ = 8,192 "
            "stays far below 65,520.",
            "S = 2**24": "no: the largest, 2⁻³ · 2²⁴ = 2²¹, is past 65,520 and "
            "overflows: every such step would be skipped.",
        },
        followups=[
            Question(
                "which is the smallest power of two that keeps the smallest of these gradients?",
                _LEAST_SCALE,
            )
        ],
    ),
    "precision-d": OwnStates(),
}


# --- predictions

_UPDATES, _SIZE = 1000, 0.003


def _destination() -> str:
    """The option that names where the weight stands at the end."""
    weight = update_weight(FORMATS["bf16"], 1, _SIZE, _UPDATES).direct
    if weight == 1:
        return "one"
    return "four" if abs(weight - 4) < 0.1 else "in between"


def _weight_of_mixed_precision() -> str:
    """The option that names what mixed precision leaves of fp32's bytes."""
    ratio = RECIPES["bf16"].total / RECIPES["fp32"].total
    return {0.5: "half", 0.75: "three quarters", 1: "the same"}.get(ratio, "more")


PREDICTIONS: dict[str, Prediction] = {
    "precision-guess": Prediction(
        truth=_destination,
        why="Where do the updates go? Play the first ten below.",
        options={
            "four": "On paper it does.",
            "in between": "On paper it reaches four, and here it doesn't even get started.",
            "one": "On paper it reaches four.",
        },
    ),
    "precision-half": Prediction(
        truth=_weight_of_mixed_precision,
        why="Choose the recipe in the picture below, and compare the parts.",
        options={
            "half": "Two of the parts do become half as large.",
            "three quarters": "Weights and gradients do save a quarter.",
            "the same": "Something takes back what 16 bits save.",
            "more": "With gradients in fp32 as well it is more. Here they are in bf16.",
        },
    ),
}
