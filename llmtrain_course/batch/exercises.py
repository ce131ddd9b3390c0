"""Exercises of chapter 04: batches, splits, micro-batches and a run of one's own."""

from __future__ import annotations

from llmtrain_course.batch.formulas import batches_of_size, pipeline_seconds, tried_micro_batches
from llmtrain_course.kit.exercise import (
    HINT,
    NOT_YET,
    PERCENT,
    PREFIXES,
    Answer,
    Exercise,
    Grade,
    MultipleChoice,
    Numeric,
    Prediction,
    Question,
    design_of,
    entry,
    unanswered,
)
from llmtrain_course.kit.formula import Mistakes
from llmtrain_course.kit.kinds import FillIn
from llmtrain_course.parallelism.formulas import idle_share
from llmtrain_helpers import published, units
from llmtrain_helpers.activations import count_activations
from llmtrain_helpers.batch import (
    StepTime,
    accumulation_steps,
    batch_tokens,
    data_parallel_size,
    global_batch_size,
)
from llmtrain_helpers.checks import Result, count
from llmtrain_helpers.model.names import longest_shape
from llmtrain_helpers.model.transformer import of_length
from llmtrain_helpers.parameters import count_parameters

# --- batch-a: GPT-NeoX-20B


def _neox_tokens() -> Result:
    """Tokens of a step of GPT-NeoX-20B, on 96 GPUs."""
    d = data_parallel_size(96, tensor_parallel=2, pipeline_parallel=4)
    return batch_tokens(global_batch_size(4, 32, d), 2048)


# --- batch-b: a split for 128 GPUs, a global batch of 512

_GPUS, _GLOBAL_BATCH = 128, 512


def _idle(tensor_parallel: int, pipeline_parallel: int) -> str:
    """The passes of a split of batch-b, and how long its stages wait, in words."""
    d = data_parallel_size(_GPUS, tensor_parallel, pipeline_parallel)
    k = accumulation_steps(_GLOBAL_BATCH, 1, d)
    idle = 100 * idle_share(pipeline_parallel, k)
    return f"{k} passes, {units.digits(idle, 2)} % of the step idle"


_SPLITS = {
    "TP 16, PP 1": "no: 16 GPUs are two nodes, so what each layer exchanges has to "
    "cross the slow network.",
    "TP 8, PP 2": f"right: TP stays inside a node, and {_idle(8, 2)}.",
    "TP 4, PP 4": f"no: it can be done, and stays inside a node, but the stages wait longer "
    f"than they need: {_idle(4, 4)}.",
    "TP 4, PP 3": f"no: a replica takes 12 GPUs, and {_GPUS} are no multiple of 12; "
    "nor do 12 hold what needs 16.",
    "TP 1, PP 16": f"no: it can be done, but is not the best: {_idle(1, 16)}, for "
    "sixteen stages fill and empty in every step.",
}

_WAITING = Numeric(
    key=lambda: float(idle_share(4, 128)),
    unit=lambda share: f"{units.percent(share)} of the step",
    asked="share",
    hint=(
        "How many replicas are there, and how many passes does each make?",
        "A step is as many turns as passes, and one more for each further stage.",
    ),
    common_mistakes={
        **PERCENT,
        "k * key": "these are the turns that are waited: of how many?",
        "(p - 1) / k": "this is over the turns that work: a step has those of waiting as well.",
        "p / (k + p)": "four stages wait for three turns: the first one need not wait for itself.",
        "(p - 1) / (64 + p - 1)": "this is with 64 passes: with 32 GPUs a copy there are fewer "
        "replicas, and each makes more.",
        "1 / (k + 1)": "this is for two stages: here there are four.",
        2.3: "this looks like per cent: write it with a %, or as a share between 0 and 1.",
        "k / (k + p - 1)": "this is the share that works: the rest of it is waiting.",
    },
    values={"p": 4, "k": 128},
)

# --- batch-c: a micro-batch by its time, with a pipeline

_PASS = StepTime(overhead=0.12, rate=1 / 0.06)
_SEQUENCES, _STAGES = 32, 4
"""Sequences that each replica works through in a step, and its pipeline's stages."""


