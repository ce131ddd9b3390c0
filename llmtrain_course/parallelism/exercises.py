"""Exercises of chapter 08: a split for a small model, a plan for a large one, one's own."""

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
    """Seconds of a step, what of it is not computing, and memory."""
    step = plan.step
    assert step is not None
    seen = sum(step.parts()[part] for part in ("tensor", "pipeline", "data")) / step.total
    waiting = ""
    if step.bubble:
        waiting = f" and {units.share(step.bubble / step.total)} waiting"
    holds = units.gigabytes(plan.memory.total)
    if plan.fits or plan.tight:
        memory = f"a GPU holds {holds}"
    else:
        chip = units.gigabytes(plan.card)
        memory = f"a GPU would need {holds} and has {chip}"
    return (
        f"{units.seconds(step.total)} a step by the model, {units.share(seen)} of it sending "
        f"that is seen{waiting}; {memory}"
    )


_H100 = {"chip": "H100 SXM", "sequence": 8192}
_8B = {"model": "Llama-3.1-8B", "gpus": 64, "batch": 512, "recompute": "none", **_H100}


@cache
def _small(t: int, p: int, zero_stage: int) -> Plan:
    return _plan(_8B, tensor_parallel=t, pipeline_parallel=p, zero_stage=zero_stage)


_FOR_8B = {
    "TP 1, ZeRO 3": lambda: (
        f"right: {_summary(_small(1, 1, 3))}. Each GPU works on whole "
        "matrices and has 8,192 tokens a pass, more than 2,500, so that even what "
        "ZeRO 3 sends in every pass hides. "
        "ZeRO 1 would be as fast, but takes "
        f"{units.gigabytes(_small(1, 1, 1).memory.total)}."
    ),
    "TP 2, ZeRO 1": lambda: (
        f"not the best: {_summary(_small(2, 1, 1))}. It fits, but in each layer two "
        "GPUs wait for each other, and twice as many passes are launched."
    ),
    "TP 8, ZeRO 1": lambda: (
        f"no: {_summary(_small(8, 1, 1))}. A layer of an 8B is too "
        "small for eight: they launch and send more than they compute."
    ),
    "PP 4, ZeRO 1": lambda: (
        f"no: {_summary(_small(1, 4, 1))}. Little is sent, but stages "
        "wait, and the last one has all the logits to do."
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
        "What is added up has 2 bytes for each of the tokens and each of h numbers.",
        "32 layers, each with two sums forward and two backward.",
    ),
    common_mistakes={
        "l * 2 * 2 * 7/8 * m / 1e9": "half: two sums forward, and two backward. Or: each goes "
        "round twice.",
        "4 * 2 * 7/8 * m / 1e9": "this is one layer: there are 32.",
        "l * 4 * 2 * m / 1e9": "nearly: each GPU keeps its own eighth, and sends the other seven, "
        "twice.",
        "l * 4 * m / 1e9": "this is the sums themselves; a ring sends 2 · 7/8 = 1.75 times as "
        "much.",
        "2 * key": "twice too much: 2 bytes a number, and four sums in a layer.",
        "1000 * key": "these are MB: give GB.",
        "1e9 * key": "these are bytes: give GB.",
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
        "right: 2,048 sequences make 2,048 replicas at most, so at least eight GPUs have to share "
        "each of them. TP 8 does that inside a node. By the panel, a step then takes "
        f"{units.seconds(_seconds(_large(zero_stage=3)))} with ZeRO 3. Llama 3 also cut the layers "
        "into 16 stages and interleaved them. In a plain schedule that takes "
        f"{units.seconds(_seconds(_large(pipeline_parallel=16)))}, because stages wait."
    ),
    "memory": lambda: (
        "no: ZeRO 3 leaves each GPU a 16,384th of the model's states. With one sequence it "
        f"would need {units.gigabytes(_if_there_were_enough().memory.total)}, and that fits."
    ),
    "network": lambda: (
        "no: a GPU with 8,192 tokens per pass computes long enough. If each had a sequence, "
        "computing would hide everything that ZeRO 3 sends."
    ),
    "nothing": lambda: (
        "no: it's true that ZeRO 3 hides here, but can each GPU be a replica? Count what a "
        "replica needs at least."
    ),
}

