"""The front page: a picture that needs no Python, the chapters as cards, the doors.

Everything in it stands in one file, `front_page/page.html` with its style and script, but for
the typeface and the script that answers a guess, which is the chapters'. The page's own
moves one line by T = t·n·X / 6P; its values and limits come from the package, and a test
holds what it writes against it.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, replace
from math import log10
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from guesses import guess_data
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markup import as_json
from markupsafe import Markup
from reference import PAGE as REFERENCE

from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit import ids
from llmtrain_course.kit.controls import DAYS_OF_USE, GPUS, steps
from llmtrain_course.start_here.handles import Setting
from llmtrain_course.start_here.pictures import STOPS
from llmtrain_helpers import published, units
from teaching.minutes import solo_minutes
from tools.notebooks import NOTEBOOKS, chapters

HERE = Path(__file__).parent
ROOT = NOTEBOOKS.parent
SIZES = steps(10**8, 10**12, 1, 2, 3, 5, 8)
"""Where the slider of the model's size stops."""

PACKED = ["llmtrain_helpers", "llmtrain_course", "research"]
PACKED += ["notebooks", "data", "teaching", "tools"]
FOLDER = "what-will-it-take"
"""What is needed to run the notebooks, beside the files of the folder, and its name."""

LINKED = ["site/sheet.py", "tests/ground_truth/test_step_memory.py"]
"""What the README and the notebooks link to beside that."""

ACROSS, UP = (5e7, 1.2e12), (1e9, 1e14)
"""The parameters and tokens at the ends of the picture's axes."""

NAMED = (
    "GPT-3 175B",
    "Llama 3.1 8B",
    "Chinchilla 70B",
    "PaLM 540B",
    "SmolLM2 135M",
    "Llama 3.1 405B",
    "Pythia 12B",
    "Qwen3 0.6B",
    "Falcon 40B",
    "Kimi K2",
    "OLMo 1 7B",
    "Gemma 3 1B",
    "Phi-4 14B",
)
"""The runs whose names stand in the picture where there is room, most wanted first."""

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


@dataclass(frozen=True)
class Slide:
    """A slider: its label, its stops, what each says, and where it stands."""

    label: str
    stops: tuple[float, ...]
    labels: list[str]
    place: int

    @property
    def last(self) -> int:
        """The place of its last stop."""
        return len(self.stops) - 1

    @property
    def text(self) -> str:
        """The label of the stop where it stands."""
        return self.labels[self.place]


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
    return jinja.get_template("page.html").render(
        **picture(start),
        description=DESCRIPTION,
        style=Markup((folder / "page.css").read_text("utf-8")),
        script=Markup(script()),
        up="",
        start=f"notebooks/{ids.CHAPTERS[0]}.html",
        cards=cards(),
        data=Markup(as_json(page_data(start))),
        guesses=Markup(as_json(guesses(start))),
        source=source,
        folder=FOLDER,
        number=NUMBER,
        lookup=LOOKUP,
        **citation(),
    )


def script() -> str:
    """The page's script, and before it what it shares with the chapters' scripts."""
    former = (HERE / "static" / "former.js").read_text("utf-8")
    return former.replace("export ", "", 1) + (HERE / "front_page" / "page.js").read_text("utf-8")


# --- the picture


def slides(start: Setting) -> dict[str, Slide]:
    """The three sliders, as the picture stands at first."""

    def slide(label: str, stops: tuple[float, ...], text: Any, value: float) -> Slide:
        return Slide(label, stops, [text(stop) for stop in stops], stops.index(value))

    return {
        "gpus": slide("GPUs", GPUS.stops, lambda n: f"{n:,} A100", start.num_gpus),
        "days": slide("Days", DAYS_OF_USE, lambda n: units.plural(n, "day"), start.days),
        "size": slide(
            "Model", SIZES, lambda P: f"{units.count(P, 1)} parameters", start.parameters
        ),
    }


def tokens(start: Setting, parameters: float) -> float:
    """Count what a model of this size reads on the GPUs and days of a setting."""
    return replace(start, parameters=parameters).tokens


def across(parameters: float) -> float:
    """Place a model's size between the picture's sides, in percent."""
    return 100 * log10(parameters / ACROSS[0]) / log10(ACROSS[1] / ACROSS[0])


