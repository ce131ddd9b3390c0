"""Chapter 03."""

from llmtrain_helpers import gpt_flops, gpt_parameters, training_seconds, units
from tests.faces.exercises.answers.table import Answers

X_B = gpt_flops(40, 6144, 50257, 1024, 512, "full") / 32.09 / 16

X_A = 0.41 * 989.5e12

DAYS_A = 6 * 1.8e12 * 13e9 / (384 * X_A) / 86400

MENDED = (40, 6144, 50257, 1024)


def copied(shape, tokens: float, rate: float, flops: int = 8) -> float:
    """The copied calculation with its slips as arguments."""
    X = gpt_flops(*shape, 512, "full") / 32.09 / 16
    return flops * tokens * gpt_parameters(*shape) / (16 * X * rate) / 86400


def copied_rate(sequence_length: int) -> float:
    return gpt_flops(40, 6144, 50257, sequence_length, 512, "full") / 32.09 / 16


def by_helper(share: float) -> float:
    return training_seconds(1.8e12, 13e9, 384, share * 989.5e12, "none") / units.DAY


def own(gpus: object, chip: str = "A100 80GB SXM", **changes: object) -> object:
    run = {"model": "Llama-3.1-8B", "days": 30, "chip": chip, "gpus": gpus}
    return run | changes


ANSWERS = {
    "03-a": Answers(
        right=[DAYS_A, by_helper(0.41), 10.4, "10.44", "10.4 days", "250.5 h"],
        slips=[
            (13.9, "8TP"),
            (DAYS_A * 4 / 3, "8TP"),
            (DAYS_A / 3, "forward pass alone"),
            (DAYS_A * 0.41, "whole peak"),
            (DAYS_A * 384, "one GPU"),
            (DAYS_A * 86400, "seconds"),
            (DAYS_A * 24, "hours"),
            (DAYS_A * 10, "ten times too much"),
            (12, "Compare what the work counts"),
            (DAYS_A / 100, "as a share that is 0.41"),
            (DAYS_A * 1e12, "X is in TFLOP/s"),
            (DAYS_A * 1e10, "is 0.41, and is in TFLOP/s"),
        ],
    ),
    "03-b": Answers(
        right=[
            (300e9, X_B, copied(MENDED, 300e9, 1)),
            ("300B", "154e12", 207.8),
            ("300 billion tokens", "154 TFLOP/s", "208 days"),
            [3e11, 154.02e12, "208"],
        ],
        told=[
            (
                (300e9, X_B, copied(MENDED, 300e9, 1)),
                "By iterations it is 213 days: the formula leaves attention out.",
            )
        ],
        slips=[
            ((300e9, X_B, 202.9), "still 1048"),
            ((300e9, X_B, copied((40, 6144, 50257, 1048), 3e12, 10)), "still 1048"),
            ((3e12, 1.58e15, 203), "the tokens are 3.00 trillion: say 10e09"),
            ((300e9, 1.58e15, 203), "the rate is 1.58 PFLOP/s: it is ten times"),
            ((300e9, 1.58e14, 203), "158 TFLOP/s: the sequence length is still"),
            ((300e9, X_B, copied(MENDED, 3e12, 1)), "only one of the two"),
            ((300e9, X_B, copied(MENDED, 300e9, 10)), "only one of the two"),
            ((300e9, X_B, copied(MENDED, 300e9, 1, flops=6)), "6TP"),
            ((300e9, X_B, 212.52), "by iterations"),
            (207.8, "give three things"),
            ((300e9, "154 TFLOP", 207.8), "these are TFLOP; FLOP/s are asked"),
            ((3e12, X_B, 207.8), "the days are right, but the tokens are 3.00 tri"),
            ((30e9, X_B, 207.8), "too few"),
            ((300e9, 10 * X_B, 207.8), "1.54 PFLOP/s: it is ten times too much"),
            ((300e9, X_B / 10, 207.8), "ten times too little"),
            ((300e9, 154.02, 207.8), "is 154, so in TFLOP/s; give FLOP/s, times 1e12"),
            ((300e9, 0.154, 207.8), "is 0.154, so in PFLOP/s; give FLOP/s, times 1e15"),
            ((300e9, 16 * X_B, 207.8), "that of all 16 GPUs"),
            ((300e9, X_B / 16, 207.8), "divided by 16 twice"),
            ((300e9, 32.09 * X_B, 207.8), "by its 32.09 seconds"),
            ((300e9, 16 * 32.09 * X_B, 207.8), "divide by seconds and by GPUs"),
            ((300e9, 0.75 * X_B, 207.8), "count with “full”"),
            ((300e9, copied_rate(1048), 207.8), "sequence length is still 1048"),
            ((300e9, 1.3 * X_B, 207.8), "give it in FLOP/s, of one GPU"),
            ((300e9, 16 * X_B, 77), "the rate is 2.46 PFLOP/s: it is that of all"),
            ((3e12, X_B, 77), "say 10e09 in words"),
            ((300e9, 154.02, 207.8e12), "the rate is 154, so in TFLOP/s"),
            ((300e9, X_B, 207.8e12), "in the days the rate is still in TFLOP/s"),
            ((300e9, X_B, 207.8 * 16), "n is missing"),
            ((300e9, X_B, 207.8 / 16), "n counts twice"),
        ],
    ),
    "03-c": Answers(
        right=["C", " c "],
        told=[(49.1, "right, 49.1 days, so it would be too late"), ("49.1 days", "right")],
        slips=[
            ("A", "within the money at the likely share only"),
            ("B", "too late"),
            ("D", "dearest run"),
            ("E", "none of the choices"),
        ],
    ),
    "03-d": Answers(
        right=[own(40), own(40.0), own("40"), own(16, "H100 SXM"), own(96, "V100 32GB SXM2")],
        told=[
            (own("40 GPUs", days="720 hours"), "days: you wrote 720 hours, that is 30 days. right")
        ],
        slips=[
            (own(32), "likely share it would do"),  # at 35 %
            (own(8), "too few: at 25 % of the peak it takes 144 days"),
            (own(56), "A node less would do"),  # 8TP
            (own(39), "39 GPUs do not make whole nodes of 8"),
            (own(40, days=20), "too few"),
            (own(40, model="Llama-3.1-70B"), "too few"),
            (own(40, chip="A1000"), "is unknown"),
            (own(-8), "gpus=-8"),
            (own("many"), "no number"),
            (40, "give a dictionary with model, days, chip, gpus"),
            ({"gpus": 40}, "give a dictionary"),
        ],
        unanswered=[own(None)],
    ),
}
