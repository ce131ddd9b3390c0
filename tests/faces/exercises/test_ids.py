"""Ids go by the chapter's word; those that began with its number still mean what they meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmtrain_course.exercises import EXERCISES, PREDICTIONS, check, predict
from llmtrain_course.kit import ids, saved
from teaching import class_report

FORMER = {
    "00": "start_here",
    "01": "parameters",
    "02": "flops",
    "03": "duration",
    "04": "batch",
    "05": "precision",
    "06": "activations",
    "07": "communication",
    "08": "plan",
    "09": "calendar",
    "10": "budget",
    "11": "measure",
    "12": "finetune",
}
"""Written out, because it doesn't change when a chapter gets another number."""

PAIRS = [
    (f"{number}-{ids.part_of(id)}", id)
    for number, word in FORMER.items()
    for id in [*EXERCISES, *PREDICTIONS]
    if ids.chapter_of(id) == word
]
MOVED = {
    "communication-b": "parallelism-a",
    "communication-c": "parallelism-b",
    "communication-d": "parallelism-c",
    "communication-share": "parallelism-share",
    "batch-guess": "parallelism-guess",
}
"""Exercises and guesses that stand on another page now."""

PAIRS += [*MOVED.items(), ("07-e", "parallelism-b")]
PAIRS += [("07-b", "parallelism-a"), ("07-c", "parallelism-b"), ("07-d", "parallelism-c")]
PAIRS += [("07-share", "parallelism-share"), ("04-guess", "parallelism-guess")]


def notebook(old: str, sign: str) -> str:
    """A notebook that was saved when ids began with a number."""
    cell = {
        "source": [f'check("{old}", answer)'],
        "outputs": [{"data": {"text/plain": [f"{sign} {old}: right."]}}],
    }
    return json.dumps({"cells": [cell]})


def test_all_exercises_have_an_id_of_their_chapter() -> None:
    assert {ids.chapter_of(id) for id in EXERCISES} == {*ids.CHAPTERS}
    assert len({*FORMER.values()} | {"parallelism"}) == len(ids.CHAPTERS)
    numbered = {id for old, id in PAIRS if old[:2] in FORMER}
    assert numbered == {*EXERCISES, *PREDICTIONS}


@pytest.mark.parametrize(("old", "id"), PAIRS)
def test_an_old_id_means_what_it_meant(old: str, id: str, tmp_path: Path) -> None:
    ask, sign = (predict, "→") if id in PREDICTIONS else (check, "✓")
    assert ask(old, None).id == id
    text = notebook(old, sign)
    assert saved.answered_in(text, ids.chapter_of(id)) == {id}
    assert saved.answered_in(text, ids.chapter_of(ids.with_words(old))) == {id}
    (tmp_path / "anna.ipynb").write_text(text, "utf-8")
    [(of, mark)] = class_report.read_folder(tmp_path).learners["anna"].items()
    assert (of, bool(mark)) == (id, True)


@pytest.mark.parametrize("unknown", ["13-a", "08-zzz", "plan", "plan-zzz", "", None, 8, ["plan-c"]])
def test_an_unknown_id_is_named_as_it_was_given(unknown: object) -> None:
    for ask in (check, predict):
        with pytest.raises(ValueError, match="id=") as refusal:
            ask(unknown, 1)  # type: ignore[arg-type]
        assert repr(unknown) in str(refusal.value)
