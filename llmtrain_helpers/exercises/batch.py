"""Exercises of chapter 04: batches, splits, micro-batches and a run of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.activations import count_activations
from llmtrain_helpers.batch import (
    StepTime,
    accumulation_steps,
    batch_tokens,
    data_parallel_size,
    global_batch_size,
)
from llmtrain_helpers.checks import Result, count, refuse
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises.common import (
    HINT,
    PREFIXES,
    UNANSWERED,
    Exercise,
    Numeric,
    Prediction,
    Slips,
    Word,
    read_as,
)
from llmtrain_helpers.parameters import count_parameters

# --- 04-a: GPT-NeoX-20B


def _neox() -> Result:
    d = data_parallel_size(96, tensor_parallel=2, pipeline_parallel=4)
    return batch_tokens(global_batch_size(4, 32, d), 2048)


# --- 04-b: a split for 128 GPUs, a global batch of 512

_GPUS, _GLOBAL = 128, 512


def idle(pipeline_parallel: int, passes: Result) -> float:
    """The share of a step in which a stage waits: (p − 1)/(k + p − 1)."""
    waits = pipeline_parallel - 1
    return float(waits / (passes + waits))


def _idle_of(tensor: int, pipeline: int) -> str:
    d = data_parallel_size(_GPUS, tensor, pipeline)
    k = accumulation_steps(_GLOBAL, 1, d)
    return f"{k} passes, {units.digits(100 * idle(pipeline, k), 2)} % of the step idle"


_SPLITS = {
    "TP 16, PP 1": "no: 16 GPUs are two nodes, so what each layer exchanges has to "
    "cross the slow network.",
    "TP 8, PP 2": f"right: TP stays inside a node, and {_idle_of(8, 2)}.",
    "TP 4, PP 3": f"no: a replica takes 12 GPUs, and {_GPUS} are no multiple of 12; "
    "nor do 12 hold what needs 16.",
    "TP 1, PP 16": f"no: it can be done, but is not the best: {_idle_of(1, 16)}, for "
    "sixteen stages fill and empty in every step.",
}

# --- 04-c: a micro-batch by its time, with a pipeline

_PASS = StepTime(overhead=0.12, rate=1 / 0.06)
_SHARE, _STAGES = 32, 4
"""Sequences that each replica works through in a step, and its pipeline's stages."""


