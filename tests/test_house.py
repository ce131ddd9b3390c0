"""The house: floors, one list of dependencies, the wheel, and what stays out."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Collection
from contextlib import suppress
from dataclasses import FrozenInstanceError, fields, is_dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TypeGuard

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import llmtrain_helpers as package
from llmtrain_course.kit.drawing import CARD, COLORS, EDGE, GREY, INK
from llmtrain_course.kit.panel import WORDS
from tests.paths import ROOT, tracked
from tools import test as everything
from tools.notebooks import all_notebooks

PACKAGE, COURSE = ROOT / "llmtrain_helpers", ROOT / "llmtrain_course"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT, GROUPS = SETTINGS["project"], SETTINGS["dependency-groups"]

GROUND = ["checks", "deprecated", "results", "units"]
ABOVE = ["plan", "calendar", "budget", "published", "frameworks", "command", "__main__"]
"""What stands on the formulas, from the ground up."""

MOVED = {"exercises", "panels"}
"""Old places of the course's modules: importing one is an error that names the new place."""

CHAPTERS = sorted({path.parent.name for path in COURSE.glob("*/pictures.py")})

PYTORCH = ["model", "ledger", "counting", "training", "memory", "timing", "parallel", "record"]
"""Parts of `measure` that import PyTorch, from the ground up: only when it is used."""

WITHOUT = ["trace", "clock", "recorded"]
"""Parts of it that need no PyTorch: what they read or simulate is there already."""

LAYERS = [
    [f"llmtrain_helpers.{name}" for name in GROUND],
    ["llmtrain_helpers"],
    *([f"llmtrain_helpers.{name}"] for name in ABOVE),
    ["research"],
    ["llmtrain_course.kit"],
    [f"llmtrain_course.{name}" for name in CHAPTERS],
    ["llmtrain_course"],
    ["tools"],
    ["teaching"],
    ["site"],
]
"""Every import goes down this list, or stays in its row. A package stands for all of its
modules that don't have a row of their own."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def scripts() -> list[Path]:
    """The files of the top rows, without the site's tests."""
    paths = [path for top in ("tools", "teaching", "site") for path in (ROOT / top).glob("*.py")]
    return [path for path in sorted(paths) if not path.name.startswith(("test_", "conftest"))]


def everything_imported() -> list[Path]:
    return [*modules(), *sorted(COURSE.rglob("*.py")), *sorted((ROOT / "research").glob("*.py"))]


