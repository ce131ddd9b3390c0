"""Chapter 12."""

from dataclasses import replace
from typing import Any

from llmtrain_course.measure.recorded import recorded_model, recorded_peak, recorded_step
from llmtrain_helpers import count_flops, published, step_timeline
from tests.faces.exercises.answers.table import Answers

ONE = 2 * 1024 * 512 * 2048
IDEAL = count_flops(recorded_model(256), 4, "none").total / recorded_peak()

MINE = {"model": "Llama-3.1-8B", "layers": 4, "micro": 1, "warm_up": 3, "repeats": 10}


def own(change: dict[str, Any]) -> dict[str, Any]:
    """A test of one's own, with the peak that the timeline predicts for it."""
    asked = MINE | change
    if "peak" not in asked and asked["model"] in published.names("architectures"):
        shape = published.architecture(asked["model"])
        shape = replace(shape, sequence_length=min(8192, shape.sequence_length))
        shape = replace(shape, num_layers=int(asked["layers"]))
        micro = asked["micro"] if isinstance(asked["micro"], int) else 1
        line = step_timeline(shape, micro, "bf16_fp32_grads", "none")
        asked["peak"] = line.peak.total / 1e9
    return {"peak": 1} | asked


ANSWERS = {
    "measure-seconds": Answers(
        right=[IDEAL, recorded_step(256).ideal],
        common_mistakes=[
            (1 / IDEAL, "one over the seconds"),
            (IDEAL * recorded_peak() ** 2, "divide"),
            (IDEAL / 3, "forward alone"),
            (3 * IDEAL, "backward already"),
            (2 * IDEAL, "this gives 2 times too much"),
        ],
    ),
    "measure-a": Answers(
        right=[5 * ONE, "10,737,418,240", 10.737e9, 2 * ONE + 3 * ONE, "10.74B", "1.07e10"],
        common_mistakes=[
            (products * ONE, reply)
            for products, reply in [
                (1, "one product"),
                (2, "forward pass only"),
                (3, "forward and backward together, are too few"),
                (4, "second matrix has two"),
                (6, "which of the four gradients does nobody want"),
                (2.5, "a multiply-add is 2 FLOPs"),
                (10, "counted twice?"),
                (5e-9, "not billions"),
                (7, "stand in the sum already"),
                (9, "too high"),
                (5.1, "too high"),
            ]
        ],
    ),
    "measure-b": Answers(
        right=["the link", "The Link"],
        replies=[("the link", "alone it makes 1.73 times"), ("the link", "make 1.46 times")],
        common_mistakes=[
            ("the loader", "1.02 times"),
            ("a neighbour", "with every pass"),
            ("our GPU", "wait longer"),
        ],
    ),
    "measure-c": Answers(
        right=[48 / 1.65 / 10, 2.91, "2.909", 8 * 0.6 / (8 * 0.15 + 0.45)],
        common_mistakes=[
            (29.1, "over those of a single pass"),
            (1, "update and exchange in there eight times"),
            (8, "takes longer too"),
            (1.65 / 0.6, "how much longer a step takes"),
            (4, "still there, once a step"),
            (10 / 29.0909, "turn it"),
            (1.909, "asked is how many times"),
            (0.3636, "all its passes"),
            (48 / 1.55 / 12, "update is missing"),
            (48 / 1.3 / 24, "exchange is missing"),
            (48 / 1.55 / 10, "update is missing"),
            (48 / 2.35 / 10, "the update comes once"),
            (48 / 4.1 / 10, "after each pass"),
            (2.6, "too low"),
            (3.2, "too high"),
        ],
    ),
    "measure-d": Answers(
        right=[
            own(change)
            for change in (
                {},
                {"layers": "8"},
                {"layers": 2, "micro": 2, "warm_up": 2, "repeats": 5},
                {"model": "gpt2", "layers": 12, "micro": 20},
                {"repeats": 1000},
                {"peak": "45.2"},
                {"peak": 43.5},  # a twentieth off
                {"peak": 18 * 1.923 + 9.84 + 8.41},  # with gradients, as in a plan
            )
        ],
        common_mistakes=[
            *(
                (own(change), reply)
                for change, reply in [
                    ({"layers": 1}, "take 2 at the least"),
                    ({"layers": 33}, "at most the model's 32"),
                    ({"layers": 16}, "3.40 GB should stay free"),
                    ({"micro": 4}, "3.40 GB should stay free"),
                    ({"warm_up": 1}, "makes Adam's state"),
                    ({"warm_up": 0}, "makes Adam's state"),
                    ({"repeats": 3}, "too few for a spread"),
                    ({"repeats": 100_000}, "steps take"),
                    ({"micro": "two"}, "is no number"),
                    ({"model": "Llama-9"}, "Llama-9"),
                    (
                        {"model": "Llama-3.1-405B", "layers": 2},
                        "two layers of Llama-3.1-405B already",
                    ),
                    ({"layers": 2, "model": "gpt2"}, "more fits, of layers or of sequences"),
                    ({"peak": 18 * 1.923}, "the states alone"),
                    ({"peak": 14 * 1.923}, "the states alone"),
                    ({"peak": 14 * 1.923 + 9.84}, "two tensors of logits are missing"),
                    ({"peak": 41}, "one of the two tensors of logits"),
                    ({"peak": 45.2 / 1.024**3}, "looks like GiB"),
                    ({"model": "DeepSeek-V3", "layers": 2}, "layers of several kinds"),
                    ({"peak": 9.84}, "what a pass keeps"),
                    ({"peak": 45.2e9}, "looks like bytes"),
                    ({"peak": 70}, "70 GB is too much for these layers"),
                    ({"peak": 20}, "20 GB is too little for these layers"),
                ]
            ),
            ({"model": "gpt2"}, "leaves out layers"),
            (4, "is no dict"),
        ],
        unanswered=[MINE | {"layers": None, "peak": 40}, MINE | {"peak": None}],
    ),
}
