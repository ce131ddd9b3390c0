"""Chapter 08: the panel of who sends what to whom; handles of splits, groups, pipelines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

from llmtrain_course.kit import controls, layout as kit, panel as common
from llmtrain_course.kit.drawing import STEP_PARTS
from llmtrain_course.kit.formulas import published_model
from llmtrain_course.kit.handle import Shown, handle, slider
from llmtrain_course.parallelism.formulas import Exchange, Schedule, SharedMlp, pipeline_schedule
from llmtrain_course.parallelism.four_gpus import LONGEST, step_end, step_on_four_gpus
from llmtrain_course.parallelism.grid import gpus_in_nodes
from llmtrain_course.parallelism.matrices import shared_mlp
from llmtrain_course.parallelism.pictures import (
    neighbour_grid,
    of_first_stage,
    sending,
    spread_over_nodes,
    step_bar,
    step_by_sharers,
    who_sends,
)
from llmtrain_course.parallelism.pipeline import MICRO_BATCHES, ROOM, STAGES, pipeline_step
from llmtrain_course.parallelism.places import Layout as GpuLayout, idle_gpus, too_few
from llmtrain_course.plan.handles import RECOMPUTED
from llmtrain_course.plan.pictures import parts_of
from llmtrain_helpers import published, units
from llmtrain_helpers.batch import StepTime, accumulation_steps, data_parallel_size
from llmtrain_helpers.communication import bandwidth_of
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.plan.plan import Plan, plan_run
from llmtrain_helpers.plan.seconds import StepSeconds


def _has_known_step(chip: str) -> bool:
    """Whether a chip's links, and its best rate of a matrix product, are known."""
    device = published.accelerator(chip)
    return bandwidth_of(device, 1) is not None and device.matmul_share is not None


CHIPS = tuple(filter(_has_known_step, published.names("accelerators")))
"""The chips whose step can be timed."""


@dataclass(frozen=True)
class Setting(controls.Split):
    """A split, and in how many pieces each stage of a pipeline is cut."""

    model: str = "Llama-3.1-70B"
    tensor_parallel: int = 8
    recompute: EveryRecompute = "full"
    global_batch_size: int = 256
    interleave: int = 1

    @property
    def pieces(self) -> int:
        """Pieces of each stage, where there is a pipeline."""
        return self.interleave if self.pipeline_parallel > 1 else 1

    @property
    def keeps_gradients(self) -> bool:
        """Whether gradients that could be sharded are kept whole between the passes."""
        return self.zero_stage > 1 and self.gradients == "whole"

    @property
    def step_tokens(self) -> int:
        """Tokens of one step, which is all that is planned here."""
        return self.global_batch_size * self.sequence_length


_SETTINGS = {
    "70B on 64 H100s": Setting(),
    "GPT-3 on 512 A100s": Setting(
        "GPT-3 175B",
        "A100 80GB SXM",
        num_gpus=512,
        pipeline_parallel=8,
        micro_batch_size=2,
        global_batch_size=1536,
        sequence_length=2048,
    ),
    "Little work per GPU": Setting(
        "Qwen2.5-7B",
        num_gpus=1024,
        tensor_parallel=1,
        recompute="none",
        global_batch_size=1024,
        sequence_length=2048,
    ),
    "A small model, cut fine": Setting(
        "Llama-3.2-1B",
        "A100 80GB SXM",
        num_gpus=8,
        recompute="none",
        micro_batch_size=4,
        global_batch_size=512,
        sequence_length=2048,
    ),
    "8B on 64 H100s, from parallelism-a": Setting(
        "Llama-3.1-8B", recompute="none", global_batch_size=512
    ),
    "405B on 16,384 H100s, from parallelism-b": Setting(
        "Llama-3.1-405B", num_gpus=16384, global_batch_size=2048
    ),
    "A mixture of experts": Setting(
        "Mixtral-8x7B", tensor_parallel=2, expert_parallel=4, global_batch_size=512
    ),
    "A split that doesn't divide": Setting(num_gpus=100),
}


