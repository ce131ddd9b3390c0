"""Real processes: a ring of sends beside PyTorch's own collectives, and its bytes."""

from __future__ import annotations

from pathlib import Path

from llmtrain_helpers import all_reduce_bytes

from .processes import first_of


def test_a_ring_does_what_gloo_does_and_sends_the_formulas_bytes(tmp_path: Path) -> None:
    groups = [2, 4]
    for many, results in zip(groups, first_of("ring", groups, tmp_path), strict=True):
        size = results["bytes"]
        once = (many - 1) / many * size
        assert results["scatter"] == [once, True]
        assert results["gather"] == [once, True]
        assert results["all-reduce"] == [all_reduce_bytes(size, many), True]
