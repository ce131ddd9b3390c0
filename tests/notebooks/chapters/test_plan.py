"""What the page of chapter 08 states, computed anew."""

import pandas as pd

from llmtrain_helpers import advise, plan_run, training_interval, units
from llmtrain_helpers.evidence import published, splits
from tests.pages import words
from tests.plan.cases import H100, plan_of


def test_the_rate_that_the_decision_asks_for() -> None:
    made = plan_of(accelerator=H100, tokens=850e9, flops_per_gpu=450e12)
    assert 29.5 < made.days_with_stops.greatest < 30
    assert "at 450 TFLOP/s on each GPU" in words("08_plan")


def test_the_page_tells_what_a_plan_does_not_foresee() -> None:
    """Three times the days of the measured rate, on the most GPUs."""
    made = plan_run(
        published.architecture("GPT-3 175B", 2048),
        published.accelerator("A100 80GB SXM"),
        1536,
        300e9,
        1536,
        recompute="full",
        zero_stage=3,
    )
    span = f"{made.days.least:.0f} to {made.days.greatest:.0f}"
    assert f"to {span} on 1,536 GPUs" in words("08_plan")


def test_the_reserve_that_the_page_tells() -> None:
    plan = plan_of(accelerator=H100)
    assert round(float(plan.reserve / H100.memory), 2) == 0.22


def test_the_page_tells_where_03_was_wider() -> None:
    span = training_interval(1e12, 8_030_261_248, 64, 989.5e12)
    assert round(span.greatest / units.DAY) == 35
    assert round((57.9e21 / (6 * 20)) ** 0.5 / 1e9) == 22


def test_the_prices_of_the_advice_that_the_page_tells() -> None:
    large = published.architecture("Llama-3.1-70B", sequence_length=8192)
    shared = {"tensor_parallel": 8, "zero_stage": 1, "micro_batch_size": 2}
    first, second = advise(plan_of(model=large, accelerator=H100, **shared))
    assert abs(first.dearer) < 0.005
    assert first.plan.split.accumulation_steps == 32
    told = words("08_plan")
    assert f"The second costs {units.percent(second.dearer)}" in told
    assert f"{units.gigabytes(first.sent)} more a step" in told


def test_how_far_the_page_trusts_the_order() -> None:
    others = [name for name in splits.MANY_SPLITS if name != splits.FITTED]
    ranked = pd.concat([splits.ranked(splits.measured_splits(name)) for name in others])
    *near, worst = sorted(ranked["first"])
    assert len(near) == 6
    assert near[-1] < 0.01
    assert round(worst, 2) == 0.43
    assert (ranked["first three"] == 0).all()
    assert "within 1 % six times, and once 43 % slower" in words("08_plan")


def test_how_far_a_split_and_a_software_move_the_bar_of_the_page() -> None:
    plan, told = plan_of(accelerator=H100, zero_stage=3), words("08_plan")
    for shares in (plan.shares.runs, plan.but(tensor_parallel=8).shares.runs):
        assert f"{shares[0]:.2f} to {shares[2]:.2f}" in told
    step = plan.seconds_per_iteration
    for software in ("megatron-core", "other"):
        named = plan.but(software=software)
        assert 0.5 < abs(named.days.likely - plan.days.likely) < 1.5
        own = named.seconds_per_iteration
        assert own.greatest / own.least < step.greatest / step.least
