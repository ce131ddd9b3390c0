"""Chapter 11."""

from math import log

from tests.faces.exercises.answers.table import Answers

RUN = {"gpus": 8, "chip": "A100 80GB SXM", "days": 30}


def own(model: str, tokens: object) -> dict[str, object]:
    return RUN | {"model": model, "tokens": tokens}


ANSWERS = {
    "budget-tokens": Answers(
        right=[1e22 / (6 * 3e9)],
        common_mistakes=[
            (1e22 / 3e9, "this has one FLOP"),
            (6 * 1e22 / 3e9, "this multiplies by 6"),
            (1e22 / 6e9, "this is forward only"),
        ],
    ),
    "budget-a": Answers(
        right=["10.9B"],
        common_mistakes=[
            (436e9, "these are the tokens"),
            (15.4e9, "this has 20 tokens for each"),
            (7.71e9, "this has 80 tokens for each"),
            (26.7e9, "this has C = 40N²"),
            (68.9e9, "this has C = 6N²"),
            (9.44e9, "this has C = 8ND"),
            (1.82e8, "this takes the hours for seconds"),
            (18.9e9, "this takes dollars for hours"),
            (32.7e9, "this multiplies by the price"),
            (17.2e9, "this has the whole peak"),
            (10.9, "too little by a factor of a billion"),
        ],
    ),
    "budget-b": Answers(
        right=["half"], common_mistakes=[("quarter", "no: "), ("best", "no: "), ("twice", "no: ")]
    ),
    "budget-c": Answers(
        right=[1 - 15.387756 * log(1 - 9 / 15.387756)],
        common_mistakes=[
            (10, "takes every reading for fresh text"),
            (13.53, "these are the repeats"),
            (7.81, "this is what ten readings are worth"),
            (16.14, "only nine are left"),
        ],
    ),
    "budget-d": Answers(
        right=[own("4.2B", 64e9)],
        replies=[
            (own(model, tokens), reply)
            for model, tokens, reply in [
                ("4.2B", 64e9, "right: 4.2B gets 15 tokens a parameter"),
                ("Llama-3.1-8B", 38e9, "right: Llama-3.1-8B gets 4.7 tokens a parameter"),
                ("1.9B", "118B", "right: 1.9B gets 61 tokens a parameter"),
                ("9.0B", 29.9e9, "right: 9.0B gets 3.3 tokens a parameter"),
                ("7.2B", "37.2B", "right: 7.2B gets 5.1 tokens a parameter"),
                ("9.0B", 23e9, "right: 9.0B gets 2.6 tokens a parameter"),
            ]
        ],
        common_mistakes=[
            (own(model, tokens), reply)
            for model, tokens, reply in [
                ("4.2B", 110e9, "too many tokens: they take 51.6 days at the slow end, and"),
                ("4.2B", 30e9, "you leave time: they take 14.1 days at the slow end"),
                ("24B", 11e9, "too large: 24B gets 0.47 tokens a parameter"),
                ("310M", 580e9, "too small: 310M gets 1,900 tokens a parameter"),
                ("600M", 350e9, "too small: 600M gets 590 tokens a parameter"),
                ("14B", 19e9, "too large: 14B gets 1.4 tokens a parameter"),
                ("14B", "21.3B", "too many tokens: they take 30.5 days at the slow end, and"),
                ("7.2B", "66.8B", "too many tokens: they take 50.0 days at the slow end, and you"),
                ("43B", 1e9, "43B does not fit: at best"),
                ("8B", 1e9, "no shape on the shelf has 8B: the nearest is 7.2B"),
                ("Lama 8", 1e9, "model='Lama 8' is unknown"),
            ]
        ],
    ),
}
