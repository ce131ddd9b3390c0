"""A model's shape, the input of all formulas. Shared by all chapters.

A `Transformer` is decoder-only, a stack of layers of one kind or of several; the names of
its numbers are those of Hugging Face configs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from llmtrain_helpers.checks import (
    Exact,
    Number,
    Size,
    T,
    as_sizes,
    at_most,
    broadcast,
    count,
    flag,
    given,
    instance,
    single,
)
from llmtrain_helpers.model.layers import Experts, Layer, Stack, numbers
from llmtrain_helpers.model.one_kind import (
    changed,
    checked,
    keywords as keywords,
    of_keywords,
    share_of_heads,
)


@dataclass(frozen=True, init=False)
class Transformer:
    """The shape of a decoder-only transformer; make one with `gpt`, `llama`, `from_config`.

    `layers` are the layers from first to last, as pairs: how many of a kind follow each
    other, and the `Layer`. You can also describe a stack of one kind by keywords,
    `num_layers` to `experts_per_token`. Every shape has these attributes; if there are
    several kinds of layer, they describe the most frequent one.

    Sizes are whole numbers. For a sweep over shapes of one kind, they can be NumPy arrays
    (except for the number of experts); you can't compare or hash such a sweep.

    sequence_length     tokens of a sequence that the model is trained on
    num_positions       rows of a learned position table; 0 if positions are rotary
    final_norm          parameters of the last norm for each value: 2, 1 or 0
    embedding_norm      the same for a norm after the embedding
    embedding_size      width of an embedding that's narrower than the model, else 0
    head_bias           whether the output matrix has a bias
    more                other parameters outside the layers
    prediction_layers   layers that predict tokens beyond the next (MTP), counted separately

    Raises ValueError for a bad size, naming its argument.

    >>> Transformer.gpt(96, 12288, 96, 50257, 2048).head_dim
    128
    """

    layers: Stack
    hidden_size: Size
    vocab_size: Size
    sequence_length: Size
    num_positions: Size
    tied_embeddings: bool
    final_norm: int
    embedding_norm: int
    embedding_size: Size
    head_bias: bool
    more: Size
    prediction_layers: Size

    def __init__(
        self,
        *,
        hidden_size: Number,
        vocab_size: Number,
        sequence_length: Number,
        layers: Iterable[tuple[Number, Layer]] | None = None,
        num_layers: Number | None = None,
        num_heads: Number | None = None,
        num_kv_heads: Number | None = None,
        head_dim: Number | None = None,
        intermediate_size: Number | None = None,
        num_positions: Number = 0,
        tied_embeddings: bool = False,
        layer_norm: bool | None = None,
        gated_mlp: bool | None = None,
        bias: bool | None = None,
        qkv_bias: bool | None = None,
        qk_norm: bool | None = None,
        num_experts: int | None = None,
        experts_per_token: int | None = None,
        final_norm: int | None = None,
        embedding_norm: int = 0,
        embedding_size: Number = 0,
        head_bias: bool = False,
        more: Number = 0,
        prediction_layers: Number = 0,
    ) -> None:
        described: dict[str, object] = {
            "num_layers": num_layers,
            "num_heads": num_heads,
            "num_kv_heads": num_kv_heads,
            "head_dim": head_dim,
            "intermediate_size": intermediate_size,
            "layer_norm": layer_norm,
            "gated_mlp": gated_mlp,
            "bias": bias,
            "qkv_bias": qkv_bias,
            "qk_norm": qk_norm,
            "num_experts": num_experts,
            "experts_per_token": experts_per_token,
        }
        kind = {name: value for name, value in described.items() if value is not None}
        if layers is None:
            layers = of_keywords(kind)
        elif kind:  # `dataclasses.replace` passes both, so the keywords are the change
            layers = changed(checked("layers", layers), kind)
        stack = checked("layers", layers)
        if final_norm is None or "layer_norm" in kind:
            final_norm = stack[0][1].norm_size
        values = {
            "layers": stack,
            "hidden_size": count("hidden_size", hidden_size),
            "vocab_size": count("vocab_size", vocab_size),
            "sequence_length": count("sequence_length", sequence_length),
            "num_positions": count("num_positions", num_positions, least=0),
            "tied_embeddings": flag("tied_embeddings", tied_embeddings),
            "final_norm": single("final_norm", final_norm, least=0),
            "embedding_norm": single("embedding_norm", embedding_norm, least=0),
            "embedding_size": count("embedding_size", embedding_size, least=0),
            "head_bias": flag("head_bias", head_bias),
            "more": count("more", more, least=0),
            "prediction_layers": count("prediction_layers", prediction_layers, least=0),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        broadcast(**self.numbers())
        if given(self.num_positions):
            most = self.num_positions
            at_most("sequence_length", self.sequence_length, "the positions of the model", most)

    def numbers(self) -> dict[str, object]:
        """The model's sizes by name; with one kind of layer, those of its parts too."""
        names = (item.name for item in fields(self) if item.name != "layers")
        own = {name: getattr(self, name) for name in names}
        if len(self.layers) > 1:
            return own
        [(how_many, layer)] = self.layers
        return {"num_layers": how_many, **own, **dict(numbers(layer))}

    @cached_property
    def kinds(self) -> tuple[Layer, ...]:
        """Each kind of layer once, in order of first appearance."""
        if len(self.layers) == 1:  # of arrays, perhaps, which have no hash
            return (self.layers[0][1],)
        return tuple(dict.fromkeys(layer for _, layer in self.layers))

    @cached_property
    def num_layers(self) -> Size:
        """The number of layers, of all kinds."""
        return over_layers(self, lambda layer: 1)

    @cached_property
    def num_heads(self) -> Size:
        """Query heads; 0 without attention."""
        return self._of_most("mixer", "num_heads", 0)

    @cached_property
    def num_kv_heads(self) -> Size:
        """Key-value heads; with latent attention, as many as query heads."""
        return self._of_most("mixer", "num_kv_heads", 0)

    @cached_property
    def head_dim(self) -> Size:
        """The size of a query head."""
        return self._of_most("mixer", "head_dim", 0)

    @cached_property
    def intermediate_size(self) -> Size:
        """The inner width of the MLP, or of one expert."""
        return self._of_most("mlp", "intermediate_size", 0)

    @cached_property
    def num_experts(self) -> int:
        """Experts per layer, in layers that have any."""
        return int(self._of_most("mlp", "num_experts", 0))

    @cached_property
    def experts_per_token(self) -> int:
        """Experts that a token uses in such a layer."""
        return int(self._of_most("mlp", "experts_per_token", 0))

    @cached_property
    def gated_mlp(self) -> bool:
        """Whether the MLP has a gate."""
        return bool(self._of_most("mlp", "gated", False))

    @cached_property
    def layer_norm(self) -> bool:
        """Whether norms also shift (LayerNorm), instead of just scaling (RMSNorm)."""
        return any(layer.norm_size == 2 for _, layer in self.layers)

    @cached_property
    def bias(self) -> bool:
        """Whether the output projection has a bias, like all projections of a GPT."""
        return "o" in self._of_most("mixer", "biases", "")

    @cached_property
    def qkv_bias(self) -> bool:
        """Whether the projections to queries, keys and values have biases."""
        return {*"qkv"} <= {*self._of_most("mixer", "biases", "")}

    @cached_property
    def qk_norm(self) -> bool:
        """Whether there are norms on queries and keys."""
        return bool(self._of_most("mixer", "qk_norm", ""))

    def _of_most(self, part: str, name: str, none: T) -> T:
        """The most frequent value of a trait in the layers that have it; `none` if none does."""
        votes: dict[T, int] = {}
        for how_many, layer in self.layers:
            owner = getattr(layer, part)
            if isinstance(owner, Experts) and not hasattr(owner, name):
                owner = owner.expert
            value = getattr(owner, name, None)
            if len(self.layers) == 1:
                return none if value is None else value
            if value is not None:
                votes[value] = votes.get(value, 0) + int(how_many)
        return max(votes, key=lambda value: votes[value]) if votes else none

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
        """Make a GPT: learned positions, biases, LayerNorm, a GELU MLP of 4h, a final norm.

        The position table has one row for each of the `sequence_length` tokens, or more if
        you set `num_positions`.

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
            head_dim=share_of_heads(hidden_size, num_heads),
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
        """Make a Llama: rotary positions, RMSNorm, gated MLP, no biases, optional experts.

        `intermediate_size` is per expert if there are experts.

        >>> Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192).head_dim
        128
        """
        return cls(
            num_layers=num_layers,
            hidden_size=hidden_size,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=share_of_heads(hidden_size, num_heads) if head_dim is None else head_dim,
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
        cls, mapping: Mapping[str, object], sequence_length: Number | None = None
    ) -> Transformer:
        """Make the shape that a Hugging Face `config.json` of a decoder describes.

        `families.FAMILIES` lists the known families. Missing keys have the family's own
        defaults, except that null `num_key_value_heads` means as many as heads.
        `sequence_length` is that of training; without it, the file's maximum
        stands, or 2,048 where a family has none. Of a model that also sees or hears, its
        language model is read (`text_config`). What would give another number is
        refused: another head than the language model's, code of the file's own, and
        structure that is not known of the family.

        Source: the configuration classes of Hugging Face transformers 5.23.

        >>> model = Transformer.from_config({"model_type": "gpt2"}, sequence_length=512)
        >>> model.hidden_size, model.num_positions, model.sequence_length
        (768, 1024, 512)
        """
        from llmtrain_helpers.model.huggingface import configs  # a table of many families

        shape: dict[str, Any] = configs.shape(mapping)
        longest = shape.pop("sequence_length")
        s = longest if sequence_length is None else sequence_length
        return cls(sequence_length=s, **shape)


def of_length(model: Transformer, sequence_length: Number | None) -> Transformer:
    """Return the model, trained with this sequence length if you give one."""
    instance("model", model, Transformer)
    if sequence_length is None:
        return model
    [s] = as_sizes(sequence_length)
    return replace(model, sequence_length=s)


def over_layers(model: Transformer, counted: Callable[[Layer], Exact]) -> Exact:
    """Sum a count over all layers.

    >>> over_layers(Transformer.gpt(96, 12288, 96, 50257, 2048), lambda layer: 1)
    96
    """
    return sum(how_many * counted(layer) for how_many, layer in model.layers)
