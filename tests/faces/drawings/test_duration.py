"""Chapter 03's drawings: to scale, inside their canvas, the same in words."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers.drawings.common import COLORS, GREY
from llmtrain_helpers.drawings.duration import (
    Mark,
    around,
    before_and_after,
    days_against_gpus,
    eight_or_six,
    shares_of_runs,
    work_to_days,
)
from llmtrain_helpers.duration import UTILIZATIONS
from llmtrain_helpers.evidence import published

RUN = {"tokens": 300e9, "parameters": 175e9, "num_gpus": 1024, "flops_per_gpu": 140e12}

MARKS = [
    Mark(name, published.run(name)["num_gpus"], hours / published.run(name)["num_gpus"] / 24)
    for name, hours in published.reported_gpu_hours().items()
    if "num_gpus" in published.run(name)
]
"""Published runs, as dots."""

DRAWN_DAYS = {
    ("full", "full"): 33.9,
    ("none", "none"): 33.9,
    ("full", "none"): 45.2,
    ("none", "full"): 25.425,
}

DRAWINGS = {
    "machine": work_to_days(**RUN, recompute="full"),
    "without": work_to_days(**RUN, recompute="none"),
    "counts": eight_or_six(DRAWN_DAYS),
    "ratios": before_and_after([0.970, 0.986], [0.993, 1.012]),
    "shares": shares_of_runs({"one": 0.3, "other": 0.45}, UTILIZATIONS),
    "curve": days_against_gpus(Mark("your run", 8, 32), (23, 45), MARKS),
    "moved": days_against_gpus(Mark("your run", 16, 16), (12, 23), [], Mark("your run", 8, 32)),
}


@pytest.mark.parametrize(
    ("num_gpus", "square"), [(1, "1 GPU"), (32, "1 GPU"), (33, "2 GPUs"), (1024, "32 GPUs")]
)
def test_a_square_stands_for_so_many_gpus(num_gpus: int, square: str) -> None:
    run = RUN | {"num_gpus": num_gpus}
    body = work_to_days(**run, recompute="none").body
    assert f"■ = {square}<" in body
    assert body.count('rx="3"') <= 32


@pytest.mark.parametrize(
    ("tokens", "square"), [(1e9, "an hour"), (300e9, "a day"), (3e12, "a week")]
)
def test_a_square_stands_for_so_much_time(tokens: float, square: str) -> None:
    run = RUN | {"tokens": tokens}
    assert f"■ = {square}<" in work_to_days(**run, recompute="full").body


def test_where_nothing_moved_there_is_no_ring() -> None:
    you = Mark("your run", 8, 32)
    assert "at the start" not in days_against_gpus(you, (23, 45), [], you).words
    assert "at the start: your run: 32.0 days on 8 GPUs" in DRAWINGS["moved"].words


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_a_drawing_is_well_formed_and_keeps_to_the_colours(drawing) -> None:
    ElementTree.fromstring(drawing.live())
    fills = set(re.findall(r'fill="(#\w+)"', drawing.body))
    assert fills <= {*COLORS.values(), GREY}
    sizes = [float(x) for x in re.findall(r'font-size="([\d.]+)"', drawing.body)]
    assert min(sizes) >= 13
    assert drawing.width <= 860


def test_the_machine_tells_work_rate_and_time() -> None:
    full, none = DRAWINGS["machine"], DRAWINGS["without"]
    for part in ("8 × 300 billion × 175 billion", "420 ZFLOP", "143 PFLOP/s"):
        assert part in full.words
    assert "33.9 days" in full.words
    assert "6 × 300 billion" in none.words
    assert "25.4 days" in none.words
    assert COLORS["recomputed"] in full.body
    assert COLORS["recomputed"] not in none.body


def test_the_counts_that_agree_are_framed_and_the_others_told() -> None:
    words = DRAWINGS["counts"].words
    assert "8TP over MFU: 45.2 days, 33 % too long" in words
    assert "6TP over HFU: 25.4 days, 25 % too short" in words
    assert DRAWINGS["counts"].body.count("✓") == 2


def test_ratios_by_8tp_and_with_attention_are_told_apart() -> None:
    words = DRAWINGS["ratios"].words
    assert "by 8TP / (nX), 1.4 to 3.0 % short" in words
    assert "attention counted too, 0.70 % short to 1.2 % over" in words
    assert DRAWINGS["ratios"].body.count("<circle") == 4


def test_shares_of_runs_tells_each_run_and_the_interval() -> None:
    assert "from 25 % to 48 %, likely 35 %: one 30 %, other 45 %" in (DRAWINGS["shares"].words)


@given(st.integers(1, 10**6), st.floats(1e-3, 1e6))
def test_the_axes_have_room_for_any_run(n: int, days: float) -> None:
    plane = around([Mark("your run", n, days), *MARKS])
    assert plane.left <= plane.x(n) <= plane.right + 1e-6
    assert plane.top - 1e-6 <= plane.y(days) <= plane.bottom + 1e-6
    drawn = days_against_gpus(Mark("", n, days), (days / 2, days * 2), [])
    points = re.findall(r'points="([^"]+)"', drawn.body)[0].split()
    for point in points:
        x, y = map(float, point.split(","))
        assert plane.left - 0.1 <= x <= plane.right + 0.1
        assert plane.top - 0.1 <= y <= plane.bottom + 0.1


def test_published_dots_are_seen_on_the_own_one() -> None:
    body = DRAWINGS["curve"].body
    assert body.index('r="9"') < body.index('r="5"')
