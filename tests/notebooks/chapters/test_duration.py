"""What the page of chapter 03 states, computed anew."""

from llmtrain_helpers.duration import UTILIZATIONS
from llmtrain_helpers.evidence import published, utilizations


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
