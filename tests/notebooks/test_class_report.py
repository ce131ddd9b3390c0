"""Who has passed what: folders of a class, made by really running checks."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import pytest

from llmtrain_course.__main__ import main
from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit.exercise import Verdict, grade
from llmtrain_course.kit.ids import chapter_of
from teaching import class_report
from teaching.class_report import (
    PAGES,
    Room,
    as_csv,
    columns,
    hardest,
    learner_of,
    plain,
    read_folder,
    table,
    wide,
)
from tests.paths import NOTEBOOKS, ROOT
from tools.notebooks import chapters

CHAPTERS = chapters()
any_name = pytest.mark.skipif(
    sys.getfilesystemencoding() != "utf-8", reason="here a file's name cannot have all letters"
)
TOO_LONG = 4 / 3
"""The slip of duration-a that takes 8 for 6."""


def done(path: Path, chapter: str, answers: Mapping[str, Any] | None = None) -> Path:
    """A learner's notebook: the committed one, with these answers checked."""
    notebook = json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text("utf-8"))
    for cell in notebook["cells"]:
        for id, answer in (answers or {}).items():
            if f'check("{id}"' in "".join(cell["source"]):
                show(cell, grade(id, answer, EXERCISES[id], 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def show(cell: dict[str, Any], verdict: Verdict) -> None:
    """A cell's output as a kernel saves it."""
    data = verdict._repr_mimebundle_()
    cell["outputs"] = [{"output_type": "execute_result", "data": data, "metadata": {}}]


def states(folder: Path) -> dict[str, dict[str, str]]:
    """What was found, but for what is still open."""
    return {
        name: {id: one.state for id, one in answers.items() if one.state != "open"}
        for name, answers in read_folder(folder).learners.items()
    }


RIGHT = EXERCISES["duration-a"].key()


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_every_solution_is_read_as_passed_and_every_page_as_open(
    path: Path, tmp_path: Path
) -> None:
    ids = [id for id in EXERCISES if chapter_of(id) == path.stem[3:]]
    (tmp_path / "anna.ipynb").write_bytes((path.parent / "solutions" / path.name).read_bytes())
    (tmp_path / "bo.ipynb").write_bytes(path.read_bytes())
    learners = read_folder(tmp_path).learners
    assert [id for id in ids if learners["anna"][id].state == "passed"] == ids
    guesses = [id for id in PREDICTIONS if chapter_of(id) == path.stem[3:]]
    assert {id: one.state for id, one in learners["bo"].items()} == dict.fromkeys(
        [*ids, *guesses], "open"
    )
    assert set(learners["anna"]) <= {*ids, *guesses}


def test_chapters_have_the_numbers_and_names_of_their_notebooks() -> None:
    names = {*PAGES.values()}
    assert names == {path.stem for path in CHAPTERS}


def a_class(folder: Path) -> Room:
    """Three learners of chapter 03, one of whom has opened 04."""
    done(folder / "anna" / "03_duration.ipynb", "03_duration", {"duration-a": RIGHT})
    wrong = {"duration-a": RIGHT * TOO_LONG, "duration-c": {"chip": "H100", "gpus": 48}}
    done(folder / "bo" / "03_duration.ipynb", "03_duration", wrong)
    done(folder / "cleo" / "03_duration.ipynb", "03_duration", wrong)
    done(folder / "cleo" / "04_batch.ipynb", "04_batch")
    return read_folder(folder)


def test_the_teachers_page_shows_what_such_a_class_looks_like(tmp_path: Path) -> None:
    guide = (NOTEBOOKS.parent / "TEACHING.md").read_text("utf-8")
    room = a_class(tmp_path)
    assert f"```\n{table(room)}\n\n{hardest(room)[0]}\n```" in guide


def test_what_a_class_did_stands_in_the_table(tmp_path: Path) -> None:
    room = a_class(tmp_path)
    assert [line.split() for line in table(room).splitlines()] == [
        ["03", "duration"],
        ["twice", "guess", "a", "days", "b", "c", "d", "passed"],
        ["anna", "○", "○", "✓", "○", "○", "○", "○", "1", "of", "5"],
        ["bo", "○", "○", "✗", "○", "○", "✓", "○", "1", "of", "5"],
        ["cleo", "○", "○", "✗", "○", "○", "✓", "○", "1", "of", "5"],
        ["passed", "0", "0", "1", "0", "0", "2", "0", "3"],
    ]
    [worst] = hardest(room)
    assert worst.startswith("duration-a: 2 of 3 who tried it. 2 × “You've used 8TP, but an MFU")


def test_a_table_is_no_wider_than_asked_and_loses_nothing(tmp_path: Path) -> None:
    for path in CHAPTERS:
        solved = (path.parent / "solutions" / path.name).read_bytes()
        (tmp_path / f"{'x' * 40}_{path.name}").write_bytes(solved)
    room = read_folder(tmp_path)
    assert list(room.learners) == ["x" * 40]
    assert room.ids() == columns()
    for width in (80, 110, 200):
        text = table(room, width)
        assert max(wide(line) for line in text.splitlines()) <= width
        assert text.count("✓") == len(EXERCISES)


@any_name
def test_names_in_any_script_keep_the_columns(tmp_path: Path) -> None:
    for name in ("Åsa", "A\u030asa", "李明", "محمد", "Łukasz", "प्रिया", "o'x; rm", "🙂"):
        done(tmp_path / name / "03_duration.ipynb", "03_duration", {"duration-a": RIGHT})
    room = read_folder(tmp_path)
    assert len(room.learners) == 7  # Åsa is one, however it is written
    lines = [line for line in table(room).splitlines() if "✓" in line]
    assert len({wide(line[: line.index("✓")]) for line in lines}) == 1


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("anna/03_duration.ipynb", "anna"),
        ("anna/course/notebooks/03_duration.ipynb", "anna"),
        ("anna/03_duration/03_duration.ipynb", "anna"),
        ("03_duration/anna.ipynb", "anna"),
        ("03_duration/anna/03_duration.ipynb", "anna"),
        ("Anna E_4711_assignsubmission_file_/03_duration.ipynb", "Anna E"),
        ("anna_03_duration.ipynb", "anna"),
        ("03_duration - Anna E.ipynb", "Anna E"),
        ("anna_03_duration (2).ipynb", "anna"),
        ("anna-03_duration-Copy1.ipynb", "anna"),
        ("anna_00_start_here.ipynb", "anna"),
        ("anna.ipynb", "anna"),
        ("03_duration.ipynb", "class"),
        ("03_duration.mine-2.ipynb", "class"),
    ],
)
def test_whose_notebook_it_is(path: str, name: str) -> None:
    assert learner_of(PurePath(path), "class") == name


