"""Chapter 07's pictures: as large as what's sent, and in the color of who it's sent to."""

from itertools import combinations

import pytest

from llmtrain_course.communication import pictures
from llmtrain_course.communication.formulas import all_reduce_rates, ring_turn
from llmtrain_course.communication.handles import MACHINES, last_backward
from llmtrain_course.communication.pictures import LONGEST
from llmtrain_course.kit.drawing import COLORS, STEP_PARTS
from llmtrain_course.kit.layout import PAGE, PHONE
from llmtrain_course.panels import HANDLES
from llmtrain_course.parallelism.formulas import SharedMlp
from llmtrain_course.parallelism.matrices import shared_mlp
from llmtrain_course.parallelism.pictures import (
    neighbour_grid,
    of_first_stage,
    sending,
    spread_over_nodes,
    step_bar,
    who_sends,
)
from llmtrain_helpers import Transformer, plan_run, published
from tests.faces.svg import Box, Picture, drawn, pictures as all_pictures

MODEL = Transformer.gpt(4, 16, 4, 64, 8)


H100 = published.accelerator("H100")


LLAMA = published.architecture("Llama-3.1-70B", 8192)


SPLIT = {"tensor_parallel": 8, "zero_stage": 1, "recompute": "full"}


PLAN = plan_run(LLAMA, H100, 64, 1e12, 256, **SPLIT)
PIPED = PLAN.replace(tensor_parallel=2, pipeline_parallel=4)
SHARDED = PLAN.replace(tensor_parallel=1, zero_stage=3)


def named(picture: Picture, box: Box) -> str:
    """What's written on a GPU: its replica and its stage."""
    [label] = [x.words for x in picture.of_kind("text") if x.overlaps(box)]
    return label


@pytest.mark.parametrize(("plan", "tensor", "pipeline"), [(PLAN, 8, 1), (PIPED, 2, 4)])
def test_those_that_share_with_the_first_gpu_have_their_color(plan, tensor, pipeline) -> None:
    picture = drawn(who_sends(plan))
    near = picture.titled("shares tensor")
    assert len(near) == tensor - 1
    assert {named(picture, x) for x in near} == {"A1"}
    assert {named(picture, x)[1:] for x in picture.titled("shares data")} == {"1"}
    assert len(picture.titled("shares pipeline")) == min(pipeline - 1, 1)
    [sender] = picture.titled("the one that sends")
    assert sender.thick > max(x.thick for x in near)
    grid = drawn(neighbour_grid(plan, 1e13))
    assert len(grid.titled("shares tensor")) == tensor - 1
    assert len(grid.titled("shares data")) == plan.split.data_parallel - 1
    for way, color in (("tensor", "tensor"), ("data", "data"), ("pipeline", "pipeline")):
        assert {x.fill for x in grid.titled(f"shares {way}")} <= {COLORS[color]}


def test_one_gpu_alone_sends_nothing() -> None:
    one_gpu = plan_run(MODEL, H100, 1, 1e6, 1, recompute="none")
    assert who_sends(one_gpu).words.endswith("sends: nothing.")
    assert sending(one_gpu) == {}


@pytest.mark.parametrize("plan", [PLAN, PIPED, SHARDED])
def test_the_pieces_of_the_bar_add_up_to_the_step(plan) -> None:
    picture = drawn(step_bar(plan))
    bar = picture.titled("matrix products")[0]
    pieces = [x for x in picture.of_kind("rect") if x.top == bar.top]
    unit = (max(x.right for x in pieces) - bar.left) / plan.step.total
    sizes = [s for s in plan.step.parts().values() if s > 5e-4 * plan.step.total]
    for piece, seconds in zip(pieces, sizes, strict=True):
        assert piece.width == pytest.approx(unit * seconds, abs=0.6)
    hidden = {x: part.seconds - part.visible for x, part in sending(plan).items()}
    for name in ("data", "pipeline"):
        for piece in picture.titled(f"{name}, "):
            assert piece.width == pytest.approx(unit * hidden[name], abs=0.2)
    assert sum(plan.step.parts().values()) == pytest.approx(plan.step.total)


def test_every_part_of_a_step_has_its_words_and_its_colour() -> None:
    assert [*STEP_PARTS] == [*PLAN.step.parts()]
    *words, colors = zip(*STEP_PARTS.values(), strict=True)
    assert all(len({*column}) == len(STEP_PARTS) for column in words)
    assert {*colors} <= {*COLORS.values()}


# --- the handles' pictures


