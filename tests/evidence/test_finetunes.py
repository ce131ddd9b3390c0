"""Measured rows of fine-tuning: which of them judge, and what they say."""

from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from llmtrain_helpers import count_parameters, published
from llmtrain_helpers.plan.pace import TUNED
from research import finetunes, utilizations

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
        and "default" not in row.get("length", "")
        and "offload" not in row
        and "GPTQ" not in row.get("quantisation", "")
    )


def test_judged_is_every_row_with_known_settings_and_no_other() -> None:
    for row in ROWS:
        expected = {"ok": "peak", "oom": "fit"}[row["status"]] if settings_are_known(row) else ""
        assert row.get("judged", "") == expected, row["name"]


def test_the_list_of_judged_rows_stands_as_it_was_fixed() -> None:
    counts = Counter((row["publication"], row["judged"]) for row in ROWS if "judged" in row)
    assert counts == {
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


def test_what_contradicts_itself_is_named_and_counts() -> None:
    by_name = {row["name"]: row for row in ROWS}
    for name in finetunes.AGAINST_ITSELF:
        row = by_name[name]
        assert (row["method"], row["optimizer"], row["judged"]) == ("full", "AdamW", "peak")
        P = count_parameters(finetunes.shape(row["model"], row["sequence_length"])).total
        assert row["peak_bytes"] < 7.1 * P
        assert f"{row['peak_bytes'] / P:.1f} bytes" in finetunes.AGAINST_ITSELF[name]


def test_the_formulas_give_what_pytorch_counted() -> None:
    rows = published.rows("finetune_counted")
    assert Counter(row["quantity"] for row in rows) == {"FLOPs": 42, "bytes": 13}
    assert {finetunes.formula(row) - row["counted"] for row in rows} == {0}


def test_the_speed_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    finetunes.main()
    assert "speed: 0." in capsys.readouterr().out


def test_the_pace_of_a_tuned_plan_is_what_the_rows_give() -> None:
    assert {"16-bit": finetunes.pace()} == TUNED


def test_so_many_speeds_lie_in_what_the_others_make() -> None:
    """Of five publications, one of which has most rows."""
    coverage = utilizations.verdicts(utilizations.judged(finetunes.speeds()))
    assert coverage["witnesses"] == 5
    assert coverage["inside"] >= 0.85
    assert 0.65 <= coverage["inside, alike"] <= 0.75
    assert coverage["width"] <= 2.5


def test_four_bits_are_slow_with_few_tokens_and_free_with_many() -> None:
    pairs = finetunes.speed_ratios("qlora", "lora")
    few = [pair.times for pair in pairs if pair.tokens < 2048]
    many = [pair.times for pair in pairs if pair.tokens >= 8192]
    assert (len(few), max(few) < 0.92, min(few) < 0.5) == (14, True, True)
    assert min(many) > 0.87


def test_what_nodes_send_explains_most_of_what_they_lose() -> None:
    """Of 8 steps, 5 of adapters and 3 of full training, which hides some of it."""
    steps = finetunes.nodes()
    assert [step.num_gpus for step in steps] == [16, 16, 16, 32, 64, 16, 32, 64]
    before, after = (
        [predicted / step.seconds - 1 for step, predicted in zip(steps, each, strict=True)]
        for each in ([s.divided for s in steps], [s.waiting for s in steps])
    )
    assert all(-0.1 < error < -0.03 for error in before)
    assert median(map(abs, before)) > 0.07
    assert median(map(abs, after)) < 0.03
    assert [s.name for s, error in zip(steps, after, strict=True) if error > 0] == [
        *("AT-006", "AT-007", "AT-008")
    ]
    assert all(-0.031 < error < 0.056 for error in after)
    for step in steps:
        planned = step.plan.seconds_per_iteration
        assert planned.least < step.seconds < planned.greatest


def test_rows_that_leave_their_length_to_a_script_are_far_from_the_estimate() -> None:
    """data/README.md says how far, if their sequences have the script's length."""
    readme = (Path(__file__).parents[2] / "data/README.md").read_text(encoding="utf-8")
    rows = [row for row in ROWS if "default" in row.get("length", "")]
    low = [1 - float(finetunes.plan_of(row).memory.total) / row["peak_bytes"] for row in rows]
    assert f"the estimated peak is {min(low):.0%} to {max(low):.0%} too low" in readme


def test_the_page_says_what_nvidias_fp8_loses_on_several_nodes() -> None:
    speeds = [x["tokens_per_s_per_gpu"] for x in ROWS if "MLPerf" in x["publication"]]
    losses = [1 - speed / one for one, *wide in (speeds[:3], speeds[3:]) for speed in wide]
    page = Path(__file__).parents[2] / "notebooks/evidence/13_finetune.ipynb"
    assert f"lose {100 * min(losses):.0f} to {100 * max(losses):.0f} percent" in page.read_text(
        encoding="utf-8"
    )
