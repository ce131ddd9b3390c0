"""Exercises of chapter 03: days, slips, an offer of GPUs, a run of your own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from llmtrain_helpers import units
from llmtrain_helpers.checks import Result, count, one, quantity
from llmtrain_helpers.duration import UTILIZATIONS, cost, seconds_from_iterations, training_seconds
from llmtrain_helpers.evidence.published import accelerator, architecture
from llmtrain_helpers.exercises.common import (
    HINT,
    NOT_YET,
    TENFOLD,
    Answer,
    Exercise,
    Judgement,
    Numeric,
    Prediction,
    Question,
    Word,
    entry,
    read_as,
)
from llmtrain_helpers.flops import achieved_flops_per_gpu, gpt_flops
from llmtrain_helpers.parameters import count_parameters, gpt_parameters


def _days(number: float) -> str:
    return f"{units.digits(number)} days"


LOW, LIKELY = UTILIZATIONS[:2]
"""Shares of the peak that whole runs have reached: few less, and the middle one."""


def _whole_percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


# --- 03-a: a rate that leaves recomputation out


def _thirteen_billion() -> Result:
    """Days of 13 billion parameters on 1.8 trillion tokens, at an MFU of 41 %."""
    X = 0.41 * 989.5e12
    return training_seconds(1.8e12, 13e9, 384, X, "none") / units.DAY


# --- 03-b: the copied calculation, whose sequence length has a slip: 1048 for 1024


def _rate_of_copy(sequence_length: int = 1024) -> Result:
    """FLOP/s of one GPU in the 18.4B case."""
    F = gpt_flops(40, 6144, 50257, sequence_length, 512, "full")
    return achieved_flops_per_gpu(F, 32.09, 16)


def _days_of_copy(sequence_length: int = 1024) -> Result:
    """The 18.4B case by 8TP/(nX), in days."""
    P = gpt_parameters(40, 6144, 50257, sequence_length)
    X = _rate_of_copy(sequence_length)
    return training_seconds(300e9, P, 16, X, "full") / units.DAY


def _days_by_iterations() -> Result:
    return seconds_from_iterations(300e9, 512, 1024, 32.09) / units.DAY


@dataclass(frozen=True)
class Copied(Exercise):
    """Tokens, rate and days of the copied calculation, in this order."""

    days: Numeric

    def key(self) -> Result:
        """The right days."""
        return self.days.key()

    def judge(self, answer: Answer) -> Judgement:
        """What lies in between first: slips that cancel leave the days as they are."""
        if not isinstance(answer, tuple | list) or len(answer) != 3:
            return False, "give three things: the tokens, the rate in FLOP/s, the days."
        if any(part is None for part in answer):
            return NOT_YET
        T, X, days = (
            float(one("answer", read_as("answer", x, unit), quantity))
            for x, unit in zip(answer, ("tokens", "FLOP/s", "days"), strict=True)
        )
        right, sentence = self.days.judge(days)
        if problem := _problem_with_tokens(T) or _problem_with_rate(X):
            return False, f"the days are right, but {problem}" if right else problem
        if right:
            exact = units.digits(_days_by_iterations())
            sentence += f" By iterations it is {exact} days: the formula leaves attention out."
        return right, sentence

    def hints(self) -> tuple[str, ...]:
        """The hints that lead to the days."""
        return self.days.hints()


def _problem_with_tokens(tokens: float) -> str:
    """What is wrong with the tokens of 03-b, if anything is."""
    if abs(tokens / 300e9 - 1) <= 0.005:
        return ""
    number = f"the tokens are {units.count(tokens)}"
    return f"{number}: say 10e09 in words." if tokens > 300e9 else f"{number}, too few."


_SLIPS_OF_RATE = {
    16: "it is that of all 16 GPUs: divide by 16.",
    1 / 16: "it is divided by 16 twice.",
    10: "it is ten times too much: 10e12 is ten tera.",
    0.1: "it is ten times too little: one tera is 1e12.",
    32.09: "the FLOPs of an iteration are not yet divided by its 32.09 seconds.",
    16 * 32.09: "this is the work of an iteration: divide by seconds and by GPUs.",
    0.75: "it leaves recomputation out: count with “full”.",
}
"""Factors by which the rate of 03-b may be wrong, and their cause."""


def _problem_with_rate(rate: float) -> str:
    """What is wrong with the rate of one GPU in 03-b, if anything is."""

    def near(factor: float, *sequence_lengths: int) -> bool:
        right = (float(_rate_of_copy(s)) for s in sequence_lengths)
        return any(abs(rate / factor / X - 1) <= 0.005 for X in right)

    if near(1, 1024):
        return ""
    for prefix, unit, factor in ((1e-12, "TFLOP/s", "1e12"), (1e-15, "PFLOP/s", "1e15")):
        if near(prefix, 1024, 1048):
            number = f"the rate is {units.digits(rate)}, so in {unit}"
            return f"{number}; give FLOP/s, times {factor}."
    number = f"the rate is {units.flops_per_second(rate)}"
    if near(1, 1048):
        return f"{number}: the sequence length is still 1048."
    for slip, cause in _SLIPS_OF_RATE.items():
        if near(slip, 1024, 1048):
            return f"{number}: {cause}"
    return f"{number}: give it in FLOP/s, of one GPU."


_DAYS_OF_COPY = Numeric(
    key=_days_of_copy,
    asked="days",
    unit=_days,
    tolerance=0.002,
    hint=(
        "there are three slips; read each number in the code aloud, with its unit.",
        "what are 10e09 and 10e12 in words? And is 1048 a power of two?",
    ),
    slips={
        0.1: "tokens and rate are right; in the days only one of the two tenfold "
        "slips is mended: this is a tenth.",
        10: "tokens and rate are right; in the days only one of the two tenfold "
        "slips is mended: this is ten times.",
        0.75: "this has 6TP: the rate in the code counts recomputation, so 8TP.",
        1e12: "in the days the rate is still in TFLOP/s: one TFLOP/s is 1e12 FLOP/s.",
        16: "n is missing: 16 GPUs share the work.",
        1 / 16: "n counts twice: the rate is that of one GPU, so divide it by 16.",
        units.DAY: "these are seconds: divide by 86,400.",
    },
    mistaken={
        _days_of_copy(1048): "tokens and rate are right; in the days the sequence length "
        "is still 1048.",
        _days_by_iterations(): "this is the exact way, by iterations: here 8TP/(nX) is asked for.",
    },
)


# --- 03-c: which offer


class Offer(NamedTuple):
    """GPUs to rent: how many, which, in what format, and what one costs an hour."""

    num_gpus: int
    chip: str
    format: str
    price: float


OFFERS = {
    "A": Offer(160, "A100 80GB SXM", "bf16", 1.30),
    "B": Offer(32, "H100 SXM", "bf16", 2.40),
    "C": Offer(48, "H100 SXM", "bf16", 3.00),
    "D": Offer(512, "V100 32GB SXM2", "fp16", 0.60),
}
"""The four offers of exercise 03-c; their prices are assumptions."""

MOST_DAYS, BUDGET = 45, 150_000
"""What the run of 03-c may take."""


def of_offer(name: str, share: float = LOW) -> tuple[float, float]:
    """Days and dollars of 7 billion parameters and a trillion tokens on an offer."""
    return _of(OFFERS[name], share)


def _of(offer: Offer, share: float = LOW) -> tuple[float, float]:
    """Days and dollars of 03-c's run on these GPUs."""
    X = share * accelerator(offer.chip).peak(offer.format)
    seconds = training_seconds(1e12, 7e9, offer.num_gpus, X, "none")
    dollars = cost(seconds, offer.num_gpus, offer.price)
    return float(seconds) / units.DAY, float(dollars)


