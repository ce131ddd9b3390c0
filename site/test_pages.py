"""The pages as they come: links, policy, what is fetched and when, paper, offline."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import cells
import fonts
import metadata
import pytest
from bs4 import BeautifulSoup
from driver import CHAPTERS, PAGES, ROOT, SITE, watched
from playwright.sync_api import Browser, Page, expect

from llmtrain_course.kit.ids import page_of


@pytest.mark.parametrize("name", [name for name in PAGES if name != "index.html"])
def test_a_page_opens_follows_the_systems_theme_and_is_no_wider_than_the_window(
    pages: Page, address: str, name: str
) -> None:
    theme = "document.documentElement.dataset.theme"
    pages.wrong.clear()
    pages.emulate_media(color_scheme="dark")
    pages.goto(f"{address}/{name}")
    if name.startswith("notebooks"):
        assert pages.evaluate(theme) == "dark"
        pages.emulate_media(color_scheme="light")
        expect(pages.locator("html")).to_have_attribute("data-theme", "light")
    for width in (1280, 800, 390):
        pages.set_viewport_size({"width": width, "height": 900})
        assert pages.evaluate("document.documentElement.scrollWidth") <= width
    assert pages.wrong == []


@pytest.fixture(scope="module")
def pages(browser: Browser, address: str) -> Iterator[Page]:
    """A window in which one page is opened after the other."""
    context = browser.new_context()
    yield watched(context.new_page(), address)
    context.close()


@pytest.mark.parametrize("name", CHAPTERS)
def test_links_to_the_glossary_lead_to_its_entries_and_say_them(name: str) -> None:
    cells = json.loads((ROOT / "notebooks" / f"{page_of(name)}.ipynb").read_text("utf-8"))["cells"]
    visible = [cell for cell in cells if "notebook-only" not in cell["metadata"].get("tags", [])]
    text = "\n".join("".join(it["source"]) for it in visible if it["cell_type"] == "markdown")
    wanted = re.findall(r'glossary\.ipynb#\S+ "([^"]+)"', text)
    links = read(name).select('article a[href*="glossary.html#"]')
    assert sorted(link["title"] for link in links) == sorted(wanted)  # the goals go to the top
    assert wanted
    headings = {section["id"] for section in read("glossary").select("section[id]")}
    assert {str(link["href"]).partition("#")[2] for link in links} <= headings


@cache
def read(name: str) -> BeautifulSoup:
    """A chapter as it was built."""
    return BeautifulSoup((SITE / "notebooks" / f"{name}.html").read_text("utf-8"), "html.parser")


def test_what_is_true_of_notebooks_only_is_left_out() -> None:
    """And stands in a notebook: a sentence that changed there would come back here."""
    notebooks = [path.read_text("utf-8") for path in cells.CHAPTERS.values()]
    pages = [(SITE / "notebooks" / f"{name}.html").read_text("utf-8") for name in CHAPTERS]
    for sentence in cells.OF_NOTEBOOKS:
        assert sum(json.dumps(sentence, ensure_ascii=False)[1:-1] in one for one in notebooks) in (
            1,
            len(notebooks),  # in each import cell
        )
    assert not any("Shift+Enter</strong>" in page for page in pages)
    assert not any("Replace <code" in page for page in pages)


class Built(NamedTuple):
    """A page as it was built."""

    name: str
    text: str
    soup: BeautifulSoup


@pytest.fixture(scope="module", params=PAGES)
def built(request: Any) -> Built:
    """Each page of the site."""
    text = (SITE / request.param).read_text("utf-8")
    return Built(request.param, text, BeautifulSoup(text, "html.parser"))


def test_a_pages_policy_stands_before_all_that_it_governs(built: Built) -> None:
    before, policy, after = built.text.partition("Content-Security-Policy")
    assert policy
    assert not re.search("<(script|style|link|img)", before)
    [rules] = re.findall(r'script-src ([^;"]+)', after)
    assert "unsafe" not in rules


def test_a_page_says_what_it_is_about_and_leaves_out_what_has_no_address(built: Built) -> None:
    if built.name in ("404.html", "search.html"):
        return
    [words] = [one["content"] for one in built.soup.select('meta[name="description"]')]
    assert 40 <= len(words) <= metadata.LONGEST
    assert len(built.soup.select('meta[property="og:title"]')) == 1
    assert not built.soup.select('link[rel="canonical"], meta[property="og:image"]')


def test_formulas_and_icons_are_set_when_the_site_is_built(built: Built) -> None:
    assert not built.soup.select("script[src*=mathjax], script[src*=fontawesome], .fa-solid")
    glyphs = {path["id"] for path in built.soup.select("svg.glyphs path")}
    for formula in built.soup.select(".math"):
        assert [tag.name for tag in formula.find_all(recursive=False)] == ["svg", "math"]
        used = {str(one["xlink:href"])[1:] for one in formula.select("use")}
        assert used
        assert used <= glyphs


def test_a_page_asks_at_once_for_all_that_its_script_is_made_of(built: Built) -> None:
    if "/" not in built.name:
        return
    asked = {Path(link["href"]).stem for link in built.soup.select("link[rel=modulepreload]")}
    alone = built.name.startswith("figures/")
    assert asked == (imported("handle") if alone else imported("live") - {"live"})


def test_a_page_asks_for_its_typefaces_before_anything_else(built: Built) -> None:
    first = next(
        one for one in built.soup.select("link, script") if one.get("href", one.get("src"))
    )
    assert first["src"].endswith(f"_static/{fonts.SCRIPT}")


@cache
def imported(name: str) -> frozenset[str]:
    """A script and all that it imports."""
    text = (SITE / "_static" / f"{name}.js").read_text("utf-8")
    parts = re.findall(r'^import .* from "\./(\w+)\.js";$', text, re.M)
    return frozenset({name}).union(*map(imported, parts))


KEPT = """async names => {
    const stored = async name => (await (await caches.open(name)).keys()).map(one => one.url);
    const all = async () => (await Promise.all((await caches.keys()).map(stored))).flat();
    const missing = urls => names.some(name => !urls.some(url => url.endsWith(name)));
    while (missing(await all())) await new Promise(done => setTimeout(done, 100));
}"""
"""Wait until all of these are kept for a visit without a network."""


def test_a_visited_page_is_there_without_a_network(browser: Browser, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    url = f"{address}/notebooks/start_here.html"
    page.goto(url, wait_until="networkidle")
    page.evaluate("navigator.serviceWorker.ready.then(() => 0)")
    page.locator("#panel .live-start").click()
    page.locator("#panel.live-on").wait_for(timeout=60_000)
    page.evaluate(KEPT, [".wasm", "python_stdlib.zip", "pyodide-lock.json", "course.zip"])
    context.set_offline(True)
    page.goto(url)
    last = page.locator(".live-handle").last  # which nobody had looked at
    value = last.locator("input[type=text]").first
    before = value.input_value()
    last.locator("input[type=range]").first.press("ArrowRight")
    expect(value).not_to_have_value(before)
    page.locator("#panel .live-start").click()
    page.locator("#panel.live-on").wait_for(timeout=60_000)
    page.goto(f"{address}/notebooks/duration.html?present")  # never visited
    expect(page.locator(".scene-bar")).to_be_visible()
    page.goto(f"{address}/")
    expect(page.locator("h1")).to_contain_text("Eight GPUs")
    page.goto(f"{address}/notebooks/evidence/duration.html")
    expect(page.locator("body")).to_contain_text("This page isn't on your device yet")
    page.get_by_role("link", name="The chapters are here.").click()
    expect(page.locator("h1")).to_contain_text("Eight GPUs")
    context.close()


def test_the_stores_of_others_at_the_same_origin_stay(page: Page, address: str) -> None:
    url = f"{address}/notebooks/start_here.html"
    page.goto(f"{address}/robots.txt")
    others = ["another course", f"llmtrain {address}/elsewhere/ 0123"]
    old = f"llmtrain {address}/ an earlier edition"
    page.evaluate("names => Promise.all(names.map(name => caches.open(name)))", [*others, old])
    page.goto(url)
    page.evaluate(
        """() => new Promise(done => {
            navigator.serviceWorker.addEventListener("controllerchange", done);
            if (navigator.serviceWorker.controller) done();
        }).then(() => 0)"""
    )
    stores = page.evaluate("caches.keys()")
    assert {*others} < {*stores}
    assert old not in stores
    assert len(stores) == len(others) + 1


def test_what_is_kept_from_the_first_visit_is_about_a_megabyte() -> None:
    script = (SITE / "offline.js").read_text("utf-8")
    files = json.loads(re.search(r"FILES = (\[.*?\]);", script)[1])
    assert {f"notebooks/{name}.html" for name in CHAPTERS} < {*files}
    assert sum(len(gzip.compress((SITE / x).read_bytes())) for x in files[1:]) < 1_100_000


def test_the_sheet_is_two_pages_and_the_course_has_all_chapters() -> None:
    def pages(name: str) -> int:
        return len(re.findall(rb"/Type\s*/Page\b(?!s)", (SITE / name).read_bytes()))

    assert pages("sheet.pdf") == 2
    assert pages("course.pdf") > 100
