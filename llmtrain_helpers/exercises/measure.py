"""Exercises of chapter 11: what instruments show, what a step waits for, your test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.activations import count_activations, step_timeline
from llmtrain_helpers.batch import StepTime
from llmtrain_helpers.checks import count, one, quantity, refuse
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises.common import (
    HINT,
    PREFIXES,
    TWICE,
    UNANSWERED,
    Exercise,
    Numeric,
    Prediction,
    Word,
    read_as,
)
from llmtrain_helpers.flops import count_flops
from llmtrain_helpers.measure.clock import StepClock
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters

# --- 11-a: the first MLP of a model, whose input needs no gradient

TOKENS, HIDDEN, INNER = 1024, 512, 2048


def _counted() -> int:
    """Two products forward; backward one for the first matrix, two for the second."""
    return (2 + 1 + 2) * 2 * TOKENS * HIDDEN * INNER


# --- 11-b: which change helps

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

# --- 11-c: accumulation over a slow link

_CLOCK = StepClock(
    StepTime(0.03, 50), exchange=0.35, update=0.10, overlap=False
)  # a pass of 6 takes 0.15 s
_PASS, _MICRO, _PASSES = 0.15, 6, 8


def _rate(passes: int, update: float = 0.10, exchange: float = 0.35) -> float:
    clock = replace(_CLOCK, update=update, exchange=exchange)
    return clock.throughput(_MICRO, passes)


def _gained() -> float:
    """How many times as many sequences a second eight passes make as one."""
    return _rate(_PASSES) / _rate(1)


def _slip(gain: float) -> float:
    return gain / _gained()


def _without(**left_out: float) -> float:
    """The gain's slip where a part of the step is forgotten."""
    return _slip(_rate(_PASSES, **left_out) / _rate(1, **left_out))


# --- 11-d: a test of one's own run

GPU = "H100 SXM"
SHARE, FREE = 0.4, 0.2
"""The share of the peak that is assumed, and of the memory that stays free."""

_RECIPE = "bf16_fp32_grads"
_ASKED = ("model", "layers", "micro", "warm_up", "repeats", "peak")


@dataclass(frozen=True)
class OwnTest(Exercise):
    """A design: a cut of a model that fits one GPU, and steps enough for a median."""

    hint: tuple[str, ...]

    def judge(self, answer: Any) -> tuple[bool | None, str]:
        """What the test will show, or the first thing that does not hold."""
        if isinstance(answer, Mapping) and None in answer.values():
            return None, UNANSWERED
        model, layers, micro, warm_up, repeats = _test(answer)
        said = float(one("peak", read_as("peak", answer["peak"]), quantity))
        broken = _misdesigned(answer["model"], model, layers, warm_up, repeats)
        if broken:
            return False, broken
        cut = _cut(model, layers)
        wrong = _mispredicted(said, cut, micro)
        right, told = self._of_size(cut, micro, warm_up + repeats, said)
        if not wrong:
            return right, told
        fits = "Your layers and micro fit; only the peak is off. " if right else ""
        return False, f"{wrong} {fits}{HINT}"

    def _of_size(self, cut: Transformer, micro: int, steps: int, said: float) -> tuple[bool, str]:
        chip = published.accelerator(GPU)
        memory = float(chip.memory)
        peak = float(step_timeline(cut, micro, _RECIPE, "none").peak.total)
        told = f"its peak is {units.gigabytes(peak)} of {units.gigabytes(memory)}"
        if said > 1.05 * peak / 1e9:
            more = peak + 4 * float(count_parameters(cut).total)
            told += f" ({units.gigabytes(more)} with gradients, as yours)"
        if peak > (1 - FREE) * memory:
            return False, f"{told}: a fifth should stay free. {HINT}"
        if peak < 0.2 * memory:
            return False, f"{told}: more fits, of layers or of sequences at once."
        work = count_flops(cut, micro, "none").total
        seconds = work / (SHARE * chip.peak("bf16"))
        if steps * seconds > 600:
            return (False, f"{steps} steps take {units.duration(steps * seconds)}: time fewer.")
        return True, (
            f"right: {cut.num_layers} layers; {told}, and a step takes "
            f"{units.duration(seconds)} at 40 % of the peak rate. Write both down, and "
            "then measure."
        )

    def hints(self) -> tuple[str, ...]:
        """What to say at the first wrong answer, the second, and from then on."""
        return self.hint


