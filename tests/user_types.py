"""What a user's type checker sees: mypy in `make lint`, pyright in `make types`.

A line that says `type: ignore` is a mistake, and both checkers have to find it.
"""

from __future__ import annotations

from typing import assert_type

import numpy as np

from llmtrain_helpers import (
    Accelerator,
    Interval,
    Plan,
    Transformer,
    fewest_gpus,
    gpt_flops,
    plan_run,
    published,
    training_seconds,
    units,
)


def models_and_chips() -> None:
    assert_type(Transformer.gpt(96, 12288, 96, 51200, 2048), Transformer)
    assert_type(published.architecture("gpt2"), Transformer)
    assert_type(published.accelerator("H100"), Accelerator)


def plans() -> None:
    plan = plan_run("Llama-3.1-8B", "H100", 64, 10**12, 512, recompute="none")
    assert_type(plan, Plan)
    assert_type(plan.days, Interval)
    assert_type(fewest_gpus(plan_run("gpt2", "H100", 8, 10**9, 8, recompute="none")), Plan)


def texts() -> None:
    assert_type(units.duration(86400), str)
    assert_type(units.count(175_000_000_000), str)


def arrays() -> None:
    training_seconds(300e9, 175e9, np.array([512, 1024]), 140e12, "full")
    gpt_flops(96, np.array([6144, 12288]), 51200, 2048, 1536, "full")


def mistakes() -> None:
    training_seconds("300B", 175e9, 1024, 140e12, "full")  # type: ignore[type-var]
    plan_run("gpt2", "H100", 8, 10**9, 8, recompute="none", gpus=8)  # type: ignore[call-arg]
