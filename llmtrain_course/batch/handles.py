"""Chapter 04: the panel from GPUs and their split to a batch, and its handles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

from llmtrain_course.batch import formulas
from llmtrain_course.batch.formulas import (
    Batch,
    batch_of_run,
    batches_near,
    pipeline_seconds,
    tried_micro_batches,
)
from llmtrain_course.batch.pictures import (
    MOST_PASSES,
    MOST_SAMPLES,
    Step,
    batch_cost_curve,
    epoch_rows,
    noisy_gradients,
    stage_time,
    step_by_micro_batch,
)
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.cards import memory_of
from llmtrain_course.kit.handle import ByHand, Shown, handle, slider
from llmtrain_course.kit.layout import PAGE
from llmtrain_course.parallelism.formulas import idle_share
from llmtrain_course.parallelism.grid import gpus_in_nodes
from llmtrain_course.parallelism.places import Layout, idle_gpus, too_few
from llmtrain_helpers import units
from llmtrain_helpers.batch import (
    StepTime,
    accumulation_steps,
    critical_batch,
    global_batch_size,
    steps_per_epoch,
)


@dataclass(frozen=True)
class Setting:
    """GPUs and their split, and how many sequences pass through before an update."""

    num_gpus: int
    tensor_parallel: int
    pipeline_parallel: int
    context_parallel: int
    micro_batch_size: int
    accumulation: int
    sequence_length: int
    tokens: int

    @property
    def split(self) -> tuple[int, int, int]:
        """GPUs over which a replica is spread: tensor, pipeline and context parallel."""
        return self.tensor_parallel, self.pipeline_parallel, self.context_parallel

    @property
    def layout(self) -> Layout:
        """The GPUs in their places, left over or not."""
        t, p, c = self.split
        return Layout(self.num_gpus, t, p, c)

    @cached_property
    def batch(self) -> Batch:
        """The batch of the GPUs that are part of a replica."""
        passes = self.micro_batch_size, self.accumulation
        n, s = self.num_gpus - self.layout.left_over, self.sequence_length
        return batch_of_run(self.tokens, n, *passes, s, *self.split)

    @property
    def waits(self) -> float:
        """The share of a step in which a stage waits, in a plain schedule."""
        return float(idle_share(self.pipeline_parallel, self.accumulation))


_SETTINGS = {
    "Two nodes of 8 GPUs": Setting(16, 4, 2, 1, 2, 4, 4096, 10**11),
    "One node of 8 GPUs": Setting(8, 1, 1, 1, 8, 8, 1024, 10**10),
    "BLOOM-176B": Setting(384, 4, 12, 1, 2, 128, 2048, 366 * 10**9),
    "Llama 3.1 405B, stages not interleaved": Setting(16384, 8, 16, 1, 1, 16, 8192, 15_600 * 10**9),
    "A split that doesn't divide": Setting(100, 8, 1, 1, 1, 1, 2048, 300 * 10**9),
}

_CONTROLS = {
    "num_gpus": replace(controls.GPUS, stops=controls.doublings(1, 32768)),
    "micro_batch_size": replace(
        controls.MICRO_BATCH,
        help="Sequences that a replica works on at once.",
        most=100_000,
        stops=controls.doublings(1, 16),
    ),
    "accumulation": common.Control(
        "Accumulation",
        "Passes of each replica before the weights are updated.",
        unit="in a row",
        most=100_000,
        stops=controls.doublings(1, 256),
    ),
    # lists rather than fields, so that few splits leave GPUs over
    "tensor_parallel": controls.choice(
        controls.TENSOR_PARALLEL.label, controls.TENSOR_PARALLEL.help, (1, 2, 4, 8, 16)
    ),
    "pipeline_parallel": controls.choice(
        controls.PIPELINE_PARALLEL.label,
        controls.PIPELINE_PARALLEL.help,
        (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 35, 64),
    ),
    "context_parallel": controls.choice(
        controls.CONTEXT_PARALLEL.label, controls.CONTEXT_PARALLEL.help, (1, 2, 4, 8, 16), more=True
    ),
    "sequence_length": replace(controls.SEQUENCE, help="Tokens per sequence."),
    "tokens": replace(controls.TOKENS, stops=(), more=True),
}


def render(setting: Setting, before: Setting | None = None, width: int = PAGE) -> str:
    """The panel's answer as HTML: sentence, pictures, table, and the call in code."""
    n, split, layout = setting.num_gpus, setting.split, setting.layout
    grid = gpus_in_nodes(layout).drawing(width)
    if not layout.replicas:
        return common.warning(too_few(layout)) + grid.inline_svg()
    used = f"{n} - {layout.left_over}" if layout.left_over else f"{n}"
    old = before.batch if before and before.layout.replicas else None
    batch, k = setting.batch, setting.accumulation
    time = stage_time(setting.pipeline_parallel, k, setting.waits).drawing(width)
    code = (
        f"d = data_parallel_size({used}, {', '.join(map(str, split))})\n"
        f"B = global_batch_size({setting.micro_batch_size}, {k}, d)\n"
        f"batch_tokens(B, {setting.sequence_length})"
    )
    return "".join(
        [
            common.sentence(_sentence(setting, old)),
            f"<div>{grid.inline_svg()}</div><div>{time.inline_svg()}</div>",
            common.folded(
                "The numbers, and the call in code", _table(layout, batch) + common.call(code)
            ),
        ]
    )


