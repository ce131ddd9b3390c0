"""The front page: a picture that needs no Python, the chapters as cards, the doors.

Everything in it stands in one file, `front/page.html` with its style and script, but for
the typeface. The script moves one line by T = t·n·X / 6P; its values and limits come from
the package, and a test holds what it writes against it.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from dataclasses import dataclass, replace
from math import log10
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from llmtrain_helpers import units
from llmtrain_helpers.drawings.start_here import STOPS
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS
from llmtrain_helpers.panels.controls import DAYS_OF_USE, GPUS, steps
from llmtrain_helpers.panels.start_here import Setting
from teaching.minutes import alone
from tools.notebooks import NOTEBOOKS, chapters

HERE = Path(__file__).parent
ROOT = NOTEBOOKS.parent
PACKED = "node_modules/@fontsource/source-serif-4/files/source-serif-4-latin-600-normal.woff2"
FACE = "_static/source-serif-4.woff2"
"""The headings' typeface, as its package has it and as the site serves it."""

SIZES = steps(10**8, 10**12, 1, 2, 3, 5, 8)
"""Where the slider of the model's size stops."""

ACROSS, UP = (1e8, 1e12), (1e9, 1e14)
"""The parameters and tokens at the ends of the picture's axes."""

NAMED = {
    "SmolLM2 135M": "over",
    "GPT-3 175B": "end",
    "Pythia 12B": "",
    "Chinchilla 70B": "more",
    "Llama 3.1 8B": "left more",
    "Llama 3.1 405B": "end",
    "PaLM 540B": "end more",
    "Qwen3 0.6B": "left more",
}
"""The runs whose names stand in the picture, and on which side; `more` where it is wide."""

GUESS = "00-guess"

BRAND = re.compile(r'(<a class="navbar-brand logo" href=")[^"]*"')
"""The course's name above a page's contents, which leads to the front page."""

DESCRIPTION = (
    "What will it take to train a language model? Parameters, FLOPs, days, memory and money, "
    "in thirteen pages of pictures to move, each number tested against published runs."
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
    def said(self) -> str:
        """What it says where it stands."""
        return self.labels[self.place]


def write(site: Path, source: str = "") -> None:
    """Write the front page of a site, and lead its other pages to it."""
    shutil.copy(HERE / PACKED, site / FACE)
    for path in site.rglob("*.html"):
        up = "../" * (len(path.relative_to(site).parts) - 1)
        text = BRAND.sub(rf'\g<1>{up}index.html"', path.read_text("utf-8"))
        path.write_text(text.replace("</head>", f"{preload(up)}</head>", 1), "utf-8")
    (site / "index.html").write_text(page(source), "utf-8")


def preload(up: str = "") -> str:
    """The element that asks for the typeface at once: it is there before the first frame."""
    return f'<link rel="preload" as="font" type="font/woff2" crossorigin href="{up}{FACE}">'


def page(source: str = "") -> str:
    """The page; `source` is the address of the course's repository, "" for none."""
    folder = HERE / "front"
    loader = FileSystemLoader(folder)
    jinja = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    start = Setting()
    cited = citation()
    return jinja.get_template("page.html").render(
        **picture(start),
        description=DESCRIPTION,
        style=Markup((folder / "front.css").read_text("utf-8")),
        script=Markup((folder / "front.js").read_text("utf-8")),
        preload=Markup(preload()),
        mark=Markup('<img src="_static/mark.svg" alt="">'),
        first=f"notebooks/{chapters()[0].stem}.html",
        cards=cards(),
        told=Markup(json.dumps(told(start)).replace("</", "<\\/")),
        source=source,
        **cited,
    )


# --- the picture


def slides(start: Setting) -> dict[str, Slide]:
    """The three sliders, as the picture stands at first."""

    def slide(label: str, stops: tuple[float, ...], said: Any, value: float) -> Slide:
        return Slide(label, stops, [said(stop) for stop in stops], stops.index(value))

    return {
        "gpus": slide("GPUs", GPUS.stops, lambda n: f"{n:,} A100", start.num_gpus),
        "days": slide("Days", DAYS_OF_USE, lambda n: units.plural(n, "day"), start.days),
        "size": slide(
            "Model", SIZES, lambda P: f"{units.count(P, 1)} parameters", start.parameters
        ),
    }


def tokens(start: Setting, parameters: float) -> float:
    """What a model of this size reads on the GPUs and days of a setting."""
    return replace(start, parameters=parameters).tokens


def across(parameters: float) -> float:
    """Where a model's size lies between the picture's sides, in per cent."""
    return 100 * log10(parameters / ACROSS[0]) / log10(ACROSS[1] / ACROSS[0])


def up(tokens: float) -> float:
    """Where a number of tokens lies above the picture's floor, in per cent."""
    return 100 * log10(tokens / UP[0]) / log10(UP[1] / UP[0])


def runs() -> list[dict[str, Any]]:
    """Published models with their tokens: by the parameters that a token meets."""
    found = published.rows("tokens_per_parameter")
    return [row for row in found if up(row["tokens"]) <= 100]


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
                "title": f"{row['name']}: {units.count(P)}{active} parameters, "
                f"{units.count(T)} tokens",
                "x": round(across(P), 2),
                "y": round(up(T), 2),
                "inside": tokens(start, P) >= T,
                "label": row["name"] in NAMED,
                "side": NAMED.get(row["name"], ""),
            }
        )
    inside = sum(dot["inside"] for dot in dots)
    reads = units.count(start.tokens, 2)
    return {
        "slides": slides(start),
        "tokens": reads,
        "share": f"{start.percent:g} %",
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


def told(start: Setting) -> dict[str, Any]:
    """What the page's script takes from the package."""
    known = slides(start)
    guess = PREDICTIONS[GUESS]
    return {
        **{name: slide.stops for name, slide in known.items()},
        "labels": {name: slide.labels for name, slide in known.items()},
        "rate": start.rate,
        "x": ACROSS,
        "y": UP,
        "runs": [[row["active_parameters"], row["tokens"]] for row in runs()],
        "guess": GUESS,
        "years": float(f"{guess.truth():.2g}"),
        "why": guess.why,
        "exercises": [*EXERCISES, *PREDICTIONS],
    }


# --- the chapters and the edition


def cards() -> list[dict[str, Any]]:
    """A card of each chapter: its picture, its question, its minutes."""
    questions = {number: f"{first} {second}" for number, _, first, second in STOPS}
    found = []
    for path in chapters():
        number, _, word = path.stem.partition("_")
        title = json.loads(path.read_text("utf-8"))["cells"][0]["source"][0]
        name = re.match(r"# \d\d · ([^:\n]+)", title)[1].strip()
        question = questions[number]
        found.append(
            {
                "page": path.stem,
                "number": number,
                "title": name,
                "question": question[:1].upper() + question[1:],
                "minutes": alone(path),
                "picture": Markup((HERE / "front/pictures" / f"{word}.svg").read_text("utf-8")),
            }
        )
    return found


def citation() -> dict[str, str]:
    """Authors, version and date as CITATION.cff says, and how to cite them."""
    text = (ROOT / "CITATION.cff").read_text("utf-8")

    def said(name: str) -> str:
        return re.search(rf'^[ -]*{name}: "?([^"\n]+)"?$', text, re.MULTILINE)[1]

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    authors, title, date = said("name"), said("title"), said("date-released")
    cited = f"{authors} ({date[:4]}). {title}. Version {project['version']}."
    return {"authors": authors, "version": project["version"], "date": date, "citation": cited}
