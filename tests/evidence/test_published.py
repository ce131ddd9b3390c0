"""The evidence: every table as data/README.md says, every row with its source."""

import csv
import io
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pandas
import pytest

from llmtrain_course.batch.formulas import batches_near, batches_of_size
from llmtrain_course.duration.formulas import nearest_run
from llmtrain_course.kit.evidence import confront
from llmtrain_course.measure import recorded
from llmtrain_course.measure.recorded import RECORD_COLUMNS, machine_records, recorded_steps
from llmtrain_helpers import (
    Transformer,
    count_parameters,
    plan_run,
    published,
    step_timeline,
    units,
)
from llmtrain_helpers.model import names, tables
from llmtrain_helpers.model.names import SAME_SILICON
from tests.bad_values import assert_refused

LAYOUTS = published.parallel_layouts().to_dict("records")


def test_of_35_layouts_21_print_what_the_product_is_held_against() -> None:
    printed = [row["name"] for row in LAYOUTS if row["data_parallel_printed"]]
    assert (len(printed), len(LAYOUTS)) == (21, 35)
    assert not [name for name in printed if "Table1" in name]  # Table 1 has no DP
    assert "BLOOM-176B" in printed


def test_no_row_of_the_data_is_from_memory() -> None:
    for table in ("scaling_laws", "tokens_per_parameter", "loss_runs"):
        assert not any("memory" in str(x) for r in published.rows(table) for x in r.values())
    kinds = {r["confidence"].split()[0] for r in published.rows("scaling_laws")}
    assert kinds == {"read", "derived"}


def test_the_causes_add_up_and_one_share_is_misprinted() -> None:
    causes = published.llama3_causes()
    assert causes["stops"].sum() == 419
    off = (causes["share"] - causes["printed_share"]).abs() > 0.002
    assert causes.loc[off, "name"].tolist() == ["Faulty GPU"]
    assert causes["printed_share"].sum() == pytest.approx(0.949, abs=0.001)
    gpus = causes.query("kind == 'GPU'")["stops"].sum()
    assert gpus == 268
    assert gpus / 419 == pytest.approx(0.640, abs=0.0005)
    assert (gpus - 22) / 419 == pytest.approx(0.587, abs=0.0005)


def test_the_nearest_run_is_the_run_itself() -> None:
    assert nearest_run(15.6e12, 405853388800)["name"] == "Llama 3.1 405B"
    assert_refused(nearest_run, "tokens", tokens=0, parameters=1)


STATES = published.model_state_memory().to_dict("records")


def test_what_was_weighed_is_told_from_what_was_multiplied() -> None:
    kinds = Counter(row["kind"] for row in STATES)
    assert kinds == {"computed": 18, "stated": 6, "measured": 3}
    for row in STATES:
        weighed = re.search(r"\b(du \S+|wc -c)$", row["name"])
        assert bool(weighed) == (row["kind"] == "measured"), row["name"]


def test_more_published_runs_say_bf16_than_anything_else() -> None:
    assert published.training_runs()["precision"].mode().tolist() == ["bf16"]


SHAPED = [*published.training_runs().dropna(subset="kind")["name"], "DeepSeek-V3", "gpt-oss-120b"]


@pytest.mark.parametrize("name", SHAPED)
def test_a_runs_shape_has_its_published_number_of_parameters(name: str) -> None:
    row = published.training_runs().set_index("name").loc[name]
    total = count_parameters(published.run_model(name)).total
    assert total == pytest.approx(row["parameters"], rel=1e-3)


def test_a_run_without_a_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="has no shape here"):
        published.run_model("OLMo 2 7B")
    with pytest.raises(ValueError, match="did you mean 'BLOOM-176B'"):
        published.run_plan("BLOM")


def test_published_runs_take_all_options_and_know_what_is_missing() -> None:
    with pytest.raises(ValueError, match="tokens were not published"):
        published.run_plan("MT-NLG 530B")
    plan = published.run_plan(
        "Llama 2 70B", num_gpus=1024, global_batch_size=1024, tensor_parallel=8
    )
    assert plan.split.data_parallel == 128
    assert plan.gpu_hours == published.run_plan("Llama 2 70B").gpu_hours
    assert published.run("llama-2-70b") == published.run("Llama 2 70B")
    for bad in ("Lama 2 70B", "", 1, 10**5000, None):
        with pytest.raises(ValueError, match="run="):
            published.run(bad)


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