def _sentence(setting: Setting, old: Batch | None) -> str:
    batch = setting.batch
    result = f"<b>{units.count(batch.tokens)} tokens</b> per step"
    if old and old.tokens != batch.tokens:
        result += f" (at the start: {units.count(old.tokens)})"
    replicas = "one replica" if batch.replicas == 1 else units.plural(batch.replicas, "replica")
    result += f": {units.exact(batch.sequences)} sequences, from {replicas}."
    if setting.layout.left_over:
        result += f" <b>{idle_gpus(setting.layout)}</b>, and you pay for all of them."
    if setting.waits < 0.25:
        return result
    waits = units.percent(setting.waits)
    return f"{result} In this plain schedule, a stage waits for <b>{waits}</b> of the time."


def _table(layout: Layout, batch: Batch) -> str:
    lines = [
        ["replicas (data parallel)", units.exact(batch.replicas)],
        ["GPUs in each replica", units.exact(layout.a_replica)],
        ["sequences per step", units.exact(batch.sequences)],
        ["tokens per step", units.exact(batch.tokens)],
        ["updates in the run", units.exact(batch.updates)],
        ["passes of each replica", units.exact(batch.passes)],
    ]
    [(name, tokens)] = batches_near(batch.tokens, how_many=1).items()
    if 0.5 <= tokens / batch.tokens <= 2:
        lines.append([f"nearest published batch, as printed: {name}", units.exact(tokens)])
    note = (
        "<p>The last update may not be full. Papers often round, so 16M can mean "
        f"16 × 2²⁰ = {units.exact(16 * 2**20)} tokens.</p>"
    )
    return common.table(["", "number"], lines) + note


PANEL = common.Panel(
    "How large a batch?",
    _CONTROLS,
    _SETTINGS,
    ("BLOOM-176B", "A split that doesn't divide"),
    render,
)


# --- handles

SAMPLES = 1000
"""Samples of the data set that an epoch passes over."""


@handle(
    "The passes and the updates of one epoch of 1,000 samples.",
    micro_batch=replace(
        controls.MICRO_BATCH,
        help="Samples in a pass.",
        unit="samples",
        most=MOST_SAMPLES,
        stops=(1, 2, 5, MOST_SAMPLES),
    ),
    accumulation=replace(
        _CONTROLS["accumulation"], most=MOST_PASSES, stops=controls.doublings(1, MOST_PASSES)
    ),
    book=({}, {"micro_batch": 10, "accumulation": 1}),
)
def epoch(micro_batch: int = 5, accumulation: int = 2) -> Shown:
    """A thousand samples, cut into passes and updates."""
    updates = int(steps_per_epoch(SAMPLES, global_batch_size(micro_batch, accumulation, 1)))
    caption = (
        f"<b>{units.plural(updates, 'update')} and "
        f"{units.plural(updates * accumulation, 'pass')} in an epoch.</b> A GPU stores the "
        f"activations of {units.plural(micro_batch, 'sample')} at a time."
    )
    return ByHand(partial(epoch_rows, micro_batch, accumulation, updates, SAMPLES)), caption


BLOOM_PASS = StepTime(overhead=0.06971, rate=4.810)
"""A pass on one of BLOOM's stages, in seconds, fitted to four measured steps."""


