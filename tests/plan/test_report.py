"""The page for who pays."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from llmtrain_helpers import LAWS, loss, plan_run
from llmtrain_helpers.evidence import published
from llmtrain_helpers.plan.plan import planned

H100 = published.accelerator("H100 SXM")


LLAMA = published.architecture("Llama-3.1-8B", sequence_length=8192)


PLAN = plan_run(
    LLAMA, H100, 64, 1e12, 512, **{"recompute": "none", "zero_stage": 3, "price_per_gpu_hour": 2.5}
)


def test_the_report_stands_alone() -> None:
    page = PLAN.report("our 8B")
    assert page.markdown.startswith("# Our 8B: 8.03 billion parameters")
    for line in page.lines:
        assert all(line.cells()), line.what
        for cell in line.cells():
            assert cell in unescape(page.html)
            assert cell in page.markdown
    assert {"days", "cost", "energy", "memory of a GPU", "loss expected"} <= {
        line.what for line in page.lines
    }
    assert not re.search(r"https?://|<script|<link|src=", page.html)


def test_the_numbers_of_the_report_are_the_plans() -> None:
    told = {line.what: line for line in PLAN.report().lines}
    assert told["parameters"].number == "8,030,261,248"
    assert told["days"].number == "24"
    assert told["days"].interval == "20 to 27"
    assert told["cost"].number == "90,600 dollars"
    assert told["loss expected"].number == f"{loss(8.03e9, 1e12):.2f} nats a token"
    assert told["tokens a parameter"].assumption.startswith("1.35 times the least work")


@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "two\nlines",
        "`ls`",
        "<b>bold</b>",
        "<script>",
        "$x$ and $y$",
        "*a* _b_ [c](d) \\|",
        "&lt;",
    ],
)
def test_names_are_words_whatever_they_hold(name: str) -> None:
    """In Markdown no table, code, tag or formula; in HTML no tag."""
    chip = replace(H100, name=name)
    page = replace(PLAN.run, accelerator=chip)
    told = planned(page).report(name, replace(LAWS["besiroglu"], source=name))
    plain = PLAN.report()
    assert told.markdown.count("\n") == plain.markdown.count("\n")
    bare = re.sub(r"\\[\W_]", "", told.markdown)
    rows = [line for line in bare.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {6}
    assert not re.search(r"[`<$*\[]", bare.replace("* ", ""))
    assert name.replace("\n", " ") in re.sub(r"\\([\W_])", r"\1", told.markdown)
    assert name in unescape(told.html)
    tags = set(re.findall(r"</?(\w+)", plain.html))
    assert set(re.findall(r"</?(\w+)", told.html)) == tags
    assert told.html.count("<") == plain.html.count("<")


def test_a_report_at_a_measured_rate_has_the_stops_in_it() -> None:
    told = {x.what: x for x in PLAN.but(flops_per_gpu=420e12).report().lines}
    assert told["days"].assumption == "your measured rate; stops add 8 to 50 %"
    told = {x.what: x for x in PLAN.calibrated(10.0).report().lines}
    assert told["days"].assumption == "your measured step; stops add 8 to 50 %"
    with pytest.raises(ValueError, match="is many: a report is about one"):
        PLAN.but(tokens=np.array([1e12, 2e12])).report()
    with pytest.raises(ValueError, match="law='chinchila' is unknown"):
        PLAN.report(law="chinchila")
