"""A class at a glance: who has passed what, read from saved notebooks.

    python -m llmtrain_course class FOLDER [--csv]

Prints a table of learners and exercises, and what the class got wrong most; `--csv`
prints the table for a spreadsheet instead.

Nothing is executed and nothing is fetched. What `check` and `predict` left in a
notebook's outputs is believed as it was saved, so this is a look round the room and
no examination: whoever edits a file by hand is believed as well.

What a teacher has after a workshop is one of these, and all of them may be mixed:

* the homes of a hub, a folder for each learner: `anna/03_duration.ipynb`;
* what a learning platform hands over, the same with its own words behind the name:
  `Anna E_4711_assignsubmission_file_/03_duration.ipynb`;
* what a form collected, the learner in the file's name: `anna_03_duration.ipynb`;
* a folder for each chapter: `03_duration/anna.ipynb`;
* one learner's own folder: `03_duration.ipynb`, named after the folder.

Folders `solutions` and `evidence`, hidden folders and links are not looked into. Of
several copies of an exercise the best one counts.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import shutil
import stat
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit.ids import CHAPTERS, chapter_of, current, page_of, part_of, place
from llmtrain_helpers import units

KEY = "✓ passed   ✗ tried   → guessed   ○ not yet   (blank: no such notebook)"
WHERE = (
    "A folder for each learner (anna/03_duration.ipynb) or the learner in each file's "
    "name (anna_03_duration.ipynb) would do."
)

STATES = {"○": "open", "✗": "wrong", "✓": "passed", "→": "guessed"}
"""What the sign before a verdict says, the better the later."""

SIGNS = {state: sign for sign, state in STATES.items()}

LARGEST = 20_000_000
"""Bytes of a file that is still read; the course's own notebooks have 300,000."""

LONGEST = 500
"""Letters of a verdict that are kept; the longest ones have some 400."""

SKIPPED = ("solutions", "evidence")
"""Folders that hold the course's own outputs, not a learner's."""

PAGES = {chapter: page_of(chapter) for chapter in CHAPTERS}
"""The chapters' notebooks, by the word that their exercises begin with."""


@dataclass(frozen=True)
class Mark:
    """How one exercise stands in a notebook: its state, and the verdict's sentence."""

    state: str
    text: str = ""

    def __bool__(self) -> bool:
        return self.state in ("passed", "guessed")


Marks = dict[str, Mark]
"""The marks of a learner, by the exercise."""


@dataclass
class Room:
    """The best mark of each learner for each exercise, and what could not be read."""

    learners: dict[str, Marks] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def add(self, learner: str, marks: Marks) -> None:
        """Take in one notebook of a learner."""
        best = self.learners.setdefault(learner, {})
        for id, mark in marks.items():
            best[id] = better(best.get(id), mark)

    def ids(self) -> list[str]:
        """Guesses and exercises of the chapters in which anybody has done anything."""
        chapters = {
            chapter_of(id)
            for marks in self.learners.values()
            for id, mark in marks.items()
            if mark.state != "open"
        }
        return [id for id in columns() if chapter_of(id) in chapters]

    def of(self, id: str) -> list[Mark]:
        """The marks of all learners for one exercise, those without it left aside."""
        return [marks[id] for marks in self.learners.values() if id in marks]

    def names(self) -> list[str]:
        """The learners by their alphabet."""
        return sorted(self.learners, key=str.casefold)


def columns() -> list[str]:
    """All guesses and exercises, chapter by chapter, the guesses first."""
    return sorted([*PREDICTIONS, *EXERCISES], key=lambda id: (place(id), id in EXERCISES))


def better(one: Mark | None, other: Mark) -> Mark:
    """The better of two marks, the later one where they are level.

    >>> better(Mark("passed"), Mark("wrong")).state
    'passed'
    """
    ranks = list(SIGNS)
    if one is None or ranks.index(one.state) <= ranks.index(other.state):
        return other
    return one


# --- one notebook

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_VERDICT = re.compile(r"^([✓✗○→]) ([\w-]+): (.*)$", re.MULTILINE)


