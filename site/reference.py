"""The reference of public names, made of their docstrings.

`helpers.md` is its first page; Sphinx sees the rest behind it, so that the search finds it.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import llmtrain_helpers

PAGE = "site/helpers"
"""The page's name for Sphinx."""

MARKDOWN = re.compile(r"([*_\[\]<>$#|\\])")
"""What Markdown would take for marks."""

SPACED = re.compile(r"\S {3,}\S")
FORMULA = re.compile(r"[^.,;]* = [^.,;]*(\.\d[^.,;]*)*")
"""A line of a table, and a formula on a line of its own."""


def reference() -> str:
    """Write all public names in Markdown, by the module that has them."""
    rooms = sorted(by_module().items())
    parts = [overview(rooms)]
    for module, names in rooms:
        parts.append(f"\n## {module}\n")
        parts += ["\n\n".join(entry(name)) for name in sorted(names, key=str.lower)]
    return "\n\n".join(parts)


def overview(rooms: list[tuple[str, list[str]]]) -> str:
    """A table of all names, a row for each module."""
    rows = []
    for module, names in rooms:
        links = [f"[`{name}`](#{name})" for name in sorted(names, key=str.lower)]
        rows.append(f"| {module} | {', '.join(links)} |")
    return "\n".join(["| module | names |", "|---|---|", *rows])


def by_module() -> dict[str, list[str]]:
    """The public functions and classes, by the room that has them."""
    names = defaultdict[str, list[str]](list)
    for name in llmtrain_helpers.__all__:
        thing = getattr(llmtrain_helpers, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            room = thing.__module__.removeprefix("llmtrain_helpers.").partition(".")[0]
            names[room].append(name)
    return names


def entry(name: str) -> Iterator[str]:
    """A name, how it is called, and its docstring."""
    thing = getattr(llmtrain_helpers, name)
    yield f"### {name}"
    yield f"```python\n{name}{signature(thing)}\n```"
    for paragraph in inspect.getdoc(thing).split("\n\n"):
        yield in_markdown(paragraph)


def signature(thing: Any) -> str:
    """The arguments, a line each where they are many."""
    if is_dataclass(thing):
        names = [one.name for one in fields(thing) if one.init]
        written = f"({', '.join(names)})"
    else:
        written = re.sub(r": '([^']*)'", r": \1", str(inspect.signature(thing)))
        written = re.sub(r" -> '([^']*)'", r" -> \1", written)
    if len(written) < 80:
        return written
    inside, _, returned = written[1:].rpartition(")")
    arguments = re.split(r", (?![^\[(]*[\])])", inside)
    return "(\n" + "".join(f"    {one},\n" for one in arguments) + ")" + returned


def in_markdown(paragraph: str) -> str:
    """A paragraph of a docstring: words, or lines to be kept as they are."""
    lines = paragraph.split("\n")
    if lines[0].startswith(">>>"):
        return f"```python\n{paragraph}\n```"
    if any(map(SPACED.search, lines)) or all(map(FORMULA.fullmatch, lines)):
        return f"```text\n{paragraph}\n```"
    outside = re.split(r"(`[^`]+`)", paragraph)
    return "".join(x if x.startswith("`") else MARKDOWN.sub(r"\\\1", x) for x in outside)
