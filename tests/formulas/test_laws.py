"""Laws of loss: their optimum, their fits, and where they end."""

import math
import re
from typing import Any

import numpy as np
import pytest

from llmtrain_course.budget.formulas import (
    fit_law,
    fitted_sizes,
    loss_terms,
    parameters_for,
    smallest_share,
    tokens_for_size,
)
from llmtrain_helpers import (
    LAWS,
    Accelerator,
    Law,
    Optimum,
    best_for_loss,
    compute_for_loss,
    compute_optimal,
    effective_tokens,
    laws,
    loss,
    over_training,
    published,
)
from llmtrain_helpers.laws import outside
from tests.bad_values import assert_refused

CHINCHILLA = 5.76e23
"""FLOP of Gopher's and Chinchilla's budget."""


with_loss = pytest.mark.parametrize("law", [k for k, x in LAWS.items() if x.tells_loss])


every_law = pytest.mark.parametrize("law", LAWS)


def row(name: str) -> dict[str, Any]:
    [match] = [r for r in published.rows("scaling_laws") if r.get("law") == name]
    return match


@pytest.mark.parametrize("law", [name for name in LAWS if name != "twenty"])
def test_a_law_is_that_of_its_row(law: str) -> None:
    cells, entry = row(law), LAWS[law]
    for letter in ("E", "A", "B", "alpha", "beta"):
        assert getattr(entry, letter) == cells.get(letter)
    if entry.text:
        assert entry.text == (cells["d_opt_prefactor"], cells["d_opt_exponent"])
    if law == "deepseek":
        assert entry.size == (cells["n_opt_prefactor"] / 6, cells["n_opt_exponent"])
    if law == "porian":
        assert entry.size == (cells["n_opt_prefactor"], cells["n_opt_exponent"])
    if law == "kaplan":
        assert compute_optimal(laws.PF_DAY, law).parameters == pytest.approx(
            cells["n_opt_prefactor"]
        )


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


def test_half_and_a_quarter_cost_the_same_at_any_budget() -> None:
    for flops in (1e19, 1e21, 1e23, 1e26):
        best = compute_optimal(flops)
        at = loss(best.parameters, best.tokens)
        for share, times in ((0.5, 1.26), (0.25, 4.5)):
            spent = compute_for_loss(share * best.parameters, at) / flops
            assert spent == pytest.approx(times, rel=0.01)
            assert over_training(share) == pytest.approx(spent, rel=1e-6)
        assert compute_for_loss(best.parameters, at) == pytest.approx(flops)
        with pytest.raises(ValueError, match="is out of reach: on endless text, this size gets to"):
            compute_for_loss(0.1 * best.parameters, at)
    with pytest.raises(ValueError, match=r"share=0.1 of the best size never reaches"):
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


@pytest.mark.parametrize(("epochs", "worth"), [(1, 1), (4, 3.73), (8, 6.6), (16, 10.6), (40, 15.2)])
def test_repeated_tokens_lose_their_worth(epochs: float, worth: float) -> None:
    assert effective_tokens(1e9, epochs) / 1e9 == pytest.approx(worth, rel=0.005)


def test_no_number_of_epochs_is_worth_more_than_16_4() -> None:
    assert effective_tokens(1.0, 1e6) == pytest.approx(1 + laws.REPEATS)
    many = effective_tokens(np.array([1e9, 2e9]), 4)
    assert many[1] == pytest.approx(2 * many[0])
    with pytest.raises(ValueError, match="one epoch=1 is more than epochs="):
        effective_tokens(1e9, 0.5)


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
        with pytest.raises(ValueError, match="gives a best size but no loss") as refusal:
            call()
        assert "besiroglu" in str(refusal.value)
    with pytest.raises(ValueError, match="has neither a loss nor a best size"):
        compute_optimal(1e20, Law("empty", "here"))


def runs_like(law: str, how_many: int = 60) -> tuple[Any, Any, Any]:
    dice = np.random.default_rng(3)
    N = 10 ** dice.uniform(7.8, 10.2, how_many)
    D = N * 10 ** dice.uniform(-0.3, 2.3, how_many)
    return N, D, loss(N, D, law)


@with_loss
def test_known_coefficients_are_found_again(law: str) -> None:
    fit = fit_law(*runs_like(law))
    for letter in ("E", "A", "B", "alpha", "beta"):
        wanted = getattr(LAWS[law], letter)
        assert getattr(fit, letter) == pytest.approx(wanted, rel=0.01), letter