def test_the_columns_of_every_table_are_listed() -> None:
    lines = (published.data_folder() / "columns.txt").read_text("utf-8").splitlines()
    assert lines == [f"{path.stem}:{','.join(rows(path)[0])}" for path in TABLES]


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch):
    """A copy of a table in which something was changed, as the package reads it."""
    caches = (
        *(published.rows, tables._by_spelling, published._read_table),
        *(names._links, names._matmul_shares),
    )
    shutil.copytree(published.data_folder(), tmp_path / "data")
    for module in (tables, published):
        monkeypatch.setattr(module, "data_folder", lambda: tmp_path / "data")

    def change(edit, table: str = "links", encoding: str = "utf-8") -> Path:
        path = tmp_path / "data" / f"{table}.csv"
        path.write_text(edit(path.read_text("utf-8")), encoding, newline="")
        for cache in caches:
            cache.cache_clear()
        return path

    yield change
    for cache in caches:
        cache.cache_clear()


def without(column: str):
    """What leaves one of its columns out of a table's text."""

    def edit(text: str) -> str:
        lines = [*csv.reader(io.StringIO(text))]
        i = lines[0].index(column)
        return joined([*line[:i], *line[i + 1 :]] for line in lines)

    return edit


def semicolons(text: str) -> str:
    return joined(csv.reader(io.StringIO(text)), ";")


def joined(lines, delimiter: str = ",") -> str:
    made = io.StringIO()
    csv.writer(made, delimiter=delimiter).writerows(lines)
    return made.getvalue()


READERS = {
    "by name": lambda: published.accelerator("H100"),
    "row by row": lambda: published.rows("links"),
    "by pandas": lambda: published.links(),
    "in a plan": lambda: plan_run("gpt2", "H100", 8, 1e10, 64, recompute="none"),
}

DAMAGE = {
    "empty": (lambda text: "", "has no column name, "),
    "one line": (lambda text: text.partition("\n")[0] + "\n", "has no rows"),
    "no header": (lambda text: text.partition("\n")[2], "has no column name, "),
    "no speed": (without("network_bandwidth"), "has no column network_bandwidth: "),
    "no names": (without("name"), "has no column name: "),
    "twice": (lambda text: text.replace("link,", "name,", 1), "has no column name, link: "),
    "semicolons": (semicolons, "has no column name, .* separated by commas"),
    "tabs": (lambda text: text.replace(",", "\t"), "has no column name, .* separated by commas"),
    "cut": (lambda text: text[:-200], "has [0-9]+ cells instead of "),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(("edit", "problem"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_table_is_refused_by_the_name_of_its_file(damaged, edit, problem, read) -> None:
    path = damaged(edit)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}:? .*{problem}"):
        read()


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_table_that_is_missing_or_in_another_encoding_is_refused(damaged, read) -> None:
    path = damaged(str, encoding="utf-16")
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} can't be read: 'utf-8'"):
        read()
    path.unlink()
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} can't be read: .*No such file"):
        read()


@every_table
def test_each_table_has_a_function_that_copies_it(path: Path) -> None:
    function = getattr(published, path.stem)
    assert (function.__name__, function.__doc__) == (path.stem, published.TABLES[path.stem])
    assert path.stem in dir(published)
    copy = function()
    copy["name"] = ""
    assert function().equals(getattr(published, path.stem)())
    assert not function().equals(copy)
    with pytest.raises(AttributeError, match="has no attribute 'acelerators'"):
        published.acelerators()


@every_table
def test_a_table_reads_the_same_with_a_byte_order_mark(damaged, path: Path) -> None:
    expected, table = published.rows(path.stem), getattr(published, path.stem)()
    damaged(str, path.stem, "utf-8-sig")
    assert published.rows(path.stem) == expected
    assert getattr(published, path.stem)().equals(table)


def test_a_record_that_is_damaged_is_refused_too(damaged) -> None:
    header = ",".join(RECORD_COLUMNS)
    path = damaged(str).parent / "measured" / "mine.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{header}\nmine{',' * 16}\n", "utf-8-sig")
    assert machine_records()["name"].tolist() == ["mine"]
    path.write_text(f"{header}\nmine{',' * 16}\n".replace(",", ";"), "utf-8")
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} has no column name, "):
        machine_records()


