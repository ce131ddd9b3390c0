"""Chapter 13: what it takes to adapt a model, as FLOPs and memory of a `Tuning`.

Goes with notebooks/13_finetune.ipynb. Sources: Hu et al. (arXiv 2106.09685) for LoRA, Dettmers et
al. (arXiv 2305.14314) for 4 bits; we counted what Hugging Face's transformers and PEFT
compute and store with PyTorch. `tuning` defines what learns; the end is LoRA at a glance,
for notebook 11.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from llmtrain_helpers.activations import (
    ActivationCount,
    Keeping,
    Kernel,
    count_activations,
    kept,
    kept_bytes,
    tokens_outside,
)
from llmtrain_helpers.batch import largest_batch
from llmtrain_helpers.checks import (
    Amount,
    Array,
    Count,
    Exact,
    Number,
    Quantity,
    Result,
    Size,
    Whole,
    anywhere,
    as_results,
    as_sizes,
    at_most,
    broadcast,
    cache_per_model,
    checked,
    choice,
    is_array,
    refuse,
    single,
)
from llmtrain_helpers.flops import FlopCount, Pairs
from llmtrain_helpers.memory import (
    LOSS_KERNELS,
    Memory,
    Offload,
    Stored,
    check_offload,
    copied_bytes,
    fullest,
    gradients_at_once,
    mlp_gradients,
)
from llmtrain_helpers.model.layers import Attention, Experts, Layer, Mixer, Mlp, pairs
from llmtrain_helpers.model.transformer import Transformer, of_length, over_layers
from llmtrain_helpers.parameters import count_parameters, embedding_parameters, head_parameters
from llmtrain_helpers.precision import Recipe, RecipeName, known_recipe
from llmtrain_helpers.results import Breakdown, divide, greatest, maximum, minimum, where
from llmtrain_helpers.tuning import (
    HEAD,
    Tuning,
    check_rank,
    check_tuned,
    flows_into,
    matrix_weights,
    own_copies,
    sites,
    tuned_layers,
    tuned_parameters,
)

# --- FLOPs


@dataclass(frozen=True)
class TunedFlops(FlopCount):
    """FLOPs of an iteration of a tuned model: those of `FlopCount`, plus the `adapters`'.

    `recomputed` includes the adapters' second forward pass.
    """

    adapters: Size


TunedRecompute: TypeAlias = Literal["none", "full"]
"""What can be recomputed when a model is tuned, as far as we've counted it."""

RECOMPUTED: list[TunedRecompute] = [*get_args(TunedRecompute)]


