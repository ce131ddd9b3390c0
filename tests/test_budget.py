"""Chapter 10: laws of loss, what fits at a budget, LoRA, and the page for who pays."""

from __future__ import annotations

import re
import time
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmtrain_helpers import (
    LAWS,
    OPTIMIZERS,
    Accelerator,
    Law,
    Optimum,
    Transformer,
    affordable_days,
    best_for_loss,
    best_split,
    budget,
    compute_for_loss,
    compute_optimal,
    effective_tokens,
    fit_law,
    frontier,
    largest_model,
    laws,
    lora_memory,
    lora_parameters,
    loss,
    most_tokens,
    muon_overhead,
    offload_seconds,
    over_training,
    plan_run,
    shelf,
    units,
)
from llmtrain_helpers.drawings import budget as drawings
from llmtrain_helpers.evidence import published
from llmtrain_helpers.exercises import budget as budget_exercises, check, predict
from llmtrain_helpers.laws import smallest_share
from llmtrain_helpers.panels import PANELS, budget as budget_panel

from .bad_values import BAD_QUANTITIES, assert_refused

H100 = published.accelerator("H100 SXM")
A100 = published.accelerator("A100 80GB SXM")
LLAMA = published.architecture("Llama-3.1-8B", sequence_length=8192)
PLAN = plan_run(
    LLAMA, H100, 64, 1e12, 512, **{"recompute": "none", "zero_stage": 3, "price_per_gpu_hour": 2.5}
)
CHINCHILLA = 5.76e23
"""FLOP of Gopher's and Chinchilla's budget."""

with_loss = pytest.mark.parametrize("law", [k for k, x in LAWS.items() if x.tells_loss])
every_law = pytest.mark.parametrize("law", LAWS)


def row(name: str) -> dict[str, Any]:
    [found] = [r for r in published.rows("scaling_laws") if r.get("law") == name]
    return found


# --- the laws are the table's


@pytest.mark.parametrize("law", [name for name in LAWS if name != "twenty"])
def test_a_law_is_that_of_its_row(law: str) -> None:
    told, found = row(law), LAWS[law]
    for letter in ("E", "A", "B", "alpha", "beta"):
        assert getattr(found, letter) == told.get(letter)
    if found.text:
        assert found.text == (told["d_opt_prefactor"], told["d_opt_exponent"])
    if law == "deepseek":
        assert found.size == (told["n_opt_prefactor"] / 6, told["n_opt_exponent"])
    if law == "porian":
        assert found.size == (told["n_opt_prefactor"], told["n_opt_exponent"])
    if law == "kaplan":
        assert compute_optimal(laws.PF_DAY, law).parameters == pytest.approx(
            told["n_opt_prefactor"]
        )


def test_no_row_of_the_data_is_from_memory() -> None:
    for table in ("scaling_laws", "tokens_per_parameter", "loss_runs"):
        assert not any("memory" in str(x) for r in published.rows(table) for x in r.values())
    kinds = {r["confidence"].split()[0] for r in published.rows("scaling_laws")}
    assert kinds == {"read", "derived"}


# --- optima: printed, or the contradiction named


@pytest.mark.parametrize(
    ("law", "ratio"), [("besiroglu", 18.4), ("hoffmann_printed", 92.6), ("hoffmann", 58.9)]
)
def test_tokens_a_parameter_at_chinchillas_budget(law: str, ratio: float) -> None:
    best = compute_optimal(CHINCHILLA, law)
    assert best.tokens_per_parameter == pytest.approx(ratio, abs=0.06)
    assert 6 * best.parameters * best.tokens == pytest.approx(CHINCHILLA)


def test_chinchillas_table_3_is_twenty_and_its_printed_law_is_not() -> None:
    printed = {1.92e19: 8e9, 1.21e20: 20.2e9, 1.23e22: 205.1e9, 3.85e24: 3.7e12}
    for flops, tokens in printed.items():
        assert compute_optimal(flops, "twenty").tokens == pytest.approx(tokens, 0.05)
    assert compute_optimal(3.85e24, "hoffmann_printed").tokens > 2 * 3.7e12
    assert "93 tokens" in LAWS["hoffmann_printed"].note


def test_llama_3_by_its_figure_and_by_its_text() -> None:
    figure, text = (compute_optimal(3.8e25, law) for law in ("llama3", "llama3_printed"))
    assert figure.tokens == pytest.approx(16.55e12, rel=0.02)
    assert figure.parameters == pytest.approx(402e9, rel=0.04)
    assert text.tokens == pytest.approx(10.5e12, rel=0.01)
    for law in ("llama3", "llama3_printed"):
        assert "16.55" in LAWS[law].note


def test_deepseek_and_porian_spend_their_budget() -> None:
    M, D = 0.1715 * 1e20**0.5243, 5.8316 * 1e20**0.4757
    best = compute_optimal(1e20, "deepseek")
    assert best.tokens == pytest.approx(D, rel=0.001)
    assert 6 * best.parameters == pytest.approx(M)
    assert compute_optimal(1e19, "porian").tokens == pytest.approx(1.40 * 1e19**0.503, rel=0.01)


def test_kaplans_own_split_does_not_multiply_out_and_the_law_says_so() -> None:
    days = 3.14e23 / laws.PF_DAY
    best = compute_optimal(3.14e23, "kaplan")
    assert best.parameters == pytest.approx(516e9, rel=0.01)
    printed = 2e10 * days**0.27
    assert 6 * best.parameters * printed / 3.14e23 == pytest.approx(1.81, rel=0.01)
    assert "1.81 times" in LAWS["kaplan"].note


