"""The figures, one module a chapter; `show` puts one in a notebook, with its words."""

from llmtrain_helpers.figures.common import describe, show

__all__ = ["describe", "show"]
