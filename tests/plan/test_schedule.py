"""A pipeline's step, turn by turn."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from llmtrain_course.parallelism.formulas import Turn, idle_share, pipeline_schedule
from llmtrain_helpers.parallelism import Split

small = st.integers(1, 9)


@given(small, st.integers(1, 30), st.integers(1, 5), st.integers(1, 5))
def test_what_is_left_idle_is_the_formula_of_the_bubble(p, m, forward, backward):
    step = pipeline_schedule(p, m, forward, backward)
    assert step.idle == pytest.approx((p - 1) / (m + p - 1))
    assert step.end == (m + p - 1) * (forward + backward)
    bubble = Split(p, 1, 1, p, 1, 1, m).bubble
    assert step.idle / (1 - step.idle) == pytest.approx(bubble)


@given(small, st.integers(1, 30))
def test_each_turn_waits_for_its_stage_and_for_its_input(p: int, m: int) -> None:
    step = pipeline_schedule(p, m)
    at = {(t.stage, t.micro_batch, t.backward): t for t in step.turns}
    assert len(at) == len(step.turns) == 2 * p * m
    for turn in step.turns:
        i, k = turn.stage, turn.micro_batch
        if turn.backward:
            before = at[i + 1, k, True] if i + 1 < p else at[i, k, False]
            assert turn.start >= max(before.end, at[i, k, False].end)
        elif i:
            assert turn.start >= at[i - 1, k, False].end
    for stage in range(p):
        row = step.of_stage(stage)
        assert all(a.end <= b.start for a, b in pairwise(row))


@given(small, st.integers(1, 30))
def test_in_flight_are_as_many_as_the_memory_of_a_plan_counts(p: int, m: int) -> None:
    step, split = pipeline_schedule(p, m), Split(p, 1, 1, p, 1, 1, m)
    assert (step.in_flight(0), step.in_flight(p - 1)) == split.in_flight
    assert [step.in_flight(i) for i in range(p)] == [min(p - i, m) for i in range(p)]


@given(st.integers(2, 6), st.integers(1, 5), st.integers(2, 5), st.integers(1, 3))
def test_pieces_of_a_stage_make_its_waiting_shorter(p: int, groups: int, v: int, f: int) -> None:
    m = p * groups
    step = pipeline_schedule(p, m, f, 2 * f, interleave=v)
    assert step.idle == pytest.approx((p - 1) / (v * m + p - 1)) == idle_share(p, m, v)
    assert step.end == (v * m + p - 1) * 3 * f
    split = Split(p, 1, 1, p, 1, 1, m, v)
    assert step.idle / (1 - step.idle) == pytest.approx(split.bubble)
    assert (step.in_flight(0), step.in_flight(p - 1)) == pytest.approx(split.in_flight)


def test_a_turn_with_pieces_waits_for_its_stage_and_for_its_input() -> None:
    p, m, v = 3, 6, 2
    step = pipeline_schedule(p, m, interleave=v)
    at = {(t.piece * p + t.stage, t.micro_batch, t.backward): t for t in step.turns}
    assert len(at) == len(step.turns) == 2 * p * m * v
    for (part, k, back), turn in at.items():
        if back:
            before = at[part + 1, k, True] if part + 1 < p * v else at[part, k, False]
            assert turn.start >= before.end
        elif part:
            assert turn.start >= at[part - 1, k, False].end
    for stage in range(p):
        assert all(a.end <= b.start for a, b in pairwise(step.of_stage(stage)))


def test_a_small_step_by_hand() -> None:
    step = pipeline_schedule(2, 2)
    passes = [(t.micro_batch, t.backward, t.start, t.end) for t in step.of_stage(0)]
    assert passes == [(0, False, 0, 1), (1, False, 1, 2), (0, True, 4, 6), (1, True, 7, 9)]
    assert step.of_stage(1)[0] == Turn(1, 0, False, 1, 2)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"stages": 0}, "stages=0"),
        ({"micro_batches": 2.5}, "micro_batches=2.5"),
        ({"stages": "4"}, "stages='4'"),
        ({"forward": -1}, "forward=-1"),
        ({"interleave": 0}, "interleave=0"),
        ({"interleave": 2, "micro_batches": 6}, "micro_batches=6 is not divisible by stages=4"),
        ({"stages": 2**11, "micro_batches": 2**11}, "what one schedule takes"),
    ],
)
def test_a_schedule_refuses(bad: dict, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        pipeline_schedule(**{"stages": 4, "micro_batches": 8, **bad})


@pytest.mark.parametrize(("p", "m"), [(1, 4), (2, 4), (4, 16), (4, 2)])
def test_a_stage_keeps_what_it_has_begun_and_not_finished(p: int, m: int) -> None:
    schedule = pipeline_schedule(p, m)
    for stage in range(p):
        corners = schedule.kept(stage)
        assert corners[0] == (0, 0)
        assert corners[-1] == (schedule.of_stage(stage)[-1].end, 0)
        assert max(count for _, count in corners) == schedule.in_flight(stage)
        assert all(a <= b for (a, _), (b, _) in pairwise(corners))