@cache_per_model
@checked
def tuned_flops(
    model: Transformer,
    tuning: Tuning,
    batch_size: Count[Number],
    recompute: TunedRecompute,
    attention: Pairs = "dense",
    sequence_length: Count[Number] | None = None,
) -> TunedFlops:
    """FLOPs of a tuning iteration: 6PT for full tuning, 4PT with frozen weights.

    For T tokens, an m × n matrix needs 2Tmn forward, 2Tmn for the gradient of its input
    (unless nothing before it learns), and 2Tmn for its own gradient if it learns. An
    adapter needs 2Tr(m + n) forward and twice that backward, minus its first half's input
    if nothing before it learns. Scores cost the same as ever. `recompute` is "none" or
    "full". With "full", all layers run forward again, except for the last product of each,
    which PyTorch skips unless `tuning.reentrant` (experts need it); and the embedding's
    output requires a gradient, as in transformers.
    Otherwise as `count_flops`.

    Source: counted with PyTorch's FLOP counter, no difference.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=1)
    >>> for tuning in (Tuning.full(), Tuning.lora(16, "attention")):  # not 8PT and 6PT
    ...     flops = tuned_flops(llama, tuning, 1024, "full").total
    ...     print(f"{flops / (1024 * 7504924672):.1f}PT")
    7.4PT
    5.4PT
    """
    model = of_length(model, sequence_length)
    check_tuned(model)
    [B] = as_sizes(batch_size)
    broadcast(batch_size=B, **model.numbers())
    h, T = model.hidden_size, B * model.sequence_length
    r, full = tuning.rank, tuning.is_full
    parts: dict[str, Size] = dict.fromkeys(
        ("projections", "scores", "mlp", "head", "recomputed", "adapters"), 0
    )
    for how_many, layer, flows in tuned_layers(model, tuning, recompute):
        for part, arrives in flows_into(layer, h, tuning, flows):
            name = "projections" if isinstance(part, Mixer) else "mlp"
            learns = {site.matrix.name: site.adapted or full for site in sites(part, h, tuning)}
            forward, adapters = 0, 0
            for m, adapted, _, before in sites(part, h, tuning):
                passes = arrives or any(learns.get(x) for x in before)
                product = 2 * T * m.active * m.weights
                parts[name] = parts[name] + how_many * (1 + passes + full) * product
                down, up = (2 * T * r * m.active * side * adapted for side in (m.rows, m.columns))
                parts["adapters"] = parts["adapters"] + how_many * ((2 + passes) * down + 3 * up)
                forward, adapters = forward + product, adapters + down + up
            if isinstance(part, Mixer):
                scored = 2 * B * part.products() * pairs(model.sequence_length, attention, part)
                learns.pop("output", None)
                passed = arrives or any(learns.values())
                parts["scores"] = parts["scores"] + how_many * (1 + 2 * passed) * scored
                forward = forward + scored
            parts["recomputed"] = parts["recomputed"] + how_many * (forward + adapters)
        if not tuning.reentrant:
            spared = T * _last_product(layer, h, tuning)
            parts["recomputed"] = parts["recomputed"] - how_many * spared
    if recompute == "none":
        parts["recomputed"] = 0
    V = model.vocab_size
    parts["head"] = 2 * T * h * V * (2 + full)
    if HEAD in tuning.targets:
        parts["adapters"] = parts["adapters"] + 6 * T * r * (h + V)
    return TunedFlops(**parts)


def _last_product(layer: Layer, hidden_size: Size, tuning: Tuning) -> Size:
    """FLOPs per token of a layer's last product, which recomputation skips if it stops early.

    It's the down projection, or the second half of its adapter. Experts' outputs are weighted,
    so backward needs them, and nothing is skipped unless a shared expert comes last.
    """
    part = layer.mlp or layer.mixers[-1]
    name = "down" if layer.mlp else "output"
    if isinstance(part, Experts):
        if part.shared is None or part.shared_gate:
            return 0
        name = "shared_down"
    [site] = [x for x in sites(part, hidden_size, tuning) if x.matrix.name == name]
    m = site.matrix
    return 2 * (tuning.rank * m.columns if site.adapted else m.weights)


# --- activations


@dataclass(frozen=True)
class TunedActivations(ActivationCount):
    """Bytes stored for backward in tuning: as in `ActivationCount`, plus the `adapters`'.

    Each stores its first half's result and, with dropout or another type, a copy of its
    input. `head` doesn't include logits: see `LOSS_KERNELS`.
    """

    adapters: Result