def test_a_few_losses_gone_astray_hardly_matter() -> None:
    N, D, L = runs_like("besiroglu")
    L[::20] *= 1.2
    fit = fit_law(N, D, L)
    assert fit.alpha == pytest.approx(0.3478, rel=0.01)
    assert pytest.approx(1.8172, rel=0.01) == fit.E


@pytest.mark.parametrize("text", ["c4_original", "rpj", "rw_original"])
def test_published_runs_give_the_fits_of_the_table(text: str) -> None:
    runs = published.loss_runs().query(f"train_data == '{text}'")
    fit = fit_law(runs["parameters"], runs["tokens"], runs["loss"])
    names = {"c4_original": "C4", "rpj": "RedPajama", "rw_original": "RefinedWeb"}
    [cells] = [
        r
        for r in published.rows("scaling_laws")
        if r["name"] == f"Gadre runs trained on {names[text]}, refitted"
    ] or [
        r
        for r in published.rows("scaling_laws")
        if r["name"].startswith(f"Gadre runs trained on {names[text]}")
    ]
    for letter in ("E", "A", "B", "alpha", "beta"):
        assert getattr(fit, letter) == pytest.approx(cells[letter], rel=0.01)
    assert fit.fitted["parameters"][1] == pytest.approx(6.89e9, rel=0.01)


def test_a_fitted_law_keeps_the_ranges_of_its_runs() -> None:
    N, D, L = runs_like("besiroglu", 20)
    fit, work = fit_law(N, D, L), 6 * N * D
    wanted = {"parameters": N, "tokens": D, "flops": work}
    for key, runs in wanted.items():
        assert fit.fitted[key] == pytest.approx((runs.min(), runs.max())), key
    most = work.argmax()
    assert laws.outside(N[most], D[most], fit) == ""
    assert "2.0 times the FLOP" in laws.outside(N[most], 2 * D[most], fit)


RANGES = {"besiroglu", "llama3_printed", "llama3", "deepseek", "porian", "kaplan", "muennighoff"}
"""Laws whose row says of which runs they are, in numbers."""


@pytest.mark.parametrize("law", sorted(RANGES))
def test_a_laws_runs_are_those_of_its_row(law: str) -> None:
    ranges = re.findall(
        r"([\d.e]+) to ([\d.e]+) (parameters|tokens(?! a)|FLOP)", row(law)["fitted_range"]
    )
    assert ranges
    for least, most, what in ranges:
        key = {"FLOP": "flops"}.get(what, what)
        assert LAWS[law].fitted[key] == (float(least), float(most))


@pytest.mark.parametrize("law", [name for name, law in LAWS.items() if "flops" in law.fitted])
def test_the_work_of_a_laws_runs_bounds_the_sizes_that_it_knows(law: str) -> None:
    """A tenth beyond the least and the most is as good as inside."""
    least, most = LAWS[law].fitted["flops"]
    for flops in (least / 1.09, least, most, 1.09 * most):
        assert fitted_sizes(flops, law) != (math.inf, math.inf)
        assert "FLOP" not in compute_optimal(flops, law).outside
    for flops in (least / 1.11, 1.11 * most):
        assert fitted_sizes(flops, law) == (math.inf, math.inf)
        assert "times the FLOP" in compute_optimal(flops, law).outside


def test_too_few_runs_are_refused() -> None:
    N, D, L = runs_like("besiroglu", 5)
    with pytest.raises(ValueError, match="not of at least six runs"):
        fit_law(N, D, L)
    with pytest.raises(ValueError, match="one loss for each"):
        fit_law([*N, 1e9, 1e9], D, L)
    assert_refused(fit_law, "loss", parameters=N, tokens=D, loss=-L)


def test_runs_that_tell_nothing_are_refused() -> None:
    """Six equal ones, sizes or text or losses all alike, five that are told twice."""
    N, D, L = runs_like("besiroglu", 6)
    alike = np.full(6, 2.5)
    for name in ("parameters", "tokens", "loss"):
        runs = {"parameters": N, "tokens": D, "loss": L, name: alike}
        assert_refused(fit_law, f"{name}=.* is the same for all runs", **runs)
    assert_refused(fit_law, "parameters", parameters=alike, tokens=alike, loss=alike)
    twice = {"parameters": N, "tokens": D, "loss": L}
    twice = {name: [*numbers[:5], numbers[0]] for name, numbers in twice.items()}
    assert_refused(fit_law, "loss=.* six runs that differ", **twice)


