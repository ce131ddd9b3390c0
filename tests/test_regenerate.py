"""A notebook run again is the committed one; it starts kernels (see tools/test.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat

from llmtrain_course.panels import HANDLES
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


def test_a_handle_is_saved_as_its_first_state_and_no_widget(tmp_path: Path) -> None:
    """Words and images that strict nbval compares; and the same bytes when run again."""
    lines = ["from llmtrain_course.panels import handle", *(f'handle("{x}")' for x in HANDLES)]
    cells = [nbformat.v4.new_code_cell(line, id=f"cell-{i}") for i, line in enumerate(lines)]
    path = tmp_path / "handles.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    path.write_text(regenerate.run(path), "utf-8")
    written = path.read_text("utf-8")
    assert regenerate.run(path) == written
    assert "widget" not in written
    saved = [cell["outputs"] for cell in json.loads(written)["cells"][1:]]
    for (output,), handle in zip(saved, HANDLES.values(), strict=True):
        assert {kind: "".join(text) for kind, text in output["data"].items()} == {
            "text/html": handle.static_html(),
            "text/plain": handle.words,
        }
