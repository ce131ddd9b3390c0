"""Exercises of chapter 08: a split for a small model, a plan for a large one, your own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from llmtrain_course.kit.drawing import STEP_PARTS
from llmtrain_course.kit.exercise import (
    HINT,
    NOT_YET,
    Answer,
    Design,
    Exercise,
    Grade,
    MultipleChoice,
    Numeric,
    Prediction,
    Question,
    design_of,
    entry,
    read_as,
    unanswered,
)
from llmtrain_course.parallelism.handles import Setting, fastest, planned
from llmtrain_course.plan.pictures import parts_of
from llmtrain_helpers import published, units
from llmtrain_helpers.batch import data_parallel_size, global_batch_size
from llmtrain_helpers.checks import Result, count, one
from llmtrain_helpers.communication import all_reduce_bytes
from llmtrain_helpers.model.names import known_model
from llmtrain_helpers.plan.plan import Plan, plan_run

# --- parallelism-a: an 8B on 64 H100


def _plan(design: Design, *, tensor_parallel: int, pipeline_parallel: int, zero_stage: int) -> Plan:
    """A design's plan with this split, as the panel makes it; a ValueError if none can be."""
    return plan_run(
        known_model(design["model"], design["sequence"]),
        published.accelerator(str(design["chip"])),
        design["gpus"],
        design["batch"] * design["sequence"],
        design["batch"],
        recompute=design["recompute"],
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        zero_stage=zero_stage,
        keep_gradients=False,
        uneven_stages=True,
    )


def _summary(plan: Plan) -> str:
    """Sum up a plan: the seconds of a step, what of it isn't computing, and its memory."""
    step = plan.step
    assert step is not None
    seen = sum(step.parts()[part] for part in ("tensor", "pipeline", "data")) / step.total
    waiting = ""
    if step.bubble:
        waiting = f" and {units.share(step.bubble / step.total)} waiting"
    memory = f"each GPU needs {units.gigabytes(plan.memory.total)}"
    if not (plan.fits or plan.tight):
        memory += f" but only has {units.gigabytes(plan.card)}"
    return (
        f"In our model, a step lasts {units.seconds(step.total)}, with {units.share(seen)} "
        f"exposed sending{waiting}, and {memory}"
    )


_H100 = {"chip": "H100 SXM", "sequence": 8192}
_8B = {"model": "Llama-3.1-8B", "gpus": 64, "batch": 512, "recompute": "none", **_H100}


@cache
def _small(t: int, p: int, zero_stage: int) -> Plan:
    return _plan(_8B, tensor_parallel=t, pipeline_parallel=p, zero_stage=zero_stage)


_FOR_8B = {
    "TP 1, ZeRO 3": lambda: (
        f"Right. {_summary(_small(1, 1, 3))}. Each GPU works on whole matrices and processes "
        f"8,192 tokens per pass, more than 2,500, so even ZeRO 3's sending in every pass is "
        f"hidden. "
        "ZeRO 1 would be just as fast, but needs "
        f"{units.gigabytes(_small(1, 1, 1).memory.total)}."
    ),
    "TP 2, ZeRO 1": lambda: (
        f"Not the best. {_summary(_small(2, 1, 1))}. It fits, but in each layer two "
        "GPUs wait for each other, and you launch 2× as many passes."
    ),
    "TP 8, ZeRO 1": lambda: (
        f"No. {_summary(_small(8, 1, 1))}. A layer of an 8B is too "
        "small for eight GPUs, which spend more time launching and sending than computing."
    ),
    "PP 4, ZeRO 1": lambda: (
        f"No. {_summary(_small(1, 4, 1))}. You send little, but stages "
        "wait, and the last one has to compute all the logits."
    ),
}


def _sums_of_a_sequence() -> float:
    """GB that each of eight GPUs sends for one sequence of the 8B: four sums in 32 layers."""
    return float(32 * 4 * all_reduce_bytes(2 * 8192 * 4096, 8) / 1e9)


_SUMS = Numeric(
    key=_sums_of_a_sequence,
    asked="GB",
    unit=lambda number: f"{units.digits(number)} GB",
    hint=(
        "An all-reduce adds up h numbers per token, at 2 bytes each.",
        "There are 32 layers, each with two all-reduces forward and two backward.",
    ),
    common_mistakes={
        "l * 2 * 2 * 7/8 * m / 1e9": "That's 2× too low. There are two all-reduces forward and "
        "two backward, and each one sends its data round twice.",
        "4 * 2 * 7/8 * m / 1e9": "You've counted one layer, but there are 32.",
        "l * 4 * 2 * m / 1e9": "Almost. Each GPU keeps its own 1/8 and sends the other seven, "
        "twice.",
        "l * 4 * m / 1e9": "That's the size of the sums, but a ring sends 2 · 7/8 = 1.75× as much.",
        "2 * key": "That's 2× too high. A number is 2 bytes, and a layer needs four all-reduces.",
        "1000 * key": "Those are MB. Give GB.",
        "1e9 * key": "Those are bytes. Give GB.",
    },
    values={"l": 32, "m": 2 * 8192 * 4096},
)


