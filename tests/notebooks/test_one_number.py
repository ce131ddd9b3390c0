"""Ten questions asked through the command, Python, the panel, an own run and a page: one number."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest

from llmtrain_course.kit.own_run import OwnRun
from llmtrain_course.panels import PANELS
from llmtrain_course.plan.pictures import format_days
from llmtrain_helpers import best_split, calendar_days, plan_run, training_interval, units
from llmtrain_helpers.__main__ import main
from llmtrain_helpers.budget import usual_batch
from llmtrain_helpers.command import FLAGS
from llmtrain_helpers.model.names import known_model
from llmtrain_helpers.plan.pace import STOPS
from llmtrain_helpers.plan.plan import Plan
from tests import pages

EIGHT = ("Llama-3.1-8B", "H100 SXM", 64)
QUESTIONS: dict[str, tuple[tuple[str, str, int], dict[str, Any]]] = {
    "the page's 8B": (EIGHT, {}),
    "a 1B": (("Llama-3.2-1B", "H100 SXM", 64), {}),
    "a 70B": (("Llama-3.1-70B", "H100 SXM", 64), {"tensor_parallel": 8}),
    "on A100": (("Mistral-7B-v0.1", "A100 80GB SXM", 32), {"zero_stage": 1}),
    "a pipeline": (EIGHT, {"pipeline_parallel": 4, "zero_stage": 1}),
    "recomputed": (EIGHT, {"recompute": "full", "micro_batch_size": 2}),
    "shorter": (EIGHT, {"sequence_length": 4096, "tokens": 3 * 10**11}),
    "named software": (EIGHT, {"software": "megatron-core"}),
    "experts": (("Mixtral-8x7B", "H100 SXM", 64), {"zero_stage": 1, "expert_parallel": 8}),
    "a measured step": (EIGHT, {"seconds_per_iteration": 8.0}),
}
"""A model, chip and GPUs each, and what else differs from the plan of chapter 09."""

USUAL: dict[str, Any] = {
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "recompute": "none",
    "micro_batch_size": 1,
    "sequence_length": 8192,
    "zero_stage": 3,
    "tokens": 10**12,
}


def in_python(question: str) -> Plan:
    """The plan that `plan_run` makes, with the measured step in it."""
    machine, changes = QUESTIONS[question]
    options = USUAL | changes
    step = options.pop("seconds_per_iteration", None)
    plan = plan_run(*machine, options.pop("tokens"), 512, **options)
    return plan if step is None else plan.calibrated(step)


def by_command(question: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `llmtrain plan … --json` prints."""
    (model, chip, n), changes = QUESTIONS[question]
    options = USUAL | changes
    words = ["plan", model, "--chip", chip, "--gpus", str(n), "--batch", "512", "--json"]
    words += ["--shard", f"zero{options.pop('zero_stage')}"]
    for name, value in options.items():
        words += [FLAGS[name], str(value)]
    assert main(words) == 0
    return json.loads(capsys.readouterr().out)


def in_the_panel(question: str) -> str:
    """What chapter 09's panel says, its numbers opened."""
    (model, chip, n), changes = QUESTIONS[question]
    values = {"model": model, "chip": chip, "num_gpus": n} | USUAL | changes
    return unescape(PANELS["plan"].render(**values))


@pytest.mark.parametrize("question", QUESTIONS)
def test_command_python_and_panel_give_the_same_days(question: str, capsys) -> None:
    plan, printed = in_python(question), by_command(question, capsys)
    assert printed["days"] == pytest.approx(vars(plan.days))
    assert printed["first_run_days"] == pytest.approx(vars(plan.first_run))
    assert printed["seconds_per_iteration"] == pytest.approx(vars(plan.seconds_per_iteration))
    words = in_the_panel(question)
    assert f"<b>{format_days(plan.days.greatest)}</b> to promise" in words
    for span in (plan.seconds, plan.seconds_per_iteration):
        row = "</td>.*?".join(units.duration(x) for x in (span.least, span.likely, span.greatest))
        assert re.search(row, words), row


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_likely_step_lies_inside_the_days(question: str) -> None:
    plan = in_python(question)
    days, step = plan.days, plan.seconds_per_iteration
    assert days.least < step.likely * STOPS[1] * plan.iterations / units.DAY < days.greatest
    assert days.least <= step.likely * STOPS[0] * plan.iterations / units.DAY
    calendar = calendar_days(plan).computing.likely
    assert calendar == pytest.approx(plan.days_of_steps.likely)


@pytest.mark.parametrize("question", ["the page's 8B", "a 1B", "on A100", "experts"])
def test_an_own_run_is_what_the_command_makes_of_it(question: str, capsys) -> None:
    model, chip, n = QUESTIONS[question][0]
    mine = OwnRun(model, chip, n, tokens=10**11)
    words = f"plan {model} --gpus {n} --tokens 100B --json --chip".split()
    assert main([*words, chip]) == 0
    assert json.loads(capsys.readouterr().out)["days"] == pytest.approx(vars(mine.plan.days))
    batch = usual_batch(known_model(model), n)
    assert mine.plan.days == best_split(model, chip, n, batch, 10**11).days


def test_page_and_picture_have_the_number_of_the_plan() -> None:
    """Chapter 09's promise is the slow end of its plan, and chapter 10 draws the same line."""
    latest = round(in_python("the page's 8B").days.greatest)
    assert f"three would have taken longer than {latest} days" in pages.words("09_plan")
    assert "promise the slow end" in pages.words("09_plan")
    assert f"promised={latest})" in pages.cell("10_calendar", "win-days")


@pytest.mark.parametrize(
    ("model", "most"), [("Llama-3.1-8B", 1.3), ("Llama-3.1-70B", 1.3), ("Llama-3.2-1B", 2.0)]
)
def test_how_far_a_page_without_a_layout_is_from_the_plan(model: str, most: float) -> None:
    """Chapters 00, 03 and 11 know the chip alone: 6TP at the shares of whole published runs.

    The plan counts attention, kernels and what is sent as well, which a 1B feels most.
    """
    plan = in_python("the page's 8B").replace(model=model)
    size = (plan.run.tokens, plan.parameters.active, plan.run.num_gpus, plan.run.peak)
    rough = training_interval(*size).times(1 / units.DAY)
    for end in ("least", "likely", "greatest"):
        assert 1 / most < getattr(plan.days, end) / getattr(rough, end) < most, end
