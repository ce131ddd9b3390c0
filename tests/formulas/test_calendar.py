"""Failures, checkpoints, restarts, and what they make of a plan's days."""

import calendar as stdlib
import math
import os
from itertools import pairwise, product
from pathlib import Path
from random import Random
from statistics import median

import numpy as np
import pytest

from llmtrain_course.calendar.formulas import expected_days, simulate_run
from llmtrain_helpers import (
    RECIPES,
    Accelerator,
    Interval,
    Transformer,
    best_checkpoint_interval,
    calendar,
    calendar_days,
    checkpoint_bytes,
    goodput,
    losses,
    mean_time_between_failures,
    plan_run,
    published,
    spare_nodes,
)
from llmtrain_helpers.units import DAY, HOUR, MINUTE
from tests.bad_values import assert_refused

H100 = Accelerator("H100", 80e9, peaks={"bf16": 989.5e12})


LLAMA = Transformer.llama(32, 4096, 32, 8, 14336, 128256, 8192)


PLAN = plan_run(LLAMA, H100, 64, 1e12, 512, recompute="none", zero_stage=3)


MEASURED = PLAN.replace(flops_per_gpu=420e12)


def test_the_module_does_not_take_the_name_of_pythons_own() -> None:
    assert stdlib.isleap(2024)
    assert Path(stdlib.__file__).parent != Path(calendar.__file__).parent
    assert calendar.__name__ == "llmtrain_helpers.calendar"


# --- checkpoints


def test_a_checkpoint_holds_all_states_but_the_gradients() -> None:
    kept = {"fp32": 12, "amp": 12, "bf16": 14, "bf16_fp32_grads": 14}
    kept |= {"bf16_both_grads": 14, "pure_bf16": 6, "fp8": 9}
    assert {name: checkpoint_bytes(1000, name) / 1000 for name in RECIPES} == kept
    assert checkpoint_bytes(10**18 + 1, "bf16") == 14 * (10**18 + 1)
    sizes = checkpoint_bytes(np.array([1e9, 2e9]))
    assert sizes.tolist() == [14e9, 28e9]


def test_published_checkpoints_have_the_bytes_that_are_counted() -> None:
    """BLOOM's sizes are by du, in binary units: 2.3 TiB are within 3 percent of 14 bytes."""
    rows = {row["name"]: row for row in published.rows("checkpoints")}
    bloom, megatron = rows["BLOOM-176B"], rows["Megatron 1T"]
    assert bloom["bytes"] == pytest.approx(2.3 * 2**40)
    assert 0.97 < checkpoint_bytes(bloom["parameters"]) / bloom["bytes"] < 1
    assert checkpoint_bytes(megatron["parameters"]) / megatron["bytes"] < 1.03
    weights = rows["BLOOM-176B, bf16 weights only"]["bytes"]
    assert 2 * bloom["parameters"] / weights == pytest.approx(1, 3e-3)
    weighed = {row["name"]: row["num_bytes"] for row in published.rows("model_state_memory")}
    assert weighed["BLOOM-176B checkpoint, du 2.3T"] == bloom["bytes"]
    assert weighed["BLOOM-176B bf16 weights, du 329G"] == weights


@pytest.mark.parametrize(
    ("minutes", "printed", "digits"), [(24 * 60, 117, 0), (6 * 60, 57, 0), (15, 9.1, 1)]
)
def test_daly_prints_these_optima(minutes: float, printed: float, digits: int) -> None:
    """Restart 10 minutes, write 5 minutes: Daly 2006, abstract."""
    interval = best_checkpoint_interval(5 * MINUTE, minutes * MINUTE) / MINUTE
    assert round(interval, digits) == printed
    assert best_checkpoint_interval(5, minutes, "daly") == pytest.approx(interval)


def test_young_is_the_square_root_and_daly_comes_to_it() -> None:
    assert best_checkpoint_interval(40, 4e5, "young") == pytest.approx(math.sqrt(3.2e7))
    far = [best_checkpoint_interval(1, 1e12, form) for form in ("young", "daly")]
    assert far[0] / far[1] == pytest.approx(1, abs=1e-5)
    assert best_checkpoint_interval(300, 100) == 100


