"""The built site in a browser: what the tests of it share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from llmtrain_course import cells as in_page, exercises
from llmtrain_course.kit import ids, own_run

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
AXE = ROOT / "site" / "node_modules" / "axe-core" / "axe.min.js"
CHAPTERS = [*ids.CHAPTERS]
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))

DESKTOP = {"width": 1280, "height": 900}
TELEPHONE = {"width": 390, "height": 844}

MOVED = """window.moved = 0;
new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) moved += one.value;
}).observe({ type: "layout-shift", buffered: true });"""
"""Sums up how far a page shifts by itself."""


def watched(page: Page, address: str) -> Page:
    """Refuse every other host, and note what goes wrong, or against a page's policy."""
    wrong: list[str] = []

    def only_here(route: Any) -> None:
        here = route.request.url.startswith((address, "data:", "blob:"))
        if not here:
            wrong.append(f"asked {route.request.url}")
        (route.continue_ if here else route.abort)()

    page.route("**/*", only_here)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("response", lambda r: r.status >= 400 and wrong.append(r.url))
    page.on("console", lambda line: line.type == "error" and wrong.append(line.text))
    page.wrong = wrong
    return page


ANSWERS = (exercises._TRIES, exercises._HINTS, exercises._TURNS, exercises._GUESSES)
"""What a kernel remembers of the exercises."""


def judge_here(page: Page) -> None:
    """Let this Python judge what the page asks, by the same functions, so that it's quick.

    Like the page's own Python it starts with what the browser keeps, and nothing else.
    """
    for answers in (*ANSWERS, own_run.SET):
        answers.clear()
    in_page.restore(page.evaluate("localStorage.llmtrain ?? '{}'"))
    page.expose_function("judged", lambda name, *about: getattr(in_page, name)(*about))
    page.evaluate(
        """async () => {
            const { python } = await import("../_static/python.js");
            python.start = async () => {};
            python.call = async (...asked) => JSON.parse(await window.judged(...asked));
        }"""
    )


def start(page: Page) -> None:
    """Start the panel of a chapter."""
    page.click("#panel .live-start")
    wait_for_panel(page)


def wait_for_panel(page: Page) -> None:
    """Wait until the panel of a chapter answers."""
    page.wait_for_selector("#panel.live-on .live-answer > *", timeout=60_000)


def painted(page: Page) -> None:
    """Wait until two frames are painted, with what a resize or a scroll has changed."""
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def middle(place: Locator) -> tuple[float, float]:
    """Find the middle of something in the window."""
    box = place.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def same(page: Page, html: str, place: str = "#panel") -> bool:
    """Tell whether the answer of a panel or handle is this HTML, as a browser reads it."""
    compare = """([html, place]) => {
        const answer = document.createElement("div");
        answer.innerHTML = html;
        const here = document.querySelector(`${place} .live-answer`).cloneNode(true);
        for (const one of here.querySelectorAll("[tabindex]"))
            one.removeAttribute("tabindex");  // the theme's, where something scrolls
        return answer.innerHTML === here.innerHTML;
    }"""
    return bool(page.evaluate(compare, [html, place]))
