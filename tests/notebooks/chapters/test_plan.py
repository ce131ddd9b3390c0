"""What the page of chapter 08 states, computed anew."""

from llmtrain_helpers import training_interval, units
from tests.plan.cases import H100, plan_of


def test_the_reserve_that_the_page_tells() -> None:
    plan = plan_of(accelerator=H100)
    assert round(float(plan.reserve / H100.memory), 2) == 0.22


def test_the_page_tells_where_03_was_wider() -> None:
    span = training_interval(1e12, 8_030_261_248, 64, 989.5e12)
    assert round(span.greatest / units.DAY) == 35
    assert round((57.9e21 / (6 * 20)) ** 0.5 / 1e9) == 22
