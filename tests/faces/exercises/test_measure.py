"""Chapter 11's exercises: what they say beside right and wrong, and its predictions."""

from dataclasses import replace
from typing import Any

import pytest

from llmtrain_helpers import (
    Transformer,
    count_activations,
    count_flops,
    count_parameters,
    step_timeline,
)
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import PREDICTIONS, check


def three(hidden: int) -> list[Any]:
    shape = Transformer.gpt(4, hidden, 8, 1024, 256)
    counted = [count_parameters(shape), count_flops(shape, 2, "none")]
    return [*counted, count_activations(shape, 2)]


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


ONE = 2 * 1024 * 512 * 2048


def test_11_a_takes_every_right_way() -> None:
    for answer in (5 * ONE, "10,737,418,240", 10.737e9, 2 * ONE + 3 * ONE, "10.74B"):
        assert check("11-a", answer).ok, answer


@pytest.mark.parametrize(
    ("products", "said"),
    [
        (1, "one product"),
        (2, "forward pass only"),
        (3, "forward and backward together, are too few"),
        (4, "second matrix has two"),
        (6, "which of the four gradients does nobody want"),
        (2.5, "a multiply-add is 2 FLOPs"),
        (10, "counted twice?"),
        (5e-9, "not billions"),
        (7, "stand in the sum already"),
        (9, "too high"),
    ],
)
def test_11_a_names_the_slips(products: float, said: str) -> None:
    assert said in text_of("11-a", products * ONE)


def test_11_b_tells_why_of_each_choice() -> None:
    assert check("11-b", "the link").ok
    assert check("11-b", "The Link").ok
    assert "alone it makes 1.73 times" in check("11-b", "the link").text
    assert "make 1.46 times" in check("11-b", "the link").text
    assert "1.02 times" in text_of("11-b", "the loader")
    assert "with every pass" in text_of("11-b", "a neighbour")
    assert "wait longer" in text_of("11-b", "our GPU")
    assert pytest.approx(2.46) == 4 * 0.52 + (0.90 - 0.52)


def test_11_c_takes_every_right_way() -> None:
    for answer in (48 / 1.65 / 10, 2.91, "2.909", 8 * 0.6 / (8 * 0.15 + 0.45)):
        assert check("11-c", answer).ok, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (29.1, "over those of a single pass"),
        (8, "takes longer too"),
        (1.65 / 0.6, "how much longer a step takes"),
        (4, "still there, once a step"),
        (10 / 29.0909, "turn it"),
        (1.909, "asked is how many times"),
        (0.3636, "all its passes"),
        (48 / 1.55 / 12, "update is missing"),
        (48 / 1.3 / 24, "exchange is missing"),
        (48 / 1.55 / 10, "update is missing"),
        (48 / 2.35 / 10, "the update comes once"),
        (48 / 4.1 / 10, "after each pass"),
        (2.6, "too low"),
        (3.2, "too high"),
    ],
)
def test_11_c_names_the_slips(answer: float, said: str) -> None:
    assert said in text_of("11-c", answer)


MINE = {"model": "Llama-3.1-8B", "layers": 4, "micro": 1, "warm_up": 3, "repeats": 10}


