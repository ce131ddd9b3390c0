"""The best split of a model over so many GPUs."""

import math
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest

from llmtrain_helpers import Accelerator, best_split, budget, published, shelf
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.search import Needs, layouts, least_prices, step_price

H100 = published.accelerator("H100 SXM")
A100 = published.accelerator("A100 80GB SXM")

CASES: dict[str, Any] = {
    "large": ("69B", H100, 64, {}),
    "tensor": ("31B", H100, 64, {}),
    "small": ("310M", H100, 512, {}),
    "one node": ("9.0B", A100, 8, {}),
    "own rate": ("24B", A100, 8, {"flops_per_gpu": 100e12}),
    "given": ("69B", H100, 32, {"utilizations": (0.3, 0.4, 0.5)}),
    "pipeline": ("430B", H100, 128, {"recipe": "bf16"}),
    "large, own rate": ("69B", H100, 64, {"flops_per_gpu": 400e12}),
    "large, given": ("69B", H100, 64, {"utilizations": (0.3, 0.4, 1)}),
    "tiny": ("600M", H100, 64, {}),
    "tiny, own rate": ("600M", H100, 64, {"flops_per_gpu": 400e12}),
    "tiny, given": ("600M", H100, 64, {"utilizations": (0.3, 0.4, 1)}),
    "bare": ("24B", Accelerator("X", 80e9, peaks={"bf16": 1e15}), 16, {}),
}


