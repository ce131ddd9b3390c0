"""Chapter 07's exercises: what they say beside right and wrong, and its predictions."""

import re

import pytest

from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS
from llmtrain_helpers.exercises.communication import best_of
from tests.faces.exercises.answers.communication import MINE
from tests.pages import words


def test_07_b_says_why_a_small_model_wants_no_tensor_parallelism() -> None:
    times = [
        float(re.search(r"([\d.]+) s a step", EXERCISES["07-b"].options[x])[1])
        for x in EXERCISES["07-b"].options
    ]
    assert min(times) == times[0]
    assert 512 // 64 * 8192 == 65_536


def test_07_c_says_why_a_large_one_wants_it() -> None:
    held = [
        float(re.search(r"(?:holds|need) ([\d.]+) GB", EXERCISES["07-c"].options[x])[1])
        for x in ("TP 8, PP 1", "TP 8, PP 16")
    ]
    assert held[0] > 80 > held[1]
    assert "would need 209 GB and has 80.0 GB" in EXERCISES["07-c"].options["TP 8, PP 1"]
    for t, p, told in ((1, 16, "88"), (2, 32, "79"), (8, 16, "48")):
        k = 2048 * t * p // 16384  # one sequence a pass
        waits = 100 * (p - 1) / (k + p - 1)
        said = EXERCISES["07-c"].options[f"TP {t}, PP {p}"]
        assert f"{told} % waiting" in said
        assert waits == pytest.approx(int(told), abs=1)
    assert r"$(\text{PP}-1)/(k+\text{PP}-1)$ of a step (chapter 04)" in words("07_communication")


def test_07_d_is_held_against_the_best_split() -> None:
    best = best_of(MINE)
    assert best.fits
    assert best.split.tensor_parallel == 1


def test_the_predictions_tell_why() -> None:
    assert PREDICTIONS["07-guess"].truth() == pytest.approx((511 / 512) / (15 / 16))
    assert PREDICTIONS["07-passes"].truth() == 48
    assert "1.996 with 512" in PREDICTIONS["07-guess"].reveal(32)
    assert 2 * 15 / 16 == 1.875
    assert round(2 * 511 / 512, 3) == 1.996
    assert "it is 48.0 times" in PREDICTIONS["07-passes"].reveal(1.5)
