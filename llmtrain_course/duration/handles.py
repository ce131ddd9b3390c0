"""Chapter 03: the panel of days, GPU-hours and cost; handles for days, counts, promises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from llmtrain_course.duration import pictures as drawings
from llmtrain_course.duration.formulas import (
    measured_days,
    mfu_of_hfu,
    nearest_run,
    second_of_run,
    seconds_of_hours,
)
from llmtrain_course.duration.pictures import Count, RunDays, days_against_gpus
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.formulas import published_model, rate_at, trainable_tokens
from llmtrain_course.kit.handle import Shown, flag, handle, slider
from llmtrain_course.kit.layout import PAGE
from llmtrain_helpers import published, units
from llmtrain_helpers.duration import (
    UTILIZATIONS,
    cost,
    energy,
    flops_per_parameter,
    gpu_hours,
    training_interval,
    training_seconds,
)
from llmtrain_helpers.flops import Recompute, utilization
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.parameters import count_parameters
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.published import PEAKS, accelerator, rows, share_of_run
from llmtrain_helpers.results import Interval


@dataclass(frozen=True)
class Setting:
    """A model, its tokens and GPUs, and what the rate of a GPU counts."""

    model: str = "Llama-2-70b"
    tokens: int = 2 * 10**12
    num_gpus: int = 1024
    percent: float = 42.83  # which gives the 1.72 million GPU-hours that Meta reports
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
    def run_days(self) -> RunDays:
        """The dot of the run in the picture: its GPUs and its days."""
        return RunDays("your run", self.num_gpus, self.seconds / units.DAY)


_SETTINGS = {
    "Llama 2 70B on 1,024 A100s": Setting(),
    "GPT-3, all recomputed": Setting("GPT-3 175B", 300 * 10**9, 1024, 44.9, "full"),
    "Llama 3.1 405B": Setting(
        "Llama-3.1-405B", 15_600 * 10**9, 16384, 38.0, "none", chip="H100 SXM"
    ),
    "Mixtral on 256 H100s": Setting("Mixtral-8x7B", 10**12, 256, 35.0, "none", chip="H100 SXM"),
}

_CONTROLS = {
    "model": controls.MODEL,
    "tokens": controls.TOKENS,
    "num_gpus": controls.GPUS,
    "percent": replace(
        controls.SHARE_OF_PEAK,
        help="Percentage of the chip's peak that each GPU reaches: an HFU if everything is "
        "recomputed, and otherwise an MFU.",
        stops=controls.steps(5, 80, *(x / 2 for x in range(2, 20))),
    ),
    "recompute": replace(
        controls.RECOMPUTED,
        help="Full: work and rate include the second forward pass (8TP). Selective: only "
        "attention's scores, which 6TP leaves out.",
        more=True,
    ),
    "chip": controls.CHIP,
    "format": controls.choice(
        "Number format",
        "The format whose peak counts. bf16 and fp16 have 16 bits.",
        PEAKS,
        more=True,
    ),
    "price": controls.PRICE,
}


def render(setting: Setting, before: Setting | None = None, width: int = PAGE) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    T, P, n = round(setting.tokens), setting.parameters, setting.num_gpus
    span = training_interval(T, P, n, accelerator(setting.chip).peak(setting.format))
    picture = days_against_gpus(
        setting.run_days,
        published_runs(),
        (span.least / units.DAY, span.greatest / units.DAY),
        before.run_days if before else None,
    ).drawing(width)
    code = (
        f"training_seconds(tokens={common.in_code(T)}, parameters={P}, "
        f"num_gpus={n}, flops_per_gpu={setting.rate:.6g}, recompute={setting.recompute!r}) / 86400"
    )
    title = "Compared with the published run whose work is nearest"
    return "".join(
        [
            common.sentence(_sentence(setting, span) + _utilization(setting)),
            picture.inline_svg(),
            common.folded(title, _table(setting)),
            common.folded("In code", common.call(code)),
        ]
    )


@cache
def published_runs() -> tuple[RunDays, ...]:
    """The published runs whose GPUs and days are known, by name.

    Those in tier A: what was reported of them is of the run, and no estimate.
    """
    runs = []
    for row in rows("training_runs"):
        if row["tier"] == "A" and "num_gpus" in row:
            days = row.get("days", 0)
            if "gpu_hours" in row:
                days = seconds_of_hours(row["gpu_hours"], row["num_gpus"]) / units.DAY
            if days:
                runs.append(RunDays(row["name"], row["num_gpus"], float(days)))
    return tuple(runs)


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
        f"At an MFU of {units.share(UTILIZATIONS[0])} to {units.share(UTILIZATIONS[2])}, like 13 "
        f"of 14 published runs, it would be {least} to {greatest}."
    )


def _utilization(setting: Setting) -> str:
    """Which share the slider's is, and whether it is outside all that runs reached."""
    mfu = 100 * mfu_of_hfu(setting.percent / 100, setting.recompute)
    text = f" Your {setting.percent:g}% is an MFU."
    if setting.recompute == "full":
        text = f" Your {setting.percent:g}% is an HFU, which includes recomputed work."
    shares = shares_of_runs().values()
    if mfu > 100 * UTILIZATIONS[2]:
        place = f"over {units.share(UTILIZATIONS[2])}"
    elif mfu < 100 * min(shares):
        place = f"below {units.share(min(shares))}"
    else:
        return text
    return f"{text} <b>Look again</b>: none of {len(shares)} published runs was {place}."


