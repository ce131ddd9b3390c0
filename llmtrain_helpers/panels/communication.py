"""The panel of chapter 07: who sends what to whom under a split, and how long."""

from __future__ import annotations

from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.communication import bandwidth_of
from llmtrain_helpers.drawings.communication import WORDS, sending, step_bar, who_sends
from llmtrain_helpers.drawings.plan import parts_of
from llmtrain_helpers.evidence import published
from llmtrain_helpers.flops import RECOMPUTE
from llmtrain_helpers.panels import common
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.units import seconds as about, share

CHIPS = tuple(
    name
    for name in published.names("accelerators")
    if None
    not in (bandwidth_of(published.accelerator(name), 1), published.accelerator(name).matmul_share)
)
"""Chips whose links, and whose best rate of a matrix product, are known."""


def _preset(**changes: Any) -> dict[str, Any]:
    return {
        "tensor_parallel": 8,
        "pipeline_parallel": 1,
        "num_gpus": 64,
        "model": "Llama-3.1-70B",
        "zero_stage": 1,
        "recompute": "full",
        "chip": "H100 SXM",
        "micro_batch_size": 1,
        "global_batch_size": 256,
        "sequence_length": 8192,
        "context_parallel": 1,
        "expert_parallel": 1,
        "interleave": 1,
        "gradients": "sharded",
    } | changes


_GPT3 = {"model": "GPT-3 175B", "sequence_length": 2048, "chip": "A100 80GB SXM"}
_GPT3 |= {"num_gpus": 512, "global_batch_size": 1536, "micro_batch_size": 2}

_PRESETS = {
    "70B on 64 H100": _preset(),
    "GPT-3 on 512 A100": _preset(**_GPT3, pipeline_parallel=8),
    "Little work for each": _preset(
        **{"model": "Qwen2.5-7B", "num_gpus": 1024, "tensor_parallel": 1},
        **{"global_batch_size": 1024, "sequence_length": 2048},
        recompute="none",
    ),
    "A small model, cut fine": _preset(
        **{"model": "Llama-3.2-1B", "num_gpus": 8, "chip": "A100 80GB SXM"},
        **{"micro_batch_size": 4, "global_batch_size": 512, "sequence_length": 2048},
        recompute="none",
    ),
    "8B on 64 H100, of 07-b": _preset(
        model="Llama-3.1-8B", global_batch_size=512, recompute="none"
    ),
    "405B on 16,384 H100, of 07-c": _preset(
        model="Llama-3.1-405B", num_gpus=16384, global_batch_size=2048
    ),
    "A mixture of experts": _preset(
        **{"model": "Mixtral-8x7B", "tensor_parallel": 2, "expert_parallel": 4},
        global_batch_size=512,
    ),
    "A split that does not divide": _preset(num_gpus=100),
}

GRADIENTS = ["sharded", "whole"]
"""What ZeRO 2 and 3 do with gradients between the passes of a step."""

_CONTROLS = {
    "tensor_parallel": common.Control(
        "Tensor parallel", "GPUs that share each matrix.", most=1_000, stops=common.doublings(1, 16)
    ),
    "pipeline_parallel": common.Control(
        "Pipeline stages",
        "Groups of layers, one behind the other.",
        most=1_000,
        stops=common.doublings(1, 32),
    ),
    "num_gpus": common.Control(
        "GPUs",
        "All GPUs of the run; those that the split leaves are replicas.",
        most=1_000_000,
        stops=common.doublings(8, 16384),
    ),
    "model": common.models(),
    "zero_stage": common.choice(
        "ZeRO stage", "What replicas share out instead of each keeping it.", [0, 1, 2, 3]
    ),
    "recompute": common.choice(
        "Recomputed", "What is computed a second time to save memory.", RECOMPUTE
    ),
    "chip": common.choice("Accelerator", "The chip, and its links.", CHIPS, more=True),
    "micro_batch_size": common.Control(
        "Micro-batch", "Sequences at once in a replica.", unit="at a time", most=100_000, more=True
    ),
    "global_batch_size": common.BATCH,
    "sequence_length": common.SEQUENCE,
    "context_parallel": common.Control(
        "Context parallel", "GPUs that share each sequence.", most=1_000, more=True
    ),
    "expert_parallel": common.Control(
        "Expert parallel",
        "GPUs over which the experts are spread.",
        most=1_000,
        more=True,
        applies=lambda values: published.architecture(values["model"]).num_experts > 0,
    ),
    "interleave": common.Control(
        "Pieces for each stage",
        "Pieces of the model that each GPU of a pipeline holds.",
        most=100,
        more=True,
        applies=lambda values: values["pipeline_parallel"] > 1,
    ),
    "gradients": common.choice(
        "Gradients between passes",
        "What ZeRO 2 and 3 do with gradients between the passes of a step.",
        GRADIENTS,
        more=True,
        applies=lambda values: values["zero_stage"] > 1,
    ),
}

