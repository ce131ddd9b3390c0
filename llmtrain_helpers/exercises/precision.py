"""Exercises of chapter 05: formats, updates, a loss scale, bytes of a run's states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.checks import choice, one, quantity, refuse, single
from llmtrain_helpers.evidence.published import accelerator, architecture
from llmtrain_helpers.exercises.common import (
    HINT,
    NEAR,
    UNANSWERED,
    Exercise,
    Numeric,
    Prediction,
    Word,
    read_as,
)
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.precision import (
    FORMATS,
    RECIPES,
    NumberFormat,
    model_state_bytes,
    products_in,
)

# --- 05-a: a format that the course does not list

_E3M4 = NumberFormat("e3m4", exponent_bits=3, mantissa_bits=4)

# --- 05-b: an update that is lost

_WEIGHT = 6


def _lost(name: str, weight: float = _WEIGHT) -> float:
    """The largest update upwards that is rounded away: half the spacing."""
    return float(FORMATS[name].spacing(weight) / 2)


# --- 05-c: a loss scale for gradients from 2⁻³⁸ to 2⁻³

_SMALLEST, _LARGEST = 2.0**-38, 2.0**-3
_SCALES = {"S = 2**10": 2.0**10, "S = 2**16": 2.0**16, "S = 2**24": 2.0**24}


def _stored(scale: float) -> tuple[float, float]:
    """What fp16 makes of the smallest and the largest gradient at this scale."""
    fp16 = FORMATS["fp16"]
    return fp16.round(_SMALLEST * scale), fp16.round(_LARGEST * scale)


def _right_scale() -> str:
    """The scale at which neither end is lost."""
    return next(
        name
        for name, scale in _SCALES.items()
        if _stored(scale)[0] > 0 and _stored(scale)[1] <= FORMATS["fp16"].max
    )


# --- 05-d: the states of a run of one's own

_ASKED = ("model", "gpus", "chip", "recipe", "zero_stage", "gigabytes")
_ROOM = 2 / 3
"""How much of a GPU's memory the states may take: activations come on top."""


@dataclass(frozen=True)
class OwnStates(Exercise):
    """A design: the least sharding that leaves room, and what it weighs."""

    hint: tuple[str, ...]

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """What the design weighs, or the first thing that does not hold."""
        if isinstance(answer, Mapping) and None in answer.values():
            return None, UNANSWERED
        P, n, chip, recipe, stage, said = _design(answer)
        trouble = _trouble(recipe, chip)
        if trouble:
            return False, trouble
        states = [model_state_bytes(P, recipe, z, n) for z in range(4)]
        weighs = [float(each.total) / 1e9 for each in states]
        others = {
            "these are the weights alone.": float(RECIPES[recipe].weights) * P / 1e9,
            f"this is for recipe bf16: put in the bytes of {recipe}.": float(
                model_state_bytes(P, "bf16", stage, n).total
            )
            / 1e9,
        }
        wrong = _misweighed(said, weighs, stage, others)
        if wrong:
            return False, f"{wrong} {HINT}"
        return _of_stage(weighs, stage, float(chip.memory) / 1e9)

    def hints(self) -> tuple[str, ...]:
        """What to say at the first wrong answer, the second, and from then on."""
        return self.hint

    def hints_for(self, answer: Any) -> tuple[str, ...]:
        """The same; the last one with the sums of the recipe that was chosen."""
        if not isinstance(answer, Mapping) or None in answer.values():
            return self.hint
        recipe = choice("recipe", answer["recipe"], RECIPES)
        return (*self.hint[:-1], f"{self.hint[-1]} {_sums(recipe)}")


def _sums(recipe: str) -> str:
    """Bytes a parameter at each stage over d replicas, as people write the sum."""
    kept = [model_state_bytes(1, recipe, z, data_parallel=2) for z in range(4)]
    whole = RECIPES[recipe].total
    alone = [int(2 * states.total - whole) for states in kept]  # x + (whole − x)/2
    sums = [f"{x} + {whole - x}/d" if x else f"{whole}/d" for x in alone[1:]]
    return f"With recipe {recipe}: {whole}, {', '.join(sums)} bytes a parameter."


def _design(answer: Any) -> tuple[int, int, Accelerator, str, int, float]:
    """Parameters, GPUs, chip, recipe, stage and GB; refuses what is missing."""
    if not isinstance(answer, Mapping):
        refuse("answer", answer, "is no dict(model=…, gpus=…, …)")
    missing = [name for name in _ASKED if name not in answer]
    if missing:
        refuse("answer", answer, f"leaves out {', '.join(missing)}")
    P = count_parameters(architecture(answer["model"])).total
    n = single("gpus", read_as("gpus", answer["gpus"]))
    stage = single("zero_stage", read_as("zero_stage", answer["zero_stage"]), least=0)
    if stage > 3:
        refuse("zero_stage", stage, "is unknown. Known: 0, 1, 2, 3")
    recipe = choice("recipe", answer["recipe"], RECIPES)
    said = one("gigabytes", read_as("gigabytes", answer["gigabytes"]), quantity)
    return int(P), n, accelerator(answer["chip"]), recipe, stage, float(said)


