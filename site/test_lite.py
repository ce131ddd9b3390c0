"""JupyterLite in a browser that reaches this machine only, and is heard asking others.

make lite-test
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from html import unescape
from http.server import (
    BaseHTTPRequestHandler,
    SimpleHTTPRequestHandler,
    ThreadingHTTPServer as Server,
)
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from llmtrain_course.kit.state import State
from llmtrain_course.panels import PANELS
from llmtrain_helpers import published, training_seconds, units
from tools.browser import CHROMIUM

SITE = Path(__file__).parents[1] / "build" / "site"
WHEELS = SITE / "lab" / "wheels"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
CHROMIUMS_OWN = ["accounts.google.com", "update.googleapis.com"]
CHROMIUMS_OWN += ["content-autofill.googleapis.com"]
"""Hosts that the browser asks for itself, with an empty page too."""

pytestmark = pytest.mark.skipif(not WHEELS.exists(), reason="`make lite` builds the lab")


class Quiet(SimpleHTTPRequestHandler):
    """A file server that says nothing."""

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


class Refusing(BaseHTTPRequestHandler):
    """A proxy that lets nothing through; we asked for what of it stands in its log."""

    asked: list[str]

    def refuse(self) -> None:
        """Note the host, and say no."""
        host = self.path.removeprefix("http://").partition("/")[0].partition(":")[0]
        if host not in CHROMIUMS_OWN:
            self.asked.append(host)
        self.send_error(403)

    do_GET = do_POST = do_HEAD = do_OPTIONS = do_CONNECT = refuse  # noqa: N815

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


def served(handler: Any) -> Server:
    """A server of its own thread, on the loopback."""
    server = Server(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def asked() -> list[str]:
    """What the browser asked of other hosts."""
    return []


@pytest.fixture(scope="module")
def page(asked: list[str]) -> Iterator[Page]:
    """Chapter 03 in the lab, its kernel started."""
    site = served(partial(Quiet, directory=SITE.parent))  # not at the root: as on Pages
    proxy = served(type("Proxy", (Refusing,), {"asked": asked}))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=FLAGS,
            proxy={"server": f"http://127.0.0.1:{proxy.server_port}"} | {"bypass": "127.0.0.1"},
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"http://127.0.0.1:{site.server_port}/{SITE.name}/lab/")
        page.wait_for_url("**/lab/lab/index.html")
        page.goto(f"{page.url}?path=notebooks/03_duration.ipynb")
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=120_000)
        yield page
        browser.close()
    for server in (site, proxy):
        server.shutdown()


WATCH = """prompt => {
    prompt.done = false;
    const watch = () => { prompt.done = /\\d/.test(prompt.textContent); };
    new MutationObserver(watch).observe(prompt, {childList: true, characterData: true});
}"""
"""Notices a cell's next number, which may be the one that it was saved with."""


def run(page: Page, source: str = "") -> str:
    """Run the first cell, or this code in its place, and return what it shows.

    Only the first: the lab leaves cells that are far from it out of the page.
    """
    cell = page.locator(".jp-CodeCell").first
    cell.locator(".cm-content").click()
    if source:
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(source)
    prompt = cell.locator(".jp-InputPrompt").element_handle()
    prompt.evaluate(WATCH)
    page.keyboard.press("Control+Enter")
    page.wait_for_function("prompt => prompt.done", arg=prompt, timeout=120_000)
    return cell.locator(".jp-OutputArea").first.inner_text()


def test_formulas_and_a_panel_run_with_no_other_host(page: Page, asked: list[str]) -> None:
    assert "Error" not in run(page)  # the notebook's own imports
    own = (2e12, 7e9, 64, 2e14, "none")
    source = "from llmtrain_helpers import training_seconds, units\n"
    source += f"print(units.duration(training_seconds{own}))"
    assert units.duration(training_seconds(*own)) in run(page, source)
    run(page, "duration_panel()")
    page.locator(".live-panel input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    state = State(PANELS["duration"])
    stops = state.panel.controls["tokens"].stops
    at = state.panel.controls["tokens"].nearest_stop(state.values["tokens"])
    state.write("tokens", stops[at + 1])
    answer = unescape(re.sub("<[^>]+>", "", state.html.partition("</p>")[0])).strip()
    page.get_by_text(answer).wait_for()
    page.screenshot(path=SITE.with_name("lite.png"))
    assert asked == []


def test_all_packages_of_the_project_are_there(page: Page) -> None:
    source = "import llmtrain_course.panels, research.splits\n"
    source += "from llmtrain_helpers import published\nprint(*published.names('architectures'))"
    assert run(page, source).split() == " ".join(published.names("architectures")).split()


def test_a_cell_without_numpy_says_so(page: Page) -> None:
    if "numpy" in json.loads((WHEELS / "pyodide-lock.json").read_text("utf-8"))["packages"]:
        pytest.skip("this lab has an address for NumPy")
    source = "from llmtrain_helpers import published\npublished.training_runs()"
    assert "No module named 'pandas'" in run(page, source)


def test_another_host_would_have_been_noticed(page: Page, asked: list[str]) -> None:
    run(page, "from pyodide.http import pyfetch\nawait pyfetch('http://example.invalid')")
    assert asked == ["example.invalid"]
    asked.clear()


def test_the_lock_is_whole() -> None:
    packages = json.loads((WHEELS / "pyodide-lock.json").read_text("utf-8"))["packages"]
    beside = [p for p in packages.values() if "://" not in p["file_name"]]
    needed = {name.replace("_", "-") for p in beside for name in p["depends"]}
    assert needed <= {*packages}
    for package in beside:
        wheel = (WHEELS / package["file_name"]).read_bytes()
        assert package["sha256"] == sha256(wheel).hexdigest()
    names = {package["file_name"] for package in beside}
    assert names == {wheel.name for wheel in WHEELS.glob("*.whl")}
