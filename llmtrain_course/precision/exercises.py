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
        "What's the smallest number in fp16 that isn't 0?",
        "A number halfway between two others becomes the even one, and 0 is even.",
    ),
    common_mistakes={
        14: "That's only the power. Give the number itself, two to that power.",
        _least_scale(-1): "At this scale, the smallest gradient is exactly halfway to the smallest "
        "number, so it becomes 0.",
        _least_scale(1): "That keeps it, but half of it would be enough.",
        _least_scale(
            10
        ): "At this scale, the gradient has all its digits, but you were asked for the first "
        "scale that keeps it.",
    },
)

# --- precision-d: the states of a run of one's own

_ENTRIES = ("model", "gpus", "chip", "recipe", "zero_stage", "gigabytes")
_ROOM = 2 / 3
"""How much of a GPU's memory the states may take: activations come on top."""


class OwnStates(Exercise):
    """A design: the least sharding that leaves room, and what it weighs."""

    hint = (
        "Which parts does each stage shard, and over how many GPUs?",
        "Add up the bytes per parameter, divide what's sharded by gpus, and multiply by P.",
        "The optimizer and main weights are sharded over d from stage 1 on, gradients from 2, "
        "weights at 3. The limit is two thirds of the memory.",
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
                "pure_bf16 only needs so few bytes because it doesn't store main weights, so "
                "small updates are lost. Choose another recipe."
            )
        products = products_in(recipe)
        if products and products not in chip.peaks:
            return False, (
                f"The datasheet of {chip.name} doesn't list {products}, so choose a recipe that "
                "it can compute."
            )
        by_stage = [_gigabytes(P, recipe, z, n) for z in range(4)]
        weighs = by_stage[stage]
        if abs(claim - weighs) > 0.01 * weighs:
            mistakes = {
                **{f"That's stage {z}, not stage {stage}.": x for z, x in enumerate(by_stage)},
                "You've only counted the weights.": float(RECIPES[recipe].weights) * P / 1e9,
                f"That's for the recipe bf16. Use the bytes of {recipe}.": (
                    _gigabytes(P, "bf16", stage, n)
                ),
                "That's in GiB. Give GB, which are 10⁹ bytes.": weighs * units.GB / units.GiB,
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
    """The mistake behind a wrong number of GB, or the direction in which it's off."""
    if claim > 1e6:
        return "This looks like bytes. Give GB, which are 10⁹ bytes."
    for cause, mistake in mistakes.items():
        if abs(claim - mistake) <= 10 * NEAR * mistake:
            return cause
    return f"{claim:g} GB is too {'much' if claim > weighs else 'little'}."


def _verdict_on_stage(by_stage: Sequence[float], stage: int, memory: float) -> tuple[bool, str]:
    """Decide whether a stage is the first that leaves a third of the memory free, all in GB."""
    weighs, limit = by_stage[stage], _ROOM * memory
    summary = f"the states need {units.digits(weighs)} GB of {units.digits(memory)}"
    if weighs > limit:
        no_stage = "" if by_stage[3] <= limit else " No stage is enough on so few GPUs."
        return False, f"T{summary[1:]}, so less than 33% is left.{no_stage} {HINT}"
    lowest = next(z for z, size in enumerate(by_stage) if size <= limit)
    if lowest < stage:
        return False, f"T{summary[1:]}. That fits, but stage {lowest} is already enough. {HINT}"
    remaining = units.digits(memory - weighs)
    return True, f"Right: {summary}, and {remaining} GB are left for activations."


def _sums(recipe: RecipeName) -> str:
    """The bytes per parameter at each stage over d replicas, as people write the sum."""
    whole = RECIPES[recipe].total
    # Over two replicas a parameter weighs x + (whole - x)/2, x the bytes that are not shared.
    over_two = [model_state_bytes(1, recipe, stage, data_parallel=2).total for stage in (1, 2, 3)]
    unshared = [int(2 * total - whole) for total in over_two]
    sums = [f"{x} + {whole - x}/d" if x else f"{whole}/d" for x in unshared]
    return f"With recipe {recipe}: {whole}, {', '.join(sums)} bytes per parameter."


EXERCISES: dict[str, Exercise] = {
    "precision-share": FillIn(
        key=lambda: _bytes_at(2),
        unit=lambda number: f"{number:g} bytes",
        hint=(
            "Which parts are whole on every GPU at this stage, and which are sharded?",
            "The weights are whole. Divide gradients, main weights and Adam's averages by d.",
        ),
        common_mistakes={
            "That's stage 0, where nothing is sharded.": lambda: _bytes_at(0),
            "That's stage 1. At stage 2, the gradients are also sharded.": lambda: _bytes_at(1),
            "That's stage 3. At stage 2, every GPU still has all the weights.": lambda: _bytes_at(
                3
            ),
            "You've only counted what's sharded. The weights are whole on every GPU.": lambda: (
                _bytes_at(2) - RECIPES["bf16"].weights
            ),
            "You've left out the gradients. Each GPU stores its slice of them.": lambda: (
                _bytes_at(2) - RECIPES["bf16"].gradients / _SHARERS
            ),
        },
    ),
    "precision-a": Numeric(
        key=lambda: _E3M4.max,
        unit=lambda number: f"{number:g}",
        tolerance=0,
        hint=(
            "What does the fraction's factor become if all its bits are 1?",
            "With e exponent bits, the bias is 2 ** (e - 1) - 1, and the largest exponent is just "
            "as large.",
        ),
        common_mistakes={
            "2 * key": "Your exponent is one too high, because the highest stands for infinity.",
            "key / 2": "Your exponent is one too low.",
            "2 - 2**-m": "That's only the fraction's factor. Multiply it by 2 to the exponent.",
            "(2 - 2**-m) * 2**6": "You've left out the bias. The exponent bits are 6, but you "
            "have to subtract the bias.",
            "(2 - 2**-m) * 2**7": "You've left out the bias, and 7 is reserved for infinity.",
            3: "That's only the exponent. Raise 2 to that power, and multiply by the largest "
            "factor.",
            6: "That's the value of the exponent bits. Subtract the bias, and raise 2 to the "
            "result.",
            15: "Your exponent is right, but the last place is 2 ** -m, and m is 4.",
            15.75: "Your exponent is right, but the last place is 2 ** -m, and m is 4, not 5.",
            16: "That's 2⁴, one place past the largest number.",
            30: "That would be right without infinity, as in fp8 E4M3, but this format has it.",
            FORMATS["fp8_e5m2"].max: "That's fp8 E5M2.",
            240: "You've swapped exponent and fraction, so that's for 4 and 3 bits.",
            8: "That's 2³, but the fraction can be all ones.",
        },
        values={"m": 4},
    ),
    "precision-b": Numeric(
        key=lambda: _lost_update("bf16"),
        unit=lambda number: (
            f"2⁻¹⁴ = {number:.2g}. At the end of many runs, Adam's updates are "
            "about 0.00003, so this weight would never move again"
        ),
        tolerance=0.005,
        hint=(
            "How far is it from 0.02 to the next number in bf16?",
            "0.02 is between two powers of two. What's the spacing there, and how much of it is "
            "lost?",
        ),
        common_mistakes={
            "2 * key": "That's the whole spacing, which isn't lost, but half of it is.",
            **dict.fromkeys(
                [_lost_update("bf16", 1), 0.0039],  # as people round it
                "That's lost at a weight of 1, but at 0.02 the numbers are much closer together.",
            ),
            FORMATS["bf16"].eps: "That's the spacing at 1.",
            _lost_update("fp16"): "That's the number for fp16.",
            _WEIGHT * _lost_update("bf16", 1): "The spacing doesn't shrink in "
            "proportion to the weight, because it only halves at each power of two.",
        },
    ),
    "precision-c": MultipleChoice(
        key=_right_scale,
        options={
            "main weights": "No: they save updates. Here the gradients are 0 before "
            "any update is made, and there are main weights already.",
            "S = 2**10": "No: the smallest, 2⁻³⁸ · 2¹⁰ = 2⁻²⁸, is still below 2⁻²⁵, so it becomes "
            "0.",
            "S = 2**16": "Right: 2⁻³⁸ · 2¹⁶ = 2⁻²² is kept, and 2⁻³ · 2¹⁶ = 8,192 "
            "is far below 65,520.",
            "S = 2**24": "No: the largest, 2⁻³ · 2²⁴ = 2²¹, is above 65,520 and "
            "overflows, so every such step would be skipped.",
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
        why="To see what happens to the updates, play the first ten below.",
        options={
            "four": "On paper, it does.",
            "in between": "On paper the weight reaches four, but here it doesn't even get started.",
            "one": "On paper, the weight reaches four.",
        },
    ),
    "precision-half": Prediction(
        truth=_weight_of_mixed_precision,
        why="Choose the recipe in the picture below, and compare the parts.",
        options={
            "half": "Two of the parts are indeed half as large.",
            "three quarters": "Weights and gradients do save 25%.",
            "the same": "Something else uses up what 16 bits save.",
            "more": "It would be more if gradients were also in fp32, but here they're in bf16.",
        },
    ),
}