@cache_per_model
@checked
def tuned_activations(
    model: Transformer,
    tuning: Tuning,
    micro_batch_size: Count[Number],
    recompute: TunedRecompute = "none",
    sequence_length: Count[Number] | None = None,
    *,
    attention: Kernel = "flash",
    mask_bytes: Whole[Number] = 1,
    tensor_parallel: Count[Number] = 1,
    sequence_parallel: bool = False,
) -> TunedActivations:
    """Count the bytes that a model stores for backward when it's tuned.

    If all weights learn, a Llama layer stores 20h + 4kd + 8f + 4a per token: 8h in fp32 for
    its two norms and 4h for their own weights, 4h for the inputs of matrices, queries, keys,
    values and the result, and 4× the MLP's inner size. A frozen matrix doesn't need its
    input and a frozen norm needs 2h less: adapters on queries and values store 14h + 4kd +
    6f + 4a. An adapter stores 2r, and a copy of its input (2m; 4m in 32 bits without
    `autocast`) if it's in 32 bits or has dropout, which also adds a mask of `mask_bytes`
    each. With dropout on all matrices, that's more than full training. `fused` norms store
    2h, and a fused activation 2f less. The first layer with adapters stores less.
    Recomputed layers store `stream_bytes` times h. Includes the flash kernel's 4 bytes per
    head, the norms' 4 per token, and the experts that a token uses. Leaves out rotary
    tables and the router. Eager attention stores 6as more, and repeated keys and values,
    as in `count_activations`, where tensor parallelism splits the same values.

    Source: counted with autograd on Hugging Face's Llama, transformers 5.23.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=4096)
    >>> tunings = Tuning.full(), Tuning.lora(16), Tuning.lora(16, dropout=0.05)
    >>> for tuning in tunings:
    ...     print(f"{tuned_activations(llama, tuning, 1).layers / 1e9:.1f} GB")
    26.3 GB
    28.4 GB
    33.5 GB
    """
    model = of_length(model, sequence_length)
    check_tuned(model)
    b, mask, t = as_sizes(micro_batch_size, mask_bytes, tensor_parallel)
    broadcast(micro_batch_size=b, mask_bytes=mask, tensor_parallel=t, **model.numbers())
    T, h = b * model.sequence_length, model.hidden_size
    outside = tokens_outside(model, b, t, sequence_parallel)
    how = keeping(tuning, attention, mask)
    layers = tuned_layers(model, tuning, recompute)
    parts = kept_bytes(model, layers, how, recompute, T, outside, t)
    if HEAD in tuning.targets:
        own, copy = own_copies(tuning)
        of_input = own * (copy + mask * (tuning.dropout > 0)) * h
        parts["adapters"] = parts["adapters"] + outside * (of_input + tuning.rank * copy)
    # The head's input isn't freed in any case, because the calling code holds it.
    last_norm = how.norm(model.final_norm, h) if model.final_norm else 0
    return TunedActivations(**parts, embedding=0, head=outside * (last_norm + 2 * h))


def keeping(tuning: Tuning, attention: Kernel = "flash", mask_bytes: Size = 1) -> Keeping:
    """Return how transformers and PEFT store a layer's values.

    A plain RMSNorm stores its input in 32 bits, and its result if its weights learn.
    """
    return Keeping(
        stream=tuning.stream_bytes or 2,
        kernel=attention,
        fused_mlp=tuning.fused,
        mask=mask_bytes,
        plain_norm=0 if tuning.fused else 4 + 2 * tuning.is_full,
        statistics=True,
        tuning=tuning,
    )


# --- memory


@checked
def weight_bytes(tuning: Tuning) -> dict[str, float]:
    """Bytes of one weight of a layer's matrix during a tuning step, part by part.

    If it learns, it has a gradient and optimizer states (with a main weight if the recipe
    has one); if it's frozen, it has neither.

    >>> weight_bytes(Tuning.full()), weight_bytes(Tuning.lora(16))
    ({'weights': 4, 'gradients': 4, 'optimizer': 8}, {'weights': 2})
    """
    if not tuning.is_full:
        return {"weights": tuning.matrix_bytes}
    each = tuning.bytes_of
    return {
        "weights": each.weights,
        "gradients": each.gradients + each.main_gradients,
        "optimizer": tuning.optimizer_bytes,
    }


