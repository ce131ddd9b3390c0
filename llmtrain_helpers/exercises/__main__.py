"""Who has passed what: `python -m llmtrain_helpers.exercises FOLDER`.

Reads the notebooks below a folder, runs nothing, and prints a table of learners and
exercises, and what the class got wrong most. `--csv` prints the table for a
spreadsheet instead. How learners are told apart: see `classroom`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from llmtrain_helpers.exercises.classroom import (
    NAMES,
    Room,
    as_csv,
    hardest,
    plain,
    read_folder,
    table,
)

KEY = "✓ passed   ✗ tried   → guessed   ○ not yet   (blank: no such notebook)"
WHERE = (
    "A folder for each learner (anna/03_duration.ipynb) or the learner in each file's "
    "name (anna_03_duration.ipynb) would do."
)


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
        prog="python -m llmtrain_helpers.exercises", description=__doc__.split("\n")[0]
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
        print(
            "\n".join([f"{plain(found)}. {WHERE}", *_left_out(room)]), file=sys.stderr
        )
        return 2
    if options.csv:
        print("\ufeff" + as_csv(room), end="")  # the mark tells Excel that it is UTF-8
    else:
        print(report(room, shutil.get_terminal_size((100, 24)).columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
