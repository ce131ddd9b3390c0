"""Chapter 08's panel: what each control changes, and what it refuses."""

import re
from html import unescape

import pytest

from llmtrain_helpers import training_interval, units
from llmtrain_helpers.panels import PANELS, plan_panel
from tests.panel_code import value_of
from tests.plan.cases import H100, plan_of


def text_of(panel) -> str:
    return unescape(panel.status.value + panel.html)


def offers_of(panel) -> list[str]:
    return [button.description for button in panel.advice.children]


@pytest.mark.parametrize(
    ("control", "value", "said"),
    [
        ("model", "Llama-3.1-70B", "does not fit"),
        ("sequence_length", 4096, "25.1 days"),
        ("chip", "A100 80GB SXM", "65.8 days"),
        ("num_gpus", 128, "12.6 days"),
        ("num_gpus", 100, "Batch 512 is not divisible by 100 replicas, which GPUs 100"),
        ("tensor_parallel", 8, "9.10 GB"),
        ("pipeline_parallel", 4, "3/35 = 8.57 %"),
        ("pipeline_parallel", 5, "each takes Pipeline stages 5"),
        ("context_parallel", 2, "30.4 GB"),
        ("zero_stage", 2, "tight</b>: it fits on paper only, with 5.42 GB free, where 17.5"),
        ("gradients", "whole", "74.6 GB"),
        ("tokens", "2T", "50.5 days"),
        ("global_batch_size", 500, "not divisible"),
        ("micro_batch_size", 2, "does not fit"),
        ("recipe", "bf16_fp32_grads", "59.0 GB"),
        ("recompute", "full", "16.9 GB"),
        ("price", 5.0, "$194 thousand"),
        ("days", "20", "too late: you have 20 days"),
        ("days", 25, "perhaps: you have 25 days"),
        ("flops_per_gpu", "420T", "24.9 days of computing; with stops 27 to 37 days"),
        ("flops_per_gpu", "400e12", "400 TFLOP/s each"),
        ("flops_per_gpu", 420, "below 10⁹ FLOP/s"),
        ("flops_per_gpu", "2000T", "more than the whole peak"),
        ("seconds_per_iteration", "8.0", "22.1 days of computing"),
        ("config", "/no/such/file.json", "is no file: give the path of a config.json"),
    ],
)
def test_the_panel_follows_each_control(control: str, value, said: str) -> None:
    panel = plan_panel()
    before = text_of(panel)
    assert "25.2 days" in before
    panel.controls[control].value = value
    assert text_of(panel) != before
    assert said in text_of(panel)


def test_the_panel_plans_a_model_of_ones_own(tmp_path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "num_hidden_layers": 16}', "utf-8")
    panel = plan_panel()
    panel.controls["config"].value = str(path)
    assert "3.50 billion" in text_of(panel)
    assert f"read_config({str(path)!r}" in text_of(panel)


def test_the_panel_escapes_what_is_typed() -> None:
    panel = plan_panel()
    panel.controls["config"].value = "<img src=x>"
    assert "<img" not in panel.status.value + panel.html


def test_the_panels_advice_is_taken_by_a_click_and_held_against_before() -> None:
    panel = plan_panel()
    panel.preset.value = "70B on 8 H100"
    [offer] = panel.advice.children
    assert offer.description.startswith("ZeRO stage 2 and GPUs 32: saves 92.6 GB")
    assert "sends 1.71 TB more a step, takes 820 days" in offer.description
    assert "at the lowest price. Then it fits:" in text_of(panel)
    offer.click()
    assert (panel.values()["num_gpus"], panel.values()["zero_stage"]) == (32, 2)
    assert "<b>fits</b>," in text_of(panel)
    assert "(dashed: 2,800 days to 10 years)" in text_of(panel)
    assert "stroke-dasharray" in panel.html


