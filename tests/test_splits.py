"""Measured splits: who orders them right, and the constants that come from them."""

from statistics import median

import pytest

from llmtrain_helpers import published, splits
from llmtrain_helpers.plan import OWN_PACE, PACES
from llmtrain_helpers.step import LAUNCHING

JUDGED = splits.judged_steps()


def test_the_plans_paces_are_those_of_the_measured_splits() -> None:
    assert splits.paces() == PACES


def test_launching_is_the_fitted_constant() -> None:
    assert round(splits.fitted_launching(), 5) == LAUNCHING


def test_ones_own_pace_is_the_measured_one() -> None:
    assert round(splits.own_pace(), 1) == OWN_PACE


@pytest.mark.parametrize(
    ("name", "rows", "groups", "correlation", "first", "of_three"),
    [
        ("vtrain_a100_single_node", 720, 48, 0.93, 0.06, 0.02),
        ("vtrain_a100_multi_node", 47, 2, 0.92, 0.01, 0.01),
        ("bloom_sweeps", 57, 5, 0.40, 0.05, 0.03),
    ],
)
def test_measured_splits_are_ordered(
    name, rows, groups, correlation, first, of_three
) -> None:
    table = splits.measured_splits(name)
    assert len(table) == rows
    found = splits.ranked(table)
    assert len(found) == groups
    mean = found.mean()
    assert mean["correlation"] >= correlation
    assert mean["first"] <= first
    assert mean["first three"] <= of_three


@pytest.mark.parametrize(
    ("kind", "inside", "widest", "error"),
    [("16-bit dense", 0.80, 2.0, 0.15), ("experts", 0.75, 3.0, 0.5)],
)
def test_seconds_lie_in_the_interval_that_the_others_make(
    kind, inside, widest, error
) -> None:
    rows = splits.utilizations.judged(JUDGED[JUDGED["kind"] == kind])
    assert rows["inside"].mean() >= inside
    assert (rows["high"] / rows["low"]).median() <= widest
    assert (rows["utilization"] / rows["likely"] - 1).abs().median() <= error


def test_one_measured_step_foretells_the_others_of_its_source() -> None:
    """Any one taken as measured: the others' median error, in the mean of sources."""
    dense = JUDGED[JUDGED["kind"] == "16-bit dense"]
    errors = []
    for _, pace in dense.groupby("source")["utilization"]:
        errors.append([(one / pace - 1).abs().median() for one in pace])
    assert sum(median(found) for found in errors) / len(errors) <= 0.105


def test_rows_of_a_table_become_plans_of_their_split() -> None:
    table = splits.measured_splits("vtrain_a100_multi_node")
    row = published.vtrain_a100_multi_node().iloc[0]
    plan = table["plan"][0]
    assert plan.split.num_gpus == row["num_gpus"]
    assert plan.split.data_parallel == row["data_parallel"]
    assert table["seconds"][0] == row["seconds_per_iteration"]
    assert len(splits.measured_splits("recomputation_runs")) == 8
