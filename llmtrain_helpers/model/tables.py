"""The tables of `data/`, row by row, with the standard library alone. Shared by all chapters."""

from __future__ import annotations

from collections.abc import Mapping
from csv import DictReader
from functools import cache
from pathlib import Path
from typing import Any

from llmtrain_helpers.checks import refuse, show


def data_folder() -> Path:
    """Where the tables lie: in the installed package, or beside it in a checkout."""
    here = Path(__file__).parents[1]
    installed = here / "data"
    return installed if installed.is_dir() else here.parent / "data"


@cache
def rows(table: str) -> tuple[dict[str, Any], ...]:
    """The rows of a table without pandas, each without its gaps.

    >>> rows("links")[0]["gpus_per_node"]
    8
    """
    path = data_folder() / f"{table}.csv"
    if not isinstance(table, str) or not path.is_file():
        refuse("table", table, "is no table of data/")
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(map(_typed, DictReader(file)))


def names(table: str) -> list[str]:
    """The names of a table's rows, in order: what a list to choose from shows.

    >>> names("accelerators")[:2]
    ['V100 16GB SXM2', 'V100 32GB SXM2']
    """
    return [row["name"] for row in rows(table)]


def _typed(row: Mapping[str, str]) -> dict[str, Any]:
    """A row with its numbers as numbers, and without its gaps."""
    return {key: _value(key, text) for key, text in row.items() if text}


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
"""Columns that stay text though they may look like numbers."""


def find_row(kind: str, name: str, *tables: str) -> dict[str, Any]:
    """The row of this name or alias, out of the first of these tables that has it."""
    known = [row for table in reversed(tables) for row in rows(table)]
    spelt = [";".join([row["name"], row.get("aliases", "")]) for row in known]
    places = {_plain(x): i for i, text in enumerate(spelt) for x in text.split(";")}
    places.pop("", None)
    place = places.get(_plain(name)) if isinstance(name, str) else None
    if place is None:
        from difflib import get_close_matches  # only errors need it

        letters = _plain(show(name))
        near = get_close_matches(letters, places, n=6, cutoff=0.5)
        near = near or [x for x in places if letters and letters in x][:3]
        offers = dict.fromkeys(known[places[spelling]]["name"] for spelling in near)
        refuse(kind, name, _offer([*offers][:3], names(tables[0])))
    return dict(known[place])


def _plain(name: str) -> str:
    """A name as it is compared: its letters and digits alone."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _offer(near: list[str], known: list[str]) -> str:
    if not near:
        more = f" and {len(known) - 12} more" if len(known) > 12 else ""
        return f"is unknown. Known: {', '.join(known[:12])}{more}"
    return f"is unknown, did you mean {' or '.join(map(repr, near))}?"
