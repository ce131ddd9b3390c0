"""A real JupyterLab and a headless Chromium, isolated from the user's settings."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
from playwright.sync_api import Browser, Locator, Page, TimeoutError as Late, sync_playwright

from tests.paths import NOTEBOOKS, ROOT
from tools import lab as make_lab
from tools.browser import CHROMIUM

AXE = ROOT / "site" / "node_modules" / "axe-core" / "axe.min.js"
"""What finds what a screen reader can't use; `make site` installs it."""

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def jupyterlab(folder: Path, theme: str = "JupyterLab Light") -> Iterator[str]:
    """Serve a copy of notebooks and data from `folder`; yields the server's address."""
    for name in ("notebooks", "data"):
        shutil.copytree(ROOT / name, folder / name)
    with served(folder, folder, theme) as address:
        yield address


@contextmanager
def served(root: Path, folder: Path, theme: str = "JupyterLab Light") -> Iterator[str]:
    """Serve `root` as `make lab` does, with Jupyter's own folders inside `folder`."""
    port = free_port()
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    options += ["--ServerApp.port_retries=0", "--IdentityProvider.token="]
    command = make_lab.command(options, root)
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment(folder, theme), stdout=log, stderr=log)
        try:
            wait_for(f"http://127.0.0.1:{port}/api")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(60)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium, the system's own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def environment(folder: Path, theme: str) -> dict[str, str]:
    """Jupyter's folders inside `folder`, and the theme that was asked for."""
    wishes = {
        "apputils-extension/themes": {"theme": theme},
        "notebook-extension/tracker": {"windowingMode": "none"},  # render every cell
    }
    for name, wish in wishes.items():
        path = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(wish), "utf-8")
    names = ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"]
    names += ["IPYTHONDIR", "JUPYTERLAB_WORKSPACES_DIR"]
    own = {name: str(folder / name.lower()) for name in names}
    own["JUPYTERLAB_SETTINGS_DIR"] = str(folder / "settings")
    return {**os.environ, **own}


def free_port() -> int:
    """A port of the loopback address that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(address: str, seconds: float = 60) -> None:
    """Until the server answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            urlopen(address, timeout=5).close()
            return
        except (URLError, ConnectionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


def trust(folder: Path, theme: str, path: Path) -> None:
    """Trust a notebook, so that this folder's Lab shows its outputs as they are."""
    command = [sys.executable, "-m", "jupyter", "trust", str(path)]
    subprocess.run(command, env=environment(folder, theme), check=True, capture_output=True)


def strip(path: Path) -> None:
    """Remove a notebook's outputs: committed ones would look like a finished run."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)


def open_notebook(page: Page, address: str, path: str) -> None:
    """Open a notebook alone (no side bar) and wait until its kernel is ready."""
    page.goto(f"{address}/doc/tree/notebooks/{path}", timeout=60_000)
    wait_until_idle(page)


def wait_until_idle(page: Page) -> None:
    """Until the notebook is there and its kernel is ready."""
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=60_000)
    page.wait_for_function(
        """() => {
            const name = document.querySelector('.jp-KernelName .jp-ToolbarButtonComponent-label, .jp-Toolbar-kernelName');
            const state = document.querySelector('.jp-Notebook-ExecutionIndicator');
            return name && !name.textContent.includes('No Kernel')
                && state && state.getAttribute('data-status') === 'idle';
        }""",  # noqa: E501
        timeout=60_000,
    )


def tall(page: Page) -> None:
    """Make the window as tall as the notebook in it, so that a picture shows it all."""
    size = page.viewport_size
    assert size
    high = page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollHeight")
    page.set_viewport_size({"width": size["width"], "height": high + 120})
    page.wait_for_timeout(1000)


def axe(page: Page, *places: str) -> tuple[list[tuple[str, ...]], int]:
    """Return what axe-core finds in these places, and on how many texts it measured a contrast.

    All folds are opened. axe counts as hidden what JupyterLab's body clips, which has no
    height, and what's below the window.
    """
    page.evaluate(
        """places => {
            document.body.style.height = "100vh";
            for (const place of document.querySelectorAll(places.join()))
                for (const fold of place.querySelectorAll("details")) fold.open = true;
        }""",
        places,
    )
    tall(page)
    page.evaluate(AXE.read_text("utf-8"))
    violations, measured = page.evaluate(
        """async places => {
            const include = places.filter(one => document.querySelector(one)).map(one => [one]);
            const { violations, passes } = await axe.run({ include });
            const contrast = passes.find(rule => rule.id === "color-contrast")?.nodes ?? [];
            return [
                violations.flatMap(rule => rule.nodes.map(
                    node => [rule.id, rule.help, node.html.slice(0, 120)])),
                contrast.filter(node => node.any[0].data.contrastRatio).length,
            ];
        }""",
        places,
    )
    return [tuple(row) for row in violations], measured


def choose_theme(page: Page, theme: str) -> None:
    """Choose a theme in JupyterLab's menu."""
    page.locator(".lm-MenuBar-itemLabel", has_text="Settings").click()
    page.locator(".lm-Menu-itemLabel:text-is('Theme')").hover()
    page.locator(f".lm-Menu-itemLabel:text-is('{theme}')").click()
    page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)


def run_all(page: Page, last: str) -> None:
    """Run all cells, and wait for the text that only the last one prints."""
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
    page.locator(".lm-Menu-itemLabel:text-is('Run All Cells')").click()
    page.wait_for_function(
        """last => [...document.querySelectorAll('.jp-OutputArea-output')]
            .some(output => output.textContent.includes(last))""",
        arg=last,
        timeout=120_000,
    )


def run_panel(page: Page) -> None:
    """Run all cells, and wait until the panel shows its picture."""
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
    page.locator(".lm-Menu-itemLabel:text-is('Run All Cells')").click()
    try:
        page.wait_for_selector(".live-panel .live-answer p", timeout=120_000)
    except Late as late:  # say what's there instead
        cells = page.locator(".jp-CodeCell").all_inner_texts()
        raise AssertionError(f"no panel appeared, but these cells: {cells}") from late
    page.wait_for_function(
        """() => document.querySelector('.jp-Notebook-ExecutionIndicator')
            .getAttribute('data-status') === 'idle'""",
        timeout=120_000,
    )


__all__ = ["CHROMIUM", "NOTEBOOKS", "Browser", "Locator", "Page"]
