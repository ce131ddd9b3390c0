"""What fits into a budget: tokens, and sizes."""

from functools import cache
from typing import Any

import pytest

from llmtrain_course.budget.formulas import (
    affordable_gpus,
    doubling_below,
    most_flops,
    plan_on_nodes,
    rough_frontier,
)
from llmtrain_course.budget.handles import _SHELF as SHELF
from llmtrain_course.kit.formulas import nearest_shape
from llmtrain_helpers import (
    Accelerator,
    Frontier,
    budget,
    compute_optimal,
    frontier,
    loss,
    most_tokens,
    plan_run,
    published,
    shelf,
    units,
)
from llmtrain_helpers.laws import outside
from llmtrain_helpers.plan.pace import STOPS
from tests.bad_values import assert_refused

H100 = published.accelerator("H100 SXM")
A100 = published.accelerator("A100 80GB SXM")
LLAMA = published.architecture("Llama-3.1-8B", sequence_length=8192)
PLAN = plan_run(
    LLAMA, H100, 64, 1e12, 512, **{"recompute": "none", "zero_stage": 3, "price_per_gpu_hour": 2.5}
)


@cache
def of_shelf(chip: Accelerator, num_gpus: int, days: float) -> Frontier:
    """Searched once for all that is asked of it."""
    return frontier(chip, num_gpus, days, shelf())


def test_tokens_go_with_the_days() -> None:
    span = most_tokens(PLAN, 30)
    assert span.likely == pytest.approx(1e12 * 30 / PLAN.days.likely)
    full_run = PLAN.replace(tokens=round(span.likely))
    assert full_run.days.likely == pytest.approx(30)
    assert span.least < span.likely < span.greatest
    measured = PLAN.calibrated(9.0)
    assert most_tokens(measured, 30).greatest == pytest.approx(
        1e12 * 30 / (STOPS[0] * measured.days_of_steps.likely)
    )


def test_a_frontier_has_every_shape_in_its_order() -> None:
    shapes = shelf() | {f"longer {n}": m for n, m in [*shelf(8192).items()][:7]}
    assert len(shapes) == 30
    front = frontier(H100, 64, 21, shapes, price_per_gpu_hour=2.5)
    columns = front.columns()
    assert len(columns["name"]) == 30
    assert columns["name"] == [*shapes]
    assert columns["loss"] == [point.loss.likely for point in front.points]
    assert {round(cost) for cost in columns["cost"]} == {round(64 * 21 * 24 * 2.5)}


def test_points_of_the_frontier_are_what_plan_and_law_say() -> None:
    front = of_shelf(H100, 64, 21)
    for point in front.points:
        inputs = point.plan.inputs
        assert point.plan.days.likely == pytest.approx(21, rel=1e-6)
        assert inputs["tokens"] == int(point.tokens.likely)
        N = point.plan.parameters.active
        assert point.loss.likely == pytest.approx(loss(N, point.tokens.likely))
        assert point.loss.least < point.loss.likely < point.loss.greatest
        assert point.fits == bool(point.plan.fits)
    best = front.best
    assert best.loss.likely == min(p.loss.likely for p in front.points if p.fits)
    work = 6 * best.parameters * best.tokens.likely
    assert 0.5 < best.parameters / compute_optimal(work).parameters < 2


def test_small_shapes_take_the_plainest_split() -> None:
    for i, point in enumerate(of_shelf(H100, 64, 21).points[:10]):
        split = point.plan.split
        assert split.tensor_parallel == split.pipeline_parallel == 1
        assert point.plan.run.recompute in ("none", "alternate")
        assert split.micro_batch_size == (8 if i < 5 else split.micro_batch_size)


def test_shapes_of_a_list_go_by_their_sizes() -> None:
    front = frontier(H100, 8, 3, [LLAMA, LLAMA, *[*shelf().values()][:1]])
    assert front.columns()["name"] == ["8.0B", "8.0B (1)", "63M"]


