"""Chapter 04's drawings: to scale, inside their canvas, the same in words."""

import re
from collections import Counter
from html import unescape

import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import data_parallel_size
from llmtrain_helpers.batch import batch_cost
from llmtrain_helpers.drawings.batch import (
    Layout,
    batch_cost_curve,
    epoch_rows,
    four_gpus,
    gpu_grid,
    stage_time,
    step_by_micro_batch,
)
from llmtrain_helpers.drawings.common import COLORS, Drawing
from llmtrain_helpers.panels.batch import bloom_bars
from llmtrain_helpers.plan.schedule import pipeline_schedule
from tests.faces.contrast import contrast


def test_each_gpu_has_its_replica_and_its_stage() -> None:
    """Tensor first, then the replicas, the stages last: as in 07's drawing."""
    told = re.findall(r">([A-Z]+\d+)</text>", gpu_grid(16, 4, 2).body)
    assert told[:16] == ["A1"] * 4 + ["B1"] * 4 + ["A2"] * 4 + ["B2"] * 4
    titles = re.findall(r"<title>GPU", gpu_grid(16, 4, 2).body)
    assert len(titles) == 16


@given(
    st.integers(1, 16), st.integers(1, 8), st.integers(1, 4), st.integers(1, 5), st.integers(0, 7)
)
def test_every_layout_gives_each_place_its_tensor_group(t, p, c, d, over) -> None:
    over = min(over, t * p * c - 1)
    layout = Layout(t * p * c * d + over, t, p, c)
    places = [layout.place(gpu) for gpu in range(layout.num_gpus)]
    assert layout.replicas == data_parallel_size(t * p * c * d, t, p, c) == d
    assert places.count(None) == layout.left_over == over
    assert set(Counter(filter(None, places)).values()) == {t}
    assert len(set(places) - {None}) == p * c * d
    assert all(place and place[1] == 0 for place in places[: layout.of_a_stage])


