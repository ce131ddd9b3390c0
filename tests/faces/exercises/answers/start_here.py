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
            (DAYS * 86400, "these are seconds"),
            (DAYS * 24, "these are hours"),
            (DAYS * 512, "time of a single GPU"),
            (DAYS * 8 / 6, "this counts 8"),
            (DAYS / 3, "forward pass alone"),
            (DAYS / 2, "a multiply-add is 2"),
            (DAYS * 10, "ten times too much"),
            (DAYS / 10, "ten times too little"),
            ("25 GB", "these are GB; days are asked"),
            (30, "too high. Is the rate that of all GPUs together"),
        ],
    ),
    "start_here-b": Answers(
        right=["B", "b", " B ", "40.3 EFLOP", 32 * 350e12 * 3600],
        common_mistakes=[
            ("A", "what GPUs deliver is a rate"),
            ("C", "what one token takes is a number"),
            ("D", "is tokens a second: 467 thousand"),
            ("E", "none of the choices"),
        ],
    ),
    "start_here-d": Answers(
        right=["14B", "14b", 14e9, 14 * 10**9, "14e9", "14,000,000,000", "10.6B"],
        common_mistakes=[
            ("3B", "3B gets 500 tokens for each parameter: enough, and a larger"),
            ("8B", "8B gets 71 tokens for each parameter: enough, and a larger"),
            (32e9, "32B gets 4.4 tokens for each parameter: too few"),
            ("70b", "70B gets 0.92 tokens for each parameter: too few"),
            ("15B", "choose one of the sizes: 3B, 8B, 14B, 32B, 70B"),
            ("big", "is no number"),
        ],
    ),
}
