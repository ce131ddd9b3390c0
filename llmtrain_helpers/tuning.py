"""How a model is adapted: `Tuning`, and what learns under it. Shared by chapters 09 and 13.

Sources: Hu et al. (arXiv 2106.09685), section 4, for LoRA; Dettmers et al. (arXiv
2305.14314), section 3, for 4 bits; what Hugging Face's transformers and PEFT do was
counted with PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

from llmtrain_helpers.checks import (
    Amount,
    Count,
    Number,
    Result,
    Size,
    Whole,
    as_sizes,
    at_most,
    cache_per_model,
    checked,
    choice,
    given,
    refuse,
    single,
)
from llmtrain_helpers.deprecated import OldName
from llmtrain_helpers.memory import LossKernel
from llmtrain_helpers.model.layers import Attention, LatentAttention, Layer, Matrix, Mixer, Part
from llmtrain_helpers.model.transformer import Transformer, over_layers
from llmtrain_helpers.parameters import parameters_per_gpu
from llmtrain_helpers.precision import RECIPES, Recipe, RecipeName
from llmtrain_helpers.results import Breakdown, greatest, minimum

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
"""The matrices of an MLP, an expert or a shared one; a router doesn't have an adapter."""

TARGETS = {
    "attention": (*MIXERS.values(),),
    "mlp": (*MLPS.values(),),
    "all-linear": (*MIXERS.values(), *MLPS.values()),
}
"""Groups of matrices by name; PEFT's "all-linear" leaves out the head."""

HEAD = "lm_head"
"""The output matrix, which can also have an adapter."""

Optimizer: TypeAlias = Literal[
    "adamw", "adamw_fused", "adamw_in_backward", "adamw_paged", "adamw_8bit", "sgd"
]

STATES: dict[Optimizer, int] = {
    "adamw": 2,
    "adamw_fused": 2,
    "adamw_in_backward": 2,
    "adamw_paged": 0,
    "adamw_8bit": 0,
    "sgd": 0,
}
"""Numbers that an optimizer stores per weight that learns, as wide as the weights.

PyTorch's own AdamW (`adamw`) updates all parameters at once, through a copy of them
(counted); `adamw_in_backward` updates each matrix as soon as it has its gradient, and frees
that; `adamw_paged` stores its states where they can move to the host, outside PyTorch's
memory, and we don't count their time on the bus; `adamw_8bit` stores two states in a byte
each, plus 4 bytes per 256."""

IN_8_BITS = 2 * (1 + 4 / 256)
"""Bytes of both states of an 8-bit AdamW, per number that learns."""

NF4_BITS = {True: 4 + 8 / 64 + 32 / (64 * 256), False: 4 + 32 / 64}
"""Bits per weight in NF4: one scale per 64 weights, in 8 bits or (without double quantisation)
in 32; with it, also one 32-bit scale per 256 scales (arXiv 2305.14314, section 3)."""


FULL_RECIPES = ("amp", "pure_bf16", "bf16", "bf16_fp32_grads", "bf16_both_grads")
"""Recipes with which all weights can learn: those of `RECIPES` whose products are in 16 bits.

`amp` (16 bytes) is what TRL and LLaMA-Factory do by default, `pure_bf16` (8) what torchtune
does, and `bf16` (16) what DeepSpeed does."""

METHODS = {
    "recipe": ("full",),
    "weight_bytes": ("lora",),
    "dropout": ("lora", "qlora"),
    "adapter_bytes": ("lora", "qlora"),
    "autocast": ("lora", "qlora"),
    "double_quantisation": ("qlora",),
    "wide_bytes": ("qlora",),
    "keeps_inputs": ("qlora",),
}
"""Options that only some methods have: with another they'd change nothing."""


Method: TypeAlias = Literal["full", "lora", "qlora"]
"""All weights, adapters with frozen weights, or adapters with frozen 4-bit weights."""


