"""Where things stand, seen from any test."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
