"""Chapter 10's drawings: to scale, inside their canvas, the same in words."""

import re
from math import log2

import pytest

from llmtrain_helpers import LAWS, frontier, over_training, shelf
from llmtrain_helpers.budget import Outcome
from llmtrain_helpers.drawings import budget as drawings
from llmtrain_helpers.evidence import published

H100 = published.accelerator("H100 SXM")


A100 = published.accelerator("A100 80GB SXM")


with_loss = pytest.mark.parametrize("law", [k for k, x in LAWS.items() if x.tells_loss])


def test_the_curve_is_dotted_beyond_the_runs_of_its_law() -> None:
    """All solid inside, all dotted for a budget no run had, both in between."""
    dots = [Outcome(x, size, 1e9, 3.0, True) for x, size in (("a", 5e7), ("b", 5e11))]

    def curve(flops: float, law: str = "besiroglu") -> list[str]:
        body = drawings.loss_against_size(dots, flops, law).body
        return re.findall(r'<polyline [^>]*stroke-width="[36]"([^>]*)/>', body)

    assert {"", ' stroke-dasharray="2 5"'} == {*curve(1e21)}
    assert {' stroke-dasharray="2 5"'} == {*curve(1e26)}


def test_drawings_say_in_words_what_they_show() -> None:
    front = frontier(H100, 64, 21, shelf())
    words = drawings.frontier_picture(front, "7.2B").words
    assert "21 of 23 shapes will do, 63M to 220B" in words
    assert "Yours: 7.2B, 966 billion tokens, 2.083" in words
    assert "0.50 of it, 1.26 times" in drawings.price_of_size(0.5).words
    rows = published.rows("tokens_per_parameter")
    told = drawings.tokens_each({"mine": 20.0}, rows).words
    assert told.endswith("58 released models: 1.1 to 60,000.")
    terms = drawings.stacked_terms(9.05e9, 1e22, 1e9)
    assert "floor 1.817, too small 0.166, read too little 0.158, loss 2.141" in terms.words
    assert "4 readings of one text are worth 3.7" in drawings.epochs_worth([1, 2, 3, 3.7], 4).words


def test_the_grey_ends_where_never_begins() -> None:
    law = LAWS["besiroglu"]
    least = (1 + law.alpha / law.beta) ** (-1 / law.alpha)
    assert least == pytest.approx(0.1464, abs=5e-5)
    assert over_training(0.2) == pytest.approx(14, abs=0.1)
    with pytest.raises(ValueError, match="never"):
        over_training(1 / 7)
    picture = drawings.price_of_size(0.1)
    [grey] = re.findall(rf'<rect [^>]*fill="{drawings.GREY}"[^>]*>', picture.body)
    x, wide = (float(re.findall(rf' {k}="([\d.]+)"', grey)[0]) for k in ("x", "width"))
    half = drawings.price_of_size(0.5)
    best, at = (float(x) for x in re.findall(r'<circle cx="([\d.]+)"', half.body))
    assert x + wide == pytest.approx(best + log2(least) * (best - at), abs=0.3)
    assert ">over 8<" in picture.body
    assert picture.words.endswith("0.10 of it, never.")


def test_a_price_is_drawn_only_as_far_as_it_was_asked() -> None:
    unasked = drawings.price_of_size()
    assert "never" not in unasked.body
    assert "over 8" not in unasked.body
    [line] = re.findall(r'<polyline points="([^"]*)"', unasked.body)
    assert len(line.split()) == 1
    half = drawings.price_of_size(0.5).body
    [line] = re.findall(r'<polyline points="([^"]*)"', half)
    xs = [float(point.split(",")[0]) for point in line.split()]
    best, chosen = (float(x) for x in re.findall(r'<circle cx="([\d.]+)"', half))
    assert min(xs) == pytest.approx(chosen, abs=2)
    assert max(xs) == pytest.approx(best + (best - chosen), abs=2)


def test_the_key_names_crosses_only_where_one_stands() -> None:
    assert "does not" in drawings.frontier_picture(frontier(A100, 8, 30, shelf())).body
    high = Outcome("high", 1e11, 1e9, 9.0, False)
    low = Outcome("low", 1e9, 1e11, 2.2, True)
    assert "does not" not in drawings.loss_against_size([low, high], 6e20).body
    small = {n: shelf()[n] for n in ("1.9B", "4.2B", "7.2B")}
    assert "does not" not in drawings.frontier_picture(frontier(A100, 8, 30, small)).body
