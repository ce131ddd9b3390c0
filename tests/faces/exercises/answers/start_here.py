"""Chapter 00."""

from llmtrain_helpers import training_seconds, units
from tests.faces.exercises.answers.table import Answers

DAYS = 6 * 1.4e12 * 13e9 / (512 * 109e12) / 86400

ANSWERS = {
    "start_here-a": Answers(
        right=[
            DAYS,
            training_seconds(1.4e12, 13e9, 512, 109e12, "none") / units.DAY,
            22.6,
            "22.6",
            "22.6 days",
            "543 hours",
            22.65,
            round(DAYS, 1),
        ],
        common_mistakes=[
            (DAYS * 86400, "Those are seconds"),
            (DAYS * 24, "Those are hours"),
            (DAYS * 512, "how long one GPU would take"),
            (DAYS * 8 / 6, "You've counted 8"),
            (DAYS / 3, "only counted the forward pass"),
            (DAYS / 2, "a multiply-add is 2"),
            (DAYS * 10, "10× too high"),
            (DAYS / 10, "10× too low"),
            ("25 GB", "these are GB; we asked for days"),
            (30, "Too high. Did you use the rate of all the GPUs together"),
        ],
    ),
    "start_here-b": Answers(
        right=["B", "b", " B ", "40.3 EFLOP", 32 * 350e12 * 3600],
        common_mistakes=[
            ("A", "The GPUs deliver a rate"),
            ("C", "The cost of one token is a number"),
            ("D", "tokens per second: 467 thousand"),
            ("E", "one of the choices"),
        ],
    ),
    "start_here-d": Answers(
        right=["14B", "14b", 14e9, 14 * 10**9, "14e9", "14,000,000,000", "10.6B"],
        common_mistakes=[
            ("3B", "3B gets 500 tokens per parameter. That's enough, but a larger"),
            ("8B", "8B gets 71 tokens per parameter. That's enough, but a larger"),
            (32e9, "32B gets 4.4 tokens per parameter, which is too few"),
            ("70b", "70B gets 0.92 tokens per parameter, which is too few"),
            ("15B", "Choose one of the sizes: 3B, 8B, 14B, 32B, 70B"),
            ("big", "isn't a number"),
        ],
    ),
}
