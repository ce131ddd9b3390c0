"""Where things stand, seen from any test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tools.notebooks import NOTEBOOKS

ROOT = NOTEBOOKS.parent
PACKAGES = ["llmtrain_helpers", "llmtrain_course", "research"]

__all__ = ["NOTEBOOKS", "PACKAGES", "ROOT", "tracked"]


def tracked() -> list[Path]:
    """The committed files that are there; where git tells none, a test is skipped.

    It does so without a checkout, and in one that belongs to somebody else.
    """
    result = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if result.returncode or not (ROOT / ".git").exists():
        pytest.skip("no git checkout of one's own")
    names = os.fsdecode(result.stdout).split("\0")[:-1]
    return [ROOT / name for name in names if (ROOT / name).exists()]
