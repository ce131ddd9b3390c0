"""What will it take to train a language model? The formulas, one module a chapter.

`import llmtrain_helpers` brings the formulas and nothing foreign. What reads `data/`
(`published`), draws (`figures`), shows a panel (`panels`) or checks an answer
(`exercises`) is imported by its own name.
"""

from llmtrain_helpers import architecture, checks, duration, flops, parameters, units
from llmtrain_helpers.architecture import Accelerator, Transformer
from llmtrain_helpers.duration import (
    Interval,
    cost,
    energy,
    gpu_hours,
    iterations,
    seconds_from_iterations,
    training_interval,
    training_seconds,
)
from llmtrain_helpers.flops import (
    FlopCount,
    achieved_flops_per_gpu,
    count_flops,
    gpt_flops,
    utilization,
)
from llmtrain_helpers.parameters import ParameterCount, count_parameters, gpt_parameters

__all__ = [
    "Accelerator",
    "FlopCount",
    "Interval",
    "ParameterCount",
    "Transformer",
    "achieved_flops_per_gpu",
    "architecture",
    "checks",
    "cost",
    "count_flops",
    "count_parameters",
    "duration",
    "energy",
    "flops",
    "gpt_flops",
    "gpt_parameters",
    "gpu_hours",
    "iterations",
    "parameters",
    "seconds_from_iterations",
    "training_interval",
    "training_seconds",
    "units",
    "utilization",
]
