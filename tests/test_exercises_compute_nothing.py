"""Formulas that only an exercise's key once had: they hold by themselves."""

import math

import numpy as np
import pytest

from llmtrain_helpers.activations import count_activations
from llmtrain_helpers.batch import pipeline_seconds
from llmtrain_helpers.evidence.published import architecture, batches_of_size, rows
from llmtrain_helpers.exercises.activations import own_peak
from llmtrain_helpers.laws import parameters_for
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.schedule import idle_share, pipeline_schedule
from llmtrain_helpers.precision import model_state_bytes


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
@pytest.mark.parametrize("micro_batches", [1, 4, 8, 63])
def test_stages_wait_as_long_as_in_the_schedule(stages: int, micro_batches: int) -> None:
    schedule = pipeline_schedule(stages, micro_batches)
    assert idle_share(stages, micro_batches) == pytest.approx(schedule.idle, abs=1e-9)


def test_a_step_is_its_passes_and_the_waiting() -> None:
    whole = pipeline_seconds(0.36, micro_batches=8, pipeline_parallel=4)
    useful = pipeline_seconds(0.36, micro_batches=8, pipeline_parallel=1)
    assert useful == pytest.approx(8 * 0.36)
    assert whole == pytest.approx(useful / (1 - idle_share(4, 8)))


def test_the_formulas_of_a_pipeline_take_arrays_and_refuse_slips() -> None:
    assert idle_share(np.array([1, 2]), 4) == pytest.approx([0, 1 / 5])
    assert pipeline_seconds(1.0, np.array([1, 7]), 2) == pytest.approx([2, 8])
    for bad in (0, -1, 1.5):
        with pytest.raises(ValueError, match="stages="):
            idle_share(bad, 4)
        with pytest.raises(ValueError, match="micro_batches="):
            pipeline_seconds(1, bad, 4)
    with pytest.raises(ValueError, match="seconds_per_pass="):
        pipeline_seconds(0, 4, 4)


@pytest.mark.parametrize("ratio", [1, 20, 40])
def test_a_size_by_a_rule_spends_the_whole_compute(ratio: float) -> None:
    N = parameters_for(1e22, ratio)
    assert 6 * N * (ratio * N) == pytest.approx(1e22)
    assert parameters_for(4e22, ratio) == pytest.approx(2 * N)
    assert parameters_for(np.array([1e22]), ratio) == pytest.approx([N])
    assert math.sqrt(1e22 / (6 * ratio)) == N


def test_batches_of_like_size_are_published_ones_and_sorted() -> None:
    published = {r["name"].split(" (")[0]: r.get("batch_tokens_end") for r in rows("batch_sizes")}
    for parameters in (355e6, 8e9, 1e15):
        known = batches_of_size(parameters)
        assert known == sorted(known)
        assert len(known) > 1
        assert {name for _, name in known} <= set(published)
    with pytest.raises(ValueError, match="parameters="):
        batches_of_size(-1)


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
def test_the_peak_of_06_d_adds_up_by_hand(recompute: str, zero_stage: int) -> None:
    """States that are shared out, activations, and the logits or a layer once more."""
    model = architecture("Llama-3.2-1B", 4096)
    design = {"model": "Llama-3.2-1B", "gpus": 8, "chip": "H100", "sequence": 4096}
    design |= {"zero": zero_stage, "recompute": recompute}
    P = count_parameters(model).total
    states = model_state_bytes(P, "bf16_fp32_grads", zero_stage, 8).total
    activations = count_activations(model, 2, recompute)
    one_layer = 0
    if recompute == "full":
        every = count_activations(model, 2, "none")
        one_layer = (every.layers - activations.layers) // model.num_layers
    logits = 8 * 2 * 4096 * model.vocab_size
    moment = max(logits, one_layer - activations.head)
    assert own_peak(design, 2) == states + activations.total + moment
