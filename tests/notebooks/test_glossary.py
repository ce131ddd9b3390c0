"""The glossary: each term that a notebook defines, in a sentence, and its links."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import nbformat
import pytest

from tests.notebooks.scripts import load
from tests.paths import NOTEBOOKS, PACKAGES, ROOT
from tools import glossary, notebooks
from tools.notebooks import GLOSSARY, all_notebooks, chapters

CHAPTERS, PAGES = chapters(), all_notebooks()

FIELD = """
token, parameter, FLOP, FLOP/s, peak, dense peak, sparse peak, hidden size, head,
query, key, value, MLP, gated MLP, embedding, logits, tied, norm, expert, active,
forward, backward, recomputation, HFU, MFU, iteration, step, batch, micro-batch,
accumulation, replica, data parallelism, tensor parallelism, pipeline parallelism,
context parallelism, sequence parallelism, stage, bubble, interleaving, all-reduce,
ring, ZeRO, FSDP, mantissa, exponent, subnormal, loss scaling, main weights,
optimizer, Adam, activations, checkpointing, flash attention, allocator, reserve, MiB,
GiB, prefixes, critical batch, layer, attention, gradient, loss, vocabulary, sequence,
node, epoch, GPU, GPU-hour, weights, model states, mixed precision, kernel, router,
throughput
"""
"""Terms of the field that the course uses, set off by a notebook or not."""

STRESSED = """again, all weights, and, best, both, can, count, every layer, global, is, layers,
looks, matrices, measured, more, none, not, other, output, piece by piece, reaches,
recomputed, same, share the weights,
stated, the exact way, this, three questions, up, whole, wrong way, years, sbh"""
"""Words that a notebook stresses, and does not define."""

DEFINES_NOTHING = r"panel|exercise|stretch|questions|sources|own-run"
"""Cells in which emphasis names presets, numbers of exercises, or titles."""


def prose(path: Path) -> str:
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(c.source for c in cells if c.cell_type == "markdown")


def everything(path: Path) -> str:
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells)


ENTRIES = glossary.entries()


def plain(term: str) -> str:
    """A term as it is compared: case, hyphens, blanks and a plural's s aside."""
    letters = re.sub(r"^the |[^a-z0-9/]", "", term.casefold())
    return letters if letters.endswith("ss") else letters.removesuffix("s")


def stressed(term: str) -> bool:
    return term.casefold() in re.split(r",\s+", STRESSED)


def linked_terms() -> set[str]:
    """Headings, and words that an entry sets in bold: its other names."""
    names = set(ENTRIES)
    for body in ENTRIES.values():
        names |= set(re.findall(r"\*\*(.+?)\*\*", body))
    names |= {word for name in ENTRIES for word in name.split(", ")}
    names |= {name.removesuffix(" parameters") for name in ENTRIES}
    return {plain(name) for name in names}


def forms(term: str) -> list[str]:
    """What a notebook that teaches a term may call it: as here, or as in code."""
    others = re.findall(r"\*\*(.+?)\*\*|`(\w+)`", ENTRIES[term])
    names = [*term.split(", "), *(name for pair in others for name in pair if name)]
    single = [x if x.endswith("ss") else x.removesuffix("s") for x in names]
    return [_pattern(name) for name in single]


def _pattern(name: str) -> str:
    words = map(re.escape, re.split(r"[ -]", name))
    return r"(?<!\w)" + r"[ _\s-]*".join(words) + r"(s|es)?(?!\w)"


def definitions(path: Path) -> set[str]:
    """What a notebook sets in bold or italics to define it.

    At most three words of letters, without the full stop or colon of a label, outside
    of cells that define nothing; no number, no formula, no word that is only stressed.
    """
    terms = set()
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "markdown" or re.match(DEFINES_NOTHING, cell.id):
            continue
        text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|\]\([^)]*\)", "", cell.source)
        text = re.sub(r"^ *\* ", "- ", text, flags=re.MULTILINE)
        for _, span in re.findall(r"(\*\*|\*)(?=\S)([^*\n]+?)(?<=\S)\1", text):
            if re.fullmatch(r"[A-Za-z][a-z/-]*[A-Za-z/]*( [A-Za-z-]+){0,2}", span):
                terms.add(span)
    return terms


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_what_a_notebook_defines_stands_in_the_glossary(path: Path) -> None:
    missing = {term for term in definitions(path) if plain(term) not in linked_terms()}
    assert {m for m in missing if not stressed(m)} == set()


def test_the_rule_finds_definitions() -> None:
    terms = {plain(term) for path in CHAPTERS for term in definitions(path)}
    assert {"token", "parameter", "flop/"} <= terms
    assert len(terms) > 30


@pytest.mark.parametrize("term", re.split(r",\s+", FIELD.strip()))
def test_terms_of_the_field_stand_in_the_glossary(term: str) -> None:
    assert plain(term) in linked_terms()


def test_entries_are_alphabetical_and_none_stands_twice() -> None:
    headings = re.findall(r"^### (.+)$", prose(GLOSSARY), re.MULTILINE)
    assert headings == [*ENTRIES]
    keys = [re.sub(r"[^a-z0-9]", "", term.casefold()) for term in ENTRIES]
    assert keys == sorted(keys)
    assert len({plain(term) for term in ENTRIES}) == len(ENTRIES)


