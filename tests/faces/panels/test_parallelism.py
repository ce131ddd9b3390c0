"""Chapter 08's panel: what each control changes, and what it refuses."""

from dataclasses import replace

import pytest

from llmtrain_course.panels import HANDLES, PANELS, parallelism_panel
from llmtrain_course.parallelism.handles import Setting, planned
from llmtrain_course.parallelism.pictures import of_first_stage, sending
from llmtrain_helpers import plan_run, published, units

LLAMA = published.architecture("Llama-3.1-70B", 8192)
SPLIT = {"tensor_parallel": 8, "zero_stage": 1, "recompute": "full"}
PLAN = plan_run(LLAMA, published.accelerator("H100"), 64, 1e12, 256, **SPLIT)


@pytest.mark.parametrize(
    ("control", "value", "text"),
    [
        ("tensor_parallel", 4, "A step takes <b>38 s</b> (dashed: 46 s)"),
        ("tensor_parallel", 16, "8 key-value heads aren&#x27;t divisible"),
        ("pipeline_parallel", 2, "waiting"),
        ("num_gpus", 128, "DP 16"),
        ("num_gpus", 100, "GPUs 100 don&#x27;t form whole replicas, because each one needs Tensor"),
        ("model", "Llama-3.1-8B", "A step takes"),
        ("zero_stage", 3, "data: 1"),
        ("recompute", "none", "3.01 TB"),
        ("chip", "A100 80GB SXM", "dashed: 46 s"),
        ("micro_batch_size", 2, "dashed: 46 s"),
        ("micro_batch_size", 3, "Batch 256 is not divisible by 8 replicas"),
        ("global_batch_size", 512, "(dashed: 46 s)"),
        ("sequence_length", "4k", "dashed: 46 s"),
        ("context_parallel", 2, "context: "),
    ],
)
def test_the_panel_follows_each_control(control: str, value, text: str) -> None:
    panel = parallelism_panel()
    assert "A step takes <b>46 s</b>, <b>31%</b> of it exposed sending" in panel.html
    panel.act("write", control, units.read(value) if value == "4k" else value)
    assert text in panel.answer["status"] + panel.html


def test_experts_pieces_and_gradients_are_asked_for_where_there_are_any() -> None:
    panel = PANELS["parallelism"]
    hidden = {"expert_parallel", "interleave", "gradients"}
    assert not hidden & set(panel.visible_controls(panel.default))
    piped = {**panel.default, "pipeline_parallel": 4, "zero_stage": 2}
    assert hidden & set(panel.visible_controls(piped)) == {"interleave", "gradients"}
    mixed = panel.presets["A mixture of experts"]
    assert "expert_parallel" in panel.visible_controls(mixed)
    assert "expert: " in panel.render(**mixed)
    left_over = {**panel.default, "expert_parallel": 4, "interleave": 2}
    assert planned(Setting(**left_over)).split == planned(Setting(**panel.default)).split
    pieces = planned(Setting(**{**piped, "interleave": 2})).step.bubble
    assert pieces < planned(Setting(**piped)).step.bubble


def test_what_one_should_have_seen_is_what_is_seen() -> None:
    panel = PANELS["parallelism"]

    def seconds(preset: str, **change: object) -> tuple[str, dict[str, float]]:
        plan = planned(Setting(**{**panel.presets[preset], **change}))
        return units.seconds(plan.step.total), plan.step.parts() | {"held": plan.memory.total}

    assert seconds("70B on 64 H100s")[0] == "46 s"
    two = {"tensor_parallel": 4, "pipeline_parallel": 2}
    assert seconds("70B on 64 H100s", **two)[0] == "39 s"
    whole_model, parts = seconds("70B on 64 H100s", tensor_parallel=2)
    assert (whole_model, round(parts["held"] / 1e9)) == ("34 s", 166)
    sharded, parts = seconds("70B on 64 H100s", tensor_parallel=2, zero_stage=3)
    assert (sharded, round(parts["held"] / 1e9)) == (whole_model, 34)
    whole, parts = seconds("70B on 64 H100s", tensor_parallel=1, zero_stage=3)
    assert (whole, parts["held"] < 80e9) == ("31 s", True)
    whole_model, parts = seconds("A small model, cut fine")
    assert (whole_model, units.seconds(parts["kernel_launch"])) == ("9.9 s", "1.7 s")
    assert units.seconds(parts["tensor"]) == "3.2 s"
    assert seconds("A small model, cut fine", tensor_parallel=1)[0] == "5.1 s"