def _misdesigned(name: str, model: Transformer, layers: int, warm_up: int, repeats: int) -> str:
    """What is wrong with a test whatever its peak; nothing if all holds."""
    if not 2 <= layers <= model.num_layers:
        return (
            f"layers={layers}: take 2 at the least, so that embedding and head do not "
            f"rule, and at most the model's {model.num_layers}."
        )
    if warm_up < 2:
        return "the first step makes Adam's state: leave out two or more."
    if repeats < 5:
        return f"{repeats} timed: too few for a spread to speak of."
    if len(model.layers) > 1:
        return f"{name} has layers of several kinds: take another model."
    least = float(step_timeline(_cut(model, 2), 1, _RECIPE, "none").peak.total)
    room = (1 - FREE) * float(published.accelerator(GPU).memory)
    if least <= room:
        return ""
    return (
        f"two layers of {name} already take {units.gigabytes(least)}, where "
        f"{units.gigabytes(room)} may be used: take a smaller model."
    )


def _cut(model: Transformer, layers: int) -> Transformer:
    """The model with fewer layers, which are all of one kind."""
    fewer: dict[str, Any] = {"num_layers": layers}
    return replace(model, **fewer)


def _mispredicted(said: float, cut: Transformer, micro: int) -> str:
    """What is wrong with a predicted peak, in GB; nothing within a twentieth.

    With the gradients it is right too: a step of several passes has them at its peak.
    """
    peak = float(step_timeline(cut, micro, _RECIPE, "none").peak.total) / 1e9
    P = float(count_parameters(cut).total) / 1e9
    kept = float(count_activations(cut, micro).total) / 1e9
    one_tensor = float(4 * micro * cut.sequence_length * cut.vocab_size) / 1e9
    if any(abs(said / right - 1) <= 0.05 for right in (peak, peak + 4 * P)):
        return ""
    if any(abs(said * 1.024**3 / right - 1) < 0.005 for right in (peak, peak + 4 * P)):
        return f"peak={said:g} looks like GiB: give it in GB, 10⁹ bytes."
    if said > 1e6:
        return "this looks like bytes: give the peak in GB, 10⁹ bytes."
    known = {
        "these are the states alone: what is kept, and the logits, come on top.": (14 * P, 18 * P),
        "two tensors of logits are missing, 4 bytes each for every token and word of "
        "the vocabulary.": (14 * P + kept, 18 * P + kept),
        "one of the two tensors of logits is missing.": (peak - one_tensor,),
        "this is what a pass keeps; weights and Adam are there as well.": (kept,),
    }
    for told, values in known.items():
        if any(abs(said / value - 1) < 0.02 for value in values):
            return f"peak={said:g} GB: {told}"
    side = "much" if said > peak else "little"
    return f"peak={said:g} GB is too {side} for these layers and sequences."


def _test(answer: Any) -> tuple[Transformer, int, int, int, int]:
    """The model, and the four numbers of a test; a ValueError for what is missing."""
    if not isinstance(answer, Mapping):
        refuse("answer", answer, "is no dict(model=…, layers=…, …)")
    missing = [name for name in _ASKED if name not in answer]
    if missing:
        refuse("answer", answer, f"leaves out {', '.join(missing)}")
    model = published.architecture(str(answer["model"]))
    model = replace(model, sequence_length=min(8192, int(model.sequence_length)))
    layers, micro, warm_up, repeats = (
        int(count(name, read_as(name, answer[name]), least=int(name != "warm_up")))
        for name in _ASKED[1:5]
    )
    return model, layers, micro, warm_up, repeats


