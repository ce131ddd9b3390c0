"""The what-if panels, one function a notebook; each returns its panel."""

from llmtrain_helpers.panels.parameters import parameters_panel

__all__ = ["parameters_panel"]
