"""Chapter 03: the panel of days, GPU-hours and cost; handles for days, counts, promises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

from llmtrain_course.duration import pictures as drawings
from llmtrain_course.duration.formulas import mfu_of_hfu, nearest_run, seconds_of_hours
from llmtrain_course.duration.pictures import (
    PAGE,
    TELEPHONE,
    Count,
    Line,
    Mark,
    Plane,
    days_against_gpus,
)
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.formulas import published_model, rate_at, trainable_tokens
from llmtrain_helpers import units
from llmtrain_helpers.batch import accumulation_steps, data_parallel_size
from llmtrain_helpers.duration import (
    UTILIZATIONS,
    cost,
    energy,
    flops_per_parameter,
    gpu_hours,
    training_interval,
    training_seconds,
)
from llmtrain_helpers.flops import Recompute, achieved_flops_per_gpu, gpt_flops, utilization
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.parameters import count_parameters, gpt_parameters
from llmtrain_helpers.published import PEAKS, accelerator, rows, run, share_of_run
from llmtrain_helpers.results import Interval


@dataclass(frozen=True)
class Setting:
    """A model, its tokens and GPUs, and what the rate of a GPU counts."""

    model: str = "Llama-2-70b"
    tokens: int = 2 * 10**12
    num_gpus: int = 1024
    percent: float = 43
    recompute: Recompute = "none"
    chip: str = "A100 80GB SXM"
    format: str = "bf16"
    price: float = 2.0

    @cached_property
    def parameters(self) -> int:
        """Parameters of the model that a token meets."""
        return int(count_parameters(published_model(self.model)).active)

    @cached_property
    def rate(self) -> float:
        """FLOP/s that each GPU reaches."""
        return float(rate_at(self.percent / 100, accelerator(self.chip).peak(self.format)))

    @property
    def seconds(self) -> float:
        """Seconds that the whole run takes."""
        T, P, n, X = self.tokens, self.parameters, self.num_gpus, self.rate
        return float(training_seconds(T, P, n, X, self.recompute))

    @property
    def mark(self) -> Mark:
        """The dot of the run in the picture: its GPUs and its days."""
        return Mark("your run", self.num_gpus, self.seconds / units.DAY)


_SETTINGS = {
    "Llama 2 70B on 1,024 A100": Setting(),
    "GPT-3, all recomputed": Setting("GPT-3 175B", 300 * 10**9, 1024, 44.9, "full"),
    "Llama 3.1 405B": Setting(
        "Llama-3.1-405B", 15_600 * 10**9, 16384, 38.0, "none", chip="H100 SXM"
    ),
    "Mixtral on 256 H100": Setting("Mixtral-8x7B", 10**12, 256, 35.0, "none", chip="H100 SXM"),
}

_CONTROLS = {
    "model": controls.MODEL,
    "tokens": controls.TOKENS,
    "num_gpus": controls.GPUS,
    "percent": replace(
        controls.SHARE_OF_PEAK,
        help="Per cent of the chip's peak that each GPU reaches: "
        "HFU where all is recomputed, MFU elsewhere.",
        stops=controls.steps(5, 80, *(x / 2 for x in range(2, 20))),
    ),
    "recompute": replace(
        controls.RECOMPUTED,
        help="Full: the second forward pass counts in work and rate (8TP). Selective: "
        "attention's scores alone, which 6TP leaves out.",
        more=True,
    ),
    "chip": controls.CHIP,
    "format": controls.choice(
        "Number format",
        "The format whose peak is meant; bf16 and fp16 have 16 bits.",
        PEAKS,
        more=True,
    ),
    "price": controls.PRICE,
}


def render(setting: Setting, before: Setting | None = None, plane: Plane = PAGE) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    T, P, n = round(setting.tokens), setting.parameters, setting.num_gpus
    span = training_interval(T, P, n, accelerator(setting.chip).peak(setting.format))
    picture = days_against_gpus(
        setting.mark,
        published_marks(),
        (span.least / units.DAY, span.greatest / units.DAY),
        before.mark if before else None,
        plane,
    )
    code = (
        f"training_seconds(tokens={common.in_code(T)}, parameters={P}, "
        f"num_gpus={n}, flops_per_gpu={setting.rate:.6g}, recompute={setting.recompute!r}) / 86400"
    )
    title = "Beside the published run whose work is nearest"
    return "".join(
        [
            common.sentence(_sentence(setting, span) + _utilization(setting)),
            picture.inline_svg(),
            common.folded(title, _table(setting)),
            common.folded("In code", common.call(code)),
        ]
    )


@cache
def published_marks() -> tuple[Mark, ...]:
    """The published runs whose GPUs and days are known, by name.

    Those in tier A: what was reported of them is of the run, and no estimate.
    """
    marks = []
    for row in rows("training_runs"):
        if row["tier"] == "A" and "num_gpus" in row:
            days = row.get("days", 0)
            if "gpu_hours" in row:
                days = seconds_of_hours(row["gpu_hours"], row["num_gpus"]) / units.DAY
            if days:
                marks.append(Mark(row["name"], row["num_gpus"], float(days)))
    return tuple(marks)


def _sentence(setting: Setting, span: Interval) -> str:
    """Days, GPU-hours and price, and the interval in two digits."""
    least, greatest = (units.duration(x, 2) for x in (span.least, span.greatest))
    if least.split()[1] == greatest.split()[1]:  # the unit is said once
        least = least.split()[0]
    seconds, n = setting.seconds, setting.num_gpus
    hours = units.count(gpu_hours(seconds, n))
    return (
        f"<b>{units.duration(seconds)}</b>, {hours} GPU-hours, "
        f"{units.dollars(cost(seconds, n, setting.price))}. "
        f"At an MFU of {units.share(UTILIZATIONS[0])} to {units.share(UTILIZATIONS[2])}, as 13 "
        f"of 14 published runs had, it would be {least} to {greatest}."
    )


def _utilization(setting: Setting) -> str:
    """Which share the slider's is, and whether it is outside all that runs reached."""
    mfu = 100 * mfu_of_hfu(setting.percent / 100, setting.recompute)
    text = f" Your {setting.percent:g} % is an MFU."
    if setting.recompute == "full":
        text = f" Your {setting.percent:g} % is an HFU, recomputed work counted"
        text += "."
    shares = shares_of_runs().values()
    if mfu > 100 * UTILIZATIONS[2]:
        place = f"over {units.share(UTILIZATIONS[2])}"
    elif mfu < 100 * min(shares):
        place = f"out below {units.share(min(shares))}"
    else:
        return text
    return f"{text} <b>Look again</b>: none of {len(shares)} published runs came {place}."


