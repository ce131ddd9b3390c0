"""How long each section of each chapter takes: `python teaching/minutes.py`.

Counted from the notebook as it is: 150 words a minute, half a minute for a cell of
code, four minutes for an exercise, one for a prediction (hands up, then the answer)
and three for a panel and its tasks. Sections are what stands between two headings;
each is rounded to whole minutes, and a chapter's sum is the sum of these.

`TEACHING.md` repeats what this prints, and a test holds it to that.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"

WORDS_A_MINUTE = 150
CODE, EXERCISE, PREDICTION, PANEL = 0.5, 4, 1, 3
"""Minutes for a cell of code, an exercise, a prediction, a panel with its tasks."""

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

    @property
    def minutes(self) -> int:
        """Whole minutes, and never none.

        >>> Section("A win", 300, 2, 1, 1, 1).minutes
        11
        """
        reading = self.words / WORDS_A_MINUTE + CODE * self.code
        doing = EXERCISE * self.exercises + PREDICTION * self.predictions
        return max(1, int(reading + doing + PANEL * self.panels + 0.5))


def sections(notebook: Path) -> list[Section]:
    """The sections of a chapter, in order."""
    titles, texts, codes = [OPENING], [""], [""]
    counts = [0]
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            codes[-1] += f"\n{source}"
            counts[-1] += 1
            continue
        before, *rest = re.split(r"^## (.+)$", source, flags=re.MULTILINE)
        texts[-1] += f" {before}"
        for title, text in zip(rest[::2], rest[1::2], strict=True):
            titles.append(title)
            texts.append(text)
            codes.append("")
            counts.append(0)
    rows = zip(titles, texts, codes, counts, strict=True)
    return [_section(*row) for row in rows]


def _section(title: str, text: str, code: str, cells: int) -> Section:
    checks = len(re.findall(r'\bcheck\("', code))
    guesses = len(re.findall(r'\bpredict\("', code))
    panels = len(re.findall(r"^\w+_panel\(", code, re.MULTILINE))
    return Section(title, len(text.split()), cells, checks, guesses, panels)


def chapters() -> dict[str, list[Section]]:
    """The sections of every chapter, by the number that its file begins with."""
    return {
        path.name[:2]: sections(path) for path in sorted(NOTEBOOKS.glob("[01]?_*.ipynb"))
        if ".mine" not in path.name
    }


def line(found: list[Section]) -> str:
    """A chapter's sections with their minutes, and the sum."""
    told = " · ".join(f"{one.title} {one.minutes}" for one in found)
    return f"{told} · **together {sum(one.minutes for one in found)}**"


def main() -> None:
    """Print a line a chapter."""
    for number, found in chapters().items():
        print(f"{number}: {line(found)}\n")


if __name__ == "__main__":
    main()
