"""What a shell learns from the commands: 0 where it is done, 2 with a sentence where not."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import research.__main__ as maintainers
from llmtrain_course import __main__ as course, measure
from llmtrain_helpers.__main__ import COMMANDS, MOVED, main


def status_of(*command: str) -> int:
    return subprocess.run([sys.executable, "-m", *command], capture_output=True).returncode


@pytest.mark.parametrize("name", MOVED)
def test_a_command_that_moved_names_the_new_one(name: str, capsys: Any) -> None:
    assert main([name, "x"]) == 2
    assert capsys.readouterr().err == f"Write: python -m {MOVED[name]} {name} x\n"


@pytest.mark.parametrize("name", ["exercises", "panels"])
def test_a_saved_notebooks_old_import_names_the_new_one(name: str) -> None:
    with pytest.raises(ImportError, match="moved: write `from llmtrain_course import "):
        import_module(f"llmtrain_helpers.{name}")


@pytest.mark.parametrize("name", ["models", "chips"])
def test_a_damaged_table_is_a_sentence(name: str, monkeypatch: Any, capsys: Any) -> None:
    def damaged(*tables: str) -> list[str]:
        raise ValueError("accelerators.csv has no column 'name'")

    monkeypatch.setattr("llmtrain_helpers.command.names", damaged)
    monkeypatch.setattr("llmtrain_helpers.command.model_names", damaged)
    assert main([name]) == 2
    assert capsys.readouterr().err == "accelerators.csv has no column 'name'\n"


def test_the_version_is_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"llmtrain-helpers {version('llmtrain-helpers')}\n"


def test_commands_are_listed_and_others_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for asked in ([], ["-h"], ["--help"]):
        assert main(asked) == 0
        usage = capsys.readouterr().out
        assert all(f"\n  {name} " in usage for name in COMMANDS)
    assert main(["utilisations"]) == 2
    assert "utilisations isn't a command" in capsys.readouterr().err


def test_a_shell_gets_the_status_too() -> None:
    assert status_of("llmtrain_helpers") == 0
    assert status_of("llmtrain_helpers", "utilisations") == 2
    assert status_of("llmtrain_course", "measure", "--record", "x.txt") == 2


PLANNED = "plan gpt2 --gpus 8 --chip a100 --tokens 1B"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is a file of Linux")
@pytest.mark.parametrize(
    "command",
    [PLANNED, f"{PLANNED} --json", "plan --gpus 8 --chip h100 --days 3", "models", "chips"]
    + [f"{name} --help" for name in COMMANDS]
    + ["--help"],
)
def test_output_that_cannot_be_written_is_a_sentence(command: str) -> None:
    run = [sys.executable, "-m", "llmtrain_helpers", *command.split()]
    plain = {name: x for name, x in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, encoding="utf-8", env=plain)
    assert done.returncode == 2
    assert done.stderr == "The output can't be written: No space left on device.\n"


@pytest.mark.parametrize("name", ["utilizations", "splits", "finetunes"])
def test_a_table_is_printed_and_ends_in_0(name: str, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(f"research.{name}.main", lambda: print("the table"))
    assert maintainers.main([name]) == 0
    assert capsys.readouterr().out == "the table\n"


EVERY = [
    *(("llmtrain_helpers", main, name) for name in COMMANDS),
    *(("llmtrain_course", course.main, name) for name in course.COMMANDS),
    *(("research", maintainers.main, name) for name in maintainers.COMMANDS),
]


@pytest.mark.parametrize(("package", "run", "name"), EVERY)
def test_every_command_takes_help_and_refuses_what_it_does_not_know(
    package: str, run: Any, name: str, capsys: Any
) -> None:
    for option, status in (("--help", 0), ("--record=x.csv --colour", 2)):
        with pytest.raises(SystemExit) as left:
            run([name, *option.split()])
        assert left.value.code == status
        printed = capsys.readouterr()
        assert f"python -m {package} {name} " in printed.out + printed.err


def recording(monkeypatch: Any, ends: Any = None, problem: str | None = None) -> list[Any]:
    """A recorder that needs no PyTorch; what it was asked for."""
    asked: list[Any] = []

    def record(*wanted: Any) -> None:
        asked.append(wanted)
        if ends:
            raise ends

    recorder = SimpleNamespace(record=record, problem=lambda device: problem)
    monkeypatch.setitem(sys.modules, "llmtrain_course.measure.record", recorder)
    monkeypatch.setattr(measure, "torch_missing", lambda: None)
    return asked


def test_a_record_that_is_complete_ends_in_0(monkeypatch: Any) -> None:
    asked = recording(monkeypatch)
    assert course.main(["measure", "--record", "x.csv"]) == 0
    assert course.main(["measure", "--record", "y.csv", "--device", "cpu", "--tiny"]) == 0
    assert asked == [(Path("x.csv"), "cuda", False), (Path("y.csv"), "cpu", True)]


@pytest.mark.parametrize(
    "ends",
    [ValueError("another table\nline 7"), OSError("no room is left"), RuntimeError("no driver")],
    ids=lambda error: type(error).__name__,
)
def test_a_record_that_fails_says_why_in_a_line(
    ends: Exception, monkeypatch: Any, capsys: Any
) -> None:
    recording(monkeypatch, ends)
    assert course.main(["measure", "--record", "x.csv"]) == 2
    assert capsys.readouterr().err == f"{str(ends).splitlines()[0]}\n"


def test_a_record_that_is_stopped_says_that_it_goes_on(monkeypatch: Any, capsys: Any) -> None:
    recording(monkeypatch, KeyboardInterrupt())
    assert course.main(["measure", "--record", "x.csv"]) == 130
    assert capsys.readouterr().out.startswith("Stopped: x.csv keeps its rows;")


@pytest.mark.parametrize(
    ("options", "problem", "message"),
    [
        (["x.txt"], None, "--record takes the name of a file that ends in .csv"),
        (["x.csv", "--device", "cpu"], None, "add --tiny to try the path."),
        (["x.csv"], "There is no GPU.", "There is no GPU."),
    ],
)
def test_what_cannot_be_recorded_is_refused(
    options: list[str], problem: str | None, message: str, monkeypatch: Any, capsys: Any
) -> None:
    asked = recording(monkeypatch, problem=problem)
    assert course.main(["measure", "--record", *options]) == 2
    assert capsys.readouterr().err.strip().endswith(message)
    assert not asked
