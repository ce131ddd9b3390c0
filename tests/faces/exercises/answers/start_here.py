"""Chapter 00."""

from llmtrain_helpers import training_seconds, units
from tests.faces.exercises.answers.table import Answers

DAYS = 6 * 1.4e12 * 13e9 / (512 * 110e12) / 86400

BYTES = 24576 * 2**20


ANSWERS = {
    "00-a": Answers(
        right=[
            DAYS,
            training_seconds(1.4e12, 13e9, 512, 110e12, "none") / units.DAY,
            22.4,
            "22.4",
            "22.4 days",
            "538 hours",
            22.44,
            round(DAYS, 1),
        ],
        slips=[
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
    "00-b": Answers(
        right=["B", "b", " B ", "40.3 EFLOP", 32 * 350e12 * 3600],
        slips=[
            ("A", "what GPUs deliver is a rate"),
            ("C", "what one token takes is a number"),
            ("D", "is tokens a second: 467 thousand"),
            ("E", "none of the choices"),
        ],
    ),
    "00-c": Answers(
        right=[BYTES, 24 * 2**30, float(BYTES), "25,769,803,776", 25.77e9, "25.77B"],
        slips=[
            (24e9, "as the card is sold"),
            ("24B", "as the card is sold"),
            (24576e6, "takes a MiB for a MB"),
            (24576, "these are still MiB"),
            (24576 * 2**30, "these are MiB, not GiB"),
            (24576 * 1024, "these are MiB, not KiB"),
            (25.8e9, "rounded; please give"),
            (26e9, "too high. A MiB is no MB."),
            ("24576 MiB", "these are MiB; bytes are asked, as a number without a unit"),
            ("24 GiB", "these are GiB"),
        ],
    ),
    "00-d": Answers(
        right=["14B", "14b", 14e9, 14 * 10**9, "14e9", "14,000,000,000", "10.6B"],
        slips=[
            ("3B", "3B gets 500 tokens for each parameter: enough, and a larger"),
            ("8B", "8B gets 71 tokens for each parameter: enough, and a larger"),
            (32e9, "32B gets 4.4 tokens for each parameter: too few"),
            ("70b", "70B gets 0.92 tokens for each parameter: too few"),
            ("15B", "choose one of the sizes: 3B, 8B, 14B, 32B, 70B"),
            ("big", "is no number"),
        ],
    ),
}
