"""Who shares what: how GPUs are split into groups, and what a split has to divide.

Sources: Narayanan et al. (arXiv 2104.04473), sections 2 and 3, for stages, interleaving and
the bubble; Rajbhandari et al. (arXiv 1910.02054) for sharded states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from llmtrain_helpers.checks import (
    Number,
    Result,
    Size,
    anywhere,
    at_most,
    divides,
    is_array,
    refuse,
)
from llmtrain_helpers.model import Transformer
from llmtrain_helpers.results import divide, maximum, minimum, where

Context: TypeAlias = Literal["ring", "all-to-all"]
CONTEXT: list[Context] = [*get_args(Context)]
"""How context-parallel GPUs exchange: keys and values in a ring, or heads all to all."""


@dataclass(frozen=True)
class Split:
    """How the GPUs and the batch are split; a replica works through `accumulation_steps` passes.

    Its numbers are taken as they are: whoever makes one out of arguments checks them.
    """

    num_gpus: Size
    micro_batch_size: Size
    tensor_parallel: Size
    pipeline_parallel: Size
    context_parallel: Size
    data_parallel: Size
    accumulation_steps: Size
    interleave: Size = 1
    expert_parallel: Size = 1

    def __str__(self) -> str:
        """The kinds of parallelism that are used, and the micro-batch.

        >>> print(Split(64, 1, 8, 1, 1, 8, 4))
        TP 8, DP 8, 1 at once
        """
        ways = {
            "TP": self.tensor_parallel,
            "PP": self.pipeline_parallel,
            "CP": self.context_parallel,
            "EP": self.expert_parallel,
            "DP": self.data_parallel,
        }
        used = [f"{name} {n}" for name, n in ways.items() if is_array(n) or n != 1]
        return ", ".join([*used, f"{self.micro_batch_size} at once"])

    @property
    def bubble(self) -> Result:
        """The time that a pipeline adds: (p − 1)/(v·m).

        Of p stages and m micro-batches; with v pieces of the model on each GPU
        (interleaving) the turns in which it waits are v times as short.
        """
        return (self.pipeline_parallel - 1) / (self.interleave * self.accumulation_steps)

    def layers(self, num_layers: Size) -> Size:
        """Layers on a GPU: v pieces of the model, each rounded up to whole layers."""
        v = self.interleave
        return v * -(-num_layers // (v * self.pipeline_parallel))

    @property
    def in_flight(self) -> tuple[Result, Result]:
        """Micro-batches that the first and the last stage hold at once, at most m.

        p and 1; interleaved p + (p − 1)/v and p − (p − 1)/v.
        """
        p, v, m = self.pipeline_parallel, self.interleave, self.accumulation_steps
        more = divide(p - 1, v)
        return minimum(p + where(v > 1, more, 0), m), minimum(p - more, m)


LARGEST_STEP = 10**9
"""Tokens of a step that no run comes near (the largest published have 63 million): a
batch beyond is one of tokens, given as sequences."""


_MOST_SEQUENCES = "the sequences in a billion tokens: give sequences, not tokens"


ShardedAs: TypeAlias = Literal["zero", "fsdp", "hsdp"]
SHARDING: list[ShardedAs] = [*get_args(ShardedAs)]
"""How states are sharded: as ZeRO's papers count it, or as PyTorch's FSDP does it, over
all replicas or (hybrid) over those of a node."""


Shard: TypeAlias = Literal["ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"]
SHARDS: dict[Shard, tuple[int, ShardedAs]] = {
    "ddp": (0, "zero"),
    "zero1": (1, "zero"),
    "zero2": (2, "zero"),
    "zero3": (3, "zero"),
    "fsdp": (3, "fsdp"),
    "hsdp": (3, "hsdp"),
}
"""`zero_stage` and `sharding` in one word, as people say it."""


class Rule(NamedTuple):
    """A number that must be a multiple of another, or no more than it; both are named."""

    check: Callable[[str, Number, str, Number], None]
    name: str
    value: Result
    limit_name: str
    limit: Result

    @property
    def holds(self) -> bool:
        """Whether the rule holds; for arrays, in which places it does."""
        return self.value % self.limit == 0 if self.check is divides else self.value <= self.limit


def needs_experts(name: str, expert_parallel: Number, limit_name: str, limit: Number) -> None:
    """Refuse experts over several GPUs where the model has none."""
    e = expert_parallel
    if anywhere(e > limit):
        refuse(name, e, "has no experts to spread: the model is dense")


def split_rules(
    model: Transformer,
    num_gpus: Size,
    global_batch_size: Size,
    micro_batch_size: Size,
    tensor_parallel: Size,
    pipeline_parallel: Size,
    context_parallel: Size,
    interleave: Size,
    expert_parallel: Size,
    context: str,
    sequence_parallel: bool,
    uneven_stages: bool,
) -> Iterator[Rule]:
    """What a split must keep to, in the order in which a run refuses.

    Takes numbers, or arrays of the same length: then a rule's `holds` is an array too,
    and a sweep leaves out the splits for which one does not hold.
    """
    n, B, b, t = num_gpus, global_batch_size, micro_batch_size, tensor_parallel
    p, c, v, e = pipeline_parallel, context_parallel, interleave, expert_parallel
    l, s = model.num_layers, model.sequence_length
    largest = maximum(LARGEST_STEP // s, 1)
    yield Rule(at_most, "global_batch_size", B, _MOST_SEQUENCES, largest)
    yield Rule(at_most, "pipeline_parallel", p, "num_layers", l)
    yield Rule(
        at_most, "interleave", v, "what a pipeline of one stage takes", where(p > 1, 1 + l, 1)
    )
    pieces = "pipeline_parallel·interleave"
    if not uneven_stages:
        interleaved = is_array(v) or v > 1
        yield Rule(divides, "num_layers", l, pieces if interleaved else "pipeline_parallel", p * v)
    yield Rule(at_most, pieces, p * v, "the layers, embedding and head of the model", l + 2)
    yield Rule(divides, "sequence_length", s, "context_parallel", c)
    if sequence_parallel:
        yield Rule(divides, "sequence_length", s, "tensor_parallel·context_parallel", t * c)
    yield Rule(at_most, "micro_batch_size", b, "global_batch_size", B)
    ways = "tensor_parallel·pipeline_parallel·context_parallel"
    yield Rule(divides, "num_gpus", n, ways, t * p * c)
    d = maximum(n // (t * p * c), 1)
    if model.num_experts:
        yield Rule(divides, "num_experts", model.num_experts, "expert_parallel", e)
        yield Rule(divides, "data_parallel", d, "expert_parallel", e)
    else:
        yield Rule(needs_experts, "expert_parallel", e, "one GPU", 1)
    yield Rule(divides, "global_batch_size", B, "micro_batch_size·data_parallel", b * d)
    for layer in model.kinds:
        for mixer in layer.mixers:
            for name, heads in mixer.heads().items():
                yield Rule(divides, name, heads, "tensor_parallel", t)
                if context == "all-to-all" and name == "num_heads":
                    yield Rule(divides, name, heads, "tensor_parallel·context_parallel", t * c)
