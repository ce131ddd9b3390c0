"""Exercises of chapter 02: a layer's FLOPs, the share of the peak, your own batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llmtrain_course.kit.exercise import (
    HINT,
    NOT_YET,
    PERCENT,
    Answer,
    Exercise,
    Function,
    Grade,
    MultipleChoice,
    Numeric,
    Prediction,
    Question,
    read_as,
)
from llmtrain_course.kit.formula import Mistakes
from llmtrain_course.kit.kinds import FillIn
from llmtrain_helpers import published, units
from llmtrain_helpers.checks import Result, count
from llmtrain_helpers.flops import (
    RECOMPUTE,
    FlopCount,
    Recompute,
    achieved_flops_per_gpu,
    count_flops,
    gpt_flops,
)
from llmtrain_helpers.model.names import SEQUENCE, Model, known_model
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import count_parameters

# --- flops-a: one layer of another make


def layer_flops(h: int, f: int, k: int, s: int) -> Result:
    """Forward and backward FLOPs of one Llama layer for one sequence: the key."""
    model = Transformer.llama(1, h, h // 128, k // 128, f, 1, s)
    counted = count_flops(model, 1, "none")
    return counted.total - counted.head


_LAYER_MISTAKES: dict[str, Callable[[int, int, int, int], Result]] = {
    "You've only counted the forward pass. Backward costs another 4 per weight.": (
        lambda h, f, k, s: layer_flops(h, f, k, s) // 3
    ),
    "You've only counted the backward pass, but the forward pass runs first.": (
        lambda h, f, k, s: 2 * layer_flops(h, f, k, s) // 3
    ),
    "That's 2× too low, because a multiply-add is 2 FLOPs.": (
        lambda h, f, k, s: layer_flops(h, f, k, s) // 2
    ),
    "You've counted 8 per weight, but nothing is recomputed here.": (
        lambda h, f, k, s: 4 * layer_flops(h, f, k, s) // 3
    ),
    "You've left out the MLP's third matrix: it has 3hf weights here, not 2hf.": (
        lambda h, f, k, s: layer_flops(h, f, k, s) - 6 * s * h * f
    ),
    "Keys and values are narrower than queries here, so they're h × k each, not h × h.": (
        lambda h, f, k, s: layer_flops(h, f, h, s)
    ),
    "You've left out the scores, which combine every token with every token, twice.": (
        lambda h, f, k, s: layer_flops(h, f, k, s) - 12 * s**2 * h
    ),
    "The scores are two products: queries with keys, and then with the values.": (
        lambda h, f, k, s: layer_flops(h, f, k, s) - 6 * s**2 * h
    ),
    "The scores also run forward and backward, so they count 3 times, like the weights.": (
        lambda h, f, k, s: layer_flops(h, f, k, s) - 8 * s**2 * h
    ),
    "The scores keep h: narrower keys are shared, but the queries still have h numbers.": (
        lambda h, f, k, s: layer_flops(h, f, k, s) - 12 * s**2 * (h - k)
    ),
    "There are four matrices in 2h² + 2hk: Q and output of h × h, K and V of h × k.": (
        lambda h, f, k, s: layer_flops(h, f, k, s) - 6 * s * (h**2 + h * k)
    ),
}
"""What is said to a function that computes this instead."""


# --- flops-b: MFU from the seconds of a step

_RUN = {
    "num_layers": 48,
    "hidden_size": 8192,
    "vocab_size": 50304,
    "sequence_length": 4096,
    "batch_size": 512,
}
_SECONDS, _GPUS, _PEAK = 14.6, 128, 989.5e12


def _share_of_peak(flops: Result) -> float:
    """The share of the peak of flops-b's GPUs that these FLOPs per step are."""
    return float(achieved_flops_per_gpu(flops, _SECONDS, _GPUS)) / _PEAK


def _mfu() -> float:
    return _share_of_peak(gpt_flops(**_RUN, recompute="none"))


def _wrong_mfus() -> Mistakes:
    """The answers to flops-b if you count too much, or leave a term out."""
    l, h, V, s, B = _RUN.values()
    F = {recompute: gpt_flops(**_RUN, recompute=recompute) for recompute in RECOMPUTE}
    shorter = gpt_flops(l, h, V, 2048, B, "none")
    head = 6 * B * s * h * V
    return {
        _share_of_peak(F["full"]): "You've included the recomputed work, so that's the HFU.",
        _share_of_peak(F["selective"]): "You've included the scores of the "
        "recomputed pass, but MFU counts nothing twice.",
        _share_of_peak(72 * B * s * l * h**2 + head): "You've left out the scores, 12Bs²lh.",
        _share_of_peak(F["none"] - head): "You've left out the output head, 6BshV.",
        _share_of_peak(shorter): "You've used s = 2,048, but here it's 4,096.",
    }


