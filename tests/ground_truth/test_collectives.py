"""Real processes: a ring of sends beside PyTorch's own collectives, and its bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from llmtrain_helpers import all_reduce_bytes
from llmtrain_helpers.measure.parallel import _environment


@pytest.mark.parametrize("many", [2, 4])
def test_a_ring_does_what_gloo_does_and_sends_the_formulas_bytes(
    many: int, tmp_path: Path
) -> None:
    ring = Path(__file__).with_name("ring.py")
    command = [sys.executable, str(ring)]
    group = [
        subprocess.Popen(
            [*command, str(rank), str(many), str(tmp_path / "meeting")],
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        for rank in range(many)
    ]
    told = [process.communicate(timeout=120)[0] for process in group]
    assert [process.returncode for process in group] == [0] * many
    found = json.loads(told[0].strip().splitlines()[-1])
    size = found["bytes"]
    once = (many - 1) / many * size
    assert found["scatter"] == [once, True]
    assert found["gather"] == [once, True]
    assert found["all-reduce"] == [all_reduce_bytes(size, many), True]
