"""What the page of chapter 03 states, computed anew."""

from llmtrain_helpers import training_seconds
from llmtrain_helpers.duration import UTILIZATIONS
from llmtrain_helpers.evidence import published, utilizations
from tests.pages import cell, words


def test_the_slowest_and_the_fastest_run_are_those_that_the_panel_tells() -> None:
    shares = utilizations.model_utilizations()["utilization"]
    assert len(shares) == 14
    assert (round(min(shares), 2), round(max(shares), 2)) == (0.22, 0.48)
    assert "none of the fourteen published whole runs came over 48 %" in cell(
        "03_duration", "panel-answers"
    )


def test_runs_with_a_known_rate_took_longer_than_the_page_says_by_formula() -> None:
    rates = {"BLOOM-176B": 150e12, "Llama 3.1 405B": 400e12, "DeepSeek-V3": 432e12}
    rates |= {"TinyLlama 1.1B": 0.56 * 312e12, "PaLM 540B": 0.462 * 275e12}
    runs = published.training_runs().set_index("name")
    hours, longer = published.reported_gpu_hours(), []
    for name, X in rates.items():
        T, P = runs.loc[name, ["tokens", "active_parameters"]]
        again = "full" if name == "BLOOM-176B" else "none"
        longer.append(hours[name] * 3600 / training_seconds(T, P, 1, X, again) - 1)
    span = f"{100 * min(longer):.0f} to {100 * max(longer):.0f} %"
    assert f"Five runs published theirs, and still took {span} longer" in words("03_duration")


def test_palm_has_two_shares_and_the_page_says_why() -> None:
    palm = published.run("PaLM 540B")
    assert palm["mfu"] == 0.462
    assert "incl. downtime and repeated steps" in palm["note"]
    shares = utilizations.model_utilizations()["utilization"]
    assert round(float(shares["PaLM 540B"]), 2) == 0.30
    below = shares[shares < UTILIZATIONS[0]]
    assert list(below.index) == ["Pythia 70M"]
    runs = published.training_runs().set_index("name").loc[list(shares.index)]
    assert runs["parameters"].idxmin() == "Pythia 70M"