# --- flops-c: the slip behind somebody's figure

STATED = 0.184
"""The MFU that the colleague of flops-c states."""


def readings() -> dict[str, float]:
    """The MFU of the colleague's run with each mistake, and with none."""
    shape = {"num_layers": 36, "hidden_size": 4096, "vocab_size": 51200}

    def share(s: int, recompute: Recompute, peak: float) -> float:
        F = gpt_flops(**shape, sequence_length=s, batch_size=512, recompute=recompute)
        return float(achieved_flops_per_gpu(F, 13.8, 32)) / peak

    return {
        "none": share(2048, "none", 312e12),
        "recomputation": share(2048, "full", 312e12),
        "sparse peak": share(2048, "none", 624e12),
        "sequence length": share(1024, "none", 312e12),
    }


def utilizations(recompute: Recompute) -> tuple[float, float]:
    """The MFU and HFU of GPT-3 on 64 A100s, as published with this recomputation."""
    row = next(r for r in published.rows("recomputation_runs") if r["name"] == "175B")
    model = published.architecture("GPT-3 175B")
    F = count_flops(model, row["global_batch_size"], recompute)
    at_peak = row[f"seconds_{recompute}"] * row["num_gpus"] * row["peak_flops"]
    return F.model / at_peak, F.total / at_peak


def _mistake() -> str:
    """The mistake whose reading is the colleague's figure."""
    reading = min(readings(), key=lambda name: abs(readings()[name] - STATED))
    return {"sparse peak": "sparse", "sequence length": "length", "recomputation": "recomputed"}[
        reading
    ]


def both_mistakes() -> float:
    """The colleague's share if the log counts the recomputed work as well."""
    shares = readings()
    return shares["recomputation"] * shares["sparse peak"] / shares["none"]


@dataclass(frozen=True)
class Diagnosis(Exercise):
    """(MFU, mistake): the right number first, then what made the wrong one."""

    mfu: Numeric
    mistake: MultipleChoice
    followups: Sequence[Question] = ()

    def key(self) -> tuple[float, str]:
        """The right MFU and the mistake."""
        return self.mfu.key(), self.mistake.key()

    def grade(self, answer: Answer) -> Grade:
        """Grade the number first, and the mistake if the number is right."""
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise ValueError("Give two things: (mfu, mistake)")
        if any(part is None for part in answer):
            return NOT_YET
        mfu, mistake = answer
        if isinstance(mfu, str) and not re.search("[0-9]", mfu):
            raise ValueError("The MFU goes first, then the mistake: (mfu, mistake)")
        right, sentence = self.mfu.grade(mfu)
        return self.mistake.grade(mistake) if right else (right, f"Fix the MFU first. {sentence}")

    def moves_on(self, answer: Answer) -> bool:
        """Another question follows a wrong mistake, but not a wrong number."""
        return bool(self.mfu.grade(answer[0])[0])

    def hints(self) -> tuple[str, ...]:
        """The hints that lead to the MFU."""
        return self.mfu.hints()


# --- flops-d: the batch of your own run

SHARE, LEAST, MOST = 0.35, 5.0, 10.0
"""MFU that is assumed, as in notebook 00, and the seconds of a step."""


def own_seconds(model: Model, num_gpus: int, batch: int, chip: str = "A100 80GB SXM") -> float:
    """Seconds of a step of one's own run, each GPU at 35% of its peak."""
    return float(_own_work(model, batch).total) / _own_rate(num_gpus, chip)


def _own_work(model: Model, batch: int) -> FlopCount:
    """FLOPs of a step of one's own run."""
    shape = known_model(model)
    return count_flops(shape, batch, "none", sequence_length=_own_length(shape))


def _own_length(shape: Transformer) -> int:
    return min(SEQUENCE, int(shape.sequence_length))


def _own_rate(num_gpus: int, chip: str) -> float:
    """FLOP/s of all GPUs of one's own run."""
    accelerator = published.accelerator(chip)
    return float(num_gpus * SHARE * accelerator.peak(accelerator.training_format))


def _why_longer(shape: Transformer, num_gpus: int, batch: int, chip: str) -> str:
    """Why a step takes too long though 6 FLOPs per parameter and token say that it doesn't."""
    tokens, rate = _own_length(shape), _own_rate(num_gpus, chip)
    work = _own_work(shape, batch)
    first_try = 6 * count_parameters(shape).active * tokens * batch / rate
    if first_try > MOST or (work.total - work.scores) / rate > MOST:
        return ""
    return (
        f" With 6 FLOPs per parameter and token it'd be {units.digits(first_try)} s, but that "
        f"leaves out the attention scores. At {tokens:,} tokens they're "
        f"{units.percent(work.scores / work.total)} of the work."
    )


