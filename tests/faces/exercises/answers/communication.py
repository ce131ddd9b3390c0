"""Chapter 07."""

from llmtrain_helpers import all_reduce_bytes, all_reduce_seconds
from tests.faces.exercises.answers.table import Answers

MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "A100 80GB SXM", "sequence": 8192}
MANY = MINE | {"gpus": 64, "chip": "H100"}

ANSWERS = {
    "communication-tokens": Answers(
        right=[989.5e12 / 400e9, 2473.75, 989.5e12 / (8 * 50e9)],
        replies=[(2474, "Right, 2,470. You can let Python compute the other digits.")],
        common_mistakes=[
            (400e9 / 989.5e12, "the other way round"),
            (989.5e12 / 400e9 / 4, "drops out"),
            (4 * 989.5e12 / 400e9, "only dropped one 4"),
            (989.5e12 / 50e9, "a single card"),
            (2500, "Your line gives 1.1% too much"),
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
            (50.375e9 / (8 * 300e9), "the combined rate of a node's links"),
            (50.375e9 / 4 / 200e9, "the whole buffer, not a part"),
            (2 * 0.251875, "2 bytes"),
            (0.5 * 0.251875, "a gradient needs 2 bytes"),
            (50.375e9 / 400e9, "not 50 as with H100s"),
            (2 * 26e9 / 200e9, "d − 1"),
            (26e9 / 200e9, "the ring runs twice"),
            (2 * 0.75 * 26e9 / 200e9, "there are 32"),
            (50.375e9, "Divide them"),
            (251.9, "milliseconds"),
            (0.3, "Too high"),
        ],
    ),
    "communication-f": Answers(
        right=[28.8, "28.8 ms", "0.0288 s", 640 * 0.045],
        common_mistakes=[
            (14.4, "2× too low, because a gradient"),
            (57.6, "not 4"),
            (640, "how many messages"),
            (27.47, "used MiB"),
            (230.4, "bytes, not bits"),
            (0.045, "That's one message"),
            (0.0288, "in seconds"),
            (28800, "microseconds"),
            (45, "Too high"),
        ],
    ),
    "communication-g": Answers(
        right=["too few tokens per GPU", "Too few tokens per GPU", 45.17, "45.2 GB"],
        common_mistakes=[
            ("the network is slower than the links", "eight cards at once"),
            ("the ring has more turns", "pieces are half the size"),
            ("twice the GPUs send twice as much", "15/16 of everything"),
        ],
    ),
    "communication-h": Answers(
        right=[
            *(MINE | {"tokens": x} for x in (1040, 1152, "1.1k", 312e12 / 300e9)),
            *(MANY | {"tokens": x} for x in (2474, "2,500", 2112, 989.5e12 / 400e9)),
            MINE | {"tokens": 1100, "model": "Llama-3.2-1B", "gpus": 2, "sequence": "8k"},
        ],
        replies=[
            (MINE | {"tokens": 1040}, "the panel, which counts what GPUs and links really reach"),
            (MANY | {"tokens": 2474, "sequence": 1024}, "so a pass needs 3 sequences"),
        ],
        common_mistakes=[
            *((MINE | {"tokens": x}, "stays in one node") for x in (1560, 12_480)),
            (MANY | {"tokens": 2474 * 8}, "a single card"),
            (MANY | {"chip": "B200", "tokens": 2500}, "rate of all its cards"),
            (MINE | {"tokens": 130}, "links don't add up"),
            (MINE | {"tokens": 1 / 1040}, "the other way round"),
            (MANY | {"tokens": 2 * 2474}, "without sparsity"),
            (MINE | {"tokens": 300}, "too low"),
            (MINE | {"tokens": 8192}, "too high"),
            (MINE | {"tokens": 1040, "gpus": 1}, "at least two"),
            (MINE | {"tokens": 1040, "chip": "RTX 4090"}, "don't know the links of RTX 4090"),
            (MINE | {"tokens": 1040, "model": "Llama-9"}, "Llama-9"),
            ({"model": "gpt2"}, "leaves out"),
            (1040, "isn't a dict"),
        ],
        unanswered=[MINE | {"tokens": None}],
    ),
}
