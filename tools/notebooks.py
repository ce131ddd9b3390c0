"""The notebooks of the course, for all that walks them: tests, tools, teaching, site.

Others lie beside them as soon as somebody learns here: a copy that `make reset` kept or
JupyterLab made, its checkpoints, notes of one's own. Standard library only.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"

GLOSSARY = NOTEBOOKS / "glossary.ipynb"


def all_notebooks() -> list[Path]:
    """Every notebook of the course: its pages in order, their evidence, their solutions."""
    folders = (NOTEBOOKS, NOTEBOOKS / "evidence", NOTEBOOKS / "solutions")
    return [path for folder in folders for path in sorted(folder.iterdir()) if _is_ours(path)]


def pages() -> list[Path]:
    """The learner's path, and the glossary behind it."""
    return [path for path in all_notebooks() if path.parent == NOTEBOOKS]


def chapters() -> list[Path]:
    """The learner's path: the pages that have a number, in order."""
    return [path for path in pages() if path != GLOSSARY]


def refuse_another_copy(script: str) -> None:
    """Exit if this environment belongs to another copy of the course than the script.

    A copied folder would otherwise be served, tested or written out of the one it came from.
    """
    copy, root = Path(script).resolve().parents[1], NOTEBOOKS.parent
    if copy == root:
        return
    remedy = "`make lab` makes its own."
    if Path(sys.prefix).is_relative_to(copy):  # it was copied as well
        remedy = f"delete {sys.prefix}, and `make lab` makes a new one."
    sys.exit(f"This environment is that of another copy, {root}: {remedy}")


def without_tooltips(text: str) -> str:
    """Markdown without the titles of its links, which stand on no page.

    >>> without_tooltips('a [chip](glossary.ipynb#GPU "The chip.") of yours')
    'a [chip](glossary.ipynb#GPU) of yours'
    """
    return re.sub(r'(\]\([^)\s]+) "[^"\n]*"\)', r"\1)", text)


def _is_ours(path: Path) -> bool:
    """Whether it is named as chapters are, in words and nothing behind them."""
    return path == GLOSSARY or bool(re.fullmatch(r"\d\d_[a-z_]+\.ipynb", path.name))