def test_what_does_not_fit_is_told() -> None:
    front = of_shelf(A100, 8, 30)
    assert not front.points[-1].fits
    assert front.points[0].fits
    with pytest.raises(ValueError, match="none of 1 shapes fits"):
        _ = frontier(A100, 8, 30, {"large": [*shelf().values()][-1]}).best


def test_less_than_a_step_is_no_run() -> None:
    """No shape gets one in a nanoday; in a hundredth of a second the small ones do."""
    assert_refused(frontier, r"days=1e-09 is less than one step: .* s$", H100, 64, 1e-9, shelf())
    front = frontier(H100, 64, 1e-5, shelf())
    assert front.columns()["name"] == [*shelf()][: len(front.points)]
    assert 0 < len(front.points) < 23
    assert all(x.tokens.likely >= 1024 * 4096 for x in front.points)
    assert front.best.loss.likely < 10


def test_a_model_that_must_answer_on_a_small_card() -> None:
    front = frontier(A100, 8, 30, shelf(), serving_memory=24e9)
    assert all(p.answers == (2 * p.parameters <= 0.8 * 24e9) for p in front.points)
    assert front.best.answers
    assert not all(front.columns()["answers"])
    sizes = [p.parameters for p in front.points]
    at_limit = 2 * sizes[4] / 0.8  # where the weights fill what they may to the last byte
    just, short = (
        frontier(A100, 8, 30, SHELF, serving_memory=card) for card in (at_limit, 0.9999 * at_limit)
    )
    assert just.columns()["answers"] == [size <= sizes[4] for size in sizes]
    assert short.columns()["answers"] == [size < sizes[4] for size in sizes]


def test_the_table_warns_where_a_law_is_asked_outside_its_runs() -> None:
    front = frontier(H100, 512, 60, shelf())
    assert front.columns()["outside"] == [p.outside for p in front.points]
    warned = [outside(p.plan.parameters.active, p.tokens.likely, front.law) for p in front.points]
    assert front.columns()["outside"] == warned
    assert any(warned)


def test_experts_are_told_by_their_active_parameters() -> None:
    shapes = {"Mixtral": published.architecture("Mixtral-8x7B", 4096)}
    [point] = frontier(H100, 64, 21, shapes).points
    assert point.outside.startswith("experts, by a law of dense models")
    assert point.tokens_per_parameter == pytest.approx(
        point.tokens.likely / point.plan.parameters.active
    )


def test_that_a_model_has_experts_is_told_before_how_far_its_run_lies_outside() -> None:
    shapes = {"Mixtral": published.architecture("Mixtral-8x7B", 4096)}
    front = frontier(H100, 64, 365, shapes)
    [point] = front.points
    far = outside(point.plan.parameters.active, point.tokens.likely, front.law)
    assert far
    assert point.outside == f"experts, by a law of dense models; {far}"


def test_the_batch_is_about_four_million_tokens() -> None:
    for n in (8, 24, 64, 504, 1024):
        B = budget.usual_batch(LLAMA, n)
        assert B % n == 0
        assert 0.6 <= B * 8192 / 4e6 <= 1.6 or n == B


def test_the_shelf_is_of_round_shapes() -> None:
    shapes = shelf(2048)
    sizes = [m.hidden_size for m in shapes.values()]
    assert sizes == sorted(sizes)
    assert {m.sequence_length for m in shapes.values()} == {2048}
    assert [*shapes] == [*shelf()]


def test_unknown_laws_and_wrong_things_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'hoffmann'"):
        compute_optimal(1e20, "hofmann")
    assert_refused(most_tokens, "plan", plan="mine", days=3)
    for bad in ("8B", 3, None, ["8B"], [LLAMA, None], {"8B": None}, []):
        assert_refused(frontier, "shapes", **budget_of(shapes=bad))
    assert_refused(frontier, "shapes", **budget_of(shapes={}))
    assert_refused(frontier, "days", **budget_of(days=-1))
    assert_refused(frontier, "num_gpus", **budget_of(num_gpus=2.5))


