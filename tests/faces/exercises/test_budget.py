"""Chapter 10's exercises: what they say beside right and wrong, and its predictions."""

from typing import Any

import pytest

from llmtrain_helpers import best_for_loss, frontier, laws, loss, over_training, shelf, units
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import budget as budget_exercises, check, predict
from llmtrain_helpers.panels import PANELS

A100 = published.accelerator("A100 80GB SXM")


def panel_with(**changes: Any) -> Any:
    return PANELS["budget"].answer({**PANELS["budget"].default, **changes})


EIGHT = {"money": 8640, "chip": "A100 80GB SXM", "price": 1.5, "size": 4_200_000_000}


@pytest.mark.parametrize(
    ("model", "tokens", "said"),
    [
        ("4.2B", 81e9, "right: 4.2B gets 19 tokens a parameter"),
        ("1.9B", "160B", "right: 1.9B gets 82 tokens a parameter"),
        ("4.2B", 110e9, "too many tokens: at the slow end they take 33.6 of your 30"),
        ("4.2B", 30e9, "you leave time: even at the slow end they take 9.15 of"),
        ("24B", 15e9, "too large: 24B gets 0.63 tokens a parameter"),
        ("310M", 950e9, "too small: 310M gets 3,100 tokens a parameter"),
        ("600M", 550e9, "too small: 600M gets 920 tokens a parameter"),
        ("9.0B", 47e9, "right: 9.0B gets 5.2 tokens a parameter"),
        ("7.2B", "61.5B", "right: 7.2B gets 8.5 tokens a parameter"),
        ("9.0B", 34e9, "right: 9.0B gets 3.8 tokens a parameter"),
        ("14B", 30e9, "too large: 14B gets 2.2 tokens a parameter"),
        ("14B", "30.2B", "too many tokens: at the slow end they take 30.3 of your 30"),
        ("7.2B", "71.5B", "too many tokens: at the slow end they take 34.9 of your 30"),
        ("31B", 1e9, "31B does not fit: at best"),
        ("8B", 1e9, "model='8B' is unknown"),
    ],
)
def test_a_run_of_ones_own_is_judged(model: str, tokens: Any, said: str) -> None:
    run = {"gpus": 8, "chip": "A100 80GB SXM", "days": 30}
    verdict = check("10-d", run | {"model": model, "tokens": tokens})
    assert verdict.text.startswith(said)
    assert bool(verdict) == said.startswith("right")


def test_a_model_far_from_the_best_is_told_its_price() -> None:
    run = {"gpus": 8, "chip": "A100 80GB SXM", "days": 30}
    far = check("10-d", run | {"model": "1.9B", "tokens": 160e9}).text
    [N] = [p.parameters for p in frontier(A100, 8, 30, shelf()).points if p.name == "1.9B"]
    best = best_for_loss(loss(N, 160e9))
    times = N * 160e9 / (best.parameters * best.tokens)
    assert laws.times_the_least(N, 160e9) == pytest.approx(times)
    assert f"and {times:.2g} times the least work for its loss." in far
    near = check("10-d", run | {"model": "4.2B", "tokens": 81e9}).text
    assert "times the least" not in near


def test_tokens_of_the_panel_and_sizes_of_the_green_strip_are_right() -> None:
    front = frontier(A100, 8, 30, shelf())
    run = {"gpus": 8, "chip": "A100 80GB SXM", "days": 30}
    strip = [p for p in front.points if 2.7e9 <= p.parameters <= 9.2e9]
    assert [p.name for p in strip] == ["3.2B", "4.2B", "7.2B", "9.0B"]
    for point in strip:
        slow = units.count(point.tokens.least)
        table = panel_with(**EIGHT | {"days": 30, "size": units.read(point.name)}).html
        assert "The plan of your model" in table
        assert f"{slow} to " in table
        for tokens in (point.tokens.least, 0.71 * point.tokens.least, units.read(slow)):
            assert check("10-d", run | {"model": point.name, "tokens": tokens})


def test_the_exercise_refuses_what_the_picture_calls_never() -> None:
    assert over_training(budget_exercises.SMALLEST) < 8 < over_training(0.21)
    with pytest.raises(ValueError, match="never"):
        over_training(0.146)


def test_half_the_size_wins_where_a_model_is_used() -> None:
    assert check("10-b", "half")
    for other in ("quarter", "best", "twice"):
        assert check("10-b", other).text.startswith("no: ")
    assert predict("10-guess", 1.26).text.startswith("you said 1.26; it is 1.26 times")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (436e9, "these are the tokens"),
        (15.4e9, "this has 20 tokens for each"),
        (26.7e9, "this has C = 40N²"),
        (18.9e9, "this takes dollars for hours"),
        (32.7e9, "this multiplies by the price"),
        (17.2e9, "this has the whole peak"),
    ],
)
def test_slips_with_a_size_for_money_are_named(answer: float, said: str) -> None:
    assert check("10-a", "10.9B")
    verdict = check("10-a", answer)
    assert not verdict
    assert said in verdict.text
