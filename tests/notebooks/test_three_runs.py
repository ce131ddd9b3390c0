"""Three runs walk through all pages, panels and exercises, which give each of them one number."""

from __future__ import annotations

import ast
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from llmtrain_course.exercises import EXERCISES, own_run
from llmtrain_course.kit import own_run as own
from llmtrain_course.kit.own_panel import YOURS, with_own_run
from llmtrain_course.kit.own_run import OwnRun
from llmtrain_course.panels import PANELS
from llmtrain_helpers import calendar_days, model_state_bytes, units
from llmtrain_helpers.plan.plan import Plan
from tests import pages
from tests.faces.exercises.test_own import LLAMA_3B

RUNS: dict[str, dict[str, Any]] = {
    "the example": {},
    "an 8B on 64 H100s": {"gpus": 64, "chip": "H100", "days": 14, "model": "Llama-3.1-8B"},
    "a config.json on 16 GPUs": {"gpus": 16, "model": "mine.json"},
}


@pytest.fixture(params=RUNS)
def mine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OwnRun:
    """A learner's run, in a folder of their own."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "mine.json").write_text(json.dumps(LLAMA_3B), "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("LLMTRAIN_RUN")
    monkeypatch.setattr(own, "SET", {})
    changes = RUNS[request.param]
    return own_run(**changes) if changes else own_run()


def panel(word: str, mine: OwnRun) -> str:
    """What a chapter's panel says of the run, without its drawing; "" if it can't have it."""
    offered = with_own_run(word, PANELS[word])
    if YOURS not in offered.presets:
        return ""
    html = re.sub("<svg.*?</svg>", " ", offered.render(**offered.presets[YOURS]), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", unescape(html)))


def run_cells(page: str, *ids: str) -> dict[str, Any]:
    """The names that cells of a page make, after its imports, and what they print or return."""
    names: dict[str, Any] = {"display": []}
    names["print"] = lambda *texts, **_: names["display"].append(" ".join(map(str, texts)))
    for id in ("imports", *ids):
        tree = ast.parse(pages.cell(page, id))
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            call = ast.parse("display.append(0)").body[0]
            assert isinstance(call, ast.Expr)
            assert isinstance(call.value, ast.Call)
            call.value.args = [last.value]
            tree.body[-1] = call
        exec(compile(ast.fix_missing_locations(tree), id, "exec"), names)
    return names


def test_the_tokens_are_those_that_the_plan_keeps_on_the_last_day(mine: OwnRun) -> None:
    plan = mine.plan
    assert float(plan.first_run.greatest) == pytest.approx(mine.days, rel=1e-3)
    assert mine.batch == plan.run.global_batch_size
    assert (mine.tensor, mine.pipeline) == (
        plan.split.tensor_parallel,
        plan.split.pipeline_parallel,
    )


def numbers(mine: OwnRun, plan: Plan) -> dict[str, list[str]]:
    """What each panel has to say of the run, as people write it."""
    plan = plan.replace(price_per_gpu_hour=mine.price)
    assert plan.cost is not None
    promised = f"{units.digits(float(plan.first_run.greatest))} days"
    hours = f"{units.count(float(plan.gpu_hours.greatest))} GPU-hours"
    bill = units.dollars(float(plan.cost.greatest))
    memory = units.gigabytes(float(plan.memory.total))
    tokens = units.count(mine.tokens)
    computing = units.digits(float(calendar_days(plan).computing.likely))
    states = model_state_bytes(
        plan.parameters.total, "bf16", plan.run.zero_stage, plan.split.data_parallel
    )
    step = units.count(mine.batch * mine.sequence)
    return {
        "start_here": [units.count(mine.tokens, 2), hours.split(" ")[0]],
        "duration": [promised, hours, bill],
        "batch": [f"{step} tokens per step", f"{mine.batch} sequences"],
        "precision": [f"{units.gigabytes(float(states.total))} of model states"],
        "communication": [f"Each GPU sends {units.gigabytes(float(plan.traffic))}"],
        "parallelism": [f"Each GPU needs {memory}"],
        "plan": [
            f"{plan.first_run.greatest:.3g} days to promise",
            f"Each GPU needs {memory}",
            bill,
            hours.split(" ")[0],
        ],
        "calendar": [f"{computing} days of computing"],
        "budget": [f"slow end to fast end {tokens} to", memory, bill, hours.split(" ")[0]],
    }


def test_every_panel_that_can_have_the_run_gives_its_numbers(mine: OwnRun) -> None:
    texts = {word: panel(word, mine) for word in numbers(mine, mine.plan)}
    if mine.example:
        assert not any(texts.values())
        return
    published = mine.model == "Llama-3.1-8B"
    without = {
        "duration",
        "precision",
        "communication",
        "parallelism",
    }  # they offer published models alone
    for word, expected in numbers(mine, mine.plan).items():
        assert bool(texts[word]) == (published or word not in without), word
        if texts[word]:
            assert [words for words in expected if words not in texts[word]] == [], word


def answers(mine: OwnRun, plan: Plan) -> dict[str, tuple[Any, list[str]]]:
    """An answer to each page's own-run exercise, and the numbers that its reply has to have."""
    memory = units.gigabytes(float(plan.memory.total))
    split = plan.split
    stage, way = plan.run.zero_stage, plan.run.recompute
    machines = {"model": mine.model, "gpus": mine.gpus, "chip": mine.chip}
    ways = {"tensor": split.tensor_parallel, "pipeline": split.pipeline_parallel}
    passes = mine.batch // (split.micro_batch_size * split.data_parallel)
    states = model_state_bytes(plan.parameters.total, "bf16", stage, split.data_parallel).total
    single = plan.replace(micro_batch_size=1)  # as chapter 08 splits
    step = units.digits(float(single.seconds_per_iteration.likely), 2)
    each = units.count(mine.batch * mine.sequence)
    return {
        "batch-d": (
            {"model": mine.model, "gpus": mine.gpus, "sequence": mine.sequence}
            | ways
            | {"micro": split.micro_batch_size, "accumulation": passes},
            [f"{split.data_parallel} replicas, you train on {each} tokens per step"],
        ),
        "precision-d": (
            machines | {"recipe": "bf16", "zero_stage": stage, "gigabytes": float(states) / 1e9},
            [units.gigabytes(float(states))],
        ),
        "activations-d": (
            machines
            | {"sequence": mine.sequence, "zero": stage, "recompute": way}
            | {"micro": split.micro_batch_size},
            [memory],
        ),
        "parallelism-c": (
            machines
            | ways
            | {"batch": mine.batch, "sequence": mine.sequence, "recompute": way, "zero": stage},
            [f"needs {units.gigabytes(float(single.memory.total))}", f"it's {step} s"],
        ),
        "plan-d": (
            dict(mine) | {"micro": split.micro_batch_size, "zero": stage, "recompute": way},
            [f"{plan.first_run.greatest:.1f} to promise", memory],
        ),
        "budget-d": (
            machines | {"days": mine.days, "tokens": 2 * mine.tokens},
            [f"At the slow end they'd need {units.digits(2 * mine.days)} days"],
        ),
    }