def _table(setting: Setting) -> str:
    """Your run beside the published one with the nearest tokens times parameters."""
    T, P = setting.tokens, setting.parameters
    run = nearest_run(T, P)
    hours = (gpu_hours(setting.seconds, setting.num_gpus), run["gpu_hours"])
    chips = (accelerator(setting.chip), accelerator(run["accelerator"]))
    dollars = [units.dollars(cost(h * units.HOUR, 1, setting.price)) for h in hours]
    rows = [
        ["model", setting.model, run["name"]],
        ["tokens", units.count(T), units.count(run["tokens"])],
        ["active parameters", units.count(P), units.count(run["active_parameters"])],
        ["accelerator", chips[0].name, run["accelerator"]],
        ["GPU-hours", *map(units.count, hours)],
        ["cost", *dollars],
        ["energy of the GPUs, at most", *map(_energy, chips, hours)],
    ]
    return common.table(["", "your run", "published, nearest in work"], rows)


def _energy(chip: Accelerator, hours: float) -> str:
    """Energy of a chip at its design power; unknown where the datasheet names none."""
    if not chip.power:
        return "unknown"
    return units.si(energy(hours * units.HOUR, 1, chip.power) / units.HOUR, "Wh")


PANEL = common.Panel(
    "How many days?",
    _CONTROLS,
    _SETTINGS,
    ("GPT-3, all recomputed", "Llama 3.1 405B"),
    render,
    narrow=partial(render, plane=TELEPHONE),
)


