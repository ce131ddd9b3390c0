"""Chapter 06: what a step stores in memory. Goes with notebooks/06_activations.ipynb.

Sources: Korthikanti et al. (arXiv 2205.05198), section 4 and Table 2, for the bytes of
a GPT's layers; Dao et al. (arXiv 2205.14135) for flash attention; Chen et al. (arXiv
1604.06174) for recomputation. The forms for Llama shapes were counted with autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from llmtrain_helpers.checks import (
    Array,
    Count,
    Exact,
    Number,
    Result,
    Size,
    as_sizes,
    at_most,
    broadcast,
    cache_per_model,
    checked,
    divides,
    refuse,
    single,
)
from llmtrain_helpers.flops import EveryRecompute, Recompute, count_flops
from llmtrain_helpers.memory import (
    LOSS_KERNELS,
    MOMENTS,
    Memory,
    Stored,
    widest_gradients,
    working_bytes,
)
from llmtrain_helpers.model.layers import Attention, Experts, LatentAttention, Layer, Mixer, Part
from llmtrain_helpers.model.transformer import Transformer, of_length
from llmtrain_helpers.parameters import count_parameters, head_parameters, norm_parameters
from llmtrain_helpers.precision import Recipe, RecipeName, known_recipe, model_state_bytes
from llmtrain_helpers.results import Breakdown, divide, where
from llmtrain_helpers.tuning import Site, Tuning, flows_into, needs_input, own_copies, sites

Kernel: TypeAlias = Literal["unfused", "flash", "eager"]
"""How attention is computed: storing its s² scores, not storing them, or also in 32 bits.

