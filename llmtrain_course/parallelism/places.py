"""How GPUs are shared out: which replica and stage each belongs to, in numbers and words."""

from __future__ import annotations

from dataclasses import dataclass

from llmtrain_helpers import units

NODE = 8
"""GPUs in a node, as nearly everywhere."""

MOST = 6
"""Nodes that are drawn at the most."""


@dataclass(frozen=True)
class Layout:
    """How GPUs are shared out: tensor ranks count first, then context, replicas, stages."""

    num_gpus: int
    tensor: int = 1
    pipeline: int = 1
    context: int = 1

    @property
    def a_replica(self) -> int:
        """GPUs that hold one copy of the model."""
        return self.tensor * self.pipeline * self.context

    @property
    def replicas(self) -> int:
        """Copies of the model, side by side."""
        return self.num_gpus // self.a_replica

    @property
    def left_over(self) -> int:
        """GPUs that are too few for one more copy."""
        return self.num_gpus % self.a_replica

    @property
    def of_a_stage(self) -> int:
        """GPUs that hold the same stage, of all copies."""
        return self.replicas * self.tensor * self.context

    @property
    def crosses(self) -> bool:
        """Whether some tensor-parallel group does not stay inside its node."""
        return self.num_gpus > NODE and NODE % self.tensor != 0

    def seen(self) -> list[int]:
        """The nodes that are drawn: the first six, the first of some stages, or the last one."""
        nodes = -(-self.num_gpus // NODE)
        if nodes > MOST and self.left_over:
            return [*range(MOST - 1), nodes - 1]
        if nodes <= MOST or self.pipeline == 1 or self.of_a_stage <= NODE:
            return list(range(min(nodes, MOST)))
        stages = sorted({0, 1, self.pipeline - 1})
        starts = [stage * self.of_a_stage // NODE for stage in stages]
        each = MOST // len(stages)
        return sorted({start + k for start in starts for k in range(each) if start + k < nodes})

    def in_node(self, node: int) -> range:
        """The GPUs of a node."""
        return range(node * NODE, min((node + 1) * NODE, self.num_gpus))

    def place(self, gpu: int) -> tuple[int, int, int] | None:
        """Replica, stage and context rank of a GPU, counted from 0; None if left over."""
        if gpu >= self.num_gpus - self.left_over:
            return None
        rest, rank = divmod(gpu // self.tensor, self.context)
        stage, replica = divmod(rest, self.replicas)
        return replica, stage, rank


def letters(number: int) -> str:
    """A name for a replica: A to Z, then AA and so on.

    >>> letters(0), letters(25), letters(26), letters(127)
    ('A', 'Z', 'AA', 'DX')
    """
    name = ""
    number += 1
    while number:
        number, last = divmod(number - 1, 26)
        name = chr(65 + last) + name
    return name


def too_few(layout: Layout) -> str:
    """Say that there are fewer GPUs than a replica needs."""
    each = units.exact(layout.a_replica)
    verb = "is" if layout.num_gpus == 1 else "are"
    return f"A replica needs {each} GPUs, but there {verb} only {units.exact(layout.num_gpus)}."


def idle_gpus(layout: Layout) -> str:
    """Say how many GPUs no replica uses, not which numbers of GPUs would leave none."""
    over, all_gpus = units.plural(layout.left_over, "GPU"), units.exact(layout.num_gpus)
    return f"{over} of {all_gpus} {'has' if layout.left_over == 1 else 'have'} nothing to do"
