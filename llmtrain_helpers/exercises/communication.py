"""Exercises of chapter 07: seconds of a ring, two splits to choose, one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from llmtrain_helpers import units
from llmtrain_helpers.checks import Result, count
from llmtrain_helpers.communication import all_reduce_bytes, all_reduce_seconds, data_parallel_bytes
from llmtrain_helpers.drawings.common import STEP_PARTS
from llmtrain_helpers.drawings.plan import parts_of
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises.common import (
    HINT,
    NOT_YET,
    Answer,
    Design,
    Exercise,
    Judgement,
    Numeric,
    Prediction,
    Word,
    design_of,
    entry,
    read_as,
    unanswered,
)
from llmtrain_helpers.plan.plan import Plan, plan_run

# --- 07-a: a 13B on four nodes of A100

_GRADIENTS, _REPLICAS, _EGRESS = 13e9 * 2, 32, 8 * 25e9


def _ring_seconds() -> Result:
    """Seconds of an all-reduce of the 13B's gradients."""
    return all_reduce_seconds(_GRADIENTS, _REPLICAS, _EGRESS)


# --- 07-b and 07-c: an 8B on 64 H100, a 405B on 16,384


def _plan(design: Design, *, tensor_parallel: int, pipeline_parallel: int, zero_stage: int) -> Plan:
    """A design's plan with this split, as the panel makes it; a ValueError if none can be."""
    return plan_run(
        published.architecture(str(design["model"]), design["sequence"]),
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
        chip = units.gigabytes(plan.run.accelerator.memory)
        memory = f"a GPU would need {holds} and has {chip}"
    return (
        f"{units.seconds(step.total)} a step by the model, {units.share(seen)} of it sending "
        f"that is seen{waiting}; {memory}"
    )


_H100 = {"chip": "H100 SXM", "sequence": 8192}
_8B = {"model": "Llama-3.1-8B", "gpus": 64, "batch": 512, "recompute": "none", **_H100}
_405B = {"model": "Llama-3.1-405B", "gpus": 16384, "batch": 2048, "recompute": "full", **_H100}


@cache
def _small(t: int, p: int, zero_stage: int) -> Plan:
    return _plan(_8B, tensor_parallel=t, pipeline_parallel=p, zero_stage=zero_stage)


@cache
def _large(t: int, p: int) -> Plan:
    return _plan(_405B, tensor_parallel=t, pipeline_parallel=p, zero_stage=1)


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

_FOR_405B = {
    "TP 1, PP 16": lambda: (
        f"no: {_summary(_large(1, 16))}. 1,024 replicas have 2 "
        "sequences each, far too few to fill 16 stages."
    ),
    "TP 2, PP 32": lambda: (
        f"no: {_summary(_large(2, 32))}. It fits, but 8 passes do not fill 32 stages."
    ),
    "TP 8, PP 1": lambda: (
        f"no: {_summary(_large(8, 1))}. Every replica has a sequence to "
        "itself, and nobody has room for an eighth of 405 billion parameters."
    ),
    "TP 8, PP 16": lambda: (
        f"right: {_summary(_large(8, 16))}. The batch has one sequence for 8 GPUs, so at "
        "least 8 must share each. Stages alone cannot: they need many passes to fill, "
        "and there are too few. So 8 share it by tensor, on fast links, with layers "
        "large enough for it; and 16 stages make it fit. Waiting stays the worst of "
        "it: Llama 3 took this very split, with interleaved stages, which wait less."
    ),
}


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


# --- 07-d: a split of one's own

_NUMBERS = ("gpus", "batch", "sequence", "tensor", "pipeline")
_ENTRIES = ("model", "chip", *_NUMBERS, "zero", "recompute")

NEAR = 1.1
"""How much longer than the best split's step a good one may take."""


def _own(answer: Design) -> Plan:
    """The plan of a learner's design; a ValueError where it makes none."""
    numbers = {name: entry(answer, name, count) for name in _NUMBERS}
    design = {**answer, **numbers}
    published.architecture(str(design["model"]), design["sequence"])
    n, t, p = design["gpus"], design["tensor"], design["pipeline"]
    if n % (t * p):
        raise ValueError(f"{t} × {p} GPUs a replica do not divide {n}")
    replicas = n // (t * p)
    if design["batch"] % replicas:
        raise ValueError(f"{replicas} replicas do not share {design['batch']} sequences")
    return _plan(
        design, tensor_parallel=t, pipeline_parallel=p, zero_stage=read_as("zero", design["zero"])
    )


def best_of(design: Design) -> Plan | None:
    """The split of usual ones that fits and whose step the model finds shortest."""
    plans = []
    for t in (1, 2, 4, 8):
        for p in (1, 2, 4, 8, 16):
            for zero_stage in (1, 3):
                split = {"tensor": t, "pipeline": p, "zero": zero_stage}
                try:
                    plan = _own({**design, **split})
                except ValueError:
                    continue
                if plan.fits and plan.step:
                    plans.append(plan)
    return min(plans, key=_seconds, default=None)


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

    def judge(self, answer: Answer) -> Judgement:
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
        return True, f"right: {summary}; none that recomputes alike is 10 % faster."


EXERCISES: dict[str, Exercise] = {
    "07-a": Numeric(
        key=_ring_seconds,
        asked="s",
        unit=lambda number: f"{units.digits(number)} s",
        hint=(
            "Two numbers: what a GPU sends, and how fast the node lets it out.",
            "A GPU sends nearly twice its gradients; a node has 8 cards.",
        ),
        slips={
            8: "eight times too long: the node's 8 cards carry eight rings at once.",
            2 / 3: "this is NVLink's rate: the ring has to leave the nodes.",
            1 / 12: "this is the rate of a node's links together, and it leaves nodes.",
            2: "twice too long: gradients have 16 bits here, 2 bytes.",
            0.5: "half of it: an A100's node has cards of 25 GB/s, not H100's 50. Or: "
            "2 bytes a gradient; once to add up, once to go round.",
            16 / 31: "half: the ring goes round twice, to add up and to hand out.",
            32 / 31: "nearly: of d pieces each GPU sends d − 1, twice.",
            24 / 31: "this takes 4 nodes for 4 replicas: there are 32.",
            1 / 4: "a quarter: each node's cards carry the whole buffer, not a share.",
            1000: "these are milliseconds: give seconds.",
            _EGRESS: "these are the bytes; divide them by the node's rate.",
        },
    ),
    "07-b": Word(key=lambda: "TP 1, ZeRO 3", options=_Lazy(_FOR_8B)),
    "07-c": Word(key=lambda: "TP 8, PP 16", options=_Lazy(_FOR_405B)),
    "07-d": OwnSplit(),
}


# --- predictions


def _longer() -> float:
    """An all-reduce over 512 GPUs beside one over 16, nodes sending alike."""
    return float(all_reduce_bytes(16e9, 512) / all_reduce_bytes(16e9, 16))


def _sent_by_zero_3() -> float:
    """What ZeRO 3 sends in 32 passes, beside plain data parallelism."""
    plain, sharded = (data_parallel_bytes(8e9, 64, stage, 32) for stage in (0, 3))
    return float(sharded / plain)


PREDICTIONS: dict[str, Prediction] = {
    "07-guess": Prediction(
        truth=_longer,
        unit=lambda ratio: f"{units.digits(ratio)} times",
        asked="times",
        why="Each GPU sends 2(d − 1)/d of its buffer: 1.875 times it with 16 GPUs, "
        "1.996 with 512. The pieces get smaller as there are more turns. (These are "
        "the bytes; real networks add some, as the measurements below show.)",
    ),
    "07-passes": Prediction(
        truth=_sent_by_zero_3,
        unit=lambda ratio: f"{units.digits(ratio)} times",
        asked="times",
        why="Plain data parallelism sends gradients once a step, 2 times the weights. "
        "ZeRO 3 gathers weights twice and scatters gradients in every pass: 3 times, "
        "32 times over.",
    ),
}
