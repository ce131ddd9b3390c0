"""What a GPU holds under a split. Beside notebooks/08_plan.ipynb.

Sources: Narayanan et al. (arXiv 2104.04473), section 2.2, for the micro-batches in
flight; Korthikanti et al. (arXiv 2205.05198), section 4.2.3, with interleaved stages;
Rajbhandari et al. (arXiv 1910.02054), section 7, for what ZeRO shards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from llmtrain_helpers.activations import ActivationCount, count_activations, value_bytes
from llmtrain_helpers.checks import Result, Size, cache_per_model, choice, is_array
from llmtrain_helpers.finetune import RECOMPUTED, TunedMemory, tuned_memory
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.model import Layer, Transformer
from llmtrain_helpers.parallelism import Split
from llmtrain_helpers.parameters import embedding_parameters, head_parameters, norm_parameters
from llmtrain_helpers.plan.run import Run
from llmtrain_helpers.precision import model_state_bytes
from llmtrain_helpers.results import Breakdown, divide, maximum, minimum, where

RESERVE, CARD = 21e9, 96e9
"""Bytes that a plan keeps free on a card of so many bytes, and the same share of a
smaller one: what five of six measured peaks (`published.measured_memory`, everything
recomputed) had beyond the plan. It is for what a plan leaves out: gathered layers,
buffers, the allocator."""


TUNED_RESERVES = {"one GPU": 1.9e9, "several": 4.4e9}
"""Bytes beyond the allocator's peak that a tuned run keeps free: nine of ten measured runs
had more there (IBM's 41 and 58, as their driver showed it), but half of them 5.1 and 7.8e9:
cache that the allocator gives back before it fails (`research.finetunes`)."""


@dataclass(frozen=True)
class Memory(Breakdown[Result]):
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


class Stage(NamedTuple):
    """The first or the last stage of a pipeline, and which ends of the model it holds.

    The only stage of a pipeline of one holds both. In a sweep over pipelines of several
    lengths `embedding` or `head` is an array. `layout` is all that decides about a stage's
    parameters: a split with one replica and one pass, so that many plans ask for the same.
    """

    embedding: Size
    head: Size
    last: bool
    layout: Split


def ends(split: Split) -> tuple[Stage, Stage]:
    """The first and the last stage of a split's pipeline."""
    t, p = split.tensor_parallel, split.pipeline_parallel
    layout, unsplit = Split(1, 1, t, p, 1, 1, 1, split.interleave, split.expert_parallel), p == 1
    return Stage(True, unsplit, False, layout), Stage(unsplit, True, True, layout)


def memory_per_gpu(run: Run) -> Memory:
    """Bytes on a GPU of the pipeline's first stage or of its last, whichever holds more."""
    if run.tuning is not None:
        return tuned_memory_per_gpu(run)
    model, split = run.model, run.split
    c = split.context_parallel
    saved = kept_activations(run, model, run.recompute)
    recomputed = recomputed_bytes(run, saved.layers)
    logits = loss_logits(run)

    def parts_on(stage: Stage, in_flight: Result) -> dict[str, Result]:
        """Part by part, with so many micro-batches in flight."""
        layers = layer_activations(run, saved.layers, stage)
        activations = in_flight * (layers + stage.embedding * saved.embedding)
        # While the loss is differentiated, its input is still there; while a layer is
        # computed again, the head's input is gone.
        transient = maximum(recomputed - stage.head * saved.head, stage.head * logits)
        transient = divide(transient, c)
        if run.sharding != "zero":
            transient = transient + gathered_bytes(model, split, stage)
        return state_bytes(run, stage) | {
            "activations": divide(activations + stage.head * saved.head, c),
            "transient": transient,
        }

    (first, last), (first_in_flight, last_in_flight) = ends(split), split.in_flight
    on_first = parts_on(first, first_in_flight)
    if first.head is True:  # the only stage
        return Memory(**on_first)
    on_last = parts_on(last, last_in_flight)
    larger = sum(on_first.values()) >= sum(on_last.values())
    return Memory(**{x: where(larger, on_first[x], on_last[x]) for x in on_first})


def tuned_memory_per_gpu(run: Run) -> Memory:
    """Bytes on a GPU at the peak of a tuned step: the parts that there are."""
    peak = tuned_peak(run)
    return Memory(
        weights=peak.weights,
        gradients=peak.gradients,
        main_gradients=0,
        main_weights=0,
        optimizer=peak.optimizer,
        activations=peak.activations,
        transient=peak.transient,
    )


def tuned_peak(run: Run) -> TunedMemory:
    """The same with the name of the moment that is the peak."""
    assert run.tuning is not None
    return tuned_memory(
        run.model,
        run.tuning,
        run.micro_batch_size,
        choice("recompute", run.recompute, RECOMPUTED),
        accumulation_steps=run.split.accumulation_steps,
        zero_stage=run.zero_stage,
        data_parallel=run.split.data_parallel,
    )


def loss_logits(run: Run) -> Result:
    """Bytes of the two tensors of logits at the loss, of a whole sequence: 8bsV/t."""
    split, model = run.split, run.model
    b, s, V = split.micro_batch_size, model.sequence_length, model.vocab_size
    return divide(8 * b * s * V, split.tensor_parallel)


def at_the_loss(run: Run, memory: Memory) -> bool:
    """Whether what is there for a moment is the logits at the loss, and nothing else.

    Else it is what a layer computes again, or what FSDP gathers, there or elsewhere.
    """
    if run.tuning is not None:
        return tuned_peak(run).phase == "loss"
    logits = divide(loss_logits(run), run.split.context_parallel)
    return bool(abs(memory.transient / logits - 1) < 1e-6)


# --- the model's states


def state_bytes(run: Run, stage: Stage) -> dict[str, Result]:
    """Bytes of the model's states on a GPU of a pipeline stage, by part, as ZeRO shards them."""
    split = run.split
    P, E = stage_parameters(run.model, stage), stage_experts(run.model, stage)
    states = sharded_states(run, P - E, run.sharing)
    if run.model.num_experts:  # an e-th of the replicas have the same experts
        of_experts = sharded_states(run, maximum(E, 1), run.sharing // split.expert_parallel)
        states = {x: size + where(E > 0, of_experts[x], 0) for x, size in states.items()}
    return states


def sharded_states(run: Run, parameters: Size, replicas: Size) -> dict[str, Result]:
    """States of so many parameters that these replicas share, as ZeRO's stage says."""
    states = model_state_bytes(parameters, run.bytes_of, run.zero_stage, replicas).parts()
    if run.keep_gradients:
        unsharded = model_state_bytes(parameters, run.bytes_of, min(run.zero_stage, 1), replicas)
        states["gradients"] = unsharded.gradients
    return states


@cache_per_model
def stage_parameters(model: Transformer, stage: Stage) -> Size:
    """Parameters on a GPU of a stage: a t-th of the matrices, and norms whole.

    Of experts it has a t-th of an e-th. The stage with the head has the output matrix,
    its own copy where it is tied to an embedding on another stage.
    """
    h, t = model.hidden_size, stage.layout.tensor_parallel
    norms, matrices = stage.head * norm_parameters(model), 0
    for how_many, layer in stage_layers(model, stage):
        of_norms = layer.norm_parameters(h)
        norms = norms + how_many * of_norms
        matrices = matrices + how_many * (
            layer.parameters(h) - of_norms - layer.expert_parameters(h)
        )
    matrices = matrices + stage.embedding * embedding_parameters(model)
    shares_embedding = model.tied_embeddings * stage.embedding
    matrices = matrices + stage.head * (1 - shares_embedding) * head_parameters(model)
    return -(-matrices // t) + norms + stage_experts(model, stage)


def stage_experts(model: Transformer, stage: Stage) -> Size:
    """Parameters of experts on a GPU of a stage: e GPUs share them, and t GPUs each one."""
    if not model.num_experts:
        return 0
    h, ways = model.hidden_size, stage.layout.tensor_parallel * stage.layout.expert_parallel
    layers = stage_layers(model, stage)
    return -(-sum(how_many * layer.expert_parameters(h) for how_many, layer in layers) // ways)


def stage_layers(model: Transformer, stage: Stage) -> tuple[tuple[Size, Layer], ...]:
    """How many layers of each kind a GPU of the first or of the last stage has.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192)
    >>> first, _ = ends(Split(8, 1, 1, 4, 1, 2, 1))
    >>> [n for n, _ in stage_layers(llama, first)]
    [8]
    """
    l, p, v = model.num_layers, stage.layout.pipeline_parallel, stage.layout.interleave
    if len(model.layers) == 1:
        return ((stage.layout.layers(l), model.layers[0][1]),)
    layers: list[tuple[Size, Layer]] = []
    kind_starts, piece = 0, -(-l // (v * p))
    for how_many, layer in model.layers:
        here: Size = 0
        kind_ends = kind_starts + how_many
        for i in range(int(v.max()) if is_array(v) else int(v)):
            start = l - piece * (1 + i * p) if stage.last else piece * i * p
            overlap = minimum(start + piece, kind_ends) - maximum(start, kind_starts)
            here = here + where(i < v, maximum(overlap, 0 * overlap), 0)
        layers.append((here, layer))
        kind_starts = int(kind_ends)
    return tuple(layers)


# --- activations


def kept_activations(
    run: Run, model: Transformer, recompute: EveryRecompute, fused_mlp: bool | None = None
) -> ActivationCount:
    """What a model keeps of a micro-batch on each GPU that shares its layers."""
    return count_activations(
        model,
        run.micro_batch_size,
        recompute,
        run.attention,
        run.dropout,
        fused_mlp=run.mlp_is_fused if fused_mlp is None else fused_mlp,
        tensor_parallel=run.tensor_parallel,
        sequence_parallel=run.sequence_parallel,
        value_bytes=value_bytes(run.bytes_of),
    )


def layer_activations(run: Run, kept: Result, stage: Stage) -> Result:
    """What a stage's layers keep of a micro-batch; `kept` is what all of them do."""
    model = run.model
    layers = stage_layers(model, stage)
    if len(layers) == 1:
        return divide(kept, model.num_layers) * layers[0][0]
    by_kind = {
        layer: kept_activations(run, replace(model, layers=((1, layer),)), run.recompute).layers
        for _, layer in layers
    }
    return sum(how_many * by_kind[layer] for how_many, layer in layers)


def recomputed_bytes(run: Run, kept: Result) -> Result:
    """What one layer computes again in backward: of several kinds, the most."""
    model = run.model
    if len(model.layers) == 1:
        everything = kept_activations(run, model, "none").layers
        return divide(everything - kept, model.num_layers)
    most: Result = 0
    for layer in model.kinds:
        one = replace(model, layers=((1, layer),))
        everything, some = (
            kept_activations(run, one, recompute).layers for recompute in ("none", run.recompute)
        )
        most = maximum(most, everything - some)
    return most


# --- what FSDP gathers


def gathered_bytes(model: Transformer, split: Split, stage: Stage) -> Result:
    """What FSDP has whole for a moment, in 16 bits: two layers, the gradients of one.

    And on the GPU with the head its matrix, its gradients, and what the loss takes.
    With a pipeline the weights of the whole stage: they stay for all its passes.
    PyTorch's loss takes 16-bit logits beside two tensors in fp32; with tensor parallelism
    a third one in fp32, and the output matrix keeps its input whole. Both were measured
    with PyTorch 2.13 on two processes.
    """
    h, t, c = model.hidden_size, split.tensor_parallel, split.context_parallel
    layer = max(layer.parameters(h) - layer.expert_parameters(h) for layer in model.kinds)
    output = stage.head * head_parameters(model)
    gathered = divide(2 * 2 * layer + 2 * output, t)
    stage_bytes = 2 * stage_parameters(model, stage)
    weights = where(split.pipeline_parallel == 1, gathered, stage_bytes)
    gradients = divide(2 * layer + 2 * output, t)
    tokens = split.micro_batch_size * model.sequence_length
    parallel_loss = where(t > 1, 4 * model.vocab_size + 2 * h * (t - 1), 0)
    loss = divide(divide(tokens * (2 * model.vocab_size + parallel_loss), c), t)
    return weights + gradients + stage.head * loss