def layer(name: str) -> int:
    """The row of LAYERS that a module is in."""
    rows = {x: number for number, row in enumerate(LAYERS) for x in row}
    return rows[max((x for x in rows if f"{name}.".startswith(f"{x}.")), key=len)]


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def imports(path: Path, anywhere: bool = False) -> frozenset[str]:
    """Modules that a file imports when it is imported itself, or anywhere in it."""
    names = set()
    tree = syntax(path)
    for node in ast.walk(tree) if anywhere else tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def room(path: Path) -> str:
    """The module or folder directly under the package that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


ROOMS = sorted({room(path) for path in modules()} - {"__init__", "__main__", *MOVED})
FORMULAS = [name for name in ROOMS if name not in ("published", "command")]


def own(names: Collection[str]) -> set[str]:
    """The rooms among them: `llmtrain_helpers.plan.step.maximum` is plan."""
    parts = [n.split(".") for n in names if n.startswith("llmtrain_helpers.")]
    return {part[1] for part in parts} & set(ROOMS)


def foreign(names: Collection[str]) -> set[str]:
    tops = {name.split(".")[0] for name in names}
    return tops - set(sys.stdlib_module_names) - {"llmtrain_helpers", "llmtrain_course", "research"}


def of_room(name: str) -> list[Path]:
    return [path for path in modules() if room(path) == name]


@cache
def arrows() -> dict[str, set[str]]:
    """Which rooms each room imports, inside functions too."""
    targets: dict[str, set[str]] = {}
    for path in modules():
        taken = own(imports(path, anywhere=True)) - {room(path)}
        targets.setdefault(room(path), set()).update(taken)
    return targets


def test_no_circle_leads_from_a_room_back_to_it() -> None:
    TopologicalSorter({name: arrows()[name] for name in ROOMS}).prepare()


def runtime_imports(path: Path) -> set[str]:
    """Modules that a file imports when it runs, inside functions too: no types of annotations."""
    tree = ast.parse(path.read_text("utf-8"))
    tree.body = [node for node in tree.body if not isinstance(node, ast.If)]  # TYPE_CHECKING
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_no_circle_leads_from_a_module_back_to_it() -> None:
    dotted = {".".join(x.relative_to(ROOT).with_suffix("").parts): x for x in modules()}
    names = {name.removesuffix(".__init__"): path for name, path in dotted.items()}
    del names["llmtrain_helpers"]  # imports each module lazily
    below = {name: runtime_imports(path) & names.keys() for name, path in names.items()}
    TopologicalSorter(below).prepare()


def test_there_are_few_rooms_on_few_floors() -> None:
    below = arrows()

    def floor(name: str) -> int:
        return 1 + max(map(floor, below[name]), default=0)

    # A bar against slow growth, no law: 22 rooms on 10 floors as this is written, and
    # room for a chapter or two. Whoever needs more raises it knowingly.
    assert len(ROOMS) <= 27
    assert max(map(floor, ROOMS)) <= 12


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_import_formulas_and_nothing_foreign(name: str) -> None:
    for path in of_room(name):
        assert not foreign(imports(path)), path.name
        assert own(imports(path, anywhere=True)) <= set(FORMULAS), path.name


@pytest.mark.parametrize("module", ["units", "checks", "results"])
def test_words_and_checks_know_no_chapter(module: str) -> None:
    taken = imports(PACKAGE / f"{module}.py", anywhere=True)
    own = [name for name in taken if name.startswith("llmtrain_helpers")]
    assert all(name.startswith("llmtrain_helpers.checks") for name in own)


@pytest.mark.parametrize(
    "path", [*everything_imported(), *scripts()], ids=lambda p: str(p.relative_to(ROOT))
)
def test_imports_only_go_down(path: Path) -> None:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    ours = ("llmtrain_helpers", "llmtrain_course", "research", "tools", "teaching", "site")
    targets = {x for x in imports(path, anywhere=True) if x and x.split(".")[0] in ours}
    public = {f"llmtrain_helpers.{x}" for x in package.__all__} | {"llmtrain_helpers"}
    for target in targets - public if path != PACKAGE / "__init__.py" else ():
        assert layer(target) <= layer(name), target


@pytest.mark.parametrize("name", PYTORCH)
def test_measure_has_pytorch_beside_it_and_imports_only_downwards(name: str) -> None:
    taken = imports(COURSE / "measure" / f"{name}.py")
    assert foreign(taken) <= {"torch"}
    parts = {n.split(".")[2] for n in taken if n.startswith("llmtrain_course.measure.")}
    above = set(PYTORCH[PYTORCH.index(name) :])
    assert not parts & above


def needs_only_the_standard_library() -> list[Path]:
    """What runs in a web page: all but the widget, the figures, and what runs PyTorch."""
    exempt = [COURSE / "kit/widget.py", COURSE / "exercises.py", COURSE / "kit/exercise.py"]
    exempt += [COURSE / "measure" / f"{name}.py" for name in (*PYTORCH, "__init__")]
    paths = [path for path in everything_imported() if path.name != "figures.py"]
    return [path for path in paths if path not in exempt]


@pytest.mark.parametrize(
    "path", needs_only_the_standard_library(), ids=lambda p: str(p.relative_to(ROOT))
)
def test_the_rest_needs_only_the_standard_library(path: Path) -> None:
    assert foreign(imports(path)) <= {"termcolor"}


def test_the_package_offers_the_same_names_to_python_and_to_type_checkers() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    [typed] = [node for node in tree.body if isinstance(node, ast.If)]
    names = {a.asname or a.name for node in typed.body for a in node.names}
    assert names == set(dir(package))
    assert set(package.__all__) <= names
    for name in names:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'gpt_parameter'"):
        package.gpt_parameter  # noqa: B018


@pytest.mark.parametrize("path", everything_imported(), ids=lambda p: str(p.relative_to(ROOT)))
def test_public_names_are_documented(path: Path) -> None:
    tree = syntax(path)
    assert ast.get_docstring(tree)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in [*tree.body, *(item for item_class in classes for item in item_class.body)]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            assert ast.get_docstring(node) or node.name.startswith("_"), node.name


def dataclasses_of(path: Path) -> list[type]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    home = ".".join(parts).removesuffix(".__init__")
    values = vars(import_module(home)).values()
    return [kind for kind in values if is_dataclass(kind) and kind.__module__ == home]


KINDS = [kind for name in FORMULAS for path in of_room(name) for kind in dataclasses_of(path)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_formulas_take_and_give_is_frozen(kind: type) -> None:
    thing = object.__new__(kind)
    for item in fields(kind):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, item.name, 1)


def test_there_are_dataclasses_on_the_first_floor() -> None:
    assert {"Transformer", "Interval", "Plan"} <= {kind.__name__ for kind in KINDS}


# --- one list of dependencies


@cache
def lock() -> dict[str, list[Requirement]]:
    pinned: dict[str, list[Requirement]] = {}
    for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines():
        requirement = Requirement(line)
        pinned.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return pinned


def wanted() -> list[Requirement]:
    lines = PROJECT["optional-dependencies"]["notebooks"] + GROUPS["dev"]
    return [Requirement(line) for line in lines]


def test_the_formulas_alone_depend_on_nothing() -> None:
    assert PROJECT["dependencies"] == []
    assert {*PROJECT["optional-dependencies"]} == {"notebooks", "torch", "yaml"}  # what users need
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "--extra notebooks --group dev pyproject.toml -o requirements.lock" in makefile


def test_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    [phony] = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)", makefile, re.MULTILINE)
    targets = re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE)
    assert sorted(targets) == sorted(phony.replace("\\", "").split())


@pytest.mark.parametrize("requirement", wanted(), ids=lambda r: r.name)
def test_the_lock_pins_what_the_project_needs(requirement: Requirement) -> None:
    pins = lock()[canonicalize_name(requirement.name)]
    for pin in pins:
        [exact] = pin.specifier
        assert exact.operator == "=="
        assert requirement.specifier.contains(exact.version)


def test_the_lock_is_what_is_installed() -> None:
    for name, pins in lock().items():
        fitting = [pin for pin in pins if not pin.marker or pin.marker.evaluate()]
        for pin in fitting:
            assert pin.specifier.contains(version(name), prereleases=True), name


def test_the_lock_names_no_registry_and_no_pytorch() -> None:
    text = (ROOT / "requirements.lock").read_text("utf-8")
    assert "://" not in text
    assert "torch" not in lock()


def test_conda_and_make_use_the_same_lock() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    python, pip, through_pip = environment["dependencies"]
    assert pip == "pip"
    assert through_pip["pip"] == ["-r requirements.lock", "-e ."]
    assert python.removeprefix("python=") in PROJECT["requires-python"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "-r requirements.lock" in makefile
    workflow = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    assert "-r requirements.lock" in workflow


def test_the_workflow_runs_every_python_that_the_readme_names() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    pythons = workflow["jobs"]["linux"]["strategy"]["matrix"]["python"]
    assert pythons == [f"3.{minor}" for minor in range(11, 15)]
    readme = (ROOT / "README.md").read_text("utf-8")
    versions = re.findall(r"(?<!python=)(?<!python)\b(3\.\d\d)\b", readme)
    assert set(versions) <= set(pythons)
    assert {pythons[0], pythons[-1]} <= set(versions)
    assert PROJECT["requires-python"] == f">={pythons[0]}"


@pytest.mark.parametrize("name", ["ci", "pages"])
def test_a_workflow_may_do_nothing_but_what_a_job_says(name: str) -> None:
    """And its actions are named by commit, with the version beside it."""
    text = (ROOT / f".github/workflows/{name}.yml").read_text("utf-8")
    flow = yaml.safe_load(text)
    assert flow["permissions"] == {}
    assert all(job["permissions"] for job in flow["jobs"].values())
    used = re.findall(r"uses: (.*)", text)
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_everything_is_run_by_one_command_everywhere() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    workflow = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    assert all("python tools/test.py" in text for text in (makefile, workflow, readme))


def test_the_linters_write_nothing_where_they_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: path != ROOT)
    assert everything.environment()["RUFF_NO_CACHE"] == "true"
    assert everything.environment()["MYPY_CACHE_DIR"] == os.devnull


def test_pages_are_built_with_the_pyodide_that_the_site_has() -> None:
    flow = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text("utf-8"))
    assert flow[True]["push"] == {"branches": ["main"]}  # YAML reads `on` as true
    build, deploy = flow["jobs"]["build"], flow["jobs"]["deploy"]
    assert build["permissions"] == {"contents": "read"}
    assert deploy["permissions"] == {"pages": "write", "id-token": "write"}
    site = json.loads((ROOT / "site/package.json").read_text("utf-8"))
    number = site["dependencies"]["pyodide"]
    assert f"/v{number}/" in build["env"]["PYODIDE_PACKAGES"]
    commands = [step.get("run") for step in build["steps"]]
    assert commands.index("make site-test") < commands.index("make lite")
    assert re.search("^lite:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert build["steps"][-1]["with"] == {"path": "build/site"}
    assert deploy["needs"] == "build"


@pytest.mark.parametrize("name", ["requirements", "lite-requirements"])
def test_the_sites_locks_name_no_registry_and_fit_the_courses(name: str) -> None:
    text = (ROOT / f"site/{name}.lock").read_text("utf-8")
    assert "://" not in text
    for line in text.splitlines():
        pin = Requirement(line)
        pins = lock().get(canonicalize_name(pin.name), [])
        assert not pins or pin.specifier in [other.specifier for other in pins], line


def test_the_version_is_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert citation["version"] == package.__version__ == PROJECT["version"]
    assert re.findall(r"(?m)^## (\S+)", changes)[0] == PROJECT["version"]
    assert citation["authors"] == PROJECT["authors"]


def test_the_classifiers_name_the_pythons_that_are_tested() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    pythons = workflow["jobs"]["linux"]["strategy"]["matrix"]["python"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert named == pythons


# --- the wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of `llmtrain_helpers`, built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-X", "utf8", "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--no-index", "--wheel-dir", str(folder)]
    run([*command, str(ROOT)])
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def scripts(wheel: Path) -> Path:
    """The folder of `python` and `llmtrain`, where only the wheel is installed."""
    environment = wheel.parent / "environment"
    venv.create(environment, with_pip=False)
    folder = environment / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "python")]
    run([*pip, "install", "--quiet", "--no-index", str(wheel)])
    return folder


def test_the_wheel_has_the_package_and_its_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tables = {path.name for path in (ROOT / "data").rglob("*.csv")}
    assert tables <= {Path(name).name for name in names}
    assert "llmtrain_helpers/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"llmtrain_helpers"}
    assert not [name for name in names if "test" in name or "notebooks" in name]


def test_the_wheel_alone_reads_its_own_data(scripts: Path) -> None:
    code = (
        "import llmtrain_helpers as h; from llmtrain_helpers import published; "
        "print(h.__file__, published.data_folder(), "
        "h.count_parameters(published.architecture('gpt2')).total)"
    )
    package, data, parameters = run(isolated(scripts / "python", "-c", code)).split()
    assert package.startswith(str(scripts.parent))
    assert data.startswith(str(scripts.parent))
    assert parameters == "124439808"


def test_the_wheel_alone_plans_a_run(scripts: Path) -> None:
    version = PROJECT["version"]
    assert run([str(scripts / "llmtrain"), "--version"]) == f"llmtrain-helpers {version}\n"
    options = ["plan", "llama-3.1-8b", "--gpus", "64", "--chip", "h100", "--tokens", "1T"]
    report = run([str(scripts / "llmtrain"), *options])
    assert "64 H100 SXM train Llama-3.1-8B on 1.00 trillion tokens" in report
    assert run(isolated(scripts / "python", "-m", "llmtrain_helpers", *options)) == report


def test_importing_the_package_only_needs_the_standard_library(scripts: Path) -> None:
    code = (
        "import sys; before = {*sys.modules}; import llmtrain_helpers as h; "
        "[getattr(h, name) for name in dir(h)]; "
        "print(*{name.split('.')[0] for name in {*sys.modules} - before})"
    )
    for python in (scripts / "python", sys.executable):  # without NumPy, and next to it
        assert not foreign(run(isolated(python, "-c", code)).split())


LAZY = {
    "import llmtrain_helpers": ("plan", "model"),
    "from llmtrain_helpers.__main__ import main; main(['--help'])": ("plan", "model"),
    "from llmtrain_helpers import plan_run; "
    "plan_run('gpt2', 'A100', 8, 1e10, 512, recompute='none', zero_stage=1)": (
        *("plan.report", "plan.advice", "plan.search", "laws"),
        *("model.huggingface", "model.recurrences"),
    ),
}
"""Code that starts fast, and modules of ours that it does without, as it does without NumPy."""


@pytest.mark.parametrize(("code", "unused"), LAZY.items(), ids=["import", "--help", "a plan"])
def test_what_is_not_needed_is_not_imported(code: str, unused: tuple[str, ...]) -> None:
    modules = run([sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]).split()
    assert "llmtrain_helpers" in modules
    assert not {"numpy", *(f"llmtrain_helpers.{name}" for name in unused)} & {*modules}


def isolated(python: Path | str, *arguments: str) -> list[str]:
    """The command that runs Python without the folder and the variables of this process."""
    return [str(python), "-I", *arguments]


def run(command: list[str]) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    return done.stdout


# --- what stays out


def test_no_paths_of_a_machine_and_no_registry_hosts() -> None:
    banned = re.compile(r"/(root|work|Users)/\w|pypi\.|pythonhosted|npmjs|\.\./shared")
    for path in tracked():
        if path.suffix != ".png" and path != Path(__file__):
            match = banned.search(path.read_text("utf-8"))
            assert not match, (path.name, match)


TEXT = {"open": 2, "fdopen": 2, "read_text": 0, "write_text": 1, "read_csv": 99, "to_csv": 99}
"""What reads or writes text, and behind how many arguments its encoding stands."""


def leaves_its_encoding_open(call: ast.Call) -> bool:
    """Whether a call reads or writes text as this machine's locale would have it."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    words = {word.arg: word.value for word in call.keywords}
    if "encoding" in words:
        return False
    if name in ("run", "Popen", "check_output"):
        return "text" in words or "universal_newlines" in words
    modes = [one.value for one in (*call.args, *words.values()) if isinstance(one, ast.Constant)]
    binary = {"rb", "wb", "ab", "xb"} & {mode for mode in modes if isinstance(mode, str)}
    descriptor = ast.unparse(call.func) == "os.open"
    return name in TEXT and len(call.args) <= TEXT[name] and not binary and not descriptor