EXERCISES: dict[str, Exercise] = {
    "11-a": Numeric(
        key=_counted,
        unit=units.flops,
        tolerance=0,
        hint=(
            "Which products are done, and is each of them needed?",
            "Backward has a product for each input that wants a gradient.",
            "2·m·k·n each. Going back: who wants a gradient before W₁, and before W₂?",
        ),
        slips=PREFIXES
        | TWICE
        | {
            2 / 5: "the forward pass only: going back, weights want gradients.",
            3 / 5: "three products, forward and backward together, are too few: going "
            "back, each matrix wants a gradient, and one more product passes it on.",
            6 / 5: "going back, which of the four gradients does nobody want?",
            7 / 5: "the two forward products stand in the sum already.",
            4 / 5: "the second matrix has two products going back: one for itself, one to pass on.",
            1 / 5: "this is one product: count them.",
        },
    ),
    "11-b": Word(key=lambda: "the link", options=_FIRST),
    "11-c": Numeric(
        key=_gained,
        unit=lambda gain: f"{units.digits(gain)} times as many",
        tolerance=0.005,
        hint=(
            "Sequences a second before, and after: of a whole step each time.",
            "Eight passes, but how many updates and exchanges?",
            "What is paid in each pass, and what once a step? The cell shows k = 1.",
        ),
        slips={
            _slip(_rate(_PASSES)): "these are the sequences a second: over those of "
            "a single pass, please.",
            _slip(1.0): "as many as before: are update and exchange in there eight "
            "times? They come once a step.",
            _slip(_PASSES): "a step has eight times the sequences, but it takes longer too.",
            _slip(_PASSES / _gained()): "this is how much longer a step takes: it "
            "has eight times the sequences.",
            _slip(_MICRO / _PASS / _rate(1)): "update and exchange are still there, once a step.",
            _slip(1 / _gained()): "this is before over after: turn it over.",
            _slip(_gained() - 1): "this is what is added: asked is how many times.",
            _slip(_gained() / _PASSES): "a step has the sequences of all its passes.",
            _without(update=1e-12): "the update is missing.",
            _slip(48 / (8 * 0.15 + 0.35) / _rate(1)): "the update is missing.",
            _slip(48 / (8 * 0.15 + 8 * 0.10 + 0.35) / _rate(1)): "the update comes once a step.",
            _slip(48 / (8 * 0.15 + 0.10 + 8 * 0.35) / _rate(1)): "this sends gradients "
            "after each pass, as without `no_sync()`: here they travel once a step.",
            _without(exchange=0): "the exchange is missing.",
        },
    ),
    "11-d": OwnTest(
        hint=(
            "What is in memory at the loss, and which entry makes it larger?",
            "Layers and micro-batch: 14 bytes a parameter, what is kept, the logits.",
            "Run the question's lines with your own layers and micro: they give the "
            "bytes of the peak.",
        )
    ),
}


# --- predictions


def _kept(hidden_size: int) -> float:
    shape = Transformer.gpt(4, hidden_size, 8, 1024, 256)
    return float(count_activations(shape, 2).total)


def _growth() -> str:
    """What becomes of the kept bytes when the hidden size is doubled."""
    ratio = _kept(512) / _kept(256)
    names = {"the same": 1, "twice": 2, "four times": 4}
    return next((n for n, x in names.items() if ratio == x), "not quite twice")


PREDICTIONS: dict[str, Prediction] = {
    "11-guess": Prediction(
        truth=_growth,
        why=f"It is {_kept(512) / _kept(256):.2f} times: each token's vectors are "
        "twice as long, but its log-probabilities have one number for each entry of "
        "the vocabulary, however wide the model is.",
        options={
            "the same": "That would be so if nothing of a token's vectors were kept.",
            "not quite twice": "You thought of the head.",
            "twice": "The layers' share does double.",
            "four times": "Weights do that: a matrix is wide and high. What is kept are vectors.",
        },
    )
}
