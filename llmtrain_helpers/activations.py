"""Chapter 06: what a step holds in memory. Beside notebooks/06_activations.ipynb.

Sources: Korthikanti et al. (arXiv 2205.05198), section 4 and Table 2, for the bytes of
a GPT's layers; Dao et al. (arXiv 2205.14135) for flash attention; Chen et al. (arXiv
1604.06174) for recomputation. The forms for Llama shapes are counted with autograd.
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
"""How attention is computed: with its s² scores stored as values, without, or in 32 bits too.

`unfused` is Megatron's, `eager` Hugging Face's, which also repeats keys and values for each
query head."""

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
    """Bytes that a GPT's layers keep for backward, on each GPU, by the published forms.

    none:      sbhl(34 + 5as/h), with t GPUs sbhl(10 + 24/t + 5as/(ht))
    selective: 34sbhl,           with t GPUs sbhl(10 + 24/t)
    full:      2sbhl
    Sequence parallelism divides the 10 by t as well; full stays 2sbhl, as in the paper
    (`count_activations` splits it too, as frameworks do where the sequence is split).

    Takes l layers, hidden size h, a heads, s tokens, b sequences at once on a GPU;
    whole numbers, or arrays that broadcast. Values of 2 bytes, dropout masks of 1, and
    no flash attention. Returns bytes: exact with ints. ValueError for a split that does
    not divide the heads, or the sequence where that is split too.

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
    """Refuse a layer with a recurrence: of its products it isn't known which are kept."""
    for mixer in layer.mixers:
        if not isinstance(mixer, (Attention, LatentAttention)):
            refuse("recompute", "alternate", "is counted for attention, plain and latent, only")


@dataclass(frozen=True)
class ActivationCount(Breakdown[Result]):
    """Bytes that are kept for backward, part by part.

    `norms` are the inputs of the layers' norms; `attention` and `mlp` what their matrix
    products, activation functions and dropouts keep; `scores` the s² part of unfused
    attention; `checkpoints` the inputs of layers that are computed again; `embedding`
    its dropout mask; `head` the last norm, the input of the output matrix, and the
    log-probabilities from which the loss is made, in fp32.
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
        """The bytes of the layers: all but embedding and head."""
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
    """Bytes that any `Transformer` keeps for backward, part by part.

    A GPT's layer keeps 32sbh, a Llama's sb(8h + 4ad + 4kd + 8f) with a query and k
    key-value heads of size d (times the chosen experts, 8f). Norms on queries and keys
    add 2sb(a + k)d; a gated MLP that `fused_mlp` computes in one kernel keeps 6f instead
    of 8f (it multiplies the gate once more in backward); "unfused" attention adds 2abs²,
    and 5abs² with dropout; "eager" attention 6abs² and 7abs², and 4sb(a − k)d for keys and
    values that are repeated for each query head; dropout adds 2sbh of masks a layer, and sbh
    at the embedding. The head keeps 4sbh + 4sbV.
    Latent attention keeps 2(2q + 2c + r) of what is squeezed to q and c numbers and to a
    rotary key of r, and 2a(2d + 2v) with heads of d and values of v; a shared expert as
    much as an MLP of its size. Selective recomputation drops the s² part, full keeps
    each layer's input, 2sbh. "alternate" keeps beside it what comes out of attention and
    every other product, as torchtitan's selective option does; none of experts'. Where
    `expert_parallel` spreads experts both keep 4sbh for each chosen one: what was sent to it
    and what came back.
    With t-fold tensor parallelism each GPU keeps a t-th of what lies between a layer's
    two matrix products, and with sequence parallelism of all, checkpoints included.

    Values weigh `value_bytes`, masks 1, the log-probabilities 4. Left out are the norms'
    statistics, a few sb a layer, flash attention's, 4abs a layer, and of experts the
    router and the copies sorted for it. Returns an `ActivationCount` in bytes.

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


# --- what a layer keeps

ALL_LEARNS = Tuning.full()


