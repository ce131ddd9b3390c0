"""A pipeline's step, turn by turn. Beside notebooks/08_plan.ipynb.

Source: Narayanan et al. (arXiv 2104.04473), section 2.2: one forward, one backward
(1F1B). The formula of the bubble is not used here: each turn begins when its stage is
free and what it needs has come, and what is idle is what is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from llmtrain_helpers.checks import Array, Count, at_most, checked, refuse

MOST = 2**20
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
        """When the last turn ends: the length of the step."""
        return max(turn.end for turn in self.turns)

    @cached_property
    def idle(self) -> float:
        """The share of the step in which stages wait, summed from their turns."""
        busy = sum(turn.end - turn.start for turn in self.turns)
        return 1 - busy / (self.stages * self.end)

    def shares(self) -> dict[str, float]:
        """What the stages do with their time: forward, backward and idle, of the step."""
        shares = {"forward": 0.0, "backward": 0.0}
        for turn in self.turns:
            word = "backward" if turn.backward else "forward"
            shares[word] += (turn.end - turn.start) / (self.stages * self.end)
        return {**shares, "idle": self.idle}

    def of_stage(self, stage: int) -> tuple[Turn, ...]:
        """The turns of one stage."""
        return tuple(turn for turn in self.turns if turn.stage == stage)

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
        """When a stage keeps how many micro-batches: the corners of a line in time.

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
    """The turns of p stages with m micro-batches: one forward, one backward (1F1B).

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
    at_most("stages·micro_batches·2", 2 * p * m * v, "what one schedule takes", MOST)
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