def verdicts(notebook: Any) -> Marks:
    """The exercises that a notebook's saved outputs speak of, from its parsed JSON.

    A verdict counts only in a cell whose code names the exercise. Whatever does not
    have the form of a notebook is passed over.

    >>> shown = {"data": {"text/plain": "✓ duration-a: right, 10.4 days."}}
    >>> cell = {"source": 'check("duration-a", answer)', "outputs": [shown]}
    >>> verdicts({"cells": [cell]})
    {'duration-a': Mark(state='passed', text='right, 10.4 days.')}
    """
    marks: Marks = {}
    for cell in _list(_dict(notebook).get("cells")):
        code = current(_text(_dict(cell).get("source")))
        for output in _list(_dict(cell).get("outputs")):
            for sign, id, text in _VERDICT.findall(_COLOR.sub("", _output_text(output))):
                id = current(id)
                if id in code and (id in EXERCISES or id in PREDICTIONS):
                    unjudged = sign == "→" and id in EXERCISES  # a recommendation: nobody judges it
                    state = "passed" if unjudged else STATES[sign]
                    mark = Mark(state, plain(text[:LONGEST]))
                    marks[id] = better(marks.get(id), mark)
    return marks


def _output_text(output: Any) -> str:
    """The text of an output: of a value that was shown, or of what was printed."""
    data = _dict(_dict(output).get("data"))
    return _text(data.get("text/plain")) or _text(_dict(output).get("text"))


# A file may hold anything. These three read it as the part of a notebook that it should
# be, and as an empty one where it is something else.


def _dict(thing: Any) -> dict[Any, Any]:
    return thing if isinstance(thing, dict) else {}


def _list(thing: Any) -> list[Any]:
    return thing if isinstance(thing, list) else []


def _text(thing: Any) -> str:
    """Text as notebooks hold it: in one piece or in lines; nothing of anything else."""
    lines = [thing] if isinstance(thing, str) else _list(thing)
    return "".join(line for line in lines if isinstance(line, str))


def load(path: Path) -> Any:
    """A notebook's JSON; ValueError or OSError says why it cannot be had."""
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("no plain file")
    if about.st_size > LARGEST:
        size = f"{about.st_size / 1e6:.0f} MB, more than {LARGEST / 1e6:.0f}"
        raise ValueError(f"{size}: clear its outputs and save it again")
    try:
        notebook = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise ValueError("no JSON, so no notebook: saved half, perhaps") from None
    if not isinstance(_dict(notebook).get("cells"), list):
        raise ValueError("JSON, but no notebook: it has no cells")
    return notebook


# --- whose it is

_CHAPTER = re.compile("|".join(PAGES.values()))
_COPY = re.compile(r"\.mine(-\d+)?|-Copy\d+|\s*\(\d+\)")
_PLATFORM = re.compile(r"_\d+_assignsubmission_(file|onlinetext)_?$")


def learner_of(path: PurePath, folder: str) -> str:
    """Whose notebook it is, by its path below a folder of that name.

    >>> learner_of(PurePath("anna/course/03_duration.ipynb"), "class")
    'anna'
    >>> learner_of(PurePath("anna_03_duration (1).ipynb"), "class")
    'anna'
    >>> learner_of(PurePath("03_duration/anna.ipynb"), "class")
    'anna'
    >>> learner_of(PurePath("03_duration.ipynb"), "anna")
    'anna'
    """
    above = [part for part in path.parts[:-1] if not _CHAPTER.fullmatch(part)]
    if above:
        name = _PLATFORM.sub("", above[0])
    else:
        name = _COPY.sub("", _CHAPTER.sub("", path.stem)).strip(" _-.,")
    return plain(name) or plain(folder) or "nobody"


def plain(text: str) -> str:
    """Text that is safe to print: no control characters, line ends or escapes.

    >>> plain("An\x1b[31mna\u202e\\n E ")
    'An[31mna E'
    """
    line = unicodedata.normalize("NFC", " ".join(text.split()))
    return "".join(x for x in line if x in _JOINERS or not _invisible(x)).strip()


