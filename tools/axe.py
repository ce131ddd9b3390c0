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

AXE = Path(__file__).parents[1] / "site/node_modules/axe-core/axe.min.js"

PLACES = [".live-panel", ".jp-OutputArea-output", ".jp-MarkdownOutput"]

RUN = """
async places => {
    const result = await axe.run({include: places.filter(
        place => document.querySelector(place)).map(place => [place])});
    return result.violations.flatMap(rule => rule.nodes.map(
        node => [rule.id, rule.help, node.html.slice(0, 120)]));
}
"""


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
    page.add_script_tag(path=AXE)
    violations = page.evaluate(RUN, PLACES)
    print(f"{name}, {state}: {len(violations)} violations")
    for rule in sorted({tuple(row) for row in violations})[:20]:
        print("   ", *rule, sep=" | ")


if __name__ == "__main__":
    main()
