"""The plan of a whole run: what it takes, whether it fits, and what to change."""

from llmtrain_helpers.memory import Memory as Memory
from llmtrain_helpers.parallelism import Split as Split
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
