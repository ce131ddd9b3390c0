"""The map of the course: what is done in this kernel, and in pages as they are saved."""

import json
from collections import Counter
from pathlib import Path

import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check, course_map, predict
from llmtrain_course.kit.ids import chapter_of
from llmtrain_course.kit.saved import saved_answers


def page(*texts: str) -> str:
    """A saved page whose cells said these things."""
    outputs = [{"data": {"text/plain": [words]}} for words in texts]
    return json.dumps({"cells": [{"cell_type": "code", "outputs": outputs}]})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LLMTRAIN_RUN", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_right_answers_and_guesses_count_and_nothing_else(folder: Path) -> None:
    texts = [
        "\x1b[32m✓ duration-a\x1b[0m: right.",
        "✗ duration-b: no.",
        "→ duration-guess: you said",
        "what a cell printed before\n✓ duration-days: right.",
        "✓ batch-a: right.",
    ]
    (folder / "03_duration.ipynb").write_text(page(*texts), "utf-8")
    (folder / "03_duration-Copy1.ipynb").write_text(page("✓ duration-d: right."), "utf-8")
    assert saved_answers(folder) == {"duration-a", "duration-guess", "duration-days"}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cells": 7}', '{"cells": [{"outputs": [1]}]}', "[" * 100_000]
)
def test_a_page_that_cannot_be_read_counts_as_untouched(folder: Path, text: str) -> None:
    (folder / "03_duration.ipynb").write_text(text, "utf-8")
    (folder / "04_batch.ipynb").write_text(page("✓ batch-a: right."), "utf-8")
    assert saved_answers(folder) == {"batch-a"}
    assert saved_answers(folder / "gone") == set()


def test_the_course_as_it_is_given_out_has_nothing_done(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "04_batch.ipynb").write_text(page("✓ batch-a: right."), "utf-8")
    monkeypatch.setenv("LLMTRAIN_RUN", "example")
    assert saved_answers(folder) == set()


@pytest.mark.usefixtures("nothing_done")
def test_the_map_adds_what_this_kernel_has_seen(folder: Path) -> None:
    (folder / "04_batch.ipynb").write_text(page("✓ batch-a: right."), "utf-8")
    whole = Counter(chapter_of(id) for id in [*EXERCISES, *PREDICTIONS])
    assert f"(1 of {whole['batch']} done)" in course_map().words
    check("start_here-a", 1)
    predict("start_here-guess", 3)
    assert f"(1 of {whole['start_here']} done)" in course_map().words
