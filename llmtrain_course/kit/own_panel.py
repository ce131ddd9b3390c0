"""A panel that can start from your own run: its controls' values, all from one plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from llmtrain_course.kit.own_run import OwnRun, own_run
from llmtrain_course.kit.panel import Panel, Value, changed
from llmtrain_helpers import units
from llmtrain_helpers.batch import accumulation_steps
from llmtrain_helpers.calendar import calendar_days
from llmtrain_helpers.checks import Number
from llmtrain_helpers.duration import training_seconds
from llmtrain_helpers.model.names import known_accelerator, known_model
from llmtrain_helpers.model.tables import names

YOURS = "your own run"
"""The name of the preset."""

TEXT_TOKENS = 800
"""Tokens of each text that your own run is fine-tuned on."""


def own_values(run: OwnRun) -> dict[str, dict[str, Value]]:
    """What each chapter's panel takes from a run, by the chapter's word and the control.

    06's panel is missing, because it has one GPU that shares nothing, and 12's has no model.
    A `percent` is the share of the peak at which 6TP takes the days that the plan promises.
    ValueError where the run has no plan.
    """
    plan, chip = run.plan, known_accelerator(run.chip)
    split, published = plan.split, run.model in names("architectures")
    size = _rounded(plan.parameters.active)
    peak = chip.peak(chip.training_format)
    least = training_seconds(run.tokens, plan.parameters.active, run.gpus, peak, "none")
    percent = _rounded(100 * least / (units.DAY * plan.first_run.greatest))
    machines: dict[str, Value] = {"num_gpus": run.gpus, "chip": run.chip}
    of_model: dict[str, Value] = {"model": run.model} if published else {"config": run.model}
    passes = accumulation_steps(run.batch, split.micro_batch_size, split.data_parallel)
    ways: dict[str, Value] = {
        "tensor_parallel": split.tensor_parallel,
        "pipeline_parallel": split.pipeline_parallel,
        "micro_batch_size": split.micro_batch_size,
        "sequence_length": run.sequence,
    }
    planned = machines | ways | {"zero_stage": plan.run.zero_stage}
    planned |= {"recompute": plan.run.recompute, "global_batch_size": run.batch}
    node = min(run.gpus, chip.gpus_per_node)
    values: dict[str, dict[str, Value]] = {
        "start_here": machines | {"days": run.days, "parameters": size, "percent": percent},
        "parameters": {"model": run.model if published else "a config.json, pasted"},
        "flops": machines
        | {"model": run.model, "recompute": plan.run.recompute, "batch_size": run.batch}
        | {"sequence_length": run.sequence}
        | {"seconds": _rounded(plan.seconds_per_iteration.likely)},
        "duration": machines
        | {"model": run.model, "tokens": run.tokens, "percent": percent, "price": run.price},
        "batch": ways | {"num_gpus": run.gpus, "accumulation": int(passes), "tokens": run.tokens},
        "precision": {"model": run.model, "chip": run.chip}
        | {"data_parallel": split.data_parallel, "zero_stage": plan.run.zero_stage},
        "communication": machines
        | {"model": run.model, "passes": int(passes)}
        | {"tokens": run.sequence * split.micro_batch_size},
        "parallelism": planned | {"model": run.model},
        "plan": planned | of_model | {"tokens": run.tokens, "days": run.days, "price": run.price},
        "calendar": {
            "num_gpus": run.gpus,
            "work_days": _rounded(calendar_days(plan).computing.likely, 3),
        },
        "budget": {
            "model": run.model,
            "size": size,
            "speed": "slow end",
            "days": run.days,
            "money": run.price * run.gpus * 24 * run.days,
            "chip": run.chip,
            "price": run.price,
        },
        "finetune": machines
        | {"model": run.model, "num_gpus": node, "price": run.price}
        | {"sequence_length": run.sequence, "tokens_each": TEXT_TOKENS},
    }
    if not published:
        values["parameters"] |= {"config": Path(run.model).read_text("utf-8")}
    if known_model(run.model).sequence_length != run.sequence:
        del values["budget"]  # its panel has a model's own sequences
    return values


def _rounded(value: Number, digits: int = 4) -> float:
    """So many digits, as people write them."""
    return float(f"{float(value):.{digits}g}")


def with_own_run(word: str, panel: Panel) -> Panel:
    """The chapter's panel, and your own run among what it can start from.

    The example isn't offered, and neither is a run whose model, chip or recomputation the
    panel doesn't have among its choices.
    """
    run = own_run()
    if run.example:
        return panel
    try:
        values: Mapping[str, Value] = own_values(run)[word]
        values = {name: panel.controls[name].read(value) for name, value in values.items()}
    except (KeyError, OSError, ValueError):
        return panel
    setting = changed(panel.setting(panel.default), values)
    return replace(panel, settings={**panel.settings, YOURS: setting})
