"""One machine, recorded: its products, the steps of a small GPT, and the memory they took.

What no page can compute anew, because it differs from machine to machine and from minute
to minute. Needs no PyTorch. Source: `data/cpu_steps.csv`, measured for this course.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llmtrain_course.kit.evidence import confront
from llmtrain_helpers import published
from llmtrain_helpers.activations import Moment, step_timeline
from llmtrain_helpers.checks import refuse
from llmtrain_helpers.flops import count_flops
from llmtrain_helpers.model.names import architecture
from llmtrain_helpers.model.tables import checked_lines, names
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.results import Breakdown
from llmtrain_helpers.units import gigabytes, percent

if TYPE_CHECKING:
    from pandas import DataFrame

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


# --- other machines, as `measure --record` writes them

RECORD_COLUMNS = [
    "name",
    "kind",
    "model",
    "size",
    "sequence_length",
    "micro_batch_size",
    "recompute",
    "recipe",
    "attention",
    "seconds",
    "peak_bytes",
    "model_flops",
    "flops_per_gpu",
    "peak_flops",
    "mfu",
    "out_of_memory",
    "source",
]
"""What `python -m llmtrain_course measure --record FILE.csv` writes for each row."""


def machine_records() -> DataFrame:
    """What was recorded on machines at hand: all of data/measured/, one below another.

    Empty, with its columns, as long as there is no record.
    """
    from pandas import DataFrame, concat, read_csv

    paths = sorted((published.data_folder() / "measured").glob("*.csv"))
    for path in paths:
        checked_lines(path, RECORD_COLUMNS)
    tables = [
        read_csv(path, encoding="utf-8-sig", dtype_backend="numpy_nullable") for path in paths
    ]
    empty = DataFrame(columns=RECORD_COLUMNS)
    return concat(tables, ignore_index=True) if tables else empty


def recorded_steps() -> DataFrame:
    """Recorded training steps: peak of memory predicted, measured, their ratio; MFU.

    Those of models in `architectures()` that did not run out of memory.
    """
    steps = machine_records().query("kind == 'step'").dropna(subset="peak_bytes")
    steps = steps[steps["model"].isin(names("architectures"))]
    predicted = []
    for row in steps.to_dict("records"):
        model = architecture(row["model"], row["sequence_length"])
        step = (row["micro_batch_size"], row["recipe"], row["recompute"])
        peak = step_timeline(model, *step, attention=row["attention"]).peak
        predicted.append(peak.total)
    table = confront(steps["name"], predicted, steps["peak_bytes"], gigabytes)
    shares = steps["mfu"].astype(float).tolist()
    return table.assign(mfu=[percent(x) if x == x else "" for x in shares])
