"""A page ends on a story or on the learner's own number, and what it says there is true."""

from __future__ import annotations

import json

import pytest

from llmtrain_course.exercises import own_run
from llmtrain_course.finetune.formulas import tuned_states
from llmtrain_helpers import Tuning, count_parameters, published, units
from tests import pages
from tests.paths import NOTEBOOKS
from tools.notebooks import pages as chapters

CHAPTERS = [path.stem for path in chapters() if path.stem != "glossary"]


@pytest.mark.parametrize("page", CHAPTERS)
def test_the_last_thing_on_a_page_is_no_list_of_sources(page: str) -> None:
    ids = [cell["id"] for cell in pages.cells(page)]
    assert "sources" not in ids
    assert ids[-1] in ("ending", "onward")
    last = pages.cell(page, ids[-1]).rstrip().split("\n\n")[-1]
    assert ".ipynb)" in last, "where to go on"
    evidence = NOTEBOOKS / "evidence" / f"{page}.ipynb"
    assert json.loads(evidence.read_text("utf-8"))["cells"][-1]["id"] == "sources"


def test_01_a_token_of_the_giant_costs_half_of_the_70b() -> None:
    giant = count_parameters(published.config_model("DeepSeek-V3"))
    model = count_parameters(published.architecture("Llama-3.1-70B"))
    assert 9 < giant.total / model.total < 10
    assert giant.active / model.active == pytest.approx(0.5, abs=0.05)
    assert "more than nine times as large" in pages.cell("01_parameters", "ending")


def test_02_the_run_takes_everyone_thousands_of_years() -> None:
    years = own_run().plan.total_flops / 8e9 / (365.25 * units.DAY)
    assert 6000 < years < 12000  # the Stone Age ended some 5,000 years ago


def test_03_tinyllamas_readme_divides_rightly_and_ends_late() -> None:
    runs = published.training_runs().set_index("name").loc["TinyLlama 1.1B"]
    assert runs["num_gpus"] == 16
    planned = runs["tokens"] / (24_000 * 16) / units.DAY
    text = pages.cell("03_duration", "ending")
    assert f"would take {planned:.0f} days" in text
    assert f"came {runs['days']:.0f} days after" in text
    assert f"added another {100 * (runs['days'] / round(planned) - 1):.0f}%" in text


def test_10_the_logbook_is_that_of_the_table() -> None:
    row = published.interruptions().set_index("name").loc["OPT-175B"]
    text = pages.cell("10_calendar", "ending")
    stops = row["failures_per_node_day"] * row["num_gpus"] / 8 * 56
    assert f"stopped it {stops:.0f} times" in text
    assert f"have taken {row['useful_share'] * 56:.0f} of the 56 days" in text.replace(
        "'ve", " have"
    )


def test_12_measuring_is_worth_seven_billion_tokens() -> None:
    mine = own_run()
    timed = mine.plan.calibrated(mine.plan.seconds_per_iteration.likely)
    gain = float(timed.first_run_tokens(mine.days)) - mine.tokens
    assert f"worth {gain / 1e9:.0f} billion tokens" in pages.cell("12_measure", "onward")


def test_13_the_weights_of_a_65b_leave_fourteen_of_48_gb() -> None:
    model = published.architecture("llama-1-65b")
    weights = float(tuned_states(model, Tuning.qlora(64))["weights"]) / 1e9
    text = pages.cell("13_finetune", "ending")
    assert f"themselves are {weights:.0f} GB" in text
    assert f"remaining {48 - round(weights)}" in text
    assert f"{16 * 65:,} GB by the count in chapter 05" in text
    assert (12 * 65) == 780