def test_a_law_is_checked_when_it_is_made() -> None:
    for bad in [(1,), (1, 0.5, 2), (1, "0.5"), (1, 0), (-1, 0.5), [1, 0.5], "ab"]:
        assert_refused(Law, "size", "mine", "here", size=bad)
        assert_refused(Law, "text", "mine", "here", text=bad)
    for bad in [{"parameters": (1e9,)}, {"tokens": (2e9, 1e9)}, {"flops": 1e21}, {"size": (1, 2)}]:
        assert_refused(Law, "fitted", "mine", "here", fitted=bad)


def test_however_far_outside_it_is_told() -> None:
    """Also where the ratio is more than any number that is taken."""
    far = outside(np.array([1e40, 1]), np.array([1e40, 1]), "llama3")
    assert "over a billion times the FLOP of its largest runs" in far
    assert "under a billionth of the FLOP of its smallest runs" in far
    assert outside(1e40, 1e40, "llama3").startswith("over a billion times the parameters")
    assert outside(1e40, np.array([1e40, 1]), "llama3") == outside(1e40, 1e40, "llama3")
    assert_refused(outside, "tokens", parameters=1e40, tokens=[1e40, 1])


@pytest.mark.parametrize("law", [key for key, law in LAWS.items() if law.tells_loss])
@pytest.mark.parametrize("flops", [1e18, 1e22, 1e26])
def test_the_best_for_a_loss_is_the_optimum_that_has_it(law: str, flops: float) -> None:
    best = compute_optimal(flops, law)
    target = loss(best.parameters, best.tokens, law)
    optimum = best_for_loss(target, law)
    assert optimum.parameters == pytest.approx(best.parameters)
    assert optimum.tokens == pytest.approx(best.tokens)
    other = compute_for_loss(0.5 * best.parameters, target, law)
    times = other / (6 * optimum.parameters * optimum.tokens)
    assert times == pytest.approx(over_training(0.5, law))


def test_an_optimum_may_be_made_by_hand() -> None:
    assert Optimum(70e9, 1.4e12).tokens_per_parameter == 20
    with pytest.raises(ValueError, match="memory="):
        Accelerator("none", 0)


def test_how_well_the_size_is_known() -> None:
    """At a fixed C the size goes with one over the root of tokens a parameter."""
    middle = compute_optimal(5.76e23).tokens_per_parameter
    assert max((middle / 7) ** 0.5, (35 / middle) ** 0.5) == pytest.approx(1.6, abs=0.03)


# --- bad values


@with_loss
def test_below_a_share_of_the_best_size_no_text_is_enough(law: str) -> None:
    least = smallest_share(law)
    assert least == pytest.approx((1 + LAWS[law].alpha / LAWS[law].beta) ** (-1 / LAWS[law].alpha))
    assert over_training(1.0001 * least, law) > 1e6
    with pytest.raises(ValueError, match="never reaches the same loss"):
        over_training(0.9999 * least, law)


@pytest.mark.parametrize("ratio", [1, 20, 40])
def test_a_size_by_a_rule_spends_the_whole_compute(ratio: float) -> None:
    N = parameters_for(1e22, ratio)
    assert 6 * N * (ratio * N) == pytest.approx(1e22)
    assert parameters_for(4e22, ratio) == pytest.approx(2 * N)
    assert math.sqrt(1e22 / (6 * ratio)) == N


def test_a_law_knows_the_sizes_around_its_best_one() -> None:
    low, high = fitted_sizes(1e21, "hoffmann")
    best = compute_optimal(1e21, "hoffmann")
    assert low < best.parameters < high
    assert tokens_for_size(best.parameters, 1e21) == pytest.approx(best.tokens)
    assert fitted_sizes(1e30, "llama3") == (math.inf, math.inf)
    for law in LAWS:
        low, high = fitted_sizes(1e30, law)  # far more work than any law has seen
        assert low == math.inf or low > high


# --- bad values


def test_a_loss_that_none_has_is_refused() -> None:
    for bad in (1.8, 1.8172):
        assert_refused(best_for_loss, "loss", loss=bad)
    many = best_for_loss(np.array([2.0, 2.1]))
    assert many.parameters[0] > many.parameters[1]


def test_the_terms_and_the_floor_are_the_loss() -> None:
    small, little = loss_terms(9.05e9, 1.84e11)
    assert (small, little) == pytest.approx((0.1660, 0.1580), abs=1e-4)
    assert 1.8172 + small + little == pytest.approx(laws.loss(9.05e9, 1.84e11))
