"""How fast other steps and runs were. Goes with notebooks/09_plan.ipynb.

The seconds of a step, from a given rate, a measured step's pace, or the shares of the peak
that others reached, which the split shifts. A run's seconds are its steps' times the stops.
`utilizations` and `splits` compute these constants from data/, and tests compare them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from llmtrain_helpers.checks import Result, quantity
from llmtrain_helpers.flops import utilization
from llmtrain_helpers.plan.memory import offload_seconds
from llmtrain_helpers.plan.run import Run
from llmtrain_helpers.plan.seconds import StepSeconds
from llmtrain_helpers.results import Interval, maximum


@dataclass(frozen=True)
class Shares:
    """Shares of the dense peak that other steps reached, including recomputed work (HFU).

    Low, likely and high, without the pipeline's bubble and without stops; `evidence`
    describes what they're based on.
    """

    steps: tuple[float, float, float]
    evidence: str


CHIP_FAMILIES = {
    "TPU": " on TPU",
    "Trainium": " on Trainium",
    "Gaudi": " on Gaudi",
    "MI": " on AMD",
    "Ascend": " on Ascend",
}
"""Other vendors' chips by the start of their names, and the suffix of their kinds of steps."""


def of_family(chip: str) -> str:
    """Return the suffix of a kind of step on a chip; empty on NVIDIA's chips.

    >>> of_family("TPU v5p"), of_family("H100 SXM")
    (' on TPU', '')
    """
    return next((kind for begins, kind in CHIP_FAMILIES.items() if chip.startswith(begins)), "")


def for_every_family(shares: Mapping[str, Shares]) -> dict[str, Shares]:
    """Shares by kind; NVIDIA's if no step of a kind was published on a family's chips.

    The evidence then says so, or that nobody has published such steps at all.
    """
    of_nvidia = {kind: own for kind, own in shares.items() if " on " not in kind}
    everywhere = dict(shares)
    for family in CHIP_FAMILIES.values():
        for kind, own in of_nvidia.items():
            words = own.evidence.partition("; ")[0]  # what follows is about whole runs
            if not words.endswith("nobody has published such steps"):
                words += f", all on NVIDIA's chips: our tables have none{family}"
            everywhere.setdefault(f"{kind}{family}", replace(own, evidence=words))
    return everywhere


PUBLISHED_SHARES = {
    "16-bit dense on AMD": Shares((0.22, 0.41, 0.77), "untested: 4 steps, all of one publication"),
    "16-bit dense on TPU": Shares(
        (0.52, 0.66, 0.83), "10 of 47 steps of 2 publications, each judged by the other"
    ),
    "16-bit dense on Trainium": Shares(
        (0.16, 0.32, 0.64), "untested: 24 steps, all of one publication"
    ),
    "fp8 dense on Gaudi": Shares((0.3, 0.51, 0.86), "untested: 3 steps, all of one publication"),
    "fp8 dense on TPU": Shares((0.23, 0.51, 1.0), "untested: 4 steps, all of one publication"),
    "16-bit dense": Shares(
        (0.38, 0.53, 0.72), "422 of 491 steps of 20 publications, each judged by the others"
    ),
    "fp8 dense": Shares(
        (0.29, 0.38, 0.49), "106 of 121 steps of 9 publications, each judged by the others"
    ),
    "fp4 dense": Shares((0.1, 0.2, 0.38), "untested: 12 steps, all of NVIDIA's software"),
    "32-bit dense": Shares((0.23, 0.53, 1.0), "untested: nobody has published such steps"),
    "16-bit experts": Shares(
        (0.1, 0.17, 0.28), "93 of 111 steps of 4 models, each judged by the others"
    ),
    "fp8 experts": Shares(
        (0.1, 0.17, 0.28), "93 of 111 steps of 4 models, each judged by the others"
    ),
    "fp4 experts": Shares((0.03, 0.09, 0.24), "untested: nobody has published such steps"),
    "32-bit experts": Shares((0.06, 0.17, 0.46), "untested: nobody has published such steps"),
}
"""What others reached, by kind: number format, dense or experts. A share of the 16-bit
peak isn't a share of the fp8 peak, and experts reach a much smaller share."""

UTILIZATIONS = for_every_family(PUBLISHED_SHARES)
"""The same for every kind and every family of chips."""

HIGHEST = {
    "16-bit dense": 0.87,
    "16-bit dense on AMD": 0.47,
    "16-bit dense on TPU": 0.89,
    "16-bit dense on Trainium": 0.39,
    "16-bit experts": 0.43,
    "fp4 dense": 0.22,
    "fp8 dense": 0.52,
    "fp8 dense on Gaudi": 0.5,
    "fp8 dense on TPU": 0.58,
    "fp8 experts": 0.33,
}
"""The highest share of the peak (HFU) of any published step, by kind; if your own step is
above it, have a second look."""

PACES = {
    ("dense", "any"): (
        (0.6, 0.83, 1.15),
        "509 of 558 steps of 24 publications, each judged by the others",
    ),
    ("dense", "megatron-core"): (
        (0.75, 0.88, 1.03),
        "83 of 99 steps of 7 publications, each judged by the others",
    ),
    ("dense", "other"): (
        (0.56, 0.79, 1.1),
        "424 of 459 steps of 18 publications, each judged by the others",
    ),
    ("experts", "any"): (
        (0.54, 0.77, 1.1),
        "60 of 71 steps of 4 models, each judged by the others",
    ),
}

