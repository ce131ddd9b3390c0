"""Chapter 12's exercises: what they say beside right and wrong, and its predictions."""

from dataclasses import replace

import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_course.measure.recorded import recorded_step
from llmtrain_helpers import count_activations, count_parameters, published, step_timeline
from tests.faces.exercises.answers.measure import own


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


def test_11_d_says_that_a_plan_fits_where_only_its_peak_is_off() -> None:
    fits = "Your layers and micro fit, so only the peak is off."
    assert fits in text_of("measure-d", own({"peak": 20}))
    assert fits in text_of("measure-d", own({"layers": 2, "peak": 9}))
    assert fits not in text_of("measure-d", own({"layers": 16, "peak": 20}))


def test_11_d_says_what_it_predicts() -> None:
    shape = replace(published.architecture("Llama-3.1-8B", 8192), num_layers=4)
    peak = step_timeline(shape, 1, "bf16_fp32_grads", "none").peak.total
    assert f"Its peak is {peak / 1e9:.1f} GB of 85.5 GB" in check("measure-d", own({})).text


def test_the_peak_of_the_solution_adds_up_as_it_is_told() -> None:
    shape = replace(published.architecture("Llama-3.1-8B", 8192), num_layers=4)
    P, kept = count_parameters(shape).total, count_activations(shape, 1).total
    sizes = [P, 14 * P, kept, 2 * 4 * 8192 * 128256]
    assert [f"{x / 1e9:.3g}" for x in sizes] == ["1.92", "26.9", "9.84", "8.41"]
    peak = step_timeline(shape, 1, "bf16_fp32_grads", "none").peak.total
    assert peak == sum(sizes[1:])
    eight, sixteen = (own({"layers": n}) for n in (8, 16))
    assert check("measure-d", eight).ok
    assert not check("measure-d", sixteen).ok


def test_the_prediction_gives_nothing_away() -> None:
    prediction = PREDICTIONS["measure-step"]
    assert prediction.truth() == recorded_step(256).ratio
    assert "as good as exact" in prediction.reveal(recorded_step(256).ratio)
    assert "× too high" in prediction.reveal("4 times")


def test_who_chose_wrongly_is_asked_for_the_wait_itself() -> None:
    [question] = EXERCISES["measure-b"].followups
    assert question.exercise.key() == pytest.approx(0.90 - 0.52)
