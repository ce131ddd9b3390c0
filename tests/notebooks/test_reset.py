"""A notebook as it was, the learner's copy kept."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.notebooks.scripts import load
from tests.paths import ROOT, tracked

reset = load("reset")
FRESH = b'{"cells": []}\n'


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course with two notebooks, committed."""
    folder = tmp_path / "course"
    (folder / "notebooks" / "solutions").mkdir(parents=True)
    for name in ("02_flops", "03_duration", "solutions/03_duration"):
        (folder / "notebooks" / f"{name}.ipynb").write_bytes(FRESH)
    (folder / ".gitignore").write_bytes((ROOT / ".gitignore").read_bytes())
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "A course")
    return folder


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", *who, "-c", "commit.gpgsign=false", *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, encoding="utf-8")
    return done.stdout


def test_a_changed_notebook_comes_back_and_every_copy_is_kept(course: Path) -> None:
    notebook = course / "notebooks" / "03_duration.ipynb"
    for number, kept in enumerate(["mine", "mine-2", "mine-3"]):
        notebook.write_text(f"work {number}", "utf-8")
        message = reset.reset("03_duration", course)
        assert f"Yours is kept as notebooks/03_duration.{kept}.ipynb." in message
        assert notebook.read_bytes() == FRESH
        copy = notebook.with_name(f"03_duration.{kept}.ipynb")
        assert copy.read_text("utf-8") == f"work {number}"
    assert git(course, "status", "--porcelain") == ""  # the copies are git's no more


def test_an_unchanged_notebook_stays_and_a_deleted_one_comes_back(course: Path) -> None:
    notebook = course / "notebooks" / "03_duration.ipynb"
    assert "nothing to do" in reset.reset("03", course)
    notebook.unlink()
    assert "kept" not in reset.reset("03", course)
    assert notebook.read_bytes() == FRESH
    assert not list(notebook.parent.glob("*.mine*"))


@pytest.mark.parametrize(
    "name", ["03", "03_duration", "duration", "notebooks/03_duration.ipynb", " 03 "]
)
def test_a_notebook_may_be_named_in_several_ways(name: str, course: Path) -> None:
    assert reset.which(name, reset.names(course)) == "03_duration"


@pytest.mark.parametrize("name", ["", "3", "04_batch", "../../x", "; rm", "03_duratoin"])
def test_what_is_no_notebook_gets_the_list_and_changes_nothing(name: str, course: Path) -> None:
    with pytest.raises(reset.ResetError, match=r"\n  02_flops\n  03_duration$") as why:
        reset.reset(name, course)
    assert ("Is 03_duration meant?" in str(why.value)) == (name == "03_duratoin")
    assert git(course, "status", "--porcelain", "--ignored") == ""


def test_outside_a_checkout_it_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    with pytest.raises(reset.ResetError, match=r"no git checkout.*take a fresh copy"):
        reset.reset("03_duration", tmp_path)


def test_in_a_checkout_of_something_else_it_says_so_too(course: Path) -> None:
    inner = course / "unpacked"
    (inner / "notebooks").mkdir(parents=True)
    with pytest.raises(reset.ResetError, match="no git checkout"):
        reset.reset("03_duration", inner)


def test_a_course_may_lie_inside_another_checkout(tmp_path: Path) -> None:
    notebook = tmp_path / "inner" / "notebooks" / "03_duration.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_bytes(FRESH)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Both")
    notebook.write_text("work", "utf-8")
    reset.reset("03_duration", tmp_path / "inner")
    assert notebook.read_bytes() == FRESH


def test_without_git_it_says_so(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(course))
    with pytest.raises(reset.ResetError, match="git is not installed"):
        reset.reset("03_duration", course)


def test_make_passes_the_name_on(capfd: pytest.CaptureFixture[str]) -> None:
    assert tracked()
    assert reset.main(["04_bath"]) == 2
    assert "Is 04_batch meant?" in capfd.readouterr().err
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert 'teaching/reset.py "$(NOTEBOOK)"' in makefile
