"""The pages as they come: links, policy, what is fetched and when, paper, search, offline."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import cells
import pytest
from bs4 import BeautifulSoup
from driver import CHAPTERS, PAGES, ROOT, SITE, every_chapter, watched
from playwright.sync_api import Browser, Page, expect

from llmtrain_course.kit.drawing import at_night

MOST_FETCHED = 350_000
"""Bytes that a chapter's first load may fetch."""


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("light", 800), ("light", 390), ("dark", 1280)]
)
def test_every_page_opens_and_nothing_is_wider_than_the_window(
    browser: Browser, address: str, scheme: Any, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = watched(context.new_page(), address)
    for name in [name for name in PAGES if name != "index.html"]:
        page.goto(f"{address}/{name}")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, name
        if name.startswith("notebooks"):
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.wrong == []  # type: ignore[attr-defined]
    context.close()


def test_the_front_page_leads_to_chapter_00(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="Start reading").click()
    page.wait_for_url("**/notebooks/start_here.html")
    assert "what will it take?" in page.inner_text("article h1")


@every_chapter
def test_links_to_the_glossary_lead_to_its_entries_and_say_them(name: str) -> None:
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))["cells"]
    shown = [cell for cell in cells if "notebook-only" not in cell["metadata"].get("tags", [])]
    text = "\n".join("".join(it["source"]) for it in shown if it["cell_type"] == "markdown")
    wanted = re.findall(r'glossary\.ipynb#\S+ "([^"]+)"', text)
    links = read(name).select('article a[href*="glossary.html#"]')
    assert sorted(link["title"] for link in links) == sorted(wanted)  # the goals go to the top
    assert wanted
    headings = {section["id"] for section in read("glossary").select("section[id]")}
    assert {str(link["href"]).partition("#")[2] for link in links} <= headings


def read(name: str) -> BeautifulSoup:
    """A page as it was built."""
    return BeautifulSoup((SITE / "notebooks" / f"{name}.html").read_text("utf-8"), "html.parser")


@pytest.mark.parametrize("name", PAGES)
def test_a_pages_policy_stands_before_all_that_it_governs(name: str) -> None:
    before, policy, after = (SITE / name).read_text("utf-8").partition("Content-Security-Policy")
    assert policy
    assert not re.search("<(script|style|link|img)", before)
    [rules] = re.findall(r'script-src ([^;"]+)', after)
    assert "unsafe" not in rules


def test_what_is_true_of_notebooks_only_is_left_out() -> None:
    """And stands in a notebook: a sentence that changed there would come back here."""
    told = [path.read_text("utf-8") for path in cells.CHAPTERS.values()]
    pages = [(SITE / "notebooks" / f"{name}.html").read_text("utf-8") for name in CHAPTERS]
    for sentence in cells.OF_NOTEBOOKS:
        assert sum(sentence in one for one in told) == 1
    assert not any("Shift+Enter</strong>" in page for page in pages)
    assert not any("in place of <code" in page for page in pages)


@pytest.mark.parametrize("name", PAGES)
def test_formulas_and_icons_are_set_when_the_site_is_built(name: str) -> None:
    soup = BeautifulSoup((SITE / name).read_text("utf-8"), "html.parser")
    assert not soup.select("script[src*=mathjax], script[src*=fontawesome], .fa-solid")
    glyphs = {path["id"] for path in soup.select("svg.glyphs path")}
    for formula in soup.select(".math"):
        assert [tag.name for tag in formula.find_all(recursive=False)] == ["svg", "math"]
        used = {str(one["xlink:href"])[1:] for one in formula.select("use")}
        assert used
        assert used <= glyphs


@every_chapter
def test_a_drawing_is_as_dark_as_the_page(page: Page, address: str, name: str) -> None:
    """Every colour of every drawing is the day's by day and the night's by night."""
    painted = """theme => {
        document.documentElement.dataset.theme = theme;
        const parts = [...document.querySelectorAll("article svg.wt [fill^='#']")];
        return parts.map(one => [one.getAttribute("fill"), getComputedStyle(one).fill]);
    }"""
    page.goto(f"{address}/notebooks/{name}.html")
    for theme, of in {"dark": at_night, "light": str}.items():
        found = {(color, seen) for color, seen in page.evaluate(painted, theme)}
        assert found
        assert {(color, rgb(of(color))) for color, _ in found} == found


def rgb(color: str) -> str:
    """A colour as a browser says it."""
    return "rgb({}, {}, {})".format(*(int(color[i : i + 2], 16) for i in (1, 3, 5)))


