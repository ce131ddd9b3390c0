"""Chapter 00's drawings: to scale, inside their canvas, the same in words."""

import re
from typing import Any

import pytest

from llmtrain_helpers import units
from llmtrain_helpers.drawings import start_here as drawings
from llmtrain_helpers.drawings.common import COLORS, Drawing
from llmtrain_helpers.duration import flops_on_the_way
from llmtrain_helpers.exercises import EXERCISES


def test_an_estimate_is_told_in_two_digits() -> None:
    numbers = (47.34e9, 1.249e12, 999e6, 999.9e6, 860, 12_400)
    told = ["47 billion", "1.2 trillion", "1.0 billion", "1.0 billion", "860", "12 thousand"]
    assert [units.count(number, 2) for number in numbers] == told


MARKS = [("GPT-3", 300e9), ("Llama 3.1 405B", 15.6e12)]
WANTED = [("GPT-3 read", 300e9), ("20 for each parameter:", 160e9)]


def drawn(num_gpus: int = 8, days: float = 30, tokens: float = 47e9, **more: Any) -> Drawing:
    """The machine of eight A100 that train 8 billion parameters."""
    more = {"wanted": WANTED, **more}
    return drawings.machine(num_gpus, days, 8e9, 109.2e12, 48e9, tokens, MARKS, **more)


def test_the_machine_shows_its_sum() -> None:
    for value in ("2.26 × 10²¹", "48 billion", "6 × 8B"):
        assert value in drawn().body
        assert value in drawn().words
    assert "47 billion tokens" in drawn().words


@pytest.mark.parametrize("layout", [drawings.WIDE, drawings.NARROW])
@pytest.mark.parametrize(("n", "shown"), [(1, 1), (32, 32), (33, 17), (16384, 32)])
def test_a_square_stands_for_one_gpu_or_for_as_many_as_it_says(
    n: int, shown: int, layout: drawings.Layout
) -> None:
    body = drawn(n, 1, layout=layout).body
    assert body.count('width="12" height="12"') == shown + 1  # one for the day
    each = re.search(r"a square: (\d+)", body)
    assert shown == -(-n // int(each[1] if each else 1))


@pytest.mark.parametrize("layout", [drawings.WIDE, drawings.NARROW])
def test_twice_the_tokens_are_twice_the_field(layout: drawings.Layout) -> None:
    def blocks(tokens: float) -> float:
        body = drawn(tokens=tokens, before=10e9, layout=layout).body
        fill = COLORS["useful"]
        found = re.findall(rf'width="([\d.]+)" height="([\d.]+)" fill="{fill}"', body)
        areas = [float(wide) * float(high) for wide, high in found]
        return sum(areas[:-1]) / layout.block / 16  # without the scale's bar

    wanted = [0.5, 1, 5, 7.5, 15, 200]
    assert [blocks(5e9 * n) for n in wanted] == pytest.approx(wanted)
    assert blocks(1e14) == pytest.approx(200)  # no more than have room, and it says so
    assert "the field, 100 times" in drawn(tokens=1e14, layout=layout).body


def test_a_mark_stands_in_the_field_where_as_many_tokens_end() -> None:
    body = drawn(wanted=[("GPT-3 read", 300e9), ("enough", 2e12)]).body
    assert f'<line x1="{drawings.LEFT + 60 / 5 * 16:g}" y1="190"' in body
    assert body.count('stroke-width="2.5"') == 1
    assert "enough 2.0 trillion; further right" in body


@pytest.mark.parametrize("layout", [drawings.WIDE, drawings.NARROW])
@pytest.mark.parametrize("tokens", [1.0, 1e6, 1e9, 1e14, 1e20])
def test_the_bar_ends_on_the_scale(tokens: float, layout: drawings.Layout) -> None:
    drawing = drawn(tokens=tokens, before=1e10, layout=layout)
    for x in re.findall(r' (?:x|x1|x2)="(-?[\d.]+)"', drawing.body):
        assert 0 <= float(x) <= drawing.width
    assert not re.search(r'width="-', drawing.body)
    further = f'<polyline points="{drawing.width - 9}'
    assert (further in drawing.body) == (tokens > 10**drawings.LAST)


@pytest.mark.parametrize("step", range(2 * drawings.LAYERS + 1))
def test_what_a_token_has_cost_is_filled_to_scale(step: int) -> None:
    done = float(flops_on_the_way(8e9, step, drawings.LAYERS))
    drawing = drawings.one_token(step, 8e9, done, 48e9)
    up, down = min(step, 4), max(step - 4, 0)
    for color, filled in (("weights", up), ("gradients", 2 * down)):
        boxes = rf'width="116" height="38" fill="{COLORS[color]}"'
        assert len(re.findall(boxes, drawing.body)) == filled
    bars = re.findall(r'y="322" width="([\d.]+)" height="32" fill="#', drawing.body)
    assert sum(map(float, bars)) == pytest.approx(354 * done / 48e9, abs=0.2)
    assert ("its error" in drawing.body) == (down > 0)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_tank_is_as_full_as_the_count(share: float) -> None:
    drawing = drawings.count_and_rate(64, 30, 7e15, share * 3e23, 3e23, 4e7)
    fill = COLORS["useful"]
    [height] = re.findall(rf'width="330" height="([\d.]+)" fill="{fill}"', drawing.body)
    assert float(height) == pytest.approx(180 * share)


def test_real_runs_lie_on_a_scale_of_doublings() -> None:
    ratios = [("a", 0.5), ("b", 1.0), ("c", 2.0), ("d", 100.0)]
    drawing = drawings.real_runs(ratios, 1e14)
    bars = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawing.body)
    ends = [float(x) + (float(w) if i else 0) for i, (x, w) in enumerate(bars)]
    middle = drawings.MIDDLE
    assert ends[2] - middle == pytest.approx(middle - ends[0], abs=0.2)
    assert ends[3] == pytest.approx(middle + 2 * (ends[2] - middle), abs=0.2)
    assert "a 0.50 times; b 1.0 times; c 2.0 times; d 100 times" in drawing.words


def test_the_map_has_every_chapter_and_says_what_is_done() -> None:
    plain = drawings.course_map({})
    assert [row[0] for row in drawings.STOPS] == sorted({id[:2] for id in EXERCISES})
    assert all(title in plain.words for _, title, *_ in drawings.STOPS)
    assert "done)" not in plain.words
    told = drawings.course_map({"03": (2, 5), "05": (6, 6)})
    assert "(2 of 5 done)" in told.words
    assert told.body.count(f'fill="{COLORS["useful"]}"') == 1
    assert "12 Fine-tuning (it stands beside the course and needs 06 and 08 only)" in plain.words
    assert plain.body.count("stroke-dasharray") == 1
