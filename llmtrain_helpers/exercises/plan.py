"""Exercises of chapter 08: a measured step, a busy pipeline, a way to fit, a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.batch import data_parallel_size, global_batch_size
from llmtrain_helpers.checks import Result, choice, count, one, quantity, refuse
from llmtrain_helpers.drawings.plan import at_first, span_in_words
from llmtrain_helpers.duration import seconds_from_iterations
from llmtrain_helpers.evidence.published import accelerator, architecture
from llmtrain_helpers.exercises.common import (
    HINT,
    TENFOLD,
    UNANSWERED,
    Exercise,
    Numeric,
    Prediction,
    Word,
    read_as,
)
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.plan.pace import STOPS
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.plan.schedule import pipeline_schedule
from llmtrain_helpers.units import about


def _days(number: float) -> str:
    return f"{units.digits(number)} days"


# --- 08-guess: the 70B in the plan of the 8B


def _page(model: str = "Llama-3.1-8B", **changes: Any) -> Plan:
    """The plan that the page begins with."""
    shape, chip = architecture(model, 8192), accelerator("H100")
    options: dict[str, Any] = {"recompute": "none", "zero_stage": 3}
    return plan_run(shape, chip, 64, 10**12, 512, **options).but(**changes)


@cache
def _large() -> Plan:
    return _page("Llama-3.1-70B")


def _why() -> str:
    parts, small = _large().memory, _page().memory
    states = parts.total - parts.activations - parts.transient
    share = units.digits(parts.activations / small.activations, 2)
    return (
        f"ZeRO 3 leaves {units.gigabytes(states)} of the model's states on each GPU. "
        f"But one sequence keeps {units.gigabytes(parts.activations)} of activations, "
        f"{share} times those of the 8B, and these are not shared out: the layers are "
        "2.5 times as many and twice as wide (keys, values and head grow less). It "
        "does not fit."
    )


# --- 08-a: a measured step


def _measured() -> Result:
    """Computing days of 4 trillion tokens at 3.4 s a step."""
    return seconds_from_iterations(4e12, 1024, 4096, 3.4) / units.DAY


def _set_aside() -> float:
    return float(_measured() * STOPS[2])


# --- 08-b: a batch that keeps a pipeline busy

_STAGES, _GPUS, _MOST = 8, 96, 0.1


def _fewest_micro_batches(most: float = _MOST) -> int:
    """By the schedule itself: the first number of micro-batches that is enough."""
    numbers = range(1, 1000)
    return next(m for m in numbers if pipeline_schedule(_STAGES, m).idle <= most + 1e-9)


def _batch() -> Result:
    d = data_parallel_size(_GPUS, pipeline_parallel=_STAGES)
    return global_batch_size(1, _fewest_micro_batches(), d)


# --- 08-c: which proposal

PROPOSALS: dict[str, dict[str, Any]] = {
    "recompute": {"recompute": "full"},
    "CP 4": {"context_parallel": 4},
    "128 GPUs": {"num_gpus": 128},
    "4 stages": {"pipeline_parallel": 4, "zero_stage": 1},
}
"""What exercise 08-c offers, as changes of the plan."""

_BELIEFS = {
    "recompute": "The activations go, and a third more work comes; there is a way "
    "that costs no work.",
    "CP 4": "Four GPUs share each sequence, and its activations with it. They send "
    "keys and values to each other, which hides beside the computing.",
    "128 GPUs": "ZeRO shares the states over more GPUs, but these were small; a GPU's "
    "activations stay.",
    "4 stages": "The first stage has a quarter of the layers and keeps up to four "
    "micro-batches; and it waits.",
}


def long_sequences() -> Plan:
    """The plan of 08-c: the page's 8B with sequences of 32,768 tokens."""
    shape, chip = architecture("Llama-3.1-8B", 32768), accelerator("H100")
    options: dict[str, Any] = {"recompute": "none", "zero_stage": 3}
    return plan_run(shape, chip, 64, 5 * 10**11, 128, **options)


def _proposed(name: str) -> Plan:
    return long_sequences().but(**PROPOSALS[name])


