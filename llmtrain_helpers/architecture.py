"""What the formulas take and give: a model's shape, an accelerator, a sum of parts.

Shared by all chapters. A `Transformer` is decoder-only, of the GPT or of the Llama
kind; the names of its numbers are those of Hugging Face configs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, cast

from llmtrain_helpers import families
from llmtrain_helpers.checks import (
    Number,
    Result,
    at_most,
    broadcast,
    count,
    counts,
    divides,
    flag,
    instance,
    is_array,
    quantity,
    rate,
    refuse,
    share,
    single,
)


@dataclass(frozen=True)
class Transformer:
    """The shape of a decoder-only transformer; make one with `gpt`, `llama`, `from_config`.

    Sizes are whole numbers, or NumPy arrays of them for a sweep over shapes (the number
    of experts excepted; such a sweep cannot be compared or hashed). Bad ones are refused with a ValueError that names the argument.

    `sequence_length` is the one that the model is trained with, in tokens;
    `num_positions` the rows of a learned position table, 0 where positions are rotary.

    >>> Transformer.gpt(96, 12288, 96, 50257, 2048).head_dim
    128
    """  # noqa: E501

    num_layers: Number
    hidden_size: Number
    num_heads: Number
    num_kv_heads: Number
    head_dim: Number
    intermediate_size: Number
    vocab_size: Number
    sequence_length: Number
    num_positions: Number = 0
    tied_embeddings: bool = False
    layer_norm: bool = False
    gated_mlp: bool = True
    bias: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    num_experts: int = 0
    experts_per_token: int = 0

    def __post_init__(self) -> None:
        may_be_zero = ("num_positions", "num_experts", "experts_per_token")
        for item in fields(self):
            value = getattr(self, item.name)
            if item.type == "bool":
                value = flag(item.name, value)
            else:
                value = count(item.name, value, least=int(item.name not in may_be_zero))
            object.__setattr__(self, item.name, value)
        broadcast(**vars(self))
        divides(num_heads=self.num_heads, num_kv_heads=self.num_kv_heads)
        self._check_experts()
        self._check_positions()

    def _check_experts(self) -> None:
        experts = single("num_experts", self.num_experts, least=0)
        chosen = single("experts_per_token", self.experts_per_token, least=0)
        at_most(experts_per_token=chosen, num_experts=experts)
        if experts and not chosen:
            refuse("experts_per_token", chosen, f"leaves num_experts={experts} unused")

    def _check_positions(self) -> None:
        rows = self.num_positions
        if is_array(rows) or rows:
            at_most(sequence_length=self.sequence_length, num_positions=rows)

    @classmethod
    def gpt(
        cls,
        num_layers: Number,
        hidden_size: Number,
        num_heads: Number,
        vocab_size: Number,
        sequence_length: Number,
        tied_embeddings: bool = True,
        *,
        intermediate_size: Number | None = None,
        num_positions: Number | None = None,
    ) -> Transformer:
        """A GPT: learned positions, biases, LayerNorm, a GELU MLP of 4h, a final norm.

        The position table has one row for each of the `sequence_length` tokens, unless
        `num_positions` says that it has more.

        >>> Transformer.gpt(40, 6144, 48, vocab_size=50257, sequence_length=1024).bias
        True
        """
        h = count("hidden_size", hidden_size)
        s = count("sequence_length", sequence_length)
        f = 4 * h if intermediate_size is None else intermediate_size
        rows = s if num_positions is None else num_positions
        return cls(
            num_layers=num_layers,
            hidden_size=hidden_size,
            num_heads=num_heads,
            num_kv_heads=num_heads,
            head_dim=_head_dim(hidden_size, num_heads),
            intermediate_size=f,
            vocab_size=vocab_size,
            sequence_length=s,
            num_positions=count("num_positions", rows),
            tied_embeddings=tied_embeddings,
            layer_norm=True,
            gated_mlp=False,
            bias=True,
            qkv_bias=True,
        )

    @classmethod
    def llama(
        cls,
        num_layers: Number,
        hidden_size: Number,
        num_heads: Number,
        num_kv_heads: Number,
        intermediate_size: Number,
        vocab_size: Number,
        sequence_length: Number,
        head_dim: Number | None = None,
        tied_embeddings: bool = False,
        qkv_bias: bool = False,
        qk_norm: bool = False,
        num_experts: int = 0,
        experts_per_token: int = 0,
    ) -> Transformer:
        """A Llama: rotary positions, RMSNorm, gated MLP, no biases; experts when asked.

        `intermediate_size` is that of one expert where there are experts.

        >>> Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192).head_dim
        128
        """
        return cls(
            num_layers=num_layers,
            hidden_size=hidden_size,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=_head_dim(hidden_size, num_heads)
            if head_dim is None
            else head_dim,
            intermediate_size=intermediate_size,
            vocab_size=vocab_size,
            sequence_length=sequence_length,
            tied_embeddings=tied_embeddings,
            qkv_bias=qkv_bias,
            qk_norm=qk_norm,
            num_experts=num_experts,
            experts_per_token=experts_per_token,
        )

    @classmethod
    def from_config(
        cls, mapping: Mapping[str, Any], sequence_length: Number | None = None
    ) -> Transformer:
        """The shape that a Hugging Face `config.json` describes.

        Families: gpt2, llama, mistral, mixtral, qwen2, qwen3, qwen3_moe. Keys left out
        (and nulls) take the family's own defaults; but null `num_key_value_heads` are
        as many as the heads. `sequence_length` is that of training; without it, the
        file's maximum stands. Attention is taken as full, whatever window the file
        names. What would give another number is refused: another head than the language
        model's, code of the file's own, and structure that the family does not have.

        Source: the configuration classes of Hugging Face transformers 5.23.

        >>> model = Transformer.from_config({"model_type": "gpt2"}, sequence_length=512)
        >>> model.hidden_size, model.num_positions, model.sequence_length
        (768, 1024, 512)
        """
        shape = families.shape(mapping)
        gpt = "num_positions" in shape
        longest = shape["num_positions"] if gpt else shape.pop("sequence_length")
        s = longest if sequence_length is None else sequence_length
        return (cls.gpt if gpt else cls.llama)(sequence_length=s, **shape)


_RATES = ("bandwidth", "power", "link_bandwidth", "network_bandwidth")


@dataclass(frozen=True)
class Accelerator:
    """A GPU or TPU: memory in bytes, bandwidth in bytes/s, power in watts, peaks in FLOP/s.

    `link_bandwidth` and `network_bandwidth` are bytes/s that one GPU sends, one way,
    inside its node of `gpus_per_node` and out of it; `matmul_share` is the best share
    of its dense peak that a matrix product was measured to reach. What is unknown is
    None.

    `peaks` maps a number format (fp32, tf32, bf16, fp16, fp8, fp4) to the dense peak, the
    one without structured sparsity: twice that is what many datasheets print.

    >>> chip = Accelerator("A100", 80e9, 2.039e12, 400, {"bf16": 312e12})
    >>> chip.peak("bf16")
    312000000000000.0
    >>> chip.peak("fp8")
    Traceback (most recent call last):
    ...
    ValueError: format='fp8' has no peak on A100. Known: bf16
    """  # noqa: E501

    name: str
    memory: Number
    bandwidth: Number | None = None
    power: Number | None = None
    peaks: Mapping[str, Number] = field(default_factory=dict, hash=False)
    link_bandwidth: Number | None = None
    network_bandwidth: Number | None = None
    gpus_per_node: Number = 8
    matmul_share: Number | None = None

    def __post_init__(self) -> None:
        instance("name", self.name, str)
        object.__setattr__(self, "memory", quantity("memory", self.memory))
        if not is_array(self.memory) and self.memory < 1e6:
            meant = f"Write {self.memory:g}e9"
            refuse("memory", self.memory, f"is below a megabyte: in GB? {meant}")
        known = {"gpus_per_node": count, "matmul_share": share}
        for name in (*_RATES, *known):
            if getattr(self, name) is not None:
                checked = known.get(name, quantity)(name, getattr(self, name))
                object.__setattr__(self, name, checked)
        if not isinstance(self.peaks, Mapping):
            refuse("peaks", self.peaks, "is no mapping of formats to FLOP/s")
        peaks = {str(key): rate(f"peaks[{key!r}]", x) for key, x in self.peaks.items()}
        object.__setattr__(self, "peaks", peaks)

    def peak(self, format: str) -> Result:
        """The dense peak for a number format, in FLOP/s; an error if there is none."""
        if not isinstance(format, str) or format not in self.peaks:
            known = ", ".join(self.peaks) or "none"
            refuse("format", format, f"has no peak on {self.name}. Known: {known}")
        return self.peaks[format]

    @property
    def training_format(self) -> str:
        """What models are trained in on it: bf16, or fp16 where it knows no bf16."""
        return "bf16" if "bf16" in self.peaks else "fp16"


class Breakdown:
    """A whole that is the sum of its named parts: base of what the counts return.

    A subclass is a frozen dataclass; each of its fields is a part, but for those that
    `_beside` names.
    """

    _beside: ClassVar[tuple[str, ...]] = ()

    def parts(self) -> dict[str, Result]:
        """Each part by its name, in order."""
        names = [item.name for item in fields(cast(Any, self))]
        return {name: getattr(self, name) for name in names if name not in self._beside}

    @property
    def total(self) -> Result:
        """The sum of the parts."""
        return sum(self.parts().values())

    def shares(self) -> dict[str, Result]:
        """Each part as a share of the total."""
        return {name: part / self.total for name, part in self.parts().items()}


def of_length(model: Transformer, sequence_length: Number | None) -> Transformer:
    """The model, trained with this sequence length if one is given."""
    instance("model", model, Transformer)
    if sequence_length is None:
        return model
    return replace(model, sequence_length=sequence_length)


def shared_out(size: Result, ways: Result) -> Result:
    """A share of so many ways: an exact int where it is one.

    >>> shared_out(96, 8), shared_out(97, 8)
    (12, 12.125)
    """
    exact = isinstance(size, int) and isinstance(ways, int) and size % ways == 0
    return size // ways if exact else size / ways


def _head_dim(hidden_size: Number, num_heads: Number) -> Result:
    h, a = counts(hidden_size=hidden_size, num_heads=num_heads)
    divides(hidden_size=h, num_heads=a)
    return h // a
