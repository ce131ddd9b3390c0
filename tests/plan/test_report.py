"""The page for who pays."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from llmtrain_helpers import LAWS, RECIPES, compute_optimal, loss, plan_run, published, units
from llmtrain_helpers.laws import times_the_least
from llmtrain_helpers.memory import kv_cache_bytes
from llmtrain_helpers.plan.pace import HIGHEST, LONGEST, PACES, UTILIZATIONS, WHOLE_RUNS
from llmtrain_helpers.plan.plan import Plan
from llmtrain_helpers.plan.report import Line, Report, verdict, worth
from tests.bad_values import assert_refused
from tests.plan.cases import plan_of

H100 = published.accelerator("H100 SXM")


LLAMA = published.architecture("Llama-3.1-8B", sequence_length=8192)


PLAN = plan_run(
    LLAMA, H100, 64, 1e12, 512, **{"recompute": "none", "zero_stage": 3, "price_per_gpu_hour": 2.5}
)


def test_the_report_stands_alone() -> None:
    page = PLAN.report("our 8B")
    assert page.markdown.startswith("# Our 8B: 8.03 billion parameters")
    for line in page.lines:
        assert all(line.cells()), line.what
        for cell in line.cells():
            assert cell in unescape(page.html)
            assert cell in re.sub(r"\\([\W_])", r"\1", page.markdown)
    assert {"days", "cost", "energy", "memory of a GPU", "loss expected"} <= {
        line.what for line in page.lines
    }
    assert not re.search(r"https?://|<script|<link|src=", page.html)


@pytest.mark.parametrize(
    ("money", "words"),
    [
        (5_760, "5,760 dollars"),
        (123_456, "123,000 dollars"),
        (999_400, "999,000 dollars"),
        (999_600, "1.00 million dollars"),
        (1_234_567, "1.23 million dollars"),
    ],
)
def test_a_number_is_in_words_from_a_million_on(money: float, words: str) -> None:
    price = money / (64 * 24 * PLAN.days.likely)
    lines = PLAN.replace(price_per_gpu_hour=price).report().lines
    assert {line.what: line.number for line in lines}["cost"] == words


def test_the_summary_warns_of_a_network_that_is_not_known() -> None:
    unknown = PLAN.replace(accelerator=replace(H100, network_bandwidth=None))
    assert "Beware: we don't know the chip's network" in unknown.report().summary
    assert "Beware" not in unknown.calibrated(7.5).report().summary
    assert "Beware" not in PLAN.report().summary


def test_the_numbers_of_the_report_are_the_plans() -> None:
    lines = {line.what: line for line in PLAN.report().lines}
    assert lines["parameters"].number == "8,030,261,248"
    assert lines["days"].number == "26"
    assert lines["days"].interval == "18 to 39"
    assert lines["cost"].number == "101,000 dollars"
    assert ", 39 days and 151,000 dollars to promise." in PLAN.report().summary
    assert lines["loss expected"].number == f"{loss(8.03e9, 1e12):.2f} nats a token"
    assert lines["tokens a parameter"].assumption.startswith("1.35 times the least work")


def of(page: Report) -> dict[str, Line]:
    return {line.what: line for line in page.lines}


def test_every_number_is_that_of_the_function_behind_it() -> None:
    plan = PLAN.replace(price_per_gpu_hour=3.1, recipe=RECIPES["fp8"])
    lines, N, T = of(plan.report(law="hoffmann")), plan.parameters.active, 10**12
    days, hours = plan.days, plan.gpu_hours
    assert lines["tokens"].number == units.count(T)
    step = f"{units.count(512 * 8192)} a step in sequences of 8,192"
    assert lines["tokens"].assumption == f"each seen once, {step}"
    assert lines["work"].number == units.flops(plan.flops.total * plan.iterations)
    assert lines["memory of a GPU"].number == units.gigabytes(plan.memory.total)
    with_reserve = units.gigabytes(plan.memory.total + plan.reserve)
    assert lines["memory of a GPU"].interval == f"to {with_reserve} with the reserve"
    assert lines["memory of a GPU"].assumption.startswith(
        "of 85.5 GB that the card shows; peak at the loss, plain loss, adamw_fused, recipe fp8, seq"
    )
    peak = f"{units.flops_per_second(plan.run.peak)}, the dense peak in bf16 (MFU"
    assert lines["days"].assumption.startswith(f"{units.percent(plan.mfu)} of {peak}")
    step = plan.seconds_per_iteration
    assert lines["a step"].number == units.duration(step.likely, 2)
    ends = (units.duration(x, 2) for x in (step.least, step.greatest))
    assert lines["a step"].interval == " to ".join(ends)
    assert lines["a step"].assumption.startswith(f"{units.percent(plan.step_mfu)} of {peak}")
    likely = 512 * 8192 / (64 * step.likely)
    assert lines["tokens/s per GPU"].number == f"{float(f'{likely:.3g}'):,.0f}"
    assert lines["GPU-hours"].number == units.exact(round(hours.likely, -2))
    assert lines["energy"].number == units.si(hours.likely * 700, "Wh")
    assert lines["loss expected"].number == f"{loss(N, T, 'hoffmann'):.2f} nats a token"
    losses = sorted(loss(N, T, law) for law in ("besiroglu", "hoffmann"))
    assert lines["loss expected"].interval.startswith(f"{losses[0]:.2f} to {losses[1]:.2f} by")
    assert lines["tokens a parameter"].number == units.digits(T / N, 2)
    best = compute_optimal(6 * N * T, "hoffmann").tokens_per_parameter
    assert lines["tokens a parameter"].interval.startswith(f"{units.digits(best, 2)} is best")
    assert float(lines["days"].number) == pytest.approx(days.likely, rel=0.03)


@pytest.mark.parametrize("plan", [PLAN, PLAN.calibrated(10.0)])
def test_each_end_of_the_price_follows_from_its_own_days(plan) -> None:
    lines = of(plan.report())

    def ends(what: str) -> list[float]:
        numbers = re.findall(r"[\d.,]+", lines[what].interval + " " + lines[what].number)
        return [float(x.replace(",", "")) for x in numbers]

    days = list(vars(plan.days).values())
    hours = [24 * 64 * days[i] for i in (0, 2, 1)]
    assert ends("GPU-hours") == pytest.approx(hours, rel=0.006)
    assert ends("cost") == pytest.approx([2.5 * x for x in hours], rel=0.006)
    money = re.search(r"and ([\d,]+) dollars expected", plan.report().summary)
    assert money is not None
    assert lines["cost"].number == f"{money[1]} dollars"


def test_a_report_names_all_ways_of_sharing_and_what_is_computed_again() -> None:
    shared = of(PLAN.replace(sharding="fsdp", context_parallel=2, recompute="alternate").report())
    assert shared["GPUs"].assumption == "tensor 1, pipeline 1, context 2, replicas 32, FSDP"
    counted = "every other product recomputed: counted here, not in the MFU"
    assert shared["work"].assumption == f"attention counted whole; {counted}"
    assert of(PLAN.report())["work"].assumption == "attention counted whole; nothing recomputed"
    mixtral = published.architecture("Mixtral-8x7B", sequence_length=4096)
    piped = {"pipeline_parallel": 4, "interleave": 2, "expert_parallel": 8, "zero_stage": 1}
    assert of(PLAN.replace(model=mixtral, **piped).report())["GPUs"].assumption == (
        "tensor 1, pipeline 4, pieces of a stage 2, experts on 8, replicas 16, ZeRO 1"
    )
    rows = of(PLAN.replace(attention="unfused", recompute="selective").report())
    assert "; scores recomputed: counted here" in rows["work"].assumption


@pytest.mark.parametrize(
    ("software", "words"),
    [
        ("any", "whose software is not said"),
        ("megatron-core", "Megatron-Core"),
        ("other", "not Megatron-Core"),
    ],
)
def test_the_days_say_whose_software_they_are_of(software: str, words: str) -> None:
    days = of(PLAN.replace(software=software).report())["days"]
    assert days.assumption.endswith(f"overhead included; {words}")


@pytest.mark.parametrize(
    ("changes", "source"),
    [
        ({}, PACES["dense", "any"][1]),
        ({"software": "other"}, PACES["dense", "other"][1]),
        ({"accelerator": "V100"}, UTILIZATIONS["16-bit dense"].evidence),
        ({"accelerator": "MI325X"}, "untested: 4 steps, all of one publication"),
        ({"accelerator": "GB200", "format": "fp4"}, "untested: 12 steps, all of NVIDIA's software"),
    ],
    ids=["any", "other", "V100", "MI325X", "fp4"],
)
def test_days_rest_on_steps_and_on_stops(changes, source: str) -> None:
    days = of(PLAN.replace(**changes).report())["days"]
    assert days.source == f"a step: {source}; overhead of seven published runs; {WHOLE_RUNS}"


@pytest.mark.parametrize(
    ("chip", "missing"),
    [
        ("H200", ""),
        ("MI300X", ""),
        ("MI325X", "network"),
        ("V100", "network, best matrix product"),
        ("TPU v5p", "link, network, best matrix product"),
    ],
)
def test_a_chip_whose_splits_cannot_be_told_apart_says_what_is_missing(chip, missing) -> None:
    plan = PLAN.replace(accelerator=chip)
    assert ", ".join(plan.unknown) == missing
    assert (plan.step is None) == bool(missing)
    assumption = of(plan.report())["days"].assumption
    assert ("its bubble alone" in assumption) == bool(missing)
    assert assumption.endswith(missing or "whose software is not said")


@pytest.mark.parametrize(
    ("changes", "line", "words"),
    [
        ({"format": "fp8"}, "days", "; products with weights in fp8"),
        ({"overlap": True}, "days", "; what layers send hides behind products"),
        ({"overlap": False}, "days", "; what layers send adds to products"),
        ({"compiled": True}, "days", "; kernels that are compiled"),
        ({"compiled": False}, "days", "; kernels that are launched one by one"),
        ({"fused_mlp": True}, "memory of a GPU", "recipe bf16, the MLP fused, sequences"),
        ({"fused_mlp": False}, "memory of a GPU", "recipe bf16, the MLP not fused, sequences"),
    ],
)
def test_a_report_names_what_was_said_of_products_and_kernels(changes, line, words) -> None:
    assert words in of(PLAN.replace(**changes).report())[line].assumption
    assert words not in of(PLAN.report())[line].assumption


def test_texts_longer_than_any_that_was_foretold_are_told_to_take_longer() -> None:
    way = {"recompute": "full", "shard": "fsdp", "format": "fp8", "software": "other"}
    slower = {}
    for row in published.measured_memory().query("sequence_length > 2e4").to_dict("records"):
        s, c = int(row["sequence_length"]), int(row["context_parallel"])
        run = replace(LLAMA, sequence_length=s), "H100 SXM 96GB (500 W)", 8, 1e9, 8 // c
        plan = plan_run(*run, context_parallel=c, **way)
        span, seconds = plan.seconds_per_iteration, s / c / row["tokens_per_s_per_gpu"]
        assert (span.least < seconds < span.greatest) == (s <= LONGEST)
        assumption = of(plan.report())["days"].assumption
        assert ("took others nearly twice as long" in assumption) == (s > LONGEST)
        slower[s] = round(seconds / span.likely, 2)
    assert slower == {32768: 1.22, 65536: 1.18, 131072: 1.62, 262144: 1.72}


def edge(plan: Plan, free: float) -> Plan:
    """The plan on a card of which so many bytes are free."""
    return plan.replace(accelerator=replace(H100, shown_memory=plan.memory.total + free))


def test_a_verdict_names_the_moment_and_its_lever() -> None:
    """Three forms: it fits, it's on the edge, it doesn't fit."""
    plan = PLAN.replace(micro_batch_size=1)
    assert verdict(plan) == (
        "Fits: 63.0 GB at the loss, 22.5 GB free of the 85.5 GB that the card shows."
    )
    vendors = plan.replace(accelerator=replace(H100, shown_memory=None))
    assert verdict(vendors).endswith("17.0 GB free of the 80.0 GB that the vendor names.")
    assert verdict(edge(plan, 1e9)) == (
        "On the edge: 63.0 GB at the loss, 1.00 GB free of the 64.0 GB that the card shows, and "
        "the allocator usually needs 2 to 8 GB more: measure one step; a fused loss (−11.0 GB) "
        "would make it safe."
    )
    mlp = edge(plan.replace(loss_kernel="fused"), 1e9)
    assert verdict(mlp).endswith("; the MLP's activation fused (−7.52 GB) would make it safe.")
    own = verdict(edge(plan.replace(reserve=2e9), 1e9))
    assert "shows, of which 2.00 GB should stay free: measure one step" in own
    assert verdict(edge(plan, -3e9), lambda name, value: f"--{name} {value}") == (
        "Does not fit: 63.0 GB at the loss, 3.00 GB too many; 12.6 GB of them are logits: "
        "--loss_kernel fused needs none. It would fit with --loss_kernel fused."
    )
    options = {"recompute": "full", "loss_kernel": "fused"}
    update = edge(plan_run(LLAMA, H100, 8, 1e12, 8, **options), -1e9)
    assert update.phase == "first layer"
    assert verdict(update).endswith(" first layer, 1.00 GB too many. It would fit with ZeRO 1.")
    hopeless = edge(plan_run(LLAMA, H100, 1, 1e12, 1, **options), -125e9)
    assert verdict(hopeless).endswith("125 GB too many.")


def test_a_report_says_what_fp32_makes_of_activations() -> None:
    words = "recipe fp32, activations in 4 bytes too (FSDP's mixed precision is amp)"
    assert words in of(PLAN.replace(recipe="fp32").report())["memory of a GPU"].assumption
    assert "activations in" not in of(PLAN.report())["memory of a GPU"].assumption


def test_given_utilisations_are_not_called_published() -> None:
    days = of(PLAN.replace(utilizations=(0.3, 0.4, 0.5)).report())["days"]
    assert days.source == "yours: the shares of the peak that you gave"


def test_a_model_that_has_read_before_is_worth_what_it_has_read_in_all() -> None:
    fresh, went_on = of(PLAN.report()), of(PLAN.report(trained_on=14e12))
    N = PLAN.parameters.active
    assert went_on["loss expected"].number == f"{loss(N, 15e12):.2f} nats a token"
    assert went_on["tokens a parameter"].number == units.digits(15e12 / N, 2)
    assert went_on["loss expected"].assumption.startswith(
        "as one run with the 14.0 trillion before"
    )
    assert went_on["tokens"] == fresh["tokens"]
    assert went_on["days"] == fresh["days"]
    silent = PLAN.report(law=None)
    assert {*fresh} - {*of(silent)} == {"loss expected", "tokens a parameter"}
    assert silent.markdown
    with pytest.raises(ValueError, match=r"trained_on=.* needs a law"):
        PLAN.report(law=None, trained_on=1e12)
    assert_refused(PLAN.report, "trained_on=", trained_on=-1)


def test_two_fits_that_agree_are_not_told_as_an_interval() -> None:
    interval = of(PLAN.report())["loss expected"].interval
    ends = sorted(f"{loss(PLAN.parameters.active, 1e12, x):.2f}" for x in ("besiroglu", "hoffmann"))
    assert interval.startswith(
        "the same by" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} by"
    )
    short = PLAN.replace(tokens=3e10).report()
    assert of(short)["loss expected"].interval == "the same by two fits of the same runs"


@pytest.mark.parametrize("bad", [None, 3, ["our 8B"], b"8B"], ids=repr)
def test_a_name_is_text(bad) -> None:
    assert_refused(PLAN.report, "name=", name=bad)


@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "two\nlines",
        "`ls`",
        "<b>bold</b>",
        "<script>",
        "$x$ and $y$",
        "*a* _b_ [c](d) \\|",
        "&lt;",
    ],
)
def test_names_are_words_whatever_they_hold(name: str) -> None:
    """In Markdown no table, code, tag or formula; in HTML no tag."""
    chip = replace(H100, name=name)
    page = replace(PLAN.run, accelerator=chip)
    report = Plan.of(page).report(name, replace(LAWS["besiroglu"], source=name))
    plain = PLAN.report()
    assert report.markdown.count("\n") == plain.markdown.count("\n")
    bare = re.sub(r"\\[\W_]", "", report.markdown)
    rows = [line for line in bare.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {6}
    assert not re.search(r"[`<$*\[]", bare.replace("* ", ""))
    assert name.replace("\n", " ") in re.sub(r"\\([\W_])", r"\1", report.markdown)
    assert name in unescape(report.html)
    tags = set(re.findall(r"</?(\w+)", plain.html))
    assert set(re.findall(r"</?(\w+)", report.html)) == tags
    assert report.html.count("<") == plain.html.count("<")


def test_a_report_at_a_measured_rate_has_the_stops_in_it() -> None:
    lines = {x.what: x for x in PLAN.replace(flops_per_gpu=420e12).report().lines}
    mfu = "42.4% of 990 TFLOP/s, the dense peak in bf16 (MFU, attention counted)"  # 420 TFLOP/s
    assert lines["days"].assumption == f"your measured rate: {mfu}; 25 days without overhead"
    assert lines["days"].source == "your rate, taken for the whole run"
    lines = {x.what: x for x in PLAN.calibrated(10.0).report().lines}
    assert lines["days"].assumption.startswith("your measured step: 38.4% of 990 TFLOP/s, the")
    assert lines["days"].assumption.endswith("28 days without overhead, which adds 8 to 64%")
    assert lines["days"].source == "your step; overhead of seven published runs (notebook 09)"
    assert "days to promise" not in lines
    with pytest.raises(ValueError, match="is a sweep of plans: a report is about a single one"):
        PLAN.replace(tokens=np.array([1e12, 2e12])).report()
    with pytest.raises(ValueError, match="law='chinchila' is unknown"):
        PLAN.report(law="chinchila")


def test_a_measured_step_above_any_published_is_called_so() -> None:
    """5.1 s make 75% of the peak, which was published; everything recomputed, 90% was not."""
    assert "above any published" not in of(PLAN.calibrated(5.1).report())["days"].assumption
    plan = PLAN.replace(recompute="full").calibrated(5.6)
    assumption = of(plan.report())["days"].assumption
    most = units.share(HIGHEST["16-bit dense"])
    share = plan.step_mfu * plan.flops.total / plan.flops.model
    assert plan.step_mfu < HIGHEST["16-bit dense"] < share
    assert f"{units.percent(share)} with what is recomputed is above any published" in assumption
    assert f"({most})" in assumption
    unknown = plan_run(LLAMA, H100, 64, 1e12, 512, recompute="none", format="fp32")
    assert "above any" not in of(unknown.report())["days"].assumption


def test_a_first_run_is_promised_at_the_slow_end() -> None:
    lines = of(PLAN.report())
    assert "the dense peak in bf16 (MFU, attention counted), overhead" in lines["days"].assumption
    latest = units.digits(PLAN.days.greatest, 2)
    assert lines["days"].interval.endswith(f" to {latest}")
    assert lines["days to promise"].number == latest
    assert lines["days to promise"].assumption == "the slow end of the days above"


def test_what_a_model_is_worth_is_what_the_laws_say() -> None:
    model, N = worth(PLAN), PLAN.parameters.active
    assert model.loss == loss(N, 10**12)
    assert model.losses == {law: loss(N, 10**12, law) for law in ("besiroglu", "hoffmann")}
    assert model.tokens_per_parameter == 10**12 / N
    assert model.best == compute_optimal(6 * N * 10**12).tokens_per_parameter
    assert model.times_the_least == times_the_least(N, 10**12)


def test_selective_recomputation_of_flash_attention_says_that_it_saves_nothing() -> None:
    """As in Megatron-LM's issue 1225."""
    plain, selective = (plan_of(recompute=recompute) for recompute in ("none", "selective"))
    assert selective.memory.activations == plain.memory.activations
    assert "flash attention stores no scores" in str(selective.report())
    assert "flash attention stores no scores" not in str(plain.report())
    assert "saves nothing" not in str(plan_of(recompute="selective", attention="unfused").report())


@pytest.mark.parametrize(
    ("name", "tokens", "cache"),
    [
        ("Llama-3.1-8B", 8192, 131_072 * 8192),
        ("DeepSeek-V3", 4096, 61 * (512 + 64) * 2 * 4096),
        ("gpt-oss-20b", 8192, 12 * 2 * 8 * 64 * 2 * (128 + 8192)),
        ("Qwen3-Next-80B-A3B", 8192, 12 * 2 * 2 * 256 * 2 * 8192),
    ],
)
def test_a_cache_is_of_key_value_heads_latents_and_windows(
    name: str, tokens: int, cache: int
) -> None:
    assert kv_cache_bytes(published.architecture(name), tokens) == cache


def test_the_memory_to_serve_is_weights_and_one_sequence() -> None:
    line = of(PLAN.report())["memory to serve it"]
    assert line.number == units.gigabytes(2 * 8_030_261_248 + 8192 * 131_072)
    assert line.assumption.endswith("of 8,192 tokens: 131,072 bytes per token")
    local = published.architecture("gpt-oss-20b", sequence_length=8192)
    line = of(PLAN.replace(model=local).report())["memory to serve it"]
    assert line.assumption.endswith("tokens: up to 49,152 bytes per token")
