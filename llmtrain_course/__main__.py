"""What the course does in a terminal: `python -m llmtrain_course COMMAND`."""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from llmtrain_helpers.__main__ import in_shell, refused, run

USAGE = """python -m llmtrain_course COMMAND

  class FOLDER [--csv]       which learners have passed what, from saved notebooks
  measure --record FILE.csv  time this machine with PyTorch, row by row

Each takes --help."""


def class_report(arguments: Sequence[str]) -> int:
    """Print who of a class has passed what: `teaching/class_report.py` does it."""
    script = Path(__file__).parents[1] / "teaching" / "class_report.py"
    if not script.is_file():
        return refused("The class report is part of the course's folder: run it there.")
    return int(runpy.run_path(str(script))["main"](arguments))


def measure(arguments: Sequence[str]) -> int:
    """Record this machine; 0 when complete, 2 with one sentence when it can't be."""
    parser = argparse.ArgumentParser(
        prog="python -m llmtrain_course measure",
        description="Time matrix products and training steps, and write each as a row.",
        allow_abbrev=False,
    )
    parser.add_argument("--record", type=Path, required=True, metavar="FILE.csv")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, in seconds")
    chosen = parser.parse_args(arguments)
    if chosen.record.suffix != ".csv":
        return refused("--record takes the name of a file that ends in .csv")
    if chosen.device == "cpu" and not chosen.tiny:
        return refused("A CPU takes days for this: add --tiny to try the path.")
    from llmtrain_course.measure import torch_missing

    missing = torch_missing()
    if missing:
        return refused(missing)
    try:
        record = import_module("llmtrain_course.measure.record")
        problem = record.problem(chosen.device)
        if problem:
            return refused(problem)
        record.record(chosen.record, chosen.device, chosen.tiny)
    except (ValueError, OSError, RuntimeError) as error:
        return refused(str(error).splitlines()[0])
    except KeyboardInterrupt:
        print(f"Stopped: {chosen.record} keeps its rows; the same command goes on.")
        return 130
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"class": class_report, "measure": measure}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands; 2 with the list of them for anything else."""
    return run(COMMANDS, USAGE, arguments)


if __name__ == "__main__":
    in_shell(main)
