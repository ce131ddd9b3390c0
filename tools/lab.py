"""JupyterLab as the course wants it: python tools/lab.py [JupyterLab's options].

`make lab` runs this. It serves the whole project, so that links from the notebooks to data
and code lead somewhere; it opens notebook 00 in a workspace of its own, one for each copy
of the course, so that nobody's other layout is touched; it asks neither you about news nor
the network for new versions. The course's own notebooks are signed first, as `jupyter
trust` does: an untrusted one shows light cards in a dark theme.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from tools.notebooks import NOTEBOOKS, all_notebooks, refuse_another_copy

ROOT = NOTEBOOKS.parent
COPY = hashlib.sha256(bytes(ROOT)).hexdigest()[:6]
"""A word for this copy of the course; two copies share no layout."""

FIRST = f"/lab/workspaces/llmtrain-{COPY}/tree/notebooks/00_start_here.ipynb"
"""The first notebook, in the copy's workspace; JupyterLab keeps that in the user's folder."""

SETTINGS = ROOT / "tools" / "settings"
"""Defaults in place of JupyterLab's: no news, no look for new versions, Markdown to read."""


def main(options: Sequence[str]) -> int:
    """Trust the course's notebooks, then run JupyterLab until it ends; its exit status."""
    refuse_another_copy(__file__)
    if why := untrusted():
        message = "In a dark theme pictures stay light until their cells run"
        print(f"{message}: the notebooks are not trusted ({why}).", file=sys.stderr)
    server = subprocess.Popen(command(options))
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:  # it has heard it too, and asks whether to stop
            continue


def command(options: Sequence[str] = (), root: Path = ROOT) -> list[str]:
    """The command that serves a folder with the course's `notebooks/` in it.

    Of the course's own settings each gives way to an option of that name, since JupyterLab
    takes none twice. It runs as root only if it's asked to, so a container's root asks.
    """
    own = {
        "--ServerApp.root_dir": root,
        "--LabApp.default_url": FIRST,
        "--LabApp.app_settings_dir": SETTINGS,
    }
    names = {option.partition("=")[0] for option in options}
    settings = [f"{name}={value}" for name, value in own.items() if name not in names]
    if getattr(os, "geteuid", lambda: 1)() == 0 and "--allow-root" not in names:
        settings.append("--allow-root")
    return [sys.executable, "-m", "jupyterlab", *settings, *options]


def untrusted() -> str:
    """Why the course's notebooks are not all signed for this user; nothing if they are."""
    try:
        notary = NotebookNotary()
        for path in all_notebooks():
            notary.sign(nbformat.read(path, nbformat.NO_CONVERT))
        notary.store.close()
    except (OSError, ValueError, sqlite3.Error) as error:
        return str(error) or type(error).__name__
    saved = getattr(notary.store, "db_file", ":memory:") != ":memory:"
    return "" if saved else "Jupyter's folder cannot be written"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
