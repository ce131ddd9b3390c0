"""Chapter 07."""

from llmtrain_helpers import all_reduce_bytes, all_reduce_seconds
from tests.faces.exercises.answers.table import Answers

ANSWERS = {
    "communication-tokens": Answers(
        right=[989.5e12 / 400e9, 2473.75, 989.5e12 / (8 * 50e9)],
        replies=[(2474, "Right, 2,470. You can let Python compute the other digits.")],
        common_mistakes=[
            (400e9 / 989.5e12, "the other way round"),
            (989.5e12 / 400e9 / 4, "drops out"),
            (4 * 989.5e12 / 400e9, "one 4 is left over"),
            (989.5e12 / 50e9, "one card alone"),
            (2500, "this gives 1.1 % too much"),
        ],
    ),
    "communication-a": Answers(
        right=[
            0.251875,
            0.252,
            "0.252",
            all_reduce_seconds(26e9, 32, 200e9),
            all_reduce_bytes(26e9, 32) / (8 * 25e9),
        ],
        common_mistakes=[
            (50.375e9 / 25e9, "8 cards carry eight rings"),
            (50.375e9 / 300e9, "has to leave the nodes"),
            (50.375e9 / (8 * 300e9), "a node's links together"),
            (50.375e9 / 4 / 200e9, "the whole buffer, not a share"),
            (2 * 0.251875, "2 bytes"),
            (0.5 * 0.251875, "once to go round"),
            (50.375e9 / 400e9, "not H100's 50"),
            (2 * 26e9 / 200e9, "d − 1"),
            (26e9 / 200e9, "goes round twice"),
            (2 * 0.75 * 26e9 / 200e9, "there are 32"),
            (50.375e9, "divide them"),
            (251.9, "milliseconds"),
            (0.3, "too high"),
        ],
    ),
}