def test_what_reads_or_writes_text_names_its_encoding() -> None:
    """ruff's PLW1514 sees fewer: it must know that something is a path."""
    for path in tracked():
        if path.suffix == ".py":
            calls = [one for one in ast.walk(syntax(path)) if isinstance(one, ast.Call)]
            faults = [ast.unparse(one) for one in calls if leaves_its_encoding_open(one)]
            assert not faults, path


def test_a_text_without_its_encoding_is_found() -> None:
    for wrong in (
        "open(x)",
        'x.open("w")',
        "x.read_text()",
        "x.write_text(y)",
        "run(x, text=True)",
    ):
        call = ast.parse(wrong).body[0].value  # type: ignore[attr-defined]
        assert leaves_its_encoding_open(call), wrong
    for right in ('x.open("rb")', 'x.read_text("utf-8")', 'open(x, encoding="utf-8")', "run(x)"):
        call = ast.parse(right).body[0].value  # type: ignore[attr-defined]
        assert not leaves_its_encoding_open(call), right


PARTICIPLES = {"told", "found", "held", "said", "shown", "known"}
"""No names for a value: they tell what was done to it, and not what it is."""


def participles(tree: ast.AST) -> list[str]:
    """The arguments and variables of a file that have such a name, with their lines."""
    names = [(n.id, n.lineno) for n in ast.walk(tree) if is_assigned(n)]
    names += [(n.arg, n.lineno) for n in ast.walk(tree) if isinstance(n, ast.arg)]
    names += [(n.name, n.lineno) for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler)]
    return [f"{name}, line {line}" for name, line in names if name in PARTICIPLES]


