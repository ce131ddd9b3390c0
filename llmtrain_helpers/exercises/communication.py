"""Exercises of chapter 07: seconds of a ring, two splits to choose, one's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.checks import Result, count, refuse
from llmtrain_helpers.communication import all_reduce_bytes, all_reduce_seconds, data_parallel_bytes
from llmtrain_helpers.drawings.plan import parts_of
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises.common import (
    HINT,
    UNANSWERED,
    Exercise,
    Numeric,
    Prediction,
    Word,
    read_as,
)
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.units import seconds as about, share

# --- 07-a: a 13B on four nodes of A100

_GRADIENTS, _REPLICAS, _EGRESS = 13e9 * 2, 32, 8 * 25e9


def _ring() -> Result:
    return all_reduce_seconds(_GRADIENTS, _REPLICAS, _EGRESS)


# --- 07-b and 07-c: an 8B on 64 H100, a 405B on 16,384


@cache
def _plan(model: str, gpus: int, batch: int, t: int, p: int, z: int, r: str) -> Plan:
    return plan_run(
        published.architecture(model, 8192),
        published.accelerator("H100 SXM"),
        gpus,
        8192 * batch,
        batch,
        recompute=r,
        tensor_parallel=t,
        pipeline_parallel=p,
        zero_stage=z,
        keep_gradients=False,
        uneven_stages=True,
    )


def _told(plan: Plan) -> str:
    """Seconds of a step, what of it is not computing, and memory."""
    step = plan.step
    assert step is not None
    seen = sum(step.parts()[x] for x in ("tensor", "pipeline", "data")) / step.total
    told = f"{about(step.total)} a step by the model, {share(seen)} of it sending "
    told += "that is seen"
    if step.bubble:
        told += f" and {share(step.bubble / step.total)} waiting"
    return f"{told}; {_held(plan)}"


def _held(plan: Plan) -> str:
    """What a GPU holds, or would need, in the words of the panel."""
    held = units.gigabytes(plan.memory.total)
    if plan.fits or plan.tight:
        return f"a GPU holds {held}"
    chip = units.gigabytes(plan.run.accelerator.memory)
    return f"a GPU would need {held} and has {chip}"


def _small(t: int, p: int, z: int) -> Plan:
    return _plan("Llama-3.1-8B", 64, 512, t, p, z, "none")


def _large(t: int, p: int) -> Plan:
    return _plan("Llama-3.1-405B", 16384, 2048, t, p, 1, "full")


_FOR_8B = {
    "TP 1, ZeRO 3": lambda: (
        f"right: {_told(_small(1, 1, 3))}. Each GPU works on whole "
        "matrices and has 8,192 tokens a pass, more than 2,500, so that even what "
        "ZeRO 3 sends in every pass hides. "
        "ZeRO 1 would be as fast, but takes "
        f"{units.gigabytes(_small(1, 1, 1).memory.total)}."
    ),
    "TP 2, ZeRO 1": lambda: (
        f"not the best: {_told(_small(2, 1, 1))}. It fits, but in each layer two "
        "GPUs wait for each other, and twice as many passes are launched."
    ),
    "TP 8, ZeRO 1": lambda: (
        f"no: {_told(_small(8, 1, 1))}. A layer of an 8B is too "
        "small for eight: they launch and send more than they compute."
    ),
    "PP 4, ZeRO 1": lambda: (
        f"no: {_told(_small(1, 4, 1))}. Little is sent, but stages "
        "wait, and the last one has all the logits to do."
    ),
}

_FOR_405B = {
    "TP 1, PP 16": lambda: (
        f"no: {_told(_large(1, 16))}. 1,024 replicas have 2 "
        "sequences each, far too few to fill 16 stages."
    ),
    "TP 2, PP 32": lambda: (
        f"no: {_told(_large(2, 32))}. It fits, but 8 passes do not fill 32 stages."
    ),
    "TP 8, PP 1": lambda: (
        f"no: {_told(_large(8, 1))}. Every replica has a sequence to "
        "itself, and nobody has room for an eighth of 405 billion parameters."
    ),
    "TP 8, PP 16": lambda: (
        f"right: {_told(_large(8, 16))}. The batch has one sequence for 8 GPUs, so at "
        "least 8 must share each. Stages alone cannot: they need many passes to fill, "
        "and there are too few. So 8 share it by tensor, on fast links, with layers "
        "large enough for it; and 16 stages make it fit. Waiting stays the worst of "
        "it: Llama 3 took this very split, with interleaved stages, which wait less."
    ),
}


class _Told(Mapping[str, str]):
    """Sentences that are computed when they are asked for."""

    def __init__(self, sentences: Mapping[str, Any]) -> None:
        self._sentences = sentences

    def __getitem__(self, name: str) -> str:
        return str(self._sentences[name]())

    def __iter__(self) -> Iterator[str]:
        return iter(self._sentences)

    def __len__(self) -> int:
        return len(self._sentences)


# --- 07-d: a split of one's own

_NUMBERS = ("gpus", "batch", "sequence", "tensor", "pipeline")
_ASKED = ("model", "chip", *_NUMBERS, "zero", "recompute")

NEAR = 1.1
"""How much longer than the best split's step a good one may take."""