@cache
def bloom_steps() -> tuple[Step, ...]:
    """The four steps of 181 billion parameters on 384 A100s: by the fit, and as measured."""
    steps = []
    for row in tried_micro_batches():
        b, p = row["micro_batch_size"], row["pipeline_parallel"]
        k = int(accumulation_steps(row["global_batch_size"], b, row["data_parallel"]))
        fixed = k * float(BLOOM_PASS.overhead)
        passes = k * float(BLOOM_PASS.seconds(b))
        waits = float(pipeline_seconds(BLOOM_PASS.seconds(b), k, p)) - passes
        measured, memory = float(row["seconds_per_iteration"]), float(row["memory_bytes"])
        steps.append(Step(b, (passes - fixed, fixed, waits), measured, memory))
    return tuple(steps)


@handle(
    "BLOOM's measured steps: seconds and memory by micro-batch.",
    micro_batch=replace(
        controls.MICRO_BATCH, help="Sequences in a pass.", most=8, stops=(1, 2, 4, 8), between=False
    ),
    book=({}, {"micro_batch": 4}),
)
def micro_batches(micro_batch: int = 1) -> Shown:
    """Show the steps that BLOOM's engineers timed, up to one micro-batch."""
    [step] = (it for it in bloom_steps() if it.micro_batch == micro_batch)
    work, fixed, waits = step.parts
    caption = (
        f"<b>The step took {step.measured:.0f} seconds</b>, in passes of "
        f"{units.plural(step.micro_batch, 'sequence')}. The bar is our fit to all four steps, "
        f"which adds up to {sum(step.parts):.0f} s: {work:.0f} s of work, "
        f"{units.digits(fixed, 2)} s of fixed parts and {units.digits(waits, 2)} s of waiting."
    )
    return step_by_micro_batch(bloom_steps(), step.micro_batch, memory_of("A100-80")), caption


@handle(
    "Forty gradients, each from its own batch, around the true one.",
    batch=slider(
        "Sequences",
        "Sequences in a batch, whose gradients are averaged before an update.",
        tuple(2**k for k in range(9)),
        play=True,
    ),
    book=({"batch": 1}, {"batch": 32}),
)
def gradient_noise(batch: int = 1, previous: Any = None) -> Shown:
    """How far the mean of a batch misses the gradient of all sequences."""
    size = units.digits(formulas.miss(batch), 2)
    picture = noisy_gradients(batch, previous.batch if previous else 0)
    back = sum(x < 0 for x, _ in formulas.mean_gradients(batch))
    points = "points" if back == 1 else "point"
    ways = f"{back} of {formulas.TRIED} {points}" if back else "none points"
    return picture, (
        f"With {units.plural(batch, 'sequence')}, a batch's gradient usually misses the true one "
        f"by <b>{size}× its length</b>, and {ways} the other way."
    )


@handle(
    "Updates against tokens for the same loss, with your batch as the dot.",
    batch=replace(
        controls.TOKENS,
        label="Batch",
        help="Tokens per update.",
        least=500_000,
        most=32_000_000,
        stops=tuple(500_000 * 2**k for k in range(7)),
        more=False,
    ),
    loss=slider(
        "Loss",
        "It starts near 11 and falls during the run, to 2.5 for a small model and 2 for a large "
        "one.",
        (2, 2.2, 2.4, 2.7, 3, 3.5),
        whole=False,
    ),
    book=({}, {"batch": 1_000_000}),
)
def batch_cost(batch: int = 4_000_000, loss: float = 3, previous: Any = None) -> Shown:
    """Updates and tokens that a batch takes, at the loss that a run has reached."""
    critical = float(critical_batch(loss))
    cost, twice = (formulas.batch_cost(tokens, critical) for tokens in (batch, 2 * batch))
    began = None
    if previous:
        began = formulas.batch_cost(previous.batch, float(critical_batch(previous.loss)))
    caption = (
        f"Your batch is <b>{units.digits(batch / critical, 2)}× the critical one</b>. If you "
        f"double it, you need {units.share(1 - twice.updates / cost.updates)} fewer updates and "
        f"{units.share(twice.samples / cost.samples - 1)} more tokens."
    )
    return batch_cost_curve(cost, batch, critical, began), caption
