"""Chapter 07's exercises: what they say beside right and wrong, and its predictions."""

import re

import pytest

from llmtrain_helpers import all_reduce_bytes, all_reduce_seconds
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.communication import best_of
from tests.pages import words


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


def test_07_a_takes_every_right_way() -> None:
    for answer in (
        0.251875,
        0.252,
        "0.252",
        all_reduce_seconds(26e9, 32, 200e9),
        all_reduce_bytes(26e9, 32) / (8 * 25e9),
    ):
        assert check("07-a", answer).ok, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (50.375e9 / 25e9, "8 cards carry eight rings"),
        (50.375e9 / 300e9, "has to leave the nodes"),
        (2 * 0.251875, "2 bytes"),
        (0.5 * 0.251875, "once to go round"),
        (50.375e9 / 400e9, "not H100's 50"),
        (2 * 26e9 / 200e9, "d − 1"),
        (26e9 / 200e9, "goes round twice"),
        (2 * 0.75 * 26e9 / 200e9, "there are 32"),
        (50.375e9, "divide them"),
        (251.9, "milliseconds"),
        (0.3, "too high"),
    ],
)
def test_07_a_names_the_slips(answer: float, said: str) -> None:
    assert said in text_of("07-a", answer)


def test_07_b_says_why_a_small_model_wants_no_tensor_parallelism() -> None:
    assert "8,192 tokens a pass" in check("07-b", "tp 1, zero 3").text
    assert "wait for each other" in text_of("07-b", "TP 2, ZeRO 1")
    assert "too small for eight" in text_of("07-b", "TP 8, ZeRO 1")
    assert "stages wait" in text_of("07-b", "PP 4, ZeRO 1")
    times = [
        float(re.search(r"([\d.]+) s a step", EXERCISES["07-b"].options[x])[1])
        for x in EXERCISES["07-b"].options
    ]
    assert min(times) == times[0]
    assert 512 // 64 * 8192 == 65_536


def test_07_c_says_why_a_large_one_wants_it() -> None:
    assert "8 must share each" in check("07-c", "TP 8, PP 16").text
    assert "too few to fill 16 stages" in text_of("07-c", "TP 1, PP 16")
    assert "8 passes" in text_of("07-c", "TP 2, PP 32")
    assert "nobody has room" in text_of("07-c", "TP 8, PP 1")
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


MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "H100", "batch": 64}
MINE |= {"sequence": 8192, "recompute": "full", "tensor": 1, "pipeline": 1, "zero": 3}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"zero": 1},
        {"chip": "A100"},
        {"sequence": "8192", "batch": "64"},
        {"gpus": 64, "batch": 512, "recompute": "none"},
        {"model": "Llama-3.1-70B", "gpus": 64, "batch": 256},
        {"recompute": "none", "pipeline": 2},
        {"recompute": "none", "tensor": 2, "zero": 1},
    ],
)
def test_07_d_takes_any_split_that_fits_and_is_fast(change: dict) -> None:
    verdict = check("07-d", MINE | change)
    assert verdict.ok, verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tensor": 8, "zero": 1}, "longer than another split that fits"),
        ({"tensor": 2}, "longer than another"),
        ({"tensor": 2}, "above all by the sums of tensor parallelism"),
        ({"tensor": 8, "recompute": "none", "gpus": 64}, "above all by launching"),
        ({"pipeline": 8, "zero": 1, "batch": 8}, "above all by stages that wait"),
        ({"recompute": "none"}, "leaves no reserve: most of it activations"),
        ({"zero": 0}, "GB and has 80.0 GB: most of it optimizer"),
        ({"gpus": 12, "tensor": 8}, "do not divide 12"),
        ({"batch": 100}, "8 replicas do not share 100"),
        ({"chip": "RTX 4090"}, "links of RTX 4090 are not known"),
        ({"model": "Llama-3.1-405B"}, "no usual split"),
        ({"tensor": "two"}, "is no number"),
        ({"model": "Llama-9"}, "Llama-9"),
        ({"zero": 4}, "zero_stage=4"),
    ],
)
def test_07_d_says_what_does_not_hold(change: dict, said: str) -> None:
    assert said in text_of("07-d", MINE | change)


def test_07_d_waits_for_every_entry() -> None:
    assert check("07-d", MINE | {"zero": None}).ok is None
    assert "leaves out chip" in text_of("07-d", {"model": "gpt2"})
    assert "is no dict" in text_of("07-d", 64)
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