def test_the_step_is_told_as_others_software_would_take_it() -> None:
    plan = planned(Setting())
    others = plan.seconds_per_iteration
    assert others.least < plan.step.total < others.greatest
    assert "the step takes 40 s to 77 s." in PANELS["parallelism"].render()


def test_sums_that_cross_the_network_are_told_beside_those_that_do_not() -> None:
    near = HANDLES["neighbours"]
    sentence = "They need 92 s, instead of 14 s inside a node."
    assert sentence in near.render(node="are replicas")
    assert "Over 99% of its bytes" in near.render(pipeline_parallel=8)


def test_gradients_travel_on_a_card_for_each_gpu_of_a_node_that_is_in_their_ring() -> None:
    near = HANDLES["neighbours"]
    card, links = 0.92 * 50, 0.7 * 450
    for tensor, cards in ((8, "1 card"), (4, "2 cards"), (2, "4 cards"), (1, "8 cards")):
        rate = units.digits(min(int(cards[0]) * card, links), 2)
        assert f"{rate} GB/s on {cards}" in near.render(tensor_parallel=tensor)
    assert ">92 s, 46 GB/s on 1 card<" in near.render(node="are replicas")


@pytest.mark.parametrize(
    ("model", "ratio"), [("Llama-3.2-1B", 2.9), ("Llama-3.2-3B", 2.56), ("Llama-3.1-70B", 1.47)]
)
def test_sharing_costs_least_in_the_largest_model(model: str, ratio: float) -> None:
    """What the panel finds by hand, for eight GPUs over one."""

    def fastest(tensor: int) -> float:
        setting = Setting(model, tensor_parallel=tensor)
        plans = [planned(replace(setting, zero_stage=zero)) for zero in (1, 3)]
        return min(plan.step.total for plan in plans if plan.fits)

    assert fastest(8) / fastest(1) == pytest.approx(ratio, abs=0.01)
    html = HANDLES["sharing"].render(model=model)
    assert f"<b>{units.digits(ratio, 2)}× as long</b>" in html
    assert f"{units.seconds(fastest(8))} instead of {units.seconds(fastest(1))}" in html


def test_a_split_that_cannot_be_is_refused_by_what_is_wrong_with_it() -> None:
    panel = PANELS["parallelism"]
    three = panel.answer({**panel.default, "tensor_parallel": 3})
    assert three.problem == ("Tensor parallel 3 doesn't divide the model's 64 attention heads.")
    assert [label for label, _ in three.offers] == ["Tensor parallel: 2", "Tensor parallel: 4"]
    stages = panel.answer({**panel.default, "pipeline_parallel": 3}).problem
    assert stages.endswith("each one needs Tensor parallel 8 × Pipeline stages 3 = 24.")


def test_experts_and_those_that_only_share_gradients_are_both_drawn() -> None:
    panel = PANELS["parallelism"]
    html = panel.answer(panel.presets["A mixture of experts"]).html
    for part in ("expert", "data"):
        assert f"shares {part} with the first" in html


# --- what's sent


def test_what_is_seen_of_sending_is_what_the_step_takes_longer() -> None:
    for name, part in sending(PLAN).items():
        assert part.visible == PLAN.step.parts()[name] <= part.seconds
    assert set(sending(PLAN)) == {"tensor", "data"}
    unknown = plan_run(LLAMA, published.accelerator("RTX 4090"), 64, 1e9, 64, **SPLIT)
    with pytest.raises(ValueError, match="we don't know the links of RTX 4090"):
        sending(unknown)


def test_gpu_1_sends_what_the_first_stage_sends() -> None:
    """Activations to the next stage, once per pass; a middle stage also sends gradients back."""
    for stages in (2, 4, 8):
        plan = PLAN.replace(tensor_parallel=2, pipeline_parallel=stages)
        part = of_first_stage(plan, sending(plan))["pipeline"]
        passes = int(plan.split.accumulation_steps)
        assert part.sent == passes * 2 * 8192 * 8192 / 2
    assert of_first_stage(PLAN, sending(PLAN)) == sending(PLAN)
    middle = sending(plan)["pipeline"]
    assert (middle.sent / part.sent, middle.seconds / part.seconds) == (2, 2)
