"""Chapter 08's pictures: as large as what's sent, and in the color of who it's sent to."""

from itertools import combinations

import pytest

from llmtrain_course.kit.drawing import COLORS, STEP_PARTS
from llmtrain_course.parallelism.formulas import SharedMlp, pipeline_schedule
from llmtrain_course.parallelism.four_gpus import step_on_four_gpus
from llmtrain_course.parallelism.matrices import shared_mlp
from llmtrain_course.parallelism.pictures import (
    neighbour_grid,
    of_first_stage,
    sending,
    spread_over_nodes,
    step_bar,
    step_by_sharers,
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


# --- four GPUs


@pytest.mark.parametrize(("stages", "passes", "ticks"), [(1, 2, 8), (2, 4, 4), (4, 8, 2)])
@pytest.mark.parametrize("part", [0, 0.4, 1])
def test_a_turn_is_as_long_as_its_time_and_what_is_done_is_filled(
    stages, passes, ticks, part
) -> None:
    schedule = pipeline_schedule(stages, passes, ticks, 2 * ticks)
    now = part * schedule.end
    picture = drawn(step_on_four_gpus(schedule, 4 // stages, 1, now))
    unit = picture.unit("0", "90", "across")
    turns = picture.titled("forward ") + picture.titled("backward ")
    starts = sorted(turn.start for turn in schedule.turns for _ in range(4 // stages))
    places = [(turn.left - picture.text("0").across) / unit for turn in turns]
    assert sorted(places) == pytest.approx(starts, abs=0.05)
    for turn in turns:
        long = ticks * (1 if turn.words.startswith("forward") else 2)
        assert turn.width == pytest.approx(unit * long, abs=0.2)
    assert len(turns) == 4 * 2 * passes
    done = {(x.left, x.top): x for x in picture.of_kind("rect") if not x.words and x.opacity == 1}
    end = picture.text("0").across + unit * now
    for turn in turns:
        filled = done.get((turn.left, turn.top))
        assert bool(filled) == (turn.left < end - 1)
        assert not filled or filled.right == pytest.approx(min(turn.right, end), abs=0.2)
    assert bool(picture.titled("average")) == (stages < 4)


@pytest.mark.parametrize(("passes", "ticks", "last"), [(4, 8, 4), (16, 2, 0)])
def test_turns_have_numbers_up_to_the_last_or_none(passes, ticks, last) -> None:
    """Forward turns too short for two digits have none at all."""
    schedule = pipeline_schedule(4, passes, ticks, 2 * ticks)
    picture = drawn(step_on_four_gpus(schedule, 1, 1, 0))
    turns = picture.titled("forward ")
    inside = [t for t in picture.of_kind("text") if any(t.inside(turn) for turn in turns)]
    assert len(inside) == 4 * last


def test_columns_are_as_high_as_what_their_part_takes() -> None:
    plans = [PLAN.replace(tensor_parallel=t, zero_stage=3) for t in (1, 8)]
    steps = [plan.step for plan in plans]
    picture = drawn(step_by_sharers((1, 8), steps))
    unit = -picture.unit("1", "2")
    columns = picture.titled("all-reduces", "rect")
    sums = [step.tensor / steps[0].total for step in steps if step.tensor]
    assert [x.height / unit for x in columns if x.height > 1] == pytest.approx(sums, abs=0.003)
    assert {"1.0×", f"{steps[1].total / steps[0].total:.2g}×"} <= {*picture.texts}


def test_the_hill_is_as_high_as_the_micro_batch() -> None:
    """A replica's activations, of which a stage keeps its part of several micro-batches."""

    def highest(stages: int, passes: int, micro: int) -> float:
        schedule = pipeline_schedule(stages, passes)
        picture = drawn(step_on_four_gpus(schedule, 4 // stages, micro, schedule.end))
        [hill] = picture.of_kind("polygon")
        low, high = (
            next(x.down for x in picture.of_kind("text") if x.words == n and x.right < hill.left)
            for n in ("1", "4")
        )
        return hill.height / ((low - high) / 3)

    for stages, passes, micro in ((1, 4, 1), (2, 8, 1), (4, 16, 1), (1, 1, 4), (4, 4, 4)):
        assert highest(stages, passes, micro) == pytest.approx(micro, rel=0.005)