_JOINERS = "\u200c\u200d"
"""Invisible, and part of names in Persian and in India's scripts."""


def _invisible(character: str) -> bool:
    return unicodedata.category(character)[0] == "C"


# --- a folder


def read_folder(folder: Path) -> Room:
    """What a folder's notebooks say; ValueError where there is no such folder."""
    if not folder.is_dir():
        raise ValueError(f"{plain(str(folder))} is no folder")
    room, name = Room(), folder.resolve().name
    for path in notebooks(folder, room.left_out):
        below = path.relative_to(folder)
        try:
            marks = verdicts(load(path))
        except (OSError, ValueError) as problem:
            cause = problem.strerror if isinstance(problem, OSError) else problem
            room.left_out.append(plain(f"{below}: {cause}"))
            continue
        if marks:
            room.add(learner_of(below, name), marks)
    return room


def notebooks(folder: Path, left_out: list[str]) -> Iterator[Path]:
    """All notebooks of learners below a folder; what cannot be read goes to `left_out`."""

    def unreadable(problem: OSError) -> None:
        path = os.path.relpath(problem.filename, folder)
        left_out.append(plain(f"{path}: {problem.strerror}"))

    for parent, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and name[0] != ".")
        notes = sorted(name for name in files if name.endswith(".ipynb"))
        for path in (Path(parent, name) for name in [*folders, *notes]):
            if path.is_symlink():
                below = path.relative_to(folder)
                left_out.append(plain(f"{below}: a link, not followed"))
            elif path.name in notes and path.name[0] != ".":
                yield path


# --- the table


def table(room: Room, width: int = 100) -> str:
    """Learners and exercises, as many chapters side by side as the width holds."""
    chapters: dict[str, list[str]] = {}
    for id in room.ids():
        chapters.setdefault(chapter_of(id), []).append(id)
    blocks, chapters_in_row = [], list[list[str]]()
    for ids in chapters.values():
        lines = _block(room, [*chapters_in_row, ids]).splitlines()
        if chapters_in_row and max(wide(line) for line in lines) > width:
            blocks.append(_block(room, chapters_in_row))
            chapters_in_row = []
        chapters_in_row.append(ids)
    return "\n\n".join([*blocks, _block(room, chapters_in_row)])


def _block(room: Room, chapters: Sequence[list[str]]) -> str:
    """A table of some chapters: names, signs, and totals at the right and below."""
    names = room.names()
    side = min(24, max(wide(name) for name in [*names, "passed"]))
    exercises = [id for ids in chapters for id in ids if id in EXERCISES]

    def cells(texts: Mapping[str, str]) -> list[str]:
        """For each chapter its exercises' texts, each below its exercise's name."""
        return [
            " ".join(texts.get(id, "").center(len(_head(id))) for id in ids) for ids in chapters
        ]

    def line(name: str, *texts: str) -> str:
        return "   ".join([fitted(name, side), *texts]).rstrip()

    heads = cells({id: _head(id) for ids in chapters for id in ids})
    titles = [
        PAGES[chapter_of(ids[0])].replace("_", " ")[: len(head)].ljust(len(head))
        for ids, head in zip(chapters, heads, strict=True)
    ]
    lines = [line("", *titles), line("", *heads, "passed")]
    for name in names:
        marks = room.learners[name]
        signs = cells({id: SIGNS[mark.state] for id, mark in marks.items()})
        passed = sum(bool(marks.get(id)) for id in exercises)
        lines.append(line(name, *signs, f"{passed:2} of {len(exercises)}"))
    sums = {id: sum(map(bool, room.of(id))) for ids in chapters for id in ids}
    totals = cells({id: str(number) for id, number in sums.items()})
    passed = sum(sums[id] for id in exercises)
    return "\n".join([*lines, line("passed", *totals, f"{passed:2}")])


def _head(id: str) -> str:
    """The name of an exercise without its chapter, as wide as its column."""
    return part_of(id).center(3)


