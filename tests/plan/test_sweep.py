"""Plans of all combinations at once, and the fastest of them."""

from importlib import import_module
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from llmtrain_helpers import Accelerator, Plan, plan_run, sweep
from llmtrain_helpers.flops import RECOMPUTE
from tests.bad_values import assert_refused
from tests.plan.cases import A100, H100, LARGE, LLAMA, plan_of


def test_a_sweep_is_the_plans_one_by_one() -> None:
    swept = sweep(
        LLAMA,
        A100,
        64,
        10**12,
        512,
        recompute=RECOMPUTE,
        zero_stage=[0, 1],
        context_parallel=[1, 2],
    )
    table = swept.columns()
    assert len(swept) == len(table["memory"]) > 300
    for i in range(0, len(swept), 37):
        names = ["micro_batch_size", "tensor_parallel", "pipeline_parallel"]
        names += ["context_parallel", "recompute", "zero_stage"]
        plan = plan_of(**{name: table[name][i].item() for name in names})
        assert table["memory"][i] == pytest.approx(plan.memory.total, rel=1e-12)
        assert table["seconds"][i] == pytest.approx(plan.seconds.likely, rel=1e-12)
        assert table["fits"][i] == plan.fits
        assert table["mfu"][i] == pytest.approx(plan.mfu, rel=1e-12)


def test_a_sweep_leaves_out_exactly_what_a_plan_refuses() -> None:
    axes = {
        "micro_batch_size": [1, 3, 1024],
        "tensor_parallel": [1, 3, 8, 16],
        "pipeline_parallel": [1, 5, 32, 64],
    }
    table = sweep(LLAMA, A100, 64, 10**12, 512, recompute="none", **axes).columns()
    kept = set(zip(*(table[name].tolist() for name in axes), strict=True))
    for b in axes["micro_batch_size"]:
        for t in axes["tensor_parallel"]:
            for p in axes["pipeline_parallel"]:
                try:
                    plan_of(micro_batch_size=b, tensor_parallel=t, pipeline_parallel=p)
                    refused = False
                except ValueError:
                    refused = True
                assert refused == ((b, t, p) not in kept)


def test_the_fastest_plan_fits_and_none_that_fits_is_faster() -> None:
    swept = sweep(LARGE, H100, 128, 10**12, 1024, recompute=RECOMPUTE, zero_stage=1)
    best, table = swept.fastest(), swept.columns()
    assert best.fits
    assert best.seconds.likely == pytest.approx(table["seconds"][table["fits"]].min())
    equal = table["fits"] & np.isclose(table["seconds"], best.seconds.likely)
    assert table["tensor_parallel"][equal].min() == best.split.tensor_parallel


def test_a_sweep_in_which_nothing_fits_says_so() -> None:
    with pytest.raises(ValueError, match=r"none of \d+ plans fits: at best .* short"):
        sweep(LARGE, A100, 8, 1e12, 512, recompute="none", pipeline_parallel=1).fastest()
    with pytest.raises(ValueError, match="what one call takes"):
        sweep(LLAMA, A100, 64, np.arange(1, 10**6), 512, recompute="none")


def test_a_sweep_takes_ten_million_plans_and_not_one_more() -> None:
    one = {"micro_batch_size": 1, "tensor_parallel": 1, "pipeline_parallel": 1}
    gpus, tokens = np.arange(1, 12), np.arange(1, 909_092)
    assert len(gpus) * len(tokens) == 10**7 + 1
    with pytest.raises(ValueError, match="sweep=10000001 is more than 10,000,000, what one"):
        sweep(LLAMA, A100, gpus, tokens, 512, recompute="none", **one)


@pytest.mark.parametrize("bad", [0, -1, "8", None, [1, "x"], 1e300, [2.5]], ids=repr)
@pytest.mark.parametrize("name", ["num_gpus", "tokens", "tensor_parallel"])
def test_a_sweep_refuses_bad_axes(name: str, bad: object) -> None:
    axes = {"num_gpus": 64, "tokens": 10**12, "global_batch_size": 512, name: bad}
    assert_refused(sweep, name, model=LLAMA, accelerator=A100, recompute="none", **axes)


