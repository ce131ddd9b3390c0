"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmtrain_helpers.batch import data_parallel_size
from llmtrain_helpers.checks import Number, Result, counts

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Batch:
    """What each update of a run takes in, and how many updates and passes the run has."""

    replicas: Result
    sequences: Result
    tokens: Result
    updates: Result
    passes: Result


def batch_of_run(
    tokens: Number,
    num_gpus: Number,
    micro_batch_size: Number,
    gradient_accumulation_steps: Number,
    sequence_length: Number,
    tensor_parallel: Number = 1,
    pipeline_parallel: Number = 1,
    context_parallel: Number = 1,
) -> Batch:
    """The batch that GPUs, split and accumulation make, and the updates of a run with it.

    d = n / (TP·PP·CP) replicas, B = b·k·d sequences, Bs tokens, T/(Bs) updates rounded
    up, as the last may not be full, and k passes of each replica for each. Takes T tokens,
    s of them a sequence; whole numbers, or arrays.

    >>> batch_of_run(366e9, 384, 2, 128, 2048, tensor_parallel=4, pipeline_parallel=12)
    Batch(replicas=8, sequences=2048, tokens=4194304, updates=87262, passes=11169536)
    """
    T, n, b, k, s, t, p, c = counts(
        tokens=tokens,
        num_gpus=num_gpus,
        micro_batch_size=micro_batch_size,
        gradient_accumulation_steps=gradient_accumulation_steps,
        sequence_length=sequence_length,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        context_parallel=context_parallel,
    )
    d = data_parallel_size(n, t, p, c)
    B = b * k * d
    updates = -(-T // (B * s))
    return Batch(d, B, B * s, updates, updates * k)
