"""Models and chips by their names, and `shard`: the same plan by each way to say it."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from llmtrain_course.kit.own_run import own_run
from llmtrain_helpers import Plan, best_split, plan_run, published, sweep
from llmtrain_helpers.__main__ import main
from llmtrain_helpers.model.names import SEQUENCE, known_model, longest_shape
from llmtrain_helpers.parallelism import SHARDS

from .cases import H100

LLAMA = published.architecture("Llama-3.1-8B")
CONFIG = next(row["config"] for row in published.rows("configs") if row["name"] == "Llama-3.1-8B")
RUN = {"num_gpus": 64, "tokens": 10**12, "global_batch_size": 64}


def plan_of(model: object, accelerator: object = H100, **options: object) -> Plan:
    return plan_run(model, accelerator, **RUN, recompute="full", **options)


def config_file(folder: Path, name: str = "config.json", **changes: object) -> Path:
    path = folder / name
    config = {**json.loads(CONFIG), "model_type": "llama", **changes}
    path.write_text(json.dumps(config), "utf-8")
    return path


def test_a_name_a_file_and_a_shape_make_the_same_plan(tmp_path: Path) -> None:
    path = config_file(tmp_path)
    for model in (LLAMA, "Llama-3.1-8B", "llama 3.1 8b", path, str(path)):
        plan = plan_of(model, sequence_length=4096)
        assert plan.run.model == replace(LLAMA, sequence_length=4096)
        assert plan.seconds == plan_of(replace(LLAMA, sequence_length=4096)).seconds
    for chip in (H100, "H100", "h100 sxm"):
        assert plan_of(LLAMA, chip).run.accelerator == H100


def test_a_file_without_an_ending_is_a_path_too(tmp_path: Path, monkeypatch) -> None:
    config_file(tmp_path, "mine", num_hidden_layers=16)
    monkeypatch.chdir(tmp_path)
    assert plan_of("mine").run.model.num_layers == 16


def test_searches_and_changes_take_names_as_well() -> None:
    by_name = best_split("gpt2", "A100", 8, 512)
    by_shape = best_split(published.architecture("gpt2"), published.accelerator("A100"), 8, 512)
    assert by_name.inputs == by_shape.inputs
    plans = sweep("gpt2", "A100", 8, 1e10, 512, recompute="none", tensor_parallel=1)
    assert plans.fastest().run.model == published.architecture("gpt2")
    changed = plan_of(LLAMA).replace(accelerator="B200", model="Mistral-7B-v0.1", shard="zero1")
    assert changed.run.accelerator.name.startswith("B200")
    assert (changed.run.model.vocab_size, changed.run.zero_stage) == (32_000, 1)


def test_the_command_and_python_read_a_name_alike(capsys) -> None:
    name, run = "Llama-3.1-8B", {"recompute": "none", "shard": "fsdp"}
    plan = plan_run(name, "H100", 64, 1e12, 512, **run)
    options = "--gpus 64 --chip h100 --tokens 1T --batch 512 --shard fsdp --recompute none"
    assert main(shlex.split(f"plan {name} {options} --tensor 1 --micro-batch 1 --json")) == 0
    command = json.loads(capsys.readouterr().out)
    assert command["inputs"]["sequence_length"] == plan.run.model.sequence_length == SEQUENCE
    assert command["days"]["likely"] == pytest.approx(plan.days.likely)
    assert command["memory_bytes"]["total"] == plan.memory.total
    lines = {line.what: line.assumption for line in plan.report(name).lines}
    assert "in sequences of 8,192" in lines["tokens"]


def calls(model: object, **options: object) -> list[Plan]:
    """A plan by each function that takes a name."""
    swept = sweep(model, H100, 8, 1e10, 64, recompute="full", tensor_parallel=1, **options)
    return [
        plan_of(model, **options),
        best_split(model, H100, 8, 64, **options),
        swept.plans[0],
        plan_of("Llama-3.1-70B").replace(model=model, **options),
    ]


@pytest.mark.parametrize(
    ("model", "options", "tokens"),
    [
        ("Llama-3.1-8B", {}, 8192),
        ("Llama-2-7b", {}, 4096),
        ("gpt2", {}, 1024),
        ("Mixtral-8x7B", {}, 8192),
        ("Llama-3.1-8B", {"sequence_length": 2048}, 2048),
        ("Llama-3.1-8B", {"sequence_length": 131_072}, 131_072),
        (LLAMA, {}, 131_072),
        (LLAMA, {"sequence_length": 2048}, 2048),
    ],
)
def test_one_default_for_names_and_a_shape_keeps_its_own(model, options, tokens) -> None:
    plans = calls(model, **options)
    assert {plan.run.model.sequence_length for plan in plans} == {tokens}


def test_a_plan_changes_its_sequences_and_own_run_reads_a_name_alike(monkeypatch) -> None:
    assert plan_of(LLAMA).replace(sequence_length=4096).run.model.sequence_length == 4096
    monkeypatch.setenv("LLMTRAIN_RUN", "example")
    monkeypatch.setattr("llmtrain_course.kit.own_run.SET", {})
    for name in ("Llama-3.1-8B", "Llama-2-7b", "gpt2"):
        assert own_run(model=name).shape == known_model(name)


def test_tables_and_files_keep_the_longest_sequence(tmp_path: Path) -> None:
    assert published.read_config(config_file(tmp_path)).sequence_length == 131_072
    assert LLAMA.sequence_length == longest_shape("Llama-3.1-8B").sequence_length == 131_072


def test_sequences_beyond_the_positions_are_refused_or_warned_of(tmp_path: Path, capsys) -> None:
    for call in (plan_of, lambda model, **s: best_split(model, H100, 8, 64, **s)):
        with pytest.raises(ValueError, match=r"^sequence_length=2048 is more than the 1,024 posi"):
            call("gpt2", sequence_length=2048)
        with pytest.warns(UserWarning, match=r"^sequence_length=8192 is more than the 4,096 tok"):
            assert call("Llama-2-7b", sequence_length=8192).run.model.sequence_length == 8192
    options = "--gpus 8 --chip h100 --tokens 1T --json --sequence"
    path = config_file(tmp_path, max_position_embeddings=4096)
    for model in ("llama-2-7b", str(path)):
        assert main(["plan", model, *options.split(), "8192"]) == 0
        printed = capsys.readouterr()
        assert printed.err.startswith("--sequence 8192 is more than the 4,096 tokens that we know")
        assert json.loads(printed.out)["inputs"]["sequence_length"] == 8192
        assert main(["plan", model, *options.split(), "4096"]) == 0
        assert not capsys.readouterr().err


@pytest.mark.parametrize("length", [0, -1, 2.5, "8k", float("nan"), np.array([1024, 2048])])
def test_a_length_that_is_none_is_refused_by_its_name(length: object) -> None:
    for call in (
        lambda: best_split(LLAMA, H100, 8, 64, sequence_length=length),
        lambda: sweep(LLAMA, H100, 8, 1e10, 64, recompute="full", sequence_length=length),
    ):
        with pytest.raises(ValueError, match=r"^sequence_length="):
            call()


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("Llama-3.1-9B", "^model='Llama-3.1-9B' is unknown, did you mean 'Llama-"),
        ("nowhere.json", "^model='nowhere.json' isn't a file: give the path of a config.json"),
        (Path("nowhere"), "^model='nowhere' isn't a file"),
        ("", "^model='' is unknown"),
        ("x" * 10**5, "^model='xxx"),
        ("a\0b", "^model='a.x00b' is unknown"),
        (None, "^model=None isn't a Transformer, a name or the path"),
        (b"gpt2", "^model=b'gpt2' isn't a Transformer"),
    ],
)
def test_a_model_that_is_not_known_is_refused_with_near_names(model: object, problem: str) -> None:
    for call in (plan_of, lambda model: best_split(model, H100, 8, 64)):
        with pytest.raises(ValueError, match=problem):
            call(model)


def test_a_folder_and_a_file_that_is_no_config_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="isn't a file: give the path of a config"):
        plan_of(tmp_path)
    (tmp_path / "config.json").write_text("layers: 32", "utf-8")
    with pytest.raises(ValueError, match=r"^model=.*isn't JSON that can be read"):
        plan_of(tmp_path / "config.json")
    vision = config_file(tmp_path, "vision.json", model_type="llava", text_config={})
    with pytest.raises(ValueError, match=r"^model_type=None in text_config is unknown"):
        plan_of(vision)


@pytest.mark.parametrize(
    ("chip", "problem"),
    [
        ("H10", "^accelerator='H10' is unknown, did you mean 'H100 SXM'"),
        ("", "^accelerator='' is unknown"),
        (8, "^accelerator=8 isn't an Accelerator or the name of one"),
    ],
)
def test_a_chip_that_is_not_known_is_refused_with_near_names(chip: object, problem: str) -> None:
    for call in (plan_of, lambda model, chip: best_split(model, chip, 8, 64)):
        with pytest.raises(ValueError, match=problem):
            call(LLAMA, chip)


@pytest.mark.parametrize("shard", SHARDS)
def test_one_word_says_stage_and_way_of_sharding(shard: str) -> None:
    stage, sharding = SHARDS[shard]
    plan = plan_of(LLAMA, shard=shard)
    spelt = plan_of(LLAMA, zero_stage=stage, sharding=sharding)
    assert plan.inputs == spelt.inputs
    assert plan.memory == spelt.memory
    best = best_split(LLAMA, H100, 8, 64, shard=shard)
    assert (best.run.zero_stage, best.run.sharding) == (stage, sharding)
    [plans] = sweep(LLAMA, H100, 8, 1e12, 64, recompute="full", shard=shard).plans
    assert (plans.run.zero_stage, plans.run.sharding) == (stage, sharding)


@pytest.mark.parametrize("other", [{"zero_stage": 3}, {"zero_stage": 0}, {"sharding": "zero"}])
def test_the_word_beside_what_it_says_is_refused_by_name(other: dict[str, object]) -> None:
    calls = (
        lambda: plan_of(LLAMA, shard="fsdp", **other),
        lambda: best_split(LLAMA, H100, 8, 64, shard="fsdp", **other),
        lambda: sweep(LLAMA, H100, 8, 1e12, 64, recompute="full", shard="fsdp", **other),
        lambda: plan_of(LLAMA).replace(shard="fsdp", **other),
    )
    [name] = other
    for call in calls:
        with pytest.raises(ValueError, match=f"^shard='fsdp' also sets {name}: leave one"):
            call()


def test_words_for_sharding_that_a_plan_cannot_say_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^shard='fdsp' is unknown, did you mean 'fsdp'"):
        plan_of(LLAMA, shard="fdsp")
