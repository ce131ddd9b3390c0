"""What stands in a notebook, for tests that hold it against the package."""

from __future__ import annotations

import json
from typing import Any

from tests.paths import NOTEBOOKS


def cells(page: str) -> list[dict[str, Any]]:
    """The cells of a notebook by its name, such as "03_duration"."""
    content: list[dict[str, Any]] = json.loads((NOTEBOOKS / f"{page}.ipynb").read_text("utf-8"))[
        "cells"
    ]
    return content


def words(page: str) -> str:
    """The text of all cells, without what they show."""
    return "\n".join("".join(cell["source"]) for cell in cells(page))


def cell(page: str, id: str) -> str:
    """The text of one cell."""
    [match] = [cell for cell in cells(page) if cell["id"] == id]
    return "".join(match["source"])
