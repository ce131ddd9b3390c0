"""A notebook as it was, the learner's copy kept: `make reset NOTEBOOK=03_duration`.

The notebook comes from git, as it was last committed. What stood there before is kept
beside it as `03_duration.mine.ipynb`, or `.mine-2`, `.mine-3`, when that is taken:
nothing is ever overwritten. Git, the tests and the build leave these copies alone.
Standard library only, so it needs no environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

COURSE = Path(__file__).resolve().parents[1]
NO_GIT = (
    "This folder is no git checkout, so the notebook as it was is not at hand. Rename "
    "yours, and take a fresh copy from where you have the course from."
)


class ResetError(Exception):
    """Why nothing was changed, in words for the learner."""


def git(*words: str, course: Path = COURSE) -> bytes:
    """What a git command prints; ResetError where there is no git or no checkout."""
    try:
        process = subprocess.run(["git", *words], cwd=course, capture_output=True, check=False)
    except OSError:
        raise ResetError(f"git is not installed. {NO_GIT}") from None
    if process.returncode:
        raise ResetError(NO_GIT)
    return process.stdout


def names(course: Path = COURSE) -> list[str]:
    """The notebooks that can be had back: the chapters and the glossary."""
    paths = git("ls-tree", "--name-only", "HEAD", "notebooks/", course=course)
    notebooks = [Path(line) for line in paths.decode("utf-8").splitlines()]
    if not notebooks:  # a checkout of something else lies around it
        raise ResetError(NO_GIT)
    return [path.stem for path in notebooks if path.suffix == ".ipynb"]


def which(text: str, choices: Sequence[str]) -> str:
    """The notebook that is meant: `03`, `03_duration`, or with folder and ending.

    >>> which("notebooks/03_duration.ipynb", ["02_flops", "03_duration"])
    '03_duration'
    """
    name = Path(text.strip()).name.removesuffix(".ipynb")
    listed = "\n  ".join(["", *choices])
    if not name:
        raise ResetError(f"Say which: make reset NOTEBOOK=NAME, where NAME is{listed}")
    matches = [notebook for notebook in choices if name in (notebook, notebook[:2], notebook[3:])]
    if len(matches) != 1:
        near = get_close_matches(name, choices, 1, 0.5)
        perhaps = f" Is {near[0]} meant?" if near else ""
        raise ResetError(f"There is no notebook {name!r}.{perhaps} There are{listed}")
    return matches[0]


def free_name(notebook: Path) -> Path:
    """Where the learner's copy is kept: a name that nothing has yet."""
    number = 1
    while True:
        mark = ".mine" if number == 1 else f".mine-{number}"
        copy = notebook.with_name(f"{notebook.stem}{mark}.ipynb")
        if not os.path.lexists(copy):
            return copy
        number += 1


def reset(text: str, course: Path = COURSE) -> str:
    """Put a notebook back as it was; a sentence about what was done."""
    name = which(text, names(course))
    notebook = course / "notebooks" / f"{name}.ipynb"
    fresh = git("show", f"HEAD:./notebooks/{name}.ipynb", course=course)
    if notebook.is_file() and notebook.read_bytes() == fresh:
        return f"{name} is as it was: nothing to do."
    copied = ""
    if os.path.lexists(notebook):
        copy = free_name(notebook)
        notebook.rename(copy)
        copied = f" Yours is kept as notebooks/{copy.name}."
    notebook.write_bytes(fresh)
    return (
        f"{name} is as it was.{copied} If it is open in JupyterLab: File, Reload "
        "Notebook from Disk, then Kernel, Restart."
    )


def main(arguments: Sequence[str]) -> int:
    """Print what was done; 2 where nothing could be."""
    try:
        print(reset(" ".join(arguments)))
    except ResetError as why:
        print(why, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