def _width(name: str, value: object) -> int:
    """Check the bytes of a number: 2 or 4."""
    size = single(name, value)
    if size not in (2, 4):
        refuse(name, value, "is neither 2 nor 4 bytes")
    return size


Width: TypeAlias = Annotated[int, _width]


class TuningOptions(TypedDict, total=False):
    """The fields of a `Tuning` that several methods have."""

    dropout: float
    double_quantisation: bool
    weight_bytes: int
    adapter_bytes: int
    autocast: bool
    wide_bytes: int
    stream_bytes: int | None
    optimizer: Optimizer
    loss_kernel: LossKernel
    reentrant: bool
    fused: bool
    keeps_inputs: bool


class TuningChanges(TuningOptions, total=False):
    """All fields of a `Tuning`."""

    method: Method
    rank: int
    targets: str | Collection[str]
    recipe: RecipeName | None


@checked
@dataclass(frozen=True)
class Tuning:
    """How a model is adapted: training all its weights, or adapters with frozen weights.

    method               "full", "lora", or "qlora": the frozen matrices in 4 bits
    rank                 r: an adapter is a matrix of m × r and one of r × n; 0 if "full"
    targets              matrices that have one, by PEFT's names (q_proj, …, lm_head), or
                         "all-linear", "attention" or "mlp"
    recipe               bytes of each weight if all of them learn: one of `FULL_RECIPES`, by
                         default "amp"
    dropout              share of an adapter's input that is dropped
    double_quantisation  whether the scales of 4-bit weights are quantised themselves
    weight_bytes         of each frozen weight that isn't in 4 bits: 2, or 4
    adapter_bytes        of each weight of the adapters: 4 is PEFT's default, or 2
    autocast             whether products with 32-bit adapters are made in 16 bits
    wide_bytes           of embedding, head and norms with 4-bit weights: 2, or 4 as
                         PEFT's `prepare_model_for_kbit_training` makes them
    stream_bytes         of what flows from layer to layer: 2 or 4; None for `wide_bytes`
    optimizer            one of `STATES`
    loss_kernel          one of `LOSS_KERNELS`
    reentrant            whether recomputation is PyTorch's reentrant one, which goes
                         through to the end of a layer; the other stops early
    fused                whether norms and the MLP's activation store what fused kernels do
    keeps_inputs         whether 4-bit matrices store their inputs, as bitsandbytes' did in
                         2023 (0.41); now (0.50) they don't

    Made by `full`, `lora` and `qlora`. Raises ValueError for options that don't go together,
    or that change nothing with this method.
    Source: arXiv 2106.09685 section 4; arXiv 2305.14314 section 3; PEFT's defaults.

    >>> Tuning.qlora(rank=8, targets=["q_proj", "v_proj"]).targets
    ('q_proj', 'v_proj')
    """

    method: Method
    rank: Whole[int] = 0
    targets: str | Collection[str] = ()
    dropout: Amount[float] = 0
    double_quantisation: bool = True
    weight_bytes: Width = 2
    adapter_bytes: Width = 4
    autocast: bool = True
    wide_bytes: Width = 2
    stream_bytes: Width | None = None
    optimizer: Optimizer = "adamw"
    loss_kernel: LossKernel = "transformers"
    reentrant: bool = False
    fused: bool = False
    keeps_inputs: bool = False
    recipe: RecipeName | None = None

    def __post_init__(self) -> None:
        if self.stream_bytes is None:
            object.__setattr__(self, "stream_bytes", self.wide_bytes)
        if self.dropout >= 1:
            refuse("dropout", self.dropout, "is not below 1: a share, not a percentage")
        for option in fields(self):
            methods, value = METHODS.get(option.name), getattr(self, option.name)
            default = isinstance(value, (int, float, str, type(None))) and value == option.default
            if methods and self.method not in methods and not default:
                problem = f"changes nothing with method={self.method!r}"
                if self.is_full and option.name == "weight_bytes":
                    refuse("weight_bytes", value, f"{problem}: choose a recipe, as recipe='amp'")
                refuse(option.name, value, f"{problem}: it's for {' and '.join(methods)}")
        if self.is_full:
            for name, value in {"rank": self.rank, "targets": self.targets}.items():
                if value not in (0, (), []):
                    refuse(name, value, "goes with adapters: full training has none")
            object.__setattr__(self, "targets", ())
            chosen = choice("recipe", "amp" if self.recipe is None else self.recipe, RECIPES)
            if chosen not in FULL_RECIPES:
                problem = f"isn't planned with tuning, only {', '.join(FULL_RECIPES)} are"
                refuse("recipe", chosen, f"{problem}: their products are in 16 bits")
            object.__setattr__(self, "recipe", chosen)
            return
        if self.rank == 0:
            refuse("rank", self.rank, "is not positive: adapters have at least 1")
        object.__setattr__(self, "targets", _targeted(self.targets))

    @classmethod
    def full(cls, recipe: RecipeName = "amp", **options: Unpack[TuningOptions]) -> Tuning:
        """Train all weights, with the bytes of a recipe; options as in `Tuning`."""
        return cls("full", recipe=recipe, **options)

    @classmethod
    def lora(
        cls,
        rank: int = 16,
        targets: str | Collection[str] = "all-linear",
        **options: Unpack[TuningOptions],
    ) -> Tuning:
        """Train adapters of a rank and freeze the weights; options as in `Tuning`."""
        return cls("lora", rank, targets, **options)

    @classmethod
    def qlora(
        cls,
        rank: int = 16,
        targets: str | Collection[str] = "all-linear",
        **options: Unpack[TuningOptions],
    ) -> Tuning:
        """Train adapters and freeze the weights in 4 bits; options as in `Tuning`."""
        return cls("qlora", rank, targets, **options)

    @property
    def is_full(self) -> bool:
        """Whether all weights learn."""
        return self.method == "full"

    @property
    def bytes_of(self) -> Recipe:
        """Bytes per number that learns: those of the recipe, or an adapter's."""
        if self.recipe is not None:
            return RECIPES[self.recipe]
        width = self.adapter_bytes
        return Recipe("adapters", width, width, 0, 0, 2 * width)

    @property
    def optimizer_bytes(self) -> Result:
        """Bytes of optimizer states per number that learns, without main weights."""
        if self.optimizer == "adamw_8bit":
            return IN_8_BITS
        return STATES[self.optimizer] // 2 * self.bytes_of.optimizer

    @property
    def matrix_bytes(self) -> float:
        """Bytes of each frozen weight in the layers' matrices: 0.516 in 4 bits."""
        quantised = NF4_BITS[self.double_quantisation] / 8
        return quantised if self.method == "qlora" else self.weight_bytes

    @property
    def other_bytes(self) -> int:
        """Bytes of each frozen weight of embedding, head and norms."""
        return self.wide_bytes if self.method == "qlora" else self.weight_bytes

    def replace(self, **changes: Unpack[TuningChanges]) -> Tuning:
        """Return the same tuning with some of its fields changed."""
        return replace(self, **changes)

    but = OldName("replace")


