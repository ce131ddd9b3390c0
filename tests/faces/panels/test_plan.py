"""Chapter 09's panel: what each control changes, and what it refuses."""

import json
import re
from html import unescape

import pytest

from llmtrain_course.kit import protocol
from llmtrain_course.kit.state import State
from llmtrain_course.page import view
from llmtrain_course.panels import HANDLES, PANELS, plan_panel
from llmtrain_course.plan.formulas import in_time
from llmtrain_course.plan.handles import Setting, planned
from llmtrain_course.plan.pictures import format_days
from llmtrain_helpers import best_split, frontier, published, units
from llmtrain_helpers.__main__ import main
from llmtrain_helpers.budget import usual_batch
from llmtrain_helpers.plan.pace import STOPS
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.results import Interval
from tests.faces.svg import pictures
from tests.panel_code import value_of
from tests.plan.cases import H100, plan_of


def text_of(panel) -> str:
    return unescape(panel.answer["status"] + panel.html)


def offers_of(panel) -> list[str]:
    return panel.answer["take"]


@pytest.mark.parametrize(
    ("control", "value", "text"),
    [
        ("model", "Llama-3.1-70B", "doesn't fit"),
        ("sequence_length", 4096, "24.2 days"),
        ("chip", "A100 80GB SXM", "66.1 days"),
        ("num_gpus", 128, "<b>20 days</b> to promise"),
        ("num_gpus", 100, "Batch 512 is not divisible by 100 replicas, which GPUs 100"),
        ("tensor_parallel", 8, "9.63 GB"),
        ("pipeline_parallel", 4, "8.57%"),
        ("pipeline_parallel", 5, "each one needs Pipeline stages 5"),
        ("context_parallel", 2, "34.6 GB"),
        ("zero_stage", 2, "74.6 GB</b> at the loss: it <b>fits</b>, with 10.9 GB free"),
        ("gradients", "whole", "78.8 GB"),
        ("tokens", "2T", "52.8 days"),
        ("global_batch_size", 500, "not divisible"),
        ("micro_batch_size", 2, "doesn't fit"),
        ("recipe", "bf16_fp32_grads", "63.2 GB"),
        ("recompute", "full", "21.1 GB"),
        ("price", 5.0, "$300 thousand at $5.00 each"),
        ("days", "20", "39 days: too late"),
        ("days", 27, "39 days: perhaps too late"),
        ("flops_per_gpu", "420T", "32 days</b> expected, <b>41 days</b> to promise"),
        ("flops_per_gpu", "400e12", "<b>43 days</b> to promise"),
        ("flops_per_gpu", 420, "below 10⁹ FLOP/s"),
        ("flops_per_gpu", "2000T", "more than the whole peak"),
        ("seconds_per_iteration", "8.0", "29 days</b> expected"),
        ("config", "/no/such/file.json", "isn't a file: give the path of a config.json"),
    ],
)
def test_the_panel_follows_each_control(control: str, value, text: str) -> None:
    panel = plan_panel()
    before = text_of(panel)
    assert "26.4 days" in before
    panel.act("write", control, value)
    assert text_of(panel) != before
    assert text in text_of(panel)


def test_the_panel_plans_a_model_of_ones_own(tmp_path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "num_hidden_layers": 16}', "utf-8")
    panel = plan_panel()
    panel.act("write", "config", str(path))
    assert "3,500,281,856" in text_of(panel)
    assert f"read_config({str(path)!r}" in text_of(panel)


def test_the_panel_escapes_what_is_typed() -> None:
    panel = plan_panel()
    panel.act("write", "config", "<img src=x>")
    assert "<img" not in panel.answer["status"] + panel.html


def test_the_panels_advice_is_taken_by_a_click_and_held_against_before() -> None:
    panel = plan_panel()
    panel.act("choose", "70B on 8 H100s")
    [offer] = panel.answer["take"]
    assert offer.startswith("ZeRO stage 3 and GPUs 16: saves 69.5 GB")
    assert "sends 6.77 TB more per step, 2,400 days to promise" in offer
    assert "the cheapest change that helps. Then the run fits:" in text_of(panel)
    panel.act("take", 0)
    assert (panel.values()["num_gpus"], panel.values()["zero_stage"]) == (16, 3)
    assert "<b>fits</b>," in text_of(panel)
    assert "(dashed: 4,800 days)" in text_of(panel)
    assert pictures(panel.html)[0].dashed


