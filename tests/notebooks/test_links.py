"""Links as JupyterLab follows them, on a server that is started as `make lab` starts it."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote
from urllib.request import urlopen

import jupyterlab
import mistune
import nbformat
import pytest
from nbformat.sign import NotebookNotary

from tests.browser.lab import environment, served
from tests.paths import ROOT
from tools import lab
from tools.notebooks import all_notebooks

TEXTS = ["README.md", "TEACHING.md", "CONTRIBUTING.md", "data/README.md"]
TEXTS += ["teaching/HUB.md", "teaching/mistakes.md", "teaching/polls.md"]
PAGES = [*TEXTS, *(path.relative_to(ROOT).as_posix() for path in all_notebooks())]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(ROOT, tmp_path_factory.mktemp("lab")) as address:
        yield address


@cache
def markdown(page: str) -> str:
    """A page's Markdown, and the HTML that its cells show."""
    text = (ROOT / page).read_text("utf-8")
    if page.endswith(".ipynb"):
        cells = nbformat.reads(text, as_version=4).cells
        bundles = [o.get("data", {}) for c in cells for o in c.get("outputs", [])]
        texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
        text = "\n\n".join([*texts, *(data.get("text/html", "") for data in bundles)])
    return text


def links(page: str) -> set[str]:
    """What a page links to, or shows, inside the project."""
    text = re.sub(r"`[^`\n]*`", "", markdown(page))  # code shows how a link is written
    targets = re.findall(r"\]\(([^)\s]+)", text)
    targets += re.findall(r'(?:href|src)="([^"]+)"', markdown(page))
    return {link for link in targets if not re.match(r"https?:|data:", link)}


@cache
def anchors(page: str) -> set[str]:
    """The headings of a page, as JupyterLab names them: their text, blanks as hyphens."""
    headings = re.findall(r"<h\d[^>]*>(.*?)</h\d>", mistune.html(markdown(page)), re.DOTALL)
    texts = (unescape(re.sub(r"<[^>]*>", "", heading)) for heading in headings)
    return {text.replace(" ", "-") for text in texts}


def problem(address: str, page: str, link: str) -> str:
    """What is wrong with a link; nothing where JupyterLab can open it."""
    target, _, anchor = link.partition("#")
    path = normpath(join(dirname(page), unquote(target))) if target else page
    try:
        contents(address, path)
    except HTTPError as error:
        return f"{link}: {error.code}"
    lost = anchor and path.endswith((".ipynb", ".md")) and unquote(anchor) not in anchors(path)
    return f"{link}: no such heading" if lost else ""


@cache
def contents(address: str, path: str) -> str:
    """What kind of thing the server has there; an HTTPError where it has none."""
    with urlopen(f"{address}/api/contents/{quote(path)}?content=0") as answer:
        return str(json.load(answer)["type"])


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(address: str, page: str) -> None:
    assert {message for link in links(page) if (message := problem(address, page, link))} == set()


def test_links_are_found_and_lost_ones_named(address: str) -> None:
    assert sum("data/README.md" in link for page in PAGES for link in links(page)) >= 14
    page = "notebooks/12_measure.ipynb"
    assert "../llmtrain_course/measure/model.py" in links(page)
    assert not problem(address, page, "glossary.ipynb#hidden-size")
    assert problem(address, page, "glossary.ipynb#hidden") == ""
    assert problem(address, page, "glossary.ipynb#Hidden-size").endswith("no such heading")
    assert problem(address, page, "../data/nothing.md") == "../data/nothing.md: 404"
    assert problem(address, page, "../../outside.md").endswith("404")


def test_the_server_opens_the_first_page_in_a_workspace_of_the_courses(address: str) -> None:
    with urlopen(address) as answer:
        assert answer.url == address + lab.FIRST
    assert contents(address, lab.FIRST.partition("/tree/")[2]) == "notebook"


@pytest.mark.parametrize(
    ("plugin", "name", "default"),
    [
        ("apputils-extension:notification", "fetchNews", "false"),
        ("apputils-extension:notification", "checkForUpdates", False),
        ("docmanager-extension:plugin", "defaultViewers", {"markdown": "Markdown Preview"}),
    ],
)
def test_nobody_is_asked_about_news(address: str, plugin: str, name: str, default: Any) -> None:
    with urlopen(f"{address}/lab/api/settings/@jupyterlab/{plugin}") as answer:
        assert json.load(answer)["schema"]["properties"][name]["default"] == default


# --- the command


def test_options_come_last_and_paths_stay_whole() -> None:
    root = Path("/a folder (of mine)/course")
    command = lab.command(["--port", "8899"], root)
    assert command[-2:] == ["--port", "8899"]
    assert f"--ServerApp.root_dir={root}" in command


