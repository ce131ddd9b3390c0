"""The reference: each public name has an entry, and code, old links and other projects lead to it.

make site-test
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path

import reference
from bs4 import BeautifulSoup, Tag
from driver import SITE
from sphinx.cmd.build import build_main

import llmtrain_helpers

ADDRESSES = reference.addresses()
ELSEWHERE = "https://course.example/"


@cache
def read(page: str) -> BeautifulSoup:
    """A page as it was built."""
    return BeautifulSoup((SITE / page).read_text("utf-8"), "html.parser")


def entry(address: str) -> Tag:
    """What an address leads to."""
    page, _, anchor = address.partition("#")
    return read(page).find(id=anchor)


def test_each_public_function_and_class_has_an_entry_that_is_whole() -> None:
    for name in llmtrain_helpers.__all__:
        thing = getattr(llmtrain_helpers, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            signature = entry(ADDRESSES[name])
            assert signature.select_one(".descname").text == name
            text = re.sub(r"\W+", " ", signature.parent.get_text())
            if thing.__name__ == name:  # an older name only says what it's for
                assert re.findall(r"\w+", inspect.getdoc(thing))[-1] in text, name


def test_types_are_readable_formulas_are_blocks_and_examples_are_coloured() -> None:
    signature = entry(ADDRESSES["training_seconds"])
    assert "num_gpus: Count[float | Array]," in " ".join(signature.get_text().split())
    assert "8TP / (nX)" in signature.parent.select_one(".highlight-text pre").text
    assert signature.parent.select(".doctest .gp")
    method = entry("reference/model.html#llmtrain_helpers.Transformer.gpt").get_text()
    assert re.match(r"\s*classmethod gpt\(\s*num_layers: Number", method)
    pages = [page.read_text("utf-8") for page in SITE.glob("reference/*.html")]
    assert not any("Annotated" in page or ">self<" in page for page in pages)


def test_names_in_code_lead_there() -> None:
    page = read("notebooks/parameters.html")
    [target] = {link["href"] for link in page.select("a.name") if link.text == "count_parameters"}
    assert entry(target.removeprefix("../")).select_one(".descname").text == "count_parameters"


def test_names_in_docstrings_lead_to_their_entries() -> None:
    [link] = entry(ADDRESSES["count_flops"]).parent.select("a:has(> code)")[:1]
    assert link["href"] == "model.html#llmtrain_helpers.Transformer"


def test_words_and_lines_are_told_apart() -> None:
    assert reference.in_rst("full:     8TP\nnone:     6TP").startswith(".. code-block:: text")
    assert reference.in_rst("t = 6TP/(nX)") == ".. code-block:: text\n\n    t = 6TP/(nX)"
    assert reference.in_rst(">>> 1 + 1\n2") == ">>> 1 + 1\n2"
    assert reference.in_rst("It *is* `x_y`, not x_y.") == "It \\*is\\* `x_y`, not x\\_y."
    assert reference.in_rst("A `Timeline` of `Moment`s") == "A `Timeline` of `Moment`\\ s"


def test_the_table_leads_to_each_entry_and_old_addresses_lead_to_the_table() -> None:
    table = read(f"{reference.PAGE}.html").table
    links = {link.text: link["href"].removeprefix("../") for link in table.select("a:has(code)")}
    assert links == ADDRESSES
    for former in ("plan_run", "plan-run", "activationcount", "ActivationCount"):
        assert table.find(id=former).find_next("a").text in ("plan_run", "ActivationCount")


def test_another_sphinx_project_can_refer_to_a_name(tmp_path: Path) -> None:
    roles = [
        ":py:func:`llmtrain_helpers.plan_run`",
        ":py:class:`llmtrain_helpers.Transformer`",
        ":py:meth:`llmtrain_helpers.Transformer.gpt`",
    ]
    (tmp_path / "index.rst").write_text(f"Other\n=====\n\n{' '.join(roles)}\n", "utf-8")
    (tmp_path / "conf.py").write_text(
        'extensions = ["sphinx.ext.intersphinx"]\nhtml_theme = "basic"\n'
        f'intersphinx_mapping = {{"course": ("{ELSEWHERE}", "{SITE / "objects.inv"}")}}\n',
        "utf-8",
    )
    assert build_main(["-q", "-W", "-n", str(tmp_path), str(tmp_path / "html")]) == 0
    page = BeautifulSoup((tmp_path / "html" / "index.html").read_text("utf-8"), "html.parser")
    links = [str(link["href"]) for link in page.select("a.external:has(code)")]
    assert len(links) == len(roles)
    for link in links:
        assert entry(link.removeprefix(ELSEWHERE))["class"] == ["sig", "sig-object", "py"]
