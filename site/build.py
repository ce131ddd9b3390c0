"""Build the site: pages by Sphinx, and beside them what their panels run on.

    make site

`npm ci` in this folder and the packages of `requirements.lock` come first; `make site`
sees to both. Nothing in the pages asks another host.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import files
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import figure_pages
import fonts
import frames
import front_page
import metadata
import pdf
import pictures
import policy
import prerender
import search_index
import static_controls
from sphinx.cmd.build import build_main

from llmtrain_course.kit.ids import CHAPTERS

HERE = Path(__file__).parent
ROOT = HERE.parent
SITE = ROOT / "build" / "site"
MODULES = HERE / "node_modules"

PACKAGES = ["llmtrain_helpers", "llmtrain_course", "research"]
"""What a page's Python imports."""

PYODIDE = [
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
]


def main() -> int:
    """Build everything anew; the exit status is Sphinx's."""
    os.environ["LLMTRAIN_RUN"] = "example"  # whatever run a maintainer keeps here
    shutil.rmtree(SITE, ignore_errors=True)
    doctrees = str(SITE.with_name("doctrees"))
    options = ["-q", "-W", "--keep-going", "-a", "-E", "-d", doctrees, "-c", str(HERE)]
    status = build_main([*options, "-b", "html", str(ROOT), str(SITE)])
    if status == 0:
        add_python(SITE)
        pictures.write(SITE)
        (SITE / ".nojekyll").touch()
        for macros in SITE.glob("_static/*-macros.html"):  # the theme's, not pages
            macros.unlink()
        front_page.write(SITE, metadata.SOURCE)
        fonts.add_fonts(SITE)
        shutil.copy(ROOT / "notebooks" / "course.png", SITE / metadata.PICTURE)
        metadata.describe(SITE, front_page.DESCRIPTION)
        prerender.prerender(SITE)
        search_index.write(SITE)
        static_controls.add_controls(SITE)
        frames.add_frames(SITE)
        figure_pages.write(SITE)
        drop_unused_styles(SITE)
        policy.add_policies(SITE)
        pdf.print_all(SITE)
        add_service_worker(SITE)
        print(f"The site is in {SITE.relative_to(ROOT)}: make site-serve shows it.")
    return status


def add_python(site: Path) -> None:
    """Add Pyodide's core, and the course's package with what its exercises import."""
    (site / "pyodide").mkdir()
    for name in PYODIDE:
        shutil.copy(MODULES / "pyodide" / name, site / "pyodide")
    with ZipFile(site / "course.zip", "w", ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path in sorted((ROOT / package).rglob("*.py")):
                archive.write(path, path.relative_to(ROOT))
        for path in sorted((ROOT / "data").rglob("*")):
            archive.write(path, Path("llmtrain_helpers", path.relative_to(ROOT)))
        for path in files("termcolor") or []:
            if path.suffix in {".py", ""} and "__pycache__" not in path.parts:
                archive.write(path.locate(), path)
    imported = set((site / "pyodide").glob("*.mjs"))  # not fetched, and not counted
    fetched = {site / "course.zip", *(site / "pyodide").iterdir()} - imported
    replace_in(site / "_static/worker.js", "WHOLE = 1;", f"WHOLE = {sum(map(size, fetched))};")


def drop_unused_styles(site: Path) -> None:
    """Leave out of the themes' styles what no page and no script has the words of."""
    used = [f"{site}/**/*.html", f"{site}/_static/**/*.js"]
    for pattern in ("styles/*theme.css", "basic.css", "mystnb.*.css"):
        for path in (site / "_static").glob(pattern):
            command = [MODULES / ".bin" / "purgecss", "--css", path, "--content", *used]
            subprocess.run([*command, "--output", path.parent], check=True)


def size(path: Path) -> int:
    """A file's bytes."""
    return path.stat().st_size


ASKED = re.compile(r'<(?:link|script|img)\b[^>]*?\b(?:href|src)="([^"#?:]+)"')
"""What a page asks for beside itself."""


def offline_files(site: Path) -> list[str]:
    """The addresses of the front page, the chapters and all that they ask for."""
    pages = [site / "index.html", *(site / f"notebooks/{word}.html" for word in CHAPTERS)]
    asked = {path.parent / one for path in pages for one in ASKED.findall(path.read_text("utf-8"))}
    later = {site / f"_static/{name}.js" for name in ("present", "worker")}
    files = {path.resolve() for path in {*pages, *asked, *later}}
    files |= {*site.resolve().glob(f"_static/{fonts.ITALIC}.woff2")}
    return ["./", *sorted(x.relative_to(site.resolve()).as_posix() for x in files if x.is_file())]


def add_service_worker(site: Path) -> None:
    """Put the worker that keeps the pages beside them, with this edition's word and files."""
    edition = sha256()
    for path in sorted(site.rglob("*")):
        if path.is_file():
            edition.update(path.read_bytes())
    shutil.move(site / "_static/offline.js", site / "offline.js")
    replace_in(site / "offline.js", '"edition"', f'"{edition.hexdigest()[:12]}"')
    replace_in(site / "offline.js", "FILES = []", f"FILES = {json.dumps(offline_files(site))}")


def replace_in(path: Path, was: str, now: str) -> None:
    """Change one line of a file; a ValueError where it is not there."""
    text = path.read_text("utf-8")
    if was not in text:
        raise ValueError(f"{path.name} has no {was}")
    path.write_text(text.replace(was, now, 1), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