"""How fast others' steps were, as a share of what the model of a step says for their own
split (`step_seconds`): low, likely and high, and what they're based on. By dense or
experts, in 16 bits and fp8 alike, and by software; for experts only NVIDIA's is known."""

TUNED = {
    "16-bit": Shares(
        (0.43, 0.57, 0.74),
        "131 of 145 speeds of 5 publications, each judged by the others; 119 are of one",
    )
}
"""What others reached when they tuned models in 16 bits, in full and with adapters, with
full sequences (`research.finetunes`). It's for steps, because nobody publishes stops. If
each publication weighs the same, 70% lie in the interval of the other four.
Weights in 4 bits are slower with a few hundred tokens on a GPU, which no row here has."""

LONGEST = 65_536
"""Tokens of the longest text for which a measured step lies in the interval of its plan;
with 131,072 and 262,144 the steps took 1.6 and 1.7 times the likely seconds (torchtitan,
the scores through a ring), and nothing is fitted to them."""

STOPS = (1.08, 1.3, 1.64)
"""A run's overhead, as its time over its steps': least, middle and most of seven runs.

It includes restarts, evaluation, batches that grew and whatever else kept the steps waiting.
The number of GPUs and the days don't predict it, so it's one factor for every run
(`research.utilizations.stops`)."""

WHOLE_RUNS = "10 of 10 whole runs lie inside, each judged without its own team"
"""How well steps × stops predicts the days of published runs with hours of just the run."""


def stops(run: Run) -> tuple[float, float, float]:
    """A run's time over its steps' time: its own, or `STOPS`.

    1 if you give a rate or shares of the peak, because those describe the whole run, and in
    tuning, because nobody publishes its stops.
    """
    if run.stops is not None:
        return run.stops
    given = run.flops_per_gpu is not None or run.utilizations is not None
    return (1, 1, 1) if given or run.tuning is not None else STOPS


def whole_run(seconds: Interval, stops: tuple[float, float, float]) -> Interval:
    """Seconds of a run from those of its steps: step × stops, as in `Interval.product`."""
    return seconds if stops == (1, 1, 1) else seconds.product(Interval(*stops))


def others_shares(run: Run, at_peak: Result, step: StepSeconds | None) -> Shares:
    """Shares of the peak that others reached with this format, dense or with experts.

    If there's a step model, the split shifts them: the model's share of the peak, times the
    pace of other steps. If nobody says whether kernels are compiled, the high end assumes
    that they are. The run's own `utilizations` replace all this.
    """
    if run.utilizations is not None:
        return Shares(run.utilizations, "the utilisations that were given")
    if run.tuning is not None:
        return TUNED["16-bit"]
    bits, layers = _kind(run)
    shares = UTILIZATIONS[f"{bits} {layers}{of_family(run.accelerator.name)}"]
    if step is None or bits not in ("16-bit", "fp8"):
        return shares
    paces, evidence = PACES.get((layers, run.software), PACES[layers, "any"])
    low, likely, high = (at_peak / step.total * pace for pace in paces)
    return Shares((low, likely, high / step.compiled), evidence)


def highest_share(run: Run) -> float | None:
    """The highest share of the peak (HFU) of a published step of the run's kind, or None."""
    return HIGHEST.get(f"{' '.join(_kind(run))}{of_family(run.accelerator.name)}")


def _kind(run: Run) -> tuple[str, str]:
    """The format of a run's products, and whether its layers are dense or experts."""
    bits = {"bf16": "16-bit", "fp16": "16-bit", "fp8": "fp8", "fp4": "fp4"}
    return bits.get(run.number_format, "32-bit"), "experts" if run.model.num_experts else "dense"


def seconds_per_step(
    run: Run,
    work: Result,
    at_peak: Result,
    shares: Shares,
    step: StepSeconds | None,
    wait: Result = 0.0,
) -> Interval:
    """Seconds of a step, without stops; exact at a given rate or a measured step's own split.

    `work` is a step's FLOPs, `at_peak` is their time at the peak, including the pipeline's
    bubble. Offloading is added to the shares of others, unless they come from the step
    model, which includes it, and so is a tuned step's `wait`, which in the fastest step
    hides behind the computing.
    """
    if run.flops_per_gpu is not None:
        utilization(run.flops_per_gpu, run.peak)  # refuses a rate above the peak
        exact = work / (run.num_gpus * run.flops_per_gpu)
        return Interval(exact, exact, exact)
    if run.pace is not None and step is not None:
        return run.pace.seconds(step, run.split)
    quantity("tokens·FLOPs/(num_gpus·peak)", at_peak)
    of_step = not any(shares is x for x in (*TUNED.values(), *UTILIZATIONS.values()))
    more = 0 if of_step or run.offload == "none" else offload_seconds(run)
    low, likely, high = (at_peak / share for share in shares.steps)
    return Interval(maximum(high, wait) + more, likely + wait + more, low + wait + more)
