"""What readers read stays as it was reviewed: see `snapshots`."""

from __future__ import annotations

import pytest

from llmtrain_course.kit.ids import CHAPTERS
from llmtrain_course.panels import HANDLES, PANELS
from tests.snapshots import DRAWINGS, WORDS, chapter_of, snapshot


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_reads_as_its_snapshot(chapter: str) -> None:
    path = WORDS / f"{chapter}.txt"
    assert snapshot(chapter) == path.read_text("utf-8"), "run make snapshots, review its diff"


def test_every_handle_and_drawing_belongs_to_a_chapter() -> None:
    assert {chapter_of(name) for name in HANDLES} | {*DRAWINGS} | {*PANELS} == {*CHAPTERS}
    assert {path.stem for path in WORDS.iterdir()} == {*CHAPTERS}
