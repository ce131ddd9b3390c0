"""What the page of chapter 09 states, computed anew."""

from dataclasses import replace
from math import exp, hypot, log
from operator import attrgetter

import pandas as pd
import pytest

from llmtrain_course.duration.handles import DOUBTFUL, shares_of_runs
from llmtrain_course.panels import HANDLES
from llmtrain_course.plan.formulas import map_plans, rounded_down, share_of_peak
from llmtrain_course.plan.handles import Setting, plan_of_month, planned
from llmtrain_course.plan.pictures import answers
from llmtrain_helpers import advise, plan_run, published, units
from llmtrain_helpers.duration import UTILIZATIONS, training_interval
from llmtrain_helpers.plan.memory import RESERVES
from llmtrain_helpers.plan.pace import STOPS
from llmtrain_helpers.results import Interval
from research import memory, splits
from research.utilizations import others_days, stops
from tests.faces.svg import pictures
from tests.pages import cell, words
from tests.paths import ROOT
from tests.plan.cases import H100, plan_of


def test_the_decision_of_the_page() -> None:
    plan = plan_of(accelerator=H100, zero_stage=3)
    tokens = rounded_down(plan.first_run_tokens(30))
    assert f"{units.count(tokens, 2)} tokens, and we'll measure a step" in words("09_plan")
    most = 30 * units.DAY / STOPS[2] / plan.replace(tokens=tokens).iterations
    assert f"slower than {most:.1f} seconds" in words("09_plan")
    worst, steps = units.share(STOPS[2] - 1), 30 / STOPS[2]
    sentence = f"the overhead is {worst} again, thirty days only leave room for {steps:.0f} days of"
    assert sentence in words("09_plan")


def test_the_numbers_that_the_page_reads_off_its_map() -> None:
    text, plans = words("09_plan"), map_plans(64)
    each = {
        name: float(plan.first_run_tokens(30) / plan.parameters.total)
        for name, plan in plans.items()
    }
    small, guess = units.digits(each["Llama 3.1 8B"], 2), cell("09_plan", "decide")
    assert f"promise {small} tokens per parameter for the 8B" in guess
    assert f"so the 8B with its {small} tokens per parameter is in good" in text
    below, above = each["14B"], each["24B"]
    sizes = [log(plans[name].parameters.total) for name in ("14B", "24B")]
    share = log(below / 20) / log(below / above)
    size = exp(sizes[0] + share * (sizes[1] - sizes[0])) / 1e9
    assert f"between the 14B and the 24B, at about {size:.0f} billion parameters" in text
    fitting = [name for name, plan in plans.items() if plan.fits]
    assert fitting[-1] == "220B"
    assert round(1 / each["220B"]) == 9
    assert "also fits, but it would only get one token per nine parameters." in text
    split = plans["Llama 3.1 70B"].split.tensor_parallel, plans["Llama 3.1 70B"].run.recompute
    assert split == (2, "alternate")
    assert "so now even the 70B fits, with its matrices split and half of it recomputed." in text
    dots = pictures(HANDLES["decision"].render())[0].of_kind("circle")
    released = [dot.words.partition(":")[0] for dot in dots if " tokens" in dot.words]
    rows = published.rows("tokens_per_parameter")
    ratios = {row["name"]: row["tokens_per_parameter"] for row in rows}
    assert len(released) > 40
    assert sum(ratios[name] < 20 for name in released) == 5
    assert "Only five of the dots are below the ray" in text


def test_the_page_tells_what_a_plan_does_not_foresee() -> None:
    """Even the slow end of the plan is less than half of what was measured."""
    made = plan_run(
        published.architecture("GPT-3 175B", 2048),
        published.accelerator("A100 80GB SXM"),
        1536,
        300e9,
        1536,
        recompute="full",
        zero_stage=3,
    )
    assert made.days.greatest < 74 / 2
    assert "[needed just as many days](evidence/09_plan.ipynb) on twice as many" in words("09_plan")
    rows = published.megatron_training_days().set_index("name")["days"]
    for n in (768, 1536):
        assert rows[f"ZeRO-3 174.6B on {n} GPUs"] == 74


def test_which_runs_the_page_says_were_slower_than_the_promise() -> None:
    plan = plan_of(accelerator=H100, zero_stage=3)
    late = [run.name for run in others_days(plan) if run.days > plan.first_run.greatest]
    assert sorted(late) == ["Llama 3.1 8B", "Llama 3.2 1B", "Pythia 70M"]
    uncertain = [run.name for run in others_days(plan) if not run.whole]
    assert (len(uncertain), set(late) - set(uncertain)) == (7, set())
    assert "All the slow runs are in the other colour" in words("09_plan")
    assert "three would have taken longer than 39 days" in words("09_plan")
    assert len(others_days(plan)) == 17
    teaching = (ROOT / "TEACHING.md").read_text("utf-8")
    assert "Only three of seventeen published runs would have broken it." in teaching
    assert round(plan.first_run.greatest) == 39
    days = (plan.days.likely, plan.days.greatest)
    shares = [f"{round(x)} days {100 * share_of_peak(plan, x):.0f}%" for x in days]
    assert shares == ["26 days 33%", "39 days 22%"]
    assert "The 39 days correspond to 22%, because the plan doesn't know your" in words("09_plan")


