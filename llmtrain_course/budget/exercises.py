"""Exercises of chapter 11: a size for a budget, for use, repeated text, your run."""

from __future__ import annotations

from collections.abc import Mapping
from math import log

from llmtrain_course.budget.formulas import parameters_for, tokens_for_size
from llmtrain_course.kit.exercise import (
    NOT_YET,
    Answer,
    Exercise,
    Grade,
    MultipleChoice,
    Numeric,
    Prediction,
    entry,
)
from llmtrain_course.kit.formulas import nearest_shape
from llmtrain_course.kit.kinds import FillIn
from llmtrain_course.kit.own_run import own_run
from llmtrain_helpers import units
from llmtrain_helpers.budget import shelf, usual_batch
from llmtrain_helpers.checks import count
from llmtrain_helpers.laws import (
    REPEATS,
    compute_optimal,
    effective_tokens,
    loss,
    over_training,
    times_the_least,
)
from llmtrain_helpers.model import Transformer
from llmtrain_helpers.model.names import longest_shape
from llmtrain_helpers.model.transformer import of_length
from llmtrain_helpers.plan.search import best_split
from llmtrain_helpers.published import accelerator

# --- budget-a: a size for money, by a rule

WORK = 60_000 / 3 * 3600 * 0.4 * 989.5e12
"""FLOP that 60,000 dollars pay for: hours of H100 at 3 dollars and 40% of the peak."""

EACH = 40
"""Tokens for each parameter."""


def _size() -> float:
    return float(parameters_for(WORK, EACH))


# --- budget-b: a size for a model that will be used

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
    "quarter": "It's the cheapest to use, but its training costs more than that saves.",
    "half": "It costs 25% more to train, but only half per answer.",
    "best": "It's the cheapest to train, but training isn't what costs most here.",
    "twice": "It costs more to train and 2× as much to use, for the same loss.",
}


def _sentence_on_size(name: str) -> str:
    """What a size takes to train and to use, and the belief behind it."""
    training, use = life_of(name)
    return (
        f"{'Right' if name == _cheapest() else 'No'}, {units.flops(training)} to train and "
        f"{units.flops(use)} to use, {units.flops(training + use)} in all. {_BELIEFS[name]}"
    )


# --- budget-c: a plan that counts every reading in full

TIMES = 10
"""How many fresh texts the plan needs, and how many readings it has for them."""


def _readings() -> float:
    """The epochs that are worth so many: R = -R*·ln(1 - (TIMES - 1)/R*), and the first."""
    return 1 - REPEATS * log(1 - (TIMES - 1) / REPEATS)


# --- budget-d: the learner's own run

_ENTRIES = ("model", "gpus", "chip", "days", "tokens")

SMALLEST, LARGEST = 0.25, 3
"""Shares of the best size. Below the one the price soars: the same loss takes eight
times the work at 0.22, and cannot be had at all below 0.146, the picture's *never*."""

NEAR = 0.01
"""Nats above the least loss that are near it, whatever the size: the green strip."""

USED_AT_LEAST, ROUNDED = 0.7, 1.015
"""Shares of the days: the least to be used; the most, as the course promises tokens in
two digits, some of them rounded up."""


class OwnRun(Exercise):
    """A model off the shelf for GPUs and days: it fits, ends in time, wastes little."""

    def grade(self, answer: Answer) -> Grade:
        """The answer judged: the first thing that is wrong, or what the run is worth."""
        if not isinstance(answer, Mapping) or set(answer) != set(_ENTRIES):
            return False, f"Give a dictionary with {', '.join(_ENTRIES)}."
        if answer["model"] is None or answer["tokens"] is None:
            return NOT_YET
        name = str(answer["model"])
        try:
            model = _shape(name)
        except ValueError as unknown:
            return False, _neighbour(name) or f"{unknown}"
        n = int(entry(answer, "gpus", count))
        days, T = float(entry(answer, "days")), float(entry(answer, "tokens"))
        plan = best_split(model, accelerator(answer["chip"]), n, usual_batch(model, n))
        if not plan.fits:
            holds = units.gigabytes(plan.memory.total)
            room = units.gigabytes(plan.free_memory + plan.memory.total - plan.reserve)
            return False, (
                f"{name} doesn't fit. It needs at least {holds} per GPU, and the reserve "
                f"leaves {room}."
            )
        taken = days * T / float(plan.first_run_tokens(days))
        summary = (
            f"At the slow end they'd need {units.digits(taken)} days, and your limit is {days:g}."
        )
        if taken > ROUNDED * days:
            return False, f"That's too many tokens. {summary}"
        if taken < USED_AT_LEAST * days:
            return False, f"You could train longer. {summary}"
        return _compare_with_best(name, float(plan.parameters.active), T)


def _shape(name: str) -> Transformer:
    """A shape off the shelf, or a published model, with sequences of the own run's length."""
    sequence = own_run().sequence
    shapes = shelf(sequence)
    if name in shapes:
        return shapes[name]
    model = longest_shape(name)
    return of_length(model, min(sequence, int(model.sequence_length)))