def _trouble(recipe: str, chip: Accelerator) -> str:
    """What speaks against a recipe: lost updates, or a chip without its format."""
    if recipe == "pure_bf16":
        return (
            "pure_bf16 is light because it keeps no main weights: small updates "
            "are lost. Choose another recipe."
        )
    needed = products_in(recipe)
    if needed and needed not in chip.peaks:
        return (
            f"the datasheet of {chip.name} knows no {needed}: choose a recipe that it can compute."
        )
    return ""


def _misweighed(said: float, weighs: list[float], stage: int, others: Mapping[str, float]) -> str:
    """The slip behind a wrong number of GB; nothing where it is right."""
    if abs(said - weighs[stage]) <= 0.01 * weighs[stage]:
        return ""
    if said > 1e6:
        return "this looks like bytes: give GB, 10⁹ bytes."
    known = {f"that is stage {z}, not stage {stage}.": x for z, x in enumerate(weighs)}
    known |= others
    known["this is in GiB: give GB, 10⁹ bytes."] = weighs[stage] / 1.073741824
    for told, value in known.items():
        if abs(said - value) <= 10 * NEAR * value:
            return told
    return f"{said:g} GB is too {'much' if said > weighs[stage] else 'little'}."


def _of_stage(weighs: list[float], stage: int, memory: float) -> tuple[bool, str]:
    """Whether this is the first stage that leaves a third of the memory."""
    told = f"{units.digits(weighs[stage])} GB of {units.digits(memory)}"
    if weighs[stage] > _ROOM * memory:
        more = "" if weighs[3] <= _ROOM * memory else " No stage does on so few GPUs."
        return False, f"{told} leave less than a third free.{more} {HINT}"
    if stage and weighs[stage - 1] <= _ROOM * memory:
        return False, f"{told}: it fits, but stage {stage - 1} already does. {HINT}"
    left = units.digits(memory - weighs[stage])
    return True, f"right: {told}, and {left} GB are left for activations."


EXERCISES: dict[str, Exercise] = {
    "05-a": Numeric(
        key=lambda: _E3M4.max,
        unit=lambda number: f"{number:g}",
        tolerance=0,
        hint=(
            "compare with the cell that built fp16: what changes with e, what with m?",
            "the bias is 2 ** (e - 1) - 1, and the largest exponent is as large.",
            "(2 − 2⁻⁴) · 2³",
        ),
        slips={
            2: "the exponent is one too high: the highest stands for infinity.",
            15 / 15.5: "the exponent is right. The last place is 2 ** -m, and m is 4.",
            15.75 / 15.5: "the exponent is right. The last place is 2 ** -m, and m is 4, not 5.",
            16 / 15.5: "this is 2⁴, one place past the largest number.",
            30 / 15.5: "that would be so without infinity, as in fp8 E4M3; this format has it.",
            FORMATS["fp8_e5m2"].max / 15.5: "this is fp8 E5M2.",
            240 / 15.5: "exponent and fraction are swapped: this is for 4 and 3 bits.",
            0.5: "the exponent is one too low.",
            8 / 15.5: "this is 2³: the fraction can be all ones.",
            1 / 8: "this is the fraction's factor alone: times 2 to the exponent.",
            16: "the bias is missing: the exponent is what is stored, less the bias.",
        },
    ),
    "05-b": Numeric(
        key=lambda: _lost("bf16"),
        unit=lambda number: f"2⁻⁶ = {number}",
        tolerance=0.002,
        hint=(
            "how far is it from 6 to the next number of bf16?",
            "between 4 and 8 the spacing is 4 times that at 1; half of it is lost.",
            "4 · 2⁻⁷ / 2",
        ),
        slips={
            2: "this is the whole spacing, and arrives; half of it is lost.",
            _lost("bf16", 1) / _lost("bf16"): "this is lost at a weight of 1; at 6 "
            "the numbers stand farther apart.",
            FORMATS["bf16"].eps / _lost("bf16"): "this is the spacing at 1.",
            _lost("fp16") / _lost("bf16"): "this is the figure for fp16.",
            _WEIGHT * _lost("bf16", 1) / _lost("bf16"): "the spacing does not grow in "
            "proportion to the weight: it doubles at each power of two.",
        },
    ),
    "05-c": Word(
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
    ),
    "05-d": OwnStates(
        hint=(
            "Which parts does each stage share out, and among how many?",
            "Bytes a parameter: what stays, plus what is shared over gpus; times P.",
            "Shared over d: optimizer and main weights from stage 1 on, gradients "
            "from 2, weights at 3. Two thirds of the memory is the limit.",
        )
    ),
}


# --- predictions

_UPDATES, _SIZE = 1000, 0.003


def walked(name: str) -> float:
    """Where a weight of 1 stands after a thousand updates of 0.003 in a format."""
    weight, known = 1.0, FORMATS[name]
    for _ in range(_UPDATES):
        weight = known.round(weight + _SIZE)
    return weight


def _where() -> str:
    end = walked("bf16")
    return "one" if end == 1 else "four" if abs(end - 4) < 0.1 else "in between"


PREDICTIONS = {
    "05-guess": Prediction(
        truth=_where,
        why="From 1 to the next number of bf16 it is 2⁻⁷ = 0.0078; 0.003 is less "
        "than half of it, so each update is rounded away, the thousandth like the "
        "first.",
        options={
            "four": "So it is on paper, and nearly so in fp32.",
            "in between": "That would be so if only a part of the updates were lost; "
            "but all are alike, and start from the same weight.",
            "one": "You saw that nothing distinguishes one update from the next.",
        },
    )
}
