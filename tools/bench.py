"""Speed, measured side by side on the machine at hand: `make bench`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from llmtrain_course.kit.panel import Panel
from llmtrain_course.panels import (
    PANELS,
    activations_panel,
    batch_panel,
    duration_panel,
    flops_panel,
    parameters_panel,
    plan_panel,
    precision_panel,
)
from llmtrain_helpers import (
    Transformer,
    count_parameters,
    frontier,
    gpt_flops,
    gpt_parameters,
    plan_run,
    published,
    shelf,
    sweep,
    training_seconds,
)

MILLION = np.arange(1, 1_000_001)


def import_alone(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)


@pytest.mark.benchmark(group="import, in a new process")
@pytest.mark.parametrize("module", ["sys", "llmtrain_helpers", "numpy"])
def test_import(benchmark, module: str) -> None:
    """`sys` is Python alone: take it off the other two before comparing them."""
    benchmark.pedantic(import_alone, args=[module], rounds=15, warmup_rounds=2)


@pytest.mark.benchmark(group="one model")
def test_one_formula(benchmark) -> None:
    benchmark(gpt_parameters, 96, 12288, 51200, 2048)


@pytest.mark.benchmark(group="one model")
def test_one_count(benchmark) -> None:
    model = Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192)
    benchmark(count_parameters, model)


@pytest.mark.benchmark(group="a million shapes in one call")
def test_a_million_gpts(benchmark) -> None:
    benchmark(gpt_parameters, 96, MILLION, 51200, 2048)


@pytest.mark.benchmark(group="a million shapes in one call")
def test_a_million_llamas(benchmark) -> None:
    def count_all() -> object:
        return count_parameters(Transformer.llama(MILLION, 4096, 32, 8, 14336, 128256, 8192))

    benchmark(count_all)


@pytest.mark.benchmark(group="a million runs in one call")
def test_a_million_gpt_flops(benchmark) -> None:
    benchmark(gpt_flops, 96, MILLION, 51200, 2048, 1536, "full")


@pytest.mark.benchmark(group="a million runs in one call")
def test_a_million_training_seconds(benchmark) -> None:
    benchmark(training_seconds, 300e9, 175e9, MILLION, 140e12, "full")


@pytest.mark.benchmark(group="a million plans in one call")
def test_a_million_plans(benchmark) -> None:
    model = published.architecture("GPT-3 175B", sequence_length=2048)
    tokens = np.linspace(1e11, 1e12, 2110).round()
    arguments = (model, published.accelerator("A100"), [1024, 1536, 2048, 3072])

    def plan_all() -> object:
        return sweep(*arguments, tokens, 1536, recompute=["none", "full"], zero_stage=1)

    assert len(benchmark.pedantic(plan_all, rounds=5, warmup_rounds=1)) >= 1_000_000


@pytest.mark.benchmark(group="one plan")
def test_one_plan(benchmark) -> None:
    model = published.architecture("Llama-3.1-8B", sequence_length=8192)
    run = (model, published.accelerator("H100"), 64, 10**12, 512)
    benchmark(plan_run, *run, recompute="none", zero_stage=1)


@pytest.mark.benchmark(group="one redraw of a panel, in the kernel")
def test_activations_panel(benchmark) -> None:
    benchmark(stepper(activations_panel(), "micro_batch_size"))


@pytest.mark.benchmark(group="one redraw of a panel, in the kernel")
def test_plan_panel(benchmark) -> None:
    benchmark(stepper(plan_panel(), "num_gpus"))


@pytest.mark.benchmark(group="one redraw of a panel, in the kernel")
def test_parameters_panel(benchmark) -> None:
    benchmark(stepper(parameters_panel(), "num_layers"))


@pytest.mark.benchmark(group="one redraw of a panel, in the kernel")
def test_flops_panel(benchmark) -> None:
    benchmark(stepper(flops_panel(), "num_gpus"))


@pytest.mark.benchmark(group="one redraw of a panel, in the kernel")
def test_batch_panel(benchmark) -> None:
    benchmark(stepper(batch_panel(), "micro_batch_size"))


@pytest.mark.benchmark(group="one redraw of a panel, in the kernel")
def test_precision_panel(benchmark) -> None:
    benchmark(stepper(precision_panel(), "data_parallel"))


@pytest.mark.benchmark(group="one redraw of a panel, in the kernel")
def test_duration_panel(benchmark) -> None:
    benchmark(stepper(duration_panel(), "num_gpus"))


@pytest.mark.benchmark(group="all presets of a panel, drawn from nothing")
@pytest.mark.parametrize("word", PANELS)
def test_presets(benchmark, word: str) -> None:
    """With what was there before; a refusal is drawn, too."""
    panel = PANELS[word]

    def draw_all() -> None:
        for values in panel.presets.values():
            panel.answer(values, before=panel.default)

    benchmark(draw_all)


@pytest.mark.benchmark(group="thirty shapes at one budget")
def test_a_frontier(benchmark) -> None:
    shapes = shelf() | {f"longer {n}": m for n, m in [*shelf(8192).items()][:7]}
    benchmark(frontier, published.accelerator("H100"), 64, 21, shapes, price_per_gpu_hour=2.5)


def stepper(panel: Panel, name: str) -> Callable[[], None]:
    """A function that steps one control of a panel."""

    def step() -> None:
        panel.act("write", name, panel.values()[name] % 900 + 16)

    return step
