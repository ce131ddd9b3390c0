"""Chapter 05."""

from llmtrain_helpers import FORMATS, NumberFormat
from tests.faces.exercises.answers.table import Answers

bf16 = FORMATS["bf16"]

MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "A100 80GB SXM"}
MINE |= {"recipe": "bf16", "zero_stage": 1, "gigabytes": 44.17}


ANSWERS = {
    "precision-share": Answers(
        right=[2 + 14 / 64, (128 + 14) / 64, 2.21875],
        common_mistakes=[
            (16, "That's stage 0"),
            (4 + 12 / 64, "That's stage 1"),
            (16 / 64, "That's stage 3"),
            (14 / 64, "only counted what's sharded"),
            (2 + 12 / 64, "left out the gradients"),
            (3, "Your line gives 35% too much"),
        ],
        unanswered=[None],
    ),
    "precision-a": Answers(
        right=[15.5, "15.5", (2 - 2**-4) * 2**3, NumberFormat("x", 3, 4).max],
        common_mistakes=[
            (31, "one too high"),
            (16, "one place past"),
            (30, "without infinity"),
            (240, "swapped"),
            (57344, "E5M2"),
            (7.75, "one too low"),
            (8, "all ones"),
            (1.9375, "only the fraction's factor"),
            (248, "left out the bias, and 7"),
            (124, "The exponent bits are 6"),
            (6, "Subtract the bias"),
            (3, "only the exponent"),
            (15.0, "Your exponent is right, but the last place is 2 ** -m, and m is 4."),
            (15.75, "m is 4, not 5"),
            (12, "Too low"),
        ],
    ),
    "precision-b": Answers(
        right=[2**-14, "2**-14", "2⁻¹⁴", 6.1e-5, "0.000061", bf16.spacing(0.02) / 2],
        common_mistakes=[
            (2**-13, "whole spacing"),
            (2**-8, "at a weight of 1"),
            (0.0039, "at a weight of 1"),
            (2**-7, "the spacing at 1"),
            (2**-17, "for fp16"),
            (0.02 * 2**-8, "halves at each power"),
            (1e-6, "Too low"),
        ],
    ),
    "precision-c": Answers(
        right=["S = 2**16", "s = 2**16", 2**14, "2**14"],
        common_mistakes=[
            ("S = 2**10", "becomes 0"),
            ("S = 2**24", "overflows"),
            ("main weights", "they save updates"),
        ],
    ),
    "precision-d": Answers(
        right=[
            MINE | change
            for change in (
                {},
                {"gigabytes": 44},
                {"gigabytes": "44.2", "gpus": "8"},
                {"gigabytes": "44.2 GB", "gpus": "8 GPUs"},
                {"gigabytes": "41.1 GiB"},
                {"gigabytes": (4 + 12 / 8) * 8.03},
                {"recipe": "bf16_fp32_grads", "zero_stage": 2, "gigabytes": 32.1},
                {"recipe": "fp8", "chip": "H100 SXM", "zero_stage": 1, "gigabytes": 48.2},
                {"model": "Llama-3.1-70B", "gpus": 64, "zero_stage": 3, "gigabytes": 17.6},
                {"model": "gpt2", "zero_stage": 0, "gigabytes": 1.99},
                {"model": "gpt2", "recipe": "fp32", "chip": "V100 32GB SXM2"}
                | {"zero_stage": 0, "gigabytes": 1.99},
            )
        ],
        common_mistakes=[
            *(
                (MINE | change, reply)
                for change, reply in [
                    ({"gigabytes": 128.5}, "That's stage 0, not stage 1"),
                    ({"gigabytes": 16.06}, "That's stage 3, not stage 1"),
                    ({"gigabytes": 41.1}, "That's in GiB"),
                    ({"gigabytes": 44.2e9}, "looks like bytes"),
                    ({"gigabytes": 70}, "70 GB is too much"),
                    ({"gigabytes": 5}, "5 GB is too little"),
                    ({"gpus": 64, "zero_stage": 3, "gigabytes": 16.06}, "only counted the weights"),
                    ({"zero_stage": 0, "gigabytes": 128.5}, "less than 33% is left"),
                    ({"zero_stage": 2, "gigabytes": 30.1}, "stage 1 is already enough"),
                    ({"zero_stage": 3, "gigabytes": 16.06}, "stage 1 is already enough"),
                    ({"recipe": "pure_bf16"}, "small updates are lost"),
                    ({"chip": "V100 32GB SXM2"}, "doesn't list bf16"),
                    ({"recipe": "fp8"}, "doesn't list fp8"),
                    ({"recipe": "bf17"}, "did you mean 'bf16'"),
                    (
                        {"recipe": "bf16_fp32_grads"},
                        "That's for the recipe bf16. Use the bytes of bf16_fp32_grads.",
                    ),
                    ({"zero_stage": 4}, "Known: 0, 1, 2, 3"),
                    (
                        {"model": "Llama-3.1-70B", "zero_stage": 3, "gigabytes": 141},
                        "No stage is enough",
                    ),
                    ({"model": "Llama-9"}, "Llama-9"),
                    ({"gigabytes": "heavy"}, "isn't a number"),
                ]
            ),
            ({"model": "gpt2"}, "leaves out gpus, chip"),
            (44, "isn't a dict"),
        ],
        unanswered=[MINE | {"gigabytes": None}],
    ),
}