def licences() -> dict[str, str]:
    """The licence of each table, as the README's list has it; a table may be listed once."""
    readme = (published.data_folder() / "README.md").read_text("utf-8")
    section = readme.partition("## Licences")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    listed = [(table, licence) for licence, tables, _ in rows[2:] for table in tables.split(", ")]
    assert len(listed) == len(dict(listed))
    return dict(listed)


def test_every_table_has_a_licence() -> None:
    assert sorted(licences()) == sorted(path.stem for path in published.data_folder().glob("*.csv"))


def test_collections_that_are_shared_alike_stay_so() -> None:
    alike = re.compile("stas00/ml-engineering|aws-neuron/aws-neuron-sdk")
    for path in published.data_folder().glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if alike.search(row.get("source") or "")]
        # a single figure in a table of single figures is cited, not collected
        assert (licences()[path.stem] == "CC BY-SA 4.0") == (len(rows) > 1), path.stem


@every_table
def test_every_column_is_explained(path: Path) -> None:
    readme = (published.data_folder() / "README.md").read_text("utf-8")
    section = readme.split(f"## {path.name}")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    columns = list(rows(path)[0])
    for cell in cells:
        if "…" in cell:
            first, last = re.findall(r"`(\w+)`", cell)
            names |= set(columns[columns.index(first) : columns.index(last) + 1])
    assert names - {"fp32"} == set(columns) - {"fp32"}


def holds_batch(row: dict[str, str]) -> bool:
    if not row["global_batch_size"]:
        return True
    product = int(row["global_batch_size"]) * int(row["sequence_length"])
    return product == pytest.approx(float(row["batch_tokens_end"]), rel=0.0005)


def holds_example(row: dict[str, str]) -> bool:
    """Each `L=… -> …M` or `C=… -> …M` of an example is what its law gives."""
    law = {
        "Kaplan 2020": lambda L: 2.1e8 * L ** (-1 / 0.21),
        "DeepSeek LLM 2024": lambda C: 0.2920 * C**0.3271,
    }
    if row["name"] not in law:
        return not row["example"]
    pairs = re.findall(r"([\d.]+(?:e\d+)?) -> ([\d.]+)M", row["example"])
    return len(pairs) >= 3 and all(
        law[row["name"]](float(x)) / 1e6 == pytest.approx(float(millions), rel=0.01)
        for x, millions in pairs
    )


def holds_split(row: dict[str, str]) -> bool:
    """The numbers behind TP, CP and PP in a set-up; a 1 where they are not named."""
    if not row["tensor_parallel"]:
        return "torchtitan" not in row["source"]
    if "AsyncTP" in row["setup"]:  # the row above, with one thing more
        return row["tensor_parallel"] == "8"
    short = {"tensor": "TP", "pipeline": "PP", "context": "CP"}
    for kind, name in short.items():
        match = re.search(rf"\b{name}(\d+)", row["setup"])
        if row[f"{kind}_parallel"] != (match[1] if match else "1"):
            return False
    return True


def holds_failures(row: dict[str, str]) -> bool:
    """Stops, the middle of a range, over days and nodes; or a day over the hours."""
    cell = row["failures_per_node_day"]
    if not (row["stops"] or row["hours_between"]):
        return not cell
    nodes = int(row["num_gpus"]) / int(row["gpus_per_node"])
    if row["hours_between"]:
        rate = 24 / (float(row["hours_between"]) * nodes)
    else:
        most = float(row["stops_high"] or row["stops"])
        rate = (float(row["stops"]) + most) / 2 / (float(row["days"]) * nodes)
    return float(cell) == pytest.approx(rate, abs=6e-6)


def holds_rate(row: dict[str, str]) -> bool:
    """Tokens of a step over its seconds and GPUs, where a rate or seconds are derived."""
    seconds, rate = row["seconds_per_iteration"], row["tokens_per_s_per_gpu"]
    if not (seconds and rate):
        return True
    tokens = float(row["global_batch_size"]) * float(row["sequence_length"])
    return tokens / float(seconds) / int(row["num_gpus"]) == pytest.approx(float(rate), rel=1e-5)


def holds_generation(row: dict[str, str]) -> bool:
    """The seconds of writing over those of the step, where they are printed."""
    if not row["generation_seconds"]:
        return bool(row["note"])
    share = float(row["generation_seconds"]) / float(row["seconds_per_iteration"])
    return share == pytest.approx(float(row["share"]), abs=0.0006)


