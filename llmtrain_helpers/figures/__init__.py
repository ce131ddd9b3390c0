"""The course's figures, one module a chapter; `describe` puts any of them in words."""

from llmtrain_helpers.figures.common import describe

__all__ = ["describe"]
