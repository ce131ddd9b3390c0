"""JupyterLite below the site: the notebooks with a kernel of their own, in a browser.

    make lite                              # nothing asks another host; no NumPy
    make lite PYODIDE_PACKAGES=ADDRESS     # NumPy, pandas and matplotlib from there

The kernel is the site's Pyodide, with a lock of its own: what the kernel and the course
are made of lies beside it as wheels, all else at the address, or nowhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from tools.notebooks import all_notebooks

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
LAB = SITE / "lab"
WHEELS = LAB / "wheels"
STAGE = ROOT / "build" / "lite"

BASE = os.environ.get("PYODIDE_PACKAGES", "")
"""Where Pyodide's own distribution lies; empty: its compiled packages are left out."""

COMPILED = ["numpy", "pandas", "matplotlib"]
COURSE = "llmtrain-helpers"
PACKAGES = ["llmtrain_course", "research"]

FETCHED = {
    "anywidget": ["ipywidgets", "psygnal", "typing-extensions"],
    "comm": [],
    "ipywidgets": ["comm", "ipython", "jupyterlab-widgets", "widgetsnbextension"],
    "jupyterlab-widgets": [],
    "psygnal": [],
}
"""What Pyodide's distribution lacks, in the installed version, and what it needs."""

SHIPPED = {
    "ipykernel": ["pyodide-kernel"],
    "piplite": ["micropip"],
    "pyodide-kernel": ["comm", "ipython"],
    "widgetsnbextension": [],
}
"""What comes with JupyterLite's kernel, and what it needs."""

OWN = {**FETCHED, **SHIPPED, COURSE: ["anywidget", "termcolor"]}
OWN[COURSE] += COMPILED if BASE else []
PLACE = "<!-- lab -->"
LINK = ' Or <a href="lab/index.html">JupyterLab in this browser</a>.'
"""Where the front page says what, once the lab is there."""

STARTED = ["micropip", *SHIPPED, "comm", "jedi", "ipython"]
"""What is there when the kernel starts; all else when a cell imports it."""

Lock = dict[str, Any]


def main() -> None:
    """Build everything anew, below a site that is there."""
    for folder in (LAB, STAGE):
        shutil.rmtree(folder, ignore_errors=True)
    stage_notebooks()
    build()
    lock = json.loads((SITE / "pyodide" / "pyodide-lock.json").read_text("utf-8"))
    add_wheels(lock["packages"])
    (WHEELS / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")
    front = SITE / "index.html"
    front.write_text(front.read_text("utf-8").replace(PLACE, LINK), "utf-8")
    print(f"The lab is in {LAB.relative_to(ROOT)}: make lite-serve shows it.")


def stage_notebooks() -> None:
    """The notebooks and what they link to, where JupyterLite takes its files from."""
    linked = (ROOT / "notebooks/course.png", ROOT / "data/README.md")
    for path in (*all_notebooks(), *linked):
        copy = STAGE / "files" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


def build() -> None:
    """Build JupyterLite with its settings, all of them as JSON."""
    kernel = {
        "pyodideUrl": "./../pyodide/pyodide.mjs",
        "disablePyPIFallback": not BASE,
        "loadPyodideOptions": {"lockFileURL": "wheels/pyodide-lock.json", "packages": STARTED},
    }
    plugins = {"@jupyterlite/pyodide-kernel-extension:kernel": kernel}
    page = {"appName": "What will it take?", "litePluginSettings": plugins}
    options = {
        "output_dir": str(LAB),
        "apps": ["lab"],
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
    }
    _write("jupyter-lite.json", {"jupyter-config-data": page})
    _write("jupyter_lite_config.json", {"LiteBuildConfig": options})
    command = [sys.executable, "-m", "jupyterlite_core", "build"]
    with (STAGE / "build.log").open("wb") as log:
        subprocess.run(command, cwd=STAGE, stdout=log, check=True)


def _write(name: str, content: object) -> None:
    (STAGE / name).write_text(json.dumps(content), "utf-8")


# --- wheels


def add_wheels(packages: dict[str, Lock]) -> None:
    """The kernel's and the course's wheels, and the lock's packages to fit them."""
    beside = needed(packages, [*STARTED, *OWN])
    fetch(packages, beside)
    for name in {*packages} - beside:
        packages[name]["file_name"] = BASE + packages[name]["file_name"]
        if not BASE:
            del packages[name]
    for wheel in sorted(WHEELS.glob("*.whl")):
        name, version = normal(wheel.name.split("-")[0]), wheel.name.split("-")[1]
        entry = packages.setdefault(name, {"name": name, "depends": OWN.get(name, [])})
        entry |= {
            "install_dir": "site",
            "package_type": "package",
            "version": version,
            "imports": imports(wheel),
            "unvendored_tests": False,
            "file_name": wheel.name,
            "sha256": sha256(wheel.read_bytes()).hexdigest(),
        }


def needed(packages: dict[str, Lock], names: list[str]) -> set[str]:
    """These packages and what they need, but for what is compiled."""
    closure: set[str] = set()
    todo = [normal(name) for name in names]
    while todo:
        name = todo.pop()
        if name not in {*closure, *COMPILED}:
            closure.add(name)
            depends = OWN[name] if name in OWN else packages[name]["depends"]
            todo += map(normal, depends)
    return closure


def fetch(packages: dict[str, Lock], names: set[str]) -> None:
    """Fetch wheels in Pyodide's versions and in ours, of the kernel, and of the course."""
    pip = [sys.executable, "-m", "pip"]
    pins = [f"{name}=={metadata.version(name)}" for name in FETCHED]
    pins += [f"{name}=={packages[name]['version']}" for name in sorted(names - {*OWN})]
    to = ["--quiet", "--no-deps", f"--dest={WHEELS}", "--only-binary=:all:"]
    python = ["--python-version=3.14", "--platform=any", "--abi=none"]
    subprocess.run([*pip, "download", *to, *python, *pins], check=True)
    to = ["--quiet", "--no-deps", f"--wheel-dir={WHEELS}", "--no-build-isolation"]
    subprocess.run([*pip, "wheel", *to, str(ROOT)], check=True)
    [wheel] = WHEELS.glob("llmtrain_helpers-*.whl")
    with ZipFile(wheel, "a", ZIP_DEFLATED) as archive:  # the wheel has the formulas alone
        for path in sorted(x for name in PACKAGES for x in (ROOT / name).rglob("*.*")):
            if path.suffix in {".py", ".js", ".css"}:
                archive.write(path, path.relative_to(ROOT))
    for name in SHIPPED:
        wheels = LAB.glob(f"extensions/**/pypi/{name.replace('-', '_')}-*.whl")
        shutil.copy(max(wheels), WHEELS)


def imports(wheel: Path) -> list[str]:
    """The names that a wheel can be imported by."""
    with ZipFile(wheel) as archive:
        files = [name for name in archive.namelist() if name.endswith(".py")]
    return sorted({name.partition("/")[0].removesuffix(".py") for name in files})


def normal(name: str) -> str:
    """A package's name as the lock's keys have it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
