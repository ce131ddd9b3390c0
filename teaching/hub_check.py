"""The workshop's hub with ten learners in it: does it work, and what does it take?

    python teaching/hub_check.py
    python teaching/hub_check.py --learners 30

Starts the hub of `jupyterhub_config.py` on a free port of this machine alone, with
homes in a temporary folder. Each learner logs in over HTTP, gets a server, opens a
notebook from the copies there, and runs all of its cells in a kernel, all of them at
once; then each asks for 3 GB, which the limit of 2 must refuse. Prints the seconds and
the memory of hub, proxy, servers and kernels, then ends everything that it started.

Needs, in one environment: both requirements.lock files, the course, and the proxy
(`npm ci` in this folder).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import requests
import websocket
from thirty_kernels import memory, memory_line

HERE = Path(__file__).resolve().parent


class Learner:
    """One browser, as far as the hub can tell: cookies, tokens and a socket."""

    def __init__(self, name: str, port: int) -> None:
        """A learner who has not come in yet."""
        self.name, self.site = name, f"127.0.0.1:{port}"
        self.base = f"http://{self.site}/user/{name}"
        self.refused = False
        self.browser = requests.Session()
        self.browser.trust_env = False  # no proxy between us and this machine

    def works(self, password: str, notebook: str) -> dict[str, float]:
        """Log in, get a server, run the notebook; the seconds until each was done."""
        began, times = time.monotonic(), {}
        for step, act in {
            "logged in": lambda: self.log_in(password),
            "has a server": self.get_server,
            "notebook run": lambda: self.run(notebook),
        }.items():
            act()
            times[step] = time.monotonic() - began
        return times

    def log_in(self, password: str) -> None:
        """The login form, filled in and sent."""
        form = f"http://{self.site}/hub/login"
        page = self.browser.get(form, timeout=60)
        token = re.search(r'name="_xsrf" value="([^"]+)"', page.text)
        fields = {"username": self.name, "password": password, "_xsrf": token[1] if token else ""}
        answer = self.browser.post(form, data=fields, timeout=300)
        if "login" in answer.url or not answer.ok:
            raise RuntimeError(f"{self.name} was not let in: {answer.status_code}")

    def get_server(self) -> None:
        """Ask for a server until its JupyterLab answers."""
        self.browser.get(f"http://{self.site}/hub/spawn", timeout=300)
        until = time.monotonic() + 300
        while time.monotonic() < until:
            page = self.browser.get(f"{self.base}/lab", timeout=300)
            if page.ok and page.url.startswith(self.base):
                return
            if page.status_code == 500:
                raise RuntimeError(f"{self.name} got no server: see the hub's log")
            time.sleep(1)
        raise RuntimeError(f"{self.name} has no server after five minutes")

    def run(self, notebook: str) -> None:
        """Every code cell of the learner's own copy, in a kernel of their own."""
        copy = self.browser.get(f"{self.base}/api/contents/{notebook}", timeout=300).json()
        token = {"X-XSRFToken": self.cookie("_xsrf")}
        kernels = f"{self.base}/api/kernels"
        kernel = self.browser.post(kernels, headers=token, timeout=300).json()["id"]
        pipe = self.socket(kernel)
        for cell in copy["content"]["cells"]:
            if cell["cell_type"] == "code":
                reply = execute(pipe, cell["source"])
                if reply["status"] != "ok":
                    raise RuntimeError(f"{self.name}: {reply.get('evalue')}")
        reply = execute(pipe, "bytearray(3 * 10**9)")
        self.refused = reply.get("ename") == "MemoryError"
        pipe.close()

    def socket(self, kernel: str) -> websocket.WebSocket:
        """The channels of a kernel."""
        address = f"ws://{self.site}/user/{self.name}/api/kernels/{kernel}/channels"
        cookies = "; ".join(
            f"{cookie.name}={cookie.value}"
            for cookie in self.browser.cookies
            if f"/user/{self.name}/".startswith(cookie.path)
        )
        return websocket.create_connection(
            f"{address}?_xsrf={self.cookie('_xsrf')}", cookie=cookies, timeout=300
        )

    def cookie(self, name: str) -> str:
        """A cookie of the learner's own server, not of the hub."""
        for cookie in self.browser.cookies:
            if cookie.name == name and cookie.path == f"/user/{self.name}/":
                return cookie.value or ""
        return ""


