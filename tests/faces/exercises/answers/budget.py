"""Chapter 10."""

from math import exp

from tests.faces.exercises.answers.table import Answers

RUN = {"gpus": 8, "chip": "A100 80GB SXM", "days": 30}


def own(model: str, tokens: object) -> dict[str, object]:
    return RUN | {"model": model, "tokens": tokens}


ANSWERS = {
    "10-a": Answers(
        right=["10.9B"],
        slips=[
            (436e9, "these are the tokens"),
            (15.4e9, "this has 20 tokens for each"),
            (26.7e9, "this has C = 40N²"),
            (18.9e9, "this takes dollars for hours"),
            (32.7e9, "this multiplies by the price"),
            (17.2e9, "this has the whole peak"),
        ],
    ),
    "10-b": Answers(
        right=["half"], slips=[("quarter", "no: "), ("best", "no: "), ("twice", "no: ")]
    ),
    "10-c": Answers(
        right=[30e9 * (1 + 15.4 * (1 - exp(-19 / 15.4)))],
        slips=[
            (30e9 * 20, "takes every epoch for fresh text"),
            (30e9 * 15.4 * (1 - exp(-19 / 15.4)), "the first epoch is missing"),
        ],
    ),
    "10-d": Answers(
        right=[own("4.2B", 81e9)],
        told=[
            (own(model, tokens), said)
            for model, tokens, said in [
                ("4.2B", 81e9, "right: 4.2B gets 19 tokens a parameter"),
                ("1.9B", "160B", "right: 1.9B gets 82 tokens a parameter"),
                ("9.0B", 44e9, "right: 9.0B gets 4.9 tokens a parameter"),
                ("7.2B", "57.5B", "right: 7.2B gets 7.9 tokens a parameter"),
                ("9.0B", 34e9, "right: 9.0B gets 3.8 tokens a parameter"),
            ]
        ],
        slips=[
            (own(model, tokens), said)
            for model, tokens, said in [
                ("4.2B", 110e9, "too many tokens: at the slow end they take 35.9 of your 30"),
                ("4.2B", 30e9, "you leave time: even at the slow end they take 9.79 of"),
                ("24B", 15e9, "too large: 24B gets 0.63 tokens a parameter"),
                ("310M", 900e9, "too small: 310M gets 2,900 tokens a parameter"),
                ("600M", 550e9, "too small: 600M gets 920 tokens a parameter"),
                ("14B", 28e9, "too large: 14B gets 2.0 tokens a parameter"),
                ("14B", "29B", "too many tokens: at the slow end they take 30.3 of your 30"),
                ("7.2B", "66.8B", "too many tokens: at the slow end they take 34.9 of your 30"),
                ("31B", 1e9, "31B does not fit: at best"),
                ("8B", 1e9, "model='8B' is unknown"),
            ]
        ],
    ),
}
