"""The best split of a model over so many GPUs."""

from itertools import product
from typing import Any

import pytest

from llmtrain_helpers import Accelerator, best_split, budget, shelf
from llmtrain_helpers.evidence import published

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


def splits_of(num_gpus: int) -> list[dict[str, Any]]:
    """Every usual way to share a model's training out over so many GPUs."""
    few = (1, 2, 4, 8)
    ways = product(["none", "full"], (*few, 16), (1, 3), few, few)
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
    found = best_split(model, chip, n, budget.usual_batch(model, n), **options)
    assert found.fits
    fitting = 0
    for split in splits_of(n):
        try:
            other = found.but(**split)
        except ValueError:
            continue
        if other.fits:
            fitting += 1
            assert found.seconds.likely <= other.seconds.likely * 1.00001
    assert fitting > 1


def test_where_nothing_fits_the_nearest_is_told() -> None:
    model = shelf()["43B"]
    found = best_split(model, A100, 8, 1024)
    assert not found.fits
    for t in (1, 2, 4, 8):
        for again in ("none", "full"):
            other = found.but(tensor_parallel=t, recompute=again)
            assert found.memory.total <= other.memory.total
    with pytest.raises(ValueError, match="is not divisible by"):
        best_split(model, A100, 7, 1024)
