"""Measured memory next to the account of it: what is reached, and not what was hoped for."""

from collections import Counter
from operator import attrgetter

import pytest

from llmtrain_helpers import published
from llmtrain_helpers.plan.memory import RESERVES, WIDE_RESERVES
from research import memory

REACHED = {
    "b200_steps_and_memory": (20, 0.007, 1.00),
    "torchtitan, memory": (14, 0.07, 0.70),
    "bloom_sweeps": (30, 0.14, 0.05),
    "torchtune README": (5, 0.04, 0.80),
    "litgpt config_hub": (38, 0.16, 0.35),
    "litgpt resource tables": (27, 0.16, 0.15),
    "IBM": (27, 0.01, 0.75),
    "IBM, partly read off": (72, 0.09, 0.59),
    "public cases": (4, 0.10, 0.50),
}
"""Rows, the median error's size at most, and the share within 10% at least."""


def test_every_source_of_peaks_is_judged() -> None:
    assert {*memory.errors(memory.cases())} == {*REACHED}


@pytest.mark.parametrize("source", REACHED)
def test_peaks_are_as_near_as_is_said(source: str) -> None:
    rows, size, within = REACHED[source]
    error = memory.errors(memory.cases(), near=0.1)[source]
    assert error.rows == rows
    assert error.size <= size
    assert error.within >= within


def test_none_of_megatrons_peaks_on_b200_is_three_per_cent_off() -> None:
    peaks = [case for case in memory.cases() if case.source == "b200_steps_and_memory"]
    assert max(abs(case.error) for case in peaks) <= 0.03


def test_every_judged_peak_of_tuning_counts() -> None:
    named = [row["name"] for row in published.rows("finetune_measured") if "judged" in row]
    assert [case.name for case in memory.tuned_cases()] == named
    peaks = sum(error.rows for error in memory.errors(memory.tuned_cases()).values())
    assert peaks == 99 + 38 + 27 + 5


def test_of_what_ran_three_per_cent_are_on_the_edge_and_six_do_not_fit_at_most() -> None:
    """Of the rows that print what is computed again; the others are looked at apart."""
    verdicts = Counter(x.verdict for x in memory.cases() if x.ran and x.stated and x.card)
    ran = sum(verdicts.values())
    assert ran >= 1397
    assert verdicts["edge"] <= 0.03 * ran
    assert verdicts["no"] <= 0.06 * ran
    unstated = Counter(case.verdict for case in memory.cases() if not case.stated)
    assert sum(unstated.values()) == 83
    assert unstated["fits"] >= 60


def test_of_what_ran_out_of_memory_few_fit() -> None:
    verdicts = Counter(case.verdict for case in memory.cases() if not case.ran)
    assert sum(verdicts.values()) == 6 + 35 + 5 + 8 + 4
    assert verdicts["fits"] <= 0.15 * sum(verdicts.values())


def test_beyond_the_allocators_peak_lie_some_gigabytes() -> None:
    reserves = memory.reserves()
    assert {kind: reserve.rows for kind, reserve in reserves.items()} == {
        ("one GPU", "whole"): 35,
        ("one GPU", "fused"): 6,
        ("several", "whole"): 46,
        ("several", "fused"): 12,
    }
    for reserve in reserves.values():
        assert 0.5e9 < reserve.firm < reserve.likely < reserve.most < 25e9


def test_the_reserve_of_a_plan_is_what_three_of_four_rows_exceed_or_half_of_them() -> None:
    reserves = memory.reserves(attrgetter("ways"))
    assert {kind: round(reserve.firm, -8) for kind, reserve in reserves.items()} == RESERVES
    assert {kind: round(reserve.likely, -8) for kind, reserve in reserves.items()} == WIDE_RESERVES
    assert [reserve.rows for reserve in reserves.values()] == [41, 58]


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    memory.main()
    output = capsys.readouterr().out
    assert "litgpt config_hub       allocated       38" in output
    assert "LG-024 says what cannot be" in output
