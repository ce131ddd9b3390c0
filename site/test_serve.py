"""The server of the site: what travels is compressed, and is the same when it is opened.

make site-test
"""

from __future__ import annotations

import gzip
import socket
import struct
import time
from collections.abc import Iterator
from threading import Thread
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
import serve
from driver import SITE


@pytest.fixture(scope="module")
def here() -> Iterator[str]:
    """The site's own server."""
    server = serve.make_server("127.0.0.1", 0)
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


@pytest.mark.parametrize("name", ["index.html", "pyodide/pyodide.asm.wasm", "course.zip"])
def test_what_a_browser_has_is_not_sent_again(here: str, name: str) -> None:
    asks = {"Accept-Encoding": "gzip"}
    with urlopen(Request(f"{here}/{name}", headers=asks)) as answer:
        changed = answer.headers["Last-Modified"]
    with pytest.raises(HTTPError) as answered:
        urlopen(Request(f"{here}/{name}", headers=asks | {"If-Modified-Since": changed}))
    assert (answered.value.code, answered.value.read()) == (304, b"")
    for since in ("Thu, 01 Jan 1970 00:00:00 GMT", "yesterday", "Mon, 99 Foo 99999 99:99:99 GMT"):
        with urlopen(Request(f"{here}/{name}", headers=asks | {"If-Modified-Since": since})) as all:
            assert all.status == 200


@pytest.mark.parametrize(
    "name", [300 * "x" + ".html", 90 * "я" + ".js", "%00.html", "%ED%A0%80.js", "gone.js"]
)
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_name_that_no_file_has_is_not_found(
    here: str, name: str, encoding: str, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = Request(f"{here}/{quote(name, safe='%')}", headers={"Accept-Encoding": encoding})
    with pytest.raises(HTTPError) as answered:
        urlopen(asked)
    assert answered.value.code == 404
    assert b'<form action="/search.html">' in answered.value.read()
    assert "Traceback" not in capfd.readouterr().err


def test_a_browser_that_hangs_up_is_no_trouble(
    here: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", int(here.rpartition(":")[2]))) as browser:
        browser.sendall(b"GET /pyodide/pyodide.asm.wasm HTTP/1.1\r\n\r\n")
        browser.recv(1)
        at_once = struct.pack("ii", 1, 0)
        browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    time.sleep(0.5)
    assert "Traceback" not in capfd.readouterr().err


def test_archives_are_sent_as_they_are(here: str) -> None:
    with urlopen(Request(f"{here}/course.zip", headers={"Accept-Encoding": "gzip"})) as answer:
        assert answer.headers["Content-Encoding"] is None
        assert answer.read() == (SITE / "course.zip").read_bytes()


def test_thirty_browsers_get_everything() -> None:
    serve_for_two = serve.make_server("127.0.0.1", 0)
    Thread(target=serve_for_two.serve_forever, daemon=True).start()
    seconds, total = serve.thirty(f"http://127.0.0.1:{serve_for_two.server_port}", 2)
    serve_for_two.shutdown()
    assert 2 * 5e6 < total < 2 * 9e6
    assert seconds > 0