def _will_do(name: str) -> bool:
    days, dollars = of_offer(name)
    return days <= MOST_DAYS and dollars <= BUDGET


_BELIEFS = {
    "A": "In time, but within the money at the likely share only.",
    "B": "The least money, and in time at the likely share only: at the low end it is too late.",
    "C": "Neither the cheapest hour nor the fastest: the one that does at the low end.",
    "D": "The cheapest hour is the dearest run: an old chip needs many more of them.",
}


def _sentence_on_offer(name: str) -> str:
    """An offer's days and dollars at the low end, and the belief behind it."""
    days, dollars = of_offer(name)
    return (
        f"{'right' if _will_do(name) else 'no'}: at {_whole_percent(LOW)} of the peak it takes "
        f"{units.digits(days, 2)} days and {units.dollars(dollars)}. {_BELIEFS[name]}"
    )


_FIFTH = Offer(40, "H100 SXM", "bf16", 2.80)
"""What is offered after a wrong choice."""

_DAYS_ON_FIFTH = Numeric(
    key=lambda: _of(_FIFTH)[0],
    unit=lambda days: f"{_days(days)}, so it would be too late",
    asked="days",
    hint=(
        "What is the work of this run, and what do 40 of these GPUs do of it in a second?",
        "Six operations for each parameter and token; a quarter of the peak.",
    ),
    slips={
        **TENFOLD,
        LOW: "this has the whole peak: promise a quarter of it.",
        LOW / LIKELY: "this is at the likely 35 %: promise 25 %.",
        4 / 3: "this has 8TP: nothing is recomputed here, so 6TP.",
        1 / 3: "this has 2TP, the forward pass alone.",
        40: "this is on one GPU: there are 40.",
        989.5 / 312: "this is with the peak of an A100: these are H100.",
        units.DAY: "these are seconds: divide by 86,400.",
        24: "these are hours: divide by 24.",
    },
)

