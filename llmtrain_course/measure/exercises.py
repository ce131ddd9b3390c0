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
    return f"{_MEASURED[experiment] / _MEASURED['as it is']:.2f} times"


_FIRST = {
    "the loader": f"no: with the same data again it is {_gain('same data')} the "
    "throughput, so a loader that takes no time at all gains no more.",
    "the link": f"right: alone it makes {_gain('alone')} as many, so it waits for "
    f"others; and four passes before an exchange make {_gain('four passes')} as many. "
    "What is paid once a step is the exchange: hide it, or pay it less often.",
    "a neighbour": "no: a slow neighbour falls behind with every pass, so four passes "
    f"would gain next to nothing; they gain {_gain('four passes')}.",
    "our GPU": "no: a faster GPU would wait longer; alone, the same GPU makes "
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
    _rate(_PASSES): "these are the sequences a second: over those of a single pass, please.",
    1.0: "as many as before: are update and exchange in there eight times? They come once a step.",
    _PASSES: "a step has eight times the sequences, but it takes longer too.",
    _PASSES / _gain_of_accumulation(): "this is how much longer a step takes: it has eight "
    "times the sequences.",
    _gain_with_step(8 * 0.15): "update and exchange are still there, once a step.",
    1 / _gain_of_accumulation(): "this is before over after: turn it over.",
    _gain_of_accumulation() - 1: "this is what is added: asked is how many times.",
    _gain_of_accumulation() / _PASSES: "a step has the sequences of all its passes.",
    _gain_of_accumulation(replace(_CLOCK, update=1e-12)): "the update is missing.",
    _gain_with_step(8 * 0.15 + 0.35): "the update is missing.",
    _gain_with_step(8 * 0.15 + 8 * 0.10 + 0.35): "the update comes once a step.",
    _gain_with_step(8 * 0.15 + 0.10 + 8 * 0.35): "this sends gradients after each pass, as "
    "without `no_sync()`: here they travel once a step.",
    _gain_of_accumulation(replace(_CLOCK, exchange=0)): "the exchange is missing.",
}
"""What one gets who leaves a part of the step out, or counts it in each pass."""

# --- measure-d: a test of one's own run

GPU = "H100 SXM"
SHARE, LEAST = 0.4, 0.2
"""The share of the peak that is assumed, and the least of the memory that a piece fills."""

_RECIPE: RecipeName = "bf16_fp32_grads"
_ENTRIES = ("model", "layers", "micro", "warm_up", "repeats", "peak")


class OwnTest(Exercise):
    """A design: a cut of a model that fits one GPU, and steps enough for a median."""

    hint = (
        "What is in memory at the loss, and which entry makes it larger?",
        "Layers and micro-batch: 14 bytes a parameter, what is kept, the logits.",
        "`step_timeline` of page 06 adds them up: give it your piece, and ask for its peak.",
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
                f"layers={layers}: take 2 at the least, so that embedding and head do not "
                f"rule, and at most the model's {model.num_layers}."
            )
        if warm_up < 2:
            return False, "the first step makes Adam's state: leave out two or more."
        if repeats < 5:
            return False, f"{repeats} timed: too few for a spread to speak of."
        if len(model.layers) > 1:
            return False, f"{design['model']} has layers of several kinds: take another model."
        limit = capacity_of(GPU)
        least = _peak(replace(model, layers=((2, model.layers[0][1]),)), 1)
        if least > limit:
            return False, (
                f"two layers of {design['model']} already take {units.gigabytes(least)}, where "
                f"{units.gigabytes(limit)} may be used: take a smaller model."
            )
        cut = replace(model, layers=((layers, model.layers[0][1]),))
        right, sentence = _sentence_on_size(cut, micro, warm_up + repeats, claim)
        problem = _problem_with_peak(claim, cut, micro)
        if problem:
            rest = "Your layers and micro fit; only the peak is off. " if right else ""
            return False, f"{problem} {rest}{HINT}"
        return right, sentence


def _peak(model: Transformer, micro: int) -> float:
    """Bytes at the peak of a step."""
    return float(step_timeline(model, micro, _RECIPE, "none").peak.total)


