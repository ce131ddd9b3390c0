"""Marks in the pages: which cells are panels, guesses and exercises.

A part of the Sphinx settings. `static/live.js` looks for the marks; a page that is read
without scripts shows what the notebook shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag

from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS
from llmtrain_helpers.exercises.common import Word
from llmtrain_helpers.exercises.page import needed

CHAPTERS = "notebooks/[0-9]*.ipynb"

HERE = (
    '<p class="live-note">Panels, guesses and exercises run in this page; other cells '
    'show what they printed. On paper: <a href="../sheet.pdf">the formulas</a>, '
    '<a href="../course.pdf">the course</a>.</p>'
)
"""What the site says on each chapter's page."""

MORE = {
    "notebooks/glossary": "Glossary",
    "TEACHING": "For teachers",
    "data/README": "The data",
}
"""Pages beside the chapters, and what the contents call them."""


def setup(app: Any) -> None:
    """Contents for the first page, marks for all."""
    app.connect("source-read", prepare)
    app.connect("html-page-context", mark)


def slug(title: str) -> str:
    """A heading's anchor as JupyterLab makes it, so that links serve in both."""
    return title.replace(" ", "-")


# --- contents


def prepare(app: Any, name: str, source: list[str]) -> None:
    """Leave out what is said of notebooks only; contents end the first page."""
    if not Path(app.srcdir, f"{name}.ipynb").match(CHAPTERS):
        return
    notebook = json.loads(source[0])
    cells = [cell for cell in notebook["cells"] if "notebook-only" not in _tags(cell)]
    if name == app.config.root_doc:
        told = _contents(app.srcdir)
        trees = "\n\n".join(_tree(title, pages) for title, pages in told)
        last = {"cell_type": "markdown", "id": "contents", "metadata": {}}
        cells.append(last | {"source": trees})
    source[0] = json.dumps(notebook | {"cells": cells})


def _tags(cell: dict[str, Any]) -> list[str]:
    return list(cell["metadata"].get("tags", []))


def _contents(root: Path) -> Iterator[tuple[str, list[str]]]:
    chapters = {path.stem: _title(path) for path in sorted(root.glob(CHAPTERS))}
    yield (
        "Chapters",
        [f"{chapters[name]} </notebooks/{name}>" for name in [*chapters][1:]],
    )
    known = {page: title for page, title in MORE.items() if [*root.glob(f"{page}.*")]}
    yield "Look up", [f"{title} </{page}>" for page, title in known.items()]
    for title, folder in {
        "Worked answers": "solutions",
        "Evidence": "evidence",
    }.items():
        yield (
            title,
            [f"{chapters[name]} </notebooks/{folder}/{name}>" for name in chapters],
        )


def _title(path: Path) -> str:
    """A chapter's title up to its colon: `03 · Duration`."""
    first = json.loads(path.read_text("utf-8"))["cells"][0]["source"][0]
    return first.strip("# \n").partition(":")[0]


