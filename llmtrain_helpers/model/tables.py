"""The tables of `data/`, row by row, using only the standard library. Shared by all chapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from csv import Error, reader
from functools import cache
from pathlib import Path
from typing import Any

from llmtrain_helpers.checks import refuse, show


def data_folder() -> Path:
    """Find the tables: in the installed package, or next to it in a checkout."""
    here = Path(__file__).parents[1]
    installed = here / "data"
    return installed if installed.is_dir() else here.parent / "data"


class Row(dict[str, Any]):
    """A row: numbers, texts, True and False, by column."""


@cache
def rows(table: str) -> tuple[Row, ...]:
    """The rows of a table without pandas, each without its gaps.

    >>> rows("links")[0]["gpus_per_node"]
    8
    """
    header, *lines = table_lines(table)
    return tuple(_typed(dict(zip(header, line, strict=True))) for line in lines)


def table_lines(table: str) -> list[list[str]]:
    """The cells of a table, header first; a ValueError names a damaged file."""
    lines = _read(data_folder() / "columns.txt", ":")
    columns = {name: cells.split(",") for name, cells in lines}
    if not isinstance(table, str) or table not in columns:
        refuse("table", table, "isn't a table of data/")
    path = data_folder() / f"{table}.csv"
    lines = checked_lines(path, columns[table])
    if len(lines) < 2:
        raise ValueError(f"{path} has no rows: get a fresh copy of the file")
    return lines


def checked_lines(path: Path, columns: Sequence[str]) -> list[list[str]]:
    """The cells of a CSV file with these columns and complete rows, header first."""
    header, *lines = _read(path, ",") or [[]]
    missing = [column for column in columns if header.count(column) != 1]
    if missing:
        names = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        need = "a header with each of its columns once, separated by commas"
        raise ValueError(f"{path} has no column {names}: it needs {need}, so get a fresh copy")
    for line in lines:
        if len(line) != len(header):
            problem = f"has {len(line)} cells instead of {len(header)}: get a fresh copy"
            raise ValueError(f"{path}: the row {show(','.join(line))} {problem}")
    return [header, *lines]


def _read(path: Path, delimiter: str) -> list[list[str]]:
    """The cells of a file's lines, without empty ones."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [line for line in reader(file, delimiter=delimiter) if line]
    except (OSError, UnicodeDecodeError, Error) as error:
        raise ValueError(f"{path} can't be read: {str(error)[:80]}") from None


def names(table: str) -> list[str]:
    """The names of a table's rows, in order, for a list to pick from.

    >>> names("accelerators")[:2]
    ['V100 16GB SXM2', 'V100 32GB SXM2']
    """
    return [row["name"] for row in rows(table)]


def _typed(row: Mapping[str, str]) -> Row:
    """Convert the numbers of a row, and drop its gaps."""
    return Row({key: _value(key, text) for key, text in row.items() if text})


def _value(key: str, text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    if key in _TEXTS:
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


_TEXTS = ("name", "release", "model")
"""Columns that are text even if they look like numbers."""


def find_row(kind: str, name: str, *tables: str) -> Row:
    """Find the row with this name or alias in the first of these tables that has it."""
    by_spelling = _by_spelling(tables)
    row = by_spelling.get(_plain(name)) if isinstance(name, str) else None
    if row is None:
        from difflib import get_close_matches  # only errors need it

        letters = _plain(show(name))
        near = get_close_matches(letters, by_spelling, n=6, cutoff=0.5)
        near = near or [x for x in by_spelling if letters and letters in x][:3]
        offers = dict.fromkeys(by_spelling[spelling]["name"] for spelling in near)
        refuse(kind, name, _offer([*offers][:3], names(tables[0])))
    return Row(row)


@cache
def _by_spelling(tables: tuple[str, ...]) -> dict[str, Row]:
    """The rows of these tables by every name; earlier tables take precedence."""
    spellings = {
        _plain(spelling): row
        for table in reversed(tables)
        for row in rows(table)
        for spelling in (row["name"], *row.get("aliases", "").split(";"))
    }
    return {spelling: row for spelling, row in spellings.items() if spelling}


def _plain(name: str) -> str:
    """A name as we compare it: just its letters and digits."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _offer(near: list[str], choices: list[str]) -> str:
    if not near:
        more = f" and {len(choices) - 12} more" if len(choices) > 12 else ""
        return f"is unknown. Known: {', '.join(choices[:12])}{more}"
    return f"is unknown, did you mean {' or '.join(map(repr, near))}?"
