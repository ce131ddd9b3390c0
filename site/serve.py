"""Serve the built site: `make site-serve`; to a room, `make site-serve ARGS="--bind 0.0.0.0"`.

What is text is sent compressed, so that thirty laptops that start Python fetch half of what
the files weigh. `--thirty` asks for everything as thirty browsers do at once, and says how
long it took.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

SITE = Path(__file__).parents[1] / "build" / "site"

SMALLER = {".html", ".css", ".js", ".mjs", ".json", ".svg", ".wasm", ".txt", ".xml"}
"""What compression makes smaller; archives, PDFs and typefaces are small already."""

FIRST = ["index.html", "notebooks/start_here.html"]
"""The pages that a browser asks for before it starts Python."""

ASKED = re.compile(r'(?:href|src)="(?:\.\./)?(_static/[^"?]+\.(?:js|css|woff2))')
"""What a page asks for in its turn."""


@cache
def compressed(path: Path, changed: float) -> bytes:
    """A file as gzip; once for each of its versions."""
    return gzip.compress(path.read_bytes(), 6)


class Pages(SimpleHTTPRequestHandler):
    """A file server that compresses."""

    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        """Answer until the browser is done, or gone."""
        with suppress(ConnectionError):
            super().handle()

    def send_head(self) -> Any:
        """The head of an answer, and what follows it."""
        path = Path(self.translate_path(self.path))
        accepts = "gzip" in self.headers.get("Accept-Encoding", "")
        try:
            if not (accepts and path.suffix in SMALLER and path.is_file()):
                return super().send_head()
            changed = path.stat().st_mtime
            body = compressed(path, changed)
        except (OSError, ValueError):  # a name that no file can have
            return self.send_error(404)
        if self.has(changed):
            self.send_response(304)
            self.end_headers()
            return None
        self.send_response(200)
        self.send_header("Last-Modified", self.date_time_string(int(changed)))
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return BytesIO(body)

    def send_error(self, code: int, *about: Any) -> None:
        """Answer with our own page where there's none of that name."""
        lost = Path(self.directory, "404.html")
        if code != 404 or not lost.is_file():
            super().send_error(code, *about)
            return
        body = lost.read_bytes().replace(b'"./', b'"/')  # however deep the name was
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def has(self, changed: float) -> bool:
        """Tell whether the browser says that it has a file as new as this."""
        try:
            since = parsedate_to_datetime(self.headers["If-Modified-Since"])
            return since.timestamp() >= int(changed)
        except (TypeError, ValueError, OverflowError):  # it has none, or says no date
            return False

    def log_message(self, *about: Any) -> None:
        """Say nothing of each file."""


def make_server(bind: str, port: int, site: Path = SITE) -> ThreadingHTTPServer:
    """A server of the site, not yet at work."""
    server = ThreadingHTTPServer((bind, port), partial(Pages, directory=str(site)))
    server.daemon_threads = True
    return server


def thirty(address: str, browsers: int = 30) -> tuple[float, int]:
    """Measure the seconds until so many browsers have all they need, and the bytes sent."""
    python = [f"pyodide/{path.name}" for path in sorted((SITE / "pyodide").iterdir())]
    pages = [(SITE / name).read_text("utf-8") for name in FIRST]
    asked = {name for page in pages for name in ASKED.findall(page)}
    names = [*FIRST, *sorted(asked), "_static/worker.js", "course.zip", *python]

    def browse(_: int) -> int:
        return sum(fetch(f"{address}/{name}") for name in names)

    begun = time.monotonic()
    with ThreadPoolExecutor(browsers) as pool:
        total = sum(pool.map(browse, range(browsers)))
    return time.monotonic() - begun, total


def fetch(address: str) -> int:
    """The bytes of one answer, as they travel."""
    with urlopen(Request(address, headers={"Accept-Encoding": "gzip"})) as answer:
        return len(answer.read())


def main(options: Sequence[str]) -> int:
    """Serve until somebody stops it, or measure thirty browsers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bind", default="127.0.0.1", help="0.0.0.0: to all in the room")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--thirty", action="store_true", help="thirty browsers, then stop")
    given = parser.parse_args(options)
    server = make_server(given.bind, 0 if given.thirty else given.port)
    here = f"http://{server.server_address[0]}:{server.server_port}"
    if given.thirty:
        Thread(target=server.serve_forever, daemon=True).start()
        seconds, total = thirty(here)
        print(f"30 browsers: {seconds:.1f} s, {total / 30e6:.1f} MB each, {total / 1e6:.0f} in all")
        return 0
    print(f"The course is at {here}, until Ctrl+C.", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
