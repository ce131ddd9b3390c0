"""The what-if panels, one function a notebook; each returns its panel."""

from llmtrain_helpers.panels.activations import activations_panel
from llmtrain_helpers.panels.batch import batch_panel
from llmtrain_helpers.panels.duration import duration_panel
from llmtrain_helpers.panels.flops import flops_panel
from llmtrain_helpers.panels.parameters import parameters_panel
from llmtrain_helpers.panels.plan import plan_panel
from llmtrain_helpers.panels.precision import precision_panel

__all__ = [
    "activations_panel",
    "batch_panel",
    "duration_panel",
    "flops_panel",
    "parameters_panel",
    "plan_panel",
    "precision_panel",
]
