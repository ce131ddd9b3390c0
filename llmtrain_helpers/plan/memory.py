"""The memory of a GPU under a split. Goes with notebooks/09_plan.ipynb.

Sources: Narayanan et al. (arXiv 2104.04473), section 2.2, for the micro-batches in
flight; Korthikanti et al. (arXiv 2205.05198), section 4.2.3, with interleaved stages;
Rajbhandari et al. (arXiv 1910.02054), section 7, for what ZeRO shards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from llmtrain_helpers.activations import ActivationCount, count_activations, value_bytes
from llmtrain_helpers.checks import Result, Size, cache_per_model, choice, is_array, unchecked
from llmtrain_helpers.finetune import RECOMPUTED, tuned_stored
from llmtrain_helpers.flops import EveryRecompute
from llmtrain_helpers.memory import (
    LOSS_KERNELS,
    Memory,
    Stored,
    copied_bytes,
    fullest,
    gradients_at_once,
    widest_gradients,
    working_bytes,
)
from llmtrain_helpers.model import Accelerator, Layer, Transformer
from llmtrain_helpers.parallelism import Split
from llmtrain_helpers.parameters import embedding_parameters, head_parameters, parameters_per_gpu
from llmtrain_helpers.plan.run import Run
from llmtrain_helpers.precision import model_state_bytes
from llmtrain_helpers.results import divide, greatest, maximum, minimum, where
from llmtrain_helpers.tuning import IN_8_BITS, STATES, Tuning

RESERVES = {"one GPU": 3.4e9, "several": 5.1e9}
"""Bytes of the card that a plan keeps free: beyond what they allocated, three of four runs had
more there (IBM's 41 and 58, as their driver showed it). A part is cache that the allocator gives
back before it fails (`research.memory`)."""

WIDE_RESERVES = {"one GPU": 5.1e9, "several": 7.8e9}
"""The same if nobody measured (`unmeasured`): half of these runs had more there."""


def card_bytes(chip: Accelerator) -> Result:
    """Bytes of a card: those that its driver shows, or the vendor's if nobody published them."""
    return chip.memory if chip.shown_memory is None else chip.shown_memory


def reserve_bytes(run: Run) -> Result:
    """Bytes of the card that a run leaves free: its own reserve, or a default one."""
    if run.reserve is not None:
        return run.reserve
    reserves = WIDE_RESERVES if unmeasured(run) else RESERVES
    return where(run.num_gpus > 1, reserves["several"], reserves["one GPU"])


def unmeasured(run: Run) -> tuple[str, ...]:
    """Name what a run does that no peak in data/ was measured with; it needs the wider reserve."""
    tuned = run.tuning is not None
    ways = {
        "tensor parallelism in tuning": tuned and run.tensor_parallel > 1,
        "tuning across nodes": tuned and run.num_gpus > run.accelerator.gpus_per_node,
        "offload": run.offload != "none",
    }
    return tuple(name for name, done in ways.items() if done)


class Stage(NamedTuple):
    """The first or the last stage of a pipeline, and which ends of the model it has.

    In a pipeline of one, the only stage has both. In a sweep over pipelines of several
    lengths, `embedding` or `head` is an array. `layout` is everything that decides about a
    stage's parameters: a split with one replica and one pass, so that many plans share it.
    """

    embedding: Size
    head: Size
    last: bool
    layout: Split


def ends(split: Split) -> tuple[Stage, Stage]:
    """The first and the last stage of a split's pipeline."""
    t, p = split.tensor_parallel, split.pipeline_parallel
    e, x, unsplit = split.expert_parallel, split.expert_tensor, p == 1
    layout = Split(1, 1, t, p, 1, 1, 1, split.interleave, e, x)
    return Stage(True, unsplit, False, layout), Stage(unsplit, True, True, layout)


def memory_per_gpu(run: Run) -> Memory:
    """Bytes at the fullest moment of a step, on the GPU of a pipeline that needs the most."""
    return fullest(moments(run))


def moments(run: Run) -> tuple[Memory, ...]:
    """The memory at each moment of a step, on each GPU of a pipeline that could need the most."""
    return tuple(moment for stage in stored(run) for moment in stage.moments())


def stored(run: Run) -> tuple[Stored, ...]:
    """What a GPU stores in the first stage and in the last; just once if there's only one."""
    return tuple(on_gpu(run, *both) for both in in_all(run))


def on_gpu(run: Run, everything: Stored, at_work: Result) -> Stored:
    """The part of a GPU's data that isn't on the CPU."""
    kept = bool(run.keep_gradients)
    return everything.offloaded(run.offload, run.zero_stage, at_work, kept)


def in_all(run: Run) -> tuple[tuple[Stored, Result], ...]:
    """A GPU's data in each stage, on the GPU or the CPU, and the gradients at work."""
    if run.tuning is not None:
        return (tuned_in_all(run, run.tuning),)
    (first, last), (first_in_flight, last_in_flight) = ends(run.split), run.split.in_flight
    on_first = stored_on(run, first, first_in_flight)
    if first.head is True:  # the only stage
        return (on_first,)
    return on_first, stored_on(run, last, last_in_flight)


def offload_seconds(run: Run) -> Result:
    """Seconds that offloading adds to a step, if computing hides none of them."""
    whole = run.zero_stage < 2 or run.keep_gradients
    passes = run.split.accumulation_steps
    on_node = minimum(run.num_gpus, run.accelerator.gpus_per_node)
    how = run.offload, run.bytes_of, passes, 1 if whole else passes, on_node
    return greatest(stage.offload_seconds(*how) for stage, _ in in_all(run))


def offloaded_bytes(run: Run) -> Result:
    """Bytes that the host stores for a GPU if the run offloads."""
    return greatest(x.states - on_gpu(run, x, at_work).states for x, at_work in in_all(run))


def stored_on(run: Run, stage: Stage, in_flight: Result) -> tuple[Stored, Result]:
    """A GPU's data in a stage, with this many micro-batches in flight.

    Also returns the bytes of whole gradients while a layer is at work, if nothing is gathered.
    """
    model, split = run.model, run.split
    c, t, v = split.context_parallel, split.tensor_parallel, value_bytes(run.bytes_of)
    tokens = divide(split.micro_batch_size * model.sequence_length, c)
    saved = kept_activations(run, model, run.recompute)
    layers = divide(layer_activations(run, saved.layers, stage), c)
    embedding = divide(stage.embedding * saved.embedding, c)
    states, learning = state_bytes(run, stage), stage_parameters(model, stage)
    # The log-probabilities, 4 bytes a logit, count as activations, as in chapter 06.
    logits, kernel = divide(stage.head * tokens * model.vocab_size, t), LOSS_KERNELS[run.loss]
    head = divide(stage.head * saved.head, c) - (4 - min(kernel, 4)) * logits
    # With tensor parallelism, FSDP's loss has a third tensor of logits in fp32, and the output
    # matrix keeps its input whole (measured with PyTorch 2.13 on two processes).
    beside = (run.sharding != "zero") * where(t > 1, 1, 0)
    third = 4 * beside * (kernel > 10)
    whole_input = beside * divide(2 * stage.head * tokens * model.hidden_size * (t - 1), t)
    layer, again = (divide(size, c) for size in largest_layer(run, saved.layers))
    at_once = divide(v * tokens * widest_gradients(model), t)
    output = divide(stage.head * head_parameters(model), t)
    gathered = gathered_bytes(run, stage)
    everything = Stored(
        **states,
        earlier=1 * (split.accumulation_steps > 1),
        of_head=output,
        of_all=gradients_at_once(run.update, learning, largest_matrix(run)),
        others=(in_flight - 1) * (layers + embedding),
        layers=layers + embedding,
        layer=layer,
        head=head + whole_input,
        logits=(max(kernel - 4, 0) + third) * logits,
        working=working_bytes(run.recompute, again, at_once),
        ends=gathered[0],
        gathered=gathered[1],
    )
    if run.offload == "none":
        return everything, 0
    at_work = run.bytes_of.gradients * sum(whole_parameters(run, stage))
    return everything, where(gathered[1] > 0, 0, at_work)


def tuned_in_all(run: Run, tuning: Tuning) -> tuple[Stored, Result]:
    """A GPU's data in a tuned run, and the gradients at work."""
    recompute, split = choice("recompute", run.recompute, RECOMPUTED), run.split
    how = split.accumulation_steps, run.zero_stage, run.sharing, run.attention, run.offload
    ways = run.tensor_parallel, run.sequence_parallel
    return tuned_stored(run.model, tuning, run.micro_batch_size, recompute, *how, *ways)


# --- the model's states


def state_bytes(run: Run, stage: Stage) -> dict[str, Result]:
    """Bytes of the model's states on a GPU of a pipeline stage, by part, as ZeRO shards them."""
    model = run.model
    P, E = stage_parameters(model, stage), stage_experts(model, stage)
    states = sharded_states(run, P - E, stage_matrices(model, stage), run.sharing)
    if model.num_experts:
        some = maximum(E, 1)
        of_experts = sharded_states(run, some, some, run.expert_copies)
        states = {x: size + where(E > 0, of_experts[x], 0) for x, size in states.items()}
    if run.update == "muon":
        states["copy"] = states["copy"] + newton_schulz_bytes(run)
    at_once = divide(gradients_at_once(run.update, P, largest_matrix(run)), P)
    for name in ("gradients", "main_gradients"):
        states[name] = at_once * states[name]
    return states


def sharded_states(run: Run, parameters: Size, matrices: Size, replicas: Size) -> dict[str, Result]:
    """States of this many parameters, sharded over these replicas by ZeRO's stage.

    `matrices` counts those in the layers' matrices. Includes the copy that an update makes.
    """
    each, stage, update = run.bytes_of, run.zero_stage, run.update
    bytes_of = unchecked(model_state_bytes)
    states = bytes_of(parameters, each, stage, replicas).parts()
    if run.keep_gradients:
        unsharded = bytes_of(parameters, each, min(stage, 1), replicas)
        states["gradients"] = unsharded.gradients
    ways = replicas if stage else 1
    if update == "muon":
        states["optimizer"] -= divide(each.optimizer * matrices, 2 * ways)
    elif update == "adamw_8bit":
        states["optimizer"] = divide(IN_8_BITS * parameters, ways)
    elif not STATES[update]:
        states["optimizer"] = 0
    copied = copied_bytes(update, each.weights, each.main_weights)
    return {**states, "copy": divide(copied * parameters, ways)}


def newton_schulz_bytes(run: Run) -> Result:
    """Bytes that Muon's iteration needs at once for a GPU's part of the largest m × n matrix.

    (g + 4)mn + 4·min(m, n)²: the update in the g bytes of a gradient, in 16 bits before and
    after an iteration, plus two squares. It isn't sharded: each replica has whole matrices.

    Source: torch.optim.Muon, which follows Keller Jordan's, counted on PyTorch 2.13.
    """
    h, split, each = run.model.hidden_size, run.split, run.bytes_of
    g = max(each.gradients, each.main_gradients)
    sizes = []
    for matrix in (x for layer in run.model.kinds for x in layer.matrices(h)):
        m, n = matrix.rows, matrix.columns
        t = split.expert_tensor if matrix.is_chosen() else split.tensor_parallel
        m, n = (-(-m // t), n) if matrix.reads_parts() else (m, -(-n // t))
        side = minimum(m, n)
        sizes.append((g + 4) * m * n + 4 * side * side)
    return greatest(sizes)


def largest_matrix(run: Run) -> Size:
    """Weights of a GPU's part of the largest matrix: in a layer, the embedding or the head."""
    of_experts, others = most_weights(run.model)
    split = run.split
    return maximum(-(-of_experts // split.expert_tensor), -(-others // split.tensor_parallel))


@cache_per_model
def most_weights(model: Transformer) -> tuple[Size, Size]:
    """Weights of an expert's largest matrix, and of the largest other one."""
    h = model.hidden_size
    matrices = [x for layer in model.kinds for x in layer.matrices(h)]
    of_experts = (x.weights for x in matrices if x.is_chosen())
    others = (x.weights for x in matrices if not x.is_chosen())
    return greatest([0, *of_experts]), greatest([h * model.vocab_size, *others])


@cache_per_model
def stage_parameters(model: Transformer, stage: Stage) -> Size:
    """Parameters on a GPU of a stage: a t-th of the matrices, and norms whole.

    It has an e-th of the experts, whole or a t-th of each. The stage with the head has the
    output matrix, or its own copy if that's tied to an embedding on another stage.
    """
    split, layers = stage.layout, stage_layers(model, stage)
    t, e, x = split.tensor_parallel, split.expert_parallel, split.expert_tensor
    return parameters_per_gpu(model, t, e, layers, stage.embedding, stage.head, x)


@cache_per_model
def stage_matrices(model: Transformer, stage: Stage) -> Size:
    """Weights of the matrices of layers on a GPU of a stage, without those of experts."""
    each = (
        how_many * matrix.copies * matrix.weights
        for how_many, layer in stage_layers(model, stage)
        for matrix in layer.matrices(model.hidden_size)
        if not matrix.is_chosen()
    )
    return sum(each) // stage.layout.tensor_parallel


@cache_per_model
def stage_experts(model: Transformer, stage: Stage) -> Size:
    """Parameters of experts on a GPU of a stage: e GPUs share them, and t can share each one."""
    if not model.num_experts:
        return 0
    h, ways = model.hidden_size, stage.layout.expert_ways
    layers = stage_layers(model, stage)
    return -(-sum(how_many * layer.expert_parameters(h) for how_many, layer in layers) // ways)


def stage_layers(model: Transformer, stage: Stage) -> tuple[tuple[Size, Layer], ...]:
    """Count the layers of each kind on a GPU of the first or the last stage.

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
    """What a model stores of a micro-batch on each GPU that shares its layers."""
    return count_activations(
        model,
        run.micro_batch_size,
        recompute,
        run.attention,
        run.dropout,
        fused_mlp=run.mlp_is_fused if fused_mlp is None else fused_mlp,
        tensor_parallel=run.tensor_parallel,
        sequence_parallel=run.sequence_parallel,
        # Megatron weights the experts' outputs inside them, and doesn't store them.
        expert_parallel=1 if run.sharding == "zero" else run.expert_parallel,
        value_bytes=value_bytes(run.bytes_of),
    )


def layer_activations(run: Run, kept: Result, stage: Stage) -> Result:
    """What a stage's layers store of a micro-batch; `kept` is what all layers store."""
    model = run.model
    if stage.embedding is stage.head is True:  # the only stage has all of them
        return kept
    layers = stage_layers(model, stage)
    if len(layers) == 1:
        return divide(kept, model.num_layers) * layers[0][0]
    by_kind = {
        layer: kept_activations(run, one, run.recompute).layers
        for layer, one in single_layers(model).items()
    }
    return sum(how_many * by_kind[layer] for how_many, layer in layers)


def largest_layer(run: Run, kept: Result) -> tuple[Result, Result]:
    """What one layer stores, and recomputes in backward: for several kinds, the maximum."""
    model = run.model
    if len(model.layers) == 1:
        everything = kept_activations(run, model, "none").layers
        return divide(kept, model.num_layers), divide(everything - kept, model.num_layers)
    ones = single_layers(model).values()
    every, some = (
        [kept_activations(run, one, recompute).layers for one in ones]
        for recompute in ("none", run.recompute)
    )
    return greatest(some), greatest(x - y for x, y in zip(every, some, strict=True))


@cache_per_model
def single_layers(model: Transformer) -> dict[Layer, Transformer]:
    """One-layer models, one for each kind of layer: the same objects for all plans."""
    return {layer: replace(model, layers=((1, layer),)) for layer in model.kinds}


# --- what is gathered


def gathered_bytes(run: Run, stage: Stage) -> tuple[Result, Result]:
    """What ZeRO 3 and FSDP gather for a moment: embedding and head, and layers.

    The ends with their gradients, and two layers with one's gradients, in the format of the
    products: 16 bits, or fp8. With a pipeline, the weights of the whole stage, which remain
    gathered for all its passes.
    """
    if run.zero_stage < 3:
        return 0, 0
    v = value_bytes(run.bytes_of)
    gathers = (run.sharing > 1) | (run.expert_copies > 1) | (run.offload == "weights")
    w, (outer, layer) = min(v, run.bytes_of.weights), whole_parameters(run, stage)
    whole_stage = w * stage_parameters(run.model, stage) - w * outer
    weights = where(run.split.pipeline_parallel == 1, 2 * w * layer, whole_stage)
    return gathers * (w + v) * outer, gathers * (weights + v * layer)


def whole_parameters(run: Run, stage: Stage) -> tuple[Result, Result]:
    """Parameters of a stage's embedding and head on a GPU, only split by tensor parallelism.

    Also those of the largest layer, without experts that no other GPU shares.
    """
    model = run.model
    t, ways = run.split.tensor_parallel, run.split.expert_ways
    alone = (run.expert_copies == 1) & (run.sharing > 1) & (run.offload != "weights")
    spread = where(alone, 0, 1)
    tied = model.tied_embeddings * stage.embedding
    outer = stage.embedding * embedding_parameters(model)
    outer = outer + stage.head * (1 - tied) * head_parameters(model)
    of_layers = (
        divide((every - experts) * ways + spread * experts * t, t * ways)
        for every, experts in parameters_of_kinds(model)
    )
    return divide(outer, t), greatest(of_layers)


@cache_per_model
def parameters_of_kinds(model: Transformer) -> list[tuple[Size, Size]]:
    """Parameters of a layer of each kind, and those of its experts among them."""
    h = model.hidden_size
    return [(layer.parameters(h), layer.expert_parameters(h)) for layer in model.kinds]