_GPUS_PER_SEQUENCE = Numeric(
    key=lambda: _405B.num_gpus / _405B.global_batch_size,
    asked="GPUs",
    unit=lambda number: f"{number:.0f} GPUs for each sequence",
    hint="Every replica needs a sequence of its own: how many replicas can there be?",
    common_mistakes={
        "1 / key": "That's sequences per GPU. Turn it round.",
        "B": "That's how many replicas there can be. How many GPUs does each of them get?",
        "n": "That's all the GPUs: there are 2,048 sequences to share them.",
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
        raise ValueError(f"{t} × {p} GPUs a replica do not divide {n}")
    replicas = n // (t * p)
    if design["batch"] % replicas:
        raise ValueError(f"{replicas} replicas do not share {design['batch']} sequences")
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
    """A design: it fits, and its step is hardly longer than that of the best split."""

    hint = (
        "Put your numbers into the panel, and move one thing at a time.",
        "Sharing saves memory, and most kinds of it cost time; which kind hides?",
        "Start from tensor 1, one stage, ZeRO 3; if too much, let two share it.",
    )

    def grade(self, answer: Answer) -> Grade:
        """What the split takes, or what is better."""
        if unanswered(answer):
            return NOT_YET
        design = design_of(answer, _ENTRIES, "model=…, chip=…")
        plan, best = _own(design), best_of(design)
        if plan.step is None:
            return False, f"the links of {design['chip']} are not known: take another."
        if best is None:
            return False, "no usual split of these holds it: recompute, or add GPUs."
        summary = _summary(plan)
        if not plan.fits:
            reserve = ", which leaves no reserve" if plan.tight else ""
            parts = parts_of(plan)
            largest = max(parts, key=lambda part: parts[part])
            return False, f"{summary}{reserve}: most of it {largest}. {HINT}"
        longer = _seconds(plan) / _seconds(best)
        if longer > NEAR:
            gap = f"{100 * (longer - 1):.0f} % longer than another split that fits"
            return False, f"{summary}: {gap}, above all by {_slowest_part(plan, best)}. {HINT}"
        close = "no usual split that fits is faster"
        if longer > 1.005:
            close = (
                f"the fastest that fits takes {units.seconds(_seconds(best))}, and yours "
                f"{units.share(longer - 1)} more. Up to {units.share(NEAR - 1)}, a model can't "
                "tell two splits apart"
            )
        software = units.seconds(plan.seconds_per_iteration.likely)
        return True, (
            f"right: {summary}; {close}. With what software usually loses, which page 09 "
            f"counts too, it is {software}."
        )


EXERCISES: dict[str, Exercise] = {
    "parallelism-a": MultipleChoice(
        key=lambda: "TP 1, ZeRO 3",
        options=_Lazy(_FOR_8B),
        followups=[
            Question(
                "eight GPUs share every layer of this model, which has 32, with h = 4,096. How "
                "many GB does each of them send for one sequence, forward and backward, with "
                "four sums a layer?",
                _SUMS,
            )
        ],
    ),
    "parallelism-b": MultipleChoice(
        key=lambda: "sequences",
        options=_Lazy(_FOR_405B),
        followups=[
            Question(
                "instead of your choice, write how many GPUs have to share each sequence. What's "
                "the least?",
                _GPUS_PER_SEQUENCE,
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
    """A measured step of a 3.6B on 64 A100 with TP 8, over the one with TP 1."""
    seconds = {
        row["tensor_parallel"]: float(row["seconds_per_iteration"])
        for row in published.rows("vtrain_a100_multi_node")
        if (row["num_gpus"], row["pipeline_parallel"], row["micro_batch_size"]) == (64, 1, 4)
    }
    return seconds[8] / seconds[1]


PREDICTIONS: dict[str, Prediction] = {
    "parallelism-guess": Prediction(
        truth=_change,
        why=f"With TP 4 a replica takes 4 GPUs and not 8, so there are 16 replicas "
        f"and not 8; the batch goes from {_batch_with(8)} to {_batch_with(4)} sequences.",
        options={
            "twice": "You counted replicas.",
            "the same": "That would be so if every GPU read sequences of its own, or if you "
            "kept the global batch. Here you keep the number of passes.",
            "half": "You halved the batch with TP. But TP says how many GPUs hold a "
            "copy, and smaller copies make more of them.",
        },
    ),
    "parallelism-share": Prediction(
        truth=_longer_by_sharing,
        unit=lambda ratio: f"{units.digits(ratio)} times",
        asked="times",
        why="One pass gets faster, but of 64 replicas only 8 are left, and each has eight times "
        "as many passes to make. What is sent and started in each of them is on top.",
    ),
}
