"""A class at a glance: who has passed what, read from saved notebooks.

    python -m llmtrain_helpers class FOLDER [--csv]

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS

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

NAMES = {
    "00": "start here",
    "01": "parameters",
    "02": "flops",
    "03": "duration",
    "04": "batch",
    "05": "precision",
    "06": "activations",
    "07": "communication",
    "08": "plan",
    "09": "calendar",
    "10": "budget",
    "11": "measure",
}
"""The chapters, by the number that their exercises begin with."""


@dataclass(frozen=True)
class Found:
    """What a notebook says about one exercise: its state and its sentence."""

    state: str
    text: str = ""

    def __bool__(self) -> bool:
        return self.state in ("passed", "guessed")


@dataclass
class Room:
    """The best of each learner for each exercise, and what could not be read."""

    learners: dict[str, dict[str, Found]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def add(self, learner: str, found: dict[str, Found]) -> None:
        """Take in one notebook of a learner."""
        known = self.learners.setdefault(learner, {})
        for id, one in found.items():
            known[id] = better(known.get(id), one)

    def ids(self) -> list[str]:
        """Guesses and exercises of the chapters in which anybody has done anything."""
        done = {
            id[:2]
            for found in self.learners.values()
            for id, one in found.items()
            if one.state != "open"
        }
        return [id for id in columns() if id[:2] in done]

    def of(self, id: str) -> list[Found]:
        """What all learners have for one exercise, those without it left aside."""
        return [found[id] for found in self.learners.values() if id in found]


def columns() -> list[str]:
    """All guesses and exercises, chapter by chapter, the guesses first."""
    return sorted([*PREDICTIONS, *EXERCISES], key=lambda id: (id[:2], id in EXERCISES))


def better(one: Found | None, other: Found) -> Found:
    """The better of two, the later one where they are level.

    >>> better(Found("passed"), Found("wrong")).state
    'passed'
    """
    ranks = list(SIGNS)
    if one is None or ranks.index(one.state) <= ranks.index(other.state):
        return other
    return one


# --- one notebook

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_VERDICT = re.compile(r"^([✓✗○→]) (\d\d-[a-z]+): (.*)$", re.MULTILINE)


def verdicts(notebook: Any) -> dict[str, Found]:
    """The exercises that a notebook's saved outputs speak of, from its parsed JSON.

    A verdict counts only in a cell whose code names the exercise. Whatever does not
    have the form of a notebook is passed over.

    >>> shown = {"data": {"text/plain": "✓ 03-a: right, 10.4 days."}}
    >>> cell = {"source": 'check("03-a", answer)', "outputs": [shown]}
    >>> verdicts({"cells": [cell]})
    {'03-a': Found(state='passed', text='right, 10.4 days.')}
    """
    found: dict[str, Found] = {}
    for cell in _list(_dict(notebook).get("cells")):
        code = _text(_dict(cell).get("source"))
        for shown in _list(_dict(cell).get("outputs")):
            for sign, id, text in _VERDICT.findall(_COLOR.sub("", _shown(shown))):
                if id in code and (id in EXERCISES or id in PREDICTIONS):
                    one = Found(STATES[sign], plain(text[:LONGEST]))
                    found[id] = better(found.get(id), one)
    return found


def _shown(output: Any) -> str:
    """The text of an output: of a value that was shown, or of what was printed."""
    data = _dict(_dict(output).get("data"))
    return _text(data.get("text/plain")) or _text(_dict(output).get("text"))


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

_CHAPTER = re.compile("|".join(f"{n}_{name.replace(' ', '_')}" for n, name in NAMES.items()))
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
    told = unicodedata.normalize("NFC", " ".join(text.split()))
    return "".join(x for x in told if x in _JOINERS or not _unseen(x)).strip()


_JOINERS = "\u200c\u200d"
"""Invisible, and part of names in Persian and in India's scripts."""


def _unseen(character: str) -> bool:
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
            found = verdicts(load(path))
        except (OSError, ValueError) as problem:
            told = problem.strerror if isinstance(problem, OSError) else problem
            room.left_out.append(plain(f"{below}: {told}"))
            continue
        if found:
            room.add(learner_of(below, name), found)
    return room


def notebooks(folder: Path, left_out: list[str]) -> Iterator[Path]:
    """All notebooks of learners below a folder; what is passed over is told."""

    def unreadable(problem: OSError) -> None:
        where = os.path.relpath(problem.filename, folder)
        left_out.append(plain(f"{where}: {problem.strerror}"))

    for here, folders, files in os.walk(folder, onerror=unreadable):
        known = [name for name in folders if name not in SKIPPED and name[0] != "."]
        folders[:] = sorted(known)
        notes = sorted(name for name in files if name.endswith(".ipynb"))
        for path in (Path(here, name) for name in [*known, *notes]):
            if path.is_symlink():
                below = path.relative_to(folder)
                left_out.append(plain(f"{below}: a link, not followed"))
            elif path.name in notes and path.name[0] != ".":
                yield path


# --- what is told


def table(room: Room, width: int = 100) -> str:
    """Learners and exercises, as many chapters side by side as the width holds."""
    chapters: dict[str, list[str]] = {}
    for id in room.ids():
        chapters.setdefault(id[:2], []).append(id)
    told, part = [], list[list[str]]()
    for ids in chapters.values():
        if part and _breadth(room, [*part, ids]) > width:
            told.append(_block(room, part))
            part = []
        part.append(ids)
    return "\n\n".join([*told, _block(room, part)])


