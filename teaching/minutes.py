"""How long each section of each chapter takes: `python teaching/minutes.py [--write]`.

Counted from the notebook as it is: 150 words a minute, half a minute for a cell of
code, four minutes for an exercise, one for a prediction (hands up, then the answer)
three for a panel and its tasks, two for a handle. Sections are what stands between two headings;
each is rounded to whole minutes, and a chapter's sum is the sum of these.

With a class, everything lasts longer than the count, so `TEACHING.md` uses 1.5 times
as many minutes for its chapters, short cuts and routes. If you're alone and do everything,
you need what `alone` counts: 2 minutes for a handle, 4 for a blank or a number, 8 for a
design. Nobody has timed either of them with people.

The pages, the map in `README.md` and the cards of the site show the minutes of `alone`.
Tests compare all of them, and `--write` brings them up to date.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llmtrain_course.exercises import EXERCISES
from llmtrain_course.kit.exercise import Function, MultipleChoice, Numeric
from llmtrain_course.kit.kinds import FillIn
from llmtrain_course.start_here.exercises import Size
from tools import notebooks

COURSE = Path(__file__).resolve().parents[1]
GUIDE, MAP = COURSE / "TEACHING.md", COURSE / "README.md"

WORDS_A_MINUTE = 150
CODE, EXERCISE, PREDICTION, PANEL, HANDLE = 0.5, 4, 1, 3, 2
"""Minutes for a cell of code, an exercise, a prediction, a panel with its tasks, a handle."""

CLASS = 1.5
"""How much longer a class needs than the count."""

PAIR_TASK, IN_PAIRS = 8, " · in pairs"
"""Minutes for a chapter's pair task, and the words that add it to a row of a route."""

OPENING = "Opening"
"""What stands above the first heading: title, goals, imports."""


@dataclass(frozen=True)
class Section:
    """What stands under one heading of a chapter."""

    title: str
    words: int
    code: int
    exercises: int
    predictions: int
    panels: int
    handles: int = 0

    @property
    def minutes(self) -> int:
        """Whole minutes, and never none.

        >>> Section("A win", 300, 2, 1, 1, 1).minutes
        11
        """
        reading = self.words / WORDS_A_MINUTE + CODE * self.code
        doing = EXERCISE * self.exercises + PREDICTION * self.predictions
        return max(1, int(reading + doing + PANEL * self.panels + HANDLE * self.handles + 0.5))


def sections(notebook: Path) -> list[Section]:
    """The sections of a chapter, in order."""
    titles, texts, codes = [OPENING], [""], [list[str]()]
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        source = notebooks.without_tooltips("".join(cell["source"]))
        if cell["cell_type"] == "code":
            codes[-1].append(source)
            continue
        introduction, *headed = re.split(r"^## (.+)$", source, flags=re.MULTILINE)
        texts[-1] += f" {introduction}"
        for title, text in zip(headed[::2], headed[1::2], strict=True):
            titles.append(title)
            texts.append(text)
            codes.append([])
    return [
        Section(
            title,
            words=len(text.split()),
            code=len(cells),
            exercises=_count(r'\bcheck\("', cells),
            predictions=_count(r'\bpredict\("', cells),
            panels=_count(r"^\w+_panel\(", cells),
            handles=_count(r"^handle\(", cells),
        )
        for title, text, cells in zip(titles, texts, codes, strict=True)
    ]


def _count(pattern: str, cells: Sequence[str]) -> int:
    return len(re.findall(pattern, "\n".join(cells), re.MULTILINE))


def solo_minutes(notebook: Path) -> int:
    """Minutes for one person who does everything, to the nearest five, tooltips left out."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    words = sum(section.words for section in sections(notebook))
    moved = _count(r"^(?:\w+_panel|handle)\(", code)
    asked = [EXERCISES[id] for id in re.findall(r'\bcheck\("([\w-]+)"', "\n".join(code))]
    answered = sum(4 if isinstance(one, SHORT) else 8 for one in asked)
    minutes = words / WORDS_A_MINUTE + 2 * moved + _count(r'\bpredict\("', code) + answered
    return 5 * round(minutes / 5)


SHORT = (Numeric, MultipleChoice, Function, FillIn, Size)
"""Exercises with one answer; the others are designs and recommendations."""


def chapters() -> dict[str, list[Section]]:
    """The sections of every chapter, by the number that its file begins with."""
    return {path.name[:2]: sections(path) for path in notebooks.chapters()}


def alone_by_number() -> dict[str, int]:
    """The minutes of one person for every chapter, by the number its file begins with."""
    return {path.name[:2]: solo_minutes(path) for path in notebooks.chapters()}


def line(chapter: list[Section], single: int) -> str:
    """A chapter's sections with their minutes, their sum, and the minutes of one person."""
    listed = " · ".join(f"{section.title} ({section.minutes})" for section in chapter)
    return f"{listed} · {totals(chapter, single)}"


def totals(chapter: list[Section], single: int) -> str:
    """A chapter's minutes, with a class and for one person."""
    counted = sum(section.minutes for section in chapter)
    return f"With a class **{with_class(counted)}**, alone {single}"


