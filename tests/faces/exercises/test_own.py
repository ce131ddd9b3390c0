"""The learner's own run: read, set, kept, and never written unasked."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from llmtrain_course import cells as page
from llmtrain_course.exercises import EXERCISES, course_map, own_run
from llmtrain_course.kit import own_run as own
from llmtrain_course.kit.exercise import grade
from llmtrain_helpers import count_parameters
from llmtrain_helpers.duration import training_interval

if sys.platform == "linux":
    import resource


@pytest.fixture
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner's folder, with a file that is theirs to write."""
    folder = tmp_path / "Kurs über Modelle" / "notebooks"
    (folder / "evidence").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("LLMTRAIN_RUN")
    monkeypatch.setattr(own, "SET", {})
    return folder


def example(tokens: int) -> own.OwnRun:
    """The course's example as `own_run()` gives it, with these tokens."""
    return own.OwnRun(tokens=tokens, batch=512, tensor=1, pipeline=1)


def test_the_example_stands_where_nothing_is_set(notebooks: Path) -> None:
    run = own_run()
    assert run.plan.days.greatest == pytest.approx(30)
    words = (
        "the example: 8 × A100 80GB SXM for 30 days, Llama-3.1-8B, 38 billion tokens, "
        "$1.50 per GPU-hour"
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
    assert own_run() == example(own_run().tokens)


def test_tokens_follow_the_run_until_they_are_set(notebooks: Path) -> None:
    first = own_run().tokens
    assert own_run(gpus=16).tokens == pytest.approx(2 * first, abs=2)
    assert own_run(tokens="20B").tokens == own_run(gpus=32).tokens == 20 * 10**9
    assert own_run(tokens=None).tokens == pytest.approx(4 * first, abs=4)


UNREADABLE = [
    ("days = 7\ngpus 8", "my_run.toml, line 2, 'gpus 8': a line needs a name, = and a value"),
    ("model = Llama-3.1-8B", 'words need straight quotes, model = "Llama-3.1-8B".'),
    ('\nchip = "H100', 'line 2, \'chip = "H100\': words need straight quotes, chip = "H100".'),
    ("model = “Llama-3.1-8B”", 'words need straight quotes, model = "Llama-3.1-8B".'),
    ('model = "C:\\Users\\x.json"', "write a path with / instead of \\."),
    ("gpus = 8\ngpus = 9", "line 2, 'gpus = 9': that's set twice"),
    ("x = " + 4000 * "[", "its brackets nest too deeply"),
    ("gpus = 1" + 5000 * "0", "can't be read: 'Exceeds the limit"),
    ("# " + 10_000 * "x", "my_run.toml has more than 10,000 bytes"),
]
"""Files that can't be read, and what's said about them."""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('days = "soon"', "days='soon' isn't a number"),
        ("gpus = 2.5", "gpus=2.5 is not a whole number"),
        ("gpus = 0", "gpus=0"),
        ("gpus = [8]", "gpus=[8]"),
        ('model = "Llama-9"', "model='Llama-9' is unknown"),
        ('model = "7.2B"', "the nearest published model is 'Mistral-7B-v0.1'"),
        ("model = 3", "model=3 isn't the name of a model"),
        ('chip = "A1000"', "chip='A1000' is unknown"),
        (
            "# mine\n\ngpuz = 64",
            "my_run.toml, line 3: name='gpuz' is unknown, did you mean 'gpus'?",
        ),
        ("[nodes]\ngpus = 9", "my_run.toml: name='nodes' is unknown"),
        ("days = nan", "days=nan"),
        ("gpus = 1" + 400 * "0", "gpus="),
        ("gpus = 1e39", "Your settings can't be computed, so we use the example"),
        *UNREADABLE,
    ],
)
def test_what_cannot_be_understood_is_named(notebooks: Path, text: str, problem: str) -> None:
    (notebooks / own.NAME).write_text(text, "utf-8")
    run = own_run()
    assert run == example(run.tokens)
    assert problem in repr(run)
    assert (notebooks / own.NAME).read_text("utf-8") == text