def budget_of(**changes: Any) -> dict[str, Any]:
    run = {"accelerator": H100, "num_gpus": 8, "days": 3, "shapes": {"8B": LLAMA}}
    return run | changes


def test_no_dot_lies_below_the_curve_which_has_the_rate_of_the_busiest() -> None:
    points = of_shelf(H100, 64, 21).points
    work = {x.name: 6 * x.plan.parameters.active * x.tokens.likely for x in points}
    most = max(work.values())
    assert max(work, key=lambda name: work[name]) == "24B"
    assert most / (64 * 989.5e12 * 21 * units.DAY) == pytest.approx(0.381, abs=0.001)
    for x in points:
        N = x.plan.parameters.active
        assert x.loss.likely >= loss(N, most / (6 * N)) * (1 - 1e-9)


# --- any number of nodes, from searches on doublings


def test_money_keeps_gpus_for_days_and_days_for_gpus() -> None:
    days = 100_000 / (24 * 64 * 2.5)
    assert affordable_gpus(100_000, days, 2.5) == pytest.approx(64)
    assert_refused(affordable_gpus, "days", money=1, days=0, price_per_gpu_hour=1)


def test_the_nearest_shape_is_nearest_in_ratio() -> None:
    sizes = {name: model for name, model in SHELF.items() if name in ("310M", "4.2B", "69B")}
    assert [nearest_shape(P, sizes) for P in (1.1e9, 1.2e9, 1e10, 1e14)] == [
        *("310M", "4.2B", "4.2B", "69B")
    ]
    assert_refused(nearest_shape, "shapes", parameters=1e9, shapes={})


def test_nodes_are_doubled_up_to_what_there_is() -> None:
    assert [doubling_below(n) for n in (8, 15, 16, 31, 1000)] == [8, 8, 16, 16, 512]


@pytest.mark.parametrize("n", [24, 40, 792, 1432, 3000])
def test_any_number_of_nodes_is_planned(n: int) -> None:
    for name in ("310M", "9.0B", "69B", "430B"):
        plan = plan_on_nodes(SHELF[name], H100, n)
        assert plan.split.num_gpus == n
        outcomes = rough_frontier(H100, n, 9, SHELF, planned=name)
        [tokens] = [x.tokens for x in outcomes if x.name == name]
        assert tokens == pytest.approx(most_tokens(plan, 9).likely)


def test_on_a_doubling_the_rough_frontier_is_the_frontier() -> None:
    front, rough = of_shelf(H100, 64, 21), rough_frontier(H100, 64, 21, SHELF)
    assert most_flops(rough) == pytest.approx(
        most_flops(point.outcome for point in front.points), rel=0.001
    )
    for point, outcome in zip(front.points, rough, strict=True):
        assert outcome.fits == point.fits
        if point.fits:
            assert outcome.tokens == pytest.approx(point.tokens.likely, rel=0.001)
            assert outcome.loss == pytest.approx(point.loss.likely, rel=1e-4)


def test_a_first_run_takes_fewer_tokens_and_so_a_smaller_model() -> None:
    front = of_shelf(A100, 8, 30)
    first = front.first_run
    able = [x for x in front.points if x.fits]
    tokens = {x.name: float(x.plan.first_run_tokens(30)) for x in able}
    losses = {x.name: float(loss(x.plan.parameters.active, tokens[x.name])) for x in able}
    assert first.name == min(losses, key=lambda name: losses[name])
    assert first.loss.likely == pytest.approx(losses[first.name])
    assert first.plan.run.tokens == int(tokens[first.name])
    assert first.plan.first_run.greatest == pytest.approx(30)
    assert first.parameters < front.best.parameters
