"""What will it take to train a language model? The formulas, one module a chapter.

`import llmtrain_helpers` brings the formulas and nothing foreign. What reads `data/`
(`published`), draws (`figures`), shows a panel (`panels`) or checks an answer
(`exercises`) is imported by its own name.
"""

from llmtrain_helpers import (
    architecture,
    batch,
    checks,
    duration,
    flops,
    parameters,
    precision,
    units,
)
from llmtrain_helpers.architecture import Accelerator, Transformer
from llmtrain_helpers.batch import (
    StepTime,
    accumulation_steps,
    all_reduce_bytes,
    all_reduce_seconds,
    batch_tokens,
    data_parallel_size,
    epoch_seconds,
    fit_step_time,
    global_batch_size,
    largest_batch,
    steps_per_epoch,
)
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
from llmtrain_helpers.precision import (
    FORMATS,
    RECIPES,
    ModelStateBytes,
    NumberFormat,
    Recipe,
    model_state_bytes,
    smallest_data_parallel,
    train_small_network,
)

__all__ = [
    "FORMATS",
    "RECIPES",
    "Accelerator",
    "FlopCount",
    "Interval",
    "ModelStateBytes",
    "NumberFormat",
    "ParameterCount",
    "Recipe",
    "StepTime",
    "Transformer",
    "accumulation_steps",
    "achieved_flops_per_gpu",
    "all_reduce_bytes",
    "all_reduce_seconds",
    "architecture",
    "batch",
    "batch_tokens",
    "checks",
    "cost",
    "count_flops",
    "count_parameters",
    "data_parallel_size",
    "duration",
    "energy",
    "epoch_seconds",
    "fit_step_time",
    "flops",
    "global_batch_size",
    "gpt_flops",
    "gpt_parameters",
    "gpu_hours",
    "iterations",
    "largest_batch",
    "model_state_bytes",
    "parameters",
    "precision",
    "seconds_from_iterations",
    "smallest_data_parallel",
    "steps_per_epoch",
    "train_small_network",
    "training_interval",
    "training_seconds",
    "units",
    "utilization",
]