@cache_per_model
@checked
def tuned_phases(
    model: Transformer,
    tuning: Tuning,
    micro_batch_size: Count[Number],
    recompute: TunedRecompute,
    sequence_length: Count[Number] | None = None,
    *,
    accumulation_steps: Count[Number] = 1,
    zero_stage: Whole[int] = 0,
    data_parallel: Count[Number] = 1,
    attention: Kernel = "flash",
    offload: Offload = "none",
    tensor_parallel: Count[Number] = 1,
    sequence_parallel: bool = False,
) -> tuple[Memory, ...]:
    """Bytes on a GPU at the four moments of a step, one of which is the peak.

    At the `loss`: all activations and the logits (`LOSS_KERNELS`). At the `last layer`, where
    backward begins: the activations and that layer at work, with its recomputed values and
    its MLP's gradients. At the `first layer`, where it ends: one layer and all gradients. At
    the `update`: the gradients and a copy of everything that learns (see `STATES`). With
    several `accumulation_steps`, gradients are always in memory. 4-bit weights are unpacked
    one matrix at a time. With ZeRO over d replicas, each has its share of what the stage
    shards; stage 3 gathers two layers for backward, with one's gradients if they learn, and
    has embedding and head whole; 32-bit adapters make the stream between layers 32 bits wide
    there (inferred from IBM's rows, on 2 and 4 GPUs). Each of t tensor-parallel GPUs has a
    t-th of all that, except whole norms, half of each adapter (`tuned_parameters`) and, without
    `sequence_parallel`, a layer's inputs; nobody has measured this. Offloaded data (`Offload`)
    isn't included; with "weights" that includes frozen ones, even gathered on a single GPU.

    Source: counted with PyTorch (states, logits, activations); the MLP's gradients follow
    from its products.

    >>> mistral = Transformer.llama(32, 4096, 32, 8, 14336, 32000, sequence_length=4096)
    >>> for memory in tuned_phases(mistral, Tuning.full("pure_bf16"), 4, "full"):
    ...     print(f"{memory.moment}: {memory.total / 1e9:.1f} GB")  # measured: 72.4
    loss: 55.6 GB
    last layer: 52.8 GB
    first layer: 62.2 GB
    update: 72.4 GB
    """
    model = of_length(model, sequence_length)
    check_offload(offload, zero_stage, tuning.optimizer, tuning.bytes_of)
    how = accumulation_steps, zero_stage, data_parallel, attention, offload
    split = tensor_parallel, sequence_parallel
    stored, at_work = tuned_stored(model, tuning, micro_batch_size, recompute, *how, *split)
    return stored.offloaded(offload, zero_stage, at_work).moments()


