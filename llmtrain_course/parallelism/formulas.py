"""Formulas that only pictures and exercises of parallelism use, in chapters 04, 08 and 09."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from llmtrain_helpers.checks import (
    Array,
    Count,
    amount,
    at_most,
    checked,
    instance,
    is_array,
    one,
    refuse,
    single,
)
from llmtrain_helpers.communication import Traffic, bandwidth_of, communication_seconds
from llmtrain_helpers.model import Accelerator
from llmtrain_helpers.parallelism import Split, expert_tensor_size


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
    """List the GPUs that a split's first GPU talks to, part by part, counted from 0.

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
    stride = split.expert_stride
    same = range(replica, stage, t)  # the same matrices, and other sequences
    experts = range(stride, stride * e, stride)
    groups: dict[str, Sequence[int]] = {
        "tensor": range(1, t),
        "context": range(t, replica, t),
        "expert": experts,
        "pipeline": sorted(ends) if p > 1 else (),
        "data": [gpu for gpu in same if gpu not in experts],
    }
    return {part: tuple(gpus) for part, gpus in groups.items() if gpus}


def ring_at(part: Exchange, accelerator: Accelerator, was: int, stride: int) -> Exchange:
    """Compute a ring's traffic with its GPUs `stride` places apart, instead of `was`.

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
    expert_tensor_parallel: int | None = None,
    data_parallel: int = 1,
) -> dict[str, Exchange]:
    """List what one GPU sends per step, part by part, with how many others and how long.

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
        expert_tensor_parallel=expert_tensor_parallel,
        data_parallel=d,
    )
    if taken is None:
        refuse("accelerator", accelerator.name, "has links that are not known")
    sent = traffic.parts() | {"tensor": traffic.tensor + traffic.sequence}
    seconds = taken.parts() | {"tensor": taken.tensor + taken.sequence}
    x = expert_tensor_size(t, c, d, e)
    if expert_tensor_parallel is not None:
        x = single("expert_tensor_parallel", expert_tensor_parallel)
    split = Split(t * p * c * d, 1, t, p, c, d, 1, 1, e, x)
    groups = {  # how many GPUs take part, and over how many neighbours they are spread
        "tensor": (t, t),
        "context": (c, t * c),
        "expert": (e, e * split.expert_stride),
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
        """The output on one GPU: its part of every sum."""
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
        """The output after all parts are added up, by the forward all-reduce.

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


# --- a pipeline's step, turn by turn
#
# The formula of the bubble isn't used here: each turn begins when its stage is free and
# what it needs has come, and what is idle is what is left.

MOST_TURNS = 2**20
"""Turns that one schedule may have."""


class Turn(NamedTuple):
    """A stage at work on a micro-batch, both counted from 0, from `start` to `end`.

    With interleaving, at work on one `piece` of its layers.
    """

    stage: int
    micro_batch: int
    backward: bool
    start: int
    end: int
    piece: int = 0


@dataclass(frozen=True)
class Schedule:
    """All turns of a step, of each stage in its order."""

    stages: int
    micro_batches: int
    turns: tuple[Turn, ...]
    interleave: int = 1

    @cached_property
    def end(self) -> int:
        """The end of the last turn, which is the length of the step."""
        return max(turn.end for turn in self.turns)

    @cached_property
    def idle(self) -> float:
        """The share of the step in which stages wait, summed from their turns."""
        busy = sum(turn.end - turn.start for turn in self.turns)
        return 1 - busy / (self.stages * self.end)

    def shares(self) -> dict[str, float]:
        """The shares of the stages' time: forward, backward and idle."""
        shares = {"forward": 0.0, "backward": 0.0}
        for turn in self.turns:
            word = "backward" if turn.backward else "forward"
            shares[word] += (turn.end - turn.start) / (self.stages * self.end)
        return {**shares, "idle": self.idle}

    def of_stage(self, stage: int) -> tuple[Turn, ...]:
        """The turns of one stage."""
        return tuple(turn for turn in self.turns if turn.stage == stage)

    def waits(self, stage: int) -> Iterator[tuple[int, int]]:
        """List when a stage waits: before, between and after its turns, each from start to end."""
        free = 0
        for turn in self.of_stage(stage):
            if turn.start > free:
                yield free, turn.start
            free = turn.end
        if self.end > free:
            yield free, self.end

    def in_flight(self, stage: int) -> float:
        """The most micro-batches that a stage has begun and not finished at once.

        Where a stage has several pieces, one in one piece counts as that part of it.
        """
        in_flight = most = 0
        for turn in self.of_stage(stage):
            in_flight += -1 if turn.backward else 1
            most = max(most, in_flight)
        return most / self.interleave

    def kept(self, stage: int) -> list[tuple[int, int]]:
        """List how many micro-batches a stage stores over time, as the corners of a line.

        One more when a forward turn ends, one less when a backward turn does.
        """
        in_flight, corners = 0, [(0, 0)]
        for turn in self.of_stage(stage):
            corners.append((turn.start, in_flight))
            in_flight += -1 if turn.backward else 1
            corners.append((turn.end, in_flight))
        return corners


@checked
def idle_share(
    stages: Count[float | Array],
    micro_batches: Count[float | Array],
    interleave: Count[float | Array] = 1,
) -> float | Array:
    """The share of a pipeline's step in which each stage waits: (p − 1)/(vm + p − 1).

    With v pieces of the model on each stage (`interleave`). Source: arXiv 2104.04473,
    section 2.2, there as a share of the rest of the step.

    >>> idle_share(stages=4, micro_batches=8)
    0.2727272727272727
    """
    p, m, v = stages, micro_batches, interleave
    return (p - 1) / (v * m + p - 1)


@checked
def pipeline_schedule(
    stages: Count[int],
    micro_batches: Count[int],
    forward: Count[int] = 1,
    backward: Count[int] = 2,
    interleave: Count[int] = 1,
) -> Schedule:
    """Schedule the turns of p stages with m micro-batches: one forward, one backward (1F1B).

    A stage starts as many micro-batches as there are stages from it to the end, then
    takes one backward and one forward by turns. A turn waits for its stage to be free,
    and for the stage before it (forward) or behind it (backward). Then on every stage
    (p − 1)/(m + p − 1) of the step is idle, and min(p, m) micro-batches are in flight.

    With v pieces of the model on each stage (`interleave`) a micro-batch goes round the
    stages v times, and (p − 1)/(vm + p − 1) is idle; p must then divide m.

    Takes whole numbers; `forward` and `backward` are the lengths of a turn. ValueError
    for anything else, and for more than a million turns. Source: arXiv 2104.04473,
    section 2.2 and figure 4.

    >>> step = pipeline_schedule(stages=4, micro_batches=8)
    >>> step.end, round(step.idle, 4), [step.in_flight(stage) for stage in range(4)]
    (33, 0.2727, [4.0, 3.0, 2.0, 1.0])
    """
    p, m, f, b, v = stages, micro_batches, forward, backward, interleave
    if v > 1 and m % p:
        refuse("micro_batches", m, f"is not divisible by stages={p}, as interleaving asks")
    at_most("stages·micro_batches·2", 2 * p * m * v, "what one schedule takes", MOST_TURNS)
    return _scheduled(p, m, f, b, v)


@lru_cache(32)
def _scheduled(p: int, m: int, f: int, b: int, v: int) -> Schedule:
    """Every stage goes as far as it can, again and again, until all is done."""
    queues = [deque(_order(p, m, v, stage)) for stage in range(p)]
    came: dict[tuple[int, int, bool], int] = {}  # when a turn's input is there
    came.update({(0, k, False): 0 for k in range(m)})
    free, turns = [0] * p, [[] for _ in range(p)]  # type: list[int], list[list[Turn]]
    while any(queues):
        for stage, queue in enumerate(queues):
            while queue and queue[0] in came:
                part, k, back = queue.popleft()
                start = max(free[stage], came[part, k, back])
                free[stage] = end = start + (b if back else f)
                turns[stage].append(Turn(stage, k, back, start, end, part // p))
                came[_next(p * v, part, k, back)] = end
    return Schedule(p, m, tuple(turn for row in turns for turn in row), v)


def _order(p: int, m: int, v: int, stage: int) -> Iterator[tuple[int, int, bool]]:
    """The turns of a stage in its order: part of the model, micro-batch, backward or not.

    The model has p·v parts, of which a stage has every p-th. In each it takes p
    micro-batches before it goes on to the next.
    """
    ahead = p - stage - 1 if v == 1 else 2 * (p - stage - 1) + (v - 1) * p
    for i in range(m * v + ahead + 1):
        if i < m * v:
            piece, k = _place(p, v, i)
            yield piece * p + stage, k, False
        if 0 <= i - ahead < m * v:
            piece, k = _place(p, v, i - ahead)
            yield (v - 1 - piece) * p + stage, k, True


def _place(p: int, v: int, turn: int) -> tuple[int, int]:
    """The piece and the micro-batch of a stage's turn: p micro-batches in each piece."""
    if v == 1:
        return 0, turn
    return turn % (p * v) // p, turn // (p * v) * p + turn % p


def _next(parts: int, part: int, k: int, back: bool) -> tuple[int, int, bool]:
    """Which turn waits for this one: the last part of the model turns round."""
    if back:
        return part - 1, k, True
    return (part, k, True) if part == parts - 1 else (part + 1, k, False)
