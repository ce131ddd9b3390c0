"""What the page of chapter 11 states, computed anew."""

import re
from itertools import pairwise

import numpy as np
import pytest

from llmtrain_course.panels import PANELS
from llmtrain_helpers import compute_optimal, frontier, loss, published, shelf
from tests.pages import cell, words


def _strip(C: float) -> tuple[float, float]:
    """The sizes, in billions, within 0.01 of the law's best for this work."""
    sizes = np.geomspace(1e9, 1e11, 4001)
    losses = loss(sizes, C / (6 * sizes))
    within = sizes[losses <= losses.min() + 0.01] / 1e9
    return float(within[0]), float(within[-1])


def test_why_eighteen_twenty_and_twenty_one_tokens_agree() -> None:
    """One law, whose best ratio falls as the work grows, and a rule in between."""
    mine = frontier(A100, 8, 30, shelf(8192)).promised()
    work = mine.best.plan.total_flops
    example, chinchilla = (compute_optimal(C).tokens_per_parameter for C in (work, 5.76e23))
    text = cell("11_budget", "own")
    assert f"best is {example:.0f} tokens per parameter here" in text
    assert f"and {chinchilla:.0f} for Chinchilla" in text
    assert "A later fit to the same runs found 18 tokens" in words("11_budget")
    assert f"| {example:.0f} is best for this work |" in mine.best.plan.report("x").markdown
    many = [compute_optimal(10.0**k).tokens_per_parameter for k in range(20, 27)]
    assert many == sorted(many, reverse=True)
    assert chinchilla < 20 < example


def test_a_model_has_the_same_tokens_in_the_sentence_and_in_the_picture() -> None:
    panel = PANELS["budget"]
    html = panel.answer(panel.presets[next(iter(panel.presets))]).html
    [own] = re.findall(r"Yours, ([\d.]+B) on ([\d.]+ \w+),", html)
    assert f"Yours: {own[0]}, {own[1]} tokens" in html
    assert f"{own[1]} tokens, loss" in html
    assert f"<td>{own[1]}</td>" in re.sub(r"<td[^>]*>", "<td>", html)


def test_the_last_answer_of_the_page() -> None:
    C = 64 * 0.395 * 989.5e12 * 21 * 86400
    low, high = _strip(2 / 3 * C)
    assert (round(low, 1), round(high)) == (7.4, 34)
    assert low < 24 < high
    assert "(which now runs from 7.4 to 34 billion)" in words("11_budget")


H100 = published.accelerator("H100 SXM")


A100 = published.accelerator("A100 80GB SXM")


LLAMA = published.architecture("Llama-3.1-8B", sequence_length=8192)


def test_what_the_page_says_of_its_cases_is_so() -> None:
    served = frontier(H100, 64, 21, shelf(), serving_memory=24e9)
    best = min(x.loss.likely for x in served.points if x.fits)
    assert served.best.name == "9.0B"
    price = served.best.loss.likely - best
    assert f"this requirement raises the loss by {price:.3f}" in words("evidence/11_budget")
    small = frontier(A100, 8, 30, shelf(), serving_memory=24e9)
    assert small.best.name == "7.2B"
    columns = small.columns()
    assert columns["loss"][columns["name"].index("7.2B")] == min(columns["loss"])


def test_embedding_and_head_of_llama_by_adam_in_place_of_muon() -> None:
    assert 4 * 2 * LLAMA.vocab_size * LLAMA.hidden_size == pytest.approx(4.2e9, 0.001)


def test_what_the_evidence_says_of_the_splits_is_so() -> None:
    points = {x.name: x for x in frontier(H100, 64, 21, shelf()).points}
    reached = [round(100 * points[name].plan.mfu) for name in ("31B", "43B")]
    text = words("evidence/11_budget")
    assert f"the 31B reaches {reached[0]}% of the peak, the 43B {reached[1]}%" in text
    halved = [name for name in points if points[name].plan.run.recompute == "alternate"]
    assert halved == ["100B", "130B", "220B"]
    names = [*points]
    for name in names[: names.index("330B")]:
        split = points[name].plan.split
        wide = names.index(name) >= names.index("43B")
        assert split.tensor_parallel == (4 if name == "220B" else 2 if wide else 1)
        assert split.pipeline_parallel == (16 if name == "220B" else 1)
        assert (split.micro_batch_size == 1) == (names.index(name) > names.index("14B"))
    for name in ("330B", "430B"):
        assert (points[name].plan.run.recompute, points[name].fits) == ("full", False)
    middle = [points[x].loss for x in names[names.index("4.2B") : names.index("55B") + 1]]
    up = [span.greatest - span.likely for span in middle]
    assert f"the dots from 4.2B to 55B move up by {min(up):.3f} to {max(up):.3f}" in text
    alike = names[names.index("7.2B") : names.index("69B") + 1]
    for smaller, larger in pairwise(points[x].loss for x in alike):
        assert abs(larger.likely - smaller.likely) < larger.greatest - larger.least


def test_how_far_from_twenty_models_lie_since_2023() -> None:
    rows = [r for r in published.rows("tokens_per_parameter") if r["year"] >= 2023]
    ratios = {r["name"]: r["tokens_per_parameter"] for r in rows}
    assert min(ratios.values()) > 20
    assert sum(x <= 40 for x in ratios.values()) == 7
    assert sum(x >= 100 for x in ratios.values()) > len(ratios) / 2
    assert max(ratios, key=lambda name: ratios[name]) == "Qwen3 0.6B"
    assert ratios["Qwen3 0.6B"] / 20 == pytest.approx(3000, rel=0.01)
