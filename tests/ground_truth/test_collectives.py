"""Real processes: a ring of sends beside PyTorch's own collectives, and its bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmtrain_helpers import all_reduce_bytes

from .processes import first_of


@pytest.mark.parametrize("many", [2, 4])
def test_a_ring_does_what_gloo_does_and_sends_the_formulas_bytes(many: int, tmp_path: Path) -> None:
    results = first_of("ring.py", many, tmp_path / "meeting")
    size = results["bytes"]
    once = (many - 1) / many * size
    assert results["scatter"] == [once, True]
    assert results["gather"] == [once, True]
    assert results["all-reduce"] == [all_reduce_bytes(size, many), True]
