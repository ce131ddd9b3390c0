"""The kinds of layers: each defines its matrices once. Shared by all chapters.

A `Layer` has a mixer (`Attention`, `LatentAttention`, or one of `recurrences`), an MLP
(`Mlp`, or `Experts`) and norms. `parts` says what a kind has to define. All counts are sums
of that over the layers, so a new kind only needs a class here.

Sources: Vaswani et al. (arXiv 1706.03762); DeepSeek-V2 (arXiv 2405.04434), section 2.1,
for latent attention; the modelling classes of Hugging Face transformers 5.23.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from llmtrain_helpers.checks import (
    Size,
    at_most,
    choice,
    divides,
    flag,
    given,
    instance,
    refuse,
    single,
)
from llmtrain_helpers.model.parts import Matrix as Matrix, Mixer as Mixer, Part as Part


@dataclass(frozen=True)
class Attention(Mixer):
    """Query heads over groups of key-value heads: a of size d, and k of sizes d and `value_dim`.

    - `biases`: the projections that have a bias, out of "qkvo";
    - `qk_norm`: a norm on queries and keys, "head" (one for all heads), "each" (one for
      each head) or "" (none);
    - `qk_norm_size`: 2 if that norm also shifts;
    - `gate`: multiplies the output, with a matrix to all its values ("values") or to one
      for each head ("heads");
    - `sinks`: a score for each head that belongs to no token;
    - `out_norm`: a norm on the output;
    - `twice`: scores are computed twice, because their difference counts;
    - `more`: further parameters;
    - `window`: how far back a token looks, itself included (0: to the start);
    - `chunked`: the window moves on in steps of its own length.

    The last two change no matrix, and shapes that differ only there are equal.

    >>> Attention(32, 8, 128).parameters(4096)
    41943040
    """

    num_heads: Size
    num_kv_heads: Size
    head_dim: Size
    value_dim: Size = 0  # as head_dim
    biases: str = ""
    qk_norm: str = ""
    qk_norm_size: Size = 1
    gate: str = ""
    sinks: bool = False
    out_norm: bool = False
    twice: bool = False
    more: Size = 0
    window: Size = field(default=0, compare=False)
    chunked: bool = field(default=False, compare=False)

    _sizes = ("num_heads", "num_kv_heads", "head_dim")
    _maybe = ("value_dim", "more", "window", "qk_norm_size")
    _flags = ("sinks", "out_norm", "twice", "chunked")

    def __post_init__(self) -> None:
        super().__post_init__()
        divides("num_heads", self.num_heads, "num_kv_heads", self.num_kv_heads)
        choice("qk_norm", self.qk_norm, ["", "head", "each"])
        choice("gate", self.gate, ["", "values", "heads"])
        if not isinstance(self.biases, str) or {*self.biases} - {*"qkvo"}:
            refuse("biases", self.biases, "names projections other than q, k, v and o")

    @property
    def _widths(self) -> tuple[Size, Size, Size, Size]:
        """The numbers per token in queries, keys, values and output."""
        a, k, d = self.num_heads, self.num_kv_heads, self.head_dim
        if given(self.value_dim):
            return a * d, k * d, k * self.value_dim, a * self.value_dim
        queries, keys = a * d, k * d
        return queries, keys, keys, queries

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices to queries, keys and values, back, and to the gate."""
        h, (q, k, v, out) = hidden_size, self._widths
        plain = (
            Matrix(h, q, ("q" in self.biases) * q, name="query"),
            Matrix(h, k, ("k" in self.biases) * k, name="key"),
            Matrix(h, v, ("v" in self.biases) * v, name="value"),
            Matrix(out, h, ("o" in self.biases) * h, name="output"),
        )
        if not self.gate:
            return plain
        gated = {"values": out, "heads": self.num_heads}[self.gate]
        return (*plain, Matrix(h, gated, name="gate"))

    def norms(self) -> Size:
        """Parameters of the norms on queries and keys, and on the output."""
        q, k, _, out = self._widths
        one = {"": 0, "head": 2 * self.head_dim, "each": q + k}[self.qk_norm]
        return self.qk_norm_size * one + self.out_norm * out

    def others(self) -> Size:
        """Sinks, one for each head, and further parameters."""
        return self.sinks * self.num_heads + self.more

    def products(self) -> Size:
        """Numbers multiplied for a score and for the sum of values: usually 2ad."""
        q, _, _, out = self._widths
        return (1 + self.twice) * (q + out)

    def heads(self) -> dict[str, Size]:
        """Query heads and key-value heads, which tensor parallelism splits."""
        return {"num_heads": self.num_heads, "num_kv_heads": self.num_kv_heads}

    def score_heads(self) -> Size:
        """Scores of a pair of tokens: one for each head."""
        return self.num_heads

    def activations(self, hidden_size: Size, fused: bool) -> tuple[Size, Size]:
        """Queries, keys, values and output; inputs of norms; gates and their outputs."""
        if self.twice:
            return super().activations(hidden_size, fused)
        q, k, v, out = self._widths
        gated = {"": 0, "values": 2 * out, "heads": self.num_heads + out}[self.gate]
        normed = bool(self.qk_norm) * (q + k) + self.out_norm * out
        return 0, q + k + v + out + normed + gated

    def norm_inputs(self) -> tuple[Size, Size]:
        """Queries and keys, if they have a norm."""
        q, k, _, _ = self._widths
        return 0, bool(self.qk_norm) * (q + k)

    def repeated(self) -> Size:
        """Extra copies of the keys and values that several query heads share."""
        q, k, v, out = self._widths
        return q - k + out - v


