"""Exercises of chapter 02: counting FLOPs, and the share of the peak."""

from __future__ import annotations

from llmtrain_helpers import units
from llmtrain_helpers.checks import Result
from llmtrain_helpers.exercises.common import (
    PERCENT,
    PREFIXES,
    TWICE,
    Exercise,
    Function,
    Numeric,
    Word,
)
from llmtrain_helpers.flops import achieved_flops_per_gpu, gpt_flops, utilization


def _flop(number: float) -> str:
    return f"{units.exact(number)} FLOP"


def _rate(sequence_length: int = 1024, recompute: str = "full") -> Result:
    """The achieved rate of the 18.4B case."""
    F = gpt_flops(40, 6144, 50257, sequence_length, 512, recompute)
    return achieved_flops_per_gpu(F, seconds=32.09, num_gpus=16)


def _one_layer(hidden_size: int, sequence_length: int) -> Result:
    """Forward FLOPs of one GPT layer for one sequence."""
    h, s = hidden_size, sequence_length
    return gpt_flops(1, h, 1, s, 1, "full") - gpt_flops(1, h, 1, s, 1, "none")


def _mfu_of_530b() -> Result:
    F = gpt_flops(105, 20480, 51200, 2048, 280, "none")
    X = achieved_flops_per_gpu(F, seconds=37.83, num_gpus=280)
    return utilization(X, peak_flops=312e12)


EXERCISES: dict[str, Exercise] = {
    "02-a": Numeric(
        key=lambda: 2 * 2048 * 12288 * 49152,
        unit=_flop,
        tolerance=0,
        hint="2 FLOPs for each row, each column and each number in between.",
        slips=PREFIXES | TWICE,
    ),
    "02-b": Function(
        key=_one_layer,
        cases=[
            {"hidden_size": 768, "sequence_length": 1024},
            {"hidden_size": 12288, "sequence_length": 2048},
            {"hidden_size": 4096, "sequence_length": 32768},
        ],
        hint="12h² weights, 2 FLOPs each for every token, and 4s²h for the scores.",
    ),
    "02-c": Numeric(
        key=_rate,
        unit=units.flops_per_second,
        tolerance=0.001,
        hint="F by the formula for full recomputation, divided by 32.09 s and 16 GPUs.",
        slips=PREFIXES
        | TWICE
        | {
            _rate(1048) / _rate(): "this has s = 1048, a misprint: it is 1024.",
            _rate(2048) / _rate(): "this has s = 2048: the run used 1024.",
            _rate(recompute="none") / _rate(): "this leaves the recomputed forward "
            "pass out: right for MFU, but the GPUs did that work too.",
            16: "this is all 16 GPUs together: divide by their number.",
        },
    ),
    "02-d": Numeric(
        key=_mfu_of_530b,
        unit=units.percent,
        hint="MFU: the FLOPs without recomputation, over the time that was measured.",
        slips=PERCENT
        | {
            0.5: "this divides by the sparse peak: the dense one is 312e12.",
        },
    ),
    "02-e": Word(
        key=lambda: "MFU",
        options={
            "MFU": "right: MFU counts only what the model needs, so work done twice "
            "cannot raise it.",
            "HFU": "no: HFU counts the repeated work as well, so recomputing more can "
            "raise it while the run gets no faster.",
        },
    ),
}
