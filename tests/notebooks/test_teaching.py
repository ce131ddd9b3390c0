"""The teacher's pages and scripts: minutes as counted, routes that add up, polls that are right."""

from __future__ import annotations

import builtins
import doctest
import json
import os
import re
import runpy
import socket
import subprocess
import symtable
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from llmtrain_course.exercises import EXERCISES, PREDICTIONS
from llmtrain_course.kit.ids import chapter_of, page_of
from tests.notebooks.scripts import load
from tests.paths import ROOT
from tools.notebooks import all_notebooks, chapters

TEACHING = ROOT / "teaching"
GUIDE = (ROOT / "TEACHING.md").read_text("utf-8")
MISTAKES, POLLS, HUB = (
    (TEACHING / f"{name}.md").read_text("utf-8") for name in ("mistakes", "polls", "HUB")
)
minutes = load("minutes")
KNOWN = minutes.chapters()
PATHS = {path.name[:2]: path for path in chapters()}
PARTS = dict(re.findall(r"^### (\d\d) · .*\n((?:(?!^### ).*\n?)*)", GUIDE, re.MULTILINE))
ERRORS = dict(re.findall(r"^## (\d\d) · .*\n((?:(?!^## ).*\n?)*)", MISTAKES, re.MULTILINE))
CARDS = dict(re.findall(r"^### ([\w-]+)\n((?:(?!^##+ ).*\n?)*)", POLLS, re.MULTILINE))

every_chapter = pytest.mark.parametrize("chapter", sorted(KNOWN))


# --- the minutes


def test_the_page_has_the_minutes_that_are_counted() -> None:
    """After a change of a notebook: python teaching/minutes.py --write."""
    assert minutes.written(GUIDE) == GUIDE


def test_every_chapter_has_a_part_in_one_form() -> None:
    assert len(GUIDE.encode()) <= 25_000
    assert list(PARTS) == sorted(KNOWN)
    for part in PARTS.values():
        headings = re.findall(r"^\*\*(.+?)\.\*\*", part, re.MULTILINE)
        assert headings == ["Minutes", "In half the time", "Ask aloud", "In pairs", "You'll hear"]
        asked = re.findall(r"^(\d)\. .+\? \*[^*]{20,160}\.\*$", part, re.MULTILINE)
        assert asked == re.findall(r"^(\d)\. ", part, re.MULTILINE)  # each one with its answer
        assert asked == ["1", "2", "3"][: len(asked)]
        assert len(asked) >= 2


CLASS = re.compile(r"with a class \*\*(\d+)\*\*", re.IGNORECASE)


@every_chapter
def test_minutes_are_those_of_the_notebook_in_all(chapter: str) -> None:
    total = sum(one.minutes for one in KNOWN[chapter])
    assert [int(1.5 * total + 0.5)] == [int(x) for x in CLASS.findall(PARTS[chapter])]


@every_chapter
def test_the_short_cut_takes_half(chapter: str) -> None:
    total, short = map(int, re.findall(r"\*\*(\d+)\*\*", PARTS[chapter]))
    assert 0.38 <= short / total <= 0.55


def test_every_route_adds_up_to_its_time() -> None:
    routes = minutes.routes(GUIDE)
    assert [time for time, _ in routes.values()] == [60, 90, 180, 180, 420, 420, 420]
    for name, (time, rows) in routes.items():
        assert sum(rows) == time, name
        assert 5 <= rows[-1] <= 30, name  # left for questions


def test_a_row_is_half_as_long_again_as_its_count_and_a_break_is_not() -> None:
    for block in re.split(r"^(?=### )", GUIDE, flags=re.MULTILINE):
        for row in minutes.ROW.finditer(block):
            if row[2]:
                items, _, paired = row[3].partition(" · in pairs")
                counted = minutes.of_items(items, KNOWN[row[2]]) * 1.5 + 8 * (row[3] != items)
                assert not paired
                assert abs(int(row[1]) - counted) <= 0.5, row[0]
    row = re.search(r"^\| 15 \| \| Break \|$", GUIDE, re.MULTILINE)
    assert row
    assert minutes.written(GUIDE.replace(row[0], "| 20 | | Break |", 1)).count("| 20 | | Break |")


def test_a_day_has_four_or_five_chapters_and_time_to_rest() -> None:
    days = [block for block in re.split(r"^(?=### )", GUIDE, flags=re.MULTILINE) if "420" in block]
    assert len(days) == 3
    for day in days:
        rows = list(minutes.ROW.finditer(day))
        assert len({row[2] for row in rows if row[2]}) in (4, 5)
        rests = [int(row[1]) for row in rows if row[3] in ("Break", "Lunch")]
        assert sum(rests) >= 80
        seats = re.split(r"^\| \d+ \| \| (?:Break|Lunch) \|\n", day, flags=re.MULTILINE)
        assert max(sum(int(row[1]) for row in minutes.ROW.finditer(x)) for x in seats) <= 120