@with_loss
@pytest.mark.parametrize("flops", [1e18, 1e21, CHINCHILLA, 1e26])
def test_the_optimum_is_the_least_loss(law: str, flops: float) -> None:
    best = compute_optimal(flops, law)
    at = loss(best.parameters, best.tokens, law)
    for share in (0.5, 0.9, 1.1, 2):
        N = share * best.parameters
        assert loss(N, flops / (6 * N), law) > at


@every_law
def test_arrays_give_what_numbers_give(law: str) -> None:
    budgets = np.array([1e19, 1e21, 1e24])
    many = compute_optimal(budgets, law)
    for i, flops in enumerate(budgets):
        one = compute_optimal(float(flops), law)
        assert many.parameters[i] == pytest.approx(one.parameters)
        assert many.tokens[i] == pytest.approx(one.tokens)


# --- the price of another size


def test_half_and_a_quarter_cost_the_same_at_any_budget() -> None:
    for flops in (1e19, 1e21, 1e23, 1e26):
        best = compute_optimal(flops)
        at = loss(best.parameters, best.tokens)
        for share, times in ((0.5, 1.26), (0.25, 4.5)):
            spent = compute_for_loss(share * best.parameters, at) / flops
            assert spent == pytest.approx(times, rel=0.01)
            assert over_training(share) == pytest.approx(spent, rel=1e-6)
        assert compute_for_loss(best.parameters, at) == pytest.approx(flops)
        with pytest.raises(ValueError, match="is out of reach: such a model ends at"):
            compute_for_loss(0.1 * best.parameters, at)
    with pytest.raises(ValueError, match=r"share=0.1 of the best size never gets"):
        over_training(0.1)


def test_the_minimum_is_flat() -> None:
    best = compute_optimal(CHINCHILLA)
    at = loss(best.parameters, best.tokens)
    for share in (0.5, 2):
        N = share * best.parameters
        assert loss(N, CHINCHILLA / (6 * N)) - at == pytest.approx(0.005, abs=0.002)


def test_a_custom_law_is_as_good_as_a_named_one() -> None:
    mine = Law("mine", "here", 1.8172, 482.01, 2085.43, 0.3478, 0.3658)
    assert loss(7e9, 1e12, mine) == loss(7e9, 1e12)
    assert compute_optimal(1e22, mine).outside == ""


# --- repeated text


@pytest.mark.parametrize(("epochs", "worth"), [(1, 1), (4, 3.73), (8, 6.6), (16, 10.6), (40, 15.2)])
def test_repeated_tokens_lose_their_worth(epochs: float, worth: float) -> None:
    assert effective_tokens(1e9, epochs) / 1e9 == pytest.approx(worth, rel=0.005)


def test_no_number_of_epochs_is_worth_more_than_16_4() -> None:
    assert effective_tokens(1.0, 1e6) == pytest.approx(1 + laws.REPEATS)
    many = effective_tokens(np.array([1e9, 2e9]), 4)
    assert many[1] == pytest.approx(2 * many[0])
    with pytest.raises(ValueError, match="one epoch=1 is more than epochs="):
        effective_tokens(1e9, 0.5)


# --- outside of what was fitted


def test_beyond_the_runs_of_a_law_the_result_says_so() -> None:
    inside = compute_optimal(3e20)
    assert inside.outside == ""
    assert "times the parameters" in compute_optimal(CHINCHILLA).outside
    assert "times the FLOP" in compute_optimal(CHINCHILLA, "llama3").outside
    assert "smallest runs" in laws.outside(1e6, 1e9)
    assert "largest" in compute_optimal(np.array([1e20, 1e26])).outside


@pytest.mark.parametrize("law", ["llama3", "deepseek", "kaplan", "twenty"])
def test_a_law_without_a_loss_says_which_have_one(law: str) -> None:
    for call in (lambda: loss(1e9, 1e10, law), lambda: over_training(0.5, law)):
        with pytest.raises(ValueError, match="gives a best size, and no loss") as told:
            call()
        assert "besiroglu" in str(told.value)
    with pytest.raises(ValueError, match="has neither a loss nor a best size"):
        compute_optimal(1e20, Law("empty", "here"))


# --- fitting


def runs_like(law: str, how_many: int = 60) -> tuple[Any, Any, Any]:
    dice = np.random.default_rng(3)
    N = 10 ** dice.uniform(7.8, 10.2, how_many)
    D = N * 10 ** dice.uniform(-0.3, 2.3, how_many)
    return N, D, loss(N, D, law)


@with_loss
def test_known_coefficients_are_found_again(law: str) -> None:
    found = fit_law(*runs_like(law))
    for letter in ("E", "A", "B", "alpha", "beta"):
        wanted = getattr(LAWS[law], letter)
        assert getattr(found, letter) == pytest.approx(wanted, rel=0.01), letter


def test_a_few_losses_gone_astray_hardly_matter() -> None:
    N, D, L = runs_like("besiroglu")
    L[::20] *= 1.2
    found = fit_law(N, D, L)
    assert found.alpha == pytest.approx(0.3478, rel=0.01)
    assert pytest.approx(1.8172, rel=0.01) == found.E


