"""The panel of chapter 08: a whole plan, its pipeline, and advice that can be taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.drawings.plan import (
    at_first,
    first_run,
    idle_fraction,
    pipeline_steps,
    plan_at_a_glance,
    span_in_words,
)
from llmtrain_helpers.evidence.published import accelerator, architecture, read_config
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.panels import common
from llmtrain_helpers.plan.advice import Advice, advise
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.precision import RECIPES
from llmtrain_helpers.results import Interval
from llmtrain_helpers.units import rounded_down


def _preset(**changes: Any) -> dict[str, Any]:
    return {
        "num_gpus": 64,
        "tokens": 10**12,
        "micro_batch_size": 1,
        "model": "Llama-3.1-8B",
        "recompute": "none",
        "zero_stage": 3,
        "pipeline_parallel": 1,
        "days": 30,
        "chip": "H100 SXM",
        "tensor_parallel": 1,
        "context_parallel": 1,
        "expert_parallel": 1,
        "gradients": "sharded",
        "global_batch_size": 512,
        "sequence_length": 8192,
        "recipe": "bf16",
        "price": 2.5,
        "flops_per_gpu": 0,
        "seconds_per_iteration": 0,
        "config": "",
    } | changes


_GPT3 = {
    "model": "GPT-3 175B",
    "sequence_length": 2048,
    "chip": "A100 80GB SXM",
    "num_gpus": 1024,
    "tensor_parallel": 8,
    "pipeline_parallel": 8,
    "zero_stage": 1,
    "recompute": "full",
    "tokens": 300 * 10**9,
    "global_batch_size": 1536,
    "days": 34,
    "flops_per_gpu": 140e12,
}

_PRESETS = {
    "8B on 64 H100": _preset(),
    "A pipeline of 4 stages": _preset(pipeline_parallel=4, global_batch_size=128, zero_stage=1),
    "8B, not all sharded": _preset(zero_stage=2),
    "70B on 8 H100": _preset(
        **{"model": "Llama-3.1-70B", "num_gpus": 8, "tensor_parallel": 8},
        **{"zero_stage": 1, "recompute": "full"},
    ),
    "GPT-3, a measured rate": _preset(**_GPT3),
    "A mixture of experts": _preset(
        **{"model": "Mixtral-8x7B", "expert_parallel": 8, "zero_stage": 1},
        **{"recompute": "full", "tokens": 300 * 10**9},
    ),
    "A batch that does not divide": _preset(num_gpus=100),
}


GRADIENTS = ["sharded", "whole"]
"""What ZeRO 2 and 3 do with gradients between the passes of a step."""

_CONTROLS = {
    "num_gpus": common.GPUS,
    "tokens": common.TOKENS,
    "micro_batch_size": common.Control(
        "Micro-batch",
        "Sequences at once on a GPU.",
        unit="at a time",
        most=1_000_000,
        stops=common.doublings(1, 16),
    ),
    "model": common.models(counted=True),
    "recompute": common.choice(
        "Recomputed", "What is computed a second time to save memory.", RECOMPUTE
    ),
    "zero_stage": common.choice(
        "ZeRO stage", "What replicas share out instead of each keeping it.", [0, 1, 2, 3]
    ),
    "pipeline_parallel": common.Control(
        "Pipeline stages", "GPUs that share the stack of layers.", most=1_000
    ),
    "days": common.Control(
        "Days you have",
        "The days that the run may take, stops included.",
        unit="days",
        least=0.1,
        most=100_000,
        whole=False,
    ),
    "chip": common.accelerators(more=True),
    "tensor_parallel": common.Control(
        "Tensor parallel", "GPUs that share each matrix.", most=1_000, more=True
    ),
    "context_parallel": common.Control(
        "Context parallel", "GPUs that share each sequence.", most=1_000, more=True
    ),
    "expert_parallel": common.Control(
        "Expert parallel",
        "GPUs over which the experts are spread.",
        most=1_000,
        more=True,
        applies=lambda values: _has_experts(values),
    ),
    "gradients": common.choice(
        "Gradients between passes",
        "What ZeRO 2 and 3 do with gradients between the passes of a step.",
        GRADIENTS,
        more=True,
        applies=lambda values: values["zero_stage"] > 1,
    ),
    "global_batch_size": common.BATCH,
    "sequence_length": common.SEQUENCE,
    "recipe": common.choice(
        "Recipe", "Which number formats the copies have.", [*RECIPES], more=True
    ),
    "price": common.Control(
        "Price",
        "Dollars for one GPU for one hour; 0 leaves the cost out.",
        unit="dollars a GPU-hour",
        least=0,
        most=1e6,
        whole=False,
        more=True,
    ),
    "flops_per_gpu": common.Control(
        "Measured rate",
        "What each GPU does in a second, recomputed work counted, as 400T; 0 if it is not known.",
        unit="FLOP/s",
        least=0,
        zero="not measured",
        most=1e17,
        whole=False,
        more=True,
        applies=lambda values: not values["seconds_per_iteration"],
    ),
    "seconds_per_iteration": common.Control(
        "Measured step",
        "Seconds of one iteration in just this setting; 0 if it is not known.",
        unit="seconds",
        least=0,
        zero="not measured",
        most=1e6,
        whole=False,
        more=True,
        applies=lambda values: not values["flops_per_gpu"],
    ),
    "config": common.Control(
        "or a config.json", "Path of a Hugging Face config file.", "text", more=True
    ),
}


def render(before: common.Values | None = None, **chosen: Any) -> common.Answer:
    """Sentence, pictures, tables and the call in code; and advice to be taken."""
    plan, days = _plan(**chosen), chosen["days"]
    old = _plan(**before) if before else None
    steps = advise(plan)
    offers = (*_fitting(steps), *_sooner(plan, days))
    html = "".join(
        [
            common.sentence(_sentence(plan, days, old)),
            f"<div>{plan_at_a_glance(plan, days, old).live()}</div>",
            f"<div>{_pipeline(plan, old) if _turns(plan)[0] > 1 else ''}</div>",
            common.folded("The numbers", _tables(plan)),
            common.folded("In code", common.call(_call(plan, **chosen))),
            f"<p>{_advice(plan, days, steps, offers)}</p>",
        ]
    )
    return common.Answer(html, offers=offers)


def _shape(chosen: common.Values) -> Transformer:
    if chosen["config"].strip():
        return read_config(chosen["config"].strip(), chosen["sequence_length"])
    return _published(chosen["model"], chosen["sequence_length"])


_published = lru_cache(64)(architecture)
"""Shapes of the shelf: one redraw asks for the same one many times."""


def _has_experts(chosen: common.Values) -> bool:
    """Whether the model is a mixture; a config file that cannot be read is none."""
    try:
        return bool(_shape(chosen).num_experts)
    except (ValueError, OSError):
        return False


def _experts(chosen: common.Values) -> int:
    """Over how many GPUs experts are spread, of a model that has them."""
    return int(chosen["expert_parallel"]) if _has_experts(chosen) else 1


_SAME = [
    "num_gpus",
    "global_batch_size",
    "recompute",
    "micro_batch_size",
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "zero_stage",
    "recipe",
]
"""The controls that `plan_run` takes as they are."""


def _plan(**chosen: Any) -> Plan:
    X, step = chosen["flops_per_gpu"], chosen["seconds_per_iteration"]
    if X and step:
        raise ValueError("give flops_per_gpu or seconds_per_iteration, not both")
    model = _shape(chosen)
    common.check_replicas(model, chosen)
    plan = plan_run(
        model=model,
        accelerator=accelerator(chosen["chip"]),
        tokens=chosen["tokens"],
        price_per_gpu_hour=chosen["price"] or None,
        keep_gradients=chosen["gradients"] == "whole",
        flops_per_gpu=X or None,
        format=_format(chosen),
        expert_parallel=_experts(chosen),
        **{name: chosen[name] for name in _SAME},
    )
    return plan.calibrated(step) if step else plan


def _format(chosen: common.Values) -> str | None:
    """The peak that goes with a recipe: of 32 or 8 bits, or the chip's 16 bits."""
    if chosen["recipe"] == "fp8":
        return "fp8"
    if chosen["recipe"] != "fp32":
        return None
    return "tf32" if "tf32" in accelerator(chosen["chip"]).peaks else "fp32"


