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
    """Return a handle by name, for a notebook: one picture with its controls.

    Each call makes one of its own. ValueError for a name that `HANDLES` does not have.
    """
    from llmtrain_course.kit.widget import NotebookPanel

    return NotebookPanel(HANDLES[choice("name", name, HANDLES)])


def in_notebook(word: str) -> "NotebookPanel":
    """Return the panel of this chapter, for a notebook, which can start from your own run."""
    from llmtrain_course.kit.own_panel import with_own_run
    from llmtrain_course.kit.widget import NotebookPanel

    return NotebookPanel(with_own_run(word, PANELS[word]))


def start_here_panel() -> "NotebookPanel":
    """Return the panel that shows the tokens that GPUs and days pay for, for a model's size."""
    return in_notebook("start_here")


def parameters_panel() -> "NotebookPanel":
    """Return the panel that counts a shape's parameters, part by part."""
    return in_notebook("parameters")


def flops_panel() -> "NotebookPanel":
    """Return the panel that shows rate, MFU and HFU of each GPU, given seconds per iteration."""
    return in_notebook("flops")


def duration_panel() -> "NotebookPanel":
    """Return the panel that shows days, GPU-hours and cost of a model, tokens and GPUs."""
    return in_notebook("duration")


def batch_panel() -> "NotebookPanel":
    """Return the panel that shows the batch, passes and updates of GPUs and their split."""
    return in_notebook("batch")


def precision_panel() -> "NotebookPanel":
    """Return the panel that shows the bytes of model states, and whether they fit."""
    return in_notebook("precision")


def activations_panel() -> "NotebookPanel":
    """Return the panel that shows memory at the peak and over two steps."""
    return in_notebook("activations")


def communication_panel() -> "NotebookPanel":
    """Return the panel that shows what replicas send, and how much of that is exposed."""
    return in_notebook("communication")


def parallelism_panel() -> "NotebookPanel":
    """Return the panel that shows who sends what to whom in a split, and what's hidden."""
    return in_notebook("parallelism")


def plan_panel() -> "NotebookPanel":
    """Return the panel that shows memory, days, GPU-hours, cost and advice for a run."""
    return in_notebook("plan")


def calendar_panel() -> "NotebookPanel":
    """Return the panel that shows a run's days on the calendar, part by part."""
    return in_notebook("calendar")


def budget_panel() -> "NotebookPanel":
    """Return the panel that shows what days and money can train, and the loss to expect."""
    return in_notebook("budget")


def measure_panel() -> "NotebookPanel":
    """Return the panel that shows a step's throughput, and what it waits for."""
    return in_notebook("measure")


def finetune_panel() -> "NotebookPanel":
    """Return the panel that shows whether tuning a model fits a card, with hours and cost."""
    return in_notebook("finetune")