@cache
def _cheapest() -> str:
    fitting = [name for name in PROPOSALS if _proposed(name).fits]
    return min(fitting, key=lambda name: float(_proposed(name).gpu_hours.likely))


def _verdict(name: str) -> str:
    plan, before = _proposed(name), long_sequences()
    more = float(plan.gpu_hours.likely / before.gpu_hours.likely - 1)
    told = f"{units.gigabytes(plan.memory.total)} on each GPU, "
    told += "which fits" if plan.fits else "which does not fit"
    told += f", at {100 * more:+.0f} % GPU-hours"
    return f"{'right' if name == _cheapest() else 'no'}: {told}. {_BELIEFS[name]}"


# --- 08-d: a plan of the learner's own

_OWN = ["model", "chip", "gpus", "days", "tokens", "sequence", "batch", "micro"]
_OWN += ["tensor", "pipeline", "zero", "recompute"]


class OwnPlan(Exercise):
    """A plan that fits with its reserve, and ends in time at the slow end."""

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """What the plan takes, or the first thing that does not hold."""
        if not isinstance(answer, Mapping):
            refuse("answer", answer, "is no dict(model=…, gpus=…, …)")
        missing = [name for name in _OWN if name not in answer]
        if missing:
            refuse("answer", answer, f"leaves out {', '.join(missing)}")
        if any(answer[name] is None for name in _OWN):
            return None, UNANSWERED
        plan = _own(answer)
        limit = one("days", read_as("days", answer["days"]), quantity)
        held, days = units.gigabytes(plan.memory.total), span_in_words(plan.days)
        if not plan.fits:
            return False, f"{_misfit(plan, held)} {_of_memory(plan)}"
        if plan.days.greatest > limit:
            late = f"it fits, with {held} on each GPU, but it takes {days} (at the "
            late += f"slow end {plan.days.greatest:.1f} days), and you have {limit:g}."
            return False, f"{late} {HINT}"
        if plan.days.greatest < limit / 10:
            early = f"it fits and takes {days}, of {limit:g} days that you have: give "
            return False, f"{early}it more tokens, or a larger model."
        told = f"right: {days} of your {limit:g}, {held} on each GPU, "
        told += f"{units.gigabytes(plan.room)} left; set "
        told += f"{about(plan.gpu_hours.greatest, units.count)} GPU-hours aside."
        return True, told + _of_the_text(plan) + at_first(plan, limit)

    def hints(self) -> tuple[str, ...]:
        """What to say at the first wrong answer, the second, and from then on."""
        return (
            "Which factor of the time can give?",
            "Days fall with fewer tokens, with more GPUs, and without recomputation.",
            "Tokens · days you have / days at the slow end would just do.",
        )


_COMMON_LEAST = 20
"""Tokens for each parameter (arXiv 2203.15556, Table 3)."""


def _of_the_text(plan: Plan) -> str:
    """A word where a model sees few tokens for its size; else nothing."""
    each = float(plan.run.tokens / plan.parameters.active)
    if each >= _COMMON_LEAST:
        return ""
    return (
        f" But these are {units.digits(each, 2)} tokens for each parameter, where "
        f"{_COMMON_LEAST} is a common least: trained from nothing, a smaller model "
        "would be better."
    )


def _of_memory(plan: Plan) -> str:
    """Which part of the memory is the largest, and what makes it smaller."""
    parts = plan.memory.parts()
    states = sum(parts.values()) - parts["activations"] - parts["transient"]
    sizes = {"the model's states": states, "activations": parts["activations"]}
    first, second = sorted(sizes, key=lambda name: -sizes[name])
    told = f"The largest part is {first}, {units.gigabytes(sizes[first])}; {second} "
    told += f"take {units.gigabytes(sizes[second])}. "
    if first != "activations":
        return f"{told}Raise zero, gpus or tensor, or take a smaller model."
    ways = ["raise zero"] if plan.run.zero_stage < 3 else []
    large = plan.split.micro_batch_size > 1
    ways += ["lower micro or sequence" if large else "shorten the sequence"]
    return f"{told}{', '.join(ways).capitalize()}, or recompute."


