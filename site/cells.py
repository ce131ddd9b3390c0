"""Marks in the pages: which cells are panels, guesses and exercises.

A part of the Sphinx settings. `static/live.js` looks for the marks; a page that is read
without scripts shows what the notebook shows.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from html import escape
from pathlib import Path
from typing import Any

import pictures
from bs4 import BeautifulSoup, Tag
from docutils.nodes import SkipNode
from figures import number_figures
from guesses import guess_data
from margin import add_notes
from markup import as_json, parse, sign
from reference import PAGE, overview

from llmtrain_course.cells import needed
from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit import ids
from llmtrain_course.panels import HANDLES
from tools.notebooks import chapters

CHAPTERS = {f"notebooks/{path.stem}": path for path in chapters()}
"""The chapters' notebooks, by the names that Sphinx has for them."""

SOLUTIONS = "notebooks/solutions/"

HERE = (
    '<p class="live-note">Everything on this page works here: pictures move, {dots}'
    "guesses and exercises are answered, and what you do stays in your browser. On paper: "
    '<a href="../sheet.pdf">the formulas</a>, <a href="../course.pdf">the course</a>. '
    'For a projector: <a href="?present">scene by scene</a>.</p>'
)
"""What the site says on each chapter's page."""

SCRIPTED = """if (location.protocol === "file:") document.documentElement.classList.add("file");
else document.documentElement.classList.add("live")"""
"""Before a page is drawn, so that forms stand in place of their cells from the first frame.
A page that was opened as a file may not run Python; it says what to do."""

AS_FILE = (
    '<p class="live-file">You opened this page as a file, so its pictures stand still. To let '
    "them move, run <code>python -m http.server</code> in the folder above, and open "
    "http://localhost:8000.</p>"
)

FIRST = ' <span class="live-note">Your first guess is the one that counts.</span>'

IMPORTS = "What the code on this page imports"

OF_NOTEBOOKS = (
    " Run the grey cells from top to bottom with **Shift+Enter**.",
    " Replace `None` with a number.",
    " (To update the map, save a page with Ctrl+S and run this cell again.)",
    " Hover over one to see its meaning.",
    '# No module named …? Run "make lab" in the course\'s folder: it installs all.\n',
)
"""Sentences that are true of notebooks only; a page leaves them out."""

MORE = {
    "notebooks/glossary": "Glossary",
    PAGE: "The helpers",
    "TEACHING": "For teachers",
    "data/README": "The data",
}
"""Pages beside the chapters, and what the contents call them."""

HANDOUTS = {"teaching/mistakes": "Mistakes", "teaching/polls": "Polls", "teaching/HUB": "The hub"}
"""Pages under the one for teachers."""

PARTS = [
    *("contents", "drag", "elements", "face", "figure", "former", "forms", "guess", "handle"),
    *("page_data", "panel", "progress", "python", "search", "tooltips"),
]
"""What `live.js` is made of; a page asks for all at once, and not for one after the other."""


def setup(app: Any) -> None:
    """Give the first page its contents, and all pages their marks."""
    app.connect("source-read", prepare)
    app.connect("html-page-context", ask_at_once)
    app.connect("html-page-context", mark)
    app.add_js_file(None, body=SCRIPTED)
    app.add_html_math_renderer("tex", (leave_inline, None), (leave_displayed, None))


def slug(title: str) -> str:
    """A heading's anchor as JupyterLab makes it, so that links serve in both."""
    return title.replace(" ", "-")


# --- formulas: as TeX, which `prerender` sets


def leave_inline(page: Any, node: Any) -> None:
    """A formula inside a line."""
    page.body.append(f'<span class="math">\\({escape(node.astext())}\\)</span>')
    raise SkipNode


def leave_displayed(page: Any, node: Any) -> None:
    """A formula on a line of its own."""
    page.body.append(f'<div class="math">\\[{escape(node.astext())}\\]</div>')
    raise SkipNode


# --- contents


