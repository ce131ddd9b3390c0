"""What it takes to adapt a model: `Tuning`, and what learns under it.

Beside notebooks/10_budget.ipynb. Sources: Hu et al. (arXiv 2106.09685) for LoRA,
Dettmers et al. (arXiv 2305.14314) for 4 bits, and (arXiv 2110.02861) for 8-bit Adam,
Shazeer and Stern (arXiv 1804.04235) for Adafactor, Jordan et al.
(kellerjordan.github.io/posts/muon) for Muon, Ren et al. (arXiv 2101.06840) for what is
kept on the host; what Hugging Face's transformers and PEFT do was counted with PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

from llmtrain_helpers.activations import ActivationCount, count_activations
from llmtrain_helpers.batch import largest_batch
from llmtrain_helpers.checks import (
    Number,
    Result,
    amount,
    anywhere,
    at_most,
    broadcast,
    choice,
    count,
    counts,
    flag,
    instance,
    is_array,
    one,
    quantity,
    refuse,
    remembered,
    single,
)
from llmtrain_helpers.flops import ATTENTION, FlopCount
from llmtrain_helpers.model.layers import (
    Attention,
    Experts,
    LatentAttention,
    Layer,
    Matrix,
    Mixer,
    Mlp,
    Part,
    pairs,
)
from llmtrain_helpers.model.transformer import Transformer, of_length, over_layers
from llmtrain_helpers.parameters import count_parameters, embedding_parameters, head_parameters
from llmtrain_helpers.precision import Recipe, known_recipe
from llmtrain_helpers.results import Breakdown, greater, lesser, shared_out, where

OPTIMIZERS = {
    recipe.name: recipe
    for recipe in (
        Recipe("adam", 2, 2, 0, 4, 8),
        Recipe("adam_8bit", 2, 2, 0, 4, 2 + 2 * 4 / 2048),
        Recipe("adafactor", 2, 2, 0, 4, 0),  # a sum a row and a column: some h of h²
        Recipe("muon", 2, 2, 0, 4, 4),
    )
}
"""Optimizers as recipes for `plan_run`: bytes of weights, gradients, main gradients,
main weights and states. Adam has two states a parameter; in 8 bits a byte each, and 4
bytes for every 2,048; Adafactor without momentum only sums over rows and columns; Muon
one momentum (embedding and head, which stay with Adam, have two)."""

MATRICES = ("query", "key", "value", "output", "mlp")
"""The matrices that LoRA can adapt."""

# --- what learns

MIXERS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "o_proj",
    "query_down": "q_a_proj",
    "query_up": "q_b_proj",
    "key_value_down": "kv_a_proj_with_mqa",
    "key_value_up": "kv_b_proj",
}
"""The matrices of attention, plain and latent, and what PEFT calls them."""

MLPS = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}
"""Those of an MLP, of each expert and of a shared one alike; a router has no adapter."""

TARGETS = {
    "attention": (*MIXERS.values(),),
    "mlp": (*MLPS.values(),),
    "all-linear": (*MIXERS.values(), *MLPS.values()),
}
"""Groups of matrices by the words that stand for them; PEFT's "all-linear" leaves out the head."""

HEAD = "lm_head"
"""The output matrix, which can have an adapter too."""

LOSS_KERNELS = {"transformers": 14, "plain": 12, "in-place": 10, "chunked": 4, "fused": 0}
"""Bytes a logit at the peak of the loss, by its kernel.

`transformers`, as its trainer has it: 2 for the logits that it holds, 4 for each of their
fp32 copy, the log-probabilities and the gradient (counted); `plain` the same where nobody
holds the logits; `in-place` a kernel that writes the gradient over the fp32 logits, one
copy of which the shift to the next token makes; `chunked` 16-bit logits and their
log-probabilities; `fused` logits that are never whole."""

STATES = {
    "adamw": 2,
    "adamw_fused": 2,
    "adamw_in_backward": 2,
    "adamw_paged": 0,
    "adamw_8bit": 0,
    "sgd": 0,
}
"""Numbers that an optimizer keeps for each that learns, as wide as the weights.

PyTorch's own AdamW (`adamw`) updates all parameters at once, through a copy of them
(counted); `adamw_in_backward` updates each matrix as soon as its gradient is there, which
then goes; `adamw_paged` keeps its states where they can move to the host, outside of
PyTorch's memory; `adamw_8bit` keeps two in a byte each, with 4 bytes for every 256."""

AT_WORK_UNDER_FSDP = 2
"""Layers at work at once, as it were, where FSDP shards a model with adapters.

Read off one publication's rows (IBM's, 2 to 4 GPUs) and not explained; nobody else's
judge it."""

IN_8_BITS = 2 * (1 + 4 / 256)
"""Bytes of both states of an 8-bit AdamW, for each number that learns."""

NF4_BITS = {True: 4 + 8 / 64 + 32 / (64 * 256), False: 4 + 32 / 64}
"""Bits of a weight in NF4: a scale for every 64 in 8 bits, or (without double quantisation)
in 32; with it one in 32 bits more for every 256 scales (arXiv 2305.14314, section 3)."""