def _pipeline(plan: Plan, old: Plan | None) -> str:
    return pipeline_steps(
        plan.split.pipeline_parallel,
        int(plan.split.accumulation_steps),
        backward=3 if plan.run.recompute == "full" else 2,
        before=_turns(old) if old else (),
    ).live()


def _turns(plan: Plan) -> tuple[int, int]:
    return plan.split.pipeline_parallel, int(plan.split.accumulation_steps)


def _sentence(plan: Plan, days: float, old: Plan | None) -> str:
    span = plan.days_with_stops
    told = f"<b>{span_in_words(span)}</b>"
    if old and old.days_with_stops != span:
        told += f" (dashed: {span_in_words(old.days_with_stops)})"
    held = units.gigabytes(plan.memory.total)
    told += f"; you have {days:g}. Each GPU holds <b>{held}</b>: "
    if plan.fits:
        free = f"{told}<b>fits</b>, {units.gigabytes(plan.room)} free."
        return free + at_first(plan, days)
    if plan.tight:
        asked = units.gigabytes(plan.reserve)
        left = f"{units.gigabytes(plan.room)} free, where {asked} should stay so"
        return f"{told}<b>tight</b>: it fits on paper only, with {left}."
    return f"{told}<b>does not fit</b>, {units.gigabytes(-plan.room)} too much."


