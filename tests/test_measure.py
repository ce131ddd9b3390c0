"""The module `measure` without PyTorch: it imports, and says what is missing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmtrain_helpers import Transformer, measure
from llmtrain_helpers.exercises import check
from llmtrain_helpers.figures import describe
from llmtrain_helpers.figures.measure import operators, throughputs
from llmtrain_helpers.measure.__main__ import main

from .bad_values import BAD_COUNTS, assert_refused

SHAPE = Transformer.llama(1, 8, 2, 1, 8, 8, 4)

CALLS: dict[str, Callable[[Any], Any]] = {
    "parameters": lambda model: measure.measure_parameters(model),
    "flops": lambda model: measure.measure_flops(model, 1, "none"),
    "saved": lambda model: measure.saved_tensors(model, 1),
    "activations": lambda model: measure.measure_activations(model, 1),
    "memory": lambda model: measure.measure_step_memory(model, 1, "fp32", "none"),
    "seconds": lambda model: measure.step_seconds(model, [1]),
    "time": lambda model: measure.measure_step_time(model, [1, 2, 4]),
    "profile": lambda model: measure.profile_step(model, 1),
}


@pytest.fixture
def no_torch(monkeypatch: Any) -> None:
    """As if PyTorch were not installed."""
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.usefixtures("no_torch")
def test_the_sentence_that_a_learner_without_pytorch_reads() -> None:
    sentence = measure.torch_missing()
    assert sentence is not None
    assert "PyTorch is not installed" in sentence
    assert "`pip install 'torch>=2.13'`" in sentence
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0


def test_no_sentence_where_it_is_installed(monkeypatch: Any) -> None:
    monkeypatch.setattr(measure, "find_spec", lambda name: object())
    assert measure.torch_missing() is None


@pytest.mark.usefixtures("no_torch")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_function_says_it_too(call: Callable[[Any], Any]) -> None:
    with pytest.raises(ImportError, match="PyTorch is not installed"):
        call(SHAPE)


@pytest.mark.usefixtures("no_torch")
def test_so_does_the_command(tmp_path: Path, capsys: Any) -> None:
    assert main(["--record", str(tmp_path / "x.csv")]) == 2
    assert capsys.readouterr().err.strip() == measure.torch_missing()
    assert not list(tmp_path.iterdir())


BAD_SHAPES = {
    "model": "gpt2",
    "hidden_size": Transformer.gpt(2, np.array([48, 96]), 4, 50, 16),
    "head_dim": Transformer.llama(1, 6, 2, 2, 8, 8, 4),
}


@pytest.mark.parametrize("argument", BAD_SHAPES)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_shapes_that_cannot_be_built_are_refused(
    call: Callable[[Any], Any], argument: str
) -> None:
    assert_refused(lambda: call(BAD_SHAPES[argument]), argument)


@pytest.mark.parametrize("value", BAD_COUNTS, ids=repr)
def test_bad_counts_are_refused(value: Any) -> None:
    def memory(**values: Any) -> Any:
        good = {"micro_batch_size": 1, "recipe": "fp32", "recompute": "none"}
        return measure.measure_step_memory(SHAPE, **good | values)

    for name in ("micro_batch_size", "steps", "accumulation_steps"):
        assert_refused(memory, name, **{name: value})
    assert_refused(lambda: measure.measure_flops(SHAPE, value, "none"), "batch_size")
    assert_refused(lambda: measure.step_seconds(SHAPE, [1], repeats=value), "repeats")


@pytest.mark.parametrize("value", [None, "ful", "amp", "fp8", 1])
def test_unknown_names_are_refused_with_the_known_ones(value: Any) -> None:
    def memory(**values: Any) -> Any:
        good = {"micro_batch_size": 1, "recipe": "fp32", "recompute": "none"}
        return measure.measure_step_memory(SHAPE, **good | values)

    for name in ("recipe", "recompute", "attention"):
        assert_refused(memory, name, **{name: value})
    with pytest.raises(ValueError, match="Known: none, selective, full"):
        memory(recompute=value)


@pytest.mark.usefixtures("no_torch")
def test_a_notebook_shows_the_sentence_and_no_traceback() -> None:
    with pytest.raises(measure.TorchMissingError) as caught:
        measure.require_torch()
    assert caught.value._render_traceback_() == [measure.torch_missing()]


def test_processes_that_do_not_share_a_batch_evenly_are_refused() -> None:
    share = measure.measure_data_parallel
    assert_refused(lambda: share(SHAPE, 8, 3), "batch_size=8 is not divisible")
    assert_refused(lambda: share(SHAPE, 64, 64), "processes=64 is more than")


# --- figures and exercises, which need no PyTorch


def test_figures_of_times_have_words_without_numbers() -> None:
    steps = [measure.Operator("mm", p, 0.0, 1e-3, True) for p in measure.PHASES]
    told = describe(operators(measure.StepProfile(tuple(steps))))
    assert told.startswith("Figure: A training step on this machine")
    told += describe(throughputs([1, 2], {"here": [0.1, 0.1], "record": [0.2, 0.3]}))
    assert not re.search(r"\d", told)


def test_a_profile_adds_up() -> None:
    profile = measure.StepProfile(
        (
            measure.Operator("mm", "forward", 0.0, 3e-3, True),
            measure.Operator("add", "backward", 3e-3, 1e-3, False),
        )
    )
    assert profile.seconds == pytest.approx(4e-3)
    assert profile.matmul_share == pytest.approx(0.75)
    assert profile.phase_seconds()["optimizer"] == 0


def test_the_checks_name_the_slips() -> None:
    key = 6 * 512 * 1024 * 2048
    assert check("08-a", key).ok
    assert "forward pass only" in check("08-a", key // 3).text
    assert "three in all" in check("08-a", 2 * key // 3).text
    assert "two norms" in check("08-b", 12 * 2 * 4 * 1024 * 8).text
    assert check("08-c", "mlp").ok
    assert "outside the layers" in check("08-c", "head").text
    assert check("08-d", lambda parameters, replicas: 8.0 * parameters).ok is False
