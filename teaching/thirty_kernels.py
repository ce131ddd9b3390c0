"""Thirty kernels at once: how long a notebook takes in each, and how much memory.

    python teaching/thirty_kernels.py
    python teaching/thirty_kernels.py --kernels 10 notebooks/09_plan.ipynb

Run it on the machine that a workshop is to use, in the course's environment. It starts
so many kernels at the same moment, runs every cell in each, prints, and ends them all.
It leaves servers and browsers out: `hub_check.py` has those.

Two memories are printed. RSS counts what several processes share (the interpreter,
NumPy's libraries) once for each of them; PSS gives each its share, so that PSS adds up
to what the machine must have. Only Linux tells PSS.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import nbformat
import psutil
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "03_duration.ipynb"


def memory(pids: Sequence[int]) -> tuple[float, float]:
    """Bytes of these processes: RSS and PSS (RSS again where PSS is not known)."""
    rss = pss = 0.0
    for pid in pids:
        try:
            used = psutil.Process(pid).memory_full_info()
        except psutil.Error:  # it has ended
            continue
        rss += used.rss
        pss += getattr(used, "pss", used.rss)
    return rss, pss


def memory_line(kind: str, pids: Sequence[int]) -> str:
    """A line about the memory of some processes, together and each."""
    rss, pss = memory(pids)
    number = max(len(pids), 1)
    return (
        f"{kind:<12} {len(pids):>3}   {pss / 1e9:6.2f} GB   "
        f"{pss / number / 1e6:5.0f} MB each (RSS {rss / number / 1e6:.0f})"
    )


@asynccontextmanager
async def kernel_of(client: Any) -> AsyncIterator[None]:
    """A kernel, ended at the end; one that died by itself has ended already."""
    with suppress(AssertionError):
        async with client.async_setup_kernel(stderr=DEVNULL):
            yield


async def seat(room: AsyncExitStack, path: Path) -> tuple[int, float, float]:
    """One kernel: its process, and the seconds until it was ready and until done."""
    began = time.monotonic()
    client: Any = NotebookClient(
        nbformat.read(path, as_version=4),
        timeout=600,
        startup_timeout=300,
        kernel_name="python3",
        shutdown_kernel="immediate",
        resources={"metadata": {"path": str(path.parent)}},
    )
    await room.enter_async_context(kernel_of(client))
    ready = time.monotonic() - began
    for number, cell in enumerate(client.nb.cells):
        await client.async_execute_cell(cell, number)
    return client.km.provisioner.pid, ready, time.monotonic() - began


async def all_at_once(path: Path, kernels: int) -> int:
    """Run the notebook in so many kernels and print what it took; how many failed."""
    async with AsyncExitStack() as room:
        seats = (seat(room, path) for _ in range(kernels))
        ends = await asyncio.gather(*seats, return_exceptions=True)
        done = [end for end in ends if isinstance(end, tuple)]
        for problem in (end for end in ends if not isinstance(end, tuple)):
            print(f"failed: {type(problem).__name__}: {str(problem)[:200]}")
        if done:
            pids, ready, finished = zip(*done, strict=True)
            print(f"{len(done)} of {kernels} kernels ran {path.name} to its end")
            print(f"first ready after {min(ready):.0f} s, last {max(ready):.0f} s")
            print(f"first done after {min(finished):.0f} s, last {max(finished):.0f} s")
            print(memory_line("kernels", pids))
    return kernels - len(done)


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 1 where a kernel failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("notebook", nargs="?", type=Path, default=NOTEBOOK)
    parser.add_argument("--kernels", type=int, default=30)
    options = parser.parse_args(arguments)
    if not options.notebook.is_file():
        parser.error(f"{options.notebook} is no notebook")
    print(f"{options.kernels} kernels at once, {os.cpu_count()} cores")
    return 1 if asyncio.run(all_at_once(options.notebook, options.kernels)) else 0


if __name__ == "__main__":
    sys.exit(main())
