"""Steps of real processes: traced, over a slow link, and a step to be timed."""

from __future__ import annotations

import pytest

from llmtrain_course import measure
from llmtrain_course.measure.clock import timed
from llmtrain_course.measure.trace import length
from llmtrain_helpers import Transformer

SHAPE = Transformer.gpt(2, 128, 4, 256, 64)


def test_a_training_step_can_be_called_again_and_again() -> None:
    step = measure.training_step(SHAPE, 2)
    assert timed(step, warm_up=1, repeats=3).median > 0


@pytest.mark.parametrize("overlap", [True, False])
def test_a_trace_of_two_processes_tells_whether_they_overlap(overlap: bool) -> None:
    trace = measure.trace_data_parallel(SHAPE, 4, overlap)
    assert (trace.hidden > 0.05) == overlap
    assert 0 < length(trace.exchange) < trace.seconds
    ends = [trace.phases[name][-1][1] for name in measure.PHASES]
    assert ends == sorted(ends)
    assert 0 < length(trace.busy) < trace.seconds


def test_over_a_slow_link_a_process_waits_for_the_other() -> None:
    result = measure.measure_slow_link(SHAPE, 2, delay=0.1)
    assert result.verdict == "other GPUs"
    assert result.same_data == result.as_it_is