def test_the_panel_prices_what_it_advises() -> None:
    panel = plan_panel()
    panel.set(micro_batch_size=4, zero_stage=0)
    first, second = offers_of(panel)
    assert re.match(r"ZeRO stage 3: saves \d+ GB on each GPU, -2.43 % GPU-h", first)
    assert "% GPU-hours, sends" in first
    assert re.match(r"Micro-batch 1: saves \d+ GB .* \+6.49 % GPU-hours, sends", second)
    assert "each takes those before it, too. Then it fits" in text_of(panel)
    panel.advice.children[1].click()  # both changes
    values = panel.values()
    assert (values["zero_stage"], values["micro_batch_size"]) == (3, 1)
    panel.set(num_gpus=8)
    assert "+6.95 % GPU-hours" in offers_of(panel)[0]
    panel.set(num_gpus=64, zero_stage=0, recompute="full", recipe="bf16")
    assert offers_of(panel)[0].endswith("on each GPU, -1.75 % GPU-hours")
    panel.set(chip="MI300X", micro_batch_size=16)  # its links are not known
    assert all("GPU-hours" not in offer for offer in offers_of(panel))


def test_advice_is_there_too_where_it_is_tight_or_late() -> None:
    panel = plan_panel()
    assert offers_of(panel) == ["Tokens 850B: in time even as a first run"]
    assert "there is time, but perhaps not for a first run:" in text_of(panel)
    panel.set(tokens=85 * 10**10)
    assert offers_of(panel) == []
    assert "It fits, and there is time: no advice." in text_of(panel)
    panel.set(zero_stage=2, tokens=10**12)
    assert offers_of(panel)[0].startswith("ZeRO stage 3: saves 15.8 GB")
    panel.set(zero_stage=3, tokens=3 * 10**12)
    tokens, gpus = offers_of(panel)
    assert tokens == "Tokens 1T: in time, 120 for each parameter"
    assert gpus.startswith("GPUs 256: 16 to 22 days, the same GPU-hours")
    panel.advice.children[1].click()
    assert "in time: you have 30 days" in text_of(panel)


@pytest.mark.parametrize("rate", [0, 420e12])
def test_a_plan_that_ends_on_the_last_day_is_in_time(rate: float) -> None:
    panel, plan = plan_panel(), plan_of(accelerator=H100, flops_per_gpu=rate or None, zero_stage=3)
    panel.set(flops_per_gpu=rate, days=plan.days_with_stops.greatest)
    assert "✓ in time: you have" in text_of(panel)
    assert "It fits, and there is time" in text_of(panel)
    sooner = [] if rate else ["Tokens 830B: in time even as a first run"]
    assert offers_of(panel) == sooner
    panel.set(days=plan.days_with_stops.least)
    assert "○ perhaps: you have" in text_of(panel)
    assert "To be in time at the slow end, too, one of these:" in text_of(panel)
    panel.set(days=0.999 * plan.days_with_stops.least)
    assert "✗ too late: you have" in text_of(panel)


def test_a_first_run_that_ends_on_the_last_day_needs_no_fewer_tokens() -> None:
    panel = plan_panel()
    panel.set(days=plan_of(accelerator=H100, zero_stage=3).first_run.greatest)
    assert ">✓ a first run<" in text_of(panel)
    assert "A first run may" not in text_of(panel)
    assert "It fits, and there is time: no advice." in text_of(panel)


def test_gpus_that_end_on_the_last_day_are_enough() -> None:
    panel = plan_panel()
    panel.set(days=plan_of(accelerator=H100, num_gpus=128, zero_stage=3).days_with_stops.greatest)
    assert offers_of(panel)[1].startswith("GPUs 128: ")


@pytest.mark.parametrize("name", PANELS["plan"].presets)
def test_what_is_offered_does_what_it_says(name: str) -> None:
    """Every offer that is taken gives a picture; the last one a plan that fits."""
    panel, values = PANELS["plan"], PANELS["plan"].presets[name]
    answer = panel.answer(values)
    for _, change in answer.offers:
        assert panel.answer({**values, **change}).html
    if answer.html and answer.offers:
        last = {**values, **answer.offers[-1][1]}
        assert "✓ fits" in panel.answer(last).html


def test_a_still_lists_the_advice_that_buttons_give() -> None:
    still = PANELS["plan"].still()
    assert "<ol><li>ZeRO stage 2 and GPUs 32: saves" in still


def test_counted_and_estimated_stand_apart() -> None:
    tables = re.findall(r"<table.*?</table>", PANELS["plan"].render())
    counted, estimated, step = tables
    assert "matrix products" in step
    assert "not hidden" not in step
    assert ">parameters<" in counted
    assert "likely" not in counted
    assert "memory" not in estimated
    assert ">least<" in estimated
    known = PANELS["plan"].render(flops_per_gpu=420e12)
    assert ">least<" not in known
    assert ">24.9 days<" in known


