"""The evidence: every table as data/README.md says, every row with its source."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pandas
import pytest

from llmtrain_helpers import Transformer, published, step_timeline, units

from .bad_values import assert_refused

TABLES = sorted(published.data_folder().glob("*.csv"))
SOURCE = re.compile(
    r"\d{4}\.\d{4,5}"  # arXiv
    r"|\b[\w-]+/[\w.-]+ \S"  # a repository, and where in it
    r"|Hugging Face|MODEL_CARD|model card|datasheet|documentation|blog"
    r"|^measured: |^(bigscience|metaseq|DeepSpeed|DeepSeek-LLM) \S"
)
"""What names a source; `same` or `secondary table` alone does not."""

every_table = pytest.mark.parametrize("path", TABLES, ids=lambda p: p.stem)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@every_table
def test_every_row_is_whole_and_names_its_source(path: Path) -> None:
    for row in rows(path):
        assert None not in row
        assert None not in row.values()
        assert SOURCE.search(row["source"]), row["source"]


@every_table
def test_every_column_is_explained(path: Path) -> None:
    readme = (published.data_folder() / "README.md").read_text("utf-8")
    section = readme.split(f"## {path.name}")[1].split("\n## ")[0]
    told = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    names = {name for cell in told for name in re.findall(r"`(\w+)`", cell)}
    columns = list(rows(path)[0])
    for cell in told:
        if "…" in cell:
            first, last = re.findall(r"`(\w+)`", cell)
            names |= set(columns[columns.index(first) : columns.index(last) + 1])
    assert names - {"fp32"} == set(columns) - {"fp32"}


@every_table
def test_each_table_has_its_reader_which_returns_a_copy(path: Path) -> None:
    read = getattr(published, path.stem)
    table = read()
    assert len(table) == len(rows(path))
    table.iloc[:, 0] = "changed"
    assert not read().equals(table)


@every_table
def test_names_stand_once(path: Path) -> None:
    names = [row["name"] for row in rows(path)]
    names += [a for row in rows(path) for a in row.get("aliases", "").split(";") if a]
    plain = [published._plain(name) for name in names]
    assert len(set(plain)) == len(plain)


def test_peaks_are_dense_and_in_flops_per_second() -> None:
    table = published.accelerators()
    for name in published.FORMATS:
        known = table[name].dropna()
        assert known.between(5e12, 4e16).all()
    both = table.dropna(subset=["bf16", "fp8"])
    assert (both["fp8"] / both["bf16"]).between(1, 4).all()


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("A100-80", "A100 80GB SXM"),
        ("a100", "A100 80GB SXM"),
        ("A100 80GB SXM", "A100 80GB SXM"),
        ("H100", "H100 SXM"),
        ("TPUv4", "TPU v4"),
        ("V100", "V100 32GB SXM2"),
    ],
)
def test_accelerators_go_by_the_names_that_papers_use(called: str, name: str) -> None:
    assert published.accelerator(called).name == name


def test_an_accelerator_without_a_format_says_so() -> None:
    with pytest.raises(ValueError, match="format='fp8' has no peak on A100 80GB SXM"):
        published.accelerator("A100").peak("fp8")


@pytest.mark.parametrize("read", [published.accelerator, published.architecture])
@pytest.mark.parametrize(
    "bad", ["", "no such", None, 3, ["A100"], "x" * 10**5], ids=type
)
def test_an_unknown_name_is_refused(read, bad) -> None:
    with pytest.raises(ValueError, match="is unknown"):
        read(bad)


def test_a_misspelt_name_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"did you mean.*'Llama-3.1-8B'"):
        published.architecture("Lama-3.1-8B")


def test_so_many_batches_as_are_asked_for() -> None:
    assert len(published.batches_near(1e6, how_many=1.0)) == 1
    assert len(published.batches_near(1e6)) == 3
    for bad in (0, -1, 2.5, float("nan"), None, "3", np.array([1, 2])):
        assert_refused(published.batches_near, "how_many", tokens=1e6, how_many=bad)
    for bad in (0, None, "1M", np.array([1e6, 2e6])):
        assert_refused(published.batches_near, "tokens", tokens=bad)


def test_the_nearest_run_is_that_of_one_size() -> None:
    assert published.nearest_run(2e12, 70e9)["name"] == "Llama 2 70B"
    good = {"tokens": 2e12, "parameters": 70e9}
    for name in good:
        for bad in (0, None, np.array([1e12]), np.array([1e12, 2e12])):
            assert_refused(published.nearest_run, name, **(good | {name: bad}))


def test_the_training_length_can_be_said() -> None:
    assert published.architecture("Llama-3.1-8B").sequence_length == 131072
    assert published.architecture("Llama-3.1-8B", 8192).sequence_length == 8192


def test_a_config_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama"}))
    assert published.read_config(path) == Transformer.from_config(
        {"model_type": "llama"}
    )
    assert published.read_config(str(path), 512).sequence_length == 512


HOSTILE = {
    "empty": b"",
    "broken": b'{"model_type": "llama", ',
    "a list": b"[1, 2]",
    "a number": b"3",
    "null": b"null",
    "not text": b"\xff\xfe\x00\xd8",
    "deep": b"[" * 200_000,
    "deep, yet readable": b'{"model_type": "llama", "hidden_size": '
    + (b"[" * 940 + b"]" * 940 + b"}"),
    "deep but closed": b"[" * 100_000 + b"]" * 100_000,
    "huge number": b'{"model_type": "llama", "hidden_size": 1' + b"0" * 400 + b"}",
    "huger number": b'{"model_type": "llama", "hidden_size": 1' + b"0" * 9000 + b"}",
    "infinite": b'{"model_type": "llama", "hidden_size": 1e400}',
    "NaN": b'{"model_type": "llama", "hidden_size": NaN}',
    "50 MB": b'{"model_type": "' + b"x" * 50_000_000 + b'"}',
    "missing family": b'{"hidden_size": 4096}',
    "wrong type": b'{"model_type": "llama", "hidden_size": {"a": 1}}',
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_config_is_refused_in_words(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(HOSTILE[kind])
    with pytest.raises(ValueError, match="=") as caught:
        published.read_config(path)
    assert type(caught.value) is ValueError
    assert len(str(caught.value)) < 600


def test_a_config_that_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json", "", "\0", "x" * 5000, "~nobody/x"):
        with pytest.raises(ValueError, match="path="):
            published.read_config(path)
    for no_path in (None, 3, b"config.json", ["config.json"]):
        with pytest.raises(ValueError, match="path="):
            published.read_config(no_path)


def test_confronting_shows_estimate_reported_and_ratio() -> None:
    table = published.confront(["a"], [33.9084 * 86400], [34 * 86400], units.duration)
    assert table.loc["a"].tolist() == ["33.9 days", "34.0 days", "0.997"]
    with pytest.raises(ValueError, match=r"shorter|longer"):
        published.confront(["a"], [1, 2], [1], units.count)


def test_a_record_has_a_place_and_its_columns_are_explained() -> None:
    assert list(published.machine_records().columns) == published.RECORD_COLUMNS
    readme = (published.data_folder() / "README.md").read_text("utf-8")
    section = readme.split("## measured/")[1]
    cells = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert named == published.RECORD_COLUMNS


def test_records_are_read_one_below_another(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "measured").mkdir()
    for name in ("a", "b"):
        lines = [",".join(published.RECORD_COLUMNS), f"{name}{',' * 16}"]
        (tmp_path / "measured" / f"{name}.csv").write_text("\n".join(lines))
    monkeypatch.setattr(published, "data_folder", lambda: tmp_path)
    assert published.machine_records()["name"].tolist() == ["a", "b"]


def test_recorded_steps_stand_beside_what_was_predicted(monkeypatch) -> None:
    model = published.architecture("gpt2", 1024)
    predicted = step_timeline(model, 4, "bf16", "none").peak.total
    row = dict.fromkeys(published.RECORD_COLUMNS) | {
        **{"name": "mine", "kind": "step", "model": "gpt2", "sequence_length": 1024},
        **{"micro_batch_size": 4, "recompute": "none", "recipe": "bf16"},
        **{"attention": "flash", "peak_bytes": 1.1 * predicted, "mfu": 0.4},
    }
    failed = {**row, "name": "too large", "peak_bytes": None}
    monkeypatch.setattr(
        published, "machine_records", lambda: pandas.DataFrame([row, failed])
    )
    table = published.recorded_steps()
    assert table.index.tolist() == ["mine"]
    assert table.loc["mine", ["ratio", "mfu"]].tolist() == ["0.909", "40.0 %"]


def test_without_a_record_the_table_is_empty() -> None:
    assert len(published.recorded_steps()) == len(published.machine_records()) == 0