def _targeted(targets: object) -> tuple[str, ...]:
    """PEFT's names of the targeted matrices, each once."""
    if isinstance(targets, str):
        targets = (targets,)
    if not isinstance(targets, (list, tuple, set, frozenset)):
        refuse("targets", targets, "isn't a list of matrices or one of the groups")
    choices = dict.fromkeys((*TARGETS, *TARGETS["all-linear"], HEAD))
    chosen = [choice("targets", name, choices) for name in targets]
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
    tuned_parameters(model, tuning)  # refuses targets that the model doesn't have
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
    """A matrix of a layer: whether it has an adapter, its input, and the matrices before it.

    `reads` names the input tensor, the same for all matrices that read it; `before` are the
    matrices of the same part that the input has passed through.
    """

    matrix: Matrix
    adapted: bool
    reads: str
    before: tuple[str, ...]

    @property
    def width(self) -> Size:
        """Values per token that the matrix reads; for experts, those of the chosen ones."""
        return self.matrix.active * self.matrix.rows


def sites(part: Part, hidden_size: Size, tuning: Tuning) -> tuple[Site, ...]:
    """List the matrices of a mixer or an MLP, as the gradient sees them."""
    h = hidden_size
    named = _of_mixer(part, h) if isinstance(part, Mixer) else _of_mlp(part, h)
    return tuple(
        Site(matrix, name in tuning.targets, matrix.name if before else "input", before)
        for matrix, name, before in named
    )