@pytest.mark.parametrize(
    "id", ["batch-d", "precision-d", "activations-d", "parallelism-c", "plan-d", "budget-d"]
)
def test_every_exercise_judges_the_same_run(mine: OwnRun, id: str) -> None:
    answer, expected = answers(mine, mine.plan)[id]
    _, reply = EXERCISES[id].grade(answer)
    assert [words for words in expected if words not in reply] == [], reply


def test_page_10_starts_from_the_days_of_the_plan(mine: OwnRun) -> None:
    calendar = run_cells("10_calendar", "exercise-d")
    computing = units.digits(float(calendar_days(mine.plan).computing.likely))
    words = f"{computing} days of computing; {units.digits(mine.days)} to promise"
    assert calendar["display"][0] == words
    saved = calendar["my_run"] | {
        "save_minutes": 240,
        "spare_nodes": 4 if mine.gpus > 16 else 2 * (mine.gpus > 8),
    }
    late = saved | {"promised_days": mine.days * 1.1}
    assert "after your last one" in EXERCISES["calendar-d"].grade(late)[1]


def test_pages_00_03_11_and_13_show_the_run_itself(mine: OwnRun) -> None:
    assert run_cells("00_start_here", "own-run-so-far")["display"] == [mine]
    assert run_cells("03_duration", "own-run")["display"] == [mine]
    budget = run_cells("11_budget", "own-frontier")
    assert budget["display"][0] == repr(mine)
    assert budget["machines"][1:] == (mine.gpus, mine.days)


def test_page_13_adapts_the_same_model_as_its_panel(mine: OwnRun) -> None:
    adapted = run_cells("13_finetune", "own-adapted")
    peak, minutes = adapted["peak"], units.duration(float(adapted["adapted"].seconds.likely), 2)
    assert adapted["display"][0].startswith(repr(mine))
    if words := panel("finetune", mine):
        assert f"{peak} on each GPU" in words
        assert f"It will run about {minutes}" in words