class OwnBatch(Exercise):
    """(model, GPUs, chip, batch): any batch whose step takes 5 to 10 seconds.

    Without a chip it is an A100.
    """

    hint = (
        "The seconds are proportional to the batch.",
        f"They're F / (GPUs · X), where X is {units.percent(SHARE)} of the peak.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Grade the batch by whether its step's time is in the range."""
        if not isinstance(answer, (tuple, list)) or len(answer) not in (3, 4):
            return False, "Give four things: (model, gpus, chip, my_batch)."
        model, gpus, *chips, batch = answer
        if batch is None:
            return NOT_YET
        chip = published.accelerator(*chips or ["A100 80GB SXM"])
        shape = known_model(model)
        n = int(count("my_gpus", read_as("my_gpus", gpus)))
        B = int(count("my_batch", read_as("my_batch", batch)))
        seconds = own_seconds(shape, n, B, chip.name)
        summary = f"A step of {units.plural(B, 'sequence')} takes {units.digits(seconds)} s"
        if LEAST <= seconds <= MOST:
            a_day = units.count(units.DAY / seconds)
            return True, f"Right. {summary}, and there are {a_day} of them in a day."
        if B == 1 and seconds > MOST:
            return True, f"Right. {summary}, and you can't have fewer. More GPUs would help."
        if seconds < LEAST:
            return False, f"{summary}, which is less than {LEAST:g}. {HINT}"
        why = _why_longer(shape, n, B, chip.name)
        return False, f"{summary}, which is more than {MOST:g}.{why} {HINT}"


def _layer(weights: int = 12, products: int = 2, flops_each: int = 2) -> int:
    """FLOPs of one of GPT-3's layers, forward, for one sequence of 2,048 tokens."""
    h, s = 12288, 2048
    return flops_each * weights * h**2 * s + products * 2 * s**2 * h


EXERCISES: dict[str, Exercise] = {
    "flops-layer": FillIn(
        key=_layer,
        unit=units.flops,
        hint=(
            "Each of the 12h² weights is used by each of the s tokens.",
            "A weight costs 2 FLOP per token, and each of the two products costs 2s²h.",
        ),
        common_mistakes={
            "You've only counted the layer's weights, without its scores.": lambda: _layer(
                products=0
            ),
            "You've counted one product of the scores, but there are two.": lambda: _layer(
                products=1
            ),
            "A weight costs 2 FLOP per token, because it multiplies and adds.": lambda: _layer(
                flops_each=1
            ),
            "You've included backward, which would be 6 per weight and token.": lambda: (
                3 * _layer()
            ),
            "You've only counted attention's four matrices.": lambda: _layer(weights=4),
            "You've only counted the MLP's matrices.": lambda: _layer(weights=8),
        },
    ),
    "flops-a": Function(
        key=layer_flops,
        cases=[
            {"h": h, "f": f, "k": k, "s": s}
            for h, f, k, s in [
                (2048, 8192, 512, 4096),
                (5120, 13824, 1280, 2048),
                (8192, 28672, 1024, 32768),
            ]
        ],
        common_mistakes=_LAYER_MISTAKES,
        hint=(
            "Look at the parts one by one: projections, MLP, scores.",
            "Each weight costs 6 per token. Which weights does the MLP have?",
        ),
    ),
    "flops-b": Numeric(
        key=_mfu,
        asked="share",
        unit=units.percent,
        hint=(
            "Compute the work first, then the rate of one GPU, then its share of the peak.",
            "F has three terms (weights, scores and head), and MFU counts nothing twice.",
        ),
        common_mistakes={
            **PERCENT,
            "key / 2": "That's 2× too low. Did you use the sparse peak, or count a multiply-add "
            "once?",
            "2 * key": "That's 2× too high, because a multiply-add is 2 FLOPs, not 4.",
            "key * 4 / 3": "You've included the recomputed work, so that's the HFU.",
            "key / 3": "You've only counted the forward pass.",
            "key * 2 / 3": "You've only counted the backward pass.",
            "128 * key": "You've divided all 128 GPUs by the peak of one.",
            "key * 989.5 / 312": "You've used the peak of an A100, but these are H100s.",
            **_wrong_mfus(),
        },
    ),
    "flops-c": Diagnosis(
        Numeric(
            key=lambda: readings()["none"],
            asked="share",
            unit=units.percent,
            hint=(
                "Which work does MFU count, and over which peak?",
                "Leave out the recomputed pass, and divide by the dense peak of an A100.",
            ),
            common_mistakes={
                **PERCENT,
                "key / 2": "That's their figure, the share of 624, but that peak is for matrices "
                "in which half the numbers are zeros.",
                "32 * key": "You've divided all 32 GPUs by the peak of one.",
                readings()["recomputation"]: "You've included the recomputed work, so that's "
                "the HFU.",
                readings()["sequence length"]: "You've used s = 1,024, but here it's 2,048.",
            },
        ),
        MultipleChoice(
            key=_mistake,
            options={
                "sparse": f"Right: the MFU is {units.percent(readings()['none'])}. Over 624 "
                "TFLOP/s, the peak for matrices that are half zeros, it shrinks to the 18.4% in "
                f"the log. GPT-3 above, which also recomputes everything, reaches "
                f"{units.percent(utilizations('full')[0])}.",
                "length": f"No. If the sequences were half as long, the log would show "
                f"{units.percent(readings()['sequence length'])}, which is close to "
                f"18.4% but not equal.",
                "recomputed": f"No. More work in the same time would give a larger share, "
                f"{units.percent(readings()['recomputation'])} instead of 18.4%.",
            },
        ),
        followups=[
            Question(
                "the log still uses a peak of 624 TFLOP/s, and now it also counts the recomputed "
                "work. Which share does it show?",
                Numeric(
                    key=both_mistakes,
                    asked="share",
                    unit=units.percent,
                    hint=(
                        "Which work is counted, and over which peak?",
                        "Count the work with its recomputed pass, and divide by 624 TFLOP/s.",
                    ),
                    common_mistakes={
                        **PERCENT,
                        "2 * key": "You've used the dense peak, but the log uses 624.",
                        STATED: "You've left out the recomputed work.",
                        readings()["none"]: "That's the MFU, without either mistake.",
                    },
                ),
            )
        ],
    ),
    "flops-d": OwnBatch(),
}


# --- predictions


def work_ratio() -> float:
    """The work of GPT-3 at 32,768 tokens per sequence, relative to 2,048, with equal tokens."""
    short = gpt_flops(96, 12288, 51200, 2048, 1536, "none")
    long = gpt_flops(96, 12288, 51200, 32768, 96, "none")
    return float(long / short)


def _growth() -> str:
    """The option that names how much the work grows."""
    ratio = work_ratio()
    if ratio < 1.01:
        return "the same"
    return "less than twice" if ratio < 2 else f"{round(ratio)} times"


def _busier_recomputation() -> str:
    """The recomputation with the higher HFU."""
    full, selective = (utilizations(recompute)[1] for recompute in ("full", "selective"))
    if abs(full - selective) < 0.005:
        return "equally"
    return "full" if full > selective else "selective"


def _why_busy() -> str:
    measured = {recompute: utilizations(recompute) for recompute in ("full", "selective")}
    shares = "; ".join(
        f"{recompute}: MFU {units.percent(mfu)}, HFU {units.percent(hfu)}"
        for recompute, (mfu, hfu) in measured.items()
    )
    return f"Recomputed {shares}, by our count."


PREDICTIONS: dict[str, Prediction] = {
    "flops-guess": Prediction(
        truth=_growth,
        why=f"The factor is {units.digits(work_ratio())}, because the scores cost s/6h of what the "
        f"weights cost: {units.percent(2048 / 6 / 12288)} before and "
        f"{units.percent(32768 / 6 / 12288)} after.",
        options={
            "the same": "The weights' work is the same, because they're used once per token, but "
            "each token's scores grow with the number of tokens it looks at.",
            "less than twice": "The weights' work doesn't change. Only the scores, which are "
            "small to begin with, grow 16-fold.",
            "16 times": "Only the scores cost 16× more. The weights, which are most of the work, "
            "process as many tokens as before.",
            "256 times": "The scores of one sequence do, but there are 16× fewer sequences, and "
            "the weights' work doesn't change.",
        },
    ),
    "flops-busy": Prediction(
        truth=_busier_recomputation,
        why=_why_busy(),
        options={
            "full": "The same model trains longer that way, but not because its GPUs work "
            "harder. They do more work, part of it twice.",
            "selective": "It finishes sooner, but its GPUs aren't any busier, because they do "
            "less work.",
            "equally": "The seconds saved are the work saved, so the chips are just as busy. "
            "Only the share of the work that the model needs is different.",
        },
    ),
    "flops-wrong": Prediction(
        truth=lambda: "length",
        why="The cell has sequences of 2,048 tokens, but the run had 1,024. Doubling the tokens "
        "doubles the work in the same seconds.",
        options={
            "length": "You could read it off the run as it's described above.",
            "GPUs": "Too few GPUs would give the same share, but there were 16.",
            "peak": "The peak of an older chip would give the same share, but an A100 can do 312 "
            "TFLOP/s.",
        },
    ),
}