DERIVED = {
    ("generation_shares", "share"): holds_generation,
    ("software_steps", "seconds_per_iteration"): holds_rate,
    ("software_steps", "tokens_per_s_per_gpu"): holds_rate,
    ("interruptions", "failures_per_node_day"): holds_failures,
    ("llama3_causes", "share"): lambda row: (
        int(row["stops"]) / 419 == pytest.approx(float(row["share"]), abs=0.0006)
    ),
    ("parallel_layouts", "num_nodes"): lambda row: (
        int(row["num_nodes"]) * int(row["gpus_per_node"]) == int(row["num_gpus"])
    ),
    ("batch_sizes", "global_batch_size"): holds_batch,
    ("critical_batch", "example"): holds_example,
    ("fp8_speedup", "speedup"): lambda row: (
        float(row["fp8"]) / float(row["bf16"]) == pytest.approx(float(row["speedup"]), abs=0.0006)
    ),
    ("small_runs", "tokens"): lambda row: (
        int(row["batch_tokens"]) * int(row["iterations"]) == int(row["tokens"])
    ),
    ("tokens_per_parameter", "tokens_per_parameter"): lambda row: (
        int(row["tokens"]) / int(row["active_parameters"])
        == pytest.approx(float(row["tokens_per_parameter"]), rel=0.006)
    ),
    **{
        ("measured_memory", f"{kind}_parallel"): holds_split
        for kind in ("tensor", "pipeline", "context")
    },
}
"""What follows from other columns of its row, and how."""


def test_what_we_derived_is_marked_as_such() -> None:
    readme = (published.data_folder() / "README.md").read_text("utf-8")
    marked = set()
    for section in readme.split("\n## ")[1:]:
        table = section.split(".csv")[0]
        for cell, explanation in re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE):
            if "**derived**" in explanation:
                marked |= {(table, name) for name in re.findall(r"`(\w+)`", cell)}
    assert {pair for pair in marked if pair[0] != "training_runs"} == set(DERIVED)


@pytest.mark.parametrize("column", DERIVED, ids=lambda pair: ".".join(pair))
def test_what_we_derived_follows_from_the_other_columns(column: tuple[str, str]) -> None:
    table, _ = column
    for row in rows(published.data_folder() / f"{table}.csv"):
        assert DERIVED[column](row), row["name"]


def test_sums_that_others_printed_add_up() -> None:
    """Not derived by us; but where a source prints a sum, it is copied right."""
    for row in rows(published.data_folder() / "recomputation_overheads.csv"):
        if row["seconds"]:
            both = float(row["forward_seconds"]) + float(row["backward_seconds"])
            assert both == pytest.approx(float(row["seconds"]))
            added = float(row["seconds"]) / 19.6e-3 - 1
            assert added == pytest.approx(float(row["overhead"]), abs=0.005)
    table = published.llmfoundry_benchmarks()
    passes = table["micro_batch_size"] * table["accumulation_steps"]
    assert (passes * table["num_gpus"] == table["global_batch_size"]).all()
    runs = published.small_runs()
    ratios = runs["iterations"] * runs["seconds_per_iteration"] / runs["seconds"]
    assert ratios.between(0.995, 1.005).all()


def test_the_rates_that_00_tells_are_those_of_the_table() -> None:
    rates = published.megatron_training_days().set_index("name")["flops_per_gpu"]
    for scheme, few, many in (("PTD-P", 153e12, 141e12), ("ZeRO-3", 144e12, 44e12)):
        assert rates[f"{scheme} 174.6B on 384 GPUs"] == few
        assert rates[f"{scheme} 174.6B on 1536 GPUs"] == many


def test_links_are_of_chips_that_are_known_and_slower_outside_the_node() -> None:
    table = published.links()
    assert set(table["name"]) <= set(published.accelerators()["name"])
    assert (table["network_bandwidth"] < table["link_bandwidth"]).all()


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
    plain = ["".join(filter(str.isalnum, name.casefold())) for name in names]
    assert len(set(plain)) == len(plain)


