"""Intervals: what they are made of, and their arithmetic."""

import numpy as np
import pytest

from llmtrain_helpers import Interval
from llmtrain_helpers.results import where


def test_the_bounds_of_an_interval_ascend() -> None:
    assert Interval(2, 2, 2).times(2) == Interval(4, 4, 4)
    assert Interval(0, 1, 2).times(0) == Interval(0, 0, 0)
    with pytest.raises(ValueError, match="least=3 is more than likely=2"):
        Interval(3, 2, 4)
    with pytest.raises(ValueError, match="likely=2 is more than greatest=1"):
        Interval(1, 2, 1)
    with pytest.raises(ValueError, match=r"likely=5.0 is more than greatest=4 \(in an"):
        Interval(1, np.array([3.0, 5.0]), 4)


def test_an_interval_of_arrays_broadcasts() -> None:
    spans = Interval(1, np.array([2, 3]), 4).times(np.array([[1], [10]]))
    assert spans.least.tolist() == [[1], [10]]
    assert spans.likely.tolist() == [[2, 3], [20, 30]]


def test_a_choice_between_ints_can_be_added_to_an_int_of_any_size() -> None:
    chosen = where(np.array([True, False]), 2, 3)
    assert chosen.dtype == np.float64
    assert [*(10**39 + chosen)] == [1e39, 1e39]