def test_a_file_that_is_no_text_is_no_run(notebooks: Path) -> None:
    for content in (b"\xff\xfe\x00", "gpus = 16".encode("utf-16"), b'model = "/andr\xe9.json"'):
        (notebooks / own.NAME).write_bytes(content)
        assert "my_run.toml, line 1, isn't UTF-8: save the file as UTF-8" in repr(own_run())
        with pytest.raises(ValueError, match=r"line 1, isn't UTF-8.* Nothing has been changed\.$"):
            own_run(gpus=8)
        assert (notebooks / own.NAME).read_bytes() == content


@pytest.mark.parametrize(("text", "problem"), UNREADABLE)
def test_a_file_that_cannot_be_read_is_never_written_to(
    notebooks: Path, text: str, problem: str
) -> None:
    (notebooks / own.NAME).write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r" Nothing has been changed\.$") as refused:
        own_run(gpus=64)
    assert problem in str(refused.value)
    assert (notebooks / own.NAME).read_text("utf-8") == text


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_all_that_a_change_does_not_concern_stays_in_the_file(
    notebooks: Path, begin: bytes, end: bytes
) -> None:
    lines = [
        b"gpus = 64 # four nodes",
        b"gpuz = 3",
        b'model = "Llama-9"',
        b"",
        b"# mine",
        b"days=9",
    ]
    (notebooks / own.NAME).write_bytes(begin + end.join(lines))
    run = own_run(gpus=16, days=None, price=2)
    assert (run.gpus, run.days, run.price, run.model) == (16, 30, 2, "Llama-3.1-8B")
    assert ["line 2: name='gpuz'" in one for one in run.problems] == [True, False]
    left = [b"gpus = 16  # four nodes", *lines[1:5], b"price = 2", b""]
    assert (notebooks / own.NAME).read_bytes() == begin + end.join(left)


