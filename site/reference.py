"""The reference of public names, which autodoc makes of their docstrings: a page per module.

The pages' sources are written beside the built site before Sphinx looks for them.
"""

from __future__ import annotations

import inspect
import re
import shutil
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.util.inspect import stringify_signature

import llmtrain_helpers

PAGE = "site/helpers"
"""The page that lists all names, for Sphinx."""

SOURCES = "build/reference"
"""Where the sources of the modules' pages are; their addresses don't have the `build`."""

MARKUP = re.compile(r"(`[^`]+`)(?=(\w)?)|[*_|\\]")
"""Names, with a letter that may follow one, and what reStructuredText would take for marks."""

NOTEBOOK = re.compile(r"(?:notebooks/)?(\d\d_\w+)\.ipynb")

SPACED = re.compile(r"\S {3,}\S")
FORMULA = re.compile(r"[^.,;]* = [^.,;]*(\.\d[^.,;]*)*")
"""A line of a table, and a formula on a line of its own."""


def setup(app: Any) -> None:
    """Write the modules' pages, and let autodoc read our docstrings."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-signature", sign)
    app.connect("autodoc-process-docstring", convert)


def write_pages(app: Any) -> None:
    """Write a page for each module: what it's for, then each public name under a heading."""
    folder = Path(app.srcdir, SOURCES)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for module, names in by_module().items():
        intro = inspect.getdoc(import_module(f"llmtrain_helpers.{module}"))
        intro = NOTEBOOK.sub(r":doc:`/notebooks/\1`", intro)
        parts = [f"Helpers: {module}\n{'=' * 80}", ".. currentmodule:: llmtrain_helpers"]
        parts.append(in_rst(intro))
        for name in names:
            kind = "class" if inspect.isclass(getattr(llmtrain_helpers, name)) else "function"
            parts += [f"{name}\n{'-' * 80}", f".. auto{kind}:: {name}"]
        (folder / f"{module}.rst").write_text("\n\n".join(parts) + "\n", "utf-8")


def by_module() -> dict[str, list[str]]:
    """Group the public functions and classes by the module they're in, functions first."""
    names = defaultdict[str, list[str]](list)
    for name in sorted(llmtrain_helpers.__all__, key=str.lower):
        thing = getattr(llmtrain_helpers, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            names[thing.__module__.split(".")[1]].append(name)

    def place(name: str) -> tuple[bool, bool]:
        """Functions come before classes, and first what the module is named after."""
        thing = getattr(llmtrain_helpers, name)
        return inspect.isclass(thing), not name.startswith(thing.__module__.split(".")[1])

    return {module: sorted(names[module], key=place) for module in sorted(names)}


def overview() -> str:
    """Write a table of all names in Markdown, a row per module, and what leads to its pages."""
    rows, pages = ["| module | names |", "|---|---|"], by_module()
    for module, names in pages.items():
        links = [f"{anchors(name)}{{py:obj}}`{name} <llmtrain_helpers.{name}>`" for name in names]
        rows.append(f"| [{module}](/{SOURCES}/{module}.rst) | {', '.join(links)} |")
    tree = "\n".join(f"{module} </{SOURCES}/{module}>" for module in pages)
    return "\n".join([*rows, f"\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"])


def anchors(name: str) -> str:
    """Keep the addresses that entries had when one page had them all."""
    former = {name, name.lower().replace("_", "-")} - ({*llmtrain_helpers.__all__} - {name})
    return "".join(f'<span id="{one}"></span>' for one in sorted(former))


def addresses() -> dict[str, str]:
    """Map each public name to its entry's address."""
    return {
        name: f"reference/{module}.html#llmtrain_helpers.{name}"
        for module, names in by_module().items()
        for name in names
    }


def sign(
    app: Any, what: str, name: str, thing: Any, options: Any, arguments: str, returned: str
) -> tuple[str, str] | None:
    """Write types as the source has them: `Count[int]`, and not the check behind it."""
    if what not in ("function", "class", "method"):
        return None
    written = stringify_signature(inspect.signature(thing), show_return_annotation=what != "class")
    return re.sub(r"^\(self(, )?", "(", written).partition(" -> ")[::2]


def convert(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring's lines into reStructuredText."""
    lines[:] = [*in_rst("\n".join(lines).strip()).split("\n"), ""]


def in_rst(docstring: str) -> str:
    """Escape what isn't markup in a plain docstring, and keep formulas and tables as they are."""
    return "\n\n".join(map(paragraph_in_rst, docstring.split("\n\n")))


def paragraph_in_rst(paragraph: str) -> str:
    """Turn words into text; a doctest stays, and lines that are laid out are a block."""
    lines = paragraph.split("\n")
    if lines[0].startswith(">>>"):
        return paragraph
    if any(map(SPACED.search, lines)) or all(map(FORMULA.fullmatch, lines)):
        return ".. code-block:: text\n\n" + "\n".join(f"    {line}" for line in lines)
    return MARKUP.sub(lambda x: f"{x[1]}\\ " if x[2] else x[1] or f"\\{x[0]}", paragraph)
