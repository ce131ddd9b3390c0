"""Chapter 05's panel: what each control changes, and what it refuses."""

from html import unescape

import pytest

from llmtrain_helpers import FORMATS
from llmtrain_helpers.drawings.precision import fates
from llmtrain_helpers.panels import PANELS, precision_panel
from tests.pages import words

bf16, fp16 = FORMATS["bf16"], FORMATS["fp16"]


PANEL = PANELS["precision"]


def told(preset: str, **values: object) -> str:
    return PANEL.answer({**PANEL.presets[preset], **values}).html


@pytest.mark.parametrize(
    ("preset", "values", "said"),
    [
        ("A number in bf16", {}, "<b>0.0977 % off</b>: bf16 has no 0.1"),
        ("A number in bf16", {"steps": -2}, "<b>2 places below</b> the number stored for 0.1, and"),
        ("A number in bf16", {"number": 0.5}, "<b>Exact</b>: 0.5 is one"),
        ("A number in bf16", {"format": "fp16", "number": 70000}, "more than fp16 holds"),
        ("A number in bf16", {"format": "fp16", "number": 1e-6}, "subnormal"),
        ("A number in bf16", {"format": "fp16", "number": 1e-9}, "less than half of fp16"),
        (
            "An update that is lost",
            {},
            "what is below half the spacing, 0.003906, is rounded away.",
        ),
        (
            "An update that is lost",
            {"update": 2**-8},
            "exactly half the spacing is a tie; this one goes to 1.",
        ),
        ("An update that is lost", {}, "the tie decides: here</td>"),
        ("An update that is lost", {"weight": 1.0078125}, "kept</td>"),
        ("A number in bf16", {"number": 1e39}, "<b>infinity</b>: 10³⁹ is more"),
        (
            "An update that is lost",
            {"update": 0.005},
            "<b>Kept, rounded</b>: bf16 has not quite this sum, and stores the nearest "
            "that it has, 1.0078125.",
        ),
        ("An update that is lost", {"update": 1}, "<b>Kept</b>: bf16 has the sum, 2."),
        (
            "An update that is lost",
            {"format": "fp8_e4m3", "weight": 400, "update": 100},
            "<b>Overflow</b>: 384 + 100 in fp8_e4m3 overflows, for the largest number "
            "of fp8_e4m3 is 448.",
        ),
        ("A gradient that vanishes", {}, "<b>Lost</b>: in fp16 at S = 1 whatever"),
        ("A gradient that vanishes", {"loss_scale": 4}, "1.49 × 10⁻⁸"),
        ("A gradient that vanishes", {"loss_scale": 4}, "<b>Kept, with few digits</b>"),
        ("A gradient that vanishes", {"loss_scale": 4096}, "with few digits</b>"),
        ("A gradient that vanishes", {"loss_scale": 8192}, "all of fp16's digits</b>"),
        (
            "A gradient that vanishes",
            {"loss_scale": 2**22},
            "<b>Step skipped</b>: the largest gradients of the picture overflow, "
            "0.074 % of them. The one you chose: <b>Kept, with all",
        ),
        (
            "A gradient that vanishes",
            {"gradient": 1e4, "loss_scale": 8},
            '0px"><b>Step skipped</b>: in fp16 at S = 8 whatever is past',
        ),
        ("8B, no sharding", {}, "<b>128 GB</b>"),
        ("8B, no sharding", {"recipe": "bf16_both_grads"}, "161 GB"),
        ("8B, no sharding", {"recipe": "bf16_fp32_grads"}, "<b>145 GB</b>"),
        ("8B, no sharding", {"recipe": "fp8", "chip": "H100 SXM"}, "<b>104 GB</b>"),
        ("8B, no sharding", {"recipe": "pure_bf16"}, "fits"),
        ("8B, no sharding", {"zero_stage": 1}, "fits"),
        ("8B, no sharding", {"model": "gpt2"}, "1.99 GB"),
        ("8B, no sharding", {"chip": "MI300X"}, "fits"),
        ("8B, no sharding", {"data_parallel": 64}, "with any number of replicas"),
        ("70B, ZeRO 3", {"data_parallel": 8}, "15 replicas would do"),
        ("70B, ZeRO 3", {"zero_stage": 2}, "with any number of replicas"),
    ],
)
def test_the_panel_follows_each_control(preset: str, values: dict, said: str) -> None:
    assert said in told(preset, **values)


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
    assert f"Recipe {recipe!r} computes in {needed}, and the" in answer.problem
    assert f"{chip} knows no {needed}." in answer.problem
    assert ("Recipe: fp32", {"recipe": "fp32"}) in answer.offers
    assert answer.offers[0] == ("Accelerator: H100 SXM", {"chip": "H100 SXM"})
    assert needed not in {change.get("recipe") for _, change in answer.offers}
    for _, change in answer.offers:
        shown = PANEL.answer({**start, "recipe": recipe, "chip": chip, **change})
        assert "model states" in shown.html


