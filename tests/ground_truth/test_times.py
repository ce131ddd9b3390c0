"""What is timed: only its form can be tested, and that averaged gradients are right."""

from __future__ import annotations

import pytest

from llmtrain_helpers import Transformer, all_reduce_bytes, count_parameters
from llmtrain_helpers.measure import (
    PHASES,
    measure_data_parallel,
    profile_step,
    step_seconds,
)

SMALL = Transformer.gpt(2, 32, 4, 101, 16)


@pytest.mark.parametrize("processes", [2, 4])
def test_averaged_gradients_are_those_of_the_large_batch(processes: int) -> None:
    shared = measure_data_parallel(SMALL, batch_size=8, processes=processes)
    assert shared.processes == processes
    assert shared.largest_difference < 1e-12
    assert shared.gradient_bytes == 8 * count_parameters(SMALL).total
    assert shared.pass_seconds > 0 < shared.all_reduce_seconds
    sent = all_reduce_bytes(shared.gradient_bytes, processes)
    assert sent == 2 * (processes - 1) / processes * shared.gradient_bytes


def test_a_step_has_three_phases_and_backward_two_products_for_each() -> None:
    operators = profile_step(SMALL, 4).operators
    assert {operator.phase for operator in operators} == set(PHASES)
    products = [operator.phase for operator in operators if operator.matrix_product]
    assert products.count("forward") == 13  # six a layer, and the head
    assert products.count("backward") == 26
    starts = [operator.start for operator in operators]
    assert starts == sorted(starts)


def test_steps_take_time() -> None:
    assert all(seconds > 0 for seconds in step_seconds(SMALL, [1, 4], repeats=2))