def splits_of(num_gpus: int, spread: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """Every usual way to share a model's training out over so many GPUs.

    `spread` are the numbers of GPUs over which experts are spread, if that is open.
    """
    if spread:
        whole = splits_of(num_gpus)
        return [{**split, "expert_parallel": e} for split, e in product(whole, spread)]
    few = (1, 2, 4, 8)
    ways = product(["none", "alternate", "full"], (*few, 16), (1, 3), few, few)
    names = ("recompute", "pipeline_parallel", "zero_stage", "tensor_parallel", "micro_batch_size")
    return [
        split
        for split in (dict(zip(names, way, strict=True)) for way in ways)
        if num_gpus % (split["pipeline_parallel"] * split["tensor_parallel"]) == 0
        and (split["pipeline_parallel"] == 1 or split["zero_stage"] == 1)
    ]


@pytest.mark.parametrize("name", CASES)
def test_the_best_split_is_never_slower_than_another_that_fits(name: str) -> None:
    shape, chip, n, options = CASES[name]
    model = shelf()[shape]
    best = best_split(model, chip, n, budget.usual_batch(model, n), **options)
    assert best.fits
    fitting = 0
    for split in splits_of(n):
        try:
            other = best.replace(**split)
        except ValueError:
            continue
        if other.fits:
            fitting += 1
            assert best.seconds.likely <= other.seconds.likely * 1.00001
    assert fitting > 1


def test_where_nothing_fits_the_nearest_is_told() -> None:
    model = shelf()["43B"]
    best = best_split(model, A100, 8, 1024)
    assert not best.fits
    for t in (1, 2, 4, 8):
        for recompute in ("none", "full"):
            other = best.replace(tensor_parallel=t, recompute=recompute)
            assert best.memory.total <= other.memory.total
    with pytest.raises(ValueError, match="is not divisible by"):
        best_split(model, A100, 7, 1024)


MIXTRAL = published.architecture("Mixtral-8x7B", sequence_length=4096)
LAYERS = ("recompute", "pipeline_parallel", "zero_stage", "tensor_parallel", "micro_batch_size")
GIVEN: dict[str, dict[str, Any]] = {
    "recomputation": {"recompute": "selective", "attention": "unfused"},
    "a micro-batch": {"micro_batch_size": 3},
    "tensor parallelism": {"tensor_parallel": 4},
    "a pipeline": {"pipeline_parallel": 5},
    "a stage": {"zero_stage": 2, "keep_gradients": True},
    "all": dict(zip(LAYERS, ("full", 2, 1, 4, 1), strict=True)),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_given_of_a_split_is_obeyed(name: str) -> None:
    model, options = shelf()["9.0B"], GIVEN[name]
    best = best_split(model, H100, 240, 2880, **options)
    for option, value in options.items():
        assert best.inputs[option] == value
    [point] = budget.frontier(H100, 240, 10, [model], global_batch_size=2880, **options).points
    assert point.plan.split == best.split


def test_a_given_split_that_does_not_come_out_even_is_refused_by_its_name() -> None:
    for option, value in {"tensor_parallel": 3, "micro_batch_size": 7}.items():
        with pytest.raises(ValueError, match=option):
            best_split(shelf()["9.0B"], H100, 64, 1024, **{option: value})
    with pytest.raises(ValueError, match="recompute='all' is unknown"):
        best_split(shelf()["9.0B"], H100, 64, 1024, recompute="all")


def dealt_unevenly(dice: Random) -> tuple[Any, int, dict[str, Any]]:
    """A model, GPUs and options of which some layers or experts do not come out even."""
    models = [shelf()["310M"], shelf()["9.0B"], MIXTRAL, replace(shelf()["3.2B"], num_layers=30)]
    model = dice.choice(models)
    e = dice.choice([1, 2, 8]) if model is MIXTRAL else 1
    given = model is not MIXTRAL or dice.random() < 0.5
    options: dict[str, Any] = {"expert_parallel": e} if given else {}
    options |= {
        "uneven_stages": dice.random() < 0.5,
        "sequence_parallel": dice.random() < 0.7,
        "imbalance": dice.choice([1, (1 + e) / 2]) if given else 1,
        "software": dice.choice(["any", "megatron-core", "other"]),
        "reserve": 0,
        "utilizations": dice.choice([None, None, (0.3, 0.4, 0.5)]),
    }
    return model, dice.choice([8, 16, 64]), options


def test_the_bound_of_a_layout_lies_below_its_step_and_near_the_best_of_them() -> None:
    dice, nearest = Random(5), 0.0
    for _ in range(30):
        model, n, options = dealt_unevenly(dice)
        given = {x: options[x] for x in {"expert_parallel"} & {*options}}
        tried = layouts(n, given, model.num_experts)
        first = best_split(model, H100, n, 256, **options)
        for bound, layout in zip(least_prices(first, tried), tried, strict=True):
            run = first.run.if_even(**layout._asdict())
            if run is not None:
                price = step_price(Plan.of(run), first)
                assert bound[0] <= price[0] + 2e-6, (options, layout)  # both are rounded
                assert bound[1] <= price[1] + 2e-6, (options, layout)
                nearest = max(nearest, bound[1] / price[1])
    assert nearest > 0.99


def test_a_layout_never_needs_less_than_similar_ones_say() -> None:
    dice, near = Random(6), 0
    for _ in range(6):
        model, n, options = dealt_unevenly(dice)
        options["zero_stage"] = dice.choice([1, 3])
        given = {x: options[x] for x in ("expert_parallel", "zero_stage") if x in options}
        needs = Needs(best_split(model, H100, n, 8 * n, **options).run)
        tried = layouts(n, given, model.num_experts)
        dice.shuffle(tried)
        for layout in tried:
            least = needs.at_least(layout)
            assert least <= needs.exactly(layout) * (1 + 1e-12), (options, layout)
            near += least > 0.9 * needs.exactly(layout)
    assert near > 50


def test_no_split_is_better_however_layers_and_experts_are_dealt() -> None:
    dice = Random(4)
    for _ in range(20):
        model, n, options = dealt_unevenly(dice)
        best = best_split(model, H100, n, 256, **options)
        spread = () if "expert_parallel" in options else (1, 2, 4, 8)
        others = (best.run.if_even(**split) for split in splits_of(n, spread))
        plans = [plan for plan in map(Plan.of, filter(None, others)) if plan.fits]
        assert {name: best.inputs[name] for name in options} == options
        shortest = min((plan.seconds.likely for plan in plans), default=math.inf)
        assert best.fits == bool(plans)
        assert not plans or best.seconds.likely <= shortest * 1.00001, (options, best.split)