def _breadth(room: Room, part: Sequence[list[str]]) -> int:
    return max(wide(line) for line in _block(room, part).splitlines())


def _block(room: Room, part: Sequence[list[str]]) -> str:
    """A table of some chapters: names, signs, and totals at the right and below."""
    exercises = [id for ids in part for id in ids if id in EXERCISES]
    names = sorted(room.learners, key=str.casefold)
    side = max([wide(name) for name in names] + [len("passed")])
    side = min(side, 24)
    lines = [_line("", side, [_title(ids) for ids in part])]
    heads = [" ".join(_head(id) for id in ids) for ids in part]
    lines.append(_line("", side, [*heads, "passed"]))
    for name in names:
        found = room.learners[name]
        cells = [" ".join(_cell(id, found.get(id)) for id in ids) for ids in part]
        passed = sum(bool(found.get(id)) for id in exercises)
        lines.append(_line(name, side, [*cells, f"{passed:2} of {len(exercises)}"]))
    totals = [" ".join(_middle(str(sum(map(bool, room.of(id)))), id) for id in ids) for ids in part]
    passed = sum(bool(one) for id in exercises for one in room.of(id))
    return "\n".join([*lines, _line("passed", side, [*totals, f"{passed:2}"])])


def _title(ids: Sequence[str]) -> str:
    room = len(" ".join(_head(id) for id in ids))
    return f"{ids[0][:2]} {NAMES[ids[0][:2]]}"[:room].ljust(room)


def _head(id: str) -> str:
    return id[3:].center(3)


def _cell(id: str, found: Found | None) -> str:
    return _middle("" if found is None else SIGNS[found.state], id)


def _middle(text: str, id: str) -> str:
    return text.center(len(_head(id)))


def _line(name: str, side: int, cells: Sequence[str]) -> str:
    return "   ".join([fitted(name, side), *cells]).rstrip()


def wide(text: str) -> int:
    """Columns that a text takes in a terminal.

    >>> wide("Anna"), wide("安娜"), wide("Åsa")
    (4, 4, 3)
    """
    return sum(
        2 if unicodedata.east_asian_width(x) in "WF" else 1
        for x in text
        if not unicodedata.combining(x) and not _unseen(x)
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


def hardest(room: Room, most: int = 5) -> list[str]:
    """What stands wrong most often, with the commonest sentence said about it."""
    counted = []
    for id in room.ids():
        wrong = [one for one in room.of(id) if one.state == "wrong"]
        tried = [one for one in room.of(id) if one.state != "open"]
        if wrong:
            [(text, times)] = Counter(one.text for one in wrong).most_common(1)
            said = f"{times} × “{fitted(text, 90).rstrip()}”"
            told = f"{id}: {len(wrong)} of {len(tried)} who tried it. {said}"
            counted.append((-len(wrong), id, told))
    return [told for *_, told in sorted(counted)[:most]]


def as_csv(room: Room) -> str:
    """A row a learner, a column an exercise, for a spreadsheet.

    A name that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    ids = room.ids()
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["learner", *ids, "passed"])
    for name in sorted(room.learners, key=str.casefold):
        found = room.learners[name]
        states = [found[id].state if id in found else "" for id in ids]
        passed = sum(bool(found.get(id)) for id in ids if id in EXERCISES)
        safe = f"'{name}" if name[0] in "=+-@" else name
        writer.writerow([safe, *states, passed])
    return file.getvalue()


# --- in a terminal


def report(room: Room, width: int) -> str:
    """The table, what went wrong most, and what was left out."""
    done = {id[:2] for id in room.ids()}
    untouched = [number for number in NAMES if number not in done]
    told = [f"{_so_many(len(room.learners), 'learner')}, as their notebooks were saved"]
    told += [table(room, width), KEY] if done else []
    if untouched:
        told.append(f"Nobody has answered anything in {', '.join(untouched)}.")
    wrong = hardest(room)
    if wrong:
        head = "Wrong most often (what was mended since leaves no trace):"
        told.append("\n".join([head, *(f"  {line}" for line in wrong)]))
    return "\n\n".join(told + _left_out(room))


def _left_out(room: Room, most: int = 10) -> list[str]:
    if not room.left_out:
        return []
    shown = [f"  {line}" for line in room.left_out[:most]]
    if len(room.left_out) > most:
        shown.append(f"  and {len(room.left_out) - most} more")
    return ["\n".join(["Left out:", *shown])]


def _so_many(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' if number != 1 else ''}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report on a folder; 2 where it holds no notebook of the course."""
    parser = argparse.ArgumentParser(
        prog="python -m llmtrain_helpers class",
        description="Who has passed what, from saved notebooks.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help=WHERE)
    parser.add_argument("--csv", action="store_true", help="for a spreadsheet")
    options = parser.parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # where a pipe has another one
    try:
        room = read_folder(options.folder)
    except ValueError as problem:
        print(f"{problem}. {WHERE}", file=sys.stderr)
        return 2
    if not room.learners:
        found = f"no notebook of the course with saved outputs below {options.folder}"
        print("\n".join([f"{plain(found)}. {WHERE}", *_left_out(room)]), file=sys.stderr)
        return 2
    if options.csv:
        print("\ufeff" + as_csv(room), end="")  # the mark tells Excel that it is UTF-8
    else:
        print(report(room, shutil.get_terminal_size((100, 24)).columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