@pytest.mark.parametrize("text", ["c4_original", "rpj", "rw_original"])
def test_published_runs_give_the_fits_of_the_table(text: str) -> None:
    runs = published.loss_runs().query(f"train_data == '{text}'")
    found = fit_law(runs["parameters"], runs["tokens"], runs["loss"])
    names = {"c4_original": "C4", "rpj": "RedPajama", "rw_original": "RefinedWeb"}
    [told] = [
        r
        for r in published.rows("scaling_laws")
        if r["name"] == f"Gadre runs trained on {names[text]}, refitted"
    ] or [
        r
        for r in published.rows("scaling_laws")
        if r["name"].startswith(f"Gadre runs trained on {names[text]}")
    ]
    for letter in ("E", "A", "B", "alpha", "beta"):
        assert getattr(found, letter) == pytest.approx(told[letter], rel=0.01)
    assert found.fitted["parameters"][1] == pytest.approx(6.89e9, rel=0.01)


def test_too_few_runs_are_refused() -> None:
    N, D, L = runs_like("besiroglu", 5)
    with pytest.raises(ValueError, match="not of at least six runs"):
        fit_law(N, D, L)
    with pytest.raises(ValueError, match="one loss for each"):
        fit_law([*N, 1e9, 1e9], D, L)
    assert_refused(fit_law, "loss", parameters=N, tokens=D, loss=-L)


# --- GPUs, days and money


def test_tokens_go_with_the_days() -> None:
    span = most_tokens(PLAN, 30)
    assert span.likely == pytest.approx(1e12 * 30 / PLAN.days.likely)
    again = PLAN.but(tokens=round(span.likely))
    assert again.days.likely == pytest.approx(30)
    assert span.least < span.likely < span.greatest
    measured = PLAN.but(flops_per_gpu=420e12)
    assert most_tokens(measured, 30).greatest == pytest.approx(
        1e12 * 30 / (1.08 * measured.days.likely)
    )


def test_money_buys_days() -> None:
    assert affordable_days(100_000, 64, 2.5) == pytest.approx(26.04, abs=0.01)
    many = affordable_days(np.array([1e5, 2e5]), 64, 2.5)
    assert many[1] == 2 * many[0]


def test_a_frontier_of_thirty_shapes_takes_less_than_five_seconds() -> None:
    shapes = shelf() | {f"longer {n}": m for n, m in [*shelf(8192).items()][:7]}
    assert len(shapes) == 30
    started = time.perf_counter()
    front = frontier(H100, 64, 21, shapes, price_per_gpu_hour=2.5)
    assert time.perf_counter() - started < 5
    columns = front.columns()
    assert len(columns["name"]) == 30
    assert columns["name"] == [*shapes]
    assert set(front.keys()) == {*columns}
    assert front["loss"] == columns["loss"]
    assert {round(cost) for cost in columns["cost"]} == {round(64 * 21 * 24 * 2.5)}


def test_points_of_the_frontier_are_what_plan_and_law_say() -> None:
    front = frontier(H100, 64, 21, shelf())
    for point in front.points:
        inputs = point.plan.inputs
        assert point.plan.days.likely == pytest.approx(21, rel=1e-6)
        assert inputs["tokens"] == int(point.tokens.likely)
        N = point.plan.parameters.active
        assert point.loss.likely == pytest.approx(loss(N, point.tokens.likely))
        assert point.loss.least < point.loss.likely < point.loss.greatest
        assert point.fits == bool(point.plan.fits)
    best = front.best
    assert best.loss.likely == min(p.loss.likely for p in front.points if p.fits)
    work = 6 * best.parameters * best.tokens.likely
    assert 0.5 < best.parameters / compute_optimal(work).parameters < 2


def test_small_shapes_take_the_plainest_split() -> None:
    for i, point in enumerate(frontier(H100, 64, 21, shelf()).points[:10]):
        split = point.plan.split
        assert split.tensor_parallel == split.pipeline_parallel == 1
        assert point.plan.inputs["recompute"] == "none"
        assert split.micro_batch_size == (8 if i < 5 else split.micro_batch_size)


def test_shapes_of_a_list_go_by_their_sizes() -> None:
    front = frontier(H100, 8, 3, [LLAMA, LLAMA, *[*shelf().values()][:1]])
    assert front["name"] == ["8.0B", "8.0B (1)", "63M"]


def test_what_does_not_fit_is_told() -> None:
    front = frontier(A100, 8, 30, shelf())
    assert not front.points[-1].fits
    assert front.points[0].fits
    with pytest.raises(ValueError, match="none of 1 shapes fits"):
        _ = frontier(A100, 8, 30, {"large": [*shelf().values()][-1]}).best


def test_a_model_that_must_answer_on_a_small_card() -> None:
    front = frontier(A100, 8, 30, shelf(), serving_memory=24e9)
    assert all(p.answers == (2 * p.parameters <= 0.8 * 24e9) for p in front.points)
    assert front.best.answers
    assert not all(front["answers"])


def test_experts_are_told_by_their_active_parameters() -> None:
    shapes = {"Mixtral": published.architecture("Mixtral-8x7B", 4096)}
    [point] = frontier(H100, 64, 21, shapes).points
    assert point.outside.startswith("experts, by a law of dense models")
    assert point.tokens_per_parameter == pytest.approx(
        point.tokens.likely / point.plan.parameters.active
    )


def test_the_largest_model_with_enough_text() -> None:
    twenty = largest_model(H100, 64, 21, shelf())
    few = largest_model(H100, 64, 21, shelf(), tokens_per_parameter=5)
    assert few.parameters > twenty.parameters
    assert twenty.tokens_per_parameter >= 20
    with pytest.raises(ValueError, match="is more than any shape gets"):
        largest_model(A100, 8, 1e-3, shelf(), tokens_per_parameter=1e9)


