"""Exercises of chapter 03: days, a timed step, mistakes, GPUs to rent, your own run."""

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
    return f"{share:.0%}"


# --- duration-a: a rate that leaves recomputation out


def _thirteen_billion() -> Result:
    """Days of 13 billion parameters on 1.8 trillion tokens, at an MFU of 41%."""
    X = 0.41 * 989.5e12
    return training_seconds(1.8e12, 13e9, 384, X, "none") / units.DAY


# --- duration-days: the time of all steps, from the time of one


def _days_by_steps(tokens: float = 300e9, batch: int = 512, length: int = 1024) -> float:
    """Days of the 18.4B case, whose step takes 32.09 seconds."""
    return float(seconds_from_iterations(tokens, batch, length, 32.09)) / units.DAY


# --- duration-b: a script with a tenfold slip above and one below, and a sparse peak


def _rate_of_script() -> float:
    """FLOP/s of one H100 at an MFU of 42%."""
    return float(rate_at(0.42, accelerator("H100 SXM").peak("bf16")))


def _days_of_script() -> float:
    """Days of 34 billion parameters on 800 billion tokens, on 256 of them."""
    return float(training_seconds(800e9, 34e9, 256, _rate_of_script(), "none")) / units.DAY


@dataclass(frozen=True)
class Script(Exercise):
    """Tokens, rate and days of a script with mistakes, in this order."""

    days: Numeric

    def key(self) -> Result:
        """The right days."""
        return self.days.key()

    def grade(self, answer: Answer) -> Grade:
        """Grade tokens and rate first, because mistakes that cancel leave the days right."""
        if not isinstance(answer, tuple | list) or len(answer) != 3:
            return False, "Give three values: the tokens, the rate in FLOP/s and the days."
        if any(part is None for part in answer):
            return NOT_YET
        T, X, days = (
            float(one("answer", read_as("answer", x, unit), quantity))
            for x, unit in zip(answer, ("tokens", "FLOP/s", "days"), strict=True)
        )
        if T < _LEAST_TOKENS < days:
            return False, "Give the tokens first, then the rate, then the days."
        right, sentence = self.days.grade(days)
        if problem := _problem_with_tokens(T) or _problem_with_rate(X):
            return False, f"The days are right, but {problem}" if right else _sentence(problem)
        return right, sentence

    def hints(self) -> tuple[str, ...]:
        """The hints that lead to the days."""
        return self.days.hints()


def _sentence(problem: str) -> str:
    return problem[:1].upper() + problem[1:]


_LEAST_TOKENS = 10**5
"""Too few for the tokens of a run, and too many for its days."""


def _problem_with_tokens(tokens: float) -> str:
    """What is wrong with the tokens of duration-b, if anything is."""
    if abs(tokens / 800e9 - 1) <= 0.005:
        return ""
    number = f"the tokens are {units.count(tokens)}"
    return f"{number}. What's 10e9 in words?" if tokens > 800e9 else f"{number}, which is too few."


