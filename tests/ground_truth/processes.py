"""Some processes that run a script of this folder together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import Any

from llmtrain_course.measure.parallel import _environment
from tests.paths import ROOT

START = get_context(get_all_start_methods()[0])
"""Forked where a system can, so that PyTorch is imported once for all of them."""


def first_of(script: str, groups: list[int], folder: Path) -> list[Any]:
    """What the first process of each group returns; all have to end well."""
    command = [sys.executable, "-m", f"{__package__}.{script}", str(folder), *map(str, groups)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, encoding="utf-8", env=_environment(), cwd=ROOT, timeout=240
    )
    assert done.returncode == 0
    return [*map(json.loads, done.stdout.strip().splitlines()[-len(groups) :])]


def run_groups(main: Callable[[int, int, str], Any]) -> None:
    """Run a script's `main(rank, many, meeting)` in every process of each group."""
    folder, *groups = sys.argv[1:]
    for many in map(int, groups):
        about = [(main, rank, many, str(Path(folder, str(many)))) for rank in range(many)]
        processes = [START.Process(target=_run, args=each) for each in about]
        for process in processes:
            process.start()
        for process in processes:
            process.join(120)
        if codes := [process.exitcode for process in processes if process.exitcode != 0]:
            for process in processes:
                process.kill()
            sys.exit(f"of {many} processes some ended with {codes}")


def _run(main: Callable[[int, int, str], Any], rank: int, many: int, meeting: str) -> None:
    result = main(rank, many, meeting)
    if rank == 0:
        print(json.dumps(result), flush=True)
    os._exit(0)  # gloo's threads abort now and then when they are torn down