def _tables(plan: Plan) -> str:
    """What is counted; and apart from it, what is estimated."""
    m = int(plan.split.accumulation_steps)
    counted = {
        "parameters": units.exact(plan.parameters.total),
        "FLOPs of the run": units.flops(plan.total_flops),
        "iterations": units.count(round(plan.iterations)),
        "micro-batches in a step": units.exact(m),
        "idle in a pipeline of equal stages, of the step": idle_fraction(_turns(plan)[0], m),
        "sent to other replicas in a step": units.gigabytes(plan.traffic),
        "memory of a GPU": units.gigabytes(plan.memory.total),
        "to be kept free": units.gigabytes(plan.reserve),
    }
    told = common.table(["counted", ""], [list(row) for row in counted.items()])
    if plan.measured:
        rows = [[name, likely] for name, _, likely, _ in _spans(plan)]
        note = "The calendar adds what stops the machines."
        return told + common.table(["at your rate", ""], rows) + f"<p>{note}</p>"
    told += common.table(["estimated", "least", "likely", "greatest"], _spans(plan))
    likely = f"Likely MFU {units.percent(plan.mfu)}"
    told = f"{told}<p>{likely}. The intervals: {plan.shares.evidence}.</p>"
    return told + (_step_by_parts(plan) if plan.step else "")


def _step_by_parts(plan: Plan) -> str:
    """What the model of a step says of this split: its larger parts."""
    assert plan.step is not None
    parts, shares = plan.step.parts(), plan.step.shares()
    rows = [
        [WORDS[name], units.duration(float(parts[name])), units.percent(shares[name])]
        for name in parts
        if shares[name] >= 0.001
    ]
    return common.table(["a step, if software loses nothing", "", "share"], rows)


WORDS = {
    "matmuls": "matrix products",
    "memory": "trips to memory",
    "launching": "launching kernels",
    "tensor": "sent inside layers",
    "context": "sent for shared sequences",
    "expert": "sent to experts",
    "head": "logits and loss",
    "pipeline": "sent between stages",
    "bubble": "waiting of the pipeline",
    "data": "sent between replicas, not hidden",
    "optimizer": "update",
}
"""The parts of a step in words."""


def _spans(plan: Plan) -> list[list[str]]:
    known = {
        "a step, without stops": (plan.seconds_per_iteration, units.duration),
        "the run": (plan.seconds, units.duration),
        "GPU-hours": (plan.gpu_hours, units.count),
        "cost": (plan.cost, units.dollars),
        "energy (kWh)": (plan.energy and plan.energy.times(1 / 3.6e6), units.count),
    }
    return [
        [name, *(unit(x) for x in (span.least, span.likely, span.greatest))]
        for name, (span, unit) in known.items()
        if isinstance(span, Interval)
    ]


# --- advice


def _advice(
    plan: Plan, days: float, steps: tuple[Advice, ...], offers: Sequence[common.Offer]
) -> str:
    """What the offers are for; a word where there is nothing to advise."""
    if plan.fits:
        if not offers:
            return "It fits, and there is time: no advice."
        if plan.days_with_stops.greatest <= days:
            return "It fits, and there is time, but perhaps not for a first run:"
        return "It fits. To be in time at the slow end, too, one of these:"
    if not steps:
        return "Nothing that could be changed here would make it fit."
    told = "What helps, cheapest first; each takes those before it, too."
    told = told if len(steps) > 1 else "What helps at the lowest price."
    return f"{told} Then it {'fits' if steps[-1].plan.fits else 'still does not fit'}:"


def _fitting(steps: tuple[Advice, ...]) -> Iterator[common.Offer]:
    """What makes the plan fit, in order."""
    changes: dict[str, Any] = {}
    for step in steps:
        changes = {**changes, **step.change}
        yield f"{_changed(step)}: {_effect(step)}", changes


