"""Where things stand, seen from any test."""

from __future__ import annotations

from tools.notebooks import NOTEBOOKS

ROOT = NOTEBOOKS.parent

__all__ = ["NOTEBOOKS", "ROOT"]
