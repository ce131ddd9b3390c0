"""Chapter 11's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_course.budget import exercises as budget_exercises
from llmtrain_course.budget.pictures import frontier_picture
from llmtrain_course.exercises import check, own_run
from llmtrain_helpers import best_for_loss, frontier, laws, loss, over_training, shelf, units
from tests.faces.panels.test_budget import A100, EIGHT, panel_with


def test_a_model_far_from_the_best_is_told_its_price() -> None:
    run = {"gpus": 8, "chip": "A100 80GB SXM", "days": 30}
    far = check("budget-d", run | {"model": "1.9B", "tokens": 118e9}).text
    [N] = [p.parameters for p in frontier(A100, 8, 30, shelf()).points if p.name == "1.9B"]
    best = best_for_loss(loss(N, 118e9))
    times = N * 118e9 / (best.parameters * best.tokens)
    assert laws.times_the_least(N, 118e9) == pytest.approx(times)
    assert f"and {times:.2g}× the minimum work for its loss." in far
    near = check("budget-d", run | {"model": "4.2B", "tokens": 64e9}).text
    assert "× the minimum" not in near


def test_tokens_of_the_picture_and_sizes_of_the_green_strip_are_right() -> None:
    """The page's own picture, with the sequences of the own run."""
    front = frontier(A100, 8, 30, shelf(own_run().sequence)).promised()
    run = {"gpus": 8, "chip": "A100 80GB SXM", "days": 30}
    picture = frontier_picture(front, chosen=front.best.name).drawing().body
    strip = [p for p in front.points if 2.6e9 <= p.parameters <= 8.7e9]
    assert [p.name for p in strip] == ["3.2B", "4.2B", "7.2B"]
    for point in strip:
        tokens = float(point.plan.first_run_tokens(30))
        first = units.count(tokens)
        assert f"{point.name}, {first} tokens" in picture
        for enough in (tokens, 0.71 * tokens, units.read(first)):
            assert check("budget-d", run | {"model": point.name, "tokens": enough})


def test_the_panel_says_the_tokens_of_a_first_run() -> None:
    """With sequences of 4,096, as all of the panel."""
    for point in frontier(A100, 8, 30, shelf()).points[7:10]:
        table = panel_with(**EIGHT | {"days": 30, "size": units.read(point.name)}).html
        assert "The plan of your model" in table
        assert units.count(float(point.plan.first_run_tokens(30))) in table


def test_the_exercise_refuses_what_the_picture_calls_never() -> None:
    assert over_training(budget_exercises.SMALLEST) < 8 < over_training(0.21)
    with pytest.raises(ValueError, match="never"):
        over_training(0.146)
