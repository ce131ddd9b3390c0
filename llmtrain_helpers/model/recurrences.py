"""Mixers that carry a state from token to token. Shared by all chapters.

Their matrices are counted like those of any layer. We leave out the scan itself: the few
operations per number of the state, the convolution before it, and the values that both
store for backward, so we can't count the activations of a model that has them.

Sources: the modelling classes of Hugging Face transformers 5.23; Gu and Dao (arXiv
2312.00752, 2405.21060); Yang et al. (arXiv 2412.06464); Kimi Linear (arXiv 2510.26692).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from llmtrain_helpers.checks import Size, broadcast, count, flag
from llmtrain_helpers.model.parts import Matrix, Mixer


@dataclass(frozen=True)
class Recurrence(Mixer):
    """A mixer with a state and a convolution over the last `kernel_size` tokens."""

    kernel_size: Size

    def __post_init__(self) -> None:
        sizes = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type == "bool":
                flag(item.name, value)
            else:
                least = int(item.name not in ("kernel_size", "low_rank"))  # some have none
                sizes[item.name] = count(item.name, value, least)
                object.__setattr__(self, item.name, sizes[item.name])
        broadcast(**sizes)

    def convolved(self) -> Size:
        """Values per token that the convolution runs over."""
        return 0

    def others(self) -> Size:
        """Parameters of the convolution, with one kernel per value."""
        return self.convolved() * self.kernel_size


@dataclass(frozen=True)
class Mamba(Recurrence):
    """Mamba: `inner_size` channels, each with a state of `state_size`.

    `normed` adds norms on the step and on the state's input and output (Jamba).

    >>> Mamba(4, 1536, 16, 48).parameters(768)
    3770880
    """

    inner_size: Size
    state_size: Size
    step_rank: Size
    bias: bool = False
    conv_bias: bool = True
    normed: bool = False

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices in (with the gate), to the step and the state's two, of the step, out."""
        h, e, r = hidden_size, self.inner_size, self.step_rank
        return (
            Matrix(h, 2 * e, self.bias * 2 * e, name="value_and_gate"),
            Matrix(e, r + 2 * self.state_size, name="step_rank_and_state"),
            Matrix(r, e, e, name="step"),
            Matrix(e, h, self.bias * h, name="output"),
        )

    def norms(self) -> Size:
        """Parameters of the norms on the step and on the state's two."""
        return self.normed * (self.step_rank + 2 * self.state_size)

    def convolved(self) -> Size:
        """All channels pass the convolution."""
        return self.inner_size

    def others(self) -> Size:
        """The convolution, the decay of each number of the state, and the skip connection."""
        e = self.inner_size
        return super().others() + self.conv_bias * e + e * self.state_size + e


