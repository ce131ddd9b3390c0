"""How fast others' steps and runs were. Beside notebooks/08_plan.ipynb.

A plan's seconds: at a given rate, at a measured step's pace, or over the shares of the
peak that others reached, which the split shifts. `utilizations` and `splits` compute
these constants from data/, and tests hold them to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from llmtrain_helpers.checks import Result, quantity
from llmtrain_helpers.flops import utilization
from llmtrain_helpers.plan.run import Run
from llmtrain_helpers.plan.seconds import StepSeconds
from llmtrain_helpers.results import Interval


@dataclass(frozen=True)
class Shares:
    """Shares of the dense peak that others reached, recomputed work counted (HFU).

    Of single `steps`, and of whole `runs` with their stops, each low, likely and high,
    without the pipeline's bubble; `evidence` says in words what they rest on.
    """

    steps: tuple[float, float, float]
    runs: tuple[float, float, float]
    evidence: str


UTILIZATIONS = {
    "16-bit dense": Shares(
        (0.36, 0.48, 0.65),
        (0.37, 0.43, 0.5),
        ("314 of 384 steps of 4 teams, each judged by the others; 9 of 10 whole runs"),
    ),
    "fp8 dense": Shares(
        (0.2, 0.3, 0.47), (0.18, 0.27, 0.47), "0 of 27 steps of 2 teams, each judged by the other"
    ),
    "fp4 dense": Shares(
        (0.13, 0.22, 0.36), (0.12, 0.19, 0.36), "untested: 8 steps, all of one team"
    ),
    "32-bit dense": Shares(
        (0.23, 0.48, 1.0), (0.21, 0.43, 1.0), "untested: nobody has published such steps"
    ),
    "16-bit experts": Shares(
        (0.11, 0.17, 0.26),
        (0.1, 0.15, 0.26),
        "80 of 99 steps of 4 models, each judged by the others",
    ),
    "fp8 experts": Shares(
        (0.11, 0.17, 0.26),
        (0.1, 0.15, 0.26),
        "80 of 99 steps of 4 models, each judged by the others",
    ),
    "fp4 experts": Shares(
        (0.05, 0.12, 0.29), (0.05, 0.11, 0.29), "untested: nobody has published such steps"
    ),
    "32-bit experts": Shares(
        (0.07, 0.17, 0.4), (0.06, 0.15, 0.4), "untested: nobody has published such steps"
    ),
}
"""What others reached, by kind: the number format, dense or experts. A share of the
16-bit peak is no share of the fp8 peak, and experts reach a far smaller one."""

PACES = {
    ("dense", "any"): (
        (0.54, 0.8, 1.18),
        "455 of 504 steps of 21 publications, each judged by the others",
    ),
    ("dense", "megatron-core"): (
        (0.65, 0.77, 0.91),
        "44 of 59 steps of 6 publications, each judged by the others",
    ),
    ("dense", "other"): (
        (0.58, 0.78, 1.04),
        "408 of 445 steps of 16 publications, each judged by the others",
    ),
    ("experts", "any"): (
        (0.42, 0.6, 0.86),
        "57 of 63 steps of 4 models, each judged by the others",
    ),
}

"""How fast others' steps were as a share of what the model of a step says of their own
split (`step_seconds`), low, likely and high, and what they rest on: by dense or experts,
in 16 bits and fp8 alike, and by whose software. Of experts only NVIDIA's is known."""

STOPS = (1.08, 1.2, 1.5)
"""A run's time over that of its computing alone, of four published runs whose rate is
known: least, middle and most. It holds restarts, evaluation, batches that grew."""


def others_shares(run: Run, at_peak: Result, step: StepSeconds | None) -> Shares:
    """Shares of the peak that others reached with such a format, dense or with experts.

    With a model of the step, shifted by the split: what the model gives of the peak,
    times the pace of others' steps; whole runs in the same ratio. The run's own
    `utilizations` take the place of all that.
    """
    if run.utilizations is not None:
        u = run.utilizations
        return Shares(u, u, "the utilisations that were given")
    bits = {"bf16": "16-bit", "fp16": "16-bit", "fp8": "fp8", "fp4": "fp4"}
    layers = "experts" if run.model.num_experts else "dense"
    kind = f"{bits.get(run.number_format, '32-bit')} {layers}"
    known = UTILIZATIONS[kind]
    if step is None or kind.split()[0] not in ("16-bit", "fp8"):
        return known
    paces, evidence = PACES.get((layers, run.software), PACES[layers, "any"])
    low, likely, high = (at_peak / step.total * pace for pace in paces)
    runs = [u * likely / known.steps[1] for u in known.runs]
    return Shares((low, likely, high), (runs[0], runs[1], runs[2]), evidence)


def seconds_per_step(
    run: Run, work: Result, at_peak: Result, shares: Shares, step: StepSeconds | None
) -> tuple[Interval, Interval]:
    """Seconds of a step, and of one of a whole run, which has the stops in it.

    At a given rate or pace both are the same. `work` is a step's FLOPs, `at_peak` the
    seconds that they take at the peak, the pipeline's bubble included.
    """
    if run.flops_per_gpu is not None:
        utilization(run.flops_per_gpu, run.peak)  # refuses a rate above the peak
        exact = work / (run.num_gpus * run.flops_per_gpu)
        interval = Interval(exact, exact, exact)
        return interval, interval
    if run.pace is not None and step is not None:
        interval = run.pace.seconds(step, run.split)
        return interval, interval
    quantity("tokens·FLOPs/(num_gpus·peak)", at_peak)
    of_steps, of_runs = (
        Interval(at_peak / high, at_peak / likely, at_peak / low)
        for low, likely, high in (shares.steps, shares.runs)
    )
    return of_steps, of_runs
