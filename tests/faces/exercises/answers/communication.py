"""Chapter 07."""

from llmtrain_helpers import all_reduce_bytes, all_reduce_seconds
from tests.faces.exercises.answers.table import Answers

MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "H100", "batch": 64}
MINE |= {"sequence": 8192, "recompute": "full", "tensor": 1, "pipeline": 1, "zero": 3}


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
    "communication-b": Answers(
        right=["TP 1, ZeRO 3", "tp 1, zero 3"],
        replies=[("tp 1, zero 3", "8,192 tokens a pass")],
        common_mistakes=[
            ("TP 2, ZeRO 1", "wait for each other"),
            ("TP 8, ZeRO 1", "too small for eight"),
            ("PP 4, ZeRO 1", "stages wait"),
        ],
    ),
    "communication-c": Answers(
        right=["There are 2,048 sequences, so eight GPUs must share each: TP 8 and stages."],
        replies=[("Take TP 8 inside each node, and then cut layers into stages.", "Llama 3")],
        common_mistakes=[(8, "in words")],
        unanswered=["no", "TP TP TP TP TP TP TP TP TP"],
    ),
    "communication-d": Answers(
        right=[
            MINE | change
            for change in (
                {},
                {"zero": 1},
                {"chip": "A100"},
                {"sequence": "8192", "batch": "64"},
                {"gpus": 64, "batch": 512, "recompute": "none"},
                {"model": "Llama-3.1-70B", "gpus": 64, "batch": 256},
                {"recompute": "none", "pipeline": 2},
                {"recompute": "none", "tensor": 2, "zero": 1},
                {"tensor": 2},
                {"zero": "ZeRO 3"},
                {"zero": "3"},
            )
        ],
        common_mistakes=[
            *(
                (MINE | change, reply)
                for change, reply in [
                    ({"tensor": 8, "zero": 1}, "longer than another split that fits"),
                    ({"tensor": 8}, "above all by the sums of tensor parallelism"),
                    ({"tensor": 8, "recompute": "none", "gpus": 64}, "above all by the sums"),
                    (
                        {"tensor": 8, "model": "Llama-3.2-1B", "sequence": 1024},
                        "above all by launching",
                    ),
                    ({"pipeline": 8, "zero": 1, "batch": 8}, "above all by stages that wait"),
                    (
                        {"recompute": "none", "gpus": 6, "batch": 48},
                        "leaves no reserve: most of it activations",
                    ),
                    ({"zero": 0}, "GB and has 85.5 GB: most of it optimizer"),
                    ({"gpus": 12, "tensor": 8}, "do not divide 12"),
                    ({"batch": 100}, "8 replicas do not share 100"),
                    ({"chip": "RTX 4090"}, "links of RTX 4090 are not known"),
                    ({"model": "Llama-3.1-405B"}, "no usual split"),
                    ({"tensor": "two"}, "is no number"),
                    ({"model": "Llama-9"}, "Llama-9"),
                    ({"zero": 4}, "zero_stage=4"),
                ]
            ),
            ({"model": "gpt2"}, "leaves out chip"),
            (64, "is no dict"),
        ],
        unanswered=[MINE | {"zero": None}],
    ),
}