def _neighbour(name: str) -> str:
    """Which shape of the shelf is nearest to a size that none has; empty for no size."""
    try:
        near = nearest_shape(units.read(name), shelf())
    except ValueError:
        return ""
    return f"The shelf doesn't have {name}. The nearest shape is {near}."


def _compare_with_best(name: str, N: float, T: float) -> tuple[bool, str]:
    """Whether another size would have made much more of the same work."""
    best = compute_optimal(6 * N * T)
    share = N / float(best.parameters)
    reached, least = float(loss(N, T)), float(loss(best.parameters, best.tokens))
    size = f"{units.digits(float(best.parameters) / 1e9, 2)}B"
    summary = f"{name} gets {units.digits(T / N, 2)} tokens per parameter and ends at {reached:.2f}"
    if share < SMALLEST or (share > LARGEST and reached - least > NEAR):
        limit = "more than 3×" if share > 1 else "less than 25% of"
        return False, (
            f"It's too {'large' if share > 1 else 'small'}. {summary}, {reached - least:.3f} "
            f"above what this work could reach. The model is {limit} the best size, {size}."
        )
    use = "near the best size (half of it would be cheaper to use, for 25% more work)"
    if not 0.8 <= share <= 1.6:
        use = f"{'cheaper' if share < 1 else 'more expensive'} to use than that"
    work = float(times_the_least(N, T))
    price = f", and {units.digits(work, 2)}× the minimum work for its loss" if work > 1.05 else ""
    return True, (
        f"Right, {summary}, {reached - least:.3f} above the law's best for this work, {size}. It's "
        f"{use}{price}."
    )


EXERCISES: dict[str, Exercise] = {
    "budget-tokens": FillIn(
        key=lambda: tokens_for_size(3e9, BUDGET),
        unit=lambda number: f"{units.count(number)} tokens",
        hint="What does one token cost, with N parameters?",
        common_mistakes={
            "You've used one FLOP per parameter and token, but there are 6.": lambda: BUDGET / 3e9,
            "You've multiplied by 6. Divide the work by what a token costs.": lambda: (
                6 * BUDGET / 3e9
            ),
            "You've only counted the forward pass. Backward is 4 of the 6 FLOPs.": lambda: (
                BUDGET / 6e9
            ),
        },
    ),
    "budget-a": Numeric(
        key=_size,
        asked="parameters",
        unit=lambda number: f"{units.count(number)} parameters",
        hint=(
            "Compute the GPU-hours first, then the work, then how it's divided.",
            "C is GPU-hours times 3600 times 40% of the peak, and C = 6ND.",
        ),
        common_mistakes={
            "each * key": "Those are the tokens. Divide by 40 to get the parameters.",
            "sqrt(C / (6 * 20))": "You've used 20 tokens per parameter, but here it's 40.",
            "sqrt(C / (6 * 80))": "You've used 80 tokens per parameter, but here it's 40.",
            "sqrt(C / each)": "You've used C = 40N², but a token costs 6 FLOPs per parameter.",
            "sqrt(C / 6)": "You've used C = 6N², but each parameter should get 40 tokens.",
            "sqrt(C / 0.4 / (6 * each))": "You've used the whole peak, but the GPUs reach 40% "
            "of it.",
            "sqrt(C * 3 / (6 * each))": "You've used dollars as hours, but an hour costs 3.",
            "sqrt(C * 3 * 3 / (6 * each))": "You've multiplied by the price. Dollars divided by "
            "the "
            "price are hours.",
            "sqrt(C / (8 * each))": "You've used C = 8ND, but nothing is recomputed here.",
            "key / 1e9": 'Too low by a factor of a billion. Give the number itself, or "3.2B".',
            "sqrt(C / 3600 / (6 * each))": "You've used hours as seconds, but an hour has 3600.",
        },
        values={"C": WORK, "each": EACH},
    ),
    "budget-b": MultipleChoice(
        key=_cheapest, options={name: _sentence_on_size(name) for name in SHARES}
    ),
    "budget-c": Numeric(
        key=_readings,
        unit=lambda number: f"{units.digits(number, 3)} readings",
        hint=(
            "The first reading counts in full, and each later one counts less.",
            "Set U times the bracket equal to 250 billion, and solve for R.",
        ),
        common_mistakes={
            TIMES: "You've counted every reading as fresh text, as your colleague does.",
            _readings() - 1: "Those are only the repeats. Add the first reading.",
            float(effective_tokens(1, TIMES)): "That's what ten readings are worth.",
            -REPEATS * log(1 - TIMES / REPEATS): "The first reading counts as 1, so "
            "only nine are left for the repeats.",
        },
    ),
    "budget-d": OwnRun(),
}

PREDICTIONS: dict[str, Prediction] = {
    "budget-guess": Prediction(
        truth=lambda: float(over_training(0.5)),
        unit=lambda times: f"{times:.2f}× the work",
        asked="times",
        why="Near the bottom of the curve the loss barely changes, so 2.5× the tokens compensate "
        "for half the size, and that costs 25% more.",
    )
}
