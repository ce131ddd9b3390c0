"""A notebook run again is the committed one; it starts kernels (see tools/test.py)."""

from __future__ import annotations

from typing import Any

from tools import regenerate
from tools.notebooks import all_notebooks, chapters


def test_regenerating_changes_nothing() -> None:
    path = chapters()[0]
    assert regenerate.run(path) == path.read_text("utf-8")


def test_regenerating_gives_the_same_bytes_under_any_backend(monkeypatch: Any) -> None:
    monkeypatch.delenv("MPLBACKEND", raising=False)
    evidence = [path for path in all_notebooks() if path.parent.name == "evidence"]
    drawn = next(path for path in evidence if "show(figure)" in path.read_text("utf-8"))
    usual = regenerate.run(drawn)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert regenerate.run(drawn) == usual
    assert "data:image/png" in usual
