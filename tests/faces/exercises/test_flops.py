"""Chapter 02's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_helpers import gpt_flops
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.common import judge
from llmtrain_helpers.exercises.flops import STATED, layer_flops, longer, readings


def test_a_guess_gets_the_truth_and_the_belief_behind_it() -> None:
    assert PREDICTIONS["02-guess"].truth() == "less than twice"
    assert longer() == pytest.approx(1.404, abs=0.001)
    for guess, why in PREDICTIONS["02-guess"].options.items():
        told = PREDICTIONS["02-guess"].reveal(guess.upper())
        assert why in told
        assert "The factor is 1.40" in told
        assert ("and so it is" in told) == (guess == "less than twice")


def test_equally_busy_and_not_equally_fast() -> None:
    assert PREDICTIONS["02-busy"].truth() == "equally"
    told = PREDICTIONS["02-busy"].reveal("full")
    assert "full: MFU 39.0 %, HFU 51.9 %; selective: MFU 51.4 %, HFU 51.8 %" in told


def by_hand(h, f, k, s):
    return 3 * (2 * s * (2 * h**2 + 2 * h * k + 3 * h * f) + 4 * s**2 * h)


def in_floats(h, f, k, s):
    return (
        6.0
        * s
        * (2 * h * h + 2 * h * k + 3 * h * f)
        * (1 + 2 * s * h / (2 * h * h + 2 * h * k + 3 * h * f))
    )


@pytest.mark.parametrize("right", [by_hand, in_floats, layer_flops])
def test_a_layer_is_right_by_each_right_way(right) -> None:
    assert check("02-a", right).ok


def weights(h: int, f: int, k: int, matrices: int = 3) -> int:
    return 2 * h * h + 2 * h * k + matrices * h * f


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda h, f, k, s: 2 * s * weights(h, f, k) + 4 * s * s * h, "the forward pass alone"),
        (lambda h, f, k, s: 4 * s * weights(h, f, k) + 8 * s * s * h, "the backward pass alone"),
        (lambda h, f, k, s: 3 * s * weights(h, f, k) + 6 * s * s * h, "a multiply-add is 2"),
        (
            lambda h, f, k, s: 8 * s * weights(h, f, k) + 16 * s * s * h,
            "nothing is recomputed here",
        ),
        (lambda h, f, k, s: 6 * s * weights(h, f, k, matrices=2) + 12 * s * s * h, "third matrix"),
        (lambda h, f, k, s: 6 * s * weights(h, f, h) + 12 * s * s * h, "narrower than queries"),
        (lambda h, f, k, s: 6 * s * (h * h + h * k + 3 * h * f) + 12 * s * s * h, "four matrices"),
        (lambda h, f, k, s: 6 * s * weights(h, f, k), "scores are missing"),
        (lambda h, f, k, s: 6 * s * weights(h, f, k) + 6 * s * s * h, "scores are two products"),
        (lambda h, f, k, s: 6 * s * weights(h, f, k) + 4 * s * s * h, "forward and backward too"),
        (lambda h, f, k, s: 6 * s * weights(h, f, k) + 12 * s * s * k, "the scores keep h"),
    ],
)
def test_a_slip_in_the_layer_is_named(wrong, said: str) -> None:
    def answer(h, f, k, s):
        return wrong(h, f, k, s)

    assert said in check("02-a", answer).text


def test_the_layers_hints_come_in_steps() -> None:
    exercise = EXERCISES["02-a"]

    def odd(h, f, k, s):
        return 7

    told = [judge("02-a", odd, exercise, tries).text for tries in range(4)]
    assert "it returned 7, too little. Look at the parts one by one" in told[0]
    assert "which weights" in told[1]
    assert "6s(2h² + 2hk + 3hf)" in told[2]
    assert told[3] == told[2]
    assert judge("02-a", lambda **_: None, exercise, 0).ok is None
    assert "raised" in judge("02-a", lambda: 1, exercise, 0).text
    assert "no function" in judge("02-a", 3, exercise, 0).text


F_OPEN = 72 * 512 * 4096 * 48 * 8192**2
F_OPEN *= 1 + 4096 / (6 * 8192) + 50304 / (12 * 48 * 8192)


DONE = 14.6 * 128 * 989.5e12


MFU_OPEN = F_OPEN / DONE


@pytest.mark.parametrize(
    "right",
    [
        MFU_OPEN,
        F_OPEN / (14.6 * 128) / 989.5e12,
        gpt_flops(48, 8192, 50304, 4096, 512, "none") / (14.6 * 128) / 989.5e12,
        0.288,
        0.2876,
        "0.288",
    ],
)
def test_the_mfu_is_right_by_each_right_way(right) -> None:
    assert check("02-b", right).ok


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (28.76, "in per cent"),
        (28.8, "in per cent"),
        (0.3827, "it is HFU"),
        (0.383, "it is HFU"),
        (MFU_OPEN / 2, "sparse peak"),
        (MFU_OPEN * 2, "not 4"),
        (MFU_OPEN * 128, "all 128 GPUs"),
        (MFU_OPEN / 3, "forward pass only"),
        (MFU_OPEN * 989.5 / 312, "the peak of an A100"),
        (MFU_OPEN - 12 * 512 * 4096**2 * 48 * 8192 / DONE, "the scores are missing"),
        (MFU_OPEN - 6 * 512 * 4096 * 8192 * 50304 / DONE, "the output head"),
        (gpt_flops(48, 8192, 50304, 2048, 512, "none") / DONE, "s = 2,048"),
        (0.5, "too high"),
        (0.31, "too high"),
        (0.27, "too low"),
        (float("nan"), "not"),
        ("half", "no number"),
    ],
)
def test_a_wrong_mfu_is_told_why(wrong, said: str) -> None:
    verdict = judge("02-b", wrong, EXERCISES["02-b"], 0)
    assert verdict.ok is False
    assert said in verdict.text


def test_the_hints_of_the_mfu_come_in_steps() -> None:
    told = [judge("02-b", 0.5, EXERCISES["02-b"], tries).text for tries in range(3)]
    assert "First the work" in told[0]
    assert "MFU counts nothing twice" in told[1]
    assert "(72Bslh² + 12Bs²lh + 6BshV) / (14.6 · 128) / 989.5e12" in told[2]


def test_the_colleagues_figure_is_that_of_the_sparse_peak_and_of_nothing_else() -> None:
    found = readings()
    assert check("02-c", (0.368, None)).ok is None
    near = [name for name, share in found.items() if abs(share - STATED) < 0.0005]
    assert near == ["sparse peak"]
    for right in (0.368, "36.8 %", found["none"]):
        assert check("02-c", (right, "Keep")).ok
    assert "36.8 %" in check("02-c", (0.368, "keep")).text
    for wrong, said in {
        (0.368, "buy"): "yours is twice that",
        (0.368, "tune"): "are they idle",
        (0.184, "tune"): "their figure, the share of 624",
        (36.8, "keep"): "in per cent",
        (found["recomputation"], "keep"): "it is HFU",
        (found["sequence length"], "keep"): "here it is 2,048",
        (0.3, "keep"): "too low",
        "keep": "give two things",
    }.items():
        verdict = judge("02-c", wrong, EXERCISES["02-c"], 0)
        assert verdict.ok is False
        assert said in verdict.text
        assert "36.8" not in verdict.text


def test_the_colleagues_share_is_what_runs_that_recompute_everything_reach() -> None:
    runs = published.rows("recomputation_runs")
    again = [row["mfu"] * row["seconds_selective"] / row["seconds_full"] for row in runs]
    assert min(again) < readings()["none"] < max(again)
    hfus = [row["mfu"] for row in runs]  # selective: little is done twice
    assert min(hfus) < readings()["recomputation"] < max(hfus)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (("Llama-3.1-8B", 8, 16), "16 sequences takes 8.69 s"),
        (("Llama-3.1-8B", 8, 10), "10 sequences takes 5.43 s"),
        (("Llama-3.1-8B", 8, "16"), "a day holds"),
        (["gpt2", "1", 1000], "right"),
        (("GPT-3 175B", 1024, 384), "right"),
        (("DeepSeek-V3", 64, 48), "right"),
        (("Llama-3.1-405B", 1, 1), "fewer there are not"),
    ],
)
def test_any_batch_in_the_range_is_right(answer, said: str) -> None:
    verdict = check("02-d", answer)
    assert verdict.ok is True, verdict.text
    assert said in verdict.text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (("Llama-3.1-8B", 8, 8), "4.34 s: shorter than 5 to 10 s"),
        (("Llama-3.1-8B", 8, 128), "longer than"),
        (("Llama-3.1-405B", 1, 2), "longer than"),
        (("Llama-3.1-8B", 8, 0), "my_batch=0 is not positive"),
        (("Llama-3.1-8B", 0, 8), "my_gpus=0 is not positive"),
        (("Llama-3.1-8", 8, 8), "my_model='Llama-3.1-8' is unknown"),
        (64, "give three things"),
    ],
)
def test_a_batch_outside_the_range_is_told_which_way(answer, said: str) -> None:
    verdict = judge("02-d", answer, EXERCISES["02-d"], 0)
    assert verdict.ok is False
    assert said in verdict.text


def test_the_hints_of_ones_own_batch_come_in_steps_and_none_is_unanswered() -> None:
    assert check("02-d", ("Llama-3.1-8B", 8, None)).ok is None
    short = ("Llama-3.1-8B", 8, 1)
    told = [judge("02-d", short, EXERCISES["02-d"], tries).text for tries in range(3)]
    assert told[0].endswith("10 s. The seconds are proportional to the batch.")
    assert told[1].endswith("with X 35.0 % of the peak.")
    assert "/ (GPUs · 0.35 · 312e12)" in told[2]