_CONTROLS = {
    "tensor_parallel": replace(controls.TENSOR_PARALLEL, stops=controls.doublings(1, 16)),
    "pipeline_parallel": replace(controls.PIPELINE_PARALLEL, stops=controls.doublings(1, 32)),
    "num_gpus": replace(
        controls.GPUS,
        help="All GPUs of the run. TP and stages decide how many replicas that is.",
        most=1_000_000,
        stops=controls.doublings(8, 16384),
    ),
    "model": controls.MODEL,
    "zero_stage": controls.ZERO_STAGE,
    "recompute": RECOMPUTED,
    "chip": controls.choice("Accelerator", "The chip, and its links.", CHIPS, more=True),
    "micro_batch_size": replace(
        controls.MICRO_BATCH,
        help="Sequences that a replica processes at once.",
        most=100_000,
        more=True,
    ),
    "global_batch_size": controls.BATCH,
    "sequence_length": controls.SEQUENCE,
    "context_parallel": controls.CONTEXT_PARALLEL,
    "expert_parallel": controls.EXPERT_PARALLEL,
    "interleave": common.Control(
        "Pieces per stage",
        "Pieces of the model that each GPU of a pipeline stores.",
        most=100,
        more=True,
        applies=lambda setting: setting.pipeline_parallel > 1,
    ),
    "gradients": controls.GRADIENTS,
}


def planned(setting: Setting) -> Plan:
    """The plan of a setting; a ValueError in words where it makes none."""
    model = published_model(setting.model, setting.sequence_length)
    setting.check_replicas(model)
    return plan_run(
        model,
        published.accelerator(setting.chip),
        setting.num_gpus,
        setting.step_tokens,
        setting.global_batch_size,
        keep_gradients=setting.keeps_gradients,
        uneven_stages=True,
        expert_parallel=setting.experts,
        interleave=setting.pieces,
        **setting.mesh,
    )


def render(setting: Setting, before: Setting | None = None, width: int = kit.PAGE) -> str:
    """Sentence, the GPUs, the step, the numbers, and the call in code."""
    plan, old = planned(setting), planned(before) if before else None
    pictures = who_sends(plan), step_bar(plan, old)
    picture = kit.Below(pictures, " ".join(one.words for one in pictures), gap=12)
    return "".join(
        [
            common.sentence(_sentence(plan, old)),
            f"<div>{picture.drawing(width).inline_svg()}</div>",
            common.folded("The numbers", _tables(plan)),
            common.folded("In code", common.call(code(setting))),
        ]
    )


def _step(plan: Plan) -> StepSeconds:
    assert plan.step is not None  # only chips whose step is known can be chosen
    return plan.step


def _sentence(plan: Plan, old: Plan | None) -> str:
    step = _step(plan)
    result = f"A step takes <b>{units.seconds(step.total)}</b>"
    if old and _step(old).total != step.total:
        result += f" (dashed: {units.seconds(_step(old).total)})"
    visible = sum(part.visible for part in sending(plan).values())
    result += f", <b>{units.share(visible / step.total)}</b> of it exposed sending"
    if step.bubble:
        result += f" and {units.share(step.bubble / step.total)} waiting"
    size = units.gigabytes(plan.memory.total)
    memory = units.gigabytes(plan.card)
    if plan.fits or plan.tight:
        fits = "<b>fits</b>" if plan.fits else "is <b>tight</b>"
        return f"{result}. Each GPU needs {size} of its {memory}, so it {fits}."
    return f"{result}. Each GPU needs {size} but has {memory}, so it <b>doesn't fit</b>."


