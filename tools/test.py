"""Everything that `make test` runs, on any system: python tools/test.py [pytest's options].

Lint first. Then two processes side by side: one for the unit tests, one that walks the
notebooks under strict nbval, regenerates two and then drives the browser, if there is
one. Kernels that start at the same moment now and then fail, so only that second process
starts any. The first one's output streams, the second one's follows when it is done. What
times processes of its own, with PyTorch, comes last and has the machine to itself.

Options go to both (`-k 01`, `-x`); paths among them are run alone, in one process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from tools.notebooks import refuse_another_copy

ROOT = Path(__file__).parents[1]
PYTEST = [sys.executable, "-m", "pytest"]
WALKS = ["notebooks", "tests/test_regenerate.py", "tests/browser"]
TIMED = ["tests/ground_truth/test_parallel_steps.py", "tests/ground_truth/test_times.py"]
LINT = [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]]
NOTHING_CHOSEN = 5
"""What pytest returns where -k leaves no test."""


def main(arguments: list[str]) -> int:
    """Run it all; 0 only if nothing failed."""
    refuse_another_copy(__file__)
    if "--no-lint" in arguments:
        arguments.remove("--no-lint")
    else:
        for tool in LINT:
            command = [sys.executable, "-X", "utf8", "-m", *tool]  # mypy wants the path in it
            if subprocess.run(command, cwd=ROOT, env=environment()).returncode:
                return 1
    if names_a_path(arguments):
        return subprocess.run([*PYTEST, *arguments], cwd=ROOT).returncode
    codes = side_by_side(
        [*PYTEST, *arguments], [*PYTEST, "-o", "cache_dir=.pytest_cache/walks", *arguments, *WALKS]
    )
    if find_spec("torch"):
        codes.append(subprocess.run([*PYTEST, *arguments, *TIMED], cwd=ROOT).returncode)
    failed = [code for code in codes if code not in (0, NOTHING_CHOSEN)]
    nothing = all(code == NOTHING_CHOSEN for code in codes)
    return failed[0] if failed else NOTHING_CHOSEN if nothing else 0


def environment() -> dict[str, str]:
    """The environment for the linters; without their caches where they cannot write any."""
    if os.access(ROOT, os.W_OK):
        return {**os.environ}
    return {**os.environ, "RUFF_NO_CACHE": "true", "MYPY_CACHE_DIR": os.devnull}


def names_a_path(arguments: list[str]) -> bool:
    """Whether files or folders are among pytest's options (`-k tests` names none)."""
    for previous, argument in zip(["", *arguments], arguments, strict=False):
        word = argument.startswith("-") or previous in ("-k", "-m", "-o", "-p", "-n", "-W")
        if not word and (ROOT / argument.partition("::")[0]).exists():
            return True
    return False


def side_by_side(streamed: list[str], buffered: list[str]) -> list[int]:
    """Both exit codes; the second command's output is printed after the first has ended."""
    with TemporaryFile() as output:
        # One thread each: PyTorch's threads would wait for a core that the other one has.
        env = {"OMP_NUM_THREADS": "1", **os.environ}
        both = {"stdout": output, "stderr": subprocess.STDOUT}
        second = subprocess.Popen(buffered, cwd=ROOT, env=env, **both)
        first = subprocess.Popen(streamed, cwd=ROOT, env=env)
        try:
            first.wait()
            print("\nUnit tests are done. Notebooks and browser:", flush=True)
            second.wait()
        finally:  # Ctrl-C ends both
            for process in (first, second):
                if process.poll() is None:
                    process.terminate()
                    process.wait()
            output.seek(0)
            shutil.copyfileobj(output, sys.stdout.buffer)
            sys.stdout.flush()
        return [first.returncode, second.returncode]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
