"""Exercises of chapter 12: a predicted step, what a step waits for, your own test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llmtrain_course.kit.cards import RESERVE, capacity_of, memory_of
from llmtrain_course.kit.exercise import (
    HINT,
    NOT_YET,
    PREFIXES,
    TWICE,
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
from llmtrain_course.measure.clock import StepClock
from llmtrain_course.measure.recorded import recorded_peak, recorded_step
from llmtrain_helpers import published, units
from llmtrain_helpers.activations import count_activations, step_timeline
from llmtrain_helpers.batch import StepTime
from llmtrain_helpers.checks import count
from llmtrain_helpers.flops import count_flops
from llmtrain_helpers.model.names import SEQUENCE, known_model
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.precision import RecipeName

# --- measure-a: the first MLP of a model, whose input needs no gradient

TOKENS, HIDDEN, INNER = 1024, 512, 2048


def _flops_of_mlp() -> int:
    """Two products forward; backward one for the first matrix, two for the second."""
    return (2 + 1 + 2) * 2 * TOKENS * HIDDEN * INNER


# --- measure-b: which change helps

_MEASURED = {
    "as it is": 16 / 0.90,
    "same data": 16 / 0.88,
    "alone": 16 / 0.52,
    "four passes": 64 / 2.46,
}
"""Sequences a second on each GPU, of each experiment."""


def _gain(experiment: str) -> str:
    return f"{_MEASURED[experiment] / _MEASURED['as it is']:.2f}×"


_FIRST = {
    "the loader": f"No. With the same data again you get {_gain('same data')} the "
    "throughput, so even an instant loader wouldn't gain more.",
    "the link": f"Right. Alone, the GPU processes {_gain('alone')} as many, so it waits for "
    f"others, and four passes per exchange give {_gain('four passes')} as many. "
    "You pay for the exchange once per step, so hide it or do it less often.",
    "a neighbour": f"No. A slow neighbour falls behind in every pass, so four passes would barely "
    f"help, but the throughput is {_gain('four passes')} as high.",
    "our GPU": "No. A faster GPU would only wait longer. Alone, the same GPU processes "
    f"{_gain('alone')} as many.",
}

# --- measure-c: accumulation over a slow link

_CLOCK = StepClock(StepTime(0.03, 50), exchange=0.35, update=0.10, overlap=False)
_MICRO, _PASSES = 6, 8  # a pass of 6 takes 0.15 s


def _rate(passes: int, clock: StepClock = _CLOCK) -> float:
    """Sequences a second, in so many passes a step."""
    return clock.throughput(_MICRO, passes)


def _gain_of_accumulation(clock: StepClock = _CLOCK) -> float:
    """How many times as many sequences a second eight passes make as one."""
    return _rate(_PASSES, clock) / _rate(1, clock)


def _gain_with_step(seconds: float) -> float:
    """The gain, if a step of eight passes took so many seconds."""
    return _PASSES * _MICRO / seconds / _rate(1)


_MISTAKEN_GAINS: Mistakes = {
    _rate(_PASSES): "That's the sequences per second. Divide it by the same number for a single "
    "pass.",
    1.0: "That's no gain. Did you count update and exchange eight times, although they happen "
    "once per step?",
    _PASSES: "A step processes eight times the sequences, but it's also longer.",
    _PASSES / _gain_of_accumulation(): "That's how much longer the step is, but it also processes "
    "eight times the sequences.",
    _gain_with_step(
        8 * 0.15
    ): "You've left out update and exchange, which still happen once per step.",
    1 / _gain_of_accumulation(): "You've divided the old rate by the new one. Do it the other way "
    "round.",
    _gain_of_accumulation() - 1: "That's only the increase. Give the whole ratio, old rate "
    "included.",
    _gain_of_accumulation()
    / _PASSES: "You've counted one pass, but a step includes the sequences of all its passes.",
    _gain_of_accumulation(replace(_CLOCK, update=1e-12)): "You've left out the update.",
    _gain_with_step(8 * 0.15 + 0.35): "You've left out the update.",
    _gain_with_step(8 * 0.15 + 8 * 0.10 + 0.35): "The update only happens once per step.",
    _gain_with_step(8 * 0.15 + 0.10 + 8 * 0.35): "You've sent the gradients after each pass, as "
    "you would without `no_sync()`, but here they're "
    "sent once per step.",
    _gain_of_accumulation(replace(_CLOCK, exchange=0)): "You've left out the exchange.",
}
"""The gains you get if you leave out a part of the step, or count it in each pass."""

# --- measure-d: a test of one's own run

GPU = "H100 SXM"
SHARE, LEAST = 0.4, 0.2
"""The share of the peak that is assumed, and the least of the memory that a piece fills."""

_RECIPE: RecipeName = "bf16_fp32_grads"
_ENTRIES = ("model", "layers", "micro", "warm_up", "repeats", "peak")


class OwnTest(Exercise):
    """A design: a cut of a model that fits one GPU, and steps enough for a median."""

    hint = (
        "What's in memory at the loss, and which entry makes it larger?",
        "Layers and micro-batch decide it: 14 bytes per parameter, plus activations and logits.",
        "`step_timeline` from chapter 06 adds them up if you give it your piece. Look at its peak.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Grade the design by the first condition that doesn't hold."""
        if unanswered(answer):
            return NOT_YET
        design = design_of(answer, _ENTRIES, "model=…, layers=…")
        model = known_model(design["model"])
        model = replace(model, sequence_length=min(SEQUENCE, int(model.sequence_length)))
        layers, micro = (int(entry(design, name, count)) for name in ("layers", "micro"))
        warm_up = int(entry(design, "warm_up", lambda name, number: count(name, number, least=0)))
        repeats = int(entry(design, "repeats", count))
        claim = float(entry(design, "peak"))
        if not 2 <= layers <= model.num_layers:
            return False, (
                f"layers={layers}: use at least 2, so that embedding and head don't "
                f"dominate, and at most the model's {model.num_layers}."
            )
        if warm_up < 2:
            return False, "The first step creates Adam's state, so leave out at least two."
        if repeats < 5:
            return False, f"You've timed {repeats}, which is too few to see how they spread."
        if len(model.layers) > 1:
            return False, f"{design['model']} has several kinds of layers, so use another model."
        limit = capacity_of(GPU)
        least = _peak(replace(model, layers=((2, model.layers[0][1]),)), 1)
        if least > limit:
            return False, (
                f"Two layers of {design['model']} already need {units.gigabytes(least)}, but you "
                f"can only use {units.gigabytes(limit)}. Select a smaller model."
            )
        cut = replace(model, layers=((layers, model.layers[0][1]),))
        right, sentence = _sentence_on_size(cut, micro, warm_up + repeats, claim)
        problem = _problem_with_peak(claim, cut, micro)
        if problem:
            rest = "Your layers and micro fit, so only the peak is off. " if right else ""
            return False, f"{problem} {rest}{HINT}"
        return right, sentence


