"""A hub for one workshop in one closed room, for a day.

    WORKSHOP_PASSWORD=... jupyterhub -f teaching/jupyterhub_config.py

Everybody gives a name of their own and the one password, and gets a copy of the
notebooks. What they do not get is protection from each other: whoever has the password
can log in under any name, and all servers run as the user who started the hub and can
read all that this user can. So: a machine (or a virtual machine) with nothing else on
it, a user of its own, a network that ends at the door, and the hub stopped at night.

Environment:
    WORKSHOP_PASSWORD  eight characters or more; without it the hub does not start
    WORKSHOP_HOMES     where the learners' folders lie (homes, beside this file)
    WORKSHOP_ADDRESS   what the proxy listens on (http://:8000, which is every network)
    WORKSHOP_MEMORY    GB that each process of a learner may hold (2; Linux only)
    WORKSHOP_SEATS     how many servers may run at once (40)
    WORKSHOP_AS_ROOT   1 where there is no other user, in a container: all are root then
"""

import os
import shutil
import socket
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from jupyterhub.spawner import SimpleLocalProcessSpawner

from tools.notebooks import all_notebooks

HERE = Path(__file__).resolve().parent
COURSE = HERE.parent
HOMES = Path(os.environ.get("WORKSHOP_HOMES", HERE / "homes")).resolve()
MEMORY = int(float(os.environ.get("WORKSHOP_MEMORY", "2")) * 1e9)
SEATS = int(os.environ.get("WORKSHOP_SEATS", "40"))
PROCESSES = 100 * SEATS
"""Processes and threads of all learners together: Linux counts them by the user."""

PROXY = HERE / "node_modules" / ".bin" / "configurable-http-proxy"
LINKED = (
    "notebooks/course.png",
    "data/README.md",
    "llmtrain_course/measure/model.py",
    "tests/ground_truth/test_step_memory.py",
)
LINUX = sys.platform == "linux"
SOCKETS = tempfile.TemporaryDirectory(prefix="hub-", dir="/tmp" if LINUX else None)


def give_notebooks(spawner: Any) -> None:
    """Copy into a learner's home what is not there yet; overwrite nothing, ever."""
    for path in course_files():
        copy = HOMES / spawner.user.name / path.relative_to(COURSE)
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def course_files() -> list[Path]:
    """The notebooks as they lie in the course, and the files that they link to."""
    return [*all_notebooks(), *(COURSE / name for name in LINKED)]


def prepare(spawner: Any) -> None:
    """What is done before a learner's server starts."""
    give_notebooks(spawner)
    ask_for_no_news(HOMES / spawner.user.name)
    if LINUX:  # a short path in any script: a socket's may have 107 bytes
        place = Path(SOCKETS.name) / sha256(spawner.user.name.encode()).hexdigest()[:12]
        place.mkdir(exist_ok=True)
        spawner.environment |= {"JUPYTER_RUNTIME_DIR": str(place)}


def ask_for_no_news(home: Path) -> None:
    """JupyterLab does not ask a learner about news, nor look for new versions."""
    place = home / ".jupyter/lab/user-settings/@jupyterlab/apputils-extension"
    file = place / "notification.jupyterlab-settings"
    if not file.exists():
        place.mkdir(parents=True, exist_ok=True)
        file.write_text('{"fetchNews": "false", "checkForUpdates": false}', "utf-8")


def free_port() -> int:
    """A port of this machine that nobody listens on: between hub and proxy."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Seat(SimpleLocalProcessSpawner):
    """A server as a plain process in the learner's folder, with limits.

    That of memory holds for each process, server and kernels, on what it asks for
    (data, not shared libraries): beyond it Python raises a MemoryError, and nobody else
    notices. That of processes is one for all learners: beyond it no cell starts another
    process, and the hub, which has no such limit, can still end servers.
    """

    def make_preexec_fn(self, name: str) -> Any:
        """What the new process does before it becomes the server."""
        begin = super().make_preexec_fn(name)

        def limited() -> None:
            begin()
            if LINUX:
                import resource

                limit(resource.RLIMIT_NPROC, PROCESSES)
                if MEMORY:
                    limit(resource.RLIMIT_DATA, MEMORY)

        return limited


def limit(kind: int, most: int) -> None:
    """Limit this process and all that come from it, unless its limit is lower already."""
    import resource

    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
if AS_ROOT and os.environ.get("WORKSHOP_AS_ROOT") != "1":
    sys.exit("Every learner would be root here: start the hub as a user of its own.")

PASSWORD = os.environ.get("WORKSHOP_PASSWORD", "")
if len(PASSWORD) < 8:
    sys.exit("Set WORKSHOP_PASSWORD, of eight characters or more, for all to share.")

c = get_config()  # type: ignore[name-defined]  # noqa: F821  (jupyterhub gives it)

c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = PASSWORD
c.Authenticator.allow_all = True
# A folder is named after it. JupyterHub matches the beginning alone, hence the end here.
c.Authenticator.username_pattern = r"[\w-]{1,32}\Z"

c.JupyterHub.spawner_class = Seat
c.SimpleLocalProcessSpawner.home_dir_template = str(HOMES / "{username}")
c.Spawner.pre_spawn_hook = prepare
c.Spawner.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
c.Spawner.environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--ServerApp.allow_remote_access=True"]
c.Spawner.args += ["--allow-root"] if AS_ROOT else []
c.Spawner.args += ["--ServerApp.terminals_enabled=False"]
# A kernel that no tab shows ends after an hour, a server without kernels after another.
c.Spawner.args += ["--MappingKernelManager.cull_idle_timeout=3600"]
c.Spawner.args += ["--ServerApp.shutdown_no_activity_timeout=3600"]
# Kernels that talk through files: thirty that look for free ports at once may collide.
c.Spawner.args += ["--KernelManager.transport=ipc"] if LINUX else []
c.Spawner.start_timeout = 120  # thirty at once on two cores take their time
c.Spawner.http_timeout = 120
c.JupyterHub.active_server_limit = SEATS
c.JupyterHub.concurrent_spawn_limit = 0  # thirty come at once: send nobody away

c.JupyterHub.bind_url = os.environ.get("WORKSHOP_ADDRESS", "http://:8000")
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{free_port()}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{free_port()}"
c.ConfigurableHTTPProxy.command = [str(PROXY)]
c.JupyterHub.db_url = "sqlite://"  # nothing is kept but the homes
c.JupyterHub.cookie_secret = os.urandom(32)
c.JupyterHub.cleanup_servers = True  # who stops the hub stops all of it