def test_only_one_measurement_is_taken() -> None:
    panel = PANELS["plan"]
    both = {**panel.default, "flops_per_gpu": 4e14, "seconds_per_iteration": 8.0}
    assert panel.answer(both).problem == ("Give Measured rate or Measured step, not both.")
    assert "flops_per_gpu" in panel.shown(panel.default)
    assert "flops_per_gpu" not in panel.shown(both)
    assert "gradients" not in panel.shown({**panel.default, "zero_stage": 1})


def test_the_notebooks_answers_to_the_panels_tasks() -> None:
    panel = PANELS["plan"]
    pipe = dict(panel.presets["A pipeline of 4 stages"])
    assert "27.3 %" in panel.render(**pipe)
    assert "<b>34 to 46 days</b>" in panel.render(**pipe)
    larger = panel.render(**{**pipe, "global_batch_size": 512})
    assert "8.57 %" in larger
    assert "<b>28 to 38 days</b>" in larger
    eight = {**pipe, "global_batch_size": 512, "pipeline_parallel": 8}
    assert "9.86 %" in panel.render(**eight)
    assert "<b>35 to 47 days</b>" in panel.render(**eight)
    assert "<b>27 to 37 days</b>" in panel.render(flops_per_gpu=420e12)
    assert "perhaps" in panel.render(flops_per_gpu=420e12)


def test_the_panels_code_gives_what_it_shows() -> None:
    panel = plan_panel()
    for name in panel.presets:
        if name != "your own":
            panel.preset.value = name
            if panel.status.value:  # refused
                continue
            plan = value_of(panel.html)
            assert f"<b>{units.gigabytes(plan.memory.total)}</b>" in text_of(panel)
            assert f">{units.duration(plan.seconds.likely)}<" in text_of(panel)


def test_the_share_in_the_picture_is_that_of_the_whole_step() -> None:
    """A pipeline that waits less shows a larger share and fewer days."""
    p = PANELS["plan"]
    few = p.presets["A pipeline of 4 stages"]
    shares = []
    for batch in (128, 512):
        html = p.render(**{**few, "global_batch_size": batch})
        shares.append(int(re.search(r"(\d+)–\d+ % with idle", html)[1]))
    assert shares[1] > shares[0]


def test_the_panel_tells_a_first_run_of_03s_interval() -> None:
    panel, plan = PANELS["plan"], plan_of(accelerator=H100)
    span = training_interval(1e12, 8_030_261_248, 64, 989.5e12)
    assert plan.rough.greatest == pytest.approx(span.greatest)
    assert "A first run may take up to 35 days" in panel.render()
    assert ">○ a first run<" in panel.render()
    assert "A first run may" not in panel.render(days=40)
    assert "A first run may" not in panel.render(days=10)
    assert "A first run may" not in panel.render(flops_per_gpu=420e12)


def test_no_measurement_says_so() -> None:
    control = PANELS["plan"].controls["flops_per_gpu"]
    assert control.echo(0) == "= not measured"
    assert control.echo(4e14) == "= 400 trillion FLOP/s"


@pytest.mark.parametrize("chip", ["V100 16GB SXM2", "T4"])
def test_the_panels_code_runs_for_chips_without_bf16(chip: str) -> None:
    panel = plan_panel()
    panel.set(chip=chip, model="gpt2", sequence_length=1024)
    cost = value_of(panel.html).cost.likely
    assert units.dollars(cost) in text_of(panel)


def test_the_panel_spreads_experts_where_there_are_any() -> None:
    panel = PANELS["plan"]
    mixture = panel.presets["A mixture of experts"]
    assert "expert_parallel" in panel.shown(mixture)
    assert "expert_parallel" not in panel.shown(panel.default)
    assert "expert_parallel=8" in panel.answer(mixture).html
    assert "<b>fits</b>" in panel.answer(mixture).html
    whole = panel.answer({**mixture, "expert_parallel": 1}).html
    assert "<b>does not fit</b>" in whole
    odd = panel.answer({**mixture, "expert_parallel": 3})
    assert odd.problem == "Experts 8 is not divisible by Expert parallel 3."
    assert "expert_parallel" not in panel.answer(panel.default).html
    missing = {**panel.default, "config": "no such file.json"}
    assert "expert_parallel" not in panel.shown(missing)
