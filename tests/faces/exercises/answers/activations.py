"""Chapter 06."""

from collections.abc import Callable

from llmtrain_helpers import gpt_activation_bytes
from tests.faces.exercises.answers.table import Answers

BYTES = 2048 * 4 * 6144 * 48

KEY = gpt_activation_bytes(48, 6144, 64, 2048, 4) - 3 * 64 * 2048**2 * 4 * 48

MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "A100 80GB SXM"}
MINE |= {"sequence": 8192, "zero": 3, "recompute": "full", "micro": 4}


def by_hand(s, b, h, f, ad, kd):
    return s * b * (8 * h + 4 * ad + 4 * kd + 8 * f)


def by_parts(*parts: float) -> Callable[..., float]:
    """So many bytes of a hidden value, of a query, of a key, and of the MLP's width."""

    def answer(s, b, h, f, ad, kd):
        widths = zip(parts, (h, ad, kd, f), strict=True)
        return s * b * sum(count * wide for count, wide in widths)

    return answer


def wide(s, b, h, f, ad, kd):
    return s * b * (8 * h + 8 * ad + 8 * f)


def one_sequence(s, b, h, f, ad, kd):
    return s * (8 * h + 4 * ad + 4 * kd + 8 * f)


ANSWERS = {
    "activations-layer": Answers(
        right=[40, 40.0, 5 * 12 * 512 / 768],
        common_mistakes=[
            (8, "counted each score once"),
            (16, "only counted softmax's result"),
            (32, "left out the mask"),
            (30720, "per token"),
            (74, "all the bytes"),
            (41, "Your line gives 2.5% too much"),
        ],
    ),
    "activations-a": Answers(
        right=[
            KEY,
            float(KEY),
            f"{KEY:,}",
            "185e9",
            1.85e11,
            BYTES * (34 + 2 * 64 * 2048 / 6144),
            BYTES * 34 + 2 * 64 * 2048**2 * 4 * 48,
            BYTES * 76.7,
        ],
        common_mistakes=[
            (BYTES * (34 + 128 / 3) / 48, "one layer"),
            (BYTES * (34 + 128 / 3) / 4, "one sequence"),
            (BYTES * 34, "left out the scores"),
            (BYTES * 128 / 3, "only counted the scores"),
            (BYTES * (34 + 64 / 3), "one byte per score"),
            (BYTES * 36, "left out as/h"),
            (BYTES * (34 + 320 / 3), "with dropout on the scores"),
            (BYTES * (34 + 256 / 3), "only removed the mask"),
            (BYTES * (34 + 64), "one tensor too many"),
            (BYTES * (32 + 128 / 3), "without any dropout"),
            (BYTES * (34 + 2 * 64 * 2048), "as/h per hidden value"),
            (BYTES * (34 + 128 / 3) / 1.073741824, "GiB"),
            (BYTES * (34 + 128 / 3) / 1e9, "too low by a factor of a billion"),
            (BYTES * 200, "Too high"),
        ],
    ),
    "activations-b": Answers(
        right=[by_hand, lambda **x: float(by_hand(**x))],
        common_mistakes=[
            *(
                (by_parts(*parts), reply)
                for parts, reply in [
                    ((4, 2, 2, 4), "each needs 2 bytes"),
                    ((8, 4, 4, 6), "before and after the activation"),
                    ((8, 4, 4, 4), "a plain MLP"),
                    ((4, 4, 4, 8), "two norms, of attention and of the MLP"),
                    ((8, 4, 2, 8), "two separate tensors"),
                    ((8, 2, 4, 8), "its own output"),
                    ((8, 4, 4, 9), "it returned"),
                ]
            ),
            (wide, "not as the query heads"),
            (one_sequence, "Multiply by b"),
        ],
        unanswered=[lambda s, b, h, f, ad, kd: None],
    ),
    "activations-c": Answers(
        right=["two passes", "Two passes"],
        replies=[("two passes", "69.3 GB")],
        common_mistakes=[
            ("full", "70.1 GB, but it costs 28.4% more"),
            ("selective", "still needs 116 GB"),
            ("shorter", "66.8 GB"),
        ],
    ),
    "activations-d": Answers(
        right=[
            MINE | change
            for change in (
                {},
                {"sequence": "4,096", "recompute": "none", "micro": 2},
                {"gpus": 64, "micro": "4"},
                {"chip": "H200 SXM", "recompute": "none", "micro": 2},
                {"model": "Llama-3.2-1B", "gpus": 1, "zero": 0, "recompute": "none"} | {"micro": 2},
            )
        ],
        common_mistakes=[
            *(
                (MINE | change, reply)
                for change, reply in [
                    ({"micro": 1}, "2 at a time would fit too"),
                    (
                        {"micro": 3},
                        "isn't a power of two, so it would rarely divide a batch. Use 2 or 4",
                    ),
                    ({"micro": 8}, "too much, because it needs 139 GB at the peak, of 80.8 GB"),
                    ({"recompute": "none", "zero": 2}, "Not even a micro-batch of 1 fits"),
                    ({"zero": 0}, "Not even a micro-batch of 1 fits"),
                    ({"zero": 4}, "zero=4 isn't a stage"),
                    ({"recompute": "all"}, "recompute='all' is unknown"),
                    ({"micro": 0}, "micro=0 is not positive"),
                    ({"micro": "two"}, "isn't a number"),
                    ({"model": "Llama-9"}, "Llama-9"),
                    ({"chip": "H900"}, "H900"),
                    ({"model": "gpt2"}, "gpt2 only has positions for 1,024 tokens"),
                ]
            ),
            ({"model": "gpt2"}, "leaves out gpus, chip"),
            (64, "isn't a dict"),
        ],
        unanswered=[MINE | {"micro": None}],
    ),
}