CASES: dict[str, Any] = {
    "large": ("69B", H100, 64, {}),
    "tensor": ("31B", H100, 64, {}),
    "small": ("310M", H100, 512, {}),
    "one node": ("9.0B", A100, 8, {}),
    "own rate": ("24B", A100, 8, {"flops_per_gpu": 100e12}),
    "given": ("69B", H100, 32, {"utilizations": (0.3, 0.4, 0.5)}),
    "pipeline": ("430B", H100, 128, {"recipe": "bf16"}),
    "bare": ("24B", Accelerator("X", 80e9, peaks={"bf16": 1e15}), 16, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_best_split_is_never_slower_than_another_that_fits(name: str) -> None:
    shape, chip, n, options = CASES[name]
    model = shelf()[shape]
    found = best_split(model, chip, n, budget.usual_batch(model, n), **options)
    assert found.fits
    fitting = 0
    for split in budget._splits(n):
        try:
            other = found.but(**split)
        except ValueError:
            continue
        if other.fits:
            fitting += 1
            assert found.seconds.likely <= other.seconds.likely * 1.00001
    assert fitting > 1


def test_what_a_split_takes_at_least_is_never_too_much() -> None:
    for name in ("600M", "69B"):
        for options in ({}, {"flops_per_gpu": 400e12}, {"utilizations": (0.3, 0.4, 1)}):
            first = best_split(shelf()[name], H100, 64, 1024, **options)
            first = first.but(recompute="none")
            for split in budget._splits(64):
                try:
                    price = budget._price(first.but(**split), first)
                except ValueError:
                    continue
                [floor] = budget._floors(first, [split])
                assert floor[0] <= price[0] + 2e-6
                assert floor[1] <= price[1] + 2e-6


def test_where_nothing_fits_the_nearest_is_told() -> None:
    model = shelf()["43B"]
    found = best_split(model, A100, 8, 1024)
    assert not found.fits
    for t in (1, 2, 4, 8):
        for again in ("none", "full"):
            other = found.but(tensor_parallel=t, recompute=again)
            assert found.memory.total <= other.memory.total
    with pytest.raises(ValueError, match="is not divisible by"):
        best_split(model, A100, 7, 1024)


def test_the_batch_is_about_four_million_tokens() -> None:
    for n in (8, 24, 64, 504, 1024):
        B = budget.usual_batch(LLAMA, n)
        assert B % n == 0
        assert 0.6 <= B * 8192 / 4e6 <= 1.6 or n == B


def test_the_shelf_is_of_round_shapes() -> None:
    shapes = shelf(2048)
    sizes = [m.hidden_size for m in shapes.values()]
    assert sizes == sorted(sizes)
    assert {m.sequence_length for m in shapes.values()} == {2048}
    assert [*shapes] == [*shelf()]


# --- LoRA and optimizers

LORA = {
    "phi-1.5 1.3B": Transformer.gpt(24, 2048, 32, 51200, 1044, False),
    "StableLM 3B": Transformer.gpt(16, 4096, 32, 50688, 1034, False),
    "Llama 2 7B": Transformer.llama(32, 4096, 32, 32, 11008, 32000, 1304),
    "Llama 2 13B": Transformer.llama(40, 5120, 40, 40, 13824, 32000, 1304),
}
"""Shapes and longest sequences of litgpt's table (tutorials/resource-tables.md)."""

TRAINED = {"phi-1.5 1.3B": 1_572_864, "StableLM 3B": 2_097_152}
TRAINED |= {"Llama 2 7B": 4_194_304, "Llama 2 13B": 6_553_600}


@pytest.mark.parametrize("name", LORA)
def test_adapters_are_counted_as_published(name: str) -> None:
    assert lora_parameters(LORA[name]) == TRAINED[name]


def lora_rows(setup: str) -> list[dict[str, Any]]:
    found = published.rows("measured_memory")
    return [r for r in found if r.get("setup") == f"LoRA bf16-true, quant={setup}"]


def test_the_measured_peaks_of_lora_lie_within_15_per_cent() -> None:
    rows = lora_rows("none")
    assert len(rows) == 9
    for r in rows:
        peak = lora_memory(LORA[r["model"]], r["local_batch_size"]).total
        assert 0.85 <= peak / r["peak_bytes"] <= 1


def test_in_four_bits_a_quarter_to_a_third_is_missing() -> None:
    rows = lora_rows("nf4")
    assert len(rows) == 2
    for r in rows:
        peak = lora_memory(LORA[r["model"]], 1, weight_bytes=0.5625).total
        assert 0.69 <= peak / r["peak_bytes"] <= 0.72


def test_what_is_adapted_needs_its_input() -> None:
    model = LORA["Llama 2 7B"]
    few, all_of_it = (
        lora_memory(model, 1, targets=t)
        for t in (["query", "value"], ["query", "key", "value", "output", "mlp"])
    )
    more = 2 * 1304 * 32 * (4096 + 11008)
    assert all_of_it.activations - few.activations == more
    assert all_of_it.adapters > few.adapters


def test_optimizers_are_recipes_for_a_plan() -> None:
    held = {
        name: plan_run(
            *(LLAMA, H100, 64, 1e12, 512), recompute="none", recipe=recipe, zero_stage=1
        ).memory.optimizer
        for name, recipe in OPTIMIZERS.items()
    }
    assert held["adam"] > held["muon"] > held["adam_8bit"] > held["adafactor"] == 0
    assert held["muon"] * 2 == held["adam"]


def test_muon_and_the_host_at_their_published_numbers() -> None:
    assert muon_overhead(768, 524_288) == pytest.approx(0.007, abs=0.0005)
    assert muon_overhead(16384, 16e6) == pytest.approx(0.005, abs=0.0005)
    assert offload_seconds(8e9, 25e9, num_gpus=8) == pytest.approx(0.16)


@pytest.mark.parametrize("targets", ["qv", [], ["gate"], 3, None])
def test_unknown_matrices_are_refused(targets: Any) -> None:
    with pytest.raises(ValueError, match="targets="):
        lora_parameters(LLAMA, targets=targets)


def test_lora_is_for_plain_layers() -> None:
    with pytest.raises(ValueError, match="has layers other than attention"):
        lora_parameters(published.architecture("Mixtral-8x7B", 4096))


# --- the page for who pays


def test_the_report_stands_alone() -> None:
    page = PLAN.report("our 8B")
    assert page.markdown.startswith("# Our 8B: 8.03 billion parameters")
    for line in page.lines:
        assert all(line.cells()), line.what
        for cell in line.cells():
            assert cell in unescape(page.html)
            assert cell in page.markdown
    assert {"days", "cost", "energy", "memory of a GPU", "loss expected"} <= {
        line.what for line in page.lines
    }
    assert not re.search(r"https?://|<script|<link|src=", page.html)


@pytest.mark.parametrize("law", [key for key, law in LAWS.items() if law.tells_loss])
@pytest.mark.parametrize("flops", [1e18, 1e22, 1e26])
def test_the_best_for_a_loss_is_the_optimum_that_has_it(law: str, flops: float) -> None:
    best = compute_optimal(flops, law)
    target = loss(best.parameters, best.tokens, law)
    again = best_for_loss(target, law)
    assert again.parameters == pytest.approx(best.parameters)
    assert again.tokens == pytest.approx(best.tokens)
    other = compute_for_loss(0.5 * best.parameters, target, law)
    times = other / (6 * again.parameters * again.tokens)
    assert times == pytest.approx(over_training(0.5, law))


def test_a_loss_that_none_has_is_refused() -> None:
    for bad in (1.8, 1.8172, *BAD_QUANTITIES):
        assert_refused(best_for_loss, "loss", loss=bad)
    many = best_for_loss(np.array([2.0, 2.1]))
    assert many.parameters[0] > many.parameters[1]


def test_the_curve_is_dotted_beyond_the_runs_of_its_law() -> None:
    """All solid inside, all dotted for a budget no run had, both in between."""
    dots = [drawings.Dot(x, size, 1e9, 3.0, True) for x, size in (("a", 5e7), ("b", 5e11))]

    def curve(flops: float, law: str = "besiroglu") -> list[str]:
        body = drawings.loss_against_size(dots, flops, law).body
        return re.findall(r'<polyline [^>]*stroke-width="3"([^>]*)/>', body)

    assert {"", ' stroke-dasharray="2 5"'} == {*curve(1e21)}
    assert {' stroke-dasharray="2 5"'} == {*curve(1e26)}


def test_the_numbers_of_the_report_are_the_plans() -> None:
    told = {line.what: line for line in PLAN.report().lines}
    assert told["parameters"].number == "8,030,261,248"
    assert told["days"].number == "24"
    assert told["days"].interval == "20 to 27"
    assert told["cost"].number == "90,600 dollars"
    assert told["loss expected"].number == f"{loss(8.03e9, 1e12):.2f} nats a token"
    assert told["tokens a parameter"].assumption.startswith("1.35 times the least work")


def test_a_report_at_a_measured_rate_has_the_stops_in_it() -> None:
    told = {x.what: x for x in PLAN.but(flops_per_gpu=420e12).report().lines}
    assert told["days"].assumption == "your measured rate; stops add 8 to 50 %"
    told = {x.what: x for x in PLAN.calibrated(10.0).report().lines}
    assert told["days"].assumption == "your measured step; stops add 8 to 50 %"
    with pytest.raises(ValueError, match="is many: a report is about one"):
        PLAN.but(tokens=np.array([1e12, 2e12])).report()
    with pytest.raises(ValueError, match="law='chinchila' is unknown"):
        PLAN.report(law="chinchila")


# --- bad input


@pytest.mark.parametrize("bad", BAD_QUANTITIES, ids=str)
def test_what_is_no_quantity_is_refused(bad: Any) -> None:
    assert_refused(loss, "parameters", parameters=bad, tokens=1e12)
    assert_refused(loss, "tokens", parameters=1e9, tokens=bad)
    assert_refused(compute_optimal, "flops", flops=bad)
    assert_refused(compute_for_loss, "loss", parameters=1e9, loss=bad)
    assert_refused(most_tokens, "days", plan=PLAN, days=bad)
    assert_refused(effective_tokens, "epochs", tokens=1e9, epochs=bad)


def test_unknown_laws_and_wrong_things_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'hoffmann'"):
        compute_optimal(1e20, "hofmann")
    assert_refused(most_tokens, "plan", plan="mine", days=3)
    for bad in ("8B", 3, None, ["8B"], [LLAMA, None], {"8B": None}, []):
        assert_refused(frontier, "shapes", **budget_of(shapes=bad))
    assert_refused(frontier, "shapes", **budget_of(shapes={}))
    assert_refused(frontier, "days", **budget_of(days=-1))
    assert_refused(frontier, "num_gpus", **budget_of(num_gpus=2.5))


def budget_of(**changes: Any) -> dict[str, Any]:
    run = {"accelerator": H100, "num_gpus": 8, "days": 3, "shapes": {"8B": LLAMA}}
    return run | changes


def test_an_optimum_may_be_made_by_hand() -> None:
    assert Optimum(70e9, 1.4e12).tokens_per_parameter == 20
    with pytest.raises(ValueError, match="memory="):
        Accelerator("none", 0)


# --- drawings, panel, exercises


def panel_with(**changes: Any) -> Any:
    return PANELS["budget"].answer({**PANELS["budget"].default, **changes})


def test_what_the_page_says_of_its_panel_is_so() -> None:
    small = panel_with(size=1_500_000_000).html
    assert "1.5B on 3.94 trillion, ends 0.118 above" in small
    assert "1.5B is 0.073 times the law's best size" in small
    assert round(1 / 0.073) == 14
    assert "<b>24B</b> on 343 billion tokens ends lowest, at 2.062" in small
    rich = panel_with(money=800_000).html
    assert "632 GPUs for 21.0 days" in rich
    assert "<b>69B</b> on 1.12 trillion tokens ends lowest, at 1.981" in rich
    month, week = (panel_with(**EIGHT, days=days).html for days in (30, 5))
    assert "48 GPUs for 5.00 days" in week
    assert "5.0B, 104 billion tokens" in month
    assert "5.0B, 106 billion tokens" in week
    best = "<b>7.2B</b> on 71.5 billion tokens ends lowest, at 2.220"
    assert best in month
    assert best in week
    assert week.count('stroke-width="2.5"') < month.count('stroke-width="2.5"')
    eight, more = (
        {x.name: x for x in budget_panel.dots_of("A100 80GB SXM", n, 240 / n, "besiroglu")}
        for n in (8, 48)
    )
    assert budget_panel.split_of("A100 80GB SXM", "14B", 8).split.tensor_parallel > 1
    assert budget_panel.split_of("A100 80GB SXM", "14B", 32).split.tensor_parallel == 1
    assert more["14B"].loss < eight["14B"].loss
    assert more["31B"].fits > eight["31B"].fits


def test_what_the_page_says_of_its_cases_is_so() -> None:
    served = frontier(H100, 64, 21, shelf(), serving_memory=24e9)
    best = min(x.loss.likely for x in served.points if x.fits)
    assert served.best.name == "9.0B"
    assert served.best.loss.likely - best == pytest.approx(0.013, abs=5e-4)
    small = frontier(A100, 8, 30, shelf(), serving_memory=24e9)
    assert small.best.name == "7.2B"
    assert small["loss"][small["name"].index("7.2B")] == min(small["loss"])


def test_no_dot_lies_below_the_curve_which_has_the_rate_of_the_busiest() -> None:
    points = frontier(H100, 64, 21, shelf()).points
    work = {x.name: 6 * x.plan.parameters.active * x.tokens.likely for x in points}
    most = max(work.values())
    assert max(work, key=lambda name: work[name]) == "24B"
    assert most / (64 * 989.5e12 * 21 * units.DAY) == pytest.approx(0.42, abs=0.005)
    for x in points:
        N = x.plan.parameters.active
        assert x.loss.likely >= loss(N, most / (6 * N)) * (1 - 1e-9)


def test_the_worked_example_is_near_the_diamond() -> None:
    flops = 64 * 0.42 * 989.5e12 * 21 * units.DAY
    assert flops == pytest.approx(4.83e22, rel=0.001)
    words = drawings.frontier_picture(frontier(H100, 64, 21, shelf())).words
    assert "The law's best: 20B parameters on 398 billion tokens" in words
    assert 20 * (flops / 120) ** 0.5 == pytest.approx(401e9, abs=0.5e9)
    best = compute_optimal(max(_work_of_three_weeks()))
    assert (flops / 120) ** 0.5 == pytest.approx(best.parameters, rel=0.02)
    assert 20 * (flops / 120) ** 0.5 == pytest.approx(best.tokens, rel=0.02)


def _work_of_three_weeks() -> list[float]:
    dots = budget_panel.dots_of("H100 SXM", 64, 21, "besiroglu")
    return [6 * dot.parameters * dot.tokens for dot in dots]


def test_ten_times_the_money_moves_the_axis_too() -> None:
    lowest = {m: panel_with(money=m).html for m in (80_640, 800_000)}
    assert ">1.8</text>" in lowest[800_000]
    assert ">1.8</text>" not in lowest[80_640]


def test_embedding_and_head_of_llama_by_adam_in_place_of_muon() -> None:
    assert 4 * 2 * LLAMA.vocab_size * LLAMA.hidden_size == pytest.approx(4.2e9, 0.001)


def test_what_the_evidence_says_of_the_splits_is_so() -> None:
    points = {x.name: x for x in frontier(H100, 64, 21, shelf()).points}
    assert points["24B"].plan.mfu == pytest.approx(0.46, abs=0.005)
    assert points["31B"].plan.mfu == pytest.approx(0.39, abs=0.005)
    for name in ("31B", "43B", "55B"):
        assert points[name].plan.split.tensor_parallel == 2
    assert points["69B"].plan.inputs["recompute"] == "full"
    names = [*points]
    for name in names[names.index("4.2B") : names.index("55B") + 1]:
        span = points[name].loss
        assert 0.0035 <= span.greatest - span.likely <= 0.0105


EIGHT = {"money": 8640, "chip": "A100 80GB SXM", "price": 1.5, "size": 4_200_000_000}


def test_the_panel_agrees_with_the_frontier() -> None:
    front = frontier(H100, 64, 21, shelf())
    dots = budget_panel.dots_of("H100 SXM", 64, 21, "besiroglu")
    for point, dot in zip(front.points, dots, strict=True):
        assert dot.fits == point.fits
        if point.fits:
            assert dot.tokens == pytest.approx(point.tokens.likely, rel=0.001)


@pytest.mark.parametrize("n", [24, 40, 792, 1432, 3000])
def test_any_number_of_nodes_is_planned(n: int) -> None:
    for name in ("310M", "9.0B", "69B", "430B"):
        plan = budget_panel.plan_of("H100 SXM", name, n)
        assert plan.split.num_gpus == n
        [dot] = [
            x for x in budget_panel.dots_of("H100 SXM", n, 9, "besiroglu", name) if x.name == name
        ]
        assert dot.tokens == pytest.approx(most_tokens(plan, 9).likely)


def test_the_panel_redraws_at_once() -> None:
    panel_with()
    times = []
    for money in (60_000, 80_640, 150_000, 300_000):
        panel_with(money=money)
        started = time.perf_counter()
        panel_with(money=money, days=20)
        times.append(time.perf_counter() - started)
    assert min(times) < 0.015


def test_too_little_money_is_refused_in_words() -> None:
    answer = panel_with(money=2000)
    assert answer.problem.startswith("Money 2000 keeps 1.6 GPUs for these days")
    assert answer.offers


def test_drawings_say_in_words_what_they_show() -> None:
    front = frontier(H100, 64, 21, shelf())
    words = drawings.frontier_picture(front, "7.2B").words
    assert "21 of 23 shapes will do, 63M to 220B" in words
    assert "Yours: 7.2B, 1.0 trillion tokens, 2.081" in words
    assert "half size 1.26" in drawings.price_of_size().words
    rows = published.rows("tokens_per_parameter")
    told = drawings.tokens_each({"mine": 20.0}, rows).words
    assert told.endswith("58 released models: 1.1 to 60,000.")
    assert drawings.same_work(1e22).words.count("loss 2.166") == 2


@pytest.mark.parametrize(
    ("model", "tokens", "said"),
    [
        ("4.2B", 81e9, "right: 4.2B gets 19 tokens a parameter"),
        ("1.9B", "160B", "right: 1.9B gets 82 tokens a parameter"),
        ("4.2B", 110e9, "too many tokens: at the slow end they take 33.6 of your 30"),
        ("4.2B", 30e9, "you leave time: even at the slow end they take 9.15 of"),
        ("24B", 15e9, "too large: 24B gets 0.63 tokens a parameter"),
        ("310M", 950e9, "too small: 310M gets 3,100 tokens a parameter"),
        ("600M", 550e9, "too small: 600M gets 920 tokens a parameter"),
        ("9.0B", 47e9, "right: 9.0B gets 5.2 tokens a parameter"),
        ("7.2B", "61.5B", "right: 7.2B gets 8.5 tokens a parameter"),
        ("9.0B", 34e9, "right: 9.0B gets 3.8 tokens a parameter"),
        ("14B", 30e9, "too large: 14B gets 2.2 tokens a parameter"),
        ("14B", "30.2B", "too many tokens: at the slow end they take 30.3 of your 30"),
        ("7.2B", "71.5B", "too many tokens: at the slow end they take 34.9 of your 30"),
        ("31B", 1e9, "31B does not fit: at best"),
        ("8B", 1e9, "model='8B' is unknown"),
    ],
)
def test_a_run_of_ones_own_is_judged(model: str, tokens: Any, said: str) -> None:
    run = {"gpus": 8, "chip": "A100 80GB SXM", "days": 30}
    verdict = check("10-d", run | {"model": model, "tokens": tokens})
    assert verdict.text.startswith(said)
    assert bool(verdict) == said.startswith("right")


def test_a_model_far_from_the_best_is_told_its_price() -> None:
    run = {"gpus": 8, "chip": "A100 80GB SXM", "days": 30}
    far = check("10-d", run | {"model": "1.9B", "tokens": 160e9}).text
    [N] = [p.parameters for p in frontier(A100, 8, 30, shelf()).points if p.name == "1.9B"]
    best = best_for_loss(loss(N, 160e9))
    times = N * 160e9 / (best.parameters * best.tokens)
    assert laws.times_the_least(N, 160e9) == pytest.approx(times)
    assert f"and {times:.2g} times the least work for its loss." in far
    near = check("10-d", run | {"model": "4.2B", "tokens": 81e9}).text
    assert "times the least" not in near


def test_tokens_of_the_panel_and_sizes_of_the_green_strip_are_right() -> None:
    front = frontier(A100, 8, 30, shelf())
    run = {"gpus": 8, "chip": "A100 80GB SXM", "days": 30}
    strip = [p for p in front.points if 2.7e9 <= p.parameters <= 9.2e9]
    assert [p.name for p in strip] == ["3.2B", "4.2B", "7.2B", "9.0B"]
    for point in strip:
        slow = units.count(point.tokens.least)
        table = panel_with(**EIGHT | {"days": 30, "size": units.read(point.name)}).html
        assert "The plan of your model" in table
        assert f"{slow} to " in table
        for tokens in (point.tokens.least, 0.71 * point.tokens.least, units.read(slow)):
            assert check("10-d", run | {"model": point.name, "tokens": tokens})


def test_the_exercise_refuses_what_the_picture_calls_never() -> None:
    assert over_training(budget_exercises.SMALLEST) < 8 < over_training(0.21)
    assert smallest_share("besiroglu") < budget_exercises.SMALLEST


@with_loss
def test_never_begins_where_no_text_is_enough(law: str) -> None:
    least = smallest_share(law)
    assert over_training(1.0001 * least, law) > 1e6
    with pytest.raises(ValueError, match="never gets to the same loss"):
        over_training(0.9999 * least, law)


def test_the_grey_ends_where_never_begins() -> None:
    least = smallest_share("besiroglu")
    assert least == pytest.approx(0.1464, abs=5e-5)
    assert over_training(0.2) == pytest.approx(14, abs=0.1)
    with pytest.raises(ValueError, match="never"):
        over_training(1 / 7)
    picture = drawings.price_of_size()
    [grey] = re.findall(rf'<rect [^>]*fill="{drawings.GREY}"[^>]*>', picture.body)
    x, wide = (float(re.findall(rf' {k}="([\d.]+)"', grey)[0]) for k in ("x", "width"))
    assert x + wide == pytest.approx(drawings._px(least), abs=0.1)
    assert ">over 8<" in picture.body
    assert picture.words.endswith("over 8 below 0.22, and below 0.146 never.")


def test_how_far_from_twenty_models_lie_since_2023() -> None:
    rows = [r for r in published.rows("tokens_per_parameter") if r["year"] >= 2023]
    ratios = {r["name"]: r["tokens_per_parameter"] for r in rows}
    assert min(ratios.values()) > 20
    assert sum(x <= 40 for x in ratios.values()) == 7
    assert sum(x >= 100 for x in ratios.values()) > len(ratios) / 2
    assert max(ratios, key=lambda name: ratios[name]) == "Qwen3 0.6B"
    assert ratios["Qwen3 0.6B"] / 20 == pytest.approx(3000, rel=0.01)


def test_whole_machines_leave_some_of_the_money() -> None:
    told = PANELS["budget"].answer(PANELS["budget"].presets["100,000 dollars in a month"])
    assert "Whole machines of 8; $13.6 thousand are left." in told.html
    assert "are left" not in panel_with().html


def test_the_key_names_crosses_only_where_one_stands() -> None:
    assert "does not" in drawings.frontier_picture(frontier(A100, 8, 30, shelf())).body
    high = drawings.Dot("high", 1e11, 1e9, 9.0, False)
    low = drawings.Dot("low", 1e9, 1e11, 2.2, True)
    assert "does not" not in drawings.loss_against_size([low, high], 6e20).body
    small = {n: shelf()[n] for n in ("1.9B", "4.2B", "7.2B")}
    assert "does not" not in drawings.frontier_picture(frontier(A100, 8, 30, small)).body


def test_lora_and_full_training_count_logits_alike() -> None:
    model = published.architecture("Llama-3.1-8B", sequence_length=4096)
    one = {"num_gpus": 1, "tokens": 1e9, "global_batch_size": 1}
    full = plan_run(model, H100, **one, recompute="none", recipe="bf16").memory
    lora = lora_memory(model, micro_batch_size=1)
    assert lora.logits == full.transient == 8 * 4096 * model.vocab_size
    dropped = 2 * 4096 * 32 * (4096 + 14336)
    assert full.activations - lora.activations == dropped


def test_half_the_size_wins_where_a_model_is_used() -> None:
    assert check("10-b", "half")
    for other in ("quarter", "best", "twice"):
        assert check("10-b", other).text.startswith("no: ")
    assert predict("10-guess", 1.26).text.startswith("you said 1.26; it is 1.26 times")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (436e9, "these are the tokens"),
        (15.4e9, "this has 20 tokens for each"),
        (26.7e9, "this has C = 40N²"),
        (18.9e9, "this takes dollars for hours"),
        (32.7e9, "this multiplies by the price"),
        (17.2e9, "this has the whole peak"),
    ],
)
def test_slips_with_a_size_for_money_are_named(answer: float, said: str) -> None:
    assert check("10-a", "10.9B")
    verdict = check("10-a", answer)
    assert not verdict
    assert said in verdict.text


def _strip(C: float) -> tuple[float, float]:
    """The sizes, in billions, within 0.01 of the law's best for this work."""
    sizes = np.geomspace(1e9, 1e11, 4001)
    losses = loss(sizes, C / (6 * sizes))
    within = sizes[losses <= losses.min() + 0.01] / 1e9
    return float(within[0]), float(within[-1])


def test_the_last_answer_of_the_page() -> None:
    C = 64 * 0.42 * 989.5e12 * 21 * 86400
    low, high = _strip(2 / 3 * C)
    assert (round(low, 1), round(high)) == (7.6, 36)
    assert low < 24 < high
    page = Path(__file__).parents[1] / "notebooks/10_budget.ipynb"
    assert "(now 7.6 to 36 billion)" in page.read_text("utf-8")


def test_how_well_the_size_is_known() -> None:
    """At a fixed C the size goes with one over the root of tokens a parameter."""
    middle = compute_optimal(5.76e23).tokens_per_parameter
    assert max((middle / 7) ** 0.5, (35 / middle) ** 0.5) == pytest.approx(1.6, abs=0.03)