def _misfit(plan: Plan, held: str) -> str:
    chip = units.gigabytes(plan.run.accelerator.memory)
    if plan.tight:
        asked = units.gigabytes(plan.reserve)
        return f"tight: {held} of {chip}, where {asked} should stay free."
    return f"does not fit: {held} on each GPU of {chip}."


_KEYS = {
    "·context_parallel": "",
    "num_gpus": "gpus",
    "global_batch_size": "batch",
    "micro_batch_size": "micro",
    "sequence_length": "sequence",
    "tensor_parallel": "tensor",
    "pipeline_parallel": "pipeline",
    "data_parallel": "replicas",
    "zero_stage": "zero",
}
"""What a plan calls the entries of the learner's dictionary."""


def _own(answer: Mapping[str, Any]) -> Plan:
    """The plan of a learner's dictionary; a ValueError in its words if none can be."""
    try:
        return _planned(answer)
    except ValueError as error:
        told = str(error)
        for name, key in _KEYS.items():
            told = re.sub(rf"\b{name}\b", key, told)
        raise ValueError(told) from None


def _planned(answer: Mapping[str, Any]) -> Plan:
    number = {
        name: one(name, read_as(name, answer[name]), count)
        for name in _OWN
        if name not in ("model", "chip", "days", "zero", "recompute")
    }
    again = choice("recompute", answer["recompute"], RECOMPUTE)
    return plan_run(
        architecture(answer["model"], number["sequence"]),
        accelerator(answer["chip"]),
        number["gpus"],
        number["tokens"],
        number["batch"],
        recompute=again,
        micro_batch_size=number["micro"],
        tensor_parallel=number["tensor"],
        pipeline_parallel=number["pipeline"],
        zero_stage=read_as("zero", answer["zero"]),
        keep_gradients=True if number["pipeline"] > 1 else None,
    )


EXERCISES: dict[str, Exercise] = {
    "08-a": Numeric(
        key=_set_aside,
        unit=_days,
        hint=(
            "First the steps, then the days of computing, then the calendar.",
            "Steps are tokens over tokens in a step, 1,024 sequences of 4,096.",
            "T/(Bs) · 3.4 s / 86,400, and half as much again for the stops.",
        ),
        slips=TENFOLD
        | {
            1 / STOPS[2]: "these are the days of computing: the stops come on top.",
            STOPS[0] / STOPS[2]: "this has the stops of the best of the four runs; "
            "the worst lost 50 %.",
            0.5 / STOPS[2]: "this is the time of the stops alone: add the computing.",
            1 / (1 - 0.5) / STOPS[2]: "this divides by a half: the stops are half of "
            "the computing, not half of the calendar.",
            units.DAY: "these are seconds: divide by 86,400.",
            24: "these are hours: divide by 24.",
            1 / 128: "the step was measured on all 128 GPUs: do not divide by them.",
            1024: "this takes a step for one sequence: it has 1,024.",
            4096: "this counts sequences for tokens: each has 4,096.",
        },
    ),
    "08-b": Numeric(
        key=_batch,
        unit=lambda number: f"{units.exact(number)} sequences",
        tolerance=0,
        hint=(
            "First find how many micro-batches each replica needs.",
            "Of the step, (p − 1)/(m + p − 1) is idle; let it be a tenth.",
            "m = 9(p − 1) for each replica, and 96 GPUs are 96/8 replicas.",
        ),
        slips={
            1 / 12: "these are the micro-batches of one replica: there are twelve.",
            70 / 63: "this is a tenth of the useful time, (p − 1)/m: of the step it "
            "is (p − 1)/(m + p − 1).",
            8: "this counts every GPU as a replica: eight of them share one.",
            72 / 63: "this takes p for p − 1: the first stage need not wait for itself.",
            70 / 63 / 12: "these are the micro-batches of one replica, and by the useful time.",
            62 / 63: "with one micro-batch less it is a little more than a tenth.",
        },
    ),
    "08-c": Word(key=_cheapest, options={name: _verdict(name) for name in PROPOSALS}),
    "08-d": OwnPlan(),
}

PREDICTIONS = {
    "08-guess": Prediction(
        truth=lambda: _large().memory.total / 1e9,
        unit=lambda number: f"{units.digits(number)} GB",
        why=_why(),
    )
}
