"""What drawings show is computed in the chapters: the formulas that came from there."""

import ast
import math
from pathlib import Path

import pytest

import llmtrain_helpers
from llmtrain_helpers import FORMATS, Accelerator, Traffic, communication_seconds
from llmtrain_helpers.activations import KEPT, bytes_kept, there
from llmtrain_helpers.batch import Step
from llmtrain_helpers.communication import exchanges, ring
from llmtrain_helpers.duration import (
    PASSES,
    first_run_days,
    flops_per_parameter,
    tokens_in_time,
    training_seconds,
)
from llmtrain_helpers.laws import (
    LAWS,
    compute_optimal,
    over_training,
    sizes_known,
    smallest_share,
    tokens_for_size,
)
from llmtrain_helpers.plan.schedule import idle_share, pipeline_schedule
from llmtrain_helpers.precision import (
    gradient_window,
    half_spacing,
    scaled_back,
    stored,
    updates_to_move,
)
from llmtrain_helpers.units import DAY

H100 = Accelerator("H100", 80e9, link_bandwidth=450e9, network_bandwidth=50e9)


@pytest.mark.parametrize("module", ["units", "checks", "results"])
def test_words_and_checks_know_no_chapter(module: str) -> None:
    source = Path(llmtrain_helpers.__file__).with_name(f"{module}.py").read_text("utf-8")
    taken = {
        node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("llmtrain_helpers")
    }
    assert taken <= {"llmtrain_helpers.checks"}


def test_the_passes_add_up_to_six_and_eight() -> None:
    assert flops_per_parameter("full") == sum(PASSES.values()) == 8
    assert flops_per_parameter("none") == flops_per_parameter("selective") == 6
    assert training_seconds(1e9, 1e6, 1, 1e12, "full") == 8 * 1e9 * 1e6 / 1e12
    with pytest.raises(ValueError, match="recompute"):
        flops_per_parameter("some")


def test_a_first_run_takes_the_slower_of_plan_and_published_runs() -> None:
    assert first_run_days(30.0, 46 * DAY) == 46
    assert first_run_days(50.0, 46 * DAY) == 50
    assert tokens_in_time(1e12, days=40, limit=40) == 1e12


def test_a_step_without_a_pipeline_never_waits() -> None:
    step = Step(micro=2, passes=4, replicas=2)
    assert (step.turns, step.waits, step.in_flight, step.time) == (4, 0, 1, 12)


@pytest.mark.parametrize(("stages", "passes"), [(2, 4), (4, 8), (8, 3)])
def test_a_step_a_schedule_and_the_formula_wait_alike(stages: int, passes: int) -> None:
    schedule = pipeline_schedule(stages, passes)
    assert Step(1, passes, 1, stages).waits == pytest.approx(schedule.idle)
    assert idle_share(stages, passes) == pytest.approx(schedule.shares()["idle"])
    assert sum(schedule.shares().values()) == pytest.approx(1)
    assert schedule.in_flight(0) == Step(1, passes, 1, stages).in_flight


def test_what_a_layer_keeps_adds_up_to_the_published_form() -> None:
    assert bytes_kept(0) == 34
    assert bytes_kept(16) - bytes_kept(0) == 5 * 16
    assert sum(kept.size for kept in KEPT if not kept.scores) == 34


def test_at_the_turn_all_layers_are_there() -> None:
    assert there(4, 4, again=False) == there(4, 5, again=False) == ["kept"] * 4
    assert there(4, 5, again=True) == ["input", "input", "input", "again"]


def test_a_ring_ends_with_all_sums_everywhere() -> None:
    states = ring(5)
    assert len(states) == 1 + 2 * 4
    assert states[-1] == [[5] * 5] * 5


def test_exchanges_are_as_long_as_the_communication() -> None:
    sent = Traffic(tensor=1e9, sequence=2e9, context=0, expert=0, pipeline=3e9, data=16e9)
    ways = {"tensor_parallel": 8, "pipeline_parallel": 4, "data_parallel": 2}
    parts = exchanges(sent, H100, {"data": 100.0}, **ways)
    taken = communication_seconds(sent, H100, **ways)
    assert taken is not None
    assert list(parts) == ["tensor", "pipeline", "data"]
    assert parts["tensor"].seconds == taken.tensor + taken.sequence
    assert parts["tensor"].sent == 3e9
    assert [part.others for part in parts.values()] == [7, 2, 1]
    assert [part.inside for part in parts.values()] == [True, False, False]
    assert parts["data"].seconds == parts["data"].visible == 100  # seen for longer than sent
    with pytest.raises(ValueError, match="links of A are not known"):
        exchanges(sent, Accelerator("A", 80e9), {})


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp8_e4m3"])
def test_updates_move_a_copy_once_they_pass_half_the_spacing(name: str) -> None:
    known = FORMATS[name]
    half = half_spacing(known, 1.0)
    assert updates_to_move(known, 1.0, 2 * half) == 1
    assert updates_to_move(known, 1.0, half / 3) == 4  # three make the tie, which goes back
    assert updates_to_move(known, 1.0, 1e-30) == 0


def test_the_window_is_where_scaling_gives_back_something() -> None:
    fp16 = FORMATS["fp16"]
    low, high = gradient_window(fp16, 1024)
    assert scaled_back(fp16, low, 1024) == 0 < scaled_back(fp16, 1.01 * low, 1024)
    assert scaled_back(fp16, 0.999 * high, 1024) < math.inf == scaled_back(fp16, high, 1024)


def test_stored_counts_places_from_what_the_format_holds() -> None:
    bf16 = FORMATS["bf16"]
    assert stored(bf16, 0.1, steps=1) == bf16.neighbours(0.1)[1]
    assert stored(bf16, 1e39, steps=3) == math.inf


def test_below_the_smallest_share_no_text_is_enough() -> None:
    least = smallest_share()
    assert over_training(1.0001 * least) > 1e6
    with pytest.raises(ValueError, match="never gets to the same loss"):
        over_training(0.9999 * least)


def test_a_law_knows_the_sizes_around_its_best_one() -> None:
    low, high = sizes_known(1e21, "hoffmann")
    best = compute_optimal(1e21, "hoffmann")
    assert low < best.parameters < high
    assert tokens_for_size(best.parameters, 1e21) == pytest.approx(best.tokens)
    assert sizes_known(1e30, "llama3") == (math.inf, math.inf)
    for law in LAWS:
        low, high = sizes_known(1e30, law)  # far more work than any law has seen
        assert low == math.inf or low > high