def _tables(plan: Plan) -> str:
    """Tabulate what's sent, part by part, the step, piece by piece, and the memory of a GPU."""
    step = _step(plan)
    sent = [
        [
            name,
            units.gigabytes(part.sent),
            units.exact(part.others),
            units.seconds(part.seconds),
            units.seconds(part.visible) if part.visible else "0 s",
        ]
        for name, part in sending(plan).items()
    ]
    pieces = [
        [STEP_PARTS[name].name, units.seconds(seconds), units.share(seconds / step.total)]
        for name, seconds in step.parts().items()
        if seconds
    ]
    memory = [[name, units.gigabytes(size)] for name, size in parts_of(plan).items()]
    head = ["one GPU sends per step", "bytes", "with others", "time", "exposed"]
    others = plan.seconds_per_iteration
    note = (
        "<p>These seconds leave out what software loses, so use them to compare splits. "
        "At the pace of other teams' software, the step takes "
        f"{units.seconds(others.least)} to {units.seconds(others.greatest)}.</p>"
    )
    return "".join(
        [
            common.table(head, sent) if sent else "<p>Nothing is sent.</p>",
            common.table(["the step", "", ""], pieces),
            note,
            common.table(["memory of one GPU", ""], memory),
        ]
    )


def code(setting: Setting) -> str:
    """The call that gives a setting's plan, ready to copy."""
    given = {
        **setting.mesh,
        "expert_parallel": setting.experts,
        "interleave": setting.pieces,
        "keep_gradients": setting.keeps_gradients,
    }
    options = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return (
        f"model = published.architecture({setting.model!r}, {setting.sequence_length})\n"
        f"chip = published.accelerator({setting.chip!r})\n"
        f"plan = plan_run(model, chip, {setting.num_gpus}, {setting.step_tokens}, "
        f"{setting.global_batch_size}, uneven_stages=True,\n    {options})\n"
        "plan.sent, plan.step"
    )


PANEL = common.Panel(
    "Who sends what to whom?",
    _CONTROLS,
    _SETTINGS,
    ("A small model, cut fine", "Little work per GPU"),
    render,
)


# --- the handle: how GPUs are split


@handle(
    "GPUs drawn as replicas, each split by tensor and pipeline parallelism.",
    tensor=replace(
        controls.TENSOR_PARALLEL, kind="number", options=(), most=16, stops=(1, 2, 4, 8, 16)
    ),
    pipeline=replace(
        controls.PIPELINE_PARALLEL, kind="number", options=(), most=8, stops=(1, 2, 3, 4, 8)
    ),
    gpus=replace(controls.GPUS, least=8, most=32, stops=(8, 16, 24, 32)),
    book=({}, {"tensor": 8}),
)
def gpu_split(tensor: int = 4, pipeline: int = 2, gpus: int = 16) -> Shown:
    """Nodes of eight GPUs, and over how many of them a replica is spread."""
    layout = GpuLayout(gpus, tensor, pipeline)
    picture = gpus_in_nodes(layout, rows=4)
    if not layout.replicas:
        return picture, f"<b>{too_few(layout)}</b>"
    each = units.plural(layout.a_replica, "GPU")
    caption = f"<b>{units.plural(layout.replicas, 'replica')} of {each}.</b> "
    if layout.left_over:
        caption += f"{idle_gpus(layout)}."
    elif layout.crosses:
        caption += "The GPUs that share matrices are in different nodes, so they use the network."
    elif layout.a_replica > 1:
        both = "Both" if layout.a_replica == 2 else f"All {layout.a_replica}"
        caption += f"{both} work on the same sequences."
    else:
        caption += "Every GPU works on its own sequences."
    return picture, caption


# --- the handle: a matrix that GPUs share


@handle(
    "The two matrices of an MLP, split over several GPUs.",
    step=slider(
        "Step", "Where you are: three steps forward, then three back.", (*range(7),), play=True
    ),
    gpus=controls.choice("GPUs", "How many GPUs share the matrices.", (2, 1)),
)
def shared_matrices(step: int = 0, gpus: int = 2) -> Shown:
    """Show GPUs that share two matrices, after so many steps."""
    mlp = SharedMlp(gpus=gpus)
    if gpus == 1 and step:
        caption = "One GPU stores everything, so it gets the same numbers and never waits."
        return shared_mlp(mlp, step), caption
    return shared_mlp(mlp, step), _of_matrices(mlp, step)


