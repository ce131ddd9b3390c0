"""What is left out where PyTorch is missing, and the one line that says so."""

from typing import Any

from llmtrain_helpers.measure import torch_missing

NEED_IT = [
    "llmtrain_helpers/measure/*.py",
    "tests/ground_truth/*.py",
    "notebooks/11_measure.ipynb",
    "notebooks/evidence/11_measure.ipynb",
]
MISSING = torch_missing()
KEPT = ["notebooks/*.mine.ipynb", "notebooks/*.mine-*.ipynb"]
"""Copies that `make reset` keeps for a learner."""

MOVED = ["llmtrain_helpers/utilizations.py", "llmtrain_helpers/splits.py"]
"""Old names of commands; imported, they would stand before the evidence."""

collect_ignore_glob = [*KEPT, *MOVED, "teaching/homes/*", *(NEED_IT if MISSING else [])]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say once what was left out, and why."""
    if MISSING:
        terminalreporter.write_line(f"Left out, tests/ground_truth and 11: {MISSING}")