def test_the_panel_prices_what_it_advises() -> None:
    panel = plan_panel()
    panel.set(micro_batch_size=4, zero_stage=0)
    first, second = offers_of(panel)
    assert re.match(r"ZeRO stage 2: saves \d+ GB on each GPU, -2.27% GPU-h", first)
    assert "% GPU-hours, sends" in first
    assert re.match(r"Micro-batch 1: saves \d+ GB .* \+0.329% GPU-hours, sends", second)
    assert "Each offer includes the ones above it. Then the run fits" in text_of(panel)
    panel.act("take", 1)  # both changes
    values = panel.values()
    assert (values["zero_stage"], values["micro_batch_size"]) == (2, 1)
    panel.set(num_gpus=8)
    assert re.match(r"ZeRO stage 3: saves 9.85 GB .* sends 1.78 TB more", offers_of(panel)[0])
    panel.set(num_gpus=64, zero_stage=0, recompute="full", recipe="bf16")
    assert offers_of(panel)[0].endswith("on each GPU, -1.74% GPU-hours")
    panel.set(chip="MI250X (2 GCDs)", micro_batch_size=8)  # its links are not known
    assert len(offers_of(panel)) == 2
    assert all("GPU-hours" not in offer for offer in offers_of(panel))


def test_advice_is_there_too_where_it_is_tight_or_late() -> None:
    panel = plan_panel()
    tokens, gpus = offers_of(panel)
    assert tokens == "Tokens 760B: in time, 95 per parameter"
    assert gpus == "GPUs 128: 20 days to promise, the same GPU-hours if the network keeps up"
    assert "It fits. To finish in time:" in text_of(panel)
    panel.act("take", 0)
    assert panel.values()["tokens"] == 76 * 10**10
    assert "30 days: in time" in text_of(panel)
    assert offers_of(panel) == []
    assert "It fits, and it's in time, so there's nothing to change." in text_of(panel)
    panel.act("choose", "A 7B, not all sharded")
    assert "is <b>tight</b>, with 3.82 GB free, but 5.10 GB should stay free." in text_of(panel)
    assert offers_of(panel)[0].startswith("ZeRO stage 2: saves 13.6 GB")
    panel.act("choose", "8B on 64 H100s")
    panel.set(tokens=10**16)
    assert offers_of(panel)[0].startswith("Tokens 760B: in time")
    assert len(offers_of(panel)) == 1  # no number of GPUs is offered that is not enough


def test_the_last_day_as_people_write_it_is_in_time() -> None:
    plan = plan_of(zero_stage=3)
    assert in_time(plan, plan.first_run.greatest / 1.0015)
    assert not in_time(plan, plan.first_run.greatest / 1.002)


@pytest.mark.parametrize("rate", [0, 420e12])
def test_a_plan_that_ends_on_the_last_day_is_in_time(rate: float) -> None:
    measured = {"flops_per_gpu": rate, "stops": STOPS} if rate else {}
    panel, plan = plan_panel(), plan_of(accelerator=H100, zero_stage=3, **measured)
    panel.set(flops_per_gpu=rate, days=plan.first_run.greatest)
    assert "days: in time<" in text_of(panel)
    assert "It fits, and it's in time, so there's nothing to change." in text_of(panel)
    panel.set(days=plan.days.likely)
    assert "days: perhaps too late<" in text_of(panel)
    panel.set(days=0.99 * plan.days.likely)
    assert "days: too late<" in text_of(panel)
    assert "It fits. To finish in time:" in text_of(panel)


def test_gpus_that_end_on_the_last_day_are_enough() -> None:
    panel = plan_panel()
    panel.set(days=plan_of(accelerator=H100, num_gpus=128, zero_stage=3).first_run.greatest)
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
    html = PANELS["plan"].static_html()
    assert "<ol><li>ZeRO stage 3 and GPUs 16: saves" in html


def test_counted_and_estimated_stand_apart() -> None:
    tables = re.findall(r"<table.*?</table>", PANELS["plan"].render())
    counted, estimated, step = tables
    assert "matrix products" in step
    assert "not hidden" not in step
    assert ">parameters<" in counted
    assert "expected" not in counted
    assert "memory" not in estimated
    assert ">at best<" in estimated
    html = PANELS["plan"].render(flops_per_gpu=420e12)
    assert ">at best<" in html  # the stops of others lie apart
    assert "The step is yours, and the overhead comes from seven published runs." in html
    assert "Expected MFU" not in html
    for stops in STOPS:
        assert f">{24.936 * stops:.1f} days<" in html
    assert html.count(f">{units.duration(24.936 * units.DAY / 238_419)}<") == 3


