"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import sqrt
from random import Random

from llmtrain_helpers.batch import data_parallel_size
from llmtrain_helpers.checks import (
    Array,
    Count,
    Number,
    Quantity,
    Result,
    Size,
    as_sizes,
    checked,
    count,
    one,
    quantity,
    single,
)
from llmtrain_helpers.model.tables import Row, rows


@dataclass(frozen=True)
class Batch:
    """The size of each update of a run, and the run's number of updates and passes."""

    replicas: Size
    sequences: Size
    tokens: Size
    updates: Size
    passes: Size


@checked
def batch_of_run(
    tokens: Count[Number],
    num_gpus: Count[Number],
    micro_batch_size: Count[Number],
    gradient_accumulation_steps: Count[Number],
    sequence_length: Count[Number],
    tensor_parallel: Count[Number] = 1,
    pipeline_parallel: Count[Number] = 1,
    context_parallel: Count[Number] = 1,
) -> Batch:
    """Compute the batch from GPUs, split and accumulation, and the updates of a run with it.

    d = n / (TP·PP·CP) replicas, B = b·k·d sequences, Bs tokens, T/(Bs) updates rounded
    up, as the last may not be full, and k passes of each replica for each. Takes T tokens,
    s of them a sequence; whole numbers, or arrays.

    >>> batch_of_run(366e9, 384, 2, 128, 2048, tensor_parallel=4, pipeline_parallel=12)
    Batch(replicas=8, sequences=2048, tokens=4194304, updates=87262, passes=11169536)
    """
    T, s, k, b = as_sizes(tokens, sequence_length, gradient_accumulation_steps, micro_batch_size)
    n, t, p, c = as_sizes(num_gpus, tensor_parallel, pipeline_parallel, context_parallel)
    d = data_parallel_size(n, t, p, c)
    B = b * k * d
    updates = -(-T // (B * s))
    return Batch(d, B, B * s, updates, updates * k)


@dataclass(frozen=True)
class BatchCost:
    """The cost of a batch relative to the minimum: updates over S_min, samples over E_min."""

    updates: Result
    samples: Result


@checked
def batch_cost(global_batch_size: Quantity[float], critical: Quantity[float]) -> BatchCost:
    """Compute a run's updates and samples, relative to the minimum that any batch needs.

    S/S_min = 1 + B_c/B and E/E_min = 1 + B/B_c, so that (S/S_min − 1)(E/E_min − 1) = 1.
    `critical` is the critical batch B_c, in sequences or tokens as the batch is.

    Source: arXiv 1812.06162 equations 2.7 and 2.11.

    >>> batch_cost(4e6, critical=1e6)
    BatchCost(updates=1.25, samples=5.0)
    """
    B = global_batch_size
    return BatchCost(1 + critical / B, 1 + B / critical)


def tried_micro_batches() -> list[Row]:
    """The four steps that BLOOM's engineers timed on 384 A100s, differing only in micro-batch.

    >>> [row["micro_batch_size"] for row in tried_micro_batches()]
    [1, 2, 4, 8]
    """
    lines = ("line 607", "line 608", "line 609", "line 610")
    return [row for row in rows("bloom_sweeps") if row["name"] in lines]


def batches_near(tokens: Number, how_many: int = 3) -> dict[str, float]:
    """List the published runs with the nearest final batch in tokens, by name.

    >>> list(batches_near(62_914_560, how_many=1))
    ['DeepSeek-V3']
    """
    T, k = one("tokens", tokens, quantity), single("how_many", how_many)
    final_batches = {r["name"]: r.get("batch_tokens_end") for r in rows("batch_sizes")}
    batches = {name: float(size) for name, size in final_batches.items() if size}
    nearest = sorted(batches, key=lambda name: max(batches[name] / T, T / batches[name]))
    return {name: batches[name] for name in nearest[:k]}


def batches_of_size(parameters: Number) -> list[tuple[float, str]]:
    """List the final batches, in tokens, of published models of similar size, smallest first.

    With the models' names. Of like size is two thirds to 1.5 times as large; where
    fewer than two are, half to twice, or any.

    >>> batches_of_size(355e6)
    [(500000.0, 'GPT-3 350M'), (2097152.0, 'Pythia 410M')]
    """
    P = one("parameters", parameters, count)
    models = [row for row in rows("batch_sizes") if {"parameters", "batch_tokens_end"} <= {*row}]
    similar: set[tuple[float, str]] = set()
    for factor in (1.5, 2, float("inf")):
        if len(similar) < 2:
            similar = {
                (float(row["batch_tokens_end"]), row["name"].split(" (")[0])
                for row in models
                if max(row["parameters"] / P, P / row["parameters"]) <= factor
            }
    return sorted(similar)


@checked
def pipeline_seconds(
    seconds_per_pass: Quantity[float | Array],
    micro_batches: Count[float | Array],
    pipeline_parallel: Count[float | Array],
) -> float | Array:
    """Seconds of a step whose micro-batches run through a pipeline: (k + p - 1)·t.

    The first stage is done after k passes, the last one p - 1 turns later. A pass is
    one micro-batch on one stage, forward and backward, in seconds. Numbers or arrays.

    Source: arXiv 2104.04473 section 2.2.1.

    >>> round(pipeline_seconds(0.36, micro_batches=8, pipeline_parallel=4), 2)
    3.96
    """
    return (micro_batches + pipeline_parallel - 1) * seconds_per_pass


# --- a noisy gradient

NOISE_SCALE, TRIED = 8, 40
"""Sequences at which a mean misses by the gradient's own length, and batches that are tried.
Both are the picture's choice: a real gradient has as many directions as the model has
parameters, and its noise scale is thousands of sequences."""


def miss(batch: Number) -> Result:
    """Return how far a batch's gradient misses, in lengths of the gradient: √(noise scale / B).

    >>> miss(8), miss(32)
    (1.0, 0.5)
    """
    times: Result = (NOISE_SCALE / count("batch", batch)) ** 0.5
    return times


@cache
def mean_gradients(batch: int) -> list[tuple[float, float]]:
    """Draw the gradients of batches: means over `batch` sequences, in two directions.

    Each sequence's gradient is the true one, (1, 0), and normal noise whose variance in both
    directions together is the noise scale. A larger batch has the smaller one's sequences
    and more, so its mean moves on from there. Source: McCandlish et al., arXiv 1812.06162,
    section 2.
    """
    means = []
    for tried in range(TRIED):
        random = Random(160 + tried)  # about as many point backwards as on average
        noise = [(random.gauss(0, 1), random.gauss(0, 1)) for _ in range(batch)]
        x, y = (sqrt(NOISE_SCALE / 2) * sum(side) / batch for side in zip(*noise, strict=True))
        means.append((1 + x, y))
    return means