@dataclass(frozen=True)
class LatentAttention(Mixer):
    """Multi-head latent attention (MLA): keys and values made from a few numbers per token.

    A token is compressed to `kv_rank` numbers (a norm, then a matrix to all heads' plain keys
    of `plain_dim` and values of `value_dim`), and to one key of `rotary_dim` that all heads
    share. Queries are made the same way from `q_rank` numbers, or directly if that's 0.
    `bias` is on the two matrices that compress and on the output; `gate` is as in
    `Attention`.

    >>> LatentAttention(128, 1536, 512, 128, 64, 128).parameters(7168)  # DeepSeek-V3
    187105280
    """

    num_heads: Size
    q_rank: Size
    kv_rank: Size
    plain_dim: Size
    rotary_dim: Size
    value_dim: Size
    bias: bool = False
    gate: str = ""
    window: Size = field(default=0, compare=False)

    _sizes = ("num_heads", "kv_rank", "plain_dim", "rotary_dim", "value_dim")
    _maybe = ("q_rank", "window")
    _flags = ("bias",)

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("gate", self.gate, ["", "values", "heads"])
        object.__setattr__(self, "q_rank", single("q_rank", self.q_rank, least=0))

    @property
    def num_kv_heads(self) -> Size:
        """Key-value heads: as many as query heads."""
        return self.num_heads

    @property
    def head_dim(self) -> Size:
        """The size of a head of queries and keys: the plain part and the rotary one."""
        return self.plain_dim + self.rotary_dim

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices to queries, to keys and values, back, and to the gate."""
        h, a, r, c = hidden_size, self.num_heads, self.q_rank, self.kv_rank
        queries, out = a * self.head_dim, a * self.value_dim
        squeezed = c + self.rotary_dim
        matrices = [Matrix(h, queries, name="query")]
        if r:
            down = Matrix(h, r, self.bias * r, name="query_down")
            matrices = [down, Matrix(r, queries, name="query_up")]
        matrices += [
            Matrix(h, squeezed, self.bias * squeezed, name="key_value_down"),
            Matrix(c, a * self.plain_dim + out, name="key_value_up"),
            Matrix(out, h, self.bias * h, name="output"),
        ]
        if self.gate:
            matrices += [Matrix(h, {"values": out, "heads": a}[self.gate], name="gate")]
        return tuple(matrices)

    def norms(self) -> Size:
        """Parameters of the norms on the squeezed queries, and on keys and values."""
        return self.q_rank + self.kv_rank

    def products(self) -> Size:
        """Numbers multiplied for a score, both parts of the key, and for the sum of values."""
        return self.num_heads * (self.head_dim + self.value_dim)

    def heads(self) -> dict[str, Size]:
        """The number of heads; once expanded, each has its own keys and values."""
        return {"num_heads": self.num_heads}

    def score_heads(self) -> Size:
        """Scores of a pair of tokens: one for each head."""
        return self.num_heads

    def activations(self, hidden_size: Size, fused: bool) -> tuple[Size, Size]:
        """The squeezed numbers, before and after their norm; queries, keys, values, the result."""
        squeezed = 2 * self.q_rank + 2 * self.kv_rank + self.rotary_dim
        a, out = self.num_heads, self.num_heads * self.value_dim
        gated = {"": 0, "values": 2 * out, "heads": a + out}[self.gate]
        return squeezed, 2 * a * self.head_dim + 2 * out + gated

    def norm_inputs(self) -> tuple[Size, Size]:
        """The squeezed numbers."""
        return self.q_rank + self.kv_rank, 0


@dataclass(frozen=True)
class Mlp(Part):
    """Two matrices around an activation, or three with a gate.

    `norm` adds a norm on the f values inside, `more` counts further parameters.

    >>> Mlp(14336).parameters(4096)
    176160768
    """

    intermediate_size: Size
    gated: bool = True
    bias: bool = False
    norm: bool = False
    more: Size = 0

    _sizes = ("intermediate_size",)
    _maybe = ("more",)
    _flags = ("gated", "bias", "norm")

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices up (two with a gate) and down."""
        h, f = hidden_size, self.intermediate_size
        up = Matrix(h, f, self.bias * f, name="up")
        down = Matrix(f, h, self.bias * h, name="down")
        return (up._replace(name="gate"), up, down) if self.gated else (up, down)

    def norms(self) -> Size:
        """Parameters of the norm inside, if there is one."""
        return self.norm * self.intermediate_size

    def others(self) -> Size:
        """Further parameters, as `more` says."""
        return self.more

    def activations(self, hidden_size: Size, fused: bool) -> tuple[Size, Size]:
        """Values before and after the activation; a gated MLP keeps the product's inputs too.

        A `fused` kernel doesn't keep the activated gate, but computes it again.
        """
        gated = 3 if fused else 4
        return 0, ((gated if self.gated else 2) + self.norm) * self.intermediate_size