def test_where_a_write_takes_twice_the_time_between_failures_work_is_m_long() -> None:
    """Daly 2006, equation 37: its series holds for δ below 2M, where it ends at 8M/9."""
    assert best_checkpoint_interval(200, 100) == 100
    swept = best_checkpoint_interval(np.array([200 * (1 - 1e-9), 200, 201]), 100)
    assert swept[0] == pytest.approx(800 / 9)
    assert swept[1:].tolist() == [100, 100]


@pytest.mark.parametrize("d", [1, 40, 300])
@pytest.mark.parametrize("hours", [2, 20, 200])
def test_dalys_interval_is_the_best_of_the_exact_form(d: float, hours: float) -> None:
    M = hours * HOUR
    best = best_checkpoint_interval(d, M)
    around = goodput(best * np.linspace(0.3, 3, 541), d, M, 600)
    assert goodput(best, d, M, 600) >= around.max() - 2e-5


@pytest.mark.parametrize("hours", [2.78, 12.8, 112, 600])
def test_half_or_double_the_interval_adds_a_quarter_to_saving_and_lost(hours: float) -> None:
    """What the page and its recap tell, whatever a restart takes."""
    best = best_checkpoint_interval(40, hours * HOUR)
    for R in (0, 1800):
        half, once, double = (losses(k * best, 40, hours * HOUR, R) for k in (0.5, 1, 2))
        for other in (half, double):
            more = (other.saving + other.lost) / (once.saving + once.lost) - 1
            assert more == pytest.approx(0.25, abs=0.01)


def test_on_llamas_machine_that_is_under_a_tenth_of_all_losses() -> None:
    """Half an hour for a restart; with short ones it is up to a quarter of them."""
    M = mean_time_between_failures(16384, 466 / 54 / 2048)
    best = best_checkpoint_interval(40, M)
    half, once, double = (losses(k * best, 40, M, 1800).total for k in (0.5, 1, 2))
    for other in (half, double):
        assert 0.025 < other - once < 0.03
        assert 0.085 < other / once - 1 < 0.1


# --- failures


def test_twice_the_gpus_stop_twice_as_often() -> None:
    n = np.array([8, 1024, 2048, 16384])
    hours = mean_time_between_failures(n, 0.005) / HOUR
    assert hours.tolist() == [4800, 37.5, 18.75, 2.34375]
    assert mean_time_between_failures(72, 0.005, 72) == 200 * DAY
    assert mean_time_between_failures(4, 0.005) == 400 * DAY


def test_llamas_stops_and_the_minutes_that_each_may_have_cost() -> None:
    row = published.rows("interruptions")[0]
    M = row["days"] * DAY / row["stops"]
    assert pytest.approx(2.78, abs=0.005) == M / HOUR
    assert (1 - row["useful_share"]) * M / MINUTE == pytest.approx(16.7, abs=0.05)
    r = row["failures_per_node_day"]
    assert mean_time_between_failures(16384, r) == pytest.approx(M, rel=1e-3)


# --- useful share


def test_the_two_forms_agree_where_little_is_lost() -> None:
    """As FACTS has it: within 0.2, 0.6 and 2.7 points, and always too low."""
    worst = {0.05: 0.0, 0.1: 0.0, 0.2: 0.0}
    for hours, d, R in product(
        np.geomspace(0.5, 1000, 25), (1, 5, 15, 60, 200, 900), (30, 300, 1800, 7200)
    ):
        M = hours * HOUR
        given = (best_checkpoint_interval(d, M), d, M, R)
        exact, first = goodput(*given), goodput(*given, form="first order")
        assert first <= exact + 1e-12
        for bound in worst:
            if 1 - exact < bound:
                worst[bound] = max(worst[bound], exact - first)
    assert worst[0.05] < 0.002
    assert worst[0.1] < 0.006
    assert worst[0.2] < 0.027


