"""The map of the course: what is done in this kernel, and in pages as they are saved."""

import json
from pathlib import Path

import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check, course_map, predict
from llmtrain_course.kit.saved import saved_answers


def page(*told: str) -> str:
    """A saved page whose cells said these things."""
    outputs = [{"data": {"text/plain": [words]}} for words in told]
    return json.dumps({"cells": [{"cell_type": "code", "outputs": outputs}]})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LLMTRAIN_RUN", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_right_answers_and_guesses_count_and_nothing_else(folder: Path) -> None:
    told = [
        "\x1b[32m✓ 03-a\x1b[0m: right.",
        "✗ 03-b: no.",
        "→ 03-guess: you said",
        "what a cell printed before\n✓ 03-days: right.",
        "✓ 04-a: right.",
    ]
    (folder / "03_duration.ipynb").write_text(page(*told), "utf-8")
    (folder / "03_duration-Copy1.ipynb").write_text(page("✓ 03-d: right."), "utf-8")
    assert saved_answers(folder) == {"03-a", "03-guess", "03-days"}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cells": 7}', '{"cells": [{"outputs": [1]}]}', "[" * 100_000]
)
def test_a_page_that_cannot_be_read_counts_as_untouched(folder: Path, text: str) -> None:
    (folder / "03_duration.ipynb").write_text(text, "utf-8")
    (folder / "04_batch.ipynb").write_text(page("✓ 04-a: right."), "utf-8")
    assert saved_answers(folder) == {"04-a"}
    assert saved_answers(folder / "gone") == set()


def test_the_course_as_it_is_given_out_has_nothing_done(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "04_batch.ipynb").write_text(page("✓ 04-a: right."), "utf-8")
    monkeypatch.setenv("LLMTRAIN_RUN", "example")
    assert saved_answers(folder) == set()


@pytest.mark.usefixtures("nothing_done")
def test_the_map_adds_what_this_kernel_has_seen(folder: Path) -> None:
    (folder / "04_batch.ipynb").write_text(page("✓ 04-a: right."), "utf-8")
    of = {x: sum(id[:2] == x for id in [*EXERCISES, *PREDICTIONS]) for x in ("00", "04")}
    assert f"(1 of {of['04']} done)" in course_map().words
    check("00-a", 1)
    predict("00-guess", 3)
    assert f"(1 of {of['00']} done)" in course_map().words
