"""Chapter 04's drawings: to scale, inside their canvas, the same in words."""

import re
from collections import Counter
from html import unescape

import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import StepTime, data_parallel_size, fit_step_time
from llmtrain_helpers.drawings.batch import Layout, Step, gpu_grid, pass_times, step_in_time
from llmtrain_helpers.drawings.common import COLORS
from llmtrain_helpers.evidence import published
from llmtrain_helpers.plan.schedule import idle_share
from tests.faces.contrast import contrast


def test_each_gpu_has_its_replica_and_its_stage() -> None:
    told = re.findall(r">([A-Z]+\d+)</text>", gpu_grid(16, 4, 2).body)
    assert told[:16] == ["A1"] * 4 + ["A2"] * 4 + ["B1"] * 4 + ["B2"] * 4
    titles = re.findall(r"<title>GPU", gpu_grid(16, 4, 2).body)
    assert len(titles) == 16


@given(st.integers(1, 16), st.integers(1, 8), st.integers(1, 4), st.integers(1, 5))
def test_every_layout_gives_each_place_its_tensor_group(t, p, c, d) -> None:
    layout = Layout(t * p * c * d, t, p, c)
    places = [layout.place(gpu) for gpu in range(layout.num_gpus)]
    assert layout.replicas == data_parallel_size(layout.num_gpus, t, p, c) == d
    assert set(Counter(places).values()) == {t}
    assert len(set(places)) == p * c * d
    assert {replica for replica, *_ in places[: layout.a_replica]} == {0}


def test_a_large_grid_says_how_much_of_it_is_shown() -> None:
    grid = gpu_grid(16384, 8, 16)
    assert "6 of 2,048 nodes are shown, 48 of 16,384 GPUs." in grid.body
    assert "16,384 GPUs = TP 8 × PP 16 × DP 128" in grid.body
    assert grid.body.count("<title>GPU") == 48
    assert "data parallel 128" in grid.words
    assert "All 16 GPUs are shown" in gpu_grid(16, 4, 2).body


def test_a_tensor_group_that_leaves_its_node_is_told() -> None:
    assert "leave the node" in gpu_grid(32, 16).body
    assert "leave their nodes" in gpu_grid(32, 16).words
    assert "leave" not in gpu_grid(32, 8).body
    assert "CP 2" in gpu_grid(64, 8, 4, 2).body
    assert ">c2</text>" in gpu_grid(64, 8, 4, 2).body


def test_of_large_replicas_the_ends_of_several_are_drawn() -> None:
    drawn = gpu_grid(16384, 8, 16).body
    for name in ("A1", "A16", "B1", "B16", "C16"):
        assert f">{name}</text>" in drawn
    assert ">node 17</text>" in drawn
    assert ">node 2</text>" not in drawn
    for left_out in ("nodes 2 to 15", "nodes 18 to 31", "nodes 34 to 47"):
        assert f"⋮  {left_out}, not drawn</text>" in drawn
    assert "not drawn" not in gpu_grid(64, 8).body
    alone = gpu_grid(2048, 8, 16, 16).body
    assert ">node 6</text>" in alone
    assert "B is round" in drawn
    assert "B is round" not in alone


def test_words_on_shades_can_be_read() -> None:
    cell = re.compile(r'fill="(#\w+)" rx="\d+"><title>GPU[^>]*></rect><text [^>]*fill="(#\w+)"')
    for stages in range(1, 65):
        shown = cell.findall(gpu_grid(stages, 1, stages).body)
        assert len(shown) == min(stages, 48)
        assert shown[0][0] == COLORS["weights"]
        for fill, ink in shown:
            assert contrast(fill, ink) >= 4.5


def test_what_was_there_before_is_outlined() -> None:
    assert "stroke-dasharray" not in gpu_grid(16, 4, 2).body
    assert "stroke-dasharray" not in gpu_grid(16, 4, 2, before=(16, 4, 2, 1)).body
    changed = gpu_grid(16, 8, 2, before=(16, 4, 2, 1)).body
    assert "dashed: replica A had 8 GPUs" in changed
    assert gpu_grid(8, 4, 2, before=(16, 4, 2, 1)).body.count("5 4") == 0
    assert gpu_grid(4, 4, before=(8, 4, 1, 1)).body.count("5 4") == 4


def test_the_step_is_passes_then_gradients_then_one_update() -> None:
    step = step_in_time(Step(2, 4, 2))
    assert step.body.count(">pass ") == 8
    assert step.body.count(COLORS["gradients"]) == 1
    assert step.body.count(COLORS["optimizer"]) == 2
    assert "micro-batch 2 × accumulation 4 × replicas 2 = 16 sequences" in step.body
    assert "gradients, not the weights, meet in one average" in step.words
    assert step.body.count("<polygon") == 1
    many = step_in_time(Step(1, 16, 128))
    assert "… and 126 more replicas" in many.body
    assert ">16 passes</text>" in many.body
    assert "one replica makes one pass" in step_in_time(Step(1, 1, 1)).words


def test_a_pipeline_waits_and_keeps_several_passes() -> None:
    step = Step(2, 4, 2, stages=2)
    assert step.waits == pytest.approx(1 / 5) == idle_share(2, 4)
    assert (step.in_flight, step.kept) == (2, 2)
    drawn = step_in_time(step).body
    assert drawn.count(">waits</text>") == 2
    assert ">all stages 1</text>" in drawn  # no stage averages with another
    assert drawn.count(COLORS["gradients"]) == 2
    assert "a stage waits 20.0 %" in drawn
    assert "activations: of 2 × 2 sequences" in drawn
    large = step_in_time(Step(1, 16, 128, stages=16))
    assert "3 of 16 stages drawn" in large.body
    assert ">of 128 replicas</text>" in large.body
    assert "wait 48.4 %" in large.words


