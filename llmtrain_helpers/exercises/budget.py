"""Exercises of chapter 10: a size for a budget, for use, repeated text, your run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.budget import most_tokens, shelf, usual_batch
from llmtrain_helpers.checks import choice, count, one, quantity
from llmtrain_helpers.evidence.published import accelerator
from llmtrain_helpers.exercises.common import (
    UNANSWERED,
    Exercise,
    Numeric,
    Prediction,
    Word,
    read_as,
)
from llmtrain_helpers.laws import (
    compute_optimal,
    effective_tokens,
    loss,
    over_training,
    times_the_least,
)
from llmtrain_helpers.plan.search import best_split

# --- 10-a: a size for money, by a rule

WORK = 60_000 / 3 * 3600 * 0.4 * 989.5e12
"""FLOP that 60,000 dollars pay for: hours of H100 at 3 dollars and 40 % of the peak."""

EACH = 40
"""Tokens for each parameter."""


def _size() -> float:
    return math.sqrt(WORK / (6 * EACH))


# --- 10-b: a size for a model that will be used

USED, BUDGET = 2e12, 1e22
"""Tokens that it will read and write in its life; FLOP of the best training."""

SHARES = {"quarter": 0.25, "half": 0.5, "best": 1, "twice": 2}


def life_of(name: str) -> tuple[float, float]:
    """FLOP to train a model of this share of the best size, and to use it."""
    share = SHARES[name]
    best = float(compute_optimal(BUDGET).parameters)
    return BUDGET * float(over_training(share)), 2 * share * best * USED


def _cheapest() -> str:
    return min(SHARES, key=lambda name: sum(life_of(name)))


_BELIEFS = {
    "quarter": "It is the cheapest to use, but its training costs more than it saves.",
    "half": "A quarter more to train, and half as much each time it answers.",
    "best": "It is the cheapest to train, and training is not what costs most here.",
    "twice": "Dearer to train and twice as dear to use, for the same loss.",
}


@cache
def _verdicts() -> dict[str, str]:
    told = {}
    for name, belief in _BELIEFS.items():
        trained, used = life_of(name)
        says = "right" if name == _cheapest() else "no"
        told[name] = (
            f"{says}: {units.flops(trained)} to train and {units.flops(used)} to use, "
            f"{units.flops(trained + used)} in all. {belief}"
        )
    return told


# --- 10-c: text that is seen twenty times


def _worth() -> float:
    return float(effective_tokens(30e9, 20))


def _from_repeats(repeats: float) -> float:
    return float(effective_tokens(30e9, 1 + repeats))


# --- 10-d: the learner's own run

_OWN = ("model", "gpus", "chip", "days", "tokens")

SMALLEST, LARGEST = 0.25, 3
"""Shares of the best size. Below the one the price soars: the same loss takes eight
times the work at 0.22, and cannot be had at all below 0.146, the picture's *never*."""

NEAR = 0.01
"""Nats above the least loss that are near it, whatever the size: the green strip."""

USED_AT_LEAST, ROUNDED = 0.7, 1.005
"""Shares of the days: the least to be used; the most, as tokens are told in three
digits."""


class OwnRun(Exercise):
    """A model off the shelf for GPUs and days: it fits, ends in time, wastes little."""

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """The first thing that is wrong, or what the run is worth."""
        if not isinstance(answer, Mapping) or set(answer) != set(_OWN):
            return False, f"give a dictionary with {', '.join(_OWN)}."
        if answer["model"] is None or answer["tokens"] is None:
            return None, UNANSWERED
        return _judged(answer)


def _judged(answer: Mapping[str, Any]) -> tuple[bool, str]:
    shapes = shelf()
    name = choice("model", answer["model"], shapes)
    n = int(one("gpus", read_as("gpus", answer["gpus"]), count))
    days = float(one("days", read_as("days", answer["days"]), quantity))
    T = float(one("tokens", read_as("tokens", answer["tokens"]), quantity))
    model = shapes[name]
    plan = best_split(model, accelerator(answer["chip"]), n, usual_batch(model, n))
    if not plan.fits:
        held = units.gigabytes(plan.memory.total)
        room = units.gigabytes(plan.room + plan.memory.total - plan.reserve)
        told = f"at best {held} on each GPU, of {room} that the reserve leaves"
        return False, f"{name} does not fit: {told}."
    taken = days * T / float(most_tokens(plan, days).least)
    told = f"at the slow end they take {units.digits(taken)} of your {days:g} days."
    if taken > ROUNDED * days:
        return False, f"too many tokens: {told}"
    if taken < USED_AT_LEAST * days:
        return False, f"you leave time: even {told}"
    return _of_size(name, float(plan.parameters.active), T)