@every_chapter
def test_nothing_is_fetched_for_python_before_a_click(page: Page, address: str, name: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/notebooks/{name}.html", wait_until="networkidle")
    assert not [url for url in asked if "pyodide" in url or "course.zip" in url]
    assert page.locator("#panel .live-start").count() == 1


@pytest.mark.parametrize("name", [name for name in PAGES if "/" in name])
def test_a_page_asks_at_once_for_all_that_its_script_is_made_of(name: str) -> None:
    soup = BeautifulSoup((SITE / name).read_text("utf-8"), "html.parser")
    asked = {Path(link["href"]).stem for link in soup.select("link[rel=modulepreload]")}
    imported, found = {"live"}, set[str]()
    while imported - found:
        part = (imported - found).pop()
        found.add(part)
        text = (SITE / "_static" / f"{part}.js").read_text("utf-8")
        imported |= {*re.findall(r'^import .* from "\./(\w+)\.js";$', text, re.M)}
    assert asked == found - {"live"}


@every_chapter
def test_a_first_load_is_light_and_nothing_moves(page: Page, address: str, name: str) -> None:
    """All that a chapter asks for, and how far the page has shifted meanwhile."""
    fetched: list[Any] = []
    page.on("response", lambda response: fetched.append(response))
    page.goto(f"{address}/notebooks/{name}.html", wait_until="networkidle")
    page.wait_for_timeout(1500)
    assert sum(map(zipped, fetched)) < MOST_FETCHED
    shift = """() => new Promise(done => {
        let sum = 0;
        new PerformanceObserver(list => {
            for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
        }).observe({ type: "layout-shift", buffered: true });
        setTimeout(() => done(sum), 100);
    })"""
    assert page.evaluate(shift) < 0.01


def zipped(response: Any) -> int:
    """Bytes of an answer, as a host sends it: text is compressed."""
    body = response.body()
    return len(body if response.url.endswith((".woff2", ".png")) else gzip.compress(body))


def test_a_visited_page_is_there_without_a_network(browser: Browser, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    url = f"{address}/notebooks/start_here.html"
    page.goto(url, wait_until="networkidle")
    page.evaluate("navigator.serviceWorker.ready.then(() => 0)")
    page.locator("#panel .live-start").click()
    page.locator("#panel.live-on").wait_for(timeout=60_000)
    page.wait_for_timeout(1500)  # what came is being kept
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
    page.wait_for_function("() => navigator.serviceWorker.controller", timeout=60_000)
    stores = page.evaluate("caches.keys()")
    assert {*others} < {*stores}
    assert old not in stores
    assert len(stores) == len(others) + 1


def test_what_is_kept_from_the_first_visit_is_about_a_megabyte() -> None:
    script = (SITE / "offline.js").read_text("utf-8")
    files = json.loads(re.search(r"FILES = (\[.*?\]);", script)[1])
    assert {f"notebooks/{name}.html" for name in CHAPTERS} < {*files}
    assert sum(len(gzip.compress((SITE / x).read_bytes())) for x in files[1:]) < 1_100_000


def test_a_bar_moves_while_python_comes(page: Page, address: str) -> None:
    """It says how much of the whole is there, and the whole is what comes."""
    page.goto(f"{address}/notebooks/start_here.html")
    page.evaluate("""() => {
        window.parts = [];
        document.addEventListener("python", event => window.parts.push(event.detail.part));
    }""")
    page.locator("#panel .live-start").click()
    page.locator("#panel.live-on").wait_for(timeout=60_000)
    parts = page.evaluate("window.parts")
    assert parts == sorted(parts)
    assert parts[0] < 0.1
    assert 0.97 < parts[-1] <= 1
    assert len({*parts}) > 20


def test_a_search_finds_first_what_is_called_so(page: Page, address: str) -> None:
    page.goto(f"{address}/search.html?q=all-reduce")
    first = page.locator("ul.search > li").first
    expect(first.locator("a")).to_have_text(re.compile("› all-reduce$"))
    expect(first.locator(".live-found mark")).to_have_count(0)  # its name says it
    second = page.locator("ul.search > li").nth(1)
    expect(second.locator("a")).to_have_attribute("href", re.compile("communication.html"))
    expect(second.locator("mark")).to_have_text(re.compile("^all-reduce$", re.I))
    assert page.locator(".live-found", has_text="import ").count() == 0


def test_the_sheet_is_two_pages_and_the_course_has_all_chapters() -> None:
    def pages(name: str) -> int:
        return len(re.findall(rb"/Type\s*/Page\b(?!s)", (SITE / name).read_bytes()))

    assert pages("sheet.pdf") == 2
    assert pages("course.pdf") > 100


@every_chapter
def test_paper_has_the_light_drawings_alone(name: str) -> None:
    import book

    article = book.article(SITE / "notebooks" / f"{name}.html")
    assert not article.select(".sign")  # the picture of its card
    drawings = article.select(".wt")
    assert drawings
    for drawing in drawings:
        assert drawing.name == "svg"
        assert not drawing.select("style")