def prepare(app: Any, name: str, source: list[str]) -> None:
    """Leave out what is said of notebooks only; contents end the first page."""
    if name == PAGE:
        source[0] += overview()
    if name == "TEACHING":
        pages = [f"{title} </{page}>" for page, title in HANDOUTS.items()]
        source[0] += "\n\n" + _tree("Handouts", pages)
    if name not in CHAPTERS:
        return
    notebook = json.loads(source[0])
    cells = [cell for cell in notebook["cells"] if "notebook-only" not in _tags(cell)]
    for cell in cells:
        text = reduce(lambda text, one: text.replace(one, ""), OF_NOTEBOOKS, _source(cell))
        markdown = cell["cell_type"] == "markdown"
        cell["source"] = text.replace("this notebook", "this page") if markdown else text
    if name == app.config.root_doc:
        trees = "\n\n".join(_tree(title, pages) for title, pages in _contents(app.srcdir))
        last = {"cell_type": "markdown", "id": "contents", "metadata": {}}
        cells.append(last | {"source": trees})
    source[0] = json.dumps(notebook | {"cells": cells})


def _source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def _tags(cell: dict[str, Any]) -> list[str]:
    return list(cell["metadata"].get("tags", []))


def _contents(root: Path) -> Iterator[tuple[str, list[str]]]:
    titles = {path.stem: _title(path) for path in CHAPTERS.values()}
    yield ("Chapters", [f"{titles[name]} </notebooks/{name}>" for name in [*titles][1:]])
    pages = {page: title for page, title in MORE.items() if [*root.glob(f"{page}.*")]}
    yield "Look up", [f"{title} </{page}>" for page, title in pages.items()]
    for title, folder in {"Worked answers": "solutions", "Evidence": "evidence"}.items():
        names = [name for name in titles if (root / f"notebooks/{folder}/{name}.ipynb").exists()]
        yield title, [f"{titles[name]} </notebooks/{folder}/{name}>" for name in names]


def _title(path: Path) -> str:
    """A chapter's title up to its colon: `03 · Duration`."""
    first = json.loads(path.read_text("utf-8"))["cells"][0]["source"][0]
    return first.strip("# \n").partition(":")[0]


