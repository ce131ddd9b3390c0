"""Measured rows of fine-tuning: which of them judge, and what they say."""

from collections import Counter
from typing import Any

import pytest

from llmtrain_helpers.evidence import published

ROWS = published.rows("finetune_measured")


def settings_are_known(row: dict[str, Any]) -> bool:
    """What data/README.md says of a judged row, read from its other columns."""
    measured = row["status"] == "ok" and row.get("memory_kind") in ("active", "allocated")
    missed = row["status"] == "oom" and row["publication"].split()[0] in (
        "litgpt",
        "fms-acceleration",
    )
    below_a_maximum = row["publication"].startswith("torchtune") and row.get("packing") == "padded"
    return (
        (measured or missed)
        and row["method"] in ("full", "lora", "qlora")
        and "sequence_length" in row
        and not below_a_maximum
        and "offload" not in row
        and "GPTQ" not in row.get("quantisation", "")
    )


def test_judged_is_every_row_with_known_settings_and_no_other() -> None:
    for row in ROWS:
        expected = {"ok": "peak", "oom": "fit"}[row["status"]] if settings_are_known(row) else ""
        assert row.get("judged", "") == expected, row["name"]


def test_the_list_of_judged_rows_stands_as_it_was_fixed() -> None:
    found = Counter((row["publication"], row["judged"]) for row in ROWS if "judged" in row)
    assert found == {
        ("fms-acceleration (IBM)", "peak"): 99,
        ("fms-acceleration (IBM)", "fit"): 35,
        ("litgpt config_hub", "peak"): 38,
        ("litgpt config_hub", "fit"): 5,
        ("litgpt resource tables", "peak"): 27,
        ("litgpt resource tables", "fit"): 8,
        ("torchtune README", "peak"): 5,
    }


@pytest.mark.parametrize("row", [r for r in ROWS if "judged" in r], ids=lambda r: r["name"])
def test_a_judged_row_says_what_an_estimate_asks_for(row: dict[str, Any]) -> None:
    assert {"model", "micro_batch_size", "num_gpus", "recompute", "weight_type"} <= {*row}
    assert row["method"] == "full" or {"rank", "targets", "dropout"} <= {*row}
    assert row["method"] != "qlora" or "NF4" in row["quantisation"]
