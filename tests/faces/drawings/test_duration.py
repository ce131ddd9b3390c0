"""Chapter 03's pictures: runs that stand still, and bars as long as their days."""

import pytest
from hypothesis import given, settings, strategies as st

from llmtrain_course.duration.handles import published_runs
from llmtrain_course.duration.pictures import (
    BLUE,
    Count,
    RunDays,
    days_against_gpus,
    eight_or_six,
    more_gpus,
    off,
    promise,
)
from tests.faces.svg import Box, Picture, drawn

WORK, RATE = Count("6TP", "387 ZFLOP", repeats=False), Count("HFU", "57.6 PFLOP/s", repeats=True)


# --- days against GPUs


def curve(n: int, days: float, **more) -> Picture:
    return drawn(days_against_gpus(RunDays("your run", n, days), published_runs(), **more))


def dots(picture: Picture) -> list[Box]:
    """The dots of published runs."""
    names = {run.name for run in published_runs()}
    return [x for x in picture.of_kind("circle") if x.words.split(":")[0] in names]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 10**6), st.floats(1e-3, 1e6))
def test_published_runs_stand_still_and_nothing_leaves_the_plane(n: int, days: float) -> None:
    picture = curve(n, days, band=(days / 2, days * 2))
    assert dots(picture) == dots(curve(8, 32, band=(9, 99)))
    axis = max(picture.of_kind("line"), key=lambda box: box.width)
    edge = max(picture.of_kind("line"), key=lambda box: box.height)
    for box in (*picture.of_kind("polygon"), *picture.of_kind("polyline")):
        assert axis.left - 0.1 <= box.left <= box.right <= axis.right + 0.1
        assert edge.top - 0.1 <= box.top <= box.bottom <= edge.bottom + 0.1


@pytest.mark.parametrize("work", [70 * 1024, 3.35 * 1024, 7.5 * 1024])
@pytest.mark.parametrize("n", [2**k for k in range(5, 15)])
def test_no_name_stands_on_another_or_on_a_dot_or_is_crossed_by_the_line(n, work) -> None:
    """As in all settings of the handle, on a page."""
    you = RunDays("your run", n, work / n)
    began = RunDays("your run", 1024, work / 1024)
    picture = curve(*you[1:], previous=began)
    [line] = picture.of_kind("polyline")
    (left, top), (right, bottom) = line.outlines[0][0], line.outlines[0][-1]
    names = {run.name: picture.text(run.name) for run in published_runs()}
    for name in names.values():
        others = [*picture.of_kind("circle"), *(x for x in picture.of_kind("text") if x != name)]
        assert not any(name.overlaps(x, 1) for x in others), name
        ends = (top + (x - left) / (right - left) * (bottom - top) for x in (name.left, name.right))
        high, low = sorted(ends)
        assert name.bottom < high or name.top > low, name


def test_the_band_is_between_two_lines_of_equal_gpu_hours() -> None:
    picture = curve(100, 30, band=(10, 300))
    [band], [line] = picture.of_kind("polygon"), picture.of_kind("polyline")
    (x1, y1), (x2, y2) = line.outlines[0][0], line.outlines[0][-1]
    [dot] = picture.titled("your run", "circle")
    day, year = picture.text("1 day").down, picture.text("1 year").down
    decade = (day - year) / 2.5626  # 365.25 is 10 to that power
    slope = (y2 - y1) / (x2 - x1)
    edges = {
        round((y - dot.down - slope * (x - dot.across)) / decade, 2) for x, y in band.outlines[0]
    }
    assert {0.48, -1.0} <= edges  # a third of the days, and ten times as many


# --- the others


@pytest.mark.parametrize("days", [75, 100, 120])
def test_a_count_that_is_left_out_is_dashed_and_days_are_to_one_scale(days: float) -> None:
    picture = drawn(eight_or_six(WORK, RATE, days, 100, 120))
    forward = picture.titled("forward")[0]
    for title, times in (("backward", 2), ("again", 1), ("not counted", 1)):
        assert picture.titled(title)[0].width == pytest.approx(times * forward.width, abs=0.3)
    assert picture.titled("not counted")[0].dashed
    by_count, took = picture.width_of("days by this count"), picture.width_of("days that it took")
    assert by_count / took == pytest.approx(days / 120, abs=0.002)
    words = eight_or_six(WORK, RATE, 75, 100, 118).words
    assert "75.0 days, 25 % too short. On the calendar it took 118 days" in words
    agree = eight_or_six(RATE, RATE, 100, 100, 118)
    assert "the counts agree" in agree.words
    assert not drawn(agree).dashed
    assert off(1.5) == "50 % too long"


def test_a_run_that_was_slower_than_promised_shows_no_share() -> None:
    shares, doubtful = {"one": 0.48, "other": 0.3}, {"third": 0.14}
    picture = drawn(promise(shares, 0.35, doubtful, 0.25))
    texts = picture.texts
    assert texts.count("late") == 1
    assert {"third*", "48.0 %", "14.0 %"} < {*texts}
    assert "30.0 %" not in texts
    lines = [box for box in picture.of_kind("line") if box.stroke == BLUE]
    for line, share in ((lines[0], 0.35), (picture.dashed[0], 0.25)):
        ten = picture.between("10 %", "20 %", "across")
        assert line.across - picture.text("10 %").across == pytest.approx(
            ten * (share - 0.1) * 10, abs=0.1
        )
    picture = drawn(promise(shares, 0.1, doubtful))
    for name in {**shares, **doubtful}:
        [dot] = picture.titled(name, "circle")
        assert (dot.fill == "none") == (name in doubtful)


def test_twice_the_gpus_take_half_the_days_only_where_weights_are_shared() -> None:
    picture = drawn(more_gpus())
    ideal = [box for box in picture.of_kind("polyline") if box.dashed]
    for way, line in zip(("fetched", "shared"), ideal, strict=True):
        first, *_, last = picture.titled(way, "circle")
        assert (first.across, first.down) == pytest.approx(line.outlines[0][0], abs=0.1)
        late = line.outlines[0][-1][1] - last.down
        halving = picture.text("20").down - picture.text("40").down
        assert late > halving if way == "fetched" else 0 < late < halving / 5
    for words in ("74 days on 1,536 GPUs at 14 % of the peak", "weights shared (PTD-P): 84 days"):
        assert words in more_gpus().words
