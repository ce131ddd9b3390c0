"""The panel of chapter 04: how GPUs, micro-batch and accumulation make a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.batch import (
    Step,
    batch_tokens,
    data_parallel_size,
    global_batch_size,
    steps_per_epoch,
)
from llmtrain_helpers.drawings.batch import gpu_grid, step_in_time
from llmtrain_helpers.evidence.published import batches_near
from llmtrain_helpers.panels import common

_NAMES = ["num_gpus", "tensor_parallel", "pipeline_parallel", "context_parallel"]
_NAMES += ["micro_batch_size", "accumulation", "sequence_length", "tokens", "fixed"]


def _preset(*values: Any) -> dict[str, Any]:
    return dict(zip(_NAMES, [*values, 1], strict=True))


_PRESETS = {
    "Two nodes of 8 GPUs": _preset(16, 4, 2, 1, 2, 4, 4096, 10**11),
    "One node of 8 GPUs": _preset(8, 1, 1, 1, 8, 8, 1024, 10**10),
    "BLOOM-176B": _preset(384, 4, 12, 1, 2, 128, 2048, 366 * 10**9),
    "Llama 3.1 405B, late": _preset(16384, 8, 16, 1, 1, 16, 8192, 15_600 * 10**9),
    "A split that does not divide": _preset(100, 8, 1, 1, 1, 1, 2048, 300 * 10**9),
}

_CONTROLS = {
    "num_gpus": common.Control(
        "GPUs", "All GPUs of the run.", most=1e7, stops=common.doublings(1, 32768)
    ),
    "micro_batch_size": common.Control(
        "Micro-batch",
        "Sequences that a replica works on at once.",
        unit="at a time",
        most=100_000,
        stops=common.doublings(1, 16),
    ),
    "accumulation": common.Control(
        "Accumulation",
        "Passes of each replica before the weights are updated.",
        unit="in a row",
        most=100_000,
        stops=common.doublings(1, 256),
    ),
    "tensor_parallel": common.choice(
        "Tensor parallel", "GPUs that share each matrix.", (1, 2, 4, 8, 16)
    ),
    "pipeline_parallel": common.choice(
        "Pipeline stages",
        "Groups of layers, one behind the other.",
        (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 35, 64),
    ),
    "context_parallel": common.choice(
        "Context parallel", "GPUs that share each sequence.", (1, 2, 4, 8, 16), more=True
    ),
    "sequence_length": common.Control(
        "Sequence", "Tokens in each sequence.", unit="tokens", most=1e7, more=True
    ),
    "tokens": common.Control(
        "Tokens", "Tokens that the run sees in all.", unit="tokens", most=10**16, more=True
    ),
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


@dataclass(frozen=True)
class Batch:
    """What the controls make: replicas, sequences and tokens a step, updates, passes.

    The last update may not be full; it counts as one.
    """

    replicas: int
    sequences: int
    tokens: int
    updates: int
    passes: int


def counted(values: common.Values) -> Batch:
    """The batch that these values make; a ValueError in words if they make none."""
    n, micro, k = (values[x] for x in ("num_gpus", "micro_batch_size", "accumulation"))
    split = {name: values[name] for name in _NAMES[1:4]}
    t, p, c = split.values()
    if n % (t * p * c):
        raise ValueError(
            f"{n} num_gpus do not make a whole number of replicas: each takes "
            f"{t} × {p} × {c} = {t * p * c} of them"
        )
    d = data_parallel_size(n, **split)
    B = global_batch_size(micro, k, d)
    size = batch_tokens(B, values["sequence_length"])
    updates = steps_per_epoch(values["tokens"], size)
    return Batch(d, B, size, updates, updates * k)


def render(before: common.Values | None = None, **values: Any) -> str:
    """The panel's answer as HTML: sentence, pictures, table, and the call in code."""
    batch = counted(values)
    old = counted(before) if before else None
    return "".join(
        [
            common.sentence(_sentence(batch, old, _step(values))),
            _pictures(values, before),
            common.folded(
                "The numbers, and the call in code",
                _table(values, batch) + common.call(_code(values)),
            ),
        ]
    )


def _pictures(values: common.Values, before: common.Values | None) -> str:
    """The grid, and the step in time, with outlines of what they were."""
    grid = gpu_grid(*_split(values), before=_split(before) if before else ())
    same = before and all(before[x] == values[x] for x in _NAMES[1:4])
    step = step_in_time(_step(values), _step(before) if before and same else None)
    return f"<div>{grid.live()}</div><div>{step.live()}</div>"


def _split(values: common.Values) -> tuple[int, int, int, int]:
    n, t, p, c = (values[name] for name in _NAMES[:4])
    return n, t, p, c


def _step(values: common.Values) -> Step:
    replicas, stages = counted(values).replicas, values["pipeline_parallel"]
    micro, passes = values["micro_batch_size"], values["accumulation"]
    return Step(micro, passes, replicas, stages, values["fixed"])


def _sentence(batch: Batch, old: Batch | None, step: Step) -> str:
    told = f"<b>{units.count(batch.tokens)} tokens</b> a step"
    if old and old.tokens != batch.tokens:
        told += f" (dashed: {units.count(old.tokens)})"
    told += f": {units.exact(batch.sequences)} sequences, "
    many = f"{units.exact(batch.replicas)} replicas"
    told += f"from {'one replica' if batch.replicas == 1 else many}."
    if step.stages == 1:
        return told
    waits = units.percent(step.waits)
    return f"{told} In this plain schedule a stage waits <b>{waits}</b> of the time."


def _table(values: common.Values, batch: Batch) -> str:
    near, printed = next(iter(batches_near(batch.tokens, how_many=1).items()))
    rows = {
        "replicas (data parallel)": units.exact(batch.replicas),
        "GPUs in each replica": units.exact(values["num_gpus"] // batch.replicas),
        "sequences a step": units.exact(batch.sequences),
        "tokens a step": units.exact(batch.tokens),
        "updates in the run": units.exact(batch.updates),
        "passes of each replica": units.exact(batch.passes),
    }
    if 0.5 <= printed / batch.tokens <= 2:
        told = f"nearest published batch, as printed: {near}"
        rows[told] = units.exact(printed)
    note = (
        "<p>The last update may not be full. Papers often round: 16M can stand for "
        f"16 × 2²⁰ = {units.exact(16 * 2**20)} tokens.</p>"
    )
    return common.table(["", "number"], [list(row) for row in rows.items()]) + note


def _code(values: common.Values) -> str:
    told = ", ".join(str(values[name]) for name in _NAMES[:4])
    micro, passes = values["micro_batch_size"], values["accumulation"]
    return (
        f"d = data_parallel_size({told})\n"
        f"B = global_batch_size({micro}, {passes}, d)\n"
        f"batch_tokens(B, {values['sequence_length']})"
    )


PANEL = common.Panel(
    "How large a batch?",
    _CONTROLS,
    _PRESETS,
    ("BLOOM-176B", "A split that does not divide"),
    render,
)