def _peak(model: Transformer, micro: int) -> float:
    """Bytes at the peak of a step."""
    return float(step_timeline(model, micro, _RECIPE, "none").peak.total)


def _sentence_on_size(cut: Transformer, micro: int, steps: int, claim: float) -> tuple[bool, str]:
    """Check whether a cut fills the GPU as it should, and its steps end in time."""
    chip = published.accelerator(GPU)
    memory, peak = memory_of(GPU), _peak(cut, micro)
    summary = f"Its peak is {units.gigabytes(peak)} of {units.gigabytes(memory)}"
    if claim > 1.05 * peak / 1e9:
        with_gradients = peak + 4 * float(count_parameters(cut).total)
        summary += f" ({units.gigabytes(with_gradients)} with gradients, as yours)"
    if peak > capacity_of(GPU):
        return False, f"{summary}, but {units.gigabytes(RESERVE)} should stay free. {HINT}"
    if peak < LEAST * memory:
        return False, f"{summary}. You can fit more layers, or more sequences at once."
    seconds = count_flops(cut, micro, "none").total / (SHARE * chip.peak("bf16"))
    if steps * seconds > 600:
        return False, f"{steps} steps take {units.duration(steps * seconds)}, so time fewer."
    return True, (
        f"Right, {cut.num_layers} layers. {summary}, and a step takes "
        f"{units.duration(seconds)} at 40% of the peak rate. (With {_RECIPE}, gradients are in "
        "32 bits, as in Megatron's bf16.) Write both down, then measure."
    )


