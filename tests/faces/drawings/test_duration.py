"""Chapter 03's pictures: dots where their axes say, and bars as long as their days."""

import pytest
from hypothesis import given, strategies as st

from llmtrain_course.duration.handles import published_marks
from llmtrain_course.duration.pictures import (
    DAYS,
    GPUS,
    PLACES,
    Count,
    Line,
    Mark,
    copied,
    days_against_gpus,
    eight_or_six,
    more_gpus,
    off,
    promise,
)
from llmtrain_course.kit.drawing import COLORS
from tests.faces.svg import Box, Picture, drawn

YOU = Mark("your run", 8, 32)
WORK, RATE = Count("6TP", "387 ZFLOP", repeats=False), Count("HFU", "57.6 PFLOP/s", repeats=True)
ZERO = [Mark("zero", 384, 90), Mark("zero", 768, 74), Mark("zero", 1536, 74)]


# --- days against GPUs


def curve(n: int, days: float, **more) -> Picture:
    return drawn(days_against_gpus(Mark("your run", n, days), published_marks(), **more))


def published_runs(picture: Picture) -> list[Box]:
    """The dots and the names of published runs."""
    names = {run.name for run in published_marks()}
    return [x for x in picture.boxes if x.words.split(":")[0] in names]


@given(st.integers(1, 10**6), st.floats(1e-3, 1e6))
def test_published_runs_and_their_names_stand_still(n: int, days: float) -> None:
    picture = curve(n, days, band=(days / 2, days * 2))
    assert published_runs(picture) == published_runs(curve(8, 32))
    inside = [x for x in picture.boxes if x.kind in ("polygon", "polyline")]
    for x, y in (point for box in inside for outline in box.outlines for point in outline):
        assert GPUS.begin - 0.1 <= x <= GPUS.end + 0.1
        assert DAYS.end - 0.1 <= y <= DAYS.begin + 0.1


def test_no_name_stands_on_another_or_on_a_dot() -> None:
    runs = published_runs(curve(8, 32))
    assert {x.words for x in runs if x.kind == "text"} == {*PLACES}
    assert len(runs) == 2 * len(published_marks())
    for name in (x for x in runs if x.kind == "text"):
        assert not any(name.overlaps(x) for x in runs if x is not name)


def test_a_line_goes_under_the_names_and_a_number_under_a_flag_is_left_out() -> None:
    picture = curve(16384, 32)
    [dot] = picture.titled("your run", "circle")
    order = [x for x in picture.boxes if x.thick == 3 or x is dot or x in published_runs(picture)]
    kinds = ["you" if x is dot else x.kind for x in order]
    assert kinds.index("text") < kinds.index("you") < kinds.index("circle")
    assert kinds[0] not in ("you", "text", "circle")  # the line itself is below all
    assert {"100", "1 year", "32.0 days", "16,384 GPUs"} < {*picture.texts}
    assert not {"10,000", "1 month"} & {*picture.texts}


def test_twice_the_gpus_are_as_far_to_the_right_as_half_the_days_are_down() -> None:
    assert GPUS.at(200) - GPUS.at(100) == pytest.approx(GPUS.at(20) - GPUS.at(10))
    assert DAYS.at(50) - DAYS.at(100) == pytest.approx(DAYS.at(5) - DAYS.at(10))


# --- the others


@pytest.mark.parametrize("days", [75, 100, 120])
def test_a_count_that_is_left_out_is_dashed_and_the_mark_is_at_the_days_it_took(days) -> None:
    picture = drawn(eight_or_six(WORK, RATE, days, 100, 120))
    forward = picture.titled("forward")[0]
    for title, times in (("backward", 2), ("again", 1), ("not counted", 1)):
        assert picture.titled(title)[0].width == pytest.approx(times * forward.width, abs=3)
    assert picture.titled("not counted")[0].dashed
    bar = picture.titled("days by this count")[0]
    lines = [x for x in picture.of_kind("line") if x.top < bar.top and x.bottom > bar.bottom]
    assert bar.width / (lines[0].left - bar.left) == pytest.approx(days / 120, abs=0.002)
    words = eight_or_six(WORK, RATE, 75, 100, 118).words
    assert "75.0 days, 25 % too short. On the calendar it took 118 days" in words
    agree = eight_or_six(RATE, RATE, 100, 100, 118)
    assert "the counts agree" in agree.words
    assert not drawn(agree).dashed
    assert off(1.5) == "50 % too long"


def test_a_run_that_was_slower_than_promised_shows_no_share() -> None:
    shares, doubtful = {"one": 0.48, "other": 0.3}, {"third": 0.14}
    texts = drawn(promise(shares, 0.35, doubtful, 0.25)).texts
    assert texts.count("late") == 1
    assert {"third*", "48.0 %"} < {*texts}
    assert "30.0 %" not in texts
    picture = drawn(promise(shares, 0.1, doubtful))
    for name in {**shares, **doubtful}:
        [dot] = picture.titled(name, "circle")
        assert (dot.fill == "none") == (name in doubtful)


@pytest.mark.parametrize("now", [0, 1, 2])
def test_more_gpus_are_drawn_one_after_the_other(now: int) -> None:
    picture = drawn(more_gpus(ZERO, now, [90, 45, 22.5], 0.14))
    dots = picture.titled("zero", "circle")
    assert len(dots) == now + 1
    assert any(x.stroke == COLORS["lost"] for x in picture.boxes) == (now > 0)
    share = picture.width_of("computing") / picture.width_of("its peak")
    assert share == pytest.approx(0.14, abs=0.002)


def test_a_copied_line_stands_on_its_ruler_beside_what_is_known() -> None:
    tokens = Line("tokens", "T = 300e9", "300 billion", 300e9, 1e10, True, (300e9, "the text"))
    days = Line("days", "days", "2,030 days", 2030, 1, False)
    picture = drawn(copied([tokens, days]))
    assert {"300 billion ✓", "2,030 days", "nothing says what it should be"} < {*picture.texts}
    assert any("attention's scores" in x for x in drawn(copied([days._replace(right=True)])).texts)