def test_lengths_are_times() -> None:
    now, old = Step(4, 2, 2, fixed=1), Step(2, 4, 2, fixed=1)
    assert (now.time, old.time) == (10, 12)
    body = step_in_time(now, old).body
    wide = [float(x) for x in re.findall(r'width="([\d.]+)" height="34"', body)]
    assert 2 * max(wide[:2]) == pytest.approx(328 * 10 / 12, rel=0.04)
    assert "dashed: of 2 sequences" in body
    assert ">2 passes × (1 + 4) = 10 sequences' time, dashed 12<".replace("'", "&#x27;") in body
    halves = step_in_time(Step(2, 4, 2, stages=2, fixed=0.5)).body
    assert ">5 turns × (0.5 + 2) = 12.5 sequences" in halves


def test_the_length_before_is_told_beside_the_new_one() -> None:
    body = step_in_time(Step(4, 2, 2, stages=2), Step(2, 4, 2, stages=2)).body
    assert "time on a stage, dashed 15<" in body
    same = step_in_time(Step(4, 2, 2, stages=2), Step(4, 2, 3, stages=2)).body
    assert "on a stage, dashed" not in same
    assert "on a stage" not in step_in_time(Step(4, 2, 2)).body


def test_task_2_of_the_panel_gains_nothing() -> None:
    for micro, passes in ((2, 4), (4, 2)):
        body = step_in_time(Step(micro, passes, 2, stages=2)).body
        assert f" turns × (1 + {micro}) = 15 sequences" in body


@pytest.mark.parametrize("stages", [2, 3, 16])
@pytest.mark.parametrize("passes", [1, 2, 4, 128])
def test_the_hill_of_a_pipeline_ends_with_the_step(stages: int, passes: int) -> None:
    step = Step(2, passes, 2, stages=stages)
    body = step_in_time(step).body
    [points] = re.findall(r'<polygon points="([\d., ]+)" fill="#', body)
    (x, _), (up, _), (down, _), (end, _) = (
        map(float, point.split(",")) for point in points.split()
    )
    turn = (end - x) / step.turns
    assert end == pytest.approx(420, abs=0.1)
    assert up - x == pytest.approx(step.in_flight * turn / 3, abs=0.1)
    assert end - down == pytest.approx((step.in_flight - 1 / 3) * turn, abs=0.2)
    assert up <= down + 0.1


def test_in_the_units_without_a_pipeline_two_stages_take_half() -> None:
    assert (Step(2, 4, 2).time, Step(2, 4, 2, stages=2).time) == (12, 7.5)


def test_teeth_grow_with_the_micro_batch_and_not_with_the_passes() -> None:
    def highest(*numbers: int) -> float:
        body = step_in_time(Step(*numbers)).body
        found = re.findall(r'<polygon points="([\d., ]+)" fill="#', body)
        heights = [float(p.split(",")[1]) for p in found[0].split()]
        return max(heights) - min(heights)

    assert highest(2, 4, 2) == pytest.approx(2 * highest(1, 4, 2))
    assert highest(2, 4, 2) == highest(2, 128, 2) == highest(2, 4, 64)


@pytest.mark.parametrize("micro", [1, 7, 64])
@pytest.mark.parametrize("passes", [1, 6, 7, 1000])
@pytest.mark.parametrize("replicas", [1, 2, 3, 4096])
def test_nothing_leaves_the_canvas(micro: int, passes: int, replicas: int) -> None:
    piped = Step(micro, passes, replicas, stages=12)
    drawings = [step_in_time(Step(micro, passes, replicas)), step_in_time(piped)]
    for drawing in (*drawings, gpu_grid(8 * replicas, 4)):
        for place in re.findall(
            r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', (drawing.body)
        ):
            x, y, wide = map(float, place)
            assert 0 <= x <= x + wide <= drawing.width
            assert 0 <= y <= drawing.height
        sizes = re.findall(r'font-size="([\d.]+)"', drawing.body)
        assert min(map(float, sizes)) >= 13
        assert drawing.words in unescape(drawing.saved())


def test_the_bars_of_a_pass_are_the_fit_and_the_dots_were_measured() -> None:
    rows = published.measured_passes().query("hidden_size == 32")
    fitted = fit_step_time(rows["micro_batch_size"], rows["seconds_min"])
    drawn = pass_times(rows["micro_batch_size"], rows["seconds_min"], fitted)
    assert drawn.body.count("<circle") == 1 + len(rows)
    assert "half-rate batch 26:" in drawn.body
    assert "r = 35,900 sequences a second" in drawn.body
    assert "1: 0.75 ms, 1,334 sequences a second" in drawn.words
    heights = re.findall(r'width="40" height="([\d.]+)" fill="#5B6672"', drawn.body)
    assert len(set(heights)) == 1
    assert float(heights[0]) == pytest.approx(
        196 * fitted.overhead / rows["seconds_min"].max(), abs=0.06
    )
    sizes = re.findall(r'font-size="([\d.]+)"', drawn.body)
    assert min(map(float, sizes)) >= 14
    assert "half-rate" not in pass_times([1, 2], [1, 2], StepTime(9, 1)).body
