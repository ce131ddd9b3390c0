"""Chapter 04: the panel from GPUs and their split to a batch, and its handles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

from llmtrain_course.batch.formulas import (
    Batch,
    BatchCost,
    batch_cost,
    batch_of_run,
    batches_near,
    pipeline_seconds,
    tried_micro_batches,
)
from llmtrain_course.batch.pictures import (
    Bar,
    batch_cost_curve,
    epoch_rows,
    stage_time,
    step_by_micro_batch,
)
from llmtrain_course.kit import controls, panel as common
from llmtrain_course.kit.cards import memory_of
from llmtrain_course.parallelism.formulas import idle_share
from llmtrain_course.parallelism.grid import Layout, gpu_grid, idle_gpus, too_few
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
    "A split that does not divide": Setting(100, 8, 1, 1, 1, 1, 2048, 300 * 10**9),
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
    # lists and no fields, so that few splits leave the GPUs undivided
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
    "sequence_length": replace(controls.SEQUENCE, help="Tokens in each sequence."),
    "tokens": replace(controls.TOKENS, stops=(), more=True),
}


def render(setting: Setting, before: Setting | None = None, narrow: bool = False) -> str:
    """The panel's answer as HTML: sentence, pictures, table, and the call in code."""
    n, split, layout = setting.num_gpus, setting.split, setting.layout
    grid = gpu_grid(n, *split, narrow=narrow)
    if not layout.replicas:
        return common.warning(too_few(layout)) + grid.inline_svg()
    used = f"{n} - {layout.left_over}" if layout.left_over else f"{n}"
    old = before.batch if before and before.layout.replicas else None
    batch, k = setting.batch, setting.accumulation
    time = stage_time(setting.pipeline_parallel, k, setting.waits, narrow)
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
    result = f"<b>{units.count(batch.tokens)} tokens</b> a step"
    if old and old.tokens != batch.tokens:
        result += f" (at the start {units.count(old.tokens)})"
    replicas = "one replica" if batch.replicas == 1 else units.plural(batch.replicas, "replica")
    result += f": {units.exact(batch.sequences)} sequences, from {replicas}."
    if setting.layout.left_over:
        result += f" <b>{idle_gpus(setting.layout)}</b>, and you pay for all of them."
    if setting.waits < 0.25:
        return result
    waits = units.percent(setting.waits)
    return f"{result} In this plain schedule a stage waits <b>{waits}</b> of the time."


def _table(layout: Layout, batch: Batch) -> str:
    lines = [
        ["replicas (data parallel)", units.exact(batch.replicas)],
        ["GPUs in each replica", units.exact(layout.a_replica)],
        ["sequences a step", units.exact(batch.sequences)],
        ["tokens a step", units.exact(batch.tokens)],
        ["updates in the run", units.exact(batch.updates)],
        ["passes of each replica", units.exact(batch.passes)],
    ]
    [(name, tokens)] = batches_near(batch.tokens, how_many=1).items()
    if 0.5 <= tokens / batch.tokens <= 2:
        lines.append([f"nearest published batch, as printed: {name}", units.exact(tokens)])
    note = (
        "<p>The last update may not be full. Papers often round: 16M can stand for "
        f"16 × 2²⁰ = {units.exact(16 * 2**20)} tokens.</p>"
    )
    return common.table(["", "number"], lines) + note


PANEL = common.Panel(
    "How large a batch?",
    _CONTROLS,
    _SETTINGS,
    ("BLOOM-176B", "A split that does not divide"),
    render,
    narrow=partial(render, narrow=True),
)


# --- the handle: the beginning of an epoch


@dataclass(frozen=True)
class Epoch:
    """A thousand samples, cut into passes and updates."""

    micro_batch: int = 5
    accumulation: int = 2


SAMPLES = 1000


def _draw_epoch(epoch: Epoch, before: Epoch | None, narrow: bool = False) -> str:
    batch = int(global_batch_size(epoch.micro_batch, epoch.accumulation, 1))
    updates = int(steps_per_epoch(SAMPLES, batch))
    picture = epoch_rows(epoch.micro_batch, epoch.accumulation, updates, SAMPLES, narrow)
    caption = (
        f"<b>{units.plural(updates, 'update')} and "
        f"{units.plural(updates * epoch.accumulation, 'pass')} in an epoch.</b> A GPU keeps the "
        f"activations of {units.plural(epoch.micro_batch, 'sample')} at once."
    )
    return common.pictured(picture, caption)


