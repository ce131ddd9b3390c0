"""What tests of the site are given: the built site on the loopback, a browser, a page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from driver import CHAPTERS, SITE, Live, start, watched
from playwright.sync_api import Browser, Page, expect, sync_playwright

from llmtrain_course.kit.state import State
from llmtrain_course.panels import PANELS

os.environ["LLMTRAIN_RUN"] = "example"  # whatever run a learner keeps here
expect.set_options(timeout=20_000)


class Quiet(SimpleHTTPRequestHandler):
    """A file server that says nothing."""

    def log_message(self, *told: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The site, on the loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    import pdf

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=pdf.CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page that may ask the loopback only; what fails is an error at the end."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield watched(context.new_page(), address)
    context.close()


@pytest.fixture(scope="module", params=CHAPTERS)
def live(request: Any, browser: Browser, address: str) -> Iterator[Live]:
    """A chapter with its panel started, once for all tests of it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = watched(context.new_page(), address)
    start(page, address, request.param)
    yield Live(request.param, page, State(PANELS[request.param]))
    context.close()
