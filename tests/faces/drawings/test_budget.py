"""Chapter 10's pictures: dots where their axes say, and curves as far as they're known."""

from math import log2

import pytest

from llmtrain_course.budget import pictures as drawings
from llmtrain_helpers import LAWS, frontier, over_training, published, shelf
from llmtrain_helpers.budget import Outcome
from tests.faces.svg import drawn

A100 = published.accelerator("A100 80GB SXM")


def test_the_curve_is_dotted_beyond_the_runs_of_its_law() -> None:
    """All solid inside, all dotted for a budget no run had."""
    dots = [Outcome(x, size, 1e9, 3.0, True) for x, size in (("a", 5e7), ("b", 5e11))]

    def dotted(flops: float) -> set[bool]:
        lines = drawn(drawings.loss_against_size(dots, flops, "besiroglu")).of_kind("polyline")
        return {line.dashed for line in lines if line.thick >= 3}

    assert (dotted(1e21), dotted(1e26)) == ({True, False}, {True})


def test_the_grey_ends_where_never_begins() -> None:
    law = LAWS["besiroglu"]
    least = (1 + law.alpha / law.beta) ** (-1 / law.alpha)
    assert least == pytest.approx(0.1464, abs=5e-5)
    assert over_training(0.2) == pytest.approx(14, abs=0.1)
    with pytest.raises(ValueError, match="never"):
        over_training(1 / 7)
    picture = drawn(drawings.price_of_size(0.1))
    [grey] = picture.filled(drawings.GREY)
    [best] = picture.titled("the best", "circle")
    doubling = picture.between("1/16", "1/8", "across")
    assert grey.right == pytest.approx(best.across + log2(least) * doubling, abs=0.3)
    assert "over 8" in picture.texts


@pytest.mark.parametrize("share", [0.25, 0.5, 2, 4])
def test_a_price_is_on_its_curve_and_drawn_only_as_far_as_it_was_asked(share: float) -> None:
    assert not drawn(drawings.price_of_size()).of_kind("polyline")
    picture = drawn(drawings.price_of_size(share))
    best, dot = picture.of_kind("circle")
    [curve] = picture.of_kind("polyline")
    corner = min(curve.outlines[0], key=lambda point: abs(point[0] - dot.across))
    assert corner == pytest.approx((dot.across, dot.down), abs=2)
    assert curve.width <= 2 * abs(dot.across - best.across) + 4


def test_the_key_names_crosses_only_where_one_stands() -> None:
    def crosses(drawing) -> bool:
        return any("does not" in text for text in drawn(drawing).texts)

    assert crosses(drawings.frontier_picture(frontier(A100, 8, 30, shelf())))
    high = Outcome("high", 1e11, 1e9, 9.0, False)
    low = Outcome("low", 1e9, 1e11, 2.2, True)
    assert not crosses(drawings.loss_against_size([low, high], 6e20))
    small = {n: shelf()[n] for n in ("1.9B", "4.2B", "7.2B")}
    assert not crosses(drawings.frontier_picture(frontier(A100, 8, 30, small)))
