"""Chapter 06: what a step holds in memory. Beside notebooks/06_activations.ipynb.

Sources: Korthikanti et al. (arXiv 2205.05198), section 4 and Table 2, for the bytes of
a GPT's layers; Dao et al. (arXiv 2205.14135) for flash attention; Chen et al. (arXiv
1604.06174) for recomputation. The forms for Llama shapes are counted with autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast, get_args

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
from llmtrain_helpers.model.layers import Attention, Layer, Mlp, Part
from llmtrain_helpers.model.transformer import Transformer, of_length, over_layers
from llmtrain_helpers.parameters import count_parameters, head_parameters, norm_parameters
from llmtrain_helpers.precision import Recipe, RecipeName, known_recipe, model_state_bytes
from llmtrain_helpers.results import Breakdown, divide

Kernel: TypeAlias = Literal["unfused", "flash"]
"""How attention is computed: with its s² scores stored, or without."""

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


def check_alternate(layer: Layer) -> Attention:
    """Return the attention of a layer whose every other product is known; refuse other layers."""
    mixer = layer.mixer
    if type(mixer) is not Attention or type(layer.mlp) is not Mlp:
        refuse("recompute", "alternate", "is counted for attention with an MLP only")
    return mixer


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
    value_bytes: Count[Number] = 2,
) -> ActivationCount:
    """Bytes that any `Transformer` keeps for backward, part by part.

    A GPT's layer keeps 32sbh, a Llama's sb(8h + 4ad + 4kd + 8f) with a query and k
    key-value heads of size d (times the chosen experts, 8f). Norms on queries and keys
    add 2sb(a + k)d; a gated MLP that `fused_mlp` computes in one kernel keeps 6f instead
    of 8f (it multiplies the gate once more in backward); "unfused" attention adds 2abs²,
    and 5abs² with dropout; dropout adds 2sbh of masks a layer, and sbh at the embedding.
    The head keeps 4sbh + 4sbV.
    Latent attention keeps 2(2q + 2c + r) of what is squeezed to q and c numbers and to a
    rotary key of r, and 2a(2d + 2v) with heads of d and values of v; a shared expert as
    much as an MLP of its size. Selective recomputation drops the s² part, full keeps
    each layer's input, 2sbh. "alternate" keeps beside it what comes out of attention and
    every other product, as torchtitan's selective option does.
    With t-fold tensor parallelism each GPU keeps a t-th of what lies between a layer's
    two matrix products, and with sequence parallelism of all, checkpoints included.

    Values weigh `value_bytes`, masks 1, the log-probabilities 4. Left out are the norms'
    statistics, a few sb a layer, flash attention's, 4abs a layer, and of experts the
    router and the copies sorted for it. Returns an `ActivationCount` in bytes.

    Source: arXiv 2205.05198 section 4; Llama shapes as counted with autograd.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> count = count_activations(llama, micro_batch_size=1)
    >>> count.layers / 1e9, count.head / 1e9
    (44.023414784, 4.336910336)
    """
    model = of_length(model, sequence_length)
    b, t, v = as_sizes(micro_batch_size, tensor_parallel, value_bytes)
    mask = int(dropout)
    for layer in model.kinds:
        for mixer in layer.mixers:
            for name, heads in mixer.heads().items():
                divides(name, heads, "tensor_parallel", t)
    broadcast(micro_batch_size=b, tensor_parallel=t, value_bytes=v, **model.numbers())
    h, s = model.hidden_size, model.sequence_length
    # Between the matrix products of a pair GPUs share the values, and have all tokens;
    # outside of them they share the tokens, if at all.
    tokens, outside = b * s, b * s // _sequence_ways(sequence_parallel, s, t)
    unfused = attention == "unfused"

    def inside(part: Part) -> Result:
        """Bytes that a mixer or an MLP keeps between its matrices."""
        whole, split = part.activations(h, fused_mlp)
        return divide(v * split * tokens, t) + v * whole * outside

    def norms(layer: Layer) -> Size:
        return layer.norms * v * h * outside

    def mixers(layer: Layer) -> Result:
        """Bytes of the mixers: the input and the result's mask once, and what each keeps inside."""
        if not layer.mixers:
            return 0
        return (v + mask) * h * outside + sum(inside(mixer) for mixer in layer.mixers)

    def scores(layer: Layer) -> Result:
        """The softmax of each pair of tokens, and with dropout its mask and its result."""
        a = sum(mixer.score_heads() for mixer in layer.mixers)
        return divide(unfused * a * (v + mask * (1 + v)) * (s * tokens), t)

    def mlp(layer: Layer) -> Result:
        if layer.mlp is None:
            return 0
        # In a parallel layer with one norm the mixer has kept the same input already.
        shares_input = layer.parallel and layer.norms < 2 and layer.mixers
        return (v * (not shares_input) + mask) * h * outside + inside(layer.mlp)

    def checkpoint(layer: Layer) -> Size:
        return v * h * outside

    def alternate(layer: Layer) -> Result:
        """The layer's input, what comes out of attention, and every other product."""
        saved, _ = layer.every_other(h)
        back = check_alternate(layer).matrix("output", h)  # reads what comes out of attention
        values = back.rows + sum(matrix.columns for matrix in saved)
        return checkpoint(layer) + divide(v * values * tokens, t)

    stay: dict[str, dict[str, Callable[[Layer], Result]]] = {
        "none": {"norms": norms, "attention": mixers, "scores": scores, "mlp": mlp},
        "selective": {"norms": norms, "attention": mixers, "mlp": mlp},
        "full": {"checkpoints": checkpoint},
        "alternate": {"checkpoints": alternate},
    }
    parts: dict[str, Result] = dict.fromkeys(_LAYER_PARTS, 0)
    for name, of_layer in stay[recompute].items():
        parts[name] = over_layers(model, of_layer)
    return ActivationCount(
        **parts,
        embedding=mask * h * outside,
        head=2 * v * h * outside + divide(4 * tokens * model.vocab_size, t),
    )


_LAYER_PARTS = ("norms", "attention", "scores", "mlp", "checkpoints")


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

    Source: measured on PyTorch models, see notebook 11.

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
