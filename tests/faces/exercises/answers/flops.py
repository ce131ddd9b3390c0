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
            (LAYER - 2 * 2048**2 * 12288, "You've counted one product of the scores"),
            (12 * 12288**2 * 2048 + 4 * 2048**2 * 12288, "multiplies and adds"),
            (3 * LAYER, "included backward"),
            (8 * 12288**2 * 2048 + 4 * 2048**2 * 12288, "only counted attention's four matrices"),
            (16 * 12288**2 * 2048 + 4 * 2048**2 * 12288, "only counted the MLP's matrices"),
            (2 * LAYER, "Your line gives 2× too much"),
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
                        "only counted the forward pass",
                    ),
                    (
                        lambda h, f, k, s: 4 * s * weights(h, f, k) + 8 * s * s * h,
                        "only counted the backward pass",
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
                    (lambda h, f, k, s: 6 * s * weights(h, f, k), "left out the scores"),
                    (
                        lambda h, f, k, s: 6 * s * weights(h, f, k) + 6 * s * s * h,
                        "scores are two products",
                    ),
                    (
                        lambda h, f, k, s: 6 * s * weights(h, f, k) + 4 * s * s * h,
                        "also run forward and backward",
                    ),
                    (
                        lambda h, f, k, s: 6 * s * weights(h, f, k) + 12 * s * s * k,
                        "The scores keep h",
                    ),
                ]
            ),
            (lambda: 1, "It takes nothing, but it should take h, f, k, s."),
            (lambda h, f, k: 1, "It takes h, f, k, but it should take h, f, k, s."),
            (lambda h, f, k, s: 1 / 0, "raised ZeroDivisionError"),
            (3, "isn't a function"),
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
            (28.76, "percentage"),
            (28.8, "percentage"),
            (0.3827, "that's the HFU"),
            (0.383, "that's the HFU"),
            (MFU_OPEN / 2, "sparse peak"),
            (MFU_OPEN * 2, "not 4"),
            (MFU_OPEN * 128, "all 128 GPUs"),
            (MFU_OPEN / 3, "only counted the forward pass"),
            (MFU_OPEN * 2 / 3, "only counted the backward pass"),
            (MFU_OPEN + 4 * 512 * 4096**2 * 48 * 8192 / DONE, "MFU counts nothing twice"),
            (MFU_OPEN * 989.5 / 312, "the peak of an A100"),
            (MFU_OPEN - 12 * 512 * 4096**2 * 48 * 8192 / DONE, "left out the scores"),
            (MFU_OPEN - 6 * 512 * 4096 * 8192 * 50304 / DONE, "the output head"),
            (gpt_flops(48, 8192, 50304, 2048, 512, "none") / DONE, "s = 2,048"),
            (0.5, "Too high"),
            (0.31, "Too high"),
            (0.27, "Too low"),
            (MFU_OPEN * 4 / 3, "that's the HFU"),
            ("3 days", "these are days; we asked for a share"),
            (float("nan"), "not"),
            ("half", "a number"),
        ],
    ),
    "flops-c": Answers(
        right=[(0.368, "Sparse"), ("36.8 %", "sparse"), (FOUND["none"], "sparse"), 0.2438],
        replies=[((0.368, "sparse"), "36.8%")],
        common_mistakes=[
            ((0.368, "length"), "17.7%, which is close to 18.4% but not equal."),
            ((0.368, "recomputed"), "would give a larger share, 48.8%"),
            ((0.184, "sparse"), "their figure, the share of 624"),
            ((36.8, "sparse"), "percentage"),
            ((FOUND["recomputation"], "recomputed"), "that's the HFU"),
            ((FOUND["sequence length"], "length"), "here it's 2,048"),
            ((0.3, "sparse"), "Too low"),
            ("sparse", "Give two things"),
            (("sparse", 0.368), "The MFU goes first, then the mistake: (mfu, mistake)."),
            (["length", "36.8%"], "The MFU goes first, then the mistake"),
        ],
        unanswered=[(0.368, None)],
    ),
    "flops-d": Answers(
        right=[("Llama-3.1-8B", 8, "A100", 16), ("Llama-3.1-8B", 64, "H100", 300)],
        replies=[
            (("Llama-3.1-8B", 8, 16), "16 sequences takes 8.69 s"),
            (("Llama-3.1-8B", 64, "H100 SXM", 300), "300 sequences takes 6.42 s"),
            (("Llama-3.1-8B", 8, "V100", 5), "Right"),
            (("Llama-3.1-8B", 8, 10), "10 sequences takes 5.43 s"),
            (("Llama-3.1-8B", 8, "16"), "of them in a day"),
            (["gpt2", "1", 1000], "Right"),
            (("GPT-3 175B", 1024, 384), "Right"),
            (("DeepSeek-V3", 64, 48), "Right"),
            (("Llama-3.1-405B", 1, 1), "you can't have fewer"),
        ],
        common_mistakes=[
            (("Llama-3.1-8B", 8, 8), "takes 4.34 s, which is less than 5. The seconds"),
            (("Llama-3.1-8B", 8, 19), "it'd be 8.58 s, but that leaves out the attention scores"),
            (("Llama-3.1-8B", 8, 22), "At 8,192 tokens they're 22.2% of the work. The seconds"),
            (("gpt2", 1, 1400), "At 1,024 tokens they're 13.3% of the work."),
            (("Llama-3.1-8B", 8, 23), "takes 12.5 s, which is more than 10. The"),
            (("Llama-3.1-8B", 8, 128), "takes 69.5 s, which is more than 10. The"),
            (("Llama-3.1-405B", "1 GPU", "2 sequences"), "more than 10."),
            (("Llama-3.1-8B", 8, 0), "my_batch=0 is not positive"),
            (("Llama-3.1-8B", 0, 8), "my_gpus=0 is not positive"),
            (("Llama-3.1-8B", "8 days", 8), "these are days; we asked for GPUs"),
            (("Llama-3.1-8", 8, 8), "model='Llama-3.1-8' is unknown"),
            (("Llama-3.1-8B", 64, "H100", 100), "2.14 s, which is less than 5"),
            (("Llama-3.1-8B", 8, "H101", 8), "H101"),
            (64, "Give four things"),
        ],
        unanswered=[("Llama-3.1-8B", 8, None)],
    ),
}
