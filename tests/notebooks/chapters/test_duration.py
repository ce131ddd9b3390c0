"""What the page of chapter 03 states, computed anew."""

import pytest

from llmtrain_helpers import training_seconds, units
from llmtrain_helpers.duration import UTILIZATIONS
from llmtrain_helpers.evidence import published, utilizations
from llmtrain_helpers.flops import count_flops
from llmtrain_helpers.panels.duration import shares_of_runs
from llmtrain_helpers.parameters import count_parameters
from tests.pages import cell, words

PAGE, EVIDENCE = "03_duration", "evidence/03_duration"


def test_llama_2_70b_took_what_the_page_says() -> None:
    hours = published.run("Llama 2 70B")["gpu_hours"]
    assert f"{units.count(hours)} GPU-hours" in cell(PAGE, "gpus")


def test_bloom_as_the_page_tells_it() -> None:
    bloom, told = published.run("BLOOM-176B"), cell(PAGE, "convention")
    assert bloom["recompute"] == "full"
    assert f"{bloom['num_gpus']} A100 did {bloom['flops_per_gpu'] / 1e12:.0f} TFLOP/s" in told
    assert f"{bloom['parameters'] / 1e9:.0f} billion parameters" in told


def test_doubling_as_the_paper_measured_it() -> None:
    days = published.megatron_training_days().set_index("name")["days"]
    told = cell(PAGE, "twice")
    first, second, third = (days[f"ZeRO-3 174.6B on {n} GPUs"] for n in (384, 768, 1536))
    assert f"On 384 GPUs a run would take {first} days" in told
    assert f"it would take {second}," in told
    assert third == second
    assert days["PTD-P 174.6B on 1536 GPUs"] < 0.55 * days["PTD-P 174.6B on 768 GPUs"]


def test_the_8b_took_two_and_a_half_times_the_estimate() -> None:
    row, told = published.run("Llama 3.1 8B"), cell(PAGE, "promise-seen")
    work = (row["tokens"], row["active_parameters"])
    rate = UTILIZATIONS[1] * row["peak_flops"]
    hours = training_seconds(*work, 1, rate, "none") / units.HOUR
    assert f"should have taken {hours / 1e6:.2f} million GPU-hours" in told
    assert f"reports {row['gpu_hours'] / 1e6:.2f} million, two and a half times" in told
    assert row["gpu_hours"] / hours == pytest.approx(2.5, abs=0.05)
    assert "hours cover all training stages" in row["note"]


def test_how_many_would_have_been_late() -> None:
    shares, told = shares_of_runs(), cell(PAGE, "promise-seen")
    late = {x: sum(share < x for share in shares.values()) for x in (0.25, 0.35)}
    assert (len(shares), late) == (14, {0.25: 1, 0.35: 8})
    assert "At 35 % eight of the fourteen are late. At 25 % it is one, the smallest model." in told
    fastest = max(shares, key=lambda name: shares[name])
    assert published.run(fastest)["team"] == "Meta"
    assert f"by Meta, with {units.share(shares[fastest])}" in cell(PAGE, "predict")
    assert "none of 14 published runs came over 48 %" in cell(PAGE, "panel-answers")


def test_blooms_calendar_rules_one_count_out() -> None:
    row, told = published.run("BLOOM-176B"), cell(PAGE, "convention-seen")
    work = (row["tokens"], row["active_parameters"], row["num_gpus"])
    right, long = (
        float(training_seconds(*work, X, "full")) / units.DAY for X in (150e12, 0.75 * 150e12)
    )
    assert right < row["days"] < long
    assert f"had {row['days']:.0f} days" in told
    assert f"So {long:.0f} days of computing are impossible" in told
    assert 13 < row["days"] - right < 15.5  # two weeks


def test_the_own_run_is_five_sevenths_of_the_first_pages() -> None:
    assert UTILIZATIONS[0] / UTILIZATIONS[1] == pytest.approx(5 / 7)
    assert "five sevenths" in cell(PAGE, "own")


def test_runs_with_a_known_rate_took_longer_than_by_formula() -> None:
    rates = {"BLOOM-176B": 150e12, "Llama 3.1 405B": 400e12, "DeepSeek-V3": 432e12}
    rates |= {"TinyLlama 1.1B": 0.56 * 312e12, "PaLM 540B": 0.462 * 275e12}
    runs = published.training_runs().set_index("name")
    hours, longer = published.reported_gpu_hours(), []
    for name, X in rates.items():
        T, P = runs.loc[name, ["tokens", "active_parameters"]]
        again = "full" if name == "BLOOM-176B" else "none"
        longer.append(hours[name] * 3600 / training_seconds(T, P, 1, X, again) - 1)
    span = f"{100 * min(longer):.0f} to {100 * max(longer):.0f} %"
    assert f"So the five took {span} longer" in words(EVIDENCE)


def test_palm_has_two_shares_and_the_evidence_says_why() -> None:
    palm = published.run("PaLM 540B")
    assert palm["mfu"] == 0.462
    assert "incl. downtime and repeated steps" in palm["note"]
    shares = utilizations.model_utilizations()["utilization"]
    assert round(float(shares["PaLM 540B"]), 2) == 0.30
    assert "the share at its best speed" in cell(EVIDENCE, "interval")
    below = shares[shares < UTILIZATIONS[0]]
    assert list(below.index) == ["Pythia 70M"]


def test_what_the_scores_add_to_an_8b() -> None:
    llama = published.architecture("Llama-3.1-8B", sequence_length=8192)
    by_formula = 6 * count_parameters(llama).active * 8192
    added = float(count_flops(llama, 1, recompute="none").total) / by_formula - 1
    assert added == pytest.approx(1 / 5, abs=0.01)
    assert "they add a fifth to the work of Llama 3.1 8B" in words("03_duration")
