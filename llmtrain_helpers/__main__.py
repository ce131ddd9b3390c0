"""A plan in a terminal: `llmtrain COMMAND`, or `python -m llmtrain_helpers COMMAND`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NoReturn

from llmtrain_helpers import __version__

USAGE = """python -m llmtrain_helpers COMMAND

  plan MODEL …               what a run needs, and whether it fits
  plan --days D …            what these GPUs can train in D days
  models                     the models that a plan knows by name
  chips                      the accelerators that a plan knows
  families                   the families whose config.json a plan reads

Each takes --help; --version prints the version."""

MOVED = {
    **dict.fromkeys(("utilizations", "splits", "finetunes"), "research"),
    **dict.fromkeys(("class", "measure"), "llmtrain_course"),
}
"""Commands that have moved to another package."""


def refused(sentence: str) -> int:
    """Print the reason; the exit status is 2."""
    print(sentence, file=sys.stderr)
    return 2


def of_plans(name: str) -> Callable[[Sequence[str]], int]:
    """Make a command from `command`, which is only imported when the command runs."""

    def command(arguments: Sequence[str]) -> int:
        status: int = getattr(import_module("llmtrain_helpers.command"), name)(arguments)
        return status

    return command


COMMANDS = {name: of_plans(name) for name in ("plan", "models", "chips", "families")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands; 2 with the list of them for anything else."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in MOVED:
        return refused(f"Write: python -m {MOVED[arguments[0]]} {' '.join(arguments)}")
    if [*arguments] == ["--version"]:
        print(f"llmtrain-helpers {__version__}")
        return 0
    return run(COMMANDS, USAGE, arguments)


def run(
    commands: Mapping[str, Callable[[Sequence[str]], int]],
    usage: str,
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the command that the first argument names; 2 with the list for anything else."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(usage)
        return 0
    if name not in commands:
        return refused(f"{name} isn't a command.\n\n{usage}")
    try:
        return commands[name](rest)
    except ValueError as problem:  # a table that's damaged, for example
        return refused(str(problem))


def in_shell(main: Callable[[], int]) -> NoReturn:
    """Run a shell's command; its reader may stop before we stop printing."""
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


def command() -> NoReturn:
    """Run `llmtrain`."""
    in_shell(main)


if __name__ == "__main__":
    command()
