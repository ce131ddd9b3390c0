"""What a GPU holds under a split. Beside notebooks/08_plan.ipynb.

Sources: Narayanan et al. (arXiv 2104.04473), section 2.2, for the micro-batches in
flight; Korthikanti et al. (arXiv 2205.05198), section 4.2.3, with interleaved stages;
Rajbhandari et al. (arXiv 1910.02054), section 7, for what ZeRO shards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from llmtrain_helpers.activations import ActivationCount, count_activations, value_bytes
from llmtrain_helpers.checks import Result, is_array, remembered
from llmtrain_helpers.communication import Split as Split
from llmtrain_helpers.model.layers import Layer
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.parameters import embedding_parameters, head_parameters, norm_parameters
from llmtrain_helpers.precision import model_state_bytes
from llmtrain_helpers.results import Breakdown, greater, lesser, shared_out


@dataclass(frozen=True)
class Memory(Breakdown):
    """Bytes on the GPU that holds most, part by part.

    The model's states as in chapter 05, sharded; `activations` of all micro-batches in
    flight; `transient`, what is there only for a moment: two tensors of logits at the
    loss, or what a layer computes again; with FSDP the weights that are gathered.
    """

    weights: Result
    gradients: Result
    main_gradients: Result
    main_weights: Result
    optimizer: Result
    activations: Result
    transient: Result


SHARDING = ["zero", "fsdp"]
"""How states are sharded: as ZeRO's papers count it, or as PyTorch's FSDP does it."""


def memory_per_gpu(model: Transformer, split: Split, inputs: Mapping[str, Any]) -> Memory:
    """Bytes on a GPU of the first stage or of the last, whichever holds more.

    `inputs` are the arguments of `plan_run`: recipe, recomputation, ZeRO's stage and
    whether gradients stay whole, the kernels.
    """
    alone = split.pipeline_parallel == 1
    flights = split.in_flight
    kept = _kept(model, split, inputs, inputs["recompute"])
    again = _again(model, split, inputs, kept.layers)

    def of_stage(embedding: Any, head: Any, flight: Result) -> dict[str, Result]:
        states = _states(model, split, inputs, embedding, head)
        return states | _held(model, split, inputs, kept, again, embedding, head, flight)

    first = of_stage(True, alone, flights[0])
    if alone is True:
        return Memory(**first)
    last = of_stage(alone, True, flights[1])
    more = sum(first.values()) >= sum(last.values())
    return Memory(**{x: first[x] * more + last[x] * (1 - more) for x in first})


def _states(
    model: Transformer, split: Split, inputs: Mapping[str, Any], embedding: Any, head: Any
) -> dict[str, Result]:
    """The model's states on a GPU of a stage with the embedding, with the head."""
    P = stage_parameters(model, split, embedding, head)
    E = stage_experts(model, split, last=embedding is not True)
    ways, e = split.data_parallel * split.context_parallel, split.expert_parallel
    parts = _sharded(P - E, ways, inputs)
    if model.num_experts:  # the same ones stand on an e-th of the replicas
        there = E > 0
        of_experts = _sharded(greater(E, 1), ways // e, inputs)
        parts = {x: size + there * of_experts[x] for x, size in parts.items()}
    return parts


def _sharded(P: Result, ways: Result, inputs: Mapping[str, Any]) -> dict[str, Result]:
    """States of P parameters that so many GPUs share as ZeRO's stage says."""
    stage, recipe = inputs["zero_stage"], inputs["recipe"]
    parts = model_state_bytes(P, recipe, stage, ways).parts()
    if inputs["keep_gradients"]:
        whole = model_state_bytes(P, recipe, min(stage, 1), ways)
        parts["gradients"] = whole.gradients
    return parts


def _held(
    model: Transformer,
    split: Split,
    inputs: Mapping[str, Any],
    kept: ActivationCount,
    again: Result,
    embedding: Any,
    head: Any,
    in_flight: Result,
) -> dict[str, Result]:
    """The activations of such a stage, and what comes on top for a moment."""
    t, c = split.tensor_parallel, split.context_parallel
    in_layers = _in_layers(model, split, inputs, kept.layers, embedding is not True)
    activations = in_flight * (in_layers + embedding * kept.embedding)
    tokens = split.micro_batch_size * model.sequence_length
    logits = head * shared_out(8 * tokens * model.vocab_size, t)
    transient = shared_out(greater(again - head * kept.head, logits), c)
    if inputs["sharding"] == "fsdp":
        transient = transient + _gathered(model, split, embedding, head)
    return {"activations": shared_out(activations + head * kept.head, c), "transient": transient}


def _gathered(model: Transformer, split: Split, embedding: Any, head: Any) -> Result:
    """What FSDP has whole for a moment, in 16 bits: two layers, the gradients of one.

    And on the GPU with the head its matrix, its gradients, and what the loss takes.
    With a pipeline the weights of the whole stage: they stay for all its passes.
    """
    h, t = model.hidden_size, split.tensor_parallel
    layer = max(layer.parameters(h) - layer.split(h) for _, layer in model.layers)
    of_head = head * head_parameters(model)
    some = shared_out(2 * 2 * layer + 2 * of_head, t)
    whole = 2 * stage_parameters(model, split, embedding, head)
    alone = split.pipeline_parallel == 1
    gradients = shared_out(2 * layer + 2 * of_head, t)
    return some * alone + whole * (1 - alone) + gradients + head * _loss(model, split)


def _loss(model: Transformer, split: Split) -> Result:
    """What PyTorch's loss takes beside two tensors of logits in fp32: 16-bit logits.

    With tensor parallelism its loss takes a third tensor in fp32, and the output matrix
    keeps its input whole. Both measured with PyTorch 2.13 on two processes.
    """
    t = split.tensor_parallel
    tokens = split.micro_batch_size * model.sequence_length
    more = (t > 1) * (4 * model.vocab_size + 2 * model.hidden_size * (t - 1))
    sizes = tokens * (2 * model.vocab_size + more)
    return shared_out(shared_out(sizes, split.context_parallel), t)


def _kept(
    model: Transformer, split: Split, inputs: Mapping[str, Any], recompute: str
) -> ActivationCount:
    """What the model keeps for a micro-batch on each GPU that shares its layers."""
    return count_activations(
        model,
        split.micro_batch_size,
        recompute,
        inputs["attention"],
        inputs["dropout"],
        fused_mlp=inputs["fused_mlp"],
        tensor_parallel=split.tensor_parallel,
        sequence_parallel=inputs["sequence_parallel"],
        value_bytes=value_bytes(inputs["recipe"]),
    )


def stage_parameters(model: Transformer, split: Split, embedding: Any, head: Any) -> Result:
    """Parameters on a GPU of a stage: a t-th of the matrices, and norms whole.

    Of experts it has a t-th of an e-th. The stage with the head has the output matrix,
    its own copy where it is tied to an embedding on another stage.
    """
    return _on_stage(model, _alone(split), embedding, head)


def _alone(split: Split) -> Split:
    """Of a split what decides which layers a GPU has, and its share of each."""
    t, p = split.tensor_parallel, split.pipeline_parallel
    return Split(1, 1, t, p, 1, 1, 1, split.interleave, split.expert_parallel)


@remembered
def _on_stage(model: Transformer, split: Split, embedding: Any, head: Any) -> Result:
    h, t = model.hidden_size, split.tensor_parallel
    last_norm = norm_parameters(model)
    norms, matrices = head * last_norm, 0
    for how_many, layer in stage_layers(model, split, last=embedding is not True):
        of_norms = layer.norm_parameters(h)
        norms = norms + how_many * of_norms
        dense = layer.parameters(h) - of_norms - layer.split(h)
        matrices = matrices + how_many * dense
    there_already = model.tied_embeddings * embedding
    matrices = matrices + embedding * embedding_parameters(model)
    matrices = matrices + head * (1 - there_already) * head_parameters(model)
    experts = stage_experts(model, split, last=embedding is not True)
    return -(-matrices // t) + norms + experts


def stage_experts(model: Transformer, split: Split, last: bool) -> Result:
    """Of them those of experts: e GPUs share them, and t GPUs each one of them."""
    if not model.num_experts:
        return 0
    h, ways = model.hidden_size, split.tensor_parallel * split.expert_parallel
    stage = stage_layers(model, split, last)
    return -(-sum(how_many * layer.split(h) for how_many, layer in stage) // ways)


def stage_layers(model: Transformer, split: Split, last: bool) -> tuple[tuple[Result, Layer], ...]:
    """How many layers of each kind a GPU of the first or of the last stage has.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192)
    >>> [n for n, _ in stage_layers(llama, Split(8, 1, 1, 4, 1, 2, 1), last=False)]
    [8]
    """
    l, p, v = model.num_layers, split.pipeline_parallel, split.interleave
    if len(model.layers) == 1:
        return ((split.layers(l), model.layers[0][1]),)
    found: list[tuple[Result, Layer]] = []
    low, each = 0, -(-l // (v * p))
    for how_many, layer in model.layers:
        high, here = low + how_many, 0
        for i in range(int(v.max()) if is_array(v) else int(v)):
            start = l - each * (1 + i * p) if last else each * i * p
            overlap = lesser(start + each, high) - greater(start, low)
            here = here + (i < v) * greater(overlap, 0 * overlap)
        found.append((here, layer))
        low = int(high)
    return tuple(found)


def _in_layers(
    model: Transformer, split: Split, inputs: Mapping[str, Any], kept: Result, last: bool
) -> Result:
    """What the layers of such a stage keep of a micro-batch."""
    stage = stage_layers(model, split, last)
    if len(stage) == 1:
        return shared_out(kept, model.num_layers) * stage[0][0]
    each = {layer: replace(model, layers=((1, layer),)) for _, layer in stage}
    again = inputs["recompute"]
    held = {x: _kept(m, split, inputs, again).layers for x, m in each.items()}
    return sum(how_many * held[layer] for how_many, layer in stage)


def _again(model: Transformer, split: Split, inputs: Mapping[str, Any], kept: Result) -> Result:
    """What one layer computes again: of several kinds, the most that one does."""
    recompute = inputs["recompute"]
    if len(model.layers) == 1:
        every = _kept(model, split, inputs, "none").layers
        return shared_out(every - kept, model.num_layers)
    found = [0]
    for layer in {layer for _, layer in model.layers}:
        alone = replace(model, layers=((1, layer),))
        every, some = (_kept(alone, split, inputs, which).layers for which in ("none", recompute))
        found.append(every - some)
    most = found[0]
    for one in found[1:]:
        most = greater(most, one)
    return most
