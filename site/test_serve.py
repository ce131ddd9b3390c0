"""The server of the site: what travels is compressed, and is the same when it is opened.

make site-test
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from threading import Thread
from urllib.request import Request, urlopen

import pytest
import serve
from driven import SITE


@pytest.fixture(scope="module")
def here() -> Iterator[str]:
    """The site's own server."""
    server = serve.served("127.0.0.1", 0)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize("name", ["index.html", "pyodide/pyodide.asm.wasm", "_static/live.js"])
def test_text_is_sent_compressed_and_is_the_file(here: str, name: str) -> None:
    with urlopen(Request(f"{here}/{name}", headers={"Accept-Encoding": "gzip"})) as answer:
        body = answer.read()
        assert answer.headers["Content-Encoding"] == "gzip"
    with urlopen(f"{here}/{name}") as answer:
        plain = answer.read()
        assert answer.headers["Content-Encoding"] is None
    assert gzip.decompress(body) == plain == (SITE / name).read_bytes()
    assert len(body) < 0.6 * len(plain)


def test_archives_are_sent_as_they_are(here: str) -> None:
    with urlopen(Request(f"{here}/course.zip", headers={"Accept-Encoding": "gzip"})) as answer:
        assert answer.headers["Content-Encoding"] is None
        assert answer.read() == (SITE / "course.zip").read_bytes()


def test_thirty_browsers_get_everything() -> None:
    serve_for_two = serve.served("127.0.0.1", 0)
    Thread(target=serve_for_two.serve_forever, daemon=True).start()
    seconds, total = serve.thirty(f"http://127.0.0.1:{serve_for_two.server_port}", 2)
    serve_for_two.shutdown()
    assert 2 * 5e6 < total < 2 * 9e6
    assert seconds > 0
