"""Chapter 08."""

from tests.faces.exercises.answers.table import Answers

MINE = {"model": "Llama-3.1-8B", "gpus": 8, "chip": "H100", "batch": 64}
MINE |= {"sequence": 8192, "recompute": "full", "tensor": 1, "pipeline": 1, "zero": 3}


ANSWERS = {
    "parallelism-a": Answers(
        right=["TP 1, ZeRO 3", "tp 1, zero 3"],
        replies=[("tp 1, zero 3", "8,192 tokens per pass")],
        common_mistakes=[
            ("TP 2, ZeRO 1", "wait for each other"),
            ("TP 8, ZeRO 1", "too small for eight"),
            ("PP 4, ZeRO 1", "stages wait"),
        ],
    ),
    "parallelism-b": Answers(
        right=["sequences", "Sequences"],
        replies=[("sequences", "takes 8.0 s with ZeRO 3"), ("8 GPUs", "8 GPUs per sequence")],
        common_mistakes=[
            ("memory", "it would need 76.7 GB, and that fits"),
            ("network", "hide everything that ZeRO 3 sends"),
            ("nothing", "Count what each replica needs"),
        ],
    ),
    "parallelism-c": Answers(
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
                    ({"tensor": 8}, "mainly because of the sums of tensor parallelism"),
                    ({"tensor": 8, "recompute": "none", "gpus": 64}, "mainly because of the sums"),
                    (
                        {"tensor": 8, "model": "Llama-3.2-1B", "sequence": 1024},
                        "mainly because of launching",
                    ),
                    ({"pipeline": 8, "zero": 1, "batch": 8}, "mainly because of stages that wait"),
                    (
                        {"recompute": "none", "gpus": 6, "batch": 48},
                        "leaves no reserve. The largest part is activations",
                    ),
                    ({"zero": 0}, "GB but only has 85.5 GB. The largest part is optimizer"),
                    ({"gpus": 12, "tensor": 8}, "don't divide 12"),
                    ({"batch": 100}, "8 replicas don't divide 100"),
                    ({"chip": "RTX 4090"}, "know the links of RTX 4090"),
                    ({"model": "Llama-3.1-405B"}, "No usual split"),
                    ({"tensor": "two"}, "isn't a number"),
                    ({"model": "Llama-9"}, "Llama-9"),
                    ({"zero": 4}, "zero_stage=4"),
                ]
            ),
            ({"model": "gpt2"}, "leaves out chip"),
            (64, "isn't a dict"),
        ],
        unanswered=[MINE | {"zero": None}],
    ),
}