@dataclass(frozen=True)
class Experts(Part):
    """MLPs from which a router chooses a few for each token, and perhaps one for all tokens.

    An `expert` only has matrices. `shared` is the MLP that every token uses (several count
    as one that's as wide), and `shared_gate` scales it by a number for each token.
    `router_bias` is on the router's scores, `more` counts further parameters.

    >>> Experts(Mlp(2048), 256, 8, Mlp(2048)).parameters(7168)
    11320164352
    """

    expert: Mlp
    num_experts: int
    experts_per_token: int
    shared: Mlp | None = None
    shared_gate: bool = False
    router_bias: bool = False
    more: Size = 0

    _maybe = ("more",)
    _flags = ("shared_gate", "router_bias")

    def __post_init__(self) -> None:
        super().__post_init__()
        instance("expert", self.expert, Mlp)
        if self.expert.norm or given(self.expert.more):
            refuse("expert", self.expert, "has more than matrices, but an expert can't have a norm")
        if self.shared is not None:
            instance("shared", self.shared, Mlp)
        for name in ("num_experts", "experts_per_token"):
            object.__setattr__(self, name, single(name, getattr(self, name)))
        chosen, experts = self.experts_per_token, self.num_experts
        at_most("experts_per_token", chosen, "num_experts", experts)

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices of the router, the experts, and the shared MLP."""
        h, n, chosen = hidden_size, self.num_experts, self.experts_per_token
        router = Matrix(h, n, self.router_bias * n, name="router")
        experts = [
            m._replace(copies=n, active=chosen, name=f"expert_{m.name}")
            for m in self.expert.matrices(h)
        ]
        shared = [
            m._replace(name=f"shared_{m.name}")
            for m in (self.shared.matrices(h) if self.shared else ())
        ]
        share = [Matrix(h, 1, name="share")] if self.shared_gate else []
        return (router, *experts, *shared, *share)

    def norms(self) -> Size:
        """Parameters of the norm inside the shared MLP, if there is one."""
        return self.shared.norms() if self.shared else 0

    def others(self) -> Size:
        """Further parameters, as `more` says, and those of the shared MLP."""
        return self.more + (self.shared.others() if self.shared else 0)

    def activations(self, hidden_size: Size, fused: bool) -> tuple[Size, Size]:
        """Values inside the chosen experts and the shared one; its result, where it has a gate."""
        _, of_one = self.expert.activations(hidden_size, fused)
        inside = self.experts_per_token * of_one
        if self.shared:
            inside = inside + self.shared.activations(hidden_size, fused)[1]
        return self.shared_gate * hidden_size, inside


@dataclass(frozen=True)
class Layer:
    """A mixer and an MLP, each with a residual connection; either may be missing.

    `norms` says how many norms of the hidden size it has, `norm_size` how many parameters
    each has per value: 1 (it scales), 2 (it also shifts) or 0. In a `parallel` layer, mixer
    and MLP have the same input; `beside` is a second mixer with the input of the first.

    >>> Layer(Attention(32, 8, 128), Mlp(14336)).parameters(4096)
    218112000
    """

    mixer: Mixer | None
    mlp: Mlp | Experts | None
    norms: int = 2
    norm_size: int = 1
    parallel: bool = False
    beside: Mixer | None = None

    def __post_init__(self) -> None:
        for name, kinds in {"mixer": Mixer, "mlp": Part, "beside": Mixer}.items():
            part = getattr(self, name)
            if part is not None:
                instance(name, part, kinds)
        if self.mixer is None and self.mlp is None:
            refuse("mixer", None, "leaves a layer without an mlp empty")
        flag("parallel", self.parallel)
        for name in ("norms", "norm_size"):
            value = single(name, getattr(self, name), least=0)
            object.__setattr__(self, name, value)

    @property
    def mixers(self) -> tuple[Mixer, ...]:
        """The mixer and the one beside it, if there are any."""
        return tuple(x for x in (self.mixer, self.beside) if x is not None)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The mixers, then the MLP."""
        return self.mixers + ((self.mlp,) if self.mlp is not None else ())

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """Its matrices: those of the mixers, then those of the MLP."""
        return tuple(m for part in self.parts for m in part.matrices(hidden_size))

    def every_other(self, hidden_size: Size) -> tuple[tuple[Matrix, ...], tuple[Matrix, ...]]:
        """The matrices whose results "alternate" recomputation keeps, and the others.

        Of the products of a layer, in the order of `matrices`, it keeps the first, the third
        and so on, and computes those between again. A router's and those of experts, which
        are computed in groups, don't count: they're all computed again.

        Source: torchtitan's activation_checkpoint.py, October 2025 and August 2026.

        >>> llama = Layer(Attention(32, 8, 128), Mlp(14336))
        >>> for matrices in llama.every_other(4096):
        ...     print(*(matrix.name for matrix in matrices))
        query value gate down
        key output up
        """
        kept: list[Matrix] = []
        again: list[Matrix] = []
        counted = 0
        for matrix in self.matrices(hidden_size):
            counts = not matrix.name.startswith(("router", "expert_"))
            counted += counts
            (kept if counts and counted % 2 else again).append(matrix)
        return tuple(kept), tuple(again)

    def expert_parameters(self, hidden_size: Size) -> Size:
        """Parameters of its experts, which expert parallelism splits."""
        experts = filter(Matrix.is_chosen, self.matrices(hidden_size))
        return sum(m.copies * (m.weights + m.biases) for m in experts)

    def norm_parameters(self, hidden_size: Size) -> Size:
        """Parameters of all its norms, including those inside its parts."""
        own = self.norms * (self.norm_size * hidden_size)
        return own + sum(part.norms() for part in self.parts)

    def parameters(self, hidden_size: Size) -> Size:
        """Parameters of all its parts and norms."""
        parts = sum(part.parameters(hidden_size) for part in self.parts)
        return parts + self.norm_parameters(hidden_size)


Stack: TypeAlias = tuple[tuple[Size, Layer], ...]
"""Layers from first to last: how many of a kind follow each other, and the kind."""


def pairs(s: Size, attention: str, mixer: Mixer) -> Size:
    """Pairs of tokens that are multiplied in a sequence of s.

    All s² if `attention` is "dense". If it's "causal", those that a token may see,
    including itself: s(s + 1)/2, or with a window of w only the last w of them.

    >>> pairs(8192, "causal", Attention(32, 8, 128, window=4096))
    25167872
    """
    if attention == "dense":
        return s**2
    w = mixer.window
    if not given(w):
        return s * (s + 1) // 2
    if mixer.chunked:
        whole, rest = s // w, s % w
        return whole * (w * (w + 1) // 2) + rest * (rest + 1) // 2
    unseen = (s > w) * (s - w)  # how many tokens the last one doesn't see
    return s * (s + 1) // 2 - unseen * (unseen + 1) // 2


def numbers(whole: Layer | Part) -> Iterator[tuple[str, object]]:
    """Each size and trait of a layer, or of a part of one, with its name."""
    for name, value in vars(whole).items():
        if isinstance(value, Part):
            yield from numbers(value)
        elif value is not None:
            yield name, value
