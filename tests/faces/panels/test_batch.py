"""Chapter 04's panel: what each control changes, and what it refuses."""

import re

import pytest

from llmtrain_course.batch.formulas import tried_micro_batches
from llmtrain_course.batch.handles import BLOOM_PASS, Setting, bloom_steps
from llmtrain_course.panels import HANDLES, PANELS, batch_panel
from llmtrain_helpers import fit_step_time
from tests.faces.svg import pictures


@pytest.mark.parametrize(
    ("control", "value", "text"),
    [
        ("num_gpus", 32, "131 thousand tokens"),
        ("num_gpus", 100, "4 GPUs of 100 have nothing to do</b>, and you pay for all of them."),
        ("num_gpus", 9, "1 GPU of 9 has nothing to do</b>, and you pay for all of them."),
        ("num_gpus", 4, "A replica needs 8 GPUs, but there are only 4."),
        ("num_gpus", 0, "GPUs: 0 is outside"),
        ("tensor_parallel", 8, "from one replica"),
        ("tensor_parallel", 2, "from 4 replicas"),
        ("pipeline_parallel", 1, "from 4 replicas"),
        ("context_parallel", 2, "from one replica"),
        ("accumulation", "8", "(at the start: 65.5 thousand): 32 sequences"),
        ("micro_batch_size", "1", "32.8 thousand tokens"),
        ("sequence_length", "8k", "128 thousand tokens"),
        ("tokens", 0, "Tokens: 0 is outside"),
        ("tokens", "1M", ">16<"),
    ],
)
def test_the_panel_follows_each_control(control: str, value, text: str) -> None:
    panel = batch_panel()
    assert "<b>65.5 thousand tokens</b> per step: 16 sequences" in panel.html
    panel.act("write", control, value)
    assert text in panel.answer["status"] + panel.html


@pytest.mark.parametrize("name", PANELS["batch"].presets)
def test_the_panels_numbers_agree_with_each_other(name: str) -> None:
    values = PANELS["batch"].presets[name]
    batch = Setting(**values).batch
    assert batch.passes == batch.updates * values["accumulation"]
    assert (batch.updates - 1) * batch.tokens < values["tokens"]
    assert values["tokens"] <= batch.updates * batch.tokens
    html = PANELS["batch"].render(**values)
    for number in (batch.tokens, batch.updates, batch.passes, batch.replicas):
        assert f">{number:,}<" in html


def test_what_does_not_divide_is_drawn_and_no_older_preset() -> None:
    panel = batch_panel()
    panel.set(**panel.presets["A split that doesn't divide"])
    assert "96" not in re.sub("<[^>]*>", "", panel.html.split("The numbers")[0])  # the task
    [grid, *_] = pictures(panel.html)
    assert sum(x.words.endswith(": left over") for x in grid.of_kind("rect")) == 4
    assert "100 GPUs = TP 8 × PP 1 × DP 12 + 4 left over" in panel.html
    assert "A1" in panel.html
    panel.act("write", "num_gpus", 104)
    assert "from 13 replicas" in panel.html
    assert panel.answer["status"] == ""


def test_the_405b_says_that_its_waiting_is_of_a_plain_schedule() -> None:
    values = PANELS["batch"].presets["Llama 3.1 405B, stages not interleaved"]
    html = PANELS["batch"].render(**values)
    assert "In this plain schedule, a stage waits for <b>48.4%</b>" in html
    assert "16.8 million tokens" in html
    assert "interleave" not in PANELS["batch"].render(**PANELS["batch"].presets["BLOOM-176B"])


def test_the_fixed_part_and_the_rate_are_those_that_fit() -> None:
    tried = tried_micro_batches()
    sizes = [row["micro_batch_size"] for row in tried]
    turns = [2048 // (4 * b) + 11 for b in sizes]
    seconds = [row["seconds_per_iteration"] for row in tried]
    fitted = fit_step_time(sizes, [s / k for s, k in zip(seconds, turns, strict=True)])
    assert BLOOM_PASS.overhead == pytest.approx(fitted.overhead, rel=1e-3)
    assert BLOOM_PASS.rate == pytest.approx(fitted.rate, rel=1e-3)
    for step, took in zip(bloom_steps(), seconds, strict=True):
        assert step.measured == took
        assert sum(step.parts) == pytest.approx(took, rel=0.04)


@pytest.mark.parametrize(("gpus", "stages"), [(16, 3), (24, 4), (8, 4)])
def test_the_panel_and_the_handle_say_the_same_of_idle_gpus(gpus: int, stages: int) -> None:
    """GPUs that no replica uses are a waste, but the split is possible."""
    panel = batch_panel()
    panel.set(num_gpus=gpus, tensor_parallel=4, pipeline_parallel=stages)
    drawn = HANDLES["gpu_split"].render(gpus=gpus, tensor=4, pipeline=stages)
    for words in ("nothing to do", "A replica needs"):
        assert (words in panel.html) == (words in drawn)
    assert ("Not possible" in panel.html) == (gpus < 4 * stages)
