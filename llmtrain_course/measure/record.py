"""A record of one machine: its matrix products, then training steps, row by row.

    python -m llmtrain_course measure --record NAME.csv

Each row is written as soon as it is measured. Started again on the same file, it goes
on with the rows that are not there yet. Recomputation stops early, as PyTorch has it by
default; Adam is written out, not fused. Needs PyTorch, and a CUDA GPU with bf16.
"""

from __future__ import annotations

import csv
import gc
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import torch

from llmtrain_course.measure import timing
from llmtrain_course.measure.recorded import RECORD_COLUMNS
from llmtrain_helpers import published
from llmtrain_helpers.flops import count_flops
from llmtrain_helpers.model.transformer import Transformer
from llmtrain_helpers.precision import RecipeName

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

COLUMNS = RECORD_COLUMNS

MEMORY_NEEDED = 8 * 10**9
"""Bytes below which hardly a row of the record would fit."""

TINY = {
    "tiny gpt": Transformer.gpt(2, 32, 2, 64, 32),
    "tiny llama": Transformer.llama(2, 32, 4, 2, 48, 64, 32),
}
"""Stand-ins that try the whole path in seconds; a GPU runs published shapes."""


@dataclass(frozen=True)
class Case:
    """A row to measure: a matrix product of a size, or a step of a model."""

    kind: str
    model: str = ""
    size: int = 0
    sequence_length: int = 0
    micro_batch_size: int = 0
    recompute: str = ""
    recipe: RecipeName = "bf16"
    attention: str = ""

    @property
    def name(self) -> str:
        """What tells this row from all others."""
        if self.kind == "matmul":
            return f"matmul {self.size}"
        return (
            f"{self.model} s={self.sequence_length} b={self.micro_batch_size} "
            f"{self.recompute} {self.recipe} {self.attention}"
        )

    @property
    def shape(self) -> Transformer:
        """The model's shape at this sequence length."""
        model = TINY.get(self.model) or published.architecture(self.model)
        return replace(model, sequence_length=self.sequence_length)


def cases(tiny: bool) -> list[Case]:
    """All rows, from quick to long, each once."""
    sizes = [64, 128] if tiny else [2**k for k in range(8, 15)]
    rows = [Case("matmul", size=size) for size in sizes]
    if tiny:
        for model in TINY:
            rows += _sweeps(model, longest=32, batches=[1, 2])
    else:
        rows += _sweeps("gpt2-medium", longest=1024, batches=[1, 2, 4, 8, 16, 32, 64])
        rows += _sweeps("Llama-3.2-1B", longest=8192, batches=[1, 2, 4, 8, 16, 32])
        rows += _sweeps("gpt2-xl", longest=1024, batches=[1, 2, 4, 8, 16, 32])
        rows += _sweeps("Llama-3.1-8B", longest=8192, batches=[1, 2, 4, 8])
    return list(dict.fromkeys(rows))