def test_the_best_of_several_copies_counts(tmp_path: Path) -> None:
    home = tmp_path / "anna"
    done(home / "03_duration.mine.ipynb", "03_duration", {"duration-a": RIGHT})
    done(home / "03_duration.ipynb", "03_duration", {"duration-a": 1, "duration-c": "A"})
    twice = json.loads((home / "03_duration.ipynb").read_text("utf-8"))
    twice["cells"] *= 2  # every cell id stands twice now
    (home / "03_duration.ipynb").write_text(json.dumps(twice), encoding="utf-8")
    assert states(tmp_path) == {"anna": {"duration-a": "passed", "duration-c": "wrong"}}


def test_solutions_evidence_and_hidden_folders_are_nobodys_work(tmp_path: Path) -> None:
    done(tmp_path / "anna" / "03_duration.ipynb", "03_duration")
    for folder in ("solutions", "evidence", ".ipynb_checkpoints"):
        place = tmp_path / "anna" / folder / "03_duration.ipynb"
        done(place, "03_duration", {"duration-a": RIGHT})
    assert states(tmp_path) == {"anna": {}}


def test_a_printed_verdict_counts_and_one_without_its_code_does_not(tmp_path: Path) -> None:
    output = {"output_type": "stream", "text": ["\x1b[32m✓ duration-a\x1b[0m: right.\n"]}
    for name, code in {"anna": 'print(check("duration-a", x))', "bo": "print(text)"}.items():
        done(tmp_path / name / "03_duration.ipynb", "03_duration", {"duration-c": "A"})
        path = tmp_path / name / "extra.ipynb"
        cells = [{"cell_type": "code", "source": code, "outputs": [output]}]
        path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert states(tmp_path)["anna"] == {"duration-a": "passed", "duration-c": "wrong"}
    assert states(tmp_path)["bo"] == {"duration-c": "wrong"}