def test_the_first_order_by_hand_and_never_below_nothing() -> None:
    t, d, M, R = 3600, 40, 360_000, 1800
    expected = 1 - 40 / 3600 - (1800 + 1800) / 360_000
    assert goodput(t, d, M, R, "first order") == pytest.approx(expected)
    assert goodput(t, d, 600, R, "first order") == 0
    assert goodput(1e6, 1, 1, 1) == 0
    assert goodput(1e-9, 0, 1e30, 0) == pytest.approx(1)


@pytest.mark.parametrize("hours", [1, 10, 1000, 1e9])
def test_losses_are_what_goodput_leaves(hours: float) -> None:
    given = (3600, 40, hours * HOUR, 1800)
    assert 1 / (1 + losses(*given).total) == pytest.approx(goodput(*given), rel=1e-12)


def test_goodput_broadcasts() -> None:
    M = np.array([[1e4], [1e6]])
    shares = goodput(np.array([600, 3600.0]), 40, M, 1800)
    assert shares.shape == (2, 2)
    assert shares[1, 1] == pytest.approx(goodput(3600, 40, 1e6, 1800))


CASES = [
    (M * HOUR, d, R)
    for M, d, R in product(
        np.geomspace(0.5, 1000, 25).tolist(), (1, 10, 60, 300, 900), (30, 120, 600, 1800, 7200)
    )
]


def test_the_exact_form_is_what_a_simulation_gives() -> None:
    """Within 0.4 points above a useful share of 0.8, within 3 above 0.3: seeded.

    In every seventh case; in all of them, over 525, with `make fuzz`.
    """
    tried, step = 0, 1 if "FUZZ" in os.environ else 7
    for seed, (M, d, R) in list(enumerate(CASES))[::step]:
        t = best_checkpoint_interval(d, M)
        expected = goodput(t, d, M, R)
        if expected < 0.3:
            continue
        tried += 1
        good = expected > 0.8
        stops = max(300, ((1 - expected) / 0.0014) ** 2) if good else 2000
        run = simulate_run(stops * M * expected, t, d, M, R, seed)
        assert abs(run.useful_share - expected) < (0.004 if good else 0.03), (M, d, R)
    assert tried >= 525 // step


def test_the_expected_days_are_the_mean_of_simulated_ones_part_by_part() -> None:
    given = (3000, 120, 20 * HOUR, 3600)
    days = expected_days(150, *given)
    runs = [simulate_run(150 * DAY, *given, seed) for seed in range(100)]
    for name, expected in days.parts().items():
        part = "useful" if name == "computing" else name
        mean = sum(getattr(run, part) for run in runs) / len(runs)
        assert mean == pytest.approx(expected * DAY, rel=0.03), name
    assert sum(run.stops for run in runs) / len(runs) == pytest.approx(days.stops, rel=0.03)


def test_the_parts_of_the_expected_days_are_their_total() -> None:
    days = expected_days(np.array([21, 150]), 3600, 40, 100 * HOUR, 1800)
    assert sum(days.parts().values()) == pytest.approx(days.total)
    assert days.computing / days.total == pytest.approx(goodput(3600, 40, 100 * HOUR, 1800))
    at_stops = days.stops * days.days_lost_at_a_stop
    assert days.computing + at_stops == pytest.approx(days.total)
    assert_refused(lambda: expected_days(0, 3600, 40, 1e5, 1800), "compute_days")


def test_a_simulated_run_adds_up_and_its_seed_is_all_there_is_to_it() -> None:
    given = (30 * DAY, 3600, 40, 20 * HOUR, 1800)
    run = simulate_run(*given, seed=3)
    assert run == simulate_run(*given, seed=3)
    assert run.stops != simulate_run(*given, seed=4).stops
    assert run.useful == pytest.approx(30 * DAY)
    assert run.saving == pytest.approx(720 * 40)
    lengths = {"running": 0.0, "lost": 0.0, "restarting": 0.0}
    for one, following in zip(run.stretches, run.stretches[1:], strict=False):
        assert one.end == following.start
    for kind, start, end in run.stretches:
        lengths[kind] += end - start
    assert lengths["running"] == pytest.approx(run.useful + run.saving)
    assert lengths["lost"] == pytest.approx(run.lost)
    assert lengths["restarting"] == pytest.approx(run.restarting)
    assert run.stretches[-1].end == pytest.approx(run.total)
    assert sum(kind == "lost" for kind, *_ in run.stretches) <= run.stops
    assert all(e - s <= 3640 for kind, s, e in run.stretches if kind == "lost")