@dataclass(frozen=True)
class Keeping:
    """How values are stored: what a layer's bytes need to know beside its shape.

    `value` are the bytes of a value between matrices, `stream` of one between layers. With
    `dropout` what a mixer and an MLP give has a mask of `mask` bytes each, as scores have. An
    RMSNorm of plain operations keeps `plain_norm` bytes a width (0: a norm is one operation,
    which keeps its input). `statistics` says whether those of norms and of flash attention
    count, `spread` (0 or 1) whether experts are on other GPUs, `tuning` what learns.
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
        """Bytes a token of a norm with so many parameters for each value.

        Made of plain operations, one without parameters has its input in 32 bits (OLMo's).
        """
        plain = {0: 4, 1: self.plain_norm}.get(numbers, 0) * (self.plain_norm > 0)
        return (plain or self.stream) * width + self.statistics * (4 if numbers == 1 else 8)

    def sent(self, part: Part | None, h: Size) -> Size:
        """Bytes a token that was sent to experts on other GPUs, and that came back."""
        chosen = part.experts_per_token if isinstance(part, Experts) else 0
        return self.spread * 2 * chosen * self.value * h

    def score(self) -> Size:
        """Bytes of a score: its softmax, and with dropout a mask and what is left.

        Eager attention makes its softmax in 32 bits, and multiplies what that is cast to.
        """
        v, dropped = self.value, int(self.dropout)
        if self.kernel == "eager":
            return 4 + dropped * self.mask + ((v < 4) | self.dropout) * v
        return (self.kernel == "unfused") * (v + dropped * (self.mask + v))


class Kept(NamedTuple):
    """Bytes a token that a layer keeps, and the part of the account that they belong to.

    Of what is `split` each GPU of a tensor-parallel group has its share for all tokens, and of
    what is `whole` all, for all tokens or its share of them.
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
    """Bytes that a GPU keeps of layers: so many of each, and whether anything below one learns.

    `tokens` are those between a layer's matrices, `outside` those it has of what isn't split.
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
    """List what a layer keeps for backward; `flows` says whether anything below it learns.

    Scores are listed with "selective" too, under a name of their own.
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
        # Mixers read the same, and in a parallel layer with one norm the MLP does too.
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
    """List what comes out of every other product and of attention, and what was sent."""
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
    """List what a mixer or an MLP keeps between its matrices, and what its adapters do."""
    v, tuning = how.value, how.tuning
    flash, eager = how.kernel == "flash", how.kernel == "eager"
    own, copy = own_copies(tuning)
    last = [x for x in ways if x.before and x.matrix.name.endswith(("output", "down"))]
    if arrives or any(x.adapted for x in ways if x not in last):
        # A gradient passes what lies between the matrices: all operations there need it.
        whole, split = part.activations(h, how.fused_mlp)
        yield Kept(name, v * whole, v * split)
        yield Kept("scores", 0, how.score() * part.score_heads() * s)
        yield Kept(name, 0, flash * how.statistics * 4 * part.score_heads())
        yield Kept(name, 0, eager * v * part.repeated())
        # What norms read is among these values; in plain operations they keep more.
        whole, split = (max(how.plain_norm - 2, 0) * width for width in part.norm_inputs())
        yield Kept(name, whole, split)
        # A frozen matrix doesn't need what it reads, but flash attention does need its result.
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
    """Count the tokens that a GPU has outside a layer's pairs of matrix products.

    ValueError for a split that doesn't divide the heads, or the sequence where that's split.
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
    """FLOPs of an iteration that are done a second time.

    full: 24Bslh² + 4Bs²lh in a GPT, a forward pass through the layers; selective:
    4Bs²lh, the scores; none: 0. (arXiv 2205.05198, section 5, prints three times that
    for selective, 12Bs²lh: the core of attention forward and backward.)

    >>> gpt3 = Transformer.gpt(96, 12288, 96, 51200, 2048)
    >>> repeated = recompute_flops(gpt3, 1, "selective")
    >>> f"{repeated / count_flops(gpt3, 1, 'none').total:.2%}"
    '0.90%'
    """
    return count_flops(model, batch_size, recompute).recomputed


@dataclass(frozen=True)
class Moment(Breakdown[Result]):
    """The bytes that are resident at one moment of a step, part by part.

    `weights` and `gradients` with their copies in fp32; `logits` two tensors in fp32, there
    while the loss is differentiated; `working` what the layer has beside them that backward
    is in. `step` and `micro_batch` count from 1; `mark` names the moment.
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

    Of the weights `main_weights` bytes are their copy in fp32, where there is one; of
    the activations `head` bytes are the head's, which come at the end of forward.
    """

    moments: tuple[Moment, ...]
    main_weights: Result = field(default=0, compare=False)
    head: Result = field(default=0, compare=False)

    @cached_property
    def peak(self) -> Moment:
        """The first moment at which most is resident."""
        return max(self.moments, key=lambda moment: moment.total)


MARKS = ["start", "forward", *MOMENTS]
"""The moments of a step: before it, after forward, and the four at one of which memory is
fullest (`memory.MOMENTS`). With accumulation those from forward to the first layer come once
for each micro-batch."""


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
    """Trace what is resident on one GPU through the first steps, part by part.

    Weights are always there, Adam's state from the first update on. Activations rise
    through forward and fall through backward, while gradients rise; these stay through
    all micro-batches and are released after the update. At the loss two tensors of 4sbV
    are added to the activations: the peak, unless gradients outweigh activations. At the
    last layer the head's gradients are there, and with full recomputation that layer again;
    at the first layer all gradients are. At both an MLP's gradients come on top.

    Takes one shape, no arrays; a `Recipe` or its name in `RECIPES`. A value weighs 4
    bytes with the recipe fp32, else 2. What an allocator reserves beyond is left out.
    Returns a `Timeline` of `Moment`s in bytes, six a step (four more with each further
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
        """Count what the layers do not keep, and backward computes again one layer at a time."""
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
    # A layer that is computed again has its activations; scores that are come and go inside.
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
    """Return one of a step's four moments; what of a layer is there again is an activation."""
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
    """The bytes of the largest layer, by a function that counts those of all layers.

    >>> gpt2 = Transformer.gpt(12, 768, 12, 50257, 1024)
    >>> largest_layer(gpt2, lambda model: count_activations(model, 1).layers)
    25165824
    """
    if len(model.layers) == 1:
        return divide(of_layers(model), model.num_layers)
    kinds = model.kinds
    return max(of_layers(replace(model, layers=((1, kind),))) for kind in kinds)


def value_bytes(recipe: RecipeName | Recipe) -> int:
    """Bytes that a value of the activations weighs: 4 bytes with the recipe fp32, else 2.

    >>> value_bytes("fp32"), value_bytes("amp")
    (4, 2)
    """
    return 4 if known_recipe(recipe).name == "fp32" else 2
