"""Chapter 11's panel: what each control changes, and what it refuses."""

from typing import Any

import pytest

from llmtrain_course.budget import pictures as drawings
from llmtrain_course.budget.formulas import most_flops, rough_frontier, usual_plan
from llmtrain_course.budget.handles import _SHELF as SHELF
from llmtrain_course.kit.own_run import own_run
from llmtrain_course.panels import HANDLES, PANELS
from llmtrain_helpers import compute_optimal, frontier, published, shelf, units
from tests.faces.svg import pictures

H100 = published.accelerator("H100 SXM")
A100 = published.accelerator("A100 80GB SXM")


def panel_with(**changes: Any) -> Any:
    return PANELS["budget"].answer({**PANELS["budget"].default, **changes})


def test_what_the_page_says_of_its_panel_is_so() -> None:
    small = panel_with(size=1_500_000_000).html
    assert "1.5B on 3.74 trillion, ends 0.114 above" in small
    assert "1.5B is 0.077× the law's best size" in small
    assert round(1 / 0.077) == 13
    assert "<b>24B</b> on 309 billion tokens ends lowest, at 2.067" in small
    rich = panel_with(money=800_000).html
    assert "632 GPUs for 21.0 days" in rich
    assert "<b>55B</b> on 1.27 trillion tokens ends lowest, at 1.984" in rich
    month, week = (panel_with(**EIGHT, days=days).html for days in (30, 5))
    assert "48 GPUs for 5.00 days" in week
    assert "<b>7.2B</b> on 66.9 billion tokens ends lowest, at 2.225" in month
    assert "<b>7.2B</b> on 66.9 billion tokens ends lowest, at 2.225" in week
    crosses = [sum(x.thick == 2.5 for x in pictures(html)[0].boxes) for html in (week, month)]
    assert crosses[0] < crosses[1]
    eight, more = ({x.name: x for x in rough_frontier(A100, n, 240 / n, SHELF)} for n in (8, 48))
    assert round(more["4.2B"].loss - more["7.2B"].loss, 4) == 0.0002
    assert "4.2B on 109 billion, ends less than 0.001 above" in week
    at_once = [usual_plan(SHELF["4.2B"], A100, n).split.micro_batch_size for n in (8, 48)]
    assert at_once == [2, 4]
    assert usual_plan(SHELF["31B"], A100, 8).run.recompute == "alternate"
    assert usual_plan(SHELF["31B"], A100, 48).run.recompute == "none"
    assert more["31B"].loss < eight["31B"].loss
    assert more["43B"].fits > eight["43B"].fits


def test_the_worked_example_is_near_the_diamond() -> None:
    flops = 64 * 0.381 * 989.5e12 * 21 * units.DAY
    assert flops == pytest.approx(4.38e22, rel=0.001)
    words = drawings.frontier_picture(frontier(H100, 64, 21, shelf())).words
    assert "The law's best: 19B parameters on 379 billion tokens" in words
    assert 20 * (flops / 120) ** 0.5 == pytest.approx(382e9, abs=0.5e9)
    best = compute_optimal(most_flops(rough_frontier(H100, 64, 21, SHELF)))
    assert (flops / 120) ** 0.5 == pytest.approx(best.parameters, rel=0.02)
    assert 20 * (flops / 120) ** 0.5 == pytest.approx(best.tokens, rel=0.02)


def test_ten_times_the_money_moves_the_axis_too() -> None:
    little, much = (pictures(panel_with(money=m).html)[0].texts for m in (80_640, 800_000))
    assert "1.8" in much
    assert "1.8" not in little


EIGHT = {"money": 8640, "chip": "A100 80GB SXM", "price": 1.5, "size": 4_200_000_000}


def test_too_little_money_is_refused_in_words() -> None:
    answer = panel_with(money=2000)
    assert answer.problem.startswith("Money 2000 only pays for 1.6 GPUs for these days")
    assert answer.offers


def test_whole_machines_leave_some_of_the_money() -> None:
    answer = PANELS["budget"].answer(PANELS["budget"].presets["100,000 dollars in a month"])
    assert "Whole machines of 8, so $13.6 thousand are left." in answer.html
    assert "are left" not in panel_with().html


def test_the_handles_say_what_the_page_says() -> None:
    price = HANDLES["size_price"]
    for share, words in ((0.5, "1.26×"), (0.25, "4.47×"), (0.1, "Never."), (2, "1.15")):
        assert words in price.render(share=share)
    terms = HANDLES["loss_terms"]
    assert "0.10 above the lowest" in terms.render()
    assert "A smaller model with more text" in terms.render(size=10**11)
    work = terms.controls["flops"]
    assert work.read("1e24") == work.most
    assert "bottom of the valley" in terms.render(size=10**10)
    assert "3.7 fresh texts" in HANDLES["repeated"].render()
    assert "15.2 fresh texts" in HANDLES["repeated"].render(epochs=40)


def test_the_slow_end_promises_less_and_a_model_goes_by_its_name() -> None:
    own = EIGHT | {"days": 30, "model": "Llama-3.1-8B"}
    likely, slow = (panel_with(**own, speed=x).html for x in ("likely", "slow end"))
    assert f"Yours, Llama-3.1-8B on {units.count(own_run().tokens)}" in slow
    assert "Yours, Llama-3.1-8B on 56.7 billion" in likely
    assert "sequences of 8,192 tokens" in slow
    assert "sequences of 4,096 tokens" in panel_with().html
    assert "sequences of 1,024 tokens" in panel_with(model="gpt2").html
    front = frontier(A100, 8, 30, SHELF)
    assert front.promised().best.name == front.first_run.name
    rough = rough_frontier(A100, 8, 30, SHELF, promised=True)
    exact = [point.outcome for point in front.promised().points]
    for a, b in zip(rough, exact, strict=True):
        assert a.tokens == pytest.approx(b.tokens, rel=1e-6)
    assert "is unknown" in panel_with(model="GPT-17").problem
