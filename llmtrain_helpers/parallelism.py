"""How GPUs are split into groups, and what a split has to divide.

Sources: Narayanan et al. (arXiv 2104.04473), sections 2 and 3, for stages, interleaving and
the bubble; Rajbhandari et al. (arXiv 1910.02054) for sharded states; Megatron-Core's guide to
mixtures (NVIDIA/Megatron-LM, megatron/core/transformer/moe/README.md, "MoE Parallel Folding")
for the placement of experts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Literal, NamedTuple, TypeAlias, cast, get_args

from llmtrain_helpers.checks import (
    Number,
    Result,
    Size,
    anywhere,
    at_most,
    divides,
    is_array,
    refuse,
    show,
)
from llmtrain_helpers.model import Transformer
from llmtrain_helpers.results import divide, maximum, minimum, where

Context: TypeAlias = Literal["ring", "all-to-all"]
CONTEXT: list[Context] = [*get_args(Context)]
"""How context-parallel GPUs exchange data: keys and values in a ring, or heads all to all."""


@dataclass(frozen=True)
class Split:
    """How the GPUs and the batch are split; a replica works through `accumulation_steps` passes.

    Its numbers aren't checked: check the arguments that you make one from.
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
    expert_tensor_parallel: Size | None = None

    def __str__(self) -> str:
        """List the kinds of parallelism that are used, and the micro-batch.

        >>> print(Split(64, 1, 8, 1, 1, 8, 4))
        TP 8, DP 8, 1 at once
        """
        ways = {
            "TP": self.tensor_parallel,
            "PP": self.pipeline_parallel,
            "CP": self.context_parallel,
            "EP": self.expert_parallel,
            "ETP": self.expert_tensor,
            "DP": self.data_parallel,
        }
        if not anywhere(self.expert_tensor != self.tensor_parallel):
            del ways["ETP"]  # as many as share the other matrices
        used = [f"{name} {n}" for name, n in ways.items() if is_array(n) or n != 1 or name == "ETP"]
        return ", ".join([*used, f"{self.micro_batch_size} at once"])

    @property
    def bubble(self) -> Result:
        """The share of time that a pipeline adds: (p − 1)/(v·m).

        With p stages and m micro-batches. If each GPU has v pieces of the model
        (interleaving), the turns in which it waits are v times shorter.
        """
        return (self.pipeline_parallel - 1) / (self.interleave * self.accumulation_steps)

    @property
    def expert_tensor(self) -> Size:
        """GPUs that share each expert's matrices: as many as share the others, if none is given."""
        x = self.expert_tensor_parallel
        return self.tensor_parallel if x is None else x

    @property
    def expert_ways(self) -> Size:
        """GPUs over which one copy of all experts is spread."""
        return self.expert_parallel * self.expert_tensor

    @property
    def expert_stride(self) -> Size:
        """Steps from a GPU to the next one with other experts; numbering is tensor first."""
        t, c, x = self.tensor_parallel, self.context_parallel, self.expert_tensor
        of_replicas = (x == t) & (self.data_parallel % self.expert_parallel == 0)
        return where(of_replicas, t * c, x)

    def layers(self, num_layers: Size) -> Size:
        """Layers on a GPU: v pieces of the model, each rounded up to whole layers."""
        v = self.interleave
        return v * -(-num_layers // (v * self.pipeline_parallel))

    @property
    def in_flight(self) -> tuple[Result, Result]:
        """Micro-batches that the first and the last stage have in flight, at most m.

        p and 1; interleaved p + (p − 1)/v and p − (p − 1)/v.
        """
        p, v, m = self.pipeline_parallel, self.interleave, self.accumulation_steps
        more = divide(p - 1, v)
        return minimum(p + where(v > 1, more, 0), m), minimum(p - more, m)


LARGEST_STEP = 10**9
"""Tokens per step that no run comes close to (the largest published step has 63 million):
a larger batch probably counts tokens instead of sequences."""


_MOST_SEQUENCES = "the sequences in a billion tokens: give sequences, not tokens"


ShardedAs: TypeAlias = Literal["zero", "fsdp", "hsdp"]
SHARDING: list[ShardedAs] = [*get_args(ShardedAs)]
"""How states are sharded: as ZeRO's papers count them, or as PyTorch's FSDP does it, over
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
    """A number that has to be a multiple of another one, or at most as large; both are named."""

    check: Callable[[str, Number, str, Number], None]
    name: str
    value: Result
    limit_name: str
    limit: Result

    @property
    def holds(self) -> bool:
        """Tell whether the rule holds; for arrays, for which elements."""
        x, y = self.value, self.limit
        if self.check is one_or_all:
            return (x == 1) | (x == y)
        if self.check is all_of:
            return x == y
        return x % y == 0 if self.check is divides else x <= y


def needs_experts(name: str, expert_parallel: Number, limit_name: str, limit: Number) -> None:
    """Refuse to spread experts over several GPUs if the model has none."""
    e = expert_parallel
    if anywhere(e > limit):
        refuse(name, e, "has no experts to spread: the model is dense")


def one_or_all(name: str, expert_tensor_parallel: Number, limit_name: str, limit: Number) -> None:
    """Refuse experts shared by only some of the GPUs that share the other matrices."""
    x = expert_tensor_parallel
    if anywhere((x != 1) & (x != limit)):
        refuse(name, x, f"is neither 1 nor {limit_name}={show(limit)}")


def all_of(name: str, expert_tensor_parallel: Number, limit_name: str, limit: Number) -> None:
    """Refuse whole experts if every GPU that shares the other matrices has all the tokens."""
    x = expert_tensor_parallel
    if anywhere(x != limit):
        problem = f"is not {limit_name}={show(limit)}: whole experts need sequence_parallel=True"
        refuse(name, x, problem)


def expert_tensor_size(
    tensor_parallel: Size,
    context_parallel: Size,
    data_parallel: Size,
    expert_parallel: Size,
    expert_tensor_parallel: Number | None = None,
) -> Size:
    """GPUs that share each expert's matrices: the given number, or t if e divides c·d, else 1.

    With t, Megatron-Core's default, an expert is split like the other matrices, and the e
    groups are spread over the c·d GPUs that have the same part of these. With 1, each expert
    is whole on its GPU, and e of all t·c·d GPUs have one each.

    >>> expert_tensor_size(2, 1, 16, 8), expert_tensor_size(2, 1, 16, 32)
    (2, 1)
    """
    if expert_tensor_parallel is not None:
        return cast("Size", expert_tensor_parallel)
    same = context_parallel * data_parallel
    return where(same % expert_parallel == 0, tensor_parallel, 1)


def fewest_replicas(
    tensor_parallel: Size,
    context_parallel: Size,
    expert_parallel: Size,
    expert_tensor_parallel: Size | None,
    sequence_parallel: bool,
) -> int:
    """Find the fewest replicas that experts divide evenly over; its multiples work too.

    >>> fewest_replicas(2, 1, 32, None, True), fewest_replicas(2, 1, 32, 2, True)
    (16, 32)
    """
    t, c, e, x = (tensor_parallel, context_parallel, expert_parallel, expert_tensor_parallel)
    ways = e if x is None else e * x
    gpus = c if x is None and not sequence_parallel else t * c
    return int(ways // gcd(int(ways), int(gpus)))


def expert_rules(
    model: Transformer, t: Size, c: Size, d: Size, e: Size, x: Size | None, sequence_parallel: bool
) -> Iterator[Rule]:
    """The rules for experts spread over e GPUs; x GPUs share each, by default as many as work.

    Whole experts can also be on tensor-parallel GPUs if each of these sends its own tokens.
    """
    if not model.num_experts:
        yield Rule(needs_experts, "expert_parallel", e, "one GPU", 1)
        if x is not None:
            yield Rule(needs_experts, "expert_tensor_parallel", x, "none", 0)
        return
    yield Rule(divides, "num_experts", model.num_experts, "expert_parallel", e)
    of_tensors = t if x is not None or sequence_parallel else 1
    ways = {"tensor_parallel": of_tensors, "context_parallel": c}
    used = [name for name, size in ways.items() if is_array(size) or size > 1]
    gpus, name = of_tensors * c * d, "·".join([*used, "data_parallel"])
    if x is None:
        yield Rule(divides, name, gpus, "expert_parallel", e)
        return
    check = one_or_all if sequence_parallel else all_of
    yield Rule(check, "expert_tensor_parallel", x, "tensor_parallel", t)
    yield Rule(divides, name, gpus, "expert_parallel·expert_tensor_parallel", e * x)


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
    expert_tensor_parallel: Size | None,
    context: str,
    sequence_parallel: bool,
    uneven_stages: bool,
) -> Iterator[Rule]:
    """The rules for a split, in the order in which a run refuses.

    Takes numbers, or arrays of the same length. With arrays, a rule's `holds` is an array
    too, and a sweep leaves out the splits for which a rule doesn't hold.
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
    yield from expert_rules(model, t, c, d, e, expert_tensor_parallel, sequence_parallel)
    yield Rule(divides, "global_batch_size", B, "micro_batch_size·data_parallel", b * d)
    for layer in model.kinds:
        for mixer in layer.mixers:
            for name, heads in mixer.heads().items():
                yield Rule(divides, name, heads, "tensor_parallel", t)
                if context == "all-to-all" and name == "num_heads":
                    yield Rule(divides, name, heads, "tensor_parallel·context_parallel", t * c)