def _of_matrices(mlp: SharedMlp, step: int) -> str:
    """What a step of the shared matrices did, with one of its sums."""
    column = [row[0] for row in mlp.first]
    product = " + ".join(f"{x} · {w}" for x, w in zip(mlp.token, column, strict=True))
    first, back = (
        [part(i)[0] for i in range(mlp.gpus)] for part in (mlp.partial, mlp.partial_error)
    )
    return (
        "Each GPU gets the whole token, but only stores its part of the two matrices.",
        f"Forward. Each GPU computes hidden numbers, {product} = {mlp.hidden(0)[0]} first. "
        "<b>Nothing has to be sent.</b>",
        "Each GPU has all the numbers of the result, but each number is only a part of the sum, "
        "so all of them are wrong.",
        f"<b>An all-reduce</b> adds the parts up, {_sum(first)}. Until then, no GPU can continue.",
        "Backward. <b>Errors</b>, which show how each number should have changed, are passed "
        "back through the rows. Again, nothing is sent.",
        "Each GPU has a part of the token's error.",
        f"Backward, <b>a second all-reduce</b> adds up the errors, {_sum(back)}. "
        "Now the layer below can continue.",
    )[step]


def _sum(parts: Sequence[int]) -> str:
    return f"{' + '.join(map(str, parts))} = {sum(parts)}"


# --- the handle: a step on four GPUs

_TICKS = StepTime(overhead=4, rate=1 / 4)
"""Ticks of a forward pass through the whole model, by its sequences."""


def _copies(stages: int) -> int:
    """Replicas on four GPUs."""
    return int(data_parallel_size(4, pipeline_parallel=stages))


def _passes(stages: int, micro_batch: int) -> Schedule:
    """The passes of each replica, of 16 sequences for all; a pass's fixed part is a sequence's."""
    passes = int(accumulation_steps(16, micro_batch, _copies(stages)))
    forward = int(_TICKS.seconds(micro_batch)) // stages
    return pipeline_schedule(stages, passes, forward, 2 * forward)


_ENDS = {
    step_end(_passes(stages, micro), _copies(stages))
    for stages, micro in product((1, 2, 4), (1, 2, 4))
}
"""When the step ends in each setting: Play goes in large strides, and stops there."""


@handle(
    "One step on four GPUs: who computes, who sends and who waits.",
    now=slider(
        "Time",
        "How far the step has progressed.",
        tuple(sorted({*range(0, LONGEST + 1, 12), *_ENDS})),
        unit="ticks",
        play=True,
        reach=lambda it: step_end(_passes(it.stages, it.micro_batch), _copies(it.stages)),
    ),
    stages=slider(
        "Pipeline stages", "How many pieces the model is split into, on four GPUs.", (1, 2, 4)
    ),
    micro_batch=slider(
        "Micro-batch",
        "Sequences per pass. The step processes 16 in all.",
        (1, 2, 4),
        unit="at a time",
    ),
    book=({"now": 60}, {"now": 60, "stages": 4}),
)
def four_gpus(now: int = 0, stages: int = 1, micro_batch: int = 1, previous: Any = None) -> Shown:
    """A step up to a moment: what each GPU does, and how long it waits."""
    schedule, copies = _passes(stages, micro_batch), _copies(stages)
    end = step_end(schedule, copies)
    before = _passes(previous.stages, previous.micro_batch).end if previous else 0
    picture = step_on_four_gpus(schedule, copies, micro_batch, min(now, end), before)
    idle = f"a GPU waits for {units.share(schedule.idle)}" if schedule.idle else "no GPU waits"
    length = f"<b>The passes need {schedule.end} ticks</b>, and {idle}."
    if now < schedule.end:
        done = sum(turn.backward and turn.end <= now for turn in schedule.of_stage(0))
        passes = units.plural(schedule.micro_batches, "pass")
        return picture, f"GPU 1 has finished {done} of {passes}. {length}"
    if now < end and copies > 1:
        return picture, f"The replicas average their <b>gradients</b>, not their weights. {length}"
    return picture, f"Every GPU has updated its weights in the same way. {length}"


