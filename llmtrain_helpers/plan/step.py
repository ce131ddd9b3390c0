"""The seconds of a step under a split. Beside notebooks/07_communication.ipynb.

A model with one fitted constant, the launching of a layer's kernels; all else is
counted: FLOPs at the chip's best measured share, trips to memory, what is sent.
`splits.fitted_launching` fits it to measured steps, and a test holds it.

Sources: the rates of matrix products and collectives in data/matmul_measured.csv and
data/collectives_measured.csv; Narayanan et al. (arXiv 2104.04473), section 2.2, for the
bubble; Korthikanti et al. (arXiv 2205.05198) for the bytes of activations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llmtrain_helpers.activations import count_activations, value_bytes
from llmtrain_helpers.checks import Result
from llmtrain_helpers.communication import CommunicationSeconds, Traffic, communication_seconds
from llmtrain_helpers.flops import count_flops
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.plan.memory import Split, stage_parameters
from llmtrain_helpers.results import Breakdown, greater

LAUNCHING = 0.64e-3
"""Seconds to launch a layer's kernels in a forward pass (backward is two): fitted."""

TRIPS, OPTIMIZER_BYTES, LOSS_BYTES = 2, 60, 60
"""Trips of a layer's activations to memory in a pass; bytes through memory for each
parameter at the update, and for each logit at the loss."""


@dataclass(frozen=True)
class StepSeconds(Breakdown):
    """Seconds of a step on the slowest stage, part by part, as they add up.

    `matmuls` at the chip's best share, `memory` trips of activations, `launching` of
    kernels; what travels and nothing hides: `tensor`, `context`, `expert`, `pipeline`,
    `data`; `head`, the logits and their loss; `bubble`, the wait of a pipeline;
    `optimizer`, the update.
    """

    matmuls: Result
    memory: Result
    launching: Result
    tensor: Result
    context: Result
    expert: Result
    head: Result
    pipeline: Result
    bubble: Result
    data: Result
    optimizer: Result


def step_parts(
    model: Transformer, split: Split, sent: Traffic, inputs: Mapping[str, Any]
) -> StepSeconds | None:
    """The parts of `plan.step_seconds`; `inputs` are the arguments of `plan_run`."""
    chip = inputs["accelerator"]
    needed = (chip.link_bandwidth, chip.network_bandwidth, chip.bandwidth)
    if None in (*needed, chip.matmul_share):
        return None
    m, p, v = split.accumulation_steps, split.pipeline_parallel, split.interleave
    layers = _layers(model, chip, split, inputs)
    computing = layers["matmuls"] + layers["memory"]
    behind = {"context": m * layers["matmuls"]}
    behind["data"] = _last_backward(computing, split, inputs)
    travel = _travel(model, chip, split, sent, inputs, behind).visible
    within = {"tensor": travel["tensor"] + travel["sequence"]}
    within |= {name: travel[name] for name in ("context", "expert")}
    of_layers = sum(layers.values()) + sum(within.values()) / m
    head = _head(model, chip, split, inputs)
    return StepSeconds(
        **{name: m * seconds for name, seconds in layers.items()},
        **within,
        head=m * greater(head - _spare(model, split) * of_layers, 0.0),
        pipeline=travel["pipeline"],
        bubble=(p - 1) / v * (of_layers + travel["pipeline"] / m),
        data=travel["data"],
        optimizer=_update(model, chip, split, inputs),
    )


def _spare(model: Transformer, split: Split) -> Any:
    """What the last stage is spared of the fullest one's layers: of uneven ones, one.

    So BLOOM, Llama 3 405B and torchtitan deal their layers: the head counts as one.
    """
    here = split.layers(model.num_layers)
    return (here * split.pipeline_parallel > model.num_layers) / here


def _passes(inputs: Mapping[str, Any]) -> int:
    """Passes over a layer, each of a forward pass's work: backward is two."""
    return 4 if inputs["recompute"] == "full" else 3