# --- handles


@dataclass(frozen=True)
class Spread:
    """A published run whose GPU-hours are known, on so many GPUs."""

    run: str = "Llama 2 70B"
    num_gpus: int = 1024

    @property
    def hours(self) -> float:
        """The GPU-hours that were published."""
        return float(run(self.run)["gpu_hours"])

    @property
    def mark(self) -> Mark:
        """The dot of the run on these GPUs."""
        days = seconds_of_hours(self.hours, self.num_gpus) / units.DAY
        return Mark(self.run, self.num_gpus, float(days))


PRICE = 2
"""Dollars for a GPU-hour, where a handle says what a run costs; an assumption."""


def _draw_spread(now: Spread, before: Spread | None, plane: Plane = PAGE) -> str:
    same = before is not None and before.run == now.run
    ghost = before.mark if before and same else None  # another run's dot says nothing here
    picture = days_against_gpus(now.mark, published_marks(), before=ghost, plane=plane)
    bill = cost(now.hours * units.HOUR, 1, PRICE)
    caption = (
        f"{now.run} on {units.plural(now.num_gpus, 'GPU')}: "
        f"<b>{units.duration(now.mark.days * units.DAY)}</b>, {units.count(now.hours)} "
        f"GPU-hours, {units.dollars(bill)} at {PRICE} dollars an hour."
        + (" <b>Within a month.</b>" if now.mark.days <= 30 else "")
    )
    return common.pictured(picture, caption)


GPUS_AND_DAYS = common.Handle(
    book=({}, {"num_gpus": 4096}),
    title="Days against GPUs",
    controls={
        "num_gpus": replace(controls.GPUS, most=100_000, stops=controls.doublings(32, 16384)),
        "run": controls.choice(
            "Run",
            "A run whose GPU-hours are published, but not on how many GPUs.",
            ["Llama 2 70B", "Llama 2 7B", "LLaMA-1 7B"],
        ),
    },
    settings={"": Spread()},
    draw=_draw_spread,
    narrow=partial(_draw_spread, plane=TELEPHONE),
)


@dataclass(frozen=True)
class Counted:
    """What the work of BLOOM counts, and what the rate of its GPUs counts."""

    work: str = "6TP"
    rate: str = "HFU"


WORKS: dict[str, Recompute] = {"6TP": "none", "8TP": "full"}
RATES: dict[str, Recompute] = {"HFU": "full", "MFU": "none"}
"""What can be counted, by its name: with the pass that is computed again, or without it."""


def _draw_counted(now: Counted, before: Counted | None, narrow: bool = False) -> str:
    bloom = run("BLOOM-176B")
    T, P, n = bloom["tokens"], bloom["active_parameters"], bloom["num_gpus"]
    peak = bloom["peak_flops"]
    hfu = float(utilization(bloom["flops_per_gpu"], peak))
    rates = {
        "full": float(rate_at(hfu, peak)),
        "none": float(rate_at(mfu_of_hfu(hfu, "full"), peak)),
    }
    counted, by = WORKS[now.work], RATES[now.rate]
    right = float(training_seconds(T, P, n, rates["full"], "full")) / units.DAY
    days = float(training_seconds(T, P, n, rates[by], counted)) / units.DAY
    work = Count(now.work, units.flops(flops_per_parameter(counted) * T * P), counted == "full")
    rate = Count(now.rate, units.flops_per_second(n * rates[by]), by == "full")
    caption = "Both count the pass that is computed again. <b>The counts agree.</b>"
    if counted == by == "none":
        caption = "Neither counts the pass that is computed again. <b>The counts agree.</b>"
    elif counted != by:
        caption = (
            f"The {'work' if counted == 'full' else 'rate'} counts a pass that the "
            f"{'rate' if counted == 'full' else 'work'} leaves out: "
            f"<b>{drawings.off(days / right)}</b>."
        )
    picture = drawings.eight_or_six(work, rate, days, right, bloom["days"], narrow)
    return common.pictured(picture, caption)