# --- 03-d: GPUs for a run of the learner's own

NODE, EACH = 8, 20
"""GPUs are rented by the node; tokens that a parameter is to get."""

_ENTRIES = ("model", "days", "chip", "gpus")


class OwnRun(Exercise):
    """A model, days, a chip and GPUs: enough at the low end, and no node too many."""

    hint = (
        "Which rate can you promise, and how many days are there?",
        "Ask what one GPU does in your days at a quarter of its peak, then how many it takes.",
    )

    def judge(self, answer: Answer) -> Judgement:
        """Whether these GPUs keep the days, in days and in words."""
        if not isinstance(answer, Mapping) or set(answer) != set(_ENTRIES):
            return False, f"give a dictionary with {', '.join(_ENTRIES)}."
        if answer["gpus"] is None:
            return NOT_YET
        n = int(entry(answer, "gpus", count))
        if n % NODE:
            return False, f"{n} GPUs do not make whole nodes of {NODE}."
        P = count_parameters(architecture(answer["model"])).active
        chip = accelerator(answer["chip"])
        peak = chip.peaks.get("bf16") or chip.peaks["fp16"]
        limit = entry(answer, "days")
        low, likely = (
            float(training_seconds(EACH * P, P, n, share * peak, "none")) / units.DAY
            for share in (LOW, LIKELY)
        )
        summary = (
            f"at {_whole_percent(LOW)} of the peak it takes {_beside(low, limit)}, "
            f"and you have {limit:g}"
        )
        if low > limit:
            hope = " At the likely share it would do, but that is no promise."
            return False, f"too few: {summary}.{hope if likely <= limit else ''} {HINT}"
        if n > NODE and low * n / (n - NODE) <= limit:
            return False, f"more than it takes: {summary}. A node less would do. {HINT}"
        hours, tokens = units.count(low * 24 * n), units.count(EACH * P)
        return True, (
            f"right: {summary}; likely it takes {_whole(likely)}. "
            f"Write down: {n:,} {chip.name}, {tokens} tokens, {hours} GPU-hours."
        )


def _whole(days: float) -> str:
    """Whole days; below ten in two digits."""
    return f"{days:,.0f} days" if days >= 10 else f"{units.digits(days, 2)} days"


def _beside(days: float, limit: float) -> str:
    """Days in whole ones, or in more digits where those would hide which is more."""
    short = _whole(days)
    shown = float(short.split()[0].replace(",", ""))
    same = (shown > limit) == (days > limit)
    return short if same else f"{units.digits(days, 4)} days"


EXERCISES: dict[str, Exercise] = {
    "03-a": Numeric(
        key=_thirteen_billion,
        asked="days",
        unit=_days,
        hint=(
            "compare what the work counts with what the rate counts.",
            "an MFU leaves the second forward pass out, so the work must as well.",
        ),
        slips={
            **TENFOLD,
            4 / 3: "this has 8TP: an MFU leaves recomputation out, whatever the run "
            "did, so the work must leave it out too.",
            1 / 3: "this has 2TP, the forward pass alone: going back costs twice that.",
            0.41: "this has the whole peak: the run reached 41 % of it.",
            0.01: "X has 41 for 41 %: as a share that is 0.41.",
            1e12: "X is in TFLOP/s: 989.5 TFLOP/s are 989.5e12 FLOP/s.",
            1e10: "X has 41 for 41 %, which is 0.41, and is in TFLOP/s: the peak is "
            "989.5e12 FLOP/s.",
            384: "this is on one GPU: there are 384.",
            units.DAY: "these are seconds: divide by 86,400.",
            24: "these are hours: divide by 24.",
        },
    ),
    "03-b": Copied(_DAYS_OF_COPY),
    "03-c": Word(
        key=lambda: next(name for name in OFFERS if _will_do(name)),
        options={name: _sentence_on_offer(name) for name in OFFERS},
        again=[
            Question(
                "a fifth offer has 40 H100 at 2.80 dollars. How many days "
                "does the run take at 25 %?",
                _DAYS_ON_FIFTH,
            )
        ],
    ),
    "03-d": OwnRun(),
}

PREDICTIONS: dict[str, Prediction] = {
    "03-guess": Prediction(
        truth=lambda: _whole_percent(LIKELY),
        options={
            "90 %": "The datasheet suggests it. But only one large product of matrices "
            "alone comes near the peak.",
            "70 %": "Good code for single products reaches it. But a step also waits "
            "for memory, and for other GPUs.",
            "50 %": "Timed steps of good code reach it, as in notebook 02. But a run "
            "is more than its steps.",
            "35 %": "Two thirds of what was paid for did none of the 6TP.",
        },
        why="Between the products a GPU loads and stores, sends and waits; and a whole "
        "run stops and restarts, and may begin with small batches.",
    )
}
