"""Chapter 03's panel and handles: what each control changes, and what is refused."""

import pytest

from llmtrain_course.duration.handles import DOUBTFUL, published_runs, shares_of_runs
from llmtrain_course.panels import HANDLES, PANELS
from llmtrain_helpers import published, units
from research import utilizations
from tests.pages import cell
from tests.panel_code import sentence_of


def test_published_runs_are_what_was_reported() -> None:
    reported = published.reported_gpu_hours()
    for run in published_runs():
        hours = run.days * run.num_gpus * 24
        assert hours == pytest.approx(reported[run.name])


GPT3 = PANELS["duration"].presets["GPT-3, all recomputed"]


def render(**changes: object) -> str:
    return PANELS["duration"].render(**{**GPT3, **changes})


@pytest.mark.parametrize(
    ("control", "value", "text"),
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
def test_the_panel_follows_each_control(control: str, value, text: str) -> None:
    assert text in render(**{control: value})


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
    assert control.echo(meant) == f"= {meant:g}%"
    assert control.read(meant) == meant


def test_a_share_outside_is_refused_in_both_ways_to_write_it() -> None:
    control = PANELS["duration"].controls["percent"]
    message = "outside 0.1% to 100%; a number below 1 without a % is a share, so 0.5 is 50%."
    for written in ("101", "0.0005", "0", "0.05%"):
        with pytest.raises(ValueError, match=message):
            control.read(written)


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (1, "none of 14 published runs was below 22%."),
        (22.1, "was below 22%."),
        (22.2, ""),
        (48, ""),
        (48.1, "none of 14 published runs was over 48%."),
    ],
)
def test_the_panel_says_what_no_run_did(percent: float, text: str) -> None:
    html = render(recompute="none", percent=percent)
    assert text in html
    assert ("Look again" in html) == bool(text)


def test_the_nearest_published_run_is_nearest_in_work_and_has_no_blank() -> None:
    rows = render().split("published, nearest in work")[1].split("<pre")[0]
    assert rows.count("<td") == 21
    assert "></td>" not in rows
    assert "400 W for an A100" in cell("evidence/03_duration", "figure-reading")
    assert published.accelerator("A100 80GB SXM").power == 400


def test_of_three_runs_the_number_of_gpus_is_not_published() -> None:
    names = {run.name for run in published_runs()}
    shares = utilizations.model_utilizations()
    missing = set(shares.index) - names
    assert len(names) == 11
    assert missing == {"LLaMA-1 7B", "Llama 2 7B", "Llama 2 70B"}
    text = cell("evidence/03_duration", "interval")
    assert all(name in text for name in missing)
    assert {*HANDLES["gpus_and_days"].controls["run"].options} == missing


def test_the_panel_leaves_a_ring_where_it_was() -> None:
    before = {**GPT3, "num_gpus": 512}
    assert "at the start: your run: 67.6 days on 512 GPUs" in render(before=before)
    assert "at the start:" not in render(before=GPT3)
    same = {**before, "num_gpus": 1024, "price": 9.0}
    assert "at the start:" not in render(before=same)


@pytest.mark.parametrize("name", PANELS["duration"].presets)
def test_every_preset_is_drawn(name: str) -> None:
    assert "<svg" in render(**PANELS["duration"].presets[name])


# --- handles


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"num_gpus": 2048}, "on 2,048 GPUs: 35.0 days, 1.72 million GPU-hours, $3.44 million"),
        ({"num_gpus": 4096}, "dollars per hour. Within a month."),
        ({"run": "Llama 2 7B"}, "7.50 days, 184 thousand GPU-hours, $369 thousand"),
        ({"run": "LLaMA-1 7B", "num_gpus": 32}, "107 days, 82.4 thousand"),
    ],
)
def test_twice_the_gpus_take_half_the_days_for_the_same_bill(values, text: str) -> None:
    assert text in sentence_of(HANDLES["gpus_and_days"].render(**values))


@pytest.mark.parametrize(
    ("work", "rate", "text", "days"),
    [
        ("6TP", "HFU", "25% too short", "77.8 days"),
        ("8TP", "MFU", "33% too long", "138 days"),
        ("8TP", "HFU", "The counts agree", "104 days"),
        ("6TP", "MFU", "The counts agree", "104 days"),
    ],
)
def test_work_and_rate_count_the_same_passes(work: str, rate: str, text: str, days: str) -> None:
    assert text in sentence_of(HANDLES["eight_or_six"].render(work=work, rate=rate))
    html = HANDLES["eight_or_six"].render(work=work, rate=rate)
    assert f">{days}<" in html
    bloom = published.run("BLOOM-176B")
    assert (bloom["recompute"], bloom["flops_per_gpu"]) == ("full", 150e12)
    seconds = 8 * 366e9 * 176.247e9 / (384 * 150e12)
    assert units.digits(seconds / units.DAY) == "104"
    assert f"the run lasted {units.digits(bloom['days'])} days, including overhead" in html


def test_the_promise_is_held_against_all_runs_that_tell_enough() -> None:
    shares = shares_of_runs()
    assert shares == pytest.approx(dict(utilizations.model_utilizations()["utilization"]))
    assert min(shares, key=lambda name: shares[name]) == "Pythia 70M"
    assert max(shares, key=lambda name: shares[name]) == "LLaMA-1 65B"
    drawn = HANDLES["promise"].render(percent=10)
    assert all(f">{name}*<" in drawn and name not in shares for name in DOUBTFUL)


def test_the_first_promise_shows_not_how_slow_the_slowest_was() -> None:
    assert units.percent(min(shares_of_runs().values())) == "22.1%"
    assert "22.1" not in HANDLES["promise"].render()
    assert "22.1%" in HANDLES["promise"].render(percent=20)


def test_another_run_has_no_dot_where_the_first_one_stood() -> None:
    spread = HANDLES["gpus_and_days"]
    assert "at the start" in spread.render(spread.default, num_gpus=64)
    assert "at the start" not in spread.render(spread.default, run="Llama 2 7B", num_gpus=64)


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (10, "No run was slower. Eight A100s would train an 8B model on 13 billion"),
        (25, "1 of 14 runs was slower. Eight A100s would train an 8B model on 34 billion"),
        (55, "14 of 14 runs were slower."),
    ],
)
def test_a_promise_says_how_many_runs_were_slower(percent: int, text: str) -> None:
    assert sentence_of(HANDLES["promise"].render(percent=percent)).startswith(text)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"num_gpus": 384}, "Weights fetched: 90 days at 46% of the peak."),
        ({}, "Weights fetched: 74 days at 28% of the peak, 18% fewer than on 384 GPUs."),
        ({"num_gpus": 1536}, "74 days at 14% of the peak, not one fewer than on 768 GPUs."),
        ({"num_gpus": 1536, "shared": True}, "23 days at 45% of the peak, 47% fewer than"),
    ],
)
def test_more_gpus_take_fewer_days_where_weights_are_shared(values, text: str) -> None:
    assert text in sentence_of(HANDLES["more_gpus"].render(**values))


def test_on_a_phone_no_name_stands_at_another_runs_dot() -> None:
    """There BLOOM's name would be right under TinyLlama's dot."""
    wide, narrow = HANDLES["gpus_and_days"], HANDLES["gpus_and_days"].on_telephone
    assert ">BLOOM-176B</text>" in wide.render()
    assert ">BLOOM-176B</text>" not in narrow.render()
    assert ">Pythia 70M</text>" in narrow.render()
    assert narrow.render().count("<title>BLOOM-176B") == wide.render().count("<title>BLOOM-176B")
