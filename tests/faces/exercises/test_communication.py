"""Chapter 07's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_course.exercises import PREDICTIONS
from llmtrain_helpers.communication import all_reduce_bytes, data_parallel_bytes
from tests.pages import words


def test_the_predictions_tell_why() -> None:
    assert PREDICTIONS["communication-guess"].truth() == pytest.approx((511 / 512) / (15 / 16))
    halves = [2 * data_parallel_bytes(8e9, 64, z, 32) / all_reduce_bytes(16e9, 64) for z in (3, 0)]
    assert halves == [96, 2]
    sentence = "If a step has 32 passes, that's 96 halves instead of two, so FSDP sends 48 times"
    assert f"{sentence} what plain data parallelism sends" in words("07_communication")