def test_which_runs_the_dots_are() -> None:
    dots = {run.name for run in others_days(plan_of(accelerator=H100, zero_stage=3))}
    before = {*shares_of_runs()}
    assert len(before) == 14
    assert before - dots == {"DeepSeek-V3"}
    deepseek = published.run("DeepSeek-V3")
    assert deepseek["active_parameters"] < deepseek["parameters"]
    assert dots - before == {*DOUBTFUL, "Falcon-40B", "Llama 3.2 1B"}
    text = words("evidence/09_plan")
    assert "The dots are the fourteen runs of chapter [03](../03_duration.ipynb) without" in text
    assert "plus Falcon-40B, Llama 3.2 1B and the two that had a star there." in text
    assert len(DOUBTFUL) == 2


LARGE = Setting("Llama-3.1-70B", num_gpus=32, tensor_parallel=8, zero_stage=1, micro_batch_size=2)
"""The 70B that the page makes fit."""


def test_what_making_the_70b_fit_costs() -> None:
    """It needs far too much; the cheapest setting that fits is the one that `advise` finds."""
    start, text = planned(LARGE), cell("09_plan", "panel-answers")
    assert start.memory.total > 1.4 * (start.card - start.reserve)
    assert "on 32 GPUs with TP 8, ZeRO 1 and a micro-batch of two" in text
    assert "it needs far more memory than a plan allows" in text
    plans = {
        (zero, micro, again): start.replace(
            zero_stage=zero, micro_batch_size=micro, recompute=again
        )
        for zero in (1, 2, 3)
        for micro in (1, 2)
        for again in ("none", "alternate", "full")
    }
    hours = {ways: float(x.gpu_hours.likely / start.gpu_hours.likely) for ways, x in plans.items()}
    fitting = {ways: hours[ways] for ways, x in plans.items() if x.fits}
    assert min(fitting, key=fitting.__getitem__) == (2, 1, "none")
    assert sum(x < 1.0001 * min(fitting.values()) for x in fitting.values()) == 1
    changed = {name: x for step in advise(start) for name, x in step.change.items()}
    assert changed == {"zero_stage": 2, "micro_batch_size": 1}
    assert hours[2, 2, "none"] == pytest.approx(1, abs=0.0005)
    assert plans[2, 2, "none"].traffic > 1.3 * start.traffic
    assert "switching to ZeRO 2 costs no time, although much more is sent, because" in text
    extra = [round(100 * hours[x] - 100) for x in ((2, 1, "none"), (2, 2, "alternate"))]
    assert fitting.keys() >= {(2, 2, "alternate"), (2, 2, "full")}
    assert f"With one sequence at a time, the plan fits, at the cost of {extra[0]}% more" in text
    full = round(100 * hours[2, 2, "full"] - 100)
    assert f'(`"alternate"`) would cost {extra[1]}%, and' in text
    assert f'all of them (`"full"`) {full}%.' in text


def test_what_the_page_says_of_overhead() -> None:
    low, middle, high = (round(100 * x - 100) for x in STOPS)
    each = sorted(stops().values())
    assert (len(each), each[3]) == (7, pytest.approx(STOPS[1], rel=0.01))
    assert (each[0], each[-1]) == pytest.approx((STOPS[0], STOPS[2]), rel=0.01)
    text = words("09_plan")
    assert f"between {low}% and {high}%, with a median of {middle}%" in text
    steps = plan_of(accelerator=H100, zero_stage=3).days_of_steps
    assert f"So you should expect {steps.likely:.0f} × {STOPS[1]} = " in text
    sentence = f"most likely take {steps.likely:.0f} days, but it could be anywhere from"
    assert f"{sentence} {steps.least:.0f} to {steps.greatest:.0f}." in text
    assert f"times {STOPS[0]} to {STOPS[2]}, likely {STOPS[1]}; promise the slow end" in text


