"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from llmtrain_course.plan.formulas import share_of_peak
from llmtrain_helpers.checks import (
    Number,
    Result,
    broadcast,
    choice,
    count,
    instance,
    one,
    quantity,
    refuse,
    share,
)
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.model.tables import Row, rows
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.published import hours_of
from llmtrain_helpers.units import DAY, HOUR


def mfu_of_hfu(hfu: Number, recompute: str) -> Result:
    """Compute a run's model FLOPs utilization from its hardware FLOPs utilization.

    With full recomputation 6 of the 8 operations for each parameter and token are the
    model's, so that MFU = 6/8 · HFU; otherwise the two are the same, but for the little
    that selective recomputation adds. Source: arXiv 2205.05198 section 6.3.

    >>> mfu_of_hfu(0.44, "full"), mfu_of_hfu(0.44, "none")
    (0.33, 0.44)
    """
    choice("recompute", recompute, RECOMPUTE)
    reached = share("hfu", hfu)
    return reached * 6 / 8 if recompute == "full" else reached


def seconds_of_hours(gpu_hours: Number, num_gpus: Number) -> Result:
    """Convert GPU-hours on n GPUs to seconds: 3600 · hours / n.

    >>> seconds_of_hours(24576, num_gpus=1024)
    86400.0
    """
    hours, n = quantity("gpu_hours", gpu_hours), count("num_gpus", num_gpus)
    broadcast(gpu_hours=hours, num_gpus=n)
    return hours * HOUR / n


def nearest_run(tokens: Number, parameters: Number) -> Row:
    """Find the published run with the nearest work, tokens times parameters.

    >>> nearest_run(2e12, 70e9)["name"]
    'Llama 2 70B'
    """
    T = one("tokens", tokens, quantity)
    P = one("parameters", parameters, quantity)
    runs = [Row(row | {"gpu_hours": hours_of(row)}) for row in rows("training_runs")]
    complete = [row for row in runs if row["gpu_hours"] and "tokens" in row]
    work = [row["tokens"] * row["active_parameters"] / (T * P) for row in complete]
    return min(zip(work, complete, strict=True), key=lambda w: max(w[0], 1 / w[0]))[1]


def measured_days(scheme: str) -> list[Row]:
    """List the timed days of a 175B model on 384, 768 and 1,536 A100s.

    `scheme` is ZeRO-3 or PTD-P. Source: arXiv 2104.04473 Table 2.

    >>> [row["days"] for row in measured_days("ZeRO-3")]
    [90, 74, 74]
    """
    choice("scheme", scheme, ("ZeRO-3", "PTD-P"))
    timed = (row for row in rows("megatron_training_days") if row["scheme"] == scheme)
    return [row for row in timed if row["parameters"] == 174.6e9]


def second_of_run(plan: Plan) -> dict[str, Result]:
    """Split each second of a run on the calendar by what a GPU does in it.

    The run's likely days over its steps are one step and its overhead. The work that 6TP
    counts and the rest of its operations are taken at the chip's peak. What the matrix
    products need beyond that, the trips to memory, what's sent and a pipeline's waiting are
    the plan's account of a step. What others' software needed above such an account is the
    rest of the step.

    >>> from llmtrain_helpers import plan_run
    >>> model, options = "Llama-3.1-8B", {"recompute": "none", "zero_stage": 3}
    >>> plan = plan_run(model, "H100 SXM", 64, 1e12, 512, **options)
    >>> parts = second_of_run(plan)
    >>> [round(parts[name], 2) for name in ("work", "products", "others", "overhead")]
    [0.33, 0.17, 0.14, 0.23]
    """
    instance("plan", plan, Plan)
    run, parts = plan.run, plan.step
    if parts is None:
        refuse("plan", plan, "has a chip whose bandwidths or best product are unknown")
    whole = plan.days.likely * DAY / plan.iterations
    step = plan.seconds_per_iteration.likely
    work = share_of_peak(plan, plan.days.likely) * whole
    at_peak = plan.total_flops / plan.iterations / (run.num_gpus * run.peak)
    products = parts.matmuls + parts.head
    sent = parts.tensor + parts.context + parts.expert + parts.pipeline + parts.bubble + parts.data
    steps = parts.total * parts.compiled
    seconds = {
        "work": work,
        "scores": at_peak - work,
        "products": products - at_peak,
        "memory": steps - products - sent,
        "sent": sent,
        "others": step - steps,
        "overhead": whole - step,
    }
    return {name: part / whole for name, part in seconds.items()}