# --- the handle: a pipeline, turn by turn


def _drawn_batches(setting: Any) -> int:
    """The micro-batches for which there's room beside so many stages."""
    return int(min(setting.micro_batches, MICRO_BATCHES, ROOM - setting.stages))


def _most_pieces(setting: Any) -> int:
    """Four where micro-batches go round in groups of as many as there are stages, else one."""
    return 4 if setting.stages > 1 and _drawn_batches(setting) % setting.stages == 0 else 1


def _drawn_schedule(setting: Any) -> Schedule:
    """The turns of a setting, as far as there's room."""
    pieces = min(setting.interleave, _most_pieces(setting))
    return pipeline_schedule(setting.stages, _drawn_batches(setting), interleave=pieces)


@handle(
    "One step of a pipeline, turn by turn: which stages work and which wait.",
    stages=slider("Stages", controls.PIPELINE_PARALLEL.help, (1, 2, 3, 4, 6, STAGES)),
    micro_batches=slider(
        "Micro-batches",
        "How many pieces a replica's part of the batch is split into.",
        (1, 2, 3, 4, 6, 8, MICRO_BATCHES),
        play=True,
        reach=lambda setting: min(MICRO_BATCHES, ROOM - setting.stages),
    ),
    interleave=slider(
        "Pieces",
        "How many pieces of the model each stage runs, by turns.",
        (1, 2, 3, 4),
        applies=lambda setting: setting.stages > 1,
        reach=_most_pieces,
    ),
    book=({}, {"micro_batches": 12}),
)
def pipeline(
    stages: int = 4, micro_batches: int = 1, interleave: int = 1, previous: Any = None
) -> Shown:
    """What each stage does when, and how long it waits."""
    setting = SimpleNamespace(stages=stages, micro_batches=micro_batches, interleave=interleave)
    schedule = _drawn_schedule(setting)
    kept, pieces = schedule.in_flight(0), schedule.interleave
    caption = (
        f"Each stage waits for <b>{units.share(schedule.idle)} of the step</b>. Stage 1 "
        f"stores the activations of {kept:.3g} micro-batch{'es' if kept != 1 else ''} at once"
    )
    caption += f" (each piece is 1/{pieces} of one)." if pieces > 1 else "."
    if _most_pieces(setting) < 2 <= stages:
        caption += f" Pieces need a multiple of {stages} micro-batches."
    return pipeline_step(schedule, previous and _drawn_schedule(previous)), caption


# --- the handle: a step by how many GPUs share each matrix

SHARERS = (1, 2, 4, 8)
"""GPUs that may share each matrix, inside a node."""


def fastest(
    plan_of: Callable[[int, int, int], Plan], sharers: Sequence[int] = SHARERS
) -> Plan | None:
    """Find the usual split with the shortest step of those that fit, by the plan's own seconds.

    `plan_of` makes a plan from tensor parallelism, stages and ZeRO's stage, or refuses.
    """
    plans = []
    for split in product(sharers, (1, 2, 4, 8, 16), (1, 3)):
        try:
            plan = plan_of(*split)
        except ValueError:
            continue
        if plan.fits and plan.step:
            plans.append(plan)
    return min(plans, key=lambda plan: _step(plan).total, default=None)


