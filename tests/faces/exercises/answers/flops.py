"""Chapter 02."""

from collections.abc import Callable

from llmtrain_course.flops.exercises import layer_flops, readings
from llmtrain_helpers import gpt_flops
from tests.faces.exercises.answers.table import Answers

F_OPEN = 72 * 512 * 4096 * 48 * 8192**2
F_OPEN *= 1 + 4096 / (6 * 8192) + 50304 / (12 * 48 * 8192)

DONE = 14.6 * 128 * 989.5e12

MFU_OPEN = F_OPEN / DONE

FOUND = readings()


def by_hand(h, f, k, s):
    return 3 * (2 * s * (2 * h**2 + 2 * h * k + 3 * h * f) + 4 * s**2 * h)


def in_floats(h, f, k, s):
    return (
        6.0
        * s
        * (2 * h * h + 2 * h * k + 3 * h * f)
        * (1 + 2 * s * h / (2 * h * h + 2 * h * k + 3 * h * f))
    )


def weights(h: int, f: int, k: int, matrices: int = 3) -> int:
    return 2 * h * h + 2 * h * k + matrices * h * f


def layer(count: Callable[..., float]) -> Callable[..., float]:
    """A function with the names that the exercise gives."""

    def answer(h, f, k, s):
        return count(h, f, k, s)

    return answer


LAYER = 2 * 12 * 12288**2 * 2048 + 4 * 2048**2 * 12288

