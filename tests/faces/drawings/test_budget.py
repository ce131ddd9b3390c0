"""Chapter 11's pictures: dots where their axes say, and curves as far as they're known."""

import pytest

from llmtrain_course.budget import pictures as drawings
from llmtrain_course.budget.formulas import smallest_share
from llmtrain_course.kit.chart import Band, Dot, Path
from llmtrain_helpers import frontier, over_training, published, shelf
from llmtrain_helpers.budget import Outcome
from tests.faces.marks import marks
from tests.faces.svg import drawn

A100 = published.accelerator("A100 80GB SXM")


def test_the_curve_is_dotted_beyond_the_runs_of_its_law() -> None:
    """All solid inside, all dotted for a budget no run had."""
    dots = [Outcome(x, size, 1e9, 3.0, True) for x, size in (("a", 5e7), ("b", 5e11))]

    def dotted(flops: float) -> set[bool]:
        curves = marks(drawings.loss_against_size(dots, flops, "besiroglu"), Path)
        return {bool(curve.dash) for curve in curves}

    assert (dotted(1e21), dotted(1e26)) == ({True, False}, {True})


def test_the_grey_ends_where_never_begins() -> None:
    assert smallest_share("besiroglu") == pytest.approx(0.1464, abs=5e-5)
    assert over_training(0.2) == pytest.approx(14, abs=0.1)
    picture = drawings.price_of_size(0.1)
    [grey] = marks(picture, Band)
    assert (grey.low, grey.high) == (picture.x.low, smallest_share("besiroglu"))
    assert "over 8" in drawn(picture).texts


@pytest.mark.parametrize("share", [0.25, 0.5, 2, 4])
def test_a_price_is_on_its_curve_and_drawn_only_as_far_as_it_was_asked(share: float) -> None:
    [start] = marks(drawings.price_of_size(), Path)
    assert [*start.points] == [(1, 1)]
    best, dot = marks(drawings.price_of_size(share), Dot)
    [curve] = marks(drawings.price_of_size(share), Path)
    assert (best.x, best.y, dot.x, dot.y) == (1, 1, share, float(over_training(share)))
    assert min(abs(x / share - 1) for x, _ in curve.points) < 0.001
    for x, y in curve.points:
        assert min(share, 1 / share) - 1e-9 <= x <= max(share, 1 / share) + 1e-9
        assert y == pytest.approx(float(over_training(x)))


def test_the_key_names_crosses_only_where_one_stands() -> None:
    def crosses(drawing) -> bool:
        return any("does not" in text for text in drawn(drawing).texts)

    assert crosses(drawings.frontier_picture(frontier(A100, 8, 30, shelf())))
    high = Outcome("high", 1e11, 1e9, 9.0, False)
    low = Outcome("low", 1e9, 1e11, 2.2, True)
    assert not crosses(drawings.loss_against_size([low, high], 6e20))
    small = {n: shelf()[n] for n in ("1.9B", "4.2B", "7.2B")}
    assert not crosses(drawings.frontier_picture(frontier(A100, 8, 30, small)))
