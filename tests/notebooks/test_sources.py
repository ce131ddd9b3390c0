"""What the notebooks state has a source: named, of known form, the right one.

It's a note next to its sentence, and a line in the list at the end of the evidence.

README.md promises it. A number in prose that no test of its own holds is looked at
here: link speeds and prices stand beside a source, guesses are called assumptions.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest

from llmtrain_helpers import published
from tests.paths import ROOT
from tools.notebooks import pages

CHAPTERS = pages()
TABLES = {path.stem for path in published.data_folder().glob("*.csv")}
SINGLE = {"architecture": "architectures", "accelerator": "accelerators"}
"""Readers of one row, and the table that it is a row of."""

ARXIV = r"\b(\d\d(?:0[1-9]|1[0-2])\.\d{5})\b"

BY = {
    "1604.06174": "Chen",
    "1710.03740": "Micikevicius",
    "1812.06162": "McCandlish",
    "1905.12322": "Kalamkar",
    "1910.02054": "Rajbhandari",
    "2001.08361": "Kaplan",
    "2005.14165": "Brown",
    "2007.00072": "Ivanov",
    "2104.04473": "Narayanan",
    "2203.15556": "Hoffmann",
    "2204.02311": "Chowdhery",
    "2205.05198": "Korthikanti",
    "2205.14135": "Dao",
    "2209.05433": "Micikevicius",
    "2211.05100": "BLOOM",
    "2305.16264": "Muennighoff",
    "2312.12391": "vTrain",
    "2401.02954": "DeepSeek",
    "2401.04088": "Jiang",
    "2402.15627": "MegaScale",
    "2407.20143": "ByteCheckpoint",
    "2404.06395": "MiniCPM",
    "2404.10102": "Besiroglu",
    "2406.19146": "Porian",
    "2407.21783": "Llama 3",
    "2410.21680": "Kokolis",
    "2410.21676": "Zhang",
    "2412.19437": "DeepSeek",
    "2509.16293": "ByteRobust",
    "2505.23971": "Merrill",
}
"""Whose paper, or on which model, a number of arXiv is."""

SOURCED = r"arXiv|data/README\.md|\w+\.md\b|\bTable \d|assum"

every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


@cache
def cells(path: Path, kind: str) -> dict[str, str]:
    notebook = nbformat.read(path, as_version=4)
    return {c.id: c.source for c in notebook.cells if c.cell_type == kind}


def sources(path: Path) -> str:
    """The list of a page's sources, which stands in its evidence."""
    listed = path if path.stem == "glossary" else path.parent / "evidence" / path.name
    return cells(listed, "markdown")["sources"]


@every_chapter
def test_every_paper_is_among_the_sources(path: Path) -> None:
    prose = "\n".join(cells(path, "markdown").values())
    assert set(re.findall(ARXIV, prose)) <= set(re.findall(ARXIV, sources(path)))
    numbers = re.findall(r"arXiv(?: |:)([\d.]+\d)", prose)
    assert all(re.fullmatch(ARXIV, number) for number in numbers)


@every_chapter
def test_every_paper_goes_by_its_own_name(path: Path) -> None:
    """A number beside the wrong name is a wrong source."""
    listed = re.split(r"\n\* |(?<=[a-z\d])[.;] (?=[A-Z])", sources(path))
    for sentence in listed:
        for number in re.findall(ARXIV, sentence):
            assert BY.get(number, "") in sentence, (number, sentence)


@every_chapter
def test_what_a_page_takes_from_papers_has_its_note(path: Path) -> None:
    """A link to the paper next to the sentence; it goes by the paper's own name."""
    prose = "\n".join(cells(path, "markdown").values())
    notes = re.findall(r"\(\[([^\]]+)\]\(https://arxiv\.org/abs/([\d.]+)\)\)", prose)
    assert [note for note in notes if BY.get(note[1], "") not in note[0]] == []
    assert path.stem == "glossary" or len(notes) >= 2


@every_chapter
def test_the_papers_of_a_chapters_module_are_among_the_sources(path: Path) -> None:
    module = ROOT / "llmtrain_helpers" / f"{path.stem[3:]}.py"
    if module.exists():
        docstring = module.read_text("utf-8").split('"""')[1]
        assert set(re.findall(ARXIV, docstring)) <= set(re.findall(ARXIV, sources(path)))


@every_chapter
def test_the_tables_that_are_used_are_among_the_sources(path: Path) -> None:
    code = "\n".join(cells(path, "code").values())
    called = set(re.findall(r"\bpublished\.(\w+)\(", code))
    used = {SINGLE.get(name, name) for name in called} & TABLES
    if used:
        assert "](../../data/README.md)" in sources(path)
        assert used <= set(re.findall(r"`(\w+)`", sources(path)))


@every_chapter
def test_link_speeds_and_prices_stand_beside_a_source(path: Path) -> None:
    for name, text in cells(path, "markdown").items():
        if re.search(r"\d [GT]B/s|\$\d[\d.]* (a|per) GPU-hour", text):
            assert re.search(SOURCED, text), name


@every_chapter
def test_guesses_are_called_assumptions(path: Path) -> None:
    for name, text in cells(path, "markdown").items():
        if re.search(r"\b(probably|presumably|hardly ever|supposedly)\b", text):
            assert "assum" in text, name


def test_known_papers_are_used_and_none_stands_twice() -> None:
    text = "\n".join(sources(path) for path in CHAPTERS)
    assert set(BY) <= set(re.findall(ARXIV, text))