def test_only_one_measurement_is_taken() -> None:
    panel = PANELS["plan"]
    both = {**panel.default, "flops_per_gpu": 4e14, "seconds_per_iteration": 8.0}
    assert panel.answer(both).problem == ("Give Measured rate or Measured step, not both.")
    assert "flops_per_gpu" in panel.visible_controls(panel.default)
    assert "flops_per_gpu" not in panel.visible_controls(both)
    assert "gradients" not in panel.visible_controls({**panel.default, "zero_stage": 1})


def test_the_notebooks_answers_to_the_panels_tasks() -> None:
    panel = PANELS["plan"]
    few = panel.presets["70B on 8 H100s"]
    answer = panel.answer(few)
    assert "<b>4,800 days</b>" in answer.html
    [(label, change)] = answer.offers
    assert label.endswith("the same GPU-hours")
    assert "<b>2,400 days</b>" in panel.render(**{**few, **change})
    assert "<b>41 days</b> to promise" in panel.render(flops_per_gpu=420e12)


def test_the_panel_promises_the_slow_end_of_its_days() -> None:
    """They're the steps' and the stops' together, and a measured step narrows them."""
    panel, plan = PANELS["plan"], plan_of(accelerator=H100, zero_stage=3)
    both = plan.days_of_steps.product(Interval(*STOPS))
    assert plan.first_run == plan.days
    assert [*vars(plan.days).values()] == pytest.approx([*vars(both).values()])
    assert units.digits(plan.days.greatest, 2) == "39"
    assert f">{units.duration(plan.seconds.greatest)}<" in panel.render()
    assert "<b>39 days</b> to promise" in panel.render()
    measured = plan.calibrated(8.0)
    assert measured.days.greatest == pytest.approx(STOPS[2] * 8 * plan.iterations / units.DAY)
    assert "<b>36 days</b> to promise" in panel.render(seconds_per_iteration=8.0)
    assert "60 thousand GPU-hours: $150 thousand at $2.50 each." in panel.render()
    assert "60 thousand GPU-hours.<" in panel.render(price=0)


# --- handles


def test_a_month_has_two_answers() -> None:
    month = HANDLES["month"]
    text = (
        "<b>39 days</b> to promise; you have 30 days. Each GPU needs <b>63.0 GB</b> at the loss: "
    )
    assert text in month.render()
    assert "<b>30 days</b> to promise" in month.render(tokens=760e9)
    soon = month.render(model="Llama-3.2-1B", num_gpus=512)
    assert "<b>1.1 days</b> to promise; you have 30 days." in soon
    assert ">you have 30 days<" in soon
    assert "<b>doesn't fit</b>, because 171 GB are missing" in month.render(model="Llama-3.1-70B")
    refused = month.answer({**month.default, "num_gpus": 100})
    assert "Batch 512 is not divisible by 100 replicas" in refused.problem.replace("batch", "Batch")


def test_a_promise_is_nearer_with_known_software_and_a_measured_step() -> None:
    promise = HANDLES["measured_step"]
    for software, days, kept in (("any", 39, 14), ("megatron-core", 32, 13), ("other", 42, 14)):
        html = promise.render(software=software)
        words = f"<b>{days} days</b> to promise. {kept} of 17 published runs would have kept that"
        assert words in html
    measured = promise.render(seconds=7.5)
    assert "<b>27 days</b> expected, <b>34 days</b> to promise. " in measured
    assert "your GPUs reach 43% of their peak." in measured
    slow = promise.answer({**promise.default, "seconds": 0.5})
    assert "less than the FLOPs of an iteration need at the full peak" in slow.problem


def test_a_pipeline_has_pieces_where_its_micro_batches_go_round() -> None:
    pipeline = HANDLES["pipeline"]
    assert "<b>43% of the step</b>. Stage 1 stores the activations of 4 micro" in pipeline.render(
        micro_batches=4
    )
    assert "<b>8% of the step</b>" in pipeline.render(micro_batches=12, interleave=3)
    odd = {**pipeline.default, "micro_batches": 6, "interleave": 2}
    assert "<b>33% of the step</b>" in pipeline.render(**odd)
    for micro_batches in (1, 6):  # the control stays, and the sentence says what it waits for
        state = State(pipeline)
        state.set(micro_batches=micro_batches, interleave=2)
        pieces = view(state)["fields"]["interleave"]
        assert (pieces["shown"], pieces["text"], pieces["echo"]) == (True, "1", "of 1")
        assert "Pieces need a multiple of 4 micro-batches." in state.html
    state.write("micro_batches", 8)
    assert view(state)["fields"]["interleave"]["text"] == "2"
    assert "Pieces need" not in state.html
    one = {**pipeline.default, "stages": 1, "interleave": 2}
    assert pipeline.visible_controls(one) == ["stages", "micro_batches"]
    assert "<b>0% of the step</b>. Stage 1 stores the activations of 1 micro-batch at" in (
        pipeline.render(**one)
    )