class _Lazy(Mapping[str, str]):
    """Sentences by their option, each computed when it is asked for: a plan takes time."""

    def __init__(self, sentences: Mapping[str, Callable[[], str]]) -> None:
        self._sentences = sentences

    def __getitem__(self, option: str) -> str:
        return self._sentences[option]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._sentences)

    def __len__(self) -> int:
        return len(self._sentences)


# --- parallelism-b: a 405B on 16,384 H100

_405B = Setting("Llama-3.1-405B", num_gpus=16384, global_batch_size=2048)


@cache
def _large(**changes: Any) -> Plan:
    return planned(replace(_405B, **changes))


def _if_there_were_enough() -> Plan:
    """The plan with a sequence for each GPU."""
    n = _405B.num_gpus
    return _large(tensor_parallel=1, zero_stage=3, global_batch_size=n)


_FOR_405B = {
    "sequences": lambda: (
        "Right: 2,048 sequences make at most 2,048 replicas, so at least eight GPUs have to share "
        "each of them. TP 8 does that inside a node. In the panel, a step then takes "
        f"{units.seconds(_seconds(_large(zero_stage=3)))} with ZeRO 3. Llama 3 also cut the layers "
        "into 16 stages and interleaved them. In a plain schedule, a step would take "
        f"{units.seconds(_seconds(_large(pipeline_parallel=16)))}, because stages wait."
    ),
    "memory": lambda: (
        f"No: ZeRO 3 leaves each GPU 1/16,384 of the model's states. For one sequence, it would "
        f"need {units.gigabytes(_if_there_were_enough().memory.total)}, and that fits."
    ),
    "network": lambda: (
        "No: a GPU with 8,192 tokens per pass computes long enough. If each GPU got its own "
        "sequence, computing would hide everything that ZeRO 3 sends."
    ),
    "nothing": lambda: (
        "No: it's true that ZeRO 3 is hidden here, but can each GPU be a replica? Count what "
        "each replica needs at least."
    ),
}

_GPUS_PER_SEQUENCE = Numeric(
    key=lambda: _405B.num_gpus / _405B.global_batch_size,
    asked="GPUs",
    unit=lambda number: f"{number:.0f} GPUs per sequence",
    hint="Every replica needs its own sequence. How many replicas can there be?",
    common_mistakes={
        "1 / key": "That's sequences per GPU. Turn it the other way round.",
        "B": "That's how many replicas there can be. How many GPUs does each of them get?",
        "n": "That's all the GPUs, but there are 2,048 sequences to share them.",
    },
    values={"B": 2048, "n": 16384},
)


# --- parallelism-c: a split of one's own

_NUMBERS = ("gpus", "batch", "sequence", "tensor", "pipeline")
_ENTRIES = ("model", "chip", *_NUMBERS, "zero", "recompute")

NEAR = 1.3
"""How much longer than the best split's step a good one may take: the model of a step is
off by about as much where many GPUs take part."""


def _own(answer: Design) -> Plan:
    """The plan of a learner's design; a ValueError where it makes none."""
    numbers = {name: entry(answer, name, count) for name in _NUMBERS}
    design = {**answer, **numbers}
    known_model(design["model"], design["sequence"])
    n, t, p = design["gpus"], design["tensor"], design["pipeline"]
    if n % (t * p):
        raise ValueError(f"{t} × {p} GPUs per replica don't divide {n}")
    replicas = n // (t * p)
    if design["batch"] % replicas:
        raise ValueError(f"{replicas} replicas don't divide {design['batch']} sequences")
    return _plan(design, tensor_parallel=t, pipeline_parallel=p, zero_stage=_stage(design["zero"]))


def _stage(written: Answer) -> int:
    """ZeRO's stage, also as it is spoken: `3`, `"3"`, `"ZeRO 3"`, `"stage 3"`."""
    if isinstance(written, str):
        written = re.sub(r"(?i)^\s*(zero|stage|[-\s])*(?=\d)", "", written)
    return int(one("zero", read_as("zero", written)))


def best_of(design: Design) -> Plan | None:
    """The split of usual ones that fits and whose step the model finds shortest."""
    return fastest(lambda t, p, zero: _own({**design, "tensor": t, "pipeline": p, "zero": zero}))


def _seconds(plan: Plan) -> float:
    assert plan.step is not None
    return float(plan.step.total)