def test_gpus_and_replicas_are_numbered_as_in_07() -> None:
    """Its `_place`: tensor, context, replica, stage."""
    layout = Layout(64, 2, 4, 2)
    for gpu in range(64):
        rest, c = divmod(gpu // 2, 2)
        stage, replica = divmod(rest, 4)
        assert layout.place(gpu) == (replica, stage, c)


def test_a_large_grid_says_how_much_of_it_is_shown() -> None:
    grid = gpu_grid(16384, 8, 16)
    assert "6 of 2,048 nodes are drawn, 48 of 16,384 GPUs." in grid.body
    assert "16,384 GPUs = TP 8 × PP 16 × DP 128" in grid.body
    assert grid.body.count("<title>GPU") == 48
    assert "data parallel 128" in grid.words


def test_of_a_large_grid_the_first_second_and_last_stage_are_drawn() -> None:
    drawn = gpu_grid(16384, 8, 16).body
    for name in ("A1", "B1", "A2", "B2", "A16", "B16"):
        assert f">{name}</text>" in drawn
    for left_out in ("nodes 3 to 128", "nodes 131 to 1,920"):
        assert f"⋮  {left_out}, not drawn</text>" in drawn
    assert "not drawn" not in gpu_grid(64, 8).body


def test_a_tensor_group_that_leaves_its_node_is_told() -> None:
    assert "leave the node" in gpu_grid(32, 16).body
    assert "leave their nodes" in gpu_grid(32, 16).words
    assert "leave" not in gpu_grid(32, 8).body
    assert "CP 2" in gpu_grid(64, 8, 4, 2).body
    assert ">c2</text>" in gpu_grid(64, 8, 4, 2).body


def test_gpus_that_are_left_over_are_hatched() -> None:
    grid = gpu_grid(100, 8)
    assert "100 GPUs = TP 8 × PP 1 × DP 12 + 4 left over" in grid.body
    assert grid.body.count(": left over</title>") == 4
    assert ">node 13</text>" in grid.body
    assert "4 GPUs left over" in grid.words
    none = gpu_grid(8, 4, 4)
    assert "DP: no whole replica" in none.body
    assert none.body.count(": left over</title>") == 8
    assert "one takes 16 GPUs" in none.body
    assert not {"A1", "TP: frames"} & {*re.findall(r">(A1|TP: frames)", none.body)}


def test_the_frames_of_replica_a_are_bold() -> None:
    bold = re.findall(r'stroke-width="4"', gpu_grid(16, 4, 2).body)
    assert len(bold) == 2 + 1  # two of its stages, and the key
    assert gpu_grid(16, 1, 1).body.count('stroke-width="4"') == 1 + 1


def test_words_on_shades_can_be_read() -> None:
    cell = re.compile(r'fill="(#\w+)" rx="\d+"><title>GPU[^>]*></rect><text [^>]*fill="(#\w+)"')
    for stages in range(1, 65):
        shown = cell.findall(gpu_grid(stages, 1, stages).body)
        assert len(shown) == min(stages, 48)
        assert shown[0][0] == COLORS["weights"]
        for fill, ink in shown:
            assert contrast(fill, ink) >= 4.5


# --- four GPUs


def test_a_turn_is_as_long_as_its_time_on_one_scale() -> None:
    whole = pipeline_schedule(1, 2, 8, 16)
    halves = pipeline_schedule(2, 4, 4, 8)
    wide = re.compile(r'width="([\d.]+)" height="32" fill="#\w+" rx="2" opacity="0.25">')
    one = [float(x) + 1 for x in wide.findall(four_gpus(whole, 4, 1, 0).body)]
    two = [float(x) + 1 for x in wide.findall(four_gpus(halves, 2, 1, 0).body)]
    assert one[:2] == pytest.approx([8 * 4.3, 16 * 4.3], abs=0.1)
    assert two[:2] == pytest.approx([4 * 4.3, 4 * 4.3], abs=0.1)
    assert len(one) == 4 * 4
    assert len(two) == 4 * 8


def test_what_is_done_is_filled_and_the_rest_pale() -> None:
    schedule = pipeline_schedule(1, 2, 8, 16)
    start, half, end = (four_gpus(schedule, 4, 1, now).body for now in (0, 24, 57))
    solid = re.compile(r'height="32" fill="#\w+" rx="2"></rect>')
    assert [len(solid.findall(body)) for body in (start, half, end)] == [0, 8, 16]
    assert start.count("average of gradients") == 1
    assert "average" not in four_gpus(pipeline_schedule(4, 4), 1, 1, 0).body


def test_the_hill_is_as_high_as_the_micro_batch() -> None:
    def highest(stages: int, passes: int, micro: int) -> float:
        schedule = pipeline_schedule(stages, passes)
        body = four_gpus(schedule, 4 // stages, micro, schedule.end).body
        [points] = re.findall(r'<polygon points="([\d., ]+)"', body)
        heights = [float(point.split(",")[1]) for point in points.split()]
        return max(heights) - min(heights)

    assert highest(1, 4, 1) == highest(2, 8, 1) == highest(4, 16, 1) == 22
    assert highest(1, 1, 4) == highest(4, 4, 4) == 88


# --- an epoch, a measured step, what a batch costs, a stage's time


def test_an_epochs_rows_have_a_box_for_a_pass_and_a_dot_for_a_sample() -> None:
    drawn = epoch_rows(5, 2, 100, 1000)
    assert drawn.body.count("<circle") == 30
    assert drawn.body.count("<title>pass 2</title>") == 3
    assert "100 updates and 200 passes" in drawn.words


def test_bars_are_seconds_and_only_those_that_were_chosen_are_drawn() -> None:
    bars = bloom_bars()
    for chosen, count in ((1, 1), (4, 3), (8, 4)):
        body = step_by_micro_batch(bars, chosen).body
        assert body.count("<title>work: 106 s</title>") == count
        assert body.count("<title>measured</title>") == count
    heights = re.findall(r'height="([\d.]+)" fill="#007050"', step_by_micro_batch(bars, 8).body)
    assert float(heights[0]) == pytest.approx(bars[0][1] * 200 / 160, abs=0.06)


def test_the_dot_is_on_the_curve() -> None:
    cost = batch_cost(2e6, 1e6)
    body = batch_cost_curve(cost, 2e6, 1e6, cost).body
    assert 'cx="88.4" cy="234.0" r="8" fill="#B34700"' in body  # log₂ 1.5 and log₂ 3 of six
    middle = batch_cost(1e6, 1e6)
    assert 'cx="105.7" cy="258.3"' in batch_cost_curve(middle, 1e6, 1e6, cost).body


def test_a_stages_bar_is_its_work_and_its_waiting() -> None:
    drawn = stage_time(16, 16, 15 / 31)
    wide = [float(x) for x in re.findall(r'width="([\d.]+)" height="36"', drawn.body)]
    assert wide == pytest.approx([640 * 16 / 31, 640 * 15 / 31], abs=0.1)
    assert "waits 48.4 %: 15 turns of 31" in drawn.body
    assert "one stage waits for no other" in stage_time(1, 8, 0).body


def drawings() -> list[Drawing]:
    cost = batch_cost(5e5, 7.7e6)
    shown = [gpu_grid(n, t, p) for n in (8, 24, 100, 4096) for t in (1, 4, 16) for p in (1, 3, 12)]
    shown += [epoch_rows(10, 4, 25, 1000), epoch_rows(1, 1, 1000, 1000)]
    shown += [step_by_micro_batch(bloom_bars(), 8), stage_time(64, 1, 63 / 64)]
    shown += [batch_cost_curve(cost, 5e5, 7.7e6, batch_cost(3.2e7, 5.4e5))]
    for stages, passes, forward in ((1, 4, 8), (2, 8, 4), (4, 16, 2)):
        schedule = pipeline_schedule(stages, passes, forward, 2 * forward)
        shown.append(four_gpus(schedule, 4 // stages, 1, 50, before=105))
    return shown


def test_nothing_leaves_the_canvas() -> None:
    for drawing in drawings():
        for place in re.findall(
            r'<rect x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"', drawing.body
        ):
            x, y, wide, high = map(float, place)
            assert 0 <= x <= x + wide <= drawing.width
            assert 0 <= y <= y + high <= drawing.height
        sizes = re.findall(r'font-size="([\d.]+)"', drawing.body)
        assert min(map(float, sizes)) >= 14
        assert drawing.words in unescape(drawing.saved())