def _problem_with_peak(claim: float, cut: Transformer, micro: int) -> str:
    """Explain what's wrong with a predicted peak in GB; empty within a twentieth.

    With the gradients it is right too: a step of several passes has them at its peak.
    """
    peak = _peak(cut, micro) / 1e9
    P = float(count_parameters(cut).total) / 1e9
    activations = float(count_activations(cut, micro).total) / 1e9
    logits = float(4 * micro * cut.sequence_length * cut.vocab_size) / 1e9
    right = (peak, peak + 4 * P)
    if _is_near(claim, right, 0.05):
        return ""
    if _is_near(claim * units.GiB / units.GB, right, 0.005):
        return f"peak={claim:g} looks like GiB. Give it in GB, 10⁹ bytes."
    if claim > 1e6:
        return "That looks like bytes. Give the peak in GB, 10⁹ bytes."
    mistakes = {
        "You've only counted the states. Add the activations and logits.": (14 * P, 18 * P),
        "You've left out two tensors of logits, each with 4 bytes per token and word of the "
        "vocabulary.": (14 * P + activations, 18 * P + activations),
        "You've left out one of the two tensors of logits.": (peak - logits,),
        "That's only what a pass stores. Add the weights and Adam's states.": (activations,),
    }
    for cause, values in mistakes.items():
        if _is_near(claim, values, 0.02):
            return f"peak={claim:g} GB: {cause}"
    side = "much" if claim > peak else "little"
    return f"peak={claim:g} GB is too {side} for these layers and sequences."


def _is_near(claim: float, values: Sequence[float], share: float) -> bool:
    return any(abs(claim / value - 1) <= share for value in values)


EXERCISES: dict[str, Exercise] = {
    "measure-seconds": FillIn(
        key=lambda: recorded_step(256).ideal,
        unit=units.duration,
        hint=("FLOPs divided by FLOP/s give seconds.",),
        common_mistakes={
            "That's one over the seconds. Divide the work by the rate.": lambda: (
                1 / recorded_step(256).ideal
            ),
            "Work times rate isn't a time, so divide instead.": lambda: (
                recorded_step(256).ideal * recorded_peak() ** 2
            ),
            "That's only the forward pass, but the count already includes backward.": lambda: (
                recorded_step(256).ideal / 3
            ),
            "You've tripled it, but the count already includes forward and backward.": lambda: (
                3 * recorded_step(256).ideal
            ),
        },
    ),
    "measure-a": Numeric(
        key=_flops_of_mlp,
        asked="FLOP",
        unit=units.flops,
        hint=(
            "Which products are there, and is each of them needed?",
            "In backward, each input that needs a gradient costs one product.",
            "Each one costs 2·m·k·n. In backward, what needs a gradient before W₁, and before W₂?",
        ),
        common_mistakes={
            **PREFIXES,
            **TWICE,
            "2 * one": "You've only counted the forward pass, but in backward the weights need "
            "gradients.",
            "3 * one": "Three products, forward and backward together, aren't enough. In backward "
            "each matrix needs a gradient, and another product passes it on.",
            "6 * one": "Which of the four gradients in backward doesn't have to be computed?",
            "7 * one": "You've counted the two forward products again, but they're already in the "
            "sum.",
            "4 * one": "In backward, the second matrix needs two products: its own gradient, and "
            "the one it passes on.",
            "one": "That's a single product, so count the others, too.",
        },
        values={"one": 2 * TOKENS * HIDDEN * INNER},
    ),
    "measure-b": MultipleChoice(
        key=lambda: "the link",
        options=_FIRST,
        followups=[
            Question(
                "For how many seconds of its step does each GPU wait for the link?",
                Numeric(
                    key=lambda: 0.90 - 0.52,
                    asked="s",
                    unit=units.duration,
                    tolerance=0.005,
                    hint="A step on one GPU has everything except that wait.",
                    common_mistakes={
                        0.52: "That's the step without the wait.",
                        0.90: "That's the whole step.",
                        0.90 - 0.88: "That's the loader's time.",
                    },
                ),
            )
        ],
    ),
    "measure-c": Numeric(
        key=_gain_of_accumulation,
        asked="times",
        unit=lambda gain: f"{units.digits(gain)}× as many",
        tolerance=0.005,
        hint=(
            "Compare the sequences per second before and after, for a whole step each time.",
            "Eight passes, but how many updates and exchanges?",
            "What do you pay in each pass, and what once per step? The cell shows k = 1.",
        ),
        common_mistakes=_MISTAKEN_GAINS,
    ),
    "measure-d": OwnTest(),
}


# --- predictions


PREDICTIONS: dict[str, Prediction] = {
    "measure-step": Prediction(
        truth=lambda: recorded_step(256).ratio,
        unit=lambda ratio: f"{units.digits(ratio, 2)} times",
        asked="times",
        why="Show the measured step below, and see where the time goes.",
    )
}