@pytest.mark.parametrize("plan", [PLAN, PIPED])
def test_squares_are_as_large_as_what_is_sent(plan) -> None:
    parts = of_first_stage(plan, sending(plan))
    picture = drawn(neighbour_grid(plan, sending(PLAN)["tensor"].sent))
    squares = {name: picture.titled(name)[0] for name in parts}
    unit = drawn(neighbour_grid(PLAN, sending(PLAN)["tensor"].sent)).titled("tensor")[0].width
    for name, part in parts.items():
        share = part.sent / sending(PLAN)["tensor"].sent
        assert squares[name].width == pytest.approx(unit * share**0.5, abs=0.06)
        assert squares[name].width == pytest.approx(squares[name].height, abs=0.11)


def test_a_node_of_replicas_sends_its_sums_by_network() -> None:
    picture = drawn(neighbour_grid(PLAN, sending(PLAN)["tensor"].sent, replicas=True))
    [first] = picture.titled("the one that sends")
    for kind, same_row in (("data", True), ("tensor", False)):
        shared = picture.titled(f"shares {kind}")
        assert len(shared) == 7
        assert {x.top == first.top for x in shared} == {same_row}
    sums, near = spread_over_nodes(PLAN)["tensor"], sending(PLAN)["tensor"]
    assert (sums.sent, sums.inside, near.inside) == (near.sent, False, True)


def assert_long(picture: Picture, title: str, pixels: float) -> None:
    """Bars with this title, each written with one digit, are together so long."""
    bars = [x.width for x in picture.of_kind("rect") if x.words.startswith(title)]
    assert sum(bars) == pytest.approx(pixels, abs=0.2 + 0.05 * len(bars))


@pytest.mark.parametrize("tokens", [256, 2560, 3072, 4096])
@pytest.mark.parametrize("messages", [1, 8, 32, 64, 99, 512])
def test_the_time_line_is_to_scale_and_what_shows_is_full(tokens: int, messages: int) -> None:
    last = last_backward(tokens, messages)
    picture = drawn(pictures.time_line(last, LONGEST))
    unit = picture.unit("0", "200", "across") * 1e3
    assert_long(picture, "seen", unit * last.visible)
    assert_long(picture, "hidden beside computing", unit * (last.sending - last.visible))
    assert_long(picture, "backward", unit * last.backward)


def test_a_message_leaves_when_its_part_is_done() -> None:
    picture = drawn(pictures.time_line(last_backward(2560, 8), LONGEST))
    for k in range(1, 8):
        part, message = (
            picture.titled(f"{x} {k}")[0] for x in ("backward", "hidden beside computing")
        )
        assert message.left == pytest.approx(part.right, abs=0.11)


@pytest.mark.parametrize("messages", [8, 512])
def test_the_time_line_goes_to_its_moment(messages: int) -> None:
    """What the step waits for is told once all has arrived."""
    last = last_backward(2560, messages)
    for moment in (0, 60, 1e3 * last.end - 1, 1e3 * last.end + 0.01):
        picture = drawn(pictures.time_line(last, moment))
        end = picture.text("0").across + picture.unit("0", "200", "across") * moment
        sent = [x for x in picture.of_kind("rect") if x.words]
        assert max([x.right for x in sent], default=end) == pytest.approx(end, abs=0.2)
        arrived = moment >= 1e3 * last.end
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


@pytest.mark.parametrize(
    ("gpus", "computed"),
    [
        (1, (18, 22, 24, 24, 30, 32, 32)),
        (2, (20, 24, 28, 32, 40, 44, 48)),
        (4, (24, 28, 36, 44, 56, 64, 72)),
    ],
)
def test_cells_are_filled_when_they_are_computed_and_none_covers_another(gpus, computed) -> None:
    frames = [drawn(shared_mlp(SharedMlp(gpus=gpus), step)) for step in range(7)]
    for step, frame in enumerate(frames):
        numbers = [x for x in frame.of_kind("text") if x.words.isdigit()]
        assert len(numbers) == computed[step]
        framed = [x for x in frame.of_kind("rect") if x.stroke == "currentColor"]
        new = [x for x in numbers if any(x.overlaps(box) for box in framed)]
        assert len(new) == (computed[step] - computed[step - 1] if step else 0)
        done = 1 + (step >= 3) + (step >= 6) if gpus > 1 else 0  # one of them is the key's
        assert len(frame.filled(COLORS["tensor"])) == done
    cells = [x for x in frames[6].of_kind("rect") if x.stroke != "currentColor"]
    assert not any(one.overlaps(two) for one, two in combinations(cells, 2))
    assert "Added up: 10 15. " in shared_mlp(SharedMlp(), 5).words
    assert shared_mlp(SharedMlp(gpus=4), 6).words.endswith("Added up: 9 8.")
