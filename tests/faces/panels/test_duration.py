"""Chapter 03's panel: what each control changes, and what it refuses."""

import re

import pytest

from llmtrain_helpers import count_parameters, training_seconds, units
from llmtrain_helpers.drawings.duration import Mark, around, days_against_gpus
from llmtrain_helpers.evidence import published, utilizations
from llmtrain_helpers.panels import PANELS
from llmtrain_helpers.panels.duration import published_marks
from tests.pages import cell
from tests.panel_code import value_of


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
    words = days_against_gpus(Mark("your run", 8, 32), (23, 45), published_marks()).words
    assert "your run: 32.0 days on 8 GPUs, as published runs 23 days to 45" in words
    for run in published_marks():
        assert f"{run.name}: " in words
    assert len(published_marks()) == 11
    assert "at the start" not in words


def test_published_marks_are_what_was_reported() -> None:
    reported = published.reported_gpu_hours()
    for mark in published_marks():
        hours = mark.days * mark.num_gpus * 24
        assert hours == pytest.approx(reported[mark.name])


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
