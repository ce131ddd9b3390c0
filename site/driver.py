"""The built site in a browser: what the tests of it share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Page

from llmtrain_course import cells as in_page
from llmtrain_course.kit import ids
from llmtrain_course.kit.state import State

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
AXE = ROOT / "site" / "node_modules" / "axe-core" / "axe.min.js"
CHAPTERS = [*ids.CHAPTERS]
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))

every_chapter = pytest.mark.parametrize("name", CHAPTERS)


class Live(NamedTuple):
    """A chapter's page, and the state that its panel should be in."""

    name: str
    page: Page
    state: State

    @property
    def slider(self) -> str:
        """The first slider that the panel shows."""
        shown = self.state.panel.shown(self.state.values)
        controls = self.state.panel.controls
        return next(n for n in shown if controls[n].stops and not controls[n].more)


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
    page.on("console", lambda told: told.type == "error" and wrong.append(told.text))
    page.wrong = wrong  # type: ignore[attr-defined]
    return page


def judge_here(page: Page) -> None:
    """Let this Python judge what the page asks, by the same functions, so that it's quick."""
    page.expose_function("judged", lambda name, *about: getattr(in_page, name)(*about))
    page.evaluate(
        """async () => {
            const { python } = await import("../_static/python.js");
            python.start = async () => {};
            python.call = async (...asked) => JSON.parse(await window.judged(...asked));
        }"""
    )


def start(page: Page, address: str, name: str, search: str = "") -> None:
    """Open a chapter, and start its panel."""
    page.goto(f"{address}/notebooks/{name}.html{search}")
    if not search:
        page.click("#panel .live-start")
    page.wait_for_selector("#panel.live-on .live-answer > *", timeout=60_000)


def same(page: Page, html: str) -> bool:
    """Whether the panel's answer is this HTML, as a browser reads it."""
    compare = """html => {
        const answer = document.createElement("div");
        answer.innerHTML = html;
        const here = document.querySelector("#panel .live-answer").cloneNode(true);
        for (const one of here.querySelectorAll("[tabindex]"))
            one.removeAttribute("tabindex");  // the theme's, where something scrolls
        return answer.innerHTML === here.innerHTML;
    }"""
    return bool(page.evaluate(compare, html))
