"""The panel of chapter 07: the planner."""

from __future__ import annotations

from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.advice import Advice, advise
from llmtrain_helpers.architecture import Transformer
from llmtrain_helpers.duration import Interval
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.panels import common
from llmtrain_helpers.plan import Plan, plan_run
from llmtrain_helpers.precision import RECIPES
from llmtrain_helpers.published import accelerator, architecture, read_config


def _preset(**changes: Any) -> dict[str, Any]:
    return {
        "model": "Llama-3.1-8B",
        "config": "",
        "sequence_length": 8192,
        "chip": "H100 SXM",
        "num_gpus": 64,
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
        "context_parallel": 1,
        "zero_stage": 3,
        "gradients": "sharded",
        "tokens": 10**12,
        "global_batch_size": 512,
        "micro_batch_size": 1,
        "recipe": "bf16_fp32_grads",
        "recompute": "none",
        "price": 2.5,
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
}

_PRESETS = {
    "8B on 64 H100": _preset(),
    "8B, twice the micro-batch": _preset(micro_batch_size=2),
    "GPT-3 on 1,024 A100": _preset(**_GPT3),
    "70B on 8 H100": _preset(
        **{"model": "Llama-3.1-70B", "num_gpus": 8, "tensor_parallel": 8},
        **{"zero_stage": 1, "recompute": "full"},
    ),
}


GRADIENTS = ["sharded", "whole"]
"""What ZeRO 2 and 3 do with gradients between the passes of a step."""

_CONTROLS = {
    "model": common.models(),
    "num_gpus": common.GPUS,
    "tokens": common.TOKENS,
    "recompute": common.choice(
        "Recomputed", "What is computed a second time to save memory.", RECOMPUTE
    ),
    "zero_stage": common.choice(
        "ZeRO stage",
        "What replicas share out instead of each keeping it.",
        [0, 1, 2, 3],
    ),
    "config": common.Control(
        "or a config.json", "Path of a Hugging Face config file.", "text", more=True
    ),
    "sequence_length": common.SEQUENCE,
    "chip": common.accelerators(more=True),
    "tensor_parallel": common.Control(
        "Tensor parallel", "GPUs that share each matrix.", most=1_000, more=True
    ),
    "pipeline_parallel": common.Control(
        "Pipeline stages", "GPUs that share the stack of layers.", most=1_000, more=True
    ),
    "context_parallel": common.Control(
        "Context parallel", "GPUs that share each sequence.", most=1_000, more=True
    ),
    "gradients": common.choice(
        "Gradients between passes",
        "What ZeRO 2 and 3 do with gradients between the passes of a step.",
        GRADIENTS,
        more=True,
    ),
    "global_batch_size": common.BATCH,
    "micro_batch_size": common.Control(
        "Micro-batch",
        "Sequences at once on a GPU.",
        unit="sequences",
        most=1_000_000,
        more=True,
    ),
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
}


def render(before: common.Values | None = None, **chosen: Any) -> str:
    """The panel's answer as HTML: sentence, picture, table, advice, call in code."""
    plan = _plan(**chosen)
    memory = plan.inputs["accelerator"].memory
    bars = {"On each GPU": plan.memory.parts(), "Memory": {"memory": memory}}
    return "".join(
        [
            common.sentence(_sentence(plan)),
            common.stacked_bars(bars, units.gigabytes),
            common.table(["", "least", "likely", "greatest"], _rows(plan)),
            f"<p>The intervals: {plan.shares.evidence}.</p>",
            _advice(plan),
            common.call(_call(**chosen)),
        ]
    )


def _shape(chosen: dict[str, Any]) -> Transformer:
    if chosen["config"].strip():
        return read_config(chosen["config"].strip(), chosen["sequence_length"])
    return architecture(chosen["model"], chosen["sequence_length"])


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
    return plan_run(
        model=_shape(chosen),
        accelerator=accelerator(chosen["chip"]),
        tokens=chosen["tokens"],
        price_per_gpu_hour=chosen["price"] or None,
        keep_gradients=chosen["gradients"] == "whole",
        **{name: chosen[name] for name in _SAME},
    )