EPOCH = common.Handle(
    book=({}, {"micro_batch": 10, "accumulation": 1}),
    title="Passes and updates of an epoch",
    controls={
        "micro_batch": replace(
            controls.MICRO_BATCH,
            help="Samples in a pass.",
            unit="samples",
            most=10,
            stops=(1, 2, 5, 10),
        ),
        "accumulation": replace(_CONTROLS["accumulation"], most=4, stops=(1, 2, 4)),
    },
    settings={"": Epoch()},
    draw=_draw_epoch,
    narrow=partial(_draw_epoch, narrow=True),
)


# --- the handle: BLOOM's engineers try micro-batches


@dataclass(frozen=True)
class Tried:
    """The micro-batch of a step that BLOOM's engineers timed."""

    micro_batch: int = 1


BLOOM_PASS = StepTime(overhead=0.06971, rate=4.810)
"""A pass on one of their stages, in seconds, fitted to four measured steps."""


@cache
def bloom_bars() -> tuple[Bar, ...]:
    """The four steps of 181 billion parameters on 384 A100: by the fit, and as measured."""
    bars = []
    for row in tried_micro_batches():
        b, p = row["micro_batch_size"], row["pipeline_parallel"]
        k = int(accumulation_steps(row["global_batch_size"], b, row["data_parallel"]))
        fixed = k * float(BLOOM_PASS.overhead)
        passes = k * float(BLOOM_PASS.seconds(b))
        waits = float(pipeline_seconds(BLOOM_PASS.seconds(b), k, p)) - passes
        measured, memory = float(row["seconds_per_iteration"]), float(row["memory_bytes"])
        bars.append((b, passes - fixed, fixed, waits, measured, memory))
    return tuple(bars)


def _draw_tried(tried: Tried, before: Tried | None, narrow: bool = False) -> str:
    bars = bloom_bars()
    chosen = max(bar[0] for bar in bars if bar[0] <= tried.micro_batch)
    _, work, fixed, waits, measured, _ = next(bar for bar in bars if bar[0] == chosen)
    each = units.plural(chosen, "sequence")
    caption = (
        f"<b>{measured:.0f} seconds a step</b> were measured, in passes of {each}. The bar is "
        f"our fit to all four steps. It makes {work + fixed + waits:.0f} s: {work:.0f} s of work, "
        f"{units.digits(fixed, 2)} s of fixed parts and {units.digits(waits, 2)} s of waiting."
    )
    return common.pictured(step_by_micro_batch(bars, chosen, memory_of("A100-80"), narrow), caption)


MICRO_BATCHES = common.Handle(
    book=({}, {"micro_batch": 4}),
    title="Micro-batches that BLOOM's engineers tried",
    controls={
        "micro_batch": replace(
            controls.MICRO_BATCH, help="Sequences in a pass.", most=8, stops=(1, 2, 4, 8)
        )
    },
    settings={"": Tried()},
    draw=_draw_tried,
    narrow=partial(_draw_tried, narrow=True),
)


# --- the handle: what a batch costs


@dataclass(frozen=True)
class Bought:
    """A batch in tokens, and how low the loss has come."""

    batch: int = 4_000_000
    loss: float = 3

    @property
    def critical(self) -> float:
        """The critical batch at this loss."""
        return float(critical_batch(self.loss))

    @property
    def cost(self) -> BatchCost:
        """Updates and samples over the fewest."""
        return batch_cost(self.batch, self.critical)


def _draw_bought(bought: Bought, before: Bought | None, narrow: bool = False) -> str:
    cost, start = bought.cost, (before or bought).cost
    picture = batch_cost_curve(cost, bought.batch, bought.critical, start, narrow)
    times = bought.batch / bought.critical
    twice = batch_cost(2 * bought.batch, bought.critical)
    caption = (
        f"The batch is <b>{units.digits(times, 2)} times the critical one</b>. Twice the batch "
        f"would take {units.share(1 - twice.updates / cost.updates)} fewer updates and "
        f"{units.share(twice.samples / cost.samples - 1)} more tokens."
    )
    return common.pictured(picture, caption)


BATCH_COST = common.Handle(
    book=({}, {"batch": 1_000_000}),
    title="What a batch costs",
    controls={
        "batch": replace(
            controls.TOKENS,
            label="Batch",
            help="Tokens that go into one update.",
            least=500_000,
            most=32_000_000,
            stops=tuple(500_000 * 2**k for k in range(7)),
            more=False,
        ),
        "loss": common.Control(
            "Loss",
            "How surprised the model still is; it falls while the run goes on.",
            least=2,
            most=3.5,
            whole=False,
            stops=(2, 2.2, 2.4, 2.7, 3, 3.5),
        ),
    },
    settings={"": Bought()},
    draw=_draw_bought,
    narrow=partial(_draw_bought, narrow=True),
)