@dataclass(frozen=True)
class Mamba2(Recurrence):
    """Mamba 2: heads that decay as a whole; `groups` share the state's input and output.

    >>> Mamba2(4, 8192, 128, 128, 8).parameters(4096)
    109627776
    """

    inner_size: Size
    num_heads: Size
    state_size: Size
    groups: Size
    bias: bool = False
    out_bias: bool = False
    conv_bias: bool = True
    normed: bool = True

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices in (with the gate, the state's two and the step) and out."""
        h, e = hidden_size, self.inner_size
        wide = e + self.convolved() + self.num_heads
        return (
            Matrix(h, wide, self.bias * wide, name="value_gate_state_and_step"),
            Matrix(e, h, self.out_bias * h, name="output"),
        )

    def norms(self) -> Size:
        """Parameters of the output norm."""
        return self.normed * self.inner_size

    def convolved(self) -> Size:
        """The channels, and the state's input and output, pass through the convolution."""
        return self.inner_size + 2 * self.groups * self.state_size

    def others(self) -> Size:
        """The convolution, and per head a step, a decay and a skip connection."""
        more = self.conv_bias * self.convolved() + 3 * self.num_heads
        return super().others() + more


@dataclass(frozen=True)
class DeltaNet(Recurrence):
    """Gated delta rule: keys write values into a state, and erase what they wrote.

    >>> DeltaNet(4, 16, 32, 128, 128).parameters(2048)  # Qwen3-Next
    33718336
    """

    num_key_heads: Size
    num_value_heads: Size
    key_dim: Size
    value_dim: Size

    @property
    def _widths(self) -> tuple[Size, Size]:
        """The numbers per token in keys, and in values."""
        keys = self.num_key_heads * self.key_dim
        return keys, self.num_value_heads * self.value_dim

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices to queries, keys, values and gate, to two numbers a head, and back."""
        h, (k, v), n = hidden_size, self._widths, self.num_value_heads
        return (
            Matrix(h, 2 * k + 2 * v, name="query_key_value_and_gate"),
            Matrix(h, 2 * n, name="decay_and_step"),
            Matrix(v, h, name="output"),
        )

    def norms(self) -> Size:
        """Parameters of the norm that the values of all heads share."""
        return self.value_dim

    def convolved(self) -> Size:
        """Queries, keys and values pass the convolution."""
        keys, values = self._widths
        return 2 * keys + values

    def others(self) -> Size:
        """The convolution, and a decay and a step for each head."""
        return super().others() + 2 * self.num_value_heads


@dataclass(frozen=True)
class KimiDelta(Recurrence):
    """Kimi delta attention: a delta rule with a separate decay for each channel of the keys.

    Decay and gate go through `low_rank` numbers, or directly if that's 0.

    >>> KimiDelta(4, 32, 128, 128).parameters(2304)
    39514144
    """

    num_heads: Size
    key_dim: Size
    low_rank: Size

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices to queries, keys, values, decay and gate, to a number a head, and back."""
        h, r, wide = hidden_size, self.low_rank, self.num_heads * self.key_dim

        def over_rank(name: str) -> tuple[Matrix, ...]:
            if not r:
                return (Matrix(h, wide, name=name),)
            return Matrix(h, r, name=f"{name}_down"), Matrix(r, wide, name=f"{name}_up")

        return (
            Matrix(h, 3 * wide, name="query_key_and_value"),
            *over_rank("decay"),
            *over_rank("gate"),
            Matrix(h, self.num_heads, name="step"),
            Matrix(wide, h, name="output"),
        )

    def norms(self) -> Size:
        """Parameters of the norm that the values of all heads share."""
        return self.key_dim

    def convolved(self) -> Size:
        """Queries, keys and values pass the convolution."""
        return 3 * self.num_heads * self.key_dim

    def others(self) -> Size:
        """The convolution, a step for each channel and a decay for each head."""
        wide = self.num_heads * self.key_dim
        return super().others() + wide + self.num_heads


@dataclass(frozen=True)
class LightningAttention(Recurrence):
    """Linear attention with a gate and an output norm, without a convolution.

    >>> LightningAttention(0, 32, 128).parameters(4096)
    83886080
    """

    num_heads: Size
    head_dim: Size

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices to queries, keys, values and gate, and back."""
        h, wide = hidden_size, self.num_heads * self.head_dim
        together = Matrix(h, 4 * wide, name="query_key_value_and_gate")
        return (together, Matrix(wide, h, name="output"))

    def norms(self) -> Size:
        """Parameters of the norm over all heads."""
        return self.num_heads * self.head_dim


@dataclass(frozen=True)
class ShortConvolution(Recurrence):
    """A short convolution between two gates.

    >>> ShortConvolution(3, 2048).parameters(2048)
    16783360
    """

    inner_size: Size
    bias: bool = False

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices to the values and two gates, and back."""
        h, e = hidden_size, self.inner_size
        return (
            Matrix(h, 3 * e, self.bias * 3 * e, name="value_and_gates"),
            Matrix(e, h, self.bias * h, name="output"),
        )

    def convolved(self) -> Size:
        """The values pass the convolution."""
        return self.inner_size

    def others(self) -> Size:
        """The convolution, with its biases if it has any."""
        return super().others() + self.bias * self.inner_size


@dataclass(frozen=True)
class GatedRecurrence(Recurrence):
    """A real-gated linear recurrent unit next to a gate (Griffin, RecurrentGemma).

    >>> GatedRecurrence(4, 2560, 10).parameters(2560)
    20999680
    """

    inner_size: Size
    num_blocks: Size

    def matrices(self, hidden_size: Size) -> tuple[Matrix, ...]:
        """The matrices in, to the gate and out, and the recurrence's two gates, in blocks."""
        h, e, n = hidden_size, self.inner_size, self.num_blocks
        each = e // n
        return (
            Matrix(h, e, e, name="value"),
            Matrix(h, e, e, name="gate"),
            Matrix(each, each, each, n, n, name="input_gate"),
            Matrix(each, each, each, n, n, name="recurrence_gate"),
            Matrix(e, h, h, name="output"),
        )

    def convolved(self) -> Size:
        """All channels pass the convolution."""
        return self.inner_size

    def others(self) -> Size:
        """The convolution with its bias, and a decay for each channel."""
        return super().others() + 2 * self.inner_size