def _of_size(name: str, N: float, T: float) -> tuple[bool, str]:
    """Whether another size would have made much more of the same work."""
    best = compute_optimal(6 * N * T)
    share, each = N / float(best.parameters), units.digits(T / N, 2)
    at, least = float(loss(N, T)), float(loss(best.parameters, best.tokens))
    told = f"{name} gets {each} tokens a parameter and ends at {at:.2f}"
    size = f"{units.digits(float(best.parameters) / 1e9, 2)}B"
    if share < SMALLEST or (share > LARGEST and at - least > NEAR):
        off = "large" if share > 1 else "small"
        more = f"{at - least:.3f} above what this work could reach"
        limit = f"{_limit(share)} the best size for it, {size}"
        return False, f"too {off}: {told}, {more}; {limit}."
    use = "near it"
    if not 0.8 <= share <= 1.6:
        use = f"{'cheaper' if share < 1 else 'dearer'} to use than that"
    told += f", {at - least:.3f} above the law's best for this work, {size}"
    work = float(times_the_least(N, T))
    paid = f", and {units.digits(work, 2)} times the least work for its loss"
    return True, f"right: {told}; {use}{paid if work > 1.05 else ''}."


def _limit(share: float) -> str:
    return "more than three times" if share > 1 else "less than a quarter of"


EXERCISES: dict[str, Exercise] = {
    "10-a": Numeric(
        key=_size,
        unit=lambda number: f"{units.count(number)} parameters",
        hint=(
            "first GPU-hours, then the work, then how it is divided.",
            "C is GPU-hours times 3600 times 40 % of the peak; and C = 6ND.",
            "with D = 40N it is C = 240N², so N = √(C/240).",
        ),
        slips={
            40: "these are the tokens: the parameters are a fortieth.",
            2**0.5: "this has 20 tokens for each parameter: here it is 40.",
            0.5**0.5: "this has 80 tokens for each parameter: here it is 40.",
            6**0.5: "this has C = 40N²: a token costs 6 FLOPs a parameter.",
            40**0.5: "this has C = 6N²: each parameter is to get 40 tokens.",
            0.4**-0.5: "this has the whole peak: the GPUs reach 40 % of it.",
            3**0.5: "this takes dollars for hours: an hour costs 3.",
            3.0: "this multiplies by the price: dollars over price are hours.",
            0.75**0.5: "this has C = 8ND: nothing is recomputed here.",
            1e-9: "too little by a billion: give parameters.",
            3600**-0.5: "this takes the hours for seconds: an hour has 3600.",
        },
    ),
    "10-b": Word(key=_cheapest, options=_verdicts()),
    "10-c": Numeric(
        key=_worth,
        unit=lambda number: f"{units.count(number)} tokens' worth",
        hint=(
            "the first epoch is worth all of it, each later one less.",
            "in twenty epochs there are 19 repeats.",
            "U·(1 + R*(1 - exp(-R/R*))) with R* = 15.4.",
        ),
        slips={
            30e9 * 20 / _worth(): "this takes every epoch for fresh text.",
            _from_repeats(20) / _worth(): "twenty epochs are 19 repeats: R = 19.",
            (_worth() - 30e9) / _worth(): "the first epoch is missing: 1 + R*(…).",
            1e-9: "too little by a billion: give tokens, not billions of them.",
            1 / 30e9: "this is for each different token: there are 30 billion.",
        },
    ),
    "10-d": OwnRun(),
}

PREDICTIONS = {
    "10-guess": Prediction(
        truth=lambda: float(over_training(0.5)),
        unit=lambda times: f"{times:.2f} times the work",
        why="Near the bottom of the curve the loss hardly changes, so half the size is "
        "bought back with two and a half times the tokens, which costs a quarter more.",
    )
}
