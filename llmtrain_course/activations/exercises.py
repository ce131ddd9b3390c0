"""Exercises of chapter 06: a layer's bytes, what makes a step fit, one's own run."""

from __future__ import annotations

from collections.abc import Callable

from llmtrain_course.activations.formulas import bytes_kept, largest_micro_batch
from llmtrain_course.kit.cards import capacity_of
from llmtrain_course.kit.exercise import (
    GIBI,
    HINT,
    NOT_YET,
    PREFIXES,
    Answer,
    Design,
    Exercise,
    Function,
    Grade,
    MultipleChoice,
    Numeric,
    Prediction,
    design_of,
    entry,
    read_as,
    unanswered,
)
from llmtrain_course.kit.kinds import FillIn
from llmtrain_helpers import published, units
from llmtrain_helpers.activations import (
    count_activations,
    gpt_activation_bytes,
    recompute_flops,
    step_timeline,
)
from llmtrain_helpers.checks import Result, choice, count, show
from llmtrain_helpers.flops import RECOMPUTE, EveryRecompute, count_flops
from llmtrain_helpers.model.names import known_model
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.precision import RecipeName

_RECIPE: RecipeName = "bf16"

# --- activations-a: the GPT of 22 billion parameters, four sequences


def _bytes_of_22b() -> Result:
    """Bytes of the 22B GPT without dropout on the scores: no mask, and no scores after it."""
    with_dropout = gpt_activation_bytes(48, 6144, 64, 2048, micro_batch_size=4)
    return with_dropout - 3 * 64 * 2048**2 * 4 * 48


# --- activations-b: one layer of a Llama


def llama_layer(s: int, b: int, h: int, f: int, ad: int, kd: int) -> Result:
    """Bytes of a Llama's layer, with heads of size 1, for only the sums of sizes enter."""
    model = Transformer.llama(1, h, ad, kd, f, 1, s, head_dim=1)
    return count_activations(model, b).layers


_LLAMA_MISTAKES: dict[str, Callable[..., Result]] = {
    "You've counted values, but each needs 2 bytes.": (
        lambda s, b, h, f, ad, kd: llama_layer(s, b, h, f, ad, kd) / 2
    ),
    "The gate stores four tensors of width f: its output before and after the activation, the "
    "other branch, and their product.": (
        lambda s, b, h, f, ad, kd: llama_layer(s, b, h, f, ad, kd) - 2 * s * b * f
    ),
    "Two tensors of width f would be a plain MLP, but a gate stores four.": (
        lambda s, b, h, f, ad, kd: llama_layer(s, b, h, f, ad, kd) - 4 * s * b * f
    ),
    "The hidden state is stored four times, as the input of two norms, of attention and of the "
    "MLP.": (lambda s, b, h, f, ad, kd: llama_layer(s, b, h, f, ad, kd) - 4 * s * b * h),
    "K and V are two separate tensors.": (
        lambda s, b, h, f, ad, kd: llama_layer(s, b, h, f, ad, kd) - 2 * s * b * kd
    ),
    "Attention stores Q and its own output, which are two tensors of width ad.": (
        lambda s, b, h, f, ad, kd: llama_layer(s, b, h, f, ad, kd) - 2 * s * b * ad
    ),
    "K and V are as wide as the key-value heads, kd, not as the query heads.": (
        lambda s, b, h, f, ad, kd: llama_layer(s, b, h, f, ad, ad)
    ),
    "You've left out the micro-batch. Multiply by b.": (
        lambda s, b, h, f, ad, kd: llama_layer(s, b, h, f, ad, kd) / b
    ),
}
"""The reply to a function that computes this instead."""

# --- activations-c: what makes it fit


def peaks() -> dict[str, Result]:
    """The peak of each change to 4 sequences of 8,192 tokens on Llama 3.2 1B."""

    def peak(s: int, b: int, passes: int, recompute: EveryRecompute) -> Result:
        model = published.architecture("Llama-3.2-1B", s)
        return step_timeline(model, b, _RECIPE, recompute, 2, passes).peak.total

    return {
        "as it is": peak(8192, 4, 1, "none"),
        "full": peak(8192, 4, 1, "full"),
        "selective": peak(8192, 4, 1, "selective"),
        "two passes": peak(8192, 2, 2, "none"),
        "shorter": peak(4096, 4, 1, "none"),
    }


_PEAKS = {change: units.gigabytes(peak) for change, peak in peaks().items()}


def _share_of_recomputing() -> float:
    """What full recomputation adds to the FLOPs: the head is not run again."""
    model = published.architecture("Llama-3.2-1B", 8192)
    return float(recompute_flops(model, 1, "full") / count_flops(model, 1, "none").total)