def _step(micro_batch_size: int, stages: int = _STAGES) -> float:
    """Seconds of a step in micro-batches of this size."""
    passes = _SEQUENCES // micro_batch_size
    return float(pipeline_seconds(_PASS.seconds(micro_batch_size), passes, stages))


_MISTAKEN_STEPS: Mistakes = {
    _step(16): "16 sequences at once do not fit into memory.",
    _step(8): "8 is the largest that fits, but with 4 passes the stages wait for 3 of 7 turns.",
    _step(2): "micro-batches of 2: they wait less, and pay the fixed part of a pass twice "
    "as often.",
    _step(1): "micro-batches of 1: they pay the fixed part of a pass four times as often as "
    "they need.",
    _step(4, stages=1): "the passes of one stage; while the pipeline fills and empties it waits.",
    _step(8, stages=1): "the largest micro-batch, and no waiting: the pipeline has to fill "
    "and empty.",
    _step(2, stages=1): "micro-batches of 2 without the waiting: the pipeline has to fill "
    "and empty.",
    _PASS.seconds(4): "this is one pass: the replica has 32 sequences.",
    4: "is this a micro-batch, or the seconds of the step, rounded? Give them in three digits.",
    8: "this is a micro-batch; asked are the seconds of the step.",
    11: "these are the turns; each takes the seconds of a pass.",
}
"""What other micro-batches take, with the waiting and without it, and other numbers."""

# --- batch-d: a run of one's own

_NUMBERS = ("gpus", "tensor", "pipeline", "micro", "accumulation", "sequence")
_ENTRIES = ("model", *_NUMBERS)

LARGEST = max(row["memory_bytes"] for row in published.rows("accelerators"))
"""The memory of the largest chip, in bytes."""


class OwnBatch(Exercise):
    """A design: a split that divides, inside its nodes, and a batch of usual size."""

    hint = (
        "Which of the entries sets the size, and leaves the split alone?",
        "Replicas are gpus / (tensor · pipeline); accumulation sets the size.",
        "accumulation = tokens wanted / (micro · replicas · sequence).",
    )

    def grade(self, answer: Answer) -> Grade:
        """What the design makes, or the first thing that does not hold."""
        if unanswered(answer):
            return NOT_YET
        design = design_of(answer, _ENTRIES, "model=…, gpus=…")
        n, t, p, micro, k, s = (int(entry(design, name, count)) for name in _NUMBERS)
        name = str(design["model"])
        model = longest_shape(name)
        layers = model.num_layers
        if n % (t * p):
            return False, f"{t * p} GPUs a replica do not divide {n}."
        if p > layers:
            return False, f"{layers} layers make no {p} stages."
        if t > 8 or (n > 8 and 8 % t):
            return False, f"TP {t} does not stay inside a node of 8."
        shape = of_length(model, min(s, int(model.sequence_length)))
        activations = float(count_activations(shape, micro).total) / t
        if activations > LARGEST:
            return False, (
                f"{micro} at once keep {units.gigabytes(activations)} of activations on a "
                "GPU, more than any has: smaller passes, and more."
            )
        replicas = data_parallel_size(n, t, p)
        tokens = batch_tokens(global_batch_size(micro, k, replicas), s)
        right, sentence = _compare_with_published(tokens, replicas, count_parameters(model).total)
        if layers % p:
            sentence += (
                f" {layers} layers do not come out even over {p} stages: some have one more, "
                "and the others wait for them."
            )
        return right, sentence


def _compare_with_published(tokens: float, replicas: int, parameters: float) -> tuple[bool, str]:
    """Whether models of this size were trained with such batches."""
    batches = batches_of_size(parameters)
    (least, small), (most, large) = batches[0], batches[-1]
    span = f"{units.count(least)} ({small}) to {units.count(most)} ({large})"
    if len(batches) > 2:
        span += f", the middle one {units.count(batches[len(batches) // 2][0])}"
    who = f"{units.plural(replicas, 'replica')} {'makes' if replicas == 1 else 'make'}"
    summary = f"{who} {units.count(tokens)} tokens a step"
    if not 0.9 * least <= tokens <= 1.1 * most:
        side = "fewer" if tokens < least else "more"
        return False, f"{summary}, {side} than any model of this size is known to have had. {HINT}"
    return True, f"right: {summary}; models of this size had {span}."


