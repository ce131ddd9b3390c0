"""Formulas that only this chapter's pictures and exercises use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from llmtrain_helpers.checks import amount, instance, is_array, one, refuse, single
from llmtrain_helpers.communication import Traffic, bandwidth_of, communication_seconds
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.parallelism import Split


@dataclass(frozen=True)
class Exchange:
    """A part of a step's traffic: bytes, how many GPUs it is shared with, and seconds.

    `inside` says whether its group stays in one node. `seconds` are those of sending;
    `visible` those that the step takes longer.
    """

    sent: float
    others: int
    inside: bool
    seconds: float
    visible: float


def neighbours(split: Split) -> dict[str, tuple[int, ...]]:
    """Whom the first GPU of a split talks to, part by part; GPUs are counted from 0.

    GPUs are numbered tensor first, so that those that share matrices stand side by side
    in a node; then context, then data, and the pipeline's stages last. A GPU of the first
    stage has one stage behind it, and with interleaving the last one before it. Parts
    with nobody to talk to are left out. Takes a split of whole numbers, as it is.

    >>> neighbours(Split(16, 1, 2, 2, 1, 4, accumulation_steps=1))
    {'tensor': (1,), 'pipeline': (8,), 'data': (2, 4, 6)}
    """
    t, c, e = split.tensor_parallel, split.context_parallel, split.expert_parallel
    d, p, n = split.data_parallel, split.pipeline_parallel, split.num_gpus
    replica, stage = t * c, t * c * d
    ends = {stage, n - stage} if split.interleave > 1 else {stage}
    same = range(replica, stage, t)  # the same matrices, and other sequences
    experts = range(replica, replica * e, replica)
    groups: dict[str, Sequence[int]] = {
        "tensor": range(1, t),
        "context": range(t, replica, t),
        "expert": experts,
        "pipeline": sorted(ends) if p > 1 else (),
        "data": [gpu for gpu in same if gpu not in experts],
    }
    return {part: tuple(gpus) for part, gpus in groups.items() if gpus}


def ring_at(part: Exchange, accelerator: Accelerator, was: int, stride: int) -> Exchange:
    """A ring's part of the traffic with its GPUs `stride` places apart, in place of `was`.

    What of it is seen stays as it was: only the way is another.

    >>> h100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)
    >>> sums = Exchange(sent=4.2e12, others=7, inside=True, seconds=14, visible=14)
    >>> far = ring_at(sums, h100, was=1, stride=8)
    >>> far.inside, round(far.seconds)
    (False, 92)
    """
    size = part.others + 1
    near, far = (bandwidth_of(accelerator, size, distance) for distance in (was, stride))
    if near is None or far is None:
        refuse("accelerator", accelerator.name, "has links that are not known")
    return replace(
        part,
        inside=size * stride <= accelerator.gpus_per_node,
        seconds=float(part.seconds + (part.sent / far - part.sent / near)),
    )


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