@pytest.mark.parametrize("seed", range(5))
def test_outages_fall_among_the_work_and_take_their_share(seed: int) -> None:
    run = simulate_run(20 * DAY, 3600, 40, 3 * DAY, 7200, seed)
    whole = run.on_calendar(0.1, 0.01, seed)
    assert whole[0].start == 0
    for one, following in pairwise(whole):
        assert one.end == pytest.approx(following.start)
    assert whole[-1].end == pytest.approx(run.calendar_days(0.1, 0.01) * DAY)
    lengths = {kind: sum(e - s for k, s, e in whole if k == kind) for kind, *_ in whole}
    assert lengths["outages"] == pytest.approx(0.1 * whole[-1].end)
    assert lengths["evaluation"] == pytest.approx(0.01 * whole[-1].end)
    assert lengths["running"] == pytest.approx(run.useful + run.saving)
    for kind in ("lost", "restarting"):
        assert [x.kind for x in whole].count(kind) == [x.kind for x in run.stretches].count(kind)
    outages = [x for x in whole if x.kind == "outages"]
    assert all(x.end - x.start <= DAY * (1 + 1e-9) for x in outages)
    assert outages[0].end < run.total / 2  # not all of them at the end
    assert [x.kind for x in run.on_calendar(0, 0)[:-1]] == [x.kind for x in run.stretches]


@pytest.mark.parametrize("seed", range(5))
def test_the_first_stop_comes_when_the_dice_say(seed: int) -> None:
    """An exponential time, drawn as −M ln(1 − u)."""
    run = simulate_run(1e9, 3600, 40, 1e6, 1800, seed)
    first = next(end for kind, _, end in run.stretches if kind == "lost")
    assert first == pytest.approx(-1e6 * math.log(1 - Random(seed).random()))


def test_without_failures_only_writing_costs() -> None:
    run = simulate_run(7200, 3600, 40, 1e12, 1800)
    assert (run.stops, run.lost, run.restarting, run.saving) == (0, 0, 0, 80)
    assert (run.useful, run.total) == (7200, 7280)
    assert len(run.stretches) == 1


# --- spares


def test_spares_are_a_percentile_of_poisson() -> None:
    dice = Random(1)
    mean = 384 / 8 * 0.005 * 7
    spares = spare_nodes(384, 0.005, 7)
    under = 0
    for _ in range(4000):
        broken, left = -1, mean
        while left > 0:
            left += math.log(1 - dice.random())
            broken += 1
        under += broken <= spares
    assert 0.985 < under / 4000 <= 1
    by_hand = sum(math.exp(-mean) * mean**k / math.factorial(k) for k in range(spares))
    assert by_hand < 0.99
    assert spare_nodes(8, 1e-6, 1) == 0
    assert [spare_nodes(n, 0.005, 7) for n in (1024, 16384)] == [10, 92]


# --- the calendar of a plan


def test_a_calendar_begins_with_steps_without_stops() -> None:
    """`Plan.seconds` has stops in it: to begin with it would count them twice."""
    days = calendar_days(PLAN)
    step = PLAN.seconds_per_iteration
    for case in ("least", "likely", "greatest"):
        seconds = PLAN.iterations * getattr(step, case)
        assert getattr(days.computing, case) == pytest.approx(seconds / DAY)
    assert days.computing.likely < PLAN.days.likely


