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
            (1e22 / 3e9, "You've used one FLOP per parameter and token, but there"),
            (6 * 1e22 / 3e9, "You've multiplied by 6. Divide the work by what a token"),
            (1e22 / 6e9, "You've only counted the forward pass. Backward is 4 of"),
        ],
    ),
    "budget-a": Answers(
        right=["10.9B"],
        common_mistakes=[
            (436e9, "Those are the tokens. Divide by 40 to get the parameters."),
            (15.4e9, "You've used 20 tokens per parameter, but here it's 40."),
            (7.71e9, "You've used 80 tokens per parameter, but here it's 40."),
            (26.7e9, "You've used C = 40N², but a token costs 6 FLOPs per"),
            (68.9e9, "You've used C = 6N², but each parameter should get 40"),
            (9.44e9, "You've used C = 8ND, but nothing is recomputed here."),
            (1.82e8, "You've used hours as seconds, but an hour has 3600."),
            (18.9e9, "You've used dollars as hours, but an hour costs 3."),
            (32.7e9, "You've multiplied by the price. Dollars divided by the"),
            (17.2e9, "You've used the whole peak, but the GPUs reach 40% of it."),
            (10.9, "Too low by a factor of a billion. Give the number itself,"),
        ],
    ),
    "budget-b": Answers(
        right=["half"], common_mistakes=[("quarter", "No, "), ("best", "No, "), ("twice", "No, ")]
    ),
    "budget-c": Answers(
        right=[1 - 15.387756 * log(1 - 9 / 15.387756)],
        common_mistakes=[
            (10, "You've counted every reading as fresh text, as your"),
            (13.53, "Those are only the repeats. Add the first reading."),
            (7.81, "That's what ten readings are worth."),
            (16.14, "only nine are left"),
        ],
    ),
    "budget-d": Answers(
        right=[own("4.2B", 64e9)],
        replies=[
            (own(model, tokens), reply)
            for model, tokens, reply in [
                ("4.2B", 64e9, "Right, 4.2B gets 15 tokens per parameter"),
                ("Llama-3.1-8B", 38e9, "Right, Llama-3.1-8B gets 4.7 tokens per parameter"),
                ("1.9B", "118B", "Right, 1.9B gets 61 tokens per parameter"),
                ("9.0B", 29.9e9, "Right, 9.0B gets 3.3 tokens per parameter"),
                ("7.2B", "37.2B", "Right, 7.2B gets 5.1 tokens per parameter"),
                ("9.0B", 23e9, "Right, 9.0B gets 2.6 tokens per parameter"),
            ]
        ],
        common_mistakes=[
            (own(model, tokens), reply)
            for model, tokens, reply in [
                ("4.2B", 110e9, "That's too many tokens. At the slow end they'd need 51.6"),
                ("4.2B", 30e9, "You could train longer. At the slow end they'd need 14.1 days,"),
                ("24B", 11e9, "It's too large. 24B gets 0.47 tokens per parameter and"),
                ("310M", 580e9, "It's too small. 310M gets 1,900 tokens per parameter and"),
                ("600M", 350e9, "It's too small. 600M gets 590 tokens per parameter and"),
                ("14B", 19e9, "It's too large. 14B gets 1.4 tokens per parameter and"),
                ("14B", "21.3B", "That's too many tokens. At the slow end they'd need 30.5"),
                ("7.2B", "66.8B", "That's too many tokens. At the slow end they'd need 50.0"),
                ("43B", 1e9, "43B doesn't fit. It needs at least 86.4 GB per GPU, and"),
                ("8B", 1e9, "The shelf doesn't have 8B. The nearest shape is 7.2B."),
                ("Lama 8", 1e9, "model='Lama 8' is unknown"),
            ]
        ],
    ),
}
