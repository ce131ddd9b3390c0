"""What panels show and used to compute: formulas of their chapters, each held here."""

from __future__ import annotations

import pytest

from llmtrain_course.duration.formulas import mfu_of_hfu
from llmtrain_course.kit.formulas import rate_at, trainable_tokens
from llmtrain_course.measure.clock import Experiments
from llmtrain_helpers.duration import training_seconds
from llmtrain_helpers.flops import utilization
from llmtrain_helpers.precision import RECIPES, missing_format, products_in


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_a_run_takes_as_long_as_the_tokens_that_the_time_allows(recompute: str) -> None:
    run = {"parameters": 8e9, "num_gpus": 8, "flops_per_gpu": 109.2e12, "recompute": recompute}
    tokens = trainable_tokens(30 * 86400, **run)
    assert training_seconds(tokens, **run) == pytest.approx(30 * 86400)
    assert trainable_tokens(60 * 86400, **run) == pytest.approx(2 * tokens)


def test_no_time_trains_no_tokens() -> None:
    with pytest.raises(ValueError, match="seconds"):
        trainable_tokens(0, 8e9, 8, 109.2e12, "none")


def test_the_rate_at_a_share_reaches_that_share() -> None:
    for share in (0.01, 0.35, 1):
        assert utilization(rate_at(share, 312e12), 312e12) == pytest.approx(share)
    with pytest.raises(ValueError, match="share_of_peak"):
        rate_at(1.2, 312e12)


def test_with_full_recomputation_a_quarter_of_the_work_is_not_the_models() -> None:
    assert mfu_of_hfu(0.44, "full") == pytest.approx(0.33)
    assert mfu_of_hfu(0.44, "selective") == mfu_of_hfu(0.44, "none") == 0.44
    with pytest.raises(ValueError, match="recompute"):
        mfu_of_hfu(0.44, "some")


def test_days_by_an_hfu_and_by_its_mfu_are_the_same() -> None:
    """8TP over a rate that counts all is 6TP over one that counts the model's."""
    run, peak, hfu = (300e9, 175e9, 1024), 312e12, 0.449
    by_hfu = training_seconds(*run, rate_at(hfu, peak), "full")
    by_mfu = training_seconds(*run, rate_at(mfu_of_hfu(hfu, "full"), peak), "none")
    assert by_hfu == pytest.approx(by_mfu)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_chip_lacks_the_format_of_the_products_or_none(recipe: str) -> None:
    needed = products_in(recipe)
    assert missing_format(recipe, []) == needed
    assert missing_format(recipe, ["fp32", "fp16", "bf16", "fp8"]) == ""


def test_causes_are_ranked_by_what_their_absence_gains() -> None:
    experiments = Experiments(10.0, 12.0, 19.0, 15.0)
    assert experiments.ranked() == [("other GPUs", 1.9), ("fixed costs", 1.5), ("data", 1.2)]
    assert experiments.verdict == experiments.ranked()[0][0]