`unfused` is Megatron's, and `eager` is Hugging Face's, which also repeats keys and values for
each query head."""

KERNELS: list[Kernel] = [*get_args(Kernel)]


@checked
def gpt_activation_bytes(
    num_layers: Count[Exact | Array],
    hidden_size: Count[Exact | Array],
    num_heads: Count[Exact | Array],
    sequence_length: Count[Exact | Array],
    micro_batch_size: Count[Exact | Array],
    recompute: Recompute = "none",
    tensor_parallel: Count[Exact | Array] = 1,
    sequence_parallel: bool = False,
) -> Exact | Array:
    """Bytes that a GPT's layers store for backward on each GPU, by the published formulas.

    none:      sbhl(34 + 5as/h), with t GPUs sbhl(10 + 24/t + 5as/(ht))
    selective: 34sbhl,           with t GPUs sbhl(10 + 24/t)
    full:      2sbhl
    Sequence parallelism divides the 10 by t too, while full is still 2sbhl, as in the paper
    (`count_activations` splits it, as frameworks do if the sequence is split).

    Takes l layers, hidden size h, a heads, s tokens, b sequences at once on a GPU;
    whole numbers, or arrays that broadcast. Values use 2 bytes and dropout masks 1, and
    there's no flash attention. Returns bytes, exact with ints. Raises ValueError for a
    split that doesn't divide the heads, or the sequence if that's split too.

    Source: arXiv 2205.05198, equations 1 to 6 and Table 2.

    >>> gpt_activation_bytes(96, 12288, 96, 2048, micro_batch_size=1) / 1e9  # GPT-3
    275.414777856
    """
    l, h, a, s, b = num_layers, hidden_size, num_heads, sequence_length, micro_batch_size
    t = tensor_parallel
    divides("hidden_size", h, "num_heads", a)
    divides("num_heads", a, "tensor_parallel", t)
    along = _sequence_ways(sequence_parallel, s, t)
    if recompute == "full":
        return 2 * s * b * h * l
    scores = 5 * a * b * s**2 * l if recompute == "none" else 0
    total = divide(10 * s * b * h * l, along) + divide(24 * s * b * h * l + scores, t)
    exact: Exact | Array = cast(Any, total)  # t divides the heads, and so the hidden size
    return exact


def check_alternate(layer: Layer) -> None:
    """Refuse a layer with a recurrence, because nobody knows which of its products are stored."""
    for mixer in layer.mixers:
        if not isinstance(mixer, (Attention, LatentAttention)):
            refuse("recompute", "alternate", "is only counted for attention, plain and latent")


@dataclass(frozen=True)
class ActivationCount(Breakdown[Result]):
    """Bytes stored for backward, part by part.

    `norms` are the inputs of the layers' norms; `attention` and `mlp` are stored by their
    matrix products, activation functions and dropouts; `scores` are the s² part of unfused
    attention; `checkpoints` are the inputs of recomputed layers; `embedding` is its
    dropout mask; `head` includes the last norm, the input of the output matrix, and the
    fp32 log-probabilities that the loss is computed from.
    """

    norms: Result
    attention: Result
    scores: Result
    mlp: Result
    checkpoints: Result
    embedding: Result
    head: Result

    @property
    def layers(self) -> Result:
        """The bytes of the layers: everything except embedding and head."""
        return self.total - self.embedding - self.head


@cache_per_model
@checked
def count_activations(
    model: Transformer,
    micro_batch_size: Count[Number],
    recompute: EveryRecompute = "none",
    attention: Kernel = "flash",
    dropout: bool = False,
    sequence_length: Count[Number] | None = None,
    *,
    fused_mlp: bool = False,
    tensor_parallel: Count[Number] = 1,
    sequence_parallel: bool = False,
    expert_parallel: Count[Number] = 1,
    value_bytes: Count[Number] = 2,
) -> ActivationCount:
    """Count the bytes that any `Transformer` stores for backward, part by part.

    A GPT layer stores 32sbh, a Llama layer sb(8h + 4ad + 4kd + 8f) with a query and k
    key-value heads of size d (times the chosen experts, 8f). Norms on queries and keys
    add 2sb(a + k)d; a gated MLP computed in one kernel (`fused_mlp`) stores 6f instead
    of 8f, because backward multiplies the gate again; "unfused" attention adds 2abs²,
    and 5abs² with dropout; "eager" attention 6abs² and 7abs², and 4sb(a − k)d for keys and
    values that are repeated for each query head; dropout adds 2sbh of masks per layer, and
    sbh at the embedding. The head stores 4sbh + 4sbV.
    Latent attention stores 2(2q + 2c + r) for q and c compressed numbers and a rotary key
    of r, plus 2a(2d + 2v) with heads of d and values of v; a shared expert stores as
    much as an MLP of its size. Selective recomputation drops the s² part, full stores
    only each layer's input, 2sbh. "alternate" also stores the outputs of attention and of
    every other product, like torchtitan's selective option, but none of the experts'. If
    `expert_parallel` spreads the experts, both also store 4sbh per chosen expert: its
    input as sent and its output as returned.
    With t-way tensor parallelism, each GPU stores a t-th of everything between a layer's
    two matrix products; with sequence parallelism, a t-th of everything, checkpoints too.

    Values use `value_bytes`, masks 1 byte, log-probabilities 4. We leave out the norms'
    statistics (a few sb per layer), flash attention's (4abs per layer), the router, and
    the sorted copies for experts. Returns an `ActivationCount` in bytes.

    Source: arXiv 2205.05198 section 4; Llama shapes and eager attention as counted with autograd.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> count = count_activations(llama, micro_batch_size=1)
    >>> count.layers / 1e9, count.head / 1e9
    (44.023414784, 4.336910336)
    """
    model = of_length(model, sequence_length)
    b, t, v, e = as_sizes(micro_batch_size, tensor_parallel, value_bytes, expert_parallel)
    sizes = {"micro_batch_size": b, "tensor_parallel": t, "value_bytes": v, "expert_parallel": e}
    broadcast(**sizes, **model.numbers())
    h, s = model.hidden_size, model.sequence_length
    outside = tokens_outside(model, b, t, sequence_parallel)
    how = Keeping(v, v, attention, dropout, fused_mlp, spread=where(e > 1, 1, 0))
    layers = ((how_many, layer, True) for how_many, layer in model.layers)
    parts = kept_bytes(model, layers, how, recompute, b * s, outside, t)
    del parts["adapters"]
    return ActivationCount(
        **parts,
        embedding=dropout * h * outside,
        head=2 * v * h * outside + divide(4 * b * s * model.vocab_size, t),
    )


# --- what a layer stores

ALL_LEARNS = Tuning.full()


@dataclass(frozen=True)
class Keeping:
    """How values are stored: everything that a layer's bytes depend on besides its shape.

    `value` is the bytes of a value between matrices, `stream` of one between layers. With
    `dropout`, the outputs of a mixer and an MLP have a mask of `mask` bytes each, like scores.
    An RMSNorm of plain operations stores `plain_norm` bytes per width (0: the norm is one
    operation, which stores its input). `statistics` says whether those of norms and flash
    attention count, `spread` (0 or 1) whether experts are on other GPUs, `tuning` what learns.
    """

    value: Size = 2
    stream: Size = 2
    kernel: Kernel = "flash"
    dropout: bool = False
    fused_mlp: bool = False
    mask: Size = 1
    plain_norm: int = 0
    statistics: bool = False
    spread: Size = 0
    tuning: Tuning = ALL_LEARNS

    def norm(self, numbers: int, width: Size) -> Size:
        """Bytes per token of a norm with this many parameters per value.

        If it uses plain operations and has no parameters, its input is in 32 bits (OLMo's).
        """
        plain = {0: 4, 1: self.plain_norm}.get(numbers, 0) * (self.plain_norm > 0)
        return (plain or self.stream) * width + self.statistics * (4 if numbers == 1 else 8)

    def sent(self, part: Part | None, h: Size) -> Size:
        """Bytes per token sent to experts on other GPUs, and returned from them."""
        chosen = part.experts_per_token if isinstance(part, Experts) else 0
        return self.spread * 2 * chosen * self.value * h

    def score(self) -> Size:
        """Bytes of a score: its softmax, and with dropout also the mask and the result.

        Eager attention computes its softmax in 32 bits and multiplies the result of a cast.
        """
        v, dropped = self.value, int(self.dropout)
        if self.kernel == "eager":
            return 4 + dropped * self.mask + ((v < 4) | self.dropout) * v
        return (self.kernel == "unfused") * (v + dropped * (self.mask + v))


class Kept(NamedTuple):
    """Bytes per token that a layer stores, and the part of the count that they belong to.

    Each GPU of a tensor-parallel group stores its share of everything `split` for all tokens,
    and everything `whole`, for all tokens or for its share of them.
    """

    part: str
    whole: Size
    split: Size = 0


_LAYER_PARTS = ("norms", "attention", "scores", "mlp", "checkpoints", "adapters")


def kept_bytes(
    model: Transformer,
    layers: Iterable[tuple[Size, Layer, bool]],
    how: Keeping,
    recompute: EveryRecompute,
    tokens: Size,
    outside: Size,
    tensor_parallel: Size = 1,
) -> dict[str, Result]:
    """Bytes that a GPU stores for its layers: how many of each, and whether anything below learns.

    `tokens` counts those between a layer's matrices, `outside` those of anything not split.
    """
    parts: dict[str, Result] = dict.fromkeys(_LAYER_PARTS, 0)
    for how_many, layer, flows in layers:
        for part, whole, split in kept(model, layer, how, recompute, flows):
            here = divide(tokens * split, tensor_parallel) + outside * whole
            parts[part] = parts[part] + how_many * here
    return parts | ({"scores": 0} if recompute == "selective" else {})


def kept(
    model: Transformer,
    layer: Layer,
    how: Keeping,
    recompute: EveryRecompute = "none",
    flows: bool = True,
) -> Iterator[Kept]:
    """List what a layer stores for backward; `flows` says whether anything below it learns.

    Scores are listed even with "selective", under their own name.
    """
    h, arrived, has_input = model.hidden_size, list[bool](), False
    if recompute in ("full", "alternate"):
        yield Kept("checkpoints", how.stream * h)
        yield from _every_other(layer, h, how) if recompute == "alternate" else ()
        return
    for part, arrives in flows_into(layer, h, how.tuning, flows):
        is_mixer = isinstance(part, Mixer)
        name = "attention" if is_mixer else "mlp"
        ways = () if how.tuning.is_full else sites(part, h, how.tuning)
        # Mixers have the same input, and so does the MLP in a parallel layer with one norm.
        same = has_input and (is_mixer or (layer.parallel and layer.norms < 2))
        reads = how.tuning.is_full or any(needs_input(x, how.tuning) for x in ways if not x.before)
        yield Kept(name, how.value * h * (reads and not same))
        yield Kept(name, how.dropout * how.mask * h * (not (is_mixer and arrived)))
        yield from _inside(part, name, ways, h, model.sequence_length, how, arrives)
        yield Kept(name, 0, how.sent(part, h))
        arrived.append(arrives)
        has_input = has_input or reads
    if layer.norms:  # the first one reads what flows into the layer
        norms = arrived[0] + (layer.norms - 1) * arrived[-1]
        yield Kept("norms", norms * how.norm(layer.norm_size, h))


def _every_other(layer: Layer, h: Size, how: Keeping) -> Iterator[Kept]:
    """List the outputs of attention and of every other product, and what was sent."""
    check_alternate(layer)
    for matrix in layer.every_other(h)[0]:
        values = how.value * matrix.columns
        squeezed = matrix.name in ("query_down", "key_value_down")
        yield Kept("checkpoints", values, 0) if squeezed else Kept("checkpoints", 0, values)
    for mixer in layer.mixers:
        yield Kept("checkpoints", 0, how.value * mixer.matrix("output", h).rows)
    yield Kept("checkpoints", 0, how.sent(layer.mlp, h))


def _inside(
    part: Part, name: str, ways: Sequence[Site], h: Size, s: Size, how: Keeping, arrives: bool
) -> Iterator[Kept]:
    """List what a mixer or an MLP stores between its matrices, and what its adapters store."""
    v, tuning = how.value, how.tuning
    flash, eager = how.kernel == "flash", how.kernel == "eager"
    own, copy = own_copies(tuning)
    last = [x for x in ways if x.before and x.matrix.name.endswith(("output", "down"))]
    if arrives or any(x.adapted for x in ways if x not in last):
        # A gradient passes through everything between the matrices, so all operations need it.
        whole, split = part.activations(h, how.fused_mlp)
        yield Kept(name, v * whole, v * split)
        yield Kept("scores", 0, how.score() * part.score_heads() * s)
        yield Kept(name, 0, flash * how.statistics * 4 * part.score_heads())
        yield Kept(name, 0, eager * v * part.repeated())
        # The norms' inputs are among these values; with plain operations they store more.
        whole, split = (max(how.plain_norm - 2, 0) * width for width in part.norm_inputs())
        yield Kept(name, whole, split)
        # A frozen matrix doesn't need its input, but flash attention does need its output.
        frozen = [x for x in ways if x.before and not needs_input(x, tuning)]
        split = sum(x.width for x in frozen if x in last and not (flash and name == "attention"))
        yield Kept(name, -v * sum(x.width for x in frozen if x not in last), -v * split)
    elif not own:
        yield Kept(name, 0, v * sum(x.width * x.adapted for x in last))
    for x in ways:
        if x.adapted:
            passed = arrives or any(y.adapted for y in ways if y.matrix.name in x.before)
            of_input = own * (copy + how.mask * passed * (tuning.dropout > 0)) * x.width
            result = tuning.rank * copy * x.matrix.active
            yield Kept("adapters", result + of_input * (x not in last), of_input * (x in last))


def tokens_outside(model: Transformer, b: Size, t: Size, sequence_parallel: bool) -> Size:
    """Count the tokens that a GPU processes outside a layer's pairs of matrix products.

    Raises ValueError for a split that doesn't divide the heads, or a sequence that's split.
    """
    for layer in model.kinds:
        for mixer in layer.mixers:
            for name, heads in mixer.heads().items():
                divides(name, heads, "tensor_parallel", t)
    s = model.sequence_length
    return b * s // _sequence_ways(sequence_parallel, s, t)


def _sequence_ways(
    sequence_parallel: bool, s: Exact | Array, t: Exact | Array
) -> Exact | Array | int:
    """Count the GPUs that share the tokens outside a layer's pairs of matrix products."""
    if not sequence_parallel:
        return 1
    divides("sequence_length", s, "tensor_parallel", t)
    return t


def recompute_flops(model: Transformer, batch_size: Number, recompute: EveryRecompute) -> Size:
    """FLOPs of an iteration that are recomputed.

    full: 24Bslh² + 4Bs²lh in a GPT, a forward pass through the layers; selective:
    4Bs²lh, the scores; none: 0. (For selective, arXiv 2205.05198, section 5, prints
    12Bs²lh, 3× as much: the core of attention, forward and backward.)

    >>> gpt3 = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> repeated = recompute_flops(gpt3, 1, "selective")
    >>> f"{repeated / count_flops(gpt3, 1, 'none').total:.2%}"
    '0.90%'
    """
    return count_flops(model, batch_size, recompute).recomputed


@dataclass(frozen=True)
class Moment(Breakdown[Result]):
    """The bytes in memory at one moment of a step, part by part.

    `weights` and `gradients` include their fp32 copies; `logits` are two fp32 tensors that
    exist while the loss is differentiated; `working` is what the layer in backward needs on
    top. `step` and `micro_batch` count from 1; `mark` names the moment.
    """

    _not_parts = ("step", "micro_batch", "mark")

    step: int
    micro_batch: int
    mark: str
    weights: Result
    gradients: Result
    optimizer: Result
    activations: Result
    logits: Result
    working: Result = 0


@dataclass(frozen=True)
class Timeline:
    """The moments of some steps, in order.

    `main_weights` bytes of the weights are their fp32 copy, if there is one; `head` bytes
    of the activations belong to the head and arrive at the end of forward.
    """

    moments: tuple[Moment, ...]
    main_weights: Result = field(default=0, compare=False)
    head: Result = field(default=0, compare=False)

    @cached_property
    def peak(self) -> Moment:
        """The first moment with the most bytes in memory."""
        return max(self.moments, key=lambda moment: moment.total)


MARKS = ["start", "forward", *MOMENTS]
"""The moments of a step: before it, after forward, and the four of which one is the peak
(`memory.MOMENTS`). With accumulation, those from forward to the first layer repeat for
each micro-batch."""


@checked
def step_timeline(
    model: Transformer,
    micro_batch_size: Count[int],
    recipe: RecipeName | Recipe,
    recompute: EveryRecompute,
    steps: Count[int] = 2,
    accumulation_steps: Count[int] = 1,
    attention: Kernel = "flash",
    dropout: bool = False,
    sequence_length: Count[int] | None = None,
) -> Timeline:
    """Trace the memory of one GPU through the first steps, part by part.

    Weights are always in memory, Adam's state from the first update on. Activations grow
    through forward and shrink through backward, while gradients grow; gradients are kept
    through all micro-batches and released after the update. The loss adds two tensors of
    4sbV to the activations, which is the peak unless gradients outweigh activations. The
    last layer adds the head's gradients, and with full recomputation that layer again;
    at the first layer all gradients exist. Both also need an MLP's gradients.

    Takes one shape (no arrays), and a `Recipe` or its name in `RECIPES`. A value uses 4
    bytes with the recipe fp32, else 2. Leaves out what an allocator reserves on top.
    Returns a `Timeline` of `Moment`s in bytes, six per step (plus four for each further
    micro-batch).

    Source: measured on PyTorch models, see notebook 12.

    >>> gpt2 = Transformer.gpt(12, 768, 12, 50257, 1024)
    >>> peak = step_timeline(gpt2, 8, "bf16", recompute="none").peak
    >>> peak.step, peak.mark, round(peak.total / 1e9, 2)
    (2, 'loss', 9.12)
    """
    model = of_length(model, sequence_length)
    s = single("sequence_length", model.sequence_length)
    P = single("parameters of the model", count_parameters(model).total)
    b, k = micro_batch_size, accumulation_steps
    at_most("steps·accumulation_steps", steps * k, "what a timeline shows", 10_000)
    v = value_bytes(recipe)

    def count_with(model: Transformer, recompute: EveryRecompute) -> ActivationCount:
        return count_activations(model, b, recompute, attention, dropout, value_bytes=v)

    def dropped(model: Transformer) -> Result:
        """Count what the layers don't store, so backward recomputes it one layer at a time."""
        return count_with(model, "none").layers - count_with(model, recompute).layers

    A, states = count_with(model, recompute), model_state_bytes(P, recipe)
    again, at_once = largest_layer(model, dropped), b * s * v * widest_gradients(model)
    stored = Stored(
        **states.parts(),
        earlier=0,
        of_head=head_parameters(model) + norm_parameters(model),
        of_all=P,
        others=0,
        layers=A.layers + A.embedding,
        layer=largest_layer(model, lambda model: count_with(model, recompute).layers),
        head=A.head,
        logits=(LOSS_KERNELS["plain"] - 4) * b * s * model.vocab_size,
        working=working_bytes(recompute, again, at_once),
    )
    # A recomputed layer has its activations; recomputed scores come and go inside it.
    whole_again = 0 if recompute == "selective" else again
    weights, moments = states.weights + states.main_weights, []
    for step in range(1, steps + 1):
        adam = states.optimizer if step > 1 else 0  # its state comes with the first update
        moments.append(Moment(step, 1, "start", weights, 0, adam, 0, 0))
        for i in range(1, k + 1):
            # The first pass's gradients stay.
            passing = stored._replace(optimizer=adam, earlier=int(i > 1)).moments()
            earlier = passing[0].gradients + passing[0].main_gradients
            moments.append(Moment(step, i, "forward", weights, earlier, adam, A.total, 0))
            moments.extend(_resident(step, i, memory, whole_again) for memory in passing[:-1])
        moments.append(_resident(step, k, stored.moments()[-1], 0))
    return Timeline(tuple(moments), states.main_weights, A.head)


def _resident(step: int, micro_batch: int, memory: Memory, again: Result) -> Moment:
    """Return one of a step's four moments; recomputed parts of a layer are activations."""
    working = memory.transient - memory.logits
    there = again if working else 0
    return Moment(
        step,
        micro_batch,
        memory.moment,
        memory.weights + memory.main_weights,
        memory.gradients + memory.main_gradients,
        memory.optimizer,
        memory.activations + there,
        memory.logits,
        working - there,
    )


def largest_layer(model: Transformer, of_layers: Callable[[Transformer], Result]) -> Result:
    """Find the bytes of the largest layer, using a function that counts all layers.

    >>> gpt2 = Transformer.gpt(12, 768, 12, 50257, 1024)
    >>> largest_layer(gpt2, lambda model: count_activations(model, 1).layers)
    25165824
    """
    if len(model.layers) == 1:
        return divide(of_layers(model), model.num_layers)
    kinds = model.kinds
    return max(of_layers(replace(model, layers=((1, kind),))) for kind in kinds)


def value_bytes(recipe: RecipeName | Recipe) -> int:
    """Bytes of an activation value: 4 with the recipe fp32, else 2.

    >>> value_bytes("fp32"), value_bytes("amp")
    (4, 2)
    """
    return 4 if known_recipe(recipe).name == "fp32" else 2
