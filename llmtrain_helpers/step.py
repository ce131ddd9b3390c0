"""The seconds of a step under a split. Beside notebooks/07_communication.ipynb.

A model with one fitted constant, the launching of a layer's kernels. All else is
counted: FLOPs at the chip's best measured share, trips to memory, what is sent.
`LAUNCHING` is fitted to measured steps by `fitted.launching`, and a test holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llmtrain_helpers.activations import count_activations, value_bytes
from llmtrain_helpers.architecture import Breakdown
from llmtrain_helpers.checks import Result
from llmtrain_helpers.communication import LATENCY, Traffic, bandwidth_of
from llmtrain_helpers.flops import count_flops
from llmtrain_helpers.memory import Split, greater, stage_parameters

LAUNCHING = 0.5e-3
"""Seconds to launch a layer's kernels, in one pass over it: the fitted constant."""

TRIPS, OPTIMIZER_BYTES, LOSS_BYTES = 2, 60, 60
"""Trips of a layer's activations to memory in a pass; bytes through memory for each
parameter at the update, and for each logit at the loss."""


@dataclass(frozen=True)
class StepSeconds(Breakdown):
    """Seconds of a step, part by part, as they add up on the slowest stage.

    What hides behind the computing is not in it.
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
    model: Any, accelerator: Any, split: Split, traffic: Traffic, inputs: Any
) -> StepSeconds | None:
    """Seconds of a step, part by part; None where the chip's links are unknown.

    `inputs` are the arguments of `plan_run`.
    """
    links = (accelerator.link_bandwidth, accelerator.network_bandwidth)
    if None in (*links, accelerator.bandwidth, accelerator.matmul_share):
        return None
    m, p, v = split.accumulation_steps, split.pipeline_parallel, split.interleave
    layers = _layers(model, accelerator, split, inputs)
    layers |= _sent_in_layers(model, accelerator, split, traffic, inputs)
    if "context" in layers:  # keys and values travel while scores are computed
        layers["context"] = greater(layers["context"] - layers["matmuls"], 0)
    stage = sum(layers.values())
    border = (p > 1) * _border(accelerator, split, traffic)
    head = _head(model, accelerator, split, inputs)
    data = _data(accelerator, split, traffic)
    hidden = _hides(layers, split, inputs)
    return StepSeconds(
        **{name: m * seconds for name, seconds in layers.items()},
        head=m * head,
        pipeline=m * border,
        bubble=(p - 1) / v * (stage + border),
        data=greater(data - hidden, 0),
        optimizer=_update(model, accelerator, split, inputs),
    )


def _passes(inputs: Mapping[str, Any]) -> int:
    """Passes over a layer, each of a forward pass's work: backward is two."""
    return 4 if inputs["recompute"] == "full" else 3


def _rate(accelerator: Any, split: Split, inputs: Mapping[str, Any]) -> Any:
    """FLOP/s of the GPUs that share a layer."""
    format = inputs["format"] or accelerator.training_format
    best = accelerator.peak(format) * accelerator.matmul_share
    return best * split.tensor_parallel * split.context_parallel


def _layers(
    model: Any, accelerator: Any, split: Split, inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """A stage's layers and a micro-batch: products, trips to memory, launching."""
    b, l = split.micro_batch_size, model.num_layers
    counted = count_flops(model, b, inputs["recompute"])
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
    trips = TRIPS * passes * kept.layers / split.context_parallel
    work = counted.total - counted.head
    return {
        "matmuls": here * work / _rate(accelerator, split, inputs),
        "memory": here * trips / accelerator.bandwidth,
        "launching": here * l * passes * LAUNCHING,
    }


def _sent_in_layers(
    model: Any, accelerator: Any, split: Split, traffic: Traffic, inputs: Any
) -> dict[str, Any]:
    """What a stage's layers send in a micro-batch: nothing of it hides by itself."""
    t, c, m = split.tensor_parallel, split.context_parallel, split.accumulation_steps
    calls = split.layers(model.num_layers) * (_passes(inputs) - 1) * 2
    tensor = (traffic.tensor + traffic.sequence) / m
    return {
        "tensor": (t > 1) * (calls * LATENCY + tensor / bandwidth_of(accelerator, t)),
        "context": traffic.context / m / bandwidth_of(accelerator, c, t),
        "expert": traffic.expert
        / m
        / bandwidth_of(accelerator, split.data_parallel, t * c, ring=False),
    }


def _border(accelerator: Any, split: Split, traffic: Traffic) -> Any:
    """A stage's sends of a micro-batch, forward and back."""
    stride = split.tensor_parallel * split.context_parallel * split.data_parallel
    w = bandwidth_of(accelerator, split.pipeline_parallel, stride, ring=False)
    sends = 2 * split.interleave
    return sends * LATENCY + traffic.pipeline / split.accumulation_steps / w


def _head(model: Any, accelerator: Any, split: Split, inputs: Any) -> Any:
    """Logits of a micro-batch, and the loss's trips to memory."""
    counted = count_flops(model, split.micro_batch_size, "none").head
    logits = split.micro_batch_size * model.sequence_length * model.vocab_size
    through = LOSS_BYTES * logits / (split.tensor_parallel * split.context_parallel)
    rate = _rate(accelerator, split, inputs)
    return counted / rate + through / accelerator.bandwidth


def _data(accelerator: Any, split: Split, traffic: Traffic) -> Any:
    ways = split.data_parallel * split.context_parallel
    w = bandwidth_of(accelerator, ways, split.tensor_parallel)
    return (ways > 1) * LATENCY + traffic.data / w


def _hides(layers: Mapping[str, Any], split: Split, inputs: Any) -> Any:
    """The computing behind which gradients and weights travel.

    Gradients behind the last backward pass, half of a step's passes; from ZeRO 2 on
    behind each of them, and ZeRO 3's weights behind the neighbour layer's work.
    """
    stage, m = layers["matmuls"] + layers["memory"], split.accumulation_steps
    half = stage * 2 / _passes(inputs)
    zero = inputs["zero_stage"]
    return half if zero < 2 else m * (half if zero == 2 else stage)


def _update(model: Any, accelerator: Any, split: Split, inputs: Any) -> Any:
    alone = split.pipeline_parallel == 1
    P = stage_parameters(model, split, True, alone)
    ways = split.data_parallel * split.context_parallel if inputs["zero_stage"] else 1
    return OPTIMIZER_BYTES * P / ways / accelerator.bandwidth