def _own(design: Mapping[str, Any], **change: Any) -> Plan:
    """The plan of a design, with a change; a ValueError where it makes none."""
    told = {**design, **change}
    numbers = {name: count(name, read_as(name, told[name])) for name in _NUMBERS}
    model = published.architecture(str(told["model"]), numbers["sequence"])
    n, t, p = (numbers[x] for x in ("gpus", "tensor", "pipeline"))
    if n % (t * p):
        raise ValueError(f"{t} × {p} GPUs a replica do not divide {n}")
    if numbers["batch"] % (n // (t * p)):
        raise ValueError(f"{n // (t * p)} replicas do not share {numbers['batch']} sequences")
    return plan_run(
        model,
        published.accelerator(str(told["chip"])),
        n,
        numbers["batch"] * numbers["sequence"],
        numbers["batch"],
        recompute=told["recompute"],
        tensor_parallel=t,
        pipeline_parallel=p,
        zero_stage=told["zero"],
        keep_gradients=False,
        uneven_stages=True,
    )


def best_of(design: Mapping[str, Any]) -> Plan | None:
    """Of usual splits that fit, the one whose step the model finds shortest."""
    found = []
    for t in (1, 2, 4, 8):
        for p in (1, 2, 4, 8, 16):
            for zero in (1, 3):
                try:
                    plan = _own(design, tensor=t, pipeline=p, zero=zero)
                except ValueError:
                    continue
                if plan.fits and plan.step:
                    found.append(plan)
    return min(found, key=_seconds, default=None)


def _seconds(plan: Plan) -> float:
    assert plan.step is not None
    return float(plan.step.total)


_PARTS = {
    "matmuls": "computing",
    "memory": "trips to memory",
    "launching": "launching",
    "tensor": "the sums of tensor parallelism",
    "head": "the last stage's logits",
    "pipeline": "sending to the next stage",
    "bubble": "stages that wait",
    "data": "what replicas send",
    "optimizer": "the optimizer",
}
"""Where a split may lose time, in words."""


def _lost(plan: Plan, best: Plan) -> str:
    """The part of a step that grew most beside the best split's."""
    assert plan.step is not None
    assert best.step is not None
    now, then = plan.step.parts(), best.step.parts()
    return _PARTS[max(now, key=lambda part: now[part] - then.get(part, 0))]


@dataclass(frozen=True)
class OwnSplit(Exercise):
    """A design: it fits, and its step is hardly longer than that of the best split."""

    hint: tuple[str, ...]

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """What the split takes, or what is better."""
        if isinstance(answer, Mapping) and None in answer.values():
            return None, UNANSWERED
        if not isinstance(answer, Mapping):
            refuse("answer", answer, "is no dict(model=…, chip=…, …)")
        missing = [name for name in _ASKED if name not in answer]
        if missing:
            refuse("answer", answer, f"leaves out {', '.join(missing)}")
        plan, best = _own(answer), best_of(answer)
        if plan.step is None:
            return False, f"the links of {answer['chip']} are not known: take another."
        if best is None:
            return False, "no usual split of these holds it: recompute, or add GPUs."
        return self._of(plan, best)

    def _of(self, plan: Plan, best: Plan) -> tuple[bool, str]:
        told = _told(plan)
        if not plan.fits:
            parts = parts_of(plan)
            short = ", which leaves no reserve" if plan.tight else ""
            most = max(parts, key=lambda name: parts[name])
            return False, f"{told}{short}: most of it {most}. {HINT}"
        longer = _seconds(plan) / _seconds(best)
        if longer > NEAR:
            slow = f"{100 * (longer - 1):.0f} % longer than another split that fits"
            return False, f"{told}: {slow}, above all by {_lost(plan, best)}. {HINT}"
        return True, f"right: {told}; none that recomputes alike is 10 % faster."

    def hints(self) -> tuple[str, ...]:
        """What to say at the first wrong answer, the second, and from then on."""
        return self.hint


EXERCISES: dict[str, Exercise] = {
    "07-a": Numeric(
        key=_ring,
        unit=lambda number: f"{units.digits(number)} s",
        hint=(
            "Two numbers: what a GPU sends, and how fast the node lets it out.",
            "A GPU sends nearly twice its gradients; a node has 8 cards.",
            "sent: 2(d − 1)/d of the gradients, d = GPUs; rate: 8 cards together.",
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
    "07-b": Word(key=lambda: "TP 1, ZeRO 3", options=_Told(_FOR_8B)),
    "07-c": Word(key=lambda: "TP 8, PP 16", options=_Told(_FOR_405B)),
    "07-d": OwnSplit(
        hint=(
            "Put your numbers into the panel, and move one thing at a time.",
            "Sharing saves memory, and most kinds of it cost time; which kind hides?",
            "Start from tensor 1, one stage, ZeRO 3; if too much, let two share it.",
        )
    ),
}


# --- predictions


def _longer() -> float:
    """An all-reduce over 512 GPUs beside one over 16, nodes sending alike."""
    return float(all_reduce_bytes(16e9, 512) / all_reduce_bytes(16e9, 16))


def _times(passes: int = 32) -> float:
    """What ZeRO 3 sends in so many passes, beside plain data parallelism."""
    plain = data_parallel_bytes(8e9, 64, 0, passes)
    return float(data_parallel_bytes(8e9, 64, 3, passes) / plain)


PREDICTIONS: dict[str, Prediction] = {
    "07-guess": Prediction(
        truth=_longer,
        unit=lambda ratio: f"{units.digits(ratio)} times",
        why="Each GPU sends 2(d − 1)/d of its buffer: 1.875 times it with 16 GPUs, "
        "1.996 with 512. The pieces get smaller as there are more turns. (These are "
        "the bytes; real networks add some, as the measurements below show.)",
    ),
    "07-passes": Prediction(
        truth=_times,
        unit=lambda ratio: f"{units.digits(ratio)} times",
        why="Plain data parallelism sends gradients once a step, 2 times the weights. "
        "ZeRO 3 gathers weights twice and scatters gradients in every pass: 3 times, "
        "32 times over.",
    ),
}
