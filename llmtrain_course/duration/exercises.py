"""Exercises of chapter 03: days, a timed step, slips, GPUs to rent, a run of your own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from llmtrain_course.kit.exercise import (
    HINT,
    NOT_YET,
    TENFOLD,
    Answer,
    Exercise,
    Grade,
    Numeric,
    Prediction,
    entry,
    read_as,
    unanswered,
)
from llmtrain_course.kit.formulas import rate_at
from llmtrain_course.kit.kinds import FillIn
from llmtrain_course.kit.own_run import own_run
from llmtrain_helpers import units
from llmtrain_helpers.checks import Result, count, one, quantity
from llmtrain_helpers.duration import (
    UTILIZATIONS,
    cost,
    iterations,
    seconds_from_iterations,
    training_seconds,
)
from llmtrain_helpers.model.names import known_model
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.published import accelerator, rows, share_of_run


def _days(number: float) -> str:
    return f"{units.digits(number)} days"


LOW, LIKELY = UTILIZATIONS[:2]
"""Shares of the peak that whole runs have reached: few less, and the middle one."""


def _whole_percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


# --- duration-a: a rate that leaves recomputation out


def _thirteen_billion() -> Result:
    """Days of 13 billion parameters on 1.8 trillion tokens, at an MFU of 41 %."""
    X = 0.41 * 989.5e12
    return training_seconds(1.8e12, 13e9, 384, X, "none") / units.DAY


# --- duration-days: the time of all steps, from the time of one


def _days_by_steps(tokens: float = 300e9, batch: int = 512, length: int = 1024) -> float:
    """Days of the 18.4B case, whose step takes 32.09 seconds."""
    return float(seconds_from_iterations(tokens, batch, length, 32.09)) / units.DAY


# --- duration-b: a script with a tenfold slip above and one below, and a sparse peak


def _rate_of_script() -> float:
    """FLOP/s of one H100 at an MFU of 42 %."""
    return float(rate_at(0.42, accelerator("H100 SXM").peak("bf16")))


def _days_of_script() -> float:
    """Days of 34 billion parameters on 800 billion tokens, on 256 of them."""
    return float(training_seconds(800e9, 34e9, 256, _rate_of_script(), "none")) / units.DAY


@dataclass(frozen=True)
class Script(Exercise):
    """Tokens, rate and days of a script with slips, in this order."""

    days: Numeric

    def key(self) -> Result:
        """The right days."""
        return self.days.key()

    def grade(self, answer: Answer) -> Grade:
        """What lies in between first: slips that cancel leave the days as they are."""
        if not isinstance(answer, tuple | list) or len(answer) != 3:
            return False, "give three things: the tokens, the rate in FLOP/s, the days."
        if any(part is None for part in answer):
            return NOT_YET
        T, X, days = (
            float(one("answer", read_as("answer", x, unit), quantity))
            for x, unit in zip(answer, ("tokens", "FLOP/s", "days"), strict=True)
        )
        if T < _LEAST_TOKENS < days:
            return False, "The tokens come first, then the rate, then the days."
        right, sentence = self.days.grade(days)
        if problem := _problem_with_tokens(T) or _problem_with_rate(X):
            return False, f"the days are right, but {problem}" if right else problem
        return right, sentence

    def hints(self) -> tuple[str, ...]:
        """The hints that lead to the days."""
        return self.days.hints()


_LEAST_TOKENS = 10**5
"""What nobody takes for the tokens of a run, nor for days."""


def _problem_with_tokens(tokens: float) -> str:
    """What is wrong with the tokens of duration-b, if anything is."""
    if abs(tokens / 800e9 - 1) <= 0.005:
        return ""
    number = f"the tokens are {units.count(tokens)}"
    return f"{number}: say 10e9 in words." if tokens > 800e9 else f"{number}, too few."


_MISTAKEN_RATES = {
    2: "the peak is twice what an H100 does in training. For which matrices is it?",
    20: "it is more than an H100 does. What is 10e12 in words, and what peak is this?",
    10: "it is ten times too much: 10e12 is ten tera.",
    0.1: "it is ten times too little: one tera is 1e12.",
    256: "it is that of all 256 GPUs: give that of one.",
    1 / 0.42: "it is the whole peak: the report says 42 % of it.",
    2 / 0.42: "it is a whole peak, and twice what an H100 does in training.",
    4 / 3: "an MFU of 42 % is 42 % of the peak: nothing is to be added.",
    312 / 989.5: "it is that of an A100: these are H100.",
}
"""Factors by which the rate of duration-b may be wrong, and their cause."""


def _problem_with_rate(rate: float) -> str:
    """What is wrong with the rate of one GPU in duration-b, if anything is."""

    def near(factor: float) -> bool:
        return abs(rate / factor / _rate_of_script() - 1) <= 0.005

    if near(1):
        return ""
    for prefix, unit, factor in ((1e-12, "TFLOP/s", "1e12"), (1e-15, "PFLOP/s", "1e15")):
        if near(prefix) or near(2 * prefix):
            number = f"the rate is {units.digits(rate)}, so in {unit}"
            return f"{number}; give FLOP/s, times {factor}."
    number = f"the rate is {units.flops_per_second(rate)}"
    for mistake, cause in _MISTAKEN_RATES.items():
        if near(mistake):
            return f"{number}: {cause}"
    return f"{number}: give it in FLOP/s, of one GPU."


_ONE_LEFT = "tokens and rate are right; in the days only one of the two tenfold slips is mended: "

_SCRIPT = Script(
    Numeric(
        key=_days_of_script,
        asked="days",
        unit=_days,
        hint=(
            "there are three slips; read each number in the code aloud, with its unit.",
            "what are 10e9 and 10e12 in words? And which of the two peaks is for training?",
        ),
        common_mistakes={
            "key / 10": f"{_ONE_LEFT}this is a tenth.",
            "10 * key": f"{_ONE_LEFT}this is ten times.",
            "key / 2": "tokens and rate are right; in the days the peak is still twice too high.",
            "key * 8 / 6": "this has 8TP: the rate is an MFU, so it is 6TP.",
            "1e12 * key": "in the days the rate is still in TFLOP/s: one TFLOP/s is 1e12 FLOP/s.",
            "n * key": "n is missing: 256 GPUs share the work.",
            "key / n": "n counts twice: the rate is that of one GPU.",
            "86400 * key": "these are seconds: divide by 86,400.",
            "24 * key": "these are hours: divide by 24.",
        },
        values={"n": 256},
    )
)


# --- duration-c: a chip and a number of them, under two limits

PRICES = {"A100 80GB SXM": 1.30, "H100 SXM": 3.00, "V100 32GB SXM2": 0.60}
"""Dollars for a GPU-hour of each chip; they are assumptions."""

MOST_DAYS, BUDGET, AT_HAND = 45, 150_000, 512
"""What the run of duration-c may take, and how many of each chip there are."""


def of_offer(chip: str, num_gpus: int, share: float = LOW) -> tuple[float, float]:
    """Days and dollars of 7 billion parameters and a trillion tokens on these GPUs."""
    each = accelerator(chip)
    X = rate_at(share, each.peak(each.training_format))
    seconds = training_seconds(1e12, 7e9, num_gpus, X, "none")
    dollars = cost(seconds, num_gpus, PRICES[each.name])
    return float(seconds) / units.DAY, float(dollars)


class Rented(Exercise):
    """A chip and how many of them: within the days and the money, at the low end."""

    hint = (
        "What is the work of this run, and what does an hour of each chip do of it?",
        "Take the bill of each chip first, at a quarter of its peak. Then the days.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Whether money and days hold at the low end; if they don't, whether they're likely to."""
        if not isinstance(answer, Mapping) or set(answer) != {"chip", "gpus"}:
            return False, "give a dictionary with chip and gpus."
        if unanswered(answer):
            return NOT_YET
        chip, n = accelerator(answer["chip"]).name, int(entry(answer, "gpus", count))
        if chip not in PRICES:
            return False, f"nobody offers you {chip}: take one of {', '.join(PRICES)}."
        if n % NODE:
            return False, f"{n} GPUs do not make whole nodes of {NODE}."
        if n > AT_HAND:
            return False, f"there are {AT_HAND} of each chip, and not {n:,}."
        days, dollars = of_offer(chip, n)
        summary = (
            f"at {_whole_percent(LOW)} of the peak it takes {_days_next_to(days, MOST_DAYS)} and "
            f"{units.dollars(dollars)}"
        )
        limits = (("too dear", dollars > BUDGET), ("too late", days > MOST_DAYS))
        problem = " and ".join(words for words, missed in limits if missed)
        if not problem:
            return True, (
                f"right: {summary}. Any number of them has this bill, so the money chose the "
                "chip, and the days chose how many."
            )
        days, dollars = of_offer(chip, n, LIKELY)
        if days > MOST_DAYS or dollars > BUDGET:
            return False, f"{problem}: {summary}. {HINT}"
        hope = _hope(f"{_days_next_to(days, MOST_DAYS)} and {units.dollars(dollars)}")
        return False, f"{problem}: {summary}. {hope} {HINT}"


