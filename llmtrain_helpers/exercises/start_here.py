"""Exercises of chapter 00, and the check of the learner's environment."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

from termcolor import colored

from llmtrain_helpers import units
from llmtrain_helpers.duration import training_seconds
from llmtrain_helpers.exercises.common import (
    GIBI,
    PREFIXES,
    TENFOLD,
    Exercise,
    Numeric,
    Prediction,
    Word,
)

PACKAGES = ["jupyterlab", "numpy", "pandas", "matplotlib", "ipywidgets", "termcolor"]


def check_environment() -> list[str]:
    """One line a thing that the course needs: a sign, its name, and what to do.

    Prints no versions, so that it reads the same wherever the course runs.
    """
    lines = [_line(sys.version_info >= (3, 11), "Python 3.11 or newer", "install it")]
    for package in PACKAGES:
        lines.append(_line(_installed(package), package, f"pip install {package}"))
    return lines


def _installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _line(fine: bool, what: str, cure: str) -> str:
    if fine:
        return f"{colored('✓', 'green', force_color=True)} {what}"
    return f"{colored('✗', 'red', force_color=True)} {what} is missing: {cure}"


def _days_on_512() -> float:
    return float(training_seconds(300e9, 175e9, 512, 140e12, "full")) / units.DAY


EXERCISES: dict[str, Exercise] = {
    "00-a": Numeric(
        key=_days_on_512,
        unit=lambda days: f"{units.digits(days)} days",
        hint="Only the number of GPUs changes: 512 instead of 1024.",
        slips=TENFOLD
        | {
            0.5: "this is the time on 1024 GPUs: half as many take twice as long.",
            units.DAY: "these are seconds: divide by 86,400 for days.",
            0.75: "this counts 6 FLOPs for each parameter and token; this example "
            "recomputes, which makes it 8.",
        },
    ),
    "00-b": Word(
        key=lambda: "rate",
        options={
            "rate": "right: FLOP/s is what a GPU does each second. What a run needs in "
            "all is a count, in FLOP.",
            "count": "no: a count has no “per second”. 140 TFLOP/s is 140 × 10¹² "
            "operations each second.",
        },
    ),
    "00-c": Numeric(
        key=lambda: 80 * units.GiB,
        unit=lambda number: f"{units.exact(number)} bytes",
        tolerance=0,
        hint="A GiB is 2³⁰ bytes.",
        slips=PREFIXES | GIBI,
    ),
}


PREDICTIONS = {
    "00-guess": Prediction(
        truth=lambda: training_seconds(300e9, 175e9, 2048, 140e12, "full") / units.DAY,
        unit=lambda days: f"{units.digits(days)} days",
        why="Twice the GPUs do the same work in half the time, as long as each of them "
        "keeps its rate. In practice the rate sinks as GPUs are added.",
    ),
}
