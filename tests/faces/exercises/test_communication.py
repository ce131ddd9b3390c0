"""Chapter 07's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_course.exercises import PREDICTIONS
from llmtrain_helpers.communication import data_parallel_bytes
from tests.pages import words


def test_the_predictions_tell_why() -> None:
    assert PREDICTIONS["communication-guess"].truth() == pytest.approx((511 / 512) / (15 / 16))
    assert data_parallel_bytes(8e9, 64, 3, 32) / data_parallel_bytes(8e9, 64, 0, 32) == 48
    assert "48 times what plain data parallelism sends" in words("07_communication")
