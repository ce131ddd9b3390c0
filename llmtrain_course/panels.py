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
    "communication": communication.PANEL,
    "parallelism": parallelism.PANEL,
    "plan": plan.PANEL,
    "calendar": calendar.PANEL,
    "budget": budget.PANEL,
    "measure": measure.PANEL,
    "finetune": finetune.PANEL,
}
"""Every panel, by its chapter's word."""


HANDLES: dict[str, Handle] = {
    name.lower(): it
    for chapter in (
        *(start_here, parameters, flops, duration, batch, precision, activations),
        *(communication, parallelism, plan, calendar, budget, measure, finetune),
    )
    for name, it in vars(chapter).items()
    if isinstance(it, Handle)
}
"""Every handle of the chapters' `handles`, by its name there."""


def handle(name: str) -> "NotebookPanel":
    """A handle of this name, for a notebook: one picture, and what moves it.

    Each call makes one of its own. ValueError for a name that `HANDLES` does not have.
    """
    from llmtrain_course.kit.widget import NotebookPanel

    return NotebookPanel(HANDLES[choice("name", name, HANDLES)])


def in_notebook(word: str) -> "NotebookPanel":
    """The panel of this chapter, for a notebook, which can start from your own run."""
    from llmtrain_course.kit.own_panel import with_own_run
    from llmtrain_course.kit.widget import NotebookPanel

    return NotebookPanel(with_own_run(word, PANELS[word]))


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
    """Replicas and what they shard in; what each sends, and how much is exposed, out."""
    return in_notebook("communication")


def parallelism_panel() -> "NotebookPanel":
    """A split of GPUs in; who sends what to whom, how long, and what hides it, out."""
    return in_notebook("parallelism")


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
