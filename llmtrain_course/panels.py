"""What can be moved: `PANELS` by the chapter's word, and `HANDLES`, the small ones, by name.

`parameters_panel()` and its sisters return a panel for a notebook, `handle("ring")` a
handle, drawn by `notebook` with ipywidgets. The definitions need the standard library
alone.
"""

from typing import TYPE_CHECKING

from llmtrain_course.activations import handles as activations
from llmtrain_course.batch import handles as batch
from llmtrain_course.budget import handles as budget
from llmtrain_course.calendar import handles as calendar
from llmtrain_course.communication import handles as communication
from llmtrain_course.duration import handles as duration
from llmtrain_course.finetune import handles as finetune
from llmtrain_course.flops import handles as flops
from llmtrain_course.kit.panel import Handle, Panel
from llmtrain_course.measure import handles as measure
from llmtrain_course.parallelism import handles as parallelism
from llmtrain_course.parameters import handles as parameters
from llmtrain_course.plan import handles as plan
from llmtrain_course.precision import handles as precision
from llmtrain_course.start_here import handles as start_here
from llmtrain_helpers.checks import choice

if TYPE_CHECKING:
    from llmtrain_course.kit.widget import NotebookPanel

PANELS: dict[str, Panel] = {
    "start_here": start_here.PANEL,
    "parameters": parameters.PANEL,
    "flops": flops.PANEL,
    "duration": duration.PANEL,
    "batch": batch.PANEL,
    "precision": precision.PANEL,
    "activations": activations.PANEL,
    "communication": parallelism.PANEL,
    "plan": plan.PANEL,
    "calendar": calendar.PANEL,
    "budget": budget.PANEL,
    "measure": measure.PANEL,
    "finetune": finetune.PANEL,
}
"""Every panel, by its chapter's word."""


HANDLES: dict[str, Handle] = {
    "machine": start_here.MACHINE,
    "one_token": start_here.ONE_TOKEN,
    "five_runs": start_here.FIVE_RUNS,
    "count_and_rate": start_here.COUNT_AND_RATE,
    "stream": parameters.STREAM,
    "wider_or_deeper": parameters.WIDER_OR_DEEPER,
    "into_a_llama": parameters.INTO_A_LLAMA,
    "experts": parameters.EXPERTS,
    "two_tokens": flops.TWO_TOKENS,
    "attention_square": flops.ATTENTION_SQUARE,
    "step_work": flops.STEP_WORK,
    "achieved": flops.ACHIEVED,
    "gpus_and_days": duration.GPUS_AND_DAYS,
    "eight_or_six": duration.EIGHT_OR_SIX,
    "more_gpus": duration.MORE_GPUS,
    "promise": duration.PROMISE,
    "copied": duration.COPIED,
    "gpu_split": parallelism.GPU_SPLIT,
    "four_gpus": parallelism.FOUR_GPUS,
    "epoch": batch.EPOCH,
    "micro_batches": batch.MICRO_BATCHES,
    "batch_cost": batch.BATCH_COST,
    "eight_bits": precision.EIGHT_BITS,
    "lost_update": precision.LOST_UPDATE,
    "gradients": precision.GRADIENTS,
    "stalled_sum": precision.STALLED_SUM,
    "parameter_bytes": precision.PARAMETER_BYTES,
    "slices": precision.SLICES,
    "step_memory": activations.STEP_MEMORY,
    "kept_layer": activations.KEPT_LAYER,
    "recomputation": activations.RECOMPUTATION,
    "passes": activations.PASSES,
    "neighbours": parallelism.NEIGHBOURS,
    "ring": communication.RING,
    "message": communication.MESSAGE,
    "shared_matrices": parallelism.SHARED_MATRICES,
    "time_line": communication.TIME_LINE,
    "month": plan.MONTH,
    "measured_step": plan.PROMISE,
    "pipeline": parallelism.PIPELINE,
    "levers": plan.LEVERS,
    "failure": calendar.FAILURE,
    "many_nodes": calendar.MANY_NODES,
    "save_interval": calendar.SAVE_INTERVAL,
    "dates": calendar.DATES,
    "loss_terms": budget.LOSS_TERMS,
    "size_price": budget.SIZE_PRICE,
    "repeated": budget.REPEATED,
    "one_product": measure.ONE_PRODUCT,
    "predicted_step": measure.PREDICTED_STEP,
    "timed_steps": measure.TIMED_STEPS,
    "step_bytes": measure.STEP_BYTES,
    "one_step": measure.ONE_STEP,
    "three_ways": finetune.THREE_WAYS,
    "frozen_layer": finetune.FROZEN_LAYER,
    "loss_spike": finetune.LOSS_SPIKE,
    "tuned_speed": finetune.TUNED_SPEED,
    "packing": finetune.PACKING,
}
"""Every handle, by its name."""


def handle(name: str) -> "NotebookPanel":
    """A handle of this name, for a notebook: one picture, and what moves it.

    Each call makes one of its own. ValueError for a name that `HANDLES` does not have.
    """
    from llmtrain_course.kit.widget import NotebookPanel

    return NotebookPanel(HANDLES[choice("name", name, HANDLES)])


def in_notebook(word: str) -> "NotebookPanel":
    """The panel of this chapter, for a notebook."""
    from llmtrain_course.kit.widget import NotebookPanel

    return NotebookPanel(PANELS[word])


def start_here_panel() -> "NotebookPanel":
    """GPUs, days and the size of a model in; the tokens that they pay for out."""
    return in_notebook("start_here")


def parameters_panel() -> "NotebookPanel":
    """The shape of a model in, its parameters part by part out."""
    return in_notebook("parameters")


def flops_panel() -> "NotebookPanel":
    """Seconds of an iteration in; rate, MFU and HFU of each GPU out."""
    return in_notebook("flops")


def duration_panel() -> "NotebookPanel":
    """Model, tokens and GPUs in; days with their interval, GPU-hours and cost out."""
    return in_notebook("duration")


def batch_panel() -> "NotebookPanel":
    """GPUs and their split in; sequences, tokens, passes and updates out."""
    return in_notebook("batch")


def precision_panel() -> "NotebookPanel":
    """Model, recipe and sharding in; bytes part by part, and whether they fit, out."""
    return in_notebook("precision")


def activations_panel() -> "NotebookPanel":
    """Model, sequence and micro-batch in; bytes at the peak and over two steps, out."""
    return in_notebook("activations")


def communication_panel() -> "NotebookPanel":
    """A split of GPUs in; who sends what to whom, how long, and what hides it, out."""
    return in_notebook("communication")


def plan_panel() -> "NotebookPanel":
    """A run in; memory, days, GPU-hours, cost and advice out."""
    return in_notebook("plan")


def calendar_panel() -> "NotebookPanel":
    """GPUs, failures and restarts in; days on the calendar, part by part, out."""
    return in_notebook("calendar")


def budget_panel() -> "NotebookPanel":
    """Days and money in; what they can train, and the loss to expect, out."""
    return in_notebook("budget")


def measure_panel() -> "NotebookPanel":
    """Times of a step's parts in; its throughput, and what it waits for, out."""
    return in_notebook("measure")


def finetune_panel() -> "NotebookPanel":
    """A model, a card and texts in; whether tuning it fits, hours and cost, out."""
    return in_notebook("finetune")
