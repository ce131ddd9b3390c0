"""Chapter 07's handles: what they say, and what they refuse."""

import pytest

from llmtrain_course.panels import HANDLES


def test_the_time_line_says_why_the_step_waits() -> None:
    line = HANDLES["time_line"]
    assert "nothing of it hides" in line.render(messages=1)
    assert "All hide but the last message" in line.render(messages=64)
    assert "To begin so many messages takes 23 ms, so they queue." in line.render(messages=512)
    assert "too few tokens to hide them" in line.render(tokens=2048)


@pytest.mark.parametrize(
    ("written", "size"),
    [("512 KiB", 0.5), ("1 GiB", 1024), ("128 MiB", 128), ("0.25", 0.25), ("128 MB", 122.07)],
)
def test_a_message_is_read_with_any_unit_of_memory(written: str, size: float) -> None:
    assert HANDLES["message"].controls["size"].read(written) == size


@pytest.mark.parametrize("written", ["64 KiB", "16 GiB", "0.1"])
def test_a_message_that_nobody_measured_is_refused_in_the_fields_own_unit(written: str) -> None:
    with pytest.raises(ValueError, match=f"'{written}' lies outside 0.125 to 8,192 MiB."):
        HANDLES["message"].controls["size"].read(written)