EIGHT_OR_SIX = common.Handle(
    book=({}, {"work": "8TP"}),
    title="Eight or six?",
    controls={
        "work": controls.choice(
            "The work counts", "Six operations for a parameter and token, or eight.", WORKS
        ),
        "rate": controls.choice(
            "The rate is an", "The work that is done again is in an HFU, and not in an MFU.", RATES
        ),
    },
    settings={"": Counted()},
    draw=_draw_counted,
    narrow=partial(_draw_counted, narrow=True),
)


DOUBTFUL = ("Llama 3.1 70B", "Llama 3.1 8B")
"""Runs whose hours are those of all stages of training, and whose tokens are not."""


@cache
def shares_of_runs() -> dict[str, float]:
    """The share of the peak over each whole run that publishes enough."""
    shares = {}
    for row in rows("training_runs"):
        try:
            share = share_of_run(row["name"])
        except ValueError:  # it does not publish its tokens or its hours
            continue
        if row["tier"] == "A":
            shares[row["name"]] = share
    return shares


@dataclass(frozen=True)
class Promise:
    """The share of the peak that somebody promises, in per cent."""

    percent: int = 35


def _draw_promise(now: Promise, before: Promise | None, narrow: bool = False) -> str:
    shares, promised = shares_of_runs(), now.percent / 100
    late = [name for name, share in shares.items() if share < promised]
    doubtful = {name: share_of_run(name) for name in DOUBTFUL}
    was = before.percent / 100 if before else None
    picture = drawings.promise(shares, promised, doubtful, was, narrow)
    chip = accelerator("A100 80GB SXM")
    rate = rate_at(promised, chip.peak(chip.training_format))
    tokens = float(trainable_tokens(30 * units.DAY, 8 * 10**9, 8, rate, "none"))
    were = "was" if len(late) == 1 else "were"
    slower = f"{len(late)} of {len(shares)} runs {were} slower" if late else "No run was slower"
    caption = (
        f"<b>{slower}.</b> Eight A100 would read "
        f"{units.count(tokens, 2)} tokens in 30 days, for a model of 8B."
    )
    return common.pictured(picture, caption)


PROMISE = common.Handle(
    book=({}, {"percent": 25}),
    title="Who would have kept this promise?",
    controls={
        "percent": common.Control(
            "You promise",
            "The share of its peak that you promise of each GPU, over the whole run.",
            unit="%",
            least=5,
            most=60,
            stops=tuple(range(10, 56, 5)),
        )
    },
    settings={"": Promise()},
    draw=_draw_promise,
    narrow=partial(_draw_promise, narrow=True),
)


@dataclass(frozen=True)
class Cluster:
    """A model of 175 billion parameters on a number of A100, divided in one of two ways."""

    num_gpus: int = 768
    way: str = "fetched (ZeRO-3)"


WAYS = {"fetched (ZeRO-3)": "ZeRO-3", "shared (PTD-P)": "PTD-P"}
CLUSTERS = (384, 768, 1536)
"""The ways to divide the model by their names, and on how many GPUs each was measured."""


def measured(way: str) -> list[dict[str, Any]]:
    """The rows of the model on 384, 768 and 1,536 GPUs, divided in this way."""
    runs = (row for row in rows("megatron_training_days") if row["scheme"] == way)
    return [row for row in runs if row["num_gpus"] in CLUSTERS]