def own(change: dict[str, Any]) -> dict[str, Any]:
    """A test of one's own, with the peak that the timeline predicts for it."""
    asked = MINE | change
    if "peak" not in asked and asked["model"] in published.names("architectures"):
        shape = published.architecture(asked["model"])
        shape = replace(shape, sequence_length=min(8192, shape.sequence_length))
        shape = replace(shape, num_layers=int(asked["layers"]))
        micro = asked["micro"] if isinstance(asked["micro"], int) else 1
        line = step_timeline(shape, micro, "bf16_fp32_grads", "none")
        asked["peak"] = line.peak.total / 1e9
    return {"peak": 1} | asked


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"layers": "8"},
        {"layers": 2, "micro": 2, "warm_up": 2, "repeats": 5},
        {"model": "gpt2", "layers": 12, "micro": 16},
        {"repeats": 1000},
        {"peak": "45.2"},
        {"peak": 43.5},  # a twentieth off
        {"peak": 18 * 1.923 + 9.84 + 8.41},  # with gradients, as in a plan
    ],
)
def test_11_d_takes_any_design_that_holds(change: dict[str, Any]) -> None:
    verdict = check("11-d", own(change))
    assert verdict.ok, verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layers": 1}, "take 2 at the least"),
        ({"layers": 33}, "at most the model's 32"),
        ({"layers": 16}, "a fifth should stay free"),
        ({"micro": 4}, "a fifth should stay free"),
        ({"warm_up": 1}, "makes Adam's state"),
        ({"warm_up": 0}, "makes Adam's state"),
        ({"repeats": 3}, "too few for a spread"),
        ({"repeats": 100_000}, "steps take"),
        ({"micro": "two"}, "is no number"),
        ({"model": "Llama-9"}, "Llama-9"),
        ({"model": "Llama-3.1-405B", "layers": 2}, "two layers of Llama-3.1-405B already"),
        ({"layers": 2, "model": "gpt2"}, "more fits, of layers or of sequences"),
        ({"peak": 18 * 1.923}, "the states alone"),
        ({"peak": 14 * 1.923}, "the states alone"),
        ({"peak": 14 * 1.923 + 9.84}, "two tensors of logits are missing"),
        ({"peak": 41}, "one of the two tensors of logits"),
        ({"peak": 45.2 / 1.024**3}, "looks like GiB"),
        ({"model": "DeepSeek-V3", "layers": 2}, "layers of several kinds"),
        ({"peak": 9.84}, "what a pass keeps"),
        ({"peak": 45.2e9}, "looks like bytes"),
        ({"peak": 70}, "70 GB is too much for these layers"),
        ({"peak": 20}, "20 GB is too little for these layers"),
    ],
)
def test_11_d_says_what_does_not_hold(change: dict[str, Any], said: str) -> None:
    assert said in text_of("11-d", own(change))


def test_11_d_says_that_a_plan_fits_where_only_its_peak_is_off() -> None:
    fits = "Your layers and micro fit; only the peak is off."
    assert fits in text_of("11-d", own({"peak": 20}))
    assert fits in text_of("11-d", own({"layers": 2, "peak": 9}))
    assert fits not in text_of("11-d", own({"layers": 16, "peak": 20}))


def test_11_d_waits_for_every_entry_and_says_what_it_predicts() -> None:
    assert check("11-d", MINE | {"layers": None, "peak": 40}).ok is None
    assert check("11-d", MINE | {"peak": None}).ok is None
    assert "leaves out layers" in text_of("11-d", {"model": "gpt2"})
    assert "is no dict" in text_of("11-d", 4)
    shape = replace(published.architecture("Llama-3.1-8B", 8192), num_layers=4)
    peak = step_timeline(shape, 1, "bf16_fp32_grads", "none").peak.total
    assert f"its peak is {peak / 1e9:.1f} GB of 80.0 GB" in check("11-d", own({})).text


def test_the_peak_of_the_solution_adds_up_as_it_is_told() -> None:
    shape = replace(published.architecture("Llama-3.1-8B", 8192), num_layers=4)
    P, kept = count_parameters(shape).total, count_activations(shape, 1).total
    told = [P, 14 * P, kept, 2 * 4 * 8192 * 128256]
    assert [f"{x / 1e9:.3g}" for x in told] == ["1.92", "26.9", "9.84", "8.41"]
    peak = step_timeline(shape, 1, "bf16_fp32_grads", "none").peak.total
    assert peak == sum(told[1:])
    eight, sixteen = (own({"layers": n}) for n in (8, 16))
    assert check("11-d", eight).ok
    assert not check("11-d", sixteen).ok


def test_the_prediction_names_the_belief() -> None:
    prediction = PREDICTIONS["11-guess"]
    assert prediction.truth() == "not quite twice"
    ratio = three(512)[2].total / three(256)[2].total
    assert f"It is {ratio:.2f} times" in prediction.reveal("twice")
    assert "share does double" in prediction.reveal("twice")
    assert "Weights do that" in prediction.reveal("four times")
    assert "and so it is" in prediction.reveal("not quite twice")
