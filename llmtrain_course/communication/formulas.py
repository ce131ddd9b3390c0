"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llmtrain_helpers.checks import (
    Number,
    amount,
    at_most,
    count,
    instance,
    is_array,
    one,
    quantity,
    rate,
    refuse,
    single,
)
from llmtrain_helpers.communication import (
    LATENCY,
    BesideBackward,
    Exchange,
    Traffic,
    all_reduce_seconds,
    communication_seconds,
    neighbours,
)
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.parallelism import Split


def exchanges(
    traffic: Traffic,
    accelerator: Accelerator,
    visible: Mapping[str, float],
    *,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    context_parallel: int = 1,
    expert_parallel: int = 1,
    data_parallel: int = 1,
) -> dict[str, Exchange]:
    """What one GPU sends in a step, part by part, with whom and how long.

    `visible` are the seconds of each part that the step takes longer. What sequence
    parallelism sends counts as `tensor`; parts without bytes are left out. ValueError
    for an accelerator whose links are not known.

    >>> h100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    >>> sent = Traffic(0, 50e9, 0, 0, 0, 16e9)
    >>> parts = exchanges(sent, h100, {"tensor": 0.2, "data": 0}, tensor_parallel=8,
    ...     data_parallel=16)
    >>> [(name, x.others, x.inside, round(x.seconds, 3)) for name, x in parts.items()]
    [('tensor', 7, True, 0.2), ('data', 15, False, 0.348)]
    """
    instance("traffic", traffic, Traffic)
    if any(map(is_array, traffic.parts().values())):
        refuse("traffic", traffic, "is many: here it must be one")
    instance("visible", visible, Mapping)
    visible = {x: one(f"visible[{x!r}]", seconds, amount) for x, seconds in visible.items()}
    ways = {
        "tensor_parallel": tensor_parallel,
        "pipeline_parallel": pipeline_parallel,
        "context_parallel": context_parallel,
        "expert_parallel": expert_parallel,
        "data_parallel": data_parallel,
    }
    t, p, c, e, d = (single(name, size) for name, size in ways.items())
    taken = communication_seconds(
        traffic,
        accelerator,
        tensor_parallel=t,
        pipeline_parallel=p,
        context_parallel=c,
        expert_parallel=e,
        data_parallel=d,
    )
    if taken is None:
        refuse("accelerator", accelerator.name, "has links that are not known")
    sent = traffic.parts() | {"tensor": traffic.tensor + traffic.sequence}
    seconds = taken.parts() | {"tensor": taken.tensor + taken.sequence}
    groups = {  # how many GPUs take part, and over how many neighbours they are spread
        "tensor": (t, t),
        "context": (c, t * c),
        "expert": (e, t * c * e),
        "pipeline": (min(p, 3), t * c * d * p),
        "data": (d * c, t * c * d),
    }  # a stage talks to two others at the most: the one before it and the one behind
    return {
        name: Exchange(
            sent[name],
            size - 1,
            bool(span <= accelerator.gpus_per_node),
            max(seconds[name], visible.get(name, 0)),
            visible.get(name, 0),
        )
        for name, (size, span) in groups.items()
        if sent[name]
    }


def replicas_first(split: Split) -> dict[str, tuple[int, ...]]:
    """`neighbours` where replicas share nodes: numbered by replica first, by matrices last.

    Takes a split of whole numbers without context parallelism and experts, as it is.

    >>> replicas_first(Split(16, 1, 2, 2, 1, 4, accumulation_steps=1))
    {'tensor': (4,), 'pipeline': (8,), 'data': (1, 2, 3)}
    """
    t, d = int(split.tensor_parallel), int(split.data_parallel)

    def moved(gpu: int) -> int:
        stage, place = divmod(gpu, t * d)
        return stage * t * d + place % t * d + place // t

    return {part: tuple(map(moved, gpus)) for part, gpus in neighbours(split).items()}


