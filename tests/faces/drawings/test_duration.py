"""Chapter 03's drawings: to scale, inside their canvas, the same in words."""

import pytest

from llmtrain_helpers.drawings.duration import Mark, days_against_gpus, work_to_days

RUN = {"tokens": 300e9, "parameters": 175e9, "num_gpus": 1024, "flops_per_gpu": 140e12}


@pytest.mark.parametrize(
    ("num_gpus", "square"), [(1, "1 GPU"), (32, "1 GPU"), (33, "2 GPUs"), (1024, "32 GPUs")]
)
def test_a_square_stands_for_so_many_gpus(num_gpus: int, square: str) -> None:
    run = RUN | {"num_gpus": num_gpus}
    body = work_to_days(**run, recompute="none").body
    assert f"■ = {square}<" in body
    assert body.count('rx="3"') <= 32


@pytest.mark.parametrize(
    ("tokens", "square"), [(1e9, "an hour"), (300e9, "a day"), (3e12, "a week")]
)
def test_a_square_stands_for_so_much_time(tokens: float, square: str) -> None:
    run = RUN | {"tokens": tokens}
    assert f"■ = {square}<" in work_to_days(**run, recompute="full").body


def test_where_nothing_moved_there_is_no_ring() -> None:
    you = Mark("your run", 8, 32)
    assert "at the start" not in days_against_gpus(you, (23, 45), [], you).words
