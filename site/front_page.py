"""The front page: a handle that needs no Python, a guess, the chapters as cards, the doors.

Its template is `front_page/page.html`, with a style and a script of its own. The handle, its
script and the one that answers the guess are the chapters'.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import cells
from figures import add_caption
from guesses import guess_data
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markup import parse, sign
from markupsafe import Markup
from reference import PAGE as REFERENCE

from llmtrain_course.kit import ids
from llmtrain_course.panels import HANDLES
from llmtrain_course.start_here.handles import Setting
from llmtrain_course.start_here.pictures import STOPS
from llmtrain_helpers import published, units
from teaching.minutes import solo_minutes
from tools.notebooks import NOTEBOOKS, chapters

HERE = Path(__file__).parent
ROOT = NOTEBOOKS.parent
FACE = ROOT / "llmtrain_course" / "kit" / "face" / "face.css"

PACKED = ["llmtrain_helpers", "llmtrain_course", "research"]
PACKED += ["notebooks", "data", "teaching", "tools"]
FOLDER = "what-will-it-take"
"""What is needed to run the notebooks, beside the files of the folder, and its name."""

LINKED = ["site/sheet.py", "tests/ground_truth/test_step_memory.py"]
"""What the README and the notebooks link to beside that."""

PARTS = (
    "drag",
    "elements",
    "face",
    "figure",
    "former",
    "guess",
    "handle",
    "page_data",
    "progress",
    "python",
)
"""What its script imports, as a page of a chapter does."""

GUESS, ASKED = "start_here-guess", "Llama 3.1 8B"
"""The guess of the front page, and the run that it asks about."""

LOOKUP = {"notebooks/glossary": "Glossary", REFERENCE: "The helpers", "data/README": "The data"}
"""The pages to look things up in, after the chapters."""

NUMBER = {13: "thirteen", 14: "fourteen"}[len(chapters())]
"""How many chapters there are, in a word."""

DESCRIPTION = (
    "What will it take to train a language model? Parameters, FLOPs, days, memory and money, "
    f"in {NUMBER} pages of pictures to move, each number tested against published runs."
)


def write(site: Path, source: str = "") -> None:
    """Write the front page of a site."""
    pack(site / "notebooks.zip")
    (site / "index.html").write_text(page(source), "utf-8")


def pack(path: Path) -> None:
    """The notebooks with all that they need, as one file to take along."""
    files = [one for one in ROOT.iterdir() if one.is_file() and not one.name.startswith(".")]
    files += [one for name in PACKED for one in (ROOT / name).rglob("*") if belongs(one)]
    files += [ROOT / name for name in LINKED]
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for one in sorted(files):
            archive.write(one, Path(FOLDER, one.relative_to(ROOT)))


def belongs(path: Path) -> bool:
    """Tell whether a file belongs to the course, and isn't what a run of it has left."""
    left = {"__pycache__", ".ipynb_checkpoints", "my_run.toml"}
    return path.is_file() and not left & set(path.parts)


def page(source: str = "") -> str:
    """The page; `source` is the address of the course's repository, "" for none."""
    folder = HERE / "front_page"
    loader = FileSystemLoader([folder, HERE / "templates"])
    jinja = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    start = Setting()
    data = cells.data_of_course() | {"guesses": guesses(start)}
    return jinja.get_template("page.html").render(
        handle=with_handle,
        setting=start,
        guess=GUESS,
        description=DESCRIPTION,
        style=Markup("\n".join(path.read_text("utf-8") for path in (FACE, folder / "page.css"))),
        script=Markup((folder / "page.js").read_text("utf-8")),
        parts=PARTS,
        up="",
        start=f"notebooks/{ids.CHAPTERS[0]}.html",
        cards=cards(),
        data=Markup("".join(cells.data_script(*one) for one in data.items())),
        source=source,
        folder=FOLDER,
        number=NUMBER,
        lookup=LOOKUP,
        **citation(),
    )


def with_handle(name: str, limits: str) -> Markup:
    """A handle as a chapter's page has it: its picture, and what the script makes controls of."""
    saved = f'<div class="text_html">{HANDLES[name].static_html()}</div>'
    cell = parse(f'<div class="cell"><div class="cell_output">{saved}</div></div>').div
    cells.mark_handle(cell, name)
    add_caption(cell.section, "0", f"{HANDLES[name].title} {limits}", "")
    return Markup(cell)


def guesses(start: Setting) -> dict[str, Any]:
    """The guess as its chapter answers it, and as this page does."""
    asked = published.run(ASKED)
    read = replace(start, parameters=asked["active_parameters"]).tokens
    here = (
        f"In {units.plural(start.days, 'day')} they give it {units.count(read, 2)} tokens. "
        f"{ASKED} was trained on about {units.digits(asked['tokens'] / read, 2)}× as many."
    )
    answers = guess_data(GUESS)
    return {GUESS: answers, "here": answers | {"why": here}}


# --- the chapters and the edition


def cards() -> list[dict[str, Any]]:
    """A card of each chapter: its picture, its question, its minutes."""
    questions = {number: question for number, _, question in STOPS}
    cards = []
    for path in chapters():
        number, word = path.stem[:2], path.stem[3:]
        title = json.loads(path.read_text("utf-8"))["cells"][0]["source"][0]
        name = re.match(r"# \d\d · ([^:\n]+)", title)[1].strip()
        question = questions[number]
        cards.append(
            {
                "page": word,
                "number": number,
                "title": name,
                "question": question[:1].upper() + question[1:],
                "minutes": solo_minutes(path),
                "picture": Markup(sign(path)),
            }
        )
    return cards


def citation() -> dict[str, str]:
    """Read authors, version and date from CITATION.cff, and say how to cite them."""
    text = (ROOT / "CITATION.cff").read_text("utf-8")

    def field(name: str) -> str:
        return re.search(rf'^[ -]*{name}: "?([^"\n]+)"?$', text, re.MULTILINE)[1]

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    authors, title, date = field("name"), field("title"), field("date-released")
    cited = f"{authors} ({date[:4]}). {title}. Version {project['version']}."
    return {"authors": authors, "version": project["version"], "date": date, "citation": cited}