def _changed(step: Advice) -> str:
    """The change by the labels of its controls."""
    told = [f"{_CONTROLS[x].label} {value}" for x, value in step.change.items()]
    return " and ".join(told)


def _effect(step: Advice) -> str:
    """What it saves and what it costs."""
    told = [f"saves {units.gigabytes(step.saved)} on each GPU"]
    if abs(step.dearer) >= 0.001:
        sign = "+" if step.dearer > 0 else ""
        told.append(f"{sign}{units.percent(step.dearer)} GPU-hours")
    if step.sent > 0:
        told.append(f"sends {units.gigabytes(step.sent)} more a step")
    if "num_gpus" in step.change:
        told.append(f"takes {units.duration(step.plan.days_with_stops.likely * units.DAY, 2)}")
        if abs(step.dearer) < 0.001:
            told.append("the same GPU-hours")
    free = abs(step.dearer) < 0.001 and step.sent <= 0
    free &= "num_gpus" not in step.change
    return ", ".join([*told, "free"] if free else told)


def _sooner(plan: Plan, days: float) -> Iterator[common.Offer]:
    """Of what fits: fewer tokens, or more GPUs, that end in time at the slow end."""
    late = plan.days_with_stops.greatest / days
    if plan.fits and late <= 1 < first_run(plan) / days:
        tokens = rounded_down(plan.run.tokens * days / first_run(plan))
        told = f"Tokens {units.short(tokens)}: in time even as a first run"
        yield told, {"tokens": tokens}
    if not plan.fits or late <= 1:
        return
    tokens = rounded_down(plan.run.tokens / late)
    if _in_time(plan, days, tokens=tokens):
        each = units.digits(tokens / plan.parameters.active, 2)
        told = f"Tokens {units.short(tokens)}: in time, {each} for each parameter"
        yield told, {"tokens": tokens}
    for n in (plan.split.num_gpus * 2**k for k in range(1, 6)):
        more = _in_time(plan, days, num_gpus=n)
        if more:
            span = span_in_words(more.days_with_stops)
            told = f"GPUs {n}: {span}, {_price(plan, more)}"
            yield told, {"num_gpus": n}
            return


def _price(plan: Plan, other: Plan) -> str:
    """GPU-hours of another plan beside this one's, as far as that is known."""
    dearer = float(other.gpu_hours.likely / plan.gpu_hours.likely) - 1
    told = f"{'+' if dearer > 0 else ''}{units.digits(100 * dearer, 2)} % GPU-hours"
    told = "the same GPU-hours" if abs(dearer) < 0.01 else told
    keeps = "the network keeps up" if _knows_splits(plan) else "each stays as fast"
    return f"{told} if {keeps}"


def _knows_splits(plan: Plan) -> bool:
    """Whether the seconds follow the split: not at a given rate, or unknown links."""
    return plan.step is not None and plan.run.flops_per_gpu is None


def _in_time(plan: Plan, days: float, **change: int) -> Plan | None:
    """The plan with this change, if it can be, fits and ends in time."""
    try:
        other = plan.but(**change)
    except ValueError:  # the batch does not divide, or no batch is left
        return None
    return other if other.fits and other.days_with_stops.greatest <= days else None


def _call(plan: Plan, **chosen: Any) -> str:
    s, path = chosen["sequence_length"], chosen["config"].strip()
    made = f"architecture({chosen['model']!r}" if not path else f"read_config({path!r}"
    given = {name: chosen[name] for name in _SAME[2:]}
    if _experts(chosen) > 1:
        given["expert_parallel"] = _experts(chosen)
    given["keep_gradients"] = chosen["gradients"] == "whole"
    given["price_per_gpu_hour"] = chosen["price"] or None
    if plan.run.format:
        given["format"] = plan.run.format
    if plan.run.flops_per_gpu is not None:
        given["flops_per_gpu"] = plan.run.flops_per_gpu
    options = ", ".join(f"{name}={value!r}" for name, value in given.items())
    step = chosen["seconds_per_iteration"]
    own = f"\nplan = plan.calibrated({step:g})" if step else ""
    return (
        f"model = published.{made}, {s})\n"
        f"chip = published.accelerator({chosen['chip']!r})\n"
        f"{'plan = ' if own else ''}plan_run(model, chip, {chosen['num_gpus']}, "
        f"{common.in_code(chosen['tokens'])}, {chosen['global_batch_size']},"
        f"\n    {options}){own}"
    )


PANEL = common.Panel(
    "What will your run take?",
    _CONTROLS,
    _PRESETS,
    ("A pipeline of 4 stages", "70B on 8 H100"),
    render,
)