def test_parts_make_the_total_and_the_likely_case_is_by_hand() -> None:
    days = calendar_days(MEASURED)
    W, M = MEASURED.seconds.likely, DAY / (8 * 0.005)
    t = best_checkpoint_interval(40, M)
    running = W / goodput(t, 40, M, 1800)
    total = running / (1 - 0.05 - 0.006) / DAY
    assert days.total.likely == pytest.approx(total)
    assert days.saving.likely == pytest.approx(W * 40 / t / DAY)
    assert days.outages.likely == pytest.approx(0.05 * total)
    assert days.evaluation.likely == pytest.approx(0.006 * total)
    assert days.stops.likely == pytest.approx(running / M)
    assert days.useful_share == pytest.approx(W / DAY / total)
    assert [*days.parts()] == ["computing", "saving", "lost", "restarting", "outages", "evaluation"]


NOTHING_ELSE = {"outages": 0, "evaluation": 0}


def test_parts_are_those_of_a_simulation() -> None:
    given = {"failures_per_node_day": 0.4, "checkpoint_seconds": 120}
    given |= {"restart_seconds": 3600, "checkpoint_interval": 3000}
    days = calendar_days(MEASURED, **given, **NOTHING_ELSE)
    W, M = MEASURED.seconds.likely, DAY / (8 * 0.4)
    runs = [simulate_run(W, 3000, 120, M, 3600, seed) for seed in range(150)]
    for name in ("saving", "lost", "restarting", "stops"):
        mean = sum(getattr(run, name) for run in runs) / len(runs)
        expected = getattr(days, name).likely * (1 if name == "stops" else DAY)
        assert mean == pytest.approx(expected, rel=0.03), name


def test_one_number_stands_for_all_cases_and_an_interval_for_three() -> None:
    exact = calendar_days(
        MEASURED,
        failures_per_node_day=0.01,
        checkpoint_seconds=5,
        restart_seconds=600,
        **NOTHING_ELSE,
    )
    assert exact.total.least == exact.total.greatest
    wide = calendar_days(
        MEASURED,
        failures_per_node_day=Interval(0.001, 0.01, 0.1),
        checkpoint_seconds=5,
        restart_seconds=600,
        **NOTHING_ELSE,
    )
    assert wide.total.least < wide.total.likely < wide.total.greatest
    assert wide.total.likely == pytest.approx(exact.total.likely)


def test_a_calendar_of_many_plans_is_one_call() -> None:
    n = np.array([64, 128, 256])
    many = calendar_days(PLAN.replace(num_gpus=n))
    for i, gpus in enumerate((64, 128, 256)):
        one_size = calendar_days(PLAN.replace(num_gpus=gpus))
        assert many.total.likely[i] == pytest.approx(one_size.total.likely)
        assert many.stops.greatest[i] == pytest.approx(one_size.stops.greatest)


def test_digits_are_not_lost_where_failures_are_rare() -> None:
    days = calendar_days(MEASURED, failures_per_node_day=1e-12, **NOTHING_ELSE)
    W, M = MEASURED.seconds.likely, DAY / (8 * 1e-12)
    t = best_checkpoint_interval(40, M)
    assert days.lost.likely * DAY == pytest.approx(W * (t + 40) ** 2 / (2 * M * t))


CASES_OF_PAGE = {
    "64 H100s for a month": PLAN,
    "1,024 A100s for two": published.run_plan("BLOOM-176B", num_gpus=1024, global_batch_size=2048),
    "16,384 H100s for eight weeks": published.run_plan("Llama 3.1 405B"),
}


@pytest.mark.parametrize("name", CASES_OF_PAGE)
def test_a_worked_case_is_an_interval_with_parts(name: str) -> None:
    plan = CASES_OF_PAGE[name]
    days = calendar_days(plan)
    parts = days.parts()
    for case in ("least", "likely", "greatest"):
        expected = sum(getattr(part, case) for part in parts.values())
        assert getattr(days.total, case) == pytest.approx(expected)
    assert 1.03 < days.total.likely / days.computing.likely < 1.5
    assert days.total.least > days.computing.least


def test_the_calendar_of_whole_runs_lies_in_the_interval() -> None:
    """At the rate that their makers print: BLOOM and Llama 3.1 405B, in GPU-hours."""
    reported = published.reported_gpu_hours()
    for name, X in {"BLOOM-176B": 150e12, "Llama 3.1 405B": 400e12}.items():
        plan = published.run_plan(name, flops_per_gpu=X)
        days = reported[name] / 24 / plan.split.num_gpus
        span = calendar_days(plan).total
        assert span.least < days < span.greatest, name