def _table(setting: Setting) -> str:
    """Your run next to the published run with the nearest tokens times parameters."""
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
    "How many days?", _CONTROLS, _SETTINGS, ("GPT-3, all recomputed", "Llama 3.1 405B"), render
)


# --- handles

PRICE = 2
"""Dollars for a GPU-hour, where a handle says what a run costs; an assumption."""


def _spread(run: str, num_gpus: int) -> RunDays:
    """A run whose GPU-hours are published, on so many GPUs."""
    seconds = seconds_of_hours(published.run(run)["gpu_hours"], num_gpus)
    return RunDays(run, num_gpus, float(seconds) / units.DAY)


_GPUS = tuple(sorted((*controls.doublings(32, 16384), 2400)))
"""With 2,400 GPUs Llama 2 70B is done within a month, which is what the page asks."""


@handle(
    "Days against GPUs, with the published runs that needed them.",
    num_gpus=replace(controls.GPUS, most=100_000, stops=_GPUS),
    run=controls.choice(
        "Run",
        "A run that published its GPU-hours, but not its number of GPUs.",
        ["Llama 2 70B", "Llama 2 7B", "LLaMA-1 7B"],
    ),
    book=({}, {"num_gpus": 4096}),
)
def gpus_and_days(num_gpus: int = 1024, run: str = "Llama 2 70B", previous: Any = None) -> Shown:
    """The days and the bill of a run on so many GPUs."""
    same = previous and previous.run == run  # another run's dot says nothing here
    you, hours = _spread(run, num_gpus), published.run(run)["gpu_hours"]
    began = _spread(run, previous.num_gpus) if same else None
    caption = (
        f"{run} on {units.plural(num_gpus, 'GPU')}: <b>{units.duration(you.days * units.DAY)}</b>, "
        f"{units.count(hours)} GPU-hours, {units.dollars(cost(hours * units.HOUR, 1, PRICE))} at "
        f"{PRICE} dollars per hour.{' <b>Within a month.</b>' if you.days <= 30 else ''}"
    )
    return days_against_gpus(you, published_runs(), previous=began), caption


WORKS: dict[str, Recompute] = {"6TP": "none", "8TP": "full"}
RATES: dict[str, Recompute] = {"HFU": "full", "MFU": "none"}
"""What can be counted, by its name: with the pass that is computed again, or without it."""


@handle(
    "The days you get if you pair 8TP or 6TP with either kind of rate.",
    work=controls.choice(
        "The work counts", "Six operations per parameter and token, or eight.", WORKS
    ),
    rate=controls.choice(
        "The rate is an", "An HFU includes the recomputed work, and an MFU doesn't.", RATES
    ),
    book=({}, {"work": "8TP"}),
)
def eight_or_six(work: str = "6TP", rate: str = "HFU") -> Shown:
    """What the work of BLOOM counts, and what the rate of its GPUs counts."""
    bloom = published.run("BLOOM-176B")
    T, P, n, peak = (bloom[x] for x in ("tokens", "active_parameters", "num_gpus", "peak_flops"))
    hfu = float(utilization(bloom["flops_per_gpu"], peak))
    rates = {
        "full": float(rate_at(hfu, peak)),
        "none": float(rate_at(mfu_of_hfu(hfu, "full"), peak)),
    }
    counted, by = WORKS[work], RATES[rate]
    right = float(training_seconds(T, P, n, rates["full"], "full")) / units.DAY
    days = float(training_seconds(T, P, n, rates[by], counted)) / units.DAY
    flops = units.flops(flops_per_parameter(counted) * T * P)
    over, under = Count(work, flops, counted == "full"), rates[by] * n
    caption = "Both count the recomputed pass. <b>The counts agree.</b>"
    if counted == by == "none":
        caption = "Neither counts the recomputed pass. <b>The counts agree.</b>"
    elif counted != by:
        more, less = ("work", "rate") if counted == "full" else ("rate", "work")
        caption = f"The {more} counts a pass that the {less} leaves out: "
        caption += f"<b>{drawings.off(days / right)}</b>."
    second = Count(rate, units.flops_per_second(under), by == "full")
    return drawings.eight_or_six(over, second, days, right, bloom["days"]), caption


