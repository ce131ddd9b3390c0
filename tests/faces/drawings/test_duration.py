"""Chapter 03's drawings: to scale, inside their canvas, the same in words."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers.drawings.common import COLORS, GREY
from llmtrain_helpers.drawings.duration import (
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
from llmtrain_helpers.panels.duration import published_marks

YOU = Mark("your run", 8, 32)
SHARES, DOUBTFUL = {"one": 0.48, "other": 0.3}, {"third": 0.14}
WORK, RATE = Count("6TP", "387 ZFLOP", again=False), Count("HFU", "57.6 PFLOP/s", again=True)
ZERO = [Mark("zero", 384, 90), Mark("zero", 768, 74), Mark("zero", 1536, 74)]
LINES = [
    Line("tokens", "T = 300e9", "300 billion", 300e9, 1e10, True, (300e9, "the text")),
    Line("days", "days", "2,030 days", 2030, 1, False),
]

DRAWINGS = {
    "curve": days_against_gpus(YOU, published_marks(), (23, 45)),
    "line": days_against_gpus(YOU, published_marks()),
    "moved": days_against_gpus(Mark("your run", 16, 16), [], (12, 23), YOU),
    "counts": eight_or_six(WORK, RATE, 75, 100, 118),
    "promise": promise(SHARES, 0.35, DOUBTFUL, 0.25),
    "more": more_gpus(ZERO, 2, [90, 45, 22.5], 0.14),
    "copied": copied(LINES),
}


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_a_drawing_is_well_formed_and_keeps_to_the_colours(drawing) -> None:
    ElementTree.fromstring(drawing.live())
    fills = set(re.findall(r'fill="(#\w+)"', drawing.body))
    assert fills <= {*COLORS.values(), GREY}
    sizes = [float(x) for x in re.findall(r'font-size="([\d.]+)"', drawing.body)]
    assert min(sizes) >= 14
    assert drawing.width <= 700


# --- days against GPUs


def places(body: str) -> dict[str, tuple[str, str]]:
    """Where the dots and the names of published runs stand."""
    dots = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="5"[^>]*><title>(.*?):', body)
    names = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)<', body)
    known = {name: (x, y) for x, y, name in names if name in PLACES}
    return {f"dot {name}": (x, y) for x, y, name in dots} | known


@given(st.integers(1, 10**6), st.floats(1e-3, 1e6))
def test_published_runs_and_their_names_stand_still(n: int, days: float) -> None:
    drawn = days_against_gpus(Mark("your run", n, days), published_marks(), (days / 2, days * 2))
    assert places(drawn.body) == places(DRAWINGS["line"].body)
    assert len(places(drawn.body)) == 22
    for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn.body.partition("the same GPU")[0]):
        assert GPUS.begin - 0.1 <= float(x) <= GPUS.end + 0.1
        assert DAYS.end - 0.1 <= float(y) <= DAYS.begin + 0.1
    for points in re.findall(r'points="([^"]+)"', drawn.body):
        for x, y in (map(float, point.split(",")) for point in points.split()):
            assert GPUS.begin - 0.1 <= x <= GPUS.end + 0.1
            assert DAYS.end - 0.1 <= y <= DAYS.begin + 0.1


def test_no_name_stands_on_another_or_on_a_dot() -> None:
    drawn = DRAWINGS["line"].body
    boxes = {}
    for x, y, anchor, name in re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)"[^>]*text-anchor="(\w+)"[^>]*>([^<]*)<', drawn
    ):
        if name in PLACES:
            wide = 0.56 * 14 * len(name)
            left = float(x) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
            boxes[name] = (left, float(y) - 11, left + wide, float(y) + 3)
    assert {*boxes} == {run.name for run in published_marks()} == {*PLACES}
    for one, (left, top, right, bottom) in boxes.items():
        assert right <= 700
        for other, (l, t, r, b) in boxes.items():
            assert one == other or r <= left or right <= l or b <= top or bottom <= t, (one, other)
        for run in published_marks():
            x, y = GPUS.at(run.num_gpus), DAYS.at(run.days)
            assert not (left < x + 5 and x - 5 < right and top < y + 5 and y - 5 < bottom), one


def test_the_dot_has_its_days_and_its_gpus_on_the_axes() -> None:
    body = DRAWINGS["line"].body
    assert ">32.0 days<" in body
    assert ">8 GPUs<" in body
    assert body.index('r="10"') < body.index('r="5"')  # others are seen on it


def test_a_ring_is_left_where_something_moved() -> None:
    assert "at the start" not in days_against_gpus(YOU, [], None, YOU).words
    assert "at the start: your run: 32.0 days on 8 GPUs" in DRAWINGS["moved"].words


def test_the_curve_has_the_dot_the_band_and_every_published_run() -> None:
    words = DRAWINGS["curve"].words
    assert "your run: 32.0 days on 8 GPUs, as published runs 23 days to 45 days" in words
    for run in published_marks():
        assert f"{run.name}: " in words
    assert len(published_marks()) == 11


def test_twice_the_gpus_are_as_far_to_the_right_as_half_the_days_are_down() -> None:
    assert GPUS.at(200) - GPUS.at(100) == pytest.approx(GPUS.at(20) - GPUS.at(10))
    assert DAYS.at(50) - DAYS.at(100) == pytest.approx(DAYS.at(5) - DAYS.at(10))


# --- the others


def test_a_count_that_is_left_out_is_dashed_and_the_days_tell_which_way_they_are_off() -> None:
    words, body = DRAWINGS["counts"].words, DRAWINGS["counts"].body
    assert "387 ZFLOP, without what is computed again, over 57.6 PFLOP/s of all GPUs" in words
    assert "75.0 days, 25 % too short. On the calendar it took 118 days, stops included." in words
    assert body.count("<title>again</title>") == 1
    assert body.count("<title>not counted</title>") == 1
    agree = eight_or_six(RATE, RATE, 100, 100, 118)
    assert "the counts agree" in agree.words
    assert agree.body.count("<title>again</title>") == 2
    assert off(1.5) == "50 % too long"


def test_the_mark_is_at_the_days_of_the_calendar_whatever_is_counted() -> None:
    def bar_and_mark(days: float) -> list[float]:
        body = eight_or_six(WORK, RATE, days, 100, 120).body
        [bar] = re.findall(r'x="180" y="202" width="([\d.]+)"', body)
        [mark] = re.findall(r'<line x1="([\d.]+)" y1="194"', body)
        return [180 + float(bar), float(mark)]

    assert bar_and_mark(120) == pytest.approx([540, 540])
    assert bar_and_mark(75) == pytest.approx([405, 540])


def test_a_run_that_was_slower_than_promised_shows_no_share() -> None:
    words, body = DRAWINGS["promise"].words, DRAWINGS["promise"].body
    assert "35 % promised: one 48.0 %, other late, third not counted." in words
    assert body.count(">late<") == 1
    assert ">third*<" in body
    assert "30.0 %" not in body
    all_kept = promise(SHARES, 0.1, DOUBTFUL).body
    dots = [float(x) for x in re.findall(r'cx="([\d.]+)"', all_kept)]
    assert dots == pytest.approx([168 + 850 * x for x in (0.48, 0.3, 0.14)], abs=0.1)
    hollow = re.findall(r'<circle [^>]*fill="none"[^>]*><title>(.*?)<', all_kept)
    assert hollow == ["third"]


@pytest.mark.parametrize(("now", "dots"), [(0, 1), (1, 2), (2, 3)])
def test_more_gpus_are_drawn_one_after_the_other(now: int, dots: int) -> None:
    drawn = more_gpus(ZERO, now, [90, 45, 22.5], 0.14)
    assert drawn.body.count("<circle") == dots
    assert drawn.body.count(f'stroke="{COLORS["lost"]}"') == max(dots - 1, 0)
    assert "each at 14 % of its peak" in drawn.words
    across = [float(x) for x in re.findall(r'cx="([\d.]+)"', drawn.body)]
    down = [float(y) for y in re.findall(r'cy="([\d.]+)"', drawn.body)]
    assert across == pytest.approx([64 + 386 * run.num_gpus / 1650 for run in ZERO[:dots]], abs=0.1)
    assert down == pytest.approx([276 - 2.36 * run.days for run in ZERO[:dots]], abs=0.1)


def test_a_copied_line_stands_on_its_ruler_beside_what_is_known() -> None:
    body = DRAWINGS["copied"].body
    assert "300 billion ✓" in body
    assert ">2,030 days<" in body
    assert "nothing says what it should be" in body
    first, second = re.findall(r'cx="([\d.]+)"', body)
    assert float(first) == pytest.approx(290 + 380 * 0.3693, abs=0.2)  # log10(30) of 4 decades
    assert float(second) == pytest.approx(290 + 380 * 0.8269, abs=0.2)