BROKEN = {
    "half.ipynb": b'{"cells": [{"source": "che',
    "empty.ipynb": b"",
    "list.ipynb": b"[1, 2]",
    "number.ipynb": b"7",
    "nocells.ipynb": b'{"cells": 3}',
    "latin.ipynb": "é".encode("latin-1"),
    "deep.ipynb": b"[" * 200_000,
    "digits.ipynb": b'{"cells": [' + b"9" * 10_000 + b"]}",
}
ODD = [
    {"cells": [None, 3, [], "x", {}, {"source": None, "outputs": None}]},
    {"cells": [{"source": ['check("duration-a")', 4], "outputs": [None, 3, {}, {"data": []}]}]},
    {"cells": [{"source": "duration-a", "outputs": [{"data": {"text/plain": {"a": 1}}}]}]},
    {"cells": [{"source": "99-z", "outputs": [{"text": "✓ 99-z: no such exercise."}]}]},
]


def test_what_is_no_notebook_is_told_and_stops_nobody(tmp_path: Path) -> None:
    for name, content in BROKEN.items():
        (tmp_path / name).write_bytes(content)
    for number, notebook in enumerate(ODD):
        (tmp_path / f"odd{number}.ipynb").write_text(json.dumps(notebook), "utf-8")
    done(tmp_path / "anna.ipynb", "03_duration", {"duration-a": RIGHT})
    room = read_folder(tmp_path)
    assert list(room.learners) == ["anna"]
    assert {line.split(":")[0] for line in room.left_out} == set(BROKEN)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    path = done(tmp_path / "anna.ipynb", "03_duration", {"duration-a": RIGHT})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert states(tmp_path) == {"anna": {"duration-a": "passed"}}


def test_a_file_of_100_megabytes_is_left_out_unread(tmp_path: Path) -> None:
    with (tmp_path / "large.ipynb").open("wb") as file:
        file.truncate(100_000_000)
    began = time.monotonic()
    room = read_folder(tmp_path)
    assert time.monotonic() - began < 1
    assert "large.ipynb: 100 MB, more than 20" in room.left_out[0]


@pytest.mark.skipif(os.name == "nt", reason="links and pipes as Unix has them")
def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    done(outside / "bo" / "03_duration.ipynb", "03_duration", {"duration-a": RIGHT})
    room = tmp_path / "room"
    done(room / "anna" / "03_duration.ipynb", "03_duration")
    (room / "loop").symlink_to(room)
    (room / "anna" / "bo").symlink_to(outside)
    (room / "bo.ipynb").symlink_to(outside / "bo" / "03_duration.ipynb")
    (room / "gone.ipynb").symlink_to(room / "nothing")
    os.mkfifo(room / "pipe.ipynb")
    folder = read_folder(room)
    assert list(folder.learners) == ["anna"]
    assert sorted(line.split(":")[0] for line in folder.left_out) == [
        "anna/bo",
        "bo.ipynb",
        "gone.ipynb",
        "loop",
        "pipe.ipynb",
    ]


ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\u202eevil\r\n"


@any_name
def test_nothing_hostile_is_run_or_printed_raw(tmp_path: Path, capsys: Any) -> None:
    path = done(tmp_path / "anna" / "03_duration.ipynb", "03_duration")
    notebook = json.loads(path.read_text("utf-8"))
    trap = tmp_path / "trap"
    for cell in notebook["cells"]:
        if 'check("duration-a"' in "".join(cell["source"]):
            cell["source"] = f'open({str(trap)!r}, "w")\ncheck("duration-a", 1)'
            show(cell, Verdict("duration-a", False, f"too low{ESCAPES}"))
    path.write_text(json.dumps(notebook), encoding="utf-8")
    if os.name != "nt":
        done(tmp_path / f"b{ESCAPES}o" / "x.ipynb", "03_duration", {"duration-a": RIGHT})
        (tmp_path / f"half{ESCAPES}.ipynb").write_text("{", "utf-8")
    for options in ([], ["--csv"]):
        assert main(["class", str(tmp_path), *options]) == 0
        output = capsys.readouterr().out.replace("\n", "").lstrip("\ufeff")
        assert plain(output.replace(" ", "")) == output.replace(" ", "")
    assert not trap.exists()


