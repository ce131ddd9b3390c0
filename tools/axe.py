"""Find what a screen reader can't use on each page in JupyterLab, live and as saved.

    .venv/bin/python tools/axe.py [03_duration.ipynb …]

Runs axe-core, which `make site` installs, on all pages or those named, and prints a line for
each rule that is broken inside the notebook's outputs and panels. JupyterLab's own chrome is
left out.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser import lab
from tools.notebooks import chapters

PLACES = [".live-panel", ".jp-OutputArea-output", ".jp-MarkdownOutput"]


def main() -> None:
    """Walk all pages, or those named."""
    pages = sys.argv[1:] or [path.name for path in chapters()]
    with (
        tempfile.TemporaryDirectory() as folder,
        lab.jupyterlab(Path(folder)) as address,
        lab.chromium() as browser,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        for name in pages:
            lab.open_notebook(page, address, name)
            report(name, "saved", page)
            if "_panel()" in (lab.NOTEBOOKS / name).read_text("utf-8"):
                lab.run_panel(page)
                report(name, "live", page)


def report(name: str, state: str, page: lab.Page) -> None:
    """Print what is broken on this page."""
    violations, measured = lab.axe(page, *PLACES)
    print(f"{name}, {state}: {len(violations)} violations, contrast of {measured} texts measured")
    for rule in sorted(set(violations))[:20]:
        print("   ", *rule, sep=" | ")


if __name__ == "__main__":
    main()
