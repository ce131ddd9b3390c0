"""Chapter 04's pictures: as long as their time, and each GPU in its place."""

from collections import Counter
from math import sqrt
from random import Random
from statistics import NormalDist

import pytest
from hypothesis import given, strategies as st

from llmtrain_course.batch.formulas import NOISE_SCALE, TRIED, batch_cost, mean_gradients, miss
from llmtrain_course.batch.handles import bloom_steps
from llmtrain_course.batch.pictures import (
    batch_cost_curve,
    epoch_rows,
    noisy_gradients,
    stage_time,
    step_by_micro_batch,
)
from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.layout import PAGE, PHONE
from llmtrain_course.parallelism.grid import gpus_in_nodes
from llmtrain_course.parallelism.places import Layout
from llmtrain_helpers import data_parallel_size
from tests.faces.contrast import contrast
from tests.faces.svg import drawn


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


def test_gpus_and_replicas_are_numbered_as_in_08() -> None:
    """Its `_place`: tensor, context, replica, stage."""
    layout = Layout(64, 2, 4, 2)
    for gpu in range(64):
        rest, c = divmod(gpu // 2, 2)
        stage, replica = divmod(rest, 4)
        assert layout.place(gpu) == (replica, stage, c)


@pytest.mark.parametrize(
    "layout", [Layout(16, 4, 2), Layout(64, 8, 4, 2), Layout(100, 8, 1), Layout(8, 4, 4)]
)
@pytest.mark.parametrize("width", [680, 360])
def test_each_gpu_that_is_drawn_is_in_its_place(layout: Layout, width: int) -> None:
    """Tensor first, then the replicas, the stages last: as in 08's drawing."""
    picture = drawn(gpus_in_nodes(layout), width)
    gpus = picture.titled("GPU ")
    for gpu in gpus:
        place = layout.place(int(gpu.words.split(":")[0].split()[1]) - 1)
        if place is None:
            assert gpu.words.endswith("left over")
        else:
            replica, stage, _ = place
            assert f": replica {'ABCDEFGHIJKL'[replica]}, stage {stage + 1}" in gpu.words
    left_over = [gpu for gpu in gpus if gpu.words.endswith("left over")]
    assert len(left_over) == min(layout.left_over, len(gpus))
    frames = [x for x in picture.filled("none") if x.thick == 4]  # of replica A
    names = [text for gpu in gpus for text in picture.of_kind("text") if text.overlaps(gpu)]
    assert all(gpu.width > 26 for gpu in gpus)
    assert not [x for x in names if not any(x.inside(gpu) for gpu in gpus)]
    framed = {gpu.words for x in frames for gpu in gpus if gpu.overlaps(x)}
    assert framed == {gpu.words for gpu in gpus if "replica A" in gpu.words}


def test_a_large_grid_says_how_much_of_it_is_shown() -> None:
    picture = drawn(gpus_in_nodes(Layout(16384, 8, 16)))
    gpus = {x.words.split(": ")[1] for x in picture.titled("GPU ")}
    assert gpus == {f"replica {r}, stage {s}" for r in "AB" for s in (1, 2, 16)}
    for left_out in ("nodes 3 to 128", "nodes 131 to 1,920"):
        assert f"⋮  {left_out}, not drawn" in picture.texts
    count = len(picture.titled("GPU "))
    assert any(f"{count // 8} of 2,048 nodes are drawn, {count} of" in x for x in picture.texts)
    assert "not drawn" not in " ".join(drawn(gpus_in_nodes(Layout(64, 8))).texts)


def test_a_tensor_group_that_leaves_its_node_is_told() -> None:
    assert "leave their nodes" in gpus_in_nodes(Layout(32, 16)).words
    assert "leave" not in gpus_in_nodes(Layout(32, 8)).words
    assert "c2" in drawn(gpus_in_nodes(Layout(64, 8, 4, 2))).texts


@pytest.mark.parametrize("stages", [1, 2, 7, 16, 64])
def test_words_on_shades_can_be_read(stages: int) -> None:
    picture = drawn(gpus_in_nodes(Layout(stages, 1, stages)))
    gpus = picture.titled("GPU ")
    shades = list(dict.fromkeys(gpu.fill for gpu in gpus))
    assert len(shades) > 1 or stages == 1
    for gpu in gpus:
        [ink] = {x.fill for x in picture.of_kind("text") if x.overlaps(gpu)}
        assert contrast(gpu.fill, ink) >= 4.5


# --- an epoch, a measured step, what a batch costs, a stage's time


@pytest.mark.parametrize("width", [PAGE, PHONE])
def test_an_epochs_rows_have_a_box_for_a_pass_and_a_dot_for_a_sample(width: int) -> None:
    picture = drawn(epoch_rows(5, 2, 100, 1000, width))
    dots = picture.of_kind("circle")
    boxes = picture.titled("pass ")
    assert [sum(dot.inside(box) for dot in dots) for box in boxes] == [5] * len(boxes)
    assert Counter(box.words for box in boxes) == {"pass 1": 3, "pass 2": 3}
    assert sum(x.startswith("update ") for x in picture.texts) == 3
    assert {"100", "200", "10", "5"} <= {*picture.texts}


@pytest.mark.parametrize(("chosen", "count"), [(1, 1), (4, 3), (8, 4)])
def test_steps_up_to_the_chosen_one_are_as_high_as_they_took(chosen: int, count: int) -> None:
    steps, card = bloom_steps()[:count], 86e9
    picture = drawn(step_by_micro_batch(bloom_steps(), chosen, card))
    second = -picture.unit("0", "150")
    *dots, _ = picture.titled("measured", "circle")  # the last one is the key's
    for step, dot in zip(steps, dots, strict=True):
        parts = [part for part in picture.titled("") if abs(part.across - dot.across) < 1]
        assert [part.height / second for part in parts] == pytest.approx(step.parts, abs=0.1)
        assert (parts[0].bottom - dot.down) / second == pytest.approx(step.measured, abs=0.3)
    columns = picture.filled(COLORS["main weights"])
    [limit] = picture.dashed
    byte = (columns[0].bottom - limit.down) / card
    memory = [step.memory for step in steps]
    assert [column.height / byte for column in columns] == pytest.approx(memory, rel=0.004)
    assert f"{steps[-1].measured:.0f} s" in picture.texts


def test_the_critical_batch_is_in_the_middle_of_the_curve() -> None:
    picture = drawn(batch_cost_curve(batch_cost(1e7, 1e6), 1e7, 1e6))
    twos = [x for x in picture.of_kind("text") if x.words == "2"]
    [mark] = picture.of_kind("polygon")
    assert mark.across == pytest.approx(max(x.across for x in twos), abs=0.1)
    assert mark.down == pytest.approx(min(x.down for x in twos), abs=2)
    assert {"1.1×", "11×"} <= {*picture.texts}


def test_both_batches_are_where_their_tokens_are() -> None:
    picture = drawn(batch_cost_curve(batch_cost(1e7, 1e6), 1e7, 1e6))
    [critical] = [x for x in picture.of_kind("line") if x.thick == 3]
    [own] = picture.titled("10M tokens", "circle")
    assert critical.across == pytest.approx(picture.text("1M").across, abs=0.1)
    assert own.across == pytest.approx(picture.text("10M").across, abs=0.1)


def test_a_ring_is_where_another_batch_stood() -> None:
    cost, other = batch_cost(4e6, 1e6), batch_cost(1e6, 1e6)
    began, same = (
        drawn(batch_cost_curve(cost, 4e6, 1e6, it)).titled("at the start", "circle")
        for it in (other, cost)
    )
    ring, _ = began  # and its fact's
    [dot] = drawn(batch_cost_curve(other, 1e6, 1e6)).titled("your batch", "circle")
    assert (ring.across, ring.down) == (dot.across, dot.down)
    assert not same


def test_a_stages_bar_is_its_work_and_its_waiting() -> None:
    picture = drawn(stage_time(16, 16, 15 / 31))
    ratio = picture.width_of("at work") / picture.width_of("waits")
    assert ratio == pytest.approx(16 / 15, rel=0.002)
    alone = drawn(stage_time(1, 8, 0))
    assert "a single stage doesn't wait" in alone.texts
    assert not alone.titled("waits")


def test_a_larger_batch_misses_by_the_root_and_has_the_smaller_ones_sequences() -> None:
    assert miss(NOISE_SCALE) == 1
    for batch in (1, 4, 32, 256):
        assert miss(4 * batch) == pytest.approx(miss(batch) / 2)
        means = mean_gradients(batch)
        usual = sqrt(sum((x - 1) ** 2 + y**2 for x, y in means) / len(means))
        assert usual == pytest.approx(miss(batch), rel=0.08)
    [(x, y), *_] = mean_gradients(2)
    random = Random(160)
    noise = [random.gauss(0, 1) for _ in range(4)]
    assert (x - 1, y) == pytest.approx((noise[0] + noise[2], noise[1] + noise[3]))  # · √4 / 2


@pytest.mark.parametrize("batch", [1, 2, 4, 8])
def test_as_many_batches_point_backwards_as_the_noise_makes(batch: int) -> None:
    """Along the gradient the noise's deviation is the root of half the noise scale over B."""
    expected = TRIED * NormalDist(1, sqrt(NOISE_SCALE / 2 / batch)).cdf(0)
    assert sum(x < 0 for x, _ in mean_gradients(batch)) == pytest.approx(expected, abs=2.5)


def test_single_gradients_are_thinner_where_they_lie_close() -> None:
    sizes = {}
    for batch in (1, 8, 64, 256):
        dots = [c for c in drawn(noisy_gradients(batch)).of_kind("circle") if not c.dashed]
        sizes[batch] = min(c.width for c in dots)
    assert sizes[1] == pytest.approx(sizes[8])
    assert sizes[8] > sizes[64] > sizes[256]


@pytest.mark.parametrize("width", [PAGE, PHONE])
def test_gradients_that_point_back_are_hollow_and_the_circle_is_as_large_as_the_miss(width) -> None:
    picture = drawn(noisy_gradients(1, previous=4).drawing(width))
    dots = [c for c in picture.of_kind("circle") if c.width == pytest.approx(8, abs=0.1)]
    hollow = [c for c in dots if c.fill == "none"]
    assert len(hollow) == sum(x < 0 for x, _ in mean_gradients(1)) + 1  # and the key's
    now, before, _key = sorted(
        (c.width for c in picture.of_kind("circle") if c.dashed), reverse=True
    )
    assert now / before == pytest.approx(2, rel=0.01)