def _sentence(plan: Plan) -> str:
    days = plan.seconds
    told = f"<b>{units.duration(days.likely)}</b> ({units.duration(days.least)} to "
    told += f"{units.duration(days.greatest)}), and each GPU holds "
    told += f"<b>{units.gigabytes(plan.memory.total)}</b>: "
    if plan.fits:
        return f"{told}<b>fits</b>, {units.gigabytes(plan.room)} left."
    if plan.tight:
        asked = units.gigabytes(plan.reserve)
        left = f"{units.gigabytes(plan.room)} left, where {asked} should stay free"
        return f"{told}<b>tight</b>: it fits on paper only, with {left}."
    return f"{told}<b>does not fit</b>, {units.gigabytes(-plan.room)} too much."


def _rows(plan: Plan) -> list[list[str]]:
    single = {
        "parameters": units.count(plan.parameters.total),
        "FLOPs of the run": units.flops(plan.total_flops),
        "iterations": units.count(round(plan.iterations)),
        "pipeline's bubble": units.percent(plan.split.bubble),
        "likely MFU": units.percent(plan.mfu),
    }
    rows = [[name, "", told, ""] for name, told in single.items()]
    return [*rows, *_spans(plan)]


def _spans(plan: Plan) -> list[list[str]]:
    known = {
        "a step, without stops": (plan.seconds_per_iteration, units.duration),
        "the run, with stops": (plan.seconds, units.duration),
        "GPU-hours": (plan.gpu_hours, units.count),
        "cost": (plan.cost, units.dollars),
        "energy (kWh)": (plan.energy and plan.energy.times(1 / 3.6e6), units.count),
    }
    return [
        [name, *(unit(x) for x in (span.least, span.likely, span.greatest))]
        for name, (span, unit) in known.items()
        if isinstance(span, Interval)
    ]


def _advice(plan: Plan) -> str:
    """What to change, in order, with its price; nothing where the plan fits."""
    steps = advise(plan)
    if plan.fits:
        return ""
    if not steps:
        return "<p>Nothing that could be changed here would make it fit.</p>"
    rows = [[_changed(s), units.gigabytes(s.saved), _price(s)] for s in steps]
    told = common.table(["what to change, cheapest first", "saves", "price"], rows)
    end = "Then it fits." if steps[-1].plan.fits else "Even then it does not."
    return f"{told}<p>{end}</p>"


def _changed(step: Advice) -> str:
    return ", ".join(f"{name} = {value}" for name, value in step.change.items())


def _price(step: Advice) -> str:
    prices = ["more GPUs"] if "num_gpus" in step.change else []
    if abs(step.dearer) >= 0.001:
        sign = "+" if step.dearer > 0 else ""
        prices += [f"{sign}{units.percent(step.dearer)} GPU-hours"]
    if step.sent > 0:
        prices += [f"sends {units.gigabytes(step.sent)} more a step"]
    return ", ".join(prices) or "free"


def _call(**chosen: Any) -> str:
    s, path = chosen["sequence_length"], chosen["config"].strip()
    made = f"architecture({chosen['model']!r}" if not path else f"read_config({path!r}"
    given = {name: chosen[name] for name in _SAME[2:]}
    given["keep_gradients"] = chosen["gradients"] == "whole"
    given["price_per_gpu_hour"] = chosen["price"] or None
    options = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return (
        f"model = published.{made}, {s})\n"
        f"chip = published.accelerator({chosen['chip']!r})\n"
        f"plan_run(model, chip, {chosen['num_gpus']}, "
        f"{common.in_code(chosen['tokens'])}, {chosen['global_batch_size']},"
        f"\n    {options})"
    )


PANEL = common.Panel(
    "The planner",
    _CONTROLS,
    _PRESETS,
    ("8B, twice the micro-batch", "70B on 8 H100"),
    render,
)