_SAME = ["num_gpus", "global_batch_size", "recompute", "micro_batch_size"]
_SAME += ["tensor_parallel", "pipeline_parallel", "context_parallel", "zero_stage"]
"""The controls that `plan_run` takes as they are."""


def render(before: common.Values | None = None, **chosen: Any) -> str:
    """Sentence, the GPUs, the step, the numbers, and the call in code."""
    plan = planned(chosen)
    old = planned(before) if before else None
    pictures = f"{who_sends(plan).live()}{step_bar(plan, old).live()}"
    return "".join(
        [
            common.sentence(_sentence(plan, old)),
            f"<div>{pictures}</div>",
            common.folded("The numbers", _table(plan)),
            common.folded("In code", common.call(_code(chosen))),
        ]
    )


def planned(chosen: common.Values) -> Plan:
    """The plan of these values; a ValueError in words where they make none."""
    model = published.architecture(chosen["model"], chosen["sequence_length"])
    common.check_replicas(model, chosen)
    return plan_run(
        model,
        published.accelerator(chosen["chip"]),
        tokens=chosen["global_batch_size"] * chosen["sequence_length"],
        keep_gradients=chosen["zero_stage"] > 1 and chosen["gradients"] == "whole",
        uneven_stages=True,
        **_where_it_applies(chosen),
        **{name: chosen[name] for name in _SAME},
    )


def _where_it_applies(chosen: common.Values) -> dict[str, Any]:
    """Experts and pieces, of a model and a split that have them."""
    names = ("expert_parallel", "interleave")
    return {x: chosen[x] if _CONTROLS[x].applies(chosen) else 1 for x in names}


def _sentence(plan: Plan, old: Plan | None) -> str:
    step = plan.step
    assert step is not None  # only chips with known links can be chosen
    told = f"A step takes <b>{about(step.total)}</b>"
    if old and old.step and old.step.total != step.total:
        told += f" (dashed: {about(old.step.total)})"
    seen = sum(part.visible for part in sending(plan).values())
    told += f", <b>{share(seen / step.total)}</b> of it sending that nothing hides"
    if step.bubble:
        told += f", {share(step.bubble / step.total)} waiting"
    return f"{told}. {_room(plan)}"


def _room(plan: Plan) -> str:
    held = units.gigabytes(plan.memory.total)
    chip = units.gigabytes(plan.run.accelerator.memory)
    if plan.fits or plan.tight:
        fits = "fits" if plan.fits else "tight"
        return f"A GPU holds {held} of {chip}: <b>{fits}</b>."
    return f"A GPU would need {held} and has {chip}: <b>does not fit</b>."


def _table(plan: Plan) -> str:
    """What is sent, part by part; the step, piece by piece; what a GPU holds."""
    step, held = plan.step, parts_of(plan)
    assert step is not None
    pieces = [
        [WORDS.get(name, name), about(seconds), share(seconds / step.total)]
        for name, seconds in step.parts().items()
        if seconds
    ]
    note = (
        "<p>Seconds of a model that leaves out what software loses; steps of others "
        "took 1.04 to 1.6 times as long in 16 bits. It compares splits.</p>"
    )
    memory = [[name, units.gigabytes(size)] for name, size in held.items()]
    tables = _traffic(plan) + common.table(["the step", "", ""], pieces) + note
    return tables + common.table(["one GPU holds", ""], memory)


def _traffic(plan: Plan) -> str:
    head = ["one GPU sends in a step", "bytes", "with others", "takes", "seen"]
    rows = [
        [
            name,
            units.gigabytes(part.sent),
            units.exact(part.others),
            about(part.seconds),
            about(part.visible) if part.visible else "0 s",
        ]
        for name, part in sending(plan).items()
    ]
    return common.table(head, rows) if rows else "<p>Nothing is sent.</p>"


def _code(chosen: common.Values) -> str:
    given = {name: chosen[name] for name in _SAME[2:]} | _where_it_applies(chosen)
    given["keep_gradients"] = chosen["zero_stage"] > 1 and chosen["gradients"] == "whole"
    options = ", ".join(f"{name}={value!r}" for name, value in given.items())
    tokens = chosen["global_batch_size"] * chosen["sequence_length"]
    return (
        f"model = published.architecture({chosen['model']!r}, "
        f"{chosen['sequence_length']})\n"
        f"chip = published.accelerator({chosen['chip']!r})\n"
        f"plan = plan_run(model, chip, {chosen['num_gpus']}, {tokens}, "
        f"{chosen['global_batch_size']}, uneven_stages=True,\n    {options})\n"
        "plan.sent, plan.step"
    )


PANEL = common.Panel(
    "Who sends what to whom?",
    _CONTROLS,
    _PRESETS,
    ("A small model, cut fine", "Little work for each"),
    render,
)