def test_a_verdict_of_megabytes_is_cut(tmp_path: Path) -> None:
    path = done(tmp_path / "anna.ipynb", "03_duration")
    notebook = json.loads(path.read_text("utf-8"))
    output = {"text": "✗ duration-a: " + "x" * 5_000_000 + "\n✗ duration-b: y" * 100_000}
    cell = {"cell_type": "code", "source": "duration-a duration-b", "outputs": [output]}
    notebook["cells"].append(cell)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    began = time.monotonic()
    room = read_folder(tmp_path)
    assert max(len(line) for line in hardest(room)) < 200
    assert time.monotonic() - began < 10


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes there")
def test_a_name_that_is_no_text_is_printed(tmp_path: Path, capsys: Any) -> None:
    place = done(tmp_path / "anna" / "x.ipynb", "03_duration", {"duration-a": RIGHT})
    os.rename(os.fsencode(place.parent), os.fsencode(tmp_path) + b"/an\xffna")
    assert main(["class", str(tmp_path)]) == 0
    assert "anna" in capsys.readouterr().out


def test_a_spreadsheet_gets_words_and_no_formula(tmp_path: Path) -> None:
    done(tmp_path / "anna.ipynb", "03_duration", {"duration-a": RIGHT, "duration-c": "A"})
    done(tmp_path / "=1+2.ipynb", "03_duration", {"duration-a": RIGHT})
    rows = list(csv.DictReader(io.StringIO(as_csv(read_folder(tmp_path)))))
    assert [row["learner"] for row in rows] == ["'=1+2", "anna"]
    assert (rows[1]["duration-a"], rows[1]["duration-c"], rows[1]["duration-b"]) == (
        "passed",
        "wrong",
        "open",
    )
    assert rows[1]["passed"] == "1"


@pytest.mark.parametrize("made", ["nothing", "file", "empty", "others"])
def test_a_wrong_folder_is_told_and_ends_in_2(made: str, tmp_path: Path, capsys: Any) -> None:
    place = tmp_path / "class"
    if made == "file":
        place.write_text("x", "utf-8")
    elif made != "nothing":
        place.mkdir()
    if made == "others":
        (place / "own.ipynb").write_text('{"cells": []}', "utf-8")
    assert main(["class", str(place)]) == 2
    console = capsys.readouterr()
    assert console.out == ""
    assert "anna/03_duration.ipynb" in console.err


def test_a_class_that_has_done_nothing_is_told_so(tmp_path: Path, capsys: Any) -> None:
    done(tmp_path / "anna.ipynb", "03_duration")
    assert main(["class", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "1 learner," in output
    assert "Nobody has answered anything in 00, 01," in output


@any_name
def test_the_command_works_where_the_terminal_has_few_letters(tmp_path: Path) -> None:
    done(tmp_path / "李明.ipynb", "03_duration", {"duration-a": RIGHT})
    command = [sys.executable, "-m", "llmtrain_course", "class", str(tmp_path)]
    result = subprocess.run(
        command,
        check=True,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert "李明" in result.stdout.decode("utf-8")
    assert not result.stderr


def test_thirty_learners_with_all_chapters_take_seconds(tmp_path: Path) -> None:
    for number in range(30):
        home = tmp_path / f"learner{number:02}"
        home.mkdir()
        for path in CHAPTERS:
            (home / path.name).write_bytes(path.read_bytes())
    began = time.monotonic()
    assert len(read_folder(tmp_path).learners) == 30
    assert time.monotonic() - began < 30


def test_the_modules_docstring_names_what_a_teacher_has() -> None:
    docstring = class_report.__doc__ or ""
    for name in ("anna/03_duration.ipynb", "anna_03_duration.ipynb"):
        assert name in docstring
