"""What the page of chapter 08 states, computed anew."""

import re
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pandas as pd
import pytest

from llmtrain_course.plan.formulas import rounded_down, share_of_peak
from llmtrain_course.plan.handles import Levers, Month, Setting, planned
from llmtrain_course.plan.pictures import answers
from llmtrain_helpers import plan_run, published, units
from llmtrain_helpers.plan.memory import RESERVES
from llmtrain_helpers.plan.pace import STOPS
from research import memory, splits
from research.utilizations import others_days
from tests.pages import cell, cells, words
from tests.plan.cases import H100, plan_of


def test_the_decision_of_the_page() -> None:
    plan = plan_of(accelerator=H100, zero_stage=3)
    tokens = rounded_down(plan.first_run_tokens(30))
    assert f"{units.count(tokens, 2)} tokens, and a step measured" in words("08_plan")
    most = 30 * units.DAY / STOPS[2] / plan.replace(tokens=tokens).iterations
    assert f"more than {most:.1f} seconds" in words("08_plan")
    size = (plan.total_flops / (6 * 20)) ** 0.5
    assert 20e9 < size < 23e9
    assert "some 20 billion parameters" in words("08_plan")


def test_the_page_tells_what_a_plan_does_not_foresee() -> None:
    """The measured rate takes three times the days that it would have planned."""
    made = plan_run(
        published.architecture("GPT-3 175B", 2048),
        published.accelerator("A100 80GB SXM"),
        1536,
        300e9,
        1536,
        recompute="full",
        zero_stage=3,
    )
    assert made.days.greatest < 74 / 3
    assert "[took just as many days](evidence/08_plan.ipynb) on twice as many" in words("08_plan")
    rows = published.megatron_training_days().set_index("name")["days"]
    for n in (768, 1536):
        assert rows[f"ZeRO-3 174.6B on {n} GPUs"] == 74


def test_which_runs_the_page_says_were_slower_than_the_promise() -> None:
    plan = plan_of(accelerator=H100, zero_stage=3)
    late = [run.name for run in others_days(plan) if run.days > plan.first_run.greatest]
    assert sorted(late) == ["Llama 3.1 70B", "Llama 3.1 8B", "Llama 3.2 1B", "Pythia 70M"]
    uncertain = [run.name for run in others_days(plan) if not run.whole]
    assert (len(uncertain), set(late) - set(uncertain)) == (7, set())
    assert "Seven dots have another colour, the four slow ones among them" in words("08_plan")
    assert "four would have taken longer than 35 days" in words("08_plan")
    assert round(plan.first_run.greatest) == 35
    days = (plan.days.least, plan.first_run.greatest)
    shares = [f"{round(x)} days {100 * share_of_peak(plan, x):.0f} %" for x in days]
    assert shares == ["22 days 49 %", "35 days 30 %"]
    sentence = "At 22 days each GPU reaches $u$ = 49 % of its peak, and at 35 days 30 %"
    assert sentence in words("08_plan")


def test_what_the_levers_cost_and_why() -> None:
    plain, some = Levers(2, 2, "none").plan.step, Levers(2, 2, "alternate").plan.step
    whole = Levers(2, 2, "full").plan.step
    assert some.matmuls / plain.matmuls == pytest.approx(1.1, abs=0.01)
    assert some.total - plain.total == pytest.approx(some.matmuls - plain.matmuls, rel=0.01)
    assert whole.matmuls / plain.matmuls == pytest.approx(4 / 3, abs=0.01)
    assert whole.tensor > 1.3 * plain.tensor
    assert "adds a tenth to the matrix products, and leaves the rest" in words("08_plan")


def test_what_the_page_says_of_stops() -> None:
    assert [round(100 * x - 100) for x in STOPS] == [8, 20, 50]
    assert "took 8 to 50 % longer than their steps" in words("08_plan")


def test_the_reserve_that_the_page_tells() -> None:
    text = cell("08_plan", "memory-seen")
    plan = plan_of(accelerator=H100, zero_stage=3)
    assert plan.reserve == RESERVES["several"] == 5.1e9
    assert "reserves those 5.1 GB (less on a single GPU)" in text
    assert RESERVES["one GPU"] < plan.reserve
    assert f"may fill {units.gigabytes(plan.card - plan.reserve)[:4]} of the 85.5" in text
    several = memory.reserves(attrgetter("ways"))["several"]
    assert f"at least {several.firm / 1e9:.1f} GB more in three steps of four" in text