def is_assigned(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def test_values_are_named_by_nouns() -> None:
    for path in tracked():
        if path.suffix == ".py":
            assert not participles(syntax(path)), path


def cells_that_are_python(path: Path) -> dict[str, ast.Module]:
    """A notebook's code cells by their ids, but for those with magics, which don't parse."""
    cells = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            with suppress(SyntaxError):
                cells[cell["id"]] = ast.parse("".join(cell["source"]))
    return cells


@pytest.mark.parametrize("path", all_notebooks(), ids=lambda p: str(p.relative_to(ROOT)))
def test_values_in_cells_are_named_by_nouns(path: Path) -> None:
    for name, cell in cells_that_are_python(path).items():
        assert not participles(cell), name


def test_a_cell_with_a_magic_is_left_out(tmp_path: Path) -> None:
    sources = {"a": ["told = 1\n", "print(told)"], "b": "%time found = 1"}
    cells = [{"cell_type": "code", "id": key, "source": x} for key, x in sources.items()]
    (path := tmp_path / "notebook.ipynb").write_text(json.dumps({"cells": cells}), "utf-8")
    names = {key: participles(cell) for key, cell in cells_that_are_python(path).items()}
    assert names == {"a": ["told, line 1"]}


@pytest.mark.parametrize(
    "wrong",
    [
        "told = 1",
        "a, found = b",
        "held: int = 1",
        "def f(*, said): pass",
        "[shown for shown in a]",
        "with open(a) as known: pass",
        "lambda told: 1",
        "if (found := 1): pass",
        "try: pass\nexcept KeyError as said: pass",
    ],
)
def test_a_participle_is_found_wherever_a_name_is_assigned(wrong: str) -> None:
    assert len(participles(ast.parse(wrong))) == 1
    assert not participles(ast.parse("a.told = told(found=1)"))


def test_no_caches_and_no_large_files_are_committed() -> None:
    for path in tracked():
        assert not re.search(r"__pycache__|\.ipynb_checkpoints|\.egg-info", str(path))
        assert path.stat().st_size < 1_000_000, path.name


def test_the_top_level_is_what_the_readme_says() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in ("notebooks/", "llmtrain_helpers/", "data/", "tests/"):
        assert f"`{name}`" in readme


# --- one colour and one word for one thing


@pytest.mark.parametrize(
    "path", sorted(COURSE.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT))
)
def test_colours_come_from_one_table(path: Path) -> None:
    if path in (COURSE / "kit/drawing.py", COURSE / "kit/figures.py"):
        return  # they define them
    colors = {*COLORS.values(), INK, CARD, EDGE, GREY, "#FFFFFF", "#000000"}
    colors = set() if path.name == "figures.py" else colors
    assert {*re.findall(r"#[0-9A-F]{6}\b", path.read_text("utf-8"))} <= colors


def test_each_part_has_one_word_with_a_colour_and_an_entry() -> None:
    """In drawings, panels and the glossary alike."""
    assert set(WORDS.values()) <= set(COLORS)
    glossary = (ROOT / "notebooks" / "glossary.ipynb").read_text("utf-8").casefold()
    for word in set(COLORS) - {"idle", "recomputed", "memory"}:
        assert re.search(rf"### {word.casefold().removesuffix('s')}|\*\*{word}", glossary), word
