"""Chapter 07's pictures: as long as their seconds, and as full as what's been added up."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from llmtrain_course.communication import pictures
from llmtrain_course.communication.formulas import all_reduce_rates, ring_turn
from llmtrain_course.communication.fsdp import layers_in_time, sharded_step
from llmtrain_course.communication.handles import MACHINES, four_layers, last_backward
from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.kit.layout import PAGE, PHONE
from llmtrain_course.panels import HANDLES
from tests.faces.svg import Picture, drawn, pictures as all_pictures


def assert_long(picture: Picture, title: str, pixels: float) -> None:
    """Bars with this title, each written with one digit, are together so long."""
    bars = [x.width for x in picture.of_kind("rect") if x.words.startswith(title)]
    assert sum(bars) == pytest.approx(pixels, abs=0.2 + 0.05 * len(bars))


@pytest.mark.parametrize("tokens", [256, 2560, 3072, 4096])
@pytest.mark.parametrize("messages", [1, 8, 32, 64, 99, 512])
def test_the_time_line_is_to_scale_and_what_shows_is_full(tokens: int, messages: int) -> None:
    last = last_backward(tokens, messages)
    picture = drawn(pictures.time_line(last, last.end))
    unit = picture.unit("0", "200", "across") * 1e3
    assert_long(picture, "exposed", unit * last.visible)
    assert_long(picture, "hidden behind computing", unit * (last.sending - last.visible))
    assert_long(picture, "backward", unit * last.backward)


def test_a_message_leaves_when_its_part_is_done() -> None:
    last = last_backward(2560, 8)
    picture = drawn(pictures.time_line(last, last.end))
    for k in range(1, 8):
        part, message = (
            picture.titled(f"{x} {k}")[0] for x in ("backward", "hidden behind computing")
        )
        assert message.left == pytest.approx(part.right, abs=0.11)


@pytest.mark.parametrize("messages", [8, 512])
def test_the_time_line_goes_to_its_moment(messages: int) -> None:
    """What the step waits for is told once all has arrived."""
    last = last_backward(2560, messages)
    for moment in (0, 0.06, last.end - 1e-3, last.end):
        picture = drawn(pictures.time_line(last, moment))
        end = picture.text("0").across + picture.unit("0", "200", "across") * 1e3 * moment
        sent = [x for x in picture.of_kind("rect") if x.words]
        assert max([x.right for x in sent], default=end) == pytest.approx(end, abs=0.2)
        arrived = moment >= last.end
        assert (pictures.milliseconds(last.visible) in picture.texts) == arrived


def test_dots_of_a_message_stand_at_their_rates_and_the_plane_stays() -> None:
    series = {name: all_reduce_rates(word) for name, (word, _) in MACHINES.items()}
    message, ends = HANDLES["message"], set()
    for size in message.controls["size"].stops:
        [picture] = all_pictures(message.render(size=size))
        ends |= {line.right for line in picture.of_kind("polyline")}
        unit = -picture.between("0", "800") / 800e9
        [first], *others = (picture.titled(f"{name}: ", "circle") for name in series)
        rate, *rates = (rates[size * 2**20] for rates in series.values())
        for [dot], other in zip(others, rates, strict=True):
            rise = unit * (other - rate)
            assert first.down - dot.down == pytest.approx(rise, abs=0.2)
    assert len(ends) == 1


@pytest.mark.parametrize(("gpus", "turn"), [(8, 0), (8, 3), (8, 14), (3, 2), (64, 7)])
@pytest.mark.parametrize("width", [PAGE, PHONE])
def test_pieces_are_as_full_as_the_gpus_in_them(gpus: int, turn: int, width: int) -> None:
    state = ring_turn(gpus, turn)
    picture = drawn(pictures.ring_circle(state, 16e9, width))
    if gpus <= 8:
        pieces = picture.titled("GPU 2, piece")
        for piece, parts in zip(pieces, state.summed[1], strict=True):
            color = COLORS["useful" if parts == gpus else "data"]
            [level] = [x for x in picture.filled(color) if x.inside(piece)]
            assert level.height / piece.height == pytest.approx(parts / gpus, abs=0.005)
    [sent] = picture.titled("sent: ")
    [whole] = [x for x in picture.of_kind("rect") if sent.inside(x) and x.fill == "none"]
    assert sent.width / whole.width == pytest.approx(state.sent_bytes(1) / 2, abs=0.001)


# --- a layer comes, works and goes


@given(st.integers(1, 6), st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_sharded_step_uses_its_link_and_its_gpu_one_at_a_time(layers, fetch, forward) -> None:
    step = sharded_step(layers, fetch, forward)
    travels = [w for w in step.work if w.kind in ("fetch", "scatter")]
    for pieces in (sorted(travels, key=lambda w: w.start), step.computing):
        assert all(b.start >= a.end - 1e-9 for a, b in pairwise(pieces))
    assert [w.layer for w in step.computing] == [*range(1, layers + 1), *range(layers, 0, -1)]
    assert sum(w.end - w.start for w in travels) == pytest.approx((3 * layers - 1) * fetch)
    assert step.waiting == pytest.approx(step.end - 3 * layers * forward)
    spans = [span for layer in range(1, layers + 1) for span in step.whole(layer)]
    for start, end in spans:  # what's fetched ahead, and what computes
        assert sum(a <= start < b - 1e-9 for a, b in spans) <= 2
        assert end - start >= fetch + forward - 1e-9
    for layer in range(1, layers + 1):
        *others, (_, end) = step.whole(layer)
        assert len(others) == (layer < layers)
        [scatter] = [w for w in travels if w.kind == "scatter" and w.layer == layer]
        assert scatter.start >= end - 1e-9


def test_a_gpu_waits_for_its_first_fetch_and_its_last_sum_if_a_layer_computes_longer() -> None:
    assert sharded_step(5, 1, 1).waiting == sharded_step(5, 1, 9).waiting == 2
    assert sharded_step(5, 1, 0.99).waiting > 2
    edge = (989.5e12 / (8 * 50e9), 4096)  # T = X/W: the page's rule, latency aside
    few, many = (four_layers(int(tokens)) for tokens in edge)
    fetch = many.work[0].end
    assert fetch == pytest.approx(218.1e6 * 2 * 63 / 64 / 400e9 + 45e-6, rel=1e-3)
    assert many.waiting == pytest.approx(2 * fetch)
    assert few.waiting == pytest.approx(2 * fetch, rel=0.15)


def test_the_lanes_of_layers_are_full_up_to_the_moment() -> None:
    step = sharded_step(4, 1e-3, 1e-3)
    done = [w for w in step.work if w.end <= 5e-3]
    full = [x.words for x in drawn(layers_in_time(step, 5e-3)).of_kind("rect") if x.opacity == 1]
    for w in done:
        if w.kind in ("forward", "fetch"):
            name = "forward" if w.kind == "forward" else "fetches its weights"
            assert f"layer {w.layer} {name}" in full
    assert not [words for words in full if "gradients" in words]