def _tree(title: str, pages: list[str]) -> str:
    told = "\n".join(pages)
    return f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{told}\n```"


# --- cells


def mark(
    app: Any, name: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Put the marks into a chapter's page."""
    path = Path(app.srcdir, f"{name}.ipynb")
    if not path.match(CHAPTERS):
        return
    page = BeautifulSoup(context["body"], "html.parser")
    sources = list(code_cells(path))
    cells = page.select("div.cell")
    if len(cells) != len(sources):
        raise ValueError(f"{name}: {len(sources)} code cells, {len(cells)} in the page")
    for at, (cell, source) in enumerate(zip(cells, sources, strict=True)):
        mark_cell(cell, sources[:at], source)
    fold(cells[0])
    cells[0].parent.insert_before(BeautifulSoup(HERE, "html.parser"))
    context["body"] = str(page) + _course()


def code_cells(path: Path) -> Iterator[str]:
    """The sources of a notebook's code cells."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def mark_cell(cell: Tag, before: list[str], source: str) -> None:
    """Add what makes a panel, a guess or an exercise live."""
    last = source.rstrip().rpartition("\n")[2]
    if found := re.fullmatch(r"(\w+)_panel\(\)", last):
        added = panel(found[1])
    elif found := re.match(r'predict\("([\w-]+)"', last):
        added = guess(found[1], source)
    elif found := re.match(r'check\("([\w-]+)"', last):
        added = exercise(found[1], needed(before, source), source)
    else:
        return
    cell["class"] = [*cell.get("class", []), "live-source"]
    cell.insert_after(BeautifulSoup(added, "html.parser"))


def fold(cell: Tag) -> None:
    """Put the first cell, which brings in the helpers, behind a line."""
    page = BeautifulSoup("", "html.parser")
    folded, line = page.new_tag("details"), page.new_tag("summary")
    line.string = "What the code on this page imports"
    cell.wrap(folded)
    folded.insert(0, line)


def panel(word: str) -> str:
    """A button that starts the panel where it stands."""
    return (
        f'<section class="live-panel" data-word="{word}" hidden>'
        '<p><button type="button" class="live-button live-start">Start the panel'
        '</button> <span class="live-note">It runs in this page; the first start of '
        "a visit fetches some 6 MB.</span></p></section>"
    )


def guess(id: str, source: str) -> str:
    """Choices or a field, and a button that reveals."""
    told = re.search(r"guess = None\s*#\s*(.*)", source)
    options = PREDICTIONS[id].options
    if options:
        return choices(id, "guess", "Your guess", "That is my guess", options)
    label = f"Your guess ({told[1]})" if told else "Your guess"
    return _form(
        *(id, "guess", "That is my guess"),
        f'<label for="of-{id}">{escape(label)}</label>'
        f'<input type="text" id="of-{id}" name="of-{id}" autocomplete="off">',
    )


def choices(
    id: str, kind: str, legend: str, button: str, options: Iterable[str]
) -> str:
    """One of several, and a button that asks for the verdict."""
    radios = "".join(
        f'<label><input type="radio" name="of-{id}" value="{escape(one)}"> '
        f"{escape(one)}</label>"
        for one in options
    )
    field = f"<fieldset><legend>{legend}</legend>{radios}</fieldset>"
    return _form(id, kind, button, field)


def exercise(id: str, lines: str, source: str) -> str:
    """Choices, or the cell as a field to write in, with what runs before it."""
    judged = EXERCISES[id]
    if isinstance(judged, Word) and source.startswith("answer = None"):
        return choices(id, "chosen", f"Exercise {id}", "Check", judged.options)
    imports, own = _parted(lines)
    text = f"{own}\n{source}" if own else source
    told = f"Exercise {id}: put in your answer, then run"
    return _form(
        *(id, "run", "Run"),
        f'<label for="of-{id}">{told}</label><textarea id="of-{id}" name="of-{id}" '
        f'rows="{text.count(chr(10)) + 1}" spellcheck="false" autocapitalize="off" '
        f'autocomplete="off">\n{escape(text)}</textarea>',
        f' data-lines="{escape(imports)}"',
        ' <button type="reset" class="live-button live-plain">Begin again</button> '
        '<span class="live-note">or Shift+Enter</span>',
    )


def _form(
    id: str, kind: str, button: str, field: str, data: str = "", more: str = ""
) -> str:
    """A form that Python judges: `kind` names the call in `exercises.page`."""
    return (
        f'<form class="live-form" data-kind="{kind}" data-id="{id}"{data} hidden>'
        f'{field}<p><button class="live-button">{button}</button>{more}</p>'
        '<div class="live-verdict" role="status"></div></form>'
    )


def _parted(lines: str) -> tuple[str, str]:
    """What is imported, and the lines that a learner may want to change."""
    told = lines.split("\n")
    imports = [line for line in told if line.startswith(("from ", "import "))]
    return "\n".join(imports), "\n".join(x for x in told if x not in imports)


def _course() -> str:
    """How many exercises and guesses each chapter has, for the page's score."""
    ids = json.dumps([*EXERCISES, *PREDICTIONS])
    return f'<script type="application/json" id="live-course">{ids}</script>'
