"""What real steps hold is what the timeline says, mark by mark; one difference."""

from __future__ import annotations

from itertools import product

import pytest

from llmtrain_course.measure import CORES, TRAINABLE, between_operators, measure_step_memory, memory
from llmtrain_helpers import (
    Moment,
    Timeline,
    Transformer,
    count_parameters,
    model_state_bytes,
    published,
    step_timeline,
)
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.precision import RECIPES

from .shapes import SHAPES

UNTIED = ["gpt untied", "llama gqa", "llama qk norm", "experts"]
OPTIONS = list(product(RECOMPUTE, CORES, [False, True]))


@pytest.mark.parametrize("recipe", TRAINABLE)
@pytest.mark.parametrize("name", UNTIED)
def test_every_mark_of_two_steps_with_accumulation(name: str, recipe: str) -> None:
    shape, b = SHAPES[name], 3
    for recompute, attention, dropout in OPTIONS:
        options = (recipe, recompute, 2, 2, attention, dropout)
        measured = measure_step_memory(shape, b, *options)
        assert measured == between_operators(step_timeline(shape, b, *options)), options


@pytest.mark.parametrize("recipe", ["fp32", "bf16", "pure_bf16"])
def test_a_tied_head_too_without_accumulation(recipe: str) -> None:
    for name in ("gpt", "gpt odd", "llama mqa tied"):
        for options in OPTIONS:
            recompute, attention, dropout = options
            arguments = (recipe, recompute, 2, 1, attention, dropout)
            measured = measure_step_memory(SHAPES[name], 2, *arguments)
            counted = between_operators(step_timeline(SHAPES[name], 2, *arguments))
            assert measured == counted, options


def test_the_peak_stands_at_the_loss_of_the_second_step() -> None:
    shape = Transformer.gpt(2, 32, 2, 997, 64)
    measured = measure_step_memory(shape, 8, "bf16", "none")
    formula = step_timeline(shape, 8, "bf16", "none")
    assert measured.peak == formula.peak
    assert (measured.peak.step, measured.peak.mark) == (2, "loss")
    first = Timeline(measured.moments[:6]).peak
    assert first.mark == "loss"
    assert measured.peak.total - first.total == first.parts()["optimizer"] + (
        8 * count_parameters(shape).total  # Adam's state is there in the second
    )


@pytest.mark.parametrize("recipe", TRAINABLE)
def test_model_states(recipe: str) -> None:
    shape = SHAPES["llama all"]
    last = measure_step_memory(shape, 1, recipe, "none").moments[-1]
    states = model_state_bytes(count_parameters(shape).total, recipe)
    assert last.mark == "update"
    assert last.weights == states.weights + states.main_weights
    assert last.gradients == states.gradients + states.main_gradients
    assert last.optimizer == states.optimizer
    assert last.activations == last.logits == 0


def test_the_recorded_trace_is_what_pytorch_still_does() -> None:
    recorded = [x for x in published.rows("memory_trace") if x["micro_batch_size"] == 1]
    shape = published.architecture("Llama-3.2-1B", 8192)
    again = memory.peaks(shape, 1, "bf16")
    assert [(x.step, x.part, x.layer) for x in again] == [
        (x["step"], x["part"], x["layer"]) for x in recorded
    ]
    sizes = [x["bytes"] for x in recorded]
    assert [x.bytes for x in again] == pytest.approx(sizes, rel=0.005)
    peak = step_timeline(shape, 1, "bf16", "none").peak.total
    assert max(sizes) == pytest.approx(peak, rel=0.002)


# --- where what happens is not what the formula says


def layers(timeline: Timeline, micro_batch: int) -> Moment:
    [total] = [
        moment
        for moment in timeline.moments
        if (moment.step, moment.micro_batch, moment.mark) == (1, micro_batch, "last layer")
    ]
    return total


@pytest.mark.parametrize("recipe", TRAINABLE)
def test_a_tied_heads_gradient_waits_for_the_embeddings(recipe: str) -> None:
    shape, sizes = SHAPES["gpt"], RECIPES[recipe]
    matrix = shape.vocab_size * shape.hidden_size
    waiting = matrix * sizes.weights  # as backward made it: in the weights' format
    gathered = matrix * (sizes.gradients + sizes.main_gradients)
    options = (recipe, "none", 1, 2)
    formula = step_timeline(shape, 3, *options)
    measured = measure_step_memory(shape, 3, *options)
    differences = [layers(measured, i).gradients - layers(formula, i).gradients for i in (1, 2)]
    assert differences == [waiting - gathered, waiting]


@pytest.mark.parametrize("recompute", RECOMPUTE)
def test_all_that_is_left_out_has_a_name_and_a_size(recompute: str) -> None:
    l, h, a, s, V, b = 2, 48, 4, 16, 50, 3
    shape = Transformer.gpt(l, h, a, V, s, tied_embeddings=False)
    counted = measure_step_memory(shape, b, "fp32", recompute, steps=1)
    everything = measure_step_memory(shape, b, "fp32", recompute, steps=1, count_left_out=True)
    more = {
        moment.mark: moment.total - less.total
        for moment, less in zip(everything.moments, counted.moments, strict=True)
    }
    ids, loss, final_norm = 2 * 8 * b * s, 8, 8 * b * s  # the loss, and what it is over
    norms, logsumexp = 2 * 8 * b * s, 4 * a * b * s  # of a layer
    kept = {"none": l * (norms + logsumexp), "selective": l * norms, "full": 0}
    there = kept | {"full": norms + logsumexp}  # once the last layer is there again
    gradient = 4 * b * s * h  # of what the last layer gives
    assert more == {
        "start": ids,
        "forward": ids + loss + kept[recompute] + final_norm,
        "loss": ids + loss + kept[recompute] + final_norm,
        "last layer": ids + loss + there[recompute] + gradient,
        "first layer": ids,
        "update": ids,
    }