def _sweeps(model: str, longest: int, batches: list[int]) -> Iterator[Case]:
    """Over batch size, sequence length, recomputation and recipe, one at a time."""
    s = min(longest, 1024)
    plain = Case("step", model, 0, s, batches[-1] // 2, "none", "bf16", "flash")
    for b in batches:
        yield replace(plain, micro_batch_size=b)
    length = longest // 16
    while length <= longest:
        b = max(1, s * plain.micro_batch_size // length)  # as many tokens each time
        yield replace(plain, sequence_length=length, micro_batch_size=b)
        length *= 2
    for attention in ("flash", "unfused"):
        for recompute in ("none", "selective", "full"):
            yield replace(plain, recompute=recompute, attention=attention)
    # query heads that share keys are known to CUDA's fp32 kernels only unfused
    shares_keys = plain.shape.num_kv_heads < plain.shape.num_heads
    for recipe in ("fp32", "bf16", "bf16_fp32_grads", "pure_bf16"):
        if recipe != "fp32" or not shares_keys:
            yield replace(plain, recipe=recipe)


def problem(device: str) -> str | None:
    """Why this machine cannot be recorded, in one sentence; None if it can."""
    if device == "cpu":
        return None
    try:
        return _problem_of_cuda()
    except RuntimeError as error:
        return f"The GPU cannot be used: {str(error).splitlines()[0]}"


def _problem_of_cuda() -> str | None:
    if torch.version.cuda is None and torch.version.hip is None:
        return "This PyTorch is a build for the CPU: install one for CUDA to record."
    if not torch.cuda.is_available():
        return "PyTorch finds no GPU: there is none, or its driver is missing or old."
    device = torch.cuda.get_device_name()
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        return f"{device} computes no bf16: the record needs a GPU of 2020 or later."
    free, _ = torch.cuda.mem_get_info()
    if free < MEMORY_NEEDED:
        return (
            f"{device} has {free / 1e9:.1f} GB of free memory, and the record needs "
            f"{MEMORY_NEEDED / 1e9:.0f} GB: is another program using it?"
        )
    return None


def record(path: Path, device: str, tiny: bool) -> int:
    """Measure what the file does not hold yet; how many rows were added."""
    with file_lock(path):
        done = finished_rows(path, source(device))
        waiting = [case for case in cases(tiny) if case.name not in done]
        _say(f"{len(done)} rows are there, {len(waiting)} to measure")
        for number, case in enumerate(waiting, start=1):
            row = measure_case(case, device)
            append(path, row)
            result = "out of memory" if row["out_of_memory"] else f"{row['seconds']:.3g} s"
            _say(f"{number}/{len(waiting)} {case.name}: {result}")
        return len(waiting)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Lock a file for one recorder; ValueError if another has it, or if it isn't a file."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no regular file: choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:  # closing it, or the process's end, lets it go
        try:
            _lock(file)
        except (BlockingIOError, PermissionError):
            raise ValueError(f"{path} is being recorded already") from None
        except OSError:
            pass  # a file system without locks
        yield


def _lock(file: BinaryIO) -> None:
    """Lock a file at once, or OSError; Windows locks one byte, far behind the rows."""
    if sys.platform == "win32":
        file.seek(2**30)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def finished_rows(path: Path, made_by: str = "") -> set[str]:
    """The names of the rows in a file; begins it, or drops a last line without end.

    ValueError, and not a byte changed, for a file that is no record, or one that was
    made by another machine or PyTorch than `made_by` says.
    """
    if not path.exists() or not path.stat().st_size:
        _write(path, "w", COLUMNS)
        return set()
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    rows = _rows(whole)
    if not whole and _line(COLUMNS).encode().startswith(text):  # not even a header
        _write(path, "w", COLUMNS)
        return set()
    if not rows or rows[0] != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
        raise ValueError(f"{path} is there already and is no record of this kind")
    elsewhere = {row[-1] for row in rows[1:]} - {made_by}
    if made_by and elsewhere:
        raise ValueError(f"{path} was {min(elsewhere)}: choose another name")
    if whole != text:
        os.truncate(path, len(whole))
    return {row[0] for row in rows[1:]}


def _rows(text: bytes) -> list[list[str]]:
    """The rows of a file; none if it is no CSV."""
    try:
        return list(csv.reader(io.StringIO(text.decode("utf-8", "replace"))))
    except csv.Error:
        return []


def append(path: Path, row: dict[str, Any]) -> None:
    """Write one row to the end, through to the disk."""
    _write(path, "a", ["" if row[c] is None else row[c] for c in COLUMNS])


def _write(path: Path, mode: str, cells: list[Any]) -> None:
    with path.open(mode, encoding="utf-8", newline="") as file:
        file.write(_line(cells))
        file.flush()
        os.fsync(file.fileno())


def _line(cells: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def measure_case(case: Case, device: str) -> dict[str, Any]:
    """Measure the row of a case; running out of memory is a result too."""
    row = dict.fromkeys(COLUMNS) | vars(case) | {"name": case.name}
    row |= {"out_of_memory": False, "source": source(device)}
    row |= {key: None for key, value in row.items() if value in (0, "")}
    row["out_of_memory"] = False
    try:
        seconds, row["peak_bytes"] = _run(case, device)
    except RuntimeError as error:
        if not _is_out_of_memory(error):
            raise
        row["out_of_memory"] = True
    else:
        row |= _rates(case, seconds, device)
    return row


def _is_out_of_memory(error: RuntimeError) -> bool:
    phrases = ("can't allocate memory", "out of memory", "ALLOC_FAILED")
    matches = any(words in str(error) for words in phrases)  # CPU, CUDA, its libraries
    return matches or isinstance(error, torch.OutOfMemoryError)


def _run(case: Case, device: str) -> tuple[float, int | None]:
    """Run one product or step; return its seconds and its peak memory."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    seconds = (_product_seconds if case.kind == "matmul" else _step_seconds)(case, device)
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else None
    return seconds, peak


def _product_seconds(case: Case, device: str) -> float:
    a, b = (torch.randn(case.size, case.size, device=device) for _ in range(2))
    a, b = a.bfloat16(), b.bfloat16()
    for _ in range(3):
        torch.mm(a, b)
    times = 20  # in a row, so that starting a kernel does not count

    def products() -> None:
        for _ in range(times):
            torch.mm(a, b)

    return timing.median_seconds(products, device, repeats=5) / times


def _step_seconds(case: Case, device: str) -> float:
    b, options = case.micro_batch_size, (case.recipe, case.recompute, case.attention)
    return timing.seconds_of(case.shape, b, *options, device)


def _rates(case: Case, seconds: float, device: str) -> dict[str, Any]:
    """FLOPs of the model, without what is recomputed, and the share of the peak."""
    if case.kind == "matmul":
        flops = 2 * case.size**3
    else:
        flops = count_flops(case.shape, case.micro_batch_size, "none").total
    peak = _peak(device, "fp32" if case.recipe == "fp32" else "bf16")
    mfu = flops / seconds / peak if peak else None
    rates = {"model_flops": flops, "flops_per_gpu": flops / seconds, "mfu": mfu}
    return {"seconds": seconds, "peak_flops": peak, **rates}


def _peak(device: str, number_format: str) -> float | None:
    """The dense peak of this GPU as published, if it is in data/accelerators.csv."""
    name = accelerator_of(torch.cuda.get_device_name()) if device == "cuda" else None
    peaks = published.accelerator(name).peaks if name else {}
    return float(peaks[number_format]) if number_format in peaks else None


def accelerator_of(device_name: str) -> str | None:
    """The accelerator that CUDA calls by this name: the longest match, or none.

    "NVIDIA H100 80GB HBM3" is H100, "NVIDIA H100 PCIe" H100 PCIe; chips of laptops,
    variants and shares of a chip bear the names of others.
    """
    if re.search(r"Laptop|MIG|\b(Ti|D|SUPER)\b", device_name):
        return None
    device_name = re.sub(r"(A100)-(SXM4|PCIE)-40GB", r"\1-40", device_name)
    table = published.accelerators()
    named = dict(zip(table["name"], table["aliases"].fillna(""), strict=True))
    spellings = {s: n for n, more in named.items() for s in (n, *more.split(";")) if s}
    fits = [s for s in spellings if re.search(rf"\b{re.escape(s)}\b", device_name)]
    return spellings[max(fits, key=len)] if fits else None


def source(device: str) -> str:
    """What measured, and with what: a record is made by one machine."""
    cuda = device == "cuda"
    name = torch.cuda.get_device_name() if cuda else f"{torch.get_num_threads()} threads"
    where = name if cuda else f"CPU, {name}"
    return f"measured on {where}, PyTorch {torch.__version__}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
