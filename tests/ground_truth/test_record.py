"""Times, the profile, and the record: written row by row, stopped and gone on with."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from llmtrain_course.__main__ import measure as main
from llmtrain_course.measure import PHASES, TRAINABLE, profile_step, record, step_seconds
from llmtrain_helpers import Transformer, published

SHAPE = Transformer.gpt(2, 32, 2, 64, 32)


@pytest.mark.parametrize("recipe", TRAINABLE)
def test_steps_take_time(recipe: str) -> None:
    [seconds] = step_seconds(SHAPE, [2], recipe, repeats=1)
    assert 0 < seconds < 10


def test_a_profile_has_the_products_of_each_phase(capfd: Any) -> None:
    l = 2
    step = profile_step(SHAPE, batch_size=2, attention="unfused")
    products = [o for o in step.operators if o.matrix_product]
    each = {phase: sum(o.phase == phase for o in products) for phase in PHASES}
    assert each == {"forward": 8 * l + 1, "backward": 2 * (8 * l + 1), "optimizer": 0}
    assert 0 < step.matmul_share < 1
    starts = [o.start for o in step.operators]
    assert starts == sorted(starts)
    assert [o.phase for o in step.operators] == sorted(
        (o.phase for o in step.operators), key=PHASES.index
    )
    written = capfd.readouterr()
    assert written.out == written.err == ""


# --- the record


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tiny(path: Path) -> int:
    return main(["--record", str(path), "--device", "cpu", "--tiny"])


@pytest.fixture
def quick(monkeypatch: Any) -> list[str]:
    """The record with four rows and no real measurements; which were measured."""
    measured: list[str] = []

    def run(case: record.Case, device: str) -> tuple[float, int | None]:
        measured.append(case.name)
        return 0.5, 1000

    some = record.cases(tiny=True)[1:5]
    monkeypatch.setattr(record, "cases", lambda tiny: some)
    monkeypatch.setattr(record, "_run", run)
    return measured


def test_a_real_record_of_this_machine(tmp_path: Path, monkeypatch: Any) -> None:
    every = record.cases(tiny=True)
    monkeypatch.setattr(record, "cases", lambda tiny: [every[0], *every[2:10:2]])
    path = tmp_path / "folder" / "cpu.csv"
    assert tiny(path) == 0
    table = rows(path)
    assert list(table[0]) == record.COLUMNS
    assert len({row["name"] for row in table}) == len(table) == 5
    for row in table:
        assert float(row["seconds"]) > 0
        rate = float(row["model_flops"]) / float(row["seconds"])
        assert float(row["flops_per_gpu"]) == pytest.approx(rate)
        assert row["out_of_memory"] == "False"
        assert row["mfu"] == row["peak_bytes"] == ""
        assert f"PyTorch {torch.__version__}" in row["source"]


def test_what_is_there_is_not_measured_again(tmp_path: Path, quick: list[str], capsys: Any) -> None:
    path = tmp_path / "cpu.csv"
    assert tiny(path) == tiny(path) == 0
    assert len(quick) == len(set(quick)) == 4
    assert [row["name"] for row in rows(path)] == quick
    console = capsys.readouterr()
    assert "4 rows are there, 0 to measure" in console.err
    assert "2/4 " in console.err
    assert console.out == ""


def test_a_second_recorder_of_a_file_is_told_so(
    tmp_path: Path, quick: list[str], monkeypatch: Any, capsys: Any
) -> None:
    path, run = tmp_path / "cpu.csv", record._run
    codes: list[int] = []

    def meanwhile(case: record.Case, device: str) -> tuple[float, int | None]:
        codes.append(tiny(path))
        return run(case, device)

    monkeypatch.setattr(record, "_run", meanwhile)
    assert tiny(path) == 0
    assert codes == [2] * 4
    assert capsys.readouterr().err.count(f"{path} is being recorded already\n") == 4
    assert [row["name"] for row in rows(path)] == quick
    assert tiny(path) == 0  # the first has let it go


def test_a_file_system_without_locks_is_recorded_on_all_the_same(
    tmp_path: Path, quick: list[str], monkeypatch: Any
) -> None:
    def lock(file: Any) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(record, "_lock", lock)
    assert tiny(tmp_path / "cpu.csv") == 0
    assert len(rows(tmp_path / "cpu.csv")) == 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_what_is_no_regular_file_is_refused(tmp_path: Path, capsys: Any) -> None:
    pipe, folder, link = (tmp_path / f"{n}.csv" for n in ("pipe", "folder", "link"))
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(pipe)
    for path in (pipe, folder, link):
        assert tiny(path) == 2
        assert capsys.readouterr().err.count("is no regular file") == 1


@pytest.mark.parametrize("lost", range(0, 500, 7))
def test_a_record_goes_on_wherever_it_was_cut(tmp_path: Path, quick: list[str], lost: int) -> None:
    path = tmp_path / "cpu.csv"
    tiny(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - lost])
    finished = path.read_bytes().count(b"\n") - 1  # but for the header
    quick.clear()
    assert tiny(path) == 0
    assert len(quick) == 4 - max(finished, 0)
    assert path.read_bytes() == whole


def test_stopping_keeps_every_finished_row(
    tmp_path: Path, quick: list[str], monkeypatch: Any
) -> None:
    path, run = tmp_path / "cpu.csv", record._run

    def stopping(case: record.Case, device: str) -> Any:
        if len(quick) == 2:
            raise KeyboardInterrupt
        return run(case, device)

    monkeypatch.setattr(record, "_run", stopping)
    assert tiny(path) == 130
    assert len(rows(path)) == 2
    monkeypatch.setattr(record, "_run", run)
    assert tiny(path) == 0
    assert len(rows(path)) == len(set(quick)) == 4


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA"), RuntimeError("can't allocate memory: 9")]
)
def test_out_of_memory_is_a_row(
    tmp_path: Path, quick: list[str], monkeypatch: Any, error: Exception
) -> None:
    def run(case: record.Case, device: str) -> Any:
        raise error

    monkeypatch.setattr(record, "_run", run)
    path = tmp_path / "cpu.csv"
    assert tiny(path) == 0
    assert {row["out_of_memory"] for row in rows(path)} == {"True"}
    assert {row["seconds"] for row in rows(path)} == {""}


def test_other_errors_are_not_taken_for_it(
    tmp_path: Path, quick: list[str], monkeypatch: Any, capsys: Any
) -> None:
    def run(case: record.Case, device: str) -> Any:
        raise RuntimeError("CUDA error: an illegal memory access\nand much more")

    monkeypatch.setattr(record, "_run", run)
    assert tiny(tmp_path / "cpu.csv") == 2
    assert capsys.readouterr().err.endswith("CUDA error: an illegal memory access\n")
    assert not rows(tmp_path / "cpu.csv")


def test_a_record_of_another_machine_is_not_mixed_in(
    tmp_path: Path, quick: list[str], capsys: Any
) -> None:
    path = tmp_path / "cpu.csv"
    assert tiny(path) == 0
    there = path.read_text("utf-8").replace("PyTorch", "another machine, PyTorch")
    path.write_text(there, "utf-8")
    assert tiny(path) == 2
    assert "choose another name" in capsys.readouterr().err
    assert path.read_text("utf-8") == there


@pytest.mark.parametrize("name", ["record", "folder/", "record.txt", ""])
def test_a_file_that_is_no_csv_by_name_is_refused(name: str, capsys: Any) -> None:
    assert main(["--record", name, "--device", "cpu", "--tiny"]) == 2
    assert "ends in .csv" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["name,other\n1,2\n", "\n", "no record", "\x00\xff"])
def test_another_file_is_left_alone(tmp_path: Path, text: str, capsys: Any) -> None:
    path = tmp_path / "cpu.csv"
    path.write_text(text, "utf-8")
    assert tiny(path) == 2
    assert path.read_text("utf-8") == text
    assert "is no record" in capsys.readouterr().err


def test_a_gpus_rows_are_many_and_of_published_shapes() -> None:
    every = record.cases(tiny=False)
    assert len({case.name for case in every}) == len(every) > 60
    for case in every:
        assert case.kind == "matmul" or case.shape.sequence_length > 0
    steps = [case for case in every if case.kind == "step"]
    assert {case.recompute for case in steps} == {"none", "selective", "full"}
    assert len({case.recipe for case in steps}) == 4


class Cuda:
    """A machine as torch.cuda would describe it."""

    def __init__(self, present: bool = True, bf16: bool = True, free: float = 80e9):
        self.present, self.bf16, self.free = present, bf16, free

    def is_available(self) -> bool:
        return self.present

    def get_device_name(self) -> str:
        return "NVIDIA H200"

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        return self.bf16 or including_emulation

    def mem_get_info(self) -> tuple[float, float]:
        if self.free < 0:
            raise RuntimeError("CUDA driver version is insufficient\nand more")
        return self.free, 144e9


@pytest.mark.parametrize(
    ("cuda", "words"),
    [
        (Cuda(present=False), "no GPU"),
        (Cuda(bf16=False), "NVIDIA H200 computes no bf16"),
        (Cuda(free=3e9), "3.0 GB of free memory"),
        (Cuda(free=-1), "driver version is insufficient"),
    ],
)
def test_a_machine_that_will_not_do_is_told_why(
    tmp_path: Path, monkeypatch: Any, capsys: Any, cuda: Cuda, words: str
) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch, "cuda", cuda)
    assert main(["--record", str(tmp_path / "gpu.csv")]) == 2
    [sentence] = capsys.readouterr().err.splitlines()
    assert words in sentence
    assert not (tmp_path / "gpu.csv").exists()


def test_one_that_will_do(monkeypatch: Any) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch, "cuda", Cuda())
    assert record.problem("cuda") is None
    assert record.source("cuda").startswith("measured on NVIDIA H200, PyTorch ")
    assert record._peak("cuda", "bf16") == published.accelerator("H200").peak("bf16")
    assert record._peak("cuda", "fp5") is None


def test_a_build_for_the_cpu_and_a_cpu_without_tiny(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    assert main(["--record", str(tmp_path / "x.csv")]) == 2
    assert "build for the CPU" in capsys.readouterr().err
    assert main(["--record", str(tmp_path / "x.csv"), "--device", "cpu"]) == 2
    assert "--tiny" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cuda_name", "name"),
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("Unheard-of 9000", None),
    ],
)
def test_the_accelerator_of_a_cuda_name(cuda_name: str, name: str | None) -> None:
    assert record.accelerator_of(cuda_name) == name
