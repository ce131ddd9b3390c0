"""What will it take to train a language model? The formulas, one module per chapter.

`import llmtrain_helpers` only needs the standard library, and each module is imported when
one of its names is first used. `published` reads the tables of `data/`. The pictures and
exercises of the notebooks are in `llmtrain_course`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from llmtrain_helpers import (
        activations as activations,
        batch as batch,
        budget as budget,
        calendar as calendar,
        checks as checks,
        communication as communication,
        duration as duration,
        finetune as finetune,
        flops as flops,
        laws as laws,
        model as architecture,  # noqa: F401
        model as model,
        parallelism as parallelism,
        parameters as parameters,
        plan as plan,
        precision as precision,
        published as published,
        results as results,
        units as units,
    )
    from llmtrain_helpers.activations import (
        ActivationCount as ActivationCount,
        Moment as Moment,
        Timeline as Timeline,
        count_activations as count_activations,
        gpt_activation_bytes as gpt_activation_bytes,
        recompute_flops as recompute_flops,
        step_timeline as step_timeline,
        value_bytes as value_bytes,
    )
    from llmtrain_helpers.batch import (
        StepTime as StepTime,
        accumulation_steps as accumulation_steps,
        batch_tokens as batch_tokens,
        data_parallel_size as data_parallel_size,
        epoch_seconds as epoch_seconds,
        fit_step_time as fit_step_time,
        global_batch_size as global_batch_size,
        largest_batch as largest_batch,
        steps_per_epoch as steps_per_epoch,
    )
    from llmtrain_helpers.budget import (
        Frontier as Frontier,
        Point as Point,
        frontier as frontier,
        most_tokens as most_tokens,
        shelf as shelf,
    )
    from llmtrain_helpers.calendar import (
        CalendarDays as CalendarDays,
        Losses as Losses,
        best_checkpoint_interval as best_checkpoint_interval,
        calendar_days as calendar_days,
        checkpoint_bytes as checkpoint_bytes,
        goodput as goodput,
        losses as losses,
        mean_time_between_failures as mean_time_between_failures,
        spare_nodes as spare_nodes,
    )
    from llmtrain_helpers.communication import (
        CommunicationSeconds as CommunicationSeconds,
        Traffic as Traffic,
        all_reduce_bytes as all_reduce_bytes,
        all_reduce_seconds as all_reduce_seconds,
        communication_seconds as communication_seconds,
        data_parallel_bytes as data_parallel_bytes,
        step_traffic as step_traffic,
    )
    from llmtrain_helpers.duration import (
        cost as cost,
        energy as energy,
        gpu_hours as gpu_hours,
        iterations as iterations,
        over_utilizations as over_utilizations,
        seconds_from_iterations as seconds_from_iterations,
        training_interval as training_interval,
        training_seconds as training_seconds,
    )
    from llmtrain_helpers.finetune import (
        LoraMemory as LoraMemory,
        TunedActivations as TunedActivations,
        TunedFlops as TunedFlops,
        longest_sequence as longest_sequence,
        lora_memory as lora_memory,
        lora_parameters as lora_parameters,
        tuned_activations as tuned_activations,
        tuned_flops as tuned_flops,
        tuned_memory as tuned_memory,
        tuned_phases as tuned_phases,
        tuning_tokens as tuning_tokens,
    )
    from llmtrain_helpers.flops import (
        FlopCount as FlopCount,
        achieved_flops_per_gpu as achieved_flops_per_gpu,
        count_flops as count_flops,
        gpt_flops as gpt_flops,
        utilization as utilization,
        without_windows as without_windows,
    )
    from llmtrain_helpers.laws import (
        LAWS as LAWS,
        Law as Law,
        Optimum as Optimum,
        best_for_loss as best_for_loss,
        compute_for_loss as compute_for_loss,
        compute_optimal as compute_optimal,
        effective_tokens as effective_tokens,
        loss as loss,
        over_training as over_training,
    )
    from llmtrain_helpers.memory import Memory as Memory, TunedMemory as TunedMemory
    from llmtrain_helpers.model.accelerator import Accelerator as Accelerator
    from llmtrain_helpers.model.layers import (
        Attention as Attention,
        Experts as Experts,
        LatentAttention as LatentAttention,
        Layer as Layer,
        Mlp as Mlp,
    )
    from llmtrain_helpers.model.transformer import Transformer as Transformer
    from llmtrain_helpers.parallelism import Split as Split
    from llmtrain_helpers.parameters import (
        ParameterCount as ParameterCount,
        count_parameters as count_parameters,
        expert_parameters as expert_parameters,
        gpt_parameters as gpt_parameters,
    )
    from llmtrain_helpers.plan.advice import (
        Advice as Advice,
        advise as advise,
        fewest_gpus as fewest_gpus,
    )
    from llmtrain_helpers.plan.pace import Shares as Shares
    from llmtrain_helpers.plan.plan import (
        Plan as Plan,
        plan_run as plan_run,
        step_seconds as step_seconds,
    )
    from llmtrain_helpers.plan.run import Run as Run
    from llmtrain_helpers.plan.search import best_split as best_split
    from llmtrain_helpers.plan.seconds import Pace as Pace, StepSeconds as StepSeconds
    from llmtrain_helpers.plan.sweep import Sweep as Sweep, sweep as sweep
    from llmtrain_helpers.precision import (
        FORMATS as FORMATS,
        OPTIMIZERS as OPTIMIZERS,
        RECIPES as RECIPES,
        ModelStateBytes as ModelStateBytes,
        NumberFormat as NumberFormat,
        Recipe as Recipe,
        model_state_bytes as model_state_bytes,
        smallest_data_parallel as smallest_data_parallel,
    )
    from llmtrain_helpers.results import Interval as Interval
    from llmtrain_helpers.tuning import (
        TunedParameters as TunedParameters,
        Tuning as Tuning,
        tuned_parameters as tuned_parameters,
    )

_ROOMS = {
    "activations": "activations",
    "batch": "batch",
    "budget": "budget",
    "calendar": "calendar",
    "checks": "checks",
    "communication": "communication",
    "duration": "duration",
    "finetune": "finetune",
    "flops": "flops",
    "laws": "laws",
    "model": "model",
    "parallelism": "parallelism",
    "parameters": "parameters",
    "plan": "plan",
    "precision": "precision",
    "results": "results",
    "units": "units",
    "architecture": "model",
    "published": "published",
}
"""Modules available as attributes, and where they live."""

_NAMES = {
    "activations": (
        "ActivationCount Moment Timeline count_activations gpt_activation_bytes "
        "recompute_flops step_timeline value_bytes"
    ),
    "batch": (
        "StepTime accumulation_steps batch_tokens data_parallel_size epoch_seconds "
        "fit_step_time global_batch_size largest_batch steps_per_epoch"
    ),
    "budget": "Frontier Point frontier most_tokens shelf",
    "calendar": (
        "CalendarDays Losses best_checkpoint_interval calendar_days checkpoint_bytes "
        "goodput losses mean_time_between_failures spare_nodes"
    ),
    "communication": (
        "CommunicationSeconds Traffic all_reduce_bytes all_reduce_seconds "
        "communication_seconds data_parallel_bytes step_traffic"
    ),
    "duration": (
        "cost energy gpu_hours iterations over_utilizations seconds_from_iterations "
        "training_interval training_seconds"
    ),
    "finetune": (
        "LoraMemory TunedActivations TunedFlops longest_sequence lora_memory "
        "lora_parameters tuned_activations tuned_flops tuned_memory tuned_phases tuning_tokens"
    ),
    "flops": "FlopCount achieved_flops_per_gpu count_flops gpt_flops utilization without_windows",
    "laws": (
        "LAWS Law Optimum best_for_loss compute_for_loss compute_optimal "
        "effective_tokens loss over_training"
    ),
    "memory": "Memory TunedMemory",
    "model.accelerator": "Accelerator",
    "model.layers": "Attention Experts LatentAttention Layer Mlp",
    "model.transformer": "Transformer",
    "parallelism": "Split",
    "parameters": "ParameterCount count_parameters expert_parameters gpt_parameters",
    "plan.advice": "Advice advise fewest_gpus",
    "plan.pace": "Shares",
    "plan.run": "Run",
    "plan.seconds": "Pace StepSeconds",
    "plan.plan": "Plan plan_run step_seconds",
    "plan.search": "best_split",
    "plan.sweep": "Sweep sweep",
    "precision": (
        "FORMATS ModelStateBytes NumberFormat OPTIMIZERS RECIPES Recipe model_state_bytes "
        "smallest_data_parallel"
    ),
    "results": "Interval",
    "tuning": "TunedParameters Tuning tuned_parameters",
}
"""The public names, and the module of each."""

_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Import a public name, or a module of the package, on its first use."""
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name in _ROOMS:
        value = import_module(f"{__name__}.{_ROOMS[name]}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*_ROOMS, *_HOMES]