def _rate(chip: Accelerator, split: Split, inputs: Mapping[str, Any]) -> Any:
    """FLOP/s of the GPUs that share a layer, at the best share of their peak."""
    format = inputs["format"] or chip.training_format
    best = chip.peak(format) * chip.matmul_share
    return best * split.tensor_parallel * split.context_parallel


def _layers(
    model: Transformer, chip: Any, split: Split, inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """A stage's layers and one micro-batch: products, trips to memory, launching."""
    b, l = split.micro_batch_size, model.num_layers
    counted = count_flops(model, 1, inputs["recompute"])
    kept = count_activations(
        model,
        b,
        "none",
        inputs["attention"],
        inputs["dropout"],
        fused_mlp=inputs["fused_mlp"],
        tensor_parallel=split.tensor_parallel,
        sequence_parallel=inputs["sequence_parallel"],
        value_bytes=value_bytes(inputs["recipe"]),
    )
    here, passes = split.layers(l) / l, _passes(inputs)
    work = counted.total - counted.head + (inputs["imbalance"] - 1) * counted.mlp
    trips = TRIPS * passes * kept.layers / split.context_parallel
    return {
        "matmuls": here * b * work / _rate(chip, split, inputs),
        "memory": here * trips / chip.bandwidth,
        "launching": here * l * passes * LAUNCHING,
    }


def _last_backward(computing: Any, split: Split, inputs: Mapping[str, Any]) -> Any:
    """Seconds of computing beside which gradients and weights of replicas travel.

    Gradients beside the last backward pass, two thirds of a pass or half of one that
    recomputes; from ZeRO 2 on beside each, and ZeRO 3's weights beside forward too.
    """
    backward = computing * 2 / _passes(inputs)
    m, stage = split.accumulation_steps, inputs["zero_stage"]
    return {2: m * backward, 3: m * computing}.get(stage, backward)


def _travel(
    model: Transformer,
    chip: Accelerator,
    split: Split,
    sent: Traffic,
    inputs: Mapping[str, Any],
    behind: Mapping[str, Any],
) -> CommunicationSeconds:
    """What a stage sends in a step, with its calls."""
    t, p, m = split.tensor_parallel, split.pipeline_parallel, split.accumulation_steps
    reduced = m * split.layers(model.num_layers) * (_passes(inputs) - 1) * 2
    shared = bool(inputs["sequence_parallel"])
    calls = {
        "sequence" if shared else "tensor": (t > 1) * reduced,
        "pipeline": (p > 1) * m * 2 * split.interleave,
        "data": (split.data_parallel * split.context_parallel > 1) * 1,
    }
    ways = ("tensor", "pipeline", "context", "expert", "data")
    sizes = {f"{name}_parallel": getattr(split, f"{name}_parallel") for name in ways}
    taken = communication_seconds(sent, chip, **sizes, calls=calls, behind=behind)
    assert taken is not None  # the links are known here
    return taken


def _head(model: Transformer, chip: Any, split: Split, inputs: Mapping[str, Any]) -> Any:
    """Logits of a micro-batch, and the loss's trips to memory."""
    counted = count_flops(model, 1, "none").head
    logits = model.sequence_length * model.vocab_size
    through = LOSS_BYTES * logits / (split.tensor_parallel * split.context_parallel)
    one = counted / _rate(chip, split, inputs) + through / chip.bandwidth
    return split.micro_batch_size * one


def _update(model: Transformer, chip: Any, split: Split, inputs: Mapping[str, Any]) -> Any:
    """Every parameter and its states through memory, a share of them with ZeRO."""
    alone = split.pipeline_parallel == 1
    P = stage_parameters(model, split, True, alone)
    ways = split.data_parallel * split.context_parallel if inputs["zero_stage"] else 1
    return OPTIMIZER_BYTES * P / ways / chip.bandwidth