@cache
def _by_sharers(model: str) -> tuple[StepSeconds, ...]:
    """The shortest step of a model on 64 H100s for each number of GPUs that share a matrix."""

    def plan_of(tensor: int, stages: int, zero: int) -> Plan:
        setting = Setting(model, tensor_parallel=tensor, pipeline_parallel=stages)
        return planned(replace(setting, zero_stage=zero))

    plans = [fastest(plan_of, (tensor,)) for tensor in SHARERS]
    return tuple(_step(plan) for plan in plans if plan)


@handle(
    "The fastest step that fits when one, two, four or eight GPUs share each matrix.",
    model=controls.choice(
        "Model",
        "The model that 64 H100s train on 256 sequences of 8,192 tokens per step.",
        ("Llama-3.2-1B", "Llama-3.2-3B", "Llama-3.1-70B"),
    ),
    book=({"model": "Llama-3.2-1B"}, {"model": "Llama-3.1-70B"}),
)
def sharing(model: str = "Llama-3.2-3B") -> Shown:
    """What a step takes as more GPUs share each matrix, with all else as fast as it can be."""
    steps = _by_sharers(model)
    alone, most = steps[0].total, steps[-1].total
    caption = (
        f"If eight GPUs share each matrix, a step takes {units.seconds(most)} instead of "
        f"{units.seconds(alone)}: <b>{units.digits(most / alone, 2)}× as long</b>."
    )
    return step_by_sharers(SHARERS, steps), caption


# --- the handle: who a GPU talks to


def _of_64(tensor_parallel: int, pipeline_parallel: int) -> Plan:
    """The plan of a 70B on 64 H100s, with full recomputation and ZeRO 1."""
    return planned(Setting(tensor_parallel=tensor_parallel, pipeline_parallel=pipeline_parallel))


@handle(
    "The GPUs that GPU 1 exchanges data with, inside its node and outside it.",
    tensor_parallel=replace(_CONTROLS["tensor_parallel"], most=8, stops=(1, 2, 4, 8)),
    pipeline_parallel=replace(_CONTROLS["pipeline_parallel"], most=8, stops=(1, 2, 4, 8)),
    node=controls.choice(
        "GPUs of a node",
        "Whether the GPUs of a node share matrices or are replicas.",
        ("share matrices", "are replicas"),
    ),
    book=({}, {"node": "are replicas"}),
)
def neighbours(
    tensor_parallel: int = 8,
    pipeline_parallel: int = 1,
    node: str = "share matrices",
    previous: Any = None,
) -> Shown:
    """Show a split of 64 H100s that train a 70B, and which of them share a node."""
    plan, most = _of_64(tensor_parallel, pipeline_parallel), sending(_of_64(8, 1))["tensor"].sent
    before = _of_64(previous.tensor_parallel, previous.pipeline_parallel) if previous else None
    replicas = node == "are replicas"
    picture = neighbour_grid(plan, most, before, replicas=replicas)
    parts = of_first_stage(plan, spread_over_nodes(plan) if replicas else sending(plan))
    return picture, _of_neighbours(plan, parts)


def _of_neighbours(plan: Plan, parts: dict[str, Exchange]) -> str:
    """Where the sums of the layers travel, and what needs the network."""
    if "tensor" not in parts:
        caption = "No GPUs share a matrix, so GPU 1 only sends gradients and new weights"
        return caption + (", and activations to the next stage." if len(parts) > 1 else ".")
    sums = parts["tensor"]
    if not sums.inside:
        far, near = (units.seconds(x.seconds) for x in (sums, sending(plan)["tensor"]))
        caption = "<b>The layers' all-reduces cross the network.</b> They need "
        return f"{caption}{far}, instead of {near} inside a node."
    share = sums.sent / sum(part.sent for part in parts.values())
    written = units.share(share) if share < 0.995 else "Over 99%"
    caption = f"<b>{written} of its bytes are the layers' all-reduces, which stay in the node.</b>"
    others = sum(x.sent for x in parts.values() if not x.inside)
    rest = units.about(others, units.gigabytes)
    return f"{caption} The other {rest} use the network." if others else caption