_MISTAKEN_RATES = {
    2: "the peak is 2× what an H100 can do in training. Which matrices is it for?",
    20: "it's more than an H100 can do. What's 10e12 in words, and which peak is this?",
    10: "it's 10× too high, because 10e12 is ten tera.",
    0.1: "it's 10× too low, because one tera is 1e12.",
    256: "it's the rate of all 256 GPUs. Give the rate of one.",
    1 / 0.42: "it's the whole peak, but the report says 42% of it.",
    2 / 0.42: "it's a whole peak, and 2× what an H100 can do in training.",
    4 / 3: "an MFU of 42% is 42% of the peak, so don't add anything.",
    312 / 989.5: "it's the rate of an A100, but these are H100s.",
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
            number = f"the rate is {units.digits(rate)}, which is in {unit}"
            return f"{number}. Give it in FLOP/s, so multiply by {factor}."
    number = f"the rate is {units.flops_per_second(rate)}"
    for mistake, cause in _MISTAKEN_RATES.items():
        if near(mistake):
            return f"{number}: {cause}"
    return f"{number}. Give the rate of one GPU in FLOP/s."


_ONE_LEFT = (
    "Tokens and rate are right, but in the days you've only fixed one of the two tenfold mistakes: "
)

_SCRIPT = Script(
    Numeric(
        key=_days_of_script,
        asked="days",
        unit=_days,
        hint=(
            "There are three mistakes. Read each number in the code aloud, with its unit.",
            "What are 10e9 and 10e12 in words? And which of the two peaks is for training?",
        ),
        common_mistakes={
            "key / 10": f"{_ONE_LEFT}that's 10× too low.",
            "10 * key": f"{_ONE_LEFT}that's 10× too high.",
            "key / 2": "Tokens and rate are right, but in the days the peak is still 2× too high.",
            "key * 8 / 6": "You've used 8TP, but the rate is an MFU, so it's 6TP.",
            "1e12 * key": "In the days the rate is still in TFLOP/s. One TFLOP/s is 1e12 FLOP/s.",
            "n * key": "You've left out n, but 256 GPUs share the work.",
            "key / n": "You've divided by n twice, but the rate is already for one GPU.",
            "86400 * key": "Those are seconds. Divide by 86,400.",
            "24 * key": "Those are hours. Divide by 24.",
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
        "How much work is this run, and how much of that can each chip do per hour?",
        "Compute the bill for each chip first, at 25% of its peak, and then the days.",
    )

    def grade(self, answer: Answer) -> Grade:
        """Whether money and days hold at the low end; if they don't, whether they're likely to."""
        if not isinstance(answer, Mapping) or set(answer) != {"chip", "gpus"}:
            return False, "Give a dictionary with chip and gpus."
        if unanswered(answer):
            return NOT_YET
        chip, n = accelerator(answer["chip"]).name, int(entry(answer, "gpus", count))
        if chip not in PRICES:
            return False, f"You can't rent {chip} here. Select {', '.join(PRICES)}."
        if n % NODE:
            return False, f"{n} GPUs don't fill whole nodes of {NODE}."
        if n > AT_HAND:
            return False, f"You can have up to {AT_HAND} of each chip, so {n:,} is too many."
        days, dollars = of_offer(chip, n)
        summary = (
            f"At {_whole_percent(LOW)} of the peak, you'd need "
            f"{_days_next_to(days, MOST_DAYS)} and {units.dollars(dollars)}"
        )
        limits = (("too expensive", dollars > BUDGET), ("too late", days > MOST_DAYS))
        problem = " and ".join(words for words, missed in limits if missed)
        if not problem:
            return True, (
                f"Right. {summary}. The cost doesn't depend on their number, so the budget "
                f"decided on the chip, and the days decided how many you need."
            )
        days, dollars = of_offer(chip, n, LIKELY)
        if days > MOST_DAYS or dollars > BUDGET:
            return False, f"{_sentence(problem)}. {summary}. {HINT}"
        hope = _hope(f"{_days_next_to(days, MOST_DAYS)} and {units.dollars(dollars)}")
        return False, f"{_sentence(problem)}. {summary}. {hope} {HINT}"


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
        "Which rate can you promise, and how many days do you have?",
        "How much can one GPU do in your days at 25% of its peak? Then how many do you need?",
    )

    def grade(self, answer: Answer) -> Grade:
        """Whether these GPUs keep the days, in days and in words."""
        if not isinstance(answer, Mapping) or set(answer) != set(_ENTRIES):
            return False, f"Give a dictionary with {', '.join(_ENTRIES)}."
        if answer["gpus"] is None:
            return NOT_YET
        n = int(entry(answer, "gpus", count))
        if n % NODE:
            return False, f"{n} GPUs don't fill whole nodes of {NODE}."
        P = count_parameters(known_model(answer["model"])).active
        chip = accelerator(answer["chip"])
        peak = chip.peaks.get("bf16") or chip.peaks["fp16"]
        limit = entry(answer, "days")
        low, likely = (
            float(training_seconds(EACH * P, P, n, share * peak, "none")) / units.DAY
            for share in (LOW, LIKELY)
        )
        summary = (
            f"At {_whole_percent(LOW)} of the peak, you'd need "
            f"{_days_next_to(low, limit)}, and your limit is {limit:g}"
        )
        if low > limit:
            hope = f" {_hope(_days_next_to(likely, limit))}" if likely <= limit else ""
            return False, f"That's too few. {summary}.{hope} {HINT}"
        mine = own_run()
        least = NODE * ceil(low * n / limit / NODE)
        if n > least and (n, chip.name) == (mine.gpus, mine.chip):
            each = units.digits(EACH * limit / low, 2)
            return True, (
                f"Right. {summary}. You already have these {n:,}. {least} are enough for {EACH} "
                f"tokens per parameter, and with all of yours you reach {each}."
            )
        if n > least:
            return False, f"That's more than you need. {summary}. One node fewer is enough. {HINT}"
        hours, tokens = units.count(low * 24 * n), units.count(EACH * P)
        return True, (
            f"Right. {summary}, but the run will probably finish in {_whole(likely)}. "
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
            "Do the work and the rate count the same passes?",
            "An MFU leaves out the second forward pass, so the work has to leave it out as well.",
        ),
        common_mistakes={
            **TENFOLD,
            "8 * T * P / (n * u * X) / day": "You've used 8TP, but an MFU always leaves out "
            "recomputation, so the work has to leave it out, too.",
            "2 * T * P / (n * u * X) / day": "You've used 2TP, which is only the forward pass. "
            "Backward costs double that.",
            "6 * T * P / (n * X) / day": "You've used the whole peak, but the run reached 41% "
            "of it.",
            "6 * T * P / (n * 100 * u * X) / day": "Your X uses 41 for 41%, but as a share "
            "that's 0.41.",
            "6 * T * P / (n * u * X / 1e12) / day": "Your X is in TFLOP/s, but 989.5 TFLOP/s are "
            "989.5e12 FLOP/s.",
            "6 * T * P / (n * 100 * u * X / 1e12) / day": "Your X uses 41 for 41%, which is "
            "0.41, and it's in TFLOP/s, but the "
            "peak is 989.5e12 FLOP/s.",
            "6 * T * P / (u * X) / day": "That's how long one GPU would take, but there are 384.",
            "6 * T * P / (n * u * X)": "Those are seconds. Divide by 86,400.",
            "6 * T * P / (n * u * X) / 3600": "Those are hours. Divide by 24.",
        },
        values={"T": 1.8e12, "P": 13e9, "n": 384, "u": 0.41, "X": 989.5e12, "day": units.DAY},
    ),
    "duration-days": FillIn(
        key=_days_by_steps,
        unit=lambda days: (
            f"{_days(days)}. The 208 days above leave out attention's scores, but a clock doesn't"
        ),
        hint=("How many steps are there? Each one needs the same time.",),
        common_mistakes={
            "Those are seconds, and a day has 86,400.": lambda: _days_by_steps() * units.DAY,
            "Those are hours. Divide by 24.": lambda: _days_by_steps() * 24,
            "That's the number of steps, but each one is t seconds long.": lambda: float(
                iterations(300e9, 512, 1024)
            ),
            "You've left out s: a step processes B sequences of s tokens.": lambda: _days_by_steps(
                length=1
            ),
            "You've left out B: a step processes B sequences of s tokens.": lambda: _days_by_steps(
                batch=1
            ),
            "You don't need the GPUs, because all of them work on each step.": lambda: (
                _days_by_steps() / 16
            ),
        },
    ),
    "duration-b": _SCRIPT,
    "duration-c": Rented(),
    "duration-d": OwnRun(),
}

# --- predictions


def _slowest() -> float:
    """The least share of the peak of the published runs, in percent."""
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
            "half": "It would be half if every GPU worked at the same rate as before.",
            "a fifth less": "That's what the previous doubling saved.",
            "the same": "Everything the new GPUs could do is lost to waiting.",
            "longer": "If you add even more GPUs, that can happen.",
        },
        why="The run isn't even a day shorter than on half the GPUs. The picture shows "
        "both ways to divide the weights.",
    ),
    "duration-guess": Prediction(
        truth=_slowest,
        unit=lambda percent: f"{percent:.0f}%",
        asked="%",
        why="It's Pythia 70M, the smallest model of all.",
    ),
}
