"""What is left out where PyTorch is missing, and the one line that says so."""

import os
from pathlib import Path
from typing import Any

from llmtrain_course.measure import torch_missing
from tools.notebooks import all_notebooks

os.environ["LLMTRAIN_RUN"] = "example"  # whatever run a learner keeps here

_PYTORCH = ("__init__", "counting", "ledger", "memory", "model", "parallel", "record")
_PYTORCH += ("timing", "training")
NEED_IT = [
    *(f"llmtrain_course/measure/{name}.py" for name in _PYTORCH),
    "tests/ground_truth/*.py",
    "notebooks/12_measure.ipynb",
    "notebooks/evidence/12_measure.ipynb",
]
MISSING = torch_missing()
MOVED = ["llmtrain_helpers/exercises.py", "llmtrain_helpers/panels.py"]
"""Old places of the course's modules: importing them is an error that names the new ones."""

collect_ignore_glob = [*MOVED, "teaching/homes/*", *(NEED_IT if MISSING else [])]

COURSE = all_notebooks()

ROOT = Path(__file__).parent
TESTS = ROOT / "tests"
APART = [TESTS / "browser", TESTS / "test_regenerate.py"]
APART += [TESTS / "ground_truth" / name for name in ("test_parallel_steps.py", "test_times.py")]
"""What starts kernels, or times processes of its own: it runs where it is named, as in
tools/test.py, and not beside other tests."""


def pytest_ignore_collect(collection_path: Path, config: Any) -> bool | None:
    """Leave out what stands apart, and notebooks of a learner's own, unless they are named."""
    named = (Path(each.partition("::")[0]).resolve() for each in config.args)
    own = collection_path.suffix == ".ipynb" and collection_path.resolve() not in COURSE
    left_out = own or collection_path in APART
    return True if left_out and not any(n.is_relative_to(collection_path) for n in named) else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say once what was left out, and why."""
    if MISSING:
        terminalreporter.write_line(f"Left out, tests/ground_truth and 11: {MISSING}")
