"""What others reached: the intervals of 03 and 09 are those of data/."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from llmtrain_helpers import plan_run, published
from llmtrain_helpers.duration import UTILIZATIONS
from llmtrain_helpers.flops import gpt_flops
from llmtrain_helpers.plan.pace import HIGHEST, PUBLISHED_SHARES, STOPS, WHOLE_RUNS, Shares
from llmtrain_helpers.units import DAY
from research import utilizations
from tests.pages import words


def test_the_default_utilisations_are_those_of_the_published_runs() -> None:
    shares = utilizations.model_utilizations()["utilization"]
    assert len(shares) == 14
    assert (
        tuple(round(u, 2) for u in utilizations.spread(utilizations.model_utilizations()))
        == UTILIZATIONS
    )
    assert shares.between(UTILIZATIONS[0], UTILIZATIONS[2]).sum() == 13


steps = cache(utilizations.measured_steps)
coverage = cache(utilizations.coverage)


def test_the_plans_shares_are_those_of_the_published_figures() -> None:
    assert utilizations.shares() == PUBLISHED_SHARES


def test_the_highest_shares_are_those_of_the_published_steps() -> None:
    highest = steps().groupby("kind")["share"].max()
    assert {kind: round(float(share), 2) for kind, share in highest.items()} == HIGHEST


def test_chapter_03s_shares_are_those_of_the_published_runs() -> None:
    low, likely, high = utilizations.spread(utilizations.model_utilizations())
    assert (round(low, 2), round(likely, 2), round(high, 2)) == UTILIZATIONS


@pytest.mark.parametrize(
    ("kind", "rows", "witnesses", "least", "widest"),
    [
        ("steps, 16-bit dense", 491, 20, 0.80, 2.0),
        ("steps, fp8 dense", 121, 9, 0.80, 2.0),
        ("steps, experts", 111, 4, 0.75, 2.8),
        ("whole runs, 16-bit dense", 10, 6, 0.75, 2.0),
        ("whole runs, by 6PT", 14, 7, 0.75, 2.1),
    ],
)
def test_who_is_left_out_lies_mostly_inside(kind, rows, witnesses, least, widest):
    row = coverage().loc[kind]
    assert (row["rows"], row["witnesses"]) == (rows, witnesses)
    assert row["inside"] / row["rows"] >= least
    assert row["width without"] <= widest


def test_fp8_and_fp4_are_told_as_what_they_are() -> None:
    assert coverage().loc["steps, fp8 dense", "width"] <= 2.6
    row = coverage().loc["steps, fp4 dense"]
    assert (row["witnesses"], row["inside"]) == (2, 5)
    software = steps().loc[steps()["kind"] == "fp4 dense", "software"]
    assert set(software) == {"megatron-core"}


def test_each_table_comes_in_whole() -> None:
    rows = steps()["source"].value_counts()
    assert rows["megatron_table1"] == len(published.megatron_table1())
    assert rows["recomputation_runs"] == 2 * len(published.recomputation_runs())
    assert rows["vtrain_a100_multi_node"] == len(published.vtrain_a100_multi_node())
    assert rows["llmfoundry_benchmarks"] == len(published.llmfoundry_benchmarks())
    bridge = published.megatron_bridge()
    assert rows["megatron_bridge"] == (bridge["task"] == "pre-training").sum() == 127
    assert steps()["utilization"].between(0.04, 0.9).all()
    assert not steps().isna().any(axis=None)


def test_the_shares_by_whose_software() -> None:
    """NVIDIA's own in fp8 foretell each other; others' reach less, and are wider apart."""
    table = utilizations.coverage(utilizations.groups_by_software())
    own, others = (table.loc[f"fp8 dense, {x}"] for x in ("megatron-core", "other"))
    assert own["inside"] / own["rows"] >= 0.8
    assert own["width without"] < 1.6 < others["width without"]
    assert others["likely"] < 0.75 * own["likely"]


def test_a_bubble_is_taken_out_once() -> None:
    """GPT-3 of the recomputation paper: p = 8, m = 64, v = 3."""
    rows = steps()[steps()["source"] == "recomputation_runs"].reset_index(drop=True)
    assert rows["bubble"][1] == pytest.approx(7 / (64 * 3))
    assert np.allclose(rows["utilization"], rows["share"] * (1 + rows["bubble"]))
    printed = published.recomputation_runs()["mfu"].to_numpy(dtype=float)
    selective = rows["share"][4:].to_numpy()  # the scores again: 1% more
    assert selective == pytest.approx(1.01 * printed, rel=0.015)


def test_blooms_printed_rates_prove_its_vocabulary() -> None:
    """With V = 250,880 the printed rates come out to three digits."""
    table = published.bloom_sweeps().dropna(subset=["num_layers", "flops_per_gpu"])
    printed = table.query("num_gpus > 8")["flops_per_gpu"] / 312e12
    counted = steps()[steps()["source"] == "bloom_sweeps"]["share"]
    ratio = printed.to_numpy(dtype=float) / counted.to_numpy()
    assert abs(np.median(ratio) - 1) < 0.0005


def test_vtrains_steps_are_counted_with_the_vocabulary_that_its_note_names() -> None:
    """Its file has none; data/README.md says that the package takes 51,200."""
    row = published.vtrain_a100_multi_node().iloc[0]
    shape = (row[name] for name in ("num_layers", "hidden_size"))
    counted = gpt_flops(*shape, 51200, row["sequence_length"], row["global_batch_size"], "full")
    share = counted / row["seconds_per_iteration"] / row["num_gpus"] / row["peak_flops"]
    shares = steps()[steps()["source"] == "vtrain_a100_multi_node"]["share"]
    assert shares.iloc[0] == pytest.approx(share)


def test_whole_runs_are_of_the_calendar() -> None:
    runs = utilizations.whole_runs()
    assert not any("Pythia" in name for name in runs.index)
    assert runs.loc["PaLM 540B", "share"] == pytest.approx(0.384, abs=0.001)
    assert runs.loc["Llama 3.1 405B", "bubble"] == 15 / 128
    assert runs.loc["TinyLlama 1.1B", "share"] == pytest.approx(0.431, abs=0.001)


def test_a_spread_gives_each_witness_one_voice() -> None:
    table = pd.DataFrame(
        {"witness": ["a"] * 98 + ["b", "c"], "utilization": [0.4] * 98 + [0.2, 0.3]}
    )
    low, likely, high = utilizations.spread(table)
    assert likely == 0.3
    assert (low, high) == pytest.approx((0.225, 0.4))
    few = table.tail(2)
    assert utilizations.spread(few) == pytest.approx((0.2, 0.25, 0.3125))


def test_the_table_of_coverage_is_printed(capsys) -> None:
    utilizations.main()
    output = capsys.readouterr().out
    assert "422 = 86%" in output
    [own] = (line for line in output.splitlines() if line.startswith("fp8 dense, megatron-core"))
    assert own.split()[-6:] == ["=", "87%", "86%", "1.48", "7%", "7%"]
    [alone] = (
        line for line in output.splitlines() if line.startswith("steps, 16-bit dense on Trainium")
    )
    assert alone.endswith("untested")
    assert "untested" in output
    assert isinstance(PUBLISHED_SHARES["fp8 dense"], Shares)


def test_by_chip_the_intervals_would_hold_what_the_page_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(utilizations, "COLUMNS", [*utilizations.COLUMNS, "accelerator"])
    by_chip = utilizations.measured_steps()
    dense = by_chip[by_chip["kind"] == "16-bit dense"].reset_index(drop=True)
    pooled = utilizations.judged(dense)["inside"]
    for chip in ("H100", "A100"):
        of_chip = dense["accelerator"].astype(str).str.startswith(chip)
        alone = utilizations.judged(dense[of_chip])["inside"].sum()
        sentence = f"{chip} alone: {alone} of {of_chip.sum()} steps, pooled {pooled[of_chip].sum()}"
        assert sentence in words("evidence/09_plan")


def test_the_stops_are_those_of_seven_published_runs() -> None:
    factors = [*utilizations.stops().values()]
    assert len(factors) == 7
    ends = min(factors), float(np.median(factors)), max(factors)
    assert tuple(round(x, 2) for x in ends) == STOPS


def test_whole_runs_lie_in_the_interval_of_steps_and_stops() -> None:
    """Each judged without its own team; at the spread of whole runs alone it was 9 of 10."""
    verdicts = utilizations.verdicts(utilizations.judged_runs())
    words = f"{verdicts['inside'] * verdicts['rows']:.0f} of {verdicts['rows']} whole runs"
    assert WHOLE_RUNS.startswith(words)
    assert verdicts["width"] < 2.2
    assert verdicts["error"] < 0.125


def test_a_plan_at_the_share_of_each_published_run() -> None:
    """A run that was half as busy would take twice the days; ten of them are whole."""
    plan = plan_run("Llama-3.1-8B", "H100", 64, 1e12, 512, recompute="none", zero_stage=3)
    others = {run.name: run for run in utilizations.others_days(plan)}
    whole = utilizations.whole_runs()
    assert {name for name, run in others.items() if run.whole} == {*whole.index}
    at_one = plan.total_flops / (64 * plan.run.peak) / DAY
    for name, share in whole["utilization"].items():
        assert others[name].days == pytest.approx(at_one / share)
    assert others["Pythia 70M"].days == pytest.approx(at_one / utilizations.run_share("Pythia 70M"))
    assert not {*others} & {*utilizations.DERIVED}
    assert len(others) == 17
    assert [run.days for run in others.values()] == sorted(run.days for run in others.values())