def with_class(counted: int) -> int:
    """Whole minutes that a class needs for what counts as so many.

    >>> [with_class(minutes) for minutes in (4, 9)]
    [6, 14]
    """
    return int(CLASS * counted + 0.5)


def class_minutes(items: str, chapter: list[Section]) -> int:
    """Minutes that a class needs for sections and exercises, and for "in pairs" after them.

    >>> class_minutes("A win · duration-a · in pairs", [Section("A win", 300, 2, 0, 0, 0)])
    19
    """
    counted = items.removesuffix(IN_PAIRS)
    return with_class(of_items(counted, chapter)) + PAIR_TASK * (counted != items)


def of_items(items: str, chapter: list[Section]) -> int:
    """Minutes of some sections (by their titles) and exercises (by their names).

    >>> of_items("A win · duration-a", [Section("A win", 300, 2, 0, 0, 0)])
    7
    """
    minutes = {section.title: section.minutes for section in chapter}
    total = 0
    for item in items.split(" · "):
        if re.fullmatch(r"[a-z_]+-[a-z]", item):
            total += EXERCISE
        elif item in minutes:
            total += minutes[item]
        else:
            raise ValueError(f"{item!r} is no section; there are {', '.join(minutes)}")
    return total


# --- the guide


CHAPTER = re.compile(r"^### (\d\d) · .*$", re.MULTILINE)
ROUTE = re.compile(r"^### .*?(\d+) minutes.*$", re.MULTILINE)
ROW = re.compile(r"^\| +(-?\d+) \| (\d\d|) *\| (.+?) \|$", re.MULTILINE)
REST = "Questions"
"""The row of a route that takes what is left of its time."""


def written(guide: str) -> str:
    """The guide with all its minutes as they are now."""
    by_chapter, single = chapters(), alone_by_number()
    parts = re.split(r"^(?=### )", guide, flags=re.MULTILINE)
    return "".join(_part(part, by_chapter, single) for part in parts)


def _part(part: str, by_chapter: dict[str, list[Section]], single: dict[str, int]) -> str:
    """A chapter or a route with its minutes; anything else as it is."""
    if heading := CHAPTER.match(part):
        chapter = by_chapter[heading[1]]
        total = totals(chapter, single[heading[1]])
        part = re.sub(
            r"^\*\*Minutes\.\*\*.*$", lambda _: f"**Minutes.** {total}", part, flags=re.MULTILINE
        )
        return re.sub(
            r"^(\*\*In half the time\.\*\*) (.+?)(?: · \*\*\d+\*\*)?$",
            lambda m: f"{m[1]} {m[2]} · **{class_minutes(m[2], chapter)}**",
            part,
            flags=re.MULTILINE,
        )
    if heading := ROUTE.match(part):
        return _route(part, int(heading[1]), by_chapter)
    return part


def _route(part: str, time: int, by_chapter: dict[str, list[Section]]) -> str:
    """A route's rows with their minutes; what is left goes to the questions."""

    def minutes(row: re.Match[str]) -> int:
        return class_minutes(row[3], by_chapter[row[2]]) if row[2] else int(row[1])

    total = sum(minutes(m) for m in ROW.finditer(part) if m[3] != REST)

    def updated(row: re.Match[str]) -> str:
        number = time - total if row[3] == REST else minutes(row)
        return f"| {number} | {row[2]} | {row[3]} |".replace("|  |", "| |")

    return ROW.sub(updated, part)


def routes(guide: str) -> dict[str, tuple[int, list[int]]]:
    """Each route's time and the minutes of its rows, by its heading."""
    times = {}
    for part in re.split(r"^(?=### )", guide, flags=re.MULTILINE):
        if (route := ROUTE.match(part)) and not CHAPTER.match(part):
            rows = [int(row[1]) for row in ROW.finditer(part)]
            times[route[0]] = (int(route[1]), rows)
    return times


# --- the map and the pages


def with_minutes(readme: str) -> str:
    """The map of the README with the minutes of one person."""
    single = alone_by_number()
    return re.sub(
        r"^(\| (\d\d) · [^|]*\|[^|]*\|) \d+ \|$",
        lambda row: f"{row[1]} {single[row[2]]} |",
        readme,
        flags=re.MULTILINE,
    )


def declared(page: str, minutes: int) -> str:
    """A notebook's text with these minutes in its fold of goals.

    >>> declared("About 10 minutes, including the exercises.", 55)
    'About 55 minutes, including the exercises.'
    """
    return re.sub(
        r"\b([Aa])bout \d+( minutes, including the exercises)", rf"\1bout {minutes}\2", page
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line a chapter, or write the guide, the map and the pages."""
    if "--write" in (sys.argv[1:] if arguments is None else arguments):
        GUIDE.write_text(written(GUIDE.read_text("utf-8")), encoding="utf-8")
        MAP.write_text(with_minutes(MAP.read_text("utf-8")), encoding="utf-8")
        for path in notebooks.chapters():
            page = path.read_text("utf-8")
            path.write_text(declared(page, solo_minutes(path)), encoding="utf-8")
        return
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # where a terminal has fewer letters
    single = alone_by_number()
    for number, chapter in chapters().items():
        print(f"{number}: {line(chapter, single[number])}\n")


if __name__ == "__main__":
    main()
