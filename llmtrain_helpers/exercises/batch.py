"""Exercises of chapter 04: batches, splits, passes and updates."""

from __future__ import annotations

from llmtrain_helpers import units
from llmtrain_helpers.batch import (
    accumulation_steps,
    batch_tokens,
    data_parallel_size,
    global_batch_size,
    steps_per_epoch,
)
from llmtrain_helpers.checks import Result
from llmtrain_helpers.exercises.common import (
    PREFIXES,
    Exercise,
    Function,
    Numeric,
    Word,
)


def _llama() -> Result:
    d = data_parallel_size(16384, tensor_parallel=8, pipeline_parallel=16)
    return batch_tokens(global_batch_size(1, 16, d), 8192)


def _steps(
    global_batch: int, micro_batch: int, gpus: int, model_parallel: int
) -> Result:
    return accumulation_steps(global_batch, micro_batch, gpus // model_parallel)


EXERCISES: dict[str, Exercise] = {
    "04-a": Numeric(
        key=_llama,
        unit=lambda number: f"{units.exact(number)} tokens",
        tolerance=0,
        hint="GPUs / (TP · PP) replicas, times micro-batch, accumulation and sequence.",
        slips=PREFIXES
        | {
            8 * 16: "this counts every GPU as a replica: the 128 of TP · PP share one.",
            1 / 8192: "these are sequences: each has 8,192 tokens.",
        },
    ),
    "04-b": Numeric(
        key=lambda: 2 * steps_per_epoch(1000, 10),
        unit=lambda number: f"{units.exact(number)} passes",
        tolerance=0,
        hint="1000 samples in batches of 10, each batch in two halves.",
        slips={0.5: "these are the updates: each takes two passes of 5 samples."},
    ),
    "04-c": Function(
        key=_steps,
        cases=[
            {
                "global_batch": 1536,
                "micro_batch": 1,
                "gpus": 1536,
                "model_parallel": 64,
            },
            {"global_batch": 2048, "micro_batch": 2, "gpus": 384, "model_parallel": 48},
        ],
        hint="Global batch over micro-batch and replicas; replicas are GPUs over the "
        "GPUs that share a model.",
    ),
    "04-d": Word(
        key=lambda: "micro",
        options={
            "micro": "right: a GPU only ever holds the activations of one micro-batch.",
            "global": "no: accumulation and replicas make the global batch grow "
            "without more memory on any GPU.",
        },
    ),
}