# --- more GPUs on the same batch


@handle(
    "The same model on more GPUs, with its weights in place or fetched for each layer.",
    num_gpus=slider(
        "GPUs",
        "The most A100s that the model was timed on.",
        tuple(run["num_gpus"] for run in measured_days("ZeRO-3")),
        between=False,
    ),
    shared=flag("Share the weights", "Whether a group of 96 GPUs also shares the weights."),
    book=({}, {"num_gpus": 1536, "shared": True}),
)
def more_gpus(num_gpus: int = 768, shared: bool = False) -> Shown:
    """The days of one model on more and more GPUs that fetch its weights, or share them."""
    ways, peak = [*drawings.WAYS][: 1 + shared], accelerator("A100").peak("bf16")
    sentences = []
    for way in ways:
        runs = [run for run in measured_days(drawings.WAYS[way]) if run["num_gpus"] <= num_gpus]
        *earlier, run = runs
        share = units.share(float(utilization(run["flops_per_gpu"], peak)))
        text = f"Weights {way}: <b>{run['days']} days</b> at {share} of the peak"
        if earlier:
            less = 1 - run["days"] / earlier[-1]["days"]
            change = f"{units.share(less)} fewer" if less else "not one fewer"
            text += f", <b>{change}</b> than on {earlier[-1]['num_gpus']} GPUs"
        sentences.append(f"{text}.")
    return drawings.more_gpus(num_gpus, ways), " ".join(sentences)


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


@handle(
    "Published runs by utilization: those below your line would've been late.",
    percent=slider(
        "You promise",
        "The share of its peak that you promise for each GPU, over the whole run.",
        (10, 15, 20, 22, *range(25, 56, 5)),
        unit="%",
        least=5,
        most=60,
    ),
    book=({}, {"percent": 25}),
)
def promise(percent: int = 35, previous: Any = None) -> Shown:
    """The runs that were slower than a share of the peak, and what it means for eight GPUs."""
    shares, promised = shares_of_runs(), percent / 100
    doubtful = {name: share_of_run(name) for name in DOUBTFUL}
    was = previous.percent / 100 if previous else None
    chip = accelerator("A100 80GB SXM")
    rate = rate_at(promised, chip.peak(chip.training_format))
    tokens = float(trainable_tokens(30 * units.DAY, 8 * 10**9, 8, rate, "none"))
    late = sum(share < promised for share in shares.values())
    slower = f"{late} of {len(shares)} runs {'was' if late == 1 else 'were'} slower"
    caption = (
        f"<b>{slower if late else 'No run was slower'}.</b> Eight A100s would train an 8B "
        f"model on {units.count(tokens, 2)} tokens in 30 days."
    )
    return drawings.promise(shares, promised, doubtful, was), caption


# --- one second of a GPU

MODELS = {"1B": ("Llama-3.2-1B", 1), "8B": ("Llama-3.1-8B", 1), "70B": ("Llama-3.1-70B", 8)}
"""Models by their size: which, and how many GPUs share each matrix."""


@cache
def _planned(size: str) -> Plan:
    """A trillion tokens on 64 H100s for one of the models, as chapter 08 plans them."""
    model, tensor = MODELS[size]
    return plan_run(
        model, "H100 SXM", 64, 1e12, 512, tensor_parallel=tensor, recompute="none", zero_stage=3
    )


@handle(
    "One second of a GPU in a long run, split into useful work and everything else.",
    model=controls.choice("Model", "Which of three Llamas trains on 64 H100s.", MODELS),
    book=({}, {"model": "70B"}),
)
def one_second(model: str = "8B") -> Shown:
    """What a GPU does in each second that a run takes on the calendar."""
    parts = {name: float(part) for name, part in second_of_run(_planned(model)).items()}
    name, _ = MODELS[model]
    part = max((x for x in parts if x not in ("work", "overhead")), key=parts.__getitem__)
    return drawings.second_of_gpu(parts, name.replace("-", " ")), (
        f"<b>{1000 * parts['work']:.0f} ms of work.</b> No step runs for "
        f"{1000 * parts['overhead']:.0f} ms, and the largest part of the rest is "
        f"{drawings.SECOND[part][0]}."
    )
