"""The learner's own run: read, set, kept, and never written unasked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmtrain_helpers import count_parameters
from llmtrain_helpers.duration import training_interval
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import EXERCISES, own, own_run, page
from llmtrain_helpers.exercises.common import judge


@pytest.fixture
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's folder, with a file that is theirs to write."""
    folder = tmp_path / "Kurs über Modelle" / "notebooks"
    (folder / "evidence").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("LLMTRAIN_RUN")
    monkeypatch.setattr(own, "SET", {})
    return folder


def test_the_example_stands_where_nothing_is_set(notebooks: Path) -> None:
    run = own_run()
    size = count_parameters(published.architecture(run.model)).active
    slow = training_interval(run.tokens, size, run.gpus, 312e12).greatest
    assert slow == pytest.approx(30 * 86400)
    words = (
        "the example: 8 × A100 80GB SXM for 30 days, Llama-3.1-8B, 34 billion tokens, "
        "$1.50 a GPU-hour"
    )
    assert repr(run) == words
    assert not [*notebooks.glob("*.toml")]


def test_what_is_set_is_kept_in_all_folders_of_the_notebooks(
    notebooks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_run(gpus="64 ", chip="h100", days=14.5, model="Llama-3.2-1B", price=2)
    monkeypatch.chdir(notebooks / "evidence")
    run = own_run()
    assert dict(run) | {"tokens": 0} == {
        "model": "Llama-3.2-1B",
        "chip": "H100 SXM",
        "gpus": 64,
        "days": 14.5,
        "tokens": 0,
        "sequence": 8192,
        "batch": 512,
        "tensor": 1,
        "pipeline": 1,
        "price": 2,
    }
    assert repr(run).startswith("yours: 64 × H100 SXM for 14.5 days, Llama-3.2-1B, ")
    assert [path.name for path in notebooks.rglob("*.toml")] == ["my_run.toml"]
    own_run(**dict.fromkeys(["gpus", "chip", "days", "model", "price"]))
    assert own_run() == own.OwnRun(tokens=own_run().tokens)


def test_tokens_follow_the_run_until_they_are_set(notebooks: Path) -> None:
    first = own_run().tokens
    assert own_run(gpus=16).tokens == pytest.approx(2 * first, abs=2)
    assert own_run(tokens="20B").tokens == own_run(gpus=32).tokens == 20 * 10**9
    assert own_run(tokens=None).tokens == pytest.approx(4 * first, abs=4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('days = "soon"', "days='soon' is no number"),
        ("gpus = 2.5", "gpus=2.5 is not a whole number"),
        ("gpus = 0", "gpus=0"),
        ("gpus = [8]", "gpus=[8]"),
        ('model = "Llama-9"', "model='Llama-9' is unknown"),
        ('model = "7.2B"', "the nearest published model is 'Mistral-7B-v0.1'"),
        ("model = 3", "model=3 is no name of a model"),
        ('chip = "A1000"', "accelerator='A1000' is unknown"),
        ("nodes = 3", "name='nodes' is unknown"),
        ("gpus 8", "cannot be read, so the example stands in"),
        ("days = nan", "days=nan"),
        ("# " + 10_000 * "x", "it has more than 10,000 bytes"),
        ("gpus = 1" + 400 * "0", "gpus="),
    ],
)
def test_what_cannot_be_understood_is_named(notebooks: Path, text: str, said: str) -> None:
    (notebooks / own.NAME).write_text(text, "utf-8")
    run = own_run()
    assert run == own.OwnRun(tokens=run.tokens)
    assert said in repr(run)
    assert (notebooks / own.NAME).read_text("utf-8") == text


def test_a_file_that_is_no_text_is_no_run(notebooks: Path) -> None:
    (notebooks / own.NAME).write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in repr(own_run())


def test_where_no_file_can_be_written_the_run_lives_in_the_kernel(notebooks: Path) -> None:
    (notebooks / own.NAME).mkdir()  # a read-only folder would not stop a superuser
    assert "my_run.toml cannot be written" in repr(own_run(gpus=64))
    assert own_run().gpus == 64