def execute(pipe: websocket.WebSocket, code: str) -> dict[str, Any]:
    """Run code in a kernel; its reply."""
    id = uuid.uuid4().hex
    message = {
        "header": {
            "msg_id": id,
            "msg_type": "execute_request",
            "version": "5.3",
            "session": id,
            "username": "",
            "date": "",
        },
        "parent_header": {},
        "metadata": {},
        "content": {"code": code, "silent": False, "allow_stdin": False},
        "channel": "shell",
    }
    pipe.send(json.dumps(message))
    while True:
        reply = json.loads(pipe.recv())
        mine = reply["parent_header"].get("msg_id") == id
        if mine and reply["msg_type"] == "execute_reply":
            return dict(reply["content"])


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(folder: Path, port: int, password: str) -> subprocess.Popen[bytes]:
    """The hub, as soon as its login page answers."""
    settings = {
        "WORKSHOP_PASSWORD": password,
        "WORKSHOP_HOMES": str(folder / "homes"),
        "WORKSHOP_ADDRESS": f"http://127.0.0.1:{port}",
        "WORKSHOP_AS_ROOT": "1",  # for a minute, and on this machine alone
    }
    config = HERE / "jupyterhub_config.py"
    with (folder / "hub.log").open("wb") as log:
        hub = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(config)],
            cwd=folder,
            env={**os.environ, **settings},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    until = time.monotonic() + 120
    while hub.poll() is None and time.monotonic() < until:
        try:
            if requests.get(f"http://127.0.0.1:{port}/hub/login", timeout=5).ok:
                return hub
        except requests.RequestException:
            pass  # the proxy is not there yet
        time.sleep(0.5)
    end(hub)
    raise RuntimeError((folder / "hub.log").read_text("utf-8", "replace")[-2000:])


def end(hub: subprocess.Popen[bytes]) -> int:
    """End the hub and all that came from it; how many had to be killed."""
    try:
        family = psutil.Process(hub.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    hub.terminate()
    try:
        hub.wait(60)
    except subprocess.TimeoutExpired:
        hub.kill()
    _, alive = psutil.wait_procs(family, timeout=10)
    for process in alive:
        process.kill()
    return len(alive)


MARKS = {
    "configurable-http-proxy": "proxy",
    "jupyterhub.singleuser": "servers",
    "ipykernel_launcher": "kernels",
}
"""What the command line of a process has in it, and which kind of process that is."""


def kinds(hub: int) -> dict[str, list[int]]:
    """The processes below the hub, by what they are."""
    pids: dict[str, list[int]] = {"hub": [hub], "proxy": [], "servers": [], "kernels": []}
    for process in psutil.Process(hub).children(recursive=True):
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        for mark, kind in MARKS.items():
            if mark in line:
                pids[kind].append(process.pid)
    return pids


def measure(learners: int, notebook: str) -> int:
    """Run the hub with so many learners, print, and end it; how many failed."""
    password, port = secrets.token_urlsafe(12), free_port()
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        hub = started(Path(folder), port, password)
        print(f"the hub answers after {time.monotonic() - began:.0f} s")
        try:
            failed = all_work(learners, port, password, notebook)
            print_memory(kinds(hub.pid))
            if failed:
                print_trouble(Path(folder) / "hub.log")
        finally:
            print(f"ended; {end(hub)} processes had to be killed")
    return failed


def print_trouble(log: Path) -> None:
    """The lines of the hub's log that tell what went wrong."""
    for line in log.read_text("utf-8", "replace").splitlines():
        if re.search(r"^\[[EC] |Error|died|failed", line):
            print("   ", line[:200])


def print_memory(processes: dict[str, list[int]]) -> None:
    """A line a kind of process, then what one learner and the whole hub come to."""
    for kind, pids in processes.items():
        print(memory_line(kind, pids))
    _, learners = memory([*processes["servers"], *processes["kernels"]])
    _, whole = memory([pid for pids in processes.values() for pid in pids])
    each = learners / max(len(processes["servers"]), 1)
    print(f"a learner {each / 1e6:.0f} MB, all {whole / 1e9:.2f} GB")


def all_work(learners: int, port: int, password: str, notebook: str) -> int:
    """Let all learners work at once; how many failed."""
    room = [Learner(f"learner{n:02}", port) for n in range(1, learners + 1)]
    with ThreadPoolExecutor(learners) as pool:
        jobs = [pool.submit(learner.works, password, notebook) for learner in room]
    done = [job.result() for job in jobs if not job.exception()]
    for problem in filter(None, (job.exception() for job in jobs)):
        print(f"failed: {type(problem).__name__}: {str(problem)[:300]}")
    print(f"{len(done)} of {learners} learners ran {notebook} to its end")
    refused = sum(learner.refused for learner in room)
    print(f"{refused} of {learners} were refused 3 GB")
    for step in done[0] if done else []:
        seconds = [times[step] for times in done]
        print(f"{step:<12} first after {min(seconds):.0f} s, last {max(seconds):.0f} s")
    return learners - len(done)


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 1 where a learner failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--learners", type=int, default=10)
    parser.add_argument("--notebook", default="notebooks/03_duration.ipynb")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and end the hub on the way
    print(f"{options.learners} learners at once, {os.cpu_count()} cores")
    return 1 if measure(options.learners, options.notebook) else 0


if __name__ == "__main__":
    sys.exit(main())