@cache_per_model
def tuned_stored(
    model: Transformer,
    tuning: Tuning,
    micro_batch_size: Number,
    recompute: TunedRecompute,
    accumulation_steps: Number,
    zero_stage: int,
    data_parallel: Number,
    attention: Kernel = "flash",
    offload: Offload = "none",
    tensor_parallel: Number = 1,
    sequence_parallel: bool = False,
) -> tuple[Stored, Result]:
    """Return the data of a GPU in tuning, stored and gathered, and a layer's gradients."""
    b, d, m, t = as_sizes(micro_batch_size, data_parallel, accumulation_steps, tensor_parallel)
    P = tuned_parameters(model, tuning, t)
    stage = zero_stage
    at_most("zero_stage", stage, "ZeRO's last stage", 3)
    sizes = {"micro_batch_size": b, "data_parallel": d, "accumulation_steps": m}
    broadcast(**sizes, tensor_parallel=t, **model.numbers())
    if stage == 3 and not tuning.is_full and tuning.adapter_bytes == 4 and anywhere(d > 1):
        tuning = tuning.replace(stream_bytes=4)
    saved = tuned_activations(
        model,
        tuning,
        b,
        recompute,
        attention=attention,
        tensor_parallel=t,
        sequence_parallel=sequence_parallel,
    )
    outside = tokens_outside(model, b, t, sequence_parallel)
    T, V, h, full = b * model.sequence_length, model.vocab_size, model.hidden_size, tuning.is_full
    each, n = tuning.bytes_of, P.learning

    def shared(size: Result, since: int) -> Result:
        """Divide a size by the replicas if ZeRO shards it from this stage on."""
        return divide(size, d if stage >= since else 1)

    matrices = [x for layer in model.kinds for x in layer.matrices(h)]
    largest = greatest(-(-x.weights // t) for x in matrices)
    of_head = -(-h * V // t)
    widest = maximum(largest, of_head) if full else largest
    whole = gradients_at_once(tuning.optimizer, n, widest)

    # The values of a recomputed layer, and those that its gradients pass through.
    how, inside = keeping(tuning, attention), divide(T, t)
    at_work = (_worked_on(model, x, how, recompute) for x in model.kinds)
    working = greatest(outside * whole + inside * split for whole, split in at_work)
    working = working + (tuning.method == "qlora") * 2 * largest
    outer: Result = 0 * d
    around = outer
    ends = embedding_parameters(model) + (not model.tied_embeddings) * head_parameters(model)
    a_layer = greatest(map(matrix_weights(model), model.kinds))
    several = (stage == 3) * ((d > 1) | (offload == "weights"))
    if stage == 3:
        each_gathered = 2 * minimum(tuning.matrix_bytes, 2) + 2 * full
        outer = several * (2 + 2 * full) * divide(ends, t)
        around = several * each_gathered * divide(a_layer, t)
    at_once = divide(ends + a_layer, t) if full else divide(n, model.num_layers)
    frozen = tuning.matrix_bytes * P.frozen + tuning.other_bytes * P.wide
    stored = Stored(
        weights=shared(frozen + each.weights * n, 3),
        gradients=shared(each.gradients * whole, 2),
        main_gradients=shared(each.main_gradients * n, 1),
        main_weights=shared(each.main_weights * n, 1),
        optimizer=shared(tuning.optimizer_bytes * n, 1),
        earlier=where(m > 1, 1, 0),
        of_head=minimum(full * of_head, whole),
        of_all=whole,
        others=0,
        layers=saved.total,  # including the head's, because the calling code holds its input
        layer=divide(saved.layers, model.num_layers) if recompute == "none" else 0,
        head=0,
        logits=LOSS_KERNELS[tuning.loss_kernel] * divide(V * T, t),
        working=working,
        ends=outer,
        gathered=around,
        copy=shared(copied_bytes(tuning.optimizer, each.weights, each.main_weights) * n, 1),
    )
    return stored, (1 - several) * each.gradients * at_once


@checked
def tuned_memory(
    model: Transformer,
    tuning: Tuning,
    micro_batch_size: Count[float],
    recompute: TunedRecompute,
    sequence_length: Count[float] | None = None,
    *,
    accumulation_steps: Count[float] = 1,
    zero_stage: Whole[int] = 0,
    data_parallel: Count[float] = 1,
    attention: Kernel = "flash",
    offload: Offload = "none",
    tensor_parallel: Count[float] = 1,
    sequence_parallel: bool = False,
) -> Memory:
    """Bytes on a GPU at the peak of a tuning step: the largest of `tuned_phases`.

    Takes single numbers; arguments and errors as there. The allocator, the driver and the
    collectives need more on top.

    >>> mistral = Transformer.llama(32, 4096, 32, 8, 14336, 32000, sequence_length=4096)
    >>> peak = tuned_memory(mistral, Tuning.lora(16, "attention"), 4, "full")
    >>> f"{peak.total / 1e9:.1f} GB, measured 26.7, at the {peak.moment}"
    '26.7 GB, measured 26.7, at the loss'
    """
    model = of_length(model, sequence_length)
    if any(is_array(value) for value in model.numbers().values()):
        refuse("model", model, "is a sweep of shapes: here it must be one shape")
    phases = tuned_phases(
        model,
        tuning,
        micro_batch_size,
        recompute,
        accumulation_steps=accumulation_steps,
        zero_stage=zero_stage,
        data_parallel=data_parallel,
        attention=attention,
        offload=offload,
        tensor_parallel=tensor_parallel,
        sequence_parallel=sequence_parallel,
    )
    return fullest(phases)


def _worked_on(model: Transformer, layer: Layer, how: Keeping, recompute: str) -> tuple[Size, Size]:
    """Bytes per token of a layer at work in backward: recomputed values, its MLP's gradients.

    First those that tensor parallelism doesn't split, then those that it does.
    """
    again = [*kept(model, layer, how)] if recompute == "full" else []
    gradients = 2 * mlp_gradients(layer, model.hidden_size)
    return sum(x.whole for x in again), sum(x.split for x in again) + gradients


# --- practical questions


@checked
def tuning_tokens(
    examples: Count[Exact | Array],
    tokens_each: Count[Exact | Array],
    epochs: Quantity[Exact | Array] = 1,
    padded_to: Count[Exact | Array] | None = None,
) -> Exact | Array:
    """Tokens that a model processes in tuning: examples · tokens · epochs.

    If sequences are packed, they're full, and `tokens_each` is the mean length of an example.
    Otherwise each is padded to `padded_to`, and the model processes padding like tokens.
    Epochs can be fractional. Raises ValueError for a length below the mean.

    >>> tuning_tokens(30_000, 800, epochs=3), tuning_tokens(30_000, 800, 3, padded_to=2048)
    (72000000, 184320000)
    """
    length = tokens_each if padded_to is None else padded_to
    at_most("tokens_each", tokens_each, "padded_to", length)
    return examples * length * epochs


@checked
def longest_sequence(
    model: Transformer,
    tuning: Tuning,
    memory: Quantity[float],
    recompute: TunedRecompute,
    reserve: Amount[float] = 0,
    micro_batch_size: Count[float] = 1,
    zero_stage: Whole[int] = 0,
    data_parallel: Count[float] = 1,
    offload: Offload = "none",
    tensor_parallel: Count[float] = 1,
    sequence_parallel: bool = False,
) -> int:
    """Find the longest sequence with which tuning fits in a GPU's memory, minus a reserve.

    Ignores the model's own longest sequence, but returns at most 2**30; a multiple of
    `tensor_parallel` with `sequence_parallel`. Takes single numbers. Raises ValueError if not
    even one token fits. Otherwise like `tuned_memory`.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> prepared, card = Tuning.qlora(32, wide_bytes=4), 24 * 2**30
    >>> longest_sequence(llama, prepared, card, "full", reserve=2e9)  # measured: 5,789
    6380
    >>> longest_sequence(llama, prepared.replace(loss_kernel="fused"), card, "full", reserve=2e9)
    18014
    """
    check_tuned(model)
    free = replace(model, num_positions=0) if model.num_positions else model
    step = single("tensor_parallel", tensor_parallel) if sequence_parallel else 1

    def fits(steps: int) -> bool:
        peak = tuned_memory(
            free,
            tuning,
            micro_batch_size,
            recompute,
            steps * step,
            zero_stage=zero_stage,
            data_parallel=data_parallel,
            offload=offload,
            tensor_parallel=tensor_parallel,
            sequence_parallel=sequence_parallel,
        )
        return bool(peak.total <= memory - reserve)

    if not fits(1):
        refuse("memory", memory, "is too small for the model and one token")
    return int(largest_batch(fits, limit=2**30 // step)) * step


# --- LoRA at a glance

MATRICES = ("query", "key", "value", "output", "mlp")
"""The matrices that LoRA can adapt."""


@checked
def lora_parameters(
    model: Transformer, rank: Count[Number] = 8, targets: Collection[str] = ("query", "value")
) -> Size:
    """Count the parameters that LoRA trains: r(m + n) per adapted matrix of m by n.

    `targets` are from `MATRICES`. Raises ValueError for unknown or empty targets, for layers
    other than plain attention and MLP, and for a rank above that of all these matrices.

    Source: arXiv 2106.09685, section 4; litgpt prints the doctest's number.

    >>> llama = Transformer.llama(32, 4096, 32, 32, 11008, 32000, sequence_length=1304)
    >>> lora_parameters(llama)
    4194304
    """
    [r] = as_sizes(rank)
    h, adapted = model.hidden_size, _targets(targets)
    broadcast(rank=r, **model.numbers())

    def sides(layer: Layer) -> list[tuple[Size, Size]]:
        """Return rows and columns of each adapted matrix of a layer."""
        mixer, mlp = _attention_and_mlp(layer)
        matrices = [mixer.matrix(name, h) for name in adapted if name != "mlp"]
        matrices += mlp.matrices(h) if "mlp" in adapted else ()
        return [(matrix.rows, matrix.columns) for matrix in matrices]

    check_rank(r, [both for layer in model.kinds for both in sides(layer)])
    return r * over_layers(model, lambda layer: sum(map(sum, sides(layer))))


def _targets(targets: object) -> list[str]:
    if not isinstance(targets, (list, tuple, set, frozenset)):
        refuse("targets", targets, f"isn't a list of matrices out of {', '.join(MATRICES)}")
    names = [choice("targets", name, MATRICES) for name in targets]
    return names or refuse("targets", targets, "is empty")


def _attention_and_mlp(layer: Layer) -> tuple[Attention, Mlp]:
    """Return both parts of a plain layer; refuse a layer with other parts."""
    mixer, mlp = layer.mixer, layer.mlp
    if not isinstance(mixer, Attention) or not isinstance(mlp, Mlp) or layer.beside:
        refuse("model", layer, "has layers other than attention with a plain MLP")
    return mixer, mlp


@dataclass(frozen=True)
class LoraMemory(Breakdown[Result]):
    """Bytes at the peak of a LoRA fine-tuning step, part by part.

    Frozen weights; adapters with all their states; `activations`, which backward needs;
    `logits`, two tensors of them at the loss.
    """

    weights: Result
    adapters: Result
    activations: Result
    logits: Result


@checked
def lora_memory(
    model: Transformer,
    micro_batch_size: Count[Number],
    rank: Count[Number] = 8,
    targets: Collection[str] = ("query", "value"),
    *,
    weight_bytes: Quantity[Number] = 2,
    recipe: RecipeName | Recipe = "pure_bf16",
    sequence_length: Count[Number] | None = None,
) -> LoraMemory:
    """Count the bytes of LoRA fine-tuning on one GPU, part by part.

    Frozen weights have neither gradients nor states, and a frozen matrix doesn't need its
    input for backward. Compared with full training, a layer drops 2sbh + 2sbf if the MLP
    is frozen, and 2sbh if queries, keys and values are. The rest is still needed, because
    the gradient passes through every layer. Embedding and head use 16 bits even if
    `weight_bytes` is less (0.5625 for 4-bit NF4 with one 32-bit factor per 64). Measured
    16-bit peaks were 3 to 17% higher (litgpt); `tuned_memory` is more accurate because it
    includes dropout, the adapters' type, plain norms and the loss kernel.

    >>> llama = Transformer.llama(32, 4096, 32, 32, 11008, 32000, sequence_length=1304)
    >>> peak = lora_memory(llama, micro_batch_size=1)
    >>> f"{peak.total / 1e9:.1f} GB, measured 21.3"
    '19.2 GB, measured 21.3'
    """
    model = of_length(model, sequence_length)
    adapted, bytes_each = _targets(targets), known_recipe(recipe).total
    [b] = as_sizes(micro_batch_size)
    [w] = as_results(weight_bytes)
    broadcast(micro_batch_size=b, weight_bytes=w, rank=rank, **model.numbers())
    h, tokens = model.hidden_size, b * model.sequence_length
    reads_frozen = not {"query", "key", "value"} & {*adapted}

    def dropped(layer: Layer) -> Size:
        """Count the values per token that backward would only need for frozen matrices."""
        _, mlp = _attention_and_mlp(layer)
        return reads_frozen * h + ("mlp" not in adapted) * (h + mlp.intermediate_size)

    P = count_parameters(model)
    outer = P.embedding + P.head
    full = count_activations(model, b)
    return LoraMemory(
        weights=w * (P.total - outer) + 2 * outer,
        adapters=bytes_each * lora_parameters(model, rank, adapted),
        activations=full.layers + full.head - 2 * tokens * over_layers(model, dropped),
        logits=8 * tokens * model.vocab_size,
    )