@pytest.mark.parametrize(
    ("axes", "problem"),
    [
        ({"recompute": []}, "recompute=.* is empty"),
        ({"expert_parallel": np.array([])}, "expert_parallel=.* is empty"),
        ({"recompute": SimpleNamespace(dtype=np.dtype("int64"), shape=(2,))}, "recompute="),
        ({"zero_stage": []}, "zero_stage=.* is empty"),
        ({"zero_stage": [0, "full"]}, "zero_stage='full' is not a number"),
        ({"tensor_parallel": [[1, 2], [4]]}, "tensor_parallel="),
        ({"num_gpus": [True, 8]}, "num_gpus=True is not a number"),
        ({"sequence_parallel": np.array([True, False])}, "sequence_parallel="),
    ],
)
def test_a_sweep_names_what_is_wrong_with_an_axis(axes, problem) -> None:
    given = {"num_gpus": 64, "tokens": 10**12, "global_batch_size": 512}
    given |= {"model": LLAMA, "accelerator": A100, "recompute": "none"}
    assert_refused(sweep, problem, **{**given, **axes})


def test_a_sweep_makes_each_plan_once() -> None:
    many = [0, 0, 1] * 1000
    swept = sweep(LLAMA, A100, 64, 1e12, 512, recompute=["none"] * 9, zero_stage=many)
    assert len(swept.plans) == 2


def test_a_sweep_plans_each_layout_once_for_all_lengths(monkeypatch) -> None:
    """And to the last bit: a short run has fewer layouts, those whose batch it fills."""
    lengths, batches = [1e7, 1e12, 3e12], [512, 4096]
    run = {"recompute": ["none", "full"], "zero_stage": [1, 3], "price_per_gpu_hour": 2.5}
    planned = []

    def count_layouts(*arguments, **options) -> Plan:
        planned.append(options["num_gpus"].size)
        return plan_run(*arguments, **options)

    module = import_module("llmtrain_helpers.plan.sweep")  # the function has the same name
    monkeypatch.setattr(module, "plan_run", count_layouts)
    together = sweep(LLAMA, A100, 64, lengths, batches, **run)
    layouts = sum(planned)
    alone = [sweep(LLAMA, A100, 64, length, batches, **run) for length in lengths]
    assert layouts == len(alone[1]) == len(alone[2]) > len(alone[0])
    assert len(together) == sum(map(len, alone))
    for i, plans in enumerate(together.plans):
        single = [swept.plans[i] for swept in alone]
        for name in ("seconds.greatest", "cost.least", "memory.moment", "step.total", "mfu"):
            values = np.concatenate([attrgetter(name)(plan) for plan in single])
            assert np.array_equal(attrgetter(name)(plans), values), name
        assert np.array_equal(plans.replace().seconds.likely, plans.seconds.likely)


def test_options_with_a_number_for_each_plan_are_not_spread() -> None:
    prices = np.array([1.0, 2.0])
    axes = {"micro_batch_size": 1, "tensor_parallel": 1, "pipeline_parallel": 1}
    run = {"recompute": "full", "price_per_gpu_hour": prices, **axes}
    [plans] = sweep(LLAMA, A100, 64, [1e12, 2e12], 512, **run).plans
    assert plans.cost.likely == pytest.approx(plans.gpu_hours.likely * prices)


def test_a_sweep_of_more_flops_than_any_run_has_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^tokens=.* is too many: a run has at most"):
        sweep(LLAMA, A100, 64, [1e12, 1e30], 512, recompute="none")


def test_of_equal_plans_the_one_that_splits_least_is_first() -> None:
    small = Accelerator("small", 24e9, peaks={"bf16": 312e12})
    shape = {"recompute": "full", "flops_per_gpu": 1e14, "zero_stage": 1}
    best = sweep(LLAMA, small, 64, 1e12, 512, pipeline_parallel=[1, 2, 4, 8], **shape).fastest()
    assert best.split.tensor_parallel * best.split.pipeline_parallel == 4


@pytest.mark.parametrize(
    ("axes", "problem"),
    [
        ({"tokens": 1e6}, "^one batch, .*=4194304 is more than tokens=1000000$"),
        ({"tokens": [1e5, 1e6]}, "^one batch, .* is more than tokens="),
        ({"tokens": 1e30, "global_batch_size": 10**13}, "^global_batch_size=1.* is more than"),
        ({"expert_parallel": [2, 4]}, "^expert_parallel=.* has no experts"),
        ({"tensor_parallel": 7}, "^sequence_length=8192 is not divisible by .*=7$"),
        ({"num_gpus": [7, 11]}, "^none of 160 splits comes out even: of the nearest, global_batch"),
    ],
)
def test_where_no_split_is_possible_a_sweep_says_why(axes: dict[str, Any], problem: str) -> None:
    """What no split can be rid of in its own words, else what the nearest one lacks."""
    run = {"num_gpus": 64, "tokens": 1e12, "global_batch_size": 512, "recompute": "none"}
    with pytest.raises(ValueError, match=problem):
        sweep(LLAMA, A100, **{**run, **axes})