def test_each_letter_is_a_cell_of_its_own() -> None:
    cells = nbformat.read(GLOSSARY, as_version=4).cells
    assert {cell.cell_type for cell in cells} == {"markdown"}
    for cell in cells[1:-1]:
        heads = re.findall(r"^### (.+)$", cell.source, re.MULTILINE)
        assert {head[0].casefold() for head in heads} == {cell.id}
        assert cell.source.startswith(f"## {cell.id.upper()}\n")


@pytest.mark.parametrize("term", ENTRIES)
def test_an_entry_is_a_sentence_and_links_to_where_it_is_taught(term: str) -> None:
    body = ENTRIES[term]
    links = re.findall(r"\[(\d\d)\]\((\w+\.ipynb)\)", body)
    assert links
    for number, name in links:
        assert name.startswith(number)
        text = everything(NOTEBOOKS / name)
        assert any(re.search(one, text, re.IGNORECASE) for one in forms(term)), name
    sentence = re.split(r" In formulas and code: | \[\d\d\]", body)[0]
    assert sentence.endswith(".")
    assert len(sentence.split()) <= 45


@pytest.mark.parametrize("term", ENTRIES)
def test_names_in_code_exist(term: str) -> None:
    files = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    code = "".join(path.read_text("utf-8") for path in files)
    for name in re.findall(r"`([^`]+)`", ENTRIES[term]):
        for word in re.findall(r"[A-Za-z_]\w{2,}", name):
            assert re.search(rf"\b{word}\b", code), name


@pytest.mark.parametrize("path", CHAPTERS[1:], ids=lambda path: path.stem)
def test_what_a_page_defines_leads_into_the_glossary(path: Path) -> None:
    """Once a page, where the term is set off for the first time."""
    text = prose(path)
    linked = set(re.findall(r"\[[^\]]*\]\(glossary\.ipynb#([^)\s]+)", text))
    assert len(linked) >= 1
    bare = {
        term.replace(" ", "-")
        for term in ENTRIES
        if re.search(rf"^(?![#|]).*(?<![\[*])\*\*{re.escape(term)}\*\* (is|are)\b", text, re.M)
    }
    assert bare - linked == set()


@pytest.mark.parametrize("page", [path.stem for path in CHAPTERS])
def test_a_page_introduces_few_terms(page: str) -> None:
    """Those that no page before it has linked to the glossary."""
    most = 10 if page == "08_parallelism" else 8
    links = {
        path.stem: set(re.findall(r"glossary\.ipynb#([^)\s]+)", prose(path))) for path in CHAPTERS
    }
    earlier = set().union(*(links[stem] for stem in links if stem < page))
    assert 0 < len(links[page] - earlier) <= most


# --- tooltips


@pytest.mark.parametrize("term", ENTRIES)
def test_a_tooltip_is_a_short_sentence_without_marks(term: str) -> None:
    """Brackets would end the link for whoever counts words; marks are shown as they are."""
    tooltip = glossary.tooltip(ENTRIES[term])
    assert len(tooltip.split()) >= 3
    assert len(tooltip) <= 160
    assert re.fullmatch(r'[^"()\[\]{}<>$*_`|\\\n]+[^.,:; ]\.', tooltip)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_links_have_the_glossarys_sentence_for_a_tooltip(path: Path) -> None:
    """After a change of the glossary or a link: python tools/glossary.py."""
    assert not glossary.behind(path, ENTRIES)
    links = re.findall(r'\]\([./]*glossary\.ipynb#([^)\s]+)( "[^"\n]+")?\)', prose(path))
    assert all(title for _, title in links)


def test_tooltips_follow_the_glossary() -> None:
    entries = {"hidden size": "Numbers of a **token**. In formulas and code: $h$. [01](x.ipynb)"}
    link, tooltip = "[size](../glossary.ipynb#hidden-size", ' "Numbers of a token."'
    for before in ("", ' "Another sentence, from before."', tooltip):
        assert glossary.titled(f"a {link}{before}).", entries) == f"a {link}{tooltip})."
    for other in ("[all](glossary.ipynb)", '[so](https://x.org "It")', "[A](#A)"):
        assert glossary.titled(other, entries) == other
    with pytest.raises(ValueError, match="no such entry"):
        glossary.titled("[size](glossary.ipynb#size)", entries)


def test_the_tool_writes_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "01_parameters.ipynb"
    cell = nbformat.v4.new_markdown_cell("a [chip](glossary.ipynb#GPU)", id="chip")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), page)
    before = page.read_bytes()
    monkeypatch.setattr(glossary, "all_notebooks", lambda: [page])
    assert glossary.main(["--check"]) == 1
    assert "01_parameters" in capsys.readouterr().out
    assert page.read_bytes() == before
    assert glossary.main([]) == 0
    assert prose(page) == f'a [chip](glossary.ipynb#GPU "{glossary.tooltip(ENTRIES["GPU"])}")'
    assert glossary.main(["--check"]) == 0


def test_tooltips_are_no_words_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.ipynb"
    cell = nbformat.v4.new_markdown_cell('one [two](glossary.ipynb#b "Three four.") five')
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), page)
    assert [it.words for it in load("minutes").sections(page)] == [3]
    page.write_text(page.read_text("utf-8").replace("Three four.", "long tip " * 1000), "utf-8")
    assert load("minutes").solo_minutes(page) == 0
    for module in (glossary, notebooks):
        assert doctest.testmod(module).failed == 0
        assert doctest.testmod(module).attempted
    text = 'a [b](glossary.ipynb#b "Two words.") and [c](https://x.org "d")'
    assert notebooks.without_tooltips(text) == "a [b](glossary.ipynb#b) and [c](https://x.org)"
