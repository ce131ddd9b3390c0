"""Chapter 07's panel and handles: what they say, and what they refuse."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from llmtrain_course.communication import pictures
from llmtrain_course.communication.handles import STAGES, Setting, enough_tokens, last_backward
from llmtrain_course.communication.machine import exchange, pieces
from llmtrain_course.panels import HANDLES, PANELS, communication_panel
from llmtrain_helpers import plan_run, published, units

# --- the panel


@pytest.mark.parametrize(
    ("control", "value", "text"),
    [
        ("tokens", 2048, "<b>1.8 ms of that are exposed</b>, 1% of the step"),
        ("tokens", 2112, "and <b>all of it is hidden</b>, as it is from 2,112 tokens on."),
        ("passes", 8, "Each GPU sends <b>379 GB</b> in 1.2 s"),
        ("num_gpus", 8, "Each GPU sends <b>42.2 GB</b> in 0.13 s"),
        ("num_gpus", 1, "A single GPU doesn't have to send anything."),
        ("sharded", "nothing", "✗ 43.2 GB too much"),
        ("sharded", "the optimizer (ZeRO 1)", "Each GPU sends <b>31.6 GB</b> in 0.10 s"),
        ("model", "Llama-3.1-70B", "Each GPU sends <b>417 GB</b>"),
        ("chip", "A100 80GB SXM", "From 1,472 tokens on"),
        ("tokens", 12289, "be split into 2 equal sequences of up to 8,192."),
    ],
)
def test_the_panel_follows_each_control(control: str, value, text: str) -> None:
    panel = communication_panel()
    assert "Each GPU sends <b>47.4 GB</b> in 0.15 s. <b>79 ms of that are exposed" in panel.html
    panel.act("write", control, value)
    assert text in panel.answer["status"] + panel.html


@pytest.mark.parametrize(("sharded", "stage"), STAGES.items())
@pytest.mark.parametrize(("gpus", "passes"), [(64, 1), (8, 4)])
def test_the_panel_has_the_numbers_of_the_plan(sharded, stage, gpus: int, passes: int) -> None:
    plan = plan_run(
        published.architecture("Llama-3.1-8B", 1024),
        published.accelerator("H100"),
        gpus,
        1e9,
        gpus * passes,
        recompute="none",
        zero_stage=stage,
        keep_gradients=False,
    )
    values = {**PANELS["communication"].default, "sharded": sharded, "num_gpus": gpus}
    html = PANELS["communication"].render(**{**values, "passes": passes})
    assert f"Each GPU sends <b>{units.gigabytes(plan.traffic)}</b>" in html
    assert f"<b>{units.seconds(plan.step.data)} of that are exposed</b>" in html
    assert f"a step: {units.seconds(plan.step.total)}" in html
    assert f"weights {units.gigabytes(plan.memory.weights)}" in html
    with_page_08 = {"tensor_parallel": 1, "zero_stage": stage, "recompute": "none"}
    with_page_08 |= {"num_gpus": gpus, "global_batch_size": gpus * passes}
    others = PANELS["parallelism"]
    values = {**others.default, "model": "Llama-3.1-8B", "sequence_length": 1024, **with_page_08}
    assert f"A step takes <b>{units.seconds(plan.step.total)}</b>" in others.render(**values)


@given(
    st.sampled_from([*STAGES]),
    st.sampled_from([256, 1024, 2048, 8192, 24576]),
    st.integers(1, 64),
    st.sampled_from([1, 2, 8, 20, 512]),
)
def test_the_pieces_of_a_step_add_up_to_the_plans(sharded, tokens, passes, gpus) -> None:
    plan = Setting(num_gpus=gpus, tokens=tokens, sharded=sharded, passes=passes).plan
    parts, sent = pieces(plan), exchange(plan)
    assert sum(x.computing + x.exposed for x in parts) == pytest.approx(plan.step.total)
    assert sum(x.sending for x in parts) == pytest.approx(sent.seconds)
    assert sum(x.exposed for x in parts) == pytest.approx(plan.step.data, abs=1e-12)
    for part in parts:
        assert -1e-12 <= part.exposed <= part.sending + 1e-12
        assert part.sending - part.exposed <= part.computing + 1e-12


@pytest.mark.parametrize("preset", PANELS["communication"].presets)
def test_the_fewest_tokens_that_hide_it_are_the_fewest(preset: str) -> None:
    setting = Setting(**PANELS["communication"].presets[preset])
    enough = enough_tokens(setting.plan, setting.longest)
    plans = [replace(setting, tokens=tokens).plan for tokens in (enough - 64, enough)]
    assert [exchange(plan).visible < 1e-6 for plan in plans] == [False, True]


def test_some_pass_hides_everything_for_every_model() -> None:
    """On the chip whose network is slowest, compared with what it computes."""
    for model in PANELS["communication"].controls["model"].options:
        setting = Setting(str(model), "H800 SXM", sharded="nothing")
        assert (
            exchange(
                replace(setting, tokens=enough_tokens(setting.plan, setting.longest)).plan
            ).visible
            < 1e-6
        )


# --- handles


def test_the_time_line_says_why_the_step_waits() -> None:
    line = HANDLES["time_line"]
    assert "none of it is hidden" in line.render(messages=1)
    assert "All messages but the last are hidden" in line.render(messages=64)
    assert "Starting so many messages costs 23 ms, so they queue." in line.render(messages=512)
    assert "too few tokens to hide them" in line.render(tokens=2048)
    assert "Messages that have arrived: 4 of 8." in line.render(moment=60)


@pytest.mark.parametrize("tokens", HANDLES["time_line"].controls["tokens"].stops)
def test_the_time_line_is_drawn_to_its_end_whatever_is_moved_first(tokens: int) -> None:
    """The knob stands where the last message arrives, and that's where the picture says so."""
    line = HANDLES["time_line"]
    for messages in line.controls["messages"].stops:
        last = last_backward(tokens, messages)
        assert last.end <= pictures.LONGEST / 1e3
        assert f"{pictures.milliseconds(last.visible)}</text>" in line.render(
            tokens=tokens, messages=messages
        )


@pytest.mark.parametrize(
    ("written", "size"),
    [("512 KiB", 0.5), ("1 GiB", 1024), ("128 MiB", 128), ("0.25", 0.25), ("128 MB", 122.07)],
)
def test_a_message_is_read_with_any_unit_of_memory(written: str, size: float) -> None:
    assert HANDLES["message"].controls["size"].read(written) == size


@pytest.mark.parametrize("written", ["64 KiB", "16 GiB", "0.1"])
def test_a_message_that_nobody_measured_is_refused_in_the_fields_own_unit(written: str) -> None:
    with pytest.raises(ValueError, match=f"'{written}' is outside 0.125 to 8,192 MiB."):
        HANDLES["message"].controls["size"].read(written)
