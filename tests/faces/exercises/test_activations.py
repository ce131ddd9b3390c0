"""Chapter 06's exercises: what they say beside right and wrong, and its predictions."""

import pytest

from llmtrain_helpers import Transformer, gpt_activation_bytes, plan_run, step_timeline
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import PREDICTIONS, check
from llmtrain_helpers.exercises.activations import own_peak
from llmtrain_helpers.flops import RECOMPUTE

LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)


def small(micro: int = 1, passes: int = 1, recompute: str = "none"):
    model = published.architecture("Llama-3.2-1B", 8192)
    return step_timeline(model, micro, "bf16_fp32_grads", recompute, 2, passes)


def text_of(id: str, answer: object) -> str:
    verdict = check(id, answer)
    assert verdict.ok is False
    return verdict.text


BYTES = 2048 * 4 * 6144 * 48


def test_06_a_takes_every_right_way() -> None:
    key = gpt_activation_bytes(48, 6144, 64, 2048, 4) - 3 * 64 * 2048**2 * 4 * 48
    for answer in (
        key,
        float(key),
        f"{key:,}",
        "185e9",
        1.85e11,
        BYTES * (34 + 2 * 64 * 2048 / 6144),
        BYTES * 34 + 2 * 64 * 2048**2 * 4 * 48,
        BYTES * 76.7,
    ):
        assert check("06-a", answer).ok, answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (BYTES * (34 + 128 / 3) / 48, "one layer"),
        (BYTES * (34 + 128 / 3) / 4, "one sequence"),
        (BYTES * 34, "scores are missing"),
        (BYTES * 128 / 3, "scores alone"),
        (BYTES * (34 + 64 / 3), "counts the scores once"),
        (BYTES * 36, "as/h is missing"),
        (BYTES * (34 + 320 / 3), "with dropout on the scores"),
        (BYTES * (34 + 256 / 3), "only the mask is gone"),
        (BYTES * (34 + 64), "one thing too many"),
        (BYTES * (32 + 128 / 3), "without any dropout"),
        (BYTES * (34 + 2 * 64 * 2048), "as/h for each hidden value"),
        (BYTES * (34 + 128 / 3) / 1.073741824, "GiB"),
        (BYTES * (34 + 128 / 3) / 1e9, "billion times too little"),
        (BYTES * 200, "too high"),
    ],
)
def test_06_a_names_the_slips(answer: float, said: str) -> None:
    assert said in text_of("06-a", answer)


def test_06_b_takes_every_right_way() -> None:
    def by_hand(s, b, h, f, ad, kd):
        return s * b * (8 * h + 4 * ad + 4 * kd + 8 * f)

    assert check("06-b", by_hand).ok
    assert check("06-b", lambda **x: float(by_hand(**x))).ok
    assert check("06-b", lambda s, b, h, f, ad, kd: None).ok is None


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((4, 2, 2, 4), "each weighs 2 bytes"),
        ((8, 4, 4, 6), "the same activated"),
        ((8, 4, 4, 4), "a plain MLP"),
        ((4, 4, 4, 8), "two norms, attention and the MLP"),
        ((8, 4, 2, 8), "two tensors"),
        ((8, 2, 4, 8), "what comes out"),
        ((8, 4, 4, 9), "it returned"),
    ],
)
def test_06_b_names_the_slips(parts, said: str) -> None:
    def wrong(s, b, h, f, ad, kd):
        widths = zip(parts, (h, ad, kd, f), strict=True)
        return s * b * sum(count * wide for count, wide in widths)

    assert said in text_of("06-b", wrong)


def test_06_b_names_what_is_left_out() -> None:
    def wide(s, b, h, f, ad, kd):
        return s * b * (8 * h + 8 * ad + 8 * f)

    def one_sequence(s, b, h, f, ad, kd):
        return s * (8 * h + 4 * ad + 4 * kd + 8 * f)

    assert "not as the query heads" in text_of("06-b", wide)
    assert "times b" in text_of("06-b", one_sequence)


def test_06_c_tells_why_of_each_change() -> None:
    assert check("06-c", "two passes").ok
    assert check("06-c", "Two passes").ok
    assert "71.8 GB" in check("06-c", "two passes").text
    assert "70.1 GB, and costs 28.4 % more" in text_of("06-c", "full")
    assert "still 116 GB" in text_of("06-c", "selective")
    assert "66.8 GB" in text_of("06-c", "shorter")
    assert small(2, 2).peak.total < 80e9 < small(4).peak.total
    assert small(4, 1, "full").peak.total < 80e9


MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "A100 80GB SXM"}
MINE |= {"sequence": 8192, "zero": 3, "recompute": "full", "micro": 2}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"sequence": "4,096", "recompute": "none", "micro": 1},
        {"gpus": 64, "micro": "4"},
        {"chip": "H200 SXM", "recompute": "none", "micro": 1},
        {"model": "Llama-3.2-1B", "gpus": 1, "zero": 0, "recompute": "none"} | {"micro": 1},
    ],
)
def test_06_d_takes_any_design_that_holds(change: dict) -> None:
    verdict = check("06-d", MINE | change)
    assert verdict.ok, verdict.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"micro": 1}, "2 at a time would fit too"),
        ({"micro": 3}, "no power of two, and would seldom divide a batch: take 2 or 4"),
        ({"micro": 4}, "too much: 77.6 GB at the peak, of 64.0 GB"),
        ({"recompute": "none"}, "not even a micro-batch of 1 fits"),
        ({"zero": 1}, "not even a micro-batch of 1 fits"),
        ({"zero": 4}, "zero=4 is no stage"),
        ({"recompute": "all"}, "recompute='all' is unknown"),
        ({"micro": 0}, "micro=0 is not positive"),
        ({"micro": "two"}, "is no number"),
        ({"model": "Llama-9"}, "Llama-9"),
        ({"chip": "H900"}, "H900"),
        ({"model": "gpt2"}, "gpt2 has positions for 1,024 tokens only"),
    ],
)
def test_06_d_says_what_does_not_hold(change: dict, said: str) -> None:
    assert said in text_of("06-d", MINE | change)


def test_06_d_waits_for_every_entry() -> None:
    assert check("06-d", MINE | {"micro": None}).ok is None
    assert "leaves out gpus, chip" in text_of("06-d", {"model": "gpt2"})
    assert "is no dict" in text_of("06-d", 64)


@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_06_d_counts_as_the_plan_of_07_does(recompute: str, zero: int) -> None:
    design = MINE | {"recompute": recompute, "zero": zero}
    options = {"recompute": recompute, "zero_stage": zero, "micro_batch_size": 2}
    chip = published.accelerator(MINE["chip"])
    plan = plan_run(LLAMA, chip, 8, 1e12, 16, recipe="bf16_fp32_grads", **options)
    assert plan.memory.total == own_peak(design, 2)


def test_the_predictions_name_the_belief() -> None:
    growth, largest = PREDICTIONS["06-guess"], PREDICTIONS["06-largest"]
    assert growth.truth() == pytest.approx(2 * 194 / 114)
    assert "it is 3.40 times as much" in growth.reveal(4)
    assert "they alone make 4" in growth.reveal(4)
    assert largest.truth() == "twice"
    assert "from 2 to 4" in largest.reveal("twenty times")
    assert "the layers alone" in largest.reveal("twenty times")
    assert "and so it is" in largest.reveal("Twice")
    assert {id for id in PREDICTIONS if id[:2] == "06"} == {"06-guess", "06-largest"}
