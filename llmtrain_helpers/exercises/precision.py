"""Exercises of chapter 05: formats, updates, bytes for each parameter."""

from __future__ import annotations

from llmtrain_helpers import units
from llmtrain_helpers.checks import Result
from llmtrain_helpers.exercises.common import Exercise, Function, Numeric, Word
from llmtrain_helpers.precision import FORMATS, model_state_bytes


def _zero_1(parameters: int, replicas: int) -> Result:
    return model_state_bytes(parameters, "bf16", 1, replicas).total


EXERCISES: dict[str, Exercise] = {
    "05-a": Numeric(
        key=lambda: FORMATS["fp16"].max,
        unit=units.exact,
        tolerance=0,
        hint="The largest exponent is 15, the mantissa is all ones: (2 − 2⁻¹⁰) · 2¹⁵.",
        slips={
            FORMATS["fp8_e5m2"].max / FORMATS["fp16"].max: "this is fp8 E5M2: as many "
            "exponent bits, but only two of mantissa.",
            65536 / 65504: "this is 2¹⁶, one step beyond the largest number.",
        },
    ),
    "05-b": Numeric(
        key=lambda: FORMATS["bf16"].eps / 2,
        unit=lambda number: f"2⁻⁸ = {number}",
        tolerance=0,
        hint="At 1 the step is eps = 2⁻⁷; up to half of it is rounded away.",
        slips={
            2: "this is the whole step, and arrives; half a step is lost.",
            FORMATS["fp16"].eps / FORMATS["bf16"].eps: "this is the figure for fp16.",
        },
    ),
    "05-c": Function(
        key=_zero_1,
        cases=[
            {"parameters": 7_500_000_000, "replicas": 64},
            {"parameters": 8_030_261_248, "replicas": 8},
        ],
        hint="2 bytes of weights and 2 of gradients stay; 12 are shared out.",
    ),
    "05-d": Word(
        key=lambda: "activations",
        options={
            "activations": "right: they are kept in 16 bits, and matrix products run "
            "faster; the model states weigh 16 bytes and more, as in fp32.",
            "states": "no: weights and gradients shrink, but the master copy in fp32 "
            "takes it back. 2 + 2 + 4 + 8 is 16 again.",
        },
    ),
}