@dataclass(frozen=True)
class Tuning:
    """How a model is adapted: all of its weights, or adapters beside frozen ones.

    method               "full", "lora", or "qlora": the frozen matrices in 4 bits
    rank                 r: an adapter is a matrix of m × r and one of r × n; 0 if "full"
    targets              matrices that have one, by PEFT's names (q_proj, …, lm_head), or
                         "all-linear", "attention" or "mlp"
    dropout              share of an adapter's input that is dropped
    double_quantisation  whether the scales of 4-bit weights are quantised themselves
    weight_bytes         of each weight that is not in 4 bits: 2, or 4
    adapter_bytes        of each weight of the adapters: 4 is PEFT's default, or 2
    autocast             whether products with 32-bit adapters are made in 16 bits
    wide_bytes           of embedding, head and norms beside 4-bit weights: 2, or 4 as
                         PEFT's `prepare_model_for_kbit_training` makes them
    stream_bytes         of what flows from layer to layer: 2 or 4; None for `wide_bytes`
    optimizer            one of `STATES`; it keeps numbers as wide as the weights
    loss_kernel          one of `LOSS_KERNELS`
    reentrant            whether recomputation is PyTorch's reentrant one, which goes
                         through to the end of a layer; the other stops early
    fused                whether norms and the MLP's activation keep what fused kernels do
    keeps_inputs         whether 4-bit matrices keep what they read, as bitsandbytes' did in
                         2023 (0.41); now (0.50) they do not

    Made by `full`, `lora` and `qlora`. ValueError for what does not go together.
    Source: arXiv 2106.09685 section 4; arXiv 2305.14314 section 3; PEFT's defaults.

    >>> Tuning.qlora(rank=8, targets=["q_proj", "v_proj"]).targets
    ('q_proj', 'v_proj')
    """

    method: str
    rank: int = 0
    targets: str | Collection[str] = ()
    dropout: float = 0
    double_quantisation: bool = True
    weight_bytes: int = 2
    adapter_bytes: int = 4
    autocast: bool = True
    wide_bytes: int = 2
    stream_bytes: int | None = None
    optimizer: str = "adamw"
    loss_kernel: str = "transformers"
    reentrant: bool = False
    fused: bool = False
    keeps_inputs: bool = False

    def __post_init__(self) -> None:
        choice("method", self.method, ["full", "lora", "qlora"])
        choice("optimizer", self.optimizer, STATES)
        choice("loss_kernel", self.loss_kernel, LOSS_KERNELS)
        for name in ("double_quantisation", "autocast", "reentrant", "fused", "keeps_inputs"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        for name in ("weight_bytes", "adapter_bytes", "wide_bytes"):
            object.__setattr__(self, name, _width(name, getattr(self, name)))
        stream = self.wide_bytes if self.stream_bytes is None else self.stream_bytes
        object.__setattr__(self, "stream_bytes", _width("stream_bytes", stream))
        dropped = one("dropout", self.dropout, amount)
        if dropped >= 1:
            refuse("dropout", dropped, "is not below 1: a share, not a percentage")
        object.__setattr__(self, "dropout", dropped)
        rank = single("rank", self.rank, least=0)
        object.__setattr__(self, "rank", rank)
        if self.is_full:
            if rank or self.targets not in ((), []):
                refuse("rank", rank, "goes with adapters: full training has none")
            object.__setattr__(self, "targets", ())
            return
        if rank == 0:
            refuse("rank", rank, "is not positive: adapters have at least 1")
        object.__setattr__(self, "targets", _targeted(self.targets))

    @classmethod
    def full(cls, **options: Any) -> Tuning:
        """All weights learn; options as in `Tuning`."""
        return cls("full", **options)

    @classmethod
    def lora(
        cls, rank: int = 16, targets: str | Collection[str] = "all-linear", **options: Any
    ) -> Tuning:
        """Adapters of a rank beside frozen weights; options as in `Tuning`."""
        return cls("lora", rank, targets, **options)

    @classmethod
    def qlora(
        cls, rank: int = 16, targets: str | Collection[str] = "all-linear", **options: Any
    ) -> Tuning:
        """Adapters beside frozen weights in 4 bits; options as in `Tuning`."""
        return cls("qlora", rank, targets, **options)

    @property
    def is_full(self) -> bool:
        """Whether all weights learn."""
        return self.method == "full"

    @property
    def learning_bytes(self) -> int:
        """Bytes of each number that learns; its gradient and states are as wide."""
        return self.weight_bytes if self.is_full else self.adapter_bytes

    @property
    def matrix_bytes(self) -> float:
        """Bytes of each weight in the layers' matrices: 0.516 in 4 bits."""
        quantised = NF4_BITS[self.double_quantisation] / 8
        return quantised if self.method == "qlora" else self.weight_bytes

    @property
    def other_bytes(self) -> int:
        """Bytes of each weight of embedding, head and norms."""
        return self.wide_bytes if self.method == "qlora" else self.weight_bytes

    def but(self, **changes: Any) -> Tuning:
        """The same with some of its fields changed."""
        return replace(self, **changes)


def _width(name: str, value: object) -> int:
    """The bytes of a number: 2 or 4."""
    size = single(name, value)
    if size not in (2, 4):
        refuse(name, value, "is neither 2 nor 4 bytes")
    return size


def _targeted(targets: object) -> tuple[str, ...]:
    """PEFT's names of the targeted matrices, each once."""
    if isinstance(targets, str):
        targets = (targets,)
    if not isinstance(targets, (list, tuple, set, frozenset)):
        refuse("targets", targets, "is no list of matrices, and none of the groups")
    known = dict.fromkeys((*TARGETS, *TARGETS["all-linear"], HEAD))
    chosen = [choice("targets", name, known) for name in targets]
    names = [name for word in chosen for name in TARGETS.get(word, (word,))]
    if not names:
        refuse("targets", targets, "is empty")
    order = (*TARGETS["all-linear"], HEAD)
    return tuple(sorted(dict.fromkeys(names), key=order.index))


def targeted(model: Transformer, tuning: Tuning) -> tuple[str, ...]:
    """The matrices of a model that have adapters, by PEFT's names; none in full training.

    >>> targeted(Transformer.gpt(2, 64, 4, 99, 16), Tuning.lora(8, "mlp"))
    ('up_proj', 'down_proj')
    """
    tuned_parameters(model, tuning)  # refuses targets that the model has not
    h = model.hidden_size
    there = {
        name
        for layer in model.kinds
        for part in layer.parts
        if not tuning.is_full
        for _, name, _ in (_of_mixer(part, h) if isinstance(part, Mixer) else _of_mlp(part, h))
    }
    return tuple(name for name in tuning.targets if name in {*there, HEAD})


class Site(NamedTuple):
    """A matrix of a layer, whether it has an adapter, what it reads, and what comes before it.

    `reads` names the tensor that goes in, the same for all that read it; `before` are the
    matrices of the same part through which it has come.
    """

    matrix: Matrix
    adapted: bool
    reads: str
    before: tuple[str, ...]


def _sites(part: Part, hidden_size: Result, tuning: Tuning) -> tuple[Site, ...]:
    """The matrices of a mixer or an MLP, as the gradient sees them."""
    h = hidden_size
    named = _of_mixer(part, h) if isinstance(part, Mixer) else _of_mlp(part, h)
    return tuple(
        Site(matrix, name in tuning.targets, matrix.name if before else "input", before)
        for matrix, name, before in named
    )


def _of_mixer(mixer: Mixer, hidden_size: Result) -> Iterator[tuple[Matrix, str, tuple[str, ...]]]:
    """The matrices of attention, PEFT's names of them, and those that come before each."""
    if not isinstance(mixer, (Attention, LatentAttention)):
        problem = "is no attention: what learns in it has not been counted"
        refuse("model", type(mixer).__name__, problem)
    matrices = mixer.matrices(hidden_size)
    before = {
        "query_up": ("query_down",),
        "key_value_up": ("key_value_down",),
        "output": tuple(m.name for m in matrices if m.name != "output"),
    }
    for matrix in matrices:
        yield matrix, MIXERS.get(matrix.name, ""), before.get(matrix.name, ())


def _of_mlp(mlp: Part, hidden_size: Result) -> Iterator[tuple[Matrix, str, tuple[str, ...]]]:
    """The same of an MLP, of experts and of a shared one."""
    for matrix in mlp.matrices(hidden_size):
        stem = matrix.name.removeprefix("expert_").removeprefix("shared_")
        whose = matrix.name.removesuffix(stem)
        before = (f"{whose}gate", f"{whose}up") if stem == "down" else ()
        yield matrix, MLPS.get(stem, ""), before


@dataclass(frozen=True)
class TunedParameters(Breakdown):
    """Parameters of a model that is adapted, by what becomes of them.

    `frozen` in the layers' matrices, and `wide` in embedding, head, norms and biases: what
    4 bits leave as it is; `learning` are those that training changes.
    """

    frozen: Result
    wide: Result
    learning: Result


@remembered
def tuned_parameters(model: Transformer, tuning: Tuning) -> TunedParameters:
    """Parameters that learn and that do not: all of them, or r(m + n) for each adapter.

    An adapter of rank r beside a matrix of m × n; each expert has its own. ValueError for
    targets of which the model has none.

    Source: arXiv 2106.09685, section 4; PEFT prints the doctest's number.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> tuned_parameters(llama, Tuning.lora(rank=8)).learning
    20971520
    """
    _check_tuned(model, tuning)
    P = count_parameters(model).total
    if tuning.is_full:
        return TunedParameters(frozen=0, wide=0, learning=P)
    frozen = over_layers(model, _matrix_weights(model))
    learning = over_layers(model, _adapter_parameters(model, tuning))
    if HEAD in tuning.targets:
        learning = learning + tuning.rank * (model.hidden_size + model.vocab_size)
    if not anywhere(learning > 0):
        refuse("targets", tuning.targets, "are in no layer of the model")
    return TunedParameters(frozen=frozen, wide=P - frozen, learning=learning)


def _check_tuned(model: object, tuning: object) -> None:
    instance("model", model, Transformer)
    instance("tuning", tuning, Tuning)
    assert isinstance(model, Transformer)
    if is_array(model.embedding_size) or model.embedding_size:
        problem = "is narrower than the model: adapting one has not been counted"
        refuse("embedding_size", model.embedding_size, problem)


def _matrix_weights(model: Transformer) -> Callable[[Layer], Result]:
    """Counts the weights in a layer's matrices, without biases."""
    h = model.hidden_size
    return lambda layer: sum(m.copies * m.weights for m in layer.matrices(h))


def _adapter_parameters(model: Transformer, tuning: Tuning) -> Callable[[Layer], Result]:
    """Counts the weights of a layer's adapters."""
    r, h = tuning.rank, model.hidden_size

    def of(layer: Layer) -> Result:
        adapted = [s.matrix for p in layer.parts for s in _sites(p, h, tuning) if s.adapted]
        return r * sum(m.copies * (m.rows + m.columns) for m in adapted)

    return of


# --- FLOPs


@dataclass(frozen=True)
class TunedFlops(FlopCount):
    """FLOPs of an iteration of a tuned model: those of `FlopCount`, and the `adapters`'.

    What is `recomputed` holds the adapters' second forward pass too.
    """

    adapters: Result


RECOMPUTED = ["none", "full"]
"""What is computed a second time when a model is tuned, as far as it has been counted."""


@remembered
def tuned_flops(
    model: Transformer,
    tuning: Tuning,
    batch_size: Number,
    recompute: str,
    attention: str = "dense",
    sequence_length: Number | None = None,
) -> TunedFlops:
    """FLOPs of an iteration when a model is tuned: 6PT in full, 4PT beside frozen weights.

    For T tokens: a matrix of m × n takes 2Tmn forward; 2Tmn for the gradient of what it
    reads, unless nothing before it learns; 2Tmn for its own gradient if it learns. An
    adapter takes 2Tr(m + n) forward and twice that backward, its first half's input aside
    where nothing before it learns. Scores have no discount. `recompute` is "none" or
    "full": then all layers run forward again, but for the last product of each, which
    PyTorch leaves out unless `tuning.reentrant` (with experts it is needed); and the
    embedding's output is made to need a gradient, as transformers does it.
    Otherwise as `count_flops`.

    Source: counted with PyTorch's FLOP counter, nothing apart.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=1)
    >>> for tuning in (Tuning.full(), Tuning.lora(16, "attention")):  # not 8PT and 6PT
    ...     flops = tuned_flops(llama, tuning, 1024, "full").total
    ...     print(f"{flops / (1024 * 7504924672):.1f}PT")
    7.4PT
    5.4PT
    """
    model = of_length(model, sequence_length)
    _check_tuned(model, tuning)
    B, s = count("batch_size", batch_size), model.sequence_length
    broadcast(batch_size=B, **model.numbers())
    choice("recompute", recompute, RECOMPUTED)
    choice("attention", attention, ATTENTION)
    h, T, r, full = model.hidden_size, B * s, tuning.rank, tuning.is_full
    parts: dict[str, Result] = dict.fromkeys(
        ("projections", "scores", "mlp", "head", "recomputed", "adapters"), 0
    )
    for how_many, layer, flows in _tuned_layers(model, tuning, recompute):
        for part, arrives in _flows_into(layer, h, tuning, flows):
            name = "projections" if isinstance(part, Mixer) else "mlp"
            learns = {site.matrix.name: site.adapted or full for site in _sites(part, h, tuning)}
            forward, adapters = 0, 0
            for m, adapted, _, before in _sites(part, h, tuning):
                passes = arrives or any(learns.get(x) for x in before)
                product = 2 * T * m.active * m.weights
                parts[name] = parts[name] + how_many * (1 + passes + full) * product
                down, up = (2 * T * r * m.active * side * adapted for side in (m.rows, m.columns))
                parts["adapters"] = parts["adapters"] + how_many * ((2 + passes) * down + 3 * up)
                forward, adapters = forward + product, adapters + down + up
            if isinstance(part, Mixer):
                scored = 2 * B * part.products() * pairs(s, attention, part)
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


def _tuned_layers(
    model: Transformer, tuning: Tuning, recompute: str
) -> Iterator[tuple[Result, Layer, bool]]:
    """The layers from the first up, alike ones together, and whether anything below learns.

    With adapters alone nothing does below the first layer that has one, unless layers are
    recomputed: then the embedding's output is made to need a gradient.
    """
    h = model.hidden_size
    flows = tuning.is_full or recompute == "full"
    for how_many, layer in model.layers:
        learns = any(site.adapted for part in layer.parts for site in _sites(part, h, tuning))
        if not flows and learns:
            yield 1, layer, False
            yield how_many - 1, layer, True
        else:
            yield how_many, layer, flows
        flows = flows or learns


def _flows_into(
    layer: Layer, hidden_size: Result, tuning: Tuning, flows: bool
) -> Iterator[tuple[Part, bool]]:
    """The parts of a layer, and whether anything that each reads has come past what learns."""
    arrives = flows
    for mixer in layer.mixers:
        yield mixer, flows
        arrives = arrives or any(site.adapted for site in _sites(mixer, hidden_size, tuning))
    if layer.mlp is not None:
        yield layer.mlp, flows if layer.parallel else arrives


def _last_product(layer: Layer, hidden_size: Result, tuning: Tuning) -> Result:
    """FLOPs a token of a layer's last product, which recomputation that stops early spares.

    It is the down projection's, or the second half's of its adapter. What experts give is
    weighted, for which backward needs it: nothing is spared, unless a shared one comes last.
    """
    part = layer.mlp or layer.mixers[-1]
    name = "down" if layer.mlp else "output"
    if isinstance(part, Experts):
        if part.shared is None or part.shared_gate:
            return 0
        name = "shared_down"
    [site] = [x for x in _sites(part, hidden_size, tuning) if x.matrix.name == name]
    m = site.matrix
    return 2 * (tuning.rank * m.columns if site.adapted else m.weights)


# --- activations


@dataclass(frozen=True)
class TunedActivations(ActivationCount):
    """Bytes kept for backward when a model is tuned: as `ActivationCount`, and for `adapters`.

    These keep their first half's result; and where they drop out, or are of another type,
    a copy of their input each. `head` leaves out logits: see `LOSS_KERNELS`.
    """

    adapters: Result


@remembered
def tuned_activations(
    model: Transformer,
    tuning: Tuning,
    micro_batch_size: Number,
    recompute: str = "none",
    sequence_length: Number | None = None,
    *,
    mask_bytes: Number = 1,
) -> TunedActivations:
    """Bytes that a model keeps for backward when it is tuned, with flash attention.

    A Llama's layer keeps, for each token, with all learning 20h + 4kd + 8f + 4a: of its
    two norms 8h in fp32 and 4h for their own weights, 4h of what matrices read, queries,
    keys, values and the result, and four times the MLP's inside. A frozen matrix needs no
    input, a frozen norm 2h less: adapters on queries and values keep 14h + 4kd + 6f + 4a.
    An adapter keeps 2r of its own, and a copy of its input (2m; 4m in 32 bits without
    `autocast`) where it is in 32 bits or drops out, then with a mask of `mask_bytes` each:
    with dropout on all matrices that is more than full training keeps. `fused` norms keep
    2h, and a fused activation 2f less. In the first layer with adapters, less is kept.
    Recomputed layers keep `stream_bytes` times h. The flash kernel's 4 bytes a head count,
    and the norms' 4 a token; experts are counted by those a token meets. Left out:
    rotary tables and the router.

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
    _check_tuned(model, tuning)
    b, mask = count("micro_batch_size", micro_batch_size), count("mask_bytes", mask_bytes, 0)
    broadcast(micro_batch_size=b, mask_bytes=mask, **model.numbers())
    choice("recompute", recompute, RECOMPUTED)
    T, h = b * model.sequence_length, model.hidden_size
    parts: dict[str, Result] = dict.fromkeys(
        ("norms", "attention", "scores", "mlp", "checkpoints", "embedding", "head", "adapters"), 0
    )
    if recompute == "full":
        parts["checkpoints"] = T * model.num_layers * tuning.stream_bytes * h
    else:
        for how_many, layer, flows in _tuned_layers(model, tuning, recompute):
            for name, kept in _kept(layer, h, tuning, flows, mask).items():
                parts[name] = parts[name] + how_many * T * kept
    # What the head reads stays in any case: the code that calls it holds it.
    parts["head"] = T * (_norm_kept(model.final_norm, h, tuning) + 2 * h)
    adapted = HEAD in tuning.targets
    own, copy = _own_copies(tuning)
    parts["adapters"] = parts["adapters"] + T * adapted * (
        own * (copy + mask * (tuning.dropout > 0)) * h + tuning.rank * copy
    )
    return TunedActivations(**parts)


def _own_copies(tuning: Tuning) -> tuple[bool, int]:
    """Whether each adapter keeps its own copy of its input, and the bytes of a value in it."""
    wide = tuning.adapter_bytes == 4
    return wide or tuning.dropout > 0, 4 if wide and not tuning.autocast else 2


def _norm_kept(norm_size: int, width: Result, tuning: Tuning) -> Result:
    """Bytes a token that a norm keeps: its input, in fp32 where operations are plain.

    LayerNorm is one operation in any case; a plain RMSNorm that learns keeps its result too.
    """
    plain = norm_size == 1 and not tuning.fused
    each = 4 + 2 * tuning.is_full if plain else tuning.stream_bytes or 2
    return (norm_size > 0) * (each * width + 4 * norm_size)


def _kept(
    layer: Layer, hidden_size: Result, tuning: Tuning, flows: bool, mask: Result
) -> dict[str, Result]:
    """Bytes a token that a layer keeps, part by part; `flows` if anything below it learns."""
    h, full = hidden_size, tuning.is_full
    own, copy = _own_copies(tuning)
    keeps = full or (tuning.keeps_inputs and tuning.method == "qlora")
    kept: dict[str, Result] = {"norms": 0, "attention": 0, "mlp": 0, "adapters": 0}
    norm, arrived = _norm_kept(layer.norm_size, h, tuning), []
    read_before = False
    for part, arrives in _flows_into(layer, h, tuning, flows):
        arrived.append(arrives)
        is_mixer = isinstance(part, Mixer)
        name = "attention" if is_mixer else "mlp"
        ways = _sites(part, h, tuning)
        last = [x for x in ways if x.matrix.name.endswith("output" if is_mixer else "down")]
        learns = any(x.adapted for x in ways if x not in last)
        # What lies between the matrices stays if a gradient passes it.
        whole, split = part.activations(h, tuning.fused)
        inside = 2 * (whole + split) + 4 * (part.score_heads() if isinstance(part, Mixer) else 0)
        inside = inside + _norms_inside(part, ways, tuning)
        for site in ways:
            m, needed = site.matrix, keeps or (site.adapted and not own)
            if site.before and not (is_mixer and site in last):
                inside = inside - 2 * m.active * m.rows * (not needed)
        passes = arrives or learns
        kept[name] = kept[name] + passes * inside
        if not passes:  # then only what the last matrix reads, if it has an adapter
            reads = sum(x.matrix.active * x.matrix.rows * x.adapted for x in last)
            kept[name] = kept[name] + 2 * reads * (not own)
        reading = keeps or (not own and any(x.adapted for x in ways if not x.before))
        shares = layer.parallel and layer.norms < 2 and read_before
        kept[name] = kept[name] + 2 * h * (reading and not shares)
        read_before = read_before or reading
        for m, adapted, _, before in ways:
            passed = arrives or any(x.adapted for x in ways if x.matrix.name in before)
            of_input = own * (copy + mask * passed * (tuning.dropout > 0)) * m.rows
            each = adapted * m.active * (of_input + tuning.rank * copy)
            kept["adapters"] = kept["adapters"] + each
    first = arrived[0] + (layer.norms - 1) * arrived[-1]  # of the norms, the first reads what flows
    kept["norms"] = norm * (first if layer.norms else 0)
    return kept


def _norms_inside(part: Part, ways: tuple[Site, ...], tuning: Tuning) -> Result:
    """Bytes a token that norms inside attention keep beyond their input in 16 bits."""
    if tuning.fused:
        return 0
    widths: Result = 0
    if isinstance(part, LatentAttention):
        widths = part.q_rank + part.kv_rank
    elif isinstance(part, Attention) and part.qk_norm:
        widths = sum(x.matrix.columns for x in ways if x.matrix.name in ("query", "key"))
    return (2 + 2 * tuning.is_full) * widths


# --- memory


@dataclass(frozen=True)
class TunedMemory(Breakdown):
    """Bytes on a GPU at one moment of a step of tuning, part by part.

    `weights`, frozen and learning; `gradients` and `optimizer` states of what learns;
    `activations` kept for backward; `transient`, what is there for this moment: logits, a
    layer computed again with its gradients, the update's copy, what FSDP gathers, a matrix
    out of 4 bits. `phase` names the moment.
    """

    _beside = ("phase",)

    phase: str
    weights: Result
    gradients: Result
    optimizer: Result
    activations: Result
    transient: Result


@remembered
def tuned_phases(
    model: Transformer,
    tuning: Tuning,
    micro_batch_size: Number,
    recompute: str,
    sequence_length: Number | None = None,
    *,
    accumulation_steps: Number = 1,
    zero_stage: int = 0,
    data_parallel: Number = 1,
) -> tuple[TunedMemory, ...]:
    """Bytes on a GPU at the four moments of a step of which one is the peak.

    At the `loss` stand all activations and the logits (`LOSS_KERNELS`); at the `last layer`,
    where backward begins, the activations and that layer: what it keeps if it was
    recomputed, and three gradients as wide as its MLP (two without a gate); at the `first
    layer`, where it ends, one layer and all gradients; at the `update` the gradients and a
    copy of what learns (see `STATES`). With several `accumulation_steps` gradients are
    there all the time. Weights in 4 bits come out of them one matrix at a time. With ZeRO
    over d replicas each has its share of what the stage shards; stage 3 gathers two layers
    for backward, with one's gradients if they learn, and has embedding and head whole; with
    adapters it has `AT_WORK_UNDER_FSDP` layers at work.

    Source: counted with PyTorch (states, logits, activations); the MLP's gradients follow
    from its products.

    >>> mistral = Transformer.llama(32, 4096, 32, 8, 14336, 32000, sequence_length=4096)
    >>> for memory in tuned_phases(mistral, Tuning.full(), 4, "full"):
    ...     print(f"{memory.phase}: {memory.total / 1e9:.1f} GB")  # measured: 72.4
    loss: 55.6 GB
    last layer: 53.2 GB
    first layer: 62.6 GB
    update: 72.4 GB
    """
    model = of_length(model, sequence_length)
    P = tuned_parameters(model, tuning)
    b, d, m = counts(
        micro_batch_size=micro_batch_size,
        data_parallel=data_parallel,
        accumulation_steps=accumulation_steps,
    )
    stage = single("zero_stage", zero_stage, least=0)
    at_most("zero_stage", stage, "ZeRO's last stage", 3)
    broadcast(micro_batch_size=b, data_parallel=d, accumulation_steps=m, **model.numbers())
    kept = tuned_activations(model, tuning, b, recompute)
    T, V, h, full = b * model.sequence_length, model.vocab_size, model.hidden_size, tuning.is_full
    width, n = tuning.learning_bytes, P.learning

    # What stays: weights, gradients and states, each shared out from its stage on.
    frozen = tuning.matrix_bytes * P.frozen + tuning.other_bytes * P.wide
    in_8_bits = tuning.optimizer == "adamw_8bit"
    states = IN_8_BITS if in_8_bits else STATES[tuning.optimizer] * width
    weights = shared_out(frozen + width * n, d if stage == 3 else 1)
    optimizer = shared_out(states * n, d if stage >= 1 else 1)
    matrices = [x for layer in model.kinds for x in layer.matrices(h)]
    largest = reduce(greater, (x.weights for x in matrices))
    whole = n
    if tuning.optimizer == "adamw_in_backward":
        whole = lesser(n, greater(largest, h * V)) if full else lesser(n, largest)
    gradients = shared_out(width * whole, d if stage >= 2 else 1)
    copy = shared_out((tuning.optimizer == "adamw") * width * n, d if stage >= 1 else 1)

    # What a layer has while it is computed again, and what its gradients pass through.
    layer = T * reduce(greater, (_worked_on(x, h, tuning, recompute) for x in model.kinds))
    if stage == 3 and not full:
        layer = layer * where(d > 1, AT_WORK_UNDER_FSDP, 1)
    layer = layer + (tuning.method == "qlora") * 2 * largest
    logits = LOSS_KERNELS[tuning.loss_kernel] * V * T
    outer = around = 0 * d
    if stage == 3:
        several = d > 1
        ends = embedding_parameters(model) + (not model.tied_embeddings) * head_parameters(model)
        each = reduce(greater, map(_matrix_weights(model), model.kinds))
        outer = several * (2 + 2 * full) * ends
        around = several * (2 * lesser(tuning.matrix_bytes, 2) + 2 * full) * each

    # With accumulation the gradients of the passes before stay.
    before = where(m > 1, gradients, 0)
    head = shared_out(lesser(full * width * h * V, width * whole), d if stage >= 2 else 1)
    one = shared_out(kept.layers, model.num_layers) if recompute == "none" else 0
    return (
        TunedMemory("loss", weights, before, optimizer, kept.total, logits + outer),
        TunedMemory(
            "last layer",
            weights,
            greater(before, head),
            optimizer,
            kept.total,
            layer + outer + around,
        ),
        TunedMemory("first layer", weights, gradients, optimizer, one, layer + outer + around),
        TunedMemory("update", weights, gradients, optimizer, 0, copy),
    )


def tuned_memory(
    model: Transformer,
    tuning: Tuning,
    micro_batch_size: Number,
    recompute: str,
    sequence_length: Number | None = None,
    *,
    accumulation_steps: Number = 1,
    zero_stage: int = 0,
    data_parallel: Number = 1,
) -> TunedMemory:
    """Bytes on a GPU at the peak of a step of tuning: the largest of `tuned_phases`.

    Takes single numbers; arguments and errors as there. What the allocator, the driver and
    the collectives take beside it comes on top.

    >>> mistral = Transformer.llama(32, 4096, 32, 8, 14336, 32000, sequence_length=4096)
    >>> peak = tuned_memory(mistral, Tuning.lora(16, "attention"), 4, "full")
    >>> f"{peak.total / 1e9:.1f} GB, measured 26.7, at the {peak.phase}"
    '26.7 GB, measured 26.7, at the loss'
    """
    numbers: dict[str, Any] = {
        "micro_batch_size": micro_batch_size,
        "accumulation_steps": accumulation_steps,
        "data_parallel": data_parallel,
    }
    for name, value in numbers.items():
        one(name, value)
    if sequence_length is not None:
        one("sequence_length", sequence_length)
    model = of_length(model, sequence_length)
    if any(is_array(value) for value in model.numbers().values()):
        refuse("model", model, "is many: here it must be one")
    found = tuned_phases(model, tuning, recompute=recompute, zero_stage=zero_stage, **numbers)
    return max(found, key=lambda memory: memory.total)


def _worked_on(layer: Layer, hidden_size: Result, tuning: Tuning, recompute: str) -> Result:
    """Bytes a token of a layer at work in backward: what it keeps again, its MLP's gradients."""
    again = sum(_kept(layer, hidden_size, tuning, True, 1).values()) if recompute == "full" else 0
    mlp = layer.mlp
    if mlp is None:
        return again
    inside = [x.matrix for x in _sites(mlp, hidden_size, tuning) if x.before]  # down
    gated = any("gate" in m.name for m in mlp.matrices(hidden_size))
    return again + 2 * (3 if gated else 2) * sum(m.active * m.rows for m in inside)


# --- what is asked in practice


def tuning_tokens(
    examples: Number, tokens_each: Number, epochs: Number = 1, padded_to: Number | None = None
) -> Result:
    """Tokens that go through a model that is tuned: examples · tokens · epochs.

    Packed, sequences are full, and `tokens_each` is the mean of an example; `padded_to` is
    the length to which each is filled up instead, pads going through the model like
    tokens. Whole numbers of epochs or not. ValueError for a length below the mean.

    >>> tuning_tokens(30_000, 800, epochs=3), tuning_tokens(30_000, 800, 3, padded_to=2048)
    (72000000, 184320000)
    """
    n, t = counts(examples=examples, tokens_each=tokens_each)
    e = quantity("epochs", epochs)
    length = t if padded_to is None else count("padded_to", padded_to)
    broadcast(examples=n, tokens_each=t, epochs=e, padded_to=length)
    at_most("tokens_each", t, "padded_to", length)
    return n * length * e


def longest_sequence(
    model: Transformer,
    tuning: Tuning,
    memory: Number,
    recompute: str,
    reserve: Number = 0,
    micro_batch_size: Number = 1,
    zero_stage: int = 0,
    data_parallel: Number = 1,
) -> int:
    """The most tokens a sequence with which tuning fits into a GPU's bytes, less a reserve.

    Whatever the model's own longest sequence is. Takes single numbers; ValueError where
    not even one token fits. Otherwise as `tuned_memory`.

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> prepared, card = Tuning.qlora(32, wide_bytes=4), 24 * 2**30
    >>> longest_sequence(llama, prepared, card, "full", reserve=2e9)  # measured: 5,789
    6380
    >>> longest_sequence(llama, prepared.but(loss_kernel="fused"), card, "full", reserve=2e9)
    17408
    """
    _check_tuned(model, tuning)
    held, kept = one("memory", memory, quantity), one("reserve", reserve, amount)
    b, d = single("micro_batch_size", micro_batch_size), single("data_parallel", data_parallel)
    free = replace(model, num_positions=0) if model.num_positions else model

    def fits(s: int) -> bool:
        how = {"zero_stage": zero_stage, "data_parallel": d}
        return bool(tuned_memory(free, tuning, b, recompute, s, **how).total <= held - kept)

    if not fits(1):
        refuse("memory", memory, "is too small for the model and one token")
    return int(largest_batch(fits, limit=2**30))


def lora_parameters(
    model: Transformer, rank: Number = 8, targets: Collection[str] = ("query", "value")
) -> Result:
    """Parameters that LoRA trains: r(m + n) for each adapted matrix of m by n.

    `targets` are out of `MATRICES`. ValueError for an unknown one, for none, and for
    layers that are no plain attention and MLP.

    Source: arXiv 2106.09685, section 4; litgpt prints the doctest's number.

    >>> llama = Transformer.llama(32, 4096, 32, 32, 11008, 32000, sequence_length=1304)
    >>> lora_parameters(llama)
    4194304
    """
    instance("model", model, Transformer)
    r, h = count("rank", rank), model.hidden_size
    adapted = _targets(targets)
    broadcast(rank=r, **model.numbers())

    def rows_and_columns(layer: Layer) -> Result:
        """The sum of both sides of each adapted matrix of a layer."""
        mixer, mlp = _attention_and_mlp(layer)
        sides: Result = 0
        for name in adapted:
            matrices = mlp.matrices(h) if name == "mlp" else (mixer.matrix(name, h),)
            sides = sides + sum(m.rows + m.columns for m in matrices)
        return sides

    return r * over_layers(model, rows_and_columns)


def _targets(targets: object) -> list[str]:
    if not isinstance(targets, (list, tuple, set, frozenset)):
        refuse("targets", targets, f"is no list of matrices out of {', '.join(MATRICES)}")
    names = [choice("targets", name, MATRICES) for name in targets]
    return names or refuse("targets", targets, "is empty")


def _attention_and_mlp(layer: Layer) -> tuple[Attention, Mlp]:
    """Both parts of a plain layer; a layer of other parts is refused."""
    mixer, mlp = layer.mixer, layer.mlp
    if not isinstance(mixer, Attention) or not isinstance(mlp, Mlp) or layer.beside:
        refuse("model", layer, "has layers other than attention with a plain MLP")
    return mixer, mlp


@dataclass(frozen=True)
class LoraMemory(Breakdown):
    """Bytes at the peak of a step of fine-tuning with LoRA, part by part.

    Frozen weights; adapters with all their states; `activations`, what backward needs;
    `logits`, the two tensors of them at the loss.
    """

    weights: Result
    adapters: Result
    activations: Result
    logits: Result


def lora_memory(
    model: Transformer,
    micro_batch_size: Number,
    rank: Number = 8,
    targets: Collection[str] = ("query", "value"),
    *,
    weight_bytes: Number = 2,
    recipe: str | Recipe = "pure_bf16",
    sequence_length: Number | None = None,
) -> LoraMemory:
    """The bytes of fine-tuning with LoRA on one GPU, part by part.

    Frozen weights have neither gradients nor states, and a frozen matrix does not need
    its input for backward: of what full training keeps, a layer drops 2sbh + 2sbf where
    the MLP is frozen, and 2sbh where queries, keys and values are. The rest stays,
    since the gradient passes through every layer. Embedding and head stay in 16 bits
    where `weight_bytes` is less (0.5625 for 4-bit NF4 with a 32-bit factor for every
    64). Measured peaks in 16 bits were 3 to 17 % more (litgpt).

    >>> llama = Transformer.llama(32, 4096, 32, 32, 11008, 32000, sequence_length=1304)
    >>> peak = lora_memory(llama, micro_batch_size=1)
    >>> f"{peak.total / 1e9:.1f} GB, measured 21.3"
    '19.2 GB, measured 21.3'
    """
    model = of_length(model, sequence_length)
    adapted, bytes_each = _targets(targets), known_recipe(recipe).total
    b, w = count("micro_batch_size", micro_batch_size), quantity("weight_bytes", weight_bytes)
    broadcast(micro_batch_size=b, weight_bytes=w, rank=count("rank", rank), **model.numbers())
    h, tokens = model.hidden_size, b * model.sequence_length
    reads_frozen = not {"query", "key", "value"} & {*adapted}

    def dropped(layer: Layer) -> Result:
        """Values a token that only frozen matrices would have needed for backward."""
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


def muon_overhead(hidden_size: Number, batch_tokens: Number, iterations: Number = 5) -> Result:
    """The FLOPs that Muon adds, as a share of a step's: at most T·m/B.

    Each of T steps of Newton and Schulz multiplies the momentum of a matrix with
    itself; m is the smaller side, B the tokens in a step.

    Source: Jordan et al., Muon, kellerjordan.github.io/posts/muon, runtime analysis.

    >>> round(muon_overhead(16384, 16e6), 4)
    0.0051
    """
    m, B, T = counts(hidden_size=hidden_size, batch_tokens=batch_tokens, iterations=iterations)
    return T * m / B


def offload_seconds(parameters: Number, host_bandwidth: Number, num_gpus: Number = 1) -> Result:
    """Seconds a step to send gradients to the host and weights back: 4P/(n·b).

    The host keeps main weights and Adam's states and does the update; each of n GPUs
    sends its n-th of the 16-bit gradients, and gets as much of the weights. The
    update's own time comes on top, and part of both hides behind the backward pass.

    Source: Ren et al., ZeRO-Offload, arXiv 2101.06840, sections 3 and 4.

    >>> round(offload_seconds(8e9, host_bandwidth=25e9), 2)
    1.28
    """
    P, n = counts(parameters=parameters, num_gpus=num_gpus)
    b = quantity("host_bandwidth", host_bandwidth)
    broadcast(parameters=P, host_bandwidth=b, num_gpus=n)
    return 4 * P / (n * b)