@dataclass(frozen=True)
class SharedMlp:
    """Two matrices on several GPUs: columns of the first, and the matching rows of the second.

    `token` is what comes in, `error` what comes back from the layer above. Each GPU gets
    its share of the `hidden` numbers alone; of what comes out it has every number, but
    only a part of its sum. The activation function, which acts on each number alone, is
    left out. Source: Shoeybi et al. (arXiv 1909.08053), section 3.
    """

    token: tuple[int, ...] = (1, 2)
    first: tuple[tuple[int, ...], ...] = ((1, 0, 2, 1), (1, 3, 0, 1))
    second: tuple[tuple[int, ...], ...] = ((1, 2), (0, 1), (2, 0), (1, 1))
    error: tuple[int, ...] = (1, 1)
    gpus: int = 2

    def columns(self, gpu: int) -> range:
        """The columns of the first matrix on a GPU, and the rows of the second."""
        each = len(self.second) // self.gpus
        return range(gpu * each, (gpu + 1) * each)

    def hidden(self, gpu: int) -> list[int]:
        """A GPU's share of the numbers between the two matrices."""
        return [_dot(self.token, [row[k] for row in self.first]) for k in self.columns(gpu)]

    def partial(self, gpu: int) -> list[int]:
        """What comes out on one GPU: its part of every sum."""
        rows = [self.second[k] for k in self.columns(gpu)]
        return [_dot(self.hidden(gpu), column) for column in zip(*rows, strict=True)]

    def hidden_error(self, gpu: int) -> list[int]:
        """The error of a GPU's share of the numbers between the two matrices."""
        return [_dot(self.error, self.second[k]) for k in self.columns(gpu)]

    def partial_error(self, gpu: int) -> list[int]:
        """The error of the token on one GPU: its part of every sum."""
        columns = self.columns(gpu)
        return [_dot(self.hidden_error(gpu), [row[k] for k in columns]) for row in self.first]

    @property
    def output(self) -> list[int]:
        """What comes out when all parts are added up, by the forward all-reduce.

        >>> SharedMlp().output, SharedMlp(gpus=1).partial(0)
        ([10, 15], [10, 15])
        """
        return [sum(parts) for parts in zip(*map(self.partial, range(self.gpus)), strict=True)]

    @property
    def token_error(self) -> list[int]:
        """The error of the token when all parts are added up, by the backward all-reduce."""
        parts = map(self.partial_error, range(self.gpus))
        return [sum(numbers) for numbers in zip(*parts, strict=True)]


def _dot(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(left, right, strict=True))


def beside_backward(
    parameters: Number,
    tokens: Number,
    flops_per_gpu: Number,
    data_parallel: Number,
    bandwidth: Number,
    messages: int = 1,
) -> BesideBackward:
    """The last backward pass, and the ring's all-reduce of 16-bit gradients beside it.

    Backward takes 4PT/X for T tokens on a GPU of X FLOP/s, the ring 2(d − 1)/d · 2P/W and a
    `LATENCY` for each message. Of many replicas both are equally long at T = X/W tokens,
    whatever the model. ValueError for what is not positive, and more than 1,000 messages.

    >>> last = beside_backward(8e9, 4096, 989.5e12, 64, 400e9, messages=8)
    >>> round(last.backward, 3), round(last.sending, 3), round(last.visible, 3)
    (0.132, 0.079, 0.01)
    """
    P, T = (one(x, y, count) for x, y in [("parameters", parameters), ("tokens", tokens)])
    X = one("flops_per_gpu", flops_per_gpu, rate)
    m = single("messages", messages)
    at_most("messages", m, "what is worth showing", 1000)
    d, W = single("data_parallel", data_parallel), one("bandwidth", bandwidth, quantity)
    ring = 2 * all_reduce_seconds(P, d, W)  # of 2 bytes each
    return BesideBackward(float(4 * P * T / X), float(ring + m * LATENCY), m)
