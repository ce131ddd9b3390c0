"""What will it take to train a language model? The formulas, one module a chapter.

`import llmtrain_helpers` brings the formulas and nothing foreign, each module when one
of its names is first used. What reads `data/` (`published`), draws (`figures`), shows a
panel (`panels`) or checks an answer (`exercises`) is imported by its own name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmtrain_helpers import (
        activations as activations,
        advice as advice,
        architecture as architecture,
        batch as batch,
        budget as budget,
        calendar as calendar,
        checks as checks,
        communication as communication,
        configs as configs,
        duration as duration,
        families as families,
        family_rows as family_rows,
        flops as flops,
        laws as laws,
        layers as layers,
        makers as makers,
        memory as memory,
        one_kind as one_kind,
        pace as pace,
        parameters as parameters,
        parts as parts,
        plan as plan,
        precision as precision,
        recurrences as recurrences,
        report as report,
        results as results,
        rules as rules,
        schedule as schedule,
        stacking as stacking,
        step as step,
        tuning as tuning,
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
    from llmtrain_helpers.advice import (
        Advice as Advice,
        Sweep as Sweep,
        advise as advise,
        fewest_gpus as fewest_gpus,
        sweep as sweep,
    )
    from llmtrain_helpers.architecture import (
        Accelerator as Accelerator,
        Transformer as Transformer,
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
        affordable_days as affordable_days,
        best_split as best_split,
        frontier as frontier,
        largest_model as largest_model,
        most_tokens as most_tokens,
        shelf as shelf,
    )
    from llmtrain_helpers.calendar import (
        CalendarDays as CalendarDays,
        Losses as Losses,
        SimulatedRun as SimulatedRun,
        Stretch as Stretch,
        best_checkpoint_interval as best_checkpoint_interval,
        calendar_days as calendar_days,
        checkpoint_bytes as checkpoint_bytes,
        goodput as goodput,
        losses as losses,
        mean_time_between_failures as mean_time_between_failures,
        simulate_run as simulate_run,
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
    from llmtrain_helpers.flops import (
        FlopCount as FlopCount,
        achieved_flops_per_gpu as achieved_flops_per_gpu,
        count_flops as count_flops,
        gpt_flops as gpt_flops,
        utilization as utilization,
    )
    from llmtrain_helpers.laws import (
        LAWS as LAWS,
        Law as Law,
        Optimum as Optimum,
        best_for_loss as best_for_loss,
        compute_for_loss as compute_for_loss,
        compute_optimal as compute_optimal,
        effective_tokens as effective_tokens,
        fit_law as fit_law,
        loss as loss,
        over_training as over_training,
    )
    from llmtrain_helpers.layers import (
        Attention as Attention,
        Experts as Experts,
        LatentAttention as LatentAttention,
        Layer as Layer,
        Mlp as Mlp,
    )
    from llmtrain_helpers.memory import Memory as Memory, Split as Split
    from llmtrain_helpers.pace import Pace as Pace, Shares as Shares
    from llmtrain_helpers.parameters import (
        ParameterCount as ParameterCount,
        count_parameters as count_parameters,
        expert_parameters as expert_parameters,
        gpt_parameters as gpt_parameters,
    )
    from llmtrain_helpers.plan import (
        Plan as Plan,
        plan_run as plan_run,
        step_seconds as step_seconds,
    )
    from llmtrain_helpers.precision import (
        FORMATS as FORMATS,
        RECIPES as RECIPES,
        ModelStateBytes as ModelStateBytes,
        NumberFormat as NumberFormat,
        Recipe as Recipe,
        model_state_bytes as model_state_bytes,
        smallest_data_parallel as smallest_data_parallel,
        train_small_network as train_small_network,
    )
    from llmtrain_helpers.results import Interval as Interval
    from llmtrain_helpers.schedule import (
        Schedule as Schedule,
        Turn as Turn,
        pipeline_schedule as pipeline_schedule,
    )
    from llmtrain_helpers.step import StepSeconds as StepSeconds
    from llmtrain_helpers.tuning import (
        OPTIMIZERS as OPTIMIZERS,
        LoraMemory as LoraMemory,
        lora_memory as lora_memory,
        lora_parameters as lora_parameters,
        muon_overhead as muon_overhead,
        offload_seconds as offload_seconds,
    )

_MODULES = {
    "activations": (
        "ActivationCount Moment Timeline count_activations gpt_activation_bytes "
        "recompute_flops step_timeline value_bytes"
    ),
    "architecture": "Accelerator Transformer",
    "batch": (
        "StepTime accumulation_steps batch_tokens data_parallel_size epoch_seconds "
        "fit_step_time global_batch_size largest_batch steps_per_epoch"
    ),
    "budget": (
        "Frontier Point affordable_days best_split frontier largest_model most_tokens "
        "shelf"
    ),
    "calendar": (
        "CalendarDays Losses SimulatedRun Stretch best_checkpoint_interval "
        "calendar_days checkpoint_bytes goodput losses mean_time_between_failures "
        "simulate_run spare_nodes"
    ),
    "communication": (
        "CommunicationSeconds Traffic all_reduce_bytes all_reduce_seconds "
        "communication_seconds data_parallel_bytes step_traffic"
    ),
    "duration": (
        "cost energy gpu_hours iterations over_utilizations seconds_from_iterations "
        "training_interval training_seconds"
    ),
    "flops": "FlopCount achieved_flops_per_gpu count_flops gpt_flops utilization",
    "laws": (
        "LAWS Law Optimum best_for_loss compute_for_loss compute_optimal "
        "effective_tokens fit_law loss over_training"
    ),
    "layers": "Attention Experts LatentAttention Layer Mlp",
    "parameters": ("ParameterCount count_parameters expert_parameters gpt_parameters"),
    "memory": "Memory Split",
    "pace": "Pace Shares",
    "plan": "Plan plan_run step_seconds",
    "step": "StepSeconds",
    "advice": "Advice Sweep advise fewest_gpus sweep",
    "precision": (
        "FORMATS RECIPES ModelStateBytes NumberFormat Recipe model_state_bytes "
        "smallest_data_parallel train_small_network"
    ),
    "schedule": "Schedule Turn pipeline_schedule",
    "tuning": (
        "OPTIMIZERS LoraMemory lora_memory lora_parameters muon_overhead "
        "offload_seconds"
    ),
    "results": "Interval",
    "report": "",
    "checks": "",
    "configs": "",
    "families": "",
    "family_rows": "",
    "makers": "",
    "one_kind": "",
    "parts": "",
    "rules": "",
    "stacking": "",
    "recurrences": "",
    "units": "",
}
_HOMES = {name: home for home, names in _MODULES.items() for name in names.split()}

__all__ = [*_MODULES, *_HOMES]


def __getattr__(name: str) -> Any:
    """A module of the formulas, or a name out of one, on its first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOMES.get(name, name)}")
    globals()[name] = getattr(module, name) if name in _HOMES else module
    return globals()[name]


def __dir__() -> list[str]:
    return [*__all__]
