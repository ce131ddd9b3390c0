"""Seconds of a step part by part, and a measured step. Goes with notebooks/09_plan.ipynb."""

from __future__ import annotations

from dataclasses import dataclass

from llmtrain_helpers.checks import Result, is_array
from llmtrain_helpers.deprecated import OldName
from llmtrain_helpers.model import Accelerator, Transformer
from llmtrain_helpers.parallelism import Split
from llmtrain_helpers.results import Breakdown, Interval

OWN_PACE = 1.2
"""How far other splits are from the prediction of one measured step of the same model:
85% of published pairs are closer (`research.splits.own_pace`)."""


@dataclass(frozen=True)
class StepSeconds(Breakdown[Result]):
    """Seconds of a step on the slowest stage, part by part, as they add up.

    `matmuls` at the chip's best share, `memory` trips of activations, `kernel_launch`, the
    overhead of kernels; exposed communication: `tensor`, `context`, `expert`, `pipeline`,
    `data`; `head`, the logits and their loss; `bubble`, the wait of a pipeline;
    `optimizer`, the update. `compiled` is the total with compiled kernels over this one if nobody
    said whether they are, and 1 if it's known.
    """

    _not_parts = ("compiled",)

    matmuls: Result
    memory: Result
    kernel_launch: Result
    tensor: Result
    context: Result
    expert: Result
    head: Result
    pipeline: Result
    bubble: Result
    data: Result
    optimizer: Result
    compiled: Result = 1.0

    launching = OldName("kernel_launch")


@dataclass(frozen=True)
class Pace:
    """A measured step: its time over the predicted one, and the settings it was measured with.

    Made by `Plan.calibrated`. It only holds for that model, chip, number format, software
    and kernels.
    """

    slowdown: float
    split: Split
    step: StepSeconds
    model: Transformer
    accelerator: Accelerator
    format: str
    software: str = "any"
    compiled: bool | None = None

    def seconds(self, step: StepSeconds, split: Split) -> Interval:
        """Seconds of a step: as measured, or `OWN_PACE` around it if anything has changed."""
        likely = self.slowdown * step.total
        same = not is_array(likely) and (split, step) == (self.split, self.step)
        wide = 1 if same else OWN_PACE
        return Interval(likely / wide, likely, likely * wide)