def _in_passes_of(micro: int, stages: int = _STAGES) -> float:
    """Seconds of a step: k + PP − 1 turns of a stage."""
    return float((_SHARE // micro + stages - 1) * _PASS.seconds(micro))


def _slips_of_passes() -> Slips:
    """What the other micro-batches take, with the waiting and without it."""
    key = _in_passes_of(4)
    told = {
        _in_passes_of(16): "16 sequences at once do not fit into memory.",
        _in_passes_of(8): "8 is the largest that fits, but with 4 passes the stages "
        "wait for 3 of 7 turns.",
        _in_passes_of(2): "micro-batches of 2: they wait less, and pay the fixed part "
        "of a pass twice as often.",
        _in_passes_of(1): "micro-batches of 1: they pay the fixed part of a pass four "
        "times as often as they need.",
        _in_passes_of(4, 1): "the passes of one stage; while the pipeline fills and "
        "empties it waits.",
        _in_passes_of(8, 1): "the largest micro-batch, and no waiting: the pipeline "
        "has to fill and empty.",
        _in_passes_of(2, 1): "micro-batches of 2 without the waiting: the pipeline "
        "has to fill and empty.",
        _PASS.seconds(4): "this is one pass: the replica has 32 sequences.",
        4: "this is a micro-batch; asked are the seconds of the step.",
        8: "this is a micro-batch; asked are the seconds of the step.",
        11: "these are the turns; each takes the seconds of a pass.",
    }
    return {seconds / key: words for seconds, words in told.items()}


# --- 04-d: a run of one's own


def batches_of_size(parameters: float) -> list[tuple[float, str]]:
    """Final batches, in tokens, of published models of like size, and their names.

    The smallest batch first. Of like size is two thirds to 1.5 times as large; where
    fewer than two are, half to twice, or any.
    """
    rows = [r for r in published.rows("batch_sizes") if {*_OF_SIZE} <= r.keys()]
    found: set[tuple[float, str]] = set()
    for factor in (1.5, 2, float("inf")):
        if len(found) < 2:
            near = [r for r in rows if _apart(r["parameters"], parameters) <= factor]
            found = {(float(r[_OF_SIZE[1]]), r["name"].split(" (")[0]) for r in near}
    return sorted(found)


_OF_SIZE = ("parameters", "batch_tokens_end")


def _apart(one: float, other: float) -> float:
    return max(one / other, other / one)


_ASKED = ("model", "gpus", "tensor", "pipeline", "micro", "accumulation", "sequence")

LARGEST = max(row["memory_bytes"] for row in published.rows("accelerators"))
"""The memory of the largest chip, in bytes."""


def _kept(name: str, micro: int, sequence_length: int) -> float:
    """Activations of a pass, at a length that the model takes."""
    longest = int(published.architecture(name).sequence_length)
    model = published.architecture(name, min(sequence_length, longest))
    return float(count_activations(model, micro).total)


@dataclass(frozen=True)
class OwnBatch(Exercise):
    """A design: a split that divides, inside its nodes, and a batch of usual size."""

    hint: tuple[str, ...]

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """What the design makes, or the first thing that does not hold."""
        if isinstance(answer, Mapping) and None in answer.values():
            return None, UNANSWERED
        model, numbers = _design(answer)
        n, t, p, micro, k, s = numbers
        layers = published.architecture(model).num_layers
        if n % (t * p):
            return False, f"{t * p} GPUs a replica do not divide {n}."
        if p > layers:
            return False, f"{layers} layers make no {p} stages."
        if t > 8 or (n > 8 and 8 % t):
            return False, f"TP {t} does not stay inside a node of 8."
        d = data_parallel_size(n, t, p)
        kept = _kept(model, micro, s) / t
        if kept > LARGEST:
            told = f"{micro} at once keep {units.gigabytes(kept)} of activations on a "
            return False, f"{told}GPU, more than any has: smaller passes, and more."
        size = batch_tokens(global_batch_size(micro, k, d), s)
        good, told = self._of_size(size, d, model)
        if layers % p:
            told += f" {layers} layers do not come out even over {p} stages: some have "
            told += "one more, and the others wait for them."
        return good, told

    def _of_size(self, size: float, replicas: float, model: str) -> tuple[bool, str]:
        known = batches_of_size(count_parameters(published.architecture(model)).total)
        (least, small), (most, large) = known[0], known[-1]
        span = f"{units.count(least)} ({small}) to {units.count(most)} ({large})"
        middle = units.count(known[len(known) // 2][0])
        span += f", the middle one {middle}" if len(known) > 2 else ""
        who = "1 replica makes" if replicas == 1 else f"{replicas:,} replicas make"
        told = f"{who} {units.count(size)} tokens a step"
        if not 0.9 * least <= size <= 1.1 * most:
            return False, f"{told}; models of this size had {span}. {HINT}"
        return True, f"right: {told}; models of this size had {span}."

    def hints(self) -> tuple[str, ...]:
        """What to say at the first wrong answer, the second, and from then on."""
        return self.hint


def _design(answer: Any) -> tuple[str, list[int]]:
    """The model and the six numbers of a design; a ValueError for what is missing."""
    if not isinstance(answer, Mapping):
        refuse("answer", answer, "is no dict(model=…, gpus=…, …)")
    missing = [name for name in _ASKED if name not in answer]
    if missing:
        refuse("answer", answer, f"leaves out {', '.join(missing)}")
    numbers = [count(name, read_as(name, answer[name])) for name in _ASKED[1:]]
    return str(answer["model"]), numbers


EXERCISES: dict[str, Exercise] = {
    "04-a": Numeric(
        key=_neox,
        unit=lambda number: f"{units.exact(number)} tokens",
        tolerance=0,
        hint=(
            "First find how many copies of the model there are.",
            "Two GPUs times four stages hold one copy; each copy makes all its passes.",
            "GPUs / (TP · PP) replicas, times micro-batch, accumulation and sequence.",
        ),
        slips=PREFIXES
        | {
            8: "this counts every GPU as a replica: TP · PP = 8 GPUs share one.",
            4: "four times too much: the pipeline's stages share one replica.",
            2: "twice too much: the GPUs of a tensor-parallel group share one replica.",
            12: "twelve times too much: one replica takes its micro-batch once a pass, "
            "and the replicas are counted already.",
            1 / 12: "this is one replica's part: there are several.",
            1 / 32: "this is one pass of each replica, not all the passes of a step.",
            1 / 2048: "these are sequences: each has 2,048 tokens.",
        },
    ),
    "04-b": Word(key=lambda: "TP 8, PP 2", options=_SPLITS),
    "04-c": Numeric(
        key=lambda: _in_passes_of(4),
        unit=lambda number: f"{units.digits(number)} s, in eight passes of 4",
        tolerance=0.005,
        hint=(
            "How many passes does a replica make, and how long does a stage wait?",
            "A step is k + PP − 1 turns of a stage, each as long as a pass; try each column.",
            "(32 / b + 3) · t(b); 16 sequences do not fit.",
        ),
        slips=_slips_of_passes(),
    ),
    "04-d": OwnBatch(
        hint=(
            "Which of the entries sets the size, and leaves the split alone?",
            "Replicas are gpus / (tensor · pipeline); accumulation sets the size.",
            "accumulation = tokens wanted / (micro · replicas · sequence).",
        )
    ),
}


# --- predictions


def _after(tensor_parallel: int) -> Result:
    return global_batch_size(2, 4, data_parallel_size(64, tensor_parallel))


def _change() -> str:
    ratio = _after(4) / _after(8)
    return {2: "twice", 1: "the same", 0.5: "half"}[ratio]


def _seconds_of(micro: int) -> float:
    """The measured time of a pass of the tiny model."""
    rows = published.rows("measured_passes")
    of = "micro_batch_size"
    tiny = {r[of]: r["seconds_min"] for r in rows if r["hidden_size"] == 32}
    return float(tiny[micro])


def _of_eight() -> str:
    ratio = _seconds_of(8) / _seconds_of(1)
    return "a quarter longer" if 1.2 < ratio < 1.3 else f"{ratio:.1f} times"


PREDICTIONS: dict[str, Prediction] = {
    "04-guess": Prediction(
        truth=_change,
        why=f"With TP 4 a replica takes 4 GPUs and not 8, so there are 16 replicas "
        f"and not 8; the batch goes from {_after(8)} to {_after(4)} sequences.",
        options={
            "twice": "You counted replicas.",
            "the same": "So it would be if every GPU had sequences of its own, or "
            "if you had set the global batch; here the accumulation stays.",
            "half": "You halved the batch with TP. But TP says how many GPUs hold a "
            "copy, and smaller copies make more of them.",
        },
    ),
    "04-time": Prediction(
        truth=_of_eight,
        why=f"One sequence took {1e3 * _seconds_of(1):.2f} ms, eight took "
        f"{1e3 * _seconds_of(8):.2f} ms: starting the work is most of it.",
        options={
            "eight times": "That is the work. But a pass is more than its work.",
            "four times": "A part is shared, you thought: here it is most of it.",
            "a quarter longer": "Seven more sequences for a quarter of the time.",
        },
    ),
}
