"""Real processes: what PyTorch's loss holds, whole and shared by tensor parallelism."""

from __future__ import annotations

from pathlib import Path

import pytest

from .parallel_loss import HIDDEN, TOKENS, WORDS
from .processes import first_of


def test_a_shared_loss_takes_a_third_tensor_and_the_whole_input(tmp_path: Path) -> None:
    """Of each logit: 16 bits of it, its logarithm in fp32, and 2 or 3 more in fp32."""
    alone, shared = first_of("parallel_loss", [1, 2], tmp_path)
    assert alone["backward"] == pytest.approx(2 + 4 + 2 * 4, abs=0.01)
    gathered = 2 * TOKENS * HIDDEN / (TOKENS * WORDS // 2)
    assert shared["backward"] == pytest.approx(2 + 4 + 3 * 4 + gathered, abs=0.02)
    assert shared["backward"] > 2 + 4 + 3 * 4 + gathered / 2
