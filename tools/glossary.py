"""The glossary's sentences as tooltips: python tools/glossary.py [--check].

Each link from a notebook to an entry of the glossary gets that entry's first sentence as
its title, `[GPU](glossary.ipynb#GPU "The chip that …")`, so that nobody has to leave the
page. The sentence stands in `notebooks/glossary.ipynb` alone; `make regenerate` runs this
first. With `--check` nothing is written, and the notebooks that are behind are named.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat

from tools.notebooks import GLOSSARY, all_notebooks, refuse_another_copy

LONGEST = 160
"""Characters of a tooltip; a longer sentence ends with one of its clauses."""

LINK = re.compile(r'\]\(((?:\.\./)*glossary\.ipynb#)([^)\s"]+)(?: "[^"\n]*")?\)')


def entries() -> dict[str, str]:
    """The glossary: each term, and what stands under it."""
    cells = nbformat.read(GLOSSARY, as_version=4).cells
    text = "\n".join(cell.source for cell in cells)
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)[1:]
    bodies = [re.split(r"^## |^\*\*Sources", it, flags=re.MULTILINE)[0] for it in parts[1::2]]
    return dict(zip(parts[::2], map(str.strip, bodies), strict=True))


def tooltip(entry: str) -> str:
    """The first sentence of an entry, as plain text.

    >>> tooltip("A **stage**, its $h$ (or two): $2(d-1)/d$ of it. ZeRO has some too. [09](x.ipynb)")
    'A stage, its h.'
    """
    text = re.split(r" In formulas and code: | \[\d\d\]\(", entry)[0]
    text = re.sub(r"\$(\w+)\$", r"\1", text.replace("**", "").replace("`", ""))
    text = re.sub(r" \([^()$]*\)", "", text)  # what stands in brackets can be skipped
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z“])", text)[0].replace('"', "”")
    for separator in (r"(?<=[:;])\s+", r"(?<=[,:;])\s+"):
        clauses = re.split(separator, sentence)
        while len(clauses) > 1 and not fits(" ".join(clauses)):
            clauses.pop()
        sentence = " ".join(clauses)
    return sentence.rstrip(".,:; ") + "."


def fits(text: str) -> bool:
    """Whether a tooltip can show it: short, and without a formula."""
    return len(text) <= LONGEST and "$" not in text


def titled(text: str, glossary: dict[str, str]) -> str:
    """Markdown whose links to the glossary have the tooltips of their entries.

    >>> titled("a [chip](glossary.ipynb#GPU)", {"GPU": "The chip."})
    'a [chip](glossary.ipynb#GPU "The chip.")'
    """
    by_anchor = {term.replace(" ", "-"): tooltip(entry) for term, entry in glossary.items()}

    def link(match: re.Match[str]) -> str:
        place, anchor = match.groups()
        if anchor not in by_anchor:
            raise ValueError(f"{place}{anchor}: the glossary has no such entry")
        return f'{match[0][0]}({place}{anchor} "{by_anchor[anchor]}")'

    return LINK.sub(link, text)


def behind(path: Path, glossary: dict[str, str]) -> str:
    """A notebook's text with all tooltips, or nothing where it has them already."""
    notebook = nbformat.read(path, as_version=4)
    changed = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            source, cell.source = cell.source, titled(cell.source, glossary)
            changed |= cell.source != source
    return nbformat.writes(notebook) + "\n" if changed else ""


def update(check: bool = False) -> int:
    """Write the tooltips of all notebooks, or name those that are behind; how many were."""
    glossary, count = entries(), 0
    for path in all_notebooks():
        if text := behind(path, glossary):
            count += 1
            print(f"{'tooltips are behind' if check else 'tooltips written'}: {path.name}")
            if not check:
                path.write_text(text, encoding="utf-8")
    return count


def main(arguments: Sequence[str]) -> int:
    """Write, or check: then 1 where a notebook is behind."""
    check = "--check" in arguments
    refuse_another_copy(__file__)
    return 1 if update(check) and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
