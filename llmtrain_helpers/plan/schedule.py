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

from llmtrain_helpers.checks import Number, Result, at_most, counts, single

MOST = 2**20
"""Turns that one schedule may have."""


class Turn(NamedTuple):
    """A stage at work on a micro-batch, both counted from 0, from `start` to `end`."""

    stage: int
    micro_batch: int
    backward: bool
    start: int
    end: int


@dataclass(frozen=True)
class Schedule:
    """All turns of a step, of each stage in its order."""

    stages: int
    micro_batches: int
    turns: tuple[Turn, ...]

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

    def in_flight(self, stage: int) -> int:
        """The most micro-batches that a stage has begun and not finished at once."""
        held = most = 0
        for turn in self.of_stage(stage):
            held += -1 if turn.backward else 1
            most = max(most, held)
        return most

    def kept(self, stage: int) -> list[tuple[int, int]]:
        """When a stage keeps how many micro-batches: the corners of a line in time.

        One more when a forward turn ends, one less when a backward turn does.
        """
        held, corners = 0, [(0, 0)]
        for turn in self.of_stage(stage):
            corners.append((turn.start, held))
            held += -1 if turn.backward else 1
            corners.append((turn.end, held))
        return corners


def idle_share(stages: Number, micro_batches: Number) -> Result:
    """The share of a pipeline's step in which each stage waits: (p − 1)/(m + p − 1).

    Source: arXiv 2104.04473, section 2.2, there as a share of the rest of the step.

    >>> idle_share(stages=4, micro_batches=8)
    0.2727272727272727
    """
    p, m = counts(stages=stages, micro_batches=micro_batches)
    return (p - 1) / (m + p - 1)


def pipeline_schedule(
    stages: Number, micro_batches: Number, forward: Number = 1, backward: Number = 2
) -> Schedule:
    """The turns of p stages with m micro-batches: one forward, one backward (1F1B).

    A stage starts as many micro-batches as there are stages from it to the end, then
    takes one backward and one forward by turns. A turn waits for its stage to be free,
    and for the stage before it (forward) or behind it (backward). Then on every stage
    (p − 1)/(m + p − 1) of the step is idle, and min(p, m) micro-batches are in flight.

    Takes whole numbers; `forward` and `backward` are the lengths of a turn. ValueError
    for anything else, and for more than a million turns. Source: arXiv 2104.04473,
    section 2.2 and figure 4.

    >>> step = pipeline_schedule(stages=4, micro_batches=8)
    >>> step.end, round(step.idle, 4), [step.in_flight(stage) for stage in range(4)]
    (33, 0.2727, [4, 3, 2, 1])
    """
    p, m = int(single("stages", stages)), int(single("micro_batches", micro_batches))
    f, b = int(single("forward", forward)), int(single("backward", backward))
    at_most("stages·micro_batches·2", 2 * p * m, "what one schedule takes", MOST)
    return _scheduled(p, m, f, b)


@lru_cache(32)
def _scheduled(p: int, m: int, f: int, b: int) -> Schedule:
    """Every stage goes as far as it can, again and again, until all is done."""
    queues = [deque(_order(p, m, stage)) for stage in range(p)]
    came: dict[tuple[int, int, bool], int] = {}  # when a turn's input is there
    came.update({(0, k, False): 0 for k in range(m)})
    free, turns = [0] * p, [[] for _ in range(p)]  # type: list[int], list[list[Turn]]
    while any(queues):
        for stage, queue in enumerate(queues):
            while queue and (stage, *queue[0]) in came:
                k, back = queue.popleft()
                start = max(free[stage], came[stage, k, back])
                free[stage] = end = start + (b if back else f)
                turns[stage].append(Turn(stage, k, back, start, end))
                came[_next(p, stage, k, back)] = end
    return Schedule(p, m, tuple(turn for row in turns for turn in row))


def _order(p: int, m: int, stage: int) -> Iterator[tuple[int, bool]]:
    """The micro-batches of a stage, forward (False) or backward, in its order."""
    ahead = min(p - stage, m)
    for k in range(m + ahead):
        if k < m:
            yield k, False
        if k >= ahead - 1 and k - ahead + 1 < m:
            yield k - ahead + 1, True


def _next(p: int, stage: int, k: int, back: bool) -> tuple[int, int, bool]:
    """Which turn waits for this one: the last stage turns round."""
    if back:
        return stage - 1, k, True
    return (stage, k, True) if stage == p - 1 else (stage + 1, k, False)
