"""Chapter 07's pictures: as large as what's sent, and in the color of who it's sent to."""

from itertools import combinations

import pytest

from llmtrain_course.communication.formulas import backward_overlap
from llmtrain_course.communication.pictures import LONGEST, time_line
from llmtrain_course.kit.drawing import COLORS, STEP_PARTS
from llmtrain_course.parallelism.formulas import SharedMlp
from llmtrain_course.parallelism.pictures import (
    neighbour_grid,
    of_first_stage,
    sending,
    shared_matrices,
    spread_over_nodes,
    step_bar,
    who_sends,
)
from llmtrain_helpers import Transformer, plan_run, published
from tests.faces.svg import Box, Picture, drawn

MODEL = Transformer.gpt(4, 16, 4, 64, 8)


H100 = published.accelerator("H100")


LLAMA = published.architecture("Llama-3.1-70B", 8192)


SPLIT = {"tensor_parallel": 8, "zero_stage": 1, "recompute": "full"}


PLAN = plan_run(LLAMA, H100, 64, 1e12, 256, **SPLIT)
PIPED = PLAN.replace(tensor_parallel=2, pipeline_parallel=4)


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


@pytest.mark.parametrize("plan", [PLAN, PIPED])
def test_the_pieces_of_the_bar_add_up_to_the_step(plan) -> None:
    picture = drawn(step_bar(plan))
    bar = picture.titled("matrix products")[0]
    pieces = [x for x in picture.of_kind("rect") if x.top == bar.top]
    unit = (max(x.right for x in pieces) - bar.left) / plan.step.total
    for piece, seconds in zip(pieces, plan.step.parts().values(), strict=True):
        assert piece.width == pytest.approx(unit * seconds, abs=1.1)
    hidden = {x: part.seconds - part.visible for x, part in sending(plan).items()}
    for name in ("data", "pipeline"):
        for piece in picture.titled(f"{name}, "):
            assert piece.width == pytest.approx(unit * hidden[name], abs=1.1)
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
    [first] = picture.titled("GPU 1")
    for kind, same_row in (("data", True), ("tensor", False)):
        shared = picture.titled(f"shares {kind}")
        assert len(shared) == 7
        assert {x.top == first.top for x in shared} == {same_row}
    sums, near = spread_over_nodes(PLAN)["tensor"], sending(PLAN)["tensor"]
    assert (sums.sent, sums.inside, near.inside) == (near.sent, False, True)


@pytest.mark.parametrize("tokens", [256, 2560, 3072, 4096])
@pytest.mark.parametrize("messages", [1, 8, 32, 512])
def test_the_time_line_is_to_scale_and_what_shows_is_full(tokens: int, messages: int) -> None:
    last = backward_overlap(8e9, tokens, 989.5e12, 64, 400e9, messages)
    picture = drawn(time_line(last, LONGEST))
    unit = picture.unit("0", "200", "across") * 1e3
    sent = [x for x in picture.of_kind("rect") if x.words.startswith("message")]
    seen = sum(x.width + 1 for x in sent if x.words.endswith("seen"))
    assert seen == pytest.approx(unit * last.visible, abs=1.1 * min(messages, 32))
    hidden = sum(x.width + 1 for x in sent if x.words.endswith("hidden"))
    hidden += sum(piece.width for path in picture.of_kind("path") for piece in path.pieces)
    wanted = unit * (last.sending - last.visible)
    assert hidden == pytest.approx(wanted, abs=1.1 * min(messages, 32))
    backward = [x for x in picture.of_kind("rect") if "backward" in x.words]
    assert max(x.right for x in backward) < max(x.right for x in sent)


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_cells_are_filled_when_they_are_computed_and_none_covers_another(gpus: int) -> None:
    frames = [drawn(shared_matrices(SharedMlp(gpus=gpus), step)) for step in range(7)]
    filled = [sum(x.words.isdigit() for x in frame.of_kind("text")) for frame in frames]
    assert filled == sorted(filled)
    assert filled[0] < filled[-1]
    cells = [x for x in frames[6].of_kind("rect") if x.stroke != "currentColor"]
    assert not any(one.overlaps(two) for one, two in combinations(cells, 2))
    assert "Added up: 10 15. " in shared_matrices(SharedMlp(), 5).words
    assert shared_matrices(SharedMlp(gpus=4), 6).words.endswith("Added up: 9 8.")