def test_they_are_printed_where_the_terminal_has_few_letters() -> None:
    printed = subprocess.run(
        [sys.executable, str(TEACHING / "minutes.py")],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
    )
    assert " · With a class **" in printed.stdout.decode("utf-8")


def test_a_wrong_title_is_told() -> None:
    with pytest.raises(ValueError, match="'A lose' is no section; there are A win"):
        minutes.of_items("A lose", [minutes.Section("A win", 1, 1, 0, 0, 0)])


# --- what is kept runs without what is left out


def kept_lists() -> Iterator[tuple[str, str, str]]:
    """(where, chapter, sections and exercises) of each short cut and route row."""
    for chapter, part in PARTS.items():
        match = re.search(r"^\*\*In half the time\.\*\* (.+) · \*\*", part, re.MULTILINE)
        assert match
        yield "short", chapter, match[1]
    for block in re.split(r"^(?=### )", GUIDE, flags=re.MULTILINE):
        if block[:6] not in {f"### {n}" for n in KNOWN} and minutes.ROUTE.match(block):
            rows: dict[str, list[str]] = {}
            for row in minutes.ROW.finditer(block):
                rows.setdefault(row[2], []).append(row[3])
            for chapter, items in rows.items():
                if chapter:
                    yield block.split(":")[0][4:], chapter, " · ".join(items)


@pytest.mark.parametrize(("where", "chapter", "items"), list(kept_lists()), ids=lambda x: x[:12])
def test_what_is_kept_needs_nothing_of_what_is_left_out(
    where: str, chapter: str, items: str
) -> None:
    names = set(vars(builtins)) | {"display", "get_ipython"}
    for code in cells_of(chapter, items.split(" · ")):
        used, made = names_of(code)
        assert not used - names, (where, chapter, used - names)
        names |= made


def cells_of(chapter: str, items: list[str]) -> list[str]:
    """The code of the opening, of these sections and of these exercises."""
    path = PATHS[chapter]
    title, sources = minutes.OPENING, []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            title = [title, *re.findall(r"^## (.+)$", source, re.MULTILINE)][-1]
        elif title in (minutes.OPENING, *items) or any(f'check("{id}"' in source for id in items):
            sources.append(source)
    return sources


def names_of(code: str) -> tuple[set[str], set[str]]:
    """Names that a cell takes from outside, and those that it leaves."""
    table = symtable.symtable(code, "cell", "exec")
    made = {s.get_name() for s in table.get_symbols() if s.is_assigned()}
    made |= {s.get_name() for s in table.get_symbols() if s.is_imported()}
    made |= {s.get_name() for s in table.get_symbols() if s.is_namespace()}
    used = {s.get_name() for s in table.get_symbols() if s.is_referenced()} - made
    return used | set(global_names(table)) - made, made


def global_names(table: symtable.SymbolTable) -> Iterator[str]:
    """Names of the cell that its functions and comprehensions use."""
    for child in table.get_children():
        yield from (s.get_name() for s in child.get_symbols() if s.is_global())
        yield from global_names(child)


def test_names_that_a_cell_takes_are_found() -> None:
    used, made = names_of("import a\nb = [a.c(x, y) for x in z]\ndef f(u): return v + u")
    assert (used, made) == ({"y", "z", "v"}, {"a", "b", "f"})


# --- what the page says


@every_chapter
def test_numbers_of_a_part_stand_in_its_chapter(chapter: str) -> None:
    """Those of two digits or more, minutes, options and wrong options aside."""
    ids = predictions_of(chapter)
    parts = PARTS[chapter] + ERRORS[chapter] + "".join(CARDS[id] for id in ids)
    words = re.sub(r"^(\*\*Minutes|\*\*In half|\*\*A\*\*|\* [A-D]:).*$", "", parts, flags=re.M)
    words = re.sub(r"\b[a-z_]+-[a-z]\b|\bnotebook \d\d|\bchapter \d\d", "", words)
    numbers = set(re.findall(r"\d[\d,.]*\d", words))
    path = PATHS[chapter]
    solved = path.parent / "solutions" / path.name
    both = path.read_text("utf-8") + solved.read_text("utf-8")
    both += "".join(PREDICTIONS[id].why for id in ids)
    assert {one for one in numbers if one not in both} <= set()


