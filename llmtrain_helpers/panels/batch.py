"""The panel of chapter 04: how GPUs, micro-batch and accumulation make a batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from llmtrain_helpers import units
from llmtrain_helpers.batch import Batch, Step, batch_of_run
from llmtrain_helpers.drawings.batch import gpu_grid, step_in_time
from llmtrain_helpers.evidence.published import batches_near
from llmtrain_helpers.panels import common, controls


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
    fixed: float = 1

    @property
    def split(self) -> tuple[int, int, int]:
        """GPUs over which a replica is spread: tensor, pipeline and context parallel."""
        return self.tensor_parallel, self.pipeline_parallel, self.context_parallel

    @cached_property
    def batch(self) -> Batch:
        """The batch that it makes; a ValueError in words if it makes none."""
        n, (t, p, c) = self.num_gpus, self.split
        if n % (t * p * c):
            raise ValueError(
                f"{n} num_gpus do not make a whole number of replicas: each takes "
                f"{t} × {p} × {c} = {t * p * c} of them"
            )
        passes = self.micro_batch_size, self.accumulation
        return batch_of_run(self.tokens, n, *passes, self.sequence_length, *self.split)

    @property
    def step(self) -> Step:
        """A step as it is drawn."""
        d, p = self.batch.replicas, self.pipeline_parallel
        return Step(self.micro_batch_size, self.accumulation, d, p, self.fixed)


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
    "fixed": common.Control(
        "Fixed part of a pass",
        "What each pass takes besides its sequences: as long as so many of them.",
        unit="× the time of a sequence",
        least=0,
        most=1e6,
        whole=False,
        more=True,
    ),
}


def render(setting: Setting, before: Setting | None = None) -> str:
    """The panel's answer as HTML: sentence, pictures, table, and the call in code."""
    batch, old = setting.batch, before.batch if before else None
    n, split = setting.num_gpus, setting.split
    grid = gpu_grid(n, *split, before=(before.num_gpus, *before.split) if before else ())
    # the time of a step is comparable only while its stages are the same
    step = step_in_time(setting.step, before.step if before and before.split == split else None)
    code = (
        f"d = data_parallel_size({n}, {', '.join(map(str, split))})\n"
        f"B = global_batch_size({setting.micro_batch_size}, {setting.accumulation}, d)\n"
        f"batch_tokens(B, {setting.sequence_length})"
    )
    return "".join(
        [
            common.sentence(_sentence(batch, old, setting.step)),
            f"<div>{grid.live()}</div><div>{step.live()}</div>",
            common.folded(
                "The numbers, and the call in code", _table(n, batch) + common.call(code)
            ),
        ]
    )


def _sentence(batch: Batch, old: Batch | None, step: Step) -> str:
    result = f"<b>{units.count(batch.tokens)} tokens</b> a step"
    if old and old.tokens != batch.tokens:
        result += f" (dashed: {units.count(old.tokens)})"
    replicas = "one replica" if batch.replicas == 1 else units.plural(batch.replicas, "replica")
    result += f": {units.exact(batch.sequences)} sequences, from {replicas}."
    if step.stages == 1:
        return result
    waits = units.percent(step.waits)
    return (
        f"{result} In this plain schedule a stage waits <b>{waits}</b> of the time. Large runs "
        "interleave: with v pieces of the model on each GPU the wait is a v-th (notebook 08)."
    )


def _table(num_gpus: int, batch: Batch) -> str:
    rows = [
        ["replicas (data parallel)", units.exact(batch.replicas)],
        ["GPUs in each replica", units.exact(num_gpus // batch.replicas)],
        ["sequences a step", units.exact(batch.sequences)],
        ["tokens a step", units.exact(batch.tokens)],
        ["updates in the run", units.exact(batch.updates)],
        ["passes of each replica", units.exact(batch.passes)],
    ]
    [(name, tokens)] = batches_near(batch.tokens, how_many=1).items()
    if 0.5 <= tokens / batch.tokens <= 2:
        rows.append([f"nearest published batch, as printed: {name}", units.exact(tokens)])
    note = (
        "<p>The last update may not be full. Papers often round: 16M can stand for "
        f"16 × 2²⁰ = {units.exact(16 * 2**20)} tokens.</p>"
    )
    return common.table(["", "number"], rows) + note


PANEL = common.Panel(
    "How large a batch?",
    _CONTROLS,
    _SETTINGS,
    ("BLOOM-176B", "A split that does not divide"),
    render,
)