def _slowest_part(plan: Plan, best: Plan) -> str:
    """The part of a step that grew most beside the best split's, in words."""
    assert plan.step is not None
    assert best.step is not None
    parts, best_parts = plan.step.parts(), best.step.parts()
    return STEP_PARTS[max(parts, key=lambda part: parts[part] - best_parts.get(part, 0))].cause


class OwnSplit(Exercise):
    """A design that fits, with a step barely longer than the best split's."""

    hint = (
        "Put your numbers into the panel, and change one thing at a time.",
        "Sharing saves memory, but most kinds of sharing cost time. Which kind can be hidden?",
        "Start from tensor 1, one stage and ZeRO 3. If that's too much, let two GPUs share the "
        "model.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Grade the split by whether it fits, and by how long its step takes."""
        if unanswered(answer):
            return NOT_YET
        design = design_of(answer, _ENTRIES, "model=…, chip=…")
        plan, best = _own(design), best_of(design)
        if plan.step is None:
            return False, f"We don't know the links of {design['chip']}. Select another chip."
        if best is None:
            return False, "No usual split of these fits, so recompute or add GPUs."
        summary = _summary(plan)
        if not plan.fits:
            reserve = ", which leaves no reserve" if plan.tight else ""
            parts = parts_of(plan)
            largest = max(parts, key=lambda part: parts[part])
            return False, f"{summary}{reserve}. The largest part is {largest}. {HINT}"
        longer = _seconds(plan) / _seconds(best)
        if longer > NEAR:
            gap = f"{100 * (longer - 1):.0f}% longer than another split that fits"
            why = f"That's {gap}, mainly because of {_slowest_part(plan, best)}"
            return False, f"{summary}. {why}. {HINT}"
        close = "No usual split that fits is faster"
        if longer > 1.005:
            close = (
                f"The fastest split that fits needs {units.seconds(_seconds(best))}, and yours "
                f"is {units.share(longer - 1)} slower. Up to {units.share(NEAR - 1)}, a model "
                "can't tell two splits apart"
            )
        software = units.seconds(plan.seconds_per_iteration.likely)
        return True, (
            f"Right. {summary}. {close}. Chapter 09 also counts the time that software usually "
            f"costs, and then it's {software}."
        )


EXERCISES: dict[str, Exercise] = {
    "parallelism-a": MultipleChoice(
        key=lambda: "TP 1, ZeRO 3",
        options=_Lazy(_FOR_8B),
        followups=[
            Question(
                "Eight GPUs share each of this model's 32 layers, and h = 4,096. How many GB "
                "does each of them send per sequence, forward and backward, with four "
                "all-reduces per layer?",
                _SUMS,
            )
        ],
    ),
    "parallelism-b": MultipleChoice(
        key=lambda: "sequences",
        options=_Lazy(_FOR_405B),
        followups=[
            Question(
                "How many GPUs have to share each sequence, at the very least?", _GPUS_PER_SEQUENCE
            )
        ],
    ),
    "parallelism-c": OwnSplit(),
}


# --- predictions


def _batch_with(tensor_parallel: int) -> Result:
    return global_batch_size(2, 4, data_parallel_size(64, tensor_parallel))


def _change() -> str:
    ratio = _batch_with(4) / _batch_with(8)
    return {2: "twice", 1: "the same", 0.5: "half"}[ratio]


def _longer_by_sharing() -> float:
    """A measured step of a 3.6B on 64 A100s with TP 8, relative to the step with TP 1."""
    seconds = {
        row["tensor_parallel"]: float(row["seconds_per_iteration"])
        for row in published.rows("vtrain_a100_multi_node")
        if (row["num_gpus"], row["pipeline_parallel"], row["micro_batch_size"]) == (64, 1, 4)
    }
    return seconds[8] / seconds[1]


PREDICTIONS: dict[str, Prediction] = {
    "parallelism-guess": Prediction(
        truth=_change,
        why=f"With TP 4, a replica needs 4 GPUs instead of 8, so you get 16 replicas instead of "
        f"8, and the batch grows from {_batch_with(8)} to {_batch_with(4)} sequences.",
        options={
            "twice": "You counted replicas.",
            "the same": "That would be true if every GPU had its own sequences, or if you fixed "
            "the global batch. Here you fix the number of passes.",
            "half": "You've halved the batch along with TP. But TP is how many GPUs share a "
            "replica, so if fewer GPUs share each one, you get more replicas.",
        },
    ),
    "parallelism-share": Prediction(
        truth=_longer_by_sharing,
        unit=lambda ratio: f"{units.digits(ratio)} times",
        asked="times",
        why="One pass gets faster, but only 8 of 64 replicas are left, so each one runs 8× as "
        "many passes. Add the sending and launching in each of them.",
    ),
}