def test_the_slow_end_is_less_than_the_slowest_step_with_the_worst_overhead() -> None:
    plan = plan_of(accelerator=H100, zero_stage=3)
    days, steps = plan.days, plan.days_of_steps
    assert days.likely == pytest.approx(STOPS[1] * steps.likely)
    assert (round(days.greatest), round(STOPS[2] * steps.greatest)) == (39, 46)
    combined = "[combines the two ranges](evidence/09_plan.ipynb) into a slow end of 39 days"
    assert combined in words("09_plan")
    assert "the worst overhead together would mean 46 days" in words("09_plan")
    assert f"20 × {STOPS[1]} = {days.likely:.0f} days" in words("09_plan")
    assert round(plan.calibrated(7.5).days.greatest) == 34
    assert "so if it took 7.5 seconds, you'd promise 34 days." in words("09_plan")
    sides = [log(x.greatest / x.likely) for x in (days, steps, Interval(*STOPS))]
    assert sides[0] == pytest.approx(hypot(*sides[1:]))
    sentence = "We take their logarithms and combine them like the sides of a right triangle"
    assert sentence in words("evidence/09_plan")


def test_what_the_page_says_of_03s_promise() -> None:
    """25% of the peak for the same run, beside the plan's own slow end."""
    plan = plan_of(accelerator=H100, zero_stage=3)
    size = plan.run.tokens, plan.parameters.active, plan.split.num_gpus, plan.run.peak
    rough = training_interval(*size).times(1 / units.DAY)
    assert UTILIZATIONS[0] == 0.25
    sentence = f"25% of the peak, which would mean {rough.greatest:.0f} days."
    assert sentence in words("09_plan")
    named = plan_of(accelerator=H100, zero_stage=3, software="megatron-core")
    assert f"(If you name Megatron-Core, it's {named.days.greatest:.0f} days.)" in words("09_plan")


def test_the_reserve_that_the_page_tells() -> None:
    text = cell("09_plan", "memory-seen")
    plan = plan_of(accelerator=H100, zero_stage=3)
    assert plan.reserve == RESERVES["several"] == 5.1e9
    assert "treat 5.1 GB as the bare minimum (less on a single GPU)" in text
    assert RESERVES["one GPU"] < plan.reserve
    assert f"may take up {units.gigabytes(plan.card - plan.reserve)[:4]} of the 85.5" in text
    few = {n: plan_of(accelerator=H100, zero_stage=3, num_gpus=n).fits for n in (4, 8, 16)}
    assert few == {4: False, 8: True, 16: True}  # even eight
    several = memory.reserves(attrgetter("ways"))["several"]
    assert f"three in four needed {several.firm / 1e9:.1f} GB or more on top" in text


def test_the_bytes_that_the_page_types() -> None:
    plan = plan_of(accelerator=H100, zero_stage=3)
    card, holds = units.gigabytes(plan.card), units.gigabytes(plan.memory.total)
    first = cell("09_plan", "predict")
    assert f"An H100 has {card} of memory" in first
    assert f"each one needs {holds}" in first
    assert plan.card / 2**30 < 80


@pytest.mark.parametrize("size", ["Llama-3.2-1B", "Llama-3.1-8B", "Llama-3.1-70B"])
def test_the_months_models_are_fullest_at_the_loss(size: str) -> None:
    for num_gpus in (8, 64, 512):
        assert plan_of_month(size, 10**12, num_gpus).phase == "loss"


def test_how_far_the_page_trusts_the_order() -> None:
    others = [name for name in splits.MANY_SPLITS if name != splits.FITTED]
    ranked = pd.concat([splits.ranked(splits.measured_splits(name)) for name in others])
    *near, worst = sorted(ranked["first"])
    assert len(near) == 6
    assert near[-1] < 0.01
    assert round(worst, 2) == 0.43
    assert (ranked["first three"] < 0.01).all()
    assert "its top three always included a split within 1% of the best" in words("09_plan")


def test_a_named_software_makes_a_step_less_uncertain() -> None:
    plan = plan_of(accelerator=H100, zero_stage=3)
    step = plan.seconds_per_iteration
    own = plan.replace(software="megatron-core")
    named = own.seconds_per_iteration
    assert named.greatest / named.least < 0.8 * step.greatest / step.least
    assert own.first_run.greatest < 0.9 * plan.first_run.greatest


def test_a_first_run_is_as_slow_as_the_page_says() -> None:
    """The promise is the slow end of any run's days, and the picture's bar ends there."""
    assert "promise the slow end" in words("09_plan")
    for size in ("Llama-3.2-1B", "Llama-3.1-8B"):
        made = planned(Setting(size, num_gpus=64, tokens=10**12))
        assert made.first_run == made.days
        drawn = answers(made, 30).drawing().body
        for text in ("expected: the middle of other runs", "to promise: their slow end"):
            assert f">{text}<" in drawn
        assert ">a first run<" not in drawn


def test_how_long_the_evidence_says_the_head_takes() -> None:
    plan = plan_of(accelerator=H100, zero_stage=3)
    [(many, layer)] = plan.run.model.layers
    shorter = plan.replace(model=replace(plan.run.model, layers=((many // 2, layer),))).step
    each = (plan.step.total - shorter.total) / (many // 2)
    text = f"take as long as {plan.step.head / each:.1f} layers"
    assert text in cell("evidence/09_plan", "pipeline-reading")
