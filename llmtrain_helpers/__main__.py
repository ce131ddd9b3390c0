"""What the course does in a terminal: `python -m llmtrain_helpers COMMAND`."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from llmtrain_helpers.command import chips, models, plan

USAGE = """python -m llmtrain_helpers COMMAND

  plan MODEL …               what a run takes, and whether it fits
  plan --days D …            what these GPUs can train in so many days
  models                     the models that a plan knows by name
  chips                      the accelerators
  utilizations               how many published figures lie in the others' interval
  splits                     how well the model of a step orders measured splits
  finetunes                  how well measured fine-tuning is foretold
  class FOLDER [--csv]       which learners have passed what, from saved notebooks
  measure --record FILE.csv  time this machine with PyTorch, row by row

Each takes --help."""


def utilizations(arguments: Sequence[str]) -> int:
    """Print the table of `research.utilizations.coverage`."""
    argparse.ArgumentParser(prog="python -m research utilizations").parse_args(arguments)
    from research.utilizations import main

    main()
    return 0


def splits(arguments: Sequence[str]) -> int:
    """Print the table of `research.splits.ranked`."""
    argparse.ArgumentParser(prog="python -m research splits").parse_args(arguments)
    from research.splits import main

    main()
    return 0


def finetunes(arguments: Sequence[str]) -> int:
    """Print what `research.finetunes` finds."""
    argparse.ArgumentParser(prog="python -m research finetunes").parse_args(arguments)
    from research.finetunes import main

    main()
    return 0


def class_report(arguments: Sequence[str]) -> int:
    """Print who of a class has passed what: `teaching/class_report.py` does it."""
    script = Path(__file__).parents[1] / "teaching" / "class_report.py"
    if not script.is_file():
        return refused("The class report is part of the course's folder: run it there.")
    return int(runpy.run_path(str(script))["main"](arguments))


def measure(arguments: Sequence[str]) -> int:
    """Record this machine; 0 when complete, 2 with one sentence when it cannot be."""
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


def refused(sentence: str) -> int:
    """Say why not; the exit status is 2."""
    print(sentence, file=sys.stderr)
    return 2


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "plan": plan,
    "models": models,
    "chips": chips,
    "utilizations": utilizations,
    "splits": splits,
    "finetunes": finetunes,
    "class": class_report,
    "measure": measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands; 2 with the list of them for anything else."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(USAGE)
        return 0
    if name not in COMMANDS:
        return refused(f"{name} is no command.\n\n{USAGE}")
    return COMMANDS[name](rest)


if __name__ == "__main__":
    try:
        try:
            status = main()
        finally:  # --help leaves by itself
            sys.stdout.flush()
    except OSError as problem:
        if problem.filename is not None:  # it's not about what's printed
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        read = isinstance(problem, BrokenPipeError)  # by head, for example, which has enough
        status = 1 if read else refused(f"The output can't be written: {problem.strerror}.")
    sys.exit(status)
