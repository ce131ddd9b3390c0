"""Each test of exercises begins with nothing answered and nothing guessed."""

from __future__ import annotations

import pytest

from tests.faces.kernel import restart


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    restart()