GPUS = st.sampled_from(["gpus = 9", "gpus=9#x", '"gpus" = "9"', "gpus = [\n9]", "gpus = 1e39"])
OTHERS = st.sampled_from(
    ["gpuz = 64", "# mine", "days = nan", "[x]", 'y = """', "y = '''", "a.b = [1,", "x = [[2]]"]
)
LINES = st.lists(GPUS | OTHERS | st.text(max_size=9), max_size=6).map("\n".join)
CONTENTS = st.binary(max_size=60) | LINES.map(lambda text: text.encode("utf-8", "replace"))
CONTENTS |= st.sampled_from([b"x = " + 4000 * b"[", b"x." * 4000 + b"x = 1", 10_001 * b"#"])


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(CONTENTS)
def test_whatever_is_in_the_file_it_is_explained_and_nothing_of_it_is_lost(
    notebooks: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(own, "_planned", lambda run: replace(run, tokens=10**6 * run.gpus))
    path = notebooks / own.NAME
    path.write_bytes(content)
    own_run()
    assert path.read_bytes() == content
    try:
        own_run(gpus=8)
    except ValueError:
        assert path.read_bytes() == content
    else:
        assert own_run().gpus == 8
        gpus = re.compile(rb"""["']?gpus["']? *= *[^#\s]+( *#.*)?""")
        left = [line for line in content.split(b"\n") if not gpus.fullmatch(line.strip())]
        assert [line for line in left if line not in path.read_bytes()] == []
    assert [one.name for one in notebooks.glob("*run*")] == [own.NAME]


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes there")
def test_a_path_that_is_no_text_is_refused_and_the_file_stays(notebooks: Path) -> None:
    own_run(gpus=64)
    path = os.fsdecode(b"andr\xe9.json")
    Path(path).write_text(json.dumps(LLAMA_3B), "utf-8")
    with pytest.raises(ValueError, match=r"^model='andr\\udce9.json' isn't a path in UTF-8"):
        own_run(model=path)
    assert own_run().gpus == 64


@pytest.mark.parametrize("example", ["", "example"])
def test_a_run_that_cannot_be_computed_is_refused_and_not_kept(
    notebooks: Path, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    monkeypatch.setenv("LLMTRAIN_RUN", example)
    for gpus in (1e39, 1e33):
        with pytest.raises(ValueError, match=r"^gpus=1e\+3\d can't be computed: tokens=10\^4"):
            own_run(gpus=gpus)
    assert not [*notebooks.glob("*run*")]
    assert own_run(days=14).gpus == 8


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")
def test_on_a_full_disk_the_old_file_stays_and_the_run_lives_in_the_kernel(notebooks: Path) -> None:
    own_run(gpus=64, days=14)
    before = (notebooks / own.NAME).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, limits[1]))  # a file of five bytes at most
    try:
        run = own_run(gpus=16, days=None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "can't be read or written (File too large), so your settings only last" in repr(run)
    assert [one.read_bytes() for one in notebooks.glob("*run*")] == [before]
    assert (own_run().gpus, own_run().days) == (16, 30)
    own_run(price=2)  # there's space again
    assert (notebooks / own.NAME).read_text("utf-8") == "gpus = 16\nprice = 2\n"
    assert own.SET == {}


@pytest.mark.skipif(os.name == "nt", reason="a folder in use isn't deleted there")
def test_without_a_working_folder_the_run_lives_in_the_kernel(
    notebooks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = notebooks / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert own_run().gpus == 8
    assert "can't be read or written (No such file or directory)" in repr(own_run(gpus=64))
    assert own_run().gpus == 64
    assert "00" in repr(course_map())


def test_where_no_file_can_be_written_the_run_lives_in_the_kernel(notebooks: Path) -> None:
    (notebooks / own.NAME).mkdir()  # a read-only folder would not stop a superuser
    assert "my_run.toml can't be read or written" in repr(own_run(gpus=64))
    assert own_run().gpus == 64


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="a superuser may write it")
def test_what_is_read_only_is_left_as_it_is(notebooks: Path) -> None:
    (notebooks / own.NAME).write_text("gpus = 64", "utf-8")
    for place, mode in ((notebooks / own.NAME, 0o444), (notebooks, 0o555), (notebooks, 0o755)):
        place.chmod(mode)
        assert "can't be read or written (Permission denied)" in repr(own_run(gpus=16))
    assert (notebooks / own.NAME).read_text("utf-8") == "gpus = 64"


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
    with pytest.raises(ValueError, match=f"^(name|{next(iter(changes))})="):
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
    assert grade("plan-d", answer, EXERCISES["plan-d"], 0).ok


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
    "flops-d": lambda mine: (mine.model, mine.gpus, mine.chip, 128),
    "duration-d": lambda mine: {"model": mine.model, "days": 7, "chip": mine.chip, "gpus": 16},
    "activations-d": lambda mine: {
        **{"model": mine.model, "gpus": mine.gpus, "chip": mine.chip},
        **{"sequence": mine.sequence, "zero": 3, "recompute": "none", "micro": 2},
    },
    "plan-d": lambda mine: dict(mine) | {"micro": 2, "zero": 3, "recompute": "none"},
    "budget-d": lambda mine: {
        name: mine[name] for name in ("model", "gpus", "chip", "days", "tokens")
    },
}


@pytest.mark.parametrize("id", PAGES)
def test_a_config_json_is_a_model_on_each_page(mine: own.OwnRun, id: str) -> None:
    right, reply = EXERCISES[id].grade(PAGES[id](mine))
    assert right, reply


def test_what_a_small_model_is_promised_the_plan_keeps(mine: own.OwnRun) -> None:
    """Scores are more than a third of its work, and 6TP does not know them."""
    mine = own_run(sequence=16384, batch=256)
    by_the_formula = training_interval(
        mine.tokens, count_parameters(mine.shape).active, mine.gpus, 989.5e12
    )
    assert by_the_formula.greatest < 0.97 * 40 * 86400
    kept = dict(mine) | {"micro": 1, "zero": 3, "recompute": "none"}
    right, reply = EXERCISES["plan-d"].grade(kept)
    assert right, reply
    assert not EXERCISES["plan-d"].grade(kept | {"tokens": int(1.04 * mine.tokens)})[0]


def test_a_model_of_short_texts_is_planned_on_them(notebooks: Path) -> None:
    assert own_run(model="GPT-3 175B").sequence == 2048
    assert own_run(sequence=1024).shape.sequence_length == 1024