@pytest.mark.parametrize("written", ["2**13", "2^13", " 2 ^ 13 ", "8,192", 8192])
def test_a_loss_scale_is_read_as_a_power_of_two_too(written: object) -> None:
    control = PANEL.controls["loss_scale"]
    assert control.read(written) == 8192
    for wrong in ("2**41", "3**2/10", "2^", "2**-1"):
        with pytest.raises(ValueError, match="Loss scale S"):
            control.read(wrong)


def test_a_large_loss_scale_is_shown_as_the_power_that_the_picture_names() -> None:
    control = PANEL.controls["loss_scale"]
    for stop in control.stops:
        assert control.read(control.write(stop)) == stop
    assert control.write(2**22) == "2^22"
    assert [control.write(x) for x in (8192, 3_000_000)] == ["8,192", "3M"]
    panel = precision_panel()
    panel.controls["look"].value = "a loss scale"
    panel.controls["loss_scale"].value = "2**22"
    assert panel.controls["loss_scale"].input.value == "2^22"
    shown = unescape(panel.html)
    assert "at S = 2²²" in shown
    assert "scaled by 2²²" in shown
    assert "at S = 4,194,304" not in shown


def test_a_number_past_all_names_is_written_by_its_power_of_ten() -> None:
    panel = precision_panel()
    field = panel.controls["number"]
    for said, shown in (("1e39", "1e39"), (-(10**39), "-1e39"), ("3.4e38", "3.4e38")):
        field.value = said
        assert (field.input.value, field.echo.value) == (shown, "")
    assert "round(3.4e+38)" in unescape(panel.html)
    field.value = "1e50"
    assert "Number: '1e50' lies outside -1e40 to 1e40" in unescape(panel.status.value)


def test_steps_begin_anew_at_another_number_or_format() -> None:
    panel = precision_panel()
    steps = panel.controls["steps"]
    steps.value = 3
    assert "<b>3 places above</b>" in panel.html
    panel.controls["number"].value = "a lot"  # refused: nothing has changed
    assert steps.value == 3
    panel.controls["number"].value = 1
    assert (steps.value, steps.input.value, steps.slider.value) == (0, "0", 8)
    assert "<b>Exact</b>" in panel.html
    steps.value = -1
    panel.controls["format"].value = "fp16"
    assert panel.values()["steps"] == 0
    panel.set(number=2, steps=5)  # by code both may be said at once
    assert "<b>5 places above</b>" in panel.html


def test_the_stops_at_which_updates_are_kept_are_those_of_the_page() -> None:
    def first(**values: object) -> float:
        stops = PANEL.controls["update"].stops
        shown = ((d, told("An update that is lost", update=d, **values)) for d in stops)
        return next(d for d, html in shown if "<b>Lost" not in html)

    assert (first(), first(format="fp16")) == (0.005, 0.0005)
    assert "bf16 keeps 0.005" in words("05_precision")
    assert "fp16 0.0005" in words("05_precision")


def test_the_scales_at_which_a_gradient_comes_back_are_those_of_the_page() -> None:
    scales = PANEL.controls["loss_scale"].stops
    kept = [s for s in scales if fp16.round(1e-8 * s) > 0]
    whole = [s for s in scales if 1e-8 * s >= fp16.min_normal]
    over = [s for s in scales if fates(fp16, s)["overflow"]]
    assert (kept[0], whole[0], over[0]) == (4, 8192, 2**22)


def test_the_bits_that_flip_from_1_are_those_of_the_page() -> None:
    for steps, flipped in ((1, "1 bit flipped"), (-1, "8 bits flipped")):
        values = {**PANEL.default, "number": 1, "steps": steps}
        assert flipped in PANEL.render(before=PANEL.default, **values)
    assert "one bit flips" in words("05_precision")
    assert "eight do" in words("05_precision")


def test_few_controls_are_shown_at_once() -> None:
    for values in PANEL.presets.values():
        shown = PANEL.shown(values)
        assert len(shown) <= 6
        assert len([n for n in shown if PANEL.controls[n].stops]) <= 1


def test_another_view_begins_its_own_ghosts() -> None:
    panel = precision_panel()
    panel.controls["look"].value = "an update"
    assert "dashed" not in panel.html
    panel.controls["update"].value = 0.01
    assert "dashed: + 0.002" in panel.html
    panel.controls["steps"].slider.value += 1  # hidden, and about something else
    assert "<b>Kept" in panel.html
