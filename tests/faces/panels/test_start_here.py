"""Chapter 00's panel: what each control changes, and what it refuses."""

import re
from html import unescape
from math import hypot, log10

import pytest

from llmtrain_course.duration.handles import PRICE
from llmtrain_course.kit.drawing import COLORS
from llmtrain_course.panels import HANDLES, PANELS, start_here_panel
from llmtrain_course.start_here.handles import Setting
from llmtrain_helpers import training_seconds, units
from llmtrain_helpers.published import rows, run
from tests.faces.svg import pictures
from tests.pages import cell
from tests.panel_code import sentence_of, value_of

PANEL = PANELS["start_here"]


@pytest.mark.parametrize("name", PANEL.presets)
def test_the_panel_says_what_the_formula_says(name: str) -> None:
    values = PANEL.presets[name]
    html = unescape(PANEL.render(**values))
    tokens = value_of(html)
    assert f"<b>{units.count(tokens, 2)} tokens</b>" in html
    again = training_seconds(
        round(tokens), values["parameters"], values["num_gpus"], _rate(html), "none"
    )
    assert again / units.DAY == pytest.approx(values["days"], rel=0.01)


def _rate(html: str) -> float:
    match = re.search(r"each GPU computes</td><td[^>]*>([\d.]+) TFLOP/s", html)
    assert match
    return float(match[1]) * 1e12


def test_the_picture_says_how_many_gpus_reach_gpt_3_once_they_do() -> None:
    machine, tokens = HANDLES["machine"], run("GPT-3 175B")["tokens"]
    assert Setting(num_gpus=51).tokens >= tokens > Setting(num_gpus=50).tokens
    assert "GPT-3 was trained on" not in machine.render(**{**machine.default, "num_gpus": 50})
    for num_gpus in (51, 64, 512):
        html = machine.render(**{**machine.default, "num_gpus": num_gpus})
        assert "GPT-3 was trained on 300 billion, and 51 GPUs would be enough for that." in html
    assert "51" not in cell("00_start_here", "machine-seen")


@pytest.mark.parametrize(
    ("num_gpus", "days", "P"),
    [(8, 30, 8 * 10**9), (1, 1, 10**8), (1024, 90, 70 * 10**9), (16384, 365, 10**12)],
)
def test_the_front_pages_map_has_what_the_formulas_say(num_gpus: int, days: float, P: int) -> None:
    """In its sentence, and in the picture: the dot is on the line, and what's below it is green."""
    html = HANDLES["reach"].render(num_gpus=num_gpus, days=days, parameters=P)
    T, hours = Setting(num_gpus, days, P).tokens, num_gpus * days * 24
    runs = {
        row["name"]: (row["active_parameters"], row["tokens"])
        for row in rows("tokens_per_parameter")
    }
    inside = {name for name, (size, tokens) in runs.items() if size * tokens <= P * T}
    nearest = min(runs, key=lambda x: hypot(log10(runs[x][0] / P), log10(runs[x][1] / T)))
    size, tokens = map(units.count, runs[nearest])
    sentence = sentence_of(html)
    assert f"trains on {units.count(T, 2)} tokens for {units.count(hours)} GPU-hours" in sentence
    assert f"or {units.dollars(hours * PRICE)} at {units.dollars(PRICE)} each" in sentence
    assert f"enough for {len(inside)} of {len(runs)} published runs, and {nearest} is" in sentence
    assert re.search(rf"{size}( active)? parameters, {tokens} tokens\.$", sentence)
    [picture] = pictures(html)
    green = picture.filled(COLORS["useful"], "circle")
    assert {box.words.partition(":")[0] for box in green} == inside
    [line] = picture.of_kind("polyline")
    (left, high), *_, (right, low) = line.outlines[0]
    [dot] = picture.filled(COLORS["weights"], "circle")
    share = (dot.across - left) / (right - left)
    if 1e9 < T < 1e14:
        assert dot.down == pytest.approx(high + share * (low - high), abs=0.2)


def test_the_tasks_come_out_as_the_page_says() -> None:
    default = dict(PANEL.default)

    def each(**changes: float) -> tuple[float, float]:
        html = PANEL.render(**{**default, **changes})
        match = re.search(r"tokens per parameter</td><td[^>]*>([\d.]+)", html)
        assert match
        size = changes.get("parameters", default["parameters"])
        return float(match[1]), float(match[1]) * size

    assert each(num_gpus=16)[1] == pytest.approx(2 * each()[1], rel=0.01)
    assert each(parameters=16 * 10**9)[1] == pytest.approx(each()[1] / 2, rel=0.01)
    assert each(parameters=16 * 10**9)[0] == pytest.approx(each()[0] / 4, rel=0.01)
    gpt3 = run("GPT-3 175B")["tokens"]
    assert each(num_gpus=51)[1] >= gpt3 > each(num_gpus=50)[1]
    assert each(parameters=4_300_000_000)[0] >= 20 > each(parameters=4_400_000_000)[0]


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("num_gpus", "0", "GPUs: '0' is outside 1 to 1M."),
        ("days", "soon", "Days: 'soon' isn't a number"),
        ("parameters", "8", "'8' is outside 1M to 10T; for billions write 8B."),
    ],
)
def test_what_cannot_be_is_refused_in_the_panels_words(
    name: str, written: str, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        PANEL.controls[name].read(written)


def test_every_stop_and_every_chip_can_be_drawn() -> None:
    for name, control in PANEL.controls.items():
        for value in control.stops or control.options:
            assert PANEL.answer({**PANEL.default, name: value}).html, (name, value)


def test_the_notebooks_panel_begins_with_the_default() -> None:
    panel = start_here_panel()
    assert panel.state.preset == "Eight A100s for a month"
    assert "47 billion tokens" in panel.html
