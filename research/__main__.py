"""What maintainers print: `python -m research COMMAND`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module

from llmtrain_helpers.__main__ import in_shell, run

USAGE = """python -m research COMMAND

  utilizations  how many published figures are inside the interval of the others
  splits        how well the model of a step orders measured splits
  finetunes     how fast fine-tuning was, as others measured it
  memory        how well the memory of measured steps is predicted

Each takes --help."""


def printed(name: str) -> Callable[[Sequence[str]], int]:
    """Return the command that prints a module's table."""

    def command(arguments: Sequence[str]) -> int:
        argparse.ArgumentParser(prog=f"python -m research {name}").parse_args(arguments)
        import_module(f"research.{name}").main()
        return 0

    return command


COMMANDS = {name: printed(name) for name in ("utilizations", "splits", "finetunes", "memory")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands; 2 with the list of them for anything else."""
    return run(COMMANDS, USAGE, arguments)


if __name__ == "__main__":
    in_shell(main)