def _of_mixer(mixer: Mixer, hidden_size: Size) -> Iterator[tuple[Matrix, str, tuple[str, ...]]]:
    """The matrices of attention, PEFT's names of them, and those that come before each."""
    if not isinstance(mixer, (Attention, LatentAttention)):
        problem = "isn't attention, and nobody has counted what learns in it"
        refuse("model", type(mixer).__name__, problem)
    matrices = mixer.matrices(hidden_size)
    before = {
        "query_up": ("query_down",),
        "key_value_up": ("key_value_down",),
        "output": tuple(m.name for m in matrices if m.name != "output"),
    }
    for matrix in matrices:
        yield matrix, MIXERS.get(matrix.name, ""), before.get(matrix.name, ())


def _of_mlp(mlp: Part, hidden_size: Size) -> Iterator[tuple[Matrix, str, tuple[str, ...]]]:
    """The same of an MLP, of experts and of a shared one."""
    for matrix in mlp.matrices(hidden_size):
        stem = matrix.name.removeprefix("expert_").removeprefix("shared_")
        whose = matrix.name.removesuffix(stem)
        before = (f"{whose}gate", f"{whose}up") if stem == "down" else ()
        yield matrix, MLPS.get(stem, ""), before


def tuned_layers(
    model: Transformer, tuning: Tuning, recompute: str
) -> Iterator[tuple[Size, Layer, bool]]:
    """Group equal layers from the first up, and tell whether anything below learns.

    With adapters, nothing does below the first layer that has one, unless layers are
    recomputed, because then the embedding's output requires a gradient.
    """
    h = model.hidden_size
    flows = tuning.is_full or recompute == "full"
    for how_many, layer in model.layers:
        learns = any(site.adapted for part in layer.parts for site in sites(part, h, tuning))
        if not flows and learns:
            yield 1, layer, False
            yield how_many - 1, layer, True
        else:
            yield how_many, layer, flows
        flows = flows or learns


def flows_into(
    layer: Layer, hidden_size: Size, tuning: Tuning, flows: bool
) -> Iterator[tuple[Part, bool]]:
    """The parts of a layer, and whether anything before each one's input learns."""
    arrives = flows
    for mixer in layer.mixers:
        yield mixer, flows
        arrives = arrives or any(site.adapted for site in sites(mixer, hidden_size, tuning))
    if layer.mlp is not None:
        yield layer.mlp, flows if layer.parallel else arrives


def own_copies(tuning: Tuning) -> tuple[bool, int]:
    """Tell whether each adapter stores its own copy of its input, and the bytes per value."""
    wide = tuning.adapter_bytes == 4
    return wide or tuning.dropout > 0, 4 if wide and not tuning.autocast else 2


def needs_input(site: Site, tuning: Tuning) -> bool:
    """Tell whether a matrix stores its input: it learns, or an adapter without a copy does."""
    quantised = tuning.keeps_inputs and tuning.method == "qlora"
    return tuning.is_full or quantised or (site.adapted and not own_copies(tuning)[0])


@dataclass(frozen=True)
class TunedParameters(Breakdown[Size]):
    """Parameters of an adapted model, by what happens to them.

    `frozen` are in the layers' matrices; `wide` are in embedding, head, norms and biases,
    which 4 bits don't change; `learning` are those that training changes.
    """

    frozen: Size
    wide: Size
    learning: Size


