"""The plan of a whole run: what it needs, whether it fits, and what to change.

Advice and the split search are imported when one of their names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from llmtrain_helpers.memory import Memory as Memory
from llmtrain_helpers.parallelism import Split as Split
from llmtrain_helpers.plan.pace import Shares as Shares
from llmtrain_helpers.plan.plan import (
    Plan as Plan,
    plan_run as plan_run,
    step_seconds as step_seconds,
)
from llmtrain_helpers.plan.run import Run as Run
from llmtrain_helpers.plan.seconds import Pace as Pace, StepSeconds as StepSeconds
from llmtrain_helpers.plan.sweep import Sweep as Sweep, sweep as sweep

if TYPE_CHECKING:
    from llmtrain_helpers.plan.advice import (
        Advice as Advice,
        advise as advise,
        fewest_gpus as fewest_gpus,
    )
    from llmtrain_helpers.plan.search import best_split as best_split

_HOMES = {"Advice": "advice", "advise": "advice", "fewest_gpus": "advice", "best_split": "search"}


def __getattr__(name: str) -> Any:
    """Import a name of the advice or the search on its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
