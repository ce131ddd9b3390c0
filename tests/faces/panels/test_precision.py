"""Chapter 05's panel and handles: what each control changes, and what is refused."""

import pytest

from llmtrain_course.panels import HANDLES, PANELS
from tests.faces.svg import pictures
from tests.panel_code import sentence_of

PANEL = PANELS["precision"]


def render(preset: str, **values: object) -> str:
    return PANEL.answer({**PANEL.presets[preset], **values}).html


@pytest.mark.parametrize(
    ("preset", "values", "answer"),
    [
        ("8B, no sharding", {}, "<b>128 GB</b>"),
        ("8B, no sharding", {"recipe": "bf16_both_grads"}, "161 GB"),
        ("8B, no sharding", {"recipe": "bf16_fp32_grads"}, "<b>145 GB</b>"),
        ("8B, no sharding", {"recipe": "fp8", "chip": "H100 SXM"}, "<b>104 GB</b>"),
        ("8B, no sharding", {"recipe": "pure_bf16"}, "fits"),
        ("8B, no sharding", {"zero_stage": 1}, "fits"),
        ("8B, no sharding", {"zero_stage": 2}, "fits"),
        ("8B, no sharding", {"zero_stage": 3}, "fits"),
        ("8B, no sharding", {"model": "gpt2"}, "1.99 GB"),
        ("8B, no sharding", {"chip": "MI300X"}, "fits"),
        ("8B, no sharding", {"data_parallel": 64}, "however many replicas"),
        ("70B, ZeRO 3", {"data_parallel": 8}, "14 replicas would be enough"),
        ("70B, ZeRO 3", {"zero_stage": 2}, "however many replicas"),
    ],
)
def test_the_panel_follows_each_control(preset: str, values: dict, answer: str) -> None:
    assert answer in render(preset, **values)


@pytest.mark.parametrize(
    ("recipe", "chip", "needed"),
    [
        ("fp8", "A100 80GB SXM", "fp8"),
        ("bf16", "V100 32GB SXM2", "bf16"),
        ("pure_bf16", "T4", "bf16"),
    ],
)
def test_a_recipe_that_the_chip_cannot_compute_is_refused(
    recipe: str, chip: str, needed: str
) -> None:
    start = PANEL.presets["8B, no sharding"]
    answer = PANEL.answer({**start, "recipe": recipe, "chip": chip})
    assert f"Recipe {recipe!r} computes in {needed}, but the" in answer.problem
    assert f"{chip} doesn't list {needed}." in answer.problem
    assert ("Recipe: fp32", {"recipe": "fp32"}) in answer.offers
    assert answer.offers[0] == ("Accelerator: H100 SXM", {"chip": "H100 SXM"})
    assert needed not in {change.get("recipe") for _, change in answer.offers}
    for _, change in answer.offers:
        other = PANEL.answer({**start, "recipe": recipe, "chip": chip, **change})
        assert "model states" in other.html


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("eight_bits", {"value": 9}, "9. The next number up is 10."),
        ("eight_bits", {"value": 9.4}, "9.4 becomes 9. The next number up is 10."),
        ("eight_bits", {"value": 448}, "448. It's the largest number of eight bits."),
        (
            "lost_update",
            {"updates": 4},
            "weight it's 1.015625. In bf16 alone, it's 1, and its next update is lost.",
        ),
        ("lost_update", {"updates": 10, "update": 0.004}, "its next update counts as 0.00781."),
        ("lost_update", {"updates": 1000, "update": 0.004}, "it's 2, and its next update is lost."),
        (
            "lost_update",
            {"updates": 4, "format": "fp16"},
            "In fp16 alone, it's 1.0117188, and its next update counts",
        ),
        ("gradients", {"scale": 2**16}, "Fewer than 1% of these gradients become 0."),
        ("gradients", {"scale": 2**18}, "None of these gradients becomes 0."),
        ("gradients", {"scale": 2**24}, "The largest overflow, so this step is thrown away."),
        ("gradients", {"format": "bf16"}, "None of these gradients becomes 0."),
        (
            "stalled_sum",
            {"ones": 1024},
            "1,024 ones add up to 256. From here on, adding 1 changes nothing.",
        ),
        ("stalled_sum", {"ones": 128}, "128 ones add up to 128. Adding another 1 still counts."),
        ("stalled_sum", {"ones": 4096, "format": "fp16"}, "4,096 ones add up to 2,048."),
        ("parameter_bytes", {"recipe": "bf16, main weights"}, "16 bytes per parameter, 128 GB for"),
        ("parameter_bytes", {"recipe": "bf16, both gradients"}, "20 bytes per parameter, 160 GB"),
        ("slices", {"stage": 1}, "56.2 GB of 85.9 GB: it fits, with 29.7 GB left."),
        ("slices", {"gpus": 2, "stage": 1}, "80.3 GB of 85.9 GB: it fits, with 5.60 GB left."),
        ("slices", {"gpus": 2, "stage": 2}, "it fits, with 13.6 GB left."),
    ],
)
def test_a_handle_says_what_its_picture_shows(name: str, values: dict, sentence: str) -> None:
    assert sentence in sentence_of(HANDLES[name].render(**values))


def test_no_picture_stands_answered_when_the_page_opens() -> None:
    """Each is the state before the guess beside it: no update, one replica's whole bytes."""
    first = {name: HANDLES[name].render() for name in ("lost_update", "parameter_bytes", "slices")}
    assert "lost" not in sentence_of(first["lost_update"])
    update_weight = pictures(HANDLES["lost_update"].render(updates=1))[0].of_kind("line")
    assert len(pictures(first["lost_update"])[0].of_kind("line")) < len(update_weight)  # hatched
    assert "main weights 4" not in first["parameter_bytes"]
    assert "on the others" not in first["slices"]


def test_the_smallest_updates_that_arrive_are_half_the_spacing() -> None:
    control = HANDLES["lost_update"].controls["update"]

    def first(format: str) -> float:
        sentences = (
            (d, sentence_of(HANDLES["lost_update"].render(update=d, updates=1, format=format)))
            for d in control.stops
        )
        return next(d for d, sentence in sentences if "alone, it's 1," not in sentence)

    assert (first("bf16"), first("fp16")) == (0.004, 0.0005)