@cache_per_model
@checked
def tuned_parameters(
    model: Transformer, tuning: Tuning, tensor_parallel: Count[Number] = 1
) -> TunedParameters:
    """Count the parameters that learn (all of them, or r(m + n) per adapter) and the rest.

    An adapter has rank r next to an m × n matrix; each expert has its own. Each of t
    tensor-parallel GPUs has a t-th of the matrices (`parameters_per_gpu`) and, as in PEFT
    with Megatron's layers, r(m + n/t) of an adapter if the columns are split, and r(m/t + n)
    if the rows are split, which applies to attention's output and an MLP's down projection.
    Raises ValueError for targets that the model doesn't have, and for a rank above that of
    all its matrices.

    Source: arXiv 2106.09685, section 4; PEFT prints the doctest's number, and has the split
    in tuners/lora/tp_layer.py (NeMo and Megatron-Bridge split both halves: less).

    >>> llama = Transformer.llama(32, 4096, 32, 8, 14336, 128256, sequence_length=8192)
    >>> tuned_parameters(llama, Tuning.lora(rank=8)).learning
    20971520
    """
    check_tuned(model)
    [t] = as_sizes(tensor_parallel)
    P = parameters_per_gpu(model, t)
    if tuning.is_full:
        return TunedParameters(frozen=0, wide=0, learning=P)
    frozen = -(-over_layers(model, matrix_weights(model)) // t)
    learning = over_layers(model, _adapter_parameters(model, tuning, t))
    h, parts = model.hidden_size, [part for layer in model.kinds for part in layer.parts]
    adapted = [site.matrix for part in parts for site in sites(part, h, tuning) if site.adapted]
    sides = [(matrix.rows, matrix.columns) for matrix in adapted]
    if HEAD in tuning.targets:
        learning = learning + tuning.rank * (h - (-model.vocab_size // t))
        sides.append((h, model.vocab_size))
    if not sides:
        refuse("targets", tuning.targets, "are in no layer of the model")
    check_rank(tuning.rank, sides)
    return TunedParameters(frozen=frozen, wide=P - frozen, learning=learning)


def check_tuned(model: Transformer) -> None:
    """Refuse a model whose tuning hasn't been counted."""
    if given(model.embedding_size):
        problem = "is narrower than the model, and nobody has counted adapting that"
        refuse("embedding_size", model.embedding_size, problem)


def matrix_weights(model: Transformer) -> Callable[[Layer], Size]:
    """Count the weights in a layer's matrices, without biases."""
    h = model.hidden_size
    return lambda layer: sum(m.copies * m.weights for m in layer.matrices(h))


def check_rank(rank: Size, adapted: Iterable[tuple[Size, Size]]) -> None:
    """Refuse a rank above that of all adapted matrices, given by their two sides."""
    highest = greatest(minimum(rows, columns) for rows, columns in adapted)
    at_most("rank", rank, "the rank of the largest adapted matrix", highest)


def _adapter_parameters(
    model: Transformer, tuning: Tuning, tensor_parallel: Size
) -> Callable[[Layer], Size]:
    """Count a GPU's weights of a layer's adapters."""
    r, h, t = tuning.rank, model.hidden_size, tensor_parallel

    def of(layer: Layer) -> Size:
        adapted = [s.matrix for p in layer.parts for s in sites(p, h, tuning) if s.adapted]
        return r * sum(m.copies * _both_sides(m, t) for m in adapted)

    return of


def _both_sides(matrix: Matrix, tensor_parallel: Size) -> Size:
    """Add a matrix's sides, dividing the one that it's split along by t."""
    split, whole = matrix.columns, matrix.rows
    if matrix.reads_parts():
        split, whole = whole, split
    return whole - (-split // tensor_parallel)