def _sentence_on_size(cut: Transformer, micro: int, steps: int, claim: float) -> tuple[bool, str]:
    """Check whether a cut fills the GPU as it should, and its steps end in time."""
    chip = published.accelerator(GPU)
    memory, peak = memory_of(GPU), _peak(cut, micro)
    summary = f"its peak is {units.gigabytes(peak)} of {units.gigabytes(memory)}"
    if claim > 1.05 * peak / 1e9:
        with_gradients = peak + 4 * float(count_parameters(cut).total)
        summary += f" ({units.gigabytes(with_gradients)} with gradients, as yours)"
    if peak > capacity_of(GPU):
        return False, f"{summary}: {units.gigabytes(RESERVE)} should stay free. {HINT}"
    if peak < LEAST * memory:
        return False, f"{summary}: more fits, of layers or of sequences at once."
    seconds = count_flops(cut, micro, "none").total / (SHARE * chip.peak("bf16"))
    if steps * seconds > 600:
        return False, f"{steps} steps take {units.duration(steps * seconds)}: time fewer."
    return True, (
        f"right: {cut.num_layers} layers; {summary}, and a step takes "
        f"{units.duration(seconds)} at 40 % of the peak rate. Write both down, and "
        "then measure."
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
        return f"peak={claim:g} looks like GiB: give it in GB, 10⁹ bytes."
    if claim > 1e6:
        return "this looks like bytes: give the peak in GB, 10⁹ bytes."
    mistakes = {
        "these are the states alone: what is kept, and the logits, come on top.": (14 * P, 18 * P),
        "two tensors of logits are missing, 4 bytes each for every token and word of "
        "the vocabulary.": (14 * P + activations, 18 * P + activations),
        "one of the two tensors of logits is missing.": (peak - logits,),
        "this is what a pass keeps; weights and Adam are there as well.": (activations,),
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
        hint=("FLOPs over FLOPs a second leave seconds.",),
        common_mistakes={
            "this is one over the seconds: divide the work by the rate.": lambda: (
                1 / recorded_step(256).ideal
            ),
            "work times rate is no time: divide.": lambda: (
                recorded_step(256).ideal * recorded_peak() ** 2
            ),
            "this is forward alone: the count has backward in it already.": lambda: (
                recorded_step(256).ideal / 3
            ),
            "the count has forward and backward already.": lambda: 3 * recorded_step(256).ideal,
        },
    ),
    "measure-a": Numeric(
        key=_flops_of_mlp,
        asked="FLOP",
        unit=units.flops,
        hint=(
            "Which products are done, and is each of them needed?",
            "Backward has a product for each input that wants a gradient.",
            "2·m·k·n each. Going back: who wants a gradient before W₁, and before W₂?",
        ),
        common_mistakes={
            **PREFIXES,
            **TWICE,
            "2 * one": "the forward pass only: going back, weights want gradients.",
            "3 * one": "three products, forward and backward together, are too few: going "
            "back, each matrix wants a gradient, and one more product passes it on.",
            "6 * one": "going back, which of the four gradients does nobody want?",
            "7 * one": "the two forward products stand in the sum already.",
            "4 * one": "the second matrix has two products going back: one for itself, one to "
            "pass on.",
            "one": "this is one product: count them.",
        },
        values={"one": 2 * TOKENS * HIDDEN * INNER},
    ),
    "measure-b": MultipleChoice(
        key=lambda: "the link",
        options=_FIRST,
        followups=[
            Question(
                "for how many seconds of its step does each GPU wait for the link?",
                Numeric(
                    key=lambda: 0.90 - 0.52,
                    asked="s",
                    unit=units.duration,
                    tolerance=0.005,
                    hint="Alone, a step has everything but that wait.",
                    common_mistakes={
                        0.52: "this is the step without the wait.",
                        0.90: "this is the whole step.",
                        0.90 - 0.88: "this is what the loader takes.",
                    },
                ),
            )
        ],
    ),
    "measure-c": Numeric(
        key=_gain_of_accumulation,
        asked="times",
        unit=lambda gain: f"{units.digits(gain)} times as many",
        tolerance=0.005,
        hint=(
            "Sequences a second before, and after: of a whole step each time.",
            "Eight passes, but how many updates and exchanges?",
            "What is paid in each pass, and what once a step? The cell shows k = 1.",
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
        why="Open the measured step below, part by part, and see what took the time.",
    )
}
