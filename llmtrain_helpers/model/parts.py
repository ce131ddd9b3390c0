"""What each kind of layer defines: `Part` and `Mixer`. Shared by all chapters.

A kind says which matrices there are, which of them a token passes through, what it keeps
for backward between them, and how many numbers are multiplied for each pair of tokens.
Parameters, FLOPs, activations and splits are sums of these over the layers.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from llmtrain_helpers.checks import Size, broadcast, count, flag, refuse


class Matrix(NamedTuple):
    """A matrix of `rows` × `columns`: a layer has `copies` of it, and a token uses `active` ones.

    `biases` is how many numbers are added to each result; `name` is its purpose, so that
    nobody has to know the order of a part's matrices.

    >>> Matrix(4096, 14336).weights
    58720256
    """

    rows: Size
    columns: Size
    biases: Size = 0
    copies: Size = 1
    active: Size = 1
    name: str = ""

    @property
    def weights(self) -> Size:
        """Numbers in one copy, without biases."""
        return self.rows * self.columns

    def reads_parts(self) -> bool:
        """Whether tensor parallelism splits its rows, as it splits the columns of those before it.

        Those that end a block do: attention's output and an MLP's down projection.
        """
        stem = self.name.removeprefix("expert_").removeprefix("shared_")
        return stem in ("output", "down")

    def is_chosen(self) -> bool:
        """Whether a token only uses some of the copies, as with experts."""
        return bool(self.copies != self.active)


class Part:
    """A kind of mixer or MLP; a subclass defines its matrices and what they keep."""

    _sizes: ClassVar[tuple[str, ...]] = ()
    _maybe: ClassVar[tuple[str, ...]] = ()  # sizes that may be zero
    _flags: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self._sizes + self._maybe:
            value = count(name, getattr(self, name), int(name in self._sizes))
            object.__setattr__(self, name, value)
        for name in self._flags:
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        broadcast(**vars(self))

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The part's matrices, in a layer of this hidden size."""
        raise NotImplementedError

    def matrix(self, name: str, hidden_size: Size) -> Matrix:
        """The matrix with this name."""
        return {m.name: m for m in self.matrices(hidden_size)}[name]

    def norms(self) -> Size:
        """Parameters of the norms inside."""
        return 0

    def others(self) -> Size:
        """Parameters that are neither in a matrix nor in a norm."""
        return 0

    def activations(self, hidden_size: Size, fused: bool) -> tuple[Size, Size]:
        """Values per token that are kept for backward between the matrices, without the input.

        First those that each GPU of a tensor-parallel group keeps, then those that the
        group shares out. Raises ValueError for a kind whose values haven't been counted.
        """
        problem = "stores activations that haven't been counted yet"
        refuse("layers", type(self).__name__, problem)

    def score_heads(self) -> Size:
        """Scores per pair of tokens: one per head."""
        return 0

    def norm_inputs(self) -> tuple[Size, Size]:
        """Values per token that norms on queries and keys read: not split by heads, and split."""
        return 0, 0

    def repeated(self) -> Size:
        """Extra values per token if each query head has its own keys and values."""
        return 0

    def parameters(self, hidden_size: Size) -> Size:
        """Parameters of its matrices with their biases, and others; without its norms."""
        counted = sum(m.copies * (m.weights + m.biases) for m in self.matrices(hidden_size))
        return counted + self.others()

    def active_weights(self, hidden_size: Size) -> Size:
        """Weights that a token is multiplied by; only the chosen experts count."""
        return sum(m.active * m.weights for m in self.matrices(hidden_size))

    def idle(self, hidden_size: Size) -> Size:
        """Parameters that a token doesn't use: those of the experts that weren't chosen."""
        matrices = self.matrices(hidden_size)
        return sum((m.copies - m.active) * (m.weights + m.biases) for m in matrices)


class Mixer(Part):
    """A part that mixes tokens: attention, or a recurrence."""

    window: Size = 0
    chunked: bool = False

    def products(self) -> Size:
        """Numbers multiplied for each pair of tokens."""
        return 0

    def heads(self) -> dict[str, Size]:
        """The heads that tensor parallelism splits, by name."""
        return {}
