"""A kernel that has just begun, for tests of what is kept while it runs."""

from __future__ import annotations

from llmtrain_course import exercises


def restart() -> None:
    """Nothing is answered and nothing guessed."""
    for answers in ("_TRIES", "_HINTS", "_TURNS", "_GUESSES"):
        setattr(exercises, answers, {})