# --- defaults and the data


def of_runs() -> dict[str, float]:
    return {
        row["name"]: row["failures_per_node_day"]
        for row in published.rows("interruptions")
        if "failures_per_node_day" in row
    }


def test_the_failures_are_those_of_published_runs() -> None:
    rates = of_runs()
    runs = [rates[x] for x in ("Llama 3.1 405B", "OPT-175B", "BLOOM-176B", "GLM-130B")]
    clusters = [rates["Meta RSC-1, fitted rate"], rates["Crusoe, four months"]]
    rate = calendar.FAILURES_PER_NODE_DAY
    assert round(min(runs), 3) == rate.least
    assert max(runs) < rate.greatest < max(runs) * 1.1  # two of 124 nodes a day
    assert pytest.approx(rate.greatest, rel=0.01) == 2 / 124
    assert median(runs) < rate.likely < median(runs + clusters)


def test_the_other_defaults_are_those_of_published_runs() -> None:
    rows = {row["name"]: row for row in published.rows("checkpoints")}
    writes = calendar.CHECKPOINT_SECONDS
    blocked = [row["seconds"] for row in rows.values() if "seconds" in row]
    assert writes.least == pytest.approx(min(blocked), abs=0.05)
    assert writes.likely == rows["BLOOM-176B"]["seconds"]
    assert writes.greatest == pytest.approx(max(blocked), abs=2)
    interruptions = {row["name"]: row for row in published.rows("interruptions")}
    assert calendar.RESTART_SECONDS.least == 10 * MINUTE
    assert "under 10 minutes" in interruptions["MegaScale"]["note"]
    assert calendar.RESTART_SECONDS.likely < 50 * MINUTE
    assert "at most 50 minutes" in interruptions["ByteRobust"]["note"]


def test_outages_are_what_the_rates_leave_unexplained() -> None:
    """OPT with two hours a stop, BLOOM with one: a fifth, a twentieth."""
    interruptions = {row["name"]: row for row in published.rows("interruptions")}
    for name, R, share in (("OPT-175B", 2, 0.2), ("BLOOM-176B", 1, 0.05)):
        row = interruptions[name]
        M = mean_time_between_failures(row["num_gpus"], row["failures_per_node_day"])
        expected = goodput(10_520, 40, M, R * HOUR)
        rest = 1 - row["useful_share"] / expected
        assert rest == pytest.approx(share, abs=0.03), name


def test_other_refusals_name_what_is_wrong() -> None:
    assert_refused(lambda: checkpoint_bytes(1, "bf17"), "recipe='bf17' is unknown")
    assert_refused(lambda: goodput(1, 1, 1, 1, "third"), "form='third' is unknown")
    assert_refused(lambda: best_checkpoint_interval(1, 1, "dal"), "did you mean 'daly'")
    assert_refused(lambda: calendar_days(30), "plan=30 isn't a Plan")
    assert_refused(lambda: calendar_days(PLAN, outages=1), "outages")
    assert_refused(lambda: calendar_days(PLAN, evaluation=-0.1), "evaluation")
    assert_refused(lambda: calendar_days(PLAN, failures_per_node_day=1e6), "where no run ends")
    assert_refused(lambda: simulate_run(1e6, 1e6, 1, 100, 1), "where no run ends")
    assert_refused(lambda: simulate_run(1e12, 60, 1, 100, 1), "compute_seconds")
    assert_refused(lambda: simulate_run(1e6, 60, 1, 1e5, 1, seed=-1), "seed")
    assert_refused(lambda: spare_nodes(1e9, 1, 1), "num_gpus")
    assert_refused(lambda: spare_nodes(8, 1, 1, certainty=1), "certainty")
    arrays = {"failures_per_node_day": np.ones(2) / 99, "restart_seconds": np.ones(3)}
    assert_refused(lambda: calendar_days(PLAN, **arrays), "do not broadcast")
