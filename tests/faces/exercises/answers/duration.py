"""Chapter 03."""

from llmtrain_helpers import training_seconds, units
from tests.faces.exercises.answers.table import Answers

X_B = 0.42 * 989.5e12

DAYS_B = 6 * 800e9 * 34e9 / (256 * X_B) / 86400

X_A = 0.41 * 989.5e12

DAYS_A = 6 * 1.8e12 * 13e9 / (384 * X_A) / 86400

DAYS_BY_STEPS = 300e9 / (512 * 1024) * 32.09 / 86400


def by_helper(share: float) -> float:
    return training_seconds(1.8e12, 13e9, 384, share * 989.5e12, "none") / units.DAY


def own(gpus: object, chip: str = "A100 80GB SXM", **changes: object) -> object:
    run = {"model": "Llama-3.1-8B", "days": 30, "chip": chip, "gpus": gpus}
    return run | changes


def offer(chip: object, gpus: object) -> object:
    return {"chip": chip, "gpus": gpus}


ANSWERS = {
    "duration-a": Answers(
        right=[DAYS_A, by_helper(0.41), 10.4, "10.44", "10.4 days", "250.5 h"],
        common_mistakes=[
            (13.9, "8TP"),
            (DAYS_A * 4 / 3, "8TP"),
            (DAYS_A / 3, "only the forward pass"),
            (DAYS_A * 0.41, "whole peak"),
            (DAYS_A * 384, "one GPU"),
            (DAYS_A * 86400, "seconds"),
            (DAYS_A * 24, "hours"),
            (DAYS_A * 10, "10× too high"),
            (12, "Do the work and the rate count"),
            (DAYS_A / 100, "as a share that's 0.41"),
            (DAYS_A * 1e12, "Your X is in TFLOP/s"),
            (DAYS_A * 1e10, "is 0.41, and it's in TFLOP/s"),
        ],
    ),
    "duration-days": Answers(
        right=[DAYS_BY_STEPS, DAYS_BY_STEPS * (1 + 1e-12)],
        replies=[(DAYS_BY_STEPS, "Right, 213 days. The 208 days above leave out")],
        common_mistakes=[
            (DAYS_BY_STEPS * 86400, "Those are seconds"),
            (DAYS_BY_STEPS * 24, "Those are hours"),
            (300e9 / (512 * 1024), "the number of steps"),
            (DAYS_BY_STEPS * 1024, "left out s"),
            (DAYS_BY_STEPS * 512, "left out B"),
            (DAYS_BY_STEPS / 16, "You don't need the GPUs"),
            (207.8, "too little. How many steps are there?"),
            ("213 days", "should give one number"),
        ],
    ),
    "duration-b": Answers(
        right=[
            (800e9, X_B, DAYS_B),
            ("800B", "415.6e12", 17.75),
            ("800 billion tokens", "416 TFLOP/s", "17.8 days"),
            [8e11, 0.42 * 989.5e12, "17.75"],
        ],
        common_mistakes=[
            ((800e9, X_B, DAYS_B / 2), "the peak is still 2× too high"),
            ((8e12, 20 * X_B, 8.9), "The tokens are 8.00 trillion. What's 10e9"),
            ((800e9, 20 * X_B, 8.9), "more than an H100 can do"),
            ((800e9, 2 * X_B, 8.9), "the peak is 2× what an H100 can do in training"),
            (
                (800e9, X_B, DAYS_B * 10),
                "only fixed one of the two tenfold mistakes: that's 10× too high",
            ),
            ((800e9, X_B, DAYS_B / 10), "tenfold mistakes: that's 10× too low"),
            ((800e9, X_B, DAYS_B * 4 / 3), "8TP"),
            (17.75, "Give three values"),
            ((800e9, "416 TFLOP", 17.75), "these are TFLOP; we asked for FLOP/s"),
            ((8e12, X_B, 17.75), "The days are right, but the tokens are 8.00 tri"),
            ((80e9, X_B, 17.75), "too few"),
            ((800e9, 10 * X_B, 17.75), "4.16 PFLOP/s: it's 10× too high"),
            ((800e9, X_B / 10, 17.75), "10× too low"),
            (
                (800e9, 415.6, 17.75),
                "is 416, which is in TFLOP/s. Give it in FLOP/s, so multiply by 1e12",
            ),
            ((800e9, 831.2, 17.75), "is 831, which is in TFLOP/s"),
            (
                (800e9, 0.4156, 17.75),
                "is 0.416, which is in PFLOP/s. Give it in FLOP/s, so multiply by 1e15",
            ),
            ((800e9, 256 * X_B, 17.75), "the rate of all 256 GPUs"),
            ((800e9, 989.5e12, 17.75), "it's the whole peak"),
            ((800e9, 1979e12, 17.75), "it's a whole peak, and 2× what"),
            ((800e9, X_B * 4 / 3, 17.75), "don't add anything"),
            ((800e9, 0.42 * 312e12, 17.75), "the rate of an A100"),
            ((800e9, 1.3 * X_B, 17.75), "Give the rate of one GPU in FLOP/s"),
            ((800e9, X_B, DAYS_B * 1e12), "In the days the rate is still in TFLOP/s"),
            ((800e9, X_B, DAYS_B * 256), "left out n"),
            ((800e9, X_B, DAYS_B / 256), "divided by n twice"),
            ((800e9, X_B, DAYS_B * 86400), "Those are seconds"),
            ((800e9, X_B, DAYS_B * 24), "Those are hours"),
        ],
        unanswered=[(None, None, None)],
    ),
    "duration-c": Answers(
        right=[
            offer("H100", 48),
            offer("H100 SXM", "48 GPUs"),
            offer("H100", 64),
            offer("H100", 512),
        ],
        replies=[(offer("H100", 64), "Right. At 25% of the peak, you'd need 31 days and $141")],
        common_mistakes=[
            (offer("H100", 40), "Too late. At 25% of the peak, you'd need 49 days"),
            (offer("H100", 32), "At 35%, the likely share, it's 44 days and $101 thousand, but"),
            (offer("A100", 160), "Too expensive. At 25% of the peak, you'd need 39 days and $194"),
            (
                offer("A100", 8),
                "Too expensive and too late. At 25% of the peak, you'd need 779 days",
            ),
            (offer("V100", 512), "Too expensive. At 25% of the peak, you'd need 30 days and $224"),
            (offer("H100", 520), "up to 512 of each chip, so 520 is too many"),
            (offer("H100", 50), "50 GPUs don't fill whole nodes of 8"),
            (offer("B200", 64), "You can't rent B200"),
            (offer("H1000", 64), "is unknown"),
            (offer("H100", -8), "gpus=-8"),
            (("H100", 48), "Give a dictionary with chip and gpus"),
        ],
        unanswered=[offer(None, None), offer("H100", None)],
    ),
    "duration-d": Answers(
        right=[own(40), own(40.0), own("40"), own(16, "H100 SXM"), own(96, "V100 32GB SXM2")],
        replies=[
            (own("40 GPUs", days="720 hours"), "days: you wrote 720 hours, that's 30 days. Right")
        ],
        common_mistakes=[
            (own(32), "At 35%, the likely share, it's 26 days, but that's no promise"),
            (own(8), "too few. At 25% of the peak, you'd need 144 days"),
            (own(56), "One node fewer is enough"),  # 8TP
            (own(39), "39 GPUs don't fill whole nodes of 8"),
            (own(40, days=20), "too few"),
            (own(40, model="Llama-3.1-70B"), "too few"),
            (own(40, chip="A1000"), "is unknown"),
            (own(-8), "gpus=-8"),
            (own("many"), "a number"),
            (40, "Give a dictionary with model, days, chip, gpus"),
            ({"gpus": 40}, "Give a dictionary"),
        ],
        unanswered=[own(None)],
    ),
}
