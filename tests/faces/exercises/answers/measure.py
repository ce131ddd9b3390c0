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
            (IDEAL * recorded_peak() ** 2, "Work times rate isn't a time, so divide instead."),
            (IDEAL / 3, "That's only the forward pass, but the count already includes backward"),
            (3 * IDEAL, "already includes forward and backward"),
            (2 * IDEAL, "Your line gives 2× too much"),
        ],
    ),
    "measure-a": Answers(
        right=[5 * ONE, "10,737,418,240", 10.737e9, 2 * ONE + 3 * ONE, "10.74B", "1.07e10"],
        common_mistakes=[
            (products * ONE, reply)
            for products, reply in [
                (1, "a single product"),
                (2, "You've only counted the forward pass"),
                (3, "forward and backward together, aren't enough"),
                (4, "second matrix needs two"),
                (6, "Which of the four gradients in backward doesn't have to be computed?"),
                (2.5, "A multiply-add is 2 FLOPs"),
                (10, "count something twice?"),
                (5e-9, "not billions"),
                (7, "again, but they're already in the sum"),
                (9, "Too high"),
                (5.1, "Too high"),
            ]
        ],
    ),
    "measure-b": Answers(
        right=["the link", "The Link"],
        replies=[
            ("the link", "Right. Alone, the GPU processes 1.73× as many, so it"),
            ("the link", "Right. Alone, the GPU processes 1.73× as many, so it"),
        ],
        common_mistakes=[
            ("the loader", "1.02×"),
            ("a neighbour", "in every pass"),
            ("our GPU", "wait longer"),
        ],
    ),
    "measure-c": Answers(
        right=[48 / 1.65 / 10, 2.91, "2.909", 8 * 0.6 / (8 * 0.15 + 0.45)],
        common_mistakes=[
            (29.1, "That's the sequences per second. Divide it by the same number for"),
            (1, "That's no gain. Did you count update and exchange eight"),
            (8, "A step processes eight times the sequences, but it's also"),
            (1.65 / 0.6, "how much longer the step is"),
            (4, "You've left out update and exchange, which still happen"),
            (
                10 / 29.0909,
                "You've divided the old rate by the new one. Do it the other way round.",
            ),
            (1.909, "That's only the increase. Give the whole ratio, old rate included."),
            (0.3636, "all its passes"),
            (48 / 1.55 / 12, "You've left out the update."),
            (48 / 1.3 / 24, "You've left out the exchange."),
            (48 / 1.55 / 10, "You've left out the update."),
            (48 / 2.35 / 10, "The update only happens once per step."),
            (48 / 4.1 / 10, "after each pass"),
            (2.6, "Too low"),
            (3.2, "Too high"),
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
                    ({"layers": 1}, "layers=1: use at least 2, so that embedding and head"),
                    ({"layers": 33}, "at most the model's 32"),
                    ({"layers": 16}, "3.40 GB should stay free"),
                    ({"micro": 4}, "3.40 GB should stay free"),
                    ({"warm_up": 1}, "The first step creates Adam's state, so leave out at"),
                    ({"warm_up": 0}, "The first step creates Adam's state, so leave out at"),
                    ({"repeats": 3}, "You've timed 3, which is too few to see how they spread."),
                    ({"repeats": 100_000}, "steps take"),
                    ({"micro": "two"}, "isn't a number"),
                    ({"model": "Llama-9"}, "Llama-9"),
                    (
                        {"model": "Llama-3.1-405B", "layers": 2},
                        "Two layers of Llama-3.1-405B already need 197 GB, but you",
                    ),
                    ({"layers": 2, "model": "gpt2"}, "You can fit more layers, or more sequences"),
                    ({"peak": 18 * 1.923}, "You've only counted the states."),
                    ({"peak": 14 * 1.923}, "You've only counted the states."),
                    (
                        {"peak": 14 * 1.923 + 9.84},
                        "peak=36.762 GB: You've left out two tensors of logits, each with 4",
                    ),
                    ({"peak": 41}, "one of the two tensors of logits"),
                    ({"peak": 45.2 / 1.024**3}, "looks like GiB"),
                    ({"model": "DeepSeek-V3", "layers": 2}, "several kinds of layers"),
                    ({"peak": 9.84}, "what a pass stores. Add the weights"),
                    ({"peak": 45.2e9}, "looks like bytes"),
                    ({"peak": 70}, "70 GB is too much for these layers"),
                    ({"peak": 20}, "20 GB is too little for these layers"),
                ]
            ),
            ({"model": "gpt2"}, "leaves out layers"),
            (4, "isn't a dict"),
        ],
        unanswered=[MINE | {"layers": None, "peak": 40}, MINE | {"peak": None}],
    ),
}
