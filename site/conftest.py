"""What tests of the site are given: the built site on the loopback, a browser, a page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from driver import DESKTOP, watched
from playwright.sync_api import Browser, Page, expect, sync_playwright
from serve import make_server
from xdist.scheduler import LoadFileScheduling

from tools.browser import CHROMIUM

os.environ["LLMTRAIN_RUN"] = "example"  # whatever run a learner keeps here
expect.set_options(timeout=60_000)  # Python may have to be fetched first


class ByPage(LoadFileScheduling):
    """Keeps the tests of a file on one worker, and of the chapters those of a chapter."""

    def _split_scope(self, nodeid: str) -> str:
        chapter = re.search(r"test_chapters\.py::.*\[(\w+)", nodeid)
        return chapter[1] if chapter else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)  # with -p no:xdist there is none
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByPage:
    """Share out the tests between two browsers."""
    return ByPage(config, log)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The site, on the loopback."""
    server = make_server("127.0.0.1", 0)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="session")
def browser(address: str) -> Iterator[Browser]:
    """A headless Chromium that has drawn a page, so that no test measures its start.

    Each test's context still fetches everything anew.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        first = browser.new_page()
        first.goto(f"{address}/notebooks/glossary.html", wait_until="networkidle")
        first.close()
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page that may ask the loopback only; what fails is an error at the end."""
    context = browser.new_context(viewport=DESKTOP)
    page = watched(context.new_page(), address)
    yield page
    context.close()
    assert page.wrong == []
