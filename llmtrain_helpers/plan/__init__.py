"""The plan of a whole run: what it takes, whether it fits, and what to change."""

from llmtrain_helpers.communication import Split as Split
from llmtrain_helpers.plan.advice import (
    Advice as Advice,
    Sweep as Sweep,
    advise as advise,
    fewest_gpus as fewest_gpus,
    sweep as sweep,
)
from llmtrain_helpers.plan.memory import Memory as Memory
from llmtrain_helpers.plan.pace import Pace as Pace, Shares as Shares
from llmtrain_helpers.plan.plan import (
    Plan as Plan,
    plan_run as plan_run,
    step_seconds as step_seconds,
)
from llmtrain_helpers.plan.schedule import (
    Schedule as Schedule,
    Turn as Turn,
    pipeline_schedule as pipeline_schedule,
)
from llmtrain_helpers.plan.step import StepSeconds as StepSeconds
