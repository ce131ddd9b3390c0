"""Chapter 03's pictures: runs that stand still, and bars as long as their days."""

from math import log

import pytest

from llmtrain_course.duration.formulas import second_of_run
from llmtrain_course.duration.handles import MODELS, _planned, published_runs
from llmtrain_course.duration.pictures import (
    SECOND,
    WAYS,
    Count,
    RunDays,
    days_against_gpus,
    eight_or_six,
    more_gpus,
    off,
    promise,
    second_of_gpu,
)
from llmtrain_course.kit.chart import Area, Dot, Path
from llmtrain_course.kit.lanes import Limit, Point, Span
from llmtrain_helpers import units
from llmtrain_helpers.plan.pace import STOPS
from tests.faces.marks import length, marks
from tests.faces.svg import drawn

WORK, RATE = Count("6TP", "387 ZFLOP", repeats=False), Count("HFU", "57.6 PFLOP/s", repeats=True)


def test_the_line_and_the_band_have_the_gpu_hours_of_the_run_and_its_interval() -> None:
    """Wherever the run is; published ones and the axes stay."""
    for n, days in ((1, 1e-3), (100, 30), (10**6, 1e6)):
        picture = days_against_gpus(
            RunDays("your run", n, days), published_runs(), band=(days / 3, days * 10)
        )
        [band], [line] = marks(picture, Area), marks(picture, Path)
        assert [x * y / (n * days) for x, y in line.points] == pytest.approx([1, 1])
        edges = zip(band.xs, band.lower, band.upper, strict=True)
        for x, *ends in edges:
            assert [x * y / (n * days) for y in ends] == pytest.approx([1 / 3, 10])
        same = days_against_gpus(RunDays("your run", 8, 32), published_runs(), band=(9, 99))
        assert (picture.x, picture.y) == (same.x, same.y)
        own, *others = marks(picture, Dot)
        assert (own.title.partition(":")[0], others) == ("your run", marks(same, Dot)[1:])


@pytest.mark.parametrize("days", [75, 100, 120])
def test_a_count_that_is_left_out_is_dashed_and_days_are_to_one_scale(days: float) -> None:
    picture = eight_or_six(WORK, RATE, days, 100, 120)
    forward, *_ = marks(picture, Span, "forward")
    for title, times in (("backward", 2), ("again", 1), ("not counted", 1)):
        span = marks(picture, Span, title)[0]
        assert span.end - span.start == pytest.approx(times * forward.end)
    assert marks(picture, Span, "not counted")[0].previous
    assert length(picture, "days by this count") / length(picture, "days it really ran") == (
        days / 120
    )
    words = eight_or_six(WORK, RATE, 75, 100, 118).words
    assert "75.0 days, 25% too short. On the calendar, the run lasted 118 days" in words
    agree = eight_or_six(RATE, RATE, 100, 100, 118)
    assert "the counts agree" in agree.words
    assert not drawn(agree).dashed
    assert off(1.5) == "50% too long"


def test_a_run_that_was_slower_than_promised_shows_no_share() -> None:
    shares, doubtful = {"one": 0.48, "other": 0.3}, {"third": 0.14}
    picture = promise(shares, 0.35, doubtful, 0.25)
    texts = drawn(picture).texts
    assert texts.count("late") == 1
    assert {"third*", "48.0%", "14.0%"} < {*texts}
    assert "30.0%" not in texts
    assert {(x.value, bool(x.dash)) for x in marks(picture, Limit)} == {(0.25, True), (0.35, False)}
    dots = marks(promise(shares, 0.1, doubtful), Point)
    shapes = {dot.title: dot.shape for dot in dots}
    assert shapes == {"one": "dot", "other": "dot", "third": "hollow"}


def test_twice_the_gpus_take_half_the_days_only_where_weights_are_shared() -> None:
    picture = more_gpus(1536, [*WAYS])
    ideal = [line for line in marks(picture, Path) if line.dash]
    for way, line in zip(("fetched", "shared"), ideal, strict=True):
        first, *_, last = marks(picture, Dot, way)
        assert (first.x, first.y) == line.points[0]
        x, y = line.points[-1]
        assert (x, x * y) == (last.x, first.x * first.y)
        late = log(last.y / y, 2)  # in halvings
        assert late > 1 if way == "fetched" else 0 < late < 1 / 5
    for words in ("74 days on 1,536 GPUs at 14% of the peak", "weights shared (PTD-P): 84 days"):
        assert words in picture.words


def test_the_days_on_more_gpus_come_with_them_on_one_plane() -> None:
    """Nobody reads the last days before they've guessed them."""
    first, last = more_gpus(768, ["fetched"]), more_gpus(1536, [*WAYS])
    assert (first.x, first.y, first.height) == (last.x, last.y, last.height)
    assert "1,536 GPUs" not in first.words
    drawn = [mark for mark in marks(first, Dot) if not mark.hidden]
    assert [(dot.x, dot.y, dot.moves) for dot in drawn] == [(384, 90, ""), (768, 74, "num_gpus")]
    assert more_gpus(1000, ["fetched"]) == first


@pytest.mark.parametrize("size", MODELS)
def test_a_second_has_all_its_parts_and_the_work_is_the_runs_utilization(size) -> None:
    parts, plan = second_of_run(_planned(size)), _planned(size)
    assert sum(parts.values()) == pytest.approx(1)
    assert min(parts.values()) >= 0
    rate = 6 * plan.parameters.active * plan.run.tokens / (plan.days.likely * units.DAY)
    assert parts["work"] == pytest.approx(rate / (64 * 989.5e12))
    assert 1 - parts["overhead"] == pytest.approx(1 / STOPS[1])
    picture = drawn(second_of_gpu(parts, size))
    whole = sum(picture.width_of(name) for name, _ in SECOND.values())
    for name, share in parts.items():
        title = SECOND[name][0]
        assert picture.width_of(title) == pytest.approx(share * whole, abs=1.5)
        assert f"{1000 * share:.0f} ms" in picture.texts
