"""What a user's type checker sees: mypy in `make lint`, pyright in `make types`.

A line that says `type: ignore` is a mistake, and both checkers have to find it.
"""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from llmtrain_helpers import (
    Accelerator,
    Interval,
    Plan,
    Transformer,
    fewest_gpus,
    global_batch_size,
    gpt_activation_bytes,
    gpt_flops,
    gpt_parameters,
    gpu_hours,
    plan_run,
    published,
    steps_per_epoch,
    sweep,
    training_seconds,
    units,
)


def counts_and_rates() -> None:
    assert_type(gpt_parameters(96, 12288, 51200, 2048), int)
    assert_type(gpt_flops(96, 12288, 51200, 2048, 1536, "full"), int)
    assert_type(global_batch_size(1, gradient_accumulation_steps=8, data_parallel=4), int)
    assert_type(steps_per_epoch(1000, 32), int)
    assert_type(training_seconds(300e9, 175e9, 1024, 140e12, "full"), float)
    assert_type(gpu_hours(86400, 1024), float)


def models_and_chips() -> None:
    assert_type(Transformer.gpt(96, 12288, 96, 51200, 2048), Transformer)
    assert_type(published.architecture("gpt2"), Transformer)
    assert_type(published.accelerator("H100"), Accelerator)


def plans() -> None:
    plan = plan_run("Llama-3.1-8B", "H100", 64, 10**12, 512, recompute="none")
    assert_type(plan, Plan)
    assert_type(plan.days, Interval)
    assert_type(plan.replace(shard="fsdp", sequence_length=4096), Plan)
    assert_type(fewest_gpus(plan_run("gpt2", "H100", 8, 10**9, 8, recompute="none")), Plan)


def texts() -> None:
    assert_type(units.duration(86400), str)
    assert_type(units.count(175_000_000_000), str)


def arrays() -> None:
    sizes: NDArray[np.int64] = np.array([6144, 12288])
    assert_type(gpt_parameters(96, sizes, 51200, 2048), int | NDArray[Any])
    assert_type(training_seconds(300e9, 175e9, sizes, 140e12, "full"), float | NDArray[Any])


def mistakes() -> None:
    training_seconds("300B", 175e9, 1024, 140e12, "full")  # type: ignore[type-var]
    training_seconds(300e9, 175e9, 1024, 140e12, "ful")  # type: ignore[arg-type]
    gpt_flops(96, 12288, 51200, 2048, 1536, "all")  # type: ignore[arg-type]
    gpt_activation_bytes(96, 12288, 96, 2048, 1, recompute="ful")  # type: ignore[arg-type]
    plan_run("gpt2", "H100", 8, 10**9, 8, recompute="non")  # type: ignore[arg-type]
    plan = plan_run("gpt2", "H100", 8, 10**9, 8, recompute="none", shard="fsd")  # type: ignore[arg-type]
    plan.replace(uneven_stage=True)  # type: ignore[call-arg]
    sweep("gpt2", "H100", 8, 10**9, 8, recompute="none", software="mine")  # type: ignore[arg-type]
    plan_run("gpt2", "H100", 8, 10**9, 8, recompute="none", gpus=8)  # type: ignore[call-arg]