def test_an_option_takes_the_place_of_the_courses_setting() -> None:
    wish = "--LabApp.default_url=/lab"
    command = lab.command([wish])
    assert [it for it in command if "default_url" in it] == [wish]


def test_make_and_the_readme_start_it() -> None:
    assert "$(BIN)/python tools/lab.py $(ARGS)\n" in (ROOT / "Makefile").read_text("utf-8")
    assert "python tools/lab.py\n" in (ROOT / "README.md").read_text("utf-8")
    for text in TEXTS:
        assert "jupyter lab" not in (ROOT / text).read_text("utf-8")


@pytest.mark.parametrize("script", ["lab", "test", "regenerate", "glossary"])
@pytest.mark.parametrize("copied", [False, True])
def test_another_copys_environment_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, copied: bool
) -> None:
    """Else a learner's answers would go into that copy, and its package would be tested."""
    (tmp_path / "tools").mkdir()
    copy = shutil.copy(ROOT / "tools" / f"{script}.py", tmp_path / "tools")
    monkeypatch.setattr("sys.argv", [str(copy)])
    if copied:
        monkeypatch.setattr("sys.prefix", str(tmp_path / ".venv"))
    with pytest.raises(SystemExit) as refusal:
        runpy.run_path(str(copy), run_name="__main__")
    message = str(refusal.value)
    assert message.startswith(f"This environment is that of another copy, {ROOT}")
    assert (f"delete {tmp_path / '.venv'}" in message) == copied


@pytest.mark.parametrize(("user", "asks"), [(0, 1), (1000, 0)])
def test_a_containers_root_may_run_it(
    monkeypatch: pytest.MonkeyPatch, user: int, asks: int
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user, raising=False)
    assert lab.command().count("--allow-root") == asks
    assert lab.command(["--allow-root"]).count("--allow-root") == 1


@pytest.mark.skipif(not shutil.which("make"), reason="there's no make")
def test_make_uses_the_python_that_it_is_given(tmp_path: Path) -> None:
    venv, other = tmp_path / "venv", tmp_path / "python3.99"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (venv / ".ready").touch()
    other.write_text("#!/bin/sh\necho other\n", "utf-8")
    other.chmod(0o755)

    def made(*options: str) -> bool:
        command = ["make", "-n", "lab", f"VENV={venv}", *options]
        result = subprocess.run(
            command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True
        )
        assert "tools/lab.py" in result.stdout
        return f"-m venv --clear {venv}" in result.stdout

    assert not made()
    assert not made(f"PYTHON={sys.executable}")
    assert made(f"PYTHON={other}")
    (venv / ".ready").unlink()
    assert not made(f"PYTHON={other}")


def test_it_passes_options_on_and_signs_before(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "lab.py"), "--version"]
    own = environment(tmp_path, "JupyterLab Light")
    result = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, encoding="utf-8")
    assert result.stdout.strip() == jupyterlab.__version__
    assert "not trusted" not in result.stderr
    assert (tmp_path / "jupyter_data_dir" / "nbsignatures.db").exists()


def test_where_nothing_can_be_signed_a_sentence_says_so(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data.rmdir()
    data.touch()
    monkeypatch.setattr(lab, "command", lambda options: [sys.executable, "-S", "-c", ""])
    monkeypatch.setattr("signal.signal", lambda *handler: None)
    assert lab.main([]) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("In a dark theme pictures stay light until their cells run:")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for Jupyter's data."""
    for name in [name for name in os.environ if name.startswith("JUPYTER")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_the_courses_notebooks_are_trusted_and_no_others(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "00_start_here.ipynb"
    mine.write_bytes(all_notebooks()[0].read_bytes())
    other = nbformat.read(mine, as_version=4)
    other.cells[0].source += "!"
    monkeypatch.setattr(lab, "all_notebooks", lambda: [mine])
    assert lab.untrusted() == ""
    notary = NotebookNotary()
    assert notary.check_signature(nbformat.read(mine, nbformat.NO_CONVERT))
    assert not notary.check_signature(other)
    nbformat.write(other, mine)  # as after `make regenerate`
    assert lab.untrusted() == ""
    assert notary.check_signature(other)


def test_signatures_that_cannot_be_kept_are_no_trust(data: Path) -> None:
    for name in ("nbsignatures.db", "nbsignatures.db.bak"):
        (data / name / "in the way").mkdir(parents=True)
    assert lab.untrusted() == "Jupyter's folder cannot be written"


def test_a_notebook_that_cannot_be_read_is_named(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "03_duration.ipynb").write_text("{", "utf-8")
    monkeypatch.setattr(lab, "all_notebooks", lambda: [tmp_path / "03_duration.ipynb"])
    assert "JSON" in lab.untrusted()