def test_the_bytes_that_the_page_types() -> None:
    """Of its plan, of the levers' start, and of the 70B on all 64 GPUs."""
    plan = plan_of(accelerator=H100, zero_stage=3)
    card, holds = units.gigabytes(plan.card), units.gigabytes(plan.memory.total)
    first = cell("08_plan", "predict")
    assert f"An H100 has {card} of memory" in first
    assert f"Llama 3.1 8B needs {holds} on each" in first
    assert plan.card / 2**30 < 80
    assert Levers().plan.memory.total > 1.4 * (plan.card - plan.reserve)
    assert "far more than a plan may fill" in cell("08_plan", "levers")
    one = Levers(3, 2, "none").plan.replace(num_gpus=64)
    assert one.fits
    assert one.seconds_per_iteration == Levers().plan.replace(num_gpus=64).seconds_per_iteration
    assert f"makes it fit ({units.gigabytes(one.memory.total)})" in cell("08_plan", "levers-seen")
    assert Levers(1, 2, "alternate").plan.tight
    assert 0 < Levers(1, 2, "alternate").plan.free_memory < 0.1e9


@pytest.mark.parametrize("size", ["Llama-3.2-1B", "Llama-3.1-8B", "Llama-3.1-70B"])
def test_the_months_models_are_fullest_at_the_loss(size: str) -> None:
    for num_gpus in (8, 64, 512):
        assert Month(size, num_gpus=num_gpus).plan.phase == "loss"


def test_how_far_the_page_trusts_the_order() -> None:
    others = [name for name in splits.MANY_SPLITS if name != splits.FITTED]
    ranked = pd.concat([splits.ranked(splits.measured_splits(name)) for name in others])
    *near, worst = sorted(ranked["first"])
    assert len(near) == 6
    assert near[-1] < 0.01
    assert round(worst, 2) == 0.43
    assert (ranked["first three"] < 0.01).all()
    assert "within 1 % of the best six times, and once far slower" in words("08_plan")


def test_a_named_software_makes_a_step_less_uncertain() -> None:
    plan = plan_of(accelerator=H100, zero_stage=3)
    step = plan.seconds_per_iteration
    for software in ("megatron-core", "other"):
        named = plan.replace(software=software)
        assert named.first_run.greatest == plan.first_run.greatest
    own = plan.replace(software="megatron-core").seconds_per_iteration
    assert own.greatest / own.least < 0.8 * step.greatest / step.least


def test_a_first_run_is_as_slow_as_the_page_says() -> None:
    """As page 03's slow runs, or as the slow end of most runs if that's later."""
    for size, later in (("Llama-3.2-1B", True), ("Llama-3.1-8B", False)):
        made = planned(Setting(size, num_gpus=64, tokens=10**12))
        slow, most = made.rough.greatest / units.DAY, made.days.greatest
        assert (most > slow) == later
        assert made.first_run.greatest == max(slow, most)
        drawn = answers(made, 30).body
        assert (">a first run<" in drawn) != later
        assert (">most runs, and a first run<" in drawn) == later


def test_code_that_the_page_quotes_runs_where_it_stands() -> None:
    """Cells first, in order, then each call in the text below them."""
    namespace: dict[str, Any] = {}
    quoted = []
    for one in cells("08_plan"):
        source = "".join(one["source"])
        if one["cell_type"] == "markdown":
            for call in re.findall(r"`(\w+\(.*?\)[\w.()]*|\w+\.\w+\(.*?\))`", source):
                if "own_run(" not in call:  # it would save a run
                    quoted.append(call)
                    eval(call, namespace)
        elif not re.search(r"^(?:handle|check|predict|\w+_panel)\(", source, re.MULTILINE):
            exec(source, namespace)
    assert quoted == [f'plan("Llama-3.1-8B", **alone).calibrated({7.5})']


def test_how_long_the_evidence_says_the_head_takes() -> None:
    plan = plan_of(accelerator=H100, zero_stage=3)
    [(many, layer)] = plan.run.model.layers
    shorter = plan.replace(model=replace(plan.run.model, layers=((many // 2, layer),))).step
    each = (plan.step.total - shorter.total) / (many // 2)
    text = f"take as long as {plan.step.head / each:.1f} layers"
    assert text in cell("evidence/08_plan", "pipeline-reading")
