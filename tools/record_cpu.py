"""What one thread of this machine does, as in data/cpu_steps.csv: products, steps, memory.

    python tools/record_cpu.py FILE.csv "one thread of an AMD EPYC, November 2026"

Runs take turns, and the shortest of each counts, by the processor's own clock: so other
work on the machine hardly matters. Needs PyTorch, and Linux for the memory.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import process_time

import torch

from llmtrain_course.measure.clock import compared
from llmtrain_course.measure.model import tokens
from llmtrain_course.measure.record import TINY
from llmtrain_course.measure.recorded import BATCH, WIDTHS, recorded_model
from llmtrain_course.measure.timing import step_of, step_profile, trainer_of

SIZES, ROUNDS = [2**k for k in range(4, 11)], 14
RECOMPUTED, ATTENTION = "none", "unfused"
COLUMNS = ["name", "kind", "size", "seconds", "products", "update", "process_bytes", "source"]


def product_seconds() -> dict[int, float]:
    """Seconds of a product of two square matrices, by their size."""
    matrices = {n: torch.randn(n, n) for n in SIZES}
    in_a_row = {n: max(1, 2**25 // n**3) for n in SIZES}  # some milliseconds of small ones

    def products(n: int) -> None:
        for _ in range(in_a_row[n]):
            torch.mm(matrices[n], matrices[n])

    times = compared({n: partial(products, n) for n in SIZES}, 3, 40, process_time)
    return {n: min(times[n].seconds) / in_a_row[n] for n in SIZES}


def step_seconds(width: int) -> dict[str, float]:
    """Seconds of a step, and those of its products and its update within it."""
    shape = recorded_model(width)
    trainer = trainer_of(shape, "fp32", "cpu", RECOMPUTED, ATTENTION)
    inputs = tokens(shape, BATCH, "cpu")
    steps, updates = [], []
    for _ in range(2 + ROUNDS):
        start = process_time()
        trainer.net.loss(*inputs).backward()
        middle = process_time()
        trainer.update()
        end = process_time()
        trainer.release()
        steps.append(end - start)
        updates.append(end - middle)
    profiles = [step_profile(shape, BATCH, "fp32", RECOMPUTED, ATTENTION) for _ in range(ROUNDS)]
    products = [[x.seconds for x in one.operators if x.matrix_product] for one in profiles]
    complete = [one for one in products if len(one) == max(map(len, products))]  # none lost
    shortest = sum(map(min, zip(*complete, strict=True)))
    return {"seconds": min(steps), "products": shortest, "update": min(updates)}


def process_bytes(width: int) -> int:
    """How far this process's memory grows to its peak over three steps; a tiny one comes first."""
    step_of(TINY["tiny gpt"], 1, "fp32", RECOMPUTED, ATTENTION)()
    before = getrusage(RUSAGE_SELF).ru_maxrss
    step = step_of(recorded_model(width), BATCH, "fp32", RECOMPUTED, ATTENTION)
    for _ in range(3):
        step()
    return 1024 * int(getrusage(RUSAGE_SELF).ru_maxrss - before)


def _in_own_process(width: int) -> int:
    """The memory of a step in a process of its own."""
    command = [sys.executable, __file__, "--memory", str(width)]
    return int(subprocess.run(command, check=True, capture_output=True).stdout)


def main(path: Path, machine: str) -> None:
    """Measure all rows and write them to a file."""
    grown = {width: _in_own_process(width) for width in WIDTHS}  # first: a child inherits our peak
    rows = [{"kind": "product", "size": n, "seconds": x} for n, x in product_seconds().items()]
    for width in WIDTHS:
        seconds = step_seconds(width)
        rows.append({"kind": "step", "size": width, **seconds, "process_bytes": grown[width]})
    source = f"measured: {machine}, PyTorch {torch.__version__}, fp32, the processor's own time"
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        for row in rows:
            digits = {key: f"{x:.4g}" if isinstance(x, float) else x for key, x in row.items()}
            table.writerow({"name": f"{row['kind']} {row['size']}", "source": source, **digits})


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--memory":
        print(process_bytes(int(sys.argv[2])))
    else:
        main(Path(sys.argv[1]), sys.argv[2])