def _hope(likely: str) -> str:
    """What the likely share would take, of an answer that keeps every limit at that share."""
    return f"At {_whole_percent(LIKELY)}, the likely share, it's {likely}, but that's no promise."


# --- duration-d: GPUs for a run of the learner's own

NODE, EACH = 8, 20
"""GPUs are rented by the node; tokens that a parameter is to get."""

_ENTRIES = ("model", "days", "chip", "gpus")


class OwnRun(Exercise):
    """A model, days, a chip and GPUs: enough at the low end, and no node too many to rent."""

    hint = (
        "Which rate can you promise, and how many days are there?",
        "Ask what one GPU does in your days at a quarter of its peak, then how many it takes.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Whether these GPUs keep the days, in days and in words."""
        if not isinstance(answer, Mapping) or set(answer) != set(_ENTRIES):
            return False, f"give a dictionary with {', '.join(_ENTRIES)}."
        if answer["gpus"] is None:
            return NOT_YET
        n = int(entry(answer, "gpus", count))
        if n % NODE:
            return False, f"{n} GPUs do not make whole nodes of {NODE}."
        P = count_parameters(known_model(answer["model"])).active
        chip = accelerator(answer["chip"])
        peak = chip.peaks.get("bf16") or chip.peaks["fp16"]
        limit = entry(answer, "days")
        low, likely = (
            float(training_seconds(EACH * P, P, n, share * peak, "none")) / units.DAY
            for share in (LOW, LIKELY)
        )
        summary = (
            f"at {_whole_percent(LOW)} of the peak it takes {_days_next_to(low, limit)}, "
            f"and you have {limit:g}"
        )
        if low > limit:
            hope = f" {_hope(_days_next_to(likely, limit))}" if likely <= limit else ""
            return False, f"too few: {summary}.{hope} {HINT}"
        mine = own_run()
        least = NODE * ceil(low * n / limit / NODE)
        if n > least and (n, chip.name) == (mine.gpus, mine.chip):
            each = units.digits(EACH * limit / low, 2)
            return True, (
                f"right: {summary}. You have these {n:,} already. {least} are enough for "
                f"{EACH} tokens for each parameter, and all of yours get to {each}."
            )
        if n > least:
            return False, f"more than it takes: {summary}. A node less would do. {HINT}"
        hours, tokens = units.count(low * 24 * n), units.count(EACH * P)
        return True, (
            f"right: {summary}; likely it takes {_whole(likely)}. "
            f"Write down: {n:,} {chip.name}, {tokens} tokens, {hours} GPU-hours."
        )


def _whole(days: float) -> str:
    """Whole days; below ten in two digits."""
    return f"{days:,.0f} days" if days >= 10 else f"{units.digits(days, 2)} days"


def _days_next_to(days: float, limit: float) -> str:
    """Days in whole ones, or in more digits where those would hide which is more."""
    short = _whole(days)
    value = float(short.split()[0].replace(",", ""))
    same = (value > limit) == (days > limit)
    return short if same else f"{units.digits(days, 4)} days"


EXERCISES: dict[str, Exercise] = {
    "duration-a": Numeric(
        key=_thirteen_billion,
        asked="days",
        unit=_days,
        hint=(
            "compare what the work counts with what the rate counts.",
            "an MFU leaves the second forward pass out, so the work must as well.",
        ),
        common_mistakes={
            **TENFOLD,
            "8 * T * P / (n * u * X) / day": "this has 8TP: an MFU leaves recomputation out, "
            "whatever the run did, so the work must leave it out too.",
            "2 * T * P / (n * u * X) / day": "this has 2TP, the forward pass alone: going back "
            "costs twice that.",
            "6 * T * P / (n * X) / day": "this has the whole peak: the run reached 41 % of it.",
            "6 * T * P / (n * 100 * u * X) / day": "X has 41 for 41 %: as a share that is 0.41.",
            "6 * T * P / (n * u * X / 1e12) / day": "X is in TFLOP/s: 989.5 TFLOP/s are 989.5e12 "
            "FLOP/s.",
            "6 * T * P / (n * 100 * u * X / 1e12) / day": "X has 41 for 41 %, which is 0.41, and "
            "is in TFLOP/s: the peak is 989.5e12 FLOP/s.",
            "6 * T * P / (u * X) / day": "this is on one GPU: there are 384.",
            "6 * T * P / (n * u * X)": "these are seconds: divide by 86,400.",
            "6 * T * P / (n * u * X) / 3600": "these are hours: divide by 24.",
        },
        values={"T": 1.8e12, "P": 13e9, "n": 384, "u": 0.41, "X": 989.5e12, "day": units.DAY},
    ),
    "duration-days": FillIn(
        key=_days_by_steps,
        unit=lambda days: (
            f"{_days(days)}. The 208 days above leave out attention's scores, "
            "which a clock does not"
        ),
        hint=("How many steps are there? Each takes the same time.",),
        common_mistakes={
            "these are seconds: a day has 86,400.": lambda: _days_by_steps() * units.DAY,
            "these are hours: divide by 24.": lambda: _days_by_steps() * 24,
            "this is the number of steps: each takes t seconds.": lambda: float(
                iterations(300e9, 512, 1024)
            ),
            "a step has B sequences, of s tokens each: this leaves out s.": lambda: _days_by_steps(
                length=1
            ),
            "a step has B sequences, of s tokens each: this leaves out B.": lambda: _days_by_steps(
                batch=1
            ),
            "no GPUs are needed: all of them work on each step.": lambda: _days_by_steps() / 16,
        },
    ),
    "duration-b": _SCRIPT,
    "duration-c": Rented(),
    "duration-d": OwnRun(),
}

# --- predictions


def _slowest() -> float:
    """The least share of the peak of the published runs, in per cent."""
    return 100 * share_of_run("Pythia 70M")


def _days_by_zero(num_gpus: int) -> float:
    """Days of the model of 175 billion parameters by ZeRO-3 on so many GPUs."""
    [row] = [
        row
        for row in rows("megatron_training_days")
        if (row["scheme"], row["num_gpus"]) == ("ZeRO-3", num_gpus)
    ]
    return float(row["days"])


def _after_doubling() -> str:
    """The option that names what twice the GPUs do to the days."""
    ratio = _days_by_zero(1536) / _days_by_zero(768)
    if abs(ratio - 1) < 0.02:
        return "the same"
    return "longer" if ratio > 1 else "half" if ratio < 0.6 else "a fifth less"


PREDICTIONS: dict[str, Prediction] = {
    "duration-twice": Prediction(
        truth=_after_doubling,
        options={
            "half": "Half would be right if every GPU kept its rate.",
            "a fifth less": "A fifth less is what the doubling before brought.",
            "the same": "All that the new GPUs could do is lost in waiting.",
            "longer": "With still more GPUs it can come to that.",
        },
        why="It is not a day less than on half as many. The picture below has both ways to "
        "divide the weights.",
    ),
    "duration-guess": Prediction(
        truth=_slowest,
        unit=lambda percent: f"{percent:.0f} %",
        asked="%",
        why="It is Pythia 70M, the smallest model of all.",
    ),
}