_CHANGES = {
    "full": f"No: it fits, with {_PEAKS['full']}, but it costs "
    f"{units.percent(_share_of_recomputing())} more FLOPs, and there's a change that's free.",
    "selective": f"No: it still needs {_PEAKS['selective']}. Flash attention doesn't store "
    "scores, so there's nothing to drop.",
    "two passes": f"Right: it needs {_PEAKS['two passes']}, including the gradients that are now "
    "in memory during the second pass, and the batch and its FLOPs stay the same.",
    "shorter": f"No: it fits, with {_PEAKS['shorter']}, but the model would learn from "
    "other documents, and a batch would only contain half as many tokens.",
}

# --- activations-d: a run of one's own

_ENTRIES = ("model", "gpus", "chip", "sequence", "zero", "recompute", "micro")


def own_plan(design: Design, micro: int) -> Plan:
    """The plan of a step of two passes, so that gradients stay, with so many sequences in each."""
    sequences = 2 * micro * design["gpus"]
    return plan_run(
        known_model(design["model"], design["sequence"]),
        published.accelerator(design["chip"]),
        design["gpus"],
        sequences * design["sequence"],
        sequences,
        recompute=design["recompute"],
        zero_stage=design["zero"],
        micro_batch_size=micro,
    )


class OwnMemory(Exercise):
    """A design: a power of two that fits, with the plan's reserve; twice does not."""

    hint = (
        "Which of zero, recompute and micro brings it down?",
        "States shrink with zero and gpus, activations with recompute and micro.",
        "states / GPUs + activations + 8 · micro · sequence · vocabulary ≤ room.",
    )

    def grade(self, answer: Answer) -> Grade:
        """What the design holds at its peak, or what does not hold."""
        if unanswered(answer):
            return NOT_YET
        design = _checked(design_of(answer, _ENTRIES, "model=…, gpus=…"))
        micro = design["micro"]
        one = own_plan(design, 1)
        room = units.gigabytes(float(one.card - one.reserve))
        if not one.fits:
            least = units.gigabytes(float(one.memory.total))
            ways = ["recompute"] if design["recompute"] != "full" else []
            if design["zero"] < 3:
                ways.append("raise zero")
            ways.append("use more GPUs, a larger chip or a smaller model")
            return False, (
                f"Not even a micro-batch of 1 fits, because it needs {least} at the peak, of "
                f"{room}. You can {', or '.join(ways)}."
            )
        if micro & (micro - 1):
            below = 1 << micro.bit_length() - 1
            return False, (
                f"micro={micro} isn't a power of two, so it would rarely divide a batch. "
                f"Use {below} or {2 * below}."
            )
        plan = own_plan(design, micro)
        summary = f"{units.gigabytes(float(plan.memory.total))} at the peak, of {room}"
        if not plan.fits:
            return False, f"That's too much, because it needs {summary}. {HINT}"
        if own_plan(design, 2 * micro).fits:
            return False, f"That's {summary}, but {2 * micro} at a time would fit too."
        between = ""
        if micro > 1 and own_plan(design, micro + 1).fits:
            between = f" ({micro + 1} would fit too, but it isn't a power of two.)"
        return True, f"Right: {summary} that you can use.{between}"


def _checked(design: Design) -> Design:
    """A design whose entries make sense, its numbers read; a ValueError for any other."""
    positions = known_model(design["model"]).num_positions
    numbers = {name: entry(design, name, count) for name in ("gpus", "sequence", "micro")}
    if positions and numbers["sequence"] > positions:
        raise ValueError(f"{design['model']} only has positions for {positions:,} tokens")
    choice("recompute", design["recompute"], RECOMPUTE)
    zero = read_as("zero", design["zero"])
    if zero not in (0, 1, 2, 3):
        raise ValueError(f"zero={show(design['zero'])} isn't a stage. Use 0, 1, 2 or 3")
    return {**design, **numbers, "zero": zero}


def _scores(bytes_each: float) -> float:
    """Bytes of GPT-2 small's scores for each hidden value, with 512 tokens."""
    return bytes_each * 12 * 512 / 768