def _tree(title: str, pages: list[str]) -> str:
    listed = "\n".join(pages)
    return f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```"


# --- scripts


def ask_at_once(app: Any, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Let a page fetch the parts of its script beside it."""
    links = (context["pathto"](f"_static/{part}.js", resource=True) for part in PARTS)
    asked = "".join(f'<link rel="modulepreload" href="{link}">' for link in links)
    context["metatags"] = context.get("metatags", "") + asked


# --- cells


def mark(app: Any, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Put the marks into a chapter's page, and into its solutions what links there find."""
    if name.startswith(SOLUTIONS):
        page = parse(context["body"])
        name_answers(page)
        context["body"] = str(page)
    if name not in CHAPTERS:
        return
    page = parse(context["body"])
    sources = list(code_cells(CHAPTERS[name]))
    cells = page.select("div.cell")
    if len(cells) != len(sources):
        raise ValueError(f"{name}: {len(sources)} code cells, {len(cells)} in the page")
    runs = runnable(sources)
    for at, (cell, source) in enumerate(zip(cells, sources, strict=True)):
        mark_cell(cell, at, source, runs[at])
        form = cell.next_sibling
        if isinstance(form, Tag) and "data-closed" in form.attrs and of_own_run(sources, at):
            form["data-example"] = ""
    order(page, cells[0])
    number_figures(page, [*CHAPTERS].index(name))
    add_notes(page)
    page.h1.insert_before(parse(sign(CHAPTERS[name])))
    guesses = {
        id: guess_data(id)
        for form in page.select("form[data-kind=guess]")
        if (id := str(form["data-id"]))
    }
    data = data_of_course() | {"cells": sources, "guesses": guesses}
    context["body"] = str(page) + "".join(data_script(*one) for one in data.items())


def name_answers(page: BeautifulSoup) -> None:
    """Give each exercise's question in a page of solutions the exercise's name."""
    for title in page.select("p > strong"):
        if id := re.fullmatch(r"([a-z_]+-[a-z]+)\.", title.get_text()):
            title.parent["id"] = id[1]


def code_cells(path: Path) -> Iterator[str]:
    """The sources of a notebook's code cells."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"])


def of_own_run(sources: list[str], at: int) -> bool:
    """Tell whether a cell rests on the learner's own run: its saved output is the example's."""
    return "own_run(" in f"{needed(sources[:at], sources[at])}\n{sources[at]}"


def runnable(sources: list[str]) -> list[bool]:
    """Tell which cells run where a page runs them, without NumPy and what needs it."""
    cells = [[json.dumps(sources[:at]), source] for at, source in enumerate(sources)]
    process = subprocess.run(
        [sys.executable, "-c", BARE],
        input=json.dumps(cells),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return [bool(ran) for ran in json.loads(process.stdout)]


BARE = """
import json, sys
for name in ("numpy", "pandas", "matplotlib", "ipywidgets", "IPython", "torch"):
    sys.modules[name] = None
from llmtrain_course.cells import run
answers = [json.loads(run(*cell))["html"] for cell in json.load(sys.stdin)]
print(json.dumps([bool(html) and "Error: " not in html for html in answers]))
"""


def mark_cell(cell: Tag, at: int, source: str, runs: bool) -> None:
    """Add what makes a panel, a handle, a guess, an exercise or another cell live."""
    last = source.rstrip().rpartition("\n")[2]
    if call := re.fullmatch(r"(\w+)_panel\(\)", last):
        mark_panel(cell, call[1])
        return
    if call := re.fullmatch(r'handle\("(\w+)"\)', last):
        mark_handle(cell, call[1])
        return
    if call := re.match(r'predict\("([\w-]+)"', last):
        form = guess(call[1], source)
    elif call := re.match(r'check\("([\w-]+)"', last):
        form = exercise(call[1], at, source, cell)
    elif runs and at:
        form = code_form(f"cell-{at}", at, source, "Change the lines, then run", False)
    else:
        return
    cell["class"] = [*cell.get("class", []), "live-source"]
    if call and (asks := cell.find_previous_sibling("p")):
        asks["class"] = [*asks.get("class", []), "live-question"]
    cell.insert_after(parse(form))


def order(page: BeautifulSoup, imports: Tag) -> None:
    """Put what one learns and the minutes first, what works here and the imports last."""
    goals = page.find("summary", string="Goals and time").parent
    imports.insert_before(parse(AS_FILE), goals.extract())
    folded = parse(f"<details><summary>{IMPORTS}</summary></details>").details
    folded.append(imports.extract())
    named = [str(tag["data-word"]).removeprefix("handle:") for tag in page.select(".live-handle")]
    movable = any("data-moves" in HANDLES[name].render() for name in named)
    here = HERE.format(dots="dots that glow can be dragged, " if movable else "")
    page.find("section").extend([parse(here), folded])


def mark_panel(cell: Tag, word: str) -> None:
    """A button that starts the panel, above its saved settings."""
    saved = cell.select_one(".cell_output")
    saved["class"] = [*saved.get("class", []), "live-saved"]
    cell["class"] = [*cell["class"], "live-call"]
    saved.insert_before(
        parse(
            f'<section class="live-panel" id="panel" data-word="{word}"><p>'
            '<button type="button" class="live-button live-start">Start the panel'
            '</button> <span class="live-note">It runs in your browser and first '
            "downloads about 7 MB.</span></p></section>"
        )
    )
    advice = saved.find(string=re.compile("Run the cell above"))
    text = str(advice).replace("Run the cell above", "Press Start")
    advice.replace_with(parse(f'<span class="live-note">{text}</span>'))


def mark_handle(cell: Tag, name: str) -> None:
    """A handle with its saved picture, and what the page's script makes its controls from."""
    saved, answer = cell.select_one(".cell_output"), cell.select_one(".text_html")
    saved["class"], answer["class"] = ["live-saved", "live-picture"], ["live-answer"]
    cell["class"] = [*cell["class"], "live-call"]
    begun = escape(pictures.initial_state(HANDLES[name]))
    section = parse(
        f'<section class="live-panel live-handle live-on" data-word="handle:{name}" '
        f'data-start="{begun}"></section>'
    ).section
    saved.wrap(section)


def guess(id: str, source: str) -> str:
    """Make the form of a guess: choices or a field, and a button that reveals."""
    unit = re.search(r"guess = None\s*#\s*(.*)", source)
    label = f"Your guess ({unit[1]})" if unit else "Your guess"
    if options := PREDICTIONS[id].options:
        radios = _radios(f"of-{id}", {option: escape(option) for option in options})
        field = f"<fieldset><legend>Your guess</legend>{radios}</fieldset>"
    else:
        field = (
            f'<label for="of-{id}">{escape(label)}</label>'
            f'<input type="text" id="of-{id}" name="of-{id}" autocomplete="off">'
        )
    return _form(id, "guess", "That is my guess", field, more=FIRST)


def exercise(id: str, at: int, source: str, before: Tag) -> str:
    """The cell as a field to write in; of a choice, its options, and the cell behind a line."""
    task = EXERCISES[id]
    options = getattr(task, "options", None)
    if not options:
        return code_form(id, at, source, f"Exercise {id}: put in your answer, then run")
    asked = [turn(id, 0, f"Exercise {id}", described(before, options))]
    for at_turn, question in enumerate(task.followups, 1):
        further = {one: escape(one) for one in getattr(question.exercise, "options", {})}
        text = f"Here's a different question instead: {escape(question.text)}"
        asked.append(turn(id, at_turn, text, further))
    cell = _cell(id, source, "Code: put in your answer")
    code = (
        f'<details class="live-code"><summary>code</summary>{cell}<p>'
        f'<button type="button" class="live-button live-plain live-run">Run</button>{_AGAIN}</p>'
        "</details>"
    )
    return _form(id, "run", "Check", "".join(asked), f' data-at="{at}"', after=code)


LONG = 24
"""Letters of an option from which on each stands on a line of its own."""


def turn(id: str, at: int, legend: str, options: Mapping[str, str]) -> str:
    """A question of a choice: 0 its own, then those that come after a wrong answer."""
    name, hidden = f"of-{id}-{at}", " hidden" if at else ""
    field = _radios(name, options) or f'<input type="text" name="{name}" autocomplete="off">'
    if not options:
        return f'<p data-turn="{at}"{hidden}><label>{legend} {field}</label></p>'
    long = any(len(words) > LONG for words in options.values())
    column = ' class="live-column"' if long else ""
    return f'<fieldset data-turn="{at}"{hidden}{column}><legend>{legend}</legend>{field}</fieldset>'


def described(cell: Tag, options: Iterable[str]) -> dict[str, str]:
    """The words of each option, as a list right above the cell has them; else its name.

    A list with words below it stays where it is: a sentence may lead to it.
    """
    listed = cell.find_previous_sibling()
    items = listed.find_all("li", recursive=False) if listed and listed.name == "ul" else []
    names = [item.get_text().strip(' "“”').partition(":")[0].strip('"“”') for item in items]
    if names != [*options]:
        return {option: escape(option) for option in options}
    listed["class"] = "live-listed"
    for item in items:
        for paragraph in item.find_all("p"):
            paragraph.unwrap()
    return {name: item.decode_contents() for name, item in zip(names, items, strict=True)}


def code_form(id: str, at: int, source: str, label: str, opened: bool = True) -> str:
    """A cell as a field to write in; `at` is its place among the page's cells."""
    data = f' data-at="{at}"' + ("" if opened else " data-closed hidden")
    return _form(id, "run", "Run", _cell(id, source, label), data, _AGAIN)


_AGAIN = (
    ' <button type="reset" class="live-button live-plain">Begin again</button> '
    '<span class="live-note live-keys">or Shift+Enter</span>'
)


def _cell(id: str, source: str, label: str) -> str:
    return (
        f'<label for="of-{id}">{label}</label><textarea id="of-{id}" name="of-{id}" '
        f'rows="{source.count(chr(10)) + 1}" spellcheck="false" autocapitalize="off" '
        f'autocomplete="off">\n{escape(source)}</textarea>'
    )


def _radios(name: str, options: Mapping[str, str]) -> str:
    """Options to choose from, each with its words."""
    return "".join(
        f'<label><input type="radio" name="{name}" value="{escape(option)}"> {words}</label>'
        for option, words in options.items()
    )


def _form(
    id: str, kind: str, button: str, field: str, data: str = "", more: str = "", after: str = ""
) -> str:
    """A form that Python judges: `kind` names the call in `exercises.page`."""
    return (
        f'<form class="live-form" data-kind="{kind}" data-id="{id}"{data}>'
        f'{field}<p><button class="live-button">{button}</button>{more}</p>'
        f'<div class="live-verdict" role="status"></div>{after}</form>'
    )


def data_of_course() -> dict[str, Any]:
    """The ids of exercises and guesses, of today and of earlier editions."""
    course = [*EXERCISES, *PREDICTIONS]
    return {"course": course, "numbered": ids.NUMBERED, "renamed": ids.RENAMED}


def data_script(name: str, value: Any) -> str:
    """Data for the page's script."""
    return f'<script type="application/json" id="live-{name}">{as_json(value)}</script>'
