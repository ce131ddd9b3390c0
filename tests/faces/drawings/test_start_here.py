"""Chapter 00's drawings: to scale, inside their canvas, the same in words."""

import re

import pytest

from llmtrain_helpers import units
from llmtrain_helpers.drawings import start_here as drawings
from llmtrain_helpers.drawings.common import COLORS


def test_an_estimate_is_told_in_two_digits() -> None:
    numbers = (47.34e9, 1.249e12, 999e6, 999.9e6, 860, 12_400)
    told = ["47 billion", "1.2 trillion", "1.0 billion", "1.0 billion", "860", "12 thousand"]
    assert [units.count(number, 2) for number in numbers] == told


def test_the_stairs_have_a_computed_example_for_each_prefix() -> None:
    words = drawings.ladder().words
    for letter, example in zip(
        "kMGTPEZ",
        ["2,048 tokens", "124 million", "8.03 billion", "312 T", "1.31 P", "16.2 E"],
        strict=False,
    ):
        assert re.search(rf"{letter} \(\w+, 10[³⁶⁹¹²⁵⁸]+\): {example}", words)
    assert "314 ZFLOP" in words
    letters = re.findall(r'fill="white"[^>]*>(\w)<', drawings.ladder().body)
    assert "".join(letters) == "kMGTPEZ"


def test_each_prefix_is_what_units_prints() -> None:
    for i, (letter, *_) in enumerate(drawings.STEPS[1:], 2):
        assert units.flops(1000.0**i) == f"1.00 {letter}FLOP"


def test_the_question_shows_its_sums() -> None:
    tokens = 8 * 110e12 * 30 * 86400 / (6 * 8e9)
    drawing = drawings.question(8e9, tokens, 8, 110e12, price=2)
    for value in ("2.28 ZFLOP", "30.0 days", "8.00 billion", "48 billion", "110 TFLOP/s"):
        assert f">{value}<" in drawing.body
        assert value in drawing.words
    assert "$11.5 thousand" in drawing.words
    for told in ("forward: 2 operations", "backward: 4 operations", "2 more"):
        assert told in drawing.body


@pytest.mark.parametrize(("n", "shown"), [(1, 1), (64, 64), (65, 33), (16384, 64)])
def test_a_square_stands_for_one_gpu_or_for_as_many_as_it_says(n: int, shown: int) -> None:
    body = drawings.budget(n, 30, 1e14, 1e9, []).body
    squares = re.findall(rf'width="15" height="15" fill="{COLORS["weights"]}"', body)
    assert len(squares) == shown
    each = re.search(r"GPUs?, (\d+) a square", body)
    assert shown == -(-n // int(each[1] if each else 1))


@pytest.mark.parametrize("tokens", [1.0, 1e6, 1e9, 1e14, 1e20])
def test_the_bar_ends_on_the_scale(tokens: float) -> None:
    body = drawings.budget(1, 1, 1e14, tokens, [("x", tokens)], before=1e10).body
    for x in re.findall(r' (?:x|x1|x2)="(-?[\d.]+)"', body):
        assert 0 <= float(x) <= 860
    assert not re.search(r'width="-', body)
