"""Exercises of chapter 08: what PyTorch's instruments will show."""

from __future__ import annotations

from llmtrain_helpers import units
from llmtrain_helpers.batch import all_reduce_bytes
from llmtrain_helpers.checks import Result
from llmtrain_helpers.exercises.common import (
    PREFIXES,
    TWICE,
    Exercise,
    Function,
    Numeric,
    Word,
)

M, K, N = 512, 1024, 2048
"""The sizes of the product in 08-a: (M, K) times (K, N)."""


def _statistics(l: int, s: int, b: int) -> int:
    """Two LayerNorms a layer, a mean and a scale of 4 bytes for each token."""
    return l * 2 * 2 * 4 * s * b


def _sent(parameters: int, replicas: int) -> Result:
    """Gradients in fp32 through a ring."""
    return all_reduce_bytes(4 * parameters, replicas)


EXERCISES: dict[str, Exercise] = {
    "08-a": Numeric(
        key=lambda: 3 * 2 * M * K * N,
        unit=units.flops,
        tolerance=0,
        hint="Forward 2·m·k·n, and backward one product for each of the two inputs.",
        slips=PREFIXES
        | TWICE
        | {
            1 / 3: "the forward pass only: backward has two products of the same size.",
            2 / 3: "backward has two products, so it is three in all.",
        },
    ),
    "08-b": Numeric(
        key=lambda: _statistics(12, 1024, 8),
        unit=units.exact,
        tolerance=0,
        hint="A mean and a scale, 4 bytes each, for each token and each norm.",
        slips=PREFIXES
        | {
            1 / 12: "this is one layer: there are 12.",
            1 / 2: "a layer has two norms; and each keeps two numbers a token.",
            1 / 4: "a layer has two norms; and each keeps two numbers a token.",
        },
    ),
    "08-c": Word(
        key=lambda: "mlp",
        options={
            "scores": "no: backward needs the softmax, so they are computed again.",
            "mlp": "right: the MLP's second product gives only the layer's output, "
            "which backward does not need. 96 − 8 is 88.",
            "head": "no: the head is outside the layers, and is not computed again.",
        },
    ),
    "08-d": Function(
        key=_sent,
        cases=[
            {"parameters": 124_439_808, "replicas": 2},
            {"parameters": 8_030_261_248, "replicas": 64},
        ],
        hint="2(d − 1)/d times the buffer, and 4 bytes for each gradient.",
    ),
}
