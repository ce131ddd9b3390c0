"""Speed, measured side by side on the machine at hand: `make bench`."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from llmtrain_helpers import Transformer, count_parameters, gpt_parameters
from llmtrain_helpers.panels import parameters_panel

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
        return count_parameters(
            Transformer.llama(MILLION, 4096, 32, 8, 14336, 128256, 8192)
        )

    benchmark(count_all)


@pytest.mark.benchmark(group="one redraw of a panel, in the kernel")
def test_parameters_panel(benchmark) -> None:
    panel = parameters_panel()
    layers = panel.controls["num_layers"]

    def step() -> None:
        layers.value = layers.value % 900 + 1

    benchmark(step)
