"""What all figures share: that they are seen, and what is told of them in words."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from llmtrain_helpers.figures.common import show_in_notebooks

# --- seen under any backend

DRAWN = """
import matplotlib.pyplot as plt
from llmtrain_helpers.figures.precision import bit_layouts
figure = bit_layouts()
plt.show()
"""


@pytest.mark.parametrize("backend", ["Agg", "TkAgg"])
def test_a_figure_is_seen_whatever_backend_a_container_sets(backend: str) -> None:
    notebook = new_notebook(cells=[new_code_cell(DRAWN)])
    client = NotebookClient(notebook, timeout=120)
    client.execute(env={**os.environ, "MPLBACKEND": backend})
    kinds = [kind for output in notebook.cells[0].outputs for kind in output.data]
    assert "image/png" in kinds


@pytest.mark.parametrize(
    ("asked", "backend", "chosen"),
    [
        ("Agg", "agg", ["inline"]),
        ("TkAgg", "TkAgg", ["inline"]),
        ("TkAgg", "agg", ["inline"]),  # matplotlib's own retreat without a screen
        ("Agg", "svg", []),  # chosen by %matplotlib
    ],
)
def test_what_a_learner_chose_stays(
    monkeypatch: Any, asked: str, backend: str, chosen: list[str]
) -> None:
    taken: list[str] = []
    shell = SimpleNamespace(kernel=True, enable_matplotlib=taken.append)
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setenv("MPLBACKEND", asked)
    monkeypatch.setattr(mpl, "rcParams", {"backend": backend})
    show_in_notebooks()
    assert taken == chosen