def test_peaks_are_dense_and_in_flops_per_second() -> None:
    table = published.accelerators()
    for name in published.PEAKS:
        peaks = table[name].dropna()
        assert peaks.between(5e12, 4e16).all()
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
        ("RTX PRO 6000", "RTX PRO 6000 Workstation"),
        ("A6000", "RTX A6000"),
        ("910C", "Ascend 910C (2 dies)"),
    ],
)
def test_accelerators_go_by_the_names_that_papers_use(called: str, name: str) -> None:
    assert published.accelerator(called).name == name


def test_what_a_driver_shows_has_a_source_and_is_near_the_vendors_bytes() -> None:
    """GB are at least as many bytes; where they mean GiB, 7% more, and 95 GB of TPU v5p 8%."""
    chips = published.rows("accelerators")
    driver_bytes = [row for row in chips if "shown_bytes" in row]
    assert (len(driver_bytes), len(chips)) == (36, 48)
    for row in chips:
        assert ("shown: " in row["source"]) == (row in driver_bytes), row["name"]
    for row in driver_bytes:
        assert 1 <= row["shown_bytes"] / row["memory_bytes"] < 1.09, row["name"]


def test_chips_of_the_same_silicon_share_what_was_measured_on_one() -> None:
    rows = published.rows("matmul_measured")
    measured = {row["accelerator"] for row in rows if row["format"] == "bf16"}
    for name, like in SAME_SILICON.items():
        assert name not in measured
        share = published.accelerator(name).matmul_share
        assert share == published.accelerator(like).matmul_share is not None


def test_an_accelerator_without_a_format_says_so() -> None:
    with pytest.raises(ValueError, match="format='fp8' has no peak on A100 80GB SXM"):
        published.accelerator("A100").peak("fp8")


@pytest.mark.parametrize("read", [published.accelerator, published.architecture])
@pytest.mark.parametrize("bad", ["", "no such", None, 3, ["A100"], "x" * 10**5], ids=type)
def test_an_unknown_name_is_refused(read, bad) -> None:
    with pytest.raises(ValueError, match="is unknown"):
        read(bad)


def test_a_misspelt_name_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"did you mean.*'Llama-3.1-8B'"):
        published.architecture("Lama-3.1-8B")


def test_so_many_batches_as_are_asked_for() -> None:
    assert len(batches_near(1e6, how_many=1.0)) == 1
    assert len(batches_near(1e6)) == 3
    for bad in (0, -1, 2.5, float("nan"), None, "3", np.array([1, 2])):
        assert_refused(batches_near, "how_many", tokens=1e6, how_many=bad)
    for bad in (0, None, "1M", np.array([1e6, 2e6])):
        assert_refused(batches_near, "tokens", tokens=bad)


def test_the_nearest_run_is_that_of_one_size() -> None:
    assert nearest_run(2e12, 70e9)["name"] == "Llama 2 70B"
    good = {"tokens": 2e12, "parameters": 70e9}
    for name in good:
        for bad in (0, None, np.array([1e12]), np.array([1e12, 2e12])):
            assert_refused(nearest_run, name, **(good | {name: bad}))


def test_the_training_length_can_be_said() -> None:
    assert published.architecture("Llama-3.1-8B").sequence_length == 131072
    assert published.architecture("Llama-3.1-8B", 8192).sequence_length == 8192


def test_a_config_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama"}), "utf-8")
    assert published.read_config(path) == Transformer.from_config({"model_type": "llama"})
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
    "NaN nobody asks for": b'{"model_type": "llama", "rope_theta": NaN}',
    "two values": b'{"model_type": "llama", "vocab_size": 1, "vocab_size": 2}',
    "two families": b'{"model_type": "gpt2", "model_type": "llama"}',
    "deep, and two values": b'{"model_type": "llama", "x": '
    + (b"[" * 900 + b"1" + b"]" * 900 + b', "x": ')
    + (b"[" * 900 + b"2" + b"]" * 900 + b"}"),
    "list of layers": b'{"model_type": "llama", "num_hidden_layers": [32]}',
    "text": b'{"model_type": "llama", "num_hidden_layers": "32"}',
    "truth for a number": b'{"model_type": "llama", "num_hidden_layers": true}',
    "long key": b'{"model_type": "llama", "' + b"expert" * 10**5 + b'": 1}',
    "long key of NaN": b'{"model_type": "llama", "' + b"x" * 10**5 + b'": NaN}',
    "only a byte order mark": b"\xef\xbb\xbf",
    "only zeros": b"\0" * 100,
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"vocab_size": NaN', "vocab_size=nan is not a finite number"),
        ('"vocab_size": -Infinity', "vocab_size=-inf is not a finite number"),
        ('"vocab_size": 1e400', "vocab_size=inf is not a finite number"),
        ('"x": {"factor": NaN}', "factor=nan is not a finite number"),
        ('"vocab_size": 1, "vocab_size": 2', "vocab_size=2 contradicts vocab_size=1"),
        ('"num_hidden_layers": 2.5', "num_hidden_layers=2.5 is not a whole number"),
        ('"num_hidden_layers": 1' + 400 * "0", r"num_hidden_layers=10\^400 is not"),
    ],
    ids=lambda text: text[:30],
)
def test_what_is_wrong_in_a_file_is_said_with_its_key(text, message, tmp_path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", ' + text + "}", "utf-8")
    with pytest.raises(ValueError, match=message):
        published.read_config(path)


