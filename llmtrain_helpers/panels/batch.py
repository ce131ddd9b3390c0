"""The panel of chapter 04: how GPUs, micro-batch and accumulation make a batch."""

from __future__ import annotations

from typing import Any

from llmtrain_helpers import units
from llmtrain_helpers.batch import batch_tokens, data_parallel_size, global_batch_size
from llmtrain_helpers.duration import iterations
from llmtrain_helpers.panels import common
from llmtrain_helpers.published import batches_near


def _preset(*values: Any) -> dict[str, Any]:
    return dict(zip(_NAMES, values, strict=True))


_NAMES = ["num_gpus", "tensor_parallel", "pipeline_parallel", "context_parallel"]
_NAMES += ["micro_batch_size", "accumulation", "sequence_length", "tokens"]

_PRESETS = {
    "Llama 3.1 405B, late": _preset(16384, 8, 16, 1, 1, 16, 8192, 15_600 * 10**9),
    "BLOOM-176B": _preset(384, 4, 12, 1, 2, 128, 2048, 366 * 10**9),
    "One node of 8 GPUs": _preset(8, 1, 1, 1, 8, 8, 1024, 10**10),
    "A split that does not divide": _preset(100, 8, 1, 1, 1, 1, 2048, 300 * 10**9),
}


_CONTROLS = {
    "num_gpus": common.Control(
        "GPUs",
        "All GPUs of the run.",
        most=10_000_000,
        stops=common.doublings(1, 32768),
    ),
    "micro_batch_size": common.Control(
        "Micro-batch",
        "Sequences that a replica works on at once.",
        unit="sequences",
        most=100_000,
        stops=common.doublings(1, 64),
    ),
    "accumulation": common.Control(
        "Accumulation",
        "Passes of each replica before the weights are updated.",
        unit="passes",
        most=100_000,
        stops=common.doublings(1, 256),
    ),
    "tensor_parallel": common.Control(
        "Tensor parallel", "GPUs that share each matrix.", most=10_000, more=True
    ),
    "pipeline_parallel": common.Control(
        "Pipeline stages",
        "GPUs that share the stack of layers.",
        most=10_000,
        more=True,
    ),
    "context_parallel": common.Control(
        "Context parallel", "GPUs that share each sequence.", most=10_000, more=True
    ),
    "sequence_length": common.Control(
        "Sequence",
        "Tokens in each training sequence.",
        unit="tokens",
        most=10_000_000,
        more=True,
    ),
    "tokens": common.Control(
        "Tokens",
        "Tokens that the run sees in all.",
        unit="tokens",
        most=10**16,
        more=True,
    ),
}


def render(
    before: common.Values | None = None,
    *,
    num_gpus: int,
    tensor_parallel: int,
    pipeline_parallel: int,
    context_parallel: int,
    micro_batch_size: int,
    accumulation: int,
    sequence_length: int,
    tokens: int,
) -> str:
    """The panel's answer as HTML: sentence, picture, table, and the call in code."""
    split = (tensor_parallel, pipeline_parallel, context_parallel)
    d = data_parallel_size(num_gpus, *split)
    B = global_batch_size(micro_batch_size, accumulation, d)
    in_tokens = batch_tokens(B, sequence_length)
    updates = iterations(tokens, B, sequence_length)
    sizes = {"This batch": in_tokens} | batches_near(in_tokens)
    bars = {name: {name: size} for name, size in sizes.items()}
    passes = updates * accumulation
    rows = _rows(d, num_gpus // d, B, in_tokens, updates, passes)
    told = ", ".join(map(str, (num_gpus, *split)))
    return "".join(
        [
            common.sentence(_sentence(B, in_tokens, d)),
            common.stacked_bars(bars, units.count),
            common.table(["", "number"], rows),
            common.call(
                f"d = data_parallel_size({told})\n"
                f"B = global_batch_size({micro_batch_size}, {accumulation}, d)\n"
                f"batch_tokens(B, {sequence_length})"
            ),
        ]
    )


_COUNTS = ["replicas (data parallel)", "GPUs in each replica", "sequences a step"]
_COUNTS += ["tokens a step", "updates in the run", "passes of each replica"]


def _rows(*counts: float) -> list[list[str]]:
    told = zip(_COUNTS, counts, strict=True)
    return [[name, units.exact(number)] for name, number in told]


def _sentence(B: int, in_tokens: int, d: int) -> str:
    told = (
        f"<b>{units.count(in_tokens)} tokens</b> a step: {units.exact(B)} sequences, "
    )
    return told + (
        "from one replica." if d == 1 else f"from {units.exact(d)} replicas."
    )


PANEL = common.Panel(
    "How large a batch?",
    _CONTROLS,
    _PRESETS,
    ("One node of 8 GPUs", "A split that does not divide"),
    render,
)