EXERCISES: dict[str, Exercise] = {
    "activations-layer": FillIn(
        key=lambda: bytes_kept(12 * 512 / 768) - bytes_kept(0),
        unit=lambda number: f"{number:g} bytes",
        hint=(
            "Which lines of the picture are hatched, and how many bytes does each score need?",
            "There are a · s scores per token, and h hidden values.",
        ),
        common_mistakes={
            "You've counted each score once, but it's stored three times, in 2, 1 and 2 bytes.": (
                lambda: _scores(1)
            ),
            "You've only counted softmax's result, but dropout's mask and output are stored as "
            "well as that.": (lambda: _scores(2)),
            "You've left out the mask, which needs 1 byte per score.": lambda: _scores(4),
            "That's per token, but a token has h hidden values.": lambda: 5 * 12 * 512,
            "You've counted all the bytes, but the 34 don't belong to the scores.": lambda: (
                34 + _scores(5)
            ),
        },
    ),
    "activations-a": Numeric(
        key=_bytes_of_22b,
        asked="bytes",
        unit=units.gigabytes,
        hint=(
            "Which part is off: the hidden values, or the bytes for each?",
            "Three lines belong to the scores, but without dropout only one of them is left.",
            "Softmax's result remains, but dropout's mask and output are gone. How much of the "
            "5as/h is left next to the 34?",
        ),
        common_mistakes={
            **PREFIXES,
            **GIBI,
            "key / l": "That's one layer, but there are 48.",
            "key / b": "That's one sequence, but there are 4 at a time.",
            "s*b*h*l * 34": "You've left out the scores, but softmax still stores its result.",
            "s*b*h*l * 2*a*s/h": "You've only counted the scores. Add the 34.",
            "s*b*h*l * (34 + a*s/h)": "You've counted one byte per score with as/h, but "
            "softmax's result needs 2 bytes.",
            "s*b*h*l * (34 + 2)": "You've left out as/h, the number of scores per hidden value.",
            "s*b*h*l * (34 + 5*a*s/h)": "That's with dropout on the scores. Without dropout, its "
            "mask and its output are gone.",
            "s*b*h*l * (34 + 4*a*s/h)": "You've only removed the mask. Without dropout, the "
            "average of V uses softmax's result, which is already "
            "stored.",
            "s*b*h*l * (34 + 3*a*s/h)": "You've counted one tensor too many. Without dropout, "
            "its output is softmax's result itself, which is only "
            "stored once.",
            "s*b*h*l * (32 + 2*a*s/h)": "That's without any dropout, but the masks after "
            "attention and after the MLP are still stored.",
            "s*b*h*l * (34 + 2*a*s)": "There are a · s scores per token, so there are as/h per "
            "hidden value.",
        },
        values={"l": 48, "h": 6144, "a": 64, "s": 2048, "b": 4},
    ),
    "activations-b": Function(
        key=llama_layer,
        cases=[
            {"s": 8192, "b": 1, "h": 4096, "f": 14336, "ad": 4096, "kd": 1024},
            {"s": 4096, "b": 2, "h": 8192, "f": 28672, "ad": 8192, "kd": 1024},
            {"s": 2048, "b": 3, "h": 2048, "f": 5632, "ad": 4096, "kd": 512},
        ],
        hint=(
            "Which line is off? Count tensors, then their width, then 2 bytes each.",
            "Two norms, attention and the MLP have inputs of width h. Add Q, K, V, attention's "
            "output, and the gate's four tensors.",
            "Write down each tensor's width (h, ad, kd or f), add them up, and multiply by 2. "
            "K and V are as wide as the key-value heads.",
        ),
        common_mistakes=_LLAMA_MISTAKES,
    ),
    "activations-c": MultipleChoice(key=lambda: "two passes", options=_CHANGES),
    "activations-d": OwnMemory(),
}


# --- predictions


def _gpt3_bytes(sequence_length: int) -> Result:
    return gpt_activation_bytes(96, 12288, 96, sequence_length, 1)


def _largest(recompute: EveryRecompute) -> int:
    """The largest micro-batch of Llama 3.2 1B, 8,192 tokens, on an A100."""
    model = published.architecture("Llama-3.2-1B", 8192)
    return largest_micro_batch(model, capacity_of("A100-80"), _RECIPE, recompute)


def _gain() -> str:
    """How many times the largest micro-batch grows with recomputation, in words."""
    ratio = _largest("full") / _largest("none")
    return {1: "the same", 2: "twice", 10: "ten times", 20: "twenty times"}[round(ratio)]


PREDICTIONS: dict[str, Prediction] = {
    "activations-guess": Prediction(
        truth=lambda: _gpt3_bytes(4096) / _gpt3_bytes(2048),
        unit=lambda ratio: f"{units.digits(ratio)}× as much",
        asked="times",
        why="Of the 114 bytes per hidden value, 34 stay the same, while the 80 of the "
        "scores double with the sequence: 34 + 160 = 194. The number of hidden values also "
        "doubles. (Only the scores are quadratic, so by themselves they'd give 4.)",
    ),
    "activations-largest": Prediction(
        truth=_gain,
        why=f"The largest micro-batch rises from {_largest('none')} to {_largest('full')}. The "
        f"layers store 22.5× less, but now the logits fill "
        "the memory, with 128,256 numbers per token in each of three tensors at the loss.",
        options={
            "the same": "The layers really do drop almost everything.",
            "twice": "You remembered the head, which is never recomputed.",
            "ten times": "The head would have to shrink, too, and it doesn't.",
            "twenty times": "Looking only at the layers, that would be possible.",
        },
    ),
}