ANSWERS = {
    "flops-layer": Answers(
        right=[LAYER, float(LAYER)],
        common_mistakes=[
            (24 * 12288**2 * 2048, "without its scores"),
            (LAYER - 2 * 2048**2 * 12288, "this has one of them"),
            (12 * 12288**2 * 2048 + 4 * 2048**2 * 12288, "multiplies and adds"),
            (3 * LAYER, "this has backward in it"),
            (8 * 12288**2 * 2048 + 4 * 2048**2 * 12288, "attention's four matrices alone"),
            (16 * 12288**2 * 2048 + 4 * 2048**2 * 12288, "MLP's matrices alone"),
            (2 * LAYER, "this gives 2 times too much"),
        ],
    ),
    "flops-a": Answers(
        right=[by_hand, in_floats, layer_flops],
        common_mistakes=[
            *(
                (layer(count), reply)
                for count, reply in [
                    (
                        lambda h, f, k, s: 2 * s * weights(h, f, k) + 4 * s * s * h,
                        "the forward pass alone",
                    ),
                    (
                        lambda h, f, k, s: 4 * s * weights(h, f, k) + 8 * s * s * h,
                        "the backward pass alone",
                    ),
                    (
                        lambda h, f, k, s: 3 * s * weights(h, f, k) + 6 * s * s * h,
                        "a multiply-add is 2",
                    ),
                    (
                        lambda h, f, k, s: 8 * s * weights(h, f, k) + 16 * s * s * h,
                        "nothing is recomputed here",
                    ),
                    (
                        lambda h, f, k, s: 6 * s * weights(h, f, k, matrices=2) + 12 * s * s * h,
                        "third matrix",
                    ),
                    (
                        lambda h, f, k, s: 6 * s * weights(h, f, h) + 12 * s * s * h,
                        "narrower than queries",
                    ),
                    (
                        lambda h, f, k, s: 6 * s * (h * h + h * k + 3 * h * f) + 12 * s * s * h,
                        "four matrices",
                    ),
                    (lambda h, f, k, s: 6 * s * weights(h, f, k), "scores are missing"),
                    (
                        lambda h, f, k, s: 6 * s * weights(h, f, k) + 6 * s * s * h,
                        "scores are two products",
                    ),
                    (
                        lambda h, f, k, s: 6 * s * weights(h, f, k) + 4 * s * s * h,
                        "forward and backward too",
                    ),
                    (
                        lambda h, f, k, s: 6 * s * weights(h, f, k) + 12 * s * s * k,
                        "the scores keep h",
                    ),
                ]
            ),
            (lambda: 1, "it takes nothing; it should take h, f, k, s."),
            (lambda h, f, k: 1, "it takes h, f, k; it should take h, f, k, s."),
            (lambda h, f, k, s: 1 / 0, "raised ZeroDivisionError"),
            (3, "no function"),
        ],
        unanswered=[lambda **_: None],
    ),
    "flops-b": Answers(
        right=[
            MFU_OPEN,
            F_OPEN / (14.6 * 128) / 989.5e12,
            gpt_flops(48, 8192, 50304, 4096, 512, "none") / (14.6 * 128) / 989.5e12,
            0.288,
            0.2876,
            "0.288",
        ],
        common_mistakes=[
            (28.76, "in per cent"),
            (28.8, "in per cent"),
            (0.3827, "it is HFU"),
            (0.383, "it is HFU"),
            (MFU_OPEN / 2, "sparse peak"),
            (MFU_OPEN * 2, "not 4"),
            (MFU_OPEN * 128, "all 128 GPUs"),
            (MFU_OPEN / 3, "forward pass only"),
            (MFU_OPEN * 2 / 3, "backward pass only"),
            (MFU_OPEN + 4 * 512 * 4096**2 * 48 * 8192 / DONE, "MFU counts nothing twice"),
            (MFU_OPEN * 989.5 / 312, "the peak of an A100"),
            (MFU_OPEN - 12 * 512 * 4096**2 * 48 * 8192 / DONE, "the scores are missing"),
            (MFU_OPEN - 6 * 512 * 4096 * 8192 * 50304 / DONE, "the output head"),
            (gpt_flops(48, 8192, 50304, 2048, 512, "none") / DONE, "s = 2,048"),
            (0.5, "too high"),
            (0.31, "too high"),
            (0.27, "too low"),
            (MFU_OPEN * 4 / 3, "it is HFU"),
            ("3 days", "these are days; a share is asked"),
            (float("nan"), "not"),
            ("half", "no number"),
        ],
    ),
    "flops-c": Answers(
        right=[(0.368, "Sparse"), ("36.8 %", "sparse"), (FOUND["none"], "sparse"), 0.2438],
        replies=[((0.368, "sparse"), "36.8 %")],
        common_mistakes=[
            ((0.368, "length"), "17.7 %, near 18.4 % and yet not it. A second question"),
            ((0.368, "recomputed"), "a larger share, 48.8 %"),
            ((0.184, "sparse"), "their figure, the share of 624"),
            ((36.8, "sparse"), "in per cent"),
            ((FOUND["recomputation"], "recomputed"), "it is HFU"),
            ((FOUND["sequence length"], "length"), "here it is 2,048"),
            ((0.3, "sparse"), "too low"),
            ("sparse", "give two things"),
            (("sparse", 0.368), "The MFU comes first, then the slip: (mfu, slip)."),
            (["length", "36.8 %"], "The MFU comes first, then the slip"),
        ],
        unanswered=[(0.368, None)],
    ),
    "flops-d": Answers(
        right=[("Llama-3.1-8B", 8, "A100", 16), ("Llama-3.1-8B", 64, "H100", 300)],
        replies=[
            (("Llama-3.1-8B", 8, 16), "16 sequences takes 8.69 s"),
            (("Llama-3.1-8B", 64, "H100 SXM", 300), "300 sequences takes 6.42 s"),
            (("Llama-3.1-8B", 8, "V100", 5), "right"),
            (("Llama-3.1-8B", 8, 10), "10 sequences takes 5.43 s"),
            (("Llama-3.1-8B", 8, "16"), "a day holds"),
            (["gpt2", "1", 1000], "right"),
            (("GPT-3 175B", 1024, 384), "right"),
            (("DeepSeek-V3", 64, 48), "right"),
            (("Llama-3.1-405B", 1, 1), "fewer there are not"),
        ],
        common_mistakes=[
            (("Llama-3.1-8B", 8, 8), "takes 4.34 s, less than 5. The seconds"),
            (("Llama-3.1-8B", 8, 19), "it'd be 8.58 s, but that leaves out the attention scores"),
            (("Llama-3.1-8B", 8, 22), "At 8,192 tokens they're 22.2 % of the work. The seconds"),
            (("gpt2", 1, 1400), "At 1,024 tokens they're 13.3 % of the work."),
            (("Llama-3.1-8B", 8, 23), "takes 12.5 s, more than 10. The"),
            (("Llama-3.1-8B", 8, 128), "takes 69.5 s, more than 10. The"),
            (("Llama-3.1-405B", "1 GPU", "2 sequences"), "more than 10."),
            (("Llama-3.1-8B", 8, 0), "my_batch=0 is not positive"),
            (("Llama-3.1-8B", 0, 8), "my_gpus=0 is not positive"),
            (("Llama-3.1-8B", "8 days", 8), "these are days; GPUs are asked"),
            (("Llama-3.1-8", 8, 8), "model='Llama-3.1-8' is unknown"),
            (("Llama-3.1-8B", 64, "H100", 100), "2.14 s, less than 5"),
            (("Llama-3.1-8B", 8, "H101", 8), "H101"),
            (64, "give four things"),
        ],
        unanswered=[("Llama-3.1-8B", 8, None)],
    ),
}
