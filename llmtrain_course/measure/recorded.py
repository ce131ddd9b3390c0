"""One machine, recorded: its products, the steps of a small GPT, and the memory they took.

What no page can compute anew, because it differs from machine to machine and from minute
to minute. Needs no PyTorch. Source: `data/cpu_steps.csv`, measured for this course.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llmtrain_helpers import published
from llmtrain_helpers.activations import Moment, step_timeline
from llmtrain_helpers.checks import refuse
from llmtrain_helpers.flops import count_flops
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.results import Breakdown

BATCH = 4
"""Sequences of a recorded step."""


def recorded_model(hidden_size: int) -> Transformer:
    """The small GPT whose steps were recorded, in one of its widths."""
    return Transformer.gpt(4, hidden_size, 8, 1024, 256)


def product_rates() -> dict[int, float]:
    """FLOP/s of a product of two square matrices, by their size.

    >>> rates = product_rates()
    >>> rates[16] < rates[64] < rates[256]
    True
    """
    return {row["size"]: 2 * row["size"] ** 3 / row["seconds"] for row in _rows("product")}


def recorded_peak() -> float:
    """The highest rate that any product reached, in FLOP/s."""
    return max(product_rates().values())


@dataclass(frozen=True)
class StepSpent(Breakdown[float]):
    """Seconds of a recorded step, by what they went to.

    `products` of matrices, `others` (norms, softmax, GELU, copies, and Python between
    the operators) and the `update`. `ideal` is what the step's FLOPs take at the peak.
    """

    _not_parts = ("ideal",)

    products: float
    others: float
    update: float
    ideal: float

    @property
    def ratio(self) -> float:
        """How many times the predicted seconds the step took."""
        return float(self.total / self.ideal)


def recorded_step(hidden_size: int) -> StepSpent:
    """The seconds of a step of `recorded_model`, and those that its FLOPs promise.

    >>> recorded_step(64).ratio > recorded_step(512).ratio > 1
    True
    """
    row = _step(hidden_size)
    work = count_flops(recorded_model(hidden_size), BATCH, "none").total
    others = row["seconds"] - row["products"] - row["update"]
    return StepSpent(row["products"], others, row["update"], work / recorded_peak())


def recorded_memory(hidden_size: int) -> tuple[Moment, float]:
    """The predicted peak of a step, and bytes that the process took from its machine.

    >>> predicted, taken = recorded_memory(512)
    >>> 1 < taken / predicted.total < 2
    True
    """
    row = _step(hidden_size)
    shape = recorded_model(hidden_size)
    line = step_timeline(shape, BATCH, "fp32", "none", attention="unfused")
    return line.peak, float(row["process_bytes"])


WIDTHS = (64, 128, 256, 512)
"""Hidden sizes of the recorded steps."""


def _step(hidden_size: int) -> dict[str, Any]:
    if hidden_size not in WIDTHS:
        refuse("hidden_size", hidden_size, f"was not recorded; known: {WIDTHS}")
    return next(row for row in _rows("step") if row["size"] == hidden_size)


def _rows(kind: str) -> list[dict[str, Any]]:
    return [row for row in published.rows("cpu_steps") if row["kind"] == kind]
