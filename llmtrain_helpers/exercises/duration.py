"""Exercises of chapter 03: days, GPU-hours, cost."""

from __future__ import annotations

from llmtrain_helpers import units
from llmtrain_helpers.checks import Result
from llmtrain_helpers.duration import cost, seconds_from_iterations, training_seconds
from llmtrain_helpers.exercises.common import TENFOLD, Exercise, Function, Numeric, Word
from llmtrain_helpers.flops import achieved_flops_per_gpu, gpt_flops
from llmtrain_helpers.parameters import gpt_parameters


def _days(number: float) -> str:
    return f"{units.digits(number)} days"


def _one_trillion() -> Result:
    P = gpt_parameters(128, 25600, 51200, 2048)
    return training_seconds(450e9, P, 3072, 163e12, "full") / units.DAY


def _mended(sequence_length: int = 1024) -> Result:
    """The 18.4B case by 8TP/(nX), in days."""
    shape = (40, 6144, 50257, sequence_length)
    X = achieved_flops_per_gpu(gpt_flops(*shape, 512, "full"), 32.09, 16)
    return training_seconds(300e9, gpt_parameters(*shape), 16, X, "full") / units.DAY


def _exactly() -> Result:
    return seconds_from_iterations(300e9, 512, 1024, 32.09) / units.DAY


def _price(num_gpus: int, days: int, price: float) -> Result:
    return cost(days * units.DAY, num_gpus, price)


EXERCISES: dict[str, Exercise] = {
    "03-a": Numeric(
        key=_one_trillion,
        unit=_days,
        hint="8TP/(nX), in seconds; a day has 86,400 of them.",
        slips=TENFOLD
        | {
            0.75: "this has 6TP: the rate counts recomputation, so it is 8TP.",
            units.DAY: "these are seconds: divide by 86,400.",
        },
    ),
    "03-b": Numeric(
        key=_mended,
        unit=_days,
        tolerance=0.002,
        hint="Three things are wrong: the sequence length, 10e09 and 10e12.",
        slips={
            _mended(1048) / _mended(): "the sequence length is still 1048.",
            0.1: "only one of the two tenfold slips is mended: this is a tenth.",
            10: "only one of the two tenfold slips is mended: this is ten times.",
            _exactly() / _mended(): "this is the exact way, by iterations: here "
            "8TP/(nX) is asked for.",
        },
    ),
    "03-c": Function(
        key=_price,
        cases=[
            {"num_gpus": 1024, "days": 34, "price": 2.0},
            {"num_gpus": 16, "days": 200, "price": 1.5},
        ],
        hint="GPUs, times days, times 24 hours, times the price of a GPU-hour.",
    ),
    "03-d": Word(
        key=lambda: "6",
        options={
            "6": "right: MFU leaves recomputation out, so the work must as well.",
            "8": "no: 8TP goes with a rate that counts recomputation (HFU). With "
            "an MFU it comes out a third too long.",
        },
    ),
}