def up(tokens: float) -> float:
    """Place a number of tokens above the picture's floor, in percent."""
    return 100 * log10(tokens / UP[0]) / log10(UP[1] / UP[0])


def runs() -> list[dict[str, Any]]:
    """List published models with their tokens, and the parameters that a token meets."""
    rows = published.rows("tokens_per_parameter")
    return [row for row in rows if up(row["tokens"]) <= 100]


def picture(start: Setting) -> dict[str, Any]:
    """The picture as it stands before anybody moves it."""
    left, right = (100 - up(tokens(start, end)) for end in ACROSS)
    dots = []
    for row in runs():
        P, T = row["active_parameters"], row["tokens"]
        active = " active" if row["kind"] == "experts" else ""
        dots.append(
            {
                "name": row["name"],
                "words": f"{row['name']}: {units.count(P)}{active} parameters, "
                f"{units.count(T)} tokens",
                "x": round(across(P), 2),
                "y": round(up(T), 2),
                "inside": tokens(start, P) >= T,
                "named": row["name"] in NAMED,
            }
        )
    inside = sum(dot["inside"] for dot in dots)
    reads = units.count(start.tokens, 2)
    return {
        "slides": slides(start),
        "tokens": reads,
        "share": f"{start.percent:g}%",
        "reach": f"0,{left:.2f} 100,{right:.2f} 100,200 0,200",
        "line": (round(left, 2), round(right, 2)),
        "you": (round(across(start.parameters), 2), round(up(start.tokens), 2)),
        "ticks_x": [(across(10.0**k), units.count(10.0**k, 1)) for k in range(9, 12)],
        "ticks_y": [(up(10.0**k), units.count(10.0**k, 1)) for k in range(9, 14)],
        "runs": dots,
        "inside": inside,
        "words": f"Published models by their parameters and the tokens that they read, both "
        f"on logarithmic scales, and a line: what lies below it, the GPUs and days pay for. "
        f"{units.plural(start.num_gpus, 'A100')} and {units.plural(start.days, 'day')} pay for "
        f"{reads} tokens of a model of {units.count(start.parameters, 1)} parameters.",
    }


def page_data(start: Setting) -> dict[str, Any]:
    """Collect what the page's script takes from the package."""
    sliders = slides(start)
    names = [row["name"] for row in runs()]
    return {
        **{name: slide.stops for name, slide in sliders.items()},
        "labels": {name: slide.labels for name, slide in sliders.items()},
        "rate": start.rate,
        "x": ACROSS,
        "y": UP,
        "runs": [[row["active_parameters"], row["tokens"]] for row in runs()],
        "guess": GUESS,
        "years": float(f"{PREDICTIONS[GUESS].truth():.2g}"),
        "have": sliders["days"].place,
        "asked": names.index(ASKED),
        "named": [names.index(name) for name in NAMED],
        "exercises": [*EXERCISES, *PREDICTIONS],
        "numbered": ids.NUMBERED,
        "renamed": ids.RENAMED,
    }


def guesses(start: Setting) -> dict[str, Any]:
    """The guess as its chapter answers it, and as this page does, wherever its sliders stand."""
    asked = next(row for row in runs() if row["name"] == ASKED)
    read = tokens(start, asked["active_parameters"])
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


def sign(chapter: Path) -> str:
    """A chapter's small picture, on its card and at its head; its words are the title's."""
    word = chapter.stem.partition("_")[2]
    drawn = (HERE / "front_page" / "pictures" / f"{word}.svg").read_text("utf-8")
    return drawn.replace("<svg", '<svg class="sign"', 1)


def citation() -> dict[str, str]:
    """Read authors, version and date from CITATION.cff, and say how to cite them."""
    text = (ROOT / "CITATION.cff").read_text("utf-8")

    def field(name: str) -> str:
        return re.search(rf'^[ -]*{name}: "?([^"\n]+)"?$', text, re.MULTILINE)[1]

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    authors, title, date = field("name"), field("title"), field("date-released")
    cited = f"{authors} ({date[:4]}). {title}. Version {project['version']}."
    return {"authors": authors, "version": project["version"], "date": date, "citation": cited}