def test_a_key_may_say_the_same_twice(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "vocab_size": 8, "vocab_size": 8}', "utf-8")
    assert published.read_config(path).vocab_size == 8


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        path = tmp_path / encoding
        path.write_text('{"model_type": "llama"}', encoding)
        assert published.read_config(path).num_layers == 32


def test_a_megabyte_is_read_and_not_a_byte_more(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama"}'.ljust(1_000_000), "utf-8")
    assert published.read_config(path).num_layers == 32
    path.write_text('{"model_type": "llama"}'.ljust(1_000_001), "utf-8")
    with pytest.raises(ValueError, match=r"is too large for a config\.json: over 1,000,000 bytes"):
        published.read_config(path)


def test_confronting_shows_estimate_reported_and_ratio() -> None:
    table = confront(["a"], [33.9084 * 86400], [34 * 86400], units.duration)
    assert table.loc["a"].tolist() == ["33.9 days", "34.0 days", "0.997"]
    with pytest.raises(ValueError, match=r"shorter|longer"):
        confront(["a"], [1, 2], [1], units.count)


def test_a_record_has_a_place_and_its_columns_are_explained() -> None:
    assert list(machine_records().columns) == RECORD_COLUMNS
    readme = (published.data_folder() / "README.md").read_text("utf-8")
    section = readme.split("## measured/")[1]
    cells = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert named == RECORD_COLUMNS


def test_records_are_read_one_below_another(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "measured").mkdir()
    for name in ("a", "b"):
        lines = [",".join(RECORD_COLUMNS), f"{name}{',' * 16}"]
        (tmp_path / "measured" / f"{name}.csv").write_text("\n".join(lines), "utf-8")
    monkeypatch.setattr(published, "data_folder", lambda: tmp_path)
    assert machine_records()["name"].tolist() == ["a", "b"]


def test_recorded_steps_stand_beside_what_was_predicted(monkeypatch) -> None:
    model = published.architecture("gpt2", 1024)
    predicted = step_timeline(model, 4, "bf16", "none").peak.total
    row = dict.fromkeys(RECORD_COLUMNS) | {
        **{"name": "mine", "kind": "step", "model": "gpt2", "sequence_length": 1024},
        **{"micro_batch_size": 4, "recompute": "none", "recipe": "bf16"},
        **{"attention": "flash", "peak_bytes": 1.1 * predicted, "mfu": 0.4},
    }
    failed = {**row, "name": "too large", "peak_bytes": None}
    monkeypatch.setattr(recorded, "machine_records", lambda: pandas.DataFrame([row, failed]))
    table = recorded_steps()
    assert table.index.tolist() == ["mine"]
    assert table.loc["mine", ["ratio", "mfu"]].tolist() == ["0.909", "40.0%"]


def test_without_a_record_the_table_is_empty() -> None:
    assert len(recorded_steps()) == len(machine_records()) == 0


def test_batches_of_like_size_are_published_ones_and_sorted() -> None:
    batches = {
        r["name"].split(" (")[0]: r.get("batch_tokens_end") for r in published.rows("batch_sizes")
    }
    for parameters in (355e6, 8e9, 1e15):
        neighbors = batches_of_size(parameters)
        assert neighbors == sorted(neighbors)
        assert len(neighbors) > 1
        assert {name for _, name in neighbors} <= set(batches)
    with pytest.raises(ValueError, match="parameters="):
        batches_of_size(-1)