# --- the blank: BLOOM's batch


def _bloom_batch(gpus_per_replica: int = 48, passes: int = 128) -> int:
    """Sequences of a step of BLOOM on 384 GPUs, with a micro-batch of 2."""
    return int(global_batch_size(2, passes, data_parallel_size(384, gpus_per_replica)))


EXERCISES: dict[str, Exercise] = {
    "batch-sequences": FillIn(
        key=_bloom_batch,
        unit=lambda number: units.plural(number, "sequence"),
        tolerance=0,
        hint=(
            "How many GPUs hold one replica?",
            "A replica takes its micro-batch in every pass, and there are several replicas.",
        ),
        common_mistakes={
            "this counts every GPU as a replica.": lambda: _bloom_batch(1),
            "this counts every node as a replica: one needs 48 GPUs, which are six nodes.": (
                lambda: _bloom_batch(8)
            ),
            "this is one pass of each replica: an update has more of them.": lambda: _bloom_batch(
                passes=1
            ),
            "this is one replica's part: there are several.": lambda: 2 * 128,
            "these are the replicas: each has many sequences.": lambda: 384 // 48,
            "these are passes of all replicas: each takes a micro-batch.": lambda: 8 * 128,
        },
    ),
    "batch-a": Numeric(
        key=_neox_tokens,
        asked="tokens",
        unit=lambda number: f"{units.exact(number)} tokens",
        tolerance=0,
        hint=(
            "First find how many copies of the model there are.",
            "Two GPUs times four stages hold one copy; each copy makes all its passes.",
        ),
        common_mistakes={
            **PREFIXES,
            "b * k * n * s": "this counts every GPU as a replica: TP · PP = 8 GPUs share one.",
            "b * k * n / t * s": "four times too much: the pipeline's stages share one replica.",
            "b * k * n / p * s": "twice too much: the GPUs of a tensor-parallel group share one "
            "replica.",
            "b * k * d**2 * s": "twelve times too much: one replica takes its micro-batch once a "
            "pass, and the replicas are counted already.",
            "k * d * s": "four times too little: a pass takes a whole micro-batch.",
            "b * k * s": "this is one replica's part: there are several.",
            "b * d * s": "this is one pass of each replica, not all the passes of a step.",
            "b * k * d": "these are sequences: each has 2,048 tokens.",
        },
        values={"b": 4, "k": 32, "n": 96, "t": 2, "p": 4, "d": 12, "s": 2048},
    ),
    "batch-b": MultipleChoice(
        key=lambda: "TP 8, PP 2",
        options=_SPLITS,
        followups=[
            Question(
                "put a share such as 50 % in place of your choice. With TP 8 and PP 4, what share "
                "of a step do the stages wait?",
                _WAITING,
            )
        ],
    ),
    "batch-c": Numeric(
        key=lambda: _step(4),
        asked="s",
        unit=lambda number: f"{units.digits(number)} s, in eight passes of 4",
        tolerance=0.005,
        hint=(
            "How many passes does a replica make, and how long does a stage wait?",
            "A step is k + PP − 1 turns of a stage, each as long as a pass; try each column.",
        ),
        common_mistakes=_MISTAKEN_STEPS,
    ),
    "batch-d": OwnBatch(),
}


# --- predictions


def _bloom_seconds() -> dict[str, float]:
    """The seconds of a step by its micro-batch, as BLOOM's engineers measured them."""
    tried = tried_micro_batches()
    return {f"{row['micro_batch_size']}": float(row["seconds_per_iteration"]) for row in tried}


def _fastest() -> str:
    seconds = _bloom_seconds()
    return min(seconds, key=lambda micro: seconds[micro])


PREDICTIONS: dict[str, Prediction] = {
    "batch-bloom": Prediction(
        truth=_fastest,
        why="Try all four below, and watch which part of the bar shrinks and which grows.",
        options={
            "1": "Small passes keep the pipeline busy. But each of them has a fixed part.",
            "2": "This is between the two extremes, only a little early.",
            "4": "Neither the smallest pass nor the largest.",
            "8": "It has the fewest passes. But each of them is long.",
        },
    )
}