def wide(text: str) -> int:
    """Columns that a text takes in a terminal.

    >>> wide("Anna"), wide("安娜"), wide("Åsa")
    (4, 4, 3)
    """
    return sum(
        2 if unicodedata.east_asian_width(x) in "WF" else 1
        for x in text
        if not unicodedata.combining(x) and not _invisible(x)
    )


def fitted(text: str, width: int) -> str:
    """A text cut or filled to so many columns.

    >>> fitted("Anna", 6) + "|", fitted("Maximiliane", 6) + "|"
    ('Anna  |', 'Maxim…|')
    """
    if wide(text) > width:
        while wide(text) > width - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (width - wide(text))


# --- the report


def report(room: Room, width: int) -> str:
    """The table, what went wrong most, and what was left out."""
    touched = {chapter_of(id) for id in room.ids()}
    untouched = [page[:2] for chapter, page in PAGES.items() if chapter not in touched]
    paragraphs = [f"{units.plural(len(room.learners), 'learner')}, as their notebooks were saved"]
    if touched:
        paragraphs += [table(room, width), KEY]
    if untouched:
        paragraphs.append(f"Nobody has answered anything in {', '.join(untouched)}.")
    wrong = hardest(room)
    if wrong:
        head = "Wrong most often (what was mended since leaves no trace):"
        paragraphs.append("\n".join([head, *(f"  {line}" for line in wrong)]))
    if room.left_out:
        paragraphs.append(left_out(room))
    return "\n\n".join(paragraphs)


def hardest(room: Room, most: int = 5) -> list[str]:
    """What stands wrong most often, with the commonest sentence said about it."""
    ranked = []
    for id in room.ids():
        wrong = [mark for mark in room.of(id) if mark.state == "wrong"]
        tried = [mark for mark in room.of(id) if mark.state != "open"]
        if wrong:
            [(text, times)] = Counter(mark.text for mark in wrong).most_common(1)
            commonest = f"{times} × “{fitted(text, 90).rstrip()}”"
            line = f"{id}: {len(wrong)} of {len(tried)} who tried it. {commonest}"
            ranked.append((-len(wrong), place(id), id, line))
    return [line for *_, line in sorted(ranked)[:most]]


def left_out(room: Room, most: int = 10) -> str:
    """What could not be read, and why: the first so many of it."""
    lines = [f"  {line}" for line in room.left_out[:most]]
    if len(room.left_out) > most:
        lines.append(f"  and {len(room.left_out) - most} more")
    return "\n".join(["Left out:", *lines])


def as_csv(room: Room) -> str:
    """A row a learner, a column an exercise, for a spreadsheet.

    A name that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    ids = room.ids()
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["learner", *ids, "passed"])
    for name in room.names():
        marks = room.learners[name]
        states = [marks[id].state if id in marks else "" for id in ids]
        passed = sum(bool(marks.get(id)) for id in ids if id in EXERCISES)
        safe = f"'{name}" if name[0] in "=+-@" else name
        writer.writerow([safe, *states, passed])
    return file.getvalue()


# --- in a terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report on a folder; 2 where it holds no notebook of the course."""
    parser = argparse.ArgumentParser(
        prog="python -m llmtrain_course class",
        description="Who has passed what, from saved notebooks.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help=WHERE)
    parser.add_argument("--csv", action="store_true", help="for a spreadsheet")
    options = parser.parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # where a pipe has another one
    try:
        room = read_folder(options.folder)
    except ValueError as error:
        print(f"{error}. {WHERE}", file=sys.stderr)
        return 2
    if not room.learners:
        problem = f"no notebook of the course with saved outputs below {options.folder}"
        print(f"{plain(problem)}. {WHERE}", file=sys.stderr)
        if room.left_out:
            print(left_out(room), file=sys.stderr)
        return 2
    if options.csv:
        print("\ufeff" + as_csv(room), end="")  # the mark tells Excel that it is UTF-8
    else:
        print(report(room, shutil.get_terminal_size((100, 24)).columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