DECISIONS = {
    "Llama-3.1-8B": ({}, "You can expect this, but not promise it"),
    "Llama-3.2-1B": ({"size": 1.2e9, "num_gpus": 8, "tokens": 2 * 10**11}, "You can promise this"),
    "Llama-3.1-70B": ({"size": 71e9, "num_gpus": 512, "days": 14, "tokens": 10**12}, "Too late"),
}
"""Three points of the map, by their models, and what it says of them."""


@pytest.mark.parametrize("model", DECISIONS)
def test_the_map_says_what_panel_command_and_page_11_say(model: str, capsys) -> None:
    (change, verdict), handle = DECISIONS[model], HANDLES["decision"]
    values = {**handle.default, **change}
    tokens, n, days = (values[name] for name in ("tokens", "num_gpus", "days"))
    html = handle.render(**values)
    assert f"<b>{verdict}.</b>" in html
    shape = published.architecture(model, 8192)
    plan = best_split(shape, "H100", n, usual_batch(shape, n), tokens)
    split, run = plan.split, plan.run
    setting = Setting(
        model,
        num_gpus=n,
        tokens=tokens,
        tensor_parallel=split.tensor_parallel,
        micro_batch_size=split.micro_batch_size,
        global_batch_size=run.global_batch_size,
        zero_stage=run.zero_stage,
        recompute=run.recompute,
    )
    panel = PANELS["plan"].render(**vars(setting))
    likely, promise = (f"{format_days(x)}" for x in (plan.days.likely, plan.days.greatest))
    assert f"<b>{likely}</b> expected, <b>{promise}</b> to promise" in panel
    memory = units.gigabytes(planned(setting).memory.total)
    assert f"<b>{memory}</b>" in panel
    dollars = re.search(r"GPU-hours: (\$.*?) at \$2.50 each", panel)[1]
    texts = pictures(html)[0].texts
    for fact in (likely, promise, f"{memory[:-3]} of 85.5 GB", dollars):
        assert fact in texts, fact
    most = frontier("H100", n, days, {model: shape}).promised().points[0].tokens.likely
    assert f"you can promise {model.replace('-', ' ')} {units.count(most, 2)} tokens" in html
    main(f"plan {model} --gpus {n} --chip h100 --tokens {tokens} --json".split())
    printed = json.loads(capsys.readouterr().out)
    assert printed["days"]["greatest"] == pytest.approx(plan.days.greatest)
    assert printed["memory_bytes"]["total"] == plan.memory.total


def test_no_plan_is_made_while_somebody_drags(monkeypatch: pytest.MonkeyPatch) -> None:
    state, made = State(HANDLES["decision"]), list[Plan]()
    of = Plan.of
    monkeypatch.setattr(Plan, "of", lambda *given: made.append(given) or of(*given))
    sizes, tokens = (state.panel.controls[name].stops for name in ("size", "tokens"))
    for place in range(len(sizes)):
        protocol.act(state, "slide", "size", place, "tokens", place)
        assert (state.values["size"], state.values["tokens"]) == (sizes[place], tokens[place])
    state.write("days", 14)
    assert made == []
    state.write("num_gpus", 24)
    assert len(made) >= len(sizes)


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


def test_layers_that_stages_do_not_divide_are_refused_in_words() -> None:
    answer = PANELS["plan"].answer(
        {**PANELS["plan"].default, "num_gpus": 40, "pipeline_parallel": 5}
    )
    assert answer.problem == "The model's 32 layers aren't divisible by Pipeline stages 5."


def test_the_panel_spreads_experts_where_there_are_any() -> None:
    panel = PANELS["plan"]
    mixture = panel.presets["A mixture of experts"]
    assert "expert_parallel" in panel.visible_controls(mixture)
    assert "expert_parallel" not in panel.visible_controls(panel.default)
    assert "expert_parallel=8" in panel.answer(mixture).html
    assert "<b>fits</b>" in panel.answer(mixture).html
    whole = panel.answer({**mixture, "expert_parallel": 1}).html
    assert "<b>doesn't fit</b>" in whole
    odd = panel.answer({**mixture, "expert_parallel": 3})
    assert odd.problem == "The model's 8 experts aren't divisible by Expert parallel 3."
    assert "expert_parallel" not in panel.answer(panel.default).html
    missing = {**panel.default, "config": "no such file.json"}
    assert "expert_parallel" not in panel.visible_controls(missing)
