"""The reference: each public name has an entry, and the pages' code leads to it.

make site-test
"""

from __future__ import annotations

import inspect

import reference
from bs4 import BeautifulSoup
from driver import SITE

import llmtrain_helpers


def test_each_public_function_and_class_has_an_entry_that_is_whole() -> None:
    page = BeautifulSoup((SITE / f"{reference.PAGE}.html").read_text("utf-8"), "html.parser")
    entries = {title.contents[0]: title.parent for title in page.select("section > h3")}
    for name in llmtrain_helpers.__all__:
        thing = getattr(llmtrain_helpers, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            text = entries[name].get_text()
            assert inspect.getdoc(thing).split()[-1].strip('`."') in text, name
            assert f"{name}(" in text, name


def test_names_in_code_lead_there() -> None:
    page = BeautifulSoup((SITE / "notebooks/parameters.html").read_text("utf-8"), "html.parser")
    [target] = {link["href"] for link in page.select("a.name") if link.text == "count_parameters"}
    there = BeautifulSoup((SITE / f"{reference.PAGE}.html").read_text("utf-8"), "html.parser")
    entry = there.find(id=target.partition("#")[2])
    assert entry.h3.contents[0] == "count_parameters"


def test_words_and_lines_are_told_apart() -> None:
    assert reference.in_markdown("full:     8TP\nnone:     6TP").startswith("```text")
    assert reference.in_markdown("t = 6TP/(nX)") == "```text\nt = 6TP/(nX)\n```"
    assert reference.in_markdown(">>> 1 + 1\n2").startswith("```python")
    assert reference.in_markdown("It *is* `x_y`, not x_y.") == "It \\*is\\* `x_y`, not x\\_y."


def test_the_table_on_top_leads_to_each_entry() -> None:
    page = BeautifulSoup((SITE / f"{reference.PAGE}.html").read_text("utf-8"), "html.parser")
    for names in reference.by_module().values():
        for name in names:
            [link] = [one for one in page.select("table a") if one.text == name]
            assert page.find(id=link["href"].removeprefix("#")).h3.contents[0] == name
