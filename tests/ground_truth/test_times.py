"""What is timed: only its form can be tested, and that averaged gradients are right."""

from __future__ import annotations

import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from llmtrain_course.measure import PHASES, measure_data_parallel, profile_step, step_seconds
from llmtrain_helpers import Transformer, all_reduce_bytes, count_parameters

SMALL = Transformer.gpt(2, 32, 4, 101, 16)


@pytest.mark.parametrize("processes", [2, 4])
def test_averaged_gradients_are_those_of_the_large_batch(processes: int) -> None:
    shared = measure_data_parallel(SMALL, batch_size=8, processes=processes)
    assert shared.processes == processes
    assert shared.largest_difference < 1e-12
    assert shared.gradient_bytes == 8 * count_parameters(SMALL).total
    assert shared.pass_seconds > 0 < shared.all_reduce_seconds
    sent = all_reduce_bytes(shared.gradient_bytes, processes)
    assert sent == 2 * (processes - 1) / processes * shared.gradient_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's list of sockets")
def test_the_processes_listen_on_the_loopback_only() -> None:
    heard: set[str] = set()
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(measure_data_parallel, SMALL, 8, 2)
        while not work.done():
            heard |= listening(descendants(os.getpid()))
            time.sleep(0.02)
    assert work.result().processes == 2
    assert heard  # gloo's own
    assert all(where == "0100007F" for where in heard)  # 127.0.0.1


def descendants(ancestor: int) -> set[int]:
    """The processes that it started, and those that they did."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        fields = read(stat).rpartition(")")[2].split()
        parents[int(stat.parent.name)] = int(fields[1]) if fields else 0
    family = {ancestor}
    while more := {pid for pid, by in parents.items() if by in family} - family:
        family |= more
    return family - {ancestor}


def listening(processes: set[int]) -> set[str]:
    """The addresses, as Linux writes them, on which these processes listen."""
    table = [line.split() for name in ("tcp", "tcp6") for line in sockets(name)]
    listen = {row[9]: row[1].split(":")[0] for row in table if row[3] == "0A"}
    inode_numbers = {inode for pid in processes for inode in inodes(pid)}
    return {where for inode, where in listen.items() if inode in inode_numbers}


def sockets(name: str) -> list[str]:
    return read(Path("/proc/net") / name).splitlines()[1:]


def inodes(pid: int) -> set[str]:
    """The sockets that a process holds."""
    try:
        links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # it has just come to its end, or closed one
        return set()
    return {inode for link in links for inode in re.findall(r"^socket:\[(\d+)", link)}


def read(path: Path) -> str:
    """A file of /proc; empty once its process is gone."""
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""


def test_a_step_has_three_phases_and_backward_two_products_for_each() -> None:
    operators = profile_step(SMALL, 4).operators
    assert {operator.phase for operator in operators} == set(PHASES)
    products = [operator.phase for operator in operators if operator.matrix_product]
    assert products.count("forward") == 13  # six a layer, and the head
    assert products.count("backward") == 26
    starts = [operator.start for operator in operators]
    assert starts == sorted(starts)


def test_an_operator_that_was_held_up_does_not_hide_its_product() -> None:
    def event(name: str, took: float, *children: SimpleNamespace) -> SimpleNamespace:
        time = SimpleNamespace(start=0, elapsed_us=lambda: took)
        return SimpleNamespace(name=f"aten::{name}", time_range=time, cpu_children=children)

    from llmtrain_course.measure.timing import _computing_operators

    held_up = event("linear", 100, event("t", 1), event("addmm", 20))
    assert [one.name for one in _computing_operators(held_up)] == ["aten::addmm"]
    alone = event("softmax", 100, event("copy_", 20))
    assert [one.name for one in _computing_operators(alone)] == ["aten::softmax"]


def test_steps_take_time() -> None:
    assert all(seconds > 0 for seconds in step_seconds(SMALL, [1, 4], repeats=2))
