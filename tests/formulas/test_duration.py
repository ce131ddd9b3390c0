"""Chapter 03: formulas against the published days, figures, panel, exercises."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, strategies as st

from llmtrain_helpers import (
    Interval,
    achieved_flops_per_gpu,
    cost,
    count_parameters,
    energy,
    gpt_flops,
    gpt_parameters,
    gpu_hours,
    iterations,
    over_utilizations,
    seconds_from_iterations,
    training_interval,
    training_seconds,
    units,
)
from llmtrain_helpers.checks import show
from llmtrain_helpers.drawings.common import COLORS, GREY
from llmtrain_helpers.drawings.duration import (
    Mark,
    around,
    before_and_after,
    days_against_gpus,
    eight_or_six,
    shares_of_runs,
    work_to_days,
)
from llmtrain_helpers.duration import UTILIZATIONS
from llmtrain_helpers.evidence import published, utilizations
from llmtrain_helpers.exercises import EXERCISES, PREDICTIONS, check
from llmtrain_helpers.exercises.common import judge
from llmtrain_helpers.exercises.duration import BUDGET, MOST_DAYS, OFFERS, of_offer
from llmtrain_helpers.figures import describe
from llmtrain_helpers.figures.duration import days_by_gpus
from llmtrain_helpers.panels import PANELS
from llmtrain_helpers.panels.duration import published_marks
from tests.bad_values import BAD_COUNTS, BAD_QUANTITIES, NO_NUMBERS, assert_refused
from tests.formulas.test_flops import shape_of
from tests.pages import cell, words
from tests.panel_code import value_of

NOT_FINITE = [float("nan"), float("inf"), 10**400, np.array([1, -1]), np.array([np.nan])]

RUN = {"tokens": 300e9, "parameters": 175e9, "num_gpus": 1024, "flops_per_gpu": 140e12}
rates = st.floats(1e9, 1e18)
sizes = st.integers(1, 10**15)


# --- formulas


@given(sizes, sizes, st.integers(1, 10**6), rates)
def test_eight_with_recomputation_six_without(T, P, n, X) -> None:
    full, none, selective = (training_seconds(T, P, n, X, r) for r in ("full", "none", "selective"))
    assert full == pytest.approx(8 * T * P / (n * X))
    assert none == selective == pytest.approx(6 * T * P / (n * X))


@pytest.mark.parametrize("name", RUN)
def test_broadcasting_equals_a_loop(name: str) -> None:
    values = RUN[name] * np.array([1, 2, 8])
    swept = training_seconds(**(RUN | {name: values}), recompute="full")
    looped = [
        training_seconds(**(RUN | {name: float(value)}), recompute="full") for value in values
    ]
    assert swept.tolist() == pytest.approx(looped, rel=1e-14)


@given(st.integers(1, 10**15), st.integers(1, 10**5), st.integers(1, 10**5))
def test_iterations_are_not_rounded(T, B, s) -> None:
    if B * s > T:
        with pytest.raises(ValueError, match="one batch"):
            iterations(T, B, s)
    else:
        assert iterations(T, B, s) * B * s == pytest.approx(T)
        t = seconds_from_iterations(T, B, s, 2.5)
        assert t == pytest.approx(2.5 * iterations(T, B, s))


@given(rates, st.integers(1, 10**6), st.floats(1e-3, 1e3))
def test_hours_cost_and_energy(t, n, price) -> None:
    assert gpu_hours(t, n) == pytest.approx(t * n / 3600)
    assert cost(t, n, price) == pytest.approx(t * n / 3600 * price)
    assert energy(t, n, price) == pytest.approx(t * n * price)


def test_the_interval_is_the_formula_at_three_utilisations() -> None:
    span = training_interval(300e9, 175e9, 1024, 312e12, utilizations=(0.2, 0.3, 0.6))
    for t, u in zip((span.least, span.likely, span.greatest), (0.6, 0.3, 0.2), strict=True):
        exact = training_seconds(300e9, 175e9, 1024, u * 312e12, "none")
        assert t == pytest.approx(exact, rel=1e-12)


# --- bad input


@pytest.mark.parametrize("name", ["tokens", "parameters", "num_gpus"])
@pytest.mark.parametrize("bad", BAD_COUNTS, ids=show)
def test_bad_counts_are_refused(name: str, bad) -> None:
    assert_refused(training_seconds, name, recompute="full", **(RUN | {name: bad}))


@pytest.mark.parametrize("bad", [*BAD_QUANTITIES, 140, 312.0, 1e8], ids=show)
def test_bad_rates_are_refused(bad) -> None:
    run = RUN | {"flops_per_gpu": bad}
    assert_refused(training_seconds, "flops_per_gpu", recompute="full", **run)


def test_a_rate_in_tera_is_recognised() -> None:
    with pytest.raises(ValueError, match=r"TFLOP/s\? Write 140e12"):
        training_seconds(300e9, 175e9, 1024, 140, "full")


@pytest.mark.parametrize("bad", [None, "Full", 8, ""], ids=show)
def test_the_convention_must_be_said(bad) -> None:
    assert_refused(training_seconds, "recompute", **RUN, recompute=bad)
    with pytest.raises(TypeError, match="recompute"):
        training_seconds(**RUN)


ITERATIONS = {"tokens": 300e9, "global_batch_size": 512, "sequence_length": 1024}


@pytest.mark.parametrize("name", ITERATIONS)
@pytest.mark.parametrize("bad", BAD_COUNTS, ids=show)
def test_iterations_refuse(name: str, bad) -> None:
    assert_refused(iterations, name, **(ITERATIONS | {name: bad}))


def test_tokens_below_one_batch_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one batch, .*=524288 is more than tokens=500000"):
        iterations(500_000, 512, 1024)
    with pytest.raises(ValueError, match="one batch"):
        iterations(np.array([1e9, 1e3]), 512, 1024)


@pytest.mark.parametrize("bad", BAD_QUANTITIES, ids=show)
def test_other_quantities_are_refused(bad) -> None:
    per_step = {"seconds_per_iteration": bad}
    assert_refused(seconds_from_iterations, "seconds_per_iteration", **ITERATIONS, **per_step)
    assert_refused(gpu_hours, "seconds", seconds=bad, num_gpus=8)
    priced = {"seconds": 1, "num_gpus": 8, "price_per_gpu_hour": bad}
    assert_refused(cost, "price_per_gpu_hour", **priced)
    assert_refused(energy, "watts_per_gpu", seconds=1, num_gpus=8, watts_per_gpu=bad)


@pytest.mark.parametrize("bad", [(0.5, 0.3, 0.6), (0, 0.3, 0.5), (0.2, 0.3, 35), (1, 2), 0.5])
def test_bad_utilisations_are_refused(bad) -> None:
    with pytest.raises(ValueError, match="utilizations"):
        training_interval(300e9, 175e9, 1024, 312e12, utilizations=bad)


# --- intervals


@pytest.mark.parametrize("bad", [-1, -1e-9, *NO_NUMBERS, *NOT_FINITE], ids=show)
def test_an_interval_is_of_numbers_and_times_a_number(bad) -> None:
    assert_refused(Interval(1, 2, 3).times, "factor", factor=bad)
    for name in ("least", "likely", "greatest"):
        bounds = {"least": 1, "likely": 2, "greatest": 3, name: bad}
        assert_refused(Interval, name, **bounds)


def test_the_bounds_of_an_interval_ascend() -> None:
    assert Interval(2, 2, 2).times(2) == Interval(4, 4, 4)
    assert Interval(0, 1, 2).times(0) == Interval(0, 0, 0)
    with pytest.raises(ValueError, match="least=3 is more than likely=2"):
        Interval(3, 2, 4)
    with pytest.raises(ValueError, match="likely=2 is more than greatest=1"):
        Interval(1, 2, 1)
    with pytest.raises(ValueError, match=r"likely=5.0 is more than greatest=4 \(in an"):
        Interval(1, np.array([3.0, 5.0]), 4)


def test_an_interval_of_arrays_broadcasts() -> None:
    spans = Interval(1, np.array([2, 3]), 4).times(np.array([[1], [10]]))
    assert spans.least.tolist() == [[1], [10]]
    assert spans.likely.tolist() == [[2, 3], [20, 30]]


def test_three_equal_utilisations_are_an_exact_time() -> None:
    assert over_utilizations(120.0, (0.4, 0.4, 0.4)) == Interval(300, 300, 300)
    for wrong in ((0.5, 0.4, 0.6), (0.3, 0.5, 0.4)):
        with pytest.raises(ValueError, match="is not ascending"):
            over_utilizations(120.0, wrong)


def test_a_product_past_all_measure_is_named() -> None:
    with pytest.raises(ValueError, match=r"tokens·parameters/\(num_gpus·peak_flops\)="):
        training_interval(1e40, 1e40, 1, 312e12)
    assert over_utilizations(1e40, (0.1, 0.2, 0.5)).greatest == pytest.approx(1e41)
    with pytest.raises(ValueError, match="greatest=inf is not a finite number below 1"):
        Interval(1, 2, 1e300).times(1e40)


# --- published days

DAYS = published.megatron_training_days().to_dict("records")
every_day = pytest.mark.parametrize("row", DAYS, ids=lambda row: row["name"])


def by_8tp(row, parameters) -> float:
    run = (row["num_gpus"], row["flops_per_gpu"])
    return training_seconds(row["tokens"], parameters, *run, "full") / units.DAY


def by_the_full_count(row) -> float:
    F = gpt_flops(*shape_of(row), recompute="full")
    steps = iterations(row["tokens"], row["global_batch_size"], row["sequence_length"])
    return steps * F / (row["num_gpus"] * row["flops_per_gpu"]) / units.DAY


@every_day
def test_each_row_by_8tp(row) -> None:
    assert by_8tp(row, row["parameters"]) == pytest.approx(row["days"], rel=0.031)


@every_day
def test_each_row_by_the_full_count_of_flops(row) -> None:
    if row["name"] == "GPT-3 175B example":  # the paper's 34 is 8TP
        assert round(by_the_full_count(row), 1) == 34.7
    else:
        assert by_the_full_count(row) == pytest.approx(row["days"], rel=0.013)


@every_day
def test_what_the_full_count_is_off_is_rounding(row) -> None:
    """Whole days and whole TFLOP/s: half of each, to either side."""
    if not row["name"].endswith("example"):
        off = abs(by_the_full_count(row) / row["days"] - 1)
        assert off <= 1.1 * (0.5 / row["days"] + 0.5e12 / row["flops_per_gpu"])


def test_34_and_84_days() -> None:
    gpt3, trillion = DAYS[-2:]
    assert round(by_8tp(gpt3, 175e9), 1) == 33.9
    exact = gpt_parameters(*shape_of(trillion)[:4])
    assert round(by_8tp(trillion, exact), 1) == 83.9


def test_the_worked_case_both_ways() -> None:
    shape = (40, 6144, 50257, 1024)
    X = achieved_flops_per_gpu(gpt_flops(*shape, 512, "full"), 32.09, 16)
    days = training_seconds(300e9, gpt_parameters(*shape), 16, X, "full") / units.DAY
    assert round(days, 1) == 207.8
    exactly = seconds_from_iterations(300e9, 512, 1024, 32.09) / units.DAY
    assert round(exactly, 1) == 212.5


def test_the_copied_version_is_reproduced_slips_and_all() -> None:
    shape = (40, 6144, 50257, 1048)
    P, X = gpt_parameters(*shape), gpt_flops(*shape, 512, "full") / 32.09 / 16 / 1e12
    assert P == 18_437_806_080
    assert round(8 * 300 * 10e09 * P / (16 * X * 10e12) / units.DAY) == 203


def test_the_default_utilisations_are_those_of_the_published_runs() -> None:
    shares = utilizations.model_utilizations()["utilization"]
    assert len(shares) == 14
    assert (
        tuple(round(u, 2) for u in utilizations.spread(utilizations.model_utilizations()))
        == UTILIZATIONS
    )
    assert shares.between(UTILIZATIONS[0], UTILIZATIONS[2]).sum() == 13


@pytest.mark.parametrize("row", published.small_runs().to_dict("records"), ids=str)
def test_small_runs_by_iterations(row) -> None:
    s = row["sequence_length"]
    B = row["batch_tokens"] // s
    t = seconds_from_iterations(row["tokens"], B, s, row["seconds_per_iteration"])
    assert t == pytest.approx(row["seconds"], rel=0.01)


def test_the_nearest_run_is_the_run_itself() -> None:
    assert published.nearest_run(15.6e12, 405853388800)["name"] == "Llama 3.1 405B"
    assert_refused(published.nearest_run, "tokens", tokens=0, parameters=1)


# --- drawings

DRAWN_DAYS = {
    ("full", "full"): 33.9,
    ("none", "none"): 33.9,
    ("full", "none"): 45.2,
    ("none", "full"): 25.425,
}
DRAWINGS = {
    "machine": work_to_days(**RUN, recompute="full"),
    "without": work_to_days(**RUN, recompute="none"),
    "counts": eight_or_six(DRAWN_DAYS),
    "ratios": before_and_after([0.970, 0.986], [0.993, 1.012]),
    "shares": shares_of_runs({"one": 0.3, "other": 0.45}, UTILIZATIONS),
    "curve": days_against_gpus(Mark("your run", 8, 32), (23, 45), published_marks()),
    "moved": days_against_gpus(Mark("your run", 16, 16), (12, 23), [], Mark("your run", 8, 32)),
}


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_a_drawing_is_well_formed_and_keeps_to_the_colours(drawing) -> None:
    ElementTree.fromstring(drawing.live())
    fills = set(re.findall(r'fill="(#\w+)"', drawing.body))
    assert fills <= {*COLORS.values(), GREY}
    sizes = [float(x) for x in re.findall(r'font-size="([\d.]+)"', drawing.body)]
    assert min(sizes) >= 13
    assert drawing.width <= 860


def test_the_machine_tells_work_rate_and_time() -> None:
    full, none = DRAWINGS["machine"], DRAWINGS["without"]
    for part in ("8 × 300 billion × 175 billion", "420 ZFLOP", "143 PFLOP/s"):
        assert part in full.words
    assert "33.9 days" in full.words
    assert "6 × 300 billion" in none.words
    assert "25.4 days" in none.words
    assert COLORS["recomputed"] in full.body
    assert COLORS["recomputed"] not in none.body


@pytest.mark.parametrize(
    ("num_gpus", "square"), [(1, "1 GPU"), (32, "1 GPU"), (33, "2 GPUs"), (1024, "32 GPUs")]
)
def test_a_square_stands_for_so_many_gpus(num_gpus: int, square: str) -> None:
    run = RUN | {"num_gpus": num_gpus}
    body = work_to_days(**run, recompute="none").body
    assert f"■ = {square}<" in body
    assert body.count('rx="3"') <= 32


@pytest.mark.parametrize(
    ("tokens", "square"), [(1e9, "an hour"), (300e9, "a day"), (3e12, "a week")]
)
def test_a_square_stands_for_so_much_time(tokens: float, square: str) -> None:
    run = RUN | {"tokens": tokens}
    assert f"■ = {square}<" in work_to_days(**run, recompute="full").body


def test_the_counts_that_agree_are_framed_and_the_others_told() -> None:
    words = DRAWINGS["counts"].words
    assert "8TP over MFU: 45.2 days, 33 % too long" in words
    assert "6TP over HFU: 25.4 days, 25 % too short" in words
    assert DRAWINGS["counts"].body.count("✓") == 2


def test_ratios_by_8tp_and_with_attention_are_told_apart() -> None:
    words = DRAWINGS["ratios"].words
    assert "by 8TP / (nX), 1.4 to 3.0 % short" in words
    assert "attention counted too, 0.70 % short to 1.2 % over" in words
    assert DRAWINGS["ratios"].body.count("<circle") == 4


def test_shares_of_runs_tells_each_run_and_the_interval() -> None:
    assert "from 25 % to 48 %, likely 35 %: one 30 %, other 45 %" in (DRAWINGS["shares"].words)


def names_in(drawing) -> dict[str, tuple[float, float, float, float]]:
    """Where the names of published runs stand, by name, as boxes."""
    pattern = r'<text x="([\d.]+)" y="([\d.]+)" font-size="14" text-anchor="middle"'
    pattern += r'[^>]*font-weight="400">([^<]+)<'
    found = {}
    for x, y, name in re.findall(pattern, drawing.body):
        wide = 0.56 * 14 * len(name) / 2
        x, y = float(x), float(y)
        found[name] = (x - wide, y - 11, x + wide, y + 3)
    return found


@pytest.mark.parametrize("name", PANELS["duration"].presets)
def test_every_published_run_is_named_and_no_name_stands_on_another(name) -> None:
    values = PANELS["duration"].presets[name]
    P = published.architecture(values["model"])
    n, share = values["num_gpus"], values["percent"] / 100
    size = count_parameters(P).active
    X = share * published.accelerator(values["chip"]).peak("bf16")
    days = training_seconds(values["tokens"], size, n, X, values["recompute"])
    days = float(days) / units.DAY
    you = Mark("your run", n, days)
    plane = around([you, *published_marks()])
    boxes = names_in(days_against_gpus(you, (days / 1.4, days * 1.4), published_marks()))
    assert set(boxes) == {run.name for run in published_marks()}
    for one, (left, top, right, bottom) in boxes.items():
        for other, (l, t, r, b) in boxes.items():
            apart = r <= left or right <= l or b <= top or bottom <= t
            assert one == other or apart, (one, other)
        for x in (left, right):  # its ends on one side of the run's own line
            gpus = 10 ** (plane.x0 + (x - plane.left) / 602 * (plane.x1 - plane.x0))
            line = plane.y(min(max(n * days / gpus, 0.31), 2900))
            assert not top < line < bottom, one


def test_the_curve_has_the_dot_the_band_and_every_published_run() -> None:
    words = DRAWINGS["curve"].words
    assert "your run: 32.0 days on 8 GPUs, as published runs 23 days to 45" in words
    for run in published_marks():
        assert f"{run.name}: " in words
    assert len(published_marks()) == 11
    assert "at the start" not in words
    assert "at the start: your run: 32.0 days on 8 GPUs" in DRAWINGS["moved"].words


def test_where_nothing_moved_there_is_no_ring() -> None:
    you = Mark("your run", 8, 32)
    assert "at the start" not in days_against_gpus(you, (23, 45), [], you).words


@given(st.integers(1, 10**6), st.floats(1e-3, 1e6))
def test_the_axes_have_room_for_any_run(n: int, days: float) -> None:
    plane = around([Mark("your run", n, days), *published_marks()])
    assert plane.left <= plane.x(n) <= plane.right + 1e-6
    assert plane.top - 1e-6 <= plane.y(days) <= plane.bottom + 1e-6
    drawn = days_against_gpus(Mark("", n, days), (days / 2, days * 2), [])
    points = re.findall(r'points="([^"]+)"', drawn.body)[0].split()
    for point in points:
        x, y = map(float, point.split(","))
        assert plane.left - 0.1 <= x <= plane.right + 0.1
        assert plane.top - 0.1 <= y <= plane.bottom + 0.1


def test_published_marks_are_what_was_reported() -> None:
    reported = published.reported_gpu_hours()
    for mark in published_marks():
        hours = mark.days * mark.num_gpus * 24
        assert hours == pytest.approx(reported[mark.name])


# --- figures


def test_the_figure_shows_the_reported_days() -> None:
    runs = published.training_runs().dropna(subset=["days", "num_gpus", "tokens"])
    rows = runs.to_dict("records")[:2]
    figure = days_by_gpus(rows)
    for row in rows:
        assert f"{row['name']}, reported: {row['days']:g}"[:-1] in describe(figure)


# --- panel


def shown(**changes: object) -> str:
    panel = PANELS["duration"]
    return panel.render(**{**panel.default, **changes})


def test_the_panel_gives_days_interval_hours_and_cost() -> None:
    html = shown()
    for part in ("<b>33.8 days</b>", "24 to 46 days", "831 thousand", "$1.66"):
        assert part in html
    assert "25 % to 48 %" in html
    assert html.index("<b>33.8") < html.index("<svg") < html.index("<details")


@pytest.mark.parametrize(
    ("control", "value", "said"),
    [
        ("num_gpus", 2048, "<b>16.9 days</b>"),
        ("recompute", "none", "<b>25.4 days</b>"),
        ("price", 4, "$3.32 million"),
        ("chip", "H100 SXM", "<b>10.7 days</b>"),
        ("tokens", 600e9, "<b>67.6 days</b>"),
        ("percent", 22.45, "<b>67.6 days</b>"),
        ("model", "Mixtral-8x7B", "12.9 billion"),
    ],
)
def test_the_panel_follows_each_control(control: str, value, said: str) -> None:
    assert said in shown(**{control: value})


def test_the_panel_refuses_in_its_own_words() -> None:
    panel = PANELS["duration"]
    answer = panel.answer({**panel.default, "format": "fp8"})
    assert "has no peak" in answer.problem
    for name, written in {"percent": "101", "tokens": "0", "num_gpus": "2.5"}.items():
        with pytest.raises(ValueError, match=panel.controls[name].label):
            panel.controls[name].read(written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("0.337", 33.7), ("0.45", 45), ("0.337 %", 0.337), ("33.7", 33.7), ("1", 1)],
)
def test_a_share_is_read_as_people_write_it(written: str, meant: float) -> None:
    control = PANELS["duration"].controls["percent"]
    assert control.read(written) == meant
    assert control.echo(meant) == f"= {meant:g} %"
    assert control.read(meant) == meant


def test_a_share_outside_is_refused_in_both_ways_to_write_it() -> None:
    control = PANELS["duration"].controls["percent"]
    said = "outside 0.1 % to 100 %; below 1 and without a % it is a share: 0.5 is 50 %."
    for written in ("101", "0.0005", "0", "0.05 %"):
        with pytest.raises(ValueError, match=said):
            control.read(written)


@pytest.mark.parametrize(
    ("percent", "said"),
    [
        (1, "none of the fourteen published whole runs came out below 22 %."),
        (21.9, "came out below 22 %."),
        (22, ""),
        (48, ""),
        (48.1, "none of the fourteen published whole runs came over 48 %."),
    ],
)
def test_the_panel_says_what_no_run_did(percent: float, said: str) -> None:
    told = shown(recompute="none", percent=percent)
    assert said in told
    assert ("Look again" in told) == bool(said)


def test_the_slowest_and_the_fastest_run_are_those_that_the_panel_tells() -> None:
    shares = utilizations.model_utilizations()["utilization"]
    assert len(shares) == 14
    assert (round(min(shares), 2), round(max(shares), 2)) == (0.22, 0.48)
    assert "none of the fourteen published whole runs came over 48 %" in cell(
        "03_duration", "panel-answers"
    )


def test_published_dots_are_seen_on_the_own_one() -> None:
    body = DRAWINGS["curve"].body
    assert body.index('r="9"') < body.index('r="5"')


def test_the_panel_says_whose_shares_the_interval_is_of() -> None:
    assert "as 13 of 14 published runs had" in shown()


def test_the_own_days_stand_on_the_dotted_line_to_the_days() -> None:
    drawn = shown()
    [(x, y)] = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>33.8 days<', drawn)
    [(at, height)] = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="9"', drawn)
    assert 0 < float(height) - float(y) < 20
    assert float(x) < float(at)


def test_the_nearest_published_run_is_nearest_in_work_and_has_no_blank() -> None:
    rows = shown().split("published, nearest in work")[1].split("<pre")[0]
    assert rows.count("<td") == 21
    assert "></td>" not in rows
    assert "400 for an A100" in cell("03_duration", "heard")
    assert published.accelerator("A100 80GB SXM").power == 400


def test_of_three_runs_the_number_of_gpus_is_not_published() -> None:
    known = {mark.name for mark in published_marks()}
    shares = utilizations.model_utilizations()
    missing = set(shares.index) - known
    assert len(known) == 11
    assert missing == {"LLaMA-1 7B", "Llama 2 7B", "Llama 2 70B"}
    told = cell("03_duration", "heard-reading")
    assert "Eleven of the fourteen" in told
    assert all(name in told for name in missing)


def test_mended_the_copied_days_are_held_against_those_by_iterations() -> None:
    told = check("03-b", (300e9, X_B, copied(MENDED, 300e9, 1))).text
    assert "By iterations it is 213 days: the formula leaves attention out." in told


def test_palm_has_two_shares_and_the_page_says_why() -> None:
    palm = published.run("PaLM 540B")
    assert palm["mfu"] == 0.462
    assert "incl. downtime and repeated steps" in palm["note"]
    shares = utilizations.model_utilizations()["utilization"]
    assert round(float(shares["PaLM 540B"]), 2) == 0.30
    below = shares[shares < UTILIZATIONS[0]]
    assert list(below.index) == ["Pythia 70M"]
    runs = published.training_runs().set_index("name").loc[list(shares.index)]
    assert runs["parameters"].idxmin() == "Pythia 70M"


def test_the_panel_leaves_a_ring_where_it_was() -> None:
    before = {**PANELS["duration"].default, "num_gpus": 512}
    assert "at the start: your run: 67.6 days on 512 GPUs" in shown(before=before)
    assert "at the start:" not in shown(before=PANELS["duration"].default)
    same = {**before, "num_gpus": 1024, "price": 9.0}
    assert "at the start:" not in shown(before=same)


def test_the_panels_code_gives_what_it_shows() -> None:
    assert f"{value_of(shown()):.1f} days" in shown()


@pytest.mark.parametrize("name", PANELS["duration"].presets)
def test_every_preset_is_drawn(name: str) -> None:
    assert "<svg" in shown(**PANELS["duration"].presets[name])


# --- exercises

X_B = gpt_flops(40, 6144, 50257, 1024, 512, "full") / 32.09 / 16
X_A = 0.41 * 989.5e12
DAYS_A = 6 * 1.8e12 * 13e9 / (384 * X_A) / 86400
MENDED = (40, 6144, 50257, 1024)


def copied(shape, tokens: float, rate: float, flops: int = 8) -> float:
    """The copied calculation with its slips as arguments."""
    X = gpt_flops(*shape, 512, "full") / 32.09 / 16
    return flops * tokens * gpt_parameters(*shape) / (16 * X * rate) / 86400


def copied_rate(sequence_length: int) -> float:
    return gpt_flops(40, 6144, 50257, sequence_length, 512, "full") / 32.09 / 16


def by_helper(share: float) -> float:
    return training_seconds(1.8e12, 13e9, 384, share * 989.5e12, "none") / units.DAY


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("03-a", DAYS_A),
        ("03-a", by_helper(0.41)),
        ("03-a", 10.4),
        ("03-a", "10.44"),
        ("03-b", (300e9, X_B, copied(MENDED, 300e9, 1))),
        ("03-b", ("300B", "154e12", 207.8)),
        ("03-b", [3e11, 154.02e12, "208"]),
        ("03-c", "C"),
        ("03-c", " c "),
    ],
)
def test_right_answers_by_every_way(id: str, answer) -> None:
    assert check(id, answer).ok is True


@pytest.mark.parametrize(
    ("id", "answer", "said"),
    [
        ("03-a", 13.9, "8TP"),
        ("03-a", DAYS_A * 4 / 3, "8TP"),
        ("03-a", DAYS_A / 3, "forward pass alone"),
        ("03-a", DAYS_A * 0.41, "whole peak"),
        ("03-a", DAYS_A * 384, "one GPU"),
        ("03-a", DAYS_A * 86400, "seconds"),
        ("03-a", DAYS_A * 24, "hours"),
        ("03-a", DAYS_A * 10, "ten times too much"),
        ("03-a", 12, "Compare what the work counts"),
        ("03-a", DAYS_A / 100, "as a share that is 0.41"),
        ("03-a", DAYS_A * 1e12, "X is in TFLOP/s"),
        ("03-a", DAYS_A * 1e10, "is 0.41, and is in TFLOP/s"),
        ("03-b", (300e9, X_B, 202.9), "still 1048"),
        ("03-b", (300e9, X_B, copied((40, 6144, 50257, 1048), 3e12, 10)), "still 1048"),
        ("03-b", (3e12, 1.58e15, 203), "the tokens are 3.00 trillion: say 10e09"),
        ("03-b", (300e9, 1.58e15, 203), "the rate is 1.58 PFLOP/s: it is ten times"),
        ("03-b", (300e9, 1.58e14, 203), "158 TFLOP/s: the sequence length is still"),
        ("03-b", (300e9, X_B, copied(MENDED, 3e12, 1)), "only one of the two"),
        ("03-b", (300e9, X_B, copied(MENDED, 300e9, 10)), "only one of the two"),
        ("03-b", (300e9, X_B, copied(MENDED, 300e9, 1, flops=6)), "6TP"),
        ("03-b", (300e9, X_B, 212.52), "by iterations"),
        ("03-b", 207.8, "give three things"),
        ("03-b", (3e12, X_B, 207.8), "the days are right, but the tokens are 3.00 tri"),
        ("03-b", (30e9, X_B, 207.8), "too few"),
        ("03-b", (300e9, 10 * X_B, 207.8), "1.54 PFLOP/s: it is ten times too much"),
        ("03-b", (300e9, X_B / 10, 207.8), "ten times too little"),
        ("03-b", (300e9, 154.02, 207.8), "is 154, so in TFLOP/s; give FLOP/s, times 1e12"),
        ("03-b", (300e9, 0.154, 207.8), "is 0.154, so in PFLOP/s; give FLOP/s, times 1e15"),
        ("03-b", (300e9, 16 * X_B, 207.8), "that of all 16 GPUs"),
        ("03-b", (300e9, X_B / 16, 207.8), "divided by 16 twice"),
        ("03-b", (300e9, 32.09 * X_B, 207.8), "by its 32.09 seconds"),
        ("03-b", (300e9, 16 * 32.09 * X_B, 207.8), "divide by seconds and by GPUs"),
        ("03-b", (300e9, 0.75 * X_B, 207.8), "count with “full”"),
        ("03-b", (300e9, copied_rate(1048), 207.8), "sequence length is still 1048"),
        ("03-b", (300e9, 1.3 * X_B, 207.8), "give it in FLOP/s, of one GPU"),
        ("03-b", (300e9, 16 * X_B, 77), "the rate is 2.46 PFLOP/s: it is that of all"),
        ("03-b", (3e12, X_B, 77), "say 10e09 in words"),
        ("03-b", (300e9, 154.02, 207.8e12), "the rate is 154, so in TFLOP/s"),
        ("03-b", (300e9, X_B, 207.8e12), "in the days the rate is still in TFLOP/s"),
        ("03-b", (300e9, X_B, 207.8 * 16), "n is missing"),
        ("03-b", (300e9, X_B, 207.8 / 16), "n counts twice"),
        ("03-c", "A", "within the money at the likely share only"),
        ("03-c", "B", "too late"),
        ("03-c", "D", "dearest run"),
        ("03-c", "E", "none of the choices"),
    ],
)
def test_wrong_answers_each_get_their_own_words(id: str, answer, said: str) -> None:
    verdict = judge(id, answer, EXERCISES[id], 0)
    assert verdict.ok is False
    assert said in verdict.text


@pytest.mark.parametrize("id", ["03-a", "03-b"])
def test_hints_come_in_steps_and_the_formula_last(id: str) -> None:
    odd = 77 if id == "03-a" else (300e9, X_B, 77)
    told = [judge(id, odd, EXERCISES[id], tries).text for tries in range(4)]
    assert len(set(told)) == 3
    assert told[2] == told[3]
    assert "FLOP/s" in told[2]
    assert "FLOP/s" not in told[0]


def test_the_offers_are_the_pages_and_one_alone_will_do() -> None:
    page = words("03_duration")
    for name, offer in OFFERS.items():
        chip = offer.chip.split()[0]
        peak = published.accelerator(offer.chip).peak(offer.format) / 1e12
        row = f"| {name} | {offer.num_gpus} {chip} | {peak:g} TFLOP/s | "
        assert f"{row}{offer.price:.2f} dollars |" in page
    low = {name: of_offer(name) for name in OFFERS}
    will = [n for n, (d, p) in low.items() if d <= MOST_DAYS and p <= BUDGET]
    assert will == ["C"]
    days, paid = of_offer("B", 0.35)
    assert days <= MOST_DAYS
    assert paid <= BUDGET
    assert of_offer("A", 0.35)[1] <= BUDGET < low["A"][1]
    assert max(low, key=lambda name: low[name][1]) == "D"
    assert min(OFFERS, key=lambda name: OFFERS[name].price) == "D"


def own(gpus: object, chip: str = "A100 80GB SXM", **changes: object) -> object:
    run = {"model": "Llama-3.1-8B", "days": 30, "chip": chip, "gpus": gpus}
    return run | changes


@pytest.mark.parametrize(
    "run", [own(40), own(40.0), own("40"), own(16, "H100 SXM"), own(96, "V100 32GB SXM2")], ids=str
)
def test_a_run_of_ones_own_by_the_formula(run) -> None:
    P, peaks = 8030261248, published.accelerator(run["chip"]).peaks
    X = 0.25 * (peaks.get("bf16") or peaks["fp16"])
    nodes = -(-6 * 20 * P * P // (X * 30 * 86400 * 8))
    assert float(run["gpus"]) == 8 * nodes
    verdict = check("03-d", run)
    assert verdict.ok is True
    told = f"Write down: {8 * nodes:.0f} {run['chip']}, 161 billion tokens"
    assert told in verdict.text


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (own(32), "likely share it would do"),  # at 35 %
        (own(8), "too few: at 25 % of the peak it takes 144 days"),
        (own(56), "A node less would do"),  # 8TP
        (own(39), "39 GPUs do not make whole nodes of 8"),
        (own(40, days=20), "too few"),
        (own(40, model="Llama-3.1-70B"), "too few"),
        (own(40, chip="A1000"), "is unknown"),
        (own(-8), "gpus=-8"),
        (own("many"), "no number"),
        (40, "give a dictionary with model, days, chip, gpus"),
        ({"gpus": 40}, "give a dictionary"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_run_of_ones_own(run, said: str) -> None:
    verdict = check("03-d", run)
    assert verdict.ok is False
    assert said in verdict.text


def test_a_run_without_gpus_is_not_answered() -> None:
    assert check("03-d", own(None)).ok is None


@pytest.mark.parametrize("guess", ["90 %", "70%", 50, "35 %"])
def test_the_prediction_names_the_belief_behind_each_option(guess: object) -> None:
    told = PREDICTIONS["03-guess"].reveal(guess)
    option = f"{str(guess)[:2]} %"
    assert ("and so it is" in told) == (option == "35 %")
    assert PREDICTIONS["03-guess"].options[option] in told
    assert "it is '35 %'" in told or option == "35 %"


def test_the_prediction_is_the_middle_of_the_published_runs() -> None:
    shares = utilizations.model_utilizations()["utilization"]
    assert f"{shares.median():.0%}".replace("%", " %") == "35 %"
    assert PREDICTIONS["03-guess"].truth() == "35 %"


def test_runs_with_a_known_rate_took_longer_than_the_page_says_by_formula() -> None:
    rates = {"BLOOM-176B": 150e12, "Llama 3.1 405B": 400e12, "DeepSeek-V3": 432e12}
    rates |= {"TinyLlama 1.1B": 0.56 * 312e12, "PaLM 540B": 0.462 * 275e12}
    runs = published.training_runs().set_index("name")
    hours, longer = published.reported_gpu_hours(), []
    for name, X in rates.items():
        T, P = runs.loc[name, ["tokens", "active_parameters"]]
        again = "full" if name == "BLOOM-176B" else "none"
        longer.append(hours[name] * 3600 / training_seconds(T, P, 1, X, again) - 1)
    span = f"{100 * min(longer):.0f} to {100 * max(longer):.0f} %"
    assert f"Five runs published theirs, and still took {span} longer" in words("03_duration")