def test_the_example_alone_reads_and_writes_nothing(
    notebooks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_run(gpus=64)
    monkeypatch.setenv("LLMTRAIN_RUN", "example")
    assert own_run().gpus == 8
    assert own_run(gpus=16).gpus == own_run().gpus == 16
    monkeypatch.setattr(own, "SET", {})
    monkeypatch.delenv("LLMTRAIN_RUN")
    assert own_run().gpus == 64
    monkeypatch.setenv("LLMTRAIN_RUN", "mine")
    with pytest.raises(ValueError, match=r"^LLMTRAIN_RUN='mine' is unknown"):
        own_run()


@pytest.mark.parametrize(
    "changes", [{"gpu": 8}, {"gpus": -1}, {"days": "1e400"}, {"model": b"x"}, {"chip": 7}]
)
def test_a_change_that_cannot_be_is_refused_and_nothing_kept(
    notebooks: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=f"^(name|accelerator|{next(iter(changes))})="):
        own_run(**changes)
    assert not [*notebooks.glob("*.toml")]


def test_a_page_keeps_the_run(notebooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMTRAIN_RUN", "example")
    own_run(gpus=64, days=14)
    stored = json.dumps(page.kept())
    monkeypatch.setattr(own, "SET", {})
    page.restore(stored)
    assert (own_run().gpus, own_run().days) == (64, 14)
    page.restore(json.dumps(page.kept() | {"run": {"gpus": "many", "days": 7, "x": 1}}))
    assert (own_run().gpus, own_run().days) == (64, 7)


def test_an_exercise_takes_it_as_it_is(notebooks: Path) -> None:
    run = own_run(sequence=4096, batch=1024)
    answer = dict(run, micro=1, zero=3, recompute="none")
    assert judge("08-d", answer, EXERCISES["08-d"], 0).ok


def test_a_price_that_nobody_set_is_that_of_the_chip(notebooks: Path) -> None:
    assert own_run().price == 1.5
    assert own_run(chip="H100").price == 2.5
    assert own_run(price=3).price == 3
    assert own_run(chip="A100").price == 3
    assert own_run(price=None).price == 1.5


LLAMA_3B = {
    "model_type": "llama",
    "num_hidden_layers": 28,
    "hidden_size": 3072,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
}
"""A shape that no table has: some three billion parameters."""


@pytest.fixture
def mine(notebooks: Path) -> own.OwnRun:
    """A run of a model that only its config.json knows."""
    (notebooks / "mine.json").write_text(json.dumps(LLAMA_3B), "utf-8")
    return own_run(model="mine.json", gpus=16, chip="H100", days=40)


PAGES = {
    "02-d": lambda mine: (mine.model, mine.gpus, mine.chip, 128),
    "03-d": lambda mine: {"model": mine.model, "days": 7, "chip": mine.chip, "gpus": 16},
    "06-d": lambda mine: {
        **{"model": mine.model, "gpus": mine.gpus, "chip": mine.chip},
        **{"sequence": mine.sequence, "zero": 3, "recompute": "none", "micro": 1},
    },
    "08-d": lambda mine: dict(mine) | {"micro": 1, "zero": 1, "recompute": "none"},
    "10-d": lambda mine: {name: mine[name] for name in ("model", "gpus", "chip", "days", "tokens")},
}


@pytest.mark.parametrize("id", PAGES)
def test_a_config_json_is_a_model_on_each_page(mine: own.OwnRun, id: str) -> None:
    right, told = EXERCISES[id].judge(PAGES[id](mine))
    assert right, told


def test_what_a_small_model_is_promised_the_plan_keeps(mine: own.OwnRun) -> None:
    """Scores are more than a third of its work, and 6TP does not know them."""
    by_the_formula = training_interval(
        mine.tokens, count_parameters(mine.shape).active, mine.gpus, 989.5e12
    )
    assert by_the_formula.greatest < 0.95 * 40 * 86400
    more = dict(mine) | {"tokens": int(1.04 * mine.tokens)}
    late = more | {"micro": 1, "zero": 1, "recompute": "none"}
    assert not EXERCISES["08-d"].judge(late)[0]


def test_a_model_of_short_texts_is_planned_on_them(notebooks: Path) -> None:
    assert own_run(model="GPT-3 175B").sequence == 2048
    assert own_run(sequence=1024).shape.sequence_length == 1024
