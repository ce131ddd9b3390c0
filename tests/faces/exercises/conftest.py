"""Each test of exercises begins with nothing answered and nothing guessed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmtrain_course.kit import own_run as own
from tests.faces.kernel import restart


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    restart()


@pytest.fixture
def set_run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., own.OwnRun]:
    """`own_run`, for a run that's forgotten after the test."""
    monkeypatch.setattr(own, "SET", {})
    return own.own_run
