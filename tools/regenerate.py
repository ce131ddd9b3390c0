"""The only writer of the notebooks' outputs.

`make regenerate` runs every notebook and writes what it printed: without times, widget
state or widget views, with fixed kernel metadata and the ids and tags that stand there.
Two runs give identical bytes: a picture of this machine's times, shown by a line that
ends in `# live`, stays as it is as long as its words do. `make regenerate CHECK=1`
writes nothing, and tells which committed notebooks are stale (the bytes of pictures
aside, which depend on the machine's libraries: their text twins are compared). Without
PyTorch, notebook 12 and its evidence are left out. Before that, links to the glossary get
their tooltips (see tools/glossary.py), in all notebooks.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from llmtrain_course.measure import torch_missing
from tools import glossary
from tools.notebooks import NOTEBOOKS, all_notebooks, refuse_another_copy

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]+")

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}


NEED_TORCH = [NOTEBOOKS / f"{place}12_measure.ipynb" for place in ("", "evidence/")]


def run(path: Path) -> str:
    """The notebook's text after all of its cells ran in a fresh kernel."""
    notebook = nbformat.read(path, as_version=4)
    earlier = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute(env=environment())
    return as_text(keep_live_pictures(clean(notebook), clean(earlier)))


def environment() -> dict[str, str]:
    """The environment with the example's run, without MPLBACKEND, which hides figures."""
    variables = {name: it for name, it in os.environ.items() if name != "MPLBACKEND"}
    return variables | {"LLMTRAIN_RUN": "example"}


def keep_live_pictures(after: NotebookNode, earlier: NotebookNode) -> NotebookNode:
    """Pictures of times as they were, where the words beside them are the same."""
    live = {cell.id: cell for cell in earlier.cells if "# live" in cell.source}
    for cell in after.cells:
        saved = live.get(cell.id)
        if saved and saved.source == cell.source and words(saved) == words(cell):
            cell.outputs = saved.outputs
    return after


def words(cell: NotebookNode) -> list[str]:
    """What a cell printed, and the words of what it showed."""
    printed = [output.text for output in cell.outputs if "text" in output]
    values = [o.data["text/plain"] for o in cell.outputs if "text/plain" in o.get("data", {})]
    return printed + values


def clean(notebook: NotebookNode) -> NotebookNode:
    """Drop from a notebook all that is not the course's."""
    notebook.metadata = METADATA
    notebook.nbformat_minor = 5
    for cell in notebook.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k == "tags"}
        if "outputs" in cell:
            cell.outputs = joined(cell.outputs)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
            if "metadata" in output:
                output.metadata = {}
    return notebook


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """A cell's outputs with all that it printed in one piece, however slowly it came."""
    pieces: list[NotebookNode] = []
    for output in outputs:
        if pieces and output.get("name") and pieces[-1].get("name") == output.name:
            pieces[-1].text += output.text
        else:
            pieces.append(output)
    return pieces


def as_text(notebook: NotebookNode) -> str:
    """The notebook as its file holds it."""
    return nbformat.writes(notebook) + "\n"


def without_pictures(text: str) -> NotebookNode:
    """A notebook to compare across machines: all but the bytes of its pictures."""
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = ""
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = PNG.sub("", output.data["text/html"])
    return notebook


def main() -> int:
    """Regenerate, or check, the named notebooks (all without a name)."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args()
    refuse_another_copy(__file__)
    stale = glossary.update(options.check)
    for path in options.notebooks or all_notebooks():
        if path.resolve() in NEED_TORCH and torch_missing():
            print(f"left out {path.name}: {torch_missing()}")
            continue
        before, after = path.read_text("utf-8"), run(path)
        same = without_pictures(before) == without_pictures(after)
        stale += not same
        print(f"{'same   ' if same else 'changed'} {path.name}")
        if not options.check:
            path.write_text(after, encoding="utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
