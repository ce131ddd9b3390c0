"""Exercises of chapter 00, and the check of the learner's environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from termcolor import colored

from llmtrain_course.budget.formulas import parameters_for
from llmtrain_course.kit.exercise import (
    TENFOLD,
    Answer,
    Exercise,
    Grade,
    MultipleChoice,
    Numeric,
    Prediction,
    Question,
    read_written,
)
from llmtrain_helpers import units
from llmtrain_helpers.duration import training_seconds
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.published import architecture

PACKAGES = ["jupyterlab", "numpy", "pandas", "matplotlib", "ipywidgets", "termcolor"]


def check_environment() -> list[str]:
    """A line for each thing that the course needs: a sign, its name, and what to do.

    Prints no versions, so that it reads the same wherever the course runs.
    """
    return [
        _status_line(sys.version_info >= (3, 11), "Python 3.11 or newer", "install it"),
        *[
            _status_line(_is_installed(package), package, _install_hint(package))
            for package in PACKAGES
        ],
    ]


def _install_hint(package: str) -> str:
    if sys.platform == "emscripten":  # nobody can install it there
        return "the cells that need it won't run in this browser, but they run on your own machine"
    return f"pip install {package}"


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:  # in a browser, JupyterLab is the page itself
        return package == "jupyterlab" and sys.platform == "emscripten"


def _status_line(installed: bool, name: str, cure: str) -> str:
    if installed:
        return f"{colored('✓', 'green', force_color=True)} {name}"
    return f"{colored('✗', 'red', force_color=True)} {name} is missing: {cure}"


RATE = 109e12
"""FLOP/s that an A100 reaches in a usual run: 35% of its dense peak."""

RATE_H100 = 350e12
"""FLOP/s that an H100 reaches in a usual run."""

# --- start_here-a: a first run


def _days() -> float:
    """Days of 13 billion parameters on 1.4 trillion tokens, on 512 A100s."""
    return float(training_seconds(1.4e12, 13e9, 512, RATE, "none")) / units.DAY


# --- start_here-b, asked again: a count from a rate

_WORK_OF_AN_HOUR = Numeric(
    key=lambda: 32 * RATE_H100 * units.HOUR,
    unit=units.flops,
    asked="FLOP",
    hint=("Multiply the rate by the seconds, and you get a count.",),
    common_mistakes={
        **TENFOLD,
        "n * X": "That's one second of work, and an hour has 3,600 of them.",
        "n * X * 60": "That's one minute of work, and an hour has 60 of them.",
        "n * X * 24 * hour": "That's a whole day of work.",
        "X * hour": "You've counted one GPU, but there are 32.",
        "64 * X * hour": "You've counted 64 GPUs, but now there are 32.",
    },
    values={"n": 32, "X": RATE_H100, "hour": units.HOUR},
)

# --- start_here-d: the largest model that gets enough tokens

SIZES = [3 * 10**9, 8 * 10**9, 14 * 10**9, 32 * 10**9, 70 * 10**9]
ENOUGH = 20
"""The sizes to choose from, and the tokens wanted for a parameter."""


def tokens_for_each_parameter(size: float) -> float:
    """Tokens per parameter that 64 H100s manage at 350 TFLOP/s in 14 days."""
    seconds_per_token = training_seconds(1, size, 64, RATE_H100, "none")
    return float(14 * units.DAY / seconds_per_token / size)


@dataclass(frozen=True)
class Size(Exercise):
    """A choice among sizes: the largest that gets enough tokens is right."""

    sizes: Sequence[int]
    followups: Sequence[Question] = ()

    @property
    def options(self) -> list[str]:
        """The sizes as people write them."""
        return [units.short(size) for size in self.sizes]

    def key(self) -> int:
        """The largest size that gets its tokens."""
        return max(size for size in self.sizes if tokens_for_each_parameter(size) >= ENOUGH)

    def grade(self, answer: Answer) -> Grade:
        """Grade a size by its tokens per parameter, and by whether a larger one is enough."""
        size = read_written(answer, "parameters").number
        if size not in self.sizes:
            raise ValueError(f"Choose one of the sizes: {', '.join(self.options)}")
        tokens = units.digits(tokens_for_each_parameter(size), 2)
        summary = f"{units.short(size)} gets {tokens} tokens per parameter"
        if size > self.key():
            return (
                False,
                f"{summary}, which is too few. Doubling the parameters means 4× fewer tokens per "
                f"parameter.",
            )
        if size < self.key():
            return (
                False,
                f"{summary}. That's enough, but a larger size in the list also gets enough.",
            )
        return True, f"Right: {summary}, and no larger size in the list gets enough."


_WORK = 32 * RATE_H100 * 14 * units.DAY
"""FLOP that half of the GPUs of start_here-d do in their days."""

_LARGEST = Numeric(
    key=lambda: float(parameters_for(_WORK, ENOUGH)),
    unit=lambda number: f"{units.count(number)} parameters",
    asked="parameters",
    hint=(
        "How much work can you do in these days, and how much does a model with P parameters need?",
        "With twenty tokens per parameter, the work grows with the square of the size.",
    ),
    common_mistakes={
        "key / 1e9": 'That\'s too low by a factor of a billion. Give the number itself, or "3.2B".',
        "sqrt(C / 6)": "Those would get one token per parameter, but they need 20.",
        "sqrt(C / each)": "You've forgotten that a token costs 6 operations per parameter.",
        "sqrt(C / (8 * each))": "You've counted 8 per parameter and token, but nothing is "
        "recomputed here.",
        "sqrt(2 * C / (6 * each))": "You've used all 64 GPUs, but now there are 32.",
        "sqrt(C / 32 / (6 * each))": "You've used one GPU, but there are 32.",
        "sqrt(C / 14 / (6 * each))": "You've used one day, but there are 14.",
        "sqrt(C / 86400 / (6 * each))": "Did you convert days to seconds? A day has 86,400.",
        "each * key": "Those are the tokens, 20 per parameter.",
    },
    values={"C": _WORK, "each": ENOUGH},
)

EXERCISES: dict[str, Exercise] = {
    "start_here-a": Numeric(
        key=_days,
        asked="days",
        unit=lambda days: f"{units.digits(days)} days",
        hint=(
            "Did you use the rate of all the GPUs together, and did you convert seconds to days?",
            "The operations are 6 × parameters × tokens, and the rate is GPUs × the rate of each.",
        ),
        common_mistakes={
            **TENFOLD,
            "6 * T * P / (n * X)": "Those are seconds. Divide by 86,400 to get days.",
            "6 * T * P / (n * X) / 3600": "Those are hours. Divide by 24 to get days.",
            "6 * T * P / X / day": "That's how long one GPU would take, but 512 of "
            "them share the work.",
            "8 * T * P / (n * X) / day": "You've counted 8 per parameter and token, but "
            "nothing is recomputed here, so it's 6.",
            "2 * T * P / (n * X) / day": "You've only counted the forward pass. Backward costs "
            "another 4.",
            "3 * T * P / (n * X) / day": "That's 2× too low, because a multiply-add is 2 "
            "operations.",
        },
        values={"T": 1.4e12, "P": 13e9, "n": 512, "X": RATE, "day": units.DAY},
    ),
    "start_here-b": MultipleChoice(
        key=lambda: "B",
        options={
            "A": "No. The GPUs deliver a rate, a number of operations per second, and 64 times "
            f"350 TFLOP/s is {units.flops_per_second(64 * RATE_H100)}.",
            "B": f"Right: a day's work is a number of operations, so it's a count, "
            f"{units.flops(64 * RATE_H100 * units.DAY)}.",
            "C": f"No. The cost of one token is a number of operations, so its unit is FLOP. At "
            f"6 per parameter, an 8B model needs {units.flops(6 * 8e9)}.",
            "D": "No. If you divide a rate by a count per token, you get tokens per second: "
            f"{units.count(64 * RATE_H100 / (6 * 8e9))} in this case.",
        },
        followups=[
            Question("how much do 32 of these GPUs do in an hour, in FLOP?", _WORK_OF_AN_HOUR)
        ],
    ),
    "start_here-d": Size(
        SIZES,
        followups=[
            Question(
                f"you have 32 of these GPUs, the same days, and no list. How many parameters "
                f"does a model need so that each one gets exactly {ENOUGH} tokens?",
                _LARGEST,
            )
        ],
    ),
}


# --- predictions


def _years() -> float:
    """Years of Llama 3.1 8B, all its 15 trillion tokens, on eight A100."""
    parameters = count_parameters(architecture("Llama-3.1-8B")).total
    return float(training_seconds(15e12, parameters, 8, RATE, "none")) / units.YEAR


def _why_so_long() -> str:
    months = _years() * units.YEAR / (30 * units.DAY)
    return (
        "The picture of eight GPUs shows how many tokens they manage in a month. "
        f"Llama trained on about {units.digits(months, 2)}× as many."
    )


PREDICTIONS: dict[str, Prediction] = {
    "start_here-guess": Prediction(
        truth=_years,
        unit=lambda years: f"{units.digits(years, 2)} years",
        why=_why_so_long(),
        asked="years",
    )
}
