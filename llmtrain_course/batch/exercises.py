"""Exercises of chapter 04: batches, splits, micro-batches and a run of one's own."""

from __future__ import annotations

from llmtrain_course.batch.formulas import (
    NOISE_SCALE,
    BatchCost,
    batch_cost,
    batches_of_size,
    pipeline_seconds,
    tried_micro_batches,
)
from llmtrain_course.kit.exercise import (
    HINT,
    NOT_YET,
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
from llmtrain_helpers import published, units
from llmtrain_helpers.activations import count_activations
from llmtrain_helpers.batch import (
    StepTime,
    batch_tokens,
    critical_batch,
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


# --- batch-b: a batch for a run that is at a loss of 3

_BATCHES = {"0.5M": 5e5, "1M": 1e6, "2M": 2e6, "4M": 4e6, "8M": 8e6}
_AFFORDED = 4
"""Tokens that the run may use, in multiples of what a tiny batch needs."""


def _cost(batch: str) -> BatchCost:
    """What a batch costs at a loss of 3."""
    return batch_cost(_BATCHES[batch], float(critical_batch(3)))


def _best_batch() -> str:
    """The largest batch that the tokens allow."""
    afforded = [batch for batch in _BATCHES if _cost(batch).samples <= _AFFORDED]
    return max(afforded, key=lambda batch: _BATCHES[batch])


def _batch_reply(batch: str) -> str:
    """What a batch needs, and why it's right, too slow or too expensive."""
    cost, best = _cost(batch), _best_batch()
    tokens, updates = (f"{units.digits(x, 2)}×" for x in (cost.samples, cost.updates))
    if batch == best:
        return (
            f"Right: it needs {tokens} the tokens of a tiny batch, and only {updates} the updates "
            "of a huge one."
        )
    if cost.samples > _AFFORDED:
        saved = 1 - cost.updates / _cost(best).updates
        return (
            f"No: it needs {tokens} the tokens, but you can only pay for {_AFFORDED}×. "
            f"Compared with the best batch you can pay for, it would only save "
            f"{units.share(saved)} of the updates."
        )
    return (
        f"No: you can pay for it, but it needs {updates} the updates of a huge batch, and "
        f"another option needs fewer."
    )


_QUARTER = Numeric(
    key=lambda: float(NOISE_SCALE / 0.25**2),
    asked="sequences",
    unit=lambda number: f"{number:.0f} sequences",
    tolerance=0,
    hint="What happens to the miss if you make the batch four times larger?",
    common_mistakes={
        "key / 4": "That only halves the miss, which shrinks with the square root of the batch.",
        "key / 2": "Almost. To shrink the miss 4×, the batch has to grow by 4².",
        "key / 16": "That's the batch you start from.",
        0.25: "That's how far the batch misses. How many sequences do you need for that?",
    },
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
    _step(16): "16 sequences at once don't fit into memory.",
    _step(8): "8 is the largest micro-batch that fits, but then there are only 4 passes, so each "
    "stage waits for 3 of its 7 turns.",
    _step(
        2
    ): "If the micro-batch is 2, the stages wait less, but you pay the fixed part of a pass 2× "
    "as often.",
    _step(1): "If the micro-batch is 1, you pay the fixed part of a pass 4× as often as necessary.",
    _step(
        4, stages=1
    ): "That's only the passes of one stage, but it also waits while the pipeline fills and "
    "empties.",
    _step(8, stages=1): "You've used the largest micro-batch and left out the waiting, but the "
    "pipeline has to fill and empty.",
    _step(
        2, stages=1
    ): "That's a micro-batch of 2 without the waiting, but the pipeline has to fill and empty.",
    _PASS.seconds(4): "That's one pass, but the replica processes 32 sequences.",
    4: "Is this a micro-batch, or the seconds of the step, rounded? Give the seconds with three "
    "digits.",
    8: "That's a micro-batch, but you were asked for the seconds of the step.",
    11: "That's the number of turns, but each one is as long as a pass.",
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
        "Which entry changes the batch but not the split?",
        "The number of replicas is gpus / (tensor · pipeline), and accumulation sets the size.",
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
            return False, f"You can't split {n} GPUs into replicas of {t * p}."
        if p > layers:
            return False, f"You can't split {layers} layers into {p} stages."
        if t > 8 or (n > 8 and 8 % t):
            return False, f"TP {t} doesn't stay inside a node of 8."
        shape = of_length(model, min(s, int(model.sequence_length)))
        activations = float(count_activations(shape, micro).total) / t
        if activations > LARGEST:
            return False, (
                f"At {units.plural(micro, 'sequence')} at once, each GPU would store "
                f"{units.gigabytes(activations)} of activations, which is more than any GPU has. "
                "Use smaller passes, and more of them."
            )
        replicas = data_parallel_size(n, t, p)
        tokens = batch_tokens(global_batch_size(micro, k, replicas), s)
        right, sentence = _compare_with_published(tokens, replicas, count_parameters(model).total)
        if layers % p:
            sentence += (
                f" You can't split {layers} layers evenly over {p} stages, so some "
                f"stages get an extra layer, and the others wait for them."
            )
        return right, sentence


def _compare_with_published(tokens: float, replicas: int, parameters: float) -> tuple[bool, str]:
    """Whether models of this size were trained with such batches."""
    batches = batches_of_size(parameters)
    (least, small), (most, large) = batches[0], batches[-1]
    span = f"{units.count(least)} ({small}) to {units.count(most)} ({large})"
    if len(batches) > 2:
        span += f", with {units.count(batches[len(batches) // 2][0])} in the middle"
    summary = f"with {units.plural(replicas, 'replica')}, you train on {units.count(tokens)} tokens"
    if not 0.9 * least <= tokens <= 1.1 * most:
        size = "small" if tokens < least else "large"
        unheard = f"We don't know of any model this size with a batch that {size}. {HINT}"
        return False, f"{summary[0].upper()}{summary[1:]} per step. {unheard}"
    return True, f"Right: {summary} per step, and models of this size used {span}."


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
            "How many GPUs does one replica need?",
            "Each replica processes its micro-batch in every pass, and there are several replicas.",
        ),
        common_mistakes={
            "You've counted every GPU as a replica.": lambda: _bloom_batch(1),
            "You've counted every node as a replica, but a replica needs 48 GPUs, which is six "
            "nodes.": (lambda: _bloom_batch(8)),
            "That's one pass per replica, but an update includes more passes.": (
                lambda: _bloom_batch(passes=1)
            ),
            "That's one replica's part, but there are several.": lambda: 2 * 128,
            "That's the number of replicas, but each one processes many sequences.": lambda: (
                384 // 48
            ),
            "You've counted the passes of all replicas, but each pass processes a whole "
            "micro-batch.": (lambda: 8 * 128),
        },
    ),
    "batch-a": Numeric(
        key=_neox_tokens,
        asked="tokens",
        unit=lambda number: f"{units.exact(number)} tokens",
        tolerance=0,
        hint=(
            "Find out first how many copies of the model there are.",
            "One copy needs two GPUs times four stages, and each copy does all of its passes.",
        ),
        common_mistakes={
            **PREFIXES,
            "b * k * n * s": "You've counted every GPU as a replica, but TP · PP = 8 GPUs share "
            "one.",
            "b * k * n / t * s": "That's 4× too high, because the pipeline's stages share one "
            "replica.",
            "b * k * n / p * s": "That's 2× too high, because the GPUs of a tensor-parallel "
            "group share one replica.",
            "b * k * d**2 * s": "That's 12× too high. You've already counted the replicas, and "
            "each one processes its micro-batch once per pass.",
            "k * d * s": "That's 4× too low, because a pass processes a whole micro-batch.",
            "b * k * s": "That's one replica's part, but there are several.",
            "b * d * s": "That's one pass per replica, but a step runs several.",
            "b * k * d": "You've counted sequences, but each is 2,048 tokens long.",
        },
        values={"b": 4, "k": 32, "n": 96, "t": 2, "p": 4, "d": 12, "s": 2048},
    ),
    "batch-b": MultipleChoice(
        key=_best_batch,
        options={batch: _batch_reply(batch) for batch in _BATCHES},
        followups=[
            Question(
                "in the picture of forty batches, one of 8 sequences usually misses by the "
                "gradient's own length. How many sequences do you need to bring that down by a "
                "factor of 4?",
                _QUARTER,
            )
        ],
    ),
    "batch-c": Numeric(
        key=lambda: _step(4),
        asked="s",
        unit=lambda number: f"{units.digits(number)} s, in eight passes of 4",
        tolerance=0.005,
        hint=(
            "How many passes does a replica do, and how long does a stage wait?",
            "A step is k + PP − 1 turns of a stage, each as long as a pass. Try each column.",
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
            "1": "Small passes fill the pipeline well, but each of them pays for a fixed part.",
            "2": "You're between the two extremes, but slightly too low.",
            "4": "The best one is between the smallest pass and the largest.",
            "8": "Eight sequences at once need the fewest passes, but each pass is long.",
        },
    )
}
