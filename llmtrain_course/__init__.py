"""The course: what the notebooks show and ask, a folder per chapter, and what they share.

`check`, `predict` and `own_run` judge answers and keep your own run; `handle("ring")` and
`plan_panel()` return what can be moved. Each module is imported when one of its names is
first used, so a cell that only checks an answer doesn't import ipywidgets.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmtrain_course.exercises import (
        EXERCISES as EXERCISES,
        PREDICTIONS as PREDICTIONS,
        OwnRun as OwnRun,
        Verdict as Verdict,
        check as check,
        course_map as course_map,
        own_run as own_run,
        predict as predict,
        progress as progress,
    )
    from llmtrain_course.panels import (
        HANDLES as HANDLES,
        PANELS as PANELS,
        activations_panel as activations_panel,
        batch_panel as batch_panel,
        budget_panel as budget_panel,
        calendar_panel as calendar_panel,
        communication_panel as communication_panel,
        duration_panel as duration_panel,
        finetune_panel as finetune_panel,
        flops_panel as flops_panel,
        handle as handle,
        measure_panel as measure_panel,
        parallelism_panel as parallelism_panel,
        parameters_panel as parameters_panel,
        plan_panel as plan_panel,
        precision_panel as precision_panel,
        start_here_panel as start_here_panel,
    )

_NAMES = {
    "exercises": ("EXERCISES PREDICTIONS OwnRun Verdict check course_map own_run predict progress"),
    "panels": (
        "HANDLES PANELS activations_panel batch_panel budget_panel calendar_panel "
        "communication_panel duration_panel finetune_panel flops_panel handle measure_panel "
        "parallelism_panel parameters_panel plan_panel precision_panel start_here_panel"
    ),
}
"""The public names, and the module of each."""

_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Return a public name, importing its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return [*_HOMES]