def _draw_cluster(now: Cluster, before: Cluster | None, narrow: bool = False) -> str:
    runs = measured(WAYS[now.way])
    i = CLUSTERS.index(min(CLUSTERS, key=lambda n: abs(n - now.num_gpus)))
    row, first = runs[i], runs[0]
    hours = gpu_hours(first["days"] * units.DAY, first["num_gpus"])
    ideal = [float(seconds_of_hours(hours, n)) / units.DAY for n in CLUSTERS]
    share = float(utilization(row["flops_per_gpu"], accelerator("A100").peak("bf16")))
    groups = data_parallel_size(row["num_gpus"], tensor_parallel=row["model_parallel"])
    each = units.plural(accumulation_steps(row["global_batch_size"], 1, groups), "sequence")
    who = "Each GPU" if groups == row["num_gpus"] else "Each group of 96 GPUs"
    caption = (
        f"{units.plural(row['num_gpus'], 'GPU')}: <b>{row['days']} days</b>. {who} computes "
        f"{each} in a step before all exchange what they found."
    )
    marks = [Mark(f"175B by {WAYS[now.way]}", x["num_gpus"], x["days"]) for x in runs]
    return common.pictured(drawings.more_gpus(marks, i, ideal, share, narrow), caption)


MORE_GPUS = common.Handle(
    book=({"num_gpus": 1536}, {"num_gpus": 1536, "way": "shared (PTD-P)"}),
    title="The same step on more GPUs",
    controls={
        "num_gpus": replace(controls.GPUS, least=384, most=1536, stops=CLUSTERS),
        "way": controls.choice(
            "Weights",
            "Each GPU fetches all of them in each step, or keeps a part, in groups of 96.",
            WAYS,
        ),
    },
    settings={"": Cluster()},
    draw=_draw_cluster,
    narrow=partial(_draw_cluster, narrow=True),
)


@dataclass(frozen=True)
class Copied:
    """Which slips of the copied calculation are mended."""

    tokens: bool = False
    rate: bool = False
    length: bool = False


def _draw_copied(now: Copied, before: Copied | None, narrow: bool = False) -> str:
    s = 1024 if now.length else 1048
    shape = (40, 6144, 50257, s)
    rate = float(achieved_flops_per_gpu(gpt_flops(*shape, 512, "full"), 32.09, 16))
    T, X = (300e9 if now.tokens else 3e12), (rate if now.rate else 10 * rate)
    days = float(training_seconds(T, gpt_parameters(*shape), 16, X, "full")) / units.DAY
    all_right = now.tokens and now.rate and now.length
    lines = [
        Line(
            "tokens",
            "T = 300e9" if now.tokens else "T = 300 * 10e09",
            units.count(T),
            *(T, 1e10, now.tokens, (300e9, "the text says 300 billion")),
            ("10 billion", "1 trillion", "100 trillion"),
        ),
        Line(
            f"rate of a GPU, with s = {s}",
            f"X = {rate / 1e12:.0f} * {'1e12' if now.rate else '10e12'}",
            units.flops_per_second(X),
            *(X, 1e12, now.rate and now.length, (312e12, "peak of an A100: 312 TFLOP/s")),
            ("1 TFLOP/s", "100 TFLOP/s", "10 PFLOP/s"),
        ),
        Line(
            "days",
            "8 * T * P / (16 * X) / 86400",
            f"{units.digits(days)} days",
            *(days, 1, all_right),
        ),
    ]
    left = 3 - sum((now.tokens, now.rate, now.length))
    caption = f"<b>{units.digits(days)} days</b>, with {units.plural(left, 'slip')} left."
    if all_right:
        caption = f"<b>{units.digits(days)} days</b>, and no slip is left."
    return common.pictured(drawings.copied(lines, narrow), caption)


COPIED = common.Handle(
    book=({}, {"tokens": True, "rate": True, "length": True}),
    title="A calculation with three slips",
    controls={
        "tokens": common.Control("Mend the tokens", "The first slip.", "flag"),
        "rate": common.Control("Mend the rate", "The second slip.", "flag"),
        "length": common.Control("Mend the length", "The third slip.", "flag"),
    },
    settings={"": Copied()},
    draw=_draw_copied,
    narrow=partial(_draw_copied, narrow=True),
)