@every_chapter
def test_exercises_that_a_part_speaks_of_exist(chapter: str) -> None:
    ids = {id for id in EXERCISES if page_of(chapter_of(id))[:2] == chapter}
    assert set(re.findall(r"\b([a-z_]+-[a-z])\b", PARTS[chapter])) <= ids
    listed = re.findall(r"^\| ([^,|]+), [^|]+ \| “.+[.?]” \|$", ERRORS[chapter], re.MULTILINE)
    assert set(listed) <= ids
    assert len(listed) == ERRORS[chapter].count("\n| ") - 1  # of the heading
    assert len({id for id in listed if re.fullmatch(r"\w+-[a-z]", id)}) >= 3


def predictions_of(chapter: str) -> list[str]:
    return [id for id in PREDICTIONS if page_of(chapter_of(id))[:2] == chapter]


def test_mistakes_and_polls_have_a_part_for_each_chapter() -> None:
    assert list(ERRORS) == re.findall(r"^## (\d\d) · ", POLLS, re.MULTILINE) == sorted(KNOWN)
    asked = re.findall(r'\bpredict\("([\w-]+)"', "".join(map(text_of, sorted(KNOWN))))
    assert list(CARDS) == asked
    assert set(asked) == set(PREDICTIONS)


def text_of(chapter: str) -> str:
    cells = json.loads(PATHS[chapter].read_text("utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells)


@pytest.mark.parametrize("id", CARDS)
def test_the_right_option_of_a_poll_is_the_courses_answer(id: str) -> None:
    card, prediction = CARDS[id], PREDICTIONS[id]
    [line] = re.findall(r"^\*\*A\*\* .+$", card, re.MULTILINE)
    options = dict(re.findall(r"\*\*([A-D])\*\* ([^·]+?)(?: ·|$)", line))
    [right] = re.findall(r"^\*\*Right: ([A-D])\.\*\* .+\.$", card, re.MULTILINE)
    wrong = re.findall(r"^\* ([A-D]): .+\.$", card, re.MULTILINE)
    assert sorted([*wrong, right]) == list(options) == list("ABCD")[: len(options)]
    truth = prediction.truth()
    if prediction.options:
        assert set(options.values()) == set(prediction.options)
        assert options[right] == truth
        return
    assert len(options) == 4
    numbers = {letter: float(text.rstrip("%")) for letter, text in options.items()}
    places = len(options[right].rstrip("%").partition(".")[2])
    assert numbers[right] == pytest.approx(truth, abs=0.5 * 10.0**-places)
    others = (numbers[letter] for letter in wrong)
    assert all(abs(other / truth - 1) > 0.09 for other in others)
    assert list(numbers.values()) == sorted(numbers.values())


def test_files_that_the_page_names_are_there() -> None:
    """Its links are followed in `test_links`."""
    for name in re.findall(r"teaching/[\w.]+\.(?:py|lock)", GUIDE + HUB):
        assert (ROOT / name).exists(), name
    assert "TEACHING.md" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["reset", "minutes"])
def test_the_examples_in_the_scripts_hold(name: str) -> None:
    done = doctest.testmod(load(name))
    assert done.attempted
    assert not done.failed


# --- the hub, as far as it goes without JupyterHub


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The configuration as JupyterHub would read it, homes in a temporary folder."""
    spawner = ModuleType("jupyterhub.spawner")
    plain = {"make_preexec_fn": lambda self, name: lambda: None}
    spawner.SimpleLocalProcessSpawner = type("Spawner", (), plain)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jupyterhub", ModuleType("jupyterhub"))
    monkeypatch.setitem(sys.modules, "jupyterhub.spawner", spawner)
    monkeypatch.setenv("WORKSHOP_PASSWORD", "eight-or-more")
    monkeypatch.setenv("WORKSHOP_HOMES", str(tmp_path / "homes"))
    monkeypatch.setenv("WORKSHOP_AS_ROOT", "1")
    return run_config(Settings())


class Settings(SimpleNamespace):
    """Takes any setting, as traitlets' Config does."""

    def __getattr__(self, name: str) -> Any:
        if name == "args":
            return self.__dict__.setdefault(name, [])
        return self.__dict__.setdefault(name, Settings())


def run_config(settings: Settings) -> dict[str, Any]:
    config = str(TEACHING / "jupyterhub_config.py")
    return runpy.run_path(config, {"get_config": lambda: settings})


def test_notebooks_are_copied_once_and_a_learners_is_never_overwritten(
    hub: dict[str, Any], tmp_path: Path
) -> None:
    seat = SimpleNamespace(user=SimpleNamespace(name="anna"), environment={})
    home = tmp_path / "homes" / "anna"
    (home / "notebooks").mkdir(parents=True)
    (home / "notebooks" / "03_duration.ipynb").write_text("mine", "utf-8")
    for _ in range(2):
        hub["give_notebooks"](seat)
    assert (home / "notebooks" / "03_duration.ipynb").read_text("utf-8") == "mine"
    given = {path.relative_to(home / "notebooks") for path in notebooks_of(home)}
    assert given == {path.relative_to(ROOT / "notebooks") for path in all_notebooks()}
    for path in notebooks_of(home):
        for target in re.findall(r"\]\(([^)#\s]+)\)", path.read_text("utf-8")):
            assert "://" in target or (path.parent / target).exists(), target


def notebooks_of(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.suffix == ".ipynb"]


def test_the_hub_wants_a_password_and_a_user_of_its_own(
    hub: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = hub["c"].__dict__
    assert settings["SharedPasswordAuthenticator"].user_password == "eight-or-more"
    for wrong in ("", "seven77"):
        monkeypatch.setenv("WORKSHOP_PASSWORD", wrong)
        with pytest.raises(SystemExit, match="Set WORKSHOP_PASSWORD"):
            run_config(Settings())
    monkeypatch.delenv("WORKSHOP_AS_ROOT")
    monkeypatch.setattr("os.geteuid", lambda: 0, raising=False)
    with pytest.raises(SystemExit, match="as a user of its own"):
        run_config(Settings())


def test_a_name_in_the_hub_cannot_leave_its_folder(hub: dict[str, Any]) -> None:
    """By `match`, which is what JupyterHub's `Authenticator.validate_username` calls."""
    pattern = re.compile(hub["c"].Authenticator.username_pattern)
    for name in ("anna", "anna-2", "李明", "x" * 32):
        assert pattern.match(name)
    for name in ("..", "a/b", "a/../../b", "", "a b", "anna\n", "a.b", "x" * 33):
        assert not pattern.match(name)


@pytest.mark.skipif(sys.platform != "linux", reason="kernels talk through files on Linux")
def test_a_kernels_socket_has_a_path_for_every_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    long = tmp_path / ("x" * 60)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    hub, places = request.getfixturevalue("hub"), set()
    names = ["anna", "x" * 32, "я" * 20, "李" * 32, "𐍈" * 32]
    for name in names:
        assert re.match(hub["c"].Authenticator.username_pattern, name)
        seat = SimpleNamespace(user=SimpleNamespace(name=name), environment={})
        hub["prepare"](seat)
        place = Path(seat.environment["JUPYTER_RUNTIME_DIR"])
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(place / f"kernel-{uuid.uuid4()}-ipc-12"))
        places.add(place)
    assert len(places) == len(names)


@pytest.mark.skipif(sys.platform != "linux", reason="limits are set on Linux")
def test_a_server_in_the_hub_has_limits(
    hub: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    limits = {resource.RLIMIT_NPROC: 1000, resource.RLIMIT_DATA: resource.RLIM_INFINITY}
    monkeypatch.setattr("resource.getrlimit", lambda kind: (limits[kind], limits[kind]))
    calls: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr("resource.setrlimit", calls.__setitem__)
    hub["Seat"]().make_preexec_fn("anna")()
    assert calls == {
        resource.RLIMIT_NPROC: (1000, 1000),  # lower already
        resource.RLIMIT_DATA: (2_000_000_000, 2_000_000_000),
    }
    settings = hub["c"]
    assert hub["PROCESSES"] == 100 * settings.JupyterHub.active_server_limit == 4000
    assert "--ServerApp.terminals_enabled=False" in settings.Spawner.args
    assert {"cull_idle_timeout", "shutdown_no_activity_timeout"} <= {
        one.partition("=")[0].rpartition(".")[2] for one in settings.Spawner.args
    }


def test_the_hubs_lock_adds_to_the_courses_and_repeats_nothing() -> None:
    def pins(path: Path) -> dict[str, Requirement]:
        lines = path.read_text("utf-8").splitlines()
        requirements = [Requirement(line) for line in lines if not line.startswith("#")]
        return {canonicalize_name(one.name): one for one in requirements}

    added = pins(TEACHING / "requirements.lock")
    assert not set(added) & set(pins(ROOT / "requirements.lock"))
    assert str(added["jupyterhub"].specifier) == "==6.1.1"
    assert all(str(one.specifier).startswith("==") for one in added.values())


def test_the_proxys_lock_is_whole_and_names_no_registry() -> None:
    wanted = json.loads((TEACHING / "package.json").read_text("utf-8"))
    text = (TEACHING / "package-lock.json").read_text("utf-8")
    locked = json.loads(text)["packages"]
    for name, version in wanted["dependencies"].items():
        assert locked[f"node_modules/{name}"]["version"] == version
    assert all(one.get("integrity") for name, one in locked.items() if name)
    assert "resolved" not in text
    kept = (TEACHING / ".npmrc").read_text("utf-8").strip()
    assert kept == "omit-lockfile-registry-resolved=true"
